"""What one unit moves the scores of a choice by rank, by brute force at all fractions, against what the plan claims.

A unit of t rows weighs R·U div max(t, R) with each of them (house rule 2), wherever they stand and in whichever groups;
the rest of the database is there or not, in all kinds of heaps. The score is that of production over all rows.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from dpsql.engine.audit.audit import moved, steps_of, window_of
from dpsql.mechanisms import ATTO, RankChoice, RankSplit
from dpsql.plan.measures import ranks
from dpsql.plan.measures.ranks import RankMeasurement, SplitMeasurement
from dpsql.plan.planner import PrivacyParameters, plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting
from dpsql.tests.laws.planting import plant
from dpsql.tests.plan.planned import CATALOG, bound

SHARES = ("0", "0.01", "0.1", "0.25", "0.4", "0.5", "0.6", "0.75", "0.9", "0.99", "1")
SPLITS = (
    "0.05, 0.1, 0.2",
    "0.1, 0.5, 0.9",
    "0.8, 0.85, 0.97",
    "0, 0.01, 0.02, 0.03, 0.9, 1",
    "0.1, 0.3, 0.5, 0.7",
)
SOURCES = (
    ("age", "FROM person", ""),
    ("days", "FROM visit", ""),
    ("days", "FROM visit", " GROUP BY ward"),
)
"""A row a unit; R rows in one group; the same over several groups."""
WAYS = [
    (Accounting.PURE, False, 1), (Accounting.PURE, True, 2), (Accounting.ZCDP, False, 2), (Accounting.ZCDP, True, 1)
]  # fmt: skip

Heap = tuple[tuple[int, int], ...]
"""(candidate, weight)"""


def planned(call: str, way: tuple[Accounting, bool, int]) -> Iterator[ReleasePlan]:
    """Yield the releases of a call over all sources."""
    accounting, replace_one, together = way
    for column, source, group in SOURCES:
        privacy = PrivacyParameters(
            Fraction(1), Fraction(1, 1000), 1, replace_one, together=together, accounting=accounting
        )
        relation = bound(f"SELECT {call.format(column)} {source}{group}")
        (release,) = plan(relation, replace(CATALOG, case_collation="pg_c_utf8"), privacy).releases
        yield release


@cache
def scores(choice: RankChoice, heap: Heap) -> tuple[tuple[int, int], ...]:
    """Return the misses of all candidates, of a group with these rows."""
    rows: defaultdict[int, int] = defaultdict(int)
    for place, weight in heap:
        rows[place] += weight
    total, less, found = sum(rows.values()), 0, []
    for place, weight in sorted(rows.items()):
        found.append((place, less, weight, total))
        less += weight
    return steps_of(choice, window_of(found))


def units_of(release: ReleasePlan, last: int) -> Iterator[tuple[Heap, ...]]:
    """Yield the rows of one unit by group: few or very many, at either end, in one group or two."""
    measurement, bounding = release.measurements[0], release.bounding
    assert isinstance(measurement, RankMeasurement | SplitMeasurement)
    most, unit = bounding.in_all, measurement.unit
    groups = min(2, bounding.groups) if bounding.grouped and not bounding.per_row else 1
    for rows in (1,) if bounding.per_row else (1, most, 3 * most + 1):
        weight = most * unit // max(most, rows)
        for first, place, other in itertools.product({rows, rows // 2}, (0, last), (0, last)):
            heaps = [((place, weight * first),) if first else (), ((other, weight * (rows - first)),)]
            yield tuple(heaps) if groups == 2 else (heaps[0] + heaps[1],)


def rests_of(choice: RankChoice, weight: int) -> Iterator[Heap]:
    """Yield what others have in a group: nothing, or heaps below, at and above the middle, far inside the clamp."""
    last = choice.candidates - 1
    for parts in itertools.product((0, 4), repeat=3):
        yield tuple(
            (place, weight * part) for place, part in zip((0, last // 2, last), parts, strict=True) if part
        )


def worst_of(release: ReleasePlan, choice: RankChoice, *, replace_one: bool) -> int:
    """Return the most that one unit moves the scores of all groups together: gone, or replaced by another."""
    measurement = release.measurements[0]
    assert isinstance(measurement, RankMeasurement | SplitMeasurement)
    weight = release.bounding.in_all * measurement.unit
    units = list(dict.fromkeys(units_of(release, choice.candidates - 1)))
    found: defaultdict[tuple[Heap, Heap], int] = defaultdict(int)

    def change(here: Heap, there: Heap) -> int:
        """Return the most over what others have in the group."""
        if (here, there) not in found:
            found[here, there] = max(
                moved(scores(choice, (*rest, *here)), scores(choice, (*rest, *there)))
                for rest in rests_of(choice, weight)
            )
        return found[here, there]

    empty: tuple[Heap, ...] = ((),) * len(units[0])
    comes = [empty, *units, *(one[::-1] for one in units)] if replace_one else [empty]
    return max(sum(map(change, one, other)) for one, other in itertools.product(units, comes))


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("share", SHARES)
def test_one_unit_moves_a_score_by_the_claim_and_no_less(
    share: str, way: tuple[Accounting, bool, int]
) -> None:
    _, replace_one, together = way
    for release in planned(f"PERCENTILE_DISC({share}) WITHIN GROUP (ORDER BY {{}})", way):
        measurement, choice = release.measurements[0], release.choices[0]
        assert isinstance(choice, RankChoice)
        worst = together * worst_of(release, choice, replace_one=replace_one)
        assert worst <= measurement.sensitivity
        assert 2 * worst >= measurement.sensitivity  # of ends in two groups, one way each
        assert loss_of(release, [2 * choice.gamma * worst]) <= 1


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("shares", SPLITS)
def test_choices_at_all_depths_cost_what_is_charged(shares: str, way: tuple[Accounting, bool, int]) -> None:
    """At each depth from disjoint parts: all of a unit's weight may stand in the part where it costs most."""
    _, replace_one, together = way
    for release in planned(f"PERCENTILE_DISC(ARRAY[{shares}]) WITHIN GROUP (ORDER BY {{}})", way):
        split = release.choices[0]
        assert isinstance(split, RankSplit)
        ranges: defaultdict[int, Fraction] = defaultdict(Fraction)
        for share, depth in zip(split.between, split.depths, strict=True):
            one = split.choice(share, split.candidates)
            worst = together * worst_of(release, one, replace_one=replace_one)
            ranges[depth] = max(ranges[depth], 2 * one.gamma * worst)
        loss = loss_of(release, list(ranges.values()))
        assert loss <= 1
        assert loss >= Fraction(1, 3)


