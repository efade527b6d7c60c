"""The rows of the catalog's relations, what every Postgres has and what is declared; and the engine that holds them.

House rule: nothing here is a count of rows. `reltuples` is -1 (never analysed), sizes and statistics are 0 or absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb

from ..errors import EngineFailure
from ..seal import seal
from .builtin import Builtin, CatalogRelation
from .objects import DeclaredTable, Objects
from .pg_types import PgType

__all__ = ["CATALOG", "HELPER", "HELPERS", "helper_rows", "open_database", "relation_rows"]

_OWNER = 10
_HEAP, _BTREE = 2, 403
_CLASSES = {"pg_class": 1259, "pg_type": 1247, "pg_proc": 1255}
_DOUBLE = 701
_FUNCTIONS = (
    ("dp_low", "lower end of the error bar of a noisy number"),
    ("dp_high", "upper end of the error bar of a noisy number"),
    ("dp_avg_direct", "the mean by the textbook's mechanism"),
)

HELPERS: Mapping[str, str] = {
    "shown_class": "o BIGINT, name VARCHAR",
    "shown_type": "o BIGINT, name VARCHAR",
    "shown_proc": "o BIGINT, name VARCHAR",
    "named_class": "name VARCHAR, o BIGINT",
    "definition": "o BIGINT, full_text VARCHAR, bare VARCHAR",
    "readable": "o BIGINT",
    "keywords": "word VARCHAR, catcode VARCHAR, barelabel BOOLEAN, catdesc VARCHAR, baredesc VARCHAR",
}
"""Tables that functions look in: what an OID is shown as, and what a key is written as."""


def relation_rows(objects: Objects, builtin: Builtin) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of every relation of pg_catalog that has any, in its columns' order."""
    tables = objects.tables
    added: dict[str, Iterable[dict[str, Any]]] = {
        "pg_namespace": (
            {"oid": oid, "nspname": name, "nspowner": _OWNER} for name, oid in objects.schemas.items()
        ),
        "pg_class": _classes(objects, builtin),
        "pg_attribute": _attributes(tables, builtin),
        "pg_type": _row_types(objects),
        "pg_constraint": _constraints(objects),
        "pg_index": _indexes(tables, builtin),
        "pg_depend": _dependencies(tables),
        "pg_proc": _functions(objects),
        "pg_description": _descriptions(objects),
    }
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name in sorted({*builtin.rows, *added}):
        relation = builtin.relations["pg_catalog", name]
        rows = [tuple(row) for row in builtin.rows.get(name, ())]
        rows += [_row(relation, values) for values in added.get(name, ())]
        found[name] = rows
    return found


def _row(relation: CatalogRelation, values: dict[str, Any]) -> tuple[Any, ...]:
    """Return a row: what is not said is NULL, or 0, false or empty where a column is NOT NULL."""
    return tuple(
        values.get(name, _nothing(type_) if not_null else None)
        for name, type_, _, not_null in relation.columns
    )


def _nothing(type_: PgType) -> Any:
    if type_.element is not None:
        return []
    return {"boolean": False, "number": 0, "oid": 0}.get(type_.family, "")


def _classes(objects: Objects, builtin: Builtin) -> Iterator[dict[str, Any]]:
    same = {"relowner": _OWNER, "reltuples": -1.0, "relispopulated": True, "relpersistence": "p"}
    for relation in builtin.relations.values():
        yield same | {
            "oid": relation.oid, "relname": relation.name,
            "relnamespace": _schema_oid(relation.schema, objects, builtin),
            "relam": _HEAP if relation.kind == "r" else 0, "relkind": relation.kind,
            "relnatts": len(relation.columns), "relhasrules": relation.kind == "v", "relreplident": "n",
        }  # fmt: skip
    for table in objects.tables:
        keys = [key for key in table.constraints if key.kind != "f"]
        here = same | {"relnamespace": objects.schemas[table.schema]}
        is_referred = any(table.oid == key.referred for other in objects.tables for key in other.constraints)
        yield here | {
            "oid": table.oid, "relname": table.name, "reltype": table.row_type, "relam": _HEAP, "relkind": "r",
            "relnatts": len(table.attributes), "relhasindex": bool(keys), "relreplident": "d",
            "relhastriggers": is_referred or len(keys) < len(table.constraints),
        }  # fmt: skip
        for key in keys:
            yield here | {
                "oid": key.index, "relname": key.name, "relam": _BTREE, "relkind": "i",
                "relnatts": len(key.columns), "relreplident": "n",
            }  # fmt: skip


def _schema_oid(name: str, objects: Objects, builtin: Builtin) -> int:
    found = next((row[0] for row in builtin.rows["pg_namespace"] if row[1] == name), None)
    return objects.schemas[name] if found is None else int(found)


