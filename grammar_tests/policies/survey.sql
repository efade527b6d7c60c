CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, region TEXT, smokes TEXT NOT NULL, drug TEXT NOT NULL, ill BOOLEAN NOT NULL);
CREATE TABLE diary (person_id INTEGER NOT NULL REFERENCES person (id), drank TEXT NOT NULL, glasses INTEGER);
CREATE TABLE sent (survey INTEGER, smokes TEXT NOT NULL);
-- rows
INSERT INTO person VALUES (1, 20, 'north', 'yes', 'a', true), (2, NULL, 'south', 'no', 'b', false),
  (3, -5, 'east', 'perhaps', 'z', true), (4, 2147483647, NULL, 'no', 'c', false);
INSERT INTO diary VALUES (1, 'yes', 3), (1, 'yes', 99), (1, 'no', NULL), (1, 'no', 10), (1, 'yes', 1), (1, 'yes', 2), (1, 'never', 2),
  (2, 'no', -9), (3, 'yes', 2147483647);
INSERT INTO sent VALUES (1, 'yes'), (1, 'no'), (2, 'yes'), (2, 'yes');
