"""Blocks put together: the rules of soundness.md 1.10 for joins, one function a kind.

Public rows that a LEFT JOIN keeps where none of people's rows match, `calendar LEFT JOIN orders`: such a row is
nobody's, and whether it is there tells of everybody. But grouped by public columns, with aggregates of nothing but
what matched, it adds nothing to any group: the answer is that of the inner join, over the groups that the public rows
have by themselves (soundness.md 1.14).

House rules:

1. Each rule says which side's rows stay when nothing matches, and whose they are. A row that appears because *nothing*
   of a private table matches must be some person's own row, or it tells of everybody. - inner, cross: sources side by
   side; `ownership.resolve_owner` holds them to one owner, once WHERE is known. - left: the left rows stay, so the
   left is private (or both are public); a private right side matches by an identity in ON, so that what matches is of
   the left row's own person. right: the mirror. Public rows beside people's may stay on the way to a release that
   leaves them out (`Unmatched`). - full: rows of both sides stay; both are private, matched by an identity, owned by
   either. - mark (EXISTS, IN): a column of the left row, computed from rows of its own person or public ones.
2. An outer or marked side that is more than one table becomes a subquery of its own, with an owner of its own.
3. Until an unmatched row is grouped the block is the inner join, with the public rows kept beside it (`Unmatched`).
   Whatever asks for its owner in another way is refused by `resolve_owner`, and so is a join with it.
4. An aggregate leaves unmatched rows out where its argument is NULL in them: strict in a column of people's. A filter
   of it takes more away, never less. Other aggregates, and COUNT(*), which counts the row, are refused.
5. Groups are listed from the public rows under WHERE alone: what ON says only leaves them without a match.

The lookup of whom a row points at, which a statement reads without a join, is added here (soundness.md 1.38).

House rules of it (`with_lookups`):

1. What a statement reads of a reference, beside that it equals its key, it reads of the key: of the row that an inner
   join by the reference finds, which is the statement's own where it has one, and is added else. The rows are of two
   people from there on, or one person's, by the rules of `ownership` alone.
2. A join is added only where it leaves no row out that the statement counts: rows whose reference is NULL are none, or
   no term of WHERE is true of them, or nothing is computed but counts of the reference. A row that points at nothing
   that is there is nobody's, as one whose own person is not there.
3. One join is added to a block. What is left is refused by `check_references`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ...errors import Position, Refusal
from ...relation.catalog import Also, Catalog
from ...relation.expressions import (
    Call,
    Expr,
    Field,
    compared,
    conjuncts,
    fields_of,
    moved,
    shifted,
    substitute,
)
from ...relation.intervals import Environment, narrowed_facts
from ...relation.relations import AggregateCall, Join
from ...relation.types import BOOLEAN
from .derived import full_join, nullable, plain
from .functional_dependencies import equalities
from .keys import environment_of
from .ownership import (
    are_linked,
    held,
    keeps_public_rows,
    pointed_source,
    pointing,
    read_besides,
    refuse_different_owners,
    resolve_owner,
    targets,
    undeclared,
)
from .rows import (
    Item,
    OwnedRows,
    Placed,
    PrivateBlock,
    Select,
    Source,
    Unmatched,
    columns_of,
    fields_in,
    read_by,
    whole,
)

_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "mod", "neg", "abs", "floor", "ceil", "round", "trunc"})
_STRICT = _ARITHMETIC | {"cast", "length", "lower", "upper", "date_trunc", "extract"}
"""Functions that are NULL where one argument is."""
_SKIPPING = frozenset({"count", "sum", "avg", "min", "max"})
"""Aggregates that leave out a row whose argument is NULL."""


def kept_beside(left: PrivateBlock, joined: PrivateBlock, position: Position | None) -> PrivateBlock:
    """Return an inner join of public rows and people's, with the public ones as they are without a match.

    Raises:
        Refusal: PV003 where they are no tables that a list of keys is read from.
    """
    for item in left.items:
        table = item.source.table
        if item.kind != "inner" or table is None or table.is_undated:
            raise keeps_public_rows(position)
    return replace(joined, unmatched=Unmatched(left.items, left.predicate, position))


def narrowed(block: PrivateBlock, terms: Iterable[Expr]) -> PrivateBlock:
    """Return a block under more filter terms. Raises Refusal (PV003): one reads people's columns, so no row is kept."""
    kept = block.unmatched
    if kept is None:
        return block
    width, terms = len(columns_of(kept.items)), tuple(terms)
    for term in terms:
        if max(fields_of(term), default=-1) >= width:
            raise Refusal(
                "WHERE reads people's columns after an outer join that keeps public rows",
                sqlstate="PV003", position=term.position or kept.position,
                hint="write the condition in ON, or write JOIN for LEFT JOIN",
            )  # fmt: skip
    return replace(block, unmatched=replace(kept, predicate=(*kept.predicate, *terms)))


