"""What is compared when a ledger is opened, what is believed, and what `verify` finds whatever was believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.budget import LedgerStore, ledger
from dpsql.budget.chain import Verified
from dpsql.budget.journal import _line
from dpsql.errors import LedgerError
from dpsql.tests.support.length import long_where

from .conftest import Kept
from .samples import Place, buy, claim, measurement

COUNT = 12
AGREE = "do not agree|damaged|shorter"


@pytest.fixture
def place(place: Place, divided: Kept) -> Place:
    """Give each place twice: for a ledger as a whole, and for one by periods."""
    return divided(place)


@pytest.fixture(autouse=True)
def short_stride(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_STRIDE", 4)
    monkeypatch.setattr(ledger, "_PAGE", 3)


@pytest.fixture
def used(place: Place) -> Place:
    """Give the place of a ledger with a checkpoint at its end."""
    store = place.open()
    for number in range(COUNT):
        buy(store, f"m{number}", epsilon=1)
    store.close()
    place.open().close()
    assert checkpoint(place).number == COUNT
    return place


def checkpoint(place: Place) -> Verified:
    store = place.open(create=False)
    with store._ledger.read() as db:
        ((text,),) = db.execute("SELECT body FROM checkpoint").fetchall()
    store.close()
    return Verified.read(text)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the text of each record that is looked at from now on."""
    seen: list[str] = []
    take = Verified.take

    def note(self: Verified, number: int, log: str, text: str) -> None:
        seen.append(text)
        take(self, number, log, text)

    monkeypatch.setattr(Verified, "take", note)
    return seen


