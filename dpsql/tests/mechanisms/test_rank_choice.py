"""The score of a choice by rank: its sensitivity and the privacy of what comes out, by enumeration.

All databases of a few rows on a few values are compared with all their neighbours, in the exact law; the score is
computed from the window alone and compared with the definition over all rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest

from dpsql.engine.audit.audit import moved, steps_of, window_of
from dpsql.mechanisms import Laplace, Rank, RankChoice, Window, discrete_laplace, law_of
from dpsql.mechanisms.choice import clamp_of, log_above

VALUES = 4
EPSILON = Fraction(1)
Rows = tuple[tuple[int, int], ...]
"""(value, weight)"""
SHARES = [Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(0), Fraction(1)]


def choice_of(share: Fraction, sensitivity: int, *, clamp: int = 10**9, offset: int = 0) -> RankChoice:
    gamma = EPSILON / (2 * sensitivity)
    return RankChoice(VALUES, 0, share.numerator, share.denominator, offset, clamp, gamma)


def window_over(choice: RankChoice, rows: Rows) -> Window:
    """Return the rows within the clamp, as the printed SQL does."""
    total = sum(weight for _, weight in rows)
    centre = choice.p * total + choice.offset
    found = []
    for value in sorted({value for value, _ in rows}):
        less = sum(weight for other, weight in rows if other < value)
        weight = sum(weight for other, weight in rows if other == value)
        if choice.q * (less + weight) - centre > -choice.clamp and choice.q * less - centre < choice.clamp:
            found.append((value, less, weight, total))
    return window_of(found)


def misses_of(choice: RankChoice, rows: Rows) -> list[int]:
    """Return d of each candidate, by its definition over all rows."""
    centre = choice.p * sum(weight for _, weight in rows) + choice.offset
    found = []
    for candidate in range(choice.candidates):
        less = sum(weight for value, weight in rows if value < candidate)
        upto = sum(weight for value, weight in rows if value <= candidate)
        found.append(min(choice.clamp, max(0, choice.q * less - centre, centre - choice.q * upto)))
    return found


def spread_out(choice: RankChoice, rows: Rows) -> list[int]:
    """Return d of each candidate, from the window."""
    found: list[int] = []
    for end, miss in steps_of(choice, window_over(choice, rows)):
        found += [miss] * (end - len(found))
    return found


def databases(most: int) -> Iterator[tuple[int, ...]]:
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(range(VALUES), size)


def law_over(choice: RankChoice, misses: Sequence[int]) -> list[float]:
    weights = [math.exp(-float(choice.gamma) * miss) for miss in misses]
    return [weight / math.fsum(weights) for weight in weights]


def worst_ratio(choice: RankChoice, here: Rows, there: Rows) -> float:
    pairs = zip(
        law_over(choice, spread_out(choice, here)), law_over(choice, spread_out(choice, there)), strict=True
    )
    return max(abs(math.log(p / q)) for p, q in pairs)


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("clamp", [1, 3, 11, 10**9])
def test_the_window_says_all_that_the_rows_do(share: Fraction, clamp: int) -> None:
    offset = {Fraction(0): 2, Fraction(1): -2}.get(share, 0)
    choice = choice_of(share, 1, clamp=max(clamp, 3 if offset else 1), offset=offset)
    for values in databases(6):
        rows = tuple((value, 1) for value in values)
        assert spread_out(choice, rows) == misses_of(choice, rows), values
        heavy = tuple((value, 1 + 2 * value) for value in values)
        assert spread_out(choice, heavy) == misses_of(choice, heavy), values


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("clamp", [3, 10**9])
def test_one_more_row_moves_the_score_by_its_sensitivity_at_most(share: Fraction, clamp: int) -> None:
    p, q = share.numerator, share.denominator
    sensitivity = max(p, q - p)
    offset = {Fraction(0): 2, Fraction(1): -2}.get(share, 0)
    choice, reached, worst = choice_of(share, sensitivity, clamp=clamp, offset=offset), 0, 0.0
    for values in databases(5):
        here = tuple((value, 1) for value in values)
        for value in range(VALUES):
            there = (*here, (value, 1))
            change = moved(
                steps_of(choice, window_over(choice, here)), steps_of(choice, window_over(choice, there))
            )
            assert change <= sensitivity
            reached = max(reached, change)
            worst = max(worst, worst_ratio(choice, here, there))
    assert reached == min(sensitivity, clamp)
    assert worst <= EPSILON + 1e-12


@pytest.mark.parametrize("share", SHARES, ids=str)
def test_one_replaced_row_moves_the_score_by_q_at_most(share: Fraction) -> None:
    sensitivity = share.denominator
    choice, reached = choice_of(share, sensitivity), 0
    for values in databases(4):
        here = tuple((value, 1) for value in values)
        for index, value in itertools.product(range(len(here)), range(VALUES)):
            there = (*here[:index], (value, 1), *here[index + 1 :])
            assert worst_ratio(choice, here, there) <= EPSILON + 1e-12
            steps = [steps_of(choice, window_over(choice, rows)) for rows in (here, there)]
            reached = max(reached, moved(*steps))
    assert reached == sensitivity


@pytest.mark.parametrize("share", SHARES[:4], ids=str)
def test_a_person_of_many_rows_weighs_no_more_than_they_may(share: Fraction) -> None:
    """R = 2, U = 4: each of t rows weighs 8 div max(t, 2); the rest of the database stays as it is."""
    p, q = share.numerator, share.denominator
    sensitivity = 8 * max(p, q - p)
    choice = choice_of(share, sensitivity)
    for rest in databases(2):
        here = tuple((value, 4) for value in rest)
        for own in databases(4):
            weight = 8 // max(2, len(own)) if own else 0
            there = (*here, *((value, weight) for value in own))
            steps = [steps_of(choice, window_over(choice, rows)) for rows in (here, there)]
            assert moved(*steps) <= sensitivity
            assert worst_ratio(choice, here, there) <= EPSILON + 1e-12


def test_what_would_be_wrong_is_seen() -> None:
    """Half the sensitivity, and q forgotten under replacement at 9 in 10, break the claim: the tests have power."""
    half = RankChoice(VALUES, 0, 1, 2, 0, 10**9, EPSILON)
    assert any(
        worst_ratio(half, rows, (*rows, (0, 1))) > EPSILON
        for values in databases(6)
        if (rows := tuple((value, 1) for value in values))
    )
    share = Fraction(9, 10)
    moving = choice_of(share, 9)
    here = tuple((value, 1) for value in (0, 0, 0, 1))
    assert any(
        moved(*(steps_of(moving, window_over(moving, rows)) for rows in (here, (*here[1:], (value, 1))))) > 9
        for value in range(VALUES)
    )


def test_ties_have_the_ranks_that_they_cover() -> None:
    """Most rows at one value: all fractions that they cover choose it, which a score of ranks alone would not."""
    rows = ((1, 6), (2, 60), (3, 34))
    for share in (Fraction(1, 10), Fraction(1, 2), Fraction(6, 10)):
        choice = choice_of(share, 1)
        misses = spread_out(choice, rows)
        assert misses[2] == 0
        assert min(misses[0], misses[1], misses[3]) > 0


def test_a_window_shows_nothing() -> None:
    window = window_of([(123456, 234567, 345678, 456789)])
    assert repr(window) == str(window) == "Window(…)"


# --- what is known of the rank ------------------------------------------------------------------------------


def test_the_law_is_stored_and_read() -> None:
    for law in (Rank(Fraction(20), 201), Rank(Fraction(7, 3), 2**32 + 1), Rank(Fraction(1, 3), 1)):
        assert law_of(law.text) == law
        assert not law.is_additive
        with pytest.raises(TypeError):
            law.draw(1, None)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            law.tails(np.arange(3))
    assert Laplace(Fraction(3)).is_additive
    for scale, candidates in ((2.5, 3), (Fraction(2), True)):
        with pytest.raises(TypeError):
            Rank(scale, candidates)  # type: ignore[arg-type]
    for text in ("rank", "rank 0 5", "rank 3", "rank 3 0", "rank 2/4 5", "rank 3 5 7", "rank -1 3"):
        with pytest.raises(ValueError, match=r"."):
            law_of(text)


@pytest.mark.parametrize("candidates", [1, 2, 201, 2**32 + 1])
def test_the_bar_is_the_theorem_s(candidates: int) -> None:
    law = Rank(Fraction(20), candidates)
    for beta in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 2**40)):
        exact = 20 * math.log(candidates / beta)
        assert exact - 1e-6 <= law.half_width(beta) < exact + 1 + 1e-6
        assert type(law.half_width(beta)) is int
    for beta in (Fraction(0), Fraction(1), Fraction(1, 2**41)):
        with pytest.raises(ValueError, match="from 2"):
            law.half_width(beta)
        assert law.upper_quantile(Fraction(1, 20)) == law.half_width(Fraction(1, 20)) + 1
    log = math.log(candidates)
    assert float(law.spread) == pytest.approx(400 * (log**2 + 2 * log + 2))


def test_the_spread_bounds_the_mean_square() -> None:
    """Over the worst data: one candidate misses by nothing, all others by the same."""
    for candidates, miss in itertools.product((2, 50, 10_000), (1, 5, 20, 60, 200)):
        bad = (candidates - 1) * math.exp(-miss / 20)
        assert miss**2 * bad / (1 + bad) <= Rank(Fraction(20), candidates).spread


def test_what_is_clamped_hardly_comes_out() -> None:
    for scale, candidates in itertools.product((Fraction(2), Fraction(1000)), (2, 201, 2**32)):
        clamp = clamp_of(scale, candidates)
        assert candidates * math.exp(-clamp / float(scale)) <= 2**-40 * (1 + 1e-9)


def test_logarithms_are_above() -> None:
    for number in (Fraction(1), Fraction(2), Fraction(3, 2), Fraction(10**30, 7)):
        assert abs(float(log_above(number)) - math.log(number)) < 1e-12
        low, high = discrete_laplace.bounds_of_exp(log_above(number), 80)
        assert high < 1 / number * (1 + Fraction(1, 10**25))
        assert low <= 1 / number
