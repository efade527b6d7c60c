"""Many rows at once -> DataRow messages, a column at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import add
from typing import Any

from .errors import LocalProtocolError
from .layout import NULL, count
from .replies import Column, DataRows
from .write_columns import bytes_column, transpose

__all__ = ["RowEncoder"]

_SMALL = 4096
_WORDS = [size.to_bytes(4, "big") for size in range(_SMALL)]
"""Length words of what is usual."""
_MAX_ROW = 2**31 - 1 - 6


class RowEncoder:
    """Makes the DataRow messages of one result."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """Raises LocalProtocolError: a column's type cannot be written in its format."""
        self._count = count(columns)
        self._writers = [bytes_column(column) for column in columns]

    def encode(self, rows: Sequence[Sequence[Any]]) -> DataRows:
        """Return the messages of a chunk of rows; some thousands at a time are fastest.

        Raises LocalProtocolError, which names the column and not the value: a value is not of its column's type,
        or a row has more or fewer values than there are columns.
        """
        columns = transpose(rows, len(self._writers))
        stride = 2 * len(columns) + 1
        pieces = [b""] * (stride * len(rows))
        totals: Iterable[int] = repeat(4 * len(columns), len(rows))
        for index, (column, write) in enumerate(zip(columns, self._writers, strict=True)):
            written = write(column)
            values = [value or b"" for value in written]
            sizes = list(map(len, values))
            totals = map(add, totals, sizes)
            pieces[2 * index + 1 :: stride] = _length_words(written, sizes)
            pieces[2 * index + 2 :: stride] = values
        pieces[::stride] = self._heads(totals)
        return DataRows(b"".join(pieces))

    def _heads(self, totals: Iterable[int]) -> list[bytes]:
        """Return what comes before the values of rows that take `totals` bytes with their length words."""
        heads: dict[int, bytes] = {}
        return [heads.get(size) or heads.setdefault(size, self._head(size)) for size in totals]

    def _head(self, size: int) -> bytes:
        if size > _MAX_ROW:
            raise LocalProtocolError("More than 2 GiB cannot be sent in one row.")
        return b"D" + (size + 6).to_bytes(4, "big") + self._count


def _length_words(written: Sequence[bytes | None], sizes: Sequence[int]) -> list[bytes]:
    if None in written:
        return [NULL if value is None else len(value).to_bytes(4, "big") for value in written]
    return [_WORDS[size] if size < _SMALL else size.to_bytes(4, "big") for size in sizes]
