"""Exact noise and what is known about it: integers in, integers out; nothing here knows of SQL."""

from __future__ import annotations

from .choice import FIRST_BYTES
from .epsilon import ATTO, MAX_EPSILON, MIN_EPSILON, NANO, floor_to_nano, parse_epsilon
from .law import Law
from .laws import Laplace, Rank, law_of
from .noise import Noise, SampledNoise
from .random_source import OS_RANDOM, RandomSource
from .rank_choice import RankChoice, Window, clamp_of, log_above
from .threshold import threshold

__all__ = [
    "ATTO",
    "FIRST_BYTES",
    "MAX_EPSILON",
    "MIN_EPSILON",
    "NANO",
    "OS_RANDOM",
    "Laplace",
    "Law",
    "Noise",
    "RandomSource",
    "Rank",
    "RankChoice",
    "SampledNoise",
    "Window",
    "clamp_of",
    "floor_to_nano",
    "law_of",
    "log_above",
    "parse_epsilon",
    "threshold",
]
