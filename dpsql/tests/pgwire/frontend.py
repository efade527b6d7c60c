"""The client's bytes, written by hand from the chapter "Message Formats" of Postgres' documentation."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from dpsql.pgwire import (
    AuthenticationOk,
    BackendKeyData,
    Event,
    Limits,
    ProtocolConnection,
    ReadyForQuery,
    RemoteProtocolError,
    State,
    TransactionStatus,
    Waiting,
)

SSL = struct.pack(">iHH", 8, 1234, 5679)
GSSENC = struct.pack(">iHH", 8, 1234, 5680)


def packet(body: bytes) -> bytes:
    """A message of the time before tags."""
    return struct.pack(">i", len(body) + 4) + body


def tagged(tag: str, body: bytes = b"") -> bytes:
    return tag.encode() + packet(body)


def string(text: str) -> bytes:
    return text.encode() + b"\0"


def startup(*, minor: int = 0, major: int = 3, **parameters: str) -> bytes:
    pairs = b"".join(string(name) + string(value) for name, value in parameters.items())
    return packet(struct.pack(">HH", major, minor) + pairs + b"\0")


def cancel(process_id: int, key: bytes) -> bytes:
    return packet(struct.pack(">HHi", 1234, 5678, process_id) + key)


def password(text: str) -> bytes:
    return tagged("p", text.encode() + b"\0")


def sasl_initial(mechanism: str, data: bytes | None) -> bytes:
    tail = struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    return tagged("p", string(mechanism) + tail)


def sasl_response(data: bytes) -> bytes:
    return tagged("p", data)


def query(sql: str) -> bytes:
    return tagged("Q", string(sql))


def parse(name: str, sql: str, *types: int) -> bytes:
    return tagged("P", string(name) + string(sql) + struct.pack(f">H{len(types)}I", len(types), *types))


def bind(
    portal: str = "",
    statement: str = "",
    formats: Sequence[int] = (),
    values: Sequence[bytes | None] = (),
    results: Sequence[int] = (),
) -> bytes:
    body = string(portal) + string(statement)
    body += struct.pack(f">H{len(formats)}H", len(formats), *formats) + struct.pack(">H", len(values))
    for value in values:
        body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return tagged("B", body + struct.pack(f">H{len(results)}H", len(results), *results))


def describe(target: str, name: str = "") -> bytes:
    return tagged("D", target.encode() + string(name))


def execute(portal: str = "", max_rows: int = 0) -> bytes:
    return tagged("E", string(portal) + struct.pack(">i", max_rows))


def close(target: str, name: str = "") -> bytes:
    return tagged("C", target.encode() + string(name))


FLUSH = tagged("H")
SYNC = tagged("S")
TERMINATE = tagged("X")


READY = ReadyForQuery(TransactionStatus.IDLE)


def idle(limits: Limits | None = None) -> ProtocolConnection:
    """A connection that awaits its first query."""
    connection = ProtocolConnection(limits)
    connection.receive_data(startup(user="ada"))
    connection.next_event()
    connection.send(AuthenticationOk(), BackendKeyData(1, b"1234"), READY)
    return connection


def one(connection: ProtocolConnection, data: bytes) -> Event | Waiting:
    """The next event once the bytes came."""
    connection.receive_data(data)
    return connection.next_event()


def refused(connection: ProtocolConnection, data: bytes) -> RemoteProtocolError:
    """The error that the bytes are refused with."""
    connection.receive_data(data)
    with pytest.raises(RemoteProtocolError) as caught:
        connection.next_event()
    assert connection.state is State.FAILED
    return caught.value
