"""A log of several files: sealed at a length, held together by the chain, looked at as one; killed at every step."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.budget import EntryState, ledger
from dpsql.budget.journal import Journal, sealed_path
from dpsql.errors import LedgerError
from dpsql.tests.support.length import long_where

from .conftest import Kept
from .samples import Place, buy, claim, draw, measurement, proved
from .test_crash import _die as die

STEPS = [
    "before segment",
    "segment written",
    "segment linked",
    "segment begun",
    "segment inserted",
    "segment committed",
]


@pytest.fixture
def place(place: Place, divided: Kept) -> Place:
    """Give each place twice: for a ledger as a whole, and for one by periods."""
    return divided(place)


def filled(place: Place, files: int = 3, each: int = 4) -> None:
    """Make a ledger whose log has so many files."""
    store = place.open()
    for file in range(files):
        for number in range(each):
            buy(store, f"{file} {number}", epsilon=1)
        if file < files - 1:
            assert store.rotate() == sealed_path(place.log, file)
    store.close()


def test_a_log_of_several_files_is_one_log(place: Place) -> None:
    filled(place)
    store = place.open()
    report = store.verify()
    assert (report.records, report.files, report.answers) == (1 + 12 + 2, 3, 12)
    assert store.spent().epsilon_nano == 12
    assert store.rotate() is not None
    assert store.rotate() is None, "there is nothing to seal"
    store.close()
    names = sorted(path.name for path in place.log.parent.glob(place.log.name + "*"))
    assert names == [place.log.name, *(f"{place.log.name}.{number:06d}" for number in range(3))]


def test_a_lost_ledger_is_rebuilt_from_all_files(place: Place) -> None:
    filled(place)
    place.lose()
    store = place.open(create=not place.is_sqlite)
    assert store.spent().epsilon_nano == 12
    assert len(store.log(99)) == 12
    store.verify()
    store.close()


def test_a_lost_ledger_is_rebuilt_as_spent_without_the_sealed_files(place: Place, tmp_path: Path) -> None:
    store = place.open()
    store.advance_epoch()
    store.close()
    filled(place)
    place.lose()
    for number in range(2):
        sealed_path(place.log, number).rename(tmp_path / f"{number}")
    for _ in range(2):
        store = place.open(create=not place.is_sqlite)
        assert store.spent().epsilon_nano == 12
        assert store.epoch == 2
        assert len(store.log(99)) == 4
        with pytest.raises(LedgerError, match="sealed file of the ledger's log is missing"):
            store.verify()
        store.close()
    store = place.open(create=False)
    buy(store, "more", epsilon=1)
    store.rotate()
    buy(store, "and more", epsilon=1)
    store.close()
    for number in range(2):
        (tmp_path / f"{number}").rename(sealed_path(place.log, number))
    store = place.open()
    assert store.spent().epsilon_nano == 14
    assert store.verify().files == 4
    store.close()


def test_sealed_files_may_be_moved_away(place: Place, tmp_path: Path) -> None:
    filled(place)
    archive = tmp_path / "archive"
    archive.mkdir()
    for number in range(2):
        shutil.move(sealed_path(place.log, number), archive)
    store = place.open()
    buy(store, "more", epsilon=1)
    with pytest.raises(LedgerError, match="missing") as caught:
        store.verify()
    assert "--archive" in str(caught.value.hint)
    assert store.verify(archive).files == 3
    store.close()


@long_where(lambda place, divided, damage: bool(place or divided) and damage not in ("missing", "edited"))
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("missing", "is missing"),
        ("swapped", "is not the file"),
        ("shortened", "is not the file"),
        ("lengthened", "is not the file"),
        ("edited", "damaged near byte"),
        ("line dropped", "is not the file"),
        ("two lines swapped", "is not the log's"),
    ],
)
def test_what_was_done_to_a_sealed_file_is_found(place: Place, damage: str, message: str) -> None:
    filled(place)
    file, other = sealed_path(place.log, 1), sealed_path(place.log, 0)
    content = file.read_bytes()
    lines = content.splitlines(keepends=True)
    match damage:
        case "missing":
            file.unlink()
        case "swapped":
            file.write_bytes(other.read_bytes())
            other.write_bytes(content)
        case "shortened":
            file.write_bytes(content[:-1])
        case "lengthened":
            file.write_bytes(content + lines[-1])
        case "edited":
            file.write_bytes(content.replace(b"SELECT 1", b"SELECT 2", 1))
        case "line dropped":
            file.write_bytes(b"".join(lines[:2] + lines[3:]))
        case _:
            file.write_bytes(b"".join([lines[0], lines[2], lines[1], *lines[3:]]))
    with pytest.raises(LedgerError, match=message), closing(place.open()) as store:
        store.verify()


def test_an_older_ledger_goes_through_the_sealed_files(place: Place) -> None:
    store = place.open()
    buy(store, "first", epsilon=1)
    store.close()
    put_back = place.backup()
    filled(place)
    put_back()
    store = place.open()
    assert store.spent().epsilon_nano == 13
    store.verify()
    store.close()
    put_back()
    sealed_path(place.log, 1).unlink()
    with pytest.raises(LedgerError, match="is missing"):
        place.open()


def test_others_follow_to_the_new_file(place: Place) -> None:
    desks = [place, place if place.is_sqlite else replace(place, log=place.log.with_name("second.log"))]
    stores = [place.open(), *(desk.open() for desk in desks), place.open()]
    for number in range(3):
        for index, store in enumerate(stores):
            buy(store, f"{number} {index}", epsilon=1)
            assert store.spent() == stores[0].spent()
            assert store.status_at_once() is None or store.status_at_once() == store.status()
        stores[number].rotate()
    assert stores[0].spent().epsilon_nano == 12
    for store in stores:
        store.verify()
        store.close()


@long_where(lambda has_peer, divided, step: (has_peer or divided) and step in STEPS[::2])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("has_peer", [False, True], ids=["alone", "with a running peer"])
def test_killed_at_any_step_of_a_rotation_nothing_is_lost(place: Place, step: str, has_peer: bool) -> None:
    store = place.open()
    for number in range(4):
        buy(store, f"m{number}", epsilon=1)
    store.close()
    peer = place.open() if has_peer else None
    die("rotate", place, step)
    if peer is not None:
        assert peer.spent().epsilon_nano == 4
        buy(peer, "beside", epsilon=1)
        peer.close()
    spent = 4 + has_peer
    for _ in range(2):
        store = place.open(create=False)
        assert store.spent().epsilon_nano == spent
        assert {entry.state for entry in store.log(9)} == {EntryState.COMMITTED}
        store.verify()
        store.close()
    store = place.open(create=False)
    buy(store, "after", epsilon=1)
    store.rotate()
    buy(store, "after that", epsilon=1)
    assert store.verify().records >= spent + 4
    store.close()


def test_the_draft_of_a_new_file_may_be_torn_anywhere(place: Place) -> None:
    store = place.open()
    buy(store, "a", epsilon=1)
    store.close()
    draft = place.log.with_name(place.log.name + ".new")
    for content in (b"", b"{", b"\0" * 100, place.log.read_bytes()):
        draft.write_bytes(content)
        store = place.open()
        buy(store, f"after {len(content)}", epsilon=1)
        assert store.rotate() is not None
        assert not draft.exists()
        store.verify()
        store.close()


def test_a_file_that_is_in_the_way_is_left_alone(place: Place) -> None:
    store = place.open()
    buy(store, "a", epsilon=1)
    sealed_path(place.log, 0).write_bytes(b"somebody's")
    with pytest.raises(LedgerError, match="is in the way"):
        store.rotate()
    assert sealed_path(place.log, 0).read_bytes() == b"somebody's"
    buy(store, "b", epsilon=1)
    sealed_path(place.log, 0).unlink()
    assert store.rotate() is not None
    store.verify()
    store.close()


def test_a_file_of_a_later_number_that_is_not_this_logs_stops_the_server(
    place: Place, tmp_path: Path
) -> None:
    other = Place(f"sqlite:{tmp_path / 'other.db'}", tmp_path / "other.db.log")
    filled(other)
    store = place.open()
    buy(store, "a", epsilon=1)
    size = place.log.stat().st_size
    os.replace(other.log, place.log)
    for _ in range(2):
        with pytest.raises(LedgerError):
            buy(store, "b", epsilon=1)
    assert place.log.stat().st_size != size
    assert "('b',)" not in place.log.read_text()
    store.close()


def test_a_log_is_sealed_when_it_is_long(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "SEGMENT_BYTES", 2_000)
    store = place.open()
    for number in range(20):
        buy(store, f"m{number}", epsilon=1)
        store.tidy()
    assert store.verify().files > 3
    store.close()
    journal = Journal(place.log)
    assert journal.file_size < 4_000
    journal.close()


def test_certificates_go_with_the_sealed_file(place: Place) -> None:
    content = b"a proof"
    digest = hashlib.sha256(content).hexdigest()
    store = place.open()
    for round_ in range(3):
        store.commit(store.reserve(claim(proved(measurement(f"m{round_}"), content))), [draw(f"m{round_}")])
        assert store.verify().certificates == 0
        store.rotate()
        assert store.certificate(digest) == content
    assert store.verify().certificates == 0
    for number in range(3):
        file = place.log.with_name(f"{place.log.name}.{number:06d}.certificates")
        file.write_bytes(file.read_bytes().replace(b"YSB", b"YSC"))
    assert store.certificate(digest) is None
    assert store.verify().certificates == 1
    store.close()


def test_a_backup_has_the_sealed_files(tmp_path: Path) -> None:
    place = Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")
    filled(place)
    folder = tmp_path / "copy"
    folder.mkdir()
    store = place.open()
    copies = store.back_up(folder)
    assert len(copies) == 4
    buy(store, "since", epsilon=1)
    store.close()
    copied = Place(f"sqlite:{folder / 'ledger.db'}", folder / "ledger.db.log").open(create=False)
    assert copied.verify().records == 15
    copied.close()


def test_a_log_that_is_lost_is_not_begun_anew_beside_its_sealed_files(place: Place) -> None:
    filled(place)
    place.lose()
    place.log.unlink()
    with pytest.raises(LedgerError, match="is missing"):
        place.open()
    assert not place.log.exists()


def test_two_that_tidy_at_once_seal_a_file_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = [place.open(), place.open()]
    for number in range(6):
        buy(stores[0], f"m{number}", epsilon=1)
    monkeypatch.setattr(ledger, "SEGMENT_BYTES", 1_000)
    rotate = ledger.Ledger.rotate

    def wait(self: ledger.Ledger, longer_than: int = 0) -> Path | None:
        monkeypatch.setattr(ledger.Ledger, "rotate", rotate)
        stores[1].tidy()  # the other one is first
        return rotate(self, longer_than)

    monkeypatch.setattr(ledger.Ledger, "rotate", wait)
    stores[0].tidy()
    assert not sealed_path(place.log, 1).exists()
    for store in stores:
        assert store.verify().files == 2
        store.close()


@pytest.mark.parametrize("call", ["link", "open", "fsync", "rename"])
def test_a_disk_that_is_full_while_a_file_is_sealed_costs_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    store = place.open()
    buy(store, "a", epsilon=1)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        if call == "rename":
            patch.setattr(Path, "rename", full)
        else:
            original = getattr(os, call)

            def sometimes(first: object, *rest: object, **named: object) -> object:
                about = os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else str(first)
                is_ours = about.endswith((".new", ".log")) and (call == "link" or about.endswith(".new"))
                return full() if is_ours else original(first, *rest, **named)

            patch.setattr(os, call, sometimes)
        with pytest.raises(LedgerError, match="no space left"):
            store.rotate()
    buy(store, "b", epsilon=1)
    assert store.spent().epsilon_nano == 2
    store.close()
    store = place.open(create=False)
    assert store.rotate() is not None
    store.verify()
    store.close()
