"""Chosen values and regressions over the demo, by every door: psql, the command line and DB-API say the same."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dpsql
from dpsql.cli.application import program
from dpsql.tests.support.length import long_where

from ..docs.test_python import policy_of_a_demo
from .conftest import Served, needs_psql, run_server

QUARTILES = "PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY gpa)"
STATEMENTS = {
    "ends and middle": "SELECT MIN(gpa) AS lo, MEDIAN(gpa) AS mid, MAX(gpa) AS hi FROM student",
    "dates": "SELECT MIN(born) AS lo, MEDIAN(born) AS mid, MAX(born) AS hi FROM student",
    "groups": "SELECT major, MEDIAN(gpa) AS mid FROM student GROUP BY major ORDER BY major",
    "many rows": "SELECT branch, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY days_out) AS p FROM loan"
    " GROUP BY branch ORDER BY branch",
    "array": f"SELECT {QUARTILES} AS q FROM student",
    "of an array": f"SELECT q[2] AS mid, cardinality(q) AS n FROM (SELECT {QUARTILES} AS q FROM student) AS t",
    "unnested": f"SELECT unnest({QUARTILES}) AS q FROM student",
    "array of dates": "SELECT PERCENTILE_DISC(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY born) AS q FROM student",
    "mode": "SELECT MODE() WITHIN GROUP (ORDER BY major) AS m FROM student",
    "two values": "SELECT CORR(gpa, enrolled) AS c, REGR_SLOPE(gpa, enrolled) AS s FROM student",
    "two values of groups": "SELECT major, CORR(gpa, enrolled) AS c, REGR_SLOPE(gpa, enrolled) AS s FROM student"
    " GROUP BY major ORDER BY major",
}
LEVELS = (None, "0.95")
MARK = "---"
Rows = list[list[str]]


def said(cell: str) -> str:
    """Return a cell as all doors say it: a float to 12 digits, NULL as nothing."""
    if cell in ("", "NULL"):
        return ""
    return f"{float(cell):.12g}" if re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell) else cell


def table(text: str) -> Rows:
    return [[said(cell) for cell in row] for row in csv.reader(io.StringIO(text))]


def of_psql(server: Served, level: str | None) -> dict[tuple[str, str | None], Rows]:
    """Return what one session of psql shows of every statement at a level."""
    setting = f"SET dpsql.intervals = {level};\n" if level else ""
    script = setting + "".join(f"\\echo {MARK}\n{sql};\n" for sql in STATEMENTS.values())
    shown = server.psql(script, "-d", "campus", "--csv", "-q")
    answers = "".join(line for line in shown.splitlines(True) if not line.startswith("NOTICE:")).split(MARK)
    return {
        (name, level): table(answer.strip()) for name, answer in zip(STATEMENTS, answers[1:], strict=True)
    }


def of_the_command_line(policy: Path, sql: str, level: str | None) -> Rows:
    options = ["--intervals", level] if level else []
    result = CliRunner().invoke(program, ["-P", str(policy), "query", "--format", "csv", *options, sql])
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("free: answered from stored releases")
    return table(result.stdout)


def of_dbapi(policy: Path, sql: str, level: str | None) -> tuple[list[str], list[tuple[Any, ...]]]:
    with dpsql.connect(policy) as connection:
        cursor = connection.cursor(intervals=float(level)) if level else connection.cursor()
        cursor.execute(sql)
        assert cursor.receipt is not None
        assert cursor.receipt.reused
        assert cursor.description is not None
        return [column[0] for column in cursor.description], list(cursor.fetchall())


def as_text(value: Any) -> str:
    if isinstance(value, list):
        return "{" + ",".join(map(str, value)) + "}"
    return "" if value is None else str(value)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return policy_of_a_demo(tmp_path_factory.mktemp("doors") / "demo")


@pytest.fixture(scope="module")
def server(policy: Path) -> Iterator[Served]:
    with run_server(policy) as served:
        yield served


@pytest.fixture(scope="module")
def by_psql(server: Served) -> dict[tuple[str, str | None], Rows]:
    """What psql shows of every statement, at either level: the first door, which pays for them all."""
    return {key: rows for level in LEVELS for key, rows in of_psql(server, level).items()}


@needs_psql
@long_where(lambda level, name: level is None and name not in ("array", "groups", "mode"))
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_every_door_says_the_same(
    name: str, level: str | None, by_psql: dict[tuple[str, str | None], Rows], policy: Path
) -> None:
    shown = by_psql[name, level]
    assert of_the_command_line(policy, STATEMENTS[name], level) == shown
    names, rows = of_dbapi(policy, STATEMENTS[name], level)
    assert [names, *([said(as_text(value)) for value in row] for row in rows)] == shown


@needs_psql
@pytest.mark.parametrize(
    ("name", "most"),
    [("two values", 2 * 3), ("ends and middle", 3 * 3), ("array", 1), ("mode", 1), ("groups", 1 + 3)],
)
def test_intervals_are_columns_of_numbers(
    name: str, most: int, by_psql: dict[tuple[str, str | None], Rows]
) -> None:
    assert len(by_psql[name, "0.95"][0]) == most
    assert by_psql[name, None][0] == [word for word in by_psql[name, "0.95"][0] if "_" not in word]


@needs_psql
def test_the_answers_are_those_of_the_demo(by_psql: dict[tuple[str, str | None], Rows]) -> None:
    """Its middle grade is 3.11 and half of them are in 2.83 to 3.4; the first year and the grade know nothing of each other."""
    low, middle, high = map(float, by_psql["ends and middle", None][1])
    assert low < 2.5 < 3.05 < middle < 3.17 < 3.7 < high
    assert by_psql["mode", None][1] == ["CS"]
    assert float(by_psql["of an array", None][1][0]) == pytest.approx(3.11, abs=0.06)
    assert len(by_psql["unnested", None]) == 4
    correlation, below, above, slope, *_ = map(float, by_psql["two values", "0.95"][1])
    assert below <= correlation <= above
    assert (correlation, slope) == (pytest.approx(0, abs=0.2), pytest.approx(0, abs=0.05))


def test_a_driver_reads_the_types(server: Served) -> None:
    with server.connect(dbname="campus") as connection:

        def one(name: str) -> tuple[Any, ...]:
            row = connection.execute(STATEMENTS[name]).fetchone()
            assert row is not None
            return tuple(row)

        assert [type(value) for value in one("ends and middle")] == [Decimal, float, Decimal]
        (quartiles,) = one("array")
        assert [type(value) for value in quartiles] == [float] * 3
        assert quartiles == sorted(quartiles)
        (days,) = one("array of dates")
        assert days == sorted(days)
        assert days[0].year < days[2].year


@needs_psql
def test_psql_names_what_a_column_answers(server: Served) -> None:
    (gpa,) = [
        line
        for line in server.psql("\\d+ student\n", "-d", "campus").splitlines()
        if line.startswith(" gpa ")
    ]
    assert all(name in gpa for name in ("CORR", "MEDIAN", "MIN", "MAX"))