def unmatched_left_out(
    block: PrivateBlock, rows: OwnedRows, keys: tuple[Expr, ...], aggregates: tuple[AggregateCall, ...]
) -> OwnedRows:
    """Return the rows of a block that is grouped, with what its groups are listed from.

    Raises:
        Refusal: PV003 where an unmatched row would count.
    """
    kept = block.unmatched
    if kept is None:
        return rows
    width = len(columns_of(kept.items))
    wrong = next((key for key in keys if max(fields_of(key), default=-1) >= width), None)
    if wrong is not None:
        raise Refusal(
            "a key of people's columns, after an outer join that keeps public rows", sqlstate="PV003",
            position=wrong.position or kept.position, hint="group by the public columns, or write JOIN for LEFT JOIN",
        )  # fmt: skip
    for call in aggregates:
        if (
            call.function not in _SKIPPING
            or len(call.args) != 1
            or not is_null_where(call.args[0], lambda index: index >= width)
        ):
            raise Refusal(
                f"{call.function}() would count the public rows that an outer join keeps", sqlstate="PV003",
                position=call.position or kept.position,
                hint="take a column of the private table, as in COUNT(o.order_id), or write JOIN for LEFT JOIN",
            )  # fmt: skip
    return replace(rows, unmatched=kept)


def is_null_where(expr: Expr, is_null: Callable[[int], bool]) -> bool:
    """Say whether an expression is NULL where all of some columns are."""
    if expr.column is not None:
        return is_null(expr.column)
    return expr.calls(*_STRICT) and any(is_null_where(arg, is_null) for arg in expr.args)


Check = Callable[[Expr], Expr]


def join_blocks(
    node: Join, left: PrivateBlock, right: PrivateBlock, catalog: Catalog, below: Check
) -> PrivateBlock:
    """Return the join of two blocks, one of them private; `below` checks an expression on private rows.

    Raises:
        Refusal: PV003 where a row would have two owners, or none.
    """
    for side in (left, right):
        if side.unmatched is not None:
            raise keeps_public_rows(side.unmatched.position or node.position)
    names = (*left.names, *right.names)
    if node.kind in ("inner", "cross"):
        shift = len(left.columns)
        others = [
            replace(item, on=shifted(item.on, shift), position=item.position or node.position)
            for item in right.items
        ]
        items = (*left.items, *others)
        outputs = (*left.outputs, *shifted(right.outputs, shift))
        terms = (*left.predicate, *shifted(right.predicate, shift), *_terms(node.condition, outputs, below))
        return PrivateBlock(items, tuple(dict.fromkeys(terms)), outputs, names=names)
    if node.kind == "left":
        return _left(node, left, right, node.condition, catalog, below)
    if node.kind == "right":
        width, other = len(left.outputs), len(right.outputs)
        condition = moved(node.condition, lambda i: i + other if i < width else i - width)
        swapped = _left(node, right, left, condition, catalog, below)
        outputs = (*swapped.outputs[other:], *swapped.outputs[:other])
        return replace(swapped, outputs=outputs, names=names)
    if node.kind == "full":
        return _full(node, left, right, catalog, below)
    assert node.kind == "mark"
    return _mark(node, left, right, catalog, below)


def _left(
    node: Join, left: PrivateBlock, right: PrivateBlock, condition: Expr, catalog: Catalog, below: Check
) -> PrivateBlock:
    source, filters = _as_one(right, catalog, node.position)
    if source.is_private and not left.is_private:
        inner = replace(node, kind="inner", condition=condition)
        return kept_beside(left, join_blocks(inner, left, right, catalog, below), node.position)
    fields, on = _matched(left, right, source, filters, condition, below)
    item = Item(_outer(source), "left", on, node.position)
    _check_link(node, left, item, catalog)
    outputs, names = (*left.outputs, *fields), (*left.names, *right.names)
    return PrivateBlock((*left.items, item), left.predicate, outputs, names=names)


def _mark(
    node: Join, left: PrivateBlock, right: PrivateBlock, catalog: Catalog, below: Check
) -> PrivateBlock:
    source, filters = _as_one(right, catalog, node.position)
    if source.is_private and not left.is_private:
        raise Refusal(
            "public rows filtered by who is in a private table have no owner",
            sqlstate="PV003", position=node.position,
            hint="count the private rows by the public key, and join the result",
        )  # fmt: skip
    _, on = _matched(left, right, source, filters, node.condition, below)
    if node.word == "NOT IN":
        env = environment_of((*columns_of(left.items), *source.columns), (*left.predicate, *on))
        on = tuple(_of_values(term, env) for term in on)
    item = Item(source, "mark", on, node.position)
    _check_link(node, left, item, catalog)
    marked = Field(BOOLEAN, len(left.columns), position=node.position)
    outputs, names = (*left.outputs, marked), (*left.names, "")
    return PrivateBlock((*left.items, item), left.predicate, outputs, names=names)


