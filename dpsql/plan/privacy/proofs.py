"""What the engine's own constraints say of every row of a block: for filters that no row passes (soundness.md 1.16).

House rules:

1. Only what a table's `Proved` has, and NOT NULL columns of such a table: constraints that the live engine enforces and
   has validated. Never what is asserted or recorded, and nothing of a source whose rows a policy or a cut changes.
2. It says nothing about whose rows they are, and no sensitivity rests on it: a wrong fact costs correctness alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...relation.expressions import Call, Expr, Field
from ...relation.types import Kind
from .functional_dependencies import Classes, equalities, functional_closure
from .rows import Derived, Grouped, Item, Source, TableSource, fields_in, uncut

__all__ = ["Facts", "facts_in"]


@dataclass(frozen=True)
class Facts:
    """Of a block's columns, by number: those that are never NULL, marks that are always TRUE, counts of 1 at most."""

    not_null: frozenset[int] = frozenset()
    true: frozenset[int] = frozenset()
    at_most_one: frozenset[int] = frozenset()


def facts_in(items: Sequence[Item], predicate: Sequence[Expr], *, inside: bool = False) -> Facts:
    """Return what constraints prove of the rows of a block that pass its filter's terms.

    `inside`: the columns of the last item, a mark, are its source's own, as its ON has them.
    """
    not_null, true, single = set[int](), set[int](), set[int]()
    placed = fields_in(tuple(items))
    for item, start in placed:
        if item.kind == "inner" or (inside and item is items[-1]):
            not_null |= _not_null(item, start)
            single |= _single_counts(item, start)
    known = not_null | _asked_not_null(predicate)
    for item, start in placed:
        if item.kind in ("left", "mark") and _is_always_matched(item, start, placed, known):
            not_null |= _not_null(item, start) if item.kind == "left" else set()
            true |= {start} if item.kind == "mark" else set()
    return Facts(frozenset(not_null), frozenset(true), frozenset(single))


def _table(source: Source) -> TableSource | None:
    """Return a source as the table of which it is rows, where the table's engine proves something of these."""
    found = uncut(source)  # fewer rows, of which the same holds
    # House rule 1: a `DeclaredTable` has other values than its table.
    return found if type(found) is TableSource and found.table.proved is not None else None


def _not_null(item: Item, start: int) -> set[int]:
    """Return the columns of a table that are never NULL; NaN is NULL to a statement, and no constraint keeps it out."""
    source = _table(item.source)
    if source is None:
        return set()
    own = (*source.table.owner_columns, *source.table.columns)
    held = {
        column.name
        for column in own
        if column.enforced.not_null and not (column.type.is_float or column.type.kind is Kind.NUMERIC)
    }
    return {start + place for place, name in enumerate(source.shown) if name in held}


def _asked_not_null(predicate: Sequence[Expr]) -> set[int]:
    """Return the columns that the terms of a filter leave no NULL of."""
    found = set[int]()
    for term in predicate:
        if isinstance(term, Call) and term.function == "not" and isinstance(term.args[0], Call):
            inner = term.args[0]
            if inner.function == "is_null" and isinstance(inner.args[0], Field):
                found.add(inner.args[0].index)
    return found


def _is_always_matched(item: Item, start: int, placed: Sequence[tuple[Item, int]], known: set[int]) -> bool:
    """Say whether each row finds a row of a joined table: by a foreign key none of whose columns is NULL, and no more."""
    parent = _table(item.source)
    if parent is not item.source or parent is None:  # a cut leaves out what would match
        return False
    pairs = {frozenset(pair) for pair in equalities(item.on)}
    if len(pairs) != len(item.on):
        return False
    named = {start + place: name for place, name in enumerate(parent.shown)}
    for child, first in placed:
        table = _table(child.source) if child.kind == "inner" else None
        if table is None or table.table.proved is None:
            continue
        own = {first + place: name for place, name in enumerate(table.shown) if first + place in known}
        found = {
            (own[one], named[other])
            for pair in pairs
            for one, other in (sorted(pair), sorted(pair, reverse=True))
            if one in own and other in named
        }
        for columns, path, referenced in table.table.proved.foreign_keys:
            if path == parent.table.path and found == {*zip(columns, referenced, strict=True)}:
                return len(pairs) == len(columns) and _is_key(parent, {*referenced})
    return False


def _is_key(table: TableSource, names: set[str]) -> bool:
    """Say whether columns are a proved key, whose equality is that of their values."""
    return table.table.proved is not None and any({*key} == names for key in table.table.proved.keys)


def _single_counts(item: Item, start: int) -> set[int]:
    """Return which columns of a subquery count rows of which there is one at most: of a whole key, without its NULLs."""
    source = item.source
    if not isinstance(source, Derived) or len(source.parts) != 1 or not isinstance(source.parts[0], Grouped):
        return set()
    part = source.parts[0]
    if not _is_one_row(part):
        return set()
    counts = [call.function == "count" and not call.distinct for call in part.aggregates]
    return {start + len(part.outputs) + number for number, is_count in enumerate(counts) if is_count}


def _is_one_row(part: Grouped) -> bool:
    """Say whether a group of a subquery has one row at most, by keys that are proved."""
    items = tuple(replace(item, source=replace(item.source, keys=_keys(item.source))) for item in part.items)
    known = facts_in(part.items, part.predicate).not_null | _asked_not_null(part.predicate)
    fixed = {key.index for key in part.outputs if isinstance(key, Field) and key.index in known}
    classes = Classes()
    for left, right in equalities(part.predicate):
        classes.unite(left, right)
    return all(functional_closure(items, part.predicate, classes, fixed)[1])


def _keys(source: Source) -> tuple[frozenset[int], ...]:
    table = _table(source)
    if table is None:
        return ()
    return tuple(key for key in table.keys if _is_key(table, {table.shown[place] for place in key}))
