"""Dates, timestamps and intervals: chapters 9.8 and 9.9 of Postgres' manual, beside what there is below a release.

Formats of to_char, to_date and to_timestamp are constants. Each function of one takes a format of Postgres and returns
the SQL over {a}; `FormatError` names what is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from ....regex import regex
from ...calendar import FORMAT_PATTERNS
from ..row import ON_GROUPS, Syntax
from .signature import above

HIDDEN_BRACE = "\0"
"""What stands for a brace of a constant: no text of SQL holds it."""


class FormatError(ValueError):
    """A part of a format that is not read; the message is for the analyst."""


def _f(code: str) -> str:
    return f"strftime({{a}}, '{code}')"


def _padded(value: str, width: int) -> str:
    text = f"CAST({value} AS VARCHAR)"
    return f"CASE WHEN length({text}) < {width} THEN lpad({text}, {width}, '0') ELSE {text} END"


def _part(field: str) -> str:
    return f"extract('{field}' FROM {{a}})"


_HOUR12 = "((extract('hour' FROM {a}) + 11) % 12 + 1)"
_US = "(extract('microseconds' FROM {a}) % 1000000)"
_SECONDS = "(extract('hour' FROM {a}) * 3600 + extract('minute' FROM {a}) * 60 + extract('second' FROM {a}))"
_NUMBERS: dict[str, tuple[str, int]] = {
    "HH24": (_part("hour"), 2), "HH12": (_HOUR12, 2), "HH": (_HOUR12, 2), "MI": (_part("minute"), 2),
    "SSSSS": (_SECONDS, 0),
    "SSSS": (_SECONDS, 0),
    "SS": ("extract('second' FROM {a})", 2), "MS": (f"({_US} // 1000)", 3), "US": (_US, 6),
    "YYYY": (_part("year"), 4), "YYY": ("(extract('year' FROM {a}) % 1000)", 3),
    "YY": ("(extract('year' FROM {a}) % 100)", 2), "Y": ("(extract('year' FROM {a}) % 10)", 1),
    "IYYY": (_part("isoyear"), 4), "IYY": ("(extract('isoyear' FROM {a}) % 1000)", 3),
    "IY": ("(extract('isoyear' FROM {a}) % 100)", 2), "MM": (_part("month"), 2),
    "DDD": (_part("doy"), 3), "DD": (_part("day"), 2), "D": ("(extract('dow' FROM {a}) + 1)", 0),
    "ID": (_part("isodow"), 0), "IW": (_part("week"), 2), "WW": ("((extract('doy' FROM {a}) - 1) // 7 + 1)", 2),
    "W": ("((extract('day' FROM {a}) - 1) // 7 + 1)", 0), "Q": (_part("quarter"), 0),
    "CC": ("((extract('year' FROM {a}) + 99) // 100)", 2),
    "J": ("(datediff('day', TIMESTAMP '1970-01-01', {a}) + 2440588)", 0),
}  # fmt: skip
_TEXTS: dict[str, tuple[str, int]] = {
    "MONTH": (f"upper({_f('%B')})", 9), "Month": (_f("%B"), 9), "month": (f"lower({_f('%B')})", 9),
    "MON": (f"upper({_f('%b')})", 0), "Mon": (_f("%b"), 0), "mon": (f"lower({_f('%b')})", 0),
    "DAY": (f"upper({_f('%A')})", 9), "Day": (_f("%A"), 9), "day": (f"lower({_f('%A')})", 9),
    "DY": (f"upper({_f('%a')})", 0), "Dy": (_f("%a"), 0), "dy": (f"lower({_f('%a')})", 0),
    **{word: (_f("%p"), 0) for word in ("AM", "PM")}, **{word: (f"lower({_f('%p')})", 0) for word in ("am", "pm")},
    **dict.fromkeys(("A.M.", "P.M."), ("CASE WHEN extract('hour' FROM {a}) < 12 THEN 'A.M.' ELSE 'P.M.' END", 0)),
    **dict.fromkeys(("a.m.", "p.m."), ("CASE WHEN extract('hour' FROM {a}) < 12 THEN 'a.m.' ELSE 'p.m.' END", 0)),
}  # fmt: skip
_UNREAD = ("FX", "TM", "TZH", "TZM", "TZ", "OF", "RM", "BC", "AD", "B.C.", "A.D.", "FF1", "FF2", "FF3", "FF4", "FF5",
           "FF6", "Y,YYY", "SP", "TH", "I")  # fmt: skip
_WORDS = sorted([*_NUMBERS, *_TEXTS], key=len, reverse=True)


def moment_as_text(form: str) -> str:
    """Return to_char of a moment."""
    parts: list[str] = []
    at, is_bare = 0, False
    while at < len(form):
        rest = form[at:]
        if rest[:2].upper() == "FM":
            is_bare, at = True, at + 2
            continue
        quoted = re.match(r'"((?:[^"\\]|\\.)*)"', rest, re.DOTALL)
        if quoted:
            parts.append(constant(re.sub(r"\\(.)", r"\1", quoted[1])))
            at += quoted.end()
            continue
        word = next((one for one in _WORDS if rest.startswith(one) or _is_number(rest, one)), None)
        unread = next((one for one in _UNREAD if rest.upper().startswith(one)), None)
        if unread and (word is None or len(unread) > len(word)):
            raise FormatError(f"{rest[: len(unread)]} is not read in a format of moments")
        if word is None:
            if rest[0] in '"\\' or (rest[0].isalpha() and rest[0].upper() in "YMDHSWQJCI"):
                raise FormatError(f"{rest[0]} is not read in a format of moments")
            parts.append(constant(rest[0]))
            at += 1
            continue
        at += len(word)
        if form[at : at + 2].upper() == "TH":
            raise FormatError("TH is not read in a format of moments")
        parts.append(_shown(word, is_bare))
        is_bare = False
    return "concat(" + ", ".join(parts or ["''"]) + ")"


def _is_number(rest: str, word: str) -> bool:
    return word in _NUMBERS and rest[: len(word)].upper() == word


def _shown(word: str, is_bare: bool) -> str:
    if word in _TEXTS:
        sql, width = _TEXTS[word]
        return f"rpad({sql}, {width}, ' ')" if width and not is_bare else sql
    sql, width = _NUMBERS[word]
    whole = f"CAST({sql} AS BIGINT)"
    return f"CAST({whole} AS VARCHAR)" if is_bare or not width else _padded(whole, width)


def constant(text: str) -> str:
    """Return a text as SQL, within which no argument is put: its braces are marked until those are."""
    return "'" + text.replace("'", "''").replace("{", HIDDEN_BRACE) + "'"


# --- numbers ---------------------------------------------------------------------------------------------

_NUMBER = regex(r"(FM)?(S)?([09,G]*)(?:[.D]([09]*))?(S|MI)?", re.IGNORECASE)
_MOST_DIGITS = 18


def number_as_text(form: str, *, is_exact: bool = True) -> str:
    """Return to_char of a number. `is_exact`: halves go away from zero, as a numeric's do."""
    found = _NUMBER.fullmatch(form)
    if (
        found is None
        or not re.search("[09]", form)
        or (found[2] and found[5])
        or found[3][:1].upper() in (",", "G")
    ):
        raise FormatError(
            "a format of numbers is of 9, 0, comma and point, with FM before it and S or MI beside it"
        )
    bare, first, marks, digits, last = found.groups()
    marks, places = marks.upper().replace("G", ","), len(digits or "")
    count = sum(mark != "," for mark in marks)
    if places > 15 or count > _MOST_DIGITS:
        raise FormatError(f"a format of numbers has at most {_MOST_DIGITS} digits, and 15 after the point")
    zeros = count - marks.replace(",", "").index("0") if "0" in marks else 0
    point = digits is not None
    text = (
        f"CAST(CAST(CAST({{a}} AS VARCHAR) AS DECIMAL(38, {places})) AS VARCHAR)"
        if is_exact
        else f"printf('%.{places}f', {{a}})"
    )
    too_long = "CASE WHEN {a} < 0 THEN '-' ELSE '' END || repeat('9', 30)"
    shown = f"CASE WHEN abs(CAST({{a}} AS DOUBLE)) < 1e{_MOST_DIGITS + 1} THEN {text} ELSE {too_long} END"
    whole = "ltrim(split_part(ltrim(n, '-'), '.', 1), '0')"
    if not places:
        whole = f"CASE WHEN {whole} = '' THEN '0' ELSE {whole} END"
    parts = (
        "{'m': starts_with(n, '-'), 'w': lpad("
        + f"{whole}, CAST(greatest(length({whole}), {zeros}) AS INTEGER), '0'), 'f': "
        + ("split_part(n, '.', 2)" if places else "''")
        + "}"
    )
    kept = _grouped(marks, count)
    fraction = _fraction(digits or "", bool(bare)) if point else "''"
    if point and bare:
        kept = f"CASE WHEN w.w = '' AND {fraction} = '.' THEN '0' ELSE {kept} END"
    over = f"'{marks.replace('9', '#').replace('0', '#')}{'.' if point else ''}' || '{'#' * places}'"
    if not is_exact:  # Postgres prints fifteen digits of a double.
        over = over.replace(
            f"'{'#' * places}'", f"CASE WHEN length(w.w) < 15 THEN '{'#' * places}' ELSE '' END"
        )
    few = "true" if is_exact else f"length(w.w) + {places} <= 15"
    body = f"CASE WHEN length(w.w) > {count} THEN {over} WHEN {few} THEN ltrim({kept}, ' ') || {fraction} END"
    width = str(len(marks) + point + places)
    if not is_exact:
        width = f"CASE WHEN length(w.w) > {max(count, 14)} THEN {len(marks) + point} ELSE {width} END"
    inner = _signed(body, f"CAST({width} AS INTEGER)", (first or last or "").upper(), bool(first), bool(bare))
    return f"list_transform(list_transform([{shown}], lambda n: {parts}), lambda w: {inner})[1]"


