"""The only way a name or a value becomes SQL text: of standard SQL, as DuckDB and Postgres read it.

Another engine may read a text otherwise: what is printed for the owner's engine asks its dialect. Here is what
the sealed engine reads, and what our own statements are written with.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ...relation.calendar import date_text, timestamp_text
from ...relation.expressions import Literal, Months
from ...relation.types import Kind


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
    exact = str(raw) if isinstance(raw, int) else decimal(Fraction(raw))
    shown = exact if exact is not None else f"CAST({text(repr(float(raw)))} AS {double})"
    return f"({shown})" if shown.startswith("-") else shown
