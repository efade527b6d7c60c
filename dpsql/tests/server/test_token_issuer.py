"""Analysts who bear an issuer's token: a real libpq 18 that sends it, and an issuer over TLS with keys of its own."""

from __future__ import annotations

import base64
import ctypes
import http.server
import json
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dpsql.errors import PolicyError
from dpsql.policy import load_policy
from dpsql.policy.model import IssuerPolicy, NamePattern
from dpsql.server.identity import Unproved, open_voucher

from ..support.slapd import make_certificate
from .conftest import COUNT, POLICY, Served, left, make_dataset, needs_openssl, run_server

token_issuer = pytest.importorskip("dpsql.server.token_issuer", reason="PyJWT is not installed")
jwt = pytest.importorskip("jwt")
ec = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ec")
rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
TokenIssuer = token_issuer.TokenIssuer

pytestmark = needs_openssl
LONG = 3600
DEEP = base64.urlsafe_b64encode(b"[" * 45_000).decode()


@dataclass
class Issuer:
    """An OpenID provider's two pages: where its keys are, and these. `asked`: how often for the keys."""

    url: str
    certificate: Path
    keys: dict[str, Any] = field(default_factory=dict)
    asked: int = 0
    elsewhere: str | None = None

    def claims(self, **other: object) -> dict[str, object]:
        usual = {"iss": self.url, "aud": "dpsql", "sub": "s-1", "exp": int(time.time()) + LONG}
        return {name: value for name, value in {**usual, **other}.items() if value is not None}

    def token(
        self, *, kid: str | None = "a", algorithm: str = "RS256", key: Any = None, **claims: object
    ) -> str:
        headers = None if kid is None else {"kid": kid}
        return jwt.encode(self.claims(**claims), key or self.keys[kid or "a"], algorithm, headers=headers)

    def page(self, path: str) -> dict[str, object] | None:
        if path == "/lab/.well-known/openid-configuration":
            return {"issuer": self.url, "jwks_uri": self.elsewhere or f"{self.url}/keys"}
        if path != "/lab/keys":
            return None
        self.asked += 1
        found = []
        for kid, key in self.keys.items():
            is_rsa = isinstance(key, rsa.RSAPrivateKey)
            algorithm = jwt.algorithms.RSAAlgorithm if is_rsa else jwt.algorithms.ECAlgorithm
            found.append({**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"})
        return {
            "keys": [*found, {"kty": "strange", "kid": "x"}, {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}]
        }


@contextmanager
def run_issuer(folder: Path) -> Iterator[Issuer]:
    certificate, key = make_certificate(folder, "issuer")

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = issuer.page(self.path)
            text = json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    pages.socket = context.wrap_socket(pages.socket, server_side=True)
    issuer = Issuer(f"https://127.0.0.1:{pages.server_port}/lab", certificate)
    issuer.keys = {
        "a": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "b": ec.generate_private_key(ec.SECP256R1()),
    }
    thread = threading.Thread(target=pages.serve_forever)
    thread.start()
    try:
        yield issuer
    finally:
        pages.shutdown()
        thread.join()
        pages.server_close()


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with run_issuer(tmp_path_factory.mktemp("issuer")) as running:
        yield running


@pytest.fixture
def voucher(issuer: Issuer) -> TokenIssuer:
    return TokenIssuer(IssuerPolicy(issuer.url, "dpsql", ca=issuer.certificate))


def test_a_token_says_who_bears_it(issuer: Issuer, voucher: TokenIssuer) -> None:
    for token in (issuer.token(), issuer.token(kid="b", algorithm="ES256"), issuer.token(aud=["x", "dpsql"])):
        found = voucher.identify("", token)
        assert found.name == "s-1"
        assert found.analyst == f"s-1@{issuer.url.removeprefix('https://')}"
    assert voucher.identify("", issuer.token(groups=["g", 3, "h"])).groups == {"g", "h"}
    assert voucher.identify("", issuer.token(groups="g")).groups == frozenset()


def test_a_name_that_is_longer_there(issuer: Issuer) -> None:
    names = NamePattern("s-")
    voucher = TokenIssuer(IssuerPolicy(issuer.url, "dpsql", ca=issuer.certificate, names=names))
    found = voucher.identify("", issuer.token())
    assert (found.name, found.short) == ("s-1", "1")
    assert found.analyst == f"1@{issuer.url.removeprefix('https://')}"
    other = voucher.identify("", issuer.token(sub="1"))
    assert (other.name, other.short, other.analyst) == ("1", None, None)


MINE = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.mark.parametrize(
    "forged",
    [
        lambda issuer: issuer.token(key=MINE),
        lambda issuer: issuer.token(kid="b", key=MINE),
        lambda issuer: issuer.token(kid="unknown", key=MINE),
        lambda issuer: issuer.token(kid=None, key=MINE),
        lambda issuer: issuer.token(algorithm="RS512"),  # the key is for another
        lambda issuer: issuer.token(kid="shared", algorithm="HS256", key=b"secret" * 8),
        lambda issuer: issuer.token(algorithm="HS256", key=b"its public key, say, as a secret of both"),
        lambda issuer: jwt.encode(issuer.claims(), None, "none"),
        lambda issuer: issuer.token(iss="https://other.example"),
        lambda issuer: issuer.token(iss=issuer.url + "/"),
        lambda issuer: issuer.token(iss=None),
        lambda issuer: issuer.token(aud="another"),
        lambda issuer: issuer.token(aud=None),
        lambda issuer: issuer.token(exp=int(time.time()) - 60),
        lambda issuer: issuer.token(exp=None),
        lambda issuer: issuer.token(nbf=int(time.time()) + 600),
        lambda issuer: issuer.token(sub=None),
        lambda issuer: issuer.token(sub=17),
        lambda issuer: issuer.token()[:-4] + "AAAA",
        lambda issuer: "no token",
        lambda issuer: "",
        lambda issuer: ".".join(["e30"] * 3),
        lambda issuer: f"{DEEP}.e30.e30",
    ],
)
def test_no_other_token_does(issuer: Issuer, voucher: TokenIssuer, forged: Callable[[Issuer], str]) -> None:
    with pytest.raises(Unproved, match="token"):
        voucher.identify("s-1", forged(issuer))


def test_keys_are_read_again_where_one_is_new_and_not_at_every_guess(issuer: Issuer) -> None:
    now = 0.0
    voucher = TokenIssuer(IssuerPolicy(issuer.url, "dpsql", ca=issuer.certificate), lambda: now)
    voucher.identify("", issuer.token())
    before = issuer.asked
    for _ in range(20):
        with pytest.raises(Unproved):
            voucher.identify("", issuer.token(kid="unknown", key=MINE))
    assert issuer.asked == before
    issuer.keys["new"] = MINE
    now = 11.0
    assert voucher.identify("", issuer.token(kid="new")).name == "s-1"
    assert issuer.asked == before + 1
    del issuer.keys["new"]
    now = 700.0
    with pytest.raises(Unproved):
        voucher.identify("", issuer.token(kid="new", key=MINE))


def test_an_issuer_that_is_away_for_a_while_locks_nobody_out(issuer: Issuer) -> None:
    now = 0.0
    voucher = TokenIssuer(IssuerPolicy(issuer.url, "dpsql", ca=issuer.certificate), lambda: now)
    voucher.identify("", issuer.token())
    issuer.elsewhere = "https://127.0.0.1:1/keys"
    try:
        now = 20.0
        with pytest.raises(Unproved, match="issuer"):
            voucher.identify("", issuer.token(kid="unknown", key=MINE))
        assert voucher.identify("", issuer.token()).name == "s-1"
        now = 601.0
        with pytest.raises(Unproved, match="issuer"):
            voucher.identify("", issuer.token())
        now = 602.0
        with pytest.raises(Unproved, match="token"):
            voucher.identify("", issuer.token())
    finally:
        issuer.elsewhere = None
    now = 612.0
    assert voucher.identify("", issuer.token()).name == "s-1"


def test_a_server_without_the_library_says_so(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_dataset(tmp_path)
    auth = f'[server]\nauth = "oidc+{issuer.url}"\nauth_audience = "dpsql"\n'
    path.write_text(POLICY.split("[analysts.alice]")[0] + auth + DECLARED)
    monkeypatch.delitem(sys.modules, "dpsql.server.token_issuer", raising=False)
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(PolicyError, match="takes an optional part") as caught:
        open_voucher(load_policy(path))
    assert caught.value.hint == 'pip install "dpsql[oidc]"'


def test_keys_come_from_the_issuer_over_tls_alone(issuer: Issuer, tmp_path: Path) -> None:
    other, _ = make_certificate(tmp_path, "other")
    for policy in (
        IssuerPolicy(issuer.url, "dpsql"), IssuerPolicy(issuer.url, "dpsql", ca=other),
        IssuerPolicy("https://127.0.0.1:1", "dpsql", ca=issuer.certificate),
        IssuerPolicy(issuer.url + "/", "dpsql", ca=issuer.certificate),
    ):  # fmt: skip
        with pytest.raises(Unproved, match="issuer"):
            TokenIssuer(policy).identify("", issuer.token())
    issuer.elsewhere = issuer.url.replace("https", "http") + "/keys"
    try:
        with pytest.raises(Unproved, match="issuer"):
            TokenIssuer(IssuerPolicy(issuer.url, "dpsql", ca=issuer.certificate)).identify("", issuer.token())
    finally:
        issuer.elsewhere = None


# --- a whole server, and libpq --------------------------------------------------------------------------------

DECLARED = """
[analysts.alice]
epsilon = 500
identity = "s-1"
[analysts.bob]
epsilon = 5
identity = "s-2"
[groups.lab]
member_of = "lab"
epsilon = 2
[groups.visitors]
member_of = "visitors"
epsilon = 1
"""


class _Request(ctypes.Structure):
    """`PGoauthBearerRequest` of libpq-fe.h."""

    _fields_ = (
        ("openid_configuration", ctypes.c_char_p), ("scope", ctypes.c_char_p), ("wait", ctypes.c_void_p),
        ("cleanup", ctypes.c_void_p), ("token", ctypes.c_char_p), ("user", ctypes.c_void_p),
    )  # fmt: skip


_HOOK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def libpq() -> ctypes.CDLL | None:
    """Return the library in which psycopg's own libpq is, where it can send tokens."""
    import psycopg.pq

    if psycopg.pq.version() < 180000:
        return None
    loaded = Path("/proc/self/maps").read_text().split()
    found = next((path for path in loaded if "/libpq" in path), None)
    library = None if found is None else ctypes.CDLL(found)
    return library if hasattr(library, "PQsetAuthDataHook") else None


needs_libpq = pytest.mark.skipif(libpq() is None, reason="libpq 18 is not loaded")


@dataclass
class Told:
    """What libpq was told of where to get a token."""

    token: bytes
    discovery: bytes | None = None
    scope: bytes | None = None


@contextmanager
def bearing(token: str) -> Iterator[Told]:
    """Have libpq ask us for a token."""
    told, library = Told(token.encode()), libpq()
    assert library is not None

    @_HOOK
    def hook(kind: int, _: object, data: int) -> int:
        if kind != 1:  # PQAUTHDATA_OAUTH_BEARER_TOKEN
            return 0
        request = _Request.from_address(data)
        told.discovery, told.scope = request.openid_configuration, request.scope
        request.token = told.token
        return 1

    library.PQsetAuthDataHook(hook)
    try:
        yield told
    finally:
        library.PQsetAuthDataHook(None)


@pytest.fixture(scope="module")
def server(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("borne")
    path = make_dataset(folder)
    auth = (
        f'[server]\nauth = "oidc+{issuer.url}"\nauth_audience = "dpsql"\nauth_ca = "{issuer.certificate}"\n'
        'auth_scope = "openid groups"\n'
    )
    path.write_text(POLICY.split("[analysts.alice]")[0] + auth + DECLARED)
    certificate, key = make_certificate(folder, "server")
    with run_server(path, "--certificate", str(certificate), "--key", str(key)) as served:
        yield served


@contextmanager
def login(
    server: Served, issuer: Issuer, user: str, token: str
) -> Iterator[tuple[psycopg.Connection[Any], Told]]:
    with bearing(token) as told, closing(server.connect(
        user=user, sslmode="require", oauth_issuer=issuer.url, oauth_client_id="psql", password=None,
    )) as connection:  # fmt: skip
        yield connection, told


@needs_libpq
def test_libpq_asks_where_to_get_a_token_and_is_let_in(server: Served, issuer: Issuer) -> None:
    with login(server, issuer, "alice", issuer.token()) as (connection, told):
        assert connection.execute("SELECT current_user").fetchall() == [("alice",)]
        assert left(connection) == "500"
        assert connection.execute(COUNT).fetchall()[0][0] > 1000
    assert told.discovery == f"{issuer.url}/.well-known/openid-configuration".encode()
    assert told.scope == b"openid groups"
    with login(server, issuer, "s-1", issuer.token(email="bob@x", name="bob")) as (connection, _):
        assert left(connection) == "499.9"


@needs_libpq
@pytest.mark.parametrize(
    ("user", "claims"),
    [
        ("bob", {}),  # another's name
        ("alice", {"sub": "s-2"}),
        ("bob", {"sub": "s-2", "aud": "another"}),
        ("bob", {"sub": "s-2", "exp": 1}),
        ("bob", {"sub": "bob"}),  # an analyst's name is nobody's identity
        ("s-9", {"sub": "s-9"}),  # of no group
        ("s-9", {"sub": "s-9", "groups": ["LAB", "labs"]}),
        ("alice", {"sub": "s-9", "email": "alice", "preferred_username": "alice"}),
    ],
)
def test_nobody_else_is(server: Served, issuer: Issuer, user: str, claims: dict[str, object]) -> None:
    with (
        pytest.raises(psycopg.OperationalError, match="the login failed"),
        login(server, issuer, user, issuer.token(**claims)),  # type: ignore[arg-type]  # claims alone
    ):
        pass


@needs_libpq
def test_a_member_keeps_what_was_spent_as_groups_change(server: Served, issuer: Issuer) -> None:
    own = f"s-7@{issuer.url.removeprefix('https://')}"
    with login(server, issuer, "s-7", issuer.token(sub="s-7", groups=["lab"])) as (connection, _):
        assert connection.execute("SELECT current_user").fetchall() == [(own,)]
        connection.execute(f"{COUNT} WHERE age > 7")
        assert left(connection) == "1.9"
    with login(server, issuer, own, issuer.token(sub="s-7", groups=["visitors"])) as (connection, _):
        assert left(connection) == "0.9"
    with login(server, issuer, "s-8", issuer.token(sub="s-8", groups=["visitors", "lab"])) as (connection, _):
        assert left(connection) == "2"  # the policy's first


@needs_libpq
def test_without_tls_no_token_is_asked_for(server: Served, issuer: Issuer) -> None:
    with (
        bearing(issuer.token()) as told,
        pytest.raises(psycopg.OperationalError, match="connections must be encrypted here"),
    ):
        server.connect(user="alice", oauth_issuer=issuer.url, oauth_client_id="psql", password=None)
    assert told.discovery is None
