CREATE TABLE patient (hospital TEXT, no TEXT, sex TEXT, age INTEGER, PRIMARY KEY (hospital, no));
CREATE TABLE visit (
  hospital TEXT NOT NULL, visit_no INTEGER, patient_no TEXT, ward TEXT, days INTEGER,
  PRIMARY KEY (hospital, visit_no), FOREIGN KEY (hospital, patient_no) REFERENCES patient (hospital, no)
);
CREATE TABLE lab (
  visit_no INTEGER NOT NULL, hospital TEXT NOT NULL, kind TEXT, value INTEGER,
  FOREIGN KEY (hospital, visit_no) REFERENCES visit (hospital, visit_no)
);
-- rows
INSERT INTO patient VALUES ('a', 'bc', 'f', 100), ('ab', 'c', 'm', 2147483647), ('a', 'c', NULL, NULL), ('ab', 'bc', 'x', -5);
INSERT INTO visit VALUES
  ('a', 1, 'bc', 'x', 30), ('a', 2, 'bc', 'x', 30), ('a', 3, 'bc', 'x', 30), ('a', 4, 'bc', 'x', 99), ('a', 5, 'bc', 'y', 30),
  ('a', 6, 'bc', 'y', -1), ('a', 7, 'bc', 'z', NULL), ('a', 8, 'bc', 'q', 30), ('ab', 1, 'c', 'x', 3), ('ab', 2, 'c', 'z', 30),
  ('ab', 3, 'bc', 'x', 1), ('a', 9, 'c', NULL, 7), ('a', 10, NULL, 'x', 30), ('ab', 11, NULL, 'y', 30), ('a', 12, NULL, 'x', 30);
INSERT INTO lab VALUES
  (1, 'a', 'k', 9), (1, 'a', 'k', 9), (2, 'a', 'k', 9), (3, 'a', 'l', 9), (4, 'a', 'l', 2147483647), (5, 'a', 'k', 9),
  (6, 'a', 'k', 9), (7, 'a', 'z', 9), (8, 'a', 'k', -1), (8, 'a', 'k', 9), (1, 'ab', 'k', 5), (2, 'ab', 'l', NULL),
  (3, 'ab', NULL, 9), (9, 'a', 'l', 1), (10, 'a', 'k', 9), (11, 'ab', 'l', 9);
