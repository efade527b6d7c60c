"""An analyst's own tables: what is written is the answer that was charged, and nobody else's, and shadows nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.engine import Answer, Session
from dpsql.engine.dataset import open_ledger
from dpsql.engine.workspace import folder_of
from dpsql.errors import DpsqlError, EngineFailure, Refusal
from dpsql.policy import load_policy
from dpsql.postprocess import workspace
from dpsql.postprocess.workspace import Change, file_of
from dpsql.tests.support.prototype import made_once

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 1000
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
city = { values = ["north", "south"] }
[tables.place]
public = true
[analysts.alice]
epsilon = 500
[analysts.bob]
epsilon = 500
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, city TEXT);
INSERT INTO person SELECT i, i % 100, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END FROM range(2000) AS r(i);
CREATE TABLE place (code INTEGER PRIMARY KEY, title TEXT, secret TEXT);
INSERT INTO place VALUES (1, 'one', 'x'), (2, 'two', 'y'), (3, 'three', 'z');
"""
COUNTS = "SELECT city, count(*) AS n FROM person GROUP BY city"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path)


@made_once
def make(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(SCHEMA)
    (tmp_path / "people.toml").write_text(POLICY)
    open_ledger(load_policy(tmp_path / "people.toml"), create=True).close()
    return tmp_path


@pytest.fixture
def alice(folder: Path) -> Iterator[Session]:
    with Session.open(folder / "people.toml", analyst="alice") as opened:
        yield opened


def rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return list(session.execute(sql).rows)


def charge(answer: Answer) -> Fraction:
    return Fraction(0) if answer.receipt is None else answer.receipt.epsilon


def code(session: Session, sql: str, parameters: tuple[object, ...] = ()) -> str:
    spent = session.budget().epsilon_spent_nano
    with pytest.raises(DpsqlError) as failed:
        session.execute(sql, parameters)
    assert session.budget().epsilon_spent_nano == spent
    return failed.value.sqlstate


# --- what is kept is the very answer ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write", ["CREATE TABLE t AS {}", "CREATE TEMP TABLE t AS {}", "INSERT INTO made {}", "SELECT * INTO t FROM ({}) AS q"]
)  # fmt: skip
def test_it_is_charged_and_drawn_as_alone(folder: Path, write: str) -> None:
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        alice.execute("CREATE TABLE made (city text, n bigint)")
        wrote = alice.execute(write.format(COUNTS))
        name = "made" if "made" in write else "t"
        kept = sorted(rows(alice, f"SELECT * FROM {name}"))
        again = alice.execute(COUNTS)
        assert wrote.command in ("SELECT 2", "INSERT 0 2")
        assert (charge(wrote), charge(again)) == (1, 0)
        assert kept == sorted(again.rows)


def test_to_read_it_again_is_free_and_the_same_whatever_is_drawn_later(alice: Session) -> None:
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    before = rows(alice, "SELECT * FROM t")
    alice.execute("SET dpsql.reuse = off")
    assert charge(alice.execute(COUNTS)) == 1
    answer = alice.execute("SELECT * FROM t")
    assert charge(answer) == 0
    assert list(answer.rows) == before


def test_what_is_wrong_with_the_table_is_said_before_the_charge(alice: Session) -> None:
    alice.execute("CREATE TABLE t (a bigint)")
    assert code(alice, f"CREATE TABLE t AS {COUNTS}") == "42P07"
    assert code(alice, f"CREATE TABLE nowhere.t AS {COUNTS}") == "3F000"
    assert code(alice, f"INSERT INTO t {COUNTS}") == "42601"
    assert code(alice, "INSERT INTO t SELECT count(*) > 3 FROM person") == "42804"
    assert code(alice, "CREATE TABLE u AS SELECT count(*), count(*) FROM person") == "42701"
    assert (
        code(alice, "CREATE TABLE u AS SELECT array_agg(n) FROM (SELECT count(*) AS n FROM person) t")
        == "0A000"
    )
    assert code(alice, "CREATE TABLE u AS SELECT age FROM person") == "PV002"
    assert code(alice, "CREATE TABLE u AS SELECT * FROM person LIMIT 5") == "PV002"


