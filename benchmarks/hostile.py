"""Ten hostile clients beside one honest analyst: what the honest one waits, what the server keeps, what is wrong.

Each hostile client is a process of its own (`benchmarks.attacks`), since a thread of ours would share its
interpreter with the clock. Figures of the attack are ratios to the idle server of the same run, which is asked without
gaps until its p99 is one of some hundred answers. All share one machine; the attackers' own work, which would be done
on others, is printed, too.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from benchmarks.attacks import ATTACKS, PASSWORD
from benchmarks.figure import Figure, Size
from benchmarks.wire import running_server
from dpsql.engine.dataset import open_ledger
from dpsql.mechanisms import NANO
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy

__all__ = ["measure"]

_HOSTILE = ("mallory", "oscar", "trudy")
_STORED = "SELECT city, COUNT(*) AS n FROM person GROUP BY city ORDER BY city"
_FRESH = "SELECT COUNT(*) AS n FROM person WHERE age < {} AND id >= -{}"
"""A text that nobody has asked yet, idle as under attack: it is planned, too."""
_EPSILON = Fraction(1, 100)
_FAR = 4000
"""A noise of scale 100 is beyond this once in e^40 answers: such an answer is wrong."""
_AFTER_SECONDS, _PAUSE = 120.0, 0.05
_IDLE_ANSWERS = 300
"""Fresh answers of the idle server, at least: its p99 is not that of one pause of the machine."""
_AGES, _MIB = 100, 2**20


@dataclass
class _Watched:
    """What the honest analyst saw: seconds of each answer, what was wrong, what was refused."""

    stored: list[float] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)
    wrong: int = 0
    refused: list[str] = field(default_factory=list)


def measure(size: Size, seconds: float = 300.0) -> Iterator[Figure]:
    """Yield ratios of latency, memory, wrong answers and the ledger; an attack of `seconds`."""
    policy, truth = _made(size)
    with running_server(policy) as (address, process), ExitStack() as undo:
        honest = {**address, "user": "honest", "password": PASSWORD}
        connection = undo.enter_context(psycopg.connect(**honest, autocommit=True))
        expected = connection.execute(_STORED).fetchall()
        spent = _spent(policy, "honest")
        asker = _Honest(honest, truth, expected)
        idle, attacked = _Watched(), _Watched()
        while len(idle.fresh) < _IDLE_ANSWERS:
            asker.ask(idle, 1.0, pause=0.0)
        memory = _Memory(process.pid)
        start = memory.now()
        before = _children()
        with _attacks(address, seconds) as ended:
            while not ended():
                asker.ask(attacked, 1.0)
                memory.look()
        yield from _latency(idle, attacked)
        yield Figure("the attackers' own work", (_children() - before) / seconds, None, "cores")
        yield from _remembered(memory, start)
        yield from _ledger(policy, spent, len(idle.fresh) + len(attacked.fresh))


class _Honest:
    """An analyst who asks what is stored, again and again, and now and then something new."""

    def __init__(self, address: dict[str, Any], truth: list[int], expected: list[tuple[object, ...]]) -> None:
        self._stored = psycopg.connect(**address, autocommit=True)
        self._fresh = psycopg.connect(**address, autocommit=True)
        self._fresh.execute("SET dpsql.reuse = off")
        self._fresh.execute(f"SET dpsql.epsilon = {float(_EPSILON)}")
        self._truth, self._expected, self._count = truth, expected, 0

    def ask(self, watched: _Watched, seconds: float, pause: float = _PAUSE) -> None:
        """Ask for so long, with so many seconds between two questions, and take note."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(8):
                rows = self._timed(self._stored, _STORED, watched.stored, watched)
                watched.wrong += rows is not None and rows != self._expected
                time.sleep(pause)
            self._count += 1
            age = self._count % _AGES
            rows = self._timed(self._fresh, _FRESH.format(age, self._count), watched.fresh, watched)
            watched.wrong += rows is not None and abs(rows[0][0] - self._truth[age]) > _FAR

    def _timed(
        self, connection: psycopg.Connection[Any], sql: str, times: list[float], watched: _Watched
    ) -> list[tuple[Any, ...]] | None:
        start = time.perf_counter()
        try:
            rows = connection.execute(sql).fetchall()
        except psycopg.Error as error:
            watched.refused.append(f"{error.sqlstate} {str(error).splitlines()[0]}")
            return None
        times.append(time.perf_counter() - start)
        return rows


class _Memory:
    """The resident memory of a process, in MiB."""

    def __init__(self, process: int) -> None:
        self._status = Path(f"/proc/{process}/status")
        self.peak = 0.0

    def now(self) -> float:
        """Return what is resident now."""
        return self._read("VmRSS:")

    def look(self) -> None:
        """Take note of the most that was resident so far, as the system has counted it."""
        self.peak = max(self.peak, self._read("VmHWM:"))

    def _read(self, name: str) -> float:
        lines = [line.split() for line in self._status.read_text().splitlines()]
        return next(int(line[1]) / 1024 for line in lines if line[0] == name)


