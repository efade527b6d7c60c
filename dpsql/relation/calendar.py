"""Calendar arithmetic on the integers that stand for dates (days) and timestamps (microseconds).

House rule: nothing here raises, whatever the integer. `datetime` ends at the years 1 and 9999; an engine's
dates go on, so bounds beyond them are widened and texts are computed from the 400-year cycle.

What to_char writes of a moment: the parts of a format, and the text of a moment.

House rule: a pattern of Postgres that is not on the list is refused where the format is read, never written as
plain letters; names are English, as in its "C" locale.

What the clocks of a zone show, as steps over instants: the same integers for every engine.

    >>> clock_steps("Europe/Berlin", parse("2024-03-01"), parse("2024-05-01"))
    one hour, from 2024-03-31 01:00 on two

Engines bring zone databases of their own, which may differ; so the steps are read here, from Python's, and printed.
A time that clocks skip is read by what they showed before, one that they show twice is the later one, as Postgres
resolves both: so what a clock showed changes its meaning at one reading, the first that the change leads to.

House rule: nothing here raises, whatever the integers and for every name that `zone_names` has.
"""

from __future__ import annotations

import calendar
import datetime
import itertools
import re
import zoneinfo
from bisect import bisect_right
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, lru_cache

from ..records import dataclass
from ..regex import regex
from .expressions import LiteralValue, Months
from .types import Kind, SqlType

