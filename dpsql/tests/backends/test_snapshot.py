"""What a snapshot is on every engine: it reads exactly, writes nothing, tells nothing, and stops when told."""

from __future__ import annotations

import decimal
import math
import threading
import traceback

import pytest

from dpsql.errors import EngineFailure

from .conftest import SECRET, Engine


def test_a_query_with_parameters(engine: Engine) -> None:
    assert engine.rows("SELECT name FROM student WHERE id = CAST($1 AS INTEGER)", 2) == [("Ada",)]
    assert engine.rows("SELECT 1 WHERE false") == []
    with engine.backend.snapshot() as snapshot:
        (table,) = snapshot.schema().tables
        assert snapshot.schema().dialect == engine.backend.dialect
    assert table.path[1] == "student"
    assert [(column.name, column.not_null) for column in table.columns] == [("id", True), ("name", False)]


def test_rows_come_in_chunks(engine: Engine) -> None:
    with engine.backend.snapshot() as snapshot:
        chunks = list(snapshot.run(f"SELECT i FROM {engine.series(140_000)} ORDER BY i"))
    assert [len(chunk) for chunk in chunks] == [65536, 65536, 8928]
    assert [row for chunk in chunks for row in chunk] == [(i,) for i in range(140_000)]


def test_chunks_are_as_large_as_they_are_asked_for(engine: Engine) -> None:
    with engine.backend.snapshot() as snapshot:
        chunks = list(snapshot.run(f"SELECT i FROM {engine.series(1000)} ORDER BY i", (), 300))
    assert [len(chunk) for chunk in chunks] == [300, 300, 300, 100]


def test_numbers_come_exact(engine: Engine) -> None:
    wide = "99999999999999999999999999999999999.999"
    (row,) = engine.rows(
        f"SELECT CAST({2**63 - 1} AS BIGINT), CAST({-(2**31)} AS INTEGER), CAST({wide} AS NUMERIC(38,3)),"
        " CAST(0.1 AS NUMERIC(38,37)), CAST(-2 AS NUMERIC(5,2)),"
        f" (SELECT SUM(CAST(i AS NUMERIC(30,0)) * {10**7}) FROM {engine.series(1000)})"
    )
    assert row[:2] == (2**63 - 1, -(2**31))
    assert row[2:5] == (decimal.Decimal(wide), decimal.Decimal("0.1"), decimal.Decimal(-2))
    assert row[5] == 499500 * 10**7
    assert [type(value) for value in row[:5]] == [int, int] + [decimal.Decimal] * 3


def test_values_travel_exactly_both_ways(engine: Engine) -> None:
    values = {
        "BIGINT": [-(2**63), 0, 2**63 - 1],
        "NUMERIC(38,0)": [10**38 - 1, -(2**63) - 1],
        "NUMERIC(38,2)": [decimal.Decimal("0.10"), decimal.Decimal("-123456789012345678901234567890.12")],
        "DOUBLE PRECISION": [0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf],
        "BOOLEAN": [True, False],
        "VARCHAR": ["", "it's", 'a"b\\c{,}', "NULL", " ", "é\n\t🙂", "$1", "); DROP TABLE student --"],
    }
    for kind, expected in values.items():
        for value in (*expected, None):
            assert engine.rows(f"SELECT CAST($1 AS {kind})", value) == [(value,)]
        ((found,),) = engine.rows(f"SELECT CAST($1 AS {kind}[])", [*expected, None])
        assert found == [*expected, None]
        assert engine.rows(f"SELECT COUNT(*) FROM (SELECT unnest(CAST($1 AS {kind}[]))) AS u", []) == [(0,)]


def test_what_is_not_a_number_comes_back_right(engine: Engine) -> None:
    ((nan, infinity, minus, zero, tiny),) = engine.rows(
        "SELECT CAST('nan' AS DOUBLE PRECISION), CAST('inf' AS DOUBLE PRECISION), CAST('-inf' AS REAL),"
        " CAST('-0.0' AS DOUBLE PRECISION), CAST('5e-324' AS DOUBLE PRECISION)"
    )
    assert isinstance(nan, float)
    assert math.isnan(nan)
    assert (infinity, minus, tiny) == (math.inf, -math.inf, 5e-324)
    assert isinstance(zero, float)
    assert math.copysign(1, zero) == -1


def test_dates_beyond_python_come_as_text(engine: Engine) -> None:
    ((far, cast),) = engine.rows("SELECT DATE '290000-01-01', CAST(DATE 'infinity' AS VARCHAR)")
    assert (far, cast) == ("290000-01-01", "infinity")


def test_columns_come_as_arrays(engine: Engine) -> None:
    sql = (
        "SELECT CASE WHEN i <> 1 THEN CAST(i AS BIGINT) END, CAST(i AS DOUBLE PRECISION) / 2, i = 1,"
        " CASE WHEN i > 0 THEN CAST(i AS VARCHAR) END, CAST(DATE '1969-12-31' AS DATE),"
        f" CASE WHEN i = 2 THEN TIMESTAMP '2020-02-29 12:00:00.000001' END FROM {engine.series(3)} ORDER BY i"
    )
    with engine.backend.snapshot() as snapshot:
        found = snapshot.columns(sql)
        nothing = snapshot.columns(f"{sql} LIMIT 0")
    kinds = [values.dtype.kind for values, _ in found]
    assert kinds == ["i", "f", "b", "O", "M", "M"]
    assert [values.dtype.kind for values, _ in nothing] == kinds
    assert [len(values) for values, _ in nothing] == [0] * 6
    shown = [
        [None if nulls is not None and nulls[i] else values[i] for i in range(3)] for values, nulls in found
    ]
    assert shown[0] == [0, None, 2]
    assert shown[1] == [0, 0.5, 1]
    assert shown[2] == [False, True, False]
    assert shown[3] == [None, "1", "2"]
    assert [str(value)[:10] for value in shown[4]] == ["1969-12-31"] * 3
    assert [value if value is None else str(value)[:26] for value in shown[5]] == [
        None,
        None,
        "2020-02-29T12:00:00.000001",
    ]


