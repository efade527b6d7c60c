"""Every branch of every sampler: enumerated exactly at small parameters, and forced at large ones.

A sampler has a way in arrays of machine integers, one in arrays of Python's, and one draw at a time. Here the coins
that each is made of, exp(-u/t) and its like, are given rational probabilities of the same form (r^u for exp(-u/t)), so
that the law of what comes out is rational too; all outcomes of one candidate are walked through, and each has exactly
the probability that the law says. That the coins themselves are exp(-u/t) is held by the other tests of this folder.

Forced branches are the same code at parameters of any size, against the law by chi-squared tests on seeded bytes
(the false-alarm rate is 1e-9 once, when a seed is chosen, and none later); no line of a sampler is left out by them.
"""

from __future__ import annotations

import inspect
import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpsql.mechanisms import (
    Box,
    Gaussian,
    Gaussians,
    Laplace,
    Law,
    Thresholded,
    Truncated,
    choice,
    discrete_gaussian,
    discrete_laplace,
    randomized_response,
    uniform,
)
from dpsql.mechanisms.discrete_laplace import bounds_of_exp
from dpsql.mechanisms.laws import box, noise, truncated
from dpsql.mechanisms.randomized_response import Channel
from dpsql.testing.injected_noise import SeededSource

from .tape import Choices, Tape, enumerate_exactly

F = Fraction
Patch = pytest.MonkeyPatch
Draws = npt.NDArray[Any]

_R = F(1, 3)
"""In place of an irrational ratio of two neighbouring chances."""
_P = 1e-9
_MOST = 3
"""Up to which whole number a geometric number is followed."""


class _DroppedError(Exception):
    """The candidate is not kept, or a geometric number is larger than is followed."""


class _Coins(Choices):
    """Choices that stand for random bytes: one sign bit at most."""

    def random_bytes(self, count: int) -> bytes:
        assert count <= 1
        return bytes([128 * self.below(2)]) if count else b""

    def geometric(self, ratio: Fraction) -> int:
        """Return x with probability (1 - ratio)·ratio^x."""
        some = [(1 - ratio) * ratio**x for x in range(_MOST + 1)]
        x = self.choose([*some, 1 - sum(some)])
        if x > _MOST:
            raise _DroppedError
        return x


def found(run: Callable[[_Coins], int | tuple[int, ...] | None]) -> dict[Any, Fraction]:
    """Return the exact chances of what a candidate comes to, None: it is not kept."""

    def one(choices: Choices) -> int | tuple[int, ...] | None:
        choices.__class__ = _Coins
        assert isinstance(choices, _Coins)
        try:
            return run(choices)
        except _DroppedError:
            return None

    chances = enumerate_exactly(one)
    assert sum(chances.values()) == 1
    chances.pop(None, None)
    return dict(chances)


def only(draws: Draws) -> int | None:
    return int(draws[0]) if len(draws) else None


def below_of(n: int, size: int, source: _Coins) -> Draws:
    return np.array([source.below(n) for _ in range(size)], dtype=np.uint64)


@dataclass
class _Trial:
    """Stands for `below` of one candidate; `first` is given to whatever begins it."""

    coins: _Coins
    begun: bool = False

    def __call__(self, n: int) -> int:
        return self.coins.below(n)

    def begin(self) -> None:
        if self.begun:
            raise _DroppedError
        self.begun = True


# --- discrete Laplace and geometric: floor((U + tV) / s), r for exp(-1/t) -------------------------------------------

SCALES = [(1, 1), (3, 1), (1, 2), (2, 3), (3, 2), (4, 3)]


