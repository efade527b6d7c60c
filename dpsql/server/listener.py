"""The server as a whole: what connections share, how they are let in, and how it stops."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import secrets
import signal
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from ..engine import Session
from ..errors import PolicyError
from ..pgwire import tls_server_end_point
from ..policy import Policy
from .channel import Channel
from .client import Client
from .log import log, place_of
from .login import Logins
from .options import Options, is_loopback

__all__ = ["Server"]

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_LAST_SECONDS = 5.0


class Server:
    """Serves one policy until SIGTERM or SIGINT; then no statement is begun, and running ones may finish."""

    def __init__(self, policy: Policy, options: Options) -> None:
        """Read what is needed, and try whether database and ledger can be opened.

        Raises PolicyError, LedgerError, EngineFailure: the owner has to mend something. Raises ValueError: the
        certificate cannot be read, or there is none and others than this machine could connect.
        """
        self.policy, self.options = policy, options
        self.tls, self.binding = _load_tls(options)
        if self.tls is None and not is_loopback(options.host):
            raise ValueError(f"{options.host} can be reached from other machines, which takes TLS")
        with closing(Session.open(policy, analyst="server")) as session:
            secret = session.dataset.store.secret()
        self.logins = Logins(policy, secret)
        if not len(self.logins):
            raise PolicyError(
                f"{policy.source}: analysts: nobody has a password, so nobody could connect",
                hint="dpsql user add NAME prints the line to write",
            )
        self.pool = ThreadPoolExecutor(options.max_connections, thread_name_prefix="dpsql")
        self._waiting: dict[asyncio.Task[None], Client] = {}
        self._admitted: dict[int, Client] = {}
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Listen until told to stop. Raises OSError: the address cannot be had."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_tell_bug)
        logging.getLogger(
            "asyncio"
        ).disabled = True  # its words are no lines of the log, and may quote values
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        listener = await loop.create_server(
            lambda: Channel(self._begin), self.options.host, self.options.port
        )
        port = listener.sockets[0].getsockname()[1]
        log("listening", host=self.options.host, port=port, encrypted=self.tls is not None)
        await self._stopping.wait()
        listener.close()
        await self._drain()
        self.pool.shutdown(wait=False, cancel_futures=True)
        log("stopped")

    def admit(self, client: Client) -> bool:
        """Take a client that has proved its name; False when there are as many as there may be."""
        if len(self._admitted) >= self.options.max_connections:
            log("full", peer_count=len(self._admitted))
            return False
        self._admitted[client.process_id] = client
        return True

    def cancel(self, process_id: int, key: bytes) -> None:
        """Stop the statement of the connection that this is the key of; nothing for any other key."""
        client = self._admitted.get(process_id)
        expected = client.key if client is not None and client.key else secrets.token_bytes(32)
        if hmac.compare_digest(expected, key) and client is not None:
            client.cancel()

    def _begin(self, channel: Channel) -> None:
        """Serve a new connection; without a login there may be only so many."""
        strangers = len(self._waiting) - len(self._admitted)
        if self._stopping.is_set() or strangers >= self.options.max_connections:
            channel.abort()
            return
        client = Client(self, channel, self._new_process_id())
        task = asyncio.ensure_future(client.run())
        self._waiting[task] = client
        task.add_done_callback(self._forget)

    def _new_process_id(self) -> int:
        taken = {client.process_id for client in self._waiting.values()}
        while (number := secrets.randbelow(2**31 - 1) + 1) in taken:
            pass
        return number

    def _forget(self, task: asyncio.Task[None]) -> None:
        client = self._waiting.pop(task)
        self._admitted.pop(client.process_id, None)

    async def _drain(self) -> None:
        for client in self._waiting.values():
            client.leave()
        if self._waiting:
            await asyncio.wait(list(self._waiting), timeout=self.options.grace_seconds)
        for client in list(self._waiting.values()):
            client.stop()
        if self._waiting:
            await asyncio.wait(list(self._waiting), timeout=_LAST_SECONDS)


def _tell_bug(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what no task has caught: its place alone, for its text may hold a value."""
    error = context.get("exception")
    log("bug", place=place_of(error) if isinstance(error, BaseException) else "the event loop")


def _load_tls(options: Options) -> tuple[ssl.SSLContext | None, bytes | None]:
    """Return the context for TLS and what a client's login is bound to; None where there is none."""
    if options.certificate is None or options.key is None:
        if options.certificate is not options.key:
            raise ValueError("a certificate and its key are given together")
        return None, None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.certificate, options.key)
        first = _CERTIFICATE.search(options.certificate.read_text("ascii"))
    except (OSError, ssl.SSLError, UnicodeDecodeError):
        raise ValueError("the certificate and its key cannot be read, or do not belong together") from None
    assert first is not None, "load_cert_chain has read one"
    return context, tls_server_end_point(ssl.PEM_cert_to_DER_cert(first.group()))
