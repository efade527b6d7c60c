"""Aggregate calls: plain ones, those with DISTINCT and ORDER BY inside, and fractions WITHIN GROUP (ORDER BY x).

House rule for window calls: frames are in canonical words that Postgres and every engine here read; what an offset may
be keeps the engine from a value beyond its types (`print_public` has the house rule).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import partial

from sqlglot import exp

from ..errors import Position, Refusal
from ..records import dataclass
from ..regex import regex
from ..relation.aggregates import Aggregate
from ..relation.expressions import TRUE, Call, Expr, Literal, Months
from ..relation.relations import AggregateCall, Order, WindowCall
from ..relation.types import BIGINT, DOUBLE, INTEGER, INTERVAL, NUMERIC, Kind, SqlType, array_of
from ..words import counted
from .bind_array import MAX_FRACTIONS, bind_json_value
from .bind_expression import Binder, cast
from .literals import bare, called, coerce_literal, listed, sample
from .statement import AGGREGATES, NAMED, ORDERED


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


# --- window calls -------------------------------------------------------------------------------------------


def read_orders(binder: Binder, node: exp.Expr | None) -> tuple[Order, ...]:
    """Return the sort keys of an ORDER BY clause over the binder's scope."""
    if node is None:
        return ()
    orders = []
    for item in node.args["expressions"]:
        orders.append(Order(binder.bind(item.args["this"]), bool(item.args.get("desc")), nulls_first(item)))
    return tuple(orders)


def nulls_first(item: exp.Expr) -> bool:
    """Say whether NULL comes first: as written, else as if NULL were larger than all, as in Postgres."""
    written = item.args.get("nulls_first")
    return bool(item.args.get("desc")) if written is None else bool(written)


def bind_window(binder: Binder, node: exp.Expr) -> Expr:
    """Take `function OVER (…)` out of an expression.

    Raises:
        Refusal: 42803 where no window function may stand, PV001 for a function or frame that is not answered.
    """
    position = binder.position(node)
    if binder.place != "here" and binder.place != "in ORDER BY":
        raise Refusal(f"a window function cannot stand {binder.place}", sqlstate="42803", position=position)
    parts, ordering, spec = _clause(binder, node)
    inside, binder.place = binder.place, "inside OVER"
    try:
        partition = tuple(binder.bind(part) for part in parts)
        orders = read_orders(binder, ordering)
        name, result, args = _function(binder, node.args["this"])
    finally:
        binder.place = inside
    frame = _frame(binder, spec, orders)
    return binder.add_window(WindowCall(result, name, args, partition, orders, frame, position=position))


def _clause(
    binder: Binder, node: exp.Expr, seen: frozenset[str] = frozenset()
) -> tuple[list[exp.Expr], exp.Expr | None, exp.Expr | None]:
    """Return a window's PARTITION BY, ORDER BY and frame; what a named window has said may be added to, not replaced.

    Raises:
        Refusal: 42704 for a name that is none, 42P20 for what is said twice.
    """
    parts = list(node.args.get("partition_by") or [])
    order, spec = node.args.get("order"), node.args.get("spec")
    alias = node.args.get("alias")
    if alias is None:
        return parts, order, spec
    name = str(alias.args["this"]).lower()
    found = binder.named_windows.get(name)
    if found is None or name in seen:
        raise Refusal(f'window "{name}" does not exist', sqlstate="42704", position=binder.position(node))
    below = _clause(binder, found, seen | {name})
    if parts or (order is not None and below[1] is not None) or (below[2] is not None and (order or spec)):
        raise Refusal(
            f'window "{name}" has this already', sqlstate="42P20", position=binder.position(node),
            hint="what a named window says is not said again: no second PARTITION BY, ORDER BY or frame",
        )  # fmt: skip
    return below[0], order or below[1], spec or below[2]


_Called = tuple[str, SqlType, tuple[Expr, ...]]
"""A window call's function, its type and its arguments."""


