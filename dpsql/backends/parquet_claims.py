"""What a Parquet file says of its values beside them: statistics of column chunks and of pages, and bloom filters.

An engine passes over rows by what is said, so all of it is a claim, to be held against the values (`verify_claims`,
soundness.md 1.27). House rules:

1. This reads and judges nothing. Offsets are taken as DuckDB takes them, so that the pages that are looked at are those
   that are read.
2. A field has the type that the format has it in, or the file is none: the engine passes over a field of another type,
   as if nothing were said.

Thrift's compact protocol, in which Parquet's footer and page headers are written: structs to dicts, and back.

A struct is `{field: (type, value)}`, a list `(type of its values, values)`; nothing is known here of what fields mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..records import dataclass

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
            written += _value(type_, value)
        before = number
    return bytes(written) + b"\0"


def _value(type_: int, value: Any) -> bytes:
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
        return head + b"".join(_value(of, one) for one in values)
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
            found.append(Column(place, _get(element, 1, _I32, -1), _unit(element), element, tuple(chunks)))
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


def _unit(element: Fields) -> int:
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
