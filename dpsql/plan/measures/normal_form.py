"""Aggregates in normal form: what is summed, over which rows, times what, plus what times the count.

Rows that several filters keep are told apart by disjoint masks.

Equal normal forms share one measure. Linearity is used only where the lattice arithmetic is exact and
the NULL rows are the same (soundness.md 1.3).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from ...errors import Refusal
from ...relation.expressions import Call, Expr, Literal
from ...relation.intervals import Environment, narrowed_facts
from ...relation.relations import AggregateCall
from ...relation.types import BOOLEAN
from ..privacy.rows import Units, holds_unit
from .bivariate import BIVARIATE
from .disjoint import are_disjoint
from .measurements import Mask
from .ranks import RANK_FUNCTIONS

__all__ = [
    "SPREAD",
    "VALUE_FUNCTIONS",
    "NormalizedAggregate",
    "both",
    "mask_count",
    "masks_of",
    "normal_form",
    "present",
    "share_counts",
]

SPREAD = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
"""Functions of one value that need its squares."""
VALUE_FUNCTIONS = ("sum", "avg", *SPREAD, "present")
"""Functions of a summed value; `present` is its count."""


@dataclass(frozen=True, slots=True)
class NormalizedAggregate:
    """An aggregate in normal form: function(factor · value + offset) over rows where `filter` is true.

    `value` None: the aggregate counts rows.
    """

    function: str
    value: Expr | None
    factor: Fraction
    offset: Fraction
    filter: Expr | None
    call: AggregateCall

    @property
    def values(self) -> tuple[Expr, ...]:
        """What is summed; of two values Y and X."""
        if self.function in BIVARIATE:
            return self.call.args
        return () if self.value is None else (self.value,)


_REFUSED = {
    "bool_and": ("bool_and is one person's yes or no", "COUNT(*) FILTER (WHERE NOT …) and compare"),
    "bool_or": ("bool_or is one person's yes or no", "COUNT(*) FILTER (WHERE …) and compare"),
}


_MEASURED = frozenset({"count", "regr_count", "avg_direct", *VALUE_FUNCTIONS, *RANK_FUNCTIONS, *BIVARIATE})
"""All others stand above the release alone (law L4)."""


def normal_form(call: AggregateCall, env: Environment, units: Units) -> NormalizedAggregate:
    """Return an aggregate's normal form; `units` are the columns that hold the owner, by its own columns."""
    if call.function in _REFUSED:
        said, hint = _REFUSED[call.function]
        raise Refusal(said, position=call.position, hint=hint)
    if call.function not in _MEASURED:
        raise Refusal(
            f"{call.function}() over people's rows would show one person's values", position=call.position,
            hint=f"aggregate the people's rows in a subquery first, and use {call.function}() on its result",
        )  # fmt: skip
    one, zero = Fraction(1), Fraction(0)
    if call.function == "count":
        if not call.args:
            return NormalizedAggregate("count", None, one, zero, call.filter, call)
        arg = call.args[0]
        if call.distinct:
            if holds_unit(call.args, units):
                return NormalizedAggregate("units", None, one, zero, call.filter, call)
            if len(call.args) > 1:
                raise Refusal(
                    "DISTINCT takes one expression inside an aggregate", sqlstate="0A000", position=call.position,
                    hint="join the columns: COUNT(DISTINCT a || '-' || b); or count people by all columns of their "
                    "key: COUNT(DISTINCT (a, b))",
                )  # fmt: skip
            if arg.type.is_float:
                raise Refusal(
                    "distinct values of a floating-point column are not counted",
                    sqlstate="PV001",
                    position=call.position,
                    hint="round or cast it to numeric first",
                )
            return NormalizedAggregate("distinct", arg, one, zero, call.filter, call)
        return NormalizedAggregate("count", None, one, zero, both(call.filter, present(arg, env)), call)
    if call.distinct:
        raise Refusal(
            f"{call.function.upper()}(DISTINCT …) is not answered",
            position=call.position,
            hint="leave out DISTINCT",
        )
    if call.function == "mode":
        return NormalizedAggregate("mode", call.args[0], one, zero, call.filter, call)
    if call.function in RANK_FUNCTIONS:
        if not (call.args[0].type.is_number or call.args[0].type.is_temporal):
            raise Refusal(
                f"{call.function.upper()} of {call.args[0].type} is one person's value",
                position=call.position,
                hint="it is answered for numbers, dates and timestamps; of others it never will be: the value is "
                "somebody's own",
            )
        return NormalizedAggregate("rank", call.args[0], one, zero, call.filter, call)
    if call.function == "regr_count":
        rows = both(call.filter, reduce(both, (present(arg, env) for arg in call.args), None))
        return NormalizedAggregate("count", None, one, zero, rows, call)
    if call.function in BIVARIATE:
        return NormalizedAggregate(call.function, None, one, zero, call.filter, call)
    if call.function == "avg_direct":
        return NormalizedAggregate("direct", call.args[0], one, zero, call.filter, call)
    chosen = _chosen(call, env)
    if chosen is not None:
        return chosen
    value, factor, offset = _linear(call.args[0], env)
    return NormalizedAggregate(call.function, value, factor, offset, call.filter, call)


