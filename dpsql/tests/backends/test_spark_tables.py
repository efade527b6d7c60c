"""Tables on Spark as they are recorded: what is read is what was recorded, whatever is loaded, replaced or dropped."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dpsql.backends import spark_connection, spark_tables
from dpsql.backends.spark_backend import SparkBackend
from dpsql.backends.spark_tables import (
    Details,
    OpenTables,
    PinnedTable,
    PinnedTables,
    SparkFile,
    compare,
    pin,
    pin_verified,
    read_record,
    read_type,
    version_of,
    view_name,
    write_record,
)
from dpsql.errors import FilesChanged, PolicyError
from dpsql.policy.live_schema import LiveSchema
from dpsql.policy.model import FileSources
from dpsql.relation import types
from dpsql.tests.support.spark_server import SparkServer

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
}


@pytest.fixture(scope="module")
def session(spark: SparkServer) -> Iterator[SparkSession]:
    made = opened_at(spark)
    yield made
    made.stop()


def opened_at(spark: SparkServer) -> SparkSession:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = SparkSession.builder.remote(f"sc://127.0.0.1:{spark.port}").create()
    for name, value in SETTINGS.items():
        made.conf.set(name, value)
    return made


@pytest.fixture
def sources(tmp_path: Path) -> FileSources:
    for part in (1, 2):
        write(
            tmp_path / "visits" / f"{part}.parquet",
            f"SELECT i AS id, i % 7 AS person, {part} AS part FROM range(50) t(i)",
        )
    return of(tmp_path, visit=(str(tmp_path / "visits" / "*.parquet"),))


def write(path: Path, rows: str) -> None:
    path.parent.mkdir(exist_ok=True)
    duckdb.sql(f"COPY ({rows}) TO '{path}'")


def of(folder: Path, **tables: tuple[str, ...]) -> FileSources:
    return FileSources(folder, tables, folder / "spark-tables.json")


def record(session: SparkSession, files: FileSources) -> PinnedTables:
    write_record(files.record, pin_verified(session, files, "spark.toml"))
    return PinnedTables(files)


def numbers(session: SparkSession, sql: str) -> tuple[object, ...]:
    return tuple(session.sql(sql).collect()[0])


# --- without a server -----------------------------------------------------------------------------------------

SCHEMA = StructType().add("id", "long").json()
ONE = PinnedTable("parquet", SCHEMA, (SparkFile("file:/a.parquet", 10, 5),), rows=3, content="7")


@pytest.mark.parametrize(
    ("engine_type", "expected"),
    [
        ("bigint", types.BIGINT),
        ("decimal(38,0)", types.numeric(38, 0)),
        ("string", types.TEXT),
        ("timestamp_ntz", types.TIMESTAMP),
        ("string collate UTF8_LCASE", types.OPAQUE),
        ("binary", types.OPAQUE),
        ("struct<a:int>", types.OPAQUE),
        ("variant", types.OPAQUE),
        ("interval day to second", types.OPAQUE),
        ("a type of tomorrow", types.OPAQUE),
    ],
)
def test_a_type_that_is_not_known_is_opaque(engine_type: str, expected: types.SqlType) -> None:
    assert read_type(engine_type) == expected


def test_a_column_cannot_pass_for_what_the_catalog_says() -> None:
    rows = [
        ("Provider", "parquet"),
        ("# Detailed Table Information", ""),
        ("Type", "EXTERNAL"),
        ("Provider", "orc"),
    ]
    assert Details(rows).provider == "orc"
    assert Details(rows[:1]).provider == ""
    assert Details([*rows[1:2], ("Type", "VIEW"), ("Provider", "parquet")]).unusable is not None


@pytest.mark.parametrize(
    ("provider", "why"), [("iceberg", "metrics that cannot be verified"), ("orc", "kept as orc")]
)
def test_what_is_passed_over_by_what_cannot_be_verified_is_refused(provider: str, why: str) -> None:
    said = Details([("# Detailed Table Information", ""), ("Provider", provider)]).unusable
    assert said is not None
    assert why in said
    assert Details([("# Detailed Table Information", ""), ("Provider", "delta")]).unusable is None


@pytest.mark.parametrize(
    "other",
    [
        {"files": (SparkFile("file:/a.parquet", 10, 6),)},
        {"files": (SparkFile("file:/a.parquet", 11, 5),)},
        {"files": ()},
        {"schema": StructType().add("id", "integer").json()},
        {"base": "file:/x"},
        {"version": "17"},
        {"identity": "another"},
        {"kind": "delta"},
    ],
)
def test_what_is_other_has_another_version(other: dict[str, object]) -> None:
    changed = PinnedTable(**{**{name: getattr(ONE, name) for name in ONE.__slots__}, **other})  # type: ignore[arg-type]
    assert version_of(changed) != version_of(ONE)
    assert view_name(("default", "t"), changed) != view_name(("default", "t"), ONE)


def test_who_looked_at_the_rows_changes_no_version() -> None:
    assert version_of(ONE) == version_of(ONE.unlooked())


def test_a_statement_reads_the_tables_whose_views_it_names() -> None:
    views = {"t": "default.t@1", "u": "default.u@1", "odd": "default.o`dd@1"}
    opened = OpenTables(LiveSchema("default", ()), dict.fromkeys(views, ONE), views)
    assert opened.read_by("SELECT 1 FROM `default.u@1` AS t0 JOIN `default.t@1` AS t1") == ["t", "u"]
    assert opened.read_by("SELECT 1 FROM `default.o``dd@1`") == ["odd"]
    assert opened.read_by("SELECT 1") == [*views], "nothing is left out of what is not understood"


def test_a_record_is_read_as_it_was_written_or_refused(tmp_path: Path) -> None:
    record = tmp_path / "spark-tables.json"
    assert read_record(record) is None
    write_record(record, {"t": ONE})
    assert read_record(record) == {"t": ONE}
    assert record.stat().st_mode & 0o077 == 0
    for broken in (
        "",
        "{}",
        '{"format": 1, "tables": {}}',
        '{"format": 2, "tables": {"t": {"kind": 1, "x": 2}}}',
    ):
        record.write_text(broken)
        with pytest.raises(PolicyError, match="is no record of tables on Spark"):
            read_record(record)


# --- with one -------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_only_what_is_recorded_is_read(session: SparkSession, sources: FileSources) -> None:
    with pytest.raises(FilesChanged, match="not recorded yet"):
        PinnedTables(sources).open(session)
    tables = record(session, sources)
    opened = tables.open(session)
    view = opened.schema.tables[0].read_as
    assert view.startswith("default.visit@")
    assert numbers(session, f"SELECT COUNT(*), SUM(part) FROM `{view}`") == (100, 150)
    write(sources.folder / "visits" / "3.parquet", "SELECT 1::BIGINT AS id, 1::BIGINT AS person, 3 AS part")
    opened.check(session)
    assert numbers(session, f"SELECT COUNT(*) FROM `{tables.open(session).schema.tables[0].read_as}`") == (
        100,
    )
    (said,) = compare(session, sources, "spark.toml", read_record(sources.record) or {}, is_whole=True)
    assert said.sentence.endswith('3.parquet" of visit is not recorded, and is not read')


@pytest.mark.spark
def test_a_file_that_is_replaced_ends_what_reads_it(session: SparkSession, sources: FileSources) -> None:
    opened = record(session, sources).open(session)
    file = sources.folder / "visits" / "1.parquet"
    kept = file.read_bytes(), file.stat().st_mtime_ns
    for change in (file.unlink, lambda: os.utime(file, ns=(1, 1)), lambda: file.write_bytes(b"x" * 99)):
        change()
        with pytest.raises(FilesChanged):
            opened.check(session)
        with pytest.raises(FilesChanged):
            PinnedTables(sources).open(session)
        (said,) = compare(session, sources, "spark.toml", read_record(sources.record) or {}, is_whole=True)
        assert said.sentence.endswith('1.parquet" of visit is not what was recorded, and nothing is answered')
        file.write_bytes(kept[0])
        os.utime(file, ns=(kept[1], kept[1]))
        opened.check(session)


@pytest.mark.spark
def test_other_rows_in_a_file_that_looks_the_same_are_told_the_owner(
    session: SparkSession, sources: FileSources
) -> None:
    record(session, sources)
    file = sources.folder / "visits" / "1.parquet"
    size, modified = file.stat().st_size, file.stat().st_mtime_ns
    write(file, "SELECT i AS id, i % 7 AS person, 4 AS part FROM range(50) t(i)")
    if file.stat().st_size != size:
        pytest.skip("the engine wrote it otherwise")
    os.utime(file, ns=(modified, modified))
    known = read_record(sources.record) or {}
    assert compare(session, sources, "spark.toml", known, is_whole=False) == []
    (said,) = compare(session, sources, "spark.toml", known, is_whole=True)
    assert said.sentence == "the rows of visit are not what was recorded, though its files look the same"


@pytest.mark.spark
def test_a_statement_printed_for_one_version_never_reads_another(
    spark: SparkServer, session: SparkSession, sources: FileSources
) -> None:
    first = record(session, sources).open(session).schema.tables[0].read_as
    write(
        sources.folder / "visits" / "2.parquet", "SELECT i AS id, i AS person, 9 AS part FROM range(5) t(i)"
    )
    fresh = opened_at(spark)
    second = record(fresh, sources).open(fresh).schema.tables[0].read_as
    assert first != second
    assert numbers(fresh, f"SELECT COUNT(*) FROM `{second}`") == (55,)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        fresh.sql(f"SELECT COUNT(*) FROM `{first}`").collect()
    fresh.stop()


@pytest.mark.spark
def test_what_cannot_be_recorded_says_why(session: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "mixed" / "a.parquet", "SELECT 1::BIGINT AS id")
    write(tmp_path / "mixed" / "b.parquet", "SELECT 'x' AS id")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.parquet").write_text("id\n1\n")
    bad = str(tmp_path / "bad.parquet")
    session.sql("SELECT CAST(X'FF41' AS STRING) AS name").write.parquet(bad)
    session.sql("CREATE OR REPLACE VIEW default.shown AS SELECT 1 AS id")
    session.sql("CREATE TABLE IF NOT EXISTS default.of_orc (id INT) USING orc")
    for source, why in (
        ((str(tmp_path / "none" / "*.parquet"),), "no file that is named like"),
        ((str(tmp_path / "mixed" / "*.parquet"),), "cannot be read as those of one table"),
        ((str(tmp_path / "text" / "*.parquet"),), "cannot be read as those of one table"),
        ((bad,), "text that is no UTF-8"),
    ):
        with pytest.raises(PolicyError, match=why):
            pin_verified(session, of(tmp_path, t=source), "spark.toml")
    for name, why in (("shown", "is a view"), ("of_orc", "is kept as orc"), ("nowhere", "has no table")):
        with pytest.raises(PolicyError, match=why):
            pin_verified(session, of(tmp_path, **{name: ()}), "spark.toml")
    assert pin(session, of(tmp_path, nowhere=()), "spark.toml", is_whole=False) == {}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("unscaled", "is_one"), [(99_999, True), (-99_999, True), (100_000, False), (-(2**31), False)]
)
@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (5, 0), (5, 5)])
def test_a_decimal_beyond_its_own_digits_is_not_recorded(
    session: SparkSession, tmp_path: Path, unscaled: int, is_one: bool, precision: int, scale: int
) -> None:
    """Spark's reader gives whatever the bits are, and `n * 2 > 3` would raise where the type alone bounds a column."""
    bits = pa.py_buffer(b"".join(one.to_bytes(16, "little", signed=True) for one in (1, unscaled)))
    column = pa.Array.from_buffers(pa.decimal128(precision, scale), 2, [None, bits])
    pq.write_table(pa.table({"n": column}), tmp_path / "a.parquet", store_decimal_as_integer=True)
    files = of(tmp_path, visit=(str(tmp_path / "a.parquet"),))
    if is_one:
        assert pin_verified(session, files, "spark.toml")["visit"].rows == 2
        return
    with pytest.raises(PolicyError, match="a decimal with more digits than its type"):
        pin_verified(session, files, "spark.toml")


