"""What one release is: its measurements with their noise and charge, its queries, and the keys of its stored draws.

House rule: what the exact measures depend on, but data and epoch, is hashed into `identity` and `measure_keys`
(soundness.md 3.7). What changes a measure and is in neither would answer one question with another's draw.

What a release rests on of policy and schema is the part of its identity that an edit changes (soundness.md 3.7).

House rules of these grounds:

1. A release rests on what is said of the whole dataset, of each table that it reads, in subqueries too, of each column
   that some expression of it reads, and of the way from its rows to their owners; and on what the intermediate results
   rest on that it depends on. Nothing else of policy or schema may enter a plan of what is stored.
2. Too much here is paid anew after an edit that changes nothing; too little hands out a number of another question.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

from ..cache import Cache, Made
from ..mechanisms import ATTO, Gaussian, Law, SquareRoot, Thresholded, Truncated, floor_to_nano, pure_epsilon
from ..mechanisms.discrete_laplace import bounds_of_exp
from ..mechanisms.laws.square_root import MOST_PLACES, squared_of
from ..policy.periods import Slices
from ..records import dataclass
from ..relation.catalog import Ground, Scalar, Table
from ..relation.expressions import Expr, IntermediateValue, fields_of, parts_in
from ..relation.facts import MAX_JOINED_BYTES, row_bytes
from ..relation.intervals import Environment, Lattice, LogLattice, facts_of
from ..relation.relations import Relation, tables_in
from .backend_sql.print_release import BackendQuery, Part, ReleasePrinter, Tested, print_fan
from .dialects import Dialect
from .measures.formulas import Formula, Linear
from .measures.least_error import TopGroups
from .measures.measurements import Bounding, BoundingQuery, Choice, Loss, Measurement, counted_in
from .measures.ranks import Bars
from .privacy.axes import Axis, axis_of, is_reported
from .privacy.growth import MAX_GROWN
from .privacy.keys import MAX_DOMAIN, Domain, domain_of, environment_of
from .privacy.rows import (
    Item,
    OwnedRows,
    Release,
    Select,
    Source,
    fields_in,
    intermediates_in,
    selects_in,
    source_at,
    written_in,
)


@dataclass(frozen=True)
class Planned:
    """A measurement, its loss, and its law, scale and choice by these.

    `given`: a law that is fixed elsewhere (the rule by which groups are shown, a stored draw, the ledger); None: it
    follows from measurement and loss.
    `is_stored`: a stored draw has it, which is neither charged nor asked. What costs nothing and is not stored is
    answered exactly, without the engine: no law is on it, and its scale is 0. `share`: its part of what its release may
    spend, by the text alone. `places`: of how many groups running sums are drawn by square root, in place of the groups
    (soundness.md 1.44); None: the groups are.
    """

    measurement: Measurement
    loss: Loss
    given: Law | None = None
    is_stored: bool = False
    share: Fraction = Fraction(1)
    places: int | None = None

    @property
    def epsilon(self) -> Fraction:
        """What it costs in epsilon; of rho, that of the pure draw that costs as much."""
        return self.loss.epsilon

    @property
    def rho_atto(self) -> int:
        """What it costs in zCDP, in 1e-18 and rounded up; of a pure draw by its epsilon."""
        return self.loss.rho_atto

    @property
    def is_exact(self) -> bool:
        """Whether it gets no noise, since no row can count."""
        return self.loss.is_nothing and not self.is_stored

    @cached_property
    def law(self) -> Law:
        """The law of the noise that it is to have. Not for what is exact."""
        if self.given is not None:
            return self.given
        if self.places is not None:
            return SquareRoot.for_rho(self.squared_sensitivity, self.loss.added)
        return self.measurement.drawn(self.loss)

    @property
    def column(self) -> int:
        """How many times the square of a group's move is that of all that is drawn of it: the sums by square root."""
        return 1 if self.places is None else squared_of(self.places)

    @property
    def squared_sensitivity(self) -> int:
        """That of what is drawn, of the coordinates or of their sums by square root."""
        return self.column * self.measurement.squared_sensitivity

    @property
    def scale(self) -> Fraction:
        """The noise scale, in the coordinates' own fractions; 0 for what is exact."""
        if self.is_exact:
            return Fraction(0)
        return self.law.scale if self.is_stored else self.measurement.scale_at(self.loss, self.law)

    @cached_property
    def choice(self) -> Choice | None:
        """What is chosen for each group; None: numbers are noised, or it was chosen before, or nothing is drawn."""
        return None if self.is_exact or self.is_stored else self.measurement.choice_at(self.loss)


