"""The tables: complete, closed, and obeyed by `Connection` for every pair of state and message or reply."""

from __future__ import annotations

import ast
import sys
from collections import deque
from pathlib import Path

import pytest

import dpsql.pgwire
from dpsql.pgwire import (
    AuthenticationCleartextPassword,
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    AuthenticationSASLFinal,
    BackendKeyData,
    BindComplete,
    CloseComplete,
    CommandComplete,
    CopyData,
    CopyDone,
    CopyInResponse,
    CopyOutResponse,
    DataRow,
    EmptyQueryResponse,
    EncryptionAccepted,
    EncryptionRefused,
    ErrorResponse,
    Format,
    LocalProtocolError,
    NegotiateProtocolVersion,
    NoData,
    NoticeResponse,
    ParameterDescription,
    ParameterStatus,
    ParseComplete,
    PortalSuspended,
    ProtocolConnection,
    ReadyForQuery,
    RemoteProtocolError,
    RowDescription,
    ServerMessage,
    State,
    TransactionStatus,
    Waiting,
    last_message,
)
from dpsql.pgwire.states import FATAL, FROM_CLIENT, FROM_SERVER, IGNORED, TAGS, Message, Reply

from . import frontend as f

SENT = {
    Message.SSL_REQUEST: f.SSL,
    Message.GSSENC_REQUEST: f.GSSENC,
    Message.CANCEL_REQUEST: f.cancel(1, b"1234"),
    Message.STARTUP: f.startup(user="ada"),
    Message.NEWER_STARTUP: f.startup(minor=9, user="ada"),
    Message.PASSWORD: f.password("correct horse"),
    Message.SASL_INITIAL_RESPONSE: f.sasl_initial("SCRAM-SHA-256", b"n,,n=,r=x"),
    Message.SASL_RESPONSE: f.sasl_response(b"c=biws"),
    Message.QUERY: f.query("SELECT 1"),
    Message.PARSE: f.parse("s", "SELECT 1"),
    Message.BIND: f.bind("p", "s"),
    Message.DESCRIBE_STATEMENT: f.describe("S", "s"),
    Message.DESCRIBE_PORTAL: f.describe("P", "p"),
    Message.EXECUTE: f.execute("p"),
    Message.CLOSE: f.close("S", "s"),
    Message.FLUSH: f.FLUSH,
    Message.SYNC: f.SYNC,
    Message.TERMINATE: f.TERMINATE,
    Message.FUNCTION_CALL: f.tagged("F", bytes(10)),
    Message.COPY_DATA: f.tagged("d", b"rows"),
    Message.COPY_DONE: f.tagged("c"),
    Message.COPY_FAIL: f.tagged("f", b"why\0"),
}
REPLIES: dict[Reply, ServerMessage] = {
    reply.reply: reply
    for reply in (
        EncryptionAccepted(), EncryptionRefused(), NegotiateProtocolVersion((3, 2), ()),
        AuthenticationCleartextPassword(), AuthenticationSASL(("SCRAM-SHA-256",)), AuthenticationSASLContinue(b"r="), AuthenticationSASLFinal(b"v="),
        AuthenticationOk(), ParameterStatus("a", "b"), BackendKeyData(1, b"1234"),
        ReadyForQuery(TransactionStatus.IDLE), RowDescription(()), DataRow(()), CommandComplete("SET"),
        EmptyQueryResponse(), ParseComplete(), BindComplete(), CloseComplete(), ParameterDescription(()), NoData(),
        PortalSuspended(), CopyInResponse(Format.TEXT, 1), CopyOutResponse(Format.TEXT, 1), CopyData(b"x"), CopyDone(),
        NoticeResponse("00000", "note"), ErrorResponse("42601", "no"), ErrorResponse("57P01", "bye", fatal=True),
    )
}  # fmt: skip
TAGGED = [message for message in SENT if SENT[message][:1].isalpha()]
PACKET_STATES = {state for state, row in FROM_CLIENT.items() if Message.STARTUP in row}


def _paths() -> dict[State, tuple[Message | Reply, ...]]:
    """A shortest way to every state, over both tables."""
    paths: dict[State, tuple[Message | Reply, ...]] = {State.STARTUP: ()}
    queue = deque([State.STARTUP])
    while queue:
        state = queue.popleft()
        steps: list[tuple[Message | Reply, State]] = [*FROM_CLIENT.get(state, {}).items()]
        steps += FROM_SERVER.get(state, {}).items()
        for step, after in steps:
            if after not in paths:
                paths[after] = (*paths[state], step)
                queue.append(after)
    return paths


PATHS = _paths()


def _at(state: State) -> ProtocolConnection:
    connection = ProtocolConnection()
    if state is State.FAILED:
        connection.receive_data(b"\xff" * 8)
        with pytest.raises(RemoteProtocolError):
            connection.next_event()
        return connection
    for step in PATHS[state]:
        if isinstance(step, Message):
            connection.receive_data(SENT[step])
            assert not isinstance(connection.next_event(), Waiting)
        else:
            connection.send(REPLIES[step])
    assert connection.state is state
    return connection


