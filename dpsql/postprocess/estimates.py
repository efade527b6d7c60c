"""The own error of estimates over randomised answers, as simulated error bars have it (soundness.md 1.24).

`estimated(x, variance, number, …)` is x where it is shown. Where the truth is simulated, it is x with a normal error of
that variance: one deviate for each estimate of the statement, row and draw.
"""

from __future__ import annotations

from ..relation.expressions import Call, Expr, map_children, walk
from ..relation.types import DOUBLE

__all__ = ["holds_estimate", "print_deviate", "with_own_error"]


def holds_estimate(expr: Expr) -> bool:
    """Say whether an expression has an error of its own, whatever is under it."""
    return any(part.calls("estimated") for part in walk(expr))


def with_own_error(expr: Expr, draw: Expr, row: tuple[Expr, ...]) -> Expr:
    """Return an expression with each estimate at a draw of its error; NULL where its variance is not known."""
    if not isinstance(expr, Call):
        return expr
    if expr.function != "estimated":
        return map_children(expr, lambda child: with_own_error(child, draw, row))
    value, variance, number, _ = expr.args
    deviate = Call(DOUBLE, "deviate", (number, draw, *row))
    error = Call(DOUBLE, "mul", (Call(DOUBLE, "sqrt", (variance,)), deviate))
    return Call(DOUBLE, "add", (value, error))


def print_deviate(call: Call, args: list[str]) -> str:
    """Print a standard normal number that is a function of its arguments: of two uniform ones, as Box and Muller do.

    Hashes of several values are sums of theirs, so near ones are alike in DuckDB until they are hashed once more.
    """
    once = f"hash(hash({', '.join(args)}))"
    first, second = (
        f"((CAST({bits} AS DOUBLE) + 1e0) / 18446744073709551616e0)" for bits in (once, f"hash({once})")
    )
    return f"(sqrt(-2e0 * ln({first})) * cos(6.283185307179586e0 * {second}))"
