"""JSON, above the release alone: a value is the text that Postgres shows of it.

House rules:

1. A text of `jsonb` is as Postgres keeps it: keys by their length and then by their bytes, each once, numbers written
   out, one blank after `,` and `:`. So a part of it is one too. A text of `json` is as it was written.
2. Nothing compares two of them: two texts of one number are one value (`sql.bind_select`).
"""

from __future__ import annotations

from sqlglot import exp

from ..types import INTEGER, JSON, TEXT, Kind, SqlType, array_of
from .row import Args, Function, Syntax, TypeRule

__all__ = ["ROWS"]


def _always(result: SqlType) -> TypeRule:
    return lambda args: result


def _same(args: Args) -> SqlType | None:
    return args[0].type if args[0].type.is_json else None


def _of_json(result: SqlType) -> TypeRule:
    """Return the rule of a function of one value of JSON."""

    def rule(args: Args) -> SqlType | None:
        fits = len(args) == 1 and (args[0].type.is_json or args[0].type.kind is Kind.NULL)
        return result if fits else None

    return rule


_SIDES = ("this", "expression")

ROWS = (
    Function(
        "json_object", "json_build_object('a', x, …)", "an object of keys and values; `jsonb_build_object` of constant "
        "keys", _always(JSON), private=False,
    ),
    Function(
        "json_array", "json_build_array(x, y, …)", "an array of values of any types; `jsonb_build_array`",
        _always(JSON), private=False,
    ),
    Function(
        "json_row", "row_to_json(t)", "a row of a FROM item, or `ROW(x, y)`, as an object; also `to_json(t)`, "
        "`to_jsonb(t)`", _always(JSON), private=False,
    ),
    Function("to_json", "to_json(x)", "a value, or an array's values, as JSON; `to_jsonb(x)`", _always(JSON),
             private=False),
    Function(
        "json_constant", "'{\"a\": 1}'::jsonb", "a constant; also `::json`", _always(JSON),
        syntax=(Syntax(exp.ParseJSON, read=("this", "is_literal")),), symbol="JSON", private=False,
    ),
    Function(
        "json_part", "j -> 'a'", "the value of a key; `j -> 0`: an element, from 0, or from the end below 0; "
        "NULL where there is none", _same,
        syntax=(Syntax(exp.JSONExtract, read=(*_SIDES, "only_json_types")),), null=lambda args, call: True,
        symbol="->", private=False,
    ),
    Function(
        "json_text", "j ->> 'a'", "the same as text", _of_json(TEXT),
        syntax=(Syntax(exp.JSONExtractScalar, read=(*_SIDES, "only_json_types")),), null=lambda args, call: True,
        symbol="->>", private=False,
    ),
    Function(
        "json_at", "j #> '{a,0}'", "what a constant path of keys and places leads to; `j #>> '{a,0}'`: as text", _same,
        syntax=(Syntax(exp.JSONBExtract, read=_SIDES), Syntax(exp.JSONBExtractScalar, read=_SIDES)),
        null=lambda args, call: True, symbol="#>", private=False,
    ),
    Function(
        "json_array_length", "json_array_length(j)", "how many elements an array has; `jsonb_array_length`",
        _of_json(INTEGER), null=lambda args, call: True, private=False,
    ),
    Function(
        "json_elements", "json_array_elements(j)", "an array's elements in rows, as `unnest` has them; "
        "`json_array_elements_text`", lambda args: array_of(args[0].type), private=False,
    ),
    Function(
        "json_keys", "json_object_keys(j)", "an object's keys in rows", _always(array_of(TEXT)), private=False,
    ),
    Function(
        "json_values", "json_each(j)", "an object's keys and values in rows of FROM; `json_each_text`",
        lambda args: array_of(args[0].type), private=False,
    ),
    Function("json_texts", "json_each_text(j)", "the same as texts", _always(array_of(TEXT)), private=False),
    Function(
        "json_typeof", "json_typeof(j)", "object, array, string, number, boolean or null; `jsonb_typeof`",
        _of_json(TEXT), private=False,
    ),
)  # fmt: skip
