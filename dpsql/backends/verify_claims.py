"""Holds what a Parquet file says of its values against them: minimum, maximum, NULLs, NaNs, rows, bloom filters.

DuckDB passes over row groups and pages by these, drops filters, and answers COUNT, MIN and MAX from them. Where they
are wrong, whether one person's row is read depends on what is said of others beside it (law L1).

House rules (soundness.md 1.27):

1. Values are read in a way that nothing said of them can change: no filter, and no optimizer but the one that leaves
   out columns. A chunk that is said to hold nothing but NULL is not read at all by the engine, so it is read from a
   copy that says nothing.
2. What is said is taken from the file's own bytes, in the order in which the engine compares: bytes of texts, integers
   with or without sign, moments. What is not understood is refused.
3. Messages name the file, the column and what is wrong. They hold nothing of what is in a file.

House rules for reading what is said, by statistics of column chunks and of pages, and by bloom filters:

1. This reads and judges nothing. Offsets are taken as DuckDB takes them, so that the pages that are looked at are those
   that are read.
2. A field has the type that the format has it in, or the file is none: the engine passes over a field of another type,
   as if nothing were said.

Parquet's footer and page headers are written in Thrift's compact protocol: structs to dicts here, and back. A struct is
`{field: (type, value)}`, a list `(type of its values, values)`; nothing is known here of what fields mean.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from ..errors import PolicyError
from ..plan.dialects.quote import identifier, text
from ..records import dataclass
from ..relation import types
from .duckdb_backend import read_type

# --- Thrift's compact protocol, in which Parquet's footer and page headers are written ----------------------


Fields = dict[int, tuple[int, Any]]

TRUE, _FALSE, BYTE, I16, _I32, I64, DOUBLE, BINARY, _LIST, SET, MAP, STRUCT = range(1, 13)
_LONGEST = 10
_DEEPEST = 64


def read_struct(data: bytes, start: int = 0) -> tuple[Fields, int]:
    """Return the struct that begins at `start`, and where it ends.

    Raises ValueError, IndexError: there is none, or a field comes twice, which readers make different things of.
    """
    return _Reader(data, start).struct(0)


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def struct(self, depth: int) -> tuple[Fields, int]:
        if depth > _DEEPEST:
            raise ValueError
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            if number in fields:
                raise ValueError
            fields[number] = (head & 15, self._value(head & 15, depth))
        return fields, self._at

    def _value(self, type_: int, depth: int) -> Any:
        if type_ in (TRUE, _FALSE):
            return type_ == TRUE
        if type_ == BYTE:
            return self._byte()
        if type_ in (I16, _I32, I64):
            return self._integer()
        if type_ == DOUBLE:
            return self._bytes(8)
        if type_ == BINARY:
            return self._bytes(self._varint())
        if type_ in (_LIST, SET):
            head = self._byte()
            count = self._varint() if head >> 4 == 15 else head >> 4
            of = head & 15
            if of in (TRUE, _FALSE):
                return of, [self._byte() == TRUE for _ in range(count)]
            return of, [self._value(of, depth + 1) for _ in range(count)]
        if type_ == STRUCT:
            return self.struct(depth + 1)[0]
        raise ValueError

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise IndexError
        return self._data[self._at - count : self._at]

    def _varint(self) -> int:
        found = 0
        for place in range(_LONGEST):
            byte = self._byte()
            found |= (byte & 0x7F) << 7 * place
            if byte < 0x80 and found < 2**64:
                return found
        raise ValueError

    def _integer(self) -> int:
        found = self._varint()
        return found >> 1 ^ -(found & 1)


def write_struct(fields: Fields) -> bytes:
    """Return a struct as bytes, its fields in order."""
    written, before = bytearray(), 0
    for number, (type_, value) in sorted(fields.items()):
        shown = (TRUE if value else _FALSE) if type_ in (TRUE, _FALSE) else type_
        written.append((number - before) << 4 | shown if 0 < number - before < 16 else shown)
        if not 0 < number - before < 16:
            written += _integer(number)
        if type_ not in (TRUE, _FALSE):
            written += _written(type_, value)
        before = number
    return bytes(written) + b"\0"


def _written(type_: int, value: Any) -> bytes:
    if type_ == BYTE:
        return bytes([value])
    if type_ in (I16, _I32, I64):
        return _integer(value)
    if type_ == DOUBLE:
        return bytes(value)
    if type_ == BINARY:
        return _varint(len(value)) + bytes(value)
    if type_ in (_LIST, SET):
        of, values = value
        head = bytes([min(len(values), 15) << 4 | of])
        if len(values) > 14:
            head += _varint(len(values))
        if of in (TRUE, _FALSE):
            return head + bytes(TRUE if one else _FALSE for one in values)
        return head + b"".join(_written(of, one) for one in values)
    if type_ == STRUCT:
        return write_struct(value)
    raise ValueError


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def _integer(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


# --- what a Parquet file says of its values beside them -----------------------------------------------------


_MAGIC = b"PAR1"
_HEADER = 4096
_REPEATED = 2
_DATA, _DATA_V2 = 0, 3
_DICTIONARIES = (2, 8)


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of `rows` rows from `first` on, None where nothing is: bounds are bytes, as the format has them.

    `are_exact`: whether the low bounds, and the high ones, are said to be values; `is_plain`: it is said of a page of
    values that are written out, by which the engine passes over it.
    """

    first: int
    rows: int
    lows: tuple[bytes, ...] = ()
    highs: tuple[bytes, ...] = ()
    nulls: int | None = None
    nans: int | None = None
    are_exact: tuple[bool, bool] = (False, False)
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class Bloom:
    """The blocks of a split block bloom filter over XXH64, 32 bytes each."""

    blocks: bytes

    def may_hold(self, hashed: int) -> bool:
        """Say whether a value of this hash may be among those that were put in."""
        at = ((hashed >> 32) * (len(self.blocks) // 32) >> 32) * 32
        low = hashed & 0xFFFFFFFF
        for place, salt in enumerate(_SALTS):
            bit = (low * salt & 0xFFFFFFFF) >> 27
            if not self.blocks[at + 4 * place + (bit >> 3)] >> (bit & 7) & 1:
                return False
        return True


_SALTS = (
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column's values in one row group: what is `said` of all, what of each page, and where they lie in the file."""

    said: Said
    pages: tuple[Said, ...]
    bloom: Bloom | None
    meta: Fields
    start: int
    end: int

    @property
    def is_said_empty(self) -> bool:
        """Whether each value is said to be NULL: then the engine reads none of them."""
        return bool(self.said.rows) and self.said.nulls == self.said.rows


@dataclass(frozen=True, slots=True)
class Column:
    """A column that is no list and no struct: its `place` among the file's columns, and how its bytes are meant.

    `physical` is the format's number of the type; `unit`: nanoseconds in one of a moment's, 0 if it has none.
    """

    place: int
    physical: int
    unit: int
    element: Fields
    chunks: tuple[Chunk, ...]


def read_claims(path: str) -> tuple[Column, ...]:
    """Return what a file says of its flat columns. Values are not read.

    Raises OSError, and ValueError, IndexError, KeyError, TypeError for a file that is not as the format has it.
    """
    with open(path, "rb") as file:
        number = file.fileno()
        size = os.fstat(number).st_size
        length = int.from_bytes(os.pread(number, 4, size - 8), "little")
        footer, _ = read_struct(os.pread(number, length, size - 8 - length))
        groups = _structs(footer, 4)
        rows = [_get(group, 3, I64, 0) for group in groups]
        if min(rows, default=0) < 0 or sum(rows) != _get(footer, 3, I64, 0):
            raise ValueError
        found = []
        for place, leaf, element in _flat(_structs(footer, 2)):
            first, chunks = 0, []
            for group, count in zip(groups, rows, strict=True):
                chunks.append(_chunk(number, size, _structs(group, 1)[leaf], first, count))
                first += count
            found.append(Column(place, _get(element, 1, _I32, -1), _unit_of(element), element, tuple(chunks)))
        return tuple(found)


def alone(path: str, column: Column, chunks: list[Chunk], target: str) -> None:
    """Write a file of these chunks of a column and nothing said of them. Raises OSError."""
    with open(path, "rb") as file, open(target, "wb") as copy:
        copy.write(_MAGIC)
        groups: list[Fields] = []
        for chunk in chunks:
            moved = copy.tell() - chunk.start
            copy.write(os.pread(file.fileno(), chunk.end - chunk.start, chunk.start))
            meta = {key: one for key, one in chunk.meta.items() if key not in (10, 12, 14, 15, 16, 17)}
            for key in (9, 11):
                if key in meta:
                    meta[key] = (I64, max(0, meta[key][1] + moved))
            one = {2: (I64, chunk.start + moved), 3: (STRUCT, meta)}
            size = (I64, _get(meta, 6, I64, 0))
            groups.append({1: (_LIST, (STRUCT, [one])), 2: size, 3: (I64, chunk.said.rows)})
        root: Fields = {4: (BINARY, b"root"), 5: (_I32, 1)}
        footer = write_struct(
            {
                1: (_I32, 1),
                2: (_LIST, (STRUCT, [root, column.element])),
                3: (I64, sum(chunk.said.rows for chunk in chunks)),
                4: (_LIST, (STRUCT, groups)),
            }
        )
        copy.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)


def _flat(schema: list[Fields]) -> Iterator[tuple[int, int, Fields]]:
    """Yield the flat columns: the place among the root's children, the place among the leaves, the schema's element."""
    at = leaf = 0

    def skip() -> None:
        nonlocal at, leaf
        element = schema[at]
        at += 1
        if 1 in element:
            leaf += 1
        for _ in range(_get(element, 5, _I32, 0)):
            skip()

    at = 1
    for place in range(_get(schema[0], 5, _I32, 0)):
        element = schema[at]
        if 1 in element and not _get(element, 5, _I32, 0) and _get(element, 3, _I32, 0) != _REPEATED:
            yield place, leaf, element
        skip()


def _unit_of(element: Fields) -> int:
    if 10 in element:
        logical = _get(element, 10, STRUCT, {})
        for kind in (7, 8):
            if kind in logical:
                return {1: 10**6, 2: 10**3, 3: 1}[next(iter(logical[kind][1][2][1]))]
        return 0
    return {7: 10**6, 8: 10**3, 9: 10**6, 10: 10**3}.get(_get(element, 6, _I32, -1), 0)


def _chunk(file: int, size: int, chunk: Fields, first: int, rows: int) -> Chunk:
    meta: Fields = _get(chunk, 3, STRUCT, {})
    if _get(meta, 5, I64, -1) != rows:
        raise ValueError
    start = _get(meta, 9, I64, 0)
    if _get(meta, 11, I64, 0) >= 4:
        start = _get(meta, 11, I64, 0)
    if not 0 <= _get(meta, 7, I64, 0) <= size - start:  # so much is fetched at once, where there is a filter
        raise ValueError
    at, seen, pages = start, 0, []
    while seen < rows:
        header, ends = _header(file, size, at)
        kind = _get(header, 1, _I32, -1)
        if kind in (_DATA, _DATA_V2):
            page = _get(header, 5 if kind == _DATA else 8, STRUCT, {})
            count = _get(page, 1, _I32, -1)
            statistics = _get(page, 5 if kind == _DATA else 8, STRUCT, {})
            is_plain = _get(page, 2 if kind == _DATA else 4, _I32, -1) not in _DICTIONARIES
            pages.append(_said(statistics, first + seen, count, is_plain=is_plain))
            if count < 0:
                raise ValueError
            seen += count
        length = _get(header, 3, _I32, -1)
        if length < 0:
            raise ValueError
        at += ends + length
    if seen != rows:
        raise ValueError
    said = _said(_get(meta, 12, STRUCT, {}), first, rows)
    return Chunk(said, tuple(pages), _bloom(file, size, meta), meta, start, at)


def _said(statistics: Fields, first: int, rows: int, *, is_plain: bool = False) -> Said:
    return Said(
        first,
        rows,
        tuple(_get(statistics, key, BINARY, b"") for key in (6, 2) if key in statistics),
        tuple(_get(statistics, key, BINARY, b"") for key in (5, 1) if key in statistics),
        _get(statistics, 3, I64, None),
        _get(statistics, 9, I64, None),
        (_get(statistics, 8, TRUE, False), _get(statistics, 7, TRUE, False)),
        is_plain,
    )


def _bloom(file: int, size: int, meta: Fields) -> Bloom | None:
    """Return a chunk's filter. Raises ValueError for one that is of no kind that we know."""
    at = _get(meta, 14, I64, 0)
    if at <= 0:
        return None
    header, ends = _header(file, size, at)
    length = _get(header, 1, _I32, 0)
    if (
        not all(1 in _get(header, key, STRUCT, {}) for key in (2, 3, 4))
        or not 0 < length <= size
        or length % 32
    ):
        raise ValueError
    blocks = os.pread(file, length, at + ends)
    if len(blocks) != length:
        raise ValueError
    return Bloom(blocks)


def _header(file: int, size: int, at: int) -> tuple[Fields, int]:
    """Return the struct at a place in a file, and its length."""
    length = _HEADER
    while True:
        data = os.pread(file, length, at)
        try:
            return read_struct(data)
        except IndexError:
            if len(data) < length or at + length > size:
                raise
        length *= 16


def _get(fields: Fields, key: int, type_: int, default: Any) -> Any:
    """Return the value of a field, `default` where it is not there. Raises ValueError: it is of another type."""
    if key not in fields:
        return default
    found, value = fields[key]
    if (TRUE if found == _FALSE else found) != type_ or (type_ == _I32 and not -(2**31) <= value < 2**31):
        raise ValueError
    return value


def _structs(fields: Fields, key: int) -> list[Fields]:
    """Return a list of structs, empty where it is not there. Raises ValueError: it is another one."""
    of, values = _get(fields, key, _LIST, (STRUCT, []))
    if of != STRUCT:
        raise ValueError
    return list(values)


# --- held against the values ------------------------------------------------------------------------------


_INT32, _INT64, _INT96, _BYTE_ARRAY, _FIXED = 1, 2, 3, 6, 7
_BLOCK = 10
"""Rows are matched with pages by blocks of 2^10 rows, so that no page is looked for among all."""

_MOST_DIGITS = 38
_AWAY = 2**63 - 1
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_NO_FORMAT = (
    OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration, OverflowError, RecursionError,
)  # fmt: skip
_WAY_OUT = "write the file anew, as DuckDB's COPY does"


@contextmanager
def doubting(config: Mapping[str, Any]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give an engine with these settings that no file's word changes what it reads: `verify_claims` asks it.

    No optimizer is left to it but the one that reads only the columns that are asked for.
    """
    with duckdb.connect(":memory:", config=dict(config)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        connection.execute(
            f"SET disabled_optimizers = '{','.join(one for one in names if one != 'unused_columns')}'"
        )
        yield connection


def verify_claims(
    where: str, path: str, source: str, spill: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """Read every value of a file's columns and compare what is said of them. An owner's act.

    `where`: the policy's name of the table; `source`: what the engine reads the file as, but for its last bracket, with
    the number of each row; `spill`: a directory of ours; `connection`: as `doubting` gives it, for any number of files.
    Raises PolicyError, naming file and column; duckdb.Error for values that cannot be read.
    """
    try:
        columns = read_claims(path)
    except _NO_FORMAT:
        problem = PolicyError(f'{where}: "{path}" has a footer that is not as the format has it; {_WAY_OUT}')
    else:
        _File(where, path, source, spill, connection).verify(columns)
        return
    raise problem


_Spans = tuple[tuple[int, int], ...]
"""The first row and the number of rows of each part of a file."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What the values of some rows are: `low` and `high` of those that are neither NULL nor NaN, None without any."""

    rows: int = 0
    values: int = 0
    nans: int = 0
    low: Any = None
    high: Any = None

    def __add__(self, other: _Found) -> _Found:
        lows = [one for one in (self.low, other.low) if one is not None]
        highs = [one for one in (self.high, other.high) if one is not None]
        return _Found(
            self.rows + other.rows, self.values + other.values, self.nans + other.nans,
            min(lows, default=None), max(highs, default=None),
        )  # fmt: skip


@dataclass(frozen=True)
class _Read:
    """How a column is read: its name as an identifier, what its type is to the engine, and whether a statement can
    compare it."""

    column: Column
    name: str
    engine_type: str
    is_compared: bool

    @property
    def value(self) -> str:
        """What the column is called where its rows have the number of their span: no name of the owner's."""
        return f"c{self.column.place}"


@dataclass(frozen=True)
class _File:
    where: str
    path: str
    source: str
    spill: str
    connection: duckdb.DuckDBPyConnection

    def verify(self, columns: tuple[Column, ...]) -> None:
        described = self.connection.execute(f"DESCRIBE SELECT * FROM {self.source})").fetchall()
        together: dict[_Spans, list[_Read]] = defaultdict(list)
        for column in columns:
            name, engine_type = described[column.place][:2]
            is_wide = (column.element.get(8, (0, 0))[1] or 0) > _MOST_DIGITS
            is_compared = read_type(engine_type)[0] not in (types.OPAQUE, types.INTERVAL) and not is_wide
            one = _Read(column, identifier(name), engine_type, is_compared)
            together[_spans(column)].append(one)
        for spans, reads in together.items():
            for one, found in zip(reads, self._found(spans, reads), strict=True):
                self._compare(one, dict(zip(spans, found, strict=True)))
        for reads in together.values():
            for one in reads:
                self._read_empty(one)
                if one.is_compared:
                    self._probe(one)

    def _found(self, spans: _Spans, reads: list[_Read]) -> list[list[_Found]]:
        """Return what the values of each column are in each span of rows, which are in order and cover the file."""
        asked = [shown for one in reads for shown in _asked(one)]
        matched, arguments = self._matched(reads, spans)
        rows = self.connection.execute(
            f"SELECT n, COUNT(*), {', '.join(asked)} FROM {matched} GROUP BY n", arguments
        ).fetchall()
        by_span = {row[0]: row[1:] for row in rows}
        found: list[list[_Found]] = []
        for place, one in enumerate(reads):
            cells = [by_span.get(n, (0,) + (0, 0, None, None) * len(reads)) for n in range(len(spans))]
            found.append([_read_back(one, cell[0], cell[4 * place + 1 : 4 * place + 5]) for cell in cells])
        return found

    def _matched(self, reads: list[_Read], spans: _Spans) -> tuple[str, list[list[int]]]:
        """Return the values of the file's rows, each row with the number `n` of its span, and the query's arguments.

        Spans of one length that cover the file, as row groups are, need no table.
        """
        values = ", ".join(f"{one.name} AS {one.value}" for one in reads)
        source = f"FROM {self.source}, file_row_number = true)"
        length, chunks = max((rows for _, rows in spans), default=1), reads[0].column.chunks
        is_whole = bool(spans) and sum(spans[-1]) == sum(chunk.said.rows for chunk in chunks)
        if is_whole and all(first == n * length for n, (first, _) in enumerate(spans)):
            return f"(SELECT {values}, file_row_number // {length} AS n {source}) AS t", []
        lists = [[*range(len(spans))], [one for one, _ in spans], [sum(one) for one in spans]]
        return (
            f"(SELECT {values}, file_row_number AS row_number, file_row_number >> {_BLOCK} AS block {source}) AS t "
            f"JOIN (SELECT n, low, high, unnest(range(low >> {_BLOCK}, (high - 1 >> {_BLOCK}) + 1)) AS block FROM "
            "(SELECT unnest($1::BIGINT[]) AS n, unnest($2::BIGINT[]) AS low, unnest($3::BIGINT[]) AS high)) AS s "
            "ON t.block = s.block AND t.row_number >= s.low AND t.row_number < s.high"
        ), lists

    def _compare(self, one: _Read, found: Mapping[tuple[int, int], _Found]) -> None:
        for chunk in one.column.chunks:
            pages = [page for page in chunk.pages if (page.first, page.rows) in found]
            whole = _Found()
            for page in pages or [chunk.said]:
                whole += found.get((page.first, page.rows), _Found())
            self._hold(one, chunk.said, whole)
            for page in pages:
                self._hold(one, page, found[page.first, page.rows])

    def _hold(self, one: _Read, said: Said, found: _Found) -> None:
        """Raise PolicyError unless the values are as is said."""
        if found.rows != said.rows:
            self._refuse(one, "another number of rows than is said")
        if said.nulls is not None and said.nulls != found.rows - found.values:
            self._refuse(one, "another number of NULLs than is said")
        if said.nans is not None and one.is_compared and said.nans != found.nans:
            self._refuse(one, "another number of NaNs than is said")
        if not one.is_compared:
            return
        if (
            said.is_plain
            and one.engine_type == "VARCHAR"
            and all(said.are_exact)
            and {*said.lows} & {*said.highs}
        ):
            self._refuse(one, "a page of one text that is written out, which the engine takes for NULL")
        try:
            lows = [_decode(one, bound) for bound in said.lows]
            highs = [_decode(one, bound) for bound in said.highs]
        except (ValueError, KeyError, struct.error):
            self._refuse(one, "bounds that are none of its type")
        low_is_exact, high_is_exact = said.are_exact
        if not all(_is_beside(low, found.low, is_exact=low_is_exact, is_high=False) for low in lows):
            self._refuse(one, "a smallest value that is not the one that is said")
        if not all(_is_beside(high, found.high, is_exact=high_is_exact, is_high=True) for high in highs):
            self._refuse(one, "a greatest value that is not the one that is said")

    def _read_empty(self, one: _Read) -> None:
        """Look at the values of chunks that are said to hold none, which the engine would not read."""
        chunks = [chunk for chunk in one.column.chunks if chunk.is_said_empty]
        if not chunks:
            return
        # A name of its own each time: an engine may remember files that it has read.
        with TemporaryDirectory(dir=self.spill) as folder:
            target = str(Path(folder) / "empty.parquet")
            alone(self.path, one.column, chunks, target)
            rows = self.connection.execute(f"SELECT COUNT(COLUMNS(*)) FROM read_parquet({text(target)})")
            if rows.fetchall() != [(0,)]:
                self._refuse(one, "another number of NULLs than is said")

    def _probe(self, one: _Read) -> None:
        """Look up every value in the bloom filters of its row groups."""
        chunks = [chunk for chunk in one.column.chunks if chunk.bloom is not None and chunk.said.rows]
        encode = _encoder(one)
        if not chunks or encode is None:
            return
        spans = tuple((chunk.said.first, chunk.said.rows) for chunk in chunks)
        matched, arguments = self._matched([one], spans)
        found = self.connection.execute(
            f"SELECT DISTINCT n, {_raw(one, one.value)} FROM {matched} WHERE {one.value} IS NOT NULL",
            arguments,
        )
        while rows := found.fetchmany(2**16):
            for n, value in rows:
                bloom = chunks[n].bloom
                assert bloom is not None
                if not bloom.may_hold(xxh64(encode(_value(one, value)))):
                    self._refuse(one, "values that its bloom filter does not hold")

    def _refuse(self, one: _Read, what: str) -> None:
        raise PolicyError(f'{self.where}: column {one.name} of "{self.path}" has {what}; {_WAY_OUT}')


def _spans(column: Column) -> _Spans:
    """Return the first row and the number of rows of each page, or of each row group where nothing is said of pages."""
    is_said = any(
        page.lows or page.highs or page.nulls is not None for c in column.chunks for page in c.pages
    )
    parts: Iterable[Said] = (chunk.said for chunk in column.chunks)
    if is_said:
        parts = (page for chunk in column.chunks for page in chunk.pages)
    return tuple((one.first, one.rows) for one in parts if one.rows)


# --- values and bounds as Python's, in the engine's order -----------------------------------------------------


def _asked(one: _Read) -> tuple[str, str, str, str]:
    """Return the aggregates of a column: values that are not NULL, NaNs, the smallest and the greatest."""
    count = f"COUNT({one.value})"
    if not one.is_compared:
        return count, "0", "NULL", "NULL"
    if one.engine_type in ("FLOAT", "DOUBLE"):
        kept = f"FILTER (NOT isnan({one.value}))"
        nans = f"COUNT(*) FILTER (isnan({one.value}))"
        return count, nans, f"MIN({one.value}) {kept}", f"MAX({one.value}) {kept}"
    return count, "0", _raw(one, f"MIN({one.value})"), _raw(one, f"MAX({one.value})")


def _raw(one: _Read, value: str) -> str:
    """Return SQL for a value as a number of the format's, or as bytes; of a moment in the engine's own unit."""
    type_ = one.engine_type
    if type_ == "VARCHAR":
        return f"encode({value})"
    if type_ == "DATE":
        return f"{value} - DATE '1970-01-01'"
    if type_.startswith("TIMESTAMP"):
        away = (
            f"CASE CAST({value} AS VARCHAR) WHEN 'infinity' THEN {_AWAY} WHEN '-infinity' THEN -{_AWAY} END"
        )
        return f"COALESCE({'epoch_ns' if type_ == 'TIMESTAMP_NS' else 'epoch_us'}({value}), {away})"
    if type_.startswith("DECIMAL"):
        return f"CAST({value} AS VARCHAR)"
    return value


def _value(one: _Read, raw: Any) -> Any:
    """Return what `_raw` gave as it is compared: moments in nanoseconds."""
    if raw is None:
        return None
    if one.engine_type.startswith("DECIMAL"):
        return int(re.sub(r"\.", "", raw))
    if one.engine_type.startswith("TIMESTAMP") and one.engine_type != "TIMESTAMP_NS":
        return raw * 1000
    return raw


def _read_back(one: _Read, rows: int, cell: tuple[Any, ...]) -> _Found:
    return _Found(rows, cell[0], cell[1], _value(one, cell[2]), _value(one, cell[3]))


def _decode(one: _Read, bound: bytes) -> Any:
    """Return a bound as `_value` gives values, None for one that the engine does not take. Raises ValueError,
    struct.error: it is none of the column's type."""
    physical, type_ = one.column.physical, one.engine_type
    if type_ == "VARCHAR":
        return bound
    if type_ in ("FLOAT", "DOUBLE"):
        (number,) = struct.unpack(_FLOATS.get(len(bound), ""), bound)
        return number if math.isfinite(number) else None
    if physical == _INT96:
        nanoseconds, day = struct.unpack("<qi", bound)
        return ((day - 2440588) * 86_400 * 10**9 + nanoseconds) // 1000 * 1000
    if physical in (_BYTE_ARRAY, _FIXED):
        if not type_.startswith("DECIMAL") or not bound:
            raise ValueError
        return int.from_bytes(bound, "big", signed=True)
    if len(bound) != {0: 1, _INT32: 4, _INT64: 8}.get(physical):
        raise ValueError
    number = int.from_bytes(bound, "little", signed=not type_.startswith("U"))
    return number * _unit(one)


def _unit(one: _Read) -> int:
    return (one.column.unit or 1000) if one.engine_type.startswith("TIMESTAMP") else 1


def _is_beside(bound: Any, value: Any, *, is_exact: bool, is_high: bool) -> bool:
    """Say whether the smallest or greatest value, None without any, is as a bound says; of none, no exact one."""
    if bound is None or (value is None and not is_exact):
        return True
    if is_exact:
        return bool(bound == value)
    return bool(bound >= value if is_high else bound <= value)


# --- bloom filters --------------------------------------------------------------------------------------------


def _encoder(one: _Read) -> Callable[[Any], bytes] | None:
    """Return how a value is written where it is hashed; None for a type by whose filter nothing is passed over."""
    if one.engine_type == "VARCHAR":
        return bytes
    if one.engine_type in ("FLOAT", "DOUBLE", "BOOLEAN") or one.column.physical not in (_INT32, _INT64):
        return None
    width, unit = (4 if one.column.physical == _INT32 else 8), _unit(one)
    return lambda value: (value // unit % 2 ** (8 * width)).to_bytes(width, "little")


_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_M = 2**64 - 1


def _turned(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _M


def _round(state: int, word: int) -> int:
    return _turned((state + word * _P2) & _M, 31) * _P1 & _M


@lru_cache(maxsize=2**16)
def xxh64(data: bytes) -> int:
    """Return XXH64 of bytes with seed 0, by which Parquet's bloom filters are made."""
    at, state = 0, _P5
    if len(data) >= 32:
        lanes = [(_P1 + _P2) & _M, _P2, 0, -_P1 & _M]
        while at + 32 <= len(data):
            lanes = [
                _round(lane, word)
                for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)
            ]
            at += 32
        state = sum(_turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _M
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _M
    state = (state + len(data)) & _M
    while at + 8 <= len(data):
        state = (_turned(state ^ _round(0, struct.unpack_from("<Q", data, at)[0]), 27) * _P1 + _P4) & _M
        at += 8
    if at + 4 <= len(data):
        state = (_turned(state ^ struct.unpack_from("<I", data, at)[0] * _P1 & _M, 23) * _P2 + _P3) & _M
        at += 4
    for byte in data[at:]:
        state = _turned(state ^ byte * _P5 & _M, 11) * _P1 & _M
    state = (state ^ state >> 33) * _P2 & _M
    state = (state ^ state >> 29) * _P3 & _M
    return state ^ state >> 32