@pytest.mark.spark
@pytest.mark.parametrize("beside", [1.0, 7.0])
@pytest.mark.parametrize("test", ["x > 6", "x <> 1", "NOT (x <= 6)"])
@pytest.mark.parametrize(
    ("kind", "is_pushed"), [("float64", "false"), ("float64", "true"), ("float32", "true")]
)
def test_no_row_is_left_out_for_what_stands_beside_it(
    spark: SparkServer, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    beside: float, test: str, kind: str, is_pushed: str,
) -> None:  # fmt: skip
    """A file's statistics leave NaN out: one person's 1.0 would take the NaN of all others from a count.

    With filters that are pushed too: a form that no statistics are held against needs no setting.
    """
    monkeypatch.setitem(spark_connection.SETTINGS, "spark.sql.parquet.filterPushdown", is_pushed)
    cells = pa.array([*[float("nan")] * 99, beside], pa.type_for_alias(kind))
    rows = {"id": [*range(100)], "x": cells}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    files = of(tmp_path, visit=(str(tmp_path / "a.parquet"),))
    record(session, files)
    backend = SparkBackend.of(spark.url, files=files)
    with backend.snapshot() as snapshot:
        (table,) = snapshot.schema().tables
        ((counted,),) = next(snapshot.run(f"SELECT COUNT(*) FROM `{table.read_as}` WHERE {test}"))
    backend.close_idle()
    assert counted == 99 + (beside > 6)


