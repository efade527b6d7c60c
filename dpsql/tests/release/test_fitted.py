"""One whole-number table: running totals are rounded, so every run of cells is near what it was before."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpsql.release.fitted import rounded, rounded_noise

SIZES, PARTS = (4, 3, 2), 2**32


@pytest.mark.parametrize("unit", [1, 1024])
@pytest.mark.parametrize("large", [0, 2**60])
def test_every_run_is_near_and_of_whole_units(unit: int, large: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        cells = [int(one) + large * PARTS for one in rng.integers(-5000 * PARTS, 5000 * PARTS, 24)]
        found = rounded(SIZES, cells, unit, PARTS)
        assert all(one % unit == 0 for one in found)
        after, before = (np.array(each, dtype=object).reshape(SIZES) for each in (found, cells))
        runs = [[(a, b) for a in range(n) for b in range(a + 1, n + 1)] for n in SIZES]
        for run in itertools.product(*runs):
            part = tuple(slice(a, b) for a, b in run)
            corners = 2 ** sum(a > 0 for a, _ in run)
            off = after[part].sum() * PARTS - before[part].sum()
            assert abs(off) <= corners * unit * PARTS // 2


def test_replicas_are_rounded_as_numbers_are() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 5, (50, 4, 3))
    for before, after in zip(noise, rounded_noise(noise, 1), strict=True):
        cells = [round(one * PARTS) for one in before.ravel().tolist()]
        assert after.ravel().tolist() == rounded((4, 3), cells, 1, PARTS)
