"""A ledger of a million entries: what a command takes, and what it takes from analysts of a server beside it."""

from __future__ import annotations

import resource
import secrets
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import psycopg

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size, milliseconds
from benchmarks.wire import running_server, serveable
from dpsql.budget import Charge, Claim, Draw, MeasurementClaim
from dpsql.engine.dataset import open_ledger
from dpsql.mechanisms import Laplace
from dpsql.policy import load_policy

__all__ = ["measure"]

_AT_ONCE = 1_000
_STORED = "SELECT major, COUNT(*) AS n FROM student GROUP BY major"
_FRESH = "SELECT COUNT(*) AS n FROM student WHERE gpa > 2"
_BLOCKS = 4


def measure(size: Size) -> Iterator[Figure]:
    """Yield the processor's seconds of `budget show` and `verify`, and the ratios of waits beside the former.

    Where cores are few the command's own start takes one; so the waits beside the same command on a ledger elsewhere
    are told, too: what is more than that, the ledger's lock would have cost.
    """
    policy = serveable(make_campus(size))
    other = size.folder / "other"
    other.mkdir(exist_ok=True)
    elsewhere = make_campus(replace(size, folder=other))
    entries = size.rows // 10
    _fill(policy, entries)
    where = f"{entries:,} entries"
    yield Figure("budget show, processor", min(_processor(policy, "show") for _ in range(3)), 2, "s", where)
    with running_server(policy) as (address, _):
        waits = _waits((None, elsewhere, policy), address, 30 * size.repeats)
    for name, (alone, away, beside) in waits.items():
        ratio = _p99(beside) / _p99(alone)
        medians = statistics.median(beside) / statistics.median(alone)
        told = f"p99 {_p99(alone):.1f} and {_p99(beside):.1f} ms, medians {medians:.2f} x; {where}"
        away_told = f"beside that of another ledger {_p99(away) / _p99(alone):.2f} x"
        yield Figure(
            f"{name} answers beside budget show, one after the other, p99",
            ratio,
            1.5,
            "x",
            f"{told}; {away_told}",
        )
    yield Figure("budget verify, processor", _processor(policy, "verify"), None, "s", where)


def _fill(policy: Path, entries: int) -> None:
    """Charge so many entries, a billionth of epsilon each, unless they are there."""
    with closing(open_ledger(load_policy(policy), create=False)) as store:
        there = len(store.log(entries))
        for _ in range(max(0, entries - there) // _AT_ONCE):
            law, charge = Laplace(Fraction(10)), Charge.pure(1)
            wanted = tuple(
                MeasurementClaim((secrets.token_bytes(32),), law, charge, "count") for _ in range(_AT_ONCE)
            )
            reservation = store.reserve(Claim("local", _STORED, wanted, reuse=False))
            store.commit(reservation, [Draw(one.measures, law, secrets.token_bytes(64)) for one in wanted])
            store.tidy()


def _command(policy: Path, name: str) -> list[str]:
    return [sys.executable, "-m", "dpsql.cli", "-P", str(policy), "budget", name]


def _processor(policy: Path, name: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(_command(policy, name), stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _waits(
    policies: tuple[Path | None, ...], address: dict[str, object], number: int
) -> dict[str, tuple[list[float], ...]]:
    """Return the milliseconds of stored and of fresh answers beside the command on each policy, by turns."""
    waits = {name: tuple(list[float]() for _ in policies) for name in ("stored", "fresh")}
    with psycopg.connect(**address, autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute("SET dpsql.epsilon = 0.000001")
        for _ in range(_BLOCKS):
            for place, policy in enumerate(policies):
                with nullcontext() if policy is None else _shown(policy):
                    for name, text, reuse in (("stored", _STORED, "on"), ("fresh", _FRESH, "off")):
                        connection.execute(f"SET dpsql.reuse = {reuse}".encode())
                        connection.execute(text.encode())
                        for _ in range(number):
                            took = milliseconds(partial(_ask, connection, text))
                            waits[name][place].append(took)
    return waits


def _ask(connection: psycopg.Connection[tuple[object, ...]], text: str) -> None:
    connection.execute(text.encode()).fetchall()


@contextmanager
def _shown(policy: Path) -> Iterator[None]:
    """Have `budget show` run, one after the other."""
    is_done = threading.Event()

    def show() -> None:
        while not is_done.is_set():
            subprocess.run(_command(policy, "show"), stdout=subprocess.DEVNULL, check=True)

    shower = threading.Thread(target=show)
    shower.start()
    try:
        yield
    finally:
        is_done.set()
        shower.join()


def _p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100)[98]
