"""Errors and notices, as the client is told them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import RemoteProtocolError
from .layout import message
from .states import Reply

__all__ = ["ErrorResponse", "NoticeResponse", "last_message"]


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
