"""What a client said, named as in Postgres' documentation."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from .layout import ParameterError

__all__ = [
    "Bind",
    "CancelRequest",
    "Close",
    "CopyChunk",
    "CopyEnd",
    "CopyFail",
    "Describe",
    "Event",
    "Execute",
    "Flush",
    "Format",
    "FunctionCall",
    "GSSENCRequest",
    "Parse",
    "PasswordMessage",
    "Query",
    "SASLInitialResponse",
    "SASLResponse",
    "SSLRequest",
    "StartupMessage",
    "Sync",
    "Target",
    "Terminate",
    "Unreadable",
    "Waiting",
]


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
