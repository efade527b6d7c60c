"""What runs inside pytest: once to see which lines each test reaches, then a fork for each mutant.

House rules:
1. The process that collected the tests runs none: each run is a fork of it, and nothing that one leaves is there for
   the next.
2. A fork is ended by its own group, whose id is its process id.
3. Tests that need a server, that are marked long, or that take 20 seconds, are left out: a gate is run often.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import select
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import Phase, settings

from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING
from dpsql.tests.mutants.derive import ROOT, Mutant
from dpsql.tests.mutants.plant import Functions, NotPlanted, module_name

__all__ = ["Gate", "Item", "Killer", "Reach", "Reached", "Result", "choose", "concerns", "run_pytest"]

_MEMORY = 3 * 2**30
"""Bytes that one fork may hold."""
_LONGEST = 20.0
"""Seconds of processor after which a test is left out."""
_CALLS = 1000
"""How many calls of a function are followed in a test, so that one with many examples stays short."""
_SERVERS = re.compile(r"\[(?:.*-)?(?:pg|spark)\w*(?:-.*)?\]$")


@dataclass(frozen=True)
class Item:
    """A test: how long it took, in seconds, and which lines of which files it reaches."""

    test: str
    seconds: float
    lines: dict[str, list[int]]


Reached = dict[str, Item]


@dataclass(frozen=True)
class Killer:
    """The test that a mutant died by, and in which way: "failed", "time" or "memory"."""

    test: str
    how: str


@dataclass(frozen=True)
class Result:
    """A mutant, the test that it died by, and how many seconds those that reach it take without a fault."""

    mutant: Mutant
    killer: Killer | None
    seconds: float


def run_pytest(plugin: object, files: Sequence[str], folder: Path) -> None:
    """Collect test files, named from the folder of the tests, and let a plugin run them in its way.

    Raises RuntimeError if they cannot be collected.
    """
    arguments = [
        "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminal", "--capture=sys", f"--rootdir={ROOT.parent}",
        "--hypothesis-seed=0", "-m", "not long and not spark", f"--basetemp={folder}",
        "-W", "ignore::pytest.PytestAssertRewriteWarning",
    ]  # fmt: skip
    code = pytest.main([*arguments, *(str(ROOT / "tests" / file) for file in files)], [plugin])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"pytest ended with {code}")


class _Plugin:
    def pytest_collection(self) -> None:
        """Search as always, but keep nothing of what failed and make it no smaller: that it failed is enough."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", parent=settings(), database=None, phases=phases, deadline=None)
        settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not _needs_a_server(item) and self.wants(item)]

    def wants(self, item: pytest.Item) -> bool:
        return True


