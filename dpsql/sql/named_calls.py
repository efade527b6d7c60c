"""Functions that are called by their name alone: those of `relation.functions.above`, as Postgres resolves a call.

The parser does not see their names, of some of which it has a node of its own (`statement`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import Call, Expr
from ..relation.functions import FUNCTIONS, NAMES, ROWS, SYNTAX, Function
from ..relation.functions.above.formats import FormatError
from ..relation.functions.above.refused import REFUSED
from ..relation.functions.above.signature import Signature, constants_of, fitting, signature
from ..relation.types import TEXT, Kind
from .aggregates import AGGREGATES, PUBLIC_AGGREGATES, PUBLIC_NAMED
from .constants import coerce_literal
from .literals import sample

if TYPE_CHECKING:
    from .bind_expression import Binder

__all__ = ["OPERATOR_NAMES", "answered_names", "bind_row", "no_such_function"]

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
_PARSED = (
    name.lower()
    for syntax in (*SYNTAX, *AGGREGATES, *PUBLIC_AGGREGATES)
    for name in getattr(syntax, "sql_names", list)()
)
_KNOWN = sorted(
    (
        {*NAMES, *PUBLIC_NAMED, *_PARSED, *(form[0] for form in _WRITTEN if form is not None)}
        | {row.name for row in AGGREGATES.values()}
        | {row.name for row in PUBLIC_AGGREGATES.values()}
    )
    - OPERATOR_NAMES
)
"""Names that may be meant by one that is not known: of functions and of aggregates."""


def answered_names() -> set[str]:
    """Return the names of functions that are answered, and some that only the parser has: what `pg_proc` may hold."""
    calls = (re.findall(r"`?(\w+)\(", f"{row.form} {row.doc}") for row in ROWS)
    return {*_KNOWN, *(name for found in calls for name in found)}


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
