"""Post-processing: released rows into the sealed engine, its rows out. Nothing exact of a person comes here.

What reads public tables alone is a part: the owner's engine answers it, within one snapshot. A statement of
public tables alone is one part and nothing else.

House rule: how long something takes here may decide what is answered (an error, bars that are NULL): it depends on
released values, public rows and the machine alone. Time is counted from where post-processing begins, not from where
the statement did: how long the database took for private rows does not enter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure, Refusal
from ..memory import Share
from ..plan.dialects.dialect import Dialect
from ..plan.privacy.rows import Release
from ..plan.release_plan import ReleasePlan
from ..postprocess import ReleasedColumn, ReleasedTable, SealedEngine, finish
from ..postprocess.bars import BAR_ENDS, Bar, Ends, TestedEnds, resolve_bars
from ..postprocess.print_public import PublicPrinter
from ..postprocess.public_parts import Fetched, Needed, check_usable, split
from ..postprocess.rows import (
    FetchedTable,
    ResultRows,
    Spool,
    carried_type,
    check_carried,
    check_size,
    chunk_rows,
    encode_fetched,
    fetch_statement,
    finish_columns,
    show_intervals,
)
from ..records import dataclass
from ..relation.catalog import OwnRows, Scalar, Table
from ..relation.relations import Relation, Scan, called_in
from ..relation.types import BIGINT, TEXT, Kind, SqlType
from ..waits import interrupt_after
from .answer_bars import Cuts, Maker, Simulation, empty_bars, empty_replicas, empty_simulation, no_cuts
from .released import Groups, ReleasedMeasurement, integers, shown
from .run import ReleasedRows

if TYPE_CHECKING:
    from ..backends import Snapshot


MAX_PUBLIC_ROWS = 1_000_000
"""Most public rows that a statement may answer, or bring together with released ones."""
PUBLIC_SECONDS = 60.0
"""Most time that the owner's engine may take for public tables at once."""
_FEW_ROWS = 10_000
"""Public rows up to which a part is fetched beside others; one of more takes what an analyst may have in memory."""
_TEXT_BYTES = 56
_ONE = ("one", BIGINT)
Columns = list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]
"""Columns as arrays, each with where it is NULL (None: nowhere)."""
POSTPROCESS_SECONDS = 60.0
"""Most time for post-processing, where the session names no other."""


@dataclass(frozen=True, slots=True)
class DatabasePart:
    """A public relation for the owner's engine: its SQL, and the same over tables "t_<name>" for a check.

    `columns`: names and types of what it returns, in order; none where rows alone matter. `own`: where the rows of an
    analyst's own table are, which is asked in the engine's place.
    """

    sql: str
    check_sql: str
    columns: tuple[tuple[str, SqlType], ...]
    tables: tuple[str, ...]
    own: OwnRows | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """An analyzed relation as SQL, and what it reads: releases by number, public tables, public parts.

    `sql` is for the sealed engine and reads part number i as "p<i>"; when `in_database` it is the one part,
    for the owner's engine, and its rows are the answer. `simulations`: of the bars in tables "b<i>"; `numbered`: the
    releases whose rows these number.
    """

    relation: Relation
    sql: str
    releases: frozenset[int]
    tables: dict[str, Table]
    bars: dict[int, tuple[Bar, ...]]
    parts: tuple[DatabasePart, ...] = ()
    in_database: bool = False
    simulations: tuple[Simulation, ...] = ()
    numbered: frozenset[int] = frozenset()


