"""L1 and L2 over what files say of their values: each statement gives what it gives over a table of the same rows, for
both neighbours, or the file is not recorded (soundness.md 1.27).

Files are as their writers make them: the footers of Arrow, Polars and DuckDB as they are, and those of older writers by
patching what is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import duckdb
import polars
import pyarrow
import pytest
from pyarrow import parquet

from dpsql.backends import duckdb_files, verify_claims
from dpsql.backends.duckdb_files import DuckDBFiles, pin_verified
from dpsql.backends.pinned_files import write_record
from dpsql.errors import EngineFailure, PolicyError
from dpsql.policy.model import FileSources
from dpsql.tests.support.duckdb_pool import empty_duckdb
from dpsql.tests.support.length import some
from dpsql.tests.support.patched_parquet import forget, say, say_of_pages, statistics_of, without_bits

from .planting import plant

Patch = pytest.MonkeyPatch
Row = tuple[int, str | None, int | None, str | None, float | None, bool | None]
Writer = Callable[[Path, Sequence[Row]], None]

TYPES = "person BIGINT, x VARCHAR, n INTEGER, day DATE, d DOUBLE, flag BOOLEAN"
LEVELS = ("low", "medium", "high")

STATEMENTS = [
    "SELECT COUNT(*) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE x = 'high'",
    "SELECT COUNT(*) FROM visit WHERE x = 'medium'",
    "SELECT MIN(x) FROM visit",
    "SELECT MAX(x) FROM visit",
    "SELECT MIN(n), MAX(n) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE x IN ('high', 'é')",
    "SELECT COUNT(*) FROM visit WHERE x <> 'low'",
    "SELECT COUNT(*) FROM visit WHERE x > 'i'",
    "SELECT COUNT(*) FROM visit WHERE x <= 'high'",
    "SELECT COUNT(*) FROM visit WHERE x BETWEEN 'h' AND 'k'",
    "SELECT COUNT(*), COUNT(x), COUNT(n), COUNT(day), COUNT(d), COUNT(flag) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE x IS NULL",
    "SELECT COUNT(*) FROM visit WHERE n IS NULL",
    "SELECT COUNT(*) FROM visit WHERE n IS NOT NULL AND d IS NOT NULL",
    "SELECT COUNT(*) FROM visit WHERE x IS DISTINCT FROM 'high'",
    "SELECT COUNT(*) FROM visit WHERE n IS DISTINCT FROM 7",
    "SELECT COUNT(*) FROM visit WHERE d IS DISTINCT FROM 7.5",
    "SELECT COUNT(*) FROM visit WHERE flag IS DISTINCT FROM true",
    "SELECT COUNT(*) FROM visit WHERE (x = 'high') IS NOT TRUE",
    "SELECT COUNT(*) FROM visit WHERE (n = 7) IS NOT TRUE",
    "SELECT COUNT(*) FROM visit WHERE x NOT IN ('high', 'low')",
    "SELECT COUNT(*) FROM visit WHERE x > 'high' OR x IS NULL",
    "SELECT COUNT(*) FROM visit WHERE n > 7 OR n IS NULL",
    "SELECT COUNT(*) FROM visit WHERE x LIKE 'l%'",
    "SELECT COUNT(*) FROM visit WHERE x LIKE 'h%' OR starts_with(x, 'm')",
    "SELECT COUNT(*) FROM visit WHERE COALESCE(x, 'none') = 'none'",
    "SELECT COUNT(*) FROM visit WHERE COALESCE(n, 0) < 5",
    "SELECT COUNT(*) FROM visit WHERE length(x) = 3",
    "SELECT COUNT(*) FROM visit WHERE upper(x) = 'LOW'",
    "SELECT COUNT(*) FROM visit WHERE CASE WHEN x IS NULL THEN true ELSE n > 7 END",
    "SELECT COUNT(*) FROM visit WHERE CAST(n AS BIGINT) * 2 > 14",
    "SELECT COUNT(*) FROM visit WHERE CAST(n AS VARCHAR) = '3'",
    "SELECT COUNT(*) FROM visit WHERE day - DATE '2020-01-01' > 1",
    "SELECT COUNT(DISTINCT x), COUNT(DISTINCT n), COUNT(DISTINCT day) FROM visit",
    "SELECT SUM(n), AVG(d), SUM(CASE WHEN n IS NULL THEN 1 ELSE 0 END) FROM visit",
    "SELECT flag, day, COUNT(*) FROM visit GROUP BY flag, day ORDER BY ALL",
    "SELECT person, x FROM visit ORDER BY n DESC NULLS LAST, person LIMIT 3",
    "SELECT person, n FROM visit ORDER BY x, person LIMIT 3",
    "SELECT COUNT(*) FROM visit a JOIN visit b ON a.person = b.person AND a.x = b.x WHERE b.n < 7",
    "SELECT COUNT(*) FROM visit WHERE n = 7",
    "SELECT COUNT(*) FROM visit WHERE n > 7",
    "SELECT COUNT(*) FROM visit WHERE n < 7",
    "SELECT COUNT(*) FROM visit WHERE n BETWEEN 0 AND 7",
    "SELECT COUNT(*) FROM visit WHERE day >= '2020-01-03'",
    "SELECT COUNT(*) FROM visit WHERE day = '2020-01-02'",
    "SELECT COUNT(*) FROM visit WHERE d > 6",
    "SELECT COUNT(*) FROM visit WHERE d < 2",
    "SELECT COUNT(*) FROM visit WHERE NOT flag",
    "SELECT MIN(x), MAX(x), MIN(n), MAX(n), MIN(day), MAX(day), MIN(d), MAX(d) FROM visit",
    "SELECT n, COUNT(*) FROM visit GROUP BY n ORDER BY n",
    "SELECT x, COUNT(*), SUM(n) FROM visit GROUP BY x ORDER BY x",
    "SELECT COUNT(*) FROM visit a JOIN (VALUES ('high'), ('low')) b (x) ON a.x = b.x",
    "SELECT COUNT(*) FROM visit a JOIN (VALUES (7)) b (n) ON a.n = b.n",
]


def of_ninety_nine(*person: Row) -> tuple[list[Row], list[Row]]:
    """Return neighbours: 99 others with one row each, and these with the person's rows among them."""
    others: list[Row] = [(i, "high", 7, "2020-01-02", 7.5, True) for i in range(2, 101)]
    return [*others[:10], *person, *others[10:]], others


