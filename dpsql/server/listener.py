"""The server as a whole: what connections share, how they are let in, and how it stops; and one client from its first
byte to its last (`Client`).

House rules for clients without a login:

1. A newcomer takes the place of the one that has been silent for longest at the same address, or at the address with
   the most of them. A right login takes a moment, so many silent connections hold nobody up, not even those who come
   from where they come from.
2. A delay depends on where an attempt comes from and when, never on why it failed: it tells nothing of who exists.
3. Only failures wait. A right login is late because of others where these are many of its own name and address.
4. Nothing is forgotten for a login that succeeds: one known password buys no guesses at another.
5. Memory is bounded, whatever number of addresses an attacker has; the count of all addresses together stays.
6. A proof is looked at when its turn comes, and a failure keeps its turn until it is told: who does not wait for the
   answer, and opens the next connection instead, guesses no faster.
7. A turn is asked for once the proof is there. Who says nothing takes nobody's.
8. A turn is in the order of asking, whatever the name is and whether it exists.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import math
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import pgwire
from ..cache import Cache
from ..errors import PolicyError
from ..policy import Policy
from ..policy.model import IssuerPolicy
from ..records import dataclass
from ..sql.text_process import TextProcess
from ..waits import Precedence
from .channel import Channel, Options, accepted, address_of, is_loopback, load_encryption, open_listeners
from .conversation import Conversation, Dispatcher
from .database import Database, Logins, Witness, places_by_name
from .identity import Identity, Unproved, Voucher, open_voucher
from .processes import OneOf, Place
from .report import ClientGone, Fault, Seldom, changed, log, place_of, removed, report, stopping, write_out
from .state import ClientSettings, ConnectionState
from .worker import Queries, Worker

if TYPE_CHECKING:
    from .database import Database


Proved = tuple[pgwire.ServerMessage, ...]

_LIMITS = pgwire.Limits(message=4 * 2**20)
"""No statement is longer than 256 KiB; its parameters may be."""
_LIMITS_OF_TOKENS = replace(_LIMITS, authentication=65_536)


class Client:
    """A connection; `server` is what it shares with the others."""

    def __init__(self, server: Server, channel: Channel, process_id: int) -> None:
        self._server, self._channel = server, channel
        self._limits = _LIMITS if server.voucher is None else _LIMITS_OF_TOKENS
        self._connection = pgwire.ProtocolConnection(self._limits)
        self._encryption = server.encryption
        self._is_encrypted = False
        self._reason: Fault | None = None
        self._worker: Worker | None = None
        self.process_id = process_id
        self.key = b""
        self.analyst: str | None = None
        self.database: Database | None = None
        """Of the analyst, once there is one."""
        self.peer = channel.peer
        self._idle_since: float | None = None
        """Since when a client that has logged in is waited for."""
        self._is_late = False
        self._looks: asyncio.TimerHandle | None = None
        self.is_idle = True
        """Whether it has proved nothing yet: it neither waits for its turn nor for the answer to a failed login."""

    async def run(self) -> None:
        """Serve the client until it leaves, breaks the protocol or has to go; raises nothing."""
        try:
            await self._serve()
        except ClientGone:
            pass
        except pgwire.RemoteProtocolError as error:
            await self._last(pgwire.last_message(error))
        except Exception as error:  # noqa: BLE001  # `report` tells a bug from an error, and the text of neither
            database = None if self.database is None else self.database.name
            await self._last(report(error, database=database, fatal=True))
        finally:
            if self._looks is not None:
                self._looks.cancel()
            try:
                await self._channel.close()
                if self._worker is not None:
                    await self._worker.close()
            except Exception as error:  # noqa: BLE001  # the owner is told, nobody else is there
                log("bug", place=place_of(error))
            if self.analyst is not None:
                log("disconnected", analyst=self.analyst, process=self.process_id)

    def cancel(self) -> None:
        """Stop the running statement, if there is one."""
        if self._worker is not None:
            self._worker.cancel()

    @property
    def is_current(self) -> bool:
        """Whether neither policy nor tables have changed since the session was opened."""
        if self._worker is None or self.database is None:
            return True
        return self.database.sessions.is_current(self._worker.session)

    def leave(self, reason: Fault) -> None:
        """End the conversation once the running statement is answered, with this for the client."""
        self._reason = reason
        self._channel.wake()

    def stop(self) -> None:
        """Hang up; the running statement is cancelled."""
        self._channel.abort()

    async def _serve(self) -> None:
        try:
            async with asyncio.timeout(self._server.options.authentication_seconds) as limit:
                startup = await self._greet()
                if startup is None:
                    return
                await self._authenticate(startup, limit)
        except TimeoutError:
            self._server.late.log(peer=self.peer)
            raise ClientGone from None
        conversation = await self._open(startup)
        self._look()
        while True:
            try:
                self._check()  # also when the client has sent more already
            except Fault:
                await conversation.outbox.flush()
                raise
            event = self._connection.next_event()
            if event is pgwire.Waiting.NEED_DATA:
                await conversation.outbox.flush()
                data = await self._receive()
                conversation.outbox.begin_turn()
                if self._reason is None and self.is_current and await conversation.repeat(data):
                    continue
                self._connection.receive_data(data)
            elif isinstance(event, (pgwire.Waiting, pgwire.Terminate)):
                return
            else:
                await conversation.answer(event)
                await conversation.outbox.take_turns()

    def _check(self) -> None:
        """Raise Fault if no statement may be begun any more: the server stops, or the policy has changed."""
        if self._reason is None and not self.is_current:
            self._reason = changed()
        if self._reason is not None:
            raise self._reason

    async def _receive(self) -> bytes:
        """Return more of what the client sends, or nothing. Raises Fault: it has been idle for too long."""
        self._idle_since = asyncio.get_running_loop().time()
        data = await self._channel.read()
        self._idle_since = None
        if self._is_late and not data:
            log("idle", analyst=self.analyst, process=self.process_id)
            raise Fault("57P05", "the connection was idle for too long", hint="connect again")
        if self._is_late:  # it sent something at the last moment
            self._is_late = False
            self._look()
        return data

    def _look(self) -> None:
        """End the wait of a client that is idle for too long, else look again when it may be: one timer for all of its
        statements."""
        loop, longest = asyncio.get_running_loop(), self._server.options.idle_seconds
        now = loop.time()
        left = longest if self._idle_since is None else self._idle_since + longest - now
        if left > 0:
            self._looks = loop.call_at(now + left, self._look)
            return
        self._is_late = True
        self._channel.wake()

    async def _next(self) -> pgwire.Event:
        """Return the next message of the login. Raises ClientGone, RemoteProtocolError."""
        while True:
            event = self._connection.next_event()
            if event is pgwire.Waiting.NEED_DATA and self._reason is None:
                self._connection.receive_data(await self._channel.read())
            elif isinstance(event, pgwire.Waiting):
                raise ClientGone
            else:
                return event

    async def _send(self, *replies: pgwire.ServerMessage) -> None:
        await self._write(self._connection.send(*replies))

    async def _write(self, data: bytes) -> None:
        if self._channel.put(data):
            return
        try:
            async with asyncio.timeout(self._server.options.write_seconds):
                await self._channel.drained()
        except TimeoutError:
            log("not reading", analyst=self.analyst, process=self.process_id)
            self._channel.abort()
            raise ClientGone from None

    async def _last(self, error: pgwire.ErrorResponse) -> None:
        """Tell why the connection ends, where the client can be told."""
        if self._connection.state in (pgwire.State.CLOSED, pgwire.State.STARTUP):
            return
        try:
            async with asyncio.timeout(1):
                await self._channel.write(self._connection.send(error))
        except (ClientGone, TimeoutError):
            return
        except Exception as fault:  # noqa: BLE001  # a state in which nothing can be said
            log("unsaid", sqlstate=error.sqlstate, place=place_of(fault))

    # --- the login -------------------------------------------------------------------------------------

    async def _greet(self) -> pgwire.StartupMessage | None:
        """Return the startup message; None after a cancel request.

        Raises ClientGone, RemoteProtocolError; Fault while nobody can log in.
        """
        seconds = self._server.options.authentication_seconds
        if self._server.options.trusts(self.peer):
            self._server.names(self, await self._channel.read_proxy_header())
        if await self._channel.begin(self._encryption, seconds):
            self._connection, self._is_encrypted = (
                pgwire.ProtocolConnection(self._limits, encrypted=True),
                True,
            )
        while True:
            event = await self._next()
            if isinstance(event, pgwire.SSLRequest) and self._encryption is not None:
                accepted = self._connection.send(pgwire.EncryptionAccepted())
                await self._channel.start_tls(self._encryption, accepted, seconds)
                self._is_encrypted = True
            elif isinstance(event, (pgwire.SSLRequest, pgwire.GSSENCRequest)):
                await self._send(pgwire.EncryptionRefused())
            elif isinstance(event, pgwire.CancelRequest):
                self._server.cancel(event.process_id, event.key)
                return None
            elif isinstance(event, pgwire.StartupMessage):
                if not self._server.is_accepting:
                    raise _no_connections()
                return event

    async def _authenticate(self, startup: pgwire.StartupMessage, limit: asyncio.Timeout) -> None:
        """Have the client prove its name.

        Raises Fault, the same for a wrong password and an unknown user; for a connection that must be encrypted and is
        not, one too many, and, after a right password, a database that the user has not. `limit` ends with the proof.
        """
        if startup.must_negotiate:
            await self._send(pgwire.NegotiateProtocolVersion(startup.version, startup.unknown_options))
        if not self._is_encrypted and not is_loopback(self.peer):
            raise Fault("28000", "connections from other machines must be encrypted", hint="sslmode=require")
        analyst, proved = await self._prove(startup, limit)
        database = self._server.find(analyst, startup.database)
        if database is None:
            log("login refused", peer=self.peer, delay=0.0, analyst=analyst, reason="database")
            await self._send(*proved, pgwire.AuthenticationOk())
            raise Fault("3D000", f'database "{startup.database[:60]}" does not exist', hint=_DATABASE_HINT)
        if not database.health.is_good:
            raise _no_connections()
        if not self._server.admit(self, analyst, database):
            raise Fault("53300", "there are too many connections", hint="close one, or connect again later")
        await self._send(*proved, pgwire.AuthenticationOk())

    async def _prove(self, startup: pgwire.StartupMessage, limit: asyncio.Timeout) -> tuple[str, Proved]:
        """Return which analyst it is, and what the client is told of it before it is let in.

        Raises Fault: it has proved to be none, which has waited out its delay.
        """
        voucher = self._server.voucher
        if voucher is None:
            return startup.user, await self._prove_password(startup, limit)
        if not self._is_encrypted:
            raise Fault("28000", "connections must be encrypted here", hint="sslmode=require")
        if isinstance(voucher.policy, IssuerPolicy):
            return await self._prove_token(startup, voucher.policy, limit), ()
        await self._send(pgwire.AuthenticationCleartextPassword())
        given = await self._next()
        assert isinstance(given, pgwire.PasswordMessage), "the table of states lets nothing else through"
        analyst = await self._vouched(startup, voucher, given.password, limit)
        if analyst is None:
            raise _login_failed()
        return analyst, ()

    async def _prove_password(self, startup: pgwire.StartupMessage, limit: asyncio.Timeout) -> Proved:
        """Return our proof for the client's. Raises Fault: it is none, which has waited out its delay."""
        logins = self._server.logins
        binding = self._encryption.binding if self._encryption is not None and self._is_encrypted else None
        exchange = pgwire.ScramExchange(
            logins.verifier(startup.user, startup.database), certificate_hash=binding
        )
        await self._send(pgwire.AuthenticationSASL(exchange.mechanisms))
        first = await self._next()
        assert isinstance(first, pgwire.SASLInitialResponse), "the table of states lets nothing else through"
        await self._send(pgwire.AuthenticationSASLContinue(exchange.challenge(first.mechanism, first.data)))
        final = await self._next()
        assert isinstance(final, pgwire.SASLResponse), "the table of states lets nothing else through"
        async with self._turn(startup):
            is_known = startup.user in self._server.logins  # which may be others by now
            with suppress(pgwire.AuthenticationFailed):
                proof = exchange.confirm(final.data)
                if is_known:
                    return (pgwire.AuthenticationSASLFinal(proof),)
            await self._wait_to_tell(
                startup.user if is_known else None, "password" if is_known else "user", limit
            )
        raise _login_failed()

    async def _prove_token(
        self, startup: pgwire.StartupMessage, issuer: IssuerPolicy, limit: asyncio.Timeout
    ) -> str:
        """Return which analyst bears the client's token. Raises Fault: none, or there is no token yet."""
        exchange = pgwire.BearerExchange(issuer.url, issuer.scope)
        await self._send(pgwire.AuthenticationSASL(exchange.mechanisms))
        first = await self._next()
        assert isinstance(first, pgwire.SASLInitialResponse), "the table of states lets nothing else through"
        token = exchange.token(first.mechanism, first.data)
        analyst = None
        if token is not None:
            assert self._server.voucher is not None, "it is the issuer's"
            analyst = await self._vouched(startup, self._server.voucher, token, limit)
        if analyst is not None:
            return analyst
        seconds = self._server.options.authentication_seconds
        limit.reschedule(
            asyncio.get_running_loop().time() + seconds
        )  # the delay has taken the first limit away
        await self._send(pgwire.AuthenticationSASLContinue(exchange.challenge()))
        final = await self._next()
        assert isinstance(final, pgwire.SASLResponse), "the table of states lets nothing else through"
        exchange.dismiss(final.data)
        raise _login_failed()

    async def _vouched(
        self, startup: pgwire.StartupMessage, voucher: Voucher, secret: str, limit: asyncio.Timeout
    ) -> str | None:
        """Return which analyst a password or a token is of; None: of none, which has waited out its delay."""
        server = self._server
        async with self._turn(startup):
            user, database, look = startup.user, startup.database, server.vouching.submit
            try:
                identity = await asyncio.wrap_future(look(voucher.identify, user, secret))
                analyst = await asyncio.wrap_future(look(server.vouched, identity, user, database))
                reason = "identity"
            except Unproved as unproved:
                analyst, reason = None, unproved.reason
            if analyst is None:
                await self._wait_to_tell(None, reason, limit)
            return analyst

    @asynccontextmanager
    async def _turn(self, startup: pgwire.StartupMessage) -> AsyncIterator[None]:
        """Wait for the turn of a proof to be looked at. Raises ClientGone: the client has not."""
        self.is_idle = False
        place = self._server.logins.place(startup.user, startup.database)  # each database has its own users
        async with self._server.turns.turn(self.peer, f"{place} {startup.user}"):
            if self._channel.lost.done():
                raise ClientGone
            yield

    async def _wait_to_tell(self, user: str | None, reason: str, limit: asyncio.Timeout) -> None:
        """Wait out the delay of a failed login, also when the client has left: it buys no faster attempt."""
        limit.reschedule(None)
        delay = self._server.throttle.fail(self.peer, asyncio.get_running_loop().time())
        log("login refused", peer=self.peer, delay=delay, analyst=user, reason=reason)
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._server.stopping.wait()

    async def _open(self, startup: pgwire.StartupMessage) -> Conversation:
        """Open the session, and tell the client that it may begin."""
        asked = _asked(startup)
        server, database = self._server, self.database
        assert database is not None, "it has logged in"
        sessions = database.sessions
        analyst = self.analyst
        assert analyst is not None, "it has logged in"
        session = await asyncio.wrap_future(server.pool.submit(sessions.open, analyst))
        self._worker = Worker(session, sessions, server.pool, server.stops, self._channel, self._check)
        catalog = sessions.catalog(session)
        client = ClientSettings.of(
            analyst, session.policy, asked, schema=catalog.default_schema,
            written=session.catalog.default_schema, has_tls=self._is_encrypted,
        )  # fmt: skip
        queries = Queries(
            self._worker, catalog, sessions.replies(session), startup.database, self.process_id, database.tally,
            lambda: server.names_for(analyst, database),
        )  # fmt: skip
        dispatcher = Dispatcher(ConnectionState(session, client), queries)
        self.key = secrets.token_bytes(32 if startup.version >= (3, 2) else 4)
        statuses = [pgwire.ParameterStatus(name, value) for name, value in client.reported().items()]
        await self._send(
            *statuses,
            pgwire.BackendKeyData(self.process_id, self.key),
            pgwire.ReadyForQuery(pgwire.TransactionStatus.IDLE),
        )
        log(
            "connected", analyst=self.analyst, peer=self.peer, process=self.process_id,
            encrypted=self._is_encrypted, database=database.name,
        )  # fmt: skip
        return Conversation(self._connection, dispatcher, self._write)


