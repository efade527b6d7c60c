"""From aggregates to measurements: the set of measures with the least expected error (soundness.md 1.8).

House rules:

1. Everything here is arithmetic on text and policy. No store, no data, no randomness.
2. Aggregates are first brought to a normal form (`NormalizedAggregate`): what is summed, over which rows, times
   what, plus what times the count. Equal normal forms share one measure; linearity is used only where
   the lattice arithmetic is exact and the NULL rows are the same (soundness.md 1.3).
3. Counts either have a measurement of their own or are carried on the complementary sums of one value, whichever
   has the smaller expected error at an equal split of epsilon. What else answers the same is for what is
   stored already (soundness.md 3.8).

The groups with the largest counts or sums, when asked and when it pays, are chosen first: top-k (soundness.md 1.23).

House rules of these (`TopGroups`):

1. The claim is about scores: one unit moves each group's score by at most `each`, in whichever groups it is, and all
   of them in one direction. The printed clamp of each unit's part in a group holds it (law L9); C and R do not enter.
2. Whether groups are chosen is a function of text, policy and settings, never of data.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import reduce

from ...errors import Refusal
from ...mechanisms import Law, Rank
from ...records import dataclass
from ...relation.aggregates import check_printers
from ...relation.expressions import Expr
from ...relation.facts import Facts, common_grid
from ...relation.intervals import (
    LOG_PARTS,
    Environment,
    Lattice,
    LogLattice,
    candidates_of,
    lattice_of,
    narrowed_facts,
)
from ...relation.relations import AggregateCall, Block, Relation, ends_in, skipped, subqueries
from ..privacy.keys import domain_of
from ..privacy.rows import Release, Units
from .formulas import Average, Bivariate, Chosen, ChosenOf, Formula, Linear, Variable, Variance, Within
from .measurements import (
    Bounding,
    BoundingQuery,
    Centred,
    Coord,
    Count,
    Direct,
    DistinctValues,
    Joint,
    Loss,
    Mask,
    Measurement,
    Moment,
    Pair,
    Present,
    Product,
    Steps,
    Sum,
    Sums,
)
from .measurements import Units as People
from .normal_form import (
    Joined,
    NormalizedAggregate,
    add_joints,
    add_together,
    both,
    masks_of,
    normal_form,
    present,
    share_counts,
)
from .ranks import (
    LEAST_SPLIT,
    MAX_FRACTIONS,
    Bars,
    Ends,
    ModeMeasurement,
    RankMeasurement,
    SplitMeasurement,
    ValueBar,
    around,
)

_MAX_VALUE_MASKS = 16
_MAX_COUNT_MASKS = 64


@dataclass(frozen=True, slots=True)
class ChosenMeasurements:
    """The measurements of a release and, per aggregate, its formula over all their coordinates in order.

    `counted`: the number of the measurement whose one coordinate counts the units of a group (for the
    threshold), None when keys are declared. `shares`: each measurement's part of what the release may spend; they add
    up to 1.
    """

    measurements: tuple[Measurement, ...]
    formulas: tuple[Formula, ...]
    counted: int | None
    shares: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a release: aggregates of rows of which `env` is known, under their bounds.

    `units`: the columns that hold the owner, by its own. `finds_groups`: a count of people is measured too, by which
    they are found; `found_share`: its part of what is spent, where it is set. `is_zcdp`: rho is shared, so that of n
    measurements each has √n times the noise of one alone, not n times. `bars`: of which chosen values. `zeros`: the
    aggregates, by number, that are known to be 0, of which nothing is measured (soundness.md 1.16). `known`: the object
    that stands for each measurement of these rows, so that what is made of one is made once.
    """

    aggregates: Sequence[AggregateCall]
    env: Environment
    bounding: Bounding
    units: Units
    finds_groups: bool = False
    is_zcdp: bool = False
    bars: Bars = field(default_factory=dict)
    zeros: Collection[int] = ()
    found_share: Fraction | None = None
    known: dict[Measurement, Measurement] = field(default_factory=dict, repr=False, compare=False)

    def the_one(self, measurement: Measurement) -> Measurement:
        """Return the object that stands for a measurement."""
        return self.known.setdefault(measurement, measurement)

    def wanted(self) -> list[NormalizedAggregate]:
        """Return what is measured, in normal form."""
        measured = [call for number, call in enumerate(self.aggregates) if number not in self.zeros]
        return share_counts([normal_form(call, self.env, self.units) for call in measured])


def choose_measurements(asked: Asked) -> ChosenMeasurements:
    """Return the measurements that answer the aggregates, and how each aggregate is computed from them.

    Raises:
        Refusal: an aggregate that has no private answer (PV001), bounds that are not declared (PV101).
    """
    wanted = asked.wanted()
    choices = []
    if not any(want.is_of_pair for want in wanted):
        choices = [_Builder(asked, wanted, carrier).answered() for carrier in _carriers(wanted)]
    # Under rho the joint draw of variances is no better than its parts, which share rho (soundness.md 1.25).
    if any(want.is_of_pair or (want.is_spread and not asked.is_zcdp) for want in wanted):
        choices.append(_Builder(asked, wanted, None, _Form.JOINT).answered())
    return min(choices, key=lambda choice: choice[0])[1]


