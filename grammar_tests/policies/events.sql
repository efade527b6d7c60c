CREATE TABLE visit (no INTEGER PRIMARY KEY, patient_id INTEGER, ward TEXT, cost INTEGER);
CREATE TABLE drug (patient BIGINT, dose INTEGER NOT NULL, code TEXT);
CREATE TABLE item (visit_no INTEGER, price INTEGER);
-- rows
INSERT INTO visit VALUES
  (1, 1, 'a', 100), (2, 1, 'a', 100), (3, 1, 'a', 100), (4, 1, 'a', 100), (5, 1, 'b', 0), (6, 1, 'b', 2147483647),
  (7, 1, 'c', NULL), (8, 1, 'z', -5), (9, 2, 'b', 50), (10, 3, NULL, 7), (11, NULL, 'a', 100), (12, NULL, 'a', 3),
  (13, NULL, 'b', 100), (14, NULL, 'c', 1), (15, NULL, 'a', 1), (16, NULL, 'a', 1), (17, NULL, 'a', 1);
INSERT INTO drug VALUES
  (1, 10, 'x'), (1, 10, 'x'), (1, 10, 'y'), (1, 10, 'y'), (1, 10, 'w'), (2, 3, 'x'), (4, 2147483647, 'x'), (NULL, 10, 'x'),
  (NULL, 10, 'x'), (3, -1, NULL), (2147483648, 1, 'x');
INSERT INTO item VALUES
  (1, 50), (1, 50), (2, 50), (3, 50), (4, 50), (5, 50), (6, 50), (7, 50), (8, 50), (9, 1), (10, NULL), (11, 50),
  (99, 50), (NULL, 50);
