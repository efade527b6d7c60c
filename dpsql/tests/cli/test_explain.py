"""EXPLAIN: the textbook's numbers, the analyst's names, and SQL that a person can read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql import Session
from dpsql.cli.demo import TEXTBOOK_POLICY
from dpsql.engine.answer import BoundNote
from dpsql.engine.explain import layout_sql
from dpsql.engine.notes import bias_notes

EACH = 'what is counted or summed per person takes at most 60 rows of "loan"; no error bar holds what that leaves out'
BOUNDED = 'a person counts with at most 60 rows of "loan"; no error bar holds what that leaves out: the owner has not measured it (dpsql bounds loan)'


@pytest.fixture(scope="module")
def session(made_once: Path) -> Iterator[Session]:
    with Session.open(made_once / "campus.toml") as session:
        yield session


@pytest.mark.parametrize(
    ("epsilon", "numbers"),
    [
        ("0.01", "sensitivity 2, Laplace scale 200, variance 80000, "),
        ("0.0001", "sensitivity 2, Laplace scale 20000, variance 800000000, "),
    ],
)
def test_the_textbook(made_once: Path, epsilon: str, numbers: str) -> None:
    with Session.open(made_once / TEXTBOOK_POLICY) as session:
        session.execute(f"SET dpsql.epsilon = {epsilon}")
        explanation = session.explain("SELECT dp_avg_direct(gpa) FROM student")
        assert f"    {numbers}" in explanation.text()
        assert f"direct average: epsilon {epsilon}\n" in explanation.text()
        assert (
            f"charge: epsilon {epsilon} (nothing, if it is answered already); 1 left\n" in explanation.text()
        )
        assert session.budget().epsilon_spent_nano == 0


def test_the_analysts_names(session: Session) -> None:
    explanation = session.explain(
        "SELECT branch, f, late, twice FROM (SELECT branch, AVG(fee) AS f, COUNT(*) FILTER (WHERE fee > 1) AS late,"
        " 2 * COUNT(*) AS twice FROM loan GROUP BY branch) AS t WHERE late > 5 ORDER BY f LIMIT 3"
    )
    text = explanation.text()
    assert "\n  f = avg(fee): expected ± " in text
    assert "\n  late = count(*) FILTER (…): expected ± " in text
    assert "\n  count(*): expected ± " in text
    outputs = explanation.as_dict()["releases"][0]["outputs"]  # type: ignore[index]  # a list, as JSON has it
    assert [output["column"] for output in outputs] == ["f", "late", None]


@pytest.mark.parametrize(
    "measure", ["VAR_POP(gpa)", "STDDEV(gpa) / COUNT(*)", "CORR(gpa, enrolled)", "AVG(gpa)", "MEDIAN(gpa)"]
)
def test_what_no_row_can_count_in_has_no_noise(session: Session, measure: str) -> None:
    sql = f"SELECT major, {measure} FROM student WHERE born > DATE '2009-12-31' GROUP BY major"
    explained = session.explain(sql).text()
    assert "no row can count" in explained
    assert "charge: epsilon 0 " in explained
    assert session.execute(sql).rows == []


def test_what_costs_nothing(session: Session) -> None:
    assert session.explain("SELECT COUNT(*) FROM course").text().startswith("charge: nothing; 10 left\n")


@pytest.mark.parametrize(
    ("sql", "notes"),
    [
        ("SELECT branch, COUNT(*) FROM loan GROUP BY branch", (BOUNDED,)),
        ("SELECT branch, COUNT(*), SUM(fee) FROM loan GROUP BY branch", (BOUNDED,)),
        ("SELECT COUNT(*) FROM loan", (BOUNDED,)),
        ("SELECT branch, COUNT(DISTINCT student_id) FROM loan GROUP BY branch", ()),
        ("SELECT COUNT(DISTINCT student_id) FROM loan", ()),
        (
            "SELECT COUNT(DISTINCT fee) FROM loan",
            ("a person counts with at most 60 distinct values; no error bar holds what that leaves out",),
        ),
        (
            "SELECT COUNT(*) FROM (SELECT student_id, COUNT(*) AS n FROM loan GROUP BY student_id) AS t",
            (EACH,),
        ),
        ("SELECT major, COUNT(*) FROM student GROUP BY major", ()),
        ("SELECT COUNT(*) FROM course", ()),
    ],
)
def test_contribution_bounds_are_told(session: Session, sql: str, notes: tuple[str, ...]) -> None:
    explanation = session.explain(sql)
    assert tuple(note for note in bias_notes(explanation.plan) if isinstance(note, BoundNote)) == notes
    said = explanation.as_dict()["notes"]
    assert isinstance(said, list)
    assert said[: len(notes)] == list(notes)
    assert ("\nnote: " in explanation.text()) is bool(notes)


def test_sql_is_laid_out() -> None:
    sql = (
        'WITH r AS (SELECT "a" AS u, CAST("b" AS VARCHAR) AS k FROM "main"."t" WHERE "x" IN (1, 2)), '
        "p AS (SELECT u, COUNT(*) FILTER (WHERE k IS TRUE) OVER (PARTITION BY u ORDER BY k) AS n FROM r GROUP BY u) "
        "SELECT k FROM (SELECT ' FROM (SELECT ' AS k FROM p) AS b ORDER BY k"
    )
    assert layout_sql(sql) == [
        "WITH r AS (",
        '  SELECT "a" AS u, CAST("b" AS VARCHAR) AS k',
        '  FROM "main"."t"',
        '  WHERE "x" IN (1, 2)',
        "), p AS (",
        "  SELECT u, COUNT(*) FILTER (WHERE k IS TRUE) OVER (PARTITION BY u ORDER BY k) AS n",
        "  FROM r",
        "  GROUP BY u",
        ")",
        "SELECT k",
        "FROM (",
        "  SELECT ' FROM (SELECT ' AS k",
        "  FROM p",
        ") AS b",
        "ORDER BY k",
    ]


def pieces(text: str) -> list[str]:
    """Return the text's pieces without the blanks between them."""
    found = re.findall(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[(),]|\s+|[^\s'"(),]+|.""", text, re.DOTALL)
    return [piece for piece in found if not piece.isspace()]


@given(st.text(alphabet="(),'\" aSELECT\n") | st.text())
def test_laying_out_loses_nothing(text: str) -> None:
    assert pieces("\n".join(layout_sql(text, 20))) == pieces(text)


def test_real_sql_keeps_to_the_width(session: Session) -> None:
    sql = "SELECT branch, AVG(fee), VARIANCE(days_out), COUNT(DISTINCT fee) FROM loan GROUP BY branch"
    explanation = session.explain(sql)
    assert max(map(len, explanation.text().split("\n"))) <= 100
    for plan in explanation.plan.releases:
        for query in plan.queries(tuple(range(len(plan.measurements)))):
            assert pieces(" ".join(layout_sql(query.sql))) == pieces(query.sql)
