"""Series, arrays in rows, lateral joins and recursion, for the sealed engine; `print_public` has the house rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..relation.expressions import Expr
from ..relation.relations import MAX_RECURSION, Lateral, Recursive, RecursiveRef, Relation, Series, Unnest
from ..relation.types import Kind
from .bind import engine_type
from .null_on_error import scalar_subquery

__all__ = ["ENDLESS", "FORMS", "ROUNDS"]

ENDLESS = "dpsql:54001"
"""What the engine is told to say of a recursion without end, and `sealed` reads back."""
ROUNDS = "rounds$"
"""The sequence that counts the rows of a statement's recursions; `sealed` makes it."""
_COUNTED = f"CASE WHEN nextval('{ROUNDS}') > {MAX_RECURSION} THEN error('{ENDLESS}') ELSE TRUE END"


class Printer(Protocol):
    """What prints the relations and expressions below a form."""

    def relation(self, node: Relation) -> str: ...
    def source(self, node: Relation) -> str: ...
    def row(self, node: Relation) -> list[str]: ...
    def expr(self, expr: Expr, row: Sequence[str]) -> str: ...
    def beside(self, count: int) -> AbstractContextManager[tuple[str, list[str]]]: ...


def _series(printer: Printer, node: Series) -> str:
    if isinstance(node.values, range):
        value, source = "range", "range(0)"
        if node.values:  # by its last number: the next one may be none of the engine's
            ends = f"{node.values[0]}, {node.values[-1]}, {node.values.step}"
            value, source = "generate_series", f"generate_series({ends})"
    else:
        value, source = "v", f"(SELECT unnest([{', '.join(map(str, node.values))}]::BIGINT[]) AS v) AS t"
    shown = f"make_timestamp({value})" if node.type.kind is Kind.TIMESTAMP else value
    return f"SELECT CAST({shown} AS {engine_type(node.type)}) AS c0 FROM {source}"


def _unnest(printer: Printer, node: Unnest) -> str:
    """Print rows beside their arrays' elements: the engine gives the shorter arrays NULL, as Postgres does."""
    row = printer.row(node.input)
    width = len(row)
    arrays = [printer.expr(array, row) for array in node.arrays]
    held = ", ".join(
        [*(f"{name} AS c{i}" for i, name in enumerate(row)), *(f"{a} AS a{i}" for i, a in enumerate(arrays))]
    )
    columns = [f"t.c{i}" for i in range(width)] + [f"unnest(t.a{i})" for i in range(len(arrays))]
    if node.numbered:
        most = f"greatest({', '.join(f'coalesce(len(t.a{i}), 0)' for i in range(len(arrays)))})"
        columns.append(f"unnest(range(1, CAST({most} AS BIGINT) + 1))")
    shown = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(columns))
    return f"SELECT {shown} FROM (SELECT {held} FROM {printer.source(node.input)}) AS t"


def _lateral(printer: Printer, node: Lateral) -> str:
    """Print a join whose right side reads the left row, which has a name of its own for it."""
    left = printer.relation(node.left)
    with printer.beside(len(node.left.columns)) as (name, own):
        right = printer.relation(node.right)
    other = [f"b.c{i}" for i in range(len(node.right.columns))]
    condition = printer.expr(node.condition, [*own, *other])
    shown = [f"{sql} AS c{i}" for i, sql in enumerate(own)]
    source = f"({left}) AS {name}"
    if node.kind == "scalar":
        return f"SELECT {', '.join([*shown, f'{scalar_subquery(right)} AS c{len(own)}'])} FROM {source}"
    if node.kind == "any":
        truths = f"SELECT {condition} AS v FROM ({right}) AS b"
        found = (
            "(SELECT CASE WHEN count(*) FILTER (WHERE q.v) > 0 THEN TRUE"
            f" WHEN count(*) FILTER (WHERE q.v IS NULL) = 0 THEN FALSE END FROM ({truths}) AS q)"
        )
        return f"SELECT {', '.join([*shown, f'{found} AS c{len(own)}'])} FROM {source}"
    held = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(other)) or "1 AS one"
    kept = f"(SELECT {held} FROM ({right}) AS b WHERE {condition}) AS b"
    word = "LEFT JOIN" if node.kind == "left" else "JOIN"
    shown += [f"{sql} AS c{len(own) + i}" for i, sql in enumerate(other)]
    return f"SELECT {', '.join(shown) or '1 AS one'} FROM {source} {word} LATERAL {kept} ON TRUE"


def _recursive(printer: Printer, node: Recursive) -> str:
    names = ", ".join(f"c{i}" for i in range(len(node.outputs)))
    types = [engine_type(column.type) for column in node.outputs]
    sides = []
    for side in (node.base, node.step):
        shown = ", ".join(
            f"CAST({name} AS {type_}) AS c{i}"
            for i, (name, type_) in enumerate(zip(printer.row(side), types, strict=True))
        )
        sides.append(f"SELECT {shown} FROM {printer.source(side)}")
    word = "UNION ALL" if node.all else "UNION"
    with_ = f"WITH RECURSIVE q{node.number}({names}) AS (({sides[0]}) {word} ({sides[1]} WHERE {_COUNTED}))"
    return f"SELECT {names} FROM ({with_} SELECT {names} FROM q{node.number}) AS t"


def _recursive_ref(printer: Printer, node: RecursiveRef) -> str:
    names = ", ".join(f"c{i}" for i in range(len(node.outputs)))
    return f"SELECT {names} FROM q{node.number}"


FORMS: dict[type[Relation], Callable[[Printer, Any], str]] = {
    Series: _series, Unnest: _unnest, Lateral: _lateral, Recursive: _recursive, RecursiveRef: _recursive_ref,
}  # fmt: skip
"""Kind of relation -> how it is printed."""
