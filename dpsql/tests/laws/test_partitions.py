"""Groups by several keys of one column are sums of each other: months of days, whatever they are computed by.

Through the doors: soundness.md 3.15. That the partitions are right is tests/plan/privacy/test_partitions.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpsql import Session
from dpsql.engine.batch import price_batch, read_batch, run_batch
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.mechanisms import SampledNoise
from dpsql.plan.privacy import axes
from dpsql.policy import parse_policy
from dpsql.release import table
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed

from .measured import engine_of
from .planting import plant

Patch = pytest.MonkeyPatch

POLICY = """
database = "duckdb:loans.duckdb"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 9999
accounting = "{accounting}"
delta = 1e-6
[defaults]
epsilon = 0.1
max_epsilon = 9
[tables.person]
unit = "id"
[tables.person.columns]
born = {{ bounds = [2024-01-01, 2024-12-31], complete = {complete} }}
gpa = {{ bounds = [0, 4], complete = true }}
works = {{}}
"""
DAYS = "SELECT born, COUNT(*) AS n FROM person GROUP BY born ORDER BY born"
MONTHS = "SELECT date_trunc('month', born) AS m, COUNT(*) AS n FROM person GROUP BY 1 ORDER BY 1"
QUARTERS = "SELECT date_trunc('quarter', born) AS q, COUNT(*) AS n FROM person GROUP BY 1 ORDER BY 1"
WEEKS = "SELECT date_trunc('week', born) AS w, COUNT(*) AS n FROM person GROUP BY 1 ORDER BY 1"
BINS = "SELECT floor(gpa / 0.25) * 0.25 AS low, COUNT(*) AS n FROM person GROUP BY 1 ORDER BY 1"
GOOD = "SELECT gpa >= 3 AS good, COUNT(*) AS n FROM person GROUP BY 1 ORDER BY 1"
BY_WORK = (
    "SELECT date_trunc('month', born) AS m, works, COUNT(*) AS n FROM person GROUP BY 1, 2 ORDER BY 1, 2"
)
TOTAL = "SELECT COUNT(*) AS n FROM person"


@contextmanager
def opened(folder: Path, accounting: str = "pure", *, complete: bool = True) -> Iterator[Session]:
    folder.mkdir(exist_ok=True)
    text = POLICY.format(accounting=accounting, complete=str(complete).lower())
    policy = parse_policy(text, folder / "dpsql.toml")
    with ExitStack() as stack:
        connection = stack.enter_context(empty_duckdb())
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, born DATE NOT NULL, gpa DOUBLE NOT NULL, works BOOLEAN NOT NULL);"
            "INSERT INTO person SELECT i, DATE '2024-01-01' + (i * i % 366)::INTEGER, (i % 401) / 100.0, i % 3 = 0 "
            "FROM range(1, 8001) AS t (i)"
        )
        _, backend = engine_of(stack, connection, policy, None)
        session = Session(
            Dataset(policy, backend, open_ledger(policy, create=True), warm_sealed()),
            "tester",
            _noise=SampledNoise(),
        )
        yield stack.enter_context(session)


def released(session: Session, *statements: str) -> list[dict[Any, int]]:
    read = read_batch(session, ";\n".join(statements))
    price = price_batch(session, read, None)
    return [
        {row[:-1]: row[-1] for row in answer.rows} for answer in run_batch(session, read, None, price.charge)
    ]


def check_months(days: dict[Any, int], months: dict[Any, int]) -> None:
    summed: dict[Any, int] = {}
    for (day,), count in days.items():
        summed[day.year, day.month] = summed.get((day.year, day.month), 0) + count
    assert {(month.year, month.month): count for (month,), count in months.items()} == summed


def asked(session: Session, sql: str, epsilon: str = "1") -> tuple[dict[Any, int], Any]:
    session.execute(f"SET dpsql.epsilon = {epsilon}")
    answer = session.execute(sql)
    assert answer.receipt is not None
    return {row[:-1]: row[-1] for row in answer.rows}, answer.receipt


def check_read_together(folder: Path, accounting: str) -> None:
    with opened(folder, accounting) as session:
        days, months, quarters, total = released(session, DAYS, MONTHS, QUARTERS, TOTAL)
        check_months(days, months)
        assert sum(months.values()) == sum(quarters.values()) == total[()]
        by_quarter: dict[Any, int] = {}
        for (month,), count in months.items():
            by_quarter[(month.month - 1) // 3] = by_quarter.get((month.month - 1) // 3, 0) + count
        assert list(by_quarter.values()) == list(quarters.values())


@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
def test_days_months_and_quarters_add_up(tmp_path: Path, accounting: str) -> None:
    check_read_together(tmp_path, accounting)


def test_weeks_and_months_cross(tmp_path: Path) -> None:
    """Neither makes the other up; both are all rows."""
    with opened(tmp_path) as session:
        weeks, months, working = released(session, WEEKS, MONTHS, BY_WORK)
        assert sum(weeks.values()) == sum(months.values()) == sum(working.values())
        summed: dict[Any, int] = {}
        for (month, _), count in working.items():
            summed[(month,)] = summed.get((month,), 0) + count
        assert summed == months


def test_bins_of_doubles_add_up(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        bins, good = released(session, BINS, GOOD)
        low = [count for (one,), count in bins.items() if one is not None and one < 3]
        assert sum(low) == good[(False,)]  # NaN is above all numbers, and in no bin
        assert sum(bins.values()) == sum(good.values())


def check_free(folder: Path) -> None:
    """A month is read from the days that are stored, at no charge; both add up."""
    with opened(folder) as session:
        days, _ = asked(session, DAYS)
        for sql in (MONTHS, QUARTERS):
            found, receipt = asked(session, sql, "0.1")
            assert receipt.epsilon == 0
            if sql is MONTHS:
                check_months(days, found)
                months = found
        assert sum(months.values()) == sum(days.values()) == sum(found.values())
        _, receipt = asked(session, MONTHS, "2")  # a month of 31 days is not so exact
        assert receipt.epsilon > 0


def test_a_month_is_answered_from_stored_days(tmp_path: Path) -> None:
    check_free(tmp_path)


def test_quarters_are_answered_from_stored_months_of_some(tmp_path: Path) -> None:
    """Of a grouping with another key, which is added up."""
    with opened(tmp_path) as session:
        working, _ = asked(session, BY_WORK)
        quarters, receipt = asked(session, QUARTERS, "0.1")
        assert receipt.epsilon == 0
        assert sum(quarters.values()) == sum(working.values())


def test_beyond_the_bounds_the_first_and_last_month_are_not_of_days(tmp_path: Path) -> None:
    """A day before the bounds is no group; its month is the first one. Unless the owner says that there is none."""
    with opened(tmp_path, complete=False) as session:
        asked(session, DAYS)
        _, receipt = asked(session, MONTHS, "0.1")
        assert receipt.epsilon > 0
    with opened(tmp_path / "within", complete=False) as session:
        inner = MONTHS.replace("GROUP BY", "WHERE born BETWEEN '2024-03-01' AND '2024-05-31' GROUP BY")
        days, _ = asked(
            session, DAYS.replace("GROUP BY", "WHERE born BETWEEN '2024-03-01' AND '2024-05-31' GROUP BY")
        )
        months, receipt = asked(session, inner, "0.1")
        assert receipt.epsilon == 0
        check_months(days, months)


# --- mutants ----------------------------------------------------------------------------------------------------


def test_a_partition_of_the_wrong_months(tmp_path: Path, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        table.ties_of,
        (
            "found |= {one: (axis, part)",
            "found |= {one: (axis, Partition(part.groups[1:] + part.groups[:1]) if part.size == 12 else part)",
        ),
    )
    with pytest.raises(AssertionError):
        check_free(tmp_path)


def test_keys_that_do_not_tie(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(table, "refined", lambda *args: None)
    with pytest.raises(AssertionError):
        check_read_together(tmp_path, "pure")
    monkeypatch.undo()
    monkeypatch.setattr(axes, "_UNITS", ())
    monkeypatch.setattr(table, "usual_keys", lambda column: ())
    with pytest.raises(AssertionError):
        check_free(tmp_path / "again")
