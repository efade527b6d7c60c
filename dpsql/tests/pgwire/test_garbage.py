"""Garbage: events or one protocol error, however it is split."""

from __future__ import annotations

import struct

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsql.pgwire import (
    AuthenticationSASL,
    AuthenticationSASLContinue,
    BindComplete,
    CloseComplete,
    CommandComplete,
    EmptyQueryResponse,
    EncryptionRefused,
    ErrorResponse,
    Event,
    NegotiateProtocolVersion,
    ProtocolConnection,
    RemoteProtocolError,
    RowDescription,
    ServerMessage,
    State,
    Waiting,
)
from dpsql.tests.support.length import tried

from . import frontend as f
from .frontend import READY, idle


def _drive(connection: ProtocolConnection, pieces: list[bytes]) -> list[Event | Waiting | str]:
    """Answer whatever comes in the shortest way; the events, and the error's text."""
    answers: dict[State, tuple[ServerMessage, ...]] = {
        State.SSL_ASKED: (EncryptionRefused(),),
        State.LAST_SSL_ASKED: (EncryptionRefused(),),
        State.GSS_ASKED: (EncryptionRefused(),),
        State.LAST_GSS_ASKED: (EncryptionRefused(),),
        State.NEWER_VERSION_ASKED: (NegotiateProtocolVersion((3, 2), ()), AuthenticationSASL(("A",))),
        State.AUTHENTICATING: (AuthenticationSASL(("A",)),),
        State.SASL_BEGUN: (AuthenticationSASLContinue(b""),),
        State.PARSE: (ErrorResponse("42601", "no"),),
        State.BIND: (BindComplete(),),
        State.DESCRIBE_STATEMENT: (ErrorResponse("42601", "no"),),
        State.DESCRIBE_COLUMNS: (RowDescription(()),),
        State.EXECUTE: (CommandComplete(""),),
        State.CLOSE: (CloseComplete(),),
        State.SYNC: (READY,),
        State.QUERY: (EmptyQueryResponse(), READY),
        State.FUNCTION_CALL: (ErrorResponse("0A000", "no"), READY),
    }
    seen: list[Event | Waiting | str] = []
    for piece in pieces:
        connection.receive_data(piece)
        while True:
            try:
                event = connection.next_event()
            except RemoteProtocolError as error:
                return [*seen, f"{error.sqlstate} {error.message}"]
            if isinstance(event, Waiting):
                break
            seen.append(event)
            if replies := answers.get(connection.state):
                connection.send(*replies)
    return seen


MESSAGES = st.sampled_from(
    [
        f.SSL, f.GSSENC, f.startup(user="ada"), f.startup(minor=7, user="ada"), f.cancel(1, b"abcd"),
        f.sasl_initial("A", b"x"), f.sasl_response(b"y"), f.query("SELECT 1"), f.parse("s", "q", 23),
        f.bind("p", "s", [1], [b"1", None], [0]), f.describe("S", "s"), f.describe("P"), f.execute("p", 3),
        f.close("P"), f.FLUSH, f.SYNC, f.TERMINATE, f.tagged("F", bytes(12)), f.tagged("d", b"x"),
        f.tagged("Q", b"\xff\0"), f.tagged("B", b"\0\0\xff\xff"), f.tagged("E", b"\0"),
    ]
)  # fmt: skip
NOISE = st.binary(max_size=12) | st.builds(
    lambda tag, length, body: bytes([tag]) + struct.pack(">i", length) + body,
    st.sampled_from(b"QPBDECHSXFdcfp"),
    st.integers(-1, 40),
    st.binary(max_size=40),
)


@given(parts=st.lists(MESSAGES | NOISE, max_size=12), started=st.booleans(), data=st.data())
@settings(deadline=None, max_examples=tried(200, 600))
@example(parts=[f.parse("s", "q"), f.bind(), f.SYNC], started=True, data=None)
def test_garbage_gives_events_or_one_protocol_error_however_it_is_split(
    parts: list[bytes], started: bool, data: st.DataObject | None
) -> None:
    whole = b"".join(parts)
    cut = len(whole) // 2 if data is None else data.draw(st.integers(0, len(whole)))
    make = idle if started else ProtocolConnection
    at_once = _drive(make(), [whole])
    assert _drive(make(), [whole[:cut], whole[cut:]]) == at_once
    assert _drive(make(), [bytes([byte]) for byte in whole]) == at_once


@given(st.binary(max_size=300))
@settings(deadline=None, max_examples=tried(100, 300))
def test_bytes_of_any_kind(data: bytes) -> None:
    _drive(idle(), [data])
    _drive(ProtocolConnection(), [data])
