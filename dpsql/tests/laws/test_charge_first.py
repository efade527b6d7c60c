"""L5, end to end: the charge is durable before the engine sees a byte, and a killed process keeps it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql import Session
from dpsql.backends import DuckDBBackend, Snapshot
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import EngineFailure
from dpsql.policy import load_policy
from dpsql.tests.support.random_databases import load

from .conftest import OpenDesk
from .examples import HEAVY

STATEMENTS = (
    "SELECT COUNT(*) FROM visit",
    "SELECT city, AVG(x), COUNT(DISTINCT tag) FROM visit GROUP BY city",
    "SELECT tag, COUNT(*) FROM visit GROUP BY tag",
    "SELECT COUNT(*) FROM visit WHERE x > (SELECT AVG(x) FROM visit)",
)


class Watched:
    """A backend that notes what had been spent each time the engine was asked, and may fail then."""

    dialect = "duckdb"

    def __init__(
        self, inner: DuckDBBackend, session: list[Session], fault: type[Exception] | None = None
    ) -> None:
        self.inner, self.session, self.fault = inner, session, fault
        self.spent_at: list[int] = []

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[Snapshot]:
        with self.inner.snapshot(owner) as snapshot:
            yield _Seen(self, snapshot)

    def cancel(self, owner: object = None) -> None:
        self.inner.cancel(owner)

    def close_idle(self) -> bool:
        return self.inner.close_idle()


class _Seen:
    def __init__(self, watched: Watched, inner: Snapshot) -> None:
        self.watched, self.inner = watched, inner
        self.schema, self.catalog = inner.schema, inner.catalog
        self.cancel = inner.cancel

    def run(
        self, sql: str, parameters: Sequence[object] = (), size: int = 65536, *, is_direct: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        self.watched.spent_at.append(self.watched.session[0].dataset.store.spent().epsilon_nano)
        if self.watched.fault is not None:
            raise self.watched.fault("on purpose")
        return self.inner.run(sql, parameters, size, is_direct=is_direct)


def watched_session(desk: OpenDesk, fault: type[Exception] | None = None) -> tuple[Session, Watched]:
    opened = desk()
    opened.settle(HEAVY)
    box: list[Session] = []
    watched = Watched(DuckDBBackend.over(opened.connection), box, fault)
    box.append(Session(Dataset(opened.policy, watched, opened.session.dataset.store), "watched"))
    return box[0], watched


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_whole_charge_is_spent_before_the_engine_is_asked(desk: OpenDesk, sql: str) -> None:
    session, watched = watched_session(desk)
    whole = int(session.explain(sql).plan.epsilon * 10**9)
    session.execute(sql)
    assert watched.spent_at
    assert set(watched.spent_at) == {whole}


@pytest.mark.parametrize("failure", [EngineFailure, MemoryError])
@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_failure_gives_nothing_back(desk: OpenDesk, sql: str, failure: type[Exception]) -> None:
    session, watched = watched_session(desk, failure)
    whole = int(session.explain(sql).plan.epsilon * 10**9)
    with pytest.raises(EngineFailure) as failed:
        session.execute(sql)
    assert str(failed.value).startswith("58V01: the database could not answer this statement")
    assert session.dataset.store.spent().epsilon_nano == whole
    with pytest.raises(EngineFailure):
        session.execute(sql)
    assert session.dataset.store.spent().epsilon_nano == 2 * whole
    watched.fault = None
    session.execute(sql)


_POLICY = """
database = "duckdb:data.duckdb"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 9000
delta = 0.5
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
"""


@pytest.fixture
def campus(tmp_path: Path) -> Path:
    from dpsql.tests.support.random_databases import SCHEMA

    with duckdb.connect(str(tmp_path / "data.duckdb")) as connection:
        connection.execute(SCHEMA)
        load(connection, HEAVY)
    policy = tmp_path / "policy.toml"
    policy.write_text(_POLICY, encoding="utf-8")
    open_ledger(load_policy(policy), create=True).close()
    return policy


def _asked_and_killed(policy: Path, after: float | None, turn: int = 0) -> int:
    """Ask one counting statement after another in a real process; return how many answers came out."""
    statements = "; ".join(
        f"SELECT COUNT(*) AS n FROM person WHERE age <> {turn * 40 + i}" for i in range(40)
    )
    command = [sys.executable, "-m", "dpsql.cli", "-P", str(policy), "query", "--format", "csv", statements]
    # Unbuffered: else answers that came with the first line would be read with it, and lost to `communicate`.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    assert process.stdout is not None
    if after is not None:
        process.stdout.readline()  # the first answer has begun: from here on every moment counts
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
    out, _ = process.communicate(timeout=600)
    assert process.returncode in (0, -signal.SIGKILL)
    lines = out.split(b"\n")[:-1]  # what is cut short is no answer
    return sum(line.lstrip(b"-").isdigit() for line in lines)


def _spent(policy: Path) -> int:
    store = open_ledger(load_policy(policy), create=False)
    try:
        return store.spent().epsilon_nano
    finally:
        store.close()


def test_a_process_that_ends_well_is_charged_for_each_answer(campus: Path) -> None:
    answers = _asked_and_killed(campus, None)
    assert answers == 40
    assert _spent(campus) == 40 * 10**9


@pytest.mark.parametrize(
    "run", [pytest.param(4, id="short"), pytest.param(60, id="long", marks=pytest.mark.long)]
)
def test_killed_at_any_moment_it_is_never_charged_too_little(campus: Path, run: int) -> None:
    """The ledger opens again, and holds what was answered; a statement or two more had begun."""
    chance = random.Random(run)
    before = 0
    for turn in range(run):
        answers = _asked_and_killed(campus, chance.uniform(0, 0.15), turn)
        after = _spent(campus)
        assert answers * 10**9 <= after - before <= (answers + 2) * 10**9
        before = after
    assert before > 0
