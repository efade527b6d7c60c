"""What a snapshot is on a real Spark: it reads exactly, sends nothing but queries, tells nothing, stops when told."""

from __future__ import annotations

import decimal
import logging
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from dpsql.backends.spark_backend import SparkBackend, rows_of
from dpsql.backends.spark_connection import SETTINGS, SparkConnection, guarded, guarding, messages, target_of
from dpsql.errors import EngineFailure, PolicyError
from dpsql.plan.dialects.dialect_spark import SPARK
from dpsql.tests.support.spark_server import SparkServer

from .conftest import SECRET

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = pytest.mark.spark

LONG = "SELECT COUNT(*) FROM range(1000000) AS a(i) CROSS JOIN range(1000000) AS b(j) WHERE i * j % 7 = 3"
MISTYPED = f"SELECT CAST('{SECRET}' AS BIGINT)"


@pytest.fixture(scope="module")
def owner(spark: SparkServer) -> Iterator[SparkSession]:
    """Give an owner's session, with a schema of students."""
    with SparkBackend.of(spark.url).session() as session:
        session.sql("CREATE SCHEMA campus")
        session.sql("CREATE TABLE campus.student (id INT, name STRING) USING parquet")
        session.sql(f"INSERT INTO campus.student VALUES (1, '{SECRET}'), (2, 'Ada')")
        yield session
        session.sql("DROP SCHEMA campus CASCADE")


@pytest.fixture
def backend(spark: SparkServer, owner: SparkSession) -> Iterator[SparkBackend]:
    backend = SparkBackend.of(spark.url, ["campus.student"])
    yield backend
    assert backend.close_idle()


def rows(backend: SparkBackend, sql: str, *parameters: object) -> list[tuple[object, ...]]:
    with backend.snapshot() as snapshot:
        return [row for chunk in snapshot.run(sql, parameters) for row in chunk]


def failure(backend: SparkBackend, sql: str, *parameters: object) -> EngineFailure:
    with pytest.raises(EngineFailure) as caught:
        rows(backend, sql, *parameters)
    return caught.value


# --- what is read ------------------------------------------------------------------------------------------


def test_a_query_with_parameters(backend: SparkBackend) -> None:
    named = "SELECT name FROM campus.student WHERE id = CAST(:p1 AS INT)"
    assert rows(backend, named, 2) == [("Ada",)]
    assert rows(backend, "SELECT 1 WHERE false") == []
    with backend.snapshot() as snapshot:
        (table,) = snapshot.schema().tables
        assert snapshot.schema().dialect == backend.dialect == "spark"
    assert table.path == ("campus", "student")
    assert [(column.name, column.not_null) for column in table.columns] == [("id", False), ("name", False)]


def test_rows_come_in_chunks(backend: SparkBackend) -> None:
    with backend.snapshot() as snapshot:
        chunks = list(snapshot.run("SELECT id FROM range(140000) ORDER BY id"))
        few = list(snapshot.run("SELECT id FROM range(1000) ORDER BY id", (), 300))
    assert [len(chunk) for chunk in chunks] == [65536, 65536, 8928]
    assert [row for chunk in chunks for row in chunk] == [(i,) for i in range(140_000)]
    assert [len(chunk) for chunk in few] == [300, 300, 300, 100]


def test_numbers_come_exact(backend: SparkBackend) -> None:
    wide = "99999999999999999999999999999999999.999"
    (row,) = rows(
        backend,
        f"SELECT CAST({2**63 - 1} AS BIGINT), CAST({10**38 - 1} AS DECIMAL(38, 0)), CAST(7 AS DECIMAL(38, 0)),"
        f" CAST('{wide}' AS DECIMAL(38, 3)), CAST(-2 AS DECIMAL(5, 2)), CAST('NaN' AS DOUBLE),"
        " CAST('-0.0' AS DOUBLE), CAST('5e-324' AS DOUBLE), CAST(NULL AS DECIMAL(38, 0))"
    )  # fmt: skip
    assert row[:3] == (2**63 - 1, 10**38 - 1, 7)
    assert [type(one) for one in row[:3]] == [int] * 3
    assert row[3:5] == (decimal.Decimal(wide), decimal.Decimal(-2))
    nan, zero, tiny, nothing = row[5:]
    assert isinstance(nan, float) and isinstance(zero, float)  # noqa: PT018
    assert math.isnan(nan)
    assert (math.copysign(1, zero), tiny, nothing) == (-1, 5e-324, None)


def test_parameters_travel_exactly(backend: SparkBackend) -> None:
    values: dict[str, list[object]] = {
        "BIGINT": [-(2**63), 0, 2**63 - 1],
        "DECIMAL(38,0)": [10**38 - 1, -(2**63) - 1],
        "DECIMAL(38,2)": [decimal.Decimal("0.10"), decimal.Decimal("-123456789012345678901234567890.12")],
        "DOUBLE": [0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf],
        "BOOLEAN": [True, False],
        "STRING": [
            "",
            "it's",
            'a"b\\c{,}',
            "\\",
            "${env:HOME}",
            "é\n\t🙂",
            ":p1",
            "'); DROP TABLE student --",
        ],
    }
    with backend.snapshot() as snapshot:
        for kind, expected in values.items():
            for value in (*expected, None):
                shown = f"CAST({SPARK.parameter(1, is_text=isinstance(value, str))} AS {kind})"
                assert list(snapshot.run(f"SELECT {shown}", [value])) == [[(value,)]]
    with pytest.raises(EngineFailure):
        rows(backend, f"SELECT {SPARK.parameter(1, is_text=True)}", "\ud800")


