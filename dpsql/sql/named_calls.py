"""Functions that are called by their name alone: those of `relation.functions.above`, as Postgres resolves a call.

The parser does not see their names, of some of which it has a node of its own (`statement`).

Those that take DISTINCT and ORDER BY inside stand above the release and on public tables alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from ..errors import Position, Refusal
from ..relation.aggregates import ROWS as AGGREGATE_ROWS
from ..relation.aggregates import Aggregate
from ..relation.expressions import Call, Expr
from ..relation.functions import FUNCTIONS, NAMES, SYNTAX, Function
from ..relation.functions.above import REFUSED
from ..relation.functions.above.moments import FormatError
from ..relation.functions.above.signature import Signature, constants_of, fitting, signature
from ..relation.types import TEXT, Kind, SqlType
from .literals import called, coerce_literal, listed, sample

if TYPE_CHECKING:
    from .bind_expression import Binder


# --- how aggregates are written -----------------------------------------------------------------------------


_PLAIN = [row for row in AGGREGATE_ROWS if not row.is_ordered]
AGGREGATES = {node: row for row in _PLAIN for node in row.nodes}
"""Kind of node -> row, of those whose arguments stand in parentheses."""
ORDERED: dict[type[exp.Expr], Aggregate] = {
    node: row for row in AGGREGATE_ROWS if row.is_ordered for node in row.nodes
}
"""Kind of node before WITHIN GROUP (ORDER BY the argument) -> row."""
NAMED = {name: row for row in _PLAIN for name in row.names}
"""Name of a function that the parser has no node for -> row."""


def aggregate_row(node: exp.Expr) -> Aggregate | None:
    """Return the row of a call; None: it is of no such aggregate."""
    name = called(node)
    return AGGREGATES.get(type(node)) if name is None else NAMED.get(name)


def written_arguments(node: exp.Expr, row: Aggregate) -> tuple[list[exp.Expr], bool, exp.Expr | None]:
    """Return the arguments as written, whether each value counts once, and the ORDER BY."""
    given = listed(node) if called(node) else map(node.args.get, row.args)
    parts = [part for part in given if part is not None]
    found: list[exp.Expr] = []
    distinct, order = False, None
    for part in parts:
        inner: exp.Expr = part
        if isinstance(part, exp.Order) and part.args.get("this") is not None:
            inner, order = part.args["this"], part
        distinct = distinct or isinstance(inner, exp.Distinct)
        found += inner.args["expressions"] if isinstance(inner, exp.Distinct) else [inner]
    return found, distinct, order


_NUMBERS = {
    Kind.TEXT: "COUNT takes text; where it is a number: CAST(x AS numeric)",
    Kind.BOOLEAN: "COUNT(*) FILTER (WHERE x) counts the rows where it holds",
    Kind.DATE: "MIN, MAX, MEDIAN and COUNT take dates",
    Kind.TIMESTAMP: "MIN, MAX, MEDIAN and COUNT take timestamps",
    Kind.TIME: "MIN, MAX and COUNT take times",
    Kind.INTERVAL: "extract(epoch FROM x) is its seconds, extract(year FROM x) its years",
}
"""Type of what an aggregate of numbers does not take -> what to write."""


def checked_result(row: Aggregate, args: tuple[Expr, ...], position: Position | None) -> SqlType:
    """Return the type of a call.

    Raises:
        Refusal: 42883 for arguments that do not fit, 0A000 for one that is to be a constant.
    """
    result = row.result(*(arg.type for arg in args))
    if result is None:
        types = ", ".join(str(arg.type) for arg in args)
        hint = "cast the arguments"
        if not row.is_paired and not row.form:
            hint = _NUMBERS.get(args[0].type.kind, "cast the argument")
        raise Refusal(
            f"{row.name}({types}) does not exist", sqlstate="42883", position=position,
            hint=hint,
        )  # fmt: skip
    if row.constants and not all(arg.is_constant for arg in args[-row.constants :]):
        raise Refusal(
            f"the last argument of {row.name}() is a constant here",
            sqlstate="0A000",
            position=position,
            hint=row.form,
        )
    return result


# --- functions that are called by their name alone ----------------------------------------------------------


OPERATOR_NAMES = frozenset(
    f"{kind}_extract{rest}" for kind in ("json", "jsonb") for rest in ("", "_scalar", "_path", "_path_text")
) | {"parse_json"}
"""Names of which the parser makes the nodes of -> and #>, by paths that are written otherwise."""


