"""What is DuckDB's own about a snapshot of a real file; `test_snapshot` has what holds on every engine."""

from __future__ import annotations

import decimal
import sqlite3
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import duckdb
import pytest

from dpsql.backends import Backend, DuckDBBackend, open_backend
from dpsql.errors import EngineFailure, PolicyError

SECRET = "Chandler"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "campus.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE student (id INTEGER PRIMARY KEY, name VARCHAR)")
    connection.execute("CREATE SEQUENCE numbers")
    connection.execute("INSERT INTO student VALUES (1, ?), (2, 'Ada')", [SECRET])
    connection.close()
    return path


@pytest.fixture
def backend(path: Path) -> Iterator[Backend]:
    backend = open_backend(f"duckdb:{path}")
    yield backend
    assert backend.close_idle()


def rows(backend: Backend, sql: str, parameters: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    with backend.snapshot() as snapshot:
        return [row for chunk in snapshot.run(sql, parameters) for row in chunk]


def test_numbers_come_exact(backend: Backend) -> None:
    greatest, least = 2**127 - 1, -(2**127)
    (row,) = rows(
        backend,
        f"SELECT {greatest}::HUGEINT, '{least}'::HUGEINT, {2**128 - 1}::UHUGEINT, {2**63 - 1}::BIGINT,"
        f" 99999999999999999999999999999999999.999::DECIMAL(38,3), 0.1::DECIMAL(38,37),"
        f" (SELECT SUM(i::HUGEINT * {10**20}) FROM range(1000) AS r(i))",
    )
    assert row == (
        greatest,
        least,
        2**128 - 1,
        2**63 - 1,
        decimal.Decimal("99999999999999999999999999999999999.999"),
        decimal.Decimal("0.1"),
        499500 * 10**20,
    )
    assert [type(value) for value in row] == [int] * 4 + [decimal.Decimal] * 2 + [int]


def test_exact_numbers_can_be_sent(backend: Backend) -> None:
    numbers = (10**38 - 1, -(2**63), 2**63, decimal.Decimal("0.10"), None, "it's", True)
    assert rows(backend, "SELECT ?, ?, ?, ?, ?, ?, ?", numbers) == [numbers]
    assert rows(backend, "SELECT CAST(? AS VARCHAR)", (2**64 + 1,)) == [("18446744073709551617",)]


@pytest.mark.parametrize(
    "number", [10**38, -(10**38), decimal.Decimal("1e38"), decimal.Decimal("1e-39"), decimal.Decimal("NaN")]
)
def test_a_number_that_would_be_rounded_is_not_sent(backend: Backend, number: object) -> None:
    with pytest.raises(EngineFailure) as caught:
        rows(backend, "SELECT ?", (number,))
    assert caught.value.detail == "refused: a parameter of more than 38 digits"


def test_a_snapshot_is_of_one_moment() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x INT)")
    backend = DuckDBBackend.over(connection)
    with backend.snapshot() as snapshot:
        before = snapshot.schema()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("CREATE TABLE u (x INT)")
        assert list(snapshot.run("SELECT COUNT(*) FROM t")) == [[(0,)]]
        assert snapshot.schema() == before
    assert rows(backend, "SELECT COUNT(*) FROM t") == [(1,)]
    connection.close()


