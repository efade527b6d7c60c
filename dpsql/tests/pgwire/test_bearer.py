"""OAUTHBEARER as libpq 18 sends it, and a password in the clear: what is read, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.pgwire import (
    OAUTHBEARER,
    AuthenticationCleartextPassword,
    AuthenticationFailed,
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    BearerExchange,
    LocalProtocolError,
    PasswordMessage,
    ProtocolConnection,
    RemoteProtocolError,
    SASLInitialResponse,
    SASLResponse,
    State,
)

from . import frontend as f
from .frontend import one, refused

EXCHANGE = BearerExchange("https://login.example.org/", "openid groups")


@pytest.mark.parametrize(
    ("first", "token"),
    [
        (b"n,,\x01auth=Bearer abc.d-_~+/==\x01\x01", "abc.d-_~+/=="),
        (b"n,,\x01auth=bearer  abc\x01\x01", "abc"),
        (b"y,,\x01host=h\x01port=1\x01auth=BEARER abc\x01\x01", "abc"),
        (b"n,,\x01auth=\x01\x01", None),
    ],
)
def test_a_token_is_read(first: bytes, token: str | None) -> None:
    assert EXCHANGE.token(OAUTHBEARER, first) == token


@pytest.mark.parametrize(
    ("first", "sqlstate"),
    [
        (b"", "08P01"), (None, "08P01"), (b"n,,\x01\x01", "08P01"), (b"n,,auth=Bearer x\x01\x01", "08P01"),
        (b"n,,\x01auth=Bearer x\x01", "08P01"), (b"n,,\x01auth=Bearer x\x01\x01more", "08P01"),
        (b"n,,\x01auth=Basic x\x01\x01", "08P01"), (b"n,,\x01auth=Bearer \x01\x01", "08P01"),
        (b"n,,\x01auth=Bearer a b\x01\x01", "08P01"), (b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01", "08P01"),
        (b"n,,\x01auth=Bearer \xff\x01\x01", "08P01"), (b"n,,\x01host=h\x01\x01", "08P01"),
        (b"p=tls-unique,,\x01auth=Bearer x\x01\x01", "08P01"), (b"n,a=bob,\x01auth=Bearer x\x01\x01", "0A000"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(first: bytes | None, sqlstate: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        EXCHANGE.token(OAUTHBEARER, first)
    assert caught.value.sqlstate == sqlstate


def test_another_mechanism_is_none() -> None:
    with pytest.raises(RemoteProtocolError, match="not offered"):
        EXCHANGE.token("SCRAM-SHA-256", b"n,,\x01auth=Bearer x\x01\x01")


@given(st.binary(max_size=60).map(lambda garbage: b"n,,\x01" + garbage) | st.binary(max_size=60))
def test_garbage_is_refused_or_a_token(garbage: bytes) -> None:
    try:
        token = EXCHANGE.token(OAUTHBEARER, garbage)
    except (RemoteProtocolError, AuthenticationFailed):
        return
    assert token is None or (token and token.isascii() and "\x01" not in token)


def test_a_challenge_says_where_to_get_a_token_and_nothing_of_why() -> None:
    assert json.loads(EXCHANGE.challenge()) == {
        "status": "invalid_token", "scope": "openid groups",
        "openid-configuration": "https://login.example.org/.well-known/openid-configuration",
    }  # fmt: skip
    EXCHANGE.dismiss(b"\x01")
    for other in (b"", b"\x01\x01", b"n,,\x01auth=Bearer x\x01\x01"):
        with pytest.raises(RemoteProtocolError):
            EXCHANGE.dismiss(other)


def test_the_dialogue_of_a_token() -> None:
    connection = ProtocolConnection()
    one(connection, f.startup(user="ada"))
    connection.send(AuthenticationSASL(EXCHANGE.mechanisms))
    assert one(
        connection, f.sasl_initial(OAUTHBEARER, b"n,,\x01auth=Bearer x\x01\x01")
    ) == SASLInitialResponse(OAUTHBEARER, b"n,,\x01auth=Bearer x\x01\x01")
    connection.send(AuthenticationOk())
    assert connection.state is State.STARTING


def test_the_dialogue_of_no_token() -> None:
    connection = ProtocolConnection()
    one(connection, f.startup(user="ada"))
    connection.send(AuthenticationSASL(EXCHANGE.mechanisms))
    one(connection, f.sasl_initial(OAUTHBEARER, b"n,,\x01auth=\x01\x01"))
    connection.send(AuthenticationSASLContinue(EXCHANGE.challenge()))
    assert one(connection, f.sasl_response(b"\x01")) == SASLResponse(b"\x01")
    with pytest.raises(LocalProtocolError):
        connection.send(AuthenticationOk())  # who was challenged has proved nothing


def test_a_password_in_the_clear() -> None:
    connection = ProtocolConnection()
    one(connection, f.startup(user="ada"))
    assert connection.send(AuthenticationCleartextPassword()) == f.tagged("R", b"\0\0\0\3")
    given = one(connection, f.password("pä ss"))
    assert given == PasswordMessage("pä ss")
    assert "pä" not in repr(given)
    connection.send(AuthenticationOk())
    assert connection.state is State.STARTING


@pytest.mark.parametrize(
    "sent", [f.tagged("p", b"no end"), f.tagged("p", b"\xff\0"), f.tagged("p", b"a\0b\0"), f.SYNC]
)
def test_no_password(sent: bytes) -> None:
    connection = ProtocolConnection()
    one(connection, f.startup(user="ada"))
    connection.send(AuthenticationCleartextPassword())
    assert refused(connection, sent).sqlstate == "08P01"
