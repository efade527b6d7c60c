"""The query after the release: an analyzed relation printed as one SELECT for the sealed engine.

    >>> above("SELECT kind, COUNT(*) / 2 FROM card GROUP BY kind")
    SELECT t.c0 AS c0,
      TRY_CAST((CAST(TRY_CAST((t.c1) AS BIGINT) AS HUGEINT)
        // CAST(TRY_CAST((CAST(2 AS INTEGER)) AS BIGINT) AS HUGEINT)) AS BIGINT) AS c1
    FROM (SELECT k0 AS c0, TRY_CAST(TRY(CAST(m0 AS HUGEINT)) AS BIGINT) AS c1 FROM "r0") AS t

House rule: post-processing never raises (soundness.md 1.2). Every operator that could is printed by one
of the forms of `null_on_error`; what has none is not in the tables below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from ..errors import Refusal
from ..plan.dialects.quote import identifier, table_name
from ..plan.measures.formulas import Bivariate, Formula, Linear, Within
from ..plan.measures.measurements import Coord
from ..plan.privacy.rows import AddedUp, Release
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.aggregates import Asks
from ..relation.catalog import Table
from ..relation.expressions import Call, Expr, Field, Literal, Scalar
from ..relation.functions import FUNCTIONS
from ..relation.relations import (
    AggregateCall,
    Block,
    Join,
    Order,
    Relation,
    Scan,
    SetOperation,
    Values,
    WindowCall,
    ends_in,
)
from ..relation.types import BIGINT
from ..sql.scope import Outer
from . import null_on_error
from .bars import Bar, Draws, Ends, Numbered, Replicated, ReplicatedSums, TestedEnds, WithBars
from .null_on_error import cannot_overflow, engine_type, keep, to_double, with_own_error
from .print_calls import CALLS, STANDS_AT, kept_mark, print_aggregate, print_join, print_literal, print_marked
from .print_calls import FORMS as PRINTED_FORMS
from .public_parts import Fetched, Needed
from .rows import stored_columns, unread


@dataclass
class PublicPrinter:
    """Prints analyzed relations; collects the released and public tables that the query reads.

    A relation is printed as a SELECT with columns c0, c1, …; release number i is table "r<i>" with columns k0…, m0…,
    for the error bars of a row half0…, or below0…, above0…, or lo0…, hi0…, and "row", its rows' numbers,
    when it is among `numbered`. Bars of several rows together are table "b<i>", number i of `simulations`; one reads
    replicas, tables "s<i>", and the draws. Part number i is table "p<i>" with those of its columns that are read; those
    read are `read`. A public table is "t_<name>"; `in_database` prints for the owner's engine: the table itself, and no
    operator whose errors are NULL by the sealed engine's settings alone.
    """

    releases: Mapping[Release, tuple[int, ReleasePlan]]
    parts: Mapping[Relation, tuple[int, Needed]] = field(default_factory=dict)
    in_database: bool = False
    tables: dict[str, Table] = field(default_factory=dict)
    bars: dict[int, tuple[Bar, ...]] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    numbered: set[int] = field(default_factory=set)
    replicated: dict[int, set[Coord]] = field(default_factory=dict)
    read: set[int] = field(default_factory=set)
    simulations: dict[Ends, int] = field(default_factory=dict)
    _around: list[list[str]] = field(default_factory=list)

    # --- relations ---------------------------------------------------------------------------------

    def relation(self, node: Relation) -> str:
        """Return the SELECT of a relation."""
        return _RELATIONS[type(node)](self, node)

    def source(self, node: Relation) -> str:
        """Return a relation as a FROM item."""
        return f"({self.relation(node)}) AS t"

    def row(self, node: Relation) -> list[str]:
        """Return the column names of a relation printed as a FROM item."""
        return [f"t.c{i}" for i in range(len(node.columns))]

    @contextmanager
    def beside(self, count: int) -> Iterator[tuple[str, list[str]]]:
        """Give the name of a left side and of its columns, which what is printed in the block may read."""
        name = f"l{len(self._around)}"
        own = [f"{name}.c{i}" for i in range(count)]
        self._around.append(own)
        try:
            yield name, own
        finally:
            self._around.pop()

    def over_release(self, release: Release, expr: Expr, own_error: tuple[str, str]) -> str:
        """Return a replica of an expression over a release's columns as one over its stored columns k0…, m0….

        `own_error`: the columns that have the draw's number and the row's, for the own errors of estimates.
        """
        row = _release_row(self, release)[1]
        draw, number = (Field(BIGINT, len(row) + i) for i in (0, 1))
        return self.expr(with_own_error(expr, draw, (number,)), [*row, *map(identifier, own_error)])

    # --- expressions -------------------------------------------------------------------------------

    def expr(self, expr: Expr, row: Sequence[str]) -> str:
        """Return a scalar expression over the columns of a row."""
        if expr.column is not None:
            return row[expr.column]
        if isinstance(expr, Literal):
            return print_literal(expr)
        if isinstance(expr, Outer):
            return self.expr(expr.expr, self._around[-1])
        if isinstance(expr, Scalar):
            return null_on_error.scalar_subquery(self.relation(expr.relation))
        assert isinstance(expr, Call)
        if expr.function in ("sub", "mod", "trunc") and (exact := self._microseconds(expr, row)):
            return f"({exact} / 1e6)"
        args = [self.expr(arg, row) for arg in expr.args]
        if self.in_database and expr.function in ("div", "mod") and expr.type.is_integer:
            args[1] = _divisor(expr.args[1], args[1])
        if self.in_database and expr.function in ("add", "sub", "mul") and cannot_overflow(expr):
            return f"({to_double(args[0])} {FUNCTIONS[expr.function].symbol} {to_double(args[1])})"
        form = CALLS.get(expr.function)
        if form is None:
            raise Refusal(f"{expr.function}() cannot be used here", sqlstate="PV202", position=expr.position)
        return form(expr, args)

    def _microseconds(self, expr: Expr, row: Sequence[str]) -> str | None:
        """Return seconds that are made of moments' seconds since 1970 as whole microseconds; None for other numbers.

        A double has not the digits for a microsecond of some hundred years, nor to tell a day from just before its end.
        """
        if not isinstance(expr, Call):
            return None
        if expr.calls("extract") and expr.literal(0, str) == "epoch":
            return f"epoch_us(CAST({self.expr(expr.args[1], row)} AS TIMESTAMP))"
        if expr.calls("sub"):
            sides = [self._microseconds(arg, row) for arg in expr.args]
            return None if None in sides else f"({sides[0]} - {sides[1]})"
        is_cut = expr.calls("trunc") and len(expr.args) == 1
        parted = expr.args[0] if is_cut else expr
        if not (isinstance(parted, Call) and parted.calls("div" if is_cut else "mod")):
            return None
        whole, inside = parted.args[1].constant_as(int), self._microseconds(parted.args[0], row)
        if not whole or inside is None:
            return None
        return f"({inside} // {whole * 10**6} * 1000000)" if is_cut else f"({inside} % {whole * 10**6})"


def _divisor(expr: Expr, printed: str) -> str:
    """Return an integer divisor with NULL for zero: an engine of somebody else's settings may raise."""
    return printed if isinstance(expr, Literal) and expr.value != 0 else keep(printed, "v <> 0")


