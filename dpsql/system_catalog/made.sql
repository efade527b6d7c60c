-- Makes the rows of pg_catalog's relations, in `c`, and what functions look in, in `h`, from the tables that objects.py
-- fills. h.named_class has what an object may be called, the tables shown_… what it is shown as.
--
-- Rows stand in the order in which Postgres makes them: a table, then its indexes.

INSERT INTO c.pg_namespace BY NAME SELECT oid, name AS nspname, 10 AS nspowner FROM h.declared_schema;

CREATE VIEW h.found AS SELECT r.*, r.row_type <> 0 AS is_declared, n.oid AS namespace, r.rowid AS place
FROM h.relation AS r JOIN c.pg_namespace AS n ON n.nspname = r.schema;

CREATE VIEW h.found_key AS SELECT k.*, r.namespace, r.place, k.rowid + 1 AS turn
FROM h.key AS k JOIN h.found AS r ON r.oid = k.owner;

CREATE VIEW h.key_column AS SELECT k.oid, k.index, k.place, k.turn, k.part, a.*
FROM (SELECT *, unnest(places) AS number, unnest(generate_series(1, len(places))) AS part
    FROM h.found_key WHERE kind <> 'f') AS k
JOIN h.attribute AS a ON a.owner = k.owner AND a.number = k.number;

INSERT INTO c.pg_class BY NAME SELECT * EXCLUDE (place, turn), 10 AS relowner, -1 AS reltuples,
    true AS relispopulated, 'p' AS relpersistence
FROM (
    SELECT r.oid, r.name AS relname, r.namespace AS relnamespace, r.row_type AS reltype, r.kind AS relkind,
        if(r.kind = 'r', 2, 0) AS relam, r.kind = 'v' AS relhasrules, if(r.is_declared, 'd', 'n') AS relreplident,
        (SELECT count(*) FROM h.attribute AS a WHERE a.owner = r.oid) AS relnatts,
        EXISTS (FROM h.key AS k WHERE k.owner = r.oid AND k.kind <> 'f') AS relhasindex,
        EXISTS (FROM h.key AS k WHERE k.referred = r.oid OR (k.owner = r.oid AND k.kind = 'f')) AS relhastriggers,
        r.place, 0 AS turn
    FROM h.found AS r
    UNION ALL SELECT index, name, namespace, 0, 'i', 403, false, 'n', len(places), false, false, place, turn
    FROM h.found_key WHERE kind <> 'f'
) ORDER BY place, turn;

INSERT INTO c.pg_attribute BY NAME SELECT a.owner AS attrelid, a.name AS attname, a.type AS atttypid,
    -1 AS attstattarget, y.typlen AS attlen, a.number AS attnum, CAST(y.typname[1] = '_' AS INTEGER) AS attndims,
    -1 AS attcacheoff, a.modifier AS atttypmod, y.typbyval AS attbyval, y.typalign AS attalign,
    y.typstorage AS attstorage, a.not_null AS attnotnull, true AS attislocal, y.typcollation AS attcollation
FROM (
    SELECT a.owner, a.number, a.name, a.type, a.modifier, a.not_null, r.place, 0 AS turn
    FROM h.attribute AS a JOIN h.found AS r ON r.oid = a.owner
    UNION ALL SELECT index, part, name, type, modifier, false, place, turn FROM h.key_column
) AS a
JOIN c.pg_type AS y ON y.oid = if(a.type IN (SELECT oid FROM c.pg_type), a.type, 25)
ORDER BY a.place, a.turn, a.number;

INSERT INTO c.pg_type BY NAME SELECT * EXCLUDE (place), 10 AS typowner, true AS typisdefined, ',' AS typdelim,
    'd' AS typalign, 'x' AS typstorage, -1 AS typtypmod, -1 AS typlen
FROM (
    SELECT row_type AS oid, name AS typname, namespace AS typnamespace, 'c' AS typtype, 'C' AS typcategory,
        oid AS typrelid, row_array AS typarray, 0 AS typelem, 2290 AS typinput, 2291 AS typoutput, 2402 AS typreceive,
        2403 AS typsend, 0 AS typanalyze, 0 AS typsubscript, place
    FROM h.found WHERE is_declared
    UNION ALL SELECT row_array, '_' || name, namespace, 'b', 'A', 0, 0, row_type, 750, 751, 2400, 2401, 3816, 6179,
        place + 0.5
    FROM h.found WHERE is_declared
) ORDER BY place;

INSERT INTO c.pg_constraint BY NAME SELECT oid, name AS conname, namespace AS connamespace, kind AS contype,
    true AS convalidated, owner AS conrelid, index AS conindid, referred AS confrelid, true AS conislocal,
    true AS connoinherit, places AS conkey, if(kind = 'f', 'a', ' ') AS confupdtype,
    if(kind = 'f', 'a', ' ') AS confdeltype, if(kind = 'f', 's', ' ') AS confmatchtype,
    if(kind = 'f', referred_places, NULL) AS confkey, if(kind = 'f', [96], NULL) AS conpfeqop,
    if(kind = 'f', [96], NULL) AS conppeqop, if(kind = 'f', [96], NULL) AS conffeqop
