"""Choices by rank, and of the largest groups: how far off, how many a second, what queries take; and joint draws."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks import owner_bounds, top_groups
from benchmarks.dataset import open_bench
from benchmarks.figure import Figure, Size, Times, compare
from benchmarks.joint import measure_joint
from dpsql.mechanisms import Near, RankChoice, RankSplit, SampledNoise, Window
from dpsql.mechanisms.choice import FIRST_BYTES, clamp_of
from dpsql.plan.measures.ranks import split_of

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
    """Yield errors of ranks and largest groups, choices a second, ratios to the engine's own medians and counts."""
    yield from _rank_errors(size)
    yield from top_groups.measure(size)
    yield from _split_errors(size)
    yield _choices(size)
    yield from owner_bounds.measure()
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


def _normal(random: np.random.Generator) -> Values:
    return np.clip(np.round(random.normal(_DOMAIN / 2, _DOMAIN / 64, 1_000)), 0, _DOMAIN).astype(np.int64)


def _ages(random: np.random.Generator) -> Values:
    return np.clip(np.round(random.gamma(4, 10, 20_000)), 0, 120).astype(np.int64)


def _many(random: np.random.Generator) -> Values:
    return random.integers(0, _DOMAIN, 100_000)


_SPLITS: tuple[tuple[str, Callable[[np.random.Generator], Values], int, str, int, float], ...] = (
    ("n = 1,000 on 2^32", _uniform, _DOMAIN, "1", 3, 2.5),
    ("n = 1,000 on 2^32", _uniform, _DOMAIN, "1", 9, 6.0),
    ("n = 1,000 on 2^32", _uniform, _DOMAIN, "1", 19, 7.4),
    ("n = 1,000, normal", _normal, _DOMAIN, "0.5", 9, 12.0),
    ("n = 100,000 on 2^32", _many, _DOMAIN, "0.1", 3, 21.0),
    ("n = 100,000 on 2^32", _many, _DOMAIN, "0.1", 9, 53.0),
    ("gpa, n = 20,000", _gpa, 200, "0.1", 9, 18.0),
    ("gpa, n = 20,000", _gpa, 200, "1", 9, 0.0),
    ("ages, n = 20,000", _ages, 120, "0.1", 9, 3.0),
    ("ages, n = 20,000", _ages, 120, "1", 9, 0.0),
    ("60 % at one value, n = 20,000", _tied, 200, "0.1", 9, 17.0),
    ("60 % at one value, n = 20,000", _tied, 200, "1", 9, 2.0),
)
"""Data, the lattice's width, epsilon, how many fractions, and the mean rank error of the prototypes over them all."""


def _split_errors(size: Size) -> Iterator[Figure]:
    """Yield how far off several fractions of the same rows are, drawn from one another."""
    draws = max(10, size.draws // 40_000)
    for name, make, width, epsilon, count, prototype in _SPLITS:
        values = make(np.random.default_rng(7))
        shares = tuple(Fraction(i, count + 1) for i in range(1, count + 1))
        split = split_of(shares, width, count.bit_length() / Fraction(epsilon))
        found = _errors_of_all(values, split, draws)
        spread = statistics.stdev(found) / math.sqrt(draws)
        yield Figure(
            f"mean rank error, {name}, epsilon {epsilon}, {count} fractions",
            statistics.fmean(found), 1.1 * prototype + 1 + 3 * spread, "rows",
        )  # fmt: skip


def _errors_of_all(values: Values, split: RankSplit, draws: int) -> list[float]:
    """Return the mean over the fractions of what the chosen values miss their ranks by, draw by draw."""
    random = np.random.default_rng(11)
    hashes = random.integers(0, 2**split.hash_bits, len(values))
    places, counts = np.unique(((values >> split.shift) << split.hash_bits) + hashes, return_counts=True)
    less = np.cumsum(counts) - counts
    near = np.zeros(len(places), dtype=bool)
    for one in split.read:
        centre = one.p * len(values) + one.offset
        near |= (one.q * (less + counts) - centre > -one.clamp) & (one.q * less - centre < one.clamp)
    window = Window(places[near].tolist(), less[near].tolist(), counts[near].tolist(), len(values))
    noise, ordered, found = SampledNoise(), np.sort(values), []

    def pick(_: int, intervals: list[int], misses: list[int], gamma: Fraction) -> tuple[int, int]:
        return noise.choose(intervals, misses, gamma, os.urandom(FIRST_BYTES))

    def ask(low: int, high: int, wanted: tuple[Near, ...]) -> Window:
        inside = (places >= low) & (places <= high)
        kept = counts[inside]
        below = np.cumsum(kept) - kept
        return Window(places[inside].tolist(), below.tolist(), kept.tolist(), int(kept.sum()))

    for _ in range(draws):
        missed = []
        for share, value in zip(split.shares, split.values(window, pick, ask), strict=True):
            below, upto = np.searchsorted(ordered, [value, value + (1 << split.shift)])
            wanted = float(share * len(values))
            missed.append(max(0.0, float(below) - wanted, wanted - float(upto)))
        found.append(statistics.fmean(missed))
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

_TWENTIETHS = ", ".join(f"{i / 20}" for i in range(1, 20))
_QUERIES = (
    ("rows that are persons, ungrouped", "SELECT MEDIAN(real) FROM person", "SELECT median(real) FROM person", 2.0),
    ("rows that are persons, ungrouped, 0.9",
     "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY real) FROM person",
     "SELECT quantile_cont(real, 0.9) FROM person", 2.0),
    ("rows that are persons, three quartiles",
     "SELECT PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY real) FROM person",
     "SELECT quantile_cont(real, [0.25, 0.5, 0.75]) FROM person", 2.0),
    ("rows that are persons, nineteen fractions",
     f"SELECT PERCENTILE_CONT(ARRAY[{_TWENTIETHS}]) WITHIN GROUP (ORDER BY real) FROM person",
     f"SELECT quantile_cont(real, [{_TWENTIETHS}]) FROM person", 2.0),
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
