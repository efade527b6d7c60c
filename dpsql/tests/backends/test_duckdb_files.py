"""Parquet files as a backend: what is recorded is what is read, and nothing else can be read or written."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow
import pytest
from pyarrow import parquet

from dpsql.backends import duckdb_files
from dpsql.backends.duckdb_files import DuckDBFiles, pin_verified
from dpsql.backends.pinned_files import compare, find_files, read_record, version_of, write_record
from dpsql.errors import EngineFailure, FilesChanged, PolicyError
from dpsql.policy.model import FileSources
from dpsql.relation.types import BIGINT, DOUBLE, INTEGER, TEXT, TIMESTAMP

COUNT = 'SELECT COUNT(*) FROM "main"."visit"'
ROWS = "SELECT (i % 10)::INTEGER AS who, i AS n, 'x' || i AS note FROM range({}) AS t (i)"

Make = Callable[..., FileSources]


def write(path: Path, sql: str = ROWS.format(100)) -> None:
    duckdb.sql(f"COPY ({sql}) TO '{path}' (COMPRESSION uncompressed)")


def recorded(folder: Path, *patterns: str) -> FileSources:
    files = FileSources(folder, {"visit": patterns or ("*.parquet",)}, folder / "dpsql-files.json")
    write_record(files.record, pin_verified(files, "dpsql.toml"))
    return files


def count(backend: DuckDBFiles) -> object:
    with backend.snapshot() as snapshot:
        return next(iter(snapshot.run(COUNT)))[0][0]


@pytest.fixture
def files(tmp_path: Path) -> FileSources:
    write(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet")
    return recorded(tmp_path)


def test_a_table_is_its_files(files: FileSources) -> None:
    backend = DuckDBFiles(files)
    assert count(backend) == 200
    with backend.snapshot() as snapshot:
        (table,) = snapshot.schema().tables
    assert table.unusable is None
    assert [(column.name, column.type, column.not_null) for column in table.columns] == [
        ("who", INTEGER, False), ("n", BIGINT, False), ("note", TEXT, False)
    ]  # fmt: skip
    assert table.primary_key == ()
    assert table.unique == ()
    assert table.proved is None  # whatever is asserted or recorded of them (soundness.md 1.16)


def test_one_file_under_two_names_is_not_recorded(files: FileSources) -> None:
    (files.folder / "c.parquet").symlink_to("a.parquet")
    with pytest.raises(
        PolicyError, match=r'a\.parquet" and ".*c\.parquet" are one file; its rows would be read twice'
    ):
        pin_verified(files, "dpsql.toml")


def test_moments_of_any_unit_and_zone_are_read_in_microseconds_of_utc(tmp_path: Path) -> None:
    write(
        tmp_path / "a.parquet",
        "SELECT TIMESTAMPTZ '2020-01-01 02:00:00+02' AS z, TIMESTAMP_NS '2020-01-01 00:00:00.000001' AS ns, "
        "TIMESTAMPTZ 'infinity' AS never, 1::HUGEINT AS huge",
    )
    with DuckDBFiles(recorded(tmp_path)).snapshot() as snapshot:
        (table,) = snapshot.schema().tables
        assert [column.type for column in table.columns] == [TIMESTAMP, TIMESTAMP, TIMESTAMP, DOUBLE]
        shown = 'SELECT CAST(z AS VARCHAR), CAST(ns AS VARCHAR), CAST(never AS VARCHAR) FROM "main"."visit"'
        assert next(iter(snapshot.run(shown))) == [
            ("2020-01-01 00:00:00", "2020-01-01 00:00:00.000001", "infinity")
        ]


# --- what was recorded ------------------------------------------------------------------------------------


def test_nothing_is_answered_before_files_are_recorded(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    backend = DuckDBFiles(FileSources(tmp_path, {"visit": ("a.parquet",)}, tmp_path / "dpsql-files.json"))
    with pytest.raises(FilesChanged, match="not recorded yet"):
        count(backend)


def test_a_record_of_a_version_that_verified_less_is_not_taken(files: FileSources) -> None:
    old = json.loads(files.record.read_text())
    assert old["format"] == 2
    files.record.write_text(json.dumps({**old, "format": 1}))
    with pytest.raises(PolicyError, match="dpsql refresh writes it anew"):
        count(DuckDBFiles(files))
    recorded(files.folder)
    assert count(DuckDBFiles(files)) == 200


def _touched(folder: Path) -> None:
    os.utime(folder / "a.parquet", ns=(1, 1))


def _longer(folder: Path) -> None:
    write(folder / "a.parquet", ROWS.format(101))


def _of_the_same_size_and_time(folder: Path) -> None:
    before = os.stat(folder / "a.parquet")
    write(folder / "a.parquet", ROWS.format(100).replace("AS n", "AS m"))
    assert os.stat(folder / "a.parquet").st_size == before.st_size
    os.utime(folder / "a.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))


def _gone(folder: Path) -> None:
    (folder / "b.parquet").unlink()


def _no_parquet(folder: Path) -> None:
    (folder / "b.parquet").write_text("who,n\n1,2\n")


CHANGES = (_touched, _longer, _of_the_same_size_and_time, _gone, _no_parquet)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_refused_until_it_is_recorded(
    files: FileSources, change: Callable[[Path], None]
) -> None:
    backend = DuckDBFiles(files)
    assert count(backend) == 200
    change(files.folder)
    for one in (backend, DuckDBFiles(files)):  # a server that runs, and one that begins
        with pytest.raises(FilesChanged, match="not the ones that were recorded"):
            count(one)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_while_it_is_read_gives_no_result(
    files: FileSources, change: Callable[[Path], None]
) -> None:
    with DuckDBFiles(files).snapshot() as snapshot:
        rows = snapshot.run(COUNT)
        found = next(rows)
        change(files.folder)
        assert found
        with pytest.raises(FilesChanged):
            next(rows)
    with pytest.raises(FilesChanged), DuckDBFiles(files).snapshot():
        pass


def test_not_a_row_is_given_of_a_file_that_changed_since_the_snapshot(files: FileSources) -> None:
    with DuckDBFiles(files).snapshot() as snapshot:
        _touched(files.folder)
        with pytest.raises(FilesChanged):
            next(snapshot.run(COUNT))


def test_columns_are_held_to_the_record_too(files: FileSources) -> None:
    with DuckDBFiles(files).snapshot() as snapshot:
        assert len(snapshot.columns('SELECT n FROM "main"."visit"')[0][0]) == 200
        _longer(files.folder)
        with pytest.raises(EngineFailure):
            snapshot.columns('SELECT n FROM "main"."visit"')


def test_new_files_are_read_once_they_are_recorded(files: FileSources) -> None:
    backend = DuckDBFiles(files)
    with backend.snapshot() as snapshot:
        before = snapshot.schema()
    write(files.folder / "c.parquet")
    assert count(backend) == 200
    recorded(files.folder)
    assert count(backend) == 300
    with backend.snapshot() as snapshot:
        assert snapshot.schema() != before  # other plans, other stored answers


def test_a_snapshot_says_the_version_that_it_reads(files: FileSources) -> None:
    """Also where others are opened over newer files before it is asked: both are read still, each by its own list."""
    backend = DuckDBFiles(files)
    with backend.snapshot() as first:
        write(files.folder / "c.parquet")
        recorded(files.folder)
        with backend.snapshot() as second:
            versions = [one.schema().tables[0].version for one in (first, second)]
            counts = [next(one.run(COUNT))[0][0] for one in (first, second)]
    assert counts == [200, 300]
    known = read_record(files.record)
    assert known is not None
    assert versions == [version_of(known["visit"][:2]), version_of(known["visit"])]


def test_many_files_are_read_as_few_are(files: FileSources, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few the engine knows the statistics: these are what joins are planned by, and what rows are not."""
    asked = 'SELECT COUNT(*), SUM(n), MIN(note), MAX(who) FROM "main"."visit" WHERE n > 50'
    said = []
    for most in (16, 1):
        monkeypatch.setattr(duckdb_files, "_MOST_APART", most)
        backend = DuckDBFiles(files)
        with backend.snapshot() as snapshot:
            said.append((list(snapshot.run(asked)), snapshot.schema()))
            ((known,),) = next(snapshot.run('SELECT CAST(stats(n) AS VARCHAR) FROM "main"."visit" LIMIT 1'))
            assert ("'max': 99" in known) == (most == 16)
    assert said[0] == said[1]


