"""How the epsilon of a batch is split over what it draws: for the least total error of its statements.

House rules:

1. From plans alone, as if nothing were stored: so the same file is split alike again, and finds what it has stored.
2. A statement's error is relative: its variance over that of the same number asked alone, the mean over its
   aggregates. Each statement counts the same, and their sum is made as small as it can be (soundness.md 3.13).
3. Shares are cut down: the sum is never above what is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from ..mechanisms import ATTO, NANO, Law
from ..plan.measures.formulas import Chosen, Linear
from ..plan.measures.ranks import Ranked
from ..plan.planner import Plan
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from .price import expected_error
from .run import Place, PlanRunner

_MISSING = Fraction(1, 20)
_PARTS = 10**6
"""A split is in whole millionths of what is split, so that no machine's last digit moves it."""


@dataclass(frozen=True)
class Drawn:
    """A statement of a batch: its plan with what its answer is made of.

    `owed`: what it draws, by place, under the number of its draw; `sources`: by place, the draws of the batch that
    answer the rest. `alone`: its plan asked alone.
    """

    runner: PlanRunner
    owed: Mapping[Place, int]
    sources: Mapping[Place, tuple[int, ...]]
    alone: Plan

    @property
    def draws(self) -> frozenset[int]:
        """All draws of the batch that its answer is made of."""
        return frozenset(self.owed.values()).union(*self.sources.values())

    def entries(self, number: int, index: int) -> tuple[int, ...]:
        """Return the draws that a measurement is of; () where it was stored before."""
        own = self.owed.get((number, index))
        return self.sources.get((number, index), ()) if own is None else (own,)

    def losses(self) -> dict[int, Fraction]:
        """Return what each of its own draws costs, in what adds up."""
        return {
            entry: self.runner.rows[number].plan.losses[index] for (number, index), entry in self.owed.items()
        }

    def actual(self, number: int) -> ReleasePlan:
        """Return a release's plan under the laws of what answers it."""
        rows = self.runner.rows[number]
        if rows.plan.is_empty:
            return rows.plan
        return rows.plan.taking(
            {i: one.law for i, one in rows.measurements.items() if (number, i) not in self.owed}
        )


# --- the split -------------------------------------------------------------------------------------------------


def split(
    statements: Sequence[Drawn], kept: frozenset[int], total: Fraction, most: Fraction, *, is_zcdp: bool
) -> dict[int, Fraction]:
    """Return what each draw is to cost: `kept` ones what they do, the others together `total` at most.

    Noise of loss x has a variance in 1/x² (pure), or 1/x (rho): of `Σ c/x^p` with a fixed `Σ x` the least is where x is
    in proportion to `c^(1/(p+1))`. `most`: of all draws that one statement's answer is made of.
    """
    power = 1 if is_zcdp else 2
    losses = {entry: loss for one in statements for entry, loss in one.losses().items()}
    weights = dict.fromkeys(losses, 0.0)
    for one in statements:
        for entry, error in _weighed(one).items():
            if entry in weights:
                weights[entry] += error * float(losses[entry]) ** power
    roots = {entry: weights[entry] ** (1 / (power + 1)) for entry in losses if entry not in kept}
    whole, unit = sum(roots.values()), ATTO if is_zcdp else NANO
    for entry, root in roots.items():
        share = Fraction(int(root / whole * _PARTS), _PARTS)
        losses[entry] = max(Fraction(int(total * share * unit), unit), Fraction(1, unit))
    for one in statements:
        free = sum((losses[entry] for entry in one.draws - kept), Fraction(0))
        room = most - sum((losses[entry] for entry in one.draws & kept), Fraction(0))
        if free > room:
            losses |= scaled(
                {entry: losses[entry] for entry in one.draws}, kept, room / free, is_zcdp=is_zcdp
            )
    return losses


def scaled(
    losses: Mapping[int, Fraction], kept: frozenset[int], part: Fraction, *, is_zcdp: bool
) -> dict[int, Fraction]:
    """Return a part of what each draw is to cost, cut down, but for `kept` ones."""
    unit = ATTO if is_zcdp else NANO
    return {
        entry: loss if entry in kept else max(Fraction(int(loss * part * unit), unit), Fraction(1, unit))
        for entry, loss in losses.items()
    }


def _weighed(one: Drawn) -> dict[int, float]:
    """Return the weight of each draw of a statement in the split (soundness.md 1.8): its relative error.

    A draw that only finds groups has no error of its own: it gets the weight under which it keeps the share that the
    plan gives it, taken from the draws that are told of its groups.
    """
    found, losses = relative_errors(one), one.losses()
    for number in range(len(one.runner.rows)):
        owed = {entry for (at, _), entry in one.owed.items() if at == number}
        told = owed & found.keys()
        spent, finding = (sum(losses[entry] for entry in some) for some in (told, owed - told))
        beside = sum(found[entry] for entry in told)
        for entry in told if finding else ():
            found[entry] *= float(spent / (spent + finding))
        for entry in owed - told:
            found[entry] = beside * float(losses[entry] / (spent + finding)) if spent else 1.0
    return found


def relative_errors(one: Drawn) -> dict[int, float]:
    """Return a statement's error in parts: how much of it comes of which draw."""
    found: dict[int, float] = {}
    shares = _shares_of(one.alone)
    aggregates = [
        (shares.get(number, 1.0), parts)
        for number in range(len(one.runner.rows))
        for parts in _release_errors(one, number)
    ]
    whole = sum(share for share, _ in aggregates)
    for share, parts in aggregates:
        for entry, error in parts.items():
            found[entry] = found.get(entry, 0.0) + share * error / whole
    return found