def bind_row(binder: Binder, node: exp.Expr, name: str, rows: Sequence[Function], args: list[Expr]) -> Expr:
    """Return the call of the first row that takes arguments, as they are or with bare constants read as it takes them.

    Raises:
        Refusal: 42883 where none does, PV202 where it takes a constant only.
    """
    position = binder.position(node)
    every = [(row, one) for row in rows for one in map(signature, row.signatures) if one.counts(len(args))]
    for read in (lambda one, args: args, _as_taken):
        for row, one in every:
            given = read(one, args)
            if given is not None and one.takes(tuple(given)):
                taken = tuple(_read(one, place, args) for place in range(len(args)))
                _check_constant(row, taken, binder, node)
                return Call(one.result(taken), row.name, taken, position=position)
    _refuse_variable(rows, args, name, binder, node)
    types = ", ".join(str(arg.type) for arg in args)
    forms = " or ".join(dict.fromkeys(row.form for row in rows))
    raise Refusal(
        f"{name}({types}) does not exist", sqlstate="42883", position=position,
        hint=f"write {forms}; cast the arguments",
    )  # fmt: skip


def _check_constant(row: Function, args: tuple[Expr, ...], binder: Binder, node: exp.Expr) -> None:
    """Check that a constant format is read. Raises Refusal (22023), with what of it is not."""
    found, written = fitting(row, args)
    if isinstance(written, str):
        return
    try:
        written(*constants_of(found, args))
    except FormatError as error:
        raise Refusal(
            f"{row.said} does not read this: {error}", sqlstate="22023", position=binder.position(node),
            hint="`dpsql docs sql` has what is read",
        ) from None  # fmt: skip


def _as_taken(one: Signature, args: list[Expr]) -> list[Expr] | None:
    """Return arguments, bare constants as what the function takes there; None where one is none of those."""
    try:
        return [_read(one, place, args) for place in range(len(args))]
    except Refusal:
        return None


def _read(one: Signature, place: int, args: list[Expr]) -> Expr:
    arg, target = args[place], one.target(place, tuple(args))
    if target is None or not (arg.is_constant and arg.type.kind in (Kind.TEXT, Kind.NULL)):
        return arg
    return sample(arg, TEXT, "") if one.is_constant(place) else coerce_literal(arg, target)


def _refuse_variable(
    rows: Sequence[Function], args: list[Expr], name: str, binder: Binder, node: exp.Expr
) -> None:
    for one in (one for row in rows for one in map(signature, row.signatures) if one.counts(len(args))):
        for place, arg in enumerate(args):
            if one.is_constant(place) and not arg.is_constant and arg.type.kind is Kind.TEXT:
                raise Refusal(
                    f"{name}() takes a constant {one.word(place)}", sqlstate="PV202", position=binder.position(node),
                    hint=f"write the {one.word(place)} out, or pass it as a parameter; several by CASE",
                )  # fmt: skip


_WRITTEN = (re.match(r"\w+(?=\()", row.form) for row in FUNCTIONS.values())
_PARSED = (name.lower() for syntax in (*SYNTAX, *AGGREGATES) for name in getattr(syntax, "sql_names", list)())
_KNOWN = sorted(
    (
        {*NAMES, *NAMED, *_PARSED, *(form[0] for form in _WRITTEN if form is not None)}
        | {row.name for row in AGGREGATES.values()}
    )
    - OPERATOR_NAMES
)
"""Names that may be meant by one that is not known: of functions and of aggregates."""
_ANYBODYS = frozenset({*_KNOWN, *REFUSED, *map(str.lower, Postgres.Parser.FUNCTIONS)})


def is_anybodys(name: str) -> bool:
    """Say whether a name is one of a function that Postgres, the parser or dpsql has: such a name tells nothing."""
    return name.lower() in _ANYBODYS


def no_such_function(binder: Binder, node: exp.Expr, name: str) -> Refusal:
    """Return the refusal of a function that is none of ours, with the nearest name."""
    if (left := REFUSED.get(name)) is not None:
        return Refusal(
            f"{name}() is not answered: {left.why}", sqlstate="0A000", position=binder.position(node),
            hint=f"write {left.instead}",
        )  # fmt: skip
    close = difflib.get_close_matches(name, _KNOWN, 1, 0.8)
    meant = f"did you mean {close[0]}()? " if close else ""
    return Refusal(
        f'function "{name}" does not exist here', sqlstate="42883", position=binder.position(node),
        hint=f"{meant}`dpsql docs sql functions` lists the functions that are answered",
    )  # fmt: skip