FORBIDDEN = [
    "INSERT INTO student VALUES (3, 'x')",
    "UPDATE student SET name = 'x'",
    "DELETE FROM student",
    "TRUNCATE student",
    "DROP TABLE student",
    "ALTER TABLE student ADD COLUMN x INT",
    "CREATE TABLE t (x INT)",
    "CREATE TEMP TABLE t (x INT)",
    "CREATE TABLE t AS SELECT * FROM student",
    "SELECT nextval('numbers')",
    "COPY student TO '/tmp/dpsql-out.csv'",
    "COPY (SELECT 1) TO '/tmp/dpsql-out.csv'",
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
    "PREPARE p AS SELECT 1",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE student",
    "WITH x AS (SELECT 1) INSERT INTO student SELECT 3, 'x'",
    "VACUUM",
    "CHECKPOINT",
    "RESET ALL",
    "SET search_path = 'other'",
    "",
    ";",
    "nonsense",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_only_a_single_select_is_run(engine: Engine, sql: str) -> None:
    with pytest.raises(EngineFailure):
        engine.rows(sql)
    with engine.backend.snapshot() as snapshot, pytest.raises(EngineFailure):
        snapshot.columns(engine.named(sql))
    assert engine.rows("SELECT id, name FROM student ORDER BY id") == [(1, SECRET), (2, "Ada")]


def test_a_failed_statement_leaves_no_lock_behind(engine: Engine) -> None:
    with pytest.raises(EngineFailure):
        engine.rows("SELECT * FROM nowhere")
    assert engine.rows("SELECT 1") == [(1,)]


def test_no_traceback_holds_a_value(engine: Engine) -> None:
    for through in ("run", "columns"):
        with pytest.raises(EngineFailure) as caught, engine.backend.snapshot() as snapshot:
            list(getattr(snapshot, through)(engine.named("SELECT CAST(name AS INTEGER) FROM student")))
        failure = caught.value
        assert failure.__context__ is None
        assert failure.__cause__ is None
        everything = (
            "".join(traceback.format_exception(failure)) + failure.detail + repr(failure) + str(failure)
        )
        assert SECRET not in everything
        assert failure.sqlstate == "58V01"
        assert failure.message == "the database could not answer this statement"


@pytest.mark.parametrize("through", ["backend", "snapshot"])
def test_cancel_from_another_thread(engine: Engine, through: str) -> None:
    with engine.backend.snapshot() as snapshot:
        target = engine.backend if through == "backend" else snapshot
        timer = threading.Timer(0.2, target.cancel)
        timer.start()
        with pytest.raises(EngineFailure) as caught:
            list(snapshot.run(engine.long))
        timer.join()
        assert caught.value.sqlstate == "57014"
        assert caught.value.message == "the statement was cancelled"
        with pytest.raises(EngineFailure) as caught:
            list(snapshot.run("SELECT 1"))
        assert caught.value.sqlstate == "57014"
    assert engine.rows("SELECT 1") == [(1,)]


def test_cancel_before_a_statement_starts(engine: Engine) -> None:
    with engine.backend.snapshot() as snapshot:
        chunks = snapshot.run(engine.long)
        snapshot.cancel()
        with pytest.raises(EngineFailure) as caught:
            next(chunks)
    assert caught.value.sqlstate == "57014"
    assert engine.rows("SELECT 1") == [(1,)]


def test_cancel_between_two_chunks(engine: Engine) -> None:
    with engine.backend.snapshot() as snapshot:
        chunks = snapshot.run(f"SELECT i FROM {engine.series(1_000_000)}")
        next(chunks)
        snapshot.cancel()
        with pytest.raises(EngineFailure) as caught:
            next(chunks)
        assert caught.value.sqlstate == "57014"


def test_cancel_stops_one_snapshot_and_no_other(engine: Engine) -> None:
    with engine.backend.snapshot() as first, engine.backend.snapshot() as second:
        first.cancel()
        assert list(second.run("SELECT 1")) == [[(1,)]]


def test_cancel_of_nothing(engine: Engine) -> None:
    engine.backend.cancel()
    assert engine.rows("SELECT 1") == [(1,)]
    with engine.backend.snapshot() as snapshot:
        pass
    snapshot.cancel()
    assert engine.rows("SELECT 1") == [(1,)]


def test_an_older_result_is_given_up(engine: Engine) -> None:
    with engine.backend.snapshot() as snapshot:
        first = snapshot.run(f"SELECT i FROM {engine.series(1_000_000)}")
        next(first)
        assert list(snapshot.run("SELECT 1")) == [[(1,)]]
        with pytest.raises(RuntimeError, match="given up"):
            next(first)
        second = snapshot.run(f"SELECT i FROM {engine.series(1_000_000)}")
        next(second)
        assert [list(values) for values, _ in snapshot.columns("SELECT 2")] == [[2]]


def test_threads_share_a_backend(engine: Engine) -> None:
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.extend(engine.rows("SELECT COUNT(*) FROM student")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(2,)] * 8


def test_idle_means_that_no_snapshot_is_open(engine: Engine) -> None:
    with engine.backend.snapshot():
        assert not engine.backend.close_idle()
    assert engine.backend.close_idle()
    assert engine.backend.close_idle()
    assert engine.rows("SELECT COUNT(*) FROM student") == [(2,)]
