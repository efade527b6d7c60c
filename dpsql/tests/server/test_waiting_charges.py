"""A statement that has charged and waits for the engine, in a real server: killed there, and while the policy is read anew.

Between the reservation and the commit there is nothing but the engine's answer. A lock on the index of people, which
somebody else holds and only a plan of Postgres' asks for, keeps a statement exactly there for as long as the test wants.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from dpsql.engine.dataset import open_ledger
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy
from dpsql.tests.support.postgres_fixtures import postgres_majors
from dpsql.tests.support.postgres_server import PostgresServer

from .conftest import COUNT, PASSWORD, Served, run_server

PEOPLE = 2_000
CHARGE = 100_000_000
_POLICY = """
database = "{database}"
{ledger}
[privacy]
epsilon = 1000
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 120] }}
[analysts.alice]
epsilon = 500
password = "{verifier}"
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(postgres_majors()[-1], durable=True) as running:
        yield running


class Held:
    """A dataset on Postgres, and how to hold a statement's question for the people in it."""

    def __init__(self, folder: Path, server: PostgresServer, ledger: str) -> None:
        self.name, self._server = server.create_database(), server
        with server.admin(self.name) as admin:
            admin.execute("CREATE TABLE person (id bigint PRIMARY KEY, age integer)")
            admin.execute(f"INSERT INTO person SELECT i, i % 100 FROM generate_series(1, {PEOPLE}) AS t(i)")
        line = 'ledger = "sqlite:people.db"'
        if ledger == "postgres":
            line = f'ledger = "{server.url(server.create_database())}"\ndataset = "people"'
        self.policy = folder / "people.toml"
        self.policy.write_text(
            _POLICY.format(
                database=server.create_reader(self.name), ledger=line, verifier=make_verifier(PASSWORD).text()
            )
        )
        open_ledger(load_policy(self.policy), create=True).close()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Let nobody read the table of people until the block ends."""
        with self._server.admin(self.name) as admin, admin.transaction():
            admin.execute("REINDEX INDEX person_pkey")
            yield

    def waits(self) -> bool:
        """Whether a question for people is at the lock."""
        with self._server.admin(self.name) as admin:
            found = admin.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%person%' "
                "AND datname = current_database()"
            ).fetchone()
        assert found is not None
        return bool(found[0])

    def spent(self) -> int:
        ledger = open_ledger(load_policy(self.policy), create=False)
        try:
            return ledger.spent().epsilon_nano
        finally:
            ledger.close()

    def verified(self) -> int:
        command = [sys.executable, "-m", "dpsql.cli", "-P", str(self.policy), "budget", "verify"]
        return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.fixture(params=["sqlite", "postgres"])
def held(request: pytest.FixtureRequest, tmp_path: Path, server: PostgresServer) -> Held:
    return Held(tmp_path, server, request.param)


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def ask(served: Served, sql: str = COUNT) -> int:
    with served.connect() as connection:
        row = connection.execute(sql).fetchone()
        assert row is not None
        return int(row[0])


def test_killed_between_the_charge_and_the_draw(held: Held) -> None:
    """What was charged stays so, nothing was told, and whoever asks again pays once and is told one number for ever."""
    command = [sys.executable, "-m", "dpsql.cli", "-P", str(held.policy), "serve", "--port", "0"]
    with ThreadPoolExecutor(1) as threads:
        for kills in (1, 2):
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process, held.holding():
                try:
                    assert process.stderr is not None
                    served = Served(json.loads(process.stderr.readline())["port"], process)
                    asked = threads.submit(ask, served)
                    until(held.waits)
                    assert held.spent() == kills * CHARGE, "it is durable before people's rows are asked for"
                finally:
                    process.kill()
                assert process.wait(60) == -signal.SIGKILL
                with pytest.raises(psycopg.Error):
                    asked.result(60)
            assert held.spent() == kills * CHARGE
    with run_server(held.policy) as again:
        told = ask(again)
        assert abs(told - PEOPLE) < 500
        assert held.spent() == 3 * CHARGE
        assert ask(again) == told
    assert held.spent() == 3 * CHARGE
    assert held.verified() == 0


def test_a_policy_that_is_read_anew_while_a_charge_waits(held: Held) -> None:
    """The statement ends under the policy that it began with, charged once; what it drew answers on where it may."""
    text = held.policy.read_text()
    with run_server(held.policy) as served, ThreadPoolExecutor(2) as threads:
        with held.holding():
            asked = threads.submit(ask, served), threads.submit(ask, served, "SELECT SUM(age) FROM person")
            until(lambda: held.spent() == 2 * CHARGE)
            held.policy.write_text("broken")
            served.process.send_signal(signal.SIGHUP)
            served.wait_for("reload refused")
            held.policy.write_text(
                text.replace("[0, 120]", "[0, 50]").replace("epsilon = 500", "epsilon = 0.2")
            )
            served.process.send_signal(signal.SIGHUP)
            served.wait_for("reloaded")
            assert held.spent() == 2 * CHARGE
        count, total = (one.result(120) for one in asked)
        assert abs(count - PEOPLE) < 500
        assert held.spent() == 2 * CHARGE
        assert ask(served) == count, "the bounds of age say nothing of it"
        with pytest.raises(psycopg.Error) as refused:
            ask(served, "SELECT SUM(age) FROM person")  # it is another sum now, and alice's cap is spent
        assert refused.value.sqlstate == "53400"
        assert held.spent() == 2 * CHARGE
        held.policy.write_text(text)
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("reloaded", 2)
        assert ask(served, "SELECT SUM(age) FROM person") == total
        assert held.spent() == 2 * CHARGE
    assert held.verified() == 0
