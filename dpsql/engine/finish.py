"""Above the door: released rows into the sealed engine, its rows out. Nothing exact comes here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Refusal
from ..mechanisms import LaplaceNoise
from ..plan.planner import ReleasePlan
from ..plan.quote import identifier, table_name
from ..plan.rows import Release
from ..postprocess import ReleasedColumn, ReleasedTable, SealedEngine, error_bars, finish
from ..postprocess.bars import Bar, resolve_bars
from ..postprocess.print_public import PublicPrinter
from ..relation.catalog import Scalar, Table
from ..relation.relations import Relation
from ..relation.types import BIGINT, DOUBLE
from .released import Groups, ReleasedVector, integers, shown
from .run import ReleasedRows

if TYPE_CHECKING:
    from ..backends import Snapshot

__all__ = ["Compiled", "check_public", "compile_public", "run_public"]

MAX_PUBLIC_ROWS = 1_000_000
"""Most rows of a public table that a statement may read."""
_DRAWS = 2_000
_MAX_EVALUATIONS = 40_000_000


@dataclass(frozen=True, slots=True)
class Compiled:
    """A judged relation as SQL for the sealed engine, and what it reads: releases by number, public tables."""

    relation: Relation
    sql: str
    releases: frozenset[int]
    tables: dict[str, Table]
    bars: dict[int, tuple[Bar, ...]]


def compile_public(relation: Relation, plans: Sequence[ReleasePlan], level: Fraction) -> Compiled:
    """Return the query of a judged relation; `level` is that of dp_low and dp_high."""
    by_release: dict[Release, ReleasePlan] = {plan.release: plan for plan in plans}
    resolved = resolve_bars(relation, by_release, level)
    printer = PublicPrinter({plan.release: (i, plan) for i, plan in enumerate(plans)})
    sql = printer.relation(resolved)
    return Compiled(resolved, sql, frozenset(printer.used), printer.tables, dict(printer.bars))


def run_public(
    compiled: Compiled, rows: Sequence[ReleasedRows], engine: SealedEngine, level: Fraction,
    snapshot: Callable[[], Snapshot],
) -> list[tuple[Any, ...]]:  # fmt: skip
    """Return the rows of a compiled query over released rows and public tables.

    Raises:
        Refusal: 54001 for a public table or an answer that is too large.
    """
    tables = []
    for number in sorted(compiled.releases):
        table = _table(number, rows[number])
        for index, bar in enumerate(compiled.bars.get(number, ())):
            if bar.half_width is None:
                table = _simulated(table, index, bar, rows[number].plan, engine, level)
        tables.append(table)
    tables += [_public(name, table, snapshot()) for name, table in compiled.tables.items()]
    answer = engine.run(compiled.sql, tables)
    types = [column.type for column in compiled.relation.columns]
    return finish(answer, types).rows if types else answer.rows


def check_public(compiled: Compiled, plans: Sequence[ReleasePlan], engine: SealedEngine) -> None:
    """Run a compiled query over tables without rows: what the engine cannot bind fails before the charge.

    Raises:
        Refusal: 54001, as `run_public`; EngineFailure: the printed query is not one that the engine takes.
    """
    tables = []
    for number in sorted(compiled.releases):
        keys: tuple[list[Scalar], ...] = tuple([] for _ in plans[number].release.keys)
        empty = ReleasedRows(plans[number], Groups(keys, 0), {})
        for index, vector in enumerate(plans[number].vectors):
            empty.vectors[index] = ReleasedVector(tuple(integers([]) for _ in range(vector.size)), None)
        table = _table(number, empty)
        for index, bar in enumerate(compiled.bars.get(number, ())):
            if bar.half_width is None:
                table = _with_ends(table, index, [], [])
        tables.append(table)
    for name, public in compiled.tables.items():
        columns = tuple(ReleasedColumn(f"c{i}", column.type, []) for i, column in enumerate(public.columns))
        tables.append(ReleasedTable(name, columns))
    engine.run(compiled.sql, tables)


def _table(number: int, rows: ReleasedRows) -> ReleasedTable:
    release = rows.plan.release
    assert rows.groups is not None
    columns = []
    for index, key in enumerate(release.keys):
        columns.append(ReleasedColumn(f"k{index}", key.type, shown(rows.groups.columns[index], key.type)))
    coordinate = 0
    for vector in range(len(rows.plan.vectors)):
        for noisy in rows.vectors[vector].values:
            columns.append(ReleasedColumn(f"m{coordinate}", BIGINT, noisy))
            coordinate += 1
    if not columns:
        columns.append(ReleasedColumn("one", BIGINT, [1] * rows.groups.size))
    return ReleasedTable(f"r{number}", tuple(columns))


def _simulated(
    table: ReleasedTable, index: int, bar: Bar, plan: ReleasePlan, engine: SealedEngine,
    level: Fraction,
) -> ReleasedTable:  # fmt: skip
    """Return the table with two more columns: the simulated bars of an expression."""
    draws = min(_DRAWS, _MAX_EVALUATIONS // max(1, table.row_count))
    if draws < 200:
        empty: list[float | None] = [None] * table.row_count
        low, high = empty, empty
    else:
        noise = LaplaceNoise()
        replicas: dict[str, Any] = {}
        for coordinate in bar.coordinates:
            scale = plan.scale(plan.vector_of(coordinate))
            replicas[f"m{coordinate}"] = np.asarray(noise.laplace(scale, draws))
        printer = PublicPrinter({plan.release: (0, plan)})
        sql = printer.over_release(plan.release, bar.expr)
        low, high = error_bars(engine, sql, table, replicas, level)
    return _with_ends(table, index, low, high)


def _with_ends(
    table: ReleasedTable, index: int, low: list[float | None], high: list[float | None]
) -> ReleasedTable:
    added = (ReleasedColumn(f"lo{index}", DOUBLE, low), ReleasedColumn(f"hi{index}", DOUBLE, high))
    return ReleasedTable(table.name, (*table.columns, *added))


def _public(name: str, table: Table, snapshot: Snapshot) -> ReleasedTable:
    columns = ", ".join(identifier(column.name) for column in table.columns)
    sql = f"SELECT {columns} FROM {table_name(table.path)} LIMIT {MAX_PUBLIC_ROWS + 1}"
    rows = [row for chunk in snapshot.run(sql) for row in chunk]
    if len(rows) > MAX_PUBLIC_ROWS:
        raise Refusal(f'public table "{table.name}" has more than {MAX_PUBLIC_ROWS} rows', sqlstate="54001")
    parts = zip(*rows, strict=True) if rows else ([] for _ in table.columns)
    shown = [
        ReleasedColumn(f"c{i}", column.type, list(values))
        for i, (column, values) in enumerate(zip(table.columns, parts, strict=True))
    ]
    return ReleasedTable(name, tuple(shown))
