"""Whose rows these are: one owner for every row of a block, or a refusal (soundness.md 1.10 and 1.12); or two (1.38).

House rules:

1. An identity is a key (table, columns) that the engine holds unique in a private table: a value of it has
   one owner, whatever the database holds. Two sources are one person's when all columns of the same identity
   are equal in every row, by printed equalities. Proof of I1: each source's rows have one owner each, the
   owner is a function of the identity's value, so equal values mean one owner; a row of the block is made
   of rows of that one owner and of public rows.
2. The owner is the columns that hold the unit: in every table whose own row says it these are values of one
   identity (soundness.md 1.26, 1.29). Where no source has one, the path of declared foreign
   keys is joined, one enforced unique key after the other; rows that it does not reach are dropped.
3. What counts as an equality, and what enforced keys make of it, is `functional_dependencies`.
4. Where each row is a unit by itself no column holds it, and nothing that is equal makes two rows one unit's. So such
   rows stand alone among private ones, with public rows that keys hold to one for each (soundness.md 1.33).

Rows of two people are a row of one, joined with what it points at, which is another's (soundness.md 1.38).

House rules of these (`find_lookup`):

1. A declared reference (`also`) is read in one way alone: all of its columns equal to the key that they refer to, by
   printed AND terms. Any other reading would tell how many rows point at somebody: it is that of the key, of a row that
   `join.with_lookups` joins where the statement does not, or it is refused.
2. Rows are kept in this order: the first R_a of each owner of the source that points, as a function of that
   owner's own rows; the joins and filters, row by row; the first R_b of each person who is pointed at. No filter that
   reads what is looked up stands before the first of these.
3. Each row of the source that points gives one joined row at most: all other sources are determined by it.
4. What is not a rule here is refused, by name. Nothing but a release takes such rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from ...errors import Position, Refusal
from ...records import dataclass
from ...relation.aggregates import AGGREGATES, Asks
from ...relation.catalog import HIDDEN, Also, Catalog, Column, Enforced, Table, Unit, quoted_names
from ...relation.expressions import Call, Expr, Field, Literal, fields_of, walk
from ...relation.relations import AggregateCall, Scan
from ...relation.types import BIGINT, BOOLEAN, Kind, SqlType
from .functional_dependencies import Classes, classes_of, equalities, functional_closure
from .growth import Grown, cut_before, grown
from .rows import (
    LINEAR,
    Declarations,
    Identity,
    Item,
    Lookup,
    OwnedRows,
    Placed,
    PrivateBlock,
    Reach,
    Source,
    columns_of,
    fields_in,
    source_at,
    whole,
)

_OWN_ROWS = "that asks about each person's own rows alone, which is another question"

MAX_SOURCES = 32
"""Most sources of one block, an EXISTS counted as one."""
MAX_CONTRIBUTION = 2**22
"""Most that the bounds of joined sources multiply to; exact sums are sized by it."""


# --- sources -------------------------------------------------------------------------------------------


def scan_source(table: Table, catalog: Catalog) -> Source:
    """Return a table as a source: its declared columns and, when it is private, its owner's columns."""
    columns = [*table.columns, *table.owner_columns]
    source = _table_source(table, catalog, columns, [column.name for column in columns])
    declares = _declared_anew(table, catalog)
    return replace(source, declares=declares) if declares else source


def pointed_source(table: Table, key: tuple[str, ...], types: Sequence[SqlType], catalog: Catalog) -> Source:
    """Return a private table as `scan_source`, by a key of it that the engine holds unique and not NULL, declared or
    not."""
    columns = [*table.columns, *table.owner_columns]
    known = {column.name for column in columns}
    added = [
        Column(name, type_, Enforced(not_null=True))
        for name, type_ in zip(key, types, strict=True)
        if name not in known
    ]
    if not added:
        return scan_source(table, catalog)
    columns += added
    held = replace(table, referred=tuple(dict.fromkeys((*table.referred, tuple(sorted(key))))))
    return _table_source(held, catalog, columns, [column.name for column in columns])


def scanned(node: Scan, catalog: Catalog) -> PrivateBlock:
    """Return a table's rows as a block."""
    return whole(scan_source(node.table, catalog), (column.name for column in node.columns))


def within_range(node: Scan) -> tuple[Expr, ...]:
    """Return the tests that a row's unit is within the range that is read of its table; () where all are.

    They are a filter by what one person has once: it leaves a person's rows in the table, or all of them out
    (soundness.md 1.42).
    """
    unit = node.table.unit
    if unit is None or unit.range is None:
        return ()
    (type_,) = unit.types
    owner = Field(type_, len(node.table.columns), unit.columns[0])
    return tuple(
        Call(BOOLEAN, function, (owner, Literal(BIGINT, end)))
        for function, end in zip(("ge", "le"), unit.range, strict=True)
    )


