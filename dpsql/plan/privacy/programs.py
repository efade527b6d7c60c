"""What is asked of one person's rows, as windows over them and simple aggregates beside these (soundness.md 1.13).

    median(x)  ->  (MIN(x) FILTER (WHERE 2 * c > n - 1) + MIN(x) FILTER (WHERE 2 * (c - 1) >= n - 1)) / 2

where c is COUNT(x) OVER (PARTITION BY keys ORDER BY x), how many of the person's values are no larger than a row's, and
n is COUNT(x) OVER (PARTITION BY keys). No engine's own percentile is asked: each takes the fraction as a double, in a
way of its own.

House rules:

1. A row of `_PROGRAMS` is said in terms of windows and aggregates that `derived` has facts of: its range, its grid,
   when it is NULL and its print are theirs, on every engine, and the verifier meets nothing new.
2. A window here gives rows that tie one value (`derived.ignores_ties`), or only a value in which such rows are alike is
   read of the row that it chooses.
3. The keys have one owner, and stand in every PARTITION BY.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from ...errors import Refusal
from ...relation.aggregates import Asks, check_printers
from ...relation.expressions import Call, Expr, Field, Literal, moved
from ...relation.facts import Facts
from ...relation.functions import FUNCTIONS
from ...relation.relations import (
    AggregateCall,
    Block,
    Group,
    Order,
    Relation,
    WindowCall,
    grouped,
    projected,
    windowed,
)
from ...relation.size_rules import MAX_TEXT
from ...relation.types import BIGINT, BOOLEAN, INTEGER, NUMERIC, TEXT


def by_windows(node: Block, facts: Callable[[Expr], Facts]) -> Relation | None:
    """Return what a GROUP BY of one person's rows means by windows over what it reads; None: no aggregate asks for one.

    `facts`: of an expression over what it reads.

    Raises:
        Refusal: PV001 for values of a type that has no such meaning.
    """
    group = node.group
    assert group is not None
    rows = [_program(call) for call in group.aggregates]
    if not any(rows):
        return None
    program = _Program(node, group, facts)
    shown: list[Expr] = [
        program.aggregate(call) if row is None else row(program, call)
        for row, call in zip(rows, group.aggregates, strict=True)
    ]
    return program.relation(node, group, shown)


def _program(call: AggregateCall) -> Callable[[_Program, AggregateCall], Expr] | None:
    if call.distinct and call.row.asks is Asks.SUMS and call.row.per_person:
        return _of_distinct
    return _PROGRAMS.get(call.function)


class _Program:
    """The windows and aggregates of one GROUP BY, each once. A column of the second step has a number below 0."""

    def __init__(self, node: Block, group: Group, facts: Callable[[Expr], Facts]) -> None:
        self.facts = facts
        self._below = node.below
        self._keys = group.keys
        self.partition = tuple(key for key in group.keys if not key.is_constant)
        self._first: list[WindowCall] = []
        self._second: list[WindowCall] = []
        self._aggregates: list[AggregateCall] = []

    def over(
        self,
        function: str,
        *args: Expr,
        by: tuple[Expr, ...] = (),
        orders: tuple[Order, ...] = (),
    ) -> Field:
        """Return the column of a window over the rows of a person's group, and of those alike in `by`."""
        call = WindowCall(BIGINT, function, args, (*self.partition, *by), orders, None)
        if call not in self._first:
            self._first.append(call)
        return Field(BIGINT, len(self._below.columns) + self._first.index(call))

    def largest(self, column: Field) -> Field:
        """Return the column of a group's largest value of one that is a window's."""
        call = WindowCall(BIGINT, "max", (column,), self.partition, (), None)
        if call not in self._second:
            self._second.append(call)
        return Field(BIGINT, -1 - self._second.index(call))

    def aggregate(self, call: AggregateCall) -> Field:
        """Return the column of an aggregate of a group's rows."""
        if call not in self._aggregates:
            self._aggregates.append(call)
        return Field(call.type, len(self._keys) + self._aggregates.index(call), position=call.position)

    def relation(self, node: Block, group: Group, shown: list[Expr]) -> Relation:
        """Return the steps, one over the other."""
        made = windowed(self._below, tuple(self._first), node.position) if self._first else self._below
        start = len(made.columns)
        if self._second:
            made = windowed(made, tuple(self._second), node.position)
        calls = (
            call.map(lambda expr: moved(expr, lambda i: i if i >= 0 else start - 1 - i))
            for call in self._aggregates
        )
        made = grouped(made, replace(group, aggregates=tuple(calls)), node.position)
        keys = [
            Field(key.type, i, name)
            for i, (key, name) in enumerate(zip(self._keys, group.names, strict=False))
        ]
        return projected(made, [*keys, *shown], [column.name for column in group.columns], node.position)


