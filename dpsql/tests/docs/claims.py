"""The claims of soundness.md, read from the head of each section, and the one table of them all.

A section begins with a quotation that says what it claims, on which sections, laws and papers that rests, which code
makes it true, which tests hold it, and which tests plant the faults that they see. `python -m dpsql.tests.docs.claims`
writes the table anew from these heads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.cli.docs import parts_of, read_part, read_topic
from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING

from .documents import ROOT

__all__ = ["NONE", "TABLE", "Claim", "Law", "claims", "laws", "table"]

TABLE = ROOT / "dpsql" / "docs" / "soundness" / "claims.md"
NONE = "none: "
"""How a field begins that names nothing, and says why."""

_HEAD = re.compile(r"^## ([0-9]+\.[0-9]+) (.*)\n\n((?:>.*\n)+)", re.MULTILINE)
_FIELDS = ("Claim", "Rests on", "Source", "Code", "Law", "Mutants")
_FIELD = re.compile(rf"\*\*({'|'.join(_FIELDS)})\.?\*\* ")
_FILE = re.compile(r"`([\w/]+(?:\.py|/))`(?: \(((?:`[\w.]+`(?:, )?)+)\))?")


@dataclass(frozen=True)
class Claim:
    """What the head of a section says, field by field, as it is written; a field that is not there is empty."""

    number: str
    title: str
    chapter: str
    claim: str
    rests_on: str
    source: str
    code: str
    law: str
    mutants: str

    def premises(self) -> set[str]:
        """Return the sections and laws that it rests on."""
        return set(re.findall(r"\bL\d+\b|\b\d\.\d+\b", self.rests_on))

    def named(self, field: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return the files that a field names, below `dpsql/`, each with the names that stand after it."""
        found = _FILE.findall(getattr(self, field))
        return [(file, tuple(re.findall(r"[\w.]+", names))) for file, names in found]

    def at_the_gate(self) -> list[str]:
        """Return those of its files whose mutants are derived from their syntax trees (soundness.md 5.5)."""
        return [file for file, _ in self.named("code") if file in CLAIM_BEARING]


@dataclass(frozen=True)
class Law:
    """One of the laws with which soundness.md begins, and the patterns of the tests that it names."""

    name: str
    title: str
    tests: tuple[str, ...]


def claims() -> list[Claim]:
    """Return the claims of all chapters, in the order of their numbers."""
    found = [claim for part in parts_of("soundness") for claim in _claims_of(part)]
    return sorted(found, key=lambda claim: [int(part) for part in claim.number.split(".")])


def _claims_of(part: str) -> Iterator[Claim]:
    for number, title, quoted in _HEAD.findall(read_part("soundness", part)):
        words = " ".join(line.removeprefix(">").strip() for line in quoted.splitlines())
        pieces = _FIELD.split(words)
        assert not pieces[0].strip(), f"{number}: {pieces[0]}"
        names = pieces[1::2]
        assert names == [name for name in _FIELDS if name in names], f"{number}: fields out of order"
        said = {name: text.strip().removesuffix(".") for name, text in zip(names, pieces[2::2], strict=True)}
        yield Claim(number, title, part, *(said.get(name, "") for name in _FIELDS))


def laws() -> list[Law]:
    """Return the laws, in order."""
    pieces = re.split(r"^### (L\d+) (.*)$", read_topic("soundness"), flags=re.MULTILINE)
    return [
        Law(name, title, tuple(re.findall(r"`(tests/[\w/*]+(?:\.py)?)`", body.partition("*Tests*")[2])))
        for name, title, body in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True)
    ]


def table() -> str:
    """Return the page of the table: a row for each claim, with what its head names."""
    rows = [
        "| claim | rests on | code | law | mutants | source |",
        "|---|---|---|---|---|---|",
        *(_row(claim) for claim in claims()),
    ]
    return f"{_ABOVE}\n{chr(10).join(rows)}\n"


_ABOVE = """# Soundness: every claim on one page

Each section of the chapters that claims something, by its number: what it rests on (0, the definitions, always), the
code that makes it true, the tests that hold it and those in which planted faults turn them red, and the papers. `gate`
counts the files among its code whose faults are derived from their syntax trees (5.5). The laws L1 to L10 stand in
`dpsql docs soundness`, each with its tests. Who has read the core and these rows of a feature has read all that its
answers rest on. Nothing rests on itself: a test holds that, that every file, function and test named here is there, and
that this page is what the heads of the sections say.
"""


def _row(claim: Claim) -> str:
    where = f"[{claim.number}]({claim.chapter}.md) {claim.claim}"
    gate = claim.at_the_gate()
    faults = [
        *(_short(file) for file, _ in claim.named("mutants")),
        *([f"gate: {len(gate)}"] if gate else []),
    ]
    cells = (
        where,
        ", ".join(sorted(claim.premises(), key=_order)) or "0",
        ", ".join(f"`{file}`" for file, _ in claim.named("code")),
        ", ".join(_short(file) for file, _ in claim.named("law")),
        ", ".join(faults) or claim.mutants,
        claim.source,
    )
    return f"| {' | '.join(cells)} |"


def _short(file: str) -> str:
    """Return a test's file as it is named from the folder of the tests."""
    return file.removeprefix("tests/").removesuffix(".py")


def _order(name: str) -> list[int]:
    return [0, int(name[1:])] if name.startswith("L") else [int(part) for part in name.split(".")]


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
