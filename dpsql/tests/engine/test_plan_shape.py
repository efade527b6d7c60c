"""EXPLAIN as tools read it: Superset's estimate, pgAdmin's and DBeaver's plan, a YAML file.

What they ask for was read from their sources: the pattern is Superset's (`estimate_statement_cost`), pgAdmin draws
`[{"Plan": …}]` and its `Plans`, DBeaver the `Plan` elements below `Query` with a tag for each attribute.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql import Session
from dpsql.engine.dataset import open_ledger
from dpsql.engine.explain import _xml, _yaml
from dpsql.policy import load_policy
from dpsql.relation.types import JSON, TEXT

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 50
delta = 1e-6
[defaults]
epsilon = 0.1
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 90] }
name = {}
city = { values = ["a", "b", "c"] }
[tables.tariff]
public = true
"""
SUPERSET = re.compile(r"cost=([\d\.]+)\.\.([\d\.]+)")
CITIES = "SELECT city, COUNT(*) FROM person GROUP BY city"
FOUND = "SELECT name, COUNT(*) FROM person GROUP BY name"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER NOT NULL, name VARCHAR, city VARCHAR);"
            "CREATE TABLE tariff (price INTEGER);"
            "INSERT INTO person SELECT i, i % 90, 'n' || (i % 5), chr((97 + i % 3)::INTEGER) FROM range(9000) t(i)"
        )
    (tmp_path / "people.toml").write_text(POLICY)
    open_ledger(load_policy(tmp_path / "people.toml"), create=True).close()
    with Session.open(tmp_path / "people.toml") as session:
        yield session


def first_line(session: Session, sql: str) -> str:
    return str(session.execute(f"EXPLAIN {sql}").rows[0][0])


def estimate(line: str) -> float:
    """Return what Superset shows as the total cost."""
    found = SUPERSET.search(line)
    assert found is not None
    assert float(found[1]) == 0
    return float(found[2])


def test_the_first_line_has_the_price_and_the_declared_groups(session: Session) -> None:
    assert first_line(session, CITIES) == "Answer  (cost=0.00..0.10 rows=3 width=0)"
    assert first_line(session, "SELECT COUNT(*) FROM person") == "Answer  (cost=0.00..0.10 rows=1 width=0)"
    assert first_line(session, "SELECT COUNT(*) FROM tariff") == "Answer  (cost=0.00..0.00 rows=0 width=0)"
    session.execute("SET dpsql.epsilon = 0.00025")
    assert estimate(first_line(session, CITIES)) == 0.00025


def test_what_is_stored_costs_nothing_and_groups_that_are_found_are_counted_once_they_are(
    session: Session,
) -> None:
    assert first_line(session, FOUND) == "Answer  (cost=0.00..0.10 rows=0 width=0)"
    shown = len(session.execute(FOUND).rows)
    assert shown > 0
    assert first_line(session, FOUND) == f"Answer  (cost=0.00..0.00 rows={shown} width=0)"
    session.execute("SET dpsql.reuse = off")
    assert first_line(session, FOUND) == "Answer  (cost=0.00..0.10 rows=0 width=0)"


def test_the_price_is_what_is_charged(session: Session) -> None:
    """A statement with a subquery that is released first, and one of which a part is stored, are charged so much."""
    for sql in (
        "SELECT AVG(age) FROM person WHERE age > (SELECT AVG(age) FROM person)",
        "SELECT COUNT(*) FROM person",
        "SELECT COUNT(*), SUM(age) FROM person",
    ):
        priced = estimate(first_line(session, sql))
        receipt = session.execute(sql).receipt
        assert receipt is not None
        assert priced == pytest.approx(float(receipt.epsilon)), sql


def test_pgadmins_tree(session: Session) -> None:
    answer = session.execute(f"EXPLAIN (FORMAT JSON, ANALYZE OFF, COSTS ON) {CITIES}")
    assert [column.type for column in answer.columns] == [JSON]
    assert session.describe(f"EXPLAIN (FORMAT JSON) {CITIES}")[0].type == JSON
    assert session.describe(f"EXPLAIN {CITIES}")[0].type == TEXT
    ((text,),) = answer.rows
    ((plan),) = (one["Plan"] for one in json.loads(str(text)))
    assert (plan["Node Type"], plan["Total Cost"], plan["Plan Rows"]) == ("Answer", 0.1, 3)
    (release,) = plan["Plans"]
    assert (release["Node Type"], release["Relation Name"], release["Total Cost"]) == (
        "Release",
        "person",
        0.1,
    )
    assert plan["charge"]["said"].startswith("epsilon 0.1")
    assert release["measures"][0]["plus_minus_95"] == "30"


def test_dbeavers_tree(session: Session) -> None:
    ((text,),) = session.execute(f"EXPLAIN (FORMAT XML, ANALYSE) {CITIES}").rows
    space = "{http://www.postgresql.org/2009/explain}"
    root = ElementTree.fromstring(str(text))
    assert root.tag == f"{space}explain"
    plan = root.find(f"{space}Query/{space}Plan")
    assert plan is not None
    assert plan.findtext(f"{space}Total-Cost") == "0.10"
    release = plan.find(f"{space}Plans/{space}Plan")
    assert release is not None
    assert release.findtext(f"{space}Relation-Name") == "person"
    assert release.findtext(f"{space}measures/{space}Item/{space}plus_minus_95") == "30"


def test_yaml_says_what_json_does(session: Session) -> None:
    yaml = pytest.importorskip("yaml")
    (((in_yaml,),), ((in_json,),)) = (
        session.execute(f"EXPLAIN (FORMAT {form}) {CITIES}").rows for form in ("YAML", "JSON")
    )
    assert yaml.safe_load(str(in_yaml)) == json.loads(str(in_json))


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.from_regex(r"k_[a-z]{1,8}", fullmatch=True), inside)
    ),
)


@given(st.dictionaries(st.just("said"), TREES, min_size=1))
def test_no_text_breaks_the_form(tree: dict[str, object]) -> None:
    """Whatever a statement's own literals bring in: it comes back from YAML, and XML stays one element."""
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load("\n".join(_yaml([tree], ""))) == [tree]
    assert ElementTree.fromstring(_xml("Plan", tree, 0)).tag == "Plan"
