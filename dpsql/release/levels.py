"""Levels for sums along a key: a release is drawn by coarser keys too where that makes what is shown more exact.

Such sums are running totals and moving ones.

The charge is what it was, in parts; every level is a release of the plan, drawn, verified, charged and stored like any
other, and the estimate reads them all (soundness.md 1.37).

House rules:

1. Which levels are drawn, and for how much each, follows from text, policy and the laws of the noise: never from the
   data, nor from the store.
2. Each level pays for its own sensitivity, where norms hold of it too. No level is free.
3. What is shown is expected to be off by less in all, each number beside what it is without levels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from ..errors import Refusal
from ..mechanisms import ATTO, NANO
from ..plan.measures.formulas import Linear
from ..plan.measures.measurements import Loss
from ..plan.planner import Plan, PrivacyParameters, by_keys
from ..plan.privacy.axes import Partition, refined
from ..plan.privacy.keys import environment_of
from ..plan.release_plan import ReleasePlan
from ..plan.strategies import Level, Running, Strategy, levels_of, running_totals
from ..records import dataclass
from ..relation.catalog import Catalog, Scalar
from ..relation.expressions import fields_of
from .consistent import draws_of
from .estimate import Sums, design_of, is_numbers, is_observed
from .released import Array
from .run import ReleasedRows

_FEWEST = 16
"""Groups along a key from which on levels are looked for."""
_MOST_SUMMED = 400
"""Groups along a key up to which their sums may be drawn by square root: each number beside such a draw is of a kind of
its own, and a table of it with some more shapes is to be within `MOST_FORMS` (`estimate.py`)."""
_LOOKED_AT = 16
"""Groups whose sums, and whose own numbers, stand with their error for all."""
_WORTH = 0.98
"""A further level, which is one more query, makes what is shown so much more exact at least."""
_PARTS = 1000
"""A level's share is a whole number of so many parts, so that no machine's last digit moves it."""
_STEPS = 4
"""Times that the shares of all levels are made better; half as often again where one of them is left out."""


def with_levels(planned: Plan, catalog: Catalog, beside: Sequence[ReleasePlan] = ()) -> Plan:
    """Return a plan in which sums along a key are drawn by coarser groupings too, where that pays; else the same.

    `beside`: what is drawn with it anyway, by the other statements of a batch.
    """
    if planned.intermediates:
        return planned
    asked = running_totals(planned.root)
    releases, strategies = list(planned.releases), list[Strategy]()
    for number, release in enumerate(planned.releases):
        running = asked.get(release.release)
        if running is None or not _may_have_levels(release, running):
            continue
        found = _best(release, running, catalog, planned.privacy, beside)
        if found is None:
            continue
        levels, names, shares, off, alone = found
        if not levels:
            key = release.release.names[running.key]
            strategies.append(Strategy(number, (), key, (), off, alone, _said_of(running)))
            releases[number] = release.summed()
            continue
        each = [[_part(one.loss, share) for one in release.measures] for share in shares]
        own = [one.loss.added - sum(parts) for one, *parts in zip(release.measures, *each, strict=True)]
        if not all(part > 0 for parts in (*each, own) for part in parts):
            continue
        spent = [one.spending(parts) for one, parts in zip((release, *levels), (own, *each), strict=True)]
        if not all(is_observed(one.law) for plan in spent for one in plan.measures):
            continue
        strategies.append(
            Strategy(
                number,
                tuple(range(len(releases), len(releases) + len(levels))),
                release.release.names[running.key],
                names,
                off,
                alone,
                _said_of(running),
            )
        )
        releases[number], *more = spent
        releases += more
    if not strategies:
        return planned
    return replace(planned, releases=tuple(releases), strategies=tuple(strategies), plain=planned)


def _part(loss: Loss, share: Fraction) -> Fraction:
    """Return a share of a loss, cut down to 1e-9 of epsilon or 1e-18 of rho."""
    unit = NANO if loss.rho is None else ATTO
    return Fraction(int(loss.added * share * unit), unit)


def _said_of(running: Running) -> str:
    """Return in words which sums are shown."""
    kinds = {
        "running totals" if math.isinf(first) or math.isinf(last) else "moving sums"
        for first, last in running.spans
    }
    return " and ".join(sorted(kinds, reverse=True))


def _may_have_levels(release: ReleasePlan, running: Running) -> bool:
    """Say whether all that a release measures are numbers with noise of their own, of complete groups."""
    axes, predicate = release.axes, release.release.rows.predicate
    return (
        axes is not None
        and len(axes[running.key].values) >= _FEWEST
        and all(isinstance(release.formulas[i], Linear) for i in running.totals)
        and all(
            one.choice is None and is_numbers(one.law) and release.family(i, predicate) is not None
            for i, one in enumerate(release.measures)
        )
    )


def are_told(planned: Plan, rows: Sequence[ReleasedRows]) -> bool:
    """Say whether what a plan's releases read of the store holds all that was drawn of their levels, and there are no
    others: then they agree as they are."""
    read = {one.release: one.levels for one in planned.strategies}
    return (
        bool(read)
        and len(planned.releases) == len({*planned.levels, *read})
        and all(
            index in rows[number].fitted and draws_of(rows[level], index) <= draws_of(rows[number], index)
            for number, levels in read.items()
            for level in levels
            for index in range(len(planned.releases[number].measurements))
        )
    )


_Found = tuple[list[ReleasePlan], tuple[str, ...], list[Fraction], float, float]
"""Levels, none where sums are drawn by square root, what each grouping is by, its share of the charge, and how far a
running total is expected to be off: with them, and without."""


def _best(
    release: ReleasePlan,
    running: Running,
    catalog: Catalog,
    privacy: PrivacyParameters,
    beside: Sequence[ReleasePlan],
) -> _Found | None:
    """Return the levels under which what is shown is most exact, where they share the charge with it, or none of
    running sums by square root; None: it is best without either."""
    number = running.key
    planned = [
        (level, plan)
        for level in levels_of(release.release.keys[number])
        if (plan := _planned(release, number, level, catalog, privacy)) is not None
    ]
    tied = [one for one in beside if _ties(one, release, number)]
    plans = (release, *(plan for _, plan in planned), *tied)
    partitions = _partitions(plans, number)
    if partitions is None or release.axes is None:
        return None
    order = _order(release.axes[number].values)
    sums = _sums(running, len(order))
    if not sums:
        return None
    is_summable = release.may_be_summed and len(order) <= _MOST_SUMMED
    expected = _Expected(
        partitions,
        tuple(_spread(plan, min(running.totals)) for plan in plans),
        len(planned),
        order,
        sums,
        1 if release.is_zcdp else 2,
        bool(running.shown),
        _by_root(release, min(running.totals)) if is_summable and not tied else None,
    )
    best = _best_of(expected)
    if best is None:
        return None
    shares, off, alone = best
    chosen = [planned[number - 1] for number in shares]
    return (
        [plan for _, plan in chosen],
        tuple(level.name for level, _ in chosen),
        [*shares.values()],
        off,
        alone,
    )


def _ties(one: ReleasePlan, release: ReleasePlan, number: int) -> bool:
    """Say whether a release is of the same numbers as another, by the same keys, but for one that reads the same column
    or, where that is the only one, is not there."""
    own, keys, predicate = release.release.keys, one.release.keys, release.release.rows.predicate
    if one.family(0, predicate) != release.family(0, predicate) or one.release.rows != release.release.rows:
        return False
    if one.release.aggregates != release.release.aggregates or not all(
        isinstance(formula, Linear) for formula in one.formulas
    ):
        return False
    if not keys:
        return len(own) == 1
    return (
        one.axes is not None
        and len(keys) == len(own)
        and all(a == b for i, (a, b) in enumerate(zip(keys, own, strict=True)) if i != number)
        and fields_of(keys[number]) == fields_of(own[number])
    )


def _planned(
    release: ReleasePlan, number: int, level: Level, catalog: Catalog, privacy: PrivacyParameters
) -> ReleasePlan | None:
    """Return a release by a level's key in place of its own; None: it is no coarser grouping of the same numbers."""
    own, keys = release.release.keys, list(release.release.keys)
    keys[number] = level.key
    try:
        found = by_keys(release, tuple(keys), catalog, privacy)
    except Refusal:
        return None
    predicate = release.release.rows.predicate
    if found is None or found.axes is None or release.axes is None or level.key in own:
        return None
    is_coarser = len(found.axes[number].values) < len(release.axes[number].values)
    families = ((one.family(i, predicate) for i in range(len(one.measurements))) for one in (release, found))
    return found if is_coarser and all(a == b for a, b in zip(*families, strict=True)) else None


