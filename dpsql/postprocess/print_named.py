"""Calls of functions that are named alone (`relation.functions.above`), from the SQL of their rows.

Each argument is bound once, in its type, as a field of v; a constant is written out in its place, since DuckDB reads
formats and patterns before it runs. `TRY` makes what fails NULL, as Postgres' errors are here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..plan.dialects.quote import literal
from ..relation.expressions import Call, Expr, Literal
from ..relation.functions import FUNCTIONS
from ..relation.functions.above.formats import HIDDEN_BRACE
from ..relation.functions.above.signature import MOST_BYTES, Signature, constants_of, fitting
from ..relation.types import TEXT, Kind, SqlType
from .bind import bind, engine_type, finite
from .null_on_error_casts import cast

__all__ = ["print_literal", "print_named"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PLACE = re.compile(r"\{([a-z]|rest)\}")


def print_literal(value: Literal) -> str:
    """Return a literal in the type that carries it in the engine."""
    if value.value is None:
        return "NULL" if value.type.kind is Kind.NULL else f"CAST(NULL AS {engine_type(value.type)})"
    if value.type.is_number:
        return f"CAST({literal(value)} AS {engine_type(value.type)})"
    return literal(value)


def print_named(call: Call, args: list[str]) -> str:
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
