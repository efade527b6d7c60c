"""Small wild databases: what the tests of the laws feed the engine.

The databases keep no declaration: more rows and groups than M and C, values outside bounds and lists,
NULL units and keys, NaN, infinities, the ends of every type. They keep what the engine enforces (types,
the root's PRIMARY KEY, one CHECK).
Needs hypothesis, as only tests do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from ...policy import Policy, parse_policy
from .inserted import insert_texts

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "NEWCOMER", "PERSON", "SCHEMA", "SEEDED", "UNITS", "VISIT", "Database", "databases", "load", "policy_of", "policy_text",
    "random_database", "replaced", "rows_of", "without",
]  # fmt: skip

SEEDED = st.randoms(use_true_random=True)
"""A generator whose seed alone is drawn. Each of its numbers drawn by hypothesis costs ten times what is made of them,
and what a law says of a statement is shown with all of it, not with less."""

SCHEMA = """
CREATE TYPE severity AS ENUM ('low', 'high');
CREATE TABLE person (
    id INTEGER PRIMARY KEY, age SMALLINT, height DOUBLE, score DECIMAL(3,1) CHECK (score BETWEEN 0 AND 9),
    nick VARCHAR, team VARCHAR, born DATE, active BOOLEAN NOT NULL);
CREATE TABLE visit (
    person_id INTEGER, n INTEGER, big BIGINT, far BIGINT, huge HUGEINT, x DOUBLE, wild DOUBLE, vast DOUBLE,
    r REAL, d DECIMAL(6,2), fine DECIMAL(38,20), city VARCHAR, tag VARCHAR, day DATE, any_day DATE,
    seen TIMESTAMP, any_seen TIMESTAMP, flag BOOLEAN, level severity);
"""

_POLICY = """
database = "duckdb:laws.duckdb"
ledger = "sqlite:laws-ledger.db"
[privacy]
epsilon = 9999
delta = 0.9
neighbours = "{neighbours}"
[defaults]
epsilon = {epsilon}
max_epsilon = 10
delta = {delta}
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 120] }}
height = {{ bounds = [0.5, 2.5], step = 0.01 }}
score = {{ bounds = [0, 9] }}
nick = {{}}
team = {{ values = ["red", "blue"] }}
born = {{ bounds = [1990-01-01, 2009-12-31] }}
active = {{}}
[tables.visit]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = {total}
max_rows_per_group = {rows}
max_groups = {groups}
[tables.visit.columns]
n = {{ bounds = [-3, 7] }}
big = {{ bounds = [0, 1152921504606846976] }}
far = {{ bounds = [1000000000000000000, 1000000000000000100] }}
huge = {{}}
x = {{ bounds = [-1, 4] }}
wild = {{}}
vast = {{ bounds = [-1e300, 1e300] }}
r = {{ bounds = [0, 2] }}
d = {{ bounds = [0, 5] }}
fine = {{ bounds = [-1, 1] }}
city = {{ values = ["a", "b", "c", {{ null = true }}] }}
tag = {{}}
day = {{ bounds = [2020-01-01, 2020-12-31] }}
any_day = {{}}
seen = {{ bounds = [2020-01-01T00:00:00, 2020-03-31T23:59:59] }}
any_seen = {{}}
flag = {{}}
level = {{}}
"""


def policy_of(
    folder: Path,
    *,
    replace_one: bool = False,
    rows: int = 3,
    groups: int = 2,
    epsilon: str = "1",
    delta: str = "1e-3",
) -> Policy:
    """Return the policy over `SCHEMA`; `folder` holds its ledger. `rows` is M, `groups` is C."""
    text = policy_text(replace_one=replace_one, rows=rows, groups=groups, epsilon=epsilon, delta=delta)
    return parse_policy(text, folder / "laws.toml")


def policy_text(
    *,
    replace_one: bool = False,
    rows: int = 3,
    groups: int = 2,
    epsilon: str = "1",
    delta: str = "1e-3",
) -> str:
    """Return the text of `policy_of`."""
    neighbours = "replace-one" if replace_one else "add-remove"
    return _POLICY.format(
        neighbours=neighbours, total=rows * groups, rows=rows, groups=groups, epsilon=epsilon, delta=delta
    )


# --- rows --------------------------------------------------------------------------------------------

Cell = str | None
Row = tuple[Cell, ...]

UNITS = (1, 2, 3, 4)
"""The privacy units of a random database."""
NEWCOMER = 9
"""The unit that takes another's place in a replace-one neighbour."""

_DAYS = ["2020-01-01", "2020-12-31", "2020-06-15", "2019-12-31", "1970-01-01", "9999-12-31", "20000-01-01",
         "infinity", "-infinity", "0001-01-01", "0044-03-15 (BC)", "5881580-07-10", "5877642-06-25 (BC)"]  # fmt: skip
_MOMENTS = ["2020-01-01 00:00:00", "2020-03-31 23:59:59", "2020-02-29 12:34:56.789012", "1969-12-31 23:59:59",
            "9999-12-31 23:59:59.999999", "20000-01-01 00:00:00", "infinity", "-infinity",
            "294247-01-10 04:00:54.775806", "290308-12-22 (BC) 00:00:00"]  # fmt: skip
