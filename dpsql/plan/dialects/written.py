"""A moment written out by parts, alike for each engine: extract, substring, lpad and || mean the same in all."""

from __future__ import annotations

from collections.abc import Sequence

from ...relation.date_formats import FormatPart
from .quote import text

__all__ = ["written"]


def written(parts: Sequence[FormatPart], moment: str, text_type: str) -> str:
    """Return the text that a format makes of a timestamp, NULL for NULL; `text_type`: the engine's name of it."""
    shown = [_part(part, moment, text_type) for part in parts]
    if not any(part.field for part in parts):
        return f"CASE WHEN {moment} IS NOT NULL THEN {' || '.join(shown) or text('')} END"
    return " || ".join(shown)


def _part(part: FormatPart, moment: str, text_type: str) -> str:
    if not part.field:
        return text(part.text)
    number = f"CAST(extract({part.field} FROM {moment}) AS INTEGER)"
    if part.names:
        width = len(part.names[0])
        name = f"substring({text(''.join(part.names))}, ({number} - 1) * {width} + 1, {width})"
        return f"rtrim({name}, ' ')" if part.is_trimmed else name
    number = (
        f"({number} + 1)" if part.field == "dow" else f"({number} % 100)" if part.is_two_digits else number
    )
    shown = f"CAST({number} AS {text_type})"
    return f"lpad({shown}, {part.width}, '0')" if part.width else shown