def compile_public(relation: Relation, plans: Sequence[ReleasePlan], dialect: Dialect) -> Compiled:
    """Return the query of an analyzed relation.

    `dialect`: of the owner's engine. DuckDB answers public parts as the sealed engine would; of any other
    only tables are asked.

    Raises:
        Refusal: 0A000 for a public column whose type cannot be carried.
    """
    by_release: dict[Release, ReleasePlan] = {plan.release: plan for plan in plans}
    check_usable(relation)
    barred = resolve_bars(relation, by_release) if BAR_ENDS & called_in(relation) else relation
    resolved = show_intervals(barred)
    cut = split(resolved, tables_only=not dialect.runs_public_parts)
    tables: dict[str, Table] = {}
    if isinstance(cut.relation, Fetched):
        part = _whole(resolved, tables)
        return Compiled(resolved, part.sql, frozenset(), tables, {}, (part,), True)
    check_carried(cut.parts)
    parts = tuple(_part(source, needed, tables, dialect) for source, needed in cut.parts.items())
    numbers = {source: (number, needed) for number, (source, needed) in enumerate(cut.parts.items())}
    numbered = {plan.release: (i, plan) for i, plan in enumerate(plans)}
    printer = PublicPrinter(numbered, numbers)
    sql = printer.relation(cut.relation)
    simulations = tuple(_simulation(ends, PublicPrinter(numbered, numbers)) for ends in printer.simulations)
    return Compiled(
        resolved, sql, frozenset(printer.used), tables, dict(printer.bars), parts, False, simulations,
        frozenset(printer.numbered),
    )  # fmt: skip


def _simulation(ends: Ends, printer: PublicPrinter) -> Simulation:
    sql = printer.relation(ends.simulation)
    tested = printer.relation(ends.tested) if isinstance(ends, TestedEnds) else None
    quotients = ends.quotients if isinstance(ends, TestedEnds) else ()
    return Simulation(
        sql, tuple(column.type for column in ends.columns[: ends.width]), ends.together, frozenset(printer.used),
        {number: tuple(sorted(coordinates)) for number, coordinates in printer.replicated.items()},
        frozenset(printer.read), tested, quotients,
    )  # fmt: skip


@dataclass
class PublicRows:
    """What a statement reads of public tables, each part asked for once; `snapshot` opens when first needed.

    `own`: gives columns of an analyst's own table, by one SELECT.
    `seconds`: the longest that one part may take, None for the usual limit. `share`: what is held is counted there, and
    large answers are kept in files; None: in memory, and nobody counts. `most_rows`: of one answer; `most_seconds`: the
    owner's limit, where that is one. `rest`: what is done between two pieces of a large answer.
    """

    snapshot: Callable[[], Snapshot]
    seconds: float | None = None
    share: Share | None = None
    _answers: dict[DatabasePart, Sequence[tuple[Any, ...]]] = field(default_factory=dict)
    _tables: dict[DatabasePart, FetchedTable] = field(default_factory=dict)
    most_rows: int = MAX_PUBLIC_ROWS
    most_seconds: float | None = None
    rest: Callable[[], None] = lambda: None
    own: Callable[[OwnRows, str], Columns] | None = None

    def fetch(self, compiled: Compiled) -> None:
        """Ask for all that a compiled query reads: before the charge, so that what fails here costs nothing.

        Raises:
            Refusal: 54001 for too many rows; 54000 for more than the owner answers.
            EngineFailure: 57V01 when public tables take too long, 57014 when the statement is cancelled.
        """
        for number, part in enumerate(compiled.parts):
            if compiled.in_database:
                self.answer(part)
            else:
                self.table(f"p{number}", part)

    def answer(self, part: DatabasePart) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a part that is the whole query. Raises as `fetch`."""
        with self._telling():
            if part not in self._answers:
                few = _Few(self.snapshot(), self.most_rows)
                self._answers[part] = _answered(part, few, self.seconds, self.spool())
        return self._answers[part]

    def spool(self) -> Spool | None:
        """Return what keeps an answer; None: it stays in memory."""
        return None if self.share is None else Spool(self.share, self.rest)

    def table(self, name: str, part: DatabasePart) -> FetchedTable:
        """Return a part as a table of the sealed engine. Raises as `fetch`."""
        with self._telling():
            if part not in self._tables:
                if part.own is not None:
                    assert self.own is not None, "who reads own tables has some"
                    self._tables[part] = _fetched(name, part, partial(self.own, part.own), self.share)
                else:
                    with _in_time(snapshot := self.snapshot(), self.seconds):
                        self._tables[part] = _fetched(name, part, snapshot.columns, self.share)
        return replace(self._tables[part], name=name)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Have a failure say whose limit on time it is, where that is the owner's."""
        try:
            yield
        except EngineFailure as failure:
            if failure.sqlstate == "57V01" and self.seconds == self.most_seconds:
                failure.hint = "the owner sets this limit of the server: filter or aggregate the rows first"
            raise