@pytest.mark.spark
def test_a_table_of_the_catalog_is_read_as_the_catalog_reads_it(
    session: SparkSession, tmp_path: Path
) -> None:
    session.sql("DROP TABLE IF EXISTS default.wild")
    session.sql(
        "CREATE TABLE default.wild (id BIGINT, c CHAR(5), v VARCHAR(5), folded STRING COLLATE UTF8_LCASE, at TIMESTAMP_LTZ, "
        "day DATE, part STRING) USING parquet PARTITIONED BY (day, part)"
    )
    session.sql(
        "INSERT INTO default.wild VALUES "
        "(1, 'ab', 'cd ', 'Ab', TIMESTAMP_LTZ'2026-01-01 00:00:00+02:00', DATE'2026-01-01', 'a/b %=x'), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL), (3, '', '', '', NULL, NULL, '007')"
    )
    session.sql("ALTER TABLE default.wild ADD COLUMN late INT DEFAULT 9")
    opened = record(session, of(tmp_path, wild=())).open(session)
    (table,) = opened.schema.tables
    assert {column.name: (str(column.type), column.is_bytewise) for column in table.columns} == {
        "id": ("bigint", True),
        "c": ("text", True),
        "v": ("text", True),
        "folded": ("opaque", False),
        "at": ("timestamp", True),
        "late": ("integer", True),
        "day": ("date", True),
        "part": ("text", True),
    }
    assert not any(column.not_null for column in table.columns)
    assert table.primary_key == ()
    rows = session.sql(
        f"SELECT id, c, v, CAST(at AS STRING), CAST(day AS STRING), part, late FROM `{table.read_as}` ORDER BY id"
    ).collect()
    assert [tuple(row) for row in rows] == [
        (1, "ab", "cd ", "2025-12-31 22:00:00", "2026-01-01", "a/b %=x", 9),
        (2, None, None, None, None, None, 9),
        (3, "", "", None, None, "007", 9),
    ]
    session.sql("INSERT INTO default.wild VALUES (4, 'x', 'x', 'x', NULL, 1, DATE'2026-01-01', 'y')")
    opened.check(session)
    assert numbers(session, f"SELECT COUNT(*) FROM `{table.read_as}`") == (3,)
    session.sql("INSERT OVERWRITE default.wild VALUES (5, 'x', 'x', 'x', NULL, 1, DATE'2026-01-01', 'y')")
    with pytest.raises(FilesChanged):
        opened.check(session)


