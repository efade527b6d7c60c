"""R, and M and C that tighten it: what a release is bounded by, and what EXPLAIN says bounds the noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.engine.contribution import contribution_lines, what_binds
from dpsql.errors import Refusal
from dpsql.plan.planner import Plan, plan
from dpsql.policy import parse_policy
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.tests.laws.measured import World, world

_SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, home VARCHAR);
CREATE TABLE visit (pid INTEGER REFERENCES person (id), city VARCHAR, n INTEGER);
"""
_POLICY = """
database = "duckdb:rows.duckdb"
ledger = "sqlite:rows-ledger.db"
[privacy]
epsilon = 10
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.person.columns]
home = { values = ["a", "b"] }
[tables.visit]
unit = { column = "pid", references = "person.id" }
BOUNDS
[tables.visit.columns]
city = { values = ["a", "b", "c", "d", "e"] }
n = { bounds = [0, 10] }
"""
BY_CITY = "SELECT city, COUNT(*) FROM visit GROUP BY city"
BY_HOME = "SELECT home, COUNT(*) FROM person JOIN visit ON pid = id GROUP BY home"
COUNT = "SELECT COUNT(*) FROM visit"
PEOPLE = "SELECT city, COUNT(DISTINCT pid) FROM visit GROUP BY city"


def planned(made: World, sql: str, max_rows: int | None = None) -> Plan:
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    privacy = replace(made.plan(COUNT).privacy, max_rows=max_rows)
    return plan(bind(query, BindingContext(made.catalog, query.text, (), 0, {})), made.catalog, privacy)


@pytest.fixture
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    policy = parse_policy(_POLICY.replace("BOUNDS", request.param), tmp_path / "rows.toml")
    with world(tmp_path, policy=policy, schema=_SCHEMA) as found:
        yield found


ALONE = "max_rows = 40"
TIGHTER = "max_rows = 40\nmax_rows_per_group = 5\nmax_groups = 3"
LOOSE = "max_rows = 40\nmax_rows_per_group = 30\nmax_groups = 3"


@pytest.mark.parametrize(
    ("made", "sql", "rows", "groups", "binding"),
    [
        (ALONE, COUNT, 40, 1, "max_rows"),
        (ALONE, BY_CITY, 40, 5, "max_rows"),  # never more groups than there are
        (ALONE, BY_HOME, 40, 1, "max_rows"),
        (ALONE, PEOPLE, 40, 5, None),
        (TIGHTER, COUNT, 15, 1, "max_rows_per_group × max_groups"),
        (TIGHTER, BY_CITY, 15, 3, "max_rows_per_group × max_groups"),
        (TIGHTER, BY_HOME, 15, 1, "max_rows_per_group × max_groups"),
        (TIGHTER, PEOPLE, 15, 3, None),
        (LOOSE, BY_CITY, 40, 3, "max_rows"),
    ],
    indirect=["made"],
)
def test_what_is_not_declared_is_max_rows(
    made: World, sql: str, rows: int, groups: int, binding: str | None
) -> None:
    (release,) = planned(made, sql).releases
    assert (release.bounding.in_all, release.bounding.groups) == (rows, groups)
    claim = groups if sql == PEOPLE else rows
    assert release.measurements[0].sensitivity == claim * release.measurements[0].denominator
    assert what_binds(release) == binding


@pytest.mark.parametrize("made", [LOOSE], indirect=True)
@pytest.mark.parametrize("sql", [COUNT, BY_CITY, BY_HOME, PEOPLE])
def test_an_analyst_takes_less(made: World, sql: str) -> None:
    """The bound is printed, so it is enforced; more than the policy's is the policy's."""
    whole, same, less = (planned(made, sql, most).releases[0] for most in (None, 40, 2))
    assert same.identity == whole.identity != less.identity
    assert less.bounding.in_all == 2 >= less.bounding.groups
    assert less.measurements[0].sensitivity < whole.measurements[0].sensitivity or sql == BY_HOME
    assert less.queries((0,))[0].sql != whole.queries((0,))[0].sql
    assert what_binds(less) == (None if sql == PEOPLE else "dpsql.max_rows")


@pytest.mark.parametrize("made", [LOOSE], indirect=True)
def test_what_explain_says(made: World) -> None:
    (by_city,), (by_home,) = (planned(made, sql).releases for sql in (BY_CITY, BY_HOME))
    said = [
        "at most 40 rows of a person",
        '  declared: "visit" max_rows 40, max_rows_per_group 30, max_groups 3; max_rows sets the noise',
    ]
    shared = "  a person's groups share these rows: WHERE on one group's key would cut less than GROUP BY"
    assert list(contribution_lines(by_city)) == [*said, shared]
    assert list(contribution_lines(by_home)) == said


@pytest.mark.parametrize("made", [""], indirect=True)
@pytest.mark.parametrize("sql", [COUNT, BY_CITY])
def test_what_is_not_declared_at_all_is_refused(made: World, sql: str) -> None:
    with pytest.raises(Refusal, match='max_rows is not declared for table "visit"') as refused:
        made.plan(sql)
    assert refused.value.sqlstate == "PV102"
