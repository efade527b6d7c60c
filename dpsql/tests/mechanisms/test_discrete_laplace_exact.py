"""The sampler's probabilities by exact enumeration, and each of its rare branches on purpose."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsql.mechanisms import OS_RANDOM
from dpsql.mechanisms import discrete_laplace as sampler
from dpsql.mechanisms.discrete_laplace import draw_discrete_laplace, sampled_scale
from dpsql.testing.injected_noise import SeededSource

from .tape import Choices, Tape, enumerate_outcomes


@pytest.mark.parametrize(("u", "t"), [(u, t) for t in (1, 2, 3, 4) for u in range(t)])
def test_one_coinis_exp_of_fraction(u: int, t: int) -> None:
    found, left = enumerate_outcomes(lambda choices: sampler.is_exp_of_fraction(u, t, choices.below), 1e-6)
    assert left < 1e-3
    assert found[True] <= math.exp(-u / t) <= found[True] + left


@pytest.mark.parametrize(("u", "t"), [(u, t) for t in (1, 2, 3, 4) for u in range(t)])
def test_a_coin_of_an_arrayis_exp_of_fraction(u: int, t: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(choices: Choices) -> bool:
        def draw_below(n: int, size: int, source: object) -> np.ndarray:
            return np.array([choices.below(n) for _ in range(size)], dtype=np.uint32)

        monkeypatch.setattr(sampler, "draw_below", draw_below)
        return bool(sampler.draw_exp_of_fraction(np.array([u], dtype=np.uint32), t, OS_RANDOM)[0])

    found, left = enumerate_outcomes(run, 1e-5)
    assert left < 5e-3
    assert found[True] <= math.exp(-u / t) <= found[True] + left


def test_coins_of_an_array_do_not_mix() -> None:
    """Of many coins with different u in one array, each u shows its own share (z below 7)."""
    t, each = 5, 40_000
    u = np.tile(np.arange(t, dtype=np.uint32), each)
    coins = sampler.draw_exp_of_fraction(u, t, OS_RANDOM)
    for value in range(t):
        p = math.exp(-value / t)
        assert abs(coins[u == value].sum() - each * p) <= 7 * math.sqrt(each * p * (1 - p))


def test_one_inverse_e_coin() -> None:
    found, left = enumerate_outcomes(lambda choices: sampler.first_tails_is_odd(2, choices.below), 1e-6)
    assert left < 1e-5
    assert found[True] <= math.exp(-1) <= found[True] + left


def test_the_inverse_e_table_is_exact() -> None:
    """Among the 13 * 7! words in use: the first tails at k has share 1/(k-1)! - 1/k!; all heads 1/7!."""
    table = sampler._INVERSE_E
    used = int((table != sampler._REJECT).sum())
    assert used == 13 * math.factorial(7)
    shares = {k: Fraction(1, math.factorial(k - 1)) - Fraction(1, math.factorial(k)) for k in range(2, 8)}
    assert Fraction(int((table == 1).sum()), used) == shares[3] + shares[5] + shares[7]
    assert Fraction(int((table == 0).sum()), used) == shares[2] + shares[4] + shares[6]
    assert Fraction(int((table == sampler._CONTINUE).sum()), used) == Fraction(1, math.factorial(7))


def _word(kind: int) -> bytes:
    return int(np.flatnonzero(kind == sampler._INVERSE_E)[0]).to_bytes(2, "little")


@pytest.mark.parametrize(
    ("kind", "then", "coin"),
    [
        (sampler._CONTINUE, b"\x20", 0),  # below(8) = 1: tails at 8
        (sampler._CONTINUE, b"\x00\x10", 1),  # below(8) = 0, below(9) = 1: tails at 9
        (sampler._CONTINUE, b"\x00\xf0\x00\x10", 0),  # below(9): 15 is drawn anew, then 0; below(10) = 1
        (sampler._REJECT, _word(sampler._REJECT) + _word(1), 1),  # another word, twice
        (sampler._REJECT, _word(sampler._CONTINUE) + b"\x20", 0),  # another word, which goes on
    ],
)
def test_the_rare_words_go_on_one_at_a_time(kind: int, then: bytes, coin: int) -> None:
    tape = Tape(_word(0) + _word(kind) + _word(1) + then)
    assert sampler.draw_inverse_e(3, tape).tolist() == [0, coin, 1]
    assert tape.rest == b""


def test_geometric_integers_are_the_runs_of_the_stream() -> None:
    ones_first = _word(1) * 67 + _word(0) + _word(1) * 2 + _word(0)  # 3 * 1.6 + 64 = 68 words, then 64 more
    tape = Tape(ones_first + _word(0) * 100)
    assert sampler._draw_geometric_e(3, tape).tolist() == [67, 2, 0]
    assert len(tape.rest) == 2 * (len(ones_first) // 2 + 100 - 68 - 64)


class _NewTrialError(Exception):
    """One trial has ended without a draw; the next is like the first."""


class _TrialCoins:
    """Stands for `below` during one trial: the offset and the sign are uniform, the two coins exact."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.calls = 0

    def __call__(self, n: int) -> int:
        self.calls += 1
        if self.calls == 3:  # after offset and sign: a negative zero was dropped
            raise _NewTrialError
        return self.choices.below(n)

    def is_kept(self, u: int, t: int) -> bool:
        if not self.choices.is_heads(math.exp(-u / t)):
            raise _NewTrialError
        return True

    def is_inverse_e(self, k: int) -> bool:
        assert k == 2
        return self.choices.is_heads(math.exp(-1))


