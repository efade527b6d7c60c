"""What was found of mutants, kept between runs in `.mutants/`, and the list of survivors, which is checked in.

A result holds as long as the function that its mutant lies in stands as it did. Which lines a test reaches holds as long
as its file and all files that carry a claim do.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING, way_of
from dpsql.tests.mutants.derive import ROOT, Mutant, derive
from dpsql.tests.mutants.in_pytest import Item, Reached, Result

__all__ = ["FOLDER", "OPEN", "SURVIVORS", "Found", "Results", "list_open", "reached_by", "survivors"]

FOLDER = ROOT.parent / ".mutants"
SURVIVORS = Path(__file__).with_name("survivors.toml")
_ABOUT = """\
# Mutants that no test kills (soundness.md 5.5), each with its reason: "equivalent: …" why no test could, or "open".
"""
OPEN = "open"
"""How the reason of a survivor begins that is a fault, and that no test sees yet."""

Found = tuple[str, str, str]
"""How a mutant ended ("law", "module", "text", "survived"), the test that it died by, "failed", "time" or "memory"."""


class Results:
    """Results by mutant, read when it is made; each new one is written at once, so that a run can be cut off."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._file = folder / "results.jsonl"
        self._known: dict[tuple[str, str, str], Found] = {}
        self.read()

    def read(self) -> None:
        """Read what other processes have written too."""
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                path, key, digest, *found = json.loads(line)
                if found:
                    self._known[path, key, digest] = (found[0], found[1], found[2])
                else:
                    self._known.pop((path, key, digest), None)

    def get(self, mutant: Mutant) -> Found | None:
        return self._known.get((mutant.path, mutant.key, mutant.digest))

    def kills(self, path: str) -> dict[str, int]:
        """Return how many mutants of a file each test has killed."""
        tests = [found[1] for (file, _, _), found in self._known.items() if file == path]
        return {test: tests.count(test) for test in sorted({*tests}) if test}

    def add(self, result: Result) -> Found:
        mutant, killer = result.mutant, result.killer
        found = ("survived", "", "")
        if killer is not None:
            found = (way_of(killer.test), killer.test, killer.how)
        self._known[mutant.path, mutant.key, mutant.digest] = found
        self._write(mutant, found)
        return found

    def forget(self, mutant: Mutant) -> None:
        if self._known.pop((mutant.path, mutant.key, mutant.digest), None) is not None:
            self._write(mutant, ())

    def _write(self, mutant: Mutant, found: Sequence[str]) -> None:
        self._file.parent.mkdir(exist_ok=True)
        with self._file.open("a") as out:
            out.write(json.dumps([mutant.path, mutant.key, mutant.digest, *found]) + "\n")


def survivors() -> dict[str, dict[str, str]]:
    """Return the reason of each survivor, by file and by its name within it."""
    found: dict[str, dict[str, str]] = tomllib.loads(SURVIVORS.read_text())
    return found


def list_open(results: Results) -> None:
    """Add survivors to the list that have no reason there, as open, and take out those that are none any more."""
    listed = survivors()
    found: dict[str, dict[str, str]] = {}
    for path in CLAIM_BEARING:
        reasons = listed.get(path, {})
        for mutant in derive(path):
            ended = results.get(mutant)
            if mutant.key in reasons if ended is None else ended[0] == "survived":
                found.setdefault(path, {})[mutant.key] = reasons.get(mutant.key, OPEN)

    def text(part: str) -> str:
        return json.dumps(part, ensure_ascii=False)  # as TOML spells it too

    parts = [
        "\n".join([f"[{text(path)}]", *(f"{text(key)} = {text(reason)}" for key, reason in reasons.items())])
        for path, reasons in found.items()
    ]
    SURVIVORS.write_text(_ABOUT + "".join(f"\n{part}\n" for part in parts))


@cache
def _digest_of_claims() -> bytes:
    return hashlib.sha256(b"".join((ROOT / path).read_bytes() for path in CLAIM_BEARING)).digest()


def reached_by(file: str, run: Callable[[str, Path], bool], folder: Path = FOLDER) -> Reached:
    """Return the tests of a test file that pass, with what they reach.

    `run` writes them to a file, if need be, and says whether it came to the end.
    """
    digest = hashlib.sha256(_digest_of_claims() + (ROOT / "tests" / file).read_bytes()).hexdigest()[:12]
    kept = folder / "reach" / f"{file.replace('/', '.')}.{digest}.jsonl"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        for old in kept.parent.glob(f"{file.replace('/', '.')}.*"):
            old.unlink()
        fresh = kept.with_suffix(".new")
        fresh.touch()
        if not run(file, fresh):
            return _read(fresh.read_text().splitlines())
        fresh.rename(kept)
    return _read(kept.read_text().splitlines())


def _read(lines: Iterable[str]) -> Reached:
    return {test: Item(test, seconds, reached) for test, seconds, reached in map(json.loads, lines)}
