"""Which predicates can never both be true: their counts then share one epsilon without a joint mask.

House rule: a wrong "yes" here would let one row count in two masks that are claimed disjoint. So the
masks themselves are still printed as truth assignments (`f1 AND NOT f2`): a wrong "yes" costs
correctness of a count, never privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from ...relation.expressions import Expr, LiteralValue, compared

__all__ = ["are_disjoint"]


@dataclass
class _Limits:
    """What a conjunction says of one expression: listed values, and ends (value, is the end itself allowed)."""

    values: frozenset[LiteralValue] | None = None
    low: tuple[Fraction, bool] | None = None
    high: tuple[Fraction, bool] | None = None


@dataclass
class _Said:
    limits: dict[Expr, _Limits] = field(default_factory=dict)

    def of(self, expr: Expr) -> _Limits:
        return self.limits.setdefault(expr, _Limits())


def are_disjoint(a: Expr, b: Expr) -> bool:
    """Say whether no row can satisfy both predicates: disjoint values or ranges of one same expression."""
    left, right = _said(a).limits, _said(b).limits
    return any(expr in right and _apart(limits, right[expr]) for expr, limits in left.items())


def _said(predicate: Expr) -> _Said:
    said = _Said()
    terms = predicate.args if predicate.calls("and") else (predicate,)
    for term in terms:
        if term.calls("and"):
            for expr, limits in _said(term).limits.items():
                said.limits[expr] = limits
        else:
            _read(term, said)
    return said


def _read(term: Expr, said: _Said) -> None:
    if term.calls("in") and all(arg.is_constant for arg in term.args[1:]):
        values = frozenset(arg.constant for arg in term.args[1:] if arg.is_constant)
        said.of(term.args[0]).values = values
        return
    found = compared(term)
    if found is None or term.calls("ne"):
        return
    function, left, right = found
    if not right.is_constant or left.is_constant or isinstance(right.constant, float):
        return
    limits, value = said.of(left), right.constant
    if function == "eq":
        limits.values = frozenset({value})
    if isinstance(value, (bool, str)) or not isinstance(value, (int, Fraction)):
        return
    end = Fraction(value)
    if function in ("gt", "ge", "eq"):
        limits.low = (end, function != "gt")
    if function in ("lt", "le", "eq"):
        limits.high = (end, function != "lt")


def _apart(a: _Limits, b: _Limits) -> bool:
    if a.values is not None and b.values is not None:
        return not a.values & b.values
    return _below(a, b) or _below(b, a)


def _below(a: _Limits, b: _Limits) -> bool:
    if a.high is None or b.low is None:
        return False
    return a.high[0] < b.low[0] or (a.high[0] == b.low[0] and not (a.high[1] and b.low[1]))
