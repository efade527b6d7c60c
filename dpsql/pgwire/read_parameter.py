"""A bound parameter's bytes -> its value, in text or in Postgres' binary format."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from .messages import Format, ParameterError
from .oids import ELEMENTS, TYPES, Interval, Oid
from .write_binary import EPOCH, INTERVAL, MAX_SCALE, MAX_WHOLE_DIGITS, read_numeric

# --- Postgres' text of an array: `{1,NULL,"a \\"b\\""}` -----------------------------------------------------


_ELEMENT = re.compile(
    r"""[ \t\n\r\f\v]*+
        (?: "(?P<quoted>(?:[^"\\]|\\.)*+)" [ \t\n\r\f\v]*+
          | (?P<plain>(?:[^",{}\\]|\\.)*+) )
        (?P<end>[,}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED_ITEM = re.compile(r"\\(.)", re.DOTALL)


def _split_array(text: str) -> list[str | None]:
    """Return the texts of the elements. Raises ParameterError: not an array of one dimension (22P02, 0A000)."""
    word = text.strip(" \t\n\r\f\v")
    if word.startswith(("[", "{{")):
        raise ParameterError(
            "an array of more than one dimension, or with bounds, is not read", sqlstate="0A000"
        )
    if word.startswith("{") and word.endswith("}") and not word[1:-1].strip(" \t\n\r\f\v"):
        return []
    if not word.startswith("{"):
        raise _malformed(text)
    parts: list[str | None] = []
    at = 1
    while True:
        match = _ELEMENT.match(word, at)
        if match is None:
            raise _malformed(text)
        parts.append(_element(match, text))
        at = match.end()
        if match["end"] == "}":
            break
    if at != len(word):
        raise _malformed(text)
    return parts


def _element(match: re.Match[str], text: str) -> str | None:
    if (quoted := match["quoted"]) is not None:
        return _ESCAPED_ITEM.sub(r"\1", quoted)
    plain = match["plain"].rstrip(" \t\n\r\f\v")
    if not plain:
        raise _malformed(text)
    return None if plain.lower() == "null" else _ESCAPED_ITEM.sub(r"\1", plain)


def _malformed(text: str) -> ParameterError:
    return ParameterError(f'malformed array literal: "{text[:100]}"', sqlstate="22P02")


# --- dates and timestamps in text: ISO 8601, and what drivers write -----------------------------------------


_TIMESTAMP = re.compile(
    r"(?P<year>[0-9]{4,6})-?(?P<month>[0-9]{2})-?(?P<day>[0-9]{2})"
    r"(?:(?:[ T]+)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{0,9}))?)?)?"
    r" *(?:(?P<utc>Z|UTC|GMT)|(?P<zone>[+-])(?P<zone_hour>[0-9]{1,2})"
    r"(?::?(?P<zone_minute>[0-9]{2})(?::?(?P<zone_second>[0-9]{2}))?)?)?"
    r"(?P<era> +(?:AD|BC))?",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{0,9}))?)?"
    r" *(?:Z|UTC|GMT|[+-][0-9]{1,2}(?::?[0-9]{2})?)?",
    re.IGNORECASE,
)
_LONGEST_DATE = 100
_SPECIAL = frozenset({"infinity", "-infinity", "+infinity"})
_HINT = "Write it as 2024-12-31, 2024-12-31 23:59:59 or 2024-12-31 23:59:59+00."


def _read_date(text: str) -> date:
    """Return a date; a time after it is dropped, as Postgres does. Raises ParameterError (22007, 22008)."""
    return _moment(text, "date")[0].date()


def _read_time(text: str) -> time:
    """Return a time of day before 24:00; a zone after it is dropped, as Postgres does. Raises ParameterError."""
    word = text.strip()
    match = _TIME.fullmatch(word) if len(word) <= _LONGEST_DATE else None
    if match is None:
        raise ParameterError(
            f'invalid input syntax for type time: "{text[:100]}"',
            sqlstate="22007",
            hint="Write it as 23:59:59.",
        )
    clock = [int(match[part] or 0) for part in ("hour", "minute", "second")]
    micro = round(Decimal(f"0.{match['fraction'] or 0}") * 10**6)
    if clock[0] > 23 or clock[1] > 59 or clock[2] > 59 or micro > 999_999:
        raise _date_out_of_range(text, "time")
    return time(clock[0], clock[1], clock[2], micro)


def _read_timestamp(text: str) -> datetime:
    """Return a timestamp; a zone after it is dropped, as Postgres does. Raises ParameterError (22007, 22008)."""
    return _moment(text, "timestamp")[0]


def _read_timestamptz(text: str) -> datetime:
    """Return a timestamp with its zone; without one where the text has none: that is the session's.

    Raises ParameterError (22007, 22008).
    """
    moment, zone = _moment(text, "timestamp with time zone")
    return moment if zone is None else moment.replace(tzinfo=zone)


def _moment(text: str, kind: str) -> tuple[datetime, timezone | None]:
    word = text.strip()
    if word.lower() in _SPECIAL:
        raise _date_out_of_range(text, kind)
    match = _TIMESTAMP.fullmatch(word) if len(word) <= _LONGEST_DATE else None
    if match is None:
        raise ParameterError(
            f'invalid input syntax for type {kind}: "{text[:100]}"', sqlstate="22007", hint=_HINT
        )
    if (match["era"] or "").strip().upper() == "BC":
        raise _date_out_of_range(text, kind)
    clock = [int(match[part] or 0) for part in ("hour", "minute", "second")]
    micro = round(Decimal(f"0.{match['fraction'] or 0}") * 10**6)
    if clock[0] > 24 or clock[1] > 59 or clock[2] > 60 or (clock[0] == 24 and (clock[1:] != [0, 0] or micro)):
        raise _date_out_of_range(text, kind)
    length = timedelta(hours=clock[0], minutes=clock[1], seconds=clock[2], microseconds=micro)
    try:
        return datetime(int(match["year"]), int(match["month"]), int(match["day"])) + length, _zone(match)
    except (ValueError, OverflowError):
        raise _date_out_of_range(text, kind) from None


def _zone(match: re.Match[str]) -> timezone | None:
    if match["utc"]:
        return UTC
    if match["zone"] is None:
        return None
    hours, minutes, seconds = [int(match[f"zone_{part}"] or 0) for part in ("hour", "minute", "second")]
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-offset if match["zone"] == "-" else offset)


