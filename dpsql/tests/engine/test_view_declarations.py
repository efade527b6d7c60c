"""What one view declares is its own: another view of the same rows, or the table, is another question."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import long_where

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 1000
[defaults]
epsilon = 1
max_epsilon = 10
[tables.p]
unit = "id"
max_rows = 2
[tables.p.columns]
i = { bounds = [0, 5] }
d = { bounds = [0, 1], step = 0.1 }
[tables.a1]
view = true
[tables.a1.columns]
i = { bounds = [1, 5] }
[tables.a2]
view = true
[tables.a2.columns]
i = { bounds = [0, 5] }
[tables.b1]
view = true
[tables.b1.columns]
j = { bounds = [3, 6] }
[tables.b2]
view = true
[tables.b2.columns]
j = { bounds = [1, 6] }
"""
DATA = """
CREATE TABLE p (id INTEGER, i INTEGER, d DOUBLE);
INSERT INTO p SELECT n % 50, n % 6, (n % 11) / 10 FROM range(96) x(n);
CREATE VIEW a1 AS SELECT id, i, d FROM p;
CREATE VIEW a2 AS SELECT id, i, d FROM p;
CREATE VIEW b1 AS SELECT id, i + 1 AS j, d FROM p;
CREATE VIEW b2 AS SELECT id, i + 1 AS j, d FROM p;
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with duckdb.connect() as connection:
        connection.execute(DATA)
        policy = parse_policy(POLICY, tmp_path / "people.toml")
        with closing(open_ledger(policy, create=True)) as store:
            yield Session(Dataset(policy, DuckDBBackend.over(connection), store), "ann", _noise=ZeroNoise())


@long_where(lambda one, other, form: (one, other) != ("a1", "a2") and not form.startswith("COUNT"))
@pytest.mark.parametrize(("one", "other", "column"), [("a1", "a2", "i"), ("b1", "b2", "j"), ("a1", "p", "i")])
@pytest.mark.parametrize(
    "form",
    ["COUNT(*) FROM {t} WHERE {c} * {c} = 1", "SUM({c} % 2) FROM {t}", "SUM(d) FROM {t} WHERE {c} + 1 < 3",
     "SUM(LEAST(GREATEST(s, 0), 3)) FROM (SELECT id, SUM({c}) AS s FROM {t} GROUP BY id) AS q"],
)  # fmt: skip
def test_each_view_is_asked_under_its_own_bounds(
    session: Session, one: str, other: str, column: str, form: str
) -> None:
    """Whatever is stored of the other one, and in one statement with it."""

    def asked(*names: str) -> tuple[object, ...]:
        parts = [f"SELECT {form.format(t=name, c=column)}" for name in names]
        text = parts[0] if len(parts) == 1 else f"SELECT ({parts[0]}), ({parts[1]})"
        return tuple(session.execute(text).rows[0])

    session.execute("SET dpsql.reuse = off")
    alone = asked(other), asked(one)
    session.execute("SET dpsql.reuse = on")
    assert (asked(other), asked(one), asked(other)) == (alone[0], alone[1], alone[0])
    assert asked(one, other) == (*alone[1], *alone[0])


def test_a_view_with_bounds_that_nothing_can_meet_is_left_out(tmp_path: Path) -> None:
    """A person's rows are two at most: a count of them that is said to be 7 to 9 would be answered by 0 alone."""
    text = POLICY + "[tables.c1]\nview = true\n[tables.c1.columns]\nn = { bounds = [7, 9] }\n"
    with duckdb.connect() as connection:
        connection.execute(DATA)
        connection.execute("CREATE VIEW c1 AS SELECT id, CASE WHEN i > 2 THEN 1 ELSE 2 END AS n FROM p")
        policy = parse_policy(text, tmp_path / "people.toml")
        with closing(open_ledger(policy, create=True)) as store:
            catalog = Dataset(policy, DuckDBBackend.over(connection), store).catalog
    assert re.search(r"c1\.columns\.n\.bounds: no value .* from 1 to 2", catalog.left_out["c1"])
    assert "c1" not in catalog.views
