"""Views of a DuckDB: what is taken, what is refused and where, what is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import PolicyError, Refusal
from dpsql.plan.views import build_catalog, build_views, view_reports
from dpsql.policy import Policy, check, narrowed, parse_policy, scaffold
from dpsql.policy.catalog import check_access
from dpsql.relation.catalog import Catalog, View
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.testing.injected_noise import ZeroNoise

TABLES = """
CREATE TABLE patient (id INTEGER PRIMARY KEY, sex VARCHAR, age INTEGER);
CREATE TABLE visit (pid INTEGER NOT NULL REFERENCES patient (id), cost DOUBLE, days INTEGER, seen TIMESTAMP, code VARCHAR);
CREATE TABLE icd (code VARCHAR PRIMARY KEY, label VARCHAR);
INSERT INTO patient SELECT i, CASE WHEN i % 2 = 0 THEN 'm' ELSE 'f' END, i FROM range(10) t(i);
INSERT INTO visit SELECT i % 10, 1000, i, TIMESTAMP '2024-01-01', 'A' FROM range(20) t(i);
"""
POLICY = """
database = "duckdb:clinic.duckdb"
dataset = "clinic"
[privacy]
epsilon = 10
delta = 1e-6
[tables.patient]
unit = "id"
hidden = true
[tables.visit]
unit = { column = "pid", references = "patient.id" }
max_rows = 5
hidden = true
[tables.visit.columns]
cost = { bounds = [0, 50] }
[tables.icd]
public = true
[tables.v]
view = true
"""


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute(TABLES)
        yield made


def read(
    connection: duckdb.DuckDBPyConnection, text: str, more: str = "", others: str = ""
) -> tuple[Policy, dict[str, View], list[str]]:
    """Return the policy with the view `v` of a text, the views, and the problems."""
    connection.execute(f"{others}; CREATE OR REPLACE VIEW v AS {text}")
    policy = parse_policy(POLICY + more, Path("/nowhere/clinic.toml"))
    with DuckDBBackend.over(connection).snapshot() as snapshot:
        found, problems = build_views(policy, snapshot.schema())
    return policy, found, [problem.message for problem in problems.values()]


TAKEN = {
    "SELECT * FROM patient": ("private", ("patient",)),
    "SELECT v.days, p.sex FROM visit v JOIN patient p ON v.pid = p.id WHERE v.cost > 3": ("private", ("visit", "patient")),
    "SELECT pid, count(*) AS n FROM visit GROUP BY pid": ("private", ("visit",)),
    "SELECT sex, count(*) AS n FROM patient GROUP BY sex": ("released", ("patient",)),
    "SELECT code, label FROM icd": ("public", ("icd",)),
    "WITH x AS (SELECT pid, sum(cost) AS t FROM visit GROUP BY pid) SELECT t FROM x": ("private", ("visit",)),
    'SELECT "substring"(code, 1, 2) AS c, code LIKE \'A%\' AS a FROM visit': ("private", ("visit",)),
    "SELECT pid, label FROM visit v LEFT JOIN icd i ON i.code = v.code": ("private", ("visit", "icd")),
}  # fmt: skip


@pytest.mark.parametrize("text", TAKEN)
def test_a_view_is_what_its_text_means(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    _, found, problems = read(connection, text)
    assert problems == []
    assert (found["v"].role, found["v"].reads) == TAKEN[text]
    live = connection.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = 'v'").fetchall()
    assert [column.name for column in found["v"].columns] == [name for (name,) in live]


REFUSED = {
    "SELECT pid / 2 AS h FROM visit": "text at 1:26: / of these numbers is a fraction to DuckDB",
    "SELECT CAST(pid / 2 AS INTEGER) AS h FROM visit": "is a fraction to DuckDB",
    "SELECT seen < now() AS late FROM visit": "reads the clock",
    "SELECT a.pid, b.cost FROM visit a, visit b": "could put rows of two people together",
    "SELECT * EXCLUDE (code) FROM visit": "text at 1:25: this form is not supported here",
    "SELECT pid FROM visit ORDER BY pid LIMIT 3": "the view's text",
    "SELECT x FROM other": 'reads "other", which is not declared; declare it, with hidden = true',
    "SELECT * FROM read_csv('/nowhere/*.csv')": "read_csv() reads files",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_in_a_statement_is_refused_in_a_view(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, text: str
) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    connection.execute("CREATE TABLE other (x INTEGER)")
    policy, found, problems = read(connection, text.replace("/nowhere", str(tmp_path)))
    assert found == {}
    (problem,) = problems
    assert problem.startswith("clinic.toml: tables.v: ")
    assert REFUSED[text] in problem
    with DuckDBBackend.over(connection).snapshot() as snapshot:
        catalog = build_catalog(policy, snapshot.schema())
    assert dict(catalog.left_out) == {"v": problem}
    assert list(catalog.shown) == ["icd"]


def test_views_over_views(connection: duckdb.DuckDBPyConnection) -> None:
    inner = "[tables.w]\nview = true\nhidden = true\n"
    _, found, problems = read(connection, "SELECT days FROM w", inner, "CREATE VIEW w AS SELECT * FROM visit")
    assert problems == []
    assert found["v"].reads == ("visit",)
    _, found, problems = read(connection, "SELECT days FROM w")
    assert "which is not declared" in problems[0]


def test_a_view_that_reads_itself(connection: duckdb.DuckDBPyConnection) -> None:
    inner = "[tables.w]\nview = true\n"
    read(connection, "SELECT pid FROM visit", inner, "CREATE VIEW w AS SELECT pid FROM visit")
    connection.execute("CREATE OR REPLACE VIEW w AS SELECT * FROM v")
    _, found, problems = read(connection, "SELECT * FROM w", inner)
    assert found == {}
    assert all("reads itself" in problem for problem in problems)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('unit = "pid"', "declare it on those"),
        ("public = true", "declare it on those"),
        ("max_rows = 3", "declare it on those that the view reads"),
        ('source = "gone"', 'has no view "gone"'),
        ('source = "icd"', "is a table, and no view"),
        ("columns.t = { max_length = 9 }", "this one is computed; write left(…, n)"),
        (
            "columns.d = { randomized = { p = 0.75 }, values = [1, 2, { null = true }] }",
            "is of answers as they were given",
        ),
        ("columns.d = { bounds = [0.5, 9] }", "write whole numbers"),
        ("columns.f = { values = [0.5] }", "which cannot be a group key"),
        ("columns.nothing = {}", 'no column "nothing"'),
    ],
)
def test_what_cannot_be_declared_of_a_view(
    connection: duckdb.DuckDBPyConnection, line: str, said: str
) -> None:
    try:
        _, _, problems = read(
            connection, "SELECT days * 2 AS d, code || 'x' AS t, cost * 2 AS f FROM visit", line
        )
    except PolicyError as error:
        problems = [error.message]
    assert said in problems[0]


COMPUTED = (
    "SELECT p.sex, date_part('year', v.seen) AS year, v.cost * 2 AS twice, v.days + 0 AS day, "
    "CASE WHEN v.days > 9 THEN 'long' ELSE 'short' END AS kind, upper(v.code) AS code FROM visit v JOIN patient p ON p.id = v.pid",
    """
