"""From an analyzed statement to its plan: which releases, which measures, which noise, which charge.

House rules:

1. Pure: text, policy and parameters in; no store, no data of people, no randomness (this is all that EXPLAIN
   and Describe run). The keys of public tables are asked for through `ReadKeys`, and through nothing else.
2. Epsilon is split by the text alone: equally over the blocks of the statement that aggregate, a block's
   part over its grouping sets by the groups a unit can touch in each, and a release's part over its
   measurements: equally, or the count that finds groups has a share of its own (soundness.md 1.7, 1.8 and
   1.14(5)). In a zCDP dataset rho = epsilon²/2 is split so.
3. The charge is the sum of what the scales were computed from: each share is cut down to 1e-9 of epsilon, or raised
   to 1e-18 of rho.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from fractions import Fraction

from ..errors import Refusal
from ..mechanisms import pure_epsilon
from ..policy.model import Accounting, Neighbours, Policy
from ..policy.periods import first_day, most_of
from ..records import dataclass
from ..relation.aggregates import AGGREGATES, Asks
from ..relation.catalog import Catalog, Ground, Scalar, norm_key
from ..relation.expressions import Expr, Field, conjuncts, fields_of
from ..relation.facts import check_joined
from ..relation.intervals import Environment
from ..relation.relations import AggregateCall, Relation, Values, all_parts, ends_in, nodes_in, tables_in
from ..relation.types import BIGINT, SqlType
from ..relation.types import Kind as SqlKind
from ..sql.bind_select import bind
from ..sql.scope import BindingContext
from ..sql.statement import AdmittedQuery, parse_statement
from .backend_sql.print_release import BackendQuery, print_keys
from .dialects import Dialect, dialect_of
from .measures.least_error import (
    Asked,
    ChosenMeasurements,
    OtherMeasurements,
    TopRows,
    among,
    choose_measurements,
    others,
    together,
    top_groups,
    top_rows,
)
from .measures.measurements import (
    Bounding,
    BoundingQuery,
    Loss,
    Measurement,
    Norm,
    Numbered,
    counted_in,
)
from .measures.ranks import NO_BARS, Bars, ModeMeasurement
from .privacy.analyze import Analyzed, analyze
from .privacy.axes import axis_of, calendar_key
from .privacy.contradiction import asks_for_nobody, count_nothing, has_no_groups, has_no_rows, kept_groups
from .privacy.functional_dependencies import classes_of, functional_closure, has_one_row
from .privacy.growth import MAX_GROWN, joined_rows
from .privacy.keys import (
    MAX_DOMAIN,
    Domain,
    domain_of,
    environment_of,
    existing_groups,
    max_groups_in,
    undeclared_rows,
)
from .privacy.public_inputs import KeyList, key_lists
from .privacy.rows import Release, fields_in
from .privacy.time import (
    MOST_PERIODS,
    Clock,
    Each,
    NotByPeriod,
    are_of_one_period,
    at_boundary,
    by_period,
    by_person,
    cutting,
    each_period,
    is_of_one_period,
    joins_own,
    joins_plainly,
    numbered_scans,
    ordered,
    reached,
    reads_references,
    slices_of,
    spans_in,
    undated_scans,
)
from .privacy.value_set import Looking
from .release_plan import (
    Planned,
    ReleasePlan,
    Work,
    grounds_below,
    grounds_of,
    key_rule,
    loss_of,
    release_bytes,
    units_ground,
)
from .strategies import Strategy


@dataclass(frozen=True, slots=True)
class PrivacyParameters:
    """What a statement may spend, and under which definition.

    `epsilon`: for the whole statement. `delta`: per query block with undeclared keys. `minimum_units`:
    keys with fewer units are never published. `replace_one`: the neighbouring relation.
    `max_rows`: most rows of a person that count, where the policy takes more; None: what it takes.
    `together`: in how many units neighbours differ. `accounting`: what adds up over statements. `selection`:
    whether groups may be chosen before they are measured, where nothing but the largest are asked for. `found_share`:
    the part of a release's epsilon (or rho) for the count of people that finds groups; None: by the text. `clock`:
    which periods are over, under a budget by periods; None: there is no such budget (soundness.md 1.40).
    """

    epsilon: Fraction
    delta: Fraction
    minimum_units: int
    replace_one: bool
    max_rows: int | None = None
    together: int = 1
    accounting: Accounting = Accounting.PURE
    selection: bool = True
    found_share: Fraction | None = None
    clock: Clock | None = None

    @classmethod
    def of(
        cls, policy: Policy, epsilon: Fraction, clock: Clock | None = None, *, finds_groups: bool = True
    ) -> PrivacyParameters:
        """Return what a statement may spend of so much under a policy; `finds_groups`: by the policy's delta, else none
        of it is spent, and no group is found."""
        privacy, defaults = policy.privacy, policy.defaults
        delta = defaults.delta if finds_groups and privacy.delta else Fraction(0)
        units = defaults.minimum_units if finds_groups else 1
        is_replaced, adds = privacy.neighbours is Neighbours.REPLACE_ONE, privacy.accounting
        return cls(epsilon, delta, units, is_replaced, None, privacy.together, adds, clock=clock)


ReadKeys = Callable[[BackendQuery, tuple[SqlType, ...]], Sequence[tuple[Scalar, ...]]]
"""Asks public tables for keys of some types: each tuple once, in canonical form, at most MAX_DOMAIN + 1 of them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A statement's plan: intermediate results are drawn in order, each from releases that come before it.

    `releases` in order of drawing; `intermediates` are relations over them, of one cell or, those in `tables`, of
    rows; `root` the statement. `strategies`: releases that `root` reads, with the levels drawn for them; `plain`:
    the plan without levels. `apart`: groups of release numbers that are one release of the statement, a part for each
    period (soundness.md 1.41).
    """

    root: Relation
    intermediates: tuple[Relation, ...]
    tables: frozenset[int]
    releases: tuple[ReleasePlan, ...]
    privacy: PrivacyParameters
    strategies: tuple[Strategy, ...] = ()
    plain: Plan | None = None
    apart: tuple[tuple[int, ...], ...] = ()

    @property
    def blocks(self) -> Fraction:
        """The sum of the shares that one slice is charged: a release drawn period by period counts once."""
        others = {number for group in self.apart for number in group[1:]}
        shares = (one.release.share for number, one in enumerate(self.releases) if number not in others)
        return sum((Fraction(*share) for share in shares), Fraction(0))

    @property
    def levels(self) -> frozenset[int]:
        """The releases that `root` does not read: what is drawn of them makes others more exact."""
        return frozenset(number for one in self.strategies for number in one.levels)

    @property
    def epsilon(self) -> Fraction:
        """The charge in epsilon, when nothing is in the store; of rho, that of the pure draw that costs as much."""
        if self.privacy.accounting is Accounting.ZCDP:
            return pure_epsilon(self.rho_atto)
        return self._most(lambda release: sum((one.epsilon for one in release.measures), Fraction(0)))

    @property
    def rho_atto(self) -> int:
        """The charge in rho, in 1e-18, when nothing is in the store; 0 in a pure dataset, where it is not counted."""
        return int(self._most(lambda release: Fraction(sum(one.loss.rho or 0 for one in release.measures))))

    @property
    def delta(self) -> Fraction:
        """The charge in delta, when nothing is in the store."""
        return self._most(lambda release: release.delta)

    def _most(self, of: Callable[[ReleasePlan], Fraction]) -> Fraction:
        """Return what all releases have together; under a budget by periods that of the slice which has most."""
        return most_of((release.slices, of(release)) for release in self.releases)


def plan(
    relation: Relation, catalog: Catalog, privacy: PrivacyParameters, read: ReadKeys | None = None
) -> Plan:
    """Return the plan of a bound statement. `read`: see `ReadKeys`; without it no public table is read.

    Raises:
        Refusal: what `analyze`, `measure` and the printer raise; PV103 when undeclared keys have no delta, PV104 when
            no period that is read is over.
    """
    assert catalog.has_periods == (privacy.clock is not None), "a budget by periods has a clock, and no other"
    _check_size(relation)
    if is_empty_by_text(relation):
        return Plan(Values((), relation.columns), (), frozenset(), (), privacy)
    if privacy.clock is not None:
        return _ByPeriods.of(relation, _Planner(catalog, privacy, read), privacy.clock).plan()
    return _Planner(catalog, privacy, read).analyzed(analyze(relation, catalog))


def plan_text(sql: str, catalog: Catalog, privacy: PrivacyParameters) -> Plan:
    """Return the plan of a query that no analyst asks: without parameters, and the same at any time.

    Raises Refusal: 0A000 for what is no query.
    """
    query = parse_statement(sql)
    if not isinstance(query, AdmittedQuery):
        raise Refusal("only a query has a plan", sqlstate="0A000")
    return plan(bind(query, BindingContext(catalog, query.text, (), 0, {})), catalog, privacy)


@dataclass(frozen=True)
class _ByPeriods:
    """A statement under a budget by periods.

    `scans`: of each scan that has a time, by number, the periods that are read.
    """

    relation: Relation
    planner: _Planner
    clock: Clock
    scans: dict[int, frozenset[int]]

    @classmethod
    def of(cls, relation: Relation, planner: _Planner, clock: Clock) -> _ByPeriods:
        """Return a statement with the periods that its filters may leave rows of."""
        relation, count = numbered_scans(relation)
        scans = {number: frozenset(clock.read) for number in range(count)}
        scans |= reached(ordered(analyze(relation, planner.catalog)), clock)
        return cls(relation, planner, clock, scans)

    def _by_person(
        self, scans: dict[int, frozenset[int]], *, is_ever: bool = False
    ) -> tuple[Analyzed, _Planner]:
        """Return it analyzed by person over some periods, and what plans it over the tables as they are then."""
        whole, known = by_person(self.relation, self.planner.catalog, self.clock, scans, is_ever=is_ever)
        return analyze(whole, known), replace(self.planner, catalog=known)

    def plan(self) -> Plan:
        """Return its plan: (a), (b) or (c) of soundness.md 1.40."""
        person, planner = self._by_person(self.scans)
        is_of_two = any(reads_references(release.rows) for release in ordered(person))  # (c) alone
        if not is_of_two and all(is_of_one_period(release.rows, self.clock) for release in ordered(person)):
            alone = each_period(person, [[release] for release in ordered(person)])
            return planner.analyzed(person if alone is None else alone.analyzed)
        pairs: Plan | None = None
        with suppress(NotByPeriod, Refusal):
            if is_of_two:
                raise NotByPeriod
            pairs = self._by_pairs(person)
        with suppress(Refusal):
            undated = sum(undated_scans(release.rows) for release in ordered(person))
            if pairs is None and not undated and not person.intermediates:
                pairs = self._each_period(person, is_held=True)
        person, planner = self._by_person(self.scans, is_ever=True)
        try:
            plan_ = planner.analyzed(person)
        except Refusal:
            if pairs is None:
                raise
            return pairs
        return plan_ if pairs is None or _is_finer(plan_, pairs) else pairs

    def _by_pairs(self, person: Analyzed) -> Plan:
        """Return the plan with (person, period) as the unit. `person`: what the analysis by person has accepted.

        Raises NotByPeriod, Refusal: where the analysis by (person, period) does not accept it, or finds other releases
        than that by person; or where groups have to be found, which counts people and not (person, period) pairs.
        """
        tables, releases = tables_in(self.relation), ordered(person)
        undated = sum(table.unit is not None and table.unit.time is None for table in tables)
        if undated != sum(undated_scans(release.rows) for release in releases):
            raise NotByPeriod
        if not all(joins_plainly(release.rows) and joins_own(release.rows) for release in releases):
            raise NotByPeriod
        whole, known = by_period(self.relation, self.planner.catalog, self.clock, self.scans)
        analyzed = analyze(whole, known)
        found = ordered(analyzed)
        if analyzed.intermediates or _shape(analyzed) != _shape(person):
            raise NotByPeriod
        # people's undated rows are nowhere read as public ones
        if any(table.is_undated for table in tables_in(analyzed.root)):
            raise NotByPeriod
        if undated != sum(undated_scans(release.rows) for release in found):
            raise NotByPeriod
        for release in found:
            if not joins_plainly(release.rows) or any(
                fan.items for work in release.rows.works for fan in work.fans
            ):
                raise NotByPeriod
        each = self._each_period(person)
        if each is not None:
            return each
        planned = self._at_boundary(analyzed) or replace(self.planner, catalog=known).analyzed(analyzed)
        if any(release.counted is not None for release in planned.releases):
            raise NotByPeriod
        return planned

    def _at_boundary(self, by_pairs: Analyzed) -> Plan | None:
        """Return the plan of counts and sums as one draw of the closed periods and one of each open period (1.41);
        None: all periods are closed, or all open, or other aggregates are asked for.
        """
        read = frozenset[int]().union(*self.scans.values())
        over, whole = frozenset(range(self.clock.end)), ordered(by_pairs)
        parts = [read & over, *(frozenset({number}) for number in sorted(read - over))]
        if not parts[0] or len(parts) == 1:
            return None
        found: list[list[Release | None]] = [[] for _ in whole]
        for part in parts:
            own = {number: numbers & part for number, numbers in self.scans.items()}
            bounded, known = by_period(self.relation, self.planner.catalog, self.clock, own)
            releases = ordered(analyze(bounded, known))
            if len(releases) != len(whole):
                return None
            for each, release in zip(found, releases, strict=True):
                each.append(None if slices_of(release.rows, self.clock) is None else release)
        split = at_boundary(by_pairs, found)
        return None if split is None else replace(self.planner, catalog=known).apart(split, _blocks(whole))

    def _each_period(self, person: Analyzed, *, is_held: bool = False) -> Plan | None:
        """Return the plan of a statement that is accepted by (person, period) as a release for each period (1.41);
        None: its groups are not periods, or these are too many. `is_held`: it is not accepted so, and is looked at by
        itself.
        """
        periods = sorted(frozenset[int]().union(*self.scans.values()))
        whole = ordered(person)
        if len(periods) > MOST_PERIODS or not any(release.keys for release in whole):
            return None
        found: list[list[Release | None]] = [[] for _ in whole]
        for period in periods:
            own = {number: numbers & {period} for number, numbers in self.scans.items()}
            analyzed, planner = self._by_person(own)
            releases = ordered(analyzed)
            if analyzed.intermediates or len(releases) != len(whole) or _shape(analyzed) != _shape(person):
                return None
            for parts, release in zip(found, releases, strict=True):
                slices = slices_of(release.rows, self.clock)
                parts.append(None if slices is None else release)
                if slices is not None and not is_of_one_period(release.rows, self.clock):
                    return None
        if is_held and not all(
            are_of_one_period([one.rows for one in parts if one is not None]) for parts in found
        ):
            return None
        each = each_period(person, found)
        return None if each is None else planner.apart(each, _blocks(whole))


def _blocks(releases: Sequence[Release]) -> Fraction:
    return sum((Fraction(*release.share) for release in releases), Fraction(0))


def _shape(analyzed: Analyzed) -> list[tuple[object, ...]]:
    """Return the kinds of a statement's parts and its releases' aggregates, to compare two analyses of it."""
    return [
        (type(part).__name__, len(part.columns))
        if not isinstance(part, Release)
        else (len(part.keys), *((call.function, call.distinct) for call in part.aggregates))
        for root in (analyzed.root, *analyzed.intermediates)
        for part in all_parts(root)
    ]


def _is_finer(one: Plan, other: Plan) -> bool:
    """Say whether a plan has less noise than another one of the same statement: in the mean, measure by measure."""
    ratios = []
    others = {number for group in other.apart for number in group[1:]}
    parts = [release for number, release in enumerate(other.releases) if number not in others]
    if len(parts) != len(one.releases):
        return False
    for mine, theirs in zip(one.releases, parts, strict=True):
        if len(mine.measures) != len(theirs.measures):
            return False
        for a, b in zip(mine.measures, theirs.measures, strict=True):
            widths = [
                Fraction(m.scale) / m.measurement.claim_unit * m.measurement.step if m.scale else Fraction(0)
                for m in (a, b)
            ]
            if widths[1]:
                ratios.append((widths[0] / widths[1]) ** 2)
    return bool(ratios) and sum(ratios) < len(ratios)


@dataclass(frozen=True)
class _Planner:
    """Plans what is analyzed, over the tables of a catalog; `read`: see `ReadKeys`.

    `blocks`: the sum of the shares that a slice is charged. `below`: what each intermediate result rests on.
    """

    catalog: Catalog
    privacy: PrivacyParameters
    read: ReadKeys | None = None
    blocks: Fraction = Fraction(1)
    below: tuple[frozenset[Ground], ...] = ()
    looking: Looking = field(default_factory=Looking)

    @property
    def is_zcdp(self) -> bool:
        """Whether rho adds up."""
        return self.privacy.accounting is Accounting.ZCDP

    def apart(self, each: Each, blocks: Fraction) -> Plan:
        """Return the plan of a statement whose releases are made of parts."""
        planned = self.analyzed(each.analyzed, blocks)
        number = {release.release: i for i, release in enumerate(planned.releases)}
        several = (parts for parts in each.parts if len(parts) > 1)
        return replace(planned, apart=tuple(tuple(number[part] for part in parts) for parts in several))

    def analyzed(self, analyzed: Analyzed, blocks: Fraction | None = None) -> Plan:
        """Return the plan of an analyzed statement. `blocks`: None: the sum of all shares."""
        found, roots = ordered(analyzed), (*analyzed.intermediates, analyzed.root)
        blocks = _blocks(found) if blocks is None else blocks
        below = grounds_below((part, list(releases_of(part))) for part in analyzed.intermediates)
        own = replace(self, blocks=blocks, below=below, looking=Looking())
        has_groups = any(release.keys for release in found)
        tops = top_rows(roots) if self.privacy.selection and has_groups else {}
        kept = kept_groups(roots)
        plans = ((one, own.release(one, kept=kept[one], by_number=one not in tops)) for one in found)
        releases = tuple(own.selecting(whole, tops.get(one)) for one, whole in plans)
        for release in releases:
            # printing may refuse: before anything is charged
            release.queries(tuple(range(len(release.measurements))))
        check_grown(releases, lambda work: work.most)
        return Plan(analyzed.root, analyzed.intermediates, analyzed.tables, releases, self.privacy)

    def release(
        self, release: Release, *, bars: Bars = NO_BARS, kept: Collection[Sequence[Expr]] = (),
        by_number: bool = True,
    ) -> ReleasePlan:  # fmt: skip
        """Return the plan of a release. `kept`: as `kept_groups` has it; `by_number`: rows may be kept by number."""
        rows, privacy = release.rows, self.privacy
        env = environment_of(rows.columns, rows.predicate)
        dialect = dialect_of(self.catalog.dialect, self.catalog.case_collation)
        self.looking.gave_up = False
        groups, domains, listed = self._known_groups(release, env, dialect)
        bounding = _normed(_bounding(release, env, privacy, groups), release, privacy, groups, domains)
        if self.is_zcdp and rows.lookup is not None and dialect.keeps_steps:
            bounding = replace(bounding, clamped=max(1, len(groups or ())))
        rowless, unused, (text_zeros, zeros) = _without_rows(release, kept)
        is_empty = groups == () or rowless[0] or unused[0]
        is_proved = not is_empty and (rowless[1] or unused[1])
        is_empty = is_empty or is_proved
        if not is_empty and rows.predicate and asks_for_nobody(rows):
            raise _of_nobody(release)
        zeros = frozenset() if is_empty else zeros
        asked = Asked(
            release.aggregates, env, bounding, rows.units, groups is None, self.is_zcdp, bars, zeros,
            privacy.found_share,
        )  # fmt: skip
        numbered = _measured_by_number(release, asked) if by_number and groups is not None else None
        bounding, measured = numbered or (bounding, choose_measurements(asked))
        _check_measured(release, measured.measurements, groups, env)
        measures = self._spending(release, measured, is_empty=is_empty)
        if is_empty and groups and not rowless[1]:
            groups = ()  # no row is in a group that is read
        slices = None if privacy.clock is None else slices_of(rows, privacy.clock)
        if privacy.clock is not None and slices is None and not is_empty:
            raise _not_over(release, privacy.clock)
        delta, counted = Fraction(0), measured.counted
        if counted is not None and not is_empty:
            delta = _delta_of(release, domains, privacy)
            rule = key_rule(measured.measurements[counted], measures[counted].loss, delta, privacy.together)
            measures[counted] = replace(measures[counted], given=rule)
        grounds = grounds_of(rows, release.keys, self.below)
        if groups is None:
            grounds |= {units_ground(privacy.minimum_units)}
        rests = tuple(sorted(grounds))
        whole = math.prod(len(domain.values) for domain in domains if domain)
        # fewer than the product of the domains
        chosen = groups if groups is not None and (listed or len(groups) < whole) else None
        return ReleasePlan(
            release, bounding, tuple(measures), measured.formulas, tuple(domains), groups, counted,
            privacy.minimum_units, delta, is_empty,
            _identity(release, rests, bounding, domains, chosen, measured.measurements), rests, dialect,
            tuple(dict.fromkeys(name for one in listed for name in one.tables)), bars=bars,
            is_proved=is_proved or not zeros <= text_zeros, is_wide=self.looking.gave_up, zeros=zeros,
            below=self.below, slices=slices,
        )  # fmt: skip

    def _spending(self, release: Release, measured: ChosenMeasurements, *, is_empty: bool) -> list[Planned]:
        """Return measurements with what each may spend: nothing where no row counts. Raises Refusal (PV301)."""
        epsilon = self.privacy.epsilon
        losses = [
            loss_of(release, epsilon, self.blocks, share, is_zcdp=self.is_zcdp) for share in measured.shares
        ]
        if any(loss.is_nothing for loss in losses):
            raise Refusal(
                "epsilon is too small to be shared between the aggregates",
                sqlstate="PV301",
                hint="raise dpsql.epsilon",
            )
        if is_empty:
            losses = [Loss(Fraction(0), 0 if self.is_zcdp else None)] * len(losses)
        each = zip(measured.measurements, losses, measured.shares, strict=True)
        return [Planned(measurement, loss, share=share) for measurement, loss, share in each]

    def _known_groups(
        self, release: Release, env: Environment, dialect: Dialect
    ) -> tuple[tuple[tuple[Scalar, ...], ...] | None, list[Domain | None], tuple[KeyList, ...]]:
        """Return the groups that are known beforehand, None where they are found; the keys' domains; the lists read."""
        domains = [domain_of(key, env) for key in release.keys]
        declared = [domain for domain in domains if domain is not None]
        groups, listed = self._read_groups(release, domains, env, dialect)
        if groups is None and len(declared) == len(domains):
            groups = existing_groups(release.keys, declared, env, release.rows.predicate, self.looking)
            return (
                groups,
                [_listed_in(groups, place, domain) for place, domain in enumerate(declared)],
                listed,
            )
        if groups is not None:
            apart = {place for one in listed for place in one.numbers}
            domains = [None if place in apart else domain for place, domain in enumerate(domains)]
        return groups, domains, listed

    def _read_groups(
        self, release: Release, domains: list[Domain | None], env: Environment, dialect: Dialect
    ) -> tuple[tuple[tuple[Scalar, ...], ...] | None, tuple[KeyList, ...]]:
        """Return the groups of keys that public tables have, and the lists they come from.

        None where no key needs a list, or there are more than MAX_DOMAIN: then keys are found by threshold.
        """
        keys, terms, read = release.keys, release.rows.predicate, self.read
        lists = key_lists(release.rows, keys, domains) if keys and read is not None else ()
        if read is None or not lists:
            return None, ()
        parts: list[tuple[tuple[int, ...], Sequence[tuple[Scalar, ...]]]] = []
        for one in lists:
            rows = read(print_keys(one, dialect), tuple(key.type for key in one.keys))
            parts.append((one.numbers, rows))
        known = tuple(
            number for number in range(len(keys)) if all(number not in one.numbers for one in lists)
        )
        if known:
            own = [domain for number in known if (domain := domains[number]) is not None]
            if math.prod(len(domain.values) for domain in own) > MAX_DOMAIN:
                return None, ()
            parts.append(
                (
                    known,
                    existing_groups(tuple(keys[number] for number in known), own, env, terms, self.looking),
                )
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

    def selecting(self, whole: ReleasePlan, top: TopRows | None) -> ReleasePlan:
        """Return the plan that chooses a release's largest groups and measures these alone; `whole` where none pays.

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
        asked = Asked(release.aggregates, env, bounding, rows.units, is_zcdp=whole.is_zcdp, zeros=whole.zeros)
        measured = choose_measurements(asked)
        measurements = (*measured.measurements, choice)
        share = Fraction(1, len(measurements))
        each = loss_of(release, self.privacy.epsilon, self.blocks, share, is_zcdp=whole.is_zcdp)
        if each.is_nothing or len(measurements) > MAX_MEASUREMENTS:
            return whole
        return replace(
            whole,
            bounding=bounding,
            measures=tuple(Planned(measurement, each, share=share) for measurement in measurements),
            formulas=measured.formulas,
            identity=hashlib.sha256(whole.identity + repr(("chosen", bounding)).encode()).digest(),
            unselected=whole,
        )


def _of_nobody(release: Release) -> Refusal:
    """Return the refusal of a filter that leaves rows alone that nobody owns."""
    return Refusal(
        f'only rows of "{release.rows.shown_name}" whose way to a person is NULL could pass this filter: '
        "they are nobody's, and never count",
        sqlstate="PV003", position=release.position,
        hint="whether there are such rows is the owner's to see: no statement over people's rows counts them",
    )  # fmt: skip


def _identity(
    release: Release, rests: tuple[Ground, ...], bounding: Bounding, domains: Sequence[Domain | None],
    chosen: Sequence[object] | None, measurements: Sequence[Measurement],
) -> bytes:  # fmt: skip
    """Return the hash of all that the exact measures depend on but data and epoch, and what is a measure's own."""
    rows = release.rows
    said: tuple[object, ...] = (rests, rows.identity(), release.keys, bounding, *bounding.norms, domains)
    said = (*said, *(one for one in (bounding.numbered, bounding.clamped) if one is not None))
    said = said if chosen is None else (*said, chosen)
    if rows.lookup is not None and not rows.lookup.key:
        said = (*said, measurements)  # rows are ordered, and so kept, by all columns that are read
    return hashlib.sha256(repr(said).encode()).digest()


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
        if any(term.is_constant and term.constant in (False, None) for term in terms):
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


def _without_rows(
    release: Release, kept: Collection[Sequence[Expr]]
) -> tuple[tuple[bool, bool], tuple[bool, bool], tuple[frozenset[int], frozenset[int]]]:
    """Say whether no row of a release counts, whether no group is used, and in which aggregates no row counts.

    Each by the text, and by constraints too.
    """
    rows = release.rows

    def is_rowless(nothing: Collection[int], *, proved: bool) -> bool:
        if not rows.is_whole and has_no_rows(rows, proved=proved):
            return True
        return not release.keys and 0 < len(release.aggregates) == len(nothing)

    # what the text says holds with constraints too, so that it is asked where these say so
    zeros = count_nothing(release, proved=True)
    text_zeros = count_nothing(release) if zeros else zeros
    by_facts = is_rowless(zeros, proved=True)
    by_text = by_facts and is_rowless(text_zeros, proved=False)
    facts_unused = has_no_groups(release, kept, proved=True)
    text_unused = facts_unused and has_no_groups(release, kept)
    return (by_text, by_facts), (text_unused, facts_unused), (text_zeros, zeros)


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


def _not_over(release: Release, clock: Clock) -> Refusal:
    """Return the refusal of what reads no period that is over."""
    period, end = clock.time.period, first_day(clock.time.period, clock.end)
    column = next((spans.time.column for spans in spans_in(release.rows)), "")
    said = f"{clock.time.settle.days} days" if clock.time.settle.days else "some hours"
    kept = "" if clock.time.retention is None else f", from {first_day(period, clock.read.start)} on"
    return Refusal(
        f"no {period.value} that this statement reads is over, with {said} in which late rows may come",
        sqlstate="PV104", position=release.position,
        hint=f"a {period.value} is answered once it is over; ask for what was before: {column} < '{end}'{kept}"
        + (", or SET dpsql.open = on, which is charged anew each day" if clock.time.is_open and not clock.day else ""),
    )  # fmt: skip


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


def _listed_in(groups: tuple[tuple[Scalar, ...], ...], place: int, domain: Domain) -> Domain:
    """Return what is left of a key's domain."""
    # few objects stand in many groups
    left = set({id(group[place]): group[place] for group in groups}.values())
    return Domain(tuple(value for value in domain.values if value in left))


def with_bars(
    release: ReleasePlan, bars: Bars, catalog: Catalog, privacy: PrivacyParameters, blocks: Fraction
) -> ReleasePlan:
    """Return the plan of a release that draws bars of some chosen values. `blocks`: the sum of all releases' shares.

    Requires: groups that are known from text and policy. Raises Refusal as `plan` does.
    """
    planner = _Planner(catalog, privacy, blocks=blocks, below=release.below)
    planned = planner.release(release.release, bars=bars, by_number=release.bounding.numbered is not None)
    planned.queries(tuple(range(len(planned.measurements))))
    return planned


def count_of(call: AggregateCall) -> AggregateCall:
    """Return the count of the very rows that an aggregate takes in; of a count, itself."""
    if call.function == "count":
        return call
    args = call.args[:1] if call.row.is_ordered else call.args
    return replace(call, type=BIGINT, function="count", args=args, distinct=False)


def counting(
    release: ReleasePlan, call: AggregateCall, catalog: Catalog, privacy: PrivacyParameters
) -> ReleasePlan:
    """Return the plan of a count of the very rows that an aggregate takes in, by the same keys; of a count, its own."""
    count = count_of(call)
    alone = replace(release.release, aggregates=(count,), share=(1, 1), names=_names(release.release, count))
    planner = _Planner(catalog, privacy, below=release.below)
    return planner.release(alone, by_number=release.bounding.numbered is not None)


def by_keys(
    release: ReleasePlan, keys: tuple[Expr, ...], catalog: Catalog, privacy: PrivacyParameters
) -> ReleasePlan | None:
    """Return the plan of the same measures by other keys, at the same losses; None: other keys need other measures.

    Raises Refusal as `plan` does.
    """
    other = replace(release.release, keys=keys)
    planner = _Planner(catalog, privacy, below=release.below)
    found = planner.release(other, by_number=release.bounding.numbered is not None)
    if len(found.measurements) != len(release.measurements) or found.is_empty:
        return None
    found = found.spending(release.losses)
    found.queries(tuple(range(len(found.measurements))))
    return found


@dataclass(frozen=True, slots=True)
class OtherPlan:
    """A release by other measurements. `unsaid`: the plan, without what each aggregate is of them: enough to look for
    what is stored of them."""

    unsaid: ReleasePlan
    measured: OtherMeasurements

    def plan(self) -> ReleasePlan:
        """Return the whole plan."""
        return replace(self.unsaid, formulas=self.measured.made().formulas)


def other_measures(release: ReleasePlan) -> Iterator[OtherPlan]:
    """Yield the plans of a release by other measurements, each measurement with all of its epsilon: for what is
    stored of them.

    For groups that are known beforehand; `release` itself is none of them.
    """
    each = Loss.of(sum(release.losses, Fraction(0)), is_zcdp=release.is_zcdp)
    for measured in others(_asked_of(release), {frozenset(release.measurements)}):
        if len(measured.measurements) <= MAX_MEASUREMENTS:
            measures = tuple(Planned(measurement, each) for measurement in measured.measurements)
            yield OtherPlan(replace(release, measures=measures, formulas=()), measured)


def _asked_of(release: ReleasePlan) -> Asked:
    """Return what a release was asked, of groups that are known beforehand, to be measured otherwise."""
    rows = release.release.rows
    env = environment_of(rows.columns, rows.predicate)
    calls, bounding = release.release.aggregates, release.bounding
    known = {one: one for one in release.measurements}
    return Asked(calls, env, bounding, rows.units, bars=release.bars, zeros=release.zeros, known=known)


def drawn_together(release: ReleasePlan) -> Iterator[ReleasePlan]:
    """Yield the plans of a release in which sums of several values are one vector, at no more than it costs.

    None in a zCDP dataset, where rho is shared as well (soundness.md 1.25), nor where groups are chosen.
    """
    if release.is_zcdp or release.is_empty or release.selection is not None:
        return
    counted = release.counted
    finding = None if counted is None else release.measures[counted]
    paid = sum((one.loss.added for one in release.measures if one is not finding), Fraction(0))
    part = 1 - (Fraction(0) if finding is None else finding.share)
    for other in together(replace(_asked_of(release), finds_groups=counted is not None)):
        if len(other.measurements) >= len(release.measurements):
            continue
        measured = other.made()
        measurements, number = measured.measurements, measured.counted
        if len(measurements) >= len(release.measurements):  # with what finds the groups
            continue
        if finding is not None and (number is None or measurements[number] != finding.measurement):
            continue
        count = len(measurements) - (finding is not None)
        each = Loss(paid).divided(count)
        yield replace(
            release,
            measures=tuple(
                finding if finding is not None and i == number else Planned(one, each, share=part / count)
                for i, one in enumerate(measurements)
            ),
            formulas=measured.formulas,
            counted=number,
        )


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
    is_replaced = privacy.replace_one or rows.is_replaced
    alone = Bounding(1, 1, 1, True, False, is_replaced, grouped, privacy.together)
    if rows.lookup is not None:
        if grouped and groups is None and (privacy.accounting is Accounting.ZCDP or len(rows.owner) > 1):
            raise _undeclared_of_two(release, env)
        apart, kept = rows.lookup.apart, (rows.lookup.first, rows.lookup.most)
        return replace(alone, in_all=apart, in_group=apart, groups=apart, of_two=kept)
    if rows.is_single:
        return alone
    many = replace(alone, per_row=False)
    is_alone = grouped and has_one_row(
        rows, tuple(key for key in release.keys if key.type.kind in _ONE_SPELLING)
    )
    if rows.max_rows is None or rows.max_rows_per_group is None or rows.max_groups is None:
        if groups and is_alone:  # a row of each, at most: the list is the bound
            n = min(len(groups), privacy.max_rows or len(groups))
            return replace(many, in_all=n, groups=n, ranked=n < len(groups), one_a_group=True)
        raise undeclared_rows(rows.undeclared, release.position)
    m = 1 if grouped and has_one_row(rows, release.keys) else rows.max_rows_per_group
    in_all = min(rows.max_rows, m * rows.max_groups, privacy.max_rows or rows.max_rows)
    if not grouped:
        return replace(many, in_all=in_all, in_group=in_all)
    c = min(in_all, max_groups_in(rows, release.keys, env))
    if groups:  # never 0
        c = min(c, len(groups))
    is_determined = fields_of(*release.keys) <= rows.fixed_columns
    ranked = not is_determined and (groups is None or len(groups) > c)
    return replace(many, in_all=in_all, in_group=m, groups=c, ranked=ranked, one_a_group=is_alone)


def _numbered(release: Release, bounding: Bounding) -> Bounding | None:
    """Return the bounds of rows that are kept by their number; None where rows are weighed (soundness.md 1.39).

    By text and policy alone, where three things hold: each row of a table with numbered rows gives at most one row;
    only join equalities and columns that a person has once filter them (any other filter would be applied to the first
    R rows alone), beside bounds of whole periods; and counts and sums are asked for. Over several periods of a person
    who is replaced a fourth: the first R rows of each are no more than count in all (1.40). Or rows are told apart by
    several such tables, all that is cut before they are joined is cut by its numbers, and what that leaves of a person
    is no more than R.
    """
    rows = release.rows
    if bounding.per_row or bounding.norms or rows.lookup is not None:
        return None
    if any(
        call.distinct or AGGREGATES[call.function].asks not in (Asks.COUNT, Asks.SUMS)
        for call in release.aggregates
    ):
        return None
    if len(rows.told) > 1:
        told = [rows.items[place].source for place in rows.told]
        cut = [item.source for item in rows.items if item.source.most is not None]
        if any(one.number is None for one in (*told, *cut)):
            return None
        if math.prod(one.most or 1 for one in told) > bounding.in_all:
            return None
        return replace(bounding, per_row=True, ranked=False, numbered=Numbered())
    table = rows.table_alone
    if table is None or table.unit is None or table.unit.row_number is None:
        return None
    joins = tuple(
        one for one in rows.predicate if one.calls("eq") and all(a.column is not None for a in one.args)
    )
    fixed, _ = functional_closure(
        rows.items, joins, classes_of(rows.items, joins, rows.root), set().union(*rows.units)
    )
    if not all(term in joins or fields_of(term) <= fixed for term in cutting(rows)):
        return None
    assert rows.alone is not None
    by_period, number = None, table.unit.row_number
    if table.spans is not None:
        most = number.most if rows.is_replaced else bounding.in_all
        periods = len(table.spans.first_days)
        if number.period is None or not periods or (rows.is_replaced and most * periods > bounding.in_all):
            return None
        by_period = number.period, most
    numbered = Numbered(rows.alone, number.column, by_period)
    return replace(bounding, per_row=True, ranked=False, numbered=numbered)


def _measured_by_number(release: Release, asked: Asked) -> tuple[Bounding, ChosenMeasurements] | None:
    """Return what is measured of rows kept by number, with its bounds; None where rows are weighed, or that counts a
    thing once, or no number of all rows."""
    bounding = _numbered(release, asked.bounding)
    if bounding is None:
        return None
    measured = choose_measurements(
        replace(asked, bounding=bounding, finds_groups=False, bars=NO_BARS, found_share=None)
    )
    are_sums = all(one.query is BoundingQuery.SCALED for one in measured.measurements)
    return (bounding, measured) if are_sums and not counted_in(measured.measurements) else None


def _undeclared_of_two(release: Release, env: Environment) -> Refusal:
    """Return the refusal of keys that would have to be found in rows of two people, where rho adds up, or a person has
    a key of several columns (soundness.md 1.38)."""
    unknown = next((key for key in release.keys if domain_of(key, env) is None), release.keys[0])
    return Refusal(
        "groups of rows of two people are not found in these data: these keys are not declared",
        sqlstate="PV103", position=unknown.position or release.position,
        hint="list the key's values in WHERE key IN (…), or group by a column with declared values",
        owner_hint="write { values = […] } at the key's column in the policy, or list them in WHERE key IN (…)",
    )  # fmt: skip


def _normed(
    bounding: Bounding, release: Release, privacy: PrivacyParameters,
    groups: tuple[tuple[Scalar, ...], ...] | None, domains: Sequence[Domain | None],
) -> Bounding:  # fmt: skip
    """Return bounds with the norms of the table that each row has one row of: the same for all groupings.

    A norm bounds groups each of which is within one cell of its key: groups by that very key, where each of the norm's
    values has a listed group, or no row has any other value (soundness.md 1.36).
    """
    rows = release.rows
    table = rows.table_alone
    if bounding.per_row or table is None or table.unit is None or privacy.accounting is not Accounting.ZCDP:
        return bounding
    assert rows.alone is not None
    placed = fields_in(rows.items)[rows.alone]
    env = environment_of(rows.columns, ())
    norms, of_groups = [], []
    for named, most in table.unit.max_norm:
        unit, name = norm_key(named)
        place = next((i for i, column in enumerate(placed.item.columns) if column.name == name), None)
        if place is None:
            continue
        column = Field(placed.item.columns[place].type, placed.start + place, name)
        key: Expr = column if unit is None else calendar_key(column, unit)
        domain = domain_of(key, env)
        if domain is None or most >= bounding.in_all:
            continue
        norm = Norm(key, tuple(value for value in domain.values if value is not None), most)
        norms.append(norm)
        if groups is not None and any(
            own is not None and one == key and _holds(norm, one, own, release)
            for one, own in zip(release.keys, domains, strict=True)
        ):
            of_groups.append(most)
    return replace(bounding, norms=tuple(norms), in_norm=min(of_groups, default=None))


def _holds(norm: Norm, key: Expr, domain: Domain, release: Release) -> bool:
    """Say whether each group by a key, that of unlisted values too, is within one cell of a norm of that key."""
    if set(norm.values) <= set(domain.values):
        return True
    rows = release.rows
    env = environment_of(rows.columns, rows.predicate)
    axis = axis_of(key, domain.values, rows, env, rows.predicate)
    return axis is not None and not axis.others


_ONE_SPELLING = (
    SqlKind.SMALLINT, SqlKind.INTEGER, SqlKind.BIGINT, SqlKind.BOOLEAN, SqlKind.TEXT, SqlKind.DATE,
)  # fmt: skip
"""Types whose values, where a constraint holds them different, are different groups: as keys they are printed whole."""


def releases_of(relation: Relation) -> Iterator[Release]:
    """Yield the releases of an analyzed relation, subqueries included, each once in the order of the text."""
    return nodes_in(Release, relation)
