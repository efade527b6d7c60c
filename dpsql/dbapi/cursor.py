"""A cursor of PEP 249: it runs a statement and hands its rows out."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from html import escape
from keyword import iskeyword
from operator import itemgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, SupportsIndex, cast

from ..engine import Answer, AnswerColumn, Explanation, Receipt
from ..engine.answer import answer_html, answer_text
from ..engine.frames import arrow_table, pandas_frame, polars_frame
from ..records import dataclass
from ..relation.types import Kind, SqlType
from ..words import plural, terminal_text
from .errors import InterfaceError, ProgrammingError, guarded
from .placeholders import Given, ParameterizedStatement, Parameters, collected, read_statement

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ..engine.settings import Settings
    from .connection import Connection

# --- the type objects and constructors of PEP 249, and a result's description -------------------------------


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


Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """Return the local date of a moment in seconds since 1970."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """Return the local time of day of a moment in seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Return the local date and time of a moment in seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks)


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
        """Return the rows that are left as an Arrow table; `frames` lists the types.

        Raises:
            ProgrammingError: there is no result. NotSupportedError: pyarrow is not installed.
        """
        columns, rows = self._result().answer.columns, self._rest()
        table = guarded(lambda: arrow_table(columns, rows))
        self._next_row = self.rowcount
        return table

    def fetchdf(self) -> pandas.DataFrame:
        """Return the rows that are left as a pandas DataFrame. Raises as `fetch_arrow_table`."""
        columns, rows = self._result().answer.columns, self._rest()
        frame = guarded(lambda: pandas_frame(columns, rows))
        self._next_row = self.rowcount
        return frame

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
        columns, rows = self._result().answer.columns, self._rest()
        frame = guarded(lambda: polars_frame(columns, rows))
        self._next_row = self.rowcount
        return frame

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
        return repr(self) if outcome is None or not outcome.answer.columns else answer_text(outcome.answer)

    def _repr_html_(self) -> str:
        outcome = None if self.closed else self._outcome
        if outcome is None or not outcome.answer.columns:
            return f"<p>{escape(repr(self))}</p>"
        return answer_html(outcome.answer)

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

    def _rest(self) -> list[tuple[object, ...]]:
        rows = self._result().answer.rows
        return list(rows[self._next_row :])

    def _named(self, rows: Sequence[tuple[object, ...]]) -> list[Row]:
        if self._made is None:
            self._made = row_maker([column.name for column in self._result().answer.columns])
        return list(map(self._made, rows))
