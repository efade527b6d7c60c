"""L6: all but the noise is a function of the query, the policy and earlier released values.

Two desks get the same statements in the same order over neighbouring databases. Whatever an analyst sees
besides noisy numbers is the same: refusals, charges, texts, columns, types, row counts and orders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.engine.answer import Answer
from dpsql.errors import DpsqlError, EngineFailure
from dpsql.mechanisms import Law
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database

from .conftest import Desk, OpenDesk, make_desk
from .examples import HEAVY, NOBODY, ORDINARY, visit


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None
) -> Iterator[tuple[Desk, Desk]]:
    with ExitStack() as stack:
        folders = [tmp_path_factory.mktemp(f"side{i}") for i in (1, 2)]
        one, two = (
            make_desk(stack, folder, ZeroNoise(), epsilon="0.001", server=engine) for folder in folders
        )
        for desk in (one, two):
            desk.session.execute("SET dpsql.reuse = off")
        yield one, two


def seen(desk: Desk, sql: str) -> tuple[object, ...]:
    """Return all that an analyst sees of a statement but the measured values."""
    try:
        explained: object = desk.session.explain(sql).text()
        answer = desk.session.execute(sql)
    except DpsqlError as error:
        return type(error).__name__, error.sqlstate, str(error), error.args
    plan = desk.session.explain(sql).plan
    thresholded = any(release.counted is not None for release in plan.releases)
    return explained, answer.columns, answer.receipt, None if thresholded else shape(answer, plan.releases)


def shape(answer: Answer, releases: object) -> tuple[object, ...]:
    """Return the row count, and the cells of every column that is no number: keys, in their order."""
    kept = [i for i, column in enumerate(answer.columns) if not column.type.is_number]
    return len(answer.rows), [tuple(row[i] for i in kept) for row in answer.rows]


STAGED = (
    "SELECT COUNT(*) FROM visit WHERE n > (SELECT AVG(n) FROM visit)",
    "SELECT city, SUM(n) FROM visit WHERE x < (SELECT AVG(x) FROM visit WHERE flag) GROUP BY city",
    "SELECT COUNT(*) FROM visit WHERE n / (SELECT COUNT(*) FROM visit) > 1",
    "SELECT COUNT(*) FROM visit WHERE n > (SELECT SUM(n) FROM visit WHERE tag = 'no such tag')",
)


LOOKED_AT = (
    *STAGED,
    "SELECT city, COUNT(*), AVG(x) FROM visit GROUP BY city",
    "SELECT city, flag, COUNT(*) FROM visit GROUP BY ROLLUP (city, flag)",
    "SELECT SUM(n), AVG(n), VAR_POP(n), COUNT(DISTINCT tag), dp_avg_direct(n) FROM visit WHERE false",
    "SELECT COUNT(*) FROM visit WHERE n BETWEEN 5 AND 2",
    "SELECT extract(month FROM day) AS m, COUNT(*) FROM visit GROUP BY 1",
    "SELECT wild FROM visit",
    "SELECT SUM(wild) FROM visit",
)


@pytest.mark.parametrize(
    "database",
    [NOBODY, HEAVY, pytest.param(ORDINARY, marks=pytest.mark.long)],
    ids=["empty", "heavy", "ordinary"],
)
@pytest.mark.parametrize("sql", LOOKED_AT)
def test_any_database_looks_like_the_empty_one(pair: tuple[Desk, Desk], sql: str, database: Database) -> None:
    for desk, rows in zip(pair, (NOBODY, database), strict=True):
        desk.settle(rows)
    left, right = (seen(desk, sql) for desk in pair)
    assert left == right


class OneNumber(ZeroNoise):
    """A noise that adds the same number everywhere, in the coordinates' own fractions."""

    def __init__(self, number: int) -> None:
        self._number = number

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return np.full(count, self._number, dtype=np.int64)


NO_ROWS = "SELECT COUNT(*), SUM(n), dp_avg_direct(d), AVG(n), VAR_POP(n), COUNT(n) FROM visit WHERE n = 5"


def test_no_answer_is_null_where_there_are_no_rows(desk: OpenDesk) -> None:
    """SUM over nothing is NULL in SQL: an exact one-bit release (soundness.md 1.8).

    An average and a variance are NULL by their noisy count alone, which is shown rounded: a shown 0 may be either.
    """
    *others, average, variance, count = desk().session.execute(NO_ROWS).rows[0]
    assert None not in others
    assert isinstance(count, int)
    if count:
        assert (average is None) == (variance is None) == (count < 0)


@pytest.mark.parametrize("noise", [-(10**6), -1, 0, 1, 10**6])
def test_an_average_is_null_by_its_noisy_count_alone(desk: OpenDesk, noise: int) -> None:
    """No row counts: the noisy count is the noise, down to the smallest fraction of a row."""
    *others, average, variance, count = desk(OneNumber(noise)).session.execute(NO_ROWS).rows[0]
    assert None not in (*others, count)
    assert (average is None) == (variance is None) == (noise <= 0)


# --- failures ----------------------------------------------------------------------------------------


def _drop(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("DROP TABLE visit")


def _widen(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("ALTER TABLE visit ALTER n TYPE BIGINT")


def _close(connection: duckdb.DuckDBPyConnection) -> None:
    connection.close()


@pytest.mark.parametrize("harm", [_drop, _widen, _close])
def test_every_engine_failure_reads_the_same(
    desk: OpenDesk, harm: Callable[[duckdb.DuckDBPyConnection], None]
) -> None:
    broken = desk(epsilon="0.001")
    broken.settle(Database((), (visit(1, tag="SECRET-IN-A-ROW", n="1"),)))
    harm(broken.connection)
    with pytest.raises(EngineFailure) as caught:
        broken.session.execute("SELECT tag, COUNT(*) FROM visit GROUP BY tag")
    plain = EngineFailure()
    plain.cost = "nothing was charged"
    assert (str(caught.value), caught.value.args, caught.value.sqlstate) == (str(plain), plain.args, "58V01")


def test_an_engine_error_keeps_its_text_to_itself(desk: OpenDesk) -> None:
    """DuckDB's own message quotes the value; nothing of it is in the failure or its chain."""
    backend = DuckDBBackend.over(desk().connection)
    with pytest.raises(EngineFailure) as caught, backend.snapshot() as snapshot:
        list(snapshot.run("SELECT CAST('SECRET' AS INTEGER)"))
    error: BaseException | None = caught.value
    while error is not None:
        assert "SECRET" not in repr(error) + str(getattr(error, "detail", ""))
        error = error.__cause__ or error.__context__


def test_refusals_name_nothing_of_the_data(desk: OpenDesk, tmp_path: Path) -> None:
    """Missing and undeclared are one error, whatever is in the database."""
    here = desk()
    here.connection.execute("CREATE TABLE hidden (id INTEGER)")
    messages = set()
    for name in ("hidden", "missing"):
        with pytest.raises(DpsqlError) as caught:
            here.session.execute(f"SELECT COUNT(*) FROM {name}")
        messages.add(re.sub(name, "NAME", str(caught.value)))
    assert len(messages) == 1