def of_laplace(t: int, s: int, *, is_signed: bool) -> dict[int, Fraction]:
    """Return the chances of one candidate whose V is followed: U even, kept by r^U; V geometric with r^t."""
    chances: dict[int, Fraction] = {}
    for u, v in itertools.product(range(t), range(_MOST + 1)):
        part = F(1, t) * _R**u * (1 - _R**t) * _R ** (t * v)
        y = (u + t * v) // s
        chances[y] = chances.get(y, F(0)) + (part / 2 if is_signed else part)
        if is_signed and y:
            chances[-y] = chances[y]
    whole = [y for y in chances if (abs(y) + 1) * s <= t * (_MOST + 1)]
    for y in whole:  # nothing of these is missing: they are in the ratio of the law
        assert chances[y] == chances[0] * _R ** (s * abs(y))
    return chances


@pytest.fixture
def rational(monkeypatch: Patch) -> None:
    """Coins of discrete Laplace noise, one at a time and in arrays."""

    def is_kept(u: int, t: int, below: _Trial) -> bool:
        if not below.coins.is_heads(_R**u):
            raise _DroppedError
        return True

    def coin_of(k: int, below: _Trial) -> bool:
        assert k == 2
        below.count = getattr(below, "count", 0) + 1  # type: ignore[attr-defined]
        if below.count > _MOST + 1:  # type: ignore[attr-defined]
            raise _DroppedError
        return below.coins.is_heads(below.ratio)  # type: ignore[attr-defined]

    monkeypatch.setattr(discrete_laplace, "is_exp_of_fraction", is_kept)
    monkeypatch.setattr(discrete_laplace, "first_tails_is_odd", coin_of)
    monkeypatch.setattr(discrete_laplace, "draw_below", below_of)
    monkeypatch.setattr(
        discrete_laplace, "draw_exp_of_fraction",
        lambda u, t, source: np.array([source.is_heads(_R ** int(one)) for one in u], dtype=np.bool_),
    )  # fmt: skip


def geometric_e(t: int) -> Callable[[int, _Coins], Draws]:
    return lambda size, source: np.array([source.geometric(_R**t) for _ in range(size)], dtype=np.int64)


@pytest.mark.parametrize(("t", "s"), SCALES)
@pytest.mark.parametrize("largest_v", [254, -1], ids=["machine integers", "big integers"])
def test_a_candidate_of_an_array_is_discrete_laplace(
    rational: None, monkeypatch: Patch, t: int, s: int, largest_v: int
) -> None:
    monkeypatch.setattr(discrete_laplace, "_draw_geometric_e", geometric_e(t))
    monkeypatch.setattr(discrete_laplace, "_LARGEST_SAFE_V", largest_v)

    def run(coins: _Coins) -> int | None:
        drawn = discrete_laplace._draw_candidates(t, s, 1, coins)
        assert not len(drawn) or drawn.dtype == (np.int64 if largest_v > 0 else object)
        return only(drawn)

    assert found(run) == of_laplace(t, s, is_signed=True)


@pytest.mark.parametrize(("t", "s"), SCALES)
def test_one_at_a_time_it_is_the_same(rational: None, t: int, s: int) -> None:
    def run(coins: _Coins) -> int:
        below = _Once(coins, _R**t, t)
        return discrete_laplace._draw_one(t, s, below)

    assert found(run) == of_laplace(t, s, is_signed=True)


class _Once(_Trial):
    """`below` of a draw by algorithm 2 of CKS20: the second U of a draw ends it."""

    def __init__(self, coins: _Coins, ratio: Fraction, t: int) -> None:
        super().__init__(coins)
        self.ratio, self.t, self.calls = ratio, t, 0

    def __call__(self, n: int) -> int:
        self.calls += 1
        if self.calls == 1:
            assert n == self.t
        elif self.calls == 2:
            assert n == 2
        else:
            raise _DroppedError
        return self.coins.below(n)


