"""Error bars: which output columns have them, and how each is computed (soundness.md 1.2).

A released number that is a sum of noisy ones has exact bars from the quantile of its noise. What is computed from
one released row is simulated for that row; what is made of several rows or releases (windows, sums, joins, scalar
subqueries) is simulated for all of them together, over replicas. Filters, orders and limits keep a row's bars; where a
limit chose rows by their noisy numbers, and for the largest or smallest of several, bars hold for all at once.
The laws are those of the draws that answer, so they are not known here.

In a relation over replicas each released number stands beside what the truth may be, once for each draw of a
simulation. Which rows there are, and in what order, is decided by the released numbers alone: filters, keys, joins,
partitions and orders read those, and only what is shown is computed from the replicas. So a sum or a share is simulated
over the rows that it was really made of.

House rules of replicas:

1. Both forms of a relation, with replicas (for the simulation) and without (for the answer), are made by the same
   code, so that the rows of one find their bars in the other by equal numbers.
2. What has no meaning under frozen rows is never guessed: it raises `NotSimulated`, and its bars are NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from ..plan.measures.formulas import Chosen, Linear
from ..plan.measures.measurements import Coord
from ..plan.privacy.rows import AddedUp, Release
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.catalog import OwnRows
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
    parts_in,
    size_of,
    substitute,
    walk,
)
from ..relation.relations import (
    AggregateCall,
    Block,
    Group,
    Join,
    OutputColumn,
    Relation,
    Scan,
    SetOperation,
    WindowCall,
    ends_in,
    filtered,
    grouped,
    nodes_in,
    projected,
    skipped,
    windowed,
    without_repeats,
)
from ..relation.types import BIGINT, BOOLEAN, DOUBLE, Kind
from .null_on_error import holds_estimate, with_own_error
from .public_parts import Needed, is_public, needed_below
from .quotients import Quotient, Reader

# --- which columns of an analyzed relation noise can move ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Noise:
    """Which columns noise can move, and whether it can move which rows there are."""

    columns: tuple[bool, ...]
    rows: bool = False
    is_kept: bool = False
    """Whether it is about the noise that is in an analyst's own tables already, and not about that of releases."""
    is_lawless: bool = False
    """Of that, about the noise alone of which no law is known."""

    def moves(self, exprs: Iterable[Expr]) -> bool:
        """Say whether noise can move any of the expressions."""
        return any(
            any(self.columns[index] for index in fields_of(expr))
            or (holds_estimate(expr) and not self.is_kept)
            or any(self._moves_within(part.relation) for part in parts_in(Scalar, expr))
            for expr in exprs
        )

    def _moves_within(self, node: Relation) -> bool:
        if self.is_lawless:
            found = _kept_noise(node, is_lawless=True)
            return found.rows or any(found.columns)
        return holds_kept_noise(node) if self.is_kept else not is_public(node)


def noisy_columns(node: Relation, plans: Mapping[Release, ReleasePlan]) -> tuple[bool, ...]:
    """Return for each column whether noise can move it: not keys, constants, and what public tables say alone.

    A rank by noisy numbers, or a number of rows that noise chose, is moved by noise too.
    """
    return _noise(node, plans).columns


def kept_noise(node: Relation) -> tuple[bool, ...]:
    """Return for each column whether noise can move it that was in an analyst's own tables before.

    Which draws that noise is of, and how they depend on each other and on the statement's own, the tables do not say:
    there are bars where the queries that made them do (`engine.workspace`).
    """
    return _kept_noise(node).columns


def noisy_rows(node: Relation, plans: Mapping[Release, ReleasePlan]) -> bool:
    """Say whether noise can move which rows there are: that of releases, or what was in own tables before."""
    return _noise(node, plans).rows or _kept_noise(node).rows


def holds_kept_noise(node: Relation) -> bool:
    """Say whether a relation reads own tables in which noise has moved something."""
    return any(one.is_chosen or any(one.noisy) for one in _own_in(node))


def has_laws(node: Relation) -> bool:
    """Say whether the laws of all noise may be known that is in the own tables that a relation reads."""
    return all(one.has_laws or not (one.is_chosen or any(one.noisy)) for one in _own_in(node))


