"""Says in words what an analyst may do with a declared table or column: for `check`, and for catalogs.

Pure functions of the catalog: nothing here has seen a row.

House rule, a policy as sentences: each sentence says what the policy file says, no more; the database is not asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction

from ..mechanisms import Channel
from ..relation.catalog import (
    MAX_DERIVED,
    Column,
    OwnView,
    Scalar,
    Table,
    Unit,
    View,
    norm_key,
    quoted_names,
    reference_text,
)
from ..relation.facts import grid_of
from ..relation.types import Kind, SqlType
from ..words import counted, listed, small_text
from .model import Accounting, Analyst, ColumnPolicy, Neighbours, Policy, TablePolicy
from .section import bound_text, plain

_MOST_LISTED = 20
_EPOCH = datetime(1970, 1, 1)


VIEWS = {
    "private": "private, each row is one person's",
    "public": "public, nobody's data: answered exactly and free",
    "released": "noisy answers over people's rows: a statement that reads it is charged",
}
"""What a view's rows are, by its role."""


def table_comment(table: Table | View | OwnView) -> str:
    """Return what a catalog says of a table: the owner's note, whose rows they are, and what counts of them."""
    if isinstance(table, OwnView):
        return "your own view: it stands for its text, and is charged when it is asked"
    if isinstance(table, Table) and table.own is not None:
        return "your own table"
    parts = [] if table.description is None else [table.description]
    if isinstance(table, View):
        return "; ".join([*parts, f"a view: {VIEWS[table.role]}"])
    unit = table.unit
    if table.asserted:
        parts.append(
            f"({', '.join(table.asserted)}) is a key, by the owner's word and verified in these data"
        )
    if unit is None:
        return "; ".join([*parts, "public, nobody's data: answered exactly and free"])
    if unit.is_row:
        parts.append("private, each row is a unit by itself")
    elif table.unnamed.intersection(unit.columns):
        parts.append("private, one row per person" if unit.is_unique else "private, each row is one person's")
    elif unit.references is None:
        parts.append(
            f"private, {'one row per' if unit.is_unique else 'the'} unit in {quoted_names(unit.columns)}"
        )
    else:
        by = f" by {reference_text(unit.references)}" if table.is_way_named else ""
        parts.append(f"private, owned through {quoted_names(unit.columns)}{by}")
    if not unit.is_unique:
        if unit.max_rows is not None:
            parts.append(f"{unit.max_rows} rows of a unit count in a result")
        if unit.max_rows_per_group is not None:
            parts.append(f"{unit.max_rows_per_group} of them in a group")
        if unit.max_groups is not None:
            parts.append(f"{unit.max_groups} groups of a unit count")
        parts += [
            f"{most} in root-sum-of-squares by {key}"
            for key, most in unit.max_norm if norm_key(key)[1] not in table.unnamed
        ]  # fmt: skip
    parts += [
        f"points at people by {quoted_names(also.columns)}, read as equal to {reference_text(also.references)} alone; "
        f"{also.max_rows} joined rows of who is pointed at count"
        for also in unit.also if not table.unnamed.intersection(also.columns)
    ]  # fmt: skip
    return "; ".join(parts)


def column_comment(table: Table | View | OwnView, name: str, has_delta: bool) -> str:
    """Return what a catalog says of a column: the owner's note, what is declared, and what that allows.

    `name`: a declared column of the table, or its unit column. `has_delta`: whether undeclared group keys can
    be found by threshold.
    """
    if isinstance(table, OwnView) or (isinstance(table, Table) and table.own is not None):
        return ""
    column = table.column(name)
    role = table.role if isinstance(table, View) else "public" if table.unit is None else "private"
    parts = [] if column is None else [column.description or "", declared_text(column)]
    if isinstance(table, Table) and table.unit is not None and name in table.unit.columns:
        parts.append(_owner(table, table.unit, name))
    if column is not None and role == "public":
        parts += [_listed(column), "public"]
        parts += [] if column.randomized is None or isinstance(table, View) else [allowed_text(column)]
    elif column is not None and role == "private":
        parts += [allowed_text(column), _listed(column) or keys_text(column, has_delta)]
    return "; ".join(part for part in parts if part)


