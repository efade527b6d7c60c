"""OAUTHBEARER, the server's side (RFC 7628), as libpq 18 speaks it: one message that holds a token.

A client without a token asks where to get one, and comes again. Whether a token is good is for the server to say: this
module reads and writes the dialogue, and keeps nothing of it.
"""

from __future__ import annotations

import json
import re

from .layout import RemoteProtocolError

__all__ = ["OAUTHBEARER", "BearerExchange"]

OAUTHBEARER = "OAUTHBEARER"

_FIRST = re.compile(
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
        match = _FIRST.fullmatch(client_first or b"")
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
