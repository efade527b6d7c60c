"""The step function of what is spent by slice, held against one number for each period."""

from __future__ import annotations

import itertools
import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dpsql.budget.slices import Steps, added
from dpsql.policy.periods import UNDATED

CHARGES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(1, 9)).map(
        lambda drawn: (drawn[0], drawn[0] + drawn[1], (drawn[2], drawn[2] % 3, drawn[2] ** 2))
    ),
    max_size=30,
)


def by_period(steps: Steps) -> dict[int, tuple[int, int, int]]:
    return {number: sums for first, last, sums in steps for number in range(first, last + 1)}


@given(CHARGES, st.randoms())
def test_runs_are_the_sums_of_each_period_in_any_order(
    charges: list[tuple[int, int, tuple[int, int, int]]], chance: random.Random
) -> None:
    steps, sums = Steps(), dict[int, tuple[int, int, int]]()
    for first, last, more in charges:
        steps.add(first, last, more)
        for number in range(first, last + 1):
            known = sums.get(number, (0, 0, 0))
            sums[number] = known[0] + more[0], known[1] + more[1], known[2] + more[2]
    assert by_period(steps) == sums
    runs = list(steps)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(runs))
    ends = {end for first, last, _ in charges for end in (first, last + 1)}
    assert {end for first, last, _ in runs for end in (first, last + 1)} <= ends
    chance.shuffle(charges)
    again, part = Steps(), Steps()
    for index, charge in enumerate(charges):
        (part if index % 2 else again).add(*charge)
    again.merge(part)
    assert again == steps, "runs do not depend on the order of charges, nor on which of two ledgers had them"


@given(CHARGES, st.integers(0, 45), st.integers(0, 20))
def test_what_meets_an_interval(
    charges: list[tuple[int, int, tuple[int, int, int]]], at: int, more: int
) -> None:
    steps = Steps()
    for charge in charges:
        steps.add(*charge)
    assert steps.meet(at, at + more) == [run for run in steps if run[1] >= at and run[0] <= at + more]
    assert steps.newest == max((last for _, last, _ in charges), default=None)


def test_undated_rows_are_a_slice_of_their_own() -> None:
    steps = Steps()
    steps.add(UNDATED, UNDATED, (1, 0, 1))
    assert steps.newest is None
    steps.add(0, 3, (2, 0, 4))
    assert list(steps) == [(UNDATED, UNDATED, (1, 0, 1)), (0, 3, (2, 0, 4))]
    assert steps.copy() == steps
    assert steps != Steps(list(steps)[:1])


def test_a_charge_splits_at_its_two_ends_alone() -> None:
    assert added([(0, 9, (1, 0, 1))], 3, 5, (2, 0, 2)) == [
        (0, 2, (1, 0, 1)),
        (3, 5, (3, 0, 3)),
        (6, 9, (1, 0, 1)),
    ]
    assert added([], 3, 5, (2, 0, 2)) == [(3, 5, (2, 0, 2))]
    assert added([(4, 4, (1, 0, 1))], 3, 5, (2, 0, 2)) == [
        (3, 3, (2, 0, 2)),
        (4, 4, (3, 0, 3)),
        (5, 5, (2, 0, 2)),
    ]


def test_there_are_never_more_runs_than_periods() -> None:
    chance, steps, sums = random.Random(7), Steps(), Counter[int]()
    for _ in range(5_000):
        first = chance.randrange(365)
        last = min(364, first + chance.randrange(60))
        steps.add(first, last, (1, 0, 1))
        sums.update(range(first, last + 1))
        looked = chance.randrange(365)
        met = steps.meet(looked, looked)
        assert (met[0][2][0] if met else 0) == sums[looked]
    assert len(steps) <= 365
