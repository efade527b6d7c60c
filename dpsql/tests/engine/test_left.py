"""What is said of charges: rounded, but never to less than was charged."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from dpsql.engine.answer import Receipt, said_delta, said_epsilon


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [("0.099999999", "0.1"), ("0.1", "0.1"), ("0", "0"), ("10", "10"), ("0.2899", "0.2899"), ("6.707106781", "6.70711"),
     ("0.000000001", "0.000000001"), ("1234.56781", "1234.57")],
)  # fmt: skip
def test_epsilons(epsilon: str, said: str) -> None:
    assert said_epsilon(Fraction(epsilon)) == said


@pytest.mark.parametrize(
    ("delta", "said"),
    [("1e-9", "1e-9"), ("0", "0"), ("5e-7", "5e-7"), ("1e-12", "1e-12"), ("0.001", "0.001"), ("1.2345612e-9", "1.23457e-9")],
)  # fmt: skip
def test_deltas(delta: str, said: str) -> None:
    assert said_delta(Fraction(delta)) == said


def test_never_less_than_was_charged() -> None:
    rng = random.Random(4)
    for _ in range(500):
        charged = Fraction(rng.randrange(1, 10 ** rng.randint(1, 12)), 10**9)
        for said in (said_epsilon(charged), said_delta(charged)):
            assert charged <= Fraction(said) <= charged * Fraction(100001, 100000)


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (7_420_600_001, "7.4206"), (10**10, "10"), (9_940_600_000, "9.9406"), (9_940_699_999, "9.9406"),
        (8_813_000_000_001, "8813"), (123_456_789, "0.1234"), (12_345, "0.00001234"), (1, "0.000000001"), (0, "0"),
    ],
)  # fmt: skip
def test_what_is_left_is_never_said_to_be_more(left: int, said: str) -> None:
    receipt = Receipt(Fraction(1), Fraction(0), Fraction(left, 10**9), False)
    assert receipt.said_left == f"{said} left"
    assert Fraction(said) <= receipt.left
