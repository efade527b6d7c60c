"""A batch from Python: planned and charged as `dpsql release` does, a cursor for each query."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from dpsql import Session
from dpsql.dbapi import DataError, InterfaceError, OperationalError, ProgrammingError
from dpsql.engine import batch
from dpsql.engine.dataset import PreparedPlan
from dpsql.sql.statement import AdmittedQuery

from .conftest import COUNT

CITIES = "SELECT city, COUNT(*) AS n FROM person GROUP BY city"
NORTH = "SELECT COUNT(*) AS n FROM person WHERE city = 'north'"


def test_a_cursor_for_each_query_and_one_charge(policy: Path) -> None:
    with dpsql.connect(policy) as connection:
        price = connection.price([COUNT, CITIES, NORTH])
        assert (
            price.charge.epsilon_nano == 181_701_000
        )  # cities, and with those of no list, tell a part of the total
        assert [one.uses for one in price.statements] == [(2,), (), (1, 2)]
        total, cities, north = connection.release([COUNT, CITIES, NORTH])
        assert [cursor.receipt.epsilon for cursor in (total, cities, north)] == [
            Fraction("0.081701"),
            Fraction(1, 10),
            0,
        ]  # type: ignore[union-attr]
        assert cities.description is not None
        assert [column[0] for column in cities.description] == ["city", "n"]
        rows = dict(cities.fetchall())  # type: ignore[arg-type]  # rows are pairs
        assert north.fetchall() == [(rows["north"],)]
        assert total.rowcount == 1
        assert "release" in cities.explanation.text()
        assert connection.price([COUNT, CITIES, NORTH]).charge.epsilon_nano == 0
        again = [cursor.fetchall() for cursor in connection.release(f"{COUNT}; {CITIES};\n{NORTH};")]
        assert again == [total.fetchall(), list(rows.items()), [(rows["north"],)]]


def test_a_release_is_planned_once(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has seen a price to hold it to; and a plan that is remembered is not made again."""
    steps, plans = batch._Planner.steps, Session.planned
    planned: list[object] = []

    def counted_steps(self: batch._Planner) -> list[batch._Step]:
        planned.append("batch")
        return steps(self)

    def counted_plans(self: Session, query: AdmittedQuery, *rest: object) -> PreparedPlan:
        planned.append(query.text)
        return plans(self, query, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(batch._Planner, "steps", counted_steps)
    monkeypatch.setattr(Session, "planned", counted_plans)
    with dpsql.connect(policy) as connection:
        connection.release([COUNT, CITIES])
        assert planned == ["batch", COUNT, CITIES]
        connection.release([COUNT, CITIES])
        assert planned[3:] == ["batch"]


@pytest.mark.parametrize("epsilon", ["0.3", 0.3, Decimal("0.3"), Fraction(3, 10)])
def test_a_total(policy: Path, epsilon: object) -> None:
    with dpsql.connect(policy) as connection:
        price = connection.price([COUNT, CITIES], epsilon=epsilon)  # type: ignore[arg-type]
        assert 0.2999 * 10**9 < price.charge.epsilon_nano <= 0.3 * 10**9
        cursors = connection.release([COUNT, CITIES], epsilon=epsilon)  # type: ignore[arg-type]
        assert sum(cursor.receipt.epsilon for cursor in cursors) == Fraction(price.charge.epsilon_nano, 10**9)  # type: ignore[union-attr]


def test_settings_hold_for_the_queries_after_them(policy: Path) -> None:
    with dpsql.connect(policy) as connection:
        wide, plain = connection.release(
            ["SET dpsql.intervals = 0.9", COUNT, "RESET dpsql.intervals", CITIES]
        )
        assert (len(wide.fetchall()[0]), len(plain.fetchall()[0])) == (3, 2)
        assert wide.intervals == Decimal("0.9")
        assert len(connection.execute(COUNT).fetchall()[0]) == 1


def test_what_is_refused_costs_nothing(policy: Path) -> None:
    with dpsql.connect(policy) as connection:
        with pytest.raises(ProgrammingError, match="statement 2: ") as caught:
            connection.release([COUNT, "SELECT age FROM person"])
        assert caught.value.sqlstate == "PV002"  # type: ignore[attr-defined]
        with pytest.raises((ProgrammingError, DataError)):
            connection.release([COUNT], epsilon="much")
        with pytest.raises(ProgrammingError):
            connection.release([])
        assert connection.price([COUNT]).status.epsilon_spent_nano == 0
    with pytest.raises(InterfaceError):
        connection.release([COUNT])


def test_more_than_the_cap_is_refused_as_a_whole(policy: Path) -> None:
    with dpsql.connect(policy, "alice") as connection:
        with pytest.raises(OperationalError, match=r"needs epsilon 0\.181701"):
            connection.release([COUNT, CITIES])
        assert connection.price([COUNT]).status.epsilon_spent_nano == 0


def test_a_session_has_it_too(policy: Path) -> None:
    with dpsql.Session.open(policy) as session:
        price = session.price([COUNT, CITIES], epsilon=Fraction(1, 5))
        answers = session.release([COUNT, CITIES], epsilon=Fraction(1, 5))
        assert len(answers) == 2
        assert session.budget().epsilon_spent_nano == price.charge.epsilon_nano
        assert [one.rows for one in session.release([COUNT, CITIES], epsilon=Fraction(1, 5))] == [
            one.rows for one in answers
        ]
