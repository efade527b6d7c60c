"""Whose rows these are: one owner for every row of a block, or a refusal (soundness.md 1.10 and 1.12).

House rules:

1. An identity is a key (table, column) that the engine holds unique in a private table: a value of it has
   one owner, whatever the database holds. Two sources are one person's when columns of the same identity
   are equal in every row, by a printed equality. Proof of I1: each source's rows have one owner each, the
   owner is a function of the identity's value, so equal values mean one owner; a row of the block is made
   of rows of that one owner and of public rows.
2. The owner is a column that holds the unit: in every table whose own row says it these are values of one
   identity (soundness.md 1.26). Where no source has one, the path of declared foreign
   keys is joined, one enforced unique key after the other; rows that it does not reach are dropped.
3. What counts as an equality, and what enforced keys make of it, is `functional_dependencies`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...errors import Position, Refusal
from ...relation.catalog import HIDDEN, Catalog, Column, Enforced, Table, Unit
from ...relation.expressions import Call, Expr, Field, fields_of
from ...relation.types import BOOLEAN
from .functional_dependencies import Classes, classes_of, equalities, functional_closure
from .growth import Grown, grown
from .rows import Identity, Item, OwnedRows, PrivateBlock, Source, TableSource, columns_of, fields_in

__all__ = [
    "MAX_CONTRIBUTION",
    "are_linked",
    "held",
    "links_of",
    "path_begins",
    "refuse_different_owners",
    "resolve_owner",
    "scan_source",
    "sum_of_bounds",
    "without_path",
]  # fmt: skip

_OWN_ROWS = "that asks about each person's own rows alone, which is another question"

MAX_SOURCES = 32
"""Most sources of one block, an EXISTS counted as one."""
MAX_CONTRIBUTION = 2**22
"""Most that the bounds of joined sources multiply to; exact sums are sized by it."""


# --- sources -------------------------------------------------------------------------------------------


def scan_source(table: Table, catalog: Catalog) -> TableSource:
    """Return a table as a source: its declared columns and, when it is private, its owner's column."""
    columns, shown = list(table.columns), [column.name for column in table.columns]
    if table.unit is not None:
        columns.append(_unit_column(table))
        shown.append(table.unit.column)
    return _table_source(table, catalog, columns, shown)


def _unit_column(table: Table) -> Column:
    unit = table.unit
    assert unit is not None
    declared = table.column(unit.column)
    if declared is not None:
        return declared
    return Column(unit.column, unit.type, Enforced(not_null=unit.is_not_null))


def _table_source(table: Table, catalog: Catalog, columns: list[Column], shown: list[str]) -> TableSource:
    identities: dict[int, Identity] = {}
    total = rows = groups = None
    if table.unit is not None:
        unique = {key[0] for key in table.keys if len(key) == 1}
        unique |= _referenced(table, catalog)
        for index, name in enumerate(shown):
            if name == table.unit.column:
                # A parent's key is the same value: rows of child and parent can be equal in it.
                identities[index] = _first_of(table.unit.references or (table.name, name), catalog)
            elif name in unique:
                identities[index] = (table.name, name)
        total, rows, groups = _declared(table.unit)
    known = [*table.keys, *((name,) for name in _referenced(table, catalog))]
    keys = {frozenset(shown.index(name) for name in key) for key in known if set(key) <= set(shown)}
    marked = (
        replace(column, is_personal=index in identities, name="" if name in table.unnamed else column.name)
        for index, (column, name) in enumerate(zip(columns, shown, strict=True))
    )
    return TableSource(
        table.name, tuple(marked), tuple(sorted(keys, key=sorted)), identities, rows, groups, total, table,
        tuple(shown), label=table.label, noted=table.noted,
    )  # fmt: skip


def _declared(unit: Unit) -> tuple[int | None, int | None, int | None]:
    """Return R, M and C of a unit: what is not declared is R, and R is no more than the other two allow."""
    if unit.max_rows is None:
        return None, None, None
    rows, groups = unit.max_rows_per_group or unit.max_rows, unit.max_groups or unit.max_rows
    return min(unit.max_rows, rows * groups), rows, groups


