"""What a relation of the catalog is in the engine's SQL: a table, a query over tables, or nothing at all.

Queries make the relations of others, or of what differs between connections: roles, the database, the information
schema. They are over the tables in `c` and `h`; $user and the like are facts of the connection. Columns that are not
given are NULL. An analyst sees their own role and the owner's, and no other analyst's.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import CatalogRefusal
from .pg_types import BY_NAME, OID, Builtin, CatalogRelation, PgType

__all__ = ["SCHEMAS", "SESSION_RELATIONS", "CatalogRelations"]


_DB = "CAST($database AS VARCHAR)"
_USER = "CAST($user AS VARCHAR)"
_ROLES = f"""SELECT DISTINCT ON (oid) * FROM (VALUES
    (10, 'dpsql', false), (CAST($user_oid AS BIGINT), {_USER}, true)) AS r(oid, name, can_login)"""
_TABLES = """SELECT x.oid AS o, x.relname AS name, x.relkind AS kind, n.nspname AS schema
    FROM c.pg_class AS x
    JOIN c.pg_namespace AS n ON n.oid = x.relnamespace JOIN h.readable AS h ON h.o = x.oid
    WHERE x.relkind IN ('r', 'v')"""
_KEYS = f"""SELECT k.*, t.name AS table_name, t.schema AS table_schema FROM c.pg_constraint AS k
    JOIN ({_TABLES}) AS t ON t.o = k.conrelid"""
_UNNESTED = f"""SELECT k.conname, k.contype, k.conrelid, k.confrelid, k.conindid, k.confkey,
    k.table_name, k.table_schema,
    unnest(k.conkey) AS number, unnest(generate_series(1, len(k.conkey))) AS place FROM ({_KEYS}) AS k"""
_GRANTS = f"""SELECT 'dpsql' AS grantor, CASE WHEN t.schema IN ('pg_catalog', 'information_schema') THEN 'PUBLIC'
    ELSE {_USER} END AS grantee, {_DB} AS table_catalog, t.schema AS table_schema, t.name AS table_name,
    'SELECT' AS privilege_type, 'NO' AS is_grantable, 'YES' AS with_hierarchy, t.o FROM ({_TABLES}) AS t"""
_COLUMN_GRANTS = f"""SELECT g.grantor, g.grantee, g.table_catalog, g.table_schema, g.table_name,
    a.attname AS column_name, g.privilege_type, g.is_grantable
    FROM ({_GRANTS}) AS g JOIN c.pg_attribute AS a ON a.attrelid = g.o AND a.attnum > 0"""
_KIND = "CASE {} WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' WHEN 'f' THEN 'FOREIGN KEY' END"
_CONSTRAINTS = f"""SELECT {_DB} AS constraint_catalog, k.table_schema AS constraint_schema,
    k.conname AS constraint_name,
    {_DB} AS table_catalog, k.table_schema AS table_schema, k.table_name AS table_name,
    {_KIND.format("k.contype")} AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred,
    'YES' AS enforced, CASE WHEN k.contype = 'u' THEN 'YES' END AS nulls_distinct FROM ({_KEYS}) AS k"""
_COLUMNS = f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema, t.name AS table_name, a.attname AS column_name,
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
    {_DB} AS udt_catalog, CASE WHEN y.typtype = 'd' THEN 'pg_catalog' ELSE ns.nspname END AS udt_schema,
    CASE WHEN y.typtype = 'd' THEN bt.typname ELSE y.typname END AS udt_name,
    CAST(a.attnum AS VARCHAR) AS dtd_identifier,
    CASE WHEN y.typtype = 'd' THEN {_DB} END AS domain_catalog,
    CASE WHEN y.typtype = 'd' THEN ns.nspname END AS domain_schema,
    CASE WHEN y.typtype = 'd' THEN y.typname END AS domain_name, 'NO' AS is_self_referencing, 'NO' AS is_identity,
    'NO' AS identity_cycle, 'NEVER' AS is_generated, 'NO' AS is_updatable
    FROM ({_TABLES}) AS t JOIN c.pg_attribute AS a ON a.attrelid = t.o AND a.attnum > 0
    JOIN c.pg_type AS y ON y.oid = a.atttypid JOIN c.pg_namespace AS ns ON ns.oid = y.typnamespace
    JOIN h.shown_type AS s ON s.o = y.oid LEFT JOIN h.shown_type AS b ON b.o = y.typbasetype
    LEFT JOIN c.pg_type AS bt ON bt.oid = y.typbasetype"""
