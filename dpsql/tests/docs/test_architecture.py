"""The statement that architecture.md follows through the code goes that way."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import dpsql
from dpsql import Session

from .documents import section

HEADING = "One statement, call by call"
PACKAGE = f"{Path(dpsql.__file__).parent}/"


def calls_of(session: Session, sql: str) -> list[tuple[str, str]]:
    """Return the functions that a statement calls, as (file, name), in the order of their first calls."""
    found: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            found[code.co_filename.removeprefix(PACKAGE), code.co_qualname] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        session.execute(sql)
    finally:
        sys.setprofile(before)
    return list(found)


def test_a_statement_is_followed_call_by_call(reader: Path) -> None:
    body = section("architecture", HEADING)
    statement = re.search(r"`(SELECT [^`]+)`", body)
    shown = re.findall(r"^\| `([\w/.]+)`, `([\w.]+)` \|", body, re.MULTILINE)
    assert statement
    assert len(shown) > 15
    with Session.open(reader / "demo" / "campus.toml") as session:
        made = calls_of(session, f"{statement[1]}.01")  # not among those that the walk has asked
        (release,) = session.explain(statement[1]).plan.releases
    assert [call for call in made if call in shown] == shown
    assert (release.measures[0].epsilon, release.measurements[0].sensitivity, release.measures[0].scale) == (
        Fraction(1, 10),
        1,
        10,
    )


def test_what_to_read_first_is_as_long_as_is_told() -> None:
    """Told to hundreds; it may be off by a tenth."""
    body = section("architecture", "What to read first")
    files = re.findall(r"^\| `([\w/.]+)` \|", body, re.MULTILINE)
    told = re.search(r"^(\w+) files, some ([\d,]+) lines", body, re.MULTILINE)
    assert told
    assert (told[1], len(files)) == ("Twelve", 12)
    lines = sum(len(Path(PACKAGE, file).read_text(encoding="utf-8").splitlines()) for file in files)
    assert abs(int(told[2].replace(",", "")) - lines) <= lines / 10