def test_a_full_workspace_is_told_before_the_charge(alice: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    alice.execute("CREATE TABLE t (a bigint)")
    monkeypatch.setattr(workspace, "_MOST_OBJECTS", 1)
    assert code(alice, f"CREATE TABLE u AS {COUNTS}") == "53100"


def test_a_write_that_fails_after_the_charge_is_told_and_free_to_ask_again(
    alice: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Change, *args: object) -> int:
        raise EngineFailure("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Change, "insert", broken)
        with pytest.raises(EngineFailure):
            alice.execute(f"CREATE TABLE t AS {COUNTS}")
    assert alice.budget().epsilon_spent_nano == 10**9
    assert code(alice, "SELECT * FROM t") == "42P01"
    wrote = alice.execute(f"CREATE TABLE t AS {COUNTS}")
    assert charge(wrote) == 0
    assert len(rows(alice, "SELECT * FROM t")) == 2


def test_bars_are_columns_of_what_is_made(alice: Session) -> None:
    alice.execute("SET dpsql.intervals = 0.95")
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    answer = alice.execute("SELECT * FROM t")
    assert [column.name for column in answer.columns] == ["city", "n", "n_low", "n_high"]
    assert all(low < n < high for _, n, low, high in answer.rows)
    alice.execute("INSERT INTO t (city, n) SELECT 'all', count(*) FROM person")
    assert rows(alice, "SELECT n_low FROM t WHERE city = 'all'") == [(None,)]


def test_no_bar_is_claimed_of_noise_that_was_kept(alice: Session) -> None:
    """One draw twice is never taken for two, nor for none: what is made of noisy numbers that are written has no bars."""
    alice.execute("CREATE VIEW v AS " + COUNTS)
    alice.execute("CREATE TABLE t (city text, n bigint)")
    alice.execute(f"INSERT INTO t {COUNTS}")
    alice.execute("CREATE TABLE copied AS SELECT city, n * 2 AS twice, 1 AS one FROM t")
    alice.execute("CREATE TABLE sent (n bigint)")
    alice.execute("INSERT INTO sent VALUES (5)")
    alice.execute("SET dpsql.intervals = 0.95")
    for sql, width in (
        ("SELECT city, n FROM t", 2),
        ("SELECT sum(n) AS s FROM t", 1),
        ("SELECT a.n + b.n AS s FROM t a JOIN t b USING (city)", 1),
        ("SELECT t.n - v.n AS s, v.n FROM t JOIN v USING (city)", 4),
        ("SELECT twice, one FROM copied", 2),
        ("SELECT count(*) AS c FROM t", 1),
        ("SELECT v.n + sent.n AS s FROM v, sent", 3),
        ("SELECT v.n FROM v JOIN t USING (city) WHERE t.n > 10", 3),
        ("SELECT (SELECT max(n) FROM t) - v.n AS s FROM v", 1),
    ):
        assert len(alice.execute(sql).columns) == width, sql
    alice.execute("RESET dpsql.intervals")
    ends = rows(alice, "SELECT dp_low(t.n + v.n), dp_high(v.n), dp_low(t.n) FROM t JOIN v USING (city)")
    assert all(low is None and high is not None and kept is None for low, high, kept in ends)


def test_a_number_that_was_sent_is_a_constant(alice: Session) -> None:
    """Sent back, a released number is no draw: the bar of what is asked beside it covers just when its own does."""
    ((released, low, high),) = rows(
        alice, "SELECT count(*), dp_low(count(*)), dp_high(count(*)) FROM person WHERE age < 50"
    )
    alice.execute("CREATE TABLE sent (n bigint)")
    alice.execute("INSERT INTO sent VALUES ($1)", (released,))
    asked = "SELECT sent.n - q.c, dp_low(sent.n - q.c), dp_high(sent.n - q.c) FROM sent, ({}) AS q"
    counted = asked.format("SELECT count(*) AS c FROM person WHERE age < 50")
    assert rows(alice, counted) == [(0, released - high, released - low)]


def test_no_bar_is_claimed_beside_rows_that_noise_chose(alice: Session) -> None:
    """Their number is moved by the noise that chose them, also where no noisy column was kept."""
    alice.execute("CREATE VIEW v AS " + COUNTS)
    for name, rest in (("chosen", " WHERE n > 990"), ("first", " ORDER BY n LIMIT 1"), ("whole", "")):
        alice.execute(f"CREATE TABLE {name} (city text)")
        alice.execute(f"INSERT INTO {name} SELECT city FROM ({COUNTS}) AS q{rest}")
    alice.execute("CREATE TABLE later (city text)")
    alice.execute("INSERT INTO later SELECT city FROM chosen")
    alice.execute("SET dpsql.intervals = 0.95")
    for name, width in (("chosen", 1), ("first", 1), ("later", 1), ("whole", 3)):
        answer = alice.execute(f"SELECT v.n + (SELECT count(*) FROM {name}) AS s FROM v")
        assert len(answer.columns) == width, name


# --- people's rows and own ones -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT p.city, count(*) FROM person p JOIN t ON t.city = p.city GROUP BY p.city",
        "SELECT count(*) FROM person WHERE city IN (SELECT city FROM t)",
        "SELECT count(*) FROM person WHERE EXISTS (SELECT 1 FROM t WHERE t.city = person.city)",
        "SELECT count(*) FROM person WHERE age > (SELECT min(n) FROM t)",
        "SELECT count(*) FROM person, t",
        "SELECT count(*) FROM person LEFT JOIN (SELECT city FROM t UNION SELECT title FROM place) q USING (city)",
        "WITH w AS (SELECT * FROM t) SELECT sum(p.age) FROM person p JOIN w ON w.city = p.city",
        "SELECT count(*) FROM person WHERE age > (SELECT avg(n) FROM v)",
    ],
)
def test_own_rows_are_not_joined_to_peoples(alice: Session, sql: str) -> None:
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    alice.execute("CREATE VIEW v AS SELECT * FROM t")
    spent = alice.budget().epsilon_spent_nano
    with pytest.raises(Refusal) as refused:
        alice.execute(sql)
    assert refused.value.sqlstate == "0A000"
    assert "your own table" in refused.value.message
    assert refused.value.hint is not None
    assert alice.budget().epsilon_spent_nano == spent


