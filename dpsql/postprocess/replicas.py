"""An analyzed relation over many replicas of its releases: what error bars above windows, sums and joins are made of.

Each released number stands beside what the truth may be, once for each draw of a simulation. Which rows there are,
and in what order, is decided by the released numbers alone: filters, keys, joins, partitions and orders read those,
and only what is shown is computed from the replicas. So a sum or a share is simulated over the rows that it was
really made of.

House rules:

1. Both forms of a relation, with replicas (for the simulation) and without (for the answer), are made by the same
   code, so that the rows of one find their bars in the other by equal numbers.
2. What has no meaning under frozen rows is never guessed: it raises `NotSimulated`, and its bars are NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from ..plan.measures.formulas import Chosen
from ..plan.privacy.rows import AddedUp, Release
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.expressions import (
    TRUE,
    Call,
    Expr,
    Field,
    Literal,
    Scalar,
    conjunction,
    fields_of,
    map_children,
    moved,
    walk,
)
from ..relation.relations import (
    AggregateCall,
    Block,
    Group,
    Join,
    OutputColumn,
    Relation,
    SetOperation,
    WindowCall,
    ends_in,
    filtered,
    grouped,
    projected,
    skipped,
    windowed,
    without_repeats,
)
from ..relation.types import BIGINT, BOOLEAN, DOUBLE
from .bind import holds_estimate, with_own_error
from .public_parts import Needed, is_public, needed_below

_CARRYING_WINDOWS = frozenset({"lag", "lead", "first_value", "last_value", "nth_value"})


class NotSimulated(Exception):  # an answer within this package, not an error
    """What a relation computes has no bars under frozen rows."""


@dataclass(frozen=True)
class Replicated(Relation):
    """A release's columns, then those of `measures` at a replica of the truth, the row's number and the draw's."""

    release: Release
    measures: tuple[int, ...]

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        shown = self.release.columns
        numbers = (OutputColumn(BIGINT), OutputColumn(BIGINT))
        return (*shown, *(shown[index] for index in self.measures), *numbers)


@dataclass(frozen=True)
class ReplicatedSums(Relation):
    """The columns of a release's rows added up, then those of `measures` of its replicas added up, and the draw."""

    sums: AddedUp
    measures: tuple[int, ...]

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        shown = self.sums.columns
        return (*shown, *(shown[index] for index in self.measures), OutputColumn(BIGINT))


@dataclass(frozen=True)
class Numbered(Relation):
    """The rows of a release, with its bars where it has some, and each row's number."""

    source: Relation

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        return (*self.source.columns, OutputColumn(BIGINT))


@dataclass(frozen=True)
class Draws(Relation):
    """The numbers of the draws of a simulation, one a row."""

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return (OutputColumn(BIGINT),)


@dataclass(frozen=True)
class Ends(Relation):
    """The bars that a simulation found: what numbers a row, then low and high of each expression.

    `simulation`: `width` columns that number the rows, the draw, and of each expression the released value and its
    replica. `together`: which bars are to hold for all rows at once.
    """

    simulation: Relation
    width: int
    together: tuple[bool, ...]
    _INPUTS = ("simulation",)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        ends = (OutputColumn(DOUBLE) for _ in self.together for _ in range(2))
        return (*self.simulation.columns[: self.width], *ends)


@dataclass(frozen=True, slots=True)
class _Lifted:
    """A relation with its rows numbered, and in each draw where it has any.

    `base` and `truth`: where each column of the plain relation stands as released, and as simulated; equal where
    there is no noise. `ids`: the columns that number a row. `draw`: the draw's column. `hidden`: columns of the
    plain relation whose noise is not simulated.
    """

    node: Relation
    base: tuple[int, ...]
    truth: tuple[int, ...]
    ids: tuple[int, ...]
    draw: int | None
    hidden: frozenset[int] = frozenset()

    def released(self, expr: Expr) -> Expr:
        """Return an expression over the plain columns as one over the released ones."""
        return moved(expr, lambda index: self.base[index])

    def simulated(self, expr: Expr) -> Expr:
        """Return an expression over the plain columns as one over the replicas."""
        return moved(expr, lambda index: self.truth[index])

    def is_noisy(self, *exprs: Expr) -> bool:
        """Say whether any column that the expressions read differs from draw to draw."""
        return any(self.base[index] != self.truth[index] for index in fields_of(*exprs))

    def is_hidden(self, *exprs: Expr) -> bool:
        """Say whether the expressions read a number whose noise is not simulated."""
        return bool(self.hidden & fields_of(*exprs))

    def column(self, index: int) -> Field:
        """Return a column of the lifted relation itself."""
        return Field(self.node.columns[index].type, index)

    @property
    def identity(self) -> tuple[Field, ...]:
        """The columns that number a row."""
        return tuple(map(self.column, self.ids))


