"""Sums by square root in the estimate (soundness.md 1.44): held against normal equations that are written out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dpsql.plan.privacy.axes import Partition
from dpsql.release import estimate, square_root
from dpsql.release.estimate import CELL_PARTS, PARTS, Design, Sums
from dpsql.release.released import Array
from dpsql.tests.laws.planting import plant

DAYS = 90
MONTHS = Partition(tuple(min(2, day // 31) for day in range(DAYS)))
EACH = Partition(tuple(range(DAYS)))
LISTED = Partition((*range(DAYS - 1), -1))
WHOLE = Partition.whole(DAYS)
BOTH = (Partition((0, 1)), Partition.whole(2))


def matrix(sums: Sums, sizes: Sequence[int]) -> Array:
    cells = np.eye(int(np.prod(sizes))).reshape(-1, *sizes)
    return sums.of(cells).T


def held(
    sizes: tuple[int, ...], drawn: Sequence[Sums], spreads: Sequence[float], wanted: Sequence[Sums]
) -> None:
    """Hold that variances, weights and the fitted table are those of the normal equations."""
    design = Design(sizes, tuple(drawn), tuple(spreads))
    maps = [matrix(one, sizes) for one in drawn]
    normal = sum(one.T @ one / spread for one, spread in zip(maps, spreads, strict=True))
    inverse = np.linalg.inv(normal)
    for sums in wanted:
        forms, own = design.forms(sums), matrix(sums, sizes)
        assert forms is not None
        for weights, one, spread in zip(forms.weights, maps, spreads, strict=True):
            assert weights[list(forms.kinds)] == pytest.approx(own @ inverse @ one.T / spread, abs=1e-9)
    source = random.Random(str(spreads))
    numbers = [[source.randrange(-(2**44), 2**44) for _ in range(one.size)] for one in drawn]
    right = sum(
        one.T @ np.array(own, dtype=float) / spread
        for one, own, spread in zip(maps, numbers, spreads, strict=True)
    )
    table = design.table(numbers)
    assert table is not None
    found = np.array([float(cell) for cell in table]) * (PARTS / CELL_PARTS)
    assert found == pytest.approx(inverse @ right, rel=1e-6, abs=1e-6 * np.abs(inverse @ right).max())


SUMS = Sums((EACH,), by_root=True)
CASES = {
    "alone": ((DAYS,), [SUMS], [2e5], [Sums((EACH,)), Sums((MONTHS,)), Sums((WHOLE,))]),
    "beside months and all": ((DAYS,), [SUMS, Sums((MONTHS,)), Sums((WHOLE,))], [2e5, 1, 1], [Sums((EACH,)), Sums((WHOLE,))]),
    "beside days that tell little": ((DAYS,), [SUMS, Sums((EACH,))], [2e5, 1e4], [Sums((EACH,))]),
    "beside days that tell most": ((DAYS,), [Sums((EACH,)), SUMS], [1, 1e9], [Sums((EACH,)), Sums((WHOLE,))]),
    "of listed days": ((DAYS,), [Sums((LISTED,), by_root=True), Sums((EACH,))], [2e5, 3], [Sums((EACH,))]),
    "of months, beside days": ((DAYS,), [Sums((MONTHS,), by_root=True), Sums((EACH,))], [1e4, 3], [Sums((EACH,)), Sums((MONTHS,))]),
    "twice": ((DAYS,), [SUMS, Sums((LISTED,), by_root=True)], [2e5, 1e5], [Sums((EACH,))]),
    "beside another key": (
        (DAYS, 2),
        [Sums((EACH, BOTH[1]), by_root=True), Sums((EACH, BOTH[0])), Sums((WHOLE, BOTH[0]))],
        [2e5, 2, 1],
        [Sums((EACH, BOTH[1])), Sums((MONTHS, BOTH[0]))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_sums_are_one_observation_among_others(case: str) -> None:
    held(*CASES[case])


def test_what_undoes_the_map_and_its_transpose_is_their_inverse() -> None:
    sums = matrix(SUMS, (DAYS,))
    numbers = np.random.default_rng(3).normal(size=(4, DAYS))
    assert square_root.turned(numbers) == pytest.approx(numbers @ sums, abs=1e-9)
    assert square_root.told(numbers @ sums.T @ sums) == pytest.approx(numbers, abs=1e-9)


@pytest.mark.parametrize(
    "pieces",
    [
        (square_root.turned, ("_kernel())[..., ::-1]", "_kernel())")),
        (Sums.spread, ("square_root.turned(numbers) if self.by_root else numbers", "numbers")),
        (Design._normal, ("precision * sums", "sums")),
    ],
    ids=["turned once", "never turned", "of no precision"],
)
def test_other_equations_are_seen(
    monkeypatch: pytest.MonkeyPatch, pieces: tuple[object, tuple[str, str]]
) -> None:
    function, piece = pieces
    plant(monkeypatch, function, piece)  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        held(*CASES["beside months and all"])


# --- many sums at once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 31, 32, 33, 70])
def test_equations_that_are_written_out_are_undone(size: int) -> None:
    """To the last digits, and not where a pivot is none."""
    own = np.random.default_rng(size).normal(size=(size, size))
    normal = own @ own.T + np.eye(size)
    found = estimate._inverse(normal, 1e-9)
    assert found is not None
    assert found @ normal == pytest.approx(np.eye(size), abs=1e-12)
    normal[-1] = normal[:, -1] = 0
    assert estimate._inverse(normal, 1e-9) is None


def check_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold that weights of more sums than are solved for at once are right where what undoes them is not."""
    plant(monkeypatch, estimate._inverse, ("shares, shares.T, -pivot", "shares, shares.T, pivot"))
    held(*CASES["beside days that tell little"])


def test_what_undoes_them_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    check_undone(monkeypatch)


def test_what_is_not_looked_at_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(
        monkeypatch, Design.forms, ("found is None or self._is_off(found, cells, _NEARER)", "found is None")
    )
    with pytest.raises(AssertionError):
        check_undone(monkeypatch)


def test_many_sums_are_undone_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And without a step of conjugate gradients."""
    days = 365
    each = Sums((Partition(tuple(range(days))),))
    drawn = (replace(each, by_root=True), each, Sums((Partition(tuple(day // 31 for day in range(days))),)))
    one, other = (Design((days,), drawn, (193_000.0, 1.2, 1.2)) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(estimate, "_MOST_WRITTEN", 0)
        one_by_one = one.forms(each)
    plant(monkeypatch, Design._solved, ("found, rest = np.zeros_like(wanted), wanted.copy()", "assert False"))
    at_once = other.forms(each)
    assert one_by_one is not None
    assert at_once is not None
    for weights, others in zip(at_once.weights, one_by_one.weights, strict=True):
        assert weights == pytest.approx(others, abs=1e-10)