def test_own_rows_stand_above_a_release(alice: Session) -> None:
    alice.execute("CREATE TABLE t AS VALUES ('north', 1), ('east', 2)")
    found = rows(
        alice,
        f"SELECT t.column1, t.column2, q.n FROM t LEFT JOIN ({COUNTS}) q ON q.city = t.column1 ORDER BY 2",
    )
    counts = dict(rows(alice, COUNTS))
    assert found == [("north", 1, counts["north"]), ("east", 2, None)]
    assert rows(alice, "SELECT t.column1, (SELECT count(*) FROM person p WHERE p.city = t.column1) FROM t")
    assert rows(alice, "SELECT count(*) FROM t JOIN place ON place.code = t.column2") == [(2,)]


def test_a_view_over_people_is_charged_when_it_is_asked(alice: Session) -> None:
    made = alice.execute("CREATE VIEW v AS SELECT city, age FROM person")
    assert charge(made) == 0
    answer = alice.execute("SELECT city, avg(age) FROM v GROUP BY city")
    assert charge(answer) == 1
    again = alice.execute("SELECT city, avg(age) FROM person GROUP BY city")
    assert charge(again) == 0
    assert sorted(again.rows) == sorted(answer.rows)
    assert code(alice, "CREATE TABLE t AS SELECT * FROM v") == "PV002"
    alice.execute("SET dpsql.intervals = 0.95")
    assert len(alice.execute("SELECT city, avg(age) AS a FROM v GROUP BY city").columns) == 4


def test_views_of_views_end(alice: Session) -> None:
    alice.execute("CREATE VIEW v AS SELECT 1 AS a")
    assert code(alice, "CREATE OR REPLACE VIEW v AS SELECT * FROM v") == "42P19"
    alice.execute("CREATE VIEW w AS SELECT * FROM v")
    assert code(alice, "CREATE OR REPLACE VIEW v AS SELECT a FROM w") == "42P19"
    for name, source in (("d1", "w"), ("d2", "d1"), ("d3", "d2")):
        alice.execute(f"CREATE VIEW {name} AS SELECT x.a FROM {source} x JOIN {source} y ON x.a = y.a")
    assert code(alice, "SELECT * FROM d3 a JOIN d3 b ON a.a = b.a") == "54001"
    alice.execute("ALTER VIEW v RENAME TO x")
    with pytest.raises(Refusal, match='in the view "w": table "v" does not exist'):
        alice.execute("SELECT * FROM w")


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["person", "PERSON", '"Person"', "place"])
def test_nothing_is_made_that_a_name_of_the_policy_hides(alice: Session, name: str) -> None:
    assert code(alice, f"CREATE TABLE {name} AS SELECT 1 AS a") == "42P07"
    assert code(alice, f"CREATE TEMP TABLE {name} (a int)") == "42P07"
    assert code(alice, f"CREATE VIEW {name} AS SELECT 1 AS a") == "42P07"
    alice.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert code(alice, f"ALTER TABLE t RENAME TO {name}") == "42P07"


