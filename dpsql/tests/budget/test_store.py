from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.budget import (
    ZERO,
    Caps,
    Claim,
    Draw,
    EntryState,
    LedgerStore,
    MeasurementClaim,
    Status,
    journal,
    ledger_store,
    open_store,
)
from dpsql.budget.pending import AskedOnce, Pending
from dpsql.errors import BudgetExhausted, EngineFailure, LedgerError
from dpsql.mechanisms import Laplace

from .conftest import Kept
from .samples import CAPS, EPSILON, Place, buy, claim, draw, key, measurement, pure

TENTH = EPSILON // 10


# Hits and misses.


@pytest.fixture
def place(place: Place, divided: Kept) -> Place:
    """Give each place twice: for a ledger as a whole, and for one by periods."""
    return divided(place)


def test_a_draw_is_charged_once_and_read_back_for_ever(store: LedgerStore, place: Place) -> None:
    buy(store, "a", "b", payload=b"\x00 and 'quotes'")
    for _ in range(3):
        again = store.reserve(claim(measurement("a", "b"), analyst="bob"))
        assert again.entries == (None,)
        assert again.charge == ZERO
        assert again.found == (((draw("a", "b", payload=b"\x00 and 'quotes'"),),) * 2,)
        store.commit(again, [])
        store.fail(again)
    assert store.spent() == pure(TENTH)
    assert len(store.log(100)) == 1
    other = place.open(create=False)
    assert other.lookup([key("b")], Laplace(Fraction(10))) == (
        (draw("a", "b", payload=b"\x00 and 'quotes'"),),
    )
    other.close()


def test_a_stored_draw_serves_the_same_or_a_larger_scale(store: LedgerStore) -> None:
    buy(store, "a", scale=Fraction(7, 3))
    assert store.lookup([key("a")], Laplace(Fraction(7, 3))) is not None
    assert store.lookup([key("a")], Laplace(Fraction(8))) is not None
    assert store.lookup([key("a")], Laplace(Fraction(7, 3) - Fraction(1, 10**20))) is None
    assert store.reserve(claim(measurement("a", scale=2))).found == (None,)


def test_the_newest_draw_of_the_smallest_scale_answers(store: LedgerStore) -> None:
    for scale, payload in ((10, b"1"), (5, b"2"), (5, b"3"), (7, b"4")):
        buy(store, "a", scale=scale, payload=payload, reuse=False)
    assert store.spent() == pure(*4 * [TENTH])
    for asked in (10, 5):
        found = store.lookup([key("a")], Laplace(Fraction(asked)))
        assert found is not None
        assert found[0][0].payload == b"3"


def test_measures_of_different_draws_serve_one_measurement(store: LedgerStore) -> None:
    buy(store, "a", payload=b"a")
    buy(store, "b", payload=b"b")
    reservation = store.reserve(claim(measurement("b", "a")))
    assert reservation.found == (((draw("b", payload=b"b"),), (draw("a", payload=b"a"),)),)


def test_a_measurement_of_which_one_measure_is_missing_is_drawn_whole(store: LedgerStore) -> None:
    buy(store, "a")
    reservation = store.reserve(claim(measurement("a", "b"), measurement("a")))
    assert reservation.found == (None, ((draw("a"),),))
    assert reservation.entries[0] is not None
    assert reservation.entries[1] is None
    assert reservation.charge == pure(TENTH)


def test_reuse_off_draws_anew_and_pays(store: LedgerStore) -> None:
    buy(store, "a")
    assert store.reserve(claim(measurement("a"), reuse=False)).charge == pure(TENTH)
    assert store.spent() == pure(*2 * [TENTH])


def test_a_key_that_is_not_known_yet_is_charged_and_named_at_commit(store: LedgerStore) -> None:
    for payload in (b"1", b"2"):
        reservation = store.reserve(claim(measurement()))
        assert reservation.found == (None,)
        store.commit(reservation, [draw("late", scale=3, payload=payload)])
    assert store.spent() == pure(*2 * [TENTH])
    assert store.lookup([key("late")], Laplace(Fraction(3))) == (
        (draw("late", scale=3, payload=b"2"), draw("late", scale=3, payload=b"1")),
    )


def test_a_large_payload_is_kept_whole(store: LedgerStore) -> None:
    payload = os.urandom(20_000_000)
    buy(store, "a", payload=payload)
    found = store.lookup([key("a")], Laplace(Fraction(10)))
    assert found is not None
    assert found[0][0].payload == payload