@pytest.mark.parametrize(("t", "s"), [(t, s) for t in (1, 2, 3, 4) for s in (1, 2, 3, 4)])
def test_one_draw_is_discrete_laplace(t: int, s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probability of every outcome of one trial, with the two coins (tested above) taken as exact."""
    monkeypatch.setattr(sampler, "is_exp_of_fraction", lambda u, t, below: below.is_kept(u, t))
    monkeypatch.setattr(sampler, "first_tails_is_odd", lambda k, below: below.is_inverse_e(k))

    def run(choices: Choices) -> int | None:
        try:
            return sampler._draw_one(t, s, _TrialCoins(choices))
        except _NewTrialError:
            return None

    found, left = enumerate_outcomes(run, 1e-11)
    assert left < 1e-9
    kept = 1 - found[None]
    q = math.exp(-s / t)
    for y in range(-12, 13):
        assert found[y] / kept == pytest.approx((1 - q) / (1 + q) * q ** abs(y), abs=1e-9)


@pytest.mark.parametrize(("t", "s"), [(1, 1), (20, 1), (7, 3), (2**55, 2**54 - 1), (2**55, 1)])
def test_combining_is_the_same_in_arrays_and_in_python(t: int, s: int) -> None:
    for v_max in (254, 255, 10**6):
        u = np.array([0, t // 2, t - 1, t - 1], dtype=np.uint64)
        v = np.array([v_max, 0, v_max, 3], dtype=np.int64)
        expected = [(int(a) + t * int(b)) // s for a, b in zip(u, v, strict=True)]
        got = sampler._combine(u, v, t, s)
        assert got.tolist() == expected
        assert got.dtype == (np.int64 if v_max == 254 else object)


def test_arrays_of_python_ints_take_part_in_all_steps() -> None:
    chunk = np.array([0, 2**70, -(2**70)], dtype=object)
    negated = np.negative(chunk, out=chunk.copy(), where=np.array([True, True, False]))
    assert negated.tolist() == [0, -(2**70), -(2**70)]
    assert ((negated != 0) | np.array([False, True, True])).dtype == np.bool_
    joined = np.concatenate([np.array([1], dtype=np.int64), negated])
    assert joined.tolist() == [1, 0, -(2**70), -(2**70)]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000, 70_000])
@pytest.mark.parametrize(
    "scale", [Fraction(1, 10**40), Fraction(1, 1000), Fraction(1), Fraction(7, 3), Fraction(2**55)]
)
def test_as_many_draws_as_asked_for(scale: Fraction, count: int) -> None:
    if scale.denominator > 2**55 and count > 1000:
        count = 1000
    draws = draw_discrete_laplace(scale, count, OS_RANDOM)
    assert draws.shape == (count,)
    assert draws.dtype == (object if scale.denominator > 2**55 else np.int64)
    if scale <= Fraction(1, 1000):
        assert not draws.any()  # fails with probability e^-1000


def test_beyond_int64_the_draws_are_python_ints() -> None:
    draws = draw_discrete_laplace(Fraction(10**30, 7), 100, OS_RANDOM)
    assert draws.dtype == object
    assert {type(draw) for draw in draws} == {int}
    assert max(abs(draw) for draw in draws) > 10**28


def test_the_same_bytes_give_the_same_draws() -> None:
    for scale in (Fraction(1), Fraction(20), Fraction(10**9), Fraction(2**60)):
        for count in (5, 500):
            first = draw_discrete_laplace(scale, count, SeededSource(3))
            assert first.tolist() == draw_discrete_laplace(scale, count, SeededSource(3)).tolist()
            assert first.tolist() != draw_discrete_laplace(scale, count, SeededSource(4)).tolist()


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(-1, 10**9)])
def test_a_scale_that_is_not_positive_is_an_error(scale: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        draw_discrete_laplace(scale, 1, Tape(b""))


@pytest.mark.parametrize("scale", [1.0, 20, float("nan"), "20"])
def test_a_scale_that_is_not_a_fraction_is_an_error(scale: object) -> None:
    with pytest.raises(TypeError, match="exact Fraction"):
        draw_discrete_laplace(scale, 1, Tape(b""))  # type: ignore[arg-type]


def test_a_negative_count_is_an_error() -> None:
    with pytest.raises(ValueError, match="negative"):
        draw_discrete_laplace(Fraction(1), -1, Tape(b""))


def test_large_scales_are_sampled_at_their_ceiling() -> None:
    assert sampled_scale(Fraction(2**20)) == 2**20
    assert sampled_scale(Fraction(2**21 - 1, 2)) == Fraction(2**21 - 1, 2)
    assert sampled_scale(Fraction(2**21 + 1, 2)) == 2**20 + 1
    assert sampled_scale(Fraction(10**30, 7)) == 10**30 // 7 + 1
