"""The arithmetic of estimates above an aggregate over reported answers: weights, moments, inverses (soundness.md 1.24).

Everything here is an expression over released or public numbers; weights are exact until they are printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..relation.expressions import TRUE, Call, Expr, Field, Literal
from ..relation.relations import OutputColumn, Relation, WindowCall, projected, windowed
from ..relation.types import BOOLEAN, DOUBLE
from .answer_conditions import reports
from .reported import Answer

__all__ = [
    "Moments", "added", "all_of", "both_of", "divided", "exact", "inverted", "multiplied", "number", "said_of_coins",
    "weighted",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moments:
    """Where an additive measure stands: Σ w · x over its parts, and Σ w² · x."""

    first: Expr
    second: Expr

    def times(self, factor: Expr) -> Moments:
        return Moments(multiplied(factor, self.first), multiplied(factor, self.second))

    def plus(self, other: Moments) -> Moments:
        return Moments(added(self.first, other.first), added(self.second, other.second))

    @property
    def variance(self) -> Expr:
        """The variance of Σ w · y, of y = x² : each row's w has the mean 0 or 1 that it estimates (1.24)."""
        return Call(DOUBLE, "greatest", (_less(self.second, self.first), number(Fraction(0))))


def number(value: Fraction) -> Literal:
    return Literal(DOUBLE, Fraction(float(value)))


def _binary(function: str, left: Expr, right: Expr) -> Expr:
    return Call(DOUBLE, function, (left, right))


def added(left: Expr, right: Expr) -> Expr:
    return _binary("add", left, right)


def _less(left: Expr, right: Expr) -> Expr:
    return _binary("sub", left, right)


def multiplied(left: Expr, right: Expr) -> Expr:
    return _binary("mul", left, right)


def divided(left: Expr, right: Expr) -> Expr:
    return _binary("div", left, right)


def both_of(*terms: Expr) -> Expr | None:
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else Call(BOOLEAN, "and", terms)


def all_of(terms: Sequence[Expr]) -> Expr:
    return both_of(*terms) or TRUE


def weighted(side: Sequence[tuple[int, Fraction]], columns: Sequence[OutputColumn], start: int) -> Expr:
    """Return Σ weight · aggregate, a sum over no rows being 0."""
    total: Expr | None = None
    for place, weight in side:
        column = columns[start + place]
        value: Expr = Field(column.type, start + place)
        value = value if column.type == DOUBLE else Call(DOUBLE, "cast", (value,))
        value = Call(DOUBLE, "coalesce", (value, number(Fraction(0))))
        term = value if weight == 1 else multiplied(value, number(weight))
        total = term if total is None else added(total, term)
    assert total is not None
    return total


def inverted(relation: Relation, index: int, answer: Answer, keys: int, width: int) -> Relation:
    """Return moments by what is true in place of what was reported: key number `index` is the answer.

    A group's moment is w_in · its own + w_out · that of all other groups with the same other keys.
    """
    columns = relation.columns
    partition = tuple(Field(columns[i].type, i) for i in range(keys) if i != index)
    calls = tuple(
        WindowCall(DOUBLE, "sum", (Field(DOUBLE, keys + i),), partition, (), None) for i in range(width)
    )
    window = windowed(relation, calls)
    exprs: list[Expr] = [Field(column.type, i, column.name) for i, column in enumerate(columns[:keys])]
    for i in range(width):
        own, whole = Field(DOUBLE, keys + i), Field(DOUBLE, len(columns) + i)
        power = 1 + i % 2
        inside, outside = (_of_key(columns[index], index, answer, side, power) for side in (0, 1))
        exprs.append(added(multiplied(own, inside), multiplied(_less(whole, own), outside)))
    exprs += [Field(c.type, keys + width + i) for i, c in enumerate(columns[keys + width :])]
    return projected(window, tuple(exprs), tuple(c.name for c in columns))


def _of_key(column: OutputColumn, index: int, answer: Answer, side: int, power: int) -> Expr:
    """Return the weight of a group's own answers (side 0) or of all others (side 1), or its square."""
    channel = answer.channel
    weights = [number(channel.weights(frozenset({value}))[side] ** power) for value in range(channel.size)]
    if channel.yes is None:
        return weights[0]
    is_yes = reports(Field(column.type, index), answer.column, frozenset({channel.yes}))
    return Call(DOUBLE, "case", (is_yes, weights[channel.yes], weights[1 - channel.yes]))


def exact(literal: Literal) -> Fraction:
    value = literal.value
    assert isinstance(value, (int, float, Fraction))
    return Fraction(value)


def said_of_coins(answer: Answer) -> str:
    channel = answer.channel
    return (
        f"{answer.column.name} was randomised when it was collected (truth with probability "
        f"{float(channel.truth):.3g}): of n rows, "
        f"its estimates are off by ± {1.96 * channel.own_deviation:.3g} sqrt(n) for that"
    )
