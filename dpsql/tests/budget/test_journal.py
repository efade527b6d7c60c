from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from dpsql.budget.journal import Journal, create_journal
from dpsql.errors import LedgerError


def _no_step(name: str) -> None:
    pass


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "x.log"
    create_journal(path, "[0]")
    return path


def _texts(log: Path) -> list[str]:
    with closing(Journal(log)) as journal:
        journal.mend()
        return [text for _, text in journal.records(0)]


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


def test_one_at_a_time_has_the_log(log: Path) -> None:
    one, other = Journal(log), Journal(log)
    with one.held(0), pytest.raises(LedgerError, match="busy"), other.held(0.01):
        pass
    with other.held(0):
        pass
    one.close()
    other.close()
