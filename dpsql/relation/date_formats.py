"""What to_char writes of a moment: the parts of a format, and the text of a moment.

House rule: a pattern of Postgres that is not on the list is refused where the format is read, never written as
plain letters; names are English, as in its "C" locale.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .calendar import DAY, extracted, step_units, truncated

__all__ = [
    "FORMAT_PATTERNS",
    "FormatPart",
    "finest_unit",
    "format_parts",
    "formatted",
    "formatted_values",
    "most_characters",
    "written_alike",
]

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBERS = {
    "YYYY": ("year", 4), "IYYY": ("isoyear", 4), "YY": ("year", 2), "Q": ("quarter", 1), "MM": ("month", 2),
    "IW": ("week", 2), "DDD": ("doy", 3), "DD": ("day", 2), "D": ("dow", 1), "ID": ("isodow", 1), "HH24": ("hour", 2),
    "MI": ("minute", 2),
}  # fmt: skip
_NAMES = {
    "MONTH": ("month", _MONTHS, 9),
    "MON": ("month", _MONTHS, 3),
    "DAY": ("isodow", _DAYS, 9),
    "DY": ("isodow", _DAYS, 3),
}
_CASES: dict[str, Callable[[str], str]] = {"upper": str.upper, "lower": str.lower, "title": str.title}
FORMAT_PATTERNS = (
    "YYYY", "YY", "IYYY", "Q", "MM", "Month", "Mon", "IW", "DDD", "DD", "Day", "Dy", "D", "ID", "HH24", "MI",
)  # fmt: skip
"""What is written, for the manual and for hints; FM before one leaves blanks and zeros out."""

_WORDS = sorted({*_NUMBERS, *_NAMES}, key=len, reverse=True)
_TOKEN = re.compile(
    rf'"[^"]*"|(?:FM)?(?:IDDD|{"|".join(_WORDS)})|[^A-Za-z0-9"\\]|.', re.IGNORECASE | re.DOTALL
)
_UNITS = {"year": "year", "quarter": "quarter", "month": "month", "isoyear": "week", "week": "week", "hour": "hour",
          "minute": "minute"}  # fmt: skip
_FINER = ("year", "quarter", "month", "week", "day", "hour", "minute")
_MOST_STEPS = 4_000
_MOST_VALUES = 1_000
_EIGHT_YEARS = 2_922 * DAY
_OF_WEEKS = frozenset({"week", "dow", "isodow"})
_OF_YEARS = frozenset({"quarter", "month", "day", "doy"})
"""How weeks lie in months comes back after 28 years, and later where a century is between."""


@dataclass(frozen=True, slots=True)
class FormatPart:
    """One part of a format: a plain `text`; or a `field` of `extract`, as a number or one of some `names`.

    `width`: of a number with zeros, 0 for as many digits as it has. Names are all of one width, filled with blanks,
    which `is_trimmed` takes away.
    """

    text: str = ""
    field: str = ""
    width: int = 0
    names: tuple[str, ...] = ()
    is_trimmed: bool = False

    @property
    def is_two_digits(self) -> bool:
        """Whether it is the end of a year."""
        return self.field == "year" and self.width == 2


@lru_cache(maxsize=256)
def format_parts(text: str) -> tuple[FormatPart, ...] | str:
    """Return the parts of a format, or what of it is not written here."""
    parts: list[FormatPart] = []
    for match in _TOKEN.finditer(text):
        word = match[0]
        part = _part(word)
        if part is None:
            return word
        parts.append(part)
    return tuple(parts)


def _part(word: str) -> FormatPart | None:
    if word.startswith('"'):
        return FormatPart(text=word[1:-1]) if len(word) > 1 else None
    if not word[0].isalpha():
        return None if word == "\\" or not word.isascii() else FormatPart(text=word)
    trims = word[:2].upper() == "FM" and len(word) > 2
    bare = word[2:] if trims else word
    kind = bare.upper()
    if kind in _NUMBERS and (bare == kind or bare == kind.lower()):
        field, width = _NUMBERS[kind]
        if trims and kind == "YY":
            return None
        return FormatPart(field=field, width=0 if trims else width)
    if kind not in _NAMES:
        return None
    case = (
        "upper" if bare.isupper() else "lower" if bare.islower() else "title" if bare == kind.title() else ""
    )
    if not case:
        return None
    field, names, width = _NAMES[kind]
    shown = tuple(_CASES[case](name)[:width].ljust(width) for name in names)
    return FormatPart(field=field, names=shown, is_trimmed=trims)


def finest_unit(parts: tuple[FormatPart, ...]) -> str:
    """Return the unit of date_trunc within which all moments are written alike."""
    units = [_UNITS.get(part.field, "day") for part in parts if part.field]
    if "week" in units and {"year", "quarter", "month"} & set(units):
        units.append("day")  # a week is in two months
    return max(units, key=_FINER.index, default="year")


def formatted(parts: tuple[FormatPart, ...], microseconds: int) -> str | None:
    """Return what to_char writes of a moment; None outside the years 1 to 9999."""
    found = []
    for part in parts:
        number = extracted(part.field, microseconds) if part.field else 0
        if number is None:
            return None
        found.append(_written(part, number))
    return "".join(found)


def _written(part: FormatPart, number: int) -> str:
    if not part.field:
        return part.text
    if part.names:
        name = part.names[number - 1]
        return name.rstrip(" ") if part.is_trimmed else name
    number = number + 1 if part.field == "dow" else number % 100 if part.is_two_digits else number
    return str(number).rjust(part.width, "0")


def most_characters(parts: tuple[FormatPart, ...]) -> int:
    """Return the length of the longest text."""
    return sum(
        len(part.names[0]) if part.names else max(len(part.text), part.width, 4 if part.field else 0)
        for part in parts
    )


@lru_cache(maxsize=64)
def formatted_values(parts: tuple[FormatPart, ...], lo: Fraction, hi: Fraction) -> tuple[str, ...] | None:
    """Return all texts of moments in [lo, hi] microseconds, in order of time; None where they are too many to list."""
    first, last, unit = int(lo), int(hi), finest_unit(parts)
    fields = {part.field for part in parts}
    if not fields & {"year", "isoyear"} and not (fields & _OF_WEEKS and fields & _OF_YEARS):
        last = min(last, first + _EIGHT_YEARS)  # they have every month and day there is, and every week
    if fields <= {"dow", "isodow", "hour", "minute", ""}:
        last = min(last, first + 7 * DAY)
    if fields <= {"hour", "minute", ""}:
        last = min(last, first + DAY)
    moments = step_units(unit, first, last, _MOST_STEPS)
    if moments is None:
        return None
    texts = dict.fromkeys(formatted(parts, max(moment, first)) for moment in moments)
    found = tuple(text for text in texts if text is not None)
    return found if len(found) == len(texts) <= _MOST_VALUES else None


def written_alike(parts: tuple[FormatPart, ...], lo: int, hi: int) -> str | None:
    """Return what is written of all moments from one to another, where that is one text; else None."""
    unit = finest_unit(parts)
    return formatted(parts, lo) if truncated(unit, lo) == truncated(unit, hi) is not None else None
