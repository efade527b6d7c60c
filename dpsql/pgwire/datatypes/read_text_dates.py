"""Dates and timestamps in text: ISO 8601, and what drivers write."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from ..errors import ParameterError

__all__ = ["read_date", "read_timestamp", "read_timestamptz"]

_TIMESTAMP = re.compile(
    r"(?P<year>[0-9]{4,6})-?(?P<month>[0-9]{2})-?(?P<day>[0-9]{2})"
    r"(?:(?:[ T]+)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{0,9}))?)?)?"
    r" *(?:(?P<utc>Z|UTC|GMT)|(?P<zone>[+-])(?P<zone_hour>[0-9]{1,2})"
    r"(?::?(?P<zone_minute>[0-9]{2})(?::?(?P<zone_second>[0-9]{2}))?)?)?"
    r"(?P<era> +(?:AD|BC))?",
    re.IGNORECASE,
)
_MAX_LENGTH = 100
_SPECIAL = frozenset({"infinity", "-infinity", "+infinity"})
_HINT = "Write it as 2024-12-31, 2024-12-31 23:59:59 or 2024-12-31 23:59:59+00."


def read_date(text: str) -> date:
    """Return a date; a time after it is dropped, as Postgres does. Raises ParameterError (22007, 22008)."""
    return _moment(text, "date")[0].date()


def read_timestamp(text: str) -> datetime:
    """Return a timestamp; a zone after it is dropped, as Postgres does. Raises ParameterError (22007, 22008)."""
    return _moment(text, "timestamp")[0]


def read_timestamptz(text: str) -> datetime:
    """Return a timestamp with its zone; without one where the text has none: that is the session's.

    Raises ParameterError (22007, 22008).
    """
    moment, zone = _moment(text, "timestamp with time zone")
    return moment if zone is None else moment.replace(tzinfo=zone)


def _moment(text: str, kind: str) -> tuple[datetime, timezone | None]:
    word = text.strip()
    if word.lower() in _SPECIAL:
        raise _out_of_range(text, kind)
    match = _TIMESTAMP.fullmatch(word) if len(word) <= _MAX_LENGTH else None
    if match is None:
        raise ParameterError(
            f'invalid input syntax for type {kind}: "{text[:100]}"', sqlstate="22007", hint=_HINT
        )
    if (match["era"] or "").strip().upper() == "BC":
        raise _out_of_range(text, kind)
    clock = [int(match[part] or 0) for part in ("hour", "minute", "second")]
    micro = round(Decimal(f"0.{match['fraction'] or 0}") * 10**6)
    if clock[0] > 24 or clock[1] > 59 or clock[2] > 60 or (clock[0] == 24 and (clock[1:] != [0, 0] or micro)):
        raise _out_of_range(text, kind)
    length = timedelta(hours=clock[0], minutes=clock[1], seconds=clock[2], microseconds=micro)
    try:
        return datetime(int(match["year"]), int(match["month"]), int(match["day"])) + length, _zone(match)
    except (ValueError, OverflowError):
        raise _out_of_range(text, kind) from None


def _zone(match: re.Match[str]) -> timezone | None:
    if match["utc"]:
        return UTC
    if match["zone"] is None:
        return None
    hours, minutes, seconds = [int(match[f"zone_{part}"] or 0) for part in ("hour", "minute", "second")]
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-offset if match["zone"] == "-" else offset)


def _out_of_range(text: str, kind: str) -> ParameterError:
    return ParameterError(
        f'{kind} out of range: "{text[:100]}"', sqlstate="22008", hint="Years 1 to 9999 are read."
    )
