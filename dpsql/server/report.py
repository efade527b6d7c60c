"""What a client is told of an error: texts of ours, and where in the statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CODES, ON_THE_WIRE, DpsqlError, EngineFailure, LedgerError, PolicyError
from ..pgwire import ErrorResponse, ParameterError
from .log import log, place_of

__all__ = ["ClientGone", "Fault", "changed", "elsewhere", "removed", "report", "stopping", "unsupported"]


class ClientGone(Exception):
    """The client has left: there is nobody to tell anything."""


class Fault(Exception):
    """A statement, or the connection, is at fault; `position` counts characters of the statement from 0."""

    def __init__(
        self, sqlstate: str, message: str, *, hint: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(message)
        self.sqlstate, self.message, self.hint, self.position = sqlstate, message, hint, position


def unsupported(what: str, hint: str) -> Fault:
    """Return the refusal of what the server does not do."""
    return Fault("0A000", f"{what} is not supported", hint=hint)


def stopping() -> Fault:
    """Return why a connection ends when the server does."""
    return Fault("57P01", "the server is shutting down", hint="connect again later")


def removed() -> Fault:
    """Return why the connection of an analyst ends who is no longer in the policy."""
    return Fault("57P01", "you may no longer connect to this server", hint="ask the owner")


def changed() -> Fault:
    """Return why a connection ends whose session was opened on another policy, or other tables."""
    return Fault("57P01", "the policy or the tables have changed", hint="connect again")


def report(
    error: Exception, start: int = 0, *, database: str | None = None, fatal: bool = False
) -> ErrorResponse:
    """Return what to send; `start`: where the statement begins in the text that the client sent.

    What the owner has to mend goes to the log, and so does a bug.
    """
    if isinstance(error, Fault):
        position = None if error.position is None else start + error.position + 1
        return ErrorResponse(error.sqlstate, error.message, hint=error.hint, position=position, fatal=fatal)
    if isinstance(error, ParameterError):
        return ErrorResponse(error.sqlstate, error.message, hint=error.hint, fatal=fatal)
    if isinstance(error, EngineFailure):
        is_full = error.sqlstate == "53200" and error.limit is not None
        if error.sqlstate not in ("57014", "57V01") and not is_full:  # no fault of the database's
            log("engine failed", detail=error.detail, database=database)
        return _refused(error, None, fatal=fatal)
    if isinstance(error, (LedgerError, PolicyError)):
        log("owner has to act", sqlstate=error.sqlstate, message=error.message, database=database)
        what = "ledger" if isinstance(error, LedgerError) else "policy"
        hint = "the owner's log says why"
        told = DpsqlError(f"the {what} cannot be used", sqlstate=error.sqlstate, hint=hint)
        told.cost = error.cost
        return _refused(told, None, fatal=fatal)
    if isinstance(error, DpsqlError):
        place = None if error.position is None else start + error.position.offset + 1
        return _refused(error, place, fatal=fatal)
    log("bug", place=place_of(error))
    hint = "what was charged stays charged; tell the owner, whose log has the place"
    return ErrorResponse("XX000", "dpsql met a bug", hint=hint, fatal=fatal)


def _refused(error: DpsqlError, place: int | None, *, fatal: bool) -> ErrorResponse:
    """Return an error; a code of dpsql's own is its constraint and in its detail, under a code that drivers know."""
    sqlstate, code, detail = ON_THE_WIRE.get(error.sqlstate), error.sqlstate, error.cost
    if sqlstate is None:
        return ErrorResponse(code, error.message, detail, error.hint, place, fatal=fatal)
    detail = "; ".join(part for part in (f"{code}: {CODES[code]}", detail) if part)
    return ErrorResponse(sqlstate, error.message, detail, error.hint, place, fatal=fatal, constraint=code)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Take the position off an error: it points into a text that is not the client's."""
    try:
        yield
    except (DpsqlError, Fault) as error:
        error.position = None
        raise
