"""How a client proves who it is: SCRAM-SHA-256, its PLUS (RFC 5802, RFC 7677), over stored verifiers; OAUTHBEARER.

House rules:

1. A password is never stored, and never needed here but to make a verifier.
2. A user that does not exist has a verifier too (`mock_verifier`), and goes through the same steps: nothing that
   is sent, and no step that is taken, tells whether a user exists. Every refusal for what a client does not know is
   `AuthenticationFailed`.
3. Secrets are compared in constant time, and shown in no repr.
4. The user's name is the startup message's; the one in the dialogue is ignored (libpq sends none, JDBC `*`).

OAUTHBEARER (RFC 7628) is as libpq 18 speaks it, one message that holds a token. A client without a token asks where to
get one, and comes again. Whether a token is good is for the server to say: this module reads and writes the dialogue,
and keeps nothing of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass, field
from types import MappingProxyType

from .messages import AuthenticationFailed, RemoteProtocolError

# --- the channel binding `tls-server-end-point` (RFC 5929): a hash of the server's certificate --------------


_SEQUENCE, _OBJECT_IDENTIFIER, _CONTEXT_0 = 0x30, 0x06, 0xA0

_HASHES = MappingProxyType(
    {
        "1.2.840.113549.1.1.4": "sha256",  # MD5 with RSA: SHA-256 stands in, as the RFC says
        "1.2.840.113549.1.1.5": "sha256",  # SHA-1 with RSA: likewise
        "1.2.840.113549.1.1.11": "sha256",
        "1.2.840.113549.1.1.12": "sha384",
        "1.2.840.113549.1.1.13": "sha512",
        "1.2.840.113549.1.1.14": "sha224",
        "1.2.840.10045.4.1": "sha256",  # SHA-1 with ECDSA
        "1.2.840.10045.4.3.1": "sha224",
        "1.2.840.10045.4.3.2": "sha256",
        "1.2.840.10045.4.3.3": "sha384",
        "1.2.840.10045.4.3.4": "sha512",
        "2.16.840.1.101.3.4.2.1": "sha256",  # the hashes themselves, in the parameters of RSA-PSS
        "2.16.840.1.101.3.4.2.2": "sha384",
        "2.16.840.1.101.3.4.2.3": "sha512",
        "2.16.840.1.101.3.4.2.4": "sha224",
    }
)
_RSA_PSS = "1.2.840.113549.1.1.10"


def tls_server_end_point(certificate: bytes) -> bytes | None:
    """Return the binding of a certificate in DER (`ssl.PEM_cert_to_DER_cert`).

    None where the certificate's signature has no hash of its own (Ed25519) or one that is not known: then no
    channel binding can be offered. Raises ValueError: these are not the bytes of a certificate.
    """
    try:
        return _binding(certificate)
    except IndexError:
        raise ValueError("the certificate ends too early") from None


def _binding(certificate: bytes) -> bytes | None:
    whole, _ = _read(certificate, _SEQUENCE)
    _, rest = _read(whole, _SEQUENCE)
    algorithm, _ = _read(rest, _SEQUENCE)
    identifier, parameters = _read(algorithm, _OBJECT_IDENTIFIER)
    name = _dotted(identifier)
    hash_name = _hash_of_pss(parameters) if name == _RSA_PSS else _HASHES.get(name)
    return None if hash_name is None else hashlib.new(hash_name, certificate).digest()


def _hash_of_pss(parameters: bytes) -> str | None:
    inside, _ = _read(parameters, _SEQUENCE)
    if not inside or inside[0] != _CONTEXT_0:
        return "sha256"  # the default is SHA-1, for which SHA-256 stands in
    algorithm, _ = _read(_read(inside, _CONTEXT_0)[0], _SEQUENCE)
    return _HASHES.get(_dotted(_read(algorithm, _OBJECT_IDENTIFIER)[0]))


def _read(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the contents of the DER element that `data` begins with, and what follows it."""
    if data[0] != tag:
        raise ValueError("not a certificate in DER")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    end = start + length
    if end > len(data):
        raise IndexError
    return data[start:end], data[end:]


def _dotted(identifier: bytes) -> str:
    """Return an object identifier as its numbers."""
    numbers = [0]
    for byte in identifier:
        numbers[-1] = numbers[-1] << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(0)
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:-1]]))


# --- SASLprep (RFC 4013), as Postgres applies it to passwords -----------------------------------------------


_PROHIBITED = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def saslprep(password: str) -> bytes:
    """Return the prepared password; as it is, where the profile does not allow it, as Postgres and libpq do.

    Raises ValueError: the password is empty, or holds a zero byte or half of a surrogate pair.
    """
    if not password or "\0" in password:
        raise ValueError("a password is neither empty nor holds a zero byte")
    return _prepared(password).encode()


def _prepared(password: str) -> str:
    mapped = "".join(
        [
            " " if stringprep.in_table_c12(character) else character
            for character in password
            if not stringprep.in_table_b1(character)
        ]
    )
    normal = unicodedata.normalize("NFKC", mapped)
    if not normal or any(is_prohibited(character) for character in normal for is_prohibited in _PROHIBITED):
        return password
    if any(map(stringprep.in_table_d1, normal)):
        ends_right_to_left = stringprep.in_table_d1(normal[0]) and stringprep.in_table_d1(normal[-1])
        if not ends_right_to_left or any(map(stringprep.in_table_d2, normal)):
            return password
    return normal


