"""The table of soundness.md 5.5: files, their mutants, and what each died by."""

from __future__ import annotations

from collections import Counter

from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING
from dpsql.tests.mutants.derive import ROOT, derive
from dpsql.tests.mutants.store import OPEN, Results, survivors

__all__ = ["HEAD", "MANUAL", "read_table", "write_table"]

MANUAL = ROOT / "docs" / "soundness" / "tests.md"
HEAD = (
    "| file | mutants | by a law | by a module's test | by a recorded text alone | equivalent | open | not run |",
    "|---|---|---|---|---|---|---|---|",
)


def _row(path: str, results: Results) -> list[int]:
    """Return a file's numbers, in the order of the columns."""
    reasons = survivors().get(path, {})
    found = Counter[str]()
    mutants = derive(path)
    for mutant in mutants:
        ended = results.get(mutant)
        if ended is None and mutant.key not in reasons:
            found["not run"] += 1
        elif ended is None or ended[0] == "survived":
            found["open" if reasons.get(mutant.key, OPEN).startswith(OPEN) else "equivalent"] += 1
        else:
            found[ended[0]] += 1
    return [len(mutants), *(found[way] for way in ("law", "module", "text", "equivalent", "open", "not run"))]


def write_table(results: Results) -> None:
    """Put the table of what was found into the manual, in place of the one that is there."""
    rows = {path: _row(path, results) for path in CLAIM_BEARING}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    shown = [f"| {path} | {' | '.join(map(str, row))} |" for path, row in rows.items()]
    before, _, rest = MANUAL.read_text().partition(HEAD[0])
    after = rest.partition("\n\n")[2]
    MANUAL.write_text(before + "\n".join([*HEAD, *shown]) + "\n\n" + after)


def read_table() -> dict[str, list[int]]:
    """Return the numbers of the manual's table, by file, and of "all"."""
    lines = MANUAL.read_text().partition("\n".join(HEAD))[2].partition("\n\n")[0].split("\n")[1:]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    return {path: [int(number) for number in numbers] for path, *numbers in rows}
