SELECT json_build_object('a', 1, 'b', name, 'c', x, 'd', d, 'ts', ts, 'dec', dec, 'bo', b, 'big', big) FROM t ORDER BY id
SELECT jsonb_build_object('bb', 1, 'a', name, 'c', x, 'a', ARRAY[1, 2], 'é', n, 'd', d) FROM t ORDER BY id
SELECT json_build_object(), json_build_array(), jsonb_build_array(), jsonb_build_object(), json_build_object(id, n, b, n, d, 1) FROM t WHERE b AND d IS NOT NULL ORDER BY id
SELECT json_build_array(1, 'x"\y', null, true, 2.50, id, ARRAY['a', null], d), jsonb_build_array(1, 'x/y', null, true, 2.50, ARRAY['a', null], ts) FROM t ORDER BY id
SELECT to_json(x), to_jsonb(x), to_json(name), to_jsonb(name), to_json(ts), to_json(dec), to_jsonb(b), to_json(d) FROM t ORDER BY id
SELECT to_json(ARRAY[1, 2]), to_jsonb(ARRAY[1, 2]), to_json(ARRAY['a', 'b"']), to_jsonb(ARRAY[true, null]), array_to_json(ARRAY[1.5, 2])
SELECT to_json(chr(1) || chr(8) || chr(9) || chr(10) || chr(12) || chr(13) || chr(31) || chr(127) || '"\/' || 'é日😀')
SELECT to_json(chr(g) || 'x'), to_jsonb(chr(g)) FROM generate_series(1, 300) AS g
SELECT row_to_json(t), to_jsonb(t), to_json(t) FROM t ORDER BY id
SELECT row_to_json(ROW(id, name)), to_jsonb(ROW(id, 'x'::text)) FROM t ORDER BY id
SELECT row_to_json(q) FROM (SELECT id AS "Ab c", json_build_array(n) AS j, ARRAY[n] AS a FROM t) q ORDER BY (row_to_json(q) ->> 'Ab c')::int
SELECT json_agg(n ORDER BY id), jsonb_agg(name ORDER BY id), json_agg(name ORDER BY id), json_agg(x ORDER BY id DESC) FROM t
SELECT json_agg(n ORDER BY id) FILTER (WHERE n > 2), json_agg(n) FILTER (WHERE n > 100), json_agg(DISTINCT n), jsonb_agg(DISTINCT name) FROM t
SELECT json_agg(n), jsonb_agg(n), json_object_agg(id, n), jsonb_object_agg(id, n) FROM nothing
SELECT json_agg(e ORDER BY id), jsonb_agg(e ORDER BY id) FROM emp e
SELECT json_agg(ARRAY[id, boss] ORDER BY id), jsonb_agg(ARRAY[id, boss] ORDER BY id) FROM emp
SELECT json_agg(to_json(e) ORDER BY id), json_agg(json_build_object('i', id, 'n', name) ORDER BY id) FROM emp e
SELECT n, json_agg(name ORDER BY id) AS j, jsonb_agg(d ORDER BY id) AS k FROM t GROUP BY n ORDER BY n
SELECT json_object_agg(id, name ORDER BY id), json_object_agg(name, id ORDER BY id) FROM emp
SELECT json_object_agg(id, ARRAY[boss] ORDER BY id), jsonb_object_agg(name, to_jsonb(e) ORDER BY id) FROM emp e
SELECT jsonb_object_agg(coalesce(name, 'zz'), n ORDER BY id), jsonb_object_agg(id, n ORDER BY id) FROM t
SELECT b, json_object_agg(d, n ORDER BY id) FILTER (WHERE d IS NOT NULL) FROM t GROUP BY b ORDER BY b
SELECT id, json_agg(id) OVER (ORDER BY id) AS j, jsonb_agg(name) OVER (ORDER BY id ROWS 1 PRECEDING) AS k FROM emp ORDER BY id
SELECT '{"b": 1.50, "aa": [1, {"x": null}], "a": "q\"e\u00e9\n", "b": -0, "c": 1e2, "d": 1E-3, "": true}'::jsonb, '{"b" :1}'::json
SELECT '[]'::jsonb, '{}'::jsonb, ' [ 1 , 2 ] '::jsonb, ' [ 1 , 2 ] '::json, '"x"'::jsonb, '  null '::jsonb, '-0.0'::jsonb, '12345678901234567890123.450'::jsonb
SELECT '{"b": 1.50, "aa": [1, {"x": null}]}'::jsonb -> 'aa' -> 1 ->> 'x', '{"b" :1.50, "a":[ 1,{ "x":2 } ] }'::json -> 'a', '{"b" :1.50}'::json ->> 'b'
SELECT '{"a b":1, "x\u00e9":2}'::json -> 'a b', '{"a b":1, "x\u00e9":2}'::json -> 'xé', '[[1,2],[3]]'::json -> 0 -> 1, '{"a":"x,\"}]y"}'::json ->> 'a', '{"a":1,"a":2}'::json -> 'a'
SELECT j -> i, j ->> i, k -> i, k ->> i FROM (SELECT '[5, null ,[7 , 8],"x"]'::json AS j, '[5,null,[7,8],"x"]'::jsonb AS k) q, generate_series(-6, 5) AS i ORDER BY i
SELECT '{"1":2}'::json -> 1, '[1]'::json -> '0', '5'::json -> 'a', '[]'::json -> 0, '{}'::json -> 'a', '5'::jsonb -> 0, '{"a":""}'::jsonb ->> 'a'
SELECT '{"a":{"b":[4,{"c":"d"}]}}'::jsonb #> '{a,b,-1}', '{"a":{"b":[4,5]}}'::json #>> '{a,b}', '{"a":[1]}'::json #>> '{a,x}', '{"a":1}'::jsonb #> '{}', '{"1":{"0":3}}'::json #> '{1,0}'
SELECT '{"a":{"b":[4,{"c":"d"}]}}'::jsonb #>> ARRAY['a', 'b', '1', 'c']
SELECT to_jsonb(t) -> 'name', to_jsonb(t) ->> 'nope', to_jsonb(t) ->> 'b', (to_jsonb(t) ->> 'n')::int + 1 FROM t ORDER BY id
SELECT json_array_length('[1,[2,3]]'), jsonb_array_length('[]'), json_typeof('{}'), jsonb_typeof('[1]'), json_typeof(' null'), jsonb_typeof('true'), json_typeof('-1'), jsonb_typeof('"a"')
SELECT json_typeof(to_json(n)), jsonb_typeof(to_jsonb(name)), json_array_length(json_build_array(n, name)) FROM t ORDER BY id
SELECT to_json(t)::text, to_jsonb(t)::text, to_jsonb(t)::json FROM t ORDER BY id
SELECT coalesce(json_agg(n), to_json(ARRAY[1])), CASE WHEN count(*) > 0 THEN to_jsonb(1) ELSE to_jsonb('x'::text) END FROM nothing
SELECT json_build_object('rows', j, 'n', c) FROM (SELECT json_agg(e ORDER BY id) AS j, count(*) AS c FROM emp e) q
SELECT ARRAY[to_jsonb(1), to_jsonb('a'::text)], array_agg(to_json(name) ORDER BY id) FROM emp
SELECT json_agg(json_build_object('m', major, 'n', n) ORDER BY major) FROM (SELECT major, count(*) AS n FROM student GROUP BY major) q
SELECT json_build_object('m', major, 'n', count(*)) FROM student GROUP BY major ORDER BY major
SELECT major, json_agg(n), jsonb_object_agg(major, n) FROM (SELECT major, count(*) AS n FROM student GROUP BY major) q GROUP BY major ORDER BY major
SELECT to_json(x) FROM t UNION ALL SELECT to_json(n) FROM t
SELECT json '{"a": 1}' ->> 'a', NULL::json, to_json(NULL::int), json_build_object('a', NULL::jsonb)
SELECT json_array_elements('[1, {"a":[2,3], "b":"x,\"}]"}, "s", null, [ ] ]'::json)
SELECT jsonb_array_elements('[1, {"a":[2,3], "b":"x,\"}]"}, "s", null, []]'::jsonb) AS e
SELECT json_array_elements_text('[1, {"a": 2}, "s\n", null]'::json), jsonb_array_elements_text('["x", null, 1.50]'::jsonb)
SELECT * FROM json_array_elements('[]'::json)
SELECT * FROM jsonb_array_elements('[1,2]'::jsonb) AS e
SELECT e, e.value, value FROM jsonb_array_elements('[1,2]'::jsonb) AS e
SELECT e->>'a' AS a, (e->>'b')::int + 1 FROM jsonb_array_elements('[{"a":"x","b":1},{"a":null,"b":2},{"b":3}]'::jsonb) AS e
SELECT * FROM jsonb_each('{"bb":1,"a":[1,2],"c":null}'::jsonb)
SELECT key, value FROM json_each_text('{"bb": 1 , "a":[1, 2],"c":null, "d\u00e9":"x", "a":2}'::json)
SELECT k, v, n FROM jsonb_each_text('{"bb":1,"a":"x"}'::jsonb) WITH ORDINALITY AS e(k, v, n) ORDER BY n
SELECT * FROM json_object_keys('{"bb":1,"a":{"z":1}}'::json) AS k
SELECT jsonb_object_keys(to_jsonb(t)) AS k, count(*) FROM t GROUP BY k ORDER BY k
SELECT id, e.key, e.value FROM t, jsonb_each(to_jsonb(t)) AS e WHERE id < 3 ORDER BY id, key
SELECT id, x FROM t CROSS JOIN LATERAL json_array_elements_text(json_build_array(n, name)) AS x WHERE id < 4 ORDER BY id, x
SELECT id, k FROM t LEFT JOIN LATERAL jsonb_object_keys(jsonb_build_object('a', n)) AS k ON true WHERE id < 4 ORDER BY id
SELECT w, count(*) FROM string_to_table('a b a', ' ') AS w GROUP BY w ORDER BY w
SELECT w FROM regexp_split_to_table('a1b22c', '[0-9]+') AS w
SELECT id, string_to_table('x,y', ',') FROM t WHERE id < 3 ORDER BY id
SELECT i, (ARRAY['a','b'])[i] FROM generate_subscripts(ARRAY['a','b'], 1) AS i
SELECT regexp_match('ab12', '([a-z]+)([0-9]+)'), (regexp_match('ab12', '[0-9]+'))[1]
SELECT json_array_elements(NULL::json)
SELECT id, e.key, e.value FROM t, jsonb_each(to_jsonb(t)) AS e WHERE id < 3 ORDER BY id, key
