"""Aggregates over columns that were randomised when they were collected are estimates (soundness.md 1.24).

What is asked is of the true answers, what stands in the table are reported ones. A count or sum over the rows whose
true answer is in A is w_in · (the same over rows that report one of A) + w_out · (over all other rows), with the
channel's weights: on average over the respondents' coins it is right. So the aggregate below is over reported
answers, split in two disjoint parts; what stands above it is arithmetic on its result.

House rules:

1. Nothing here touches a sensitivity or a scale: the aggregate below is one that an analyst could have written.
2. An answer is read by whole AND terms of a filter that compare it with literals, and as a group key. Whatever
   else reads one is refused, at the end by `check_reported` over the whole relation.
3. One answer is one set of coins: a condition on it is one set of values, however often it is written. Two columns
   have coins of their own, so their weights multiply.

The arithmetic of estimates above an aggregate over reported answers: weights, moments, inverses (soundness.md 1.24).

Everything here is an expression over released or public numbers; weights are exact until they are printed.

The aggregate over reported answers that estimates are made of, and each estimate over its result.

Of two values: COUNT(*) where the truth is a = w_in COUNT(*) FILTER (WHERE x = 'a') + w_out COUNT(*) FILTER (WHERE
x = 'b'). The proof is soundness.md 1.24.

Which columns of a bound relation are reported answers of randomised response, and that nothing else reads one.

House rule: default deny. An expression that reads a reported answer is refused unless it is the bare column in a
projection, or stands in an aggregate whose estimates are made here (law L4).

What a condition says of a randomised answer: a set of its values (soundness.md 1.24).

House rule: a condition is evaluated here, value by value in SQL's three truths; what cannot be evaluated here
is refused, never guessed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction

from ..errors import Position, Refusal
from ..mechanisms import Channel
from ..records import dataclass
from ..relation.aggregates import AGGREGATES
from ..relation.catalog import Column
from ..relation.expressions import (
    TRUE,
    Call,
    Expr,
    Field,
    Literal,
    Scalar,
    conjuncts,
    fields_of,
    map_children,
    moved,
    walk,
)
from ..relation.intervals import Environment, facts_of
from ..relation.relations import (
    AggregateCall,
    Block,
    Declared,
    Group,
    Join,
    Lateral,
    Order,
    OutputColumn,
    Recursive,
    Relation,
    Scan,
    SetOperation,
    Unnest,
    WindowCall,
    all_parts,
    ends_in,
    expressions,
    filtered,
    grouped,
    ordered,
    projected,
    windowed,
)
from ..relation.types import BIGINT, BOOLEAN, DOUBLE, TEXT
from .literals import compare_in

# --- the arithmetic of estimates above an aggregate over reported answers -----------------------------------


@dataclass(frozen=True, slots=True)
class _Moments:
    """Where an additive measure stands: Σ w · x over its parts, and Σ w² · x."""

    first: Expr
    second: Expr

    def times(self, factor: Expr) -> _Moments:
        return _Moments(_multiplied(factor, self.first), _multiplied(factor, self.second))

    def plus(self, other: _Moments) -> _Moments:
        return _Moments(_added(self.first, other.first), _added(self.second, other.second))

    @property
    def variance(self) -> Expr:
        """The variance of Σ w · y, of y = x² : each row's w has the mean 0 or 1 that it estimates (1.24)."""
        return Call(DOUBLE, "greatest", (_less(self.second, self.first), _number(Fraction(0))))


def _number(value: Fraction) -> Literal:
    return Literal(DOUBLE, Fraction(float(value)))


def _binary(function: str, left: Expr, right: Expr) -> Expr:
    return Call(DOUBLE, function, (left, right))


def _added(left: Expr, right: Expr) -> Expr:
    return _binary("add", left, right)


def _less(left: Expr, right: Expr) -> Expr:
    return _binary("sub", left, right)


def _multiplied(left: Expr, right: Expr) -> Expr:
    return _binary("mul", left, right)


def _divided(left: Expr, right: Expr) -> Expr:
    return _binary("div", left, right)


def _both_of(*terms: Expr) -> Expr | None:
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else Call(BOOLEAN, "and", terms)


