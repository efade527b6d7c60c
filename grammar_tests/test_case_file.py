"""The reader of case files: it reads what the format says, refuses the rest, and rewrites no claim."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.testing.case_file import (
    Accepted,
    CaseFileError,
    ExpectedCharge,
    Measure,
    Refused,
    ReleaseClaim,
    read_cases,
    rewrite_case,
)

_TEXT = """\
# A file.
policy shop

# Why this one is here.
case total epsilon=0.5 analyst=bob oracle ordered
parameter integer 3
parameter null
parameter text a b
parameter numeric 2.50
parameter date 2024-02-29
oracle-sql SELECT 1
SELECT SUM(x)
  FROM t -- all
----
rewritten
  SELECT 1
      AS one
  SELECT 2
# A note on the scale.
measure sum coordinates=1 lattice=1/100 clamp=[-5,5000] sensitivity=30000 scale=60000 epsilon=1/2
measure count coordinates=2 sensitivity=6 scale=12 epsilon=1/2
groups declared 3
groups threshold tau=22 delta=1/1000000000
charge epsilon=1/2 delta=1/1000000000
columns s:text
intermediate SELECT 3
post SELECT s

policy school
case raw epsilon=1
SELECT name
----
refused PV002 at 1:8
message column "name" is private
hint aggregate it
"""


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "topic.case"
    path.write_text(text, encoding="utf-8")
    return path


def test_reads_every_line(tmp_path: Path) -> None:
    total, raw = read_cases(_write(tmp_path, _TEXT))
    assert (total.policy, total.name, total.line, total.epsilon) == ("shop", "total", 5, Fraction(1, 2))
    assert (total.analyst, total.is_compared, total.is_ordered) == ("bob", True, True)
    assert total.sql == "SELECT SUM(x)\n  FROM t -- all"
    assert total.oracle_sql == "SELECT 1"
    assert total.parameters == (3, None, "a b", Decimal("2.50"), datetime.date(2024, 2, 29))
    half = Fraction(1, 2)
    assert total.expected == Accepted(
        ("SELECT 1 AS one", "SELECT 2"),
        (
            ReleaseClaim(
                (
                    Measure("sum", 1, Fraction(1, 100), (-5, 5000), 30000, Fraction(60000), half),
                    Measure("count", 2, None, None, 6, Fraction(12), half),
                ),
                "declared 3",
            ),
            ReleaseClaim((), "threshold tau=22 delta=1/1000000000"),
        ),
        ExpectedCharge(half, Fraction(1, 10**9)),
        "s:text",
        ("SELECT 3",),
        "SELECT s",
    )
    assert (raw.policy, raw.epsilon, raw.analyst, raw.is_compared) == (
        "school",
        Fraction(1),
        "local",
        False,
    )
    assert raw.expected == Refused("PV002", "1:8", 'column "name" is private', "aggregate it")


def test_rewriting_refills_texts_and_keeps_claims_and_comments(tmp_path: Path) -> None:
    path = _write(tmp_path, _TEXT)
    total, raw = read_cases(path)
    query = "SELECT 'a  b' " + " ".join(f"column{i}" for i in range(60)) + " FROM t"
    assert isinstance(total.expected, Accepted)
    assert isinstance(raw.expected, Refused)
    nothing = Measure("sum", 1, None, None, 1, Fraction(1), Fraction(1))
    other = replace(
        total.expected, rewritten=(query, query), post="SELECT 'x'", columns="t:text", intermediates=(),
        releases=(ReleaseClaim((nothing,), "one"),), charge=ExpectedCharge(Fraction(0), Fraction(0)),
    )  # fmt: skip
    rewrite_case(path, "total", other)
    rewrite_case(path, "raw", Refused("42601", "9:9", "no", ""))
    again, refused = read_cases(path)
    assert isinstance(again.expected, Accepted)
    assert again.expected == replace(
        other, releases=total.expected.releases, charge=total.expected.charge
    )  # the claims are those of the file
    assert refused.expected == Refused("PV002", "1:8", "no", "")
    text = path.read_text(encoding="utf-8")
    assert "# A note on the scale." in text
    assert max(map(len, text.split("\n"))) <= 108
    assert again.sql == total.sql


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon=0.5", "epsilon=1e3"),
        ("epsilon=0.5", ""),
        ("oracle ordered", "oracle sorted"),
        ("oracle ordered", "oracle engine=oracle"),
        ("case total", "case Total"),
        ("policy shop\n", ""),
        ("----\nrewritten", "rewritten"),
        ("scale=60000", "scale=6e4"),
        ("scale=60000", "scale=60000.0"),
        ("sensitivity=30000", "sensitivity=1/2"),
        (" clamp=[-5,5000]", ""),
        ("clamp=[-5,5000]", "clamp=[-5.0,5000]"),
        (" sensitivity=6", ""),
        ("groups declared 3\ngroups threshold tau=22 delta=1/1000000000\n", ""),
        ("charge epsilon=1/2 delta=1/1000000000", "charge epsilon=1/2"),
        ("post SELECT s", "post SELECT s\npost SELECT s"),
        ("post SELECT s", "post SELECT s\nscale 3"),
        ("columns s:text", "columns s:text\n  more"),
        ("post SELECT s", "post SELECT s\nhint no"),
        ("refused PV002 at 1:8", "refused PV2"),
        ("refused PV002 at 1:8", "refused PV002 at line 1"),
        ("case raw", "case total"),
        ("parameter integer 3", "parameter integer three"),
        ("parameter integer 3", "parameter whole 3"),
        ("parameter date 2024-02-29", "parameter date 2023-02-29"),
    ],
)
def test_what_is_not_in_the_format_is_refused(tmp_path: Path, old: str, new: str) -> None:
    assert old in _TEXT
    with pytest.raises(CaseFileError, match=r"topic\.case"):
        read_cases(_write(tmp_path, _TEXT.replace(old, new, 1)))


def test_rewriting_an_unknown_case_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match="no case"):
        rewrite_case(_write(tmp_path, _TEXT), "other", Refused("42601", "", "", ""))
