"""The only way a name or a value becomes SQL text: of standard SQL, as DuckDB and Postgres read it.

Another engine may read a text otherwise: what is printed for the owner's engine asks its dialect. Here is what
the sealed engine reads, and what our own statements are written with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from ...relation.calendar import FormatPart, date_text, timestamp_text
from ...relation.expressions import Literal, Months
from ...relation.types import Kind

if TYPE_CHECKING:
    from .dialect import Dialect

__all__ = ["identifier", "literal", "table_name", "text", "written"]


def identifier(name: str) -> str:
    """Return a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def table_name(path: tuple[str, ...]) -> str:
    """Return a schema-qualified, quoted table name."""
    return ".".join(identifier(part) for part in path)


def text(value: str) -> str:
    """Return a text literal."""
    return "'" + value.replace("'", "''") + "'"


def decimal(value: Fraction) -> str | None:
    """Return an exact decimal literal with at most 30 digits after the point; None when there is none."""
    denominator, scale = value.denominator, 0
    while denominator % 10 == 0:
        denominator, scale = denominator // 10, scale + 1
    while denominator % 2 == 0:
        denominator, scale = denominator // 2, scale + 1
    while denominator % 5 == 0:
        denominator, scale = denominator // 5, scale + 1
    if denominator != 1 or scale > 30:
        return None
    digits = str(abs(int(value * 10**scale))).rjust(scale + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"


def literal(value: Literal, double: str = "DOUBLE", text: Callable[[str], str] = text) -> str:
    """Return a literal in SQL; `double`: the name of that type, `text`: how a text is written."""
    raw, kind = value.value, value.type.kind
    if raw is None:
        return "NULL"
    if isinstance(raw, bool):
        return "TRUE" if raw else "FALSE"
    if isinstance(raw, str):
        return text(raw)
    if kind is Kind.DATE and isinstance(raw, int):
        return f"DATE {text(date_text(raw))}"
    if kind is Kind.TIMESTAMP and isinstance(raw, int):
        return f"TIMESTAMP {text(timestamp_text(raw))}"
    if isinstance(raw, Months):
        return f"INTERVAL {text(f'{raw.months} months {raw.days} days {raw.microseconds} microseconds')}"
    if isinstance(raw, float) or value.type.is_float:
        return f"CAST({text(repr(float(raw)))} AS {double})"
    exact = decimal(Fraction(raw))
    shown = exact if exact is not None else f"CAST({text(repr(float(raw)))} AS {double})"
    return f"({shown})" if shown.startswith("-") else shown


# --- A moment written out by parts, alike for each engine: lpad and || mean the same in all -----------------


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