def _own_in(node: Relation) -> Iterator[OwnRows]:
    """Yield where the rows of the own tables are that a relation reads, in subqueries too."""
    return (one.table.own for one in nodes_in(Scan, node) if one.table.own is not None)


def _kept_noise(node: Relation, *, is_lawless: bool = False) -> _Noise:
    if not holds_kept_noise(node):
        return _Noise((False,) * len(node.columns), is_kept=True, is_lawless=is_lawless)
    if isinstance(node, Scan):
        own = node.table.own
        assert own is not None
        if is_lawless:
            return _Noise(own.lawless, own.is_chosen and not own.has_laws, is_kept=True, is_lawless=True)
        return _Noise(own.noisy, own.is_chosen, is_kept=True)
    below = [_kept_noise(child, is_lawless=is_lawless) for child in node.reads]
    return _above(node, below)


def _noise(node: Relation, plans: Mapping[Release, ReleasePlan]) -> _Noise:
    if is_public(node):
        return _Noise((False,) * len(node.columns))
    if isinstance(node, Release):
        keys = len(node.keys)
        columns = (False,) * keys + (True,) * (len(node.columns) - keys)
        return _Noise(columns, rows=plans[node].keyed_by is not None)
    if isinstance(node, AddedUp):
        keys = len(node.by)
        return _Noise((False,) * keys + (True,) * (len(node.columns) - keys))
    return _above(node, [_noise(child, plans) for child in node.reads])


def _above(node: Relation, below: Sequence[_Noise]) -> _Noise:
    """Return what noise can move above a relation's last step, of what it moves below: one kind of noise."""
    if isinstance(node, Block):
        return _of_part(node, below[0])
    if isinstance(node, SetOperation):
        either = tuple(a or b for a, b in zip(below[0].columns, below[1].columns, strict=True))
        rows = below[0].rows or below[1].rows or (not node.all and any(either))
        return replace(below[0], columns=either, rows=rows)
    if isinstance(node, Join):
        both = replace(below[0], columns=below[0].columns + below[1].columns, rows=False)
        moved = both.moves([node.condition])
        if node.kind == "mark":
            return replace(below[0], columns=(*below[0].columns, moved or below[1].rows))
        return replace(both, rows=below[0].rows or below[1].rows or moved)
    return _Noise((True,) * len(node.columns), True)


def _of_part(node: Block, below: _Noise) -> _Noise:
    """Return what noise can move above the last part of a block.

    A number over rows, or groups, that noise chose is moved by it.
    """
    if node.group is not None and node.last == "group":
        keys = [below.moves([key]) for key in node.group.keys]
        chosen = below.rows or any(keys)
        calls = [
            chosen or below.moves([*call.args, *(() if call.filter is None else (call.filter,))])
            for call in node.group.aggregates
        ]
        return replace(below, columns=(*keys, *calls, *(False for _ in node.group.groupings)), rows=chosen)
    if node.last == "windows":
        moved = [
            below.rows or below.moves([*call.args, *call.partition, *(order.expr for order in call.orders)])
            for call in node.windows
        ]
        return replace(below, columns=(*below.columns, *moved))
    if node.last == "outputs":
        return replace(below, columns=tuple(below.moves([expr]) for expr in node.exprs))
    if node.last in ("where", "having"):
        return replace(below, rows=below.rows or below.moves([node.predicate]))
    return replace(below, rows=below.rows or (node.last != "orders" and any(below.columns)))


# --- error bars: which output columns have them, and how each is computed (soundness.md 1.2) ----------------


BAR_ENDS = frozenset({"dp_low", "dp_high"})
"""The functions of which `resolve_bars` makes columns."""

_MAX_TRACED = 1_000


