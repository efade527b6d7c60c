"""The laws see what is wrong with Spark's words: each known way turns the same integers, or totality, red (L1, L2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dpsql.plan.dialects.dialect_spark import SparkDialect
from dpsql.tests.support.random_databases import policy_of
from dpsql.tests.support.spark_copy import SparkOwner
from dpsql.tests.support.spark_server import SparkServer

from .on_spark import Copies, counted_alike, of_rows, open_copies
from .test_spark import HOSTILE

pytestmark = pytest.mark.spark

_QUOTIENT = SparkDialect.quotient
MUTANTS: dict[str, tuple[str, Callable[..., str] | str, str]] = {
    "a sum of BIGINTs": (
        "summand", lambda self, largest_sum: "BIGINT", "SELECT SUM(big) FROM visit"),
    "a wide quotient by DIV": (
        "quotient", lambda self, left, right, **_: f"({left} DIV {right})", "SELECT SUM(big) FROM visit WHERE big > 1"),
    "a quotient that is thought to be narrow": (
        "quotient", lambda self, left, right, *, wide, most: _QUOTIENT(self, left, right, wide=wide, most=most >> 20),
        "SELECT SUM(big) FROM visit WHERE big > 1"),
    "halves away from zero": (
        "half_even", "round({0})", "SELECT SUM(CAST(x AS INTEGER)) FROM visit"),
    "weeks begin with 1": (
        "extract", lambda self, field, operand: f"extract({field} FROM {operand})",
        "SELECT extract(dow FROM day), COUNT(*) FROM visit GROUP BY 1"),
    "two capitals of one letter": (
        "letter_case", lambda self, name, sql: f"{name}({sql})", "SELECT upper(tag), COUNT(*) FROM visit GROUP BY 1"),
    "NaN is the largest number": (
        "below_nan", "TRUE", "SELECT SUM(x) FROM visit"),
    "a quoted backslash": (
        "text_literal", lambda self, value: "'" + value.replace("'", "''") + "'",
        "SELECT COUNT(*) FROM visit WHERE tag = '%_\\' OR tag = 'it''s'"),
    "NaN is a number": (
        "is_nan", "FALSE", "SELECT COUNT(x), COUNT(*) FILTER (WHERE x IS NULL) FROM visit"),
    "far days are hashed as Spark writes them": (
        "spelled", lambda self, sql, type_: self.as_text(sql), "SELECT any_day, COUNT(*) FROM visit GROUP BY any_day"),
}  # fmt: skip
"""Name -> the method or the form, what it becomes, and a statement."""


@pytest.fixture(scope="module")
def hostile(spark: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    folder = tmp_path_factory.mktemp("mutants")
    with (
        SparkOwner(spark) as owner,
        open_copies(folder, owner, policy_of(folder, rows=6), of_rows([HOSTILE])) as made,
    ):
        yield made


@pytest.mark.parametrize(("name", "mutant", "sql"), MUTANTS.values(), ids=MUTANTS)
def test_mutant(
    hostile: Copies, monkeypatch: pytest.MonkeyPatch, name: str, mutant: Callable[..., Any] | str, sql: str
) -> None:
    assert counted_alike(hostile, [sql])
    if isinstance(mutant, str):
        assert name in SparkDialect.forms
        name, mutant = "forms", {**SparkDialect.forms, name: mutant}
    assert name in vars(SparkDialect)
    monkeypatch.setattr(SparkDialect, name, mutant)
    hostile.backend.read(*hostile.backend.schemas)
    with pytest.raises(AssertionError):
        counted_alike(hostile, [sql])