FROM h.found_key ORDER BY turn;

INSERT INTO c.pg_index BY NAME SELECT k.index AS indexrelid, k.owner AS indrelid, len(k.places) AS indnatts,
    len(k.places) AS indnkeyatts, true AS indisunique, k.kind = 'p' AS indisprimary, true AS indimmediate,
    true AS indisvalid, true AS indisready, true AS indislive, k.places AS indkey,
    list(if(a.type IN (25, 1043), 100, 0) ORDER BY a.part) AS indcollation,
    list(coalesce(o.oid, 0) ORDER BY a.part) AS indclass, list(0) AS indoption
FROM h.found_key AS k JOIN h.key_column AS a ON a.oid = k.oid
LEFT JOIN c.pg_opclass AS o ON o.opcintype = a.type AND o.opcmethod = 403 AND o.opcdefault
GROUP BY k.turn, k.index, k.owner, k.places, k.kind ORDER BY k.turn;

INSERT INTO c.pg_depend BY NAME SELECT 1259 AS classid, index AS objid, 2606 AS refclassid, oid AS refobjid,
    'i' AS deptype
FROM h.found_key WHERE kind <> 'f' ORDER BY turn;

INSERT INTO c.pg_proc BY NAME SELECT f.oid, f.name AS proname, s.oid AS pronamespace, 10 AS proowner, 12 AS prolang,
    1 AS procost, 'f' AS prokind, 'v' AS provolatile, 'u' AS proparallel, 1 AS pronargs, 701 AS prorettype,
    [701] AS proargtypes, f.name AS prosrc
FROM h.own_function AS f JOIN h.declared_schema AS s ON s.written IS NOT NULL;

INSERT INTO c.pg_description BY NAME SELECT oid AS objoid, 1259 AS classoid, number AS objsubid,
    comment AS description
FROM (
    SELECT oid, 0 AS number, comment, place FROM h.found WHERE is_declared
    UNION ALL SELECT a.owner, a.number, a.comment, r.place FROM h.attribute AS a JOIN h.found AS r ON r.oid = a.owner
    WHERE a.comment <> ''
) ORDER BY place, number;

CREATE MACRO h.quoted(name) AS
CASE WHEN regexp_full_match(name, '[a-z_][a-z0-9_]*') THEN name ELSE '"' || replace(name, '"', '""') || '"' END;

CREATE VIEW h.class AS SELECT x.oid AS o, x.relname AS name, n.nspname AS schema, s.written,
    s.written IS NOT NULL AS is_default,
    x.relname IN (SELECT r.name FROM h.relation AS r WHERE r.schema = 'pg_catalog') AS is_hidden
FROM c.pg_class AS x JOIN c.pg_namespace AS n ON n.oid = x.relnamespace
LEFT JOIN h.declared_schema AS s ON s.oid = n.oid;

CREATE TABLE h.own AS SELECT x.oid AS o, x.relname AS name FROM c.pg_class AS x
WHERE x.relnamespace IN (SELECT oid FROM h.in_sight) AND x.relname NOT IN (SELECT name FROM h.class WHERE is_default
    OR schema = 'pg_catalog');

CREATE TABLE h.shown_class AS SELECT o, CASE WHEN schema = 'pg_catalog' THEN name
    WHEN is_default AND is_hidden THEN schema || '.' || name
    WHEN is_default THEN h.quoted(name) ELSE h.quoted(schema) || '.' || h.quoted(name) END AS name
FROM h.class;

CREATE TABLE h.named_class AS SELECT schema || '.' || name AS name, o FROM h.class
UNION SELECT written || '.' || name, o FROM h.class WHERE is_default
UNION SELECT name, o FROM h.class WHERE schema = 'pg_catalog' OR (is_default AND NOT is_hidden)
UNION SELECT name, o FROM h.own
ORDER BY ALL;

INSERT INTO h.shown_type SELECT r.row_type, s.name FROM h.found AS r JOIN h.shown_class AS s ON s.o = r.oid
WHERE r.is_declared ORDER BY r.place;
INSERT INTO h.shown_type SELECT r.row_array, s.name || '[]' FROM h.found AS r JOIN h.shown_class AS s ON s.o = r.oid
WHERE r.is_declared ORDER BY r.place;

INSERT INTO h.shown_proc SELECT oid, proname FROM c.pg_proc EXCEPT FROM h.shown_proc;

CREATE TABLE h.definition AS SELECT oid AS o, definition AS full_text, definition AS bare FROM h.key
UNION ALL SELECT index, index_definition, bare_definition FROM h.key WHERE kind <> 'f';

CREATE TABLE h.readable AS SELECT oid AS o FROM h.relation WHERE is_readable;
