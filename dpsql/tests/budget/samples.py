"""Claims and draws that the budget tests share."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path

from dpsql.budget import Caps, Charge, Claim, Draw, Reservation, SqliteStore, VectorClaim

EPSILON = 10**9
ROOT = Path(__file__).resolve().parents[3]
"""The folder that holds the package, where child processes start."""

CAPS = Caps(10 * EPSILON, 10**12, {"alice": 3 * EPSILON, "bob": None})


def key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def vector(
    *names: str, scale: Fraction | int = 10, epsilon: int = EPSILON // 10, delta: int = 0
) -> VectorClaim:
    return VectorClaim(tuple(map(key, names)), Fraction(scale), Charge(epsilon, delta), f"{names} at {scale}")


def claim(*vectors: VectorClaim, analyst: str = "alice", reuse: bool = True) -> Claim:
    return Claim(analyst, "SELECT 1", vectors, reuse)


def draw(*names: str, scale: Fraction | int = 10, payload: bytes = b"noisy") -> Draw:
    return Draw(tuple(map(key, names)), Fraction(scale), payload)


def open_store(path: Path, caps: Caps = CAPS, create: bool = True) -> SqliteStore:
    return SqliteStore.open(path, "campus", caps, create)


def buy(
    store: SqliteStore,
    *names: str,
    scale: Fraction | int = 10,
    epsilon: int = EPSILON // 10,
    delta: int = 0,
    reuse: bool = True,
    payload: bytes = b"noisy",
) -> Reservation:
    """Reserve and commit one vector that must be drawn."""
    wanted = vector(*names, scale=scale, epsilon=epsilon, delta=delta)
    reservation = store.reserve(claim(wanted, reuse=reuse))
    assert reservation.found == (None,)
    store.commit(reservation, [draw(*names, scale=scale, payload=payload)])
    return reservation
