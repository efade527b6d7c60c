"""Compares a noiseless answer with what an engine says to the analyst's own statement."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal

__all__ = ["check_same"]

_RELATIVE = 1e-9


def check_same(
    ours: Sequence[Sequence[object]], theirs: Sequence[Sequence[object]], *, ordered: bool
) -> None:
    """Hold that two answers are the same but for the last digits of doubles, in some order unless `ordered`."""
    mine = [tuple(map(_plain, row)) for row in ours]
    others = [tuple(map(_plain, row)) for row in theirs]
    assert others, "an oracle without rows compares nothing"
    if not ordered:
        mine, others = sorted(mine, key=_order), sorted(others, key=_order)
    assert len(mine) == len(others)
    for left, right in zip(mine, others, strict=True):
        assert len(left) == len(right)
        assert all(map(_equal, left, right)), f"{left} is not {right}"


def _plain(value: object) -> object:
    """Return numbers as int where they are whole by type, else float; a date is the timestamp at its start."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return value


def _order(row: tuple[object, ...]) -> list[tuple[int, str]]:
    """Sort by the values that are compared exactly first, so that rounding does not pair wrong rows."""
    exact = [(0, repr(v)) if not isinstance(v, (int, float)) else (1, "") for v in row]
    return [*exact, *((1, f"{float(v):+025.6f}") for v in row if isinstance(v, (int, float)))]


def _equal(mine: object, other: object) -> bool:
    if isinstance(mine, bool) or isinstance(other, bool) or mine is None or other is None:
        return mine is other
    if isinstance(mine, float) or isinstance(other, float):
        numbers = isinstance(mine, (int, float)) and isinstance(other, (int, float))
        return numbers and math.isclose(mine, other, rel_tol=_RELATIVE, abs_tol=1e-9)  # type: ignore[arg-type]  # numbers
    return mine == other
