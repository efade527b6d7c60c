"""The Gaussian sampler's probabilities by exact enumeration, and each of its rare branches on purpose."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsql.mechanisms import OS_RANDOM
from dpsql.mechanisms import discrete_gaussian as sampler
from dpsql.mechanisms import discrete_laplace as coins_of
from dpsql.mechanisms.discrete_gaussian import draw_discrete_gaussian
from dpsql.testing.injected_noise import SeededSource

from .tape import Choices, Tape, enumerate_outcomes

SMALL = [(a, b) for a in (1, 2, 3, 4) for b in (1, 2, 3, 4) if math.gcd(a, b) == 1]


def chances(sigma: float) -> dict[int, float]:
    """Return the probabilities of the discrete Gaussian."""
    reach = int(12 * sigma) + 12
    weights = {y: math.exp(-(y**2) / (2 * sigma**2)) for y in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {y: weight / total for y, weight in weights.items()}


@pytest.mark.parametrize(("rest", "a"), [(rest, a) for a in (1, 2, 3, 4) for rest in range(a)])
def test_one_coin_is_exp_of_square(rest: int, a: int) -> None:
    found, left = enumerate_outcomes(lambda choices: sampler._is_exp_of_square(rest, a, choices.below), 1e-6)
    assert left < 5e-3
    assert found[True] <= math.exp(-((rest / a) ** 2) / 2) <= found[True] + left + 1e-12


@pytest.mark.parametrize(("rest", "a"), [(rest, a) for a in (1, 2, 3, 4) for rest in range(a)])
def test_a_coin_of_an_array_is_exp_of_square(rest: int, a: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(choices: Choices) -> bool:
        def draw_below(n: int, size: int, source: object) -> np.ndarray:
            return np.array([choices.below(n) for _ in range(size)], dtype=np.uint32)

        monkeypatch.setattr(sampler, "draw_below", draw_below)
        return bool(sampler._square_coins(np.array([rest]), a, OS_RANDOM)[0])

    found, left = enumerate_outcomes(run, 1e-6)
    assert left < 5e-3
    assert found[True] <= math.exp(-((rest / a) ** 2) / 2) <= found[True] + left + 1e-12


def test_one_root_e_coin() -> None:
    found, left = enumerate_outcomes(lambda choices: coins_of.first_tails_is_odd(1, choices.below, 2), 1e-6)
    assert left < 1e-5
    assert found[True] <= math.exp(-1 / 2) <= found[True] + left + 1e-12


def test_the_root_e_table_is_exact() -> None:
    """Among the 17 · 2^5 · 5! words in use: the first tails at k has 1/(2^(k-1)(k-1)!) - 1/(2^k k!); all heads 1/3840."""
    table = coins_of._ROOT_E
    used = int((table != coins_of._REJECT).sum())
    assert used == 17 * 2**5 * math.factorial(5)
    runs = [Fraction(1, 2**k * math.factorial(k)) for k in range(6)]
    shares = {k: runs[k - 1] - runs[k] for k in range(1, 6)}
    assert Fraction(int((table == 1).sum()), used) == shares[1] + shares[3] + shares[5]
    assert Fraction(int((table == 0).sum()), used) == shares[2] + shares[4]
    assert Fraction(int((table == coins_of._CONTINUE).sum()), used) == runs[5]


def _word(kind: int) -> bytes:
    return int(np.flatnonzero(kind == coins_of._ROOT_E)[0]).to_bytes(2, "little")


@pytest.mark.parametrize(
    ("kind", "then", "coin"),
    [
        (coins_of._CONTINUE, b"\x10", 0),  # below(12) = 1: tails at 6
        (coins_of._CONTINUE, b"\x00\x10", 1),  # below(12) = 0, below(14) = 1: tails at 7
        (coins_of._CONTINUE, b"\x00\xf0\x00\x10", 0),  # below(14): 15 is drawn anew, then 0; below(16) = 1
        (coins_of._REJECT, _word(coins_of._REJECT) + _word(1), 1),  # another word, twice
        (coins_of._REJECT, _word(coins_of._CONTINUE) + b"\x10", 0),  # another word, which goes on
    ],
)
def test_the_rare_words_go_on_one_at_a_time(kind: int, then: bytes, coin: int) -> None:
    tape = Tape(_word(0) + _word(kind) + _word(1) + then)
    assert coins_of.draw_root_e(3, tape).tolist() == [0, coin, 1]
    assert tape.rest == b""


class _NewTrialError(Exception):
    """One trial has ended without a draw; the next is like the first."""


class _TrialCoins:
    """Stands for `below` during one trial: the offset and the sign are uniform, the coins exact."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.calls = self.coins = 0

    def __call__(self, n: int) -> int:
        self.calls += 1
        if self.calls == 3:  # after offset and sign: a negative zero was dropped
            raise _NewTrialError
        return self.choices.below(n)

    def kept(self, chance: float) -> bool:
        if not self.choices.is_heads(chance):
            raise _NewTrialError
        return True


