"""Calls, aggregates and forms over released values, each NULL where Postgres raises; `print_public` has the house rule.

Calls of functions that are named alone (`relation.functions.above`), from the SQL of their rows.

Each argument is bound once, in its type, as a field of v; a constant is written out in its place, since DuckDB reads
formats and patterns before it runs. `TRY` makes what fails NULL, as Postgres' errors are here.

JSON over released values: its text, written and read as Postgres writes and reads it.

A part is found among a text's tokens: one pass over them keeps how deep it is, which member it is in, and where the
one that is asked for begins and ends. So it comes out letter for letter, numbers and blanks too.

Joins, series, arrays in rows and recursion for the sealed engine, and aggregates without SQL of their own.

House rule for joins: an OR in a mark's condition becomes one EXISTS for each side, since the engine finds a semi or
anti join for an equality alone and compares all pairs of rows otherwise (NOT IN is such an OR). `print_public` has the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..plan.dialects.dialect_duckdb import DUCKDB
from ..plan.dialects.quote import literal, text
from ..regex import regex
from ..relation.aggregates import ROWS
from ..relation.aggregates import check_printers as check_aggregates
from ..relation.calendar import DAY, time_text
from ..relation.expressions import Call, Expr, Field, Literal, Months, conjunction
from ..relation.functions import FUNCTIONS, check_printers
from ..relation.functions.above.moments import HIDDEN_BRACE
from ..relation.functions.above.signature import MOST_BYTES, Signature, constants_of, fitting
from ..relation.functions.moments import bin_of, written_format
from ..relation.functions.numbers import buckets_of
from ..relation.relations import (
    MAX_RECURSION,
    MAX_ROW_SERIES,
    AggregateCall,
    Join,
    Lateral,
    Recursive,
    RecursiveRef,
    Relation,
    Series,
    Unnest,
)
from ..relation.types import BOOLEAN, DOUBLE, TEXT, Kind, SqlType
from ..sql.literals import quoted
from . import null_on_error
from .null_on_error import (
    MAX_TEXT_BYTES,
    bind,
    cast,
    engine_type,
    finite,
    keep,
    print_deviate,
    scalar_subquery,
    to_double,
    to_float,
)

_SHORT = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r"}
_TOKENS = text(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^"{}\[\],:]+')
_BLANKS = "chr(32) || chr(9) || chr(10) || chr(13)"


def _escaped(name: str) -> str:
    shown = f"replace(replace({name}, chr(92), chr(92) || chr(92)), '\"', chr(92) || '\"')"
    for code in range(1, 32):
        letter = _SHORT.get(code, f"u{code:04x}")
        shown = f"replace({shown}, chr({code}), chr(92) || '{letter}')"
    return shown


def quoted_text(name: str) -> str:
    """Return a text, which is a name, in JSON; NULL for NULL."""
    plain = f"'\"' || {name} || '\"'"
    special = text(r'[\x01-\x1f"\\]')
    return (
        f"CASE WHEN regexp_matches({name}, {special}) THEN '\"' || {_escaped(name)} || '\"' ELSE {plain} END"
    )


def element_text(printed: str, type_: SqlType, *, spaced: bool) -> str:
    """Return a value in JSON; NULL for NULL. `spaced`: with a blank after each comma of an array, as jsonb has it."""
    if type_.element is not None:
        inner = element_text("e", type_.element, spaced=spaced)
        comma = "', '" if spaced else "','"
        items = f"list_transform(v, lambda e: coalesce({inner}, 'null'))"
        return bind(
            printed, f"CASE WHEN v IS NOT NULL THEN '[' || array_to_string({items}, {comma}) || ']' END"
        )
    if type_.is_json:
        return printed
    if type_.kind is Kind.NULL:
        return f"CAST({printed} AS VARCHAR)"
    if type_.kind is Kind.BOOLEAN or type_.is_number:
        return cast(printed, type_, TEXT)
    shown = printed if type_.kind is Kind.TEXT else cast(printed, type_, TEXT)
    if type_.kind is Kind.TIMESTAMP:
        shown = f"replace({shown}, ' ', 'T')"
    return bind(shown, quoted_text("w"), "w")


def _is_spaced(call: Call) -> bool:
    return call.type.kind is Kind.JSONB


def _items(call: Call, args: list[str]) -> list[str]:
    return [
        f"coalesce({element_text(arg, part.type, spaced=_is_spaced(call))}, 'null')"
        for arg, part in zip(args, call.args, strict=True)
    ]


def _limited(parts: list[str]) -> str:
    return keep(" || ".join(parts), f"strlen(v) <= {MAX_TEXT_BYTES}")


def _array(call: Call, args: list[str]) -> str:
    parts = [part for item in _items(call, args) for part in ("', '", item)][1:]
    return _limited(["'['", *parts, "']'"])


def _object(call: Call, args: list[str]) -> str:
    colon, comma = (": ", ", ") if _is_spaced(call) else (" : ", ", ")
    if call.function == "json_row" and not _is_spaced(call):
        colon, comma = ":", ","
    values = _items(Call(call.type, call.function, call.args[1::2]), args[1::2])
    parts = ["'{'"]
    for place, (key, shown, value) in enumerate(zip(call.args[::2], args[::2], values, strict=True)):
        before = comma if place else ""
        if key.is_constant and isinstance(key.constant, str):
            parts += [text(before + quoted(key.constant) + colon), value]
            continue
        written = bind(
            shown if key.type.kind is Kind.TEXT else cast(shown, key.type, TEXT), quoted_text("w"), "w"
        )
        parts += [text(before), written, text(colon), value]
    return _limited([*parts, "'}'"])


_FIRST = "{'t': '', 'i': 0, 'd': 0, 'n': 0, 'k': '', 's': 0, 'f': 0, 'e': 0}"
_TOKEN = _FIRST.replace("''", "w", 1)
_ENDS = "(a.d = 1 AND x.t IN (',', '}', ']'))"
_STEP = f"""{{
 't': x.t, 'i': a.i + 1,
 'd': a.d + CASE WHEN x.t IN ('{{', '[') THEN 1 WHEN x.t IN ('}}', ']') THEN -1 ELSE 0 END,
 'n': a.n + CASE WHEN a.d = 1 AND x.t = ',' THEN 1 ELSE 0 END,
 'k': CASE WHEN a.d = 1 AND a.s = 0 AND x.t[1] = '"' THEN x.t ELSE a.k END,
 's': CASE WHEN (a.d = 0 AND x.t = '[') OR (a.d = 1 AND x.t = ':') OR (a.d = 1 AND x.t = ',' AND g.o = '[')
      THEN a.i + 2 WHEN {_ENDS} THEN 0 ELSE a.s END,
 'f': CASE WHEN {_ENDS} AND a.s > 0 AND %s THEN a.s ELSE a.f END,
 'e': CASE WHEN {_ENDS} AND a.s > 0 AND %s THEN a.i ELSE a.e END
}}""".replace("\n", "")
_IS_KEY = "g.o = '{' AND (CASE WHEN g.o = '{' THEN json_extract_string(a.k, '$') END) = g.w"
_IS_PLACE = "g.o = '[' AND a.n = g.w"


def _part(json: str, wanted: str, condition: str) -> str:
    """Return the member of a text that is wanted, `wanted` being a key or a place from 0; NULL for none."""
    listed = f"list_transform(g.t, lambda w: {_TOKEN})"
    walked = f"list_reduce({listed}, lambda a, x: {_STEP % (condition, condition)}, {_FIRST})"
    cut = f"nullif(trim(array_to_string(list_slice(g.t, r.f, r.e), ''), {_BLANKS}), '')"
    found = bind(walked, f"CASE WHEN r.f > 0 THEN {cut} END", "r")
    tokens = f"{{'t': regexp_extract_all(v.j, {_TOKENS}), 'o': left(ltrim(v.j, {_BLANKS}), 1), 'w': v.w}}"
    has_parts = f"left(ltrim(v.j, {_BLANKS}), 1) IN ('{{', '[') AND v.w IS NOT NULL"
    searched = f"CASE WHEN {has_parts} THEN {bind(tokens, found, 'g')} END"
    return bind(f"{{'j': {json}, 'w': {wanted}}}", searched)


def _from_end(json: str, place: str) -> str:
    """Return a place that is counted from the end below 0, counted from the start."""
    length = (
        f"CASE WHEN left(ltrim(p.j, {_BLANKS}), 1) = '[' THEN TRY(CAST(json_array_length(p.j) AS BIGINT)) END"
    )
    return bind(f"{{'j': {json}, 'p': {place}}}", f"CASE WHEN p.p < 0 THEN p.p + {length} ELSE p.p END", "p")


def _member(call: Call, args: list[str]) -> str:
    key = call.args[1]
    if key.type.is_integer:
        place = args[1]
        is_after = key.is_constant and isinstance(key.constant, int) and key.constant >= 0
        found = _part("s.j", "s.p" if is_after else _from_end("s.j", "s.p"), _IS_PLACE)
        if call.type.kind is Kind.JSONB:  # Postgres keeps a value alone as an array of one
            found = f"CASE WHEN left(s.j, 1) IN ('{{', '[') THEN {found} WHEN s.p IN (0, -1) THEN s.j END"
        return bind(f"{{'j': {args[0]}, 'p': {place}}}", found, "s")
    return _part(args[0], args[1], _IS_KEY)


def _at(call: Call, args: list[str]) -> str:
    """Print a path: each step a key of an object, or a place of an array."""
    found = args[0]
    for step in call.args[1:]:
        assert step.is_constant
        written = str(step.constant)
        key = _part("v0", text(written), _IS_KEY)
        bare = written.strip()
        digits = bare.removeprefix("-").removeprefix("+")
        if digits.isascii() and digits.isdigit() and len(digits) <= 10:
            place = str(int(bare))
            at = _part("v0", place if int(bare) >= 0 else _from_end("v0", place), _IS_PLACE)
            key = f"coalesce({key}, {at})"
        found = bind(found, key, "v0")
    return found


_BOUND = "{'t': '', 'i': 0, 'd': 0, 'c': CAST([] AS INTEGER[])}"
_IS_BOUND = "(a.d = 0 AND x.t IN ('{', '[')) OR (a.d = 1 AND x.t IN (',', '}', ']'))"
_WALK = f"""{{
 't': x.t, 'i': a.i + 1,
 'd': a.d + CASE WHEN x.t IN ('{{', '[') THEN 1 WHEN x.t IN ('}}', ']') THEN -1 ELSE 0 END,
 'c': CASE WHEN {_IS_BOUND} THEN list_append(a.c, a.i + 1) ELSE a.c END
}}""".replace("\n", "")


def _members(json: str, opening: str, piece: str) -> str:
    """Return a list of what `piece` makes of each member's tokens, p; NULL for what does not begin so."""
    listed = f"list_transform(g, lambda w: {_BOUND.replace(chr(39) * 2, 'w', 1)})"
    walked = f"list_reduce({listed}, lambda a, x: {_WALK}, {_BOUND}).c"
    cut = "list_slice(g, r[k] + 1, r[k + 1] - 1)"
    made = f"list_transform(range(1, len(r)), lambda k: {bind(cut, piece, 'p')})"
    kept = bind(walked, f"list_filter({made}, lambda e: e IS NOT NULL)", "r")
    found = bind(f"regexp_extract_all(v, {_TOKENS})", kept, "g")
    return bind(json, f"CASE WHEN left(ltrim(v, {_BLANKS}), 1) = '{opening}' THEN {found} END")


