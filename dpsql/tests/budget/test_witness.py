"""A witness outside: what it is told, and that an old pair of ledger and log is seen by it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dpsql.budget import LedgerStore, read_notes
from dpsql.errors import LedgerError

from .samples import Place, buy


def noted(store: LedgerStore) -> str:
    note = store.note()
    assert note is not None
    return note.text


def test_a_note_agrees_with_the_ledger_it_is_of(place: Place) -> None:
    store = place.open()
    lines = [noted(store)]
    for number in range(3):
        buy(store, f"m{number}", epsilon=1)
        lines.append(noted(store))
        store.rotate()
        lines.append(noted(store))
    assert store.verify(None, read_notes(lines)).agreed == 7
    torn = [
        *lines,
        lines[-1][:40],
        "",
        "7",
        "[]",
        '{"records": "x"}',
        "{" * 9_000,
        '{"at":1,"ledger":2,"records":3,"head":4}',
    ]
    assert store.verify(None, read_notes(torn)).agreed == 7
    store.close()


def test_a_note_says_nothing_of_what_was_asked(place: Place) -> None:
    store = place.open()
    buy(store, "a", epsilon=1)
    text = noted(store)
    assert set(json.loads(text)) == {"at", "ledger", "records", "head"}
    log = place.log.read_text()
    assert json.loads(text)["head"] not in log
    assert json.loads(text)["ledger"] not in log
    store.close()


def test_an_old_pair_that_was_put_back_is_seen(tmp_path: Path) -> None:
    place = Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")
    store = place.open()
    buy(store, "a", epsilon=1)
    lines = [noted(store)]
    store.close()
    shutil.copytree(tmp_path, tmp_path.with_name("old"))
    store = place.open()
    buy(store, "b", epsilon=1)
    lines.append(noted(store))
    store.close()
    shutil.rmtree(tmp_path)
    shutil.copytree(tmp_path.with_name("old"), tmp_path)
    store = place.open()  # nothing in the two themselves says that they are old
    assert store.verify(None, read_notes(lines[:1])).agreed == 1
    with pytest.raises(LedgerError, match=r"has seen 3 records .* have 2: both are older"):
        store.verify(None, read_notes(lines))
    buy(store, "other", epsilon=1)
    with pytest.raises(LedgerError, match="has seen other records: of 3"):
        store.verify(None, read_notes(lines))
    store.close()


def test_a_witness_of_another_ledger_is_none(tmp_path: Path) -> None:
    stores = [Place(f"sqlite:{tmp_path / name}.db", tmp_path / f"{name}.db.log").open() for name in "ab"]
    lines = [noted(store) for store in stores]
    assert len({json.loads(line)["ledger"] for line in lines}) == 2
    assert stores[0].verify(None, read_notes(lines)).agreed == 1
    for notes in ([], lines[1:]):
        with pytest.raises(LedgerError, match="no note of this ledger"):
            stores[0].verify(None, read_notes(notes))
    for store in stores:
        store.close()
