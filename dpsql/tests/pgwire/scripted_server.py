"""A blocking server on loopback around `Connection`, which gives scripted answers: what a real client needs."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dpsql.pgwire import (
    AuthenticationFailed,
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    AuthenticationSASLFinal,
    BackendKeyData,
    Bind,
    BindComplete,
    CancelRequest,
    Close,
    CloseComplete,
    CommandComplete,
    CopyDone,
    CopyOutResponse,
    CopyRows,
    Describe,
    EmptyQueryResponse,
    EncryptionAccepted,
    EncryptionRefused,
    ErrorResponse,
    Event,
    Execute,
    FieldDescription,
    Flush,
    Format,
    FunctionCall,
    GSSENCRequest,
    NegotiateProtocolVersion,
    NoData,
    NoticeResponse,
    ParameterDescription,
    ParameterStatus,
    Parse,
    ParseComplete,
    PortalSuspended,
    ProtocolConnection,
    Query,
    ReadyForQuery,
    RemoteProtocolError,
    RowDescription,
    RowEncoder,
    SASLInitialResponse,
    SASLResponse,
    ScramExchange,
    ServerMessage,
    SSLRequest,
    StartupMessage,
    State,
    Sync,
    Target,
    Terminate,
    TransactionStatus,
    Unreadable,
    Verifier,
    Waiting,
    last_message,
    mock_verifier,
    read_parameter,
)

KEY = bytes(range(1, 33))
_READY = ReadyForQuery(TransactionStatus.IDLE)


@dataclass(frozen=True)
class Answer:
    """What a statement gives: rows of columns, a copy, an error, or nothing but its tag."""

    columns: tuple[FieldDescription, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    tag: str = ""
    parameters: tuple[int, ...] = ()
    echo: bool = False
    """The parameters are the row."""
    copy: tuple[CopyRows, ...] | None = None
    error: ErrorResponse | None = None
    notice: NoticeResponse | None = None


@dataclass
class Script:
    """What the server answers, and what it saw."""

    answers: dict[str, Answer]
    verifiers: dict[str, Verifier] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    certificate_hash: bytes | None = None
    seen: list[Event] = field(default_factory=list)
    cancelled: list[CancelRequest] = field(default_factory=list)


@dataclass
class _Portal:
    answer: Answer
    formats: tuple[Format, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def columns(self) -> tuple[FieldDescription, ...]:
        return tuple(
            replace(column, format=form)
            for column, form in zip(self.answer.columns, self.formats, strict=True)
        )


class ScriptedSession:
    """One connection of a client: what came in, what goes out. No socket."""

    def __init__(self, script: Script, *, nonce: str | None = None) -> None:
        self.script, self.nonce = script, nonce
        self.connection = ProtocolConnection()
        self.statements: dict[str, Answer] = {}
        self.portals: dict[str, _Portal] = {}
        self.exchange: ScramExchange | None = None
        self.version = (3, 0)
        self.is_encrypted = self.is_over = False
        self._out = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Take bytes and return the replies to what is complete."""
        self.connection.receive_data(data)
        self._out.clear()
        try:
            while not isinstance(event := self.connection.next_event(), Waiting):
                self.script.seen.append(event)
                self._answer(event)
        except RemoteProtocolError as error:
            self._send(last_message(error))
        except AuthenticationFailed:
            self._send(ErrorResponse("28P01", "password authentication failed", fatal=True))
        self.is_over = self.connection.state is State.CLOSED
        return bytes(self._out)

    def _send(self, *replies: ServerMessage) -> None:
        self._out += self.connection.send(*replies)

    def _answer(self, event: Event) -> None:
        match event:
            case SSLRequest() if self.script.tls is not None:
                self._send(EncryptionAccepted())
                self.is_encrypted = True
            case SSLRequest() | GSSENCRequest():
                self._send(EncryptionRefused())
            case CancelRequest():
                self.script.cancelled.append(event)
            case StartupMessage():
                self._begin(event)
            case SASLInitialResponse():
                assert self.exchange is not None
                self._send(AuthenticationSASLContinue(self.exchange.challenge(event.mechanism, event.data)))
            case SASLResponse():
                assert self.exchange is not None
                self._send(AuthenticationSASLFinal(self.exchange.confirm(event.data)))
                self._start()
            case Query():
                self._query(event.sql)
            case FunctionCall():
                self._send(ErrorResponse("0A000", "function calls are not supported"), _READY)
            case Unreadable():
                self._send(ErrorResponse(event.sqlstate, event.message))
            case Sync():
                self._send(_READY)
            case Flush() | Terminate():
                pass
            case _:
                self._extended(event)

    def _begin(self, event: StartupMessage) -> None:
        self.version = event.version
        if event.must_negotiate:
            self._send(NegotiateProtocolVersion(event.version, event.unknown_options))
        if not self.script.verifiers:
            self._start()
            return
        verifier = self.script.verifiers.get(event.user) or mock_verifier(b"secret", event.user)
        binding = self.script.certificate_hash if self.is_encrypted else None
        self.exchange = ScramExchange(verifier, certificate_hash=binding, nonce=self.nonce)
        self._send(AuthenticationSASL(self.exchange.mechanisms))

    def _start(self) -> None:
        statuses = {
            "server_version": "15.0",
            "client_encoding": "UTF8",
            "server_encoding": "UTF8",
            "DateStyle": "ISO, MDY",
            "IntervalStyle": "postgres",
            "TimeZone": "UTC",
            "integer_datetimes": "on",
            "standard_conforming_strings": "on",
        }
        key = KEY if self.version >= (3, 2) else KEY[:4]
        self._send(
            AuthenticationOk(),
            *[ParameterStatus(name, value) for name, value in statuses.items()],
            BackendKeyData(4711, key),
            _READY,
        )

    def _query(self, sql: str) -> None:
        statements = [part.strip() for part in sql.split(";") if part.strip()]
        if not statements:
            self._send(EmptyQueryResponse(), _READY)
            return
        for statement in statements:
            answer = self._find(statement)
            if answer.notice:
                self._send(answer.notice)
            if answer.error is not None:
                self._send(answer.error)
                break
            portal = _Portal(answer, (Format.TEXT,) * len(answer.columns), answer.rows)
            if answer.columns and answer.copy is None:
                self._send(RowDescription(portal.columns))
            self._rows(portal, 0)
        self._send(_READY)

    def _find(self, sql: str) -> Answer:
        unknown = ErrorResponse("42601", "not in the script", hint="Write it.", position=1)
        return self.script.answers.get(sql.rstrip("; "), Answer(error=unknown))

    def _rows(self, portal: _Portal, limit: int) -> None:
        answer = portal.answer
        if answer.copy is not None:
            binary = any(b"PGCOPY" in piece.wire for piece in answer.copy)
            self._send(CopyOutResponse(Format(binary), len(answer.columns)), *answer.copy, CopyDone())
            self._send(CommandComplete(f"COPY {len(answer.rows)}"))
            return
        now = portal.rows[:limit] if limit else portal.rows
        portal.rows = portal.rows[len(now) :]
        if now:
            self._send(RowEncoder(portal.columns).encode(now))
        suspended = limit and len(now) == limit
        self._send(PortalSuspended() if suspended else CommandComplete(answer.tag or f"SELECT {len(now)}"))

    def _extended(self, event: Event) -> None:
        match event:
            case Parse():
                answer = self._find(event.sql)
                declared = [*event.parameter_types, *[0] * len(answer.parameters)]
                # What the client declares holds: JDBC refuses another type in ParameterDescription.
                types = tuple(given or own for own, given in zip(answer.parameters, declared, strict=False))
                self.statements[event.statement] = replace(answer, parameters=types)
                self._send(answer.error or ParseComplete())
            case Bind():
                answer = self.statements[event.statement]
                rows = answer.rows
                if answer.echo:
                    given = zip(answer.parameters, event.parameter_formats, event.parameters, strict=True)
                    rows = (tuple(read_parameter(oid, form, data) for oid, form, data in given),)
                self.portals[event.portal] = _Portal(answer, event.column_formats(len(answer.columns)), rows)
                self._send(BindComplete())
            case Describe(Target.STATEMENT):
                answer = self.statements[event.name]
                columns = RowDescription(answer.columns) if answer.columns else NoData()
                self._send(ParameterDescription(answer.parameters), columns)
            case Describe():
                portal = self.portals[event.name]
                self._send(RowDescription(portal.columns) if portal.columns else NoData())
            case Execute():
                portal = self.portals[event.portal]
                if portal.answer.notice:
                    self._send(portal.answer.notice)
                self._rows(portal, event.max_rows)
            case Close():
                self._send(CloseComplete())
            case _:
                raise AssertionError(event)


