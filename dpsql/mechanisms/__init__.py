"""Exact noise and what is known about it: integers in, integers out; nothing here knows of SQL."""

from __future__ import annotations

from .choice import FIRST_BYTES
from .conversion import delta_of_rho, epsilon_of_rho, pure_epsilon, rho_within
from .epsilon import ATTO, MAX_EPSILON, MIN_EPSILON, NANO, floor_to_nano, parse_epsilon, rho_of_pure
from .laplace_accuracy import bounds_of_exp
from .law import Law
from .laws import Gaussian, Laplace, Rank, Summed, Thresholded, Truncated, UnknownLaw, law_of
from .linear_accuracy import half_width_of
from .noise import Noise, SampledNoise
from .random_source import OS_RANDOM, RandomSource
from .rank_choice import RankChoice, Window, clamp_of, log_above

__all__ = [
    "ATTO",
    "FIRST_BYTES",
    "MAX_EPSILON",
    "MIN_EPSILON",
    "NANO",
    "OS_RANDOM",
    "Gaussian",
    "Laplace",
    "Law",
    "Noise",
    "RandomSource",
    "Rank",
    "RankChoice",
    "SampledNoise",
    "Summed",
    "Thresholded",
    "Truncated",
    "UnknownLaw",
    "Window",
    "bounds_of_exp",
    "clamp_of",
    "delta_of_rho",
    "epsilon_of_rho",
    "floor_to_nano",
    "half_width_of",
    "law_of",
    "log_above",
    "parse_epsilon",
    "pure_epsilon",
    "rho_of_pure",
    "rho_within",
]