def _all_of(terms: Sequence[Expr]) -> Expr:
    return _both_of(*terms) or TRUE


def _weighted(side: Sequence[tuple[int, Fraction]], columns: Sequence[OutputColumn], start: int) -> Expr:
    """Return Σ weight · aggregate, a sum over no rows being 0."""
    total: Expr | None = None
    for place, weight in side:
        column = columns[start + place]
        value: Expr = Field(column.type, start + place)
        value = value if column.type == DOUBLE else Call(DOUBLE, "cast", (value,))
        value = Call(DOUBLE, "coalesce", (value, _number(Fraction(0))))
        term = value if weight == 1 else _multiplied(value, _number(weight))
        total = term if total is None else _added(total, term)
    assert total is not None
    return total


def _inverted(relation: Relation, index: int, answer: Answer, keys: int, width: int) -> Relation:
    """Return moments by what is true in place of what was reported: key number `index` is the answer.

    A group's moment is w_in · its own + w_out · that of all other groups with the same other keys.
    """
    columns = relation.columns
    partition = tuple(Field(columns[i].type, i) for i in range(keys) if i != index)
    calls = tuple(
        WindowCall(DOUBLE, "sum", (Field(DOUBLE, keys + i),), partition, (), None) for i in range(width)
    )
    window = windowed(relation, calls)
    exprs: list[Expr] = [Field(column.type, i, column.name) for i, column in enumerate(columns[:keys])]
    for i in range(width):
        own, whole = Field(DOUBLE, keys + i), Field(DOUBLE, len(columns) + i)
        power = 1 + i % 2
        inside, outside = (_of_key(columns[index], index, answer, side, power) for side in (0, 1))
        exprs.append(_added(_multiplied(own, inside), _multiplied(_less(whole, own), outside)))
    exprs += [Field(c.type, keys + width + i) for i, c in enumerate(columns[keys + width :])]
    return projected(window, tuple(exprs), tuple(c.name for c in columns))


def _of_key(column: OutputColumn, index: int, answer: Answer, side: int, power: int) -> Expr:
    """Return the weight of a group's own answers (side 0) or of all others (side 1), or its square."""
    channel = answer.channel
    weights = [_number(channel.weights(frozenset({value}))[side] ** power) for value in range(channel.size)]
    if channel.yes is None:
        return weights[0]
    is_yes = reports(Field(column.type, index), answer.column, frozenset({channel.yes}))
    return Call(DOUBLE, "case", (is_yes, weights[channel.yes], weights[1 - channel.yes]))


def _exact(literal: Literal) -> Fraction:
    value = literal.value
    assert isinstance(value, (int, float, Fraction))
    return Fraction(value)


def _said_of_coins(answer: Answer) -> str:
    channel = answer.channel
    return (
        f"{answer.column.name} was randomised when it was collected (truth with probability "
        f"{float(channel.truth):.3g}): of n rows, "
        f"its estimates are off by ± {1.96 * channel.own_deviation:.3g} sqrt(n) for that"
    )


# --- the aggregate over reported answers that estimates are made of, and each estimate over its result ------


_ESTIMATED = ("count", "sum", "avg")
_MOST_AT = 4096
_SUM = AGGREGATES["sum"]


