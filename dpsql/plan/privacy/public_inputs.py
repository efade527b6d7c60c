"""Public relations on the private side: tables read in place, what is drawn or computed first, and keys' lists.

What is read in place, and what is drawn first: soundness.md 1.14.

House rules:

1. A public table is read in place when its expressions are total on private rows too: the same printer
   prints them. Anything else becomes an intermediate result: its rows, or its one value, travel as parameters.
2. What an intermediate result holds is never looked at while planning: of a value its static range is known, of rows
   their types, and that keys which travel exactly are distinct where a GROUP BY or DISTINCT made them so.

Parts of a lateral join or a recursion are no relations by themselves. What reads the row around it, or the last round
of a recursion, has a meaning inside its join alone. It is never read in place by the owner's engine beside people's
rows, never drawn first, and never printed for private rows.

`x < (SELECT AVG(y) FROM t WHERE t.k = p.k)` is one release grouped by k, joined back. Where the rows around take
p.k from public rows that pass public filters, the inner rows are held to those keys first: an EXISTS over public
data, which is a row filter (soundness.md 1.10). It changes no group that is asked for, and a person's
max_groups are then spent on groups that count.

Group keys that are read from public tables: their values are known beforehand, to anybody (soundness.md 1.7). A row of
a join with a public table has one of that table's rows in it, so that a key made of its columns is one of the table's
own; where a LEFT JOIN stands before the table, or what the key makes of NULL.

House rules of these (`KeyList`):

1. A list is read of public tables alone, under those filter terms that read nothing else. It may hold keys that no
   row has; the group is then 0 and noise, as a declared value's.
2. Where the table changes between the list and the private rows, the list stands: it is public, and was fixed
   before. Rows of other keys are counted in no group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from ...errors import Position, Refusal
from ...records import dataclass
from ...relation.catalog import Catalog, Column
from ...relation.expressions import (
    Call,
    Expr,
    Field,
    IntermediateValue,
    Literal,
    Scalar,
    conjunction,
    conjuncts,
    fields_of,
    map_children,
    moved,
    parts_in,
    shifted,
    substitute,
    walk,
)
from ...relation.facts import Facts, is_cut, read_length
from ...relation.functions import FUNCTIONS
from ...relation.intervals import Environment, facts_of, narrowed_facts
from ...relation.relations import (
    AggregateCall,
    Block,
    Join,
    Recursive,
    RecursiveRef,
    Relation,
    Scan,
    Values,
    ends_in,
    expressions,
    parts_of,
    projected,
    skipped,
)
from ...relation.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Kind
from ...sql.scope import Outer, first_outer
from .functional_dependencies import Classes, public_column
from .join import join_blocks
from .keys import Domain, environment_of
from .ownership import scanned
from .rows import Item, OwnedRows, Placed, PrivateBlock, Release, Source, fields_in, whole


class NotInPlace(Exception):
    """A public relation that is not read beside private rows, but computed first."""


def read_in_place(node: Relation, catalog: Catalog) -> PrivateBlock:
    """Return a relation over public tables as a block of a private one. Raises NotInPlace, Refusal."""
    if isinstance(node, Scan):
        if node.table.own is not None:
            raise NotInPlace
        return scanned(node, catalog)
    if ends_in(node, "where", "outputs"):
        source = read_in_place(node.below, catalog)
        whole = tuple(_readable(expr, source) for expr in expressions(node.alone))
        if node.last == "where":
            return replace(source, predicate=tuple(dict.fromkeys((*source.predicate, *conjuncts(whole[0])))))
        return replace(source, outputs=whole, names=node.names)
    if isinstance(node, Join) and node.kind in ("inner", "cross", "left", "mark"):
        left, right = read_in_place(node.left, catalog), read_in_place(node.right, catalog)
        _readable(node.condition, None)
        return join_blocks(node, left, right, catalog, lambda expr: expr)
    raise NotInPlace


def _readable(expr: Expr, source: PrivateBlock | None) -> Expr:
    whole = expr if source is None else substitute(expr, source.outputs)
    if any(isinstance(part, (Scalar, Outer)) or (isinstance(part, Call) and not FUNCTIONS[part.function].private)
           for part in walk(whole)):  # fmt: skip
        raise NotInPlace
    return whole


def drawn_first(relation: Relation, number: int) -> PrivateBlock:
    """Return the rows of an intermediate result as a block: what is known of them is their types (soundness.md
    1.14(2), 1.14(7))."""
    columns = []
    for column in relation.columns:
        if column.type.kind in (Kind.INTERVAL, Kind.OPAQUE, Kind.ARRAY):
            raise _no_such_type(relation.position)
        type_, facts = BIGINT if column.type.is_integer else column.type, None
        if type_.kind is Kind.NUMERIC or type_.is_float:
            type_, facts = DOUBLE, Facts(Fraction(-(2**62)), Fraction(2**62), None, True, None, True)
        columns.append(Column(column.name, type_, facts=facts))
    source = Source("", tuple(columns), _unique_keys(relation), {}, intermediate=number)
    return whole(source, (column.name for column in columns))


def _unique_keys(relation: Relation) -> tuple[frozenset[int], ...]:
    """Return the outputs that no two rows of a public relation share: the keys of its one GROUP BY; none of the
    columns, where there is one row.

    Only keys that travel exactly: two numerics may be one double.
    """
    if is_single(relation):
        return (frozenset(),)
    whole = relation.columns
    places: list[int | None] = list(range(len(whole)))
    while ends_in(relation, "where", "having", "outputs", "orders", "limit"):
        origins = [None if place is None else relation.origin(place) for place in places]
        places = [None if origin is None else origin[1] for origin in origins]
        relation = relation.below
    if isinstance(relation, Release):
        keys = range(len(relation.keys))
    elif ends_in(relation, "group") and relation.group is not None and len(relation.group.sets) == 1:
        keys = range(len(relation.group.keys))
    elif ends_in(relation, "distinct"):
        keys = range(len(relation.columns))
    else:
        return ()
    found = [places.index(key) for key in keys if key in places]
    exact = all(whole[at].type.is_integer or whole[at].type.kind is Kind.TEXT for at in found)
    return (frozenset(found),) if len(found) == len(keys) and exact else ()


def static_range(expr: Scalar, analyzed: Relation) -> tuple[Fraction | None, Fraction | None]:
    """Return the range that a released value has whatever its value is; numbers saturate at 2^62.

    `analyzed`: the subquery's relation. An average is within the bounds of what it averages, and so what is
    computed of it; what is printed on the private side is clamped to the range, so a mistake here is no leak.
    """
    if expr.type.is_number:
        known = _facts_above(analyzed)[0]
        if known.declared and known.bounded:
            return known.lo, known.hi
        return Fraction(-(2**62)), Fraction(2**62)
    if expr.type.kind in (Kind.BOOLEAN, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP):
        return None, None
    raise _no_such_type(expr.position)


def _no_such_type(position: Position | None) -> Refusal:
    said = "this subquery's type cannot be used on private rows"
    return Refusal(said, sqlstate="PV004", position=position)


def _facts_above(node: Relation) -> list[Facts]:
    """Return the declared bounds of a released relation's columns; Facts() where none are known."""
    node = skipped(node, "where", "having", "orders", "limit")
    if isinstance(node, Release):
        return [*(Facts() for _ in node.keys), *(_facts_of_average(node, call) for call in node.aggregates)]
    if ends_in(node, "outputs"):
        known = zip(node.below.columns, _facts_above(node.below), strict=True)
        env = Environment([Column("", column.type, facts=facts) for column, facts in known])
        return [_facts_of_number(expr, env) for expr in node.exprs]
    return [Facts() for _ in node.columns]