_SETTINGS = """SELECT unnest(CAST($setting_names AS VARCHAR[])) AS name,
    unnest(CAST($setting_values AS VARCHAR[])) AS setting, 'Client Connection Defaults' AS category,
    'user' AS context, 'string' AS vartype, 'session' AS source, false AS pending_restart"""
_ROLE = f"""SELECT r.name AS rolname, false AS rolsuper, true AS rolinherit, false AS rolcreaterole,
    false AS rolcreatedb, r.can_login AS rolcanlogin, false AS rolreplication, -1 AS rolconnlimit,
    false AS rolbypassrls, r.oid AS oid FROM ({_ROLES}) AS r"""
_LOGIN = f"""SELECT r.name AS usename, r.oid AS usesysid, false AS usecreatedb, false AS usesuper,
    false AS userepl, false AS usebypassrls FROM ({_ROLES}) AS r WHERE r.can_login"""

SESSION_RELATIONS = {
    "pg_catalog.pg_database": """SELECT unnest(CAST($database_oids AS BIGINT[])) AS oid,
        unnest(CAST($databases AS VARCHAR[])) AS datname, 10 AS datdba, 6 AS encoding,
        'c' AS datlocprovider, true AS datallowconn, -1 AS datconnlimit, 1663 AS dattablespace,
        'C.UTF-8' AS datcollate, 'C.UTF-8' AS datctype""",
    "pg_catalog.pg_roles": _ROLE,
    "pg_catalog.pg_authid": _ROLE,
    "pg_catalog.pg_user": _LOGIN,
    "pg_catalog.pg_shadow": _LOGIN,
    "pg_catalog.pg_settings": _SETTINGS,
    "pg_catalog.pg_tables": f"""SELECT t.schema AS schemaname, t.name AS tablename, 'dpsql' AS tableowner,
        x.relhasindex AS hasindexes, x.relhasrules AS hasrules, x.relhastriggers AS hastriggers,
        x.relrowsecurity AS rowsecurity FROM ({_TABLES}) AS t JOIN c.pg_class AS x ON x.oid = t.o WHERE t.kind = 'r'""",
    "pg_catalog.pg_views": f"""SELECT t.schema AS schemaname, t.name AS viewname, 'dpsql' AS viewowner
        FROM ({_TABLES}) AS t WHERE t.kind = 'v'""",
    "pg_catalog.pg_indexes": """SELECT n.nspname AS schemaname, t.relname AS tablename, x.relname AS indexname,
        d.full_text AS indexdef FROM c.pg_index AS i JOIN c.pg_class AS x ON x.oid = i.indexrelid
        JOIN c.pg_class AS t ON t.oid = i.indrelid JOIN c.pg_namespace AS n ON n.oid = t.relnamespace
        LEFT JOIN h.definition AS d ON d.o = i.indexrelid""",
    "pg_catalog.pg_timezone_names": """SELECT 'UTC' AS name, 'UTC' AS abbrev, INTERVAL 0 SECOND AS utc_offset,
        false AS is_dst""",
    "information_schema.information_schema_catalog_name": f"SELECT {_DB} AS catalog_name",
    "information_schema.schemata": f"""SELECT {_DB} AS catalog_name, n.nspname AS schema_name,
        'dpsql' AS schema_owner FROM c.pg_namespace AS n WHERE n.nspname <> 'pg_toast'""",
    "information_schema.tables": f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema, t.name AS table_name,
        CASE t.kind WHEN 'r' THEN 'BASE TABLE' ELSE 'VIEW' END AS table_type, 'NO' AS is_insertable_into,
        'NO' AS is_typed FROM ({_TABLES}) AS t""",
    "information_schema.views": f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema, t.name AS table_name,
        'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into, 'NO' AS is_trigger_updatable,
        'NO' AS is_trigger_deletable, 'NO' AS is_trigger_insertable_into FROM ({_TABLES}) AS t WHERE t.kind = 'v'""",
    "information_schema.columns": _COLUMNS,
    "information_schema.table_constraints": _CONSTRAINTS,
    "information_schema.key_column_usage": f"""SELECT {_DB} AS constraint_catalog,
        u.table_schema AS constraint_schema, u.conname AS constraint_name, {_DB} AS table_catalog,
        u.table_schema AS table_schema, u.table_name AS table_name, a.attname AS column_name,
        u.place AS ordinal_position, CASE WHEN u.contype = 'f' THEN u.place END AS position_in_unique_constraint
        FROM ({_UNNESTED}) AS u JOIN c.pg_attribute AS a ON a.attrelid = u.conrelid AND a.attnum = u.number""",
    "information_schema.constraint_column_usage": f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema,
        t.name AS table_name, a.attname AS column_name, {_DB} AS constraint_catalog,
        u.table_schema AS constraint_schema, u.conname AS constraint_name FROM ({_UNNESTED}) AS u
        JOIN ({_TABLES}) AS t ON t.o = CASE WHEN u.contype = 'f' THEN u.confrelid ELSE u.conrelid END
        JOIN c.pg_attribute AS a ON a.attrelid = t.o
        AND a.attnum = CASE WHEN u.contype = 'f' THEN list_extract(u.confkey, u.place) ELSE u.number END""",
    "information_schema.constraint_table_usage": f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema,
        t.name AS table_name, {_DB} AS constraint_catalog, k.table_schema AS constraint_schema,
        k.conname AS constraint_name FROM ({_KEYS}) AS k
        JOIN ({_TABLES}) AS t ON t.o = CASE WHEN k.contype = 'f' THEN k.confrelid ELSE k.conrelid END""",
    "information_schema.referential_constraints": f"""SELECT {_DB} AS constraint_catalog,
        k.table_schema AS constraint_schema, k.conname AS constraint_name, {_DB} AS unique_constraint_catalog,
        t.schema AS unique_constraint_schema, o.conname AS unique_constraint_name, 'NONE' AS match_option,
        'NO ACTION' AS update_rule, 'NO ACTION' AS delete_rule FROM ({_KEYS}) AS k
        LEFT JOIN c.pg_constraint AS o ON o.conindid = k.conindid AND o.conrelid = k.confrelid AND o.contype <> 'f'
        LEFT JOIN ({_TABLES}) AS t ON t.o = o.conrelid WHERE k.contype = 'f'""",
    "information_schema.table_privileges": _GRANTS,
    "information_schema.role_table_grants": f"SELECT * FROM ({_GRANTS}) AS z WHERE z.grantee <> 'PUBLIC'",
    "information_schema.column_privileges": _COLUMN_GRANTS,
    "information_schema.role_column_grants": f"SELECT * FROM ({_COLUMN_GRANTS}) AS z WHERE z.grantee <> 'PUBLIC'",
    "information_schema.enabled_roles": f"SELECT {_USER} AS role_name",
    "information_schema.character_sets": f"""SELECT 'UTF8' AS character_set_name, 'UCS' AS character_repertoire,
        'UTF8' AS form_of_use, {_DB} AS default_collate_catalog""",
}
"""schema.relation -> the query that makes it, or those of its columns that are not empty."""

