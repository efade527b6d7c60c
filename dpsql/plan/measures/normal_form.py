"""Aggregates in normal form: what is summed, over which rows, times what, plus what times the count.

Rows that several filters keep are told apart by disjoint masks.

Equal normal forms share one measure. Linearity is used only where the lattice arithmetic is exact and
the NULL rows are the same (soundness.md 1.3).

Of the same rows several are drawn together, as joint sums (soundness.md 1.22). House rules of these:

1. A joint measurement holds aggregates of one set of rows: those on which the same values are there. So one count is
   theirs all, and rows that lack one of two values are in none of their sums.
2. Filters are masks of it, as everywhere (1.5); a filter says which rows have values, so that `t` counts these.
3. Of sums of one value each, several values go together though each is NULL in other rows: each that may be NULL has a
   count of its own, and what it lacks adds nothing (`add_together`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import reduce

from ...cache import Cache
from ...errors import Refusal
from ...records import dataclass
from ...relation.aggregates import Asks, Needs
from ...relation.expressions import Call, Expr
from ...relation.intervals import Environment, Lattice, lattice_of, narrowed_facts
from ...relation.relations import AggregateCall
from ...relation.types import BOOLEAN, Kind
from ..privacy.contradiction import Filter
from ..privacy.rows import Units, holds_unit
from .measurements import Bounding, Centred, Count, Joint, Mask, Measurement, Moment, Present, Product

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


_MAX_MASKS = 16

_Wanted = tuple[int, Expr | None]
"""An aggregate's number, and the predicate of the rows that it takes in."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Where an aggregate's numbers stand: the joint measurement, and the filter whose masks they are of."""

    number: int
    rows: Expr | None


@dataclass
class _Cluster:
    """Aggregates of the rows on which `there` holds: whether squares are summed too, by value; products, by pair."""

    there: Expr | None
    values: dict[Expr, bool] = field(default_factory=dict)
    products: dict[tuple[Expr, Expr], None] = field(default_factory=dict)
    wanted: list[_Wanted] = field(default_factory=list)

    def take(self, want: NormalizedAggregate) -> None:
        """Take in what an aggregate is made of."""
        for value, power in zip(want.values, want.needs.powers, strict=True):
            if power:
                self.values[value] = self.values.get(value, False) or power > 1
        if want.needs.product:
            self.products[(want.values[0], want.values[1])] = None


def add_joints(
    add: Callable[[Measurement], int],
    wanted: Sequence[NormalizedAggregate],
    env: Environment,
    bounding: Bounding,
    *,
    every: bool,
    squared: bool = False,
) -> dict[int, Joined]:
    """Add joint measurements for what they answer, and return by aggregate where it stands.

    Beside what needs squares or products stands what else is asked of the same rows; with `every` all that could be
    answered so, as parts of what may be stored, over lattices as for squares if `squared`.
    """
    found: dict[int, Joined] = {}
    for cluster in _clusters(wanted, env, every=every):
        fine = not (squared or cluster.products or any(cluster.values.values()))
        lattices = {value: lattice_of(value, env, squared=not fine) for value in cluster.values}
        known = {value: one for value, one in lattices.items() if one is not None and one.width}
        is_of_pairs = any(wanted[index].is_of_pair for index, _ in cluster.wanted)
        if len(known) < len(lattices) and not is_of_pairs:
            continue  # of values that are constant only the rows are counted
        for masks, members in _split(cluster):
            number = add(_joint(cluster, known, tuple(masks), bounding))
            found |= {index: Joined(number, rows) for index, rows in members}
    return found


def add_together(
    add: Callable[[Measurement], int],
    wanted: Sequence[NormalizedAggregate],
    env: Environment,
    bounding: Bounding,
    *,
    with_nulls: bool,
) -> dict[int, Joined]:
    """Add one measurement for all sums of one value each, and for the rows counted beside them; return where each
    stands.

    `with_nulls`: those of values that may be NULL too. Of a value that is constant nothing is summed, and there are at
    most as many masks as a measurement takes: else it is left to others.
    """
    squared: dict[Expr, bool] = {}
    for want in wanted:
        if want.is_of_value and want.value is not None:
            squared[want.value] = squared.get(want.value, False) or want.is_spread
    lattices = {value: lattice_of(value, env, squared=squares) for value, squares in squared.items()}
    known = {
        value: one
        for value, one in lattices.items()
        if one is not None and one.width and (with_nulls or present(value, env) is None)
    }
    joined = {
        index: want.filter for index, want in enumerate(wanted) if want.value in known and want.is_of_value
    }
    joined |= {index: want.filter for index, want in enumerate(wanted) if want.counts_rows}
    filters = list(dict.fromkeys(rows for rows in joined.values() if rows is not None))
    rest = None in joined.values()
    found = masks_of(filters, rest, _MAX_MASKS) if known else None
    if found is None:
        return {}
    masks = tuple(found)
    nullable = {value for value in known if present(value, env) is not None}
    parts: list[Measurement] = []
    if len(nullable) < len(known) or any(wanted[index].counts_rows for index in joined):
        parts.append(Count(None, None, masks, False, 0, bounding))
    for value, lattice in known.items():
        kinds = [Present] * (value in nullable) + [Centred] + [Moment] * squared[value]
        parts += [kind(value, lattice, masks, False, 0, bounding) for kind in kinds]
    number = add(Joint(None, None, masks, False, 0, bounding, tuple(parts)))
    return {index: Joined(number, rows) for index, rows in joined.items()}


def _clusters(wanted: Sequence[NormalizedAggregate], env: Environment, *, every: bool) -> list[_Cluster]:
    """Return what goes together; a count goes where the very rows it counts are summed."""
    clusters: dict[Expr | None, _Cluster] = {}
    for want in wanted:
        if want.is_spread or want.is_of_pair or (every and want.is_of_value):
            there = _there(want, env)
            clusters.setdefault(there, _Cluster(there)).take(want)
    for index, want in enumerate(wanted):
        found = clusters.get(_there(want, env)) if want.values else None
        is_sum = want.is_of_value and found is not None and set(want.values) <= found.values.keys()
        if found is not None and (want.is_of_pair or is_sum):
            found.wanted.append((index, both(want.filter, found.there)))
    for index, want in enumerate(wanted):
        if want.counts_rows:
            _place_count(clusters, (index, want.filter), every=every)
    return list(clusters.values())


def _place_count(clusters: dict[Expr | None, _Cluster], count: _Wanted, *, every: bool) -> None:
    for cluster in clusters.values():
        if any(rows == count[1] for _, rows in cluster.wanted):
            cluster.wanted.append(count)
            return
    if every and count[1] not in clusters:
        clusters[count[1]] = _Cluster(None, wanted=[count])


def _there(want: NormalizedAggregate, env: Environment) -> Expr | None:
    """Return the predicate that an aggregate's values are there; None: they always are."""
    return reduce(both, (present(value, env) for value in want.values), None)