_KEY = "list_filter(p, lambda e: e[1] = '\"')[1]"
_VALUE = "list_slice(p, list_position(p, ':') + 1, len(p))"


def _trimmed(tokens: str) -> str:
    return f"nullif(trim(array_to_string({tokens}, ''), {_BLANKS}), '')"


def _string(name: str) -> str:
    return bind(
        name, "CASE WHEN v[1] = '\"' THEN TRY(json_extract_string(v, '$')) WHEN v <> 'null' THEN v END"
    )


def _length(call: Call, args: list[str]) -> str:
    is_array = f"left(ltrim(v, {_BLANKS}), 1) = '['"
    return bind(args[0], f"CASE WHEN {is_array} THEN TRY(CAST(json_array_length(v) AS INTEGER)) END")


def _typeof(call: Call, args: list[str]) -> str:
    words = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
    cases = " ".join(f"WHEN {text(first)} THEN '{word}'" for first, word in words.items())
    first = f"left(ltrim(v, {_BLANKS}), 1)"
    return bind(args[0], f"CASE WHEN v IS NOT NULL THEN CASE {first} {cases} ELSE 'number' END END")


def joined_items(listed: str, type_: SqlType, *, spaced: bool, lines: bool) -> str:
    """Return a list's values as an array; `lines`: on lines of their own, as Postgres has rows and arrays in json."""
    item = element_text("e", type_, spaced=spaced)
    if not lines:
        body = f"array_to_string(list_transform(z, lambda e: coalesce({item}, 'null')), ', ')"
    else:
        line = "CASE WHEN i > 1 AND e IS NOT NULL THEN chr(10) || ' ' ELSE '' END"
        shown = f"list_transform(z, lambda e, i: {line} || coalesce({item}, 'null'))"
        body = f"array_to_string({shown}, ', ')"
    return bind(listed, f"CASE WHEN z IS NOT NULL THEN '[' || {body} || ']' END", "z")


