-- Types that only Postgres has. The rows hold what each of them can: NaN and infinity in every kind of number
-- and date, the ends of the calendar, texts with every kind of letter. Patients 5 and 6 have visits beyond
-- every bound.
CREATE TYPE ward AS ENUM ('east', 'west', 'north');
CREATE DOMAIN amount AS numeric(8, 2) CHECK (VALUE >= 0);
CREATE TABLE patient (
  id uuid PRIMARY KEY,
  code char(6) NOT NULL,
  name text,
  sex char(1),
  weight numeric,
  dose numeric(6, 2) NOT NULL CHECK (dose <= 9000),
  factor numeric(60, 12),
  bmi double precision,
  salary bigint,
  joined timestamptz,
  born date,
  smoker boolean,
  badge text UNIQUE
);
CREATE TABLE visit (
  vid bigint PRIMARY KEY,
  patient_id uuid REFERENCES patient (id),
  ward ward,
  cost integer,
  fee amount,
  rating double precision,
  started timestamp,
  seen timestamptz,
  tag varchar(12),
  level smallint,
  risk real
);
CREATE TABLE reading (
  patient_id uuid REFERENCES patient (id),
  taken date NOT NULL,
  value double precision,
  kind text COLLATE "POSIX"
) PARTITION BY RANGE (taken);
CREATE TABLE reading_old PARTITION OF reading FOR VALUES FROM (MINVALUE) TO ('2024-07-01');
CREATE TABLE reading_new PARTITION OF reading FOR VALUES FROM ('2024-07-01') TO (MAXVALUE);
CREATE TABLE station (ward text PRIMARY KEY, beds integer);
-- rows
INSERT INTO station VALUES ('east', 10), ('west', 20), ('north', NULL);
INSERT INTO patient VALUES
  ('00000000-0000-0000-0000-000000000001', 'A1', 'Ann', 'F', 61.55, 2.50, 1.5, 21.3, 52000, '2024-01-05 10:00+02', '1990-04-01', TRUE),
  ('00000000-0000-0000-0000-000000000002', 'B2', 'BÉA', 'M', 'NaN', 9000, 'NaN', 'NaN', 9223372036854775807, 'infinity', 'infinity', FALSE),
  ('00000000-0000-0000-0000-000000000003', 'a1', 'ann ', 'x', 1e300, 0, 1e40, 'Infinity', -9223372036854775808, '-infinity', '-infinity', NULL),
  ('00000000-0000-0000-0000-000000000004', '', '😀 é', NULL, -1e-300, -9999.99, -1e-12, '-Infinity', 0, '294276-12-31 23:59:59.999999+00', '5874897-12-31', TRUE),
  ('00000000-0000-0000-0000-000000000005', 'A1', NULL, 'F', NULL, 50, NULL, 5e-324, NULL, '4714-11-24 00:00:00+00 BC', '4713-01-01 BC', FALSE),
  ('00000000-0000-0000-0000-000000000006', 'B2', 'ßtraße', 'M', 72.34, 0.01, 0.000000000001, -0.0, 61000, '2024-07-01 00:30-05', '2000-02-29', FALSE);
INSERT INTO visit
  SELECT 100 + i, '00000000-0000-0000-0000-000000000005', (ARRAY['east', 'west', 'north', NULL]::ward[])[1 + i % 4], 1000 - i, 400.5 + i,
         4.5, timestamp '2024-01-31 12:00' + i * interval '17 days', timestamptz '2024-01-31 23:30+00' + i * interval '17 days', 'tag' || i % 3, 1 + i % 4, 0.5
  FROM generate_series(0, 19) AS i;
INSERT INTO visit
  SELECT 200 + i, '00000000-0000-0000-0000-000000000006', 'east', 10 * i, i / 4.0, i / 2.0, timestamp '2024-03-01' + i * interval '1 month',
         '2024-03-01 00:00+00', 'T' || i, 3, 1.0 / (1 + i)
  FROM generate_series(0, 7) AS i;
INSERT INTO visit VALUES
  (1, '00000000-0000-0000-0000-000000000001', 'east', 2147483647, 999999.99, 'NaN', 'infinity', 'infinity', 'it''s %_\', 32767, 'NaN'),
  (2, '00000000-0000-0000-0000-000000000001', 'west', -2147483648, 0, 'Infinity', '-infinity', '-infinity', '', -32768, 'Infinity'),
  (3, '00000000-0000-0000-0000-000000000001', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, '00000000-0000-0000-0000-000000000002', 'north', 7, 7.77, 5e-324, '294276-12-31 23:59:59.999999', '2024-06-30 23:59:59.999999+00', 'É', 1, 1e-45),
  (5, '00000000-0000-0000-0000-000000000002', 'north', 8, 8.88, -1e308, '4714-11-24 00:00:00 BC', '4714-11-24 00:00:00+00 BC', 'x y', 2, 3e38),
  (6, NULL, 'east', 10, 1, 1, '2024-01-01', '2024-01-01 00:00+00', 'tag1', 1, 1),
  (7, '00000000-0000-0000-0000-000000000003', 'west', 40, 'NaN', 2, '2024-06-30 12:00', '2024-06-30 12:00+00', 'TAG1', 2, 0.25);
INSERT INTO reading
  SELECT '00000000-0000-0000-0000-000000000006', date '2024-01-15' + 40 * i, i - 3.5, (ARRAY['pulse', 'temp'])[1 + i % 2] FROM generate_series(0, 8) AS i;
INSERT INTO reading VALUES
  ('00000000-0000-0000-0000-000000000001', '2024-06-30', 'NaN', 'pulse'),
  ('00000000-0000-0000-0000-000000000001', '2024-07-01', 5e-324, 'Pulse'),
  ('00000000-0000-0000-0000-000000000002', '-infinity', 'Infinity', NULL),
  ('00000000-0000-0000-0000-000000000002', '5874897-12-31', '-Infinity', 'temp'),
  (NULL, '2024-02-02', 1, 'temp');
