WITH m AS (SELECT date_trunc('month', loaned_on) AS month, branch, COUNT(*) AS n FROM loan GROUP BY 1, 2) SELECT month, SUM(n) FILTER (WHERE branch = 'Central') AS central, SUM(n) FILTER (WHERE branch = 'Law') AS law FROM m GROUP BY month ORDER BY month
WITH m AS (SELECT date_trunc('month', loaned_on) AS month, COUNT(*) AS n FROM loan GROUP BY 1) SELECT month, n, SUM(n) OVER (ORDER BY month) AS running FROM m ORDER BY month
WITH m AS (SELECT date_trunc('month', loaned_on) AS month, COUNT(*) AS n FROM loan GROUP BY 1) SELECT to_char(month, 'Mon YYYY') AS label, ROUND(100.0 * n / SUM(n) OVER (), 1) AS pct FROM m ORDER BY month
WITH m AS (SELECT date_trunc('month', loaned_on)::date AS month, COUNT(*) AS n FROM loan GROUP BY 1) SELECT month, AVG(n) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)::numeric(10,1) AS ma3 FROM m ORDER BY 1
WITH m AS (SELECT major, COUNT(*) AS n, AVG(gpa) AS g FROM student GROUP BY major) SELECT major, n, g, RANK() OVER (ORDER BY g DESC), DENSE_RANK() OVER (ORDER BY n DESC), ROW_NUMBER() OVER (ORDER BY major) FROM m
WITH m AS (SELECT major, COUNT(*) AS n FROM student GROUP BY major) SELECT string_agg(major || ': ' || n::text, ', ' ORDER BY n DESC) FROM m
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT json_agg(json_build_object('name', branch, 'value', n) ORDER BY n DESC) AS series FROM m
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT jsonb_object_agg(branch, n) FROM m
WITH m AS (SELECT loaned_on AS d, COUNT(*) AS n FROM loan WHERE loaned_on BETWEEN '2025-03-01' AND '2025-03-31' GROUP BY 1) SELECT g.d::date, COALESCE(m.n, 0) FROM generate_series('2025-03-01'::date, '2025-03-31'::date, '1 day') AS g(d) LEFT JOIN m ON m.d = g.d::date ORDER BY 1
WITH m AS (SELECT date_trunc('month', loaned_on) AS month, COUNT(*) AS n FROM loan GROUP BY 1) SELECT month, n, LAG(n) OVER (ORDER BY month) AS prev, n - LAG(n) OVER w AS diff, ROUND((n - LAG(n) OVER w) * 100.0 / NULLIF(LAG(n) OVER w, 0), 2) AS growth FROM m WINDOW w AS (ORDER BY month)
WITH m AS (SELECT major, enrolled, COUNT(*) AS n FROM student GROUP BY 1, 2) SELECT DISTINCT ON (major) major, enrolled, n FROM m ORDER BY major, n DESC, enrolled
WITH m AS (SELECT major, enrolled, COUNT(*) AS n FROM student GROUP BY 1, 2), r AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY major ORDER BY n DESC, enrolled) AS rk FROM m) SELECT * FROM r WHERE rk <= 2 ORDER BY major, rk
WITH m AS (SELECT branch, AVG(days_out) AS a FROM loan GROUP BY branch) SELECT branch, CASE WHEN a > (SELECT AVG(a) FROM m) THEN 'above' ELSE 'below' END AS band FROM m
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT NTILE(2) OVER (ORDER BY n), PERCENT_RANK() OVER (ORDER BY n), CUME_DIST() OVER (ORDER BY n), FIRST_VALUE(branch) OVER (ORDER BY n DESC), NTH_VALUE(branch, 2) OVER (ORDER BY n DESC) FROM m
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT COALESCE(branch, 'Total') AS branch, SUM(n) FROM m GROUP BY ROLLUP (branch) ORDER BY GROUPING(branch), 1
WITH m AS (SELECT extract(dow FROM loaned_on) AS dow, COUNT(*) AS n FROM loan GROUP BY 1) SELECT (ARRAY['Sun','Mon','Tue','Wed','Thu','Fri','Sat'])[dow::int + 1] AS day, n FROM m ORDER BY dow
WITH m AS (SELECT to_char(loaned_on, 'YYYY-MM') AS ym, COUNT(*) AS n FROM loan GROUP BY 1) SELECT left(ym, 4) AS y, right(ym, 2)::int AS mon, n FROM m ORDER BY ym
WITH m AS (SELECT major, AVG(gpa) AS g, STDDEV(gpa) AS s FROM student GROUP BY major) SELECT major, round(g::numeric, 2) || ' ± ' || round(s::numeric, 2) AS shown FROM m
WITH m AS (SELECT major, AVG(gpa) AS g FROM student GROUP BY major) SELECT major, (g - avg(g) OVER ()) / NULLIF(stddev(g) OVER (), 0) AS z FROM m
WITH m AS (SELECT branch, SUM(fee) AS f FROM loan GROUP BY branch) SELECT branch, to_char(f, 'FM999,999,990.00') FROM m ORDER BY f DESC LIMIT 3
WITH m AS (SELECT branch, SUM(fee) AS f FROM loan GROUP BY branch) SELECT array_agg(branch ORDER BY f DESC) AS branches, (array_agg(branch ORDER BY f DESC))[1:3] AS top3, (array_agg(branch ORDER BY f DESC))[1] AS best FROM m
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n), mode() WITHIN GROUP (ORDER BY n), corr(n, n), regr_slope(n, n), stddev_pop(n), max(n) - min(n) AS range FROM m
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT a.branch, b.branch, a.n::float / NULLIF(b.n, 0) AS ratio FROM m a CROSS JOIN m b WHERE a.branch < b.branch
WITH m AS (SELECT branch, date_trunc('quarter', loaned_on) AS q, COUNT(*) AS n FROM loan GROUP BY 1, 2) SELECT branch, MAX(CASE WHEN extract(quarter FROM q) = 1 THEN n END) AS q1, MAX(CASE WHEN extract(quarter FROM q) = 2 THEN n END) AS q2 FROM m GROUP BY branch
WITH m AS (SELECT branch, date_trunc('quarter', loaned_on) AS q, COUNT(*) AS n FROM loan GROUP BY 1, 2) SELECT branch, jsonb_object_agg(to_char(q, '"Q"Q'), n ORDER BY q) FROM m GROUP BY branch
WITH RECURSIVE dates AS (SELECT date '2025-01-01' AS d UNION ALL SELECT (d + interval '1 month')::date FROM dates WHERE d < '2025-12-01'), m AS (SELECT date_trunc('month', loaned_on)::date AS d, COUNT(*) AS n FROM loan GROUP BY 1) SELECT d, COALESCE(n, 0) FROM dates LEFT JOIN m USING (d) ORDER BY d
SELECT m.month, m.n, SUM(m.n) OVER (PARTITION BY date_part('year', m.month) ORDER BY m.month ROWS UNBOUNDED PRECEDING) AS ytd FROM (SELECT date_trunc('month', loaned_on) AS month, COUNT(*) AS n FROM loan GROUP BY 1) m
SELECT major, COUNT(*) AS n, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM student GROUP BY major ORDER BY n DESC
SELECT major, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) FROM student GROUP BY major
SELECT enrolled, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY enrolled) AS total FROM student GROUP BY enrolled ORDER BY enrolled
SELECT branch, COUNT(*) FILTER (WHERE days_out > 28) AS late, ROUND(COUNT(*) FILTER (WHERE days_out > 28)::numeric / NULLIF(COUNT(*), 0) * 100, 1) AS pct_late FROM loan GROUP BY branch ORDER BY pct_late DESC NULLS LAST
SELECT width_bucket(gpa, 2, 4, 4) AS bucket, COUNT(*), repeat('*', (COUNT(*) / 50)::int) AS bar FROM student GROUP BY 1 ORDER BY 1
WITH m AS (SELECT floor(gpa / 0.5) * 0.5 AS lo, COUNT(*) AS n FROM student GROUP BY 1) SELECT format('%s – %s', lo, lo + 0.5) AS bin, n, rpad('', greatest(n / 100, 0)::int, '█') AS bar FROM m ORDER BY lo
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT row_to_json(m) FROM m
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT json_build_object('labels', json_agg(branch ORDER BY branch), 'data', json_agg(n ORDER BY branch)) FROM m
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT * FROM m UNION ALL SELECT 'Total', SUM(n) FROM m ORDER BY 2 DESC
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch), t AS (SELECT SUM(n) AS total FROM m) SELECT branch, n, n::numeric / total AS share FROM m, t ORDER BY share DESC
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT branch, n FROM m WHERE n > ALL (SELECT n FROM m WHERE branch IN ('Law', 'Medicine'))
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT branch FROM m WHERE branch ILIKE ANY (ARRAY['c%', '%e']) ORDER BY length(branch), branch
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT initcap(lower(branch)), substring(branch FROM 1 FOR 3), upper(left(branch, 1)) || lower(substr(branch, 2)), position('e' IN branch), split_part(branch, 'r', 1), regexp_replace(branch, '[aeiou]', '', 'g') FROM m
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT greatest(n, 0), least(n, 100), abs(n), sign(n), mod(n, 7), power(n, 2), sqrt(greatest(n, 0)), ln(greatest(n, 1)), trunc(n / 3.0, 2), ceil(n / 10.0) FROM m
WITH m AS (SELECT date_trunc('week', loaned_on) AS w, COUNT(*) AS n FROM loan GROUP BY 1) SELECT w::date, n, n > AVG(n) OVER (ORDER BY w RANGE BETWEEN INTERVAL '28 days' PRECEDING AND INTERVAL '1 day' PRECEDING) AS is_up FROM m ORDER BY 1
WITH m AS (SELECT date_trunc('month', loaned_on) AS mo, COUNT(*) AS n FROM loan GROUP BY 1) SELECT mo, n, mo + interval '1 month' - interval '1 day' AS month_end, extract(day FROM mo + interval '1 month' - interval '1 day') AS days, n / extract(day FROM (mo + interval '1 month' - interval '1 day')) AS per_day FROM m
WITH m AS (SELECT date_trunc('month', loaned_on) AS mo, COUNT(*) AS n FROM loan GROUP BY 1) SELECT age(max(mo), min(mo)), max(mo) - min(mo) AS span, count(*) FROM m
WITH m AS (SELECT major, COUNT(*) AS n FROM student GROUP BY major) SELECT m.major, m.n, x.rank_above FROM m CROSS JOIN LATERAL (SELECT COUNT(*) AS rank_above FROM m o WHERE o.n > m.n) x
WITH m AS (SELECT major, enrolled, COUNT(*) AS n FROM student GROUP BY 1, 2) SELECT major, array_agg(n ORDER BY enrolled) AS trend, array_to_string(array_agg(n ORDER BY enrolled), ' ') AS spark FROM m GROUP BY major
WITH m AS (SELECT major, enrolled, COUNT(*) AS n FROM student GROUP BY 1, 2) SELECT major, enrolled, n, n - first_value(n) OVER (PARTITION BY major ORDER BY enrolled) AS since_start, n = max(n) OVER (PARTITION BY major) AS is_peak FROM m
WITH m AS (SELECT major, enrolled, COUNT(*) AS n FROM student GROUP BY 1, 2) SELECT e.value ->> 'y' AS y, sum((e.value ->> 'n')::int) FROM (SELECT jsonb_agg(jsonb_build_object('y', enrolled, 'n', n)) AS j FROM m) q, jsonb_array_elements(q.j) e GROUP BY 1 ORDER BY 1
WITH m AS (SELECT course_id, COUNT(*) AS n FROM enrolment GROUP BY 1) SELECT c.title, m.n FROM m JOIN course c ON c.id = m.course_id ORDER BY m.n DESC FETCH FIRST 5 ROWS ONLY
WITH m AS (SELECT course_id, AVG(grade) AS g FROM enrolment GROUP BY 1) SELECT string_agg(DISTINCT c.title, '; ') FROM m JOIN course c ON c.id = m.course_id WHERE m.g > 3.5
SELECT title FROM course c WHERE EXISTS (SELECT 1 FROM (SELECT course_id, COUNT(*) AS n FROM enrolment GROUP BY 1) m WHERE m.course_id = c.id AND m.n > 100) ORDER BY title LIMIT 3
WITH m AS (SELECT semester, COUNT(*) AS n FROM enrolment GROUP BY 1) SELECT split_part(semester, '-', 1)::int AS y, SUM(n) AS n FROM m GROUP BY 1 HAVING SUM(n) > 10 ORDER BY 1
WITH m AS (SELECT semester, COUNT(*) AS n FROM enrolment GROUP BY 1) SELECT * FROM m ORDER BY array_position(ARRAY['2023-spring', '2023-autumn', '2024-spring'], semester), semester
WITH m AS (SELECT semester, COUNT(*) AS n FROM enrolment GROUP BY 1) SELECT semester, (string_to_array(semester, '-'))[2] AS season, (regexp_match(semester, '([0-9]+)-([a-z]+)'))[1]::int AS y FROM m
WITH m AS (SELECT semester, COUNT(*) AS n FROM enrolment GROUP BY 1) SELECT string_agg(semester, E'\n' ORDER BY semester), count(*)::text || ' rows', bool_and(n > 0), every(n > 0), bit_or(1) FROM m
WITH m AS (SELECT born, COUNT(*) AS n FROM student WHERE born < '2000-01-01' GROUP BY born) SELECT date_part('year', age('2025-01-01'::date, born)) AS a, SUM(n) FROM m GROUP BY a ORDER BY a
WITH m AS (SELECT major, COUNT(*) AS n, AVG(gpa) AS gpa FROM student GROUP BY major) SELECT u.metric, u.value FROM m, LATERAL (VALUES ('n', n::float), ('gpa', gpa)) AS u(metric, value) WHERE major = 'CS'
WITH m AS (SELECT major, COUNT(*) AS n, AVG(gpa) AS gpa FROM student GROUP BY major) SELECT major, unnest(ARRAY['n', 'gpa']) AS metric, unnest(ARRAY[n::float, gpa]) AS value FROM m
WITH m AS (SELECT major, COUNT(*) AS n FROM student GROUP BY major) SELECT major, n, SUM(n) OVER (ORDER BY n DESC, major) / SUM(n) OVER () AS cum_share, CASE WHEN SUM(n) OVER (ORDER BY n DESC, major) <= 0.8 * SUM(n) OVER () THEN 'A' ELSE 'B' END AS abc FROM m
WITH m AS (SELECT major, COUNT(*) AS n FROM student GROUP BY major) SELECT (SELECT major FROM m ORDER BY n DESC LIMIT 1) AS top, (SELECT SUM(n) FROM m) AS total, now()::date AS as_of, to_char(now(), 'YYYY-MM-DD') AS stamp, current_date - 7 AS week_ago
WITH m AS (SELECT date_trunc('month', loaned_on) AS mo, branch, COUNT(*) AS n FROM loan GROUP BY 1, 2), s AS (SELECT mo, b.branch, COALESCE(m.n, 0) AS n FROM generate_series('2025-01-01'::timestamp, '2025-12-01', '1 month') AS mo CROSS JOIN (VALUES ('Central'), ('Law')) AS b(branch) LEFT JOIN m USING (mo, branch)) SELECT mo, json_object_agg(branch, n ORDER BY branch) FROM s GROUP BY mo ORDER BY mo
WITH m AS (SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch) SELECT branch, n, lpad(n::text, 8) AS right_aligned, to_char(n, '999G999') AS grouped FROM m
