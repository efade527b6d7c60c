-- 200 travellers inside all bounds, of whom fewer and fewer were in each next place: no two counts, sums or days are alike.
INSERT INTO traveller SELECT i FROM range(1, 201) AS t(i);
INSERT INTO trip
SELECT i, ['Bonn', 'Kiel', 'Linz', 'Oslo', 'Pisa', 'Riga', 'Rome', 'Ulm'][p], ['DE', 'DE', 'AT', 'NO', 'IT', 'LV', 'IT', 'DE'][p],
  10 * p, i % 7 - 3, DATE '2024-01-01' + CAST(p AS INTEGER), i % 3 > 0
FROM range(1, 201) AS t(i), range(1, 9) AS s(p), range(1, 3) AS r(twice) WHERE i % (p + 1) = 0 AND (twice = 1 OR i % 5 = 0);