@pytest.mark.spark
@pytest.mark.parametrize(("folder", "is_one"), [("part=2", True), ("part=3", False), ("two", False)])
def test_a_partition_whose_folder_does_not_name_it_is_not_recorded(
    session: SparkSession, tmp_path: Path, folder: str, is_one: bool
) -> None:
    """The catalog says that its rows are of part 2; read by their folder they would be of 3, or of none."""
    session.sql("DROP TABLE IF EXISTS default.apart")
    place = tmp_path / "apart"
    session.sql(
        f"CREATE TABLE default.apart (id INT, part INT) USING parquet PARTITIONED BY (part) LOCATION '{place}'"
    )
    session.sql(f"ALTER TABLE default.apart ADD PARTITION (part = 2) LOCATION '{place / folder}'")
    session.sql("INSERT INTO default.apart PARTITION (part = 2) VALUES (1)")
    if is_one:
        assert pin_verified(session, of(tmp_path, apart=()), "spark.toml")["apart"].rows == 1
        return
    with pytest.raises(PolicyError, match="in folders that are not named by their values"):
        pin_verified(session, of(tmp_path, apart=()), "spark.toml")


@pytest.mark.spark
def test_the_catalog_shows_its_tables_and_what_cannot_be_declared(session: SparkSession) -> None:
    session.sql("CREATE SCHEMA IF NOT EXISTS sales")
    session.sql("CREATE TABLE IF NOT EXISTS sales.orders (id BIGINT) USING parquet")
    session.sql("CREATE OR REPLACE TEMPORARY VIEW ours AS SELECT 1 AS id")
    session.sql("CREATE OR REPLACE VIEW sales.shown AS SELECT 1 AS id")
    session.sql("CREATE TABLE sales.gone (id BIGINT) USING parquet")
    session.sql("CREATE OR REPLACE VIEW sales.broken AS SELECT * FROM sales.gone")
    session.sql("DROP TABLE sales.gone")
    found = {table.path: table.unusable for table in PinnedTables().open(session).schema.tables}
    assert found["sales", "orders"] is None
    assert "is a view" in (found["sales", "shown"] or "")
    assert "is a view" in (found["sales", "broken"] or "")
    assert not any(name == "ours" for _, name in found)
    only = PinnedTables(names=["sales.orders"]).open(session).schema
    assert [table.path for table in only.tables] == [("sales", "orders")]
    assert only.dialect == "spark"


