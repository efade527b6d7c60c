"""Bars of variances and deviations of few rows: by inverting a test on the count, the sum and the sum of squares.

Where the noise on the count is about as large as the count, the replicas of a variance lie all on one side of
the truth. There the bar is made of every variance that is not rejected. For a variance v, the test asks how far the
released n, S and M are from the nearest (n', S', M') whose variance is v, in standard deviations of their noise:

    D(v) = min { sum ((y_i - t_i) / sd_i)^2 : variance(t) = v } <= c^2.

For whatever is linear in n, S and M, D is the square of a sum of Laplace noises over its own deviation, and c, the
quantile of one Laplace noise over its deviation, is the largest that any such sum has (soundness.md 1.2). So the bar
is the range of the variance over an ellipsoid around the released numbers, cut to at least the rows that one needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..plan.measures.formulas import Linear, Variance
from ..plan.measures.measurements import Coord

__all__ = ["NoisyCoordinates", "few_rows", "variance_ends"]

Floats = npt.NDArray[np.float64]

_FEW_DEVIATIONS = 10.0
"""Noisy counts of fewer standard deviations of their noise are few rows."""
_AT_ONCE = 500
_MANY = 5_000
"""Rows from which on the ellipsoid has fewer points: the answer may not become slow."""


@dataclass(frozen=True, slots=True)
class NoisyCoordinates:
    """The released coordinates, as doubles, and the variance of the noise on each."""

    released: Mapping[Coord, Floats]
    spread: Mapping[Coord, float]

    def value(self, formula: Linear) -> Floats:
        """Return a sum of coordinates, one a row."""
        rows = len(next(iter(self.released.values())))
        total = np.full(rows, float(formula.constant))
        for index, weight in formula.terms:
            total += float(weight) * self.released[index]
        return total

    def covariance(self, one: Linear, other: Linear) -> float:
        """Return the covariance of the noises on two sums of coordinates."""
        weights = dict(other.terms)
        return sum(float(w) * float(weights.get(i, 0)) * self.spread[i] for i, w in one.terms)


def few_rows(formula: Variance, noise: NoisyCoordinates) -> npt.NDArray[np.bool_]:
    """Return in which rows, shape (rows,), the noisy count is within ten deviations of its noise."""
    deviation = math.sqrt(noise.covariance(formula.count, formula.count))
    few: npt.NDArray[np.bool_] = noise.value(formula.count) < _FEW_DEVIATIONS * deviation
    return few


def variance_ends(formula: Variance, noise: NoisyCoordinates, reach: float) -> tuple[Floats, Floats]:
    """Return low and high of a variance or deviation for each row, both of shape (rows,).

    `reach`: how many standard deviations of its noise one released number is away at the wanted level.
    """
    parts = (formula.count, formula.difference, formula.moment)
    spread = np.array([[noise.covariance(one, other) for other in parts] for one in parts])
    root = np.linalg.cholesky(spread + np.diag(1e-12 * np.diag(spread) + 1e-300))
    centre = np.stack([noise.value(part) for part in parts])
    directions = root @ (reach * (_sphere(24, 16) if centre.shape[1] > _MANY else _sphere(64, 32)))
    low, high = np.empty(centre.shape[1]), np.empty(centre.shape[1])
    for start in range(0, centre.shape[1], _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        points = centre[:, rows, None] + directions[:, None, :]
        low[rows], high[rows] = _range(formula, points)
    return low, high


def _sphere(circles: int, angles: int) -> Floats:
    """Return points of the unit sphere, shape (3, points), in circles of one count each.

    At one count the variance is linear in the moment, so that its ends are on the circle.
    """
    along = np.cos(np.linspace(0, math.pi, circles))
    angle = np.linspace(0, 2 * math.pi, angles, endpoint=False)
    across = np.sqrt(np.maximum(0, 1 - along**2))
    return np.stack(
        [
            np.repeat(along, angles),
            np.outer(across, np.cos(angle)).ravel(),
            np.outer(across, np.sin(angle)).ravel(),
        ]
    )


def _range(formula: Variance, points: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of a formula at points of shape (3, rows, points)."""
    least = float(formula.least_rows)
    width, unit = float(formula.width), float(formula.step**2) / 4
    count, difference, moment = points
    possible = count >= least
    count = np.maximum(count, least)
    mean = difference / count
    value = unit * ((moment / count + width**2) / 2 - mean**2)
    top = unit * width**2
    if formula.is_sample:
        value, top = value * count / (count - 1), 2 * top
    value = np.clip(value, 0.0, top)
    found = possible.any(axis=1)
    low = np.where(found, np.where(possible, value, np.inf).min(axis=1), 0.0)
    high = np.where(found, np.where(possible, value, -np.inf).max(axis=1), top)
    return (np.sqrt(low), np.sqrt(high)) if formula.is_root else (low, high)
