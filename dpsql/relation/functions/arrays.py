"""Arrays, above the release alone: several values in one, and what is taken out of it.

>>> means("string_to_array(name, ',') <@ ARRAY['a']", "ARRAY['a'] @> string_to_array(name, ',')")

House rules for JSON:

1. A text of `jsonb` is as Postgres keeps it: keys by their length and then by their bytes, each once, numbers written
   out, one blank after `,` and `:`. So a part of it is one too. A text of `json` is as it was written.
2. Nothing compares two of them: two texts of one number are one value (`sql.bind_select`).
"""

from __future__ import annotations

from sqlglot import exp

from ..facts import TEXT_CUT
from ..relations import MAX_ROW_SERIES
from ..types import BOOLEAN, INTEGER, JSON, TEXT, Kind, SqlType, array_of
from .row import Args, Function, Shorthand, Syntax, TypeRule, common_type


def _array(args: Args) -> SqlType | None:
    return array_of(args[0].type) if args and all(arg.type == args[0].type for arg in args) else None


def _element(args: Args) -> SqlType | None:
    return args[0].type.element if args[1].type.is_integer else None


def _sliced(args: Args) -> SqlType | None:
    return args[0].type if args[0].type.kind is Kind.ARRAY else None


def _length(args: Args) -> SqlType | None:
    return INTEGER if args[0].type.kind is Kind.ARRAY and args[1].type.is_integer else None


def _cardinality(args: Args) -> SqlType | None:
    return INTEGER if args[0].type.kind is Kind.ARRAY else None


def _alike(result: SqlType) -> TypeRule:
    """Return the rule of an array and a value of its element's type."""

    def rule(args: Args) -> SqlType | None:
        element = args[0].type.element
        return result if element is not None and args[1].type == element else None

    return rule


def _comparable(args: Args) -> SqlType | None:
    """The type of an array's values compared with a value, by an operator and a quantifier that are constants."""
    element = args[0].type.element
    fits = element is not None and not element.is_json and common_type([element, args[1].type]) is not None
    return BOOLEAN if fits else None


def _both(args: Args) -> SqlType | None:
    same = args[0].type.kind is Kind.ARRAY and args[0].type == args[1].type
    return BOOLEAN if same else None


