-- A small clinic. The rows hold what a hostile or careless loader could leave behind: NULL, NaN,
-- infinities, the ends of the types, quotes, and text that looks like SQL.
CREATE TYPE blood AS ENUM ('A', 'B', 'AB', '0');
CREATE TABLE patient (
  id INTEGER PRIMARY KEY,
  name VARCHAR,
  city VARCHAR,
  sex VARCHAR,
  blood blood,
  age INTEGER,
  weight DOUBLE,
  height DECIMAL(5, 2),
  bmi DOUBLE,
  salary BIGINT,
  smoker BOOLEAN,
  born DATE,
  admitted DATE,
  seen TIMESTAMP,
  ssn VARCHAR
);
CREATE TABLE visit (
  vid INTEGER PRIMARY KEY,
  patient_id INTEGER REFERENCES patient (id),
  ward VARCHAR,
  cost INTEGER,
  rating DOUBLE,
  started TIMESTAMP,
  diagnosis VARCHAR
);
CREATE TABLE labtest (tid INTEGER PRIMARY KEY, patient_id INTEGER REFERENCES patient (id), score INTEGER);
CREATE TABLE note (nid INTEGER PRIMARY KEY, patient_id INTEGER REFERENCES patient (id), kind VARCHAR);
CREATE TABLE region (city VARCHAR, county VARCHAR, beds INTEGER);
CREATE TABLE staff (id INTEGER, secret VARCHAR);

-- rows
INSERT INTO patient VALUES
  (1, 'Ann', 'Oslo', 'F', 'A', 34, 61.5, 170.00, 21.3, 52000, TRUE, '1990-04-01', '2024-01-05', '2024-01-05 10:00:00', 'S-1'),
  (2, 'Bob', 'Oslo', 'M', 'B', 51, 'NaN', 181.50, 'NaN', 9223372036854775807, FALSE, '1973-02-11', 'infinity', 'infinity', 'S-2'),
  (3, 'O''Hara', 'Bergen', 'F', '0', 2147483647, 'inf', 0.00, '-inf', -9223372036854775808, NULL, '5881580-07-10', '5881580-07-10', '294247-01-10 04:00:54.775806', 'S-3'),
  (4, ''' OR 1=1 --', NULL, 'x', NULL, -2147483648, 1e308, -999.99, 1e308, 0, TRUE, '-infinity', '-infinity', '-infinity', 'S-4'),
  (5, '', '', NULL, 'AB', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (6, 'Cid', 'Oslo', 'M', 'A', 0, -1e308, 999.99, 5e-324, 1, FALSE, '2001-09-09', '2023-12-31', '2023-12-31 23:59:59', 'S-6'),
  (7, 'Chandler', 'Voss', 'M', 'A', 40, 82.0, 178.00, 25.9, 61000, FALSE, '1984-08-19', '2024-03-01', '2024-03-01 08:30:00', 'S-7');
INSERT INTO visit VALUES
  (1, 1, 'east', 100, 4.5, '2024-01-05 10:00:00', 'flu'),
  (2, 1, 'east', 250, 3.0, '2024-02-05 10:00:00', 'flu'),
  (3, 1, 'west', 2147483647, 'inf', '2024-03-05 10:00:00', 'cold'),
  (4, 2, 'north', -2147483648, 'NaN', 'infinity', NULL),
  (5, 2, NULL, NULL, NULL, NULL, 'x'' OR ''1''=''1'),
  (6, NULL, 'east', 10, 1.0, '2024-01-01 00:00:00', 'flu'),
  (7, 7, 'west', 40, 2.0, '2024-06-30 12:00:00', 'rare');
INSERT INTO labtest VALUES (1, 1, 5), (2, 1, 7), (3, 7, 9);
INSERT INTO note VALUES (1, 1, 'a'), (2, 7, 'b');
INSERT INTO region VALUES ('Oslo', 'Oslo', 900), ('Bergen', 'Vestland', 400), ('Voss', 'Vestland', 30);
INSERT INTO staff VALUES (1, 'not declared, so it does not exist');
