"""Correlated aggregates: a release of only the groups that the rows around can ask for.

`x < (SELECT AVG(y) FROM t WHERE t.k = p.k)` is one release grouped by k, joined back. Where the rows around take
p.k from public rows that pass public filters, the inner rows are held to those keys first: an EXISTS over public
data, which is a row filter (soundness.md 1.10). It changes no group that is asked for, and a person's
max_groups are then spent on groups that count.
"""

from __future__ import annotations

from dataclasses import replace

from ...relation.catalog import Catalog
from ...relation.expressions import Call, Expr, Field, conjunction, conjuncts, shifted
from ...relation.relations import Block, Join, Relation, projected
from ...relation.types import BOOLEAN
from .functional_dependencies import public_column
from .join import join_blocks
from .public_inputs import NotInPlace, read_in_place
from .rows import Item, PrivateBlock, fields_in

__all__ = ["held_to", "keys_asked_for"]


def keys_asked_for(
    node: Join, left: PrivateBlock | Relation, count: int, catalog: Catalog
) -> PrivateBlock | None:
    """Return public rows that hold every key which a left row looks up, key by key; None when nothing narrows them.

    `node`: the join of a correlated scalar subquery; the first `count` columns of its right side are the keys.
    """
    width = len(node.left.columns)
    found: dict[int, Field] = {}
    for term in conjuncts(node.condition):
        sides = [arg for arg in term.args if isinstance(arg, Field)]
        if len(sides) == 2 and term.calls("eq"):
            outer, key = sorted(sides, key=lambda side: side.index)
            found[key.index - width] = outer
    if sorted(found) != list(range(count)):
        return None
    keys = tuple(found[index] for index in range(count))
    if isinstance(left, PrivateBlock):
        return _of_block(left, tuple(left.outputs[key.index] for key in keys))
    try:
        block = read_in_place(projected(left, keys), catalog)
    except NotInPlace:
        return None
    return block if block.predicate else None


def _of_block(left: PrivateBlock, keys: tuple[Expr, ...]) -> PrivateBlock | None:
    """Return the one public source of a block that has all the keys, with the filters that are its own."""
    for placed in fields_in(left.items):
        columns = [public_column(left, key, placed) for key in keys]
        held = [column for column in columns if column is not None]
        terms = placed.all_own(left.predicate) if len(held) == len(columns) else ()
        if terms:
            outputs = tuple(Field(placed.item.columns[i].type, i) for i in held)
            moved, names = shifted(terms, -placed.start), ("",) * len(outputs)
            return PrivateBlock((Item(placed.item.source),), moved, outputs, names=names)
    return None


def held_to(
    source: PrivateBlock, node: Block, keys: tuple[Expr, ...], asked: PrivateBlock, catalog: Catalog
) -> PrivateBlock:
    """Return the rows whose keys are among those that are asked for; `node`: the block that groups by them."""
    width = len(source.outputs)
    terms = tuple(
        Call(BOOLEAN, "eq", (key, Field(out.type, width + index)))
        for index, (key, out) in enumerate(zip(keys, asked.outputs, strict=True))
    )
    mark = Join("mark", node.below, node.below, conjunction(terms), position=node.position)
    marked = join_blocks(mark, source, asked, catalog, lambda expr: expr)
    predicate = tuple(sorted((*marked.predicate, marked.outputs[-1]), key=repr))
    return replace(marked, predicate=predicate, outputs=marked.outputs[:-1], names=marked.names[:-1])
