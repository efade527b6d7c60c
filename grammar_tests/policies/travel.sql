CREATE TABLE traveller (id INTEGER PRIMARY KEY);
CREATE TABLE trip (
  traveller_id INTEGER REFERENCES traveller (id), place TEXT, country TEXT, km INTEGER, gain INTEGER NOT NULL, day DATE, by_rail BOOLEAN NOT NULL
);
-- rows
INSERT INTO traveller VALUES (1), (2), (3), (4);
INSERT INTO trip VALUES
  (1, 'Bonn', 'DE', 100, 100, '2024-01-01', TRUE), (1, 'Bonn', 'DE', 100, 100, '2024-01-01', TRUE), (1, 'Bonn', 'DE', 100, 100, '2024-01-01', TRUE),
  (1, 'Kiel', 'DE', 100, 100, '2024-01-02', TRUE), (1, 'Kiel', 'DE', 100, 100, '2024-01-02', TRUE), (1, 'Linz', 'AT', 100, -10, '2024-01-03', FALSE),
  (1, 'Oslo', 'NO', 2147483647, 2147483647, '2024-01-04', TRUE), (1, 'Pisa', 'IT', -5, -2147483648, '2024-01-05', TRUE),
  (1, 'Riga', 'LV', 1, 1, '2024-01-06', TRUE), (1, 'Rome', 'IT', NULL, 1, NULL, FALSE), (1, 'Ulm', 'DE', 7, 1, 'infinity', TRUE),
  (1, NULL, NULL, 100, 1, '2024-01-09', TRUE), (1, 'elsewhere', 'XX', 100, 1, '1066-10-14', TRUE), (1, 'elsewhere', 'XX', 100, 1, '2024-01-09', TRUE),
  (2, 'Bonn', 'DE', 50, 5, '2024-01-01', TRUE), (2, 'Bonn', 'DE', 50, 5, '2024-01-01', TRUE), (2, 'Bonn', 'DE', 50, 5, '2024-01-01', TRUE),
  (2, 'Bonn', 'DE', 50, 5, '2024-01-01', TRUE), (2, 'Bonn', 'DE', 50, 5, '2024-01-01', TRUE), (2, 'Kiel', 'DE', 50, 5, '2024-01-01', TRUE),
  (3, 'Ulm', 'DE', 0, 0, '2024-01-07', FALSE), (NULL, 'Ulm', 'DE', 0, 0, '2024-01-07', FALSE), (NULL, 'Rome', 'IT', 0, 0, '2024-01-07', FALSE),
  (NULL, 'Rome', 'IT', 90, 0, '2024-01-07', FALSE), (NULL, 'Rome', 'IT', 90, 0, '2024-01-07', FALSE);