def _partitions(plans: Sequence[ReleasePlan], number: int) -> tuple[Partition, ...] | None:
    """Return one key of several releases as partitions of the atoms of its column; None: it is not known how."""
    rows = plans[0].release.rows
    keyed = [(plan.release.keys[number], plan.axes[number]) for plan in plans if plan.axes is not None]
    env = environment_of(rows.columns, rows.predicate)
    places = [(axis.values, axis.believed) for _, axis in keyed]
    found = refined([key for key, _ in keyed], places, env)
    if found is None:
        return None
    known = iter(found)
    whole = Partition.whole(len(found[0].groups))
    return tuple(whole if plan.axes is None else next(known) for plan in plans)


def _spread(plan: ReleasePlan, aggregate: int) -> float:
    """Return the variance of an aggregate of a group."""
    formula = plan.formulas[aggregate]
    assert isinstance(formula, Linear)
    return float(sum((weight**2 * law.spread for law, weight in plan.noises(formula)), Fraction(0)))


def _by_root(release: ReleasePlan, aggregate: int) -> float:
    """Return the variance of each running sum of an aggregate, drawn by square root."""
    formula, summed = release.formulas[aggregate], release.summed()
    assert isinstance(formula, Linear)
    parts = ((summed.measures[number].law.scale, weights) for number, weights in formula.by_measure.items())
    return float(
        sum((scale**2 * sum(one**2 for one in weights.values()) for scale, weights in parts), Fraction(0))
    )


