"""A ledger's charges have one meaning for good: the neighbours and the persons together that it was made for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.budget import LedgerStore, Promise, open_store
from dpsql.errors import LedgerError

from .samples import CAPS, Place

HOUSEHOLD = Promise("add-remove", 4)


def opened(place: Place, promise: Promise | None, log: Path | None = None) -> LedgerStore:
    if promise is None:
        return open_store(place.url, "campus", CAPS, create=True, log=log or place.log)
    return open_store(place.url, "campus", CAPS, create=True, log=log or place.log, promise=promise)


def test_a_ledger_goes_with_the_promise_it_was_made_for(place: Place) -> None:
    opened(place, HOUSEHOLD).close()
    opened(place, HOUSEHOLD).close()
    for other in (Promise("add-remove", 1), Promise("add-remove", 3), Promise("replace-one", 4)):
        with pytest.raises(LedgerError, match=r'made for neighbours = "add-remove" and together = 4'):
            opened(place, other)
    opened(place, HOUSEHOLD).close()


def test_a_ledger_that_does_not_say_reads_as_one_person(place: Place) -> None:
    opened(place, None).close()
    with pytest.raises(LedgerError, match="made for together = 1; the policy says otherwise"):
        opened(place, HOUSEHOLD)
    opened(place, Promise("add-remove", 1)).close()
    opened(place, Promise("replace-one", 1)).close()


def test_a_ledger_that_was_lost_comes_back_with_its_promise(place: Place) -> None:
    opened(place, HOUSEHOLD).close()
    place.lose()
    with pytest.raises(LedgerError, match="together = 4"):
        opened(place, Promise("add-remove", 1))


def test_a_second_machine_begins_no_log_under_another_promise(shared: Place, tmp_path: Path) -> None:
    opened(shared, HOUSEHOLD).close()
    there = tmp_path / "there.log"
    with pytest.raises(LedgerError, match="together = 4"):
        opened(shared, Promise("add-remove", 1), there)
    assert not there.exists()
    opened(shared, HOUSEHOLD, there).close()


def test_two_machines_that_begin_at_once_do_not_disagree(
    shared: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked before either wrote: the record of the second log is not taken in."""
    from dpsql.budget import ledger, postgres_ledger

    opened(shared, HOUSEHOLD).close()
    monkeypatch.setattr(postgres_ledger, "require_promise", lambda *_: None)
    monkeypatch.setattr(ledger.Ledger, "_settle", lambda own, _: own.give_up([]))
    with pytest.raises(LedgerError, match="together = 4"):
        opened(shared, Promise("add-remove", 1), tmp_path / "there.log")