# --- rows ---------------------------------------------------------------------------------------------------


def _value(call: AggregateCall) -> Expr:
    """Return what is taken of a row: NULL, which counts nowhere, where its FILTER is not true."""
    value = call.args[0]
    if call.filter is None:
        return value
    return Call(value.type, "case", (call.filter, value, Literal(value.type, None)), position=value.position)


def _end(
    program: _Program, call: AggregateCall, value: Expr, kept: Expr | None, *, largest: bool = False
) -> Field:
    """Return the least of the values that are kept, or the largest."""
    taken = AggregateCall(
        value.type, "max" if largest else "min", (value,), False, kept, position=call.position
    )
    return program.aggregate(taken)


def _whole(number: int) -> Literal:
    return Literal(BIGINT, number)


def _of(function: str, *args: Expr) -> Call:
    type_ = FUNCTIONS[function].result(args)
    assert type_ is not None, "arguments of one kind"
    return Call(type_, function, args)


def _at_least(one: Expr, other: Expr, share: Fraction, *, more: bool = False) -> Call:
    """Return whether one number is at least so large a share of another, or `more` than that, in whole numbers."""
    sides = _of("mul", one, _whole(share.denominator)), _of("mul", other, _whole(share.numerator))
    return Call(BOOLEAN, "gt" if more else "ge", sides)


def _percentile_disc(program: _Program, call: AggregateCall) -> Expr:
    """The first value that, with all before it, is so large a share of the values; of a descending order the last."""
    value, descends = _value(call), bool(call.orders) and call.orders[0].descending
    if call.share in (0, 1):
        return _end(program, call, value, None, largest=call.share == 1)
    by_value = (Order(value, descends, descends),)
    count, upto = program.over("count", value), program.over("count", value, orders=by_value)
    share = 1 - call.share if descends else call.share
    return _end(program, call, value, _at_least(upto, count, share), largest=descends)


def _percentile_cont(program: _Program, call: AggregateCall) -> Expr:
    """Between the values at the ranks around 1 + (n - 1) p / q: r / q of the way, where r is what (n - 1) p leaves."""
    value, share = _value(call), call.share
    if not value.type.is_number:
        raise Refusal(
            f"{call.function.upper()} of a person's moments would lie between two of them", sqlstate="PV001",
            position=call.position, hint="percentile_disc is one of them",
        )  # fmt: skip
    if share in (0, 1):
        return _as_double(call, _end(program, call, value, None, largest=share == 1))
    by_value = (Order(value, False, False),)
    count, upto = program.over("count", value), program.over("count", value, orders=by_value)
    steps, before = (_of("sub", number, _whole(1)) for number in (count, upto))
    low = _end(program, call, value, _at_least(upto, steps, share, more=True))
    high = _end(program, call, value, _at_least(before, steps, share))
    parts = Literal(NUMERIC, Fraction(share.denominator))
    if share == Fraction(1, 2):
        return _as_double(call, _of("div", _of("add", low, high), parts))
    most = program.aggregate(AggregateCall(BIGINT, "max", (count,), False, None, position=call.position))
    ranks = _of("mul", _of("sub", most, _whole(1)), _whole(share.numerator))
    way = _of("mul", _of("sub", high, low), _of("mod", ranks, _whole(share.denominator)))
    between = _of("add", low, _of("div", way, parts))
    return _as_double(call, _within(between, program.facts(value)))


def _within(between: Expr, facts: Facts) -> Expr:
    """Return what lies between two values, as no arithmetic of intervals sees, within the ends of all values."""
    if facts.lo is None or facts.hi is None:
        return between
    ends = (Literal(NUMERIC, end) for end in (facts.lo, facts.hi))
    inside = _of("least", _of("greatest", between, next(ends)), next(ends))
    return Call(
        inside.type, "case", (Call(BOOLEAN, "is_null", (between,)), Literal(inside.type, None), inside)
    )