class _EstimateBuilder:
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
        arg = call.args[0] if call.args else TRUE
        if arg.calls("cast") and arg.args[0].type == BOOLEAN:
            arg = Call(arg.type, "case", (arg.args[0], Literal(arg.type, 1), Literal(arg.type, 0)))
        if not arg.calls("case") or len(arg.args) != 3:
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
        inner = replace(call, args=(then,), filter=_both_of(*(term for term in kept if term is not None)))
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
            factor, square = _number(_exact(value)), _number(_exact(value) ** 2)
            return self._marked(_multiplied(factor, count.first), _multiplied(square, count.variance), call)
        total = self._measure(_summed(call, value), conditions)
        if call.function == "sum":
            squares = self._squares(call, value, conditions, total)
            return self._marked(total.first, None if squares is None else squares.variance, call)
        count = self._measure(replace(call, function="count", type=BIGINT), conditions)
        least = Call(DOUBLE, "greatest", (count.first, _number(Fraction(1))))
        mean = _divided(total.first, least)
        squares = self._squares(call, value, conditions, total, count)
        variance = None
        if squares is not None:
            # of the rows' distances from the mean: (x - m)² = x² - 2 m x + m²
            off = squares.plus(total.times(_multiplied(_number(Fraction(-2)), mean))).plus(
                count.times(_multiplied(mean, mean))
            )
            variance = _divided(off.variance, _multiplied(least, least))
        shown = Call(BOOLEAN, "gt", (count.first, _number(Fraction(0))))
        known = Call(DOUBLE, "case", (shown, mean, Literal(DOUBLE, None)))
        return self._marked(known, variance, call)

    def _share(self, call: AggregateCall, outer: Conditions, inner: Conditions) -> Expr:
        """Return an average of 0 and x: an estimated sum over how many rows there are."""
        rows = replace(call, function="count", type=BIGINT, args=())
        total = self._estimate(_summed(call, call.args[0]), inner)
        count = self._estimate(rows, outer)
        return _divided(total, Call(DOUBLE, "nullif", (count, _number(Fraction(0)))))

    def _squares(
        self,
        call: AggregateCall,
        value: Expr,
        conditions: Conditions,
        total: _Moments,
        count: _Moments | None = None,
    ) -> _Moments | None:
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
            return total.times(_number(high))
        if count is None:
            count = self._measure(replace(call, function="count", type=BIGINT), conditions)
        return total.times(_number(low + high)).plus(count.times(_number(-low * high)))

    def _marked(self, value: Expr, variance: Expr | None, call: AggregateCall) -> Expr:
        unknown = Literal(DOUBLE, None)
        read = sorted(self.used, key=self._estimator.reported.index)
        said = Literal(TEXT, "\n".join(map(_said_of_coins, read)))
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

    def _measure(self, call: AggregateCall, conditions: Conditions) -> _Moments:
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
            filter_ = _both_of(*(() if call.filter is None else (call.filter,)), *terms)
            place = self._call(replace(call, filter=filter_))
            first.append((place, weight))
            second.append((place, weight**2))
        if (first, second) not in self._moments:
            self._moments.append((first, second))
        place = self._keys + 2 * self._moments.index((first, second))
        return _Moments(Field(DOUBLE, place), Field(DOUBLE, place + 1))

    def relation(self) -> Relation:
        """Return the aggregate over reported answers with the row above it."""
        group = self._group
        names = tuple(column.name for column in group.columns[: self._keys])
        reported = replace(group, aggregates=tuple(self._calls), names=names, is_reported=True)
        below = grouped(self._estimator.source, reported, self._position)
        exprs: list[Expr] = [Field(key.type, i) for i, key in enumerate(group.keys)]
        for sides in self._moments:
            exprs += [_weighted(side, below.columns, self._keys) for side in sides]
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


# --- aggregates over columns that were randomised when they were collected are estimates (soundness.md 1.24) ---


_MOST_PARTS = 16


