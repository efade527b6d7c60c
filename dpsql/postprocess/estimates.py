"""The own error of estimates over randomised answers, as simulated error bars have it (soundness.md 1.24).

`estimated(x, variance, number, …)` is x where it is shown. Where the truth is simulated, it is x with a normal error of
that variance: one deviate for each estimate of the statement, row and draw.
"""

from __future__ import annotations

from ..relation.expressions import Call, Expr, Literal, Scalar, map_children, walk
from ..relation.relations import Relation, expressions
from ..relation.types import DOUBLE

__all__ = ["estimate_notes", "holds_estimate", "print_deviate", "with_own_error"]


def holds_estimate(expr: Expr) -> bool:
    """Say whether an expression has an error of its own, whatever is under it."""
    return any(isinstance(part, Call) and part.function == "estimated" for part in walk(expr))


def estimate_notes(relation: Relation) -> tuple[str, ...]:
    """Return what is said of the coins of each answer whose estimates a relation holds."""
    found: dict[str, None] = {}
    seen: dict[int, Relation] = {}
    stack = [relation]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        stack += reversed(node.inputs)
        for part in (part for expr in expressions(node) for part in walk(expr)):
            if isinstance(part, Scalar):
                stack.append(part.relation)
            if isinstance(part, Call) and part.function == "estimated" and isinstance(part.args[3], Literal):
                found.update(dict.fromkeys(str(part.args[3].value).split("\n")))
    return tuple(found)


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
