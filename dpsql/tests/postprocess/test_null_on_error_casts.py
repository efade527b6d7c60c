"""Casts: Postgres' values, and NULL for what does not fit or does not parse."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsql.postprocess import null_on_error
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
    SMALLINT,
    TEXT,
    TIMESTAMP,
    SqlType,
    numeric,
)  # fmt: skip

from .conftest import Evaluate
from .test_null_on_error_numbers import LIMITS, finite, floats, in_range, quick, wide_integers

CASES: list[tuple[SqlType, SqlType, list[tuple[Any, Any]]]] = [
    (DOUBLE, BIGINT, [(2.5, 2), (3.5, 4), (-2.5, -2), (9.3e18, None), (-(2.0**63), -(2**63)), (None, None)]),
    (DOUBLE, SMALLINT, [(32767.4, 32767), (32767.5, None), (-32768.5, -32768), (1e308, None)]),
    (REAL, INTEGER, [(2.5, 2), (1e30, None)]),
    (NUMERIC, INTEGER, [(2.5, 3), (-2.5, -3), (0.49999999999999994, 0), (2147483647.5, None)]),
    (BIGINT, SMALLINT, [(32767, 32767), (32768, None), (2**100, None), (-32768, -32768)]),
    (BOOLEAN, INTEGER, [(True, 1), (False, 0), (None, None)]),
    (INTEGER, BOOLEAN, [(0, False), (-3, True), (None, None)]),
    (TEXT, INTEGER, [(" +12\n", 12), ("-0", 0), ("1.5", None), ("1e3", None), ("", None),
                     ("2147483648", None),
                     ("0x1F", None), ("12 3", None), ("abc", None), (None, None), ("1\0", None)]),
    (TEXT, NUMERIC, [("1.50", 1.5), (".5", 0.5), ("5.", 5.0), ("-1e3", -1000.0), ("1e400", None),
                     ("NaN", None),
                     ("inf", None), ("e5", None), ("1_000", None), ("", None)]),
    (TEXT, numeric(4, 2), [("2.675", 2.68), ("99.994", 99.99), ("99.995", None)]),
    (TEXT, BOOLEAN, [(" TRUE ", True), ("t", True), ("off", False), ("0", False), ("2", None), ("o", None)]),
    (TEXT, DATE, [("2024-02-29", date(2024, 2, 29)), (" 2024-2-3 ", date(2024, 2, 3)), ("2023-02-29", None),
                  ("0000-01-01", None), ("9999-12-31", date(9999, 12, 31)), ("10000-01-01", None),
                  ("2024-01-02 23:59:59", date(2024, 1, 2)), ("infinity", None), ("epoch", None),
                  ("x", None)]),
    (TEXT, TIMESTAMP, [("2024-02-29 01:02:03.5", datetime(2024, 2, 29, 1, 2, 3, 500000)),
                       ("2024-02-29T01:02", datetime(2024, 2, 29, 1, 2)),
                       ("2024-02-29", datetime(2024, 2, 29)),
                       ("2024-02-29 25:00", None), ("2024-02-29 10:00 Europe/Berlin", None)]),
    (DATE, TIMESTAMP, [(date(2024, 1, 2), datetime(2024, 1, 2))]),
    (TIMESTAMP, DATE, [(datetime(2024, 1, 2, 23, 59), date(2024, 1, 2))]),
    (DOUBLE, REAL, [(1e39, None), (0.5, 0.5), (-1e300, None), (1e-60, 0.0)]),
    (REAL, NUMERIC, [(0.1, 0.1)]),
    (DOUBLE, numeric(5, 2), [(999.994, 999.99), (999.995, None), (-1.005, -1.01), (1e300, None)]),
    (DOUBLE, numeric(100, 2), [(1.005, 1.01), (1e60, 1e60)]),
    (BIGINT, NUMERIC, [(2**53 + 1, 2.0**53), (2**100, 2.0**100)]),
    (DOUBLE, TEXT, [(1.0, "1"), (0.1, "0.1"), (1e20, "1e+20"), (-2.5, "-2.5"), (None, None),
                    (1e-5, "1e-05")]),
    (REAL, TEXT, [(0.1, "0.1"), (2.0, "2")]),
    (numeric(10, 2), TEXT, [(2.5, "2.50"), (-0.125, "-0.13"), (1e300, "1e+300"), (8.4e-185, "0.00")]),
    (NUMERIC, TEXT, [(2.5, "2.5"), (3.0, "3")]),
    (BOOLEAN, TEXT, [(True, "true"), (False, "false")]),
    (BIGINT, TEXT, [(-5, "-5"), (2**100, str(2**100))]),
    (DATE, TEXT, [(date(2024, 1, 2), "2024-01-02"), (date(1, 1, 1), "0001-01-01")]),
    (TIMESTAMP, TEXT, [(datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03:04:05"),
                       (datetime(2024, 1, 2, 3, 4, 5, 120000), "2024-01-02 03:04:05.12")]),
    (NULL, DATE, [(None, None)]),
    (NULL, INTEGER, [(None, None)]),
    (TEXT, TEXT, [("é\0", "é\0")]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "cases"), CASES, ids=lambda case: str(case)[:20])
def test_casts(evaluate: Evaluate, source: SqlType, target: SqlType, cases: list[tuple[Any, Any]]) -> None:
    found = evaluate(null_on_error.cast('"a"', source, target), [source], [(value,) for value, _ in cases])
    assert found == [wanted for _, wanted in cases]
    assert [type(value) for value in found] == [type(wanted) for _, wanted in cases]


@quick
@given(st.lists(st.one_of(st.none(), st.text(max_size=12), floats.map(str), st.dates().map(str)), min_size=1))
def test_no_text_raises(evaluate: Evaluate, texts: list[str | None]) -> None:
    rows = [(text.encode("utf-8", "replace").decode() if text is not None else None,) for text in texts]
    for target in (BIGINT, SMALLINT, NUMERIC, numeric(5, 2), DOUBLE, REAL, BOOLEAN, DATE, TIMESTAMP):
        assert len(evaluate(null_on_error.cast('"a"', TEXT, target), [TEXT], rows)) == len(rows)


@quick
@example([1.095154438244562e-50, -6e-39, 1.6628797748932313e-36, 0.5], 38, 38)
@given(st.lists(floats, min_size=1, max_size=60), st.integers(1, 38), st.integers(0, 38))
def test_numbers(evaluate: Evaluate, values: list[float | None], precision: int, scale: int) -> None:
    rows = [(value,) for value in values]
    scale = min(scale, precision)
    for target, limit in LIMITS.items():
        whole = [None if finite(value) is None else round(value) for value in values]
        assert evaluate(null_on_error.cast('"a"', DOUBLE, target), [DOUBLE], rows) == [
            in_range(n, limit) for n in whole
        ]
    expected = []
    for value in values:
        exact = None if finite(value) is None else Decimal(repr(value))
        rounded = exact and exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=1000))
        is_fitting = rounded is not None and abs(rounded) < Decimal(10) ** (precision - scale)
        expected.append(float(rounded) if rounded is not None and is_fitting else None)
    assert (
        evaluate(null_on_error.cast('"a"', NUMERIC, numeric(precision, scale)), [NUMERIC], rows) == expected
    )
    for text, value in zip(
        evaluate(null_on_error.cast('"a"', DOUBLE, TEXT), [DOUBLE], rows), values, strict=True
    ):
        assert (text is None) == (finite(value) is None)
        assert text is None or math.isclose(float(text), value, rel_tol=0.0)


@quick
@given(st.lists(wide_integers, min_size=1, max_size=60))
def test_integers(evaluate: Evaluate, values: list[int | None]) -> None:
    rows = [(value,) for value in values]
    for target, limit in LIMITS.items():
        assert evaluate(null_on_error.cast('"a"', BIGINT, target), [BIGINT], rows) == [
            in_range(n, limit) for n in values
        ]
    for target in (NUMERIC, DOUBLE, REAL, TEXT, BOOLEAN):
        assert len(evaluate(null_on_error.cast('"a"', BIGINT, target), [BIGINT], rows)) == len(rows)


@pytest.mark.parametrize(
    ("source", "target"),
    [(DATE, INTEGER), (BOOLEAN, DOUBLE), (INTERVAL, TEXT), (OPAQUE, TEXT), (DOUBLE, DATE), (DATE, BOOLEAN),
     (NULL, OPAQUE)],
)  # fmt: skip
def test_pairs_without_a_cast(source: SqlType, target: SqlType) -> None:
    with pytest.raises(ValueError, match=r"no cast|never released"):
        null_on_error.cast("x", source, target)
