"""What may go wrong between us and a Spark Connect server, with servers of the tests' own that do it. Needs no Spark."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from dpsql.backends import spark_backend as backends
from dpsql.backends import spark_connection as module
from dpsql.backends.spark_backend import SparkBackend
from dpsql.backends.spark_connection import SETTINGS, TOKEN, SparkConnection, SparkTarget, guarded, messages
from dpsql.errors import EngineFailure, FilesChanged, PolicyError
from dpsql.waits import Stop, Stopped, until

from .conftest import SECRET

grpc = module.grpc
pa = module.pa
KEY = "spark.sql.ansi.enabled"


class Server(module.base_pb2_grpc.SparkConnectServiceServicer):  # type: ignore[misc]
    """A server that answers as a session expects, but for what a test changes."""

    def __init__(self) -> None:
        self.version, self.settings, self.token, self.number = "4.3.0", dict[str, str](), "", "one"
        self.executed, self.released, self.interrupted = 0, 0, threading.Event()
        self.execute: Callable[[Any], Iterator[Any]] = lambda context: iter(())
        self.delay = threading.Event()
        self.delay.set()

    def AnalyzePlan(self, request: Any, context: Any) -> Any:
        self._let_in(context)
        shown = messages.AnalyzePlanResponse.SparkVersion(version=self.version)
        return self._of(messages.AnalyzePlanResponse(spark_version=shown), request)

    def Config(self, request: Any, context: Any) -> Any:
        self._let_in(context)
        answer = messages.ConfigResponse()
        for key in request.operation.get.keys:
            answer.pairs.add(key=key, value=self.settings.get(key, SETTINGS.get(key, "")))
        return self._of(answer, request)

    def ExecutePlan(self, request: Any, context: Any) -> Iterator[Any]:
        self.executed += 1
        for answer in self.execute(context):
            yield self._of(answer, request)

    def Interrupt(self, request: Any, context: Any) -> Any:
        self.interrupted.set()
        return self._of(messages.InterruptResponse(), request)

    def ReleaseSession(self, request: Any, context: Any) -> Any:
        self.released += 1
        return self._of(messages.ReleaseSessionResponse(), request)

    def _of(self, answer: Any, request: Any) -> Any:
        answer.session_id, answer.server_side_session_id = request.session_id, self.number
        return answer

    def _let_in(self, context: Any) -> None:
        self.delay.wait(60)
        shown = dict(context.invocation_metadata()).get("authorization")
        if self.token and shown != f"Bearer {self.token}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, f"no {SECRET}")


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    with ThreadPoolExecutor(4) as pool:
        listener = grpc.server(pool)
        module.base_pb2_grpc.add_SparkConnectServiceServicer_to_server(server, listener)
        server.port = listener.add_insecure_port("127.0.0.1:0")  # type: ignore[attr-defined]
        listener.start()
        yield server
        server.delay.set()
        listener.stop(None).wait()


def target(server: Server) -> SparkTarget:
    return SparkTarget("127.0.0.1", server.port)  # type: ignore[attr-defined]


def rows(connection: SparkConnection) -> list[dict[str, object]]:
    return guarded(
        "run", lambda: [row for one in connection.stream("SELECT 1", {}) for row in one.to_pylist()]
    )


def answer(values: list[int], offset: int = 0) -> Any:
    batch = pa.record_batch([pa.array(values)], ["x"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    part = messages.ExecutePlanResponse.ArrowBatch(data=sink.getvalue().to_pybytes(), row_count=len(values))
    part.start_offset = offset
    return messages.ExecutePlanResponse(arrow_batch=part)


def detail(action: Callable[[], object]) -> str:
    """Return the failure that an action ends in, which holds nothing that a server said."""
    with pytest.raises(EngineFailure) as caught:
        action()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None
    return caught.value.detail


# --- at the door ---------------------------------------------------------------------------------------------


def test_a_session_is_opened_asked_and_released(server: Server) -> None:
    server.execute = lambda context: iter([answer([1, 2]), messages.ExecutePlanResponse(), answer([3], 2)])
    connection = SparkConnection(target(server))
    assert rows(connection) == [{"x": 1}, {"x": 2}, {"x": 3}]
    connection.check()
    connection.close()
    assert (server.executed, server.released) == (1, 1)


@pytest.mark.parametrize(
    "version", ["3.5.1", "4.0.0", "4.2.9", "4.30.0", "4.4.0", "5.0.0", "", f"{SECRET}\n"]
)
def test_a_version_that_is_not_tested_is_refused(server: Server, version: str) -> None:
    server.version = version
    with pytest.raises(PolicyError, match=r"^\w+: database: is Spark .*; 4\.3 can be asked") as caught:
        SparkConnection(target(server))
    assert f"{SECRET}\n" not in str(caught.value)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_does_not_hold_is_named(server: Server, name: str) -> None:
    server.settings[name] = "LEGACY"
    with pytest.raises(PolicyError) as caught:
        SparkConnection(target(server))
    assert caught.value.message == f"database: the server does not keep the setting {name} = {SETTINGS[name]}"


def test_nothing_is_passed_over_or_answered_by_what_files_say() -> None:
    for name in (
        "spark.sql.parquet.filterPushdown",
        "spark.sql.parquet.aggregatePushdown",
        "spark.databricks.delta.stats.skipping",
        "spark.databricks.delta.stats.limitPushdown.enabled",
        "spark.databricks.delta.optimizeMetadataQuery.enabled",
    ):
        assert SETTINGS[name] == "false"


def test_a_token_is_shown_and_a_wrong_one_is_told_apart(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "hush")
    server.token = "hush"
    SparkConnection(target(server)).close()
    server.token = "another"
    said = f"open: the server asks for a token, or refuses the one it got; set {TOKEN} or a token_file"
    assert detail(lambda: SparkConnection(target(server))) == said
    monkeypatch.delenv(TOKEN)
    assert detail(lambda: SparkConnection(target(server))) == said


def test_nothing_listens_there() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        assert detail(lambda: SparkConnection(SparkTarget("127.0.0.1", port))) == (
            "open: no server listens where the URL says"
        )


@contextmanager
def listener(reply: bytes | None) -> Iterator[int]:
    """Give the port of something that is no Spark: it sends `reply` and hangs up, or, for None, says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as own, ThreadPoolExecutor() as pool:
        kept = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = own.accept()
                except OSError:
                    return
                kept.append(connection)
                if reply is not None:
                    connection.sendall(reply)
                    connection.close()

        pool.submit(serve)
        try:
            yield own.getsockname()[1]
        finally:
            own.shutdown(socket.SHUT_RDWR)
            for connection in kept:
                connection.close()