def joined_members(listed: str, key: SqlType, value: SqlType, *, spaced: bool) -> str:
    """Return a list of keys k and values v as an object; NULL where a key is NULL."""
    name = "e.k" if key.kind is Kind.TEXT else cast("e.k", key, TEXT)
    shown = f"coalesce({element_text('e.v', value, spaced=spaced)}, 'null')"
    if not spaced:
        member = f"{bind(name, quoted_text('w'), 'w')} || ' : ' || {shown}"
        body = f"'{{ ' || array_to_string(list_transform(z, lambda e: {member}), ', ') || ' }}'"
    else:
        numbered = (
            f"list_transform(z, lambda e, i: {{'n': strlen({name}), 'k': {name}, 'i': i, 'v': {shown}}})"
        )
        last = bind(
            f"list_sort({numbered})", "list_filter(s, lambda e, i: i = len(s) OR s[i + 1].k <> e.k)", "s"
        )
        member = f"{bind('e.k', quoted_text('w'), 'w')} || ': ' || e.v"
        body = f"'{{' || array_to_string(list_transform({last}, lambda e: {member}), ', ') || '}}'"
    there = "z IS NOT NULL AND len(list_filter(z, lambda e: e.k IS NULL)) = 0"
    return bind(listed, f"CASE WHEN {there} THEN {body} END", "z")


JSON_CALLS: dict[str, Callable[[Call, list[str]], str]] = {
    "json_object": _object, "json_row": _object, "json_array": _array,
    "json_elements": lambda call, args: _members(args[0], "[", _trimmed("p")),
    "json_keys": lambda call, args: _members(args[0], "{", f"json_extract_string({_KEY}, '$')"),
    "json_values": lambda call, args: _members(args[0], "{", _trimmed(_VALUE)),
    "json_texts": lambda call, args: f"list_transform({args[0]}, lambda e: {_string('e')})",
    "to_json": lambda call, args: element_text(args[0], call.args[0].type, spaced=_is_spaced(call)),
    "json_constant": lambda call, args: args[0],
    "json_part": _member, "json_at": _at, "json_text": lambda call, args: _string(args[0]),
    "json_array_length": _length, "json_typeof": _typeof,
}  # fmt: skip
"""Function -> how a call of it is printed from its printed arguments."""


