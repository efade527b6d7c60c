"""What a client says and what the server says, named as in Postgres' documentation; and the fields of messages."""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from .states import Reply

# --- what can go wrong on the wire: the client's fault, our own, or a value that cannot be read -------------


class ProtocolError(Exception):
    """The base of the two: nobody raises it itself. `sqlstate` and `message` are what a client may be told."""

    def __init__(self, message: str, *, sqlstate: str = "08P01", hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.hint = hint


class RemoteProtocolError(ProtocolError):
    """The client broke the protocol: the connection ends with `last_message(error)`.

    Messages are ours; the client's bytes are never quoted.
    """


class LocalProtocolError(ProtocolError):
    """The server broke the protocol: a reply out of turn or one that cannot be sent. A bug on our side."""


class AuthenticationFailed(Exception):
    """A wrong password, an unknown user, or a channel that is not bound: deliberately one error, 28P01."""

    sqlstate = "28P01"


class ParameterError(Exception):
    """A parameter's bytes are not a value of its type, or formats are not as many as columns: an ErrorResponse.

    `message` may quote the parameter: it is the client's own.
    """

    def __init__(self, message: str, *, sqlstate: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.hint = hint


# --- the fields of messages ---------------------------------------------------------------------------------


NULL = b"\xff\xff\xff\xff"
"""The length word of a NULL."""

_MAX_COUNT = 2**16 - 1
_MAX_LENGTH = 2**31 - 1


def length(data: bytes, *, own: int = 0) -> bytes:
    """Return the length word of `data`; `own`: what the word counts of itself."""
    total = len(data) + own
    if total > _MAX_LENGTH:
        raise LocalProtocolError("More than 2 GiB cannot be sent in one message.")
    return total.to_bytes(4, "big")


def message(tag: bytes, body: bytes) -> bytes:
    """Return a message."""
    return tag + length(body, own=4) + body


def string(text: str) -> bytes:
    """Return a string with its zero byte."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise LocalProtocolError("A string to be sent is not Unicode text.") from None
    if b"\0" in raw:
        raise LocalProtocolError("A string to be sent holds a zero byte.")
    return raw + b"\0"


def count(things: Sequence[object]) -> bytes:
    """Return the count of columns or parameters."""
    if len(things) > _MAX_COUNT:
        raise LocalProtocolError(f"More than {_MAX_COUNT} columns or parameters cannot be sent.")
    return len(things).to_bytes(2, "big")


def values(row: Sequence[bytes | None]) -> bytes:
    """Return a row's values, counted; None is NULL."""
    return count(row) + b"".join([NULL if value is None else length(value) + value for value in row])


# --- a message that is read ---------------------------------------------------------------------------


class TextError(Exception):
    """A string of a message is not UTF-8."""


class Body:
    """A reader over the bytes of one message, without tag and length word.

    Everything raises RemoteProtocolError where the bytes do not suffice; nothing is allocated for a length or
    count before that many bytes are known to be there.
    """

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unsigned16(self) -> int:
        """Read an Int16 that is a count or code: 0 to 65535."""
        return int.from_bytes(self.take(2), "big")

    def unsigned32(self) -> int:
        """Read an Int32 that is an OID or code."""
        return int.from_bytes(self.take(4), "big")

    def signed32(self) -> int:
        """Read an Int32."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def take(self, length: int) -> bytes:
        """Read `length` bytes, 0 or more."""
        end = self._at + length
        if end > len(self._data):
            raise RemoteProtocolError("A message is shorter than its contents claim.")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def string(self, *, cap: int | None = None) -> str:
        """Read a string up to its zero byte. Raises TextError where it is not UTF-8, whatever its length."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise RemoteProtocolError("A string in a message has no end.")
        if cap is not None and end - self._at > cap:
            raise RemoteProtocolError(f"A name in a message is longer than {cap} bytes.")
        raw = self._data[self._at : end]
        self._at = end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise TextError from error

    def rest(self) -> bytes:
        """Read all that is left."""
        return self.take(len(self._data) - self._at)

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def end(self) -> None:
        """Raise RemoteProtocolError unless everything was read."""
        if self._at != len(self._data):
            raise RemoteProtocolError("A message is longer than its contents.")


class Format(enum.IntEnum):
    """How a value is written."""

    TEXT = 0
    BINARY = 1


class Target(enum.Enum):
    """What Describe and Close speak of."""

    STATEMENT = b"S"
    PORTAL = b"P"


class Waiting(enum.Enum):
    """Why there is no next event."""

    NEED_DATA = enum.auto()
    """The next message has not come in full: receive more."""
    PAUSED = enum.auto()
    """The server owes a reply, or the connection is over: receiving more changes nothing."""


@dataclass(frozen=True, slots=True)
class SSLRequest:
    """May we speak TLS? Owed: `EncryptionAccepted` or `EncryptionRefused`."""


@dataclass(frozen=True, slots=True)
class GSSENCRequest:
    """May we speak GSS? Owed: `EncryptionRefused`."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Cancel what the connection of this key runs. Nothing may be replied; close."""

    process_id: int
    key: bytes


@dataclass(frozen=True, slots=True)
class StartupMessage:
    """A new session. Owed: `NegotiateProtocolVersion` where `must_negotiate`, then authentication.

    `version`: the one to speak from here on, at most what the client asked for. `parameters`: `user`, `database`,
    and settings; the later of two of one name counts. `unknown_options`: names of protocol options (`_pq_.…`), of
    which we know none.
    """

    version: tuple[int, int]
    parameters: Mapping[str, str]
    unknown_options: tuple[str, ...] = ()
    must_negotiate: bool = False

    @property
    def user(self) -> str:
        """The name to authenticate; never empty."""
        return self.parameters["user"]

    @property
    def database(self) -> str:
        """The database asked for; the user's name where there is none, as in Postgres."""
        return self.parameters.get("database") or self.user


@dataclass(frozen=True, slots=True)
class PasswordMessage:
    """The password that was asked for, in the clear."""

    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SASLInitialResponse:
    """The mechanism chosen, and its first message; None where the client sent none."""

    mechanism: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class SASLResponse:
    """The answer to a challenge."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Query:
    """A text of no, one or several statements."""

    sql: str


@dataclass(frozen=True, slots=True)
class Parse:
    """Prepare one statement under a name ("" for the unnamed one). A type of 0 is for the server to find."""

    statement: str
    sql: str
    parameter_types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Open a portal on a prepared statement.

    `parameter_formats` is as long as `parameters`; `result_formats` is as sent: none, one for all columns, or one
    a column (`column_formats`).
    """

    portal: str
    statement: str
    parameter_formats: tuple[Format, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[Format, ...]

    def column_formats(self, count: int) -> tuple[Format, ...]:
        """Return the formats of a result of `count` columns. Raises ParameterError: they are another number."""
        if len(self.result_formats) <= 1:
            return (self.result_formats or (Format.TEXT,)) * count
        if len(self.result_formats) != count:
            raise ParameterError(
                f"a Bind message has {len(self.result_formats)} result formats for {count} columns",
                sqlstate="08P01",
            )
        return self.result_formats


@dataclass(frozen=True, slots=True)
class Describe:
    """Describe a statement's parameters and columns, or a portal's columns. Nothing is run."""

    target: Target
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a portal to at most `max_rows` more rows; 0 for all."""

    portal: str
    max_rows: int


@dataclass(frozen=True, slots=True)
class Close:
    """Forget a statement or portal; one that does not exist is no error."""

    target: Target
    name: str


@dataclass(frozen=True, slots=True)
class Flush:
    """Send what was replied so far. Nothing is owed."""


@dataclass(frozen=True, slots=True)
class Sync:
    """End of a series. Owed: `ReadyForQuery`."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """Goodbye."""


@dataclass(frozen=True, slots=True)
class CopyChunk:
    """Bytes of the rows that the server has asked for. Nothing is owed."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CopyEnd:
    """All rows have come. Owed: `CommandComplete`."""


@dataclass(frozen=True, slots=True)
class CopyFail:
    """The client gives its rows up, and says why. Owed: an `ErrorResponse`."""

    reason: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of the old function interface. Owed: an `ErrorResponse` and `ReadyForQuery`."""

    function_oid: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A well-framed message whose text is not UTF-8. Owed: an `ErrorResponse` with these, as for the message itself."""

    message: str
    sqlstate: str = "22021"


Event = (
    SSLRequest
    | GSSENCRequest
    | CancelRequest
    | StartupMessage
    | PasswordMessage
    | SASLInitialResponse
    | SASLResponse
    | Query
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Flush
    | Sync
    | Terminate
    | CopyChunk
    | CopyEnd
    | CopyFail
    | FunctionCall
    | Unreadable
)


# --- what the server says; each knows its bytes -----------------------------------------------------------


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