@dataclass(frozen=True, slots=True)
class Bar:
    """The bars of one expression over a release's columns.

    `coordinates`: the noisy numbers that it is made of; none where its text alone is the answer. `terms`: those
    with their weights, when it is their sum and so has exact bars; None: to be simulated. `together`: the bars are
    to hold for all rows at once. `is_shown`: its one noisy number is the count that the release's rows were
    shown by, so its bars are those of a count that was shown. `chosen`: it is a value that was drawn with its ends.
    `is_cut`: a bound may leave out something of it, which moves the ends apart where its owner has measured how much.
    """

    expr: Expr
    coordinates: tuple[Coord, ...]
    terms: tuple[tuple[Coord, Fraction], ...] | None
    together: bool = False
    is_shown: bool = False
    chosen: Chosen | None = None
    is_cut: bool = False

    @property
    def is_even(self) -> bool:
        """Whether noise puts both ends as far away in every row, so that one half-width says it."""
        return self.terms is not None and not self.is_shown


@dataclass(frozen=True)
class WithBars(Relation):
    """A release's columns followed by low and high of each bar."""

    release: Release
    bars: tuple[Bar, ...]

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        return (*self.release.columns, *(OutputColumn(DOUBLE) for _ in self.bars for _ in range(2)))


def has_companions(root: Relation, plans: Mapping[Release, ReleasePlan]) -> tuple[bool, ...]:
    """Return for each column whether it is told with error bars: it is a number that noise can move.

    Not where noise can move it that was kept before and of which no law is known.
    """
    noisy, kept = noisy_columns(root, plans), kept_noise(root)
    lawless = _kept_noise(root, is_lawless=True).columns
    has_ends = any(lawless) and any(any(one.ends) for one in _own_in(root))  # whose bars are columns already
    return tuple(
        column.type.is_number and (is_noisy or (is_kept and not has_ends)) and not is_lawless
        for column, is_noisy, is_kept, is_lawless in zip(root.columns, noisy, kept, lawless, strict=True)
    )


def add_companions(
    root: Relation, plans: Mapping[Release, ReleasePlan], patterns: tuple[str, str]
) -> Relation:
    """Return the statement with low and high beside each numeric column that noise can move, named by the patterns,
    where % is the column's name."""
    exprs: list[Expr] = []
    names: list[str] = []
    for field_, is_barred in zip(root.row, has_companions(root, plans), strict=True):
        exprs.append(field_)
        names.append(field_.name)
        if is_barred:
            exprs += [Call(DOUBLE, "dp_low", (field_,)), Call(DOUBLE, "dp_high", (field_,))]
            names += [pattern.replace("%", field_.name) for pattern in patterns]
    return projected(root, exprs, names)


def resolve_bars(node: Relation, plans: Mapping[Release, ReleasePlan]) -> Relation:
    """Return the relation with every dp_low and dp_high replaced by a column or by NULL."""
    if not node.reads:
        return node
    node = node.over(*(resolve_bars(below, plans) for below in node.reads))
    if not ends_in(node, "outputs") or node.outputs is None:
        return node
    asked = dict.fromkeys(
        part.args[0] for expr in node.outputs for part in walk(expr)
        if part.calls(*BAR_ENDS)
    )  # fmt: skip
    if not asked:
        return node
    kept = _kept_noise(node.below)
    known = [expr for expr in asked if not kept.moves([expr])]
    source, found = _Descent(plans).carry(node.below, [_WantedBars(expr) for expr in known])
    places: dict[Expr, int | None] = {**dict.fromkeys(asked), **dict(zip(known, found, strict=True))}
    exprs = tuple(_resolved(expr, places) for expr in node.outputs)
    return projected(source, exprs, node.names, node.position)


def _resolved(expr: Expr, places: Mapping[Expr, int | None]) -> Expr:
    if expr.calls(*BAR_ENDS):
        place = places[expr.args[0]]
        if place is None:
            return Literal(DOUBLE, None)
        is_high = expr.calls("dp_high")
        column = Field(DOUBLE, place + is_high)
        whole = expr.args[0].type.is_integer
        return Call(DOUBLE, "ceil" if is_high else "floor", (column,)) if whole else column
    return map_children(expr, lambda child: _resolved(child, places))


@dataclass(frozen=True, slots=True)
class _WantedBars:
    """An expression whose bars are wanted; `together`: they are to hold for all rows at once."""

    expr: Expr
    together: bool = False


_Places = list[int | None]
"""Where the low end of each wanted bar stands, its high end behind it; None: it has no bars."""
_Carried = tuple[Relation, _Places]


