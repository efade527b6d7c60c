from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from dpsql.budget import SqliteStore, State
from dpsql.budget.entry import EpochStart, record_text
from dpsql.budget.journal import Journal, _line, create_journal
from dpsql.errors import LedgerError

from .samples import CAPS, buy, claim, open_store, vector


def _no_step(name: str) -> None:
    pass


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "x.log"
    create_journal(path, "[0]")
    return path


def _texts(log: Path) -> list[str]:
    journal = Journal(log)
    journal.mend()
    texts = [text for _, text in journal.records(0)]
    journal.close()
    return texts


def test_what_is_appended_is_read_back(log: Path) -> None:
    journal = Journal(log)
    assert journal.append(["[1]", "[2]"], _no_step) == log.stat().st_size
    journal.close()
    assert _texts(log) == ["[0]", "[1]", "[2]"]
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_last_line_torn_at_any_byte_is_kept_and_passed_over(log: Path) -> None:
    before = log.stat().st_size
    journal = Journal(log)
    journal.append(['{"some":"record"}'], _no_step)
    journal.close()
    whole = log.read_bytes()
    for length in range(before, len(whole) + 1):
        log.write_bytes(whole[:length])
        complete = length >= len(whole) - 1
        for _ in range(2):
            assert _texts(log) == (["[0]", '{"some":"record"}'] if complete else ["[0]"])
        assert log.read_bytes().startswith(whole[:length])


def test_a_mark_that_is_torn_itself_is_mended_too(log: Path) -> None:
    sound = log.read_bytes()
    log.write_bytes(sound + b'{"sha256":"12')
    assert _texts(log) == ["[0]"]
    marked = log.read_bytes()
    for length in range(len(sound) + 1, len(marked)):
        log.write_bytes(marked[:length])
        assert _texts(log) == ["[0]"]


def test_any_changed_bit_in_a_whole_line_is_found(log: Path) -> None:
    journal = Journal(log)
    journal.append(["[1]"], _no_step)
    journal.close()
    whole = log.read_bytes()
    for at in range(len(whole) - 1):
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(LedgerError):
            _texts(log)


def test_a_long_last_line_is_seen_whole(log: Path) -> None:
    journal = Journal(log)
    journal.append(['"' + "x" * 100_000 + '"'], _no_step)
    journal.close()
    with open(log, "rb+") as file:
        file.truncate(log.stat().st_size - 1)
    assert len(_texts(log)) == 2


# The log and the ledger together.


def _used_ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    store = open_store(path)
    buy(store, "a", delta=7)
    store.grant(None, 5, "owner")
    store.reserve(claim(vector("b")))
    store.close()
    return path


def test_a_missing_ledger_is_rebuilt_as_spent(tmp_path: Path) -> None:
    path = _used_ledger(tmp_path)
    before = open_store(path)
    spent, rho, secret = before.spent(), before.status().rho_spent_atto, before.secret()
    before.close()
    for left in tmp_path.glob("ledger.db*"):
        if left.name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
            left.unlink()
    after = open_store(path, create=False)
    assert (after.spent(), after.status().rho_spent_atto) == (spent, rho)
    assert {entry.state for entry in after.log(10)} == {State.FAILED}
    assert after.secret() != secret
    assert after.status().epsilon_cap_nano == 10**10, "a replayed grant is void"
    buy(after, "a")
    after.close()
    open_store(path).close()


def test_an_older_ledger_is_brought_up_to_the_log(tmp_path: Path) -> None:
    path = _used_ledger(tmp_path)
    shutil.copy(path, tmp_path / "backup")
    store = open_store(path)
    buy(store, "c", delta=3)
    spent = store.spent()
    store.close()
    shutil.copy(tmp_path / "backup", path)
    store = open_store(path)
    assert store.spent() == spent
    assert store.reserve(claim(vector("c"))).found == (None,)
    store.close()


@pytest.mark.parametrize("damage", ["missing", "empty", "shortened", "line dropped", "older", "another's"])
def test_a_log_that_lacks_something_stops_everything(tmp_path: Path, damage: str) -> None:
    path = _used_ledger(tmp_path)
    log = tmp_path / "ledger.db.log"
    lines = log.read_bytes().splitlines(keepends=True)
    match damage:
        case "missing":
            log.unlink()
        case "empty":
            log.write_bytes(b"")
        case "shortened":
            log.write_bytes(b"".join(lines)[:-5])
        case "line dropped":
            log.write_bytes(b"".join(lines[:1] + lines[2:]))
        case "older":
            log.write_bytes(b"".join(lines[:-1]))
        case _:
            other = open_store(tmp_path / "other.db")
            for name in "stuvwxyz":
                buy(other, name)
            other.close()
            shutil.copy(tmp_path / "other.db.log", log)
    with pytest.raises(LedgerError) as caught:
        open_store(path)
    assert caught.value.hint
    assert caught.value.sqlstate == "F0V02"