# --- calls of functions that are named alone (`relation.functions.above`), from the SQL of their rows -------


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PLACE = regex(r"\{([a-z]|rest)\}")


def print_literal(value: Literal) -> str:
    """Return a literal in the type that carries it in the engine."""
    if value.value is None:
        return "NULL" if value.type.kind is Kind.NULL else f"CAST(NULL AS {engine_type(value.type)})"
    if value.type.is_number:
        return f"CAST({literal(value)} AS {engine_type(value.type)})"
    if value.type.kind is Kind.TIME and isinstance(value.value, int):
        return f"TIME '{time_text(value.value)}'"
    return literal(value)


def _print_named(call: Call, args: list[str]) -> str:
    """Return the call of a row that has SQL; `args` are its printed arguments."""
    row = FUNCTIONS[call.function]
    found, written = fitting(row, call.args)
    sql = written if isinstance(written, str) else written(*constants_of(found, call.args))
    bound: dict[str, str] = {}
    names: list[str] = []
    for place, (arg, printed) in enumerate(zip(call.args, args, strict=True)):
        read = _read_as(call.args, printed, found, place)
        if arg.is_constant:
            names.append(read)
            continue
        name = f"{_LETTERS[place % 26]}{place // 26 or ''}"
        bound[name] = read
        names.append(f"v.{name}")
    body = _PLACE.sub(lambda match: _put(match[1], names, found), sql).replace(HIDDEN_BRACE, "{")
    if row.strict and names:
        there = " AND ".join(f"{name} IS NOT NULL" for name in names)
        body = f"CASE WHEN {there} THEN {body} END"
    body = f"TRY({body})"
    if row.grows:
        most = f"greatest({MOST_BYTES}, coalesce(strlen({names[0]}), 0))"
        body = f"list_filter([{body}], lambda made: strlen(made) <= {most})[1]"
    if bound:
        body = bind("{" + ", ".join(f"'{name}': {sql}" for name, sql in bound.items()) + "}", body)
    return _as_result(body, found.result(call.args))


def _put(place: str, names: list[str], found: Signature) -> str:
    if place == "rest":
        return ", ".join(names[len(found.words) - 1 :])
    return names[_LETTERS.index(place)]


def _read_as(args: Sequence[Expr], printed: str, found: Signature, place: int) -> str:
    """Return an argument in the type that the function takes it in; of any type, as text."""
    arg, target = args[place], found.target(place, tuple(args))
    if target is None and found.word(place) == "value":
        return printed if arg.type.kind in (Kind.TEXT, Kind.NULL) else cast(printed, arg.type, TEXT)
    if target is None:
        return printed if arg.type.kind in (Kind.TEXT, Kind.NULL) else output_text(printed, arg.type)
    if arg.type.kind is Kind.NULL:
        return f"CAST({printed} AS {engine_type(target)})"
    if target.is_integer:
        return f"TRY_CAST({printed} AS {engine_type(target)})"
    return printed if arg.type.kind is target.kind else f"CAST({printed} AS {engine_type(target)})"


def output_text(printed: str, type_: SqlType) -> str:
    """Return a value as Postgres shows it: a truth value by its letter."""
    if type_.kind is Kind.BOOLEAN:
        return bind(printed, "CASE WHEN v THEN 't' WHEN NOT v THEN 'f' END")
    return cast(printed, type_, TEXT)


def _as_result(body: str, type_: SqlType) -> str:
    if type_.kind is Kind.TEXT:
        return body
    if type_.is_float or type_.kind is Kind.NUMERIC:
        return finite(f"TRY_CAST({body} AS {engine_type(type_)})")
    return f"TRY_CAST({body} AS {engine_type(type_)})"


# --- scalar calls over released values, each NULL where Postgres raises -------------------------------------


Form = Callable[[Call, list[str]], str]
NO_PATTERN = "dpsql:pattern"
"""What the engine is told to say of a pattern that is computed and has more than plain signs."""
TOO_MANY = "dpsql:54000"
"""What the engine is told to say of rows without end, and `sealed` reads back."""


def _arithmetic(call: Call, args: list[str]) -> str:
    left, right = call.args[0].type, call.args[1].type
    if Kind.INTERVAL in (left.kind, right.kind):
        moment, interval = (0, 1) if right.kind is Kind.INTERVAL else (1, 0)
        direction, months = -1 if call.function == "sub" else 1, call.literal(interval, Months)
        return null_on_error.add_interval(
            args[moment], direction * months.months, direction * months.days, direction * months.microseconds
        )
    if left.kind is Kind.DATE and right.kind is Kind.DATE:
        return null_on_error.days_between(args[0], args[1])
    if left.kind is Kind.DATE:
        return null_on_error.add_days(
            args[0], args[1] if call.function == "add" else null_on_error.negate(args[1], call.args[1].type)
        )
    return null_on_error.arithmetic(FUNCTIONS[call.function].symbol, args[0], args[1], call.type)


