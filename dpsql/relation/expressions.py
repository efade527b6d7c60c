"""Typed scalar expressions: what the binder makes of the analyst's text, and all that is ever printed.

House rules:

1. An expression is a value: frozen, compared by meaning. Names of columns take no part in equality,
   so that two spellings of one expression are one expression (and one entry in the release store).
2. Columns are positions in the input row of the relation node that holds the expression.
3. There is one node for every operator and function, `Call`; what a call may do is in `functions`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import Position
from ..records import dataclass
from .types import BOOLEAN, SqlType

if TYPE_CHECKING:
    from .relations import Relation


@dataclass(frozen=True, slots=True)
class Months:
    """An interval literal: whole months, days and microseconds, as Postgres keeps them."""

    months: int
    days: int
    microseconds: int


LiteralValue = bool | int | Fraction | float | str | Months | None


_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Expr:
    """A scalar expression with its SQL type. `position` points into the statement's text."""

    type: SqlType
    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def is_constant(self) -> bool:
        """Whether it is a constant that stands in the statement."""
        return False

    @property
    def constant(self) -> LiteralValue:
        """The value of a constant; None of NULL, and of what is none."""
        return None

    @property
    def column(self) -> int | None:
        """Which column of the input row it is, by position; None of what is no bare column."""
        return None

    @property
    def name(self) -> str:
        """The name of a bare column, for messages alone; "" of what is none."""
        return ""

    @property
    def function(self) -> str:
        """The function that a call is of; "" of what is none."""
        return ""

    @property
    def args(self) -> tuple[Expr, ...]:
        """The arguments of a call; of what is none, none."""
        return ()

    @property
    def fields_read(self) -> frozenset[int]:
        """The input positions that it reads."""
        return frozenset()

    def calls(self, *functions: str) -> bool:
        """Say whether it is a call of one of some functions."""
        return False

    def literal(self, place: int, kind: builtins.type[_Kind]) -> _Kind:
        """Return the value of an argument that the binder holds to be a literal of a kind: a unit, a format, a step."""
        return self.args[place].literal_as(kind)

    def literal_as(self, kind: builtins.type[_Kind]) -> _Kind:
        """Return the value of a constant that is known to be of a kind of values."""
        value = self.constant_as(kind)
        assert value is not None
        return value

    def constant_as(self, kind: builtins.type[_Kind]) -> _Kind | None:
        """Return the value of a constant of a kind of values; None of any other, and of what is none."""
        return self.constant if isinstance(self.constant, kind) else None

    @property
    def exact(self) -> bool | str | Fraction | None:
        """The value of a constant as it is compared, numbers and moments as Fractions; None of NULL, of doubles, and of
        what is none.
        """
        value = self.constant
        if isinstance(value, bool | str):
            return value
        return Fraction(value) if isinstance(value, int | Fraction) else None


@dataclass(frozen=True, slots=True)
class Field(Expr):
    """Column `index` of the input row; `name` is for messages alone."""

    index: int
    name: str = field(default="", compare=False, repr=False)

    @property
    def column(self) -> int:
        return self.index

    @property
    def fields_read(self) -> frozenset[int]:
        return frozenset((self.index,))


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant: DATE as days, TIMESTAMP as microseconds since 1970-01-01, numbers as int or Fraction.

    A number of a floating-point type is a Fraction that a double holds exactly, or a float.
    """

    value: LiteralValue

    def __repr__(self) -> str:  # a list of constants is put in order by it
        return f"Literal(type={self.type!r}, value={self.value!r})"

    @property
    def is_constant(self) -> bool:
        return True

    @property
    def constant(self) -> LiteralValue:
        return self.value


_MOST_KEPT = 4000
"""Characters of the text of a call that it keeps."""


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function or operator of the table in `functions`, applied to `args`."""

    function: str = field()  # else what all expressions have would be its default
    args: tuple[Expr, ...] = field()
    _said: str | None = field(default=None, init=False, compare=False, repr=False)
    _read: frozenset[int] | None = field(default=None, init=False, compare=False, repr=False)
    _hash: int | None = field(default=None, init=False, compare=False, repr=False)

    def calls(self, *functions: str) -> bool:
        return self.function in functions

    def __repr__(self) -> str:  # of a filter it is asked for each mask, and each measurement that has it
        if self._said is not None:
            return self._said
        said = f"Call(type={self.type!r}, function={self.function!r}, args={self.args!r})"
        is_flat = not any(arg.args for arg in self.args)
        if is_flat or len(said) <= _MOST_KEPT:  # of calls within calls that would be a square
            object.__setattr__(self, "_said", said)
        return said

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash((self.type, self.function, self.args)))
        assert self._hash is not None
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:  # another process hashes texts otherwise
        return partial(Call, position=self.position), (self.type, self.function, self.args)

    @property
    def fields_read(self) -> frozenset[int]:
        if self._read is None:
            object.__setattr__(self, "_read", fields_of(*self.args))
        assert self._read is not None
        return self._read


