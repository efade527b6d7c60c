"""The rows of the catalog's relations, what every Postgres has and what is declared; and the engine that holds them.

House rule: nothing here is a count of rows. `reltuples` is -1 (never analysed), sizes and statistics are 0 or absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from ..errors import EngineFailure
from ..seal import seal
from .objects import Objects
from .pg_types import Builtin, PgType

__all__ = ["FILLED", "open_database"]

FILLED = frozenset({"pg_attribute", "pg_class", "pg_constraint", "pg_depend", "pg_index"})
"""Relations that have rows by what is declared alone."""
_MEMORY_MIB = 256
_FUNCTIONS = ("dp_low", "dp_high", "dp_avg_direct")

_GIVEN = {
    "declared_schema": "oid BIGINT, name VARCHAR, written VARCHAR",
    "relation": "oid BIGINT, schema VARCHAR, name VARCHAR, kind VARCHAR, is_readable BOOLEAN, row_type BIGINT,"
    " row_array BIGINT, comment VARCHAR",
    "attribute": "owner BIGINT, number INTEGER, name VARCHAR, type BIGINT, modifier INTEGER, not_null BOOLEAN,"
    " comment VARCHAR",
    "key": "oid BIGINT, owner BIGINT, name VARCHAR, kind VARCHAR, places SMALLINT[], index BIGINT, referred BIGINT,"
    " referred_places SMALLINT[], definition VARCHAR, index_definition VARCHAR, bare_definition VARCHAR",
    "own_function": "oid BIGINT, name VARCHAR",
    "shown_type": "o BIGINT, name VARCHAR",
    "shown_proc": "o BIGINT, name VARCHAR",
    "keywords": "word VARCHAR, catcode VARCHAR, barelabel BOOLEAN, catdesc VARCHAR, baredesc VARCHAR",
}
"""Tables of the engine that the rest is made of: the system's relations and the declared ones, and their columns.

`written`: what the database calls the schema of names without one; NULL for others. `row_type`: 0 for the system's.
"""


def _given(objects: Objects, builtin: Builtin) -> dict[str, Sequence[tuple[Any, ...]]]:
    """Return the rows of the tables of `_GIVEN`."""
    system, tables = list(builtin.relations.values()), objects.tables
    return {
        "declared_schema": [
            (oid, name, objects.written_schema if name == objects.default_schema else None)
            for name, oid in objects.schemas.items()
        ],
        "relation": [
            *((one.oid, one.schema, one.name, one.kind, one.is_readable, 0, 0, None) for one in system),
            *(
                (one.oid, one.schema, one.name, "r", True, one.row_type, one.row_array, one.comment)
                for one in tables
            ),
        ],
        "attribute": [
            *(
                (one.oid, number, name, declared, modifier if declared == type_.oid else -1, not_null, None)
                for one in system
                for number, ((name, type_, modifier, not_null), declared) in enumerate(
                    zip(one.columns, one.declared_types, strict=True), 1
                )
            ),
            *(
                (one.oid, a.number, a.name, a.type, a.modifier, a.is_not_null, a.comment)
                for one in tables
                for a in one.attributes
            ),
        ],
        "key": [
            (key.oid, one.oid, key.name, key.kind, list(key.columns), key.index, key.referred,
             list(key.referred_columns), key.definition, key.index_definition, key.bare_index_definition)
            for one in tables
            for key in one.constraints
        ],
        "own_function": [(objects.function_oid(name), name) for name in _FUNCTIONS],
        "shown_type": list(builtin.spelled.items()),
        "shown_proc": list(builtin.hidden_functions.items()),
        "keywords": [tuple(row) for row in builtin.keywords],
    }  # fmt: skip


# Rows stand in the order in which Postgres makes them: a table, then its indexes.
_MADE = """
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

CREATE TABLE h.shown_class AS SELECT o, CASE WHEN schema = 'pg_catalog' THEN name
    WHEN is_default AND is_hidden THEN schema || '.' || name
    WHEN is_default THEN h.quoted(name) ELSE h.quoted(schema) || '.' || h.quoted(name) END AS name
