"""A server tells a witness what its ledger has come to, and nobody waits for one."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.budget import read_notes
from dpsql.cli.application import program
from dpsql.server import database
from dpsql.server.database import Witness, append_note

from .conftest import COUNT, make_dataset, run_server


def until(is_so: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


class _Store:
    """Stands for a ledger whose notes count up: a real one is in `test_a_server_tells_its_witness`."""

    records = 0

    def note(self) -> object:
        from dpsql.budget import Note

        self.records += 1
        return Note("now", "0" * 16, self.records, "0" * 64)


def told(target: Witness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_LOOK_SECONDS", 0)
    target.look(_Store())  # type: ignore[arg-type]
    assert target._teller is not None
    target._teller.join(20)


def test_a_server_tells_its_witness(tmp_path: Path) -> None:
    policy, file = make_dataset(tmp_path), tmp_path / "elsewhere"
    with run_server(policy, "--witness", str(file)) as served:
        until(lambda: file.exists() and bool(read_notes(file.read_text().splitlines())))
        with served.connect() as connection:
            connection.execute(COUNT)
    (first, *_) = read_notes(file.read_text().splitlines())
    assert first.records >= 1
    assert file.stat().st_mode & 0o777 == 0o600
    asked = ["-P", str(policy), "budget", "verify", "--witness", str(file)]
    result = CliRunner().invoke(program, asked)
    assert result.exit_code == 0, result.output
    assert "The witness has seen the same" in result.output
    other = json.loads(file.read_text().splitlines()[0]) | {"records": 99}
    append_note(file, (json.dumps(other) + "\n").encode())
    result = CliRunner().invoke(program, asked)
    assert "both are older" in result.output
    assert result.exit_code != 0


def test_a_command_gets_the_note_without_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "$(touch x)"
    command = (sys.executable, "-c", "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())", str(file))
    target = Witness(None, shlex.split(shlex.join(command)), "campus")
    told(target, monkeypatch)
    assert json.loads(file.read_text())["records"] == target.records == 1
    assert target.failures == 0


@pytest.mark.parametrize("what", ["missing folder", "link", "pipe", "no program", "exit code", "too long"])
def test_a_witness_that_fails_is_counted_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    file, command = None, ()
    match what:
        case "missing folder":
            file = tmp_path / "none" / "file"
        case "link":
            file = tmp_path / "link"
            file.symlink_to(tmp_path / "target")
        case "pipe":
            import os

            file = tmp_path / "pipe"
            os.mkfifo(file)
        case "no program":
            command = (str(tmp_path / "none"),)
        case "exit code":
            command = (sys.executable, "-c", "raise SystemExit(3)")
        case _:
            monkeypatch.setattr(database, "_LONGEST_SECONDS", 0.2)
            command = (sys.executable, "-c", "import time; time.sleep(60)")
    target = Witness(file, command, "campus")
    told(target, monkeypatch)
    assert (target.failures, target.records) == (1, 0)
    assert '"event": "witness failed"' in capsys.readouterr().err
    assert not (tmp_path / "target").exists()


def test_one_that_hangs_is_told_of_once_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    gate = threading.Event()
    monkeypatch.setattr(database, "append_note", lambda *_: gate.wait(20))
    monkeypatch.setattr(database, "_LONGEST_SECONDS", 0.0)
    target = Witness(Path("never"), (), "campus")
    for _ in range(5):
        target.look(_Store())  # type: ignore[arg-type]
    assert target.failures == 1
    gate.set()


def test_a_line_that_was_cut_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    append_note(file, b"one\n")
    with file.open("ab") as text:
        text.write(b"tor")
    append_note(file, b"two\n")
    assert file.read_bytes() == b"one\ntor\ntwo\n"
