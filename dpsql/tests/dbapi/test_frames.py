"""Arrow, pandas and Polars: the types of columns, values that come back as they were, and missing packages."""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpsql
from dpsql.engine import AnswerColumn
from dpsql.engine.answer import arrow_table, polars_frame
from dpsql.relation.types import BIGINT, INTERVAL, NULL, NUMERIC, TEXT, SqlType, numeric
from dpsql.tests.dbapi.conftest import COUNT

THINGS = "SELECT * FROM thing ORDER BY small"
TYPES = {
    "small": pa.int16(), "whole": pa.int32(), "big": pa.int64(), "money": pa.decimal128(38, 2), "single": pa.float32(),
    "double": pa.float64(), "flag": pa.bool_(), "name": pa.string(), "day": pa.date32(), "moment": pa.timestamp("us"),
}  # fmt: skip


def test_arrow(connection: dpsql.Connection) -> None:
    rows = connection.execute(THINGS).fetchall()
    cursor = connection.execute(THINGS)
    table = cursor.fetch_arrow_table()
    assert table.schema == pa.schema(TYPES.items())
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    assert cursor.fetchone() is None
    assert cursor.fetch_arrow_table().num_rows == 0
    assert cursor.fetch_arrow_table().schema == table.schema


def test_only_what_is_left(connection: dpsql.Connection) -> None:
    for fetch in ("fetch_arrow_table", "fetchdf", "pl"):
        cursor = connection.execute("SELECT i FROM number ORDER BY i")
        cursor.fetchmany(7)
        assert len(getattr(cursor, fetch)()) == 3
        assert cursor.fetchall() == []


def test_pandas(connection: dpsql.Connection) -> None:
    frame = connection.execute(THINGS).fetchdf()
    found = {name: str(frame[name].dtype) for name in TYPES}
    assert found == {
        "small": "Int16", "whole": "Int32", "big": "Int64", "money": "decimal128(38, 2)[pyarrow]", "single": "float32",
        "double": "float64", "flag": "boolean", "name": found["name"], "day": "date32[day][pyarrow]",
        "moment": "datetime64[us]",
    }  # fmt: skip
    assert frame["big"][0] == 9007199254740993
    assert frame["money"][0] == Decimal("12.50")
    assert frame["day"][0] == datetime.date(2020, 2, 29)
    assert frame["moment"][0] == pd.Timestamp("2020-02-29 12:30:00.000001")
    assert frame.loc[1].isna().all()


def test_polars(connection: dpsql.Connection) -> None:
    rows = connection.execute(THINGS).fetchall()
    frame = connection.execute(THINGS).pl()
    assert frame.rows() == rows
    assert frame.schema["money"] == pl.Decimal(38, 2)
    assert (frame.schema["day"], frame.schema["moment"]) == (pl.Date, pl.Datetime("us"))


def test_released_numbers(connection: dpsql.Connection) -> None:
    sql = "SELECT city, COUNT(*) AS n, AVG(age) AS a, SUM(age) AS s FROM person GROUP BY city ORDER BY city"
    cursor = connection.cursor(intervals=0.95).execute(sql)
    rows = cursor.fetchall()
    cursor.scroll(0, "absolute")
    table = cursor.fetch_arrow_table()
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    assert pa.types.is_decimal128(table.schema.field("a").type)
    assert table.schema.field("a_low").type == pa.float64()
    cursor.scroll(0, "absolute")
    assert cursor.pl().rows() == rows
    cursor.scroll(0, "absolute")
    assert [tuple(row) for row in cursor.fetchdf().itertuples(index=False)] == rows


def test_names_that_come_twice(connection: dpsql.Connection) -> None:
    sql = "SELECT COUNT(*), COUNT(age), 1 AS count_1 FROM person"
    assert connection.execute(sql).pl().columns == ["count", "count_2", "count_1"]
    assert connection.execute(sql).fetch_arrow_table().column_names == ["count", "count", "count_1"]
    assert list(connection.execute(sql).fetchdf().columns) == ["count", "count", "count_1"]


def column(type_: SqlType, *values: object) -> pa.ChunkedArray:
    return arrow_table([AnswerColumn("c", type_)], [(value,) for value in values]).column("c")


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        (NUMERIC, ["1.5", "2.25", None], pa.decimal128(38, 2)),
        (NUMERIC, ["100"], pa.decimal128(38, 0)),
        (NUMERIC, [None, None], pa.decimal128(38, 18)),
        (NUMERIC, [], pa.decimal128(38, 18)),
        (NUMERIC, ["1.2345678901234567E-30"], pa.decimal256(76, 46)),
        (NUMERIC, ["1" + "0" * 37, "0.001"], pa.decimal256(76, 3)),
        (NUMERIC, ["1" + "0" * 90, "-0.5"], pa.float64()),
        (NUMERIC, ["1E-300"], pa.float64()),
        (numeric(9, 2), ["12.50", "-1.00"], pa.decimal128(38, 2)),
        (numeric(9, 2), [], pa.decimal128(38, 2)),
        (numeric(9, 2), ["1" + "0" * 40 + ".25"], pa.decimal256(76, 2)),
        (numeric(9, 2), ["1" + "0" * 80 + ".25"], pa.float64()),
    ],
)
def test_decimals_hold_what_they_are_given(
    type_: SqlType, values: list[str | None], expected: pa.DataType
) -> None:
    decimals = [None if value is None else Decimal(value) for value in values]
    found = column(type_, *decimals)
    assert found.type == expected
    wanted = decimals if pa.types.is_decimal(expected) else [float(value or 0) for value in decimals]
    assert found.to_pylist() == wanted


def test_the_other_types() -> None:
    assert column(NULL, None).type == pa.string()
    assert column(INTERVAL, datetime.timedelta(days=1)).type == pa.duration("us")
    assert column(TEXT).type == pa.string()
    assert column(BIGINT, 2**63 - 1, None, -(2**63)).to_pylist() == [2**63 - 1, None, -(2**63)]
    assert polars_frame([AnswerColumn("c", BIGINT)], []).is_empty()


@pytest.mark.parametrize(
    ("package", "fetch", "extra"),
    [
        ("pyarrow", "fetch_arrow_table", "arrow"),
        ("pandas", "fetchdf", "pandas"),
        ("pyarrow", "fetchdf", "pandas"),
        ("polars", "pl", "polars"),
        ("pyarrow", "pl", "polars"),
    ],
)
def test_a_package_that_is_missing(
    connection: dpsql.Connection, monkeypatch: pytest.MonkeyPatch, package: str, fetch: str, extra: str
) -> None:
    cursor = connection.execute(COUNT)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(dpsql.NotSupportedError) as missing:
        getattr(cursor, fetch)()
    assert (
        str(missing.value)
        == f'0A000: this needs {package}, which is not installed\nHINT: pip install "dpsql[{extra}]"'
    )
    assert missing.value.__context__ is None
    assert len(cursor.fetchall()) == 1
    monkeypatch.undo()


def test_pandas_reads_a_query(connection: dpsql.Connection) -> None:
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql_query("SELECT i FROM number WHERE i > ? ORDER BY i", connection, params=[7])
    assert frame["i"].tolist() == [8, 9]