def _looked_at(count: int) -> list[int]:
    """Return the groups, by their number in the key's order, that stand for all of so many."""
    return [int(i) for i in np.unique(np.linspace(0, count - 1, min(_LOOKED_AT, count)).round())]


def _sums(running: Running, count: int) -> tuple[tuple[int, int], ...]:
    """Return the sums that stand for all that are shown of so many groups: from which to which, by their numbers along
    the key."""
    found = (
        (int(max(0, i + start)), int(min(count - 1, i + end)))
        for start, end in sorted(running.spans)
        for i in _looked_at(count)
    )
    return tuple((start, end) for start, end in found if start <= end)


def _order(values: Sequence[Scalar]) -> tuple[int, ...]:
    """Return the places of a key's values in ascending order, NULL last."""
    known = [i for i, value in enumerate(values) if value is not None]
    return (*sorted(known, key=lambda i: values[i]), *(i for i in range(len(values)) if values[i] is None))  # type: ignore[return-value,arg-type]


@dataclass(frozen=True)
class _Expected:
    """How far off sums along a key are expected to be. `partitions` and `spreads`: of groupings with all of the charge,
    the release's own first, then `levels` that may share it, then those that are drawn whatever is chosen and paid for
    elsewhere, and the variance of a group of each; `order`: the places of the own groups, along the key; `sums`: from
    which to which they go; `power`: of the loss, that variances fall with; `is_shown`: groups are, too; `by_root`: the
    variance of running sums by square root in place of own groups and levels, where nothing else is drawn, None: they
    may not be.
    """

    partitions: tuple[Partition, ...]
    spreads: tuple[float, ...]
    levels: int
    order: tuple[int, ...]
    sums: tuple[tuple[int, int], ...]
    power: int
    is_shown: bool
    by_root: float | None

    @cached_property
    def _weights(self) -> Array:
        """Sums, then groups that stand for all, shape (sums and groups, atoms)."""
        own, count = np.array(self.partitions[0].groups), len(self.order)
        rank = np.full(self.partitions[0].size, count)
        rank[list(self.order)] = np.arange(count)
        ranks = np.where(own < 0, count, rank[own])
        first, last = np.array(self.sums).T[:, :, None]
        totals = ((first <= ranks) & (ranks <= last)).astype(float)
        groups = (ranks[None, :] == np.array(_looked_at(count))[:, None]).astype(float)
        return np.concatenate([totals, groups])

    def variances(self, shares: Mapping[int, float]) -> dict[int, Array] | None:
        """Return the mean variance of a sum, and of a group, shape (2,), by what comes of which grouping, where some
        share the charge."""
        given = range(1 + self.levels, len(self.spreads))
        drawn = {i: share**self.power / self.spreads[i] for i, share in shares.items()}
        drawn |= {i: 1 / self.spreads[i] for i in given}
        precisions: dict[Sums, float] = {}
        for i, precision in drawn.items():
            one = Sums((self.partitions[i],))
            precisions[one] = precisions.get(one, 0.0) + precision
        spreads = tuple(1 / precision for precision in precisions.values())
        design = design_of((len(self.partitions[0].groups),), tuple(precisions), spreads)
        found = None if design is None else design.variances(self._weights)
        if found is None:
            return None
        whole = dict(zip(precisions, found, strict=True))
        parts = {}
        for i, precision in drawn.items():
            one = Sums((self.partitions[i],))
            total, group = np.split(whole[one] * (precision / precisions[one]), [len(self.sums)])
            parts[i] = np.array([total.mean(), group.mean()])
        return parts

    def deviations(self, shares: Mapping[int, float]) -> Array | None:
        """Return the deviation of a sum, and of a group, shape (2,)."""
        found = self.variances(shares)
        return None if found is None else np.sqrt(np.array(list(found.values())).sum(axis=0))

    def summed(self) -> Array | None:
        """Return the same where running sums by square root have all of the charge; None: that is not known."""
        if self.by_root is None:
            return None
        drawn = (Sums((self.partitions[0],), by_root=True),)
        design = design_of((len(self.partitions[0].groups),), drawn, (self.by_root,))
        found = None if design is None else design.variances(self._weights)
        if found is None:
            return None
        total, group = np.split(found.sum(axis=0), [len(self.sums)])
        return np.asarray(np.sqrt([total.mean(), group.mean()]))

    def score(self, deviations: Array, alone: Array) -> float:
        """Return how far off what is shown is, over what it is without levels."""
        ratios = deviations / alone
        return float(ratios.mean() if self.is_shown else ratios[0])

    def improved(self, shares: Mapping[int, float], alone: Array, steps: int) -> Mapping[int, float] | None:
        """Return shares under which what is shown is more exact.

        Under the weights that the estimate has, a variance is `Σ a_i/x_i^p`, the least where `x_i^(p+1)` is in
        proportion to `a_i`; with these shares the best weights are better still.
        """
        for _ in range(steps):
            found = self.variances(shares)
            if found is None:
                return None
            rates = 1 / (np.sqrt(np.array(list(found.values())).sum(axis=0)) * alone)
            rates[1] *= self.is_shown
            power = self.power
            roots = {
                i: float((found[i] @ rates) * share**power) ** (1 / (power + 1))
                for i, share in shares.items()
            }
            shares = {i: root / sum(roots.values()) for i, root in roots.items()}
        return shares


