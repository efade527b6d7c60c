"""`dpsql textbook`: its exercises shown, checked and solved, with what a right answer is; the whole as a notebook.

A statement is right that dpsql plans as the exercise asks, and whose exact answer over the demo's invented students is
the solution's. Nothing is charged: it is explained, and the exact answer is read from the demo's own file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ..records import dataclass
from .demo_folder import DATABASE, MAIN_POLICY
from .docs import parts_of, read_part, read_section, read_topic

_TOPIC = "textbook"
_WRONG = 2
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`(\w+\.toml)`:\n\n\Z")


@click.command()
@click.argument("number", required=False, metavar="[EXERCISE]")
@click.argument("answer", required=False, metavar="[ANSWER]")
@click.option("--solution", is_flag=True, help="Show how the exercise is solved.")
@click.option(
    "--demo",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    metavar="DIR",
    help="The folder of the demo, for answers that are statements.",
)
@click.option(
    "--notebook", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write the textbook as a notebook of Jupyter, its commands and its Python as cells to run.",
)  # fmt: skip
@click.pass_context
def textbook(
    ctx: click.Context,
    number: str | None,
    answer: str | None,
    solution: bool,
    demo: Path,
    notebook: Path | None,
) -> None:
    """Show an exercise of the textbook, or say whether ANSWER is right; without EXERCISE, what there is.

    \b
      dpsql textbook
      dpsql textbook 3.1
      dpsql textbook 3.1 0.3
      dpsql textbook 3.2 "SELECT ..."
      dpsql textbook 3.2 --solution

    An answer that is a statement is explained over the demo's policy, which charges nothing. The exit code is 0
    where an answer is right, and 2 where it is not. The text itself: dpsql docs textbook.
    """
    if notebook is not None:
        _write(notebook)
    elif number is None:
        for title in re.findall(r"^## (.*)$", read_part(_TOPIC, "exercises"), re.MULTILINE):
            click.echo(title)
    elif number not in EXERCISES:
        raise click.UsageError(f"there is no exercise {number}; dpsql textbook lists them.")
    elif solution:
        click.echo(read_section(_TOPIC, f"Solution {number}"), nl=False)
    elif answer is None:
        click.echo(read_section(_TOPIC, number), nl=False)
    else:
        fault = EXERCISES[number].fault(answer, demo)
        click.echo(f"Not right. {fault}" if fault else "Right.")
        if fault:
            ctx.exit(_WRONG)


def _write(path: Path) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(as_notebook())
    except FileExistsError:
        raise click.UsageError(f"{path} exists. Name another file.") from None
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from None
    click.echo(f"Wrote {path}. Run it in the folder in which the demo stands (dpsql demo demo).")


def as_notebook() -> str:
    """Return the textbook as a notebook: text, and each command, file and piece of Python as a cell."""
    pages = [read_topic(_TOPIC), *(read_part(_TOPIC, part) for part in parts_of(_TOPIC))]
    cells = [cell for page in pages for cell in _cells(page)]
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"
    known = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return (
        json.dumps({"cells": cells, "metadata": known, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
    )


def _cells(page: str) -> Iterator[dict[str, Any]]:
    """Return a page's cells: Markdown between blocks, and the blocks that are run."""
    done = 0
    last: dict[str, Any] = {}
    for block in _BLOCK.finditer(page):
        language, body = block[1], block[2]
        if language == "sql":
            continue
        if page[done : block.start()].strip():
            yield _text(page[done : block.start()])
        done = block.end()
        if language == "output":
            last["outputs"] = _shown(body)
        elif language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command = re.match(r"(?:.*\\\n)*.*\n", part)
                assert command is not None
                yield _code(f"!{command[0].rstrip()}", part[command.end() :])
        else:
            name = _FILE.search(page[: block.start()])
            last = _code(f"%%writefile {name[1]}\n{body.rstrip()}" if name else body.rstrip(), "")
            yield last
    if page[done:].strip():
        yield _text(page[done:])


def _text(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip("\n")}


def _code(source: str, shown: str) -> dict[str, Any]:
    return {
        "cell_type": "code", "execution_count": None, "metadata": {}, "source": source, "outputs": _shown(shown),
    }  # fmt: skip


def _shown(text: str) -> list[dict[str, Any]]:
    return [{"name": "stdout", "output_type": "stream", "text": text}] if text else []


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