def _first_of(identity: Identity, catalog: Catalog) -> Identity:
    """Return the key that a key's own values come from: a referenced unit column holds its parent's key.

    A unit column that refers to nothing holds the unit itself, which is one identity for all tables.
    """
    unit = catalog.tables[identity[0]].unit
    while unit is not None and unit.column == identity[1]:
        if unit.references is None:
            return _root_identity(catalog)
        identity = unit.references
        unit = catalog.tables[identity[0]].unit
    return identity


def _referenced(table: Table, catalog: Catalog) -> set[str]:
    """Return the columns that units of other tables refer to: the engine enforces them to be unique.

    Not the column of the unit itself, of which a table may have many rows (soundness.md 1.26).
    """
    units = [other.unit for other in catalog.tables.values() if other.unit is not None]
    held = table.unit.column if table.unit is not None and table.unit.references is None else None
    names = {unit.references[1] for unit in units if unit.references and unit.references[0] == table.name}
    return names - {held}


def _root_identity(catalog: Catalog) -> Identity:
    """Return the identity of the unit: of all tables whose rows say it themselves, the first one's column."""
    for table in catalog.tables.values():
        if table.unit is not None and table.unit.references is None:
            return table.name, table.unit.column
    raise AssertionError("a private table leads to a unit")


def are_linked(left: tuple[Item, ...], right: Item, on: tuple[Expr, ...]) -> bool:
    """Say whether matched rows of `right` are of the owner of a private source of `left`, by `on` alone."""
    start = len(columns_of(left))
    owners = {
        begin + index: identity
        for item, begin in fields_in(left) if item.kind != "mark"
        for index, identity in item.source.identities.items()
    }  # fmt: skip
    for a, b in equalities(on):
        first, second = min(a, b), max(a, b)
        known = owners.get(first)
        if first < start <= second and known and known == right.source.identities.get(second - start):
            return True
    return False


# --- the owner -------------------------------------------------------------------------------------------


def resolve_owner(private: PrivateBlock, catalog: Catalog, position: Position | None) -> OwnedRows:
    """Return the block's rows with their owner, and what the engine's keys say of them.

    Raises:
        Refusal: PV003 when the sources are not of one owner.
    """
    root = _root_identity(catalog)
    items = private.items
    if len(items) > MAX_SOURCES:
        raise Refusal(
            f"{len(items)} tables and subqueries are joined here; at most {MAX_SOURCES} are", sqlstate="54001",
            position=position, hint="aggregate some of them first, in a subquery",
        )  # fmt: skip
    classes = classes_of(items, private.predicate, root)
    _check_linked(items, classes, position, catalog)  # from here on all sources are one owner's
    items, links, owner = _with_owner(items, catalog)
    predicate = tuple(sorted(dict.fromkeys((*private.predicate, *links)), key=repr))
    classes = classes_of(items, predicate, root)
    width = len(columns_of(items))
    units = frozenset(i for i in range(width) if classes.find(i) == classes.find(owner.index))
    fixed, at_most_one = functional_closure(items, predicate, classes, set(units))
    bounds = _contribution(items, predicate, classes, fixed, at_most_one)
    # Where every source has one row for an owner, so has the block: R = M = C = 1 without an operator (law L9).
    bounds = _Bounds(1, 1, 1, "") if all(at_most_one) else bounds
    held_ = held(items, predicate, catalog, position)
    return OwnedRows(
        held_.items, len(private.items), predicate, owner, root, units, frozenset(fixed), all(at_most_one), bounds.rows,
        bounds.groups, bounds.in_all, bounds.undeclared, held_.reach, held_.works,
    )  # fmt: skip


def held(
    items: tuple[Item, ...], predicate: tuple[Expr, ...], catalog: Catalog, position: Position | None
) -> Grown:
    """Return sources joined, those cut whose rows the join multiplies. Raises as `growth.grown`."""
    root = _root_identity(catalog)
    return grown(items, predicate, root, lambda source: _with_owner((Item(source),), catalog), position)


def _with_owner(
    items: tuple[Item, ...], catalog: Catalog
) -> tuple[tuple[Item, ...], tuple[Expr, ...], Field]:
    """Return sources with the path to their owner (house rule 2), the path's equalities, and the owner."""
    root = _root_identity(catalog)
    links: list[Expr] = []
    while (owner := _owner_field(items, root)) is None:
        items, link = _join_parent(items, catalog)
        links.append(link)
    return items, tuple(links), owner


