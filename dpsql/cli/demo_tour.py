"""The walk of `dpsql demo`: an attack on exact answers, the same through dpsql, and pictures that hold the truth.

The truths come from the demo's own database, whose people are invented: a real owner shows them to nobody.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..engine.barred import barred_cell
from ..engine.picture import pictures
from ..records import dataclass
from .chart import chart_lines, truth_marks
from .demo_folder import DATABASE, MAIN_POLICY, TEXTBOOK_POLICY
from .terminal import decimal_text, is_read_by_people, plain_text, styled
from .worker import RunningSession, open_session

if TYPE_CHECKING:
    from ..engine import Answer

__all__ = ["QUESTIONS", "Question", "asking", "goes_on", "say", "set_to", "walk"]

_EVERYBODY = "SELECT COUNT(*) FROM student WHERE gpa = 3.36"
_OTHERS = f"{_EVERYBODY} AND id <> 7"
_MEDIAN = "SELECT MEDIAN(gpa) FROM student WHERE major = 'CS'"
_REVIEWS = "SELECT AVG(stars) FROM review JOIN student s ON s.id = reviewed"
_DIRECT = "SELECT dp_avg_direct(gpa) FROM student"
_HEIGHT = 6


@dataclass(frozen=True, slots=True)
class Question:
    """A question whose answer is drawn, the epsilon that it is asked with, and what to notice."""

    epsilon: str
    remark: str
    sql: str


QUESTIONS: tuple[Question, ...] = (
    Question(
        "0.1",
        "A student is in one bar alone: all of them cost as much as one.",
        "SELECT major, COUNT(*) AS n FROM student WHERE gpa >= 3.6 GROUP BY major",
    ),
    Question(
        "0.3",
        "Averages that are close to each other take a little more.",
        "SELECT major, AVG(gpa) FROM student WHERE enrolled > 2022 GROUP BY major",
    ),
    Question(
        "0.1",
        "Counts of few people have as much noise as counts of many: ± 30.",
        "SELECT floor(gpa*10)/10, COUNT(*) FROM student WHERE major = 'EE' GROUP BY 1",
    ),
    Question(
        "0.9",
        "A student has up to 60 loans: it takes more noise to hide one.",
        "SELECT date_trunc('month', loaned_on), COUNT(*)\nFROM loan WHERE days_out > 41 GROUP BY 1",
    ),
)


@dataclass(slots=True)
class _Tally:
    """What the walk was charged, and how many bars of how many held the truth."""

    charged: Fraction = Fraction(0)
    bars: int = 0
    held: int = 0


def walk(folder: Path) -> bool:
    """Walk through the demo in a folder; return whether to its end: at a terminal each step waits for Enter.

    Raises DpsqlError.
    """
    truths = _truths(folder / DATABASE)
    tally = _Tally()
    policy = folder / MAIN_POLICY
    with asking(policy) as running:
        _attack(running, truths, tally)
    for place, question in enumerate(QUESTIONS):
        if not goes_on("four answers as pictures" if place == 0 else "the next one"):
            return False
        if place == 0:
            truth, both = truth_marks()
            say(
                f"\nFour questions, and their error bars. {truth} is the truth, which the owner alone has,\n"
                f"{both} where the answer is at it."
            )
        with asking(policy) as running:
            _draw(running, question, truths[question.sql], tally)
    if not goes_on("a median, what all this cost, and the textbook's average"):
        return False
    say(f"\n{tally.held} of {tally.bars} bars hold the truth; in the long run 95 of 100 do.")
    with asking(policy) as running:
        _rest(running, tally)
    _textbook(folder / TEXTBOOK_POLICY)
    return True


@contextmanager
def asking(policy: Path) -> Iterator[RunningSession]:
    """Open a session that gives bars; none is open while the reader reads, so that Ctrl-C leaves."""
    with open_session(policy, "local") as running:
        set_to(running, "intervals", "0.95")
        yield running


def goes_on(what: str) -> bool:
    """Wait for Enter where somebody sits at a terminal; return whether the walk goes on."""
    if not _sits_there():
        return True
    try:
        answer = input(f"\n[Enter: {what}; q: leave] ")
    except EOFError:
        return False
    return answer.strip().casefold() not in ("q", "quit", "exit")


def _sits_there() -> bool:
    return is_read_by_people() and sys.stdin.isatty()


def _attack(running: RunningSession, truths: Mapping[str, Mapping[str, float]], tally: _Tally) -> None:
    """Tell the attack, on exact counts and through dpsql, in six lines."""
    say("\nAn attack: two counts that differ by one person, exact and through dpsql.")
    set_to(running, "epsilon", "0.1")
    exact, noisy = [], []
    for sql in (_EVERYBODY, _OTHERS):
        answer = _ask(running, sql, tally)
        exact.append(truths[sql][""])
        noisy.append(_number(answer.rows[0][0]))
        _tell(sql, f"{exact[-1]:.0f}   {_with_bar(answer)}")
    click.echo(
        f"The exact ones differ by {exact[0] - exact[1]:.0f}: student 7, Theo Evans, is among them,\n"
        f"and so has a GPA of 3.36. Through dpsql they differ by {noisy[0] - noisy[1]:.0f}, which is noise:\n"
        "without Theo these are almost as likely."
    )


def _draw(running: RunningSession, question: Question, truth: Mapping[str, float], tally: _Tally) -> None:
    set_to(running, "epsilon", question.epsilon)
    answer = _ask(running, question.sql, tally)
    click.echo()
    for line in question.sql.split("\n"):
        click.echo(f"  {styled(line, bold=True)}")
    click.echo(styled(f"  epsilon {question.epsilon}. {question.remark}", dim=True))
    (picture,) = pictures(answer)
    truths = tuple(truth.get(_key(value), 0.0) for value in picture.keys[0].values)
    click.echo("\n".join(chart_lines(replace(picture, truths=truths), height=_HEIGHT)[1:]))
    ends = [(low, high) for *_, low, high in answer.rows]
    tally.bars += len(ends)
    tally.held += sum(
        _number(low) <= one <= _number(high) for one, (low, high) in zip(truths, ends, strict=True)
    )


def _rest(running: RunningSession, tally: _Tally) -> None:
    """Tell a median, an average of rows of two people, and what is left."""
    from ..engine.answer import RankNote, in_statements

    set_to(running, "epsilon", "0.1")
    answer = _ask(running, _MEDIAN, tally)
    click.echo()
    _tell(_MEDIAN, _with_bar(answer))
    assert answer.receipt is not None
    note = next((str(note) for note in answer.receipt.notes if isinstance(note, RankNote)), "")
    click.echo(styled(f"  epsilon 0.1. {note.partition(': ')[2].capitalize()}.", dim=True))
    _tell(_REVIEWS, _with_bar(_ask(running, _REVIEWS, tally)))
    click.echo(styled("  epsilon 0.1. A row of two: who wrote it is hidden, and whom it is about.", dim=True))
    status = running.session.budget()
    spent, cap = (Fraction(nano, 10**9) for nano in (status.epsilon_spent_nano, status.epsilon_cap_nano))
    cost = f"cost epsilon {decimal_text(tally.charged)}" if tally.charged else "was free, from the store"
    usual = running.session.policy.defaults.epsilon
    left = f"{decimal_text(cap - spent)} of {decimal_text(cap)} is left"
    say(f"\nAll this {cost}. {left}: {in_statements(status, usual)}.")
    click.echo("Asked again it is free, with the same numbers: an average of many would tell.")


def _textbook(policy: Path) -> None:
    """Tell the textbook's example: what EXPLAIN says of the noise, at two epsilons."""
    say("\nThe textbook noises the average itself: one GPA in [2, 4] moves it by 2.")
    with open_session(policy, "local") as running:
        for epsilon in ("0.01", "0.0001"):
            set_to(running, "epsilon", epsilon)
            lines = running.run(running.session.explain, _DIRECT).text().split("\n")
            (noise,) = (line.strip() for line in lines if line.strip().startswith("sensitivity"))
            click.echo(f"  at {epsilon}: {styled(noise.removesuffix(' at 95 %'), colour='cyan')}")
    click.echo("Sound, and useless. AVG is a noisy sum by a noisy count: better the more people.")


