"""Exact noise and what is known about it: integers in, integers out; nothing here knows of SQL."""

from __future__ import annotations

from .choice import FIRST_BYTES
from .epsilon import ATTO, MAX_EPSILON, MIN_EPSILON, NANO, floor_to_nano, parse_epsilon
from .laplace_accuracy import bounds_of_exp
from .law import Law
from .laws import Laplace, Rank, Summed, Truncated, UnknownLaw, law_of
from .linear_accuracy import half_width_of
from .noise import Noise, SampledNoise
from .permute_and_flip import FlipChoice, first_bytes_of
from .random_source import OS_RANDOM, RandomSource
from .rank_choice import Near, RankChoice, Window, clamp_of, log_above
from .rank_splitting import HASH_BITS, Ask, RankSplit

__all__ = [
    "ATTO",
    "FIRST_BYTES",
    "HASH_BITS",
    "MAX_EPSILON",
    "MIN_EPSILON",
    "NANO",
    "OS_RANDOM",
    "Ask",
    "FlipChoice",
    "Laplace",
    "Law",
    "Near",
    "Noise",
    "RandomSource",
    "Rank",
    "RankChoice",
    "RankSplit",
    "SampledNoise",
    "Summed",
    "Truncated",
    "UnknownLaw",
    "Window",
    "bounds_of_exp",
    "clamp_of",
    "first_bytes_of",
    "floor_to_nano",
    "half_width_of",
    "law_of",
    "log_above",
    "parse_epsilon",
]