def test_check_says_what_changed(files: FileSources) -> None:
    known = read_record(files.record)
    assert known is not None
    assert compare(files, "dpsql.toml", known) == []
    _touched(files.folder)
    write(files.folder / "c.parquet")
    assert compare(files, "dpsql.toml", known) == [
        f'"{files.folder}/a.parquet" of visit is not what was recorded, and nothing is answered',
        f'"{files.folder}/c.parquet" of visit is not recorded, and is not read',
    ]


def test_content_that_changes_behind_the_footer_is_found_by_check(files: FileSources) -> None:
    known = read_record(files.record)
    assert known is not None
    path = files.folder / "a.parquet"
    before, content = os.stat(path), bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(compare(files, "dpsql.toml", known)) == 1


# --- what is not recorded ----------------------------------------------------------------------------------


def test_files_of_two_schemas_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet", ROWS.format(3).replace("::INTEGER", "::VARCHAR"))
    with pytest.raises(PolicyError, match="columns of other names, types or order"):
        recorded(tmp_path)


def test_a_value_that_cannot_be_read_is_found_before_it_can_tell_of_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(
        path,
        "SELECT i AS n, CASE WHEN i = 7 THEN 'marker' ELSE 'x' || i END AS note FROM range(100) AS t (i)",
    )
    broken = path.read_bytes().replace(b"marker", b"\xff\xfe\xff\xfe\xff\xfe")
    path.write_bytes(broken)
    with pytest.raises(PolicyError, match="cannot be read to its end") as caught:
        recorded(tmp_path)
    assert "marker" not in str(caught.value)