FORBIDDEN = [
    "CREATE MACRO m() AS 1",
    "COPY student TO '{folder}/out.csv'",
    "COPY student FROM '{folder}/in.csv'",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "EXPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/other.duckdb'",
    "ATTACH ':memory:' AS other",
    "SELECT * FROM read_csv('{folder}/in.csv')",
    "SELECT * FROM read_text('{folder}/in.csv')",
    "SELECT * FROM read_blob('{folder}/in.csv')",
    "SELECT * FROM read_json('{folder}/in.csv')",
    "SELECT * FROM read_parquet('{folder}/in.csv')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM '{folder}/in.csv'",
    "SELECT * FROM python_variable",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET threads = 1",
    "SET VARIABLE x = 1",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_nothing_is_written_and_no_file_is_reached(path: Path, backend: Backend, sql: str) -> None:
    (path.parent / "in.csv").write_text("id,name\n3,x\n", encoding="utf-8")
    python_variable = duckdb.sql("SELECT 1 AS x")
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(EngineFailure):
        rows(backend, sql.replace("{folder}", str(path.parent)))
    assert backend.close_idle()
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
    assert python_variable.fetchall() == [(1,)]


SEALED = [
    "INSERT INTO student VALUES (3, 'x')",
    "CREATE TABLE t (x INT)",
    "COPY student TO '{folder}/out.csv'",
    "ATTACH '{folder}/other.duckdb'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "LOAD httpfs",
]


@pytest.mark.parametrize("sql", SEALED)
def test_the_file_is_sealed_whatever_the_statement(path: Path, backend: Backend, sql: str) -> None:
    """The second wall: the raw cursor under a snapshot, without the check for a single SELECT."""
    with backend.snapshot() as snapshot, pytest.raises(duckdb.Error):
        snapshot._cursor.execute(sql.replace("{folder}", str(path.parent)))  # type: ignore[attr-defined]


def test_the_settings_that_hold_on_a_file(backend: Backend) -> None:
    expected = {
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "default_collation": "",
        "default_null_order": "NULLS_LAST",
        "enable_external_access": "false",
        "ieee_floating_point_ops": "true",
        "integer_division": "false",
        "lock_configuration": "true",
        "python_enable_replacements": "false",
    }
    found = rows(backend, "SELECT name, value FROM duckdb_settings()")
    assert {name: value for name, value in found if name in expected} == expected


def test_a_handed_in_connection_is_not_written_either() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x INT)")
    backend = DuckDBBackend.over(connection)
    for sql in ("INSERT INTO t VALUES (1)", "DROP TABLE t", "CREATE TABLE u (x INT)"):
        with pytest.raises(EngineFailure):
            rows(backend, sql)
        with backend.snapshot() as snapshot, pytest.raises(duckdb.Error):
            snapshot._cursor.execute(sql)
    assert connection.execute("SELECT COUNT(*) FROM t").fetchall() == [(0,)]
    assert not backend.close_idle()
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(name AS INTEGER) FROM student",
        "SELECT CASE WHEN id = 1 THEN error(name) END FROM student",
        "SELECT to_months(id::INTEGER * 1000000000) FROM student",
    ],
)
def test_no_traceback_holds_a_value(backend: Backend, sql: str) -> None:
    with pytest.raises(EngineFailure) as caught:
        rows(backend, sql)
    failure = caught.value
    assert failure.__context__ is None
    assert failure.__cause__ is None
    everything = "".join(traceback.format_exception(failure)) + failure.detail + repr(failure) + str(failure)
    assert SECRET not in everything
    assert "1000000000" not in failure.detail
    assert failure.sqlstate == "58V01"
    assert failure.message == "the database could not answer this statement"


def test_an_idle_file_can_be_written(path: Path, backend: Backend) -> None:
    assert rows(backend, "SELECT COUNT(*) FROM student") == [(2,)]
    assert backend.close_idle()
    writer = duckdb.connect(str(path))
    writer.execute("INSERT INTO student VALUES (3, 'Bob')")
    writer.close()
    assert rows(backend, "SELECT COUNT(*) FROM student") == [(3,)]


def test_a_writer_in_this_process_makes_it_busy(path: Path, backend: Backend) -> None:
    writer = duckdb.connect(str(path))
    with pytest.raises(EngineFailure) as caught:
        rows(backend, "SELECT 1")
    writer.close()
    assert caught.value.detail == "busy: this process has the database file open for writing"
    assert (caught.value.sqlstate, caught.value.hint) == ("55006", "ask again in a moment")


def test_a_short_write_is_waited_for(path: Path, backend: Backend) -> None:
    writer = duckdb.connect(str(path))
    writer.execute("INSERT INTO student VALUES (4, 'Eve')")
    ending = threading.Timer(0.3, writer.close)
    ending.start()
    assert rows(backend, "SELECT COUNT(*) FROM student") == [(3,)]
    ending.join()
    assert rows(backend, "SELECT 1") == [(1,)]


def test_a_writer_in_another_process_makes_it_busy(path: Path, backend: Backend) -> None:
    program = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        with pytest.raises(EngineFailure) as caught:
            rows(backend, "SELECT 1")
        writer.communicate()
    assert caught.value.detail == "busy: another process has the database file open for writing"
    assert str(path) not in str(caught.value)
    assert rows(backend, "SELECT 1") == [(1,)]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    backend = open_backend(f"duckdb:{tmp_path / 'none.duckdb'}")
    with pytest.raises(EngineFailure) as caught, backend.snapshot():
        pass
    assert caught.value.detail == "open: the database file does not exist"
    assert not (tmp_path / "none.duckdb").exists()