def _check_linked(
    items: tuple[Item, ...], classes: Classes, position: Position | None, catalog: Catalog
) -> None:
    """Refuse inner sources of two owners. Sources of the other kinds were held to their ON when joined."""
    private = [
        (item, start) for item, start in fields_in(items) if item.kind == "inner" and item.source.is_private
    ]
    links = [
        # Equal columns of *different* keys say nothing of owners: the key is part of what has to match (1.12).
        {(classes.find(start + index), known) for index, known in item.source.identities.items()}
        for item, start in private
    ]
    reached, left = {0}, set(range(1, len(private)))
    while left:
        more = {i for i in left if any(links[i] & links[j] for j in reached)}
        if not more:
            other = private[min(left)][0]
            raise refuse_different_owners(
                private[0][0].source, other.source, other.position or position, catalog
            )
        reached |= more
        left -= more


def refuse_different_owners(
    left: Source, right: Source, position: Position | None, catalog: Catalog, word: str = ""
) -> Refusal:
    """Return the refusal of a join, or of a subquery (`word`), that brings rows of two people together."""
    said = (
        f'this join of "{left.said or "…"}" and "{right.said or "…"}" could put rows of two people together'
    )
    if word in ("EXISTS", "IN", "scalar"):
        kind = "this subquery" if word == "scalar" else f"this {word}"
        said = f'{kind} could look at rows of "{right.said or "…"}" that are other people\'s'
    return Refusal(said, sqlstate="PV003", position=position, hint=_link_between(left, right, catalog))


"""What such an equality does, for those who would take it for a repair."""


def _link_between(left: Source, right: Source, catalog: Catalog) -> str:
    """Return what would make two sources one person's, in the columns' own names."""
    for index, known in left.identities.items():
        for other, same in right.identities.items():
            names = left.columns[index].name, right.columns[other].name
            if HIDDEN in (left.said, right.said):
                continue
            if known == same and all(names) and left.name == right.name:
                return f"add an equality of {names[0]} in both, joined by AND; {_OWN_ROWS}"
            if known == same and all(names):
                pair = f"{left.said or '…'}.{names[0]} = {right.said or '…'}.{names[1]}"
                return f"add {pair}, joined by AND; {_OWN_ROWS}"
    root = _root_identity(catalog)
    for source in (left, right):
        for index, (name, key) in source.identities.items():
            column = source.columns[index].name
            if (name, key) == root and (key,) not in catalog.tables[name].keys:
                continue  # it holds many rows of a person, and leads no further
            parent = catalog.shown.get(name)
            if source.said == HIDDEN:
                continue
            if column and name != source.name and isinstance(parent, Table) and key not in parent.unnamed:
                return f"join {name} too: {source.said}.{column} = {name}.{key}"
    return "add an equality on one person's key, joined by AND"


def _owner_field(items: tuple[Item, ...], root: Identity) -> Field | None:
    for item, start in fields_in(items):
        if item.kind == "inner":  # an outer source's owner is NULL where nothing matches
            for index, known in item.source.identities.items():
                if known == root:
                    column = item.columns[index]
                    return Field(column.type, start + index, column.name)
    return None


def _join_parent(items: tuple[Item, ...], catalog: Catalog) -> tuple[tuple[Item, ...], Expr]:
    """Join the next table of the owner's path: of the last source's unit, which no source leads further than."""
    width = len(columns_of(items))
    for item, start in reversed(fields_in(items)):
        if item.kind != "inner" or not item.source.is_private:
            continue
        for index, (name, key) in sorted(item.source.identities.items()):
            parent = catalog.tables[name]
            if isinstance(item.source, TableSource) and item.source.table.path == parent.path:
                continue  # a key of the table itself: its unit leads on
            child = item.columns[index]
            # The parent's key is unique, so the join copies no row; a row without a parent is nobody's and drops out.
            columns = [Column(key, child.type, Enforced(not_null=True)), _unit_column(parent)]
            assert parent.unit is not None
            source = _table_source(parent, catalog, columns, [key, parent.unit.column])
            link = Call(BOOLEAN, "eq", (Field(child.type, start + index), Field(child.type, width)))
            return (*items, Item(replace(source, name="", label="", noted=""))), link
    raise AssertionError("a private source leads to the root")


