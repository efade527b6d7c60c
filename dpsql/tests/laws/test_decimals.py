"""L2, L3: what is computed of decimals is exact, and raises for no row, up to the last digit that a column holds.

An engine whose products of decimals have the digits of their factors raises where one has more: of one row that is at
the end of its bounds (soundness.md 1.11).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.errors import EngineFailure, Refusal
from dpsql.plan.dialects.dialect import Dialect, Number
from dpsql.plan.dialects.dialect_duckdb import DuckDBDialect
from dpsql.plan.measures.measurements import WEIGHT
from dpsql.policy import parse_policy
from dpsql.tests.support.inserted import insert_texts
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer

from .held import verdict
from .measured import World, measure_release, world
from .planting import plant

COLUMNS = {
    "a": (18, 6),
    "b": (18, 2),
    "c": (9, 2),
    "e": (4, 3),
    "f": (18, 0),
    "w": (38, 9),
    "p": (15, 2),
    "q": (15, 2),
}
"""Digits in all, and after the point."""
BOUNDS = {
    "a": (0, 2 * 10**9), "b": (-(10**16), 10**16), "c": (-(10**6), 10**6), "e": (0, 1), "f": (0, 10**18),
    "w": (-(10**9), 10**9), "p": (0, 110_000), "q": (-1, 1),
}  # fmt: skip
"""Beyond what some of the columns hold, so that nothing is clamped there, and at the ends of others."""
WHOLE = {"i": ("SMALLINT", 15), "n": ("BIGINT", 10**9)}
"""Whole numbers by their type, and the end of their bounds on both sides."""
_LISTED = ", ".join(
    [
        *(f"{name} DECIMAL{digits}" for name, digits in COLUMNS.items()),
        *(f"{name} {kind}" for name, (kind, _) in WHOLE.items()),
    ]
)
SCHEMA = f"""
CREATE TABLE person (id INTEGER PRIMARY KEY, {_LISTED});
CREATE TABLE visit (owner INTEGER NOT NULL, {_LISTED})
"""
_ENDS = {**BOUNDS, **{name: (-end, end) for name, (_, end) in WHOLE.items()}}
_BOUNDED = "\n".join(f"{name} = {{ bounds = [{low}, {high}] }}" for name, (low, high) in _ENDS.items())
POLICY = f"""
database = "duckdb:laws.db"
[privacy]
epsilon = 10
delta = 1e-6
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.person.columns]
{_BOUNDED}
[tables.visit]
unit = {{ column = "owner", references = "person.id" }}
max_rows = 2
[tables.visit.columns]
{_BOUNDED}
"""


def cells(name: str) -> list[int | None]:
    """Return what the column holds, in units of its last digit."""
    most = 10 ** COLUMNS[name][0] - 1
    return [most, -most, 1, -1, 0, None]


def shown(name: str, cell: int | None) -> str | None:
    """Return a cell as a text."""
    if cell is None:
        return None
    whole, part = divmod(abs(cell), 10 ** COLUMNS[name][1])
    return f"{'-' if cell < 0 else ''}{whole}.{part:0{COLUMNS[name][1]}}"


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    """Rows at all ends, two people with more than R of them."""
    folder = tmp_path_factory.mktemp("decimals")
    with world(
        folder, policy=parse_policy(POLICY, folder / "laws.toml"), schema=SCHEMA, server=engine
    ) as made:
        fill(made.connection)
        made.refresh()
        yield made


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    columns = [[shown(name, cell) for cell in cells(name)] for name in COLUMNS]
    wholes = [
        ["32767", "-32768", "1", "-1", "0", None],
        [str(2**63 - 1), str(-(2**63)), "7", "-1", "0", None],
    ]
    rows = list(zip(*columns, *wholes, strict=True))
    insert_texts(connection, "person", [(str(i), *row) for i, row in enumerate(rows)])
    owned = [(str(owner), *row) for i, row in enumerate(rows) for owner in (0, 1, 10 + i)]
    insert_texts(connection, "visit", owned)


def drawn(rng: random.Random, depth: int) -> str:
    """Return an expression of some of the columns and constants."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*COLUMNS, *WHOLE, "p", "q", "p", "q", "1", "0.05", "(-2.5)", "100"])
    left, right = drawn(rng, depth - 1), drawn(rng, depth - 1)
    form = rng.choice(
        [
            "({} + {})",
            "({} - {})",
            "({} * {})",
            "({} * {})",
            "(-{})",
            "abs({})",
            "NULLIF({}, 1)",
            "COALESCE({}, {})",
        ]
    )
    return form.format(*(left, right)[: form.count("{}")])


def texts(seed: int, count: int) -> list[str]:
    """Return statements of which each sums such an expression."""
    rng = random.Random(seed)
    return [f"SELECT SUM({drawn(rng, 3)}), COUNT(*) FROM visit" for _ in range(count)]


def asked(name: str) -> tuple[str, ...]:
    return (
        f"SELECT SUM({name}), COUNT({name}) FROM {{table}}",
        f"SELECT AVG({name}) FROM {{table}}",
        f"SELECT VAR_POP({name}) FROM {{table}}",
        f"SELECT SUM({name} + 1) FROM {{table}}",
        f"SELECT SUM(1 - {name}) FROM {{table}}",
        f"SELECT SUM(-{name}) FROM {{table}}",
        f"SELECT COUNT(*) FROM {{table}} WHERE {name} + 1 > 3",
        f"SELECT COUNT(*) FROM {{table}} WHERE round({name}) = 3 OR abs({name}) > 2.5",
        f"SELECT MEDIAN({name}) FROM {{table}}",
    )


