"""Quotients of sums of noisy numbers, as statements spell them: a share of all rows, of a part of them, of a total.

    100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY year)
    COUNT(*) / NULLIF((SELECT COUNT(*) FROM person), 0)

Both sides are sums of one release's coordinates in the row, in all rows of its part, or in one row of another release.
The bar of such a quotient is made of what its numerator's test does not reject (soundness.md 1.2).

House rule: an expression is a quotient where it is one of real numbers for whatever was released; all else is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from ..plan.measures.formulas import Linear
from ..plan.privacy.rows import Release
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.expressions import Expr, Scalar
from ..relation.relations import Block, Relation, WindowCall, ends_in
from ..relation.types import Kind

_NOTHING = Linear((), Fraction(0))
ReleaseOf = Callable[[Relation], Release | None]
"""Returns the release whose rows a relation is, with its bars or without; None: it is none."""


@dataclass(frozen=True, slots=True)
class Side:
    """A sum of noisy numbers: `own` of the row's, `whole` of those of all rows of its `part`, `beside` of others'.

    `part`: a window over all rows that agree in its partition, over the relation below it; None: `whole` is nothing.
    `beside`: of releases with one row that number.
    """

    own: Linear = _NOTHING
    whole: Linear = _NOTHING
    part: WindowCall | None = None
    beside: tuple[tuple[Release, Linear], ...] = ()

    def times(self, factor: Fraction) -> Side:
        """Return factor times this."""
        beside = tuple((release, one.times(factor)) for release, one in self.beside)
        return replace(self, own=self.own.times(factor), whole=self.whole.times(factor), beside=beside)

    def plus(self, other: Side) -> Side | None:
        """Return the sum; None: it is of two parts of the rows, or of one number of another release twice."""
        if self.part is not None and other.part is not None and self.part.partition != other.part.partition:
            return None
        if {release for release, _ in self.beside} & {release for release, _ in other.beside}:
            return None
        own, whole = self.own.plus(other.own), self.whole.plus(other.whole)
        return Side(own, whole, self.part or other.part, (*self.beside, *other.beside))


@dataclass(frozen=True, slots=True)
class Quotient:
    """One sum of a row's noisy numbers by another sum."""

    release: Release
    numerator: Linear
    denominator: Side


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads expressions over a relation that is one release's rows, filtered, projected, with windows above."""

    plans: Mapping[Release, ReleasePlan]
    release_of: ReleaseOf

    def quotient(self, expr: Expr, node: Relation) -> Quotient | None:
        """Return what an expression over a relation is a quotient of; None: it is none."""
        if not _is_fraction(expr):
            return None
        if expr.calls("cast") and _keeps(expr):
            return self.quotient(expr.args[0], node)
        if expr.calls("mul"):
            for one, other in (expr.args, expr.args[::-1]):
                if (factor := _constant(one)) and (inner := self.quotient(other, node)):
                    return replace(inner, numerator=inner.numerator.times(factor))
        if not expr.calls("div"):
            return None
        if (factor := _constant(expr.args[1])) and (inner := self.quotient(expr.args[0], node)):
            return replace(inner, numerator=inner.numerator.times(1 / factor))
        sides = [self._side(_not_null(arg), node) for arg in expr.args]
        release = self._bottom(node)
        if sides[0] is None or sides[1] is None or release is None or sides[0].part or sides[0].beside:
            return None
        if not sides[0].own.terms or not (sides[1].own.terms or sides[1].part or sides[1].beside):
            return None
        return Quotient(release, sides[0].own, sides[1])

    def _side(self, expr: Expr, node: Relation) -> Side | None:
        """Return what sum of noisy numbers an expression is; None: it is no such sum."""
        if (number := _constant(expr)) is not None:
            return Side(Linear((), number))
        if expr.column is not None:
            return self._column(expr.column, node)
        if isinstance(expr, Scalar):
            return self._of_one_row(expr.relation)
        if expr.calls("cast", "coalesce"):
            return self._side(expr.args[0], node) if _keeps(expr) else None
        if expr.calls("add", "sub"):
            one, other = (self._side(arg, node) for arg in expr.args)
            if one is None or other is None:
                return None
            return one.plus(other.times(Fraction(-1)) if expr.calls("sub") else other)
        if expr.calls("mul"):
            for arg, other_arg in (expr.args, expr.args[::-1]):
                if (factor := _constant(arg)) is not None and (side := self._side(other_arg, node)):
                    return side.times(factor)
        if expr.calls("div") and _is_fraction(expr) and (factor := _constant(expr.args[1])):
            side = self._side(expr.args[0], node)
            return None if side is None else side.times(1 / factor)
        return None

    def _column(self, index: int, node: Relation) -> Side | None:
        release = self.release_of(node)
        if release is not None:
            plan, place = self.plans[release], index - len(release.keys)
            if plan.is_empty or not 0 <= place < len(plan.formulas):
                return None
            formula = plan.formulas[place]
            return Side(Linear(formula.terms, formula.constant)) if type(formula) is Linear else None
        if ends_in(node, "outputs"):
            return self._side(node.exprs[index], node.below)
        if ends_in(node, "where", "having", "orders"):
            return self._column(index, node.below)
        if not ends_in(node, "windows"):
            return None
        own = len(node.below.columns)
        return (
            self._column(index, node.below) if index < own else self._total(node, node.windows[index - own])
        )

    def _total(self, node: Block, call: WindowCall) -> Side | None:
        """Return the sum of a number over all rows of a part; None: it is another window."""
        if call.function != "sum" or call.orders or call.frame is not None:
            return None
        side = self._side(call.args[0], node.below)
        if side is None or side.part is not None or side.beside:
            return None
        return Side(whole=side.own, part=call)

    def _of_one_row(self, node: Relation) -> Side | None:
        """Return a released number that stands in place of a subquery."""
        release = self._bottom(node)
        if release is None or release.keys or not _is_plain(node, self.release_of):
            return None
        side = self._column(0, node)
        return None if side is None or side.part is not None else Side(beside=((release, side.own),))

    def _bottom(self, node: Relation) -> Release | None:
        """Return the release whose rows a relation is."""
        while (release := self.release_of(node)) is None:
            if not (
                isinstance(node, Block) and node.last in ("where", "having", "windows", "outputs", "orders")
            ):
                return None
            node = node.below
        return release