def _other(path: Path) -> None:
    path.write_bytes(b"not a database" * 1000)


def _sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")


def _cut(path: Path) -> None:
    duckdb.connect(str(path)).close()
    path.write_bytes(path.read_bytes()[:5000])


def _damaged(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM range(10)")
    held = bytearray(path.read_bytes())
    held[12_288 + 8 : 12_288 + 64] = bytes(56)
    path.write_bytes(held)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_other, "the file is no DuckDB database"),
        (Path.touch, "the file is no DuckDB database"),
        (_sqlite, "the file is no DuckDB database"),
        (Path.mkdir, "that is a folder, and no file"),
        (_cut, "the file is damaged, or was cut short"),
        (_damaged, "the file is damaged, or was cut short"),
    ],
)
def test_a_file_that_is_no_database(make: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    """Its name may have any word in it: what is said is of the file."""
    path = tmp_path / "Could not set lock.duckdb"
    make(path)
    with pytest.raises(EngineFailure) as caught, open_backend(f"duckdb:{path}").snapshot():
        pass
    assert caught.value.detail == f"open: {said}"


def test_a_connection_with_other_meanings_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute("SET default_collation = 'NOCASE'")
    with pytest.raises(PolicyError) as caught:
        DuckDBBackend.over(connection)
    connection.close()
    assert caught.value.message == (
        "the DuckDB connection has default_collation = 'NOCASE'; "
        "SET default_collation = '' before handing it in"
    )


@pytest.mark.parametrize("url", ["", "duckdb:", "duckdb::memory:", "mysql://h/x", "md:x", "campus.duckdb"])
def test_what_is_no_database_url(url: str) -> None:
    with pytest.raises(PolicyError) as caught:
        open_backend(url)
    assert caught.value.message == (
        'database: unknown kind of URL; write "duckdb:<file>", postgresql://user@host/database or spark://host:port'
    )


def test_two_backends_share_a_file_that_is_locked(tmp_path: Path) -> None:
    """The second one finds the configuration locked, and has no cursors that may group by direct tables."""
    path = tmp_path / "shared.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i FROM range(10) AS s(i)")
    first, second = DuckDBBackend(path), DuckDBBackend(path)
    with first.snapshot() as one, second.snapshot() as other:
        for snapshot in (one, other):
            (rows,) = snapshot.run("SELECT i, COUNT(*) FROM t GROUP BY i ORDER BY i", is_direct=True)
            assert rows == [(i, 1) for i in range(10)]
            with pytest.raises(duckdb.Error):
                snapshot._cursor.execute("SET GLOBAL enable_external_access = true")
        assert one._taken is not None
        assert other._taken is None
    assert first.close_idle()
    assert second.close_idle()
    with duckdb.connect(str(path)) as connection:  # no cursor holds the file
        connection.execute("INSERT INTO t VALUES (1)")


def test_a_direct_cursor_is_stopped_given_back_and_runs_out(tmp_path: Path) -> None:
    path = tmp_path / "direct.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i FROM range(10) AS s(i)")
    backend = DuckDBBackend(path)
    with ExitStack() as stack:
        opened = [stack.enter_context(backend.snapshot()) for _ in range(6)]
        for snapshot in opened:
            assert [*snapshot.run("SELECT COUNT(*) FROM t", is_direct=True)] == [[(10,)]]
        assert [snapshot._taken is not None for snapshot in opened] == [True] * 4 + [False] * 2
        opened[0].cancel()
        with pytest.raises(EngineFailure) as stopped:
            [*opened[0].run("SELECT COUNT(*) FROM t", is_direct=True)]
        assert stopped.value.sqlstate == "57014"
    with backend.snapshot() as snapshot:
        assert [*snapshot.run("SELECT COUNT(*) FROM t", is_direct=True)] == [[(10,)]]
        assert snapshot._taken is not None, "what was stopped has come back"
        with pytest.raises(EngineFailure):
            [*snapshot.run("INSERT INTO t VALUES (1)", is_direct=True)]