def _declared_anew(table: Table, catalog: Catalog) -> Declarations:
    """Return what a view declares of a table's columns, also of those of which the policy's table says nothing."""
    own = {column.name: _said_of(column) for column in catalog.tables[table.name].columns}
    said = [_said_of(column) for column in table.columns]
    return tuple(
        (index, *found)
        for index, (column, found) in enumerate(zip(table.columns, said, strict=True))
        if found != own.get(column.name, (None, None, None, None))
    )


def _said_of(column: Column) -> tuple[object, object, object, object]:
    return column.bounds, column.step, column.values, column.max_length


def _table_source(table: Table, catalog: Catalog, columns: list[Column], shown: list[str]) -> Source:
    identities: dict[tuple[int, ...], Identity] = {}
    total = rows = groups = None
    known = [*table.keys, *table.referred]
    is_row = table.unit is not None and table.unit.is_row
    if is_row:
        total = rows = groups = 1
    elif table.unit is not None:
        for key in known:
            names = tuple(sorted(key))
            identities |= dict.fromkeys(_places(names, shown), (table.name, names))
        # A parent's key is the same value: rows of child and parent can be equal in it.
        first, names = identity_of(table, catalog)
        own = {frozenset(places) for places in _places(names, shown)}
        identities = {places: one for places, one in identities.items() if frozenset(places) not in own}
        identities |= dict.fromkeys(_places(names, shown), first)
        total, rows, groups = _declared(table.unit)
    keys = {frozenset(shown.index(name) for name in key) for key in known if set(key) <= set(shown)}
    telling = {index for key in keys for index in key if is_row and len(key) == 1}
    telling |= {index for places in identities for index in places if len(places) == 1}
    marked = (
        replace(column, is_personal=index in telling, name="" if name in table.unnamed else column.name)
        for index, (column, name) in enumerate(zip(columns, shown, strict=True))
    )
    return Source(
        table.name, tuple(marked), tuple(sorted(keys, key=sorted)), dict(sorted(identities.items())), rows, groups,
        total, table=table, shown=tuple(shown), label=table.label, noted=table.noted,
        row_tables=frozenset({table.name} if is_row else ()),
    )  # fmt: skip


def _places(names: tuple[str, ...], shown: list[str]) -> list[tuple[int, ...]]:
    """Return where columns stand: as a statement names them, and where they stand for the owner."""
    found = [[index for index, name in enumerate(shown) if name == wanted] for wanted in names]
    if not all(found):
        return []
    return list(dict.fromkeys(tuple(places[end] for places in found) for end in (0, -1)))


def _declared(unit: Unit) -> tuple[int | None, int | None, int | None]:
    """Return R, M and C of a unit: what is not declared is R, and R is no more than the other two allow."""
    if unit.max_rows is None:
        return None, None, None
    rows, groups = unit.max_rows_per_group or unit.max_rows, unit.max_groups or unit.max_rows
    return min(unit.max_rows, rows * groups), rows, groups


def _first_of(key: Identity, columns: tuple[str, ...], catalog: Catalog) -> tuple[Identity, tuple[str, ...]]:
    """Return the key that the values of a key's columns come from, and `columns`, which have them, in its order.

    Referenced unit columns hold their parent's key. Unit columns that refer to nothing hold the unit itself, which
    is one identity for all tables.
    """
    unit = catalog.tables[key[0]].unit
    while unit is not None and set(unit.columns) == set(key[1]):
        own = dict(zip(key[1], columns, strict=True))
        columns = tuple(own[name] for name in unit.columns)
        if unit.references is None:
            return catalog.root, columns
        key = unit.references
        unit = catalog.tables[key[0]].unit
    own = dict(zip(key[1], columns, strict=True))
    return (key[0], tuple(sorted(own))), tuple(own[name] for name in sorted(own))


def identity_of(table: Table, catalog: Catalog) -> tuple[Identity, tuple[str, ...]]:
    """Return the key whose values a private table's unit columns hold, and these columns in its order."""
    assert table.unit is not None
    unit = table.unit
    return _first_of(unit.references or (table.name, unit.columns), unit.columns, catalog)


def are_linked(left: tuple[Item, ...], right: Item, on: tuple[Expr, ...]) -> bool:
    """Say whether matched rows of `right` are of the owner of a private source of `left`, by `on` alone."""
    start, equal = len(columns_of(left)), {frozenset(pair) for pair in equalities(on)}
    return any(
        all({begin + a, start + b} in equal for a, b in zip(places, others, strict=True))
        for item, begin in fields_in(left) if item.kind != "mark"
        for places, identity in item.source.identities.items()
        for others in right.source.holds(identity)
    )  # fmt: skip


