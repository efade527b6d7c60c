"""Group keys that are read from public tables: their values are known beforehand, to anybody (soundness.md 1.7).

A row of a join with a public table has one of that table's rows in it, so that a key made of its columns is one
of the table's own; where a LEFT JOIN stands before the table, or what the key makes of NULL.

House rules:

1. A list is read of public tables alone, under those filter terms that read nothing else. It may hold keys that no
   row has; the group is then 0 and noise, as a declared value's.
2. Where the table changes between the list and the private rows, the list stands: it is public, and was fixed
   before. Rows of other keys are counted in no group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ...records import dataclass
from ...relation.catalog import Column
from ...relation.expressions import (
    Call,
    Expr,
    Field,
    IntermediateValue,
    Literal,
    fields_of,
    map_children,
    moved,
    parts_in,
)
from ...relation.size_rules import is_cut, read_length
from ...relation.types import INTEGER, TEXT, Kind
from .functional_dependencies import Classes
from .keys import Domain
from .rows import Item, OwnedRows, Placed, fields_in


@dataclass(frozen=True)
class KeyList:
    """Keys of a release that come from the same public rows: those of `items` on which `predicate` holds.

    `numbers`: which keys of the release. `may_miss`: no row may match, and the columns are NULL then.
    """

    numbers: tuple[int, ...]
    keys: tuple[Expr, ...]
    items: tuple[Item, ...]
    predicate: tuple[Expr, ...]
    may_miss: bool

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, as EXPLAIN has them."""
        return tuple(item.source.shown_name for item in self.items)


def key_lists(
    rows: OwnedRows, keys: tuple[Expr, ...], domains: Sequence[Domain | None]
) -> tuple[KeyList, ...]:
    """Return the lists to be read for the keys of a release; none where a key has no values beforehand.

    One key alone whose values the text or the policy declares needs no list; of several of one table they are read
    together, so that only pairs that are there are groups.
    """
    if rows.unmatched is not None:  # the keys are over its items, which stand first
        kept = rows.unmatched
        items = tuple(Item(item.source) for item in kept.items)
        return (KeyList(tuple(range(len(keys))), keys, items, kept.predicate, may_miss=False),)
    placed = [one for one in fields_in(rows.items) if _is_public(one.item)]
    keys, predicate = _over_public(placed, rows.columns, keys, rows.predicate)
    parts: dict[tuple[int, ...], list[int]] = {}
    joined = _joined(placed, predicate)
    for number, key in enumerate(keys):
        columns = fields_of(key)
        for part in joined if columns and not _is_staged(key) else []:
            if columns <= {index for place in part for index in placed[place].own}:
                parts.setdefault(part, []).append(number)
    wanted = {
        part: numbers
        for part, numbers in parts.items()
        if any(domains[number] is None for number in numbers) or _share_a_table(placed, keys, numbers)
    }
    listed = {number for numbers in wanted.values() for number in numbers}
    if any(domain is None and number not in listed for number, domain in enumerate(domains)):
        return ()
    return tuple(
        _list([placed[place] for place in part], tuple(numbers), keys, predicate)
        for part, numbers in wanted.items()
    )


def _is_public(item: Item) -> bool:
    table = item.source.table
    return (
        item.kind in ("inner", "left") and table is not None and table.unit is None and not table.is_undated
    )


def _share_a_table(placed: Sequence[Placed], keys: tuple[Expr, ...], numbers: list[int]) -> bool:
    """Say whether two keys read columns of one public source, so that not all pairs of their values are there."""
    read = [
        {place for place, one in enumerate(placed) if fields_of(keys[number]).intersection(one.own)}
        for number in numbers
    ]
    return len(set().union(*read)) < sum(map(len, read))


def _over_public(
    placed: Sequence[Placed],
    columns: Sequence[Column],
    keys: tuple[Expr, ...],
    predicate: tuple[Expr, ...],
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Return keys and filter terms with a public column in place of each private one that always equals it."""
    classes = Classes.of(predicate)
    public = {index: one for one in placed for index in one.own}
    equal = {classes.find(index): index for index, one in public.items() if one.item.kind == "inner"}

    def one(expr: Expr, *, is_whole: bool = False) -> Expr:
        if isinstance(expr, Field) and expr.index not in public:
            index = equal.get(classes.find(expr.index))
            if index is None:
                return expr
            found = public[index].item.columns[index - public[index].start]
            same = replace(expr, index=index, type=found.type)
            return same if is_whole else _as_read(expr, columns[expr.index], same, found)
        if expr.args and all(arg.column is not None for arg in expr.args):
            # columns beside columns stand whole
            return map_children(expr, partial(one, is_whole=expr.type.kind is Kind.BOOLEAN))
        return map_children(expr, one)

    return tuple(map(one, keys)), tuple(map(one, predicate))


def _as_read(own: Field, column: Column, same: Field, found: Column) -> Expr:
    """Return what a key made of a column is made of in a public one that equals it: no more characters are read of it.

    Where a text of the public column is read to fewer, its keys are none of the rows': they are not listed.
    """
    if own.type.kind is not Kind.TEXT or not is_cut(column):
        return same
    most, public = read_length(column), read_length(found)
    if most == public or (most > public and not is_cut(found)):
        return same
    return Call(TEXT, "left", (same, Literal(INTEGER, most))) if most < public else own


def _is_staged(expr: Expr) -> bool:
    return any(parts_in(IntermediateValue, expr))


def _joined(placed: Sequence[Placed], predicate: tuple[Expr, ...]) -> list[tuple[int, ...]]:
    """Return the public sources, by place, in parts that filter terms of their own join; an outer one is alone."""
    classes = Classes()
    owner = {index: place for place, one in enumerate(placed) for index in one.own}
    for term in predicate:
        places = {owner.get(index, -1) for index in fields_of(term)}
        if -1 not in places and all(placed[place][0].kind == "inner" for place in places):
            for place in places:
                classes.unite(min(places), place)
    parts: dict[int, list[int]] = {}
    for place in range(len(placed)):
        parts.setdefault(classes.find(place), []).append(place)
    return [tuple(part) for part in parts.values()]


def _list(
    placed: Sequence[Placed],
    numbers: tuple[int, ...],
    keys: tuple[Expr, ...],
    predicate: tuple[Expr, ...],
) -> KeyList:
    places: dict[int, int] = {}
    for index in (index for one in placed for index in one.own):
        places[index] = len(places)
    own = [
        moved(term, places.__getitem__)
        for term in predicate
        if fields_of(term) and fields_of(term) <= places.keys() and not _is_staged(term)
    ]
    return KeyList(
        numbers,
        tuple(moved(keys[number], places.__getitem__) for number in numbers),
        tuple(Item(item.source) for item, _ in placed),
        tuple(own),
        any(item.kind == "left" for item, _ in placed),
    )
