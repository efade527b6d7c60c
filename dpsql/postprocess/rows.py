"""What goes into the sealed engine and what comes out: released tables, and rows, as the declared types at the rim.

A large answer is kept in a file for its client.

House rules:

1. Rows come in chunks of so many values, by column, and are never all in memory: writing and reading hold one chunk.
2. The file is unlinked before the first byte, readable by this process alone, and holds what the analyst may read.
3. What is kept is counted (`memory.Share`), and given back when the rows are closed or nobody holds them any more.

Released tables go in by columns that are plain numpy arrays. House rules:

1. A column is carried by int64, float64, bool, datetime64[us] or object-of-text arrays alone, with
   a boolean array beside it where NULLs need one. Other dtypes are read differently by different
   versions of DuckDB (masked arrays lose their mask, arrays of objects become text, numpy text
   becomes an ENUM).
2. No double in the engine is NaN or infinite: here they become NULL. `null_on_error` relies on it.
"""

from __future__ import annotations

import math
import os
import pickle
import tempfile
import threading
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache, partial
from queue import SimpleQueue
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure, Refusal
from ..memory import MIB, Share, weight_of
from ..plan.backend_sql.print_private import PrivatePrinter
from ..plan.dialects import dialect_of
from ..plan.dialects.dialect import Dialect
from ..records import dataclass
from ..regex import regex
from ..relation.calendar import calendar_ends
from ..relation.catalog import Column, Table
from ..relation.expressions import Call, Field, Literal
from ..relation.intervals import Environment
from ..relation.relations import Block, Relation, Scan, projected, skipped
from ..relation.types import Kind, SqlType
from .null_on_error import engine_type

_LIMITS = {Kind.SMALLINT: 2**15, Kind.INTEGER: 2**31, Kind.BIGINT: 2**63}
_EXACT = Context(prec=2000, rounding=ROUND_HALF_EVEN)
_ONE = Decimal(1)
_ZERO = Decimal(0)
_CHUNK = 2000
_FIXED = 1e16
"""Doubles below this are shown in full by `repr`, or with a negative exponent."""


MAX_ROWS, MAX_CELLS = 1_000_000, 16_000_000
"""The most that one answer may have: it is held in memory, some hundred bytes a value."""


def check_size(rows: int, columns: int, most_rows: int = MAX_ROWS) -> None:
    """Raise Refusal (54001) for an answer that is too large."""
    if rows > most_rows:
        what = f"{most_rows} rows"
    elif rows * columns > MAX_CELLS:
        what = f"{MAX_CELLS} values"
    else:
        return
    hint = "add a LIMIT, name fewer columns, or aggregate further"
    raise Refusal(f"the answer has more than {what}", sqlstate="54001", hint=hint)


