"""Choices by rank: how far off they are, how many are made in a second, what queries take; and joint draws."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.dataset import open_bench
from benchmarks.figure import Figure, Size, Times, compare
from benchmarks.joint import measure_joint
from dpsql.mechanisms import RankChoice, SampledNoise, Window, clamp_of
from dpsql.mechanisms.choice import FIRST_BYTES

__all__ = ["measure"]

Values = npt.NDArray[np.int64]
_DOMAIN = 2**32


def _uniform(random: np.random.Generator) -> Values:
    return random.integers(0, _DOMAIN, 1_000)


def _gpa(random: np.random.Generator) -> Values:
    return np.clip(np.round(random.normal(110, 45, 20_000)), 0, 200).astype(np.int64)


def _tied(random: np.random.Generator) -> Values:
    """60 % of the rows at one value."""
    return np.where(random.random(20_000) < 0.6, 110, _gpa(random))


_RANKS: tuple[tuple[str, Callable[[np.random.Generator], Values], int, str, float], ...] = (
    ("n = 1,000 on 2^32", _uniform, _DOMAIN + 1, "1", 1.2),
    ("n = 1,000 on 2^32", _uniform, _DOMAIN + 1, "0.1", 12.0),
    ("n = 20,000 on 201 values", _gpa, 201, "1", 0.0),
    ("n = 20,000, 60 % at one value", _tied, 201, "0.1", 0.0),
)
"""Data, candidates, epsilon, and the mean rank error of the prototypes (one fraction)."""
_SHARES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def measure(size: Size) -> Iterator[Figure]:
    """Yield rank errors, choices a second, and ratios to the engine's own medians and counts of people."""
    yield from _rank_errors(size)
    yield _choices(size)
    yield from measure_joint(size)
    yield from _duckdb(size)


# --- how far off ------------------------------------------------------------------------------------------


def _rank_errors(size: Size) -> Iterator[Figure]:
    draws = max(20, size.draws // 5_000)
    for name, make, candidates, epsilon, prototype in _RANKS:
        values = make(np.random.default_rng(7))
        for share in _SHARES:
            found = _errors(values, share, Fraction(epsilon), candidates, draws)
            spread = statistics.stdev(found) / math.sqrt(draws)
            p, q = share.numerator, share.denominator
            flatter = 2 * max(p, q - p) / q  # than for the median, which the prototypes speak of
            yield Figure(
                f"mean rank error, {name}, epsilon {epsilon}, fraction {share}",
                statistics.fmean(found),
                1.1 * prototype * flatter + 1 + 3 * spread,
                "rows",
            )


def _errors(values: Values, share: Fraction, epsilon: Fraction, candidates: int, draws: int) -> list[float]:
    """Return how many ranks the chosen values miss the wanted one by: 0 for all that a value covers."""
    p, q = share.numerator, share.denominator
    scale = Fraction(max(p, q - p)) / epsilon
    choice = RankChoice(candidates, 0, p, q, 0, clamp_of(2 * scale, candidates), 1 / (2 * scale))
    places, counts = np.unique(values, return_counts=True)
    less = np.cumsum(counts) - counts
    centre = p * len(values)
    near = (q * (less + counts) - centre > -choice.clamp) & (q * less - centre < choice.clamp)
    window = Window(places[near].tolist(), less[near].tolist(), counts[near].tolist(), len(values))
    intervals, noise = choice.intervals(window), SampledNoise()
    wanted, found = p * len(values) / q, []
    for _ in range(draws):
        interval, place = noise.choose(*intervals, choice.gamma, os.urandom(FIRST_BYTES))
        value = choice.step(intervals[0], interval, place)
        below, upto = int((values < value).sum()), int((values <= value).sum())
        found.append(max(0.0, below - wanted, wanted - upto))
    return found


def _choices(size: Size) -> Figure:
    noise, count = SampledNoise(), 200
    counts, misses = [1, 5_000_000] * 500, [abs(i - 500) for i in range(1_000)]

    def chosen() -> None:
        for _ in range(count):
            noise.choose(counts, misses, Fraction(1, 20), noise.bits(FIRST_BYTES))

    best = min(Times.of(chosen).processor for _ in range(size.repeats))
    return Figure("choices among 1,000 intervals", count / best * 1000, 1_000, "/s", is_rate=True)


# --- what it takes ----------------------------------------------------------------------------------------

_QUERIES = (
    ("rows that are persons, ungrouped", "SELECT MEDIAN(real) FROM person", "SELECT median(real) FROM person", 2.0),
    ("rows that are persons, ungrouped, 0.9",
     "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY real) FROM person",
     "SELECT quantile_cont(real, 0.9) FROM person", 2.0),
    ("rows that are persons, 1,000 groups", "SELECT whole, MEDIAN(real) FROM person GROUP BY whole",
     "SELECT whole, median(real) FROM person GROUP BY whole", 6.0),
)  # fmt: skip
_OF_VISITS = (
    ("rows that belong to persons", "SELECT MEDIAN(minutes) FROM visit",
     "SELECT COUNT(DISTINCT owner) FROM visit", 4.0),
    ("rows that belong to persons, 12 groups", "SELECT month, MEDIAN(minutes) FROM visit GROUP BY month",
     "SELECT month, COUNT(DISTINCT owner) FROM visit GROUP BY month", 4.0),
)  # fmt: skip


def _duckdb(size: Size) -> Iterator[Figure]:
    for max_groups, queries in ((None, _QUERIES), (20, _OF_VISITS)):
        with open_bench(size, max_groups=max_groups) as bench:
            bench.session.execute("SET dpsql.reuse = off")
            for name, sql, exact, limit in queries:
                raw = partial(Times.of, partial(bench.run_exact, exact))
                ours = partial(Times.of, partial(bench.session.execute, sql))
                raw(), ours()
                found = compare(raw, ours, max(2, size.repeats // 2))
                yield Figure(name, found.ratio, limit, "x", str(found))
