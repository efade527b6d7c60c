-- 200 members inside the bounds: each votes twice on the posts of others and writes one message.
INSERT INTO topic VALUES (1, 'art'), (2, 'music'), (3, 'music');
INSERT INTO member SELECT i, ['Bonn', 'Kiel'][i % 2 + 1] FROM range(1, 201) AS t(i);
INSERT INTO post SELECT i, i, i % 3 + 1, DATE '2024-01-01' + i::INTEGER FROM range(1, 201) AS t(i);
INSERT INTO vote SELECT 2 * i + p, i, (i * 7 + p) % 200 + 1, ['down', 'up'][(i + p) % 2 + 1], i % 8 - 2, DATE '2024-07-01' + p::INTEGER
  FROM range(1, 201) AS t(i), range(2) AS s(p);
INSERT INTO message SELECT i, (i * 3) % 200 + 1, i % 101 FROM range(1, 201) AS t(i);