@dataclass(frozen=True, slots=True)
class ResultRows:
    """A result: the columns' names and the rows, in order."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Arrays:
    """A large result by column: integers, doubles, booleans, or objects that are text; masked where NULL."""

    columns: tuple[str, ...]
    arrays: tuple[npt.NDArray[Any], ...]


class LargeRows(Sequence[tuple[Any, ...]]):
    """Rows that are made when they are read, so many at a time; a slice is a list."""

    @overload
    def __getitem__(self, place: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[Any, ...]]: ...
    def __getitem__(self, place: int | slice) -> tuple[Any, ...] | list[tuple[Any, ...]]:
        asked = range(len(self))[place]
        if isinstance(asked, int):
            return self._between(asked, asked + 1)[0]
        if not asked:
            return []
        low, high = min(asked[0], asked[-1]), max(asked[0], asked[-1])
        return self._between(low, high + 1)[:: asked.step]

    @abstractmethod
    def _between(self, low: int, high: int) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def columns(self, low: int, high: int) -> list[Values] | None:
        """Return the first of the rows between two places by column, as they are kept; None: they are kept by row.

        Requires: there is a row between them.
        """


class ColumnRows(LargeRows):
    """The rows of a large answer, kept by column."""

    def __init__(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Requires: at least one array, and all of one length."""
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays[0])

    def _between(self, low: int, high: int) -> list[tuple[Any, ...]]:
        return list(zip(*[array[low:high].tolist() for array in self._arrays], strict=True))

    def columns(self, low: int, high: int) -> list[Values]:
        return [array[low:high] for array in self._arrays]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(self), _CHUNK):
            yield from self[start : start + _CHUNK]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(row == its for row, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as a list


def finish(rows: ResultRows | Arrays, types: Sequence[SqlType]) -> ResultRows:
    """Return `rows` with every value of the Python type that its declared type asks for.

    Integers are int and None beyond their type's range; NUMERIC is Decimal, read from the shortest
    decimal text of the double that carried it and rounded half to even to the declared scale;
    floats are float, 0.0 for -0.0, and None when not finite; DATE is date; TIMESTAMP is datetime; an array
    is a list. What cannot be converted is None: this never raises for the sake of a value. A column that is
    already right is left alone. Raises ValueError when the number of types is not the number of columns.
    """
    if len(types) != len(rows.columns):
        raise ValueError(f"{len(types)} types for {len(rows.columns)} columns")
    if isinstance(rows, Arrays):
        made = finish_arrays(rows.arrays, types)
        if all(one is other for one, other in zip(made, rows.arrays, strict=True)):
            return ResultRows(rows.columns, ColumnRows(rows.arrays))
        listed = [one.tolist() if isinstance(one, np.ndarray) else one for one in made]
        return ResultRows(rows.columns, list(zip(*listed, strict=True)))
    columns = [[row[index] for row in rows.rows] for index in range(len(types))]
    finished = [_finished(column, declared) for column, declared in zip(columns, types, strict=True)]
    if all(one is other for one, other in zip(finished, columns, strict=True)):
        return rows
    return ResultRows(rows.columns, list(zip(*finished, strict=True)))


def finish_columns(rows: Sequence[tuple[Any, ...]], types: Sequence[SqlType]) -> list[list[Any]]:
    """Return what `finish` makes of rows, by column."""
    return [_finished([row[index] for row in rows], declared) for index, declared in enumerate(types)]


def finish_arrays(
    arrays: Sequence[npt.NDArray[Any]], types: Sequence[SqlType]
) -> list[npt.NDArray[Any] | list[Any]]:
    """Return what `finish` makes of arrays: the very array where nothing is to do."""
    return [
        array if _is_right(array, declared) else _finished(array.tolist(), declared)
        for array, declared in zip(arrays, types, strict=True)
    ]


def _is_right(array: npt.NDArray[Any], declared: SqlType) -> bool:
    """Return whether an array surely holds what its declared type asks for."""
    if isinstance(array, np.ma.MaskedArray):
        return declared.kind is not Kind.TEXT and _is_right(array.compressed(), declared)
    if len(array) == 0:
        return False
    if declared.is_integer:
        limit = _LIMITS[declared.kind]
        return array.dtype.kind == "i" and bool(-limit <= array.min() and array.max() < limit)
    if declared.kind is Kind.DOUBLE:
        is_finite = array.dtype == np.float64 and bool(np.isfinite(array).all())
        return is_finite and not np.signbit(array[array == 0]).any()
    return array.dtype.kind == {Kind.TEXT: "O", Kind.BOOLEAN: "b"}.get(declared.kind)


def _finished(column: list[Any], declared: SqlType) -> list[Any]:
    """Return a column converted, or the very list where nothing is to do."""
    convert = _conversion(declared, column)
    if convert is None:
        return column
    if None in column:
        return [None if value is None else convert(value) for value in column]
    return list(map(convert, column))


def _conversion(declared: SqlType, column: list[Any]) -> Callable[[Any], Any] | None:
    """Return what each value that is not None goes through; None when all may stay as they are."""
    found = set(map(type, column))
    present = [value for value in column if value is not None] if type(None) in found else column
    found.discard(type(None))
    if not present:
        return None
    if (element := declared.element) is not None:
        return lambda value: _finished(list(value), element)
    if declared.is_integer:
        limit = _LIMITS[declared.kind]
        if found == {int} and -limit <= min(present) and max(present) < limit:
            return None
        return lambda value: _to_integer(value, limit)
    if declared.kind is Kind.NUMERIC:
        scale = None if declared.scale is None else _ONE.scaleb(-declared.scale)
        is_plain = scale is None and found == {float} and all(map(math.isfinite, present))
        if is_plain and min(present) > -_FIXED and max(present) < _FIXED:
            return _short_decimal
        return lambda value: _to_decimal(value, scale)
    if declared.kind is Kind.DOUBLE and found == {float} and all(map(math.isfinite, present)):
        return _to_float if 0.0 in present else None
    wanted, convert = _CONVERSIONS.get(declared.kind, (object, None))
    return None if found == {wanted} else convert


def _to_integer(value: Any, limit: int) -> int | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = round(value)
    return int(value) if isinstance(value, int | Decimal) and -limit <= value < limit else None


def _to_float(value: Any) -> float | None:
    if not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0.0 becomes 0.0


def _to_real(value: Any) -> float | None:
    """Return the double with the shortest decimal text that is this single-precision number."""
    number = _to_float(value)
    if number is None:
        return None
    with np.errstate(over="ignore"):
        return _to_float(float(str(np.float32(number))))


def _short_decimal(value: float) -> Decimal:
    """Return the shortest decimal of a double that is shown without a positive exponent: the usual case, quickly."""
    return Decimal(repr(value).removesuffix(".0")) or _ZERO


def _to_decimal(value: Any, scale: Decimal | None) -> Decimal | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        number = Decimal(repr(value).removesuffix(".0"))
    elif isinstance(value, int | Decimal):
        number = Decimal(value)
    else:
        return None
    if scale is not None:
        number = number.quantize(scale, context=_EXACT)
    elif number.as_tuple().exponent > 0:  # type: ignore[operator]  # finite: the exponent is an int
        number = number.quantize(_ONE, context=_EXACT)
    return number if number else abs(number)


def _to_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _to_boolean(value: Any) -> bool | None:
    return bool(value) if isinstance(value, int) else None


def _to_date(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else None


def _to_timestamp(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


def _to_time(value: Any) -> time | None:
    return value if isinstance(value, time) else None


# --- intervals: the engine's client has no type that keeps months, so they travel as text -------------

_PART = regex(r"([+-]?\d+) (year|mon|day)s?")
_CLOCK = regex(r"([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?$")


class Interval(timedelta):
    """A timedelta of 365 days a year and 30 a month, as drivers make one, that keeps months, days and microseconds."""

    parts: tuple[int, int, int]


def read_interval(value: object) -> Interval | None:
    """Return an interval from Postgres' text of it."""
    if not isinstance(value, str):
        return None
    found = {unit: int(number) for number, unit in _PART.findall(value)}
    clock = _CLOCK.search(value)
    microseconds = 0
    if clock is not None:
        sign, hours, minutes, seconds, fraction = clock.groups()
        microseconds = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10**6
        microseconds += int((fraction or "").ljust(6, "0"))
        microseconds = -microseconds if sign == "-" else microseconds
    years, months, days = (found.get(unit, 0) for unit in ("year", "mon", "day"))
    try:
        made = Interval(days=years * 365 + months * 30 + days, microseconds=microseconds)
    except OverflowError:
        return None
    made.parts = (years * 12 + months, days, microseconds)
    return made


def check_carried(parts: Mapping[Relation, frozenset[int]]) -> None:
    """Check that no part of public tables hands an interval on. Raises Refusal (0A000)."""
    for part, needed in parts.items():
        if any(part.columns[index].type.kind is Kind.INTERVAL for index in needed):
            raise Refusal(
                "an interval of a public table is not joined to a release", sqlstate="0A000",
                hint="join the two moments, and take their difference there",
            )  # fmt: skip


def show_intervals(node: Relation) -> Relation:
    """Return a statement's relation with its columns of intervals as text; they keep their type."""
    if not any(column.type.kind is Kind.INTERVAL for column in node.columns):
        return node
    exprs = tuple(
        Call(field.type, "interval_text", (field,)) if field.type.kind is Kind.INTERVAL else field
        for field in node.row
    )
    return projected(node, exprs, (column.name for column in node.columns))


# --- the conversions ----------------------------------------------------------------------------------

_CONVERSIONS: dict[Kind, tuple[type, Callable[[Any], Any]]] = {
    Kind.REAL: (np.float32, _to_real),
    Kind.DOUBLE: (np.float64, _to_float),
    Kind.TEXT: (str, _to_text),
    Kind.BOOLEAN: (bool, _to_boolean),
    Kind.DATE: (date, _to_date),
    Kind.TIMESTAMP: (datetime, _to_timestamp),
    Kind.TIME: (time, _to_time),
    Kind.INTERVAL: (Interval, read_interval),
}
"""The Python type that needs no conversion (floats always need a look), and the conversion."""


T = TypeVar("T")

CELLS = 40_000
"""Values of a chunk of arrays: some megabytes, and a few milliseconds to write or read."""
_OBJECTS = 1_000
"""Values of a chunk of objects: half a millisecond to fetch and to write. These are calls that do not let the
interpreter go, for which everybody waits; more at once are kept no faster."""
_HELD = 4 * MIB
"""What is counted in memory for an answer in chunks: one being read, and what is made of it for the client."""
_SMALL = 256 * 1024
"""Bytes up to which an answer is a list, and not counted."""

Values = Any
"""An array, a list of values, or texts that are packed."""


def chunk_rows(columns: int, cells: int = _OBJECTS) -> int:
    """Return how many rows of so many columns are a chunk of so many values."""
    return max(1, cells // max(1, columns))


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """Texts of a column in UTF-8, one after the other, each with a zero byte behind it; NULLs are empty, and marked."""

    data: bytes
    ends: npt.NDArray[Any]
    nulls: npt.NDArray[Any] | None

    @classmethod
    def of(cls, values: Values) -> PackedTexts | None:
        """Return values as texts; None where one is no text, no Unicode, or has a zero byte."""
        if isinstance(values, np.ndarray) and values.dtype != object:
            return None
        listed = list(values)
        if not isinstance(next((value for value in listed if value is not None), None), str):
            return None
        nulls = _nulls(listed) if None in listed else None
        try:
            data = ("\0".join(listed if nulls is None else [value or "" for value in listed]) + "\0").encode()
        except (TypeError, UnicodeEncodeError):
            return None
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 0)
        return cls(data, ends, nulls) if len(ends) == len(listed) else None

    def part(self, low: int, high: int) -> PackedTexts:
        """Return the texts between two places, at least one."""
        begin = int(self.ends[low - 1]) + 1 if low else 0
        data = self.data[begin : int(self.ends[high - 1]) + 1]
        return PackedTexts(
            data, self.ends[low:high] - begin, None if self.nulls is None else self.nulls[low:high]
        )

    def listed(self) -> list[str | None]:
        """Return the texts one by one."""
        texts: list[str | None] = [*self.data[:-1].decode().split("\0")]
        if self.nulls is not None:
            for place in np.flatnonzero(self.nulls).tolist():
                texts[place] = None
        return texts


_LEFT: SimpleQueue[int] = SimpleQueue()
"""Files that nobody holds any more; whoever collects garbage may put one there, in the midst of anything."""


def _close_left() -> None:
    while True:
        with suppress(OSError):  # closed is closed, whatever the disk says
            os.close(_LEFT.get())


@cache
def _closer() -> threading.Thread:
    """Return the thread that closes files: to free the room of a large one takes 30 ms, which nobody waits for."""
    thread = threading.Thread(target=_close_left, name="dpsql-closing", daemon=True)
    thread.start()
    return thread


class _File:
    """A file without a name, which goes with this."""

    def __init__(self, number: int) -> None:
        """`number`: its descriptor, which is this one's from now on."""
        self._number = number

    @classmethod
    def made(cls) -> _File:
        """Make a file. Raises OSError; RuntimeError: the thread that would close it cannot be begun."""
        _closer()
        with tempfile.TemporaryFile(prefix="dpsql-", buffering=0) as file:
            return cls(os.dup(file.fileno()))

    def write(self, data: bytes) -> None:
        """Write at the end."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._number, view) :]

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two places."""
        return os.pread(self._number, end - start, start)

    def close(self) -> None:
        """Let it go, once; its room is free soon after."""
        number, self._number = self._number, -1
        if number >= 0:
            _LEFT.put(number)

    def __del__(self) -> None:
        self.close()


def _nothing() -> None:
    """Who is alone rests for nobody."""


class Spool:
    """Takes the chunks of one answer; `share` is of the analyst whom it is for; `rest` is done after each in a file."""

    def __init__(self, share: Share, rest: Callable[[], None] = _nothing) -> None:
        self._of, self._rest = share, rest
        self.clear()

    def clear(self) -> None:
        """Forget all: the answer is begun anew."""
        self._first: list[Values] | None = None
        self._share = self._of.another()
        self._file: _File | None = None
        self._starts, self._places = [0], [0]

    def __len__(self) -> int:
        return self._starts[-1]

    def add(self, columns: Sequence[Values]) -> None:
        """Take the next rows, by column. Raises EngineFailure (53200, 57014): there is no room for them."""
        size = len(columns[0])
        if not size:
            return
        self._starts.append(self._starts[-1] + size)
        if self._first is None:
            self._first = list(columns)
            return
        if self._file is None:
            self._share.take(_HELD)
            self._file = _told(_File.made)
            self._write(self._first)
            self._first = []
        self._write(columns)

    def _write(self, columns: Sequence[Values]) -> None:
        assert self._file is not None
        data = pickle.dumps(tuple(PackedTexts.of(column) or column for column in columns), protocol=5)
        self._share.take(0, len(data))
        _told(partial(self._file.write, data))
        self._places.append(self._places[-1] + len(data))
        self._rest()

    def rows(self) -> Sequence[tuple[Any, ...]]:
        """Return the rows: a list where they are few. Requires: nothing is added after."""
        if self._file is not None:
            return SpooledRows(self._file, self._starts, self._places, self._share)
        listed = _rows_of(self._first, 0, len(self)) if self._first is not None else []
        size = weight_of(listed)
        if size <= _SMALL:
            return listed
        self._share.take(min(size, _HELD))
        return SpooledRows(None, self._starts, self._places, self._share, listed)


class SpooledRows(LargeRows):
    """The rows of a large answer, made of one chunk after another."""

    def __init__(
        self, file: _File | None, starts: list[int], places: list[int], share: Share,
        listed: list[tuple[Any, ...]] | None = None,
    ) -> None:  # fmt: skip
        """`starts`: the first row of each chunk, and the end; `places`: where it is in the file. `listed`: all rows."""
        self._file, self._starts, self._places, self._share = file, starts, places, share
        self._listed = listed
        self._last: tuple[int, tuple[Values, ...]] = (-1, ())

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for first, end in zip(self._starts, self._starts[1:], strict=False):
            yield from self._between(first, end)

    def close(self) -> None:
        """Let the file go, and give back what was counted; there are no rows after that."""
        self._starts, self._last, self._listed = [0], (-1, ()), []
        if self._file is not None:
            self._file.close()
        self._share.close()

    def _between(self, low: int, high: int) -> list[tuple[Any, ...]]:
        if self._listed is not None:
            return self._listed[low:high]
        found: list[tuple[Any, ...]] = []
        number = bisect_right(self._starts, low) - 1
        while low < high:
            start, end = self._starts[number], min(self._starts[number + 1], high)
            found += _rows_of(self._chunk(number), low - start, end - start)
            low, number = end, number + 1
        return found

    def columns(self, low: int, high: int) -> list[Values] | None:
        if self._listed is not None:
            return None
        number = bisect_right(self._starts, low) - 1
        start, end = self._starts[number], min(self._starts[number + 1], high)
        return [_part(column, low - start, end - start) for column in self._chunk(number)]

    def _chunk(self, number: int) -> tuple[Values, ...]:
        if self._last[0] != number:
            assert self._file is not None
            self._last = (-1, ())
            data = self._file.read(self._places[number], self._places[number + 1])
            self._last = number, pickle.loads(data)  # noqa: S301  # a file of ours that nobody else can open
        return self._last[1]


def _told(action: Callable[[], T]) -> T:
    """Return what an action returns. Raises EngineFailure (53200): the disk is full, or may not be written."""
    try:
        return action()
    except (OSError, RuntimeError) as error:
        number = error.errno if isinstance(error, OSError) else ""
        failure = EngineFailure(f"spool: {type(error).__name__} {number}".rstrip(), sqlstate="53200")
    raise failure


def _part(column: Values, low: int, high: int) -> Values:
    return column.part(low, high) if isinstance(column, PackedTexts) else column[low:high]


def _rows_of(columns: Sequence[Values], low: int, high: int) -> list[tuple[Any, ...]]:
    return list(zip(*[_listed(_part(column, low, high)) for column in columns], strict=True))


def _listed(column: Values) -> list[Any]:
    if isinstance(column, PackedTexts):
        return column.listed()
    return list(column.tolist() if isinstance(column, np.ndarray) else column)


# --- tables that go in -----------------------------------------------------------------------------------


Array = npt.NDArray[Any]

_WIDEST = 2**126
"""Integers of this size and more are carried as DOUBLE: the sum of two below it still fits a HUGEINT."""
_LOW_HALF = 2**64 - 1


@dataclass(frozen=True, slots=True)
class ReleasedColumn:
    """One column of public values: released integers, keys, or a public table's column.

    `values` holds Python values or None, or is a numpy array: int64, float64 with NaN for NULL, or object (big ints,
    text).
    An integer measure is declared BIGINT however wide it is; in the engine it is BIGINT when all
    values fit, else HUGEINT below 2^126, else DOUBLE. NUMERIC is carried as DOUBLE.
    """

    name: str
    type: SqlType
    values: Sequence[Any] | Array


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """A named table of public columns, all of one length; there is at least one column.

    The engine does not tell names apart by case. Raises ValueError when the columns do not fit.
    """

    name: str
    columns: tuple[ReleasedColumn, ...]

    def __post_init__(self) -> None:
        if len({len(column.values) for column in self.columns}) != 1:
            raise ValueError("a released table has at least one column, and all are of one length")
        if len({column.name.casefold() for column in self.columns}) != len(self.columns):
            raise ValueError("the columns of a released table differ by more than their case")

    @property
    def row_count(self) -> int:
        return len(self.columns[0].values)


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """A column as arrays, and the SQL that puts it together again.

    `carried_as`: the DuckDB type. `arrays`: by the suffix of their name. `expression`: SQL over
    the arrays' names, with `{}` for what the suffix stands behind.
    """

    carried_as: str
    arrays: dict[str, Array]
    expression: str


def encode_column(column: ReleasedColumn) -> EncodedColumn:
    """Return the arrays and the SQL that load `column`.

    Raises ValueError for a type that is never released (OPAQUE, INTERVAL).
    """
    if column.type.is_integer:
        return _encode_integers(column.values)
    carried = _carried_as(column.type)
    kind = column.type.kind
    whole = f'TRY_CAST("{{}}v" AS {carried})'
    if carried in ("DOUBLE", "FLOAT"):
        return _plain(carried, _floats(column.values))
    if kind is Kind.BOOLEAN:
        return _with_nulls(carried, {"v": np.array(column.values, dtype=bool)}, _nulls(column.values), whole)
    if kind is Kind.DATE:
        days = np.array(column.values, dtype="datetime64[D]").astype("datetime64[us]")
        return _plain(carried, days)
    if kind is Kind.TIME:  # of times there are no arrays: as moments of one day
        moments = [None if one is None else datetime.combine(date(1970, 1, 1), one) for one in column.values]
        return EncodedColumn(
            carried,
            {"v": np.array(moments, dtype="datetime64[us]")},
            f'CAST(CAST("{{}}v" AS TIMESTAMP) AS {carried})',
        )
    if kind is Kind.TIMESTAMP:
        return _plain(carried, np.array(column.values, dtype="datetime64[us]"))
    return _plain(carried, _objects(column.values))


def quote(name: str) -> str:
    """Return `name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def parameters_of(column: ReleasedColumn) -> tuple[str, list[Any]]:
    """Return the DuckDB type and the values as one parameter, a list: for few rows, faster than arrays.

    Raises ValueError as `encode_column` does.
    """
    values = column.values.tolist() if isinstance(column.values, np.ndarray) else list(column.values)
    carried = _integer_type(values) if column.type.is_integer else _carried_as(column.type)
    if carried in ("DOUBLE", "FLOAT"):
        floats = map(_double_of, values)
        return carried, [value if math.isfinite(value) else None for value in floats]
    if carried == "BIGINT":
        return carried, [None if value is None else int(value) for value in values]
    # as text: DuckDB 1.4 binds a large negative int by way of a double, and moments beyond Python's are texts
    if carried == "HUGEINT" or column.type.is_temporal or column.type.kind is Kind.TIME:
        return carried, [None if value is None else str(value) for value in values]
    return carried, values


def _carried_as(declared: SqlType) -> str:
    if declared.kind is Kind.INTERVAL:
        raise ValueError("an interval is never released")
    return engine_type(declared)


def _integer_type(values: Sequence[Any] | Array) -> str:
    present = [value for value in values if value is not None] or [0]
    lowest, highest = min(present), max(present)
    if lowest >= -(2**63) and highest < 2**63:
        return "BIGINT"
    return "HUGEINT" if lowest >= -_WIDEST and highest < _WIDEST else "DOUBLE"


def _encode_integers(values: Sequence[Any] | Array) -> EncodedColumn:
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        return EncodedColumn("BIGINT", {"v": values.astype(np.int64, copy=False)}, '"{}v"')
    carried = _integer_type(values)
    if carried == "DOUBLE":
        return EncodedColumn(carried, {"v": _floats(values)}, '"{}v"')
    nulls = _nulls(values)
    plain = [0 if value is None else int(value) for value in values]
    if carried == "BIGINT":
        return _with_nulls(carried, {"v": np.array(plain, dtype=np.int64)}, nulls)
    halves = {
        "h": np.array([value >> 64 for value in plain], dtype=np.int64),
        "v": np.array([value & _LOW_HALF for value in plain], dtype=np.uint64),
    }
    whole = f'CAST("{{}}h" AS HUGEINT) * {_LOW_HALF + 1} + CAST("{{}}v" AS HUGEINT)'
    return _with_nulls(carried, halves, nulls, whole)


def _with_nulls(
    carried: str, arrays: dict[str, Array], nulls: Array | None, whole: str = '"{}v"'
) -> EncodedColumn:
    """Return a column of arrays that have no NULLs of their own; `nulls`: where it is NULL, None for nowhere."""
    if nulls is None:
        return EncodedColumn(carried, arrays, whole)
    return EncodedColumn(carried, {**arrays, "n": nulls}, f'CASE WHEN NOT "{{}}n" THEN {whole} END')


def _nulls(values: Sequence[Any] | Array) -> Array:
    return np.fromiter((value is None for value in values), dtype=bool, count=len(values))


def _objects(values: Sequence[Any] | Array) -> Array:
    if isinstance(values, np.ndarray) and values.dtype == object:
        return values
    objects = np.empty(len(values), dtype=object)
    objects[:] = list(values)
    return objects


def _floats(values: Sequence[Any] | Array) -> Array:
    """Return float64 with NaN, which DuckDB reads as NULL, for None and for all that is not finite."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "if":
        floats = values.astype(np.float64)
    else:
        floats = np.fromiter(map(_double_of, values), dtype=np.float64, count=len(values))
    floats[~np.isfinite(floats)] = math.nan
    return floats


def _double_of(value: int | float | Decimal | Fraction | None) -> float:
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.nan


# --- rows of public tables on their way from the owner's engine into the sealed one: arrays, as they came ---


_NEVER_CARRIED = (Kind.OPAQUE, Kind.INTERVAL)


@dataclass(frozen=True, slots=True)
class FetchedTable:
    """A named table of what was fetched: each column's arrays and the SQL that puts it together."""

    name: str
    columns: Mapping[str, EncodedColumn]


def carried_type(declared: SqlType) -> str:
    """Return the type that a fetched column travels as: every integer is a BIGINT."""
    return "BIGINT" if declared.is_integer else engine_type(declared)


def unread(declared: SqlType) -> str:
    """Return a NULL in the place of a column that nobody reads."""
    return f"CAST(NULL AS {'VARCHAR' if declared.kind in _NEVER_CARRIED else engine_type(declared)})"


def stored_columns(table: Table) -> list[str]:
    """Return a public table's columns in DuckDB, each as SQL that gives the values to post-processing and never raises.

    NUMERIC is a DOUBLE; what is not finite, and a date or timestamp outside the years 0001 to 9999, is
    NULL. A column of a type that is never carried is NULL too: `check_usable` has refused to read it.
    """
    stored = dialect_of("duckdb", None).stored
    return [
        unread(column.type)
        if column.name in table.unnamed
        else _stored(stored(quote(column.name), column.type), column.type)
        for column in table.columns
    ]


def _stored(name: str, declared: SqlType) -> str:
    if declared.is_float:
        return f"CASE WHEN isfinite({name}) THEN {name} END"
    if declared.kind is Kind.DATE:
        return f"CASE WHEN {name} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {name} END"
    if declared.kind is Kind.TIMESTAMP:
        inside = f"{name} >= TIMESTAMP '0001-01-01' AND {name} < TIMESTAMP '10000-01-01'"
        return f"CASE WHEN {inside} THEN {name} END"
    if declared.kind in _NEVER_CARRIED:
        return unread(declared)
    return f"CAST({name} AS {engine_type(declared)})"


def fetch_statement(node: Relation, columns: Sequence[int], dialect: Dialect) -> str:
    """Return the SELECT of a public table's columns, and of its rows that plain terms keep, for any engine.

    Columns are named c<i>, in the types of `carried_type`, and as `stored_columns` has them; one column of
    ones when none is read.
    """
    table = skipped(node, "where")
    assert isinstance(table, Scan)
    names = [
        dialect.stored(f"t.{dialect.identifier(column.name)}", column.type) for column in table.table.columns
    ]
    printer = PrivatePrinter(Environment(table.table.columns), names, dialect)
    shown = [f"{_fetched(printer, table.table.columns[i], i)} AS c{i}" for i in columns]
    where = f" WHERE {printer.boolean(node.predicate)}" if isinstance(node, Block) else ""
    return f"SELECT {', '.join(shown) or '1 AS one'} FROM {dialect.table(table.table)} AS t{where}"


def _fetched(printer: PrivatePrinter, column: Column, index: int) -> str:
    kind, dialect = column.type.kind, printer.dialect
    shown = printer.column(Field(column.type, index))
    if kind in _NEVER_CARRIED:
        return f"CAST(NULL AS {dialect.text})"
    if column.type.is_integer:
        return dialect.cast(shown, "BIGINT")
    if kind is Kind.NUMERIC:
        return dialect.exact_as_double(shown, column.type)
    if column.type.is_float:
        return dialect.as_double(shown)
    if column.type.is_temporal:
        first, last = (dialect.literal(Literal(column.type, end)) for end in calendar_ends(column.type))
        return f"CASE WHEN {shown} BETWEEN {first} AND {last} THEN {shown} END"
    return shown


def encode_fetched(declared: SqlType, values: Array, nulls: Array | None) -> EncodedColumn:
    """Return a fetched column as `released` carries it; `nulls`: where it is NULL, None for nowhere.

    Raises EngineFailure when the array is not of the type that the query asked for.
    """
    carried = carried_type(declared)
    wanted = {"BIGINT": "i", "DOUBLE": "f", "FLOAT": "f", "BOOLEAN": "b", "VARCHAR": "O"}.get(carried, "M")
    if values.dtype.kind != wanted:
        raise EngineFailure(f"fetch: {carried} came as {values.dtype}")
    if wanted == "f":
        floats = values.astype(np.float64)
        floats[~np.isfinite(floats)] = np.nan
        return _plain(carried, _with(floats, nulls, np.nan))
    if wanted == "M":
        moments = values.astype("datetime64[us]")
        return _plain(carried, _with(moments, nulls, np.datetime64("NaT", "us")))
    if wanted == "O":
        return _plain(carried, _with(values, nulls, None))
    whole = values.astype(np.int64 if wanted == "i" else np.bool_, copy=False)
    return _with_nulls(carried, {"v": whole}, nulls)


def _plain(carried: str, values: Array) -> EncodedColumn:
    return EncodedColumn(carried, {"v": values}, f'TRY_CAST("{{}}v" AS {carried})')


def _with(values: Array, nulls: Array | None, mark: object) -> Array:
    if nulls is not None:
        values[nulls] = mark
    return values