def _grouped(marks: str, count: int) -> str:
    """Return the digits of the whole part with its commas: one that no digit stands before is not there."""
    padded, pieces, at = f"lpad(w.w, {max(count, 1)}, ' ')", [], 0
    for mark in marks:
        if mark == ",":
            pieces.append(f"CASE WHEN length(w.w) > {count - at} THEN ',' ELSE '' END")
        else:
            at += 1
            pieces.append(f"substring({padded}, {at}, 1)")
    return "(" + " || ".join(pieces or ["''"]) + ")"


def _fraction(digits: str, is_bare: bool) -> str:
    if not is_bare:
        return "'.' || w.f" if digits else "'.'"
    held = digits.rfind("0") + 1
    return f"'.' || left(w.f, {held}) || rtrim(substring(w.f, {held + 1}), '0')"


def _signed(body: str, width: str, sign: str, is_before: bool, is_bare: bool) -> str:
    minus = "CASE WHEN w.m THEN '-' ELSE {} END"
    if sign == "S" and is_before:
        shown, room = f"{minus.format(chr(39) + '+' + chr(39))} || {body}", f"{width} + 1"
    elif sign:
        plus = "'+'" if sign == "S" else "''" if is_bare else "' '"
        padded = body if is_bare else f"lpad({body}, {width}, ' ')"
        return f"{padded} || {minus.format(plus)}"
    else:
        shown, room = f"{minus.format(chr(39) * 2)} || {body}", f"{width} + 1"
    return f"({shown})" if is_bare else f"lpad({shown}, {room}, ' ')"


