"""Values into the engine and out of it: parameters as it holds them, rows as Postgres' types have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from .errors import CatalogRefusal, unsupported
from .names import Names
from .pg_types import PgType

__all__ = ["NamedObject", "reader_of", "to_engine"]


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
        found = names.find(type_, value.strip())
        if found is None:
            code = "42P01" if type_.name == "regclass" else "42704"
            raise CatalogRefusal("no such object", message=f'"{value[:60]}" does not exist', sqlstate=code)
        return found
    if not isinstance(value, (bool, int, float, Decimal, str, bytes, date, datetime)):
        raise unsupported("a parameter of that type")
    return value
