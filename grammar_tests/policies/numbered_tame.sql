-- 200 members inside the bound, fewer and fewer of whom were in each next place; some numbers are missing.
INSERT INTO kind VALUES (1, 'long'), (2, 'short'), (3, 'short');
INSERT INTO tag VALUES (1, 'x'), (1, 'y'), (2, 'x');
INSERT INTO member SELECT i, ['Bonn', 'Kiel'][i % 2 + 1] FROM range(1, 201) AS t(i);
INSERT INTO visit SELECT i, p, ['a', 'b', 'c'][p], i % 3 + 1, i % 61 FROM range(1, 201) AS t(i), range(1, 4) AS s(p) WHERE i % (p + 1) = 0;
