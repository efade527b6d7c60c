"""Many rows at once -> DataRow messages, a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .bulk import messages
from .layout import count, message
from .replies import DataRows, FieldDescription
from .write_columns import MANY, bytes_column, field_column, joined, transpose

__all__ = ["RowEncoder"]


class RowEncoder:
    """Makes the DataRow messages of one result."""

    def __init__(self, columns: Sequence[FieldDescription]) -> None:
        """Raises LocalProtocolError: a column's type cannot be written in its format."""
        self._count = count(columns)
        self._writers = [bytes_column(column) for column in columns]
        self._fields = [field_column(column) for column in columns]

    def encode(self, rows: Sequence[Sequence[Any]]) -> DataRows:
        """Return the messages of a chunk of rows; some thousands at a time are fastest.

        Raises LocalProtocolError, which names the column and not the value: a value is not of its column's type,
        or a row has more or fewer values than there are columns.
        """
        columns = transpose(rows, len(self._writers))
        if len(rows) >= MANY:
            fields = [write(column) for write, column in zip(self._fields, columns, strict=True)]
            return DataRows(messages(b"D", self._count, fields, len(rows)))
        written = [write(column) for write, column in zip(self._writers, columns, strict=True)]
        return DataRows(b"".join([message(b"D", self._count + row) for row in joined(written, len(rows))]))
