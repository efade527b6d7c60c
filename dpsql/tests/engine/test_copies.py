"""Bars over an own table are those over the query that it is a copy of, and one draw is one in however many copies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.engine.workspace import LOST, folder_of
from dpsql.errors import Refusal
from dpsql.policy import load_policy
from dpsql.postprocess.workspace import file_of
from dpsql.tests.support.length import tried
from dpsql.tests.support.prototype import made_once

from .test_workspace import COUNTS, POLICY, SCHEMA

BARS = "SET dpsql.intervals = 0.95"
NAMES = ("city", "n", "age")
QUERIES = {
    "counts": "SELECT city, count(*) AS n, sum(age) AS age FROM person GROUP BY city",
    "averages": "SELECT city, avg(age) AS n, count(*) FILTER (WHERE age > 50) AS age FROM person GROUP BY city",
    "computed": f"SELECT city, n * 2 AS n, n - 1.5 AS age FROM ({COUNTS}) AS q WHERE n > 10",
    "shares": f"SELECT city, n, 100.0 * n / sum(n) OVER () AS age FROM ({COUNTS}) AS q",
    "joined": f"SELECT q.city, q.n, place.code AS age FROM ({COUNTS}) AS q JOIN place ON place.code < 3",
    "medians": "SELECT city, count(*) AS n, median(age) AS age FROM person GROUP BY city",
    "first": f"SELECT city, n, 1 AS age FROM ({COUNTS}) AS q ORDER BY n DESC LIMIT 1",
}
OVER = (
    "SELECT * FROM {}",
    "SELECT city, n FROM {} WHERE n > 3",
    "SELECT sum(n) AS s, count(*) AS c, max(age) AS m FROM {}",
    "SELECT city, n + age AS s, n / nullif(age, 0) AS r FROM {}",
    "SELECT city, n - lag(n) OVER (ORDER BY city) AS d FROM {}",
    "SELECT n / (SELECT sum(n) FROM {}) AS share FROM {}",
    "SELECT a.n + b.n AS twice, a.n - b.n AS none FROM {} AS a JOIN {} AS b USING (city)",
    "SELECT n FROM {} UNION ALL SELECT age FROM {}",
    "SELECT n, dp_bar(n) AS half, dp_text(n) AS said FROM {}",
)


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


def told(session: Session, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return names and rows of an answer that costs nothing."""
    answer = session.execute(sql)
    assert answer.receipt is not None
    assert answer.receipt.epsilon == 0, sql
    described = session.describe(sql)
    assert [one.name for one in described] == [one.name for one in answer.columns]
    return [one.name for one in answer.columns], sorted(answer.rows, key=repr)


def is_lost(session: Session, sql: str) -> bool:
    """Say whether no number of an answer has a bar, and the receipt tells it."""
    answer = session.execute(sql)
    assert answer.receipt is not None
    ends = [index for index, one in enumerate(answer.columns) if one.bar_of is not None]
    assert ends, sql
    is_told = LOST in answer.receipt.notes
    assert is_told == all(row[index] is None for row in answer.rows for index in ends)
    return is_told


@pytest.mark.parametrize("name", QUERIES)
def test_bars_over_a_copy_are_those_over_its_query(alice: Session, name: str) -> None:
    alice.execute(f"CREATE TABLE t AS {QUERIES[name]}")
    alice.execute(BARS)
    spent = alice.budget().epsilon_spent_nano
    for over in tried(OVER[[*QUERIES].index(name) % 3 :: 3], OVER):
        alone = told(alice, over.replace("{}", f"({QUERIES[name]}) AS q").replace("AS q AS", "AS"))
        assert told(alice, over.replace("{}", "t")) == alone, over
    assert any(one is not None for row in told(alice, "SELECT * FROM t")[1] for one in row[2:4])
    assert alice.budget().epsilon_spent_nano == spent


def test_one_draw_is_one_in_however_many_copies(alice: Session) -> None:
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    alice.execute(f"CREATE TEMP TABLE again AS {COUNTS}")
    alice.execute("CREATE TABLE doubled AS SELECT city, 2 * n AS m FROM t")
    alice.execute(f"CREATE VIEW v AS {COUNTS}")
    alice.execute(BARS)
    _, ((n, low, high), *_) = told(alice, "SELECT n FROM t WHERE city = 'north'")
    where = "USING (city) WHERE city = 'north'"
    for one, other in (("t", "again"), ("again", "v"), ("t", f"({COUNTS}) AS q"), ("v", "t")):
        q = "q" if "q" in other else other
        _, ((*_, s, s_low, s_high),) = told(
            alice, f"SELECT {one}.n + {q}.n AS s FROM {one} JOIN {other} {where}"
        )
        assert s == 2 * n
        # simulated, so about: two independent noises would have bars narrower by a factor of the square root of 2
        assert abs((s_high - s_low) - 2 * (high - low)) <= 2
        _, ((*_, d, d_low, d_high),) = told(
            alice, f"SELECT {one}.n - {q}.n AS d FROM {one} JOIN {other} {where}"
        )
        assert (d, d_low, d_high) == (0, 0, 0)
    _, ((d, d_low, d_high),) = told(alice, f"SELECT doubled.m - t.n AS d FROM t JOIN doubled {where}")
    assert d == n
    assert abs((d_high - d_low) - (high - low)) <= 2