# --- the owner -------------------------------------------------------------------------------------------


def resolve_owner(
    private: PrivateBlock,
    catalog: Catalog,
    position: Position | None,
    read: Iterable[Expr] | None = None,
    *,
    of_two: bool = False,
    is_grouped: bool = False,
) -> OwnedRows:
    """Return the block's rows with their owner, and what the engine's keys say of them.

    `read`: what is computed of the rows; None: the block's outputs. `of_two`: rows of two people are taken, as by a
    release (`Lookup`). `is_grouped`: public rows without a match are left out by who asks (`unmatched`).

    Raises:
        Refusal: PV003 when the sources are not of one owner, or some rows have none.
    """
    items = private.items
    if private.unmatched is not None and not is_grouped:
        raise keeps_public_rows(private.unmatched.position or position)
    check_references(items, private.predicate, private.outputs if read is None else read, position)
    if len(items) > MAX_SOURCES:
        raise Refusal(
            f"{len(items)} tables and subqueries are joined here; at most {MAX_SOURCES} are", sqlstate="54001",
            position=position, hint="aggregate some of them first, in a subquery",
        )  # fmt: skip
    if any(item.source.row_tables for item in items):
        return _each_row(private, catalog, position)
    root = catalog.root
    classes = classes_of(items, private.predicate, root)
    groups = _owners_of(items, classes)
    if len(groups) > 1:
        found = find_lookup(items, private.predicate, classes, groups, position)
        if found is None or not of_two:
            left, right = items[groups[0][0]], items[groups[1][0]]
            said = undeclared(items, private.predicate, groups) if found is None else None
            raise refuse_different_owners(
                left.source, right.source, right.position or position, catalog, hints=said
            )
        return _of_two(private, *found, catalog, position)
    # from here on all sources are one owner's
    items, links, owner = _with_owner(items, catalog)
    predicate = tuple(sorted(dict.fromkeys((*private.predicate, *links)), key=repr))
    classes = classes_of(items, predicate, root)
    width = len(columns_of(items))
    units = tuple(
        frozenset(i for i in range(width) if classes.find(i) == classes.find(part.index)) for part in owner
    )
    fixed, at_most_one = functional_closure(items, predicate, classes, set().union(*units))
    bounds = _contribution(items, predicate, classes, fixed, at_most_one)
    # Where every source has one row for an owner, so has the block: R = M = C = 1 without an operator (law L9).
    bounds = _Bounds(1, 1, 1, "") if all(at_most_one) else bounds
    is_one_row = len(items) == 1 and all(at_most_one)  # beside which nothing grows
    held_ = Grown(items, Reach(1, ()), ()) if is_one_row else held(items, predicate, catalog, position)
    return OwnedRows(
        items=held_.items, written=len(private.items), predicate=predicate, owner=owner, root=root, units=units,
        fixed_columns=frozenset(fixed), is_single=all(at_most_one), max_rows_per_group=bounds.rows,
        max_groups=bounds.groups, max_rows=bounds.in_all, undeclared=bounds.undeclared, reach=held_.reach,
        works=held_.works, told=bounds.told, is_replaced=catalog.is_replaced,
    )  # fmt: skip


def keeps_public_rows(position: Position | None) -> Refusal:
    """Return the refusal of an outer join that keeps rows that nobody owns."""
    return Refusal(
        "this outer join keeps rows that nobody owns, and their absence would tell who is there",
        sqlstate="PV003", position=position,
        hint="group by the public columns and take the private table's, as in COUNT(o.order_id); or use an inner join",
    )  # fmt: skip


_NO_COLUMNS: Identity = ("", ())
"""What stands for the key of a unit that is a row: no source holds it."""


def _each_row(private: PrivateBlock, catalog: Catalog, position: Position | None) -> OwnedRows:
    """Return a block of rows that are units by themselves: of one such source, and public rows that copy none of it.

    Raises:
        Refusal: PV003 where another private source stands beside it, or public rows may copy a row.
    """
    items = private.items
    owned = [placed for placed in fields_in(items) if placed.item.source.is_private]
    if len(owned) > 1:
        one, other = owned[0].item, owned[1].item
        raise refuse_different_owners(one.source, other.source, other.position or position, catalog)
    row, root = owned[0].item, _NO_COLUMNS
    assert row.kind == "inner", "a row that is a unit matches no other private row"
    predicate = tuple(sorted(dict.fromkeys(private.predicate), key=repr))
    own = {*owned[0].own}
    fixed, at_most_one = functional_closure(items, predicate, classes_of(items, predicate, root), own)
    for item, has_one in zip(items, at_most_one, strict=True):
        if item is not row and not has_one:
            raise Refusal(
                f'this join could copy a row of "{row.source.said or "…"}", where each row is one unit and counts once',
                sqlstate="PV003", position=item.position or position,
                hint=f'join "{item.source.said or "…"}" by all columns of a key of it that is declared or enforced, or '
                "aggregate it by them first, in a subquery",
            )  # fmt: skip
    held_ = grown(items, predicate, root, lambda source: ((Item(source),), (), ()), position)
    return OwnedRows(
        items=held_.items, written=len(items), predicate=predicate, owner=(), root=root, units=(),
        fixed_columns=frozenset(fixed), is_single=True, max_rows_per_group=1, max_groups=1, max_rows=1, undeclared="",
        reach=held_.reach, works=held_.works, told=(),
    )  # fmt: skip


