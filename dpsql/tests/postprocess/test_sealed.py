"""The sealed engine: nothing escapes, nothing stays behind, nothing runs on for ever."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsql import seal
from dpsql.errors import EngineFailure, Refusal
from dpsql.postprocess import EngineLimits, ReleasedColumn, ReleasedTable, ResultRows, SealedEngine, sealed
from dpsql.postprocess.rows import Arrays
from dpsql.relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NULL,
    NUMERIC,
    OPAQUE,
    REAL,
    TEXT,
    TIMESTAMP,
    SqlType,
)  # fmt: skip
from dpsql.tests.laws.planting import plant

python_variable = {"a": np.arange(3)}


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    path.write_text("a,b\n1,2\n")
    return path


REACHES_OUT = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_csv_auto('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM '{file}'",
    'SELECT * FROM "{file}"',
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM glob('{directory}/*')",
    "SELECT * FROM query('SELECT * FROM read_csv(''{file}'')')",
    "SELECT * FROM python_variable",
    "COPY (SELECT 1) TO '{directory}/out.csv'",
    "EXPORT DATABASE '{directory}/out'",
    "ATTACH '{directory}/other.db'",
    "SET threads = 4",
    "SET GLOBAL memory_limit = '2GiB'",
    "RESET memory_limit",
    "PRAGMA threads = 4",
]
"""What an open DuckDB would do: the seal alone must stop it, without the one-SELECT rule."""

OUT_OF_PLACE = [
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM parquet_scan('{file}')",
    "SELECT * FROM 'https://127.0.0.1:9/x.csv'",
    "SELECT * FROM read_csv('https://127.0.0.1:9/x.csv')",
    "SELECT pg_read_file('{file}')",
    "SELECT getenv('HOME')",
    "SELECT * FROM sqlite_scan('{file}', 't')",
    "SELECT * FROM postgres_scan('host=127.0.0.1', 'public', 't')",
    "COPY t FROM '{file}'",
    "WITH w AS (COPY (SELECT 1) TO '{directory}/out.csv') SELECT 1",
    "IMPORT DATABASE '{directory}'",
    "ATTACH ':memory:' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{file}'",
    "PRAGMA enable_profiling",
    "PRAGMA import_database('{directory}')",
    "SET enable_external_access = true",
    "SET GLOBAL lock_configuration = false",
    "CREATE TABLE kept AS SELECT 1",
    "CREATE SECRET s (TYPE http, BEARER_TOKEN 'x')",
    "CREATE MACRO f(x) AS x",
    "CALL pragma_version()",
    "CHECKPOINT",
    "USE memory",
    "BEGIN TRANSACTION",
    "EXPLAIN ANALYZE SELECT 1",
    "PREPARE p AS SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT 1; SET threads = 4",
    "",
    "no SQL at all",
]


@pytest.mark.parametrize("attempt", REACHES_OUT + OUT_OF_PLACE)
def test_nothing_escapes(engine: SealedEngine, secret_file: Path, attempt: str) -> None:
    before = sorted(secret_file.parent.iterdir())
    assert engine.run("SELECT 1", []).rows == [(1,)]  # it is the attempt that fails, not the engine
    with pytest.raises(EngineFailure) as caught:
        engine.run(attempt.format(file=secret_file, directory=secret_file.parent), [])
    assert caught.value.sqlstate == "58V01"
    assert str(caught.value).startswith("58V01: the database could not answer this statement")
    assert sorted(secret_file.parent.iterdir()) == before
    assert engine.run("SELECT 1", []).rows == [(1,)]


@pytest.mark.parametrize("attempt", REACHES_OUT)
def test_the_seal_holds_without_the_rule_of_one_select(secret_file: Path, attempt: str) -> None:
    sql = attempt.format(file=secret_file, directory=secret_file.parent)
    with duckdb.connect(":memory:") as open_database:
        open_database.execute(sql)  # the attempt is a real one
    before = sorted(secret_file.parent.rglob("*"))
    with (
        SealedEngine()._shared.small("", lambda: False) as database,
        pytest.raises(duckdb.Error, match=r"(?i)permission|disabled|locked|does not exist|change"),
    ):
        database.cursor().execute(sql)
    assert sorted(secret_file.parent.rglob("*")) == before


def test_a_duckdb_that_cannot_be_sealed_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(seal._IN_MEMORY, "a_setting_of_the_future", "true")
    with pytest.raises(EngineFailure) as caught:
        SealedEngine().run("SELECT 1", [])
    assert "cannot be sealed" in caught.value.detail


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("enable_external_access", "false"),
        ("autoinstall_known_extensions", "false"),
        ("autoload_known_extensions", "false"),
        ("allow_community_extensions", "false"),
        ("allow_unsigned_extensions", "false"),
        ("allow_persistent_secrets", "false"),
        ("python_enable_replacements", "false"),
        ("lock_configuration", "true"),
        ("threads", "1"),
        ("memory_limit", "64.0 MiB"),
        ("temp_directory", ""),
        ("integer_division", "true"),
        ("default_null_order", "NULLS_LAST_ON_ASC_FIRST_ON_DESC"),
    ],
)
def test_the_seal_is_set(engine: SealedEngine, setting: str, value: str) -> None:
    rows = engine.run("SELECT value FROM duckdb_settings() WHERE name = $1", [], [setting]).rows
    assert [row[0].casefold() for row in rows] == [value.casefold()]


def _one(type_: SqlType, *values: object) -> ReleasedTable:
    return ReleasedTable("r", (ReleasedColumn("x", type_, list(values)),))


def test_nulls_come_last_and_first_when_descending(engine: SealedEngine) -> None:
    table = _one(INTEGER, 1, None, 2)
    assert engine.run("SELECT x FROM r ORDER BY x", [table]).rows == [(1,), (2,), (None,)]
    assert engine.run("SELECT x FROM r ORDER BY x DESC", [table]).rows == [(None,), (2,), (1,)]


def test_text_compares_by_bytes(engine: SealedEngine) -> None:
    rows = engine.run("SELECT x FROM r ORDER BY x", [_one(TEXT, "é", "a", "Z", "z", "")]).rows
    assert [x for (x,) in rows] == sorted(["é", "a", "Z", "z", ""], key=str.encode)


LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999999)
WIDE = ReleasedTable(
    'w"; DROP',
    (
        ReleasedColumn('te"xt', TEXT, ["x", None, "\0é", ""]),
        ReleasedColumn("small", BIGINT, np.array([-(2**63), 2**63 - 1, 0, 1])),
        ReleasedColumn("nullable", INTEGER, [1, None, -3, 0]),
        ReleasedColumn("huge", BIGINT, [-(2**126), None, 2**126 - 1, 2**64]),
        ReleasedColumn("objects", BIGINT, np.array([2**63, -(2**64) - 1, 0, 2**100], dtype=object)),
        ReleasedColumn("beyond", BIGINT, [2**126, None, -(2**2000), 5]),
        ReleasedColumn("number", NUMERIC, [Decimal("0.1"), None, 3, Decimal("1E+400")]),
        ReleasedColumn("double", DOUBLE, [float("nan"), float("inf"), 1e308, None]),
        ReleasedColumn("real", REAL, [0.5, 1e300, None, float("-inf")]),
        ReleasedColumn("day", DATE, [date(1, 1, 1), None, date(9999, 12, 31), date(2024, 2, 29)]),
        ReleasedColumn("time", TIMESTAMP, [datetime(1, 1, 1), None, LAST_TIME, datetime(2024, 2, 29, 12)]),
        ReleasedColumn("truth", BOOLEAN, [True, None, False, True]),
        ReleasedColumn("nothing", NULL, [None] * 4),
    ),
)  # fmt: skip
WIDE_LOADED = {
    "huge": [-(2**126), None, 2**126 - 1, 2**64],
    "beyond": [2.0**126, None, None, 5.0],
    "number": [0.1, None, 3.0, None],
    "double": [None, None, 1e308, None],
    "real": [0.5, None, None, None],
}


@pytest.mark.parametrize("copies", [1, 2000])
def test_every_type_is_loaded(engine: SealedEngine, copies: int) -> None:
    """Few rows travel as parameters and many as arrays: both give the same."""
    columns = tuple(
        ReleasedColumn(c.name, c.type, np.tile(c.values, copies) if isinstance(c.values, np.ndarray)
                       else list(c.values) * copies)
        for c in WIDE.columns
    )  # fmt: skip
    result = engine.run('SELECT * FROM "w""; DROP"', [ReleasedTable(WIDE.name, columns)])
    expected = [WIDE_LOADED.get(c.name, list(c.values)) * copies for c in WIDE.columns]
    assert result.columns == tuple(c.name for c in WIDE.columns)
    assert result.rows == list(zip(*expected, strict=True))


@pytest.mark.parametrize("rows", [0, 3, 5000])
def test_all_null_and_empty_columns_keep_their_type(engine: SealedEngine, rows: int) -> None:
    columns = tuple(ReleasedColumn(c.name, c.type, [None] * rows) for c in WIDE.columns)
    types = engine.run('SELECT typeof(max(COLUMNS(*))) FROM "w""; DROP"', [ReleasedTable(WIDE.name, columns)])
    assert types.rows == [
        ("VARCHAR", *["BIGINT"] * 5, "DOUBLE", "DOUBLE", "FLOAT", "DATE", "TIMESTAMP", "BOOLEAN", "VARCHAR")
    ]


def test_text_that_begins_late_is_text(engine: SealedEngine) -> None:
    table = _one(TEXT, *[None] * 5000, "1")
    assert engine.run("SELECT max(x), count(x) FROM r", [table]).rows == [("1", 1)]


@pytest.mark.parametrize("type_", [OPAQUE, INTERVAL])
@pytest.mark.parametrize("count", [1, 100])
def test_types_that_are_never_released(engine: SealedEngine, type_: SqlType, count: int) -> None:
    with pytest.raises(ValueError, match="never released"):
        engine.run("SELECT 1", [_one(type_, *[None] * count)])


@pytest.mark.parametrize("columns", [(), (("a", [1]), ("b", [])), (("a", [1]), ("A", [1]))])
def test_columns_that_do_not_fit(columns: tuple[tuple[str, list[int]], ...]) -> None:
    with pytest.raises(ValueError, match="released table"):
        ReleasedTable("r", tuple(ReleasedColumn(name, BIGINT, values) for name, values in columns))


def test_parameters_are_bound(engine: SealedEngine) -> None:
    rows = engine.run("SELECT x FROM r WHERE x = $1", [_one(TEXT, "a'; --", "b")], ["a'; --"]).rows
    assert rows == [("a'; --",)]


@pytest.mark.parametrize("rows", [0, 1, 16, 17])
def test_a_table_of_any_length_is_read_alike(engine: SealedEngine, rows: int) -> None:
    """Few rows travel in the statement itself, more as a table; who asks where a row stands is told."""
    table = _one(BIGINT, *range(-rows, 0))
    whole = engine.run("SELECT a.x, (SELECT count(*) FROM r) FROM r AS a ORDER BY a.x", [table]).rows
    assert whole == [(x, rows) for x in range(-rows, 0)]
    assert engine.run("SELECT x FROM r", [table]).rows == [(x,) for x in range(-rows, 0)]
    assert engine.run("SELECT typeof(x), rowid FROM r", [table]).rows == [("BIGINT", i) for i in range(rows)]
    steps = "WITH s AS (SELECT x + 1 AS x FROM r) SELECT count(x) FROM s"
    assert engine.run(steps, [table]).rows == [(rows,)]


def _count_left_behind(engine: SealedEngine) -> int:
    count: int = engine.run(
        "SELECT (SELECT count(*) FROM duckdb_tables()) + (SELECT count(*) FROM duckdb_views()"
        " WHERE NOT internal)",
        [],
    ).rows[0][0]
    return count


@pytest.mark.parametrize("rows", [1, 5000])
@pytest.mark.parametrize("sql", ["SELECT * FROM r", "SELECT * FROM missing", "SET threads = 2"])
def test_nothing_stays_behind(engine: SealedEngine, rows: int, sql: str) -> None:
    try:
        engine.run(sql, [_one(BIGINT, *range(rows))])
    except EngineFailure:
        assert sql != "SELECT * FROM r"
    with pytest.raises(EngineFailure):
        engine.run("SELECT * FROM r", [])
    assert _count_left_behind(engine) == 0
    assert engine.run("SELECT sum(memory_usage_bytes) < 1000000 FROM duckdb_memory()", []).rows == [(True,)]


def test_threads_do_not_see_each_other(engine: SealedEngine) -> None:
    start = threading.Barrier(8)

    def work(number: int) -> bool:
        start.wait()
        for step in range(20):
            values = [number, step] * (1 if step % 2 else 200)
            rows = engine.run("SELECT sum(x) FROM r", [_one(BIGINT, *values)]).rows
            if rows != [(sum(values),)]:
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert _count_left_behind(engine) == 0


def test_late_statements_are_interrupted_and_others_are_not() -> None:
    engine = SealedEngine(EngineLimits(seconds=0.2))
    with ThreadPoolExecutor(2) as pool:
        endless = pool.submit(engine.run, "SELECT count(*) FROM range(200000) a, range(200000) b", [])
        assert engine.run("SELECT 1", []).rows == [(1,)]
        with pytest.raises(EngineFailure) as caught:
            endless.result(timeout=600)
    assert caught.value.sqlstate == "57V01"
    assert engine.run("SELECT 1", []).rows == [(1,)]


def test_a_result_that_is_too_long_is_refused() -> None:
    engine = SealedEngine(EngineLimits(max_rows=10))
    assert len(engine.run("SELECT * FROM range(10)", []).rows) == 10
    with pytest.raises(Refusal) as caught:
        engine.run("SELECT * FROM range(1000000000)", [])
    assert caught.value.sqlstate == "54001"


def test_memory_is_limited_and_never_spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = SealedEngine(EngineLimits(memory_mib=32, seconds=60))
    with pytest.raises(Refusal) as caught:
        engine.run("SELECT range, range % 7 AS b FROM range(20000000) ORDER BY hash(range)", [])
    assert caught.value.sqlstate == "54001"
    assert list(tmp_path.iterdir()) == []
    assert engine.run("SELECT 1", []).rows == [(1,)]


HUNGRY = (
    "SELECT count(*) FROM (SELECT list(range) AS l FROM range(5000000)) AS h, range(1000000000000) AS r (i)"
    " WHERE h.l[1 + r.i % 1000] = -1"
)
"""It holds more than the memory of a small database, and has no end."""
MODEST = "SELECT count(*) FROM (SELECT range FROM range(400000) ORDER BY hash(range))"
LARGER = "SELECT len(list(range)) FROM range(5000000)"


def test_the_hunger_of_one_analyst_is_not_the_others() -> None:
    """What one has taken of the memory makes no statement of another fail: neither a modest one nor a large one."""
    shared = SealedEngine(EngineLimits(memory_mib=256, seconds=60))
    stopped = threading.Event()
    hungry, other = shared.sharing(stopped.is_set, "hungry"), shared.sharing(lambda: False, "other")
    with ThreadPoolExecutor(4) as pool:
        held = [pool.submit(hungry.run, HUNGRY, []) for _ in range(2)]
        try:
            while not shared._shared._large._held or "hungry" not in shared._shared._large._waiting:
                assert not any(one.done() for one in held)
                time.sleep(0.01)
            for _ in range(5):
                assert other.run(MODEST, []).rows == [(400_000,)]
            larger = pool.submit(other.run, LARGER, [])
            while "other" not in shared._shared._large._waiting:
                time.sleep(0.01)
            assert other.run("SELECT 1", []).rows == [(1,)], (
                "and who waits for much keeps nobody from a little"
            )
        finally:
            stopped.set()
            hungry.cancel()
        for one in held:
            with pytest.raises(EngineFailure) as caught:
                one.result(timeout=600)
            assert caught.value.sqlstate == "57014"
        assert larger.result(timeout=600).rows == [(5_000_000,)], "it waits, and is answered"
    assert not shared._shared._large._held


def test_a_closed_engine_opens_again(engine: SealedEngine) -> None:
    other = SealedEngine()
    other.close()
    assert other.run("SELECT 1", []).rows == [(1,)]
    other.close()
    assert other.run("SELECT 2", []).rows == [(2,)]


LARGE = ReleasedTable(
    "t",
    (
        ReleasedColumn("i", BIGINT, np.arange(3000) - 5),
        ReleasedColumn("d", DOUBLE, np.arange(3000) / 7),
        ReleasedColumn("s", TEXT, [None if i % 5 == 0 else f"é {i}" for i in range(3000)]),
        ReleasedColumn("b", BOOLEAN, [None if i % 3 == 0 else i % 2 == 0 for i in range(3000)]),
        ReleasedColumn("n", BIGINT, [None if i % 2 == 0 else i for i in range(3000)]),
    ),
)


@pytest.mark.parametrize(
    ("sql", "is_by_column"),
    [
        ("SELECT i, d, s, b, n FROM t", True),
        ("SELECT s, i FROM t ORDER BY s DESC, i", True),
        ("SELECT i FROM t UNION ALL SELECT n FROM t", True),
        ("SELECT i FROM t WHERE i < -100", True),
        ("WITH x AS (SELECT i FROM t) SELECT i FROM x OFFSET 7", True),
        ("SELECT i FROM t ORDER BY i LIMIT 7 OFFSET 2", False),
        ("SELECT CAST(i AS HUGEINT) * 10000000000000000000 AS h FROM t", False),
        ("SELECT CAST(d AS DECIMAL(38, 3)) AS d FROM t", False),
        ("SELECT i AS x, n AS X FROM t", False),
        ("SELECT DATE '2024-01-01' AS day FROM t", False),
    ],
)
def test_a_large_answer_is_the_same(engine: SealedEngine, sql: str, is_by_column: bool) -> None:
    found = engine.run_large(sql, [LARGE])
    rows = engine.run(sql, [LARGE]).rows
    assert isinstance(found, Arrays) == is_by_column
    listed = (
        found.rows
        if isinstance(found, ResultRows)
        else list(zip(*[a.tolist() for a in found.arrays], strict=True))
    )
    assert repr(listed) == repr(rows)


def test_a_large_answer_is_of_one_select_and_has_its_limits() -> None:
    engine = SealedEngine(EngineLimits(max_rows=2000))
    for sql in ("SELECT i FROM t", "SELECT i FROM t LIMIT 2001", "SELECT CAST(i AS HUGEINT) AS i FROM t"):
        with pytest.raises(Refusal, match="more than 2000 rows"):
            engine.run_large(sql, [LARGE])
    for sql in ("SELECT 1; SELECT 2", "CREATE TABLE kept AS SELECT 1", "no SQL at all"):
        with pytest.raises(EngineFailure):
            engine.run_large(sql, [LARGE])
    assert isinstance(engine.run_large("SELECT i FROM t -- LIMIT", [LARGE_ENOUGH]), Arrays)


LARGE_ENOUGH = ReleasedTable("t", (ReleasedColumn("i", BIGINT, np.arange(2000)),))


def test_a_large_answer_can_be_stopped() -> None:
    engine = SealedEngine(EngineLimits(seconds=0.3))
    with pytest.raises(EngineFailure) as caught:
        engine.run_large("SELECT sum(a.i * b.i * c.i) AS s FROM t a, t b, t c", [LARGE])
    assert caught.value.sqlstate == "57V01"


def test_what_the_engine_takes_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all who share the databases, for each text and each types of columns; what it does not take, every time."""
    engine, ran, real = SealedEngine(), list[str](), SealedEngine.run
    monkeypatch.setattr(
        SealedEngine, "run", lambda self, sql, tables: ran.append(sql) or real(self, sql, tables)
    )

    def empty(type_: SqlType) -> list[ReleasedTable]:
        return [ReleasedTable("r0", (ReleasedColumn("a", type_, []),))]

    for one in (engine, engine.sharing(lambda: False)):
        one.check("SELECT a + 1 AS b FROM r0", empty(BIGINT))
        one.check("SELECT a || 'x' AS b FROM r0", empty(TEXT))
    assert len(ran) == 2
    engine.check("SELECT a || 'x' AS b FROM r0", empty(INTEGER))
    assert len(ran) == 3
    for _ in range(2):
        with pytest.raises(EngineFailure):
            engine.check("SELECT a + 1 AS b FROM r0", empty(BOOLEAN))
    assert len(ran) == 5
    for _ in range(2):
        engine.check(f"SELECT a || '{'x' * 100_000}' AS b FROM r0", empty(TEXT))
    assert len(ran) == 6, "however long it is"