def test_a_copy_is_one_after_a_restart(folder: Path) -> None:
    with Session.open(folder / "people.toml", analyst="alice") as first:
        first.execute(f"CREATE TABLE t AS {COUNTS}")
        first.execute(BARS)
        before = told(first, "SELECT city, n, n * n AS squared FROM t")
    with Session.open(folder / "people.toml", analyst="alice") as second:
        second.execute(BARS)
        assert told(second, "SELECT city, n, n * n AS squared FROM t") == before
        assert all(one is not None for row in before[1] for one in row)
        second.execute("ALTER TABLE t RENAME TO u")
        second.execute("ALTER TABLE u RENAME COLUMN n TO m")
        assert [row[:4] for row in told(second, "SELECT * FROM u")[1]] == [row[:4] for row in before[1]]


def test_bars_that_are_columns_stand_there_once(alice: Session) -> None:
    alice.execute(BARS)
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    names, found = told(alice, "SELECT * FROM t")
    assert names == ["city", "n", "n_low", "n_high"]
    assert all(low < n < high for _, n, low, high in found)
    _, bars = told(alice, "SELECT city, n FROM t")
    assert bars == found
    alice.execute(
        "SET dpsql.intervals = 0.5"
    )  # the ends in the table are of another level, and no bars are made of it
    assert is_lost(alice, "SELECT city, n FROM t")


@pytest.mark.parametrize(
    "write",
    [
        "INSERT INTO t (city, n) VALUES ('east', 7)",
        "INSERT INTO t (city, n) SELECT 'all', count(*) FROM person",
        "INSERT INTO t SELECT * FROM t",
        "DELETE FROM t WHERE city = 'north'",
        "TRUNCATE t",
        "ALTER TABLE t ADD COLUMN more bigint",
    ],
)
def test_what_is_written_is_no_copy_any_more(alice: Session, write: str) -> None:
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    alice.execute(BARS)
    assert told(alice, "SELECT n FROM t")[0] == ["n", "n_low", "n_high"]
    alice.execute(write)
    assert told(alice, "SELECT n FROM t")[0] == ["n"]
    alice.execute(f"CREATE TABLE u AS {COUNTS}")  # and what is read with it has none either
    assert told(alice, "SELECT u.n + coalesce(t.n, 0) AS s FROM u LEFT JOIN t USING (city)")[0] == ["s"]


def test_a_write_that_is_taken_back_leaves_the_copy(alice: Session) -> None:
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    alice.execute(BARS)
    before = told(alice, "SELECT * FROM t")
    alice.workspace.in_block = True
    alice.execute("INSERT INTO t (city, n) VALUES ('east', 7)")
    alice.workspace.roll_back()
    alice.workspace.in_block = False
    assert told(alice, "SELECT * FROM t") == before


def test_readings_of_other_moments_are_not_taken_for_independent(alice: Session) -> None:
    """A later draw of the same rows joins the first in what is told now, which so depends on what was copied."""
    alice.execute(
        "SET dpsql.epsilon = 0.01"
    )  # so that what both say together is, but for luck, another number
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    alice.execute("CREATE TABLE told AS SELECT city FROM (VALUES ('north')) AS v(city)")
    alice.execute(BARS)
    before = told(alice, "SELECT * FROM t")
    alice.execute("SET dpsql.epsilon = 0.009")
    alice.execute("SET dpsql.reuse = off")
    alice.execute(COUNTS)
    alice.execute("SET dpsql.reuse = on")
    assert told(alice, "SELECT * FROM t") == before  # by itself it is what it was
    alice.execute(f"CREATE TABLE later AS {COUNTS}")
    assert not is_lost(alice, "SELECT n FROM later")
    for joined in (
        f"SELECT t.n - q.n AS d FROM t JOIN ({COUNTS}) AS q USING (city)",
        "SELECT t.n + later.n AS s FROM t JOIN later USING (city)",
    ):
        assert is_lost(alice, joined)
    alice.execute("SELECT sum(age) FROM person")  # of other rows: nothing moves
    assert told(alice, "SELECT * FROM t") == before


