"""Stored answers that are not what was stored: none is served, none is charged for, and the mends that are told
work."""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction

import pytest

from dpsql.budget import Charge, LedgerStore, ledger_store
from dpsql.budget.entry import DIGEST, Entry, read_record, record_text
from dpsql.errors import LedgerError
from dpsql.mechanisms import Laplace
from dpsql.tests.support.length import long_where

from .conftest import Kept
from .samples import EPSILON, Place, buy, claim, draw, key, measurement, pure


@pytest.fixture
def place(place: Place, kept: Kept) -> Place:
    """Give each place for each way of keeping a ledger: in epsilon, by periods, and, under `long`, in rho."""
    return kept(place)


TENTH = EPSILON // 10
A, B = key("a").hex(), key("b").hex()

DAMAGES = {
    "two payloads swapped": "UPDATE draw SET payload = (SELECT o.payload FROM draw o WHERE o.entry = 3 - draw.entry)",
    "two rows swapped": "UPDATE draw SET (measures, scale, payload) = (SELECT o.measures, o.scale, o.payload FROM draw o"
    " WHERE o.entry = 3 - draw.entry)",
    "another payload": "UPDATE draw SET payload = {blob}'6e6f697379'{end}",
    "a payload cut short": "UPDATE draw SET payload = substr(payload, 1, length(payload) - 1)",
    "a checksum taken away": "UPDATE draw SET payload = substr(payload, 1, length(payload) - 32)",
    "an empty payload": "UPDATE draw SET payload = {blob}''{end}",
    "a row deleted": "DELETE FROM draw",
    "another scale": "UPDATE draw SET scale = '1/7'",
    "no scale": "UPDATE draw SET scale = 'large'",
    "a scale without end": "UPDATE draw SET scale = '1/0'",
    "other measures": "UPDATE draw SET measures = {blob}'" + B + A + "'{end}",
    "half a measure": "UPDATE draw SET measures = substr(measures, 1, 31)",
    "an index that leads to another draw": "UPDATE measure SET entry = 3 - entry",
    "an index with another scale": "UPDATE measure SET scale = 'x'",
    "a draw that never was": "UPDATE record SET state = 'committed' WHERE state = 'failed'",
}
ONE_ROW_IS_NO_OTHER = "a draw that never was"


def damage(place: Place, statement: str) -> None:
    blob, end = ("X", "") if place.is_sqlite else ("decode(", ", 'hex')")
    place.edit(statement.format(blob=blob, end=end))


def refused(store: LedgerStore, name: str) -> None:
    """See that a stored measure is neither served nor drawn anew, alone or beside others, and nothing is charged."""
    before = store.spent()
    for ask in (
        lambda: store.lookup([key(name)], Laplace(Fraction(10))),
        lambda: store.reserve(claim(measurement(name))),
        lambda: store.reserve(claim(measurement("new"), measurement(name), measurement("newer"))),
    ):
        with pytest.raises(LedgerError) as caught:
            ask()
        assert caught.value.message.endswith(" is damaged or missing")
        assert "restore" in (caught.value.hint or "")
    assert store.spent() == before


@long_where(lambda place, kept, how: (place is not None or kept != "pure") and how not in list(DAMAGES)[::4])
@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_answer_is_never_served(place: Place, how: str) -> None:
    store = place.open()
    buy(store, "a", payload=b"of a, noisy")
    buy(store, "b", payload=b"of b, noisy")
    store.fail(store.reserve(claim(measurement("c"))))
    store.close()
    put_back = place.backup()
    damage(place, DAMAGES[how])
    store = place.open()
    refused(store, "c" if how == ONE_ROW_IS_NO_OTHER else "a")
    buy(store, "another", payload=b"sound")
    assert store.reserve(claim(measurement("another"))).found == (((draw("another", payload=b"sound"),),),)
    spent = store.spent()
    store.close()

    put_back()  # the first mend that is told: the log brings the older ledger up to date
    store = place.open()
    assert store.spent() == spent
    assert store.lookup([key("a")], Laplace(Fraction(10))) == ((draw("a", payload=b"of a, noisy"),),)
    store.close()
    damage(place, DAMAGES[how])
    store = place.open()
    store.advance_epoch()  # the second
    buy(store, "a", payload=b"drawn anew")
    assert store.lookup([key("a")], Laplace(Fraction(10))) == ((draw("a", payload=b"drawn anew"),),)
    assert store.spent() == spent + pure(TENTH)
    store.close()


