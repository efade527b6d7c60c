"""What an owner's Postgres has to be like before it is served, the role reads no more; and what would make it faster.

House rule: no check of a deployment protects an answer; it keeps a mistake elsewhere from becoming a write, a read of a
file, or a look at another's rows (soundness.md 4.4 and 6).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import psycopg

from ..relation.catalog import Catalog
from .backend import Finding, Severity, Snapshot
from .postgres_connection import NEWEST_TESTED, OLDEST_TESTED
from .postgres_schema import Query, path_of

# --- what would make an owner's Postgres faster: an index on the column that says whose a row is ------------


_LARGE = 100_000
"""Rows from which on an index is worth its place, by the catalog's own estimate; none before the first ANALYZE."""

_UNINDEXED = f"""
SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),
  pg_catalog.quote_ident(a.attname)
FROM ROWS FROM (pg_catalog.unnest(CAST($1 AS text[])), pg_catalog.unnest(CAST($2 AS text[])),
  pg_catalog.unnest(CAST($3 AS text[]))) AS w (space, name, shown)
JOIN pg_catalog.pg_namespace AS n ON n.nspname = w.space
JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = w.name AND c.relkind = 'r'
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = w.shown AND NOT a.attisdropped
WHERE c.reltuples >= {_LARGE} AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL
    AND i.indkey[0] = a.attnum)
ORDER BY 1, 2"""


def missing_indexes(snapshot: Snapshot, catalog: Catalog) -> list[Finding]:
    """Return a line for each large table whose rows' owners no index lists. Reads the catalog alone, never a row.

    Raises EngineFailure.
    """
    asked = [
        (*path_of(table.name), table.unit.columns[0])
        for table in catalog.tables.values()
        if table.unit is not None and not table.unit.is_unique
    ]
    columns = [list(column) for column in zip(*asked, strict=True)]
    rows = (row for chunk in snapshot.run(_UNINDEXED, columns) for row in chunk) if asked else ()
    return list(_advised(rows))


def _advised(rows: Iterable[tuple[str, ...]]) -> Iterable[Finding]:
    for table, column in rows:
        yield Finding(
            Severity.WARNING,
            f"no index on {table} begins with {column}, by which each statement counts a person's rows",
            f"CREATE INDEX ON {table} ({column})",
        )


# --- what an owner's Postgres has to be like before it is served --------------------------------------------


_SHOWN = 5

_ROLE = """
SELECT r.rolname::text, r.rolsuper, r.rolcreaterole, r.rolcreatedb, r.rolreplication, r.rolbypassrls,
  pg_catalog.current_database()::text
FROM pg_catalog.pg_roles AS r WHERE r.rolname = CURRENT_USER"""
_POWERS = ("SUPERUSER", "CREATEROLE", "CREATEDB", "REPLICATION", "BYPASSRLS")

