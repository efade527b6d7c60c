"""What printed equalities and enforced keys make the same: columns of one value, columns of one value per owner.

House rules (soundness.md 1.12; law L9):

1. An equality counts when it is an AND term that is printed, between bare columns of one type, or of a bare
   column and a literal that only one value of it equals: a comparison of doubles can hold for two values, and one
   with a text as long as its column is read to for all that begin with it.
2. A key counts when the engine enforces it. A source whose key is known has one row; an outer source and a
   mark need the whole of their ON to be known too: a row that matches nothing is NULL throughout, or FALSE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from ...records import dataclass
from ...relation.catalog import Column
from ...relation.expressions import Expr, Field, fields_of
from ...relation.facts import is_cut, read_length
from ...relation.types import Kind
from .rows import Identity, Item, OwnedRows, Placed, PrivateBlock, columns_of, fields_in, source_at


@dataclass
class Classes:
    """Columns that are equal in every row, as a forest."""

    parents: dict[int, int] = field(default_factory=dict)

    def find(self, index: int) -> int:
        """Return the class of a column."""
        while (parent := self.parents.get(index, index)) != index:
            index = parent
        return index

    def unite(self, left: int, right: int) -> None:
        """Make two classes one; the lower column stands for it."""
        a, b = sorted((self.find(left), self.find(right)))
        self.parents[b] = a

    @property
    def tied(self) -> frozenset[int]:
        """The columns that may be equal to others: each of the others is a class by itself."""
        return frozenset((*self.parents, *self.parents.values()))

    @classmethod
    def of(cls, terms: Iterable[Expr]) -> Classes:
        """Return what AND terms make equal."""
        classes = cls()
        for left, right in equalities(terms):
            classes.unite(left, right)
        return classes


def equalities(terms: Iterable[Expr]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of columns that AND terms make equal, by an equality that holds of their values."""
    for term in terms:
        if term.calls("eq"):
            left, right = term.args
            if left.column is not None and right.column is not None and _is_exact(left, right):
                yield left.column, right.column


def _is_exact(left: Expr, right: Expr) -> bool:
    # House rule 1: as doubles, one value could equal several, and rows of several people would meet.
    if left.type.kind is Kind.NUMERIC:  # wider ones may be compared as doubles
        narrow = left.type.precision is not None and left.type.precision < 38
        return left.type == right.type and (narrow or left.type.engine is not None)
    return left.type == right.type or (left.type.is_integer and right.type.is_integer)


def public_column(block: PrivateBlock, key: Expr, placed: Placed) -> int | None:
    """Return which column of a public source equals a key in every row of a block, if one does."""
    if key.column is None or placed.item.kind != "inner" or placed.item.source.is_private:
        return None
    classes = Classes.of(block.predicate)
    wanted = classes.find(key.column)
    return next((index - placed.start for index in placed.own if classes.find(index) == wanted), None)


def _constants(terms: Iterable[Expr], columns: Sequence[Column]) -> Iterator[int]:
    """Yield the columns that AND terms hold at one value: a bare column equal to a literal of its own type."""
    for term in terms:
        if term.calls("eq"):
            for side, literal in (term.args, term.args[::-1]):
                column = side.column
                if (
                    column is not None
                    and literal.is_constant
                    and _is_one_value(side, literal, columns[column])
                ):
                    yield column


def _is_one_value(column: Expr, literal: Expr, known: Column) -> bool:
    """Say whether only one value of a column equals a literal; wide numbers may be compared as doubles."""
    kind, value = column.type.kind, literal.constant
    if column.type.is_integer:
        return literal.type.is_integer and isinstance(value, int)
    if kind is Kind.NUMERIC:
        narrow = column.type.precision is not None and column.type.precision <= 18
        return narrow and literal.type.is_integer and isinstance(value, int)
    if isinstance(value, str) and kind is Kind.TEXT:
        return not is_cut(known) or len(value) < read_length(known)
    alike = literal.type.kind is kind and value is not None
    return alike and kind in (Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP)


