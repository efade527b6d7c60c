"""What is a server's own: several machines, lost connections, a server that fails, stalls or does not keep."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import psycopg
import pytest

from dpsql.budget import EntryState, LedgerStore, Reservation, open_store, postgres_ledger
from dpsql.errors import EngineFailure, LedgerError, LedgerMissing
from dpsql.mechanisms import Laplace
from dpsql.tests.support.length import first, long_where
from dpsql.tests.support.postgres_server import Installation, PostgresServer

from .conftest import SERVERS
from .relay import Relay
from .samples import CAPS, EPSILON, Place, buy, claim, draw, key, measurement, proved, pure
from .test_crash import BOTH, CHARGED

TENTH = EPSILON // 10


@pytest.fixture
def store(shared: Place) -> Iterator[LedgerStore]:
    opened = shared.open()
    yield opened
    opened.close()


@pytest.fixture
def second(store: LedgerStore, shared: Place) -> Iterator[LedgerStore]:
    """Give the ledger as another machine opens it, with a log of its own."""
    opened = elsewhere(shared).open(create=False)
    yield opened
    opened.close()


def elsewhere(place: Place) -> Place:
    return replace(place, log=place.log.with_name("second.log"))


def cut_connections(place: Place) -> None:
    """End every connection that dpsql has to the ledger, as a restarted router would."""
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE application_name = 'dpsql ledger' AND datname = current_database()"
        )


def states(store: LedgerStore) -> list[EntryState]:
    return [entry.state for entry in store.log(100)]


def reserve_and_commit(store: LedgerStore) -> Reservation | None:
    """Do what a statement does, its end included where the ledger fails; return what was reserved."""
    reservation = None
    try:
        reservation = store.reserve(claim(measurement("a"), measurement("b", delta=5)))
        store.commit(reservation, [draw("a"), draw("b")])
    except LedgerError:
        if reservation is not None:
            store.fail(reservation)
    return reservation


# Several machines.


def test_two_machines_spend_one_budget(store: LedgerStore, second: LedgerStore, shared: Place) -> None:
    buy(store, "a", payload=b"first")
    buy(second, "b", epsilon=7)
    store.grant(None, 5, "owner")
    assert store.spent() == second.spent() == pure(TENTH, 7)
    assert second.status().epsilon_cap_nano == 10 * EPSILON + 5
    assert second.reserve(claim(measurement("a"))).found == (((draw("a", payload=b"first"),),),)
    assert second.secret() == store.secret()
    assert second.advance_epoch() == store.epoch == 2
    logs = [place.log.read_bytes() for place in (shared, elsewhere(shared))]
    assert [log.count(b'"kind":"entry"') for log in logs] == [1, 1]


def test_a_restored_backup_forgets_nothing_that_either_machine_has_logged(
    store: LedgerStore, second: LedgerStore, shared: Place
) -> None:
    buy(store, "a")
    put_back = shared.backup()
    for number in range(3):
        buy(store, f"one {number}", epsilon=10)
        buy(second, f"two {number}", epsilon=100, delta=1)
    store.advance_epoch()
    put_back()
    assert second.spent() == pure(TENTH, *3 * [100], delta=3), "the first has not looked yet"
    buy(second, "three", epsilon=1000)
    for number in (2, 3):
        assert second.advance_epoch() == number
    assert store.spent() == second.spent() == pure(TENTH, *3 * [10], *3 * [100], 1000, delta=3)
    assert store.epoch == 3, "the epoch that the first put back is past"
    assert sorted(entry.charge.epsilon_nano for entry in store.log(100)) == [10] * 3 + [100] * 3 + [
        1000,
        TENTH,
    ]
    store.close()
    second.close()
    for place in (shared, elsewhere(shared)):
        again = place.open(create=False)
        assert again.spent() == pure(TENTH, *3 * [10], *3 * [100], 1000, delta=3)
        again.close()


def test_a_running_charge_of_a_lost_ledger_is_not_taken_for_anothers(
    store: LedgerStore, second: LedgerStore, shared: Place
) -> None:
    put_back = shared.backup()
    running = store.reserve(claim(measurement("a")))
    put_back()
    other = second.reserve(claim(measurement("a")), wait_seconds=0)
    assert other.to_draw == running.to_draw, "the number was given again"
    with pytest.raises(LedgerError, match="closed before"):
        store.commit(running, [draw("a", payload=b"mine")])
    store.fail(running)
    second.commit(other, [draw("a", payload=b"other")])
    assert store.lookup([key("a")], Laplace(Fraction(10))) == ((draw("a", payload=b"other"),),)
    assert store.spent() == pure(*2 * [TENTH])


def test_a_ledger_that_is_gone_though_it_was_logged_here_is_lost_and_not_missing(shared: Place) -> None:
    with pytest.raises(LedgerMissing):
        shared.open(create=False)
    shared.open().close()
    shared.lose()
    with pytest.raises(LedgerError, match="there is no ledger in this database") as caught:
        shared.open(create=False)
    assert not isinstance(caught.value, LedgerMissing)
    with pytest.raises(LedgerMissing):
        elsewhere(shared).open(create=False)


def test_a_copied_log_is_found_out_before_it_counts(store: LedgerStore, shared: Place) -> None:
    shutil.copy(shared.log, elsewhere(shared).log)
    copied = elsewhere(shared).open(create=False)
    buy(copied, "a")
    with pytest.raises(LedgerError, match="do not agree"):
        store.reserve(claim(measurement("b")))
    with pytest.raises(LedgerError, match="do not agree"):
        store.status()
    assert copied.spent() == pure(TENTH)
    copied.close()


def test_the_same_tiles_on_two_machines_are_drawn_once(store: LedgerStore, second: LedgerStore) -> None:
    def tile(number: int) -> bytes:
        asked = (store, second)[number % 2]
        reservation = asked.reserve(claim(measurement("a")))
        if reservation.to_draw:
            time.sleep(0.05)
            asked.commit(reservation, [draw("a", payload=b"from %d" % number)])
        found = asked.lookup([key("a")], Laplace(Fraction(10)))
        assert found is not None
        return found[0][0].payload

    with ThreadPoolExecutor(10) as pool:
        assert len(set(pool.map(tile, range(10)))) == 1
    assert store.spent() == pure(TENTH)


def test_stored_answers_are_read_while_somebody_charges(
    store: LedgerStore, second: LedgerStore, shared: Place
) -> None:
    buy(store, "a")
    has_lock, may_go_on = threading.Event(), threading.Event()

    def step(name: str) -> None:
        if name == "log synced":
            has_lock.set()
            assert may_go_on.wait(300)

    slow = replace(shared, log=shared.log.with_name("third.log")).open(step=step)
    with ThreadPoolExecutor(1) as pool:
        charge = pool.submit(slow.reserve, claim(measurement("b")))
        assert has_lock.wait(300)
        assert store.lookup([key("a")], Laplace(Fraction(10))) is not None
        assert store.status("alice") == second.status("alice")
        assert store.epoch == 1
        assert slow.lookup([key("a")], Laplace(Fraction(10))) is not None
        may_go_on.set()
        assert charge.result().to_draw
    slow.close()


# Connections that are lost.


def test_a_connection_lost_while_idle_is_made_anew(store: LedgerStore, shared: Place) -> None:
    running = store.reserve(claim(measurement("a")))
    cut_connections(shared)
    assert store.spent() == pure(TENTH)
    store.commit(running, [draw("a")])
    cut_connections(shared)
    assert store.reserve(claim(measurement("a"))).to_draw == ()


@long_where(lambda step: step in ("before log", "log synced", "before draws"))
@pytest.mark.parametrize("step", CHARGED)
def test_a_connection_lost_at_any_step_never_counts_too_little(
    shared: Place, second: LedgerStore, step: str
) -> None:
    def cut(name: str) -> None:
        if name == step:
            cut_connections(shared)

    store = replace(shared, log=shared.log.with_name("third.log")).open(step=cut)
    reservation = reserve_and_commit(store)
    assert (reservation is None) == (step in ("before log", "log written", "log synced", "inserted"))
    assert store.spent() == second.spent() == BOTH
    committed = step in ("reserved", "before draws", "draws committed")
    assert set(states(second)) == {EntryState.COMMITTED if committed else EntryState.FAILED}
    assert bool(second.reserve(claim(measurement("a")), wait_seconds=0).to_draw) == (not committed)
    store.close()


def test_a_connection_lost_after_a_certificate_was_put_leaves_neither_it_nor_a_charge(shared: Place) -> None:
    store = shared.open(step=lambda name: cut_connections(shared) if name == "certificate inserted" else None)
    wanted = proved(measurement("a"))
    with pytest.raises(LedgerError, match="cannot be reached"):
        store.reserve(claim(wanted))
    assert store.log(9) == []
    assert wanted.certificate is not None
    assert store.certificate(wanted.certificate.digest) is None
    store.close()


def test_a_log_has_one_writer_even_when_the_server_has_let_the_first_one_go(
    store: LedgerStore, shared: Place
) -> None:
    is_cut = threading.Event()

    def cut(name: str) -> None:
        if name == "before log":
            cut_connections(shared)
            is_cut.set()
            time.sleep(0.3)

    first = shared.open(step=cut)
    with ThreadPoolExecutor(1) as pool:
        charge = pool.submit(first.reserve, claim(measurement("a")))
        assert is_cut.wait(300)
        buy(store, "b")
        with pytest.raises(LedgerError, match="cannot be reached"):
            charge.result()
    assert store.spent() == pure(*2 * [TENTH])
    assert states(store) == [EntryState.COMMITTED, EntryState.FAILED], (
        "the first one's place in the log came first"
    )
    first.close()
    shared.open().close()


@pytest.mark.parametrize("reaches", [False, True])
def test_a_reserve_whose_commit_nobody_heard_of_is_spent_once_and_keeps_nobody_waiting(
    shared: Place, second: LedgerStore, reaches: bool
) -> None:
    with Relay(shared.url) as relay:
        store = Place(relay.url, shared.log.with_name("third.log")).open(create=False)
        relay.cut_at_commit(reaches=reaches)
        with pytest.raises(LedgerError, match="cannot be reached"):
            store.reserve(claim(measurement("a")))
        assert relay.cuts == 1
        assert second.spent() == pure(*[TENTH] * reaches)
        assert store.spent() == second.spent() == pure(TENTH)
        assert states(store) == [EntryState.FAILED]
        again = second.reserve(claim(measurement("a")), wait_seconds=0)
        assert again.to_draw
        store.close()


@pytest.mark.parametrize("reaches", [False, True])
def test_a_draw_whose_commit_nobody_heard_of_is_stored_whole_or_not(
    shared: Place, second: LedgerStore, reaches: bool
) -> None:
    with Relay(shared.url) as relay:
        store = Place(relay.url, shared.log.with_name("third.log")).open(create=False)
        reservation = store.reserve(claim(measurement("a"), measurement("b")))
        relay.cut_at_commit(reaches=reaches)
        with pytest.raises(LedgerError, match="cannot be reached"):
            store.commit(reservation, [draw("a"), draw("b")])
        assert relay.cuts == 1
        store.fail(reservation)
        assert states(second) == [EntryState.COMMITTED if reaches else EntryState.FAILED] * 2
        assert (second.lookup([key("a"), key("b")], Laplace(Fraction(10))) is not None) == reaches
        assert second.spent() == pure(*2 * [TENTH])
        store.close()


def test_who_was_taken_for_dead_stores_nothing(
    store: LedgerStore, second: LedgerStore, shared: Place
) -> None:
    running = store.reserve(claim(measurement("a")))
    with pytest.raises(EngineFailure):
        second.reserve(claim(measurement("a")), wait_seconds=0)
    cut_connections(shared)
    other = second.reserve(claim(measurement("a")), wait_seconds=0)
    assert other.to_draw
    with pytest.raises(LedgerError, match="closed before"):
        store.commit(running, [draw("a", payload=b"late")])
    second.commit(other, [draw("a", payload=b"in time")])
    assert store.lookup([key("a")], Laplace(Fraction(10))) == ((draw("a", payload=b"in time"),),)
    assert store.spent() == pure(*2 * [TENTH])


def test_who_is_back_before_anybody_looked_is_waited_for(
    store: LedgerStore, second: LedgerStore, shared: Place
) -> None:
    running = store.reserve(claim(measurement("a")))
    cut_connections(shared)
    store.advance_epoch()
    store.grant(None, 1, "owner")
    assert [entry.state for entry in second.log(1)] == [EntryState.RESERVED]
    store.commit(running, [draw("a")])
    assert states(second) == [EntryState.COMMITTED]


# A server that fails.


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    with PostgresServer(SERVERS[-1], durable=True) as server:
        yield server


@pytest.mark.parametrize(
    "step", first(3, ["inserted", "reserved", "draws committed", "log synced", "draws inserted"])
)
def test_a_server_that_crashes_at_any_step_keeps_what_it_said(
    mortal: PostgresServer, step: str, shared: Place
) -> None:
    name = mortal.create_database()

    def crash(at: str) -> None:
        if at == step:
            mortal.kill()

    place = replace(shared, url=mortal.url(name))
    store = place.open(step=crash)
    reserve_and_commit(store)
    with pytest.raises(LedgerError, match="cannot be reached"):
        store.spent()
    store.close()
    mortal.start()
    again = replace(place, url=mortal.url(name)).open(create=False)
    assert again.spent() == BOTH
    committed = step == "draws committed"
    assert set(states(again)) == {EntryState.COMMITTED if committed else EntryState.FAILED}
    assert (again.lookup([key("a"), key("b")], Laplace(Fraction(10))) is not None) == committed
    again.close()


# A server that stalls.


def test_a_ledger_that_somebody_has_locked_is_busy_and_charges_nothing(
    shared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_ledger, "_SET", postgres_ledger._SET.replace("'10s'", "'100ms'"))
    store = shared.open()
    running = store.reserve(claim(measurement("a")))
    before = shared.log.stat().st_size
    with psycopg.connect(shared.url) as other:
        other.execute("LOCK TABLE dpsql.ledger IN SHARE ROW EXCLUSIVE MODE")
        with pytest.raises(LedgerError, match="the ledger is busy"):
            store.reserve(claim(measurement("b")))
        assert store.spent() == pure(TENTH)
    assert shared.log.stat().st_size == before
    store.commit(running, [draw("a")])
    store.close()


def test_a_server_that_stands_still_keeps_nobody_for_ever(
    shared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = shared.open()
    buy(store, "a")
    with psycopg.connect(shared.url) as other:
        rows = other.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'dpsql ledger'"
            " AND datname = current_database()"
        ).fetchall()
    pids = [pid for (pid,) in rows]
    assert len(pids) == 2
    assert postgres_ledger._Connection.longest > postgres_ledger._DEADLINE_SECONDS
    monkeypatch.setattr(postgres_ledger._Connection, "longest", 0.4)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        for call in (store.status, lambda: store.reserve(claim(measurement("b")))):
            with pytest.raises(LedgerError, match="cannot be reached"):
                call()
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    monkeypatch.undo()
    assert store.spent() == pure(TENTH)
    assert store.reserve(claim(measurement("a"))).to_draw == ()
    store.close()


# A server that is not fit.


def _message(place: Place, **how: bool) -> str:
    with pytest.raises(LedgerError) as caught:
        place.open(**how)
    assert caught.value.hint
    assert not place.log.exists()
    return caught.value.message


def test_a_server_that_loses_commits_is_refused(
    shared: Place, start_postgres: Callable[[Installation], PostgresServer]
) -> None:
    lax = start_postgres(SERVERS[-1])
    name = lax.create_database()
    assert "may lose" in _message(replace(shared, url=lax.url(name)))
    lax.drop_database(name)
    settings = {"full_page_writes": "off"}
    with PostgresServer(SERVERS[-1], durable=True, settings=settings) as torn:
        assert "may lose" in _message(replace(shared, url=torn.url(torn.create_database())))


def test_a_url_with_an_unknown_parameter_is_named(shared: Place) -> None:
    assert "no URL that Postgres knows" in _message(replace(shared, url=f"{shared.url}&shard=1"))


def test_commits_wait_for_the_disk_whatever_the_url_says(shared: Place) -> None:
    place = replace(shared, url=f"{shared.url}&options=-c%20synchronous_commit%3Doff")
    store = place.open()
    with store._ledger.write() as db:
        assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)
    store.close()


def test_tables_that_a_crash_empties_are_refused(shared: Place) -> None:
    shared.open().close()
    shared.edit("ALTER TABLE draw SET UNLOGGED")
    with pytest.raises(LedgerError, match="not kept through a crash"):
        shared.open()


def test_a_database_that_does_not_hold_all_names_is_refused(shared: Place, server: PostgresServer) -> None:
    with server.admin() as admin:
        admin.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    try:
        assert "does not hold all names" in _message(replace(shared, url=server.url("latin")))
    finally:
        server.drop_database("latin")


def test_a_pooler_that_changes_sessions_is_refused(store: LedgerStore) -> None:
    ledger = store._ledger
    ledger._session += 1  # as if another had answered
    with pytest.raises(LedgerError, match="changes hands"):
        store.reserve(claim(measurement("a")))
    ledger._session -= 1
    assert store.spent() == pure(TENTH), "it was logged, so it counts"


def test_a_role_that_may_only_write_rows_is_enough(shared: Place, server: PostgresServer) -> None:
    role = f"proxy_{os.getpid()}"
    place = replace(shared, url=server.url("books", role))
    with psycopg.connect(shared.url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN".encode())
        try:
            assert "may not do this" in _message(place)
            shared.open().close()
            with pytest.raises(LedgerError, match="may not do this"):
                place.open(create=False)
            admin.execute(f"GRANT USAGE ON SCHEMA dpsql TO {role}".encode())
            admin.execute(f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA dpsql TO {role}".encode())
            store = place.open(create=False)
            buy(store, "a")
            store.fail(store.reserve(claim(measurement("b"))))
            store.grant("alice", 5, "owner")
            assert store.advance_epoch() == 2
            store.close()
        finally:
            admin.execute(f"DROP OWNED BY {role}".encode())
            admin.execute(f"DROP ROLE {role}".encode())


def test_a_password_comes_from_the_environment(
    shared: Place, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"keeper_{os.getpid()}"
    with server.admin() as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'geheim'".encode())
        admin.execute(f"GRANT CREATE ON DATABASE books TO {role}".encode())
    url = server.url("books", role, "geheim").replace(":geheim@", "@")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    for wrong in (None, "falsch"):
        if wrong:
            monkeypatch.setenv("PGPASSWORD", wrong)
        with pytest.raises(LedgerError, match="cannot be reached") as caught:
            open_store(url, "campus", CAPS, create=True, log=shared.log)
        assert role not in str(caught.value)
    monkeypatch.setenv("PGPASSWORD", "geheim")
    store = open_store(url, "campus", CAPS, create=True, log=shared.log)
    buy(store, "a")
    store.close()
    with psycopg.connect(shared.url, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role} CASCADE".encode())
        connection.execute(f"DROP ROLE {role}".encode())
