"""`/metrics`, as Prometheus reads it, on a port of its own.

House rules:

1. It is the owner's, as the log is. Durations here are finer than what analysts see, whose replies wait for the grid
   (soundness.md 3.6); so who asks dpsql must not read it.
2. On the loopback a request must name it as its host, so that no page of elsewhere reads it under a name of its own
   (DNS rebinding). Beyond it there is TLS, and a token that is compared in constant time.
3. What a silent or a greedy client takes is bounded: a few connections at once, for ten seconds, one request each.
"""

from __future__ import annotations

import hmac
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from ..errors import DpsqlError
from ..records import dataclass
from ..waits import interrupt_after
from .channel import CannotListen, Encryption, is_loopback, refuse_open
from .report import SECONDS, Tally

if TYPE_CHECKING:
    from prometheus_client import Metric

    from .database import Database

_NANO = 10**9
_ATTO = 10**18
_SECONDS = 10
_MOST_CONNECTIONS = 4
_LEAST_TOKEN = 16
"""Characters: a token of random ones cannot be guessed."""


def load_token(file: Path) -> str:
    """Return the token that a file holds. Raises ValueError: it cannot be read, others can, or it is short."""
    refuse_open(file, "the token of --metrics")
    try:
        token = file.read_text("ascii").strip()
    except (OSError, ValueError):
        raise ValueError("the token of --metrics cannot be read") from None
    if len(token) < _LEAST_TOKEN:
        raise ValueError(f"the token of --metrics is too short: {_LEAST_TOKEN} characters at least")
    return token


@contextmanager
def serve_metrics(
    address: tuple[str, int],
    databases: Sequence[Database],
    connections: Callable[[Database], int],
    token: str | None,
    encryption: Callable[[], Encryption | None],
) -> Iterator[int]:
    """Serve from a thread of its own within the block, which is given the port.

    `connections`: how many analysts' there are. `token`: what a request has to bring, if any. `encryption`: the
    server's, asked for each connection, with which it speaks beyond the loopback. Raises CannotListen.
    """
    registry = CollectorRegistry(auto_describe=False)  # the ledger is not looked at before somebody asks
    registry.register(_Counts(databases, connections))
    ProcessCollector(registry=registry)
    try:
        server = _Server(address, registry, token, encryption)
    except OSError as error:
        raise CannotListen(*address, error) from None
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


_Request = socket.socket | tuple[bytes, socket.socket]
"""As the standard library's servers have it; a stream's is a socket."""


@dataclass
class _Asked:
    """A connection that is answered, which the watchdog can break."""

    connection: socket.socket

    def interrupt(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    """A thread for each of a few connections."""

    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], registry: CollectorRegistry, token: str | None,
        encryption: Callable[[], Encryption | None],
    ) -> None:  # fmt: skip
        self.address_family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        super().__init__(address, _Handler)
        self.registry, self.token = registry, token
        self._own, self.is_local = address[0], is_loopback(address[0])
        self._encryption = encryption
        self._places = threading.BoundedSemaphore(_MOST_CONNECTIONS)

    def process_request(self, request: _Request, client_address: object) -> None:
        """Begin a thread for a connection; who finds no place is closed at once."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: _Request, client_address: object) -> None:
        """Answer one connection, and give its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def finish_request(self, request: _Request, client_address: object) -> None:
        """Answer within the time; beyond the loopback over TLS, whose beginning holds up no other connection."""
        assert isinstance(request, socket.socket)
        asked = _Asked(request)
        with interrupt_after(asked, _SECONDS):
            if not self.is_local:
                encryption = self._encryption()
                assert encryption is not None  # the server does not start without
                asked.connection = encryption.context.wrap_socket(
                    request, server_side=True, do_handshake_on_connect=False
                )
            with asked.connection:
                super().finish_request(asked.connection, client_address)

    def is_host(self, host: str | None) -> bool:
        """Say whether a request's host is this server: beyond the loopback any, as it has a token."""
        names = [f"{name}:{self.server_port}" for name in (self._own, "127.0.0.1", "localhost", "[::1]")]
        return not self.is_local or host in names

    def is_reader(self, authorization: str) -> bool:
        """Say whether a request brings the token."""
        wanted = f"Bearer {self.token}".encode()
        return self.token is None or hmac.compare_digest(authorization.encode(errors="replace"), wanted)

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SECONDS
    server_version = "dpsql"
    sys_version = ""

    def do_GET(self) -> None:
        if not self.server.is_host(self.headers.get("Host")):
            self._say(421, "This server goes by another name.")
        elif not self.server.is_reader(self.headers.get("Authorization", "")):
            self._say(401, "A token is asked for.", WWW_Authenticate="Bearer")
        elif self.path.partition("?")[0] not in ("/metrics", "/"):
            self._say(404, "Counts are at /metrics.")
        else:
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            self._reply(200, encode(self.server.registry), kind)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no GET, or no HTTP, without telling it back."""
        self._say(405 if code == 501 else code, "Counts are only read.")

    def _say(self, status: int, words: str, **headers: str) -> None:
        self._reply(status, f"{words}\n".encode(), "text/plain; charset=utf-8", **headers)

    def _reply(self, status: int, content: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind, "Content-Length": str(len(content)), "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", **headers,
        }.items():  # fmt: skip
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep quiet: the log has lines of its own."""


