"""One client from its first byte to its last: encryption, login, conversation, end."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from ..engine import Session
from ..pgwire import (
    AuthenticationFailed,
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    AuthenticationSASLFinal,
    BackendKeyData,
    CancelRequest,
    Connection,
    EncryptionAccepted,
    EncryptionRefused,
    ErrorResponse,
    Event,
    GSSENCRequest,
    NegotiateProtocolVersion,
    ParameterStatus,
    ReadyForQuery,
    RemoteProtocolError,
    SASLInitialResponse,
    SASLResponse,
    ScramExchange,
    ServerMessage,
    SSLRequest,
    StartupMessage,
    State,
    Terminate,
    TransactionStatus,
    Waiting,
    last_message,
)
from .channel import Channel
from .client_settings import ClientSettings
from .commands import Commands
from .conversation import Conversation
from .log import log, place_of
from .options import is_loopback
from .report import ClientGone, Fault, report
from .worker import Worker

if TYPE_CHECKING:
    from .listener import Server

__all__ = ["Client"]


class Client:
    """A connection; `server` is what it shares with the others."""

    def __init__(self, server: Server, channel: Channel, process_id: int) -> None:
        self._server, self._channel = server, channel
        self._connection = Connection()
        self._is_encrypted = self._is_leaving = False
        self._worker: Worker | None = None
        self.process_id = process_id
        self.key = b""
        self.analyst: str | None = None

    async def run(self) -> None:
        """Serve the client until it leaves, breaks the protocol or has to go; raises nothing."""
        try:
            await self._serve()
        except ClientGone:
            pass
        except RemoteProtocolError as error:
            await self._last(last_message(error))
        except AuthenticationFailed:
            log("login refused", peer=self._channel.peer)
            await self._last(ErrorResponse("28P01", "the login failed", hint=_LOGIN_HINT, fatal=True))
        except Exception as error:  # noqa: BLE001  # `report` tells a bug from an error, and the text of neither
            await self._last(report(error, fatal=True))
        finally:
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

    def leave(self) -> None:
        """End the conversation once the running statement is answered."""
        self._is_leaving = True
        self._channel.wake()

    def stop(self) -> None:
        """Hang up; the running statement is cancelled."""
        self._channel.abort()

    async def _serve(self) -> None:
        try:
            async with asyncio.timeout(self._server.options.authentication_seconds):
                startup = await self._greet()
                if startup is None:
                    return
                await self._authenticate(startup)
        except TimeoutError:
            raise ClientGone from None
        conversation = await self._open(startup)
        while True:
            event = self._connection.next_event()
            if event is Waiting.NEED_DATA:
                await conversation.flush()
                await self._receive()
            elif isinstance(event, (Waiting, Terminate)):
                return
            else:
                await conversation.answer(event)

    async def _receive(self) -> None:
        """Wait for more of the client. Raises Fault: it has been idle for too long, or the server stops."""
        if self._is_leaving:
            raise Fault("57P01", "the server is shutting down", hint="connect again later")
        try:
            async with asyncio.timeout(self._server.options.idle_seconds):
                self._connection.receive_data(await self._channel.read())
        except TimeoutError:
            raise Fault("57P05", "the connection was idle for too long", hint="connect again") from None

    async def _next(self) -> Event:
        """Return the next message of the login. Raises ClientGone, RemoteProtocolError."""
        while True:
            event = self._connection.next_event()
            if event is Waiting.NEED_DATA and not self._is_leaving:
                self._connection.receive_data(await self._channel.read())
            elif isinstance(event, Waiting):
                raise ClientGone
            else:
                return event

    async def _send(self, *replies: ServerMessage) -> None:
        await self._write(self._connection.send(*replies))

    async def _write(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._server.options.idle_seconds):
                await self._channel.write(data)
        except TimeoutError:
            raise ClientGone from None

    async def _last(self, error: ErrorResponse) -> None:
        """Tell why the connection ends, where the client can be told."""
        if self._connection.state in (State.CLOSED, State.STARTUP):
            return
        try:
            async with asyncio.timeout(1):
                await self._channel.write(self._connection.send(error))
        except (ClientGone, TimeoutError):
            return
        except Exception as fault:  # noqa: BLE001  # a state in which nothing can be said
            log("unsaid", sqlstate=error.sqlstate, place=place_of(fault))

    # --- the login -------------------------------------------------------------------------------------

    async def _greet(self) -> StartupMessage | None:
        """Return the startup message; None after a cancel request."""
        while True:
            event = await self._next()
            if isinstance(event, SSLRequest) and self._server.tls is not None:
                accepted = self._connection.send(EncryptionAccepted())
                seconds = self._server.options.authentication_seconds
                await self._channel.start_tls(self._server.tls, accepted, seconds)
                self._is_encrypted = True
            elif isinstance(event, (SSLRequest, GSSENCRequest)):
                await self._send(EncryptionRefused())
            elif isinstance(event, CancelRequest):
                self._server.cancel(event.process_id, event.key)
                return None
            elif isinstance(event, StartupMessage):
                return event

    async def _authenticate(self, startup: StartupMessage) -> None:
        """Have the client prove its name.

        Raises AuthenticationFailed, the same for a wrong password, an unknown user and an unknown database; Fault
        for a connection that must be encrypted and is not, and one too many.
        """
        if startup.must_negotiate:
            await self._send(NegotiateProtocolVersion(startup.version, startup.unknown_options))
        if not self._is_encrypted and not is_loopback(self._channel.peer):
            raise Fault("28000", "connections from other machines must be encrypted", hint="sslmode=require")
        logins = self._server.logins
        binding = self._server.binding if self._is_encrypted else None
        exchange = ScramExchange(logins.verifier(startup.user), certificate_hash=binding)
        await self._send(AuthenticationSASL(exchange.mechanisms))
        first = await self._next()
        if not isinstance(first, SASLInitialResponse):
            raise AuthenticationFailed
        await self._send(AuthenticationSASLContinue(exchange.challenge(first.mechanism, first.data)))
        final = await self._next()
        if not isinstance(final, SASLResponse):
            raise AuthenticationFailed
        proof = exchange.confirm(final.data)
        if not logins.has_database(startup.database):
            raise AuthenticationFailed
        if not self._server.admit(self):
            raise Fault("53300", "there are too many connections", hint="close one, or connect again later")
        await self._send(AuthenticationSASLFinal(proof), AuthenticationOk())
        self.analyst = startup.user

    async def _open(self, startup: StartupMessage) -> Conversation:
        """Open the session, and tell the client that it may begin."""
        asked = _asked(startup)
        own = {name: asked.pop(name) for name in list(asked) if name.startswith("dpsql.")}
        client = ClientSettings.of(startup.user, asked)
        server = self._server
        opened = server.pool.submit(Session.open, server.policy, analyst=startup.user)
        session = await asyncio.wrap_future(opened)
        self._worker = Worker(session, server.pool, self._channel, has_grid=server.options.has_grid)
        for name, value in own.items():
            session.settings = session.settings.set(name, value, server.policy.defaults)
        commands = Commands(self._worker, client, startup.database, self.process_id, session.settings)
        self.key = secrets.token_bytes(32 if startup.version >= (3, 2) else 4)
        statuses = [ParameterStatus(name, value) for name, value in client.reported().items()]
        await self._send(
            *statuses, BackendKeyData(self.process_id, self.key), ReadyForQuery(TransactionStatus.IDLE)
        )
        log(
            "connected", analyst=self.analyst, peer=self._channel.peer, process=self.process_id,
            encrypted=self._is_encrypted,
        )  # fmt: skip
        return Conversation(self._connection, commands, self._write)


_LOGIN_HINT = "check the user, the password and the database's name"


def _asked(startup: StartupMessage) -> dict[str, str]:
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
