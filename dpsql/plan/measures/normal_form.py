"""Aggregates in normal form: what is summed, over which rows, times what, plus what times the count.

Rows that several filters keep are told apart by disjoint masks.

Equal normal forms share one measure. Linearity is used only where the lattice arithmetic is exact and
the NULL rows are the same (soundness.md 1.3).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from ...cache import Cache
from ...errors import Refusal
from ...records import dataclass
from ...relation.aggregates import Asks, Needs
from ...relation.expressions import Call, Expr
from ...relation.intervals import Environment, narrowed_facts
from ...relation.relations import AggregateCall
from ...relation.types import BOOLEAN, Kind
from ..privacy.contradiction import Filter
from ..privacy.rows import Units, holds_unit
from .measurements import Mask

_COUNT, _NOTHING = "count", Needs()


@dataclass(frozen=True, slots=True)
class NormalizedAggregate:
    """An aggregate in normal form: function(factor · value + offset) over rows where `filter` is true.

    `value` None: the aggregate counts rows or people, or is of two values. `function`: of sums that of the call, or
    `present`, the count of the values; else what is measured. `needs`: of what it is made besides that count.
    """

    function: str
    value: Expr | None
    factor: Fraction
    offset: Fraction
    filter: Expr | None
    call: AggregateCall
    needs: Needs = _NOTHING

    @property
    def values(self) -> tuple[Expr, ...]:
        """What is summed; of two values Y and X."""
        if self.is_of_pair:
            return self.call.args
        return () if self.value is None else (self.value,)

    @property
    def counts_rows(self) -> bool:
        """Whether it is a number of rows, times its factor."""
        return self.function == _COUNT

    @property
    def is_sum_alone(self) -> bool:
        """Whether it is a sum, and nothing is added to it for each row."""
        return self.function == "sum" and self.offset == 0

    @property
    def is_of_value(self) -> bool:
        """Whether it is made of sums of one value."""
        return len(self.needs.powers) == 1

    @property
    def is_of_pair(self) -> bool:
        """Whether it is made of sums of two values."""
        return len(self.needs.powers) > 1

    @property
    def is_spread(self) -> bool:
        """Whether it needs the squares of one value."""
        return self.is_of_value and self.needs.powers[0] > 1


def normal_form(call: AggregateCall, env: Environment, units: Units) -> NormalizedAggregate:
    """Return an aggregate's normal form; `units` are the columns that hold the owner, by its own columns."""
    row = call.row
    if row.refused is not None:
        said, hint = row.refused
        raise Refusal(said, position=call.position, hint=hint)
    form = _FORMS.get(row.asks)
    if form is None:  # law L4
        raise Refusal(
            f"{call.function}() over people's rows would show one person's values", position=call.position,
            hint=f"aggregate the people's rows in a subquery first, and use {call.function}() on its result",
        )  # fmt: skip
    if call.distinct and row.asks is not Asks.COUNT:
        raise Refusal(
            f"{call.function.upper()}(DISTINCT …) is not answered",
            position=call.position,
            hint="of values that somebody has: SELECT SUM(x) FROM (SELECT x, COUNT(*) AS n FROM … GROUP BY x) AS t "
            "WHERE n >= 1",
        )
    return form(call, env, units)


def _plain(function: str, value: Expr | None, call: AggregateCall) -> NormalizedAggregate:
    """Return what is measured of a value as it stands."""
    return NormalizedAggregate(function, value, Fraction(1), Fraction(0), call.filter, call)


def _counted(call: AggregateCall, env: Environment, units: Units) -> NormalizedAggregate:
    """Count rows on which all arguments are there, or what is told apart."""
    if not call.distinct:
        there = reduce(both, (present(arg, env) for arg in call.args), None)
        return replace(_plain(_COUNT, None, call), filter=both(call.filter, there))
    if holds_unit(call.args, units):
        return _plain("units", None, call)
    if len(call.args) > 1:
        raise Refusal(
            "DISTINCT takes one expression inside an aggregate", sqlstate="0A000", position=call.position,
            hint="join the columns: COUNT(DISTINCT a || '-' || b); or count people by all columns of their "
            "key: COUNT(DISTINCT (a, b))",
        )  # fmt: skip
    if call.args[0].type.is_float:
        raise Refusal(
            "distinct values of a floating-point column are not counted",
            sqlstate="PV001",
            position=call.position,
            hint="round or cast it to numeric first",
        )
    return _plain("distinct", call.args[0], call)


def _ranked(call: AggregateCall, env: Environment, units: Units) -> NormalizedAggregate:
    type_ = call.args[0].type
    if not (type_.is_number or type_.is_temporal or type_.kind is Kind.TIME):
        raise Refusal(
            f"{call.function.upper()} of {call.args[0].type} is one person's value",
            position=call.position,
            hint="it is answered for numbers, dates, timestamps and times; of others it never will be: the value is "
            "somebody's own",
        )
    return _plain("rank", call.args[0], call)


def _summed(call: AggregateCall, env: Environment, units: Units) -> NormalizedAggregate:
    needs = call.row.needs
    if call.row.is_paired:
        return replace(_plain(call.function, None, call), needs=needs)
    chosen = _chosen(call, env)
    if chosen is not None:
        return chosen
    return NormalizedAggregate(call.function, *_linear(call.args[0], env), call.filter, call, needs)


