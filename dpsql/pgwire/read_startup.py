"""Packets before the startup is through: body -> which message it is, and its event."""

from __future__ import annotations

from types import MappingProxyType

from .errors import RemoteProtocolError
from .events import CancelRequest, Event, GSSENCRequest, SSLRequest, StartupMessage
from .layout import Body, TextError
from .limits import Limits
from .states import Message

__all__ = ["NEWEST_VERSION", "read_startup"]

NEWEST_VERSION = (3, 2)

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
    elif major == NEWEST_VERSION[0]:
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
    asked = (NEWEST_VERSION[0], minor)
    version = min(asked, NEWEST_VERSION)
    return StartupMessage(
        version, MappingProxyType(parameters), tuple(options), version != asked or bool(options)
    )
