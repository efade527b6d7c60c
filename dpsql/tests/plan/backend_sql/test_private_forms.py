"""Predicates, text and calendar forms, as they are printed for both engines."""

from __future__ import annotations

import pytest

from dpsql.plan.backend_sql.private_forms import FORMS
from dpsql.relation.functions import FUNCTIONS
from dpsql.tests.plan.planned import printed


def where(condition: str, engine: str = "duckdb") -> str:
    """Return the printed filter of a count of people."""
    sql = printed(f"SELECT COUNT(*) FROM person WHERE {condition}", engine)
    return sql[sql.index(" WHERE ") + len(" WHERE ") : sql.rindex(") AS r")]


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("age = 5", '("age" = 5)'),
        ("NOT (age < 5)", '(NOT ("age" < 5))'),
        ("age IS NULL", '("age" IS NULL)'),
        ("age IS NOT NULL", '("age" IS NOT NULL)'),
        ("height IS NULL", '(CASE WHEN isnan("height") THEN NULL ELSE "height" END IS NULL)'),
        ("city IN ('a', 'b')", "(CAST(\"city\" AS VARCHAR) IN ('a', 'b'))"),
        ("age IN (1, 2)", '("age" IN (1, 2))'),
        ("(age > 5) IS TRUE", '(("age" > 5) IS TRUE)'),
        ("age IS DISTINCT FROM 5", '(NOT ("age" IS NOT DISTINCT FROM 5))'),
    ],
)
def test_predicates(condition: str, shown: str) -> None:
    assert where(condition) == shown


def test_a_pattern_has_its_escape_said() -> None:
    """Engines differ in which sign escapes where none is written: in DuckDB it is none."""
    assert where("city LIKE 'a%'") == "(CAST(\"city\" AS VARCHAR) LIKE 'a%')"
    assert where("city LIKE 'a\\%'").endswith("LIKE 'a\\%' ESCAPE '\\')")
    assert where("city LIKE 'a%'", "postgres").endswith("LIKE 'a%' ESCAPE '\\')")
    assert where("city NOT LIKE 'a%'") == "(CAST(\"city\" AS VARCHAR) NOT LIKE 'a%')"
    assert where("city NOT LIKE 'a%'", "postgres").endswith("NOT LIKE 'a%' ESCAPE '\\')")


def test_dates_are_clamped_before_the_calendar_reads_them() -> None:
    shown = where("born > DATE '2000-01-01' AND extract(year FROM born) > 2001")
    assert "CASE WHEN \"born\" BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN \"born\" END" in shown


def test_every_form_is_a_function_that_may_run_on_peoples_rows() -> None:
    assert {name for name in FORMS if name in FUNCTIONS and not FUNCTIONS[name].private} == set()
    assert {"eq", "in", "like", "not", "case"} <= set(FORMS)


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_decimals_of_a_columns_own_type_are_a_list(engine: str) -> None:
    """And what else is beside them is compared one by one: an engine need not have one type for all."""
    asked = "SELECT COUNT(*) FROM visit WHERE fee"
    quote = "`" if engine == "spark" else '"'
    assert f"({quote}fee{quote} IN ((-2.25), 1, 0.5))" in printed(
        f"{asked} IN (1, -2.25, 0.50, 7.125)", engine
    )
    assert f"({quote}fee{quote} = 0.5)" in printed(f"{asked} IN (1, 0.5, NULL)", engine)


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@pytest.mark.parametrize("subject", ["email::double precision", "email::integer", "age * 1.5", "height * 2"])
def test_what_a_list_is_asked_of_is_printed_once(engine: str, subject: str) -> None:
    asked = f"SELECT COUNT(*) FROM person WHERE {subject}"
    alone, among = (printed(f"{asked} {said}", engine) for said in ("= 1", "IN (1, 2, 3, 4)"))
    assert len(among) < len(alone) + 200
    assert " IN (" in among