# --- relations -----------------------------------------------------------------------------------------


def _select(columns: Sequence[str], source: str, tail: str = "") -> str:
    shown = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(columns)) or "1 AS one"
    return f"SELECT {shown} FROM {source}{tail}"


def _release_row(printer: PublicPrinter, node: Release) -> tuple[int, list[str]]:
    number, plan = printer.releases[node]
    printer.used.add(number)
    columns = [f"k{i}" for i in range(len(node.keys))]
    calls = zip(plan.formulas, node.aggregates, strict=True)
    return number, columns + [_value(plan, formula, call) for formula, call in calls]


def _value(plan: ReleasePlan, formula: Formula, call: AggregateCall) -> str:
    if plan.is_empty and (not isinstance(formula, Linear) or call.row.asks is Asks.DIRECT):
        return f"CAST(NULL AS {engine_type(call.type) if call.type.is_temporal else 'DOUBLE'})"
    return formula.sql(call.type, _noise(plan, formula))


def _noise(plan: ReleasePlan, formula: Formula) -> tuple[float, float]:
    """Return the variances of the noise on the squares and the sum of X, as the plan has them."""
    if plan.is_empty or not isinstance(formula, Bivariate):
        return 0.0, 0.0
    squares, total = (
        sum(float(weight**2 * law.spread) for law, weight in plan.noises(one))
        for one in (formula.x.squares, formula.x.total)
    )
    return squares, total