class OtherMeasurements:
    """Measurements that answer the aggregates, those aside that find groups; with what each aggregate is of them once
    that is asked for.
    """

    def __init__(self, builder: _Builder) -> None:
        self._builder = builder
        if any(want.function in _ALONE for want in builder.wanted):  # these are added with their formulas
            self._builder.answered()
        self.measurements = tuple(builder.measurements)

    def made(self) -> ChosenMeasurements:
        """Return them with what each aggregate is of them."""
        return self._builder.answered()[1]


def others(asked: Asked, seen: Collection[frozenset[Measurement]]) -> Iterator[OtherMeasurements]:
    """Yield all sets of measurements that answer the aggregates over groups that are known beforehand, each once.

    Beyond those of `choose_measurements`: every value by complementary sums, or centred beside a count. None of
    `seen`. Raises as it does.
    """
    wanted, found = asked.wanted(), {frozenset(id(asked.the_one(one)) for one in each) for each in seen}
    for form in _forms(wanted):
        alone = form in (_Form.PARTS, _Form.PARTS_OF_SQUARES, *_TOGETHER)
        most = 1 if form in (_Form.CENTRED, _Form.JOINT) else _MOST_RIDES
        for carrier in [None] if alone else _carriers(wanted)[:most]:
            builder = _Builder(asked, wanted, carrier, form)
            measurements = frozenset(map(id, builder.measurements))
            if measurements not in found:
                found.add(measurements)
                yield OtherMeasurements(builder)


def together(asked: Asked) -> Iterator[OtherMeasurements]:
    """Yield the sets of measurements in which sums of several values are one vector, with the rows counted beside them.

    Of all values, and of those alone that are never NULL. Raises as `choose_measurements` does.
    """
    wanted = asked.wanted()
    if any(want.is_of_pair for want in wanted) or not any(want.is_of_value for want in wanted):
        return
    for form in _TOGETHER:
        yield OtherMeasurements(_Builder(asked, wanted, None, form))


# --- measurements -----------------------------------------------------------------------------------------

_MOST_RIDES = 4
"""Of how many values a stored pair is looked for that carries the counts."""


class _Form(enum.Enum):
    """By what values are summed."""

    LEAST = "direct sums where only sums are asked, else complementary pairs"
    PAIRS = "pairs"
    WITH_NULLS = "pairs that count the rows without a value too"
    CENTRED = "centred sums beside counts"
    JOINT = "squares jointly with the counts and sums of the same rows"
    PARTS = "all that a joint draw could hold"
    PARTS_OF_SQUARES = "the same, over lattices as for squares"
    TOGETHER = "one joint draw of all values"
    TOGETHER_BUT_NULLS = "the same of those that are never NULL"


_TOGETHER = (_Form.TOGETHER, _Form.TOGETHER_BUT_NULLS)
_LEAST = (_Form.LEAST, _Form.JOINT, _Form.PARTS, _Form.PARTS_OF_SQUARES, *_TOGETHER)
"""Forms in which what is only summed is summed as it is."""


def _forms(wanted: Sequence[NormalizedAggregate]) -> Sequence[_Form]:
    """Return the forms in which aggregates are looked for; where no value is summed, counts together and one by one."""
    if any(want.is_of_pair for want in wanted):
        return _Form.JOINT, _Form.PARTS
    if any(want.is_of_value for want in wanted):
        is_pairs = not any(want.is_sum_alone for want in wanted)  # of least error too
        return tuple(form for form in _Form if form is not _Form.PAIRS or not is_pairs)
    is_one = len({(want.function, want.filter) for want in wanted}) == 1 and wanted[0].counts_rows
    return (_Form.LEAST,) if is_one else (_Form.LEAST, _Form.PARTS)


def _carriers(wanted: Sequence[NormalizedAggregate]) -> list[Expr | None]:
    """Return the values whose pair could carry the row counts; None: the counts have their own measurement."""
    if not any(want.counts_rows for want in wanted):
        return [None]
    values = dict.fromkeys(want.value for want in wanted if want.is_of_value)
    return [None, *(value for value in values if value is not None)]


Plans = dict[tuple[str, Expr | None, Expr | None], tuple[int, "Lattice | None"]]
"""By kind, value and filter: the measurement that has the sums of an aggregate, by number, and its lattice."""


