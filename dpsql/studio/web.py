"""The studio behind `dpsql serve --web`: analysts log in with their own passwords, each to what is theirs.

House rules:

1. A password is proved as over the wire: by the same verifiers, in the same turns, with the same delays
   (`Server.proved`). Beyond this machine all of it is over TLS.
2. Nobody is an owner here: of the endpoints, those of analysts alone are reached.
3. A statement is answered as a connection's is: under the owner's limits, in turns, and what fails is told on the grid
   alone (soundness.md 3.6). While somebody types nothing of that is touched.
4. Who is not in holds nobody up: so many connections, half of them of one address; the oldest silent one gives way.
5. A seat ends with what ends a connection: the policy says something else to its analyst, the tables have changed, or
   nothing was heard for long.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from ..engine.answer import Answer
from ..engine.dataset import SchemaChanged
from ..engine.session import Session
from ..engine.settings import decimal_text
from ..errors import DpsqlError
from ..server import CannotListen, Server
from ..server.channel import Encryption, is_loopback
from ..server.database import Database
from ..server.listener import network_of
from ..server.report import log
from ..server.state import release_time
from .desk import Body, Desk, Seat
from .server import Handler, PageServer

_SECONDS = 20.0
"""How long a connection may be silent, or take for its handshake."""
_MOST_OF_ANALYST = 4
"""Seats of one analyst: the one that was used least lately gives way to another."""
_MOST_CONNECTIONS = 256
_MOST_OF_ONE = 32
"""Connections of one analyst."""
_COOKIE = "dpsql_studio_web"


class WebDesk(Desk):
    """A desk on what a server serves."""

    def __init__(self, database: Database, name: str) -> None:
        self.database, self._sessions = database, database.sessions
        policy = database.policy.server
        self._grid = release_time if policy.has_grid else None
        self._longest = release_time(0.0, policy.statement_seconds)
        self._cancelled_at: float | None = None
        self._open = list[Session]()
        try:
            super().__init__(database.sessions.dataset, name, keeps=1)
        except BaseException:
            self._let_go()
            raise
        self.dataset = self.asking.dataset
        self.asking.release_time = self._grid

    @property
    def is_current(self) -> bool:
        """Whether it may go on."""
        return self._sessions.is_current(self.asking)

    def _opened(self, kind: type[Session]) -> Session:
        self._open.append(self._sessions.open(self.name, kind))
        return self._open[-1]

    def _let_go(self) -> None:
        while self._open:
            self._sessions.close(self._open.pop())

    def _answer(self, sql: str) -> Answer:
        start, self._cancelled_at = time.monotonic(), None
        self._sessions.used()
        timer = threading.Timer(self._longest, self._expire)
        timer.daemon = True
        timer.start()
        try:
            with self.asking.ahead(len(sql)):
                answer = self.asking.execute(sql)
        except Exception as error:
            if isinstance(error, SchemaChanged):
                self._sessions.retire(self.asking)
            self._wait(start)
            if isinstance(error, DpsqlError):
                self.database.tally.refuse(error.sqlstate, self.name, 0)
            raise
        finally:
            timer.cancel()
        seconds, receipt = time.monotonic() - start, answer.receipt
        outcome = "public" if receipt is None else "charged" if receipt.epsilon else "stored"
        self.database.tally.answer(outcome, seconds)  # type: ignore[arg-type]  # one of its words
        if receipt is not None:
            log(
                "answered", analyst=self.name, epsilon=decimal_text(receipt.epsilon),
                left=decimal_text(receipt.left), ms=round(1000 * seconds), process=0,
            )  # fmt: skip
        return answer

    def _wait(self, start: float) -> None:
        """Wait for the grid's next moment; a cancel begins a grid of its own."""
        if self._grid is not None:
            due = self._grid(self._cancelled_at or start, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))

    def _expire(self) -> None:
        self._cancelled_at = self._cancelled_at or time.monotonic()
        self.asking.expire()

    def cancel(self) -> None:
        """Stop the running statement; what it has charged stays spent."""
        self._cancelled_at = self._cancelled_at or time.monotonic()
        self.asking.cancel()


@dataclass(eq=False)
class _Member:
    desk: WebDesk
    key: str
    used: float = field(default_factory=time.monotonic)


