from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.budget.match import MOST_COMBINED, choose_draws, combined_draws, running_draws
from dpsql.mechanisms import Box, Coordinate, Gaussian, Laplace, Law, Truncated


def F(scale: Fraction | int) -> Laplace:
    return Laplace(Fraction(scale))


def hiding(scale: int) -> Truncated:
    """Return a law under which groups are shown: no number of such a draw is combined with another's."""
    return Truncated.within(Fraction(scale), Fraction(1, 10**6))


def box(scale: int, place: int, *reaches: int) -> Coordinate:
    return Coordinate(Box(Fraction(scale), reaches or (1, 5, 25)), place)


def test_the_best_draw_goes_first_and_the_newest_of_equals() -> None:
    assert choose_draws([{1: F(5), 2: F(3), 3: F(3), 4: F(4)}], F(10)) == ((3, 2, 4, 1),)


def test_a_scale_above_the_asked_one_never_serves_alone() -> None:
    assert choose_draws([{1: F(10 + Fraction(1, 10**30))}], F(10)) is None
    assert choose_draws([{1: F(10)}], F(10)) == ((1,),)


def test_precisions_add_up() -> None:
    four = {entry: F(20) for entry in range(1, 5)}
    assert choose_draws([four], F(10)) == ((4, 3, 2, 1),)
    assert choose_draws([{entry: four[entry] for entry in (1, 2, 3)}], F(10)) is None
    parts: dict[int, Law] = {1: Gaussian(Fraction(10)), 2: Gaussian.finely_for_rho(1, Fraction(15, 1000))}
    assert choose_draws([parts], Gaussian(Fraction(5))) == ((2, 1),)
    parts[2] = Gaussian(
        Fraction(5_775, 1_000) + Fraction(1, 2**20) - Fraction(5_775, 1_000) % Fraction(1, 2**20)
    )
    assert choose_draws([parts], Gaussian(Fraction(5))) is None


def test_each_measure_has_draws_of_its_own() -> None:
    assert choose_draws([{1: F(9), 2: F(1)}, {1: F(9)}], F(10)) == ((2, 1), (1,))
    assert choose_draws([{1: F(9)}, {2: F(8)}], F(10)) == ((1,), (2,))
    assert choose_draws([{1: F(9)}, {}], F(10)) is None


def test_what_decides_what_is_shown_is_never_combined() -> None:
    """One draw of all measures goes before better single ones: groups and their measures stay together."""
    known = [{1: hiding(9), 2: hiding(2)}, {1: hiding(9)}]
    assert choose_draws(known, hiding(9)) == ((1,), (1,))
    assert choose_draws([{1: hiding(9), 2: hiding(9)}], hiding(9)) == ((2,),)
    assert choose_draws([{1: hiding(9), 2: hiding(9)}], hiding(8)) is None
    assert combined_draws([{1: hiding(9), 2: hiding(9)}], hiding(9)) is None


def test_so_many_draws_are_combined_and_none_below_a_step() -> None:
    many = {entry: F(20) for entry in range(1, 40)}
    (found,) = choose_draws([many], F(20)) or ((),)
    assert found == tuple(range(39, 39 - MOST_COMBINED, -1))
    assert choose_draws([{1: F(Fraction(1, 2)), 2: F(1)}], F(10)) == ((1,),)


def test_vectors_are_combined_whole() -> None:
    wanted = Box(Fraction(10), (1, 5, 25))
    both: list[dict[int, Law]] = [{1: box(14, place), 2: box(13, place)} for place in range(3)]
    assert choose_draws(both, wanted) == ((2, 1),) * 3
    del both[1][1]
    assert choose_draws(both, wanted) is None  # of the other vector there is a part alone
    another: list[dict[int, Law]] = [{1: box(14, place), 2: box(13, place, 1, 5, 24)} for place in range(3)]
    assert choose_draws(another, wanted) is None
    alone: list[dict[int, Law]] = [{1: box(14, 1), 2: F(130)}]
    assert choose_draws(alone, F(92)) == ((1, 2),)  # of one coordinate by itself
    beside: list[dict[int, Law]] = [{1: box(14, 1), 2: F(130)}, {1: box(14, 1), 2: F(130)}]
    assert choose_draws(beside, F(120)) is None


@pytest.mark.parametrize(("coming", "awaited"), [(10, {7}), (11, set())])
def test_waiting_is_for_what_would_become_a_hit(coming: int, awaited: set[int]) -> None:
    assert running_draws([{}], [{7: F(coming)}], F(10)) == awaited
    assert running_draws([{}, {1: F(5)}], [{7: F(10)}, {}], F(10)) == {7}
    assert running_draws([{}, {}], [{7: F(10)}, {}], F(10)) == frozenset()
    assert running_draws([{1: F(14)}], [{7: F(14)}], F(10)) == {7}
