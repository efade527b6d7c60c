"""The tables of soundness.md 5.5: files, their mutants, and what each died by; and the same of samples of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scipy import stats  # type: ignore[import-untyped]  # has no types

from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING
from dpsql.tests.mutants.derive import ROOT, Mutant, derive
from dpsql.tests.mutants.store import OPEN, Results, survivors

__all__ = [
    "HEAD",
    "MANUAL",
    "SAMPLE_HEAD",
    "Sample",
    "read_samples",
    "read_table",
    "sample_of",
    "write_sample",
    "write_table",
]

MANUAL = ROOT / "docs" / "soundness" / "tests.md"
HEAD = (
    "| file | mutants | by a law | by a module's test | by a recorded text alone | equivalent | open | not run |",
    "|---|---|---|---|---|---|---|---|",
)


SAMPLE_HEAD = (
    "| seed | of | drawn | by a law | by a module's test | by a recorded text alone | equivalent | open | killed, in % |",
    "|---|---|---|---|---|---|---|---|---|",
)
_WAYS = ("law", "module", "text", "equivalent", "open")


def _ends(mutants: Iterable[Mutant], results: Results) -> Counter[str]:
    """Return how many mutants of a file ended in each way."""
    listed = survivors()
    found = Counter[str]()
    for mutant in mutants:
        ended, reasons = results.get(mutant), listed.get(mutant.path, {})
        if ended is None and mutant.key not in reasons:
            found["not run"] += 1
        elif ended is None or ended[0] == "survived":
            found["open" if reasons.get(mutant.key, OPEN).startswith(OPEN) else "equivalent"] += 1
        else:
            found[ended[0]] += 1
    return found


def _row(path: str, results: Results) -> list[int]:
    """Return a file's numbers, in the order of the columns."""
    mutants = derive(path)
    found = _ends(mutants, results)
    return [len(mutants), *(found[way] for way in (*_WAYS, "not run"))]


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


# --- samples -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """What became of mutants that were drawn by a seed of all that there were; the numbers of `_WAYS`."""

    seed: int
    of: int
    ends: tuple[int, ...]

    @property
    def killed(self) -> int:
        """By a law or a module's test: a recorded text dies of any change, right or wrong."""
        return self.ends[0] + self.ends[1]

    @property
    def faults(self) -> int:
        """Those drawn that are other programs."""
        return sum(self.ends) - self.ends[3]

    @property
    def share(self) -> str:
        """The percentage of the faults that is killed, and the exact (Clopper-Pearson) 95 % interval of that of all."""
        if not self.faults:
            return "none drawn"
        found = stats.binomtest(self.killed, self.faults)
        ends = found.proportion_ci(confidence_level=0.95, method="exact")
        return f"{100 * found.statistic:.1f} [{100 * ends.low:.1f}, {100 * ends.high:.1f}]"

    def __str__(self) -> str:
        cells = [self.seed, self.of, sum(self.ends), *self.ends, self.share]
        return f"| {' | '.join(map(str, cells))} |"


def sample_of(drawn: Mapping[str, Sequence[Mutant]], seed: int, results: Results) -> Sample | None:
    """Return what became of a sample; None where some of it has not been run."""
    found = _ends((mutant for mutants in drawn.values() for mutant in mutants), results)
    if found["not run"]:
        return None
    every = sum(len(derive(path)) for path in CLAIM_BEARING)
    return Sample(seed, every, tuple(found[way] for way in _WAYS))


def write_sample(sample: Sample) -> None:
    """Put a sample's line into the manual, in place of an earlier one of its seed."""
    kept = [one for one in read_samples() if one.seed != sample.seed]
    before, _, rest = MANUAL.read_text().partition(SAMPLE_HEAD[0])
    after = rest.partition("\n\n")[2]
    lines = [*SAMPLE_HEAD, *map(str, sorted([*kept, sample], key=lambda one: one.seed))]
    MANUAL.write_text(before + "\n".join(lines) + "\n\n" + after)


def read_samples() -> list[Sample]:
    """Return the samples of the manual. Raises ValueError: a line is not what its numbers say."""
    lines = MANUAL.read_text().partition("\n".join(SAMPLE_HEAD))[2].partition("\n\n")[0].split("\n")[1:]
    found = []
    for line in lines:
        seed, of, _, *ends, _ = [cell.strip() for cell in line.strip("| ").split("|")]
        found.append(Sample(int(seed), int(of), tuple(map(int, ends))))
        if str(found[-1]) != line:
            raise ValueError(f"{line} should be {found[-1]}")
    return found
