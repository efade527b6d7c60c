"""What the ledger has of asserted keys: the newest of each version, over crashes, damage and several stores."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

import pytest

from dpsql.budget import KeyCheck, LedgerStore
from dpsql.errors import LedgerError

from .samples import Place, buy

ORDERS = KeyCheck(-1, "", 0, "orders", ("no",), "v1", True, "0.1.0", "owner")


def found(store: LedgerStore, of: KeyCheck = ORDERS) -> tuple[int, bool] | None:
    check = store.key_check(*of.subject)
    return None if check is None else (check.epoch, check.holds)


def test_what_was_found_is_of_one_key_of_one_version(store: LedgerStore) -> None:
    assert found(store) is None
    store.record_keys([ORDERS, replace(ORDERS, table="s.part", columns=("a", "b"))])
    assert found(store) == (1, True)
    assert found(store, replace(ORDERS, table="s.part", columns=("a", "b"))) == (1, True)
    for other in (
        replace(ORDERS, version="v2"), replace(ORDERS, table="part"), replace(ORDERS, columns=("a",)),
        replace(ORDERS, table="s.part", columns=("b", "a")),
    ):  # fmt: skip
        assert found(store, other) is None
    check = store.key_check(*ORDERS.subject)
    assert check is not None
    assert (check.dpsql, check.by) == ("0.1.0", "owner")
    assert check.at


def test_the_newest_counts(store: LedgerStore, place: Place) -> None:
    for number, holds in enumerate((True, False, True, False)):
        store.record_keys([replace(ORDERS, holds=holds)])
        buy(store, f"charge {number}", epsilon=1)
        assert found(store) == (1, holds)
    store.close()
    again = place.open()
    assert found(again) == (1, False)
    again.close()


def test_an_epoch_begins_with_what_was_verified_for_it(store: LedgerStore) -> None:
    store.record_keys([ORDERS])
    new = replace(ORDERS, version="v2")
    assert store.advance_epoch([new]) == 2
    assert (found(store), found(store, new)) == ((1, True), (2, True))
    assert store.epoch == 2
    assert store.spent().epsilon_nano == 0


def test_two_stores_see_what_either_has_recorded(place: Place) -> None:
    one, other = place.open(), place.open()
    assert found(one) is found(other) is None
    other.record_keys([ORDERS])
    assert found(one) == (1, True)
    one.record_keys([replace(ORDERS, holds=False)])
    assert found(other) == (1, False)
    one.close()
    other.close()


def test_many_threads_of_a_store_agree(store: LedgerStore) -> None:
    def ask() -> None:
        for _ in range(5):
            store.record_keys([ORDERS])
            assert found(store) == (1, True)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.record_keys([replace(ORDERS, holds=False)])
    assert found(store) == (1, False)


def test_the_log_brings_an_older_ledger_up_to_date(place: Place) -> None:
    store = place.open()
    put_back = place.backup()
    store.record_keys([ORDERS])
    store.advance_epoch([replace(ORDERS, version="v2")])
    store.close()
    put_back()
    again = place.open(create=False)
    assert (found(again), found(again, replace(ORDERS, version="v2"))) == ((1, True), (2, True))
    again.close()


DAMAGES = {
    "a failure turned into a success": "UPDATE record SET body = replace(body, '\"holds\":false', '\"holds\":true')",
    "another version": "UPDATE record SET body = replace(body, 'v1', 'v2') WHERE kind = 'keycheck'",
    "a record taken out": "DELETE FROM record WHERE kind = 'keycheck'",
    "a record that says no outcome": "UPDATE record SET body = replace(body, '\"holds\":false,', '') WHERE kind = 'keycheck'",
}  # fmt: skip


@pytest.mark.parametrize("how", DAMAGES)
def test_a_record_that_is_not_what_was_logged_is_no_ledger(place: Place, how: str) -> None:
    store = place.open()
    store.record_keys([replace(ORDERS, holds=False)])
    store.close()
    place.edit(DAMAGES[how])
    with pytest.raises(LedgerError):
        place.open(create=False)


def test_a_record_of_another_kind_is_no_verification(place: Place) -> None:
    store = place.open()
    buy(store, "a")
    place.edit("UPDATE record SET kind = 'keycheck' WHERE kind = 'entry'")
    with pytest.raises(LedgerError):
        found(store)
    store.close()