def test_no_name_and_no_number_makes_a_copy(alice: Session, folder: Path) -> None:
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    found = alice.execute("SELECT city, n FROM t ORDER BY city").rows
    alice.execute(BARS)
    (north, n), (south, m) = found
    # sent: the same numbers under the same name are constants
    alice.execute("DROP TABLE t")
    alice.execute("CREATE TABLE t (city text, n bigint)")
    alice.execute("INSERT INTO t VALUES ($1, $2), ($3, $4)", (north, n, south, m))
    assert told(alice, "SELECT city, n FROM t")[0] == ["city", "n"]
    # a copy of a copy whose source is replaced by other numbers does not stand for these
    alice.execute(f"CREATE TABLE source AS {COUNTS}")
    alice.execute("CREATE TABLE copied AS SELECT city, n FROM source")
    assert not is_lost(alice, "SELECT n FROM copied")
    alice.execute("DROP TABLE source")
    alice.execute("CREATE TABLE source AS SELECT city, sum(age) AS n FROM person GROUP BY city")
    assert is_lost(alice, "SELECT n FROM copied")
    alice.execute("DROP TABLE source")
    assert is_lost(alice, "SELECT n FROM copied")
    # that reads itself by a name that came later
    alice.execute("CREATE TABLE one AS SELECT city, n FROM copied")
    alice.execute("ALTER TABLE copied RENAME TO aside")
    alice.execute("ALTER TABLE one RENAME TO copied")
    assert is_lost(alice, "SELECT n FROM copied")
    # a name of the policy in the kept text is the policy's, whatever the analyst makes
    assert alice.budget().epsilon_spent_nano <= 4 * 10**9


def test_settings_and_constants_are_those_of_the_query(alice: Session) -> None:
    alice.execute("SET dpsql.epsilon = 0.3")
    alice.execute("CREATE TABLE t AS SELECT count(*) AS n FROM person WHERE age < $1", (40,))
    alice.execute("RESET dpsql.epsilon")
    alice.execute(BARS)
    _, ((n, low, high),) = told(alice, "SELECT n FROM t")
    assert high - n > 9 >= 0  # at 0.3, and not at 1
    assert n - low > 9


def test_what_the_store_does_not_tell_has_no_bars(folder: Path) -> None:
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        alice.execute(f"CREATE TABLE t AS {COUNTS}")
        alice.execute(
            "CREATE TABLE public AS SELECT place.title, q.n FROM place, (SELECT count(*) AS n FROM person) AS q"
        )
        alice.execute(BARS)
        assert not is_lost(alice, "SELECT n FROM t")
        assert not is_lost(alice, "SELECT n FROM public")
        alice.dataset.store.advance_epoch()
        assert is_lost(alice, "SELECT n FROM t")
        spent = alice.budget().epsilon_spent_nano
    (folder / "people.toml").write_text(
        POLICY.replace("age = { bounds = [0, 120] }", "age = { bounds = [0, 120] }\n")
    )
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        database.execute("INSERT INTO place VALUES (4, 'four', 'w')")
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        alice.execute(BARS)
        assert is_lost(alice, "SELECT n FROM public")
        assert alice.budget().epsilon_spent_nano == spent


def test_what_is_kept_of_a_query_is_text_in_the_analysts_own_file(folder: Path) -> None:
    with Session.open(folder / "people.toml", analyst="alice") as alice:
        alice.execute(f"CREATE TABLE t AS {COUNTS}")
        alice.execute("CREATE TABLE p AS SELECT title FROM place")
        entry = alice.dataset.store.log(1)[0].seq
    policy = load_policy(folder / "people.toml")
    with duckdb.connect(str(file_of(folder_of(policy), "alice")), read_only=True) as database:
        made = dict(database.execute("SELECT name, made FROM object").fetchall())
    assert json.loads(made["p"])[-1] is None  # no noise is in it
    text, parameters, settings, draws_ends = json.loads(made["t"])[-1]
    assert text.strip() == COUNTS
    assert (parameters, draws_ends, dict(settings)["dpsql.edition"]) == ([], True, str(entry))
    with Session.open(folder / "people.toml", analyst="bob") as bob:
        bob.execute(BARS)
        with pytest.raises(Refusal) as refused:
            bob.execute("SELECT n FROM t")
        assert refused.value.sqlstate == "42P01"
    assert Fraction(dict(settings)["dpsql.epsilon"]) == 1


def test_what_is_read_without_the_store_is_not_joined(alice: Session) -> None:
    """A draw by itself, and an older edition, may stand in what the copy tells, by weights that are not known."""
    alice.execute(f"CREATE TABLE t AS {COUNTS}")
    first = alice.dataset.store.log(1)[0].seq
    alice.execute(BARS)
    joined = "SELECT t.n - q.c AS d FROM t, (SELECT count(*) AS c FROM person) AS q"
    alice.execute("SET dpsql.reuse = off")
    assert is_lost(alice, joined)
    alice.execute("SET dpsql.reuse = on")
    alice.execute(f"CREATE TABLE later AS {COUNTS}")
    alice.execute(f"SET dpsql.edition = {first}")
    assert is_lost(alice, f"SELECT q.n - later.n AS d FROM ({COUNTS}) AS q JOIN later USING (city)")
    assert not is_lost(alice, f"SELECT q.n - t.n AS d FROM ({COUNTS}) AS q JOIN t USING (city)")
