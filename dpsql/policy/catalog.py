"""Joins the policy with the live schema into the catalog that the binder resolves against."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from ..errors import PolicyError
from ..relation.catalog import Catalog, Column, Ground, Proved, Table, Unit
from .columns import build_column, describe_column
from .live_schema import LiveColumn, LiveSchema, LiveTable
from .model import ColumnPolicy, Policy, TablePolicy, ViewPolicy
from .section import quote_key, suggest
from .units import asserted_key, build_unit, enforced_keys, find_live_table, without_unit

__all__ = [
    "MEASURING", "build_catalog", "column_key", "database_names", "match_column", "table_key", "view_ground",
    "whole_table",
]  # fmt: skip


MEASURING = "dpsql bounds"
"""What plans rest on, in place of the dataset, by which the owner measures bounds."""


def build_catalog(policy: Policy, live: LiveSchema) -> Catalog:
    """Return all declared tables with the types and constraints that the database has right now.

    A table is found under the name that the policy gives it: `table`, or `schema.table` outside the
    default schema. Ensures: what `build_unit`, `build_column` and `enforced_keys` ensure, for every table.
    Views are not among them: to read their texts takes the binder (`plan.views`).
    Raises PolicyError on the first disagreement, a table without a unit first; `check` lists them all.
    """
    for name in policy.undecided:
        raise without_unit(table_key(policy, name), policy, name, live)
    tables = {name: _grounded(policy, name, live) for name in policy.tables}
    return Catalog(
        MappingProxyType(tables), live.default_schema, live.dialect, live.case_collation, database_names(policy),
    )  # fmt: skip


def database_names(policy: Policy) -> tuple[str, ...]:
    """Return what analysts may call the database: the dataset's name, or the policy file's."""
    return policy.dataset_id, Path(policy.source).stem


def table_key(policy: Policy, table: str) -> str:
    """Return where a table is declared, for messages: `campus.toml: tables.student`."""
    return f"{policy.source}: tables.{quote_key(table)}"


def column_key(policy: Policy, table: str, column: str) -> str:
    """Return where a column is declared, for messages: `campus.toml: tables.student.columns.gpa`."""
    return f"{table_key(policy, table)}.columns.{quote_key(column)}"


def match_column(where: str, declared: ColumnPolicy, table: LiveTable) -> LiveColumn:
    """Return the live column of exactly the declared name. Raises PolicyError if there is none."""
    column = table.column(declared.name)
    if column is None:
        known = [column.name for column in table.columns]
        raise PolicyError(
            f'{where}: table "{table.path[1]}" has no column "{declared.name}"{suggest(declared.name, known)}'
        )
    return column


def whole_table(policy: Policy, name: str, live: LiveSchema) -> Table:
    """Return a table with all of its columns, as views read it. Raises PolicyError."""
    return _grounded(policy, name, live, is_whole=True)


def _grounded(policy: Policy, name: str, live: LiveSchema, *, is_whole: bool = False) -> Table:
    table = _build_table(policy, policy.tables[name], live, is_whole=is_whole)
    found = _live(table, live)
    columns = tuple(
        (f"{name}.{column.name}", _digest(_column_content(column, found))) for column in table.columns
    )
    return replace(table, grounds=_grounds(policy, table, live), column_grounds=columns)


def _build_table(policy: Policy, declared: TablePolicy, live: LiveSchema, *, is_whole: bool = False) -> Table:
    is_whole = is_whole or declared.is_hidden
    where = table_key(policy, declared.name)
    table = find_live_table(where, declared.name, live)
    asserted = asserted_key(where, table)
    unit = build_unit(where, policy, declared, live)
    columns: dict[str, Column] = {}
    for column in declared.columns:
        place = column_key(policy, declared.name, column.name)
        columns[column.name] = build_column(place, column, match_column(place, column, table))
    ordered = []
    for live_column in table.columns:
        if live_column.name in columns:
            ordered.append(columns[live_column.name])
        elif (unit is None or is_whole) and not (live_column.is_generated or live_column.refused):
            ordered.append(describe_column(live_column))
    known = {column.name for column in ordered} | (set() if unit is None else set(unit.columns))
    keys = enforced_keys(table, known)
    return Table(
        declared.name, table.path, tuple(ordered), unit, declared.description, keys, table.is_partitioned,
        declared.is_hidden, asserted, table.read_as, proved=_proved(table, keys),
        referred=_referred(policy, declared, keys),
    )  # fmt: skip


def _referred(
    policy: Policy, declared: TablePolicy, keys: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the keys that units of other tables refer to, and that are none of `keys`: each is enforced to be unique.

    Not the columns of the unit itself, of which a table may have many rows (soundness.md 1.26).
    """
    units = [one.unit for one in policy.tables.values() if one.unit is not None]
    ways = [unit.references for unit in units if unit.references is not None]
    found = {tuple(sorted(key)) for name, key in ways if name == declared.name}
    own = declared.unit
    held = {tuple(sorted(own.columns))} if own is not None and own.references is None else set()
    return tuple(sorted(found - held - {tuple(sorted(key)) for key in keys}))


