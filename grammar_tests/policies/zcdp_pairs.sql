CREATE TABLE student (id INTEGER PRIMARY KEY, name TEXT NOT NULL, gpa DECIMAL(3,2) NOT NULL, major TEXT, age INTEGER);
CREATE TABLE enrolment (
  student_id INTEGER NOT NULL REFERENCES student (id), course TEXT NOT NULL, term TEXT NOT NULL, grade DECIMAL(2,1),
  credits INTEGER NOT NULL
);
CREATE TABLE checkup (
  student_id INTEGER NOT NULL REFERENCES student (id), month INTEGER NOT NULL, PRIMARY KEY (student_id, month)
);
-- rows
INSERT INTO student VALUES (1, 'Ada', 2.00, 'CS', 20), (2, 'Bob', 4.00, 'EE', NULL), (3, 'Cy', 0.00, 'Law', -5), (4, 'Di', 9.99, NULL, 2147483647);
INSERT INTO enrolment VALUES
  (1, 'db', 'spring', 4.0, 8), (1, 'db', 'spring', 4.0, 8), (1, 'os', 'autumn', 1.0, -2), (1, 'ai', 'summer', 2.0, 2),
  (2, 'os', 'autumn', 1.0, -2), (2, 'db', 'spring', 9.9, 2147483647), (3, 'ai', 'spring', NULL, 5);
INSERT INTO checkup VALUES (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 1), (3, 7);