def test_a_claim_of_nothing_costs_nothing(store: LedgerStore) -> None:
    reservation = store.reserve(claim())
    assert (reservation.entries, reservation.found, reservation.charge) == ((), (), ZERO)
    assert store.lookup([], Laplace(Fraction(1))) is None
    assert store.log(10) == []


# Caps.


def _refusal(store: LedgerStore, *measurements: MeasurementClaim, analyst: str = "alice") -> str:
    before = (store.status(analyst), store.log(100))
    with pytest.raises(BudgetExhausted) as caught:
        store.reserve(claim(*measurements, analyst=analyst))
    assert (store.status(analyst), store.log(100)) == before
    return caught.value.message


@pytest.mark.parametrize("divided", [False], indirect=True)
def test_each_cap_is_reached_exactly_and_not_passed(place: Place) -> None:
    store = place.open(Caps(10, 7, {"alice": 4}))
    store.reserve(claim(measurement("a", epsilon=4, delta=7)))
    assert _refusal(store, measurement("b", epsilon=1)) == (
        "needs epsilon 0.000000001, left 0 of your own budget"
    )
    assert _refusal(store, measurement("b", epsilon=1, delta=1), analyst="bob") == (
        "needs delta 0.000000000000000001, left 0 of the dataset's budget"
    )
    assert _refusal(store, measurement("b", epsilon=5), measurement("c", epsilon=2), analyst="bob") == (
        "needs epsilon 0.000000007, left 0.000000006 of the dataset's budget"
    )
    store.reserve(claim(measurement("b", epsilon=6), analyst="bob"))
    assert store.spent() == pure(4, 6, delta=7)
    store.close()


@pytest.mark.parametrize("divided", [False], indirect=True)
def test_the_global_cap_binds_first(place: Place) -> None:
    store = place.open(Caps(3, 0, {"alice": 2}))
    assert "the dataset's" in _refusal(store, measurement("a", epsilon=4))
    assert "your own" in _refusal(store, measurement("a", epsilon=3))
    store.close()


def test_a_spent_out_budget_still_answers_what_is_stored(place: Place) -> None:
    store = place.open(Caps(1, 0, {}))
    buy(store, "a", epsilon=1)
    assert store.reserve(claim(measurement("a", epsilon=1))).to_draw == ()
    assert "needs" in _refusal(store, measurement("a", epsilon=1), measurement("b", epsilon=1))
    store.close()


@pytest.mark.parametrize("divided", [False], indirect=True)
def test_a_lowered_policy_stops_at_once_and_shows_what_is_spent(place: Place) -> None:
    store = place.open()
    buy(store, "a")
    store.close()
    store = place.open(Caps(5, 0, {}))
    assert store.status().epsilon_spent_nano == TENTH
    assert "left 0 of" in _refusal(store, measurement("b", epsilon=1))
    store.close()


def test_a_grant_raises_one_cap_for_good(place: Place) -> None:
    store = place.open(Caps(10, 0, {"alice": 1}))
    store.grant("alice", 4, "owner")
    store.grant("alice", 1, "owner")
    assert store.status("alice").analyst_cap_nano == 6
    assert store.status("bob").analyst_cap_nano is None
    store.grant(None, 90, "owner")
    store.close()
    store = place.open(Caps(10, 0, {"alice": 1}))
    assert store.status("alice") == Status(0, 100, 0, 0, 0, 0, 6, 1)
    store.reserve(claim(measurement("a", epsilon=6)))
    assert "own" in _refusal(store, measurement("b", epsilon=1))
    for bad in (0, -5, 10**15 + 1, True):
        with pytest.raises(ValueError, match="integer"):
            store.grant(None, bad, "owner")
    store.close()


@pytest.mark.parametrize("divided", [False], indirect=True)
def test_spent_is_kept_for_each_analyst(store: LedgerStore) -> None:
    store.reserve(claim(measurement("a", delta=3), analyst="alice"))
    store.reserve(claim(measurement("b", delta=4), measurement("c"), analyst="bob"))
    rho = pure(TENTH).rho_atto
    assert store.status("alice") == Status(3 * TENTH, 10 * EPSILON, 7, 10**12, 3 * rho, TENTH, 3 * EPSILON, 1)
    assert store.status("bob") == Status(3 * TENTH, 10 * EPSILON, 7, 10**12, 3 * rho, 2 * TENTH, None, 1)


