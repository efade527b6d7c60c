"""The ledger's format: what earlier versions wrote is read, and what a later one writes stops this one, in clear words.

An earlier version is this code with a smaller number, and without the laws that came later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from dpsql.budget import LedgerStore, MeasurementClaim, entry, ledger, postgres_ledger, sqlite_ledger
from dpsql.budget.claim import Draw
from dpsql.cache import Cache
from dpsql.errors import LedgerError
from dpsql.mechanisms import Law, Truncated, laws
from dpsql.policy import Accounting

from .samples import EPSILON, Place, buy, claim, key, measurement, pure

TRUNCATED = Truncated.within(Fraction(10), Fraction(1, 10**6))
NEWER = "kept by a newer version"


@contextmanager
def version(number: int) -> Iterator[None]:
    """Be another version of dpsql: the first one knows Laplace noise alone."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (entry, ledger, sqlite_ledger, postgres_ledger):
            if hasattr(module, "FORMAT"):
                patch.setattr(module, "FORMAT", number)
        if number != entry.FORMATS[Accounting.ZCDP]:
            patch.setitem(entry.FORMATS, Accounting.PURE, number)
        if number == 1:
            patch.setattr(laws, "_READERS", {})
        patch.setattr(entry, "_lately_read", Cache(0))  # another version is another process
        laws.law_of.cache_clear()
        yield
    laws.law_of.cache_clear()


def buy_under(store: LedgerStore, name: str, law: Law) -> None:
    wanted = MeasurementClaim((key(name),), law, pure(EPSILON // 10, delta=7), name)
    store.commit(store.reserve(claim(wanted)), [Draw((key(name),), law, b"noisy")])


def formats(place: Place) -> set[int]:
    """Return the ledger's format, as a set of one."""
    if place.is_sqlite:
        with closing(sqlite3.connect(place.file)) as database:
            return set(database.execute("PRAGMA user_version").fetchone())
    with psycopg.connect(place.url, options="-c search_path=dpsql") as connection:
        return set(connection.execute("SELECT format FROM ledger").fetchone() or ())


def test_a_ledger_of_the_first_version_is_read_and_then_of_this_one(place: Place) -> None:
    with version(1):
        store = place.open()
        buy(store, "a", delta=3)
        spent = store.spent()
        store.close()
        assert formats(place) == {1}
    store = place.open()
    assert store.spent() == spent
    assert store.lookup([key("a")], measurement("a").law) is not None
    buy_under(store, "b", TRUNCATED)
    ((found,),) = store.lookup([key("b")], TRUNCATED) or ((),)
    assert found.law == TRUNCATED
    assert store.log(1)[0].law == TRUNCATED
    store.close()
    assert formats(place) == {4}
    assert '"format":1' in place.log.read_text()
    store = place.open()
    assert store.spent() == spent + pure(EPSILON // 10, delta=7)
    store.close()


def test_an_earlier_version_does_not_open_what_this_one_has_written(place: Place) -> None:
    with version(1):
        place.open().close()
    place.open().close()
    assert formats(place) == {1}, "looking changes nothing"
    with version(1):
        place.open().close()
    store = place.open()
    buy(store, "a")
    store.close()
    assert formats(place) == {4}
    with version(1), pytest.raises(LedgerError, match=NEWER):
        place.open()
    place.open().close()


def test_a_log_of_this_version_is_not_taken_for_damaged_by_an_earlier_one(place: Place) -> None:
    store = place.open()
    buy_under(store, "b", TRUNCATED)
    store.close()
    place.lose()
    with version(1), pytest.raises(LedgerError, match="this version cannot read") as caught:
        place.open()
    assert "newer" in str(caught.value.hint)


def test_a_running_version_stops_when_a_later_one_takes_the_ledger(place: Place) -> None:
    store = place.open()
    buy(store, "a")
    with version(8):
        later = place.open(create=False)
        buy(later, "b")
        later.close()
    size = place.log.stat().st_size
    for use in (lambda: buy(store, "c"), store.spent, store.status, lambda: store.epoch):
        with pytest.raises(LedgerError, match=NEWER):
            use()
    assert place.log.stat().st_size == size, "it has charged what it could not answer"
    store.close()


def test_a_law_of_a_later_version_is_no_damage(place: Place) -> None:
    store = place.open()
    buy(store, "a")
    place.edit("UPDATE measure SET scale = 'levy 3 4'")
    with pytest.raises(LedgerError, match=NEWER):
        store.lookup([key("a")], measurement("a").law)
    store.close()


def test_a_move_by_an_earlier_version_is_seen(place: Place) -> None:
    """Its number of a ledger in rho is smaller than this version's of one in epsilon."""
    store = place.open()
    buy(store, "a")
    place.edit("PRAGMA user_version = 3" if place.is_sqlite else "UPDATE ledger SET format = 3")
    for use in (lambda: buy(store, "c"), store.spent):
        with pytest.raises(LedgerError, match="moved to zCDP"):
            use()
    store.close()


EARLIER = Path(__file__).parent / "earlier"
"""Ledgers and logs as versions of before format 4 have written them."""


@pytest.mark.parametrize(("number", "kind"), [(2, Accounting.PURE), (3, Accounting.ZCDP)])
def test_a_ledger_of_an_earlier_version_goes_on(tmp_path: Path, number: int, kind: Accounting) -> None:
    place = Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log", kind)
    with closing(sqlite3.connect(place.file)) as database:
        database.executescript((EARLIER / f"format{number}.sql").read_text())
    place.log.write_bytes((EARLIER / f"format{number}.log").read_bytes())
    before = place.log.read_bytes()
    store = place.open(create=False)
    spent = store.spent()
    assert spent == pure(*3 * [EPSILON // 10], delta=7)
    assert store.status("bob").analyst_spent_nano > 0
    assert store.certificate("0" * 64) is None
    assert store.note() is None
    assert store.key_check("visit", ("id",), "v1") is not None
    assert store.lookup([key("c")], measurement("c").law) is not None
    assert store.verify().records == 7
    store.close()
    assert (formats(place), place.log.read_bytes()) == ({number}, before), "looking changes nothing"

    store = place.open(create=False)
    buy(store, "d")
    assert store.spent() == spent + pure(EPSILON // 10)
    store.close()
    assert formats(place) == {place.promise.format}
    assert place.log.read_bytes().startswith(before)
    for _ in range(2):
        store = place.open(create=False)
        assert store.verify().records == 9, "with the one that says what the log goes on from"
        assert store.note() is not None
        store.close()
    store = place.open(create=False)
    store.rotate()
    store.close()
    place.lose()
    store = place.open(create=False)
    assert store.spent() == spent + pure(EPSILON // 10)
    store.close()


@pytest.mark.parametrize("edit", ["DELETE FROM record WHERE seq = 3", "UPDATE spent SET epsilon_nano = '0'"])
def test_an_earlier_ledger_that_is_not_sound_is_not_brought_up(tmp_path: Path, edit: str) -> None:
    place = Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")
    with closing(sqlite3.connect(place.file)) as database:
        database.executescript((EARLIER / "format2.sql").read_text())
    place.log.write_bytes((EARLIER / "format2.log").read_bytes())
    place.edit(edit)
    with pytest.raises(LedgerError, match="do not agree"):
        place.open(create=False)
    assert formats(place) == {2}
