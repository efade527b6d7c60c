"""Queries with bytes alone: simple and extended, errors, copies, caps."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from dpsql.pgwire import (
    BackendKeyData,
    Bind,
    BindComplete,
    Close,
    CloseComplete,
    CommandComplete,
    CopyData,
    CopyDone,
    CopyOutResponse,
    DataRow,
    Describe,
    EmptyQueryResponse,
    ErrorResponse,
    Event,
    Execute,
    FieldDescription,
    Flush,
    Format,
    FunctionCall,
    Limits,
    LocalProtocolError,
    NoticeResponse,
    ParameterDescription,
    ParameterError,
    ParameterStatus,
    Parse,
    ParseComplete,
    Query,
    ReadyForQuery,
    RowDescription,
    ServerMessage,
    State,
    Sync,
    Target,
    Terminate,
    TransactionStatus,
    Unreadable,
    Waiting,
)

from . import frontend as f
from .frontend import READY, idle, one, refused


def test_the_messages_of_the_extended_protocol() -> None:
    connection = idle()
    connection.receive_data(
        f.parse("s", "SELECT $1", 23, 0)
        + f.bind("p", "s", [0, 1], [b"7", None], [1])
        + f.describe("S", "s")
        + f.describe("P", "p")
        + f.execute("p", 10)
        + f.close("P", "p")
        + f.FLUSH
        + f.SYNC
        + f.query("SELECT 1")
    )
    text, binary = Format.TEXT, Format.BINARY
    column = RowDescription((FieldDescription("n", 23, 4),))
    steps: list[tuple[Event, tuple[ServerMessage, ...]]] = [
        (Parse("s", "SELECT $1", (23, 0)), (ParseComplete(),)),
        (Bind("p", "s", (text, binary), (b"7", None), (binary,)), (BindComplete(),)),
        (Describe(Target.STATEMENT, "s"), (ParameterDescription((23,)), column)),
        (Describe(Target.PORTAL, "p"), (column,)),
        (Execute("p", 10), (DataRow((b"7",)), DataRow((None,)), CommandComplete("SELECT 2"))),
        (Close(Target.PORTAL, "p"), (CloseComplete(),)),
        (Flush(), ()),
        (Sync(), (READY,)),
        (Query("SELECT 1"), (EmptyQueryResponse(), READY)),
    ]
    for event, replies in steps:
        assert connection.next_event() == event
        if replies:
            assert connection.next_event() is Waiting.PAUSED
        connection.send(*replies)
    assert connection.next_event() is Waiting.NEED_DATA


def test_one_format_is_for_all_parameters() -> None:
    event = one(idle(), f.bind(formats=[1], values=[b"a", b"b"]))
    assert isinstance(event, Bind)
    assert event.parameter_formats == (Format.BINARY, Format.BINARY)


def test_after_an_error_everything_is_skipped_to_sync() -> None:
    connection = idle()
    assert isinstance(one(connection, f.parse("", "SELEC")), Parse)
    skipped = f.bind() + f.describe("P") + f.execute() + f.FLUSH + f.close("S") + f.query("SELECT 1")
    connection.receive_data(skipped + f.tagged("F", bytes(9)) + f.tagged("d", b"x") + f.SYNC)
    connection.send(ErrorResponse("42601", "no"))
    assert connection.next_event() == Sync()
    connection.send(READY)
    assert one(connection, f.query("SELECT 1")) == Query("SELECT 1")


def test_skipped_messages_are_still_capped_and_known() -> None:
    for data in (b"?", b"E" + struct.pack(">i", 20_000)):
        connection = idle()
        one(connection, f.parse("", "SELEC"))
        connection.send(ErrorResponse("42601", "no"))
        refused(connection, data)


def test_left_over_copy_messages_are_ignored() -> None:
    connection = idle()
    leftovers = f.tagged("d", b"row") + f.tagged("c") + f.tagged("f", b"why\0")
    assert one(connection, leftovers + f.query("SELECT 1") + leftovers + f.SYNC) == Query("SELECT 1")
    connection.send(
        CopyOutResponse(Format.TEXT, 1), CopyData(b"1\n"), CopyDone(), CommandComplete("COPY 1"), READY
    )
    assert connection.next_event() == Sync()


def test_a_function_call_can_only_be_refused() -> None:
    connection = idle()
    assert one(connection, f.tagged("F", struct.pack(">I", 99) + bytes(8))) == FunctionCall(99)
    with pytest.raises(LocalProtocolError):
        connection.send(READY)
    connection.send(ErrorResponse("0A000", "no"), READY)
    assert connection.state is State.IDLE


@pytest.mark.parametrize(
    ("message", "state"),
    [
        (f.tagged("Q", b"SELECT '\xe4'\0"), State.QUERY),
        (f.tagged("P", b"\xe4\0SELECT\0\0\0"), State.PARSE),
        (f.tagged("D", b"S\xe4\0"), State.DESCRIBE_STATEMENT),
        (f.tagged("E", b"\xe4\0\0\0\0\0"), State.EXECUTE),
    ],
)
def test_text_that_is_not_utf_8_is_answered_and_the_connection_goes_on(message: bytes, state: State) -> None:
    connection = idle()
    event = one(connection, message)
    assert isinstance(event, Unreadable)
    assert connection.state is state
    connection.send(ErrorResponse(event.sqlstate, event.message))
    connection.receive_data(f.SYNC)
    if state is State.QUERY:
        connection.send(READY)
    assert connection.next_event() == Sync()


@pytest.mark.parametrize(
    "message",
    [
        f.tagged("Q", b"no end"),
        f.tagged("Q", b"text\0more"),
        f.tagged("Q", b""),
        f.tagged("P", b"s\0sql\0\0\x01\0\0"),
        f.tagged("P", b"s\0sql\0\xff\xff"),
        f.tagged("B", b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
        f.tagged("B", b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"),
        f.tagged("B", b"\0\0\0\x01\0\x02\0\0\0\0"),
        f.tagged("B", b"\0\0\0\0\xff\xff\0\0"),
        f.bind(formats=[0, 0], values=[b"a"]),
        f.describe("X"),
        f.tagged("D"),
        f.close("Q"),
        f.tagged("E", b"\0\0\0"),
        f.tagged("S", b"x"),
        f.tagged("F", b"\0"),
        f.execute("n" * 257),
        b"Q\0\0\0\3",
        b"Q\x80\0\0\0",
        b"Q\x7f\xff\xff\xff",
        b"S" + struct.pack(">i", 10_005),
        f.startup(user="ada"),
    ],
)
def test_malformed_messages_end_the_connection(message: bytes) -> None:
    assert refused(idle(), message).sqlstate == "08P01"


def test_the_cap_on_a_message_is_judged_by_its_length_word_alone() -> None:
    limits = Limits(message=100)
    assert isinstance(one(idle(limits), f.query("x" * 99)), Query)
    assert "100 bytes" in refused(idle(limits), f.query("x" * 100)[:5]).message


def test_parameters_are_capped() -> None:
    assert isinstance(one(idle(Limits(parameters=2)), f.bind(values=[b""] * 2)), Bind)
    assert "more than 2" in refused(idle(Limits(parameters=2)), f.bind(values=[b""] * 3)).message
    assert "more than 2" in refused(idle(Limits(parameters=2)), f.parse("", "", 1, 2, 3)).message


def test_nothing_is_allocated_for_a_length_that_has_not_come() -> None:
    connection = idle()
    tracemalloc.start()
    try:
        assert one(connection, b"Q" + struct.pack(">i", 16 * 2**20)) is Waiting.NEED_DATA
        assert refused(idle(), f.tagged("B", b"\0\0\0\0\x7f\xff")).sqlstate == "08P01"
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_client_that_sends_ahead_is_to_be_slowed_down() -> None:
    connection = idle(Limits(read_ahead=1000))
    assert connection.wants_data
    assert one(connection, f.query("SELECT 1")) == Query("SELECT 1")
    connection.receive_data(f.query("x" * 2000))
    assert connection.next_event() is Waiting.PAUSED
    assert not connection.wants_data
    connection.send(EmptyQueryResponse(), READY)
    assert connection.next_event() == Query("x" * 2000)
    assert connection.wants_data


def test_a_message_beyond_the_read_ahead_is_still_read() -> None:
    connection = idle(Limits(read_ahead=1000))
    assert one(connection, f.query("x" * 5000)[:3000]) is Waiting.NEED_DATA
    assert connection.wants_data


def test_after_terminate_nothing_is_read_or_sent() -> None:
    connection = idle()
    assert one(connection, f.TERMINATE + f.query("SELECT 1")) == Terminate()
    connection.receive_data(f.query("SELECT 1"))
    assert connection.next_event() is Waiting.PAUSED
    with pytest.raises(LocalProtocolError):
        connection.send(NoticeResponse("00000", "hello"))


def test_a_reply_that_fails_leaves_the_state() -> None:
    connection = idle()
    one(connection, f.query("SET x"))
    with pytest.raises(LocalProtocolError, match="zero byte"):
        connection.send(CommandComplete("SET\0"))
    with pytest.raises(LocalProtocolError, match="not Unicode"):
        connection.send(CommandComplete("\ud800"))
    assert connection.state is State.QUERY


def test_reports_go_out_whatever_they_hold() -> None:
    wire = ErrorResponse("42601", "a\0b\ud800", detail="d", hint="h", position=3).encode()
    assert wire == f.tagged("E", b"SERROR\0VERROR\0C42601\0Ma\\x00b\\ud800\0Dd\0Hh\0P3\0\0")
    assert NoticeResponse("00000", "n").encode() == f.tagged("N", b"SNOTICE\0VNOTICE\0C00000\0Mn\0\0")
    assert b"SFATAL\0VFATAL\0" in ErrorResponse("57P01", "bye", fatal=True).encode()


def test_replies_byte_by_byte() -> None:
    column = FieldDescription("n", 1700, -1, 655366, Format.BINARY, 16384, 2)
    assert RowDescription((column,)).encode() == f.tagged(
        "T", b"\0\x01n\0" + struct.pack(">IhIhih", 16384, 2, 1700, -1, 655366, 1)
    )
    assert ParameterDescription((23, 4_000_000_000)).encode() == f.tagged(
        "t", struct.pack(">HII", 2, 23, 4_000_000_000)
    )
    assert DataRow((b"ab", None, b"")).encode() == f.tagged(
        "D", b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0"
    )
    assert CopyOutResponse(Format.BINARY, 2).encode() == f.tagged("H", b"\x01\0\x02\0\x01\0\x01")
    assert ParameterStatus("a", "b").encode() == f.tagged("S", b"a\0b\0")
    assert ReadyForQuery(TransactionStatus.FAILED).encode() == f.tagged("Z", b"E")
    assert BackendKeyData(-1, b"key!").encode() == f.tagged("K", b"\xff\xff\xff\xffkey!")


def test_result_formats_are_none_one_or_one_a_column() -> None:
    for sent, expected in (([], (0, 0)), ([1], (1, 1)), ([0, 1], (0, 1))):
        event = one(idle(), f.bind(results=sent))
        assert isinstance(event, Bind)
        assert event.column_formats(2) == expected
        if len(sent) == 2:
            with pytest.raises(ParameterError):
                event.column_formats(3)
