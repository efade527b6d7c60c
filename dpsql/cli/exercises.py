"""What a right answer to each exercise of the textbook is; their texts are in `dpsql/docs/textbook/exercises.md`.

A statement is right that dpsql plans as the exercise asks, and whose exact answer over the demo's invented students is
the solution's. Nothing is charged: it is explained, and the exact answer is read from the demo's own file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path

import click

from ..records import dataclass
from .demo_folder import DATABASE, MAIN_POLICY

__all__ = ["EXERCISES", "Check", "Figure", "Statement", "Word"]

_TOLERANCE = 0.01
_SENSITIVITY = re.compile(r"^    sensitivity (\d+(?:\.\d+)?),", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, right to one part in a hundred."""

    value: float

    def fault(self, answer: str, demo: Path) -> str | None:
        """Return what is wrong with an answer; None where nothing is."""
        try:
            given = float(answer.strip().removesuffix("%").replace(",", ""))
        except ValueError:
            return "The answer is a number."
        if math.isclose(given, self.value, rel_tol=_TOLERANCE):
            return None
        return (
            "That is too small."
            if given < self.value
            else "That is too large."
            if given > self.value
            else "That is no number."
        )


@dataclass(frozen=True, slots=True)
class Word:
    """One word, in either case."""

    word: str

    def fault(self, answer: str, demo: Path) -> str | None:
        """Return what is wrong with an answer; None where nothing is."""
        return None if answer.strip().casefold() == self.word.casefold() else "That is another."


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that answers what the solution does, and whose noise hides no more than that sensitivity.

    `says`: words of EXPLAIN, where one plan is asked for.
    """

    solution: str
    sensitivity: Fraction
    says: str = ""

    def fault(self, answer: str, demo: Path) -> str | None:
        """Return what is wrong with an answer; None where nothing is. Raises DpsqlError: it is refused."""
        from .worker import open_session  # the engine takes long to load

        if not (demo / MAIN_POLICY).is_file():
            raise click.UsageError(
                f"{demo} holds no demo. Make it (dpsql demo {demo}), or name it with --demo."
            )
        with open_session(demo / MAIN_POLICY, "local") as running:
            explained = running.run(running.session.explain, answer)
            told = explained.text()
        largest = max((Fraction(said) for said in _SENSITIVITY.findall(told)), default=None)
        if largest is None:
            return "It measures nothing of people."
        if self.says not in told:
            return f"dpsql plans it otherwise: EXPLAIN does not say {self.says!r}."
        if largest > self.sensitivity:
            return f"Its sensitivity is {largest}."
        return _difference(demo / DATABASE, self.solution, answer)


Check = Figure | Word | Statement


def _difference(database: Path, solution: str, answer: str) -> str | None:
    """Say how the exact answers of two statements differ, in any order of rows; None where they do not."""
    import duckdb

    try:
        with duckdb.connect(
            str(database), read_only=True, config={"enable_external_access": False}
        ) as connection:
            wanted, given = (_rows(connection.execute(sql).fetchall()) for sql in (solution, answer))
    except duckdb.Error:
        return "It could not be compared with the solution: ask it in SQL that DuckDB has too."
    if len(given) != len(wanted):
        return f"It gives {len(given)} rows, and {len(wanted)} were asked for."
    if given and len(given[0]) != len(wanted[0]):
        return f"It gives {len(given[0])} columns, and {len(wanted[0])} were asked for."
    return None if given == wanted else "Its numbers are others than were asked for."


def _rows(rows: Iterable[tuple[object, ...]]) -> list[list[str]]:
    """Return rows in one order, and each one's values, as an exercise leaves both orders open."""
    return sorted(sorted(_cell(value) for value in row) for row in rows)


def _cell(value: object) -> str:
    try:
        return f"{float(value):.6f}"  # type: ignore[arg-type]  # what is no number is taken as it is
    except (TypeError, ValueError):
        return str(value)


EXERCISES: Mapping[str, Check] = {
    "1.1": Figure(8),
    "1.2": Word("PV002"),
    "2.1": Figure(100 * math.e / (1 + math.e)),
    "2.2": Figure(math.exp(2)),
    "3.1": Figure(math.log(20) / 10),
    "3.2": Statement(
        "SELECT enrolled, COUNT(*) AS n, SUM(gpa) AS total FROM student GROUP BY enrolled", Fraction(2),
        "complementary sums",
    ),
    "3.3": Figure(1 + 4 + 16),
    "4.1": Figure(12 / 0.5),
    "4.2": Statement(
        "SELECT COUNT(*) FILTER (WHERE gpa >= 3) AS a, COUNT(*) FILTER (WHERE gpa >= 3.3) AS b, "
        "COUNT(*) FILTER (WHERE gpa >= 3.6) AS c FROM student",
        Fraction(1),
    ),
    "4.3": Figure(0.01 * math.sqrt(2000 * math.log(1e6)) + 10 * math.expm1(0.01)),
    "5.1": Figure(math.log(1001) + math.log(20)),
    "5.2": Statement(
        "SELECT course_id, COUNT(DISTINCT student_id) AS n FROM enrolment GROUP BY course_id ORDER BY n DESC LIMIT 3",
        Fraction(3),
        "chooses 3 of 120 groups",
    ),
    "6.1": Figure(math.exp(2) / (1 + math.exp(2))),
    "6.2": Figure(2400),
    "6.3": Figure(math.log(40) / (2 * 0.25 * 0.02**2)),
    "7.1": Figure(5),
    "7.2": Figure(math.sqrt(12) / 0.1),
    "7.3": Figure(1e-9 * (1 + math.exp(0.1) + math.exp(0.2))),
}  # fmt: skip
"""Each exercise's number, and what answers it."""
