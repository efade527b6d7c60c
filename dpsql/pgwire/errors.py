"""What can go wrong on the wire: the client's fault, our own, or a value that cannot be read."""

from __future__ import annotations

__all__ = [
    "AuthenticationFailed",
    "LocalProtocolError",
    "ParameterError",
    "ProtocolError",
    "RemoteProtocolError",
]


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
