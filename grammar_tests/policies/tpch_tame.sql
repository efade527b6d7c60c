-- 600 customers with two orders and three lines each, 120 without any, inside all bounds; 12 orders of seven lines.
INSERT INTO region VALUES
  (0, 'AFRICA', 'region 0'), (1, 'AMERICA', 'region 1'), (2, 'ASIA', 'region 2'), (3, 'EUROPE', 'region 3'),
  (4, 'MIDDLE EAST', 'region 4');
INSERT INTO nation VALUES
  (0, 'ALGERIA', 0, 'nation 0'), (1, 'ARGENTINA', 1, 'nation 1'), (2, 'BRAZIL', 1, 'nation 2'), (3, 'CANADA', 1, 'nation 3'),
  (4, 'EGYPT', 4, 'nation 4'), (5, 'ETHIOPIA', 0, 'nation 5'), (6, 'FRANCE', 3, 'nation 6'), (7, 'GERMANY', 3, 'nation 7'),
  (8, 'INDIA', 2, 'nation 8'), (9, 'INDONESIA', 2, 'nation 9'), (10, 'IRAN', 4, 'nation 10'), (11, 'IRAQ', 4, 'nation 11'),
  (12, 'JAPAN', 2, 'nation 12'), (13, 'JORDAN', 4, 'nation 13'), (14, 'KENYA', 0, 'nation 14'), (15, 'MOROCCO', 0, 'nation 15'),
  (16, 'MOZAMBIQUE', 0, 'nation 16'), (17, 'PERU', 1, 'nation 17'), (18, 'CHINA', 2, 'nation 18'),
  (19, 'ROMANIA', 3, 'nation 19'), (20, 'SAUDI ARABIA', 4, 'nation 20'), (21, 'VIETNAM', 2, 'nation 21'),
  (22, 'RUSSIA', 3, 'nation 22'), (23, 'UNITED KINGDOM', 3, 'nation 23'), (24, 'UNITED STATES', 1, 'nation 24');
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
  (10, 'green misty rose', 'Manufacturer#5', 'Brand#23', 'PROMO PLATED TIN', 19, 'MED BAG', 910.05, 'part 10');
INSERT INTO supplier VALUES
  (1, 'Supplier#01', 'address 1', 6, '16-1', -89.01, 'fine'), (2, 'Supplier#02', 'address 2', 7, '17-2', 722.02, 'fine'),
  (3, 'Supplier#03', 'address 3', 8, '18-3', 1533.03, 'fine'),
  (4, 'Supplier#04', 'address 4', 12, '22-4', 2344.04, 'Customer slow Complaints'),
  (5, 'Supplier#05', 'address 5', 2, '12-5', 3155.05, 'fine'), (6, 'Supplier#06', 'address 6', 3, '13-6', 3966.06, 'fine'),
  (7, 'Supplier#07', 'address 7', 20, '30-7', 4777.07, 'fine'), (8, 'Supplier#08', 'address 8', 3, '13-8', 5588.08, 'fine'),
  (9, 'Supplier#09', 'address 9', 24, '34-9', 6399.09, 'fine'), (10, 'Supplier#10', 'address 10', 6, '16-10', 7210.10, 'fine'),
  (11, 'Supplier#11', 'address 11', 20, '30-11', 8021.11, 'fine'), (12, 'Supplier#12', 'address 12', 2, '12-12', 8832.12, 'fine');
INSERT INTO partsupp
SELECT p, (p + s * 3) % 12 + 1, (p * 4 + s) * 997 % 10000, (p * 4 + s) * 173 % 1000 + 0.25, 'offer'
FROM range(1, 11) AS a(p), range(0, 4) AS b(s);
INSERT INTO customer
SELECT i, 'C' || i, 'address ' || i, [6, 7, 12, 8, 2, 24, 20, 3, 21, 17][i // 3 % 10 + 1], [13, 31, 23][i % 3 + 1] || '-' || i,
       CASE WHEN i > 600 THEN 9000 + i % 900 ELSE i * 37 % 9000 - 0.5 END,
       ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'][i % 5 + 1], 'comment ' || i % 4
FROM range(1, 721) AS t(i);
INSERT INTO orders
SELECT i, i % 600 + 1, ['F', 'O', 'P'][i % 3 + 1], i * 5477 % 500000 + 0.25, DATE '1992-01-01' + INTERVAL (i * 2) DAY,
       ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'][i % 5 + 1], 'clerk ' || i % 2, 0,
       CASE WHEN i % 7 = 0 THEN 'the special odd requests' ELSE 'comment' END
FROM range(1, 1201) AS t(i);
INSERT INTO lineitem
SELECT k, p, (p + i // 10 % 4 * 3) % 12 + 1, n, CASE WHEN k <= 12 THEN 50 ELSE i * 7 % 50 + 1 END, i * 977 % 100000 + 0.5, (i % 11) / 100, (i % 9) / 100,
       ['A', 'N', 'R'][k // 2 % 3 + 1], ['F', 'O'][k % 2 + 1], d + INTERVAL (i * 37 % 90 + 1) DAY, d + INTERVAL (i * 23 % 61 + 30) DAY,
       d + INTERVAL (i * 37 % 90 + 2 + i * 7 % 30) DAY, ['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'][k // 7 % 4 + 1],
       ['AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK'][k % 7 + 1], 'line ' || n
FROM (
  SELECT k, n, i, i % 10 + 1 AS p, DATE '1992-01-01' + INTERVAL (k * 2) DAY AS d
  FROM (SELECT k, n, CASE WHEN k <= 12 THEN k * 3 ELSE k * 3 + n END AS i FROM range(1, 1201) AS a(k), range(1, 8) AS b(n)) AS t
  WHERE n <= CASE WHEN k <= 12 THEN 7 WHEN k <= 600 THEN 1 ELSE 2 END
) AS t;
INSERT INTO uli
SELECT i % 600 + 1, i % 50 + 1, i * 977 % 100000 + 0.5, (i % 11) / 100, (i % 9) / 100, ['A', 'N', 'R'][i % 3 + 1], ['F', 'O'][i % 2 + 1],
       DATE '1992-01-01' + INTERVAL (i) DAY
FROM range(1, 1801) AS t(i);
INSERT INTO student SELECT i, 'S' || i, 2 + (i % 200) / 100, ['CS', 'EE', 'ME'][i % 3 + 1] FROM range(1, 301) AS t(i);
