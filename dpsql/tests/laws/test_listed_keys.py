"""Keys of public tables: listed beforehand, in no way a person's doing, on each engine (soundness.md 1.7)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.engine.explain import Explanation
from dpsql.engine.spine import listed
from dpsql.errors import Refusal
from dpsql.plan import planner
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.plan.privacy import public_inputs
from dpsql.policy import load_policy
from dpsql.relation.catalog import Scalar
from dpsql.relation.types import SqlType
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import Measured, World, compared, engine_of, measure_release, world

_POLICY = """
database = "duckdb:rows.duckdb"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 1000
delta = {delta}
[defaults]
epsilon = 1
delta = {delta}
[tables.person]
unit = "id"
[tables.person.columns]
sex = {{ values = ["f", "m"] }}
[tables.visit]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 4
max_groups = 2
[tables.visit.columns]
place = {{}}
fee = {{ bounds = [0, 9] }}
[tables.place]
public = true
[tables.land]
public = true
"""
_ROWS = """
CREATE TABLE person (id INTEGER PRIMARY KEY, sex VARCHAR);
CREATE TABLE land (code VARCHAR PRIMARY KEY, name VARCHAR);
CREATE TABLE place (id INTEGER PRIMARY KEY, title VARCHAR, land VARCHAR, opened DATE, size DECIMAL(5,2));
CREATE TABLE visit (person_id INTEGER NOT NULL REFERENCES person (id), place INTEGER, fee INTEGER);
INSERT INTO person VALUES (1, 'f'), (2, 'm'), (3, 'f');
INSERT INTO land VALUES ('a', 'Aland'), ('b', 'Boland'), ('c', 'Coland');
INSERT INTO place VALUES (1, 'Zoo', 'a', '2024-01-31', 1.50), (2, 'Bar', 'a', '2024-02-01', 2), (3, 'bar', 'b', NULL, NULL),
  (4, NULL, 'b', '2024-02-29', 2), (5, 'Bar', 'b', '2024-02-01', 2.00);
