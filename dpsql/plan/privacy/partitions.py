"""Several keys of one column as partitions of what they tell apart together: months are made of days.

    >>> refined([loaned_on, date_trunc('month', loaned_on)], …)
    of each day of the year its own place, and the place of its month

The atoms are what the keys are together on the pieces of the column, in its order (`value_set`). So what is drawn by
one key ties to what is drawn by another, whatever both are computed by, and nobody declares a hierarchy.

House rules (soundness.md 3.15):

1. From text and policy alone: what a column can be is its declaration, as the printed SQL clamps it there (`pieces`).
   No row is read.
2. Every value that a row may have is in an atom. What is not clear has no partition.
3. A wrong one makes released numbers agree that need not: it costs correctness, never privacy.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...relation.catalog import Scalar
from ...relation.expressions import Call, Expr, Field, Literal, fields_of, walk
from ...relation.intervals import Environment, facts_of
from ...relation.types import DATE, INTEGER, TEXT, TIMESTAMP, Kind
from .axes import Partition
from .value_set import atoms

__all__ = ["Places", "calendar_key", "refined", "usual_keys"]

Places = tuple[tuple[Scalar, ...], int]
"""A key's listed values in canonical form, and how many places it has: one more where other values have one."""

_UNITS = ("hour", "day", "week", "month", "quarter", "year")
_BLOCKS = (4, 16, 64, 256)
"""Widths of the blocks of whole numbers: four of one are the next."""


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
    return (*day, *(calendar_key(column, unit) for unit in units))


def calendar_key(column: Field, unit: str) -> Expr:
    """Return the key of a column of moments by one of the calendar's units."""
    return Call(TIMESTAMP, "date_trunc", (Literal(TEXT, unit), column))


def refined(keys: Sequence[Expr], places: Sequence[Places], env: Environment) -> tuple[Partition, ...] | None:
    """Return each key as a partition of the atoms of their column, into its places: each place has an atom.

    None: they are not of one column, this has no ends and no list, it is a list of numbers (which other numbers may
    stand between), or what a key is on some part of it is not known.
    """
    read = fields_of(*keys)
    if len(read) != 1 or any(fields_of(key) != read for key in keys):
        return None
    (column,) = {part for key in keys for part in walk(key) if isinstance(part, Field)}
    facts = facts_of(column, env)
    if column.type.kind not in (Kind.TEXT, Kind.BOOLEAN) and facts.values is not None:
        return None
    found = atoms(keys, env)
    if found is None:
        return None
    known = [{value: place for place, value in enumerate(values)} for values, _ in places]
    taken = dict.fromkeys(
        tuple(own.get(value, len(own)) for own, value in zip(known, values, strict=True)) for values in found
    )
    if (
        column in keys
    ):  # rows beyond the bounds are taken at these, where a key is computed; by itself they are others
        itself, declared = keys.index(column), env.columns[column.index].bounds or ()
        ends = {end for end, own in zip((facts.lo, facts.hi), declared, strict=False) if end == own}
        for place in [place for place in taken if _listed_at(places[itself][0], place[itself]) in ends]:
            taken[*place[:itself], len(known[itself]), *place[itself + 1 :]] = None
    # else no row is there: by its type, by WHERE, or as the owner says
    told = [one for one in taken if all(n < size for n, (_, size) in zip(one, places, strict=True))]
    for number, (_, size) in enumerate(places):
        for empty in sorted(set(range(size)) - {one[number] for one in told}):
            # no value is in it: it has nothing, wherever that is counted
            told.append(tuple(empty if i == number else most - 1 for i, (_, most) in enumerate(places)))
    return tuple(Partition(groups) for groups in zip(*told, strict=True))


def _listed_at(values: Sequence[Scalar], place: int) -> Scalar:
    """Return a listed value; None of the place of all others."""
    return values[place] if place < len(values) else None