def _date_out_of_range(text: str, kind: str) -> ParameterError:
    return ParameterError(
        f'{kind} out of range: "{text[:100]}"', sqlstate="22008", hint="Years 1 to 9999 are read."
    )


# --- intervals in text --------------------------------------------------------------------------------------


_LONGEST_INTERVAL = 300
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
_PART = r"([+-]?[0-9]{1,20}(?:[.,][0-9]{1,20})?)"
_ISO = re.compile(
    rf"P(?=[0-9T+-])(?:{_PART}Y)?(?:{_PART}M)?(?:{_PART}W)?(?:{_PART}D)?"
    rf"(?:T(?=[0-9+-])(?:{_PART}H)?(?:{_PART}M)?(?:{_PART}S)?)?"
)
_ISO_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")


def _read_interval(text: str) -> Interval:
    """Return an interval. Raises ValueError: the text is none; ParameterError (22008): beyond Postgres' range."""
    word = text.strip()
    if len(word) > _LONGEST_INTERVAL:
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


# --- parameters in text, as Postgres reads them -------------------------------------------------------------


TextReader = Callable[[str], Any]
"""Raises ValueError where the text is not of the type, ParameterError where more can be said."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?", re.IGNORECASE)
_INFINITY = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_MAX_LENGTH = 200_000
_SPACES = " \t\n\r\f\v"
_TRUE = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})
_ESCAPED = re.compile(r"(?:[^\\]|\\\\|\\[0-3][0-7]{2})*+", re.DOTALL)
_ESCAPE = re.compile(rb"\\(\\|[0-7]{3})")
_FLOAT4 = struct.Struct(">f")


def _text_boolean(text: str) -> bool:
    word = text.strip(_SPACES).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError


def _integer(oid: Oid, low: int, high: int) -> TextReader:
    longest = len(str(high))

    def read(text: str) -> int:
        word = text.strip(_SPACES)
        if not _INTEGER.fullmatch(word):
            raise ValueError
        digits = word.lstrip("+-").lstrip("0")
        value = int(word[: word[0] in "+-"] + (digits or "0")) if len(digits) <= longest else high + 1
        if not low <= value <= high:
            raise _beyond(oid, text)
        return value

    return read


def _numeric(text: str) -> Decimal:
    word = text.strip(_SPACES)
    if special := _special(word):
        return Decimal(special)
    if not _NUMBER.fullmatch(word):
        raise ValueError
    if len(word) > _MAX_LENGTH:
        raise _beyond(Oid.NUMERIC, text)
    try:
        number = Decimal(word)
    except ArithmeticError:
        raise _beyond(Oid.NUMERIC, text) from None
    _, _, exponent = number.as_tuple()
    if (
        isinstance(exponent, str)
        or -exponent > MAX_SCALE
        or exponent + len(number.as_tuple().digits) > MAX_WHOLE_DIGITS
    ):
        raise _beyond(Oid.NUMERIC, text)
    return number if number else abs(number)


def _float8(text: str) -> float:
    return _float(text, Oid.FLOAT8)


def _float4(text: str) -> float:
    value = _float(text, Oid.FLOAT4)
    try:
        (single,) = _FLOAT4.unpack(_FLOAT4.pack(value))
    except OverflowError:
        raise _beyond(Oid.FLOAT4, text) from None
    if value and not single:
        raise _beyond(Oid.FLOAT4, text)
    return float(single)


def _float(text: str, oid: Oid) -> float:
    word = text.strip(_SPACES)
    if special := _special(word):
        return float(special)
    if not _NUMBER.fullmatch(word):
        raise ValueError
    if len(word) > _MAX_LENGTH:
        raise _beyond(oid, text)
    value = float(word)
    mantissa = re.split("[eE]", word, maxsplit=1)[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("+-0.")):
        raise _beyond(oid, text)
    return value


def _special(word: str) -> str | None:
    if word.lower() == "nan":
        return "NaN"
    match = _INFINITY.fullmatch(word)
    return f"{match[1]}Infinity" if match else None


def _bytea(text: str) -> bytes:
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    if not _ESCAPED.fullmatch(text):
        raise ValueError
    return _ESCAPE.sub(lambda match: b"\\" if match[1] == b"\\" else bytes([int(match[1], 8)]), text.encode())


def _beyond(oid: Oid, text: str) -> ParameterError:
    return ParameterError(
        f'value "{text[:100]}" is out of range for type {TYPES[oid].name}', sqlstate="22003"
    )


def _text_array(read: TextReader) -> TextReader:
    return lambda text: [None if part is None else read(part) for part in _split_array(text)]


def _vector(read: TextReader) -> TextReader:
    return lambda text: [read(part) for part in text.split()]


_OID = _integer(Oid.OID, 0, 2**32 - 1)

_TEXT_SCALARS: dict[int, TextReader] = {
    Oid.BOOL: _text_boolean,
    Oid.BYTEA: _bytea,
    Oid.INT2: _integer(Oid.INT2, -(2**15), 2**15 - 1),
    Oid.INT4: _integer(Oid.INT4, -(2**31), 2**31 - 1),
    Oid.INT8: _integer(Oid.INT8, -(2**63), 2**63 - 1),
    Oid.OID: _OID,
    Oid.XID: _OID,
    **dict.fromkeys(
        (Oid.CHAR, Oid.NAME, Oid.TEXT, Oid.VARCHAR, Oid.BPCHAR, Oid.UNKNOWN, Oid.JSON, Oid.JSONB), str
    ),
    **dict.fromkeys((Oid.REGPROC, Oid.REGCLASS, Oid.REGTYPE, Oid.REGNAMESPACE, Oid.REGROLE), str),
    Oid.FLOAT4: _float4,
    Oid.FLOAT8: _float8,
    Oid.NUMERIC: _numeric,
    Oid.DATE: _read_date,
    Oid.TIME: _read_time,
    Oid.TIMESTAMP: _read_timestamp,
    Oid.TIMESTAMPTZ: _read_timestamptz,
    Oid.INTERVAL: _read_interval,
}

TEXT_READERS: MappingProxyType[int, TextReader] = MappingProxyType(
    {
        **_TEXT_SCALARS,
        **{
            oid: _text_array(_TEXT_SCALARS[element])
            for oid, element in ELEMENTS.items()
            if element in _TEXT_SCALARS
        },
        Oid.INT2VECTOR: _vector(_TEXT_SCALARS[Oid.INT2]),
        Oid.OIDVECTOR: _vector(_OID),
    }
)
"""A type -> the function that reads its values. The reg… types are read as the name or number that was written."""


# --- parameters in Postgres' binary format ------------------------------------------------------------------


Reader = Callable[[bytes], Any]
"""Raises ValueError or struct.error where the bytes are not of the type, ParameterError where more can be said."""

_ARRAY_HEAD = struct.Struct(">iiI")
_DIMENSION = struct.Struct(">ii")


def _unpack(code: str) -> Reader:
    unpack = struct.Struct(f">{code}").unpack
    return lambda data: unpack(data)[0]


_INT4 = _unpack("i")
_INT8 = _unpack("q")


def _boolean(data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError
    return data != b"\0"


def _char(data: bytes) -> str:
    if len(data) != 1:
        raise ValueError
    return "" if data == b"\0" else _decode_text(data)


def _jsonb(data: bytes) -> str:
    if data[:1] != b"\1":
        raise ValueError
    return _decode_text(data[1:])


def _decode_text(data: bytes) -> str:
    """Return a text. Raises ParameterError: it is not UTF-8, or holds a zero byte."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ParameterError("a text parameter is not UTF-8", sqlstate="22021") from None
    if "\0" in text:
        raise ParameterError("a text parameter holds a zero byte", sqlstate="22021")
    return text


