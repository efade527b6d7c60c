"""What the case files must cover: every code an analyst can meet, every corpus query, every regression."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.errors import CODES
from dpsql.testing.case_file import Accepted, Case, Refused

HERE = Path(__file__).parent

# Codes that no statement's text brings about, and where they are tested.
_ELSEWHERE = {
    **dict.fromkeys(
        ("23502", "2BP01", "3F000", "40001", "42501", "42701", "42809", "42P06", "42P07", "53100"),
        "own tables: dpsql/tests/engine/test_workspace.py, dpsql/tests/postprocess/test_workspace.py",
    ),
    "22P04": "a row that is copied in: dpsql/tests/server/test_workspace.py, dpsql/tests/pgwire/test_read_copy.py",
    "53200": "answers that together take too much memory: dpsql/tests/server/test_memory.py",
    "54000": "a large query of the system catalog: dpsql/tests/system_catalog",
    "55006": "a file that another program has open: dpsql/tests/backends, dpsql/tests/server",
    "57014": "a cancelled statement: dpsql/tests/backends, dpsql/tests/engine",
    "57V01": "post-processing that takes too long: dpsql/tests/engine",
    "58V01": "a database that fails: dpsql/tests/backends, dpsql/tests/engine",
    "F0V01": "the owner's policy file: dpsql/tests/policy",
    "F0V02": "the owner's ledger: dpsql/tests/budget",
    "P0002": "an answer without a group, where that is to be an error: dpsql/tests/engine/test_answer_values.py",
    "PV104": "periods that are not over, whose dates move on: dpsql/tests/engine/test_by_periods.py",
    "XX000": "a plan that is not verified: dpsql/tests/release/test_verifying.py",
}


@pytest.mark.parametrize("code", sorted(set(CODES) - set(_ELSEWHERE)))
def test_every_code_has_a_case(code: str, every_case: list[Case]) -> None:
    assert any(isinstance(case.expected, Refused) and case.expected.code == code for case in every_case)


@pytest.mark.parametrize("path", sorted((HERE / "corpus").glob("*.sql")), ids=lambda path: path.stem)
def test_every_corpus_query_is_a_case(path: Path, every_case: list[Case]) -> None:
    """The statement as it is."""
    comment, _, sql = path.read_text(encoding="utf-8").rstrip("\n").partition("\n")
    assert comment.startswith("--")
    wanted = path.stem.replace("_", "-")
    (case,) = (case for case in every_case if case.path.parent.name == "corpus" and case.name == wanted)
    assert case.sql == sql


# The regressions a to q of soundness.md 4.8; n, two sessions that race for the last epsilon, is
# dpsql/tests/budget/test_race.py.
@pytest.mark.parametrize("letter", "abcdefghijklmopq")
def test_every_regression_of_peers_is_a_case(letter: str, every_case: list[Case]) -> None:
    assert any(case.name.startswith(f"peers-{letter}-") for case in every_case)


def test_accepted_cases_are_many_and_compared(every_case: list[Case]) -> None:
    accepted = [case for case in every_case if isinstance(case.expected, Accepted)]
    assert len(accepted) >= 500
    assert sum(case.is_compared for case in accepted) >= 0.9 * len(accepted)


def test_every_claim_is_written_out(every_case: list[Case]) -> None:
    for case in every_case:
        if isinstance(case.expected, Accepted):
            assert case.expected.charge is not None, str(case)
            assert all(release.groups for release in case.expected.releases), str(case)