@pytest.mark.parametrize("other", ["n", "t"])
def test_lists_are_read_to_their_end_whatever_columns_are_called(tmp_path: Path, other: str) -> None:
    path = tmp_path / "a.parquet"
    list_of = "['x' || i, CASE WHEN i = 7 THEN 'marker' END]"
    write(path, f"SELECT i AS {other}, {list_of} AS notes FROM range(100) AS t (i)")
    path.write_bytes(path.read_bytes().replace(b"marker", b"\xff\xfe\xff\xfe\xff\xfe"))
    with pytest.raises(PolicyError, match="cannot be read to its end"):
        recorded(tmp_path)


def test_a_file_whose_footer_is_none_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    footer = b"no footer" * 4
    (tmp_path / "b.parquet").write_bytes(b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1")
    with pytest.raises(PolicyError, match=r'b\.parquet" cannot be read'):
        recorded(tmp_path)


def test_a_column_of_more_digits_than_are_shown_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, "SELECT 1::INTEGER AS who, 1.5::DECIMAL(38, 2) AS wide")
    content = path.read_bytes()
    # the precision, 38 as a varint, twice: of the element and of its logical type; 40 in its place
    changed = content.replace(b"\x15\x04\x15\x4c", b"\x15\x04\x15\x50")
    assert changed != content
    path.write_bytes(changed)
    with DuckDBFiles(recorded(tmp_path)).snapshot() as snapshot:
        (table,) = snapshot.schema().tables
    assert [bool(column.refused) for column in table.columns] == [False, True]


