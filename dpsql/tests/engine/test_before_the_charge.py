"""What is told before it is charged: a value that the policy does not list, a number that would tell nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.errors import Refusal
from dpsql.policy import load_policy

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 50
[defaults]
max_epsilon = 10
[tables.person]
unit = "id"
[tables.person.columns]
town = { values = ["Bern", "Basel", "Chur"] }
name = {}
age = { values = [1, 2, 3] }
[tables.visit]
unit = { column = "person_id", references = "person.id" }
max_rows = 3
[tables.visit.columns]
ward = { values = ["east", "west"] }
[tables.place]
public = true
[tables.seen]
view = true
[tables.card]
unit = { column = "person_id", references = "person.id" }
max_rows = 2
hidden = true
[tables.card.columns]
secret = { values = ["ok", "held"] }
[tables.open_card]
view = true
"""


@pytest.fixture(scope="module", params=["", "Zug"], ids=["as listed", "beyond the list"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The same policy over rows with and without a value that it does not list."""
    folder: Path = tmp_path_factory.mktemp("people")
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, town TEXT, name TEXT, age INTEGER)")
        connection.execute("CREATE TABLE visit (person_id INTEGER REFERENCES person (id), ward TEXT)")
        connection.execute("CREATE TABLE place (town TEXT)")
        connection.execute("CREATE VIEW seen AS SELECT id, town AS t, age FROM person WHERE town <> 'Genf'")
        connection.execute("CREATE TABLE card (person_id INTEGER REFERENCES person (id), secret TEXT)")
        connection.execute(
            "CREATE VIEW open_card AS SELECT person_id, secret AS s FROM card WHERE secret <> 'gone'"
        )
        connection.execute("INSERT INTO place VALUES ('Zug')")
        connection.execute("INSERT INTO person VALUES (1, $1, 'a', 2)", [request.param or "Bern"])
    (folder / "people.toml").write_text(POLICY)
    open_ledger(load_policy(folder / "people.toml"), create=True).close()
    with Session.open(folder / "people.toml") as opened:
        yield opened


@pytest.mark.parametrize(
    ("sql", "value", "hint"),
    [
        ("SELECT COUNT(*) FROM person WHERE town = 'bern'", "bern", "did you mean 'Bern'?"),
        ("SELECT COUNT(*) FROM person WHERE 'Zug' = town", "Zug", "its values are 'Bern', 'Basel', 'Chur'. To compare"),
        ("SELECT COUNT(*) FROM person WHERE town <> 'Zug' OR name = 'x'", "Zug", ""),
        ("SELECT COUNT(*) FROM person WHERE town IN ('Churr', 'Zug')", "Churr", "'Chur'?"),
        ("SELECT COUNT(*) FILTER (WHERE town = 'Zug') FROM person", "Zug", ""),
        ("SELECT COUNT(CASE WHEN town = 'Zug' THEN 1 END) FROM person", "Zug", ""),
        ("SELECT CASE town WHEN 'Zug' THEN 1 ELSE 2 END, COUNT(*) FROM person GROUP BY 1", "Zug", ""),
        ("SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.person_id = p.id AND ward = 'e')", "e", ""),
        ("SELECT COUNT(*) FROM person p LEFT JOIN visit v ON v.person_id = p.id AND v.ward = 'north'", "north", ""),
        ("SELECT COUNT(*) FROM (SELECT person_id, COUNT(*) FILTER (WHERE ward = 'no') AS n FROM visit GROUP BY 1) WHERE n > 1", "no", ""),
        ("SELECT n, 1 FROM (SELECT COUNT(*) AS n FROM person WHERE town = 'O''Bern') AS t", "O''Bern", ""),
    ],
)  # fmt: skip
def test_a_value_that_is_not_listed_is_told_and_costs_nothing(
    session: Session, sql: str, value: str, hint: str
) -> None:
    before = session.budget().epsilon_spent_nano
    for asked in (sql, f"EXPLAIN {sql}"):
        with pytest.raises(Refusal) as refused:
            session.execute(asked)
        assert (refused.value.sqlstate, f"has no value '{value}' in the policy" in refused.value.message) == (
            "PV302",
            True,
        )
        assert hint in (refused.value.hint or "")
    assert session.budget().epsilon_spent_nano == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM person WHERE town = 'Bern'",
        "SELECT COUNT(*) FROM person WHERE name = 'Zug'",
        "SELECT COUNT(*) FROM person WHERE town IN ('Bern', 'Chur') AND town <> 'Basel'",
        "SELECT COUNT(*) FROM person WHERE town IS NULL",
        "SELECT town, COUNT(*) FROM person WHERE town IN ('Bern', 'Zug') GROUP BY town",
        "SELECT COUNT(*) FROM person WHERE upper(town) = 'ZUG'",
        "SELECT COUNT(*) FROM place WHERE town = 'Zug'",
        "SELECT COUNT(*) FROM person WHERE age = 9",
    ],
)
def test_what_is_listed_or_has_no_list_is_asked(session: Session, sql: str) -> None:
    session.execute(sql)


def test_what_a_view_compares_is_no_question(session: Session) -> None:
    """Its text is the owner's: an analyst is told no value of it, and no name of a column that only views read."""
    for sql in ("SELECT COUNT(*) FROM seen WHERE t = 'Bern'", "SELECT s, COUNT(*) FROM open_card GROUP BY s"):
        session.execute(sql)
    with pytest.raises(Refusal) as refused:
        session.execute("SELECT COUNT(*) FROM open_card WHERE s = 'helt'")
    said = f"{refused.value.message} {refused.value.hint}"
    assert "this column has no value 'helt' in the policy did you mean 'held'?" in said
    assert "secret" not in said


def test_a_parameter_is_a_value_as_well_and_a_setting_asks_all_the_same(session: Session) -> None:
    sql = "SELECT COUNT(*) FROM person WHERE town = $1"
    session.execute(sql, ["Bern"])
    with pytest.raises(Refusal, match="has no value 'Zug'"):
        session.execute(sql, ["Zug"])
    session.execute("SET dpsql.unlisted = on")
    try:
        answer = session.execute(sql, ["Zug"])
        assert answer.receipt is not None
        assert answer.receipt.epsilon > 0
        assert session.execute("SHOW dpsql.unlisted").rows == [("on",)]
    finally:
        session.execute("RESET dpsql.unlisted")
    with pytest.raises(Refusal, match="has no value 'Zug'"):
        session.execute(sql, ["Zug"])


def test_a_number_that_tells_nothing_says_so_before_it_is_charged(session: Session) -> None:
    session.execute("SET dpsql.epsilon = 0.1")
    sql = "SELECT COUNT(DISTINCT town) FILTER (WHERE name = 'a') FROM person"
    said = (
        "tells nothing at this epsilon: it is 0 to 3 by the policy, and the error ± 30; GROUP BY town shows"
    )
    assert said in " ".join(session.explain(sql).text().split())
    receipt = session.execute(sql).receipt
    assert receipt is not None
    assert any(said in note for note in receipt.notes)
    session.execute("RESET dpsql.epsilon")


def test_a_number_that_tells_something_has_no_such_note(session: Session) -> None:
    session.execute("SET dpsql.epsilon = 1")
    for sql in ("SELECT COUNT(DISTINCT name) FROM person", "SELECT COUNT(*) FROM person"):
        assert "tells nothing" not in session.explain(sql).text()
    session.execute("SET dpsql.epsilon = 10")
    assert "tells nothing" not in session.explain("SELECT COUNT(DISTINCT town) FROM person").text()
    session.execute("RESET dpsql.epsilon")
