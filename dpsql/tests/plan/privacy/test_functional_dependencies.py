"""What enforced keys and printed equalities make of a join: one row per person, one group per person, or neither.

Each "neither" was a leak once, or would be one: the printed condition holds for several rows of a person.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.plan.measures.measurements import Bounding
from dpsql.plan.privacy.functional_dependencies import distinguishing
from dpsql.policy import parse_policy
from dpsql.tests.laws.measured import World, world

_SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, grp VARCHAR, q INTEGER, code INTEGER UNIQUE);
CREATE TABLE ev (pid INTEGER REFERENCES person (id), n BIGINT, h HUGEINT, d DECIMAL(38,10), k INTEGER, s VARCHAR,
  UNIQUE (pid, n), UNIQUE (pid, h), UNIQUE (pid, d), UNIQUE (pid, k));
CREATE TABLE card (pid INTEGER UNIQUE REFERENCES person (id), kind VARCHAR);
CREATE TABLE town (name VARCHAR PRIMARY KEY, zone VARCHAR);
CREATE TABLE price (zone VARCHAR, kind VARCHAR, cost INTEGER, PRIMARY KEY (zone, kind));
"""
_POLICY = """
database = "duckdb:keys.duckdb"
ledger = "sqlite:keys-ledger.db"
[privacy]
epsilon = 10
delta = 0.1
[defaults]
epsilon = 1
delta = 1e-2
[tables.person]
unit = "id"
max_rows = 10
max_rows_per_group = 2
max_groups = 5
[tables.person.columns]
id = {}
grp = { values = ["a", "b"] }
q = { bounds = [0, 10] }
code = {}
[tables.ev]
unit = { column = "pid", references = "person.id" }
max_rows = 12
max_rows_per_group = 3
max_groups = 4
[tables.ev.columns]
pid = {}
n = {}
h = {}
d = {}
k = {}
s = { values = ["x", "y", "z", "u", "v", "w"] }
[tables.card]
unit = { column = "pid", references = "person.id" }
[tables.card.columns]
pid = {}
kind = { values = ["x", "y", "z"] }
[tables.town]
public = true
[tables.town.columns]
zone = { values = ["n", "s", "o", "w", "e", "f"] }
[tables.price]
public = true
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("keys")
    with world(folder, policy=parse_policy(_POLICY, folder / "keys.toml"), schema=_SCHEMA) as made:
        yield made


def bounding(keys: World, sql: str) -> Bounding:
    (release,) = keys.plan(sql).releases
    return release.bounding


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM person p JOIN card c ON p.id = c.pid",
        "SELECT COUNT(*) FROM ev WHERE k = 5",
        "SELECT COUNT(*) FROM person p LEFT JOIN ev e ON p.id = e.pid AND e.k = 5",
        "SELECT COUNT(*) FROM person p LEFT JOIN ev e ON p.id = e.pid AND e.k = p.q",
        "SELECT COUNT(*) FROM person p JOIN town t ON t.name = p.grp JOIN price r ON r.zone = t.zone AND r.kind = 'x'",
        "SELECT COUNT(*) FROM person p JOIN (SELECT pid, COUNT(*) AS c FROM ev GROUP BY pid) t ON t.pid = p.id",
        "SELECT COUNT(*) FROM person a JOIN person b ON a.code = b.code",
        "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM ev WHERE pid = p.id)",
        "SELECT grp, COUNT(*) FROM person p LEFT JOIN card c ON p.id = c.pid AND c.kind = 'x' GROUP BY grp",
    ],
)
def test_one_row_per_person(keys: World, sql: str) -> None:
    assert bounding(keys, sql).per_row


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM person p LEFT JOIN ev e ON p.id = e.pid AND e.k % 10 = 5",
        "SELECT COUNT(*) FROM person p LEFT JOIN ev e ON p.id = e.pid AND e.k + 0 = 5",
        "SELECT COUNT(*) FROM ev WHERE k % 10 = 5",
        "SELECT COUNT(*) FROM ev WHERE h = 1152921504606846976",
        "SELECT COUNT(*) FROM ev WHERE h = 1152921504606846976::float8",
        "SELECT COUNT(*) FROM ev WHERE d = 1152921504606846976.00000000001",
        "SELECT COUNT(*) FROM ev WHERE k = 5 OR k = 6",
        "SELECT COUNT(*) FROM person p JOIN ev e ON p.id = e.pid AND e.h = p.q",
        "SELECT COUNT(*) FROM person p JOIN town t ON t.name = p.grp JOIN price r ON r.zone = t.zone",
        "SELECT COUNT(*) FROM person p FULL JOIN ev e ON p.id = e.pid AND e.k = 5",
        "SELECT COUNT(*) FROM (SELECT pid FROM card UNION ALL SELECT id FROM person) t",
    ],
)
def test_more_than_one_row_per_person(keys: World, sql: str) -> None:
    assert not bounding(keys, sql).per_row


@pytest.mark.parametrize(
    ("sql", "groups", "ranked"),
    [
        ("SELECT p.grp, COUNT(*) FROM ev e JOIN person p ON e.pid = p.id GROUP BY p.grp", 1, False),
        ("SELECT c.kind, COUNT(*) FROM ev e LEFT JOIN card c ON e.pid = c.pid GROUP BY c.kind", 1, False),
        ("SELECT c.kind, COUNT(*) FROM ev e LEFT JOIN card c ON e.pid = c.pid AND e.k > 3 GROUP BY c.kind", 4, False),
        ("SELECT t.zone, COUNT(*) FROM ev e JOIN person p ON e.pid = p.id JOIN town t ON t.name = p.grp GROUP BY t.zone", 1, False),
        ("SELECT t.zone, COUNT(*) FROM ev e JOIN town t ON t.name = e.s GROUP BY t.zone", 4, True),
        ("SELECT e.s, COUNT(*) FROM ev e GROUP BY e.s", 4, True),
    ],
)  # fmt: skip
def test_groups_of_a_person(keys: World, sql: str, groups: int, ranked: bool) -> None:
    found = bounding(keys, sql)
    assert (found.groups, found.ranked) == (groups, ranked)


def test_windows_without_a_key_keep_whose_rows_they_are(keys: World) -> None:
    """A subquery that numbers rows first has other columns than its sources: `s` must not pass for the owner."""
    inner = (
        "SELECT s, pid, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY s) AS a, "
        "ROW_NUMBER() OVER (PARTITION BY pid ORDER BY s DESC) AS b FROM (SELECT s, pid FROM ev) AS e"
    )
    (release,) = keys.plan(f"SELECT s, COUNT(*) FROM ({inner}) AS t WHERE a = b GROUP BY s").releases
    assert release.groups is not None
    assert len(release.groups) == 6


def test_a_unique_key_that_may_be_null_tells_no_rows_apart(keys: World) -> None:
    """UNIQUE holds NULL any number of times: no M = 1 by it, and no total order in a window."""
    assert bounding(keys, "SELECT k, COUNT(*) FROM ev GROUP BY k").in_group == 3
    (release,) = keys.plan("SELECT COUNT(*) FROM ev").releases
    assert distinguishing(release.release.rows) is None
    (release,) = keys.plan("SELECT COUNT(*) FROM person").releases
    assert distinguishing(release.release.rows) is not None