def test_what_differs_in_doubles_alone_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, ran, real = SealedEngine(), list[str](), SealedEngine.run
    monkeypatch.setattr(
        SealedEngine, "run", lambda self, sql, tables: ran.append(sql) or real(self, sql, tables)
    )
    empty = [ReleasedTable("r0", (ReleasedColumn("a", BIGINT, []),))]
    alike = ["a / 2.5e0", "a / 0e0", "a / 12345678901234567e-20"]
    cast = ["a / CAST(4 AS DOUBLE)", "a / CAST(12345678901 AS DOUBLE)"]
    apart = [
        "a + 1",
        "a + 2",
        "a + 3000000000",
        "a / CAST(-4 AS DOUBLE)",
        "a = '1e0'",
        "a = '2e0'",
        "a AS e0",
    ]
    for shown in (*alike, *cast, *apart):
        engine.check(f"SELECT {shown} FROM r0", empty)
    assert len(ran) == 2 + len(apart)


def numbers(name: str, start: int, count: int, of: type = np.int64) -> ReleasedTable:
    values = np.arange(start, start + count, dtype=of)
    return ReleasedTable(name, (ReleasedColumn("a", BIGINT, values), ReleasedColumn("b", DOUBLE, values / 4)))


def check_stacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold that tables that are made as one keep their own rows, in order, beside those that are made alone."""
    tables = [
        numbers("r0", 0, 30), numbers("R1", 1000, 20), numbers("few", 5, 2), numbers("s", 7, 18, object),
        ReleasedTable("t", (ReleasedColumn("a", BIGINT, [None, *range(40)]), ReleasedColumn("b", DOUBLE, [0.5] * 41))),
        numbers("r2", -8, 17),
    ]  # fmt: skip
    sql = "SELECT a, b FROM {}"
    for only in (False, True):
        if only:
            monkeypatch.setattr(sealed, "_parted", lambda asked, tables: ([], [], list(tables)))
        found = [SealedEngine().run(sql.format(table.name), tables).rows for table in tables]
        assert [len(rows) for rows in found] == [table.row_count for table in tables]
        for table, rows in zip(tables, found, strict=True):
            assert [row[0] for row in rows] == list(table.columns[0].values)
            assert [row[1] for row in rows] == list(table.columns[1].values)


def test_tables_that_are_alike_are_made_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[str]()
    load = sealed._load
    monkeypatch.setattr(sealed, "_load", lambda cursor, table: [made.append(table.name), load(cursor, table)])
    SealedEngine().run("SELECT 1", [numbers("r0", 0, 30), numbers("r1", 0, 40), numbers("few", 0, 2)])
    assert made == ["stacked$0"]
    check_stacked(monkeypatch)


def test_a_row_of_another_table_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, sealed._stacked, ("np.arange(len(tables))", "0 * np.arange(len(tables))"))
    with pytest.raises(AssertionError):
        check_stacked(monkeypatch)
