"""Answers as text: exact, aligned, and unable to steer a terminal."""

from __future__ import annotations

import csv
import datetime
import io
import json
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from dpsql.cli.query import parameter_value
from dpsql.cli.render import receipt_line, render
from dpsql.cli.terminal import decimal_text
from dpsql.engine.session import Answer, AnswerColumn, Receipt
from dpsql.relation.types import BIGINT, DATE, DOUBLE, NUMERIC, TEXT, SqlType
from dpsql.words import plain_text, terminal_text

ESCAPES = "\x1b[2J\x9b31m\r\n\t\u202e\u2028"


def answer(columns: list[tuple[str, SqlType]], rows: list[tuple[object, ...]]) -> Answer:
    return Answer(
        columns=tuple(AnswerColumn(name, kind) for name, kind in columns),
        rows=rows,
        command="SELECT",
        receipt=RECEIPT,
    )


RECEIPT = Receipt(
    epsilon=Fraction(1, 10),
    delta=Fraction(1, 10**9),
    left=Fraction(99, 10),
    reused=False,
    notes=("some groups are not shown",),
)
SMALL = [("major", TEXT), ("n", BIGINT), ("gpa", NUMERIC)]
ROWS: list[tuple[object, ...]] = [("CS", 5433, Decimal("3.11")), (None, -1, None)]


def test_table() -> None:
    assert render(answer(SMALL, ROWS), "table").split("\n") == [
        " major |    n |  gpa",
        "-------+------+------",
        " CS    | 5433 | 3.11",
        " NULL  |   -1 | NULL",
        "(2 rows)",
    ]


def test_markdown_escapes_its_own_marks() -> None:
    lines = render(answer([("a|b", TEXT), ("n", BIGINT)], [("x|y", 1)]), "markdown").split("\n")
    assert lines == ["| a\\|b | n |", "| --- | ---: |", "| x\\|y | 1 |"]


def test_csv_is_read_back_and_tells_null_from_empty() -> None:
    text = render(answer([("k", TEXT), ("n", BIGINT)], [('a,"b"\n', 1), (None, 2), ("", 3)]), "csv")
    assert list(csv.reader(io.StringIO(text))) == [["k", "n"], ['a,"b"\n', "1"], ["", "2"], ["", "3"]]
    assert text.split("\n")[-2:] == [",2", '"",3']


def test_json_is_one_line() -> None:
    text = render(answer(SMALL, [*ROWS, ("ö\n", 2**62, Decimal("12"))]), "json")
    assert "\n" not in text
    assert json.loads(text) == {
        "command": "SELECT",
        "columns": [
            {"name": "major", "type": "text"},
            {"name": "n", "type": "bigint"},
            {"name": "gpa", "type": "numeric"},
        ],
        "rows": [["CS", 5433, 3.11], [None, -1, None], ["ö\n", 2**62, 12]],
        "receipt": {
            "epsilon": 0.1,
            "delta": 1e-9,
            "left": 9.9,
            "reused": False,
            "notes": ["some groups are not shown"],
        },
    }


def test_receipts_that_cost_nothing() -> None:
    assert receipt_line(Receipt(Fraction(0), Fraction(0), Fraction(9), True)) == (
        "free: answered from stored releases; epsilon 9 left"
    )
    assert receipt_line(Receipt(Fraction(0), Fraction(0), Fraction(9), False)) == (
        "free: nothing private was asked; epsilon 9 left"
    )


def test_receipt() -> None:
    assert receipt_line(RECEIPT) == (
        "charged epsilon 0.1, delta 1e-9; 9.9 left\nNOTE: some groups are not shown"
    )


@pytest.mark.parametrize("format_name", ["table", "markdown", "json"])
def test_no_control_character_leaves_raw(format_name: str) -> None:
    text = render(answer([(ESCAPES, TEXT), ("n", BIGINT)], [(ESCAPES, 1)]), format_name)
    assert text.replace("\n", "").isprintable()


@given(st.text())
def test_terminal_text_is_printable(text: str) -> None:
    shown = terminal_text(text)
    assert "\x1b" not in shown
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)


@given(st.lists(st.tuples(st.text(max_size=5), st.integers()), min_size=1, max_size=5))
def test_table_lines_are_equally_wide(rows: list[tuple[object, ...]]) -> None:
    lines = render(answer([("日本", TEXT), ("n", BIGINT)], rows), "table").split("\n")[:-1]
    assert len({get_cwidth(line) for line in lines} | {get_cwidth(lines[1]) - 1}) <= 2
    assert all(get_cwidth(line) in (get_cwidth(lines[1]), get_cwidth(lines[1]) - 1) for line in lines)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (Decimal("1E+3"), "1000"),
        (0.1, "0.1"),
        (datetime.date(2025, 1, 31), "2025-01-31"),
        (datetime.datetime(2025, 1, 31, 12), "2025-01-31 12:00:00"),
        (None, ""),
    ],
)
def test_plain_text(value: object, text: str) -> None:
    assert plain_text(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(1, 10), "0.1"),
        (Fraction(10), "10"),
        (Fraction(100), "100"),
        (Fraction(1, 10**9), "1e-9"),
        (Fraction(1, 3), "0.333333333333333333"),
    ],
)
def test_decimal_text(number: Fraction, text: str) -> None:
    assert decimal_text(number) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("2.50", Decimal("2.50")),
        (".5", Decimal(".5")),
        ("CS", "CS"),
        ("NULL", None),
        ("null", None),
        ("TRUE", True),
        ("'42'", "42"),
        ("'it''s'", "it's"),
        ("it's", "it's"),
        ("", ""),
        ("1e5", "1e5"),
        ("9" * 39, "9" * 39),
        ("2025-01-31", "2025-01-31"),
        ("٣", "٣"),
    ],
)
def test_parameter_value(text: str, value: object) -> None:
    got = parameter_value(text)
    assert got == value
    assert type(got) is type(value)


def test_the_rule_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = render(answer([("QUERY PLAN", TEXT)], [("x" * 200,)]), "table").split("\n")
    assert lines[:2] == [" QUERY PLAN", "-" * 40]
    wide = [(f"a_rather_long_name_{i}", BIGINT) for i in range(5)]
    lines = render(answer(wide, [(1, 2, 3, 4, 5)]), "table").split("\n")
    assert len(lines[1]) == len(lines[0])


def test_doubles() -> None:
    rows: list[tuple[object, ...]] = [(5420.0,), (3.1157999999999997,), (float("nan"),), (float("-inf"),)]
    shown = render(answer([("x", DOUBLE)], rows), "table").split("\n")[2:-1]
    assert [line.strip() for line in shown] == ["5420", "3.1158", "NaN", "-Infinity"]
    assert render(answer([("x", DOUBLE)], rows), "csv").split("\n")[2] == "3.1157999999999997"
    body = json.loads(render(answer([("x", DOUBLE)], rows), "json"))
    assert body["rows"] == [[5420.0], [3.1157999999999997], ["NaN"], ["-Infinity"]]


def test_a_wide_table_of_floats() -> None:
    lines = render(answer([("day", DATE), ("x", DOUBLE)], [(datetime.date(2025, 1, 1), 1.5)]), "table")
    assert lines.split("\n")[2] == " 2025-01-01 | 1.5"
