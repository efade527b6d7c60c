"""Runs the mutants of files: a process for each file that collects its tests once, and forks for each mutant.

What is at the head of a file runs while it is imported: such a mutant has a process of its own.

No library does this for us: mutmut (3.8) leaves out decorated functions and all code outside of functions, which
our properties, tables and fields are; cosmic-ray starts pytest anew for each mutant; neither knows laws from recorded
texts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING, RECORDED, file_of, tests_of, way_of
from dpsql.tests.mutants.derive import ROOT, Mutant, derive
from dpsql.tests.mutants.in_pytest import (
    Gate,
    Item,
    Killer,
    Reach,
    Reached,
    Result,
    choose,
    concerns,
    run_pytest,
)
from dpsql.tests.mutants.plant import import_mutated
from dpsql.tests.mutants.store import OPEN, Results, reached_by, survivors

__all__ = ["Ran", "Run", "changed_since_main", "drawn", "run_file"]


@dataclass
class Run:
    """How a run goes: seconds of tests for one mutant, and of processor in all, or None."""

    results: Results
    each: float
    most: float | None = None
    again: bool = False
    """Whether to run survivors again, but for those that are no other program."""
    before: float = 0.0
    """Seconds of processor that were used before this process began."""

    @property
    def used(self) -> float:
        """Seconds of processor, of this process and of those that have ended."""
        times = os.times()
        return self.before + times.user + times.system + times.children_user + times.children_system

    @property
    def is_over(self) -> bool:
        return self.most is not None and self.used > self.most

    def fork(self, work: Callable[[], object]) -> None:
        """Do something in a process of its own, and wait for its end. Raises RuntimeError if it fails."""
        sys.stdout.flush()
        used = self.used
        child = os.fork()
        if not child:
            status = 1
            try:
                self.before = used
                work()
                status = 0
            except BaseException:  # noqa: BLE001 a fork must not go on as its parent
                traceback.print_exc()
            sys.stdout.flush()
            os._exit(status)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("a process of the gate failed")
        self.results.read()


@dataclass
class Ran:
    """What a run found of one file."""

    path: str
    survived: list[Mutant] = field(default_factory=list)
    done: int = 0
    not_reached: int = 0


def run_file(path: str, mutants: Sequence[Mutant], run: Run) -> Ran:
    """Run those mutants of a file that have no result yet, in this order, until the time is over."""
    listed = survivors().get(path, {})

    def is_to_run(mutant: Mutant) -> bool:
        found = run.results.get(mutant)
        if found is None:
            return True
        return run.again and found[0] == "survived" and listed.get(mutant.key, OPEN).startswith(OPEN)

    todo = [mutant for mutant in mutants if is_to_run(mutant)]
    for mutant in todo:
        run.results.forget(mutant)
    if todo:
        with tempfile.TemporaryDirectory() as name:
            _run_all(path, todo, run, Path(name))
    ran = Ran(path)
    for mutant in mutants:
        found = run.results.get(mutant)
        ran.done += found is not None
        ran.not_reached += found is None
        if found is not None and found[0] == "survived":
            ran.survived.append(mutant)
    return ran


def _run_all(path: str, todo: Sequence[Mutant], run: Run, folder: Path) -> None:
    """Run what is left against one test file after the other, and at last against texts that were recorded."""
    spent: dict[str, float] = {}
    reached: Reached = {}

    def tell(result: Result) -> bool:
        spent[result.mutant.key] = spent.get(result.mutant.key, 0.0) + result.seconds
        if result.killer is not None:
            _add(result, run)
        return not run.is_over

    def watch(file: str, out: Path) -> bool:
        run.fork(lambda: run_pytest(Reach(out, lambda: run.is_over), [file], folder / "reach"))
        return not run.is_over

    def left() -> list[Mutant]:
        return [mutant for mutant in todo if run.results.get(mutant) is None]

    for texts in (False, True):
        for file in (*tests_of(path), *(RECORDED if texts else ())):
            if run.is_over or not left():
                return
            here = reached_by(file, watch)
            here = {
                test: item
                for test, item in here.items()
                if concerns(item, path) and texts == (way_of(test) == "text")
            }
            late = [mutant for mutant in left() if mutant.is_late and spent.get(mutant.key, 0.0) < run.each]
            if here and late:
                gate = Gate(path, late, here, run.each, tell, kills=run.results.kills(path))
                run.fork(partial(run_pytest, gate, [file], folder / "tests"))
            reached |= here
    for mutant in left():
        if run.is_over:
            return
        chosen = choose(replace(mutant, is_late=False), reached, run.results.kills(path), run.each)
        if mutant.is_late or not chosen:
            _add(Result(mutant, None, 0.0), run)
        else:
            run.fork(partial(_run_planted, mutant, chosen, run, folder))


def _add(result: Result, run: Run) -> None:
    found = run.results.add(result)
    print(f"{found[0]:9}{result.mutant.name}{'  by ' if found[1] else ''}{found[1]}", flush=True)


def _run_planted(mutant: Mutant, chosen: Sequence[Item], run: Run, folder: Path) -> None:
    import_mutated(mutant)
    heard: list[Result] = []

    def hear(result: Result) -> bool:
        heard.append(result)
        return True

    planted = replace(mutant, is_late=False)
    gate = Gate(
        mutant.path, [planted], {one.test: one for one in chosen}, run.each,
        hear, is_planted=True,
    )  # fmt: skip
    with contextlib.suppress(BaseException):
        run_pytest(gate, sorted({file_of(one.test) for one in chosen}), folder / "tests")
    _add(Result(mutant, heard[0].killer if heard else Killer(chosen[0].test, "import"), 0.0), run)


# --- which mutants -----------------------------------------------------------------------------------------------


def changed_since_main() -> dict[str, list[Mutant]]:
    """Return the mutants of files that differ from where this branch left the upstream main, those of functions that
    differ first; none where there is no such place, or where it is this commit itself."""
    base = _git("merge-base", "HEAD", "origin/main")
    if base is None:
        return {}
    changed = _git("diff", "--name-only", base) or ""
    found = {}
    for path in CLAIM_BEARING:
        if f"dpsql/{path}" in changed.split("\n"):
            before = _git("show", f"{base}:dpsql/{path}") or ""
            known = {mutant.digest for mutant in derive(path, before)}
            found[path] = sorted(derive(path), key=lambda mutant: (mutant.digest in known, _shuffled(mutant)))
    return found


def drawn(count: int, seed: int) -> dict[str, list[Mutant]]:
    """Return so many mutants of all, drawn systematically: each has the same chance, and each file its part.

    The mutants stand in the order of the files, shuffled within each; from a random place of the first `step` on every
    `step`-th is taken, where `step` is all by `count` (Cochran, Sampling Techniques, 8). Raises ValueError: not so many.
    """
    rng = random.Random(seed)
    every: list[Mutant] = []
    for path in CLAIM_BEARING:
        mutants = derive(path)
        every += rng.sample(mutants, len(mutants))
    if not 0 < count <= len(every):
        raise ValueError(f"a sample has 1 to {len(every)} mutants")
    start = rng.randrange(len(every))
    found: dict[str, list[Mutant]] = {}
    for number in range(count):
        one = every[(start + number * len(every)) // count]
        found.setdefault(one.path, []).append(one)
    return found


def _shuffled(mutant: Mutant) -> bytes:
    return hashlib.sha256(mutant.name.encode()).digest()


def _git(*arguments: str) -> str | None:
    done = subprocess.run(["git", *arguments], cwd=ROOT.parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