_REALS = ["0", "-0.0", "4", "-1", "0.3", "2.5", "nan", "inf", "-inf", "1e308", "-1e308", "5e-324", "1e16"]
_TEXTS = ["", "t", "T", "tt", "it's", "%_\\", "ß", "\U0001f600", "x" * 40, "12", "\x1f", "\x1e"]


@dataclass(frozen=True, eq=False)
class _Table:
    """A table's columns with the cells that a random row takes: the first few cells are the common ones."""

    name: str
    cells: dict[str, tuple[Cell, ...]]


def _with_null(values: list[str]) -> tuple[Cell, ...]:
    return (*values[:4], None, *values[4:])


PERSON = _Table(
    "person",
    {
        "age": _with_null(["0", "120", "30", "31", "-32768", "32767", "121"]),
        "height": _with_null(["1.8", "0.5", "2.5", "1.795", "nan", "inf", "-inf", "1e308", "-0.0"]),
        "score": _with_null(["0", "9", "4.5", "8.9"]),
        "nick": _with_null(_TEXTS),
        "team": _with_null(["red", "blue", "green", "", "Red"]),
        "born": _with_null(["2000-02-29", "1990-01-01", "2009-12-31", *_DAYS]),
        "active": ("true", "false"),
    },
)
VISIT = _Table(
    "visit",
    {
        "n": _with_null(["7", "-3", "0", "1", "8", "-4", "2147483647", "-2147483648"]),
        "big": _with_null(
            ["1152921504606846976", "0", "5", "1", "9223372036854775807", "-9223372036854775808"]
        ),
        "far": _with_null(["1000000000000000100", "1000000000000000000", "1000000000000000050", "0", "-1"]),
        "huge": _with_null(
            [
                "1",
                "0",
                "170141183460469231731687303715884105727",
                "-170141183460469231731687303715884105728",
            ]
        ),
        "x": _with_null(_REALS),
        "wild": _with_null(_REALS),
        "vast": _with_null(["1e300", "-1e300", "0", "1", *_REALS]),
        "r": _with_null(["2", "0", "0.1", "1.5", "nan", "inf", "-inf", "3e38", "-3e38", "1e-45"]),
        "d": _with_null(["5", "0", "2.50", "0.01", "9999.99", "-9999.99"]),
        "fine": _with_null(["1", "-1", "0.00000000000000000001", "0", "999999999999999999.99999999999999999999"]),
        "city": _with_null(["a", "b", "c", "A", "", "z", "a "]),
        "tag": _with_null(_TEXTS),
        "day": _with_null(_DAYS),
        "any_day": _with_null(_DAYS),
        "seen": _with_null(_MOMENTS),
        "any_seen": _with_null(_MOMENTS),
        "flag": _with_null(["true", "false"]),
        "level": _with_null(["low", "high"]),
    },
)  # fmt: skip


@dataclass(frozen=True)
class Database:
    """Rows of both tables, the unit first (None: a row without an owner, `visit` alone has such)."""

    persons: tuple[tuple[int, Row], ...]
    visits: tuple[tuple[int | None, Row], ...]


@cache
def rows_of(table: _Table) -> st.SearchStrategy[Row]:
    """Random cells of one row, without its unit."""
    return st.tuples(*(st.sampled_from(cells) for cells in table.cells.values()))


def random_database(rng: random.Random, most: int = 14) -> Database:
    """Return a database in which units own none to all of the rows; rows are often repeated, so that M is passed."""

    def row_of(table: _Table) -> Row:
        return tuple(rng.choice(cells) for cells in table.cells.values())

    units = [rng.choice(UNITS) for _ in range(rng.randint(0, 4))]
    kinds = [row_of(VISIT) for _ in range(rng.randint(1, 4))]
    owners = (1, 1, 1, 2, 2, 3, 4, None)
    visits = tuple((rng.choice(owners), rng.choice(kinds)) for _ in range(rng.randint(0, most)))
    return Database(tuple((unit, row_of(PERSON)) for unit in dict.fromkeys(units)), visits)


@st.composite
def databases(draw: st.DrawFn, most: int = 14) -> Database:
    """The same, drawn by hypothesis."""
    return random_database(draw(SEEDED), most)


def without(database: Database, unit: int) -> Database:
    """Return the add-remove neighbour: all rows of one unit are gone from every table."""
    return Database(
        tuple(row for row in database.persons if row[0] != unit),
        tuple(row for row in database.visits if row[0] != unit),
    )


def replaced(database: Database, unit: int, newcomer: Database) -> Database:
    """Return the replace-one neighbour: one unit's rows for those of `NEWCOMER`, all of `newcomer`'s rows."""
    rest = without(database, unit)
    person = tuple((NEWCOMER, row) for _, row in newcomer.persons[:1])
    return replace(
        rest, persons=rest.persons + person, visits=rest.visits + tuple((NEWCOMER, row) for _, row in newcomer.visits)
    )  # fmt: skip


def load(connection: duckdb.DuckDBPyConnection, database: Database, order: int = 0) -> None:
    """Put a database's rows into the tables, in a physical order that depends on `order`."""
    for table, rows in (("visit", list(database.visits)), ("person", list(database.persons))):
        connection.execute(f"DELETE FROM {table}")
        random.Random(order).shuffle(rows)
        insert_texts(
            connection, table, [(None if unit is None else str(unit), *cells) for unit, cells in rows]
        )