@dataclass(frozen=True, slots=True)
class _Descent:
    """Carries bars up from where they can be had.

    Every method returns the relation with columns of low and high ends behind its own, and where those stand.
    """

    plans: Mapping[Release, ReleasePlan]

    def carry(self, node: Relation, wanted: Sequence[_WantedBars]) -> _Carried:
        """Return a relation with the bars of expressions over it."""
        if not wanted:
            return node, []
        if is_public(node):
            # what is noisy here are scalar subqueries alone
            return self._joint(node, node, wanted, _nowhere(wanted), list(wanted))
        if not ends_in(node, "outputs") and any(_rounded(one.expr) is not None for one in wanted):
            return self._rounded(node, wanted)
        if isinstance(node, (Release, WithBars)):
            return self._release(node, wanted)
        if ends_in(node, "where", "having", "orders", "limit"):
            chosen = node.last == "limit" and _is_chosen(node, self.plans)
            below, places = self.carry(
                node.below, [replace(one, together=one.together or chosen) for one in wanted]
            )
            return node.over(below), places
        if ends_in(node, "outputs"):
            return self._project(node, node.exprs, wanted)
        return self._above(node, wanted)

    def _rounded(self, node: Relation, wanted: Sequence[_WantedBars]) -> _Carried:
        """Carry the bars of what is rounded, and round their ends: exact where those are, and no simulation."""
        inner = [replace(one, expr=_rounded(one.expr) or one.expr) for one in wanted]
        below, found = self.carry(node, inner)
        columns: list[Expr] = list(below.row)
        own = len(columns)
        places = list(found)
        for index, (one, place) in enumerate(zip(wanted, found, strict=True)):
            if place is not None and _rounded(one.expr) is not None:
                places[index] = len(columns)
                columns += [
                    Call(DOUBLE, "cast", (_around(one.expr, Field(DOUBLE, place + end)),)) for end in (0, 1)
                ]
        if len(columns) == own:
            return below, places
        names = (*(column.name for column in below.columns), *("" for _ in columns[own:]))
        return projected(below, columns, names), places

    def _release(self, node: Release | WithBars, wanted: Sequence[_WantedBars]) -> _Carried:
        release, known = (node.release, node.bars) if isinstance(node, WithBars) else (node, ())
        bars = list(known)
        width = len(release.columns)
        places: _Places = []
        others: list[_WantedBars] = []
        for one in wanted:
            bar = (
                _bar(release, self.plans[release], one)
                if max(fields_of(one.expr), default=0) < width
                else None
            )
            if bar is None:
                others.append(one)
                places.append(None)
                continue
            if bar not in bars:
                bars.append(bar)
            places.append(width + 2 * bars.index(bar))
        source = WithBars(release, tuple(bars)) if bars else release
        return self._joint(node, source, wanted, places, others)

    def _project(self, node: Block, own: tuple[Expr, ...], wanted: Sequence[_WantedBars]) -> _Carried:
        inner = [replace(one, expr=substitute(one.expr, own)) for one in wanted]
        small = [one for one in inner if size_of(one.expr, _MAX_TRACED) < _MAX_TRACED]
        below, found = self.carry(node.below, small)
        exprs, names, places = list(own), list(node.names), dict[_WantedBars, int]()
        for one, place in zip(small, found, strict=True):
            if place is not None and one not in places:
                places[one] = len(exprs)
                exprs += [Field(DOUBLE, place), Field(DOUBLE, place + 1)]
                names += ["", ""]
        carried = projected(below, tuple(exprs), tuple(names), node.position)
        return carried, [places.get(one) for one in inner]

    def _above(self, node: Relation, wanted: Sequence[_WantedBars]) -> _Carried:
        """Carry what stands on one input alone from there, and simulate the rest over all of them."""
        source, places = node, _nowhere(wanted)
        if ends_in(node, "windows"):
            source, places = self._sides(node, node.reads, wanted)
        elif isinstance(node, Join):
            source, places = self._sides(node, node.reads[: 1 if node.kind == "mark" else 2], wanted)
        elif isinstance(node, SetOperation) and node.kind == "union" and node.all:
            source, places = self._union(node, wanted)
        elif ends_in(node, "group") and node.group is not None:
            source, places = self._extremes(node, node.group, wanted)
        others = [one for one, place in zip(wanted, places, strict=True) if place is None]
        return self._joint(node, source, wanted, places, others)

    def _sides(self, node: Relation, sides: tuple[Relation, ...], wanted: Sequence[_WantedBars]) -> _Carried:
        """Carry bars of what reads the columns of one side alone."""
        carried: list[Relation] = []
        places = _nowhere(wanted)
        start = grown = 0
        for side in sides:
            width = len(side.columns)
            mine = {
                index: replace(one, expr=moved(one.expr, lambda i, by=start: i - by))  # type: ignore[misc]
                for index, one in enumerate(wanted)
                if (read := fields_of(one.expr)) and start <= min(read) and max(read) < start + width
            }
            below, found = self.carry(side, list(mine.values()))
            carried.append(below)
            for index, place in zip(mine, found, strict=True):
                places[index] = None if place is None else len(node.columns) + grown + place - width
            grown += len(below.columns) - width
            start += width
        return (_regrown(node, sides, carried), places) if grown else (node, places)

    def _union(self, node: SetOperation, wanted: Sequence[_WantedBars]) -> _Carried:
        """Carry bars of what each side has for itself, NULL where a side has none."""
        sides: list[Relation] = []
        have = set[int]()
        for side in (node.left, node.right):
            types = [column.type for column in side.columns]
            same = types == [column.type for column in node.columns]
            mine = {
                index: replace(one, expr=_typed(one.expr, side))
                for index, one in enumerate(wanted)
                if same or one.expr.column is not None
            }
            below, found = self.carry(side, list(mine.values()))
            ends = {index: place for index, place in zip(mine, found, strict=True) if place is not None}
            have |= ends.keys()
            exprs: list[Expr] = [Field(type_, index) for index, type_ in enumerate(types)]
            for index in range(len(wanted)):
                for end in (0, 1):
                    exprs.append(Field(DOUBLE, ends[index] + end) if index in ends else Literal(DOUBLE, None))
            sides.append(projected(below, exprs))
        if not have:
            return node, _nowhere(wanted)
        own = len(node.columns)
        outputs = (*node.outputs, *(OutputColumn(DOUBLE) for _ in range(2 * len(wanted))))
        whole = replace(node, left=sides[0], right=sides[1], outputs=outputs)
        return whole, [own + 2 * index if index in have else None for index in range(len(wanted))]

    def _extremes(self, node: Block, group: Group, wanted: Sequence[_WantedBars]) -> _Carried:
        """Carry bars of the largest and the smallest: the extremes of ends that hold for all rows at once."""
        first = len(group.keys)
        calls = {
            index: group.aggregates[one.expr.column - first]
            for index, one in enumerate(wanted)
            if one.expr.column is not None and first <= one.expr.column < first + len(group.aggregates)
        }
        mine = {index: call for index, call in calls.items() if call.row.is_extreme}
        below, found = self.carry(node.below, [_WantedBars(call.args[0], True) for call in mine.values()])
        added: list[AggregateCall] = []
        places = _nowhere(wanted)
        for (index, call), place in zip(mine.items(), found, strict=True):
            if place is not None:
                places[index] = len(node.columns) + len(added)
                added += [replace(call, type=DOUBLE, args=(Field(DOUBLE, place + end),)) for end in (0, 1)]
        if not added:
            return node, places
        # the new ends come before the GROUPING() bits: put behind them again
        whole = grouped(below, replace(group, aggregates=(*group.aggregates, *added)), node.position)
        split = first + len(group.aggregates)
        order = [
            *range(split),
            *range(split + len(added), len(whole.columns)),
            *range(split, split + len(added)),
        ]
        return _reordered(whole, order), places

    def _joint(
        self,
        node: Relation,
        source: Relation,
        wanted: Sequence[_WantedBars],
        places: _Places,
        others: list[_WantedBars],
    ) -> _Carried:
        """Return `source`, which is `node` with some bars, with the others' bars simulated over all of it."""
        if not others:
            return source, places
        quotients = [self._quotient(one, node) for one in others]
        if None in quotients and any(quotients):  # those that are tested by themselves first
            tested = [one for one, quotient in zip(others, quotients, strict=True) if quotient is not None]
            source, places = self._joint(node, source, wanted, places, tested)
            others = [one for one, quotient in zip(others, quotients, strict=True) if quotient is None]
            quotients = [None] * len(others)
        try:
            ends, found = simulation_of(node, tuple((one.expr, one.together) for one in others), self.plans)
            if ends is None:
                return source, places
            known = tuple(
                one for one, place in zip(quotients, found, strict=True) if place is not None and one
            )
            if len(known) == len(ends.together):
                barred = [one.expr for one, place in zip(others, found, strict=True) if place is not None]
                ends = _with_tests(ends, node, barred, known, self.plans)
            rows = numbered(source, fields_of(*(one.expr for one in others)), self.plans)
        except NotSimulated:
            return source, places
        width = len(rows.node.columns)
        equal = tuple(
            Call(BOOLEAN, "is_not_distinct", (one, Field(one.type, width + index)))
            for index, one in enumerate(rows.identity)
        )
        joined = Join("left", rows.node, ends, conjunction(equal))
        start = width + ends.width
        added = tuple(Field(DOUBLE, start + i) for i in range(2 * len(ends.together)))
        exprs = (*rows.columns, *added)
        own = len(rows.columns)
        numbers = dict(zip(others, found, strict=True))
        all_places = [
            place if place is not None or (number := numbers.get(one)) is None else own + 2 * number
            for one, place in zip(wanted, places, strict=True)
        ]
        return projected(joined, exprs), all_places

    def _quotient(self, wanted: _WantedBars, node: Relation) -> Quotient | None:
        """Return what an expression is a quotient of, whose bar is made by a test; None: it is simulated."""
        return Reader(self.plans, _release_of).quotient(wanted.expr, node)