INSERT INTO visit VALUES (1, 1, 3), (1, 1, 4), (2, 3, 1), (2, 5, 2), (3, NULL, 1), (3, 99, 1);
"""
_JOINED = "FROM visit v JOIN place p ON p.id = v.place"


@contextmanager
def desk(
    folder: Path, server: PostgresServer | None, delta: str = "0", gone: str = ""
) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection, object]]:
    (folder / "policy.toml").write_text(_POLICY.format(delta=delta))
    policy = load_policy(folder / "policy.toml")
    with ExitStack() as stack:
        connection = stack.enter_context(empty_duckdb())
        connection.execute(_ROWS + gone)
        store = open_ledger(policy, create=True)
        twin, backend = engine_of(stack, connection, policy, server)
        if twin is not None:
            twin.refresh()
        session = stack.enter_context(
            Session(Dataset(policy, backend, store, warm_sealed()), "tester", _noise=ZeroNoise())
        )
        yield session, connection, twin


@pytest.fixture
def session(tmp_path: Path, engine: PostgresServer | None) -> Iterator[Session]:
    with desk(tmp_path, engine) as (opened, _, _):
        yield opened


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"SELECT title, COUNT(*) {_JOINED} GROUP BY title", [("Bar", 1), ("Zoo", 2), ("bar", 1), (None, 0)]),
        (f"SELECT title, COUNT(*) {_JOINED} WHERE p.land = 'a' GROUP BY title", [("Bar", 0), ("Zoo", 2)]),
        (f"SELECT v.place, COUNT(*) {_JOINED} WHERE v.place <> 2 AND v.place < 5 GROUP BY v.place", [("1", 2), ("3", 1), ("4", 0)]),
        (f"SELECT title, COUNT(*) {_JOINED} WHERE title <> 'Zoo' GROUP BY title", [("Bar", 1), ("bar", 1)]),
        (
            f"SELECT land, title, COUNT(*) {_JOINED} WHERE title IS NOT NULL GROUP BY land, title",
            [("a", "Bar", 0), ("a", "Zoo", 2), ("b", "Bar", 1), ("b", "bar", 1)],
        ),
        (
            f"SELECT sex, title, COUNT(*) {_JOINED} JOIN person q ON q.id = v.person_id "
            "WHERE p.land = 'a' AND sex <> 'm' GROUP BY sex, title",
            [("f", "Bar", 0), ("f", "Zoo", 2)],
        ),
        (
            f"SELECT name, title, COUNT(*) {_JOINED} JOIN land l ON l.code = p.land WHERE p.id < 4 GROUP BY name, title",
            [("Aland", "Bar", 0), ("Aland", "Zoo", 2), ("Boland", "bar", 1)],
        ),
        (
            "SELECT title, COUNT(*) FROM visit v LEFT JOIN place p ON p.id = v.place WHERE fee < 4 GROUP BY title",
            [("Bar", 1), ("Zoo", 1), ("bar", 1), (None, 2)],
        ),
        (
            "SELECT title, COUNT(*) FROM visit v LEFT JOIN place p ON p.id = v.place WHERE title > 'Z' GROUP BY title",
            [("Zoo", 2), ("bar", 1)],
        ),
        (
            f"SELECT CAST(date_trunc('month', opened) AS date) AS m, SUM(fee) {_JOINED} WHERE opened IS NOT NULL GROUP BY 1",
            [("2024-01-01", 7), ("2024-02-01", 2)],
        ),
        (f"SELECT opened, COUNT(*) {_JOINED} GROUP BY opened", [("2024-01-31", 2), ("2024-02-01", 1), ("2024-02-29", 0), (None, 1)]),
        (f"SELECT size, COUNT(DISTINCT v.person_id) {_JOINED} GROUP BY size", [("1.5", 1), ("2", 1), (None, 1)]),
        ("SELECT title, COUNT(*) FROM visit, place p WHERE p.id = 1 GROUP BY title", [("Zoo", 6)]),
    ],
)  # fmt: skip
def test_all_keys_of_the_table_are_answered_and_no_others(
    session: Session, sql: str, rows: list[tuple[object, ...]]
) -> None:
    """There is no delta: nothing is found by a threshold."""
    shown = session.explain(sql)
    assert shown.plan.delta == 0
    answer = session.execute(sql)
    assert [(*map(_plain, row[:-1]), int(row[-1])) for row in _ordered(answer.rows)] == rows


def _ordered(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(
        rows,
        key=lambda row: [
            (value is None, value if isinstance(value, str) else str(value)) for value in row[:-1]
        ],
    )


def _plain(value: object) -> str | None:
    shown = str(value)
    return None if value is None else shown.rstrip("0").rstrip(".") if "." in shown else shown


def test_what_is_explained(session: Session) -> None:
    sql = f"SELECT title, COUNT(*) {_JOINED} GROUP BY title"
    assert "  groups: 4, the keys of place, public" in session.explain(sql).text().split("\n")


_FLAGS = """
ALTER TABLE place ADD COLUMN open BOOLEAN;
ALTER TABLE place ADD COLUMN big BOOLEAN;
UPDATE place SET open = id < 3, big = id % 2 = 0;
"""


def test_flags_of_a_table_are_the_pairs_that_it_has(tmp_path: Path, engine: PostgresServer | None) -> None:
    """Their pairs are not all that two flags can be: a total is the sum of those, and no finer answer is read of
    them."""
    with desk(tmp_path, engine, gone=_FLAGS) as (session, _, _):
        both = session.execute(f"SELECT open, big, COUNT(*) {_JOINED} GROUP BY open, big")
        assert len(both.rows) == 4
        session.execute("SET dpsql.epsilon = 0.1")
        for sql, wanted in (
            ("big", [(False, 4), (True, 0), (None, 0)]),
            ("open", [(False, 2), (True, 2), (None, 0)]),
        ):
            answer = session.execute(f"SELECT {sql}, COUNT(*) {_JOINED} GROUP BY {sql}")
            assert list(answer.rows) == wanted
        said = session.explain(f"SELECT open, big, COUNT(*) {_JOINED} GROUP BY ROLLUP (open, big)").text()
    assert "grouping set (open): each row the sum of 2 groups" in said
    assert "grouping set (): each row the sum of 4 groups" in said


def test_a_table_that_grows_is_another_question(tmp_path: Path, engine: PostgresServer | None) -> None:
    sql = f"SELECT title, COUNT(*) {_JOINED} GROUP BY title"
    with desk(tmp_path, engine) as (session, connection, twin):
        assert len(session.execute(sql).rows) == 4
        again = session.execute(sql)
        assert again.receipt is not None
        assert again.receipt.epsilon == 0
        connection.execute("INSERT INTO place VALUES (6, 'New', 'c', NULL, NULL)")
        if twin is not None:
            twin.refresh()  # type: ignore[attr-defined]
        grown = session.execute(sql)
        assert len(grown.rows) == 5
        assert grown.receipt is not None
        assert grown.receipt.epsilon == 1


def test_too_many_keys_are_found_by_threshold(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"SELECT title, COUNT(*) {_JOINED} GROUP BY title"
    monkeypatch.setattr(planner, "MAX_DOMAIN", 3)
    with pytest.raises(Refusal) as refused:
        session.execute(sql)
    assert refused.value.sqlstate == "PV103"  # without a delta nothing is found
    folder = tmp_path / "with delta"
    folder.mkdir()
    with desk(folder, None, "1e-6") as (other, _, _):
        explained: Explanation = other.explain(sql)
        assert explained.plan.delta > 0
        assert "noisy count of people" in explained.text()


def test_columns_are_described_without_a_row(session: Session) -> None:
    sql = f"SELECT title, COUNT(*) AS n {_JOINED} GROUP BY title"
    described = session.describe(sql)
    assert [column.name for column in described] == ["title", "n"]
    assert described == session.execute(sql).columns


def test_keys_of_people_are_not_listed(session: Session) -> None:
    """What people's own tables hold is found by a threshold alone, beside keys that are listed too."""
    for keys in ("v.fee + v.place", "title, v.place + 1", "v.place + p.id"):
        places = ", ".join(str(place + 1) for place in range(keys.count(",") + 1))
        sql = f"SELECT {keys}, COUNT(*) FROM visit v JOIN place p ON p.id > v.place GROUP BY {places}"
        with pytest.raises(Refusal) as refused:
            session.execute(sql)
        assert refused.value.sqlstate == "PV103", keys


