"""A statement by other measures than its own: where a part of them is stored, or several columns are one vector.

A count that was drawn for itself stands beside a sum or an average of the same rows; a pair that was drawn for an
average gives the sum: only what is missing is measured, with all of epsilon (soundness.md 3.8). Sums of several columns
are drawn as one vector of noise, in place of a share of epsilon for each (soundness.md 1.22).

House rules (soundness.md 3.8):

1. From text, policy, settings and what is stored, which is noisy: never from data. Fixed before the charge.
2. No aggregate has a wider expected bar than asked alone, and the charge is no more. By one vector each aggregate has a
   deviation that is a tenth smaller at least: a 95 % bar is then no wider, whatever the shapes of both noises.
3. No statement of intermediate results. Of the store, groups that are known beforehand; as one vector, no release that
   is drawn by coarser groupings too (1.37).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from ..budget import StoredDraws
from ..errors import Refusal
from ..mechanisms import Law, half_width_of
from ..plan.measures.formulas import Chosen, Linear
from ..plan.planner import OtherPlan, Plan, drawn_together, other_measures
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from .finer import Finer, Source, families_of, finest, sources_of
from .price import expected_error, reads_each_alone
from .released import Groups
from .run import ReleasedRows, assemble


@dataclass(frozen=True, slots=True)
class Beside:
    """A plan that takes some of its measurements from the store; `taken`: these, by release and measurement."""

    plan: Plan
    taken: dict[tuple[int, int], Finer]


def find_beside(
    plan: Plan, known: Sequence[ReleasedRows], store: StoredDraws, level: Fraction
) -> Beside | None:
    """Return the plan that the store makes cheaper, or better at the same charge; None: the statement's own is best.

    `known`: what the store has of the statement's own plan. `level`: of the bars that are compared.
    """
    if plan.intermediates:
        return None
    epoch, releases = 0, list(plan.releases)
    taken: dict[tuple[int, int], Finer] = {}
    for number, rows in enumerate(known):
        own = rows.plan
        if rows.groups is None or own.groups is None or own.is_empty or own.selection is not None:
            continue
        others = [] if rows.is_complete else [(one, _keys(one.unsaid)) for one in other_measures(own)]
        if not others or store.is_empty:
            continue
        epoch = epoch or store.epoch  # before anything is looked up
        found = _Found(others, rows.groups, store, epoch, is_summed=not reads_each_alone(plan))
        best = _best(rows, found, level)
        if best is not None:
            releases[number], measurements = best
            taken |= {(number, index): measurement for index, measurement in measurements.items()}
    return Beside(replace(plan, releases=tuple(releases)), taken) if taken else None


_SAID = "parts of this answer are from earlier ones; SET dpsql.reuse = off measures all of it anew"


_Other = tuple[OtherPlan, Sequence[tuple[bytes, ...]]]
"""A plan by other measurements, with what each is stored under."""


class _Found:
    """What the store has of other measurements of a release's groups, each looked up once; all of it is of one epoch.
    `is_summed`: see `find_finer`. Of what nothing is stored is found out together.
    """

    def __init__(
        self, others: Sequence[_Other], groups: Groups, store: StoredDraws, epoch: int, *, is_summed: bool
    ) -> None:
        self.others = others
        self._store, self._epoch, self._groups, self._is_summed = store, epoch, groups, is_summed
        self._known: dict[tuple[tuple[bytes, ...], Law], Finer | None] = {}
        families = {
            measures: families_of(one.unsaid, index, groups)
            for one, keys in others
            for index, measures in enumerate(keys)
        }
        drawn, grouped = set[bytes](), set[bytes]()
        for part in _parts({key for measures in families for key in measures}):
            drawn.update(key for key, laws in zip(part, store.laws(part), strict=True) if laws)
        for part in _parts({family for own in families.values() for family in own}):
            epoch_, stored = store.groupings(part)
            grouped.update(family for family in part if epoch_ == epoch and stored[family])
        self._drawn = drawn
        self._sources = {
            measures: list[Source]() for measures, own in families.items() if grouped.isdisjoint(own)
        }
        """By its measures what groupings say of a measurement, under whatever noise."""

    def has(self, plan: ReleasePlan, index: int, measures: tuple[bytes, ...]) -> bool:
        """Say whether anything is stored of a measurement, under whatever noise."""
        return self._drawn.issuperset(measures) or bool(self._sources_of(plan, index, measures))

    def of(self, plan: ReleasePlan, index: int, measures: tuple[bytes, ...]) -> Finer | None:
        """Return a measurement that is stored with no more noise than the plan's, or that a stored grouping has."""
        law = plan.measures[index].law
        if (measures, law) not in self._known:
            draws = self._store.lookup(measures, law) if self._drawn.issuperset(measures) else None
            if draws is None:
                sources = self._sources_of(plan, index, measures)
                found = finest(plan, index, self._store, sources, is_summed=self._is_summed)
            else:
                found = Finer(assemble(measures, draws, plan.axes), self._epoch, _SAID)
            self._known[measures, law] = found
        return self._known[measures, law]

    def _sources_of(self, plan: ReleasePlan, index: int, measures: tuple[bytes, ...]) -> list[Source]:
        if measures not in self._sources:
            found = sources_of(plan, index, self._groups, self._store)
            self._sources[measures] = [one for one in found if one.epoch == self._epoch]
        return self._sources[measures]


