"""The sealed engine: an in-memory DuckDB that answers SQL printed by us over released tables.

House rules:

1. The analyst's text never comes here. Were it to come, it would still reach no file, no network,
   no extension, no Python variable and no setting (soundness.md 4.4 D03): the seal is DuckDB's own
   configuration, locked before the first statement, and one SELECT is all that `run` executes.
2. A setting of the seal that this DuckDB does not know is a failure, never a warning.
3. One statement's tables live in its own cursor, as temporary tables, and end with it: statements
   that run at the same time do not see each other.
4. A statement has its database to itself, of `_SMALL_MIB`; one that needs more is run again, alone, in one of the
   whole limit. So what another analyst's statement takes never makes this one fail.
5. The engine's error text may quote released values. It goes to the owner's log (`detail`), no
   further.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, TypeVar

import duckdb
import numpy as np

from ..cache import Cache
from ..errors import EngineFailure, Refusal
from ..records import dataclass
from ..regex import regex
from ..relation.relations import MAX_RECURSION, MAX_ROW_SERIES
from ..relation.types import BIGINT, SqlType
from ..seal import seal
from ..waits import Turns, Watch, interrupt_after
from .print_calls import ENDLESS, NO_PATTERN, ROUNDS, STANDS_AT, TOO_MANY
from .rows import (
    CELLS,
    MAX_ROWS,
    Arrays,
    EncodedColumn,
    FetchedTable,
    ReleasedColumn,
    ReleasedTable,
    ResultRows,
    Spool,
    check_size,
    chunk_rows,
    encode_column,
    finish_arrays,
    finish_columns,
    parameters_of,
    quote,
)

T = TypeVar("T")

_POSTGRES_WAYS = {
    "default_null_order": "nulls_last_on_asc_first_on_desc",
    "integer_division": "true",
    "ieee_floating_point_ops": "true",
    "error_on_division_by_zero": "false",
    "scalar_subquery_error_on_multiple_rows": "false",
    "TimeZone": "UTC",
    "allow_extension_repositories": "forbidden",
}
"""What makes the engine behave, where this DuckDB has the setting (else it knows no such name); some came with 2.0."""

LONGEST_SECONDS = 600.0
"""No statement takes longer, whatever limit its session asks for: the engine is shared."""

_SMALL_MIB, _MOST_SMALL, _MOST_EACH, _MOST_WARM = 64, 64, 4, 2
"""Of the small databases: their memory, how many are used at once, by one owner, and how many wait for the next."""
_LOADING, _KEPT, _STACKED, _OF = "loading$", "kept$", "stacked$", "of$"
_FETCHED = 65_536
_MANY_ROWS = 1000
"""A table of more has its answer fetched by column where that is sure: an object for each value takes time."""
_SURE = frozenset({"BOOLEAN", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR"})
"""What DuckDB gives as arrays with nothing lost; all other integers and decimals may become doubles."""
_MAX_CHECKED = 256
"""Statements of which it is remembered, by a digest, that the engine takes them."""
_FEW_ROWS = 16
"""Up to so many rows travel with the statement itself: a millisecond faster than as a table of arrays."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What one engine's statements may take.

    `memory_mib` is for one statement; `seconds` is wall time for one statement, loading included and waiting not, where
    its caller names none; `max_rows` is the length of one result.
    """

    memory_mib: int = 1024
    seconds: float = 60.0
    max_rows: int = MAX_ROWS


@dataclass(frozen=True, slots=True)
class _Asked:
    """One SELECT as the engine gets it: its text and its positional parameters."""

    sql: str
    parameters: list[Any]


_Answer = Callable[[duckdb.DuckDBPyConnection, _Asked], T]
"""Makes an answer in a cursor that has the tables."""


class _Databases:
    """The databases of the engines that share them: small ones, some kept warm, and a large one while it is needed."""

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._warm: list[duckdb.DuckDBPyConnection] = []
        self._closed = 0
        self._small, self._large = Turns(_MOST_SMALL, _MOST_EACH), Turns(1, 1)
        self.checked: Cache[bool] = Cache(_MAX_CHECKED)

    @property
    def has_large(self) -> bool:
        """Whether a statement for which a small database does not do may have a larger one."""
        return self._limits.memory_mib > _SMALL_MIB

    @contextmanager
    def small(self, owner: str, is_cancelled: Callable[[], bool]) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a database that nobody else has meanwhile. Raises EngineFailure: it is cancelled, or not sealed."""
        with self._small.turn(owner, is_cancelled):
            with self._lock:
                closed, database = self._closed, self._warm.pop() if self._warm else None
            database = database or _open_sealed(min(_SMALL_MIB, self._limits.memory_mib))
            is_whole = True
            try:
                yield database
            except (duckdb.FatalException, duckdb.InternalException, duckdb.OutOfMemoryException):
                is_whole = (
                    False  # it answers nothing more after the first two, and gives memory back after the last
                )
                raise
            finally:
                with self._lock:
                    is_kept = is_whole and closed == self._closed and len(self._warm) < _MOST_WARM
                    if is_kept:
                        self._warm.append(database)
                if not is_kept:
                    database.close()

    @contextmanager
    def last(self, owner: str, is_cancelled: Callable[[], bool]) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a database of the whole limit; a large one is the only one. Raises as `small`."""
        if not self.has_large:
            with self.small(owner, is_cancelled) as small:
                yield small
            return
        with self._large.turn(owner, is_cancelled):
            database = _open_sealed(self._limits.memory_mib)
            try:
                yield database
            finally:
                database.close()

    def close(self) -> None:
        """Let those go that nobody has, and the others once they are given back."""
        with self._lock:
            warm, self._warm = self._warm, []
            self._closed += 1
        for database in warm:
            database.close()


class SealedEngine:
    """Sealed DuckDBs, opened when they are needed (20 ms), some kept warm; safe to share by threads."""

    def __init__(
        self, limits: EngineLimits | None = None, *, _databases: _Databases | None = None, _owner: str = ""
    ) -> None:
        self._limits = limits or EngineLimits()
        self._shared, self._owner = _databases or _Databases(self._limits), _owner
        self._lock = threading.Lock()
        self._running: set[Watch] = set()
        self._is_cancelled: Callable[[], bool] = _never

    def sharing(self, is_cancelled: Callable[[], bool], owner: str = "") -> SealedEngine:
        """Return an engine on the same databases, whose `cancel` stops its own statements alone.

        `is_cancelled` says whether one that begins now is to be stopped at once; `owner`: who shares turns with others.
        """
        engine = SealedEngine(self._limits, _databases=self._shared, _owner=owner)
        engine._is_cancelled = is_cancelled
        return engine

    def run(
        self, sql: str, tables: Sequence[ReleasedTable | FetchedTable], parameters: Sequence[Any] = (),
        *, seconds: float | None = None,
    ) -> ResultRows:  # fmt: skip
        """Return the rows of one SELECT over `tables`, each known by its name.

        Requires: `sql` was printed by us; `parameters` are its positional ones ($1, …). Ensures:
        the tables are gone when this returns or raises. Raises Refusal (54001) when the result or a
        recursion has too many rows, or it takes too much memory, EngineFailure (57V01) when it takes more
        than `seconds` and (57014) when it is cancelled, and EngineFailure for everything else that the engine may say.
        """
        return self._run(_Asked(sql, list(parameters)), tables, self._answer, seconds)

    def check(self, sql: str, tables: Sequence[ReleasedTable]) -> None:
        """Run a SELECT over tables without rows, once for each text, whatever its doubles, and each types of columns.

        Raises as `run`.
        """
        shapes = [(table.name, [(one.name, one.type) for one in table.columns]) for table in tables]
        key = sha256(repr((_with_any_doubles(sql), shapes)).encode()).digest()
        if self._shared.checked.get(key):
            return
        self.run(sql, tables)
        self._shared.checked.put(key, True)

    def run_large(
        self, sql: str, tables: Sequence[ReleasedTable | FetchedTable], *, seconds: float | None = None
    ) -> ResultRows | Arrays:
        """Return the same as `run`, by column where the tables are large and the types allow it."""
        answer = self._arrays if any(map(_is_large, tables)) else self._answer
        return self._run(_Asked(sql, []), tables, answer, seconds)

    def keep(
        self, sql: str, tables: Sequence[ReleasedTable | FetchedTable], types: Sequence[SqlType], spool: Spool,
        *, seconds: float | None = None,
    ) -> Sequence[tuple[Any, ...]]:  # fmt: skip
        """Return the rows that `finish` makes of what `run_large` returns, of which no more than a chunk is in memory.

        Raises as `run`; EngineFailure (53200) where there is no room for them.
        """
        are_large = any(map(_is_large, tables))

        def answer(cursor: duckdb.DuckDBPyConnection, asked: _Asked) -> Spool:
            spool.clear()  # a statement is run again where it needs more memory
            if are_large:
                limited = _limited(cursor, asked.sql, self._limits.max_rows)
                cursor.execute(f"CREATE TEMP TABLE {quote(_KEPT)} AS {limited}", asked.parameters)
                self._keep_slices(cursor, types, spool)
            else:
                cursor.execute(_select(cursor, asked.sql), asked.parameters)
                self._keep_rows(cursor, types, spool)
            return spool

        return self._run(_Asked(sql, []), tables, answer, seconds).rows()

    def _keep_rows(self, cursor: duckdb.DuckDBPyConnection, types: Sequence[SqlType], spool: Spool) -> None:
        size = chunk_rows(len(types))
        while rows := cursor.fetchmany(size):
            check_size(len(spool) + len(rows), len(types), self._limits.max_rows)
            spool.add(finish_columns(rows, types))

    def _keep_slices(self, cursor: duckdb.DuckDBPyConnection, types: Sequence[SqlType], spool: Spool) -> None:
        """Read the table of an answer: by column where the types allow it."""
        described = cursor.execute(f"SELECT * FROM {quote(_KEPT)} LIMIT 0").description or ()
        if not _SURE.issuperset(str(column[1]) for column in described):
            cursor.execute(f"SELECT * FROM {quote(_KEPT)}")
            self._keep_rows(cursor, types, spool)
            return
        found = cursor.execute(f"SELECT count(*) FROM {quote(_KEPT)}").fetchone()
        total = 0 if found is None else int(found[0])
        check_size(total, len(types), self._limits.max_rows)
        size = chunk_rows(len(types), CELLS)
        for start in range(0, total, size):
            # one thread scans in the order of insertion
            cursor.execute(f"SELECT * FROM {quote(_KEPT)} WHERE rowid >= {start} AND rowid < {start + size}")
            spool.add(finish_arrays(tuple(cursor.fetchnumpy().values()), types))

    def _run(
        self,
        asked: _Asked,
        tables: Sequence[ReleasedTable | FetchedTable],
        answer: _Answer[T],
        seconds: float | None,
    ) -> T:
        def run(database: duckdb.DuckDBPyConnection) -> T:
            cursor = database.cursor()
            try:
                return self._run_on(cursor, asked, tables, answer, seconds)
            finally:
                cursor.close()

        try:
            if self._shared.has_large:
                with (
                    suppress(duckdb.OutOfMemoryException),
                    self._shared.small(self._owner, self._is_cancelled) as database,
                ):
                    return run(database)
            with self._shared.last(self._owner, self._is_cancelled) as database:
                return run(database)
        except duckdb.OutOfMemoryException as error:
            raise Refusal(
                "the answer takes more memory than one statement may use",
                sqlstate="54001",
                hint="join or sort fewer rows above the aggregates",
            ) from error
        except duckdb.Error as error:
            refusal = _without_end(str(error))
            if refusal is not None:
                raise refusal from error
            raise EngineFailure(f"post-processing: {error}") from error

    def _run_on(
        self,
        cursor: duckdb.DuckDBPyConnection,
        asked: _Asked,
        tables: Sequence[ReleasedTable | FetchedTable],
        answer: _Answer[T],
        seconds: float | None,
    ) -> T:
        """Run in a cursor. Raises duckdb.Error; EngineFailure: it is stopped, or out of time."""
        limit = self._limits.seconds if seconds is None else min(seconds, LONGEST_SECONDS)
        is_late = False
        try:
            with interrupt_after(cursor, limit) as watch, self._cancellable(watch):
                try:
                    few, alike, others = _parted(asked, tables)
                    for table in (*others, *map(_stacked, range(len(alike)), alike)):
                        _load(cursor, table)
                    if ROUNDS in asked.sql:
                        cursor.execute(f"CREATE TEMP SEQUENCE {quote(ROUNDS)}")
                    return answer(cursor, _with_tables(asked, few, alike) if few or alike else asked)
                finally:
                    is_late = watch.is_late
        except duckdb.InterruptException as error:
            detail = "post-processing ran out of time" if is_late else "post-processing was stopped"
            raise EngineFailure(detail, sqlstate="57V01" if is_late else "57014") from error

    @contextmanager
    def _cancellable(self, watch: Watch) -> Iterator[None]:
        """Have `cancel` stop a statement until the block ends. Raises EngineFailure: it is cancelled already."""
        with self._lock:
            self._running.add(watch)
        try:
            if self._is_cancelled():
                raise EngineFailure("cancelled", sqlstate="57014")
            yield
        finally:
            with self._lock:
                self._running.discard(watch)

    def cancel(self) -> None:
        """Stop the running statements, from any thread: each raises EngineFailure (57014)."""
        with self._lock:
            for watch in self._running:
                watch.cancel()

    def close(self) -> None:
        """Let the databases go; the next statement opens a new one. Running statements end first."""
        self._shared.close()

    def _answer(self, cursor: duckdb.DuckDBPyConnection, asked: _Asked) -> ResultRows:
        cursor.execute(_select(cursor, asked.sql), asked.parameters)
        return self._rows(cursor)

    def _rows(self, cursor: duckdb.DuckDBPyConnection) -> ResultRows:
        names = tuple(column[0] for column in cursor.description or ())
        rows: list[tuple[Any, ...]] = []
        while True:
            chunk = cursor.fetchmany(_FETCHED)
            rows += chunk
            check_size(len(rows), len(names), self._limits.max_rows)
            if len(chunk) < _FETCHED:
                return ResultRows(names, rows)

    def _arrays(self, cursor: duckdb.DuckDBPyConnection, asked: _Asked) -> ResultRows | Arrays:
        limited = _limited(cursor, asked.sql, self._limits.max_rows)
        cursor.execute(limited, asked.parameters)
        if limited == asked.sql:
            return self._rows(cursor)
        names, types = zip(*[(column[0], str(column[1])) for column in cursor.description or ()], strict=True)
        if not _SURE.issuperset(types) or len({name.casefold() for name in names}) < len(names):
            return self._rows(cursor)
        arrays = tuple(cursor.fetchnumpy().values())
        check_size(len(arrays[0]), len(names), self._limits.max_rows)
        return Arrays(names, arrays)


_DOUBLES = regex(r"\b(CAST\()\d{1,18}( AS DOUBLE\))|\b\d{1,17}(?:\.\d{1,17})?e-?\d{1,2}\b")
"""Numbers of type DOUBLE that the engine takes, and takes alike, whichever they are."""


def _with_any_doubles(sql: str) -> str:
    """Return what a text has in common with those that differ from it in doubles alone: over no rows none is computed
    with. One with a constant text is as it is."""
    return sql if "'" in sql else _DOUBLES.sub(r"\1?\2", sql)


def _never() -> bool:
    return False


def _without_end(said: str) -> Refusal | None:
    """Return what is told of rows without end, and of patterns; None: the engine says something else."""
    if TOO_MANY in said:
        return Refusal(
            f"a series that a row says has more than {MAX_ROW_SERIES} rows, or a step of zero", sqlstate="54000",
            hint="take a larger step, or nearer ends; with constant ends it may have a million rows",
        )  # fmt: skip
    if NO_PATTERN in said:
        return Refusal(
            "a pattern of ~ that is computed has more than letters, digits, . .* ^ and $", sqlstate="0A000",
            hint="write the pattern out, or use LIKE",
        )  # fmt: skip
    if ENDLESS in said:
        return Refusal(
            f"WITH RECURSIVE makes more than {MAX_RECURSION} rows", sqlstate="54001",
            hint="end it by a condition in its second query: SELECT n + 1 FROM t WHERE n < 100",
        )  # fmt: skip
    return None


def _is_large(table: ReleasedTable | FetchedTable) -> bool:
    if isinstance(table, ReleasedTable):
        return table.row_count > _MANY_ROWS
    return any(
        len(array) > _MANY_ROWS for column in table.columns.values() for array in column.arrays.values()
    )


def _select(cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the one SELECT that a text is. Raises EngineFailure: it is something else."""
    known = _parsed.get(sql)
    if known is None:
        statements = cursor.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise EngineFailure("post-processing is one SELECT")
        (known,) = statements
        _parsed.put(sql, known)
    return known