_LOGIN_HINT = "check the user, the password and the database's name"
_DATABASE_HINT = "a database has the name of its policy's file"


def _login_failed() -> Fault:
    return Fault("28P01", "the login failed", hint=_LOGIN_HINT)


def _no_connections() -> Fault:
    return Fault("57P03", "the server takes no connections now", hint="connect again later")


def _asked(startup: pgwire.StartupMessage) -> dict[str, str]:
    """Return the settings that a client wants from the start. Raises Fault: replication, or command-line options."""
    asked = {name: value for name, value in startup.parameters.items() if name not in ("user", "database")}
    if asked.pop("replication", "false").lower() not in ("false", "off", "0", "no"):
        raise Fault("0A000", "replication is not supported", hint="connect without replication")
    words = asked.pop("options", "").replace("-c", " -c ").split()
    for word in words:
        name, sign, value = word.removeprefix("--").partition("=")
        if word != "-c" and not sign:
            raise Fault("0A000", "this form of options is not supported", hint="options=-c name=value")
        if sign:
            asked[name.replace("-", "_")] = value
    return asked


# --- clients without a login --------------------------------------------------------------------------------


class Strangers:
    """At most `most` connections, and half of that from one address; of IPv6, from one /64."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._crowds: dict[str, dict[Client, None]] = {}

    def __len__(self) -> int:
        """How many there are."""
        return sum(map(len, self._crowds.values()))

    def make_room(self, peer: str) -> bool:
        """Have room for one more of an address; False where nobody is left who could go for it.

        Returns whether there is room. Who goes is told nothing.
        """
        crowd = self._crowds.get(network_of(peer), {})
        if len(crowd) < self._most // 2:
            if len(self) < self._most:
                return True
            crowd = max(self._crowds.values(), key=len)
        victim = next((one for one in crowd if one.is_idle), None)
        if victim is None:
            return False
        self.remove(victim)
        victim.stop()
        return True

    def add(self, stranger: Client) -> None:
        """Count a connection, as the newest of its address."""
        self._crowds.setdefault(network_of(stranger.peer), {})[stranger] = None

    def remove(self, stranger: Client) -> None:
        """Count a connection no longer: it has logged in, or it has gone, or its address turned out to be another."""
        network = network_of(stranger.peer)
        crowd = self._crowds.get(network, {})
        crowd.pop(stranger, None)
        if not crowd:
            self._crowds.pop(network, None)


LONGEST = 5.0
"""Seconds; the longest delay."""

_FIRST = 0.25
_MAX_NETWORKS = 4096
_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class _Pace:
    """How a count of failures becomes a delay: `free` of them have none, and every `double` more double it.

    `forget`: failures forgotten a second; `most`: where the count ends.
    """

    free: int
    double: float
    forget: float
    most: int

    def delay(self, count: int) -> float:
        """Return seconds; `count`: the failures remembered, this one among them."""
        if count <= self.free:
            return 0.0
        return float(min(LONGEST, _FIRST * 2 ** ((count - self.free - 1) / self.double)))


_ONE_NETWORK = _Pace(free=3, double=1, forget=0.1, most=20)
_ALL_TOGETHER = _Pace(free=100, double=20, forget=1, most=300)


@dataclass(slots=True)
class _Count:
    """Failures remembered as of `at`."""

    failures: float = 0.0
    at: float = 0.0

    def add(self, pace: _Pace, now: float) -> float:
        """Count a failure and return its delay."""
        kept = max(0.0, self.failures - (now - self.at) * pace.forget)
        self.failures, self.at = min(kept + 1, pace.most), now
        return pace.delay(math.ceil(self.failures))


class Throttle:
    """Counts failed logins by address; IPv6 by the /64 that one customer has. Times are the event loop's."""

    def __init__(self, place: Place | None = None) -> None:
        """`place`: where several processes count together."""
        self._networks: Cache[_Count] = Cache(_MAX_NETWORKS)
        self._all = _Count()
        self._place = place

    def __len__(self) -> int:
        """How many networks are remembered."""
        return len(self._networks)

    def fail(self, peer: str, now: float) -> float:
        """Count a failed login and return the seconds until it may be told."""
        network = network_of(peer)
        if self._place is not None:
            paces = {network: _ONE_NETWORK, "": _ALL_TOGETHER}
            asked = [(name, pace.forget, pace.most) for name, pace in paces.items()]
            counts = self._place.failed(asked, now)
            if counts is None:
                return LONGEST
            return max(pace.delay(count) for pace, count in zip(paces.values(), counts, strict=True))
        count = self._networks.get(network) or _Count(at=now)
        self._networks.put(network, count)
        return max(count.add(_ONE_NETWORK, now), self._all.add(_ALL_TOGETHER, now))


