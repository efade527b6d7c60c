"""From an analyzed statement to its plan: which releases, which measures, which noise, which charge.

House rules:

1. Pure: text, policy and parameters in; no store, no data of people, no randomness (this is all that EXPLAIN
   and Describe run). The keys of public tables are asked for through `ReadKeys`, and through nothing else.
2. Epsilon is split by the text alone: equally over the blocks of the statement that aggregate, a block's
   part over its grouping sets by the groups a unit can touch in each, and a release's part equally over
   its measurements (soundness.md 1.7, 1.8 and 1.14(5)). In a zCDP dataset rho = epsilon²/2 is split so.
3. The charge is the sum of what the scales were computed from: each share is cut down to 1e-9 of epsilon, or raised
   to 1e-18 of rho.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from ..errors import Refusal
from ..mechanisms import (
    ATTO,
    NANO,
    Gaussian,
    Law,
    Thresholded,
    Truncated,
    bounds_of_exp,
    floor_to_nano,
    pure_epsilon,
    rho_of_pure,
)
from ..policy.model import Accounting
from ..relation.catalog import Catalog, Ground, Scalar
from ..relation.expressions import Expr, IntermediateValue, Literal, conjuncts, fields_of, walk
from ..relation.expressions import Scalar as Subquery
from ..relation.intervals import Environment, facts_of
from ..relation.relations import AggregateCall, Relation, Values, ends_in, expressions
from ..relation.size_rules import MAX_JOINED_BYTES, check_joined, row_bytes
from ..relation.types import BIGINT, SqlType
from ..relation.types import Kind as SqlKind
from .backend_sql.print_release import (
    BackendQuery,
    Part,
    Tested,
    print_fan,
    print_keys,
    print_part,
    print_release,
)
from .dialects import Dialect, dialect_of
from .grounds import column_grounds, grounds_below, grounds_of, units_ground
from .measures.formulas import Formula, Linear
from .measures.least_error import choose_measurements, others
from .measures.measurements import Bounding, BoundingQuery, Joint, Measurement, MeasurementKind, counted_in
from .measures.mode import ModeMeasurement
from .measures.ranks import RANK_FUNCTIONS, Choice, RankMeasurement, SplitMeasurement, WeighedChoice
from .measures.top import TopGroups, among, top_groups
from .measures.value_bars import NO_BARS, Bars
from .privacy.analyze import analyze
from .privacy.axes import Axis, axis_of, is_reported
from .privacy.contradiction import asks_for_nobody, count_nothing, has_no_groups, has_no_rows
from .privacy.existing import Looking
from .privacy.functional_dependencies import has_one_row
from .privacy.growth import MAX_GROWN, joined_rows
from .privacy.kept_groups import kept_groups
from .privacy.keys import (
    MAX_DOMAIN,
    Domain,
    domain_of,
    environment_of,
    existing_groups,
    max_groups_in,
    undeclared_rows,
)
from .privacy.public_keys import KeyList, key_lists
from .privacy.rows import Release, intermediates_in, selects_in
from .top_rows import TopRows, top_rows

__all__ = [
    "Plan", "PrivacyParameters", "ReadKeys", "ReleasePlan", "Work", "check_grown", "count_of", "counting",
    "is_empty_by_text", "other_measures", "plan", "release_bytes", "releases_of", "with_bars",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class PrivacyParameters:
    """What a statement may spend, and under which definition.

    `epsilon`: for the whole statement. `delta`: per query block with undeclared keys. `minimum_units`:
    keys with fewer units are never published. `replace_one`: the neighbouring relation.
    `max_rows`: most rows of a person that count, where the policy takes more; None: what it takes.
    `together`: in how many units neighbours differ. `accounting`: what adds up over statements. `selection`:
    whether groups may be chosen before they are measured, where nothing but the largest are asked for.
    """

    epsilon: Fraction
    delta: Fraction
    minimum_units: int
    replace_one: bool
    max_rows: int | None = None
    together: int = 1
    accounting: Accounting = Accounting.PURE
    selection: bool = True


KeyLaw = Truncated | Thresholded
"""The noise on a count of people with the rule by which groups are shown."""

ReadKeys = Callable[[BackendQuery, tuple[SqlType, ...]], Sequence[tuple[Scalar, ...]]]
"""Asks public tables for keys of some types: each tuple once, in canonical form, at most MAX_DOMAIN + 1 of them."""


@dataclass(frozen=True, slots=True)
class Work:
    """Rows that a join makes of one person's: `most` times what each of the `fans` counts; at most `limit`."""

    most: int
    fans: tuple[BackendQuery, ...]
    limit: int