# Commit and fail.


def test_nothing_is_refunded(store: LedgerStore) -> None:
    reservation = store.reserve(claim(measurement("a")))
    store.fail(reservation)
    store.fail(reservation)
    assert store.spent() == pure(TENTH)
    assert [entry.state for entry in store.log(10)] == [EntryState.FAILED]
    with pytest.raises(LedgerError, match="closed before"):
        store.commit(reservation, [draw("a")])
    assert store.lookup([key("a")], Laplace(Fraction(10))) is None
    assert store.reserve(claim(measurement("a"))).found == (None,)


def test_fail_after_commit_takes_nothing_back(store: LedgerStore) -> None:
    reservation = buy(store, "a")
    store.fail(reservation)
    assert store.lookup([key("a")], Laplace(Fraction(10))) is not None
    with pytest.raises(ValueError, match="committed already"):
        store.commit(reservation, [draw("a")])


@pytest.mark.parametrize(
    "draws", [[], [draw("a")], [draw("a"), draw("a")], [draw("a"), draw("b", scale=9)], [draw("a")] * 3]
)
def test_a_draw_that_was_not_reserved_is_not_stored(store: LedgerStore, draws: list[Draw]) -> None:
    reservation = store.reserve(claim(measurement("a"), measurement("b")))
    with pytest.raises(ValueError, match="draw"):
        store.commit(reservation, draws)
    assert store.lookup([key("a")], Laplace(Fraction(10))) is None
    store.commit(reservation, [draw("a"), draw("b")])
    assert store.lookup([key("a"), key("b")], Laplace(Fraction(10))) == ((draw("a"),), (draw("b"),))


# Epochs, the audit trail, the secret.


def test_it_is_empty_until_something_is_stored_and_in_a_new_epoch_again(store: LedgerStore) -> None:
    """Of a store that is empty nothing is asked: so it is never said while something could answer."""
    pending = Pending(store, store.epoch)
    assert store.is_empty
    assert pending.is_empty
    assert AskedOnce(store).is_empty
    pending.add(1, draw("a"), None)
    assert not pending.is_empty
    buy(store, "a")
    for one in (store, Pending(store, 1), AskedOnce(store)):
        assert not one.is_empty
    store.advance_epoch()
    assert store.is_empty


def test_a_new_epoch_hides_the_stored_and_keeps_the_spent(store: LedgerStore, place: Place) -> None:
    buy(store, "a")
    running = store.reserve(claim(measurement("b")))
    assert (store.epoch, store.advance_epoch(), store.epoch) == (1, 2, 2)
    store.commit(running, [draw("b")])
    for name in "ab":
        assert store.lookup([key(name)], Laplace(Fraction(10))) is None
        assert store.reserve(claim(measurement(name))).epoch == 2
    assert store.spent() == pure(*4 * [TENTH])
    store.close()
    again = place.open()
    assert again.epoch == 2
    again.close()


def test_the_audit_trail_says_who_when_what_and_at_what_cost(store: LedgerStore) -> None:
    wanted = MeasurementClaim(
        (key("a"), key("b")), Laplace(Fraction(7, 3)), pure(11, delta=5), "sum(x) at 7/3"
    )
    store.reserve(Claim("zoë", 'SELECT "x\n\x00"', (wanted,), True))
    store.grant(None, 1, "owner")
    buy(store, "c")
    newest, oldest = store.log(10)
    assert newest.state is EntryState.COMMITTED
    assert (oldest.analyst, oldest.statement, oldest.note) == ("zoë", 'SELECT "x\n\x00"', "sum(x) at 7/3")
    assert (oldest.measures, oldest.law) == (wanted.measures, Laplace(Fraction(7, 3)))
    assert (oldest.charge, oldest.state, oldest.epoch) == (pure(11, delta=5), EntryState.RESERVED, 1)
    assert oldest.at.startswith("20")
    assert [entry.seq for entry in store.log(1)] == [newest.seq]


def test_the_log_file_holds_every_entry_but_no_payload_and_no_secret(
    store: LedgerStore, place: Place
) -> None:
    buy(store, "a", payload=b"the noisy bytes")
    written = place.log.read_bytes()
    assert key("a").hex().encode() in written
    assert b'"rho_atto":5000000000000000' in written
    assert b"noisy bytes" not in written
    assert store.secret() not in written
    assert store.secret().hex().encode() not in written


