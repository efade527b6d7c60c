"""Subqueries over private rows that stay private: what is known of their columns (soundness.md 1.10, 1.11).

House rules:

1. Each is owned: it carries the owner as its last columns, and every row of it is a function of one
   owner's rows and of public data. Grouping and windows are by the owner, always printed.
2. An aggregate of one owner's rows is exact and does not depend on their order: counts, sums of lattice
   integers, ratios of these, MIN and MAX, BOOL_AND and BOOL_OR (soundness.md 1.13).
3. What is claimed of a computed column (`Column.facts`) is enforced by the operator that computes it; the
   declared contribution bounds choose how many rows of an owner a count or a sum may reach (law L9).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from ...errors import Refusal
from ...relation.aggregates import ROWS, Asks, check_printers
from ...relation.catalog import Column, Enforced
from ...relation.expressions import Expr, Field, fields_of
from ...relation.facts import Facts, decimal_scale, hull, read_length
from ...relation.intervals import Environment, Lattice, facts_of, lattice_of, narrowed_facts
from ...relation.relations import AggregateCall, OutputColumn, WindowCall
from ...relation.types import BIGINT, BOOLEAN, DOUBLE, NUMERIC, Kind, SqlType
from .functional_dependencies import distinguishing
from .growth import sum_of_reaches
from .keys import domain_of, environment_of, tells_people_apart
from .ownership import sum_of_bounds
from .programs import frame_of, most_in
from .rows import Identity, Item, OwnedRows, PrivateBlock, Reach, Select, Source, columns_of, identities_in

MAX_ROWS = 2**40


def plain(rows: OwnedRows | None, block: PrivateBlock) -> Source:
    """Return a block as a source; `rows`: the same block with its owner resolved, None when it is public."""
    public = Select(block.items, block.predicate, block.outputs)
    return _derived([(public if rows is None else rows.select(block.outputs), rows)], block.names, keys=())


def with_declared(source: Source, declared: Sequence[Column | None]) -> Source:
    """Return a subquery with what is declared of its columns, which whoever reads one enforces (law L9).

    Raises:
        Refusal: 42804 for keys among fractions.
    """
    columns = list(source.columns)
    for index, said in enumerate(declared):
        own = columns[index]
        if said is None:
            continue
        if said.values is not None and own.type.is_float:
            raise Refusal(
                f'column "{said.name}" is a fraction, which is no group key', sqlstate="42804",
                hint="take its values out, or round it in the view and CAST it to integer",
            )  # fmt: skip
        bounds = [bounds for bounds in (own.bounds, said.bounds) if bounds is not None]
        ends = (max(low for low, _ in bounds), min(high for _, high in bounds)) if bounds else None
        values = own.values if said.values is None else said.values
        columns[index] = replace(own, bounds=ends, step=said.step, values=values)
    declares = tuple(
        (index, said.bounds, said.step, said.values, said.max_length)
        for index, said in enumerate(declared)
        if said is not None
    )
    return replace(source, columns=tuple(columns), declares=declares)


def union(parts: Sequence[tuple[Select, OwnedRows]], outputs: Sequence[OutputColumn]) -> Source:
    """Return UNION ALL of blocks whose owners are of one kind."""
    return _derived(parts, [column.name for column in outputs], keys=())


def group_by_owner(
    rows: OwnedRows, keys: tuple[Expr, ...], aggregates: tuple[AggregateCall, ...], names: Sequence[str]
) -> Source:
    """Return GROUP BY keys that have one owner each: one row per owner and keys.

    Raises:
        Refusal: PV001 for an aggregate that is not computed per person, PV101 for bounds that are not declared.
    """
    most = rows.max_rows if fields_of(*keys) <= rows.fixed_columns else rows.max_rows_per_group
    most = 1 if rows.is_single else most
    grouped = replace(rows.select(keys), aggregates=aggregates, most=most)
    known = [frozenset(range(len(keys)))]
    if fields_of(*keys) <= rows.fixed_columns:  # one value of the keys per owner: one group, one row
        width = len(keys) + len(aggregates)
        known.append(frozenset(range(width, width + len(rows.owner))))  # the owner alone
    return _derived([(grouped, rows)], names, keys=tuple(known))


def window_by_owner(
    rows: OwnedRows, outputs: tuple[Expr, ...], calls: tuple[WindowCall, ...], names: Sequence[str]
) -> Source:
    """Return rows with windows over each owner's own rows.

    Ties are ordered by a key that tells an owner's rows apart, or else by all that a row shows: rows that
    tie then are alike. But two calls that order such rows each for itself may disagree on which is which,
    by the physical order of everybody's rows: so without a key the rows are numbered first.
    Raises Refusal, as `group_by_owner`.
    """
    most = 1 if rows.is_single else rows.max_rows
    if all(map(ignores_ties, calls)):
        return _derived([(replace(rows.select(outputs), windows=calls, most=most), rows)], names, keys=())
    ties: tuple[Expr, ...] | None = distinguishing(rows)
    if ties is None and sum(not ignores_ties(call) for call in calls) > 1:
        return _window_numbered(rows, outputs, calls, names)
    shown = tuple(dict.fromkeys((*outputs, *(arg for call in calls for arg in call.args))))
    windowed = replace(rows.select(outputs), windows=calls, ties=shown if ties is None else ties, most=most)
    return _derived([(windowed, rows)], names, keys=())


def _window_numbered(
    rows: OwnedRows, outputs: tuple[Expr, ...], calls: tuple[WindowCall, ...], names: Sequence[str]
) -> Source:
    read = [expr for call in calls for expr in (*call.args, *call.partition, *(o.expr for o in call.orders))]
    shown = (*outputs, *dict.fromkeys(expr for expr in read if not expr.is_constant))
    number = WindowCall(BIGINT, "row_number", (), rows.owner, (), None)
    inner = window_by_owner(rows, shown, (number,), [""] * (len(shown) + 1))
    fields = [Field(column.type, index) for index, column in enumerate(inner.columns)]

    def over(expr: Expr) -> Expr:
        index = None if expr.is_constant else shown.index(expr, len(outputs))
        return expr if index is None else replace(fields[index], position=expr.position)

    moved = tuple(call.map(over) for call in calls)
    over_numbered = replace(
        rows,
        items=(Item(inner),),
        predicate=(),
        owner=tuple(fields[-len(rows.owner) :]),
        units=tuple(frozenset[int]() for _ in rows.owner),
        fixed_columns=frozenset(),
    )
    shown_again = over_numbered.select(tuple(fields[: len(outputs)]))
    block = replace(shown_again, windows=moved, ties=(fields[len(shown)],), works=(), most=rows.max_rows)
    return _derived([(block, over_numbered)], names, keys=())


def ignores_ties(call: WindowCall) -> bool:
    """Say whether a window call gives rows that tie in its ORDER BY one value, in whatever order they come."""
    if call.function in _OF_TIES:
        return True
    frame = frame_of(call)
    return call.row is not None and call.row.in_frames and (frame is None or frame.has_whole_ties)


_OF_TIES = ("rank", "dense_rank", "percent_rank", "cume_dist")


def nullable(column: Column) -> Column:
    """Return a column as it is on the outer side of a join: NULL too, and then in a group of its own."""
    facts = None if column.facts is None else replace(column.facts, nullable=True)
    values = column.values if column.values is None or None in column.values else (*column.values, None)
    return replace(column, enforced=replace(column.enforced, not_null=False), values=values, facts=facts)


def _derived(
    parts: Sequence[tuple[Select, OwnedRows | None]],
    names: Sequence[str],
    keys: tuple[frozenset[int], ...],
) -> Source:
    assert all(rows is None or block.items is rows.items for block, rows in parts), (
        "positions of other sources"
    )
    columns = [_columns(block) for block, _ in parts]
    merged = [_merge(options) for options in zip(*columns, strict=True)]
    merged = [replace(column, name=shown) for column, shown in zip(merged, names, strict=True)]
    resolved = [rows for _, rows in parts if rows is not None]
    identities: dict[tuple[int, ...], Identity] = {}
    owner: tuple[int, ...] = ()
    owners_columns: list[Column] = []
    row_tables = frozenset[str]().union(*(rows.row_tables for rows in resolved))
    if resolved and not row_tables:
        owners = zip(*(rows.owner for rows in resolved), strict=True)
        types = [_type_of_owners([part.type for part in parts_]) for parts_ in owners]
        owner = tuple(range(len(merged), len(merged) + len(types)))
        identities = {**_identities(parts), owner: resolved[0].root}
        owners_columns = [Column("", type_, Enforced(not_null=True)) for type_ in types]
    merged = [*_held(merged, identities), *owners_columns]
    if len(resolved) == 1 and resolved[0].is_single and owner:
        keys = (*keys, frozenset(owner))
    one_each = bool(owner) and any(key == set(owner) for key in keys)
    reach = Reach(1) if resolved and one_each else sum_of_reaches([rows.reach for rows in resolved])
    shown = ", ".join(dict.fromkeys(rows.name for rows in resolved))
    label = ", ".join(dict.fromkeys(rows.said for rows in resolved))
    noted = ", ".join(dict.fromkeys(rows.shown_name for rows in resolved))
    return Source(
        shown,
        tuple(merged),
        keys,
        identities,
        *_summed(resolved),
        parts=tuple(block for block, _ in parts),
        reach=reach,
        label=label,
        noted=noted,
        row_tables=row_tables,
    )


def _held(columns: Sequence[Column], identities: Mapping[tuple[int, ...], Identity]) -> list[Column]:
    """Return the columns of a subquery with what its printed form holds: a text is cut, but where it links rows.

    Those link rows of one owner by whole values (soundness.md 1.10): who reads one cuts it.
    """
    links = {place for places in identities for place in places}
    return [
        replace(column, enforced=replace(column.enforced, max_length=read_length(column)))
        if column.type.kind is Kind.TEXT and index not in links
        else column
        for index, column in enumerate(columns)
    ]


def _summed(parts: Sequence[OwnedRows | Source]) -> tuple[int | None, int | None, int | None]:
    """Return M, C and the rows in all of parts that stand one after the other; None for public ones."""
    if not parts:
        return None, None, None
    return (
        sum_of_bounds(part.max_rows_per_group for part in parts),
        sum_of_bounds(part.max_groups for part in parts),
        sum_of_bounds(part.max_rows for part in parts),
    )


def full_join(block: Select, sides: Sequence[Source], reach: Reach) -> Source:
    """Return a FULL JOIN of two owned sources; its owner is the one of the side that is there."""
    sources = columns_of(block.items)
    columns = _held([nullable(sources[out.column]) for out in block.outputs if out.column is not None], {})
    last = [sides[0].columns[index] for index in sides[0].owner]
    owner = [replace(column, enforced=replace(column.enforced, not_null=True)) for column in last]
    root = sides[0].identities[tuple(sides[0].owner)]
    places = tuple(range(len(columns), len(columns) + len(owner)))
    name, label, noted = (
        ", ".join(names)
        for names in zip(*((side.name, side.said, side.shown_name) for side in sides), strict=True)
    )
    return Source(
        name, (*columns, *owner), (), {places: root}, *_summed(sides), parts=(block,), reach=reach, label=label,
        noted=noted,
    )  # fmt: skip


def _identities(parts: Sequence[tuple[Select, OwnedRows | None]]) -> dict[tuple[int, ...], Identity]:
    """Return the outputs whose values determine the owner, in all parts by one key.

    With two keys in two parts equal values would not mean one owner.
    """
    first, *others = [_identities_of(block.outputs, rows) for block, rows in parts if rows is not None]
    return {
        places: known
        for places, known in sorted(first.items())
        if all(other.get(places) == known for other in others)
    }


def _identities_of(outputs: Sequence[Expr], rows: OwnedRows) -> dict[tuple[int, ...], Identity]:
    """Return the outputs that are the bare columns of a key of an inner source, or the owner out of several sources.

    A column of an outer source may be NULL, and NULL is nobody's.
    """
    if any(item.kind == "full" for item in rows.items):
        return {}
    shown: dict[int, list[int]] = defaultdict(list)
    for place, expr in enumerate(outputs):
        if (column := _bare(expr)) is not None:
            shown[column.index].append(place)
    keys = identities_in(rows.items)
    found: dict[tuple[int, ...], Identity] = {}
    for places, known in keys.items():
        # A key of one column is one wherever it is shown; of several the first places do.
        options = [shown[index] if len(places) == 1 else shown[index][:1] for index in places]
        found |= dict.fromkeys(itertools.product(*options), known)
    parts = {index for places in keys for index in places}
    owners = [[place for index in sorted(unit & parts) for place in shown[index]][:1] for unit in rows.units]
    return {**dict.fromkeys(itertools.product(*owners), rows.root), **found}


def _bare(expr: Expr) -> Field | None:
    """Return the column that an output is as it stands; an integer stays one in a wider type."""
    if expr.calls("cast") and expr.type.is_integer:
        is_wider = _type_of_owners([expr.args[0].type, expr.type]) == expr.type
        return _bare(expr.args[0]) if is_wider else None
    return expr if isinstance(expr, Field) else None


_WIDTHS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)


def _type_of_owners(types: Sequence[SqlType]) -> SqlType:
    """Return the type of owners from several parts: of integers the widest, else the first, which all of them have."""
    if all(type_.is_integer for type_ in types):
        return max(types, key=lambda type_: _WIDTHS.index(type_.kind))
    return types[0]


# --- columns ----------------------------------------------------------------------------------------------


def _columns(block: Select) -> list[Column]:
    env = environment_of(columns_of(block.items), block.predicate)
    columns = [_column(expr, env) for expr in block.outputs]
    columns += [_aggregate_column(call, env, block.most) for call in block.aggregates or ()]
    return [*columns, *(_window_column(call, env, block.most) for call in block.windows)]


def _column(expr: Expr, env: Environment) -> Column:
    """Return what is known of an output: a bare column keeps its declaration, narrowed by the filter."""
    facts = narrowed_facts(expr, env)
    if (column := env.declared(expr)) is not None:
        bounds = column.bounds
        if facts.declared and facts.lo is not None and facts.hi is not None and facts.lo <= facts.hi:
            bounds = (facts.lo, facts.hi)
        values = column.values
        if values is not None and facts.values is not None and not column.type.is_temporal:
            values = tuple(v for v in values if v is None or v in facts.values)
        elif values is None and facts.values is not None and column.type.kind is Kind.TEXT:
            values = facts.values
        enforced = replace(column.enforced, not_null=column.enforced.not_null or not facts.nullable)
        type_ = replace(column.type, has_members=False)  # a subquery carries whether there is one
        column = replace(column, type=type_, bounds=bounds, values=values, enforced=enforced)
        return replace(column, max_length=facts.size) if column.type.kind is Kind.TEXT else column
    proven = facts_of(expr, env)
    type_ = DOUBLE if expr.type.is_number and not _is_decimal(proven.grid) else expr.type
    if type_ == DOUBLE:
        proven = replace(proven, grid=None, values=None)
    personal = tells_people_apart(expr, lambda index: env.columns[index].is_personal) is not None
    column = Column("", type_, Enforced(not_null=not proven.nullable), facts=proven, is_personal=personal)
    if (
        facts != proven
        and facts.declared
        and facts.lo is not None
        and facts.hi is not None
        and facts.lo <= facts.hi
    ):
        column = replace(column, bounds=(facts.lo, facts.hi))
    return column


def _is_decimal(grid: Fraction | None) -> bool:
    """Say whether numbers on a grid are carried exactly, as integers or decimals."""
    return grid is not None and decimal_scale(grid) is not None


def within_unit_lattice(call: AggregateCall, env: Environment) -> Lattice:
    """Return the lattice on which a per-person sum or average is computed. Raises Refusal: PV101, PV201."""
    lattice = lattice_of(call.args[0], env, squared=False)
    return lattice or Lattice(0, 0, Fraction(1), Fraction(0), Fraction(0), exact=True)


def _aggregate_column(call: AggregateCall, env: Environment, most: int | None) -> Column:
    form = _PER_PERSON.get(call.function)
    if form is None or (call.distinct and call.row.asks is not Asks.COUNT):
        raise _not_per_person(call)
    return form(call, env, most)


def _count_column(call: AggregateCall, env: Environment, most: int | None) -> Column:
    if len(call.args) > 1:
        raise _not_per_person(call)
    reach = Fraction(MAX_ROWS if most is None else most)
    facts = Facts(Fraction(0), reach, Fraction(1), False, None, most is not None)
    domain = domain_of(call.args[0], env) if call.distinct and call.args else None
    values = 0 if domain is None else sum(value is not None for value in domain.values)
    bounds = None
    if values:  # as declared, so that who has more counts as having all of them
        least = 0 if call.filter is not None or narrowed_facts(call.args[0], env).nullable else 1
        bounds = Fraction(least), min(Fraction(values), reach)
    return Column("", BIGINT, Enforced(not_null=True), bounds=bounds, facts=facts)


def _sum_column(call: AggregateCall, env: Environment, most: int | None) -> Column:
    lattice, zero = within_unit_lattice(call, env), Fraction(0)
    step, reach = lattice.step, Fraction(MAX_ROWS if most is None else most)
    lo, hi = min(zero, lattice.low * step * reach), max(zero, lattice.high * step * reach)
    exact = lattice.exact and _is_decimal(step)
    facts = Facts(lo, hi, step if exact else None, True, None, most is not None)
    return Column("", NUMERIC if exact else DOUBLE, facts=facts)


def _avg_column(call: AggregateCall, env: Environment, most: int | None) -> Column:
    lattice = within_unit_lattice(call, env)
    ends = sorted((lattice.low * lattice.step, lattice.high * lattice.step))
    return Column("", DOUBLE, facts=Facts(ends[0], ends[1], None, True, None, True))


def _extreme_column(call: AggregateCall, env: Environment, most: int | None) -> Column:
    column = _column(call.args[0], env)
    if column.type.kind in (Kind.OPAQUE, Kind.INTERVAL):
        raise _not_per_person(call)
    return nullable(column)


def _truth_column(call: AggregateCall, env: Environment, most: int | None) -> Column:
    facts = Facts(Fraction(0), Fraction(1), Fraction(1), True, (False, True), True)
    return Column("", BOOLEAN, facts=facts)


_PER_PERSON: dict[str, Callable[[AggregateCall, Environment, int | None], Column]] = {
    "count": _count_column, "sum": _sum_column, "avg": _avg_column, "min": _extreme_column, "max": _extreme_column,
    "bool_and": _truth_column, "bool_or": _truth_column,
}  # fmt: skip
"""Aggregate -> what is known of it per person, of so many rows at most (None: of a person's whole frame)."""

check_printers(_PER_PERSON, lambda row: row.per_person)


def _not_per_person(call: AggregateCall) -> Refusal:
    if call.function == "array_agg":
        return Refusal(
            "ARRAY_AGG is not computed per person", position=call.position,
            hint="string_agg(x::text, ',' ORDER BY y) joins the first of a person's values",
        )  # fmt: skip
    return Refusal(
        f"{call.function.upper()}{'(DISTINCT …)' if call.distinct else ''} is not computed per person",
        position=call.position,
        hint=f"per person there are {', '.join(row.name.upper() for row in ROWS if row.per_person or row.is_program)}",
    )


# --- windows ------------------------------------------------------------------------------------------------


def _window_column(call: WindowCall, env: Environment, most: int | None) -> Column:
    if call.row is not None and call.row.in_frames:
        return _aggregate_column(call.as_aggregate, env, most_in(call, most))
    form = _OVER.get(call.function)
    if form is None:
        raise Refusal(
            f"{call.function}() is not computed per person", position=call.position,
            hint=f"per person there are {', '.join(name.upper() for name in _OVER)}, COUNT, SUM, AVG, MIN and MAX",
        )  # fmt: skip
    return form(call, env)


def _numbers_up_to(most: int) -> Callable[[WindowCall, Environment], Column]:
    facts = Facts(Fraction(1), Fraction(most), Fraction(1), False)
    return lambda call, env: Column("", BIGINT, Enforced(not_null=True), facts=facts)


def _tile_column(call: WindowCall, env: Environment) -> Column:
    most = call.args[0].constant_as(int)
    assert most is not None, "its count is a literal"
    return _numbers_up_to(most)(call, env)


def _share_column(call: WindowCall, env: Environment) -> Column:
    facts = Facts(Fraction(0), Fraction(1), None, False, None, True)
    return Column("", DOUBLE, Enforced(not_null=True), facts=facts)


def _value_column(call: WindowCall, env: Environment) -> Column:
    """Return what is known of the value of another row, or of what stands for it where there is none."""
    column = _column(call.args[0], env)
    default = call.args[2] if len(call.args) > 2 else None
    opaque = call.args[0].type.kind is Kind.OPAQUE and default is not None
    if opaque or not (default is None or default.is_constant):
        raise Refusal(
            f"the default of {call.function.upper()} over private rows is a literal", sqlstate="PV202",
            position=call.position, hint="use COALESCE around it",
        )  # fmt: skip
    return nullable(column if default is None else _merge([column, _column(default, env)]))


def _first_column(call: WindowCall, env: Environment) -> Column:
    if call.orders and (call.frame or "").startswith("RANGE BETWEEN CURRENT"):
        raise Refusal(
            "FIRST_VALUE over private rows begins with a person's first row", sqlstate="PV202", position=call.position,
            hint="leave out RANGE, or write ROWS",
        )  # fmt: skip
    return _value_column(call, env)


def _last_column(call: WindowCall, env: Environment) -> Column:
    if call.orders and not (call.frame or "").endswith("UNBOUNDED FOLLOWING"):
        raise _not_whole(call)
    return _value_column(call, env)


def _nth_column(call: WindowCall, env: Environment) -> Column:
    if call.orders and (
        call.frame is None or (call.frame.startswith("RANGE") and "CURRENT ROW" in call.frame)
    ):
        raise _not_whole(call)
    return _value_column(call, env)


def _not_whole(call: WindowCall) -> Refusal:
    return Refusal(
        f"{call.function.upper()} over private rows takes the whole of a person's rows", sqlstate="PV202",
        position=call.position, hint="add ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    )  # fmt: skip


_OVER: dict[str, Callable[[WindowCall, Environment], Column]] = {
    **dict.fromkeys(("row_number", "rank", "dense_rank"), _numbers_up_to(MAX_ROWS)), "ntile": _tile_column,
    "percent_rank": _share_column, "cume_dist": _share_column, "lag": _value_column, "lead": _value_column,
    "first_value": _first_column, "last_value": _last_column, "nth_value": _nth_column,
}  # fmt: skip
"""Window function that is no aggregate -> what is known of it per person. Those of `_OF_TIES` are one for ties."""


def _merge(options: Sequence[Column]) -> Column:
    """Return what is known of a column that is any of several: the hull of them."""
    first = options[0]
    personal = any(option.is_personal for option in options)
    if all(option == first for option in options):
        return replace(first, is_personal=personal)
    named = [option for option in options if option.facts is None or option.facts.values != ()]
    if 0 < len(named) < len(options):  # a bare NULL adds only NULL
        return replace(nullable(_merge(named)), name=first.name)
    known = [facts_of(Field(option.type, 0), Environment([option])) for option in options]
    bare = [replace(option, bounds=None, values=None) for option in options]
    any_null = any(facts.nullable for facts in known)
    said = hull(known)
    held = hull([facts_of(Field(option.type, 0), Environment([option])) for option in bare])
    proven = replace(said, lo=held.lo, hi=held.hi, declared=first.type.kind is Kind.TEXT)
    bounds = (said.lo, said.hi) if said.declared and said.lo is not None and said.hi is not None else None
    type_ = _widest([option.type for option in options])
    if type_.is_number and not type_.is_float and not _is_decimal(said.grid):
        type_, proven = DOUBLE, replace(proven, grid=None)
    return Column(
        first.name, type_, Enforced(not_null=not any_null), bounds=bounds, facts=proven, is_personal=personal
    )


def _widest(types: Sequence[SqlType]) -> SqlType:
    if all(type_ == types[0] for type_ in types):
        return types[0]
    if any(type_.is_float for type_ in types):
        return DOUBLE
    return NUMERIC if any(type_.kind is Kind.NUMERIC for type_ in types) else BIGINT
