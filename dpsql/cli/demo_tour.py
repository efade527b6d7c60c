"""The walks of `dpsql demo`: an attack on exact answers and the same through dpsql; and a library, month by month.

The truths come from the demo's own database, whose people are invented: a real owner shows them to nobody.

Of the library, what has closed since the last walk arrives in the next one, today's calendar being the only clock: run
again next month, it has a month more. Months that are there are never written again.

House rule: only files that the demo itself names are ever removed, and only on `--fresh`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from fractions import Fraction
from math import pi, sin
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from ..engine.answer import barred_cell, pictures
from ..errors import BudgetExhausted
from ..policy import Period
from ..policy.periods import first_day, instant_of, number_of, period_text
from ..records import dataclass
from ..words import plain_text
from .budget import period_lines
from .chart import chart_lines, truth_marks
from .demo import DATABASE, MAIN_POLICY, TEXTBOOK_POLICY, fill_folder
from .owner import open_ledger, write_private
from .terminal import decimal_text, is_read_by_people, styled
from .worker import RunningSession, open_session

if TYPE_CHECKING:
    from ..engine import Answer
    from ..plan.privacy.time import Clock

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


LIBRARY = "library.duckdb"
POLICY = "library.toml"
_LEDGER = "library-ledger.db"

_STUDENTS = 4_000
_LOANS = 9_000
_BEFORE = 6
"""Months that are there at first, but the last of which is still to arrive."""
_ASKED = 3
_WIDTH = 78
_BRANCHES = ("Central", "Harbour", "Law", "Medicine", "Science")

_SCHEMA = """
CREATE TABLE student (id INTEGER PRIMARY KEY, major TEXT NOT NULL);
CREATE TABLE loan (
  student_id INTEGER NOT NULL REFERENCES student (id),
  branch TEXT NOT NULL,
  loaned_on DATE NOT NULL,
  days_out INTEGER NOT NULL
);
"""

_TEXT = """\
# Written by `dpsql demo --month`. The people in this database are invented.

database = "duckdb:{database}"
ledger   = "sqlite:{ledger}"

[privacy]
epsilon = 2        # for everybody together: the most that can be learned about one student's loans of one month
delta   = 1e-6

[privacy.time]
period = "month"   # each month's loans have that budget, and keep what is left of it for ever
since  = {since}
settle = "3 days"  # a month is asked about when it is over, and so long after, for loans that are entered late

[defaults]
epsilon = 0.1

[tables.student]
unit = "id"
[tables.student.columns]
major = {{}}

