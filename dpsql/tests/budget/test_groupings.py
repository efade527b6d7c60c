"""What is stored of a family of groupings: found when it is committed, in its epoch, and only as it was claimed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.budget import Grouping, GroupingKey, LedgerStore, MeasurementClaim
from dpsql.budget.entry import Entry, read_record, record_text
from dpsql.errors import LedgerError

from .samples import EPSILON, Place, claim, draw, key, measurement
from .test_damage import damage

FAMILY, OTHER = key("a family"), key("another")
KEYS = (GroupingKey(b"\1" * 16, 3, True), GroupingKey(b"\2" * 16, 2, False))


def grouped(name: str, family: bytes = FAMILY) -> MeasurementClaim:
    return replace(measurement(name), grouping=Grouping(family, KEYS))


def buy(store: LedgerStore, wanted: MeasurementClaim, name: str) -> None:
    store.commit(store.reserve(claim(wanted)), [draw(name)])


def found(store: LedgerStore, family: bytes = FAMILY) -> list[int]:
    return [one.entry for one in store.groupings([family])[1][family]]


def test_what_is_committed_is_found(place: Place) -> None:
    store = place.open()
    assert found(store) == []
    open_ = store.reserve(claim(grouped("a")))
    assert found(store) == []
    store.commit(open_, [draw("a", payload=b"of a")])
    store.fail(store.reserve(claim(grouped("b"))))
    buy(store, grouped("c"), "c")
    buy(store, grouped("d", OTHER), "d")
    buy(store, measurement("e"), "e")
    (a, _) = stored = sorted(store.groupings([FAMILY])[1][FAMILY], key=lambda one: one.entry)
    assert [one.grouping for one in stored] == [Grouping(FAMILY, KEYS)] * 2
    assert store.draw_of(a) == draw("a", payload=b"of a")
    assert store.groupings([])[1] == {}
    store.close()


def test_an_epoch_keeps_its_groupings_to_itself(place: Place) -> None:
    store = place.open()
    buy(store, grouped("a"), "a")
    assert store.groupings([FAMILY])[0] == 1
    assert store.advance_epoch() == 2
    assert (store.groupings([FAMILY])[0], found(store)) == (2, [])
    store.close()


def test_what_is_replayed_from_the_log_answers_nothing_and_stays_spent(place: Place) -> None:
    store = place.open()
    store.close()
    put_back = place.backup()
    store = place.open()
    buy(store, grouped("a"), "a")
    store.close()
    put_back()
    store = place.open()
    assert (found(store), store.spent().epsilon_nano) == ([], EPSILON // 10)
    store.close()


def test_a_record_keeps_its_grouping(place: Place) -> None:
    store = place.open()
    buy(store, grouped("a"), "a")
    (entry,) = store.log(1)
    assert entry.grouping == Grouping(FAMILY, KEYS)
    again = read_record(record_text(entry))
    assert isinstance(again, Entry)
    assert again.grouping == entry.grouping
    store.close()


@pytest.mark.parametrize(
    "how",
    ["UPDATE measure SET entry = 3 - entry", "UPDATE measure SET scale = '1/7'", "UPDATE measure SET scale = 'x'",
     "UPDATE draw SET payload = substr(payload, 1, length(payload) - 1)", "DELETE FROM draw",
     "UPDATE draw SET payload = (SELECT o.payload FROM draw o WHERE o.entry = 3 - draw.entry)",
     "UPDATE draw SET scale = '1/7'"],
)  # fmt: skip
def test_a_damaged_grouping_is_not_served(place: Place, how: str) -> None:
    store = place.open()
    buy(store, grouped("a"), "a")
    buy(store, grouped("b", OTHER), "b")
    before = store.spent()
    damage(place, how)
    with pytest.raises(LedgerError, match="is damaged or missing"):
        [store.draw_of(one) for one in store.groupings([FAMILY])[1][FAMILY]]
    assert store.spent() == before
    store.close()
