"""The walk of `dpsql demo`: what is asked, and why it is worth seeing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from ..errors import Refusal
from .faults import error_text
from .render import receipt_line, render
from .worker import RunningSession, open_session

__all__ = ["CAMPUS", "TEXTBOOK", "Stop", "walk"]


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop of the walk: what to notice, and the statements to run."""

    remark: str
    statements: tuple[str, ...]
    is_refused: bool = False


_BY_MAJOR = """\
SELECT major, COUNT(*) AS students
FROM student
GROUP BY major
ORDER BY students DESC"""

CAMPUS = (
    Stop(
        "Students by major. With intervals set, each number brings its error bar: the true count lies in\n"
        "it 95 times out of 100. One student can change one count by one; the noise hides exactly that.",
        ("SET dpsql.intervals = 0.95", _BY_MAJOR),
    ),
    Stop(
        "The average GPA. Rounding, like everything above the noise, costs nothing.",
        ("SELECT ROUND(AVG(gpa), 4) AS gpa FROM student",),
    ),
    Stop(
        "A student has many loans, so one student can change these counts by more than one (the policy\n"
        "says: by 60 loans, however they fall on the branches). More noise is needed; we pay more to see\n"
        "more. The bars still hold the truth: what heavy borrowers have above 60 is 17 of 300,000 loans.",
        (
            "SET dpsql.epsilon = 0.5",
            "SELECT branch, COUNT(*) AS loans FROM loan GROUP BY branch ORDER BY loans DESC",
        ),
    ),
    Stop(
        "A question per person over two tables: how many loans has a student, by major? The join is by the\n"
        "student, so each row is still one person's. What is counted per person is limited, as above.",
        (
            "SELECT major, AVG(n) AS loans_each\n"
            "FROM (SELECT student_id, COUNT(*) AS n FROM loan GROUP BY student_id) AS t\n"
            "JOIN student ON id = student_id\n"
            "GROUP BY major\n"
            "ORDER BY major",
        ),
    ),
    Stop(
        "Loans by month. The months come from the declared bounds of the dates, not from the data.",
        (
            "SELECT date_trunc('month', loaned_on) AS month, COUNT(*) AS loans\n"
            "FROM loan\n"
            "GROUP BY 1\n"
            "ORDER BY 1",
        ),
    ),
    Stop(
        "A histogram. A student stands in one bar alone, so all the bars together cost as much as one.",
        (
            "SET dpsql.epsilon = 0.1",
            "SELECT floor(gpa * 4) / 4 AS gpa_from, COUNT(*) AS students\n"
            "FROM student\n"
            "GROUP BY 1\n"
            "ORDER BY 1",
        ),
    ),
    Stop(
        "The first question again, asked differently: the same numbers, from the store, free. Asking\n"
        "again would otherwise be the way to average the noise out.",
        (
            "SELECT major, COUNT(*) AS students\n"
            "FROM student\n"
            "GROUP BY major\n"
            "HAVING COUNT(*) > 3000\n"
            "ORDER BY major",
        ),
    ),
    Stop(
        "A question about persons is refused: where, why, and what to write instead.",
        ("SELECT name, gpa FROM student",),
        is_refused=True,
    ),
    Stop("What is left of the budget.", ("SHOW dpsql.budget",)),
)
"""The walk under campus.toml."""

TEXTBOOK = (
    Stop(
        "The textbook's example, under textbook.toml: GPA in [2, 4], one row replaced, the average noised\n"
        "directly. Sensitivity 2, so epsilon 0.01 means Laplace noise of scale 200: sound, and useless.\n"
        "EXPLAIN costs nothing. Compare with the average above, at ten times the epsilon.",
        ("SET dpsql.epsilon = 0.01", "EXPLAIN SELECT dp_avg_direct(gpa) FROM student"),
    ),
    Stop(
        "At epsilon 0.0001 the scale is 20000.",
        ("SET dpsql.epsilon = 0.0001", "EXPLAIN SELECT dp_avg_direct(gpa) FROM student"),
    ),
)
"""The walk under textbook.toml."""


def walk(policy_path: Path, stops: tuple[Stop, ...]) -> None:
    """Run the stops against the policy and print each with its answer and its cost.

    Raises DpsqlError for any failure that is not the one a stop announces.
    """
    with open_session(policy_path, "local") as running:
        for stop in stops:
            click.echo(f"\n{click.style(stop.remark, bold=True)}\n")
            for sql in stop.statements:
                click.echo("\n".join(f"  {line}" for line in f"{sql};".split("\n")))
                _show(running, sql, is_refused=stop.is_refused)


def _show(running: RunningSession, sql: str, *, is_refused: bool) -> None:
    try:
        answer = running.run(running.session.execute, sql)
    except Refusal as refusal:
        if not is_refused:
            raise
        click.echo("\n" + error_text(refusal, sql))
        return
    if answer.command != "SET":
        click.echo("\n" + render(answer, "table"))
    if answer.receipt is not None and answer.command == "SELECT":
        click.echo(receipt_line(answer.receipt))