def _is_plain(node: Relation, release_of: ReleaseOf) -> bool:
    """Say whether a relation has every row of the release below it."""
    while isinstance(node, Block) and release_of(node) is None:
        if node.last not in ("outputs", "orders"):
            return False
        node = node.below
    return True


def _not_null(expr: Expr) -> Expr:
    """Return what an expression is, but where it is 0."""
    is_zero = expr.calls("nullif") and _constant(expr.args[1]) == 0
    return expr.args[0] if is_zero else expr


def _constant(expr: Expr) -> Fraction | None:
    """Return a number that stands in the statement; None: it is none."""
    if not expr.type.is_number:
        return None
    if isinstance(expr.exact, Fraction):
        return expr.exact
    double = expr.constant_as(float)
    return None if double is None else Fraction(double)


def _is_fraction(expr: Expr) -> bool:
    return expr.type.kind in (Kind.NUMERIC, Kind.DOUBLE)


def _keeps(expr: Expr) -> bool:
    """Say whether a cast or a coalesce is its first argument, a number: no digit of it is left out."""
    if expr.calls("coalesce"):
        return all(_constant(arg) is not None for arg in expr.args[1:])
    inner = expr.args[0].type
    is_whole = inner.is_integer and expr.type.is_integer
    return inner.is_number and (is_whole or (_is_fraction(expr) and expr.type.precision is None))
