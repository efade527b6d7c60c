"""`dpsql demo --month`: a library whose loans go on month by month, and a budget for each month's loans.

What has closed since the last walk arrives in the next one, today's calendar being the only clock: run again next
month, it has a month more. Months that are there are never written again.

House rule: only files that this demo itself names are ever removed, and only on `--fresh`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sin
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import click

from ..engine.barred import barred_cell
from ..errors import BudgetExhausted
from ..policy import Period
from ..policy.periods import first_day, instant_of, number_of, period_text
from .budget import period_lines
from .demo_folder import fill_folder
from .demo_tour import asking, goes_on, say, set_to
from .owner import open_ledger, write_private
from .terminal import decimal_text, plain_text, styled

if TYPE_CHECKING:
    from ..engine import Answer
    from ..plan.privacy.time import Clock
    from .worker import RunningSession

__all__ = ["POLICY", "walk_months"]

DATABASE = "library.duckdb"
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
    is_new = fill_folder(folder, "demo --month", [POLICY], (DATABASE, _LEDGER), _write, fresh=fresh)
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
            _ask(running, sql.format(months=_where(first, newest)), _SPENT_EACH)
            click.echo(f"  {sql.format(months='...')}")
        say("\nTheir loans, by month, at 0.1:")
        _tell_months(_ask(running, _by_month(first, newest), "0.1"))
    _tell_budget(folder)
    say(f"\nA fourth, at {_SPENT_EACH}:")
    _tell_refusal(folder, first, newest)


def _tell_arrived(folder: Path, before: Answer, arrived: Sequence[int]) -> None:
    """Tell the table of a month later: what is the same as before the months that arrived, and what is new."""
    last = arrived[-1]
    with asking(folder / POLICY) as running:
        sql = _ONE_MORE.format(months=_where(last, last))
        total = _ask(running, sql, _SPENT_EACH)
        _tell_months(_ask(running, _by_month(last - _ASKED + 1, last), "0.1"), before)
        click.echo(f"  its loans of more than 14 days, at {_SPENT_EACH}: {_with_bar(total.rows[0])}")
    say("\nIts budget is its own: what was spent of the months before stays spent.")
    _tell_budget(folder)


def _tell_refusal(folder: Path, first: int, last: int) -> None:
    with asking(folder / POLICY) as running:
        try:
            answer = _ask(running, _ONE_MORE.format(months=_where(first, last)), _SPENT_EACH)
        except BudgetExhausted as refused:
            for text in (f"refused: {refused.message}", refused.hint or ""):
                click.echo(fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  "))
        else:
            click.echo(f"  {_with_bar(answer.rows[0])}")


def _tell_months(answer: Answer, before: Answer | None = None) -> None:
    """Tell a table by month; `before`: what was told of some of them."""
    known = {} if before is None else {row[0]: row[1] for row in before.rows}
    for month, *number in answer.rows:
        remark = "  as before" if known.get(month) == number[0] else "  new" if known else ""
        click.echo(f"  {str(month)[:7]}  {styled(_with_bar(number), colour='cyan')}{remark}")
    if before is not None and answer.receipt is not None:
        click.echo(f"  charged for the new ones alone: epsilon {decimal_text(answer.receipt.epsilon)}")


def _tell_budget(folder: Path) -> None:
    say("\nWhat is left (dpsql budget show):")
    with asking(folder / POLICY) as running:
        policy = running.session.policy
        store, status = running.session.dataset.store, running.session.budget()
        for line in period_lines(store, status, policy.defaults.epsilon):  # type: ignore[arg-type]
            click.echo(f"  {line}")


def _with_bar(row: Sequence[object]) -> str:
    """Return the number of a row, which is its last, with its bar."""
    value, low, high = row[-3:]
    return " ".join(barred_cell(value, low, high, plain_text(value))).strip()


# --- asking -------------------------------------------------------------------------------------------------


def _ask(running: RunningSession, sql: str, epsilon: str) -> Answer:
    set_to(running, "epsilon", epsilon)
    return running.run(running.session.execute, sql)


def _asked_of(folder: Path, sql: str) -> Answer:
    with asking(folder / POLICY) as running:
        return _ask(running, sql, "0.1")


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
    _write_students(folder / DATABASE)
    for number in range(first, clock.end - 1):
        _let_arrive(folder, number)
    write_private(folder / POLICY, _policy(_day(first)))
    with open_ledger(folder / POLICY, create=True):
        pass


def _policy(since: str) -> str:
    branches = ", ".join(f'"{branch}"' for branch in _BRANCHES)
    return _TEXT.format(database=DATABASE, ledger=_LEDGER, since=since, branches=branches)


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
    with duckdb.connect(str(folder / DATABASE)) as connection:
        connection.execute(f"INSERT INTO loan {made}")


def _newest(folder: Path) -> int:
    """Return the newest month that has loans."""
    import duckdb

    with duckdb.connect(str(folder / DATABASE), read_only=True) as connection:
        (day,) = connection.execute("SELECT MAX(loaned_on) FROM loan").fetchone() or (None,)
    return number_of(Period.MONTH, day)


def _loans_in(folder: Path, number: int) -> int:
    import duckdb

    with duckdb.connect(str(folder / DATABASE), read_only=True) as connection:
        asked = f"SELECT COUNT(*) FROM loan WHERE {_where(number, number)}"
        (count,) = connection.execute(asked).fetchone() or (0,)
    return int(count)
