"""Rows of two people: a row of one, joined with what it points at, which is another's (soundness.md 1.38).

House rules:

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

from collections.abc import Iterable, Iterator, Sequence

from ...errors import Position, Refusal
from ...relation.aggregates import AGGREGATES, Asks
from ...relation.catalog import HIDDEN, Also, quoted_names
from ...relation.expressions import Expr, Field, walk
from ...relation.relations import AggregateCall
from ...relation.types import Kind
from .functional_dependencies import Classes, equalities, functional_closure
from .rows import Item, Lookup, Placed, Source, fields_in


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
                found == ((names[0],), parent.table.path, (names[1],)) for found in proved.foreign_keys
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
