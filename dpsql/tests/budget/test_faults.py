"""What a ledger's files and server can do wrong, by real conditions: each is named in one sentence, with its mend."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from dpsql.budget import ZERO
from dpsql.budget.postgres_ledger import _explained
from dpsql.cli.application import program
from dpsql.cli.demo import MAIN_POLICY, make_folder
from dpsql.cli.owner import open_ledger
from dpsql.errors import LedgerError

from .samples import EPSILON, Place, buy, claim, measurement, pure

NOBODY = 65534


@pytest.fixture
def file(tmp_path: Path) -> Place:
    folder = tmp_path / "books"
    folder.mkdir()
    return Place(f"sqlite:{folder / 'ledger.db'}", folder / "ledger.db.log")


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be somebody without rights until the block ends; who is not root has none over a closed file anyway."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@contextmanager
def limited(what: int, most: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a file system of one megabyte at `folder`; skips the test where that is not allowed."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "dpsql-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs the right to")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def told(caught: pytest.ExceptionInfo[LedgerError]) -> str:
    """Return the message, of one sentence and with a hint, without the path and without another's words."""
    error = caught.value
    assert error.hint
    assert error.sqlstate == "F0V02"
    assert str(error.__cause__) not in error.message
    assert "\n" not in error.message
    assert "/" not in error.message
    return error.message


@pytest.mark.parametrize("closed", ["books", "ledger.db", "ledger.db.log", "ledger.db.holders"])
def test_a_file_or_folder_that_is_closed(closed: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own lies in a folder that is closed to others
        folder = Path(name) / "books"
        folder.mkdir()
        place = Place(f"sqlite:{folder / 'ledger.db'}", folder / "ledger.db.log")
        place.open().close()
        paths = [Path(name), folder, *folder.rglob("*")]
        for path in paths:
            path.chmod(0 if path.name == closed else 0o777 if path.is_dir() else 0o666)
        with as_nobody(), pytest.raises(LedgerError) as caught:
            place.open()
        assert told(caught) == "dpsql may not read and write the ledger ledger.db"
        for path in paths:
            path.chmod(0o700)
        place.open(create=False).close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as caught:
        Place(f"sqlite:{tmp_path / 'none' / 'ledger.db'}", tmp_path / "unused").open()
    assert told(caught) == "there is no folder for the ledger ledger.db"


def test_a_file_system_that_is_read_only(file: Place) -> None:
    folder = file.file.parent
    with small_disk(folder):
        running = file.open()
        buy(running, "a")
        running.close()
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        with pytest.raises(LedgerError) as caught:
            file.open()
        assert told(caught) == "the ledger ledger.db is on a file system that is read-only"
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        again = file.open()
        assert again.spent() == pure(EPSILON // 10)
        again.close()


def test_a_disk_that_is_full(file: Place) -> None:
    with small_disk(file.file.parent):
        store = file.open()
        filler = file.file.with_name("filler")
        with open(filler, "wb", buffering=0) as rest, suppress(OSError):
            while rest.write(bytes(4096)):
                pass
        messages = set()
        for number in range(20):
            with pytest.raises(LedgerError) as caught:
                buy(store, f"full {number}", payload=os.urandom(5000))
            messages.add(told(caught))
        assert messages == {
            "there is no space left for the ledger ledger.db: the disk is full, or a quota or a limit is reached"
        }
        filler.unlink()
        spent = store.spent().epsilon_nano
        buy(store, "room again")
        assert store.spent().epsilon_nano == spent + EPSILON // 10
        store.close()
        file.open().close()


def test_a_log_that_may_not_grow(place: Place) -> None:
    """On a server too: a machine's own log lies on its disk."""
    store = place.open()
    with limited(resource.RLIMIT_FSIZE, place.log.stat().st_size + 3), pytest.raises(LedgerError) as caught:
        store.reserve(claim(measurement("a")))
    assert told(caught).startswith("there is no space left for ")
    assert store.spent() == ZERO
    buy(store, "a")
    assert store.spent() == pure(EPSILON // 10)
    store.close()
    place.open().close()


def test_too_many_open_files(file: Place) -> None:
    file.open().close()
    taken = []
    with limited(resource.RLIMIT_NOFILE, 200):
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        try:
            with pytest.raises(LedgerError) as caught:
                file.open()
        finally:
            for fd in taken:
                os.close(fd)
    assert told(caught) == "the ledger ledger.db cannot be opened: too many files are open"


@pytest.mark.parametrize("start", [0, 20, 4096])
def test_a_file_that_is_corrupt(file: Place, start: int) -> None:
    store = file.open()
    for number in range(25):
        buy(store, f"{number}", payload=bytes(1000))
    store.close()
    content = bytearray(file.file.read_bytes())
    content[start : start + 2000] = b"\xa5" * 2000
    file.file.write_bytes(content)
    with pytest.raises(LedgerError) as caught:
        file.open()
    assert told(caught) == "the ledger ledger.db is damaged, or no ledger at all"
    file.lose()
    again = file.open()
    assert again.spent() == pure(*25 * [EPSILON // 10]), "as the hint says, it is made anew from the log"
    again.close()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (psycopg.errors.DiskFull, "there is no space left for the ledger on its server"),
        (psycopg.errors.DataCorrupted, "the ledger is damaged on its server"),
        (psycopg.errors.IndexCorrupted, "the ledger is damaged on its server"),
        (
            psycopg.errors.ReadOnlySqlTransaction,
            "the ledger's server takes no changes: it is a replica, or was made",
        ),
        (psycopg.errors.InsufficientPrivilege, "the ledger's role may not do this on its server"),
        (psycopg.errors.UndefinedTable, "the ledger cannot be read or written (SQLSTATE 42P01)"),
    ],
)
def test_what_a_server_says_is_told_by_its_code(error: type[psycopg.Error], message: str) -> None:
    found = _explained(error("Ada Lovelace"))
    assert found.message.startswith(message)
    assert found.hint
    assert "Ada" not in str(found)


def test_the_command_line_tells_the_cause(tmp_path: Path) -> None:
    make_folder(tmp_path / "demo", fresh=False)
    policy, log = tmp_path / "demo" / MAIN_POLICY, tmp_path / "demo" / "campus-ledger.db.log"
    arguments = ["-P", str(policy), "query", "SELECT COUNT(*) FROM student"]
    with open_ledger(policy) as store:
        while log.stat().st_size < 50_000:  # so that the log alone meets the limit
            store.grant("somebody with a long name" * 40, 1, "owner")
    with limited(resource.RLIMIT_FSIZE, log.stat().st_size + 3):
        result = CliRunner().invoke(program, arguments)
    assert result.exit_code == 7
    assert result.stderr.startswith("ERROR F0V02: there is no space left for the ledger campus-ledger.db: ")
    assert "HINT: make room" in result.stderr
    assert CliRunner().invoke(program, arguments).exit_code == 0