def without_path(rows: OwnedRows) -> tuple[tuple[Item, ...], tuple[Expr, ...]]:
    """Return a block's items and predicate for those who do not ask whose rows they are.

    The tables that were added to find the owner are left out where each row reaches one row of each, by the
    engine's own NOT NULL, foreign keys and unique keys: a row that reaches none is nobody's and must not count.
    """
    kept = rows.items[: rows.written]
    links = links_of(rows, kept)
    assert isinstance(rows.owner, Field)
    owned = rows.columns[rows.owner.index].enforced.not_null
    if owned and all(
        _is_held(rows, item, start, links) for item, start in fields_in(rows.items)[rows.written :]
    ):
        return kept, tuple(term for term in rows.predicate if term not in links)
    return rows.items, rows.predicate


def links_of(rows: OwnedRows, items: tuple[Item, ...]) -> tuple[Expr, ...]:
    """Return the terms that join the path to the owner, which stands after `items`."""
    width = len(columns_of(items))
    return tuple(term for term in rows.predicate if any(index >= width for index in fields_of(term)))


def path_begins(rows: OwnedRows, items: tuple[Item, ...]) -> frozenset[int]:
    """Return the columns of `items` that the path to the owner begins at."""
    width = len(columns_of(items))
    return frozenset(index for index in fields_of(*links_of(rows, items)) if index < width)


def _is_held(rows: OwnedRows, parent: Item, start: int, links: tuple[Expr, ...]) -> bool:
    """Say whether every row reaches the parent's table: over a column NOT NULL that is an enforced foreign key."""
    (child,) = (min(columns) for columns in map(fields_of, links) if max(columns) == start)
    placed = fields_in(rows.items)
    item, first = next((item, first) for item, first in placed if first <= child < first + len(item.columns))
    assert isinstance(parent.source, TableSource)
    unit = item.source.table.unit if isinstance(item.source, TableSource) else None
    if unit is None or item.kind != "inner" or any(other.kind == "full" for other in rows.items):
        return False
    assert isinstance(item.source, TableSource)
    is_unit = item.source.shown[child - first] == unit.column
    leads = unit.references == (parent.source.table.name, parent.source.shown[0])
    return is_unit and leads and unit.is_held and unit.is_not_null


@dataclass(frozen=True)
class _Bounds:
    """M, C and the rows of a person in all; None where `undeclared` (a source's name) declares none."""

    rows: int | None
    groups: int | None
    in_all: int | None
    undeclared: str


def _contribution(
    items: tuple[Item, ...],
    predicate: tuple[Expr, ...],
    classes: Classes,
    fixed: set[int],
    at_most_one: list[bool],
) -> _Bounds:
    """Return the contribution bounds of a block.

    The product over the private sources that no other source determines: a person's rows are at most
    pairs of theirs. Public sources that copy rows change nothing: the bounds are enforced after the join.
    """
    own = [set(range(start, start + len(item.columns))) for item, start in fields_in(items)]
    counts = [item.source.is_private and item.kind != "mark" for item in items]
    chosen: list[Source] = []
    left = {place for place, is_counted in enumerate(counts) if is_counted}
    while open_ := sorted(place for place in left if not at_most_one[place]):
        trials = {place: functional_closure(items, predicate, classes, fixed | own[place]) for place in open_}
        size = [(sum(trials[place][1]), items[place].source.max_rows_per_group or 0) for place in open_]
        best = open_[size.index(max(size))]
        chosen.append(items[best].source)
        fixed, at_most_one = trials[best]
        left.remove(best)
    chosen = chosen or [item.source for item in items if item.source.is_private][:1]
    rows = _product(source.max_rows_per_group for source in chosen)
    groups = _product(source.max_groups for source in chosen)
    in_all = _product(source.max_rows for source in chosen)
    lacking = [s.said for s in chosen if s.max_rows is None]
    return _Bounds(rows, groups, in_all, lacking[0] if lacking else "")


def _product(bounds: Iterable[int | None]) -> int | None:
    """Return the product, at most MAX_CONTRIBUTION; None when one is not declared."""
    product = 1
    for bound in bounds:
        if bound is None:
            return None
        product = min(product * bound, MAX_CONTRIBUTION)
    return product


def sum_of_bounds(bounds: Iterable[int | None]) -> int | None:
    """Return the sum, at most MAX_CONTRIBUTION; None when one is not declared."""
    total = 0
    for bound in bounds:
        if bound is None:
            return None
        total = min(total + bound, MAX_CONTRIBUTION)
    return total
