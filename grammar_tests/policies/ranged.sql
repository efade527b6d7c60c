CREATE TABLE patient (id BIGINT PRIMARY KEY, city TEXT);
CREATE TABLE visit (patient_id BIGINT, ward TEXT, cost INTEGER);
-- rows
INSERT INTO patient VALUES (1, 'Bonn'), (2, 'Kiel'), (5, NULL), (6, 'Bonn'), (0, 'Kiel'), (9223372036854775807, 'Ulm');
INSERT INTO visit VALUES
  (1, 'a', 100), (1, 'a', 100), (1, 'a', 100), (1, 'a', 100), (1, 'b', 0), (1, 'z', 2147483647), (1, NULL, NULL),
  (2, 'b', 50), (5, 'b', -5), (5, 'a', 7), (6, 'a', 100), (6, 'b', 100), (0, 'a', 100), (-9223372036854775808, 'a', 1),
  (9223372036854775807, 'b', 100), (9223372036854775807, 'a', NULL), (NULL, 'a', 100);