def _function(binder: Binder, node: exp.Expr) -> _Called:
    read = _WINDOWS.get(type(node))
    if read is not None:
        return read(binder, node)
    row, position = aggregate_row(node), binder.position(node)
    if row is None or not (row.windows or row.is_paired or row.form):
        raise Refusal("this function has no window form here", position=position)
    written, is_distinct, order = _written(binder, node, row)
    if is_distinct or order is not None:
        raise Refusal(
            "DISTINCT and ORDER BY do not stand inside a window call", sqlstate="0A000", position=position,
            hint="as in Postgres: take DISTINCT in a subquery first, and write the order into OVER (ORDER BY …)",
        )  # fmt: skip
    args = tuple(binder.bind(one) for one in written)
    return row.name, checked_result(row, args, position), args


def _rank(name: str, type_: SqlType, binder: Binder, node: exp.Expr) -> _Called:
    return name, type_, ()


def _end(name: str, binder: Binder, node: exp.Expr) -> _Called:
    value = binder.bind(node.args["this"])
    return name, value.type, (value,)


def _tile(binder: Binder, node: exp.Expr) -> _Called:
    return "ntile", INTEGER, (_place(binder, node.args["this"], "ntile"),)


def _nth(binder: Binder, node: exp.Expr) -> _Called:
    value = binder.bind(node.args["this"])
    return "nth_value", value.type, (value, _place(binder, node.args["offset"], "nth_value"))


def _neighbour(name: str, binder: Binder, node: exp.Expr) -> _Called:
    value, offset, default = binder.bind(node.args["this"]), node.args.get("offset"), node.args.get("default")
    args = [value]
    if offset is not None:
        args.append(_whole(binder, offset))
    if default is not None:
        args.append(cast(binder.bind(default), value.type, binder.position(node)))
    return name, value.type, tuple(args)


def _filtered(binder: Binder, node: exp.Expr) -> _Called:
    """Return an aggregate over the rows of its FILTER: its argument is NULL in others, and NULL is not counted."""
    name, result, args = _function(binder, node.args["this"])
    if name == "array_agg" or type(node.args["this"]) not in AGGREGATES:
        raise Refusal(
            "FILTER does not stand after this function with OVER", sqlstate="0A000", position=binder.position(node),
            hint="filter the rows in a subquery first",
        )  # fmt: skip
    predicate = binder.bind_boolean(node.args["expression"].args["this"], "FILTER")
    first = args[0] if args else Literal(BIGINT, 1)
    if first.is_constant and first.constant is None:
        return name, result, args
    kept = Call(
        first.type, "case", (predicate, first, Literal(first.type, None)), position=binder.position(node)
    )
    return name, result, (kept, *args[1:])


_WINDOWS: dict[type[exp.Expr], Callable[[Binder, exp.Expr], _Called]] = {
    exp.RowNumber: partial(_rank, "row_number", BIGINT), exp.Rank: partial(_rank, "rank", BIGINT),
    exp.DenseRank: partial(_rank, "dense_rank", BIGINT), exp.PercentRank: partial(_rank, "percent_rank", DOUBLE),
    exp.CumeDist: partial(_rank, "cume_dist", DOUBLE), exp.FirstValue: partial(_end, "first_value"),
    exp.LastValue: partial(_end, "last_value"), exp.Ntile: _tile, exp.NthValue: _nth,
    exp.Lag: partial(_neighbour, "lag"), exp.Lead: partial(_neighbour, "lead"), exp.Filter: _filtered,
}  # fmt: skip
"""Kind of node before OVER that is no aggregate -> what reads it."""


def _whole(binder: Binder, node: exp.Expr) -> Expr:
    value = binder.bind(node)
    if not isinstance(value.constant, int) or not value.type.is_integer or not 0 <= value.constant < 2**31:
        raise binder.refusal(node, "22023", "a literal whole number is expected here")
    return value


def _place(binder: Binder, node: exp.Expr, said: str) -> Expr:
    place = _whole(binder, node)
    if not place.constant:
        raise Refusal(f"{said} counts from 1", sqlstate="22023", position=binder.position(node))
    return place


# --- frames ----------------------------------------------------------------------------------------------

_LONGEST_DAYS = 1_000_000
_EXCLUDED = {"CURRENT ROW": "CURRENT ROW", "GROUP": "GROUP", "TIES": "TIES", "NO OTHERS": ""}


