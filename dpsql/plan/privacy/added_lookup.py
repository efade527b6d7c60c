"""The lookup of whom a row points at, which a statement reads without a join (soundness.md 1.38).

House rules:

1. What a statement reads of a reference, beside that it equals its key, it reads of the key: of the row that an inner
   join by the reference finds, which is the statement's own where it has one, and is added else. The rows are of two
   people from there on, or one person's, by the rules of `lookup` and `ownership` alone.
2. A join is added only where it leaves no row out that the statement counts: rows whose reference is NULL are none, or
   no term of WHERE is true of them, or nothing is computed but counts of the reference. A row that points at nothing
   that is there is nobody's, as one whose own person is not there.
3. One join is added to a block. What is left is refused by `check_references`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...relation.catalog import Also, Catalog
from ...relation.expressions import Call, Expr, Field, compared, substitute
from ...relation.relations import AggregateCall
from ...relation.types import BOOLEAN
from .functional_dependencies import equalities
from .join import is_null_where
from .lookup import pointing, read_besides, targets
from .ownership import pointed_source
from .rows import Item, Placed, PrivateBlock, columns_of, fields_in, read_by


@dataclass(frozen=True)
class Looked:
    """A block that is grouped, and what is computed of its rows."""

    block: PrivateBlock
    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]

    @property
    def read(self) -> tuple[Expr, ...]:
        """What is computed of the rows."""
        return (*self.keys, *(expr for call in self.aggregates for expr in read_by(call)))


def with_lookups(asked: Looked, catalog: Catalog) -> Looked:
    """Return a grouped block that reads the keys that its references are equal to, and these in no other way."""
    is_added = asked.block.unmatched is not None  # rows that an outer join keeps have no rule beside a lookup
    for placed, also, own in list(pointing(asked.block.items)):
        block = asked.block
        besides = read_besides(block.items, block.predicate, asked.read, placed, also, own)
        if placed.item.kind != "inner" or next(besides, None) is None:
            continue
        found = next(targets(block.items, also, own, block.predicate), None)
        if found is None:
            if is_added or not _counts_no_null(asked, own):
                continue
            asked, is_added = _joined(asked, also, own, catalog), True
            found = next(targets(asked.block.items, also, own, asked.block.predicate))
        asked = _of_key(asked, fields_in(asked.block.items)[found[0]], also, own, found[1])
    return asked


def _joined(asked: Looked, also: Also, own: tuple[int, ...], catalog: Catalog) -> Looked:
    """Join the row that a reference points at."""
    block, (name, key) = asked.block, also.references
    width, columns = len(columns_of(block.items)), columns_of(block.items)
    source = replace(pointed_source(catalog.tables[name], key, also.types, catalog), is_looked_up=True)
    links = [
        Call(
            BOOLEAN, "eq", (Field(columns[index].type, index), Field(type_, width + source.shown.index(one)))
        )
        for index, type_, one in zip(own, also.types, key, strict=True)
    ]
    predicate = tuple(sorted(dict.fromkeys((*block.predicate, *links)), key=repr))
    return replace(asked, block=replace(block, items=(*block.items, Item(source)), predicate=predicate))


def _of_key(
    asked: Looked, target: Placed, also: Also, own: tuple[int, ...], links: frozenset[frozenset[int]]
) -> Looked:
    """Read a key in place of a reference that is equal to it, but where they are equated."""
    columns, shown = columns_of(asked.block.items), target.item.source.uncut.shown
    row: list[Expr] = [Field(column.type, index, column.name) for index, column in enumerate(columns)]
    for index, name in zip(own, also.references[1], strict=True):
        place = target.start + shown.index(name)
        row[index] = Field(columns[place].type, place, columns[index].name)

    def put(expr: Expr) -> Expr:
        return substitute(expr, tuple(row))

    block = asked.block
    is_link = [any(frozenset(pair) in links for pair in equalities((term,))) for term in block.predicate]
    terms = (term if is_said else put(term) for term, is_said in zip(block.predicate, is_link, strict=True))
    predicate = tuple(sorted(dict.fromkeys(terms), key=repr))
    calls = tuple(call.map(put) for call in asked.aggregates)
    return Looked(replace(block, predicate=predicate), tuple(map(put, asked.keys)), calls)


def _counts_no_null(asked: Looked, own: Sequence[int]) -> bool:
    """Say whether a row with a NULL in a reference adds nothing to any answer (house rule 2)."""
    columns = columns_of(asked.block.items)
    left = {index for index in own if not columns[index].enforced.not_null}
    left -= {index for index in left if any(_is_untrue(term, index) for term in asked.block.predicate)}
    counted = [
        not asked.keys and call.function == "count" and len(call.args) == 1 and call.args[0].column in left
        for call in asked.aggregates
    ]
    return not left or (len(own) == 1 and bool(counted) and all(counted))


def _is_untrue(term: Expr, index: int) -> bool:
    """Say whether a filter term is FALSE or NULL where a column is NULL."""
    if isinstance(term, Call) and term.calls("not"):
        (inner,) = term.args
        if inner.calls("is_null"):
            return isinstance(inner, Call) and inner.args[0].column == index
        term = (
            inner  # NULL where the term under it is, which none of the comparisons below makes TRUE or FALSE
        )
    comparison = compared(term)
    sides: Sequence[Expr] = () if comparison is None else comparison[1:]
    if isinstance(term, Call) and term.calls("in"):
        sides = term.args[:1]
    return any(is_null_where(side, lambda column: column == index) for side in sides)
