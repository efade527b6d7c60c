"""Who is asking, by a one-time token and then a cookie; whether a request comes from this page; and what it has sent.

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
from typing import Any

from ..errors import DpsqlError, EngineFailure
from ..records import dataclass
from ..sql.text import ScriptStatement, split_statements
from .desk import Desk


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


class BadRequest(Exception):
    """What was sent is not what the page sends."""


class Body:
    """An object of JSON."""

    def __init__(self, content: object) -> None:
        if not isinstance(content, dict):
            raise BadRequest
        self._content: dict[str, Any] = content

    def text(self, name: str, usual: str | None = None) -> str:
        """Return a text. Raises BadRequest."""
        found = self._content.get(name, usual)
        if not isinstance(found, str):
            raise BadRequest
        return found

    def number(self, name: str, usual: int | None = None) -> int:
        """Return a whole number, from 0 on. Raises BadRequest."""
        found = self._content.get(name, usual)
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise BadRequest
        return found

    def texts(self, name: str) -> list[str]:
        """Return texts. Raises BadRequest."""
        found = self._content.get(name)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise BadRequest
        return list(found)

    def controls(self) -> dict[str, str]:
        """Return what the page's own controls set, by the setting's name. Raises BadRequest."""
        found = self._content.get("controls", {})
        if not isinstance(found, dict) or not set(found) <= {"epsilon"}:
            raise BadRequest
        if not all(isinstance(value, str) for value in found.values()):
            raise BadRequest
        return {name: value for name, value in found.items() if value}


def statement_at(text: str, cursor: int) -> ScriptStatement | None:
    """Return the statement of a text in which a cursor stands, else the last before it; None where there is none."""
    pieces = split_statements(text)
    before = [piece for piece in pieces if piece.start <= cursor]
    return before[-1] if before else (pieces[0] if pieces else None)


def refusal(error: DpsqlError, piece: ScriptStatement | None, *, is_owner: bool) -> dict[str, Any]:
    """Return an error as the page shows it; its place is one in the whole text, in characters.

    `is_owner`: the hint is for who has the policy file in hand.
    """
    own = not isinstance(error, EngineFailure) and is_owner
    place = error.position
    offset = None if place is None or piece is None or place.offset > len(piece.text) else place.offset
    return {
        "code": error.sqlstate,
        "message": error.message,
        "hint": (error.owner_hint or error.hint) if own else error.hint,
        "cost": error.cost,
        "offset": None if offset is None or piece is None else piece.start + offset,
    }
