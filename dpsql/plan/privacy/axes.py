"""The keys of a grouping with all rows in it: listed values, a place for all others, and what several keys tell apart.

A draw over declared groups holds the groups that are listed. Its *completion* holds, of each key, also the rows whose
value no list has: `other`, a group of every key by itself and so of every tuple of keys. What a person adds to all
groups, undeclared ones too, is what sensitivities bound (soundness.md 1.34); so the hidden groups cost nothing, and
the groups of every grouping add up to the same rows. They are drawn and stored with the others, and never shown.

In the SQL `other` has a value of the key's type that the list lacks: NULL where that is none of its groups.

Several keys of one column are partitions of what they tell apart together; months are made of days:

    >>> refined([loaned_on, date_trunc('month', loaned_on)], …)
    of each day of the year its own place, and the place of its month

The atoms are what the keys are together on the pieces of the column, in its order (`value_set`). So what is drawn by
one key ties to what is drawn by another, whatever both are computed by, and nobody declares a hierarchy.

House rules (soundness.md 1.34 and 3.15):

1. Lists are from text and policy alone; so is which key has a place for others. What a column can be is its
   declaration, as the printed SQL clamps it there (`pieces`). No row is read.
2. A key has no place for others only where no row can have another value: by its type, or by the values that WHERE
   lists. What an owner says of a column (`complete`) is believed of no draw: only where stored numbers are added up.
3. Every value that a row may have is in an atom. What is not clear has no partition.
4. A wrong partition makes released numbers agree that need not: it costs correctness, never privacy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from ...cache import Made
from ...records import dataclass
from ...relation.catalog import Scalar
from ...relation.expressions import Call, Expr, Field, Literal, compared, fields_of, parts_in
from ...relation.intervals import TYPE_RANGE, Environment, facts_of, narrowed_facts
from ...relation.types import DATE, INTEGER, TEXT, TIMESTAMP, Kind, SqlType
from .rows import OwnedRows, fields_in, selects_in
from .value_set import atoms, spelled

_LISTED = (Kind.TEXT, Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE)


@dataclass(frozen=True, slots=True)
class Axis:
    """One key. `values`: what its groups are, in canonical form, each once. `others`: the value that all others are
    printed as; () where no row has another. `is_complete`: no row has another, as the owner says."""

    values: tuple[Scalar, ...]
    others: tuple[Scalar, ...]
    is_complete: bool = False

    @property
    def size(self) -> int:
        """How many places there are, that of the others among them."""
        return len(self.values) + len(self.others)

    @property
    def believed(self) -> int:
        """How many places have rows, as far as what the owner says is believed."""
        return len(self.values) if self.is_complete else self.size


@dataclass(frozen=True)
class Partition:
    """Groups of an axis' atoms: of each atom, in their order, the number of its group, from 0; -1: it is in none.

    Atoms are what the keys of an axis tell apart: of one key its places, that of all others the last. Several keys of
    one column have one axis, whose atoms are what they tell apart together, and a partition of it each. Each group has
    an atom.
    """

    groups: tuple[int, ...]

    @classmethod
    def whole(cls, atoms: int) -> Partition:
        """Return the one of a key that is not asked about."""
        return cls((0,) * atoms)

    @cached_property
    def size(self) -> int:
        """How many groups there are."""
        return max(self.groups, default=-1) + 1

    @property
    def is_whole(self) -> bool:
        """Whether all atoms are one group."""
        return not any(self.groups)

    @cached_property
    def sizes(self) -> list[int]:
        """How many atoms each group has."""
        found = [0] * self.size
        for group in self.groups:
            if group >= 0:
                found[group] += 1
        return found


@dataclass(frozen=True, slots=True)
class Listed:
    """A filter term that holds on the rows whose `key` is one of `values`."""

    key: Expr
    values: tuple[Scalar, ...]


def axis_of(
    key: Expr, values: Iterable[Scalar], rows: OwnedRows, env: Environment, predicate: Sequence[Expr]
) -> Axis | None:
    """Return a key of which these values are groups, of the rows on which `predicate` holds; None: no value of its type
    is left for the others.
    """
    own = tuple(dict.fromkeys(spelled(value, key.type) for value in values))
    if _is_whole(key, own, env) or any(
        term.key == key and set(term.values) <= set(own) for term in listed_terms(predicate)
    ):
        return Axis(own, ())
    others = _unlisted(key.type, frozenset(own))
    return None if others is None else Axis(own, others, is_complete(key, rows))


def is_complete(key: Expr, rows: OwnedRows) -> bool:
    """Say whether the owner says that no row has another value of a key: all columns that it reads are complete, and
    no outer join makes NULL of them.
    """
    read = fields_of(key)
    if not read or any(item.kind == "full" for item in rows.items):
        return False
    told = {
        index
        for placed in fields_in(rows.items)
        if placed.item.kind == "inner" and placed.item.source.uncut.table is not None
        for index in placed.own
        if rows.columns[index].is_complete
    }
    return read <= told


def _is_whole(key: Expr, values: Sequence[Scalar], env: Environment) -> bool:
    """Say whether no row can have another value of a key: by its type alone, never by what is declared."""
    if key.type.kind is not Kind.BOOLEAN:
        return False
    return {True, False} <= set(values) and (None in values or not narrowed_facts(key, env).nullable)


def _unlisted(type_: SqlType, values: frozenset[Scalar]) -> tuple[Scalar] | None:
    """Return a value of a type that a list lacks: NULL, the shortest text of its kind, the smallest number from 0."""
    if None not in values:
        return (None,)
    if type_.kind is Kind.TEXT:
        return (next(text for n in itertools.count(1) if (text := "other" * n) not in values),)
    if type_.kind is Kind.BOOLEAN:
        return next(((truth,) for truth in (False, True) if truth not in values), None)
    number = next(n for n in itertools.count() if n not in values)
    _, last = TYPE_RANGE.get(type_.kind, (0, number))
    return (number,) if number <= last and _fits(type_, number) else None


def _fits(type_: SqlType, number: int) -> bool:
    """Say whether an exact number type has room for a whole number."""
    if type_.kind is not Kind.NUMERIC or type_.precision is None:
        return True
    return bool(number < 10 ** (type_.precision - (type_.scale or 0)))


def cells_of(axes: Sequence[Axis]) -> tuple[tuple[Scalar, ...], ...]:
    """Return all groups, those of others among them, the last key's the fastest."""
    return tuple(itertools.product(*((*axis.values, *axis.others) for axis in axes)))