def _frame(binder: Binder, spec: exp.Expr | None, orders: tuple[Order, ...]) -> str | None:
    """Return a frame clause; None for the usual frame.

    Raises:
        Refusal: 42P20 for a frame that ends before it starts, or has no order to count in; 22023 for an offset that is
            no constant of the order's kind.
    """
    if spec is None:
        return None
    kind = str(spec.args.get("kind") or "").upper()
    ends = []
    for end in ("start", "end"):
        value, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
        if isinstance(value, exp.Expr):
            ends.append(f"{_offset(binder, binder.bind(value), kind, orders, spec)} {side}")
        elif str(value).upper() == "UNBOUNDED":
            ends.append(f"UNBOUNDED {side}")
        else:
            ends.append("CURRENT ROW")
    sides = ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING", "CURRENT ROW")
    good = all(end in sides or end.endswith((" PRECEDING", " FOLLOWING")) for end in ends)
    excluded = str(getattr(spec.args.get("exclude"), "name", spec.args.get("exclude")) or "NO OTHERS").upper()
    if kind not in ("ROWS", "RANGE", "GROUPS") or not good or excluded not in _EXCLUDED:
        raise Refusal("this window frame is not supported", position=binder.position(spec))
    if kind == "GROUPS" and not orders:
        raise binder.refusal(spec, "42P20", "GROUPS counts groups of rows that tie, and needs ORDER BY")
    first, last = (_place_of(end) for end in ends)
    if first > last or ends[0] == "UNBOUNDED FOLLOWING" or ends[1] == "UNBOUNDED PRECEDING":
        raise binder.refusal(
            spec, "42P20", "this window frame ends before it starts", "write the earlier end first"
        )
    shown = _EXCLUDED[excluded]
    return f"{kind} BETWEEN {ends[0]} AND {ends[1]}" + (f" EXCLUDE {shown}" if shown else "")


def _offset(binder: Binder, value: Expr, kind: str, orders: tuple[Order, ...], spec: exp.Expr) -> str:
    position = binder.position(spec)
    if kind == "RANGE":
        if len(orders) != 1:
            raise binder.refusal(spec, "42P20", "RANGE with an offset takes one expression in ORDER BY")
        if orders[0].expr.type.is_temporal:
            return _time(coerce_literal(value, INTERVAL), binder, spec)
        number = value.constant if value.is_constant and orders[0].expr.type.is_number else None
        if isinstance(number, (int, float, Fraction)) and not isinstance(number, bool) and number >= 0:
            return str(number) if isinstance(number, int) else repr(float(number))
    number = value.constant if value.is_constant and value.type.kind is not Kind.BOOLEAN else None
    if kind not in ("ROWS", "GROUPS") or not isinstance(number, int) or not 0 <= number < 2**31:
        raise Refusal(
            "the offset of a window frame is a constant, not negative, of the kind of its ORDER BY", sqlstate="22023",
            position=position, hint="ROWS 2 PRECEDING, RANGE INTERVAL '7 days' PRECEDING",
        )  # fmt: skip
    return str(number)


def _time(value: Expr, binder: Binder, spec: exp.Expr) -> str:
    """Return an offset in time. Raises Refusal (22023)."""
    months = value.constant
    if not isinstance(months, Months) or min(months.months, months.days, months.microseconds) < 0:
        raise Refusal(
            "the offset of a window frame over dates is an interval that is not negative", sqlstate="22023",
            position=binder.position(spec), hint="RANGE INTERVAL '7 days' PRECEDING",
        )  # fmt: skip
    if months.months * 31 + months.days > _LONGEST_DAYS:
        raise binder.refusal(spec, "22023", "this offset of a window frame is too long")
    return f"INTERVAL '{months.months} months {months.days} days {months.microseconds} microseconds'"


def _place_of(end: str) -> int:
    """Return where a frame's end stands: before, at, or after the current row."""
    return -1 if end.endswith(" PRECEDING") else 1 if end.endswith(" FOLLOWING") else 0


# --- aggregate calls ----------------------------------------------------------------------------------------