SCHEMAS = ("pg_catalog", "information_schema")


@dataclass(frozen=True)
class CatalogRelations:
    """Finds relations; `filled`: those that are tables of the engine."""

    builtin: Builtin
    filled: frozenset[str]
    oid: PgType = OID
    xid: PgType = BY_NAME["xid"]

    def read(self, schema: str | None, name: str) -> tuple[str, CatalogRelation]:
        """Return what stands in FROM for a relation. Raises CatalogRefusal: there is no such relation."""
        relation = self.builtin.relations.get((schema or "pg_catalog", name))
        if relation is None or not (relation.is_readable or relation.schema == "pg_catalog"):
            shown = f"{schema}.{name}" if schema else name
            message = f'relation "{shown[:100]}" does not exist'
            raise CatalogRefusal("no such relation", message=message, sqlstate="42P01")
        if relation.schema == "pg_catalog" and name in self.filled:
            return f'c."{name}"', relation
        return f"({_completed(SESSION_RELATIONS.get(f'{relation.schema}.{name}'), relation)})", relation


def _completed(sql: str | None, relation: CatalogRelation) -> str:
    """Return a query of all the relation's columns in order: what another gives, the rest NULL, or nothing."""
    nulls = ", ".join(f'NULL AS "{column}"' for column, *_ in relation.columns)
    rows = f"SELECT {nulls} WHERE false" + ("" if sql is None else f" UNION ALL BY NAME ({sql})")
    parts = []
    for column, type_, _, not_null in relation.columns:
        empty = {"boolean": "false", "number": "0", "oid": "0"}.get(type_.family) if not_null else None
        value = f'q."{column}"' if empty is None else f'coalesce(q."{column}", {empty})'
        parts.append(f'CAST({value} AS {type_.holder}) AS "{column}"')
    return f"SELECT {', '.join(parts)} FROM ({rows}) AS q"
