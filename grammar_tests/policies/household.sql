CREATE TABLE student (id INTEGER PRIMARY KEY, name TEXT NOT NULL, gpa DECIMAL(3,2) NOT NULL, major TEXT, age INTEGER);
CREATE TABLE enrolment (
  student_id INTEGER NOT NULL REFERENCES student (id), course TEXT NOT NULL, term TEXT NOT NULL, grade DECIMAL(2,1),
  credits INTEGER NOT NULL
);
-- rows
INSERT INTO student VALUES (1, 'Ada', 2.00, 'CS', 20), (2, 'Bob', 4.00, 'EE', NULL), (3, 'Cy', 0.00, 'Law', -5), (4, 'Di', 9.99, NULL, 2147483647);
INSERT INTO enrolment VALUES
  (1, 'db', 'spring', 4.0, 8), (1, 'db', 'spring', 4.0, 8), (1, 'db', 'spring', 4.0, 8), (1, 'db', 'spring', 4.0, 8),
  (1, 'db', 'spring', 4.0, 8), (1, 'os', 'autumn', 1.0, -2), (1, 'ai', 'summer', 2.0, 2), (1, 'pl', 'autumn', 3.0, 1),
  (2, 'os', 'autumn', 1.0, -2), (2, 'os', 'autumn', 1.0, -2), (2, 'os', 'autumn', 1.0, -2), (2, 'os', 'autumn', 1.0, -2),
  (2, 'db', 'spring', 9.9, 2147483647), (3, 'ai', 'spring', -9.9, -2147483648), (3, 'ai', 'spring', NULL, 5);
