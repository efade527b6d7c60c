CREATE TABLE region (r_regionkey INTEGER PRIMARY KEY, r_name VARCHAR NOT NULL, r_comment VARCHAR);
CREATE TABLE nation (
  n_nationkey INTEGER PRIMARY KEY, n_name VARCHAR NOT NULL, n_regionkey INTEGER REFERENCES region (r_regionkey), n_comment VARCHAR
);
CREATE TABLE part (
  p_partkey BIGINT PRIMARY KEY, p_name VARCHAR NOT NULL, p_mfgr VARCHAR NOT NULL, p_brand VARCHAR NOT NULL, p_type VARCHAR NOT NULL,
  p_size INTEGER, p_container VARCHAR, p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR
);
CREATE TABLE supplier (
  s_suppkey BIGINT PRIMARY KEY, s_name VARCHAR NOT NULL, s_address VARCHAR NOT NULL, s_nationkey INTEGER REFERENCES nation (n_nationkey),
  s_phone VARCHAR NOT NULL, s_acctbal DECIMAL(15,2), s_comment VARCHAR
);
CREATE TABLE partsupp (
  ps_partkey BIGINT REFERENCES part (p_partkey), ps_suppkey BIGINT REFERENCES supplier (s_suppkey), ps_availqty INTEGER,
  ps_supplycost DECIMAL(15,2), ps_comment VARCHAR, PRIMARY KEY (ps_partkey, ps_suppkey)
);
CREATE TABLE customer (
  c_custkey INTEGER PRIMARY KEY, c_name TEXT NOT NULL, c_address VARCHAR NOT NULL, c_nationkey INTEGER REFERENCES nation (n_nationkey),
  c_phone TEXT NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment TEXT NOT NULL, c_comment VARCHAR
);
CREATE TABLE orders (
  o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL REFERENCES customer (c_custkey), o_orderstatus TEXT NOT NULL,
  o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority TEXT NOT NULL, o_clerk TEXT NOT NULL,
  o_shippriority INTEGER, o_comment TEXT NOT NULL
);
-- Its keys to orders, part and supplier are not enforced: rows may have no owner, no part, no supplier.
CREATE TABLE lineitem (
  l_orderkey INTEGER, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INTEGER, l_quantity DECIMAL(15,2) NOT NULL,
  l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL,
  l_returnflag VARCHAR NOT NULL, l_linestatus VARCHAR NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE, l_receiptdate DATE,
  l_shipinstruct VARCHAR, l_shipmode VARCHAR, l_comment VARCHAR, PRIMARY KEY (l_orderkey, l_linenumber)
);
CREATE TABLE uli (
  l_custkey INTEGER NOT NULL REFERENCES customer (c_custkey), l_quantity DECIMAL(15,2) NOT NULL,
  l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL,
  l_returnflag TEXT NOT NULL, l_linestatus TEXT NOT NULL, l_shipdate DATE NOT NULL
);
CREATE TABLE student (id INTEGER PRIMARY KEY REFERENCES customer (c_custkey), name TEXT NOT NULL, gpa DECIMAL(3,2) NOT NULL, major TEXT NOT NULL);
-- rows
INSERT INTO region VALUES
  (0, 'AFRICA', 'region 0'), (1, 'AMERICA', 'region 1'), (2, 'ASIA', 'region 2'), (3, 'EUROPE', 'region 3'),
  (4, 'MIDDLE EAST', 'region 4'),
  (7, 'ASIA', NULL), (-1, 'NOWHERE', '');
INSERT INTO nation VALUES
  (0, 'ALGERIA', 0, 'nation 0'), (1, 'ARGENTINA', 1, 'nation 1'), (2, 'BRAZIL', 1, 'nation 2'), (3, 'CANADA', 1, 'nation 3'),
  (4, 'EGYPT', 4, 'nation 4'), (5, 'ETHIOPIA', 0, 'nation 5'), (6, 'FRANCE', 3, 'nation 6'), (7, 'GERMANY', 3, 'nation 7'),
  (8, 'INDIA', 2, 'nation 8'), (9, 'INDONESIA', 2, 'nation 9'), (10, 'IRAN', 4, 'nation 10'), (11, 'IRAQ', 4, 'nation 11'),
  (12, 'JAPAN', 2, 'nation 12'), (13, 'JORDAN', 4, 'nation 13'), (14, 'KENYA', 0, 'nation 14'), (15, 'MOROCCO', 0, 'nation 15'),
  (16, 'MOZAMBIQUE', 0, 'nation 16'), (17, 'PERU', 1, 'nation 17'), (18, 'CHINA', 2, 'nation 18'),
  (19, 'ROMANIA', 3, 'nation 19'), (20, 'SAUDI ARABIA', 4, 'nation 20'), (21, 'VIETNAM', 2, 'nation 21'),
  (22, 'RUSSIA', 3, 'nation 22'), (23, 'UNITED KINGDOM', 3, 'nation 23'), (24, 'UNITED STATES', 1, 'nation 24'),
  (98, 'FRANCE', 4, NULL), (99, 'ATLANTIS', NULL, ''), (-1, '', 0, NULL);