# --- reading ---------------------------------------------------------------------------------------------

_READ = {"YYYY": ("%Y", r"\d{4}"), "MM": ("%m", r"\d{1,2}"), "DD": ("%d", r"\d{1,2}"), "HH24": ("%H", r"\d{1,2}"),
         "MI": ("%M", r"\d{1,2}"), "SS": ("%S", r"\d{1,2}"), "US": ("%f", r"\d{6}"),
         "MS": ("%g", r"\d{3}")}  # fmt: skip


def parts_in(form: str) -> Iterator[tuple[str, str]]:
    """Yield what a format to read is made of, in order, each with its pattern: a word, or a sign between.

    Raises FormatError: it has letters that are none of them.
    """
    at = 0
    while at < len(form):
        word = next((one for one in _READ if form[at:].upper().startswith(one)), "")
        if not word and (form[at].isalnum() or form[at] in '"%\\'):
            raise FormatError("formats of YYYY, MM, DD, HH24, MI, SS, MS and US with signs between are read")
        part = word or form[at]
        yield part, _READ[word][1] if word else re.escape(part)
        at += len(part)


def _read(form: str, result: str) -> str:
    parts = list(parts_in(form))
    seen, pattern = {part for part, _ in parts}, "".join(one for _, one in parts)
    codes = "".join(_READ[part][0] if part in _READ else part for part, _ in parts)
    if "YYYY" not in seen or {"MS", "US"} <= seen:
        raise FormatError("a format to read has YYYY, and one of MS and US")
    text = "trim({a}, ' ')"
    moment = f"try_strptime({text}, {constant(codes)})"
    return f"CAST(CASE WHEN regexp_full_match({text}, {constant(pattern)}) THEN {moment} END AS {result})"


