"""EXPLAIN, check and preview on several persons together: under `privacy.together`, and where a policy says nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.contribution import group_loss
from dpsql.engine.dataset import open_ledger
from dpsql.engine.preview import preview
from dpsql.errors import LedgerError
from dpsql.policy import check, load_policy

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 50
delta = 1e-6
{more}
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 90] }}
name = {{}}
"""
SUM = "SELECT SUM(age) FROM person"
NAMES = "SELECT name, COUNT(*) FROM person GROUP BY name"

Open = Callable[[str], Session]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, name VARCHAR)")
    with ExitStack() as stack:

        def session(more: str) -> Session:
            path = tmp_path / "people.toml"
            path.write_text(POLICY.format(more=more))
            open_ledger(load_policy(path), create=True).close()
            return stack.enter_context(Session.open(path))

        yield session


def test_a_policy_for_four_says_so(opened: Open) -> None:
    shown = opened("together = 4").explain(SUM)
    assert "    protects any 4 persons together: sensitivity 4 × 90, Laplace scale 3600," in shown.text()
    assert "for 4 persons together" not in shown.text()
    (release,) = shown.plan.releases
    assert (release.measures[0].scale, release.measurements[0].sensitivity, shown.plan.epsilon) == (
        3600,
        360,
        Fraction(1, 10),
    )
    body = shown.as_dict()
    assert body["releases"][0]["together"] == 4  # type: ignore[index]  # a dict for JSON
    assert body["groups_of_persons"] == []


def test_a_policy_that_says_nothing_has_the_figure_of_a_household_once(opened: Open) -> None:
    text = opened("").explain(f"{SUM} WHERE age > (SELECT AVG(age) FROM person)").text()
    assert text.count("for 4 persons together: epsilon 0.4\n") == 1
    assert "sensitivity 90, Laplace scale" in text


def test_a_household_of_a_promise_with_delta(opened: Open) -> None:
    assert "  for 4 persons together: epsilon 0.4, delta 4.68e-09\n" in opened("").explain(NAMES).text()
    epsilon, delta = group_loss(Fraction(1, 10), Fraction(1, 10**9), 4)
    assert epsilon == Fraction(2, 5)
    assert delta == pytest.approx(1e-9 * sum(math.exp(i / 10) for i in range(4)), rel=1e-12)
    assert group_loss(Fraction(10), Fraction(1, 100), 4)[1] == 1.0


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT COUNT(*) FROM person WHERE FALSE"])
def test_what_is_free_has_no_such_line(opened: Open, sql: str) -> None:
    assert "together" not in opened("").explain(sql).text()


def test_a_threshold_is_that_of_four(opened: Open) -> None:
    (release,) = opened("together = 4").explain(NAMES).plan.releases
    q, each = math.exp(-1 / 40), 1e-9 / sum(math.exp(i / 40) for i in range(4))
    assert release.tau == 1 + math.ceil(40 * math.log((1 - q) / (1 + q) / each))


def test_the_owner_sees_it(opened: Open) -> None:
    session = opened("together = 4")
    with session.dataset.backend.snapshot() as snapshot:
        report = check(session.policy, snapshot.schema())
    assert report.privacy.endswith("; add-remove neighbours, any 4 persons together")
    shown = preview(session.policy, session.catalog)
    assert shown.budget[-1] == "  any 4 persons are protected together: so many times the noise of one"
    one = shown.tables[0].questions[0].figures[0].plus_minus[0]
    assert one == pytest.approx(4 * 30, abs=1.5)


def test_a_ledger_for_one_does_not_serve_four(opened: Open) -> None:
    opened("").close()
    with pytest.raises(LedgerError, match='made for neighbours = "add-remove" and together = 1'):
        opened("together = 4")