class _Builder:
    """The measurements of a form, and where what each aggregate is of them stands; `carrier`: whose pair has counts."""

    def __init__(
        self, asked: Asked, wanted: Sequence[NormalizedAggregate], carrier: Expr | None, form: _Form = _Form.LEAST
    ) -> None:  # fmt: skip
        self.asked, self.wanted, self.carrier, self.form = asked, wanted, carrier, form
        self.env, self.bounding = asked.env, asked.bounding
        self.measurements: list[Measurement] = []
        self.plans: Plans = {}
        self._starts: list[int] = []
        self._numbers: dict[int, int] = {}
        self._held: dict[int, dict[Expr, list[int]]] = {}
        self.joined = self._joined()
        apart = [want for index, want in enumerate(wanted) if index not in self.joined]
        counts = [want for want in apart if want.counts_rows]
        for value in dict.fromkeys(want.value for want in apart if want.is_of_value):
            assert value is not None
            carried = counts if carrier is not None and value == carrier else []
            wants = [w for w in apart if w.value == value and w.is_of_value]
            counts = [*counts, *_add_value(self, value, wants, carried)]
        if carrier is None and counts:
            _add_counts(self, counts)

    def _joined(self) -> dict[int, Joined]:
        form = self.form
        if form in (_Form.JOINT, _Form.PARTS, _Form.PARTS_OF_SQUARES):
            return add_joints(
                self.number_of, self.wanted, self.env, self.bounding,
                every=form is not _Form.JOINT, squared=form is _Form.PARTS_OF_SQUARES,
            )  # fmt: skip
        if form not in _TOGETHER:
            return {}
        with_nulls = form is _Form.TOGETHER
        return add_together(self.number_of, self.wanted, self.env, self.bounding, with_nulls=with_nulls)

    def answered(self) -> tuple[tuple[Fraction, int], ChosenMeasurements]:
        """Return how far off the answers are, with how many measurements; and these with what each aggregate is of
        them."""
        formulas = [
            _of_joint(self, want, self.joined[index]) if index in self.joined else _formula(self, want)
            for index, want in enumerate(self.wanted)
        ]
        counted = _counted(self)
        shares = _shares(self, formulas, counted, self.asked.found_share)
        power = 1 if self.asked.is_zcdp else 2  # the variance of a coordinate, by that of one alone
        each = [_variance(one) / share**power for one, share in zip(self.measurements, shares, strict=True)]
        error = sum((_noises(formula, each) for formula in formulas), Fraction(0))
        for number in sorted(self.asked.zeros):
            formulas.insert(number, Linear((), Fraction(0), grid=Fraction(1)))
        chosen = ChosenMeasurements(tuple(self.measurements), tuple(formulas), counted, shares)
        return (error, len(shares)), chosen

    def add(
        self, kind: type[Measurement], value: Expr | None, lattice: Lattice | None, masks: Sequence[Mask],
        null_rows: bool = False, limit: int = 0,
    ) -> int:  # fmt: skip
        """Add a measurement (once) and return its number."""
        return self.number_of(kind(value, lattice, tuple(masks), null_rows, limit, self.bounding))

    def number_of(self, measurement: Measurement) -> int:
        """Add a measurement (once) and return its number."""
        measurement = self.asked.the_one(measurement)
        if id(measurement) in self._numbers:
            return self._numbers[id(measurement)]
        before = self._starts[-1] + self.measurements[-1].size if self.measurements else 0
        self._starts.append(before)
        self.measurements.append(measurement)
        return self._numbers.setdefault(id(measurement), len(self._numbers))

    def coordinate(self, number: int, place: int = 0) -> Coord:
        """Return a coordinate of a measurement."""
        return Coord(self._starts[number] + place, number, place)

    def sum_over(self, number: int, filter_: Expr | None, part: int, weight: Fraction) -> Linear:
        """Return weight · Σ of one part of a measurement, in lattice units, over the masks in which the filter is
        true."""
        measurement = self.measurements[number]
        weight = weight / measurement.denominator
        places = range(len(measurement.masks)) if filter_ is None else self._masks_in(number, filter_)
        terms = ((self.coordinate(number, at * measurement.per_mask + part), weight) for at in places)
        return Linear(tuple(terms), Fraction(0))

    def _masks_in(self, number: int, filter_: Expr) -> Sequence[int]:
        """Return the places of a measurement's masks in which a filter is true."""
        if number not in self._held:
            held = self._held[number] = {}
            for place, mask in enumerate(self.measurements[number].masks):
                for term, truth in mask.terms:
                    if truth:
                        held.setdefault(term, []).append(place)
        return self._held[number].get(filter_, ())


FOUND_SHARE = Fraction(1, 5)
"""Of what a release spends, the part of a count of people that only finds the groups."""


def _shares(
    builder: _Builder, formulas: Sequence[Formula], counted: int | None, found_share: Fraction | None
) -> tuple[Fraction, ...]:
    """Return each measurement's part of what a release spends: a function of the text (soundness.md 1.8).

    Equal ones; but a count of people that finds the groups, and is told of none, has a fifth where more is told of
    them than counts of people: large groups are found with it, and what is told is more exact. `found_share` is of any.
    """
    measurements, count = builder.measurements, len(builder.measurements)
    if counted is None or count == 1:
        return tuple(Fraction(1, count) for _ in measurements)
    if found_share is None:
        people = (People, Count) if builder.bounding.per_row else (People,)
        told = {coordinate.measure for formula in formulas for coordinate in formula.coordinates}
        is_for_finding = counted not in told and not all(isinstance(measurements[i], people) for i in told)
        found_share = FOUND_SHARE if is_for_finding else Fraction(1, count)
    rest = (1 - found_share) / (count - 1)
    return tuple(found_share if number == counted else rest for number in range(count))


