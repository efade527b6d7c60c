"""Bins: width_bucket, whose ends and count are constants."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import Expr, Literal
from ..relation.functions.bins import MAX_BUCKETS
from ..relation.types import DOUBLE, INTEGER
from .bind_expression import Binder, call, cast
from .constants import coerce_literal
from .parameters import sample

__all__ = ["bind_width_bucket"]

_LARGEST = Fraction(10) ** 100


def bind_width_bucket(binder: Binder, node: exp.Expr) -> Expr:
    """Return width_bucket(x, low, high, count).

    Raises:
        Refusal: PV202 for ends or a count that are no constants, 22023 for those that make no buckets.
    """
    position = binder.position(node)
    value = coerce_literal(binder.bind(node.args["this"]), DOUBLE)
    ends = [
        sample(coerce_literal(binder.bind(node.args[name]), DOUBLE), DOUBLE, Fraction(number))
        for number, name in enumerate(("min_value", "max_value"))
    ]
    count = sample(coerce_literal(binder.bind(node.args["num_buckets"]), INTEGER), INTEGER, 1)
    low, high, buckets = (one.value if isinstance(one, Literal) else None for one in (*ends, count))
    if (
        not isinstance(low, (int, Fraction))
        or not isinstance(high, (int, Fraction))
        or not isinstance(buckets, int)
    ):
        raise Refusal(
            "width_bucket takes constants for its ends and its count", sqlstate="PV202", position=position,
            hint="write the numbers out: width_bucket(x, 0, 100, 10)",
        )  # fmt: skip
    far, apart = max(abs(Fraction(low)), abs(Fraction(high))), abs(Fraction(high) - Fraction(low))
    if far > _LARGEST or apart < 1 / _LARGEST:
        raise Refusal(
            "the ends of width_bucket are two numbers, apart from each other",
            sqlstate="22023",
            position=position,
        )
    if not 1 <= buckets <= MAX_BUCKETS:
        raise Refusal(f"width_bucket makes 1 to {MAX_BUCKETS} buckets", sqlstate="22023", position=position)
    if any(arg.type.is_float for arg in (value, *ends)):
        ends = [cast(end, DOUBLE, position) for end in ends]
    return call("width_bucket", [value, *ends, count], position)
