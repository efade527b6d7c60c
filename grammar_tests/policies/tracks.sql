CREATE TABLE track (no INTEGER PRIMARY KEY, person INTEGER NOT NULL, kind TEXT, props JSON);
-- rows
INSERT INTO track VALUES
  (1, 1, 'buy', '{"os": "ios", "price": 50, "device": {"size": 9}}'), (2, 1, 'buy', '{"os": "ios", "price": 50, "device": {"size": 9}}'),
  (3, 1, 'buy', '{"os": "ios", "price": 50, "device": {"size": 9}}'), (4, 1, 'buy', '{"os": "ios", "price": 50, "device": {"size": 9}}'),
  (5, 1, 'buy', '{"os": "ios", "price": 50, "device": {"size": 9}}'), (6, 1, 'buy', '{"os": "ios", "price": 99, "device": {"size": 12}}'),
  (7, 1, 'open', '{"os": "ios", "price": "50", "device": {"size": "9"}}'), (8, 2, 'open', '{"os": "web"}'),
  (9, 2, 'open', '{"os": "beos", "price": -3, "device": {"size": -2147483648}}'), (10, 3, NULL, NULL), (11, 3, 'buy', 'null'),
  (12, 3, 'buy', '{}'), (13, 3, 'buy', '[]'), (14, 4, 'buy', '{"os": null, "price": null, "device": null}'),
  (15, 4, 'buy', '{"os": {"os": "ios"}, "price": [1], "device": [{"size": 3}]}'), (16, 5, 'open', '"ios"'),
  (17, 5, 'buy', '{"os": true, "price": true, "device": {"size": 1.5}}'), (18, 6, 'buy', '{"os": "IOS", "price": 1000000000, "device": 7}'),
  (19, 6, 'buy', '{"os": "ios ", "price": "x", "device": {"size": {"size": 1}}}'), (20, 7, 'zzz', '{"os": "", "price": ""}');
