INSERT INTO "Person List" SELECT 'p' || i, ['it''s', 'a "b"'][i % 2 + 1], i % 11 - 5, (i % 5) / 4 FROM range(1, 41) AS t(i);
INSERT INTO "Visit" SELECT 'p' || (i % 40 + 1), i % 10, ['x', 'y'][i % 2 + 1] FROM range(0, 80) AS t(i);
