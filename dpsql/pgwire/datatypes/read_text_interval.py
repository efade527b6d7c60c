"""Intervals in text: Postgres' own notation (`1 year 2 mons -3 days 04:05:06.7`, `ago`) and ISO 8601 (`P1DT2H`)."""

from __future__ import annotations

import re
from decimal import Decimal
from types import MappingProxyType

from ..errors import ParameterError
from .values import Interval

__all__ = ["read_interval"]

_MAX_LENGTH = 300
_SECOND = 10**6
_MONTH, _DAY = "month", "day"
_DAYS_A_MONTH = 30  # only of a fraction of a month, as in Postgres
_DAY_MICROSECONDS = 86_400 * _SECOND

_UNITS = MappingProxyType(
    {
        "millennium": (_MONTH, 12_000), "millennia": (_MONTH, 12_000), "century": (_MONTH, 1_200),
        "centuries": (_MONTH, 1_200), "decade": (_MONTH, 120),
        "year": (_MONTH, 12), "yr": (_MONTH, 12), "y": (_MONTH, 12),
        "month": (_MONTH, 1), "mon": (_MONTH, 1),
        "week": (_DAY, 7), "w": (_DAY, 7), "day": (_DAY, 1), "d": (_DAY, 1),
        "hour": ("", 3_600 * _SECOND), "hr": ("", 3_600 * _SECOND), "h": ("", 3_600 * _SECOND),
        "minute": ("", 60 * _SECOND), "min": ("", 60 * _SECOND), "m": ("", 60 * _SECOND),
        "second": ("", _SECOND), "sec": ("", _SECOND), "s": ("", _SECOND), "": ("", _SECOND),
        "millisecond": ("", 1_000), "msec": ("", 1_000), "ms": ("", 1_000),
        "microsecond": ("", 1), "usec": ("", 1), "us": ("", 1),
    }
)  # fmt: skip
"""A unit's name, without a plural s -> the field it counts in, and how much of it."""

_TOKEN = re.compile(
    r"\s*(?:(?P<sign>[+-]?)(?P<hours>[0-9]{1,10}):(?P<minutes>[0-5]?[0-9])"
    r"(?::(?P<seconds>[0-5]?[0-9](?:\.[0-9]{0,9})?))?(?![0-9:.])"
    r"|(?P<number>[+-]?(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}))\s*(?P<unit>[a-z]*))",
    re.IGNORECASE,
)
_NUMBER = r"([+-]?[0-9]{1,20}(?:[.,][0-9]{1,20})?)"
_ISO = re.compile(
    rf"P(?=[0-9T+-])(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?=[0-9+-])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)
_ISO_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")


def read_interval(text: str) -> Interval:
    """Return an interval. Raises ValueError: the text is none; ParameterError (22008): beyond Postgres' range."""
    word = text.strip()
    if len(word) > _MAX_LENGTH:
        raise ValueError
    total = _Total()
    if iso := _ISO.fullmatch(word):
        for number, unit in zip(iso.groups(), _ISO_UNITS, strict=True):
            total.add(Decimal((number or "0").replace(",", ".")), *_UNITS[unit])
        return total.interval(text)
    is_ago = word.lower().endswith(" ago")
    word = (word[:-4] if is_ago else word).removeprefix("@").strip()
    if not word:
        raise ValueError
    at = 0
    while at < len(word):
        match = _TOKEN.match(word, at)
        if match is None:
            raise ValueError
        _add(total, match)
        at = match.end()
    return total.interval(text, -1 if is_ago else 1)


def _add(total: _Total, match: re.Match[str]) -> None:
    if match["hours"] is not None:
        sign = -1 if match["sign"] == "-" else 1
        for part, unit in (("hours", "hour"), ("minutes", "minute"), ("seconds", "second")):
            total.add(sign * Decimal(match[part] or 0), *_UNITS[unit])
        return
    unit = match["unit"].lower()
    found = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
    if found is None:
        raise ValueError
    total.add(Decimal(match["number"]), *found)


class _Total:
    """The three fields while they are added up."""

    def __init__(self) -> None:
        self.months = 0
        self.days = 0
        self.microseconds = Decimal(0)

    def add(self, number: Decimal, field: str, size: int) -> None:
        """Add `number` units; what is not whole falls to the next smaller field."""
        amount = number * size
        if field == _MONTH:
            whole = int(amount)
            self.months += whole
            amount, field = (amount - whole) * _DAYS_A_MONTH, _DAY
        if field == _DAY:
            whole = int(amount)
            self.days += whole
            amount = (amount - whole) * _DAY_MICROSECONDS
        self.microseconds += amount

    def interval(self, text: str, sign: int = 1) -> Interval:
        microseconds = round(self.microseconds)
        fits = abs(self.months) < 2**31 and abs(self.days) < 2**31 and abs(microseconds) < 2**63
        if not fits:
            raise ParameterError(f'interval field value out of range: "{text[:100]}"', sqlstate="22015")
        return Interval(sign * self.months, sign * self.days, sign * microseconds)