def test_columns_come_as_arrays(backend: SparkBackend) -> None:
    sql = (
        "SELECT CASE WHEN id <> 1 THEN id END, CAST(id AS DOUBLE) / 2, id = 1, CAST(id AS STRING),"
        " date_from_unix_date(CAST(id AS INT) - 1), CAST(id AS DECIMAL(38, 0)) FROM range(3) ORDER BY id"
    )
    with backend.snapshot() as snapshot:
        found = snapshot.columns(sql)
        nothing = snapshot.columns(f"{sql} LIMIT 0")
    assert [values.dtype.kind for values, _ in found] == ["i", "f", "b", "O", "M", "f"]
    assert [(values.dtype.kind, len(values)) for values, _ in nothing] == [(one, 0) for one in "ifbOMf"]
    assert [nulls is None for _, nulls in found] == [False, True, True, True, True, True]
    assert [str(one)[:10] for one in found[4][0]] == ["1969-12-31", "1970-01-01", "1970-01-02"]


# --- what is not -------------------------------------------------------------------------------------------


def test_every_setting_is_made_whatever_the_server_has(backend: SparkBackend) -> None:
    with backend.session() as session:
        assert session.client.get_config_dict(*SETTINGS) == SETTINGS
    ((text,),) = rows(backend, "SELECT CONCAT('$', '{env:HOME}')")
    assert text == "${env:HOME}"


@pytest.mark.parametrize(
    ("name", "sql", "meant"),
    [("spark.sql.legacy.decimal.retainFractionDigitsOnTruncate", f"CAST({'9' * 38} AS DECIMAL(38, 0)) > 0.25", (True,)),
     ("spark.sql.legacy.exponentLiteralAsDecimal.enabled", "1e0 / 3e0", (1 / 3,)),
     ("spark.sql.parser.quotedRegexColumnNames", "`a.c` FROM (SELECT 1 AS `a.c`, 2 AS abc) AS t", (1,))],
)  # fmt: skip
def test_what_a_server_could_have_changed_by_a_setting_is_meant_as_it_is_printed(
    backend: SparkBackend, spark: SparkServer, name: str, sql: str, meant: tuple[object, ...]
) -> None:
    assert rows(backend, f"SELECT {sql}") == [meant]
    assert SETTINGS[name] == "false"
    connection = SparkConnection(target_of(spark.url))
    connection.session.conf.set(name, "true")
    otherwise = None
    with suppress(EngineFailure):
        found = guarded("run", lambda: list(connection.stream(f"SELECT {sql}", {})))
        otherwise = [row for batch in found for row in rows_of(batch)]
    connection.close()
    assert otherwise != [meant]


def test_a_session_whose_setting_is_changed_is_not_used(backend: SparkBackend) -> None:
    assert rows(backend, "SELECT 1") == [(1,)]
    (kept,) = backend._pool.idle
    kept.session.conf.set("spark.sql.ansi.enabled", "false")
    with pytest.raises(PolicyError, match=r"does not keep the setting spark\.sql\.ansi\.enabled = true"):
        rows(backend, "SELECT 1")
    assert rows(backend, "SELECT 1") == [(1,)]


@pytest.mark.parametrize(
    "sql",
    ["INSERT INTO campus.student VALUES (3, 'x')", "DROP TABLE campus.student", "SET spark.sql.ansi.enabled = false",
     "INSERT OVERWRITE DIRECTORY '/tmp/dpsql-never' USING csv SELECT 1", "ADD JAR '/tmp/dpsql-never.jar'",
     "SELECT java_method('java.lang.System', 'getProperty', 'user.name')",
     "SELECT reflect('java.lang.System', 'getProperty', 'user.name')", "SELECT * FROM text.`/etc/passwd`",
     "SELECT 1; SELECT 2"],
)  # fmt: skip
def test_only_a_query_is_sent(backend: SparkBackend, spark: SparkServer, sql: str) -> None:
    refused = failure(backend, sql)
    assert refused.detail.startswith("refused: ")
    assert sql not in spark.log()
    with pytest.raises(EngineFailure), backend.snapshot() as snapshot:
        snapshot.columns(sql)
    assert rows(backend, "SELECT COUNT(*) FROM campus.student") == [(2,)]


def test_the_server_itself_reads_no_file_by_its_path(spark: SparkServer) -> None:
    connection = SparkConnection(target_of(spark.url))
    with pytest.raises(EngineFailure) as caught, guarding("run"):
        list(connection.stream("SELECT * FROM text.`/etc/passwd`", {}))
    connection.close()
    assert caught.value.detail == "run: TABLE_OR_VIEW_NOT_FOUND 42P01"


