"""Says in words what an analyst may do with a declared table or column: for `check`, and for catalogs.

Pure functions of the catalog: nothing here has seen a row.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from fractions import Fraction

from ..mechanisms import Channel
from ..relation.catalog import MAX_DERIVED, Column, Scalar, Table, Unit, View, quoted_names, reference_text
from ..relation.facts import grid_of
from ..relation.types import Kind, SqlType
from .section import plain

__all__ = ["allowed_text", "column_comment", "declared_text", "keys_text", "randomized_text", "table_comment"]

_MOST_LISTED = 20
_EPOCH = datetime(1970, 1, 1)


VIEWS = {
    "private": "private, each row is one person's",
    "public": "public, nobody's data: answered exactly and free",
    "released": "noisy answers over people's rows: a statement that reads it is charged",
}
"""What a view's rows are, by its role."""


def table_comment(table: Table | View) -> str:
    """Return what a catalog says of a table: the owner's note, whose rows they are, and what counts of them."""
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
    return "; ".join(parts)


def column_comment(table: Table | View, name: str, has_delta: bool) -> str:
    """Return what a catalog says of a column: the owner's note, what is declared, and what that allows.

    `name`: a declared column of the table, or its unit column. `has_delta`: whether undeclared group keys can
    be found by threshold.
    """
    column = table.column(name)
    if isinstance(table, View):
        return _view_column_comment(table, column, has_delta)
    unit = table.unit
    parts = []
    if column is not None:
        parts += [text for text in (column.description, declared_text(column)) if text]
    if unit is not None and name in unit.columns:
        parts.append(_owner(table, unit, name))
    if column is not None and unit is None:
        parts += [_listed(column), "public"]
        parts += [] if column.randomized is None else [allowed_text(column)]
    elif column is not None:
        parts += [allowed_text(column), _listed(column) or keys_text(column, has_delta)]
    return "; ".join(part for part in parts if part)


def _view_column_comment(view: View, column: Column | None, has_delta: bool) -> str:
    if column is None:
        return ""
    parts = [column.description or "", declared_text(column)]
    if view.role == "public":
        parts += [_listed(column), "public"]
    elif view.role == "private":
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
