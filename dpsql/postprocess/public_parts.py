"""Which parts of an analyzed relation read public tables alone: the owner's engine answers those.

House rules:

1. A part holds no release, in its subqueries neither, and no table that has a privacy unit. Whatever node
   is not known here is not public.
2. What a part is, and which of its columns are fetched, is decided from the statement alone.
3. A filter stands as far down as its meaning allows before the parts are cut, so that little is fetched.
   A product of tables that no equality links is never a part: its tables are.
4. An analyst's own table is a part by itself: the owner's engine has it not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import field, replace

from ..errors import Refusal
from ..plan.privacy.rows import AddedUp
from ..records import dataclass
from ..relation.expressions import (
    TRUE,
    Expr,
    IntermediateValue,
    Scalar,
    conjunction,
    conjuncts,
    fields_of,
    map_children,
    substitute,
    walk,
)
from ..relation.relations import (
    Block,
    Join,
    Lateral,
    OutputColumn,
    Recursive,
    RecursiveRef,
    Relation,
    Scan,
    Series,
    SetOperation,
    Unnest,
    Values,
    all_parts,
    ends_in,
    expressions,
    filtered,
    nodes_in,
    skipped,
    subqueries,
)
from ..relation.types import Kind
from ..sql.scope import outer_in
from .null_on_error import holds_estimate

Needed = frozenset[int]
"""Positions of the columns of a relation that somebody reads."""
_SEALED = (Series, Unnest, Lateral, Recursive, RecursiveRef)
"""What runs in the sealed engine alone, whose memory has a limit: tables are brought to it."""
_KNOWN = (Values, Block, Join, SetOperation, *_SEALED)


@dataclass(frozen=True)
class Fetched(Relation):
    """The rows of a public relation, after the owner's engine has answered it."""

    source: Relation

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.source.columns


@dataclass(frozen=True, slots=True)
class Split:
    """A relation with its public parts as `Fetched`, and each part with the columns that are read of it."""

    relation: Relation
    parts: Mapping[Relation, Needed]


def split(relation: Relation, *, tables_only: bool = False) -> Split:
    """Return an analyzed relation cut into parts; `relation` is itself the only part when it is public.

    `tables_only`: the owner's engine does not run post-processing; a part is a table, with the plain
    comparisons of its columns that narrow it.
    """
    everything = frozenset(range(len(relation.columns)))
    if is_public(relation) and reads_tables(relation) and not tables_only and not _is_sealed(relation):
        return Split(Fetched(relation), {relation: everything})
    splitter = _Splitter(tables_only)
    placed = splitter.place(relation, everything)
    return Split(placed, {part: frozenset(needed) for part, needed in splitter.parts.items()})


def is_public(node: Relation) -> bool:
    """Say whether a relation is made of public tables and constants alone."""
    if isinstance(node, Scan):
        return node.table.unit is None
    if not isinstance(node, _KNOWN):
        return False
    return all(map(is_public, node.inputs)) and not any(map(_holds_release, expressions(node)))


def reads_tables(node: Relation) -> bool:
    """Say whether a relation reads any table, in its subqueries too."""
    return any(nodes_in(Scan, node))


def _is_sealed(node: Relation) -> bool:
    """Say whether some of a relation runs in the sealed engine alone, or reads what is around it."""
    return any(
        isinstance(one, _SEALED) or is_own(one) or any(map(outer_in, expressions(one)))
        for one in all_parts(node)
    )


def is_own(node: Relation) -> bool:
    """Say whether a relation is an analyst's own table."""
    return isinstance(node, Scan) and node.table.own is not None


def _has_arrays(node: Relation) -> bool:
    """Say whether a column holds what cannot be brought to the sealed engine: it is made there."""
    return any(column.type.kind is Kind.ARRAY for column in node.columns)


