"""How a client proves who it is: SCRAM as RFC 5802 and libpq have it, OAUTHBEARER as libpq 18 sends it, a password."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from statistics import median

import pytest
from hypothesis import given, settings
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
    ScramExchange,
    State,
    Verifier,
    make_verifier,
    mock_verifier,
    tls_server_end_point,
)
from dpsql.pgwire.sasl import saslprep

from . import frontend as f
from .frontend import one, refused

SCRAM, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
RFC = make_verifier("pencil", salt=base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
RFC_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
RFC_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="


class Client:
    """The client's side (RFC 5802, section 3)."""

    def __init__(
        self, password: str, *, header: bytes = b"n,,", binding: bytes = b"", name: str = ""
    ) -> None:
        self.password, self.header, self.binding = password, header, binding
        self.bare = f"n={name},r=abcdefgh".encode()

    def first(self) -> bytes:
        return self.header + self.bare

    def final(self, server_first: bytes) -> bytes:
        nonce, salt, iterations = (part[2:] for part in server_first.split(b",", 2))
        salted = hashlib.pbkdf2_hmac(
            "sha256", saslprep(self.password), base64.b64decode(salt), int(iterations)
        )
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        bound = base64.b64encode(self.header + self.binding)
        without_proof = b"c=" + bound + b",r=" + nonce
        self.text = self.bare + b"," + server_first + b"," + without_proof
        signature = hmac.digest(hashlib.sha256(client_key).digest(), self.text, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.server_key = hmac.digest(salted, b"Server Key", "sha256")
        return without_proof + b",p=" + base64.b64encode(proof)

    def accepts(self, server_final: bytes) -> bool:
        return server_final == b"v=" + base64.b64encode(hmac.digest(self.server_key, self.text, "sha256"))


def dialogue(client: Client, exchange: ScramExchange, mechanism: str = SCRAM) -> bool:
    server_first = exchange.challenge(mechanism, client.first())
    return client.accepts(exchange.confirm(client.final(server_first)))


def test_the_example_of_rfc_7677() -> None:
    exchange = ScramExchange(RFC, nonce=RFC_NONCE)
    assert exchange.challenge(SCRAM, RFC_FIRST) == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert exchange.confirm(RFC_FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30))
@settings(deadline=None, max_examples=30)
def test_any_password_logs_in_and_no_other(password: str) -> None:
    verifier = make_verifier(password, iterations=2)
    assert dialogue(Client(password), ScramExchange(verifier))
    if saslprep(password + "x") != saslprep(password):
        with pytest.raises(AuthenticationFailed):
            dialogue(Client(password + "x"), ScramExchange(verifier))


@pytest.mark.parametrize(
    "name", ["", "*", "somebody else", "=2C=3D", "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n"]
)
def test_the_name_in_the_dialogue_is_ignored(name: str) -> None:
    assert dialogue(Client("pencil", name=name), ScramExchange(RFC))


def test_channel_binding() -> None:
    header = b"p=tls-server-end-point,,"
    exchange = ScramExchange(RFC, certificate_hash=b"certificate")
    assert exchange.mechanisms == (PLUS, SCRAM)
    assert dialogue(Client("pencil", header=header, binding=b"certificate"), exchange, PLUS)
    with pytest.raises(AuthenticationFailed):
        dialogue(
            Client("pencil", header=header, binding=b"another"),
            ScramExchange(RFC, certificate_hash=b"certificate"),
            PLUS,
        )
    assert dialogue(Client("pencil"), ScramExchange(RFC, certificate_hash=b"certificate"))
    assert dialogue(Client("pencil", header=b"y,,"), ScramExchange(RFC))


def test_a_downgrade_is_found_out() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        dialogue(Client("pencil", header=b"y,,"), ScramExchange(RFC, certificate_hash=b"certificate"))
    assert caught.value.sqlstate == "28000"


def test_the_binding_data_must_repeat_the_first_header() -> None:
    client = Client("pencil")
    exchange = ScramExchange(RFC)
    server_first = exchange.challenge(SCRAM, client.first())
    client.header = b"y,,"
    with pytest.raises(AuthenticationFailed):
        exchange.confirm(client.final(server_first))


