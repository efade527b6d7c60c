-- 300 respondents inside all bounds, no two groups of one size.
INSERT INTO respondent SELECT 17 + i % 70, ['HS', 'HS', 'BSc', 'MSc', 'HS', 'BSc'][i % 6 + 1], ['Ulm', 'Bonn'][i % 2 + 1], i % 91,
  i % 800, i % 3 = 0 FROM range(0, 300) AS t(i);
INSERT INTO later SELECT 20 + i % 40, i % 60 FROM range(0, 120) AS t(i);
INSERT INTO degree VALUES ('HS', 12), ('BSc', 15), ('MSc', 17);
INSERT INTO course VALUES ('HS', 'a'), ('HS', 'b'), ('BSc', 'c');
