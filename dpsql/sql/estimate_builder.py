"""The aggregate over reported answers that estimates are made of, and each estimate over its result.

Of two values: COUNT(*) where the truth is a = w_in COUNT(*) FILTER (WHERE x = 'a') + w_out COUNT(*) FILTER (WHERE
x = 'b'). The proof is soundness.md 1.24.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ..errors import Position, Refusal
from ..relation.aggregates import AGGREGATES
from ..relation.expressions import (
    TRUE,
    Call,
    Expr,
    Field,
    Literal,
    map_children,
)
from ..relation.intervals import Environment, facts_of
from ..relation.relations import AggregateCall, Group, Relation, grouped, projected
from ..relation.types import BIGINT, BOOLEAN, DOUBLE, TEXT
from .answer_conditions import Conditions, merged
from .estimates import (
    Moments,
    both_of,
    divided,
    exact,
    multiplied,
    number,
    said_of_coins,
    weighted,
)
from .reported import (
    Answer,
    catalog_columns,
    holds_private,
    refuse_use,
)

if TYPE_CHECKING:
    from .bind_estimates import Estimator

__all__ = ["EstimateBuilder"]

_ESTIMATED = ("count", "sum", "avg")
_MOST_AT = 4096
_SUM = AGGREGATES["sum"]


class EstimateBuilder:
    """Collects the aggregates over reported answers, and where their moments stand above them.

    The row above: the keys, first and second moment of each measure, the aggregates that are no estimates, the bits
    of GROUPING().
    """

    def __init__(
        self, estimator: Estimator, group: Group, where: Conditions, position: Position | None
    ) -> None:
        self._estimator, self._group, self._where, self._position = estimator, group, where, position
        self._keys = len(group.keys)
        self._calls: list[AggregateCall] = []
        self._moments: list[tuple[list[tuple[int, Fraction]], list[tuple[int, Fraction]]]] = []
        self._plain: list[int] = []
        self.used: set[Answer] = set()
        self._numbers = 0
        self._is_private = holds_private(estimator.source)

    @property
    def width(self) -> int:
        """How many columns of moments there are."""
        return 2 * len(self._moments)

    @property
    def bits(self) -> int:
        """Where the bits of GROUPING() begin."""
        return self._keys + self.width + len(self._plain)

    def output(self, call: AggregateCall, keyed: dict[Answer, int]) -> Expr:
        """Return an aggregate as an expression over the row above; its places are final in `relation`."""
        self.used |= keyed.keys()
        if not self._estimator.is_estimate(call) and not keyed:
            place = self._call(call)
            if place not in self._plain:
                self._plain.append(place)
            return _Plain(call.type, self._plain.index(place), position=call.position)
        filter_ = TRUE if call.filter is None else call.filter
        own, rest = self._estimator.split(filter_)
        for answer in own:
            if answer in keyed:
                raise refuse_use(answer, call.position, "it is a group key already")
        call = replace(call, filter=None if rest == TRUE else rest)
        if call.function not in _ESTIMATED or call.distinct:
            known = self._estimator.answers_in(*call.args) or [*own, *self._where, *keyed]
            raise refuse_use(known[0], call.position, "COUNT, SUM and AVG of other columns are estimated")
        outer = merged(self._where, own)
        flagged = self._flagged(call)
        if flagged is not None:
            condition, call, share = flagged
            if any(answer in keyed for answer in condition):
                raise refuse_use(next(iter(condition)), call.position, "it is a group key already")
            inner = merged(outer, condition)
            if share:
                return self._share(call, outer, inner)
            outer = inner
        for answer in self._estimator.answers_in(*call.args):
            raise refuse_use(
                answer, call.position, "count the rows that have a value: COUNT(*) FILTER (WHERE … = …)"
            )
        return self._estimate(call, outer)

    def _flagged(self, call: AggregateCall) -> tuple[Conditions, AggregateCall, bool] | None:
        """Read AGG(CASE WHEN condition THEN x ELSE 0 END) as AGG(x) over the rows where the condition is true.

        The last: it is an average over all rows, of 0 where it is not.
        """
        arg = call.args[0] if call.args else None
        if isinstance(arg, Call) and arg.function == "cast" and arg.args[0].type == BOOLEAN:
            arg = Call(arg.type, "case", (arg.args[0], Literal(arg.type, 1), Literal(arg.type, 0)))
        if not isinstance(arg, Call) or arg.function != "case" or len(arg.args) != 3:
            return None
        condition, then, other = arg.args
        if not self._estimator.answers_in(condition) or self._estimator.answers_in(then, other):
            return None
        if not isinstance(other, Literal) or other.value not in (0, None):
            return None
        if (
            isinstance(then, Literal)
            and call.function != "count"
            and not isinstance(then.value, (int, Fraction))
        ):
            return None
        own, rest = self._estimator.split(condition)
        kept = (call.filter, None if rest == TRUE else rest)
        inner = replace(call, args=(then,), filter=both_of(*(term for term in kept if term is not None)))
        if call.function == "count":
            if other.value is not None:
                return None
            return own, replace(inner, args=() if isinstance(then, Literal) else (then,)), False
        if call.function == "avg" and other.value is not None:
            if rest != TRUE:
                return None
            return own, replace(inner, function="sum"), True
        return own, inner, False

    def _estimate(self, call: AggregateCall, conditions: Conditions) -> Expr:
        if call.function == "count":
            count = self._measure(call, conditions)
            return self._marked(count.first, count.variance, call)
        (value,) = call.args
        if isinstance(value, Literal) and call.function == "sum":
            count = self._measure(replace(call, function="count", type=BIGINT, args=()), conditions)
            factor, square = number(exact(value)), number(exact(value) ** 2)
            return self._marked(multiplied(factor, count.first), multiplied(square, count.variance), call)
        total = self._measure(_summed(call, value), conditions)
        if call.function == "sum":
            squares = self._squares(call, value, conditions, total)
            return self._marked(total.first, None if squares is None else squares.variance, call)
        count = self._measure(replace(call, function="count", type=BIGINT), conditions)
        least = Call(DOUBLE, "greatest", (count.first, number(Fraction(1))))
        mean = divided(total.first, least)
        squares = self._squares(call, value, conditions, total, count)
        variance = None
        if squares is not None:
            # of the rows' distances from the mean: (x - m)² = x² - 2 m x + m²
            off = squares.plus(total.times(multiplied(number(Fraction(-2)), mean))).plus(
                count.times(multiplied(mean, mean))
            )
            variance = divided(off.variance, multiplied(least, least))
        shown = Call(BOOLEAN, "gt", (count.first, number(Fraction(0))))
        known = Call(DOUBLE, "case", (shown, mean, Literal(DOUBLE, None)))
        return self._marked(known, variance, call)

    def _share(self, call: AggregateCall, outer: Conditions, inner: Conditions) -> Expr:
        """Return an average of 0 and x: an estimated sum over how many rows there are."""
        rows = replace(call, function="count", type=BIGINT, args=())
        total = self._estimate(_summed(call, call.args[0]), inner)
        count = self._estimate(rows, outer)
        return divided(total, Call(DOUBLE, "nullif", (count, number(Fraction(0)))))

    def _squares(
        self,
        call: AggregateCall,
        value: Expr,
        conditions: Conditions,
        total: Moments,
        count: Moments | None = None,
    ) -> Moments | None:
        """Return at least the moments of x²: exact over public rows, else from bounds; None where there are none.

        x² <= (L + H) x - L H for L <= x <= H; without a count, x² <= H x where 0 <= L.
        """
        if not self._is_private:
            double = value if value.type == DOUBLE else Call(DOUBLE, "cast", (value,))
            square = Call(DOUBLE, "mul", (double, double))
            return self._measure(replace(_summed(call, square), type=DOUBLE), conditions)
        facts = facts_of(value, Environment(catalog_columns(self._estimator.source)))
        low, high = facts.lo, facts.hi
        if low is None or high is None:
            return None
        if count is None and low >= 0:
            return total.times(number(high))
        if count is None:
            count = self._measure(replace(call, function="count", type=BIGINT), conditions)
        return total.times(number(low + high)).plus(count.times(number(-low * high)))

    def _marked(self, value: Expr, variance: Expr | None, call: AggregateCall) -> Expr:
        unknown = Literal(DOUBLE, None)
        read = sorted(self.used, key=self._estimator.reported.index)
        said = Literal(TEXT, "\n".join(map(said_of_coins, read)))
        # its place in the text tells an estimate from all others of the statement: each has coins of its own
        place = 0 if call.position is None else call.position.offset
        self._numbers += 1
        tag = Literal(BIGINT, place * _MOST_AT + self._numbers % _MOST_AT)
        args = (value, unknown if variance is None else variance, tag, said)
        return Call(DOUBLE, "estimated", args, position=call.position)

    # --- places ---------------------------------------------------------------------------------------------

    def _call(self, call: AggregateCall) -> int:
        if call not in self._calls:
            self._calls.append(call)
        return self._calls.index(call)

    def _measure(self, call: AggregateCall, conditions: Conditions) -> Moments:
        """Return the moments of an additive measure over the rows whose true answers are as the conditions say."""
        for answer, chosen in conditions.items():
            if not chosen:
                raise Refusal(
                    f'no value of "{answer.column.name}" that is declared is asked for here', position=call.position,
                    sqlstate="22023", hint="see its values with \\d+ or dpsql check",
                )  # fmt: skip
        self.used |= conditions.keys()
        own = {answer: chosen for answer, chosen in conditions.items() if len(chosen) < answer.channel.size}
        first: list[tuple[int, Fraction]] = []
        second: list[tuple[int, Fraction]] = []
        for terms, weight in self._estimator.parts(own):
            filter_ = both_of(*(() if call.filter is None else (call.filter,)), *terms)
            place = self._call(replace(call, filter=filter_))
            first.append((place, weight))
            second.append((place, weight**2))
        if (first, second) not in self._moments:
            self._moments.append((first, second))
        place = self._keys + 2 * self._moments.index((first, second))
        return Moments(Field(DOUBLE, place), Field(DOUBLE, place + 1))

    def relation(self) -> Relation:
        """Return the aggregate over reported answers with the row above it."""
        group = self._group
        names = tuple(column.name for column in group.columns[: self._keys])
        reported = replace(group, aggregates=tuple(self._calls), names=names, is_reported=True)
        below = grouped(self._estimator.source, reported, self._position)
        exprs: list[Expr] = [Field(key.type, i) for i, key in enumerate(group.keys)]
        for sides in self._moments:
            exprs += [weighted(side, below.columns, self._keys) for side in sides]
        exprs += [Field(below.columns[self._keys + i].type, self._keys + i) for i in self._plain]
        start = self._keys + len(self._calls)
        exprs += [Field(c.type, start + i) for i, c in enumerate(below.columns[start:])]
        return projected(below, exprs, position=self._position)

    def placed(self, expr: Expr) -> Expr:
        """Return an output over the row above, once all moments are known."""
        if isinstance(expr, _Plain):
            return Field(expr.type, self._keys + self.width + expr.index, position=expr.position)
        return map_children(expr, self.placed)


@dataclass(frozen=True, slots=True)
class _Plain(Expr):
    """An aggregate that is no estimate: its number among those, as they stand behind the moments."""

    index: int


def _summed(call: AggregateCall, value: Expr) -> AggregateCall:
    type_ = _SUM.result(value.type)
    assert type_ is not None
    return replace(call, function="sum", type=type_, args=(value,))
