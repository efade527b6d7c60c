-- 600 customers with two orders and three lines each, inside all bounds.
INSERT INTO nation VALUES (1, 'FRANCE'), (2, 'GERMANY');
INSERT INTO customer SELECT i, 'C' || i, [13, 31, 23][i % 3 + 1] || '-' || i, i * 37 % 9000 - 0.5, ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'][i % 5 + 1]
FROM range(1, 601) AS t(i);
INSERT INTO orders
SELECT i, i % 600 + 1, ['F', 'O', 'P'][i % 3 + 1], i * 5477 % 500000 + 0.25, DATE '1992-01-01' + INTERVAL (i * 2) DAY,
       ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'][i % 5 + 1], 'clerk ' || i % 2, 'comment'
FROM range(1, 1201) AS t(i);
INSERT INTO uli
SELECT i % 600 + 1, i % 50 + 1, i * 977 % 100000 + 0.5, (i % 11) / 100, (i % 9) / 100, ['A', 'N', 'R'][i % 3 + 1], ['F', 'O'][i % 2 + 1],
       DATE '1992-01-01' + INTERVAL (i) DAY
FROM range(1, 1801) AS t(i);
INSERT INTO student SELECT i, 'S' || i, 2 + (i % 200) / 100, ['CS', 'EE', 'ME'][i % 3 + 1] FROM range(1, 301) AS t(i);