_FORMS: dict[Asks, Callable[[AggregateCall, Environment, Units], NormalizedAggregate]] = {
    Asks.COUNT: _counted,
    Asks.SUMS: _summed,
    Asks.RANK: _ranked,
    Asks.MODE: lambda call, env, units: _plain("mode", call.args[0], call),
    Asks.DIRECT: lambda call, env, units: _plain("direct", call.args[0], call),
}
"""What an aggregate takes of people's rows -> its normal form. All others stand above the release alone."""


def share_counts(wanted: list[NormalizedAggregate]) -> list[NormalizedAggregate]:
    """Read COUNT(x) beside SUM(x) or AVG(x) of the same rows as the count that their pair carries."""
    summed = {(want.value, want.call.filter) for want in wanted if want.is_of_value}
    shared = []
    for want in wanted:
        rows, args = want.call.filter, want.call.args if want.call.row.asks is Asks.COUNT else ()
        for arg in args:
            if want.counts_rows and want.filter == both(rows, _known(arg)) and (arg, rows) in summed:
                want = replace(want, function="present", value=arg, filter=rows, needs=Needs((1,)))
        shared.append(want)
    return shared


def both(left: Expr | None, right: Expr | None) -> Expr | None:
    if left is None or right is None:
        return right if left is None else left
    return Call(BOOLEAN, "and", tuple(sorted((left, right), key=repr)))


def present(arg: Expr, env: Environment) -> Expr | None:
    if not narrowed_facts(arg, env).nullable:
        return None
    return _known(arg)


def _known(arg: Expr) -> Expr:
    return Call(BOOLEAN, "not", (Call(BOOLEAN, "is_null", (arg,)),))


def _chosen(call: AggregateCall, env: Environment) -> NormalizedAggregate | None:
    """Read SUM(CASE WHEN p THEN x ELSE 0 END) as SUM(x) FILTER (WHERE p), and of a number c as c times a count.

    Beside SUM(x) the two are then disjoint parts of one measure (soundness.md 1.5).
    """
    arg = call.args[0]
    if call.function != "sum" or not arg.calls("case") or len(arg.args) != 3:
        return None
    condition, then, other = arg.args
    if not other.is_constant or other.constant not in (0, None):
        return None
    where = both(call.filter, condition)
    if not then.is_constant:
        return NormalizedAggregate("sum", *_linear(then, env), where, call, call.row.needs)
    number = _number(then)
    return None if number is None else NormalizedAggregate(_COUNT, None, number, Fraction(0), where, call)


def _linear(expr: Expr, env: Environment) -> tuple[Expr, Fraction, Fraction]:
    """Split exact `factor · value + offset` with literal numbers off an expression."""
    factor, offset = Fraction(1), Fraction(0)
    while expr.args and narrowed_facts(expr, env).grid is not None:
        if expr.type.is_temporal or any(arg.type.is_temporal for arg in expr.args):
            break
        sign = -1 if expr.calls("sub", "neg") else 1
        known = [(i, number) for i, arg in enumerate(expr.args) if (number := _number(arg)) is not None]
        if expr.calls("neg"):
            factor, expr = -factor, expr.args[0]
        elif not known or not expr.calls("add", "sub", "mul"):
            break
        else:
            place, number = known[-1]
            if expr.calls("mul"):
                factor = factor * number
            elif place == 1:
                offset += factor * sign * number
            else:
                offset, factor = offset + factor * number, factor * sign
            expr = expr.args[1 - place]
        if expr.type.is_temporal:
            break
    return expr, factor, offset


def _number(expr: Expr) -> Fraction | None:
    value = expr.exact
    return value if isinstance(value, Fraction) else None


# --- disjoint masks for filters: the truth assignments that a row can have (soundness.md 1.5) -----------


_MOST_FILTERS = 12
"""Of so many that are not all disjoint there may be masks; of more there would be too many to look for."""


def masks_of(filters: Sequence[Expr], rest: bool, most: int) -> list[Mask] | None:
    """Return disjoint masks whose unions give every filter (and, with `rest`, all rows); None of more than `most`."""
    key = *map(id, filters), rest, most
    known = _lately.get(key)
    if known is None:
        known = filters, _masks_of(filters, rest, most)
        _lately.put(key, known)
    return known[1]


_lately: Cache[tuple[Sequence[Expr], list[Mask] | None]] = Cache(64)
"""The masks of late, by the numbers of the filters' objects, which are kept with them: of one statement several sets of
measurements are tried."""


def _masks_of(filters: Sequence[Expr], rest: bool, most: int) -> list[Mask] | None:
    if len(filters) > most:
        return None
    read = [Filter(one) for one in filters]
    pairs = itertools.combinations(range(len(filters)), 2)
    if len(filters) > _MOST_FILTERS:
        if not all(read[a].is_disjoint(read[b]) for a, b in pairs):
            return None
        apart = [frozenset(range(a)) for a in range(len(filters))]
    else:
        beside = {(a, b) for a, b in pairs if read[a].is_disjoint(read[b])}
        apart = [frozenset(a for a in range(b) if (a, b) in beside) for b in range(len(filters))]
    truths = (truth for truth in _truths(apart, ()) if rest or any(truth))
    found = list(itertools.islice(truths, most + 1))
    if len(found) > most:
        return None
    return [Mask(tuple(zip(filters, truth, strict=True))) for truth in found]


def _truths(apart: Sequence[frozenset[int]], truth: tuple[bool, ...]) -> Iterator[tuple[bool, ...]]:
    """Yield which filters can be true together, of all. `apart`: of each, those before it of which none can be."""
    place = len(truth)
    if place == len(apart):
        yield truth
        return
    if not any(truth[other] for other in apart[place]):
        yield from _truths(apart, (*truth, True))
    yield from _truths(apart, (*truth, False))
