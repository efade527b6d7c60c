SELECT ARRAY[1, 2] || ARRAY[3], ARRAY[1] || 2, 0 || ARRAY[1], ARRAY['a'] || 'b'::text, ARRAY[1] || NULL, ARRAY[1] || '{2,3}', ARRAY[1.5] || 2
SELECT array_agg(n ORDER BY id) || id_ FROM t, (SELECT 7 AS id_) q GROUP BY id_
SELECT id, ARRAY[n] || n, n || ARRAY[id] FROM t ORDER BY id
SELECT '{}'::int[], ARRAY[]::text[], '{1,NULL,3}'::bigint[], '{a,"b,c",NULL,"NULL"}'::text[], ARRAY[1, 2]::text[], '{2024-02-29}'::date[], '{t,f}'::boolean[]
SELECT cardinality('{}'::int[]), '{}'::int[] || 1, '{}'::int[] <@ ARRAY[1], ARRAY[1] <@ '{}'::int[]
SELECT ARRAY[1, 2] <@ ARRAY[2, 1, 3], ARRAY[1, NULL] <@ ARRAY[1, NULL], ARRAY['a'] <@ ARRAY['b']
SELECT unnest('{3,1,2}'::int[] || 9)
SELECT id, CASE WHEN n > 2 THEN ARRAY[n] END || ARRAY[id] FROM t ORDER BY id
SELECT array_ndims(ARRAY[1]), array_dims(ARRAY[1,2]), array_upper(ARRAY[1,2],1), array_lower(ARRAY[1],1), array_upper('{}'::int[],1), array_upper(ARRAY[1],2)
SELECT array_to_string(ARRAY[1,NULL,2], ','), array_to_string(ARRAY['a',NULL], ', ', '-'), array_to_string(ARRAY[date '2024-01-01'], ';'), array_to_string('{}'::int[], ','), array_to_string(ARRAY[NULL::int], ',')
SELECT 2 = ANY (ARRAY[1,2]), 2 > ALL (ARRAY[1,0]), 1 <> ANY (ARRAY[1,1]), 1 = ALL (ARRAY[1,1]), 3 >= ANY ('{1,NULL}'::int[]), 1 < ALL ('{}'::int[]), 1 < ANY ('{}'::int[]), NULL = ANY (ARRAY[1])
SELECT id, n = ALL (ARRAY[id, 2]), n <> ALL (ARRAY[id, 2]), n < ANY (ARRAY[id, 2]), n >= ALL (ARRAY[id, 2]) FROM t ORDER BY id
SELECT id, id > ANY (q), id > ALL (q), id = ALL (q), id <> ANY (q), id <> ALL (q), id <= ANY (q) FROM t, (SELECT array_agg(n) AS q FROM t) z ORDER BY id
SELECT id, n = ANY (string_to_array('1,2', ',')::int[]), n <> ALL (array_remove(ARRAY[1, 2], 2)) FROM t ORDER BY id
SELECT id, name LIKE ANY (ARRAY['a%', 'x_']), name NOT LIKE ALL (ARRAY['a', 'x']), name ILIKE ANY ('{A,B}') FROM t ORDER BY id
SELECT id, n = ANY (ARRAY(SELECT n FROM t WHERE n > 2)) FROM t ORDER BY id
SELECT 2 = ANY ((SELECT array_agg(n) FROM t)::int[])
SELECT '1,2,3'::text, string_to_array('1,2,3', ',')::int[], ARRAY[n]::text[] FROM t
SELECT quote_literal(1), quote_nullable(1), quote_nullable(NULL), quote_literal(true), quote_literal('a''b'), quote_nullable(d), quote_nullable(b) FROM t ORDER BY id
SELECT format('%s of %s', id, n), format('%%|%5s|%-5s|', name, id), format('%L %L', name, b), format('%2$s-%1$s-%s', 'a', 'b'), format('x'), format('{a}%s', 1), format('%s', b) FROM t ORDER BY id
SELECT encode(sha256(convert_to(name, 'UTF8')), 'hex') FROM t ORDER BY id
SELECT id, name LIKE left(name, 1) || '%', name ILIKE upper(name), name NOT LIKE name || '_', name ~ name, name ~ ('^' || name || '$'), name !~ name FROM t ORDER BY id
SELECT upper('Straße'), initcap('ßa straße'), upper(name || 'ß') FROM t ORDER BY id
SELECT id, n IN (id, 2), n NOT IN (id, 3) FROM t ORDER BY id
SELECT major, count(*) FROM student GROUP BY major HAVING major LIKE ANY (ARRAY['a%', 'b']) ORDER BY 1
SELECT m FROM (SELECT major AS m FROM student GROUP BY major) q, (VALUES ('a%'), ('_')) p(pat) WHERE m LIKE pat ORDER BY 1
SELECT jsonb_object_keys(to_jsonb(t)) AS k, count(*) FROM t GROUP BY k ORDER BY k
SELECT unnest(string_to_array('a b a', ' ')) AS w, count(*) FROM t GROUP BY 1 ORDER BY 1
SELECT unnest(ARRAY[n, id]) AS w, sum(id) FROM t GROUP BY w ORDER BY w
SELECT n, unnest(array_agg(id ORDER BY id)) AS w FROM t GROUP BY n ORDER BY n, w
SELECT q, unnest(q) AS w FROM (SELECT ARRAY[n, 1] AS q FROM t) z GROUP BY q ORDER BY q[1], w
SELECT generate_series(1, 3) AS g, count(*) FROM t GROUP BY g ORDER BY g
