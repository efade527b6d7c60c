"""Filters that exclude themselves by their text: answered exactly and free. All others are charged.

The oracle is DuckDB on rows that hold every combination of a few values, NULL and NaN among them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy
from dpsql.tests.support.length import tried

_POLICY = """
database = "duckdb:rows.duckdb"
ledger = "sqlite:rows-ledger.db"
[privacy]
epsilon = 1000
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.person.columns]
x = { bounds = [0, 5] }
h = { bounds = [0, 5] }
m = { bounds = [0, 5] }
s = {}
b = {}
d = { bounds = [2024-01-01, 2024-12-31] }
"""
_ROWS = """
CREATE TABLE person AS SELECT CAST(row_number() OVER () AS INTEGER) AS id, x, h, m, s, b, d FROM
  unnest([1, 2, 3, NULL]) AS a(x), unnest([CAST(1 AS DOUBLE), 1.5, 3, 'NaN', NULL]) AS c(h),
  unnest([CAST(1 AS DECIMAL(4,2)), 2.5, 3, NULL]) AS e(m), unnest(['a', 'b', NULL]) AS f(s),
  unnest([true, false, NULL]) AS g(b),
  unnest([DATE '2024-01-01', DATE '2024-01-02', DATE '2024-01-03', NULL]) AS i(d);
ALTER TABLE person ADD PRIMARY KEY (id)
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    path = tmp_path_factory.mktemp("rows")
    with duckdb.connect(str(path / "rows.duckdb")) as connection:
        connection.execute(_ROWS)
    (path / "rows.toml").write_text(_POLICY)
    open_ledger(load_policy(path / "rows.toml"), create=True).close()
    with Session.open(path / "rows.toml") as opened:
        yield opened


_EMPTY = (
    "h BETWEEN 5 AND 2",
    "h < 1 AND h > 1",
    "h >= 1 AND h < 1",
    "x < 1 AND x > 1",
    "x > 1 AND x < 2",
    "x = 1 AND x = 2",
    "x = 1 AND x <> 1",
    "x IN (1, 2) AND x IN (3, 4)",
    "x IN (1, 2) AND x NOT IN (1, 2)",
    "x IN (1, 2) AND x > 2",
    "x >= 2 AND x <= 2 AND x <> 2",
    "NOT (x < 5) AND x < 3",
    "(x < 1 OR x > 4) AND x BETWEEN 2 AND 3",
    "x IS NULL AND x > 1",
    "s IS NULL AND s IS NOT NULL",
    "x > NULL",
    "x IN (NULL)",
    "x NOT IN (1, NULL)",
    "x <> x",
    "m > 2.5 AND m < 2.5",
    "h = 0.1 AND h = 0.2",
    "s = 'a' AND s = 'b'",
    "s > 'b' AND s < 'a'",
    "b AND NOT b",
    "b AND b = false",
    "d < DATE '2024-01-01' AND d > DATE '2024-12-31'",
    "d > DATE '2024-01-01' AND d < DATE '2024-01-02'",
    "d >= TIMESTAMP '2024-01-02 12:00' AND d <= TIMESTAMP '2024-01-02 13:00'",
    "x + 1 > 5 AND x + 1 < 3",
    "s LIKE 'a%' AND NOT (s LIKE 'a%')",
)
_OPEN = (
    "h BETWEEN 2 AND 5",
    "h > 1 AND h < 2",
    "h >= 1 AND h <= 1",
    "h IS NULL AND h > 1",  # NaN is NULL for us, and above all numbers
    "m > 2.5 AND m < 2.51",
    "x > 1 AND x < 3",
    "x BETWEEN 200 AND 300",  # outside the bounds, which the data need not keep
    "x IN (1, NULL)",
    "s IN ('a', 'b') AND s <> 'a'",
    "(x < 1 OR x > 2) AND x BETWEEN 2 AND 3",
    "x < 1 OR x > 1",
)


@pytest.mark.parametrize("filter_", _EMPTY)
def test_what_no_row_passes_is_free(session: Session, filter_: str) -> None:
    answer = session.execute(f"SELECT COUNT(*) AS n, SUM(h) AS s, AVG(x) AS a FROM person WHERE {filter_}")
    assert answer.receipt is not None
    assert answer.receipt.epsilon == 0
    ((count, total, _),) = answer.rows
    assert (count, repr(total)) == (0, "0.0")


@pytest.mark.parametrize("filter_", _OPEN)
def test_what_a_row_may_pass_is_charged(session: Session, filter_: str) -> None:
    assert session.explain(f"SELECT COUNT(*) FROM person WHERE {filter_}").plan.epsilon == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM person WHERE h < 1 AND h > 2 GROUP BY id) AS t",
        "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM person GROUP BY id) AS t WHERE n > 5 AND n < 5",
        "SELECT COUNT(*) FROM person AS p WHERE EXISTS (SELECT 1 FROM person AS q WHERE q.id = p.id AND 1 = 0)",
        "SELECT COUNT(*) FROM person WHERE id IN (SELECT id FROM person WHERE h > 5 AND h < 3)",
        "SELECT s, COUNT(*) FROM person WHERE s IN ('a', 'b') AND h > 5 AND h < 2 GROUP BY s",
        "SELECT COUNT(*) FROM person AS p JOIN person AS q ON p.id = q.id WHERE p.x > q.x AND NOT p.x > q.x",
    ],
)
def test_subqueries_groups_and_joins(session: Session, sql: str) -> None:
    assert session.explain(sql).plan.epsilon == 0


def _random_term(pick: random.Random) -> str:
    name, values = pick.choice(
        (("x", ("0", "1", "2", "3", "1.5", "NULL")), ("h", ("1", "1.5", "3", "0.1")), ("m", ("1", "2.5", "2.75")),
         ("s", ("'a'", "'b'", "'c'", "''")),
         ("d", ("DATE '2024-01-01'", "DATE '2024-01-02'", "TIMESTAMP '2024-01-02 07:00'")))
    )  # fmt: skip
    a, b = pick.choice(values), pick.choice(values)
    compared = f"{name} {pick.choice(('=', '<>', '<', '<=', '>', '>='))} {a}"
    term = pick.choice(
        (compared, compared, f"{a} < {name}", f"{name} BETWEEN {a} AND {b}", f"{name} IN ({a}, {b})",
         f"{name} IS NULL", "b", "b = false", "NOT b")
    )  # fmt: skip
    return f"NOT ({term})" if pick.random() < 0.25 else term


def test_a_free_zero_is_the_truth(session: Session) -> None:
    pick, free = random.Random(11), 0
    with duckdb.connect() as connection:
        connection.execute(_ROWS)
        for _ in range(tried(250, 1500)):
            terms = [_random_term(pick) for _ in range(pick.randint(2, 4))]
            if pick.random() < 0.4:
                terms[0] = f"({terms[0]} OR {_random_term(pick)})"
            filter_ = " AND ".join(terms)
            if session.explain(f"SELECT COUNT(*) FROM person WHERE {filter_}").plan.epsilon == 0:
                free += 1
                found = connection.execute(f"SELECT COUNT(*) FROM person WHERE {filter_}").fetchone()
                assert found == (0,), filter_
    assert free > tried(32, 200)
