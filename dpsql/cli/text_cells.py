"""Cells of text on a terminal: released values, their width, and the privacy parameters beside them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from ..value_text import float_text, plain_text, terminal_text

__all__ = ["decimal_text", "display_width", "float_text", "plain_text", "terminal_text"]


def display_width(text: str) -> int:
    """Return how many terminal cells `terminal_text` output takes: two for a wide character."""
    if text.isascii():
        return len(text)
    from prompt_toolkit.utils import get_cwidth

    return get_cwidth(text)


def decimal_text(number: Fraction) -> str:
    """Return a privacy parameter in decimal: exact when it ends within 18 places, else cut there.

    Powers of ten below 1e-4 are shown as 1e-9, which is how people write a delta.
    """
    places = 18
    scaled = number.numerator * 10**places // number.denominator
    value = Decimal(scaled).scaleb(-places).normalize()
    if value and abs(value) < Decimal("1e-4"):
        return f"{value:e}"
    return format(value, "f")
