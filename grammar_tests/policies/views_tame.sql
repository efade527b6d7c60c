INSERT INTO patient SELECT i, CASE WHEN i % 3 = 0 THEN 'f' ELSE 'm' END FROM range(1, 31) AS t(i);
INSERT INTO visit SELECT i, i % 9 + 1 FROM range(1, 31) AS t(i), range(1, 4) AS s(n) WHERE i % n = 0;
