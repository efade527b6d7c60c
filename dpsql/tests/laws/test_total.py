"""L2: whatever the rows hold, the printed SQL runs; a failure would say that a row is there (law L2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings

from dpsql.errors import EngineFailure, Refusal
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import VISIT, Database, rows_of

from .conftest import Desk, OpenDesk, make_desk
from .examples import REPEATED, visit

FUZZ = settings(REPEATED, max_examples=tried(6, 40))


@pytest.fixture(scope="module")
def open_desk(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[Desk]:
    with ExitStack() as stack:
        made = make_desk(stack, tmp_path_factory.mktemp("total"), ZeroNoise(), epsilon="0.001", server=engine)
        made.session.execute("SET dpsql.reuse = off")
        yield made


def answer(desk: Desk, sql: str) -> bool:
    """Run a statement; False when it is refused. An EngineFailure gets the statement as its note."""
    try:
        desk.session.execute(sql)
    except Refusal:
        return False
    except EngineFailure as failure:
        failure.add_note(f"{sql}\n{failure.detail}")
        raise
    return True


# Statements that have failed on some row at some time; each must be answered or refused, whatever the rows are.
ONCE_FAILED = (
    "SELECT SUM(big), COUNT(*) FROM visit",
    "SELECT AVG(big) FROM visit",
    "SELECT AVG(far), VAR_POP(far) FROM visit",
    "SELECT SUM(fine), VAR_POP(fine) FROM visit",
    "SELECT VAR_POP(day - DATE '2020-01-01') FROM visit",
    "SELECT COUNT(*) FROM visit WHERE left(tag, 5000000000) = 'x'",
    "SELECT COUNT(*) FROM visit WHERE big + 1 > d * 2",
    "SELECT COUNT(*) FROM visit WHERE least(far, d) > 1",
    "SELECT COUNT(*) FROM visit WHERE round(big, -1) = 1",
    "SELECT COUNT(*) FROM visit WHERE CASE WHEN flag THEN big ELSE d END > 0.001",
    "SELECT SUM(vast * vast) FROM visit",
    "SELECT VAR_POP(vast) FROM visit",
    "EXPLAIN SELECT SUM(vast) FROM visit",
    "SELECT SUM(CASE WHEN flag THEN round(n, -1) END) FROM visit",
    "SELECT SUM(COALESCE(NULL, round(n, -1))), SUM(GREATEST(round(n, -1), NULL)) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE n / (SELECT COUNT(*) FROM visit) > 1",
    "SELECT SUM(floor(vast * vast * 0)) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE floor(vast * vast * 0) > 0",
    "SELECT COUNT(*) FROM visit WHERE sin(vast * vast) > 0",
    "SELECT COUNT(*) FROM visit WHERE big > 0.0000000000000000000000001",
    "SELECT COUNT(*) FROM visit WHERE fine > 0.0000000000000000000000001",
    "SELECT COUNT(*) FROM visit WHERE huge > 0.5",
    "SELECT COUNT(*) FROM visit WHERE huge > d",
    "SELECT COUNT(*) FROM visit WHERE huge > fine",
    "SELECT COUNT(*) FROM visit WHERE huge IN (1, 2.5)",
    "SELECT SUM(huge) FROM visit WHERE huge BETWEEN 0 AND 10.5",
    "SELECT COUNT(*) FROM visit WHERE extract(week FROM any_day) = 1",
    "SELECT COUNT(*) FROM visit WHERE extract(week FROM any_seen) = 1",
    "SELECT COUNT(*) FROM visit WHERE extract(isoyear FROM any_day) = 1",
    "SELECT COUNT(*) FROM visit WHERE extract(isoyear FROM any_seen) = 1",
    "SELECT COUNT(*) FROM visit WHERE any_day < any_seen",
    "SELECT COUNT(*) FROM visit WHERE any_day < TIMESTAMP '2020-01-01'",
    "SELECT COUNT(*) FROM visit WHERE coalesce(any_day, any_seen) > TIMESTAMP '2020-01-01'",
    "SELECT COUNT(*) FROM visit WHERE greatest(any_day, any_seen) > TIMESTAMP '2020-01-01'",
    "SELECT COUNT(*) FROM visit WHERE CASE WHEN flag THEN any_seen ELSE any_day END > TIMESTAMP '2020-01-01'",
    "SELECT COUNT(*) FROM visit WHERE nullif(any_day, any_seen) IS NULL",
    "SELECT COUNT(*) FROM visit WHERE any_day IN (TIMESTAMP '2020-01-01', TIMESTAMP '2021-01-01')",
    "SELECT COUNT(*) FROM visit WHERE day + INTERVAL '999999 year' > TIMESTAMP '2020-01-01'",
    "SELECT COUNT(*) FROM visit WHERE day + big > DATE '2020-01-01'",
    "SELECT COUNT(*) FROM (SELECT person_id, MIN(extract(year FROM any_seen)) AS k FROM visit GROUP BY person_id) v "
    "WHERE k IS NOT NULL",
    "SELECT SUM(k) FROM (SELECT person_id, MAX(extract(isoyear FROM any_day)) AS k FROM visit GROUP BY person_id) v "
    "WHERE k BETWEEN 2000 AND 2030",
    "SELECT any_day, COUNT(*) FROM visit GROUP BY any_day",
    "SELECT any_seen, COUNT(*) FROM visit GROUP BY any_seen",
    "SELECT date_trunc('month', any_seen), COUNT(*) FROM visit GROUP BY 1",
    "SELECT huge, COUNT(*) FROM visit GROUP BY huge",
    "SELECT COUNT((n + x)) FILTER (WHERE flag) FROM visit WHERE x = 0",
    "SELECT COUNT(*) FROM visit WHERE big > floor((SELECT COUNT(*) * 1e40 FROM visit))",
    "SELECT COUNT(*) FROM visit WHERE x > (SELECT SUM(d) * 100000000000000000000000000000000000000 FROM visit)",
    "SELECT COUNT(*) FROM visit WHERE round(x * (SELECT exp(COUNT(*) * 100) FROM visit)) > 1",
)


@pytest.fixture(scope="module")
def every_cell(open_desk: Desk) -> Desk:
    """A desk whose database has every wild cell of every column, each with an owner of its own."""
    longest = max(len(cells) for cells in VISIT.cells.values())
    visits = [
        visit(unit, **{name: cells[unit % len(cells)] for name, cells in VISIT.cells.items()})
        for unit in range(longest)
    ]
    for name, cells in VISIT.cells.items():
        visits += [visit(100 + i, **{name: cell}) for i, cell in enumerate(cells)]
    visits += [visit(7, big="1152921504606846976", far="1000000000000000100", fine="1")] * 20
    open_desk.settle(Database((), tuple(visits)))
    return open_desk


@pytest.mark.parametrize("sql", ONCE_FAILED)
def test_it_does_not_fail_again(every_cell: Desk, sql: str) -> None:
    answer(every_cell, sql)


def test_a_failing_statement_would_be_seen(desk: OpenDesk) -> None:
    """The test's own eye: an engine that fails on a row does turn these tests red."""
    broken = desk(ZeroNoise())
    broken.settle(Database((), (visit(1, n="1"),)))
    broken.connection.execute("DROP TABLE visit")
    with pytest.raises(EngineFailure):
        answer(broken, "SELECT COUNT(*) FROM visit")


def test_the_random_rows_are_wild() -> None:
    """Every column has cells beyond its bounds, and NULL: else the fuzz would show nothing."""
    for name, cells in VISIT.cells.items():
        assert None in cells, name
        assert len(cells) >= (3 if name in ("flag", "level") else 5), name


def test_rows_are_drawn_from_all_cells() -> None:
    seen: set[str | None] = set()

    @settings(FUZZ, max_examples=200)
    @given(rows_of(VISIT))
    def draw(row: tuple[str | None, ...]) -> None:
        seen.update(row)

    draw()
    assert {"nan", "inf", "-inf", "1e308", "-0.0", "infinity", "", None} <= seen


def test_folder_of_policy_is_the_ledgers(tmp_path: Path, desk: OpenDesk) -> None:
    """Two desks share nothing: one test's charges cannot be another's."""
    first, second = desk(), desk()
    first.session.execute("SELECT COUNT(*) FROM visit")
    assert first.session.dataset.store.spent().epsilon_nano == 10**9
    assert second.session.dataset.store.spent().epsilon_nano == 0
