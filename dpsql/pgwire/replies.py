"""What the server says, errors and notices too, named as in Postgres' documentation; each knows its bytes."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from .events import Format, RemoteProtocolError, count, message, string, values
from .states import Reply

_COLUMN = struct.Struct(">IhIhih")


class ServerMessage(Protocol):
    """A reply: which one it is in the table of states, and its bytes.

    `encode` raises LocalProtocolError for what the wire cannot carry.
    """

    @property
    def reply(self) -> Reply:
        """The column of the table."""

    def encode(self) -> bytes:
        """The whole message."""


@dataclass(frozen=True)
class _Fixed:
    """A reply that is always the same bytes."""

    reply: ClassVar[Reply]
    wire: ClassVar[bytes]

    def encode(self) -> bytes:
        return self.wire


class EncryptionAccepted(_Fixed):
    """Yes, speak TLS next. Whatever the client sent ahead in the clear is refused."""

    reply = Reply.ENCRYPTION_ACCEPTED
    wire = b"S"


class EncryptionRefused(_Fixed):
    """No, go on in the clear."""

    reply = Reply.ENCRYPTION_REFUSED
    wire = b"N"


class AuthenticationOk(_Fixed):
    """The client is who it says."""

    reply = Reply.AUTHENTICATION_OK
    wire = b"R\0\0\0\x08\0\0\0\0"


class AuthenticationCleartextPassword(_Fixed):
    """The password is wanted as it is: for a channel that is encrypted."""

    reply = Reply.AUTHENTICATION_CLEARTEXT_PASSWORD
    wire = b"R\0\0\0\x08\0\0\0\x03"


class NoData(_Fixed):
    """A statement or portal without columns."""

    reply = Reply.NO_DATA
    wire = b"n\0\0\0\x04"


class ParseComplete(_Fixed):
    """Parse is done."""

    reply = Reply.PARSE_COMPLETE
    wire = b"1\0\0\0\x04"


class BindComplete(_Fixed):
    """Bind is done."""

    reply = Reply.BIND_COMPLETE
    wire = b"2\0\0\0\x04"


class CloseComplete(_Fixed):
    """Close is done."""

    reply = Reply.CLOSE_COMPLETE
    wire = b"3\0\0\0\x04"


class PortalSuspended(_Fixed):
    """Execute's row limit was reached; the portal may have more."""

    reply = Reply.PORTAL_SUSPENDED
    wire = b"s\0\0\0\x04"


class EmptyQueryResponse(_Fixed):
    """The text held no statement."""

    reply = Reply.EMPTY_QUERY_RESPONSE
    wire = b"I\0\0\0\x04"


class CopyDone(_Fixed):
    """The copy is complete."""

    reply = Reply.COPY_DONE
    wire = b"c\0\0\0\x04"


@dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion:
    """The version to speak, and the protocol options that are not known."""

    reply: ClassVar[Reply] = Reply.NEGOTIATE_PROTOCOL_VERSION
    version: tuple[int, int]
    unknown_options: tuple[str, ...]

    def encode(self) -> bytes:
        """The whole version goes out, not the minor alone: Postgres' own servers and libpq have it so."""
        options = b"".join(map(string, self.unknown_options))
        return message(b"v", struct.pack(">HHi", *self.version, len(self.unknown_options)) + options)


@dataclass(frozen=True, slots=True)
class AuthenticationSASL:
    """The mechanisms to choose from, the preferred one first."""

    reply: ClassVar[Reply] = Reply.AUTHENTICATION_SASL
    mechanisms: tuple[str, ...]

    def encode(self) -> bytes:
        return message(b"R", b"\0\0\0\x0a" + b"".join(map(string, self.mechanisms)) + b"\0")


@dataclass(frozen=True, slots=True)
class AuthenticationSASLContinue:
    """A challenge."""

    reply: ClassVar[Reply] = Reply.AUTHENTICATION_SASL_CONTINUE
    data: bytes

    def encode(self) -> bytes:
        return message(b"R", b"\0\0\0\x0b" + self.data)


@dataclass(frozen=True, slots=True)
class AuthenticationSASLFinal:
    """The server's own proof."""

    reply: ClassVar[Reply] = Reply.AUTHENTICATION_SASL_FINAL
    data: bytes

    def encode(self) -> bytes:
        return message(b"R", b"\0\0\0\x0c" + self.data)


@dataclass(frozen=True, slots=True)
class ParameterStatus:
    """A setting's value, now."""

    reply: ClassVar[Reply] = Reply.PARAMETER_STATUS
    name: str
    value: str

    def encode(self) -> bytes:
        return message(b"S", string(self.name) + string(self.value))


@dataclass(frozen=True, slots=True)
class BackendKeyData:
    """What a CancelRequest must show. `key`: 4 bytes below protocol 3.2, up to 256 from there on."""

    reply: ClassVar[Reply] = Reply.BACKEND_KEY_DATA
    process_id: int
    key: bytes

    def encode(self) -> bytes:
        return message(b"K", self.process_id.to_bytes(4, "big", signed=True) + self.key)


class TransactionStatus(enum.Enum):
    """Where a session stands between statements."""

    IDLE = b"I"
    IN_BLOCK = b"T"
    FAILED = b"E"


