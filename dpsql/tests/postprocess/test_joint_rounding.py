"""One whole-number table: every sum of its cells is near what it was before, and sums add up whatever they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpsql.postprocess.joint_rounding import MOST_ATOMS, Cells, cells_of, made_of_cells
from dpsql.postprocess.least_squares import PARTS, Shape

A, B, C = b"a", b"b", b"c"
SIZES = {A: 4, B: 3, C: 2}
WHOLE = tuple(sorted(SIZES.items()))


def shape(keys: str, **filters: set[int]) -> Shape:
    names = [key.encode() for key in sorted(keys)]
    found = list(itertools.product(*(range(SIZES[name]) for name in names)))
    groups = tuple((name, tuple(cell[i] for cell in found)) for i, name in enumerate(names))
    kept = tuple(sorted((key.encode(), frozenset(places)) for key, places in filters.items()))
    return Shape(groups, kept, len(found))


SHAPES = (
    shape("ab"), shape("bc"), shape("ac"), shape("a"), shape(""), shape("b", a={1, 2}), shape("", a={0, 2}),
    shape("c", a={0, 1}, b={2}),
)  # fmt: skip


@pytest.mark.parametrize("unit", [1, 1024])
@pytest.mark.parametrize("large", [0, 2**60])
def test_every_sum_is_near_and_of_whole_units(unit: int, large: int) -> None:
    rng = np.random.default_rng(7)
    cells = Cells((A, B, C), (4, 3, 2))
    for _ in range(40):
        whole = [int(one) + large for one in rng.integers(-5000, 5000, cells.count)]
        rest = rng.normal(0, 30, cells.count)
        found = cells.rounded(whole, rest, unit)
        assert all(one % unit == 0 for one in found)
        for one in SHAPES:
            for group, corners in zip(cells.of(one), cells.corners(one), strict=True):
                before = sum(whole[i] for i in group)
                off = sum(found[i] for i in group) - before - float(rest[group].sum())
                assert abs(off) <= corners * unit / 2 + 1e-6
    assert cells.corners(shape("")) == [1]
    assert max(cells.corners(shape("ab"))) == 4
    assert cells.corners(shape("", a={0, 2})) == [3]


def test_replicas_are_rounded_as_numbers_are() -> None:
    rng = np.random.default_rng(3)
    cells = Cells((A, B), (4, 3))
    noise = rng.normal(0, 5, (12, 50))
    found = cells.rounded_noise(noise, 1)
    for draw in range(50):
        assert found[:, draw].tolist() == cells.rounded([0] * 12, noise[:, draw], 1)


def test_numbers_that_agree_are_sums_of_one_table() -> None:
    """Whatever is exact comes through to the last digit, and what is noise to half a step for each running total."""
    rng = np.random.default_rng(5)
    made = made_of_cells(SHAPES, WHOLE)
    assert made is not None
    table = [
        int(one) * PARTS + int(part)
        for one, part in zip(rng.integers(0, 2**60, 24), rng.integers(0, PARTS, 24), strict=True)
    ]
    exact = [sum(table[i] // PARTS * PARTS for i in group) for group in made.of]
    found = made.rounded(exact, PARTS, 1)
    assert [sum(found[i] for i in group) * PARTS for group in made.of] == exact
    numbers = [sum(table[i] for i in group) for group in made.of]
    found = made.rounded(numbers, PARTS, 1)
    corners = [each for one in SHAPES for each in made.cells.corners(one)]
    for group, number, most in zip(made.of, numbers, corners, strict=True):
        assert abs(sum(found[i] for i in group) - number / PARTS) <= most / 2 + 1e-3 + 2**-52 * number / PARTS


def test_what_has_no_table() -> None:
    assert cells_of([shape("a")], ((B, 3),)) is None  # not all rows are known
    assert cells_of([shape("a")], ((A, 3),)) is None  # a place that no row has
    many = Shape((), ((A, frozenset({0})),), 1)
    assert cells_of([many], ((A, MOST_ATOMS),)) is not None
    assert cells_of([many], ((A, MOST_ATOMS + 1),)) is None
