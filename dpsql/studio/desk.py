"""An analyst's desk: a session that asks, and one that only plans while the analyst types.

House rules:

1. One planning at a time, and the last text wins: a newer one stops what is planned, and those between are dropped.
2. The session that plans cannot read a row: where it would open the owner's database, it says so instead.

House rules of who is asking, by a one-time token and then a cookie:

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
import itertools
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from typing import Any, NoReturn, TypeVar

from ..dbapi.connection import Schema
from ..engine.answer import Answer
from ..engine.dataset import Dataset, LazySnapshot
from ..engine.session import Session
from ..engine.settings import Settings
from ..errors import DpsqlError, EngineFailure
from ..records import dataclass
from ..sql.text import ScriptStatement, split_statements

# --- an analyst's desk ------------------------------------------------------------------------------------


_T = TypeVar("_T")
_MOST_ASKED = 50
USUAL_LEVEL = Fraction(19, 20)
"""The level of the bars that every answer has here."""


class Unread(Exception):
    """A price depends on public rows, and nothing is read while somebody types."""


class Overtaken(Exception):
    """A newer text came: nobody waits for this one."""


class TypingSession(Session):
    """A session for prices: it raises Unread where another would open the owner's database."""

    @contextmanager
    def snapshot(self) -> Iterator[LazySnapshot]:
        def refuse() -> NoReturn:
            raise Unread

        yield LazySnapshot(refuse, self._cancelled)

    def cancel(self) -> None:
        """Stop what is planned. Nothing else runs here."""
        self._cancelled.set()


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement that was answered here: its number at this desk, its text, when (UTC), and the answer."""

    number: int
    sql: str
    at: str
    answer: Answer


class Desk:
    """One analyst's place at a dataset that others may use too. Any thread may call it.

    `name`: the analyst's, as the ledger has it. `began`: when it was set up.
    """

    def __init__(self, dataset: Dataset, name: str, keeps: int = _MOST_ASKED) -> None:
        """`keeps`: answers that can be seen again."""
        self.dataset, self.name = dataset, name
        self.asking = self._opened(Session)
        self.settings = self.asking.settings.with_usual_bars(USUAL_LEVEL)
        """What the analyst has set."""
        self._typing = self._opened(TypingSession)
        self._asked: deque[Asked] = deque(maxlen=keeps)
        self._numbers, self.began = itertools.count(1), datetime.now(UTC).replace(microsecond=0)
        self._arrivals, self._newest = itertools.count(1), 0
        self._planning, self._running = threading.Lock(), threading.Lock()

    def _opened(self, kind: type[Session]) -> Session:
        """Return a session of this desk's."""
        return kind(self.dataset, self.name, is_shared=True)

    @cached_property
    def _schema(self) -> Schema:
        """What answers SHOW TABLES and DESCRIBE."""
        return Schema(self.asking)

    def _answer(self, sql: str) -> Answer:
        """Answer a statement. Raises DpsqlError."""
        try:
            of_schema = self._schema.answer(sql, ())
            return self.asking.execute(sql) if of_schema is None else of_schema
        finally:
            self.dataset.backend.close_idle()  # while somebody thinks, whoever loads data may

    def _let_go(self) -> None:
        """Close what was opened."""
        self._schema.close()
        self.asking.close()
        self._typing.close()

    def close(self) -> None:
        """Let both sessions go; a statement that runs is stopped, and what it has charged stays spent."""
        while not self._running.acquire(timeout=0.1):
            self.cancel()
        self._running.release()
        self._typing.cancel()
        with self._running, self._planning:
            self._let_go()

    def plan(self, call: Callable[[Session], _T], settings: Settings) -> _T:
        """Return what is planned for the newest text. Raises Overtaken: it is not this one; Unread; DpsqlError."""
        mine = self._newest = next(self._arrivals)
        self._typing.cancel()
        with self._planning:
            if mine != self._newest:
                raise Overtaken
            bars = settings.intervals if settings.draws_ends else None  # usual ones change nothing drawn
            self._typing.settings = replace(settings, intervals=bars)
            try:
                return call(self._typing)
            except EngineFailure as failure:
                if failure.sqlstate == "57014" and mine != self._newest:
                    raise Overtaken from None
                raise

    def look(self, call: Callable[[Session], _T]) -> _T:
        """Return what is asked of the session that plans, in its turn. Raises what the call raises."""
        with self._planning:
            return call(self._typing)

    def under(self, **values: str) -> Settings:
        """Return the settings with some of the page's own controls. Raises Refusal: a value is none."""
        settings = self.settings
        for name, value in values.items():
            settings = settings.set(f"dpsql.{name}", value, self.dataset.policy)
        return settings

    def run(self, sql: str, settings: Settings | None) -> Asked:
        """Answer a statement, one at a time. `settings`: for it alone; None: it sets what holds from here on.

        Raises DpsqlError.
        """
        with self._running:
            self.asking.settings = settings or self.settings
            asked = Asked(next(self._numbers), sql, _now(), self._answer(sql))
            self._asked.append(asked)
            if settings is None:
                self.settings = self.asking.settings
            return asked

    def asked(self, number: int) -> Asked | None:
        """Return an answer that is kept here; None where it is not, or no more."""
        return next((one for one in self.all_asked() if one.number == number), None)

    def all_asked(self) -> list[Asked]:
        """Return the answers that are kept, the newest first."""
        return [*reversed(self._asked.copy())]

    def cancel(self) -> None:
        """Stop the running statement; what it has charged stays spent."""
        self.asking.cancel()
        self._schema.interrupt()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- who is asking ----------------------------------------------------------------------------------------


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
