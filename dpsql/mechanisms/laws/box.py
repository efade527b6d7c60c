"""Box noise: whole vectors of integers, Pr[y] proportional to exp(-N(y) / scale), N(y) = max_i ceil(|y_i| / D_i).

The K-norm mechanism whose norm is that of a box (Hardt, Talwar 2010; Awan, Slavkovic 2021), on integers: ceil is
subadditive, so N is, and what moves N by at most `sensitivity` is epsilon-DP with scale = sensitivity / epsilon
(soundness.md 1.22). With q = exp(-1/scale), exp(-N/scale) is (1-q) times the sum of q^r over r >= N: so y is uniform in
the box of all |y_i| <= D_i r, for a radius r with probability proportional to q^r Π (2 D_i r + 1).

House rules:

1. Coordinates are drawn as one vector: uncorrelated, but dependent. What is known of one by itself is `at`, of a
   weighted sum of several `noises`; nothing is ever made of coordinates of different vectors as if they were of one.
2. The radius is a sum of k + 1 geometric numbers, Pr proportional to C(r + k, k) q^r, kept with probability
   Π (2 D_i r + 1) / (2 D_i (r + i)), i = 1..k: rational coins. Integers and integer comparisons only (2.3). Where few
   are kept, at small scales, it is read off its cumulative probabilities: uniform bits, so many as decide it between
   bounds of these.
3. Tails and variances are sums of a polynomial with positive coefficients times q^r: bounds of q bound them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import count
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from ..discrete_laplace import ARRAY_LIMIT, bounds_of_exp, draw_geometric, sampled_scale
from ..law import Independent, Law, WholeVectors, check_chance
from ..uniform import RandomSource, draw_below_each, draw_wide_below_each, random_words

Bounds = tuple[Fraction, Fraction]
"""A number from below and from above."""

_GUARD_DIGITS = 50
_SPREAD_DIGITS = 20
_NEAR = 10**9
"""Doubles tell a quantile to one part in so many."""
_CHUNK = 2**14
_INT64 = 2**62
_WORD = 64
_LEAST_KEPT = 1 / 32
"""Radii of which fewer would be kept are read off their cumulative probabilities."""


@dataclass(frozen=True, slots=True)
class Box(WholeVectors):
    """See `Law`; of vectors of one coordinate for each of `reaches`, D.

    Raises TypeError unless the scale is a Fraction and reaches are integers, ValueError unless all are positive.
    """

    family: ClassVar[str] = "box"
    name: ClassVar[str] = "box"
    is_additive: ClassVar[bool] = True
    scale: Fraction
    reaches: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction) or any(type(reach) is not int for reach in self.reaches):
            raise TypeError("a scale is an exact Fraction, and reaches are integers")
        if self.scale <= 0 or not self.reaches or min(self.reaches) < 1:
            raise ValueError("a noise scale is positive, and so are reaches")

    @property
    def spread(self) -> Fraction:
        """The variance of the widest coordinate."""
        return max(self.at(coordinate).spread for coordinate in range(len(self.reaches)))

    def at(self, coordinate: int) -> Coordinate:
        """See `Law`. Coordinates are numbered on from one vector to the next."""
        return Coordinate(self, coordinate % len(self.reaches))

    def norm(self, vector: Iterable[int]) -> int:
        """Return N."""
        return max(-(-abs(y) // reach) for y, reach in zip(vector, self.reaches, strict=True))

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        """See `Law`: one noise for each vector."""
        vectors: dict[int, dict[int, Fraction]] = {}
        for coordinate, weight in weights.items():
            vectors.setdefault(coordinate // len(self.reaches), {})[coordinate % len(self.reaches)] = weight
        return [self._noise(weighted) for weighted in vectors.values()]

    def _noise(self, weights: Mapping[int, Fraction]) -> tuple[Law, Fraction]:
        if len(weights) == 1:
            ((coordinate, weight),) = weights.items()
            return self.at(coordinate), weight
        bottom = math.lcm(*(weight.denominator for weight in weights.values()))
        whole = [
            int(weights.get(coordinate, Fraction(0)) * bottom) for coordinate in range(len(self.reaches))
        ]
        top = math.gcd(*whole)
        return Weighted(self, tuple(weight // top for weight in whole)), Fraction(top, bottom)

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """See `Law`: `size` / k vectors for each of the `count` columns, one below the other."""
        many = self.vectors_in(size)
        drawn = _draw(self, many * count, source)
        return np.concatenate([drawn[:, i * count : (i + 1) * count] for i in range(many)])


@dataclass(frozen=True, slots=True)
class Coordinate(Independent):
    """See `Law`: of one coordinate of a box's vectors by itself."""

    family: ClassVar[str] = "box"
    name: ClassVar[str] = "coordinate"
    is_additive: ClassVar[bool] = True
    box: Box
    index: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < len(self.box.reaches):
            raise ValueError("no such coordinate")

    @property
    def scale(self) -> Fraction:
        """As Laplace noise of as much loss would have it: what moves the norm by 1 moves the coordinate by D."""
        return self.box.scale * self.reach

    @property
    def reach(self) -> int:
        """D."""
        return self.box.reaches[self.index]

    @property
    def text(self) -> str:
        return f"{self.name} {self.index} {self.box.text}"

    @classmethod
    def read(cls, text: str) -> Coordinate:
        """Return the law that `text` wrote. Raises ValueError."""
        _, index, box = text.split(" ", 2)
        return cls(Box.read(box), int(index))

    @property
    def spread(self) -> Fraction:
        """The variance, from above by less than one part in 10^19: the mean of D r (D r + 1) / 3."""
        return _spread(self.box.scale, self.box.reaches, self.index)

    def tail(self, m: int) -> Fraction:
        """Return Pr[noise >= m] for any integer m, from above by less than one part in 10^30."""
        if m < 1:
            return 1 - self._tail(1 - m)[0]
        return self._tail(m)[1]

    def _tail(self, m: int) -> Bounds:
        """Return bounds of the sum of q^r (D r + 1 - m) Π (2 D_j r + 1) over all r >= m / D, over that of all."""
        first = -(-m // self.reach)
        others = [
            (2 * reach * first + 1, 2 * reach)
            for index, reach in enumerate(self.box.reaches)
            if index != self.index
        ]
        terms = _product([(self.reach * first + 1 - m, self.reach), *others])
        scale, degree = self.box.scale, len(self.box.reaches)
        below, above = _sum(scale, degree, terms)
        least, most = _mass(scale, self.box.reaches)
        start = bounds_of_exp(first / sampled_scale(scale), _digits(scale, degree))
        return start[0] * below / most, start[1] * above / least

    def upper_quantile(self, probability: Fraction) -> int:
        """See `Law`: where doubles say, and then exactly."""
        check_chance(probability)
        return _first(self, probability)

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return _tails(self.box, tuple(int(i == self.index) for i in range(len(self.box.reaches))), at)

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        return np.asarray(_draw(self.box, count, source)[self.index])


@dataclass(frozen=True, slots=True)
class Weighted(Independent):
    """See `Law`: of the sum of weight times coordinate over one vector, to six digits; for bars alone.

    Given the radius it is a sum of independent uniform numbers, which are taken to be continuous: |w| (D r + 1/2) wide
    to either side.
    """

    family: ClassVar[str] = "box"
    is_additive: ClassVar[bool] = True
    box: Box
    weights: tuple[int, ...]

    @property
    def scale(self) -> Fraction:
        return self.box.scale * sum(
            abs(weight) * reach for weight, reach in zip(self.weights, self.box.reaches, strict=True)
        )

    @property
    def text(self) -> str:
        return f"{' '.join(map(str, self.weights))} times {self.box.text}"

    @property
    def spread(self) -> Fraction:
        """Coordinates are uncorrelated: each is as likely with the other sign, whatever the others are."""
        return sum(
            (weight**2 * self.box.at(coordinate).spread for coordinate, weight in enumerate(self.weights)),
            Fraction(0),
        )

    def upper_quantile(self, probability: Fraction) -> int:
        check_chance(probability)
        return _estimate(self, probability)

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return _tails(self.box, self.weights, at)

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        drawn = _draw(self.box, count, source)
        total = sum(
            int(weight) * column.astype(object) for weight, column in zip(self.weights, drawn, strict=True)
        )
        return np.asarray(total, dtype=object)


# --- sums of a polynomial times q^r ------------------------------------------------------------------------


def _digits(scale: Fraction, degree: int) -> int:
    """Return how many digits keep 30 after division by (1 - q)^(degree + 1), 1 - q being near 1/scale."""
    return _GUARD_DIGITS + (degree + 2) * len(str(math.ceil(scale)))


def _product(factors: Iterable[tuple[int, int]]) -> list[int]:
    """Return the coefficients of Π (a + b x), the constant first."""
    terms = [1]
    for constant, slope in factors:
        terms = [
            constant * left + slope * right for left, right in zip([*terms, 0], [0, *terms], strict=True)
        ]
    return terms


@lru_cache(maxsize=256)
def _moments(scale: Fraction, degree: int) -> tuple[Bounds, ...]:
    """Return bounds of Σ x^l q^x over x >= 0 for l up to degree + 2: Σ_j S(l, j) j! q^j / (1-q)^(j+1)."""
    q = bounds_of_exp(1 / sampled_scale(scale), _digits(scale, degree))
    stirling, found = [1], []
    for order in range(degree + 3):
        sides = [
            sum(
                (
                    count * math.factorial(j) * side**j / (1 - side) ** (j + 1)
                    for j, count in enumerate(stirling)
                ),
                Fraction(0),
            )
            for side in q
        ]
        found.append((_rounded(sides[0], -1, order), _rounded(sides[1], 1, order)))
        stirling = [
            j * now + before
            for j, (now, before) in enumerate(zip([*stirling, 0], [0, *stirling], strict=True))
        ]
    return tuple(found)


def _rounded(value: Fraction, way: int, order: int) -> Fraction:
    """Return a number with fewer digits, moved down (-1) or up (1) by less than one part in 10^40."""
    shift = 140 - value.numerator.bit_length() + value.denominator.bit_length()
    scaled = value * Fraction(2) ** shift
    whole = math.ceil(scaled) if way > 0 else math.floor(scaled)
    return Fraction(whole) / Fraction(2) ** shift


def _sum(scale: Fraction, degree: int, terms: list[int]) -> Bounds:
    """Return bounds of Σ q^x times a polynomial in x whose coefficients are not negative."""
    moments = _moments(scale, degree)
    below = sum((term * moment[0] for term, moment in zip(terms, moments, strict=False)), Fraction(0))
    above = sum((term * moment[1] for term, moment in zip(terms, moments, strict=False)), Fraction(0))
    return below, above


@lru_cache(maxsize=256)
def _mass(scale: Fraction, reaches: tuple[int, ...]) -> Bounds:
    """Return bounds of Σ q^r Π (2 D_i r + 1), by which the probabilities of radii are divided."""
    return _sum(scale, len(reaches), _product([(1, 2 * reach) for reach in reaches]))


@lru_cache(maxsize=1024)
def _spread(scale: Fraction, reaches: tuple[int, ...], coordinate: int) -> Fraction:
    reach = reaches[coordinate]
    terms = _product([(1, 2 * one) for one in reaches])
    whole = [0] * (len(terms) + 2)
    for power, term in enumerate(terms):  # times D x (D x + 1)
        whole[power + 1] += term * reach
        whole[power + 2] += term * reach**2
    value = _sum(scale, len(reaches), whole)[1] / _mass(scale, reaches)[0] / 3
    digits = 10 ** max(0, _SPREAD_DIGITS - len(str(math.ceil(value))))
    return Fraction(math.ceil(value * digits), digits)


@lru_cache(maxsize=1024)
def _first(law: Coordinate, probability: Fraction) -> int:
    near = _estimate(law, probability)
    step = 1 + near // _NEAR
    low, high = max(0, near - step), near + step  # tail(0) is above a half
    while low and law.tail(low) <= probability:
        low = max(0, low - step)
    while law.tail(high) > probability:
        high += step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if law.tail(middle) <= probability else (middle, high)
    return high


# --- to ten digits, in doubles -----------------------------------------------------------------------------


_AT_ONCE = 64
"""Tails that are asked for in one go: one by one most of the time is numpy's."""


@lru_cache(maxsize=1024)
def _estimate(law: Coordinate | Weighted, probability: Fraction) -> int:
    """Return the smallest m >= 1 with Pr[noise >= m] <= `probability`, as far as doubles tell."""
    wanted, high = float(probability), 1
    while (first := _first_below(law, [high << bits for bits in range(_AT_ONCE)], wanted)) is None:
        high <<= _AT_ONCE
    high <<= first
    low = high // 2
    while high - low > 1:
        places = sorted({low + (high - low) * part // _AT_ONCE for part in range(1, _AT_ONCE)} - {low})
        first = _first_below(law, places, wanted)
        edges = [low, *places, high]
        first = len(places) if first is None else first
        low, high = edges[first], edges[first + 1]
    return high


def _first_below(law: Coordinate | Weighted, places: Sequence[int], wanted: float) -> int | None:
    """Return the number of the first of rising places beyond which noise is as rarely as wanted; None: of none."""
    weights = (
        law.weights
        if isinstance(law, Weighted)
        else tuple(int(i == law.index) for i in range(len(law.box.reaches)))
    )
    below = _upper(law.box, weights, np.array(places, dtype=np.float64)) <= wanted
    return int(np.argmax(below)) if below.any() else None


def _tails(box: Box, weights: tuple[int, ...], at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    places = np.asarray(at, dtype=np.float64)
    upper = _upper(box, weights, np.maximum(places, 1 - places))
    return np.where(places >= 1, upper, 1 - upper)


_SLIGHT = 1e-4
"""A part of a sum that is narrower than this beside the widest changes six digits of nothing."""


def _upper(box: Box, weights: tuple[int, ...], at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Pr[Σ weight · coordinate >= m] for each m >= 1 of `at`, in its shape.

    Given the radius r, parts are uniform, a_j = |w_j| (D_j r + 1/2) wide to either side; a sum of J of them is at least
    m with probability Σ over all signs s of Π s_j · (Σ s_j a_j - m)+^J, over J! Π 2 a_j. Summed over r from where the
    parenthesis is not negative. Of one part this is exact, with m - 1/2 for m.
    """
    scale, wide = (
        float(sampled_scale(box.scale)),
        max(abs(w) * d for w, d in zip(weights, box.reaches, strict=True)),
    )
    parts = [(abs(w), d) for w, d in zip(weights, box.reaches, strict=True) if abs(w) * d > _SLIGHT * wide]
    rest = [d for w, d in zip(weights, box.reaches, strict=True) if not abs(w) * d > _SLIGHT * wide]
    moments = _float_moments(box.scale, len(box.reaches))
    mass = _dot([np.ones(1)], [(np.full(1, 1 / (2 * d * scale)), 1.0) for d in box.reaches], moments)[0]
    inside = (
        sum(w for w, _ in parts) / 2
    )  # nearer than half a step of each, signs that cancel would count too
    m = np.maximum(at - 0.5, inside - 0.5)
    total = np.zeros(len(at))
    for signs in range(2 ** len(parts)):
        way = [1 - 2 * (signs >> i & 1) for i in range(len(parts))]
        slope = sum(s * w * d for s, (w, d) in zip(way, parts, strict=True))
        if slope <= 0:
            continue
        start = sum(s * w for s, (w, _) in zip(way, parts, strict=True)) / 2
        first = np.maximum(0.0, np.ceil((m - start) / slope))
        unit = [2 * w * d * scale for w, d in parts]
        powers = [((slope * first + start - m) / one, slope * scale / one) for one in unit]
        others = [((2 * d * first + 1) / (2 * d * scale), 1.0) for d in rest]
        sign = math.prod(way)
        total += sign * np.exp(-first / scale) * _dot([np.ones(len(at))], [*powers, *others], moments)
    tail = total / (math.factorial(len(parts)) * mass)
    if inside > 1:  # between the middle, where it is a half, and there
        tail = np.where(at < inside, 0.5 + (tail - 0.5) * at / inside, tail)
    return np.asarray(np.clip(tail, 0.0, 0.5))


def _dot(
    terms: list[npt.NDArray[np.float64]],
    factors: list[tuple[npt.NDArray[np.float64], float]],
    moments: list[float],
) -> npt.NDArray[np.float64]:
    """Return Σ q^x Π (a + b x / scale) over x >= 0, element by element of arrays a of one shape."""
    for constant, slope in factors:
        zero = np.zeros_like(terms[0])
        terms = [
            constant * left + slope * right
            for left, right in zip([*terms, zero], [zero, *terms], strict=True)
        ]
    return np.asarray(reduce(np.add, [term * moment for term, moment in zip(terms, moments, strict=False)]))


def _float_moments(scale: Fraction, degree: int) -> list[float]:
    """Return Σ (x / scale)^l q^x over x >= 0, less a common factor."""
    sampled = sampled_scale(scale)
    return [float(above / sampled ** (power + 1)) for power, (_, above) in enumerate(_moments(scale, degree))]


# --- the sampler -------------------------------------------------------------------------------------------


def _draw(box: Box, count: int, source: RandomSource) -> npt.NDArray[Any]:
    """Return `count` independent vectors, shape (k, count): int64, or Python ints where those may be larger."""
    if count < 0:
        raise ValueError("the number of draws is not negative")
    if _rate(box.scale, box.reaches) < _LEAST_KEPT:
        return _within_each(box, _radii(box, count, source), source)
    t, s = sampled_scale(box.scale).as_integer_ratio()
    if max(t, s) > ARRAY_LIMIT:
        return _inside(box, [_one_kept(box, source) for _ in range(count)], source)
    kept: list[npt.NDArray[Any]] = [np.empty((len(box.reaches), 0), dtype=np.int64)]
    missing, rate = count, _rate(box.scale, box.reaches)
    while missing:
        size = min(_CHUNK, int(missing / rate * 1.05) + 8)
        found = _candidates(box, size, source)[:, :missing]
        kept.append(found)
        missing -= found.shape[1]
    return np.concatenate(kept, axis=1)


@lru_cache(maxsize=256)
def _rate(scale: Fraction, reaches: tuple[int, ...]) -> float:
    """Return the share of candidates that are kept: Σ q^r Π (2 D_i r + 1) over Σ q^r k! C(r + k, k) Π 2 D_i."""
    degree = len(reaches)
    geometric = math.factorial(degree) * _moments(scale, degree)[0][0] ** (degree + 1)
    return float(_mass(scale, reaches)[0] / (geometric * math.prod(2 * reach for reach in reaches)))


def _candidates(box: Box, size: int, source: RandomSource) -> npt.NDArray[Any]:
    """Return the vectors among `size` candidates: shape (k, n), n of them kept, in the candidates' order."""
    degree = len(box.reaches)
    parts = draw_geometric(box.scale, (degree + 1) * size, source).reshape(degree + 1, size)
    if parts.dtype == object or int(parts.max()) >= _INT64 // (2 * max(box.reaches) * (degree + 1) ** 2):
        radii = parts.astype(object).sum(axis=0)
        return _inside(box, _kept(box, list(map(int, radii)), source), source)
    radii = parts.sum(axis=0)
    for number, reach in enumerate(box.reaches, 1):
        sides = (2 * reach * (radii + number)).astype(np.uint64)
        radii = radii[draw_below_each(sides, source) < (2 * reach * radii + 1).astype(np.uint64)]
    return _within_each(box, radii, source)


def _within_each(box: Box, radii: npt.NDArray[np.int64], source: RandomSource) -> npt.NDArray[Any]:
    """Return a uniform vector of the box of each radius: shape (k, n)."""
    if int(radii.max(initial=0)) >= _INT64 // (2 * max(box.reaches)):
        return _inside(box, radii.tolist(), source)
    found = np.empty((len(box.reaches), len(radii)), dtype=np.int64)
    for number, reach in enumerate(box.reaches):
        side = reach * radii
        found[number] = draw_below_each((2 * side + 1).astype(np.uint64), source).astype(np.int64) - side
    return found


def _radii(box: Box, count: int, source: RandomSource) -> npt.NDArray[np.int64]:
    """Return `count` radii: of a uniform U the number of r with Pr[radius <= r] <= U. U's first bits decide nearly all.

    Requires: a scale of a few units at most, as the cumulative probabilities are listed.
    """
    below, above = _cumulative(box.scale, box.reaches, _WORD)
    words = random_words(np.dtype("<u8"), count, source)
    found = np.searchsorted(np.array(below, dtype=np.uint64), words, side="right").astype(np.int64)
    # a radius is sure where all of the word's numbers are above the one before, and there is one that they are below
    last = np.array([0, *(most - 1 for most in above)], dtype=np.uint64)
    unsure = (found == len(below)) | ((found > 0) & (words <= last[found]))
    for place in np.flatnonzero(unsure).tolist():
        found[place] = _one_radius(box, int(words[place]), _WORD, source)
    return found


def _one_radius(box: Box, first: int, bits: int, source: RandomSource) -> int:
    """Return the radius of a U that begins with these bits, with as many more as decide it."""
    while True:
        first = first << _WORD | int.from_bytes(source.random_bytes(_WORD // 8), "little")
        bits += _WORD
        below, above = _cumulative(box.scale, box.reaches, bits)
        radius = bisect_right(below, first)
        if radius < len(below) and (not radius or first >= above[radius - 1]):
            return radius


@lru_cache(maxsize=256)
def _cumulative(
    scale: Fraction, reaches: tuple[int, ...], bits: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return bounds of 2^bits · Pr[radius <= r], whole numbers, for each r until what is left is below one of them.

    What is left beyond r is below a geometric sum: from one term to the next the quotient falls.
    """
    places = bits + 2 * _WORD + 16 * len(reaches) + math.prod(2 * reach + 1 for reach in reaches).bit_length()
    one = 2**places
    bounds = bounds_of_exp(1 / sampled_scale(scale), places // 3 + _GUARD_DIGITS)
    q_low, q_high = math.floor(bounds[0] * one), math.ceil(bounds[1] * one)
    sums, low, high = [], 0, 0
    power_low, power_high = one, one
    for radius in count():
        width, wider = (math.prod(2 * reach * r + 1 for reach in reaches) for r in (radius, radius + 1))
        low, high = low + power_low * width, high + power_high * width
        sums.append((low, high))
        # what is left, at most: terms that fall by this quotient or faster
        falls_to, falls_from = q_high * wider, one * width
        if falls_to < falls_from:
            rest = -(-power_high * width * falls_to // (falls_from - falls_to))
            if rest << bits < low:
                break
        power_low, power_high = power_low * q_low >> places, -(-power_high * q_high >> places)
    most = high + rest
    return (
        tuple((below << bits) // most for below, _ in sums),
        tuple(min(1 << bits, -((-above << bits) // low)) for _, above in sums),
    )


def _one_kept(box: Box, source: RandomSource) -> int:
    """Return one radius, in Python's own integers."""
    while True:
        radius = sum(map(int, draw_geometric(box.scale, len(box.reaches) + 1, source).tolist()))
        if _kept(box, [radius], source):
            return radius


def _kept(box: Box, radii: Sequence[int], source: RandomSource) -> Sequence[int]:
    """Return those of the candidates that are kept, in their order."""
    for number, reach in enumerate(box.reaches, 1):
        coins = draw_wide_below_each([2 * reach * (radius + number) for radius in radii], source)
        radii = [radius for radius, coin in zip(radii, coins, strict=True) if coin < 2 * reach * radius + 1]
    return radii


def _inside(box: Box, radii: Sequence[int], source: RandomSource) -> npt.NDArray[Any]:
    """Return a uniform vector of the box of each radius: shape (k, n), int64, or Python ints where one does not fit."""
    array = np.empty((len(box.reaches), len(radii)), dtype=object)
    for number, reach in enumerate(box.reaches):
        drawn = draw_wide_below_each([2 * reach * radius + 1 for radius in radii], source)
        array[number] = [y - reach * radius for y, radius in zip(drawn, radii, strict=True)]
    fits = all(abs(y) < _INT64 for y in array.flat)
    return array.astype(np.int64) if fits else array
