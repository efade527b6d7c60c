"""Faults in the rule that shows groups found in the data: each must break the promise (soundness.md 1.7), computed exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from dpsql.mechanisms import Truncated
from dpsql.mechanisms.laws import truncated
from dpsql.release import privatise
from dpsql.tests.mechanisms import test_truncated as oracle

from .planting import plant
from .test_published_keys import check_the_printed_threshold

Patch = pytest.MonkeyPatch

SCALE, DELTA = Fraction(2), Fraction(1, 1000)
FAULTS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "the coin at k - 1": (Truncated.shown, "noisy == self.bound)", "noisy == self.bound - 1)"),
    "k - 1 for k": (truncated._bound, "return k", "return k - 1"),
}  # fmt: skip


def keeps_its_promise() -> None:
    law = Truncated.within(SCALE, DELTA)
    assert law.excess <= DELTA
    for n in range(2 * law.bound + 3):
        for pair in ((n, n + 1), (n + 1, n)):
            assert oracle.hockey_stick(law, *pair) <= oracle.decimal_of(DELTA)


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    yield
    _forget()


def _forget() -> None:
    for known in (truncated._within, oracle.released):
        known.cache_clear()


@pytest.mark.parametrize(("function", "old", "new"), FAULTS.values(), ids=FAULTS)
def test_plant(monkeypatch: Patch, function: Callable[..., Any], old: str, new: str) -> None:
    keeps_its_promise()
    _forget()
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        keeps_its_promise()


def test_draws_of_another_law(monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        Truncated.draw,
        ("np.flatnonzero(size == self.bound)", "np.flatnonzero(size > self.bound)"),
    )
    with pytest.raises(AssertionError):
        oracle.test_the_draws_have_the_law()


@pytest.mark.parametrize(
    ("old", "new"),
    [("noisy - (minimum_units - 1)", "noisy"), ("noisy - (minimum_units - 1)", "counts[tested]")],
)
def test_another_number_is_tested(desk: Any, monkeypatch: Patch, tmp_path: Any, old: str, new: str) -> None:
    plant(monkeypatch, privatise.publish, (old, new))
    with pytest.raises(AssertionError):
        check_the_printed_threshold(desk, tmp_path)
