-- 300 patients inside all bounds, of two hospitals and with shared numbers: three visits in two wards, a test at each.
INSERT INTO patient SELECT ['a', 'ab'][i % 2 + 1], i // 2, ['f', 'm'][i % 3 % 2 + 1], i % 101 FROM range(0, 300) AS t(i);
INSERT INTO visit SELECT ['a', 'ab'][i % 2 + 1], i, i % 300 // 2, ['x', 'y'][i // 600 + 1], i % 31 FROM range(0, 900) AS t(i);
INSERT INTO lab SELECT i, ['a', 'ab'][i % 2 + 1], ['k', 'l'][i % 2 + 1], i % 10 FROM range(0, 900) AS t(i);