@lru_cache(maxsize=64)
def _best_of(expected: _Expected) -> tuple[Mapping[int, Fraction], float, float] | None:
    """Return the shares of levels under which what is shown is most exact, none where it is so by sums by square root,
    and the deviation of a sum, with them and without; None: it is best without either."""
    levels, summed, alone = _shares_of(expected), expected.summed(), expected.deviations({0: 1.0})
    if alone is None:
        return None
    least = 1.0 if levels is None else expected.score(levels[1], alone) / _WORTH ** len(levels[0])
    if summed is not None and expected.score(summed, alone) < least:
        return {}, float(summed[0]), float(alone[0])
    return None if levels is None else (levels[0], float(levels[1][0]), float(alone[0]))


def _shares_of(expected: _Expected) -> tuple[Mapping[int, Fraction], Array] | None:
    """Return the shares of levels under which what is shown is most exact, and how far off it is; None: it is best
    without.

    Begun with all levels, the one that has the least is left out as long as it is not worth its query.
    """
    alone = expected.deviations({0: 1.0})
    equal = dict.fromkeys(range(1 + expected.levels), 1 / (1 + expected.levels))
    shares = None if alone is None else expected.improved(equal, alone, _STEPS)
    if alone is None or shares is None:
        return None
    off = expected.deviations(shares)
    while off is not None and len(shares) > 1:
        least = min((i for i in shares if i), key=shares.__getitem__)
        left = sum(share for i, share in shares.items() if i != least)
        fewer = {i: share / left for i, share in shares.items() if i != least}
        better = expected.improved(fewer, alone, _STEPS // 2)
        without = None if better is None else expected.deviations(better)
        if better is None or without is None:
            break
        if expected.score(off, alone) < _WORTH * expected.score(without, alone):
            break
        shares, off = better, without
    parts = {i: Fraction(int(_PARTS * share), _PARTS) for i, share in shares.items() if i}
    rest = 1 - sum(parts.values())
    if not parts or rest <= 0 or not all(parts.values()):
        return None
    off = expected.deviations({0: float(rest), **{i: float(part) for i, part in parts.items()}})
    return None if off is None else (parts, off)
