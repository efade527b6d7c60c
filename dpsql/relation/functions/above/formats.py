"""Constant formats of to_char, to_date and to_timestamp as SQL of the sealed engine.

Each function takes a format of Postgres and returns the SQL over {a}; `FormatError` names what is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = [
    "HIDDEN_BRACE",
    "FormatError",
    "constant",
    "moment_as_text",
    "number_as_text",
    "text_as_date",
    "text_as_moment",
]


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

_NUMBER = re.compile(r"(FM)?(S)?([09,G]*)(?:[.D]([09]*))?(S|MI)?", re.IGNORECASE)
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
