"""JSON above the release: what builds it, what takes it apart, and constants of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import Call, Expr, Literal
from ..relation.types import BIGINT, JSON, JSONB, PLAIN_KEY, TEXT, Kind, SqlType
from .attach import Outer
from .bind_expression import Binder, call
from .bind_lists import array_items, row_parts
from .constants import coerce_literal
from .literals import json_constant, listed, sorted_keys
from .scope import Scope, fold_name
from .text import said_of

__all__ = [
    "JSON_CALLS",
    "as_json_value",
    "bind_has",
    "bind_json_value",
    "bind_part",
    "bind_path",
    "parse_json",
]


def parse_json(binder: Binder, node: exp.Expr) -> Expr:
    """Return `json '…'`. Raises Refusal (42883): it is called as a function, or of no constant text."""
    value = binder.bind(node.args["this"])
    if value.constant_as(str) is None:
        raise Refusal(
            f"{said_of(node, binder.context.text)} does not exist here", sqlstate="42883",
            position=binder.position(node), hint="json '…' of a constant, or json_build_object and its like",
        )  # fmt: skip
    return json_constant(value, JSON, binder.position(node))


def bind_json_value(binder: Binder, node: exp.Expr, result: SqlType) -> tuple[Expr, bool]:
    """Return a value that is to be part of JSON, a row of a FROM item as an object, and whether it is a row."""
    row = _row_of(binder, node, result)
    if row is not None:
        return row, True
    value = binder.bind(node)
    _check_value(value, result, binder.position(node))
    return value, False


def _check_value(value: Expr, result: SqlType, position: Position | None) -> None:
    kind = (value.type.element or value.type).kind
    if kind is Kind.JSON and result.kind is Kind.JSONB:
        raise Refusal(
            "json is not made jsonb here", sqlstate="0A000", position=position,
            hint="build it as jsonb: jsonb_build_object, jsonb_agg, to_jsonb, '…'::jsonb",
        )  # fmt: skip
    if kind in (Kind.INTERVAL, Kind.OPAQUE):
        raise Refusal(
            f"{value.type} has no JSON here", sqlstate="0A000", position=position, hint="cast it: x::text"
        )


def _row_of(binder: Binder, node: exp.Expr, result: SqlType) -> Expr | None:
    """Return a row, written as the name of a FROM item or as ROW(…), as an object; None: it is none."""
    position, parts = binder.position(node), row_parts(node)
    if parts is not None and (len(parts) > 1 or isinstance(node, exp.Anonymous)):
        values = [bind_json_value(binder, part, result)[0] for part in parts]
        return _object("json_row", [f"f{i}" for i in range(1, len(values) + 1)], values, result, position)
    name = node.args["this"] if isinstance(node, exp.Column) and node.args.get("table") is None else None
    if not isinstance(name, exp.Identifier) or binder.scope.named(*fold_name(name)):
        return None
    scope, around = binder.scope, binder.scope.outer
    fields = _fields_of(scope, name)
    if fields is None and around is not None and (found := _fields_of(around, name)) is not None:
        scope, fields = around, [(key, Outer(value.type, value, position=position)) for key, value in found]
    if fields is None:
        return None
    if scope.is_padded(name):
        raise Refusal(
            "a row that an outer join may not find is not told from one of NULL here", sqlstate="0A000",
            position=position, hint="name the columns: json_build_object('a', t.a)",
        )  # fmt: skip
    for _, value in fields:
        _check_value(value, result, position)
    return _object("json_row", [key for key, _ in fields], [value for _, value in fields], result, position)


def _fields_of(scope: Scope, name: exp.Identifier) -> list[tuple[str, Expr]] | None:
    """Return the columns of a FROM item; None: there is no such item."""
    try:
        return scope.star(name, None)
    except Refusal:
        return None


def _object(
    name: str, keys: Sequence[str], values: Sequence[Expr], result: SqlType, position: Position | None
) -> Expr:
    """Return an object of known keys; those of `jsonb` stand in its order."""
    order = sorted_keys(list(keys)) if result.kind is Kind.JSONB else range(len(keys))
    args = [arg for at in order for arg in (Literal(TEXT, keys[at]), values[at])]
    return Call(result, name, tuple(args), position=position)


def _built(binder: Binder, node: exp.Expr, name: str, result: SqlType) -> Expr:
    """Return json_build_object(…) or json_build_array(…)."""
    position, written = binder.position(node), listed(node)
    if name.endswith("array"):
        values = tuple(bind_json_value(binder, part, result)[0] for part in written)
        return Call(result, "json_array", values, position=position)
    if len(written) % 2:
        raise Refusal(
            f"{name}() takes keys and values in turn", sqlstate="22023", position=position,
            hint=f"{name}('a', x, 'b', y)",
        )  # fmt: skip
    keys = [binder.bind(part) for part in written[::2]]
    values = tuple(bind_json_value(binder, part, result)[0] for part in written[1::2])
    for key in keys:
        is_null = key.is_constant and key.constant is None
        if is_null or key.type.is_json or key.type.kind in (Kind.ARRAY, Kind.INTERVAL, Kind.OPAQUE):
            raise Refusal(
                "a key of JSON is a text, a number, a date or a truth value", sqlstate="22023", position=position,
                hint=f"{name}('a', x)",
            )  # fmt: skip
    known = [text for key in keys if (text := key.constant_as(str)) is not None]
    if len(known) == len(keys):
        return _object("json_object", known, values, result, position)
    if result.kind is Kind.JSONB:
        raise Refusal(
            "the keys of jsonb_build_object() are constant texts here", sqlstate="0A000", position=position,
            hint="json_build_object(key, x), or jsonb_object_agg(key, x)",
        )  # fmt: skip
    args = [arg for pair in zip(keys, values, strict=True) for arg in pair]
    return Call(result, "json_object", tuple(args), position=position)


def _one(binder: Binder, node: exp.Expr, name: str) -> exp.Expr:
    written = listed(node)
    if len(written) != 1:
        raise Refusal(
            f"{name}() takes one argument here", sqlstate="42883", position=binder.position(node), hint=f"{name}(x)"
        )  # fmt: skip
    return written[0]


def _to_json(binder: Binder, node: exp.Expr, name: str, result: SqlType) -> Expr:
    """Return to_json(x), or row_to_json(t)."""
    value, is_row = bind_json_value(binder, _one(binder, node, name), result)
    if is_row:
        return value
    if name == "row_to_json" or (name == "array_to_json" and value.type.kind is not Kind.ARRAY):
        what = "a row" if name == "row_to_json" else "an array"
        raise Refusal(
            f"{name}() takes {what}", sqlstate="42883", position=binder.position(node),
            hint="row_to_json(t) of a FROM item t, to_json(x) of a value",
        )  # fmt: skip
    return Call(result, "to_json", (value,), position=binder.position(node))


def _about(binder: Binder, node: exp.Expr, name: str, result: SqlType) -> Expr:
    """Return json_typeof(j) or json_array_length(j), of the kind of JSON that the name says."""
    position = binder.position(node)
    value = as_json_value(binder.bind(_one(binder, node, name)), result, position)
    if value.type.kind is not result.kind:
        raise Refusal(
            f"{name}({value.type}) does not exist", sqlstate="42883", position=position,
            hint="json_… is of json, jsonb_… of jsonb",
        )  # fmt: skip
    return call(name.replace("jsonb_", "json_"), [value], position)


def as_json_value(value: Expr, target: SqlType, position: Position | None) -> Expr:
    """Return a value; a constant text as the JSON that it is."""
    return value if value.constant_as(str) is None else json_constant(value, target, position)


def bind_part(binder: Binder, node: exp.Expr) -> Expr:
    """Return `j -> key` or `j ->> key`.

    Raises:
        Refusal: 42883 for what is no JSON, or no text and no integer.
    """
    position = binder.position(node)
    value = _of(binder, node, "->")
    key = _key(binder, node.args["expression"])
    if key.type.kind is not Kind.TEXT and not key.type.is_integer and key.type.kind is not Kind.NULL:
        raise Refusal(
            f"-> takes a key or a place, not {key.type}", sqlstate="42883", position=position,
            hint="j -> 'a', or j -> 0",
        )  # fmt: skip
    key = coerce_literal(key, TEXT) if not key.type.is_integer else coerce_literal(key, BIGINT)
    return _taken_out(node, Call(value.type, "json_part", (value, key), position=position))


def _taken_out(node: exp.Expr, part: Expr) -> Expr:
    """Return a part of JSON, or its text, by the operator that takes it out."""
    if type(node) not in _SCALAR:
        return part
    return _member(part, part.position) if part.type.has_members else call("json_text", [part], part.position)


_SCALAR = frozenset((exp.JSONExtractScalar, exp.JSONBExtractScalar))
"""Operators that give a text."""


def _key(binder: Binder, node: exp.Expr) -> Expr:
    """Return a key or a place; the parser has made a path of a literal one, of a single step."""
    if not isinstance(node, exp.JSONPath):
        return binder.bind(node)
    step = node.args["expressions"][-1]
    found = step.args.get("this")
    if isinstance(step, exp.JSONPathSubscript) and isinstance(found, int):
        return Literal(BIGINT, found)
    if (
        not isinstance(step, exp.JSONPathKey)
        or not isinstance(found, str)
        or len(node.args["expressions"]) != 2
    ):
        raise Refusal("-> takes a key or a place", sqlstate="0A000", hint="j -> 'a', or j -> 0")
    return Literal(TEXT, found)


def bind_path(binder: Binder, node: exp.Expr) -> Expr:
    """Return `j #> '{a,0}'` or `j #>> '{a,0}'`. Raises Refusal (PV202): the path is no constant."""
    position = binder.position(node)
    value = _of(binder, node, "#>")
    path = node.args["expression"]
    if isinstance(path, exp.Array):
        steps = binder.arguments(path)
    else:
        written = binder.bind(path).constant_as(str)
        if written is None:
            raise Refusal(
                "#> takes a constant path",
                sqlstate="PV202",
                position=position,
                hint="j #> '{a,0}', or j -> x",
            )
        steps = array_items(written, position)
    if any(step.constant_as(str) is None for step in steps):
        raise Refusal(
            "a path of JSON has texts alone", sqlstate="PV202", position=position, hint="j #> '{a,0}'"
        )
    if value.type.has_members:
        found = value
        for step in steps:
            found = Call(value.type, "json_part", (found, step), position=position)
    else:
        found = Call(value.type, "json_at", (value, *steps), position=position)
    return _taken_out(node, found)


def bind_has(binder: Binder, node: exp.Expr) -> Expr:
    """Return `c ? 'a'` of people's JSON. Raises Refusal: PV001 of any other."""
    value, position = binder.bind(node.args["this"]), binder.position(node)
    if not value.type.has_members:
        raise Refusal(
            "the operator ? is of people's JSON here", sqlstate="PV001", position=position,
            hint="write j -> 'a' IS NOT NULL, of an object",
        )  # fmt: skip
    key = coerce_literal(binder.bind(node.args["expression"]), TEXT)
    return _member(Call(value.type, "json_part", (value, key), position=position), position, "json_has", "?")