@contextmanager
def _attacks(address: dict[str, Any], seconds: float) -> Iterator[Any]:
    """Run every attack for so long, once all are ready; yield what says whether they have ended.

    To start ten interpreters keeps this machine busy for seconds, which is no attack.
    """
    where = [str(address["host"]), str(address["port"]), str(address["dbname"]), str(seconds)]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.attacks", name, _HOSTILE[number % len(_HOSTILE)], *where],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for number, name in enumerate(ATTACKS)
    ]
    for one in running:
        assert one.stdin is not None
        assert one.stdout is not None
        one.stdout.readline()
    for one in running:
        print(file=one.stdin, flush=True)
    deadline = time.monotonic() + seconds
    try:
        yield lambda: time.monotonic() > deadline or all(one.poll() is not None for one in running)
    finally:
        for one in running:
            one.kill()
            one.communicate()


def _children() -> float:
    """Return the seconds of work of the processes that have ended and were waited for: not the server's."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _latency(idle: _Watched, attacked: _Watched) -> Iterator[Figure]:
    for name, quiet, loud, most in (
        ("stored", idle.stored, attacked.stored, 30),
        ("fresh", idle.fresh, attacked.fresh, 3),
    ):
        for percent, limit in ((50, None), (99, most)):
            one, other = _percentile(quiet, percent), _percentile(loud, percent)
            where = f"idle {1000 * one:.1f} ms, under attack {1000 * other:.1f} ms, {len(loud)} answers"
            yield Figure(f"{name} answers under attack, p{percent}", other / one, limit, "x idle", where)
    yield Figure("wrong answers", idle.wrong + attacked.wrong, 0, "answers")
    refused = [*idle.refused, *attacked.refused]
    yield Figure("honest statements refused", len(refused), 0, "statements", "; ".join(sorted(set(refused))))


def _percentile(times: list[float], percent: int) -> float:
    if len(times) < 2:
        return times[0] if times else float("inf")
    return statistics.quantiles(times, n=100, method="inclusive")[percent - 1]


def _remembered(memory: _Memory, start: float) -> Iterator[Figure]:
    """Yield memory at the start, at most, at the end, and after two minutes in which nobody asks."""
    memory.look()
    end = memory.now()
    time.sleep(_AFTER_SECONDS)
    after = memory.now()
    yield Figure("memory at the start", start, None, "MiB")
    yield Figure("memory at most, beyond the start", memory.peak - start, 2048, "MiB", "1024 are configured")
    yield Figure("memory at the end, beyond the start", end - start, None, "MiB")
    yield Figure("memory two minutes later, beyond the start", after - start, 100, "MiB")


def _ledger(policy: Path, before: Fraction, fresh: int) -> Iterator[Figure]:
    """Yield how far the ledger is from what the honest analyst's answers cost, and from the sum of all analysts."""
    spent = _spent(policy, "honest")
    off = abs(spent - before - fresh * _EPSILON)
    yield Figure("the honest analyst's charges beside the expected", float(off), 0, "epsilon")
    everybody = sum((_spent(policy, name) for name in ("honest", *_HOSTILE)), Fraction(0))
    store = open_ledger(load_policy(policy), create=False)
    whole = Fraction(store.status("honest").epsilon_spent_nano, NANO)
    store.close()
    yield Figure("the ledger's sum beside its analysts'", float(abs(whole - everybody)), 0, "epsilon")


def _spent(policy: Path, analyst: str) -> Fraction:
    """Return what an analyst has spent, as the ledger says it now."""
    store = open_ledger(load_policy(policy), create=False)
    try:
        return Fraction(store.status(analyst).analyst_spent_nano, NANO)
    finally:
        store.close()


def _made(size: Size) -> tuple[Path, list[int]]:
    """Make people, a public table long and wide, and a policy without the grid; return how many are below each age."""
    path, policy = size.folder / "hostile.duckdb", size.folder / "hostile.toml"
    for old in size.folder.glob("hostile.*"):
        old.unlink()
    people, rows = size.rows // 20, min(size.rows // 10, 900_000)
    texts = ", ".join(f"'value number ' || (i * {place + 3}) % 100000 AS t{place}" for place in range(7))
    numbers = ", ".join(f"i * {place + 7} AS n{place}" for place in range(7))
    with duckdb.connect(path) as database:
        database.execute(
            "CREATE TABLE person (id BIGINT PRIMARY KEY, age INTEGER NOT NULL, city VARCHAR NOT NULL)"
        )
        database.execute(
            f"INSERT INTO person SELECT i, hash(i) % {_AGES}, ['north', 'south', 'east'][1 + i % 3]"
            f" FROM range({people}) AS r(i)"
        )
        database.execute(f"CREATE TABLE wide AS SELECT i, {texts}, {numbers} FROM range({rows}) AS r(i)")
        found = database.execute("SELECT age, COUNT(*) FROM person GROUP BY age").fetchall()
    of_age = dict(found)
    truth = [sum(of_age.get(age, 0) for age in range(below)) for below in range(_AGES + 1)]
    verifier = make_verifier(PASSWORD).text()
    analysts = "".join(
        f'[analysts.{name}]\nepsilon = 1000\npassword = "{verifier}"\n' for name in ("honest", *_HOSTILE)
    )
    policy.write_text(
        'database = "duckdb:hostile.duckdb"\nledger = "sqlite:hostile.db"\n[privacy]\nepsilon = 4000\n'
        '[tables.person]\nunit = "id"\n[tables.person.columns]\nage = { bounds = [0, 99] }\n'
        'city = { values = ["north", "south", "east"] }\n[tables.wide]\npublic = true\n'
        f"[server]\ngrid = false\n{analysts}"
    )
    open_ledger(load_policy(policy), create=True).close()
    return policy, truth