def test_only_what_is_new_is_compared(used: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = reads(monkeypatch)
    store = used.open()
    assert seen == []
    buy(store, "new", epsilon=1)
    store.close()
    used.open().close()
    assert len(seen) == 1
    store = used.open()
    assert store.verify().records == COUNT + 2
    store.close()


def test_a_server_compares_what_it_charges_as_it_goes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = place.open()
    for number in range(COUNT):
        buy(store, f"m{number}", epsilon=1)
        store.tidy()
    assert checkpoint(place).number >= COUNT - 4
    seen = reads(monkeypatch)
    other = place.open(create=False)
    assert len(seen) <= 4
    other.close()
    store.close()


def test_the_checkpoint_is_no_part_of_what_is_verified(used: Place) -> None:
    """An edit of what was compared before passes the cheap open, and never `verify`."""
    lines = used.log.read_bytes().splitlines(keepends=True)
    body = json.loads(lines[3])["record"]
    used.edit("UPDATE record SET body = replace(body, 'SELECT 1', 'SELECT 2') WHERE seq = 3")
    store = used.open()
    for _ in range(2):
        with pytest.raises(LedgerError, match="record 3 is not the log's"):
            store.verify()
    store.close()
    body["statement"] = "SELECT 2"
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    used.log.write_bytes(b"".join(lines[:3]) + _line(text) + b"".join(lines[4:]))
    store = used.open()  # the same edit in both, of one length: the chain breaks at the next record
    with pytest.raises(LedgerError, match="record 4 does not come after the one before it"):
        store.verify()
    store.close()


def drop_last_line(place: Place) -> None:
    place.log.write_bytes(b"".join(place.log.read_bytes().splitlines(keepends=True)[:-1]))


def cut_the_end(place: Place) -> None:
    place.log.write_bytes(place.log.read_bytes()[:-2])


def other_last_line(place: Place) -> None:
    lines = place.log.read_bytes().splitlines(keepends=True)
    text = json.dumps(
        {**json.loads(lines[-1])["record"], "statement": "SELECT 2"}, sort_keys=True, separators=(",", ":")
    )
    place.log.write_bytes(b"".join(lines[:-1]) + _line(text))


def flip_last_line(place: Place) -> None:
    content = bytearray(place.log.read_bytes())
    content[-30] ^= 1
    place.log.write_bytes(bytes(content))


def edit_last_row(place: Place) -> None:
    place.edit(f"UPDATE record SET body = replace(body, 'SELECT 1', 'SELECT 2') WHERE seq = {COUNT}")


def drop_last_row(place: Place) -> None:
    place.edit(f"DELETE FROM record WHERE seq = {COUNT}")


def lower_sums(place: Place) -> None:
    place.edit("UPDATE spent SET epsilon_nano = '1'")


@long_where(lambda place, how: place is not None and how not in (cut_the_end, edit_last_row, lower_sums))
@pytest.mark.parametrize(
    "how",
    [
        drop_last_line,
        cut_the_end,
        other_last_line,
        flip_last_line,
        edit_last_row,
        drop_last_row,
        lower_sums,
    ],
)
def test_each_open_sees_the_end_and_the_sums(used: Place, how: Callable[[Place], None]) -> None:
    how(used)
    with pytest.raises(LedgerError, match=AGREE):
        used.open()


@pytest.mark.parametrize("what", ["row", "line", "both"])
def test_each_open_sees_what_is_new(used: Place, what: str) -> None:
    store = used.open()
    buy(store, "new", epsilon=1)
    store.close()
    place = COUNT + 1
    if what != "line":
        used.edit(f"UPDATE record SET body = replace(body, 'SELECT 1', 'SELECT 2') WHERE seq = {place}")
    if what != "row":
        other_last_line(used)
    if what == "both":  # one that is changed alike in both, with the head it makes: only a witness sees that
        used.open().close()
        return
    with pytest.raises(LedgerError, match="record 13 is not the log's"):
        used.open()


def test_a_checkpoint_that_is_cut_at_any_byte_is_not_believed(
    used: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = reads(monkeypatch)
    for twentieths in range(20):
        used.edit(f"UPDATE checkpoint SET body = substr(body, 1, length(body) * {twentieths} / 20)")
        seen.clear()
        used.open().close()
        assert len(seen) == COUNT + 1, f"all was compared, cut after {twentieths} twentieths"
        assert checkpoint(used).number == COUNT, "and it was written anew"


@long_where(lambda place, forged: place is not None and forged not in ("[12,0,{}]", "null"))
@pytest.mark.parametrize(
    "forged",
    [
        "[12,0,{}]",
        "[12,0,[]]",
        "[" * 9_000,
        "[]",
        "null",
        '[99,99999999,{"":[3,"x",true,"",[]]}]',
        "[1e400,0,{}]",
    ],
)
def test_a_checkpoint_of_nonsense_is_not_believed(used: Place, forged: str) -> None:
    from dpsql.budget.chain import digest_of

    used.edit(f"UPDATE checkpoint SET body = '{digest_of(forged)} {forged}'")
    used.open().close()
    assert checkpoint(used).number == COUNT


def test_a_checkpoint_with_other_sums_does_not_stop_a_sound_ledger(used: Place) -> None:
    state = checkpoint(used)
    for chain in state.chains.values():
        chain.spent["alice"] = (0, 0, 0)
    used.edit(f"UPDATE checkpoint SET body = '{state.text()}'")
    store = used.open()
    assert store.spent().epsilon_nano == COUNT
    store.close()
    assert checkpoint(used).spent["alice"][0] == COUNT


def test_sums_and_checkpoint_forged_together_pass_no_verify(used: Place) -> None:
    state = checkpoint(used)
    for chain in state.chains.values():
        chain.spent["alice"] = (1, 0, 0)
    used.edit(f"UPDATE checkpoint SET body = '{state.text()}'")
    used.edit("UPDATE spent SET epsilon_nano = '1', delta_atto = '0', rho_atto = '0'")
    store = used.open()
    with pytest.raises(LedgerError, match="what is spent is not what its records add up to"):
        store.verify()
    store.close()


def test_what_was_spent_by_day_is_verified(used: Place) -> None:
    used.edit("UPDATE day SET epsilon_nano = '1'")
    store = used.open()
    with pytest.raises(LedgerError, match="by day"):
        store.verify()
    store.close()


def test_a_stored_answer_that_is_damaged_is_counted(used: Place) -> None:
    store = used.open()
    assert (store.verify().answers, store.verify().damaged) == (COUNT, 0)
    used.edit("DELETE FROM draw WHERE entry < 3")
    assert (store.verify().answers, store.verify().damaged) == (COUNT - 2, 2)
    store.close()


def test_an_old_ledger_with_its_checkpoint_is_brought_up_to_the_log(used: Place) -> None:
    put_back = used.backup()
    store = used.open()
    for number in range(COUNT):
        buy(store, f"n{number}", epsilon=1)
    store.close()
    used.open().close()
    put_back()
    store = used.open()
    assert store.spent().epsilon_nano == 2 * COUNT
    assert f"{COUNT} stored answers are lost" in store.lost
    assert store.verify().records == 2 * COUNT + 1
    store.close()
    store = used.open()
    assert store.lost == ""
    store.close()


def test_nobody_waits_while_it_is_compared(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at some records lets others charge before the next one; what they charge is compared too."""
    owner = place.open()
    for number in range(COUNT):
        buy(owner, f"m{number}", epsilon=1)
    page = ledger.Ledger._read_page
    charged: list[int] = []

    def read_page(self: ledger.Ledger, after: int, *, is_whole: bool) -> object:
        found = page(self, after, is_whole=is_whole)
        if self is not owner._ledger and len(charged) < 5:
            charged.append(1)
            buy(owner, f"beside {len(charged)}", epsilon=1)
        return found

    monkeypatch.setattr(ledger.Ledger, "_read_page", read_page)
    store = place.open()
    assert len(charged) == 5
    assert store.spent().epsilon_nano == COUNT + 5
    store.close()
    owner.close()


def test_a_log_that_is_not_the_ledgers_is_seen_by_its_end(used: Place, tmp_path: Path) -> None:
    """Of the same length to the byte."""
    other = Place(f"sqlite:{tmp_path / 'other.db'}", tmp_path / "other.db.log")
    store = other.open()
    for number in range(COUNT):
        buy(store, f"o{number}", epsilon=1)
    store.close()
    content = other.log.read_bytes()
    used.log.write_bytes(content[: used.log.stat().st_size].ljust(used.log.stat().st_size, b"\n"))
    with pytest.raises(LedgerError):
        used.open()


def test_a_reservation_that_is_running_is_not_disturbed(used: Place) -> None:
    store = used.open()
    reservation = store.reserve(claim(measurement("running")))
    used.open(create=False).close()
    assert isinstance(store, LedgerStore)
    store.fail(reservation)
    store.close()