def text_as_date(form: str) -> str:
    """Return to_date of texts."""
    return _read(form, "DATE")


def text_as_moment(form: str) -> str:
    """Return to_timestamp of texts."""
    return _read(form, "TIMESTAMP")


_MONTHS = "(datepart('year', {a}) * 12 + datepart('month', {a}))"
_DAYS = "datepart('day', {a})"
_MICROSECONDS = (
    "(datepart('hour', {a}) * 3600000000 + datepart('minute', {a}) * 60000000 "
    "+ datepart('microseconds', {a}))"
)
_PARTS = "{'m': " + _MONTHS + ", 'd': " + _DAYS + ", 'u': " + _MICROSECONDS + "}"
_BOTH = "timestamp -> numeric; interval -> numeric"
_CLOCK = "clock -> numeric; interval -> numeric"

_FIELDS: dict[str, tuple[str, str, str, str]] = {
    "epoch": (_BOTH, "seconds since 1970, or of an interval", "epoch_us({a}) / 1e6", "epoch({a})"),
    "second": (_CLOCK, "seconds and their fraction", "extract('microseconds' FROM {a}) / 1e6",
               "extract('microseconds' FROM {a}) / 1e6"),
    "milliseconds": (_CLOCK, "seconds in thousandths", "extract('microseconds' FROM {a}) / 1e3",
                     "extract('microseconds' FROM {a}) / 1e3"),
    "microseconds": (_CLOCK, "seconds in millionths", "extract('microseconds' FROM {a})",
                     "extract('microseconds' FROM {a})"),
    "decade": (_BOTH, "the year by 10", "extract('year' FROM {a}) // 10", _MONTHS + " // 120"),
    "century": (_BOTH, "the century", "(extract('year' FROM {a}) + 99) // 100", _MONTHS + " // 1200"),
    "millennium": (_BOTH, "the millennium", "(extract('year' FROM {a}) + 999) // 1000", _MONTHS + " // 12000"),
    "julian": ("timestamp -> numeric", "the Julian day", "extract('julian' FROM {a})", ""),
    "year": ("interval -> numeric", "whole years of an interval", _MONTHS + " // 12", ""),
    "month": ("interval -> numeric", "the months above them", _MONTHS + " % 12", ""),
    "day": ("interval -> numeric", "days of an interval", _DAYS, ""),
    "hour": ("interval -> numeric", "hours of an interval", "datepart('hour', {a})", ""),
    "minute": ("interval -> numeric", "the minutes above them", "datepart('minute', {a})", ""),
}  # fmt: skip
_DAYS_BETWEEN = "write extract(epoch FROM x - y) / 86400, in days; extract(year FROM age(x, y)) is answered"

EXTRACTED = {
    field: above(
        f"extract_{field}", f"extract({field} FROM x)" if "timestamp" in takes or "clock" in takes
        else f"extract({field} FROM age(x, y))", doc, takes, *filter(None, sql), names=(),
        below=_DAYS_BETWEEN if "interval" in takes else ON_GROUPS,
    )
    for field, (takes, doc, *sql) in _FIELDS.items()
}  # fmt: skip
"""Field of EXTRACT -> its row, for what the one below a release does not take."""

