"""The rank of a value that the exponential mechanism chose: how far it may be from the wanted one.

Candidates c miss the wanted rank by d(c), in rows; Pr[c] is proportional to exp(-d(c) / scale). Of N candidates, one
of which misses by nothing, Pr[d >= r] <= N·exp(-r / scale) (Dwork, Roth 2014, corollary 3.12; soundness.md 1.20).

Where it is known how many rows there are between some candidates, most of the N are known to miss by more, or by less:
then r is smaller (`Blocks`, soundness.md 1.43).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from ..choice import CLAMP_BITS, log_above
from ..discrete_laplace import first_of
from ..law import Independent, Law
from ..uniform import RandomSource
from .weighted import bound_of, sum_of

_ROUNDED = 1 + 1e-9
"""More than sums of doubles are off by."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """All candidates in ascending blocks, and where the rows of these are.

    `candidates`: how many a block has, shape (blocks,), positive. `least`, `most`: the rows below a block less the
    wanted rank lie between these, shape (blocks + 1,), the last below the end of all; in rows. `misses`: the most that
    they do not all with probability.
    """

    candidates: npt.NDArray[np.float64]
    least: npt.NDArray[np.float64]
    most: npt.NDArray[np.float64]
    misses: Fraction

    @classmethod
    def of(
        cls, candidates: Sequence[int], counted: Sequence[int], others: int | None, law: Law, share: Fraction,
        misses: Fraction,
    ) -> Blocks:  # fmt: skip
        """Return what noisy counts of the rows of each block say, all of it but for a probability of `misses`.

        `others`: how many rows were counted that may be anywhere, with the same noise; None: there are none. `law`: of
        the noise on each, independent; `share`: the wanted one.
        """
        p, q, size = share.numerator, share.denominator, len(counted)
        each = misses / (size + 2)
        below = np.concatenate([[0.0], np.cumsum(np.array(counted, dtype=np.float64))])
        off = _deviations((law,), p, q, size, each)
        anywhere = 0 if others is None else max(0, others + law.half_width(each))
        score = q * below - p * below[-1]
        return cls(
            np.array(candidates, dtype=np.float64),
            (score - off - p * anywhere) / q,
            (score + off + (q - p) * anywhere) / q,
            misses,
        )

    @staticmethod
    def left_of(beta: Fraction) -> Fraction:
        """Return which part of all misses is left to blocks: what the bound of a choice alone has to spare (1.43)."""
        return beta**2 / (1 + beta)


@lru_cache(maxsize=64)
def _deviations(noise: tuple[Law], p: int, q: int, size: int, beta: Fraction) -> npt.NDArray[np.float64]:
    """Return for each k of 0 .. `size` an m with Pr[|sum| > m] <= `beta` of so many independent noises of which the
    first k weigh q - p and the others p; shape (size + 1,)."""
    (law,) = noise
    if q - p == p:  # by its own law, the same for each k
        return np.full(size + 1, float(p * sum_of(law, size).half_width(beta)))
    alone = law.half_width(beta / size)
    found = np.empty(size + 1)
    for k in range(size + 1):
        parts = [(law, Fraction(weight), count) for weight, count in ((q - p, k), (p, size - k)) if count]
        bound = bound_of(parts, beta, most=0)
        found[k] = alone * (k * (q - p) + (size - k) * p) if bound is None else bound
    return found


@dataclass(frozen=True, slots=True)
class Rank(Independent):
    """See `Law`; all figures are in rows. Raises TypeError unless the scale is a Fraction, ValueError out of range."""

    family: ClassVar[str] = "exponential mechanism"
    name: ClassVar[str] = "rank"
    is_additive: ClassVar[bool] = False
    scale: Fraction
    candidates: int

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction) or type(self.candidates) is not int:
            raise TypeError("a scale is an exact Fraction, and candidates are counted")
        if self.scale <= 0 or self.candidates < 1:
            raise ValueError("a scale is positive, and there is a candidate")

    @property
    def spread(self) -> Fraction:
        """An upper bound of the mean of d²: ∫ 2r·min(1, N·exp(-r/b)) dr = b²·(l² + 2l + 2), l = ln N."""
        log = log_above(Fraction(self.candidates))
        return self.scale**2 * (log**2 + 2 * log + 2)

    def half_width(self, beta: Fraction) -> int:
        """Return an r with Pr[d > r] <= `beta`. ValueError below 2^-40, where scores are clamped, and from 1 on."""
        if not Fraction(1, 2**CLAMP_BITS) <= beta < 1:
            raise ValueError("a tail probability of a choice is from 2^-40 to 1")
        return math.ceil(self.scale * log_above(self.candidates / beta))

    def half_widths_in(self, told: Sequence[Blocks], beta: Fraction) -> list[int]:
        """Return of each of some blocks an r with Pr[d > r] <= `beta` for one choice among all candidates, whichever of
        these is taken: never more than `half_width` (soundness.md 1.43).

        ValueError as there, where they are blocks of other candidates, or miss more often than `left_of` together.
        """
        misses = sum((one.misses for one in told), Fraction(0))
        if misses > Blocks.left_of(beta) or any(one.candidates.sum() != self.candidates for one in told):
            raise ValueError("blocks hold all candidates, and what is left to them")
        return [self._half_width_in(one, beta, beta - misses) for one in told]

    def _half_width_in(self, blocks: Blocks, beta: Fraction, left: Fraction) -> int:
        scale = float(self.scale)
        least = np.maximum.accumulate(blocks.least)
        most = np.minimum.accumulate(blocks.most[::-1])[::-1]
        near = np.maximum(0, np.maximum(least[:-1], -most[1:])) / scale
        far = np.maximum(0, np.maximum(most[1:], -least[:-1])) / scale
        counts = np.log(blocks.candidates)
        whole = max(0.0, float(np.logaddexp.reduce(counts - far)))

        def is_enough(rows: int) -> bool:
            off = counts - np.maximum(near, rows / scale) - whole
            missed = float(np.exp(off[far > rows / scale]).sum()) + 2.0**-CLAMP_BITS
            return missed * _ROUNDED <= left

        return first_of(is_enough, 0, self.half_width(beta))

    def upper_quantile(self, probability: Fraction) -> int:
        return self.half_width(probability) + 1

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        raise TypeError("what is known of a chosen value is its rank: no noise is on it")

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        raise TypeError("a choice adds no noise: it is made from the rows near the wanted rank")
