"""Frames of window calls, in canonical words that Postgres and every engine here read.

House rule: what an offset may be keeps the engine from a value beyond its types (`print_public` has the house rule).
"""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import Expr, Literal, Months
from ..relation.relations import Order
from ..relation.types import INTERVAL, Kind
from .bind_expression import Binder
from .constants import coerce_literal

__all__ = ["bind_frame"]

_LONGEST_DAYS = 1_000_000
_EXCLUDED = {"CURRENT ROW": "CURRENT ROW", "GROUP": "GROUP", "TIES": "TIES", "NO OTHERS": ""}


def bind_frame(binder: Binder, spec: exp.Expr | None, orders: tuple[Order, ...]) -> str | None:
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
        number = value.value if isinstance(value, Literal) and orders[0].expr.type.is_number else None
        if isinstance(number, (int, float, Fraction)) and not isinstance(number, bool) and number >= 0:
            return str(number) if isinstance(number, int) else repr(float(number))
    number = value.value if isinstance(value, Literal) and value.type.kind is not Kind.BOOLEAN else None
    if kind not in ("ROWS", "GROUPS") or not isinstance(number, int) or not 0 <= number < 2**31:
        raise Refusal(
            "the offset of a window frame is a constant, not negative, of the kind of its ORDER BY", sqlstate="22023",
            position=position, hint="ROWS 2 PRECEDING, RANGE INTERVAL '7 days' PRECEDING",
        )  # fmt: skip
    return str(number)


def _time(value: Expr, binder: Binder, spec: exp.Expr) -> str:
    """Return an offset in time. Raises Refusal (22023)."""
    months = value.value if isinstance(value, Literal) else None
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
