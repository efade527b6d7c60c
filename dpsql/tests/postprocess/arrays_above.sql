SELECT ARRAY[1, 2] || ARRAY[3], ARRAY[1] || 2, 0 || ARRAY[1], ARRAY['a'] || 'b'::text, ARRAY[1] || NULL, ARRAY[1] || '{2,3}', ARRAY[1.5] || 2
SELECT array_agg(n ORDER BY id) || id_ FROM t, (SELECT 7 AS id_) q GROUP BY id_
SELECT id, ARRAY[n] || n, n || ARRAY[id] FROM t ORDER BY id
SELECT '{}'::int[], ARRAY[]::text[], '{1,NULL,3}'::bigint[], '{a,"b,c",NULL,"NULL"}'::text[], ARRAY[1, 2]::text[], '{2024-02-29}'::date[], '{t,f}'::boolean[]
SELECT cardinality('{}'::int[]), '{}'::int[] || 1, '{}'::int[] <@ ARRAY[1], ARRAY[1] <@ '{}'::int[]
SELECT ARRAY[1, 2] <@ ARRAY[2, 1, 3], ARRAY[1, NULL] <@ ARRAY[1, NULL], ARRAY['a'] <@ ARRAY['b']
SELECT unnest('{3,1,2}'::int[] || 9)
SELECT id, CASE WHEN n > 2 THEN ARRAY[n] END || ARRAY[id] FROM t ORDER BY id
