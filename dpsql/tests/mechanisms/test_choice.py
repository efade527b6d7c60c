"""Choices by the exponential mechanism: their exact law, the bounds it rests on, and what power the tests have."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pytest
from scipy import stats

from dpsql.mechanisms import OS_RANDOM, choice
from dpsql.mechanisms.choice import choose, coin, powers
from dpsql.tests.mechanisms.tape import Tape

_P = 1e-9
CASES = [
    ([1, 2, 0, 3], [0, 1, 5, 2], Fraction(1, 2)),
    ([7], [3], Fraction(1)),
    ([10**6, 10**6, 10**6], [5, 0, 15], Fraction(1, 20)),
    ([3, 1, 1, 3], [12_000, 4, 0, 20_000], Fraction(1, 7_000)),
    ([2, 5, 2], [10**7, 10**7 + 30, 10**7 + 5], Fraction(1, 9)),
]


def law_of(counts: Sequence[int], exponents: Sequence[int], gamma: Fraction) -> list[float]:
    """Return the probability of each interval."""
    least = min(k for n, k in zip(counts, exponents, strict=True) if n)
    weights = [n * math.exp(-float(gamma) * (k - least)) for n, k in zip(counts, exponents, strict=True)]
    return [weight / math.fsum(weights) for weight in weights]


@pytest.mark.parametrize(("counts", "exponents", "gamma"), [case for case in CASES if sum(case[0]) < 100])
def test_all_bits_enumerated_give_the_law(counts: list[int], exponents: list[int], gamma: Fraction) -> None:
    """Of all words of 16 bits each interval has its share, but for the words that stand at an edge."""
    found: Counter[int] = Counter()
    undecided = 0
    for word in range(2**16):
        tape = Tape(b"")
        try:
            found[choose(counts, exponents, gamma, word.to_bytes(2, "big"), tape)[0]] += 1
        except ValueError:  # more bits are asked for
            undecided += 1
    assert undecided <= sum(counts)
    for index, p in enumerate(law_of(counts, exponents, gamma)):
        assert found[index] <= p * 2**16 + 1e-6 <= found[index] + undecided + 1e-5, index


@pytest.mark.parametrize(("counts", "exponents", "gamma"), CASES)
def test_the_draws_fit_and_half_the_scale_does_not(
    counts: list[int], exponents: list[int], gamma: Fraction
) -> None:
    draws = 20_000
    places = Counter(choose(counts, exponents, gamma, os.urandom(16), OS_RANDOM) for _ in range(draws))
    assert all(0 <= j < counts[i] for i, j in places)
    found = Counter[int]()
    for (i, _), times in places.items():
        found[i] += times

    def fit(scale: Fraction) -> float:
        law = law_of(counts, exponents, scale)
        kept = [i for i, p in enumerate(law) if p * draws >= 5]
        rest = draws - sum(found[i] for i in kept)
        expected = [law[i] * draws for i in kept]
        if draws - sum(expected) >= 5:
            return float(
                stats.chisquare([*(found[i] for i in kept), rest], [*expected, draws - sum(expected)]).pvalue
            )
        observed = [found[i] for i in kept]
        return float(stats.chisquare(observed, expected, sum_check=False).pvalue) if len(kept) > 1 else 1.0

    assert fit(gamma) > _P
    if len(counts) > 1 and len(set(exponents)) > 1:
        assert fit(2 * gamma) < _P
        assert fit(gamma / 2) < _P


def test_candidates_of_one_interval_are_alike() -> None:
    draws = 30_000
    found = Counter(choose([1, 30], [1, 0], Fraction(1), os.urandom(16), OS_RANDOM) for _ in range(draws))
    inside = [found[1, j] for j in range(30)]
    assert sum(inside) + found[0, 0] == draws
    assert stats.chisquare(inside).pvalue > _P


@pytest.mark.parametrize("gamma", [Fraction(1, 3), Fraction(1, 10**6), Fraction(7, 5), Fraction(1, 2**40)])
@pytest.mark.parametrize("bits", [128, 256, 384])
def test_powers_are_bounds(gamma: Fraction, bits: int) -> None:
    exponents = [0, 1, 2, 3, 17, 8191, 8192, 8193, 10**5, 2**26 + 5, 2**45 + 12345]
    for k, power in zip(exponents, powers(gamma, exponents, bits), strict=True):
        low, high = choice.bounds_of_exp(gamma * k, bits // 3 + 40)
        assert power <= high * 2**bits, k
        assert low * 2**bits <= power + choice.POWER_ERROR, k


def test_more_bits_are_asked_for_only_at_an_edge() -> None:
    """The two halves of a fair choice meet at 1/2: the word just below it decides nothing by itself."""
    half = b"\x7f" + b"\xff" * 15
    assert choose([1, 1], [0, 0], Fraction(1), b"\x00" * 16, Tape(b"")) == (0, 0)
    with pytest.raises(ValueError, match="the tape has ended"):
        choose([1, 1], [0, 0], Fraction(1), half, Tape(b""))
    assert choose([1, 1], [0, 0], Fraction(1), half, Tape(b"\x00" * 8)) == (0, 0)
    assert choose([1, 1], [0, 0], Fraction(1), b"\x80" + b"\x00" * 15, Tape(b"\x00" * 7 + b"\x80")) == (1, 0)


def test_a_lattice_of_2_to_62_and_far_scores() -> None:
    index, place = choose([2**62, 1], [0, 10**20], Fraction(1, 10**18), os.urandom(16), OS_RANDOM)
    assert index == 0
    assert 0 <= place < 2**62


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1, 3), Fraction(5, 7), Fraction(1)])
def test_a_coin_has_its_probability(p: Fraction) -> None:
    def bounds(bits: int) -> tuple[Fraction, Fraction]:
        return max(Fraction(0), p - Fraction(1, 2 ** (bits + 1))), min(
            Fraction(1), p + Fraction(1, 2 ** (bits + 1))
        )

    tosses = 20_000
    heads = sum(coin(bounds, OS_RANDOM) for _ in range(tosses))
    assert abs(heads - tosses * p) <= 7 * math.sqrt(tosses * p * (1 - p))


def test_a_coin_looks_on_when_it_stands_at_the_edge() -> None:
    for first, rest, heads in (
        (b"\x80" + b"\x00" * 7, b"\xff" * 8, False),
        (b"\x7f" + b"\xff" * 7, b"\x00" * 8, True),
    ):
        seen: list[int] = []

        def bounds(bits: int) -> tuple[Fraction, Fraction]:
            seen.append(bits)  # noqa: B023
            error = Fraction(1, 2**bits)
            return Fraction(1, 2) - error / 2, Fraction(1, 2) + error / 2

        assert coin(bounds, Tape(first + rest)) is heads
        assert seen == [64, 128]
