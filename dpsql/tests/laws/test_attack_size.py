"""Attacks on law L10: what one person's rows make an engine's memory, time or text grow to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql import Session
from dpsql.backends.postgres_connection import _LIMITS
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import DpsqlError, Refusal
from dpsql.mechanisms import SampledNoise
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.policy import Policy
from dpsql.tests.support import random_growing_texts as texts
from dpsql.tests.support import random_joins as joins
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import SALT, World, engine_of, measure_release, world

LONG = "x" * 65_000
TWO_PEOPLE = "INSERT INTO person VALUES (1, 'a', 30), (2, 'b', 20)"


@contextmanager
def session_over(
    policy: Policy, schema: str, server: PostgresServer | None = None
) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection]]:
    with ExitStack() as stack:
        connection = stack.enter_context(empty_duckdb())
        connection.execute(schema)
        store = open_ledger(policy, create=True)
        _, backend = engine_of(stack, connection, policy, server)
        session = stack.enter_context(
            Session(Dataset(policy, backend, store, warm_sealed()), "tester", _noise=SampledNoise())
        )
        yield session, connection


def end_of(session: Session, sql: str) -> str:
    """Return how a statement ends: its SQLSTATE, or that it is answered."""
    try:
        session.execute(sql)
    except DpsqlError as error:
        return error.sqlstate
    return "answered"


def with_and_without(session: Session, connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[str, str]:
    """Return how a statement ends with person 1 there, and with nothing of that person."""
    session.execute("SET dpsql.reuse = off")
    here = end_of(session, sql)
    connection.execute("DELETE FROM story WHERE person_id = 1; DELETE FROM person WHERE id = 1")
    return here, end_of(session, sql)


def joined(copies: int) -> str:
    more = " ".join(f"JOIN story s{i} ON s{i}.person_id = s0.person_id" for i in range(1, copies))
    ends = ", ".join(f"left(s{i}.title, 3)" for i in range(copies))
    return (
        f"SELECT COUNT(*) FROM (SELECT DISTINCT s0.person_id, concat('{LONG}', {ends}) AS n FROM story s0 {more} "
        "WHERE s0.person_id = 1 AND s0.big > 3) t WHERE n > 'a'"
    )


def test_rows_of_a_join_times_the_text_of_each(tmp_path: Path) -> None:
    """46,656 rows (R is 6, six copies) of 65 kB: 3 GB of nine short rows of one person; each bound alone is kept.

    By the limits of today it may be 10^6 rows of 2^18 characters: 262 GB.
    """
    with session_over(texts.policy_of(tmp_path), texts.SCHEMA) as (session, connection):
        connection.execute(TWO_PEOPLE)
        connection.execute(
            "INSERT INTO story (person_id, title, big) SELECT 1, 'a' || i, 5 FROM range(9) t(i)"
        )
        connection.execute("SET memory_limit = '1GB'; SET threads = 1; SET temp_directory = ''")
        here, there = with_and_without(session, connection, joined(6))
        assert here == there


GROWN = {
    "DISTINCT": "SELECT COUNT(*) FROM (SELECT DISTINCT person_id, {text} AS n FROM story WHERE person_id = 1) t WHERE n > 'a'",
    "COUNT(DISTINCT)": "SELECT COUNT(DISTINCT {text}) FROM story WHERE person_id = 1",
    "key": "SELECT {text} AS k, COUNT(*) FROM story WHERE person_id = 1 GROUP BY 1",
    "window": "SELECT COUNT(*) FROM (SELECT person_id, LAG({text}) OVER (PARTITION BY person_id ORDER BY big) AS n "
    "FROM story WHERE person_id = 1) t WHERE n > 'a'",
}


@pytest.mark.parametrize("form", GROWN)
def test_rows_of_a_person_times_a_text_made_of_each(tmp_path: Path, form: str) -> None:
    """20,000 rows of five letters become 1.3 GB: no join, so no public number bounds rows times text."""
    with session_over(texts.policy_of(tmp_path), texts.SCHEMA) as (session, connection):
        connection.execute(TWO_PEOPLE)
        connection.execute(
            "INSERT INTO story (person_id, title, big) SELECT 1, 'a' || i, 5 FROM range(20000) t(i)"
        )
        connection.execute("SET memory_limit = '1GB'; SET threads = 1; SET temp_directory = ''")
        text = f"concat('{LONG}', left(title, 20))"
        here, there = with_and_without(session, connection, GROWN[form].format(text=text))
        assert here == there


# --- Postgres: work that is not linear in one person's rows ---------------------------------------------------

LOW_ESTIMATE = " AND ".join(f"note.n + {i} > -{1000 + i}" for i in range(14))
"""True of every row; Postgres takes each term for a third of the rows, and all of them for one row."""

NESTED = {
    "found keys": f"SELECT note.tag, COUNT(*) FROM note WHERE {LOW_ESTIMATE} GROUP BY note.tag",
    "distinct values": f"SELECT COUNT(DISTINCT note.tag) FROM note WHERE {LOW_ESTIMATE}",
    "EXISTS by keys": f"SELECT COUNT(*) FROM note WHERE {LOW_ESTIMATE} AND EXISTS (SELECT 1 FROM note b "
    f"WHERE b.person_id = note.person_id AND b.ref = note.ref AND {LOW_ESTIMATE.replace('note.', 'b.')})",
    "a join on a subquery's key": "SELECT COUNT(*) FROM note JOIN (SELECT person_id, ref, MAX(n) AS n FROM note b "
    f"WHERE {LOW_ESTIMATE.replace('note.', 'b.')} GROUP BY person_id, ref) g "
    f"ON g.person_id = note.person_id AND g.ref = note.ref WHERE {LOW_ESTIMATE}",
}


def rows_looked_at(made: World, query: BackendQuery) -> int:
    """Return how many rows all steps of Postgres' own plan gave or threw away, loops counted."""
    assert made.twin is not None
    sql = query.sql.replace("$1", f"'{SALT}'")
    for name, value in _LIMITS.items():  # as the backend's own connections have them
        made.twin.owner.execute(f"SET {name} = '{value}'")
    found = made.twin.owner.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}").fetchone()
    assert found is not None
    plan = found[0] if isinstance(found[0], list) else json.loads(found[0])
    return sum(_of_step(plan[0]["Plan"]))


