"""The time before the first query, with bytes alone: versions, encryption, cancelling."""

from __future__ import annotations

import struct

import pytest

from dpsql.pgwire import (
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    BackendKeyData,
    CancelRequest,
    EncryptionAccepted,
    EncryptionRefused,
    GSSENCRequest,
    LocalProtocolError,
    NegotiateProtocolVersion,
    ProtocolConnection,
    RemoteProtocolError,
    SASLInitialResponse,
    SASLResponse,
    SSLRequest,
    StartupMessage,
    State,
    last_message,
)

from . import frontend as f
from .frontend import READY, one, refused


def test_startup_message() -> None:
    connection = ProtocolConnection()
    event = one(connection, f.startup(user="ada", database="campus", application_name="psql"))
    assert event == StartupMessage((3, 0), {"user": "ada", "database": "campus", "application_name": "psql"})
    assert isinstance(event, StartupMessage)
    assert (event.user, event.database) == ("ada", "campus")
    assert not event.must_negotiate


def test_the_database_is_the_users_name_where_none_is_named() -> None:
    event = one(ProtocolConnection(), f.startup(user="ada", database=""))
    assert isinstance(event, StartupMessage)
    assert event.database == "ada"


@pytest.mark.parametrize(
    ("minor", "options", "version", "must_negotiate"),
    [
        (0, {}, (3, 0), False),
        (1, {}, (3, 1), False),
        (2, {}, (3, 2), False),
        (3, {}, (3, 2), True),
        (9999, {}, (3, 2), True),
        (0, {"_pq_.grease": "1"}, (3, 0), True),
    ],
)
def test_versions(
    minor: int, options: dict[str, str], version: tuple[int, int], must_negotiate: bool
) -> None:
    connection = ProtocolConnection()
    event = one(connection, f.startup(minor=minor, user="ada", **options))
    assert isinstance(event, StartupMessage)
    assert (event.version, event.must_negotiate, event.unknown_options) == (
        version,
        must_negotiate,
        tuple(options),
    )
    assert event.parameters == {"user": "ada"}
    if must_negotiate:
        with pytest.raises(LocalProtocolError):
            connection.send(AuthenticationOk())
        wire = connection.send(NegotiateProtocolVersion(event.version, event.unknown_options))
        names = b"".join(f.string(name) for name in options)
        assert wire == f.tagged("v", struct.pack(">HHi", *version, len(options)) + names)
    longest = 256 if version >= (3, 2) else 4
    connection.send(AuthenticationOk())
    for length in (0, 3, longest + 1):
        with pytest.raises(LocalProtocolError):
            connection.send(BackendKeyData(1, bytes(length)))
    assert len(connection.send(BackendKeyData(1, bytes(longest)))) == 9 + longest


@pytest.mark.parametrize(
    ("packet", "sqlstate"),
    [
        (f.startup(major=2, user="ada"), "0A000"),
        (f.startup(major=4, user="ada"), "0A000"),
        (f.startup(database="campus"), "28000"),
        (f.startup(user=""), "28000"),
        (f.packet(struct.pack(">HH", 3, 0) + b"user\0ada"), "08P01"),
        (f.packet(struct.pack(">HH", 3, 0) + b"user\0ada\0"), "08P01"),
        (f.packet(struct.pack(">HH", 3, 0) + b"user\0ada\0\0x"), "08P01"),
        (f.packet(struct.pack(">HH", 3, 0) + b"user\0\xff\0\0"), "22021"),
        (f.packet(b""), "08P01"),
        (b"\xff\xff\xff\xff", "08P01"),
        (b"GET / HTTP/1.1\r\n\r\n", "08P01"),
        (b"\x16\x03\x01\x02\x00\x01", "08P01"),
        (f.cancel(1, b""), "08P01"),
        (f.cancel(1, bytes(257)), "08P01"),
        (f.packet(struct.pack(">HH", 1234, 5679) + b"x"), "08P01"),
        (struct.pack(">i", 10_005), "08P01"),
        (f.startup(user="ada", **{f"p{i}": "" for i in range(64)}), "08P01"),
    ],
)
def test_bad_packets(packet: bytes, sqlstate: str) -> None:
    connection = ProtocolConnection()
    error = refused(connection, packet)
    assert error.sqlstate == sqlstate
    with pytest.raises(RemoteProtocolError):
        connection.next_event()
    assert connection.send(last_message(error)).startswith(b"E")
    assert connection.state is State.CLOSED


@pytest.mark.parametrize("key", [b"1234", bytes(range(256))])
def test_cancel_request(key: bytes) -> None:
    connection = ProtocolConnection()
    assert one(connection, f.cancel(-5, key)) == CancelRequest(-5, key)
    assert connection.state is State.CLOSED
    with pytest.raises(LocalProtocolError):
        connection.send(READY)


def test_tls_is_asked_for_and_accepted() -> None:
    connection = ProtocolConnection()
    assert one(connection, f.SSL) == SSLRequest()
    assert connection.send(EncryptionAccepted()) == b"S"
    assert isinstance(one(connection, f.startup(user="ada")), StartupMessage)


def test_bytes_in_the_clear_behind_the_request_for_tls_end_the_connection() -> None:
    connection = ProtocolConnection()
    assert one(connection, f.SSL + f.startup(user="mallory")) == SSLRequest()
    with pytest.raises(RemoteProtocolError, match="Unencrypted"):
        connection.send(EncryptionAccepted())
    assert connection.state is State.FAILED


def test_both_encryptions_may_be_refused_once() -> None:
    connection = ProtocolConnection()
    assert one(connection, f.GSSENC) == GSSENCRequest()
    with pytest.raises(LocalProtocolError):
        connection.send(EncryptionAccepted())
    assert connection.send(EncryptionRefused()) == b"N"
    assert one(connection, f.SSL) == SSLRequest()
    connection.send(EncryptionRefused())
    assert "does not belong" in refused(connection, f.SSL).message


def test_inside_tls_no_encryption_is_asked_for() -> None:
    assert "does not belong" in refused(ProtocolConnection(encrypted=True), f.SSL).message
    assert isinstance(one(ProtocolConnection(encrypted=True), f.startup(user="ada")), StartupMessage)


def test_sasl_messages() -> None:
    connection = ProtocolConnection()
    one(connection, f.startup(user="ada"))
    assert connection.send(AuthenticationSASL(("A", "B"))) == f.tagged("R", b"\0\0\0\x0aA\0B\0\0")
    assert one(connection, f.sasl_initial("A", None)) == SASLInitialResponse("A", None)
    assert connection.send(AuthenticationSASLContinue(b"r=1")) == f.tagged("R", b"\0\0\0\x0br=1")
    assert one(connection, f.sasl_response(b"x")) == SASLResponse(b"x")
    with pytest.raises(LocalProtocolError):
        connection.send(AuthenticationOk())


def test_messages_are_small_before_the_password_is_checked() -> None:
    connection = ProtocolConnection()
    one(connection, f.startup(user="ada"))
    connection.send(AuthenticationSASL(("A",)))
    assert "longer than the 1024 bytes" in refused(connection, b"p" + struct.pack(">i", 1029)).message
