"""Weighted sums of noises, against enumeration: soundness.md 1.35."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from dpsql.mechanisms import (
    OS_RANDOM,
    Box,
    Gaussian,
    Laplace,
    Law,
    WeightedSum,
    half_width_of,
    near_half_width,
    sum_of,
)
from dpsql.mechanisms.laws import weighted

from ..laws.planting import plant
from ..support.length import some

BETA = Fraction(1, 20)
HALF = Fraction(1, 2)


def chances(scale: Fraction, reach: int) -> np.ndarray:  # type: ignore[type-arg]
    at = np.arange(-reach, reach + 2)
    tails = Laplace(scale).tails(at)
    return tails[:-1] - tails[1:]


@pytest.mark.parametrize("weights", [(1, 1), (1, -1), (2, 3), (1, 1, 1)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(40)])
def test_whole_multiples_of_one_lattice(weights: tuple[int, ...], scale: Fraction) -> None:
    reach = int(40 * scale) + 40
    whole = np.ones(1)
    for weight in weights:
        spaced = np.zeros(2 * reach * abs(weight) + 1)
        spaced[:: abs(weight)] = chances(scale, reach)
        whole = np.convolve(whole, spaced)
    middle = len(whole) // 2
    half = half_width_of([(Laplace(scale), Fraction(weight, 7)) for weight in weights], BETA) * 7
    assert half.denominator == 1

    def outside(m: int) -> float:
        return float(1 - whole[middle - m : middle + m + 1].sum())

    assert outside(int(half)) <= 0.05 + 1e-9
    assert outside(int(half) - 1) > 0.05 - 1e-9


def test_one_noise_is_exact() -> None:
    law = Laplace(Fraction(200))
    assert half_width_of([(law, Fraction(-1, 100))], BETA) == Fraction(599, 100)


def test_two_wide_noises_are_as_their_limit() -> None:
    """Of two Laplace noises of scale b, Pr[|sum| > x] = (1 + x / 2b) exp(-x/b)."""
    scale = Fraction(10**8)
    half = half_width_of([(Laplace(scale), Fraction(1)), (Laplace(scale), Fraction(1))], BETA)
    x = float(half / scale)
    assert (1 + x / 2) * np.exp(-x) == pytest.approx(0.05, rel=1e-4)


@pytest.mark.parametrize("beta", [HALF, BETA, Fraction(1, 10**6)])
def test_wide_noises_are_alike_at_any_width_and_worked_out_once(beta: Fraction) -> None:
    """Whichever weights and scales make the widths, and whatever beside: a wide noise, a narrow one, a lattice."""
    wide = 3 * 2**31

    def half(*scales: Fraction | int, weight: Fraction = Fraction(1)) -> float:
        return float(half_width_of([(Laplace(Fraction(scale)), weight) for scale in scales], beta))

    for shape in ((1, 1), (1, 1, 1), (3, 1), (2, 1, 1, 1)):
        near = half(*(10**4 * one for one in shape)) / 10**4
        weighted._half_width_of.cache_clear()
        for factor, weight in (
            (wide, 1),
            (7 * wide, Fraction(1, 7)),
            (Fraction(17 * wide, 13), 1),
            (wide, -5),
        ):
            found = half(*(factor * one for one in shape), weight=Fraction(weight))
            assert found / float(factor * abs(Fraction(weight))) == pytest.approx(near, rel=2e-4)
        assert weighted._half_width_of.cache_info().misses == 1
    other = half(wide, 2 * wide)
    assert other != pytest.approx(half(wide, wide), rel=0.1), "another shape is another sum"
    assert half(wide, 1) == pytest.approx(half(wide, 0.001), rel=1e-6)
    assert half(wide, 1) == pytest.approx(float(Laplace(Fraction(wide)).half_width(beta)), rel=1e-5)


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1)])
def test_bad_probabilities(beta: Fraction) -> None:
    with pytest.raises(ValueError, match="half-width"):
        half_width_of([(Laplace(Fraction(1)), Fraction(1))] * 2, beta)


def test_tails_are_those_of_exact_arithmetic() -> None:
    from dpsql.mechanisms.discrete_laplace import tail

    for scale in (Fraction(1, 3), Fraction(7), Fraction(10**9)):
        at = [-3 * int(scale) - 5, -1, 0, 1, 2, 5 * int(scale) + 3]
        found = Laplace(scale).tails(np.array(at))
        assert found.tolist() == pytest.approx([float(tail(scale, m)) for m in at], rel=1e-9)


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(10**5, 7)])
@pytest.mark.parametrize("beta", [Fraction(1, 2), BETA, Fraction(1, 10**6)])
def test_the_law_of_a_sum(count: int, scale: Fraction, beta: Fraction) -> None:
    """Not wider than its deviation says, nor narrower: a Laplace law of that spread would be, below the level 0.9."""
    law, wanted = sum_of(Laplace(scale), count), half_width_of([(Laplace(scale), Fraction(1))] * count, beta)
    assert float(law.half_width(beta)) == pytest.approx(float(wanted), rel=1e-4, abs=1)
    half = law.half_width(beta)
    assert 2 * law.tails(np.array([half + 1]))[0] <= float(beta) * (1 + 1e-3)
    assert 2 * law.tails(np.array([half]))[0] > float(beta) * (1 - 1e-3)
    drawn = law.draw(20_000, OS_RANDOM)
    assert np.mean(np.abs(drawn) > law.half_width(Fraction(1, 2))) <= 0.5 + 0.02
    assert np.mean(np.abs(drawn) >= law.half_width(Fraction(1, 2))) >= 0.5 - 0.02


def test_the_law_of_very_many_is_the_normal_one() -> None:
    law = sum_of(Laplace(Fraction(40)), 100_000)
    assert law.half_width(BETA) == pytest.approx(1.959964 * float(law.spread) ** 0.5, rel=2e-3)
    assert law.upper_quantile(Fraction(1, 10**12)) > law.half_width(Fraction(1, 10**6))


@pytest.mark.parametrize("scale", [2**58, 10**24])
@pytest.mark.parametrize("law", [Laplace, Gaussian])
def test_noises_beyond_64_bits_have_the_same_shape(scale: int, law: type[Law]) -> None:
    """Of two noises, whose steps are too many to count: that of a shape is all, whatever its scale."""
    wide, narrow = law(Fraction(scale)), law(Fraction(10**6))  # type: ignore[call-arg]  # of one parameter
    for beta in (Fraction(1, 2), BETA, Fraction(1, 1000)):
        for count in (2, 62):
            far, near = (sum_of(one, count).half_width(beta) for one in (wide, narrow))
            assert far / scale == pytest.approx(near / 10**6, rel=2e-3)
    drawn = sum_of(wide, 2).draw(1000, OS_RANDOM)
    assert 0.7 < float(np.std(np.array([int(one) / scale for one in drawn]))) < 3


# --- how one is made ------------------------------------------------------------------------------------------


def test_numbers_of_one_law_may_come_as_an_array() -> None:
    laplace, gaussian = Laplace(Fraction(3)), Gaussian(Fraction(5))
    weights = [0.25, -0.5, 0.25, 0.0, 1.0]
    apart = WeightedSum.of([*((laplace, one) for one in weights), (gaussian, 0.5), (gaussian, -0.5)])
    together = WeightedSum.of([(gaussian, np.array([[0.5], [0.5]])), (laplace, np.array(weights))])
    assert apart == together
    assert set(together.parts) == {
        (laplace, Fraction(1), 1), (laplace, Fraction(1, 2), 1), (laplace, Fraction(1, 4), 2), (gaussian, Fraction(1, 2), 2)
    }  # fmt: skip
    assert together.parts[0] == max(together.parts, key=lambda it: it[1] ** 2 * it[2] * it[0].spread)
    with pytest.raises(ValueError, match="other than 0"):
        WeightedSum.of([(laplace, 0.0)])


def test_whole_sums_are_taken_apart_and_rounded_ones_are_not() -> None:
    law = Laplace(Fraction(3))
    assert WeightedSum.of([(sum_of(law, 4), 0.5), (law, np.full(3, 0.5))]).parts == (
        (law, Fraction(1, 2), 7),
    )
    rounded = WeightedSum.of([(law, np.full(4, 0.25))], HALF)
    assert (rounded, Fraction(1), 1) in WeightedSum.of([(rounded, 1.0), (law, 0.5)], HALF).parts


@pytest.mark.parametrize("least", [1.0, 1e-6])
def test_more_weights_than_are_told_apart_keep_the_variance(least: float) -> None:
    law, other = Laplace(Fraction(3)), Gaussian(Fraction(2))
    weights = least * np.geomspace(1, 1000, 300)
    found = WeightedSum.of([(law, weights), (other, weights[:200])])
    assert len(found.parts) == 26
    wanted = float(law.spread) * (weights**2).sum() + 4 * (weights[:200] ** 2).sum()
    assert float(found.spread) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("off", [HALF, Fraction(7, 2)])
def test_what_is_rounded_is_as_likely_above_as_below(off: Fraction) -> None:
    law = WeightedSum.of([(Laplace(Fraction(3)), 0.5), (Gaussian(Fraction(2)), 0.25)], off)
    at = np.arange(-12, 13)
    assert law.tails(at) == pytest.approx(1 - law.tails(1 - at), abs=1e-12)
    assert np.all(np.diff(law.tails(at)) <= 0)
    for beta in (Fraction(1, 5), BETA):
        half = law.half_width(beta)
        assert 2 * law.tails(np.array([half + 1]))[0] <= float(beta) + 1e-9
        assert 2 * law.tails(np.array([half - 1]))[0] > float(beta)


# --- more weights than a convolution has ----------------------------------------------------------------------

LEVELS = (Fraction(1, 2), Fraction(1, 10), BETA, Fraction(1, 100), Fraction(1, 10**4))


def test_the_constants() -> None:
    """Rounded up they are 1.725, 2.162 and 3.262: at most 2 % above one Laplace noise at 95 %, 10 % above the normal."""
    for beta, known in ((Fraction(1, 10), 1.7241), (BETA, 2.1614), (Fraction(1, 100), 3.2610)):
        c = weighted._mixed_quantile(beta)
        assert c == pytest.approx(known, abs=1e-4)
        assert -math.log(beta) / math.sqrt(2) < c < -math.log(beta) / math.sqrt(2) * 1.06
        assert c > stats.norm.ppf(1 - float(beta) / 2)


@pytest.mark.parametrize("beta", LEVELS)
def test_the_quantile_is_that_of_the_convex_bound(beta: Fraction) -> None:
    """E psi^(E) by quadrature; psi^ is convex and above psi."""
    c = weighted._mixed_quantile(beta)
    bend = c**2 / 3
    slope = c * bend**-1.5 * stats.norm.pdf(math.sqrt(3))

    def psi(s: float) -> float:
        return float(2 * stats.norm.sf(c / math.sqrt(s)))

    def above(s: float) -> float:
        return psi(s) if s < bend else psi(bend) + slope * (s - bend)

    whole = sum(
        integrate.quad(lambda s: above(s) * math.exp(-s), *ends)[0] for ends in ((0, bend), (bend, np.inf))
    )
    assert whole == pytest.approx(float(beta), rel=1e-6)
    at = np.linspace(0.01, 4 * bend, 500)
    values = np.array([above(s) for s in at])
    assert np.all(values >= np.array([psi(s) for s in at]) - 1e-12)
    assert np.all(np.diff(values, 2) >= -1e-9)


SHAPES: dict[str, Callable[[int], list[int]]] = {
    "equal": lambda n: [1] * n,
    "rising": lambda n: list(range(1, n + 1)),
    "geometric": lambda n: [2 ** min(i, 6) for i in range(n)],
    "one large": lambda n: [40, *range(1, n)],
    "two large": lambda n: [40, 41, *([1] * (n - 2))],
}
MIXES: dict[str, Callable[[int], Law]] = {
    "Laplace": lambda i: Laplace(Fraction(3, 4)),
    "Gaussian": lambda i: Gaussian(Fraction(1)),
    "both": lambda i: Laplace(Fraction(1)) if i % 2 else Gaussian(Fraction(3, 2)),
    "one Laplace": lambda i: Laplace(Fraction(2)) if i == 0 else Gaussian(Fraction(1)),
    "wide and narrow": lambda i: Laplace(Fraction(5 if i % 3 else 1)),
}


def beyond(parts: list[weighted.Part]) -> np.ndarray:  # type: ignore[type-arg]
    """Return Pr[|Σ weight · noise| > m] for each m from 0 up, of whole weights: on the lattice, to 12 digits."""
    reach = int(sum(float(weight) * count * (25 * math.sqrt(law.spread) + 5) for law, weight, count in parts))
    size = 2 ** math.ceil(math.log2(2 * reach))
    transform = np.ones(size // 2 + 1, dtype=np.complex128)
    for law, weight, count in parts:
        places = np.arange(-(reach // int(weight)), reach // int(weight) + 1)
        upper = law.tails(np.append(places, places[-1] + 1))
        one = np.zeros(size)
        one[places * int(weight)] = upper[:-1] - upper[1:]
        transform *= np.fft.rfft(one) ** count
    density = np.fft.irfft(transform, size)
    return np.asarray(1 - density[0] - 2 * np.cumsum(np.append(0, density[1 : size // 2])))


def check_bound(shape: str, mix: str, size: int) -> None:
    parts = [(MIXES[mix](i), Fraction(weight), 1) for i, weight in enumerate(SHAPES[shape](size))]
    chances = beyond(parts)
    for beta in LEVELS:
        half = weighted.bound_of(parts, beta, most=0)
        assert half is not None
        assert chances[math.floor(half)] <= float(beta) + 1e-9, (beta, half)


def check_bounds() -> None:
    for shape, mix in itertools.product(SHAPES, MIXES):
        check_bound(shape, mix, 2)


@pytest.mark.parametrize("size", [2, 5, 26])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mix", MIXES)
def test_the_bound_holds_whatever_the_weights(shape: str, mix: str, size: int) -> None:
    check_bound(shape, mix, size)


def test_a_rounding_beside_them_may_be_narrow() -> None:
    rounding = Gaussian(Fraction(782, 1024))  # of eight corners: 7/12 of a squared step
    for size in (3, 26):
        parts = [(Laplace(Fraction(1)), Fraction(1), 1) for _ in range(size)] + [(rounding, Fraction(1), 1)]
        for beta in LEVELS:
            half = weighted.bound_of(parts, beta, most=0)
            assert half is not None
            assert beyond(parts)[math.floor(half)] <= float(beta) + 1e-9


def test_the_bound_is_used_where_weights_are_many_and_steps_are_fine() -> None:
    weights = np.linspace(0.1, 1, 400)
    for law, quantile in ((Gaussian(Fraction(20)), 1.96), (Laplace(Fraction(20)), 2.162)):
        found = WeightedSum.of([(law, weights)], HALF)
        deviation = 20 * math.sqrt((weights**2).sum() * float(law.spread) / 400)
        assert found.half_width(BETA) == math.floor(quantile * deviation + 1)
        assert found.half_width(Fraction(1, 10**12)) < 12 * deviation * 2
    for law in (Laplace(Fraction(1, 2)), Gaussian(Fraction(1, 2)), Box(Fraction(20), (1, 3)).at(1)):
        found = WeightedSum.of([(law, weights)], HALF)
        assert weighted.bound_of(found.parts, BETA) is None
        assert found.half_width(BETA) <= 1.96 * math.sqrt(float(found.spread)) + 1


def test_a_proven_bound_is_not_far_from_the_convolution() -> None:
    """At most a tenth wider, of noises of any shape."""
    weights = np.geomspace(1, 30, 60)
    found = WeightedSum.of([(Laplace(Fraction(9)), weights), (Gaussian(Fraction(30)), weights[:9])], HALF)
    for beta in (Fraction(1, 10), BETA, Fraction(1, 100)):
        bound = weighted.bound_of(found.parts, beta)
        assert bound is not None
        assert 1 < float(bound / weighted._half_width(found.parts, beta)) < 1.3


# --- mutants --------------------------------------------------------------------------------------------------


def test_without_the_lattices(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, weighted.bound_of, (" + max(weight for _, weight, _ in parts) / 2", ""))
    with pytest.raises(AssertionError):
        check_bounds()


def test_the_normal_quantile_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, weighted.bound_of, ("if kinds == {Gaussian}", "if kinds"))
    with pytest.raises(AssertionError):
        check_bounds()


# --- about a hundredth above -----------------------------------------------------------------------------------

WIDE = (Laplace(Fraction(40)), Gaussian(Fraction(30)), Laplace(Fraction(3)), Gaussian(Fraction(5, 2)))


@pytest.mark.parametrize("one", some(WIDE, 2), ids=lambda law: law.text)
@pytest.mark.parametrize("beta", [BETA, Fraction(1, 10**5)])
def test_near_half_widths_are_above_exact_ones_by_a_hundredth(one: Law, beta: Fraction) -> None:
    for other, weight, count in (
        (one, Fraction(1, 3), 1),
        (WIDE[1], Fraction(1, 100), 500),
        (WIDE[0], Fraction(2), 7),
    ):
        parts = [(one, Fraction(1), 1), (other, weight, count)]
        exact = float(weighted._half_width(parts, beta))
        assert exact <= near_half_width(parts, beta) <= exact * 1.015
    assert near_half_width([(one, Fraction(1), 1), (one, Fraction(0), 9)], beta) >= one.half_width(beta)


@pytest.mark.parametrize(
    "one",
    [Laplace(Fraction(1, 5)), Gaussian(Fraction(1, 4)), Laplace(Fraction(1, 2000))],
    ids=lambda law: law.text,
)
def test_near_half_widths_of_noises_below_a_step(one: Law) -> None:
    """Of one noise alone its lattice is exact, and what is added is a part of its deviation."""
    for beta in (BETA, Fraction(1, 10**4)):
        exact = one.half_width(beta)
        assert exact <= near_half_width([(one, Fraction(1), 1)], beta) <= exact * 1.02 + 0.05


def test_near_half_widths_of_others_are_the_exact_ones() -> None:
    law = Box(Fraction(20), (1, 3)).at(1)
    assert near_half_width([(law, Fraction(1), 1)], BETA) == law.half_width(BETA)


@pytest.mark.parametrize(("old", "new"), [(" ** count", ""), ("* NormalDist().cdf(_BACK)", "* 2")])
def test_mutants_of_near_half_widths(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """What takes many noises for one, and what takes back twice as much as was added."""
    weighted._near_half_width.cache_clear()
    plant(monkeypatch, weighted._near_half_width.__wrapped__, (old, new))
    with pytest.raises(AssertionError):
        test_near_half_widths_are_above_exact_ones_by_a_hundredth(WIDE[0], BETA)
    weighted._near_half_width.cache_clear()


def test_wide_gaussian_noises_are_as_their_limit() -> None:
    """A sum of them has the normal law's quantile, at any width: those of a lattice are no nearer."""
    for scale in (2**12, 10**9, 10**30):
        half = half_width_of(
            [(Gaussian(Fraction(scale)), Fraction(1, 3)), (Gaussian(Fraction(scale)), Fraction(5))], BETA
        )
        assert float(half / scale) == pytest.approx(1.959964 * math.sqrt(1 / 9 + 25), rel=1e-6)
