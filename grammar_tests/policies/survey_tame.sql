-- 120 people inside all bounds, each with two entries in a diary.
INSERT INTO person SELECT i, i % 90, ['north', 'south'][i % 2 + 1], ['yes', 'no'][i % 3 % 2 + 1], ['a', 'b', 'c'][i % 5 % 3 + 1], i % 7 > 3
FROM range(1, 121) AS t(i);
INSERT INTO diary SELECT i % 120 + 1, ['yes', 'no'][i % 4 % 2 + 1], i % 11 FROM range(0, 240) AS t(i);
INSERT INTO sent SELECT i % 4, ['yes', 'no'][i % 5 % 2 + 1] FROM range(0, 100) AS t(i);