def _attributes(tables: list[DeclaredTable], builtin: Builtin) -> Iterator[dict[str, Any]]:
    types = {row[0]: row for row in builtin.rows["pg_type"]}
    names = [column[0] for column in builtin.relations["pg_catalog", "pg_type"].columns]
    copied = ("typlen", "typbyval", "typalign", "typstorage", "typcollation")
    wanted = [names.index(name) for name in copied]

    def attribute(
        owner: int, number: int, name: str, type_: int, modifier: int, not_null: bool
    ) -> dict[str, Any]:
        row = types.get(type_, types[25])
        length, by_value, align, storage, collation = (row[place] for place in wanted)
        return {
            "attrelid": owner, "attname": name, "atttypid": type_, "attstattarget": -1, "attlen": length,
            "attnum": number, "attndims": 1 if row[1].startswith("_") else 0, "attcacheoff": -1,
            "atttypmod": modifier, "attbyval": by_value, "attalign": align, "attstorage": storage,
            "attnotnull": not_null, "attislocal": True, "attcollation": collation,
        }  # fmt: skip

    for relation in builtin.relations.values():
        for number, (column, type_) in enumerate(
            zip(relation.columns, relation.declared_types, strict=True), 1
        ):
            modifier = column[2] if type_ == column[1].oid else -1  # a domain's is its own
            yield attribute(relation.oid, number, column[0], type_, modifier, column[3])
    for table in tables:
        for a in table.attributes:
            yield attribute(table.oid, a.number, a.name, a.type, a.modifier, a.is_not_null)
        by_number = {a.number: a for a in table.attributes}
        for key in table.constraints:
            for place, number in enumerate(key.columns if key.kind != "f" else (), 1):
                a = by_number[number]
                yield attribute(key.index, place, a.name, a.type, a.modifier, False)


def _row_types(objects: Objects) -> Iterator[dict[str, Any]]:
    same = {
        "typowner": _OWNER, "typisdefined": True, "typdelim": ",", "typalign": "d", "typstorage": "x",
        "typtypmod": -1, "typlen": -1,
    }  # fmt: skip
    for table in objects.tables:
        here = same | {"typnamespace": objects.schemas[table.schema]}
        yield here | {
            "oid": table.row_type, "typname": table.name, "typtype": "c", "typcategory": "C", "typrelid": table.oid,
            "typarray": table.row_array, "typinput": 2290, "typoutput": 2291, "typreceive": 2402, "typsend": 2403,
        }  # fmt: skip
        yield here | {
            "oid": table.row_array, "typname": f"_{table.name}", "typtype": "b", "typcategory": "A",
            "typelem": table.row_type, "typinput": 750, "typoutput": 751, "typreceive": 2400, "typsend": 2401,
            "typanalyze": 3816, "typsubscript": 6179,
        }  # fmt: skip


def _constraints(objects: Objects) -> Iterator[dict[str, Any]]:
    equal = 96
    for table in objects.tables:
        for key in table.constraints:
            is_reference = key.kind == "f"
            yield {
                "oid": key.oid, "conname": key.name, "connamespace": objects.schemas[table.schema],
                "contype": key.kind, "convalidated": True, "conrelid": table.oid, "conindid": key.index,
                "confrelid": key.referred, "conislocal": True, "connoinherit": True, "conkey": list(key.columns),
                "confupdtype": "a" if is_reference else " ", "confdeltype": "a" if is_reference else " ",
                "confmatchtype": "s" if is_reference else " ",
                "confkey": list(key.referred_columns) if is_reference else None,
                **({name: [equal] for name in ("conpfeqop", "conppeqop", "conffeqop")} if is_reference else {}),
            }  # fmt: skip


def _indexes(tables: list[DeclaredTable], builtin: Builtin) -> Iterator[dict[str, Any]]:
    classes = {row[6]: row[0] for row in builtin.rows["pg_opclass"] if row[1] == _BTREE and row[7]}
    for table in tables:
        collations = {a.number: 100 if a.type in (25, 1043) else 0 for a in table.attributes}
        types = {a.number: a.type for a in table.attributes}
        for key in table.constraints:
            if key.kind == "f":
                continue
            yield {
                "indexrelid": key.index, "indrelid": table.oid, "indnatts": len(key.columns),
                "indnkeyatts": len(key.columns), "indisunique": True, "indisprimary": key.kind == "p",
                "indimmediate": True, "indisvalid": True, "indisready": True, "indislive": True,
                "indkey": list(key.columns), "indcollation": [collations[number] for number in key.columns],
                "indclass": [classes.get(types[number], 0) for number in key.columns],
                "indoption": [0] * len(key.columns),
            }  # fmt: skip


def _dependencies(tables: list[DeclaredTable]) -> Iterator[dict[str, Any]]:
    for table in tables:
        for key in table.constraints:
            if key.kind != "f":
                yield {
                    "classid": 1259, "objid": key.index, "objsubid": 0, "refclassid": 2606, "refobjid": key.oid,
                    "refobjsubid": 0, "deptype": "i",
                }  # fmt: skip


