"""What every Postgres 15 has: shapes of the system's relations, rows of types and functions, keywords."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from .pg_types import BY_OID, INT4, NAME, TIMESTAMPTZ, VARCHAR, PgType

__all__ = ["PG_CATALOG", "Builtin", "CatalogRelation", "load"]

PG_CATALOG = 11
"""The OID of the schema pg_catalog."""

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


@cache
def load() -> Builtin:
    """Return what the package holds; read once."""
    found = json.loads((files(__package__) / "builtin.json").read_text(encoding="utf-8"))
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