@dataclass
class Estimator:
    """The estimates of one SELECT over `source`: which columns are answers, and what its WHERE says of them.

    `grouped`: it groups by one, so that all its aggregates are estimates.
    """

    source: Relation
    reported: Reported
    where: Conditions = field(default_factory=dict)
    grouped: bool = False

    @classmethod
    def over(cls, source: Relation) -> Estimator | None:
        """Return the estimator of a SELECT, None where no column was randomised."""
        reported = reported_columns(source)
        return cls(source, reported) if any(reported) else None

    def take(self, predicate: Expr) -> Expr:
        """Return what a WHERE says of other columns, and keep what it says of answers. Raises Refusal."""
        self.where, rest = self.split(predicate)
        return rest

    def refuse_rows(self, position: Position | None) -> None:
        """Refuse a WHERE on answers of a SELECT without aggregates."""
        for answer in self.where:
            raise refuse_use(answer, position)

    def is_estimate(self, call: AggregateCall) -> bool:
        """Say whether an aggregate becomes an estimate, and so a double."""
        read = () if call.filter is None else (call.filter,)
        return bool(self.where) or self.grouped or bool(self.answers_in(*call.args, *read))

    def answers_in(self, *exprs: Expr) -> list[Answer]:
        """Return the answers that expressions read."""
        found = (self.reported[i] for i in sorted(fields_of(*exprs)) if i < len(self.reported))
        return [answer for answer in found if answer is not None]

    def is_answer(self, key: Expr | None) -> bool:
        """Say whether a key is a randomised column."""
        return key is not None and key.column is not None and self.reported[key.column] is not None

    # --- conditions ---------------------------------------------------------------------------------------

    def split(self, predicate: Expr) -> tuple[Conditions, Expr]:
        """Return what a predicate says of answers, and its other terms. Raises Refusal."""
        found: Conditions = {}
        rest: list[Expr] = []
        for term in conjuncts(predicate):
            read = list(dict.fromkeys(self.answers_in(term)))
            if not read:
                rest.append(term)
                continue
            answer = read[0]
            if len(read) > 1 or any(self.reported[index] is None for index in fields_of(term)):
                raise refuse_use(answer, term.position, "a condition is on one of them alone, joined by AND")
            chosen = chosen_by(term, answer)
            found[answer] = found.get(answer, chosen) & chosen
        return found, _all_of(rest)

    def _field(self, answer: Answer) -> Field:
        index = self.reported.index(answer)
        column = self.source.columns[index]
        return Field(column.type, index, answer.column.name)

    def parts(self, conditions: Conditions) -> list[tuple[tuple[Expr, ...], Fraction]]:
        """Return disjoint parts of the rows by what they report, and what a row of each counts for."""
        sides: list[list[tuple[Expr, Fraction]]] = []
        for answer, chosen in conditions.items():
            every = frozenset(range(answer.channel.size))
            inside, outside = answer.channel.weights(chosen)
            field_ = self._field(answer)
            sides.append(
                [
                    (reports(field_, answer.column, chosen), inside),
                    (reports(field_, answer.column, every - chosen), outside),
                ]
            )
        parts: list[tuple[tuple[Expr, ...], Fraction]] = []
        for picked in itertools.product(*sides):
            weight = Fraction(1)
            for _, factor in picked:
                weight *= factor
            parts.append((tuple(term for term, _ in picked), weight))
        if len(parts) > _MOST_PARTS:
            raise Refusal(
                "an estimate is by at most four randomised columns at a time", sqlstate="54001",
                hint="ask for fewer conditions at once",
            )  # fmt: skip
        return parts

    # --- the aggregate --------------------------------------------------------------------------------------

    def aggregate(self, source: Relation, group: Group, position: Position | None) -> Relation:
        """Return estimates of a SELECT's aggregates by its keys: the same columns as the group has.

        `source`: the rows that are aggregated, with what subqueries have added behind the columns.

        Raises:
            Refusal: PV003 for a use of an answer that no estimate is of.
        """
        self.source = source
        self.reported += reported_columns(source)[len(self.reported) :]
        keyed = self._keyed(group)
        if not self.where and not keyed and not any(map(self.is_estimate, group.aggregates)):
            return grouped(source, group, position)
        self._check(group, keyed, position)
        builder = _EstimateBuilder(
            self, group, {answer: c for answer, c in self.where.items() if answer not in keyed}, position
        )
        marked = [builder.output(call, keyed) for call in group.aggregates]
        self._check_apart({*self.where, *keyed, *builder.used}, position)
        relation, outputs = builder.relation(), list(map(builder.placed, marked))
        for index, answer in sorted((index, answer) for answer, index in keyed.items()):
            relation = _inverted(relation, index, answer, len(group.keys), builder.width)
            if answer in self.where:
                key = Field(group.keys[index].type, index)
                relation = filtered(relation, reports(key, answer.column, self.where[answer]))
        keys = tuple(Field(key.type, i) for i, key in enumerate(group.keys))
        bits = tuple(
            Field(c.type, builder.bits + i) for i, c in enumerate(group.columns[len(keys) + len(outputs) :])
        )
        shown = projected(relation, (*keys, *outputs, *bits), tuple(c.name for c in group.columns), position)
        if not keyed:
            return shown
        return ordered(shown, tuple(Order(key, False, False) for key in keys))

    def _keyed(self, group: Group) -> dict[Answer, int]:
        places: dict[Answer, int] = {}
        for index, key in enumerate(group.keys):
            if not self.answers_in(key):
                continue
            answer = None if key.column is None else self.reported[key.column]
            if answer is None or not self.grouped:
                raise refuse_use(self.answers_in(key)[0], key.position, "group by the column itself")
            places[answer] = index
        return places

    def _check(self, group: Group, keyed: dict[Answer, int], position: Position | None) -> None:
        """Refuse grouping sets of answers, people's own groups, and two columns of the same coins."""
        first = next(iter(keyed), None)
        if first is not None and (len(group.sets) > 1 or group.groupings):
            raise refuse_use(first, position, "group by it in a plain GROUP BY")
        if any(key.column is not None and is_owner(self.source, key.column) for key in group.keys):
            used = [
                *keyed,
                *self.where,
                *(a for call in group.aggregates for a in self.answers_in(*call.args)),
            ]
            used += [
                a
                for call in group.aggregates
                if call.filter is not None
                for a in self.answers_in(call.filter)
            ]
            raise refuse_use(
                used[0], position, "below a person's GROUP BY there is one answer, and no average"
            )

    def _check_apart(self, used: set[Answer], position: Position | None) -> None:
        """Refuse answers that a join copies, and one answer read twice: then coins are not independent."""
        for answer in sorted(used, key=self.reported.index):
            twins = [
                one for one in used if (one.table, one.column.name) == (answer.table, answer.column.name)
            ]
            if len(twins) > 1:
                raise refuse_use(
                    answer, position, "its table stands in FROM twice; read the answer from one of them"
                )
            if not stands_once(self.source, self.reported.index(answer)):
                raise refuse_use(
                    answer,
                    position,
                    "this join may copy an answer; join what has one row for each, by its key",
                )