class WebDoor:
    """Lets analysts in by their passwords; each has a cookie and a key."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, port: int, *, is_local: bool) -> None:
        self._server, self._loop, self._port = server, loop, port
        self._is_local = is_local
        self.scheme = "http" if is_local and server.encryption is None else "https"
        self._lock = threading.Lock()
        self._members: dict[bytes, _Member] = {}

    def is_host(self, host: str | None) -> bool:
        """Say whether a request's host is this server: beyond the loopback any, which has to have its certificate."""
        names = [f"{name}:{self._port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        return not self._is_local or host in names

    def open(self, token: str) -> tuple[str, str] | None:
        """There are no links here."""
        return None

    def login(self, caller: _Caller, body: Body) -> tuple[dict[str, object], str] | None:
        """Return the key of a new seat and its cookie; None: the login failed. Waits as a login over the wire does."""
        user, password, written = body.text("user"), body.text("password"), body.text("database", "")
        database = written or self._usual(user)
        proving = self._server.proved(caller.peer, user, database, password)
        found = caller.wait(asyncio.run_coroutine_threadsafe(proving, self._loop))
        if found is None:
            return None
        try:
            member = _Member(WebDesk(found, user), secrets.token_urlsafe(32))
        except DpsqlError:
            return None
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            gone = self._crowded(member)
            self._members[_digest(cookie)] = member
        for one in gone:
            one.desk.close()
        log("studio login", analyst=user, peer=caller.peer, database=found.name)
        secure = "; Secure" if self.scheme == "https" else ""
        return {"key": member.key}, f"{self._name}={cookie}; Path=/; HttpOnly; SameSite=Strict{secure}"

    def logout(self, cookies: str) -> str:
        """End a seat; return the cookie that takes its own away."""
        with self._lock:
            found = self._members.pop(_digest(self._value(cookies)), None)
        if found is not None:
            found.desk.close()
        return f"{self._name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"

    def seat(self, cookies: str) -> Seat | None:
        """Return whose seat a request's cookies are; None: nobody's, or nobody's any more."""
        found = self._members.get(_digest(self._value(cookies)))
        if found is None or self._server.stopping.is_set() or not found.desk.is_current:
            return None
        return Seat(found.desk, is_owner=False)

    def asks(self, cookies: str, key: str) -> Seat | None:
        """Return whose seat asks something: it has brought the key as well."""
        found, seat = self._members.get(_digest(self._value(cookies))), self.seat(cookies)
        if (
            found is None
            or seat is None
            or not hmac.compare_digest(key.encode(errors="replace"), found.key.encode())
        ):
            return None
        found.used = time.monotonic()
        return seat

    def tidy(self) -> None:
        """End seats of which nothing was heard for long, or that may not go on."""
        until = time.monotonic() - self._server.options.idle_seconds
        with self._lock:
            gone = [
                name for name, one in self._members.items() if one.used < until or not one.desk.is_current
            ]
            ended = [self._members.pop(name) for name in gone]
        for one in ended:  # what runs there is stopped, for which nobody here waits
            threading.Thread(target=one.desk.close, name="dpsql-web-end", daemon=True).start()

    def close(self) -> None:
        """End all seats; statements that run are stopped."""
        with self._lock:
            ended, self._members = [*self._members.values()], {}
        for one in ended:
            one.desk.close()

    def _crowded(self, new: _Member) -> list[_Member]:
        """Take out seats so that there is room for one more of its analyst, and in all; return them."""
        whose = new.desk.name, new.desk.database
        own = [name for name, one in self._members.items() if (one.desk.name, one.desk.database) == whose]
        gone = self._take(own, _MOST_OF_ANALYST)
        return gone + self._take([*self._members], self._server.options.max_connections)

    def _take(self, names: list[bytes], most: int) -> list[_Member]:
        """Take out those that were used least lately, so that there is one fewer than the most."""
        names.sort(key=lambda name: self._members[name].used)
        return [self._members.pop(name) for name in names[: max(0, len(names) + 1 - most)]]

    def _usual(self, user: str) -> str:
        """Return the name of the database that a user means who names none."""
        places = self._server.logins.places_of(user)
        return self._server.databases[places[0] if places else 0].name

    def _value(self, cookies: str) -> str:
        try:
            found = SimpleCookie(cookies).get(self._name)
        except CookieError:
            return ""
        return "" if found is None else found.value

    @property
    def _name(self) -> str:
        """The cookie's name: a browser has the cookies of all ports together, and keeps this prefix for one host."""
        return f"__Host-{_COOKIE}_{self._port}" if self.scheme == "https" else f"{_COOKIE}_{self._port}"


def _digest(cookie: str) -> bytes:
    """Return what a cookie is known by: to look it up tells nothing of the others."""
    return hashlib.sha256(cookie.encode(errors="replace")).digest()


@dataclass(eq=False)
class _Caller:
    """A connection; `connection`: what is read, of TLS where that is spoken; `desk`: of who is in."""

    peer: str
    connection: socket.socket
    desk: Desk | None = None
    has_given_way: bool = False
    proving: Future[Database | None] | None = None

    @property
    def network(self) -> str:
        return network_of(self.peer)

    @property
    def is_in(self) -> bool:
        return self.desk is not None

    def wait(self, proving: Future[Database | None]) -> Database | None:
        """Return what a login comes to; None where it has failed, or this has given way, for which nothing waits on."""
        self.proving = proving
        if self.has_given_way:
            proving.cancel()
        with suppress(CancelledError):
            return proving.result()
        return None

    def give_way(self) -> None:
        """End it: its thread too, whatever that waits for."""
        self.has_given_way = True
        if self.proving is not None:
            self.proving.cancel()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class WebServer(PageServer):
    """Serves the studio to who logs in, on an address of its own. Raises OSError: it cannot be had."""

    stranger = "login.html"
    shown = frozenset({"login.js", "studio.css", "icon.svg"})
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.address_family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        super().__init__(address, WebHandler)
        self._encryption: Callable[[], Encryption | None] = lambda: server.encryption
        self._callers: dict[int, _Caller] = {}
        self._lock = threading.Lock()
        self.door: WebDoor = WebDoor(server, loop, self.server_port, is_local=is_loopback(address[0]))

    def act(
        self, connection: socket.socket, name: str, cookies: str, body: Body
    ) -> tuple[dict[str, object], str] | None:
        """Return what is replied to a stranger's post."""
        if name == "logout":
            return {}, self.door.logout(cookies)
        caller = self._caller(connection)
        return None if name != "login" or caller is None else self.door.login(caller, body)

    def service_actions(self) -> None:
        """Do what is done now and then."""
        self.door.tidy()

    def process_request(self, request: object, client_address: object) -> None:
        """Begin a thread for a connection, if there is room for it."""
        assert isinstance(request, socket.socket)
        assert isinstance(client_address, tuple)
        caller = _Caller(str(client_address[0]), request)
        with self._lock:
            has_room = self._make_room(caller)
            if has_room:
                self._callers[id(request)] = caller
        if has_room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Answer one connection, and give its place back."""
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            with self._lock:
                self._callers.pop(id(request), None)

    def finish_request(self, request: object, client_address: object) -> None:
        """Answer a connection, over TLS where the server has a certificate; a handshake holds up nobody else."""
        assert isinstance(request, socket.socket)
        encryption, caller = self._encryption(), self._callers[id(request)]
        request.settimeout(_SECONDS)
        if encryption is None:
            super().finish_request(request, client_address)
            return
        with encryption.context.wrap_socket(
            request, server_side=True, do_handshake_on_connect=False
        ) as spoken:
            caller.connection = spoken
            spoken.do_handshake()
            super().finish_request(spoken, client_address)

    def let_in(self, connection: socket.socket, seat: Seat) -> bool:
        """Take note that a connection is of somebody who is in; False where they have too many at once."""
        with self._lock:
            own = self._caller(connection)
            if own is None:
                return False
            own.desk = seat.desk
            known = [one.desk for one in self._callers.values() if one.desk is not None]
            return (
                sum((one.name, one.dataset) == (seat.desk.name, seat.desk.dataset) for one in known)
                <= _MOST_OF_ONE
            )

    def _caller(self, connection: socket.socket) -> _Caller | None:
        """Return whose a connection is; None: it has given way."""
        return next((one for one in [*self._callers.values()] if one.connection is connection), None)

    def _make_room(self, new: _Caller) -> bool:
        """Return whether there is room for a connection, once the oldest of who is not in has given way to it."""
        own = [one for one in self._callers.values() if one.network == new.network]
        crowd = own if 2 * len(own) >= _MOST_CONNECTIONS else [*self._callers.values()]
        if len(self._callers) < _MOST_CONNECTIONS and crowd is not own:
            return True
        victim = next((one for one in crowd if not one.is_in), None)
        if victim is None:
            return False
        victim.give_way()
        self._callers = {name: one for name, one in self._callers.items() if one is not victim}
        return True

    def tell(self, line: str) -> None:
        """Tell whoever runs it."""
        log("bug", place=line)


class WebHandler(Handler):
    """One connection of somebody who may be anybody."""

    timeout = int(_SECONDS)


@contextmanager
def web_door(
    address: tuple[str, int], server: Server, loop: asyncio.AbstractEventLoop, told: Callable[[str], None]
) -> Iterator[WebServer]:
    """Serve the studio within the block, from threads of its own. Raises CannotListen.

    `told`: is called with its address.
    """
    try:
        web = WebServer(address, server, loop)
    except OSError as error:
        raise CannotListen(*address, error) from None
    thread = threading.Thread(target=web.serve_forever, name="dpsql-web", daemon=True)
    thread.start()
    log("studio", host=address[0], port=web.server_port, encrypted=web.door.scheme == "https")
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    told(f"{web.door.scheme}://{host}:{web.server_port}/")
    try:
        yield web
    finally:
        web.shutdown()
        web.server_close()
        web.door.close()
        thread.join()
