"""A database, or a ledger, whose network falls silent: a statement ends with its limit, and says what is true."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.budget import LedgerStore
from dpsql.engine.dataset import open_ledger
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy
from dpsql.tests.support.postgres_fixtures import postgres_majors
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.stall_proxy import StallProxy

from .conftest import PASSWORD, SCHEMA, Served, run_server

LIMIT = 1.6
"""Seconds: `statement_timeout = 1` on the grid of replies."""
LATEST = LIMIT + 1.0
NOTHING = "nothing was charged"
SPENT = "epsilon 0.1 stays spent, and nothing was stored for it"
STORED = "epsilon 0.1 was charged, and the release is stored: asking again is free"
MAYBE = "whether epsilon 0.1 was charged is not known; if so, it stays spent, and nothing is stored for it"
MAYBE_STORED = "epsilon 0.1 was charged and stays spent; whether its release is stored is not known: if so, asking again is free"
POLICY = """
database = "{database}"
ledger = "{ledger}"
dataset = "people"
[privacy]
epsilon = 1000
[defaults]
epsilon = 0.1
[server]
statement_timeout = 1
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 120] }}
[tables.number]
public = true
[analysts.alice]
epsilon = 500
password = "{verifier}"
"""
TABLES = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, city TEXT);
INSERT INTO person SELECT i, i % 100, 'north' FROM generate_series(1, 2000) AS r(i);
CREATE TABLE number (i BIGINT);
INSERT INTO number SELECT i FROM generate_series(1, 30000) AS r(i);
"""
_numbers = count(1)


class Place:
    """A running server with its one silent neighbour: the proxy, the policy, what is spent."""

    def __init__(self, served: Served, proxy: StallProxy, policy: Path, direct: Path) -> None:
        self.served, self.proxy, self.policy, self._direct = served, proxy, policy, direct

    @contextmanager
    def ledger(self) -> Iterator[LedgerStore]:
        """Open the ledger past the proxy, with the server's own log."""
        store = open_ledger(load_policy(self._direct), create=False)
        try:
            yield store
        finally:
            store.close()

    def spent(self) -> int:
        """Return what is spent, in thousandths of epsilon."""
        with self.ledger() as store:
            return store.spent().epsilon_nano // 10**6


def fresh() -> str:
    """Return a statement that nobody asked."""
    return f"SELECT COUNT(*) FROM person WHERE age * 1000 + {next(_numbers)} > 50000"


@contextmanager
def place_on(
    folder: Path, proxy: StallProxy, urls: dict[str, str], direct: dict[str, str], probe_seconds: float = 10.0
) -> Iterator[Place]:
    verifier = make_verifier(PASSWORD).text()
    path, beside = folder / "people.toml", folder / "direct" / "people.toml"
    beside.parent.mkdir()
    path.write_text(POLICY.format(**urls, verifier=verifier))
    beside.write_text(POLICY.format(**direct, verifier=verifier))
    open_ledger(load_policy(path), create=True).close()
    with run_server(path, probe_seconds=probe_seconds) as served:
        yield Place(served, proxy, path, beside)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A server that keeps what it commits, as a ledger asks for."""
    with PostgresServer(postgres_majors()[-1], durable=True) as server:
        yield server


@pytest.fixture(scope="module")
def engine(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Have the owner's database on a Postgres behind the proxy, and the ledger in a file."""
    folder, name = tmp_path_factory.mktemp("engine"), postgres.create_database()
    with postgres.admin(name) as connection:
        connection.execute(TABLES)
    url = postgres.create_reader(name)
    with StallProxy(url) as proxy:
        ledger = f"sqlite:{folder / 'people.db'}"
        urls = {"database": proxy.url, "ledger": ledger}
        with place_on(folder, proxy, urls, urls) as place:
            yield place