def _written(binder: Binder, node: exp.Expr, row: Aggregate) -> tuple[list[exp.Expr], bool, exp.Expr | None]:
    """Return the arguments of a call as written, none of COUNT(*), whether each value counts once, and the ORDER BY.

    Raises:
        Refusal: 42883 for another number of them, 0A000 for what DISTINCT does not tell apart.
    """
    position = binder.position(node)
    written, distinct, order = written_arguments(node, row)
    is_star = len(written) == 1 and isinstance(written[0], exp.Star)
    if is_star and row.name == "count" and not distinct:
        return [], False, None
    if distinct and row.is_paired:
        raise Refusal(
            f"{row.name.upper()}(DISTINCT …) is not answered", position=position, hint="leave out DISTINCT"
        )
    if distinct and not row.form:
        return _told_apart(written, row.name, position), distinct, order
    if len(written) != row.count or any(isinstance(part, exp.Star) for part in written):
        said, hint = "one argument", "COUNT(*) counts rows" if len(written) < 2 else None
        if row.is_paired:
            said, hint = "two arguments, y and x", f"{row.name}(y, x) is of y as a function of x"
        elif row.form:
            said, hint = counted(row.count, "argument"), row.form
        raise binder.refusal(node, "42883", f"{row.said or row.name}() takes {said}", hint)
    return written, distinct, order


def _told_apart(written: list[exp.Expr], name: str, position: Position | None) -> list[exp.Expr]:
    """Return what DISTINCT tells apart: one expression, or for COUNT the columns of a row (…, …)."""
    inner = bare(written[0]) if len(written) == 1 else None
    is_tuple = isinstance(inner, exp.Tuple)
    if (
        inner is not None
        and (is_tuple or called(inner) == "row")
        and name == "count"
        and (parts := listed(inner))
    ):
        return parts
    if inner is None or is_tuple:
        raise Refusal(
            "DISTINCT takes one expression inside an aggregate",
            sqlstate="0A000",
            position=position,
            hint="join the columns: COUNT(DISTINCT a || '-' || b); or count people by all columns of their key: "
            "COUNT(DISTINCT (a, b))",
        )
    return written


def read_aggregate(binder: Binder, node: exp.Expr, row: Aggregate) -> AggregateCall:
    """Return the aggregate that a function node stands for.

    Raises:
        Refusal: 42803 for nested aggregates, 42883 for arguments that do not fit, 42P10 for an order that DISTINCT
            does not know, 0A000 for an argument that is to be a constant.
    """
    position = binder.position(node)
    binder.check_allowed(row.name, node)
    written, distinct, order = _written(binder, node, row)
    with binder.within("inside an aggregate"):
        args, has_rows = _arguments(binder, row, written)
        orders = read_orders(binder, order)
    result = checked_result(row, tuple(args), position)
    if not row.form:  # a sum, a count or an extreme is the same in any order
        return AggregateCall(result, row.name, tuple(args), distinct and row.repeats, None, position=position)
    if distinct and (row.name.endswith("object_agg") or args[0].type.is_json):
        raise Refusal(
            f"{row.name}(DISTINCT …) is not answered of these arguments", sqlstate="42883", position=position,
            hint="take DISTINCT in a subquery first",
        )  # fmt: skip
    if distinct:
        orders = _of_distinct(args[0], orders, position)
    name = f"{row.name}_lines" if has_rows and row.name == "json_agg" else row.name
    return AggregateCall(result, name, tuple(args), distinct, None, orders, position=position)


def bind_aggregate(binder: Binder, node: exp.Expr) -> Expr:
    """Take an aggregate out of an expression."""
    row = aggregate_row(node)
    assert row is not None
    if row.shorthand:
        return _meant(binder, node, row)
    return binder.add_aggregate(read_aggregate(binder, node, row))


def _meant(binder: Binder, node: exp.Expr, row: Aggregate, kept: exp.Expr | None = None) -> Expr:
    """Return what a shorthand says of its argument, on the rows that a FILTER after it keeps."""
    binder.check_allowed(row.name, node)
    with binder.within("inside an aggregate"):
        is_filtered = row.shorthand.endswith("FILTER (WHERE a)")
        taken = node.args["this"]
        parts = {
            "a": binder.bind_boolean(taken, f"what {row.name} takes") if is_filtered else binder.bind(taken)
        }
        if kept is not None:
            parts["kept"] = binder.bind_boolean(kept, "FILTER")
    if kept is None:
        return binder.meant(row.shorthand, node, parts)
    kept_too = f"{row.shorthand[:-1]} AND kept)" if is_filtered else f"{row.shorthand} FILTER (WHERE kept)"
    return binder.meant(kept_too, node, parts)