def _case(call: Call, args: list[str]) -> str:
    type_ = engine_type(call.type)
    branches = " ".join(
        f"WHEN {args[i]} THEN CAST({args[i + 1]} AS {type_})" for i in range(0, len(args) - 1, 2)
    )
    return f"(CASE {branches} ELSE CAST({args[-1]} AS {type_}) END)"


def _chosen(call: Call, args: list[str]) -> str:
    type_ = engine_type(call.type)
    return f"{call.function}({', '.join(f'CAST({arg} AS {type_})' for arg in args)})"


def _round(call: Call, args: list[str]) -> str:
    places = (call.args[1].constant_as(int) if len(call.args) > 1 else None) or 0
    if call.function == "trunc":
        return null_on_error.truncate(args[0], places)
    return (
        null_on_error.round_half_even(args[0])
        if call.type.is_float
        else null_on_error.round_half_away(args[0], places)
    )


def _concat(call: Call, args: list[str]) -> str:
    texts = [
        arg if part.type.kind is Kind.TEXT else cast(arg, part.type, TEXT)
        for arg, part in zip(args, call.args, strict=True)
    ]
    if call.function == "concat":
        texts = [f"coalesce({one}, '')" for one in texts]
    joined = texts[0]
    for one in texts[1:]:
        joined = null_on_error.concatenate(joined, one)
    return joined


def _like(call: Call, args: list[str]) -> str:
    return null_on_error.like(args[0], args[1], escape=call.literal(2, str))


def _regexp(call: Call, args: list[str]) -> str:
    """Print a match with a pattern that is computed: Postgres and DuckDB read plain signs alike; others are told."""
    return _of_two(
        "CASE WHEN v.a IS NULL OR v.b IS NULL THEN NULL"
        f" WHEN regexp_full_match(v.b, {text(_PLAIN_PATTERN)}) THEN regexp_matches(v.a, '(?s)' || v.b)"
        f" ELSE error('{NO_PATTERN}') END", args,
    )  # fmt: skip


_PLAIN_PATTERN = r"\^?([A-Za-z0-9 _,:;/@#%&=<>!~\"'\x{80}-\x{10FFFF}-]|\.\*?)*\$?"


def _by_row(call: Call, args: list[str]) -> str:
    sql = FUNCTIONS[call.function].above
    return _of_two(sql, args) if "v.a" in sql else sql.format(**dict(zip("abc", args, strict=False)))


def _element(call: Call, args: list[str]) -> str:
    place = args[1] if call.args[1].is_constant else keep(args[1], "v >= 1")
    return f"list_extract({args[0]}, {place})"


def _of_two(body: str, args: list[str]) -> str:
    """Return an expression of two operands, v.a and v.b, each of them printed once."""
    return f"list_transform([{{'a': {args[0]}, 'b': {args[1]}}}], lambda v: {body})[1]"


def _compared(call: Call, args: list[str]) -> str:
    """Print a value compared with each of an array, as Postgres has ANY and ALL of none and of NULL."""
    name, word = (arg.constant for arg in call.args[2:] if arg.is_constant)
    decisive, other = ("TRUE", "FALSE") if word == "any" else ("FALSE", "TRUE")
    each = f"list_transform(v.a, lambda e: e {_MIRRORED[str(name)]} v.b)"
    return _of_two(
        f"CASE WHEN len(v.a) = 0 THEN {other} WHEN list_contains({each}, {decisive}) THEN {decisive}"
        f" WHEN v.b IS NULL OR list_count(v.a) < len(v.a) THEN NULL WHEN v.a IS NOT NULL THEN {other} END", args[:2],
    )  # fmt: skip


_MIRRORED = {"eq": "=", "ne": "<>", "lt": ">", "le": ">=", "gt": "<", "ge": "<="}
"""An operator, written from the other side."""


def _array_cast(call: Call, args: list[str]) -> str:
    from_, to = call.args[0].type.element, call.type.element
    assert from_ is not None
    assert to is not None
    each = f"list_transform({args[0]}, lambda e: {cast('e', from_, to)})"
    return f"CAST({each} AS {engine_type(call.type)})"


def _series(call: Call, args: list[str]) -> str:
    """Print a series as an array: none for a NULL, an error that says so for more than may be."""
    assert call.type.element is not None
    step = call.args[2]
    if call.type.element.kind is Kind.TIMESTAMP:
        months = step.constant if step.is_constant else None
        assert isinstance(months, Months)
        width = months.months * 28 * DAY + months.days * DAY + months.microseconds
        ends = [f"epoch_us({arg})" for arg in args[:2]]
        args[2] = (
            f"to_months({months.months}) + to_days({months.days}) + to_microseconds({months.microseconds})"
        )
        too_many = "FALSE" if width else "TRUE"
        width_sql = str(width)
    else:
        ends, width_sql = [f"CAST({arg} AS HUGEINT)" for arg in args[:2]], f"CAST({args[2]} AS HUGEINT)"
        args = [f"CAST({arg} AS BIGINT)" for arg in args]
        too_many = f"{width_sql} = 0"
    count = f"({ends[1]} - {ends[0]}) // {width_sql} > {MAX_ROW_SERIES}"
    written = f"CAST(generate_series({', '.join(args)}) AS {engine_type(call.type)})"
    return f"CASE WHEN {too_many} OR {count} THEN error('{TOO_MANY}') ELSE {written} END"