@dataclass(frozen=True, slots=True)
class Answer:
    """A randomised column of one mention of its table: `mention` is the way to it through the joins."""

    table: str
    column: Column
    mention: tuple[int, ...] = ()

    @property
    def channel(self) -> Channel:
        """By which coins it was reported."""
        assert self.column.randomized is not None
        return self.column.randomized

    @property
    def said(self) -> str:
        """What a message calls it."""
        return f'"{self.column.name}" was randomised when it was collected'


Reported = tuple[Answer | None, ...]
"""For each column of a relation, the answer that it reports."""


def refuse_use(answer: Answer, position: Position | None, hint: str | None = None) -> Refusal:
    """Return the refusal of a use of an answer that no estimate is of."""
    name = answer.column.name
    usual = f"count or sum other columns: COUNT(*) FILTER (WHERE {name} = …), WHERE {name} IN (…), GROUP BY {name}"
    return Refusal(
        f"{answer.said}, and this use of it has no estimate",
        sqlstate="PV003",
        position=position,
        hint=hint or usual,
    )


def reported_columns(node: Relation) -> Reported:
    """Return which columns of a relation are reported answers."""
    return _Walk().reported(node)


def check_reported(relation: Relation) -> None:
    """Check a whole bound relation.

    Raises:
        Refusal: PV003 for an expression, a set operation or DISTINCT over reported answers.
    """
    _Walk(is_checking=True).reported(relation)


