"""Reads the schema of a Postgres database out of its catalog."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
)
from ..relation import types
from ..relation.catalog import Proved
from ..relation.types import SqlType, numeric
from .check_bounds import ValueRange, read_bounds
from .postgres_catalog import CATALOG, NAMED_TABLES, STATE, TABLES, UNREADABLE

__all__ = [
    "DEFAULT_SCHEMA",
    "FoundTable",
    "Query",
    "SchemaSnapshot",
    "find_tables",
    "path_of",
    "read_catalog",
    "read_state",
]

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
        rows = query(TABLES, ())
    else:
        paths = sorted({path_of(name) for name in names})
        rows = query(NAMED_TABLES, ([schema for schema, _ in paths], [table for _, table in paths]))
    return tuple(FoundTable(oid, (schema, table), lockable) for oid, schema, table, lockable in rows)


def read_catalog(query: Query, tables: tuple[FoundTable, ...], *, is_all: bool = False) -> SchemaSnapshot:
    """Return the schema of these tables, and what it takes to notice a change of it.

    `is_all`: these are all that the role may read, and the schema says which others there are.
    """
    oids = _array(table.oid for table in tables)
    ((text,),) = query(CATALOG.replace("{oids}", oids), ())
    content = json.loads(text)
    rows = content["tables"] or ()
    enums = {oid for row in rows for _, oid, kind, *_ in row["columns"] or () if kind == "e"}
    state_query = STATE.replace("{oids}", oids).replace("{types}", _array(sorted(enums)))
    collation = next((name for name in _COLLATIONS if name in (content["collations"] or ())), None)
    schema = LiveSchema(
        DEFAULT_SCHEMA,
        tuple(map(_read_table, rows)),
        dialect="postgres",
        case_collation=collation,
        unreadable=tuple(((schema, table), fix) for schema, table, fix in query(UNREADABLE, ()))
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
        tuple(columns),
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