CALLS: dict[str, Form] = {
    **dict.fromkeys(("add", "sub", "mul"), _arithmetic),
    "div": lambda call, args: null_on_error.divide(args[0], args[1], call.type),
    "mod": lambda call, args: null_on_error.modulo(args[0], args[1], call.type),
    "neg": lambda call, args: null_on_error.negate(args[0], call.type),
    "abs": lambda call, args: null_on_error.absolute(args[0], call.type),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct"),
                    lambda call, args: f"({args[0]} {FUNCTIONS[call.function].symbol} {args[1]})"),
    "in": lambda call, args: f"({args[0]} IN ({', '.join(args[1:])}))",
    "and": lambda call, args: f"({' AND '.join(args)})", "or": lambda call, args: f"({' OR '.join(args)})",
    "case": _case, **dict.fromkeys(("coalesce", "greatest", "least"), _chosen),
    "round": _round, "trunc": _round,
    "sign": lambda call, args: f"CAST(sign(CAST({args[0]} AS DOUBLE)) AS {engine_type(call.type)})",
    "width_bucket": lambda call, args: null_on_error.width_bucket(args[0], buckets_of(call)),
    **{name: _by_row for name, row in FUNCTIONS.items() if row.above},
    **{name: _print_named for name, row in FUNCTIONS.items() if row.sql},
    "upper": lambda call, args: bind(args[0], DUCKDB.letter_case("upper", "v")),
    "like_computed": _like, "regexp_computed": _regexp,
    "substr": lambda call, args: null_on_error.substring(*args),
    "concat": _concat, "concat_op": _concat, "like": _like,
    "extract": lambda call, args: null_on_error.extract(call.literal(0, str), args[1]),
    "date_trunc": lambda call, args: null_on_error.date_trunc(call.literal(0, str), args[1]),
    "date_bin": lambda call, args: null_on_error.date_bin(args[1], *bin_of(call)),
    "to_char": lambda call, args: null_on_error.to_char(args[0], written_format(call)),
    "cast": lambda call, args: cast(args[0], call.args[0].type, call.type),
    "deviate": print_deviate,
    "array": lambda call, args: f"CAST([{', '.join(args)}] AS {engine_type(call.type)})",
    "element": _element, "series": _series,
    "array_compared": _compared, "array_cast": _array_cast,
    **JSON_CALLS,
}  # fmt: skip
"""Function -> how a call of it is printed from its printed arguments."""

check_printers(CALLS, private=False)


# --- joins, aggregates and forms -------------------------------------------------------------------------


ENDLESS = "dpsql:54001"
"""What the engine is told to say of a recursion without end, and `sealed` reads back."""
ROUNDS = "rounds$"
"""The sequence that counts the rows of a statement's recursions; `sealed` makes it."""
STANDS_AT = "rowid"
"""Where a row of a release stands in its table, as the engine counts them."""
_COUNTED = f"CASE WHEN nextval('{ROUNDS}') > {MAX_RECURSION} THEN error('{ENDLESS}') ELSE TRUE END"


class Printer(Protocol):
    """What prints the relations and expressions below a form."""

    def relation(self, node: Relation) -> str: ...
    def source(self, node: Relation) -> str: ...
    def row(self, node: Relation) -> list[str]: ...
    def expr(self, expr: Expr, row: Sequence[str]) -> str: ...
    def beside(self, count: int) -> AbstractContextManager[tuple[str, list[str]]]: ...


def _row_series(printer: Printer, node: Series) -> str:
    if isinstance(node.values, range):
        value, source = "range", "range(0)"
        if node.values:  # by its last number: the next one may be none of the engine's
            ends = f"{node.values[0]}, {node.values[-1]}, {node.values.step}"
            value, source = "generate_series", f"generate_series({ends})"
    else:
        value, source = "v", f"(SELECT unnest([{', '.join(map(str, node.values))}]::BIGINT[]) AS v) AS t"
    shown = f"make_timestamp({value})" if node.type.kind is Kind.TIMESTAMP else value
    return f"SELECT CAST({shown} AS {engine_type(node.type)}) AS c0 FROM {source}"


def _unnest(printer: Printer, node: Unnest) -> str:
    """Print rows beside their arrays' elements: the engine gives the shorter arrays NULL, as Postgres does."""
    row = printer.row(node.input)
    width = len(row)
    arrays = [printer.expr(array, row) for array in node.arrays]
    held = ", ".join(
        [*(f"{name} AS c{i}" for i, name in enumerate(row)), *(f"{a} AS a{i}" for i, a in enumerate(arrays))]
    )
    columns = [f"t.c{i}" for i in range(width)] + [f"unnest(t.a{i})" for i in range(len(arrays))]
    if node.numbered:
        most = f"greatest({', '.join(f'coalesce(len(t.a{i}), 0)' for i in range(len(arrays)))})"
        columns.append(f"unnest(range(1, CAST({most} AS BIGINT) + 1))")
    shown = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(columns))
    return f"SELECT {shown} FROM (SELECT {held} FROM {printer.source(node.input)}) AS t"


