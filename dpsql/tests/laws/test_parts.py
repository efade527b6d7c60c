"""A text's parts in rows: who has more of them than count moves no more than R rows do (soundness.md 1.9, 1.13)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import Refusal
from dpsql.plan import planner
from dpsql.plan.privacy import programs
from dpsql.policy import load_policy
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import World, compared, engine_of, measure_release, world

POLICY = """
database = "duckdb:rows.duckdb"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 1000
delta = 1e-3
[defaults]
epsilon = 1
delta = 1e-6
[tables.person]
unit = "id"
max_rows = {rows}
[tables.person.columns]
tags = {{}}
[tables.post]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 3
[tables.post.columns]
words = {{}}
[tables.alone]
unit = {{ column = "id", references = "person.id" }}
[tables.alone.columns]
tags = {{}}
"""
ROWS = """
CREATE TABLE person (id INTEGER PRIMARY KEY, tags VARCHAR);
CREATE TABLE alone (id INTEGER PRIMARY KEY REFERENCES person (id), tags VARCHAR);
CREATE TABLE post (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), words VARCHAR);
INSERT INTO person VALUES (1, 'a;b;c'), (2, ''), (3, NULL), (4, 'a'), (5, ';a;;b;'), (6, 'a;a;a;a;a;a;a;a;a;a;a;a'), (7, 'é;b');
INSERT INTO post VALUES (1, 1, 'x, y, z'), (2, 1, 'x'), (3, 4, 'y, y, y, y, y, y'), (4, 4, ', '), (5, 6, ''), (6, 7, 'x,y');
"""
TAGS = "FROM person CROSS JOIN LATERAL unnest(string_to_array(tags, ';')) AS l(tag)"
WORDS = "FROM post, unnest(string_to_array(words, ', ')) AS word"


@pytest.fixture
def session(tmp_path: Path, engine: PostgresServer | None) -> Iterator[Session]:
    (tmp_path / "policy.toml").write_text(POLICY.format(rows=20))
    policy = load_policy(tmp_path / "policy.toml")
    with ExitStack() as stack:
        connection = stack.enter_context(empty_duckdb())
        connection.execute(ROWS)
        store = open_ledger(policy, create=True)
        twin, backend = engine_of(stack, connection, policy, engine)
        if twin is not None:
            twin.refresh()
        yield stack.enter_context(
            Session(Dataset(policy, backend, store, warm_sealed()), "tester", _noise=ZeroNoise())
        )


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"SELECT count(*) {TAGS}", [(3 + 1 + 5 + 12 + 2,)]),
        (
            f"SELECT tag, count(*), count(DISTINCT id) {TAGS} WHERE tag IN ('a', 'b', '', 'é') GROUP BY tag ORDER BY tag",
            [("", 3, 1), ("a", 1 + 1 + 1 + 12, 4), ("b", 3, 3), ("é", 1, 1)],
        ),
        (
            f"SELECT count(*) FROM (SELECT id, count(DISTINCT tag) AS n {TAGS} GROUP BY id) p WHERE n = 3",
            [(2,)],
        ),
        (f"SELECT count(*) {TAGS} WHERE length(tag) = 0", [(3,)]),
        (
            "SELECT count(*) FROM person p, unnest(string_to_array(p.tags, ';')) AS l(tag) WHERE p.id = 7",
            [(2,)],
        ),
    ],
)
def test_the_rows_are_those_of_postgres(session: Session, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert session.execute(sql).rows == rows


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT count(*) FROM alone, unnest(string_to_array(tags, ';')) AS l(tag)", "PV102"),
        ("SELECT count(*) FROM person, unnest(string_to_array(tags, NULL)) AS l(tag)", "PV004"),
        ("SELECT count(*) FROM person, unnest(regexp_split_to_array(tags, ';')) AS l(tag)", "PV004"),
        (
            "SELECT count(*) FROM person, unnest(string_to_array(tags, ';')) WITH ORDINALITY AS l(tag, n)",
            "PV004",
        ),
        (
            "SELECT count(*) FROM person LEFT JOIN LATERAL unnest(string_to_array(tags, ';')) AS l(tag) ON true",
            "PV004",
        ),
    ],
)
def test_other_rows_of_an_array_are_refused(session: Session, sql: str, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute(sql)
    assert refused.value.sqlstate == code
    assert refused.value.hint


STATEMENTS = (
    f"SELECT count(*), sum(length(tag)) {TAGS} WHERE length(tag) <= 9",
    f"SELECT tag, count(*), count(DISTINCT id) {TAGS} GROUP BY tag",
    f"SELECT tag, count(*) {TAGS} WHERE tag IN ('a', 'b') GROUP BY tag",
    f"SELECT count(DISTINCT tag) {TAGS}",
    f"SELECT word, count(*), count(DISTINCT person_id) {WORDS} GROUP BY word",
    f"SELECT count(*) FROM (SELECT person_id, count(DISTINCT word) AS n {WORDS} GROUP BY person_id) p WHERE n > 1",
    "SELECT count(*) FROM (SELECT person_id, word FROM post, unnest(string_to_array(words, ',')) AS word) w "
    "JOIN person p ON p.id = w.person_id WHERE p.tags = word OR p.id > 3",
)


def _without_each(folder: Path, server: PostgresServer | None, sql: str, rows: int) -> list[Fraction]:
    """The losses of a statement without each person, as is verified; one has a thousand parts."""
    (folder / "policy.toml").write_text(POLICY.format(rows=rows))
    more = "INSERT INTO person VALUES (8, repeat('a;', 1000)), (9, 'b;b;b;b;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q;r;s;t;u;v;w;x;y;z');"
    more += "INSERT INTO post SELECT 100 + i, 8 + i % 2, 'w' || i || ', x, y' FROM range(60) t(i);"
    with world(folder, policy=load_policy(folder / "policy.toml"), schema=ROWS + more, server=server) as made:
        made.refresh()
        plan = _planned(made, sql)
        with made.backend.snapshot() as snapshot:
            facts = read_facts(snapshot, made.policy, lambda *_: None)
            here = [measure_release(release, snapshot) for release in plan.releases]
        assert rule_against(certificate_of(plan.releases, facts)) == ""
        people, posts = (
            made.connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("person", "post")
        )
        losses = []
        for gone in (1, 4, 5, 6, 8, 9):
            made.connection.execute("DELETE FROM post; DELETE FROM person")
            insert(made.connection, "person", [r for r in people if r[0] != gone])
            insert(made.connection, "post", [r for r in posts if r[1] != gone])
            made.refresh()
            with made.backend.snapshot() as snapshot:
                there = [measure_release(release, snapshot) for release in plan.releases]
            losses.append(compared(plan, here, there, sql))
    return losses


@pytest.mark.parametrize("rows", [2, 20])
@pytest.mark.parametrize("sql", STATEMENTS)
def test_one_person_less(tmp_path: Path, engine: PostgresServer | None, sql: str, rows: int) -> None:
    assert 0 < max(_without_each(tmp_path, engine, sql, rows)) <= 1


def test_a_place_that_is_read_twice_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: of a person's one row, several are one."""
    placed = programs.placed_parts
    monkeypatch.setattr(
        "dpsql.plan.privacy.analyze.placed_parts", lambda array, most: placed(array, 1) * most
    )
    assert max(_without_each(tmp_path, None, STATEMENTS[0], 2)) <= 1
    monkeypatch.setattr(planner, "_bounding", _of_one)
    with pytest.raises(AssertionError):
        _without_each(tmp_path, None, STATEMENTS[0], 2)


_bounding = planner._bounding


def _of_one(*args: object) -> object:
    found = _bounding(*args)  # type: ignore[arg-type]
    return type(found)(1, 1, 1, True, False, False, found.grouped, 1)


def _planned(made: World, sql: str) -> planner.Plan:
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    relation = bind(query, BindingContext(made.catalog, query.text, (), 0, {}))
    return planner.plan(
        relation, made.catalog, planner.PrivacyParameters(Fraction(1), Fraction(1, 10**6), 1, False)
    )