def test_every_state_is_reached_and_every_message_and_reply_is_in_use() -> None:
    assert set(PATHS) == set(State) - {State.FAILED}
    assert {message for row in FROM_CLIENT.values() for message in row} == set(Message) == set(SENT)
    assert (
        {reply for row in FROM_SERVER.values() for reply in row} | {Reply.FATAL} == set(Reply) == set(REPLIES)
    )


def test_every_state_awaits_or_owes_or_is_over() -> None:
    owing = set(State) - set(FROM_CLIENT) - {State.FAILED, State.CLOSED}
    assert owing <= set(FROM_SERVER)
    for state in owing:
        ways_on = {reply for reply, after in FROM_SERVER[state].items() if after is not state}
        assert ways_on, f"{state} has no way out"
    assert not set(FROM_SERVER) & {State.FAILED, State.CLOSED}
    waiting = {State.IDLE, State.EXTENDED, State.QUERY_COPY_IN, State.SKIP_TO_SYNC}
    assert {state for state, _ in IGNORED} == waiting
    assert all(FROM_CLIENT[state][message] is state for state, message in IGNORED)


def test_an_error_of_every_owed_answer_leads_on() -> None:
    """Whatever the client may ask once it is in, the server can refuse."""
    started = {state for state in FROM_SERVER if Reply.NOTICE in FROM_SERVER[state]}
    awaiting = {state for state in started if state in FROM_CLIENT}
    for state in started - awaiting - {State.STARTING, State.QUERY_NEXT, State.QUERY_FAILED}:
        assert Reply.ERROR in FROM_SERVER[state], state
    assert started <= FATAL


def _pairs() -> list[tuple[State, Message]]:
    """Awaiting states and tagged messages; three share a tag, and the state says which one it is."""
    sasl = {Message.PASSWORD, Message.SASL_INITIAL_RESPONSE, Message.SASL_RESPONSE}
    return [
        (state, message)
        for state in sorted(set(FROM_CLIENT) - PACKET_STATES, key=lambda state: state.value)
        for message in TAGGED
        if not (message in sasl and message not in FROM_CLIENT[state] and sasl & set(FROM_CLIENT[state]))
    ]


@pytest.mark.parametrize(("state", "message"), _pairs())
def test_every_tagged_message_in_every_awaiting_state(state: State, message: Message) -> None:
    row = FROM_CLIENT[state]
    connection = _at(state)
    connection.receive_data(SENT[message])
    if message not in row:
        with pytest.raises(RemoteProtocolError) as caught:
            connection.next_event()
        assert caught.value.sqlstate == "08P01"
        assert connection.state is State.FAILED
        assert connection.send(last_message(caught.value)).startswith(b"E")
        assert connection.state is State.CLOSED
        assert connection.next_event() is Waiting.PAUSED
        return
    event = connection.next_event()
    assert (event is Waiting.NEED_DATA) == ((state, message) in IGNORED)
    assert connection.state is row[message]


@pytest.mark.parametrize("message", sorted(set(SENT) - set(TAGGED), key=lambda message: message.name))
@pytest.mark.parametrize("state", sorted(PACKET_STATES, key=lambda state: state.value))
def test_every_packet_before_the_startup(state: State, message: Message) -> None:
    connection = _at(state)
    connection.receive_data(SENT[message])
    if message in FROM_CLIENT[state]:
        connection.next_event()
        assert connection.state is FROM_CLIENT[state][message]
    else:
        with pytest.raises(RemoteProtocolError, match="does not belong here"):
            connection.next_event()


@pytest.mark.parametrize("state", sorted(State, key=lambda state: state.value))
def test_every_reply_in_every_state(state: State) -> None:
    for kind, reply in REPLIES.items():
        connection = _at(state)
        after = FROM_SERVER.get(state, {}).get(kind)
        if kind is Reply.FATAL and state in FATAL:
            after = State.CLOSED
        if after is None:
            with pytest.raises(LocalProtocolError):
                connection.send(reply)
            assert connection.state is state
        else:
            assert connection.send(reply) == reply.encode()
            assert connection.state is after


def test_an_owing_state_reads_nothing() -> None:
    for state in set(State) - set(FROM_CLIENT) - {State.FAILED}:
        connection = _at(state)
        connection.receive_data(b"\xff" * 100)
        assert connection.next_event() is Waiting.PAUSED


def test_unknown_tags_are_refused_in_every_awaiting_state() -> None:
    for state in set(FROM_CLIENT) - PACKET_STATES:
        for tag in set(range(256)) - set(TAGS):
            connection = _at(state)
            connection.receive_data(bytes([tag]))
            with pytest.raises(RemoteProtocolError, match="unknown kind"):
                connection.next_event()


def test_only_what_writes_many_rows_imports_more_than_the_standard_library() -> None:
    """Nor does any wait for a socket, but the server that stands as an example."""
    for path in Path(dpsql.pgwire.__file__).parent.rglob("*.py"):
        if path.name == "example.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                top = name.split(".")[0]
                is_of_rows = path.name == "write_columns.py" and name in {"numpy", "numpy.typing"}
                assert top in sys.stdlib_module_names or is_of_rows, (path.name, name)
                assert top not in {"socket", "asyncio", "select", "threading", "time"}, (path.name, name)