_CUT = {
    "microseconds": "{a}", "milliseconds": "date_trunc('millisecond', {a})", "second": "date_trunc('second', {a})",
    **{
        unit: f"make_timestamp(CAST({first} AS BIGINT), 1, 1, 0, 0, 0)"
        for unit, first in (
            ("decade", "CASE WHEN extract('year' FROM {a}) > 9 THEN extract('year' FROM {a}) // 10 * 10 END"),
            ("century", "(extract('year' FROM {a}) + 99) // 100 * 100 - 99"),
            ("millennium", "(extract('year' FROM {a}) + 999) // 1000 * 1000 - 999"),
        )
    },
}  # fmt: skip
_BELOW = {"second": "date_bin('1 second', x, TIMESTAMP '2000-01-01') is the same"}
TRUNCATED = {
    unit: above(
        f"date_trunc_{unit}",
        f"date_trunc('{unit}', x)",
        "cut to it",
        "timestamp -> timestamp",
        sql,
        names=(),
        below=_BELOW.get(unit, ON_GROUPS),
    )
    for unit, sql in _CUT.items()
}
"""Unit of date_trunc -> its row, where there is none below a release."""

_SPAN = "(datepart('day', {a}) * 86400000000 + " + _MICROSECONDS + ")"
_BINNED = (
    "CASE WHEN "
    + _MONTHS
    + " = 0 AND "
    + _SPAN
    + " > 0 THEN make_timestamp(epoch_us({b}) - ((epoch_us({b}) - "
    "epoch_us({c})) % " + _SPAN + " + " + _SPAN + ") % " + _SPAN + ") END"
)


def _made(months: str, days: str, microseconds: str) -> str:
    return f"to_months(CAST({months} AS INTEGER)) + to_days(CAST({days} AS INTEGER)) + to_microseconds({microseconds})"


def _over_parts(inner: str) -> str:
    return f"list_transform([{_PARTS}], lambda p: {inner})[1]"


_HOURS_IN_DAYS = _over_parts(
    "list_transform([{'m': p.m, 'd': p.d + p.u // 86400000000, 'u': p.u % 86400000000}], lambda q: "
    "CASE WHEN q.d > 0 AND q.u < 0 THEN " + _made("q.m", "q.d - 1", "q.u + 86400000000") +
    " WHEN q.d < 0 AND q.u > 0 THEN " + _made("q.m", "q.d + 1", "q.u - 86400000000") +
    " ELSE " + _made("q.m", "q.d", "q.u") + " END)[1]"
)  # fmt: skip
_DAYS_IN_MONTHS = _over_parts(
    "list_transform([{'m': p.m + p.d // 30, 'd': p.d % 30, 'u': p.u}], lambda q: "
    "CASE WHEN q.m > 0 AND q.d < 0 THEN " + _made("q.m - 1", "q.d + 30", "q.u") +
    " WHEN q.m < 0 AND q.d > 0 THEN " + _made("q.m + 1", "q.d - 30", "q.u") +
    " ELSE " + _made("q.m", "q.d", "q.u") + " END)[1]"
)  # fmt: skip
_JUSTIFIED = _over_parts(
    "list_transform([{'m': p.m, 'd': p.d + p.u // 86400000000, 'u': p.u % 86400000000}], lambda q: "
    "list_transform([{'m': q.m + q.d // 30, 'd': q.d % 30, 'u': q.u}], lambda r: list_transform([CASE "
    "WHEN r.m > 0 AND (r.d < 0 OR (r.d = 0 AND r.u < 0)) THEN {'m': r.m - 1, 'd': r.d + 30, 'u': r.u} "
    "WHEN r.m < 0 AND (r.d > 0 OR (r.d = 0 AND r.u > 0)) THEN {'m': r.m + 1, 'd': r.d - 30, 'u': r.u} "
    "ELSE {'m': r.m, 'd': r.d, 'u': r.u} END], lambda s: CASE WHEN s.d > 0 AND s.u < 0 THEN "
    + _made("s.m", "s.d - 1", "s.u + 86400000000") + " WHEN s.d < 0 AND s.u > 0 THEN "
    + _made("s.m", "s.d + 1", "s.u - 86400000000") + " ELSE " + _made("s.m", "s.d", "s.u") + " END)[1])[1])[1]"
)  # fmt: skip
_OVERLAPS = (
    "list_transform([{'s': least({a}, {b}), 'e': CASE WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN "
    "greatest({a}, {b}) END, 't': least({c}, {d}), 'f': CASE WHEN {c} IS NOT NULL AND {d} IS NOT NULL THEN "
    "greatest({c}, {d}) END}], lambda o: CASE WHEN o.s > o.t THEN CASE WHEN o.f IS NULL THEN NULL WHEN o.s < o.f "
    "THEN true WHEN o.e IS NULL THEN NULL ELSE false END WHEN o.s < o.t THEN CASE WHEN o.e IS NULL THEN NULL "
    "WHEN o.t < o.e THEN true WHEN o.f IS NULL THEN NULL ELSE false END WHEN o.s = o.t THEN "
    "CASE WHEN o.e IS NULL OR o.f IS NULL THEN NULL ELSE true END END)[1]"
)


