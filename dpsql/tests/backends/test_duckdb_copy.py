"""A copy of a DuckDB file is asked in its place: the owner writes the file meanwhile, and nothing is half made."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql import Session
from dpsql.backends import duckdb_backend
from dpsql.backends.duckdb_backend import DuckDBCopy, make_copy, record_copy, suspend_copy
from dpsql.cli.application import program
from dpsql.errors import EngineFailure, PolicyError
from dpsql.policy import CopySource, load_policy
from dpsql.testing.injected_noise import ZeroNoise

POLICY = """
database = "duckdb:people.duckdb"
snapshot = "copy"
[privacy]
epsilon = 100
[tables.person]
unit = "id"
"""
COUNT = "SELECT COUNT(*) FROM person"
# A writer that ends without writing its log into the file, and one that keeps the file.
CRASHES = """
import duckdb, os, sys
c = duckdb.connect(sys.argv[1])
c.execute("SET wal_autocheckpoint = '1GB'; SET checkpoint_threshold = '1GB'; INSERT INTO person SELECT * FROM range(10, 15)")
os._exit(0)
"""
HOLDS = """
import duckdb, sys
c = duckdb.connect(sys.argv[1])
c.execute("INSERT INTO person SELECT * FROM range(100, 200)")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as made:
        made.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY); INSERT INTO person SELECT * FROM range(10)"
        )
    (tmp_path / "people.toml").write_text(POLICY)
    return tmp_path