def _of_step(step: dict[str, Any]) -> Iterator[int]:
    removed = ("Rows Removed by Filter", "Rows Removed by Join Filter")
    yield int(step["Actual Loops"] * (step["Actual Rows"] + sum(step.get(name, 0) for name in removed)))
    for child in step.get("Plans", ()):
        yield from _of_step(child)


def rows_of_one(made: World, rows: int) -> None:
    made.connection.execute(
        "DELETE FROM note; DELETE FROM person; INSERT INTO person VALUES (1, 30, 'red', 'a', 2)"
    )
    made.connection.execute(
        "INSERT INTO note SELECT 1, i, i % 50, 1, 1, 't' || i, 'a', DATE '2020-06-15', true FROM range(?) t(i)",
        [rows],
    )
    made.refresh()
    assert made.twin is not None
    made.twin.owner.execute("ANALYZE")


@pytest.mark.parametrize("form", NESTED)
def test_an_estimate_of_one_row_makes_postgres_nest_loops(
    tmp_path: Path, postgres: PostgresServer, form: str
) -> None:
    """Filters that leave nothing out make a plan of nested loops: n² of one person's rows, or n³ where keys are found.

    500 rows of 500 groups take 20 s on a quiet core, 10,000 would take days; nobody else's rows are needed.
    """
    rows = 200
    with world(tmp_path, policy=joins.policy_of(tmp_path), schema=joins.SCHEMA, server=postgres) as made:
        rows_of_one(made, rows)
        (release,) = made.plan(NESTED[form]).releases
        steps = [
            rows_looked_at(made, query) for query in release.queries(tuple(range(len(release.measurements))))
        ]
        assert max(steps) <= 50 * rows


def test_a_frame_that_moves_its_start(tmp_path: Path, postgres: PostgresServer) -> None:
    """MAX() is taken anew for each row where the frame's start moves: n² on Postgres, 19 s for 20,000 rows of one
    person.

    The rows of the frames are counted by what MAX is taken of: a function that Postgres calls for each row of each.
    """
    with world(tmp_path, policy=texts.policy_of(tmp_path), schema=texts.SCHEMA, server=postgres) as made:
        frame = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"
        inner = (
            f"SELECT person_id, MAX(big) OVER (PARTITION BY person_id ORDER BY big {frame}) AS k FROM story"
        )
        try:
            (release,) = made.plan(f"SELECT COUNT(*) FROM ({inner}) t WHERE k > 3").releases
        except Refusal:
            return
        rows = 300
        made.connection.execute(TWO_PEOPLE)
        made.connection.execute("INSERT INTO story (person_id, big) SELECT 1, i FROM range(?) t(i)", [rows])
        made.refresh()
        assert made.twin is not None
        owner = made.twin.owner
        owner.execute(_COUNTED_MAX)
        (query,) = release.queries((0,))
        assert "MAX(" in query.sql
        owner.execute(query.sql.replace("MAX(", "public.counted_max("))
        found = owner.execute("SELECT last_value FROM public.calls").fetchone()
        assert found is not None
        assert found[0] <= 50 * rows


_COUNTED_MAX = """
CREATE SEQUENCE public.calls;
CREATE FUNCTION public.counted(state bigint, value bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN PERFORM nextval('public.calls'); RETURN greatest(state, value); END $$;
CREATE AGGREGATE public.counted_max(bigint) (sfunc = public.counted, stype = bigint);
"""


@pytest.mark.long
def test_the_hash_of_two_long_keys(tmp_path: Path, postgres: PostgresServer) -> None:
    """Postgres makes no text of 1 GB: two keys of 540 MB are joined to be hashed, and one person's row is an error."""
    with world(tmp_path, policy=texts.policy_of(tmp_path), schema=texts.SCHEMA, server=postgres) as made:
        made.connection.execute(TWO_PEOPLE)
        made.connection.execute(
            "INSERT INTO story (person_id, title, body, big) SELECT 1, 'a' || i, 'b', i FROM range(3) t(i)"
        )
        made.refresh()
        assert made.twin is not None
        for column in ("title", "body"):  # a row of both is too long to be made at once
            made.twin.owner.execute(f"UPDATE story SET {column} = repeat('a', 540000000) WHERE big = 1")
        (release,) = made.plan("SELECT title, body, COUNT(*) FROM story GROUP BY 1, 2").releases
        with made.backend.snapshot() as snapshot:
            measure_release(release, snapshot)