_parsed: Cache[duckdb.Statement] = Cache(200_000, lambda sql, _: len(sql))
"""The statements that texts of late are, of so many characters: a text is tried out, then run, then asked again."""


def _limited(cursor: duckdb.DuckDBPyConnection, sql: str, max_rows: int) -> str:
    """Return the one SELECT that a text is, up to one row too many; as it is where it has a LIMIT of its own."""
    _select(cursor, sql)
    limited = f"{sql}\nLIMIT {max_rows + 1}"
    try:
        _select(cursor, limited)
    except duckdb.ParserException:
        return sql
    return limited


def _open_sealed(memory_mib: int) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect(":memory:")
    try:
        for name, value in _POSTGRES_WAYS.items():
            with suppress(duckdb.CatalogException):
                database.execute(f"SET GLOBAL {name} = '{value}'")
        seal(database, memory_mib, {})
    except duckdb.Error as error:
        database.close()
        raise EngineFailure(f"the post-processing engine cannot be sealed: {error}") from error
    return database


def _parted(
    asked: _Asked, tables: Sequence[ReleasedTable | FetchedTable]
) -> tuple[list[ReleasedTable], list[list[ReleasedTable]], list[ReleasedTable | FetchedTable]]:
    """Return the tables that travel in the statement itself, those whose columns are alike, which are made as one, and
    those that are made by themselves: all of them where it has parameters, or a WITH, of its own, or asks where a row
    of a table stands.
    """
    if asked.parameters or not asked.sql.startswith("SELECT ") or STANDS_AT in asked.sql:
        return [], [], list(tables)
    few = [one for one in tables if isinstance(one, ReleasedTable) and one.row_count <= _FEW_ROWS]
    alike: dict[object, list[ReleasedTable]] = {}
    others: list[ReleasedTable | FetchedTable] = []
    for table in tables:
        if not isinstance(table, ReleasedTable):
            others.append(table)
        elif table.row_count > _FEW_ROWS:
            alike.setdefault(_columns_of(table), []).append(table)
    others += [table for some in alike.values() if len(some) == 1 for table in some]
    return few, [some for some in alike.values() if len(some) > 1], others