# --- SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, the server's side (RFC 5802, RFC 7677), over stored verifiers ----


SCRAM = "SCRAM-SHA-256"
SCRAM_PLUS = "SCRAM-SHA-256-PLUS"

_ITERATIONS = 4096
_MAX_ITERATIONS = 10_000_000
_SALT_BYTES = 16
_NONCE_BYTES = 18
_KEY_BYTES = 32
_VERIFIER = re.compile(r"SCRAM-SHA-256\$([1-9][0-9]{0,7}):([^$:]+)\$([^$:]+):([^$:]+)")
_NONCE = rb"[!-+\--~]+"
_FIRST = re.compile(
    rb"(?P<header>(?P<flag>n|y|p=[A-Za-z0-9.-]+),(?P<authzid>[^,]*),)"
    rb"(?P<bare>n=[^,]*,r=(?P<nonce>" + _NONCE + rb")(?:,[A-Za-z]=[^,]*)*)"
)
_FINAL = re.compile(
    rb"(?P<without_proof>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>" + _NONCE + rb")(?:,[A-Za-oq-z]=[^,]*)*)"
    rb",p=(?P<proof>[A-Za-z0-9+/=]+)"
)


@dataclass(frozen=True, slots=True)
class Verifier:
    """What is kept of a password. Its text is Postgres' own: `SCRAM-SHA-256$4096:salt$stored:server`."""

    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Verifier:
        """Return the verifier of a text. Raises ValueError, which does not quote it."""
        match = _VERIFIER.fullmatch(text)
        if match is None:
            raise ValueError("not a SCRAM-SHA-256 verifier")
        iterations = int(match[1])
        try:
            salt, stored, server = [base64.b64decode(part, validate=True) for part in match.groups()[1:]]
        except ValueError:
            raise ValueError("a SCRAM-SHA-256 verifier whose keys are not base64") from None
        if len(stored) != _KEY_BYTES or len(server) != _KEY_BYTES or not salt or iterations > _MAX_ITERATIONS:
            raise ValueError("a SCRAM-SHA-256 verifier of the wrong size")
        return cls(iterations, salt, stored, server)

    def fits(self, password: str) -> bool:
        """Say whether a password that was sent as it is, over TLS, is the one; takes as long for any."""
        try:
            made = make_verifier(password, iterations=self.iterations, salt=self.salt)
        except ValueError:
            made = make_verifier("no password", iterations=self.iterations, salt=self.salt)
            return hmac.compare_digest(made.stored_key, self.stored_key) and False
        return hmac.compare_digest(made.stored_key, self.stored_key)

    def text(self) -> str:
        """Return the text to store."""
        salt, stored, server = map(_base64, (self.salt, self.stored_key, self.server_key))
        return f"{SCRAM}${self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, *, iterations: int = _ITERATIONS, salt: bytes | None = None) -> Verifier:
    """Return a password's verifier, with a fresh salt unless one is given."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", saslprep(password), salt, iterations)
    stored = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    return Verifier(iterations, salt, stored, _hmac(salted, b"Server Key"))


def mock_verifier(secret: bytes, user: str, *, iterations: int = _ITERATIONS) -> Verifier:
    """Return the verifier of a user that does not exist: the same at every attempt, and no password fits it.

    Requires: `secret` is random, kept by the server for as long as its users are, and known to nobody; `iterations`
    is that of the real verifiers. Its keys are unguessable without `secret`, so a proof for it is too.
    """
    name = user.encode(errors="surrogatepass")
    salt, stored, server = [_hmac(secret, use + name) for use in (b"salt:", b"stored:", b"server:")]
    return Verifier(iterations, salt[:_SALT_BYTES], stored, server)


class ScramExchange:
    """One dialogue: `mechanisms` are offered, then `challenge`, then `confirm`."""

    def __init__(
        self, verifier: Verifier, *, certificate_hash: bytes | None = None, nonce: str | None = None
    ) -> None:
        """`certificate_hash`: of our certificate where the client speaks TLS to us (`tls_server_end_point`).

        `nonce`: our half of the nonce, fresh unless a test gives one.
        """
        self._verifier = verifier
        self._certificate_hash = certificate_hash
        self._own_nonce = nonce or _base64(secrets.token_bytes(_NONCE_BYTES))
        self._nonce = b""
        self._binding = b""
        self._first = b""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What to offer."""
        return (SCRAM,) if self._certificate_hash is None else (SCRAM_PLUS, SCRAM)

    def challenge(self, mechanism: str, client_first: bytes | None) -> bytes:
        """Return the answer to the client's first message.

        Raises RemoteProtocolError: the mechanism was not offered, or the message is not one of it (08P01), or the
        client was made to believe that we offer no channel binding (28000).
        """
        if mechanism not in self.mechanisms:
            raise RemoteProtocolError("The SASL mechanism chosen was not offered.")
        match = _FIRST.fullmatch(client_first or b"")
        if match is None:
            raise RemoteProtocolError("The first SCRAM message is malformed.")
        if match["authzid"]:
            raise RemoteProtocolError("A SCRAM authorization identity is not supported.", sqlstate="0A000")
        self._check_flag(mechanism, match["flag"])
        data = self._certificate_hash if mechanism == SCRAM_PLUS else None
        self._binding = base64.b64encode(match["header"] + (data or b""))
        self._nonce = match["nonce"] + self._own_nonce.encode()
        salt = base64.b64encode(self._verifier.salt)
        server_first = b"r=%b,s=%b,i=%d" % (self._nonce, salt, self._verifier.iterations)
        self._first = match["bare"] + b"," + server_first
        return server_first

    def confirm(self, client_final: bytes) -> bytes:
        """Return the server's proof for the client's.

        Raises AuthenticationFailed: the proof is not one of the password, or not of this channel. Raises
        RemoteProtocolError: the message is malformed, or not of this dialogue.
        """
        match = _FINAL.fullmatch(client_final)
        if match is None:
            raise RemoteProtocolError("The final SCRAM message is malformed.")
        if not hmac.compare_digest(match["nonce"], self._nonce):
            raise RemoteProtocolError("The final SCRAM message has another nonce.")
        try:
            proof = base64.b64decode(match["proof"], validate=True)
        except binascii.Error:
            proof = b""
        if len(proof) != _KEY_BYTES:
            raise RemoteProtocolError("The final SCRAM message's proof is malformed.")
        text = self._first + b"," + match["without_proof"]
        signature = _hmac(self._verifier.stored_key, text)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        is_bound = hmac.compare_digest(match["binding"], self._binding)
        is_proved = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key)
        if not (is_bound and is_proved):
            raise AuthenticationFailed
        return b"v=" + base64.b64encode(_hmac(self._verifier.server_key, text))

    def _check_flag(self, mechanism: str, flag: bytes) -> None:
        if mechanism == SCRAM_PLUS:
            if flag != b"p=tls-server-end-point":
                raise RemoteProtocolError("Only the channel binding tls-server-end-point is supported.")
        elif flag.startswith(b"p"):
            raise RemoteProtocolError("Channel binding was asked for without SCRAM-SHA-256-PLUS.")
        elif flag == b"y" and self._certificate_hash is not None:
            raise RemoteProtocolError(
                "The client was not told that channel binding is offered; somebody may sit between.",
                sqlstate="28000",
            )


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


