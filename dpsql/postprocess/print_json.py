"""JSON over released values: its text, written and read as Postgres writes and reads it; `print_public` has the rule.

A part is found among a text's tokens: one pass over them keeps how deep it is, which member it is in, and where the
one that is asked for begins and ends. So it comes out letter for letter, numbers and blanks too.
"""

from __future__ import annotations

from collections.abc import Callable

from ..plan.dialects.quote import text
from ..relation.expressions import Call
from ..relation.types import TEXT, Kind, SqlType
from ..sql.literals import quoted
from .bind import bind, keep
from .null_on_error import MAX_TEXT_BYTES, cast

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


def _texts(call: Call, args: list[str]) -> str:
    return f"list_transform({args[0]}, lambda e: {_string('e')})"


def _string(name: str) -> str:
    return bind(
        name, "CASE WHEN v[1] = '\"' THEN TRY(json_extract_string(v, '$')) WHEN v <> 'null' THEN v END"
    )


def _shown(call: Call, args: list[str]) -> str:
    return _string(args[0])


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
    "json_texts": _texts,
    "to_json": lambda call, args: element_text(args[0], call.args[0].type, spaced=_is_spaced(call)),
    "json_constant": lambda call, args: args[0],
    "json_part": _member, "json_at": _at, "json_text": _shown, "json_array_length": _length, "json_typeof": _typeof,
}  # fmt: skip
"""Function -> how a call of it is printed from its printed arguments."""