def _named(value: tuple[str, str], unit: str) -> str:
    """Return a part of an interval as Postgres shows it: a plus stands after a part below zero alone."""
    plus = f"CASE WHEN {value[1]} < 0 AND {value[0]} > 0 THEN '+' ELSE '' END"
    several = f"CASE WHEN {value[0]} <> 1 THEN 's' ELSE '' END"
    return f"CASE WHEN {value[0]} <> 0 THEN {plus} || {value[0]} || ' {unit}' || {several} END"


_CLOCK_SHOWN = (
    "CASE WHEN p.u <> 0 OR (p.m = 0 AND p.d = 0) THEN CASE WHEN p.u < 0 THEN '-' WHEN p.b < 0 THEN '+' ELSE '' END || "
    "CASE WHEN abs(p.u) < 36000000000 THEN '0' ELSE '' END || abs(p.u) // 3600000000 "
    "|| ':' || lpad(CAST(abs(p.u) // 60000000 % 60 AS VARCHAR), 2, '0') || ':' || "
    "lpad(CAST(abs(p.u) // 1000000 % 60 AS VARCHAR), 2, '0') || CASE WHEN p.u % 1000000 <> 0 THEN "
    "rtrim('.' || lpad(CAST(abs(p.u) % 1000000 AS VARCHAR), 6, '0'), '0') ELSE '' END END"
)
_SHOWN = _over_parts(
    "list_transform([{'y': p.m // 12, 'o': p.m % 12, 'm': p.m, 'd': p.d, 'u': p.u, "
    "'a': CASE WHEN p.m % 12 <> 0 THEN p.m % 12 ELSE p.m // 12 END, "
    "'b': CASE WHEN p.d <> 0 THEN p.d WHEN p.m % 12 <> 0 THEN p.m % 12 ELSE p.m // 12 END}], lambda p: concat_ws(' ', "
    + _named(("p.y", "0"), "year") + ", " + _named(("p.o", "p.y"), "mon") + ", " + _named(("p.d", "p.a"), "day")
    + ", " + _CLOCK_SHOWN + "))[1]"
)  # fmt: skip
_CLOCK_OF = (
    "CASE WHEN {a} BETWEEN 1 AND 9999 AND {d} BETWEEN 0 AND 23 AND {e} BETWEEN 0 AND 59 AND {f} >= 0 AND {f} < 60 "
    "THEN make_timestamp({a}, {b}, {c}, {d}, {e}, 0) + to_microseconds(CAST(round_even({f} * 1e6, 0) AS BIGINT)) END"
)
_IN_CALENDAR = "{a} BETWEEN -62135596800 AND 253402300799.9"
_MOVED = "write x + 7, or x + n of whole days, for a date; x + INTERVAL '7 days' for a moment"

