"""Who is asking: the link's one-time token, then a cookie; and whether a request comes from this page.

House rules:

1. A request names this server as its host, so that no page of elsewhere reaches it under a name of its own (DNS
   rebinding). What changes or asks anything is a POST of JSON whose Origin is this server: no other page sends one.
2. The link's token opens once and becomes a cookie, which no script sees and no other site sends. Both are compared in
   constant time.
3. A browser sends the cookies of a host to all of its ports, and another user of this machine may listen on one of
   them. So a cookie alone shows the empty page: what is asked brings a key, too, which comes in the fragment of an
   address, is kept by the browser for this port alone, and is sent to no server but this one.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from dataclasses import replace
from http.cookies import CookieError, SimpleCookie

from ..records import dataclass
from .desk import Desk

__all__ = ["LoopbackDoor", "Seat"]


@dataclass(frozen=True, slots=True)
class Seat:
    """Who asks: an analyst's desk; `is_owner`: whether whoever sits there has the policy file in hand.

    `desks`: all that they may go to, each of another policy; () where there is this one alone.
    """

    desk: Desk
    is_owner: bool
    desks: tuple[Desk, ...] = ()

    def at(self, number: str) -> Seat | None:
        """Return the seat at the desk of a number, "0" the first; None: there is none such."""
        desks = self.desks or (self.desk,)
        wanted = [desk for place, desk in enumerate(desks) if str(place) == number]
        return replace(self, desk=wanted[0]) if wanted else None


class LoopbackDoor:
    """The door of this machine: one seat, the owner's, for whoever has the link."""

    scheme = "http"

    def __init__(self, seat: Seat, port: int) -> None:
        self._seat, self._port = seat, port
        self._token, self._session, self._key = (secrets.token_urlsafe(32) for _ in range(3))
        self._lock, self._is_used = threading.Lock(), False

    @property
    def link(self) -> str:
        """The address with the token."""
        return f"http://127.0.0.1:{self._port}/?token={self._token}"

    def is_host(self, host: str | None) -> bool:
        """Say whether a request's host is this server."""
        return host in (f"127.0.0.1:{self._port}", f"localhost:{self._port}")

    def open(self, token: str) -> tuple[str, str] | None:
        """Return the cookie for a token, and where the page goes on; None: it is none, or was used."""
        with self._lock:
            if self._is_used or not _same(token, self._token):
                return None
            self._is_used = True
        return f"{self._name}={self._session}; Path=/; HttpOnly; SameSite=Strict", f"/#key={self._key}"

    def seat(self, cookies: str) -> Seat | None:
        """Return whose seat a request's cookies are; None: nobody's."""
        try:
            found = SimpleCookie(cookies).get(self._name)
        except CookieError:
            return None
        return self._seat if found is not None and _same(found.value, self._session) else None

    def asks(self, cookies: str, key: str) -> Seat | None:
        """Return whose seat asks something: it has brought the key as well."""
        seat = self.seat(cookies)
        return seat if seat is not None and _same(key, self._key) else None

    @property
    def _name(self) -> str:
        """The cookie's name: a browser has the cookies of all ports together."""
        return f"dpsql_studio_{self._port}"


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())