def bind_filter(binder: Binder, node: exp.Expr) -> Expr:
    """Take `aggregate FILTER (WHERE predicate)` out of an expression.

    Raises:
        Refusal: 42601 after anything but an aggregate, and what `read_aggregate` raises.
    """
    inner, where = node.args["this"], node.args["expression"]
    row = aggregate_row(inner)
    if row is not None and row.shorthand:
        return _meant(binder, inner, row, where.args["this"])
    if row is None and not isinstance(inner, exp.WithinGroup):
        raise Refusal("FILTER stands after an aggregate", sqlstate="42601", position=binder.position(node))
    if row is None:
        read = read_within_group(binder, inner)
    else:
        read = Ordered((read_aggregate(binder, inner, row),), is_array=False)
    with binder.within("inside FILTER"):
        predicate = binder.bind_boolean(where.args["this"], "FILTER")
    return read.added(binder, None if predicate == TRUE else predicate)


def bind_grouping(binder: Binder, node: exp.Expr) -> Expr:
    """Take GROUPING(keys) out of an expression.

    Raises:
        Refusal: 42803 where no aggregate may stand.
    """
    binder.check_allowed("GROUPING", node)
    keys = tuple(binder.bind(part) for part in node.args["expressions"])
    return binder.add_grouping(keys, binder.position(node))


# --- with DISTINCT and ORDER BY inside ------------------------------------------------------------------------


def _arguments(binder: Binder, row: Aggregate, written: list[exp.Expr]) -> tuple[list[Expr], bool]:
    """Return the arguments, and whether JSON shows each on a line: rows and arrays."""
    result = row.result() if row.name in ("json_agg", "jsonb_agg") else None
    if result is None:
        return [binder.bind(one) for one in written], False
    found = [bind_json_value(binder, one, result) for one in written]
    return [value for value, _ in found], any(
        is_row or value.type.kind is Kind.ARRAY for value, is_row in found
    )


def _of_distinct(value: Expr, orders: tuple[Order, ...], position: Position | None) -> tuple[Order, ...]:
    """Return the order of distinct values: they are sorted to be told apart, as in Postgres."""
    if any(order.expr != value for order in orders):
        raise Refusal(
            "with DISTINCT, ORDER BY inside an aggregate takes its argument", sqlstate="42P10", position=position,
            hint="take DISTINCT in a subquery first",
        )  # fmt: skip
    return orders[:1] or (Order(value, False, False),)


# --- WITHIN GROUP ---------------------------------------------------------------------------------------------

