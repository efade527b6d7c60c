-- What makes a relation of the catalog, or those of its columns that are not empty: read by objects.py. A name without a
-- schema is of a piece, which stands in the others as {name}.

[database]
CAST($database AS VARCHAR)

[user]
CAST($user AS VARCHAR)

[roles]
SELECT DISTINCT ON (oid) * FROM (VALUES
    (10, 'dpsql', false), (CAST($user_oid AS BIGINT), {user}, true)) AS r(oid, name, can_login)

[tables]
SELECT x.oid AS o, x.relname AS name, x.relkind AS kind, n.nspname AS schema
    FROM c.pg_class AS x
    JOIN c.pg_namespace AS n ON n.oid = x.relnamespace JOIN h.readable AS h ON h.o = x.oid
    WHERE x.relkind IN ('r', 'v')

[keys]
SELECT k.*, t.name AS table_name, t.schema AS table_schema FROM c.pg_constraint AS k
    JOIN ({tables}) AS t ON t.o = k.conrelid

[key_columns]
SELECT k.conname, k.contype, k.conrelid, k.confrelid, k.conindid, k.confkey,
    k.table_name, k.table_schema,
    unnest(k.conkey) AS number, unnest(generate_series(1, len(k.conkey))) AS place FROM ({keys}) AS k

[grants]
SELECT 'dpsql' AS grantor, CASE WHEN t.schema IN ('pg_catalog', 'information_schema') THEN 'PUBLIC'
    ELSE {user} END AS grantee, {database} AS table_catalog, t.schema AS table_schema, t.name AS table_name,
    'SELECT' AS privilege_type, 'NO' AS is_grantable, 'YES' AS with_hierarchy, t.o FROM ({tables}) AS t

[column_grants]
SELECT g.grantor, g.grantee, g.table_catalog, g.table_schema, g.table_name,
    a.attname AS column_name, g.privilege_type, g.is_grantable
    FROM ({grants}) AS g JOIN c.pg_attribute AS a ON a.attrelid = g.o AND a.attnum > 0

[pg_catalog.pg_database]
SELECT unnest(CAST($database_oids AS BIGINT[])) AS oid,
    unnest(CAST($databases AS VARCHAR[])) AS datname, 10 AS datdba, 6 AS encoding,
    'c' AS datlocprovider, true AS datallowconn, -1 AS datconnlimit, 1663 AS dattablespace,
    'C.UTF-8' AS datcollate, 'C.UTF-8' AS datctype

[pg_catalog.pg_roles pg_catalog.pg_authid]
SELECT r.name AS rolname, false AS rolsuper, true AS rolinherit, false AS rolcreaterole,
    false AS rolcreatedb, r.can_login AS rolcanlogin, false AS rolreplication, -1 AS rolconnlimit,
    false AS rolbypassrls, r.oid AS oid FROM ({roles}) AS r

[pg_catalog.pg_user pg_catalog.pg_shadow]
SELECT r.name AS usename, r.oid AS usesysid, false AS usecreatedb, false AS usesuper,
    false AS userepl, false AS usebypassrls FROM ({roles}) AS r WHERE r.can_login

[pg_catalog.pg_settings]
SELECT unnest(CAST($setting_names AS VARCHAR[])) AS name,
    unnest(CAST($setting_values AS VARCHAR[])) AS setting, 'Client Connection Defaults' AS category,
    'user' AS context, 'string' AS vartype, 'session' AS source, false AS pending_restart

[pg_catalog.pg_tables]
SELECT t.schema AS schemaname, t.name AS tablename, 'dpsql' AS tableowner,
    x.relhasindex AS hasindexes, x.relhasrules AS hasrules, x.relhastriggers AS hastriggers,
    x.relrowsecurity AS rowsecurity FROM ({tables}) AS t JOIN c.pg_class AS x ON x.oid = t.o WHERE t.kind = 'r'