def _release_of(node: Relation) -> Release | None:
    if isinstance(node, WithBars):
        return node.release
    return node if isinstance(node, Release) else None


def _bar(release: Release, plan: ReleasePlan, wanted: _WantedBars) -> Bar | None:
    """Return the bar of an expression of one released row; None: it is none, or has to be simulated with others."""
    expr = wanted.expr
    used = [i - len(release.keys) for i in sorted(fields_of(expr)) if i >= len(release.keys)]
    if not used or any(parts_in(Scalar, expr)):
        return None
    if plan.is_empty:
        return Bar(expr, (), ())
    formula = plan.formulas[used[0]]
    if (
        isinstance(formula, Chosen)
        and formula.ends is not None
        and expr.column is not None
        and not wanted.together
    ):
        return Bar(expr, formula.coordinates, None, chosen=formula)
    if any(
        isinstance(plan.formulas[i], Chosen) for i in used
    ):  # what is known is how far its rank may be off
        return None
    coordinates = tuple(sorted({c for i in used for c in plan.formulas[i].coordinates}))
    shown = any(one.measure == plan.counted for one in coordinates)
    if expr.column is not None:
        formula = plan.formulas[used[0]]
        if isinstance(formula, Linear) and (len(formula.terms) == 1 or not shown):
            is_single = plan.bounding.per_row and plan.bounding.numbered is None
            is_cut = release.rows.table_alone is not None and not is_single
            return Bar(expr, coordinates, formula.terms, wanted.together, shown, is_cut=is_cut)
    return None if shown or wanted.together else Bar(expr, coordinates, None)


