"""Exact noise and what is known about it: integers in, integers out; nothing here knows of SQL."""

from __future__ import annotations

from .discrete_laplace import draw_discrete_laplace
from .epsilon import (
    ATTO,
    MAX_EPSILON,
    MIN_EPSILON,
    NANO,
    floor_to_atto,
    floor_to_nano,
    parse_epsilon,
    rho_atto,
    to_atto_up,
    to_nano_up,
)
from .laplace_accuracy import half_width, tail, two_sided_tail, upper_quantile, variance
from .laplace_sum import tail_of_sum, upper_quantile_of_sum
from .noise import LaplaceNoise, Noise
from .random_source import OS_RANDOM, RandomSource
from .scale import sampled_scale
from .threshold import threshold, threshold_of_sum

__all__ = [
    "ATTO",
    "MAX_EPSILON",
    "MIN_EPSILON",
    "NANO",
    "OS_RANDOM",
    "LaplaceNoise",
    "Noise",
    "RandomSource",
    "draw_discrete_laplace",
    "floor_to_atto",
    "floor_to_nano",
    "half_width",
    "parse_epsilon",
    "rho_atto",
    "sampled_scale",
    "tail",
    "tail_of_sum",
    "threshold",
    "threshold_of_sum",
    "to_atto_up",
    "to_nano_up",
    "two_sided_tail",
    "upper_quantile",
    "upper_quantile_of_sum",
    "variance",
]
