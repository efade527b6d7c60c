"""Thrift's compact protocol, in which Parquet's footer and page headers are written: structs to dicts, and back.

A struct is `{field: (type, value)}`, a list `(type of its values, values)`; nothing is known here of what fields mean.
"""

from __future__ import annotations

from typing import Any

__all__ = ["BINARY", "FALSE", "I32", "I64", "LIST", "STRUCT", "TRUE", "Fields", "read_struct", "write_struct"]

Fields = dict[int, tuple[int, Any]]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
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
        if type_ in (TRUE, FALSE):
            return type_ == TRUE
        if type_ == BYTE:
            return self._byte()
        if type_ in (I16, I32, I64):
            return self._integer()
        if type_ == DOUBLE:
            return self._bytes(8)
        if type_ == BINARY:
            return self._bytes(self._varint())
        if type_ in (LIST, SET):
            head = self._byte()
            count = self._varint() if head >> 4 == 15 else head >> 4
            of = head & 15
            if of in (TRUE, FALSE):
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
        shown = (TRUE if value else FALSE) if type_ in (TRUE, FALSE) else type_
        written.append((number - before) << 4 | shown if 0 < number - before < 16 else shown)
        if not 0 < number - before < 16:
            written += _integer(number)
        if type_ not in (TRUE, FALSE):
            written += _value(type_, value)
        before = number
    return bytes(written) + b"\0"


def _value(type_: int, value: Any) -> bytes:
    if type_ == BYTE:
        return bytes([value])
    if type_ in (I16, I32, I64):
        return _integer(value)
    if type_ == DOUBLE:
        return bytes(value)
    if type_ == BINARY:
        return _varint(len(value)) + bytes(value)
    if type_ in (LIST, SET):
        of, values = value
        head = bytes([min(len(values), 15) << 4 | of])
        if len(values) > 14:
            head += _varint(len(values))
        if of in (TRUE, FALSE):
            return head + bytes(TRUE if one else FALSE for one in values)
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
