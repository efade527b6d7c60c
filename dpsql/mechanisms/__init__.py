"""Exact noise and what is known about it: integers in, integers out; nothing here knows of SQL."""

from __future__ import annotations

from .epsilon import ATTO, MAX_EPSILON, MIN_EPSILON, NANO, floor_to_nano, parse_epsilon
from .laplace_accuracy import bounds_of_exp
from .law import Law
from .laws import Laplace, Truncated, UnknownLaw, law_of
from .linear_accuracy import Summed, half_width_of
from .noise import Noise, SampledNoise
from .random_source import OS_RANDOM, RandomSource

__all__ = [
    "ATTO",
    "MAX_EPSILON",
    "MIN_EPSILON",
    "NANO",
    "OS_RANDOM",
    "Laplace",
    "Law",
    "Noise",
    "RandomSource",
    "SampledNoise",
    "Summed",
    "Truncated",
    "UnknownLaw",
    "bounds_of_exp",
    "floor_to_nano",
    "half_width_of",
    "law_of",
    "parse_epsilon",
]