def test_views_that_came_to_read_themselves_end(alice: Session) -> None:
    """By another name, and by a temporary one that goes before."""
    alice.execute("CREATE TABLE x (a int)")
    alice.execute("CREATE VIEW v AS SELECT * FROM x")
    alice.execute("CREATE VIEW w AS SELECT * FROM v")
    alice.execute("DROP TABLE x")
    alice.execute("ALTER VIEW w RENAME TO x")
    assert code(alice, "SELECT * FROM x") == "54001"
    alice.execute("DROP VIEW x")
    alice.execute("CREATE TABLE x (a int)")
    alice.execute("CREATE TEMP VIEW x AS SELECT * FROM v")
    assert code(alice, "SELECT * FROM v") == "54001"


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t WHERE true) IS NOT TRUE UNION ALL SELECT count(*) FROM person WHERE (true",
        "DELETE FROM t USING place p) q WHERE (p.code = t.a",
        'CREATE TABLE u ("" int)',
        f"CREATE TABLE u ({'c' * 128} int)",
        f"ALTER TABLE t RENAME COLUMN a TO {'c' * 128}",
        f"ALTER TABLE t RENAME TO {'c' * 128}",
        f"CREATE TABLE u AS SELECT 1 AS {'c' * 128}",
        f"CREATE VIEW u AS SELECT 1 AS {'c' * 128}",
    ],
)
def test_what_is_not_written_right_is_refused(alice: Session, sql: str) -> None:
    alice.execute("CREATE TABLE t (a bigint)")
    assert code(alice, sql) == "42601"


def test_hints_name_what_there_is(alice: Session) -> None:
    for number in range(25):
        alice.execute(f"CREATE TABLE t{number:02} (a int)")
    for sql in ("SELECT * FROM nothing", "DROP TABLE nothing"):
        with pytest.raises(Refusal) as refused:
            alice.execute(sql)
        hint = refused.value.hint
        assert hint is not None
        assert "your own: workspace.t00, workspace.t01" in hint
        assert "workspace.t19, …" in hint
        assert "t20" not in hint
    with pytest.raises(Refusal, match="RETURNING is not supported"):
        alice.execute("DELETE FROM t00 RETURNING *")
    with pytest.raises(Refusal) as refused:
        alice.execute("UPDATE t00 SET a = 1")
    assert "INSERT and DELETE" in str(refused.value.hint)


def test_a_table_has_so_many_columns(alice: Session) -> None:
    columns = ", ".join(f"c{i} int" for i in range(1601))
    assert code(alice, f"CREATE TABLE t ({columns})") == "54001"


def test_no_schema_is_told_from_the_owners_by_its_case_alone(alice: Session) -> None:
    assert code(alice, 'CREATE SCHEMA "PUBLIC"') == "42P06"
    assert code(alice, 'CREATE SCHEMA "Main"') == "42P06"


def test_a_name_of_the_policy_is_never_an_own_one(alice: Session) -> None:
    alice.execute("CREATE TABLE workspace.person AS SELECT 7 AS mine")
    alice.execute("CREATE SCHEMA other")
    alice.execute("CREATE TABLE other.place AS SELECT 8 AS mine")
    assert rows(alice, "SELECT mine FROM workspace.person") == [(7,)]
    assert rows(alice, "SELECT mine FROM other.place") == [(8,)]
    for name in ("person", "main.person", "public.person"):
        assert code(alice, f"SELECT mine FROM {name}") == "42703"
    assert code(alice, "SELECT mine FROM place") == "42703"
    for statement in (
        "DROP TABLE person",
        "INSERT INTO person VALUES (1)",
        "DELETE FROM person",
        "TRUNCATE main.person",
    ):
        assert code(alice, statement) == "42501"
    assert code(alice, "ALTER TABLE public.person RENAME TO x") == "42501"
    assert code(alice, "CREATE TABLE public.x AS SELECT 1 AS a") == "42501"
    assert code(alice, "CREATE SCHEMA pg_mine") == "42501"
    assert code(alice, "CREATE SCHEMA main") == "42P06"
    alice.execute("DROP TABLE workspace.person")
    alice.execute("DROP SCHEMA other CASCADE")


def test_a_policy_that_grows_takes_its_names_back(folder: Path) -> None:
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        alice.execute("CREATE TABLE later AS SELECT 1 AS mine")
        alice.execute("CREATE VIEW v AS SELECT * FROM later")
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE later (theirs INTEGER)")
    (folder / "people.toml").write_text(POLICY + "[tables.later]\npublic = true\n")
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        assert [column.name for column in alice.execute("SELECT * FROM later").columns] == ["theirs"]
        assert [column.name for column in alice.execute("SELECT * FROM v").columns] == ["theirs"]
        assert rows(alice, "SELECT mine FROM workspace.later") == [(1,)]


