"""Bars of ranks by stored histograms hold as they say, over many histograms and the exact law of the choice (1.43)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.mechanisms import OS_RANDOM, Blocks, Gaussian, Laplace, Law, Rank
from dpsql.mechanisms.laws import rank
from dpsql.tests.support.length import tried

from .planting import plant

Array = npt.NDArray[Any]
Patch = pytest.MonkeyPatch
BETA = Fraction(1, 20)
LEFT = Blocks.left_of(BETA)
FINE, ROUGH, NORMAL = Laplace(Fraction(1)), Laplace(Fraction(10)), Gaussian(Fraction(4))


def spread(candidates: int, each: int) -> Array:
    """So many rows at each candidate."""
    return np.full(candidates, each)


def heaped(candidates: int, heap: int, beside: int) -> Array:
    """A heap at a candidate in the middle, and as many rows at either end as leave the others to miss by this many."""
    rows = np.zeros(candidates, dtype=np.int64)
    rows[candidates // 2] = heap
    rows[0] = rows[-1] = beside
    return rows


def long_tail(candidates: int, rows: int) -> Array:
    """Most rows among a few candidates at the low end."""
    places = np.floor(np.geomspace(1, candidates, rows)).astype(np.int64) - 1
    return np.bincount(places, minlength=candidates)


DATA = {
    "dense": spread(1000, 3), "thin": spread(4000, 1) * (np.arange(4000) % 40 == 0), "heap": heaped(3000, 260, 900),
    "light heap": heaped(3000, 130, 900), "tail": long_tail(20_000, 2500), "few": long_tail(500, 30),
}  # fmt: skip
"""Rows at each candidate."""
BEYOND = np.concatenate([spread(400, 6), heaped(600, 800, 0)])
BEYOND[-1] += 2400
"""The median is in the heap, where all others miss by 400 rows; of those in the listed places it is none."""
SHARES = (Fraction(1, 2), Fraction(9, 10), Fraction(1, 4))


def missed(rows: Array, law: Rank, share: Fraction) -> tuple[Array, Array]:
    """Return how far each candidate is off the rank, in rows, and how likely it comes out: the law of 1.20."""
    upto = np.cumsum(rows)
    wanted = float(share * int(upto[-1]))
    off = np.maximum(0, np.maximum(upto - rows - wanted, wanted - upto))
    chances = np.exp(-off / float(law.scale))
    return off, chances / chances.sum()


def bars(
    rows: Array, law: Rank, share: Fraction, noise: Law, sizes: Sequence[int], beyond: int = 0
) -> Callable[[], int]:
    """Return what draws a histogram of blocks and returns the bar by it. `beyond`: rows that stand at the highest
    candidate and are counted among the others, as those are that have no listed value."""
    ends = np.cumsum([0, *sizes])
    counts = np.array([rows[a:b].sum() for a, b in itertools.pairwise(ends)])
    counts[-1] -= beyond

    def draw() -> int:
        noises = noise.draw(len(sizes) + 1, OS_RANDOM)
        counted = (counts + noises[:-1]).tolist()
        others = int(beyond + noises[-1]) if beyond else None
        (found,) = law.half_widths_in([Blocks.of(sizes, counted, others, noise, share, LEFT)], BETA)
        return found

    return draw


def coverage(
    rows: Array,
    share: Fraction,
    noise: Law,
    blocks: int,
    *,
    beyond: int = 0,
    scale: int = 10,
    draws: int = 400,
) -> tuple[float, float]:
    """Return how often the rank is within its bar, over histograms, and the mean bar as a part of that without one."""
    law = Rank(Fraction(scale), len(rows))
    off, chances = missed(rows, law, share)
    size = len(rows) // blocks
    draw = bars(rows, law, share, noise, [size] * (blocks - 1) + [len(rows) - size * (blocks - 1)], beyond)
    alone = law.half_width(BETA)
    found = [draw() for _ in range(draws)]
    assert max(found) <= alone
    held = [chances[off <= one].sum() for one in found]
    return float(np.mean(held)), float(np.mean(found)) / alone


def check_holds(draws: int) -> None:
    """Every one of them is a proven bound, for any data."""
    for rows in DATA.values():
        for share in SHARES:
            for noise in (FINE, ROUGH, NORMAL):
                held, _ = coverage(rows, share, noise, 20, draws=draws)
                assert held >= 0.95, (len(rows), share, noise, held)
    for noise in (FINE, ROUGH, NORMAL):
        held, _ = coverage(spread(400, 20), Fraction(1, 2), noise, 400, scale=10, draws=draws)
        assert held >= 0.95, (noise, held)
    held, _ = coverage(BEYOND, Fraction(1, 2), FINE, 100, beyond=2400, scale=80, draws=draws)
    assert held >= 0.95, held
    held, _ = coverage(DATA["few"], Fraction(1, 2), NORMAL, 20, draws=1000)  # the edges are hardly told here
    assert held >= 0.95, held


def test_bars_by_histograms_hold_for_all_data() -> None:
    check_holds(tried(20, 2000))


@pytest.mark.parametrize("share", SHARES)
def test_where_each_value_is_counted_a_bar_is_hardly_wider_than_it_has_to_be(share: Fraction) -> None:
    """93 to 99 % of values are within it, and it is less than half of the one that knows nothing of the data."""
    held, part = coverage(spread(400, 20), share, FINE, 400, scale=200, draws=tried(100, 2000))
    assert 0.93 <= held <= 0.99
    assert part < 0.5


def test_a_bar_by_no_blocks_is_the_one_of_the_choice_alone() -> None:
    law = Rank(Fraction(10), 1000)
    one = Blocks.of([1000], [10**6], None, FINE, Fraction(1, 2), LEFT)
    assert law.half_widths_in([one], BETA) == [law.half_width(BETA)]
    with pytest.raises(ValueError, match="all candidates"):
        Rank(Fraction(10), 999).half_widths_in([one], BETA)
    with pytest.raises(ValueError, match="what is left"):
        law.half_widths_in([one, one], BETA)


FAULTS = {
    "the noise is left out": (Blocks.of.__func__, ("(score - off - p", "(score - p"), ("(score + off + (", "(score + (")),
    "rows that may be anywhere": (Blocks.of.__func__, ("max(0, others + law.half_width(each))", "0")),
    "the whole is made of what is near": (Rank._half_width_in, ("counts - far", "counts - near")),
    "a block's other end": (Rank._half_width_in, ("-most[1:]", "-most[:-1]")),
    "only what is near can be far off": (Rank._half_width_in, ("np.exp(off[far > ", "np.exp(off[near > ")),
    "edges are one noise": (rank._deviations.__wrapped__, ("sum_of(law, size)", "law")),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_mutant_is_seen(name: str, monkeypatch: Patch) -> None:
    rank._deviations.cache_clear()
    function, *pieces = FAULTS[name]
    plant(monkeypatch, function, *pieces)
    with pytest.raises(AssertionError):
        check_holds(20)
    rank._deviations.cache_clear()