@dataclass(frozen=True, slots=True)
class ReadyForQuery:
    """Your turn."""

    reply: ClassVar[Reply] = Reply.READY_FOR_QUERY
    status: TransactionStatus

    def encode(self) -> bytes:
        return b"Z\0\0\0\x05" + self.status.value


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """A result's column. `size` and `modifier` as in `pg_type.typlen` and `pg_attribute.atttypmod`."""

    name: str
    oid: int
    size: int = -1
    modifier: int = -1
    format: Format = Format.TEXT
    table_oid: int = 0
    attribute: int = 0

    def encode(self) -> bytes:
        """The column's part of a RowDescription."""
        fields = (self.table_oid, self.attribute, self.oid, self.size, self.modifier, self.format)
        return string(self.name) + _COLUMN.pack(*fields)


@dataclass(frozen=True, slots=True)
class RowDescription:
    """The columns of the rows to come."""

    reply: ClassVar[Reply] = Reply.ROW_DESCRIPTION
    columns: tuple[FieldDescription, ...]

    def encode(self) -> bytes:
        return message(b"T", count(self.columns) + b"".join([column.encode() for column in self.columns]))


@dataclass(frozen=True, slots=True)
class ParameterDescription:
    """The types of a statement's parameters."""

    reply: ClassVar[Reply] = Reply.PARAMETER_DESCRIPTION
    oids: tuple[int, ...]

    def encode(self) -> bytes:
        return message(b"t", count(self.oids) + struct.pack(f">{len(self.oids)}I", *self.oids))


@dataclass(frozen=True, slots=True)
class DataRow:
    """One row; None is NULL. Many rows: `RowEncoder` and `DataRows`."""

    reply: ClassVar[Reply] = Reply.DATA_ROW
    values: tuple[bytes | None, ...]

    def encode(self) -> bytes:
        return message(b"D", values(self.values))


@dataclass(frozen=True, slots=True)
class DataRows:
    """Any number of whole DataRow messages, as `RowEncoder` makes them."""

    reply: ClassVar[Reply] = Reply.DATA_ROW
    wire: bytes

    def encode(self) -> bytes:
        return self.wire


@dataclass(frozen=True, slots=True)
class CommandComplete:
    """A statement is done: `SELECT 3`, `SET`."""

    reply: ClassVar[Reply] = Reply.COMMAND_COMPLETE
    tag: str

    def encode(self) -> bytes:
        return message(b"C", string(self.tag))


@dataclass(frozen=True, slots=True)
class CopyInResponse:
    """Rows are awaited from the client."""

    reply: ClassVar[Reply] = Reply.COPY_IN_RESPONSE
    format: Format
    columns: int

    def encode(self) -> bytes:
        return message(b"G", _copied(self.format, self.columns))


@dataclass(frozen=True, slots=True)
class CopyOutResponse:
    """A copy begins."""

    reply: ClassVar[Reply] = Reply.COPY_OUT_RESPONSE
    format: Format
    columns: int

    def encode(self) -> bytes:
        return message(b"H", _copied(self.format, self.columns))


def _copied(form: Format, columns: int) -> bytes:
    formats = [form.to_bytes(2, "big")] * columns
    return form.to_bytes(1, "big") + count(formats) + b"".join(formats)


@dataclass(frozen=True, slots=True)
class CopyData:
    """A piece of a copy: for clients' sake one row, but for the header of a binary copy, which is with the first."""

    reply: ClassVar[Reply] = Reply.COPY_DATA
    data: bytes

    def encode(self) -> bytes:
        return message(b"d", self.data)


@dataclass(frozen=True, slots=True)
class CopyRows:
    """Any number of whole CopyData messages, as the copy encoders make them."""

    reply: ClassVar[Reply] = Reply.COPY_DATA
    wire: bytes

    def encode(self) -> bytes:
        return self.wire


# --- what is wrong, and what is told beside it --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Report:
    """`position`: where in the query's text, in characters from 1. `constraint`: the rule that is broken."""

    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    constraint: str | None = field(default=None, kw_only=True)

    def _encode(self, tag: bytes, severity: str) -> bytes:
        fields = (
            (b"S", severity),  # in the client's language, were there another than English
            (b"V", severity),
            (b"C", self.sqlstate),
            (b"M", self.message),
            (b"D", self.detail),
            (b"H", self.hint),
            (b"P", None if self.position is None else str(self.position)),
            (b"n", self.constraint),
        )
        return message(tag, b"".join([code + _shown(text) for code, text in fields if text]) + b"\0")


@dataclass(frozen=True, slots=True)
class ErrorResponse(_Report):
    """A statement, or the whole connection where `fatal`, has failed."""

    fatal: bool = False

    @property
    def reply(self) -> Reply:
        """The column of the table of states."""
        return Reply.FATAL if self.fatal else Reply.ERROR

    def encode(self) -> bytes:
        """The whole message."""
        return self._encode(b"E", "FATAL" if self.fatal else "ERROR")


@dataclass(frozen=True, slots=True)
class NoticeResponse(_Report):
    """Something to know; changes nothing."""

    severity: str = "NOTICE"

    @property
    def reply(self) -> Reply:
        """The column of the table of states."""
        return Reply.NOTICE

    def encode(self) -> bytes:
        """The whole message."""
        return self._encode(b"N", self.severity)


def last_message(error: RemoteProtocolError) -> ErrorResponse:
    """Return what to send before the connection is closed."""
    return ErrorResponse(error.sqlstate, error.message, hint=error.hint, fatal=True)


def _shown(text: str) -> bytes:
    """Return a field; a report must go out whatever it holds, so what the wire cannot carry is written as an escape."""
    return text.replace("\0", "\\x00").encode(errors="backslashreplace") + b"\0"
