"""What the engine's own constraints say of every row of a block: for filters that no row passes (soundness.md 1.16).

House rules:

1. Only what a table's `Proved` has, and NOT NULL columns of such a table: constraints that the live engine enforces
   and has validated. Never what is asserted or recorded, and nothing of a source whose rows a policy or a cut changes.
2. It says nothing about whose rows they are, and no sensitivity rests on it: a wrong fact costs correctness alone.

Which groups of a release the statement keeps above it, by filters on its keys, is for proofs that none is kept, and
for nothing else: what is measured of a release does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from ...records import dataclass
from ...relation.catalog import Allowed, Proved, Table
from ...relation.expressions import Expr, conjuncts, fields_of, substitute
from ...relation.relations import Relation, ends_in, subqueries
from .functional_dependencies import Classes, equalities, functional_closure
from .rows import Item, Release, Select, Source, fields_in


@dataclass(frozen=True)
class Facts:
    """Of a block's columns, by number: those that are never NULL, marks that are always TRUE, counts of 1 at most.

    `allowed`: what columns may be where they are not NULL.
    """

    not_null: frozenset[int] = frozenset()
    true: frozenset[int] = frozenset()
    at_most_one: frozenset[int] = frozenset()
    allowed: Mapping[int, Allowed] = field(default_factory=dict)


def facts_in(items: Sequence[Item], predicate: Sequence[Expr], *, inside: bool = False) -> Facts:
    """Return what constraints prove of the rows of a block that pass its filter's terms.

    `inside`: the columns of the last item, a mark, are its source's own, as its ON has them.
    """
    if any(item.kind == "full" for item in items):
        return Facts()  # rows of every source may be filled up with NULL
    not_null, true, single = set[int](), set[int](), set[int]()
    allowed: dict[int, Allowed] = {}
    placed = fields_in(tuple(items))
    for item, start in placed:
        if item.kind == "inner" or (inside and item is items[-1]):
            not_null |= _not_null(item, start)
            single |= _single_counts(item, start)
        if item.kind != "mark" or (inside and item is items[-1]):
            allowed |= _allowed(item, start)  # what a LEFT JOIN does not match is NULL
    known = not_null | _asked_not_null(predicate)
    for item, start in placed:
        if item.kind in ("left", "mark") and _is_always_matched(item, start, placed, known):
            not_null |= _not_null(item, start) if item.kind == "left" else set()
            true |= {start} if item.kind == "mark" else set()
    return Facts(frozenset(not_null), frozenset(true), frozenset(single), allowed)


@dataclass(frozen=True)
class _Rows:
    """Rows of a table whose engine proves something of them; `names`: of its columns, "" for what is none.

    `is_whole`: all of the table's rows are among them.
    """

    table: Table
    proved: Proved
    names: tuple[str, ...]
    is_whole: bool

    def has_key(self, names: set[str]) -> bool:
        """Say whether columns are a proved key, whose equality is that of their values."""
        return any({*key} == names for key in self.proved.keys)


def _rows(source: Source) -> _Rows | None:
    """Return a source as rows of one table; None where it is more than a table, a cut of it or a choice of columns."""
    if source.most is not None:
        found = _rows(source.uncut)
        return None if found is None else replace(found, is_whole=False)
    if source.declares:  # house rule 1: it has other values than its table
        return None
    if (table := source.table) is not None:
        return None if table.proved is None else _Rows(table, table.proved, source.shown, is_whole=True)
    if len(source.parts) != 1 or source.parts[0].calls or source.parts[0].aggregates is not None:
        return None
    part = source.parts[0]
    found = _rows(part.items[0].source) if len(part.items) == 1 and part.items[0].kind == "inner" else None
    if found is None:
        return None
    columns = (*part.outputs, *part.owner)
    names = tuple("" if one.column is None else found.names[one.column] for one in columns)
    return replace(found, names=names, is_whole=found.is_whole and not part.predicate)


def _not_null(item: Item, start: int) -> set[int]:
    """Return the columns of a table that are never NULL; whoever asks knows that NaN is NULL to a statement."""
    rows = _rows(item.source)
    if rows is None:
        return set()
    own = (*rows.table.owner_columns, *rows.table.columns)
    held = {column.name for column in own if column.enforced.not_null}
    return {start + place for place, name in enumerate(rows.names) if name in held}


def _allowed(item: Item, start: int) -> dict[int, Allowed]:
    """Return what the columns of a table may be; not of those whose values are reports in place of the true ones."""
    rows = _rows(item.source)
    if rows is None:
        return {}
    reported = {column.name for column in rows.table.columns if column.randomized is not None}
    known = {one.column: one for one in rows.proved.allowed if one.column not in reported}
    return {start + place: known[name] for place, name in enumerate(rows.names) if name in known}


def _asked_not_null(predicate: Sequence[Expr]) -> set[int]:
    """Return the columns that the terms of a filter leave no NULL of."""
    found = set[int]()
    for term in predicate:
        if term.calls("not") and term.args[0].calls("is_null"):
            column = term.args[0].args[0].column
            found |= set() if column is None else {column}
    return found


def _is_always_matched(item: Item, start: int, placed: Sequence[tuple[Item, int]], known: set[int]) -> bool:
    """Say whether each row finds a row of a joined table: by a foreign key without its NULLs, and nothing else."""
    parent = _rows(item.source)
    if parent is None or not parent.is_whole:
        return False
    pairs = {frozenset(pair) for pair in equalities(item.on)}
    if len(pairs) != len(item.on):
        return False
    named = {start + place: name for place, name in enumerate(parent.names)}
    for other, first in placed:
        child = _rows(other.source) if other.kind == "inner" else None
        if child is None:
            continue
        own = {first + place: name for place, name in enumerate(child.names) if first + place in known}
        found = {
            (own[one], named[two])
            for pair in pairs
            if len(pair) == 2  # x = x links nothing
            for one, two in (sorted(pair), sorted(pair, reverse=True))
            if one in own and two in named
        }
        for columns, path, referenced in child.proved.foreign_keys:
            if path == parent.table.path and found == {*zip(columns, referenced, strict=True)}:
                return len(pairs) == len(columns) and parent.has_key({*referenced})
    return False


def _single_counts(item: Item, start: int) -> set[int]:
    """Return which columns of a subquery count one row at most: those of a whole key, without its NULLs."""
    source = item.source
    if not source.is_subquery or len(source.parts) != 1:
        return set()
    part = source.parts[0]
    if part.aggregates is not None:
        is_single = _is_one_row(part, part.outputs)
        counts = [is_single and call.function == "count" for call in part.aggregates]
    else:
        counts = [call.function == "count" and _is_one_row(part, call.partition) for call in part.windows]
    return {start + len(part.outputs) + number for number, is_count in enumerate(counts) if is_count}


def _is_one_row(part: Select, keys: Sequence[Expr]) -> bool:
    """Say whether the rows of a subquery that agree in some keys are one at most, by keys that are proved."""
    items = tuple(replace(item, source=replace(item.source, keys=_keys(item.source))) for item in part.items)
    known = facts_in(part.items, part.predicate).not_null | _asked_not_null(part.predicate)
    fixed = {*known} & {key.column for key in keys}
    return all(functional_closure(items, part.predicate, Classes.of(part.predicate), fixed)[1])


def _keys(source: Source) -> tuple[frozenset[int], ...]:
    rows = _rows(source)
    if rows is None:
        return ()
    return tuple(key for key in source.keys if rows.has_key({rows.names[place] for place in key}))


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