def _release(printer: PublicPrinter, node: Release) -> str:
    number, columns = _release_row(printer, node)
    return _select(columns, f'"r{number}"')


def _added_up(printer: PublicPrinter, node: AddedUp) -> str:
    """Print a release's cells added up to groups of fewer keys, in the order of their first cells.

    Counts and sums are rounded and then added; all else is computed from added coordinates (soundness.md 1.18).
    """
    number, plan = printer.releases[node.release]
    printer.used.add(number)
    made = _keys_of(printer, node, "")
    source, shown = _sums(plan, node, made, f"{STANDS_AT} AS place", f'"r{number}"', "min(place) AS place")
    return _select([*made, *shown], source, " ORDER BY place")


def _keys_of(printer: PublicPrinter, node: AddedUp, table: str) -> dict[str, str]:
    """Return what rows are added up by, by its name: as SELECT has it over the release's keys."""
    row = [f"{table}k{i}" for i in range(len(node.release.keys))]
    shown = [printer.expr(key, row) for key in node.keys]
    return {
        f"k{one}" if isinstance(one, int) else f"g{i}": sql if isinstance(one, int) else f"{sql} AS g{i}"
        for i, (one, sql) in enumerate(zip(node.by, shown, strict=True))
    }


def _sums(
    plan: ReleasePlan, node: AddedUp, made: Mapping[str, str], more: str, table: str, last: str
) -> tuple[str, list[str]]:
    """Return a FROM item of cells added up by what is `made` of their keys, and each aggregate over it; `more` and
    `last` stand beside."""
    cells, added, shown = [], [], []
    spread = set[Coord]()
    for index, (formula, call) in enumerate(zip(plan.formulas, node.release.aggregates, strict=True)):
        assert formula.compared is not None, "a value that was chosen is no sum of others"
        parts = formula.added(f"v{index}", call.type)
        if parts is not None:
            cells.append(f"{parts[0]} AS v{index}")
            added.append(f"{parts[1]} AS v{index}")
            shown.append(f"v{index}")
        else:
            shown.append(_value(plan, formula, call))
            spread.update(formula.coordinates)
    needed = sorted(spread)
    cells += [one.column for one in needed]
    added += [f"COALESCE(sum(CAST({one.column} AS DOUBLE)), 0e0) AS {one.column}" for one in needed]
    keys = list(made)
    by = [*keys, *([last] if more == last else [])]
    inner = f"SELECT {', '.join([*made.values(), *cells, more])} FROM {table}"
    grouped = f" GROUP BY {', '.join(by)}" if by else ""
    outer = f"SELECT {', '.join([*keys, *added, last])} FROM ({inner}) AS t{grouped}"
    return f"({outer}) AS t", shown


def _replicated_sums(printer: PublicPrinter, node: ReplicatedSums) -> str:
    """Print rows that are added up beside the replicas of theirs, added up draw by draw from those of the cells."""
    sums = node.sums
    number, plan = printer.releases[sums.release]
    made = _keys_of(printer, sums, "r.")
    keys = list(made)
    printer.replicated.setdefault(number, set()).update(c for one in plan.formulas for c in one.coordinates)
    read = ", ".join([*made.values(), "s.*"])
    cells = f'(SELECT {read} FROM "r{number}" AS r JOIN "s{number}" AS s ON r."row" = s."row") AS t'
    source, shown = _sums(plan, sums, dict(zip(keys, keys, strict=True)), '"draw"', cells, '"draw"')
    measures = [shown[index - len(keys)] for index in node.measures]
    truths = ", ".join([*keys, *(f"{sql} AS v{i}" for i, sql in enumerate(measures)), '"draw"'])
    same = " AND ".join(f"b.c{i} IS NOT DISTINCT FROM v.{key}" for i, key in enumerate(keys)) or "TRUE"
    columns = [f"b.c{i}" for i in range(len(sums.columns))] + [f"v.v{i}" for i in range(len(measures))]
    both = f"({_added_up(printer, sums)}) AS b JOIN (SELECT {truths} FROM {source}) AS v ON {same}"
    return _select([*columns, 'v."draw"'], both)


