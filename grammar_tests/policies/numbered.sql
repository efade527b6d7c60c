CREATE TABLE member (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE kind (id INTEGER PRIMARY KEY, label TEXT NOT NULL);
CREATE TABLE tag (kind_id INTEGER, word TEXT);
CREATE TABLE visit (
  member_id INTEGER NOT NULL REFERENCES member (id), n INTEGER NOT NULL, place TEXT, kind_id INTEGER NOT NULL, minutes INTEGER,
  PRIMARY KEY (member_id, n)
);
-- rows
INSERT INTO kind VALUES (1, 'long'), (2, 'short'), (3, 'short');
INSERT INTO tag VALUES (1, 'x'), (1, 'y'), (2, 'x');
INSERT INTO member VALUES (1, 'Bonn'), (2, 'Kiel'), (3, 'Ulm'), (4, NULL);
INSERT INTO visit VALUES
  (1, -3, 'a', 1, 60), (1, 0, 'a', 1, 60), (1, 1, 'a', 1, 60), (1, 2, 'a', 2, 60), (1, 3, 'a', 3, 60), (1, 4, 'a', 1, 60), (1, 5, 'a', 1, 60),
  (1, 2147483647, 'a', 9, 2147483647), (2, 2, 'b', 2, -10), (2, 4, 'c', 1, -10), (2, 7, 'c', 1, 5), (3, 1, 'elsewhere', 3, NULL),
  (3, 9, NULL, 3, 7), (4, 40, 'c', 2, -2147483648), (4, 3, NULL, 2, 0);
