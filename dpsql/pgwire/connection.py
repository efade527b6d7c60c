"""One client's conversation, bytes in and events out, replies in and bytes out; and each message as it is read.

House rules:

1. No socket, clock, thread or randomness: the same calls give the same results.
2. The tables in `states` decide; this file looks them up, and frames.
3. What a client sends can raise RemoteProtocolError and nothing else; what we send, LocalProtocolError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from .messages import (
    BackendKeyData,
    Bind,
    Body,
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
    LocalProtocolError,
    Parse,
    PasswordMessage,
    Query,
    RemoteProtocolError,
    SASLInitialResponse,
    SASLResponse,
    ServerMessage,
    SSLRequest,
    StartupMessage,
    Sync,
    Target,
    Terminate,
    TextError,
    Unreadable,
    Waiting,
)
from .states import FATAL, FROM_CLIENT, FROM_SERVER, IGNORED, TAGS, Message, Reply, State

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


_PACKETS = frozenset(state for state, row in FROM_CLIENT.items() if Message.STARTUP in row)
"""States in which a message has no tag."""

_LARGE = frozenset({Message.QUERY, Message.PARSE, Message.BIND, Message.FUNCTION_CALL, Message.COPY_DATA})
_SASL = frozenset({Message.SASL_INITIAL_RESPONSE, Message.SASL_RESPONSE, Message.PASSWORD})
_ANSWERS = {State.SASL_OFFERED: Message.SASL_INITIAL_RESPONSE, State.PASSWORD_ASKED: Message.PASSWORD}
"""What a message of the tag `p` is, where it is no SASLResponse."""
_KEY_LENGTH_3_0 = 4


class ProtocolConnection:
    """The server's end of one connection.

    Call `receive_data` with what came, then `next_event` until it gives a `Waiting`; answer each event with
    `send`, and write out what it returns. `encrypted`: the bytes come from inside TLS that the client began
    without asking.
    """

    def __init__(self, limits: Limits | None = None, *, encrypted: bool = False) -> None:
        self._limits = limits or Limits()
        self._state = State.STARTUP_SETTLED if encrypted else State.STARTUP
        self._buffer = bytearray()
        self._needs_data = True
        self._version = (3, 0)
        self._error: RemoteProtocolError | None = None

    @property
    def state(self) -> State:
        """Where the conversation stands."""
        return self._state

    @property
    def is_idle(self) -> bool:
        """Whether nothing is begun: no message, and not a part of one."""
        return self._state is State.IDLE and not self._buffer

    @property
    def wants_data(self) -> bool:
        """Whether to go on reading from the socket.

        False while the server is busy and the client has already sent much ahead.
        """
        return self._needs_data or len(self._buffer) < self._limits.read_ahead

    def receive_data(self, data: bytes) -> None:
        """Take what came from the socket. Bytes after the end of the conversation are dropped."""
        if self._state not in (State.CLOSED, State.FAILED):
            self._buffer += data

    def next_event(self) -> Event | Waiting:
        """Return the client's next message, or why there is none yet.

        Raises RemoteProtocolError: the client broke the protocol; from here on only `last_message(error)` can be
        sent. Called again it raises the same.
        """
        if self._error is not None and self._state is State.FAILED:
            raise self._error
        try:
            while (row := FROM_CLIENT.get(self._state)) is not None:
                event = self._read_packet() if self._state in _PACKETS else self._read_message(row)
                if event is not None:
                    self._needs_data = event is Waiting.NEED_DATA
                    return event
        except RemoteProtocolError as error:
            self._fail(error)
            raise
        self._needs_data = False
        return Waiting.PAUSED

    def send(self, *replies: ServerMessage) -> bytes:
        """Return the bytes of the replies, in order.

        Raises LocalProtocolError: a reply is out of turn, or cannot be written; the conversation is then where it
        was before that reply. Raises RemoteProtocolError where TLS is accepted and the client has sent more in
        the clear: nobody knows who wrote it.
        """
        return b"".join([self._send(reply) for reply in replies])

    def _send(self, reply: ServerMessage) -> bytes:
        kind = reply.reply
        after = FROM_SERVER.get(self._state, {}).get(kind)
        if kind is Reply.FATAL and self._state in FATAL:
            after = State.CLOSED
        if after is None:
            raise LocalProtocolError(f"{kind.name} cannot be sent in state {self._state.name}.")
        if kind is Reply.ENCRYPTION_ACCEPTED and self._buffer:
            error = RemoteProtocolError("Unencrypted bytes follow the request for encryption.")
            self._fail(error)
            raise error
        if isinstance(reply, BackendKeyData):
            self._check_key(reply.key)
        wire = reply.encode()
        self._state = after
        return wire

    def _check_key(self, key: bytes) -> None:
        longest = _KEY_LENGTH_3_0 if self._version < (3, 2) else _MAX_KEY
        if not _KEY_LENGTH_3_0 <= len(key) <= longest:
            raise LocalProtocolError("A cancel key has 4 bytes, and 4 to 256 from version 3.2 on.")

    def _fail(self, error: RemoteProtocolError) -> None:
        self._error = error
        self._state = State.FAILED
        self._buffer.clear()

    def _read_packet(self) -> Event | Literal[Waiting.NEED_DATA]:
        """Read a message of the time before tags."""
        body = self._take_body(0, self._limits.startup, at_least=4)
        if body is None:
            return Waiting.NEED_DATA
        kind, event = read_startup(body, self._limits)
        self._advance(kind)
        if isinstance(event, StartupMessage):
            self._version = event.version
        return event

    def _read_message(self, row: dict[Message, State]) -> Event | Literal[Waiting.NEED_DATA] | None:
        """Read a message with a tag; None when it is one that is dropped."""
        if not self._buffer:
            return Waiting.NEED_DATA
        kind = TAGS.get(self._buffer[0])
        if kind is Message.SASL_RESPONSE:
            kind = _ANSWERS.get(self._state, kind)
        if kind not in row:
            what = "A message of unknown kind" if kind is None else kind.value
            raise RemoteProtocolError(f"{what} does not belong here.")
        body = self._take_body(1, self._cap(kind))
        if body is None:
            return Waiting.NEED_DATA
        if kind is Message.DESCRIBE_STATEMENT and body[:1] == b"P":
            kind = Message.DESCRIBE_PORTAL
        if (self._state, kind) in IGNORED:
            return None
        event = read_message(kind, body, self._limits)
        self._advance(kind)
        return event

    def _cap(self, kind: Message) -> int:
        if kind in _SASL:
            return self._limits.authentication
        return self._limits.message if kind in _LARGE else self._limits.small_message

    def _take_body(self, tag: int, cap: int, *, at_least: int = 0) -> bytes | None:
        """Take one message off the buffer and return its body; None when it has not come in full.

        Its length is judged as soon as it is known.
        """
        start = tag + 4
        if len(self._buffer) < start:
            return None
        length = int.from_bytes(self._buffer[tag:start], "big", signed=True) - 4
        if length < at_least:
            raise RemoteProtocolError("The length of a message is too small.")
        if length > cap:
            raise RemoteProtocolError(f"A message is longer than the {cap} bytes allowed here.")
        end = start + length
        if len(self._buffer) < end:
            return None
        body = bytes(memoryview(self._buffer)[start:end])
        del self._buffer[:end]
        return body

    def _advance(self, kind: Message) -> None:
        after = FROM_CLIENT[self._state].get(kind)
        if after is None:
            raise RemoteProtocolError(f"{kind.value} does not belong here.")
        self._state = after
        if after is State.CLOSED:
            self._buffer.clear()
