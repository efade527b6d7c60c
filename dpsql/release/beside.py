"""A question of which a part is stored under other measures: only what is missing is measured, with all of epsilon.

A count that was drawn for itself stands beside a sum or an average of the same rows; a pair that was drawn for an
average gives the sum.

House rules (soundness.md 3.8):

1. From text, policy, settings and what is stored, which is noisy: never from data. Fixed before the charge.
2. No aggregate has a wider expected bar than asked alone, and the charge is no more.
3. Groups that are known beforehand, and no statement of intermediate results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from ..budget import StoredDraws
from ..errors import Refusal
from ..mechanisms import Law, half_width_of
from ..plan.measures.formulas import Chosen, Linear
from ..plan.planner import Plan, other_measures
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from .finer import Finer, Source, finest, sources_of
from .price import expected_error, reads_each_alone
from .released import Groups
from .run import ReleasedRows, assemble

__all__ = ["Beside", "find_beside"]


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
    if plan.intermediates or store.is_empty:
        return None
    found = _Found(store, store.epoch, not reads_each_alone(plan))
    releases = list(plan.releases)
    taken: dict[tuple[int, int], Finer] = {}
    for number, rows in enumerate(known):
        if rows.groups is None or rows.plan.groups is None or rows.plan.is_empty or rows.is_complete:
            continue
        if rows.plan.selection is not None:
            continue
        best = _best(rows, found, level)
        if best is not None:
            releases[number], measurements = best
            taken |= {(number, index): measurement for index, measurement in measurements.items()}
    return Beside(replace(plan, releases=tuple(releases)), taken) if taken else None


_SAID = "parts of this answer are from earlier ones; SET dpsql.reuse = off measures all of it anew"


class _Found:
    """What the store has of measurements, each looked up once; all of it is of one epoch. `is_summed`: see
    `find_finer`.
    """

    def __init__(self, store: StoredDraws, epoch: int, is_summed: bool) -> None:
        self._store, self._epoch, self._is_summed = store, epoch, is_summed
        self._sources: dict[tuple[bytes, ...], list[Source]] = {}
        """By its measures what groupings say of a measurement, under whatever noise."""
        self._known: dict[tuple[tuple[bytes, ...], Law], Finer | None] = {}

    def of(self, plan: ReleasePlan, index: int, measures: tuple[bytes, ...], groups: Groups) -> Finer | None:
        """Return a measurement that is stored with no more noise than the plan's, or that a stored grouping has."""
        law = plan.measures[index].law
        if (measures, law) not in self._known:
            draws = self._store.lookup(measures, law)
            self._known[measures, law] = (
                self._told(plan, index, measures, groups)
                if draws is None
                else Finer(assemble(measures, draws, plan.axes), self._epoch, _SAID)
            )
        return self._known[measures, law]

    def _told(
        self, plan: ReleasePlan, index: int, measures: tuple[bytes, ...], groups: Groups
    ) -> Finer | None:
        if measures not in self._sources:
            # the epoch is looked at before the groupings are, which may be of a later one
            is_same = self._store.epoch == self._epoch
            self._sources[measures] = sources_of(plan, index, groups, self._store) if is_same else []
        found = self._sources[measures]
        return finest(plan, index, self._store, found, self._epoch, is_summed=self._is_summed)


def _best(rows: ReleasedRows, found: _Found, level: Fraction) -> tuple[ReleasePlan, dict[int, Finer]] | None:
    """Return the plan of the lowest charge, then the smallest errors; None where that is the release's own."""
    own = rows.plan
    assert rows.groups is not None
    charge = sum((loss for i, loss in enumerate(own.losses) if i not in rows.measurements), Fraction(0))
    best, least = None, (charge, Fraction(len(own.formulas)))
    for other, measurements in _stored(own, rows.groups, found):
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


def _stored(
    own: ReleasePlan, groups: Groups, found: _Found
) -> Iterator[tuple[ReleasePlan, dict[int, Finer]]]:
    """Yield the plans by other measurements with those that are stored: at all of epsilon each, and at a share of it.

    A measurement that was drawn at a share of epsilon answers the same question again, but may be too coarse for
    another.
    """
    for other in other_measures(own):
        relation, measurements = other.salted(b""), dict[int, Finer]()
        keys = [other.measure_keys(i, relation, b"") for i in range(len(other.measurements))]
        for part in dict.fromkeys((1, len(other.measurements))):
            probe, before = other.divided(part), measurements
            if probe is None:
                break
            every = {i: found.of(probe, i, measures, groups) for i, measures in enumerate(keys)}
            measurements = {
                index: measurement for index, measurement in every.items() if measurement is not None
            }
            if measurements.keys() > before.keys():
                yield other, measurements


def _taking(other: ReleasePlan, measurements: dict[int, Finer], parts: int) -> ReleasePlan | None:
    """Return a plan that takes some measurements, and the rest at one of so many parts of epsilon each; None: it cannot
    be carried out."""
    shared = other.divided(parts) if len(measurements) < len(other.measures) else other
    if shared is None:
        return None
    plan = shared.taking({i: found.measurement.law for i, found in measurements.items()})
    try:
        plan.queries(plan.fresh)  # printing may refuse: before anything is charged
    except Refusal:
        return None
    return plan


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