def test_an_own_name_of_a_query_is_what_it_was(alice: Session) -> None:
    """A plan that is remembered is of the policy's tables alone: an own table that is made anew is another one."""
    alice.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert rows(alice, "SELECT * FROM t") == [(1,)]
    alice.execute("DROP TABLE t")
    assert code(alice, "SELECT * FROM t") == "42P01"
    alice.execute("CREATE TABLE t AS SELECT 'x' AS b, 2 AS c")
    assert rows(alice, "SELECT * FROM t") == [("x", 2)]
    alice.execute("CREATE TEMP TABLE t AS SELECT 3 AS d")
    assert rows(alice, "SELECT * FROM t") == [(3,)]


# --- others -------------------------------------------------------------------------------------------------


def test_another_analyst_sees_nothing_of_it(folder: Path, alice: Session) -> None:
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    alice.execute("CREATE VIEW v AS SELECT 1 AS a")
    alice.execute("CREATE SCHEMA mine")
    alice.execute("CREATE TABLE mine.u AS SELECT 1 AS a")
    rows(alice, "SELECT * FROM t")
    with Session.open(folder / "people.toml", analyst="bob") as bob:
        for sql in (
            "SELECT * FROM t",
            "SELECT * FROM workspace.t",
            "SELECT * FROM mine.u",
            "SELECT * FROM v",
        ):
            with pytest.raises(Refusal) as refused:
                bob.execute(sql)
            assert refused.value.sqlstate == "42P01"
            assert "mine" not in (refused.value.hint or "")
        assert code(bob, "DROP TABLE t") == "42P01"
        assert code(bob, "DROP SCHEMA mine CASCADE") == "3F000"
        bob.execute("CREATE TABLE t AS SELECT 5 AS b")
        assert rows(bob, "SELECT * FROM t") == [(5,)]
    assert len(rows(alice, "SELECT * FROM t")) == 2


@pytest.mark.parametrize(
    ("edit", "fails"),
    [
        ("hide", {"titled", "chosen", "copied", "view_copied", "inserted"}),
        ("revoke", {"titled", "chosen", "copied", "view_copied", "inserted", "codes", "many"}),
        ("private", {"titled", "chosen", "copied", "view_copied", "inserted", "codes", "many"}),
    ],
)
def test_public_columns_that_are_withdrawn_are_refused_in_copies(
    folder: Path, edit: str, fails: set[str]
) -> None:
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        alice.execute("CREATE TABLE titled AS SELECT title FROM place")
        alice.execute("CREATE TABLE codes AS SELECT code FROM place")
        alice.execute("CREATE TABLE many AS SELECT count(*) AS n FROM place")
        alice.execute("CREATE TABLE chosen AS SELECT code FROM place WHERE title <> 'one'")
        alice.execute("CREATE TABLE copied AS SELECT count(*) AS n FROM titled WHERE title = 'one'")
        alice.execute("CREATE VIEW v AS SELECT title FROM place")
        alice.execute("CREATE TABLE view_copied AS SELECT * FROM v")
        alice.execute("CREATE TABLE inserted (a text)")
        alice.execute("INSERT INTO inserted SELECT max(title) FROM place")
        alice.execute(f"CREATE TABLE counts AS {COUNTS}")
    policy = {
        "hide": POLICY.replace("[analysts.alice]", '[analysts.alice]\nhide = ["place.title"]'),
        "revoke": POLICY.replace("[analysts.alice]", '[analysts.alice]\ntables = ["person"]'),
        "private": re.sub(r"\[tables\.place\]\npublic = true\n", "", POLICY),
    }[edit]
    (folder / "people.toml").write_text(policy)
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        for name in ("titled", "codes", "many", "chosen", "copied", "view_copied", "inserted", "counts"):
            if name in fails:
                assert code(alice, f"SELECT count(*) FROM {name}") == "42501"
                assert code(alice, f"CREATE TABLE again AS SELECT * FROM {name}") == "42501"
            else:
                rows(alice, f"SELECT * FROM {name}")
        assert code(alice, "SELECT * FROM v") in ("42703", "42P01")
        alice.execute("DROP TABLE titled")