# --- asking -------------------------------------------------------------------------------------------------


def set_to(running: RunningSession, name: str, value: str) -> None:
    running.run(running.session.execute, f"SET dpsql.{name} = {value}")


def _ask(running: RunningSession, sql: str, tally: _Tally) -> Answer:
    answer = running.run(running.session.execute, sql)
    assert answer.receipt is not None
    tally.charged += answer.receipt.epsilon
    return answer


def _truths(database: Path) -> dict[str, dict[str, float]]:
    """Return the exact answers to what is asked, by question and key. Raises click.UsageError: it cannot be read."""
    import duckdb

    try:
        with duckdb.connect(str(database), read_only=True) as connection:
            return {
                sql: dict(_rows(connection, sql))
                for sql in (_EVERYBODY, _OTHERS, *(one.sql for one in QUESTIONS))
            }
    except duckdb.Error:
        raise click.UsageError(
            f"{database} cannot be read: another program may have it open for writing."
        ) from None


def _rows(connection: Any, sql: str) -> Iterator[tuple[str, float]]:
    for row in connection.execute(sql).fetchall():
        yield (_key(row[0]) if len(row) > 1 else "", float(row[-1]))


def _key(value: object) -> str:
    """Return a group's name, alike for a day, a moment at its midnight, and numbers of any type."""
    if isinstance(value, date):
        return value.isoformat()[:10]
    return str(value) if isinstance(value, str) else f"{_number(value):.6f}"


def _number(value: object) -> float:
    return float(value)  # type: ignore[arg-type]  # a number of an answer


# --- telling ------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    click.echo("\n".join(styled(line, bold=True) if line else "" for line in text.split("\n")))


def _tell(sql: str, answer: str) -> None:
    """Print a question and its answer on one line."""
    click.echo(f"  {sql:{len(_REVIEWS) + 1}}{styled(answer, colour='cyan')}")


def _with_bar(answer: Answer) -> str:
    value, *ends = answer.rows[0]
    low, high = ends or (None, None)
    plain = plain_text(value)
    return plain if low is None else " ".join(barred_cell(value, low, high, plain)).strip()
