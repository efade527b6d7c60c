-- 480 customers inside all bounds. Each has one or two orders, both of the same groups' keys or in two groups.
INSERT INTO branch VALUES ('north', 'Nora', 100, '2001-05-06'), ('south', 'Saul', 250, '2010-01-31'), ('west', NULL, 0, NULL);
INSERT INTO customer
SELECT i, ['north', 'south'][i % 2 + 1], ['Oslo', 'Bergen', 'Moss', NULL][i % 4 + 1], (i * 7 % 1000) + (i % 4) * 0.25,
       i * 13 % 101, (i % 16 - 8) / 8, DATE '1940-01-01' + INTERVAL (i * 47) DAY, i % 3 = 0,
       CASE WHEN i % 10 < 9 THEN 'user' || i || '@example.org' END, 1000 + i
FROM range(1, 481) AS t(i);
INSERT INTO orders
SELECT i, i % 480 + 1, ['north', 'south', NULL][i % 3 + 1], ['open', 'paid', 'void'][i * 5 % 7 % 3 + 1],
       ['tea', 'jam', 'oat', NULL][i % 4 + 1], CASE WHEN i % 11 > 0 THEN (i * 37 % 5000) / 100 END, i * 3 % 10 + 1,
       CASE WHEN i % 13 > 0 THEN (i % 64 - 32) / 8 END,
       TIMESTAMP '2024-01-01' + INTERVAL (i * 1429) MINUTE, CASE WHEN i % 9 > 0 THEN DATE '2024-01-02' + INTERVAL (i) DAY END,
       CASE WHEN i % 5 > 0 THEN i % 2 = 0 END, i % 5 + 1, CASE WHEN i % 6 > 0 THEN 'note ' || i % 8 END, i
FROM range(1, 721) AS t(i);
