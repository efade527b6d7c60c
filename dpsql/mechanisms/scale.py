"""The noise scale that is really sampled for a scale that was asked for.

House rules:

1. A scale is an exact positive Fraction in lattice units: sensitivity / epsilon. Floats are refused.
2. Whatever speaks of the noise (sampler, tails, thresholds, error bars) goes through `sampled_scale`,
   so that all of them speak of the same distribution.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

__all__ = ["sampled_scale"]

_FINE_LIMIT: Final = 2**20


def sampled_scale(scale: Fraction) -> Fraction:
    """Return the scale of the noise drawn for `scale`: itself up to 2^20, above that its ceiling.

    Ensures: the result is >= `scale` (the privacy loss only shrinks), by less than one part in 2^20;
    applying it twice changes nothing. Source: soundness.md 2.2(4).
    Raises TypeError unless `scale` is a Fraction, ValueError unless it is positive.
    """
    if not isinstance(scale, Fraction):
        raise TypeError(f"a noise scale is an exact Fraction, not {type(scale).__name__}")
    if scale <= 0:
        raise ValueError("a noise scale is positive")
    return scale if scale <= _FINE_LIMIT else Fraction(math.ceil(scale))
