"""Charts: of the right kind, no wider than the terminal, with each number and its bar where they belong."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from dpsql.cli import chart
from dpsql.cli.chart import chart_lines
from dpsql.engine import Answer
from dpsql.engine.answer import AnswerColumn, Picture, pictures
from dpsql.relation.types import BIGINT, DATE, DOUBLE, TEXT, TIMESTAMP, SqlType

from .conftest import Run

Row = tuple[object, float | int | None, float | None, float | None]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(chart, "can_write", lambda _: True)


def picture(key: SqlType, rows: list[Row], number: SqlType = BIGINT) -> Picture:
    columns = (
        AnswerColumn("k", key), AnswerColumn("n", number),
        AnswerColumn("n_low", DOUBLE, 1), AnswerColumn("n_high", DOUBLE, 1),
    )  # fmt: skip
    (one,) = pictures(Answer(columns, rows, "SELECT", None))
    return one


def test_bars_with_whiskers() -> None:
    lines = chart_lines(
        picture(TEXT, [("CS", 80, 60.0, 100.0), ("EE", 40, 20.0, 60.0), ("ME", None, None, None)])
    )
    assert lines[0] == " n by k"
    assert lines[1].startswith(" CS    80 ± 20  █")
    assert lines[3] == " ME  NULL"
    for line in lines[1:3]:
        low, middle, high = (line.index(mark) for mark in "├●┤")
        assert low < middle < high
        assert abs((high - middle) - (middle - low)) <= 1
    # twice the number, twice the length: cells are counted from where the bar begins
    start = lines[1].index("█")
    assert abs((lines[1].index("●") - start) - 2 * (lines[2].index("●") - start)) <= 2
    assert lines[-1].split() == ["0", "100"]


def test_numbers_far_from_zero_are_points() -> None:
    rows: list[Row] = [("CS", 3.11, 3.10, 3.12), ("EE", 3.21, 3.20, 3.22)]
    drawn = "\n".join(chart_lines(picture(TEXT, rows, DOUBLE)))
    assert "●" in drawn
    assert "█" not in drawn


def test_a_histogram_has_a_column_for_each_number_and_gaps_for_none() -> None:
    rows: list[Row] = [
        (key, count, count - 30.0, count + 30.0) for key, count in ((1, 100), (2, 200), (4, 50))
    ]
    lines = chart_lines(picture(BIGINT, rows))
    assert lines[0] == " n by k, each ± 30"
    assert lines[-1].split() == ["1", "2", "4"]
    first, second, fourth = (lines[-1].index(label) for label in "124")
    assert fourth - second == 2 * (second - first)
    heights = [
        sum(line[column : column + 1] in set("▁▂▃▄▅▆▇█") for line in lines)
        for column in (first, second, fourth)
    ]
    assert heights[1] > heights[0] > heights[2]
    assert sum("┬" in line for line in lines) >= 1


def test_a_series_is_in_the_order_of_time() -> None:
    days = [datetime.datetime(2025, month, 1) for month in (3, 1, 2)]
    rows: list[Row] = [(day, 100 * day.month, 100.0 * day.month - 5, 100.0 * day.month + 5) for day in days]
    lines = chart_lines(picture(TIMESTAMP, rows))
    assert lines[-1].split()[0] == "2025-01-01"
    height = {line.index("●"): number for number, line in enumerate(lines) if "●" in line}
    assert [height[column] for column in sorted(height)] == sorted(height.values(), reverse=True)
    assert "█" not in "\n".join(lines)


def test_more_rows_than_columns_are_bars() -> None:
    rows: list[Row] = [
        (datetime.date(2025, 1, 1) + datetime.timedelta(day), day, None, None) for day in range(100)
    ]
    assert len(chart_lines(picture(DATE, rows))) == 102


def test_the_truth_is_marked_where_it_is() -> None:
    from dataclasses import replace

    plain = picture(TEXT, [("CS", 80, 60.0, 100.0)])
    (line,) = (line for line in chart_lines(replace(plain, truths=(60.0,))) if "×" in line)
    assert line.index("×") < line.index("●")


def test_a_truth_at_the_answer_hides_neither() -> None:
    from dataclasses import replace

    plain = picture(TEXT, [("CS", 80, 60.0, 100.0)])
    text = "\n".join(chart_lines(replace(plain, truths=(80.0,))))
    assert ("⊗" in text, "×" in text, "●" in text) == (True, False, False)
    rows: list[Row] = [(month, 10 + month, 8.0 + month, 12.0 + month) for month in range(6)]
    truths = tuple(10.0 + month for month in range(6))
    for key, point in ((BIGINT, "█"), (DATE, "●")):
        shown = [(datetime.date(2025, 1 + row[0], 1), *row[1:]) if key is DATE else row for row in rows]
        text = "\n".join(chart_lines(replace(picture(key, shown), truths=truths)))
        assert (text.count("×"), text.count("⊗")) == (6, 0)
        assert point in text


def test_plain_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "can_write", lambda _: False)
    for key in (TEXT, BIGINT):
        lines = chart_lines(picture(key, [(name, 8, 6.0, 10.0) for name in (1, 2, 3)]))
        assert "#" in "".join(lines)
        assert "\n".join(lines).replace("±", "").isascii()


def test_what_cannot_be_drawn_is_a_table(run: Run) -> None:
    assert "(1 row)" in run("query", "--format", "chart", "SELECT title FROM course WHERE id = 1").stdout
    assert "(0 rows)" in run("query", "--format", "chart", "SELECT id FROM course WHERE id < 0").stdout
    assert run("query", "--format", "chart", "SET dpsql.epsilon = 0.2").stdout == "SET\n"


def test_from_the_command_line(run: Run) -> None:
    """Bars are drawn wherever a chart is asked for, and off takes them away."""
    sql = "SELECT major, COUNT(*) AS n FROM student WHERE gpa >= 3.8 GROUP BY major ORDER BY n DESC"
    shown = run("query", "--format", "chart", sql).stdout
    assert shown.count("├") == shown.count("┤") == 6
    without = run("query", "--format", "chart", "--intervals", "off", sql).stdout
    assert "├" not in without
    assert "█" in without


ANY = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(-100, 100))
KEYS = st.one_of(st.text(max_size=40), st.none())


@given(st.lists(st.tuples(KEYS, ANY, st.floats(0, 1e3)), min_size=1, max_size=12), st.integers(40, 150))
def test_no_line_is_wider_than_the_terminal(
    rows: list[tuple[str | None, float | None, float]], width: int
) -> None:
    barred = [(key, value, None if value is None else value - half, None if value is None else value + half)
              for key, value, half in rows]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chart, "width", lambda: width)
        for line in chart_lines(picture(TEXT, list(barred), DOUBLE)):
            assert get_cwidth(line) <= max(width, 100)
            assert not {"\x1b", "\n", "\x9b"} & set(line)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), ANY), min_size=3, max_size=60, unique_by=lambda row: row[0]))
def test_any_numbers_can_be_drawn(rows: list[tuple[float, float | None]]) -> None:
    lines = chart_lines(picture(DOUBLE, [(key, value, value, value) for key, value in rows], DOUBLE))
    assert all(get_cwidth(line) <= 100 for line in lines)