def held(
    items: tuple[Item, ...], predicate: tuple[Expr, ...], catalog: Catalog, position: Position | None
) -> Grown:
    """Return sources joined, those cut whose rows the join multiplies. Raises as `growth.grown`."""
    root = catalog.root
    return grown(items, predicate, root, lambda source: _with_owner((Item(source),), catalog), position)


def _with_owner(
    items: tuple[Item, ...], catalog: Catalog, of: set[int] | None = None
) -> tuple[tuple[Item, ...], tuple[Expr, ...], tuple[Field, ...]]:
    """Return sources with the path to their owner (house rule 2), the path's equalities, and the owner.

    `of`: the places of those whose owner is asked for; None: all are one owner's.
    """
    root, within = catalog.root, set(range(len(items))) if of is None else set(of)
    links: list[Expr] = []
    while (owner := _owner_fields(items, root, within)) is None:
        items, more = _join_parent(items, catalog, within)
        within.add(len(items) - 1)
        links += more
    return items, tuple(links), owner


def _owners_of(items: tuple[Item, ...], classes: Classes) -> list[list[int]]:
    """Return the inner private sources, by place: together those that are one owner's, by equal identities.

    Sources of the other kinds were held to their ON when joined.
    """
    placed = fields_in(items)
    left = [
        place for place, (item, _) in enumerate(placed) if item.kind == "inner" and item.source.is_private
    ]
    # Equal columns of *different* keys say nothing of owners: the key is part of what has to match (1.12).
    links = {
        place: {
            (tuple(classes.find(placed[place].start + index) for index in places), known)
            for places, known in items[place].source.identities.items()
        }
        for place in left
    }
    groups: list[list[int]] = []
    while left:
        group = [left.pop(0)]
        while more := [i for i in left if any(links[i] & links[j] for j in group)]:
            group += more
            left = [i for i in left if i not in more]
        groups.append(sorted(group))
    return groups


def _of_two(
    private: PrivateBlock, lookup: Lookup, pointed: Sequence[int], catalog: Catalog, position: Position | None
) -> OwnedRows:
    """Return rows of two people: each owner's first rows, or numbered ones, before what they point at is looked up
    (1.38).

    `pointed`: the sources of the one who is pointed at, whose the rows are from there on.
    """
    items = list(private.items)
    own = items[lookup.place]
    items[lookup.place] = replace(own, source=replace(own.source, max_rows=lookup.first))
    cut = cut_before(
        tuple(items),
        lookup.place,
        private.predicate,
        lambda one: _with_owner((Item(one),), catalog),
        position,
    )
    if lookup.is_spread and cut.source.number is None:
        start = fields_in(private.items)[lookup.place].start
        cut = replace(cut, source=replace(cut.source, by=lookup.key[0].index - start))
    items[lookup.place] = cut
    whole, links, owner = _with_owner(tuple(items), catalog, set(pointed))
    return OwnedRows(
        items=whole, written=len(items), predicate=tuple(sorted(dict.fromkeys((*private.predicate, *links)), key=repr)),
        owner=owner, root=catalog.root, units=(), fixed_columns=frozenset(), is_single=False,
        max_rows_per_group=lookup.apart, max_groups=lookup.apart, max_rows=lookup.apart, undeclared="", reach=LINEAR,
        works=(), told=(), lookup=lookup, is_replaced=catalog.is_replaced,
    )  # fmt: skip