def test_what_listens_there_is_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OPEN_SECONDS", 2)
    with listener(f"HTTP/1.1 200 OK\r\n\r\n{SECRET}".encode()) as port:
        assert (
            detail(lambda: SparkConnection(SparkTarget("127.0.0.1", port)))
            == "open: the server cannot be reached"
        )
    with listener(None) as port:
        began = time.monotonic()
        said = detail(lambda: SparkConnection(SparkTarget("127.0.0.1", port)))
    assert said in ("open: the server did not answer in time", "open: the server cannot be reached")
    assert time.monotonic() - began < 60


def test_a_server_without_tls_is_told_apart(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OPEN_SECONDS", 10)
    near = SparkTarget("127.0.0.1", server.port, uses_tls=True)  # type: ignore[attr-defined]
    assert (
        detail(lambda: SparkConnection(near))
        == "open: the server does not speak TLS, and the URL asks for it"
    )


def test_the_client_is_asked_for_where_it_is_not_installed() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from dpsql.backends import open_backend\n"
        "from dpsql.errors import PolicyError\n"
        "try: open_backend('spark://localhost')\n"
        "except PolicyError as error: print(error.message, '|', error.hint)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == 'database: Spark\'s client is not installed | pip install "dpsql[spark]"\n'


# --- while a statement runs ----------------------------------------------------------------------------------


def failing(condition: str, state: str) -> Callable[[Any], Iterator[Any]]:
    """Return a statement that fails as Spark has one fail: with its class, and with a text that quotes a value."""

    def execute(context: Any) -> Iterator[Any]:
        yield answer([1])
        info = module.error_details_pb2.ErrorInfo(reason="x", domain="org.apache.spark")
        info.metadata.update(
            {"errorClass": condition, "sqlState": state, "errorId": "1", "stackTrace": SECRET}
        )
        status = module.rpc_status.status_pb2.Status(code=13, message=f"[{condition}] {SECRET}")
        status.details.add().Pack(info)
        context.abort_with_status(module.rpc_status.to_status(status))

    return execute


@pytest.mark.parametrize(
    ("condition", "state", "said"),
    [("CAST_INVALID_INPUT", "22018", "run: CAST_INVALID_INPUT 22018"),
     ("INVALID_HANDLE.SESSION_CHANGED", "HY000", "run: INVALID_HANDLE.SESSION_CHANGED HY000"),
     (f"value {SECRET}", f"{SECRET}", "run: error"), ("", "", "run: INTERNAL")],
)  # fmt: skip
def test_an_error_becomes_its_class_and_its_text_is_not_asked_for(
    server: Server, condition: str, state: str, said: str
) -> None:
    server.execute = failing(condition, state)
    connection = SparkConnection(target(server))
    assert detail(lambda: rows(connection)) == said
    connection.close()


def test_what_breaks_is_not_asked_again(server: Server) -> None:
    def breaks(context: Any) -> Iterator[Any]:
        yield answer([1])
        context.abort(grpc.StatusCode.UNAVAILABLE, SECRET)

    for code in (breaks, lambda context: context.abort(grpc.StatusCode.UNAVAILABLE, SECRET)):
        server.executed, server.execute = 0, code
        connection = SparkConnection(target(server))
        assert detail(lambda: rows(connection)) == "run: UNAVAILABLE"  # noqa: B023
        assert server.executed == 1
        connection.close()


def test_an_answer_that_is_not_whole_is_none(server: Server) -> None:
    connection = SparkConnection(target(server))
    for parts in ([answer([1], 5)], [answer([1]), answer([2], 3)]):
        server.execute = lambda context, parts=parts: iter(parts)  # type: ignore[misc]
        assert detail(lambda: rows(connection)) == "the server's answer is not whole"
    broken = messages.ExecutePlanResponse(arrow_batch=messages.ExecutePlanResponse.ArrowBatch(data=b"x"))
    server.execute = lambda context: iter([broken])
    assert detail(lambda: rows(connection)).startswith("run: ")
    connection.close()


def test_an_answer_of_another_server_is_none(server: Server) -> None:
    connection = SparkConnection(target(server))
    server.number, server.execute = "two", lambda context: iter([answer([1])])
    assert detail(lambda: rows(connection)) == "the server answered for another session"
    assert detail(connection.check) == "the server answered for another session"
    connection.close()


def waiting(context: Any) -> Iterator[Any]:
    ended = threading.Event()
    context.add_callback(ended.set)
    yield answer([1])
    ended.wait(60)


def test_what_runs_is_let_go_at_once_and_the_server_told(server: Server) -> None:
    server.execute = waiting
    connection = SparkConnection(target(server))
    threading.Timer(0.2, connection.interrupt).start()
    assert (
        detail(lambda: rows(connection)) == "run: the server stopped answering, or the statement was stopped"
    )
    assert server.interrupted.wait(60)
    assert not connection.is_running
    connection.close()


def test_a_server_that_answers_nothing_else_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PULSE_SECONDS", 0.2)
    server.execute = waiting
    connection = SparkConnection(target(server))
    server.delay.clear()
    assert (
        detail(lambda: rows(connection)) == "run: the server stopped answering, or the statement was stopped"
    )
    server.delay.set()
    connection.close()


def test_a_statement_that_has_to_end_waits_for_no_other_call(server: Server) -> None:
    """Settings that are read back, a session that is opened, one that is let go."""
    connection = SparkConnection(target(server))
    server.delay.clear()
    for call in (connection.check, lambda: SparkConnection(target(server))):
        start = time.monotonic()
        with until(Stop.after(0.2)), pytest.raises(Stopped):
            call()
        assert time.monotonic() - start < 2
    start = time.monotonic()
    with until(Stop.after(0.2)):
        connection.close()
    assert time.monotonic() - start < 2
    server.delay.set()


def test_a_server_that_answers_is_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PULSE_SECONDS", 0.1)

    def slow(context: Any) -> Iterator[Any]:
        time.sleep(1)
        yield answer([1])

    server.execute = slow
    connection = SparkConnection(target(server))
    assert rows(connection) == [{"x": 1}]
    connection.close()


def test_a_statement_has_an_end(server: Server) -> None:
    server.execute = waiting
    connection = SparkConnection(target(server), seconds=0.5)
    assert detail(lambda: rows(connection)) == "run: took too long"
    connection.close()


def test_a_value_that_is_not_sent_exactly_is_refused(server: Server) -> None:
    connection = SparkConnection(target(server))
    for value in (10**38, b"", [1], object()):
        assert detail(lambda: list(connection.stream("SELECT 1", {"p1": value}))).startswith("refused: ")  # noqa: B023
    assert server.executed == 0
    connection.close()


# --- a result, and the tables that it is of ------------------------------------------------------------------


class Tables:
    """Tables that change once they have been looked at so many times."""

    schema = None

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def open(self, session: object) -> Tables:
        return self

    def read_by(self, sql: str) -> list[str]:
        return ["visit"]

    def check(self, session: object, names: list[str]) -> None:
        assert names == self.read_by("")
        self.looks -= 1
        if self.looks < 0:
            raise FilesChanged("tables: changed", is_recorded=True)


def test_of_tables_that_changed_meanwhile_no_last_row_is_given(server: Server) -> None:
    server.execute = lambda context: iter([answer([1, 2]), answer([3], 2)])
    for size, given in ((3, []), (2, [[(1,), (2,)]]), (65536, [])):
        tables: Any = Tables(1)
        backend = SparkBackend(target(server), tables)
        with backend.snapshot() as snapshot:
            assert [row for chunk in snapshot.run("SELECT 1", (), size) for row in chunk] == [
                (1,),
                (2,),
                (3,),
            ]
            found = []
            with pytest.raises(FilesChanged):
                found.extend(snapshot.run("SELECT 1", (), size))
            assert found == given
            with pytest.raises(FilesChanged):
                snapshot.columns("SELECT 1")
        assert backend._pool.idle == []
    server.execute = lambda context: iter([answer([])])
    with pytest.raises(FilesChanged), SparkBackend(target(server), Tables(0)).snapshot() as snapshot:  # type: ignore[arg-type]
        list(snapshot.run("SELECT 1"))


def test_sessions_are_kept_only_where_nothing_failed(server: Server) -> None:
    server.execute = lambda context: iter([answer([1])])
    backend = SparkBackend(target(server), Tables(9**9))  # type: ignore[arg-type]
    for _ in range(3):
        with backend.snapshot() as snapshot:
            assert list(snapshot.run("SELECT 1")) == [[(1,)]]
            assert not backend.close_idle()
    assert (len(backend._pool.idle), server.released) == (1, 0)
    server.execute = failing("DIVIDE_BY_ZERO", "22012")
    with pytest.raises(EngineFailure), backend.snapshot() as snapshot:
        list(snapshot.run("SELECT 1"))
    assert (len(backend._pool.idle), server.released) == (0, 1)
    with backend.snapshot():
        pass
    server.number = "two"  # it was started again
    server.execute = lambda context: iter([answer([1])])
    with backend.snapshot() as snapshot:
        assert list(snapshot.run("SELECT 1")) == [[(1,)]]
    assert server.released == 2
    assert backend.close_idle()
    assert server.released == 3


def test_what_is_no_query_is_not_sent(server: Server) -> None:
    backend = SparkBackend(target(server), Tables(9**9))  # type: ignore[arg-type]
    with backend.snapshot() as snapshot:
        for sql in ("DROP TABLE t", "SELECT java_method('a', 'b')", "SELECT 1; SELECT 2", "SELECT '\\'"):
            assert detail(lambda: list(snapshot.run(sql))).startswith("refused: ")  # noqa: B023
            assert detail(lambda: snapshot.columns(sql)).startswith("refused: ")  # noqa: B023
    assert server.executed == 0
    assert backend.close_idle()


def test_more_sessions_than_there_are_wait_and_are_told(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "_WAIT_SECONDS", 0.1)
    backend = SparkBackend(target(server), Tables(9**9))  # type: ignore[arg-type]
    with ExitStack() as stack:
        for _ in range(backends._MOST_SESSIONS):
            stack.enter_context(backend.snapshot())
        assert detail(lambda: stack.enter_context(backend.snapshot())) == "busy: all 16 sessions are in use"
    with backend.snapshot():
        pass
    assert len(backend._pool.idle) == backends._MOST_KEPT
    assert backend.close_idle()


def test_a_program_without_a_file_can_use_the_client() -> None:
    """As `python -c` and the workers of tests are: the client would take them for its own examples, and end them."""
    code = (
        "import sys; import dpsql.backends.spark_backend; print(hasattr(sys.modules['__main__'], '__file__'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