def _date(data: bytes) -> date:
    try:
        return EPOCH.date() + timedelta(days=_INT4(data))
    except OverflowError:
        raise _out_of_range(Oid.DATE) from None


def _time(data: bytes) -> time:
    length = _INT8(data)
    if not 0 <= length < 86_400 * 10**6:
        raise ParameterError(f"a parameter of type {TYPES[Oid.TIME].name} is out of range", sqlstate="22008")
    return (EPOCH + timedelta(microseconds=length)).time()


def _timestamp(data: bytes) -> datetime:
    try:
        return EPOCH + timedelta(microseconds=_INT8(data))
    except OverflowError:
        raise _out_of_range(Oid.TIMESTAMP) from None


def _timestamptz(data: bytes) -> datetime:
    return _timestamp(data).replace(tzinfo=UTC)


def _interval(data: bytes) -> Interval:
    microseconds, days, months = INTERVAL.unpack(data)
    return Interval(months, days, microseconds)


def _out_of_range(oid: Oid) -> ParameterError:
    return ParameterError(
        f"a parameter of type {TYPES[oid].name} is out of range",
        sqlstate="22008",
        hint="Years 1 to 9999 are read.",
    )


def _array(read: Reader, element: int) -> Reader:
    def read_array(data: bytes) -> list[Any]:
        dimensions, _, oid = _ARRAY_HEAD.unpack_from(data)
        if dimensions not in (0, 1) or oid != element:
            raise ParameterError("an array of this shape or element type is not read", sqlstate="0A000")
        if not dimensions:
            if len(data) != _ARRAY_HEAD.size:
                raise ValueError
            return []
        count, _ = _DIMENSION.unpack_from(data, _ARRAY_HEAD.size)
        at = _ARRAY_HEAD.size + _DIMENSION.size
        if not 0 <= 4 * count <= len(data) - at:
            raise ValueError
        values: list[Any] = []
        for _ in range(count):
            length = _INT4(data[at : at + 4])
            at += 4
            if length < -1 or length > len(data) - at:
                raise ValueError
            values.append(None if length < 0 else read(data[at : at + length]))
            at += max(length, 0)
        if at != len(data):
            raise ValueError
        return values

    return read_array


