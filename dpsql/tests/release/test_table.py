"""Groupings as numbers of a table, against the rows themselves: soundness.md 3.8, 3.15."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.budget import Grouping, GroupingKey
from dpsql.mechanisms import Laplace, sum_of
from dpsql.plan.privacy.axes import Partition
from dpsql.release import table
from dpsql.release.estimate import Sums
from dpsql.release.table import (
    Shape,
    Table,
    axis_name,
    cells_in,
    cells_with_rows,
    places_of,
    whole_keys,
)
from dpsql.tests.laws.planting import plant

Patch = pytest.MonkeyPatch
DAY, MONTH, HALF, CITY, FLAG = b"day", b"month", b"half", b"city", b"flag"
DAYS = 6
TIES = {
    DAY: (b"time", Partition(tuple(range(DAYS)))),
    MONTH: (b"time", Partition((0, 0, 1, 1, 2, 2))),
    HALF: (b"time", Partition((1, 1, 1, 0, 0, 0))),
}
SIZES = {DAY: DAYS, MONTH: 3, HALF: 2, CITY: 3, FLAG: 2}
AXES = {b"time": DAYS, CITY: 3, FLAG: 2}


def places(atoms: Mapping[bytes, int], key: bytes) -> int:
    """Return the place of a key where the axes have some atoms."""
    return TIES[key][1].groups[atoms[b"time"]] if key in TIES else atoms[key]


def worlds(axes: Mapping[bytes, int]) -> Iterator[dict[bytes, int]]:
    for at in itertools.product(*map(range, axes.values())):
        yield dict(zip(axes, at, strict=True))


def counted(shape: Shape, axes: Mapping[bytes, int], numbers: np.ndarray[Any, Any]) -> list[int]:
    """Return a shape's groups, added up cell by cell."""
    groups = list(zip(*(own.tolist() for own in shape.columns.values()), strict=True)) or [()]
    found = dict.fromkeys(groups, 0)
    for atoms, number in zip(worlds(axes), numbers.ravel().tolist(), strict=True):
        group = tuple(places(atoms, key) for key, _ in shape.keys)
        if group in found and all(places(atoms, key) in kept for key, kept in shape.filters):
            found[group] += number
    return [found[group] for group in groups]


def random_shape(rng: random.Random) -> Shape:
    keys = rng.sample(sorted(SIZES), rng.choice((0, 1, 1, 2, 2, 3)))
    product = list(itertools.product(*(range(SIZES[key]) for key in keys)))
    kept = rng.sample(product, rng.randint(1, len(product))) if rng.random() < 0.5 else product
    columns = {key: [group[i] for group in kept] for i, key in enumerate(keys)}
    others = sorted(SIZES.keys() - set(keys))
    filters = {
        key: rng.sample(range(SIZES[key]), rng.randint(1, SIZES[key]))
        for key in rng.sample(others, rng.choice((0, 0, 1)))
    }
    return Shape.of(columns, len(kept), filters)


def check_random_shapes() -> None:
    rng, told = random.Random(1), 0
    for _ in range(400):
        shape, axes = random_shape(rng), dict(rng.sample(sorted(AXES.items()), len(AXES)))
        numbers = np.array([rng.randrange(100) for _ in range(36)], dtype=object).reshape(list(axes.values()))
        sums = Table(axes, TIES).sums(shape)
        if sums is None:  # a day that is in no such month, or that a filter leaves out
            ones = np.ones(list(axes.values()), dtype=object)
            assert 0 in counted(shape, axes, ones), shape
            continue
        told += 1
        assert sums.of(numbers[None])[0].tolist() == counted(shape, axes, numbers)
        reading = Table(axes, TIES).reading(shape)
        assert reading is not None
        assert reading.cells == 1
        drawn = np.array(counted(shape, axes, numbers))
        assert reading.values(drawn).tolist() == reading.sums.of(numbers[None])[0].tolist()
    assert told > 200


def test_groups_are_the_cells_of_their_rows() -> None:
    check_random_shapes()


