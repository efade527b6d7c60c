"""What every Postgres 15 has: types, and what holds their values in the engine; shapes of relations, keywords."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from ..records import dataclass


@dataclass(frozen=True, slots=True)
class PgType:
    """A type. `holder`: the engine's type. `element`: an array's or a vector's; `array`: the array's number.

    `family`: text, number, oid (numbers and the names of objects), boolean, moment, array, or the type's own name.
    `fields`: a record's names and types.
    """

    oid: int
    name: str
    size: int
    holder: str
    family: str
    array: int = 0
    element: PgType | None = None
    fields: tuple[tuple[str, PgType], ...] = ()

    @property
    def is_text(self) -> bool:
        """text, varchar, name, "char" and what is written as they are."""
        return self.family == "text"

    @property
    def is_number(self) -> bool:
        """A number, an OID or the name of an object, which is a number inside."""
        return self.family in ("number", "oid")

    @property
    def is_integer(self) -> bool:
        """A number without a fraction."""
        return self.is_number and self.holder in ("SMALLINT", "INTEGER", "BIGINT")

    @property
    def lowest(self) -> int:
        """The place of an array's first item."""
        return 0 if self.name.endswith("vector") else 1

    @property
    def is_object(self) -> bool:
        """regclass and the like: an OID that is shown as a name."""
        return self.name.startswith("reg")


_SCALARS = (
    PgType(16, "bool", 1, "BOOLEAN", "boolean", 1000),
    PgType(17, "bytea", -1, "BLOB", "bytea"),
    PgType(18, '"char"', 1, "VARCHAR", "text", 1002),
    PgType(19, "name", 64, "VARCHAR", "text", 1003),
    PgType(20, "int8", 8, "BIGINT", "number", 1016),
    PgType(21, "int2", 2, "SMALLINT", "number", 1005),
    PgType(23, "int4", 4, "INTEGER", "number", 1007),
    PgType(24, "regproc", 4, "BIGINT", "oid"),
    PgType(25, "text", -1, "VARCHAR", "text", 1009),
    PgType(26, "oid", 4, "BIGINT", "oid", 1028),
    PgType(28, "xid", 4, "BIGINT", "oid"),
    PgType(114, "json", -1, "VARCHAR", "text"),
    PgType(194, "pg_node_tree", -1, "VARCHAR", "text"),
    PgType(700, "float4", 4, "FLOAT", "number", 1021),
    PgType(701, "float8", 8, "DOUBLE", "number", 1022),
    PgType(1033, "aclitem", 12, "VARCHAR", "text", 1034),
    PgType(1042, "bpchar", -1, "VARCHAR", "text"),
    PgType(1043, "varchar", -1, "VARCHAR", "text", 1015),
    PgType(1082, "date", 4, "DATE", "moment", 1182),
    PgType(1083, "time", 8, "TIME", "time", 1183),
    PgType(1114, "timestamp", 8, "TIMESTAMP", "moment", 1115),
    PgType(1184, "timestamptz", 8, "TIMESTAMP", "moment", 1185),
    PgType(1186, "interval", 16, "INTERVAL", "interval", 1187),
    PgType(1700, "numeric", -1, "DECIMAL(38, 6)", "number", 1231),
    PgType(2205, "regclass", 4, "BIGINT", "oid", 2210),
    PgType(2206, "regtype", 4, "BIGINT", "oid", 2211),
    PgType(2278, "void", 4, "VARCHAR", "void"),
    PgType(3802, "jsonb", -1, "VARCHAR", "text"),
    PgType(4089, "regnamespace", 4, "BIGINT", "oid"),
    PgType(4096, "regrole", 4, "BIGINT", "oid"),
)


def _array(element: PgType) -> PgType:
    return PgType(element.array, f"_{element.name}", -1, f"{element.holder}[]", "array", 0, element)


_FOUND = {type_.name: type_ for type_ in _SCALARS}
_VECTORS = (
    PgType(22, "int2vector", -1, "SMALLINT[]", "array", 0, _FOUND["int2"]),
    PgType(30, "oidvector", -1, "BIGINT[]", "array", 0, _FOUND["oid"]),
)
_ARRAYS = tuple(_array(type_) for type_ in _SCALARS if type_.array)
_ALL = (*_SCALARS, *_VECTORS, *_ARRAYS)
SPELLED = {
    "boolean": "bool", "bigint": "int8", "smallint": "int2", "integer": "int4", "int": "int4", "real": "float4",
    "float": "float8", "double precision": "float8", "decimal": "numeric", "character": "bpchar", "char": "bpchar",
    "character varying": "varchar", "char varying": "varchar", "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz", "time without time zone": "time", "time with time zone": "timetz",
}  # fmt: skip
"""A type's words in SQL -> its name in pg_type."""
_HELD_AS = {
    "string": "text", "regprocedure": "regproc", "regoper": "regproc", "regoperator": "regproc",
    "sql_identifier": "name", "cardinal_number": "int4", "character_data": "varchar",
    "yes_or_no": "varchar", "time_stamp": "timestamptz",
}  # fmt: skip