INSERT INTO part VALUES
  (1, 'forest green lace', 'Manufacturer#1', 'Brand#12', 'PROMO BRUSHED STEEL', 3, 'SM CASE', 901.15, 'part 1'),
  (2, 'blush thistle blue', 'Manufacturer#1', 'Brand#12', 'STANDARD PLATED BRASS', 15, 'SM PACK', 902.25, 'part 2'),
  (3, 'forest khaki tomato', 'Manufacturer#2', 'Brand#23', 'ECONOMY ANODIZED STEEL', 9, 'MED BOX', 903.35, 'part 3'),
  (4, 'spring green yellow', 'Manufacturer#2', 'Brand#23', 'SMALL BURNISHED TIN', 5, 'MED BOX', 904.45, 'part 4'),
  (5, 'cornflower chocolate', 'Manufacturer#3', 'Brand#34', 'PROMO ANODIZED BRASS', 15, 'LG BOX', 905.55, 'part 5'),
  (6, 'smoke azure green', 'Manufacturer#3', 'Brand#34', 'LARGE POLISHED COPPER', 14, 'LG CASE', 906.65, 'part 6'),
  (7, 'forest brown coral', 'Manufacturer#4', 'Brand#45', 'ECONOMY ANODIZED STEEL', 49, 'JUMBO JAR', 907.75, 'part 7'),
  (8, 'olive lemon tan', 'Manufacturer#4', 'Brand#51', 'MEDIUM POLISHED NICKEL', 23, 'WRAP DRUM', 908.85, 'part 8'),
  (9, 'ivory navy plum', 'Manufacturer#5', 'Brand#55', 'MEDIUM BRUSHED BRASS', 15, 'MED PKG', 909.95, 'part 9'),
  (10, 'green misty rose', 'Manufacturer#5', 'Brand#23', 'PROMO PLATED TIN', 19, 'MED BAG', 910.05, 'part 10'),
  (11, 'green', '', 'Brand#99', '', NULL, NULL, -9999999999999.99, NULL), (12, 'forest', 'Manufacturer#1', 'Brand#23', 'ECONOMY ANODIZED STEEL', 0, 'MED BOX', 0, ''),
  (9223372036854775807, 'forest green', 'Manufacturer#6', 'Brand#12', 'PROMO', 2147483647, 'SM CASE', 9999999999999.99, '');
INSERT INTO supplier VALUES
  (1, 'Supplier#01', 'address 1', 6, '16-1', -89.01, 'fine'), (2, 'Supplier#02', 'address 2', 7, '17-2', 722.02, 'fine'),
  (3, 'Supplier#03', 'address 3', 8, '18-3', 1533.03, 'fine'),
  (4, 'Supplier#04', 'address 4', 12, '22-4', 2344.04, 'Customer slow Complaints'),
  (5, 'Supplier#05', 'address 5', 2, '12-5', 3155.05, 'fine'), (6, 'Supplier#06', 'address 6', 3, '13-6', 3966.06, 'fine'),
  (7, 'Supplier#07', 'address 7', 20, '30-7', 4777.07, 'fine'), (8, 'Supplier#08', 'address 8', 3, '13-8', 5588.08, 'fine'),
  (9, 'Supplier#09', 'address 9', 24, '34-9', 6399.09, 'fine'), (10, 'Supplier#10', 'address 10', 6, '16-10', 7210.10, 'fine'),
  (11, 'Supplier#11', 'address 11', 20, '30-11', 8021.11, 'fine'), (12, 'Supplier#12', 'address 12', 2, '12-12', 8832.12, 'fine'),
  (13, 'Supplier#13', '', NULL, '', NULL, NULL), (14, 'Supplier#13', '', 98, '13', 9999999999999.99, ''),
  (-9223372036854775808, '', '', 99, '31', -9999999999999.99, 'Customer Complaints');
INSERT INTO partsupp
SELECT p, (p + s * 3) % 15 + 1, [i * 97 % 12000, -2147483648, 2147483647, NULL][CASE WHEN i % 9 > 2 THEN 1 ELSE i % 9 + 2 END],
       [i * 37 % 1100, -5, 9999999999999.99, NULL][CASE WHEN i % 7 > 2 THEN 1 ELSE i % 7 + 2 END], NULLIF('offer ' || i % 5, 'offer 0')
