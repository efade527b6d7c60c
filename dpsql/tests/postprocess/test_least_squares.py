"""Weights of least squares: against the normal equations over the finest groups, and never against what is exact."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpsql.postprocess.least_squares import MOST_CELLS, PARTS, Shape, made_of, rounded, weights_of

A, B, C = b"a", b"b", b"c"
SIZES = {A: 3, B: 2, C: 2}


def shape(keys: str, **filters: set[int]) -> Shape:
    """Return the shape of GROUP BY keys WHERE each of `filters` is one of some places."""
    names = [key.encode() for key in sorted(keys)]
    cells = list(itertools.product(*(range(SIZES[name]) for name in names)))
    groups = tuple((name, tuple(cell[i] for cell in cells)) for i, name in enumerate(names))
    kept = tuple(sorted((key.encode(), frozenset(places)) for key, places in filters.items()))
    return Shape(groups, kept, len(cells))


def rows_of(one: Shape, complete: bool) -> np.ndarray:
    """Return which of the finest groups, those of values that no key lists among them, each group has."""
    ranges = [range(SIZES[key] + (not complete)) for key in SIZES]
    finest = list(itertools.product(*ranges))
    groups, filters = dict(one.groups), dict(one.filters)
    found = np.zeros((one.size, len(finest)))
    for row in range(one.size):
        for column, cell in enumerate(finest):
            has = all(cell[list(SIZES).index(key)] == places[row] for key, places in groups.items())
            found[row, column] = has and all(
                cell[list(SIZES).index(key)] in places for key, places in filters.items()
            )
    return found


HIERARCHIES = [
    [shape(""), shape("a")],
    [shape(""), shape("a"), shape("ab")],
    [shape("a"), shape("b")],
    [shape("ab"), shape("bc"), shape("ac")],
    [shape(""), shape("a"), shape("", a={1}), shape("ab")],
    [shape("b", a={0, 2}), shape("ab"), shape("b")],
    [shape("", a={0, 2}), shape("c", a={0, 2}), shape("ac"), shape("")],
    [shape(""), shape("a"), shape("b"), shape("c"), shape("abc")],
]


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("shapes", HIERARCHIES)
def test_weights_are_those_of_the_normal_equations(shapes: list[Shape], complete: bool) -> None:
    """Where rows may have values that no key lists, those are unknowns as well."""
    spreads = [200.0, 50.0, 800.0, 3.0, 17.0][: len(shapes)]
    whole = tuple(sorted(SIZES.items())) if complete else ()
    design = np.concatenate([rows_of(one, complete) for one in shapes])
    variances = np.repeat(spreads, [one.size for one in shapes])
    scaled = design / np.sqrt(variances)[:, None]
    expected = design @ np.linalg.pinv(scaled) / np.sqrt(variances)
    found = weights_of(tuple(shapes), tuple(spreads), whole)
    fitted = np.eye(len(design)) if found is None else found.fitted
    assert np.allclose(fitted, expected, atol=1e-7)
    if found is None:
        return
    assert not np.any(found.ties @ design), "a difference has something of what is exact"
    assert np.all((fitted**2) @ variances <= variances * (1 + 1e-9))


@pytest.mark.parametrize("shapes", HIERARCHIES)
def test_what_agrees_stays(shapes: list[Shape]) -> None:
    """Whatever is exact comes through to the last digit, however large."""
    rng = np.random.default_rng(5)
    finest = [int(one) for one in rng.integers(0, 2**60, 3 * 2 * 2)]
    numbers = [
        sum(int(has) * one for has, one in zip(row, finest, strict=True)) * PARTS
        for each in shapes
        for row in rows_of(each, True)
    ]
    found = weights_of(tuple(shapes), (1.0,) * len(shapes), tuple(sorted(SIZES.items())))
    assert found is not None
    assert found.apply(numbers) == numbers


def test_what_makes_a_group_up() -> None:
    whole = tuple(sorted(SIZES.items()))
    assert made_of(shape(""), shape("a"), whole) == [[0, 1, 2]]
    assert made_of(shape(""), shape("a"), ()) is None
    assert made_of(shape("b"), shape("ab"), whole) == [[0, 2, 4], [1, 3, 5]]
    assert made_of(shape("", a={1, 2}), shape("ab"), whole) == [[2, 3, 4, 5]]
    assert made_of(shape("", a={1, 2}), shape("ab"), ((A, 3),)) is None
    assert made_of(shape("ab"), shape("a"), whole) is None
    assert made_of(shape("a"), shape("a", b={0}), whole) is None
    assert made_of(shape("a"), shape("a", b={0, 1}), whole) == [[0], [1], [2]]


def test_too_many_numbers_are_left_as_they_are() -> None:
    def many(size: int) -> tuple[Shape, ...]:
        return Shape((), (), 1), Shape(((A, tuple(range(size))),), (), size)

    assert weights_of(many(MOST_CELLS - 1), (1.0, 1.0), ((A, MOST_CELLS - 1),)) is not None
    assert weights_of(many(MOST_CELLS), (1.0, 1.0), ((A, MOST_CELLS),)) is None


def test_rounding() -> None:
    half = PARTS // 2
    assert rounded([half, -half, half + 1, 3 * half], [0, 0, 0, 1]) == [0, 0, 1, 1]
