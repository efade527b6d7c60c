"""One client's conversation: bytes in, events out; replies in, bytes out.

House rules:

1. No socket, clock, thread or randomness: the same calls give the same results.
2. The tables in `states` decide; this file looks them up, and frames.
3. What a client sends can raise RemoteProtocolError and nothing else; what we send, LocalProtocolError.
"""

from __future__ import annotations

from typing import Literal

from .events import Event, StartupMessage, Waiting
from .layout import LocalProtocolError, RemoteProtocolError
from .read_message import Limits, read_message, read_startup
from .replies import BackendKeyData, ServerMessage
from .states import FATAL, FROM_CLIENT, FROM_SERVER, IGNORED, TAGS, Message, Reply, State

__all__ = ["ProtocolConnection"]

_PACKETS = frozenset(state for state, row in FROM_CLIENT.items() if Message.STARTUP in row)
"""States in which a message has no tag."""

_LARGE = frozenset({Message.QUERY, Message.PARSE, Message.BIND, Message.FUNCTION_CALL, Message.COPY_DATA})
_SASL = frozenset({Message.SASL_INITIAL_RESPONSE, Message.SASL_RESPONSE, Message.PASSWORD})
_ANSWERS = {State.SASL_OFFERED: Message.SASL_INITIAL_RESPONSE, State.PASSWORD_ASKED: Message.PASSWORD}
"""What a message of the tag `p` is, where it is no SASLResponse."""
_KEY_LENGTH_3_0 = 4
_MAX_KEY = 256


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