BY_NAME = MappingProxyType(
    {type_.name: type_ for type_ in _ALL} | {name: _FOUND[held] for name, held in _HELD_AS.items()}
)
"""A type by its name in pg_type; `"char"` with its quotes."""

_SHOWN_AS_TEXT = (869, 2277, 3220, 3361, 3402, 5017, 10028)
BY_OID: MappingProxyType[int, PgType] = MappingProxyType(
    {type_.oid: type_ for type_ in _ALL} | dict.fromkeys(_SHOWN_AS_TEXT, _FOUND["text"])
)
"""A type by its number. Types of columns that never hold anything (an address, a place in a log) are text here."""

BOOL, INT4, INT8, NUMERIC = (_FOUND[name] for name in ("bool", "int4", "int8", "numeric"))
TEXT, NAME, CHAR, VARCHAR = (_FOUND[name] for name in ("text", "name", '"char"', "varchar"))
OID, REGTYPE, TIMESTAMPTZ, INTERVAL = (_FOUND[name] for name in ("oid", "regtype", "timestamptz", "interval"))
UNKNOWN = PgType(705, "unknown", -2, "VARCHAR", "unknown")
"""A string or a NULL that takes the type it is used as."""
PSEUDO = MappingProxyType(
    {
        name: PgType(0, name, -2, "", "pseudo")
        for name in ("any", "anyarray", "anyelement", "anyint", "anynumber", "first")
    }
)
"""What functions are declared for where a type of their arguments decides."""

_RANKS = {
    name: rank
    for rank, name in enumerate(
        ("int2", "int4", "int8", "numeric", "float4", "float8", "xid", "regproc", "regtype", "regclass",
         "regnamespace", "regrole", "oid", "date", "timestamp", "timestamptz")
    )
}  # fmt: skip


def array_of(type_: PgType) -> PgType | None:
    """Return the array of a type; None where the catalog has none."""
    return BY_OID.get(type_.array) if type_.array else None


def record_of(fields: tuple[tuple[str, PgType], ...]) -> PgType:
    """Return the type of records of these names and types."""
    shape = ", ".join(f'"{name}" {type_.holder}' for name, type_ in fields)
    return PgType(2249, "record", -1, f"STRUCT({shape})", "record", fields=fields)


def wider(left: PgType, right: PgType) -> PgType | None:
    """Return the type that values of both take beside each other; None where there is none."""
    if left is UNKNOWN or left == right:
        return right
    if right is UNKNOWN:
        return left
    if left.element is not None and right.element is not None:
        return left if left.element.family == right.element.family else None
    if left.family != right.family and not (left.is_number and right.is_number):
        return None
    if left.is_text:  # Postgres casts between its texts either way of itself, so that the first one stays
        gives_way = left is CHAR or (left is VARCHAR and right is NAME)
        return right if gives_way else left
    return max(left, right, key=lambda type_: _RANKS.get(type_.name, 0))


# --- what every Postgres 15 has: shapes of the system's relations, rows of types and functions, keywords ----


_MODIFIERS = {13232: 2, 13234: 7}
_DOMAINS = {13221: INT4, 13224: VARCHAR, 13226: NAME, 13232: TIMESTAMPTZ, 13234: VARCHAR}
"""The information schema's own types; a client is told what they are made of, as Postgres does."""


@dataclass(frozen=True, slots=True)
class CatalogRelation:
    """A relation of the system's; `columns`: name, type, modifier, whether it is NOT NULL."""

    schema: str
    name: str
    kind: str
    oid: int
    is_readable: bool
    columns: tuple[tuple[str, PgType, int, bool], ...]
    declared_types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Builtin:
    """All of it. `rows`: by relation, in its columns' order; `spelled`: a type's OID -> its name in SQL."""

    relations: dict[tuple[str, str], CatalogRelation]
    rows: dict[str, list[list[Any]]]
    hidden_functions: dict[int, str]
    keywords: list[list[Any]]
    spelled: dict[int, str]


def data(name: str) -> str:
    """Return the text of a file of the package."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def sections(name: str) -> dict[str, str]:
    """Return what stands below each [heading] of a file of the package, its comments left out."""
    parts = re.split(
        r"^\[(.+)\]\n", re.sub(r"^--.*\n", "", data(name), flags=re.MULTILINE), flags=re.MULTILINE
    )
    return {heading: text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def load() -> Builtin:
    """Return what the package holds; read once."""
    found = json.loads(data("builtin.json"))
    relations = (_relation(*row) for row in found["relations"])
    return Builtin(
        {(relation.schema, relation.name): relation for relation in relations},
        found["rows"],
        dict(found["hidden_functions"]),
        found["keywords"],
        dict(found["spelled"]),
    )


def _relation(
    schema: str, name: str, kind: str, oid: int, row_type: int, is_readable: bool, columns: list[Any]
) -> CatalogRelation:
    typed = tuple(
        (column, _DOMAINS.get(type_) or BY_OID[type_], _MODIFIERS.get(type_, modifier), bool(not_null))
        for column, type_, modifier, not_null in columns
    )
    return CatalogRelation(
        schema, name, kind, oid, is_readable, typed, tuple(column[1] for column in columns)
    )
