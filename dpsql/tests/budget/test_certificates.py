"""Certificates: stored once under their digest with the entries that name them, never handed out damaged."""

from __future__ import annotations

import hashlib

import pytest

from dpsql.budget import Certificate, LedgerStore, Reservation, certificates
from dpsql.budget.sqlite_ledger import SqliteLedger
from dpsql.errors import BudgetExhausted, LedgerError

from .samples import EPSILON, Place, claim, draw, measurement, proved

CONTENT = b'{"proof": 1}'
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def reserve(store: LedgerStore, name: str, content: bytes = CONTENT, epsilon: int = 1) -> Reservation:
    """Reserve what is proved by a certificate."""
    return store.reserve(claim(proved(measurement(name, epsilon=epsilon), content)))


def test_a_certificate_is_stored_once_and_named_by_entries(place: Place) -> None:
    store = place.open()
    assert store.certificate(DIGEST) is None
    for name in "ab":
        reservation = reserve(store, name)
        assert store.certificate(DIGEST) == CONTENT
        store.commit(reservation, [draw(name)])
    store.close()
    store = place.open(create=False)
    assert [entry.certificate for entry in store.log(9)] == [DIGEST, DIGEST]
    assert store.certificate(DIGEST) == CONTENT
    with store._ledger.read() as db:
        assert db.execute("SELECT COUNT(*) FROM certificate").fetchone() == (1,)
    store.close()
    assert f'"certificate":"{DIGEST}"' in place.log.read_text()


def test_what_is_refused_or_found_leaves_none(store: LedgerStore) -> None:
    with pytest.raises(BudgetExhausted):
        reserve(store, "a", epsilon=100 * EPSILON)
    assert store.certificate(DIGEST) is None
    store.commit(store.reserve(claim(measurement("a"))), [draw("a")])
    assert reserve(store, "a").to_draw == ()
    assert store.certificate(DIGEST) is None


@pytest.mark.parametrize("digest", ["", "0" * 64, DIGEST.upper(), DIGEST + "\n"])
def test_a_certificate_goes_by_its_own_digest(digest: str) -> None:
    with pytest.raises(ValueError, match="sha256"):
        Certificate(digest, CONTENT)


def test_a_damaged_certificate_is_not_handed_out(place: Place) -> None:
    store = place.open()
    reserve(store, "a")
    place.edit("UPDATE certificate SET content = " + ("X'00'" if place.is_sqlite else "decode('00', 'hex')"))
    with pytest.raises(LedgerError, match="damaged"):
        store.certificate(DIGEST)
    store.close()


def test_certificates_are_bounded(store: LedgerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    long = bytes(certificates.MOST_BYTES_OF_ONE + 1)
    with pytest.raises(ValueError, match="at most"):
        Certificate(hashlib.sha256(long).hexdigest(), long)
    monkeypatch.setattr(certificates, "MOST_BYTES", 2 * len(CONTENT) - 1)
    assert reserve(store, "a").unproved == ()
    other = CONTENT[::-1]
    refused = reserve(store, "b", other)
    assert refused.unproved == (hashlib.sha256(other).hexdigest(),)
    assert refused.to_draw, "it is charged, and names none"
    assert reserve(store, "c").unproved == ()
    assert [entry.certificate for entry in store.log(9)] == [DIGEST, None, DIGEST]


def test_the_bound_counts_what_others_put_and_not_what_is_sealed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_room(store: LedgerStore, number: int) -> bool:
        return not reserve(store, f"m{number}", b"%03d" % number).unproved

    monkeypatch.setattr(certificates, "MOST_BYTES", 12)
    first, second = place.open(), place.open()
    for number, store in enumerate((first, first, second, first)):
        assert has_room(store, number)
    for number, store in enumerate((first, second), 4):
        assert not has_room(store, number)
    assert first.rotate() is not None
    for number, store in enumerate((first, second, first, second), 6):
        assert has_room(store, number)
    assert not has_room(first, 10)
    first.close()
    second.close()


def test_one_that_is_undone_does_not_count(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reservation that fails after its certificate was put is undone with it."""
    monkeypatch.setattr(certificates, "MOST_BYTES", 2 * len(CONTENT))

    def fail(name: str) -> None:
        if name == "inserted" and is_failing:
            raise OSError

    is_failing, store = False, place.open(step=fail)
    reserve(store, "a")
    is_failing = True
    with pytest.raises(LedgerError):
        reserve(store, "b", CONTENT[::-1])
    is_failing = False
    assert reserve(store, "c", CONTENT[:1] + CONTENT[:-1]).unproved == ()
    store.close()


def test_the_certificates_are_not_added_up_anew_for_each(place: Place) -> None:
    if not place.is_sqlite:
        pytest.skip("another engine does not tell that nobody else has changed the ledger")
    store = place.open()
    reserve(store, "a")
    asked: list[str] = []
    assert isinstance(store._ledger, SqliteLedger)
    store._ledger._db.set_trace_callback(asked.append)
    reserve(store, "b", CONTENT[::-1])
    assert any("INSERT INTO certificate" in one for one in asked)
    assert not any("SUM(size)" in one for one in asked)
    store.close()