def test_a_ledger_is_bound_to_its_dataset(tmp_path: Path) -> None:
    path = _used_ledger(tmp_path)
    with pytest.raises(LedgerError, match="another dataset"):
        SqliteStore.open(path, "hospital", CAPS, True)
    for left in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (tmp_path / left).unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="another dataset"):
        SqliteStore.open(path, "hospital", CAPS, True)
    store = open_store(path, create=False)
    assert store.spent().delta_atto == 7
    store.close()


@pytest.mark.parametrize("content", [b"", b'{"sha256":"torn'])
def test_a_log_without_its_first_record_is_no_new_ledger(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger.db.log").write_bytes(content)
    for _ in range(2):
        with pytest.raises(LedgerError, match="do not agree"):
            open_store(tmp_path / "ledger.db")


def test_spent_sums_that_were_edited_are_found(tmp_path: Path) -> None:
    path = _used_ledger(tmp_path)
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE spent SET epsilon_nano = '0'")
    database.close()
    with pytest.raises(LedgerError, match="do not agree"):
        open_store(path)


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE record SET body = replace(body, 'SELECT 1', 'SELECT 2') WHERE kind = 'entry'",
        "INSERT INTO record SELECT seq + 9, kind, state, NULL, body FROM record WHERE kind = 'grant'",
        "DELETE FROM record WHERE kind = 'grant'",
    ],
)
def test_a_record_that_is_not_the_logs_is_found(tmp_path: Path, forgery: str) -> None:
    path = _used_ledger(tmp_path)
    database = sqlite3.connect(path)
    with database:
        database.execute(forgery)
    database.close()
    with pytest.raises(LedgerError, match="do not agree"):
        open_store(path)


def test_a_log_that_shrinks_while_in_use_stops_the_server(tmp_path: Path) -> None:
    store = open_store(_used_ledger(tmp_path))
    log = tmp_path / "ledger.db.log"
    os.truncate(log, log.stat().st_size - 1)
    for _ in range(2):
        with pytest.raises(LedgerError, match="do not agree"):
            store.reserve(claim(vector("c")))
    store.close()


def test_a_foreign_line_appended_while_in_use_stops_the_server(tmp_path: Path) -> None:
    store = open_store(_used_ledger(tmp_path))
    with open(tmp_path / "ledger.db.log", "ab") as file:
        file.write(_line(record_text(EpochStart(99, "", 7))))
    with pytest.raises(LedgerError, match="do not agree"):
        store.reserve(claim(vector("c")))
    store.close()


def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"not a database, certainly not" * 100)
    with pytest.raises(LedgerError, match="log"):
        open_store(tmp_path / "ledger.db")
    (tmp_path / "sub").mkdir()
    path = _used_ledger(tmp_path / "sub")
    path.write_bytes(b"not a database, certainly not" * 100)
    with pytest.raises(LedgerError, match="cannot be read"):
        open_store(path)
    path.unlink()
    database = sqlite3.connect(path)
    with database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    with pytest.raises(LedgerError, match="no ledger of this version"):
        open_store(path)


def test_nothing_is_made_unless_asked(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        open_store(tmp_path / "ledger.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_ledger_is_the_same_ledger(tmp_path: Path) -> None:
    path = _used_ledger(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    os.symlink(path, tmp_path / "elsewhere" / "link.db")
    store = open_store(tmp_path / "elsewhere" / "link.db", create=False)
    assert store.spent().delta_atto == 7
    store.close()


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    old = os.umask(0)
    try:
        store = open_store(path)
        buy(store, "a")
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(old)
    assert modes.pop("ledger.db.holders") == 0o700
    assert set(modes.values()) == {0o600}
    assert {"ledger.db", "ledger.db-wal", "ledger.db.log"} <= set(modes)


def test_a_ledger_replaced_while_in_use_stops_the_server(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    store = open_store(path)
    log = tmp_path / "ledger.db.log"
    log.rename(tmp_path / "rotated")
    shutil.copy(tmp_path / "rotated", log)
    with pytest.raises(LedgerError, match="replaced"):
        store.reserve(claim(vector("a")))
    store.close()