def _noises(formula: Formula, each: Sequence[Fraction]) -> Fraction:
    """Return how many variances of a Laplace noise, of the same sensitivity at all that is spent, a formula has.

    `each`: how many a coordinate of each measurement has.
    """
    if formula.compared is None:
        return max((each[one.measure] for one in formula.coordinates), default=Fraction(0))
    return sum((each[one.measure] for one, _ in formula.compared.terms), Fraction(0))


def _variance(measurement: Measurement) -> Fraction:
    """Return a coordinate's variance over that of one Laplace noise: of k drawn together (k + 1) (k + 2) / 6."""
    size = measurement.per_mask
    return Fraction((size + 1) * (size + 2), 6) if isinstance(measurement, Joint) else Fraction(1)


def _filters(wants: Sequence[NormalizedAggregate]) -> tuple[list[Expr], bool]:
    filters = list(dict.fromkeys(want.filter for want in wants if want.filter is not None))
    return filters, any(want.filter is None for want in wants)


def _add_counts(builder: _Builder, counts: Sequence[NormalizedAggregate]) -> None:
    filters, rest = _filters(counts)
    together = masks_of(filters, rest, _MAX_COUNT_MASKS)
    if together is not None and _is_better_by_masks(builder, together, rest, len(filters) + rest):
        number = builder.add(Count, None, None, together)
        for want in counts:
            builder.plans["count", None, want.filter] = number, None
        return
    for want in counts:
        builder.plans["count", None, want.filter] = builder.add(Count, None, None, _mask(want)), None


def _is_better_by_masks(builder: _Builder, masks: Sequence[Mask], rest: bool, separate: int) -> bool:
    """Say whether counts by disjoint masks, whose noises add up, are less off than counts that share what is spent."""
    # In units of one count's variance at all that is spent: n counts that share an epsilon have n² each, n
    # that share a rho have n each, n² together; of masks, drawn with all of it, a count adds up those in
    # which its filter is true, at most `together`. Epsilon compares the worst count, rho the sum over the
    # counts.
    if len(masks) <= 2 or not builder.asked.is_zcdp:
        return len(masks) <= max(2, separate**2)
    added = sum(1 for mask in masks for _, truth in mask.terms if truth) + (len(masks) if rest else 0)
    return added <= separate**2


def _add_value(
    builder: _Builder, value: Expr, wants: Sequence[NormalizedAggregate], carried: Sequence[NormalizedAggregate]
) -> list[NormalizedAggregate]:  # fmt: skip
    """Add the measurements for one summed value, in the form; return the counts that are needed beside them."""
    form, plans = builder.form, builder.plans
    squared = any(want.is_spread for want in wants)
    lattice = lattice_of(value, builder.env, squared=squared)
    if lattice is None or lattice.width == 0:
        _add_constant(builder, value, lattice or _NOTHING, [*wants, *carried])
        return []
    kind: type[Measurement]
    if form not in _LEAST or carried or not all(want.is_sum_alone for want in wants):
        name, kind = "pair", Pair
    else:
        name, kind = "sum", Sum
    if form is _Form.CENTRED:
        name, kind = "centred", Centred
    filters, rest = _filters([*wants, *carried])
    together = masks_of(filters, rest, _MAX_VALUE_MASKS)
    groups: list[tuple[list[Expr], bool, list[Mask]]] = [
        *(([f], False, [Mask(((f, True),))]) for f in filters), *([([], True, [Mask(())])] if rest else [])
    ]  # fmt: skip
    if together is not None:
        groups = [(filters, rest, together)]
    nullable = narrowed_facts(value, builder.env).nullable
    for chosen, whole, masks in groups:
        null_rows = (bool(carried) or form is _Form.WITH_NULLS) and nullable
        number = builder.add(kind, value, lattice, masks, null_rows)
        moment = builder.add(Moment, value, lattice, masks) if squared else number
        for filter_ in [*chosen, *([None] if whole else [])]:
            plans[name, value, filter_] = number, lattice
            plans["moment", value, filter_] = moment, lattice
    return [_rows_of(builder, want) for want in wants] if form is _Form.CENTRED else []


def _add_constant(
    builder: _Builder, value: Expr, lattice: Lattice, wants: Sequence[NormalizedAggregate]
) -> None:
    """A value with one possible content: only its rows are counted (soundness.md 1.6)."""
    renamed = [_rows_of(builder, want) for want in wants]
    _add_counts(builder, renamed)
    plans = builder.plans
    for want, counted in zip(wants, renamed, strict=True):
        if want.value is not None:
            plans["constant", value, want.filter] = plans["count", None, counted.filter][0], lattice