@pytest.mark.parametrize(
    ("mechanism", "first", "sqlstate"),
    [
        (PLUS, RFC_FIRST, "08P01"),
        ("PLAIN", RFC_FIRST, "08P01"),
        (SCRAM, None, "08P01"),
        (SCRAM, b"", "08P01"),
        (SCRAM, b"n,,n=", "08P01"),
        (SCRAM, b"n,,n=,r=", "08P01"),
        (SCRAM, b"n,,n=,r=a b", "08P01"),
        (SCRAM, b"x,,n=,r=abc", "08P01"),
        (SCRAM, b"n,,m=future,n=,r=abc", "08P01"),
        (SCRAM, b"n,a=root,n=,r=abc", "0A000"),
        (SCRAM, b"p=tls-server-end-point,,n=,r=abc", "08P01"),
        (SCRAM, b"n,,n=,r=\xff", "08P01"),
    ],
)
def test_bad_first_messages(mechanism: str, first: bytes | None, sqlstate: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        ScramExchange(RFC).challenge(mechanism, first)
    assert caught.value.sqlstate == sqlstate


def test_another_channel_binding_than_ours_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="tls-server-end-point"):
        ScramExchange(RFC, certificate_hash=b"c").challenge(PLUS, b"p=tls-unique,,n=,r=abc")


@given(st.binary(max_size=60) | st.text("cnrp=,biws+/ab ", max_size=40).map(str.encode))
@settings(deadline=None)
def test_any_bytes_are_refused_cleanly(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        ScramExchange(RFC).challenge(SCRAM, b"\0" + data)
    exchange = ScramExchange(RFC, nonce=RFC_NONCE)
    exchange.challenge(SCRAM, RFC_FIRST)
    with pytest.raises(RemoteProtocolError):
        exchange.confirm(data)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ((b"r=rOpr", b"r=aOpr"), RemoteProtocolError),
        ((b"k0,p=", b"k,p="), RemoteProtocolError),
        ((b"p=dHzb", b"p=eHzb"), AuthenticationFailed),
        ((b"c=biws", b"c=eSws"), AuthenticationFailed),
        ((b"ndVQ=", b""), RemoteProtocolError),
        ((b",p=dHzb", b",x=y,p=dHzb"), AuthenticationFailed),
    ],
)
def test_a_changed_final_message(change: tuple[bytes, bytes], error: type[Exception]) -> None:
    exchange = ScramExchange(RFC, nonce=RFC_NONCE)
    exchange.challenge(SCRAM, RFC_FIRST)
    changed = RFC_FINAL.replace(*change)
    assert changed != RFC_FINAL
    with pytest.raises(error):
        exchange.confirm(changed)


def test_a_final_message_is_good_in_its_own_dialogue_only() -> None:
    exchange = ScramExchange(RFC)
    exchange.challenge(SCRAM, RFC_FIRST)
    with pytest.raises(RemoteProtocolError):
        exchange.confirm(RFC_FINAL)
    with pytest.raises(RemoteProtocolError):
        ScramExchange(RFC, nonce=RFC_NONCE).confirm(RFC_FINAL)


# Verifiers.


def test_a_verifiers_text_is_postgres_own() -> None:
    text = RFC.text()
    assert text == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
        ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )
    assert Verifier.parse(text) == RFC


def test_verifiers_are_salted_and_show_nothing() -> None:
    first, second = make_verifier("pencil"), make_verifier("pencil")
    assert first.salt != second.salt
    assert repr(first) == "Verifier(iterations=4096)"


@pytest.mark.parametrize(
    "text",
    [
        "", "md5abc", "SCRAM-SHA-256$4096:c2FsdA==$a:b", RFC.text()[:-4], RFC.text() + "x",
        RFC.text().replace("4096", "0"), RFC.text().replace("4096", "99999999"), RFC.text().replace("W22Z", "W2?Z"),
    ],
)  # fmt: skip
def test_bad_verifiers_are_not_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="SCRAM-SHA-256 verifier") as caught:
        Verifier.parse(text)
    assert not text or text not in str(caught.value)


