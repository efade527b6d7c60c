"""What is said of expressions, against what DuckDB computes: ends, grid, and where nothing is NULL."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from itertools import product
from random import Random

import duckdb
import pytest

from dpsql.tests.support.length import tried
from dpsql.tests.verify.clinic import FACTS
from dpsql.verify.engines import DuckDB
from dpsql.verify.read import Reader, columns_of
from dpsql.verify.terms import Pool, Term
from dpsql.verify.values import Values

ROWS = {
    "age": ["NULL", "-7", "0", "1", "5", "119", "120", "121", "2147483647", "-2147483648"],
    "weight": ["NULL", "-999.99", "-0.01", "0", "0.5", "2.25", "999.99"],
    "bmi": ["NULL", "'nan'", "'inf'", "'-inf'", "-1e300", "-0.5", "0", "1e-300", "0.3", "2.5", "1e300"],
    "city": ["NULL", "''", "'a'", "'été'", "'zzzzzzzzzzzz'"],
}


def clamp(x: str, low: str, high: str) -> str:
    return f"CASE WHEN {x} BETWEEN {low} AND {high} THEN {x} WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} END"


def clamp_double(x: str, low: str, high: str) -> str:
    a, b = f"CAST('{low}' AS DOUBLE)", f"CAST('{high}' AS DOUBLE)"
    return (
        f"CASE WHEN {x} BETWEEN {a} AND {b} THEN {x} WHEN {x} < {a} THEN {a} "
        f"WHEN {x} > {b} AND {x} <= CAST('Infinity' AS DOUBLE) THEN {b} END"
    )


class Drawn:
    """Random expressions, of whole numbers, decimals or doubles, of clamped columns and of columns as they are."""

    def __init__(self, choose: Random) -> None:
        self.choose = choose

    def whole(self, deep: int) -> str:
        one, two = (lambda: self.whole(deep - 1)), (lambda: self.whole(deep - 1))
        low, high = sorted(self.choose.sample(range(-9, 10), 2))
        if deep <= 0 or self.choose.random() < 0.2:
            plain = [
                f"({clamp('age', '0', '120')})",
                "age",
                f"{self.choose.randint(-9, 9)}",
                "length(left(city, 3))",
            ]
            return f"CAST({self.choose.choice(plain)} AS BIGINT)"
        return self.choose.choice(
            [
                lambda: f"({one()} + {two()})",
                lambda: f"({one()} - {two()})",
                lambda: f"(({clamp(one(), str(low), str(high))}) * ({clamp(two(), '-3', '8')}))",
                lambda: f"({one()} // NULLIF({two()}, 0))",
                lambda: f"({one()} % NULLIF({two()}, 0))",
                lambda: f"({one()} // {self.choose.choice([-3, 2, 7])})",
                lambda: f"({one()} % {self.choose.choice([-3, 2, 7])})",
                lambda: f"(({one()}) >> 2)",
                lambda: f"(({one()}) & 7)",
                lambda: f"least({one()}, {two()})",
                lambda: f"greatest({one()}, {two()})",
                lambda: f"coalesce({one()}, {two()})",
                lambda: f"abs({one()})",
                lambda: f"({clamp(one(), str(low), str(high))})",
                lambda: (
                    f"CASE WHEN {one()} < {low} THEN {one()} WHEN {two()} > {high} THEN {two()} ELSE {one()} END"
                ),
                lambda: f"(CASE WHEN {(x := one())} > 0 THEN 1 WHEN {x} = 0 THEN 0 WHEN {x} < 0 THEN -1 END)",
                lambda: f"CAST(floor({self.double(deep - 1)}) AS BIGINT)",
                lambda: f"CAST({self.double(deep - 1)} * CAST('1024' AS DOUBLE) AS BIGINT)",
                lambda: f"CAST({self.decimal(deep - 1)} AS BIGINT)",
            ]
        )()

    def decimal(self, deep: int) -> str:
        if deep <= 0 or self.choose.random() < 0.3:
            return self.choose.choice(["weight", f"({clamp('weight', '-2', '80')})"])
        return self.choose.choice(
            [
                lambda: f"({self.decimal(deep - 1)} + {self.whole(0)})",
                lambda: f"({self.decimal(deep - 1)} % NULLIF({self.decimal(0)}, 0))",
                lambda: f"least({self.decimal(deep - 1)}, {self.decimal(0)})",
                lambda: f"({clamp(self.decimal(deep - 1), '-1', '3')})",
            ]
        )()

    def double(self, deep: int) -> str:
        if deep <= 0 or self.choose.random() < 0.2:
            return self.choose.choice(
                ["bmi", f"({clamp_double('bmi', '-0.7', '30.1')})", f"CAST({self.whole(0)} AS DOUBLE)"]
            )
        inner = self.double(deep - 1)
        return self.choose.choice(
            [
                lambda: f"({clamp_double(inner, '-2.5', '17.3')})",
                lambda: f"exp({clamp_double(inner, '-9.5', '9')})",
                lambda: f"sqrt({clamp_double(inner, '0', '70')})",
                lambda: f"ln({clamp_double(inner, '0.001', '70')})",
                lambda: f"log10({clamp_double(inner, '0.001', '70')})",
                lambda: f"sin({clamp_double(inner, '-50', '70')})",
                lambda: f"atan({clamp_double(inner, '-50', '70')})",
                lambda: f"({inner} + {self.double(deep - 1)})",
                lambda: f"({inner} * {self.double(deep - 1)})",
                lambda: f"({inner} / NULLIF({self.double(deep - 1)}, CAST('0' AS DOUBLE)))",
                lambda: f"greatest({inner}, {self.double(deep - 1)})",
                lambda: f"least({inner}, {self.double(deep - 1)})",
                lambda: f"(CAST({self.whole(deep - 1)} AS DOUBLE) / 10e0)",
            ]
        )()

    def moment(self, deep: int) -> str:
        if deep <= 0:
            return f"(DATE '2024-01-30' + CAST({clamp('age', '0', '120')} AS INTEGER))"
        inner, by = self.moment(deep - 1), [self.choose.randint(-40, 40) for _ in range(3)]
        return self.choose.choice(
            [
                f"({inner} + INTERVAL '{by[0]} months {by[1]} days {by[2]} microseconds')",
                f"({inner} - INTERVAL '{by[0]} months {by[1]} days {by[2]} microseconds')",
                f"(CAST({inner} AS TIMESTAMP) - to_microseconds({self.whole(1)}))",
                f"CAST({inner} AS DATE)",
                f"(CAST({inner} AS DATE) - CAST({clamp('age', '-7', '5')} AS INTEGER))",
                f"date_trunc('month', CAST({inner} AS TIMESTAMP))",
            ]
        )

    def days(self, deep: int) -> str:
        later, earlier = (f"CAST({self.moment(deep)} AS DATE)" for _ in range(2))
        return self.choose.choice(
            [f"({later} - {earlier})", f"date_diff('day', {earlier}, {later})", f"epoch_us({later})"]
        )


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    """Every combination of hostile values."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t (id INTEGER, city VARCHAR, age INTEGER, weight DECIMAL(5,2), bmi DOUBLE)"
    )
    every = [
        f"({n}, {c}, {a}, {w}, {b})"
        for n, (c, a, w, b) in enumerate(product(ROWS["city"], ROWS["age"], ROWS["weight"], ROWS["bmi"]))
    ]
    connection.execute(f"INSERT INTO t VALUES {', '.join(every)}")
    return connection


