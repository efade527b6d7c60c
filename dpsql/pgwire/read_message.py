"""Packets before the startup is through, and messages from it on: tag and body -> event; within limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from .events import (
    Bind,
    CancelRequest,
    Close,
    CopyChunk,
    CopyEnd,
    CopyFail,
    Describe,
    Event,
    Execute,
    Flush,
    Format,
    FunctionCall,
    GSSENCRequest,
    Parse,
    PasswordMessage,
    Query,
    SASLInitialResponse,
    SASLResponse,
    SSLRequest,
    StartupMessage,
    Sync,
    Target,
    Terminate,
    Unreadable,
)
from .layout import Body, RemoteProtocolError, TextError
from .states import Message

__all__ = ["Limits", "read_message", "read_startup"]


# --- caps on what a client may send, checked before anything is kept for it ---------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest of each; lengths in bytes, of a message's body without its own length word.

    How many statements, portals and connections there are is for the server to cap.
    """

    startup: int = 10_000
    """A packet before the startup is through (Postgres has the same)."""
    authentication: int = 1_024
    """A password, or an answer in a SASL dialogue. Postgres has the same; a server of bearers takes 65,536, as it."""
    message: int = 16 * 2**20
    """A Query, Parse, Bind, FunctionCall or CopyData."""
    small_message: int = 10_000
    """Any other message (Postgres has the same)."""
    name: int = 256
    """The name of a statement or portal."""
    parameters: int = 32_767
    """Parameter types of a Parse, values of a Bind; also result formats."""
    startup_parameters: int = 64
    """Settings in a startup message."""
    read_ahead: int = 256 * 1024
    """Bytes kept for later beyond the message that is being read: see `Connection.wants_data`."""


# --- packets before the startup is through: body -> which message it is, and its event ----------------------


_NEWEST_VERSION = (3, 2)

_SPECIAL = 1234
_CANCEL, _SSL, _GSSENC = 5678, 5679, 5680
_MAX_KEY = 256
_OPTION = "_pq_."


def read_startup(body: bytes, limits: Limits) -> tuple[Message, Event]:
    """Return the packet's kind and event.

    Raises RemoteProtocolError: the packet is not laid out as one of the four, its protocol version is not 3
    (0A000), it names no user (28000), or it passes a cap.
    """
    fields = Body(body)
    major, minor = fields.unsigned16(), fields.unsigned16()
    kind: Message
    event: Event
    if (major, minor) == (_SPECIAL, _CANCEL):
        kind, event = Message.CANCEL_REQUEST, _cancel_request(fields)
    elif (major, minor) == (_SPECIAL, _SSL):
        kind, event = Message.SSL_REQUEST, SSLRequest()
    elif (major, minor) == (_SPECIAL, _GSSENC):
        kind, event = Message.GSSENC_REQUEST, GSSENCRequest()
    elif major == _NEWEST_VERSION[0]:
        event = _startup_message(fields, minor, limits)
        kind = Message.NEWER_STARTUP if event.must_negotiate else Message.STARTUP
    else:
        raise RemoteProtocolError(
            f"Version {major}.{minor} of the protocol is not spoken here; 3.0 to 3.2 are.", sqlstate="0A000"
        )
    fields.end()
    return kind, event


def _cancel_request(fields: Body) -> CancelRequest:
    process_id = fields.signed32()
    if not 0 < fields.left <= _MAX_KEY:
        raise RemoteProtocolError(f"A cancel request's key has 1 to {_MAX_KEY} bytes.")
    return CancelRequest(process_id, fields.rest())


def _startup_message(fields: Body, minor: int, limits: Limits) -> StartupMessage:
    parameters: dict[str, str] = {}
    options: list[str] = []
    try:
        while name := fields.string():
            value = fields.string()
            if name.startswith(_OPTION):
                options.append(name)
            else:
                parameters[name] = value
            if len(parameters) + len(options) > limits.startup_parameters:
                raise RemoteProtocolError(
                    f"A startup message has at most {limits.startup_parameters} parameters."
                )
    except TextError as error:
        raise RemoteProtocolError(
            "The startup message holds bytes that are not UTF-8.", sqlstate="22021"
        ) from error
    if not parameters.get("user"):
        raise RemoteProtocolError("The startup message names no user.", sqlstate="28000")
    asked = (_NEWEST_VERSION[0], minor)
    version = min(asked, _NEWEST_VERSION)
    return StartupMessage(
        version, MappingProxyType(parameters), tuple(options), version != asked or bool(options)
    )


# --- messages from the startup message on: tag and body -> event --------------------------------------------


_FORMATS = MappingProxyType({code.to_bytes(2, "big"): code for code in Format})


