"""A filter that is a range of a key's values is some of its groups: what is stored by the key answers it (3.8)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy
from dpsql.release import finer, table
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.laws.planting import plant

POLICY = """
database = "duckdb:visits.duckdb"
ledger = "sqlite:visits.db"
[privacy]
epsilon = 100
[tables.visit]
unit = "id"
[tables.visit.columns]
day = { bounds = [2025-01-01, 2025-03-31] }
age = { bounds = [0, 99] }
size = { values = [1, 2, 5, 6] }
level = { bounds = [1, 9]COMPLETE }
paid = { bounds = [0, 50] }
"""
ROWS = """
CREATE TABLE visit (id INTEGER PRIMARY KEY, day DATE, age INTEGER NOT NULL, size INTEGER NOT NULL, level INTEGER NOT NULL,
                    paid INTEGER NOT NULL);
INSERT INTO visit SELECT i, CASE WHEN i % 11 > 0 THEN DATE '2024-12-20' + CAST(i % 120 AS INTEGER) END,
                         i % 130 - 10, i % 7, 1 + i % 9, i % 51 FROM range(4000) AS t(i);
"""
STORED = (
    "SELECT day, COUNT(*) FROM visit GROUP BY day",
    "SELECT day, SUM(paid) FROM visit GROUP BY day",
    "SELECT age, COUNT(*) FROM visit GROUP BY age",
    "SELECT size, COUNT(*) FROM visit GROUP BY size",
    "SELECT level, COUNT(*) FROM visit GROUP BY level",
    "SELECT date_trunc('month', day), COUNT(*) FROM visit GROUP BY 1",
)
FREE = (
    "SELECT COUNT(*) FROM visit WHERE day BETWEEN '2025-01-10' AND '2025-02-20'",
    "SELECT COUNT(*) FROM visit WHERE day >= '2025-01-01' AND '2025-03-31' >= day",
    "SELECT SUM(paid) FROM visit WHERE day > '2025-01-31' AND day < '2025-03-01'",
    "SELECT day, COUNT(*) FROM visit WHERE day >= '2025-03-01' AND day < '2025-03-05' GROUP BY day",
    "SELECT date_trunc('month', day), COUNT(*) FROM visit WHERE day > '2025-01-31' AND day < '2025-03-01' GROUP BY 1",
    "SELECT COUNT(*) FROM visit WHERE age > 17 AND age < 66",
    "SELECT COUNT(*) FROM visit WHERE age BETWEEN 20 AND 60 AND age >= 30 AND age < 50",
    "SELECT COUNT(*) FROM visit WHERE level <= 4",
    "SELECT COUNT(*) FROM visit WHERE level > 4",
    "SELECT COUNT(*) FROM visit WHERE size BETWEEN 5 AND 6",
)
PAID = (
    "SELECT COUNT(*) FROM visit WHERE day < '2025-02-20'",
    "SELECT COUNT(*) FROM visit WHERE day >= '2024-12-25' AND day < '2025-02-20'",
    "SELECT COUNT(*) FROM visit WHERE age < 30",
    "SELECT COUNT(*) FROM visit WHERE age BETWEEN 90 AND 105",
    "SELECT COUNT(*) FROM visit WHERE size BETWEEN 2 AND 5",
    "SELECT COUNT(*) FROM visit WHERE size BETWEEN 1 AND 2 AND day BETWEEN '2025-01-10' AND '2025-02-20'",
)


SEVERAL = """
database = "duckdb:stays.duckdb"
ledger = "sqlite:stays.db"
[privacy]
epsilon = 100
[tables.person]
unit = "id"
[tables.stay]
unit = { column = "person", references = "person.id" }
max_rows = 4
[tables.stay.columns]
day = { bounds = [2025-01-01, 2025-03-31], complete = true }
"""


@contextmanager
def storing(folder: Path, statements: Sequence[str]) -> Iterator[Session]:
    """Give a session in which these answers are stored, without noise."""
    with duckdb.connect(str(folder / "visits.duckdb")) as connection:
        connection.execute(ROWS)
    (folder / "visits.toml").write_text(POLICY.replace("COMPLETE", ", complete = true"), "utf-8")
    open_ledger(load_policy(folder / "visits.toml"), create=True).close()
    with Session.open(folder / "visits.toml") as opened:
        opened._noise = ZeroNoise()
        opened.execute("SET dpsql.epsilon = 1.0")
        for sql in statements:
            opened.execute(sql)
        opened.execute("SET dpsql.epsilon = 0.05")
        yield opened


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Everything by each key is stored, and there is no noise on it."""
    with storing(tmp_path, STORED) as opened:
        yield opened


