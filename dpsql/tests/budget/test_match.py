from __future__ import annotations

from fractions import Fraction

from dpsql.budget.match import choose_draws, running_draws
from dpsql.mechanisms import Laplace


def F(scale: Fraction | int) -> Laplace:
    return Laplace(Fraction(scale))


def test_the_smallest_scale_wins_and_the_newest_among_equals() -> None:
    assert choose_draws([{1: F(5), 2: F(3), 3: F(3), 4: F(4)}], F(10)) == (3,)


def test_a_scale_above_the_asked_one_never_serves() -> None:
    assert choose_draws([{1: F(10 + Fraction(1, 10**30))}], F(10)) is None
    assert choose_draws([{1: F(10)}], F(10)) == (1,)


def test_one_draw_of_all_measures_goes_before_better_single_ones() -> None:
    assert choose_draws([{1: F(9), 2: F(1)}, {1: F(9)}], F(10)) == (1, 1)


def test_measures_from_different_draws_serve_together() -> None:
    assert choose_draws([{1: F(9)}, {2: F(8)}], F(10)) == (1, 2)
    assert choose_draws([{1: F(9)}, {}], F(10)) is None


def test_waiting_is_for_what_would_become_a_hit() -> None:
    assert running_draws([{}, {1: F(5)}], [{7: F(10)}, {}], F(10)) == {7}
    assert running_draws([{}, {}], [{7: F(10)}, {}], F(10)) == frozenset()
    assert running_draws([{}], [{7: F(11)}], F(10)) == frozenset()