def network_of(peer: str) -> str:
    """Return who counts as one: an IPv4 address, or the /64 of an IPv6 one; anything else as it is."""
    address = address_of(peer)
    if address is None:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))


MOST_OF_NAME = 4
"""Turns at once of one name from one address; with a delay of 5 seconds that is a guess in 1.25 seconds."""
MOST_OF_ADDRESS = 16
"""Turns at once from one address, of all names."""

_Key = tuple[str, str | None]


@dataclass(slots=True)
class _Gate:
    turns: asyncio.Semaphore
    users: int = 0


class Turns:
    """The turns that are taken and waited for; nothing is kept of an address where nobody waits."""

    def __init__(self, processes: int = 1) -> None:
        """`processes`: how many have a part of the turns."""
        self._gates: dict[_Key, _Gate] = {}
        self._of_name, self._of_address = MOST_OF_NAME // processes, MOST_OF_ADDRESS // processes

    def __len__(self) -> int:
        """How many gates somebody stands at."""
        return len(self._gates)

    @asynccontextmanager
    async def turn(self, peer: str, user: str) -> AsyncIterator[None]:
        """Wait for a turn of `user` from `peer`, and have it until the block ends."""
        network = network_of(peer)
        async with self._pass((network, user), self._of_name), self._pass((network, None), self._of_address):
            yield

    @asynccontextmanager
    async def _pass(self, key: _Key, most: int) -> AsyncIterator[None]:
        gate = self._gates.setdefault(key, _Gate(asyncio.Semaphore(most)))
        gate.users += 1
        try:
            async with gate.turns:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[key]


