"""A weighted sum of independent noises: what is on a number that released numbers were added up to.

What is drawn is exact plus noise, so a weighted sum of it is exact plus that sum of the noises, rounded once. Such are
groups that are added up (`sum_of`), the mean of several draws of one number (`best_weights`), and what least squares
make of all of them: of each draw its law, with the weights of its numbers in the estimate, and how far it is rounded:

    WeightedSum.of([(Gaussian(sigma), weights_of_one_draw), (Laplace(scale), weights_of_another)], Fraction(1, 2))

For answers and bars alone: nothing is released by it, and no ledger has its text.

House rules (soundness.md 1.35):

1. Up to 24 different weights the law is a convolution, by Fourier transforms: on the lattice of the weights where that
   is coarse enough, else on a grid of which a deviation has more than a thousand steps. Six digits are right.
2. Beyond that a half-width is a proven multiple of the deviation, whatever the weights; where a noise is neither
   Laplace nor Gaussian, or less than a step wide, the smallest are taken for equal ones of the same variance.
3. Vectors that were drawn together are parts as a whole: of what depends on each other `noises` and `vectors` keep it.

What a measurement wants of its noise, and what a draw costs beside what is known of its numbers.

Precision, one over the variance, adds up in the mean of independent estimates. So beside an estimate of precision P a
draw of what is missing, `1/v - P`, is as good as one of the variance v (soundness.md 3.13).

House rules:

1. What is charged is the loss of the draw that is made, by its own noise: `law(loss)` has no less noise than `loss`
   pays for. What is known lowers how much is asked for, never what that costs.
2. Exact: sensitivities are integers, losses whole ledger units. Rounding asks for more, but for six digits of rho.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from ..conversion import ATTO, NANO
from ..law import Law
from ..uniform import RandomSource
from .noise import Gaussian, Laplace
from .square_root import OF_A_PLACE, SquareRoot

Array = npt.NDArray[Any]
Part = tuple[Law, Fraction, int]
"""A law, the weight of a noise that has it, positive, and how many independent ones weigh so much."""

_PARTS: Final = 2**20
"""Weights are whole multiples of one part in so many, of 1 or of the largest."""
_MOST: Final = 24
_TOGETHER: Final = 64
"""Sums of more vectors are drawn as so many, with the same variance."""
_HALF: Final = Fraction(1, 2)
_SAFE: Final = 2**41
"""Values below this are averaged in 64 bits."""
_POINTS: Final = 2**17
_FINEST: Final = Fraction(1, 10**8)
"""Rarer misses are beyond what sums of doubles tell: there each noise is bounded by itself, on the safe side."""
_FARTHEST: Final = 2.0**62
"""Beyond this in a noise's own steps they have no 64 bits: its tails are interpolated, to three digits."""
_WIDE: Final = 2**30
"""A Laplace noise of so many steps or more is as its limit, to nine digits."""
_SMOOTHLY: Final = 2**12
"""Sums of Gaussian noises of so many steps or more are as their limit, to six digits."""
_REACH: Final = 40
"""So many times the sum of all |weight| · deviation holds all but 10^-20 of a sum of Laplace noises."""