def _member(part: Expr, position: Position | None, function: str = "json_member", said: str = "->>") -> Expr:
    """Return a member of people's JSON as text, or whether it is there: of the column, by all keys that lead to it.

    Raises:
        Refusal: PV202 for keys that are no constants of plain characters.
    """
    keys: list[Expr] = []
    while part.calls("json_part"):
        part, key = part.args
        written = key.constant_as(str)
        if written is None or not PLAIN_KEY.fullmatch(written):
            raise Refusal(
                "a member of people's JSON has a constant key of letters, digits, _, - and blanks",
                sqlstate="PV202", position=position, hint="write c ->> 'a', or c -> 'a' ->> 'b'",
            )  # fmt: skip
        keys.insert(0, key)
    return call(function, [part, *keys], position, said=said)


def _of(binder: Binder, node: exp.Expr, symbol: str) -> Expr:
    value = binder.bind(node.args["this"])
    if not value.type.is_json and not value.type.has_members:
        raise Refusal(
            f"{symbol} takes json or jsonb, not {value.type}", sqlstate="42883", position=binder.position(node),
            hint="json_build_object('a', x), or a constant '{\"a\": 1}'::jsonb",
        )  # fmt: skip
    return value


_Form = Callable[[Binder, exp.Expr, str, SqlType], Expr]
JSON_CALLS: dict[str, tuple[_Form, SqlType]] = {
    **dict.fromkeys(("json_build_object", "json_build_array"), (_built, JSON)),
    **dict.fromkeys(("jsonb_build_object", "jsonb_build_array"), (_built, JSONB)),
    **dict.fromkeys(("to_json", "row_to_json", "array_to_json"), (_to_json, JSON)),
    "to_jsonb": (_to_json, JSONB),
    **dict.fromkeys(("json_typeof", "json_array_length"), (_about, JSON)),
    **dict.fromkeys(("jsonb_typeof", "jsonb_array_length"), (_about, JSONB)),
}
"""Name -> the function that binds a call, and the kind of JSON that it is of."""