OAUTHBEARER = "OAUTHBEARER"

_BEARER_FIRST = re.compile(
    rb"(?P<flag>n|y|p=[A-Za-z0-9.-]+),(?P<authzid>[^,\x01]*),\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)*)\x01"
)
_BEARER = re.compile(rb"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_DISMISSED = b"\x01"


class BearerExchange:
    """One dialogue: `mechanisms` are offered, then `token`; where it is none or no good, `challenge`, `dismiss`."""

    mechanisms = (OAUTHBEARER,)

    def __init__(self, issuer: str, scope: str) -> None:
        """`issuer`: the URL of who issues tokens; `scope`: what a client has to ask of it."""
        self._issuer, self._scope = issuer, scope

    def token(self, mechanism: str, client_first: bytes | None) -> str | None:
        """Return the token; None: the client has none, and asks where to get one.

        Raises RemoteProtocolError: the mechanism was not offered, or the message is not one of it.
        """
        if mechanism != OAUTHBEARER:
            raise RemoteProtocolError("The SASL mechanism chosen was not offered.")
        match = _BEARER_FIRST.fullmatch(client_first or b"")
        if match is None:
            raise RemoteProtocolError("The OAUTHBEARER message is malformed.")
        if match["flag"].startswith(b"p"):
            raise RemoteProtocolError("Channel binding is not part of OAUTHBEARER.")
        if match["authzid"]:
            raise RemoteProtocolError("An authorization identity is not supported.", sqlstate="0A000")
        pairs = [pair.partition(b"=") for pair in match["pairs"].split(b"\x01")[:-1]]
        given = [value for key, _, value in pairs if key == b"auth"]
        if len(given) != 1:
            raise RemoteProtocolError("The OAUTHBEARER message says auth not once.")
        if not given[0]:
            return None
        bearer = _BEARER.fullmatch(given[0])
        if bearer is None:
            raise RemoteProtocolError("The OAUTHBEARER message holds no bearer token.")
        return bearer[1].decode("ascii")

    def challenge(self) -> bytes:
        """Return the answer to no token, and to one that is no good: where to get one, and nothing of why."""
        known = {
            "status": "invalid_token",
            "openid-configuration": f"{self._issuer.rstrip('/')}/.well-known/openid-configuration",
            "scope": self._scope,
        }
        return json.dumps(known).encode()

    def dismiss(self, client_final: bytes) -> None:
        """Take the client's answer to a challenge, which has nothing to say. Raises RemoteProtocolError."""
        if client_final != _DISMISSED:
            raise RemoteProtocolError("The answer to an OAUTHBEARER challenge is malformed.")
