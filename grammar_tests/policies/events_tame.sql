-- 300 patients inside all bounds: three visits in two wards, two drugs, an item of each visit.
INSERT INTO visit SELECT i, i % 300 + 1, ['a', 'b'][i // 600 + 1], i % 101 FROM range(0, 900) AS t(i);
INSERT INTO drug SELECT i % 300 + 1, i % 11, ['x', 'y', 'w'][i % 3 + 1] FROM range(0, 600) AS t(i);
INSERT INTO item SELECT i, i % 51 FROM range(0, 900) AS t(i);