def test_a_person_moves_no_key(tmp_path: Path, engine: PostgresServer | None) -> None:
    """The list, the charge and all but the numbers are the same whoever is there (law L6)."""
    sql = f"SELECT title, COUNT(*) {_JOINED} GROUP BY title"
    found = []
    for number, gone in enumerate(("", "DELETE FROM visit WHERE person_id = 2", "DELETE FROM visit")):
        folder = tmp_path / str(number)
        folder.mkdir()
        with desk(folder, engine, gone=gone) as (session, _, _):
            answer = session.execute(sql)
            assert answer.receipt is not None
            found.append(
                ([row[0] for row in answer.rows], answer.receipt.epsilon, session.explain(sql).text())
            )
    assert found[0] == found[1] == found[2]


def test_a_list_of_people_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The law before this one fails where people's tables are taken for public ones."""
    monkeypatch.setattr(public_inputs, "_is_public", lambda item: True)
    sql = "SELECT place, COUNT(*) FROM visit GROUP BY place"
    found = []
    for number, gone in enumerate(("", "DELETE FROM visit WHERE person_id = 2")):
        folder = tmp_path / str(number)
        folder.mkdir()
        with desk(folder, None, gone=gone) as (session, _, _):
            found.append([row[0] for row in session.execute(sql).rows])
    assert found[0] != found[1]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT title, COUNT(*), SUM(fee), COUNT(DISTINCT v.person_id) {_JOINED} GROUP BY title",
        f"SELECT land, title, AVG(fee) {_JOINED} WHERE title <> 'Zoo' GROUP BY land, title",
        "SELECT title, COUNT(*), COUNT(DISTINCT fee) FROM visit v LEFT JOIN place p ON p.id = v.place GROUP BY title",
        f"SELECT sex, title, COUNT(*) {_JOINED} JOIN person q ON q.id = v.person_id WHERE sex <> 'm' GROUP BY sex, title",
    ],
)
def test_one_person_less(tmp_path: Path, engine: PostgresServer | None, sql: str) -> None:
    """L1 over listed keys, with far more rows of a person than count."""
    more = "; INSERT INTO visit SELECT 1 + i % 3, 1 + i // 3 % 5, i % 10 FROM range(90) AS r(i);"
    (tmp_path / "policy.toml").write_text(_POLICY.format(delta="1e-6"))
    policy = load_policy(tmp_path / "policy.toml")
    with world(tmp_path, policy=policy, schema=_ROWS + more, server=engine) as made:
        made.refresh()
        plan = _planned(made, sql)
        assert all(release.groups for release in plan.releases)
        here = _measured(made, plan)
        rows = made.connection.execute("SELECT * FROM visit").fetchall()
        losses = []
        for person in (1, 2, 3):
            made.connection.execute("DELETE FROM visit")
            kept = [row for row in rows if row[0] != person]
            insert(made.connection, "visit", kept)
            made.refresh()
            losses.append(compared(plan, here, _measured(made, plan), sql))
        assert max(losses) > Fraction(1, 2)