KeyLaw = Truncated | Thresholded
"""The noise on a count of people with the rule by which groups are shown."""


@dataclass(frozen=True, slots=True)
class Work:
    """Rows that a join makes of one person's: `most` times what each of the `fans` counts; at most `limit`."""

    most: int
    fans: tuple[BackendQuery, ...]
    limit: int


class _Measured:
    """What was made of measurements of some rows, whatever their noise and price: plans that differ by these share it.

    Of queries with the domains, whose number is part of the key.
    """

    def __init__(self, *those: object) -> None:
        self.queries: dict[object, tuple[object, tuple[BackendQuery, ...]]] = {}


class _Said:
    """What the keys of one measurement of some rows say, by the filters of which one must hold on what is counted.

    Of a family with the predicate, whose number is part of the key.
    """

    def __init__(self, *those: object) -> None:
        self.families: dict[tuple[int, tuple[Expr, ...]], tuple[object, bytes]] = {}
        self.labels: dict[tuple[Expr, ...], list[tuple[bytes, bytes]]] = {}


_measured = Made(_Measured)
_said_by = Made(_Said, 64)


def _rows_text(rows: OwnedRows, predicate: tuple[Expr, ...], below: Sequence[frozenset[Ground]]) -> str:
    """Return what a family's text says of its rows, those on which a predicate holds, whatever is measured of them."""
    asked = rows if predicate is rows.predicate else replace(rows, predicate=predicate)
    rests = sorted(grounds_of(asked, (), below))
    return ", ".join(map(repr, (rests, rows.items, predicate, *rows.owner)))


_rows_texts = Made(_rows_text)
_SUMMED = b"running sums by square root"
"""In a store key: what is drawn are not the numbers of the groups."""
_MANY_LABELS = 64
"""Coordinates of a measurement from which on their labels are not kept: they are long."""


