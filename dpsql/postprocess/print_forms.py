"""Joins, series, arrays in rows and recursion for the sealed engine, and aggregates without SQL of their own.

House rule for joins: an OR in a mark's condition becomes one EXISTS for each side, since the engine finds a semi or
anti join for an equality alone and compares all pairs of rows otherwise (NOT IN is such an OR). `print_public` has the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..relation.aggregates import ROWS, check_printers
from ..relation.expressions import Call, Expr, Field, conjunction
from ..relation.relations import (
    MAX_RECURSION,
    AggregateCall,
    Join,
    Lateral,
    Recursive,
    RecursiveRef,
    Relation,
    Series,
    Unnest,
)
from ..relation.types import BOOLEAN, DOUBLE, Kind
from . import null_on_error
from .bind import engine_type, to_double, to_float
from .null_on_error import scalar_subquery
from .print_json import joined_items, joined_members

ENDLESS = "dpsql:54001"
"""What the engine is told to say of a recursion without end, and `sealed` reads back."""
ROUNDS = "rounds$"
"""The sequence that counts the rows of a statement's recursions; `sealed` makes it."""
_COUNTED = f"CASE WHEN nextval('{ROUNDS}') > {MAX_RECURSION} THEN error('{ENDLESS}') ELSE TRUE END"


class Printer(Protocol):
    """What prints the relations and expressions below a form."""

    def relation(self, node: Relation) -> str: ...
    def source(self, node: Relation) -> str: ...
    def row(self, node: Relation) -> list[str]: ...
    def expr(self, expr: Expr, row: Sequence[str]) -> str: ...
    def beside(self, count: int) -> AbstractContextManager[tuple[str, list[str]]]: ...


def _series(printer: Printer, node: Series) -> str:
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
    Series: _series, Unnest: _unnest, Lateral: _lateral, Recursive: _recursive, RecursiveRef: _recursive_ref,
}  # fmt: skip
"""Kind of relation -> how it is printed."""


# --- aggregates above the release whose row has no SQL of its own, printed; `print_public` has the house rule ---


Form = Callable[[AggregateCall, list[str], str, str, bool], str]


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


_FORMS: dict[str, Form] = {
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

check_printers(_FORMS, lambda row: not row.above)


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