def _rows_of(builder: _Builder, want: NormalizedAggregate) -> NormalizedAggregate:
    """Return the count of the rows that an aggregate takes in."""
    rows = want.filter if want.value is None else both(want.filter, present(want.value, builder.env))
    return replace(want, filter=rows)


def _formula(builder: _Builder, want: NormalizedAggregate) -> Formula:
    plans, carrier = builder.plans, builder.carrier
    one = Fraction(1)
    alone = _ALONE.get(want.function)
    if alone is not None:
        return alone(builder, want)
    if want.value is None:
        factor = want.factor
        if carrier is not None and ("pair", carrier, want.filter) in plans:
            number, lattice = plans["pair", carrier, want.filter]
            assert lattice is not None
            parts = [builder.sum_over(number, want.filter, part, factor / lattice.width)
                     for part in range(builder.measurements[number].per_mask)]  # fmt: skip
            return _counted_in(want, reduce(Linear.plus, parts))
        number, _ = plans["count", None, want.filter]
        return _counted_in(want, builder.sum_over(number, want.filter, 0, factor))
    if ("sum", want.value, want.filter) in plans:
        number, lattice = plans["sum", want.value, want.filter]
        assert lattice is not None
        return _summed_in(want, lattice, builder.sum_over(number, want.filter, 0, want.factor * lattice.step))
    kind = next(kind for kind in _CENTRED if (kind, want.value, want.filter) in plans)
    number, lattice = plans[kind, want.value, want.filter]
    assert lattice is not None
    difference, count = _CENTRED[kind](builder, want, number, lattice)
    moment = difference
    if want.is_spread and kind != "constant":
        moment = builder.sum_over(plans["moment", want.value, want.filter][0], want.filter, 0, one)
    return _of_centred(want, difference, count, lattice, moment)


def _of_constant(
    builder: _Builder, want: NormalizedAggregate, number: int, lattice: Lattice
) -> tuple[Linear, Linear]:
    """Of a value with one content nothing is summed: only its rows are counted (soundness.md 1.6)."""
    return _NO_SUM, builder.sum_over(number, _rows_of(builder, want).filter, 0, Fraction(1))


def _beside_count(
    builder: _Builder, want: NormalizedAggregate, number: int, lattice: Lattice
) -> tuple[Linear, Linear]:
    """Return a centred sum, and the count of its rows, which is measured beside it."""
    rows = _rows_of(builder, want).filter
    counted = builder.plans["count", None, rows][0]
    difference, count = ((number, want.filter), (counted, rows))
    return builder.sum_over(*difference, 0, Fraction(1)), builder.sum_over(*count, 0, Fraction(1))


def _of_pair_sums(
    builder: _Builder, want: NormalizedAggregate, number: int, lattice: Lattice
) -> tuple[Linear, Linear]:
    """Return the difference of complementary sums, and their sum over the width, which is the count of the rows."""
    above, below = (builder.sum_over(number, want.filter, part, Fraction(1)) for part in (0, 1))
    width = Fraction(1, lattice.width)
    return above.plus(below.times(Fraction(-1))), above.times(width).plus(below.times(width))


_CENTRED = {"constant": _of_constant, "centred": _beside_count, "pair": _of_pair_sums}
"""Kind of plan -> the centred sum and the count that it gives."""
_NO_SUM = Linear((), Fraction(0))


def _of_joint(builder: _Builder, want: NormalizedAggregate, place: Joined) -> Formula:
    """Return what a joint measurement's coordinates give."""
    parts = [part.said for part in builder.measurements[place.number].parts]

    def total(kind: type[Measurement]) -> Linear:
        lattice = None if kind is Count else _lattice_in(builder, want, place)
        value = None if kind is Count else want.value
        if lattice is not None and lattice.width == 0:
            return _NO_SUM  # of what is constant nothing is summed
        return sum_of(parts.index((kind.kind, 0, value, lattice)))

    def sum_of(part: int) -> Linear:
        return builder.sum_over(place.number, place.rows, part, Fraction(1))

    own = (Present.kind, 0, want.value, None)
    count = sum_of(parts.index(own)) if own in parts else total(Count)
    if want.is_of_pair:
        return _of_pair(builder, want, place, count)
    if want.value is None:
        return _counted_in(want, count.times(want.factor))
    lattice = _lattice_in(builder, want, place)
    moment = total(Moment) if want.is_spread else _NO_SUM
    return _of_centred(want, total(Centred), count, lattice, moment)


