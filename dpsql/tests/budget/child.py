"""A separate process for the crash and race tests: `python -m dpsql.tests.budget.child JOB URL LOG ACCOUNTING …`."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dpsql.budget import Caps
from dpsql.errors import BudgetExhausted, LedgerError
from dpsql.mechanisms import Laplace
from dpsql.policy import Accounting

from .samples import EPSILON, Place, claim, draw, key, measurement, proved


def die_at(place: Place, fatal: str) -> None:
    """Reserve and commit two measurements, and be killed on arriving at the step `fatal`."""
    store = place.open(step=lambda name: _die_if(name == fatal))
    reservation = store.reserve(claim(proved(measurement("a")), proved(measurement("b", delta=5))))
    store.commit(reservation, [draw("a"), draw("b")])


def wish(place: Place, fatal: str) -> None:
    """Ask for more of what is stored, and be killed on arriving at the step `fatal`."""
    from .test_wish import pay, wanted

    pay(place.open(create=False, step=lambda name: _die_if(name == fatal)), wanted(125))


def share_wish(place: Place, rounds: int) -> None:
    """In each round, ask for more of what the other process asks for more of, and report the charge and what is told."""
    from .test_wish import claim, finish, wanted

    store = place.open(create=False)
    for number in range(rounds):
        rho = int(sys.stdin.readline())
        asked = claim(wanted(rho, f"tile {number}"))
        reservation = store.reserve(asked)
        if reservation.to_draw:
            time.sleep(0.005)
        finish(store, asked, reservation, os.urandom(8))
        found = store.lookup(asked.measurements[0].measures, asked.measurements[0].law)
        assert found is not None
        told = " ".join(sorted(one.payload.hex() for one in found[0]))
        print(reservation.charge.rho_atto, told, flush=True)


def _die_if(is_time: bool) -> None:
    if is_time:
        os.kill(os.getpid(), signal.SIGKILL)


def hold(place: Place) -> None:
    """Reserve "a", say so, and wait to be killed."""
    store = place.open()
    store.reserve(claim(measurement("a")))
    print("reserved", flush=True)
    time.sleep(600)


def race(place: Place, rounds: int) -> None:
    """In each round, at a word from the parent, try to reserve the epsilon that it says; report who won."""
    caps = Caps(1, 0, {}) if place.accounting is Accounting.PURE else Caps(EPSILON, 10**12, {})
    store = place.open(caps, create=False)
    for number in range(rounds):
        epsilon = int(sys.stdin.readline())
        try:
            store.reserve(claim(measurement(f"{os.getpid()}-{number}", epsilon=epsilon)))
            print("won", flush=True)
        except BudgetExhausted:
            print("lost", flush=True)


def share(place: Place, rounds: int) -> None:
    """In each round, ask what the other process asks at the same time, and report the bytes."""
    store = place.open(create=False)
    for number in range(rounds):
        sys.stdin.readline()
        name = f"tile {number}"
        reservation = store.reserve(claim(measurement(name, epsilon=1)))
        if reservation.to_draw:
            time.sleep(0.005)
            store.commit(reservation, [draw(name, payload=os.urandom(8))])
        found = store.lookup([key(name)], Laplace(Fraction(10)))
        assert found is not None
        hit = reservation.found[0]
        assert hit is None or hit == found
        print(len(reservation.to_draw), found[0][0].payload.hex(), flush=True)


def grant(place: Place, fatal: str) -> None:
    """Grant one epsilon and be killed at a step."""
    place.open(step=lambda name: _die_if(name == fatal)).grant(None, 10**9, "owner")


def move(place: Place, fatal: str) -> None:
    """Move the ledger to zCDP and be killed at a step."""
    place.open(step=lambda name: _die_if(name == fatal)).move_to_zcdp(5 * 10**11, "owner")


def divide(place: Place, fatal: str) -> None:
    """Divide the ledger into months and be killed at a step."""
    store = place.open(step=lambda name: _die_if(name == fatal))
    store.divide(replace(place, is_sliced=True).promise, is_all=False, by="owner")


def rotate(place: Place, fatal: str) -> None:
    """Seal the log's file and be killed at a step."""
    place.open(step=lambda name: _die_if(name == fatal)).rotate()


def work(place: Place, seed: str, fatal: int) -> None:
    """Charge, store, seal and compare for ever, and be killed at the step of a number; say what is durable, when it is."""
    from dpsql.budget import ledger

    ledger._STRIDE, ledger.SEGMENT_BYTES = 1, 1  # a checkpoint and a new file at each look
    steps = itertools.count(1)
    store = place.open(create=False, step=lambda _: _die_if(next(steps) == fatal))
    for number in itertools.count():
        name = f"{seed} {number}"
        reservation = store.reserve(claim(proved(measurement(name, epsilon=1))))
        print("charged", name, flush=True)
        store.commit(reservation, [draw(name)])
        print("stored", name, flush=True)
        store.tidy()


def fork(place: Place) -> None:
    """Use an open ledger in a forked process, and print how that ended; it is still sound in this one."""
    store = place.open()
    if os.fork() == 0:
        try:
            store.spent()
        except LedgerError as error:
            print(error.message, flush=True)
        os._exit(0)
    os.wait()
    store.reserve(claim(measurement("a", epsilon=7)))
    print(store.spent().epsilon_nano, flush=True)
    store.close()


def main() -> None:
    job, url, log, accounting, *rest = sys.argv[1:]
    kind, _, by_month = accounting.partition(" ")
    place = Place(url, Path(log), Accounting(kind), bool(by_month))
    match job:
        case "die_at":
            die_at(place, rest[0])
        case "wish":
            wish(place, rest[0])
        case "share_wish":
            share_wish(place, int(rest[0]))
        case "grant":
            grant(place, rest[0])
        case "move":
            move(place, rest[0])
        case "divide":
            divide(place, rest[0])
        case "rotate":
            rotate(place, rest[0])
        case "work":
            work(place, rest[0], int(rest[1]))
        case "fork":
            fork(place)
        case "visit":
            place.open(create=False).close()
        case "hold":
            hold(place)
        case "race":
            race(place, int(rest[0]))
        case "share":
            share(place, int(rest[0]))


if __name__ == "__main__":
    main()
