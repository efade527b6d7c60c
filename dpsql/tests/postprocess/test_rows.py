"""Finishing: values of the declared types, whatever the engine carried."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.postprocess import ResultRows, finish
from dpsql.postprocess.rows import Arrays, ColumnRows, Interval
from dpsql.relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NULL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    SqlType,
    numeric,
)  # fmt: skip

from .test_null_on_error_numbers import quick

CASES: list[tuple[SqlType, list[tuple[Any, Any]]]] = [
    (BIGINT, [(5, 5), (None, None), (2**63, None), (-(2**63), -(2**63)), (2.0, 2), (1e300, None),
              (math.nan, None)]),
    (INTEGER, [(2**31, None), (True, 1)]),
    (SMALLINT, [(32767, 32767), (32768, None), ("x", None)]),
    (NUMERIC, [(0.1, "0.1"), (5.0, "5"), (1e20, "100000000000000000000"), (-0.0, "0"), (7, "7"), (None, None),
               (math.inf, None), (2.5e-7, "2.5E-7"), (Decimal("1.50"), "1.50"), ("x", None)]),
    (numeric(10, 2), [(2.675, "2.68"), (2.665, "2.66"), (1e300, f"{10**300}.00"), (-0.001, "0.00"),
                      (3, "3.00"), (math.nan, None)]),
    (numeric(10, 0), [(2.5, "2"), (3.5, "4")]),
    (DOUBLE, [(1.5, 1.5), (math.nan, None), (math.inf, None), (3, 3.0), (10**400, None),
              (Decimal("0.5"), 0.5), (None, None)]),
    (DOUBLE, [(-0.0, 0.0), (0.0, 0.0), (-1.5, -1.5)]),
    (REAL, [(-0.0, 0.0), (0.10000000149011612, 0.1), (1e300, None), (math.nan, None), (2, 2.0), (10**400, None)]),
    (TEXT, [("x", "x"), (None, None), (5, None)]),
    (BOOLEAN, [(True, True), (0, False), ("x", None)]),
    (DATE, [(date(2024, 1, 2), date(2024, 1, 2)), (datetime(2024, 1, 2, 3), date(2024, 1, 2)),
            ("0044 (BC)", None)]),
    (TIMESTAMP, [(date(2024, 1, 2), datetime(2024, 1, 2)), (datetime(2024, 1, 2, 3), datetime(2024, 1, 2, 3)),
                 ("x", None)]),
    (NULL, [(None, None)]),
    (INTERVAL, [("1 mon 2 days", Interval(days=32)), ("-00:00:01.5", Interval(seconds=-1.5)), (5, None)]),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "cases"), CASES, ids=lambda case: str(case)[:16])
def test_values(declared: SqlType, cases: list[tuple[Any, Any]]) -> None:
    found = finish(ResultRows(("x", "n"), [(value, 1) for value, _ in cases]), [declared, INTEGER])
    is_decimal = declared.kind is NUMERIC.kind
    wanted = [Decimal(text) if is_decimal and text is not None else text for _, text in cases]
    assert found.rows == [(value, 1) for value in wanted]
    assert [type(value) for value, _ in found.rows] == [type(value) for value in wanted]
    assert [str(value) for value, _ in found.rows] == [str(value) for value in wanted]


def test_rows_that_are_right_are_left_alone() -> None:
    rows = ResultRows(("a", "b"), [(1, 0.5), (None, None)])
    assert finish(rows, [BIGINT, DOUBLE]) is rows


def test_no_rows() -> None:
    assert finish(ResultRows(("a",), []), [NUMERIC]).rows == []


def test_types_must_match_columns() -> None:
    with pytest.raises(ValueError, match="types"):
        finish(ResultRows(("a",), []), [])


anything = st.one_of(
    st.none(), st.integers(), st.floats(), st.booleans(), st.text(max_size=3), st.dates(), st.datetimes()
)


@quick
@given(st.lists(anything, max_size=40))
def test_no_value_raises(values: list[Any]) -> None:
    for declared, _ in CASES:
        assert len(finish(ResultRows(("x",), [(value,) for value in values]), [declared]).rows) == len(values)


ARRAYS = [
    np.array([0, -(2**63), 2**63 - 1, 2**31]),
    np.array([1, 2, -3], dtype=np.int32),
    np.array([0.5, -0.0, 1e300]),
    np.array([0.5, math.nan, math.inf]),
    np.array(["x", "", "é"], dtype=object),
    np.array([True, False]),
    np.ma.array([1, 2, 3], mask=[False, True, False]),
    np.ma.array(["x", None], mask=[False, True], dtype=object),
    np.ma.array([0.5, 1.0], mask=[True, False]),
    np.array([], dtype=np.int64),
]


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
def test_arrays_are_finished_as_their_values_are(array: np.typing.NDArray[Any]) -> None:
    for declared, _ in CASES:
        found = finish(Arrays(("x",), (array,)), [declared]).rows
        assert repr(list(found)) == repr(
            finish(ResultRows(("x",), [(v,) for v in array.tolist()]), [declared]).rows
        )


def test_rows_kept_by_column_are_read_as_a_list_is() -> None:
    rows = ColumnRows([np.arange(5000), np.array([f"t{i}" for i in range(5000)], dtype=object)])
    plain = [(i, f"t{i}") for i in range(5000)]
    assert len(rows) == 5000
    assert (rows[0], rows[-1], rows[4999]) == (plain[0], plain[-1], plain[4999])
    for part in (slice(0, 3), slice(4990, 6000), slice(None, None, -1), slice(7, 3), slice(-4, None, 2)):
        assert rows[part] == plain[part]
    assert list(rows) == plain
    assert rows == plain
    assert rows != plain[1:]
    assert type(rows[1][0]) is int
    with pytest.raises(IndexError):
        rows[5000]