def exact(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        return sorted(connection.execute(sql).fetchall())


def check_free(session: Session, statements: Sequence[str] = FREE) -> None:
    for sql in statements:
        answer = session.execute(sql)
        assert answer.receipt is not None
        assert (answer.receipt.epsilon, sorted(answer.rows)) == (0, exact(sql)), sql


def test_a_range_of_a_stored_key_is_free_and_right(session: Session) -> None:
    check_free(session)


DAYS, MONTHS = STORED[0], STORED[-1]
MONTHS_WITHIN = (
    "SELECT date_trunc('month', day), COUNT(*) FROM visit WHERE day BETWEEN '2025-02-01' AND '2025-03-31' GROUP BY 1",
    "SELECT date_trunc('month', day), COUNT(*) FROM visit WHERE day >= '2025-01-10' AND day <= '2025-02-28' GROUP BY 1",
)


@pytest.mark.parametrize("stored", [(DAYS,), (DAYS, MONTHS)], ids=["days", "days and months"])
def test_months_within_a_range_are_free_where_nothing_else_is_stored(
    tmp_path: Path, stored: Sequence[str]
) -> None:
    with storing(tmp_path, stored) as session:
        check_free(session, MONTHS_WITHIN)


def test_plant_days_and_months_as_two_axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, finer._related, ("(drawn <= own and not question.shape.filters)", "drawn <= own"))
    with storing(tmp_path, (DAYS, MONTHS)) as session, pytest.raises(AssertionError):
        check_free(session, MONTHS_WITHIN)


def check_said(tmp_path: Path) -> None:
    """A person's ten rows count as four of the whole year, not as those of two months: an estimate, and told as one."""
    tmp_path = Path(tempfile.mkdtemp(dir=tmp_path))
    with duckdb.connect(str(tmp_path / "stays.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE person AS SELECT i AS id FROM range(200) AS t(i); ALTER TABLE person ADD PRIMARY KEY (id)"
        )
        connection.execute(
            "CREATE TABLE stay (person BIGINT NOT NULL REFERENCES person (id), day DATE NOT NULL)"
        )
        connection.execute(
            "INSERT INTO stay SELECT i % 200, DATE '2025-01-01' + CAST(i // 200 * 9 AS INTEGER) FROM range(2000) AS t(i)"
        )
    (tmp_path / "stays.toml").write_text(SEVERAL, "utf-8")
    open_ledger(load_policy(tmp_path / "stays.toml"), create=True).close()
    with Session.open(tmp_path / "stays.toml") as session:
        session.execute("SET dpsql.epsilon = 1")
        session.execute(DAYS.replace("visit", "stay"))
        session.execute("SET dpsql.epsilon = 0.05")
        for sql in (*MONTHS_WITHIN, *FREE[:2], FREE[3]):
            assert f"of one with 8 there {OF_MORE} 4" in free_notes(session, sql.replace("visit", "stay"))
        assert OF_MORE not in free_notes(session, "SELECT COUNT(*) FROM stay")


OF_MORE = "half of those here count, and asked alone up to"


def free_notes(session: Session, sql: str) -> str:
    receipt = session.execute(sql).receipt
    assert receipt is not None
    assert receipt.epsilon == 0
    return " ".join(map(str, receipt.notes))


def test_a_range_of_what_was_bounded_over_more_rows_says_so(tmp_path: Path) -> None:
    check_said(tmp_path)


@pytest.mark.parametrize("new", ["True", "False"])
def test_plant_what_is_said_of_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: str) -> None:
    own = "plan.bounding.per_row or question.predicate == plan.release.rows.predicate\n        most"
    plant(monkeypatch, finer.sources_of, (own, f"{new}\n        most"))
    with pytest.raises(AssertionError):
        check_said(tmp_path)


def test_of_a_person_with_one_row_nothing_is_bounded(session: Session) -> None:
    for sql in FREE:
        assert OF_MORE not in free_notes(session, sql)


def check_paid(session: Session) -> None:
    for sql in PAID:
        answer = session.execute(sql)
        assert answer.receipt is not None
        assert answer.receipt.epsilon > 0, sql
        assert sorted(answer.rows) == exact(sql)


def test_a_range_that_may_hold_other_values_is_drawn(session: Session) -> None:
    """Rows beyond the bounds, or between the listed values, are in it, and in no group."""
    check_paid(session)


FAULTS = {
    "an end that is not in it": (check_free, table.ranged_term, ('value - (function == "lt")', "value")),
    "ends are taken as they come": (check_free, table._listed, ("last = min(", "last = max(")),
    "rows beyond the bounds are forgotten": (
        check_paid,
        table._listed,
        ("or not (is_whole or", "or not (True or"),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_mutant_is_seen(session: Session, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, function, *pieces = FAULTS[name]
    plant(monkeypatch, function, *pieces)
    with pytest.raises(AssertionError):
        check(session)