@dataclass(frozen=True, slots=True)
class Numbering:
    """A relation with its rows numbered: where its own columns stand now, and those that number a row."""

    node: Relation
    columns: tuple[Field, ...]
    identity: tuple[Field, ...]


def numbered(node: Relation, needed: Needed, plans: Mapping[Release, ReleasePlan]) -> Numbering:
    """Return a relation with columns that number its rows as those of the simulation of what reads `needed` of it.

    Raises NotSimulated.
    """
    lifted = _Lifter(plans, replicas=False).lift(node, needed)
    return Numbering(lifted.node, tuple(map(lifted.column, lifted.base)), lifted.identity)


def simulation_of(
    node: Relation, wanted: tuple[tuple[Expr, bool], ...], plans: Mapping[Release, ReleasePlan]
) -> tuple[Ends | None, list[int | None]]:
    """Return what simulates expressions over a relation, and which of its bars each has; None: it has none.

    `wanted`: each expression, and whether its bars are to hold for all rows at once. Raises NotSimulated.
    """
    lifter = _Lifter(plans, replicas=True)
    exprs = tuple(expr for expr, _ in wanted)
    lifted = lifter.lift(projected(node, exprs), frozenset(range(len(exprs))))
    kept = [
        index for index in range(len(exprs))
        if lifted.base[index] != lifted.truth[index] and index not in lifted.hidden
    ]  # fmt: skip
    if not kept or lifted.draw is None:
        return None, [None] * len(exprs)
    columns = [*lifted.identity, lifted.column(lifted.draw)]
    for index in kept:
        columns += [lifted.column(lifted.base[index]), lifted.column(lifted.truth[index])]
    simulation = projected(lifted.node, columns)
    ends = Ends(simulation, len(lifted.ids), tuple(wanted[index][1] for index in kept))
    return ends, [kept.index(i) if i in kept else None for i in range(len(exprs))]


