"""Arrays above the release: one value of one, and all of them in rows.

`unnest(q)` is each row beside the numbers 1, 2, … up to how many values its array has, and the value of that number.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import TRUE, Call, Expr, Field, Literal
from ..relation.relations import Filter, Join, OutputColumn, Relation, Values
from ..relation.types import BOOLEAN, INTEGER, Kind
from .bind_expression import Binder, call
from .bind_percentile import MAX_FRACTIONS

__all__ = ["bind_cardinality", "bind_element", "bind_unnest", "refuse_array", "refuse_unnest", "unnested"]


def _array(binder: Binder, node: exp.Expr, what: str) -> Expr:
    """Return an expression that is an array. Raises Refusal (42804)."""
    value = binder.bind(node)
    if value.type.kind is not Kind.ARRAY:
        raise Refusal(
            f"{what} takes an array, not {value.type}", sqlstate="42804", position=binder.position(node),
            hint="several percentiles are one: percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY x)",
        )  # fmt: skip
    return value


def bind_element(binder: Binder, node: exp.Expr) -> Expr:
    """Return `q[i]` for a literal i."""
    value, parts = _array(binder, node.args["this"], "[…]"), node.args["expressions"]
    place = binder.bind(parts[0]) if len(parts) == 1 else None
    number = place.value if isinstance(place, Literal) else None
    if not isinstance(number, int) or isinstance(number, bool):
        raise Refusal("[…] takes one literal number, from 1", position=binder.position(node))
    # The parser has counted down by one; before the first there is nothing, as in Postgres.
    index = number + 1 if 0 <= number < MAX_FRACTIONS else MAX_FRACTIONS + 1
    return call("element", [value, Literal(INTEGER, index)], binder.position(node))


def bind_cardinality(binder: Binder, node: exp.Expr) -> Expr:
    """Return `cardinality(q)`."""
    return call(
        "cardinality", [_array(binder, node.args["expressions"][0], "cardinality")], binder.position(node)
    )


def bind_unnest(binder: Binder, node: exp.Expr) -> Expr:
    """Return a mark of `unnest(q)`, which `unnested` takes out; of a SELECT item alone."""
    value = _array(binder, node.args["this"], "unnest")
    assert value.type.element is not None
    return Call(value.type.element, "unnest", (value,), position=binder.position(node))


def refuse_unnest(binder: Binder, node: exp.Expr) -> Expr:
    """Refuse unnest inside another expression, or in another clause. Raises Refusal (0A000)."""
    raise Refusal(
        "unnest stands alone in a column of SELECT", sqlstate="0A000", position=binder.position(node),
        hint="use its rows in the query around: SELECT … FROM (SELECT unnest(q) AS x FROM …) AS t",
    )  # fmt: skip


def refuse_array(binder: Binder, node: exp.Expr) -> Expr:
    """Refuse an array that is no list of fractions. Raises Refusal (PV001)."""
    raise Refusal(
        "an array is given to percentile_cont and percentile_disc alone",
        position=binder.position(node), hint="give one value at a time",
    )  # fmt: skip


def unnested(relation: Relation, exprs: Sequence[Expr]) -> tuple[Relation, list[Expr]]:
    """Return a relation with a row for each value of the arrays that are to be unnested, and the expressions over it.

    As in Postgres, the longest array says how many rows there are, and the others have NULL.
    """
    arrays = list(dict.fromkeys(expr.args[0] for expr in exprs if _is_unnest(expr)))  # type: ignore[attr-defined]
    if not arrays:
        return relation, list(exprs)
    numbers = tuple((Literal(INTEGER, number),) for number in range(1, MAX_FRACTIONS + 1))
    index = Field(INTEGER, len(relation.columns), "n")
    joined = Join("cross", relation, Values(numbers, (OutputColumn(INTEGER, "n"),)), TRUE)
    counts = [call("cardinality", [array], array.position) for array in arrays]
    most = counts[0] if len(counts) == 1 else call("greatest", counts, None)
    kept = Filter(joined, Call(BOOLEAN, "le", (index, most)))
    return kept, [
        Call(expr.type, "element", (expr.args[0], index), position=expr.position)  # type: ignore[attr-defined]
        if _is_unnest(expr)
        else expr
        for expr in exprs
    ]


def _is_unnest(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == "unnest"