def declared_text(column: Column) -> str:
    """Return a column's bounds, step and length as they are declared; empty if none is."""
    parts = []
    if column.bounds is not None:
        lower, upper = (_bound(bound, column.type) for bound in column.bounds)
        parts.append(f"bounds {lower} to {upper}")
    if column.step is not None:
        parts.append(f"step {plain(column.step)}")
    if column.is_log:
        parts.append("scale log")
    if column.max_length is not None:
        parts.append(f"at most {column.max_length} characters")
    if column.randomized is not None:
        parts.append(randomized_text(column.randomized))
    return ", ".join(parts)


def randomized_text(channel: Channel) -> str:
    """Return by which coins answers were randomised when they were given: what everybody who sees them may learn."""
    coins = (
        f"truth with probability {float(channel.p):.6g}"
        if channel.yes is None
        else f"true for {float(channel.p):.6g} of the true, {float(channel.q):.6g} of the false"
    )
    return f"randomised when collected ({coins}, loss {channel.loss:.6g} towards everybody)"


def allowed_text(column: Column) -> str:
    """Return which aggregates of a private column are answered as it is declared."""
    if column.randomized is not None:
        return "estimates: COUNT, SUM and AVG of other columns where it has some values"
    mode = ", MODE" if _is_listed(column) else ""
    if column.bounds is None:
        return f"COUNT{mode}" if mode else "COUNT only"
    sums = ", SUM, AVG, STDDEV, CORR, REGR" if column.type.is_number else ""
    return f"COUNT{sums}, MEDIAN, percentiles, MIN, MAX{mode}"


def _is_listed(column: Column) -> bool:
    """Say whether all values of a column are known beforehand: what MODE is chosen among."""
    if column.values is not None or column.type.kind is Kind.BOOLEAN:
        return True
    steps = None if column.type.is_float else _steps(column)
    return steps is not None and steps <= MAX_DERIVED


def keys_text(column: Column, has_delta: bool) -> str:
    """Return how a private column can be grouped by: `has_delta` if undeclared keys can be found."""
    if column.values is not None:
        return f"group keys: {len(column.values)} public values"
    if column.type.is_float or column.type.kind in (Kind.OPAQUE, Kind.INTERVAL):
        return "no GROUP BY"
    steps = _steps(column)
    if steps is not None and steps <= MAX_DERIVED:
        return f"group keys: {steps} values inside the bounds"
    return "group keys by threshold" if has_delta else "GROUP BY needs values, or a delta"


def _owner(table: Table, unit: Unit, name: str) -> str:
    points = (
        f", as {reference_text(unit.references)}"
        if unit.references is not None and table.is_way_named
        else ""
    )
    if len(unit.columns) == 1:
        return f"whose row it is{points}: to join on, and for COUNT(DISTINCT {name})"
    if table.unnamed.intersection(unit.columns):
        return "a part of whose row it is"
    listed = ", ".join(unit.columns)
    return f"whose row it is, with the rest of ({listed}){points}: to join on all, and for COUNT(DISTINCT ({listed}))"


def _listed(column: Column) -> str:
    if column.values is None or len(column.values) > _MOST_LISTED:
        return ""
    return f"group keys: {', '.join(map(_literal, column.values))}"


def _literal(value: Scalar) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return plain(Fraction(value))


def _bound(bound: Fraction, type_: SqlType) -> str:
    """Return a bound as the policy file writes it; the catalog has days and microseconds for dates and times."""
    if type_.kind is Kind.DATE:
        return date.fromordinal(_EPOCH.toordinal() + int(bound)).isoformat()
    if type_.kind is Kind.TIMESTAMP:
        return (_EPOCH + timedelta(microseconds=int(bound))).isoformat(sep=" ")
    return plain(bound)