[tables.loan]
unit     = {{ column = "student_id", references = "student.id" }}
time     = "loaned_on"
max_rows = 6       # of a student in one month
[tables.loan.columns]
branch    = {{ values = [{branches}], complete = true }}
loaned_on = {{}}
days_out  = {{ bounds = [0, 60] }}
"""

_SPENDING = (
    "SELECT branch, COUNT(*) FROM loan WHERE {months} GROUP BY branch",
    "SELECT AVG(days_out) FROM loan WHERE {months}",
    "SELECT COUNT(*) FROM loan WHERE days_out > 28 AND {months}",
)
_ONE_MORE = "SELECT COUNT(*) FROM loan WHERE days_out > 14 AND {months}"
_SPENT_EACH = "0.6"


def walk_months(folder: Path, *, fresh: bool) -> None:
    """Make the library in a folder, or let what has closed since arrive in the one that is there, and tell it.

    Raises DpsqlError, click.UsageError.
    """
    is_new = fill_folder(folder, "demo --month", [POLICY], (LIBRARY, _LEDGER), _write, fresh=fresh)
    clock = _clock(folder)
    newest = _newest(folder)
    if is_new:
        say(
            f"A library in {folder}: {_STUDENTS:,} students, all invented, and their loans, month by month.\n"
            "What can be learned about one student's loans of one month is at most epsilon 2,\n"
            "in all answers together and for ever. The next month's loans bring their own."
        )
        _spend(folder, newest)
        if not goes_on("a month goes by"):
            return
    arrived = [number for number in clock.read if number > newest]
    if not arrived:
        opens = instant_of(Period.MONTH, clock.end + 1, clock.time.zone) + clock.time.settle
        say(
            f"The newest month is {_name(newest)}, and no other has closed since.\n"
            f"{_name(clock.end)} can be asked about from {opens:%Y-%m-%d} on: come back then.\n"
            f"To begin anew: dpsql demo --month --fresh {folder}"
        )
        _tell_budget(folder)
        return
    before = _asked_of(folder, _by_month(newest - _ASKED + 1, newest))
    for number in arrived:
        _let_arrive(folder, number)
        say(f"\n{_name(number)} is over: its {_loans_in(folder, number):,} loans are there.")
    _tell_arrived(folder, before, arrived)
    click.echo(
        f"\nNow you:\n  dpsql -P {folder / POLICY} query         a prompt\n"
        f"  dpsql -P {folder / POLICY} budget show   what is left of each month\n"
        "  dpsql demo --month, next month: it will have arrived"
    )


# --- telling ------------------------------------------------------------------------------------------------


def _spend(folder: Path, newest: int) -> None:
    """Spend most of the last months: a table of them, some questions, and one that has no room."""
    first = newest - _ASKED + 1
    asked = f"{_name(first)} to {_name(newest)}"
    with asking(folder / POLICY) as running:
        say(f"\nThree questions about {asked}, each charged to each of these:")
        for sql in _SPENDING:
            _ask_at(running, sql.format(months=_where(first, newest)), _SPENT_EACH)
            click.echo(f"  {sql.format(months='...')}")
        say("\nTheir loans, by month, at 0.1:")
        _tell_months(_ask_at(running, _by_month(first, newest), "0.1"))
    _tell_budget(folder)
    say(f"\nA fourth, at {_SPENT_EACH}:")
    _tell_refusal(folder, first, newest)


def _tell_arrived(folder: Path, before: Answer, arrived: Sequence[int]) -> None:
    """Tell the table of a month later: what is the same as before the months that arrived, and what is new."""
    last = arrived[-1]
    with asking(folder / POLICY) as running:
        sql = _ONE_MORE.format(months=_where(last, last))
        total = _ask_at(running, sql, _SPENT_EACH)
        _tell_months(_ask_at(running, _by_month(last - _ASKED + 1, last), "0.1"), before)
        click.echo(f"  its loans of more than 14 days, at {_SPENT_EACH}: {_row_with_bar(total.rows[0])}")
    say("\nIts budget is its own: what was spent of the months before stays spent.")
    _tell_budget(folder)


def _tell_refusal(folder: Path, first: int, last: int) -> None:
    with asking(folder / POLICY) as running:
        try:
            answer = _ask_at(running, _ONE_MORE.format(months=_where(first, last)), _SPENT_EACH)
        except BudgetExhausted as refused:
            for text in (f"refused: {refused.message}", refused.hint or ""):
                click.echo(fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  "))
        else:
            click.echo(f"  {_row_with_bar(answer.rows[0])}")


def _tell_months(answer: Answer, before: Answer | None = None) -> None:
    """Tell a table by month; `before`: what was told of some of them."""
    known = {} if before is None else {row[0]: row[1] for row in before.rows}
    for month, *number in answer.rows:
        remark = "  as before" if known.get(month) == number[0] else "  new" if known else ""
        click.echo(f"  {str(month)[:7]}  {styled(_row_with_bar(number), colour='cyan')}{remark}")
    if before is not None and answer.receipt is not None:
        click.echo(f"  charged for the new ones alone: epsilon {decimal_text(answer.receipt.epsilon)}")


def _tell_budget(folder: Path) -> None:
    say("\nWhat is left (dpsql budget show):")
    with asking(folder / POLICY) as running:
        policy = running.session.policy
        store, status = running.session.dataset.store, running.session.budget()
        for line in period_lines(store, status, policy.defaults.epsilon):
            click.echo(f"  {line}")


def _row_with_bar(row: Sequence[object]) -> str:
    """Return the number of a row, which is its last, with its bar."""
    value, low, high = row[-3:]
    return " ".join(barred_cell(value, low, high, plain_text(value))).strip()


# --- asking -------------------------------------------------------------------------------------------------


def _ask_at(running: RunningSession, sql: str, epsilon: str) -> Answer:
    set_to(running, "epsilon", epsilon)
    return running.run(running.session.execute, sql)


def _asked_of(folder: Path, sql: str) -> Answer:
    with asking(folder / POLICY) as running:
        return _ask_at(running, sql, "0.1")


def _where(first: int, last: int) -> str:
    return f"loaned_on >= '{_day(first)}' AND loaned_on < '{_day(last + 1)}'"


def _by_month(first: int, last: int) -> str:
    return (
        "SELECT date_trunc('month', loaned_on) AS month, COUNT(*) AS loans "
        f"FROM loan WHERE {_where(first, last)} GROUP BY month"
    )


def _day(number: int) -> str:
    return first_day(Period.MONTH, number).isoformat()


def _name(number: int) -> str:
    return period_text(Period.MONTH, number)


# --- the library --------------------------------------------------------------------------------------------


def _write(folder: Path) -> None:
    from ..plan.privacy.time import Clock
    from ..policy import parse_policy

    clock = Clock.now(parse_policy(_policy("2000-01-01"), folder / POLICY).privacy.time)
    assert clock is not None, "it has a budget by months"
    first = clock.end - _BEFORE
    _write_students(folder / LIBRARY)
    for number in range(first, clock.end - 1):
        _let_arrive(folder, number)
    write_private(folder / POLICY, _policy(_day(first)))
    with open_ledger(folder / POLICY, create=True):
        pass


def _policy(since: str) -> str:
    branches = ", ".join(f'"{branch}"' for branch in _BRANCHES)
    return _TEXT.format(database=LIBRARY, ledger=_LEDGER, since=since, branches=branches)


def _clock(folder: Path) -> Clock:
    """Return which months are over. Raises PolicyError."""
    from ..plan.privacy.time import Clock
    from ..policy import load_policy

    clock = Clock.now(load_policy(folder / POLICY).privacy.time)
    if clock is None:
        raise click.UsageError(f"{folder / POLICY} has no budget by months. Make it anew: --fresh")
    return clock


def _write_students(database: Path) -> None:
    import duckdb

    with duckdb.connect(str(database)) as connection:
        connection.execute(_SCHEMA)
        connection.execute(f"INSERT INTO student SELECT i, 'S' || i % 7 FROM range(1, {_STUDENTS + 1}) t (i)")


def _let_arrive(folder: Path, number: int) -> None:
    """Write the loans of a month: invented, by hashes of their numbers. Some students borrow more than others."""
    import duckdb

    begin, end = (first_day(Period.MONTH, each) for each in (number, number + 1))
    count = int(_LOANS * (1.0 + 0.25 * sin(number * pi / 6)))
    branches = "[" + ", ".join(f"'{branch}'" for branch in _BRANCHES) + "]"

    def drawn(what: str) -> str:
        """Return a number in [0, 1)."""
        return f"(hash('{what}', {number}, i) % 1000003 / 1000003.0)"

    made = (
        f"SELECT 1 + floor({_STUDENTS} * pow({drawn('student')}, 1.2))::INTEGER, "
        f"{branches}[1 + floor({len(_BRANCHES)} * pow({drawn('branch')}, 1.5))::INTEGER], "
        f"DATE '{begin}' + floor({(end - begin).days} * {drawn('day')})::INTEGER, "
        f"least(60, 1 + floor(-14 * ln(1 - {drawn('days')})))::INTEGER "
        f"FROM range({count}) t (i)"
    )
    with duckdb.connect(str(folder / LIBRARY)) as connection:
        connection.execute(f"INSERT INTO loan {made}")


def _newest(folder: Path) -> int:
    """Return the newest month that has loans."""
    import duckdb

    with duckdb.connect(str(folder / LIBRARY), read_only=True) as connection:
        (day,) = connection.execute("SELECT MAX(loaned_on) FROM loan").fetchone() or (None,)
    return number_of(Period.MONTH, day)


def _loans_in(folder: Path, number: int) -> int:
    import duckdb

    with duckdb.connect(str(folder / LIBRARY), read_only=True) as connection:
        asked = f"SELECT COUNT(*) FROM loan WHERE {_where(number, number)}"
        (count,) = connection.execute(asked).fetchone() or (0,)
    return int(count)
