"""Five years of a dashboard and of questions, month by month: what is refused with one total, and with one a month.

Through the filter and the sums alone: charges as statements over these months make them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

import pytest

from dpsql.budget import Promise, Status, Steps
from dpsql.budget.claim import Charge
from dpsql.budget.filter import Piece, refuse_over_slices
from dpsql.budget.slices import added
from dpsql.errors import BudgetExhausted
from dpsql.mechanisms import rho_within
from dpsql.policy import Accounting

from .samples import BY_MONTH, EPSILON, MARCH

MONTHS, TILES, QUESTIONS = 60, 8, 20
TENTH = EPSILON // 10
PROMISE: Promise = BY_MONTH
RHO = rho_within(Fraction(10), Fraction(5, 10**7))


@dataclass
class Outcome:
    """What was refused in five years: from which month on, of the tiles, of all."""

    first: int | None = None
    tiles: int = 0
    all: int = 0


def live(status: Status, *, is_sliced: bool, by_month: bool) -> Outcome:
    """Ask as a dashboard and its people do; `by_month`: the draws of closed months are stored, each new one is charged.

    What is of all data together is of one slice that never ends.
    """
    chance, outcome, steps, charge = random.Random(60), Outcome(), Steps(), Charge.pure(TENTH)
    sums = charge.epsilon_nano, 0, charge.rho_atto
    for month in range(MONTHS):
        newest = MARCH + month
        asked = [(newest if by_month else newest - 11, newest, True) for _ in range(TILES)]
        for _ in range(QUESTIONS):
            length = chance.choices([1, 3, 12, month + 12], [50, 30, 15, 5])[0]
            asked.append((newest - length + 1, newest, False))
        for first, last, is_tile in asked:
            run = (first, last) if is_sliced else (MARCH, MARCH)
            cover = added(steps.meet(*run), *run, (0, 0, 0))
            pieces = [
                Piece(a, b, spent, (0, 0, 0), sums) for a, b, spent in cover if run[0] <= a <= b <= run[1]
            ]
            try:
                refuse_over_slices(status, pieces, charge, PROMISE, "ordered_at")
            except BudgetExhausted:
                outcome.first = month + 1 if outcome.first is None else outcome.first
                outcome.tiles += is_tile
                outcome.all += 1
            else:
                steps.add(*run, sums)
    return outcome


@pytest.mark.parametrize(
    ("accounting", "is_sliced", "by_month", "first", "tiles", "refused"),
    [
        (Accounting.PURE, False, False, (4, 4), (440, 460), (1_580, 1_580)),
        (Accounting.PURE, True, False, (5, 9), (120, 300), (200, 480)),
        (Accounting.PURE, True, True, (15, 60), (0, 40), (1, 70)),
        (Accounting.ZCDP, False, False, (11, 11), (370, 400), (1_385, 1_385)),
        (Accounting.ZCDP, True, False, None, (0, 0), (0, 0)),
        (Accounting.ZCDP, True, True, None, (0, 0), (0, 0)),
    ],
)  # fmt: skip
def test_a_budget_for_each_month_lives_as_long_as_the_data(
    accounting: Accounting,
    is_sliced: bool,
    by_month: bool,
    first: tuple[int, int] | None,
    tiles: tuple[int, int],
    refused: tuple[int, int],
) -> None:
    status = Status(0, 10 * EPSILON, 0, 0, 0, 0, None, 1, accounting=accounting, rho_cap_atto=RHO)
    outcome = live(status, is_sliced=is_sliced, by_month=by_month)
    print(accounting.value, is_sliced, by_month, outcome)
    assert (outcome.first is None) is (first is None)
    if first is not None and outcome.first is not None:
        assert first[0] <= outcome.first <= first[1]
    assert tiles[0] <= outcome.tiles <= tiles[1]
    assert refused[0] <= outcome.all <= refused[1]