def _proved(table: LiveTable, keys: tuple[tuple[str, ...], ...]) -> Proved | None:
    """Return what the engine proves of a table; of its keys those whose equality is that of their values."""
    if table.proved is None:
        return None
    return replace(table.proved, keys=tuple(key for key in table.proved.keys if key in keys))


# --- what plans rest on (soundness.md 3.7) -----------------------------------------------------------------


def view_ground(view: ViewPolicy, definition: str) -> Ground:
    """Return what a plan rests on that reads a table through a view: its text, and what is declared of its columns."""
    declared = [repr(replace(column, description=None)) for column in view.columns]
    return view.name, _digest([view.source, declared, definition])


def _of_dataset(policy: Policy, live: LiveSchema) -> Ground:
    """Return what every plan rests on. Caps, analysts and descriptions are left out: they change no plan.

    `version` rises when the same declaration comes to mean something else, so that no draw of the old meaning answers
    the new.
    """
    units = [table.unit for table in policy.tables.values() if table.unit is not None]
    content = {
        "version": 5,
        "dataset": policy.dataset_id,
        "neighbours": policy.privacy.neighbours.value,
        "together": policy.privacy.together,
        "root": [
            policy.root,
            *(unit.columns for unit in units if unit.references is None and not unit.is_row),
        ][:2],
        "default_schema": live.default_schema,
        "engine": [live.dialect, live.case_collation],
    }
    return MEASURING if policy.is_measuring else "dataset", _digest(content)


def _grounds(policy: Policy, table: Table, live: LiveSchema) -> tuple[Ground, ...]:
    """Return what plans that read a table rest on: what is said of it but for the columns that they do not read, and of
    each table on the way to its owner what leads on from there.
    """
    found = [
        _of_dataset(policy, live),
        (table.name, _digest([*_way_content(table, live), *_own_content(table)])),
    ]
    while table.unit is not None and table.unit.references is not None:
        table = _build_table(policy, policy.tables[table.unit.references[0]], live)
        found.append((table.name, _digest(_way_content(table, live))))
    return tuple(found)


def _way_content(table: Table, live: LiveSchema) -> list[object]:
    """Return what plans rest on whose rows find their owner over a table: where it is, its keys, and how it leads on.

    Not its bounds, nor its other columns: the rows that count are bounded where they are read.
    """
    found = _live(table, live)
    key_columns = {name for key in (*table.keys, *table.referred) for name in key}
    columns = key_columns.union(() if table.unit is None else table.unit.columns)
    return [
        table.path,
        found.version,
        table.is_partitioned,
        None if table.unit is None else _unit_content(table.unit, found),
        table.keys,
        table.referred,
        found.asserted,
        None if table.proved is None else [table.proved.keys, table.proved.foreign_keys],
        [_column_content(column, found) for column in table.columns if column.name in columns],
    ]


def _own_content(table: Table) -> list[object]:
    """Return what plans that read a table's rows rest on besides: its bounds, and which column stands where."""
    unit = table.unit
    bounds = None if unit is None else [unit.max_rows, unit.max_rows_per_group, unit.max_groups]
    return [bounds, [column.name for column in table.columns]]


def _live(table: Table, live: LiveSchema) -> LiveTable:
    found = live.table((table.path[0], table.path[1]))
    assert found is not None, "the catalog's tables were found in this schema"
    return found


def _unit_content(unit: Unit, found: LiveTable) -> list[object]:
    types = [
        [str(type_), _engine_type(name, found)] for name, type_ in zip(unit.columns, unit.types, strict=True)
    ]
    return [unit.columns, types, unit.references, unit.is_unique, unit.is_not_null, unit.is_held, unit.is_row]


def _column_content(column: Column, found: LiveTable) -> list[object]:
    enforced, values = column.enforced, column.values
    return [
        column.name,
        [str(column.type), _engine_type(column.name, found)],
        [enforced.not_null, _text(enforced.lo), _text(enforced.hi), enforced.max_length],
        None if column.bounds is None else [str(bound) for bound in column.bounds],
        _text(column.step),
        None if values is None else [[type(value).__name__, str(value)] for value in values],
        column.max_length,
        None if column.randomized is None else repr(column.randomized),
    ]


def _engine_type(name: str, found: LiveTable) -> str:
    column = found.column(name)
    assert column is not None, "the catalog's columns were found in this table"
    return column.engine_type


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _digest(content: object) -> str:
    """Return 128 bits of a SHA-256 in hex."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]
