"""Permute-and-flip: its exact law in both forms, what one unit changes of it, the sampler bit by bit."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pytest
from scipy import stats

from dpsql.mechanisms import OS_RANDOM, choice
from dpsql.mechanisms.choice import first_bytes_of
from dpsql.mechanisms.choice import permute_and_flip as draw
from dpsql.tests.mechanisms.tape import Tape

_P = 1e-9
CASES = [
    ([5], Fraction(1)),
    ([3, 3, 3], Fraction(1, 7)),
    ([4, 2, 3, 0, 0, 0], Fraction(1, 2)),
    ([-7, -2, -5, -2], Fraction(1, 3)),
    ([10**20, 10**20 - 10**18, 10**20 - 3 * 10**18], Fraction(1, 10**18)),
]


def law_of(scores: Sequence[int], gamma: Fraction) -> list[float]:
    """Return each candidate's probability: over all sets of heads, one of them evenly."""
    best = max(scores)
    p = [math.exp(-float(gamma * (best - score))) for score in scores]
    law = [0.0] * len(scores)
    for heads in itertools.product((False, True), repeat=len(scores)):
        chance = math.prod(a if head else 1 - a for a, head in zip(p, heads, strict=True))
        for place in range(len(scores)):
            law[place] += chance / sum(heads) if heads[place] and chance else 0.0
    return law


def sequential_law_of(scores: Sequence[int], gamma: Fraction) -> list[float]:
    """Return the same by the definition: coins in a random order until the first head."""
    best, orders = max(scores), list(itertools.permutations(range(len(scores))))
    law = [0.0] * len(scores)
    for order in orders:
        left = 1 / len(orders)
        for place in order:
            p = math.exp(-float(gamma * (best - scores[place])))
            law[place] += left * p
            left *= 1 - p
    return law


@pytest.mark.parametrize(("scores", "gamma"), CASES)
def test_a_uniform_head_is_the_first_of_a_random_order(scores: list[int], gamma: Fraction) -> None:
    assert law_of(scores, gamma) == pytest.approx(sequential_law_of(scores, gamma), abs=1e-12)
    assert math.fsum(law_of(scores, gamma)) == pytest.approx(1)