FROM h.class;

CREATE TABLE h.named_class AS SELECT schema || '.' || name AS name, o FROM h.class
UNION SELECT written || '.' || name, o FROM h.class WHERE is_default
UNION SELECT name, o FROM h.class WHERE schema = 'pg_catalog' OR (is_default AND NOT is_hidden)
ORDER BY ALL;

INSERT INTO h.shown_type SELECT r.row_type, s.name FROM h.found AS r JOIN h.shown_class AS s ON s.o = r.oid
WHERE r.is_declared ORDER BY r.place;
INSERT INTO h.shown_type SELECT r.row_array, s.name || '[]' FROM h.found AS r JOIN h.shown_class AS s ON s.o = r.oid
WHERE r.is_declared ORDER BY r.place;

INSERT INTO h.shown_proc SELECT oid, proname FROM c.pg_proc EXCEPT FROM h.shown_proc;

CREATE TABLE h.definition AS SELECT oid AS o, definition AS full_text, definition AS bare FROM h.key
UNION ALL SELECT index, index_definition, bare_definition FROM h.key WHERE kind <> 'f';

CREATE TABLE h.readable AS SELECT oid AS o FROM h.relation WHERE is_readable;
"""
"""What makes the other rows; h.named_class has what an object may be called, the tables shown_… what it is shown as."""


# --- the sealed engine: in memory, one thread, no way out -----------------------------------------------


def open_database(objects: Objects, builtin: Builtin) -> duckdb.DuckDBPyConnection:
    """Return the engine with everything in it: pg_catalog's relations in `c`, what functions look in in `h`.

    Raises EngineFailure.
    """
    database = duckdb.connect(":memory:")
    try:
        database.execute("CREATE SCHEMA c; CREATE SCHEMA h")
        for name in FILLED.union(builtin.rows):
            columns = builtin.relations["pg_catalog", name].columns
            shape = ", ".join(
                f'"{column}" {type_.holder}{_default(type_) if not_null else ""}'
                for column, type_, _, not_null in columns
            )
            holders = [type_.holder for _, type_, *_ in columns]
            _fill(database, f"c.{name}", shape, holders, builtin.rows.get(name, ()))
        for name, rows in _given(objects, builtin).items():
            holders = [column.split()[1] for column in _GIVEN[name].split(", ")]
            _fill(database, f"h.{name}", _GIVEN[name], holders, rows)
        database.execute(_MADE)
        seal(database, _MEMORY_MIB, {"max_expression_depth": 500})
    except duckdb.Error as error:
        database.close()
        raise EngineFailure(f"the system catalog cannot be made: {error}") from error
    return database


def _default(type_: PgType) -> str:
    """Return what a column that is NOT NULL holds where nothing is said."""
    nothing = {"boolean": "false", "number": "0", "oid": "0", "array": "[]"}
    return f" DEFAULT {nothing.get(type_.family, repr(''))}"


def _fill(
    database: duckdb.DuckDBPyConnection,
    table: str,
    shape: str,
    holders: Sequence[str],
    rows: Sequence[Sequence[Any]],
) -> None:
    database.execute(f"CREATE TABLE {table} ({shape})")
    if not rows:
        return
    # A column that is one value throughout (most are) is written as a constant; the first one never is.
    parts: list[str] = []
    values: list[Any] = []
    for holder, column in zip(holders, zip(*rows, strict=True), strict=True):
        first = column[0]
        if parts and all(value is None for value in column):
            parts.append(f"CAST(NULL AS {holder})")
            continue
        is_constant = bool(parts) and not isinstance(first, list) and all(value == first for value in column)
        values.append(first if is_constant else list(column))
        place = f"${len(values)}"
        parts.append(f"CAST({place if is_constant else f'unnest({place})'} AS {holder})")
    database.execute(f"INSERT INTO {table} SELECT {', '.join(parts)}", values)