def has_one_row(rows: OwnedRows, keys: tuple[Expr, ...]) -> bool:
    """Say whether one owner has at most one row in a group of these keys, by keys that are enforced or printed.

    A UNIQUE column may be NULL many times; the keys of a printed GROUP BY are NULL once. A text that is printed cut is
    one group for all values that begin alike: it tells no rows apart.
    """
    fixed = set(rows.fixed_columns)
    for index in (key.column for key in keys if key.column is not None):
        column = rows.columns[index]
        certain = column.enforced.not_null or source_at(rows.items, index).item.source.uncut.is_subquery
        is_whole = column.type.kind is not Kind.TEXT or not is_cut(column)
        fixed |= {index} if certain and is_whole else set()
    classes = classes_of(rows.items, rows.predicate, rows.root)
    return all(functional_closure(rows.items, rows.predicate, classes, fixed)[1])


def classes_of(items: tuple[Item, ...], predicate: tuple[Expr, ...], root: Identity) -> Classes:
    """Return the equalities of all rows: those of the predicate, and columns of a source that hold its owner."""
    classes = Classes.of(predicate)
    for item, start in fields_in(items):
        if item.kind == "inner":  # in a row that an outer join fills up, both are NULL, and equal nothing
            first, *others = item.source.holds(root) or [()]
            for places in others:
                for left, right in zip(first, places, strict=True):
                    classes.unite(start + left, start + right)
    return classes


def distinguishing(rows: OwnedRows) -> tuple[Field, ...] | None:
    """Return columns of an enforced key that no two rows of one owner share; None where there is none."""
    classes, held = classes_of(rows.items, rows.predicate, rows.root), frozenset[int]().union(*rows.units)
    for item, start in fields_in(rows.items):
        for key in item.source.keys if item.kind == "inner" else ():
            columns = sorted(start + index for index in key)
            if not all(i in held or rows.columns[i].enforced.not_null for i in columns):
                continue  # a UNIQUE key may be NULL any number of times
            if all(
                functional_closure(rows.items, rows.predicate, classes, {*rows.fixed_columns, *columns})[1]
            ):
                return tuple(Field(rows.columns[index].type, index) for index in columns)
    return None


def functional_closure(
    items: tuple[Item, ...], predicate: tuple[Expr, ...], classes: Classes, fixed: set[int]
) -> tuple[set[int], list[bool]]:
    """Return the columns that are a function of the columns in `fixed`, and which sources have one row for them.

    A source has one row when one of its enforced keys is fixed; its other columns are fixed then. An outer
    source and a mark also need every other column of their ON to be fixed: a row that matches nothing is
    NULL throughout, or FALSE.
    """
    fixed = set(fixed)
    columns = columns_of(items)
    fixed |= set(_constants(predicate, columns))
    placed, tied = fields_in(items), classes.tied
    at_most_one = [item.kind == "mark" for item in items]  # a mark adds no rows
    marks = [item.kind != "mark" for item in items]  # is the column of this mark fixed (or is it none)
    changed = True
    while changed:
        roots = {classes.find(index) for index in tied if index in fixed}
        size = len(fixed)
        fixed |= {index for index in tied if index < len(columns) and classes.find(index) in roots}
        changed = len(fixed) > size
        for place, one in enumerate(placed):
            if at_most_one[place] and marks[place]:
                continue
            if _is_fixed(one, fixed, columns):
                fixed |= {*one.own}
                at_most_one[place] = marks[place] = changed = True
    return fixed, at_most_one


def _is_fixed(placed: Placed, fixed: set[int], columns: Sequence[Column]) -> bool:
    (item, start), own = placed, {*placed.inside}
    if item.kind == "full":  # its rows stay unmatched too, any number of them for what is fixed
        return False
    if item.kind != "inner" and not fields_of(*item.on) - own <= fixed:
        return False
    if item.kind == "mark":
        return True
    reached = fixed & own if item.kind == "inner" else set()
    if item.kind == "left":
        for a, b in equalities(item.on):
            reached |= {index for index, other in ((a, b), (b, a)) if index in own and other in fixed}
        reached |= own & set(_constants(item.on, columns))
    return any({start + index for index in key} <= reached for key in item.source.keys)