_BY_RANGE = "SELECT p.id, COUNT(q.id) AS n FROM place p LEFT JOIN person q ON q.id <= p.id + 2 WHERE p.id <> 3 GROUP BY p.id"


def _without_each(folder: Path, server: PostgresServer | None, sql: str) -> list[Fraction]:
    """The losses of a statement about people of whom no bound is declared, without each of them."""
    (folder / "policy.toml").write_text(_POLICY.format(delta="1e-6"))
    with world(folder, policy=load_policy(folder / "policy.toml"), schema=_ROWS, server=server) as made:
        made.connection.execute("DELETE FROM visit")
        made.refresh()
        plan = _planned(made, sql)
        here = _measured(made, plan)
        rows = made.connection.execute("SELECT * FROM person").fetchall()
        losses = []
        for person in (1, 2, 3):
            made.connection.execute("DELETE FROM person")
            insert(made.connection, "person", [r for r in rows if r[0] != person])
            made.refresh()
            losses.append(compared(plan, here, _measured(made, plan), sql))
    return losses


@pytest.mark.parametrize(
    "sql",
    [
        _BY_RANGE,
        _BY_RANGE.replace("COUNT(q.id)", "COUNT(DISTINCT q.id)"),
        "SELECT p.id, q.sex, COUNT(*) FROM place p JOIN person q ON q.id >= p.id - 4 WHERE q.sex = 'f' GROUP BY p.id, q.sex",
    ],
)
def test_a_row_of_each_listed_group_needs_no_bound(
    tmp_path: Path, engine: PostgresServer | None, sql: str
) -> None:
    """Each place is one row and one group, so their number bounds who is joined by a range (soundness.md 1.14)."""
    assert max(_without_each(tmp_path, engine, sql)) == 1


def test_without_a_row_of_each_group_the_list_is_no_bound(tmp_path: Path) -> None:
    sql = "SELECT p.title, COUNT(q.id) FROM place p LEFT JOIN person q ON q.id <= p.id + 2 GROUP BY p.title"
    with pytest.raises(Refusal, match="max_rows is not declared"):
        _without_each(tmp_path, None, sql)


def _planned(made: World, sql: str) -> planner.Plan:
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    relation = bind(query, BindingContext(made.catalog, query.text, (), 0, {}))

    def read(query: BackendQuery, types: tuple[SqlType, ...]) -> list[tuple[Scalar, ...]]:
        with made.backend.snapshot() as snapshot:
            return listed([row for chunk in snapshot.run(query.sql, []) for row in chunk], types)

    return planner.plan(
        relation, made.catalog, planner.PrivacyParameters(Fraction(1), Fraction(1, 10**6), 1, False), read
    )


def _measured(made: World, plan: planner.Plan) -> Measured:
    with made.backend.snapshot() as snapshot:
        return [measure_release(release, snapshot) for release in plan.releases]
