"""Joins the policy with the live schema into the catalog that the binder resolves against."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from ..errors import PolicyError
from ..relation.catalog import Catalog, Column, Proved, Table, Unit
from .columns import build_column, describe_column
from .live_schema import LiveColumn, LiveSchema, LiveTable
from .model import ColumnPolicy, Policy, TablePolicy
from .owners import without_unit
from .section import quote_key, suggest
from .units import asserted_key, build_unit, enforced_keys, find_live_table

__all__ = ["build_catalog", "column_key", "database_names", "match_column", "table_key", "whole_table"]


def build_catalog(policy: Policy, live: LiveSchema) -> Catalog:
    """Return all declared tables with the types and constraints that the database has right now.

    A table is found under the name that the policy gives it: `table`, or `schema.table` outside the
    default schema. Ensures: what `build_unit`, `build_column` and `enforced_keys` ensure, for every table.
    Views are not among them: to read their texts takes the binder (`plan.views`).
    Raises PolicyError on the first disagreement, a table without a unit first; `check` lists them all.
    """
    for name in policy.undecided:
        raise without_unit(table_key(policy, name), policy, name, live)
    tables = {name: _build_table(policy, declared, live) for name, declared in policy.tables.items()}
    fingerprint = _fingerprint(policy, tables, live)
    return Catalog(
        MappingProxyType(tables), live.default_schema, fingerprint, live.dialect, live.case_collation,
        database_names(policy),
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
    return _build_table(policy, policy.tables[name], live, is_whole=True)


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
    )  # fmt: skip


def _proved(table: LiveTable, keys: tuple[tuple[str, ...], ...]) -> Proved | None:
    """Return what the engine proves of a table; of its keys those whose equality is that of their values."""
    if table.proved is None:
        return None
    return replace(table.proved, keys=tuple(key for key in table.proved.keys if key in keys))


def _fingerprint(policy: Policy, tables: dict[str, Table], live: LiveSchema) -> str:
    """Return SHA-256 in hex over all that a plan may rely on: declarations, types, enforced constraints.

    Caps, analysts and descriptions are left out: they change no plan, and stored releases outlive them. `version` rises
    when the same declaration comes to mean something else, so that no draw of the old meaning answers the new.
    """
    content = {
        "version": 4,
        "dataset": policy.dataset_id,
        "neighbours": policy.privacy.neighbours.value,
        **({"together": policy.privacy.together} if policy.privacy.together > 1 else {}),
        "minimum_units": policy.defaults.minimum_units,
        "root": policy.root,
        "default_schema": live.default_schema,
        **({} if live.dialect == "duckdb" else {"engine": [live.dialect, live.case_collation]}),
        "tables": {name: _table_content(table, live) for name, table in tables.items()},
        **({"views": _views_content(policy, live)} if policy.views else {}),
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _table_content(table: Table, live: LiveSchema) -> dict[str, object]:
    found = live.table((table.path[0], table.path[1]))
    assert found is not None, "the catalog's tables were found in this schema"
    engine_types = {column.name: column.engine_type for column in found.columns}
    return {
        "path": table.path,
        **({"version": found.version} if found.version else {}),
        "unit": None if table.unit is None else _unit_content(table.unit, engine_types),
        "keys": table.keys,
        **({"asserted": found.asserted} if found.asserted else {}),
        **({"proved": [table.proved.keys, table.proved.foreign_keys]} if table.proved else {}),
        "columns": [_column_content(column, engine_types[column.name]) for column in table.columns],
    }


def _views_content(policy: Policy, live: LiveSchema) -> dict[str, object]:
    """Return the views' own texts, and what is declared of their columns; with all that their tables enforce."""
    return {
        "declared": {
            name: [view.source, repr([replace(column, description=None) for column in view.columns])]
            for name, view in policy.views.items()
        },
        "texts": {
            view.source: found.definition
            for view in policy.views.values()
            if (found := live.table(live.path_of(view.source))) is not None
        },
        "whole": repr([live.table(live.path_of(name)) for name in policy.tables]),
    }


def _unit_content(unit: Unit, engine_types: dict[str, str]) -> dict[str, object]:
    return {
        "column": _one(unit.columns),
        "type": _one(
            [[str(type_), engine_types[name]] for name, type_ in zip(unit.columns, unit.types, strict=True)]
        ),
        "references": None if unit.references is None else [unit.references[0], _one(unit.references[1])],
        "is_unique": unit.is_unique,
        "is_not_null": unit.is_not_null,
        "is_held": unit.is_held,
        **({"is_row": True} if unit.is_row else {}),
        "max_rows": unit.max_rows,
        "max_rows_per_group": unit.max_rows_per_group,
        "max_groups": unit.max_groups,
    }


def _one(parts: Sequence[object]) -> object:
    """Return a single part as itself: what was stored of a key of one column stays known."""
    return parts[0] if len(parts) == 1 else parts


def _column_content(column: Column, engine_type: str) -> dict[str, object]:
    return {
        "name": column.name,
        "type": [str(column.type), engine_type],
        "enforced": [
            column.enforced.not_null,
            _text(column.enforced.lo),
            _text(column.enforced.hi),
            column.enforced.max_length,
        ],
        "bounds": None if column.bounds is None else [str(bound) for bound in column.bounds],
        "step": _text(column.step),
        "values": None
        if column.values is None
        else [[type(value).__name__, str(value)] for value in column.values],
        "max_length": column.max_length,
        **({} if column.randomized is None else {"randomized": repr(column.randomized)}),
    }


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)
