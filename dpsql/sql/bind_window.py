"""Window calls: they stand over released or public rows; the privacy analysis refuses them over private ones."""

from __future__ import annotations

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import Expr, Literal
from ..relation.relations import Order, WindowCall
from ..relation.types import BIGINT, DOUBLE, INTEGER, Kind, SqlType
from .aggregates import AGGREGATES
from .bind_expression import Binder, cast

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
    clause = _clause(binder, node)
    inside, binder.place = binder.place, "inside OVER"
    try:
        partition = tuple(binder.bind(part) for part in clause.args.get("partition_by") or [])
        orders = read_orders(binder, clause.args.get("order"))
        name, result, args = _function(binder, node.args["this"])
    finally:
        binder.place = inside
    frame = _frame(binder, clause.args.get("spec"))
    return binder.add_window(WindowCall(result, name, args, partition, orders, frame, position=position))


def _clause(binder: Binder, node: exp.Expr) -> exp.Expr:
    alias = node.args.get("alias")
    if alias is None:
        return node
    name = str(alias.args["this"]).lower()
    found = binder.named_windows.get(name)
    if found is None or node.args.get("partition_by") or node.args.get("order") or node.args.get("spec"):
        raise Refusal(f'window "{name}" does not exist', sqlstate="42704", position=binder.position(node))
    return found


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
    aggregate = AGGREGATES.get(type(node))
    if aggregate is not None and aggregate.windows:
        name = aggregate.name
        argument = node.args.get("this")
        if argument is None:
            raise Refusal(f"{name}() takes one argument", sqlstate="42883", position=binder.position(node))
        if isinstance(argument, exp.Star):
            if name != "count":
                raise Refusal(f"{name}(*) does not exist", sqlstate="42883", position=binder.position(node))
            return "count", BIGINT, ()
        if isinstance(argument, exp.Distinct):
            raise Refusal("DISTINCT is not supported in a window", position=binder.position(node))
        value = binder.bind(argument)
        result = aggregate.result(value.type)
        if result is None:
            raise Refusal(
                f"{name}({value.type}) does not exist", sqlstate="42883", position=binder.position(node)
            )
        return name, result, (value,)
    raise Refusal("this function has no window form here", position=binder.position(node))


def _whole(binder: Binder, node: exp.Expr) -> Literal:
    value = binder.bind(node)
    if (
        not isinstance(value, Literal)
        or not isinstance(value.value, int)
        or not value.type.is_integer
        or not 0 <= value.value < 2**31
    ):
        raise Refusal(
            "a literal whole number is expected here", sqlstate="22023", position=binder.position(node)
        )
    return value


def _frame(binder: Binder, spec: exp.Expr | None) -> str | None:
    """Return a frame clause in canonical words."""
    if spec is None:
        return None
    kind = str(spec.args.get("kind") or "").upper()
    ends = []
    for end in ("start", "end"):
        value, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
        if isinstance(value, exp.Expr):
            number = binder.bind(value)
            whole = isinstance(number, Literal) and isinstance(number.value, int) and number.value >= 0
            if not whole or number.type.kind is Kind.BOOLEAN or kind != "ROWS":
                raise Refusal("this window frame is not supported", position=binder.position(spec))
            assert isinstance(number, Literal)
            ends.append(f"{number.value} {side}")
        elif str(value).upper() == "UNBOUNDED":
            ends.append(f"UNBOUNDED {side}")
        else:
            ends.append("CURRENT ROW")
    sides = ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING", "CURRENT ROW")
    good = all(end in sides or end.endswith((" PRECEDING", " FOLLOWING")) for end in ends)
    if kind not in ("ROWS", "RANGE") or not good:
        raise Refusal("this window frame is not supported", position=binder.position(spec))
    first, last = (_place_of(end) for end in ends)
    if first > last or ends[0] == "UNBOUNDED FOLLOWING" or ends[1] == "UNBOUNDED PRECEDING":
        raise Refusal(
            "this window frame ends before it starts", sqlstate="42P20", position=binder.position(spec),
            hint="write the earlier end first",
        )  # fmt: skip
    return f"{kind} BETWEEN {ends[0]} AND {ends[1]}"


def _place_of(end: str) -> int:
    """Return where a frame's end stands: before, at, or after the current row."""
    return -1 if end.endswith(" PRECEDING") else 1 if end.endswith(" FOLLOWING") else 0