@pytest.mark.spark
def test_a_record_of_other_tables_answers_nothing(session: SparkSession, sources: FileSources) -> None:
    record(session, sources)
    other = FileSources(sources.folder, {**sources.tables, "more": ()}, sources.record)
    with pytest.raises(FilesChanged):
        PinnedTables(other).open(session)
    content = json.loads(sources.record.read_text())
    content["tables"]["visit"]["files"][0]["modified"] += 1
    sources.record.write_text(json.dumps(content))
    with pytest.raises(FilesChanged):
        PinnedTables(sources).open(session)


@pytest.mark.spark
def test_a_statement_is_followed_by_one_look_and_preceded_by_none_that_is_new(
    session: SparkSession, sources: FileSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look is at what the statement has read; no other question is asked, and no view is made again."""
    write(sources.folder / "other.parquet", "SELECT 1 AS id")
    files = of(sources.folder, **sources.tables, other=(str(sources.folder / "other.parquet"),))
    monkeypatch.setattr(spark_tables, "_FRESH_SECONDS", 3600)
    tables = record(session, files)
    opened = tables.open(session)
    looks = looked_at(session, monkeypatch)
    assert tables.open(session) is opened
    assert looks == []
    opened.check(session, opened.read_by(f"SELECT COUNT(*) FROM `{opened.views['visit']}`"))
    assert looks == [{"1.parquet", "2.parquet"}]
    monkeypatch.setattr(spark_tables, "_FRESH_SECONDS", 0)
    tables.open(session)
    assert looks[1:] == [{"1.parquet", "2.parquet", "other.parquet"}]


@pytest.mark.spark
def test_what_one_look_finds_has_all_that_follow_look_first(
    session: SparkSession, sources: FileSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_tables, "_FRESH_SECONDS", 3600)
    tables = record(session, sources)
    opened = tables.open(session)
    (sources.folder / "visits" / "1.parquet").unlink()
    assert tables.open(session) is opened, "it was there a moment ago"
    for look in (opened.check, tables.open, tables.open):
        with pytest.raises(FilesChanged):
            look(session)


def looked_at(session: SparkSession, patch: pytest.MonkeyPatch) -> list[set[str]]:
    """Return a list that gets the names of files that are looked at, and fails for any other question."""
    client: Any = session.client
    ask, found = client.to_table, list[set[str]]()

    def asked(plan: Any, *rest: object) -> Any:
        found.append({Path(one).name for one in plan.root.project.input.read.data_source.paths})
        return ask(plan, *rest)

    patch.setattr(client, "to_table", asked)
    for other in ("config", "execute_command", "schema"):
        patch.setattr(client, other, None)
    return found