[pg_catalog.pg_views]
SELECT t.schema AS schemaname, t.name AS viewname, 'dpsql' AS viewowner
    FROM ({tables}) AS t WHERE t.kind = 'v'

[pg_catalog.pg_indexes]
SELECT n.nspname AS schemaname, t.relname AS tablename, x.relname AS indexname,
    d.full_text AS indexdef FROM c.pg_index AS i JOIN c.pg_class AS x ON x.oid = i.indexrelid
    JOIN c.pg_class AS t ON t.oid = i.indrelid JOIN c.pg_namespace AS n ON n.oid = t.relnamespace
    LEFT JOIN h.definition AS d ON d.o = i.indexrelid

[pg_catalog.pg_timezone_names]
SELECT 'UTC' AS name, 'UTC' AS abbrev, INTERVAL 0 SECOND AS utc_offset,
    false AS is_dst

[information_schema.information_schema_catalog_name]
SELECT {database} AS catalog_name

[information_schema.schemata]
SELECT {database} AS catalog_name, n.nspname AS schema_name,
    'dpsql' AS schema_owner FROM c.pg_namespace AS n WHERE n.nspname <> 'pg_toast'

[information_schema.tables]
SELECT {database} AS table_catalog, t.schema AS table_schema, t.name AS table_name,
    CASE t.kind WHEN 'r' THEN 'BASE TABLE' ELSE 'VIEW' END AS table_type, 'NO' AS is_insertable_into,
    'NO' AS is_typed FROM ({tables}) AS t

[information_schema.views]
SELECT {database} AS table_catalog, t.schema AS table_schema, t.name AS table_name,
    'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into, 'NO' AS is_trigger_updatable,
    'NO' AS is_trigger_deletable, 'NO' AS is_trigger_insertable_into FROM ({tables}) AS t WHERE t.kind = 'v'

[information_schema.columns]
SELECT {database} AS table_catalog, t.schema AS table_schema, t.name AS table_name, a.attname AS column_name,
    a.attnum AS ordinal_position, CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable,
    CASE WHEN y.typelem <> 0 AND y.typlen = -1 THEN 'ARRAY' WHEN y.typtype = 'd' THEN b.name
    WHEN y.typnamespace = 11 THEN s.name ELSE 'USER-DEFINED' END AS data_type,
    CASE WHEN a.atttypid IN (1042, 1043) AND a.atttypmod > 4 THEN a.atttypmod - 4 END AS character_maximum_length,
    CASE WHEN a.atttypid IN (25, 1042, 1043) THEN 1073741824 END AS character_octet_length,
    CASE a.atttypid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53
    WHEN 1700 THEN CASE WHEN a.atttypmod >= 4 THEN (a.atttypmod - 4) >> 16 END END AS numeric_precision,
    CASE WHEN a.atttypid IN (20, 21, 23, 700, 701) THEN 2
    WHEN a.atttypid = 1700 THEN 10 END AS numeric_precision_radix,
    CASE WHEN a.atttypid IN (20, 21, 23) THEN 0
    WHEN a.atttypid = 1700 AND a.atttypmod >= 4 THEN (a.atttypmod - 4) & 65535 END AS numeric_scale,
    CASE WHEN a.atttypid IN (1114, 1184, 1186) THEN 6 WHEN a.atttypid = 1082 THEN 0 END AS datetime_precision,
    {database} AS udt_catalog, CASE WHEN y.typtype = 'd' THEN 'pg_catalog' ELSE ns.nspname END AS udt_schema,
    CASE WHEN y.typtype = 'd' THEN bt.typname ELSE y.typname END AS udt_name,
    CAST(a.attnum AS VARCHAR) AS dtd_identifier,
    CASE WHEN y.typtype = 'd' THEN {database} END AS domain_catalog,
    CASE WHEN y.typtype = 'd' THEN ns.nspname END AS domain_schema,
    CASE WHEN y.typtype = 'd' THEN y.typname END AS domain_name, 'NO' AS is_self_referencing, 'NO' AS is_identity,
    'NO' AS identity_cycle, 'NEVER' AS is_generated, 'NO' AS is_updatable
    FROM ({tables}) AS t JOIN c.pg_attribute AS a ON a.attrelid = t.o AND a.attnum > 0
    JOIN c.pg_type AS y ON y.oid = a.atttypid JOIN c.pg_namespace AS ns ON ns.oid = y.typnamespace
    JOIN h.shown_type AS s ON s.o = y.oid LEFT JOIN h.shown_type AS b ON b.o = y.typbasetype
    LEFT JOIN c.pg_type AS bt ON bt.oid = y.typbasetype

