"""Values of every type that travel: Hypothesis strategies, and the corner cases by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from dpsql.pgwire import Interval, Oid

INFINITY = float("inf")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
NUMERIC = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent),
    st.integers(-(10**25), 10**25),
    st.integers(-30, 30),
) | st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20)
INTERVAL = st.builds(
    Interval, st.integers(-2000, 2000), st.integers(-40_000, 40_000), st.integers(-(10**13), 10**13)
)

STRATEGIES: dict[Oid, st.SearchStrategy[Any]] = {
    Oid.BOOL: st.booleans(),
    Oid.INT2: st.integers(-(2**15), 2**15 - 1),
    Oid.INT4: st.integers(-(2**31), 2**31 - 1),
    Oid.INT8: st.integers(-(2**63), 2**63 - 1),
    Oid.OID: st.integers(0, 2**32 - 1),
    Oid.FLOAT4: st.floats(width=32, allow_nan=False),
    Oid.FLOAT8: st.floats(allow_nan=False),
    Oid.NUMERIC: NUMERIC,
    Oid.TEXT: TEXT,
    Oid.VARCHAR: TEXT,
    Oid.BYTEA: st.binary(max_size=20),
    Oid.DATE: st.dates(),
    Oid.TIMESTAMP: st.datetimes(),
    Oid.TIMESTAMPTZ: st.datetimes(
        min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=st.just(UTC)
    ),
    Oid.INTERVAL: INTERVAL,
    Oid.TEXT_ARRAY: st.lists(st.none() | TEXT, max_size=5),
    Oid.INT8_ARRAY: st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5),
    Oid.OID_ARRAY: st.lists(st.integers(0, 2**32 - 1), max_size=5),
    Oid.FLOAT8_ARRAY: st.lists(st.none() | st.floats(allow_nan=False), max_size=5),
    Oid.NUMERIC_ARRAY: st.lists(st.none() | NUMERIC, max_size=5),
    Oid.DATE_ARRAY: st.lists(st.none() | st.dates(), max_size=5),
}

CORNERS: dict[Oid, list[Any]] = {
    Oid.FLOAT8: [
        0.0, -0.0, 0.1, 1e-4, 1e-5, 123456789012345.0, 999999999999999.0, 1e15, 1234567890123456.0,
        1234567890123456.5, 1e16, 1e22, 1e23, 5e-324, 1.7976931348623157e308, INFINITY, -INFINITY, float("nan"), 7,
    ],
    Oid.FLOAT4: [0.0, 0.1, 0.5, 100000.0, 999999.0, 1e6, 1234567.0, 1e-4, 1e-5, 16777216.0, 1e-45, 3.4028235e38,
                 INFINITY, float("nan"), -1],
    Oid.NUMERIC: [
        Decimal(text)
        for text in ("0", "-0", "0.00", "-0.00", "1", "10000", "9999", "0.0001", "0.00010000", "1E+10", "1E-20", "NaN",
                     "Infinity", "-Infinity", "1E+20000", "12345678901234567890.12345678901234567890", "-1.5")
    ] + [7, -(10**30), 0],
    Oid.DATE: [date.min, date.max, date(2000, 1, 1), date(1999, 12, 31), date(987, 6, 5)],
    Oid.TIMESTAMP: [datetime.min, datetime.max, datetime(2000, 1, 1), datetime(2024, 2, 29, 1, 2, 3, 100)],
    Oid.TIMESTAMPTZ: [datetime(2024, 2, 29, 1, 2, 3, 120_000, tzinfo=UTC)],
    Oid.INTERVAL: [
        Interval(), Interval(1), Interval(12), Interval(-1), Interval(-13), Interval(14, -3, 1), Interval(-14, 3, 1),
        Interval(0, -1, 10**6), Interval(0, 1, -1), Interval(0, 0, -(10**6)), Interval(0, 0, 360_000 * 10**6),
        timedelta(days=-1, microseconds=1), timedelta(hours=-30), timedelta(days=3, hours=4),
    ],
    Oid.TEXT_ARRAY: [[], [None], [""], ["NULL", "null"], ["a b", " ", "\t"], ['"', "\\", "{", "}", ","], ["\v"]],
    Oid.INT2VECTOR: [[1, 2], [-3]],
    Oid.OIDVECTOR: [[1, 4_000_000_000]],
    Oid.CHAR: ["r", ""],
    Oid.NAME: ["student"],
    Oid.JSON: ['{"a": [1, null]}'],
    Oid.JSONB: ['{"a": 1}'],
    Oid.BPCHAR: ["abc"],
    Oid.BOOL_ARRAY: [[True, None, False]],
    Oid.CHAR_ARRAY: [["i", "o"]],
    Oid.NAME_ARRAY: [["a", "b c"]],
    Oid.INTERVAL_ARRAY: [[Interval(1, 2, 3), None]],
    Oid.TIMESTAMP_ARRAY: [[datetime(2024, 1, 1)]],
}  # fmt: skip
