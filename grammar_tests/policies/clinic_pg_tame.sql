-- Nothing is out of bounds, and no unit has more rows or groups than count.
INSERT INTO station VALUES ('east', 10), ('west', 20), ('north', 5);
INSERT INTO patient
  SELECT ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, (ARRAY['A1', 'B2'])[1 + i % 2],
         (ARRAY['Ann', 'BÉA', 'ann', 'Ünal'])[1 + i % 4], (ARRAY['F', 'M', NULL])[1 + i % 3], 50 + i * 0.5, i % 120 * 0.25, i * 0.5,
         18 + i % 120 / 2.0, 30000 + 100 * i, timestamptz '2024-01-31 22:30+00' + i % 36 * interval '9 days', date '1950-06-15' + 45 * i,
         (ARRAY[TRUE, FALSE, NULL])[1 + i / 3 % 3]
  FROM generate_series(1, 400) AS i;
INSERT INTO visit
  SELECT 10 * i + j, ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, (ARRAY['east', 'west', 'north', NULL]::ward[])[1 + i % 4],
         (i * 37 + j * 11) % 1000, (i * 7 + j * 3) % 500 + 0.25, (i + j) % 5 + 0.5, timestamp '2024-01-05 12:00' + (i % 24 * 13 + j) * interval '1 day',
         timestamptz '2024-01-31 23:30+00' + (i % 24 * 13) * interval '1 day', (ARRAY['a_b', 'A%c', 'tag'])[1 + i % 3], 1 + i % 3, j / 4.0
  FROM generate_series(1, 400) AS i, generate_series(1, 3) AS j WHERE j <= 1 + i % 3;
INSERT INTO reading
  SELECT ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, date '2024-01-05' + 3 * (i % 119), (i + j) % 9 - 4.5, (ARRAY['pulse', 'temp'])[1 + i % 2]
  FROM generate_series(1, 400) AS i, generate_series(1, 2) AS j;
