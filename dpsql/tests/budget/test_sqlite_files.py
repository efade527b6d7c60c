"""What is SQLite's own: its files, and how they are written."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dpsql.budget import open_store
from dpsql.errors import LedgerError

from .samples import CAPS, Place, buy, claim, draw, measurement, proved


@pytest.fixture
def file(tmp_path: Path) -> Place:
    return Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")


def test_commits_are_synced(file: Place) -> None:
    store = file.open()
    with store._ledger.read() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    tidier = store._ledger._tidier  # type: ignore[attr-defined]
    assert tidier.execute("PRAGMA synchronous").fetchone() == (2,)
    assert tidier.execute("PRAGMA checkpoint_fullfsync").fetchone() == (1,)
    store.close()


def test_what_is_beside_the_file_goes_into_it_where_no_charge_waits(file: Place, tmp_path: Path) -> None:
    def in_file() -> int:
        """Return how many records the file has without what is beside it."""
        copy = tmp_path / "copy.db"
        copy.write_bytes((tmp_path / "ledger.db").read_bytes())
        with closing(sqlite3.connect(copy)) as db:
            if not db.execute("SELECT 1 FROM sqlite_master").fetchall():
                return 0
            return int(db.execute("SELECT COUNT(*) FROM record").fetchone()[0])

    store = file.open()
    store.tidy()
    first = in_file()
    for number in range(60):
        buy(store, f"m{number}", epsilon=1)
    assert in_file() == first, "no commit moves anything"
    store.tidy()
    assert in_file() >= first + 60
    moved = in_file()
    buy(store, "one more", epsilon=1)
    store.tidy()
    assert in_file() == moved, "a little waits"
    store.close()
    assert len(file.open().log(100)) >= 61


def test_reservations_alone_wait_for_the_sync_of_their_draws(file: Place) -> None:
    """The log has them on the disk before they are inserted: `test_an_older_ledger_is_brought_up_to_the_log`."""
    levels: list[tuple[str, int]] = []

    def step(name: str) -> None:
        levels.append((name, store._ledger._db.execute("PRAGMA synchronous").fetchone()[0]))  # type: ignore[attr-defined]

    store = file.open(step=step)
    buy(store, "a")
    inside = {name: level for name, level in levels if name.endswith("inserted")}
    assert inside == {"inserted": 1, "draws inserted": 2}
    del levels[:]
    store.grant(None, 5, "owner")
    store.advance_epoch()
    store.fail(store.reserve(claim(measurement("b"))))
    store.grant("ada", 5, "owner")
    assert [level for name, level in levels if name == "inserted"] == [2, 2, 1, 2]
    store.close()


def test_a_policys_url_opens_the_file(file: Place, tmp_path: Path) -> None:
    store = open_store(file.url, "campus", CAPS, create=True, log=tmp_path / "unused.log")
    buy(store, "a")
    store.close()
    assert not (tmp_path / "unused.log").exists()
    again = file.open(create=False)
    assert again.spent().epsilon_nano > 0
    again.close()


def test_a_ledger_that_has_lost_its_log_is_not_used(file: Place) -> None:
    file.open().close()
    file.log.unlink()
    with pytest.raises(LedgerError, match=r"log ledger\.db\.log is missing"):
        file.open()


def test_a_file_that_is_no_ledger_is_left_alone(file: Place) -> None:
    file.file.write_bytes(b"not a database, certainly not" * 100)
    with pytest.raises(LedgerError, match="log"):
        file.open()
    file.file.unlink()
    file.open().close()
    file.lose()
    file.file.write_bytes(b"not a database, certainly not" * 100)
    with pytest.raises(LedgerError, match="is damaged, or no ledger at all"):
        file.open()
    file.file.unlink()
    database = sqlite3.connect(file.file)
    with database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    with pytest.raises(LedgerError, match="is no ledger"):
        file.open()


def test_files_are_for_their_owner_alone(file: Place, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        store = file.open()
        buy(store, "a")
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(old)
    assert modes.pop("ledger.db.holders") == 0o700
    assert set(modes.values()) == {0o600}
    assert {"ledger.db", "ledger.db-wal", "ledger.db.log"} <= set(modes)


def test_a_backup_beside_a_newer_log_forgets_nothing(file: Place, tmp_path: Path) -> None:
    """Taken while the ledger is in use; a torn last line of the log is not in it."""
    folder = tmp_path / "copy"
    folder.mkdir()
    store = file.open()
    buy(store, "a")
    with file.log.open("ab") as log:
        log.write(b"torn")
    copies = store.back_up(folder)
    assert [path.name for path in copies] == ["ledger.db", "ledger.db.log"]
    assert {path.stat().st_mode & 0o777 for path in copies} == {0o600}
    assert not (folder / "ledger.db.log").read_bytes().endswith(b"torn")
    before = store.spent()
    buy(store, "b")
    after = store.spent()
    store.close()
    copied = Place(f"sqlite:{folder / 'ledger.db'}", folder / "ledger.db.log").open(create=False)
    assert copied.spent() == before
    copied.close()
    file.file.write_bytes((folder / "ledger.db").read_bytes())
    for rest in ("-wal", "-shm"):
        file.file.with_name(file.file.name + rest).unlink(missing_ok=True)
    restored = file.open(create=False)
    assert restored.spent() == after != before
    restored.close()


@pytest.mark.parametrize("is_there", [True, False], ids=["a log of ours", "another file"])
def test_a_log_that_is_a_link_is_refused_untouched(file: Place, tmp_path: Path, is_there: bool) -> None:
    if is_there:
        file.open().close()
        file.log.rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").write_text("somebody's")
    target = tmp_path / "elsewhere"
    target.chmod(0o644)
    content = target.read_bytes()
    file.log.symlink_to(target)
    with pytest.raises(LedgerError, match="is no file, but a link or something else"):
        file.open()
    assert target.read_bytes() == content
    assert target.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db.log"])
def test_what_is_no_file_is_refused_untouched(file: Place, tmp_path: Path, name: str) -> None:
    file.open().close()
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name, 0o640)
    os.chmod(tmp_path / name, 0o640)
    with pytest.raises(LedgerError, match="is no file, but a link or something else"):
        file.open()
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("damage", ["left behind", "empty", "cut", "its middle", "its head"])
def test_what_a_lost_wal_took_is_told(file: Place, tmp_path: Path, damage: str) -> None:
    """A copy of the files while they are in use, as after the power failed; what is not in the WAL is in the log. Each
    answer that is left has its certificate.
    """
    store = file.open()
    for number in range(9):
        reservation = store.reserve(claim(proved(measurement(f"m{number}", epsilon=1))))
        store.commit(reservation, [draw(f"m{number}")])
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in ("ledger.db", "ledger.db-wal", "ledger.db.log"):
        (folder / name).write_bytes((tmp_path / name).read_bytes())
    store.close()
    wal = folder / "ledger.db-wal"
    content = wal.read_bytes()
    match damage:
        case "left behind":
            wal.unlink()
        case "empty":
            wal.write_bytes(b"")
        case "cut":
            wal.write_bytes(content[: len(content) // 2])
        case "its middle":
            wal.write_bytes(content[: len(content) // 2] + b"damage" + content[len(content) // 2 + 6 :])
        case _:
            wal.write_bytes(b"damage" + content[6:])
    copy = Place(f"sqlite:{folder / 'ledger.db'}", folder / "ledger.db.log")
    opened = copy.open(create=False)
    assert opened.spent().epsilon_nano == 9
    found = opened.verify()
    stored = found.answers
    assert stored < 9
    assert found.certificates == 0
    assert f"{9 - stored} stored answer" in opened.lost
    assert "stays spent" in opened.lost
    opened.close()
    again = copy.open(create=False)
    assert again.lost == ""
    again.close()