def is_reported(rows: OwnedRows) -> bool:
    """Say whether rows have columns that were randomised when they were collected."""
    tables = (item.source.uncut.table for select in selects_in(rows) for item in select.items)
    return any(column.randomized is not None for table in tables if table for column in table.columns)


def listed_terms(predicate: Iterable[Expr]) -> Iterator[Listed]:
    """Yield the terms `key = literal`, `key IN (literals)`, `flag` and `NOT flag` of a bare column."""
    for term in predicate:
        found = listed_term(term)
        if found is not None:
            yield found


def listed_term(term: Expr) -> Listed | None:
    """Read one; None for any other term."""
    return _lists.of(term) if term.calls("in") else _read_term(term)


def _read_term(term: Expr) -> Listed | None:
    is_not = term.calls("not")
    flag = term.args[0] if is_not else term
    if flag.column is not None and flag.type.kind is Kind.BOOLEAN:
        return Listed(flag, (not is_not,))
    if not term.calls("eq", "in"):
        return None
    found = compared(term)
    key, others = (term.args[0], term.args[1:]) if found is None else (found[1], found[2:])
    if key.column is None or key.type.kind not in _LISTED:
        return None
    values: list[Scalar] = []
    for other in others:
        alike = other.type.kind is key.type.kind or (key.type.is_integer and other.type.is_integer)
        if not other.is_constant or not alike or not isinstance(other.constant, (bool, int, str)):
            return None
        values.append(other.constant)
    return Listed(key, tuple(dict.fromkeys(values))) if values else None


_lists = Made(_read_term)


@dataclass(frozen=True, slots=True)
class Ranged:
    """A filter term that holds on the rows whose `key`, a column of whole numbers or days, is no less than `first` and
    no more than `last`; None: any."""

    key: Expr
    first: int | None
    last: int | None


def ranged_term(term: Expr) -> Ranged | None:
    """Read the terms `key < literal`, `<=`, `>`, `>=` of a bare column; None for any other term."""
    found = compared(term)
    if found is None or found[0] not in ("lt", "le", "gt", "ge"):
        return None
    function, key, other = found
    is_whole = key.type.is_integer and other.type.is_integer
    if key.column is None or not other.is_constant or not (is_whole or key.type == other.type == DATE):
        return None
    value = other.constant
    if isinstance(value, str):
        value = spelled(value, key.type)
    if not isinstance(value, int):
        return None
    if function in ("lt", "le"):
        return Ranged(key, None, value - (function == "lt"))
    return Ranged(key, value + (function == "gt"), None)


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
    (column,) = set(parts_in(Field, *keys))
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
    # rows beyond the bounds are taken at these, where a key is computed; by itself they are others
    if column in keys:
        itself, declared = keys.index(column), env.columns[column.index].bounds or ()
        ends = {end for end, own in zip((facts.lo, facts.hi), declared, strict=False) if end == own}
        listed = (*places[itself][0], None)  # None is the place of all others
        for place in [place for place in taken if listed[place[itself]] in ends]:
            taken[*place[:itself], len(known[itself]), *place[itself + 1 :]] = None
    # else no row is there: by its type, by WHERE, or as the owner says
    told = [one for one in taken if all(n < size for n, (_, size) in zip(one, places, strict=True))]
    for number, (_, size) in enumerate(places):
        for empty in sorted(set(range(size)) - {one[number] for one in told}):
            # no value is in it: it has nothing, wherever that is counted
            told.append(tuple(empty if i == number else most - 1 for i, (_, most) in enumerate(places)))
    return tuple(Partition(groups) for groups in zip(*told, strict=True))