DAY = 86_400_000_000
_EPOCH = datetime.date(1970, 1, 1)
_EPOCH_MOMENT = datetime.datetime(1970, 1, 1)
_CYCLE = 146_097
"""Days of 400 years, after which the calendar repeats."""
_FIRST = (datetime.date(1600, 1, 1) - _EPOCH).days
"""A day that starts a cycle."""
_WIDTHS = {"week": 7 * DAY, "day": DAY, "hour": DAY // 24, "minute": DAY // 1440}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_DATE = regex(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})|([0-9]{4})([0-9]{2})([0-9]{2})")
_TIME = regex(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(?:\s*(?:[zZ]|[+-]00(?::?00)?))?")
_UTC = regex(r"[+-]00(?::?00)?")
_DATE_IN_ZONE = regex(r"(.*[0-9])(?:\s*[zZ]|\s+[+-](?:0?[0-9]|1[0-5])(?::?[0-5][0-9])?)")
"""A date and a zone, as drivers write it: 2024-03-01 +00."""

EXTRACT_FIELDS = {
    "year": None, "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "doy": (1, 366),
    "dow": (0, 6), "isodow": (1, 7), "hour": (0, 23), "minute": (0, 59), "isoyear": None,
}  # fmt: skip
"""Field of EXTRACT -> its range; None: from the bounds of the argument."""

EXACT_FIELDS = ("second", "epoch")
"""Fields of EXTRACT that have a fraction: seconds, and seconds since 1970-01-01."""

TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
"""Units of date_trunc, coarsest first."""


def calendar_ends(type_: SqlType) -> tuple[int, int]:
    """Return the first and last value of the years 1 to 9999: days of a DATE, microseconds of a TIMESTAMP."""
    first, last = -719_162, 2_932_896
    return (first, last) if type_.kind is Kind.DATE else (first * DAY, (last + 1) * DAY - 1)


def age_of(later: int, earlier: int) -> int:
    """Return the age between two moments in microseconds, a month of 30 days."""
    if later < earlier:
        return -age_of(earlier, later)
    (months, within), (before, since) = _by_month(later), _by_month(earlier)
    days = calendar.monthrange(before // 12, before % 12 + 1)[1]
    taken = (days - 30) * DAY if within < since else 0
    return (months - before) * 30 * DAY + within - since + taken


def _by_month(moment: int) -> tuple[int, int]:
    """Return the month of a moment, counted from year 0, and the microseconds within it."""
    day, clock = divmod(moment, DAY)
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=day)
    return date.year * 12 + date.month - 1, (date.day - 1) * DAY + clock


def parse_date(text: str) -> int | None:
    """Return days since 1970-01-01 for YYYY-MM-DD or YYYYMMDD; None when it is not one."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups() if part is not None)
    try:
        return (datetime.date(year, month, day) - _EPOCH).days
    except ValueError:
        return None


def parse_timestamp(text: str) -> int | None:
    """Return microseconds since 1970-01-01 for a date, or a date and a time without zone or in UTC; None for others."""
    date, _, time = text.strip().replace("T", " ", 1).partition(" ")
    days = parse_date(date)
    if days is None or not time or _UTC.fullmatch(time.strip()):
        return None if days is None else days * DAY
    since = parse_time(time)
    return None if since is None else days * DAY + since


def parse_time(text: str) -> int | None:
    """Return microseconds since midnight for a time of day without zone or in UTC, before 24:00; None for others."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match[4] or "").ljust(6, "0"))
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction


_ZONED = regex(r"(.*[0-9:. T][0-9.:]+?)\s*([+-])([0-9]{1,2})(?::?([0-9]{2}))?")


def parse_zoned(text: str) -> int | None:
    """Return microseconds since 1970-01-01 in UTC of a moment with its distance from UTC; None for others."""
    known = parse_timestamp(text)
    match = _ZONED.fullmatch(text.strip())
    if known is not None or match is None or ":" not in match[1]:
        return known
    local, hours, minutes = parse_timestamp(match[1]), int(match[3]), int(match[4] or 0)
    if local is None or hours > 15 or minutes > 59:
        return None
    shift = (hours * 60 + minutes) * 60_000_000
    return local - shift if match[2] == "+" else local + shift


def parse_day(text: str) -> int | None:
    """Return days since 1970-01-01 for a date, or for a moment its date as written: a DATE leaves time and zone out."""
    days = parse_date(text)
    if days is not None:
        return days
    if parse_zoned(text) is not None:
        return parse_date(text.strip().replace("T", " ", 1).partition(" ")[0])
    match = _DATE_IN_ZONE.fullmatch(text.strip())
    return None if match is None else parse_date(match[1])


def date_text(days: int) -> str:
    """Return the ISO text of a date; years before 1 as the engine writes them, with (BC)."""
    cycles = (days - _FIRST) // _CYCLE
    inside = _EPOCH + datetime.timedelta(days=days - cycles * _CYCLE)
    year, ending = inside.year + 400 * cycles, f"-{inside.month:02d}-{inside.day:02d}"
    return f"{year:04d}{ending}" if year > 0 else f"{1 - year:04d}{ending} (BC)"


def time_text(microseconds: int) -> str:
    """Return the text of a time of day."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return time + (f".{fraction:06d}" if fraction else "")


def timestamp_text(microseconds: int) -> str:
    """Return the ISO text of a timestamp, with a space, as Postgres prints it."""
    days, rest = divmod(microseconds, DAY)
    date, _, era = date_text(days).partition(" ")
    shown = f"{date} {time_text(rest)}"
    return f"{shown} {era}" if era else shown


def _moment(value: Fraction, type_: SqlType) -> datetime.datetime:
    microseconds = int(value // 1) * (DAY if type_.kind is Kind.DATE else 1)
    return _EPOCH_MOMENT + datetime.timedelta(microseconds=microseconds)


def _microseconds(moment: datetime.datetime) -> int:
    return (moment - _EPOCH_MOMENT) // datetime.timedelta(microseconds=1)


def _floor(unit: str, moment: datetime.datetime) -> datetime.datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "minute":
        return moment.replace(second=0, microsecond=0)
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - datetime.timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    if unit == "year":
        return day.replace(month=1, day=1)
    return day


def truncate_bounds(unit: str, lo: Fraction, hi: Fraction, type_: SqlType) -> tuple[Fraction, Fraction]:
    """Return the range of date_trunc(unit, x), in microseconds, for x in [lo, hi]."""
    try:
        ends = [_microseconds(_floor(unit, _moment(end, type_))) for end in (lo, hi)]
    except OverflowError:
        scale = DAY if type_.kind is Kind.DATE else 1
        return lo * scale - 366 * DAY, hi * scale
    return Fraction(ends[0]), Fraction(ends[1])


def truncated(unit: str, microseconds: int) -> int | None:
    """Return date_trunc(unit, x) of a moment; None outside the years 1 to 9999."""
    try:
        return _microseconds(_floor(unit, _EPOCH_MOMENT + datetime.timedelta(microseconds=microseconds)))
    except OverflowError:
        return None


def seconds(name: str, microseconds: int) -> Fraction:
    """Return EXTRACT(name FROM x) of a moment for one of EXACT_FIELDS."""
    return Fraction(microseconds if name == "epoch" else microseconds % (60 * 10**6), 10**6)


def extracted(name: str, microseconds: int) -> int | None:
    """Return EXTRACT(name FROM x) of a moment, but of EXACT_FIELDS; None outside the years 1 to 9999."""
    try:
        moment = _EPOCH_MOMENT + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    if name in ("week", "isoyear"):
        return moment.isocalendar()[name == "week"]
    if name in ("dow", "isodow"):
        return moment.isoweekday() % (7 if name == "dow" else 8)
    if name == "doy":
        return moment.timetuple().tm_yday
    return (moment.month + 2) // 3 if name == "quarter" else int(getattr(moment, name))


def step_units(unit: str, lo: int, hi: int, limit: int) -> list[int] | None:
    """Return all values of date_trunc(unit, ·) in [lo, hi] microseconds; None when there are over `limit`.

    None too for moments outside the years 1 to 9999: such a range has no list.
    """
    try:
        moment = _floor(unit, _EPOCH_MOMENT + datetime.timedelta(microseconds=lo))
        last = _EPOCH_MOMENT + datetime.timedelta(microseconds=hi)
    except OverflowError:
        return None
    found: list[int] = []
    while moment <= last:
        if len(found) >= limit:
            return None
        found.append(_microseconds(moment))
        after = _next(unit, moment)
        if after is None:
            break
        moment = after
    return found


def _next(unit: str, moment: datetime.datetime) -> datetime.datetime | None:
    """Return the start of the unit after the one that starts at `moment`; None past the year 9999."""
    months = _MONTHS.get(unit)
    try:
        if months is None:
            return moment + datetime.timedelta(microseconds=_WIDTHS[unit])
        total = moment.year * 12 + moment.month - 1 + months
        return moment.replace(year=total // 12, month=total % 12 + 1)
    except (OverflowError, ValueError):
        return None


def extract_bounds(
    name: str, lo: Fraction | None, hi: Fraction | None, type_: SqlType
) -> tuple[Fraction, Fraction, bool] | None:
    """Return (lowest, highest, whole numbers only) of EXTRACT(name FROM x), x in [lo, hi]; None: unknown."""
    fixed = EXTRACT_FIELDS.get(name)
    if fixed is not None:
        return Fraction(fixed[0]), Fraction(fixed[1]), True
    if lo is None or hi is None:
        return None
    try:
        first, last = _moment(lo, type_), _moment(hi, type_)
    except OverflowError:
        return None
    if name == "isoyear":
        return Fraction(first.isocalendar()[0]), Fraction(last.isocalendar()[0]), True
    return Fraction(first.year), Fraction(last.year), True


def shift_bounds(
    lo: Fraction | None, hi: Fraction | None, type_: SqlType, interval: LiteralValue, sign: int
) -> tuple[Fraction | None, Fraction | None]:
    """Return bounds in microseconds of x ± interval for x in [lo, hi]; a month is 28 to 31 days."""
    if lo is None or hi is None or not isinstance(interval, Months):
        return None, None
    scale = DAY if type_.kind is Kind.DATE else 1
    fixed = interval.days * DAY + interval.microseconds
    months = [interval.months * 28 * DAY, interval.months * 31 * DAY]
    moves = [sign * (fixed + month) for month in months]
    return lo * scale + min(moves), hi * scale + max(moves)


# --- what to_char writes of a moment: the parts of a format, and the text of a moment -----------------------


_NAMED = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBERS = {
    "YYYY": ("year", 4), "IYYY": ("isoyear", 4), "YY": ("year", 2), "Q": ("quarter", 1), "MM": ("month", 2),
    "IW": ("week", 2), "DDD": ("doy", 3), "DD": ("day", 2), "D": ("dow", 1), "ID": ("isodow", 1), "HH24": ("hour", 2),
    "MI": ("minute", 2),
}  # fmt: skip
_NAMES = {
    "MONTH": ("month", _NAMED, 9),
    "MON": ("month", _NAMED, 3),
    "DAY": ("isodow", _DAYS, 9),
    "DY": ("isodow", _DAYS, 3),
}
_CASES: dict[str, Callable[[str], str]] = {"upper": str.upper, "lower": str.lower, "title": str.title}
FORMAT_PATTERNS = (
    "YYYY", "YY", "IYYY", "Q", "MM", "Month", "Mon", "IW", "DDD", "DD", "Day", "Dy", "D", "ID", "HH24", "MI",
)  # fmt: skip
"""What is written, for the manual and for hints; FM before one leaves blanks and zeros out."""

_WORDS = sorted({*_NUMBERS, *_NAMES}, key=len, reverse=True)
_TOKEN = regex(rf'"[^"]*"|(?:FM)?(?:IDDD|{"|".join(_WORDS)})|[^A-Za-z0-9"\\]|.', re.IGNORECASE | re.DOTALL)
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


MAX_CHANGES = 100
"""Most changes of a zone's clocks within bounds: fifty years of summer times."""
MAX_YEARS = 300
"""Most years between bounds; each is looked through day by day, once."""

_UTC_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND = 1_000_000
_FIRST_YEAR, _LAST_YEAR = 2, 9998
_MOST_WIDTHS = {"year": 370 * DAY, "quarter": 95 * DAY, "month": 32 * DAY, "week": 7 * DAY, "day": DAY}
"""Unit that is counted by the clocks once it is cut -> a time that leads from its start into the next one."""


@cache
def zone_names() -> frozenset[str]:
    """Return the names of zones, of places alone."""
    return frozenset(
        name for name in zoneinfo.available_timezones() if "/" in name and not name.startswith("Etc/")
    )


@dataclass(frozen=True, slots=True)
class Steps:
    """Microseconds to add to a moment: `first`, and from each moment of `changes` on what stands beside it."""

    first: int
    changes: tuple[tuple[int, int], ...]

    def at(self, moment: int) -> int:
        """Return what is added to a moment."""
        place = bisect_right([start for start, _ in self.changes], moment)
        return self.first if place == 0 else self.changes[place - 1][1]

    def ends(self, lo: int, hi: int) -> Iterator[int]:
        """Yield the first and last moment of each step in [lo, hi]."""
        yield from (lo, hi)
        for start, _ in self.changes:
            if lo < start <= hi:
                yield from (start - 1, start)

    def span(self, lo: int, hi: int) -> tuple[int, int]:
        """Return the least and greatest moment that those in [lo, hi] become."""
        moved = [moment + self.at(moment) for moment in self.ends(lo, hi)]
        return min(moved), max(moved)


def _steps(first: int, changes: list[tuple[int, int]], lo: int, hi: int) -> Steps:
    """Return steps as they are in (lo, hi], neighbours of one value as one."""
    kept: list[tuple[int, int]] = []
    for start, value in sorted(changes):
        if start <= lo:
            first = value
        elif start <= hi and value != (kept[-1][1] if kept else first):
            kept.append((start, value))
    return Steps(first, tuple(kept))


def _offset(zone: zoneinfo.ZoneInfo, second: int) -> int:
    shift = (_UTC_EPOCH + datetime.timedelta(seconds=second)).astimezone(zone).utcoffset()
    assert shift is not None
    return shift // datetime.timedelta(microseconds=1)


@lru_cache(maxsize=4096)
def _changes_in(name: str, year: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return what the clocks are ahead of UTC when a year begins, and its changes: (moment, ahead from then on).

    No zone has had two changes within a day that undid each other; that is tested for every zone.
    """
    zone = zoneinfo.ZoneInfo(name)
    start, end = (
        (datetime.datetime(y, 1, 1, tzinfo=datetime.UTC) - _UTC_EPOCH) // datetime.timedelta(seconds=1)
        for y in (year, year + 1)
    )
    first = before = _offset(zone, start)
    changes = []
    for second in range(start, end, 86_400):
        after = _offset(zone, second + 86_400)
        if after == before:
            continue
        low, high = second, second + 86_400
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
        changes.append((high * _SECOND, after))
        before = after
    return first, tuple(changes)


def _year(moment: int) -> int | None:
    try:
        return (_UTC_EPOCH + datetime.timedelta(microseconds=moment)).year
    except OverflowError:
        return None


@lru_cache(maxsize=1024)
def clock_steps(zone: str, lo: int, hi: int) -> Steps | None:
    """Return what leads from the moments in [lo, hi] to what the clocks of a zone show.

    None where there are over MAX_CHANGES or MAX_YEARS, or the ends of the calendar are near.
    """
    first, last = _year(lo), _year(hi)
    if first is None or last is None or lo > hi:
        return None
    if first < _FIRST_YEAR or last > _LAST_YEAR or last - first >= MAX_YEARS:
        return None
    found: list[tuple[int, int]] = []
    for year in range(first, last + 1):
        found += _changes_in(zone, year)[1]
        if len(found) > MAX_CHANGES + 4:
            return None
    steps = _steps(_changes_in(zone, first)[0], found, lo, hi)
    return steps if len(steps.changes) <= MAX_CHANGES else None


@lru_cache(maxsize=1024)
def moment_steps(zone: str, lo: int, hi: int) -> Steps | None:
    """Return what leads from readings of a zone's clocks in [lo, hi] to their moments; None as `clock_steps`."""
    near = clock_steps(zone, lo - 2 * DAY, hi + 2 * DAY)
    if near is None:
        return None
    return _steps(-near.first, [(start + ahead, -ahead) for start, ahead in near.changes], lo, hi)


@lru_cache(maxsize=1024)
def back_steps(unit: str, zone: str, lo: int, hi: int) -> Steps | None:
    """Return what is added to the clocks of moments in [lo, hi], once they are cut to a unit, to be a moment again.

    Cut to an hour or a minute, clocks stay what they are ahead, as in Postgres. None as `clock_steps`.
    """
    clock = clock_steps(zone, lo, hi)
    if clock is None or unit not in _MOST_WIDTHS:
        return (
            None if clock is None else Steps(-clock.first, tuple((at, -ahead) for at, ahead in clock.changes))
        )
    first, last = clock.span(lo, hi)
    moments = moment_steps(zone, first - _MOST_WIDTHS[unit], last)
    if moments is None:
        return None
    starts = {_start_from(unit, reading) for reading, _ in moments.changes}
    edges = [lo, *(at for at, _ in clock.changes), hi + 1]
    changes: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(edges):
        ahead = clock.at(start)
        cut = truncated(unit, start + ahead)
        if cut is None:
            return None
        changes.append((start, moments.at(cut)))
        changes += [
            (at - ahead, moments.at(at)) for at in starts if at is not None and start < at - ahead < end
        ]
    return _steps(changes[0][1], changes, lo, hi)


def _start_from(unit: str, reading: int) -> int | None:
    """Return where a unit begins, at a reading of the clocks or next after it."""
    start = truncated(unit, reading)
    if start is None or start == reading:
        return start
    return truncated(unit, start + _MOST_WIDTHS[unit])


def cut_ends(unit: str, zone: str, lo: int, hi: int) -> tuple[int, int] | None:
    """Return the least and greatest date_trunc(unit, ·, zone) over [lo, hi]; None as `clock_steps`."""
    clock, back = clock_steps(zone, lo, hi), back_steps(unit, zone, lo, hi)
    if clock is None or back is None:
        return None
    found: list[int] = []
    for moment in (*clock.ends(lo, hi), *back.ends(lo, hi)):
        cut = truncated(unit, moment + clock.at(moment))
        if cut is None:
            return None
        found.append(cut + back.at(moment))
    return min(found), max(found)


def cut_values(unit: str, zone: str, lo: int, hi: int, limit: int) -> list[int] | None:
    """Return all values of date_trunc(unit, ·, zone) over [lo, hi], in order.

    None where there are over `limit`, and as `clock_steps`.
    """
    clock, back = clock_steps(zone, lo, hi), back_steps(unit, zone, lo, hi)
    if clock is None or back is None:
        return None
    edges = sorted({lo, hi + 1, *(at for at, _ in clock.changes), *(at for at, _ in back.changes)})
    found: set[int] = set()
    for start, end in itertools.pairwise(edges):
        ahead = clock.at(start)
        cuts = step_units(unit, start + ahead, end - 1 + ahead, limit)
        if cuts is None:
            return None
        found.update(cut + back.at(start) for cut in cuts)
        if len(found) > limit:
            return None
    return sorted(found)
