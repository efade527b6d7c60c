"""`dpsql check --preview`: what it shows is what EXPLAIN shows, and what it warns of."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.engine.preview import PEOPLE, Preview, preview, warnings_of
from dpsql.policy import build_catalog, parse_policy

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, home VARCHAR, age INTEGER);
CREATE TABLE visit (id INTEGER PRIMARY KEY, pid INTEGER REFERENCES person (id), city VARCHAR, tag VARCHAR, cost INTEGER);
"""
POLICY = """
database = "duckdb:rows.duckdb"
[privacy]
epsilon = 10
delta = 1e-6
[defaults]
epsilon = 0.1
[tables.person]
unit = "id"
[tables.person.columns]
home = { values = ["a", "b"] }
age = { bounds = [0, 120] }
[tables.visit]
unit = { column = "pid", references = "person.id" }
max_rows = 40
max_groups = 4
[tables.visit.columns]
tag = {}
city = { values = ["a", "b", "c", "d", "e"] }
cost = { bounds = [0, 100] }
"""


def session_of(folder: Path, text: str = POLICY) -> Session:
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.execute(SCHEMA)
    policy = parse_policy(text, folder / "rows.toml")
    open_ledger(policy, create=True).close()
    return Session.open(policy)


def previewed(text: str = POLICY, schema: str = SCHEMA) -> Preview:
    connection = duckdb.connect()
    connection.execute(schema)
    policy = parse_policy(text, Path("rows.toml").absolute())
    with DuckDBBackend.over(connection).snapshot() as snapshot:
        return preview(policy, build_catalog(policy, snapshot.schema()))


def test_the_figures_are_those_of_explain(tmp_path: Path) -> None:
    found = previewed()
    with session_of(tmp_path) as session:
        for table in found.tables:
            assert len(table.questions) == 4
            for question in table.questions:
                declared = [f for f in question.figures if f.max_rows in (None, 40)]
                assert [f.epsilon for f in declared] == ["0.1", "0.05", "0.2"]
                for figure in declared:
                    session.execute(f"SET dpsql.epsilon = {figure.epsilon}")
                    (release,) = session.explain(question.sql).as_dict()["releases"]  # type: ignore[attr-defined,misc]
                    said = release["outputs"][-1]["expected"].split()
                    rows = [n if said[2:] else 1 for n in PEOPLE]
                    assert figure.plus_minus == pytest.approx([float(said[1]) / n for n in rows], rel=1e-5)


@pytest.mark.parametrize("word", ["select", "values", "limit", "Odd"])
def test_a_table_and_a_column_may_be_called_as_a_word_of_sql(word: str) -> None:
    schema = SCHEMA.replace("visit", f'"{word}"').replace("cost", f'"{word}"')
    renamed = previewed(POLICY.replace("visit", word).replace("cost", word), schema).tables
    assert [len(one.questions) for one in renamed] == [len(one.questions) for one in previewed().tables]
    assert f'SELECT SUM("{word}") FROM "{word}"' in [one.sql for one in renamed[-1].questions]


def test_half_and_twice_the_rows() -> None:
    visit = previewed().tables[1]
    assert visit.bound == "max_rows 40, max_groups 4"
    for question in visit.questions:
        assert [f.max_rows for f in question.figures] == [40, 20, 80, 40, 40]
        declared, half, twice, _, _ = (f.plus_minus[0] for f in question.figures)
        assert declared / half == pytest.approx(2, rel=0.01) == twice / declared
    count, grouped = visit.questions[:2]
    assert count.figures[0].relative[0] == pytest.approx(count.figures[0].plus_minus[0] / 1000)
    assert grouped.figures[0].relative[0] == pytest.approx(5 * count.figures[0].relative[0])


def test_a_bound_that_groups_tighten_is_the_one_that_is_varied() -> None:
    text = POLICY.replace("max_groups = 4", "max_groups = 4\nmax_rows_per_group = 5")
    assert [f.max_rows for f in previewed(text).tables[1].questions[0].figures] == [20, 10, 40, 20, 20]