def _is_chosen(node: Block, plans: Mapping[Release, ReleasePlan]) -> bool:
    """Say whether a limit chooses rows by their noisy numbers; it leaves out none of groups that were chosen before."""
    below = skipped(node.below, "where", "having", "outputs", "limit")
    if not ends_in(below, "orders"):
        return False
    source, count = skipped(below.below, "outputs"), (node.limit or (None,))[0]
    top = plans[source].top if isinstance(source, Release) else None
    if top is not None and count is not None and count >= top.count:
        return False
    noisy = noisy_columns(below.below, plans)
    return any(noisy[index] for order in below.orders for index in fields_of(order.expr))


def _rounded(expr: Expr) -> Expr | None:
    """Return what an expression rounds to a number of digits, or casts, as a number with a fraction; else None."""
    inner = expr
    while inner.calls("round", "cast") and _is_fraction(inner):
        if not _is_fraction(inner.args[0]) or not all(arg.is_constant for arg in inner.args[1:]):
            break
        inner = inner.args[0]
    return None if inner is expr or not fields_of(inner) else inner


def _around(expr: Expr, end: Expr) -> Expr:
    """Return an end of what an expression rounds, rounded as it is."""
    assert isinstance(expr, Call)
    inner = expr.args[0]
    below = _around(inner, end) if _rounded(expr) != inner else replace(end, type=inner.type)
    return replace(expr, args=(below, *expr.args[1:]))


