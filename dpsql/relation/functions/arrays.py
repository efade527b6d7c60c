"""Arrays, above the release alone: several values in one, and what is taken out of it."""

from __future__ import annotations

from sqlglot import exp

from ..types import INTEGER, Kind, SqlType, array_of
from .row import Args, Function, Shorthand, Syntax

__all__ = ["ROWS"]


def _array(args: Args) -> SqlType | None:
    return array_of(args[0].type) if args and all(arg.type == args[0].type for arg in args) else None


def _element(args: Args) -> SqlType | None:
    return args[0].type.element if args[1].type.is_integer else None


def _sliced(args: Args) -> SqlType | None:
    return args[0].type if args[0].type.kind is Kind.ARRAY else None


def _cardinality(args: Args) -> SqlType | None:
    return INTEGER if args[0].type.kind is Kind.ARRAY else None


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
        private=False,
    ),
    Shorthand(
        "unnest(q)", "its values in rows, in order; alone in a column of SELECT, or in FROM, `WITH ORDINALITY` too",
        (Syntax(exp.Explode, read=("this",)),),
    ),
    Function(
        "series", "generate_series(1, 12)", "numbers in rows, or timestamps by a constant interval; alone in a column "
        "of SELECT, or in FROM", lambda args: None, private=False,
    ),
    Function(
        "cardinality", "cardinality(q)", "how many values it has", _cardinality, private=False
    ),
)  # fmt: skip