def check_usable(node: Relation, needed: Needed | None = None) -> None:
    """Check that no column is read whose type cannot be carried.

    Raises:
        Refusal: 0A000, naming the column.
    """
    wanted = frozenset(range(len(node.columns))) if needed is None else needed
    if isinstance(node, Scan):
        for index in sorted(wanted & frozenset(range(len(node.table.columns)))):
            column = node.table.columns[index]
            if column.type.kind in (Kind.OPAQUE, Kind.INTERVAL):
                raise Refusal(
                    f'column "{column.name}" of "{node.table.label}" has a type that cannot be answered',
                    sqlstate="0A000", position=node.position, hint="list the other columns instead",
                )  # fmt: skip
    for child, read in zip(node.reads, needed_below(node, wanted), strict=True):
        check_usable(child, read)
    for below in subqueries(node.alone):
        check_usable(below)


def is_plain(term: Expr) -> bool:
    """Say whether a term compares columns with literals so that it keeps every row that the sealed engine keeps.

    A number that is not finite, or a moment outside our calendar, is NULL there: a comparison that is true of
    the value as it stands keeps too many rows, never too few.
    """
    if term.calls("and", "or"):
        return all(map(is_plain, term.args))
    if not term.calls("eq", "lt", "le", "gt", "ge", "in"):
        return term.column is not None and term.type.kind is Kind.BOOLEAN
    column, *others = term.args
    exact = column.type.is_integer or column.type.is_temporal or column.type.kind in (Kind.TEXT, Kind.BOOLEAN)
    return (
        exact
        and column.column is not None
        and all(other.is_constant and _alike(other, column) for other in others)
    )


def _alike(left: Expr, right: Expr) -> bool:
    return left.type.kind is right.type.kind or (left.type.is_integer and right.type.is_integer)


# --- cutting ---------------------------------------------------------------------------------------------


@dataclass
class _Splitter:
    tables_only: bool
    parts: dict[Relation, set[int]] = field(default_factory=dict)

    def place(self, node: Relation, needed: Needed) -> Relation:
        """Return a relation with its parts cut out, when `needed` of its columns are read."""
        if is_public(node):
            if not reads_tables(node):
                return node
            is_whole = _is_linked(node) and not self.tables_only and not _is_sealed(node)
            if isinstance(node, Scan) or (is_whole and not _has_arrays(node)):
                return self._part(node, needed)
        node = _pushed(node)
        if (
            self.tables_only
            and ends_in(node, "where")
            and isinstance(node.below, Scan)
            and not is_own(node.below)
        ):
            narrowing = tuple(term for term in conjuncts(node.predicate) if is_plain(term))
            if narrowing:
                (below,) = needed_below(node, needed)
                part = filtered(node.below, conjunction(narrowing), node.position)
                return node.over(self._part(part, below)).map_expressions(self._expr)
        below_it = zip(node.reads, needed_below(node, needed), strict=True)
        placed = [self.place(child, read) for child, read in below_it]
        return node.alone.map_expressions(self._expr).over(*placed)

    def _part(self, node: Relation, needed: Needed) -> Relation:
        self.parts.setdefault(node, set()).update(needed)
        return Fetched(node)

    def _expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Scalar):
            return replace(expr, relation=self.place(expr.relation, frozenset({0})))
        return map_children(expr, self._expr)


def _holds_release(expr: Expr) -> bool:
    """Say whether an expression is of released numbers, or of estimates, which have error bars as those do."""
    return holds_estimate(expr) or any(
        isinstance(part, IntermediateValue) or (isinstance(part, Scalar) and not is_public(part.relation))
        for part in walk(expr)
    )


def _is_linked(node: Relation) -> bool:
    """Say whether equalities link all tables of the product that stands on top of a relation, if one does."""
    starts, links = _links(skipped(node, "outputs"), 0)
    groups = [{number} for number in range(len(starts))]
    for link in links:
        joined = {bisect_right(starts, index) - 1 for index in link}
        touched = [group for group in groups if group & joined]
        groups = [group for group in groups if not group & joined]
        groups.append(set().union(*touched))
    return len(groups) == 1


def _links(node: Relation, offset: int) -> tuple[list[int], list[Needed]]:
    """Return where the tables of a product begin, and the columns of each equality between columns."""
    if ends_in(node, "where", "having"):
        starts, links = _links(node.below, offset)
        return starts, links + _equalities(node.predicate, offset)
    if isinstance(node, Join) and node.kind in ("inner", "cross"):
        left, right = _links(node.left, offset), _links(node.right, offset + len(node.left.columns))
        return left[0] + right[0], left[1] + right[1] + _equalities(node.condition, offset)
    return [offset], []


