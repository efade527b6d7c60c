"""`dpsql audit` under a budget by periods: it passes on the real code, and finds planted faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from dpsql.backends import open_backend
from dpsql.engine.audit import Audit, run_audit, run_fuzz
from dpsql.engine.audit import audit as audited
from dpsql.engine.audit.twins import PATTERNS
from dpsql.plan import planner
from dpsql.plan.backend_sql import print_source
from dpsql.plan.backend_sql.print_source import SourcePrinter
from dpsql.plan.privacy import time as periods
from dpsql.policy import Policy, parse_policy
from dpsql.policy.live_schema import LiveSchema
from dpsql.tests.laws.planting import plant
from dpsql.tests.support.length import tried

RUNS = 20_000
POLICY = """
database = "duckdb:shop.duckdb"
ledger = "sqlite:shop.db"
[privacy]
epsilon = 10
delta = 1e-3
{more}
[privacy.time]
period = "month"
since = 2024-01-01
[tables.customer]
unit = "id"
[tables.customer.columns]
city = {{ values = ["a", "b"] }}
[tables.sale]
unit = {{ column = "customer_id", references = "customer.id" }}
time = "sold"
max_rows = 3
max_rows_ever = 9
max_groups = 2
[tables.sale.columns]
place = {{ values = ["a", "b", "c"] }}
sold = {{}}
tag = {{}}
price = {{ bounds = [0, 7] }}
[tables.line]
unit = {{ column = "sale_id", references = "sale.id" }}
time = "sale.sold"
max_rows = 4
[tables.line.columns]
pieces = {{ bounds = [0, 5] }}
[tables.visit]
unit = {{ column = "customer_id", references = "customer.id" }}
time = "day"
max_rows = 2
[tables.visit.columns]
day = {{}}
"""
SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, city VARCHAR);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), sold TIMESTAMP, place VARCHAR,
    tag VARCHAR, price INTEGER);
CREATE TABLE line (sale_id INTEGER, pieces INTEGER);
CREATE TABLE visit (customer_id INTEGER, day DATE NOT NULL);
"""
BY_MONTH = "SELECT date_trunc('month', sold), COUNT(*) FROM sale GROUP BY 1"
PERSONS = "SELECT COUNT(DISTINCT customer_id) FROM sale"
BY_PERSON = "SELECT n, COUNT(*) FROM (SELECT customer_id, COUNT(*) AS n FROM sale GROUP BY 1) AS t WHERE n IN (3, 6, 9) GROUP BY 1"
PLACES = "SELECT place, COUNT(*) FROM sale GROUP BY 1"
JANUARY = "SELECT COUNT(*) FROM sale WHERE sold >= '2024-01-01' AND sold < '2024-02-01'"
OUTER = "SELECT COUNT(*) FROM customer c LEFT JOIN sale s ON s.customer_id = c.id"
LINES = "SELECT COUNT(*) FROM line"
FEW = (PATTERNS[3], PATTERNS[5])
"""Persons with ten times the rows that count, in one group and in more than count."""
TWO = "SELECT COUNT(*) FROM sale WHERE sold < '2024-02-01' OR sold >= '2024-03-01'"
Patch = pytest.MonkeyPatch


@pytest.fixture
def shop(tmp_path: Path) -> Callable[[str], tuple[Policy, LiveSchema]]:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(SCHEMA)

    def load(more: str = "") -> tuple[Policy, LiveSchema]:
        policy = parse_policy(POLICY.format(more=more), tmp_path / "shop.toml")
        with open_backend(policy.database).snapshot() as snapshot:
            return policy, snapshot.schema()

    return load


Shop = Callable[..., tuple[Policy, LiveSchema]]


def problems(audit: Audit) -> list[str]:
    return [problem for finding in audit.findings for problem in finding.problems]


@pytest.mark.long  # those of the usual ones that differ in what they claim by slice are in the next test
@pytest.mark.parametrize("more", ["", 'accounting = "zcdp"'])
def test_the_usual_questions_keep_their_claims_in_every_slice(shop: Shop, more: str) -> None:
    audit = run_audit(*shop(more), runs=RUNS)
    asked = [finding.sql for finding in audit.findings]
    assert BY_MONTH in asked
    assert LINES in asked
    check_slices(audit, more, charged=10)


def test_these_questions_keep_their_claims_in_every_slice(shop: Shop) -> None:
    """Those that are asked of a period, of all, by person over several, and of undated rows; each costs January one."""
    asked = [BY_MONTH, JANUARY, PLACES, LINES, PERSONS, BY_PERSON, OUTER, TWO]
    check_slices(run_audit(*shop(), asked, runs=RUNS), "", charged=len(asked) - 1)


def check_slices(audit: Audit, more: str, *, charged: int) -> None:
    """Have each statement keep its claim, all together what is charged to a month, and the claims reached."""
    assert audit.has_passed, problems(audit)
    together = {one.sql: one for one in audit.findings if one.sql.startswith("all of these")}
    assert {*together} >= {f"all of these, of 2024-0{month}" for month in (1, 2, 3, 4)}
    running = together["all of these, of 2024-04"]
    assert (running.claimed, running.moved) == (0.0, "0 of 100 %"), "the running month is read by nobody"
    assert together["all of these, of 2024-01"].claimed > charged
    reached = [one for one in audit.findings if one.sql in (BY_MONTH, JANUARY, PLACES)]
    assert all(float(one.moved.split()[0]) > 0 for one in reached)
    if not more:
        assert {one.moved for one in reached} == {"3 of 3", "100 of 100 %"}, "the claims are reached"


def test_the_search(shop: Shop, monkeypatch: Patch) -> None:
    monkeypatch.setattr(audited, "PATTERNS", tried(FEW, PATTERNS))
    found = run_fuzz(*shop(), tried(4, 30), seed=3)
    assert found.has_passed, found.violations
    assert found.answered > tried(1, 10)


def not_replaced(patch: Patch) -> None:
    """By person over several months, and yet claimed as if a person came or went."""
    plant(patch, periods.by_person, ("is_replaced=is_ever", "is_replaced=False"))


def without_end(patch: Patch) -> None:
    """What lies in the running month, and ahead, is read, and charged to nobody."""
    plant(patch, SourcePrinter._scan, (" AND {column} < {word} '{high}'", ""))


def one_number(patch: Patch) -> None:
    """All months are one to the bound."""
    plant(patch, print_source._numbered, ("if len(numbers) < 2:", "if True:"))


def charged_less(patch: Patch) -> None:
    """The first month alone of those that are printed is charged."""
    plant(patch, periods.slices_of, ("for first, last in one.periods", "for first, last in one.periods[:1]"))


def undated_free(patch: Patch) -> None:
    """What a LEFT JOIN shows of undated rows is charged to no one."""
    plant(patch, periods.slices_of, ("rows.is_replaced or not joins_plainly(rows)", "False"))


@pytest.mark.parametrize(
    ("fault", "asked"),
    [
        (not_replaced, BY_PERSON),
        (without_end, JANUARY),
        (one_number, PLACES),
        (charged_less, TWO),
        (undated_free, OUTER),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_planted_fault_is_found(
    shop: Shop, monkeypatch: Patch, fault: Callable[[Patch], None], asked: str
) -> None:
    fault(monkeypatch)
    monkeypatch.setattr(audited, "PATTERNS", tried(FEW, PATTERNS))
    monkeypatch.setattr(planner, "_is_finer", lambda one, other: False)
    assert problems(run_audit(*shop(), [asked], runs=RUNS)), fault.__doc__