[information_schema.table_constraints]
SELECT {database} AS constraint_catalog, k.table_schema AS constraint_schema,
    k.conname AS constraint_name,
    {database} AS table_catalog, k.table_schema AS table_schema, k.table_name AS table_name,
    CASE k.contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' WHEN 'f' THEN 'FOREIGN KEY' END AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred,
    'YES' AS enforced, CASE WHEN k.contype = 'u' THEN 'YES' END AS nulls_distinct FROM ({keys}) AS k

[information_schema.key_column_usage]
SELECT {database} AS constraint_catalog,
    u.table_schema AS constraint_schema, u.conname AS constraint_name, {database} AS table_catalog,
    u.table_schema AS table_schema, u.table_name AS table_name, a.attname AS column_name,
    u.place AS ordinal_position, CASE WHEN u.contype = 'f' THEN u.place END AS position_in_unique_constraint
    FROM ({key_columns}) AS u JOIN c.pg_attribute AS a ON a.attrelid = u.conrelid AND a.attnum = u.number

[information_schema.constraint_column_usage]
SELECT {database} AS table_catalog, t.schema AS table_schema,
    t.name AS table_name, a.attname AS column_name, {database} AS constraint_catalog,
    u.table_schema AS constraint_schema, u.conname AS constraint_name FROM ({key_columns}) AS u
    JOIN ({tables}) AS t ON t.o = CASE WHEN u.contype = 'f' THEN u.confrelid ELSE u.conrelid END
    JOIN c.pg_attribute AS a ON a.attrelid = t.o
    AND a.attnum = CASE WHEN u.contype = 'f' THEN list_extract(u.confkey, u.place) ELSE u.number END

[information_schema.constraint_table_usage]
SELECT {database} AS table_catalog, t.schema AS table_schema,
    t.name AS table_name, {database} AS constraint_catalog, k.table_schema AS constraint_schema,
    k.conname AS constraint_name FROM ({keys}) AS k
    JOIN ({tables}) AS t ON t.o = CASE WHEN k.contype = 'f' THEN k.confrelid ELSE k.conrelid END

[information_schema.referential_constraints]
SELECT {database} AS constraint_catalog,
    k.table_schema AS constraint_schema, k.conname AS constraint_name, {database} AS unique_constraint_catalog,
    t.schema AS unique_constraint_schema, o.conname AS unique_constraint_name, 'NONE' AS match_option,
    'NO ACTION' AS update_rule, 'NO ACTION' AS delete_rule FROM ({keys}) AS k
    LEFT JOIN c.pg_constraint AS o ON o.conindid = k.conindid AND o.conrelid = k.confrelid AND o.contype <> 'f'
    LEFT JOIN ({tables}) AS t ON t.o = o.conrelid WHERE k.contype = 'f'

[information_schema.table_privileges]
{grants}

[information_schema.role_table_grants]
SELECT * FROM ({grants}) AS z WHERE z.grantee <> 'PUBLIC'

[information_schema.column_privileges]
{column_grants}

[information_schema.role_column_grants]
SELECT * FROM ({column_grants}) AS z WHERE z.grantee <> 'PUBLIC'

[information_schema.enabled_roles]
SELECT {user} AS role_name

[information_schema.character_sets]
SELECT 'UTF8' AS character_set_name, 'UCS' AS character_repertoire,
    'UTF8' AS form_of_use, {database} AS default_collate_catalog