def test_the_secret_is_random_and_stays(place: Place) -> None:
    store = place.open()
    twin = place.open(create=False)
    secret = store.secret()
    assert len(secret) == 32
    assert twin.secret() == secret
    store.close()
    twin.close()
    place.lose()
    place.log.unlink()
    other = place.open()
    assert other.secret() != secret
    other.close()


def test_a_clock_that_runs_backwards_changes_nothing(
    store: LedgerStore, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    buy(store, "a", payload=b"old")
    monkeypatch.setattr(ledger_store, "utc_now", lambda: "1970-01-01T00:00:00+00:00")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    buy(store, "a", reuse=False, payload=b"new")
    found = store.lookup([key("a")], Laplace(Fraction(10)))
    assert found is not None
    assert found[0][0].payload == b"new"
    assert [entry.at[:4] for entry in store.log(1)] == ["1970"]
    assert store.spent() == pure(*2 * [TENTH])
    twin = place.open()
    assert twin.spent() == pure(*2 * [TENTH])
    twin.close()


# Several at once.


def test_the_same_tiles_at_once_are_drawn_once(store: LedgerStore) -> None:
    def tile(number: int) -> bytes:
        reservation = store.reserve(claim(measurement("a")))
        if reservation.to_draw:
            time.sleep(0.02)
            store.commit(reservation, [draw("a", payload=b"from %d" % number)])
        found = store.lookup([key("a")], Laplace(Fraction(10)))
        assert found is not None
        return found[0][0].payload

    with ThreadPoolExecutor(10) as pool:
        payloads = set(pool.map(tile, range(10)))
    assert len(payloads) == 1
    assert store.spent() == pure(TENTH)


def test_when_the_first_fails_one_other_draws_and_pays(store: LedgerStore) -> None:
    first = store.reserve(claim(measurement("a")))

    def tile(number: int) -> int:
        reservation = store.reserve(claim(measurement("a")))
        if reservation.to_draw:
            store.commit(reservation, [draw("a")])
        return len(reservation.to_draw)

    with ThreadPoolExecutor(5) as pool:
        tiles = [pool.submit(tile, number) for number in range(5)]
        time.sleep(0.02)
        assert not any(each.done() for each in tiles)
        store.fail(first)
        assert sum(each.result() for each in tiles) == 1
    assert store.spent() == pure(*2 * [TENTH])


def test_nobody_waits_for_what_would_not_serve(store: LedgerStore) -> None:
    store.reserve(claim(measurement("a", scale=10)))
    assert store.reserve(claim(measurement("a", scale=9)), wait_seconds=0).to_draw
    assert store.reserve(claim(measurement("a", "b")), wait_seconds=0).to_draw
    assert store.reserve(claim(measurement("a"), reuse=False), wait_seconds=0).to_draw


def test_waiting_ends_at_its_time_or_when_cancelled_and_charges_nothing(store: LedgerStore) -> None:
    store.reserve(claim(measurement("a")))
    with pytest.raises(EngineFailure) as late:
        store.reserve(claim(measurement("a", scale=20), measurement("b")), wait_seconds=0.01)
    assert late.value.sqlstate == "58V01"
    with pytest.raises(EngineFailure) as cancelled:
        store.reserve(claim(measurement("a")), cancelled=lambda: True)
    assert cancelled.value.sqlstate == "57014"
    assert store.spent() == pure(TENTH)


def test_a_closed_store_leaves_nothing_pending(store: LedgerStore, place: Place) -> None:
    twin = place.open()
    twin.reserve(claim(measurement("a")))
    twin.close()
    twin.close()
    assert store.reserve(claim(measurement("a")), wait_seconds=0).to_draw
    assert [entry.state for entry in store.log(10)] == [EntryState.RESERVED, EntryState.FAILED]
    with pytest.raises(LedgerError):
        twin.spent()


def test_threads_racing_for_the_last_epsilon_have_one_winner(place: Place) -> None:
    store = place.open(Caps(20, 0, {}))
    wins: list[int] = []
    for number in range(20):
        start = threading.Barrier(4)

        def run(name: str, start: threading.Barrier = start) -> None:
            start.wait()
            try:
                store.reserve(claim(measurement(name, epsilon=1)))
                wins.append(1)
            except BudgetExhausted:
                pass

        threads = [threading.Thread(target=run, args=(f"{number}-{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(wins) == 20
    assert store.spent() == pure(*20 * [1])
    store.close()


@pytest.mark.parametrize("divided", [False], indirect=True)
def test_caps_come_from_whoever_opens(place: Place) -> None:
    wide, narrow = place.open(CAPS), place.open(Caps(1, 0, {}))
    wide.reserve(claim(measurement("a", epsilon=5)))
    assert narrow.status().epsilon_spent_nano == 5
    assert "left 0 of" in _refusal(narrow, measurement("b", epsilon=1))
    wide.close()
    narrow.close()


# A disk that fails: the fault is put into the process, since a test cannot break the disk.


def test_nothing_is_reserved_before_the_log_is_synced(
    store: LedgerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(fd: int) -> None:
        raise OSError("input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_sync", broken)
        with pytest.raises(LedgerError) as caught:
            store.reserve(claim(measurement("a")))
    assert "input/output" not in str(caught.value)
    assert store.spent() == pure(TENTH), "the line is in the log, so it counts"
    assert [entry.state for entry in store.log(10)] == [EntryState.FAILED]
    assert store.reserve(claim(measurement("a")), wait_seconds=0).to_draw


def test_a_full_disk_charges_no_more_than_what_was_written(
    store: LedgerStore, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def full(fd: int, content: bytes) -> int:
        write(fd, content[:100])
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(LedgerError):
            store.reserve(claim(measurement("a")))
    assert store.spent() == ZERO
    buy(store, "a")
    assert store.spent() == pure(TENTH)
    twin = place.open()
    assert twin.spent() == pure(TENTH)
    twin.close()


def test_short_writes_are_carried_on(store: LedgerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, content: write(fd, content[:7]))
        buy(store, "a")
    assert store.spent() == pure(TENTH)


def test_the_steps_come_in_their_order(place: Place) -> None:
    steps: list[str] = []
    store = place.open(step=steps.append)
    buy(store, "a")
    store.close()
    assert steps == [
        "before log", "log written", "log synced", "inserted", "reserved",
        "before draws", "draws inserted", "draws committed",
    ]  # fmt: skip


def test_a_status_at_once_is_the_status_or_nothing(store: LedgerStore) -> None:
    buy(store, "a")
    for analyst in (None, "alice"):
        at_once = store.status_at_once(analyst)
        assert at_once is None or at_once == store.status(analyst)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with store._ledger.write():
            inside.set()
            leave.wait(300)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(300)
    assert store.status_at_once() is None, "somebody else has the connection: it would have to wait"
    leave.set()
    thread.join()


def test_a_file_has_its_status_at_once(tmp_path: Path) -> None:
    with closing(
        open_store(f"sqlite:{tmp_path / 'l.db'}", "people", CAPS, create=True, log=tmp_path)
    ) as opened:
        assert opened.status_at_once() == opened.status()
        buy(opened, "a")
        assert opened.status_at_once("alice") == opened.status("alice")
        (tmp_path / "l.db.log").unlink()
        with pytest.raises(LedgerError):
            opened.status_at_once()


# The newest, of any epoch.


def test_the_newest_draw_is_of_the_newest_epoch_and_there_the_finest(store: LedgerStore) -> None:
    assert store.newest([key("a"), key("b")]) is None
    buy(store, "a", "b", scale=Fraction(10), payload=b"old and fine")
    store.advance_epoch()
    found = store.newest([key("a"), key("b")])
    assert found is not None
    assert (found.draw.payload, found.charge, found.is_current) == (
        b"old and fine",
        pure(TENTH),
        False,
    )
    assert found.at == store.log(1)[0].at
    buy(store, "a", "b", scale=Fraction(30), payload=b"coarse")
    buy(store, "a", "b", scale=Fraction(20), payload=b"finer")
    buy(store, "a", scale=Fraction(1), payload=b"not of both")
    found = store.newest([key("a"), key("b")])
    assert found is not None
    assert (found.draw.payload, found.is_current) == (b"finer", True)
    assert store.spent() == pure(*4 * [TENTH]), "to look is free"


def test_what_is_reserved_or_given_up_is_not_the_newest(store: LedgerStore) -> None:
    reservation = store.reserve(claim(measurement("a")))
    assert store.newest([key("a")]) is None
    store.fail(reservation)
    assert store.newest([key("a")]) is None
