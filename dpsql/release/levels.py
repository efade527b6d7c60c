"""Levels for sums along a key: a release is drawn by coarser keys too where that makes what is shown more exact.

Such sums are running totals and moving ones.

The charge is what it was, in equal parts for each level; every level is a release of the plan, drawn, verified, charged
and stored like any other, and the estimate reads them all (soundness.md 1.37).

House rules:

1. Which levels are drawn follows from text, policy and the laws of the noise: never from the data, nor from the store.
2. Each level pays for its own sensitivity, where norms hold of it too. No level is free.
3. What is shown is expected to be off by less in all, each number beside what it is without levels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ..errors import Refusal
from ..plan.measures.formulas import Linear
from ..plan.planner import Plan, PrivacyParameters, by_keys
from ..plan.privacy.axes import Partition, refined
from ..plan.privacy.keys import environment_of
from ..plan.release_plan import ReleasePlan
from ..plan.strategies import Level, Running, Strategy, levels_of, running_totals
from ..relation.catalog import Catalog, Scalar
from ..relation.expressions import fields_of
from .consistent import draws_of
from .estimate import Sums, design_of, is_observed
from .run import ReleasedRows

_FEWEST = 16
"""Groups along a key from which on levels are looked for."""
_LOOKED_AT = 16
"""Groups whose sums, and whose own numbers, stand with their error for all."""
_WORTH = 0.98
"""A further level, which is one more query, makes what is shown so much more exact at least."""


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
        levels, names, off, alone = found
        each = [one.loss.divided(1 + len(levels)).added for one in release.measures]
        own = [one.loss.added - len(levels) * part for one, part in zip(release.measures, each, strict=True)]
        if not all(part > 0 for part in (*each, *own)):
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
        releases[number] = release.spending(own)
        releases += [level.spending(each) for level in levels]
    if not strategies:
        return planned
    return replace(planned, releases=tuple(releases), strategies=tuple(strategies), plain=planned)


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
            one.choice is None and is_observed(one.law) and release.family(i, predicate) is not None
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


_Found = tuple[list[ReleasePlan], tuple[str, ...], float, float]
"""Levels, what each grouping is by, and how far a running total is expected to be off: with them, and without."""


def _best(
    release: ReleasePlan,
    running: Running,
    catalog: Catalog,
    privacy: PrivacyParameters,
    beside: Sequence[ReleasePlan],
) -> _Found | None:
    """Return the levels under which what is shown is most exact, where they share the charge with it; None: it is best
    without."""
    number = running.key
    planned = [
        (level, plan)
        for level in levels_of(release.release.keys[number])
        if (plan := _planned(release, number, level, catalog, privacy)) is not None
    ]
    plans = (release, *(plan for _, plan in planned), *(one for one in beside if _ties(one, release, number)))
    partitions = _partitions(plans, number)
    if partitions is None or release.axes is None:
        return None
    order = _order(release.axes[number].values)
    sums = _sums(running, len(order))
    if not sums:
        return None
    spreads = tuple(_spread(plan, min(running.totals)) for plan in plans)
    given = range(1 + len(planned), len(plans))

    def errors(chosen: tuple[int, ...]) -> tuple[float, float] | None:
        shared = len(chosen) if release.is_zcdp else len(chosen) ** 2
        drawn = (*(shared * spreads[i] for i in chosen), *(spreads[i] for i in given))
        return _errors(tuple(partitions[i] for i in (*chosen, *given)), drawn, order, sums)

    alone = errors((0,))
    if alone is None:
        return None
    tried: list[tuple[float, tuple[int, ...], tuple[float, float]]] = [(1.0, (), alone)]
    for count in range(1, 1 + len(planned)):
        for some in itertools.combinations(range(1, 1 + len(planned)), count):
            found = errors((0, *some))
            if found is not None:
                total, group = (
                    one / other if other else 1.0 for one, other in zip(found, alone, strict=True)
                )
                score = (total + group) / 2 if running.shown else total
                tried.append((score / _WORTH**count, some, found))
    _, levels, best = min(tried)
    chosen = [planned[i - 1] for i in levels]
    names = tuple(level.name for level, _ in chosen)
    return ([plan for _, plan in chosen], names, best[0], alone[0]) if chosen else None


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


@lru_cache(maxsize=256)
def _errors(
    partitions: tuple[Partition, ...], spreads: tuple[float, ...], order: tuple[int, ...],
    wanted: tuple[tuple[int, int], ...],
) -> tuple[float, float] | None:  # fmt: skip
    """Return the deviation of sums over the first of some groupings, and of a group of it. `spreads`: the variance of a
    group of each; `order`: the places of the first's groups, along the key; `wanted`: from which to which the sums go.
    """
    own = np.array(partitions[0].groups)
    sums: dict[Sums, float] = {}
    for partition, spread in zip(partitions, spreads, strict=True):
        one = Sums((partition,))
        sums[one] = 1 / (1 / spread + (1 / sums[one] if one in sums else 0))
    design = design_of((len(own),), tuple(sums), tuple(sums.values()))
    if design is None:
        return None
    rank = np.full(partitions[0].size, len(order))
    rank[list(order)] = np.arange(len(order))
    ranks = np.where(own < 0, len(order), rank[own])
    looked_at = np.array(_looked_at(len(order)))
    first, last = np.array(wanted).T[:, :, None]
    totals = ((first <= ranks) & (ranks <= last)).astype(float)
    groups = (ranks[None, :] == looked_at[:, None]).astype(float)
    found = design.variances(np.concatenate([totals, groups]))
    if found is None:
        return None
    total, group = np.split(found, [len(totals)])
    return math.sqrt(total.mean()), math.sqrt(group.mean())
