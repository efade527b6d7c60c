"""The fields of messages: the server's as they are written, the client's as they are read in order."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "NULL",
    "AuthenticationFailed",
    "Body",
    "LocalProtocolError",
    "ParameterError",
    "ProtocolError",
    "RemoteProtocolError",
    "TextError",
    "count",
    "length",
    "message",
    "string",
    "values",
]


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
