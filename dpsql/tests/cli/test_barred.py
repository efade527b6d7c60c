"""Answers as people read them: what is shown covers the bar, with no digit that the noise has made."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dpsql.cli.application import program
from dpsql.cli.render import receipt_line, render
from dpsql.engine import Answer, Receipt
from dpsql.engine.answer import AnswerColumn, aligned, barred_cell
from dpsql.engine.session import Session
from dpsql.relation.types import BIGINT, DOUBLE, TEXT

from .conftest import Run


@pytest.mark.parametrize(
    ("value", "low", "high", "cell"),
    [
        (5414, 5384.0, 5444.0, ("5414", "± 30")),
        (3, -27.0, 33.0, ("3", "± 30")),
        (62236.71, 62116.88, 62356.54, ("62240", "± 120")),
        (3.116047710384531, 3.07616695829208, 3.16137700603144, ("3.116", "± 0.046")),
        (14.3, 14.2, 14.5, ("14.3", "± 0.2")),
        (14.0, 13.9, 14.1, ("14", "± 0.1")),
        (-0.4, -9.6, 8.8, ("-0.4", "± 9.2")),
        (40, 1.0, 75.0, ("40", "± 39")),
        (10, 1.0, 75.0, ("10", "(1 to 75)")),
        (7, 7.0, 7.0, ("7", "")),
        (7, None, None, ("7", "± ?")),
        (None, None, None, ("", "")),
        (99, -0.6, 198.6, ("99", "± 100")),
        (1e300, 0.9e300, 1.1e300, ("1e+300", "± 1e+299")),
        (0.30000000000000004, 0.1, 0.5, ("0.3", "± 0.20")),
    ],
)
def test_a_number_with_its_bar(value: object, low: object, high: object, cell: tuple[str, str]) -> None:
    plain = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    found = barred_cell(value, low, high, plain)
    assert (found[0].rstrip("0").rstrip(".") if "." in found[0] else found[0], found[1]) == cell


NUMBERS = st.floats(-1e9, 1e9, allow_nan=False)


@given(NUMBERS, st.floats(1e-3, 1e9), st.floats(0, 1.4))
def test_what_is_shown_is_no_narrower_than_the_bar(value: float, near: float, ratio: float) -> None:
    """Up to the half of the place to which the number itself is rounded."""
    low, high = value - near, value + near * (1 + ratio)
    number, bar = barred_cell(value, low, high, repr(value))
    if bar.startswith("±"):
        shown, half = Decimal(number), Decimal(bar.removeprefix("± "))
        unit = Decimal(1).scaleb(max(half.adjusted() - 1, half.as_tuple().exponent))  # type: ignore[type-var]
        far = max(Decimal(repr(value)) - Decimal(repr(low)), Decimal(repr(high)) - Decimal(repr(value)))
        assert far * (1 - Decimal("1e-8")) <= half <= far + unit * Decimal("1.01")
        assert abs(shown - Decimal(repr(value))) <= unit
        digits = bar.removeprefix("± ").replace(".", "").strip("0")
        assert len(digits) <= 2
    else:
        ends = re.fullmatch(r"\((\S+) to (\S+)\)", bar)
        assert ends
        slack = Decimal("1e-6") * (1 + abs(Decimal(value)))
        assert Decimal(ends[1]) <= Decimal(low) + slack
        assert Decimal(ends[2]) >= Decimal(high) - slack


def test_points_stand_below_points() -> None:
    cells = [("3.21", "± 0.12"), ("12.5", "± 1.2"), ("NULL", ""), ("7", "± ?")]
    assert list(aligned(cells)) == [
        "   3.21 ± 0.12", "  12.5  ± 1.2 ", "NULL          ", "   7    ± ?   ",
    ]  # fmt: skip


COLUMNS = (
    AnswerColumn("major", TEXT),
    AnswerColumn("n", BIGINT), AnswerColumn("n_low", DOUBLE, 1), AnswerColumn("n_high", DOUBLE, 1),
    AnswerColumn("n_low", BIGINT),
)  # fmt: skip


def test_the_ends_of_bars_are_no_columns_for_people_alone() -> None:
    """A column that the analyst named as one of them stays."""
    answer = Answer(COLUMNS, [("CS", 5414, 5384.0, 5444.0, 9), ("EE", 12, -18.0, 42.0, 9)], "SELECT", None)
    assert render(answer, "table", for_people=True).split("\n") == [
        " major |         n | n_low",
        "-------+-----------+-------",
        " CS    | 5414 ± 30 |     9",
        " EE    |   12 ± 30 |     9",
        "(2 rows)",
    ]
    assert render(answer, "table").split("\n")[0].count("|") == 4
    for name in ("csv", "json", "markdown"):
        assert render(answer, name, for_people=True) == render(answer, name)


def test_the_session_says_which_columns_are_ends(campus: object) -> None:
    with Session.open(campus) as session:  # type: ignore[arg-type]
        sql = "SELECT enrolled, COUNT(*) AS n, 1 AS n_low, AVG(gpa) AS a FROM student GROUP BY 1"
        assert [one.bar_of for one in session.describe(sql)] == [None] * 4
        session.execute("SET dpsql.intervals = 0.9")
        named = [(one.name, one.bar_of) for one in session.execute(sql).columns]
    assert named == [
        ("enrolled", None), ("n", None), ("n_low", 1), ("n_high", 1), ("n_low", None),
        ("a", None), ("a_low", 5), ("a_high", 5),
    ]  # fmt: skip


SQL = "SELECT COUNT(*) AS n FROM student"


def test_at_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.cli.query.is_read_by_people", lambda: True)
    shown = run("query", SQL)
    assert re.search(r"^ +n\n-+\n \d+ ± 30\n\(1 row\)\n", shown.stdout)
    assert shown.stderr == "charged epsilon 0.1; 9.9 left, about 99 more like this\n"
    without = run("query", "--intervals", "off", SQL)
    assert re.search(r"^ +n\n-+\n +\d+\n\(1 row\)\n", without.stdout)
    assert without.stderr == "free: answered from stored releases; epsilon 9.9 left, about 99 more at 0.1\n"
    wide = run("query", "--intervals", "0.99", SQL).stdout
    assert int(wide.split("± ")[1].split()[0]) > 30
    for name in ("csv", "json", "markdown"):
        assert "_low" not in run("query", "--format", name, SQL).stdout


def test_bars_that_nobody_asked_for_change_nothing_that_is_drawn(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A median is the stored one at a terminal too; its ends are drawn with it only where bars are asked for."""
    median = "SELECT MEDIAN(gpa) FROM student"
    run("query", "SELECT COUNT(gpa) FROM student")
    plain = run("query", median)
    monkeypatch.setattr("dpsql.cli.query.is_read_by_people", lambda: True)
    shown = run("query", median)
    assert shown.stderr.startswith("free")
    assert shown.stdout == plain.stdout
    asked = run("query", "--intervals", "0.95", median)
    assert asked.stderr.startswith("charged epsilon 0.1")
    assert "±" in asked.stdout or " to " in asked.stdout
    assert run("query", input=f"SET dpsql.intervals = 0.95; {median};").stderr.startswith("free")


def test_in_a_pipe_columns_are_exact(run: Run) -> None:
    assert "±" not in run("query", SQL).stdout
    assert "n_low" in run("query", "--intervals", "0.95", SQL).stdout


def test_more_questions_of_the_same_price() -> None:
    charged = Receipt(Fraction(1, 2), Fraction(0), Fraction(74, 10), False)
    assert receipt_line(charged, Fraction(1, 10)) == "charged epsilon 0.5; 7.4 left, about 14 more like this"
    in_rho = Receipt(
        Fraction(1, 2), Fraction(0), Fraction(7), False, (), 10**17, "about 3 more statements at 0.1"
    )
    assert receipt_line(in_rho, Fraction(1, 10)).endswith("; about 3 more statements at 0.1")


def test_help_names_the_formats() -> None:
    assert "[table|csv|json|markdown|chart]" in CliRunner().invoke(program, ["query", "--help"]).stdout