ROWS = (
    Function(
        "array", "ARRAY[1, 2]", "values of one type; also `ARRAY (SELECT …)`", _array,
        syntax=(Syntax(exp.Array, read=("expressions", "value_constructor")),), private=False,
    ),
    Function(
        "element", "q[1]", "one of the values, from 1; NULL where there is none", _element,
        syntax=(Syntax(exp.Bracket, read=("this", "expressions")),), null=lambda args, call: True, private=False,
    ),
    Function(
        "slice", "q[2:3]", "the values between two places", _sliced,
        syntax=(Syntax(exp.Slice, read=("this", "expression")),),
        private=False, above="list_slice({a}, {b}, {c})",
    ),
    Shorthand(
        "unnest(q)", "its values in rows, in order; alone in a column of SELECT, or in FROM, `WITH ORDINALITY` too",
        (Syntax(exp.Explode, read=("this",)),),
    ),
    Function(
        "series", "generate_series(1, 12)", "numbers in rows, or timestamps by a constant interval; alone in a column "
        "of SELECT, or in FROM", lambda args: array_of(args[0].type), private=False,
    ),
    Function(
        "array_has", "x = ANY (q)", "equal to one of the values of an array", _alike(BOOLEAN), private=False,
        above=  # where the value is not found, one that is not known could be it
        "CASE WHEN list_contains(v.a, v.b) THEN TRUE WHEN len(v.a) = 0 THEN FALSE"
        " WHEN v.b IS NULL OR list_count(v.a) < len(v.a) THEN NULL WHEN v.a IS NOT NULL THEN FALSE END",
    ),
    Function(
        "array_compared", "x > ALL (q)", "greater than all values of an array; by each comparison, `ANY` and `ALL`",
        _comparable, private=False, symbol="ANY and ALL",
    ),
    Function(
        "array_cast", "q::text[]", "an array with its values cast",
        lambda args: None, private=False, symbol="::",
    ),
    Function(
        "array_position", "array_position(q, x)", "the first place of a value, NULL for none", _alike(INTEGER),
        syntax=(Syntax(exp.ArrayPosition, read=("this", "expression")),),
        null=lambda args, call: True, private=False, above="CAST(nullif(list_position({a}, {b}), 0) AS INTEGER)",
    ),
    Function(
        "array_length", "array_length(q, 1)", "how many values it has, NULL for none", _length,
        syntax=(Syntax(exp.ArraySize, ("this", "expression")),),
        null=lambda args, call: True, private=False,
        above="CASE WHEN v.b = 1 AND len(v.a) > 0 THEN CAST(len(v.a) AS INTEGER) END",
    ),
    Function(
        "array_contains", "q @> r", "all values of one array are in the other", _both,
        syntax=(Syntax(exp.ArrayContainsAll, ("this", "expression")),), private=False, symbol="@>",
        above="CASE WHEN list_count(v.b) < len(v.b) AND v.a IS NOT NULL THEN FALSE ELSE list_has_all(v.a, v.b) END",
    ),
    Shorthand(
        "q <@ r", "the other way round",
        (Syntax(exp.ArrayContainedBy, ("this", "expression"), means="expression @> this", said="<@"),),
    ),
    Function(
        "array_joined", "q || r", "one array behind another, or a value: `q || x`, `x || q`; NULL as nothing",
        _sliced, symbol="||", private=False, above="CASE WHEN v.a IS NULL THEN v.b WHEN v.b IS NULL THEN v.a"
        f" WHEN len(v.a) + len(v.b) <= {MAX_ROW_SERIES} THEN list_concat(v.a, v.b) END",
    ),
    Shorthand("'{1,2}'::integer[]", "a constant array, also `ARRAY[]::text[]`, which is empty", ()),
    Function(
        "array_overlaps", "q && r", "two arrays have a value in common", _both,
        syntax=(Syntax(exp.ArrayOverlaps, ("this", "expression")),), private=False, symbol="&&",
        above="list_has_any({a}, {b})",
    ),
    Function(
        "cardinality", "cardinality(q)", "how many values it has", _cardinality, private=False,
        above="CAST(len({a}) AS INTEGER)",
    ),
)  # fmt: skip


# --- JSON, above the release alone: a value is the text that Postgres shows of it ---------------------------


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


def _of_member(result: SqlType) -> TypeRule:
    """Return the rule of a function of people's JSON and the keys of a member."""

    def rule(args: Args) -> SqlType | None:
        fits = args[0].type.has_members and all(arg.type.kind is Kind.TEXT for arg in args[1:])
        return result if fits else None

    return rule


_SIDES = ("this", "expression")

JSON_ROWS = (
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
        symbol="->", private=False, below="take a member as text, j ->> 'a', or use it on the aggregated result",
    ),
    Function(
        "json_text", "j ->> 'a'", "the same as text", _of_json(TEXT),
        syntax=(Syntax(exp.JSONExtractScalar, read=(*_SIDES, "only_json_types")),), null=lambda args, call: True,
        symbol="->>", private=False,
    ),
    Function(
        "json_member", "c -> 'a' ->> 'b'", "a member of people's JSON (`jsonb` of Postgres, DuckDB's JSON), by "
        "constant keys; `c #>> '{a,b}'`", _of_member(TEXT), size=lambda args, call: TEXT_CUT,
        null=lambda args, call: True, symbol="->>", public=False,
    ),
    Function(
        "json_has", "c ? 'a'", "whether people's JSON, an object, has a member, be it null", _of_member(BOOLEAN),
        syntax=(Syntax(exp.JSONBContainsTopKey, read=_SIDES),), symbol="?", public=False,
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