@pytest.fixture
def writer(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDS, str(folder / "people.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(folder / "people.toml"), *words])


def source(folder: Path) -> CopySource:
    found = load_policy(folder / "people.toml").copied
    assert found is not None
    return found


def count(session: Session) -> int:
    session.execute("SET dpsql.reuse = off")
    (row,) = session.execute(COUNT).rows
    assert isinstance(row[0], int)
    return row[0]


def opened(folder: Path) -> Session:
    session = Session.open(folder / "people.toml")
    session._noise = ZeroNoise()
    return session


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if "copy" in path.name)


def test_an_owner_loads_while_analysts_ask(folder: Path) -> None:
    assert run(folder, "budget", "create").exit_code == 0
    with opened(folder) as session:
        assert count(session) == 10
        with duckdb.connect(str(folder / "people.duckdb")) as writing:  # dpsql holds a copy alone
            writing.execute("INSERT INTO person SELECT * FROM range(10, 30)")
            assert count(session) == 10
        old = names(folder)
        assert run(folder, "refresh").exit_code == 0
        assert count(session) == 30, "the session that is there reads the new copy"
    assert len(names(folder)) == len(old) == 2
    assert names(folder) != old, "the old copy is gone"


def test_another_program_may_hold_the_file_all_the_time(folder: Path, writer: subprocess.Popen[str]) -> None:
    result = run(folder, "budget", "create")
    assert result.exit_code == 5
    assert (
        "people.duckdb: the copy cannot be made (busy: another process has the database file open for writing)"
        in result.stderr
    )
    assert names(folder) == []
    writer.kill()
    writer.wait()
    assert run(folder, "budget", "create").exit_code == 0
    again = subprocess.Popen(
        [sys.executable, "-c", HOLDS.replace("100, 200", "300, 400"), str(folder / "people.duckdb")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with again, opened(folder) as session:
        assert again.stdout is not None
        assert again.stdout.readline() == "open\n"
        assert count(session) >= 10
        assert run(folder, "refresh").exit_code == 5
        assert count(session) >= 10, "what there was is asked on"
        again.kill()


def test_what_a_writer_left_in_its_log_is_copied(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", CRASHES, str(folder / "people.duckdb")], check=True)
    assert (folder / "people.duckdb.wal").exists()
    before = (folder / "people.duckdb").read_bytes()
    assert run(folder, "budget", "create").exit_code == 0
    assert (folder / "people.duckdb").read_bytes() == before, "the owner's own file is read alone"
    with opened(folder) as session:
        assert count(session) == 15
    assert len(names(folder)) == 2


def test_a_copy_is_whole_or_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(folder, "budget", "create")
    there = names(folder)

    def full(original: object, target: object, length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", full)
        result = run(folder, "refresh")
    assert result.exit_code == 5
    assert "people.duckdb: the copy cannot be made: No space left on device" in result.stderr
    assert names(folder) == there
    (folder / "people-copy.part").write_bytes(b"half of one, of a process that died")
    (folder / "people-copy.part.wal").write_bytes(b"and of its log")
    assert run(folder, "refresh").exit_code == 0
    assert names(folder) == there, "of the same content"


def test_between_two_copies_nothing_is_answered(folder: Path) -> None:
    run(folder, "budget", "create")
    copy = source(folder)
    with opened(folder) as session:
        assert count(session) == 10
        suspend_copy(copy)
        spent = session.budget().epsilon_spent_nano
        with pytest.raises(EngineFailure) as caught:
            session.execute(COUNT)
        assert caught.value.sqlstate == "55006"
        assert session.budget().epsilon_spent_nano == spent
        record_copy(copy, make_copy(copy))
        assert count(session) == 10


def test_a_snapshot_that_is_open_keeps_what_it_reads(folder: Path) -> None:
    run(folder, "budget", "create")
    backend, copy = DuckDBCopy(source(folder)), source(folder)
    with backend.snapshot() as first:
        with duckdb.connect(str(folder / "people.duckdb")) as writing:
            writing.execute("INSERT INTO person VALUES (77); ALTER TABLE person ADD COLUMN age INTEGER")
        record_copy(copy, make_copy(copy))
        with backend.snapshot() as second:
            assert [row for chunk in second.run(COUNT) for row in chunk] == [(11,)]
            assert [row for chunk in first.run(COUNT) for row in chunk] == [(10,)]
            assert len(second.schema().tables[0].columns) == 2
            assert len(first.schema().tables[0].columns) == 1
    backend.close_idle()


def test_without_a_copy_the_owner_is_told(folder: Path) -> None:
    run(folder, "budget", "create")
    (folder / "people-copy.json").unlink()
    with pytest.raises(PolicyError) as caught:
        Session.open(folder / "people.toml")
    assert caught.value.message == "people-copy.json: no copy of the database file has been made"
    (folder / "people-copy.json").write_text('{"copy": "../elsewhere.duckdb"}')
    with pytest.raises(PolicyError, match="is no record of a copy"):
        Session.open(folder / "people.toml")


def test_check_and_explain_tell_of_the_copy(folder: Path) -> None:
    assert "no copy of the database file has been made yet" in run(folder, "check").stdout
    assert run(folder, "explain", COUNT).exit_code == 0
    assert names(folder) == []
    run(folder, "budget", "create")
    assert "cop" not in run(folder, "check").stdout
    assert run(folder, "explain", COUNT).exit_code == 0
    with duckdb.connect(str(folder / "people.duckdb")) as writing:
        writing.execute("INSERT INTO person VALUES (77)")
    assert "the database file has changed since it was copied" in run(folder, "check").stdout
    suspend_copy(source(folder))
    result = run(folder, "check")
    assert result.exit_code == 5
    assert "the copy of the database file is not there" in result.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [('snapshot = "clone"', 'write "copy", or take it out'), ('database = "duckdb:"\nsnapshot = "copy"', "is for a DuckDB file"),
     ('database = "postgresql://a@b/c"\nsnapshot = "copy"', "is for a DuckDB file")],
)  # fmt: skip
def test_what_cannot_be_copied(folder: Path, line: str, said: str) -> None:
    text = POLICY.replace('snapshot = "copy"', "")
    text = text.replace('database = "duckdb:people.duckdb"', "") + "" if line.startswith("database") else text
    (folder / "people.toml").write_text(f"{line}\n{text}")
    with pytest.raises(PolicyError) as caught:
        load_policy(folder / "people.toml")
    assert said in caught.value.message


def test_copying_without_the_lock_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, writer: object
) -> None:
    """The mutant: a file that a writer has open is copied."""
    copy = source(folder)
    with pytest.raises(EngineFailure):
        make_copy(copy)

    class Unlocked(duckdb_backend.DuckDBBackend):
        def _open_cursor(self) -> duckdb.DuckDBPyConnection:
            return duckdb.connect()

    monkeypatch.setattr(duckdb_backend, "DuckDBBackend", Unlocked)
    assert make_copy(copy)