def read_message(message: Message, body: bytes, limits: Limits) -> Event:
    """Return the event of a message, `Unreadable` where its text is not UTF-8.

    Raises RemoteProtocolError where the body is not laid out as the message's is, or a cap is passed.
    """
    fields = Body(body)
    try:
        event = _READERS[message](fields, limits)
    except TextError:
        return Unreadable("The message holds bytes that are not UTF-8.")
    fields.end()
    return event


def _password(fields: Body, limits: Limits) -> Event:
    try:
        return PasswordMessage(fields.string())
    except TextError as error:
        raise RemoteProtocolError("The password is not text.") from error


def _sasl_initial_response(fields: Body, limits: Limits) -> Event:
    try:
        mechanism = fields.string(cap=limits.name)
    except TextError as error:
        raise RemoteProtocolError("The SASL mechanism's name is not text.") from error
    length = fields.signed32()
    if length < -1:
        raise RemoteProtocolError("The length of a SASL response is negative.")
    return SASLInitialResponse(mechanism, None if length < 0 else fields.take(length))


def _sasl_response(fields: Body, limits: Limits) -> Event:
    return SASLResponse(fields.rest())


def _query(fields: Body, limits: Limits) -> Event:
    return Query(fields.string())


def _parse(fields: Body, limits: Limits) -> Event:
    statement = fields.string(cap=limits.name)
    sql = fields.string()
    count = _count(fields, limits, each=4)
    return Parse(statement, sql, tuple([fields.unsigned32() for _ in range(count)]))


def _bind(fields: Body, limits: Limits) -> Event:
    portal = fields.string(cap=limits.name)
    statement = fields.string(cap=limits.name)
    formats = _formats(fields, limits)
    count = _count(fields, limits, each=4)
    if len(formats) == 1:
        formats = formats * count
    elif not formats:
        formats = (Format.TEXT,) * count
    elif len(formats) != count:
        raise RemoteProtocolError(
            f"A Bind message has {len(formats)} parameter formats for {count} parameters."
        )
    parameters = tuple([_value(fields) for _ in range(count)])
    return Bind(portal, statement, formats, parameters, _formats(fields, limits))


def _value(fields: Body) -> bytes | None:
    length = fields.signed32()
    if length < -1:
        raise RemoteProtocolError("The length of a parameter is negative.")
    return None if length < 0 else fields.take(length)


def _formats(fields: Body, limits: Limits) -> tuple[Format, ...]:
    count = _count(fields, limits, each=2)
    try:
        return tuple([_FORMATS[fields.take(2)] for _ in range(count)])
    except KeyError:
        raise RemoteProtocolError("A format code is neither 0 (text) nor 1 (binary).") from None


def _count(fields: Body, limits: Limits, *, each: int) -> int:
    """Read a count of things that take at least `each` bytes."""
    count = fields.unsigned16()
    if count > limits.parameters:
        raise RemoteProtocolError(f"A message has more than {limits.parameters} parameters or columns.")
    if count * each > fields.left:
        raise RemoteProtocolError("A message is shorter than its contents claim.")
    return count


def _describe(fields: Body, limits: Limits) -> Event:
    return Describe(_target(fields), fields.string(cap=limits.name))


def _close(fields: Body, limits: Limits) -> Event:
    return Close(_target(fields), fields.string(cap=limits.name))


def _target(fields: Body) -> Target:
    try:
        return Target(fields.take(1))
    except ValueError:
        raise RemoteProtocolError("Neither a statement nor a portal is meant.") from None


def _execute(fields: Body, limits: Limits) -> Event:
    portal = fields.string(cap=limits.name)
    return Execute(portal, max(fields.signed32(), 0))


def _function_call(fields: Body, limits: Limits) -> Event:
    function_oid = fields.unsigned32()
    fields.rest()
    return FunctionCall(function_oid)


_READERS: MappingProxyType[Message, Callable[[Body, Limits], Event]] = MappingProxyType(
    {
        Message.PASSWORD: _password,
        Message.SASL_INITIAL_RESPONSE: _sasl_initial_response,
        Message.SASL_RESPONSE: _sasl_response,
        Message.QUERY: _query,
        Message.PARSE: _parse,
        Message.BIND: _bind,
        Message.DESCRIBE_STATEMENT: _describe,
        Message.DESCRIBE_PORTAL: _describe,
        Message.EXECUTE: _execute,
        Message.CLOSE: _close,
        Message.FUNCTION_CALL: _function_call,
        Message.COPY_DATA: lambda fields, limits: CopyChunk(fields.rest()),
        Message.COPY_DONE: lambda fields, limits: CopyEnd(),
        Message.COPY_FAIL: lambda fields, limits: CopyFail(fields.string()),
        Message.FLUSH: lambda fields, limits: Flush(),
        Message.SYNC: lambda fields, limits: Sync(),
        Message.TERMINATE: lambda fields, limits: Terminate(),
    }
)
"""What is delivered; the messages that are always ignored are not read."""
