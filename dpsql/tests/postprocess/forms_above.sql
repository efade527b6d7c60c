SELECT string_agg(name, ',' ORDER BY name) FROM t
SELECT string_agg(name, ', ' ORDER BY name DESC, id) FROM t
SELECT string_agg(DISTINCT name, ',') FROM t
SELECT string_agg(DISTINCT name, ',' ORDER BY name DESC) FILTER (WHERE n > 3) FROM t
SELECT n, string_agg(name, '-' ORDER BY id) AS s FROM t GROUP BY n ORDER BY n
SELECT string_agg(name, ',') FROM t WHERE id > 100
SELECT array_agg(n ORDER BY id) FROM t
SELECT array_agg(DISTINCT n) FROM t
SELECT array_agg(name ORDER BY n DESC NULLS LAST, id) FROM t
SELECT array_agg(x ORDER BY id) FILTER (WHERE x > 1) FROM t
SELECT array_agg(d ORDER BY id), array_agg(b ORDER BY id), array_agg(dec ORDER BY id), array_agg(ts ORDER BY id) FROM t
SELECT bit_and(n), bit_or(n), bit_xor(n), bit_or(big) FROM t
SELECT bool_and(b), bool_or(b), every(b) FROM t
SELECT mode() WITHIN GROUP (ORDER BY n), mode() WITHIN GROUP (ORDER BY name DESC) FROM t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.3) WITHIN GROUP (ORDER BY n) FROM t
SELECT percentile_cont(ARRAY[0.25,0.5]) WITHIN GROUP (ORDER BY x) FROM t
SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY name) FROM t
SELECT sum(DISTINCT n), avg(DISTINCT n), count(DISTINCT n) FROM t
SELECT sum(n ORDER BY id), max(n ORDER BY id) FROM t
SELECT corr(x, n), covar_pop(x, n), regr_slope(x,n), regr_intercept(x,n), regr_r2(x,n), regr_count(x,n) FROM t
SELECT stddev(x), variance(n), var_pop(x), stddev_pop(n) FROM t
SELECT * FROM generate_series(1, 10) AS g(n)
SELECT * FROM generate_series(1, 10, 3) g
SELECT g FROM generate_series(5, 1, -2) g
SELECT * FROM generate_series(1, 0)
SELECT * FROM generate_series('2024-01-01'::date, '2024-12-01'::date, '1 month') AS d
SELECT * FROM generate_series(timestamp '2024-01-31', '2024-12-01', interval '1 month') WITH ORDINALITY AS d(x, n)
SELECT d::date FROM generate_series('2024-01-01'::timestamp, '2024-01-10', '2 days') d
SELECT generate_series(1,3) AS x
SELECT generate_series(1,3)
SELECT id, generate_series(1, n) FROM t
SELECT id, g FROM t, generate_series(1, n) g
SELECT id, i FROM t LEFT JOIN LATERAL generate_series(1, t.n, 2) AS g(i) ON i > 1 ORDER BY id, i
SELECT DISTINCT ON (name) name, n, id FROM t ORDER BY name, n DESC, id
SELECT DISTINCT ON (n) id FROM t ORDER BY n, id
SELECT DISTINCT ON (1) n, id FROM t ORDER BY 1, 2 DESC LIMIT 2
SELECT DISTINCT ON (name, n) name, count(*) FROM t GROUP BY name, n ORDER BY name, n
SELECT n FROM t ORDER BY n FETCH FIRST 2 ROWS WITH TIES
SELECT n FROM t ORDER BY n OFFSET 1 FETCH FIRST 2 ROWS WITH TIES
SELECT id, n FROM t ORDER BY n, id FETCH NEXT 2 ROWS ONLY
TABLE emp
SELECT p.id, x.g FROM t p, LATERAL (SELECT e.name AS g FROM emp e WHERE e.id = p.n) x
SELECT p.id, x.g FROM t p LEFT JOIN LATERAL (SELECT e.name AS g FROM emp e WHERE e.id <= p.n ORDER BY e.id DESC LIMIT 1) x ON true ORDER BY 1
SELECT p.id, x.c FROM t p CROSS JOIN LATERAL (SELECT count(*) c FROM emp e WHERE e.id < p.n) x ORDER BY 1
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r
WITH RECURSIVE r AS (SELECT id, boss, name, 1 AS depth FROM emp WHERE boss IS NULL UNION ALL SELECT e.id, e.boss, e.name, r.depth + 1 FROM emp e JOIN r ON e.boss = r.id) SELECT * FROM r ORDER BY id
WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT (n + 1) % 4 FROM r) SELECT * FROM r
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r LIMIT 4
WITH RECURSIVE r(p, n) AS (SELECT name, id FROM emp WHERE boss IS NULL UNION ALL SELECT r.p || '/' || e.name, e.id FROM emp e, r WHERE e.boss = r.n) SELECT p FROM r ORDER BY 1
WITH RECURSIVE a AS (SELECT 1 AS x) SELECT * FROM a
SELECT id FROM t WHERE (name, n) = ('x', 3)
SELECT id FROM t WHERE (name, n) IN (('x', 3), ('y', 5))
SELECT id FROM t WHERE (name, n) IN (SELECT name, n FROM t WHERE id = 1)
SELECT id, (name, n) < ('y', 4) AS t, (n, name) >= (5, 'y') AS u FROM t ORDER BY id
SELECT id, (name, n) <> ('y', 5) AS t FROM t ORDER BY id
SELECT id FROM t WHERE ROW(id, n) = ROW(1, 3)
SELECT id, n > ALL (SELECT id FROM emp WHERE id < 4) AS t FROM t ORDER BY id
SELECT id, n = ANY (SELECT boss FROM emp) AS t, n <> ALL (SELECT boss FROM emp) AS u, n < SOME (SELECT id FROM emp) AS v FROM t ORDER BY id
SELECT id, n IN (SELECT boss FROM emp) AS t, n NOT IN (SELECT boss FROM emp) AS u FROM t ORDER BY id
SELECT id, (SELECT name FROM emp e WHERE e.id = p.n) AS t FROM t p ORDER BY id
SELECT id, (SELECT name FROM emp e WHERE e.id <= p.n ORDER BY e.id DESC LIMIT 1) AS t FROM t p ORDER BY id
SELECT id, (SELECT count(*) FROM emp e WHERE e.id < p.n) AS t FROM t p ORDER BY id
SELECT id, EXISTS (SELECT 1 FROM emp e WHERE e.id > p.n OFFSET 1) AS t FROM t p ORDER BY id
SELECT id FROM t p WHERE n > (SELECT avg(q.n) FROM t q WHERE q.id <> p.id) ORDER BY id
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(a, b)
VALUES (1, 'a'), (2, 'b')
SELECT * FROM (VALUES (1, (SELECT max(id) FROM emp)), (2, 5)) AS v(a, b)
SELECT ARRAY[1,2,3], ARRAY['a','b'], (ARRAY[1,2,3])[2], (ARRAY[1,2,3])[2:3], (ARRAY[1,2,3])[7]
SELECT ARRAY(SELECT id FROM emp ORDER BY id DESC), ARRAY(SELECT id FROM emp WHERE id > 9)
SELECT unnest(ARRAY[3,1,2]) AS u
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b','c']) AS u(a, b)
SELECT * FROM unnest(ARRAY[10,20]) WITH ORDINALITY AS u(v, i)
SELECT t.k, u FROM (SELECT name AS k, array_agg(id ORDER BY id) AS a FROM t GROUP BY name) t, unnest(t.a) AS u ORDER BY 1, 2
SELECT t.k, u, i FROM (SELECT name AS k, array_agg(id ORDER BY id) AS a FROM t GROUP BY name) t, unnest(t.a) WITH ORDINALITY AS u(u, i) ORDER BY 1, 2
SELECT k, unnest(a) FROM (SELECT name AS k, array_agg(id ORDER BY id) AS a FROM t GROUP BY name) t ORDER BY 1, 2
SELECT id FROM t INTERSECT SELECT n FROM t ORDER BY 1
SELECT n FROM t EXCEPT ALL SELECT id FROM emp ORDER BY 1
SELECT * FROM emp NATURAL JOIN (SELECT id, n FROM t) p ORDER BY id
SELECT id, sum(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM t ORDER BY id
SELECT id, sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES), count(*) OVER (ORDER BY n RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP) FROM t WHERE id < 6 ORDER BY id
SELECT id, sum(id) OVER (ORDER BY n GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t ORDER BY id
SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND INTERVAL '1 month' FOLLOWING) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY n RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY x DESC RANGE BETWEEN 1.5 PRECEDING AND 0.5 FOLLOWING) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY dec RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) FROM t ORDER BY id
SELECT id, sum(id) OVER (ORDER BY ts RANGE BETWEEN '25 hours' PRECEDING AND CURRENT ROW) FROM t ORDER BY id
SELECT id, first_value(name) OVER w, last_value(name) OVER w, nth_value(name, 2) OVER w, lag(id) OVER w, lead(id, 2, 0) OVER w FROM t WINDOW w AS (PARTITION BY n ORDER BY id) ORDER BY id
SELECT id, ntile(3) OVER (ORDER BY id), percent_rank() OVER w, cume_dist() OVER w, rank() OVER w, dense_rank() OVER w FROM t WINDOW w AS (ORDER BY n) ORDER BY id
SELECT id, sum(n) OVER (w ROWS UNBOUNDED PRECEDING), first_value(id) OVER w FROM t WINDOW w AS (ORDER BY id) ORDER BY id
SELECT id, sum(n) FILTER (WHERE id > 2) OVER (ORDER BY id), count(*) FILTER (WHERE b) OVER () FROM t ORDER BY id
SELECT id, string_agg(name, ',') OVER (ORDER BY id), array_agg(n) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t ORDER BY id
SELECT id, stddev(n) OVER (ORDER BY id), var_pop(x) OVER (PARTITION BY b ORDER BY id), corr(x, n) OVER (ORDER BY id) FROM t ORDER BY id
SELECT id, bool_and(b) OVER (ORDER BY id), every(b) OVER (), bit_or(n) OVER (ORDER BY id), min(name) OVER (ORDER BY id DESC) FROM t ORDER BY id
SELECT name, sum(count(*)) OVER (ORDER BY name) FROM t GROUP BY name ORDER BY name
SELECT id, sum(n) OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t ORDER BY id
SELECT id, nth_value(n, 3) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t ORDER BY id
SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY name DESC), percentile_disc(ARRAY[0,0.25,0.5,0.8,1]) WITHIN GROUP (ORDER BY id DESC) FROM t
SELECT t.k, u FROM (SELECT name AS k, array_agg(id ORDER BY id) AS a FROM t GROUP BY name) t, unnest(t.a) AS u ORDER BY 1, 2
SELECT t.k, u, i FROM (SELECT name AS k, array_agg(id ORDER BY id) AS a FROM t GROUP BY name) t, unnest(t.a) WITH ORDINALITY AS u(u, i) ORDER BY 1, 2
SELECT k, unnest(a) FROM (SELECT name AS k, array_agg(id ORDER BY id) AS a FROM t GROUP BY name) t ORDER BY 1, 2
SELECT name, n, count(*), grouping(name, n) FROM t GROUP BY GROUPING SETS ((name), (n), ()) ORDER BY 1, 2, 4
SELECT name, n, string_agg(x::text, ',' ORDER BY id) FROM t GROUP BY CUBE (name, n) ORDER BY 1, 2, 3
SELECT id, generate_series(1, 2), generate_series(1, 3) FROM emp WHERE id < 3 ORDER BY 1, 3
SELECT a.g, b.g FROM generate_series(1,2) a(g), generate_series(a.g, 3) b(g) ORDER BY 1,2
SELECT p.id, x.a FROM t p, LATERAL (SELECT e.id AS a FROM emp e, LATERAL (SELECT e.id + 1 AS z) y WHERE e.id = p.n) x ORDER BY 1
SELECT id FROM t p WHERE EXISTS (SELECT 1 FROM unnest(ARRAY[p.id, 2]) u WHERE u > 4) ORDER BY id
SELECT id, i FROM t CROSS JOIN LATERAL generate_series(1, t.n, 2) AS g(i)
SELECT string_agg(name, ',' ORDER BY id), array_agg(n ORDER BY id), bit_and(n), bool_and(b), mode() WITHIN GROUP (ORDER BY n), corr(x, n), stddev(x), sum(DISTINCT n) FROM nothing
SELECT m.major, n, d FROM (SELECT major, COUNT(*) AS n FROM student GROUP BY major) m LEFT JOIN generate_series(9, 10) d ON d = n ORDER BY 1, 2
SELECT string_agg(major, ', ' ORDER BY n DESC, major) FROM (SELECT major, COUNT(*) AS n FROM student GROUP BY major) m
SELECT array_agg(n ORDER BY major) FROM (SELECT major, COUNT(*) AS n FROM student GROUP BY major) m
SELECT DISTINCT ON (n) n, major FROM (SELECT major, COUNT(*) AS n FROM student GROUP BY major) m ORDER BY n, major DESC
SELECT m.major, x.id FROM (SELECT major, COUNT(*) AS n FROM student GROUP BY major) m, LATERAL (SELECT e.id FROM emp e WHERE e.id * 3 < m.n ORDER BY e.id DESC LIMIT 1) x ORDER BY 1
SELECT major, (SELECT max(e.id) FROM emp e WHERE e.id < m.n - 7) AS c FROM (SELECT major, COUNT(*) AS n FROM student GROUP BY major) m ORDER BY 1
WITH RECURSIVE r(i, total) AS (SELECT 0, (SELECT COUNT(*) FROM student) UNION ALL SELECT i + 1, total / 2 FROM r WHERE i < 3) SELECT * FROM r ORDER BY i
SELECT k, 1 = ANY (a) AS p, array_length(a, 1) AS q, array_position(a, 2) AS r, array_to_string(a, '-') AS s, a @> ARRAY[1] AS u, a && ARRAY[5, 1] AS v, cardinality(a) AS w, a[1:2] AS z FROM (SELECT name AS k, array_agg(id ORDER BY id) AS a FROM t GROUP BY name) m ORDER BY 1
SELECT k, 3 = ANY (a) AS p, array_length(a, 2) AS q, array_position(a, NULL) AS r, array_to_string(a, ', ') AS s, a @> ARRAY[3] AS u, a && ARRAY[5, 7] AS v FROM (SELECT b AS k, array_agg(n ORDER BY id) AS a FROM t GROUP BY b) m ORDER BY 1
SELECT 'x' = ANY (a) AS p, array_position(a, 'y') AS r FROM (SELECT array_agg(name ORDER BY id) AS a FROM t) m
SELECT 1 = ANY (a) AS p, a @> ARRAY[1] AS u, a && ARRAY[1] AS v, array_length(a, 1) AS q, array_to_string(a, ',') AS s FROM (SELECT array_agg(id) AS a FROM t WHERE id > 99) m
SELECT 1 = ANY (a) AS p, a @> ARRAY[1] AS u, a && ARRAY[1] AS v, array_length(a, 1) AS q, array_to_string(a, ',') AS s, array_position(a, 1) FROM (SELECT ARRAY(SELECT id FROM t WHERE id > 99) AS a) m
SELECT g, id FROM generate_series(9223372036854775806, 9223372036854775807) g, t ORDER BY 1, 2
SELECT g, id FROM generate_series(-9223372036854775806, -9223372036854775807, -1) g, t ORDER BY 1, 2
SELECT id, (ARRAY['a','b','c'])[n + 1], (ARRAY[1,2])[0], (ARRAY[1,2])[-1], (ARRAY[1,2])[cardinality(ARRAY[1,2])], (ARRAY[1,2])[NULL] FROM t ORDER BY id
SELECT q[array_length(q, 1)], q[cardinality(q) - 1], q[2:3], q[:2], q[2:], q[1] FROM (SELECT array_agg(id ORDER BY id) AS q FROM t) z
SELECT (array_agg(name ORDER BY id DESC))[1], (ARRAY[10, 20, 30])[id::bigint] FROM emp GROUP BY id ORDER BY id
SELECT string_agg(name, E'\n' ORDER BY id), E'a\tb', E'it\'s', E'\u00e9\x41' FROM emp
SELECT id, u.k, u.v FROM t, LATERAL (VALUES ('n', n), ('id', id)) AS u(k, v) ORDER BY id, k
SELECT id, (SELECT max(v) FROM (VALUES (n), (id)) AS x(v)) AS m FROM t ORDER BY id
SELECT id, u.v FROM t CROSS JOIN LATERAL (VALUES (n + 1), (2)) AS u(v) ORDER BY 1, 2
SELECT count(*) FROM t WHERE name = E'x' OR name LIKE E'a%'