def _needs_a_server(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return _SERVERS.search(item.nodeid) is not None or bool(
        {"postgres", "spark", "spark_cluster"} & {*fixtures}
    )


# --- which lines a test reaches ----------------------------------------------------------------------------------


class _TooLong(BaseException):
    """Not an error of the test, and so none that a search for failing examples may catch."""


def _too_long(number: int, frame: object) -> None:
    raise _TooLong


class Reach(_Plugin):
    """Runs all tests until the time is over, and writes an `Item` a line to a file for each that passed."""

    def __init__(self, out: Path, is_over: Callable[[], bool]) -> None:
        self._out, self._is_over = out, is_over
        self._files = {str(ROOT / path): path for path in CLAIM_BEARING}
        self._lines: set[tuple[str, int]] = set()
        self._calls: Counter[CodeType] = Counter()
        self._passed = False

    def _call(self, frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        self._calls[frame.f_code] += 1
        if self._calls[frame.f_code] > _CALLS:
            return None
        self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Failed("the tests cannot be collected")
        for item, after in zip_longest(session.items, session.items[1:]):
            if self._is_over():
                break
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._lines, self._passed, self._calls = set(), True, Counter()
        signal.signal(signal.SIGPROF, _too_long)
        signal.setitimer(signal.ITIMER_PROF, _LONGEST)
        begun = time.perf_counter()
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            sys.settrace(None)
            threading.settrace(None)  # how it is undone
            seconds = time.perf_counter() - begun
            if self._passed:
                lines: dict[str, list[int]] = {}
                for file, line in sorted(self._lines):
                    lines.setdefault(self._files[file], []).append(line)
                with self._out.open("a") as out:
                    out.write(json.dumps([item.nodeid, round(seconds, 3), lines]) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._passed = False


# --- a fork for each mutant --------------------------------------------------------------------------------------


@dataclass
class Gate(_Plugin):
    """Runs mutants of one file, or one that is planted already; `tell` hears each result.

    Of a mutant that no function can take nothing is told: it is for a process of its own.
    """

    path: str
    mutants: Sequence[Mutant]
    reached: Reached
    seconds: float
    """Of tests, as they took without a fault, for one mutant."""
    tell: Callable[[Result], bool]
    """Returns whether to go on."""
    is_planted: bool = False
    kills: dict[str, int] = field(default_factory=dict)
    """How many mutants of the file each test has killed."""

    def wants(self, item: pytest.Item) -> bool:
        return item.nodeid in self.reached

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        if session.testsfailed:
            raise session.Failed("the tests cannot be collected")
        importlib.import_module(module_name(self.path))
        functions = None if self.is_planted else Functions(self.path)
        gc.collect()
        gc.freeze()  # so that no fork walks over, and so copies, what it shares with this process
        for mutant in self.mutants:
            chosen = choose(mutant, self.reached, self.kills, self.seconds)
            try:
                killer = self._run(
                    functions, mutant, [items[one.test] for one in chosen if one.test in items]
                )
            except NotPlanted:
                continue
            if killer is not None:
                self.kills[killer.test] = self.kills.get(killer.test, 0) + 1
            if not self.tell(Result(mutant, killer, sum(one.seconds for one in chosen))):
                break
        return True

    def _run(self, functions: Functions | None, mutant: Mutant, items: list[pytest.Item]) -> Killer | None:
        """Run tests in a fork until one fails. Raises NotPlanted."""
        if not items:
            return None
        hear, say = os.pipe()
        child = os.fork()
        if not child:
            os.close(hear)
            os.setpgid(0, 0)
            with contextlib.suppress(BaseException):
                _in_fork(say, functions, mutant, items)
            os._exit(0)
        os.close(say)
        with contextlib.suppress(OSError):
            os.setpgid(child, child)
        try:
            return _hear(hear, child, items, self.reached)
        finally:
            os.close(hear)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)


def choose(mutant: Mutant, reached: Reached, kills: Mapping[str, int], seconds: float) -> list[Item]:
    """Return the tests that reach a mutant: those that killed others first, then the fastest, as many as take `seconds`.

    At the head of a file all of its tests reach it: those too that read what stands there, and run nothing of the file.
    """

    def order(one: Item) -> tuple[float, float, str]:
        return -kills.get(one.test, 0) / (one.seconds + 0.2), one.seconds, one.test

    if mutant.is_late:
        here = [one for one in reached.values() if {*one.lines.get(mutant.path, ())} & {*mutant.lines}]
    else:
        here = [one for one in reached.values() if concerns(one, mutant.path)]
    found: list[Item] = []
    total = 0.0
    for one in sorted(here, key=order):
        if not found or total + one.seconds <= seconds:
            total += one.seconds
            found.append(one)
    return found


def concerns(one: Item, path: str) -> bool:
    """Say whether a test reaches a file, or is of the file's own tests."""
    return path in one.lines or f"/test_{Path(path).stem}.py::" in one.test


class _Watching:
    def __init__(self) -> None:
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed


def _in_fork(say: int, functions: Functions | None, mutant: Mutant, items: list[pytest.Item]) -> None:
    try:
        if functions is not None:
            functions.plant(mutant)
    except NotPlanted:
        os.write(say, b"?\n")
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    watching = _Watching()
    items[0].config.pluginmanager.register(watching)
    for index, item in enumerate(items):
        os.write(say, b"%d\n" % index)
        try:
            after = items[index + 1] if index + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        except BaseException:  # noqa: BLE001 whatever ends the run is what the mutant died by
            watching.failed = True
        if watching.failed:
            os.write(say, b"!\n")
            return
    os.write(say, b".\n")


def _hear(hear: int, child: int, items: list[pytest.Item], reached: Reached) -> Killer | None:
    """Wait for a fork's end: for each of its tests as long as some times what it took without a fault."""
    text, at, begun = b"", 0, time.monotonic()
    while True:
        if time.monotonic() - begun > 20 + 10 * reached[items[at].nodeid].seconds:
            return Killer(items[at].nodeid, "time")
        if _held(child) > _MEMORY:
            return Killer(items[at].nodeid, "memory")
        if not select.select([hear], [], [], 0.5)[0]:
            continue
        some = os.read(hear, 65536)
        if not some:  # it ended without a word
            return Killer(items[at].nodeid, "failed")
        text += some
        *lines, text = text.split(b"\n")
        for line in lines:
            if line == b"?":
                raise NotPlanted
            if line == b"!":
                return Killer(items[at].nodeid, "failed")
            if line == b".":
                return None
            at, begun = int(line), time.monotonic()


def _held(child: int) -> int:
    try:
        return int(Path(f"/proc/{child}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