@dataclass(frozen=True, slots=True)
class _Lifter:
    plans: Mapping[Release, ReleasePlan]
    replicas: bool

    def lift(self, node: Relation, needed: Needed) -> _Lifted:
        """Return a relation lifted, of which `needed` columns are read for bars. Raises NotSimulated."""
        if is_public(node):
            every = tuple(range(len(node.columns)))
            return _Lifted(node, every, every, tuple(sorted(needed)), None)
        below = needed_below(node, needed)
        if isinstance(node, Block):
            if node.last == "limit":
                raise NotSimulated
            return _PARTS[node.last](self, node, self.lift(node.below, below[0]))
        match node:
            case SetOperation():
                return self._union(node, below[0])
            case Join():
                return self._join(node, below)
            case AddedUp():
                return self._added_up(node, needed)
            case Ends() | Numbered() if not self.replicas:
                every = tuple(range(len(node.columns)))
                return _Lifted(node, every, every, every[-1:] if isinstance(node, Numbered) else (), None)
        return self._release(node, needed)

    def _release(self, node: Relation, needed: Needed) -> _Lifted:
        """Lift a release; its bars, where it has some, are numbers without noise of their own.

        A value that was chosen has no noise on it: what is known is how far its rank may be off.
        """
        from .bars import WithBars

        release = node.release if isinstance(node, WithBars) else node
        if not isinstance(release, Release):
            raise NotSimulated
        if not self.replicas:
            every = tuple(range(len(node.columns)))
            return _Lifted(Numbered(node), every, every, (len(every),), None)
        width = len(release.columns)
        base = tuple(range(width))
        plan, first = self.plans[release], len(release.keys)
        chosen = frozenset(
            first + index for index, one in enumerate(plan.formulas) if isinstance(one, Chosen)
        )
        measures = () if plan.is_empty else tuple(sorted(needed & frozenset(range(first, width)) - chosen))
        truth = tuple(width + measures.index(i) if i in measures else i for i in base)
        row = width + len(measures)
        lifted = _Lifted(Replicated(release, measures), base, truth, (row,), row + 1, chosen)
        if not isinstance(node, WithBars):
            return lifted
        bars = len(node.columns) - width
        # low and high of another bar are not simulated: they stand here to be refused where one is read
        places = (row,) * bars
        hidden = chosen | frozenset(range(width, width + bars))
        return replace(lifted, base=(*base, *places), truth=(*truth, *places), hidden=hidden)

    def _added_up(self, node: AddedUp, needed: Needed) -> _Lifted:
        """Lift a release's rows that are added up: their keys number them."""
        keys, width = len(node.by), len(node.columns)
        base, ids = tuple(range(width)), tuple(range(keys))
        if not self.replicas:
            return _Lifted(node, base, base, ids, None)
        is_empty = self.plans[node.release].is_empty
        measures = () if is_empty else tuple(i for i in sorted(needed) if keys <= i < width)
        truth = tuple(width + measures.index(i) if i in measures else i for i in base)
        return _Lifted(ReplicatedSums(node, measures), base, truth, ids, width + len(measures))

    # --- what stands above -----------------------------------------------------------------------------

    def _ordered(self, node: Block, below: _Lifted) -> _Lifted:
        return below

    def _project(self, node: Block, lifted: _Lifted) -> _Lifted:
        exprs = node.exprs
        below, scalars = self._with_scalars(lifted, exprs)
        if self.replicas and any(map(holds_estimate, exprs)):
            below = _in_each_draw(below)
        columns: list[Expr] = [below.released(expr) for expr in exprs]
        truth = list(range(len(columns)))
        hidden = set()
        for index, expr in enumerate(exprs):
            if below.is_hidden(expr):
                hidden.add(index)
            elif below.is_noisy(expr) or any(part in scalars for part in walk(expr)):
                truth[index] = len(columns)
                columns.append(_replaced(below.simulated(expr), scalars))
            elif self.replicas and holds_estimate(expr):
                truth[index] = len(columns)
                columns.append(below.simulated(expr))
            if truth[index] != index and below.draw is not None:
                columns[-1] = with_own_error(columns[-1], below.column(below.draw), below.identity)
        ids = tuple(range(len(columns), len(columns) + len(below.ids)))
        columns += below.identity
        draw = None
        if below.draw is not None:
            draw = len(columns)
            columns.append(below.column(below.draw))
        return _Lifted(
            projected(below.node, columns),
            tuple(range(len(exprs))), tuple(truth), ids, draw, frozenset(hidden),
        )  # fmt: skip

    def _with_scalars(self, below: _Lifted, exprs: tuple[Expr, ...]) -> tuple[_Lifted, dict[Expr, Expr]]:
        """Return a relation joined with the noisy scalar subqueries of expressions, and what each is there."""
        found: dict[Expr, Expr] = {}
        if not self.replicas:
            return below, found
        for part in dict.fromkeys(part for expr in exprs for part in walk(expr)):
            if not isinstance(part, Scalar) or is_public(part.relation):
                continue
            if not _is_one_row(part.relation):
                raise NotSimulated
            value = self.lift(part.relation, frozenset({0}))
            if value.is_hidden(Field(part.type, 0)) or value.draw is None:
                raise NotSimulated
            width = len(below.node.columns)
            found[part] = Field(part.type, width + value.truth[0])
            same = _same_draw(below, value)
            joined = Join("inner" if same != TRUE else "cross", below.node, value.node, same)
            draw = width + value.draw if below.draw is None else below.draw
            below = replace(below, node=joined, draw=draw)
        return below, found

    def _filter(self, node: Block, below: _Lifted) -> _Lifted:
        return replace(below, node=filtered(below.node, below.released(node.predicate)))

    def _distinct(self, node: Block, below: _Lifted) -> _Lifted:
        if below.base != below.truth or below.hidden:
            raise NotSimulated
        columns = tuple(map(below.column, below.base))
        draw = None if below.draw is None else len(columns)
        if below.draw is not None:
            columns = (*columns, below.column(below.draw))
        every = tuple(range(len(node.columns)))
        return _Lifted(without_repeats(projected(below.node, columns)), every, every, every, draw)

    def _window(self, node: Block, below: _Lifted) -> _Lifted:
        by_draw = () if below.draw is None else (below.column(below.draw),)

        def frozen(call: WindowCall, args: tuple[Expr, ...]) -> WindowCall:
            orders = tuple(order.map(below.released) for order in call.orders)
            partition = (*map(below.released, call.partition), *by_draw)
            return replace(call, args=args, partition=partition, orders=orders)

        width, own = len(below.node.columns), len(node.below.columns)
        calls = [frozen(call, tuple(map(below.released, call.args))) for call in node.windows]
        truth = [width + index for index in range(len(calls))]
        hidden = set(below.hidden)
        for index, call in enumerate(node.windows):
            is_extreme = call.row is not None and call.row.is_extreme
            is_carried = call.row.is_linear if call.row is not None else call.function in _CARRYING_WINDOWS
            if below.is_hidden(*call.args) or (is_extreme and below.is_noisy(*call.args)):
                hidden.add(own + index)
            elif is_carried and below.is_noisy(*call.args):
                truth[index] = width + len(calls)
                calls.append(frozen(call, tuple(map(below.simulated, call.args))))
        base = tuple(width + index for index in range(len(node.windows)))
        return replace(
            below, node=windowed(below.node, tuple(calls)), base=(*below.base, *base),
            truth=(*below.truth, *truth), hidden=frozenset(hidden),
        )  # fmt: skip

    def _group(self, node: Block, below: _Lifted) -> _Lifted:
        group = node.group
        assert group is not None
        by_draw = () if below.draw is None else (below.column(below.draw),)
        keys = (*map(below.released, group.keys), *by_draw)
        width = len(keys)
        calls = [call.map(below.released) for call in group.aggregates]
        truth = [*range(len(group.keys)), *(width + index for index in range(len(calls)))]
        hidden = {i for i, key in enumerate(group.keys) if below.is_noisy(key) or below.is_hidden(key)}
        for index, call in enumerate(group.aggregates):
            place = len(group.keys) + index
            if below.is_hidden(*call.args):
                hidden.add(place)
            elif below.is_noisy(*call.args) and call.function != "count":
                if not call.row.is_linear or call.distinct:
                    hidden.add(place)
                    continue
                truth[place] = width + len(calls)
                calls.append(_simulated_call(call, below))
        every = tuple(range(len(group.keys)))
        drawn = tuple(range(len(group.keys), width))
        bits = (every,) if len(group.sets) > 1 else ()
        groupings = (*group.groupings, *bits)
        sets = tuple((*chosen, *drawn) for chosen in group.sets)
        lifted = grouped(below.node, Group(keys, tuple(calls), sets, groupings))
        base = (*every, *(width + index for index in range(len(group.aggregates))))
        shown = tuple(width + len(calls) + index for index in range(len(group.groupings)))
        ids = every + ((width + len(calls) + len(group.groupings),) if bits else ())
        return _Lifted(
            lifted, (*base, *shown), (*truth, *shown), ids, drawn[0] if drawn else None, frozenset(hidden)
        )

    def _union(self, node: SetOperation, needed: Needed) -> _Lifted:
        """Lift a tree of unions: its leaves' rows are numbered by the leaf, and by what numbers them there."""
        if node.kind != "union" or not node.all:
            raise NotSimulated
        leaves = [self.lift(leaf, needed) for leaf in node.leaves]
        if any(leaf.draw is not None for leaf in leaves):
            leaves = [_in_each_draw(leaf) for leaf in leaves]
        count = len(node.columns)
        noisy = [i for i in range(count) if any(leaf.base[i] != leaf.truth[i] for leaf in leaves)]
        shared = _shared(leaves)
        sides = [
            _side(leaf, noisy, number, of_it)
            for number, (leaf, of_it) in enumerate(zip(leaves, shared, strict=True))
        ]
        types = [column.type for column in node.columns]
        types += [node.columns[index].type for index in noisy]
        types += [column.type for column in sides[0].columns[len(types) :]]
        both = node.over_leaves(sides, tuple(map(OutputColumn, types)))
        truth = tuple(count + noisy.index(i) if i in noisy else i for i in range(count))
        start = count + len(noisy)
        ids = tuple(range(start, start + 1 + len(shared[0])))
        draw = None if leaves[0].draw is None else ids[-1] + 1
        hidden = frozenset[int]().union(*(leaf.hidden for leaf in leaves))
        return _Lifted(both, tuple(range(count)), truth, ids, draw, hidden)

    def _join(self, node: Join, reads: tuple[Needed, ...]) -> _Lifted:
        left = self.lift(node.left, reads[0])
        if node.kind == "mark":
            # which rows match is as it was released
            width = len(left.node.columns)
            places = (*left.base, *range(width, width + len(node.right.columns)))
            marked = Join(
                "mark", left.node, node.right, moved(node.condition, lambda i: places[i]), node.word
            )
            return replace(left, node=marked, base=(*left.base, width), truth=(*left.truth, width))
        right = self.lift(node.right, reads[1])
        if left.draw is None and right.draw is not None and node.kind in ("left", "full"):
            left = _in_each_draw(left)
        if right.draw is None and left.draw is not None and node.kind in ("right", "full"):
            right = _in_each_draw(right)
        width, own = len(left.node.columns), len(node.left.columns)
        moved_on = [tuple(width + i for i in places) for places in (right.base, right.truth, right.ids)]
        lifted = _Lifted(
            left.node, (*left.base, *moved_on[0]), (*left.truth, *moved_on[1]), (*left.ids, *moved_on[2]), None,
            left.hidden | frozenset(own + index for index in right.hidden),
        )  # fmt: skip
        same = _same_draw(left, right)
        condition = conjunction(
            tuple(term for term in (lifted.released(node.condition), same) if term != TRUE)
        )
        kind = "inner" if node.kind == "cross" and condition != TRUE else node.kind
        draws = (left.draw, None if right.draw is None else width + right.draw)
        draw = draws[1] if draws[0] is None or kind == "right" else draws[0]
        joined = replace(lifted, node=Join(kind, left.node, right.node, condition), draw=draw)
        return _either_draw(joined, draws) if kind == "full" else joined


