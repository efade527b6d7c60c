"""The log and the ledger together: what one lacks, and what neither explains."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.budget import EntryState
from dpsql.budget.entry import EpochStart, record_text
from dpsql.budget.journal import _line
from dpsql.errors import LedgerError, LedgerMissing

from .samples import Place, buy, claim, measurement


@pytest.fixture
def used(place: Place) -> Place:
    """Give the place of a ledger with one entry stored, one grant, and one entry given up."""
    store = place.open()
    buy(store, "a", delta=7)
    store.grant(None, 5, "owner")
    store.reserve(claim(measurement("b")))
    store.close()
    return place


def test_a_missing_ledger_is_rebuilt_as_spent(used: Place) -> None:
    before = used.open()
    spent, rho, secret = before.spent(), before.status().rho_spent_atto, before.secret()
    before.close()
    used.lose()
    after = used.open(create=not used.is_sqlite)
    assert (after.spent(), after.status().rho_spent_atto) == (spent, rho)
    assert {entry.state for entry in after.log(10)} == {EntryState.FAILED}
    assert after.secret() != secret
    assert after.status().epsilon_cap_nano == 10**10, "a replayed grant is void"
    buy(after, "a")
    after.close()
    used.open().close()


def test_an_older_ledger_is_brought_up_to_the_log(used: Place) -> None:
    put_back = used.backup()
    store = used.open()
    buy(store, "c", delta=3)
    spent = store.spent()
    store.close()
    put_back()
    store = used.open()
    assert store.spent() == spent
    assert store.reserve(claim(measurement("c"))).found == (None,)
    store.close()


@pytest.mark.parametrize("damage", ["empty", "shortened", "line dropped", "older", "another's"])
def test_a_log_that_lacks_something_stops_everything(used: Place, tmp_path: Path, damage: str) -> None:
    log = used.log
    lines = log.read_bytes().splitlines(keepends=True)
    match damage:
        case "empty":
            log.write_bytes(b"")
        case "shortened":
            log.write_bytes(b"".join(lines)[:-5])
        case "line dropped":
            log.write_bytes(b"".join(lines[:1] + lines[2:]))
        case "older":
            log.write_bytes(b"".join(lines[:-1]))
        case _:
            elsewhere = Place(f"sqlite:{tmp_path / 'other.db'}", tmp_path / "other.db.log")
            other = elsewhere.open()
            for name in "stuvwxyz":
                buy(other, name)
            other.close()
            shutil.copy(elsewhere.log, log)
    with pytest.raises(LedgerError) as caught:
        used.open()
    assert caught.value.hint
    assert caught.value.sqlstate == "F0V02"


def test_a_ledger_is_bound_to_its_dataset(used: Place) -> None:
    with pytest.raises(LedgerError, match="another dataset"):
        used.open(dataset="hospital")
    used.lose()
    with pytest.raises(LedgerError, match="another dataset"):
        used.open(dataset="hospital")
    store = used.open()
    assert store.spent().delta_atto == 7
    store.close()


@pytest.mark.parametrize("content", [b"", b'{"sha256":"torn'])
def test_a_log_without_its_first_record_is_no_new_ledger(place: Place, content: bytes) -> None:
    place.log.write_bytes(content)
    for _ in range(2):
        with pytest.raises(LedgerError, match="do not agree" if place.is_sqlite else "is no log"):
            place.open()


def test_spent_sums_that_were_edited_are_found(used: Place) -> None:
    used.edit("UPDATE spent SET epsilon_nano = '0'")
    with pytest.raises(LedgerError, match="do not agree"):
        used.open()


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE record SET body = replace(body, 'SELECT 1', 'SELECT 2') WHERE kind = 'entry'",
        "INSERT INTO record ({}seq, kind, state, body) SELECT {}seq + 9, kind, state, body FROM record"
        " WHERE kind = 'grant'",
        "DELETE FROM record WHERE kind = 'grant'",
    ],
)
def test_a_record_that_is_not_the_logs_is_found(used: Place, forgery: str) -> None:
    used.edit(forgery.format(*(("", "") if used.is_sqlite else ("log, place, ", "log, place + 9, "))))
    with pytest.raises(LedgerError, match="do not agree"):
        used.open()


def test_a_log_that_shrinks_while_in_use_stops_the_server(used: Place) -> None:
    store = used.open()
    os.truncate(used.log, used.log.stat().st_size - 1)
    for _ in range(2):
        with pytest.raises(LedgerError, match="do not agree"):
            store.reserve(claim(measurement("c")))
        with pytest.raises(LedgerError, match="do not agree"):
            store.status()
    store.close()


def test_a_foreign_line_appended_while_in_use_stops_the_server(used: Place) -> None:
    store = used.open()
    with open(used.log, "ab") as file:
        file.write(_line(record_text(EpochStart(99, "", 7))))
    with pytest.raises(LedgerError, match="do not agree"):
        store.reserve(claim(measurement("c")))
    store.close()


def test_nothing_is_made_unless_asked(place: Place) -> None:
    with pytest.raises(LedgerMissing, match="there is no ledger"):
        place.open(create=False)
    assert list(place.log.parent.iterdir()) == []


def test_a_link_to_a_log_is_the_same_log(used: Place, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target = used.file if used.is_sqlite else used.log
    os.symlink(target, folder / target.name)
    linked = folder / target.name
    place = Place(f"sqlite:{linked}", used.log) if used.is_sqlite else replace(used, log=linked)
    store = place.open(create=False)
    assert store.spent().delta_atto == 7
    buy(store, "c")
    assert used.log.read_bytes().count(b'"kind":"entry"') == 3
    store.close()


def test_a_log_replaced_while_in_use_stops_the_server(place: Place, tmp_path: Path) -> None:
    store = place.open()
    place.log.rename(tmp_path / "rotated")
    shutil.copy(tmp_path / "rotated", place.log)
    with pytest.raises(LedgerError, match="replaced"):
        store.reserve(claim(measurement("a")))
    place.log.unlink()
    with pytest.raises(LedgerError, match="not to be seen"):
        store.status()
    store.close()