@pytest.mark.parametrize("name", ["a[1].parquet", "a*.parquet", "a{b}.parquet"])
def test_a_file_whose_name_is_a_pattern_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "plain.parquet")
    (tmp_path / "plain.parquet").rename(tmp_path / name)
    with pytest.raises(PolicyError, match="has a name that is a pattern too"):
        find_files("dpsql.toml", tmp_path, ("*.parquet",))


def test_a_quote_in_a_name_is_only_a_name(tmp_path: Path) -> None:
    (tmp_path / "it's").mkdir()
    write(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").rename(tmp_path / "it's" / "a', x.parquet")
    assert count(DuckDBFiles(recorded(tmp_path, "it's/*.parquet"))) == 100


# --- the seal ------------------------------------------------------------------------------------------------


@pytest.fixture
def inside(files: FileSources) -> duckdb.DuckDBPyConnection:
    """A cursor of the sealed database itself, as somebody has it who came past the rule of one SELECT."""
    (files.folder / "secret.txt").write_text("secret")
    backend = DuckDBFiles(files)
    assert count(backend) == 200
    assert backend._connection is not None
    return backend._connection.cursor()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{folder}/secret.txt')",
        "SELECT * FROM read_csv('{folder}/secret.txt')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_parquet('{folder}/*.parquet')",
        "SELECT * FROM read_parquet('{folder}/../{name}/secret.txt')",
        "SELECT * FROM '{folder}/secret.txt'",
        "ATTACH '{folder}/other.duckdb'",
        "ATTACH '{folder}/secret.txt' AS s",
        "COPY (SELECT 1) TO '{folder}/evil.parquet'",
        "COPY (SELECT 1) TO '{folder}/a.parquet'",
        "COPY (SELECT 1) TO '{folder}/secret.txt' (FORMAT csv, USE_TMP_FILE false)",
        "EXPORT DATABASE '{folder}/all'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET allowed_paths = ['/etc/passwd']",
        "SET allowed_directories = ['/']",
        "RESET lock_configuration",
        "SELECT * FROM read_parquet('https://127.0.0.1:1/a.parquet')",
    ],
)
def test_the_engine_refuses_it_by_itself(
    files: FileSources, inside: duckdb.DuckDBPyConnection, sql: str
) -> None:
    with pytest.raises(duckdb.Error):
        inside.execute(sql.format(folder=files.folder, name=files.folder.name)).fetchall()
    assert not (files.folder / "evil.parquet").exists()
    assert not (files.folder / "all").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/a.parquet' (USE_TMP_FILE false)",
        "COPY (SELECT 1) TO '{folder}/a.parquet' (FORMAT csv, USE_TMP_FILE false)",
        "ATTACH ':memory:' AS other",
        "CREATE TABLE t (a INTEGER)",
        'CREATE OR REPLACE VIEW "main"."visit" AS SELECT 1',
        "SELECT 1; COPY (SELECT 1) TO '{folder}/a.parquet' (USE_TMP_FILE false)",
        "EXPLAIN ANALYZE SELECT 1",
        "SET threads = 1",
    ],
)
def test_what_the_engine_would_do_never_reaches_it(files: FileSources, sql: str) -> None:
    """An allowed file could be overwritten, were it not for the rule of one SELECT: this is the wall that there is."""
    content = (files.folder / "a.parquet").read_bytes()
    with DuckDBFiles(files).snapshot() as snapshot, pytest.raises(EngineFailure) as caught:
        list(snapshot.run(sql.format(folder=files.folder)))
    assert caught.value.detail == "refused: not a single SELECT"
    assert (files.folder / "a.parquet").read_bytes() == content


def test_no_directory_is_allowed_but_the_one_for_spilling(inside: duckdb.DuckDBPyConnection) -> None:
    ((found,),) = inside.execute("SELECT current_setting('allowed_directories')").fetchall()
    assert [Path(one).name.startswith("dpsql-") for one in found] == [True]