def measured(world: World, sql: str) -> list[object]:
    with world.backend.snapshot() as snapshot:
        return [measure_release(release, snapshot) for release in world.plan(sql).releases]


@pytest.mark.parametrize("table", ["person", "visit"])
@pytest.mark.parametrize("name", COLUMNS)
def test_no_row_at_the_end_of_its_digits_raises(ends: World, name: str, table: str) -> None:
    for sql in asked(name):
        assert measured(ends, sql.format(table=table)), sql


@pytest.mark.parametrize("name", COLUMNS)
def test_sums_are_those_of_whole_numbers(ends: World, name: str) -> None:
    """Python's own: each value within its bounds, in units of its last digit."""
    low, high = (end * 10 ** COLUMNS[name][1] for end in BOUNDS[name])
    whole = [min(max(cell, low), high) for cell in cells(name) if cell is not None]
    (release,) = ends.plan(f"SELECT SUM({name}) FROM person").releases
    with ends.backend.snapshot() as snapshot:
        found = measure_release(release, snapshot)[0]
    assert sum(coordinates[0] for coordinates in found.values()) in (sum(whole), WEIGHT * sum(whole))


COMPUTED = (
    "SELECT SUM(p * (1 - q)), SUM(p * (1 - q) * (1 + q)), AVG(q * i), COUNT(*) FROM visit",
    "SELECT SUM(-p - 0.05), SUM(abs(-q * p)), SUM(NULLIF(-q, 1) * 2), SUM(p * n), SUM(i * n) FROM visit",
    "SELECT SUM(p * q * e * c), SUM(a - q), SUM(b + e), SUM(f * e), SUM(w * q) FROM visit",
    "SELECT VAR_POP(p * (1 - q)) FROM visit",
    "SELECT SUM(p * n * (i + 90)), SUM(b + p) FROM person",
    "SELECT SUM(p + q) FILTER (WHERE i > 0), SUM(p + q) FROM person",
)


def answered(world: World, sqls: Iterable[str]) -> list[list[object] | str]:
    """Return what each comes to, and of a refused one why."""
    found: list[list[object] | str] = []
    for sql in sqls:
        try:
            found.append(measured(world, sql))
        except Refusal as refusal:
            found.append(refusal.sqlstate)
    return found


def test_decimals_are_the_integers_that_they_stand_for(ends: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an engine computes with in decimals is what it comes to in integers of a grid, on every row."""
    sqls = [*COMPUTED, *texts(1, tried(12, 300))]
    found = answered(ends, sqls)
    assert sum(not isinstance(one, str) for one in found) >= 10
    monkeypatch.setattr(DuckDBDialect, "narrow_decimals", False)
    for sql, ours, theirs in zip(sqls, found, answered(ends, sqls), strict=True):
        assert ours == theirs, sql


def too_long(patch: pytest.MonkeyPatch) -> None:
    plant(patch, Dialect.as_decimal, ("number.reach * number.grid * 10**places >= DECIMAL_REACH", "False"))


def kept(patch: pytest.MonkeyPatch) -> None:
    """What is made of a number is still said to be that number as a decimal."""
    plant(patch, Number.changed, (', decimal=""', ""))


FAULTS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    too_long, kept,
)  # fmt: skip


@pytest.mark.parametrize("fault", range(len(FAULTS)))
def test_a_planted_fault_is_seen(fault: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with world(tmp_path, policy=parse_policy(POLICY, tmp_path / "laws.toml"), schema=SCHEMA) as made:
        fill(made.connection)
        whole = pytest.MonkeyPatch()
        with whole.context() as patch:
            patch.setattr(DuckDBDialect, "narrow_decimals", False)
            right = answered(made, COMPUTED)
        FAULTS[fault](monkeypatch)
        try:
            wrong = answered(made, COMPUTED)
        except EngineFailure:
            return
        assert wrong != right


def test_the_verifier_has_the_digits_of_a_product(ends: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds that no row raises, of all that is answered, and of none of the faults."""
    narrow, computed = "SELECT COUNT(*) FROM person WHERE a + 1 > 3", COMPUTED[-2]
    assert [verdict(ends, sql) for sql in (narrow, computed, COMPUTED[0])] == [""] * 3
    if ends.twin is None:
        too_long(monkeypatch)
        monkeypatch.setattr(DuckDBDialect, "whole", Dialect.whole)
        assert "fits its type" in verdict(ends, narrow)
        assert "fits its type" in verdict(ends, computed)


def test_a_product_that_stays_narrow_would_be_seen(ends: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's own eye: without the wider type a row at the end of its digits raises."""
    monkeypatch.setattr(DuckDBDialect, "whole", Dialect.whole)
    sql = "SELECT COUNT(*) FROM person WHERE a + 1 > 3"
    if ends.twin is not None:
        assert measured(ends, sql), "a numeric has any digits"
        return
    with pytest.raises(EngineFailure):
        measured(ends, sql)
