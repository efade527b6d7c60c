"""Exact noise and what is known about it: integers in, integers out; nothing here knows of SQL."""

from __future__ import annotations

from .choice import Ask, FlipChoice, Near, RankChoice, RankSplit, Window
from .conversion import (
    ATTO,
    NANO,
    delta_of_rho,
    epsilon_of_rho,
    floor_to_nano,
    parse_epsilon,
    pure_epsilon,
    rho_of_pure,
    rho_within,
)
from .law import Law, Noise, SampledNoise
from .laws import UnknownLaw, law_of
from .laws.box import Box, Coordinate
from .laws.noise import Gaussian, Gaussians, Laplace
from .laws.rank import Blocks, Rank
from .laws.square_root import SquareRoot
from .laws.truncated import Thresholded, Truncated
from .laws.weighted import (
    Assembled,
    Part,
    Vector,
    WeightedSum,
    Wish,
    best_weights,
    half_width_of,
    mean_of,
    near_half_width,
    precision_of,
    sum_of,
)
from .randomized_response import Channel, report
from .uniform import OS_RANDOM, RandomSource

__all__ = [
    "ATTO",
    "NANO",
    "OS_RANDOM",
    "Ask",
    "Assembled",
    "Blocks",
    "Box",
    "Channel",
    "Coordinate",
    "FlipChoice",
    "Gaussian",
    "Gaussians",
    "Laplace",
    "Law",
    "Near",
    "Noise",
    "Part",
    "RandomSource",
    "Rank",
    "RankChoice",
    "RankSplit",
    "SampledNoise",
    "SquareRoot",
    "Thresholded",
    "Truncated",
    "UnknownLaw",
    "Vector",
    "WeightedSum",
    "Window",
    "Wish",
    "best_weights",
    "delta_of_rho",
    "epsilon_of_rho",
    "floor_to_nano",
    "half_width_of",
    "law_of",
    "mean_of",
    "near_half_width",
    "parse_epsilon",
    "precision_of",
    "pure_epsilon",
    "report",
    "rho_of_pure",
    "rho_within",
    "sum_of",
]