def _is_fraction(expr: Expr) -> bool:
    return expr.type.kind in (Kind.NUMERIC, Kind.DOUBLE)


def _nowhere(wanted: Sequence[_WantedBars]) -> _Places:
    return [None] * len(wanted)


def _typed(expr: Expr, side: Relation) -> Expr:
    """Return an expression over a union as one over a side, where a column may have a narrower type."""
    return expr if expr.column is None else Field(side.columns[expr.column].type, expr.column)


def _regrown(node: Relation, sides: tuple[Relation, ...], carried: list[Relation]) -> Relation:
    """Return a node over inputs that have more columns: its own columns first, then the new ones in order."""
    own: list[int] = []
    new: list[int] = []
    start = 0
    for side, below in zip(sides, carried, strict=True):
        own += range(start, start + len(side.columns))
        new += range(start + len(side.columns), start + len(below.columns))
        start += len(below.columns)
    if not isinstance(node, Join):
        whole = node.over(*carried)
    else:
        right = carried[1] if len(carried) > 1 else node.right
        places = [*own, *range(start, start + len(right.columns))]
        condition = moved(node.condition, lambda index: places[index])
        whole = replace(node, left=carried[0], right=right, condition=condition)
    return _reordered(whole, [*own, *range(start, len(whole.columns)), *new])


def _reordered(node: Relation, order: Sequence[int]) -> Relation:
    row = node.row
    return projected(node, (row[index] for index in order), (row[index].name for index in order))


# --- a relation over replicas of its releases ---------------------------------------------------------------


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
    _INPUTS: ClassVar[tuple[str, ...]] = ("simulation",)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        ends = (OutputColumn(DOUBLE) for _ in self.together for _ in range(2))
        return (*self.simulation.columns[: self.width], *ends)


@dataclass(frozen=True)
class TestedEnds(Ends):
    """The same of quotients, whose bars are made by tests where the laws allow it, and simulated where not.

    `tested`: the column that numbers a row, then of each quotient its released value, and the first row of its part.
    """

    tested: Relation
    quotients: tuple[Quotient, ...]
    _INPUTS: ClassVar[tuple[str, ...]] = ("simulation", "tested")


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


def _with_tests(
    ends: Ends, node: Relation, exprs: Sequence[Expr], quotients: tuple[Quotient, ...],
    plans: Mapping[Release, ReleasePlan],
) -> Ends:  # fmt: skip
    """Return what simulates expressions over a relation with what tests them as quotients. Raises NotSimulated."""
    below = node.below if ends_in(node, "windows") else node
    lifted = _Lifter(plans, replicas=False).lift(below, frozenset(range(len(below.columns))))
    (number,) = lifted.identity
    calls = [call.map(lifted.released) for call in node.windows] if ends_in(node, "windows") else []
    own, width = len(calls), len(lifted.node.columns)
    for quotient in quotients:
        part = quotient.denominator.part
        partition = () if part is None else tuple(map(lifted.released, part.partition))
        calls.append(WindowCall(BIGINT, "min", (number,), partition, (), None))
    places = (*lifted.base, *(width + i for i in range(own)))
    columns: list[Expr] = [number]
    for index, expr in enumerate(exprs):
        columns += [moved(expr, lambda i: places[i]), Field(BIGINT, width + own + index)]
    tested = projected(windowed(lifted.node, tuple(calls)), columns)
    return TestedEnds(ends.simulation, ends.width, ends.together, tested, quotients)


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