@contextmanager
def ledger_behind(proxied: PostgresServer, folder: Path, probe_seconds: float = 10.0) -> Iterator[Place]:
    """Have the ledger on a Postgres behind a proxy, and the owner's database in a file."""
    name = proxied.create_database()
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        database.execute(SCHEMA)
    with StallProxy(proxied.url(name)) as proxy:
        database_url = f"duckdb:{folder / 'people.duckdb'}"
        urls = {"database": database_url, "ledger": proxy.url}
        direct = {"database": database_url, "ledger": proxied.url(name)}
        with place_on(folder, proxy, urls, direct, probe_seconds) as place:
            yield place


@pytest.fixture(scope="module")
def ledger(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with ledger_behind(postgres, tmp_path_factory.mktemp("ledger")) as place:
        yield place


def connected(place: Place) -> psycopg.Connection[Any]:
    """Return a connection, once a look at the ledger that fell into a silence is followed by one that did not."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return place.served.connect()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def told(connection: psycopg.Connection[Any], sql: str) -> tuple[float, str, str]:
    """Return how long a statement took, and how it ended: message and detail."""
    start = time.monotonic()
    try:
        connection.execute(sql.encode())
    except psycopg.Error as error:
        return (
            time.monotonic() - start,
            error.diag.message_primary or str(error),
            error.diag.message_detail or "",
        )
    return time.monotonic() - start, "answered", ""


def check_told(
    place: Place,
    connection: psycopg.Connection[Any],
    ended: tuple[float, str, str],
    before: int,
    expected: set[str],
) -> None:
    """Have a statement end in time with one sentence, which is true once all is well again: as it is at once."""
    seconds, message, detail = ended
    assert seconds <= LATEST
    said = detail.removeprefix("F0V02: the ledger cannot be used; ").removeprefix(
        "58V01: the engine failed; "
    )
    assert said in expected, (message, detail)
    heals(place, connection)
    charged = place.spent() - before - 100  # what heals costs a fresh statement
    assert charged in ({0} if said == NOTHING else {0, 100} if said == MAYBE else {100})


def heals(place: Place, connection: psycopg.Connection[Any]) -> None:
    """Have a fresh statement be answered at once after the silence."""
    place.proxy.resume()
    start = time.monotonic()
    assert connection.execute(fresh().encode()).fetchone() is not None
    assert time.monotonic() - start < 1.5


ENGINE_STAGES: dict[str, tuple[Callable[[StallProxy], None], set[str]]] = {
    "begin": (lambda proxy: proxy.stall_at(b"BEGIN ISOLATION"), {NOTHING}),
    "begin unheard": (lambda proxy: proxy.stall_at(b"BEGIN ISOLATION", reaches=False), {NOTHING}),
    "query": (lambda proxy: proxy.stall_at(b"person"), {NOTHING, SPENT}),
    "query unheard": (lambda proxy: proxy.stall_at(b"1000", reaches=False), {SPENT}),
    "its rows": (lambda proxy: proxy.stall_at(b"1000"), {SPENT}),
    "the end": (lambda proxy: proxy.stall_at(b"ROLLBACK"), {SPENT}),
}


@pytest.fixture(autouse=True)
def resumed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the network speak again, however a test ends."""
    yield
    for name in {"engine", "ledger"} & set(request.fixturenames):
        request.getfixturevalue(name).proxy.resume()


def in_turn(stages: Iterable[str], *others: str) -> list[object]:
    """Return the stages, some of them under `long`: those at which the same is told as at one that stays."""
    return [pytest.param(one, marks=pytest.mark.long if one in others else ()) for one in stages]


@pytest.mark.parametrize(
    "stage", in_turn(ENGINE_STAGES, "begin", "begin unheard", "query unheard", "its rows")
)
def test_a_silent_database(engine: Place, stage: str) -> None:
    stall, expected = ENGINE_STAGES[stage]
    with engine.served.connect() as connection:
        heals(engine, connection)
        before = engine.spent()
        stall(engine.proxy)
        ended = told(connection, fresh())
        assert engine.proxy.is_silent
        check_told(engine, connection, ended, before, expected)


def test_a_database_that_is_silent_from_the_first_byte(engine: Place, postgres: PostgresServer) -> None:
    with engine.served.connect() as connection:
        heals(engine, connection)
        end_connections(postgres, "application_name = 'dpsql'")
        before = engine.spent()
        engine.proxy.stall()
        check_told(engine, connection, told(connection, fresh()), before, {NOTHING})


def test_a_database_that_is_silent_within_its_rows(engine: Place) -> None:
    with engine.served.connect() as connection:
        heals(engine, connection)
        engine.proxy.stall_after(20_000)
        ended = told(connection, "SELECT i FROM number ORDER BY i")
        assert engine.proxy.is_silent
        check_told(engine, connection, ended, engine.spent(), {NOTHING})


def test_a_database_that_says_a_byte_now_and_then(engine: Place) -> None:
    with engine.served.connect() as connection:
        heals(engine, connection)
        before = engine.spent()
        engine.proxy.drip(0.03)
        check_told(engine, connection, told(connection, fresh()), before, {NOTHING, SPENT})


def test_a_database_that_answers_after_the_limit(engine: Place) -> None:
    """What it says then belongs to nobody: the next statement gets its own answer."""
    with engine.served.connect() as connection:
        heals(engine, connection)
        before = engine.spent()
        engine.proxy.stall_at(b"1000")
        late = threading.Timer(LIMIT + 0.2, engine.proxy.resume)
        late.start()
        ended = told(connection, fresh())
        late.join()
        check_told(engine, connection, ended, before, {SPENT})


def test_a_cancel_of_a_silent_database(engine: Place) -> None:
    with engine.served.connect() as connection:
        heals(engine, connection)
        before = engine.spent()
        engine.proxy.stall_at(b"1000")
        timer = threading.Timer(0.3, connection.cancel)
        timer.start()
        ended = told(connection, fresh())
        timer.join()
        assert ended[0] <= 0.3 + 1.0
        assert ended[1] == "the statement was cancelled"
        check_told(engine, connection, ended, before, {SPENT})


def test_a_database_that_closes_its_half(engine: Place) -> None:
    """At once an error where a statement runs; where none does, the next one has another connection."""
    with engine.served.connect() as connection:
        heals(engine, connection)
        before = engine.spent()
        engine.proxy.stall_at(b"1000", closes=True)
        ended = told(connection, fresh())
        assert ended[1] == "the database could not answer this statement"
        check_told(engine, connection, ended, before, {SPENT})
        engine.proxy.half_close()
        heals(engine, connection)


def test_twenty_statements_of_a_silent_database(engine: Place, postgres: PostgresServer) -> None:
    """More than there are connections: those that wait for one end in time too, and none is lost to the others."""
    clients = [engine.served.connect() for _ in range(20)]
    heals(engine, clients[0])
    before = engine.spent()
    engine.proxy.stall()
    with ThreadPoolExecutor(20) as pool:
        ends = list(pool.map(lambda client: told(client, fresh()), clients))
    assert max(seconds for seconds, *_ in ends) <= LATEST
    assert {detail for _, _, detail in ends} == {NOTHING}
    engine.proxy.resume()
    assert engine.spent() == before
    with ThreadPoolExecutor(4) as pool:
        assert [end[1] for end in pool.map(lambda client: told(client, fresh()), clients[:4])] == [
            "answered"
        ] * 4
    for client in clients:
        client.close()


def test_connections_that_the_server_ended_are_replaced_at_once(
    engine: Place, postgres: PostgresServer
) -> None:
    clients = [engine.served.connect() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert {end[1] for end in pool.map(lambda client: told(client, fresh()), clients)} == {"answered"}
        end_connections(postgres, "application_name = 'dpsql'")
        ends = list(pool.map(lambda client: told(client, fresh()), clients))
    assert {end[1] for end in ends} == {"answered"}
    assert max(end[0] for end in ends) < 1.5
    for client in clients:
        client.close()


LEDGER_STAGES: dict[str, tuple[Callable[[StallProxy], None], set[str]]] = {
    "a read": (lambda proxy: proxy.stall_at(b"spent"), {NOTHING}),
    "the lock": (lambda proxy: proxy.stall_at(b"LOCK TABLE"), {NOTHING}),
    "the lock unheard": (lambda proxy: proxy.stall_at(b"LOCK TABLE", reaches=False), {NOTHING}),
    "the certificate": (
        lambda proxy: proxy.stall_at(b"INSERT INTO certificate", b"COMMIT\0"),
        {NOTHING},
    ),
    "the record": (lambda proxy: proxy.stall_at(b"INSERT INTO record"), {SPENT}),
    "the commit of a charge": (lambda proxy: proxy.stall_at(b"INSERT INTO record", b"COMMIT\0"), {SPENT}),
    "that unheard": (
        lambda proxy: proxy.stall_at(b"INSERT INTO record", b"COMMIT\0", reaches=False),
        {SPENT},
    ),
    "the draws": (lambda proxy: proxy.stall_at(b"INSERT INTO draw"), {MAYBE_STORED}),
    "the commit of draws": (lambda proxy: proxy.stall_at(b"INSERT INTO draw", b"COMMIT\0"), {MAYBE_STORED}),
    "those unheard": (
        lambda proxy: proxy.stall_at(b"INSERT INTO draw", b"COMMIT\0", reaches=False),
        {MAYBE_STORED},
    ),
}


@pytest.mark.parametrize(
    "stage",
    in_turn(
        LEDGER_STAGES,
        "the lock",
        "the lock unheard",
        "the certificate",
        "the record",
        "that unheard",
        "the draws",
        "those unheard",
    ),
)
def test_a_silent_ledger(ledger: Place, postgres: PostgresServer, stage: str) -> None:
    stall, expected = LEDGER_STAGES[stage]
    with connected(ledger) as connection:
        end_connections(
            postgres, "application_name = 'dpsql ledger'"
        )  # a new one has prepared nothing: it says it all
        heals(ledger, connection)
        before = ledger.spent()
        stall(ledger.proxy)
        ended = told(connection, fresh())
        assert ledger.proxy.is_silent
        check_told(ledger, connection, ended, before, expected)


def test_a_ledger_that_closes_its_half(ledger: Place, postgres: PostgresServer) -> None:
    with connected(ledger) as connection:
        end_connections(postgres, "application_name = 'dpsql ledger'")
        heals(ledger, connection)
        before = ledger.spent()
        ledger.proxy.stall_at(b"INSERT INTO record", b"COMMIT\0", closes=True)
        ended = told(connection, fresh())
        assert ended[1] == "the ledger cannot be used"
        check_told(ledger, connection, ended, before, {SPENT})
        ledger.proxy.half_close()
        heals(ledger, connection)


def test_a_cancel_of_a_silent_ledger(ledger: Place, postgres: PostgresServer) -> None:
    with connected(ledger) as connection:
        end_connections(postgres, "application_name = 'dpsql ledger'")
        heals(ledger, connection)
        before = ledger.spent()
        ledger.proxy.stall_at(b"LOCK TABLE")
        timer = threading.Timer(0.3, connection.cancel)
        timer.start()
        ended = told(connection, fresh())
        timer.join()
        assert ended[0] <= 0.3 + 1.0
        assert ended[1] == "the statement was cancelled"
        check_told(ledger, connection, ended, before, {NOTHING})


def test_a_ledger_that_is_silent_from_the_first_byte(ledger: Place, postgres: PostgresServer) -> None:
    with connected(ledger) as connection:
        heals(ledger, connection)
        before = ledger.spent()
        end_connections(postgres, "application_name = 'dpsql ledger'")
        ledger.proxy.stall()
        check_told(ledger, connection, told(connection, fresh()), before, {NOTHING})


def test_a_ledger_that_says_a_byte_now_and_then(ledger: Place) -> None:
    with connected(ledger) as connection:
        heals(ledger, connection)
        before = ledger.spent()
        ledger.proxy.drip(0.03)
        check_told(
            ledger, connection, told(connection, fresh()), before, {NOTHING, SPENT, MAYBE_STORED, STORED}
        )


def test_what_was_answered_is_answered_while_the_ledger_is_silent(ledger: Place) -> None:
    """At once but for the first, with a note, at no charge; each is told once the ledger is back."""
    notices: list[str] = []
    with connected(ledger) as connection:
        heals(ledger, connection)
        asked = fresh().encode()
        first = connection.execute(asked).fetchall()
        before, told_before = ledger.spent(), logged(ledger, "answered away")
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        ledger.proxy.stall()
        took = []
        for _ in range(4):
            start = time.monotonic()
            assert connection.execute(asked).fetchall() == first
            took.append(time.monotonic() - start)
        assert took[0] < 1.6
        assert max(took[1:]) < 0.3
        assert sum("the ledger cannot be read now: this is a stored answer" in one for one in notices) == 4
        ended = told(connection, fresh())
        assert ended[0] <= LATEST
        assert ended[2] == NOTHING
        heals(ledger, connection)
        assert ledger.spent() == before + 100
        ledger.served.wait_for("answered away", told_before + 4)
        lines = [line for line in ledger.served.lines if line["event"] == "answered away"][told_before:]
        assert {line["analyst"] for line in lines} == {"alice"}
        assert len(lines) == 4
        notices.clear()
        assert connection.execute(asked).fetchall() == first
        assert not any("cannot be read" in one for one in notices)


def test_after_a_reload_that_could_not_read_the_ledger_nothing_is_answered(ledger: Place) -> None:
    with connected(ledger) as connection:
        heals(ledger, connection)
        asked = fresh().encode()
        first = connection.execute(asked).fetchall()
        ledger.proxy.stall()
        refused = logged(ledger, "reload refused")
        ledger.served.process.send_signal(signal.SIGHUP)
        ledger.served.wait_for("reload refused", refused + 1)
        ended = told(connection, asked.decode())
        assert ended[0] <= LATEST
        assert ended[2] == NOTHING
        ledger.proxy.resume()
        assert connection.execute(asked).fetchall() == first


def test_a_server_stops_while_its_ledger_is_silent(postgres: PostgresServer, tmp_path: Path) -> None:
    """The look at the ledger's health that is under way holds nothing up; `run_server` sees that it met no bug."""
    with ledger_behind(postgres, tmp_path, probe_seconds=0.3) as place:
        with place.served.connect() as connection:
            heals(place, connection)
        place.proxy.stall()
        place.served.wait_for("unhealthy")
        start = time.monotonic()
        place.served.process.send_signal(signal.SIGTERM)
        assert place.served.process.wait(60) == 0
        assert time.monotonic() - start < 8


def logged(place: Place, event: str) -> int:
    return sum(line["event"] == event for line in place.served.lines)


@pytest.mark.long  # what waits for a connection ends in time over a silent database, and one statement over a ledger
def test_twenty_statements_of_a_silent_ledger(ledger: Place) -> None:
    clients = [connected(ledger) for _ in range(20)]
    heals(ledger, clients[0])
    before = ledger.spent()
    ledger.proxy.stall()
    with ThreadPoolExecutor(20) as pool:
        ends = list(pool.map(lambda client: told(client, fresh()), clients))
    assert max(seconds for seconds, *_ in ends) <= LATEST
    ledger.proxy.resume()
    assert ledger.spent() == before
    heals(ledger, clients[0])
    for client in clients:
        client.close()


def end_connections(postgres: PostgresServer, which: str) -> None:
    """End every connection of dpsql's, as a restarted server would."""
    with postgres.admin() as connection:
        connection.execute(
            f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {which}".encode()
        )
