CREATE TABLE member (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE topic (id INTEGER PRIMARY KEY, label TEXT NOT NULL);
CREATE TABLE post (id INTEGER PRIMARY KEY, author INTEGER, topic_id INTEGER, posted DATE);
CREATE TABLE vote (id INTEGER PRIMARY KEY, voter INTEGER, post_id INTEGER, kind TEXT, stars INTEGER, cast_on DATE);
CREATE TABLE message (sender INTEGER, receiver INTEGER, chars INTEGER);
-- rows
INSERT INTO topic VALUES (1, 'art'), (2, 'music'), (3, 'music');
INSERT INTO member VALUES (1, 'Bonn'), (2, 'Kiel'), (3, 'Ulm'), (4, NULL), (5, 'Bonn'), (6, 'Kiel');
INSERT INTO post VALUES (1, 1, 1, '2024-01-05'), (2, 2, 2, '2024-02-05'), (3, 3, 3, '2024-03-05'), (4, 1, 9, NULL),
  (5, NULL, 1, '2024-05-05'), (6, 77, 2, '2030-01-01'), (7, 5, NULL, '1990-01-01');
-- Member 1 votes on everything, and gets most of the votes; self votes, posts that are not there, no voter, wild stars.
INSERT INTO vote SELECT i, 1, i % 7 + 1, ['up', 'down'][i % 2 + 1], 5, '2024-03-01' FROM range(1, 15) AS t(i);
INSERT INTO vote SELECT i, i % 5 + 2, 1, 'up', -2, '2024-06-01' FROM range(20, 45) AS t(i);
INSERT INTO vote SELECT i, i % 3 + 4, 2, ['up', NULL][i % 2 + 1], 2147483647, NULL FROM range(50, 60) AS t(i);
INSERT INTO vote VALUES (-5, 2, 3, 'sideways', -2147483648, '2024-12-31'), (-2147483648, 3, 3, 'up', NULL, '1900-01-01'),
  (2147483647, 4, 99, 'up', 1, '2024-01-01'), (70, NULL, 1, 'up', 1, '2024-01-01'), (71, 88, NULL, 'up', 1, '2024-01-01'),
  (72, 88, 1, 'down', 0, '2024-01-02');
INSERT INTO message SELECT 1, i % 6 + 1, 100 FROM range(12) AS t(i);
INSERT INTO message SELECT i % 5 + 2, 1, i FROM range(20) AS t(i);
INSERT INTO message VALUES (2, NULL, 5), (NULL, 2, 5), (3, 99, 2147483647), (99, 3, -2147483648), (4, 4, NULL);