def _with_bars(printer: PublicPrinter, node: WithBars) -> str:
    """Print a release with its error bars, from columns of the table: a half-width, or both simulated ends."""
    number, columns = _release_row(printer, node.release)
    known = list(printer.bars.get(number, ()))
    row = list(columns)
    for bar in node.bars:
        if bar not in known:
            known.append(bar)
        number_of_bar = known.index(bar)
        if bar.is_even:
            names = ("below", "above") if bar.is_cut else ("half", "half")
            columns += _exact_ends(
                printer, node.release, bar, row, [f"{one}{number_of_bar}" for one in names]
            )
        else:
            columns += [f"{end}{number_of_bar}" for end in ("lo", "hi")]
    printer.bars[number] = tuple(known)
    return _select(columns, f'"r{number}"')


def _exact_ends(
    printer: PublicPrinter, release: Release, bar: Bar, row: Sequence[str], widths: Sequence[str]
) -> list[str]:
    """Return the ends of a bar so far below and above the number, those of what has limits within them."""
    _, plan = printer.releases[release]
    index = release.aggregate_at(bar.expr)
    formula = None if index is None else plan.formulas[index]
    if not isinstance(formula, Within):
        centre = f"CAST({printer.expr(bar.expr, row)} AS DOUBLE)"
        return [f"({centre} {sign} {one})" for sign, one in zip("-+", widths, strict=True)]
    centre = formula.free.double()
    return [formula.within(f"({centre} {sign} {one})") for sign, one in zip("-+", widths, strict=True)]


def _numbered(printer: PublicPrinter, node: Numbered) -> str:
    """Print a release with its rows' numbers, which stand in its table."""
    release = node.source.release if isinstance(node.source, WithBars) else node.source
    assert isinstance(release, Release)
    number = printer.releases[release][0]
    printer.numbered.add(number)
    plain = printer.relation(node.source)
    assert plain.endswith(f' FROM "r{number}"')
    head = plain.removesuffix(f' FROM "r{number}"')
    return f'{head}, "row" AS c{len(node.source.columns)} FROM "r{number}"'


def _replicated(printer: PublicPrinter, node: Replicated) -> str:
    """Print a release beside its replicas, table "s<i>": m0… at a draw, with the row's number and the draw's."""
    number, columns = _release_row(printer, node.release)
    plan = printer.releases[node.release][1]
    printer.numbered.add(number)
    shown = ", ".join(f"{sql} AS b{i}" for i, sql in enumerate(columns))
    measures = [columns[index] for index in node.measures]
    formulas = [plan.formulas[index - len(node.release.keys)] for index in node.measures]
    printer.replicated.setdefault(number, set()).update(c for one in formulas for c in one.coordinates)
    truths = "".join(f", {sql} AS v{i}" for i, sql in enumerate(measures))
    base = [f"b.b{i}" for i in range(len(columns))] + [f"v.v{i}" for i in range(len(measures))]
    source = (
        f'(SELECT {shown}, "row" FROM "r{number}") AS b'
        f' JOIN (SELECT "row", "draw"{truths} FROM "s{number}") AS v ON b."row" = v."row"'
    )
    return _select([*base, 'b."row"', 'v."draw"'], source)


def _draws(printer: PublicPrinter, node: Relation) -> str:
    return _select(['"draw"'], '"draws"')


def _ends(printer: PublicPrinter, node: Ends) -> str:
    number = printer.simulations.setdefault(node, len(printer.simulations))
    return _select([f"c{i}" for i in range(len(node.columns))], f'"b{number}"')


def _scan(printer: PublicPrinter, node: Scan) -> str:
    if node.table.unit is not None:
        raise AssertionError("a private table is not printed here")
    name = f"t_{node.table.name}"
    printer.tables[name] = node.table
    if printer.in_database:
        return _select(stored_columns(node.table), table_name(node.table.place))
    return _select([f"c{i}" for i in range(len(node.columns))], identifier(name))