@pytest.mark.parametrize(("t", "s"), SCALES)
@pytest.mark.parametrize("way", ["machine integers", "big integers", "one at a time"])
def test_a_geometric_number(rational: None, monkeypatch: Patch, t: int, s: int, way: str) -> None:
    """In arrays a candidate that is dropped is drawn anew: here that ends it."""
    monkeypatch.setattr(discrete_laplace, "_draw_geometric_e", geometric_e(t))
    if way == "big integers":
        monkeypatch.setattr(discrete_laplace, "_LARGEST_SAFE_V", -1)
    if way == "one at a time":
        monkeypatch.setattr(discrete_laplace, "ARRAY_LIMIT", 0)

    def first(n: int, size: int, source: _Coins) -> Draws:
        assert n == t
        if getattr(source, "begun", False):
            raise _DroppedError
        source.begun = True  # type: ignore[attr-defined]
        return below_of(n, 1, source)

    monkeypatch.setattr(discrete_laplace, "draw_below", first)

    def run(coins: _Coins) -> int:
        if way == "one at a time":
            monkeypatch.setattr(discrete_laplace, "_draw_magnitude", one_magnitude(t, s, coins))
        return int(discrete_laplace.draw_geometric(F(t, s), 1, coins)[0])

    if math.gcd(t, s) == 1:
        assert found(run) == of_laplace(t, s, is_signed=False)


_MAGNITUDE = discrete_laplace._draw_magnitude


def one_magnitude(t: int, s: int, coins: _Coins) -> Callable[..., int]:
    def magnitude(top: int, bottom: int, below: object) -> int:
        assert (top, bottom) == (t, s)
        return _MAGNITUDE(t, s, _Once(coins, _R**t, t))

    return magnitude


# --- discrete Gaussian: g^((k·a + rest)²), g for exp(-1/(2a²)) ------------------------------------------------------

_G = F(1, 2)
DEVIATIONS = [(1, 1), (2, 1), (1, 2), (3, 2), (2, 3)]