def _of_values(term: Expr, env: Environment) -> Expr:
    """Return a term of NOT IN without what it says of a NULL where there is none: in a row that is left, or listed."""
    if not (isinstance(term, Call) and term.calls("or")):
        return term
    left = tuple(
        one
        for one in term.args
        if not (one.calls("is_null") and not narrowed_facts(one.args[0], env).nullable)
    )
    return left[0] if len(left) == 1 else replace(term, args=left) if left else term


def _matched(
    left: PrivateBlock,
    right: PrivateBlock,
    source: Source,
    filters: tuple[Expr, ...],
    condition: Expr,
    below: Check,
) -> tuple[tuple[Field, ...], tuple[Expr, ...]]:
    """Return the columns of a source that stands after a block, and the ON terms under which its rows match."""
    start = len(left.columns)
    fields = tuple(
        Field(column.type, start + i, name)
        for i, (column, name) in enumerate(zip(source.columns, right.names, strict=False))
    )
    on = (*shifted(filters, start), *_terms(condition, (*left.outputs, *fields), below))
    return fields, tuple(sorted(dict.fromkeys(on), key=repr))


def _full(
    node: Join, left: PrivateBlock, right: PrivateBlock, catalog: Catalog, below: Check
) -> PrivateBlock:
    if not (left.is_private and right.is_private):
        raise Refusal(
            "a FULL JOIN with a public table keeps rows that nobody owns",
            sqlstate="PV003", position=node.position,
            hint="use LEFT JOIN with the private table on the left",
        )  # fmt: skip
    sides = [plain(resolve_owner(side, catalog, node.position), side) for side in (left, right)]
    first, second = (_outer(side) for side in sides)
    kept = whole(first, left.names)
    fields, on = _matched(kept, right, second, (), node.condition, below)
    full = Item(second, "full", on, node.position)
    _check_link(node, kept, full, catalog)
    starts = 0, len(first.columns)
    owners = [
        [Field(side.columns[index].type, start + index) for index in side.owner]
        for side, start in zip(sides, starts, strict=True)
    ]
    # Where both sides are there they agree, by the link; where one is, the row is that side's own.
    owner = tuple(Call(parts[0].type, "coalesce", parts) for parts in zip(*owners, strict=True))
    grown = held((*kept.items, full), (), catalog, node.position)
    block = Select(grown.items, (), (*kept.outputs, *fields), owner, works=grown.works)
    return whole(full_join(block, sides, grown.reach), (*left.names, *right.names))


def _as_one(
    block: PrivateBlock, catalog: Catalog, position: Position | None
) -> tuple[Source, tuple[Expr, ...]]:
    """Return a block as one source and what its rows have to pass: a bare table stays one, the rest is a subquery."""
    bare = all(out.column == i for i, out in enumerate(block.outputs))
    if len(block.items) == 1 and block.items[0].kind == "inner" and bare:
        return block.items[0].source, block.predicate
    rows = resolve_owner(block, catalog, position) if block.is_private else None
    return plain(rows, block), ()


def _outer(source: Source) -> Source:
    return replace(source, columns=tuple(nullable(column) for column in source.columns))


def _check_link(node: Join, left: PrivateBlock, item: Item, catalog: Catalog) -> None:
    """Hold a private outer or marked side to the left row's own person."""
    # By ON alone: an equality in WHERE would come after the row was made, and matched other people's rows.
    if not item.source.is_private or are_linked(left.items, item, item.on):
        return
    if node.word == "NOT IN" and not item.source.row_tables:
        raise Refusal(
            "NOT IN over private rows: one NULL in the list empties the result for everybody",
            sqlstate="PV003", position=node.position,
            hint="write NOT EXISTS (SELECT 1 FROM … WHERE …) with an equality on the person's key, or a list of the "
            "person's keys WHERE … IS NOT NULL",
        )  # fmt: skip
    first = next(other for other in left.items if other.source.is_private)
    own = [place for place, other in enumerate(left.items) if other.source.is_private]
    both = (*left.items, replace(item, kind="inner"))  # its own columns stand where ON has them
    said = undeclared(both, item.on, (own, [len(left.items)]))
    raise refuse_different_owners(first.source, item.source, node.position, catalog, node.word, said)


def _terms(condition: Expr, outputs: tuple[Expr, ...], below: Check) -> tuple[Expr, ...]:
    return conjuncts(below(substitute(condition, outputs)))


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
        term = inner  # NULL where that is, which none of the comparisons below makes TRUE or FALSE
    comparison = compared(term)
    sides: Sequence[Expr] = () if comparison is None else comparison[1:]
    if isinstance(term, Call) and term.calls("in"):
        sides = term.args[:1]
    return any(is_null_where(side, lambda column: column == index) for side in sides)
