"""What stored answers rest on, as the ledger has it: of this epoch, and of what was stored alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.budget import LedgerStore, ledger_store
from dpsql.relation.catalog import Ground
from dpsql.tests.laws.planting import plant

from .samples import EPSILON, Place, claim, draw, measurement, pure

STUDENT = (("dataset", "d0"), ("student", "5a"))
LOAN = (("dataset", "d0"), ("loan", "70"), ("student", "5a"))


def store_on(store: LedgerStore, grounds: tuple[Ground, ...], *names: str) -> None:
    for name in names:
        wanted = replace(measurement(name), grounds=grounds)
        store.commit(store.reserve(claim(wanted)), [draw(name)])


@pytest.mark.parametrize("page", [1, 2, 10_000])
def test_stored_answers_are_counted_by_what_they_rest_on(
    place: Place, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(ledger_store, "_PAGE", page)
    store = place.open()
    assert store.resting() == {}
    store_on(store, STUDENT, "old")
    store.advance_epoch()
    store_on(store, LOAN, "a", "b")
    store_on(store, STUDENT, "c")
    store.fail(store.reserve(claim(replace(measurement("d"), grounds=LOAN))))
    store.reserve(claim(replace(measurement("e"), grounds=LOAN)))
    each = pure(EPSILON // 10)
    assert store.resting() == {LOAN: (2, each + each), STUDENT: (1, each)}
    assert [entry.grounds for entry in store.log(2)] == [LOAN, LOAN]
    store.close()
    store = place.open()
    assert store.resting() == {LOAN: (2, each + each), STUDENT: (1, each)}
    store.close()


def test_of_those_of_before_nothing_is_known(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, LedgerStore._charge, ("grounds=one.claim.grounds", "grounds=None"))
    store = place.open()
    store_on(store, STUDENT, "a")
    assert '"grounds"' not in place.log.read_text()
    monkeypatch.undo()
    store_on(store, STUDENT, "b")
    each = pure(EPSILON // 10)
    assert store.resting() == {None: (1, each), STUDENT: (1, each)}
    assert [entry.grounds for entry in store.log(2)] == [STUDENT, None]
    store.close()


def test_what_is_no_text_is_no_ground() -> None:
    with pytest.raises(ValueError, match="ground"):
        replace(measurement("a"), grounds=(("student", "\ud800"),))
