CREATE TABLE customer (c_custkey INTEGER PRIMARY KEY, c_name TEXT NOT NULL, c_phone TEXT NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment TEXT NOT NULL);
CREATE TABLE orders (
  o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL REFERENCES customer (c_custkey), o_orderstatus TEXT NOT NULL,
  o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority TEXT NOT NULL, o_clerk TEXT NOT NULL,
  o_comment TEXT NOT NULL
);
CREATE TABLE lineitem (l_orderkey INTEGER NOT NULL REFERENCES orders (o_orderkey), l_quantity DECIMAL(15,2) NOT NULL);
CREATE TABLE uli (
  l_custkey INTEGER NOT NULL REFERENCES customer (c_custkey), l_quantity DECIMAL(15,2) NOT NULL,
  l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL,
  l_returnflag TEXT NOT NULL, l_linestatus TEXT NOT NULL, l_shipdate DATE NOT NULL
);
CREATE TABLE student (id INTEGER PRIMARY KEY REFERENCES customer (c_custkey), name TEXT NOT NULL, gpa DECIMAL(3,2) NOT NULL, major TEXT NOT NULL);
CREATE TABLE nation (n_nationkey INTEGER PRIMARY KEY, n_name TEXT NOT NULL);
-- rows
INSERT INTO nation VALUES (1, 'FRANCE'), (2, 'GERMANY');
INSERT INTO customer VALUES (1, 'C1', '13-100', 9999.99, 'BUILDING'), (2, 'C2', '31', -9999999999999.99, 'X'), (3, 'C3', '', 9999999999999.99, 'MACHINERY'), (4, 'C4', '13', 0, 'BUILDING');
INSERT INTO orders
SELECT i, i % 4 + 1, ['F', 'O', 'P', 'Z'][i % 4 + 1], (i % 7 - 2) * 123456789.01, DATE '1990-01-01' + INTERVAL (i * 37) DAY,
       ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW', 'none'][i % 6 + 1], 'clerk ' || i % 5, 'comment'
FROM range(1, 120) AS t(i);
INSERT INTO uli
SELECT i % 4 + 1, (i % 60 - 5), (i % 7 - 2) * 123456789.01, (i % 15 - 2) / 100, (i % 12 - 2) / 100, ['A', 'N', 'R', 'Z'][i % 4 + 1],
       ['F', 'O', 'Z'][i % 3 + 1], DATE '1990-01-01' + INTERVAL (i * 11) DAY
FROM range(1, 400) AS t(i);
INSERT INTO student VALUES (1, 'Ada', 4, 'CS'), (2, 'Bob', 2, 'EE'), (3, 'Cy', 9.99, 'Law');