_LARGEST = 10**4
"""Largest denominator of a fraction: scores stay exact integers."""
_QUOTIENT = regex(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ordered:
    """One aggregate, or those of an array of fractions in its order."""

    calls: tuple[AggregateCall, ...]
    is_array: bool

    def added(self, binder: Binder, filter_: Expr | None = None) -> Expr:
        """Take the aggregates out of an expression; return what stands in their place."""
        found = [binder.add_aggregate(replace(call, filter=filter_)) for call in self.calls]
        if not self.is_array:
            return found[0]
        return Call(array_of(found[0].type), "array", tuple(found), position=self.calls[0].position)


def read_within_group(binder: Binder, node: exp.Expr) -> Ordered:
    """Return the aggregates of `percentile(fraction) WITHIN GROUP (ORDER BY x [DESC])`; DESC counts from the other end.

    Raises:
        Refusal: 42803 for nested aggregates, 42601, 42883 and 22023 for what does not fit.
    """
    position = binder.position(node)
    inner, order = node.args["this"], node.args.get("expression")
    row = ORDERED.get(type(inner))
    if row is None or not isinstance(order, exp.Order):
        raise binder.refusal(
            node, "42601", "WITHIN GROUP (ORDER BY x) stands after percentile_cont, percentile_disc or mode"
        )
    name = row.name
    binder.check_allowed(name, node)
    orders = order.args["expressions"]
    if name == "mode" and inner.args.get("this") is not None:
        raise binder.refusal(
            node, "42883", "mode takes nothing but ORDER BY", "mode() WITHIN GROUP (ORDER BY x)"
        )
    if inner.args.get("expression") is not None or len(orders) != 1 or not isinstance(orders[0], exp.Ordered):
        raise Refusal(
            f"{name} takes one fraction, and one expression in ORDER BY", sqlstate="42883", position=position,
            hint=f"{name}(0.9) WITHIN GROUP (ORDER BY x)",
        )  # fmt: skip
    with binder.within("inside an aggregate"):
        fractions, is_array = (
            ([], False) if name == "mode" else _fractions(binder, inner.args["this"], name, position)
        )
        value = binder.bind(orders[0].args["this"])
    result = row.result(value.type)
    if result is None:
        raise Refusal(
            f"{name} over {value.type} does not exist here", sqlstate="42883", position=position,
            hint="it is answered for numbers, dates and timestamps",
        )  # fmt: skip
    if name == "mode":
        # Of values that are as frequent the first in the order is taken.
        by = (Order(value, bool(orders[0].args.get("desc")), False),)
        return Ordered((AggregateCall(result, name, (value,), False, None, by, position=position),), False)
    descends = bool(orders[0].args.get("desc"))
    shares = [1 - fraction if descends else fraction for fraction in fractions]
    # Of an even number of values the one in the middle depends on the end that is counted from.
    order = (Order(value, True, True),) if descends and name == "percentile_disc" else ()
    calls = [
        AggregateCall(result, name, (value, Literal(NUMERIC, share)), False, None, order, position=position)
        for share in shares
    ]
    return Ordered(tuple(calls), is_array)


def bind_within_group(binder: Binder, node: exp.Expr) -> Expr:
    """Take a percentile out of an expression."""
    return read_within_group(binder, node).added(binder)


def bind_alone(binder: Binder, node: exp.Expr) -> Expr:
    """Refuse a percentile without its order. Raises Refusal (42601)."""
    name = ORDERED[type(node)].name
    raise Refusal(
        f"{name} needs WITHIN GROUP (ORDER BY x)", sqlstate="42601", position=binder.position(node),
        hint=f"write {name}({'' if name == 'mode' else '0.9'}) WITHIN GROUP (ORDER BY x)",
    )  # fmt: skip


def _fractions(
    binder: Binder, node: exp.Expr, name: str, position: Position | None
) -> tuple[list[Fraction], bool]:
    """Return the fractions, and whether they stand in an array. Raises Refusal (22023, 54001, 0A000)."""
    if not isinstance(node, exp.Array):
        return [_fraction(binder.bind(node), name, position)], False
    parts = node.args["expressions"]
    if not 1 <= len(parts) <= MAX_FRACTIONS:
        raise Refusal(
            f"{name} takes an array of 1 to {MAX_FRACTIONS} fractions", position=position,
            sqlstate="54001" if parts else "22023", hint=f"{name}(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY x)",
        )  # fmt: skip
    return [_fraction(binder.bind(part), name, position) for part in parts], True


def _fraction(expr: Expr, name: str, position: Position | None) -> Fraction:
    """Return a literal fraction. Raises Refusal (0A000, 22023)."""
    expr = sample(expr, NUMERIC, Fraction(1, 2))
    value = expr.constant
    fraction = None if isinstance(value, bool) else _read(value)
    if fraction is None:
        raise Refusal(
            f"{name} takes a number from 0 to 1", sqlstate="0A000", position=expr.position or position,
            hint=f"write it as a constant: {name}(0.9), {name}('1/3')",
        )  # fmt: skip
    if not 0 <= fraction <= 1:
        raise Refusal(
            "a percentile is between 0 and 1", sqlstate="22023", position=expr.position or position,
            hint=f"{name}(0.9) is the value below which nine in ten lie",
        )  # fmt: skip
    if fraction.denominator > _LARGEST:
        raise Refusal(
            "a percentile has at most four decimals", sqlstate="0A000", position=expr.position or position,
            hint=f"round it: the noise of a rank is larger; or '1/3', with a denominator of at most {_LARGEST}",
        )  # fmt: skip
    return fraction


def _read(value: object) -> Fraction | None:
    """Return a constant as a fraction: a number, its text, or the text of a quotient such as '1/3'."""
    try:
        if isinstance(value, str) and (quotient := _QUOTIENT.fullmatch(value)):
            return Fraction(int(quotient[1]), int(quotient[2]))
        return value if isinstance(value, Fraction) else Fraction(Decimal(str(value)))
    except (InvalidOperation, TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None