@dataclass
class _Walk:
    """Walks a relation once: what several queries share is looked at once."""

    is_checking: bool = False
    known: dict[int, tuple[Relation, Reported]] = field(default_factory=dict)

    def reported(self, node: Relation) -> Reported:
        if id(node) not in self.known:
            self.known[id(node)] = node, self._found(node)
        return self.known[id(node)][1]

    def _found(self, node: Relation) -> Reported:
        below = tuple(map(self.reported, node.reads))
        if self.is_checking:
            self._check(node, below)
        if isinstance(node, Scan):
            own = (
                None if column.randomized is None else Answer(node.table.label, column)
                for column in node.table.columns
            )
            return (*own, *(None for _ in node.columns[len(node.table.columns) :]))
        return tuple(self._of_column(node, index) for index in range(len(node.columns)))

    def _of_column(self, node: Relation, index: int) -> Answer | None:
        """Return the answer that a column of what reads other relations is, by the way to it through joins."""
        origin = None if ends_in(node, "distinct") else node.origin(index)  # one row may be several answers
        answer = None if origin is None else self.reported(origin[0])[origin[1]]
        if origin is None or answer is None or not isinstance(node, Join):
            return answer
        side = 0 if index < len(node.left.columns) else 1
        return Answer(answer.table, answer.column, (side, *answer.mention))

    def _check(self, node: Relation, below: tuple[Reported, ...]) -> None:
        row = [answer for side in below for answer in side]
        is_apart = isinstance(node, (SetOperation, Lateral, Recursive, Unnest)) or ends_in(node, "distinct")
        for answer in row:
            if is_apart and answer is not None:
                raise refuse_use(answer, node.position)
        own = node.alone
        if isinstance(own, Block) and own.group is not None and own.group.is_reported:
            return
        for expr in expressions(own):
            for part in walk(expr):
                if isinstance(part, Scalar):
                    self._check_scalar(part)
            if ends_in(own, "outputs") and expr.column is not None:
                continue
            for index in sorted(fields_of(expr)):
                read = row[index]
                if read is not None:
                    raise refuse_use(read, expr.position or node.position)

    def _check_scalar(self, part: Scalar) -> None:
        for answer in self.reported(part.relation):
            if answer is not None:
                raise refuse_use(answer, part.position)


def holds_private(node: Relation) -> bool:
    """Say whether a relation reads a table that has a privacy unit."""
    return any(isinstance(one, Scan) and one.table.unit is not None for one in all_parts(node))


def is_owner(node: Relation, index: int) -> bool:
    """Say whether a column of a relation is a private table's unit column."""
    while not isinstance(node, Scan):
        origin = node.origin(index)
        if origin is None:
            return False
        node, index = origin
    unit, columns = node.table.unit, node.table.columns
    return unit is not None and (index >= len(columns) or columns[index].name in unit.columns)


def stands_once(node: Relation, index: int, terms: Sequence[Expr] = ()) -> bool:
    """Say whether each answer that a column reports stands in one row at most: joins do not copy it.

    `terms`: equalities over the node's columns that hold of its rows.
    """
    if isinstance(node, Join):
        return _joined_once(node, index, terms)
    origin = node.origin(index)
    if origin is None or ends_in(node, "distinct"):
        return isinstance(node, Scan)
    known = (*terms, *conjuncts(node.predicate)) if ends_in(node, "where", "having") else ()
    return stands_once(*origin, known)


def _joined_once(node: Join, index: int, terms: Sequence[Expr]) -> bool:
    width = len(node.left.columns)
    if node.kind == "mark":
        return index < width and stands_once(node.left, index, _over(terms, 0, width))
    is_left = index < width
    if node.kind not in (("inner", "cross", "left") if is_left else ("inner", "cross", "right")):
        return False
    other, start, size = (node.right, width, len(node.right.columns)) if is_left else (node.left, 0, width)
    equal = {
        place - start
        for term in (*terms, *conjuncts(node.condition))
        if term.calls("eq") and all(arg.column is not None for arg in term.args)
        for place in fields_of(term)
        if len(fields_of(term)) == 2 and sum(start <= i < start + size for i in fields_of(term)) == 1
        and start <= place < start + size
    }  # fmt: skip
    if not _is_key(other, equal):
        return False
    side, own = (node.left, 0) if is_left else (node.right, width)
    return stands_once(side, index - own, _over(terms, own, own + len(side.columns)))


def _over(terms: Sequence[Expr], start: int, stop: int) -> tuple[Expr, ...]:
    """Return the terms over the columns of one side, where they begin at 0."""
    kept = [term for term in terms if all(start <= i < stop for i in fields_of(term))]
    return tuple(moved(term, lambda i: i - start) for term in kept)


