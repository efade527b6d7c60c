"""Looks at a table before anything is asked: columns without rows, the one row of an existence probe; free, by text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import LazySnapshot, open_ledger
from dpsql.engine.row_previews import _IS_THERE, _WHATEVER_IS_KEPT, _WITHOUT_ROWS, look_of
from dpsql.errors import Refusal
from dpsql.policy import load_policy
from dpsql.sql.statement import AdmittedQuery, parse_statement

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
{}
[privacy]
epsilon = 5
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 120] }}
"Full Name" = {{}}
[tables.adult]
view = true
[tables.adult.columns]
age = {{ bounds = [18, 120] }}
[tables.town]
public = true
"""
COLUMNS = ["id", "age", "Full Name"]
PREVIEWS = {
    "SELECT * FROM person LIMIT 5": COLUMNS,
    "SELECT * FROM people.main.person LIMIT 5": COLUMNS,
    'SELECT p."Full Name" AS n, p.age + 1 AS older FROM "public"."person" p LIMIT 1001': ["n", "older"],
    "SELECT age FROM person ORDER BY id DESC OFFSET 3 FETCH FIRST 2 ROWS ONLY": ["age"],
    "SELECT * FROM (SELECT age FROM person ORDER BY id) AS q LIMIT 5": ["age"],
    "WITH p AS (SELECT age AS a FROM person) SELECT * FROM p WHERE 1 = 1 LIMIT 5": ["a"],
    "(SELECT age FROM person LIMIT 5)": ["age"],
    "TABLE person LIMIT 5": COLUMNS,
    "SELECT * FROM person": COLUMNS,
    "SELECT * FROM person LIMIT ALL": COLUMNS,
    "SELECT x.* FROM public.person x": COLUMNS,
    "SELECT * FROM person ORDER BY id ASC": COLUMNS,
    'SELECT id, "Full Name", age FROM person': ["id", "Full Name", "age"],
    "SELECT * FROM (SELECT * FROM person WHERE true) AS q": COLUMNS,
    "SELECT * FROM adult": ["id", "age"],
    "TABLE person": COLUMNS,
    "SELECT 1 AS one FROM person LIMIT 2": ["one"],
    "SELECT age FROM adult LIMIT 5": ["age"],
    "SELECT t.*, CTID FROM public.person t LIMIT 501": [*COLUMNS, "ctid"],
    "SELECT ctid, p.* FROM person p ORDER BY id": ["ctid", *COLUMNS],
}
PROBES = {
    "SELECT 1 FROM person LIMIT 1": (1,),
    "SELECT 1 AS a, 'x' AS b FROM main.person ORDER BY id LIMIT 1": (1, "x"),
    "SELECT 1 FROM (SELECT * FROM person) AS q FETCH FIRST ROW ONLY": (1,),
    "SELECT EXISTS (SELECT 1 FROM person) AS found": (True,),
    "SELECT EXISTS (SELECT * FROM person LIMIT 1)": (True,),
    "SELECT (EXISTS (SELECT 1 FROM adult))": (True,),
    'SELECT 1 AS f FROM (SELECT 1 AS dummy) "d" WHERE EXISTS (SELECT 1 FROM "person" "person") LIMIT 1': (1,),
    "SELECT 1, 'x' WHERE EXISTS (SELECT * FROM person)": (1, "x"),
    "SELECT 1 FROM (SELECT 1) AS one WHERE (EXISTS (SELECT 1 FROM (SELECT * FROM person) AS p LIMIT 1))": (
        1,
    ),
}
EMPTY = [
    "SELECT 1 FROM (SELECT * FROM person LIMIT 0) AS q LIMIT 1",
    "SELECT age FROM person WHERE 1 = 0 LIMIT 5",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM person) LIMIT 0",
    "SELECT 1 FROM person OFFSET 1 FETCH FIRST 1 ROW ONLY",
]
"""Without a row too, and the last one with the word for it."""
OF_NO_TABLE = {
    "SELECT * FROM generate_series(1, 0)": [],
    "SELECT * FROM pg_catalog.generate_series(1, 2)": [(1,), (2,)],
    "SELECT g FROM generate_series(5, 1, -2) g": [(5,), (3,), (1,)],
    "SELECT 1 FROM generate_series(3, 4) LIMIT 1": [(1,)],
    "SELECT n FROM generate_series(1, 3) AS g(n) WHERE n > 2": [(3,)],
    "SELECT w FROM regexp_split_to_table('a1b22c', '[0-9]+') AS w": [("a",), ("b",), ("c",)],
    "SELECT EXISTS (SELECT 1 FROM generate_series(1, 0))": [(False,)],
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM unnest(ARRAY[7, 8]))": [(1,)],
    "WITH g AS (SELECT * FROM generate_series(1, 2)) SELECT * FROM g": [(1,), (2,)],
    "SELECT * FROM (VALUES (1, 'a')) AS v LIMIT 1": [(1, "a")],
}
"""What functions and values give: nobody's rows, and no look at a table."""
NEITHER = [
    "SELECT age FROM person",
    "SELECT age, id FROM person ORDER BY id",
    "SELECT 1 FROM person",
    "SELECT *, age + 1 FROM person",
    "SELECT * FROM person WHERE age > 50 LIMIT 5",
    "SELECT 1 FROM person WHERE age > 50 LIMIT 1",
    "SELECT EXISTS (SELECT 1 FROM person WHERE age > 50)",
    "SELECT EXISTS (SELECT 1 FROM (SELECT * FROM person WHERE age > 50) AS q)",
    "WITH p AS (SELECT * FROM person WHERE age > 50) SELECT 1 FROM p LIMIT 1",
    "SELECT * FROM person, town LIMIT 5",
    "SELECT g FROM person, generate_series(1, age) AS g LIMIT 5",
    "SELECT * FROM generate_series(1, (SELECT age FROM person LIMIT 1))",
    "SELECT * FROM person WHERE age = age LIMIT 5",
    "SELECT NOT EXISTS (SELECT 1 FROM person)",
    "SELECT COUNT(*) WHERE EXISTS (SELECT 1 FROM person)",
    "SELECT COUNT(*) FROM (SELECT 1) AS one WHERE EXISTS (SELECT 1 FROM person)",
    "SELECT 1 FROM (SELECT 1) AS one WHERE EXISTS (SELECT 1 FROM person WHERE age > 50) LIMIT 1",
    "SELECT 1 FROM (SELECT 1) AS one WHERE EXISTS (SELECT 1 FROM person OFFSET 1)",
    "SELECT 1 FROM (SELECT 1 AS a) AS one WHERE NOT EXISTS (SELECT 1 FROM person) LIMIT 1",
    "SELECT 1 FROM (SELECT 1 AS a) AS one WHERE a = 1 AND EXISTS (SELECT 1 FROM person)",
    "SELECT name FROM (SELECT name FROM town) AS t WHERE EXISTS (SELECT 1 FROM person) LIMIT 1",
    "SELECT a FROM (SELECT 1 AS a) AS one WHERE EXISTS (SELECT 1 FROM person)",
    "SELECT 1 FROM (SELECT unnest(ARRAY[1, 2]) AS a) AS one WHERE EXISTS (SELECT 1 FROM person)",
    "SELECT (SELECT age FROM person LIMIT 1)",
    "SELECT ROW_NUMBER() OVER () FROM person LIMIT 5",
    "SELECT age FROM person UNION ALL SELECT age FROM person LIMIT 5",
]