def _equalities(predicate: Expr, offset: int) -> list[Needed]:
    return [
        frozenset(index + offset for index in fields_of(term))
        for term in conjuncts(predicate)
        if term.calls("eq") and fields_of(term)
    ]


# --- filters on their way down -----------------------------------------------------------------------------


def _pushed(node: Relation) -> Relation:
    """Return a filter or a join with what concerns one side moved to that side."""
    if ends_in(node, "where", "having"):
        return _pushed_filter(node)
    if isinstance(node, Join) and node.kind in ("inner", "left", "right", "mark"):
        to_left, to_right, kept = _sides(
            node, conjuncts(node.condition), node.kind in ("inner", "right"), node.kind != "right"
        )
        if to_left or to_right:
            return _narrowed(replace(node, condition=conjunction(kept)), to_left, to_right)
    return node


def _pushed_filter(node: Block) -> Relation:
    terms = list(conjuncts(node.predicate))
    source = node.below
    while ends_in(source, "where", "having"):
        terms += conjuncts(source.predicate)
        source = source.below
    public = tuple(term for term in terms if not _holds_release(term))
    released = tuple(term for term in terms if _holds_release(term))
    if is_public(source) and released:
        below = filtered(source, conjunction(public)) if public else source
        return filtered(below, conjunction(released), node.position)
    if not isinstance(source, Join):
        return node
    kind = source.kind
    to_left, to_right, kept = _sides(
        source, public, kind in ("inner", "cross", "left", "mark"), kind in ("inner", "cross", "right")
    )
    if not to_left and not to_right:
        return node
    join = _narrowed(source, to_left, to_right)
    rest = (*kept, *released)
    return filtered(join, conjunction(rest), node.position) if rest else join


def _sides(
    join: Join, terms: tuple[Expr, ...], may_left: bool, may_right: bool
) -> tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[Expr, ...]]:
    """Return the terms over the left side alone, those over the right (on its own columns), and the rest."""
    width = len(join.left.columns)
    row = (*join.left.row, *join.right.row)
    to_left, to_right, kept = [], [], []
    for term in terms:
        read = fields_of(term)
        if may_left and read and max(read) < width and not _holds_release(term):
            to_left.append(term)
        elif may_right and read and min(read) >= width and not _holds_release(term):
            to_right.append(substitute(term, row))
        else:
            kept.append(term)
    return tuple(to_left), tuple(to_right), tuple(kept)


def _narrowed(join: Join, to_left: tuple[Expr, ...], to_right: tuple[Expr, ...]) -> Join:
    left = filtered(join.left, conjunction(to_left)) if to_left else join.left
    right = filtered(join.right, conjunction(to_right)) if to_right else join.right
    return replace(join, left=left, right=right)


# --- the algebra, node by node -------------------------------------------------------------------------------


def needed_below(node: Relation, needed: Needed) -> tuple[Needed, ...]:
    """Return what a node's last step reads of each side, when `needed` of its own columns are read."""
    if isinstance(node, Block):
        if node.last == "outputs":
            return (fields_of(*(node.exprs[index] for index in needed)),)
        width = len(node.below.columns)
        if node.last == "distinct":
            return (frozenset(range(width)),)
        kept = frozenset(i for i in needed if i < width) if node.last != "group" else frozenset[int]()
        return (kept | fields_of(*expressions(node.alone)),)
    if isinstance(node, SetOperation) and not (node.kind == "union" and node.all):
        needed = frozenset(range(len(node.columns)))
    if isinstance(node, SetOperation):
        return needed, needed
    if isinstance(node, Join):
        width = len(node.left.columns)
        used = fields_of(node.condition) if node.condition != TRUE else frozenset()
        right = frozenset() if node.kind == "mark" else frozenset(i - width for i in needed if i >= width)
        left = frozenset(i for i in needed | used if i < width)
        return left, right | frozenset(i - width for i in used if i >= width)
    if isinstance(node, AddedUp):
        return (frozenset(range(len(node.release.columns))),)
    # of any other node all is read
    return tuple(frozenset(range(len(child.columns))) for child in node.reads)
