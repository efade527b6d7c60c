-- 300 people inside all bounds, with values of the grid: multiples of a power of two with few bits.
INSERT INTO person SELECT i, (1 + i % 41) * 4096, -(1 + i % 47) * 64, (1 + i % 50) / 64e0 / 4, ['n', 's'][i % 2 + 1]
  FROM range(0, 300) AS t(i);
INSERT INTO payment SELECT i % 300, (1 + i % 41) * 1.28 FROM range(0, 900) AS t(i);
