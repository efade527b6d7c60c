"""Names of objects to OIDs, as Postgres reads the text of a regclass; and values into the engine and out of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb

from .errors import CatalogRefusal, unsupported
from .objects import OWNER
from .pg_types import BY_NAME, SPELLED, PgType

__all__ = ["NamedObject", "Names", "reader_of", "split_name", "to_engine"]

_MISSING = {"regclass": ("relation", "42P01"), "regproc": ("function", "42883")}
_PART = re.compile(r'"(?:[^"]|"")+"|[A-Za-z_\u0080-\uffff][\w$]*')
_PATH = re.compile(rf"\s*+(?:{_PART.pattern})\s*+(?:\.\s*+(?:{_PART.pattern})\s*+)*")


def split_name(text: str) -> tuple[str, ...]:
    """Return a name's parts. Raises CatalogRefusal: it is none."""
    if not _PATH.fullmatch(text):
        raise CatalogRefusal("a name that cannot be read", message="a name is not written right")
    return tuple(
        part[1:-1].replace('""', '"') if part[0] == '"' else part.lower() for part in _PART.findall(text)
    )


class Names:
    """Looks names up. `shown`: a family of names -> OID -> the name shown."""

    def __init__(self, database: duckdb.DuckDBPyConnection, default_schema: str) -> None:
        """`database`: what `relations` has opened; it is read at once."""

        def read(sql: str) -> list[tuple[Any, ...]]:
            return database.execute(sql).fetchall()

        self.classes: dict[str, int] = dict(read("FROM h.named_class"))
        # Of several functions of a name, the first one is meant.
        self.functions: dict[str, int] = {
            **dict(read("SELECT name, o FROM h.shown_proc ORDER BY o DESC")),
            **dict(read("SELECT proname, oid FROM c.pg_proc ORDER BY rowid DESC")),
        }
        self.schemas: dict[str, int] = dict(read("SELECT nspname, oid FROM c.pg_namespace"))
        types = read("SELECT oid, typnamespace, typname, typarray FROM c.pg_type")
        self.types = {(schema, name): oid for oid, schema, name, _ in types}
        self.arrays = {oid: array for oid, _, _, array in types}
        self.shown: dict[str, dict[int, str]] = {
            "regclass": dict(read("FROM h.shown_class")),
            "regtype": dict(read("FROM h.shown_type")),
            "regproc": dict(read("FROM h.shown_proc")),
            "regnamespace": {oid: name for name, oid in self.schemas.items()},
            "regrole": {10: OWNER},
        }
        self._spaces = (11, self.schemas[default_schema])

    def find(self, type_: PgType, text: str) -> int:
        """Return the OID that a text means as a value of `type_`. Raises CatalogRefusal: there is no such object."""
        found = self._find(type_, text.strip())
        if found is None:
            kind, code = _MISSING.get(type_.name, ("object", "42704"))
            message = f'{kind} "{text[:60]}" does not exist'
            raise CatalogRefusal("no such object", message=message, sqlstate=code)
        return found

    def _find(self, type_: PgType, text: str) -> int | None:
        if text.isdigit() and len(text) < 11:
            return int(text)
        if text == "-":
            return 0
        match type_.name:
            case "regclass":
                return self.classes.get(".".join(split_name(text)[-2:]))
            case "regtype":
                return self.type(text)
            case "regproc":
                return self.functions.get(split_name(text.partition("(")[0])[-1])
            case "regnamespace":
                return self.schemas.get(split_name(text)[-1])
            case _:
                return None

    def type(self, text: str) -> int | None:
        """Return a type's OID by its name in SQL or in pg_type."""
        is_array = text.endswith("[]")
        words = " ".join(text.removesuffix("[]").partition("(")[0].lower().split())
        if words in SPELLED:
            oid = self.types.get((11, SPELLED[words]))
        elif words in BY_NAME and text[:1] != '"':
            oid = BY_NAME[words].oid
        else:
            parts = split_name(text.removesuffix("[]"))
            spaces = (self.schemas.get(parts[-2], -1),) if len(parts) > 1 else self._spaces
            oid = next(
                (self.types[space, parts[-1]] for space in spaces if (space, parts[-1]) in self.types), None
            )
        return self.arrays.get(oid) if is_array and oid is not None else oid


# --- values: parameters as the engine holds them, rows as Postgres' types have them -------------------


@dataclass(frozen=True, slots=True)
class NamedObject:
    """A value of regclass and the like: its OID, and the name that it is shown as."""

    oid: int
    name: str


def reader_of(type_: PgType, names: Names, user: tuple[int, str]) -> Callable[[Any], Any] | None:
    """Return what makes a value of a type out of the engine's; None where they are the same. `user`: the role."""
    if type_.element is not None:
        item = reader_of(type_.element, names, user)
        if item is None:
            return None
        return lambda values: [None if value is None else item(value) for value in values]
    if type_.is_object:
        shown: Mapping[int, str] = names.shown.get(type_.name, {})
        if type_.name == "regrole":
            shown = {**shown, user[0]: user[1]}
        return lambda oid: NamedObject(oid, shown.get(oid, "-" if oid == 0 else str(oid)))
    return _READERS.get(type_.name)


def _with_zone(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)


def _decimal(value: Decimal) -> Decimal:
    whole = value.to_integral_value()
    return whole if whole == value else value.normalize()


_READERS: Mapping[str, Callable[[Any], Any]] = {"timestamptz": _with_zone, "numeric": _decimal}


def to_engine(value: object, type_: PgType, names: Names) -> object:
    """Return a parameter as the engine holds it. Raises CatalogRefusal: the name of no object, or another type."""
    if value is None:
        return None
    if isinstance(value, list):
        if type_.element is None:
            raise unsupported("an array for a single value")
        element = type_.element
        return [to_engine(item, element, names) for item in value]
    if type_.is_object and isinstance(value, str):
        return names.find(type_, value)
    if not isinstance(value, (bool, int, float, Decimal, str, bytes, date, datetime)):
        raise unsupported("a parameter of that type")
    return value