def _facts_of_number(expr: Expr, env: Environment) -> Facts:
    if not expr.type.is_number or any(parts_in(Scalar, expr)):
        return Facts()
    try:
        return facts_of(expr, env)
    except Refusal:  # of texts in it, which are nobody's here and may be long
        return Facts()


def _facts_of_average(node: Release, call: AggregateCall) -> Facts:
    if call.function != "avg" or call.distinct:
        return Facts()
    known = narrowed_facts(call.args[0], environment_of(node.rows.columns, node.rows.predicate))
    return Facts(known.lo, known.hi, declared=known.declared)


def is_single(relation: Relation) -> bool:
    """Say whether a relation has at most one row, whatever is released (soundness.md 1.14(4))."""
    relation = skipped(relation, "where", "having", "windows", "outputs", "distinct", "orders")
    if isinstance(relation, Values):
        return len(relation.rows) <= 1
    if not isinstance(relation, Block):
        return False
    if relation.limit is not None:
        return relation.limit[0] in (0, 1)
    return relation.group is not None and relation.group.is_one_row


class ReadsAround(Refusal):
    """People's rows meet what reads the row around a subquery, or a recursion's last round."""

    def __init__(self, position: Position | None) -> None:
        super().__init__(
            "people's rows cannot be compared with the row around this subquery", sqlstate="PV004", position=position,
            hint="aggregate the people's rows in a subquery of their own first, and use its result",
        )  # fmt: skip


def is_whole(relation: Relation) -> bool:
    """Say whether a relation has all that it reads: no reference to a row around, or to a recursion around, is left."""
    if first_outer(relation) is not None:
        return False
    numbers = [part.number for part in parts_of(relation) if isinstance(part, Recursive)]
    return all(part.number in numbers for part in parts_of(relation) if isinstance(part, RecursiveRef))


def check_whole(relation: Relation) -> None:
    """Check that a relation has all that it reads. Raises ReadsAround."""
    if not is_whole(relation):
        outer = first_outer(relation)
        raise ReadsAround(relation.position if outer is None else outer.position)


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
