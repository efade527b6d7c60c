"""The owner's log of refusals: what it keeps, of whom, how much, and what it never holds."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.cli.demo import make_folder
from dpsql.engine.dataset import Dataset
from dpsql.engine.refusals import SLOT_BYTES, SLOTS, shape_of
from dpsql.engine.session import Session
from dpsql.errors import DpsqlError, Refusal
from dpsql.policy import load_policy

SECRET = "chandler-7351"
REFUSED = f"SELECT name, gpa FROM student WHERE gpa > 3.75 AND name = '{SECRET}' /* {SECRET} */"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("refusals") / "demo"
    make_folder(place, fresh=False)
    policy = place / "campus.toml"
    policy.write_text(
        policy.read_text().replace("[analysts.analyst]\nepsilon  = 5 ", "[analysts.analyst]\nepsilon  = 0.1 ")
    )
    return place


@contextmanager
def opened(folder: Path, keeps: str, analyst: str) -> Iterator[Session]:
    policy = load_policy(folder / "campus.toml")
    policy = replace(policy, server=replace(policy.server, refusals=keeps))
    dataset = Dataset.open(policy)
    session = Session(dataset, analyst, is_shared=True)
    try:
        yield session
    finally:
        session.close()
        dataset.close()


def refuse(session: Session, sql: str) -> None:
    with suppress(DpsqlError):
        session.execute(sql)


def files(session: Session) -> list[bytes]:
    return [path.read_bytes() for path in session.dataset.refusals.folder.iterdir()]


@pytest.mark.parametrize(
    ("keeps", "statement"),
    [
        ("codes", ""),
        ("shapes", "SELECT name, gpa FROM student WHERE gpa > ? AND name = ?"),
        ("texts", " ".join(REFUSED.split())),
    ],
)
def test_what_is_kept_of_a_statement_is_what_the_policy_says(
    folder: Path, keeps: str, statement: str
) -> None:
    with opened(folder, keeps, f"of-{keeps}") as session:
        refuse(session, REFUSED)
        (found,) = [one for one in session.dataset.refusals.read() if one.analyst == f"of-{keeps}"]
        assert (found.code, found.statement) == ("PV002", statement)
        assert not found.is_of_budget
        own = [one for one in files(session) if f'"of-{keeps}"'.encode() in one]
        assert (SECRET.encode() in b"".join(own)) == (keeps == "texts")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELEC '{SECRET}'",
        f"SELECT '{SECRET}",
        f"SET dpsql.epsilon = '{SECRET}'",
        f"CREATE TABLE t AS SELECT '{SECRET}' AS x, nothing FROM student",
        f"INSERT INTO student VALUES ('{SECRET}')",
        f"EXPLAIN SELECT '{SECRET}', name FROM student",
    ],
)
def test_what_is_no_query_is_never_kept(folder: Path, sql: str) -> None:
    with opened(folder, "texts", "utility") as session:
        refuse(session, sql)
        assert [one for one in session.dataset.refusals.read() if one.analyst == "utility"] == []


def test_a_name_that_the_policy_does_not_know_is_no_part_of_a_shape() -> None:
    known = frozenset({"student", "gpa"})
    shown = shape_of(
        "SELECT COUNT(*), gpa FROM student s WHERE \"Chandler\" = E'x' AND chandler IN (1, $1) -- c", known
    )
    assert shown == "SELECT COUNT(*), gpa FROM student ? WHERE ? = ? AND ? IN (?, $?)"


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("WITH chandler(gpa) AS (SELECT 1) SELECT SUM(gpa) FROM student", "WITH ?(gpa) AS (SELECT ?) SELECT SUM(gpa) FROM student"),
        ("SELECT chandler (gpa), upper(gpa), pg_chandler(1) FROM student", "SELECT ? (gpa), upper(gpa), ?(?) FROM student"),
        ("SELECT s.gpa FROM student AS chandler(gpa)", "SELECT ?.gpa FROM student AS ?(gpa)"),
        ("SELECT jsonb_path_query(gpa) FROM student", "SELECT jsonb_path_query(gpa) FROM student"),
    ],
)  # fmt: skip
def test_a_name_before_a_parenthesis_is_kept_where_it_is_a_function_of_all(sql: str, shown: str) -> None:
    assert shape_of(sql, frozenset({"student", "gpa"})) == shown


@pytest.mark.parametrize(
    "head",
    [b"[" * SLOT_BYTES, b'{"next": Infinity}', b'{"next": "' + b"9" * 900 + b'"}', b"", b"\xff" * 9000],
)
def test_a_damaged_file_is_begun_anew(folder: Path, head: bytes) -> None:
    with opened(folder, "codes", "damaged") as session:
        refuse(session, REFUSED)
        log = session.dataset.refusals
        path = next(path for path in log.folder.iterdir() if b'"damaged"' in path.read_bytes())
        path.write_bytes(head)
        refuse(session, REFUSED)
        assert [one.code for one in log.read() if one.analyst == "damaged"] == ["PV002"]
        path.unlink()


def test_nobody_waits_for_the_log(folder: Path) -> None:
    with opened(folder, "codes", "waiting") as session:
        refuse(session, REFUSED)
        log = session.dataset.refusals
        path = next(path for path in log.folder.iterdir() if b'"waiting"' in path.read_bytes())
        with path.open("r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            start = time.monotonic()
            refuse(session, REFUSED)
            assert time.monotonic() - start < 5
        assert len([one for one in log.read() if one.analyst == "waiting"]) == 1


def test_a_file_that_others_may_read_is_not_written(folder: Path) -> None:
    with opened(folder, "texts", "planted") as session:
        refuse(session, REFUSED)
        log = session.dataset.refusals
        path = next(path for path in log.folder.iterdir() if b'"planted"' in path.read_bytes())
        path.write_bytes(b"")
        path.chmod(0o644)
        refuse(session, REFUSED)
        assert path.read_bytes() == b""
        path.unlink()


def test_a_spent_budget_is_kept_as_one(folder: Path) -> None:
    with opened(folder, "shapes", "analyst") as session:
        session.execute("SELECT COUNT(*) FROM student")
        refuse(session, "SELECT SUM(gpa) FROM student")
        (found,) = [one for one in session.dataset.refusals.read() if one.analyst == "analyst"]
        assert found.is_of_budget
        assert found.statement == "SELECT SUM(gpa) FROM student"


def test_describing_is_kept_and_asking_a_price_is_not(folder: Path) -> None:
    with opened(folder, "codes", "describing") as session:
        for call in (session.describe, session.explain):
            with pytest.raises(Refusal):
                call("SELECT name FROM student")
        assert len([one for one in session.dataset.refusals.read() if one.analyst == "describing"]) == 1


def test_a_file_has_one_size_and_nobody_pushes_out_anothers(folder: Path) -> None:
    with opened(folder, "texts", "quiet") as session:
        refuse(session, "SELECT name FROM student")
        log = session.dataset.refusals
    error = Refusal("x" * 5000 + "\U0001f600" * 500)

    def flood() -> None:
        for number in range(SLOTS):
            log.record("loud", error, f"SELECT {number} " + "\U0001f600" * 5000)

    threads = [threading.Thread(target=flood) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = log.read()
    assert len([one for one in found if one.analyst == "loud"]) == SLOTS
    assert len([one for one in found if one.analyst == "quiet"]) == 1
    assert max(path.stat().st_size for path in log.folder.iterdir()) <= SLOT_BYTES * (SLOTS + 1)


def test_a_name_of_many_bytes_leaves_room_for_what_was_refused(folder: Path) -> None:
    name = "\U0001f600" * 100
    with opened(folder, "codes", name) as session:
        for _ in range(3):
            refuse(session, "SELECT name FROM student")
        log = session.dataset.refusals
        assert len([one for one in log.read() if name.startswith(one.analyst)]) == 3


def test_it_is_its_owners_alone(folder: Path) -> None:
    with opened(folder, "codes", "mode") as session:
        refuse(session, "SELECT name FROM student")
        log = session.dataset.refusals
        assert stat.S_IMODE(log.folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in log.folder.iterdir()} == {0o600}


def test_a_log_that_cannot_be_written_or_is_damaged_harms_nothing(folder: Path) -> None:
    with opened(folder, "codes", "damaged") as session:
        refuse(session, "SELECT name FROM student")
        log = session.dataset.refusals
        for path in log.folder.iterdir():
            if b'"damaged"' in path.read_bytes():
                path.write_bytes(b"\xff" * 1500)
        assert [one for one in log.read() if one.analyst == "damaged"] == []
        refuse(session, "SELECT name FROM student")
        assert len([one for one in log.read() if one.analyst == "damaged"]) == 1
    log.folder = Path(os.devnull) / "no"
    log.record("anybody", Refusal("no"), "SELECT 1")
    assert log.read() == []


def test_the_policy_says_what_it_may_be(folder: Path) -> None:
    wrong = folder / "wrong.toml"
    wrong.write_text((folder / "campus.toml").read_text() + '\n[server]\nrefusals = "all"\n')
    result = CliRunner().invoke(program, ["-P", str(wrong), "check"])
    assert result.exit_code == 5
    assert 'write "codes", "shapes" or "texts"' in result.output
