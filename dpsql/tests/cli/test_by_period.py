"""Owners' commands about a ledger that is kept by periods of the data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.budget import Claim, MeasurementClaim
from dpsql.budget.claim import Charge
from dpsql.cli.application import program
from dpsql.engine.dataset import open_ledger
from dpsql.mechanisms import Laplace
from dpsql.policy import Slices, load_policy, load_time
from dpsql.policy.model import Period
from dpsql.policy.periods import number_of, period_text

Run = Callable[..., Result]

POLICY = """\
dataset = "shop-2026"
database = "duckdb:shop.duckdb"
ledger = "sqlite:ledger.db"

[privacy]
neighbours = "add-remove"
epsilon = 10
delta   = 1e-6

{time}
[defaults]
epsilon = 0.1
max_epsilon = 2
delta = 1e-8

[tables.users]
unit = "id"
max_rows = 1

[tables.orders]
unit = {{ column = "user_id", references = "users.id" }}
max_rows = 3
max_groups = 3
{ordered}
"""
TIME = '[privacy.time]\nperiod = "month"\nsince = 2026-01-01\n'


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(load_time, "_IS_READY", True, raising=False)
    monkeypatch.chdir(tmp_path)
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        database.execute("CREATE TABLE users (id INTEGER PRIMARY KEY)")
        database.execute(
            "CREATE TABLE orders (id INTEGER, user_id INTEGER NOT NULL REFERENCES users (id), ordered_at TIMESTAMP NOT NULL)"
        )
        database.execute("INSERT INTO users FROM range(9)")
        database.execute("INSERT INTO orders SELECT i, i % 9, TIMESTAMP '2026-01-05' FROM range(30) t (i)")
    path = tmp_path / "dpsql.toml"
    as_a_whole(path)
    return path


def as_a_whole(policy: Path) -> None:
    policy.write_text(POLICY.format(time="", ordered=""), "utf-8")


def by_month(policy: Path) -> None:
    policy.write_text(POLICY.format(time=TIME, ordered='time = "ordered_at"'), "utf-8")


@pytest.fixture
def run(shop: Path) -> Run:
    return lambda *words: CliRunner().invoke(program, ["-P", str(shop), *words])


def charge(shop: Path, first: str, last: str, epsilon: int, name: str = "local") -> None:
    """Charge the months from one to another, so many millionths of epsilon each."""
    months = Slices(((month(first), month(last)),))
    wanted = MeasurementClaim((), Laplace(1), Charge.pure(epsilon * 1000), "test", slices=months)
    with closing(open_ledger(load_policy(shop), create=False)) as store:
        store.reserve(Claim(name, "SELECT 1", (wanted,)))


def month(text: str) -> int:
    return number_of(Period.MONTH, datetime.fromisoformat(f"{text}-01").date())


def running() -> str:
    return period_text(Period.MONTH, number_of(Period.MONTH, datetime.now(UTC).date()))


def test_a_ledger_is_divided_by_name_and_once(shop: Path, run: Run) -> None:
    run("budget", "create")
    asked = run("query", "SELECT COUNT(*) FROM orders")
    assert asked.exit_code == 0, asked.stderr
    refused = run("budget", "account", "month")
    assert (refused.exit_code, refused.stdout) == (5, "")
    assert 'privacy.time: has to say period = "month" first' in refused.stderr
    by_month(shop)
    stopped = run("budget", "show")
    assert stopped.exit_code == 7
    assert "dpsql budget account month" in stopped.stderr
    assert "becomes weaker" in stopped.stderr
    unsure = run("budget", "account", "month")
    assert unsure.exit_code == 2
    assert "--yes" in unsure.stderr
    assert unsure.stdout.splitlines() == [
        "So far: 0.1 of 10 spent, 9.9 left; about 99 more statements at 0.1.",
        "From now on the promise is about what a person has in one month: who is in k of them may lose k times as "
        "much. What was charged so far counts twice (rho: four times) for each of them up to the running one, and for "
        "rows without a time. There is no way back.",
    ]
    done = run("budget", "account", "month", "--yes")
    assert done.stdout.splitlines()[-1] == (
        f"The ledger is kept by month from now on. What was charged counts for before 2026-01-01 to {running()} and "
        "undated rows."
    )
    assert run("budget", "account", "month", "--yes").stdout == "The ledger is kept by month already.\n"
    with closing(open_ledger(load_policy(shop), create=False)) as store:
        assert [sums[0] for _, _, sums in store.slices()] == [2 * 10**8] * 2
    as_a_whole(shop)
    back = run("budget", "show")
    assert back.exit_code == 7
    assert "kept by periods" in back.stderr


def test_rows_of_a_time_to_come_are_charged_or_nothing_is(shop: Path, run: Run) -> None:
    run("budget", "create")
    run("query", "SELECT COUNT(*) FROM orders")
    with duckdb.connect(str(shop.parent / "shop.duckdb")) as database:
        database.execute("INSERT INTO orders VALUES (99, 1, TIMESTAMP '2991-05-05')")
    by_month(shop)
    refused = run("budget", "account", "month", "--yes")
    assert refused.exit_code == 7
    assert '"orders" has rows whose "ordered_at" is of a month that is still to come' in refused.stderr
    assert "--all" in refused.stderr
    assert "2991" not in refused.stderr
    done = run("budget", "account", "month", "--yes", "--all")
    assert done.stdout.splitlines()[-1].endswith("counts for before 2026-01-01 on and undated rows.")