def refuse_different_owners(
    left: Source,
    right: Source,
    position: Position | None,
    catalog: Catalog,
    word: str = "",
    hints: tuple[str, str] | None = None,
) -> Refusal:
    """Return the refusal of a join, or of a subquery (`word`), that brings rows of two people together.

    `hints`: for an analyst, and for the owner, where more is known than which keys there are.
    """
    said = (
        f'this join of "{left.said or "…"}" and "{right.said or "…"}" could put rows of two people together'
    )
    if word in ("EXISTS", "IN", "NOT IN", "scalar"):
        kind = "this subquery" if word == "scalar" else f"this {word}"
        said = f'{kind} could look at rows of "{right.said or "…"}" that are other people\'s'
    for source in (left, right):
        if source.row_tables:
            hint = (
                f'each row of "{source.said or "…"}" is one unit, and nothing says which other rows are the same '
                "person's; aggregate both sides first, and join the results"
            )
            return Refusal(said, sqlstate="PV003", position=position, hint=hint)
    hint, owner_hint = hints or (_link_between(left, right, catalog, word), None)
    return Refusal(said, sqlstate="PV003", position=position, hint=hint, owner_hint=owner_hint)


def _link_between(left: Source, right: Source, catalog: Catalog, word: str) -> str:
    """Return what would make two sources one person's, in the columns' own names."""
    if hint := lookup_hint(left, right, word):
        return hint
    for places, known in left.identities.items():
        for others in right.holds(known):
            mine, theirs = _names(left, places), _names(right, others)
            if HIDDEN in (left.said, right.said):
                continue
            if all((*mine, *theirs)) and left.name == right.name:
                return f"add an equality of {' and of '.join(mine)} in both, joined by AND; {_OWN_ROWS}"
            if all((*mine, *theirs)):
                pairs = _pairs(left.said or "…", mine, right.said or "…", theirs)
                return f"add {pairs}, joined by AND; {_OWN_ROWS}"
    root = catalog.root
    for source in (left, right):
        for places, (name, key) in source.identities.items():
            columns = _names(source, places)
            if (name, key) == root and not any(set(key) == set(known) for known in catalog.tables[name].keys):
                continue  # it holds many rows of a person, and leads no further
            parent = catalog.shown.get(name)
            if source.said == HIDDEN or not isinstance(parent, Table):
                continue
            if all(columns) and name != source.name and not parent.unnamed.intersection(key):
                return f"join {name} too: {_pairs(source.said, columns, name, key)}"
    return "add an equality on one person's key, joined by AND"