def read(expression: str) -> tuple[Values, Term]:
    """An expression over a patient as a term."""
    pool, dialect = Pool(), DuckDB()
    values = Values(pool, dialect, FACTS)
    reader = Reader(pool, dialect, FACTS, values.type)
    relation = reader.query(f"SELECT {expression} AS x FROM main.patient")
    return values, columns_of(relation)["x"]


def since(moment: date) -> int:
    """The microseconds since 1970, a date as its midnight."""
    whole = moment if isinstance(moment, datetime) else datetime.combine(moment, time())
    return (whole - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def holds(expression: str, rows: duckdb.DuckDBPyConnection) -> bool:
    """Whether what is said of an expression is so in each row; whether anything was said."""
    values, term = read(expression)
    try:
        found = {one for (one,) in rows.execute(f"SELECT DISTINCT {expression} FROM t").fetchall()}
    except duckdb.Error:
        return False  # a row makes it fail: what `total` refuses
    ends, never_null = values.ends(term), not values.present(term)
    assert not (never_null and None in found), expression
    if ends == (None, None, None):
        return never_null
    slack = Fraction(1, 2**40) if values.type(term)[0] == "float" else 0
    for one in found - {None}:
        if isinstance(one, float) and not math.isfinite(one):
            assert ends.low is None or ends.high is None, (expression, one, ends)
            continue
        value = Fraction(since(one) if isinstance(one, date) else one)
        assert ends.low is None or value >= ends.low - abs(ends.low) * slack, (expression, one, ends)
        assert ends.high is None or value <= ends.high + abs(ends.high) * slack, (expression, one, ends)
        if ends.step is not None:
            assert value == 0 if ends.step == 0 else (value / ends.step).denominator == 1, (
                expression,
                one,
                ends,
            )
    return True


@pytest.mark.parametrize("kind", ["whole", "decimal", "double", "moment", "days"])
def test_no_row_is_outside_of_what_is_said(kind: str, rows: duckdb.DuckDBPyConnection) -> None:
    said = 0
    for seed in range(tried(60, 150)):
        drawn = Drawn(Random(f"{kind} {seed}"))
        said += holds(getattr(drawn, kind)(3), rows)
    assert said >= tried(16, 40)