_AT_ONCE = 1_000
"""Keys that a ledger is asked for together."""


def _parts(keys: set[bytes]) -> Iterator[list[bytes]]:
    every = sorted(keys)
    return (every[start : start + _AT_ONCE] for start in range(0, len(every), _AT_ONCE))


def _best(rows: ReleasedRows, found: _Found, level: Fraction) -> tuple[ReleasePlan, dict[int, Finer]] | None:
    """Return the plan of the lowest charge, then the smallest errors; None where that is the release's own."""
    own = rows.plan
    charge = sum((loss for i, loss in enumerate(own.losses) if i not in rows.measurements), Fraction(0))
    best, least = None, (charge, Fraction(len(own.formulas)))
    for other, measurements in _stored(found):
        missing = len(other.measures) - len(measurements)
        for parts in dict.fromkeys(
            (missing, len(own.measures))
        ):  # all of epsilon, or their parts as asked alone
            candidate = _taking(other, measurements, parts)
            ratios = None if candidate is None else _ratios(candidate, own, level)
            if candidate is not None and ratios is not None:
                price = (sum(candidate.losses, Fraction(0)), sum(ratios, Fraction(0)))
                if price < least:
                    best, least = (candidate, measurements), price
    return best


def _stored(found: _Found) -> Iterator[tuple[ReleasePlan, dict[int, Finer]]]:
    """Yield the plans by other measurements with those that are stored: at all of epsilon each, and at a share of it.

    A measurement that was drawn at a share of epsilon answers the same question again, but may be too coarse for
    another.
    """
    for one, keys in found.others:
        measurements = dict[int, Finer]()
        if not any(found.has(one.unsaid, i, measures) for i, measures in enumerate(keys)):
            continue
        other = one.plan()
        for part in dict.fromkeys((1, len(other.measurements))):
            probe, before = other.divided(part), measurements
            if probe is None:
                break
            every = {i: found.of(probe, i, measures) for i, measures in enumerate(keys)}
            measurements = {
                index: measurement for index, measurement in every.items() if measurement is not None
            }
            if measurements.keys() > before.keys():
                yield other, measurements


def _keys(plan: ReleasePlan) -> list[tuple[bytes, ...]]:
    """Return what each measurement of a plan is stored under."""
    relation = plan.salted(b"")
    return [plan.measure_keys(i, relation, b"") for i in range(len(plan.measurements))]