def test_the_text_is_short_and_says_what_the_budget_holds() -> None:
    text = previewed().to_text()
    assert "holds 100 different questions at 0.1 (200 at 0.05, 50 at 0.2)" in text
    assert "delta 1e-6 holds 1,000 of them with group keys that are not declared" in text
    blocks = text.split("\n\n")
    assert [block.split(":")[0] for block in blocks[-2:]] == ["person", "visit"]
    assert all(len(block.split("\n")) <= 40 for block in blocks)
    assert max(map(len, text.split("\n"))) <= 120


def test_what_both_kinds_of_accounting_hold() -> None:
    lines = [
        "  accounting     statements at 0.1   ± of a count, of so many:       10      100    1,000",
        "  pure *                       100                                  3.0       30      300",
        "  zcdp                         295                                  3.6       11       36",
    ]
    assert list(previewed().budget[2:5]) == lines
    moved = previewed(POLICY.replace("delta = 1e-6", 'delta = 1e-6\naccounting = "zcdp"')).budget
    assert "holds 295 different questions at 0.1 (1,182 at 0.05, 73 at 0.2)" in moved[0]
    assert "delta 5e-7 holds 500 of them" in moved[1], "the conversion's part is not the thresholds'"
    assert [line.replace(" *", "  ") for line in moved[2:5]] == [line.replace(" *", "  ") for line in lines]
    assert len(previewed(POLICY.replace("delta = 1e-6", "delta = 0")).budget) == 3, "zcdp needs a delta"


def test_what_threshold_groups_need() -> None:
    few, many = (previewed(POLICY.replace("max_groups = 4", said)) for said in ("max_groups = 4", ""))
    needed = [
        int(p.tables[1].thresholds[0].split("about ")[1].split()[0].replace(",", "")) for p in (few, many)
    ]
    assert needed[1] > 8 * needed[0] > 8000
    assert few.warnings == ()
    (demand,) = many.warnings
    assert demand.startswith(
        "rows.toml: tables.visit.max_groups: is not declared, so 40 groups of a person count"
    )
    assert f"{needed[1]:,} people" in demand


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("epsilon = 10", "epsilon = 1.9", "privacy.epsilon: holds 19 questions at defaults.epsilon 0.1"),
        ("epsilon = 10", "epsilon = 2", None),
        ("max_rows = 40", "max_rows = 4000", "tables.visit.max_rows: a count would be off by ± 119,8"),
        ("max_rows = 40", "max_rows = 3000", None),
        ("max_rows = 40\nmax_groups = 4", "", None),  # nothing is answered: that is said elsewhere
    ],
)
def test_warnings(old: str, new: str, said: str | None) -> None:
    text = POLICY.replace(old, new, 1)
    assert text != POLICY
    connection = duckdb.connect()
    connection.execute(SCHEMA)
    policy = parse_policy(text, Path("rows.toml").absolute())
    with DuckDBBackend.over(connection).snapshot() as snapshot:
        found = warnings_of(policy, build_catalog(policy, snapshot.schema()))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_a_table_without_bounds_is_shown_without_questions() -> None:
    visit = previewed(POLICY.replace("max_rows = 40\nmax_groups = 4", "")).tables[1]
    assert (visit.questions, visit.bound) == ((), "max_rows is not declared, so its statements are refused")


def test_names_that_need_quotes() -> None:
    schema = 'CREATE TABLE "Person List" ("E-Mail" VARCHAR PRIMARY KEY, "Group" VARCHAR, "Order" INTEGER)'
    text = """
database = "duckdb:odd.duckdb"
[privacy]
epsilon = 10
[tables."Person List"]
unit = "E-Mail"
[tables."Person List".columns]
"Group" = { values = ["a", "b"] }
"Order" = { bounds = [0, 9] }
"""
    connection = duckdb.connect()
    connection.execute(schema)
    policy = parse_policy(text, Path("odd.toml").absolute())
    with DuckDBBackend.over(connection).snapshot() as snapshot:
        (table,) = preview(policy, build_catalog(policy, snapshot.schema())).tables
    assert [question.sql for question in table.questions] == [
        'SELECT COUNT(*) FROM "Person List"',
        'SELECT "Group", COUNT(*) FROM "Person List" GROUP BY "Group"',
        'SELECT AVG("Order") FROM "Person List"',
        'SELECT SUM("Order") FROM "Person List"',
    ]
