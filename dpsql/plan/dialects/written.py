"""A moment written out by parts, alike for each engine: lpad and || mean the same in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...relation.calendar import FormatPart

if TYPE_CHECKING:
    from .dialect import Dialect

__all__ = ["written"]


def written(parts: Sequence[FormatPart], moment: str, dialect: Dialect) -> str:
    """Return the text that a format makes of a timestamp, NULL for NULL."""
    shown = [_part(part, moment, dialect) for part in parts]
    if not any(part.field for part in parts):
        return f"CASE WHEN {moment} IS NOT NULL THEN {' || '.join(shown) or dialect.text_literal('')} END"
    return " || ".join(shown)


def _part(part: FormatPart, moment: str, dialect: Dialect) -> str:
    if not part.field:
        return dialect.text_literal(part.text)
    number = dialect.cast(dialect.extract(part.field, moment), "INTEGER")
    if part.names:
        width = len(part.names[0])
        names = dialect.text_literal("".join(part.names))
        name = f"substring({names}, ({number} - 1) * {width} + 1, {width})"
        return dialect.trimmed("rtrim", name) if part.is_trimmed else name
    number = (
        f"({number} + 1)" if part.field == "dow" else f"({number} % 100)" if part.is_two_digits else number
    )
    shown = f"CAST({number} AS {dialect.text})"
    return f"lpad({shown}, {part.width}, '0')" if part.width else shown