def check_left_out() -> None:
    """Over a key that is no axis the groups of what was drawn are added up, whatever the order of its keys."""
    rng = random.Random(2)
    for keys in itertools.permutations((CITY, FLAG, MONTH)):
        shape = Shape(tuple((key, tuple(range(SIZES[key]))) for key in keys))
        numbers = np.array([rng.randrange(100) for _ in range(36)], dtype=object).reshape(6, 3, 2)
        drawn = np.array(counted(shape, AXES, numbers))
        for left in ([CITY], [FLAG], [b"time", FLAG], []):
            axes = {axis: size for axis, size in AXES.items() if axis in left}
            smaller = numbers.sum(axis=tuple(i for i, axis in enumerate(AXES) if axis not in left))
            reading = Table(axes, TIES).reading(shape)
            assert reading is not None
            assert reading.values(drawn).tolist() == reading.sums.of(np.array(smaller)[None])[0].tolist()
            assert reading.cells * reading.sums.size == shape.size
            assert reading.law(Laplace(Fraction(5))) == sum_of(Laplace(Fraction(5)), reading.cells)


def test_over_a_key_that_is_no_axis_groups_are_added_up() -> None:
    check_left_out()


def test_what_reads_another_axis_is_not_told() -> None:
    by_city = Shape.of({CITY: [0, 1, 2]}, 3, {})
    assert Table({FLAG: 2}, {}).sums(by_city) is None
    filtered = Shape.of({FLAG: [0, 1]}, 2, {CITY: [0]})
    assert Table({FLAG: 2}, {}).sums(filtered) is None
    assert Table({FLAG: 2}, {}).reading(filtered) is None
    uneven = Shape.of({FLAG: [0, 0, 1], CITY: [0, 1, 0]}, 3, {})
    assert Table({FLAG: 2}, {}).reading(uneven) is None
    assert Table({FLAG: 2}, {}).sums(Shape.of({FLAG: []}, 0, {})) is None


def test_a_wide_product_of_which_few_groups_are_takes_no_room() -> None:
    """Of five keys with 50,000 values each, 50,000 groups."""
    values, axes = list(range(50_000)), {bytes([i]): 50_000 for i in range(4)}
    shape = Shape.of(dict.fromkeys(axes, values), len(values), {})
    for found in (Table(axes, {}).sums(shape), Table(axes, {}).reading(shape)):
        assert found is not None


def test_a_stored_grouping_less_the_places_without_rows() -> None:
    grouping = Grouping(b"family", (GroupingKey(CITY, 3, True), GroupingKey(FLAG, 2, False)))
    assert cells_with_rows(grouping, {}) == Shape(((CITY, (0, 1, 2)), (FLAG, (0, 1))))
    assert cells_with_rows(grouping, {CITY: 2}) == Shape(((CITY, (0, 1)), (FLAG, (0, 1))))
    assert cells_in(np.arange(6), grouping, {CITY: 2}).tolist() == [0, 1, 2, 3]
    assert whole_keys([grouping], {}) == {CITY: 3}
    assert whole_keys([grouping], {FLAG: 2, CITY: 2}) == {CITY: 2, FLAG: 2}


def test_there_may_be_others_where_it_is_not_known() -> None:
    shapes = [Shape.of({CITY: [0, 2]}, 2, {FLAG: [0]}), Shape.of({CITY: [1]}, 1, {})]
    assert places_of(shapes, {}) == {CITY: 4, FLAG: 2}
    assert places_of(shapes, {CITY: 3, FLAG: 2}) == {CITY: 3, FLAG: 2}


def test_a_key_is_on_the_axis_of_its_column() -> None:
    assert (axis_name(MONTH, TIES), axis_name(CITY, TIES)) == (b"time", CITY)


def test_all_groups_in_their_order_are_the_product() -> None:
    assert Shape.of({CITY: [0, 0, 1, 1], FLAG: [0, 1, 0, 1]}, 4, {}).rows is None
    assert Shape.of({CITY: [0, 1, 0, 1], FLAG: [0, 0, 1, 1]}, 4, {}).rows == (0, 2, 1, 3)
    assert isinstance(Table({CITY: 3}, {}).sums(Shape.of({CITY: [2, 0]}, 2, {})), Sums)


# --- mutants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "old", "new", "check"),
    [
        (Table._placed, "np.isin(places[key], filters[key])", "True", check_random_shapes),
        (Table._placed, "is_counted &= np.isin(known, groups)", "pass", check_random_shapes),
        (table._numbers, "found * len(one.groups) +", "found +", check_random_shapes),
        (table.Reading.values, "np.add.at(found, numbers, values.astype(object))", "found[numbers] = values", check_left_out),
        (table.Reading.law, "self.cells", "1", check_left_out),
    ],
    ids=["a filter", "groups that are not asked for", "another product", "not added up", "the noise of one"],
)  # fmt: skip
def test_wrong_places(monkeypatch: Patch, function: Any, old: str, new: str, check: Any) -> None:
    plant(monkeypatch, function, (old, new))
    with pytest.raises((AssertionError, IndexError)):
        check()