@dataclass(frozen=True, slots=True)
class Scalar(Expr):
    """A scalar subquery: the single value of a closed relation of one column (no row: NULL)."""

    relation: Relation


@dataclass(frozen=True, slots=True)
class IntermediateValue(Expr):
    """The released value of an earlier intermediate result, unknown while planning: only its static range is used.

    `lo`, `hi`: the static range (soundness.md 1.14(2)), both None when it has none.
    """

    intermediate: int
    lo: Fraction | None
    hi: Fraction | None


TRUE = Literal(BOOLEAN, True)
FALSE = Literal(BOOLEAN, False)


def shifted(exprs: tuple[Expr, ...], by: int) -> tuple[Expr, ...]:
    """Return expressions over columns that stand `by` places further on."""
    return tuple(moved(expr, lambda index: index + by) for expr in exprs)


def moved(expr: Expr, place: Callable[[int], int]) -> Expr:
    """Return an expression with each column where `place` puts it."""
    if isinstance(expr, Field):
        return replace(expr, index=place(expr.index))
    return map_children(expr, lambda child: child if child.is_constant else moved(child, place))


def map_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return `expr` with `change` applied to each direct child; `expr` itself when nothing changed."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(change(arg) for arg in expr.args)
    return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else replace(expr, args=args)


def substitute(expr: Expr, row: tuple[Expr, ...]) -> Expr:
    """Return `expr` with each `Field(i)` replaced by `row[i]`; positions stay those of `expr`."""
    if isinstance(expr, Field):
        put = row[expr.index]
        return put if expr.position is None else replace(put, position=expr.position)
    return map_children(expr, lambda child: child if child.is_constant else substitute(child, row))


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield `expr` and all expressions below it, parents first (not into subqueries)."""
    stack = [expr]
    while stack:
        part = stack.pop()
        yield part
        stack += part.args[::-1]


_Part = TypeVar("_Part", bound=Expr)


def parts_in(kind: type[_Part], *exprs: Expr) -> Iterator[_Part]:
    """Yield the parts of expressions that are of a kind, parents first (not into subqueries)."""
    return (part for expr in exprs for part in walk(expr) if isinstance(part, kind))


def fields_of(*exprs: Expr) -> frozenset[int]:
    """Return the input positions that the expressions read."""
    return exprs[0].fields_read if len(exprs) == 1 else frozenset().union(*(one.fields_read for one in exprs))


MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
"""Comparison -> the one that says the same with its sides the other way round."""


def compared(term: Expr) -> tuple[str, Expr, Expr] | None:
    """Return a comparison's function and its sides, a constant on the right; None of what is no comparison."""
    mirrored = MIRRORED.get(term.function)
    if mirrored is None:
        return None
    left, right = term.args
    return (mirrored, right, left) if left.is_constant else (term.function, left, right)


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """Return the AND terms of a predicate, nested ones too, without TRUE and repeats, in stable order."""
    terms: dict[Expr, None] = {}
    stack = [expr]
    while stack:
        term = stack.pop()
        if term.calls("and"):
            stack += term.args
        elif term != TRUE:
            terms[term] = None
    return tuple(sorted(terms, key=repr))


def size_of(expr: Expr, limit: int) -> int:
    """Return how many nodes an expression has, or `limit` when it has as many or more.

    A list of constants after IN is looked at as a whole, and printed once: four of them count as one node.
    """
    count, stack = 0, [expr]
    while stack and count < limit:
        node = stack.pop()
        count += 1
        if node.calls("in"):
            stack += node.args[:1]
            count += len(node.args) // 4
        elif isinstance(node, Call):
            stack += node.args
    return min(count, limit)


def conjunction(terms: tuple[Expr, ...]) -> Expr:
    """Return the AND of the terms; TRUE for none."""
    if not terms:
        return TRUE
    return terms[0] if len(terms) == 1 else Call(BOOLEAN, "and", terms)