def _names(source: Source, places: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(source.columns[index].name for index in places)


def _pairs(left: str, mine: tuple[str, ...], right: str, theirs: tuple[str, ...]) -> str:
    return " AND ".join(f"{left}.{a} = {right}.{b}" for a, b in zip(mine, theirs, strict=True))


def _owner_fields(
    items: tuple[Item, ...], root: Identity, within: Collection[int]
) -> tuple[Field, ...] | None:
    for place, (item, start) in enumerate(fields_in(items)):
        if item.kind == "inner" and place in within:  # an outer source's owner is NULL where nothing matches
            for places in item.source.holds(root):
                found = [(start + index, item.columns[index]) for index in places]
                return tuple(Field(column.type, index, column.name) for index, column in found)
    return None


def _join_parent(
    items: tuple[Item, ...], catalog: Catalog, within: Collection[int]
) -> tuple[tuple[Item, ...], list[Expr]]:
    """Join the next table of the owner's path: of the last source's unit, which no source leads further than."""
    width = len(columns_of(items))
    for place, (item, start) in reversed(list(enumerate(fields_in(items)))):
        if place not in within or item.kind != "inner" or not item.source.is_private:
            continue
        for places, (name, key) in sorted(item.source.identities.items()):
            parent = catalog.tables[name]
            if item.source.table is not None and item.source.table.name == parent.name:
                continue  # a key of the table itself: its unit leads on
            # The parent's key is unique, so the join copies no row; a row without a parent is nobody's and drops out.
            types = [item.columns[index].type for index in places]
            found = [
                Column(one, type_, Enforced(not_null=True)) for one, type_ in zip(key, types, strict=True)
            ]
            columns = [*found, *parent.owner_columns]
            source = _table_source(parent, catalog, columns, [column.name for column in columns])
            links: list[Expr] = [
                Call(BOOLEAN, "eq", (Field(type_, start + index), Field(type_, width + number)))
                for number, (index, type_) in enumerate(zip(places, types, strict=True))
            ]
            return (*items, Item(replace(source, name="", label="", noted="", is_on_way=True))), links
    raise AssertionError("a private source leads to the root")


def without_path(rows: OwnedRows) -> tuple[tuple[Item, ...], tuple[Expr, ...]]:
    """Return a block's items and predicate for those who do not ask whose rows they are.

    The tables that were added to find the owner are left out where each row reaches one row of each, by the
    engine's own NOT NULL, foreign keys and unique keys: a row that reaches none is nobody's and must not count.
    """
    kept, predicate = rows.asked
    links = links_of(rows, kept)
    owned = all(rows.columns[part.index].enforced.not_null for part in rows.owner)
    if owned and all(
        _is_held(rows, item, start, links) for item, start in fields_in(rows.items)[rows.written :]
    ):
        return kept, predicate
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
    """Say whether every row reaches the parent's table: over columns NOT NULL that are an enforced foreign key."""
    here = Placed(parent, start).own
    pairs = {min(columns): max(columns) - start for columns in map(fields_of, links) if max(columns) in here}
    item, first = source_at(rows.items, min(pairs))
    to = parent.source.table
    assert to is not None
    unit = None if item.source.table is None else item.source.table.unit
    if unit is None or item.kind != "inner" or any(other.kind == "full" for other in rows.items):
        return False
    if to.spans is not None:  # some rows of it are left out, and nothing says that others are not asked for
        return False
    shown, target = item.source.shown, parent.source
    leads = {
        shown[child - first]: target.shown[place]
        for child, place in pairs.items()
        if child - first < len(shown)
    }
    is_way = unit.references is not None and unit.references[0] == to.name
    is_whole = is_way and leads == dict(
        zip(unit.columns, unit.references[1] if unit.references else (), strict=True)
    )
    return is_whole and unit.is_held and unit.is_not_null


@dataclass(frozen=True)
class _Bounds:
    """M, C and the rows of a person in all; None where `undeclared` (a source's name) declares none.

    `told`: the places of the sources whose rows together tell all rows apart; none where a join makes up others.
    """

    rows: int | None
    groups: int | None
    in_all: int | None
    undeclared: str
    told: tuple[int, ...] = ()


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
    own = [{*placed.own} for placed in fields_in(items)]
    counts = [item.source.is_private and item.kind != "mark" for item in items]
    told: list[int] = []
    left = {place for place, is_counted in enumerate(counts) if is_counted}
    # Greedy, and sound in any order: what is chosen ends by fixing every other source, so a person's rows are
    # told apart by theirs, and whatever R comes out is enforced after the join. First what most others follow
    # from, so that few bounds are multiplied; of equals the one with more rows a group, so that less is cut.
    while open_ := sorted(place for place in left if not at_most_one[place]):
        trials = {place: functional_closure(items, predicate, classes, fixed | own[place]) for place in open_}
        size = [(sum(trials[place][1]), items[place].source.max_rows_per_group or 0) for place in open_]
        best = open_[size.index(max(size))]
        told.append(best)
        fixed, at_most_one = trials[best]
        left.remove(best)
    others = (has_one for place, has_one in enumerate(at_most_one) if place not in told)
    are_told = _joins_plainly(items, told) and all(others)
    chosen = [items[place].source for place in told] or [
        item.source for item in items if item.source.is_private
    ][:1]
    rows = _product(source.max_rows_per_group for source in chosen)
    groups = _product(source.max_groups for source in chosen)
    in_all = _product(source.max_rows for source in chosen)
    lacking = [s.said for s in chosen if s.max_rows is None]
    return _Bounds(
        rows, groups, in_all, lacking[0] if lacking else "", tuple(sorted(told)) if are_told else ()
    )


def _joins_plainly(items: tuple[Item, ...], told: Sequence[int]) -> bool:
    """Say whether no join makes up rows of other sources; of one source alone none of its own either."""
    kinds = {items[place].kind for place in told}
    return (len(told) > 1 or kinds == {"inner"}) and all(
        item.kind in ("inner", "left", "mark") for item in items
    )


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


def pointing(items: Sequence[Item]) -> Iterator[tuple[Placed, Also, tuple[int, ...]]]:
    """Yield the declared references of a block's tables, with the columns of the block that they stand in."""
    for placed in fields_in(items):
        table = placed.item.source.uncut.table
        if table is None or table.unit is None:
            continue
        for also in table.unit.also:
            shown = placed.item.source.uncut.shown
            if set(also.columns) <= set(shown):
                yield placed, also, tuple(placed.start + shown.index(name) for name in also.columns)


def targets(
    items: Sequence[Item], also: Also, own: tuple[int, ...], terms: Iterable[Expr]
) -> Iterator[tuple[int, frozenset[frozenset[int]]]]:
    """Yield the inner sources whose key a reference equals in every row, by place, with the equalities that say so."""
    said = {frozenset(pair) for pair in equalities(terms)}
    for place, placed in enumerate(fields_in(items)):
        source = placed.item.source
        table = source.uncut.table
        if placed.item.kind != "inner" or table is None or table.name != also.references[0]:
            continue
        shown = source.uncut.shown
        key = tuple(placed.start + shown.index(name) for name in also.references[1] if name in shown)
        pairs = frozenset(frozenset(pair) for pair in zip(own, key, strict=False))
        if len(key) == len(own) and all(len(pair) == 2 for pair in pairs) and pairs <= said:
            yield place, pairs


def check_references(
    items: Sequence[Item], predicate: Iterable[Expr], read: Iterable[Expr], position: Position | None
) -> None:
    """Refuse a declared reference that is read in another way than equal to its key (house rule 1).

    `read`: what is computed of the rows besides. Raises Refusal (PV003).
    """
    predicate, read = tuple(predicate), tuple(read)
    for placed, also, own in pointing(items):
        if (part := next(read_besides(items, predicate, read, placed, also, own), None)) is not None:
            is_joined = next(targets(items, also, own, predicate), None) is not None
            raise _only_equal(placed.item.source, also, part.position or position, is_joined=is_joined)


def read_besides(
    items: Sequence[Item],
    predicate: Iterable[Expr],
    read: Iterable[Expr],
    placed: Placed,
    also: Also,
    own: tuple[int, ...],
) -> Iterator[Expr]:
    """Yield where a block reads a declared reference of one of its sources, but as equal to its key."""
    terms = tuple(predicate)
    if placed.item.kind == "mark":  # its columns stand in its own ON alone
        seen: list[Expr] = list(placed.item.on)
    else:
        allowed = frozenset[frozenset[int]]()
        if placed.item.kind == "inner":
            allowed = allowed.union(*(pairs for _, pairs in targets(items, also, own, terms)))
        seen = [term for term in terms if not any(frozenset(pair) in allowed for pair in equalities((term,)))]
        seen += read
        for item, start in fields_in(items):
            seen += item.on if start > placed.start or item is placed.item else ()
    yield from (part for expr in seen for part in walk(expr) if part.column in own)


def _only_equal(source: Source, also: Also, position: Position | None, *, is_joined: bool) -> Refusal:
    parent, key = also.references
    pairs = " AND ".join(f"{source.said}.{a} = {parent}.{b}" for a, b in zip(also.columns, key, strict=True))
    points = "points at a person, and is" if len(also.columns) == 1 else "point at a person, and are"
    return Refusal(
        f'{quoted_names(also.columns)} of "{source.said}" {points} read in one way alone: equal to the key of {parent}',
        sqlstate="PV003", position=position,
        hint=f"count, without a step between, in the block that joins {parent}: its rows are of two people"
        if is_joined
        else f"write JOIN {parent} ON {pairs}, where rows of both people count; or leave the column out",
    )  # fmt: skip


def find_lookup(
    items: tuple[Item, ...],
    predicate: tuple[Expr, ...],
    classes: Classes,
    groups: Sequence[Sequence[int]],
    position: Position | None,
) -> tuple[Lookup, Sequence[int]] | None:
    """Return the lookup that joins rows of two people, and the places of the sources that are pointed at.

    `groups`: the private sources, by place, apart where nothing says that they are one owner's. None where no declared
    reference joins them. Raises Refusal: PV003 where it does, and a rule of 1.38 is missing.
    """
    placed = fields_in(items)
    found = [
        (at, also, place)
        for at, also, own in pointing(items)
        for place, _ in targets(items, also, own, predicate)
        if at.item.kind == "inner" and _group_of(groups, placed.index(at)) != _group_of(groups, place)
    ]
    if not found:
        return None
    if len(groups) > 2:
        raise Refusal(
            "these are rows of three people", sqlstate="PV003", position=position,
            hint="rows of two people are answered: leave one of the joins out, or aggregate first",
        )  # fmt: skip
    at, also, other = found[0]
    own = placed.index(at)
    _check_plain(items, at, position)
    fixed = {*at.own}
    _, single = functional_closure(items, predicate, classes, fixed)
    for place, (item, has_one) in enumerate(zip(items, single, strict=True)):
        if place != own and not has_one:
            raise Refusal(
                f'this join could copy a row of "{at.item.source.said}", which is of two people', sqlstate="PV003",
                position=item.position or position,
                hint=f'join "{item.source.said or "…"}" by all columns of a key of it that the database enforces',
            )  # fmt: skip
    table = at.item.source.table
    assert table is not None
    assert table.unit is not None
    first = 1 if table.unit.is_unique else at.item.source.max_rows
    if first is None:
        raise Refusal(
            f'no bounds are declared for "{at.item.source.said}", whose rows are of two people', sqlstate="PV102",
            position=position, hint="ask the owner for max_rows of that table",
            owner_hint=f"write max_rows in [tables.{table.name}]",
        )  # fmt: skip
    whose = _group_of(groups, other)
    key = _key_of(at)
    points = {name for one in table.unit.also for name in one.columns}
    is_spread = [one.type.kind for one in key] in _SPREAD and not points & {one.name for one in key}
    return Lookup(first, also.max_rows, own, key, other, is_spread), groups[whose]


_SPREAD = ([Kind.SMALLINT], [Kind.INTEGER], [Kind.BIGINT])


def _group_of(groups: Sequence[Sequence[int]], place: int) -> int:
    return next(number for number, group in enumerate(groups) if place in group)


def _key_of(placed: Placed) -> tuple[Field, ...]:
    """Return the columns of an enforced key that is never NULL; () where there is none."""
    columns = placed.item.columns
    keys = [sorted(key) for key in placed.item.source.keys if all(columns[i].enforced.not_null for i in key)]
    return tuple(Field(columns[i].type, placed.start + i, columns[i].name) for i in min(keys, default=[]))


def _check_plain(items: tuple[Item, ...], at: Placed, position: Position | None) -> None:
    """Refuse what has no rule beside rows of two people: anything but tables, joined as they are."""
    for item in items:
        said = ""
        if item.kind == "mark":
            said = "EXISTS and IN"
        elif item.source.table is None:
            said = "a subquery"
        elif item.kind != "inner" and item.source.is_private:
            said = "an outer join of people's rows"
        if said:
            raise Refusal(
                f'{said} beside rows of two people ("{at.item.source.said}") is not answered', sqlstate="PV003",
                position=item.position or position,
                hint="join tables by their keys, with JOIN; leave the subquery out, or ask it by itself",
            )  # fmt: skip


def lookup_hint(left: Source, right: Source, word: str = "") -> str | None:
    """Return how rows of two people are joined where a declared reference leads from one source to the other.

    `word`: of a subquery, whose rows are counted instead.
    """
    for one, other in ((left, right), (right, left)):
        table, target = one.uncut.table, other.uncut.table
        for also in () if table is None or table.unit is None or target is None else table.unit.also:
            if target is None or target.name != also.references[0]:
                continue
            if len(also.columns) == 1 and word in ("EXISTS", "IN"):
                column = f"{one.said}.{also.columns[0]}"
                return (
                    f"COUNT(DISTINCT {column}) is how many rows of {other.said} are pointed at; subtract it from "
                    "COUNT(*) for how many are not"
                )
            own, theirs = (one.said, other.said) if one.said != other.said else ("a", "b")
            pairs = zip(also.columns, also.references[1], strict=True)
            said = " AND ".join(f"{own}.{a} = {theirs}.{b}" for a, b in pairs)
            joined = f"join them by {said}" if own != "a" else f"join {one.said} a and {one.said} b by {said}"
            return f"{joined}, with JOIN, in the block that counts: then rows of both people count"
    return None


def undeclared(
    items: Sequence[Item], predicate: Iterable[Expr], groups: Sequence[Sequence[int]]
) -> tuple[str, str] | None:
    """Return what is said to an analyst, and to the owner, of a join by a foreign key from one person's rows to others,
    of which nobody declared that it points at somebody; None: it is no such join."""
    placed = fields_in(items)
    for pair in equalities(predicate):
        for own, other in (pair, pair[::-1]):
            ones = [next(at for at in placed if index in at.own) for index in (own, other)]
            one, parent = (at.item.source for at in ones)
            key = (other - ones[1].start,)
            if one.table is None or parent.table is None or own - ones[0].start in one.linking:
                continue
            places = [placed.index(at) for at in ones]
            apart = all(any(place in group for group in groups) for place in places)
            if not apart or _group_of(groups, places[0]) == _group_of(groups, places[1]):
                continue
            names = one.columns[own - ones[0].start].name, parent.columns[key[0]].name
            proved = one.table.proved
            if one.table.unit is not None and any(names[0] in also.columns for also in one.table.unit.also):
                continue
            is_led = proved is not None and any(
                found == ((names[0],), parent.table.place, (names[1],)) for found in proved.foreign_keys
            )
            if is_led and key in parent.identities and HIDDEN not in (one.said, parent.said):
                return (
                    f"nobody declared whom {one.said}.{names[0]} points at: rows of two people are answered where the "
                    "owner does",
                    f'write also = [{{ column = "{names[0]}", references = "{parent.table.name}.{names[1]}", '
                    f"max_rows = … }}] in [tables.{one.table.name}]",
                )
    return None


def check_aggregates(calls: Iterable[AggregateCall]) -> None:
    """Refuse aggregates of rows of two people that no sensitivity is derived for (1.38)."""
    for call in calls:
        is_sum = AGGREGATES[call.function].asks in (Asks.COUNT, Asks.SUMS)
        if not is_sum or (call.distinct and call.function != "count"):
            raise Refusal(
                f"{call.function.upper()} of rows of two people is not answered", sqlstate="PV003",
                position=call.position,
                hint="counts, sums, averages, variances and correlations are, COUNT(DISTINCT …) too",
            )  # fmt: skip
