"""What current writers say of values of every type is taken, and one bit that is wrong is not (soundness.md 1.27)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import polars
import pyarrow
import pytest
from pyarrow import parquet

from dpsql.backends.duckdb_files import pin_verified
from dpsql.backends.verify_claims import BINARY, I64, STRUCT, Fields, read_struct, write_struct, xxh64
from dpsql.errors import PolicyError
from dpsql.policy.model import FileSources
from dpsql.tests.support.patched_parquet import forget, say, without_bits

ALL = """
    SELECT CAST(i AS INTEGER) AS i, CAST(i % 5 - 2 AS TINYINT) AS tiny, CAST(i % 7 AS UBIGINT) AS large,
        CAST(i % 20 + 230 AS UTINYINT) AS small, i % 3 = 0 AS flag, CASE WHEN i % 4 > 0 THEN 'é' || i % 9 END AS t,
        DATE '1900-01-01' + CAST(i % 50 AS INTEGER) AS day, DATE '-infinity' AS never,
        TIMESTAMP '1969-12-31 23:59:59.5' + INTERVAL (i % 6) SECOND AS seen, TIMESTAMP 'infinity' AS always,
        TIMESTAMPTZ '2020-01-01 00:00:00+02' + INTERVAL (i % 3) DAY AS zoned, TIMESTAMP_NS '2020-01-01' AS ns,
        CAST((i % 11 - 5) / 4 AS DECIMAL(9, 2)) AS small_price, CAST((i % 11 - 5) / 4 AS DECIMAL(18, 3)) AS price,
        CAST((i % 11 - 5) / 4 AS DECIMAL(38, 5)) AS wide, (i % 13 - 6) / 3 AS x, CAST('nan' AS FLOAT) AS nan,
        CASE WHEN i % 2 = 0 THEN CAST('-infinity' AS DOUBLE) ELSE -0.0 END AS ends, INTERVAL (i % 3) DAY AS long,
        TIME '10:00:00' AS clock, CAST(i AS VARCHAR)::BLOB AS raw, UUID '00000000-0000-0000-0000-000000000001' AS one,
        NULL::INTEGER AS nothing, [i, NULL] AS list, {'a': i, 'b': NULL} AS pair, repeat('z', 300) || i AS long_text,
        i % 17 AS n, i AS "file's ""name"
    FROM range({}) AS t (i)