# What a member of a role can do with SET ROLE counts too.
_MEMBERSHIPS = """
SELECT r.rolname::text, r.rolname = 'pg_read_all_data'
FROM pg_catalog.pg_roles AS r
WHERE r.rolname <> CURRENT_USER AND pg_catalog.pg_has_role(r.oid, 'MEMBER')
  AND (r.rolname ~ '^pg_' OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls)
  AND r.rolname <> 'pg_database_owner'
ORDER BY 1"""
_OWNED = """
SELECT DISTINCT pg_catalog.pg_describe_object(d.classid, d.objid, 0)
FROM pg_catalog.pg_shdepend AS d
JOIN pg_catalog.pg_roles AS r ON d.refclassid = 'pg_catalog.pg_authid'::regclass AND d.refobjid = r.oid
WHERE d.deptype = 'o' AND pg_catalog.pg_has_role(r.oid, 'MEMBER')
  AND d.dbid IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
ORDER BY 1"""
_WRITABLE = """
SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' AND EXISTS (
  SELECT FROM pg_catalog.pg_roles AS r WHERE pg_catalog.pg_has_role(r.oid, 'MEMBER') AND CASE
    WHEN c.relkind = 'S' THEN pg_catalog.has_sequence_privilege(r.oid, c.oid, 'USAGE, UPDATE')
    WHEN c.relkind IN ('r', 'p', 'v', 'm', 'f') THEN
      pg_catalog.has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
      OR pg_catalog.has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE, REFERENCES')
      OR CASE WHEN pg_catalog.current_setting('server_version_num')::int4 >= 170000
        THEN pg_catalog.has_table_privilege(r.oid, c.oid, 'MAINTAIN') END
    END)
ORDER BY 1"""
_CREATING = """
SELECT 'SCHEMA ' || pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_namespace AS n
WHERE n.nspname !~ '^pg_(toast|temp)' AND EXISTS (
  SELECT FROM pg_catalog.pg_roles AS r WHERE pg_catalog.pg_has_role(r.oid, 'MEMBER')
    AND pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE'))
UNION ALL
SELECT 'DATABASE ' || pg_catalog.quote_ident(d.datname) FROM pg_catalog.pg_database AS d
WHERE d.datname = pg_catalog.current_database() AND EXISTS (
  SELECT FROM pg_catalog.pg_roles AS r WHERE pg_catalog.pg_has_role(r.oid, 'MEMBER')
    AND pg_catalog.has_database_privilege(r.oid, d.oid, 'CREATE'))
ORDER BY 1"""
_TEMPORARY = "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY')"
_ESCAPES = """
SELECT p.oid::regprocedure::text, p.pronamespace = 'pg_catalog'::regnamespace
FROM pg_catalog.pg_proc AS p
WHERE pg_catalog.has_function_privilege(p.oid, 'EXECUTE') AND (
  p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN (
    'pg_read_file', 'pg_read_binary_file', 'pg_ls_dir', 'pg_stat_file', 'pg_ls_logdir', 'pg_ls_waldir',
    'pg_ls_tmpdir', 'lo_import', 'lo_export', 'pg_reload_conf', 'pg_rotate_logfile', 'pg_promote',
    'pg_switch_wal', 'pg_current_logfile')
  OR p.proname ~ '^dblink'
    AND NOT p.prosecdef AND EXISTS (
      SELECT FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS x ON x.oid = d.refobjid
      WHERE d.objid = p.oid AND d.deptype = 'e' AND x.extname = 'dblink'))
ORDER BY 1"""
_UNREADABLE = """
SELECT pg_catalog.quote_ident(n.nspname), pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE (n.nspname, c.relname) IN (SELECT pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]))
  AND NOT (pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))
ORDER BY 2"""


def verify(query: Query, names: Collection[str] | None, *, is_private: bool) -> list[Finding]:
    """Return what is wrong with the role of a connection, errors first. Looks at the catalog, never at a row.

    `names`: the tables that the policy declares; None: nothing is declared yet. `is_private`: nobody can
    listen on the way to the server.
    """
    ((role, *powers, database),) = query(_ROLE, ())
    named = _identifier(role)
    found: list[Finding] = []
    if powers[0]:  # To a superuser everything else is granted.
        sentence = f"the role {named} is a superuser, and dpsql's may only read; give it one of its own"
        found.append(Finding(Severity.ERROR, sentence, reader_sql("dpsql", database, names)))
    else:
        found += _role_findings(query, named, powers)
        found += _grant_findings(query, named, _identifier(database))
        found += _readability(query, named, names)
    found += _server_findings(query, is_private=is_private)
    return sorted(found, key=lambda finding: finding.severity is Severity.WARNING)