def _functions(objects: Objects) -> Iterator[dict[str, Any]]:
    for name, _ in _FUNCTIONS:
        yield {
            "oid": objects.function_oid(name), "proname": name,
            "pronamespace": objects.schemas[objects.default_schema], "proowner": _OWNER, "prolang": 12,
            "procost": 1.0, "prokind": "f", "provolatile": "v", "proparallel": "u", "pronargs": 1,
            "prorettype": _DOUBLE, "proargtypes": [_DOUBLE], "prosrc": name,
        }  # fmt: skip


def _descriptions(objects: Objects) -> Iterator[dict[str, Any]]:
    for table in objects.tables:
        same = {"objoid": table.oid, "classoid": _CLASSES["pg_class"]}
        yield same | {"objsubid": 0, "description": table.comment}
        for attribute in table.attributes:
            if attribute.comment:
                yield same | {"objsubid": attribute.number, "description": attribute.comment}


def helper_rows(
    objects: Objects, builtin: Builtin, rows: dict[str, list[tuple[Any, ...]]]
) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of the tables of `HELPERS`; `rows`: what `relation_rows` gave."""
    schemas = {oid: name for oid, name, *_ in rows["pg_namespace"]}
    classes = [(row[0], row[1], schemas[row[2]]) for row in rows["pg_class"]]
    functions = [(row[0], row[1]) for row in rows["pg_proc"]]
    keys = [key for table in objects.tables for key in table.constraints]
    own = {table.row_type: (table.schema, table.name) for table in objects.tables}
    types = list(builtin.spelled.items())
    types += [(oid, objects.shown(*path)) for oid, path in own.items()]
    types += [(table.row_array, objects.shown(table.schema, table.name) + "[]") for table in objects.tables]
    visible = {name for _, name, schema in classes if schema == "pg_catalog"}
    return {
        "shown_class": [(oid, _shown(objects, schema, name, visible)) for oid, name, schema in classes],
        "shown_type": types,
        "shown_proc": sorted({*functions, *builtin.hidden_functions.items()}),
        "named_class": sorted(
            {(f"{schema}.{name}", oid) for oid, name, schema in classes}
            | {
                (f"{objects.written_schema}.{name}", oid)
                for oid, name, schema in classes
                if schema == objects.default_schema
            }
            | {
                (name, oid)
                for oid, name, schema in classes
                if schema == "pg_catalog" or (schema == objects.default_schema and name not in visible)
            }
        ),
        "definition": [(key.oid, key.definition, key.definition) for key in keys]
        + [(key.index, key.index_definition, key.bare_index_definition) for key in keys if key.kind != "f"],
        "readable": [(relation.oid,) for relation in builtin.relations.values() if relation.is_readable]
        + [(table.oid,) for table in objects.tables],
        "keywords": [tuple(row) for row in builtin.keywords],
    }


def _shown(objects: Objects, schema: str, name: str, visible: set[str]) -> str:
    if schema == "pg_catalog":
        return name
    if schema == objects.default_schema and name in visible:
        return f"{schema}.{name}"
    return objects.shown(schema, name)


# --- the sealed engine that holds them: in memory, one thread, no way out -----------------------------

CATALOG, HELPER = "c", "h"
"""The engine's schemas: of pg_catalog's relations, and of the tables that functions look in."""

_Tables = dict[str, list[tuple[Any, ...]]]
_MEMORY_MIB = 256


def open_database(
    rows: _Tables, helpers: _Tables, builtin: Builtin
) -> tuple[duckdb.DuckDBPyConnection, frozenset[str]]:
    """Return the engine with everything in it, and the names of the relations that have rows.

    `rows`, `helpers`: what `relations` makes. Raises EngineFailure.
    """
    database = duckdb.connect(":memory:")
    try:
        database.execute(f"CREATE SCHEMA {CATALOG}; CREATE SCHEMA {HELPER}")
        for name, found in rows.items():
            columns = builtin.relations["pg_catalog", name].columns
            shape = ", ".join(f'"{column}" {type_.holder}' for column, type_, *_ in columns)
            holders = [type_.holder for _, type_, *_ in columns]
            _fill(database, f"{CATALOG}.{name}", shape, holders, found)
        for name, found in helpers.items():
            holders = [column.split()[1] for column in HELPERS[name].split(", ")]
            _fill(database, f"{HELPER}.{name}", HELPERS[name], holders, found)
        seal(database, _MEMORY_MIB, {"max_expression_depth": 500})
    except duckdb.Error as error:
        database.close()
        raise EngineFailure(f"the system catalog cannot be made: {error}") from error
    return database, frozenset(rows)


def _fill(
    database: duckdb.DuckDBPyConnection,
    table: str,
    shape: str,
    holders: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
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