def _is_key(node: Relation, columns: set[int]) -> bool:
    """Say whether a row of a relation is told from all others by some of its columns."""
    while not isinstance(node, Scan):
        if not (isinstance(node, Declared) or ends_in(node, "where", "having", "outputs", "orders")):
            return False
        origins = [origin for index in columns if (origin := node.origin(index)) is not None]
        columns = {index for _, index in origins}
        (node,) = node.reads
    table = node.table
    every = (*table.columns, *table.owner_columns)
    names = {every[index].name for index in columns}
    unit = table.unit
    if unit is not None and unit.is_unique and not unit.is_row and names.issuperset(unit.columns):
        return True
    return any(set(key) <= names for key in table.keys)


def catalog_columns(node: Relation) -> tuple[Column, ...]:
    """Return what is known of each column of a relation, for bounds: of what is not simply a table's, its type."""
    if isinstance(node, Scan):
        return (*node.table.columns, *(Column("", c.type) for c in node.columns[len(node.table.columns) :]))
    if ends_in(node, "outputs"):
        below = catalog_columns(node.below)
        return tuple(
            below[e.column]
            if e.column is not None
            else Column("", e.type, facts=facts_of(e, Environment(below)))
            for e in node.exprs
        )
    sides = {id(side): catalog_columns(side) for side in node.reads}
    origins = map(node.origin, range(len(node.columns)))
    return tuple(
        Column("", column.type) if origin is None else sides[id(origin[0])][origin[1]]
        for column, origin in zip(node.columns, origins, strict=True)
    )


# --- what a condition says of a randomised answer: a set of its values (soundness.md 1.24) ------------------


_Chosen = frozenset[int]
"""Which of an answer's values are asked for, by their numbers."""
Conditions = dict[Answer, _Chosen]


def merged(one: Conditions, other: Conditions) -> Conditions:
    """Return what two conditions, both true, say."""
    both = dict(one)
    for answer, chosen in other.items():
        both[answer] = both.get(answer, chosen) & chosen
    return both


def reports(field_: Field, column: Column, chosen: _Chosen) -> Expr:
    """Return whether a row reports one of the chosen values."""
    values = [(column.values or ())[number] for number in sorted(chosen)]
    listed: list[Expr] = [Literal(column.type, value) for value in values if value is not None]
    terms: list[Expr] = [compare_in(field_, listed, None)] if listed else []
    if None in values:
        terms.append(Call(BOOLEAN, "is_null", (field_,)))
    return terms[0] if len(terms) == 1 else Call(BOOLEAN, "or", tuple(terms))


def chosen_by(term: Expr, answer: Answer) -> _Chosen:
    """Return of which values a condition on an answer alone is true. Raises Refusal."""
    values = answer.column.values or ()
    return frozenset(number for number, value in enumerate(values) if _truth(term, value, answer) is True)


def _truth(expr: Expr, value: object, answer: Answer) -> bool | None:
    """Return a condition's truth for one value, in SQL's three values. Raises Refusal: it is not one that is read."""
    if expr.is_constant and (expr.constant is None or isinstance(expr.constant, bool)):
        return expr.constant
    if expr.column is not None and expr.type == BOOLEAN:
        return None if value is None else bool(value)
    if not expr.args:
        raise refuse_use(answer, expr.position)
    function, args = expr.function, expr.args
    if function in ("and", "or", "not", "is_true", "is_false"):
        found = [_truth(arg, value, answer) for arg in args]
        if function == "not":
            return None if found[0] is None else not found[0]
        if function.startswith("is_"):
            return found[0] is (function == "is_true")
        decisive = function == "or"
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    if args[0].column is None or not all(arg.is_constant for arg in args[1:]):
        raise refuse_use(answer, expr.position, "compare it with literals")
    given = [arg.constant for arg in args[1:] if arg.is_constant]
    if function == "is_null":
        return value is None
    if function == "is_not_distinct":
        return value == given[0]
    if function not in ("eq", "ne", "in"):
        raise refuse_use(answer, expr.position, "compare it by =, <> and IN")
    if value is None:
        return None
    if function == "ne":
        return None if given[0] is None else value != given[0]
    return True if value in given else None if None in given else False
