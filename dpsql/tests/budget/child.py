"""A separate process for the crash and race tests: `python -m dpsql.tests.budget.child JOB LEDGER …`."""

from __future__ import annotations

import os
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

from dpsql.budget import Caps, SqliteStore
from dpsql.errors import BudgetExhausted, LedgerError

from .samples import CAPS, claim, draw, key, open_store, vector


def die_at(path: Path, fatal: str) -> None:
    """Reserve and commit two vectors, and be killed on arriving at the step `fatal`."""

    def step(name: str) -> None:
        if name == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    store = SqliteStore.open(path, "campus", CAPS, True, _step=step)
    reservation = store.reserve(claim(vector("a"), vector("b", delta=5)))
    store.commit(reservation, [draw("a"), draw("b")])


def hold(path: Path) -> None:
    """Reserve "a", say so, and wait to be killed."""
    store = open_store(path)
    store.reserve(claim(vector("a")))
    print("reserved", flush=True)
    time.sleep(600)


def race(path: Path, rounds: int) -> None:
    """In each round, at a word from the parent, try to reserve one epsilon; report who won."""
    store = open_store(path, Caps(1, 0, {}), create=False)
    for number in range(rounds):
        sys.stdin.readline()
        try:
            store.reserve(claim(vector(f"{os.getpid()}-{number}", epsilon=1)))
            print("won", flush=True)
        except BudgetExhausted:
            print("lost", flush=True)


def share(path: Path, rounds: int) -> None:
    """In each round, ask what the other process asks at the same time, and report the bytes."""
    store = open_store(path, create=False)
    for number in range(rounds):
        sys.stdin.readline()
        name = f"tile {number}"
        reservation = store.reserve(claim(vector(name, epsilon=1)))
        if reservation.to_draw:
            time.sleep(0.005)
            store.commit(reservation, [draw(name, payload=os.urandom(8))])
        found = store.lookup([key(name)], Fraction(10))
        assert found is not None
        hit = reservation.found[0]
        assert hit is None or hit == found
        print(len(reservation.to_draw), found[0].payload.hex(), flush=True)


def grant(path: Path, fatal: str) -> None:
    """Grant one epsilon and be killed at a step."""

    def step(name: str) -> None:
        if name == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    SqliteStore.open(path, "campus", CAPS, True, _step=step).grant(None, 10**9, "owner")


def fork(path: Path) -> None:
    """Use an open ledger in a forked process, and print how that ended."""
    store = open_store(path)
    if os.fork() == 0:
        try:
            store.spent()
        except LedgerError as error:
            print(error.message, flush=True)
        os._exit(0)
    os.wait()
    store.close()


def main() -> None:
    job, path, *rest = sys.argv[1:]
    match job:
        case "die_at":
            die_at(Path(path), rest[0])
        case "grant":
            grant(Path(path), rest[0])
        case "fork":
            fork(Path(path))
        case "visit":
            open_store(Path(path), create=False).close()
        case "hold":
            hold(Path(path))
        case "race":
            race(Path(path), int(rest[0]))
        case "share":
            share(Path(path), int(rest[0]))


if __name__ == "__main__":
    main()
