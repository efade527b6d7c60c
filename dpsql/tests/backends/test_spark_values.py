"""Arrow's columns as Python's values and as arrays: exact, and text for what is no date. Needs no Spark."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa

from dpsql.backends.spark_backend import array_of, chunks_of, rows_of


def values(column: pa.Array) -> list[object]:
    return [one for (one,) in rows_of(pa.record_batch([column], ["x"]))]


def test_numbers_without_decimals_are_integers_whatever_their_width() -> None:
    narrow = values(pa.array([Decimal(-7), None, Decimal(2**62)], pa.decimal128(38, 0)))
    wide = values(pa.array([Decimal(10**38 - 1), None, Decimal(-(2**63) - 1)], pa.decimal128(38, 0)))
    assert narrow == [-7, None, 2**62]
    assert wide == [10**38 - 1, None, -(2**63) - 1]
    assert [type(one) for one in narrow + wide] == [int, type(None), int] * 2
    assert values(pa.array([2**63 - 1, None], pa.int64())) == [2**63 - 1, None]


def test_other_values_are_exact() -> None:
    (one,) = values(pa.array([Decimal("1.50")], pa.decimal128(38, 2)))
    assert (str(one), type(one)) == ("1.50", Decimal)
    assert values(pa.array(["a\0b", None, ""])) == ["a\0b", None, ""]
    assert values(pa.array([True, None])) == [True, None]
    nan, minus = values(pa.array([math.nan, -0.0]))
    assert math.isnan(nan)  # type: ignore[arg-type]
    assert math.copysign(1, minus) == -1  # type: ignore[arg-type]


def test_dates_that_python_has_not_are_texts() -> None:
    assert values(pa.array([0, 10**8, -800000, None], pa.int32()).cast(pa.date32())) == [
        date(1970, 1, 1), "275760-09-13", "-221-09-04", None,
    ]  # fmt: skip
    moments = pa.array([1, 2**60, None], pa.int64())
    expected = [datetime(1970, 1, 1, 0, 0, 0, 1), "38504-08-17 21:30:06.846976", None]
    assert values(moments.cast(pa.timestamp("us"))) == expected
    assert values(moments.cast(pa.timestamp("us", "UTC"))) == expected


def test_chunks_have_the_asked_size_whatever_the_batches_have() -> None:
    batches = [
        pa.record_batch([pa.array(range(n, n + m))], ["x"]) for n, m in ((0, 3), (3, 0), (3, 6), (9, 1))
    ]
    chunks = list(chunks_of(batches, 4))
    assert [len(chunk) for chunk in chunks] == [4, 4, 2]
    assert [row for chunk in chunks for row in chunk] == [(i,) for i in range(10)]
    assert list(chunks_of([], 4)) == []
    assert list(rows_of(pa.record_batch([], []))) == []


def test_arrays_have_one_type_each_and_say_where_they_are_null() -> None:
    def array(column: pa.Array) -> tuple[str, list[object], list[bool] | None]:
        found, nulls = array_of([column[:1], column[1:]], column.type)
        return str(found.dtype), found.tolist(), None if nulls is None else nulls.tolist()

    assert array(pa.array([1, None], pa.int32())) == ("int64", [1, 0], [False, True])
    assert array(pa.array([1.5, 2.0])) == ("float64", [1.5, 2.0], None)
    assert array(pa.array([Decimal("1.5"), None])) == ("float64", [1.5, 0.0], [False, True])
    assert array(pa.array([True, None])) == ("bool", [True, False], [False, True])
    assert array(pa.array(["a", None])) == ("object", ["a", None], [False, True])
    kind, _, nulls = array(pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()))
    assert (kind, nulls) == ("datetime64[us]", [False, True])
    found, _ = array_of([pa.array([date(1969, 12, 31)])], pa.date32())
    assert found[0] == np.datetime64("1969-12-31")
    assert len(array_of([], pa.string())[0]) == 0