_SCALARS: dict[int, Reader] = {
    Oid.BOOL: _boolean,
    Oid.BYTEA: bytes,
    Oid.INT2: _unpack("h"),
    Oid.INT4: _INT4,
    Oid.INT8: _INT8,
    **dict.fromkeys((Oid.OID, Oid.XID, Oid.REGPROC, Oid.REGCLASS, Oid.REGTYPE), _unpack("I")),
    **dict.fromkeys((Oid.REGNAMESPACE, Oid.REGROLE), _unpack("I")),
    **dict.fromkeys((Oid.NAME, Oid.TEXT, Oid.VARCHAR, Oid.BPCHAR, Oid.UNKNOWN, Oid.JSON), _decode_text),
    Oid.CHAR: _char,
    Oid.JSONB: _jsonb,
    Oid.FLOAT4: _unpack("f"),
    Oid.FLOAT8: _unpack("d"),
    Oid.NUMERIC: read_numeric,
    Oid.DATE: _date,
    Oid.TIME: _time,
    Oid.TIMESTAMP: _timestamp,
    Oid.TIMESTAMPTZ: _timestamptz,
    Oid.INTERVAL: _interval,
}

BINARY_READERS: MappingProxyType[int, Reader] = MappingProxyType(
    {
        **_SCALARS,
        **{
            oid: _array(_SCALARS[element], element)
            for oid, element in ELEMENTS.items()
            if element in _SCALARS
        },
    }
)
"""A type -> the function that reads its values. The reg… types are read as their OID."""