def reader_sql(role: str, database: str, names: Collection[str] | None) -> str:
    """Return the statements that make a role which can read these tables and do nothing else."""
    paths = sorted({path_of(name) for name in names or ()})
    schemas = ", ".join(_identifier(schema) for schema in dict.fromkeys(schema for schema, _ in paths))
    tables = ", ".join(f"{_identifier(schema)}.{_identifier(table)}" for schema, table in paths)
    named = _identifier(role)
    statements = [
        f"CREATE ROLE {named} LOGIN",
        f"GRANT CONNECT ON DATABASE {_identifier(database)} TO {named}",
    ]
    if paths:
        statements += [f"GRANT USAGE ON SCHEMA {schemas} TO {named}", f"GRANT SELECT ON {tables} TO {named}"]
    return "; ".join(statements)


def _role_findings(query: Query, role: str, powers: list[bool]) -> Iterator[Finding]:
    for power, has in zip(_POWERS, powers, strict=True):
        if has:
            fix = f"ALTER ROLE {role} NO{power}"
            yield Finding(Severity.ERROR, f"the role {role} has {power}, and dpsql's may only read", fix)
    for name, only_reads in query(_MEMBERSHIPS, ()):
        severity = Severity.WARNING if only_reads else Severity.ERROR
        sentence = f"the role {role} is a member of {_identifier(name)}, which may do more than read"
        yield Finding(severity, sentence, f"REVOKE {_identifier(name)} FROM {role}")


def _grant_findings(query: Query, role: str, database: str) -> Iterator[Finding]:
    if owned := [name for (name,) in query(_OWNED, ())]:
        yield Finding(
            Severity.ERROR,
            f"the role {role} owns {_listed(owned)}, and may change what it owns",
            f"REASSIGN OWNED BY {role} TO another_role",
        )
    if writable := [name for (name,) in query(_WRITABLE, ())]:
        yield Finding(
            Severity.ERROR,
            f"the role {role} may write to {_listed(writable)}",
            "; ".join(f"REVOKE ALL ON {name} FROM PUBLIC, {role}" for name in writable[:_SHOWN])
            + "; then GRANT SELECT again",
        )
    for (place,) in query(_CREATING, ()):
        yield Finding(
            Severity.ERROR,
            f"the role {role} may create objects in the {place.lower() if place.isascii() else place}",
            f"REVOKE CREATE ON {place} FROM PUBLIC, {role}",
        )
    ((may_make_temporary,),) = query(_TEMPORARY, ())
    if may_make_temporary:
        yield Finding(
            Severity.WARNING,
            f"the role {role} may make temporary tables",
            f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC, {role}",
        )
    for function, is_own in query(_ESCAPES, ()):
        yield Finding(
            Severity.ERROR if is_own else Severity.WARNING,
            f"the role {role} may call {function}, which reaches beyond the database",
            f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC, {role}",
        )


def _readability(query: Query, role: str, names: Collection[str] | None) -> Iterator[Finding]:
    paths = sorted({path_of(name) for name in names or ()})
    found: dict[str, list[str]] = {}
    for schema, table in query(_UNREADABLE, ([schema for schema, _ in paths], [table for _, table in paths])):
        found.setdefault(schema, []).append(table)
    for schema, tables in found.items():
        yield Finding(
            Severity.ERROR,
            f"the role {role} may not read {_listed(tables)}",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON {', '.join(tables)} TO {role}",
        )


def _server_findings(query: Query, *, is_private: bool) -> Iterator[Finding]:
    ((major,),) = query("SELECT pg_catalog.current_setting('server_version_num')::int4 / 10000", ())
    if major < OLDEST_TESTED:
        sentence = f"is Postgres {major}, and dpsql is tested on {OLDEST_TESTED} to {NEWEST_TESTED}"
        yield Finding(Severity.WARNING, sentence)
    try:
        query("SELECT pg_catalog.md5('')", ())
    except psycopg.Error:
        yield Finding(
            Severity.ERROR, "md5() fails on this server, as in FIPS mode, and dpsql's queries need it"
        )
    if not is_private:
        yield Finding(
            Severity.WARNING,
            "the connection is not encrypted; add sslmode=verify-full to the policy's database URL",
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _identifier(name: Any) -> str:
    return psycopg.sql.Identifier(str(name)).as_string(None)
