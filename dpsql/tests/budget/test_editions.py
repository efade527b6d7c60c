"""Tables of editions beside the ledger: the first writer's are everybody's, and there is a bound on all of them."""

from __future__ import annotations

import hashlib
import threading
from contextlib import closing

import pytest

from dpsql.budget import Edition, LedgerStore, editions
from dpsql.errors import LedgerError
from dpsql.tests.laws.planting import plant

from .samples import Place

FAMILY = b"f" * 32


def edition(last: int, name: str = "a", family: bytes = FAMILY) -> Edition:
    return Edition(hashlib.sha256(f"{name} {last}".encode()).digest(), family, last)


def nothing() -> bytes | None:
    return None


def check_first(place: Place) -> None:
    """Two stores of one ledger that fit at once are told the same: what was kept first."""
    with closing(place.open()) as one, closing(place.open(create=False)) as other:
        meet, told = threading.Barrier(2, timeout=30), {}

        def ask(store: LedgerStore, own: bytes) -> None:
            def fit() -> bytes:
                meet.wait()  # neither found it
                return own

            told[own] = store.kept(edition(1), fit)

        threads = [threading.Thread(target=ask, args=each) for each in ((one, b"one"), (other, b"other"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert told[b"one"] == told[b"other"] is not None
        assert one.kept(edition(1), lambda: b"later") == told[b"one"]
        assert one.kept(edition(2), nothing) is None


def test_the_first_writer_wins(place: Place) -> None:
    check_first(place)


def test_the_last_writer_does_not(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, editions.put, ("known is not None", "False"))
    with pytest.raises(AssertionError):
        check_first(place)


def test_ten_editions_of_a_family_are_kept(store: LedgerStore) -> None:
    for last in range(1, 15):
        assert store.kept(edition(last), lambda last=last: b"%d" % last) == b"%d" % last  # type: ignore[misc]
        store.kept(edition(last, "of another coordinate"), lambda: b"beside")
    other = edition(1, family=b"g" * 32, name="b")
    assert store.kept(other, lambda: b"other") == b"other"
    kept = [last for last in range(1, 15) if store.kept(edition(last), nothing) is not None]
    assert kept == list(range(5, 15))
    assert store.kept(edition(3), lambda: b"again") == b"again"  # fitted again, each time
    assert store.kept(edition(3), nothing) is None
    assert store.kept(edition(5), nothing) == b"5"
    store.advance_epoch()
    assert store.kept(edition(20), lambda: b"20") == b"20"
    assert store.kept(edition(14), nothing) is None
    assert store.kept(other, nothing) is None


def test_there_is_a_bound_on_all(store: LedgerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editions, "MOST_BYTES", 1_000)
    for last in range(1, 8):
        store.kept(edition(last, family=b"%d" % last * 32), lambda: b"x" * 100)  # 132 with its digest
    assert [last for last in range(1, 8) if store.kept(edition(last), nothing)] == list(range(1, 8))
    store.kept(edition(8), lambda: b"x" * 100)
    assert store.kept(edition(1), nothing) is None
    assert store.kept(edition(9), lambda: b"x" * 101) == b"x" * 101  # too long
    assert store.kept(edition(9), nothing) is None


def test_what_is_damaged_is_fitted_again(place: Place) -> None:
    with closing(place.open()) as store:
        store.kept(edition(1), lambda: b"whole")
        place.edit(
            "UPDATE edition SET content = CAST('0123' AS {})".format("BLOB" if place.is_sqlite else "bytea")
        )
    with closing(place.open(create=False)) as store:
        assert store.kept(edition(1), lambda: b"anew") == b"anew"
        assert store.kept(edition(1), nothing) == b"anew"


def test_what_cannot_be_kept_is_told_all_the_same(
    store: LedgerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bytes:
        raise LedgerError("no room")

    monkeypatch.setattr(editions, "put", full)
    assert store.kept(edition(1), lambda: b"told") == b"told"
    assert store.spent().epsilon_nano == 0


def test_a_ledger_without_the_table_answers_all_the_same(place: Place) -> None:
    with closing(place.open()) as store:
        place.edit("DROP TABLE edition")
        assert store.kept(edition(1), lambda: b"told") == b"told"
        assert store.kept(edition(1), nothing) is None
        assert store.spent().epsilon_nano == 0
