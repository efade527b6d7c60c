"""`dpsql verify`: what was charged is verified again, and what does not hold is told."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from dpsql.verify.certificate import Certificate, digest, dumps, loads

from .conftest import Run

COUNT = "SELECT COUNT(*) FROM student WHERE gpa > 3"
LOANS = "SELECT branch, COUNT(*) FROM loan GROUP BY branch"


@pytest.fixture
def asked(run: Run) -> Run:
    for sql in (COUNT, LOANS, COUNT):
        assert run("query", sql).exit_code == 0
    return run


def stored(campus: Path) -> dict[str, Certificate]:
    """The certificates in the ledger, by their digests."""
    with sqlite3.connect(campus.parent / "campus-ledger.db") as ledger:
        rows = ledger.execute("SELECT digest, content FROM certificate").fetchall()
    return {name: loads(Certificate, bytes(content).decode()) for name, content in rows}


def replace_one(campus: Path, name: str, other: Certificate) -> None:
    """Have the ledger give another text for a certificate."""
    with sqlite3.connect(campus.parent / "campus-ledger.db") as ledger:
        ledger.execute("UPDATE certificate SET content = ? WHERE digest = ?", (dumps(other).encode(), name))


def test_each_charge_is_proved_a_line_a_measurement(asked: Run) -> None:
    shown = asked("verify")
    assert shown.exit_code == 0
    assert (
        f"  {COUNT}\n  m0_0: plain; R 1, reach 1, S 1; laplace, loss 0.1\n  together: epsilon 0.1\n"
        in shown.output
    )
    assert f"  {LOANS}\n  m0_0: E2; R 60, reach 1048576, S 62914560; laplace, loss 0.1\n" in shown.output
    assert "SELECT CAST" not in shown.output
    assert ": all" not in shown.output
    with_sql = asked("verify", "--explain")
    assert "    SELECT CAST(COUNT(*) AS BIGINT) AS m0_0 FROM " in with_sql.output
    assert "      main.loan: owner student_id; unique id; not null id, student_id" in with_sql.output


def test_as_json(asked: Run) -> None:
    found = [json.loads(line) for line in asked("verify", "--json", "-n", "2").output.splitlines()]
    assert [len(one["entries"]) for one in found] == [1, 1]
    assert found[-1]["problem"] is None
    assert found[0]["lines"][-1] == "together: epsilon 0.1"


def test_a_certificate_in_a_file(asked: Run, campus: Path, tmp_path: Path) -> None:
    for name, certificate in stored(campus).items():
        assert digest(certificate) == name
        file = tmp_path / "one.json"
        file.write_text(dumps(certificate))
        shown = asked("verify", str(file))
        assert (shown.exit_code, shown.output.splitlines()[-1][:9]) in ((0, "together:"), (3, "not prove"))
    file.write_text("{}")
    wrong = asked("verify", str(file))
    assert wrong.exit_code == 5
    assert "F0V01: one.json: is no certificate" in wrong.output


def test_a_ledger_without_its_policy(asked: Run, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    assert asked("budget", "backup", str(copied)).exit_code == 0
    shown = asked("verify", str(copied / "campus-ledger.db"), policy=tmp_path / "no policy.toml")
    assert (shown.exit_code, shown.output) == (0, asked("verify").output)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE t (i INTEGER)")
    wrong = asked("verify", str(other))
    assert wrong.exit_code == 7
    assert "F0V02: other.db is no ledger" in wrong.output


def test_one_that_does_not_hold_is_told(asked: Run, campus: Path, tmp_path: Path) -> None:
    """A claim of half the sensitivity, in a file: its digest does not protect it there."""
    certificate = next(one for one in stored(campus).values() if "main.loan" in one.facts.tables)
    file = tmp_path / "half.json"
    file.write_text(dumps(certificate).replace('"scale":"629145600"', '"scale":"314572800"'))
    assert file.read_text() != dumps(certificate)
    shown = asked("verify", str(file))
    assert shown.exit_code == 3
    assert shown.output.startswith("not proved: laws: ")


def test_what_is_missing_damaged_or_of_another_charge_is_reported(asked: Run, campus: Path) -> None:
    certificates = stored(campus)
    loan = next(name for name, one in certificates.items() if "main.loan" in one.facts.tables)
    (count,) = certificates.keys() - {loan}
    replace_one(campus, loan, certificates[count])
    shown = asked("verify")
    assert shown.exit_code == 3
    assert f"{LOANS}\n  its certificate is damaged\n" in shown.output
    for content in ("a text", 10**12):
        with sqlite3.connect(campus.parent / "campus-ledger.db") as ledger:
            ledger.execute("UPDATE certificate SET content = ? WHERE digest = ?", (content, loan))
        assert f"{LOANS}\n  its certificate is damaged\n" in asked("verify").output
    with sqlite3.connect(campus.parent / "campus-ledger.db") as ledger:
        ledger.execute("DELETE FROM certificate WHERE digest = ?", (loan,))
    shown = asked("verify")
    assert shown.exit_code == 3
    assert f"{LOANS}\n  its certificate is missing\n" in shown.output


def test_what_was_cut_off_is_not_proved_and_nothing_is_wrong(asked: Run, campus: Path) -> None:
    """A charge that the log alone has: no answer of it is stored, nor its certificate."""
    ledger = campus.parent / "campus-ledger.db"
    with sqlite3.connect(ledger) as database:
        database.execute("UPDATE record SET state = 'failed' WHERE seq = (SELECT MAX(seq) FROM record)")
        database.execute("DELETE FROM certificate WHERE rowid = (SELECT MAX(rowid) FROM certificate)")
    shown = asked("verify")
    assert shown.exit_code == 0
    assert f"{LOANS}\n  its certificate is missing, as an answer is: it was cut off" in shown.output
    assert shown.output.endswith(
        "2 charges with 2 certificates: 1 are proved, 1 not (1 without an answer here)\n"
    )
    with sqlite3.connect(ledger) as database:
        database.execute("UPDATE record SET state = 'committed' WHERE state = 'failed'")
    assert asked("verify").exit_code == 3


def test_explain_verify_says_the_same_before_and_is_free(run: Run) -> None:
    before = run("budget", "show").output
    shown = run("query", f"EXPLAIN (VERIFY) {LOANS}")
    assert "m0_0: E2; R 60, reach 1048576, S 62914560; laplace, loss 0.1" in shown.output
    assert "together: epsilon 0.1" in shown.output
    assert run("budget", "show").output == before
