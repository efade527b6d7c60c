INSERT INTO patient SELECT i, ['Bonn', 'Kiel'][i % 2 + 1] FROM range(1, 6) AS t(i);
INSERT INTO visit SELECT i, ['a', 'b'][p % 2 + 1], i * p FROM range(1, 6) AS t(i), range(1, 5) AS s(p) WHERE i >= p;