def _split(cluster: _Cluster) -> Iterator[tuple[list[Mask], list[_Wanted]]]:
    """Yield the masks of one measurement each, with whose they are: of all filters together, or filter by filter."""
    filters = list(dict.fromkeys(rows for _, rows in cluster.wanted if rows is not None))
    rest = any(rows is None for _, rows in cluster.wanted)
    together = masks_of(filters, rest, _MAX_MASKS)
    if together is not None:
        yield together, cluster.wanted
        return
    for chosen in dict.fromkeys(rows for _, rows in cluster.wanted):
        masks = [Mask(())] if chosen is None else [Mask(((chosen, True),))]
        yield masks, [(index, rows) for index, rows in cluster.wanted if rows == chosen]


def _joint(
    cluster: _Cluster, lattices: dict[Expr, Lattice], masks: tuple[Mask, ...], bounding: Bounding
) -> Measurement:
    """Return the measurement, a count where no more is asked for; of what has one value alone nothing is summed."""

    def part(kind: type[Measurement], value: Expr | None = None) -> Measurement:
        lattice = None if value is None else lattices[value]
        return kind(value, lattice, masks, False, 0, bounding)

    parts = [part(Count)]
    for value, squares in cluster.values.items():
        if value in lattices:
            parts.append(part(Centred, value))
            parts += [part(Moment, value)] if squares else []
    for pair in cluster.products:
        if all(value in lattices for value in pair):
            sides = (part(Centred, pair[0]), part(Centred, pair[1]))
            parts.append(Product(None, None, masks, False, 0, bounding, sides))
    return Joint(None, None, masks, False, 0, bounding, tuple(parts)) if parts[1:] else parts[0]
