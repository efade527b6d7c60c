"""A printed expression has one value on Spark and DuckDB, and Spark does not raise, whatever the rows hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.dialect_spark import SPARK
from dpsql.relation.catalog import Column
from dpsql.relation.intervals import Environment
from dpsql.tests.support.spark_server import SparkServer

from ..relation.hostile_rows import (
    bind_expression,
    booleans,
    environments,
    moments,
    numbers,
    open_table,
    texts,
)
from .test_spark_words import session

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

__all__ = ["session"]

pytestmark = pytest.mark.spark

_MOST = 10**38 - 1
_AT_ONCE = 20
_CARRIED = {
    "HUGEINT": f"CAST(LEAST(GREATEST({{0}}, -{_MOST}), {_MOST}) AS DECIMAL(38, 0))", "UBIGINT": "CAST({0} AS DECIMAL(20, 0))",
    "UINTEGER": "CAST({0} AS BIGINT)", "UTINYINT": "CAST({0} AS SMALLINT)",
    "DATE": "CASE WHEN isfinite({0}) THEN {0} END", "TIMESTAMP": "CASE WHEN isfinite({0}) THEN {0} END",
}  # fmt: skip
"""What Spark has a type for: there are no infinite dates, and 38 digits are the most."""


@dataclass(frozen=True, repr=False)
class Engines:
    """The hostile table in both engines."""

    duckdb: duckdb.DuckDBPyConnection
    spark: SparkSession

    def values(self, printed: list[str], dialect: Dialect) -> list[list[object]]:
        """Return the values of some expressions over all rows, an expression a list."""
        shown = ", ".join(f"{sql} AS f{number}" for number, sql in enumerate(printed))
        sql = f"SELECT {shown} FROM t ORDER BY id"
        if dialect is DUCKDB:
            columns: Any = zip(*self.duckdb.execute(sql).fetchall(), strict=True)
        else:
            columns = (column.to_pylist() for column in self.spark.sql(sql).toArrow().columns)
        return [list(map(_plain, column)) for column in columns]


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@pytest.fixture(scope="module")
def engines(spark: SparkServer, session: SparkSession) -> Iterator[Engines]:
    source, path = open_table(), spark.folder / "hostile" / "t.parquet"
    path.parent.mkdir()
    types = source.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 't'"
    ).fetchall()
    shown = [f"{_form(type_).format(_name(name))} AS {_name(name)}" for name, type_ in types]
    source.execute(f"COPY (SELECT {', '.join(shown)} FROM t ORDER BY id) TO '{path}' (FORMAT parquet)")
    for name, type_ in types:
        if type_ in ("HUGEINT", "DATE", "TIMESTAMP"):
            source.execute(f"UPDATE t SET {_name(name)} = {_form(type_).format(_name(name))}")
    session.read.parquet(str(Path(path))).createOrReplaceTempView("t")
    yield Engines(source, session)
    source.close()


def _form(type_: str) -> str:
    return "CAST({0} AS VARCHAR)" if type_.startswith("ENUM") else _CARRIED.get(type_, "{0}")


def _name(name: str) -> str:
    return f'"{name}"'


def printed(text: str, columns: tuple[Column, ...], dialect: Dialect) -> str:
    expr = bind_expression(text, columns)
    names = [dialect.stored(dialect.identifier(column.name), column.type) for column in columns]
    printer = PrivatePrinter(Environment(columns), names, dialect)
    shown = printer.number(expr).sql if expr.type.is_number else printer.value(expr)
    return dialect.hash_text(shown, expr.type) if expr.type.is_temporal else shown


def drawn(depths: tuple[int, ...], count: int) -> list[tuple[str, str, str]]:
    """Return expressions, and what is printed of them for either engine."""
    found: list[tuple[str, str, str]] = []
    kinds = st.one_of(*(kind(depth) for kind in (numbers, texts, moments, booleans) for depth in depths))

    @given(kinds, environments(is_bounded=True))
    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def collect(text: str, columns: tuple[Column, ...]) -> None:
        try:
            found.append((text, printed(text, columns, DUCKDB), printed(text, columns, SPARK)))
        except Refusal:
            return

    collect()
    return found


def check(engines: Engines, expressions: list[tuple[str, str, str]]) -> None:
    """Hold both engines to the same values, many expressions a statement: each costs Spark the better part of a second."""
    for start in range(0, len(expressions), _AT_ONCE):
        some = expressions[start : start + _AT_ONCE]
        ours = engines.values([one[1] for one in some], DUCKDB)
        theirs = engines.values([one[2] for one in some], SPARK)
        for (text, _, _), here, there in zip(some, ours, theirs, strict=True):
            wrong = [(a, b) for a, b in zip(here, there, strict=True) if not _are_same(a, b)]
            assert not wrong, f"{text}: {wrong[:3]}"


def _are_same(a: object, b: object) -> bool:
    """Say whether two values are one; of a double the last bits may differ (soundness.md 2.6)."""
    is_close = isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-14)
    return a == b or is_close


def test_an_expression_has_one_value(engines: Engines) -> None:
    expressions = drawn((1, 2), 90)  # of which some texts are read by patterns, which Spark's are not
    assert len(expressions) > 40
    check(engines, expressions)


@pytest.mark.long
def test_a_deep_expression_has_one_value(engines: Engines) -> None:
    check(engines, drawn((2, 3), 1500))
