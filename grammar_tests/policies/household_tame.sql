-- 300 students inside all bounds, each with three enrolments in three courses.
INSERT INTO student SELECT i, 'student ' || i, 2 + (i * 7 % 201) / 100, ['CS', 'EE', 'ME'][i % 3 + 1], CASE WHEN i % 8 > 0 THEN 16 + i % 65 END
FROM range(1, 301) AS t(i);
INSERT INTO enrolment
SELECT i % 300 + 1, ['db', 'os', 'ai'][i // 300 + 1], ['spring', 'autumn'][i % 2 + 1], CASE WHEN i % 7 > 0 THEN 1 + i % 31 / 10 END, i % 11 - 2
FROM range(0, 900) AS t(i);