def test_the_directory_for_spilling_goes_with_the_database(files: FileSources) -> None:
    backend = DuckDBFiles(files)
    count(backend)
    spill = backend._spill
    assert spill is not None
    assert Path(spill).stat().st_mode & 0o077 == 0
    assert backend.close_idle()
    assert not Path(spill).exists()


# --- INT96 -------------------------------------------------------------------------------------------------


def write_int96(path: Path, *, has_statistics: bool) -> None:
    """Write three moments as earlier writers did: nanoseconds of the day, then the Julian day."""
    moments = [(2458850, 18_000 * 10**9), (2458849, 72_000 * 10**9), (2458855, 7)]
    cells = [struct.pack("<qi", nanoseconds, day) for day, nanoseconds in moments]
    table = pyarrow.table({"who": [1, 2, 3], "seen": pyarrow.array(cells, pyarrow.binary(12))})
    parquet.write_table(
        table, path, use_dictionary=False, compression="none", store_schema=False,
        write_statistics=["seen"] if has_statistics else False,
    )  # fmt: skip
    content = path.read_bytes()
    # the type, FIXED_LEN_BYTE_ARRAY as a varint, twice: of the element and of its chunk; INT96 in its place
    assert content.count(b"\x15\x0e") == 2
    path.write_bytes(content.replace(b"\x15\x0e", b"\x15\x06"))


def test_int96_is_a_timestamp_of_microseconds(tmp_path: Path) -> None:
    write_int96(tmp_path / "a.parquet", has_statistics=False)
    with DuckDBFiles(recorded(tmp_path)).snapshot() as snapshot:
        (table,) = snapshot.schema().tables
        (before,) = next(
            snapshot.run('SELECT COUNT(*) FROM "main"."visit" WHERE seen < TIMESTAMP \'2020-01-01\'')
        )
        (last,) = next(snapshot.run('SELECT CAST(MAX(seen) AS VARCHAR) FROM "main"."visit"'))
    assert [(column.name, column.type, column.refused) for column in table.columns] == [
        ("who", BIGINT, ""), ("seen", TIMESTAMP, "")
    ]  # fmt: skip
    assert (before, last) == ((1,), ("2020-01-06 00:00:00",))


def test_int96_whose_statistics_leave_out_rows_is_not_recorded(tmp_path: Path) -> None:
    write_int96(tmp_path / "a.parquet", has_statistics=True)
    read = f"SELECT COUNT(*) FROM '{tmp_path}/a.parquet' WHERE seen < TIMESTAMP '2020-01-01'"
    assert duckdb.sql(read).fetchall() == [(0,)], "the engine reads all: nothing has to be refused any more"
    with pytest.raises(
        PolicyError, match=r'column "seen" of .* has a smallest value that is not the one that is said'
    ):
        recorded(tmp_path)


# --- NaN ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("are_apart", [True, False], ids=["few files", "a list of files"])
@pytest.mark.parametrize(
    ("test", "counted"),
    [("x > 6", 99), ("x <> 1", 99), ("NOT (x <= 6)", 99), ("x = 'nan'", 99), ("x >= 1", 100)],
)
def test_a_nan_counts_whatever_is_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, are_apart: bool, test: str, counted: int
) -> None:
    """Statistics leave it out, as every writer but the engine's own makes them."""
    cells = pyarrow.array([float("nan")] * 99 + [1.0], pyarrow.type_for_alias(kind))
    parquet.write_table(pyarrow.table({"x": cells}), tmp_path / "a.parquet")
    if not are_apart:
        monkeypatch.setattr(duckdb_files, "_MOST_APART", 0)
    with DuckDBFiles(recorded(tmp_path)).snapshot() as snapshot:
        (table,) = snapshot.schema().tables
        (found,) = next(snapshot.run(f'SELECT COUNT(*) FROM "main"."visit" WHERE {test}'))
    assert [str(column.type) for column in table.columns] == [
        "double precision" if kind == "float64" else "real"
    ]
    assert found == (counted,)