def _steps(column: Column) -> int | None:
    """Return how many values a column can have inside its bounds; None when that is not known."""
    grid = grid_of(column.type)
    if column.bounds is None or grid is None or column.type.kind is Kind.TIMESTAMP:
        return None
    return math.floor(column.bounds[1] / grid) - math.ceil(column.bounds[0] / grid) + 1


# --- A policy as sentences, for people who read no configuration --------------------------------------------


_MOST_SAID = 12
Chapter = tuple[str, tuple[str, ...]]


def policy_sentences(policy: Policy) -> tuple[Chapter, ...]:
    """Return the chapters of a policy, each with its title and its sentences."""
    chapters: list[Chapter] = [("The promise", tuple(_promise(policy)))]
    chapters += [(f"Table {name}", tuple(_table(policy, table))) for name, table in _shown(policy)]
    if policy.views:
        chapters.append(("Views", tuple(_views(policy))))
    chapters.append(("Who may ask", tuple(_analysts(policy))))
    return tuple(chapters)


def one_person(policy: Policy) -> str:
    """Return what one privacy unit is called, from the root's name: "a student"."""
    name = policy.root.rpartition(".")[2].replace("_", " ")
    if name.endswith("s") and not name.endswith(("ss", "us", "is")):
        name = name[:-1]
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _shown(policy: Policy) -> Iterator[tuple[str, TablePolicy]]:
    """Yield the tables: the root first, then those that are people's, then the public ones."""
    yield from sorted(policy.tables.items(), key=lambda item: (item[0] != policy.root, item[1].unit is None))


def _promise(policy: Policy) -> Iterator[str]:
    privacy, defaults, one = policy.privacy, policy.defaults, one_person(policy)
    whose = one if privacy.together == 1 else f"any {privacy.together} of them together, each {one},"
    said = (
        f"What is protected is whether {whose} is in the data at all."
        if privacy.neighbours is Neighbours.ADD_REMOVE
        else f"What is protected is everything that the data say of {whose}; how many there are is no secret."
    )
    yield said
    yield (
        f"All answers to everybody together cost at most epsilon {plain(privacy.epsilon)}, for ever"
        + (f", with delta {small_text(privacy.delta)}." if privacy.delta else ".")
    )
    if privacy.accounting is Accounting.ZCDP:
        yield (
            "Losses are added up in rho (zero-concentrated differential privacy); the sum is an epsilon at delta "
            f"{small_text(privacy.conversion_delta)}."
        )
    if privacy.rationing is not None:
        ration = privacy.rationing
        if ration.epsilon is not None:
            over = "what is left over may be spent later" if ration.carries else "what is left over lapses"
            yield f"Of that, epsilon {plain(ration.epsilon)} may be spent each {ration.period.value}; {over}."
        else:
            yield f"Some analysts have a ration for each {ration.period.value}."
    yield (
        f"A statement costs epsilon {plain(defaults.epsilon)} where its analyst sets none, and at most "
        f"{plain(defaults.max_epsilon)}."
    )
    if defaults.minimum_units > 1:
        yield f"A group that is found in the data is shown only where it has {defaults.minimum_units} people or more."


