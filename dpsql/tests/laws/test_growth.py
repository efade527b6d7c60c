"""L10 for values: no text that a statement makes of a person's texts is longer than the bound that its plan states.

Every printed text is looked at while the engine computes it: a function around it fails where it is longer than
its public size. So are the columns of a subquery where they are read, and the keys; and of what comes back each row
is weighed. What is only compared stands whole, and is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import duckdb
import pytest
from duckdb.sqltypes import BIGINT, VARCHAR
from hypothesis import given, settings

from dpsql.backends import Snapshot
from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.privacy.keys import environment_of
from dpsql.plan.release_plan import ReleasePlan, release_bytes
from dpsql.policy import build_catalog
from dpsql.relation.expressions import Expr, Field, Literal
from dpsql.relation.facts import MAX_JOINED_BYTES
from dpsql.relation.intervals import facts_of
from dpsql.relation.types import Kind
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_growing_texts import SCHEMA, load_extreme, policy_of, statements

from .examples import REPEATED
from .measured import Measured, World, compared, fixed_intermediates, measure_release, world
from .test_neighbours import planned

FUZZ = settings(REPEATED, max_examples=tried(12, 80))
LONG = settings(FUZZ, max_examples=5000, derandomize=False)

_WATCH_POSTGRES = """
CREATE FUNCTION public.watched(t text, most bigint) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN IF length(t) > most THEN RAISE 'a text has grown'; END IF; RETURN t; END $$
"""


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("growth")
    with world(folder, policy=policy_of(folder), schema=SCHEMA, server=engine) as made:
        load_extreme(made.connection)
        made.refresh()
        if made.twin is None:
            watch_in_duckdb(made.connection)
        else:
            made.twin.owner.execute(_WATCH_POSTGRES)
        yield made


@pytest.fixture(scope="module")
def duckdb_grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("growth")
    with world(folder, policy=policy_of(folder), schema=SCHEMA) as made:
        load_extreme(made.connection)
        watch_in_duckdb(made.connection)
        yield made


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a function around every printed text that fails when the text is longer than its plan says.

    A column that stands whole is looked at where its type or a subquery is said to hold it.
    """
    value, whole, key = PrivatePrinter.value, PrivatePrinter.whole, PrivatePrinter.key

    def around(printer: PrivatePrinter, sql: str, expr: Expr, most: int | None) -> str:
        if expr.type.kind is not Kind.TEXT or isinstance(expr, Literal) or most is None:
            return sql
        schema = "" if printer.dialect.name == "duckdb" else "public."
        return f"{schema}watched({sql}, {most})"

    def watched_value(self: PrivatePrinter, expr: Expr) -> str:
        return around(self, value(self, expr), expr, facts_of(expr, self.env).size)

    def watched_whole(self: PrivatePrinter, expr: Expr) -> str:
        held = self.env.columns[expr.index].enforced.max_length if isinstance(expr, Field) else None
        return around(self, whole(self, expr), expr, held)

    def watched_key(
        self: PrivatePrinter, expr: Expr, *, is_whole: bool = False, longest: int | None = None
    ) -> str:
        shown = key(self, expr, is_whole=is_whole, longest=longest)
        return around(self, shown, expr, None if is_whole else facts_of(expr, self.env).size)

    monkeypatch.setattr(PrivatePrinter, "value", watched_value)
    monkeypatch.setattr(PrivatePrinter, "whole", watched_whole)
    monkeypatch.setattr(PrivatePrinter, "key", watched_key)
    monkeypatch.setattr(
        "dpsql.plan.backend_sql.print_private.MAX_LENGTH", 10**7
    )  # the watch makes the SQL longer


