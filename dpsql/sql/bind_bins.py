"""Bins: width_bucket, whose ends and count are constants."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from ..relation.expressions import Expr, Literal
from ..relation.functions import NAMES
from ..relation.functions.bins import MAX_BUCKETS
from ..relation.types import DOUBLE, INTEGER
from .bind_expression import Binder, call, cast
from .constants import coerce_literal
from .named_calls import bind_row
from .parameters import sample

__all__ = ["bind_width_bucket"]

_LARGEST = Fraction(10) ** 100


def bind_width_bucket(binder: Binder, node: exp.Expr, name: str) -> Expr:
    """Return width_bucket(x, low, high, count): of constants but for x on people's rows too, else above a release.

    Raises:
        Refusal: as `bind_row`.
    """
    position = binder.position(node)
    args = [binder.bind(part) for part in node.args.get("expressions") or []]
    if len(args) != 4:
        return bind_row(binder, node, name, NAMES[name], args)
    value = coerce_literal(args[0], DOUBLE)
    ends = [
        sample(coerce_literal(arg, DOUBLE), DOUBLE, Fraction(number)) for number, arg in enumerate(args[1:3])
    ]
    count = sample(coerce_literal(args[3], INTEGER), INTEGER, 1)
    low, high, buckets = (one.value if isinstance(one, Literal) else None for one in (*ends, count))
    if (
        not isinstance(low, (int, Fraction))
        or not isinstance(high, (int, Fraction))
        or not isinstance(buckets, int)
    ):
        return bind_row(binder, node, name, NAMES[name], [value, *ends, count])
    far, apart = max(abs(Fraction(low)), abs(Fraction(high))), abs(Fraction(high) - Fraction(low))
    if far > _LARGEST or apart < 1 / _LARGEST or not 1 <= buckets <= MAX_BUCKETS:
        return bind_row(binder, node, name, NAMES[name], [value, *ends, count])
    if any(arg.type.is_float for arg in (value, *ends)):
        ends = [cast(end, DOUBLE, position) for end in ends]
    return call("width_bucket", [value, *ends, count], position)