class Patience:
    """How long one query may be post-processed, from now on: for simulated bars half of it, all together.

    `without_bars`: bars were given up, and are NULL. `limit`: in seconds.
    """

    def __init__(self, seconds: float | None) -> None:
        """`seconds`: None for the usual limit."""
        self.limit = seconds or POSTPROCESS_SECONDS
        self._end = time.monotonic() + self.limit
        self._end_of_bars = self._end - self.limit / 2
        self.without_bars = False

    @property
    def left(self) -> float:
        """Seconds left."""
        return self._end - time.monotonic()

    @property
    def left_for_bars(self) -> float:
        """Seconds left for simulated bars."""
        return self._end_of_bars - time.monotonic()


def run_public(
    compiled: Compiled,
    rows: Sequence[ReleasedRows],
    engine: SealedEngine,
    level: Fraction,
    public: PublicRows,
    patience: Patience,
    cuts: Cuts = no_cuts,
) -> Sequence[tuple[Any, ...]]:
    """Return the rows of a compiled query over released rows and public tables; `level` is that of its bars, and `cuts`
    says what bounds leave out at it.

    Raises:
        Refusal: 54001 for public rows or an answer that are too many.
        EngineFailure: 57V01 when it takes too long, 57014 when the statement is cancelled.
    """
    types = [column.type for column in compiled.relation.columns]
    if compiled.in_database:
        return public.answer(compiled.parts[0])
    fetched = [public.table(f"p{i}", part) for i, part in enumerate(compiled.parts)]
    maker = Maker(engine, level, patience, rows, compiled.bars, cuts)
    plain = {number: _table(number, rows[number]) for number in compiled.releases}
    shown = {
        number: _numbered(plain[number]) if number in compiled.numbered else plain[number]
        for number in sorted(compiled.releases)
    }
    tables: list[ReleasedTable | FetchedTable] = [*maker.with_bars(shown).values()]
    for number, simulation in enumerate(compiled.simulations):
        read = {i: _numbered(plain[i] if i in plain else _table(i, rows[i])) for i in simulation.releases}
        tables.append(maker.simulated(f"b{number}", simulation, read, fetched))
    tables += fetched
    if not types:
        return engine.run(compiled.sql, tables, seconds=patience.left).rows
    if (spool := public.spool()) is not None:
        return engine.keep(compiled.sql, tables, types, spool, seconds=patience.left)
    return finish(engine.run_large(compiled.sql, tables, seconds=patience.left), types).rows


def check_public(compiled: Compiled, plans: Sequence[ReleasePlan], engine: SealedEngine) -> None:
    """Run a compiled query over tables without rows, if not done before: what cannot be bound fails before the charge.

    Raises:
        Refusal: 54001, as `run_public`; EngineFailure: the printed query is not one that the engine takes.
    """
    for part in compiled.parts:
        if part.own is not None:
            continue
        engine.check(part.check_sql, [_empty_table(name, compiled.tables[name]) for name in part.tables])
    if compiled.in_database:
        return
    plain = {number: _empty_release(number, plans[number]) for number in compiled.releases}
    for simulation in compiled.simulations:
        plain |= {number: _empty_release(number, plans[number]) for number in simulation.releases}
    parts = [_empty(f"p{i}", part.columns) for i, part in enumerate(compiled.parts)]
    tables = [empty_simulation(f"b{i}", simulation) for i, simulation in enumerate(compiled.simulations)]
    for number in sorted(compiled.releases):
        bars = compiled.bars.get(number)
        table = empty_bars(plain[number], bars) if bars else plain[number]
        tables.append(_numbered(table) if number in compiled.numbered else table)
    engine.check(compiled.sql, [*tables, *parts])
    for simulation in compiled.simulations:
        read = [_numbered(plain[number]) for number in simulation.releases]
        read += [*empty_replicas(simulation), *(parts[number] for number in simulation.parts)]
        engine.check(simulation.sql, read)
        if simulation.tested is not None:
            engine.check(simulation.tested, read)


