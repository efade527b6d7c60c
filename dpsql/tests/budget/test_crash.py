"""Real processes, killed with SIGKILL at every step of a reservation and a commit."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.budget import ZERO, EntryState
from dpsql.budget.journal import Journal
from dpsql.errors import EngineFailure
from dpsql.mechanisms import Laplace
from dpsql.tests.support.forked import Forked
from dpsql.tests.support.length import long_where

from .conftest import Kept
from .samples import EPSILON, ROOT, Place, buy, claim, key, measurement, proved, pure


@pytest.fixture
def place(place: Place, kept: Kept) -> Place:
    """Give each place for each way of keeping a ledger: in epsilon, by periods, and, under `long`, in rho."""
    return kept(place)


BOTH = pure(*2 * [EPSILON // 10], delta=5)
"""What the child's two measurements cost."""

CHARGED = {
    "before log": False,
    "log written": True,
    "log synced": True,
    "inserted": True,
    "reserved": True,
    "before draws": True,
    "draws inserted": True,
    "draws committed": True,
}
PROVED = {"certificate inserted": False, **CHARGED}


@contextmanager
def child(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = Forked(
        ["-m", "dpsql.tests.budget.child", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _die(job: str, place: Place, step: str) -> None:
    with child(job, *place.arguments, step) as process:
        process.communicate(timeout=600)
        assert process.returncode == -signal.SIGKILL


@long_where(lambda has_peer, kept, step: (has_peer or kept != "pure") and step in list(PROVED)[::2])
@pytest.mark.parametrize("step", PROVED)
@pytest.mark.parametrize("has_peer", [False, True], ids=["alone", "with a running peer"])
def test_killed_at_any_step_the_charge_is_counted_once(place: Place, step: str, has_peer: bool) -> None:
    peer = place.open() if has_peer else None
    _die("die_at", place, step)
    expected = BOTH if PROVED[step] else ZERO
    named = {
        one.certificate.digest for one in map(proved, (measurement("a"), measurement("b"))) if one.certificate
    }
    if peer is not None:
        assert peer.spent() == expected
    for _ in range(2):
        store = place.open()
        assert store.spent() == expected
        committed = step == "draws committed"
        states = {entry.state for entry in store.log(10)}
        assert states == (
            {EntryState.COMMITTED if committed else EntryState.FAILED} if PROVED[step] else set()
        )
        assert (store.lookup([key("a"), key("b")], Laplace(Fraction(10))) is not None) == committed
        assert store.verify().certificates == 0, "what was told is proved"
        assert {entry.certificate for entry in store.log(10)} == (named if PROVED[step] else set())
        store.close()
    if peer is not None:
        again = peer.reserve(claim(measurement("a")), wait_seconds=0)
        assert bool(again.to_draw) == (not committed)
        peer.close()


def test_a_write_torn_by_the_kill_is_spent_if_it_is_whole(place: Place) -> None:
    place.open().close()
    start = place.log.stat().st_size
    _die("die_at", place, "log written")
    whole = place.log.read_bytes()
    journal = Journal(place.log)
    ends = [end for end, _ in journal.records(start)]
    journal.close()
    put_back = place.backup()
    for length in (*range(start, len(whole), 97), *(end + by for end in ends for by in (-2, -1, 0))):
        put_back()
        place.log.write_bytes(whole[:length])
        lines = sum(length >= end - 1 for end in ends)
        store = place.open()
        assert store.spent().epsilon_nano == lines * EPSILON // 10, length
        buy(store, "next")
        store.close()
        store = place.open()
        assert store.spent().epsilon_nano == (lines + 1) * EPSILON // 10
        store.close()


def test_a_running_peer_carries_on_behind_a_torn_line(place: Place) -> None:
    store = place.open()
    with open(place.log, "ab") as file:
        file.write(b'{"sha256":"0123')
    buy(store, "a")
    store.close()
    place.open().close()


@pytest.mark.parametrize("step", ["log written", "inserted"])
def test_a_grant_that_was_cut_off_is_void(place: Place, step: str) -> None:
    before = place.open()
    cap = before.status().epsilon_cap_nano
    _die("grant", place, step)
    assert before.status().epsilon_cap_nano == cap
    before.grant(None, 5, "owner")
    assert before.status().epsilon_cap_nano == cap + 5
    before.close()
    after = place.open()
    assert after.status().epsilon_cap_nano == cap + 5
    after.close()


def test_the_dead_do_not_keep_others_waiting(place: Place) -> None:
    store = place.open()
    with child("hold", *place.arguments) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reserved\n"
        looks = iter([False, False, True])
        with pytest.raises(EngineFailure, match="cancelled"):
            store.reserve(claim(measurement("a")), cancelled=lambda: next(looks))
        assert store.spent().epsilon_nano == EPSILON // 10
    # A server takes a moment to find out that a client has died; nobody waits for the draw itself.
    reservation = store.reserve(claim(measurement("a")), wait_seconds=10)
    assert reservation.to_draw
    assert store.spent().epsilon_nano == 2 * EPSILON // 10
    assert [entry.state for entry in store.log(10)] == [EntryState.RESERVED, EntryState.FAILED]
    store.close()


def test_the_dead_leave_no_file_for_long(tmp_path: Path) -> None:
    place = Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")
    with child("hold", *place.arguments) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reserved\n"
    holders = tmp_path / "ledger.db.holders"
    assert len(list(holders.iterdir())) == 1
    place.open().close()
    assert list(holders.iterdir()) == []


def test_an_open_ledger_is_not_used_after_a_fork(place: Place) -> None:
    with child("fork", *place.arguments) as process:
        output, _ = process.communicate(timeout=600)
    assert output == "an open ledger was carried over a fork\n7\n"