ROWS = (
    *EXTRACTED.values(),
    *TRUNCATED.values(),
    above("age", "age(x, y)", "years, months, days and time between; `age(x)`: until today",
          "timestamp, timestamp -> interval", "age({a}, {b})"),
    above("moments_between", "x::timestamp - y", "days and time between two moments",
          "timestamp, timestamp -> interval", "{a} - {b}", names=()),
    above("interval_added", "x + age(y, z)", "a moment later by an interval that is computed",
          "timestamp, interval -> timestamp", "{a} + {b}", names=(), below=_MOVED),
    above("interval_taken", "x - age(y, z)", "a moment earlier by one",
          "timestamp, interval -> timestamp", "{a} - {b}", names=(), below=_MOVED),
    above("intervals_added", "age(x, y) + age(z, x)", "two intervals, part by part",
          "interval, interval -> interval", "{a} + {b}", names=()),
    above("intervals_taken", "age(x, y) - age(z, x)", "their difference, part by part",
          "interval, interval -> interval", "{a} - {b}", names=()),
    above("interval_times", "age(x, y) * 2", "an interval so many times, a whole number",
          "interval, integer -> interval", _over_parts(_made("p.m * {b}", "p.d * {b}", "p.u * {b}")), names=()),
    above("date_bin_of", "date_bin(INTERVAL '15 minutes', x, y)", "the start of the bin of a width, counted from `y`",
          "interval, timestamp, timestamp -> timestamp", _BINNED, names=("date_bin",),
          below="date_bin('15 minutes', x, TIMESTAMP '2024-01-01'); date_trunc('month', x) for months and years"),
    above("justify_hours", "justify_hours(x)", "24 hours of an interval as a day", "interval -> interval",
          _HOURS_IN_DAYS, below=_DAYS_BETWEEN),
    above("justify_days", "justify_days(x)", "30 days of an interval as a month", "interval -> interval",
          _DAYS_IN_MONTHS, below=_DAYS_BETWEEN),
    above("justify_interval", "justify_interval(x)", "both, with one sign", "interval -> interval", _JUSTIFIED,
          below=_DAYS_BETWEEN),
    above("make_date_of", "make_date(year, month, day)", "a date; of columns", "integer, integer, integer -> date",
          "CASE WHEN {a} BETWEEN 1 AND 9999 THEN make_date({a}, {b}, {c}) END", names=(),
          below="write DATE '2024-01-31'"),
    above("make_timestamp", "make_timestamp(year, month, day, hour, minute, second)", "a moment",
          "integer, integer, integer, integer, integer, double -> timestamp", _CLOCK_OF),
    above(
        "make_interval", "make_interval(years, months, weeks, days, hours, mins, secs)",
        "an interval; with names too: `make_interval(days => 10)`",
        "integer, integer, integer, integer, integer, integer, double -> interval",
        _made("{a} * 12 + {b}", "{c} * 7 + {d}", "{e} * 3600000000 + CAST({f} AS BIGINT) * 60000000 + "
              "CAST(round_even({g} * 1e6, 0) AS BIGINT)"),
    ),
    above("isfinite", "isfinite(x)", "whether a moment is no infinity: those are NULL here",
          "timestamp -> boolean; interval -> boolean", "true",
          below="write x BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"),
    above("to_timestamp_of", "to_timestamp(x)", "the moment so many seconds after 1970", "double -> timestamp",
          f"CASE WHEN {_IN_CALENDAR} THEN make_timestamp(CAST(round_even({{a}} * 1e6, 0) AS BIGINT)) END", names=(),
          syntax=(Syntax(exp.UnixToTime, ("this",)),), output="to_timestamp"),
    above("overlaps", "(x, y) OVERLAPS (z, w)", "whether two spans of time have a moment in common",
          "timestamp, timestamp, timestamp, timestamp -> boolean", _OVERLAPS, names=(), strict=False,
          below="write x < w AND z < y, of spans that end after they begin",
          syntax=(Syntax(exp.Overlaps, read=("this", "expression")),)),
    above("to_char_of", "to_char(x, 'YYYY-MM-DD')", "a moment or a number as text, by a constant format",
          "timestamp, format -> text; bigint, format -> text; numeric, format -> text; double, format -> text",
          moment_as_text, number_as_text, number_as_text, lambda form: number_as_text(form, is_exact=False),
          names=("to_char",), below=f"it writes moments there, by {', '.join(FORMAT_PATTERNS)} and \"words\""),
    above("to_date_of", "to_date(x, 'YYYY-MM-DD')", "a date of a column's texts; NULL where they are not of the format",
          "text, format -> date", text_as_date, names=()),
    above("to_timestamp_by", "to_timestamp(x, 'YYYY-MM-DD HH24:MI')", "a moment of a column's texts",
          "text, format -> timestamp", text_as_moment, names=()),
    above("interval_text", "age(x, y)::text", "an interval as text", "interval -> text", _SHOWN, names=()),
)  # fmt: skip