"""


def recorded(path: Path) -> None:
    pin_verified(
        FileSources(path.parent, {"t": (path.name,)}, path.parent / "dpsql-files.json"), "dpsql.toml"
    )


def by_duckdb(path: Path, rows: int, options: str = "ROW_GROUP_SIZE 2048") -> None:
    duckdb.sql(f"COPY ({ALL.replace('range({})', f'range({rows})')}) TO '{path}' (FORMAT parquet, {options})")


MANY = 5000


@pytest.mark.parametrize("options", ["ROW_GROUP_SIZE 2048", "PARQUET_VERSION v2", "COMPRESSION zstd"])
@pytest.mark.parametrize("rows", [0, 1, MANY])
def test_what_duckdb_says_is_taken(tmp_path: Path, rows: int, options: str) -> None:
    by_duckdb(tmp_path / "a.parquet", rows, options)
    recorded(tmp_path / "a.parquet")


def values(rows: int) -> pyarrow.Table:
    cells: dict[str, pyarrow.Array] = {
        "t": pyarrow.array([None if i % 4 == 0 else f"é{i % 9}" * (i % 3) for i in range(rows)]),
        "u": pyarrow.array([2**32 - 1 - i % 9 for i in range(rows)], pyarrow.uint32()),
        "s": pyarrow.array([i % 9 - 4 for i in range(rows)], pyarrow.int8()),
        "price": pyarrow.array([Decimal(i % 9 - 4) / 4 for i in range(rows)], pyarrow.decimal128(20, 2)),
        "day": pyarrow.array([date(1960, 1, 1 + i % 9) for i in range(rows)]),
        "x": pyarrow.array([float("nan") if i % 5 == 0 else -0.0 for i in range(rows)]),
        "half": pyarrow.array([i % 4 for i in range(rows)], pyarrow.float16()),
        "raw": pyarrow.array([bytes([i % 256]) for i in range(rows)]),
        "flag": pyarrow.array([None if i % 3 == 0 else i % 3 == 1 for i in range(rows)]),
        "nothing": pyarrow.nulls(rows, pyarrow.int64()),
        "list": pyarrow.array([[i, None] if i % 2 else None for i in range(rows)]),
        "uuid": pyarrow.array([UUID(int=i).bytes for i in range(rows)], pyarrow.binary(16)),
    }
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC"):
            moments = [
                datetime(1969, 12, 31, 23, 59, i % 9, tzinfo=UTC).replace(tzinfo=None) for i in range(rows)
            ]
            kind = pyarrow.timestamp(unit, tz=zone)
            cells[f"{unit}{zone}"] = (
                pyarrow.array(moments, pyarrow.timestamp("us")).cast(unit_of(unit)).cast(kind)
            )
    return pyarrow.table(cells)


def unit_of(unit: str) -> pyarrow.DataType:
    return pyarrow.timestamp(unit)


@pytest.mark.parametrize("rows", [0, 1, 500])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False, "data_page_size": 256, "write_batch_size": 16},
        {"data_page_version": "2.0", "version": "2.6", "compression": "zstd"},
        {"version": "1.0", "use_byte_stream_split": False},
        {"store_decimal_as_integer": True, "row_group_size": 100},
        {"write_statistics": False, "write_page_index": True},
    ],
    ids=["as it is", "small pages", "version 2", "version 1", "integers for decimals", "page index"],
)
def test_what_arrow_says_is_taken(tmp_path: Path, rows: int, options: dict[str, object]) -> None:
    table = values(rows)
    parquet.write_table(table, tmp_path / "a.parquet", **options)
    recorded(tmp_path / "a.parquet")


def test_what_polars_says_is_taken(tmp_path: Path) -> None:
    frame = polars.DataFrame(
        {"t": ["é" * 200 + str(i % 7) for i in range(500)], "n": [None if i % 3 else i for i in range(500)],
         "x": [float("nan") if i % 3 else float(i) for i in range(500)]}
    )  # fmt: skip
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=100)
    recorded(tmp_path / "a.parquet")


HASHED = [
    "tiny",
    "large",
    "small",
    "t",
    "day",
    "never",
    "seen",
    "always",
    "zoned",
    "small_price",
    "price",
    "n",
]


@pytest.mark.parametrize("column", HASHED)
def test_each_value_is_looked_up_in_a_bloom_filter(tmp_path: Path, column: str) -> None:
    by_duckdb(tmp_path / "a.parquet", MANY)
    without_bits(tmp_path / "a.parquet", column)
    with pytest.raises(
        PolicyError, match=f'column "{column}" of .* has values that its bloom filter does not hold'
    ):
        recorded(tmp_path / "a.parquet")


def little(value: int, width: int) -> bytes:
    return value.to_bytes(width, "little", signed=True)


SAID: dict[str, tuple[str, bytes]] = {
    "i": ("low", little(2100, 4)),
    "small": ("low", little(240, 4)),
    "tiny": ("high", little(1, 4)),
    "large": ("low", little(1, 8)),
    "t": ("low", b"\xc3\xaa"),
    "day": ("high", little(-25600, 4)),
    "seen": ("low", little(1, 8)),
    "zoned": ("low", little(2 * 10**15, 8)),
    "small_price": ("low", little(0, 4)),
    "price": ("high", little(0, 8)),
    "wide": ("low", bytes(16)),
    "x": ("high", bytes(8)),
    "flag": ("low", b"\1"),
}


@pytest.mark.parametrize(("column", "said"), SAID.items())
def test_a_bound_that_leaves_out_a_value_is_refused(
    tmp_path: Path, column: str, said: tuple[str, bytes]
) -> None:
    path = tmp_path / "a.parquet"
    by_duckdb(path, MANY)
    bound, other = said
    say(path, column, is_exact=False, group=1, **{bound: other})  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match=f'column "{column}" of .* has a (smallest|greatest) value'):
        recorded(path)


@pytest.mark.parametrize("column", ["raw", "clock", "one", "long", "nothing", "ends"])
def test_nulls_are_counted_in_every_column(tmp_path: Path, column: str) -> None:
    path = tmp_path / "a.parquet"
    by_duckdb(path, MANY)
    say(path, column, nulls=7, group=1)
    with pytest.raises(PolicyError, match=f'column "{column}" of .* has another number of NULLs'):
        recorded(path)


@pytest.mark.parametrize("said", [b"", b"\1\2\3", bytes(9)])
def test_a_bound_of_another_length_is_refused(tmp_path: Path, said: bytes) -> None:
    path = tmp_path / "a.parquet"
    by_duckdb(path, MANY)
    say(path, "i", low=said)
    with pytest.raises(PolicyError):
        recorded(path)


def test_a_column_of_which_nothing_is_said_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    by_duckdb(path, MANY)
    for column in ("i", "t", "x"):
        forget(path, column)
    recorded(path)


def _rows(footer: dict[int, tuple[int, object]]) -> None:
    footer[3] = (6, MANY + 1)


def _group(footer: dict[int, tuple[int, object]]) -> None:
    groups = footer[4][1]
    assert isinstance(groups, tuple)
    groups[1][0][3] = (6, 2047)
    footer[3] = (6, MANY - 1)


@pytest.mark.parametrize("change", [_rows, _group])
def test_numbers_of_rows_add_up(
    tmp_path: Path, change: Callable[[dict[int, tuple[int, object]]], None]
) -> None:
    path = tmp_path / "a.parquet"
    by_duckdb(path, MANY)
    patch(path, lambda footer: _changed(footer, change))
    with pytest.raises(PolicyError, match=NO_FOOTER):
        recorded(path)


NO_FOOTER = "has a footer that is not as the format has it"


def patch(path: Path, change: Callable[[Fields], bytes]) -> None:
    """Write the footer that `change` makes of a file's."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    written = change(read_struct(data[start:-8])[0])
    path.write_bytes(data[:start] + written + len(written).to_bytes(4, "little") + b"PAR1")


