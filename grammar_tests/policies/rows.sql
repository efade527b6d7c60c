CREATE TABLE respondent (age INTEGER, education TEXT, town TEXT, hours INTEGER, income DOUBLE, is_married BOOLEAN NOT NULL);
CREATE TABLE later (age INTEGER, hours INTEGER);
CREATE TABLE degree (name TEXT PRIMARY KEY, years INTEGER NOT NULL);
CREATE TABLE course (degree TEXT, title TEXT);
-- rows
INSERT INTO respondent VALUES
  (17, 'HS', 'Ulm', 100, 1000, TRUE), (17, 'HS', 'Ulm', 100, 1000, TRUE), (90, 'BSc', 'Bonn', 0, 0, FALSE),
  (2147483647, 'MSc', 'Bonn', 2147483647, 1e308, TRUE), (-5, 'PhD', NULL, -2147483648, 'nan', FALSE),
  (NULL, NULL, NULL, NULL, NULL, TRUE), (30, 'HS', 'Ulm', 40, 'inf', TRUE), (31, 'MSc', 'Kiel', 40, -0.0, FALSE);
INSERT INTO later VALUES (17, 100), (90, 0), (NULL, NULL);
INSERT INTO degree VALUES ('HS', 12), ('BSc', 15), ('MSc', 17);
INSERT INTO course VALUES ('HS', 'a'), ('HS', 'b'), ('BSc', 'c'), (NULL, 'd');
