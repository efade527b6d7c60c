"""One client from its first byte to its last: encryption, login, conversation, end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import pgwire
from ..policy.model import IssuerPolicy
from .channel import Channel, is_loopback
from .client_settings import ClientSettings
from .conversation import Conversation
from .dispatch import Dispatcher
from .identity import Unproved, Voucher
from .report import ClientGone, Fault, changed, log, place_of, report
from .state import ConnectionState
from .worker import Queries, Worker

if TYPE_CHECKING:
    from .database import Database
    from .listener import Server

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
