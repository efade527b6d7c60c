"""On rows within the declared bounds, the printed expression has the value that Postgres defines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.quote import identifier
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Expr
from dpsql.relation.intervals import Environment
from dpsql.relation.types import BIGINT, BOOLEAN, DATE, INTEGER, SMALLINT, TEXT, TIMESTAMP, Kind, numeric
from dpsql.tests.support.length import tried

from .hostile_rows import COLUMNS, bind_expression, booleans, moments, numbers, texts
from .postgres_oracle import Value, evaluate, is_exact

_DAY = 86_400_000_000
_BOUNDS = {
    "i16": (-300, 300), "i32": (-10**6, 10**6), "i64": (-10**9, 10**9), "u8": (0, 255), "u32": (0, 1000),
    "u64": (0, 10**6), "hug": (-50, 50), "n": (-1000, 1000), "fine": (-1, 1), "d": (10000, 20000),
    "ts": (10000 * _DAY, 20000 * _DAY),
}  # fmt: skip
DECLARED = tuple(
    Column(c.name, c.type, bounds=tuple(map(Fraction, _BOUNDS[c.name])) if c.name in _BOUNDS else None)  # type: ignore[arg-type]  # pairs
    for c in COLUMNS
)


def _cell(chance: random.Random, column: Column) -> Value:
    if chance.random() < 0.15:
        return None
    if column.bounds is not None:
        lo, hi = column.bounds
        scale = column.type.scale or 0
        number = Fraction(
            chance.choice((lo, hi, chance.randint(int(lo), int(hi)), chance.randint(int(lo), int(hi))))
        )
        if scale:
            number = Fraction(
                chance.choice((number * 10**scale, *(chance.randint(-250, 250) for _ in range(3)))), 10**scale
            )
        return number if column.type.kind is Kind.NUMERIC and scale else int(number)
    if column.type == BOOLEAN:
        return chance.random() < 0.5
    if column.name == "e":
        return chance.choice(("a", "b", "B"))
    return (
        chance.choice(("", "a", "b", "ab", "abcde", " a ", "a_b", "A%", "a\\"))
        if column.type == TEXT
        else None
    )


def _shown(value: Value, column: Column) -> str:
    if value is None:
        return "NULL"
    if column.type == DATE:
        return f"(DATE '1970-01-01' + {value})"
    if column.type == TIMESTAMP:
        return f"make_timestamp({value})"
    if isinstance(value, Fraction):
        scaled = value * 10 ** (column.type.scale or 0)
        sign, digits = (
            "-" if scaled < 0 else "",
            str(abs(int(scaled))).rjust((column.type.scale or 0) + 1, "0"),
        )
        return f"'{sign}{digits[: -(column.type.scale or 0)]}.{digits[-(column.type.scale or 0) :]}'"
    return "'" + str(value) + "'" if isinstance(value, str) else str(value)


ROWS = [
    tuple(_cell(random.Random(1000 * n + i), column) for i, column in enumerate(DECLARED)) for n in range(60)
]
_ENGINE = {SMALLINT: "SMALLINT", INTEGER: "INTEGER", BIGINT: "BIGINT", BOOLEAN: "BOOLEAN", DATE: "DATE",
           TIMESTAMP: "TIMESTAMP", TEXT: "VARCHAR", numeric(20, 0): "UBIGINT", numeric(38, 0): "HUGEINT"}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    kinds = [
        _ENGINE.get(c.type)
        or ("DOUBLE" if c.type.is_float else f"DECIMAL({c.type.precision},{c.type.scale})")
        for c in DECLARED
    ]
    connection.execute(
        f"CREATE TABLE t (id INTEGER, {', '.join(f'{c.name} {k}' for c, k in zip(DECLARED, kinds, strict=True))})"
    )
    for number, row in enumerate(ROWS):
        cells = ", ".join(_shown(value, column) for value, column in zip(row, DECLARED, strict=True))
        connection.execute(f"INSERT INTO t VALUES ({number}, {cells})")
    yield connection
    connection.close()


def computed(table: duckdb.DuckDBPyConnection, expr: Expr) -> list[Value]:
    printer, unit = (
        PrivatePrinter(Environment(DECLARED), [identifier(column.name) for column in DECLARED], DUCKDB),
        Fraction(1),
    )
    if expr.type.is_number:
        number = printer.number(expr)
        assert number.grid is not None
        shown, unit = number.sql, number.grid
    else:
        shown = printer.moment(expr) if expr.type.is_temporal else printer.value(expr)
        if expr.type == DATE:
            shown = f"date_diff('day', DATE '1970-01-01', CAST({shown} AS DATE))"  # a NULL that is written has no type
        elif expr.type == TIMESTAMP:
            shown = f"epoch_us(CAST({shown} AS TIMESTAMP))"
    found = table.execute(f"SELECT {shown} FROM t ORDER BY id").fetchall()
    return [value if value is None or isinstance(value, (str, bool)) else value * unit for (value,) in found]


def check(table: duckdb.DuckDBPyConnection, text: str) -> None:
    try:
        expr = bind_expression(text, DECLARED)
        assume(is_exact(expr))
        found = computed(table, expr)
    except Refusal:
        assume(False)
        raise
    assert found == [evaluate(expr, row) for row in ROWS], text


EXACT = st.one_of(*(kind(depth) for kind in (numbers, texts, moments, booleans) for depth in (1, 2)))


@given(EXACT)
@example("round(n)")
@example("round(n, -1)")
@example("floor(n * n)")
@example("ceil(- n)")
@example("trunc(n, 1)")
@example("i32 / i16")
@example("(i32 % i16) + mod(n, 0.3)")
@example("right(s, 7) || left(e, 1)")
@example("greatest(i32, NULL, n)")
@example("extract(week FROM d) * 100 + extract(isodow FROM ts)")
@example("CAST(n AS integer)")
@example("CAST(fine AS numeric(10,2))")
@example("n IN (1, NULL)")
@example("s LIKE 'a\\_%'")
@example("coalesce(d, ts)")
@example("d + INTERVAL '1 month'")
@settings(
    max_examples=tried(150, 400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
def test_an_expression_has_postgres_value(table: duckdb.DuckDBPyConnection, text: str) -> None:
    check(table, text)


@pytest.mark.long
@given(st.one_of(*(kind(3) for kind in (numbers, texts, moments, booleans))))
@settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_deep_expression_has_postgres_value(table: duckdb.DuckDBPyConnection, text: str) -> None:
    check(table, text)