def opened(folder: Path, people: int, said: str = "") -> Session:
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute('CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, "Full Name" TEXT)')
        connection.execute(f"INSERT INTO person SELECT i, 30, 'a' FROM range({people}) AS r(i)")
        connection.execute("CREATE VIEW adult AS SELECT id, age FROM person WHERE age >= 18")
        connection.execute("CREATE TABLE town (name TEXT); INSERT INTO town VALUES ('a'), ('b')")
    (folder / "people.toml").write_text(POLICY.format(said))
    open_ledger(load_policy(folder / "people.toml"), create=True).close()
    return Session.open(folder / "people.toml")


@pytest.fixture(scope="module", params=[0, 3], ids=["nobody", "somebody"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with opened(tmp_path_factory.mktemp("people"), request.param) as session:
        yield session


@pytest.fixture
def unseen(session: Session, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Give a session that must not look into the database."""

    def look(self: LazySnapshot) -> None:
        raise AssertionError("the database is looked at")

    monkeypatch.setattr(LazySnapshot, "open", look)
    return session


@pytest.mark.parametrize("sql", PREVIEWS)
def test_a_preview_has_the_columns_and_no_row(unseen: Session, sql: str) -> None:
    answer = unseen.execute(sql)
    assert [column.name for column in answer.columns] == PREVIEWS[sql]
    assert list(answer.rows) == []
    assert answer.receipt is not None
    assert answer.receipt.notes == (_WITHOUT_ROWS,)
    assert unseen.describe(sql) == answer.columns
    assert unseen.budget().epsilon_spent_nano == 0


GRIDS = {
    "SELECT * FROM person WHERE age > 50": COLUMNS,
    'SELECT age AS a, "Full Name" FROM (SELECT * FROM person WHERE true) AS q WHERE age > 50 LIMIT 20': [
        "a",
        "Full Name",
    ],
    "SELECT age FROM person WHERE age > 50 AND NOT (age <= 18) ORDER BY id LIMIT 20": ["age"],
    "SELECT t.*, ctid FROM person t WHERE age > 50 LIMIT 501": [*COLUMNS, "ctid"],
}


@pytest.mark.parametrize("sql", GRIDS)
def test_rows_that_a_condition_keeps_are_no_row_where_grids_are_to_be_empty(
    unseen: Session, sql: str
) -> None:
    with pytest.raises(Refusal) as error:
        unseen.execute(sql)
    assert error.value.sqlstate == "PV002"
    unseen.execute("SET dpsql.grids = empty")
    try:
        answer = unseen.execute(sql)
    finally:
        unseen.execute("RESET dpsql.grids")
    assert [column.name for column in answer.columns] == GRIDS[sql]
    assert list(answer.rows) == []
    assert answer.receipt is not None
    assert answer.receipt.notes == (_WHATEVER_IS_KEPT,)
    assert unseen.budget().epsilon_spent_nano == 0


@pytest.mark.parametrize("sql", PROBES)
def test_a_table_that_is_declared_is_there(unseen: Session, sql: str) -> None:
    answer = unseen.execute(sql)
    assert list(answer.rows) == [PROBES[sql]]
    assert answer.receipt is not None
    assert answer.receipt.notes == (_IS_THERE,)
    assert unseen.budget().epsilon_spent_nano == 0


@pytest.mark.parametrize("sql", EMPTY)
def test_no_row_stands_where_the_text_leaves_none(unseen: Session, sql: str) -> None:
    assert list(unseen.execute(sql).rows) == []


@pytest.mark.parametrize("grids", ["off", "empty"])
@pytest.mark.parametrize("sql", OF_NO_TABLE)
def test_rows_of_a_function_are_shown(session: Session, sql: str, grids: str) -> None:
    session.execute(f"SET dpsql.grids = {grids}")
    try:
        assert list(session.execute(sql).rows) == OF_NO_TABLE[sql]
    finally:
        session.execute("RESET dpsql.grids")


@pytest.mark.parametrize("sql", NEITHER)
def test_other_looks_are_refused(unseen: Session, sql: str) -> None:
    with pytest.raises(Refusal) as refused:
        unseen.execute(sql)
    assert refused.value.sqlstate.startswith("PV")


@pytest.mark.parametrize(
    ("sql", "columns"),
    [("SELECT age, id FROM person ORDER BY id", ["age", "id"]),
     ("SELECT age AS a FROM person WHERE age > 50", ["a"])],
)  # fmt: skip
def test_all_rows_are_refused_with_the_way_to_their_columns(
    unseen: Session, sql: str, columns: list[str]
) -> None:
    with pytest.raises(Refusal) as refused:
        unseen.execute(sql)
    assert refused.value.sqlstate == "PV002"
    assert refused.value.hint is not None
    assert "COUNT" in refused.value.hint
    assert "LIMIT 0" in refused.value.hint
    answer = unseen.execute(f"{sql} LIMIT 0")
    assert [column.name for column in answer.columns] == columns
    assert list(answer.rows) == []


def test_before_its_value_is_known_a_limit_is_one(unseen: Session) -> None:
    columns, types = unseen.describe_parameters("SELECT 1 AS one FROM person LIMIT $1", [None])
    assert [column.name for column in columns] == ["one"]
    assert [str(type_) for type_ in types] == ["bigint"]
    assert list(unseen.execute("SELECT 1 AS one FROM person LIMIT $1", [1]).rows) == [(1,)]
    assert list(unseen.execute("SELECT 1 AS one FROM person LIMIT $1", [2]).rows) == []


def test_public_rows_are_shown(session: Session) -> None:
    assert list(session.execute("SELECT name FROM town ORDER BY name LIMIT 1").rows) == [("a",)]
    assert list(session.execute("SELECT EXISTS (SELECT 1 FROM town WHERE name = 'z')").rows) == [(False,)]


def test_the_owner_may_have_none_of_it(tmp_path: Path) -> None:
    with opened(tmp_path, 3, "previews = false") as session:
        for sql in (*PREVIEWS, *PROBES):
            with pytest.raises(Refusal):
                session.execute(sql)


@pytest.mark.parametrize("sql", [*PREVIEWS, *PROBES, *NEITHER, *GRIDS])
def test_looking_at_a_tree_changes_nothing_of_it(sql: str) -> None:
    """The binder reads the same tree afterwards."""
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    before = [(id(node), id(node.parent), node.arg_key) for node in query.tree.walk()]
    look_of(query.tree)
    assert [(id(node), id(node.parent), node.arg_key) for node in query.tree.walk()] == before


def test_a_place_beside_all_columns_is_null_and_refused_elsewhere(session: Session) -> None:
    """DataGrip's grid asks `SELECT t.*, CTID FROM public.town t LIMIT 501`, of tables of nobody too."""
    answer = session.execute("SELECT t.*, CTID FROM public.town t ORDER BY name LIMIT 501")
    assert [column.name for column in answer.columns] == ["name", "ctid"]
    assert list(answer.rows) == [("a", None), ("b", None)]
    assert session.describe("SELECT t.*, CTID FROM public.town t LIMIT 501") == answer.columns
    for sql in (
        "SELECT ctid FROM town",
        "SELECT ctid FROM person LIMIT 5",
        "SELECT *, xmin FROM town",
        "SELECT COUNT(ctid) FROM (SELECT *, ctid FROM person) AS q",
        "SELECT *, ctid FROM town WHERE ctid IS NULL",
        "SELECT COUNT(*) FROM person WHERE ctid = '(0,1)'",
    ):
        with pytest.raises(Refusal) as refused:
            session.execute(sql)
        assert refused.value.sqlstate == "42703", sql


def test_a_column_of_that_name_is_one(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "places.duckdb")) as connection:
        connection.execute("CREATE TABLE town (ctid TEXT, name TEXT); INSERT INTO town VALUES ('x', 'a')")
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY)")
    (tmp_path / "places.toml").write_text(
        'database = "duckdb:places.duckdb"\n[privacy]\nepsilon = 1\n[tables.person]\nunit = "id"\n'
        "[tables.town]\npublic = true\n"
    )
    open_ledger(load_policy(tmp_path / "places.toml"), create=True).close()
    with Session.open(tmp_path / "places.toml") as session:
        assert list(session.execute("SELECT t.name, ctid, t.* FROM town t LIMIT 5").rows) == [
            ("a", "x", "x", "a")
        ]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH t AS (SELECT name AS ctid FROM town) SELECT *, ctid FROM t ORDER BY 1 LIMIT 1",
        "SELECT *, ctid FROM (SELECT name AS ctid FROM town) AS t ORDER BY 1 LIMIT 1",
        "SELECT *, ctid FROM town AS t (ctid) ORDER BY 1 LIMIT 1",
        "SELECT *, ctid FROM mine ORDER BY 1 LIMIT 1",
        "SELECT *, ctid FROM glance ORDER BY 1 LIMIT 1",
    ],
)
def test_a_name_that_the_statement_or_the_analyst_gives_is_one(session: Session, sql: str) -> None:
    made = next((kind for kind in ("TABLE mine", "VIEW glance") if kind.split()[1] in sql), None)
    if made is not None:
        session.execute(f"CREATE {made} AS SELECT name AS ctid FROM town")
    assert list(session.execute(sql).rows) == [("a", "a")]
    if made is not None:
        session.execute(f"DROP {made}")
