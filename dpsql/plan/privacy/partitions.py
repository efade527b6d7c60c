"""Several keys of one column as partitions of what they tell apart together: months are made of days.

    >>> refined([loaned_on, date_trunc('month', loaned_on)], …)
    of each day of the year its own place, and the place of its month

The atoms are the cells of the column on which each key has one value: its lattice points, its listed values, and what
is left of it, in its order. So what is drawn by one key ties to what is drawn by another, whatever both are computed
by, and nobody declares a hierarchy.

House rules (soundness.md 3.15):

1. From text and policy alone: what a column can be is its declaration, as the printed SQL clamps it there (`spaces`),
   and what a key is there, `cells` say. No row is read.
2. Every value that a row may have is in an atom. What is not clear has no partition.
3. A wrong one makes released numbers agree that need not: it costs correctness, never privacy.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from ...relation.catalog import Scalar
from ...relation.expressions import Call, Expr, Field, Literal, fields_of, walk
from ...relation.intervals import Environment, facts_of
from ...relation.types import DATE, INTEGER, TEXT, TIMESTAMP, Kind
from .axes import Partition
from .cells import Span, Value, compiled, point
from .existing import can_be, is_clear, key_of, literals_beside
from .spaces import Space, space_of

__all__ = ["Places", "refined", "usual_keys"]

Places = tuple[tuple[Scalar, ...], int]
"""A key's listed values in canonical form, and how many places it has: one more where other values have one."""

_UNITS = ("hour", "day", "week", "month", "quarter", "year")
_BLOCKS = (4, 16, 64, 256)
"""Widths of the blocks of whole numbers: four of one are the next."""
_MOST_LOOKED_AT = 2**15
"""Most cells of a column that are looked at: a third of a second."""


def usual_keys(column: Field) -> tuple[Expr, ...]:
    """Return the keys by which the rows of a column are usually grouped: itself, of moments their calendar, and of
    whole numbers blocks of them."""
    if column.type.is_integer:
        type_ = INTEGER if column.type.kind is Kind.SMALLINT else column.type
        blocks = (Call(type_, "div", (column, Literal(INTEGER, size))) for size in _BLOCKS)
        return (column, *blocks)
    if not column.type.is_temporal:
        return (column,)
    is_date = column.type.kind is Kind.DATE
    units = _UNITS[1:] if is_date else _UNITS
    day = (column,) if is_date else (column, Call(DATE, "cast", (column,)))
    return (*day, *(Call(TIMESTAMP, "date_trunc", (Literal(TEXT, unit), column)) for unit in units))


def refined(keys: Sequence[Expr], places: Sequence[Places], env: Environment) -> tuple[Partition, ...] | None:
    """Return each key as a partition of the atoms of their column, into its places: each place has an atom.

    None: they are not of one column, this has no ends and no list, it is a list of numbers (which other numbers may
    stand between), or what a key is on some part of it is not known.
    """
    read = fields_of(*keys)
    if len(read) != 1 or any(fields_of(key) != read for key in keys):
        return None
    (column,) = {part for key in keys for part in walk(key) if isinstance(part, Field)}
    if column.type.kind not in (Kind.TEXT, Kind.BOOLEAN) and facts_of(column, env).values is not None:
        return None
    space = space_of(column, env, *literals_beside(column, keys), is_key=False)
    known, declared = facts_of(column, env), env.columns[column.index].bounds or ()
    ends = [end for end, own in zip((known.lo, known.hi), declared, strict=False) if end == own]
    beyond = tuple(point(end) for end in ends if end is not None and column in keys)
    return None if space is None else _refined(column, space, beyond, tuple(keys), tuple(places))


@lru_cache(maxsize=256)
def _refined(
    column: Field,
    space: Space,
    beyond: tuple[Span, ...],
    keys: tuple[Expr, ...],
    places: tuple[Places, ...],
) -> tuple[Partition, ...] | None:
    """See `refined`. `beyond`: the ends that rows beyond the bounds are taken at, where a key is computed; where it is
    the column itself, they are among all others."""
    evaluations = [compiled(key, {column: 0}) for key in keys]
    known = [_Known(values) for values, _ in places]
    atoms: dict[tuple[int, ...], None] = {}
    stack: list[tuple[Value, bool]] = [
        *((end, True) for end in beyond),
        *((part, False) for part in space.parts[::-1]),
    ]
    looked = 0
    while stack:
        (cell, is_beyond), looked = stack.pop(), looked + 1
        found = [
            len(values) if is_beyond and key == column else one.place(evaluate([cell]))
            for key, evaluate, one, (values, _) in zip(keys, evaluations, known, places, strict=True)
        ]
        told = tuple(place for place in found if place is not None)
        if len(told) == len(keys):
            if all(place < size for place, (_, size) in zip(told, places, strict=True)):
                atoms[told] = None  # else no row is there: by its type, by WHERE, or as the owner says
            continue
        parts = space.split(cell)
        if not parts or looked > _MOST_LOOKED_AT:
            return None
        stack += [(part, False) for part in reversed(parts)]
    for number, (_, size) in enumerate(places):
        empty = set(range(size)) - {atom[number] for atom in atoms}
        for place in sorted(empty):  # no value is in it: it has nothing, wherever that is counted
            atoms[tuple(place if i == number else size - 1 for i, (_, size) in enumerate(places))] = None
    return tuple(Partition(groups) for groups in zip(*atoms, strict=True))


class _Known:
    """A key's listed values, each with its place."""

    def __init__(self, values: Sequence[Scalar]) -> None:
        self._places = {value: place for place, value in enumerate(values)}
        self._numbers = sorted(value for value in values if isinstance(value, (int, Fraction)))

    def place(self, value: Value) -> int | None:
        """Return the place of what the key is on a cell, that of all others the last; None: it may be several."""
        if is_clear(value):
            return self._places.get(key_of(value), len(self._places))
        if isinstance(value, Span):
            next_ = bisect_left(self._numbers, value.lo)
            may_be = next_ < len(self._numbers) and self._numbers[next_] <= value.hi
        else:
            may_be = any(can_be(value, key) for key in self._places)
        return None if may_be else len(self._places)
