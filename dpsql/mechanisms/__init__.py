"""Exact noise and what is known about it: integers in, integers out; nothing here knows of SQL."""

from __future__ import annotations

from .choice import FIRST_BYTES, FlipChoice, first_bytes_of
from .conversion import delta_of_rho, epsilon_of_rho, pure_epsilon, rho_within
from .epsilon import ATTO, MAX_EPSILON, MIN_EPSILON, NANO, floor_to_nano, parse_epsilon, rho_of_pure
from .laplace_accuracy import bounds_of_exp
from .law import Law, half_width_of
from .laws import (
    Assembled,
    Box,
    Coordinate,
    Fitted,
    Gaussian,
    Gaussians,
    Laplace,
    Mix,
    Rank,
    Summed,
    Thresholded,
    Truncated,
    UnknownLaw,
    Vector,
    law_of,
    mean_of,
    precision_of,
)
from .noise import Noise, SampledNoise
from .randomized_response import (
    Channel,
    exact_parameter,
    is_one_report_better,
    report,
    report_bits,
    unary_bit,
)
from .rank_choice import HASH_BITS, Ask, Near, RankChoice, RankSplit, Window, clamp_of, log_above
from .top_up import TopUp
from .uniform import OS_RANDOM, RandomSource

__all__ = [
    "ATTO",
    "FIRST_BYTES",
    "HASH_BITS",
    "MAX_EPSILON",
    "MIN_EPSILON",
    "NANO",
    "OS_RANDOM",
    "Ask",
    "Assembled",
    "Box",
    "Channel",
    "Coordinate",
    "Fitted",
    "FlipChoice",
    "Gaussian",
    "Gaussians",
    "Laplace",
    "Law",
    "Mix",
    "Near",
    "Noise",
    "RandomSource",
    "Rank",
    "RankChoice",
    "RankSplit",
    "SampledNoise",
    "Summed",
    "Thresholded",
    "TopUp",
    "Truncated",
    "UnknownLaw",
    "Vector",
    "Window",
    "bounds_of_exp",
    "clamp_of",
    "delta_of_rho",
    "epsilon_of_rho",
    "exact_parameter",
    "first_bytes_of",
    "floor_to_nano",
    "half_width_of",
    "is_one_report_better",
    "law_of",
    "log_above",
    "mean_of",
    "parse_epsilon",
    "precision_of",
    "pure_epsilon",
    "report",
    "report_bits",
    "rho_of_pure",
    "rho_within",
    "unary_bit",
]