# --- a bound parameter's bytes -> its value -----------------------------------------------------------------


def read_parameter(oid: int, format: Format, data: bytes | None) -> Any:
    """Return a parameter's value: None, bool, int, float, Decimal, str, bytes, date, datetime, Interval, or a list.

    `oid`: the type that the statement gives the parameter. Raises ParameterError: the bytes are not of the type
    (22P02 in text, 22P03 in binary, 22003, 22007, 22008, 22015, 22021), or it is not read here (0A000).
    """
    if data is None:
        return None
    readers: Mapping[int, Callable[[Any], Any]] = TEXT_READERS if format is Format.TEXT else BINARY_READERS
    reader = readers.get(oid)
    if reader is None:
        raise ParameterError(
            f"a parameter of type {TYPES[oid].name if oid in TYPES else oid} cannot be read",
            sqlstate="0A000",
            hint="Send it as text, and cast it in the statement.",
        )
    if format is Format.BINARY:
        try:
            return reader(data)
        except (ValueError, struct.error):
            message = f"incorrect binary data for a parameter of type {TYPES[oid].name}"
            raise ParameterError(message, sqlstate="22P03") from None
    text = _decode_text(data)
    try:
        return reader(text)
    except ValueError:
        message = f'invalid input syntax for type {TYPES[oid].name}: "{text[:100]}"'
        raise ParameterError(message, sqlstate="22P02") from None