@dataclass(frozen=True)
class ReleasePlan:
    """One release: what is asked of the engine, and the noise and charge of each measurement.

    `formulas`: per aggregate, what it is of the coordinates. `domains`: the public values of each key, where it has
    them. `groups`: the declared groups, None when keys are found by threshold, at `delta`: by the law on measurement
    `counted`, among the groups of `minimum_units`.
    `identity` hashes everything the exact measures depend on but data and epoch; it is completed by
    `measure_keys`. `grounds`: what its rows and keys rest on of policy and schema, which is in that hash; `below`: what
    each intermediate result of the statement does (soundness.md 3.7). `is_empty`: no row can count, by the text alone:
    answered exactly and free, without the engine (soundness.md 1.16). `zeros`: aggregates of which that holds, by
    number, of a release that is not empty: nothing is measured of them. `is_proved`: one of these rests on the text and
    on constraints that the engine enforces, in the schema of the snapshot that answers. `listed_from`: the public
    tables that keys were read from. `is_wide`: there were too many values to tell which groups can have rows.
    `unselected`: where groups are chosen, the plan of all of them (1.23). `bars`: of which chosen values (1.21).
    `slices`: whose data it is charged for, under a budget by periods (1.40); None: there are none, or nothing is.
    """

    release: Release
    bounding: Bounding
    measures: tuple[Planned, ...]
    formulas: tuple[Formula, ...]
    domains: tuple[Domain | None, ...]
    groups: tuple[tuple[Scalar, ...], ...] | None
    counted: int | None
    minimum_units: int
    delta: Fraction
    is_empty: bool
    identity: bytes
    grounds: tuple[Ground, ...]
    dialect: Dialect = field(repr=False, compare=False)
    listed_from: tuple[str, ...] = ()
    bars: Bars = field(default_factory=dict, repr=False, compare=False)
    is_proved: bool = False
    is_wide: bool = False
    zeros: frozenset[int] = frozenset()
    below: tuple[frozenset[Ground], ...] = field(default=(), repr=False, compare=False)
    unselected: ReleasePlan | None = field(default=None, repr=False)
    slices: Slices | None = None

    @property
    def whose(self) -> tuple[Ground, ...]:
        """How the rows of each of people's tables that is read find their owner, as the policy says it."""
        sources = (item.source for select in selects_in(self.release.rows) for item in select.items)
        return tuple(sorted({said for one in sources if one.table is not None for said in one.table.whose}))

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """What is measured."""
        return tuple(one.measurement for one in self.measures)

    @property
    def key_law(self) -> KeyLaw | None:
        """The law by which groups that are found are shown; None where all are known, or no row counts."""
        law = None if self.counted is None else self.measures[self.counted].given
        assert law is None or isinstance(law, KeyLaw)
        return law

    @property
    def tau(self) -> int | None:
        """The noisy count from which a group that is found is shown whatever the coin says."""
        return None if self.key_law is None else self.minimum_units + self.key_law.bound

    @cached_property
    def is_zcdp(self) -> bool:
        """Whether rho adds up, not epsilon."""
        return any(one.loss.rho is not None for one in self.measures)

    @property
    def losses(self) -> tuple[Fraction, ...]:
        """What each measurement costs, in what adds up: epsilon, or rho."""
        return tuple(one.loss.added for one in self.measures)

    @cached_property
    def selection(self) -> int | None:
        """The measurement that chooses, among `groups`, the few that the others are asked of (1.23); None: all are."""
        return next((i for i, one in enumerate(self.measurements) if isinstance(one, TopGroups)), None)

    @property
    def top(self) -> TopGroups | None:
        """The choice of groups, None where all are answered."""
        chosen = None if self.selection is None else self.measurements[self.selection]
        return chosen if isinstance(chosen, TopGroups) else None

    @cached_property
    def axes(self) -> tuple[Axis, ...] | None:
        """The keys of a grouping that is drawn with the rows of all other groups; None: with its listed ones alone.

        That is what is found or chosen, what a public table lists, whose groups are not all that the lists make, too
        many cells; and in a zCDP dataset where enforced keys leave a unit one row in a group: not in `other`
        (soundness.md 1.34).
        """
        release = self.release
        if self.groups is None or not release.keys or self.is_empty or self.listed_from or self.intermediates:
            return None
        if (
            self.selection is not None
            or release.rows.lookup is not None
            or (self.is_zcdp and self.bounding.one_a_group)
            or is_reported(release.rows)
        ):
            return None
        env, predicate = environment_of(release.rows.columns, release.rows.predicate), release.rows.predicate
        found = []
        for key, domain in zip(release.keys, self.domains, strict=True):
            axis = None if domain is None else axis_of(key, domain.values, release.rows, env, predicate)
            if axis is None or domain != domain_of(key, env):
                return None
            found.append(axis)
        cells, listed = (
            math.prod(sizes) for sizes in zip(*((a.size, len(a.values)) for a in found), strict=True)
        )
        return tuple(found) if listed == len(self.groups) and cells <= MAX_DOMAIN else None

    @property
    def keyed_by(self) -> int | None:
        """The measurement whose draw says which groups are answered; None where they are known beforehand."""
        return self.selection if self.counted is None else self.counted

    @property
    def fresh(self) -> tuple[int, ...]:
        """The measurements that are to be asked for where the store has nothing more than what is taken."""
        return tuple(i for i, one in enumerate(self.measures) if not one.is_stored)

    def noises(self, formula: Linear) -> list[tuple[Law, Fraction]]:
        """Return independent noises, each with its weight, whose sum a weighted sum of coordinates is to have on it."""
        parts = formula.by_measure.items()
        return [noise for number, weights in parts for noise in self.measures[number].law.noises(weights)]

    # --- the same under another charge ----------------------------------------------------------------------

    def under(self, epsilon: Fraction, blocks: Fraction) -> ReleasePlan | None:
        """Return the plan under another epsilon of the statement, for its noise alone.

        `blocks`: the sum of all releases' shares. None where the epsilon is too small to be shared.
        """
        measures = [
            replace(one, loss=loss_of(self.release, epsilon, blocks, one.share, is_zcdp=self.is_zcdp))
            for one in self.measures
        ]
        return None if any(one.loss.is_nothing for one in measures) else self._measuring(measures)._ruled()

    def of_each(self, epsilon: Fraction) -> ReleasePlan:
        """Return the plan in which each measurement costs what a pure draw of some epsilon does."""
        return self.costing(Loss(epsilon, math.ceil(epsilon**2 / 2 * ATTO) if self.is_zcdp else None))

    def divided(self, parts: int) -> ReleasePlan | None:
        """Return the plan in which each measurement has a part of what the first has; None: too little to share."""
        each = self.measures[0].loss.divided(parts)
        return None if each.is_nothing else self.costing(each)

    def spending(self, losses: Sequence[Fraction]) -> ReleasePlan:
        """Return the plan in which each measurement costs what is said, in what adds up: whole 1e-9, or 1e-18 of rho.

        Nothing of it is taken from the store beforehand.
        """
        paid = zip(self.measures, losses, strict=True)
        measures = (
            replace(
                one,
                loss=Loss.of(loss, is_zcdp=self.is_zcdp),
                given=one.given if i == self.counted else None,
                is_stored=False,
            )
            for i, (one, loss) in enumerate(paid)
        )
        return self._measuring(measures)._ruled()

    @property
    def may_be_summed(self) -> bool:
        """Whether running sums along its one key may be drawn by square root in place of its groups: of complete ones,
        in a zCDP dataset, where a person has one row (soundness.md 1.44)."""
        bounding, axes = self.bounding, self.axes
        is_of_one_row = bounding.per_row and bounding.in_all == 1 and bounding.numbered is None
        return (
            self.is_zcdp
            and is_of_one_row
            and bounding.of_two is None
            and self.slices is None
            and axes is not None
            and len(axes) == 1
            and axes[0].size <= MOST_PLACES
            and all(
                isinstance(one.law, Gaussian) and one.measurement.query is BoundingQuery.SCALED
                for one in self.measures
            )
        )

    def summed(self) -> ReleasePlan:
        """Return the plan in which running sums are drawn by square root. Requires: `may_be_summed`."""
        assert self.axes is not None
        (axis,) = self.axes
        return self._measuring(replace(one, places=axis.size) for one in self.measures)

    def taking(self, laws: Mapping[int, Law]) -> ReleasePlan:
        """Return the plan that has some measurements from the store, under the laws on them, for nothing."""
        nothing = Loss(Fraction(0), 0 if self.is_zcdp else None)
        return self._measuring(
            replace(one, loss=nothing, given=one.given if i == self.counted else laws[i], is_stored=True)
            if i in laws
            else one
            for i, one in enumerate(self.measures)
        )

    def given(self, number: int, law: Law) -> ReleasePlan:
        """Return the plan in which a measurement is drawn under the law that the ledger has said."""
        measures = enumerate(self.measures)
        return self._measuring(replace(one, given=law) if i == number else one for i, one in measures)

    def costing(self, each: Loss) -> ReleasePlan:
        """Return the plan in which each measurement costs as much."""
        return self._measuring(replace(one, loss=each) for one in self.measures)

    def _measuring(self, measures: Iterable[Planned]) -> ReleasePlan:
        """Return the plan of the same measurements under other losses and laws, with what these leave as it is."""
        other = replace(self, measures=tuple(measures))
        other.__dict__.update((name, self.__dict__[name]) for name in _OF_MEASUREMENTS & self.__dict__.keys())
        return other

    def _ruled(self) -> ReleasePlan:
        """Return it with the rule by which groups are shown made anew, of what their count costs."""
        if self.counted is None or self.key_law is None:
            return self
        counted = self.measures[self.counted]
        law = key_rule(counted.measurement, counted.loss, self.delta, self.bounding.together)
        return self.given(self.counted, law)

    # --- what is asked ----------------------------------------------------------------------------------------

    def queries(
        self, wanted: tuple[int, ...], chosen: tuple[tuple[Scalar, ...], ...] | None = None
    ) -> tuple[BackendQuery, ...]:
        """Return the backend queries for some of the measurements; none for what is empty.

        `chosen`: where groups are chosen, those that were; without them the first ones stand in their place.
        """
        if self.is_empty:
            return ()
        if self.top is not None and self.groups is not None:
            chosen = self.groups[: self.top.count] if chosen is None else chosen
        if chosen is not None or self.choices:
            return self._printer.queries(wanted, chosen)
        made = self._made.queries
        asked = wanted, id(self.domains), self.counted, self.minimum_units, self.axes is None
        if asked not in made:
            made[asked] = self.domains, self._printer.queries(wanted, chosen)
        return made[asked][1]

    @cached_property
    def _made(self) -> _Measured:
        return _measured.of(self.release, self.bounding, self.below, self.dialect, *self.measurements)

    def _said(self, number: int) -> _Said:
        return _said_by.of(self.release.rows, self.bounding, self.below, self.measurements[number])

    def part_query(
        self, number: int, part: Part, chosen: tuple[tuple[Scalar, ...], ...] | None = None
    ) -> BackendQuery:
        """Return the query of a part of a group's rows, for what was not read with all of them (soundness.md 1.21).

        `chosen`: the groups whose rows alone there are, where they were chosen.
        """
        return self._printer.part(number, part, chosen)

    @property
    def _printer(self) -> ReleasePrinter:
        release = self.release
        tested = None if self.counted is None else Tested(self.counted, self.minimum_units)
        return ReleasePrinter(
            release.rows, release.keys, self.measurements, self.bounding, self.domains, self.choices, self.dialect,
            tested, self.axes,
        )  # fmt: skip

    @cached_property
    def choices(self) -> Mapping[int, Choice]:
        """What is chosen for each group, by measurement."""
        return {i: one.choice for i, one in enumerate(self.measures) if one.choice is not None}

    @cached_property
    def works(self) -> tuple[Work, ...]:
        """The joins that multiply rows of one person; public rows are counted before they are made (law L10)."""
        if self.is_empty:
            return ()
        rows = self.release.rows
        works = dict.fromkeys(work for select in selects_in(rows) for work in select.works)
        if not works:
            return ()
        queries = self.queries(tuple(range(len(self.measurements))))
        own = release_bytes(self.release, self.measurements, environment_of(rows.columns, rows.predicate))
        limit = min(MAX_GROWN, MAX_JOINED_BYTES // max(own, 1, *(query.row_bytes for query in queries)))
        return tuple(
            Work(work.most or 1, tuple(print_fan(fan, self.dialect) for fan in work.fans), limit)
            for work in works
        )

    @property
    def found_of_one(self) -> int:
        """Most groups that are found and leave the engine for one person's rows (law L10); 0 where none are found."""
        return 0 if self.counted is None or self.is_empty else self.bounding.groups

    @cached_property
    def intermediates(self) -> tuple[int, ...]:
        """The intermediate results that the private rows depend on."""
        exprs = [*self.release.keys, *(value for v in self.measurements for value in v.values)]
        exprs += dict.fromkeys(term for v in self.measurements for mask in v.masks for term, _ in mask.terms)
        found = {part.intermediate for part in parts_in(IntermediateValue, *exprs)}
        return tuple(sorted(found | _intermediates.of(self.release.rows)))

    # --- what is stored ---------------------------------------------------------------------------------------

    def salted(self, extra: bytes) -> bytes:
        """Return this relation's identity with what became known while running (intermediate values)."""
        return hashlib.sha256(self.identity + extra).digest()

    def family(self, number: int, predicate: tuple[Expr, ...]) -> bytes | None:
        """Return what measurements of the same measures share, of the rows on which `predicate` holds, however grouped.

        None where groups are not sums of finer ones: what counts a thing once is bounded group by group, and of rows of
        chosen groups alone; and of rows of two people. The bounds
        that what is scaled is cut to are part of it, as are all filters of which one must hold on what they count (t).
        """
        measurement, rows, bounding = self.measurements[number], self.release.rows, self.bounding
        if (
            measurement.query is not BoundingQuery.SCALED
            or self.selection is not None
            or rows.lookup is not None
        ):
            return None
        families, which = self._said(number).families, (id(predicate), self._counted_in)
        if which in families:
            return families[which][1]
        label = measurement.family_key
        unit = measurement.denominator
        bounds: tuple[object, ...] = (bounding.in_all, unit, bounding.per_row, bounding.replace_one)
        bounds = (*bounds, *bounding.norms, self._counted_in)
        bounds = bounds if bounding.numbered is None else (*bounds, bounding.numbered)
        base = f"({_rows_texts.of(rows, predicate, self.below)}, {bounds!r})"
        whole = f"('family', {base}, {label!r}, {self.said_of((label, bounds))!r})"
        found = hashlib.sha256(whole.encode()).digest()
        families[which] = predicate, found
        return found

    def said_of(self, read: object) -> tuple[Ground, ...]:
        """Return what is said of the columns that expressions over the rows read, wherever they stand in a value."""
        return tuple(sorted(set(column_grounds(self.release.rows, read))))

    def grounds_at(self, number: int) -> tuple[Ground, ...]:
        """Return what a measurement rests on of policy and schema: all that its store keys change with."""
        return tuple(sorted({*self.grounds, *self.said_of(self._labels(number))}))

    def measure_keys(self, number: int, relation: bytes, keyset: bytes) -> tuple[bytes, ...]:
        """Return the store keys of a measurement's coordinates (soundness.md 3.7): the hash of (label, what is said).

        What the labels of many masks have in common is long, and hashed once.
        """
        begun = {}
        keys = []
        drawn = b"" if self.measures[number].places is None else _SUMMED
        for head, tail in self._label_texts(number):
            if id(head) not in begun:
                begun[id(head)] = hashlib.sha256(relation + keyset + drawn + head)
            key = begun[id(head)].copy()
            key.update(tail)
            keys.append(key.digest())
        return tuple(keys)

    def _label_texts(self, number: int) -> list[tuple[bytes, bytes]]:
        """Return each coordinate's label with what is said of it, as it is hashed, in the halves of `_labels`."""
        labels = self._said(number).labels
        if self._counted_in in labels:
            return labels[self._counted_in]
        heads, texts = dict[int, tuple[bytes, tuple[Ground, ...]]](), list[tuple[bytes, bytes]]()
        for head, tail in self._labels(number):
            if id(head) not in heads:
                heads[id(head)] = f"({repr(head)[:-1]}".encode(), self.said_of(head)
            text, said_of_head = heads[id(head)]
            said_of = tuple(sorted({*said_of_head, *self.said_of(tail)}))
            texts.append((text, f"{''.join(f', {one!r}' for one in tail)}), {said_of!r})".encode()))
        if len(texts) <= _MANY_LABELS:
            labels[self._counted_in] = texts
        return texts

    def _labels(self, number: int) -> list[tuple[tuple[object, ...], tuple[object, ...]]]:
        """Return what each coordinate of a measurement is, of the same rows: the halves of a tuple, of which the
        first is one object for all masks."""
        measured = self.measurements[number]
        heads: list[tuple[object, ...]] = []
        for part in range(measured.per_mask):
            label = measured.key_of(part)
            if measured.is_clamped:  # a cell of a norm over all of them
                label = ("clamped", *label, measured.masks)
            elif not self.bounding.per_row:
                label = (*label, measured.null_rows, measured.distinct_limit, measured.masks)
                if measured.query is BoundingQuery.SCALED:
                    label = ("weighed", *label)
            heads.append(label)
        by_rows = not measured.is_clamped and self.bounding.per_row
        is_weighed = not measured.is_clamped and measured.query is BoundingQuery.SCALED
        ends: tuple[object, ...] = (self._counted_in,) if is_weighed and not by_rows else ()
        places = enumerate(measured.masks)
        return [(head, (mask if by_rows else index, *ends)) for index, mask in places for head in heads]

    @cached_property
    def _counted_in(self) -> tuple[Expr, ...]:
        return counted_in(self.measurements)


_OF_MEASUREMENTS = frozenset(
    {"_counted_in", "_made", "axes", "intermediates", "measurements", "selection", "works"}
)
"""What a plan finds out once of its rows, groups and measurements, whatever these cost."""


def release_bytes(release: Release, measurements: Sequence[Measurement], env: Environment) -> int:
    """Return the most bytes of a row of a release's last query: keys and values. Raises Refusal (54001)."""
    exprs = [*release.keys, *dict.fromkeys(value for v in measurements for value in v.values)]
    return row_bytes((expr.type, facts_of(expr, env).size, expr.position) for expr in exprs)


_DIGITS = 40
"""Digits of e^epsilon in the delta of several persons together."""


def key_rule(counted: Measurement, each: Loss, delta: Fraction, together: int) -> KeyLaw:
    """Return the noise on a count of people under which the groups that it shows cost so much (soundness.md 1.7).

    One step to a neighbour moves the counts of `of_one` groups by one each: C of them, or C of the one who goes and
    C of the one who comes. Each has its part of epsilon and of delta; of k steps the deltas add up as in 1.19.
    Under rho it is Gaussian noise with a threshold, or truncated noise, whichever shows smaller groups (1.25).

    Of rows of two people a step moves counts by several: it is as many steps that move one of them by one (1.38).
    """
    if counted.bounding.of_two is not None:
        return Truncated.within(
            counted.scale(each.epsilon), delta / _of_steps(each.epsilon, counted.sensitivity)
        )
    if each.rho is None:
        steps = 1 + sum(
            1 / bounds_of_exp(i * each.epsilon / together, _DIGITS)[0] for i in range(1, together)
        )
        return Truncated.within(counted.scale(each.epsilon), delta / (counted.of_one * steps))
    noise = Gaussian.for_rho(counted.squared_sensitivity, each.added)
    thresholded = Thresholded.within(noise, delta, counted.bounding.groups, together)
    groups = counted.of_one
    alone = pure_epsilon(each.rho // groups)  # of one group's part of rho
    if together > 1 or not alone:
        return thresholded
    truncated = Truncated.within(1 / alone, delta / groups)
    return thresholded if thresholded.bound <= truncated.bound else truncated


def _of_steps(epsilon: Fraction, steps: int) -> Fraction:
    """Return the sum of e^(i·epsilon/steps) for i below `steps`, from above: a geometric series."""
    whole, one = 1 / bounds_of_exp(epsilon, _DIGITS)[0], 1 / bounds_of_exp(epsilon / steps, _DIGITS)[1]
    return (whole - 1) / (one - 1)


def loss_of(release: Release, epsilon: Fraction, blocks: Fraction, share: Fraction, *, is_zcdp: bool) -> Loss:
    """Return what a measurement may spend of a statement's epsilon, by its share (soundness.md 1.8, 1.25)."""
    part = Fraction(*release.share) / blocks * share
    if not is_zcdp:
        return Loss(floor_to_nano(epsilon * part))
    return Loss.of_rho(math.ceil(epsilon**2 / 2 * part * ATTO))


def units_ground(minimum_units: int) -> Ground:
    """Return what plans rest on whose groups are found in the data."""
    return "defaults.minimum_units", str(minimum_units)


def grounds_of(
    rows: OwnedRows, asked: Sequence[Expr], below: Sequence[frozenset[Ground]]
) -> frozenset[Ground]:
    """Return what rows rest on, and expressions over them. `below`: what intermediate results rest on, by number."""
    found = set(column_grounds(rows, asked))
    for select in selects_in(rows):
        found |= _grounds_in.of(select)
    read = {part.intermediate for part in parts_in(IntermediateValue, *asked)}
    return frozenset(found).union(*(below[number] for number in read | _intermediates.of(rows)))


_intermediates = Made(lambda rows: frozenset(intermediates_in(rows)))


def release_grounds(release: Release, below: Sequence[frozenset[Ground]]) -> frozenset[Ground]:
    """Return what all of a release rests on."""
    calls = [expr for call in release.aggregates for expr in (*call.args, call.filter) if expr is not None]
    return grounds_of(release.rows, (*release.keys, *calls), below)


def column_grounds(select: Select, said: object) -> Iterator[Ground]:
    """Yield what is said of the columns that the expressions in some value read: one, or what is made of several.

    `said`: as it enters a key, so that whatever stands in a key stands there with what is said of it.
    """
    for index in sorted(_fields_in(said)):
        known = _said.get((id(select.items), index))
        if known is None:
            item, start = source_at(select.items, index)
            own = () if item.kind == "mark" else tuple(_column(item.source, index - start))
            known = select.items, own
            _said.put((id(select.items), index), known)
        yield from known[1]


_said: Cache[tuple[Sequence[Item], tuple[Ground, ...]]] = Cache(1024)
"""What is said of a column of some sources, by the number of the object of these, which is kept with it: each
coordinate of each plan of a statement asks for it."""
_ATOMS = frozenset({str, int, bool, bytes, float, Fraction, Lattice, LogLattice, type(None)})


def _fields_in(said: object) -> set[int]:
    found, seen = set[int](), set[int]()
    stack: list[Any] = [said]
    while stack:
        part = stack.pop()
        if part.__class__ in _ATOMS:
            continue
        if isinstance(part, Expr):
            found |= part.fields_read
        elif isinstance(part, (tuple, list, frozenset)):
            if id(part) not in seen:  # the masks of a measurement stand in each of its labels
                seen.add(id(part))
                stack += part
        else:
            stack += [getattr(part, name) for name in _field_names(part.__class__)]
    return found


@cache
def _field_names(of: type) -> tuple[str, ...]:
    """Return the names of a data class's fields; of another class none."""
    return tuple(field.name for field in fields(of)) if is_dataclass(of) else ()


def grounds_below(
    intermediates: Iterable[tuple[Relation, Sequence[Release]]],
) -> tuple[frozenset[Ground], ...]:
    """Return what each intermediate result rests on, in order: its releases, and public tables with all columns."""
    found: list[frozenset[Ground]] = []
    for relation, releases in intermediates:
        own = [
            ground for table in tables_in(relation) for ground in (*_grounds(table), *table.column_grounds)
        ]
        found.append(frozenset(own).union(*(release_grounds(release, found) for release in releases)))
    return tuple(found)


def _read_in(select: Select) -> Iterator[Ground]:
    """Yield what one select rests on, those below it left out.

    Tables that were joined to find the owner are told by the one whose way they are on.
    """
    placed = fields_in(select.items)
    for item, _ in placed:
        if item.source.table is not None and not item.source.is_on_way:
            yield from _grounds(item.source.table)
    yield from column_grounds(select, (*written_in(select), *select.owner))
    for item, start in placed:  # the columns of the item itself follow those before it, of a mark too
        for index in fields_of(*item.on):
            if index >= start:
                yield from _column(item.source, index - start)
            else:
                earlier, first = next(one for one in reversed(placed) if one[1] <= index)
                yield from _column(earlier.source, index - first)


_grounds_in = Made(lambda select: frozenset(_read_in(select)), 64)


def _column(source: Source, index: int) -> Iterator[Ground]:
    """Yield what is said of a table's column; of a unit's that is not declared the table says all."""
    if (table := source.table) is not None and not source.is_on_way:
        name = source.shown[index]
        yield from (
            ground
            for column, ground in zip(table.columns, table.column_grounds, strict=True)
            if column.name == name
        )


def _grounds(table: Table) -> Sequence[Ground]:
    assert table.grounds, "a table without them would be the same whatever is declared of it"
    assert len(table.column_grounds) == len(table.columns)
    return table.grounds
