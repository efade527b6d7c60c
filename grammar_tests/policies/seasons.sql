CREATE TABLE guest (id INTEGER PRIMARY KEY, city TEXT, age INTEGER);
CREATE TABLE room (name TEXT PRIMARY KEY, floor INTEGER NOT NULL);
CREATE TABLE stay (id INTEGER PRIMARY KEY, guest_id INTEGER, arrived TIMESTAMP, room TEXT, nights INTEGER, note TEXT);
CREATE TABLE meal (stay_id INTEGER, price INTEGER);
CREATE TABLE visit (guest_id INTEGER, day DATE);
-- rows
INSERT INTO room VALUES ('blue', 1), ('red', 2);
INSERT INTO guest VALUES (1, 'Bonn', 30), (2, 'Kiel', NULL), (3, 'Ulm', 2147483647), (4, NULL, -5);
-- Guest 1 is above every bound in each month; at the ends of months, in the running one, in 2031, before the first one, without a time.
INSERT INTO stay SELECT i, 1, TIMESTAMP '2024-01-01' + to_hours(i), ['blue', 'red'][i % 2 + 1], 5, 'late' FROM range(0, 6) AS t(i);
INSERT INTO stay SELECT i, 1, TIMESTAMP '2024-02-29 23:59:59', 'red', 2147483647, 'n' || i FROM range(10, 14) AS t(i);
INSERT INTO stay VALUES (20, 1, '2024-03-31 23:59:59.999999', 'blue', 1, 'late'), (21, 1, '2024-04-01', 'blue', 1, 'late'),
  (22, 1, '2031-05-05', 'blue', 1, 'late'), (23, 1, '2023-12-31', 'blue', 1, 'late'), (24, 1, NULL, 'blue', 1, 'late'), (25, 1, '1700-01-01', 'red', -5, NULL);
INSERT INTO stay VALUES (30, 2, '2024-02-01', 'blue', 3, 'late'), (31, 2, '2024-03-01', 'blue', -2147483648, NULL), (32, 2, '2024-03-02', 'green', 2, 'late'),
  (40, 3, '2024-01-31 12:00:00', NULL, NULL, 'late'), (41, 3, '2024-03-15', 'red', 4, 'late'), (42, 3, '2024-03-15', 'red', 4, 'late'),
  (43, 3, '2024-03-15', 'red', 0, 'late'), (50, 4, '2024-02-10', 'blue', 2, 'late'), (60, NULL, '2024-02-10', 'blue', 2, 'late'), (61, 88, '2024-01-10', 'red', 2, 'late');
INSERT INTO meal SELECT s.id, i FROM stay s, range(0, 12, 3) AS t(i);
INSERT INTO meal VALUES (99, 5), (NULL, 5), (30, NULL), (30, -2147483648), (20, 2147483647);
INSERT INTO visit SELECT 1, DATE '2024-01-30' + i::INTEGER FROM range(0, 40) AS t(i);
INSERT INTO visit VALUES (2, '2024-01-31'), (2, '2024-02-01'), (3, '2024-03-31'), (3, '2024-04-01'), (4, NULL), (NULL, '2024-02-02'), (3, '9999-12-31');
