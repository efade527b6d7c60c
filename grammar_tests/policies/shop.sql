CREATE TABLE customer (
  id INTEGER PRIMARY KEY, region TEXT NOT NULL, city TEXT, credit DECIMAL(8,2) NOT NULL, visits INTEGER NOT NULL,
  score DOUBLE, born DATE, vip BOOLEAN NOT NULL, email TEXT UNIQUE, salary INTEGER
);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), region TEXT, status TEXT NOT NULL,
  category TEXT, amount DECIMAL(6,2), quantity INTEGER NOT NULL, weight DOUBLE, placed TIMESTAMP NOT NULL,
  shipped DATE, gift BOOLEAN, rating SMALLINT, note TEXT, cost BIGINT
);
CREATE TABLE branch (region TEXT PRIMARY KEY, manager TEXT, target INTEGER NOT NULL, opened DATE);
-- rows
INSERT INTO branch VALUES ('north', 'Nora', 100, '2001-05-06'), ('south', 'Saul', 250, '2010-01-31'), ('west', NULL, 0, NULL);
INSERT INTO customer VALUES
  (1, 'north', 'Oslo', 10.00, 3, 0.5, '1980-02-29', true, 'Ada@Example.org', 40000),
  (2, 'south', NULL, -5.25, -7, 'NaN', NULL, false, NULL, NULL),
  (3, 'east', '', 999999.99, 2147483647, 'Infinity', 'infinity', true, '', -2147483648),
  (4, 'north', E'O\'slo \\ %_', 1000.00, 100, '-Infinity', '-infinity', false, E'tab\tand\nline', 2147483647),
  (5, '', 'oslo', 0.01, -2147483648, 1e308, '0001-01-01', true, 'x@y.z', 0),
  (6, 'south', 'Oslo', 500.50, 50, -5e-324, '9999-12-31', false, 'ünï@cödé.no', 1);
INSERT INTO orders VALUES
  (1, 1, 'north', 'open', 'tea', 12.34, 2, 0.5, '2024-03-01 10:20:30', '2024-03-05', true, 5, 'a gift', 10),
  (2, 1, 'north', 'open', 'tea', 9999.99, 2147483647, 'NaN', '2024-03-01 10:20:30', '2024-03-05', true, 5, 'x', 9223372036854775807),
  (3, 1, 'north', 'paid', 'tea', -9999.99, -2147483648, 'Infinity', '2024-04-01', NULL, NULL, NULL, NULL, NULL),
  (4, 1, 'north', 'void', 'tea', NULL, 10, '-Infinity', '1999-12-31 23:59:59', '1900-01-01', false, 9, '', -9223372036854775808),
  (5, 1, 'south', 'open', 'jam', 50.00, 10, 1e308, '2025-12-31 23:59:59', '2025-12-31', true, 1, 'y', 0),
  (6, 1, 'west', 'open', NULL, 49.99, 9, -1e308, '2030-01-01', '2030-01-01', false, 2, 'z', 1),
  (7, 1, NULL, 'late', 'Tea', 0.01, 1, 5e-324, '2024-06-15', '2024-06-15', true, -3, 'w', 2),
  (8, 2, 'north', 'open', 'tea', 50.00, 10, 5, '2024-03-01', '2024-03-01', true, 5, 'v', 3),
  (9, 2, 'north', 'open', 'tea', 50.00, 10, 5, '2024-03-02', '2024-03-02', true, 5, 'v', 3),
  (10, 2, 'north', 'open', 'tea', 50.00, 10, 5, '2024-03-03', '2024-03-03', true, 5, 'v', 3),
  (11, 2, 'north', 'open', 'tea', 50.00, 10, 5, '2024-03-04', '2024-03-04', true, 5, 'v', 3),
  (12, 2, 'south', 'paid', 'jam', 0.00, 1, -5, '2025-03-01', '2025-03-01', false, 1, 'u', -3),
  (13, 2, 'south', 'paid', 'jam', 0.00, 1, -5, '2025-03-02', '2025-03-02', false, 1, 'u', -3),
  (14, 2, 'south', 'paid', 'jam', 0.00, 1, -5, '2025-03-03', '2025-03-03', false, 1, 'u', -3),
  (15, 2, 'south', 'paid', 'jam', 0.00, 1, -5, '2025-03-04', '2025-03-04', false, 1, 'u', -3),
  (16, 3, NULL, 'void', '', NULL, 5, NULL, 'infinity', 'infinity', NULL, NULL, NULL, NULL),
  (17, 3, NULL, 'void', 'jam''; --', 25.00, 5, 0, '-infinity', '-infinity', NULL, 3, 'ß', NULL),
  (18, 4, 'north', 'open', 'tea', 1.00, 3, 1, '2024-01-01', '2024-01-01', false, 4, 'long long long long long long long long long', 5),
  (19, NULL, 'north', 'open', 'tea', 20.00, 4, 2, '2024-01-01', '2024-01-01', true, 4, 'nobody', 5),
  (20, 5, 'south', 'paid', 'oat', 33.33, 7, -2.5, '2025-07-01', '2025-07-02', true, 2, 'an oat', 7),
  (21, 5, 'south', 'paid', 'oat', 33.33, 7, -2.5, '2025-07-01', '2025-07-02', true, 2, 'an oat', 7),
  (22, 6, 'north', 'open', 'own 1', 1, 2, 1, '2024-05-01', '2024-05-01', true, 1, 'own', 1),
  (23, 6, 'north', 'paid', 'own 2', 2, 3, 2, '2024-05-02', '2024-05-02', true, 2, 'own', 2),
  (24, 6, 'north', 'paid', 'own 3', 3, 4, 3, '2024-05-03', '2024-05-03', true, 3, 'own', 3),
  (25, 6, 'north', 'void', 'own 4', 4, 5, 4, '2024-05-04', '2024-05-04', false, 4, 'own', 4),
  (26, 6, 'north', 'paid', 'own 5', 5, 6, 5, '2024-05-05', '2024-05-05', false, 5, 'own', 5),
  (27, 6, 'south', 'paid', 'own 6', 6, 7, 6, '2024-05-06', '2024-05-06', false, 1, 'own', 6),
  (28, 6, 'south', 'paid', 'own 7', 7, 8, 7, '2024-05-07', '2024-05-07', NULL, 2, 'own', 7),
  (29, 6, 'south', 'paid', 'own 8', 8, 9, 8, '2024-05-08', '2024-05-08', NULL, 3, 'own', 8),
  (30, 6, 'south', 'paid', 'own 9', 9, 10, 9, '2024-05-09', '2024-05-09', NULL, 4, 'own', 9);
-- One customer with four orders of the largest amount in each of nine groups, each of a category of its own.
INSERT INTO orders
  SELECT 100 + 100 * r.i + 10 * s.j + t.k, 6, r.name, s.name, 'wide ' || r.i || s.j || t.k, 50, 10, 5, '2024-07-01',
    '2024-07-01', true, 1 + t.k, 'wide', 9
  FROM (VALUES (0, 'north'), (1, 'south'), (2, NULL)) AS r (i, name),
    (VALUES (0, 'open'), (1, 'paid'), (2, 'void')) AS s (j, name), (VALUES (0), (1), (2), (3)) AS t (k);