# --- the server as a whole: what connections share, how they are let in, and how it stops -------------------


_MOST_VOUCHED = 8
"""Logins at once that wait for a directory or an issuer: not in the threads of statements, however long it takes."""
_LAST_SECONDS = 5.0
_REST_SECONDS = 0.5
_SWITCH_SECONDS = 0.001
"""After which a thread that plans has to let the event loop go on: for each that plans, a reply waits as long."""
_STRANGER_SECONDS = 0.002
"""After so much work for new connections they stand back behind analysts' short statements, for as long and no longer:
else a flood of silent ones would fill the system's queue, and right logins would be lost in it."""


class Server:
    """Serves policies until SIGTERM or SIGINT; then no statement is begun, and running ones may finish.

    SIGHUP has it read certificate, key and policies anew (`reload`).
    """

    def __init__(self, policies: Sequence[Policy], options: Options) -> None:
        """Read what is needed, and try whether databases and ledgers can be opened.

        Raises PolicyError, LedgerError, EngineFailure: the owner has to mend something. Raises ValueError: the
        certificate or the counts' token cannot be read, or is missing where others than this machine could connect.
        """
        places_by_name(policies)  # before anything is opened
        self.options = options
        self.encryption = load_encryption(options.certificate, options.key)
        if self.encryption is None and not is_loopback(options.host):
            raise ValueError(f"{options.host} can be reached from other machines, which takes TLS")
        self.voucher = _voucher_of(policies)
        if self.voucher is not None and self.encryption is None:
            raise ValueError("auth in [server] has passwords or tokens sent as they are, which takes TLS")
        self._metrics_token = self._load_metrics_token()
        most = options.max_connections + len(policies)
        self.pool = ThreadPoolExecutor(most, thread_name_prefix="dpsql")
        self.stops = ThreadPoolExecutor(most, thread_name_prefix="dpsql-stop")
        self.vouching = ThreadPoolExecutor(
            _MOST_VOUCHED // options.processes, thread_name_prefix="dpsql-login"
        )
        self._naming = threading.Lock()
        self._texts, self._precedence = TextProcess(), Precedence()
        one_of = options.one_of
        self._place = None if one_of is None else Place(Path(one_of.folder), one_of.number)
        self.databases = self._open(policies)
        self._secret = self.databases[0].secret()
        self.logins = Logins(policies, self._secret)
        self.throttle = Throttle(self._place)
        self.turns = Turns(options.processes)
        self.stopping = asyncio.Event()
        self._hangup = asyncio.Event()
        self._clients: dict[asyncio.Task[None], Client] = {}
        self._strangers = Strangers(options.max_strangers // options.processes)
        self._refused_strangers = Seldom("strangers full")
        self.late = Seldom("login timed out")

    def _open(self, policies: Sequence[Policy]) -> list[Database]:
        """Open all or, where one cannot be, none. Raises as `__init__`."""
        with ExitStack() as undo:
            databases = []
            for policy in policies:
                shared = self.options.one_of, self._place
                seconds = self.options.probe_seconds
                databases.append(Database(policy, self.pool, seconds, self._precedence, self._texts, *shared))
                undo.callback(databases[-1].sessions.shut)
                if self.options.one_of is not None and self.options.one_of.number:
                    continue  # the first of them tells the witness
                if self.options.witness is not None or self.options.witness_command:
                    told = self.options.witness, self.options.witness_command
                    databases[-1].witness = Witness(*told, databases[-1].name)
            undo.pop_all()
        return databases

    async def run(
        self,
        announce: Callable[[int], None] | None = None,
        beside: Callable[[Server, asyncio.AbstractEventLoop], AbstractContextManager[object]] | None = None,
    ) -> None:
        """Listen until told to stop; `announce` is called with the port before the log begins.

        `beside`: another door, open within its block, in threads of its own.

        Raises CannotListen: an address cannot be had.
        """
        sys.setswitchinterval(_SWITCH_SECONDS)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_tell_bug)
        logging.getLogger(
            "asyncio"
        ).disabled = True  # its words are no lines of the log, and may quote values
        with ExitStack() as doors:
            one_of = self.options.one_of
            shared_port = self.options.port if one_of is None else one_of.port
            listeners = open_listeners(self.options.host, shared_port, shares=one_of is not None)
            if one_of is not None:
                doors.enter_context(self._among(one_of))
            for listener in listeners:
                doors.enter_context(listener)
            metrics = doors.enter_context(self._metrics())
            if beside is not None:
                doors.enter_context(beside(self, loop))
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stop)
            loop.add_signal_handler(signal.SIGHUP, self._hangup.set)
            port = listeners[0].getsockname()[1]
            if announce is not None:
                announce(port)
            log(
                "listening", host=self.options.host, port=port, encrypted=self.encryption is not None, metrics=metrics,
                databases=", ".join(database.name for database in self.databases),
                **({} if one_of is None else {"worker": one_of.number}),
            )  # fmt: skip
            for database in self.databases:
                database.look_at_policy()
            await self._serve(listeners)
        for database in self.databases:
            database.sessions.shut()
        self._texts.close()
        for threads in (self.pool, self.stops, self.vouching):
            threads.shutdown(wait=False, cancel_futures=True)
        log("stopped")
        write_out(_LAST_SECONDS)

    async def _serve(self, listeners: Sequence[socket.socket]) -> None:
        """Let clients in until it is time to stop, and until those who are there have left."""
        parts = [self._let_in(listener) for listener in listeners]
        parts += [database.health.watch() for database in self.databases]
        parts += [self._reload_often(), self._rest_often()]
        background = [asyncio.ensure_future(part) for part in parts]
        for task in background:
            task.add_done_callback(self._check)
        await self.stopping.wait()
        log("stopping")
        await self._drain()
        for task in background:
            task.cancel()
        await asyncio.wait(background)

    # --- who is let in -----------------------------------------------------------------------------

    @property
    def is_accepting(self) -> bool:
        """Whether a login has a point: a ledger can be used, and the server does not stop."""
        return any(database.health.is_good for database in self.databases) and not self.stopping.is_set()

    def find(self, user: str, database: str) -> Database | None:
        """Return what a user means by a database's name; None where there is none that the user may log in to."""
        index = self.logins.find(user, database)
        return None if index is None else self.databases[index]

    def vouched(self, identity: Identity, user: str, database: str) -> str | None:
        """Return the analyst that a person is in a database, who is one from here on; None: none. Called from a thread:
        it waits where the database is being opened."""
        assert self.voucher is not None, "somebody was vouched for"
        meant = self.databases[self.logins.place_of(database)]
        analyst = meant.take_in(self.voucher, identity, user)
        if analyst is not None and self.logins.find(analyst, database) is None:
            self._name_all()
        return analyst

    async def proved(self, peer: str, user: str, database: str, password: str) -> Database | None:
        """Return the database that a password opens; None: none, which is told as late as over the wire.

        For a door that is sent the password itself, over TLS or on this machine. Requires: passwords are in the policy.
        """
        loop, place = asyncio.get_running_loop(), self.logins.place(user, database)
        async with self.turns.turn(peer, f"{place} {user}"):
            is_known, verifier = user in self.logins, self.logins.verifier(user, database)
            if await loop.run_in_executor(self.vouching, verifier.fits, password) and is_known:
                found = self.find(user, database)
                if found is None:
                    log("login refused", peer=peer, delay=0.0, analyst=user, reason="database")
                return found if self.is_accepting and found is not None and found.health.is_good else None
            delay, reason = self.throttle.fail(peer, loop.time()), "password" if is_known else "user"
            log("login refused", peer=peer, delay=delay, analyst=user if is_known else None, reason=reason)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self.stopping.wait()
            return None

    def _name_all(self) -> None:
        """Have those who may connect be those of the policies as they are now."""
        with self._naming:
            self.logins = Logins([one.policy for one in self.databases], self._secret)

    def names_for(self, user: str, database: Database) -> list[str]:
        """Return the names of the databases, without one, in which a name has a login."""
        places = self.logins.places_of(user)
        return [self.databases[place].name for place in places if self.databases[place] is not database]

    def connections(self, database: Database) -> int:
        """Return how many connections of analysts a database has."""
        return sum(client.database is database for client in self._admitted())

    def _admitted(self) -> list[Client]:
        return [client for client in list(self._clients.values()) if client.analyst is not None]

    def admit(self, client: Client, analyst: str, database: Database) -> bool:
        """Take a client that has proved its name; False when there are as many as there may be."""
        limit = self._full(analyst, database)
        if limit is not None:
            log("full", limit=limit, analyst=analyst)
            return False
        self._strangers.remove(client)
        client.analyst, client.database = analyst, database
        return True

    def _full(self, analyst: str, database: Database) -> str | None:
        """Return which limit is reached, where one is: then one more connection cannot be."""
        most, most_of_name = self.options.max_connections, self.options.max_per_analyst(len(self.logins))
        if self._place is not None:
            return self._place.admit(_counted_as(analyst, database), most, most_of_name)
        admitted = self._admitted()
        if len(admitted) >= most:
            return "all"
        own = sum(other.analyst == analyst and other.database is database for other in admitted)
        return "analyst" if own >= most_of_name else None

    def cancel(self, process_id: int, key: bytes) -> None:
        """Stop the statement of the connection that this is the key of; nothing for any other key."""
        one_of = self.options.one_of
        if one_of is not None and not one_of.is_own(process_id):
            one_of.hand_on(process_id, key)
            return
        client = next((one for one in self._admitted() if one.process_id == process_id), None)
        expected = client.key if client is not None and client.key else secrets.token_bytes(32)
        if hmac.compare_digest(expected, key) and client is not None:
            log("cancelled", analyst=client.analyst, process=process_id)
            client.cancel()

    async def _let_in(self, listener: socket.socket) -> None:
        taken = 0.0
        async for connection, peer in accepted(listener):
            start = self._precedence.clock()
            if self._has_room(peer):
                self._begin(Channel(connection, peer))
            else:
                connection.close()
            taken += self._precedence.clock() - start
            if taken >= _STRANGER_SECONDS:
                await self._precedence.stand_back(None, _STRANGER_SECONDS)
                taken = 0.0

    def _has_room(self, peer: str) -> bool:
        """Return whether one more connection without a login may come from an address; another may go for it."""
        before = len(self._strangers)
        has_room = self._strangers.make_room(peer)
        if not has_room or len(self._strangers) < before:
            self._refused_strangers.log(peer=peer)
        return has_room

    def names(self, client: Client, peer: str | None) -> None:
        """Take a client for one of the address that its proxy names. Raises ClientGone: there is no room for it."""
        if peer is None:
            return
        self._strangers.remove(client)
        if not self._has_room(peer):
            raise ClientGone
        client.peer = peer
        self._strangers.add(client)

    def _begin(self, channel: Channel) -> None:
        client = Client(self, channel, self._new_process_id())
        self._strangers.add(client)
        task = asyncio.ensure_future(client.run())
        self._clients[task] = client
        task.add_done_callback(self._forget)

    def _new_process_id(self) -> int:
        taken = {client.process_id for client in self._clients.values()}
        one_of = self.options.one_of
        while (number := secrets.randbelow(2**31 - 1) + 1 if one_of is None else one_of.new_id()) in taken:
            pass
        return number

    def _forget(self, task: asyncio.Task[None]) -> None:
        client = self._clients.pop(task)
        self._strangers.remove(client)
        if self._place is not None and client.analyst is not None and client.database is not None:
            self._place.leave(_counted_as(client.analyst, client.database))

    # --- where several processes serve -------------------------------------------------------------

    @contextmanager
    def _among(self, one_of: OneOf) -> Iterator[None]:
        """Take the cancels that others hand on, and stop when the parent has gone, within the block."""
        loop = asyncio.get_running_loop()
        with socket.socket(fileno=os.dup(one_of.inbox)) as inbox:
            inbox.setblocking(False)

            def take() -> None:
                for process_id, key in one_of.handed(inbox):
                    if one_of.is_own(process_id):
                        self.cancel(process_id, key)

            def look() -> None:
                if not os.read(0, 1):
                    loop.remove_reader(0)
                    self._stop()

            loop.add_reader(inbox, take)
            loop.add_reader(0, look)
            try:
                yield
            finally:
                loop.remove_reader(inbox)
                loop.remove_reader(0)

    # --- what changes while it runs ----------------------------------------------------------------

    async def reload(self) -> None:
        """Read certificate, key and policy anew, for the connections to come.

        What cannot be read stays as it was, and a line of the log says so. Raises nothing.
        """
        self._reload_certificate()
        for database in self.databases:
            if await database.reload():
                self._follow(database)

    def _reload_certificate(self) -> None:
        if self.encryption is None:
            return
        try:
            self.encryption = load_encryption(self.options.certificate, self.options.key)
        except ValueError as error:
            log("reload refused", what="certificate", reason=str(error))
        else:
            log("reloaded", what="certificate")

    def _follow(self, database: Database) -> None:
        """Have a database's connections go whose analysts are in its policy no longer, or that are not of it."""
        self._name_all()
        for client in self._admitted():
            if client.database is not database or client.analyst is None:
                continue
            if self.find(client.analyst, database.name) is None:
                client.leave(removed())
            elif not client.is_current:
                client.leave(changed())

    def _check(self, task: asyncio.Task[None]) -> None:
        """Stop where a part of the server has failed: half a server is worse than none."""
        if not task.cancelled() and (error := task.exception()) is not None:
            log("bug", place=place_of(error))
            self.stopping.set()

    async def _reload_often(self) -> None:
        while True:
            await self._hangup.wait()
            self._hangup.clear()
            await self.reload()

    async def _rest_often(self) -> None:
        while True:
            await asyncio.sleep(_REST_SECONDS)
            for database in self.databases:
                await asyncio.get_running_loop().run_in_executor(self.pool, database.rest)

    def _metrics(self) -> AbstractContextManager[int | None]:
        """Serve what is counted within the block, where the owner wants it. Raises CannotListen."""
        if self.options.metrics is None:
            return nullcontext()
        host, port = self.options.metrics
        if self.options.one_of is not None and port:
            port += self.options.one_of.number  # counts are each process' own, and a reader adds them up
        from .metrics import serve_metrics  # what it is made with is an optional part

        return serve_metrics(
            (host, port),
            self.databases,
            self.connections,
            self._metrics_token,
            lambda: self.encryption,
        )

    def _load_metrics_token(self) -> str | None:
        """Return what readers of the counts have to bring. Raises ValueError: beyond this machine it takes TLS too."""
        options = self.options
        if options.metrics is None:
            return None
        if not is_loopback(options.metrics[0]) and (self.encryption is None or options.metrics_token is None):
            raise ValueError(
                f"counts on {options.metrics[0]} can be read from other machines, which takes TLS and --metrics-token"
            )
        if options.metrics_token is None:
            return None
        from .metrics import load_token

        return load_token(options.metrics_token)

    # --- the end -----------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Begin to stop; told a second time, wait for nobody."""
        if self.stopping.is_set():
            for client in self._clients.values():
                client.stop()
        self.stopping.set()

    async def _drain(self) -> None:
        """Wait for the clients that are there; those who come meanwhile are told that it is too late."""
        for client in self._clients.values():
            client.leave(stopping())
        if self._clients:
            await asyncio.wait(list(self._clients), timeout=self.options.grace_seconds)
        for client in list(self._clients.values()):
            client.stop()
        if self._clients:
            await asyncio.wait(list(self._clients), timeout=_LAST_SECONDS)


def _counted_as(analyst: str, database: Database) -> str:
    """Return under which name an analyst's connections are counted over all processes."""
    return f"{database.name} {analyst}"


def _voucher_of(policies: Sequence[Policy]) -> Voucher | None:
    """Return who vouches for analysts. Raises PolicyError: two policies say it otherwise, or a part is missing.

    Else a stranger could see which databases there are by how each asks who one is.
    """
    first, *others = policies
    for other in others:
        if other.server.auth != first.server.auth:
            raise PolicyError(
                f"{first.source} and {other.source} have another auth in [server]",
                hint="serve them on two ports, or write the same in both",
            )
    return open_voucher(first)


def _tell_bug(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what no task has caught: its place alone, for its text may hold a value."""
    error = context.get("exception")
    log("bug", place=place_of(error) if isinstance(error, BaseException) else "the event loop")
