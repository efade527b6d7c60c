CREATE TABLE person (id INTEGER PRIMARY KEY, wage INTEGER, debt INTEGER NOT NULL, size DOUBLE, region TEXT);
CREATE TABLE payment (person_id INTEGER REFERENCES person (id), amount NUMERIC(10, 2));
-- rows
INSERT INTO person VALUES
  (1, 0, 0, 0, 'n'), (2, 2048, -2048, 0.2048, 's'), (3, 2049, -2049, 0.20485, 'n'), (4, 1000000, -5000, 1, 's'),
  (5, 2147483647, 2147483647, 1e300, 'x'), (6, NULL, -1, NULL, NULL), (7, -5, 61, -1, 'n'), (8, 999999, -4999, 0.99995, 's');
INSERT INTO payment VALUES
  (2, 0), (2, 0.01), (2, 20.48), (2, 20.49), (2, 20.50), (2, 40.97), (2, 5000), (2, 99999.99), (3, -1), (3, NULL),
  (4, 1234.56), (NULL, 77.77);