def _simulated_call(call: AggregateCall, below: _Lifted) -> AggregateCall:
    kept = None if call.filter is None else below.released(call.filter)
    return replace(call, args=tuple(map(below.simulated, call.args)), filter=kept)


def _same_draw(left: _Lifted, right: _Lifted) -> Expr:
    if left.draw is None or right.draw is None:
        return TRUE
    other = Field(BIGINT, len(left.node.columns) + right.draw)
    return Call(BOOLEAN, "eq", (left.column(left.draw), other))


def _in_each_draw(lifted: _Lifted) -> _Lifted:
    """Return rows without noise once for each draw."""
    if lifted.draw is not None:
        return lifted
    node = Join("cross", lifted.node, Draws(), TRUE)
    return replace(lifted, node=node, draw=len(lifted.node.columns))


def _either_draw(joined: _Lifted, draws: tuple[int | None, int | None]) -> _Lifted:
    """Return a full join with the draw of whichever side has a row."""
    if draws[0] is None or draws[1] is None:
        return joined
    width = len(joined.node.columns)
    either = Call(BIGINT, "coalesce", (joined.column(draws[0]), joined.column(draws[1])))
    columns = (*(joined.column(index) for index in range(width)), either)
    return replace(joined, node=projected(joined.node, columns), draw=width)