_NEAR_POINTS: Final = 2**14
_NEAR_REACH: Final = 16.0
"""So many deviations: all but 10^-9 of a sum of Laplace noises is within, and what is beyond is taken for within."""
_SMOOTH: Final = 160.0
"""A deviation is so many times that of what is added to a sum, and `_BACK` of those are taken off again."""
_BACK: Final = 2.5
_DOUBLES: Final = 1e-16


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """See `Law`, and `of` for how one is made. Laws are symmetric, so that signs of weights do not count.

    `parts`: the largest first. `off`: the most that rounding moves the sum to a whole number; 0 where it is one.
    """

    is_additive: ClassVar[bool] = True
    parts: tuple[Part, ...]
    off: Fraction = Fraction(0)

    @classmethod
    def of(cls, weighed: Iterable[tuple[Law, Any]], off: Fraction = Fraction(0)) -> WeightedSum:
        """Return the law of a sum of independent noises.

        `weighed`: laws, each with the weight of one noise, or with an array of weights for as many. Weights are rounded
        to the 2^20th part of the largest power of two in them. Raises ValueError: none is other than 0.
        """
        noises: list[tuple[Law, Array, int]] = []
        for law, weight in weighed:
            sizes = np.abs(np.ravel(np.asarray(weight, dtype=np.float64)))
            inner = law.parts if isinstance(law, WeightedSum) and not law.off else ((law, Fraction(1), 1),)
            noises += [(one, sizes * float(by), count) for one, by, count in inner]
        laws = sorted({law for law, _, _ in noises}, key=lambda law: law.text)
        number = {law: place for place, law in enumerate(laws)}
        columns = [np.broadcast_arrays(float(number[law]), sizes, float(n)) for law, sizes, n in noises]
        of, size, counts = (np.concatenate(each) for each in zip(*columns, strict=True))
        if not size.max(initial=0):
            raise ValueError("a weighted sum has a weight other than 0")
        unit = Fraction(2) ** math.frexp(size.max())[1] / _PARTS / 2
        different, places = np.unique(
            of.astype(np.int64) * _PARTS * 4 + np.rint(size / float(unit)).astype(np.int64),
            return_inverse=True,
        )
        which, whole = np.divmod(different, _PARTS * 4)
        count = np.bincount(places.ravel(), counts).astype(np.int64)
        squares = whole.astype(np.float64) ** 2 * count
        order = np.argsort(-squares * np.array([float(law.spread) for law in laws])[which], kind="stable")
        order = order[whole[order] > 0]
        parts = [(laws[which[i]], int(whole[i]) * unit, int(count[i])) for i in order[:_MOST].tolist()]
        rest = order[_MOST:]
        for alike in (rest[which[rest] == number] for number in sorted(set(which[rest].tolist()))):
            many = int(count[alike].sum())
            root = math.ceil(math.sqrt(float(squares[alike].sum()) / many) * _PARTS)
            parts.append((laws[which[alike[0]]], root * unit / _PARTS, many))
        return cls(tuple(parts), off)

    @property
    def family(self) -> str:
        return " and ".join(dict.fromkeys(law.family for law, _, _ in self.parts))

    @property
    def scale(self) -> Fraction:
        """That of the noise with the largest part in it: a sum has no parameter of its own."""
        return self.parts[0][0].scale

    @property
    def text(self) -> str:
        return f"off {self.off}: " + "; ".join(
            f"{n} times {weight} of {law.text}" for law, weight, n in self.parts
        )

    @property
    def spread(self) -> Fraction:
        """Of the sum before it is rounded."""
        return sum((weight**2 * count * law.spread for law, weight, count in self.parts), Fraction(0))

    @property
    def _edge(self) -> Fraction:
        """How far beyond m the sum is at least where what is rounded is at m + 1; a whole sum is there by a half."""
        return max(self.off, _HALF)

    def half_width(self, beta: Fraction) -> int:
        return math.floor((bound_of(self.parts, beta) or _half_width(self.parts, beta)) + self._edge)

    def upper_quantile(self, probability: Fraction) -> int:
        return self.half_width(2 * probability) + 1

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """See `Law`; by convolution of the parts, however many there are."""
        unit, shape = _shape(self.parts)
        places, upper = _tails(shape)
        beyond = (np.maximum(at, 1 - np.asarray(at)) - float(self._edge)) / float(unit)
        chances = np.interp(beyond, places, upper)
        return np.where(np.asarray(at) >= 1, chances, 1 - chances)

    def draw(self, count: int, source: RandomSource) -> Array:
        """See `Law`, to the digits of the tails, which are inverted."""
        words = np.frombuffer(source.random_bytes(8 * count), dtype="<u8") >> np.uint64(11)
        uniform = (words.astype(np.float64) + 0.5) / 2**53
        unit, shape = _shape(self.parts)
        places, upper = _tails(shape)
        size = np.rint(np.interp(-np.minimum(uniform, 1 - uniform), -upper, places) * float(unit))
        whole = np.where(uniform < 0.5, -size, size)
        return whole.astype(np.int64) if size.max(initial=0) < _FARTHEST else _integers(whole)

    @property
    def is_joint(self) -> bool:
        return any(law.is_joint for law, _, _ in self.parts)

    def size_of(self, size: int) -> int:
        return self.parts[0][0].size_of(size)

    def at(self, coordinate: int) -> WeightedSum:
        return replace(self, parts=tuple((law.at(coordinate), weight, n) for law, weight, n in self.parts))

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        """See `Law`: of what depends on each other, the noises of each part."""
        if not self.is_joint:
            return [(self, weight) for weight in weights.values()]
        return [
            (sum_of(one, count), part * weight)
            for law, part, count in self.parts
            for one, weight in law.noises(weights)
        ]

    def vectors(self, size: int, count: int, source: RandomSource) -> Array:
        if not self.is_joint:
            return self.draw(size * count, source).reshape(size, count)
        total = np.zeros((size, count))
        for law, weight, many in self.parts:
            each = min(many, _TOGETHER)
            one = sum(law.vectors(size, count, source).astype(np.float64) for _ in range(each))
            total += float(weight) * math.sqrt(many / each) * one
        return np.rint(total).astype(np.int64)


