"""Messages from the startup message on: tag and body -> event."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from .errors import RemoteProtocolError
from .events import (
    Bind,
    Close,
    Describe,
    Event,
    Execute,
    Flush,
    Format,
    FunctionCall,
    Parse,
    Query,
    SASLInitialResponse,
    SASLResponse,
    Sync,
    Target,
    Terminate,
    Unreadable,
)
from .layout import Body, TextError
from .limits import Limits
from .states import Message

__all__ = ["read_message"]

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
        Message.FLUSH: lambda fields, limits: Flush(),
        Message.SYNC: lambda fields, limits: Sync(),
        Message.TERMINATE: lambda fields, limits: Terminate(),
    }
)
"""What is delivered; the messages that are always ignored are not read."""
