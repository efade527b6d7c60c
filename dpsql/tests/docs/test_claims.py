"""Every claim of soundness.md names what it rests on, the code, the laws and the mutants, and all of that is there."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from dpsql.cli.docs import read_part
from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING

from .claims import NONE, TABLE, Claim, claims, laws, table
from .documents import ROOT, text

CLAIMS = claims()
NUMBERS = {claim.number for claim in CLAIMS}
LAWS = laws()

NO_CLAIM = {
    "2.1": "what goes wrong elsewhere",
    **{f"4.{number}": "attacks, which the claims answer" for number in range(1, 9)},
    **{f"5.{number}": "how the claims are tested" for number in (1, 2, 3, 4, 5, 7)},
}
"""Sections without a head, and why."""


@cache
def defined(file: str) -> frozenset[str]:
    """Return the functions and classes of a file of `dpsql/`, and the methods as `Class.method`."""
    found, inside = set(), ""
    for indent, kind, name in re.findall(
        r"^( *)(class|def|async def) (\w+)", (ROOT / "dpsql" / file).read_text("utf-8"), re.MULTILINE
    ):
        if not indent:
            inside = name if kind == "class" else ""
            found.add(name)
        elif len(indent) == 4 and inside:
            found |= {f"{inside}.{name}", name}
    return frozenset(found)


def faults(claim: Claim) -> list[str]:
    """Return what is wrong with what the head of a section names."""
    found = [premise for premise in claim.premises() - NUMBERS if premise not in {law.name for law in LAWS}]
    papers = re.findall(r"\[\w+\]", claim.source)
    found += [paper for paper in papers if paper not in read_part("soundness", "sources")]
    for field in ("code", "law", "mutants"):
        said = getattr(claim, field)
        named = claim.named(field)
        if (
            not named
            and not said.removeprefix(NONE).strip()
            and not (field == "mutants" and claim.at_the_gate())
        ):
            found.append(f"names no {field}, and does not say why")
        elif named and not said.startswith("`"):
            found.append(f"{field} is no list of files: {said}")
        if len({file for file, _ in named}) < len(named):
            found.append(f"{field} names a file twice")
        for file, names in named:
            if not (ROOT / "dpsql" / file).exists():
                found.append(file)
            elif names:
                found += [f"{file}, {name}" for name in names if name not in defined(file)]
            if file.startswith("tests/") != (field != "code"):
                found.append(f"{file} as {field}")
            if field == "mutants" and not _plants(ROOT / "dpsql" / file):
                found.append(f"{file} plants no fault")
    return found


def _plants(path: Path) -> bool:
    """Say whether a test changes the running code, or what it prints."""
    return (
        path.exists()
        and re.search(r"\bplant\b|mutant|setattr|fault", path.read_text("utf-8"), re.I) is not None
    )


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.number)
def test_what_a_claim_names_is_there(claim: Claim) -> None:
    assert claim.claim
    assert claim.rests_on
    assert not faults(claim)


@pytest.mark.parametrize(
    "change",
    [
        {"rests_on": "1.99"},
        {"source": "[NOBODY99]"},
        {"code": ""},
        {"code": "`plan/nowhere.py`"},
        {"code": "`plan/measures/measurements.py` (`sensitivity_of`)"},
        {"law": "`tests/laws/test_nothing.py`"},
        {"law": "`tests/laws/test_ranks.py`, `tests/laws/test_ranks.py`"},
        {"law": ""},
        {"mutants": "", "code": "`plan/privacy/analyze.py`"},
        {"mutants": "`tests/docs/documents.py`"},
    ],
)
def test_a_claim_that_names_what_is_not_there_is_seen(change: dict[str, str]) -> None:
    sound = next(claim for claim in CLAIMS if claim.number == "1.1")
    assert not faults(sound)
    assert faults(replace(sound, **change))


def test_nothing_rests_on_itself() -> None:
    rests = {claim.number: claim.premises() & NUMBERS for claim in CLAIMS}
    proved: set[str] = set()
    while ready := {number for number in rests if number not in proved and rests[number] <= proved}:
        proved |= ready
    assert proved == NUMBERS


def test_every_section_claims_something_or_is_named_with_the_reason() -> None:
    sections = set(re.findall(r"^#{2,3} ([0-9]+\.[0-9]+) ", text("soundness"), re.MULTILINE))
    assert sections == NUMBERS | set(NO_CLAIM)
    assert not NUMBERS & set(NO_CLAIM)


def test_sections_are_numbered_without_gaps() -> None:
    for chapter in "12345":
        below = sorted(int(number[2:]) for number in NUMBERS | set(NO_CLAIM) if number[0] == chapter)
        assert below == list(range(1, len(below) + 1))


def test_every_law_test_holds_a_claim_or_a_law() -> None:
    named = {file for claim in CLAIMS for field in ("law", "mutants") for file, _ in claim.named(field)}
    named |= {
        str(path.relative_to(ROOT / "dpsql"))
        for law in LAWS
        for pattern in law.tests
        for path in (ROOT / "dpsql").glob(pattern)
    }
    tests = {f"tests/laws/{path.name}" for path in (ROOT / "dpsql/tests/laws").glob("test_*.py")}
    assert tests <= named


@pytest.mark.parametrize(
    "path", sorted((ROOT / "dpsql/tests/laws").glob("test_*.py")), ids=lambda path: path.stem
)
def test_a_law_test_says_at_its_head_what_it_holds(path: Path) -> None:
    head = path.read_text("utf-8").split('"""')[1]
    assert re.search(r"\bL([1-9]|10)\b|\b\d\.\d+\b", head), head


def test_every_file_at_the_gate_is_the_code_of_a_claim() -> None:
    assert set(CLAIM_BEARING) <= {file for claim in CLAIMS for file, _ in claim.named("code")}


def test_the_laws_name_tests_that_are_there() -> None:
    assert all(list((ROOT / "dpsql").glob(pattern)) for law in LAWS for pattern in law.tests)
    assert all(law.tests for law in LAWS)


def test_the_core_is_short() -> None:
    assert len(read_part("soundness", "core").encode()) <= 20 * 2_500


def test_the_table_is_what_the_heads_say() -> None:
    """`python -m dpsql.tests.docs.claims` writes it."""
    assert TABLE.read_text("utf-8") == table()