FROM (SELECT p, s, p * 4 + s AS i FROM range(1, 13) AS a(p), range(0, 4) AS b(s)) AS t WHERE (p + s * 3) % 15 < 14;
INSERT INTO customer VALUES (1, 'C1', 'here', 6, '13-100', 9999.99, 'BUILDING', 'quick'), (2, 'C2', '', NULL, '31', -9999999999999.99, 'X', NULL),
  (3, 'C3', '', 2, '', 9999999999999.99, 'MACHINERY', ''), (4, 'C4', 'there', 8, '13', 0, 'BUILDING', 'special requests'),
  (5, 'C5', '', 99, '13-5', 5000, 'FURNITURE', ''), (6, 'C6', '', 98, '31-6', 9999999999999.99, 'BUILDING', '');
INSERT INTO orders
SELECT i, i % 4 + 1, ['F', 'O', 'P', 'Z'][i % 4 + 1], (i % 7 - 2) * 123456789.01, DATE '1990-01-01' + INTERVAL (i * 37) DAY,
       ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW', 'none'][i % 6 + 1], 'clerk ' || i % 5,
       [0, 1, -2147483648, NULL][CASE WHEN i % 8 > 2 THEN 1 ELSE i % 8 + 2 END], ['comment', 'special odd requests', ''][i % 3 + 1]
FROM range(1, 120) AS t(i);
INSERT INTO orders VALUES (120, 1, 'F', 9999999999999.99, 'infinity', '1-URGENT', '', 2147483647, ''), (121, 4, '', -9999999999999.99, '-infinity', '', '', 0, '');
-- Orders 122 to 130 do not exist: their lines are nobody's.
INSERT INTO lineitem
SELECT k, NULLIF([k % 10 + 1, 11, 12, 77, 9223372036854775807, 0][CASE WHEN i % 23 > 4 THEN 1 ELSE i % 23 + 2 END], 0),
       NULLIF([(k % 10 + 1 + n * 3) % 15 + 1, 13, 14, -9223372036854775808, 0][CASE WHEN i % 19 > 3 THEN 1 ELSE i % 19 + 2 END], 0), n,
       [i % 60 - 5, 9999999999999.99, -9999999999999.99][CASE WHEN i % 50 > 1 THEN 1 ELSE i % 50 + 2 END],
       [i * 977 % 130000 - 9000.5, 9999999999999.99, -9999999999999.99][CASE WHEN i % 31 > 1 THEN 1 ELSE i % 31 + 2 END],
       [(i % 15 - 2) / 100, 9999999999999.99, -9999999999999.99][CASE WHEN i % 41 > 1 THEN 1 ELSE i % 41 + 2 END],
       [(i % 12 - 2) / 100, 9999999999999.99, -9999999999999.99][CASE WHEN i % 43 > 1 THEN 1 ELSE i % 43 + 2 END],
       ['A', 'N', 'R', 'Z'][i % 4 + 1], ['F', 'O', ''][i % 3 + 1],
       CASE WHEN i % 47 = 0 THEN 'infinity' WHEN i % 47 = 1 THEN '-infinity' ELSE DATE '1991-06-01' + INTERVAL (k * 23 + n * 17) DAY END,
       CASE WHEN i % 11 = 0 THEN NULL WHEN i % 53 = 1 THEN 'infinity' ELSE DATE '1991-06-01' + INTERVAL (k * 23 + 30 + i * 17 % 70) DAY END,
       CASE WHEN i % 13 = 0 THEN NULL WHEN i % 59 = 1 THEN '-infinity' ELSE DATE '1991-06-01' + INTERVAL (k * 23 + n * 17 + i * 13 % 30) DAY END,
       ['COLLECT COD', 'DELIVER IN PERSON', 'NONE', 'TAKE BACK RETURN', 'LOSE IT', NULL][i % 6 + 1],
       ['AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK', 'AIR REG', NULL][i % 9 + 1], NULLIF(repeat('x', i % 60), '')
FROM (SELECT k, n, k * 5 + n AS i FROM range(1, 131) AS a(k), range(1, 6) AS b(n)) AS t;
INSERT INTO uli
SELECT i % 4 + 1, (i % 60 - 5), (i % 7 - 2) * 123456789.01, (i % 15 - 2) / 100, (i % 12 - 2) / 100, ['A', 'N', 'R', 'Z'][i % 4 + 1],
       ['F', 'O', 'Z'][i % 3 + 1], DATE '1990-01-01' + INTERVAL (i * 11) DAY
FROM range(1, 400) AS t(i);
INSERT INTO student VALUES (1, 'Ada', 4, 'CS'), (2, 'Bob', 2, 'EE'), (3, 'Cy', 9.99, 'Law');