def watch_in_duckdb(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the function that fails when a text is longer than it may be."""

    def watched(text: str | None, most: int) -> str | None:
        assert text is None or len(text) <= most, "a text has grown"
        return text

    connection.create_function("watched", watched, [VARCHAR, BIGINT], VARCHAR, null_handling="special")  # type: ignore[arg-type]


def run(grown: World, sql: str) -> bool:
    """Run a statement's printed SQL; say whether it was accepted. A text that is too long fails in the engine."""
    plan = planned(grown, sql)
    if plan is None:
        return False
    intermediates = fixed_intermediates(plan)
    with grown.backend.snapshot() as snapshot:
        for release in plan.releases:
            weighed = Weighed(snapshot)
            measure_release(release, cast("Snapshot", weighed), intermediates)
            assert weighed.largest <= key_bytes(release)
    return True


class Weighed:
    """A snapshot that weighs the texts of each row that comes back: `largest` is the most bytes of one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.largest = snapshot, 0

    def run(self, sql: str, parameters: Sequence[object]) -> Iterator[Sequence[tuple[object, ...]]]:
        for chunk in self.snapshot.run(sql, parameters):
            for row in chunk:
                texts = [value for value in row if isinstance(value, str)]
                self.largest = max(self.largest, sum(len(text.encode()) for text in texts))
            yield chunk


def key_bytes(release: ReleasePlan) -> int:
    """Return the most bytes of a row of a release, by its plan."""
    rows = release.release.rows
    return release_bytes(release.release, release.measurements, environment_of(rows.columns, rows.predicate))


@FUZZ
@given(statements())
def test_no_text_passes_its_bound(grown: World, sql: str) -> None:
    run(grown, sql)


@pytest.mark.long
@LONG
@given(statements())
def test_no_text_passes_its_bound_at_length(grown: World, sql: str) -> None:
    run(grown, sql)


# --- by hand ---------------------------------------------------------------------------------------------

START = "SELECT person_id AS id, 'xxxxxxxxxxxxxxxxxxxx' AS n FROM story WHERE person_id = 1 AND big > 3"
SIX = "concat(n, n, n, n, n, n)"
RESTARTS = {
    "max": f"SELECT id, MAX({SIX}) AS n FROM ({{s}}) t GROUP BY id",
    "operator": "SELECT id, MAX(n || n || n || n || n || n) AS n FROM ({s}) t GROUP BY id",
    "union": f"SELECT id, MAX(n) AS n FROM (SELECT id, {SIX} AS n FROM ({{s}}) t "
    "UNION ALL SELECT person_id, title FROM story) q GROUP BY id",
    "case": f"SELECT id, MAX(CASE WHEN n > 'a' THEN {SIX} END) AS n FROM ({{s}}) t GROUP BY id",
    "coalesce": f"SELECT id, MIN(COALESCE({SIX}, 'x')) AS n FROM ({{s}}) t GROUP BY id",
    "trim": f"SELECT id, MIN(trim({SIX})) AS n FROM ({{s}}) t GROUP BY id",
    "cast": "SELECT id, MAX(CAST(concat(CAST(n AS text), n, n, n, n, n) AS text)) AS n FROM ({s}) t GROUP BY id",
    "letters": "SELECT id, MAX(upper(lower(n))) AS n FROM ({s}) t GROUP BY id",
    "greatest": f"SELECT id, MAX(GREATEST(n, {SIX})) AS n FROM ({{s}}) t GROUP BY id",
    "key": f"SELECT id, {SIX} AS n FROM ({{s}}) t GROUP BY id, {SIX}",
    "distinct": f"SELECT DISTINCT id, {SIX} AS n FROM ({{s}}) t",
    "lag": f"SELECT id, LAG({SIX}, 1, 'a') OVER (PARTITION BY id ORDER BY n) AS n FROM ({{s}}) t",
    "first": f"SELECT id, FIRST_VALUE({SIX}) OVER (PARTITION BY id ORDER BY n) AS n FROM ({{s}}) t",
    "join": "SELECT t.id, MAX(concat(n, n, n, n, n, p.name)) AS n FROM ({s}) t JOIN person p ON p.id = t.id GROUP BY 1",
    "outer": "SELECT p.id, MAX(concat(n, n, n, n, n, n)) AS n FROM person p LEFT JOIN ({s}) t ON p.id = t.id GROUP BY 1",
}
"""Ways to begin a new block, with limits of its own, over a text that has grown."""


def nested(restart: str, levels: int) -> str:
    sql = START
    for _ in range(levels):
        sql = RESTARTS[restart].format(s=sql)
    return f"SELECT COUNT(*) FROM ({sql}) z WHERE n > 'a'"


def is_refused(grown: World, sql: str) -> bool:
    try:
        grown.plan(sql)
    except Refusal as refusal:
        return refusal.sqlstate == "54001" and refusal.position is not None
    return False


@pytest.mark.parametrize("restart", RESTARTS)
def test_a_text_that_grows_is_refused_by_its_text(grown: World, restart: str) -> None:
    assert is_refused(grown, nested(restart, 6))


@pytest.mark.parametrize("restart", RESTARTS)
def test_two_levels_are_answered(grown: World, restart: str) -> None:
    assert run(grown, nested(restart, 2))


MILD = (
    # cut where the text is read, and not where it is compared, joined, grouped or counted
    "SELECT COUNT(*) FROM story WHERE concat(body, body, title) > 'a' AND body > 'a' AND body LIKE '%a'",
    "SELECT COUNT(DISTINCT body || body) FROM story",
    "SELECT upper(body) AS t, COUNT(*) FROM story GROUP BY 1",
    "SELECT SUM(length(title)), AVG(length(left(body, 30))) FROM story",
    "SELECT SUM(length(concat(body, title))) FROM story",
    # released keys, public texts, subqueries that look at the outer row
    "SELECT COUNT(*) FROM story s JOIN (SELECT title AS t, COUNT(*) AS c FROM story GROUP BY 1) r ON r.t = s.title "
    "WHERE concat(r.t, r.t, s.body) > 'a'",
    "SELECT COUNT(*) FROM story s JOIN word w ON w.n > 0 WHERE concat(w.w, s.body, w.w) > 'a'",
    "SELECT COUNT(*) FROM story s WHERE EXISTS (SELECT 1 FROM person p WHERE p.id = s.person_id AND s.body || p.name > 'a')",
    # what the filter says of a column does not keep a longer one from being read
    "SELECT COUNT(*) FROM story WHERE body = 'a' AND body = 'b' AND concat(coalesce(body, 'x'), 'y') = 'z'",
)


@pytest.mark.parametrize("sql", MILD)
def test_a_long_text_is_cut_where_new_text_is_made_of_it(grown: World, sql: str) -> None:
    assert run(grown, sql)


def test_a_grown_text_moves_no_more_than_the_bound(grown: World) -> None:
    """Two levels, with the person and without; the one row that there is counts once."""
    plans = [grown.plan(nested(restart, 2)) for restart in ("max", "lag", "key")]

    def measured() -> list[Measured]:
        grown.refresh()
        with grown.backend.snapshot() as snapshot:
            return [[measure_release(release, snapshot) for release in plan.releases] for plan in plans]

    here = measured()
    grown.connection.execute("DELETE FROM story WHERE person_id = 1; DELETE FROM person WHERE id = 1")
    try:
        there = measured()
    finally:
        load_extreme(grown.connection)
        grown.refresh()
    for plan, left, right in zip(plans, here, there, strict=True):
        compared(plan, left, right, "")
    assert here != there


def test_the_texts_of_one_row_are_bounded_together(grown: World) -> None:
    texts = ", ".join(f"concat({', '.join(['body'] * 8)}, '{i}') AS n{i}" for i in range(40))
    used = " OR ".join(f"n{i} > 'a'" for i in range(40))
    sql = "SELECT COUNT(*) FROM (SELECT DISTINCT person_id, {} FROM story) t WHERE {}"
    assert is_refused(grown, sql.format(texts, used))
    assert run(grown, sql.format(texts.split(", concat")[0], "n0 > 'a'"))


def test_an_open_number_is_cut_where_it_becomes_text(
    tmp_path: Path, postgres: PostgresServer, watched: None
) -> None:
    """Postgres' numeric has up to 131072 digits before the point: a column of the policy's, and what LAG makes of
    it."""
    with world(tmp_path, policy=policy_of(tmp_path), schema=SCHEMA, server=postgres) as made:
        assert made.twin is not None
        load_extreme(made.connection)
        made.refresh()
        owner = made.twin.owner
        owner.execute(_WATCH_POSTGRES)
        owner.execute("ALTER TABLE story ALTER COLUMN amount TYPE numeric")
        owner.execute("UPDATE story SET amount = 10::numeric ^ 30000 + 0.5")
        with made.backend.snapshot() as snapshot:
            made = replace(made, catalog=build_catalog(made.policy, snapshot.schema()))
        for sql in OPEN_NUMBERS:
            assert run(made, sql), sql


_LAG = "SELECT person_id, LAG(amount, 1, {}) OVER (PARTITION BY person_id ORDER BY day) AS k FROM story"
OPEN_NUMBERS = (
    "SELECT COUNT(*) FROM story WHERE concat(amount, amount) > '1'",
    "SELECT CAST(amount AS text) AS t, COUNT(*) FROM story GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT person_id, MAX(amount) AS k FROM story GROUP BY person_id) t WHERE k || 'a' > '1'",
    f"SELECT COUNT(*) FROM ({_LAG.format('0')}) t WHERE concat(k, k) > '1'",
    f"SELECT COUNT(*) FROM ({_LAG.format('1.5')}) t WHERE concat(k, k) > '1'",
    "SELECT COUNT(*) FROM (SELECT person_id, amount AS k FROM story UNION ALL SELECT person_id, big FROM story) t "
    "WHERE concat(k, k) > '1'",
)


# --- what is copied, and does not grow ---------------------------------------------------------------------

KEYS = "SELECT {}, COUNT(*) FROM story WHERE person_id = 1 AND big > 3 GROUP BY {}"
COPIES = "SELECT COUNT(*) FROM (SELECT DISTINCT person_id, {} FROM story WHERE big > 3) t"


def keys(count: int) -> str:
    shown = ", ".join(f"coalesce(body, '{i}') AS k{i}" for i in range(count))
    return KEYS.format(shown, ", ".join(map(str, range(1, count + 1))))


def copies(count: int) -> str:
    return COPIES.format(", ".join(f"substr(body, {i + 1}) AS a{i}" for i in range(count)))


@pytest.mark.parametrize("sql", [keys, copies])
def test_copies_of_a_long_text_are_answered_or_refused_by_their_number(
    grown: World, sql: Callable[[int], str]
) -> None:
    """190 copies of 6,000,000 characters are more than the largest row of Postgres, and of its messages."""
    assert run(grown, sql(190))
    assert is_refused(grown, sql(263))
    assert is_refused(grown, sql(400))


IN_EACH_CLAUSE = (
    "SELECT body, COUNT(*) FROM story GROUP BY 1",
    "SELECT upper(body), COUNT(DISTINCT body) FROM story GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT person_id, MAX(body) AS b, MIN(body) AS c FROM story GROUP BY 1) t WHERE b > c",
    "SELECT b, COUNT(*) FROM (SELECT DISTINCT person_id, body AS b FROM story) t GROUP BY 1",
    "SELECT b, COUNT(*) FROM (SELECT person_id, body AS b FROM story UNION ALL SELECT id, name FROM person) t GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT person_id, LAG(body) OVER (PARTITION BY person_id, body ORDER BY body, body DESC) AS b "
    "FROM story) t WHERE b > 'a'",
    "SELECT COUNT(*) FROM (SELECT person_id, COUNT(DISTINCT body) AS n FROM story GROUP BY 1) t WHERE n > 1",
    "SELECT COUNT(*) FROM story WHERE body = 'a' OR body LIKE '%a' OR body < 'b' OR body IN ('x', 'y')",
    "SELECT s.body, COUNT(*) FROM story s JOIN person p ON p.id = s.person_id AND p.name = s.body GROUP BY 1",
    "SELECT w.w, COUNT(*) FROM story s LEFT JOIN word w ON w.w = s.body GROUP BY 1",
    "SELECT AVG(length(body)), SUM(position('b' IN body)) FROM story",
    "SELECT COUNT(*) FROM story s JOIN story r ON r.person_id = s.person_id WHERE r.body <> s.body",
)


@pytest.mark.parametrize("sql", IN_EACH_CLAUSE)
def test_a_text_of_six_million_characters_in_each_clause(grown: World, sql: str) -> None:
    assert run(grown, sql)


def test_joined_rows_are_held_to_so_many_bytes(grown: World) -> None:
    """A person's rows beside public ones: the more a row of theirs carries, the fewer may be made of them."""
    joined = "FROM story s JOIN word w ON w.n > s.big"
    limits = []
    for texts in (1, 100):
        shown = ", ".join(f"coalesce(s.body, '{i}') AS k{i}" for i in range(texts))
        places = ", ".join(map(str, range(1, texts + 1)))
        (release,) = grown.plan(f"SELECT {shown}, COUNT(*) {joined} GROUP BY {places}").releases
        assert all(work.fans for work in release.works)
        limits += [work.limit for work in release.works]
        assert all(work.limit * key_bytes(release) <= MAX_JOINED_BYTES for work in release.works)
    assert limits == [268_435, 2_684]