def _of_pair(builder: _Builder, want: NormalizedAggregate, place: Joined, count: Linear) -> Formula:
    """Return a function of two values; of one that is constant nothing is summed, and its centred sums are 0."""
    found = list(builder.measurements[place.number].parts)

    def total(*said: object) -> Linear:
        index = next((i for i, part in enumerate(found) if part.said == said), None)
        if index is None:
            return _NO_SUM
        return builder.sum_over(place.number, place.rows, index, Fraction(1))

    sides, variables = [], []
    for value in want.values:
        own = (part.known_lattice for part in found if part.value == value)
        lattice = next(own, None) or lattice_of(value, builder.env, squared=True) or _NOTHING
        side = (Centred.kind, 0, value, lattice)
        sides.append(side)
        squares = total(Moment.kind, 0, value, lattice)
        middle = Fraction(lattice.low + lattice.high, 2) * lattice.step
        variables.append(Variable(total(*side), squares, lattice.width, lattice.step, middle))
    y, x = variables
    if sum(want.needs.powers) == 1:  # the average of one of them
        one = y if want.needs.powers[0] else x
        reach = one.width * one.step / 2
        return Average(
            one.total.times(one.step / 2), count, one.middle, one.middle - reach, one.middle + reach
        )
    return Bivariate(want.function, count, y, x, total(Product.kind, *sides))


_NOTHING = Lattice(0, 0, Fraction(1), Fraction(0), Fraction(0), exact=True)
"""The lattice of what no row can have."""


def _lattice_in(builder: _Builder, want: NormalizedAggregate, place: Joined) -> Lattice:
    """Return the lattice that an aggregate's value has in a joint measurement."""
    for part in builder.measurements[place.number].parts:
        if want.value is not None and part.value == want.value:
            return part.known_lattice
    return _NOTHING


def _of_centred(
    want: NormalizedAggregate, difference: Linear, count: Linear, lattice: Lattice, moment: Linear
) -> Formula:
    """Return what Σ(2z - (L + H)), the count of its rows and the moment give."""
    step = want.factor * lattice.step
    if want.is_spread:
        return Variance(moment, difference, count, lattice.width, abs(step), want.function)
    middle = Fraction(lattice.low + lattice.high, 2) * step + want.offset
    return _OF_SUMS[want.function](want, lattice, difference.times(step / 2), count, middle)


def _average(
    want: NormalizedAggregate, lattice: Lattice, total: Linear, count: Linear, middle: Fraction
) -> Formula:
    low, high = sorted(want.factor * lattice.step * end + want.offset for end in (lattice.low, lattice.high))
    return Average(total, count, middle, low, high)


def _counted_in(want: NormalizedAggregate, count: Linear) -> Linear:
    """Return a count of rows, times a factor, with what all exact ones are multiples of."""
    return replace(count, grid=abs(want.factor) or Fraction(1))


def _summed_in(want: NormalizedAggregate, lattice: Lattice, total: Linear) -> Linear:
    """Return a sum with what all exact ones are multiples of, each row's value rounded to its lattice."""
    step = abs(want.factor * lattice.step)
    if lattice.width == 0:
        return replace(total, grid=abs(want.factor * lattice.step * lattice.low + want.offset) or Fraction(1))
    sizes = [size for size in (step, abs(want.offset)) if size]
    return replace(total, grid=common_grid(sizes) or Fraction(1))


_OF_SUMS: dict[str, Callable[[NormalizedAggregate, Lattice, Linear, Linear, Fraction], Formula]] = {
    "present": lambda want, lattice, total, count, middle: _counted_in(want, count),
    "sum": lambda want, lattice, total, count, middle: _summed_in(want, lattice, total.plus(count.times(middle))),
    "avg": _average,
}  # fmt: skip
"""Function of one value's sum -> what it is of the sum from the middle, the count, and the middle."""

check_printers(_OF_SUMS.keys() - {"present"}, lambda row: row.needs.powers == (1,))


def _mask(want: NormalizedAggregate) -> tuple[Mask, ...]:
    """Return the rows that an aggregate takes in, as the one mask of a measurement of its own."""
    return (Mask(()) if want.filter is None else Mask(((want.filter, True),)),)


def _people(builder: _Builder, want: NormalizedAggregate) -> Formula:
    number = builder.add(People, None, None, _mask(want))
    return _counted_in(want, builder.sum_over(number, want.filter, 0, Fraction(1)))


def _distinct(builder: _Builder, want: NormalizedAggregate) -> Formula:
    assert want.value is not None
    facts = narrowed_facts(want.value, builder.env)
    size = None if facts.values is None else len(facts.values)
    bounding = builder.bounding
    in_group = bounding.in_group if size is None else max(1, min(bounding.in_group, size))
    limit = min(bounding.in_all, bounding.groups * in_group)
    number = builder.add(DistinctValues, want.value, None, _mask(want), limit=limit)
    count = builder.sum_over(number, want.filter, 0, Fraction(1))
    return Within(count.terms, count.constant, 0, _size_of_domain(facts), grid=Fraction(1))


def _direct(builder: _Builder, want: NormalizedAggregate) -> Formula:
    assert want.value is not None
    lattice = lattice_of(want.value, builder.env, squared=False)
    if lattice is None or lattice.width == 0:
        raise Refusal("this average has one possible value", sqlstate="PV201", position=want.call.position)
    number = builder.add(Direct, want.value, lattice, _mask(want))
    return builder.sum_over(number, want.filter, 0, lattice.step)


