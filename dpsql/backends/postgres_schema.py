"""Reads out of a Postgres catalog: the schema, what an owner's Postgres has to be like before it is served, and what
would make it faster.

House rules:

1. Every name is qualified with pg_catalog, and so is what the catalog prints: the search_path holds nothing else.
2. What this server does not enforce on every row that a query sees is left out (law L9): invalid, unenforced,
   partial and expression constraints, and one whose index is invalid on a partition. A constraint that is not enforced
   counts as not valid, since Postgres 18.

House rule: no check of a deployment protects an answer; it keeps a mistake elsewhere from becoming a write, a read of a
file, or a look at another's rows (soundness.md 4.4 and 6).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from ..policy.live_schema import (
    DIGITS,
    MAX_SCALE,
    OPEN_NUMERIC,
    LiveColumn,
    LiveForeignKey,
    LiveSchema,
    LiveTable,
    allowed_in,
    open_numeric,
    without_days,
)
from ..records import dataclass
from ..relation import types
from ..relation.catalog import Catalog, Proved
from ..relation.types import SqlType, numeric
from .backend import Finding, Severity, Snapshot
from .check_bounds import ValueRange, read_bounds
from .postgres_connection import NEWEST_TESTED, OLDEST_TESTED

# --- the queries of a Postgres catalog that a schema is read from; `postgres_schema` reads their answers ----


_TABLES = """
SELECT c.oid::pg_catalog.int8, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, c.relkind IN ('r', 'p')
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname"""
"""All tables that the role may read: oid, schema, name, whether it can be locked."""

_NAMED_TABLES = _TABLES.replace(
    "ORDER BY",
    """  AND (n.nspname, c.relname) IN (
    SELECT pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
ORDER BY""",
)
"""Those of them with a schema in $1 and a name beside it in $2."""

_UNREADABLE = """
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

_CATALOG = """
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
            AND NOT o.opcdefault AND o.opcnamespace <> 'pg_catalog'::pg_catalog.regnamespace)
        AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_partition_tree(i.indexrelid) AS p
          JOIN pg_catalog.pg_index AS l ON l.indexrelid = p.relid
          WHERE NOT (l.indisvalid AND l.indisready AND l.indislive))),
    'loose_keys', (
      SELECT pg_catalog.json_agg(pg_catalog.json_build_array((
        SELECT pg_catalog.json_agg(DISTINCT a.attname)
        FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND (
          a.attnum = ANY (i.indkey::pg_catalog.int2[]) OR EXISTS (
            SELECT FROM pg_catalog.pg_depend AS d WHERE i.indexprs IS NOT NULL AND d.objid = i.indexrelid
              AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = c.oid
              AND d.refclassid = d.classid AND d.refobjsubid = a.attnum))),
        CASE WHEN i.indexprs IS NOT NULL THEN 'expression' WHEN i.indpred IS NOT NULL THEN 'partial'
          WHEN NOT i.indimmediate THEN 'deferrable' ELSE 'invalid' END) ORDER BY i.indexrelid)
      FROM pg_catalog.pg_index AS i
      WHERE i.indrelid = c.oid AND i.indisunique AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
        OR NOT i.indimmediate OR NOT (i.indisvalid AND i.indisready AND i.indislive) OR EXISTS (
          SELECT FROM pg_catalog.pg_partition_tree(i.indexrelid) AS p
          JOIN pg_catalog.pg_index AS l ON l.indexrelid = p.relid
          WHERE NOT (l.indisvalid AND l.indisready AND l.indislive)))),
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

_STATE = """
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
  SELECT pg_catalog.concat_ws('.', 'part', l.indexrelid, l.xmin, l.indisvalid, l.indisready, l.indislive)
  FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid,
    pg_catalog.pg_partition_tree(x.oid) AS p JOIN pg_catalog.pg_index AS l ON l.indexrelid = p.relid
  WHERE i.indrelid = ANY ('{oids}'::pg_catalog.oid[]) AND x.relkind = 'I'
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


# --- reads the schema of a Postgres database out of its catalog ---------------------------------------------


Query = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs one SELECT with its parameters and returns all of its rows."""

DEFAULT_SCHEMA = "public"
"""Where a name without a schema lives, whatever the role's own search_path says."""

_TYPES = {
    16: ("boolean", types.BOOLEAN),
    17: ("bytea", types.OPAQUE),
    19: ("name", types.TEXT),
    20: ("bigint", types.BIGINT),
    21: ("smallint", types.SMALLINT),
    23: ("integer", types.INTEGER),
    25: ("text", types.TEXT),
    700: ("real", types.REAL),
    701: ("double precision", types.DOUBLE),
    1042: ("character", types.TEXT),
    1043: ("character varying", types.TEXT),
    1082: ("date", types.DATE),
    1114: ("timestamp", types.TIMESTAMP),
    1184: ("timestamptz", types.TIMESTAMP),
    1186: ("interval", types.INTERVAL),
    2950: ("uuid", types.OPAQUE),
}
_NUMERIC = 1700
_NAME = 19
_WITH_LENGTH = (1042, 1043)
_COLLATIONS = ("pg_c_utf8", "C.utf8", "C.UTF-8", "und-x-icu")
_KINDS = {
    "v": "is a view; write view = true, and declare the tables that it reads",
    "m": "is a materialized view, whose rows are a copy of anybody's; declare the tables that it reads",
    "f": "is a foreign table, of which this server enforces nothing; copy its rows into a table",
}


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table that the role may read; `is_lockable`: no view and no foreign table."""

    oid: int
    path: tuple[str, str]
    is_lockable: bool


@dataclass(frozen=True, slots=True)
class SchemaSnapshot:
    """The schema of some tables. While it holds, `state_query` answers `state`."""

    tables: tuple[FoundTable, ...]
    schema: LiveSchema
    state_query: str
    state: str


def path_of(name: str) -> tuple[str, str]:
    """Return the path that a name in the policy means: `table`, or `schema.table`."""
    schema, dot, table = name.partition(".")
    return (schema, table) if dot else (DEFAULT_SCHEMA, name)


def find_tables(query: Query, names: Collection[str] | None) -> tuple[FoundTable, ...]:
    """Return those of the named tables that are there and that the role may read; None: all such tables."""
    if names is None:
        rows = query(_TABLES, ())
    else:
        paths = sorted({path_of(name) for name in names})
        rows = query(_NAMED_TABLES, ([schema for schema, _ in paths], [table for _, table in paths]))
    return tuple(FoundTable(oid, (schema, table), lockable) for oid, schema, table, lockable in rows)


def read_catalog(query: Query, tables: tuple[FoundTable, ...], *, is_all: bool = False) -> SchemaSnapshot:
    """Return the schema of these tables, and what it takes to notice a change of it.

    `is_all`: these are all that the role may read, and the schema says which others there are.
    """
    oids = _array(table.oid for table in tables)
    ((text,),) = query(_CATALOG.replace("{oids}", oids), ())
    content = json.loads(text)
    rows = content["tables"] or ()
    enums = {oid for row in rows for _, oid, kind, *_ in row["columns"] or () if kind == "e"}
    state_query = _STATE.replace("{oids}", oids).replace("{types}", _array(sorted(enums)))
    collation = next((name for name in _COLLATIONS if name in (content["collations"] or ())), None)
    schema = LiveSchema(
        DEFAULT_SCHEMA,
        tuple(map(_read_table, rows)),
        dialect="postgres",
        case_collation=collation,
        unreadable=tuple(((schema, table), fix) for schema, table, fix in query(_UNREADABLE, ()))
        if is_all
        else (),
    )
    return SchemaSnapshot(tables, schema, state_query, read_state(query, state_query))


def read_state(query: Query, state_query: str) -> str:
    """Return what a catalog's `state_query` says now."""
    ((state,),) = query(state_query, ())
    return state or ""


def _array(oids: Iterable[int]) -> str:
    return f"{{{','.join(map(str, oids))}}}"


def read_type(oid: int, kind: str, modifier: int, text: str, *, is_citext: bool) -> tuple[str, SqlType]:
    """Return the engine's name of a type and our type for it; a domain is its base type.

    An ENUM and citext are TEXT. NUMERIC of more than 38 digits has 38 to us: clamp before any cast. Without
    a fixed scale, or with one that we do not compute with, its engine type is "numeric" and it is read with
    6 decimals. What is not listed is OPAQUE.
    """
    if oid == _NUMERIC:
        precision, scale = _precision_and_scale(modifier)
        if 0 <= scale <= (precision if precision <= DIGITS else MAX_SCALE):
            return f"numeric({precision},{scale})", numeric(min(precision, DIGITS), scale)
        return OPEN_NUMERIC, open_numeric()
    if kind == "e" or is_citext:
        return text, types.TEXT
    return _TYPES.get(oid, (text, types.OPAQUE))


def _precision_and_scale(modifier: int) -> tuple[int, int]:
    """Return NUMERIC's precision and scale, which has 11 bits and a sign; (-1, 0) where it is open."""
    if modifier < 4:
        return -1, 0
    packed = modifier - 4
    return packed >> 16, ((packed & 0x7FF) ^ 0x400) - 0x400


def _read_table(content: dict[str, Any]) -> LiveTable:
    columns = [_read_column(row) for row in content["columns"] or ()]
    # A number that is read at fewer decimals than it has may be rounded out of its bounds.
    kinds = {column.name: column.type for column in columns if column.engine_type != OPEN_NUMERIC}
    bounds: dict[str, ValueRange] = defaultdict(ValueRange)
    for check in content["checks"] or ():
        for name, interval in read_bounds(check, kinds, "postgres").items():
            bounds[name] = bounds[name].intersect(interval)
    columns = [
        replace(column, lo=found.lo, hi=found.hi, listed=found.listed)
        for column, found in ((column, bounds[column.name]) for column in columns)
    ]
    keys = [(is_primary, tuple(names)) for is_primary, names, _ in content["keys"] or ()]
    return LiveTable(
        (content["schema"], content["name"]),
        without_days(columns),
        next((names for is_primary, names in keys if is_primary), ()),
        tuple(dict.fromkeys(names for is_primary, names in keys if not is_primary)),
        tuple(
            LiveForeignKey(tuple(own), (schema, table), tuple(referenced))
            for own, schema, table, referenced, _ in content["foreign_keys"] or ()
        ),
        _why_unusable(content),
        content["kind"] == "p",
        is_partition=content["is_partition"],
        definition=content["definition"] or "",
        proved=_proved(content, columns) if content["kind"] in ("r", "p") else None,
        loose_keys=tuple((tuple(names or ()), why) for names, why in content["loose_keys"] or ()),
    )


def _proved(content: dict[str, Any], columns: Sequence[LiveColumn]) -> Proved:
    """Return what a table's own constraints prove: those that no transaction may defer, and whose triggers fire.

    No CHECK may be deferred, and those of `columns` are validated.
    """
    return Proved(
        tuple(
            dict.fromkeys(tuple(names) for _, names, is_immediate in content["keys"] or () if is_immediate)
        ),
        tuple(
            (tuple(own), (schema, table), tuple(referenced))
            for own, schema, table, referenced, is_held in content["foreign_keys"] or ()
            if is_held
        ),
        allowed_in(columns),
    )


def _read_column(row: list[Any]) -> LiveColumn:
    name, oid, kind, modifier, text, not_null, generated, labels, is_citext, is_loose = row
    engine_type, type_ = read_type(oid, kind, modifier, text, is_citext=is_citext)
    return LiveColumn(
        name=name,
        type=type_,
        engine_type=engine_type,
        not_null=not_null,
        enum_values=None if labels is None else tuple(labels),
        max_length=_most_characters(oid, modifier),
        is_bytewise=not (is_citext or is_loose),
        is_generated=generated == "v",
    )


def _most_characters(oid: int, modifier: int) -> int | None:
    """Return the most characters of char(n), varchar(n) and name, which no row passes; None: any number."""
    if oid == _NAME:
        return 63
    return modifier - 4 if oid in _WITH_LENGTH and modifier >= 4 else None


def _why_unusable(content: dict[str, Any]) -> str | None:
    """Return why no query may read a table, or None. Rows that are not its own escape its constraints."""
    if content["row_security"]:
        return "has row level security, which hides rows; serve a copy without it"
    if content["has_children"]:
        return "has inheritance children, which its constraints do not cover; make it a partitioned table"
    if content["has_foreign"]:
        return "has a foreign table as a partition, of which this server enforces nothing; detach that"
    return _KINDS.get(content["kind"])


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
        (*table.place, table.unit.columns[0])
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
_HIDDEN_ROWS = """
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
    for schema, table in query(
        _HIDDEN_ROWS, ([schema for schema, _ in paths], [table for _, table in paths])
    ):
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