def _columns_of(table: ReleasedTable) -> object:
    """Return what tables that can be made as one have in common: arrays of numbers in 64 bits."""
    arrays = [
        (one.name, one.type, one.values.dtype.str)
        for one in table.columns
        if isinstance(one.values, np.ndarray) and one.values.dtype.kind in "if"
    ]
    return tuple(arrays) if len(arrays) == len(table.columns) else table.name


def _stacked(number: int, tables: Sequence[ReleasedTable]) -> ReleasedTable:
    """Return tables that are alike as one, whose last column says which of them a row is of."""
    sizes = [table.row_count for table in tables]
    own = [
        ReleasedColumn(one.name, one.type, np.concatenate([table.columns[at].values for table in tables]))
        for at, one in enumerate(tables[0].columns)
    ]
    of = ReleasedColumn(_OF, BIGINT, np.repeat(np.arange(len(tables)), sizes))
    return ReleasedTable(f"{_STACKED}{number}", (*own, of))


def _with_tables(
    asked: _Asked, few: Sequence[ReleasedTable], alike: Sequence[Sequence[ReleasedTable]]
) -> _Asked:
    """Return a SELECT with tables in front of it: of few rows, each column of which is a parameter, so that the text is
    the same whatever the rows are; and those that were made as one.
    """
    parts, parameters = [], list[Any]()
    for table in few:
        columns = []
        for type_, values in map(parameters_of, table.columns):
            parameters.append(values)
            columns.append(f"unnest(TRY_CAST(${len(parameters)} AS {type_}[]))")
        parts.append(f"{quote(table.name)}({_names(table)}) AS MATERIALIZED (SELECT {', '.join(columns)})")
    for number, tables in enumerate(alike):
        parts += [
            f"{quote(table.name)} AS (SELECT {_names(table)} FROM {quote(f'{_STACKED}{number}')}"
            f" WHERE {quote(_OF)} = {place})"
            for place, table in enumerate(tables)
        ]
    return _Asked(f"WITH {', '.join(parts)} {asked.sql}", parameters)


