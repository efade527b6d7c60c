"""A catalog query's tree to the one statement that answers it, its columns and its parameters' types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from .bind_query import QueryBinder
from .errors import CatalogRefusal, unsupported
from .names import Names
from .pg_types import BY_OID, TEXT, UNKNOWN, PgType
from .read_relation import CatalogRelations
from .scope import Bound
from .typed import TranslationContext, coerce

__all__ = ["CatalogPlan", "translate"]

_UNKNOWN = (0, UNKNOWN.oid)


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """`sql`: the engine's statement. `columns`: name, type, modifier. `settings`: names, after "!" if they must be."""

    sql: str
    columns: tuple[tuple[str, PgType, int], ...]
    parameters: tuple[PgType, ...]
    facts: frozenset[str]
    settings: tuple[str, ...]
    used: frozenset[int]


def translate(
    query: exp.Expr, declared: Sequence[int], names: Names, relations: CatalogRelations
) -> CatalogPlan:
    """Return what answers a query. `declared`: the types of parameters that the client has said, or 0.

    The tree stays as it is. Raises CatalogRefusal.
    """
    given: dict[int, PgType] = {}
    for number, oid in enumerate(declared, 1):
        if oid not in _UNKNOWN:
            if oid not in BY_OID:
                raise unsupported("a parameter of that type")
            given[number] = BY_OID[oid]
    # A parameter's type may follow from a later mention of it, so that earlier ones are bound again.
    found = dict(given)
    for _ in range(2):
        context = TranslationContext(names, dict(found))
        binder = QueryBinder(context, relations)
        bound = _finished(context, binder.query(query, None))
        found |= context.parameters
        for number in binder.numbers - found.keys():
            found[number] = TEXT
    count = max([len(declared), *found])
    used = frozenset(number for number in found if f"$p{number} " in bound.sql)
    return CatalogPlan(
        bound.sql,
        tuple(
            (name, typed.type, modifier)
            for (name, typed), modifier in zip(bound.columns, bound.modifiers, strict=True)
        ),
        tuple(found.get(number, TEXT) for number in range(1, count + 1)),
        frozenset(name for name in context.facts if f"${name} " in bound.sql),
        tuple(context.settings),
        used,
    )


def _finished(context: TranslationContext, bound: Bound) -> Bound:
    """Return the query with a type for every column."""
    if not bound.columns:
        raise unsupported("SELECT of no columns")
    columns = []
    for name, typed in bound.columns:
        if typed.type.family == "record":
            raise CatalogRefusal("a record as a result")
        columns.append((name, coerce(context, typed, TEXT) if typed.type is UNKNOWN else typed))
    return Bound(bound.sql, tuple(columns), bound.modifiers)