@pytest.mark.parametrize(("a", "b"), SMALL)
def test_one_draw_is_discrete_gaussian(a: int, b: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probability of every outcome of one trial, with the coins (tested above) taken as exact."""

    def run_of_coins(k: int, below: _TrialCoins, c: int = 1) -> bool:
        assert (k, c) in ((1, 2), (2, 1))
        if c == 1:
            return below.kept(math.exp(-1))
        if below.calls:  # a whole trial is over: rest >= a
            raise _NewTrialError
        below.coins += 1
        return below.choices.is_heads(math.exp(-1 / 2))

    monkeypatch.setattr(sampler, "first_tails_is_odd", run_of_coins)
    monkeypatch.setattr(sampler, "is_exp_of_fraction", lambda u, t, below: below.kept(math.exp(-u / t)))
    monkeypatch.setattr(
        sampler, "_is_exp_of_square", lambda u, t, below: below.kept(math.exp(-((u / t) ** 2) / 2))
    )

    def run(choices: Choices) -> int | None:
        try:
            return sampler._draw_one(a, b, _TrialCoins(choices))
        except _NewTrialError:
            return None

    found, left = enumerate_outcomes(run, 1e-12)
    assert left < 1e-9
    kept = 1 - found[None] - left
    for y, chance in chances(a / b).items():
        assert found.get(y, 0) / kept == pytest.approx(chance, abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (20, 1), (7, 3), (2**55, 2**20 - 1), (2**55, 1)])
def test_combining_is_the_same_in_arrays_and_in_python(a: int, b: int) -> None:
    for k_max in (127, 128, 10**6):
        k = np.array([0, k_max, 3], dtype=np.int64)
        past = np.array([-int(one) * a % b for one in k], dtype=np.int64)
        further = np.array([0, 1, a // b], dtype=np.int64)
        expected = [-(-int(one) * a // b) + int(more) for one, more in zip(k, further, strict=True)]
        got = sampler._combine(k, past, further, a, b)
        assert got.tolist() == expected
        assert got.dtype == (np.int64 if k_max == 127 else object)


def test_all_heads_is_a_power_of_the_coin(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.array([0, 2, 1, 0, 3])
    rounds = iter([np.array([1, 1, 1]), np.array([0, 1]), np.array([1])])
    monkeypatch.setattr(sampler, "draw_inverse_e", lambda size, source: next(rounds))
    assert sampler._all_heads(counts, OS_RANDOM).tolist() == [True, False, True, True, True]


def test_whole_deviations_have_their_law() -> None:
    """Of the k of many candidates each has its share of exp(-k²/2) (z below 7)."""
    k = sampler._whole_deviations(1_000_000, OS_RANDOM)
    weights = [math.exp(-(j**2) / 2) for j in range(9)]
    for j, weight in enumerate(weights):
        p = weight / sum(weights)
        assert abs(int((k == j).sum()) - k.size * p) <= 7 * math.sqrt(k.size * p * (1 - p)) + 7


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000, 70_000])
@pytest.mark.parametrize(
    "sigma",
    [Fraction(1, 10**40), Fraction(1, 50), Fraction(1), Fraction(7, 3), Fraction(2**55), Fraction(2**56)],
)
def test_as_many_draws_as_asked_for(sigma: Fraction, count: int) -> None:
    is_wide = sigma.denominator > 2**20 or sigma.numerator > 2**55
    draws = draw_discrete_gaussian(sigma, min(count, 1000) if is_wide else count, OS_RANDOM)
    assert draws.shape == (min(count, 1000) if is_wide else count,)
    assert draws.dtype == (object if is_wide else np.int64)
    if sigma <= Fraction(1, 50):
        assert not draws.any()  # fails with probability e^-1250


def test_the_same_bytes_give_the_same_draws() -> None:
    for sigma in (Fraction(1), Fraction(20), Fraction(10**9), Fraction(2**60)):
        for count in (5, 500):
            first = draw_discrete_gaussian(sigma, count, SeededSource(3))
            assert first.tolist() == draw_discrete_gaussian(sigma, count, SeededSource(3)).tolist()
            assert first.tolist() != draw_discrete_gaussian(sigma, count, SeededSource(4)).tolist()


@pytest.mark.parametrize("sigma", [Fraction(0), Fraction(-1)])
def test_a_deviation_that_is_not_positive_is_an_error(sigma: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        draw_discrete_gaussian(sigma, 1, Tape(b""))


@pytest.mark.parametrize("sigma", [1.0, 20, float("nan"), "20"])
def test_a_deviation_that_is_not_a_fraction_is_an_error(sigma: object) -> None:
    with pytest.raises(TypeError, match="exact Fraction"):
        draw_discrete_gaussian(sigma, 1, Tape(b""))  # type: ignore[arg-type]


def test_a_negative_count_is_an_error() -> None:
    with pytest.raises(ValueError, match="negative"):
        draw_discrete_gaussian(Fraction(1), -1, Tape(b""))


@pytest.mark.parametrize("alpha", [1.1, 2.0, 10.0, 100.0])
@pytest.mark.parametrize(
    "sigma", [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(100)]
)
@pytest.mark.parametrize("change", [1, 2, 7])
def test_the_renyi_curve_is_below_that_of_the_claim(sigma: Fraction, change: int, alpha: float) -> None:
    """D_alpha(Y || Y + change) <= alpha·rho with rho = change²/(2 sigma²), and within a tenth of it for wide noise.

    In logarithms, as probabilities far out are beyond doubles. (Bun, Steinke 2016, CKS20 theorem 4.)
    """
    s = float(sigma)
    reach = math.ceil(40 * s + 2 * alpha * change) + 40
    at = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = -(at**2) / (2 * s**2)
    norm = _log_sum(mass)
    moved = -((at - change) ** 2) / (2 * s**2) - norm
    exponents = alpha * (mass - norm) + (1 - alpha) * moved
    found = _log_sum(exponents) / (alpha - 1)
    rho = change**2 / (2 * s**2)
    assert found <= alpha * rho * (1 + 1e-9) + 1e-9
    if s >= 1:
        assert found >= 0.9 * alpha * rho


def _log_sum(exponents: np.ndarray) -> float:
    top = float(exponents.max())
    return top + math.log(math.fsum(np.exp(exponents - top)))
