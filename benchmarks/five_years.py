"""Five years of a shop's dashboard and questions through a connection, with a clock that goes on: what is refused, pure
and zCDP; and twelve months of people who buy much or little: the error of their total, with one bound and one a month.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.figure import Figure, Size
from dpsql.dbapi import Connection
from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.errors import BudgetExhausted
from dpsql.plan.privacy.time import Clock
from dpsql.policy import Period, load_policy
from dpsql.policy.periods import first_day, instant_of, number_of

__all__ = ["measure"]

_FIRST = number_of(Period.MONTH, datetime(2015, 1, 1).date())
_MONTHS, _TILES, _QUESTIONS = 60, 8, 20
_BEFORE = 12
"""Months that are there when the dashboard begins."""
_POLICY = """
database = "duckdb:shop.duckdb"
[privacy]
epsilon = 10
delta = 1e-6
accounting = "{accounting}"
[privacy.time]
period = "month"
since = 2015-01-01
[defaults]
epsilon = 0.1
[tables.users]
unit = "id"
[tables.orders]
unit = {{ column = "user_id", references = "users.id" }}
time = "ordered_at"
max_rows = 10
max_rows_ever = 120
[tables.orders.columns]
ordered_at = {{}}
amount = {{ bounds = [0, 1000] }}
kind = {{ values = [0, 1, 2, 3, 4, 5, 6, 7] }}
"""


def measure(size: Size) -> Iterator[Figure]:
    """Yield how many statements are refused, and the errors of a year's total beside those of one bound for all."""
    months = _MONTHS if size.rows > 1_000_000 else 4
    for accounting, most in (("pure", 3.0), ("zcdp", 0.0)):
        outcome = _live(size.folder / accounting, accounting, months)
        asked = months * (_TILES + _QUESTIONS)
        first = "never" if outcome.first is None else f"first in month {outcome.first}"
        name = f"{accounting}: refused of {asked:,} statements in {months} months"
        told = f"{outcome.refused} of {asked:,}, {outcome.tiles} of {months * _TILES} tiles; {first}"
        yield Figure(name, 100 * outcome.refused / asked, most, "%", told)
    for sigma in (1.0, 1.5):
        yield _errors(sigma)


# --- refused ------------------------------------------------------------------------------------------------


@dataclass
class _Outcome:
    first: int | None = None
    tiles: int = 0
    refused: int = 0


def _live(folder: Path, accounting: str, months: int) -> _Outcome:
    """Ask as a dashboard and its people do, month by month, and count what is refused."""
    path, outcome, chance = _make(folder, accounting, months), _Outcome(), random.Random(60)
    number = 0
    with Session.open(path) as session:
        connection, time = Connection(session), session.policy.privacy.time
        assert time is not None, "it has a budget by months"
        for month in range(months):
            newest = _FIRST + _BEFORE + month
            now = instant_of(Period.MONTH, newest + 1, "UTC") + time.settle + timedelta(days=1)
            session.dataset.clock = lambda *, is_open=False, now=now: Clock.at(time, now)  # type: ignore[method-assign]
            asked = [(_tile(tile, newest), True) for tile in range(_TILES)]
            for _ in range(_QUESTIONS):
                number += 1
                length = chance.choices([1, 3, 12, 0], [50, 30, 15, 5])[0]
                asked.append((_question(number, newest, length), False))
            for sql, is_tile in asked:
                try:
                    with closing(connection.cursor()) as cursor:
                        cursor.execute(sql)
                        cursor.fetchall()
                except BudgetExhausted:
                    _count(outcome, month, is_tile=is_tile)
                except Exception as error:  # the driver's own class, which has the code
                    if getattr(error, "sqlstate", "") != "53V01":
                        raise
                    _count(outcome, month, is_tile=is_tile)
    return outcome


def _count(outcome: _Outcome, month: int, *, is_tile: bool) -> None:
    outcome.first = month + 1 if outcome.first is None else outcome.first
    outcome.tiles += is_tile
    outcome.refused += 1


def _tile(tile: int, newest: int) -> str:
    """Return a tile: orders of one kind by month, over the last twelve."""
    return (
        f"SELECT date_trunc('month', ordered_at) AS m, COUNT(*) AS n FROM orders WHERE kind = {tile} "
        f"AND {_within(newest - 11, newest)} GROUP BY m"
    )


def _question(number: int, newest: int, length: int) -> str:
    """Return a question that was never asked before, of the last months; of all time where `length` is 0."""
    low, high = number % 40, 41 + number // 40
    asked = f"SELECT COUNT(*) FROM orders WHERE amount > {low} AND amount < {high}"
    return f"{asked} AND {_within(newest - length + 1, newest)}" if length else asked


def _within(first: int, last: int) -> str:
    low, high = (first_day(Period.MONTH, each) for each in (first, last + 1))
    return f"ordered_at >= '{low}' AND ordered_at < '{high}'"


def _make(folder: Path, accounting: str, months: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        file.unlink() if file.is_file() else [each.unlink() for each in file.iterdir()]
    with duckdb.connect(str(folder / "shop.duckdb")) as database:
        database.execute("CREATE TABLE users (id INTEGER PRIMARY KEY)")
        database.execute(
            "CREATE TABLE orders (user_id INTEGER, ordered_at TIMESTAMP, amount INTEGER, kind INTEGER)"
        )
        database.execute("INSERT INTO users FROM range(500)")
        database.execute(
            "INSERT INTO orders SELECT hash(i) % 500, TIMESTAMP '2015-01-01' + to_hours(CAST(i % $1 AS INTEGER)), "
            "hash(i, 1) % 1000, hash(i, 2) % 8 FROM range($2) t (i)",
            [(_BEFORE + months) * 730, (_BEFORE + months) * 1_000],
        )
    path = folder / "shop.toml"
    path.write_text(_POLICY.format(accounting=accounting), "utf-8")
    open_ledger(load_policy(path), create=True).close()
    return path


# --- errors -------------------------------------------------------------------------------------------------


_PEOPLE, _EPSILON = 100_000, 0.1


def _errors(sigma: float) -> Figure:
    """Return the root mean square error of a year's total with the best bound of a month, beside that of all rows."""
    rng = np.random.default_rng(35)
    rate = rng.lognormal(np.log(3.0), sigma, _PEOPLE)
    counts = rng.poisson(rate[:, None], (_PEOPLE, 12))

    def least(rows: np.ndarray) -> tuple[float, int]:
        """Return the least error, and the bound that has it: what is left out, and Laplace noise."""
        found = []
        for bound in np.unique(np.geomspace(1, 20_000, 400).astype(int)):
            left_out = float(np.maximum(rows - bound, 0).sum())
            found.append((float(np.hypot(left_out, np.sqrt(2) * bound / _EPSILON)), int(bound)))
        return min(found)

    (today, of_person), (by_month, of_month) = least(counts.sum(axis=1)), least(counts)
    return Figure(
        f"12 months of log-normal people, sigma {sigma}: error beside that of one bound", by_month / today, 1 / 3, "×",
        f"{by_month:,.0f} at {of_month} rows a month, {today:,.0f} at {of_person} in all",
    )  # fmt: skip


if __name__ == "__main__":
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        for figure in measure((Size.quick if "--quick" in sys.argv else Size.full)(Path(made))):
            print(figure, datetime.now(UTC).isoformat(timespec="seconds"), flush=True)