def _size_of_domain(facts: Facts) -> int | None:
    """Return how many values are possible, NULL aside; None where nobody has said."""
    if facts.values is not None:
        return len(facts.values)
    if facts.lo is None or facts.hi is None or facts.grid is None or not facts.declared:
        return None
    return max(0, math.floor(facts.hi / facts.grid) - math.ceil(facts.lo / facts.grid) + 1)


def _rank(builder: _Builder, want: NormalizedAggregate) -> Formula:
    """Return the coordinate of a fraction: three and more of the same rows are one measurement (soundness.md 1.21)."""
    assert want.value is not None
    lattice = candidates_of(want.value, builder.env)
    if lattice is None:  # no row can count, and nothing is asked of the engine
        return Chosen(None, Fraction(1), None)
    if lattice.width == 0:
        return Chosen(None, lattice.step, lattice.low * lattice.step)
    masks, share, is_extreme = _mask(want), want.call.share, want.call.row.is_extreme
    of: _Of = (want.value, lattice, masks, False, 0, builder.bounding)
    shares = [share] if is_extreme else sorted({
        one.call.share for one in builder.wanted
        if (one.function, one.value, one.filter) == (want.function, want.value, want.filter)
        and not one.call.row.is_extreme
    })  # fmt: skip
    bar = None if is_extreme else builder.asked.bars.get((want.value, masks))
    if bar is not None:
        return _with_bar(builder, of, shares, share, bar)
    if len(shares) > MAX_FRACTIONS:
        raise Refusal(
            f"these are {len(shares)} percentiles of the same rows; at most {MAX_FRACTIONS} are answered",
            sqlstate="54001", position=want.call.position, hint="ask for some of them",
        )  # fmt: skip
    if len(shares) < LEAST_SPLIT:
        return Chosen(builder.coordinate(builder.number_of(RankMeasurement(*of, share))), lattice.step)
    number = builder.number_of(SplitMeasurement(*of, tuple(shares)))
    return Chosen(builder.coordinate(number, shares.index(share)), lattice.step)


def _with_bar(
    builder: _Builder, of: _Of, shares: Sequence[Fraction], share: Fraction, bar: ValueBar
) -> Chosen:
    """Return the coordinate of a fraction, and of those at the ends of its bar: all of them are one measurement."""
    drawn, lattice = around(shares, bar.half), of[1]
    number = builder.number_of(SplitMeasurement(*of, drawn))
    low, high = (
        builder.coordinate(number, drawn.index(one)) if one in drawn else None
        for one in (share - bar.half, share + bar.half)
    )
    ends = None
    if 0 < share < 1 and (low, high) != (None, None):
        parts = LOG_PARTS if isinstance(lattice, LogLattice) else None
        ends = Ends(low, high, lattice.low, lattice.high, bar.rows, parts)
    return Chosen(builder.coordinate(number, drawn.index(share)), lattice.step, ends=ends)


_Of = tuple[Expr, Lattice, tuple[Mask, ...], bool, int, Bounding]
"""What a measurement of values by rank is of."""


def _mode(builder: _Builder, want: NormalizedAggregate) -> Formula:
    assert want.value is not None
    known = domain_of(want.value, builder.env)
    if known is None:
        raise Refusal(
            "the values that could be the most frequent are not known", position=want.call.position,
            hint="declare them, list them in WHERE x IN (…); or GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1",
        )  # fmt: skip
    values = tuple(value for value in known.values if value is not None)
    if not values:
        return Chosen(None, Fraction(1), None)
    measurement = ModeMeasurement(want.value, None, _mask(want), False, 0, builder.bounding, values)
    number = builder.number_of(measurement)
    return ChosenOf(builder.coordinate(number), Fraction(1), values=values)


_ALONE: dict[str, Callable[[_Builder, NormalizedAggregate], Formula]] = {
    "rank": _rank,
    "mode": _mode,
    "units": _people,
    "distinct": _distinct,
    "direct": _direct,
}
"""What has a measurement of its own -> its formula."""


def _counted(builder: _Builder) -> int | None:
    """Return the measurement that counts units for the threshold, adding one when none does.

    A row count serves only where a unit has one row by the engine's own constraint: it is then the
    units measure itself (soundness.md 1.7).
    """
    if not builder.asked.finds_groups:
        return None
    if builder.bounding.per_row and builder.bounding.of_two is None:
        for number, measurement in enumerate(builder.measurements):
            if measurement.kind == Count.kind and measurement.masks == (Mask(()),):
                return number
    return builder.add(People, None, None, [Mask(())])


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first `count` rows of a release in descending order of an aggregate, by its number."""

    aggregate: int
    count: int


def top_rows(relations: Sequence[Relation]) -> dict[Release, TopRows]:
    """Return the releases of which a statement reads nothing but its first rows, each in one place.

    What else may stand above: expressions of a row, and whatever reads the few rows. A filter before the LIMIT
    (HAVING), an OFFSET, another use of the release need the other groups too.
    """
    nodes = [node for relation in relations for node in _nodes(relation)]
    uses = Counter(node for node in nodes if isinstance(node, Release))
    found = {}
    for node in nodes:
        if ends_in(node, "limit") and (one := _of_limit(node)) is not None and uses[one[0]] == 1:
            found[one[0]] = one[1]
    return found


def _nodes(relation: Relation) -> Iterator[Relation]:
    """Yield a relation's nodes, those of its subqueries included; what is used twice comes twice."""
    yield relation
    for below in (*relation.inputs, *subqueries(relation)):
        yield from _nodes(below)