def _fetched(printer: PublicPrinter, node: Fetched) -> str:
    number, needed = printer.parts[node.source]
    printer.read.add(number)
    columns = [f"c{i}" if i in needed else unread(column.type) for i, column in enumerate(node.columns)]
    return _select(columns, f'"p{number}"')


def _values(printer: PublicPrinter, node: Values) -> str:
    if not node.outputs:
        return "SELECT 1 AS one"
    types = [engine_type(column.type) for column in node.outputs]
    if not node.rows:
        empty = ", ".join(f"CAST(NULL AS {t}) AS c{i}" for i, t in enumerate(types))
        return f"SELECT {empty} WHERE FALSE"
    rows = ", ".join(
        "(" + ", ".join(f"CAST({print_literal(v)} AS {t})" for v, t in zip(row, types, strict=True)) + ")"
        for row in node.rows
    )
    names = ", ".join(f"c{i}" for i in range(len(types)))
    return f"SELECT * FROM (VALUES {rows}) AS v({names})"


def _block(printer: PublicPrinter, node: Block) -> str:
    """Print a block part by part, each as a SELECT over what the parts before it leave."""
    return _PARTS[node.last](printer, node)


def _filter(printer: PublicPrinter, node: Block) -> str:
    below = node.below
    if isinstance(below, Join) and (kept := kept_mark(node.predicate, below)) is not None:
        sides = printer.relation(below.left), printer.relation(below.right)
        return print_marked(below, kept, *sides, printer.expr)
    predicate = printer.expr(node.predicate, printer.row(below))
    return _select(printer.row(below), printer.source(below), f" WHERE {predicate}")


def _project(printer: PublicPrinter, node: Block) -> str:
    """Print a projection, taking ORDER BY and LIMIT right below it into the same SELECT to keep the order."""
    below, tail = _tail(printer, node.below)
    columns = [printer.expr(expr, printer.row(below)) for expr in node.exprs]
    return _select(columns, printer.source(below), tail)


def _ordered(printer: PublicPrinter, node: Block) -> str:
    below, tail = _tail(printer, node)
    return _select(printer.row(below), printer.source(below), tail)


def _tail(printer: PublicPrinter, node: Relation) -> tuple[Relation, str]:
    """Return what stands below ORDER BY and LIMIT, and these two as SQL."""
    limit = ""
    if ends_in(node, "limit") and node.limit is not None:
        count, offset = node.limit
        limit = "" if count is None else f" LIMIT {count}"
        limit += f" OFFSET {offset}" if offset else ""
        node = node.below
    if not ends_in(node, "orders"):
        return node, limit
    return node.below, f" ORDER BY {_orders(printer, node.orders, printer.row(node.below))}{limit}"


def _orders(printer: PublicPrinter, orders: Sequence[Order], row: Sequence[str]) -> str:
    return ", ".join(
        f"{printer.expr(order.expr, row)} {'DESC' if order.descending else 'ASC'} "
        f"NULLS {'FIRST' if order.nulls_first else 'LAST'}"
        for order in orders
    )


def _distinct(printer: PublicPrinter, node: Block) -> str:
    below, tail = _tail(printer, node.below)
    if tail:
        return f"SELECT DISTINCT * FROM ({_select(printer.row(below), printer.source(below), tail)}) AS t"
    return f"SELECT DISTINCT * FROM {printer.source(node.below)}"


def _group(printer: PublicPrinter, node: Block) -> str:
    row, group = printer.row(node.below), node.group
    assert group is not None
    keys = [printer.expr(key, row) for key in group.keys]
    inner = [f"{sql} AS g{i}" for i, sql in enumerate(keys)]
    aggregates = [_aggregate_call(printer, call, row) for call in group.aggregates]
    names = [f"g{i}" for i in range(len(keys))]
    bits = [f"CAST(GROUPING({', '.join(f'g{i}' for i in wanted)}) AS INTEGER)" for wanted in group.groupings]
    sets = ", ".join("(" + ", ".join(f"g{i}" for i in chosen) + ")" for chosen in group.sets)
    tail = f" GROUP BY GROUPING SETS ({sets})" if keys else ""
    extended = f"(SELECT t.*{''.join(', ' + item for item in inner)} FROM {printer.source(node.below)}) AS t"
    return _select([*names, *aggregates, *bits], extended, tail)