def of_gaussian(a: int, b: int) -> dict[int, Fraction]:
    """Return the chances of one candidate: all of them are in the ratio of the law."""
    first = (1 - _G ** (a * a)) / -(-a // b) / 2
    most = (_MOST + 1) * a
    ys = [y for y in range(-most, most + 1) if abs(y) * b < most]
    return {y: first * _G ** ((y * b) ** 2) for y in ys}


@pytest.mark.parametrize(("a", "b"), DEVIATIONS)
@pytest.mark.parametrize("largest_k", [127, -1], ids=["machine integers", "big integers"])
def test_a_candidate_of_an_array_is_discrete_gaussian(
    monkeypatch: Patch, a: int, b: int, largest_k: int
) -> None:
    def coins_of(power: int) -> Callable[[int, _Coins], Draws]:
        return lambda size, source: np.array(
            [source.is_heads(_G**power) for _ in range(size)], dtype=np.uint8
        )

    def runs(coins: object, size: int, mean: float, source: _Coins) -> Draws:
        assert coins is root
        return np.array([source.geometric(_G ** (a * a)) for _ in range(size)], dtype=np.int64)

    root = coins_of(a * a)
    for name, value in {
        "draw_root_e": root, "draw_inverse_e": coins_of(2 * a * a), "draw_runs": runs, "draw_below": below_of,
        "draw_exp_of_fraction": lambda u, t, source: np.array([source.is_heads(_G ** (2 * a * int(x))) for x in u], dtype=np.bool_),
        "_square_coins": lambda rest, t, source: np.array([source.is_heads(_G ** int(x) ** 2) for x in rest], dtype=np.bool_),
        "_LARGEST_SAFE_K": largest_k,
    }.items():  # fmt: skip
        monkeypatch.setattr(discrete_gaussian, name, value)

    def run(source: _Coins) -> int | None:
        drawn = discrete_gaussian._draw_candidates(a, b, 1, source)
        assert not len(drawn) or drawn.dtype == (np.int64 if largest_k > 0 else object)
        return only(drawn)

    assert found(run) == of_gaussian(a, b)


@pytest.mark.parametrize(("a", "b"), DEVIATIONS)
def test_one_at_a_time_it_is_the_same_gaussian(monkeypatch: Patch, a: int, b: int) -> None:
    def kept(below: _Trial, chance: Fraction) -> bool:
        if not below.coins.is_heads(chance):
            raise _DroppedError
        return True

    def tails(k: int, below: _Trial, c: int = 1) -> bool:
        assert (k, c) in ((1, 2), (2, 1))
        if c == 1:
            return kept(below, _G ** (2 * a * a))
        if below.begun:  # past the offset: another candidate
            raise _DroppedError
        below.runs = getattr(below, "runs", 0) + 1  # type: ignore[attr-defined]
        if below.runs > _MOST + 1:  # type: ignore[attr-defined]
            raise _DroppedError
        return below.coins.is_heads(_G ** (a * a))

    class Once(_Trial):
        def __call__(self, n: int) -> int:
            self.begun = True
            return self.coins.below(n)

    monkeypatch.setattr(discrete_gaussian, "first_tails_is_odd", tails)
    monkeypatch.setattr(
        discrete_gaussian, "is_exp_of_fraction", lambda u, t, below: kept(below, _G ** (2 * a * u))
    )
    monkeypatch.setattr(
        discrete_gaussian, "_is_exp_of_square", lambda u, t, below: kept(below, _G ** (u * u))
    )
    assert found(lambda coins: discrete_gaussian._draw_one(a, b, Once(coins))) == of_gaussian(a, b)


# --- box noise: q^N, of all radii up to one -------------------------------------------------------------------------

BOXES = [((1,), 3), ((2,), 3), ((1, 1), 2), ((1, 2), 1)]
"""Reaches, each with the farthest radius that is followed."""


def of_box(reaches: tuple[int, ...], farthest: int) -> dict[tuple[int, ...], Fraction]:
    """Return the chances of one candidate: Σ over radii r >= N of q^r, less the constants, each vector alike."""
    law, degree = Box(F(1), reaches), len(reaches)
    first = (1 - _R) ** (degree + 1) / (math.factorial(degree) * math.prod(2 * one for one in reaches))
    sides = [range(-one * farthest, one * farthest + 1) for one in reaches]
    return {
        y: first * sum(_R**r for r in range(law.norm(y), farthest + 1)) for y in itertools.product(*sides)
    }


@pytest.mark.parametrize(("reaches", "farthest"), BOXES, ids=str)
@pytest.mark.parametrize("way", ["machine integers", "big integers", "one at a time"])
def test_a_candidate_is_a_vector_of_the_box(
    monkeypatch: Patch, reaches: tuple[int, ...], farthest: int, way: str
) -> None:
    degree = len(reaches)

    def geometric(scale: Fraction, count: int, source: _Coins) -> Draws:
        if getattr(source, "begun", False):
            raise _DroppedError
        source.begun = True  # type: ignore[attr-defined]
        parts = [source.geometric(_R) for _ in range(count)]
        if sum(parts) > farthest:
            raise _DroppedError
        return np.array(parts, dtype=np.int64)

    monkeypatch.setattr(box, "draw_geometric", geometric)
    monkeypatch.setattr(
        box, "draw_below_each", lambda n, source: np.array([source.below(int(x)) for x in n], dtype=np.uint64)
    )
    monkeypatch.setattr(box, "draw_wide_below_each", lambda n, source: [source.below(one) for one in n])
    if way == "big integers":
        monkeypatch.setattr(box, "_INT64", 0)

    def run(source: _Coins) -> tuple[int, ...] | None:
        if way == "one at a time":
            law = Box(F(1), reaches)
            return tuple(map(int, box._inside(law, [box._one_kept(law, source)], source)[:, 0]))
        drawn = box._candidates(Box(F(1), reaches), 1, source)
        assert drawn.shape[0] == degree
        assert drawn.dtype == (np.int64 if way == "machine integers" or not drawn.size else object)
        return tuple(map(int, drawn[:, 0])) if drawn.shape[1] else None

    assert found(run) == of_box(reaches, farthest)


# --- truncated noise: q^|x| below the bound, weight·q^bound at it ---------------------------------------------------


@pytest.mark.parametrize("bound", [1, 2, 4])
@pytest.mark.parametrize("weight", [F(1), F(3, 4)])
@pytest.mark.parametrize("scale", [F(1, 2), F(9, 2)], ids=["cut from Laplace noise", "proposed evenly"])
def test_a_candidate_of_truncated_noise(
    monkeypatch: Patch, scale: Fraction, weight: Fraction, bound: int
) -> None:
    """Whichever way candidates are proposed: r for exp(-1/scale)."""

    def laplace(law: Fraction, count: int, source: _Coins) -> Draws:
        begin(source)
        assert (law, count) == (scale, 1)
        chances = [(1 - _R) / (1 + _R) * _R ** abs(x) for x in range(-6, 7)]
        x = source.choose([*chances, 1 - sum(chances)]) - 6
        if x > 6:
            raise _DroppedError
        return np.array([x], dtype=np.int64)

    def evenly(n: int, size: int, source: _Coins) -> Draws:
        begin(source)
        assert n == 2 * bound + 1
        return below_of(n, size, source)

    def begin(source: _Coins) -> None:
        if getattr(source, "begun", False):
            raise _DroppedError
        source.begun = True  # type: ignore[attr-defined]

    t, s = scale.as_integer_ratio()

    def kept(u: Draws, top: int, source: _Coins) -> Draws:
        assert top == t
        powers = [F(int(one), s) for one in u]
        assert all(power.denominator == 1 and one < t for power, one in zip(powers, u.tolist(), strict=True))
        return np.array([source.is_heads(_R ** int(power)) for power in powers], dtype=np.bool_)

    monkeypatch.setattr(truncated, "draw_discrete_laplace", laplace)
    monkeypatch.setattr(truncated, "draw_below", evenly)
    monkeypatch.setattr(truncated, "draw_exp_of_fraction", kept)
    monkeypatch.setattr(
        truncated, "draw_coins",
        lambda chance, count, source: np.array([source.is_heads(chance) for _ in range(count)], dtype=np.bool_),
    )  # fmt: skip
    law = Truncated(scale, bound, weight)
    chances = found(lambda source: only(law.draw(1, source)))
    assert chances.keys() == set(range(-bound, bound + 1))
    for x, chance in chances.items():
        assert chance == chances[0] * _R ** abs(x) * (weight if abs(x) == bound else 1)


# --- uniform integers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 2**61 + 1, 3 * 2**61, 2**63 - 1, 2**63])
def test_words_for_many_limits_are_kept_up_to_the_largest_multiple(n: int) -> None:
    """Each value below n[i] has as many words: those of all whole multiples of n[i], the rest is drawn anew."""
    last = 2**64 // n * n - 1
    words = [0, n - 1, n % 2**64, last]
    again = [last + 1, 5, 6] if last < 2**64 - 1 else []
    given = [*words, *again[:1], *([6] if again else []), *again[1:2]]

    class Words:
        def __init__(self) -> None:
            self.given = b"".join(word.to_bytes(8, "little") for word in given)

        def random_bytes(self, count: int) -> bytes:
            some, self.given = self.given[:count], self.given[count:]
            return some

    source = Words()
    count = 4 + (2 if again else 0)
    drawn = uniform.draw_below_each(np.full(count, n, dtype=np.uint64), source)
    expected = [0, n - 1, 0, n - 1]
    assert drawn.tolist() == (expected if not again else [*expected, 5 % n, 6 % n])
    assert source.given == b""


# --- forced at any size ---------------------------------------------------------------------------------------------


def laplace_below(scale: float, at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Pr[Y < m] for whole numbers m."""
    q = math.exp(-1 / scale)
    return np.where(at <= 0, np.exp((at - 1) / scale) / (1 + q), 1 - np.exp(-at / scale) / (1 + q))


def gaussian_below(sigma: float, at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if sigma > 100:
        return np.asarray(stats.norm.cdf((at - 0.5) / sigma))
    every = np.arange(-int(40 * sigma) - 40, int(40 * sigma) + 41)
    weights = np.exp(-(every**2) / (2 * sigma**2))
    return np.asarray(np.array([weights[every < one].sum() for one in at]) / weights.sum())


def truncated_below(law: Truncated, at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    every = np.arange(-law.bound, law.bound + 1)
    weights = np.exp(-np.abs(every) / float(law.scale)) * np.where(
        np.abs(every) == law.bound, float(law.weight), 1
    )
    return np.asarray(np.array([weights[every < one].sum() for one in at]) / weights.sum())


def norm_below(law: Box, at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Pr[N < m]: vectors of norm n, as many as the box of n has and that of n - 1 has not."""
    scale, degree = float(law.scale), len(law.reaches)
    if scale > 1e6:
        return np.asarray(stats.gamma.cdf(at / scale, degree))
    every = np.arange(int(60 * scale) + 60, dtype=np.float64)
    within = np.prod([2 * every + 1 / reach for reach in law.reaches], axis=0)
    weights = np.diff(within, prepend=0) * np.exp(-every / scale)
    return np.asarray(np.array([weights[every < one].sum() for one in at]) / weights.sum())


@dataclass
class Forced:
    """A law at which a branch is taken, with what is lowered so that it is; what comes of a draw is `shown`."""

    law: Law
    below: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
    lowered: dict[tuple[ModuleType, str], int] = field(default_factory=dict)
    dtype: type = np.int64
    count: int = 4000
    each: int = 0
    """So many draws at a time; 0: all at once."""

    def draw(self, count: int) -> list[int]:
        source, law = SeededSource(8), self.law
        if isinstance(law, Box):
            drawn = law.vectors(len(law.reaches), count, source)
            assert drawn.dtype == self.dtype
            return [law.norm(map(int, vector)) for vector in drawn.T]
        if isinstance(law, Gaussians):
            drawn = law.vectors(len(law.reaches), count, source)
            assert drawn.dtype == self.dtype
            return [int(y) for y in drawn[0]]
        drawn = np.concatenate(
            [law.draw(self.each or count, source) for _ in range(count // (self.each or count))]
        )
        assert drawn.dtype == self.dtype
        return [int(y) for y in drawn]


L, G = discrete_laplace, discrete_gaussian
_WIDE = 2.0**60


def laplace_forced(scale: Fraction, **more: Any) -> Forced:
    return Forced(Laplace(scale), lambda at: laplace_below(float(scale), at), **more)


def gaussian_forced(sigma: Fraction, **more: Any) -> Forced:
    return Forced(Gaussian(sigma), lambda at: gaussian_below(float(sigma), at), **more)


def box_forced(law: Box, **more: Any) -> Forced:
    return Forced(law, lambda at: norm_below(law, at), **more)


def truncated_forced(law: Truncated, **more: Any) -> Forced:
    return Forced(law, lambda at: truncated_below(law, at), **more)


FORCED = {
    "laplace, arrays": laplace_forced(F(7, 3)),
    "laplace, arrays at their limit": laplace_forced(F(2**55 - 1)),
    "laplace, arrays of big integers": laplace_forced(F(7, 3), lowered={(L, "_LARGEST_SAFE_V"): -1}, dtype=object),
    "laplace, few": laplace_forced(F(7, 3), each=8),
    "laplace, big numerator": laplace_forced(F(2**60), dtype=object),
    "laplace, big denominator": laplace_forced(F(2**60 + 1, 2**59), dtype=object),
    "gaussian, arrays": gaussian_forced(F(7, 4)),
    "gaussian, arrays at their limit": gaussian_forced(F(2**55)),
    "gaussian, arrays of big integers": gaussian_forced(F(7, 4), lowered={(G, "_LARGEST_SAFE_K"): -1}, dtype=object),
    "gaussian, few": gaussian_forced(F(7, 4), each=8),
    "gaussian, big numerator": gaussian_forced(F(2**60), dtype=object),
    "gaussian, big denominator": gaussian_forced(F(7, 4), lowered={(G, "_LARGEST_B"): 1}, dtype=object),
    "thresholded": Forced(Thresholded(F(9, 4), 5), lambda at: gaussian_below(2.25, at)),
    "gaussians": Forced(Gaussians(F(3, 2), (2, 1)), lambda at: gaussian_below(3, at)),
    "gaussians, one of them big": Forced(Gaussians(F(3, 2), (2, 2**60)), lambda at: gaussian_below(3, at), dtype=object),
    "box, arrays": box_forced(Box(F(5, 2), (1, 3))),
    "box, arrays of big integers": box_forced(Box(F(5, 2), (1, 3)), lowered={(box, "_INT64"): 2**4}, dtype=object),
    "box, big reaches": box_forced(Box(F(5, 2), (1, 2**60)), dtype=object),
    "box, big reaches of small vectors": box_forced(Box(F(1, 2), (1, 2**55))),
    "box, big geometric numbers": box_forced(Box(F(5, 2), (1, 3)), lowered={(L, "_LARGEST_SAFE_V"): -1}, dtype=np.int64),
    "box, radii that are read off": box_forced(Box(F(5, 2), (1, 3)), lowered={(box, "_LEAST_KEPT"): 2}),
    "box, the same of big integers": box_forced(
        Box(F(5, 2), (1, 3)), lowered={(box, "_LEAST_KEPT"): 2, (box, "_INT64"): 2**4}, dtype=object
    ),
    "box, big scale": box_forced(Box(F(2**58), (1, 7)), dtype=object),
    "truncated, cut": truncated_forced(Truncated(F(5, 2), 4, F(1, 2))),
    "truncated, proposed evenly": truncated_forced(Truncated(F(25, 2), 4, F(1, 2))),
    "truncated, cut from big integers": truncated_forced(
        Truncated(F(5, 2), 4, F(1, 2)), lowered={(L, "_LARGEST_SAFE_V"): -1}
    ),
}  # fmt: skip


def force(monkeypatch: Patch, forced: Forced) -> None:
    for (module, name), limit in forced.lowered.items():
        monkeypatch.setattr(module, name, limit)


@pytest.mark.parametrize("forced", FORCED.values(), ids=FORCED)
def test_forced_branches_have_the_law(monkeypatch: Patch, forced: Forced) -> None:
    """Chi-squared over forty bins of the law; of numbers that are half as large it is refused."""
    force(monkeypatch, forced)
    drawn = forced.draw(forced.count)
    assert fit_p(forced, [float(y) for y in drawn]) > _P
    assert fit_p(forced, [float(y // 2 if y > 0 else -(-y // 2)) for y in drawn]) < _P


def fit_p(forced: Forced, drawn: list[float]) -> float:
    wide = max(abs(y) for y in forced.draw(64)) or 1
    places = np.unique(np.floor(np.linspace(-wide, wide, 401)))
    below, edges = forced.below(places), [places[0]]
    last = 0.0
    chances = []
    for place, share in zip(places.tolist(), below.tolist(), strict=True):
        if share - last >= 0.025 and 1 - share >= 0.025:
            edges.append(place)
            chances.append(share - last)
            last = share
    chances.append(1 - last)
    seen = Counter(int(np.searchsorted(edges[1:], y, side="right")) for y in drawn)
    observed = [seen[number] for number in range(len(chances))]
    expected = [chance * len(drawn) for chance in chances]
    return float(stats.chisquare(observed, expected, sum_check=False).pvalue)


def functions_of(module: ModuleType) -> Iterator[CodeType]:
    """Yield the code of a module's own functions that draw, methods too."""
    classes = [one for one in vars(module).values() if inspect.isclass(one)]
    for one in (one for holder in (module, *classes) for one in vars(holder).values()):
        if not inspect.isfunction(one) or one.__code__.co_filename != module.__file__:
            continue
        if "source" in one.__code__.co_varnames:
            yield one.__code__


SAMPLERS = (
    uniform, discrete_laplace, discrete_gaussian, box, truncated, noise, choice,
    randomized_response,
)  # fmt: skip


def test_no_line_of_a_sampler_is_left_out(monkeypatch: Patch) -> None:
    """A branch that is added, and that nothing here forces, is red."""
    wanted = {code: set(code_lines(code)) for module in SAMPLERS for code in functions_of(module)}
    seen: dict[CodeType, set[int]] = {code: set() for code in wanted}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code not in seen:
            return None
        seen[frame.f_code].add(frame.f_lineno)
        return trace

    before, source = sys.gettrace(), SeededSource(9)
    sys.settrace(trace)
    try:
        for forced in FORCED.values():
            with monkeypatch.context() as patch:
                force(patch, forced)
                forced.draw(64)
        law = Box(F(1), (1, 2))
        law.noises({0: F(1), 1: F(1)})[0][0].draw(3, source)
        law.at(1).draw(3, source)
        Truncated(F(1), 3, F(1)).draw(0, source)
        others(source)
    finally:
        sys.settrace(before)
    left = [
        f"{code.co_qualname}: {line}"
        for code, lines in wanted.items()
        for number in sorted(lines - seen[code])
        if not (line := text_of(code, number)).startswith("raise ")  # refused before anything is drawn
    ]
    assert not left, left


def others(source: SeededSource) -> None:
    """Take the branches that no law of `FORCED` takes; what comes of them is held by the tests of their modules."""
    few = discrete_laplace.draw_runs(discrete_laplace.draw_inverse_e, 300, -1.02, source)
    assert len(few) == 300  # though the first batch held 64 coins
    discrete_laplace.draw_inverse_e(200_000, source)  # one word in 5040 goes on
    for n in (1000, 2**32 // 3 + 1, 3 * 2**61):  # of each width, with words that are rejected
        assert uniform.draw_below(n, 5000, source).max() < n
    uniform.draw_coins(F(1, 4), 10, source)
    channels = (
        Channel.of_epsilon(3, F(1)),
        Channel.of_truth(3, F(1, 2)),
        Channel.of_bit(F(3, 4), F(1, 4), 1),
    )
    for channel in channels:
        for true in (0, 1):
            randomized_response.report(channel, true, source)
    randomized_response.report_bits(3, 1, channels[-1], source)
    for first in (b"", bytes(16)):
        choice.choose((1, 2), (0, 1), F(1, 3), first, source)
    law = Box(F(1, 10), (1, 1000, 10**6))
    edge = box._cumulative(law.scale, law.reaches, 128)[0][2]  # undecided: two words leave two radii
    box._radii(law, 1, Tape(b"".join(word.to_bytes(8, "little") for word in (edge >> 64, edge % 2**64, 0))))
    third = (2**64 // 3).to_bytes(8, "big")  # undecided: whether 1/3 is above
    for more in (bytes(8), b"\xff" * 8):
        choice.coin(lambda bits: (F(1, 3), F(1, 3)), Tape(third + more))
        coins = bytes(3 * 8)
        assert choice.permute_and_flip([1, 1, 1], F(1), Tape(coins + 2 * third + more)) < 3
    shared = [100, 0]  # both words of a coin at exp(-100/33): more bits are asked for
    at = math.floor(F(bounds_of_exp(F(100, 33), 60)[0]) * 2**64).to_bytes(8, "big")
    choice.permute_and_flip(shared, F(1, 33), Tape(bytes(8) + at + bytes(16) + bytes(8)))
    choice.permute_and_flip(shared, F(1, 33), source)


def code_lines(code: CodeType) -> Iterator[int]:
    for _, _, line in code.co_lines():
        if line is not None and line != code.co_firstlineno:
            yield line


def text_of(code: CodeType, line: int) -> str:
    source, first = inspect.getsourcelines(code)
    return source[line - first].strip()
