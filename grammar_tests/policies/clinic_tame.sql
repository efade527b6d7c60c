-- Nothing is out of bounds, and no unit has more rows or groups than count.
INSERT INTO region VALUES ('Oslo', 'Oslo', 900), ('Bergen', 'Vestland', 400), ('Voss', 'Vestland', 30);
INSERT INTO staff VALUES (1, 'not declared, so it does not exist');
INSERT INTO patient
  SELECT i, ['Ann', 'Bob', 'Chandler', 'Cid', 'O''Hara'][1 + i % 5], ['Oslo', 'Bergen', 'Voss'][1 + i % 3],
         ['F', 'M'][1 + i % 2], CAST(['A', 'B', 'AB', '0'][1 + i % 4] AS blood), i % 120, 50 + i % 100 * 0.5, 150 + i % 50,
         20 + i % 10, 30000 + 100 * i, i % 3 = 0, DATE '1950-06-15' + CAST(45 * i AS INTEGER), DATE '2024-01-05' + CAST(i % 60 AS INTEGER),
         TIMESTAMP '2024-01-05 10:00:00' + INTERVAL (i % 60) DAY, 'S-' || i
  FROM range(1, 401) AS r(i);
INSERT INTO visit
  SELECT 10 * i + j, i, ['east', 'west', 'north'][1 + i % 3], (i * 37 + j * 11) % 1000, (i + j) % 5 + 0.5,
         TIMESTAMP '2024-01-05 12:00:00' + INTERVAL (i % 300) DAY, ['flu', 'cold'][1 + i % 2]
  FROM range(1, 401) AS r(i), range(1, 4) AS s(j) WHERE j <= 1 + i % 3;