def _lateral(printer: Printer, node: Lateral) -> str:
    """Print a join whose right side reads the left row, which has a name of its own for it."""
    left = printer.relation(node.left)
    with printer.beside(len(node.left.columns)) as (name, own):
        right = printer.relation(node.right)
    other = [f"b.c{i}" for i in range(len(node.right.columns))]
    condition = printer.expr(node.condition, [*own, *other])
    shown = [f"{sql} AS c{i}" for i, sql in enumerate(own)]
    source = f"({left}) AS {name}"
    if node.kind == "scalar":
        return f"SELECT {', '.join([*shown, f'{scalar_subquery(right)} AS c{len(own)}'])} FROM {source}"
    if node.kind == "any":
        truths = f"SELECT {condition} AS v FROM ({right}) AS b"
        found = (
            "(SELECT CASE WHEN count(*) FILTER (WHERE q.v) > 0 THEN TRUE"
            f" WHEN count(*) FILTER (WHERE q.v IS NULL) = 0 THEN FALSE END FROM ({truths}) AS q)"
        )
        return f"SELECT {', '.join([*shown, f'{found} AS c{len(own)}'])} FROM {source}"
    held = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(other)) or "1 AS one"
    kept = f"(SELECT {held} FROM ({right}) AS b WHERE {condition}) AS b"
    word = "LEFT JOIN" if node.kind == "left" else "JOIN"
    shown += [f"{sql} AS c{len(own) + i}" for i, sql in enumerate(other)]
    return f"SELECT {', '.join(shown) or '1 AS one'} FROM {source} {word} LATERAL {kept} ON TRUE"


def _recursive(printer: Printer, node: Recursive) -> str:
    names = ", ".join(f"c{i}" for i in range(len(node.outputs)))
    types = [engine_type(column.type) for column in node.outputs]
    sides = []
    for side in (node.base, node.step):
        shown = ", ".join(
            f"CAST({name} AS {type_}) AS c{i}"
            for i, (name, type_) in enumerate(zip(printer.row(side), types, strict=True))
        )
        sides.append(f"SELECT {shown} FROM {printer.source(side)}")
    word = "UNION ALL" if node.all else "UNION"
    with_ = f"WITH RECURSIVE q{node.number}({names}) AS (({sides[0]}) {word} ({sides[1]} WHERE {_COUNTED}))"
    return f"SELECT {names} FROM ({with_} SELECT {names} FROM q{node.number}) AS t"


def _recursive_ref(printer: Printer, node: RecursiveRef) -> str:
    names = ", ".join(f"c{i}" for i in range(len(node.outputs)))
    return f"SELECT {names} FROM q{node.number}"


FORMS: dict[type[Relation], Callable[[Printer, Any], str]] = {
    Series: _row_series, Unnest: _unnest, Lateral: _lateral, Recursive: _recursive, RecursiveRef: _recursive_ref,
}  # fmt: skip
"""Kind of relation -> how it is printed."""


# --- aggregates above the release whose row has no SQL of its own, printed; `print_public` has the house rule ---


Joined = Callable[[AggregateCall, list[str], str, str, bool], str]


def print_aggregate(
    call: AggregateCall, args: list[str], orders: str, tail: str, *, in_database: bool = False
) -> str:
    """Return the SQL of a call over its printed arguments, its ORDER BY inside and FILTER or OVER, `tail`, behind.

    `in_database`: for the owner's engine, whose threads add doubles in any order.
    """
    if not call.row.above:
        return _FORMS[call.function](call, args, orders, tail, in_database)
    row = "*" if not args else args[0] if len(args) == 1 else f"({', '.join(args)})"
    named = dict(zip("ab", args, strict=False))
    return call.row.above.format(row=row, word=_word(call), orders=orders, **named) + tail


def _word(call: AggregateCall) -> str:
    return "DISTINCT " if call.distinct else ""


