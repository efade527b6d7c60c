"""FETCH FIRST … WITH TIES: rows ranked by their order, of which the first are kept."""

from __future__ import annotations

from dataclasses import replace

from ..errors import Position, Refusal
from ..relation.expressions import Call, Expr, Field, Literal, conjunction
from ..relation.relations import Filter, Project, Relation, Sort, Window, WindowCall
from ..relation.types import BIGINT, BOOLEAN

__all__ = ["with_ties", "without_last"]


def with_ties(relation: Relation, limit: int, offset: int, position: Position | None) -> Relation:
    """Return the first rows in a relation's order, and those that tie with the last of them.

    Raises:
        Refusal: 42601 without ORDER BY.
    """
    if not isinstance(relation, Sort):
        raise Refusal(
            "WITH TIES needs ORDER BY", sqlstate="42601", position=position,
            hint="ORDER BY says which rows tie; or write ROWS ONLY",
        )  # fmt: skip
    orders, width = relation.orders, len(relation.columns)
    names = ("rank", "row_number")
    calls = tuple(WindowCall(BIGINT, name, (), (), orders, None, position=position) for name in names)
    rank, number = (Field(BIGINT, width + index) for index in range(2))
    terms: list[Expr] = [Call(BOOLEAN, "le", (rank, Literal(BIGINT, limit + offset)))]
    if offset:
        terms.append(Call(BOOLEAN, "gt", (number, Literal(BIGINT, offset))))
    kept = Filter(
        Window(relation.input, calls, position=position), conjunction(tuple(terms)), position=position
    )
    return replace(relation, input=without_last(kept, width))


def without_last(relation: Relation, width: int) -> Project:
    """Return a relation with its first columns alone."""
    columns = relation.columns[:width]
    exprs = tuple(Field(column.type, i, column.name) for i, column in enumerate(columns))
    return Project(relation, exprs, tuple(column.name for column in columns), position=relation.position)
