"""Figures in words: the same to an analyst, an owner and a catalog, whoever says them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

__all__ = ["counted", "listed", "plural", "small_text"]


def plural(number: int, noun: str) -> str:
    """Return a noun as it stands behind a number."""
    return noun if number == 1 else f"{noun}s"


def counted(number: int, noun: str) -> str:
    """Return so many of a thing.

    >>> [counted(n, "row") for n in (0, 1, 12_063)]
    ['0 rows', '1 row', '12,063 rows']
    """
    return f"{number:,} {plural(number, noun)}"


def listed(texts: Sequence[str], most: int) -> str:
    """Return texts with commas, and of more than `most` how many are left out.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def small_text(number: Fraction | Decimal) -> str:
    """Return a delta as people write it.

    >>> small_text(Fraction(1, 10**9))
    '1e-9'
    """
    return f"{float(number):g}".replace("e-0", "e-")