def test_an_error_tells_its_class_and_nothing_of_the_data(
    backend: SparkBackend, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        errors = [
            failure(backend, MISTYPED),
            failure(backend, "SELECT name + :p1 FROM campus.student", SECRET),
        ]
        with pytest.raises(EngineFailure) as caught, backend.session() as session:
            session.sql(MISTYPED).collect()
    assert (
        errors[0].detail == caught.value.detail.replace("session", "run") == "run: CAST_INVALID_INPUT 22018"
    )
    for error in (*errors, caught.value):
        shown = "".join(traceback.format_exception(error))
        assert SECRET not in shown.replace(MISTYPED, "").replace("SECRET", "")
        assert "org.apache" not in shown
    assert [error.__context__ for error in errors] == [None, None]
    said = caplog.text + "".join(capfd.readouterr())
    assert SECRET not in said
    assert "CAST_INVALID_INPUT" not in said


# --- stopping ----------------------------------------------------------------------------------------------


def eventually(holds: Callable[[], bool], seconds: float = 600) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def test_a_statement_is_stopped_from_another_thread(backend: SparkBackend) -> None:
    mine, stopped = object(), []

    def run(owner: object) -> None:
        try:
            with backend.snapshot(owner) as snapshot:
                list(snapshot.run(LONG))
        except EngineFailure as error:
            stopped.append((owner, error.sqlstate))

    threads = [threading.Thread(target=run, args=(owner,)) for owner in (mine, None)]
    for thread in threads:
        thread.start()
    assert eventually(
        lambda: len([one for one in list(backend._snapshots._owners) if one._connection.is_running]) == 2
    )
    backend.cancel(mine)
    threads[0].join(60)
    assert stopped == [(mine, "57014")]
    assert threads[1].is_alive()
    backend.cancel()
    threads[1].join(60)
    assert stopped == [(mine, "57014"), (None, "57014")]
    assert backend._pool.idle == []
    assert rows(backend, "SELECT 1") == [(1,)]


def test_a_statement_ends_at_its_limit_and_the_server_stops_with_it(spark: SparkServer) -> None:
    connection = SparkConnection(target_of(spark.url), seconds=1)
    with pytest.raises(EngineFailure) as caught, guarding("run"):
        list(connection.stream(LONG, {}))
    connection.close()
    assert (caught.value.detail, caught.value.sqlstate) == ("run: took too long", "58V01")
    assert not connection.is_running


def test_what_is_given_up_is_stopped_and_its_session_not_kept(backend: SparkBackend) -> None:
    with backend.snapshot() as snapshot:
        first = snapshot.run("SELECT id FROM range(3000000)", (), 10)
        assert next(first)[0] == (0,)
        assert list(snapshot.run("SELECT 1")) == [[(1,)]]
        with pytest.raises(RuntimeError):
            next(first)
    assert backend._pool.idle == []


# --- sessions ----------------------------------------------------------------------------------------------


def test_a_session_is_kept_while_nothing_fails_and_released_at_the_end(backend: SparkBackend) -> None:
    for _ in range(3):
        rows(backend, "SELECT 1")
    (kept,) = backend._pool.idle
    assert backend.close_idle()
    assert backend._pool.idle == []
    again = SparkConnection.__new__(SparkConnection)
    again.__dict__.update(SparkConnection(backend._target).__dict__, _id=kept._id)
    with pytest.raises(EngineFailure) as caught:
        again.check()
    assert caught.value.detail.startswith("settings: INVALID_HANDLE.SESSION_CLOSED")
    again._channel.close()


def test_a_session_that_the_server_forgot_is_replaced(backend: SparkBackend, owner: SparkSession) -> None:
    rows(backend, "SELECT 1")
    (kept,) = backend._pool.idle
    kept._stub.ReleaseSession(kept._about(messages.ReleaseSessionRequest()), timeout=60)
    assert rows(backend, "SELECT 2") == [(2,)]
    assert backend._pool.idle != [kept]


def test_a_large_result_is_not_held_in_memory(backend: SparkBackend) -> None:
    def resident() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    sql = "SELECT id, CAST(id AS DECIMAL(38, 0)), md5(CAST(id AS STRING)) FROM range({})"
    with backend.snapshot() as snapshot:
        list(snapshot.run(sql.format(100_000)))
        before, most, count = resident(), 0, 0
        for chunk in snapshot.run(sql.format(1_000_000)):
            most, count = max(most, resident()), count + len(chunk)
    assert count == 1_000_000
    assert most - before < 100 * 2**20  # all of its rows are above 250 MiB


def test_what_is_wrong_around_the_server_is_said(backend: SparkBackend) -> None:
    said = [(finding.severity.value, finding.sentence.split(";")[0]) for finding in backend.findings()]
    assert said == [
        ("warning", "the server asks for no token: whoever reaches its port can read the tables, and run programs on it"),
        ("warning", "Spark tells nobody what its own credentials may do to the storage: give the server such as read the"
                    " tables, and do nothing else"),
    ]  # fmt: skip
