"""Subqueries that read the row around them and have no form as a join: they stand above the release alone.

House rule: what can be a mark join, or a join with a grouped query, is one of these (`bind_subquery`), since that has a
meaning over people's rows too. Here is what is left; its own refusal is kept and said where people's rows come in.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import TRUE, Call, Expr, Field, conjunction
from ..relation.relations import Relation
from ..relation.types import BOOLEAN
from .attach import Attached, Attachment
from .bind_expression import Binder, call
from .outer import Outer

__all__ = ["any_row", "compared_rows", "lateral_value", "row_parts", "rows_compared"]


def lateral_value(binder: Binder, relation: Relation, refused: Refusal, position: Position | None) -> Expr:
    """Return the value of a subquery's one row, taken anew for each row around it."""
    attachment = Attachment("scalar", relation, TRUE, "scalar", position, refused)
    return Attached(relation.columns[0].type, binder.attach(attachment), 0, position=position)


def any_row(
    binder: Binder, relation: Relation, condition: Expr, refused: Refusal, position: Position | None
) -> Expr:
    """Return whether a condition is true for some row of a subquery; NULL as SQL's ANY has it.

    `condition` is over the subquery's row and, in `Outer` nodes, the row around.
    """
    attachment = Attachment("any", relation, condition, "any", position, refused)
    return Attached(BOOLEAN, binder.attach(attachment), 0, position=position)


def row_parts(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the values of a row `(a, b)` or `ROW(a, b)`; None: it is none."""
    while isinstance(node, exp.Paren):
        node = node.args["this"]
    if isinstance(node, exp.Tuple):
        return list(node.args.get("expressions") or [])
    if isinstance(node, exp.Anonymous) and str(node.args["this"]).lower() == "row":
        return list(node.args.get("expressions") or [])
    return None


_STRICT = {"lt": "lt", "le": "lt", "gt": "gt", "ge": "gt"}


def rows_compared(name: str, left: Sequence[Expr], right: Sequence[Expr], position: Position | None) -> Expr:
    """Return the comparison of two rows, value by value from the left, as in Postgres.

    Raises:
        Refusal: 42601 for rows of different lengths.
    """
    if len(left) != len(right) or not left:
        raise Refusal(
            f"a row of {len(left)} values is compared with one of {len(right)}",
            sqlstate="42601",
            position=position,
        )
    pairs = list(zip(left, right, strict=True))
    if name in ("eq", "ne"):
        equal = [call("eq", [a, b], position, said="=") for a, b in pairs]
        both = conjunction(tuple(sorted(set(equal), key=repr)))
        return both if name == "eq" else call("not", [both], position)
    found = call(name, [*pairs[-1]], position)
    for a, b in reversed(pairs[:-1]):
        same = Call(BOOLEAN, "and", (call("eq", [a, b], position), found), position=position)
        found = Call(BOOLEAN, "or", (call(_STRICT[name], [a, b], position), same), position=position)
    return found


def compared_rows(binder: Binder, node: exp.Expr, name: str) -> Expr | None:
    """Return `(a, b) = (c, d)`, or `x > ALL (SELECT …)`; None: it is neither."""
    left, right = row_parts(node.args["this"]), node.args["expression"]
    is_all = isinstance(right, exp.All)
    if isinstance(right, (exp.Any, exp.All)):
        inner = right.args["this"]
        while isinstance(inner, (exp.Paren, exp.Subquery)):
            inner = inner.args["this"]
        if not isinstance(inner, exp.Query):
            return None
        written = left if left is not None else [node.args["this"]]
        return _quantified(binder, node, name, [binder.bind(one) for one in written], inner, is_all=is_all)
    other = row_parts(right)
    if left is None and other is None:
        return None
    if left is None or other is None:
        raise Refusal(
            "a row of values is compared with another row", sqlstate="42883", position=binder.position(node),
            hint="(a, b) = (1, 2)",
        )  # fmt: skip
    position = binder.position(node)
    return rows_compared(name, [binder.bind(a) for a in left], [binder.bind(b) for b in other], position)


_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def _quantified(
    binder: Binder, node: exp.Expr, name: str, values: list[Expr], query: exp.Expr, *, is_all: bool
) -> Expr:
    """Return `x op ANY (SELECT …)`; ALL is no row for which the opposite is true."""
    position = binder.position(node)
    relation = binder.grammar.query(query, binder.inside())
    outside: list[Expr] = [Outer(value.type, value, position=value.position) for value in values]
    row: list[Expr] = [Field(c.type, i, c.name) for i, c in enumerate(relation.columns)]
    refused = Refusal(
        "ANY and ALL take a list here, not a query", sqlstate="0A000", position=position,
        hint="write x IN (SELECT …) or x NOT IN (SELECT …)",
    )  # fmt: skip
    condition = rows_compared(name if not is_all else _NEGATED[name], outside, row, position)
    found = any_row(binder, relation, condition, refused, position)
    return call("not", [found], position) if is_all else found
