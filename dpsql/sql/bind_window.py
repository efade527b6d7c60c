"""Window calls: they stand over released or public rows; the privacy analysis refuses them over private ones.

House rule: frames are in canonical words that Postgres and every engine here read; what an offset may be keeps the
engine from a value beyond its types (`print_public` has the house rule).
"""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from ..errors import Refusal
from ..relation.aggregates import Aggregate
from ..relation.expressions import Call, Expr, Literal, Months
from ..relation.relations import Order, WindowCall
from ..relation.types import BIGINT, DOUBLE, INTEGER, INTERVAL, Kind, SqlType
from .aggregates import (
    AGGREGATES,
    PUBLIC_AGGREGATES,
    aggregate_row,
    checked_result,
    public_row,
    written_arguments,
)
from .bind_expression import Binder, cast
from .constants import coerce_literal
from .tree import listed

__all__ = ["bind_window", "nulls_first", "read_orders"]

_RANKS: dict[type[exp.Expr], tuple[str, SqlType]] = {
    exp.RowNumber: ("row_number", BIGINT), exp.Rank: ("rank", BIGINT), exp.DenseRank: ("dense_rank", BIGINT),
    exp.PercentRank: ("percent_rank", DOUBLE), exp.CumeDist: ("cume_dist", DOUBLE),
}  # fmt: skip
_OVER_VALUES: dict[type[exp.Expr], str] = {exp.FirstValue: "first_value", exp.LastValue: "last_value"}


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


def _function(binder: Binder, node: exp.Expr) -> tuple[str, SqlType, tuple[Expr, ...]]:
    if type(node) in _RANKS:
        return (*_RANKS[type(node)], ())
    if isinstance(node, exp.Ntile):
        return "ntile", INTEGER, (_whole(binder, node.args["this"]),)
    if type(node) in _OVER_VALUES:
        value = binder.bind(node.args["this"])
        return _OVER_VALUES[type(node)], value.type, (value,)
    if isinstance(node, (exp.Lag, exp.Lead)):
        value = binder.bind(node.args["this"])
        args = [value]
        if node.args.get("offset") is not None:
            args.append(_whole(binder, node.args["offset"]))
        if node.args.get("default") is not None:
            args.append(cast(binder.bind(node.args["default"]), value.type, binder.position(node)))
        return "lag" if isinstance(node, exp.Lag) else "lead", value.type, tuple(args)
    if isinstance(node, exp.NthValue):
        value, place = binder.bind(node.args["this"]), _whole(binder, node.args["offset"])
        if not place.constant:
            raise Refusal("nth_value counts from 1", sqlstate="22023", position=binder.position(node))
        return "nth_value", value.type, (value, place)
    if isinstance(node, exp.Filter):
        return _filtered(binder, node)
    aggregate = aggregate_row(node)
    if aggregate is not None and aggregate.is_paired:
        return _paired(binder, node, aggregate)
    if aggregate is not None and aggregate.windows:
        name = aggregate.name
        argument = node.args.get("this")
        if isinstance(node, exp.Anonymous):
            argument = next(iter(listed(node)), None)
        if argument is None:
            raise Refusal(f"{name}() takes one argument", sqlstate="42883", position=binder.position(node))
        if isinstance(argument, exp.Star):
            if name != "count":
                raise Refusal(f"{name}(*) does not exist", sqlstate="42883", position=binder.position(node))
            return "count", BIGINT, ()
        if isinstance(argument, (exp.Distinct, exp.Order)):
            raise _of_all_rows(binder, node)
        value = binder.bind(argument)
        result = aggregate.result(value.type)
        if result is None:
            raise Refusal(
                f"{name}({value.type}) does not exist", sqlstate="42883", position=binder.position(node)
            )
        return name, result, (value,)
    public = public_row(node)
    if public is not None:
        return _public(binder, node, public)
    raise Refusal("this function has no window form here", position=binder.position(node))


def _of_all_rows(binder: Binder, node: exp.Expr) -> Refusal:
    return Refusal(
        "DISTINCT and ORDER BY do not stand inside a window call", sqlstate="0A000", position=binder.position(node),
        hint="as in Postgres: take DISTINCT in a subquery first, and write the order into OVER (ORDER BY …)",
    )  # fmt: skip


def _public(binder: Binder, node: exp.Expr, row: Aggregate) -> tuple[str, SqlType, tuple[Expr, ...]]:
    written, is_distinct, order = written_arguments(node, row)
    if is_distinct or order is not None:
        raise _of_all_rows(binder, node)
    args = tuple(binder.bind(one) for one in written)
    return row.name, checked_result(row, args, binder.position(node)), args


def _paired(binder: Binder, node: exp.Expr, row: Aggregate) -> tuple[str, SqlType, tuple[Expr, ...]]:
    written = [node.args.get("this"), node.args.get("expression")]
    values = tuple(binder.bind(one) for one in written if isinstance(one, exp.Expr))
    result = row.result(*(value.type for value in values)) if len(values) == 2 else None
    if result is None:
        raise Refusal(f"{row.name}() takes two numbers", sqlstate="42883", position=binder.position(node))
    return row.name, result, values


def _filtered(binder: Binder, node: exp.Expr) -> tuple[str, SqlType, tuple[Expr, ...]]:
    """Return an aggregate over the rows of its FILTER: its argument is NULL in others, and NULL is not counted."""
    name, result, args = _function(binder, node.args["this"])
    if name == "array_agg" or type(node.args["this"]) not in {*AGGREGATES, *PUBLIC_AGGREGATES}:
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


def _whole(binder: Binder, node: exp.Expr) -> Expr:
    value = binder.bind(node)
    if not isinstance(value.constant, int) or not value.type.is_integer or not 0 <= value.constant < 2**31:
        raise Refusal(
            "a literal whole number is expected here", sqlstate="22023", position=binder.position(node)
        )
    return value


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
        raise Refusal(
            "GROUPS counts groups of rows that tie, and needs ORDER BY",
            sqlstate="42P20",
            position=binder.position(spec),
        )
    first, last = (_place_of(end) for end in ends)
    if first > last or ends[0] == "UNBOUNDED FOLLOWING" or ends[1] == "UNBOUNDED PRECEDING":
        raise Refusal(
            "this window frame ends before it starts", sqlstate="42P20", position=binder.position(spec),
            hint="write the earlier end first",
        )  # fmt: skip
    shown = _EXCLUDED[excluded]
    return f"{kind} BETWEEN {ends[0]} AND {ends[1]}" + (f" EXCLUDE {shown}" if shown else "")


def _offset(binder: Binder, value: Expr, kind: str, orders: tuple[Order, ...], spec: exp.Expr) -> str:
    position = binder.position(spec)
    if kind == "RANGE":
        if len(orders) != 1:
            raise Refusal(
                "RANGE with an offset takes one expression in ORDER BY", sqlstate="42P20", position=position
            )
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
        raise Refusal(
            "this offset of a window frame is too long", sqlstate="22023", position=binder.position(spec)
        )
    return f"INTERVAL '{months.months} months {months.days} days {months.microseconds} microseconds'"


def _place_of(end: str) -> int:
    """Return where a frame's end stands: before, at, or after the current row."""
    return -1 if end.endswith(" PRECEDING") else 1 if end.endswith(" FOLLOWING") else 0