def _shares_of(plan: Plan) -> dict[int, float]:
    """Return by release how much of the error of sums along a key comes of its noise, where it is one of their levels:
    under the best shares of the charge that is each one's own (soundness.md 1.37)."""
    found = dict[int, float]()
    for one in plan.strategies:
        losses = {number: sum(plan.releases[number].losses) for number in (one.release, *one.levels)}
        found |= {number: float(loss / sum(losses.values())) for number, loss in losses.items()}
    return found


def _release_errors(one: Drawn, number: int) -> list[dict[int, float]]:
    """Return of each aggregate of a release its variance, over the one that it has alone, by draw."""
    plan, alone, found = one.actual(number), one.alone.releases[number], []
    if plan.is_empty:
        return []
    for index in range(len(plan.formulas)):
        parts = _variances(plan, index)
        reference = sum(_variances(alone, index).values())
        if reference:
            found.append(_by_draw(one, number, {at: part / reference for at, part in parts.items()}))
    return found


def _by_draw(one: Drawn, number: int, parts: Mapping[int, float]) -> dict[int, float]:
    found: dict[int, float] = {}
    for index, part in parts.items():
        entries = one.entries(number, index)
        for entry in entries:
            found[entry] = found.get(entry, 0.0) + part / len(entries)
    return found


def _variances(plan: ReleasePlan, index: int) -> dict[int, float]:
    """Return the variance of an aggregate by measurement; of a chosen value the square of its rank's half-width."""
    formula = plan.formulas[index]
    if isinstance(formula, Chosen):
        if formula.coordinate is None:
            return {}
        number = formula.coordinate.measure
        return {number: float(plan.measures[number].law.half_width(_MISSING)) ** 2}
    seen: list[dict[int, float]] = []

    def half_of(linear: Linear) -> Fraction:
        seen.append(_linear_variances(plan, linear))
        return Fraction(sum(seen[-1].values()))

    expected_error(plan, index, half_of)
    return max(seen, key=lambda parts: sum(parts.values()))


def _linear_variances(plan: ReleasePlan, formula: Linear) -> dict[int, float]:
    return {
        number: sum(
            float(weight) ** 2 * float(law.spread)
            for law, weight in plan.measures[number].law.noises(weights)
        )
        for number, weights in formula.by_measure.items()
    }


# --- the plans -------------------------------------------------------------------------------------------------


def wishing(one: Drawn, losses: Mapping[int, Fraction], statements: Sequence[Drawn]) -> Plan:
    """Return a statement's plan that wishes for what the draws of the batch have at these losses, and no more.

    So looking up finds them, now and whenever the file is run again.
    """
    ratios = _ratios(statements, losses)
    releases = tuple(_wishing(one, number, losses, ratios) for number in range(len(one.runner.rows)))
    return replace(one.runner.plan, releases=releases)


def _ratios(statements: Sequence[Drawn], losses: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """Return by what the spread of each draw changes."""
    found = {}
    for one in statements:
        for (number, index), entry in one.owed.items():
            plan = one.runner.rows[number].plan
            if losses[entry] == plan.losses[index]:
                found[entry] = Fraction(1)
                continue
            others = list(plan.losses)
            others[index] = losses[entry]
            spread = plan.spending(others).measures[index].law.spread
            found[entry] = spread / plan.measures[index].law.spread
    return found


def _wishing(
    one: Drawn, number: int, losses: Mapping[int, Fraction], ratios: Mapping[int, Fraction]
) -> ReleasePlan:
    rows = one.runner.rows[number]
    plan = rows.plan
    if plan.is_empty or not plan.measurements:
        return plan
    wished = list(plan.losses)
    for index in range(len(plan.measurements)):
        entries = one.entries(number, index)
        if (number, index) in one.owed or (entries and isinstance(plan.measurements[index], Ranked)):
            wished[index] = losses[entries[0]]
    for index in range(len(plan.measurements)):
        entries = one.entries(number, index)
        is_rank = bool(entries) and isinstance(plan.measurements[index], Ranked)
        changes = any(ratios[entry] != 1 for entry in entries) or plan.measures[index].is_stored
        if (number, index) not in one.owed and not is_rank and changes:
            worst = max((ratios[entry] for entry in entries), default=Fraction(1))
            wished[index] = _least_wish(plan, index, wished, rows.measurements[index].laws, worst)
    return plan.spending(wished)


def _least_wish(
    plan: ReleasePlan, index: int, wished: Sequence[Fraction], laws: Sequence[Law], ratio: Fraction
) -> Fraction:
    """Return the largest loss under which what a measurement is answered from serves, to nine digits."""
    unit, power = (ATTO, 1.0) if plan.is_zcdp else (NANO, 0.5)
    given = [law.spread * ratio for law in laws]
    loss = max((Fraction(one) for one in wished if one), default=Fraction(1, 10))

    def spreads(loss: Fraction) -> list[Fraction]:
        whole = plan.spending([loss if at == index else one or loss for at, one in enumerate(wished)])
        return [whole.measures[index].law.at(place).spread for place in range(len(given))]

    rate = min(float(has / wants) for has, wants in zip(spreads(loss), given, strict=True) if wants)
    units = max(1, int(float(loss * unit) * rate**power))
    step = 1
    while units > 1 and any(
        has < wants for has, wants in zip(spreads(Fraction(units, unit)), given, strict=True)
    ):
        units, step = max(1, units - step), 2 * step
    return Fraction(units, unit)
