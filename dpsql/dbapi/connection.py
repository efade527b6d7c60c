"""A connection of PEP 249: one session, shared by its cursors and by threads.

House rules:

1. The session is touched with the lock held, but for `cancel`: one statement runs at a time.
2. What a cursor asks for itself (its error bars) is the session's setting for the time of its statement alone.
3. Of a schema the session's catalog is all that is read: what is not declared does not exist, and no row is looked at.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from html import escape
from keyword import iskeyword
from operator import itemgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, SupportsIndex, TypeVar, cast

import duckdb

from ..backends import Backend, DuckDBBackend
from ..engine import Answer, AnswerColumn, Receipt, Session
from ..engine.answer import arrow_table, budget_text, pandas_frame, polars_frame, table_html
from ..engine.settings import Settings
from ..errors import Refusal
from ..mechanisms import parse_epsilon
from ..policy import Policy, load_policy
from ..policy.describe import column_comment, table_comment
from ..records import dataclass
from ..regex import regex
from ..relation.catalog import Catalog, OwnView, Table, View
from ..relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    Kind,
    SqlType,
)
from ..sql.scope import find_own
from ..words import plain_text, plural, terminal_text
from . import errors
from .errors import InterfaceError, ProgrammingError, guarded
from .placeholders import Given, ParameterizedStatement, Parameters, collected, is_setting, read_statement

if TYPE_CHECKING:
    import pandas
    import polars
    import psycopg
    import pyarrow

    from ..engine import Explanation
    from ..engine.batch import PricedBatch
    from ..engine.settings import Settings
    from ..system_catalog import ResultColumn, SystemCatalog


# --- the type objects and constructors of PEP 249, and a result's description -------------------------------


T = TypeVar("T")
Description = tuple[str, str, None, int | None, int | None, int | None, None]
"""A column: name, type code (an SQL type's name), display size, bytes, precision, scale, may be NULL."""


class TypeObject:
    """Equal to each type code of one group: `description[0][1] == dpsql.NUMBER`."""

    __hash__ = None  # type: ignore[assignment]  # equal things would need equal hashes

    def __init__(self, name: str, *kinds: Kind) -> None:
        self._name = name
        self._codes = frozenset(kind.value for kind in kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self._codes == other._codes and self._name == other._name
        return other in self._codes if isinstance(other, str) else NotImplemented

    def __repr__(self) -> str:
        return f"dpsql.{self._name}"


STRING = TypeObject("STRING", Kind.TEXT, Kind.JSON, Kind.JSONB, Kind.NULL)
NUMBER = TypeObject(
    "NUMBER", Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE, Kind.BOOLEAN
)
DATETIME = TypeObject("DATETIME", Kind.DATE, Kind.TIMESTAMP, Kind.TIME, Kind.INTERVAL)
BINARY = TypeObject("BINARY", Kind.OPAQUE)
ROWID = TypeObject("ROWID")

_BYTES = {
    Kind.BOOLEAN: 1, Kind.SMALLINT: 2, Kind.INTEGER: 4, Kind.BIGINT: 8, Kind.REAL: 4, Kind.DOUBLE: 8,
    Kind.DATE: 4, Kind.TIMESTAMP: 8, Kind.TIME: 8, Kind.INTERVAL: 16,
}  # fmt: skip


def describe(columns: Sequence[AnswerColumn]) -> list[Description] | None:
    """Return the description of a result; None for a statement that has none.

    The type code is the SQL type's name, such as "bigint" or "date[]". Whether a column may be NULL is not known
    (None).
    """
    return [_described(column.name, column.type) for column in columns] or None


def _described(name: str, type_: SqlType) -> Description:
    code = type_.kind.value if type_.element is None else f"{type_.element.kind.value}[]"
    return (name, code, None, _BYTES.get(type_.kind), type_.precision, type_.scale, None)


Date = date
Time = time
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:
    """Return the local date of a moment in seconds since 1970."""
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:
    """Return the local time of day of a moment in seconds since 1970."""
    return datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:
    """Return the local date and time of a moment in seconds since 1970."""
    return datetime.fromtimestamp(ticks)


# --- rows with names: tuples, whose values are found by their column too ------------------------------------


_MOST = 1_000
"""Columns from which on rows have no attributes: `row["name"]` finds them all the same."""


class Row(tuple[Any, ...]):
    """One row: `row[0]`, `row["n"]` and `row.n`, compared and unpacked as the tuple that it is.

    Of two columns of a name the first is found. A name that is a word of Python's, or begins with an underscore, is
    found as `row["class"]` alone.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    _places: ClassVar[dict[str, int]] = {}

    def __getitem__(self, place: SupportsIndex | slice | str) -> Any:
        if isinstance(place, str):
            if place not in self._places:
                raise KeyError(f"{place}: the columns are {', '.join(self._fields)}")
            return tuple.__getitem__(self, self._places[place])
        return tuple.__getitem__(self, place)

    def _asdict(self) -> dict[str, Any]:
        """Return the values by name."""
        return {name: self[name] for name in self._fields}

    def __repr__(self) -> str:
        return f"({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self, strict=True))})"

    def __reduce__(self) -> tuple[Callable[..., Row], tuple[tuple[str, ...], tuple[Any, ...]]]:
        return _made_again, (self._fields, tuple(self))


def row_maker(names: Sequence[str]) -> type[Row]:
    """Return the class of rows with columns of these names."""
    return _class_of(tuple(names))


@lru_cache(256)
def _class_of(names: tuple[str, ...]) -> type[Row]:
    places = {name: place for place, name in reversed([*enumerate(names)])}
    found: dict[str, object] = {"__slots__": (), "_fields": names, "_places": places}
    for name, place in places.items() if len(names) <= _MOST else ():
        if name.isidentifier() and not iskeyword(name) and not name.startswith("_"):
            found[name] = property(cast("Callable[[Any], Any]", _of_tuple(place)))
    return type("Row", (Row,), found)


def _of_tuple(place: int) -> Callable[[Row], Any]:
    return itemgetter(place)


def _made_again(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return row_maker(names)(values)


# --- a cursor of PEP 249: it runs a statement and hands its rows out ----------------------------------------


Epsilon = str | float | Decimal | Fraction | None
"""What a statement may spend."""

Level = float | Decimal | str | None
"""A level of error bars, such as 0.95; None or "off" for none."""

Accuracy = float | Decimal | str | None
"""By how much answers may be off, such as 50 or "2 %"; None or "off" for what an epsilon gives."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A statement that was answered: with which values and under which settings."""

    statement: ParameterizedStatement
    values: tuple[object, ...]
    settings: Settings
    answer: Answer


def setting_text(value: float | Decimal | Fraction | str | None) -> str:
    """Return a setting's value as SET takes it: a number in the digits that were written, None as off."""
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Fraction) and value.denominator != 1:
        value = Decimal(value.numerator) / Decimal(value.denominator)
    return "off" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


class Cursor:
    """Runs statements and hands out rows; for one thread at a time. Made by `Connection.cursor`.

    All rows of an answer are there when `execute` returns, so that fetching asks nobody and costs nothing.
    A failed statement leaves the cursor without a result.
    """

    def __init__(self, connection: Connection) -> None:
        """Use `Connection.cursor`."""
        self.arraysize = 1
        self.lastrowid = None
        self._connection = connection
        self._own: dict[str, str] = {}
        self._outcomes: list[Outcome] = []
        self._current = 0
        self._next_row = 0
        self._made: type[Row] | None = None
        self._is_open = True

    @classmethod
    def of(cls, connection: Connection, outcome: Outcome) -> Cursor:
        """Return a cursor that has a result. Use `Connection.release`."""
        made = cls(connection)
        made._outcomes = [outcome]
        return made

    # --- statements --------------------------------------------------------------------------------

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Answer one statement and return this cursor.

        `parameters`: values in order for `?` (or `%s`, `$1`), a dict for `:name` (or `%(name)s`).

        Raises:
            ProgrammingError, NotSupportedError, DataError: refused; nothing was charged.
            OperationalError: the budget does not suffice (nothing was charged), the statement was cancelled or
                the database failed (what was charged stays spent).
            InterfaceError: the cursor or the connection is closed.
        """
        self._begin()
        self._answer(operation, [collected(parameters)])
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """Answer a statement for each set of parameters, and charge for each; an identical one is free.

        There is a result for each set: the first is current, `nextset` goes on. When one fails, the results
        before it stay: they are paid for. Whether all sets fit is looked at before the first runs.

        Raises: as `execute`.
        """
        self._begin()
        self._answer(operation, [collected(parameters) for parameters in seq_of_parameters])
        return self

    def nextset(self) -> Literal[True] | None:
        """Go on to the result of the next set of parameters; None when there is no more."""
        self._require_open()
        if self._current + 1 >= len(self._outcomes):
            return None
        self._current += 1
        self._next_row = 0
        return True

    def with_intervals(self, level: Level) -> Cursor:
        """Have two more columns beside each number of this cursor's answers, the ends of an error bar.

        `level`: how often a bar is to hold, such as 0.95; None for no bars, whatever the connection has.
        Returns this cursor. Raises DataError for a level that is not between 0.01 and 0.9999.
        """
        self._require_open()
        text = setting_text(level)
        return self._with("dpsql.intervals", text)

    def with_epsilon(self, epsilon: Epsilon) -> Cursor:
        """Have each of this cursor's statements spend this epsilon; None: the policy's usual one.

        Returns this cursor. Raises ProgrammingError for one that is not allowed.
        """
        self._require_open()
        return self._with("dpsql.epsilon", "default" if epsilon is None else setting_text(epsilon))

    def with_accuracy(self, accuracy: Accuracy) -> Cursor:
        """Have this cursor's statements spend the least epsilon under which no number is farther off than this.

        `accuracy`: such as 50, or "2 %" of a stored count; None for what the epsilon gives, whatever the connection
        has. Returns this cursor. Raises ProgrammingError for no accuracy.
        """
        self._require_open()
        return self._with("dpsql.accuracy", setting_text(accuracy))

    def _with(self, name: str, text: str) -> Cursor:
        self._connection._check(name, text)
        self._own[name] = text
        return self

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing: parameters need no room."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: no value is ever cut."""

    # --- what is known of the answer -----------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        """The connection that this cursor belongs to."""
        return self._connection

    @property
    def description(self) -> list[Description] | None:
        """A tuple of seven for each column of the result; None without a result."""
        outcome = self._outcome
        return None if outcome is None else describe(outcome.answer.columns)

    @property
    def rowcount(self) -> int:
        """How many rows the result has, read or not; -1 without a result."""
        outcome = self._outcome
        return -1 if outcome is None or not outcome.answer.columns else len(outcome.answer.rows)

    @property
    def rownumber(self) -> int | None:
        """The place of the next row in the result, from 0; None without a result."""
        return None if self.rowcount < 0 else self._next_row

    @property
    def receipt(self) -> Receipt | None:
        """What the result cost and what is left; None when it is not the answer to a query."""
        outcome = self._outcome
        return None if outcome is None else outcome.answer.receipt

    @property
    def answer(self) -> Answer:
        """The whole result, with columns, rows and receipt. Raises ProgrammingError where there is none."""
        return self._result().answer

    @property
    def intervals(self) -> Decimal | None:
        """The level of the error bars in the result; None for none."""
        outcome = self._outcome
        level = None if outcome is None else outcome.settings.intervals
        return None if level is None else Decimal(level.numerator) / Decimal(level.denominator)

    @property
    def explanation(self) -> Explanation:
        """How the result was made, as EXPLAIN says it: each release, its sensitivity, scale and expected ±.

        It is worked out when it is asked for and costs nothing. A stored answer may be of a smaller scale.

        Raises:
            ProgrammingError: there is no result. NotSupportedError: it is not the answer to a query.
        """
        outcome = self._result()
        return self._connection._explain(outcome.statement, outcome.values, outcome.settings)

    # --- rows ------------------------------------------------------------------------------------------

    def fetchone(self) -> Row | None:
        """Return the next row, None after the last. Raises ProgrammingError without a result.

        A row is a tuple, and its values have names: `row.n`, `row["n"]`.
        """
        rows = self._result().answer.rows
        if self._next_row >= len(rows):
            return None
        self._next_row += 1
        return self._named([rows[self._next_row - 1]])[0]

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next `size` rows, by default `arraysize`; fewer at the end. Raises as `fetchone`."""
        count = self.arraysize if size is None else size
        if count < 0:
            raise ProgrammingError("the number of rows to fetch is negative")
        rows = self._result().answer.rows[self._next_row : self._next_row + count]
        self._next_row += len(rows)
        return self._named(rows)

    def fetchall(self) -> list[Row]:
        """Return the rows that are left. Raises as `fetchone`."""
        rows = self._result().answer.rows[self._next_row :]
        self._next_row += len(rows)
        return self._named(rows)

    def scroll(self, value: int, mode: Literal["relative", "absolute"] = "relative") -> None:
        """Move to another row. Raises IndexError outside the result, ProgrammingError for another mode."""
        rows = self._result().answer.rows
        if mode not in ("relative", "absolute"):
            raise ProgrammingError('a cursor scrolls "relative" or "absolute"')
        place = value if mode == "absolute" else self._next_row + value
        if not 0 <= place <= len(rows):
            raise IndexError("there is no such row in the result")
        self._next_row = place

    def fetch_arrow_table(self) -> pyarrow.Table:
        """Return the rows that are left as an Arrow table; `engine/answer.py` lists the types.

        Raises:
            ProgrammingError: there is no result. NotSupportedError: pyarrow is not installed.
        """
        return self._taken(arrow_table)

    def fetchdf(self) -> pandas.DataFrame:
        """Return the rows that are left as a pandas DataFrame. Raises as `fetch_arrow_table`."""
        return self._taken(pandas_frame)

    df = fetchdf

    def plot(self, number: str | None = None, ax: Any = None) -> Any:
        """Draw a number of the result with its error bars, all rows of it; return matplotlib's axes.

        `number`: the column's name; without it the first that has bars, else the last number. `ax`: axes to draw on.
        Raises:
            ProgrammingError: there is no result, or no such number. NotSupportedError: matplotlib is not installed.
        """
        answer = self._result().answer
        return guarded(lambda: answer.plot(number, ax))

    def pl(self) -> polars.DataFrame:
        """Return the rows that are left as a Polars DataFrame. Raises as `fetch_arrow_table`."""
        return self._taken(polars_frame)

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    # --- the end -----------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether the cursor, or its connection, is closed."""
        return not (self._is_open and not self._connection.closed)

    def close(self) -> None:
        """Let the rows go; nothing more can be done with this cursor. Closing again does nothing."""
        self._is_open = False
        self._outcomes = []

    def __repr__(self) -> str:
        outcome = None if self.closed else self._outcome
        if outcome is None or not outcome.answer.columns:
            return f"<dpsql.Cursor: {'closed' if self.closed else 'no result'}>"
        answer = outcome.answer
        names = ", ".join(terminal_text(column.name) for column in answer.columns)
        said = "" if answer.receipt is None else f"; {answer.receipt.said}"
        return f"<dpsql.Cursor: {self.rowcount} {plural(self.rowcount, 'row')} of {names}{said}>"

    def __str__(self) -> str:
        outcome = None if self.closed else self._outcome
        return repr(self) if outcome is None or not outcome.answer.columns else repr(outcome.answer)

    def _repr_html_(self) -> str:
        outcome = None if self.closed else self._outcome
        if outcome is None or not outcome.answer.columns:
            return f"<p>{escape(repr(self))}</p>"
        return outcome.answer._repr_html_()

    def __enter__(self) -> Cursor:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- within --------------------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if not self._is_open:
            raise InterfaceError("the cursor is closed")
        self._connection._require_open()

    def _begin(self) -> None:
        self._require_open()
        self._outcomes, self._current, self._next_row = [], 0, 0
        self._made = None

    def _answer(self, operation: str, given: list[Given]) -> None:
        statements = [read_statement(operation, values) for values in given]
        bound = [statement.bind(values) for statement, values in zip(statements, given, strict=True)]
        for statement, values in zip(statements, bound, strict=True):
            self._outcomes.append(self._connection._run(statement, values, self._own))

    @property
    def _outcome(self) -> Outcome | None:
        return self._outcomes[self._current] if self._outcomes else None

    def _result(self) -> Outcome:
        self._require_open()
        outcome = self._outcome
        if outcome is None or not outcome.answer.columns:
            raise ProgrammingError("there is no result", hint="execute a query first")
        return outcome

    def _taken(self, make: Callable[[Sequence[AnswerColumn], list[tuple[object, ...]]], T]) -> T:
        """Return what is made of the rows that are left, after which none is."""
        answer = self._result().answer
        made = guarded(lambda: make(answer.columns, list(answer.rows[self._next_row :])))
        self._next_row = self.rowcount
        return made

    def _named(self, rows: Sequence[tuple[object, ...]]) -> list[Row]:
        if self._made is None:
            self._made = row_maker([column.name for column in self._result().answer.columns])
        return list(map(self._made, rows))


# --- what of a schema can be asked without a query: SHOW TABLES, DESCRIBE, and the system catalog -----------


_TABLES = regex(r"\s*show\s+tables\s*;?\s*", re.IGNORECASE)
_DESCRIBE = regex(
    r'\s*(?:desc|describe|show\s+columns\s+(?:from|in))\s+(?:table\s+)?((?:"(?:[^"]|"")+"|[^\s";.]+)(?:\.(?:"(?:[^"]|"")+"|[^\s";.]+))*)\s*;?\s*',
    re.IGNORECASE,
)
_PART = regex(r'"((?:[^"]|"")+)"|([^".]+)')
_CATALOG = regex(r"\binformation_schema\b|\bpg_", re.IGNORECASE)
_LONGEST = 100_000
_VERSION = "15.0"
_PROCESS = 0
"""There is one, which has no number."""
_TYPES: dict[int, SqlType] = {
    16: BOOLEAN, 20: BIGINT, 21: SMALLINT, 23: INTEGER, 26: BIGINT, 700: REAL, 701: DOUBLE, 1082: DATE,
    1083: TIME, 1114: TIMESTAMP, 1184: TIMESTAMP, 1700: NUMERIC,
}  # fmt: skip
"""By Postgres' numbers; what is not here is shown as text."""


def listed_tables(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the name of each table that may be asked, and whose rows it has."""
    for name, table in catalog.everything.items():
        yield name, table_comment(table)


class Schema:
    """The declared tables of one session; its system catalog is made when it is first asked."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: SystemCatalog | None = None
        self._of: Catalog | None = None
        """The catalog that it was made of."""

    def answer(self, text: str, values: Sequence[object]) -> Answer | None:
        """Return the answer to a question about the schema, None for any other statement. Raises Refusal."""
        if len(text) > _LONGEST:
            return None
        if _TABLES.fullmatch(text):
            return _answer(("table_name", "rows"), list(listed_tables(self._session.seen)))
        if asked := _DESCRIBE.fullmatch(text):
            return self._described(
                [quoted.replace('""', '"') or bare.lower() for quoted, bare in _PART.findall(asked[1])]
            )
        if _CATALOG.search(text):
            return self._looked_up(text, values)
        return None

    def interrupt(self) -> None:
        """End what the system catalog is asked, if anything; from any thread."""
        if self._made is not None:
            self._made.interrupt(_PROCESS)

    def close(self) -> None:
        """Let the system catalog go."""
        if self._made is not None:
            self._made.close()

    def _described(self, path: Sequence[str]) -> Answer:
        table = _found(self._session.seen, path)
        policy = self._session.policy
        rows = [
            (one.name, str(one.type), column_comment(table, one.name, policy.has_delta))
            for one in table.named
        ]
        return _answer(("column_name", "data_type", "what_may_be_asked"), rows)

    def _looked_up(self, text: str, values: Sequence[object]) -> Answer | None:
        from ..system_catalog import ConnectionFacts, Reads

        catalog, policy = self._system_catalog(), self._session.policy
        if catalog.reads(text) is not Reads.CATALOG:
            return None
        facts = ConnectionFacts(self._session.analyst, policy.path.stem, _PROCESS, {})
        given = [list(value) if isinstance(value, tuple) else value for value in values]
        columns, rows = catalog.run(text, facts, given)
        return Answer(tuple(map(_column, columns)), [tuple(map(_plain, row)) for row in rows], "SELECT", None)

    def _system_catalog(self) -> SystemCatalog:
        seen = self._session.seen
        if self._made is None or self._of != seen:
            from ..system_catalog import SystemCatalog

            policy = self._session.policy
            self.close()
            self._of = seen
            self._made = SystemCatalog(
                seen, has_delta=policy.has_delta, version=_VERSION,
                version_text=f"PostgreSQL {_VERSION} (dpsql)",
            )  # fmt: skip
        return self._made


def _answer(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> Answer:
    return Answer(tuple(AnswerColumn(name, TEXT) for name in names), rows, "SHOW", None)


def _found(catalog: Catalog, path: Sequence[str]) -> Table | View | OwnView:
    """Return a table. Raises Refusal 42P01, the same whether it is missing or not declared."""
    there = {table.path[0] for table in catalog.shown.values()}
    schema = path[-2] if len(path) > 1 else None
    if schema is None or (schema == "public" and schema not in there):  # what catalogs call the default one
        schema = catalog.default_schema
    for table in catalog.shown.values():
        if table.path == (schema, path[-1]) or (len(path) == 1 and table.name == path[0]):
            return table
    own = find_own(catalog, path[-2] if len(path) > 1 else "", path[-1])
    if own is not None:
        return own
    raise Refusal(
        f'table "{".".join(path)[:100]}" does not exist',
        sqlstate="42P01",
        hint=f"tables: {', '.join(catalog.shown)}",
    )


def _column(column: ResultColumn) -> AnswerColumn:
    return AnswerColumn(column.name, _TYPES.get(column.oid, TEXT))


def _plain(value: object) -> object:
    """Return a value as one of the types here: the name of an object for it, a moment in UTC, an array as text."""
    if isinstance(value, list):
        return plain_text([_plain(one) for one in value])
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else value


# --- A connection of PEP 249: one session, shared by its cursors and by threads -----------------------------


def connect(
    policy: str | os.PathLike[str] | Policy,
    analyst: str = "local",
    connection: duckdb.DuckDBPyConnection | psycopg.Connection[Any] | None = None,
    *,
    epsilon: Epsilon = None,
    intervals: Level = None,
    accuracy: Accuracy = None,
) -> Connection:
    """Open a connection to the dataset that a policy describes.

    Args:
        policy: the policy file's path, as text too, in which ~ is the home folder; or a policy that was read from one.
        analyst: a name for the ledger and for the owner's personal caps; a label, not an identity.
        connection: a connection of DuckDB or of psycopg, of the caller's, that holds the data, in place of the
            policy's `database`. It is read and never closed; what it has not committed is not seen.
        epsilon: what each statement may spend; without it, the policy's default.
        intervals: the level of error bars beside each number, such as 0.95.
        accuracy: by how much numbers may be off, such as 50: each statement spends the least epsilon for it.

    A connection runs in the caller's own process, with the caller's rights to the data: a convenience for the
    trusted, not a security boundary.

    Raises:
        OperationalError: the policy or the ledger is wrong, or the database does not answer.
        ProgrammingError, DataError: a bad `epsilon`, `intervals` or `accuracy`.
        InterfaceError: `connection` is no connection of DuckDB or psycopg.
    """
    opened = Connection(errors.guarded(lambda: _open(policy, analyst, connection)))
    try:
        opened._begin_with(_asked(epsilon, intervals, accuracy))
    except errors.Error:
        opened.close()
        raise
    return opened


def _asked(epsilon: Epsilon, intervals: Level, accuracy: Accuracy) -> dict[str, str]:
    """Return settings by name as SET takes them; what is None is not asked for."""
    given = {"dpsql.epsilon": epsilon, "dpsql.intervals": intervals, "dpsql.accuracy": accuracy}
    return {name: setting_text(value) for name, value in given.items() if value is not None}


def _total(epsilon: Epsilon) -> Fraction | None:
    return None if epsilon is None else errors.guarded(lambda: parse_epsilon(setting_text(epsilon)))


def _open(policy: str | os.PathLike[str] | Policy, analyst: str, connection: object) -> Session:
    known = policy if isinstance(policy, Policy) else load_policy(policy)
    backend: Backend | None = None
    if isinstance(connection, duckdb.DuckDBPyConnection):
        backend = DuckDBBackend.over(connection)
    elif "psycopg" in sys.modules and isinstance(connection, sys.modules["psycopg"].Connection):
        from ..backends import PostgresBackend

        backend = PostgresBackend.over(connection, known.read_from)
    elif connection is not None:
        raise errors.InterfaceError("the connection handed in is not one of DuckDB or psycopg")
    return Session.open(known, analyst=analyst, backend=backend)


class Connection:
    """One analyst's connection to one dataset, made by `connect`. Threads may share it.

    Its statements run one at a time, whichever cursor or thread they come from; `cancel` stops the running
    one. Nothing is written, so there are no transactions: every statement sees the data as they are when it
    runs, and what it has charged is on the disk before it runs and is not given back.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: Session) -> None:
        """Use `connect`."""
        self._session = session
        self._schema = Schema(session)
        self._settings = session.settings
        self._lock = threading.Lock()
        self._is_open = True
        self._is_released = False
        self._receipt: Receipt | None = None

    def cursor(
        self, *, epsilon: Epsilon = None, intervals: Level = None, accuracy: Accuracy = None
    ) -> Cursor:
        """Return a new cursor; `intervals`: its own level of error bars, such as 0.95; `accuracy`: its own, such as 50.

        Raises InterfaceError on a closed connection, DataError for a bad level, ProgrammingError for no accuracy.
        """
        self._require_open()
        cursor = Cursor(self)
        for name, text in _asked(epsilon, intervals, accuracy).items():
            cursor._with(name, text)
        return cursor

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Answer one statement on a new cursor and return that. Raises as `Cursor.execute`."""
        return self.cursor().execute(operation, parameters)

    def release(self, statements: str | Sequence[str], *, epsilon: Epsilon = None) -> list[Cursor]:
        """Answer several queries, planned together and charged once; return a cursor with the result of each.

        As `dpsql release`: what they share is measured once, numbers of the same rows agree. `statements`: texts, or
        one text with semicolons; SET and RESET hold for the queries after them. `epsilon`: what all together may spend,
        split for the least total error; without it each is as exact as asked alone. Asking again is free.

        Raises: as `Cursor.execute`; if one is refused, or the price does not fit, nothing was charged.
        """
        from ..engine.batch import read_batch, script_of  # what is asked one by one does without

        total = _total(epsilon)
        with self._lock:
            self._require_open()
            session, script = self._session, script_of(statements)
            answers = errors.guarded(lambda: session.release(script, epsilon=total))
            read = read_batch(session, script)
            self._receipt = next((one.receipt for one in reversed(answers) if one.receipt), self._receipt)
        return [
            Cursor.of(self, Outcome(read_statement(one.query.text, ()), (), one.settings, answer))
            for one, answer in zip(read, answers, strict=True)
        ]

    def price(self, statements: str | Sequence[str], *, epsilon: Epsilon = None) -> PricedBatch:
        """Return what `release` would give each query, and what it would charge; costs nothing. Raises as it does."""
        total = _total(epsilon)
        with self._lock:
            self._require_open()
            return errors.guarded(lambda: self._session.price(statements, epsilon=total))

    def explain(self, operation: str, parameters: Parameters = None) -> Explanation:
        """Return what a query would release, how noisy it would be and what it would cost; costs nothing.

        Raises ProgrammingError, NotSupportedError or DataError, as the query itself would.
        """
        self._require_open()
        given = collected(parameters)
        statement = read_statement(operation, given)
        return self._explain(statement, statement.bind(given), None)

    @property
    def receipt(self) -> Receipt | None:
        """What the last answer of this connection cost, whichever cursor had it: that of `pandas.read_sql` too.

        None where there was none yet. Threads that share a connection look at their cursor's.
        """
        return self._receipt

    @property
    def budget(self) -> str:
        """What is spent and what is left, in words, as SHOW dpsql.budget says it. Raises as `Cursor.execute`."""
        with self._lock:
            self._require_open()
            session = self._session
            return errors.guarded(lambda: budget_text(session.budget(), session.policy.defaults.epsilon))

    @property
    def policy(self) -> Policy:
        """The policy that the connection was opened with."""
        return self._session.policy

    @property
    def catalog(self) -> Catalog:
        """The declared tables and columns, and the analyst's own: all that an analyst may know of the schema."""
        return self._session.seen

    @property
    def time_limit(self) -> float | None:
        """Most seconds that the post-processing of a statement may take; None, as it begins, for the usual minute.

        More than ten minutes are ten. May be set.
        """
        return self._session.time_limit

    @time_limit.setter
    def time_limit(self, seconds: float | None) -> None:
        with self._lock:
            self._session.time_limit = seconds

    def reset(self) -> None:
        """Undo every SET: the settings are again those that the connection was opened with.

        Raises InterfaceError on a closed connection.
        """
        with self._lock:
            self._require_open()
            self._session.settings = self._settings

    def cancel(self) -> None:
        """Stop the statement that runs now, from any thread: it raises OperationalError (57014).

        What it has charged stays spent. One that begins later is not stopped.
        """
        self._require_open()
        self._schema.interrupt()
        self._session.cancel()

    @property
    def autocommit(self) -> bool:
        """True: each statement stands alone."""
        return True

    def commit(self) -> None:
        """Do nothing, since nothing is written. Raises InterfaceError on a closed connection."""
        self._require_open()

    def rollback(self) -> None:
        """Do nothing: nothing was written, and no charge is given back.

        A transaction would give no snapshot across statements, and the ledger stands outside of any.
        Raises InterfaceError on a closed connection.
        """
        self._require_open()

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return not self._is_open

    def close(self) -> None:
        """Cancel what runs, wait for its end, and let the database and the ledger go; once closed, nothing."""
        if self._is_open:
            self._is_open = False
            self._session.cancel()
        with self._lock:
            if not self._is_released:
                self._is_released = True
                self._schema.close()
                self._session.close()

    def __repr__(self) -> str:
        return f"<dpsql.Connection to {self.policy.source} as {self._session.analyst!r}{self._state()}>"

    def _repr_html_(self) -> str:
        tables = [(terminal_text(name), comment) for name, comment in listed_tables(self.catalog)]
        return f"<p>{escape(repr(self)[1:-1])}</p>{table_html(('table', 'rows'), tables)}"

    def _state(self) -> str:
        return ", closed" if self.closed else ""

    def __enter__(self) -> Connection:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- for its cursors -----------------------------------------------------------------------------------

    def _require_open(self) -> None:
        """Raise InterfaceError when the connection is closed."""
        if not self._is_open:
            raise errors.InterfaceError("the connection is closed")

    def _begin_with(self, asked: Mapping[str, str]) -> None:
        """Set settings by name, which `reset` comes back to. Raises ProgrammingError or DataError for a bad value."""
        with self._lock:
            self._session.settings = self._settings = self._with(self._settings, asked)

    def _check(self, name: str, text: str) -> None:
        """Raise ProgrammingError or DataError for a value that a setting cannot have."""
        self._with(self._session.settings, {name: text})

    def _with(self, settings: Settings, asked: Mapping[str, str]) -> Settings:
        """Return settings with some set by name. Raises ProgrammingError or DataError for a bad value."""
        for name, text in asked.items():
            settings = errors.guarded(partial(settings.set, name, text, self._session.policy))
        return settings

    def _run(
        self, statement: ParameterizedStatement, values: tuple[object, ...], own: Mapping[str, str]
    ) -> Outcome:
        """Answer a statement; `own`: settings of its own by name, the rest are the connection's.

        Raises:
            ProgrammingError, NotSupportedError, DataError: refused; nothing was charged.
            OperationalError: the budget is spent (nothing was charged), or what runs below failed.
            InterfaceError: the connection is closed.
        """
        asked = own if own and not is_setting(statement.text) else None
        with self._lock, self._under(asked) as settings:
            answer = errors.guarded(lambda: self._answered(statement.text, values), statement.find)
            self._receipt = answer.receipt or self._receipt
            return Outcome(statement, values, settings, answer)

    def _answered(self, text: str, values: tuple[object, ...]) -> Answer:
        return self._schema.answer(text, values) or self._session.execute(text, values)

    def _explain(
        self, statement: ParameterizedStatement, values: tuple[object, ...], settings: Settings | None
    ) -> Explanation:
        """Return how a query is answered under some settings; None: the connection's. Raises as `_run`."""
        with self._lock, self._under(settings):
            return errors.guarded(lambda: self._session.explain(statement.text, values), statement.find)

    @contextmanager
    def _under(self, asked: Mapping[str, str] | Settings | None) -> Iterator[Settings]:
        """Have the session under its own settings, the ones asked for, or its own but for some.

        Requires: the lock is held.
        """
        self._require_open()
        kept = self._session.settings
        settings = asked if isinstance(asked, Settings) else self._with(kept, asked or {})
        self._session.settings = settings
        try:
            yield settings
        finally:
            if asked is not None:
                self._session.settings = kept