def sum_of(law: Law, count: int) -> Law:
    """Return the law of the sum of so many independent noises of one law."""
    return law if count == 1 else WeightedSum(((law, Fraction(1), count),))


# --- several draws of one number ----------------------------------------------------------------------------


def precision_of(laws: Sequence[Law]) -> Fraction:
    """Return one over the variance of the best mean of independent draws; each law's spread bounds its own."""
    return sum((1 / law.spread for law in laws), Fraction(0))


def best_weights(laws: Sequence[Law]) -> tuple[Fraction, ...]:
    """Return the weights of the mean with the least variance, by the inverse of each draw's own spread.

    They are whole multiples of 2^-20, of sum 1: what that costs is below one part in 10^9 of the variance.
    Requires: the best draw's law first.
    """
    whole = precision_of(laws)
    rest = tuple(Fraction(math.floor(_PARTS / (law.spread * whole)), _PARTS) for law in laws[1:])
    return (1 - sum(rest, Fraction(0)), *rest)


def mean_of(values: Sequence[Array], weights: Sequence[Fraction]) -> Array:
    """Return the weighted mean of whole numbers, exactly, then rounded; a tie goes towards the first one's. So the
    noise on it does not depend on what is exact.

    All `values` are of one shape and one coordinate unit, and so is the mean; int64, or Python ints where needed.

    Requires: `weights` as `best_weights` makes them.
    """
    whole = [int(weight * _PARTS) for weight in weights]
    if not all(one.dtype == np.int64 and np.abs(one).max(initial=0) < _SAFE for one in values):
        values = [np.array(one.tolist(), dtype=object) for one in values]
    best = values[0]
    # of the differences from the best: what is averaged stays small
    total = np.asarray(sum((one - best) * weight for one, weight in zip(values[1:], whole[1:], strict=True)))
    steps = -((_PARTS // 2 - np.abs(total)) // _PARTS)  # the nearest whole number, a half down
    mean = best + np.where(total < 0, -steps, steps)
    return mean if mean.dtype == np.int64 else _integers(mean)


def _integers(values: Array) -> Array:
    whole = [int(value) for value in values.tolist()]
    fits = all(abs(value) < 2**63 for value in whole)
    return np.array(whole, dtype=np.int64 if fits else object)


# --- how large it gets --------------------------------------------------------------------------------------


def half_width_of(noises: Sequence[tuple[Law, Fraction]], beta: Fraction) -> Fraction:
    """Return m with Pr[|Σ weight · noise| > m] <= `beta`, to six digits; of one noise the smallest, exactly.

    Requires: at least one noise, 0 < `beta` < 1; else ValueError. No weight is 0.
    """
    if not noises or not 0 < beta < 1:
        raise ValueError("a half-width is of at least one noise, at a probability in (0, 1)")
    return _half_width([(law, abs(weight), 1) for law, weight in noises], beta)


def bound_of(parts: Sequence[Part], beta: Fraction, most: int = _MOST) -> Fraction | None:
    """Return a multiple of the deviation beyond which a sum is with probability at most `beta`, with half of the
    largest weight for the lattices (soundness.md 1.35); None: it has no more than `most` parts, or others than Laplace
    and Gaussian noises that are at least a step wide. A single Gaussian one may be narrower: it stands for a rounding.
    """
    kinds = {type(law) for law, _, _ in parts}
    if len(parts) <= most or not kinds <= {Gaussian, Laplace} or beta < Fraction(1, 10**300):
        return None
    of_each: dict[int, list[Part]] = {}
    for part in parts:
        of_each.setdefault(id(part[0]), []).append(part)
    variance = Fraction(0)
    for alike in of_each.values():
        law, spread = alike[0][0], alike[0][0].spread
        if spread < 1 and (type(law) is Laplace or any(count > 1 for _, _, count in alike)):
            return None
        variance += spread * sum((weight**2 * count for _, weight, count in alike), Fraction(0))
    quantile = -NormalDist().inv_cdf(float(beta / 2)) if kinds == {Gaussian} else _mixed_quantile(beta)
    multiple = Fraction(math.ceil(quantile * 1000), 1000)
    return multiple * Fraction(math.sqrt(variance)) + max(weight for _, weight, _ in parts) / 2


@lru_cache(maxsize=256)
def _mixed_quantile(beta: Fraction) -> float:
    """Return c with E psi^(E) = `beta`, E exponential of mean 1: psi(s) = Pr[|N(0, s)| > c], continued by its tangent
    from c²/3 on. 1.7241, 2.1614 and 3.2610 at 90, 95 and 99 %.
    """
    low, high, normal = 0.0, 1.0 - math.log(float(beta)), NormalDist()

    def chance(c: float) -> float:
        inner, root = math.sqrt(2 / 3) * c, math.sqrt(3)
        tilted = math.exp(-math.sqrt(2) * c) * normal.cdf(inner - root)
        tilted += math.exp(math.sqrt(2) * c) * math.erfc((inner + root) / math.sqrt(2)) / 2
        return tilted + math.exp(-(c**2) / 3) * 3 * root / c**2 * normal.pdf(root)

    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) > float(beta) else (low, middle)
    return high


def near_half_width(parts: Sequence[Part], beta: Fraction) -> float:
    """Return m with Pr[|Σ weight · noise| > m] <= `beta`, about a hundredth above the least, in a tenth of the time: of
    many sums of the same noises. No weight is below 0, and those of 0 do not count.

    What is normal, of a deviation that is a small part of the sum's, is added to the sum: then its transform ends soon,
    and is undone in few steps (soundness.md 1.35). Of noises that have no `transform` it is the least itself.
    """
    there = [part for part in parts if part[1]]
    if not there:
        return 0.0
    if beta < _FINEST or not all(isinstance(law, Gaussian | Laplace) for law, _, _ in there):
        return float(_half_width(there, beta))
    return _near_half_width(tuple(there), beta)


@lru_cache(maxsize=4096)
def _near_half_width(parts: tuple[Part, ...], beta: Fraction) -> float:
    deviation = math.sqrt(sum(float(weight) ** 2 * count * float(law.spread) for law, weight, count in parts))
    at, transform = _smooth()
    for law, weight, count in parts:
        assert isinstance(law, Gaussian | Laplace)
        transform = transform * law.transform(at * (float(weight) / deviation)) ** count
    waves = np.zeros(_NEAR_POINTS // 2 + 1, dtype=np.complex128)
    waves[1 : len(at) + 1] = -1j * transform / at
    places = np.arange(_NEAR_POINTS // 2) * (2 * _NEAR_REACH / _NEAR_POINTS)
    # Pr[|S| <= x] is (2x + 4 Σ transform(t)·sin(t·x)/t) / L, over the multiples t of 2π/L
    sines = np.fft.irfft(waves, _NEAR_POINTS)[: _NEAR_POINTS // 2] * (_NEAR_POINTS / 2)
    beyond = np.maximum.accumulate((1 - (2 * places + 4 * sines) / (2 * _NEAR_REACH))[::-1])[::-1]
    wanted = float(beta) * NormalDist().cdf(_BACK)
    return deviation * (float(np.interp(-wanted, -beyond, places)) + _BACK / _SMOOTH)


@lru_cache(maxsize=1)
def _smooth() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return where a transform is taken, in deviations of the sum, and that of what is added; both of shape (n,)."""
    at: Array = np.arange(1, _NEAR_POINTS // 2) * (math.pi / _NEAR_REACH)
    added: Array = np.exp(-((at / _SMOOTH) ** 2) / 2)
    return at[added > _DOUBLES], added[added > _DOUBLES]


def _half_width(parts: Sequence[Part], beta: Fraction) -> Fraction:
    """Return the half-width before it is rounded."""
    many = sum(count for _, _, count in parts)
    if many == 1 or beta < _FINEST:
        return sum(
            (weight * count * law.half_width(beta / many) for law, weight, count in parts), Fraction(0)
        )
    if all(isinstance(law, Gaussian) and law.scale >= _SMOOTHLY for law, _, _ in parts):
        variance = sum((weight**2 * count * law.spread for law, weight, count in parts), Fraction(0))
        return Fraction(-NormalDist().inv_cdf(float(beta / 2))) * _root(variance)
    limit, wide = _limit(parts)
    unit, shape = _shape(wide)
    return limit * unit * _half_width_of(shape, beta)


def _root(number: Fraction) -> Fraction:
    """Return the root of a positive number, to fifteen digits, however large it is."""
    bits = max(0, (number.numerator.bit_length() - number.denominator.bit_length()) // 2)
    near: Fraction = Fraction(math.sqrt(number / 4**bits)) * 2**bits
    return near


def _limit(parts: Sequence[Part]) -> tuple[Fraction, Sequence[Part]]:
    """Return Laplace noises that are all far wider than their steps as ones of which the widest is `_WIDE` steps wide,
    and how much wider they are: a sum of such is as its limit, at any width. Others are left as they are.
    """
    widths = [(weight * law.scale, count) for law, weight, count in parts if isinstance(law, Laplace)]
    if len(widths) < len(parts) or any(one.scale < _WIDE for one, _, _ in parts):
        return Fraction(1), parts
    unit = max(width for width, _ in widths) / _WIDE
    scales = ((Fraction(max(1, round(width / unit))), count) for width, count in widths)
    return unit, [(Laplace(scale), Fraction(1), count) for scale, count in scales]


def _shape(parts: Iterable[Part]) -> tuple[Fraction, tuple[Part, ...]]:
    """Return the common unit of weights, and the parts in whole multiples of it, those that are alike as one: in an
    order that tells no more.
    """
    counts: dict[tuple[Law, Fraction], int] = {}
    for law, weight, count in parts:
        counts[law, weight] = counts.get((law, weight), 0) + count
    ordered = sorted(counts, key=lambda one: (one[0].text, one[1]))
    bottom = math.lcm(*(weight.denominator for _, weight in ordered))
    unit = Fraction(math.gcd(*(int(weight * bottom) for _, weight in ordered)), bottom)
    return unit, tuple((law, weight / unit, counts[law, weight]) for law, weight in ordered)


@lru_cache(maxsize=1024)
def _half_width_of(shape: tuple[Part, ...], beta: Fraction) -> Fraction:
    places, upper = _tails(shape)
    if places[2] - places[1] == 1:  # on the lattice: beyond m is beyond m + 1/2
        return Fraction(int(np.argmax(2 * upper[1:] <= float(beta))))
    return Fraction(float(np.interp(-float(beta / 2), -upper, places))).limit_denominator(10**6)


@lru_cache(maxsize=16)
def _tails(shape: tuple[Part, ...]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return numbers from 0 up, the edges of steps, and for each Pr[Σ weight · noise >= it]; shapes (n,).

    In the unit of the weights: steps are 1 where a deviation has less than a thousand or so. In between what is there
    is spread evenly.
    """
    deviation = sum(float(weight) * math.sqrt(count * law.spread) for law, weight, count in shape)
    step = max(1.0, 2 * _REACH * deviation / _POINTS)
    transform = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for law, weight, count in shape:
        transform = transform * np.fft.rfft(_chances(law, float(weight) / step)) ** count
    density = np.maximum(np.fft.irfft(transform, _POINTS)[: _POINTS // 2], 0)
    places = np.append(0.0, np.arange(_POINTS // 2 - 1) + 0.5) * step
    return places, np.append(0.5, np.cumsum(density[:0:-1])[::-1])


def _chances(law: Law, weight: float) -> npt.NDArray[np.float64]:
    """Return Pr[weight · noise rounds to j], shape (_POINTS,): from j = 0 up, then the negative j."""
    half = _POINTS // 2
    edges = np.ceil((np.arange(-half, half + 1) - 0.5) / weight)
    if _REACH * math.sqrt(law.spread) < _FARTHEST:
        tails = law.tails(np.clip(edges, -_FARTHEST, _FARTHEST).astype(np.int64))
    else:
        upper = np.exp(np.interp(np.abs(edges), *_half_widths((law,)))) / 2
        tails = np.where(edges > 0, upper, 1 - upper)
    return np.fft.ifftshift(tails[:-1] - tails[1:])


@lru_cache(maxsize=64)
def _half_widths(noises: tuple[Law]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return half-widths of one noise in rising order, and of each the logarithm of Pr[|noise| > it]."""
    (law,) = noises
    misses = [
        *(Fraction(part, 32) for part in range(31, 1, -1)),
        *(Fraction(1, 2**bits) for bits in range(5, 45)),
    ]
    halves = [float(law.half_width(miss)) for miss in misses]
    return np.array([0.0, *halves]), np.array([0.0, *map(math.log, misses)])


@dataclass(frozen=True, slots=True)
class Vector:
    """One number of what was drawn together. `draw`: a digest of what it measures and what came out; `joint`: its law;
    `coordinate`: which of all coordinates of the draw."""

    draw: bytes
    joint: Law
    coordinate: int


@dataclass(frozen=True, slots=True)
class Assembled:
    """See `Law`: the i-th coordinate has `laws[i]`, and was drawn as `drawn[i]` says; None: by itself.

    Raises TypeError where one figure is asked of all, but for the widest's scale and spread.
    """

    is_additive: ClassVar[bool] = True
    is_joint: ClassVar[bool] = True
    laws: tuple[Law, ...]
    drawn: tuple[Vector | None, ...]

    @property
    def _widest(self) -> Law:
        return max(self.laws, key=lambda law: law.spread)

    @property
    def family(self) -> str:
        return self._widest.family

    @property
    def scale(self) -> Fraction:
        return self._widest.scale

    @property
    def text(self) -> str:
        return "; ".join(law.text for law in self.laws)

    @property
    def spread(self) -> Fraction:
        return self._widest.spread

    def size_of(self, size: int) -> int:
        return size

    def at(self, coordinate: int) -> Law:
        return self.laws[coordinate]

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        """See `Law`: of each draw by itself."""
        found: list[tuple[Law, Fraction]] = []
        together: dict[tuple[bytes, Law], dict[int, Fraction]] = {}
        for coordinate, weight in weights.items():
            vector = self.drawn[coordinate]
            if vector is None:
                found.append((self.laws[coordinate], weight))
            else:
                parts = together.setdefault((vector.draw, vector.joint), {})
                parts[vector.coordinate] = parts.get(vector.coordinate, Fraction(0)) + weight
        for (_, joint), parts in together.items():
            found += joint.noises({coordinate: weight for coordinate, weight in parts.items() if weight})
        return found

    def half_width(self, beta: Fraction) -> int:
        return self._widest.half_width(beta)

    def upper_quantile(self, probability: Fraction) -> int:
        return self._widest.upper_quantile(probability)

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        raise TypeError("each coordinate has a law of its own")

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        raise TypeError("what is stored is not drawn again")

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        raise TypeError("what is stored is not drawn again")


# --- what a draw costs beside what is known --------------------------------------------------------------


_DIGITS: Final = 6
"""What is missing is rounded to so many digits of what is wanted: so rhos of few digits add up to the last one."""
_TERMS: Final = 12
_WIDEST: Final = 2
"""Largest epsilon over sensitivity for which `_cosh` is that near: beyond it noise is far below a lattice step."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Additive noise on each coordinate. `loss`: what it costs alone, in 1e-9 of epsilon, or in 1e-18 of rho where that
    adds up; `size`: then the squared sensitivity in L2, else the sensitivity in L1, in coordinate units. `by_root`: of
    running sums by square root (soundness.md 1.44), which tell each number by a part of their noise.

    Raises ValueError unless both are positive integers, and epsilon no more than twice the sensitivity.
    """

    size: int
    loss: int
    is_zcdp: bool
    by_root: bool = False

    def __post_init__(self) -> None:
        if any(type(number) is not int or number < 1 for number in (self.size, self.loss)):
            raise ValueError("a sensitivity and a loss are positive integers")
        if not self.is_zcdp and self._rate(self.loss) > _WIDEST:
            raise ValueError("noise of less than a step of the lattice is drawn in full")

    def law(self, loss: int) -> Law:
        """Return the noise of a draw that costs at most so much."""
        if self.is_zcdp:
            noise = Gaussian.finely_for_rho(self.size, Fraction(loss, ATTO))
            return SquareRoot(noise.scale) if self.by_root else noise
        return Laplace(1 / self._rate(loss))

    def precision(self, loss: int) -> Fraction:
        """Return one over the variance of a draw that costs so much: of Laplace noise a bound, from below, by less than
        one part in 10^16.
        """
        return Fraction(2 * loss, ATTO) / self._squared if self.is_zcdp else _cosh(self._rate(loss)) - 1

    @property
    def _squared(self) -> Fraction:
        """What a number's variance is times twice the rho."""
        return Fraction(self.size, OF_A_PLACE if self.by_root else 1)

    def missing(self, known: Fraction) -> int:
        """Return the loss of a draw that has what is missing beside an estimate of so much precision: positive, and
        never more than alone. Of rho it is rounded to six digits of the whole, of epsilon raised.
        """
        return self.reaching(self.precision(self.loss) - known)

    def reaching(self, precision: Fraction) -> int:
        """Return the loss of a draw of so much precision: see `missing`."""
        digit: int = 10 ** max(0, len(str(self.loss)) - _DIGITS)
        if precision <= 0:
            return min(self.loss, digit)
        if self.is_zcdp:
            return min(self.loss, max(digit, round(precision * self._squared / 2 * ATTO / digit) * digit))
        near = 2 * math.asinh(math.sqrt(precision / 2)) * self.size * NANO  # cosh(a) - 1 is 2·sinh²(a/2)
        found = max(1, math.ceil(near / digit) - 1) * digit
        while found < self.loss and self.precision(found) < precision:
            found += digit
        return min(self.loss, found)

    def stored(self, loss: int) -> int:
        """Return what a draw would cost that is as exact as what is known, where so much is missing beside it."""
        if self.is_zcdp:
            return self.loss - loss
        return self.reaching(self.precision(self.loss) - self.precision(loss))

    def _rate(self, loss: int) -> Fraction:
        return Fraction(loss, NANO * self.size)


def _cosh(x: Fraction) -> Fraction:
    """Return a lower bound of cosh(x), for 0 <= x <= 2: the beginning of its series."""
    term, total = Fraction(1), Fraction(1)
    for place in range(1, _TERMS):
        term *= x * x / ((2 * place - 1) * 2 * place)
        total += term
    return total
