"""An issuer of tokens by OpenID Connect: whose bearer somebody is, by the issuer's own keys.

House rules:

1. A person is the issuer and `sub`, never an address or a name, which issuers give to others later.
2. Only signatures by a key pair count, of algorithms that are listed here; a token says which of the keys, not how.
3. Keys are fetched over TLS from where the issuer says, without following anybody elsewhere; an unknown key has them
   fetched again, but not more often than now and then.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import jwt
from jwt.algorithms import has_crypto

from ..policy.model import IssuerPolicy
from .identity import Identity, Unproved

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_CLAIMS = ("exp", "iss", "aud", "sub")
_LEEWAY_SECONDS = 30
_SECONDS = 5.0
_MOST_BYTES = 2**20
_KEPT_SECONDS = 600.0
_PAUSE_SECONDS = 10.0

if not has_crypto:
    raise ImportError("PyJWT checks no key pair without cryptography")


class TokenIssuer:
    """The issuer of a policy, with its keys as they were read last. Safe for threads."""

    def __init__(self, policy: IssuerPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises OSError: the certificate of `ca` cannot be read."""
        self.policy = policy
        self._context = ssl.create_default_context(cafile=None if policy.ca is None else str(policy.ca))
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._asked_at = self._read_at = -float("inf")

    def group(self, written: str) -> str:
        """Return a group's name as it is."""
        return written

    def identify(self, user: str, secret: str) -> Identity:
        """See `Voucher.identify`. `secret`: the token."""
        try:
            key = self._key(jwt.get_unverified_header(secret).get("kid"))
            claims = jwt.decode(
                secret, key, algorithms=[one for one in _ALGORITHMS if one == key.algorithm_name],
                audience=self.policy.audience, issuer=self.policy.url, leeway=_LEEWAY_SECONDS,
                options={"require": list(_CLAIMS)},
            )  # fmt: skip
        except (jwt.PyJWTError, RecursionError):  # the latter: of a header that is nested very deep
            raise Unproved("token") from None
        subject, groups = claims["sub"], claims.get(self.policy.groups)
        listed = [one for one in groups if isinstance(one, str)] if isinstance(groups, list) else []
        issuer = self.policy.url.removeprefix("https://").rstrip("/")
        short = self.policy.names.short(subject)
        return Identity(subject, None if short is None else f"{short}@{issuer}", frozenset(listed), short)

    def _key(self, wanted: object) -> jwt.PyJWK:
        """Return the key of this name; a token without one has the only key. Raises Unproved."""
        with self._lock:
            now = self._clock()
            is_old = now - self._read_at > _KEPT_SECONDS
            if (is_old or self._found(wanted) is None) and now - self._asked_at > _PAUSE_SECONDS:
                self._asked_at = now
                try:
                    self._keys, self._read_at = self._read(), now
                except (OSError, ValueError, RecursionError, http.client.HTTPException, jwt.PyJWTError):
                    if is_old:
                        self._keys = {}
                    raise Unproved("issuer") from None
            found = self._found(wanted)
        if found is None:
            raise Unproved("token")
        return found

    def _found(self, wanted: object) -> jwt.PyJWK | None:
        if wanted is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(wanted) if isinstance(wanted, str) else None

    def _read(self) -> dict[str | None, jwt.PyJWK]:
        """Return the issuer's keys by name, of the listed algorithms. Raises OSError, ValueError, HTTPException."""
        url = self.policy.url.rstrip("/")
        known = self._get(f"{url}/.well-known/openid-configuration")
        if known.get("issuer") != self.policy.url:
            raise ValueError("the issuer calls itself otherwise")
        keys: dict[str | None, jwt.PyJWK] = {}
        for one in self._get(str(known.get("jwks_uri"))).get("keys", ()):
            if one.get("use", "sig") != "sig" or one.get("kty") == "oct":
                continue
            with suppress(jwt.PyJWTError):  # of a kind that is not known here
                key = jwt.PyJWK(one)
                if key.algorithm_name in _ALGORITHMS:
                    keys[key.key_id] = key
        return keys

    def _get(self, url: str) -> dict[str, Any]:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise ValueError("not over TLS")
        connection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=_SECONDS, context=self._context
        )
        try:
            connection.request("GET", f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}")
            answer = connection.getresponse()
            text = answer.read(_MOST_BYTES + 1)
        finally:
            connection.close()
        if answer.status != http.client.OK or len(text) > _MOST_BYTES:
            raise ValueError("no such page, or a long one")
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("not an object")
        return found