def test_damage_is_found_while_the_ledger_is_in_use(place: Place) -> None:
    store = place.open()
    buy(store, "a")
    assert store.lookup([key("a")], Laplace(Fraction(10))) == ((draw("a"),),)
    damage(place, DAMAGES["another payload"])
    refused(store, "a")
    store.close()


def test_a_measurement_whose_keys_come_with_its_draw_is_checked_too(place: Place) -> None:
    store = place.open()
    reservation = store.reserve(claim(measurement()))
    store.commit(reservation, [draw("late", payload=b"one stage on")])
    assert store.lookup([key("late")], Laplace(Fraction(10))) == ((draw("late", payload=b"one stage on"),),)
    damage(place, DAMAGES["another payload"])
    refused(store, "late")
    store.close()


def test_a_row_of_another_ledger_is_not_taken(place: Place) -> None:
    store = place.open()
    buy(store, "a", epsilon=7)
    (entry,) = store.log(1)
    theirs = record_text(dataclasses.replace(entry, seq=1, note="of another ledger"))
    forged = ledger_store.stored_payload(entry, theirs, draw("a", payload=b"theirs")).hex()
    damage(place, "UPDATE draw SET payload = {blob}'" + forged + "'{end}")
    refused(store, "a")
    store.close()


@pytest.mark.parametrize("kept", ["pure", "zcdp"], indirect=True)
def test_answers_of_before_there_were_checksums_are_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = place.open()
    with monkeypatch.context() as patch:
        patch.setattr(
            ledger_store, "Entry", lambda **fields: Entry(**{**fields, "digest": "", "grounds": None})
        )
        patch.setattr(ledger_store, "utc_now", lambda: "2025-01-02T03:04:05+00:00")
        reservation = store.reserve(claim(measurement("a")))
    store.commit(reservation, [draw("a", payload=b"old")])
    with store._ledger.read() as db:
        ((body, payload),) = db.execute(
            "SELECT r.body, d.payload FROM record r JOIN draw d ON d.entry = r.seq"
        ).fetchall()
    assert bytes(payload) == b"old"
    place_in_log = 1
    assert re.sub('"after":"[0-9a-f]{64}",', "", body) == (
        '{"analyst":"alice","at":"2025-01-02T03:04:05+00:00","delta_atto":0,"epoch":1,"epsilon_nano":100000000,'
        f'"kind":"entry","measures":["{A}"],"note":"(\'a\',) at 10","rho_atto":5000000000000000,"scale":"10",'
        f'"seq":{place_in_log},"statement":"SELECT 1"}}'
    ), "what the first version wrote"
    buy(store, "b", payload=b"new")
    store.close()
    store = place.open(create=False)
    assert store.lookup([key("a")], Laplace(Fraction(10))) == ((draw("a", payload=b"old"),),)
    assert store.lookup([key("b")], Laplace(Fraction(10))) == ((draw("b", payload=b"new"),),)
    assert {entry.digest for entry in store.log(9)} == {"", DIGEST}
    damage(place, "DELETE FROM draw")
    for name in "ab":
        refused(store, name)
    store.close()


def test_a_new_answer_cannot_pass_for_an_old_one(place: Place) -> None:
    """Whether there is a checksum stands in the log, so both would have to lose it."""
    store = place.open()
    buy(store, "a")
    store.close()
    place.edit("UPDATE record SET body = replace(body, '\"digest\":\"sha256\",', '')")
    damage(place, DAMAGES["a checksum taken away"])
    with pytest.raises(LedgerError, match="do not agree"):
        place.open()


def test_a_checksum_of_a_later_version_is_not_guessed_at() -> None:
    entry = Entry(1, "", 1, "alice", "SELECT 1", "", (key("a"),), Laplace(Fraction(1)), Charge.pure(1))
    text = record_text(entry)
    assert read_record(text) == entry
    with pytest.raises(LedgerError, match="this version cannot read"):
        read_record(text.replace(DIGEST, "sha999"))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM ledger",
        "UPDATE spent SET epsilon_nano = 'much'",
        "UPDATE record SET body = '7' WHERE kind = 'entry'",
    ],
)
def test_a_ledger_of_nonsense_is_no_bug(place: Place, statement: str) -> None:
    store = place.open()
    buy(store, "a")
    store.close()
    place.edit(statement)
    with pytest.raises(LedgerError) as caught:
        place.open()
    assert caught.value.hint