PERSON: Row = (1, "low", 3, "2020-01-03", 1.0, False)
NOBODY: Row = (1, None, None, None, None, None)
FAR: Row = (1, "é", 300, "2019-12-31", float("nan"), None)
OTHERS = of_ninety_nine()[1]
VARIED: list[Row] = [
    (i, "high" if i % 2 else "medium", i % 5, "2020-01-02", i / 2, i % 3 == 0) for i in range(2, 101)
]
DATABASES = (OTHERS, *(of_ninety_nine(person)[0] for person in (PERSON, NOBODY, FAR)), VARIED)
"""Each of those with a person is a neighbour of the first one."""


# --- writers --------------------------------------------------------------------------------------------------


def table_of(rows: Sequence[Row]) -> pyarrow.Table:
    names = [part.split()[0] for part in TYPES.split(", ")]
    kinds = [
        pyarrow.int64(),
        pyarrow.string(),
        pyarrow.int32(),
        pyarrow.string(),
        pyarrow.float64(),
        pyarrow.bool_(),
    ]
    cells = [pyarrow.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    cells[3] = cells[3].cast(pyarrow.date32())
    return pyarrow.table(cells, names)


def by_arrow(path: Path, rows: Sequence[Row], **options: object) -> None:
    settings = {"row_group_size": 40, "compression": "none", "use_dictionary": ["x"], **options}
    parquet.write_table(table_of(rows), path, **settings)


def by_polars(path: Path, rows: Sequence[Row]) -> None:
    frame = polars.from_arrow(table_of(rows))
    assert isinstance(frame, polars.DataFrame)
    frame.write_parquet(path, row_group_size=40)


def by_duckdb(path: Path, rows: Sequence[Row]) -> None:
    with empty_duckdb() as connection:
        connection.register("visit", table_of(rows))
        connection.execute(f"COPY (SELECT * FROM visit) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


def groups_of(rows: Sequence[Row], column: int) -> list[list[object]]:
    """Return the values of a column that are not NULL, row group by row group."""
    return [
        [row[column] for row in rows[at : at + 40] if row[column] is not None]
        for at in range(0, len(rows), 40)
    ]


def with_bounds_by(
    path: Path, rows: Sequence[Row], *, column: str, order: Callable[[bytes], object], is_old: bool
) -> None:
    """Write bounds in another order than the values', as some writers do."""
    by_arrow(path, rows)
    place = {"x": 1, "n": 2}[column]
    for group, values in enumerate(groups_of(rows, place)):
        shown = [
            v.encode() if isinstance(v, str) else int(str(v)).to_bytes(4, "little", signed=True)
            for v in values
        ]
        if shown:
            say(
                path,
                column,
                low=min(shown, key=order),
                high=max(shown, key=order),
                group=group,
                is_old=is_old,
            )


def by_level(value: bytes) -> object:
    return LEVELS.index(value.decode()) if value.decode() in LEVELS else len(LEVELS)


def by_signed_bytes(value: bytes) -> object:
    return [byte - 256 if byte > 127 else byte for byte in value]


def by_last_seen(value: bytes) -> object:
    """As a category of numbers has them: in the order in which they were first named, here the greatest first."""
    return -int.from_bytes(value, "little", signed=True)


def patched(
    path: Path, rows: Sequence[Row], *, change: Callable[[Path], None], writer: Writer = by_arrow
) -> None:
    writer(path, rows)
    change(path)


def always(**said: object) -> Writer:
    """Return a writer that says the same of all row groups, whatever is in them."""
    return partial(patched, change=lambda path: say(path, **said))  # type: ignore[arg-type]


def whole(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)


def _empty_bloom(path: Path, column: str) -> None:
    without_bits(path, column)


def _short_exact(path: Path) -> None:
    """Cut texts of the bounds after one byte, and call them exact."""
    if statistics_of(path, "x")[0].get(6):
        say(path, "x", low=b"h", high=b"z", is_exact=True)


WRITTEN_OUT: Writer = partial(by_arrow, use_dictionary=False, data_page_size=64, write_batch_size=8)
RIGHT: dict[str, Writer] = {
    "arrow": by_arrow,
    "arrow, dictionaries": partial(by_arrow, use_dictionary=True, compression="snappy"),
    "arrow, pages of version 2": partial(
        by_arrow, data_page_version="2.0", data_page_size=64, write_batch_size=8
    ),
    "arrow, small pages": partial(by_arrow, data_page_size=64, write_batch_size=8),
    "arrow, page index": partial(by_arrow, write_page_index=True, data_page_size=64, write_batch_size=8),
    "arrow, nothing said": partial(by_arrow, write_statistics=False),
    "polars": by_polars,
    "duckdb": by_duckdb,
    "the old fields alone, in the right order": partial(
        with_bounds_by,
        column="n",
        order=lambda value: int.from_bytes(value, "little", signed=True),
        is_old=True,
    ),
    "parquet-mr 1.10, which says nothing of texts": partial(patched, change=lambda path: forget(path, "x")),
    "impala, hive: no statistics of doubles": partial(patched, change=lambda path: forget(path, "d")),
    "bounds that are wide": always(column="x", low=b"", high=b"\xff", is_exact=False),
}
"""What current writers say: all of it is recorded, and read as it is."""

WRONG: dict[str, tuple[str, Writer]] = {
    "fastparquet, ordered categories": ("x", partial(with_bounds_by, column="x", order=by_level, is_old=False)),
    "fastparquet, ordered numbers": ("n", partial(with_bounds_by, column="n", order=by_last_seen, is_old=False)),
    "parquet-mr 1.8, signed bytes": ("x", partial(with_bounds_by, column="x", order=by_signed_bytes, is_old=True)),
    "a maximum of others": ("n", always(column="n", high=whole(7))),
    "a minimum of others": ("n", always(column="n", low=whole(7))),
    "a maximum of others' texts": ("x", always(column="x", high=b"high", is_exact=False)),
    "exact texts that are cut": ("x", partial(patched, change=_short_exact)),
    "no NULLs": ("n", always(column="n", nulls=0)),
    "no NULLs, of texts": ("x", always(column="x", nulls=0)),
    "a bound of doubles": ("d", always(column="d", low=b"\0\0\0\0\0\0\x14@")),
    "pages alone": ("n", partial(patched, change=lambda path: say_of_pages(path, whole(7), whole(8)))),
    "pages alone, of texts": ("x", partial(patched, writer=WRITTEN_OUT, change=lambda path: say_of_pages(path, b"medium", b"higher"))),
    "pages of one text": ("x", WRITTEN_OUT),
    "an empty bloom filter of texts": (
        "x", partial(patched, writer=by_duckdb, change=partial(_empty_bloom, column="x")),
    ),
    "an empty bloom filter of integers": (
        "n", partial(patched, writer=by_duckdb, change=partial(_empty_bloom, column="n")),
    ),
    "an empty bloom filter of days": (
        "day", partial(patched, writer=by_duckdb, change=partial(_empty_bloom, column="day")),
    ),
}  # fmt: skip
"""What is wrong for one of two neighbours at least: the column that is named, and the writer."""


def nothing_but_null(path: Path, rows: Sequence[Row]) -> None:
    """Say of the first row group that all is NULL in a column, and no bounds: the engine reads none of it."""
    by_arrow(path, rows, write_statistics=False)
    say(path, "n", nulls=40, group=0)


WRONG["nothing but NULL"] = ("n", nothing_but_null)


# --- the law --------------------------------------------------------------------------------------------------


def answers(path: Path, number: int, writer: Writer) -> str:
    """Write a file of a database, record it, and hold each statement to a table; return "" or why it was not recorded."""
    writer(path, DATABASES[number])
    files = FileSources(path.parent, {"visit": (path.name,)}, path.parent / "dpsql-files.json")
    try:
        write_record(files.record, pin_verified(files, "laws.toml"))
    except PolicyError as refused:
        return refused.message
    backend = DuckDBFiles(files)
    with backend.snapshot() as snapshot:
        for sql, shown in zip(STATEMENTS, of_a_table(number), strict=True):
            found = [row for part in snapshot.run(sql) for row in part]
            assert str(found) == shown, sql
    backend.close_idle()
    return ""


@cache
def of_a_table(number: int) -> list[str]:
    """Return what each statement gives over a table of one of the databases."""
    with empty_duckdb() as native:
        native.execute(f"CREATE TABLE visit ({TYPES})")
        native.register("given", table_of(DATABASES[number]))
        native.execute("INSERT INTO visit SELECT * FROM given")
        return [str(native.execute(sql).fetchall()) for sql in STATEMENTS]


def law(folder: Path, writer: Writer) -> list[str]:
    """Return what was said of each database."""
    return [answers(folder / "a.parquet", number, writer) for number in range(len(DATABASES))]


@pytest.mark.parametrize("writer", some([*RIGHT.values()], 6), ids=RIGHT)
def test_what_writers_say_is_recorded_and_read_as_it_is(tmp_path: Path, writer: Writer) -> None:
    assert set(law(tmp_path, writer)) == {""}


def test_so_it_is_of_a_list_of_files(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(duckdb_files, "_MOST_APART", 0)
    assert set(law(tmp_path, by_arrow)) == {""}


@pytest.mark.parametrize(("column", "writer"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_by_file_and_column(tmp_path: Path, column: str, writer: Writer) -> None:
    refused = {one for one in law(tmp_path, writer) if one}
    assert refused
    for one in refused:
        assert f'column "{column}" of "{tmp_path}/a.parquet" has ' in one


# --- planted faults -------------------------------------------------------------------------------------------


Fault = Callable[[Patch], None]


def fault(function: Callable[..., object], *pieces: tuple[str, str]) -> Fault:
    return lambda patch: plant(patch, function, *pieces)


_File = verify_claims._File
LEVELLED, SIGNED = "fastparquet, ordered categories", "parquet-mr 1.8, signed bytes"
UNBOUND = fault(_File._hold, ("if not one.is_compared:", "if True:"))
UNPROBED = fault(_File._probe, ("if not chunks or encode is None", "if True"))
FAULTS: dict[str, tuple[str, Fault]] = {
    "no maximum": ("a maximum of others", fault(_File._hold, ("for high in highs)", "for high in ())"))),
    "no minimum": ("a minimum of others", fault(_File._hold, ("for low in lows)", "for low in ())"))),
    "no bounds": (LEVELLED, UNBOUND),
    "no bounds, signed": (SIGNED, UNBOUND),
    "no bounds of numbers": ("fastparquet, ordered numbers", UNBOUND),
    "no NULLs": ("no NULLs", fault(_File._hold, ("said.nulls is not None and", "False and"))),
    "a row group is left out": (LEVELLED, fault(_File._compare, ("one.column.chunks", "one.column.chunks[1:]"))),
    "bloom filters are believed": ("an empty bloom filter of texts", UNPROBED),
    "bloom filters of integers are believed": ("an empty bloom filter of integers", UNPROBED),
    "bloom filters of days are believed": ("an empty bloom filter of days", UNPROBED),
    "pages are believed": ("pages alone, of texts", fault(verify_claims._spans, ("if is_said:", "if False:"))),
    "bounds of pages are believed": (
        "pages alone, of texts", fault(_File._compare, ("for page in pages:", "for page in ():")),
    ),
    "pages of one text are read": (
        "pages of one text", fault(_File._hold, ("said.is_plain", "False")),
    ),
    "what is said to be NULL is not read": ("nothing but NULL", fault(_File._read_empty, ("if not chunks", "if True"))),
    "exact is near enough": ("exact texts that are cut", fault(verify_claims._is_beside, ("if is_exact:", "if False:"))),
    "the old fields are not looked at": (
        SIGNED, fault(verify_claims._said, ("in (6, 2)", "in (6,)"), ("in (5, 1)", "in (5,)")),
    ),
    "any maximum of texts": (
        "a maximum of others' texts", fault(verify_claims._is_beside, ("bound >= value if is_high", "True if is_high")),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "planted"), FAULTS.values(), ids=FAULTS)
def test_plant(tmp_path: Path, monkeypatch: Patch, name: str, planted: Fault) -> None:
    planted(monkeypatch)
    with pytest.raises((AssertionError, EngineFailure)):
        law(tmp_path, WRONG[name][1])


# --- what it is about -----------------------------------------------------------------------------------------


def count(path: Path, rows: Sequence[Row], writer: Writer, condition: str) -> object:
    writer(path, rows)
    return duckdb.sql(f"SELECT COUNT(*) FROM '{path}' WHERE {condition}").fetchall()[0][0]


@pytest.mark.parametrize(
    ("name", "condition"), [(LEVELLED, "x = 'high'"), ("fastparquet, ordered numbers", "n = 7")]
)
def test_the_engine_itself_takes_others_from_a_count(tmp_path: Path, name: str, condition: str) -> None:
    """One person's row is enough: where the engine no longer does this, nothing has to be refused."""
    writer = WRONG[name][1]
    with_person, without_person = of_ninety_nine(PERSON)
    assert count(tmp_path / "a.parquet", without_person, writer, condition) == 99
    assert count(tmp_path / "a.parquet", with_person, writer, condition) != 99


def test_the_engine_itself_fails_by_one_person(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    grouped = f"SELECT n, COUNT(*) FROM '{path}' GROUP BY n"
    with_person, without_person = of_ninety_nine((1, "low", 300, None, None, None))
    writer = WRONG["a maximum of others"][1]
    writer(path, without_person)
    assert duckdb.sql(grouped).fetchall() == [(7, 99)]
    writer(path, with_person)
    with pytest.raises(duckdb.Error, match="statistics in your data source are corrupt"):
        duckdb.sql(grouped).fetchall()


def test_the_values_are_read_by_nothing_that_is_said_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    WRONG["no NULLs"][1](path, of_ninety_nine(NOBODY)[0])
    counted = f"SELECT COUNT(n), MIN(n) FROM '{path}'"
    with empty_duckdb() as connection:
        assert connection.execute(counted).fetchall() == [(100, 7)], (
            "the engine reads: nothing has to be kept off it"
        )
    with verify_claims.doubting({}) as connection:
        assert connection.execute(counted).fetchall() == [(99, 7)]
