"""What a client said, named as in Postgres' documentation; and the fields of messages, as they are written and read."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