@pytest.mark.parametrize("password", ["", "a\0b", "\ud800"])
def test_passwords_that_no_client_can_send(password: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # UnicodeEncodeError is one
        make_verifier(password)


@pytest.mark.parametrize(
    ("password", "prepared"),
    [
        ("I\u00adX", b"IX"),  # the examples of RFC 4013
        ("user", b"user"),
        ("USER", b"USER"),
        ("\u00aa", b"a"),
        ("\u2168", b"IX"),
        ("\u0007", b"\x07"),  # prohibited: taken as it is
        ("\u0627\u0031", "\u0627\u0031".encode()),  # bad direction: likewise
        ("a\u00a0b", b"a b"),
        ("\u00ad", "\u00ad".encode()),  # nothing would be left
    ],
)
def test_saslprep(password: str, prepared: bytes) -> None:
    assert saslprep(password) == prepared


def test_a_mock_verifier_is_stable_and_looks_like_any_other() -> None:
    mock = mock_verifier(b"secret", "nobody")
    assert mock == mock_verifier(b"secret", "nobody")
    assert mock != mock_verifier(b"other", "nobody")
    assert mock.salt != mock_verifier(b"secret", "nobody else").salt
    real = make_verifier("x")
    assert (mock.iterations, len(mock.salt)) == (real.iterations, len(real.salt))
    assert len(ScramExchange(mock).challenge(SCRAM, RFC_FIRST)) == len(
        ScramExchange(real).challenge(SCRAM, RFC_FIRST)
    )
    with pytest.raises(AuthenticationFailed) as unknown:
        dialogue(Client("x"), ScramExchange(mock))
    with pytest.raises(AuthenticationFailed) as wrong:
        dialogue(Client("y"), ScramExchange(real))
    assert (str(unknown.value), vars(unknown.value)) == (str(wrong.value), vars(wrong.value))


@pytest.mark.long
def test_an_unknown_user_takes_the_time_of_a_known_one() -> None:
    """Alternating, the medians are alike; making the real one's keys anew, say, would be 100 times."""
    real, mock = make_verifier("x"), mock_verifier(b"secret", "nobody")
    taken: dict[bool, list[int]] = {True: [], False: []}
    for turn in range(6000):
        exchange = ScramExchange(mock if turn % 2 else real, nonce="n")
        final = b"c=biws,r=rOprNGfwEbeRWgbNEkqOn,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        start = time.perf_counter_ns()
        exchange.challenge(SCRAM, RFC_FIRST)
        with pytest.raises(AuthenticationFailed):
            exchange.confirm(final)
        taken[bool(turn % 2)].append(time.perf_counter_ns() - start)
    assert median(taken[True]) == pytest.approx(median(taken[False]), rel=0.5)


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x82\xff\xff", b"-----BEGIN CERTIFICATE-----", b"\x30\x03\x30\x01\x00"]
)
def test_what_is_no_certificate(data: bytes) -> None:
    with pytest.raises(ValueError, match="certificate"):
        tls_server_end_point(data)


@given(st.binary(max_size=60))
def test_no_bytes_break_the_certificates_reader(data: bytes) -> None:
    for prefix in (b"", b"\x30\x20\x30\x00\x30\x10\x06"):
        try:
            tls_server_end_point(prefix + data)
        except ValueError:
            continue


def test_a_password_that_is_sent_as_it_is_fits_its_own_verifier_alone() -> None:
    for password in ("pencil", "IX", "naïve\u00a0word"):
        verifier = make_verifier(password, iterations=4096)
        assert verifier.fits(password)
        assert not any(
            verifier.fits(other)
            for other in ("", "x", password + "x", "\0", "\ud800", password.upper() + "!")
        )
    assert make_verifier("no password", iterations=4096).fits("no password")
    assert not make_verifier("no password", iterations=4096).fits("")
    assert make_verifier("\u2168", iterations=4096).fits("IX"), "prepared as Postgres does"


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