def _aggregate_call(printer: PublicPrinter, call: AggregateCall, row: Sequence[str]) -> str:
    tail = "" if call.filter is None else f" FILTER (WHERE {printer.expr(call.filter, row)})"
    orders = f" ORDER BY {_orders(printer, call.orders, row)}" if call.orders else ""
    args = [printer.expr(arg, row) for arg in call.args]
    return print_aggregate(call, args, orders, tail, in_database=printer.in_database)


def _window(printer: PublicPrinter, node: Block) -> str:
    row = printer.row(node.below)
    columns = [*row, *(_window_call(printer, call, row) for call in node.windows)]
    return _select(columns, printer.source(node.below))


def _window_call(printer: PublicPrinter, call: WindowCall, row: Sequence[str]) -> str:
    parts = []
    if call.partition:
        parts.append("PARTITION BY " + ", ".join(printer.expr(part, row) for part in call.partition))
    if call.orders:
        orders = _orders(printer, call.orders, row)
        if call.frame and call.frame.startswith("RANGE") and re.search(r"\d", call.frame):
            orders = _wide_order(printer, call.orders[0], row)
        parts.append("ORDER BY " + orders)
    if call.frame:
        parts.append(call.frame)
    over = f" OVER ({' '.join(parts)})"
    args = [printer.expr(arg, row) for arg in call.args]
    if call.row is not None:
        return print_aggregate(call.as_aggregate, args, "", over, in_database=printer.in_database)
    if call.function == "ntile":
        return f"CAST(ntile(greatest({args[0]}, 1)){over} AS INTEGER)"
    if call.function in ("lag", "lead") and len(args) > 1:
        args[1] = f"CAST({args[1]} AS BIGINT)"
    return f"{call.function}({', '.join(args)}){over}"


def _wide_order(printer: PublicPrinter, order: Order, row: Sequence[str]) -> str:
    """Print an order that a frame's offset is added to: in a type that no sum of the two leaves."""
    shown = _orders(printer, (order,), row)
    if not order.expr.type.is_number:
        return shown
    type_ = "HUGEINT" if order.expr.type.is_integer else "DOUBLE"
    head = printer.expr(order.expr, row)
    return f"CAST({head} AS {type_}){shown.removeprefix(head)}"


_MANY_SIDES = 8
"""Above more of them a window has its buffers for each, of 256 KiB: they are put together first."""


def _set_operation(printer: PublicPrinter, node: SetOperation) -> str:
    word = node.kind.upper() + (" ALL" if node.all else "")
    types = [engine_type(column.type) for column in node.outputs]
    sides = []
    for side in node.leaves:
        columns = [f"CAST({name} AS {t})" for name, t in zip(printer.row(side), types, strict=True)]
        sides.append(f"({_select(columns, printer.source(side))})")
    whole = f"SELECT * FROM ({f' {word} '.join(sides)}) AS t"
    if len(sides) <= _MANY_SIDES or printer.in_database:
        return whole
    return f"WITH u AS MATERIALIZED ({whole}) SELECT * FROM u"


def _join(printer: PublicPrinter, node: Join) -> str:
    return print_join(node, printer.relation(node.left), printer.relation(node.right), printer.expr)


_RELATIONS: dict[type[Relation], Callable[[PublicPrinter, Any], str]] = {
    Release: _release, AddedUp: _added_up, ReplicatedSums: _replicated_sums,
    WithBars: _with_bars, Scan: _scan, Values: _values,
    Block: _block, SetOperation: _set_operation, Join: _join, Fetched: _fetched,
    Numbered: _numbered, Replicated: _replicated, Draws: _draws, Ends: _ends, TestedEnds: _ends,
    **PRINTED_FORMS,
}  # fmt: skip
_PARTS: Mapping[str, Callable[[PublicPrinter, Block], str]] = {
    "where": _filter, "group": _group, "having": _filter, "windows": _window, "outputs": _project,
    "distinct": _distinct, "orders": _ordered, "limit": _ordered,
}  # fmt: skip