def test_a_key_of_a_release_that_is_a_public_column_counts_too(folder: Path) -> None:
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        alice.execute(
            "CREATE TABLE t AS SELECT q.title, count(*) AS n FROM person p JOIN place q ON q.code = p.age GROUP BY q.title"
        )
    (folder / "people.toml").write_text(
        POLICY.replace("[analysts.alice]", '[analysts.alice]\nhide = ["place.title"]')
    )
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        assert code(alice, "SELECT n FROM t") == "42501"


# --- the owner ----------------------------------------------------------------------------------------------


def test_the_owners_database_is_never_written(folder: Path) -> None:
    before = (folder / "people.duckdb").read_bytes()
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        alice.execute(f"CREATE TABLE t AS {COUNTS}")
        alice.execute("INSERT INTO t VALUES ('x', 1)")
        alice.execute("CREATE TABLE p AS SELECT * FROM place")
        alice.execute("DELETE FROM p WHERE code IN (SELECT code FROM place)")
        assert rows(alice, "SELECT * FROM p") == []
    assert (folder / "people.duckdb").read_bytes() == before


def test_an_owner_may_have_none_of_it(folder: Path) -> None:
    (folder / "people.toml").write_text(POLICY + "[server]\nworkspace_mib = 0\n")
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        assert code(alice, f"CREATE TABLE t AS {COUNTS}") == "42501"
    assert not folder_of(load_policy(folder / "people.toml")).exists()


def test_nothing_is_made_for_who_writes_nothing(folder: Path, alice: Session) -> None:
    rows(alice, COUNTS)
    assert code(alice, "SELECT * FROM nothing") == "42P01"
    assert code(alice, "DROP TABLE nothing") == "42P01"
    alice.execute("DROP TABLE IF EXISTS nothing")
    alice.execute("CREATE TEMP TABLE t (a int)")
    assert not folder_of(alice.policy).exists()


def test_a_name_is_no_path(folder: Path) -> None:
    with Session.open(folder / "people.toml", analyst="../../evil/\u00e4") as session:
        session.execute("CREATE TABLE t AS SELECT 1 AS a")
    files = [path.name for path in folder_of(load_policy(folder / "people.toml")).iterdir()]
    assert len(files) == 1
    assert files[0] == file_of(Path(), "../../evil/\u00e4").name
    assert files[0].startswith("evil-")


# --- rows that the analyst sends ----------------------------------------------------------------------------


def test_rows_that_are_sent(alice: Session) -> None:
    alice.execute("CREATE TABLE t (a bigint, b text, c date)")
    alice.execute("INSERT INTO t (c, a) VALUES ('2020-01-02', $1), ($2, '3')", (2, None))
    alice.execute("INSERT INTO t SELECT 1 + 1, 'x', date '2020-01-02' + 1")
    assert alice.execute("DELETE FROM t WHERE a = 3").command == "DELETE 1"
    assert [row[:2] for row in rows(alice, "SELECT a, b FROM t ORDER BY b NULLS FIRST")] == [
        (2, None),
        (2, "x"),
    ]
    assert code(alice, "INSERT INTO t VALUES (1, 2, 3, 4)") == "42601"
    assert code(alice, "INSERT INTO t (a) VALUES ('x')") == "22023"
    assert code(alice, "INSERT INTO t (zz) VALUES (1)") == "42703"
    assert alice.execute("TRUNCATE t").command == "TRUNCATE TABLE"
    assert rows(alice, "SELECT count(*) FROM t") == [(0,)]


def test_describe_types_what_is_sent(alice: Session) -> None:
    alice.execute("CREATE TABLE t (a bigint, b text)")
    columns, types = alice.describe_parameters("INSERT INTO t VALUES ($1, $2)", [None, None])
    assert columns == ()
    assert [str(type_) for type_ in types] == ["bigint", "text"]
    _, types = alice.describe_parameters("INSERT INTO t (b) SELECT $1 WHERE 1 = $2", [None, None])
    assert [str(type_) for type_ in types] == ["text", "integer"]
    assert alice.describe("CREATE TABLE u AS SELECT count(*) AS n FROM person") == ()
    assert alice.budget().epsilon_spent_nano == 0


def test_settings_are_those_of_the_statement(alice: Session) -> None:
    before = alice.settings
    alice.settings = replace(before, intervals=Fraction(19, 20))
    alice.execute("CREATE TABLE t (n bigint)")
    alice.execute("INSERT INTO t SELECT count(*) FROM person")
    assert alice.settings.intervals == Fraction(19, 20)