def _empty_release(number: int, plan: ReleasePlan) -> ReleasedTable:
    """Return a release's table without rows."""
    keys: tuple[list[Scalar], ...] = tuple([] for _ in plan.release.keys)
    empty = ReleasedRows(plan, Groups(keys, 0), {})
    for index, measurement in enumerate(plan.measurements):
        empty.measurements[index] = ReleasedMeasurement(
            tuple(integers([]) for _ in range(measurement.size)), None, ()
        )
    return _table(number, empty)


# --- public parts --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Few:
    """A snapshot whose result has at most so many rows."""

    snapshot: Snapshot
    most: int

    def run(self, *asked: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Run one SELECT, as `Snapshot.run`. Raises Refusal (54000) for too many rows."""
        count = 0
        for chunk in self.snapshot.run(*asked):
            count += len(chunk)
            if self.most < MAX_PUBLIC_ROWS and count > self.most:
                raise Refusal(
                    f"the answer has more than {self.most} rows of public tables, the most that this server gives",
                    sqlstate="54000", hint="filter or aggregate them, or take a part with LIMIT",
                )  # fmt: skip
            yield chunk

    def cancel(self) -> None:
        """Stop what runs."""
        self.snapshot.cancel()


@dataclass(frozen=True, slots=True)
class _Late:
    """A snapshot as the watchdog sees it."""

    snapshot: Snapshot | _Few

    def interrupt(self) -> None:
        self.snapshot.cancel()


@contextmanager
def _in_time(snapshot: Snapshot | _Few, seconds: float | None) -> Iterator[None]:
    """Have the owner's engine answer in time. Raises EngineFailure (57V01): it did not."""
    limit = seconds or PUBLIC_SECONDS
    with interrupt_after(_Late(snapshot), limit) as watch:
        try:
            yield
            return
        except EngineFailure:
            if not watch.is_late:
                raise
    said = f"reading public tables took more than {limit:g} seconds"
    raise EngineFailure(said, sqlstate="57V01", limit=said)


def _whole(relation: Relation, tables: dict[str, Table]) -> DatabasePart:
    """Return a public statement as the one part, with its rows as the analyst asked for them."""
    sql, check_sql, read = _printed(relation, tables)
    columns = tuple((f"c{i}", column.type) for i, column in enumerate(relation.columns))
    return DatabasePart(sql, check_sql, columns, read)


def _part(relation: Relation, needed: Needed, tables: dict[str, Table], dialect: Dialect) -> DatabasePart:
    """Return a part with the columns that are read of it, in the types that arrays carry."""
    if isinstance(relation, Scan) and (own := relation.table.own) is not None:
        columns = tuple((f"c{i}", relation.columns[i].type) for i in sorted(needed)) or (_ONE,)
        shown = ", ".join("1 AS one" if name == "one" else name for name, _ in columns)
        return DatabasePart(f"SELECT {shown} FROM t{own.number}", "", columns, (relation.table.name,), own)
    sql, check_sql, names = _printed(relation, tables)
    columns = tuple((f"c{i}", relation.columns[i].type) for i in sorted(needed)) or (_ONE,)
    shown = ", ".join(
        f"TRY_CAST({'1' if name == 'one' else f't.{name}'} AS {carried_type(type_)}) AS {name}"
        for name, type_ in columns
    )
    sql, check_sql = (f"SELECT {shown} FROM ({text}) AS t" for text in (sql, check_sql))
    if not dialect.runs_public_parts:
        sql = fetch_statement(relation, sorted(needed), dialect)
    return DatabasePart(sql, check_sql, columns, names)


def _printed(relation: Relation, tables: dict[str, Table]) -> tuple[str, str, tuple[str, ...]]:
    printer = PublicPrinter({}, in_database=True)
    sql = printer.relation(relation)
    tables |= printer.tables
    return sql, PublicPrinter({}).relation(relation), tuple(printer.tables)


def _answered(
    part: DatabasePart, snapshot: _Few, seconds: float | None, spool: Spool | None
) -> Sequence[tuple[Any, ...]]:
    """Return the rows of a public statement, as its engine gives them and in the types that are told."""
    types = [type_ for _, type_ in part.columns]
    if spool is not None and types:
        return _spooled(part, types, snapshot, seconds, spool)
    rows: list[tuple[Any, ...]] = []
    with _in_time(snapshot, seconds):
        for chunk in snapshot.run(part.sql):
            rows += chunk
            check_size(len(rows), len(types), MAX_PUBLIC_ROWS)
    return finish(ResultRows(tuple(name for name, _ in part.columns), rows), types).rows if types else rows


def _spooled(
    part: DatabasePart, types: Sequence[SqlType], snapshot: _Few, seconds: float | None, spool: Spool
) -> Sequence[tuple[Any, ...]]:
    with _in_time(snapshot, seconds):
        for chunk in snapshot.run(part.sql, (), chunk_rows(len(types))):
            check_size(len(spool) + len(chunk), len(types), MAX_PUBLIC_ROWS)
            spool.add(finish_columns(chunk, types))
    return spool.rows()


def _fetched(
    name: str, part: DatabasePart, read: Callable[[str], Columns], share: Share | None
) -> FetchedTable:
    """Return the rows of a part as a table for the sealed engine.

    Where memory is counted, few rows are fetched at once; if there are more, what an analyst may have is taken first.
    """
    arrays = None if share is None else read(f"{part.sql} LIMIT {_FEW_ROWS + 1}")
    if arrays is None or len(arrays[0][0]) > _FEW_ROWS:
        arrays = None
        before = 0 if share is None else share.take_large()
        arrays = read(f"{part.sql} LIMIT {MAX_PUBLIC_ROWS + 1}")
        if share is not None:
            share.settle(before, sum(_size(values) for values, _ in arrays))
    if len(arrays[0][0]) > MAX_PUBLIC_ROWS:
        named = " and ".join(f'"{table.removeprefix("t_")}"' for table in part.tables)
        raise Refusal(
            f"more than {MAX_PUBLIC_ROWS} rows of {named} meet the released rows",
            sqlstate="54001", hint="filter or aggregate the public rows first, in a subquery",
        )  # fmt: skip
    columns = {
        column: encode_fetched(type_, values, nulls)
        for (column, type_), (values, nulls) in zip(part.columns, arrays, strict=True)
    }
    return FetchedTable(name, columns)


def _size(values: npt.NDArray[Any]) -> int:
    """Return about how many bytes an array takes, with its texts."""
    if values.dtype.kind != "O":
        return values.nbytes
    return values.nbytes + sum(_TEXT_BYTES + len(text) for text in values if isinstance(text, str))


def _empty_table(name: str, table: Table) -> ReleasedTable:
    """Return a public table without rows; a column of a type that is never carried is text there."""
    types = [TEXT if c.type.kind in (Kind.OPAQUE, Kind.INTERVAL) else c.type for c in table.columns]
    return _empty(name, tuple((f"c{i}", type_) for i, type_ in enumerate(types)))


def _empty(name: str, columns: Sequence[tuple[str, SqlType]]) -> ReleasedTable:
    return ReleasedTable(name, tuple(ReleasedColumn(column, type_, []) for column, type_ in columns))


# --- releases ------------------------------------------------------------------------------------------


def _table(number: int, rows: ReleasedRows) -> ReleasedTable:
    release = rows.plan.release
    assert rows.groups is not None
    columns = []
    for index, key in enumerate(release.keys):
        columns.append(ReleasedColumn(f"k{index}", key.type, shown(rows.groups.columns[index], key.type)))
    noisy = (one for number in range(len(rows.plan.measures)) for one in rows.measurements[number].values)
    columns += [ReleasedColumn(f"m{number}", BIGINT, values) for number, values in enumerate(noisy)]
    if not columns:
        columns.append(ReleasedColumn("one", BIGINT, [1] * rows.groups.size))
    return ReleasedTable(f"r{number}", tuple(columns))


def _numbered(table: ReleasedTable) -> ReleasedTable:
    """Return a table with its rows' numbers."""
    number = ReleasedColumn("row", BIGINT, np.arange(table.row_count))
    return ReleasedTable(table.name, (*table.columns, number))