def _side(leaf: _Lifted, noisy: list[int], number: int, ids: Sequence[Expr]) -> Relation:
    """Return a leaf of unions: its columns, their replicas, which leaf it is, what numbers its rows, the draw."""
    columns: list[Expr] = [leaf.column(place) for place in leaf.base]
    columns += [leaf.column(leaf.truth[index]) for index in noisy]
    columns += [Literal(BIGINT, number), *ids]
    if leaf.draw is not None:
        columns.append(leaf.column(leaf.draw))
    return projected(leaf.node, columns)


def _shared(leaves: Sequence[_Lifted]) -> list[list[Expr]]:
    """Return what numbers the rows of each leaf of unions: in columns that the leaves share, as which leaf it is stands
    before them; NULL in those that are another's."""
    own = [{(place, field.type): field for place, field in enumerate(leaf.identity)} for leaf in leaves]
    slots = dict.fromkeys(slot for leaf in own for slot in leaf)
    return [[leaf.get(slot) or Literal(slot[1], None) for slot in slots] for leaf in own]


def _replaced(expr: Expr, values: Mapping[Expr, Expr]) -> Expr:
    if expr in values:
        return values[expr]
    return map_children(expr, lambda child: _replaced(child, values))


def _is_one_row(node: Relation) -> bool:
    """Say whether a relation has one row whatever is in the data."""
    node = skipped(node, "windows", "outputs", "orders")
    if ends_in(node, "group"):
        return node.group is not None and node.group.is_one_row
    return isinstance(node, Release) and not node.keys


_PARTS: Mapping[str, Callable[[_Lifter, Block, _Lifted], _Lifted]] = {
    "where": _Lifter._filter, "group": _Lifter._group, "having": _Lifter._filter, "windows": _Lifter._window,
    "outputs": _Lifter._project, "distinct": _Lifter._distinct, "orders": _Lifter._ordered,
}  # fmt: skip
"""Part of a block -> how it is lifted. A limit is of rows that noise may have chosen."""