def _as_double(call: AggregateCall, value: Expr) -> Expr:
    return Call(call.type, "cast", (value,), position=call.position)


def _mode(program: _Program, call: AggregateCall) -> Expr:
    """The least of the values that are as frequent as the most frequent one; of a descending order the largest."""
    value, descends = _value(call), bool(call.orders) and call.orders[0].descending
    _check_exact(value, call, "its most frequent value")
    count = program.over("count", value, by=(value,))
    kept = Call(BOOLEAN, "eq", (count, program.largest(count)))
    return _end(program, call, value, kept, largest=descends)


def _any_value(program: _Program, call: AggregateCall) -> Expr:
    """One of the values, by a rule that no order of the rows changes."""
    return _end(program, call, _value(call), None)


def _of_distinct(program: _Program, call: AggregateCall) -> Expr:
    """A sum or an average over one row of each value: rows that tie are alike in the value, which alone is read."""
    value = _value(call)
    _check_exact(value, call, f"{call.function.upper()}(DISTINCT …)")
    first = Call(BOOLEAN, "eq", (program.over("row_number", by=(value,)), _whole(1)))
    return program.aggregate(replace(call, args=(value,), distinct=False, filter=first))


MAX_JOINED = 40
"""Most of a person's values that string_agg joins."""


def _string_agg(program: _Program, call: AggregateCall) -> Expr:
    """The first values of an order that the values themselves complete, each by its number; as many as are never longer
    together than a text may grow to.

    Distinct ones are ordered by themselves. Raises Refusal: PV202 for texts of which not even two are short enough.
    """
    value, separator = _as_long_as_declared(_value(call), program), call.args[1].constant_as(str) or ""
    longest = program.facts(value).size + len(separator)
    most = min(MAX_JOINED, MAX_TEXT // max(longest, 1))
    if most < 2:
        raise Refusal(
            f"string_agg joins no texts of a person's that may have {longest} characters", sqlstate="PV202",
            position=call.position, hint="join their beginnings: string_agg(left(x, 20), ', ')",
        )  # fmt: skip
    orders = (*call.orders, Order(value, False, False))
    if call.distinct and call.orders:
        orders = (replace(call.orders[0], expr=value),)
    name = "dense_rank" if call.distinct else "row_number"
    number = program.over(name, by=(Call(BOOLEAN, "is_null", (value,)),), orders=orders)
    first, *others = (
        _end(program, call, value, Call(BOOLEAN, "eq", (number, _whole(place))))
        for place in range(1, most + 1)
    )
    with_separator = (Call(TEXT, "concat_op", (Literal(TEXT, separator), other)) for other in others)
    joined = Call(TEXT, "concat", (first, *with_separator))
    is_null = Call(BOOLEAN, "is_null", (first,))
    return Call(TEXT, "case", (is_null, Literal(TEXT, None), joined), position=call.position)


def _as_long_as_declared(value: Expr, program: _Program) -> Expr:
    """Return a text that has declared values no longer than tells these from all others."""
    texts = [text for text in program.facts(value).values or () if isinstance(text, str)]
    if not texts:
        return value
    return Call(TEXT, "left", (value, Literal(INTEGER, 1 + max(map(len, texts)))), position=value.position)


def _check_exact(value: Expr, call: AggregateCall, said: str) -> None:
    """Refuse to ask which of a person's fractions are equal: two zeros are, and no two results of a sum need be."""
    if value.type.is_float:
        raise Refusal(
            f"{said} asks which of a person's fractions are equal", sqlstate="PV001", position=call.position,
            hint="round them: CAST(round(x * 100) AS integer)",
        )  # fmt: skip


_PROGRAMS: dict[str, Callable[[_Program, AggregateCall], Expr]] = {
    "median": _percentile_cont, "percentile_cont": _percentile_cont, "percentile_disc": _percentile_disc, "mode": _mode,
    "any_value": _any_value, "string_agg": _string_agg,
}  # fmt: skip
"""Aggregate -> what it means of a person's rows."""

check_printers(_PROGRAMS, lambda row: row.is_program)