def _changed(footer: Fields, change: Callable[[Fields], None]) -> bytes:
    change(footer)
    return write_struct(footer)


def _meta(footer: Fields) -> Fields:
    """Return what is said of the first column in the first row group."""
    meta: Fields = footer[4][1][1][0][1][1][1][0][3][1]
    return meta


def _said_again(footer: Fields) -> bytes:
    """Say a wrong bound, and then nothing: the engine reads both into one."""
    said: Fields = {6: (BINARY, (50).to_bytes(4, "little")), 5: (BINARY, (99).to_bytes(4, "little"))}
    _meta(footer)[12] = (STRUCT, said)
    again = b"\x0c\x18\x00"  # a struct, field 12, of nothing
    return write_struct(footer).replace(write_struct(said), write_struct(said) + again)


def _number_for_bytes(footer: Fields) -> bytes:
    _meta(footer)[12] = (STRUCT, {6: (I64, 50), 5: (I64, 99)})
    return write_struct(footer)


def _far_away(footer: Fields) -> bytes:
    _meta(footer)[14] = (I64, 2**66)
    return write_struct(footer)


def _larger_than_the_file(footer: Fields) -> bytes:
    _meta(footer)[7] = (I64, 2**30)
    return write_struct(footer)


@pytest.mark.parametrize("change", [_said_again, _number_for_bytes, _far_away, _larger_than_the_file])
def test_a_footer_that_readers_make_different_things_of_is_refused(
    tmp_path: Path, change: Callable[[Fields], bytes]
) -> None:
    path = tmp_path / "a.parquet"
    duckdb.sql(f"COPY (SELECT CAST(i AS INTEGER) AS i FROM range(100) AS t (i)) TO '{path}'")
    patch(path, change)
    with pytest.raises(PolicyError, match=NO_FOOTER):
        recorded(path)


@pytest.mark.parametrize(
    ("data", "hashed"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_xxh64_is_the_published_one(data: bytes, hashed: int) -> None:
    assert xxh64(data) == hashed
