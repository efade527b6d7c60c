"""The queries of a Postgres catalog that a schema is read from; `postgres_schema` reads their answers.

House rules:

1. Every name is qualified with pg_catalog, and so is what the catalog prints: the search_path holds nothing else.
2. What this server does not enforce on every row that a query sees is left out (law L9): invalid, unenforced,
   partial and expression constraints. A constraint that is not enforced counts as not valid, since Postgres 18.
"""

from __future__ import annotations

__all__ = ["CATALOG", "NAMED_TABLES", "STATE", "TABLES", "UNREADABLE"]

TABLES = """
SELECT c.oid::pg_catalog.int8, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, c.relkind IN ('r', 'p')
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname"""
"""All tables that the role may read: oid, schema, name, whether it can be locked."""

NAMED_TABLES = TABLES.replace(
    "ORDER BY",
    """  AND (n.nspname, c.relname) IN (
    SELECT pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
ORDER BY""",
)
"""Those of them with a schema in $1 and a name beside it in $2."""

UNREADABLE = """
SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text, pg_catalog.format(
  CASE WHEN pg_catalog.count(*) OVER (PARTITION BY n.oid) > 1 AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_class AS o WHERE o.relnamespace = n.oid AND o.relkind IN ('r', 'p', 'v')
      AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(o.oid, 'SELECT'))
  THEN 'GRANT USAGE ON SCHEMA %1$I TO %3$I; GRANT SELECT ON ALL TABLES IN SCHEMA %1$I TO %3$I'
  ELSE 'GRANT USAGE ON SCHEMA %1$I TO %3$I; GRANT SELECT ON %1$I.%2$I TO %3$I' END, n.nspname, c.relname, CURRENT_USER)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND NOT (pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))
ORDER BY n.nspname, c.relname"""
"""The tables that the role may not read: schema, name, and what grants it: all of a schema's, where it may read none of
several."""

CATALOG = """
SELECT pg_catalog.json_build_object('tables', (
  SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
    'schema', n.nspname, 'name', c.relname, 'kind', c.relkind, 'row_security', c.relrowsecurity,
    'is_partition', c.relispartition,
    'definition', CASE WHEN c.relkind = 'v' THEN pg_catalog.pg_get_viewdef(c.oid) END,
    'has_children', c.relkind = 'r' AND EXISTS (
      SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid),
    'has_foreign', c.relkind = 'p' AND EXISTS (
      SELECT FROM pg_catalog.pg_partition_tree(c.oid) AS p
      JOIN pg_catalog.pg_class AS f ON f.oid = p.relid WHERE f.relkind = 'f'),
    'columns', (
      SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
        a.attname, b.oid::pg_catalog.int8, b.typtype, b.typmod, pg_catalog.format_type(b.oid, b.typmod),
        a.attnotnull AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_constraint AS k
          WHERE k.conrelid = c.oid AND k.contype = 'n' AND a.attnum = ANY (k.conkey) AND NOT k.convalidated),
        a.attgenerated,
        (SELECT pg_catalog.json_agg(e.enumlabel ORDER BY e.enumsortorder)
         FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = b.oid),
        b.typname = 'citext' AND EXISTS (
          SELECT FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS x ON x.oid = d.refobjid
          WHERE d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.objid = b.oid
            AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
            AND d.deptype = 'e' AND x.extname = 'citext'),
        EXISTS (
          SELECT FROM pg_catalog.pg_collation AS l WHERE l.oid = a.attcollation AND NOT l.collisdeterministic)
        ) ORDER BY a.attnum)
      FROM pg_catalog.pg_attribute AS a,
      LATERAL (
        WITH RECURSIVE base AS (
          SELECT t.oid, t.typname, t.typtype, t.typbasetype, t.typtypmod, a.atttypmod AS typmod
          FROM pg_catalog.pg_type AS t WHERE t.oid = a.atttypid
          UNION ALL
          SELECT t.oid, t.typname, t.typtype, t.typbasetype, t.typtypmod,
            CASE WHEN base.typmod < 0 THEN base.typtypmod ELSE base.typmod END
          FROM base JOIN pg_catalog.pg_type AS t ON t.oid = base.typbasetype WHERE base.typtype = 'd')
        SELECT * FROM base WHERE base.typtype <> 'd') AS b
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    'keys', (
      SELECT pg_catalog.json_agg(pg_catalog.json_build_array(i.indisprimary, (
        SELECT pg_catalog.json_agg(a.attname ORDER BY k.place)
        FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k (number, place)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
        WHERE k.place <= i.indnkeyatts), i.indimmediate) ORDER BY i.indexrelid)
      FROM pg_catalog.pg_index AS i
      JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
      JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
      WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive
        AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL AND m.amname = 'btree'
        AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_opclass AS o WHERE o.oid = ANY (i.indclass::pg_catalog.oid[])
            AND NOT o.opcdefault AND o.opcnamespace <> 'pg_catalog'::pg_catalog.regnamespace)),
    'foreign_keys', (
      SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
        (SELECT pg_catalog.json_agg(a.attname ORDER BY k.place)
         FROM pg_catalog.unnest(f.conkey) WITH ORDINALITY AS k (number, place)
         JOIN pg_catalog.pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.number),
        rn.nspname, r.relname,
        (SELECT pg_catalog.json_agg(a.attname ORDER BY k.place)
         FROM pg_catalog.unnest(f.confkey) WITH ORDINALITY AS k (number, place)
         JOIN pg_catalog.pg_attribute AS a ON a.attrelid = f.confrelid AND a.attnum = k.number),
        NOT f.condeferrable AND c.relkind = 'r' AND r.relkind = 'r' AND 4 = (
          SELECT pg_catalog.count(*) FROM pg_catalog.pg_trigger AS g
          WHERE g.tgconstraint = f.oid AND g.tgenabled IN ('O', 'A'))
        ) ORDER BY f.conname, f.oid)
      FROM pg_catalog.pg_constraint AS f
      JOIN pg_catalog.pg_class AS r ON r.oid = f.confrelid
      JOIN pg_catalog.pg_namespace AS rn ON rn.oid = r.relnamespace
      WHERE f.conrelid = c.oid AND f.contype = 'f' AND f.convalidated AND f.confmatchtype = 's'
        AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_constraint AS p WHERE p.oid = f.conparentid AND p.conrelid = f.conrelid)),
    'checks', (
      SELECT pg_catalog.json_agg(pg_catalog.pg_get_expr(k.conbin, k.conrelid) ORDER BY k.conname)
      FROM pg_catalog.pg_constraint AS k
      WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.convalidated)
    ) ORDER BY n.nspname, c.relname)
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.oid = ANY ('{oids}'::pg_catalog.oid[])),
'collations', (
  SELECT pg_catalog.json_agg(l.collname) FROM pg_catalog.pg_collation AS l
  WHERE l.collnamespace = 'pg_catalog'::pg_catalog.regnamespace AND l.collisdeterministic
    AND (l.collname = 'pg_c_utf8' AND l.collprovider = 'b' OR l.collname = 'und-x-icu' AND l.collprovider = 'i'
         OR l.collprovider = 'c' AND l.collname IN ('C.utf8', 'C.UTF-8'))
    AND l.collencoding IN (-1, pg_catalog.pg_char_to_encoding(pg_catalog.getdatabaseencoding()))
))::pg_catalog.text"""
"""All that a schema is read from, of the tables in {oids}, as one JSON text."""