[tables.v.columns]
year = { bounds = [2000, 2030] }
twice = { bounds = [0, 30], step = 0.5 }
day = { bounds = [3, 6], values = [3, 4, 5] }
code = { values = ["A", "B"] }
""",
)


def test_bounds_and_values_of_computed_columns_are_enforced(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    text, columns = COMPUTED
    _, found, problems = read(connection, text, columns)
    assert problems == []
    known = {column.name: column for column in found["v"].columns}
    assert known["year"].bounds == (2000, 2030)
    assert known["twice"].bounds == (0, 30)  # of 0 to 100, which follow from cost's
    assert known["kind"].values == ("long", "short")
    assert known["code"].values == ("A", "B")
    policy = parse_policy(POLICY + columns, tmp_path / "clinic.toml")
    with ExitStack() as stack:
        dataset = Dataset(policy, DuckDBBackend.over(connection), open_ledger(policy, create=True))
        session = stack.enter_context(Session(dataset, "ann", _noise=ZeroNoise()))
        (sums,) = session.execute("SELECT SUM(twice), SUM(day), AVG(year), COUNT(*) FROM v").rows
        assert [float(value) for value in sums] == pytest.approx([20 * 30, 3 * 4 + 4 + 5 + 6 * 14, 2024, 20])
        assert session.execute("SELECT day, COUNT(*) FROM v GROUP BY day ORDER BY day").rows == [
            (3, 1),
            (4, 1),
            (5, 1),
        ]
        assert session.execute("SELECT code, COUNT(*) FROM v GROUP BY code ORDER BY code").rows == [
            ("A", 20),
            ("B", 0),
        ]
        assert session.execute("SELECT kind, COUNT(*) FROM v GROUP BY kind ORDER BY kind").rows == [
            ("long", 10),
            ("short", 10),
        ]
        assert session.execute("SELECT COUNT(*) FROM v WHERE day > 100").rows == [(0,)]
        session.execute(
            "SELECT a.sex, COUNT(*) FROM v a WHERE EXISTS (SELECT 1 FROM icd WHERE icd.code = a.code) GROUP BY a.sex"
        )


def test_nobody_declares_what_is_computed_of_public_tables(connection: duckdb.DuckDBPyConnection) -> None:
    line = "[tables.v.columns]\nn = { bounds = [0, 9] }\n"
    for text in ("SELECT length(code) AS n FROM icd", "SELECT sex, count(*) AS n FROM patient GROUP BY sex"):
        _, _, problems = read(connection, text, line)
        assert "is computed of what is nobody's, or of noisy answers" in problems[0]


@pytest.fixture
def session(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> Iterator[Session]:
    connection.execute(
        "CREATE VIEW v AS SELECT p.sex, v.cost, v.days, v.pid FROM visit v JOIN patient p ON p.id = v.pid"
    )
    columns = '[tables.v.columns]\ncost = { bounds = [0, 10] }\ndays = { bounds = [0, 4] }\nsex = { values = ["m", "f"] }\n'
    policy = parse_policy(POLICY + columns, tmp_path / "clinic.toml")
    with ExitStack() as stack:
        dataset = Dataset(policy, DuckDBBackend.over(connection), open_ledger(policy, create=True))
        yield stack.enter_context(Session(dataset, "ann", _noise=ZeroNoise()))


def test_declared_bounds_and_values_hold(session: Session) -> None:
    sums = session.execute("SELECT SUM(cost), SUM(days), COUNT(*) FROM v").rows
    assert [float(value) for value in sums[0]] == pytest.approx([200.0, 0 + 1 + 2 + 3 + 4 * 16, 20.0])
    assert [
        key for key, _ in session.execute("SELECT sex, COUNT(*) FROM v GROUP BY sex ORDER BY 1").rows
    ] == ["f", "m"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visit",
        "SELECT COUNT(*) FROM v a, v b",
        "SELECT cost FROM v",
        "SELECT COUNT(*) FROM nothing",
    ],
)
def test_refusals_do_not_name_hidden_tables(session: Session, sql: str) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute(sql)
    said = f"{refused.value.message} {refused.value.hint}"
    assert "patient" not in said
    assert "visit" not in said.replace('table "visit" does not exist', "")
    assert refused.value.position is not None
    assert refused.value.position.offset < len(sql)


def test_what_is_shown(session: Session) -> None:
    assert set(session.catalog.shown) == {"icd", "v"}
    assert isinstance(session.catalog, Catalog)


def test_check_and_init_say_what_a_view_is(connection: duckdb.DuckDBPyConnection) -> None:
    policy, _, _ = read(connection, "SELECT pid, days FROM visit")
    with DuckDBBackend.over(connection).snapshot() as snapshot:
        live = snapshot.schema()
    report = view_reports(check(policy, live), policy, live)
    assert "v: a view of visit: private, each row is one person's" in report.to_text()
    assert "# [tables.v]\n# view = true\n" in scaffold(live, "duckdb:clinic.duckdb")


def test_a_bad_view_is_left_out_for_its_owner_alone(connection: duckdb.DuckDBPyConnection) -> None:
    text = POLICY + '[analysts.alice]\nepsilon = 1\ntables = ["v", "icd"]\nhide = ["v.h"]\n'
    connection.execute("CREATE OR REPLACE VIEW v AS SELECT pid / 2 AS h FROM visit")
    policy = parse_policy(text, Path("/nowhere/clinic.toml"))
    with DuckDBBackend.over(connection).snapshot() as snapshot:
        catalog = build_catalog(policy, snapshot.schema())
    assert list(catalog.left_out) == ["v"]
    assert check_access(policy, catalog) == []
    assert narrowed(catalog, policy.analysts["alice"].access).left_out == {}
    query = parse_statement("SELECT COUNT(*) FROM v")
    assert isinstance(query, AdmittedQuery)
    with pytest.raises(Refusal, match='table "v" does not exist') as refused:
        bind(query, BindingContext(catalog, query.text, (), 0, {}))
    assert "dpsql check says what is wrong with it" in (refused.value.owner_hint or "")
    assert "dpsql check" not in str(refused.value)
