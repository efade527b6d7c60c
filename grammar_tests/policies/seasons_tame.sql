-- 200 guests inside the bounds: two stays, both in one of three months, or in two of them, and a visit.
INSERT INTO room VALUES ('blue', 1), ('red', 2);
INSERT INTO guest SELECT i, ['Bonn', 'Kiel'][i % 2 + 1], i % 91 FROM range(1, 201) AS t(i);
INSERT INTO stay SELECT 2 * i + p, i, TIMESTAMP '2024-01-01' + to_days(CAST((i * 7 + p * 11) % 90 AS INTEGER)), ['blue', 'red'][(i + p) % 2 + 1],
  (i + p) % 6, ['early', 'late'][(i * 3 + p) % 2 + 1] FROM range(1, 201) AS t(i), range(2) AS s(p);
INSERT INTO meal SELECT 2 * i, i % 11 FROM range(1, 201) AS t(i);
INSERT INTO visit SELECT i, DATE '2024-01-01' + CAST(i * 5 % 90 AS INTEGER) FROM range(1, 201) AS t(i);