STATE = """
SELECT pg_catalog.string_agg(part, ' ' ORDER BY part COLLATE pg_catalog."C") FROM (
  SELECT pg_catalog.concat_ws('.', 'table', c.oid, c.xmin, n.xmin) AS part
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.oid = ANY ('{oids}'::pg_catalog.oid[])
  UNION ALL
  SELECT pg_catalog.concat_ws('.', 'column', a.attrelid, a.attnum, a.xmin, t.xmin)
  FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
  WHERE a.attrelid = ANY ('{oids}'::pg_catalog.oid[]) AND a.attnum > 0
  UNION ALL
  SELECT pg_catalog.concat_ws('.', 'index', i.indexrelid, i.xmin, i.indisvalid, i.indisready, i.indislive)
  FROM pg_catalog.pg_index AS i WHERE i.indrelid = ANY ('{oids}'::pg_catalog.oid[])
  UNION ALL
  SELECT pg_catalog.concat_ws('.', 'constraint', k.oid, k.xmin)
  FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = ANY ('{oids}'::pg_catalog.oid[])
  UNION ALL
  SELECT pg_catalog.concat_ws('.', 'trigger', g.oid, g.xmin)
  FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_trigger AS g ON g.tgconstraint = k.oid
  WHERE k.contype = 'f' AND k.conrelid = ANY ('{oids}'::pg_catalog.oid[])
  UNION ALL
  SELECT pg_catalog.concat_ws('.', 'rule', r.oid, r.xmin)
  FROM pg_catalog.pg_rewrite AS r WHERE r.ev_class = ANY ('{oids}'::pg_catalog.oid[])
  UNION ALL
  SELECT pg_catalog.concat_ws('.', 'partition', p.relid, p.parentrelid)
  FROM pg_catalog.pg_class AS c, pg_catalog.pg_partition_tree(c.oid) AS p
  WHERE c.oid = ANY ('{oids}'::pg_catalog.oid[]) AND c.relkind = 'p'
  UNION ALL
  SELECT pg_catalog.concat_ws('.', 'child', i.inhrelid, i.xmin)
  FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = ANY ('{oids}'::pg_catalog.oid[])
  UNION ALL
  SELECT pg_catalog.concat_ws('.', 'label', e.oid, e.xmin)
  FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = ANY ('{types}'::pg_catalog.oid[])) AS parts"""
"""A text that changes whenever {oids} or the ENUM {types} do: every change of a catalog row has a new xmin."""
