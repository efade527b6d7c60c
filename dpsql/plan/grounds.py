"""What a release rests on of policy and schema: the part of its identity that an edit changes (soundness.md 3.7).

House rules:

1. A release rests on what is said of the whole dataset, of each table that it reads, in subqueries too, of each column
   that some expression of it reads, and of the way from its rows to their owners; and on what the intermediate results
   rest on that it depends on. Nothing else of policy or schema may enter a plan of what is stored.
2. Too much here is paid anew after an edit that changes nothing; too little hands out a number of another question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction

from ..cache import Cache
from ..relation.catalog import Ground, Table
from ..relation.expressions import Expr, IntermediateValue, fields_of, parts_in
from ..relation.relations import Relation, tables_in
from .privacy.rows import (
    Item,
    OwnedRows,
    Release,
    Select,
    Source,
    fields_in,
    intermediates_in,
    selects_in,
    source_at,
    written_in,
)


def units_ground(minimum_units: int) -> Ground:
    """Return what plans rest on whose groups are found in the data."""
    return "defaults.minimum_units", str(minimum_units)


def grounds_of(
    rows: OwnedRows, asked: Sequence[Expr], below: Sequence[frozenset[Ground]]
) -> frozenset[Ground]:
    """Return what rows rest on, and expressions over them. `below`: what intermediate results rest on, by number."""
    found = set(column_grounds(rows, asked))
    for select in selects_in(rows):
        found.update(_read_in(select))
    read = {part.intermediate for part in parts_in(IntermediateValue, *asked)}
    return frozenset(found).union(*(below[number] for number in read.union(intermediates_in(rows))))


def release_grounds(release: Release, below: Sequence[frozenset[Ground]]) -> frozenset[Ground]:
    """Return what all of a release rests on."""
    calls = [expr for call in release.aggregates for expr in (*call.args, call.filter) if expr is not None]
    return grounds_of(release.rows, (*release.keys, *calls), below)


def column_grounds(select: Select, said: object) -> Iterator[Ground]:
    """Yield what is said of the columns that the expressions in some value read: one, or what is made of several.

    `said`: as it enters a key, so that whatever stands in a key stands there with what is said of it.
    """
    for index in sorted(_fields_in(said)):
        known = _said.get((id(select.items), index))
        if known is None:
            item, start = source_at(select.items, index)
            own = () if item.kind == "mark" else tuple(_column(item.source, index - start))
            known = select.items, own
            _said.put((id(select.items), index), known)
        yield from known[1]


_said: Cache[tuple[Sequence[Item], tuple[Ground, ...]]] = Cache(1024)
"""What is said of a column of some sources, by the number of the object of these, which is kept with it: each
coordinate of each plan of a statement asks for it."""
_ATOMS = frozenset({str, int, bool, bytes, float, Fraction, type(None)})


def _fields_in(said: object) -> set[int]:
    found, stack, seen = set[int](), [said], set[int]()
    while stack:
        part = stack.pop()
        if part.__class__ in _ATOMS:
            continue
        if isinstance(part, Expr):
            found |= part.fields_read
        elif isinstance(part, (tuple, list, frozenset)):
            if id(part) not in seen:  # the masks of a measurement stand in each of its labels
                seen.add(id(part))
                stack += part
        elif is_dataclass(part):
            stack += [getattr(part, field.name) for field in fields(part)]
    return found


def grounds_below(
    intermediates: Iterable[tuple[Relation, Sequence[Release]]],
) -> tuple[frozenset[Ground], ...]:
    """Return what each intermediate result rests on, in order: its releases, and public tables with all columns."""
    found: list[frozenset[Ground]] = []
    for relation, releases in intermediates:
        own = [
            ground for table in tables_in(relation) for ground in (*_grounds(table), *table.column_grounds)
        ]
        found.append(frozenset(own).union(*(release_grounds(release, found) for release in releases)))
    return tuple(found)


def _read_in(select: Select) -> Iterator[Ground]:
    """Yield what one select rests on, those below it left out.

    Tables that were joined to find the owner are told by the one whose way they are on.
    """
    placed = fields_in(select.items)
    for item, _ in placed:
        if item.source.table is not None and not item.source.is_on_way:
            yield from _grounds(item.source.table)
    yield from column_grounds(select, (*written_in(select), *select.owner))
    for item, start in placed:  # the columns of the item itself follow those before it, of a mark too
        for index in fields_of(*item.on):
            if index >= start:
                yield from _column(item.source, index - start)
            else:
                earlier, first = next(one for one in reversed(placed) if one[1] <= index)
                yield from _column(earlier.source, index - first)


def _column(source: Source, index: int) -> Iterator[Ground]:
    """Yield what is said of a table's column; of a unit's that is not declared the table says all."""
    if (table := source.table) is not None and not source.is_on_way:
        name = source.shown[index]
        yield from (
            ground
            for column, ground in zip(table.columns, table.column_grounds, strict=True)
            if column.name == name
        )


def _grounds(table: Table) -> tuple[Ground, ...]:
    assert table.grounds, "a table without them would be the same whatever is declared of it"
    assert len(table.column_grounds) == len(table.columns)
    return table.grounds