def _total(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    """The owner's engine adds doubles with compensation: its threads share a sum in any order."""
    function = "avg" if call.function == "avg_direct" else call.function
    type_ = call.args[0].type
    if call.distinct:
        return f"TRY_CAST({function}(DISTINCT CAST({args[0]} AS DOUBLE)){tail} AS {engine_type(call.type)})"
    if in_database and (function == "avg" or (function == "sum" and not type_.is_integer)):
        added = f"f{function}({to_double(args[0])}){tail}"
        return to_float(added, type_ if function == "sum" else DOUBLE)
    return null_on_error.aggregate(function, args[0], type_, tail)


def _pair(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    return null_on_error.pair(call.function, args[0], args[1], tail)


def _percentile(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    """A value that is there where nothing is interpolated; the engine counts a share below 0 from the largest."""
    is_from_largest = bool(call.orders)
    share = 1 - call.share if is_from_largest else call.share
    fraction = f"{share.numerator}e0 / {share.denominator}e0"
    if call.type != DOUBLE or call.function == "percentile_disc":
        return f"quantile_disc({args[0]}, {f'-({fraction})' if is_from_largest else fraction}){tail}"
    return to_float(f"quantile_cont({to_double(args[0])}, {fraction}){tail}", DOUBLE)


def _array_agg(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    assert call.type.element is not None
    return f"array_agg({_word(call)}CAST({args[0]} AS {engine_type(call.type.element)}){orders}){tail}"


def _bits(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    return f"{call.function}({_word(call)}TRY_CAST({args[0]} AS {engine_type(call.type)})){tail}"


def _json(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    listed = f"array_agg({_word(call)}{args[0]}{orders}){tail}"
    lines = call.function == "json_agg_lines"
    return joined_items(listed, call.args[0].type, spaced=call.type.kind is Kind.JSONB, lines=lines)


def _json_object(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    listed = f"array_agg({{'k': {args[0]}, 'v': {args[1]}}}{orders}){tail}"
    key, value = (arg.type for arg in call.args)
    return joined_members(listed, key, value, spaced=call.type.kind is Kind.JSONB)


_FORMS: dict[str, Joined] = {
    **dict.fromkeys(
        ("sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "avg_direct"), _total
    ),
    **{row.name: _pair for row in ROWS if row.is_paired},
    **dict.fromkeys(("median", "percentile_cont", "percentile_disc"), _percentile),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), _bits), "array_agg": _array_agg,
    **dict.fromkeys(("json_agg", "json_agg_lines", "jsonb_agg"), _json),
    **dict.fromkeys(("json_object_agg", "jsonb_object_agg"), _json_object),
}  # fmt: skip
"""Aggregate -> how a call of it is printed."""

check_aggregates(_FORMS, lambda row: not row.above)


# --- joins of released rows, the mark join among them: EXISTS and IN as a column or as a condition ----------


Print = Callable[[Expr, Sequence[str]], str]
_MAX_ALTERNATIVES = 16


def print_join(node: Join, left: str, right: str, print_expr: Print) -> str:
    """Return the SELECT of a join of two printed sides, with columns c0, c1, …"""
    if node.kind == "mark":
        head, marks = _marks(node, right, print_expr)
        return f"{head}SELECT {_columns(node, '(' + ' OR '.join(marks) + ')')} FROM ({left}) AS a"
    own, other = _rows(node)
    shown = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate([*own, *other])) or "1 AS one"
    condition = "" if node.kind == "cross" else f" ON {print_expr(node.condition, [*own, *other])}"
    return f"SELECT {shown} FROM ({left}) AS a {node.kind.upper()} JOIN ({right}) AS b{condition}"


def print_marked(node: Join, is_true: bool, left: str, right: str, print_expr: Print) -> str:
    """Return the SELECT of the rows of a mark join whose mark is true, or is false."""
    head, marks = _marks(node, right, print_expr)
    condition = " OR ".join(marks) if is_true else " AND ".join(f"NOT {mark}" for mark in marks)
    return f"{head}SELECT {_columns(node, str(is_true).upper())} FROM ({left}) AS a WHERE {condition}"


def kept_mark(predicate: Expr, node: Join) -> bool | None:
    """Return which value of its mark a filter right above a mark join keeps; None for any other filter."""
    mark = Field(BOOLEAN, len(node.left.columns))
    if node.kind == "mark" and predicate == mark:
        return True
    return False if node.kind == "mark" and predicate == Call(BOOLEAN, "not", (mark,)) else None


def _rows(node: Join) -> tuple[list[str], list[str]]:
    left = [f"a.c{i}" for i in range(len(node.left.columns))]
    return left, [f"b.c{i}" for i in range(len(node.right.columns))]


def _columns(node: Join, mark: str) -> str:
    return ", ".join(f"{sql} AS c{i}" for i, sql in enumerate([*_rows(node)[0], mark]))


def _marks(node: Join, right: str, print_expr: Print) -> tuple[str, list[str]]:
    """Return what stands before the SELECT, and the EXISTS of which one is true where the mark is."""
    own, other = _rows(node)
    ways = [print_expr(condition, [*own, *other]) for condition in _alternatives(node.condition)]
    if len(ways) == 1:
        return "", [f"EXISTS (SELECT 1 FROM ({right}) AS b WHERE {ways[0]})"]
    return f"WITH w AS MATERIALIZED ({right}) ", [
        f"EXISTS (SELECT 1 FROM w AS b WHERE {way})" for way in ways
    ]


def _alternatives(condition: Expr) -> list[Expr]:
    """Return conditions of which one is true where the condition is: its OR taken apart."""
    found, rest = [condition], True
    while rest:
        rest = False
        for index, one in enumerate(found):
            split = _split(one)
            if split and len(found) + len(split) <= _MAX_ALTERNATIVES:
                found[index : index + 1] = split
                rest = True
                break
    return found


def _split(condition: Expr) -> list[Expr]:
    if condition.calls("or"):
        return list(condition.args)
    for index, term in enumerate(condition.args if condition.calls("and") else ()):
        if term.calls("or"):
            others = (*condition.args[:index], *condition.args[index + 1 :])
            return [conjunction((*others, way)) for way in term.args]
    return []
