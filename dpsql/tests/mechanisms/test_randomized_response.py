"""Randomized response: the channel of the coins, its inverse, and estimates that are right on average."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpsql.mechanisms import randomized_response
from dpsql.mechanisms.randomized_response import (
    Channel,
    is_one_report_better,
    randomize,
    report,
    report_bits,
    unary_bit,
)
from dpsql.testing.injected_noise import SeededSource
from dpsql.tests.mechanisms.tape import Choices, Tape, enumerate_outcomes

CHANNELS = {
    "two coins": Channel.of_truth(2, Fraction(3, 4)),
    "of five": Channel.of_truth(5, Fraction(2, 5)),
    "epsilon": Channel.of_epsilon(4, Fraction(1)),
    "bit": Channel.of_bit(Fraction(1, 2), Fraction(1, 5), 1),
    "bit, yes first": Channel.of_bit(Fraction(9, 10), Fraction(1, 3), 0),
}
Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_inverse_times_channel_is_the_identity(channel: Channel) -> None:
    """Of every set of values: the expected weight is 1 where the truth is in it, and 0 where it is not, exactly."""
    values = range(channel.size)
    for size in range(1, channel.size):
        for chosen in map(frozenset, itertools.combinations(values, size)):
            inside, outside = channel.weights(chosen)
            for true in values:
                mean = sum(
                    channel.chance(true, said) * (inside if said in chosen else outside) for said in values
                )
                assert mean == (true in chosen)


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_weights_are_at_least_one_or_at_most_nothing(channel: Channel) -> None:
    """So the variance w² - w of a row is never negative."""
    for size in range(1, channel.size):
        for chosen in map(frozenset, itertools.combinations(range(channel.size), size)):
            inside, outside = channel.weights(chosen)
            assert inside >= 1
            assert outside <= 0


@pytest.mark.parametrize("name", ["two coins", "of five", "bit", "bit, yes first"])
def test_all_coins_enumerated_give_the_channel(name: str, monkeypatch: Patch) -> None:
    channel = CHANNELS[name]
    for true in range(channel.size):

        def run(choices: Choices, true: int = true) -> int:
            monkeypatch.setattr(randomized_response, "draw_one_below", lambda n, source: choices.below(n))
            return report(channel, true, Tape(b""))

        found, left = enumerate_outcomes(run, 1e-12)
        assert left == 0
        for said in range(channel.size):
            assert found.get(said, 0.0) == pytest.approx(float(channel.chance(true, said)), abs=1e-12)


def test_all_bits_of_the_epsilon_form_give_the_channel(monkeypatch: Patch) -> None:
    """Of all words of 16 bits each answer has its share, but for the words that stand at an edge."""
    channel = CHANNELS["epsilon"]
    monkeypatch.setattr(randomized_response, "FIRST_BYTES", 2)
    for true in (0, 2):
        found: Counter[int] = Counter()
        undecided = 0
        for word in range(2**16):
            try:
                found[report(channel, true, Tape(word.to_bytes(2, "big")))] += 1
            except ValueError:  # more bits are asked for
                undecided += 1
        assert undecided <= 4
        for said in range(4):
            exact = float(channel.chance(true, said)) * 2**16
            assert found[said] <= exact + 1e-6
            assert exact <= found[said] + undecided + 1e-6


def test_the_loss_is_what_is_declared() -> None:
    assert CHANNELS["two coins"].loss == pytest.approx(math.log(3))
    assert CHANNELS["epsilon"].loss == 1.0
    for name in ("two coins", "of five", "epsilon"):
        channel = CHANNELS[name]
        values = range(channel.size)
        worst = max(
            math.log(channel.chance(a, said) / channel.chance(b, said))
            for a in values
            for b in values
            for said in values
        )
        assert worst == pytest.approx(channel.loss, abs=1e-12)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4), Fraction(15)])
def test_two_bits_of_a_unary_encoding_lose_no_more_than_epsilon(epsilon: Fraction) -> None:
    bit = unary_bit(epsilon)
    assert bit.loss <= float(epsilon) + 1e-12
    if epsilon <= 4:
        assert bit.loss == pytest.approx(float(epsilon), rel=1e-6)
    sent = Counter(tuple(report_bits(2, 0, unary_bit(Fraction(1)), SeededSource(3))) for _ in range(1))
    assert sum(sent.values()) == 1
    worst = max(
        math.log(
            (bit.chance(1, a) * bit.chance(0, b)) / (bit.chance(0, a) * bit.chance(1, b))
        )
        for a in (0, 1) for b in (0, 1)
    )  # fmt: skip
    assert worst <= float(epsilon) + 1e-12


def test_reports_fit_the_channel_and_a_wrong_one_does_not() -> None:
    channel, source = CHANNELS["epsilon"], SeededSource(7)
    found = Counter(report(channel, 2, source) for _ in range(20_000))
    counts = [found[said] for said in range(4)]
    expected = [20_000 * float(channel.chance(2, said)) for said in range(4)]
    assert stats.chisquare(counts, expected).pvalue > 1e-6
    wrong = Channel.of_epsilon(4, Fraction(2))
    other = [20_000 * float(wrong.chance(2, said)) for said in range(4)]
    assert stats.chisquare(counts, other).pvalue < 1e-9


@pytest.mark.parametrize("name", ["two coins", "epsilon", "bit"])
def test_estimates_are_right_on_average_over_many_surveys(name: str) -> None:
    """400 surveys of 60 answers, 25 of them in the set: the mean is within four of its deviations, and so is theirs."""
    channel, source = CHANNELS[name], SeededSource(11)
    chosen = frozenset({channel.size - 1})
    truth = [channel.size - 1] * 25 + [0] * 35
    inside, outside = map(float, channel.weights(chosen))
    estimates = []
    for _ in range(400):
        said = [report(channel, true, source) in chosen for true in truth]
        estimates.append(sum(inside if one else outside for one in said))
    variance = sum(
        float(channel.chance(true, said)) * (inside if said in chosen else outside) ** 2
        for true in truth for said in range(channel.size)
    ) - 25  # fmt: skip
    deviation = math.sqrt(variance / 400)
    assert abs(np.mean(estimates) - 25) < 4 * deviation
    assert abs(np.var(estimates, ddof=1) / variance - 1) < 4 * math.sqrt(2 / 400)


@pytest.mark.parametrize("name", CHANNELS)
def test_the_own_variance_is_estimated_without_bias(name: str) -> None:
    """The mean of w² - w over what is reported is the variance of w, exactly (soundness.md 1.24)."""
    channel = CHANNELS[name]
    values = range(channel.size)
    for chosen in (frozenset({0}), frozenset({1})):
        inside, outside = channel.weights(chosen)
        for true in values:
            weights = {said: inside if said in chosen else outside for said in values}
            mean = sum((channel.chance(true, said) * w for said, w in weights.items()), Fraction(0))
            square = sum((channel.chance(true, said) * w**2 for said, w in weights.items()), Fraction(0))
            estimate = sum(
                (channel.chance(true, said) * (w**2 - w) for said, w in weights.items()), Fraction(0)
            )
            assert estimate == square - mean**2


def test_randomize_takes_numbers_as_they_are_written() -> None:
    values = ["a", "b", "c"]
    assert {randomize("a", values, p=0.4) for _ in range(200)} == set(values)
    assert {randomize("b", values, epsilon="0.5") for _ in range(200)} == set(values)
    told = sum(randomize(True, [True, False], p=0.75) for _ in range(4_000))
    assert 2_850 < told < 3_150


@pytest.mark.parametrize(
    ("values", "given", "said"),
    [
        (["a", "b"], {}, "epsilon or p"),
        (["a", "b"], {"epsilon": 1, "p": 0.75}, "epsilon or p"),
        (["a", "b"], {"p": 0.5}, "likelier"),
        (["a", "b"], {"p": 0.25}, "likelier"),
        (["a", "b"], {"p": 1}, "likelier"),
        (["a"], {"p": 0.75}, "one answer"),
        (["a"], {"epsilon": 1}, "one answer"),
        (["b", "c"], {"epsilon": 1}, "not among"),
        (["a", "b", "a"], {"epsilon": 1}, "twice"),
        (["a", "b"], {"epsilon": 0}, "epsilon"),
        (["a", "b"], {"epsilon": -1}, "epsilon"),
        (["a", "b"], {"epsilon": math.inf}, "finite"),
        (["a", "b"], {"epsilon": math.nan}, "finite"),
        (["a", "b"], {"p": "much"}, "finite"),
        (["a", "b"], {"epsilon": 51}, "epsilon"),
    ],
)
def test_randomize_refuses(values: list[str], given: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        randomize("a", values, **given)


def test_which_encoding_is_better() -> None:
    """k < 3 e^epsilon + 2: 10.15 at epsilon 1."""
    assert is_one_report_better(10, Fraction(1))
    assert not is_one_report_better(11, Fraction(1))