def loss_of(release: ReleasePlan, ranges: list[Fraction]) -> Fraction:
    """Return what choices of these ranges of log-ratios cost, over what is charged: epsilon adds up, or its square / 8."""
    if release.is_zcdp:
        return sum((one**2 / 8 for one in ranges), Fraction(0)) / Fraction(release.measures[0].rho_atto, ATTO)
    return sum(ranges, Fraction(0)) / release.measures[0].epsilon


ADD = (Accounting.PURE, False, 1)
_ADDED = RankMeasurement.added.fget  # type: ignore[attr-defined]
FAULTS = {
    "weight above alone": (_ADDED, "self.unit * max(p, q - p)", "self.unit * max(p, 1)"),
    "weight below alone": (_ADDED, "self.unit * max(p, q - p)", "self.unit * max(q - p, 1)"),
    "the smaller side": (_ADDED, "self.unit * max(p, q - p)", "self.unit * max(1, min(p, q - p))"),
    "splits: weight above alone": (RankSplit.choice, "max(p, q - p)", "max(p, 1)"),
    "splits: weight below alone": (RankSplit.choice, "max(p, q - p)", "max(q - p, 1)"),
    "one depth for all": (SplitMeasurement.choice, "self.scale(epsilon) * self.depths", "self.scale(epsilon)"),
    "half the noise": (ranks._choice.__wrapped__, "1 / (2 * scale)", "1 / scale"),
}  # fmt: skip


@pytest.mark.parametrize(("function", "old", "new"), FAULTS.values(), ids=FAULTS)
def test_plant(monkeypatch: pytest.MonkeyPatch, function: object, old: str, new: str) -> None:
    caches = (ranks._choice, ranks.split_of)
    plant(monkeypatch, function, (old, new))  # type: ignore[arg-type]
    for one in caches:
        one.cache_clear()
    try:
        with pytest.raises(AssertionError):
            hold_all()
    finally:
        monkeypatch.undo()
        for one in caches:
            one.cache_clear()


def hold_all() -> None:
    for share in SHARES:
        test_one_unit_moves_a_score_by_the_claim_and_no_less(share, ADD)
    for shares in SPLITS:
        test_choices_at_all_depths_cost_what_is_charged(shares, ADD)
