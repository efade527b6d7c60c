"""A unit's groups are kept in the same order on every engine, whatever the keys are: md5 of one canonical text.

Each unit here has many more groups than it may touch, so that another order would be other groups.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest

from dpsql.policy import Policy, build_catalog, parse_policy
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.postgres_server import PostgresServer

from ..laws.measured import World, engine_of, measure_release, world
from .both import spelled

_POLICY = """
database = "duckdb:keys.duckdb"
ledger = "sqlite:keys.db"
[privacy]
epsilon = 99
delta = 0.5
[tables.person]
unit = "id"
[tables.person.columns]
id = {}
[tables.thing]
unit = { column = "who", references = "person.id" }
max_rows = 6
max_rows_per_group = 2
max_groups = 3
[tables.thing.columns]
small = {}
whole = {}
big = {}
huge = {}
exact = {}
fine = {}
wide = {}
label = {}
day = {}
moment = {}
flag = {}
kind = {}
x = { bounds = [-10, 10] }
"""
_SCHEMA = """
CREATE TYPE kind AS ENUM ('low', 'Low', 'lów', '');
CREATE TABLE person (id {unit} PRIMARY KEY);
CREATE TABLE thing (
    who {unit}, small SMALLINT, whole INTEGER, big BIGINT, huge HUGEINT, exact DECIMAL(6,2), fine DECIMAL(38,20),
    wide DECIMAL(18,0), label VARCHAR, day DATE, moment TIMESTAMP, flag BOOLEAN, kind kind, x DOUBLE);
"""
_UNITS = {
    "integer": ("INTEGER", ["1", "-2147483648", "2147483647", "0", "-1"]),
    "bigint": ("BIGINT", ["1", "-9223372036854775808", "9223372036854775807", "0", "-1"]),
    "decimal": ("DECIMAL(10,3)", ["1.000", "1.5", "-0.001", "0", "9999999.999"]),
    "text": ("VARCHAR", ["a", "A", "", "é", "e\u0301", "\U0001f600", "it's \\", "ß", "a "]),
    "date": ("DATE", ["2020-01-01", "0044-03-15 (BC)", "20000-01-01", "infinity", "-infinity", "0001-01-01"]),
    "timestamp": (
        "TIMESTAMP",
        ["2020-01-01 00:00:00", "0044-03-15 (BC) 12:00:00.5", "20000-01-01 00:00:00.000001", "infinity", "-infinity"],
    ),
    "uuid": ("UUID", ["00000000-0000-0000-0000-000000000000", "ABCDEFAB-0000-0000-0000-0123456789ab"]),
}  # fmt: skip
KEYS = ("small", "whole", "big", "huge", "exact", "fine", "wide", "label", "day", "moment", "flag", "kind", "CAST(floor(x) AS INTEGER)",
        "lower(label)", "label || kind", "date_trunc('month', moment)", "extract(doy FROM day)", "CAST(x AS NUMERIC(6,1))",
        "CAST(day AS TIMESTAMP)", "x > 0", "label, day", "moment, exact, flag")  # fmt: skip
_LETTERS = ["a", "A", "á", "a\u0301", "ß", "\U0001f600", " ", "_", "\\", "'", "\x1f", "\x1e", "ﬁ", "Σ", "ς", "", "z\u200d", "\uffff", "\U0010ffff"]  # fmt: skip


def integer(bits: int) -> Callable[[random.Random], str]:
    ends = (0, -1, 2**bits - 1, 1 - 2**bits)
    return lambda draw: str(draw.choice((*ends, draw.randrange(-(2**bits), 2**bits))))


def fraction(draw: random.Random) -> str:
    return draw.choice(
        ("0", "0.5", "-0.00000000000000000001", f"{draw.randrange(10**17)}.{draw.randrange(10**20):020}")
    )


def day(draw: random.Random) -> str:
    ends = ("infinity", "-infinity", "4713-01-01 (BC)", "5874897-12-31", "0001-12-31 (BC)", "0001-01-01")
    return draw.choice(
        (*ends, f"{draw.randrange(1, 99999):04}-02-28", f"{draw.randrange(1, 4700):04}-12-31 (BC)")
    )


def moment(draw: random.Random) -> str:
    part = draw.choice(("", ".5", ".000001", ".120"))
    clock = f"{draw.randrange(24):02}:59:{draw.randrange(60):02}{part}"
    years = f"{draw.randrange(1, 99999):04}-02-28 {clock}", f"{draw.randrange(1, 4700):04}-12-31 (BC) {clock}"
    return draw.choice(("infinity", "-infinity", *years))


CELLS: dict[str, Callable[[random.Random], str]] = {
    "small": integer(15), "whole": integer(31), "big": integer(63), "huge": integer(120), "wide": integer(59),
    "exact": lambda draw: f"{draw.randrange(-9999, 9999)}.{draw.randrange(100):02}", "fine": fraction,
    "label": lambda draw: "".join(draw.choices(_LETTERS, k=draw.randrange(4))), "day": day, "moment": moment,
    "flag": lambda draw: draw.choice(("true", "false")), "kind": lambda draw: draw.choice(("low", "Low", "lów", "")),
    "x": lambda draw: draw.choice(("nan", "inf", "-inf", "-0.0", "5e-324", "1e308", f"{draw.uniform(-12, 12)}")),
}  # fmt: skip


def fill(connection: duckdb.DuckDBPyConnection, units: list[str]) -> None:
    """Give every unit sixty rows of many groups, and some of them again."""
    draw = random.Random(4)
    insert(connection, "person", [[unit] for unit in units])
    rows = [
        [unit, *(None if draw.random() < 0.05 else make(draw) for make in CELLS.values())]
        for unit in units
        for _ in range(60)
    ]
    insert(connection, "thing", rows + rows[::3], ", ".join(["who", *CELLS]))


_SHORT = ("text", "timestamp")


@pytest.fixture(
    scope="module",
    params=[name if name in _SHORT else pytest.param(name, marks=pytest.mark.long) for name in _UNITS],
)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[tuple[World, World]]:
    type_, units = _UNITS[request.param]
    folder: Path = tmp_path_factory.mktemp("keys")
    policy: Policy = parse_policy(_POLICY, folder / "keys.toml")
    with ExitStack() as stack:
        here = stack.enter_context(world(folder, policy=policy, schema=_SCHEMA.format(unit=type_)))
        fill(here.connection, units)
        twin, backend = engine_of(stack, here.connection, policy, postgres)
        assert twin is not None
        twin.refresh()
        with backend.snapshot() as snapshot:
            catalog = build_catalog(policy, snapshot.schema())
        yield here, World(here.connection, twin, backend, policy, catalog)


@pytest.mark.parametrize("keys", KEYS)
def test_the_same_groups_are_kept(pair: tuple[World, World], keys: str) -> None:
    numbers = ", ".join(str(place + 1) for place in range(keys.count(", ") + 1 if "(" not in keys else 1))
    sql = f"SELECT {keys}, COUNT(*), COUNT(DISTINCT label) FROM thing GROUP BY {numbers}"
    found = []
    for one in pair:
        (release,) = one.plan(sql).releases
        with one.backend.snapshot() as snapshot:
            found.append(spelled(measure_release(release, snapshot)))
    assert found[0] == found[1]
