"""Owners' commands about a ledger that is kept by periods of the data."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.budget import Claim, MeasurementClaim
from dpsql.budget.claim import Charge
from dpsql.cli.application import program
from dpsql.engine.dataset import open_ledger
from dpsql.mechanisms import Laplace
from dpsql.policy import Slices, load_policy
from dpsql.policy.model import Period
from dpsql.policy.periods import last_closed, number_of, period_text
from dpsql.studio.report import _periods, period_chart

Run = Callable[..., Result]
THREE_DAYS = timedelta(days=3)

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
    wanted = MeasurementClaim((), Laplace(Fraction(1)), Charge.pure(epsilon * 1000), "test", slices=months)
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
        "much (rho: k times k). What was charged so far counts twice (rho: four times) for each of them up to the "
        "running one, and for rows without a time. There is no way back.",
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


def test_all_is_told_to_be_needless_where_no_row_is_of_a_time_to_come(shop: Path, run: Run) -> None:
    """What is divided with --all stays so."""
    run("budget", "create")
    by_month(shop)
    done = run("budget", "account", "month", "--yes", "--all")
    assert done.exit_code == 0
    assert (
        "No row is of a month that is still to come: unless some were that are gone now, --all is not"
        in done.stdout
    )


def test_all_is_divided_where_no_row_can_be_read(shop: Path, run: Run) -> None:
    run("budget", "create")
    by_month(shop)
    (shop.parent / "shop.duckdb").write_text("none")
    assert run("budget", "account", "month", "--yes").exit_code == 5
    done = run("budget", "account", "month", "--yes", "--all")
    assert done.exit_code == 0
    assert "needed" not in done.stdout


@pytest.mark.parametrize(
    ("zone", "now", "row", "waits"),
    [
        ("UTC", "2026-05-31 22:30", "2026-05-31 22:15", False),
        ("UTC", "2026-05-31 22:30", "2026-06-01 00:15", True),
        ("Pacific/Kiritimati", "2026-05-31 22:30", "2026-05-31 22:15", False),
        ("America/New_York", "2026-06-01 02:30", "2026-06-01 04:15", True),
    ],
)
def test_check_counts_rows_of_a_time_to_come_in_the_policys_zone(
    zone: str, now: str, row: str, waits: bool, shop: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.fromisoformat(now).replace(tzinfo=UTC).astimezone(tz)

    with duckdb.connect(str(shop.parent / "shop.duckdb")) as database:
        database.execute(f"INSERT INTO orders VALUES (99, 1, TIMESTAMP '{row}')")
    shop.write_text(POLICY.format(time=f'{TIME}zone = "{zone}"\n', ordered='time = "ordered_at"'), "utf-8")
    run("budget", "create")
    monkeypatch.setattr("dpsql.cli.check.datetime", Clock)
    shown = run("check", "--data").stdout
    assert ("are of a month that has not begun" in shown) is waits
    assert ('have a "ordered_at" of some period' in shown) is not waits


def test_show_says_what_each_period_has_left_and_what_a_person_may_have_lost(shop: Path, run: Run) -> None:
    by_month(shop)
    assert run("budget", "create").stdout.splitlines()[-1] == (
        "epsilon  0 of 10 spent, 10 left; about 100 more statements at 0.1"
    )
    charge(shop, "2026-01", "2026-06", 2_000_000)
    charge(shop, "2026-03", "2026-04", 500_000, "eve")
    charge(shop, "2025-12", "2025-12", 250_000)
    assert run("budget", "show").stdout.splitlines() == [
        "epsilon  2 of 10 spent, 8 left; about 80 more statements at 0.1, of 2026-05 to 2026-06",
        "delta    0 of 1e-6 spent, 1e-6 left",
        "analyst  eve: epsilon 0 spent, no cap of their own",
        "analyst  local: epsilon 2 spent, no cap of their own",
        "epoch    1",
        "before 2026-01-01   0.25 of 10 spent; about 97 more at 0.1",
        "2026-01 to 2026-02  2 of 10 spent; about 80 more at 0.1",
        "2026-03 to 2026-04  2.5 of 10 spent; about 75 more at 0.1",
        "2026-05 to 2026-06  2 of 10 spent; about 80 more at 0.1",
        "a person in every month so far: at most epsilon 13.25",
    ]
    said = json.loads(run("budget", "show", "--json").stdout)
    assert said["periods"][1] == {
        "of": "2026-01 to 2026-02", "from": "2026-01-01", "until": "2026-03-01", "least_spent": 2.0, "spent": 2.0,
        "cap": 10.0, "left": 8.0, "statements_left": 80,
    }  # fmt: skip
    assert (said["periods"][0]["from"], said["periods"][0]["until"]) == (None, "2026-01-01")
    assert (said["period"], said["person"], said["windows"]) == ("month", {"spent": 13.25, "cap": None}, [])


def test_log_says_of_which_periods_each_charge_is(shop: Path, run: Run) -> None:
    run("budget", "create")
    run("query", "SELECT COUNT(*) FROM users")
    by_month(shop)
    assert run("budget", "account", "month", "--yes").exit_code == 0
    charge(shop, "2026-03", "2026-05", 100_000)
    lines = run("budget", "log").stdout.splitlines()
    assert lines[0].endswith("  local  epsilon 0.1 of 2026-03 to 2026-05  failed")
    assert lines[3].endswith("  local  epsilon 0.1  committed")
    newest, oldest = (json.loads(line) for line in run("budget", "log", "--json").stdout.splitlines())
    assert (newest["of"], "of" in oldest) == ("2026-03 to 2026-05", False)


def test_show_says_the_caps_over_periods_and_puts_long_lists_together(shop: Path, run: Run) -> None:
    by_month(shop)
    text = shop.read_text("utf-8").replace(
        "since = 2026-01-01", 'since = 2020-01-01\nwindows = { "3 months" = 9 }\nperson = 200'
    )
    shop.write_text(text, "utf-8")
    run("budget", "create")
    for number in range(36):
        first = f"{2020 + number // 12}-{number % 12 + 1:02}"
        charge(shop, first, first, 1_000_000 + 10_000 * (number % 7))
    lines = run("budget", "show").stdout.splitlines()
    told = [line for line in lines if "more at 0.1" in line and line.startswith("20")]
    assert len(told) == 12
    assert any(" to 1.06 of 10 spent; about 89 more" in line for line in told)
    assert any(line.startswith("over 3 months: at most epsilon 3.15 of 9, in ") for line in lines)
    assert any(line.startswith("a person in every month so far: at most epsilon 37.") for line in lines)
    assert lines[-1].endswith(" of 200")


def test_under_zcdp_a_person_in_all_periods_is_told_in_epsilon_and_rho(shop: Path, run: Run) -> None:
    by_month(shop)
    shop.write_text(
        shop.read_text("utf-8").replace("epsilon = 10", 'accounting = "zcdp"\nepsilon = 10', 1), "utf-8"
    )
    run("budget", "create")
    charge(shop, "2026-01", "2026-01", 100_000)
    lines = run("budget", "show").stdout.splitlines()
    assert lines[-2] == "2026-01  rho 0.005 of 1.478 spent; about 294 more at 0.1"
    assert lines[-1] == "a person in every month so far: at most epsilon 0.45 (rho 0.005)"


def test_the_owners_page_draws_periods_as_bars(shop: Path, run: Run) -> None:
    by_month(shop)
    run("budget", "create")
    charge(shop, "2025-12", "2026-02", 2_000_000)
    charge(shop, "2026-02", "2026-03", 500_000, "eve")
    policy = load_policy(shop)
    with closing(open_ledger(policy, create=False)) as store:
        found = _periods(store, store.status())
    assert found is not None
    assert [(one.name, one.number, one.spent // 10**6) for one in found] == [
        ("before 2026-01-01 to 2026-01", 2, 2000), ("2026-02", 1, 2500), ("2026-03", 1, 500),
    ]  # fmt: skip
    chart = period_chart([(one.name, one.number, one.spent / 10**9) for one in found], 10, "epsilon", 340)
    assert chart.count("<rect") == 3
    assert "2026-02: 2.5 of 10" in chart


def test_a_file_is_released_once_for_each_period_that_closes(shop: Path, run: Run) -> None:
    file = shop.parent / "tiles.sql"
    file.write_text("SELECT COUNT(*) FROM orders;", "utf-8")
    words = ("release", str(file), "--every", "month")
    run("budget", "create")
    unsure = run(*words, "--yes")
    assert unsure.exit_code == 2
    assert "--every needs --output FOLDER and --yes" in unsure.stderr
    never = run(*words, "--yes", "--output", "reports")
    assert never.exit_code == 5
    assert "no month of the data ever closes" in never.stderr
    by_month(shop)
    for name in ("ledger.db", "ledger.db.log"):
        (shop.parent / name).unlink()
    run("budget", "create")
    done = (
        shop.parent
        / "reports"
        / period_text(Period.MONTH, last_closed(Period.MONTH, "UTC", THREE_DAYS, datetime.now(UTC)))
    )
    done.mkdir(parents=True)
    again = run(*words, "--yes", "--output", str(done.parent))
    assert again.exit_code == 0, again.stderr
    assert f"{done.name} is released already; the next month is not over yet." in again.stderr


DAYS = "SELECT date_trunc('day', ordered_at) AS day, COUNT(*) AS n FROM orders GROUP BY 1"
MONTHS = "SELECT date_trunc('month', ordered_at) AS month, COUNT(*) AS n FROM orders GROUP BY 1"


def test_two_grains_are_released_and_all_else_is_sums_of_them(shop: Path, run: Run) -> None:
    by_month(shop)
    shop.write_text(f"{shop.read_text('utf-8')}[tables.orders.columns]\nordered_at = {{}}\n", "utf-8")
    run("budget", "create")
    file = shop.parent / "tiles.sql"
    file.write_text(f"{DAYS};\n{MONTHS};\n", "utf-8")
    released = run("release", str(file), "--every", "month", "--yes", "--output", "reports")
    assert released.exit_code == 0, released.stderr
    (folder,) = (shop.parent / "reports").iterdir()
    days, months = (
        {line[:10]: int(line.rpartition(",")[2]) for line in path.read_text("utf-8").splitlines()[1:]}
        for path in sorted(folder.iterdir())
    )
    assert {day[:7] for day in days} == {month[:7] for month in months}
    for one, number in months.items():
        own = [n for day, n in days.items() if day[:7] == one[:7]]
        assert abs(sum(own) - number) <= len(own) / 2, "both grains agree, but for rounding"
    spent = run("budget", "show", "--json").stdout
    week = [f"2026-01-{day:02}" for day in range(5, 12)]
    for sql, number in (
        ("SELECT COUNT(*) FROM orders WHERE ordered_at < '2026-02-01'", months["2026-01-01"]),
        (
            f"SELECT SUM(n) FROM ({DAYS}) d WHERE day BETWEEN '{week[0]}' AND '{week[-1]}'",
            sum(map(days.get, week)),
        ),
        (f"SELECT SUM(n) FROM ({MONTHS}) m WHERE month < '2026-04-01'", sum([*months.values()][:3])),
    ):
        told = run("query", "--format", "csv", sql)
        assert told.stdout.splitlines()[1:] == [str(number)], sql
        assert "free: answered from stored releases" in told.stderr
    assert run("budget", "show", "--json").stdout == spent


def test_refresh_retires_what_is_not_closed_or_what_it_is_told(shop: Path, run: Run) -> None:
    by_month(shop)
    run("budget", "create")
    told = run("refresh").output
    assert "on and undated rows are no longer given again" in told
    assert "Closed months keep theirs" in told
    assert "earlier answers of 2026-03 on are" in run("refresh", "--from", "2026-03").output
    assert (
        "earlier answers of 2026-03 to 2026-04 are"
        in run("refresh", "--from", "2026-03", "--to", "2026-04").output
    )
    assert json.loads(run("refresh", "--json", "--from", "2026-03", "--to", "2026-03").output) == {
        "epoch": 5,
        "retired": "2026-03",
    }
    assert "earlier answers are no longer" in run("refresh", "--all").output
    for words in (
        ("--from", "March"),
        ("--from", "2026-04", "--to", "2026-03"),
        ("--to", "2026-03"),
        ("--all", "--from", "2026-03"),
    ):
        assert run("refresh", *words).exit_code == 2, words


def test_refresh_of_a_ledger_for_all_data_takes_no_period(shop: Path, run: Run) -> None:
    run("budget", "create")
    assert run("refresh", "--from", "2026-03").exit_code == 2
    assert "earlier answers are no longer" in run("refresh").output


FILES = """\
database = "duckdb:"
[privacy]
epsilon = 1
[privacy.time]
period = "month"
since = 2024-01-01
[defaults]
epsilon = 0.5
[tables.orders]
source = "orders/*.parquet"
unit = "user_id"
time = "ordered_at"
max_rows = 3
columns = { ordered_at = {} }
"""


def test_files_of_a_month_that_came_later_retire_no_answer_of_another(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    policy = tmp_path / "files.toml"
    policy.write_text(FILES, "utf-8")

    def loaded(month: int) -> None:
        rows = f"SELECT i AS user_id, TIMESTAMP '2024-{month:02}-15' AS ordered_at FROM range(50) t (i)"
        duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/orders/{month}.parquet'")

    def run(*words: str) -> str:
        result = CliRunner().invoke(program, ["-P", str(policy), *words])
        assert result.exit_code == 0, result.output
        return result.output

    def of_month(month: int) -> str:
        where = f"ordered_at >= '2024-{month:02}-01' AND ordered_at < '2024-{month + 1:02}-01'"
        return run("query", f"SELECT COUNT(*) FROM orders WHERE {where}")

    loaded(1)
    run("budget", "create")
    assert "charged epsilon 0.5" in of_month(1)
    loaded(2)
    assert "Closed months keep theirs" in run("refresh")
    assert "free" in of_month(1)
    assert "charged epsilon 0.5" in of_month(2)
    run("refresh", "--from", "2024-02")
    assert "free" in of_month(1)
    assert "charged epsilon 0.5" in of_month(2)