def _of_limit(node: Block) -> tuple[Release, TopRows] | None:
    below, (count, offset) = skipped(node.below, "outputs"), node.limit or (None, 0)
    if not count or offset or not ends_in(below, "orders") or not below.orders[0].descending:
        return None
    expr, source = below.orders[0].expr, below.below
    while ends_in(source, "outputs") and expr.column is not None:
        expr, source = source.exprs[expr.column], source.below
    if not isinstance(source, Release):
        return None
    aggregate = source.aggregate_at(expr)
    return None if aggregate is None else (source, TopRows(aggregate, count))


MAX_CHOSEN = 32
"""Most groups that are chosen."""
_MOST_SCORES = 2**18
"""Most scores that are compared, over all choices: some seconds."""
_WORTH = 4
"""How much smaller the noise has to be for a choice, which takes its own part of epsilon."""


@dataclass(frozen=True, slots=True)
class TopGroups(Measurement):
    """The `count` groups where `of` is largest, by so many choices one after the other, each among those that are left.

    Its one coordinate is the score of a group: `of` without noise, of each unit at most `each`. `groups`: among how
    many. `aggregate`: whose score it is, by its number in the release.
    """

    kind = "top"
    query = BoundingQuery.TOP
    label = "choice of groups"

    of: Measurement
    count: int
    groups: int = field(compare=False)
    aggregate: int = field(default=0, compare=False)

    @property
    def each(self) -> int:
        """Most that one unit adds to the score of a group: min(R, M) rows of the largest reach, or one person."""
        if self.of.is_of_people:
            return 1
        return min(self.bounding.in_all, self.bounding.in_group) * self.of.reach

    @property
    def added(self) -> Steps:
        """`count` times `each`: what a unit moves all choices by together."""
        return Steps(self.count * self.each)

    def whole(self, sums: Sums) -> list[str]:
        return self.of.whole(sums)

    def key_of(self, part: int) -> tuple[object, ...]:
        return (*Measurement.key_of(self, part), self.of.kind, self.count, self.bounding)

    def law(self, epsilon: Fraction) -> Rank:
        """Return what is known of the choices: by how much a group that is left out may be larger than the smallest
        that is chosen, in what the score counts.
        """
        return Rank(self.scale(epsilon), self.groups * self.count)

    def drawn(self, loss: Loss) -> Law:
        """Permute-and-flip costs what any pure draw does (1.25)."""
        return self.law(loss.epsilon)


def top_groups(
    call: AggregateCall, env: Environment, bounding: Bounding, units: Units, count: int, groups: int
) -> TopGroups | None:
    """Return the choice of the `count` groups of so many where an aggregate is largest; None where it does not pay.

    It pays where what is chosen is then measured with a quarter of the noise, by bounds alone: a unit has fewer rows,
    or is in fewer groups, of those that are chosen than of all.
    """
    if not 0 < count <= min(MAX_CHOSEN, groups - 1) or count * groups > _MOST_SCORES:
        return None
    of = _score(call, env, bounding, units)
    if of is None:
        return None
    few = among(bounding, count)
    top = TopGroups(of.value, of.lattice, of.masks, False, 0, bounding, of, count, groups)
    before, after = (bounding.groups, few.groups) if of.is_of_people else (bounding.in_all, few.in_all)
    return None if before < _WORTH * after else top


def among(bounding: Bounding, count: int) -> Bounding:
    """Return the bounds of a release whose rows are those of `count` groups alone, known beforehand."""
    return replace(
        bounding,
        in_all=min(bounding.in_all, count * bounding.in_group),
        groups=min(bounding.groups, count),
        ranked=bounding.ranked and bounding.groups < count,
    )


def _score(call: AggregateCall, env: Environment, bounding: Bounding, units: Units) -> Measurement | None:
    """Return the one measurement whose only coordinate an aggregate follows, where no unit makes it smaller."""
    if call.function not in ("count", "sum"):
        return None
    found = choose_measurements(Asked([call], env, bounding, units))
    if not _follows_one(found.measurements, found.formulas):
        return None
    (measurement,) = found.measurements
    grows = measurement.is_count or (measurement.kind == Sum.kind and measurement.known_lattice.low >= 0)
    return measurement if grows else None


def _follows_one(measurements: Sequence[Measurement], formulas: Sequence[object]) -> bool:
    (formula,) = formulas
    if len(measurements) != 1 or measurements[0].size != 1 or not isinstance(formula, Linear):
        return False
    return [one.number for one, weight in formula.terms if weight > 0] == [0]