@pytest.mark.parametrize("behind", [0, 1, 2, 9])
def test_all_words_of_a_coin_give_its_probability(behind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins of 16 bits: of all their words so many are heads, but for the one that stands at the edge."""
    monkeypatch.setattr(choice, "_COIN_BYTES", 2)
    second, undecided = 0, 0
    for word in range(2**16):
        tape = Tape(b"\x00\x00" + word.to_bytes(2, "big") + b"\xff" * 16)
        try:
            second += draw([behind, 0], Fraction(1, 3), tape)  # the last of the heads is picked
        except ValueError:  # more bits are asked for
            undecided += 1
    assert undecided <= 1
    assert second <= math.exp(-behind / 3) * 2**16 <= second + undecided + 1e-6


def test_the_whole_draw_enumerated_has_the_law() -> None:
    """Three coins in steps of 1/64, and twelve picks, of which one, two and three heads have their parts."""
    scores, gamma = [4, 2, 3], Fraction(1, 2)
    steps = [(2 * k + 1 << 57).to_bytes(8, "big") for k in range(64)]
    picks = [((2 * k + 1) * 2**128 // 24).to_bytes(16, "big") for k in range(12)]
    found = Counter(
        draw(scores, gamma, Tape(b"\xff" * 8 + one + two + pick))
        for one, two, pick in itertools.product(steps, steps, picks)
    )
    for place, p in enumerate(law_of(scores, gamma)):
        assert abs(found[place] / (64 * 64 * 12) - p) < 1 / 64, place


@pytest.mark.parametrize(("scores", "gamma"), CASES)
def test_the_draws_fit_and_half_the_scale_does_not(scores: list[int], gamma: Fraction) -> None:
    draws = 20_000
    found = Counter(draw(scores, gamma, OS_RANDOM) for _ in range(draws))

    def fit(scale: Fraction) -> float:
        expected = [p * draws for p in law_of(scores, scale)]
        kept = [i for i, number in enumerate(expected) if number >= 5]
        assert sum(expected[i] for i in kept) > draws - 5
        if len(kept) == 1:
            return 1.0
        observed = [found[i] for i in kept]
        return float(stats.chisquare(observed, [expected[i] for i in kept], sum_check=False).pvalue)

    assert fit(gamma) > _P
    if len(set(scores)) > 1:
        assert fit(2 * gamma) < _P
        assert fit(gamma / 2) < _P


def _worst(pairs: list[tuple[tuple[int, ...], tuple[int, ...]]], gamma: Fraction) -> float:
    """Return the worst log-ratio of an outcome between neighbours, either way."""
    laws = {scores: law_of(scores, gamma) for pair in pairs for scores in pair}
    return max(
        abs(math.log(p / q)) for here, there in pairs for p, q in zip(laws[here], laws[there], strict=True)
    )


def test_one_more_unit_loses_epsilon_and_half_the_sensitivity_loses_more() -> None:
    """A unit adds up to 1 to any of three scores: at gamma = epsilon / 1 the loss is epsilon, and that is reached."""
    data = list(itertools.product(range(4), repeat=3))
    moves = list(itertools.product(range(2), repeat=3))
    pairs = [(here, tuple(map(sum, zip(here, move, strict=True)))) for here in data for move in moves]
    assert 0.9 < _worst(pairs, Fraction(1)) <= 1 + 1e-12  # type: ignore[arg-type]
    assert _worst(pairs, Fraction(2)) > 1  # type: ignore[arg-type]


def test_replacing_a_unit_needs_twice_the_sensitivity() -> None:
    """One score falls and another rises: at epsilon / 2 the loss stays epsilon, at epsilon / 1 it does not."""
    data = list(itertools.product(range(1, 4), repeat=3))
    moves = list(itertools.product((-1, 0, 1), repeat=3))
    pairs = [(here, tuple(map(sum, zip(here, move, strict=True)))) for here in data for move in moves]
    assert _worst(pairs, Fraction(1, 2)) <= 1 + 1e-12  # type: ignore[arg-type]
    assert _worst(pairs, Fraction(1)) > 1 + 1e-6  # type: ignore[arg-type]


def test_the_bytes_are_asked_for_at_once_whatever_the_scores() -> None:
    for scores in ([0, 0, 0], [5, 1, 10**9], [1, 2, 3]):
        tape = Tape(b"\x35" * first_bytes_of(3) + b"\x00")
        draw(scores, Fraction(1, 5), tape)
        assert len(tape.rest) == 1


def test_more_bits_are_asked_for_only_at_an_edge() -> None:
    """The thirds meet at 0.0101…: the word below picks neither; a coin of zeros alone is open where p < 2^-64."""
    third, coins = b"\x55" * 16, bytes(24)
    with pytest.raises(ValueError, match="the tape has ended"):
        draw([1, 1, 1], Fraction(1), Tape(coins + third))
    assert draw([1, 1, 1], Fraction(1), Tape(coins + third + b"\x00" * 8)) == 0
    assert draw([1, 1, 1], Fraction(1), Tape(coins + third + b"\xff" * 8)) == 1
    far = Tape(bytes(16) + b"\xff" * 16 + b"\x00" * 8 + b"\x01" * 8)
    assert draw([100, 0], Fraction(1), far) == 0  # exp(-100) = 2^-144.3: decided after 192 bits
    assert not far.rest


def test_a_far_candidate_and_very_many_of_them() -> None:
    assert draw([0, 10**25], Fraction(1, 10**3), OS_RANDOM) == 1
    scores = [0] * 100_000
    scores[77] = 100
    assert draw(scores, Fraction(1, 2), OS_RANDOM) == 77
