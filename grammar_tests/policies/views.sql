CREATE TABLE patient (id INTEGER PRIMARY KEY, sex TEXT);
CREATE TABLE visit (patient_id INTEGER REFERENCES patient (id), days INTEGER);
CREATE VIEW stay AS SELECT p.sex, v.days FROM visit AS v JOIN patient AS p ON p.id = v.patient_id WHERE v.days > 0;
CREATE VIEW often AS SELECT patient_id, COUNT(*) AS visits FROM visit GROUP BY patient_id;
-- rows
INSERT INTO patient VALUES (1, 'f'), (2, 'm'), (3, NULL), (4, 'x');
INSERT INTO visit VALUES (1, 10), (1, 10), (1, 10), (1, 10), (1, 99), (2, 3), (2, 0), (2, NULL), (3, 5), (3, 5), (4, 7), (NULL, 9), (NULL, 9);