def _table(policy: Policy, table: TablePolicy) -> Iterator[str]:
    one, short = one_person(policy), table.name.rpartition(".")[2].replace("_", " ")
    start = one[0].upper() + one[1:]
    if table.description:
        yield f"{table.description.rstrip('.')}."
    if table.is_hidden:
        yield "Views read it; analysts do not see it."
    if table.unit is None:
        yield "Nobody's data: answered exactly and free."
        yield from filter(None, (_public_column(column) for column in table.columns))
        return
    if table.unit.is_row:
        yield "Each row is one person by itself; no column says whose it is."
    elif table.name == policy.root:
        yield f"Each row is {one}; whose it is stands in {_list(table.unit.columns)}."
    elif table.unit.references is not None:
        parent, _ = table.unit.references
        yield f"A row belongs to {one}, by {_list(table.unit.columns)}, which leads to {parent}."
    else:
        yield f"A row belongs to {one}, by {_list(table.unit.columns)}."
    if table.max_rows is not None:
        rows = counted(table.max_rows, "row")
        yield f"{start} counts with at most {rows} of {short} in one result; of whoever has more, each counts for less."
    if table.max_rows_per_group is not None:
        yield f"In one group {one} counts with at most {counted(table.max_rows_per_group, 'row')}."
    for key, most in table.max_norm:
        yield (
            f"The rows of {one} by {key}, squared and added up, are at most {most} squared; of whoever has more, "
            "each counts for less."
        )
    for also in table.also:
        yield (
            f"A row also points at {one}, by {_list(also.columns)}, which leads to {also.references[0]}: that it does "
            f"is hidden, and at most {counted(also.max_rows, 'row')} that point at one count."
        )
    if table.max_groups is not None:
        yield (
            f"Where groups have to be found in the data, {one} counts in at most {counted(table.max_groups, 'group')}."
        )
    yield from (_column(column) for column in table.columns)


def _column(column: ColumnPolicy) -> str:
    said = [] if column.description is None else [column.description.rstrip(".")]
    if column.bounds is not None:
        low, high = map(bound_text, column.bounds)
        step = "" if column.step is None else f", in steps of {plain(column.step)}"
        said.append(f"counts as between {low} and {high}{step}, what lies outside as the nearer end")
    if column.is_log:
        said.append("medians and percentiles of it are told to within a tenth of a percent of their size")
    if column.values is not None:
        said.append(_known_values(column))
    if column.randomized is not None:
        said.append("was randomised when it was collected")
    if column.max_length is not None:
        said.append(f"is at most {column.max_length} characters long")
    if column.bounds is None and column.values is None and column.randomized is None:
        said.append("may be counted and compared, not summed")
    return f"{column.name}: {'; '.join(said)}."


def _public_column(column: ColumnPolicy) -> str:
    return "" if column.description is None else f"{column.name}: {column.description.rstrip('.')}."


def _known_values(column: ColumnPolicy) -> str:
    values = ["none (NULL)" if value is None else str(value) for value in column.values or ()]
    known = counted(len(values), "known value")
    return f"has {known}, each always answered: {listed(values, _MOST_SAID)}"


def _views(policy: Policy) -> Iterator[str]:
    for name, view in policy.views.items():
        note = "" if view.description is None else f": {view.description.rstrip('.')}"
        yield f"{name}{note}{' (not shown to analysts)' if view.is_hidden else ''}."


def _analysts(policy: Policy) -> Iterator[str]:
    for name, analyst in policy.analysts.items():
        yield f"{name} may spend epsilon {plain(analyst.epsilon)} of it{_rights(policy, analyst)}."
    for name, group in policy.groups.items():
        yield f"Each member of {name} may spend epsilon {plain(group.epsilon)} of it{_rights(policy, group)}."
    yield "Whoever runs the program on this machine with rights to the data may ask within the common cap."


def _rights(policy: Policy, analyst: Analyst) -> str:
    parts = []
    if analyst.ration is not None and policy.privacy.rationing is not None:
        parts.append(f"{plain(analyst.ration)} of it each {policy.privacy.rationing.period.value}")
    auth = policy.server.auth
    connects = (analyst.password if auth is None else analyst.identity_under(auth)) is not None
    parts.append("may connect to a server" if connects else "cannot connect to a server")
    if analyst.access.tables is not None:
        parts.append(f"sees {_list(analyst.access.tables) or 'no table'} alone")
    if analyst.access.hide:
        parts.append(f"does not see {_list(analyst.access.hide)}")
    return ", " + ", ".join(parts)


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)