@dataclass(frozen=True)
class ReleasePlan:
    """One release: what is asked of the engine, and the noise and charge of each measurement.

    `domains`: the public values of each key, where it has them. `groups`: the declared groups, None
    when keys are found by threshold, at `delta`: by `key_law`, on measurement `counted`, among the groups of
    `minimum_units`. `grids`: per aggregate, what all values of a count or sum are
    multiples of. `epsilons`: per measurement; in a zCDP dataset that of a pure draw of its `rhos`, in 1e-18, which
    there are () of in a pure dataset.
    `identity` hashes everything the exact measures depend on but data and epoch; it is completed by
    `measure_keys`. `grounds`: what its rows and keys rest on of policy and schema, which is in that hash; `below`: what
    each intermediate result of the statement does (soundness.md 3.7). `is_empty`: no row can count, by the text alone:
    answered exactly and free, without the engine (soundness.md 1.16). `zeros`: aggregates of which that holds, by
    number, of a release that is not empty: nothing is measured of them. `is_proved`: one of these rests on the text and
    on constraints that the engine enforces, in the schema of the snapshot that answers. `listed_from`: the public
    tables that keys were read from. `taken`: of each measurement the law on it where a stored draw has it already,
    which is neither charged nor asked (3.8); () for none. `selection`: the measurement that chooses, among `groups`,
    the few that the others are asked of (1.23), None where all are answered; `unselected`: the plan of all of them
    then. `reserved`: by measurement the law
    under which it is drawn, where the ledger has said so. `bars`: of which chosen values (1.21).
    """

    release: Release
    bounding: Bounding
    measurements: tuple[Measurement, ...]
    formulas: tuple[Formula, ...]
    grids: tuple[Fraction | None, ...]
    epsilons: tuple[Fraction, ...]
    domains: tuple[Domain | None, ...]
    groups: tuple[tuple[Scalar, ...], ...] | None
    counted: int | None
    key_law: KeyLaw | None
    minimum_units: int
    delta: Fraction
    is_empty: bool
    identity: bytes
    grounds: tuple[Ground, ...]
    dialect: Dialect = field(repr=False, compare=False)
    listed_from: tuple[str, ...] = ()
    taken: tuple[Law | None, ...] = ()
    rhos: tuple[int, ...] = ()
    bars: Bars = field(default_factory=dict, repr=False, compare=False)
    is_proved: bool = False
    zeros: frozenset[int] = frozenset()
    below: tuple[frozenset[Ground], ...] = field(default=(), repr=False, compare=False)

    @property
    def tau(self) -> int | None:
        """The noisy count from which a group that is found is shown whatever the coin says."""
        return None if self.key_law is None else self.minimum_units + self.key_law.bound

    @property
    def is_zcdp(self) -> bool:
        """Whether rho adds up, not epsilon."""
        return bool(self.rhos)

    @property
    def losses(self) -> tuple[Fraction, ...]:
        """What each measurement costs, in what adds up: epsilon, or rho."""
        return tuple(Fraction(rho, ATTO) for rho in self.rhos) if self.rhos else self.epsilons

    selection: int | None = None
    reserved: tuple[tuple[int, Law], ...] = ()
    unselected: ReleasePlan | None = field(default=None, repr=False)

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
            or (self.is_zcdp and self.bounding.one_a_group)
            or is_reported(release.rows)
        ):
            return None
        env, predicate = environment_of(release.rows.columns, release.rows.predicate), release.rows.predicate
        found = []
        for key, domain in zip(release.keys, self.domains, strict=True):
            axis = None if domain is None else axis_of(key, domain.values, env, predicate)
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
        return tuple(i for i in range(len(self.measurements)) if not self.taken or self.taken[i] is None)

    def scale(self, number: int) -> Fraction:
        """Return the noise scale of a measurement, in its lattice units; 0 for what is empty and gets no noise."""
        if self.is_empty:
            return Fraction(0)
        if number not in self.fresh:
            return self.law(number).scale
        measurement = self.measurements[number]
        if isinstance(measurement, WeighedChoice):
            return measurement.scale(self._choosing(number))
        if self.rhos and not isinstance(measurement, TopGroups):
            return self.law(number).scale
        return measurement.scale(self.epsilons[number])

    def rho_atto(self, number: int) -> int:
        """Return the zCDP loss of a measurement's draw in 10^-18, rounded up: of a pure one that of its epsilon."""
        return self.rhos[number] if self.rhos else rho_of_pure(math.ceil(self.epsilons[number] * NANO))

    def law(self, number: int) -> Law:
        """Return the law of the noise that a measurement is to have. Not for what is empty, which gets none.

        It takes the scale from a sensitivity of the measurement's, which is in the norm that the law needs.
        """
        if self.key_law is not None and number == self.counted:
            return self.key_law
        if self.taken and (stored := self.taken[number]) is not None:
            return stored
        for index, law in self.reserved:
            if index == number:
                return law
        measurement = self.measurements[number]
        if isinstance(measurement, WeighedChoice):
            return measurement.law(self._made_at(number))
        if isinstance(measurement, TopGroups):
            assert self.groups is not None
            return measurement.law_among(self.epsilons[number], len(self.groups))
        if self.rhos:
            return measurement.gaussian(Fraction(self.rhos[number], ATTO))
        return measurement.law(self.epsilons[number])

    def noises(self, formula: Linear) -> list[tuple[Law, Fraction]]:
        """Return independent noises, each with its weight, whose sum a weighted sum of coordinates is to have on it."""
        by_measurement: dict[int, dict[int, Fraction]] = {}
        for coordinate, weight in formula.terms:
            number = self.measurement_of(coordinate)
            place = coordinate - sum(one.size for one in self.measurements[:number])
            by_measurement.setdefault(number, {})[place] = weight
        return [
            noise for number, weights in by_measurement.items() for noise in self.law(number).noises(weights)
        ]

    def _choosing(self, number: int) -> Fraction:
        """Return the epsilon of a choice: by rank it costs epsilon²/8 of zCDP, a quarter of any pure draw's (1.25)."""
        is_flip = isinstance(self.measurements[number], ModeMeasurement)
        return self.epsilons[number] * (2 if self.rhos and not is_flip else 1)

    def _made_at(self, number: int) -> Fraction:
        """Return the same for what has an equal part of it at each depth: of rho, that is 1 / √D of epsilon (1.25)."""
        measurement, epsilon = self.measurements[number], self._choosing(number)
        if self.rhos and isinstance(measurement, SplitMeasurement):
            return epsilon * measurement.root_of_depths
        return epsilon

    @cached_property
    def choices(self) -> Mapping[int, Choice]:
        """What is chosen for each group, by measurement; none of what is empty, or taken as it was chosen before."""
        if self.is_empty:
            return {}
        return {
            number: measurement.choice(self._made_at(number))
            for number, measurement in enumerate(self.measurements)
            if isinstance(measurement, WeighedChoice) and number in self.fresh
        }

    def under(self, epsilon: Fraction, blocks: Fraction) -> ReleasePlan | None:
        """Return the plan under another epsilon of the statement, for its noise alone.

        `blocks`: the sum of all releases' shares. None where the epsilon is too small to be shared.
        """
        count = len(self.measurements)
        each = _share_of(self.release, epsilon, blocks, count, is_zcdp=self.is_zcdp)
        if each.is_nothing:
            return None
        law = self.key_law
        if law is not None and self.counted is not None:
            law = _key_law(self.measurements[self.counted], each, self.delta, self.bounding.together)
        return replace(self._with(each), key_law=law)

    def of_each(self, epsilon: Fraction) -> ReleasePlan:
        """Return the plan in which each measurement costs what a pure draw of some epsilon does."""
        return self._with(_Share(epsilon, math.ceil(epsilon**2 / 2 * ATTO) if self.rhos else None))

    def divided(self, parts: int) -> ReleasePlan | None:
        """Return the plan in which each measurement has a part of what the first has; None: too little to share."""
        if not self.rhos:
            each = _Share(floor_to_nano(self.epsilons[0] / parts), None)
        else:
            rho = -(-self.rhos[0] // parts)
            each = _Share(pure_epsilon(rho), rho)
        return None if each.is_nothing else self._with(each)

    def spending(self, losses: Sequence[Fraction]) -> ReleasePlan:
        """Return the plan in which each measurement costs what is said, in what adds up: whole 1e-9, or 1e-18 of rho.

        Nothing of it is taken from the store beforehand.
        """
        rhos = tuple(int(loss * ATTO) for loss in losses) if self.rhos else ()
        epsilons = tuple(map(pure_epsilon, rhos)) if rhos else tuple(losses)
        law = self.key_law
        if law is not None and self.counted is not None:
            each = _Share(epsilons[self.counted], rhos[self.counted] if rhos else None)
            law = _key_law(self.measurements[self.counted], each, self.delta, self.bounding.together)
        return replace(self, epsilons=epsilons, rhos=rhos, key_law=law, taken=())

    def _with(self, each: _Share) -> ReleasePlan:
        count = len(self.measurements)
        rhos = () if each.rho is None else (each.rho,) * count
        return replace(self, epsilons=(each.epsilon,) * count, rhos=rhos)

    def measurement_of(self, coordinate: int) -> int:
        """Return the measurement that a coordinate belongs to, coordinates counted over all measurements."""
        for number, measurement in enumerate(self.measurements):
            if coordinate < measurement.size:
                return number
            coordinate -= measurement.size
        raise AssertionError("no such coordinate")

    def queries(
        self, wanted: tuple[int, ...], chosen: tuple[tuple[Scalar, ...], ...] | None = None
    ) -> tuple[BackendQuery, ...]:
        """Return the backend queries for some of the measurements; none for what is empty.

        `chosen`: where groups are chosen, those that were; without them the first ones stand in their place.
        """
        if self.is_empty:
            return ()
        release = self.release
        if self.top is not None and self.groups is not None:
            chosen = self.groups[: self.top.count] if chosen is None else chosen
        return print_release(
            release.rows,
            release.keys,
            self.measurements,
            wanted,
            self.bounding,
            self.domains,
            self.choices,
            self.dialect,
            chosen,
            None if self.counted is None else Tested(self.counted, self.minimum_units),
            self.axes,
        )

    def part_query(
        self, number: int, part: Part, chosen: tuple[tuple[Scalar, ...], ...] | None = None
    ) -> BackendQuery:
        """Return the query of a part of a group's rows, for what was not read with all of them (soundness.md 1.21).

        `chosen`: the groups whose rows alone there are, where they were chosen.
        """
        release = self.release
        return print_part(
            release.rows, release.keys, self.measurements, number, self.bounding, self.domains, self.choices[number],
            part, self.dialect, chosen,
        )  # fmt: skip

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

    @property
    def intermediates(self) -> tuple[int, ...]:
        """The intermediate results that the private rows depend on."""
        exprs = [*self.release.keys, *(value for v in self.measurements for value in v.values)]
        exprs += [term for v in self.measurements for mask in v.masks for term, _ in mask.terms]
        found = set(intermediates_in(self.release.rows))
        found |= {
            part.intermediate for expr in exprs for part in walk(expr) if isinstance(part, IntermediateValue)
        }
        return tuple(sorted(found))

    def salted(self, extra: bytes) -> bytes:
        """Return this relation's identity with what became known while running (intermediate values)."""
        return hashlib.sha256(self.identity + extra).digest()

    def family(self, number: int, predicate: tuple[Expr, ...]) -> bytes | None:
        """Return what measurements of the same measures share, of the rows on which `predicate` holds, however grouped.

        None where groups are not sums of finer ones: what counts a thing once is bounded group by group, and of rows of
        chosen groups alone. The bounds
        that what is scaled is cut to are part of it, as are all filters of which one must hold on what they count (t).
        """
        measurement, rows, bounding = self.measurements[number], self.release.rows, self.bounding
        if measurement.query is not BoundingQuery.SCALED or self.selection is not None:
            return None
        label: tuple[object, ...] = (
            measurement.kind.value,
            measurement.value,
            measurement.lattice,
            measurement.null_rows,
            measurement.masks,
        )
        if isinstance(measurement, Joint):
            label = (*label, tuple(part.said for part in measurement.parts))
        bounds = (bounding.in_all, bounding.per_row, bounding.replace_one, counted_in(self.measurements))
        rests = sorted(grounds_of(replace(rows, predicate=predicate), (), self.below))
        base = (rests, rows.items, predicate, *rows.owner, bounds)
        return hashlib.sha256(repr(("family", base, label, self.said_of((label, bounds)))).encode()).digest()

    def said_of(self, read: object) -> tuple[Ground, ...]:
        """Return what is said of the columns that expressions over the rows read, wherever they stand in a value."""
        return tuple(sorted(set(column_grounds(self.release.rows, read))))

    def grounds_at(self, number: int) -> tuple[Ground, ...]:
        """Return what a measurement rests on of policy and schema: all that its store keys change with."""
        return tuple(sorted({*self.grounds, *self.said_of(self._labels(number))}))

    def measure_keys(self, number: int, relation: bytes, keyset: bytes) -> tuple[bytes, ...]:
        """Return the store keys of a measured's coordinates (soundness.md 3.7: a release's identity is per measure).

        With one row per unit a coordinate does not depend on its neighbours in the measured, so that a
        sum asked alone and a sum from a pair are one measure when they are one number.
        """
        labels = ((label, self.said_of(label)) for label in self._labels(number))
        return tuple(hashlib.sha256(relation + keyset + repr(label).encode()).digest() for label in labels)

    def _labels(self, number: int) -> list[tuple[object, ...]]:
        """Return what each coordinate of a measurement is, of rows that are the same."""
        measured = self.measurements[number]
        labels = []
        for index, mask in enumerate(measured.masks):
            for part in range(measured.per_mask):
                label: tuple[object, ...] = (measured.kind.value, part, measured.value, measured.lattice)
                if isinstance(measured, Joint):  # each part by itself, whatever it is drawn together with
                    label = measured.parts[part].said
                if isinstance(measured, TopGroups):
                    label += (measured.of.kind.value, measured.count, measured.bounding)
                if isinstance(measured, RankMeasurement | SplitMeasurement):
                    # a fraction, however many are asked for
                    label = (measured.kind.value, 0, *label[2:], measured.shares[part])
                label += (measured.candidates,) if isinstance(measured, ModeMeasurement) else ()
                if self.bounding.per_row:
                    lattice = measured.lattice
                    if measured.kind is MeasurementKind.UNITS:
                        label = (MeasurementKind.COUNT.value, 0, None, None)
                    elif (
                        measured.kind is MeasurementKind.PAIR
                        and part == 0
                        and lattice is not None
                        and lattice.low == 0
                    ):
                        label = (MeasurementKind.SUM.value, 0, measured.value, lattice)
                    label = (*label, mask)
                else:
                    label = ("weighed", *label) if measured.weighed else label
                    label = (*label, measured.null_rows, measured.distinct_limit, measured.masks, index)
                    label += (
                        (counted_in(self.measurements),) if measured.query is BoundingQuery.SCALED else ()
                    )
                labels.append(label)
        return labels


@dataclass(frozen=True, slots=True)
class Plan:
    """A statement's plan: intermediate results are drawn in order, each from releases that come before it.

    `releases` in order of drawing; `intermediates` are relations over them, of one cell or, those in `tables`, of
    rows; `root` the statement.
    """

    root: Relation
    intermediates: tuple[Relation, ...]
    tables: frozenset[int]
    releases: tuple[ReleasePlan, ...]
    privacy: PrivacyParameters

    @property
    def epsilon(self) -> Fraction:
        """The charge in epsilon, when nothing is in the store; of rho, that of the pure draw that costs as much."""
        if self.privacy.accounting is Accounting.ZCDP:
            return pure_epsilon(self.rho_atto)
        return sum((e for release in self.releases for e in release.epsilons), Fraction(0))

    @property
    def rho_atto(self) -> int:
        """The charge in rho, in 1e-18, when nothing is in the store; 0 in a pure dataset, where it is not counted."""
        return sum(rho for release in self.releases for rho in release.rhos)

    @property
    def delta(self) -> Fraction:
        """The charge in delta, when nothing is in the store."""
        return sum((release.delta for release in self.releases), Fraction(0))


def plan(
    relation: Relation, catalog: Catalog, privacy: PrivacyParameters, read: ReadKeys | None = None
) -> Plan:
    """Return the plan of a bound statement. `read`: see `ReadKeys`; without it no public table is read.

    Raises:
        Refusal: what `analyze`, `measure` and the printer raise; PV103 when undeclared keys have no delta.
    """
    _check_size(relation)
    if is_empty_by_text(relation):
        return Plan(Values((), relation.columns), (), frozenset(), (), privacy)
    analyzed = analyze(relation, catalog)
    ordered: dict[Release, None] = {}
    for part in (*analyzed.intermediates, analyzed.root):
        ordered.update(dict.fromkeys(releases_of(part)))
    blocks = sum((Fraction(*release.share) for release in ordered), Fraction(0))
    looking = Looking()
    below = grounds_below((part, list(releases_of(part))) for part in analyzed.intermediates)
    has_groups = any(release.keys for release in ordered)
    tops = top_rows((*analyzed.intermediates, analyzed.root)) if privacy.selection and has_groups else {}
    kept = kept_groups((*analyzed.intermediates, analyzed.root))
    releases = tuple(
        _selecting(
            _plan_release(release, catalog, privacy, blocks, read, looking, below, kept=kept[release]),
            tops.get(release),
            privacy,
            blocks,
        )
        for release in ordered
    )
    for release in releases:
        # printing may refuse: before anything is charged
        release.queries(tuple(range(len(release.measurements))))
    check_grown(releases, lambda work: work.most)
    return Plan(analyzed.root, analyzed.intermediates, analyzed.tables, releases, privacy)


def check_grown(releases: Sequence[ReleasePlan], size: Callable[[Work], int]) -> None:
    """Refuse releases that could make too many rows of one person's, all together: in joins, or as groups (law L10).

    `size`: of a join, as far as its public rows are counted yet. Raises Refusal (PV201).
    """
    most = 0
    for release in releases:
        sizes = {work: size(work) for work in release.works}
        most += max((release.found_of_one, *sizes.values()))
        limits = [MAX_GROWN] if most > MAX_GROWN else []
        limits += [work.limit for work, rows in sizes.items() if rows > work.limit]
        if limits:
            raise Refusal(
                f"one person's rows could become more than {min(limits)} in the joins and groups of this statement",
                sqlstate="PV201", position=release.release.position,
                hint="join on a key of the public table, narrow it, or aggregate per person first",
            )  # fmt: skip


def is_empty_by_text(node: Relation) -> bool:
    """Say whether a relation has no rows whatever the data: public, so its columns are answered free.

    Tools look at a table in this way: SELECT * FROM t LIMIT 0, or WHERE FALSE (soundness.md 1.16).
    """
    while ends_in(node, "where", "having", "outputs", "orders", "limit"):
        terms = conjuncts(node.predicate) if node.last in ("where", "having") else ()
        if any(isinstance(term, Literal) and term.value in (False, None) for term in terms):
            return True
        if node.limit is not None and node.limit[0] == 0:
            return True
        node = node.below
    return False


MAX_NODES = 5_000
"""Most relation nodes of a statement, a CTE counted each time it is used."""
MAX_SCORED = 2**22
"""Most candidates of MODE over all groups that are known: each has random bytes before the engine is asked."""
MAX_MEASUREMENTS = 64
"""Most measurements of a release."""


def _check_size(relation: Relation) -> None:
    """Refuse a statement that unfolds into too much. Raises Refusal (54001)."""
    count, stack = 0, [relation]
    while stack:
        node = stack.pop()
        count += 1
        if count > MAX_NODES:
            raise Refusal("the statement is too complex", sqlstate="54001", hint="split it into smaller ones")
        stack += node.reads


def _plan_release(
    release: Release, catalog: Catalog, privacy: PrivacyParameters, blocks: Fraction, read: ReadKeys | None,
    looking: Looking, below: tuple[frozenset[Ground], ...], bars: Bars = NO_BARS,
    kept: Collection[Sequence[Expr]] = (),
) -> ReleasePlan:  # fmt: skip
    rows = release.rows
    env = environment_of(rows.columns, rows.predicate)
    dialect = dialect_of(catalog.dialect, catalog.case_collation)
    groups, domains, listed = _known_groups(release, env, dialect, read, looking)
    bounding = _bounding(release, env, privacy, groups)
    is_zcdp = privacy.accounting is Accounting.ZCDP
    rowless, unused, (text_zeros, zeros) = _without_rows(release, kept)
    is_empty = groups == () or rowless[0] or unused[0]
    is_proved = not is_empty and (rowless[1] or unused[1])
    is_empty = is_empty or is_proved
    if not is_empty and rows.predicate and asks_for_nobody(rows):
        raise Refusal(
            f'only rows of "{rows.shown_name}" whose way to a person is NULL could pass this filter: '
            "they are nobody's, and never count",
            sqlstate="PV003", position=release.position,
            hint="whether there are such rows is the owner's to see: no statement over people's rows counts them",
        )  # fmt: skip
    zeros = frozenset() if is_empty else zeros
    measured = choose_measurements(
        release.aggregates, env, bounding, rows.units, threshold=groups is None, is_zcdp=is_zcdp, bars=bars,
        zeros=zeros,
    )  # fmt: skip
    _check_measured(release, measured.measurements, groups, env)
    count = len(measured.measurements)
    each = _share_of(release, privacy.epsilon, blocks, count, is_zcdp=is_zcdp)
    if count and each.is_nothing:
        raise Refusal(
            "epsilon is too small to be shared between the aggregates",
            sqlstate="PV301",
            hint="raise dpsql.epsilon",
        )
    if is_empty and groups and not rowless[1]:
        groups = ()  # no row is in one that is used
    if is_empty:
        each = _Share(Fraction(0), 0 if is_zcdp else None)
    delta, key_law = Fraction(0), None
    if measured.counted is not None and not is_empty:
        delta = _delta_of(release, domains, privacy)
        key_law = _key_law(measured.measurements[measured.counted], each, delta, privacy.together)
    grounds = grounds_of(rows, release.keys, below)
    if groups is None:
        grounds |= {units_ground(privacy.minimum_units)}
    rests = tuple(sorted(grounds))
    said: tuple[object, ...] = (rests, rows.identity(), release.keys, bounding, domains)
    whole = math.prod(len(domain.values) for domain in domains if domain)
    if groups is not None and (listed or len(groups) < whole):
        said = (*said, groups)  # not all that the domains make
    identity = hashlib.sha256(repr(said).encode()).digest()
    return ReleasePlan(
        release,
        bounding,
        measured.measurements,
        measured.formulas,
        measured.grids,
        (each.epsilon,) * count,
        tuple(domains),
        groups,
        measured.counted,
        key_law,
        privacy.minimum_units,
        delta,
        is_empty,
        identity,
        rests,
        dialect,
        tuple(dict.fromkeys(name for one in listed for name in one.tables)),
        rhos=() if each.rho is None else (each.rho,) * count,
        bars=bars,
        is_proved=is_proved or not zeros <= text_zeros,
        zeros=zeros,
        below=below,
    )


def _without_rows(
    release: Release, kept: Collection[Sequence[Expr]]
) -> tuple[tuple[bool, bool], tuple[bool, bool], tuple[frozenset[int], frozenset[int]]]:
    """Say whether no row of a release counts, whether no group is used, and in which aggregates no row counts.

    Each by the text, and by constraints too.
    """
    rows, facts = release.rows, (False, True)
    text_zeros, zeros = (count_nothing(release, proved=proved) for proved in facts)
    by_text, by_facts = (
        (not rows.is_whole and has_no_rows(rows, proved=proved))
        or (not release.keys and 0 < len(release.aggregates) == len(nothing))
        for proved, nothing in zip(facts, (text_zeros, zeros), strict=True)
    )
    text_unused, facts_unused = (has_no_groups(release, kept, proved=proved) for proved in facts)
    return (by_text, by_facts), (text_unused, facts_unused), (text_zeros, zeros)


def _known_groups(
    release: Release, env: Environment, dialect: Dialect, read: ReadKeys | None, looking: Looking
) -> tuple[tuple[tuple[Scalar, ...], ...] | None, list[Domain | None], tuple[KeyList, ...]]:
    """Return the groups that are known beforehand, None where they are found; the keys' domains; the lists read."""
    domains = [domain_of(key, env) for key in release.keys]
    declared = [domain for domain in domains if domain is not None]
    groups, listed = _read_groups(release, domains, env, dialect, read, looking)
    if groups is None and len(declared) == len(domains):
        groups = existing_groups(release.keys, declared, env, release.rows.predicate, looking)
        return groups, [_listed_in(groups, place, domain) for place, domain in enumerate(declared)], listed
    if groups is not None:
        apart = {place for one in listed for place in one.numbers}
        domains = [None if place in apart else domain for place, domain in enumerate(domains)]
    return groups, domains, listed


def _check_measured(
    release: Release, measurements: Sequence[Measurement], groups: Sequence[tuple[Scalar, ...]] | None,
    env: Environment,
) -> None:  # fmt: skip
    """Refuse what is too large, by text and policy alone (law L10). Raises Refusal (54001)."""
    size = release_bytes(release, measurements, env)
    if not release.rows.reach.fans:
        check_joined(size, joined_rows(release.rows.reach), release.position)
    count = len(measurements)
    if count > MAX_MEASUREMENTS:
        raise Refusal(
            f"these aggregates need {count} measures; at most {MAX_MEASUREMENTS} are answered in one query",
            sqlstate="54001",
            position=release.position,
            hint="ask for fewer aggregates at a time",
        )
    for measurement in measurements:
        if (
            isinstance(measurement, ModeMeasurement)
            and len(groups or ()) * len(measurement.candidates) > MAX_SCORED
        ):
            raise Refusal(
                f"mode of {len(measurement.candidates)} values in {len(groups or ())} groups is too much",
                sqlstate="54001", position=release.position, hint="list fewer values or fewer groups in WHERE",
            )  # fmt: skip


def release_bytes(release: Release, measurements: Sequence[Measurement], env: Environment) -> int:
    """Return the most bytes of a row of a release's last query: keys and values. Raises Refusal (54001)."""
    exprs = [*release.keys, *dict.fromkeys(value for v in measurements for value in v.values)]
    return row_bytes((expr.type, facts_of(expr, env).size, expr.position) for expr in exprs)


def _delta_of(release: Release, domains: Sequence[Domain | None], privacy: PrivacyParameters) -> Fraction:
    """Return what a release has of delta to find groups with. Raises Refusal (PV103): nothing."""
    delta = privacy.delta * Fraction(*release.share)
    if delta <= 0:
        unknown = next(key for key, d in zip(release.keys, domains, strict=True) if d is None)
        raise Refusal(
            "these group keys are not declared, and there is no delta to find them with",
            sqlstate="PV103", position=unknown.position,
            hint="declare the key's values, list them in WHERE key IN (…), or ask the owner for a delta",
            owner_hint="write { values = […] } at the key's column in the policy, list them in WHERE key IN (…), or "
            "write a delta above 0 in [privacy] and [defaults]",
        )  # fmt: skip
    return delta


def _selecting(
    whole: ReleasePlan, top: TopRows | None, privacy: PrivacyParameters, blocks: Fraction
) -> ReleasePlan:
    """Return the plan that chooses a release's largest groups and measures these alone, where that pays; else `whole`.

    The choice has a measurement's part of epsilon (soundness.md 1.23).
    """
    release, rows = whole.release, whole.release.rows
    if top is None or whole.groups is None or whole.is_empty or whole.bounding.per_row:
        return whole
    if top.aggregate in whole.zeros:
        return whole  # none is larger than another
    env, aggregate = environment_of(rows.columns, rows.predicate), release.aggregates[top.aggregate]
    choice = top_groups(aggregate, env, whole.bounding, rows.units, top.count, len(whole.groups))
    if choice is None:
        return whole
    choice = replace(choice, aggregate=top.aggregate)
    bounding = among(whole.bounding, choice.count)
    measured = choose_measurements(
        release.aggregates,
        env,
        bounding,
        rows.units,
        threshold=False,
        is_zcdp=whole.is_zcdp,
        zeros=whole.zeros,
    )
    measurements = (*measured.measurements, choice)
    each = _share_of(release, privacy.epsilon, blocks, len(measurements), is_zcdp=whole.is_zcdp)
    if each.is_nothing or len(measurements) > MAX_MEASUREMENTS:
        return whole
    plan = replace(
        whole,
        bounding=bounding,
        measurements=measurements,
        formulas=measured.formulas,
        grids=measured.grids,
        identity=hashlib.sha256(whole.identity + repr(("chosen", bounding)).encode()).digest(),
        selection=len(measurements) - 1,
        unselected=whole,
    )
    return plan._with(each)


_DIGITS = 40
"""Digits of e^epsilon in the delta of several persons together."""


def _key_law(counted: Measurement, each: _Share, delta: Fraction, together: int) -> KeyLaw:
    """Return the noise on a count of people under which the groups that it shows cost so much (soundness.md 1.7).

    One step to a neighbour moves the counts of `of_one` groups by one each: C of them, or C of the one who goes and
    C of the one who comes. Each has its part of epsilon and of delta; of k steps the deltas add up as in 1.19.
    Under rho it is Gaussian noise with a threshold, or truncated noise, whichever shows smaller groups (1.25).
    """
    if each.rho is None:
        steps = 1 + sum(
            1 / bounds_of_exp(i * each.epsilon / together, _DIGITS)[0] for i in range(1, together)
        )
        return Truncated.within(counted.scale(each.epsilon), delta / (counted.of_one * steps))
    noise = Gaussian.for_rho(counted.squared_sensitivity, Fraction(each.rho, ATTO))
    thresholded = Thresholded.within(noise, delta, counted.bounding.groups, together)
    groups = counted.of_one
    alone = pure_epsilon(each.rho // groups)  # of one group's part of rho
    if together > 1 or not alone:
        return thresholded
    truncated = Truncated.within(1 / alone, delta / groups)
    return thresholded if thresholded.bound <= truncated.bound else truncated


def _read_groups(
    release: Release, domains: list[Domain | None], env: Environment, dialect: Dialect, read: ReadKeys | None,
    looking: Looking,
) -> tuple[tuple[tuple[Scalar, ...], ...] | None, tuple[KeyList, ...]]:  # fmt: skip
    """Return the groups of keys that public tables have, and the lists they come from.

    None where no key needs a list, or there are more than MAX_DOMAIN: then keys are found by threshold.
    """
    keys, terms = release.keys, release.rows.predicate
    lists = key_lists(release.rows, keys, domains) if keys and read is not None else ()
    if read is None or not lists:
        return None, ()
    parts: list[tuple[tuple[int, ...], Sequence[tuple[Scalar, ...]]]] = []
    for one in lists:
        rows = read(print_keys(one, dialect), tuple(key.type for key in one.keys))
        parts.append((one.numbers, rows))
    known = tuple(number for number in range(len(keys)) if all(number not in one.numbers for one in lists))
    if known:
        own = [domain for number in known if (domain := domains[number]) is not None]
        if math.prod(len(domain.values) for domain in own) > MAX_DOMAIN:
            return None, ()
        parts.append(
            (known, existing_groups(tuple(keys[number] for number in known), own, env, terms, looking))
        )
    if math.prod(len(rows) for _, rows in parts) > MAX_DOMAIN:
        return None, ()
    places = [number for numbers, _ in parts for number in numbers]
    order = [places.index(number) for number in range(len(keys))]
    found = []
    for chosen in itertools.product(*(rows for _, rows in parts)):
        flat = [value for part in chosen for value in part]
        found.append(tuple(flat[place] for place in order))
    return tuple(found), lists


def _listed_in(groups: tuple[tuple[Scalar, ...], ...], place: int, domain: Domain) -> Domain:
    """Return what is left of a key's domain."""
    left = {group[place] for group in groups}
    return Domain(tuple(value for value in domain.values if value in left))


@dataclass(frozen=True, slots=True)
class _Share:
    """What one measurement may cost: `epsilon`, and in a zCDP dataset `rho` in 1e-18, of which epsilon is a reading."""

    epsilon: Fraction
    rho: int | None

    @property
    def is_nothing(self) -> bool:
        return self.epsilon <= 0


def _share_of(
    release: Release, epsilon: Fraction, blocks: Fraction, measurements: int, *, is_zcdp: bool
) -> _Share:
    """Return what each measurement of a release may spend of a statement's epsilon (soundness.md 1.8 and 1.25)."""
    if not measurements:
        return _Share(Fraction(0), 0 if is_zcdp else None)
    part = Fraction(*release.share) / blocks / measurements
    if not is_zcdp:
        return _Share(floor_to_nano(epsilon * part), None)
    rho = math.ceil(epsilon**2 / 2 * part * ATTO)
    return _Share(pure_epsilon(rho), rho)


def with_bars(
    release: ReleasePlan, bars: Bars, catalog: Catalog, privacy: PrivacyParameters, blocks: Fraction
) -> ReleasePlan:
    """Return the plan of a release that draws bars of some chosen values. `blocks`: the sum of all releases' shares.

    Requires: groups that are known from text and policy. Raises Refusal as `plan` does.
    """
    planned = _plan_release(release.release, catalog, privacy, blocks, None, Looking(), release.below, bars)
    planned.queries(tuple(range(len(planned.measurements))))
    return planned


def count_of(call: AggregateCall) -> AggregateCall:
    """Return the count of the very rows that an aggregate takes in; of a count, itself."""
    if call.function == "count":
        return call
    args = call.args[:1] if call.function in RANK_FUNCTIONS else call.args
    return replace(call, type=BIGINT, function="count", args=args, distinct=False)


def counting(
    release: ReleasePlan, call: AggregateCall, catalog: Catalog, privacy: PrivacyParameters
) -> ReleasePlan:
    """Return the plan of a count of the very rows that an aggregate takes in, by the same keys; of a count, its own."""
    count = count_of(call)
    alone = replace(release.release, aggregates=(count,), share=(1, 1), names=_names(release.release, count))
    return _plan_release(alone, catalog, privacy, Fraction(1), None, Looking(), release.below)


def other_measures(release: ReleasePlan) -> Iterator[ReleasePlan]:
    """Yield the plans of a release by other measurements, each measurement with all of its epsilon: for what is
    stored of them.

    For groups that are known beforehand; `release` itself is none of them.
    """
    rows, epsilon, rho = release.release.rows, sum(release.epsilons, Fraction(0)), sum(release.rhos)
    env = environment_of(rows.columns, rows.predicate)
    seen = {frozenset(release.measurements)}
    calls, bars, zeros = release.release.aggregates, release.bars, release.zeros
    for measured in others(calls, env, release.bounding, rows.units, bars, zeros):
        measurements = frozenset(measured.measurements)
        if measurements not in seen and len(measurements) <= MAX_MEASUREMENTS:
            seen.add(measurements)
            yield replace(
                release, measurements=measured.measurements, formulas=measured.formulas, grids=measured.grids,
                epsilons=(pure_epsilon(rho) if rho else epsilon,) * len(measurements),
                rhos=(rho,) * len(measurements) if rho else (),
            )  # fmt: skip


def _names(release: Release, count: AggregateCall) -> tuple[str, ...]:
    return (*release.names[: len(release.keys)], count.function)


def _bounding(
    release: Release,
    env: Environment,
    privacy: PrivacyParameters,
    groups: tuple[tuple[Scalar, ...], ...] | None,
) -> Bounding:
    """Return the contribution bounds, as the printer will enforce them.

    R is the same whatever the keys are, so that groups add up to the whole; only where the engine's keys leave a
    person one row in a group is it C.
    """
    rows, grouped = release.rows, bool(release.keys)
    if rows.is_single:
        return Bounding(1, 1, 1, True, False, privacy.replace_one, grouped, privacy.together)
    if rows.max_rows is None or rows.max_rows_per_group is None or rows.max_groups is None:
        raise undeclared_rows(rows.undeclared, release.position)
    m = 1 if grouped and has_one_row(rows, release.keys) else rows.max_rows_per_group
    in_all = min(rows.max_rows, m * rows.max_groups, privacy.max_rows or rows.max_rows)
    if not grouped:
        return Bounding(in_all, in_all, 1, False, False, privacy.replace_one, False, privacy.together)
    c = min(in_all, max_groups_in(rows, release.keys, env))
    if groups:  # never 0
        c = min(c, len(groups))
    is_determined = fields_of(*release.keys) <= rows.fixed_columns
    ranked = not is_determined and (groups is None or len(groups) > c)
    is_alone = has_one_row(rows, tuple(key for key in release.keys if key.type.kind in _ONE_SPELLING))
    return Bounding(
        in_all, m, c, False, ranked, privacy.replace_one, True, privacy.together, one_a_group=is_alone
    )


_ONE_SPELLING = (
    SqlKind.SMALLINT, SqlKind.INTEGER, SqlKind.BIGINT, SqlKind.BOOLEAN, SqlKind.TEXT, SqlKind.DATE,
)  # fmt: skip
"""Types of which two values that a constraint tells apart are two groups: no printed key makes one of them."""


def releases_of(relation: Relation) -> Iterator[Release]:
    """Yield the releases of an analyzed relation, subqueries included, in order of their text."""
    if isinstance(relation, Release):
        yield relation
        return
    for source in relation.inputs:
        yield from releases_of(source)
    for expr in expressions(relation):
        for part in walk(expr):
            if isinstance(part, Subquery):
                yield from releases_of(part.relation)