class _Counts(Collector):
    def __init__(self, databases: Sequence[Database], connections: Callable[[Database], int]) -> None:
        self._databases, self._connections = databases, connections

    def collect(self) -> Iterator[Metric]:
        """Return all counts as they are; each of its database."""
        answered = CounterMetricFamily(
            "dpsql_answered", "Queries that were answered, by how.", labels=["database", "outcome"]
        )
        refused = CounterMetricFamily(
            "dpsql_refused", "Statements that ended in an error.", labels=["database", "sqlstate"]
        )
        durations = HistogramMetricFamily(
            "dpsql_answer_seconds", "From a query to its answer.", labels=["database"]
        )
        gauges: dict[str, GaugeMetricFamily] = {}
        for database in self._databases:
            tally = database.tally
            for outcome, number in sorted(tally.answered.items()):
                answered.add_metric([database.name, outcome], number)
            for code, number in sorted(tally.refused.items()):
                refused.add_metric([database.name, code], number)
            durations.add_metric([database.name], _buckets(tally), tally.seconds)
            connections = self._connections(database)
            for name, said, value in (
                ("connections", "Connections of analysts.", connections),
                *_answers(database),
                *_budget(database),
                *_witness(database),
            ):
                gauge = gauges.setdefault(name, GaugeMetricFamily(f"dpsql_{name}", said, labels=["database"]))
                gauge.add_metric([database.name], value)
        yield from (answered, refused, durations, *gauges.values())


def _buckets(tally: Tally) -> list[tuple[str, int]]:
    ends = (*map(str, SECONDS), "+Inf")
    return list(zip(ends, accumulate(tally.durations), strict=True))


def _answers(database: Database) -> Iterator[tuple[str, str, float]]:
    """Yield what the answers that are kept for clients take."""
    memory = database.sessions.memory
    yield "answers_memory_bytes", "What answers take in memory.", memory.held
    yield "answers_memory_most_bytes", "The most of it since the start.", memory.most
    yield "answers_files_bytes", "What answers take in files.", memory.in_files


def _witness(database: Database) -> Iterator[tuple[str, str, float]]:
    """Yield what became of telling the witness, where there is one."""
    if database.witness is not None:
        yield (
            "witness_records",
            "How many of the log's records the witness was told of.",
            database.witness.records,
        )
        yield "witness_failures", "How often it could not be told.", database.witness.failures


def _budget(database: Database) -> Iterator[tuple[str, str, float]]:
    """Yield what is spent and the caps; that there is no telling while the ledger cannot be read."""
    up = "Whether the ledger can be read."
    try:
        status = database.status()
    except DpsqlError:
        yield "ledger_up", up, 0
        return
    yield "ledger_up", up, 1
    everybody = status.scopes[0]
    unit, per = ("rho", _ATTO) if status.in_rho else ("epsilon", _NANO)
    for name, used, most, scale in (
        (unit, everybody.spent, everybody.cap, per),
        ("delta", status.delta_spent_atto, status.delta_cap_atto, _ATTO),
    ):
        whole = f"{name} for the newest period that was charged" if status.of else name
        yield f"{name}_spent", f"What is spent of {whole}.", used / scale
        yield f"{name}_cap", f"What may be spent of {whole}.", most / scale
        yield f"{name}_left", f"What is left of {whole}.", max(0, most - used) / scale