def _taking(other: ReleasePlan, measurements: dict[int, Finer], parts: int) -> ReleasePlan | None:
    """Return a plan that takes some measurements, and the rest at one of so many parts of epsilon each; None: it cannot
    be carried out."""
    shared = other.divided(parts) if len(measurements) < len(other.measures) else other
    if shared is None:
        return None
    plan = shared.taking({i: found.measurement.law for i, found in measurements.items()})
    return plan if _is_printed(plan, plan.fresh) else None


def _ratios(plan: ReleasePlan, own: ReleasePlan, level: Fraction) -> list[Fraction] | None:
    """Return each aggregate's expected error over the one that it has asked alone; None where one is wider."""
    ratios = []
    for index, formula in enumerate(own.formulas):
        if isinstance(formula, Chosen):
            if formula.coordinate is None:
                continue  # the one value that the text leaves
            if _rows_off(plan, index, level) > _rows_off(own, index, level):
                return None  # its part of epsilon is smaller here
            continue
        here, there = (
            expected_error(one, index, lambda formula, one=one: _half(one, formula, level))[0]  # type: ignore[misc]
            for one in (plan, own)
        )
        if here > there:
            return None
        ratios.append(here / there if there else Fraction(1))
    return ratios


def _rows_off(plan: ReleasePlan, index: int, level: Fraction) -> int:
    """Return how many rows off the wanted rank a chosen value may be."""
    formula = plan.formulas[index]
    assert isinstance(formula, Chosen)
    assert formula.coordinate is not None
    return plan.measures[formula.coordinate.measure].law.half_width(1 - level)


def _half(plan: ReleasePlan, formula: Linear, level: Fraction) -> Fraction:
    noises = plan.noises(formula)
    return half_width_of(noises, 1 - level) if noises else Fraction(0)


# --- several columns as one vector ------------------------------------------------------------------------------


_NARROWER = 0.9


def find_together(plan: Plan) -> Plan | None:
    """Return the plan that draws several columns as one vector; None: its own measures are about as good."""
    if plan.intermediates or plan.strategies:
        return None
    releases = tuple(_drawn_best(release) for release in plan.releases)
    changed = any(one is not own for one, own in zip(releases, plan.releases, strict=True))
    return replace(plan, releases=releases) if changed else None


def _drawn_best(own: ReleasePlan) -> ReleasePlan:
    """Return the plan of a release with the smallest errors, of which each is smaller than that of its own."""
    found: list[tuple[float, ReleasePlan]] = []
    for other in drawn_together(own):
        ratios = list(_deviations(other, own))
        if max(ratios, default=1) <= _NARROWER and _is_printed(other, range(len(other.measurements))):
            found.append((sum(ratios), other))
    return min(found, key=lambda one: one[0])[1] if found else own


def _deviations(other: ReleasePlan, own: ReleasePlan) -> Iterator[float]:
    """Yield each aggregate's deviation over the one that it has by the release's own measures.

    A chosen value is left out: there are fewer measurements, so that it has no smaller a part of epsilon. So is what is
    exact by both.
    """
    for index, formula in enumerate(own.formulas):
        if not isinstance(formula, Chosen):
            here, there = (_variance_of(plan, index) for plan in (other, own))
            if here or there:
                yield math.sqrt(here / there) if there else math.inf


def _variance_of(plan: ReleasePlan, index: int) -> Fraction:
    """Return the largest variance of a sum of which an aggregate is made, as its expected error has it."""

    def of_sum(formula: Linear) -> Fraction:
        return sum((weight**2 * law.spread for law, weight in plan.noises(formula)), Fraction(0))

    return expected_error(plan, index, of_sum)[0]


def _is_printed(plan: ReleasePlan, numbers: Sequence[int]) -> bool:
    """Say whether queries of some measurements can be printed: what is refused is refused before it is chosen, and
    before anything is charged."""
    try:
        plan.queries(tuple(numbers))
    except Refusal:
        return False
    return True