def share_counts(wanted: list[NormalizedAggregate]) -> list[NormalizedAggregate]:
    """Read COUNT(x) beside SUM(x) or AVG(x) of the same rows as the count that their pair carries."""
    summed = {(want.value, want.call.filter) for want in wanted if want.function in VALUE_FUNCTIONS}
    shared = []
    for want in wanted:
        args = want.call.args
        nullable = want.function == "count" and args and want.filter != want.call.filter
        if nullable and (args[0], want.call.filter) in summed:
            want = replace(want, function="present", value=args[0], filter=want.call.filter)
        shared.append(want)
    return shared


def both(left: Expr | None, right: Expr | None) -> Expr | None:
    if left is None or right is None:
        return right if left is None else left
    return Call(BOOLEAN, "and", tuple(sorted((left, right), key=repr)))


def present(arg: Expr, env: Environment) -> Expr | None:
    if not narrowed_facts(arg, env).nullable:
        return None
    return Call(BOOLEAN, "not", (Call(BOOLEAN, "is_null", (arg,)),))


def _chosen(call: AggregateCall, env: Environment) -> NormalizedAggregate | None:
    """Read SUM(CASE WHEN p THEN x ELSE 0 END) as SUM(x) FILTER (WHERE p), and of a number c as c times a count.

    Beside SUM(x) the two are then disjoint parts of one measure (soundness.md 1.5).
    """
    arg = call.args[0]
    if call.function != "sum" or not isinstance(arg, Call) or arg.function != "case" or len(arg.args) != 3:
        return None
    condition, then, other = arg.args
    if not isinstance(other, Literal) or other.value not in (0, None):
        return None
    where = both(call.filter, condition)
    if not isinstance(then, Literal):
        return NormalizedAggregate("sum", *_linear(then, env), where, call)
    if isinstance(then.value, bool) or not isinstance(then.value, (int, Fraction)):
        return None
    return NormalizedAggregate("weighted_count", None, Fraction(then.value), Fraction(0), where, call)


def _linear(expr: Expr, env: Environment) -> tuple[Expr, Fraction, Fraction]:
    """Split exact `factor · value + offset` with literal numbers off an expression."""
    factor, offset = Fraction(1), Fraction(0)
    while isinstance(expr, Call) and narrowed_facts(expr, env).grid is not None:
        if expr.type.is_temporal or any(arg.type.is_temporal for arg in expr.args):
            break
        numbers = [_number(arg) for arg in expr.args]
        if expr.function in ("add", "sub") and numbers[1] is not None and not expr.type.is_temporal:
            sign = -1 if expr.function == "sub" else 1
            offset, expr = offset + factor * sign * numbers[1], expr.args[0]
        elif expr.function == "add" and numbers[0] is not None:
            offset, expr = offset + factor * numbers[0], expr.args[1]
        elif expr.function == "sub" and numbers[0] is not None:
            offset, factor, expr = offset + factor * numbers[0], -factor, expr.args[1]
        elif expr.function == "mul" and (numbers[0] is not None or numbers[1] is not None):
            number, rest = (
                (numbers[1], expr.args[0]) if numbers[1] is not None else (numbers[0], expr.args[1])
            )
            assert number is not None
            factor, expr = factor * number, rest
        elif expr.function == "neg":
            factor, expr = -factor, expr.args[0]
        else:
            break
        if expr.type.is_temporal:
            break
    return expr, factor, offset


def _number(expr: Expr) -> Fraction | None:
    if (
        isinstance(expr, Literal)
        and isinstance(expr.value, (int, Fraction))
        and not isinstance(expr.value, bool)
    ):
        return Fraction(expr.value)
    return None


# --- disjoint masks for filters: the truth assignments that a row can have (soundness.md 1.5) -----------


def _masks(filters: Sequence[Expr], *, rest: bool) -> list[Mask]:
    """Return disjoint masks whose unions give every filter (and, with `rest`, all rows)."""
    masks: list[Mask] = []
    for truth in itertools.product((True, False), repeat=len(filters)):
        if not any(truth) and not rest:
            continue
        chosen = [filters[i] for i in range(len(filters)) if truth[i]]
        if any(are_disjoint(a, b) for a, b in itertools.combinations(chosen, 2)):
            continue
        masks.append(Mask(tuple(zip(filters, truth, strict=True))))
    return masks


def mask_count(filters: Sequence[Expr], rest: bool) -> int:
    """Return how many masks there are, without building more than the limits."""
    return 10**6 if len(filters) > 12 and not _all_disjoint(filters) else len(masks_of(filters, rest))


def _all_disjoint(filters: Sequence[Expr]) -> bool:
    return all(are_disjoint(a, b) for a, b in itertools.combinations(filters, 2))


def masks_of(filters: Sequence[Expr], rest: bool) -> list[Mask]:
    if not _all_disjoint(filters) or len(filters) < 2:
        return _masks(filters, rest=rest)
    masks = [Mask(tuple((f, f is chosen) for f in filters)) for chosen in filters]
    return [*masks, Mask(tuple((f, False) for f in filters))] if rest else masks
