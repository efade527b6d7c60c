"""Which releases are asked for their largest groups alone: ORDER BY a count or sum DESC LIMIT n (soundness.md 1.23)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..records import dataclass
from ..relation.relations import Block, Relation, ends_in, skipped, subqueries
from .privacy.rows import Release

__all__ = ["TopRows", "top_rows"]


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first `count` rows of a release in descending order of an aggregate, by its number."""

    aggregate: int
    count: int


def top_rows(relations: Sequence[Relation]) -> dict[Release, TopRows]:
    """Return the releases of which a statement reads nothing but its first rows, each in one place.

    What else may stand above: expressions of a row, and whatever reads the few rows. A filter before the LIMIT
    (HAVING), an OFFSET, another use of the release need the other groups too.
    """
    nodes = [node for relation in relations for node in _nodes(relation)]
    uses = Counter(node for node in nodes if isinstance(node, Release))
    found = {}
    for node in nodes:
        if ends_in(node, "limit") and (one := _of_limit(node)) is not None and uses[one[0]] == 1:
            found[one[0]] = one[1]
    return found


def _nodes(relation: Relation) -> Iterator[Relation]:
    """Yield a relation's nodes, those of its subqueries included; what is used twice comes twice."""
    yield relation
    for below in (*relation.inputs, *subqueries(relation)):
        yield from _nodes(below)


def _of_limit(node: Block) -> tuple[Release, TopRows] | None:
    below, (count, offset) = skipped(node.below, "outputs"), node.limit or (None, 0)
    if not count or offset or not ends_in(below, "orders") or not below.orders[0].descending:
        return None
    expr, source = below.orders[0].expr, below.below
    while ends_in(source, "outputs") and expr.column is not None:
        expr, source = source.exprs[expr.column], source.below
    if not isinstance(source, Release):
        return None
    aggregate = source.aggregate_at(expr)
    return None if aggregate is None else (source, TopRows(aggregate, count))
