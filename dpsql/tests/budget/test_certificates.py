"""Certificates: stored once under their digest, named by entries, never handed out damaged."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from dpsql.budget import LedgerStore, certificates
from dpsql.budget.sqlite_ledger import SqliteLedger
from dpsql.errors import LedgerError

from .samples import Place, claim, draw, measurement

CONTENT = b'{"proof": 1}'
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def test_a_certificate_is_stored_once_and_named_by_entries(place: Place) -> None:
    store = place.open()
    assert store.certificate(DIGEST) is None
    store.put_certificate(DIGEST, CONTENT)
    store.put_certificate(DIGEST, CONTENT)
    assert store.certificate(DIGEST) == CONTENT
    for name in "ab":
        reservation = store.reserve(claim(replace(measurement(name), certificate=DIGEST)))
        store.commit(reservation, [draw(name)])
    store.close()
    store = place.open(create=False)
    assert [entry.certificate for entry in store.log(9)] == [DIGEST, DIGEST]
    assert store.certificate(DIGEST) == CONTENT
    with store._ledger.read() as db:
        assert db.execute("SELECT COUNT(*) FROM certificate").fetchone() == (1,)
    store.close()
    assert f'"certificate":"{DIGEST}"' in place.log.read_text()


def test_an_entry_names_no_certificate_that_is_not_there(store: LedgerStore) -> None:
    with pytest.raises(LedgerError, match="certificate is not in the ledger"):
        store.reserve(claim(replace(measurement("a"), certificate=DIGEST)))
    assert store.spent().epsilon_nano == 0


@pytest.mark.parametrize("digest", ["", "0" * 64, DIGEST.upper(), DIGEST + "\n"])
def test_a_certificate_goes_by_its_own_digest(store: LedgerStore, digest: str) -> None:
    with pytest.raises(ValueError, match="sha256"):
        store.put_certificate(digest, CONTENT)
    if digest != "0" * 64:
        with pytest.raises(ValueError, match="sha256"):
            replace(measurement("a"), certificate=digest)


def test_a_damaged_certificate_is_not_handed_out(place: Place) -> None:
    store = place.open()
    store.put_certificate(DIGEST, CONTENT)
    place.edit("UPDATE certificate SET content = " + ("X'00'" if place.is_sqlite else "decode('00', 'hex')"))
    with pytest.raises(LedgerError, match="damaged"):
        store.certificate(DIGEST)
    store.close()


def test_certificates_are_bounded(store: LedgerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    long = bytes(certificates.MOST_BYTES_OF_ONE + 1)
    with pytest.raises(ValueError, match="at most"):
        store.put_certificate(hashlib.sha256(long).hexdigest(), long)
    monkeypatch.setattr(certificates, "MOST_BYTES", 2 * len(CONTENT) - 1)
    store.put_certificate(DIGEST, CONTENT)
    other = CONTENT[::-1]
    with pytest.raises(LedgerError, match="certificates fill") as caught:
        store.put_certificate(hashlib.sha256(other).hexdigest(), other)
    assert caught.value.hint
    store.put_certificate(DIGEST, CONTENT)


def test_the_bound_counts_what_others_put_and_not_what_is_sealed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(store: LedgerStore, number: int) -> None:
        content = b"%03d" % number
        store.put_certificate(hashlib.sha256(content).hexdigest(), content)

    monkeypatch.setattr(certificates, "MOST_BYTES", 12)
    first, second = place.open(), place.open()
    for number, store in enumerate((first, first, second, first)):
        put(store, number)
    for store in (first, second):
        with pytest.raises(LedgerError, match="certificates fill"):
            put(store, 4)
    assert first.rotate() is not None
    for number, store in enumerate((first, second, first, second)):
        put(store, number)
    with pytest.raises(LedgerError, match="certificates fill"):
        put(first, 4)
    first.close()
    second.close()


def test_the_certificates_are_not_added_up_anew_for_each(place: Place) -> None:
    if not place.is_sqlite:
        pytest.skip("another engine does not tell that nobody else has changed the ledger")
    store = place.open()
    store.put_certificate(DIGEST, CONTENT)
    asked: list[str] = []
    assert isinstance(store._ledger, SqliteLedger)
    store._ledger._db.set_trace_callback(asked.append)
    other = CONTENT[::-1]
    store.put_certificate(hashlib.sha256(other).hexdigest(), other)
    assert any("INSERT INTO certificate" in one for one in asked)
    assert not any("SUM(size)" in one for one in asked)
    store.close()