def _names(table: ReleasedTable) -> str:
    return ", ".join(quote(column.name) for column in table.columns)


def _load(cursor: duckdb.DuckDBPyConnection, table: ReleasedTable | FetchedTable) -> None:
    """Create `table` as a temporary table of this cursor."""
    if isinstance(table, FetchedTable):
        _load_arrays(cursor, table.name, table.columns)
    elif not table.row_count:
        types = (f"{quote(column.name)} {encode_column(column).carried_as}" for column in table.columns)
        cursor.execute(f"CREATE TEMP TABLE {quote(table.name)} ({', '.join(types)})")
    else:
        _load_arrays(cursor, table.name, {column.name: encode_column(column) for column in table.columns})


def _load_arrays(cursor: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, EncodedColumn]) -> None:
    arrays: dict[str, Any] = {}
    selected: list[str] = []
    for index, (column, encoded) in enumerate(columns.items()):
        arrays |= {f"{index}{suffix}": array for suffix, array in encoded.arrays.items()}
        selected.append(f"{encoded.expression.replace('{}', str(index))} AS {quote(column)}")
    cursor.register(_LOADING, arrays)
    cursor.execute(f"CREATE TEMP TABLE {quote(name)} AS SELECT {', '.join(selected)} FROM {quote(_LOADING)}")
    cursor.unregister(_LOADING)