@contextmanager
def serve(script: Script, *, chunk: int = 65536) -> Iterator[int]:
    """Serve on a free loopback port, which this gives; every error in a session is raised at the end."""
    failures: list[BaseException] = []
    threads: list[threading.Thread] = []

    def session(sock: socket.socket) -> None:
        try:
            _converse(script, sock, chunk)
        except Exception as error:  # noqa: BLE001  # raised below
            failures.append(error)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, session, threads), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for one in (thread, *threads):
                one.join(timeout=300)
    if failures:
        raise failures[0]


def _accept(
    listener: socket.socket, session: Callable[[socket.socket], None], threads: list[threading.Thread]
) -> None:
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        sock.settimeout(300)
        threads.append(threading.Thread(target=session, args=(sock,), daemon=True))
        threads[-1].start()


def _converse(script: Script, sock: socket.socket, chunk: int) -> None:
    session = ScriptedSession(script)
    is_encrypted = False
    try:
        while not session.is_over and (data := sock.recv(chunk)):
            sock.sendall(session.feed(data))
            if session.is_encrypted and not is_encrypted:
                assert script.tls is not None
                sock = script.tls.wrap_socket(sock, server_side=True)
                is_encrypted = True
    except ConnectionError:
        pass
    finally:
        sock.close()
