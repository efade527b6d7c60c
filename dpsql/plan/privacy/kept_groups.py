"""Which groups of a release the statement keeps above it, by filters on its keys (soundness.md 1.16).

For proofs that none is kept, and for nothing else: what is measured of a release does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...relation.expressions import Expr, conjuncts, fields_of, substitute
from ...relation.relations import Relation, ends_in, subqueries
from .rows import Release

__all__ = ["kept_groups"]

Kept = dict[Release, set[tuple[Expr, ...]]]
"""Of each release, for every place in the statement that it is used in, terms that hold of all groups that are used
there: over the columns of its rows. No terms: all of them are used, as far as is known."""


def kept_groups(parts: Iterable[Relation]) -> Kept:
    """Return what analyzed relations keep of the groups of their releases."""
    found: Kept = {}
    for part in parts:
        _visit(part, (), found)
    return found


def _visit(node: Relation, terms: tuple[Expr, ...], found: Kept) -> None:
    """Note the uses of releases in a relation. `terms`: what holds of the rows of it that are used, over its columns.

    A filter goes through what neither makes a row of several nor leaves one out that another depends on; through
    windows, limits, joins and aggregates nothing goes.
    """
    for below in subqueries(node.alone):
        _visit(below, (), found)
    if isinstance(node, Release):
        own = [term for term in terms if fields_of(term) and fields_of(term) <= {*range(len(node.keys))}]
        found.setdefault(node, set()).add(tuple(substitute(term, node.keys) for term in own))
    elif ends_in(node, "where", "having"):
        _visit(node.below, (*terms, *conjuncts(node.predicate)), found)
    elif ends_in(node, "outputs"):
        exprs = node.exprs
        plain = {index for index, expr in enumerate(exprs) if expr.column is not None}
        own = [term for term in terms if fields_of(term) <= plain]  # others could grow with each projection
        _visit(node.below, tuple(substitute(term, exprs) for term in own), found)
    else:
        kept = terms if ends_in(node, "orders", "distinct") else ()
        for source in node.reads:
            _visit(source, kept, found)
