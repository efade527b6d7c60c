"""`dpsql bounds`: how far off a COUNT is under the `max_rows` that it chooses, beside the best one of its grid.

The error is exact: the law of the choice is enumerated, and of a bound M the noise is √2·M/epsilon and the rest is
what M leaves out. `paid` is the choice's part of the price; the command gives it a quarter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from benchmarks.figure import Figure
from dpsql.mechanisms import RankChoice, Window
from dpsql.plan.measures.measurements import Bounding, Mask
from dpsql.plan.measures.ranks import GRID, RankMeasurement, left_above, people_above
from dpsql.relation.intervals import Lattice

__all__ = ["measure"]

Counts = npt.NDArray[np.int64]


def _geometric(random: np.random.Generator, people: int) -> Counts:
    return random.geometric(0.2, people) - 1


def _lognormal(random: np.random.Generator, people: int) -> Counts:
    return np.floor(random.lognormal(1, 1.5, people)).astype(np.int64)


def _zipf(random: np.random.Generator, people: int) -> Counts:
    return np.minimum(random.zipf(2, people), 10_000)


_DATA = (
    ("geometric, 5,000 people", _geometric, 5_000, 0.036),
    ("geometric, 100,000 people", _geometric, 100_000, 0.0017),
    ("Zipf 2, 100,000 people", _zipf, 100_000, 0.27),
    ("lognormal, 5,000 people", _lognormal, 5_000, 0.14),
    ("lognormal, 100,000 people", _lognormal, 100_000, 0.022),
)
"""Rows a person, and the error of the prototype, at epsilon 0.1 for the choice and for later questions."""


def measure() -> Iterator[Figure]:
    """Yield relative root mean squared errors of a COUNT under the chosen bound."""
    for name, make, people, prototype in _DATA:
        counts = make(np.random.default_rng(7), people)
        for paid, later in (("0.1", "0.1"), ("0.05", "0.1"), ("0.1", "1")):
            error, best = _errors(counts, Fraction(paid), Fraction(later))
            yield Figure(
                f"COUNT under a max_rows that was paid {paid} for, at epsilon {later}, {name}",
                error,
                1.1 * prototype if (paid, later) == ("0.1", "0.1") else None,
                "of the count",
                f"best of the grid {best:.3g}",
            )


def _errors(counts: Counts, paid: Fraction, later: Fraction) -> tuple[float, float]:
    """Return the error under the bound that comes out, and under the best bound of the grid."""
    squares = [
        2 * (value / float(later)) ** 2 + float(np.maximum(counts - value, 0).sum()) ** 2 for value in GRID
    ]
    chances = _law(_choice(paid, later), counts[counts > 0])
    mean = math.fsum(chance * square for chance, square in zip(chances, squares, strict=True))
    return math.sqrt(mean) / counts.sum(), math.sqrt(min(squares)) / counts.sum()


def _choice(paid: Fraction, later: Fraction) -> RankChoice:
    alone = Bounding(1, 1, 1, per_row=True, ranked=False, replace_one=False, grouped=False)
    last = len(GRID) - 1
    lattice = Lattice(0, last, Fraction(1), Fraction(0), Fraction(last), exact=True)
    largest = RankMeasurement(None, lattice, (Mask(()),), False, 0, alone, Fraction(1))
    return people_above(largest, left_above(later, 1)).choice(paid)


def _law(choice: RankChoice, counts: Counts) -> list[float]:
    """Return the probability of each place of the grid."""
    places = np.minimum(np.searchsorted(GRID, counts), len(GRID) - 1)
    found, weights = np.unique(places, return_counts=True)
    window = Window(found.tolist(), (np.cumsum(weights) - weights).tolist(), weights.tolist(), len(counts))
    sizes, misses = choice.intervals(window)
    spread = [miss for size, miss in zip(sizes, misses, strict=True) for _ in range(size)]
    raw = [math.exp(-float(choice.gamma) * miss) for miss in spread]
    return [weight / math.fsum(raw) for weight in raw]
