"""Randomized response: an answer reported by coins, and the weights that undo the coins on average.

The local model: whoever gives an answer randomises it before it is sent, so that nobody else need be trusted.
With p = Pr[v is reported | v is true] and q = Pr[v is reported | another value is true], rows that report a value of A
count (1 - q_A) / (p - q) and all others -q_A / (p - q), q_A = |A| q: on average over the respondents' coins that
is 1 where the truth is in A, and else 0 (soundness.md 1.24).

House rules:

1. Probabilities are exact rationals; of the epsilon form they are so to 60 digits, and its coins are exact.
2. An answer leaves only through `report` and `report_bits`; nothing here keeps, prints or logs a true one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from ..records import dataclass
from .choice import FIRST_BYTES, choose
from .discrete_laplace import bounds_of_exp
from .uniform import OS_RANDOM, RandomSource, draw_one_below

Value = TypeVar("Value")

_DIGITS = 60
_UNARY_STEP = 10**9
MOST_EPSILON = Fraction(50)
"""From here on nothing is randomised that anybody could see."""


@dataclass(frozen=True, slots=True)
class Channel:
    """How one of `size` answers is reported: by `p` and `q` of the module's head.

    `yes`: of a channel of two answers with a p and q of their own, the one that q speaks of: p = Pr[yes | yes],
    q = Pr[yes | no]. `epsilon`: the loss that it was made for, in whose coins it is then drawn.
    """

    size: int
    p: Fraction
    q: Fraction
    yes: int | None = None
    epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ValueError("there is one answer alone; nothing can be randomised")
        if not 0 < self.q < self.p < 1:
            raise ValueError("the truth has to be likelier than each other answer, and neither certain")

    @classmethod
    def of_truth(cls, size: int, p: Fraction) -> Channel:
        """Return the channel that tells the truth with probability p, else one of the others. Raises ValueError."""
        if size < 2:
            raise ValueError("there is one answer alone; nothing can be randomised")
        return cls(size, p, (1 - p) / (size - 1))

    @classmethod
    def of_epsilon(cls, size: int, epsilon: Fraction) -> Channel:
        """Return the channel of a loss: e^epsilon / (e^epsilon + size - 1) for the truth. Raises ValueError."""
        if not 0 < epsilon <= MOST_EPSILON:
            raise ValueError(f"epsilon is above 0 and at most {MOST_EPSILON}")
        if size < 2:
            raise ValueError("there is one answer alone; nothing can be randomised")
        low, high = bounds_of_exp(epsilon, _DIGITS)
        ratio = ((low + high) / 2).limit_denominator(10**_DIGITS)
        whole = 1 + (size - 1) * ratio
        return cls(size, 1 / whole, ratio / whole, epsilon=epsilon)

    @classmethod
    def of_bit(cls, p: Fraction, q: Fraction, yes: int) -> Channel:
        """Return the channel of two answers with Pr[yes | yes] = p and Pr[yes | no] = q. Raises ValueError."""
        return cls(2, p, q, yes)

    def chance(self, true: int, reported: int) -> Fraction:
        """Return Pr[reported | true]."""
        if self.yes is not None:
            says_yes = self.p if true == self.yes else self.q
            return says_yes if reported == self.yes else 1 - says_yes
        return self.p if true == reported else self.q

    def weights(self, chosen: frozenset[int]) -> tuple[Fraction, Fraction]:
        """Return what a row counts for that reports one of the chosen answers, and one that reports another.

        On average 1 for a row whose true answer is chosen, else 0. Requires: some are chosen, and some are not.
        """
        gap = self.p - self.q
        if self.yes is not None and self.yes not in chosen:
            return self.p / gap, (self.p - 1) / gap
        missed = len(chosen) * self.q
        return (1 - missed) / gap, -missed / gap

    @property
    def truth(self) -> Fraction:
        """The least probability with which what is reported is true."""
        return self.p if self.yes is None else min(self.p, 1 - self.q)

    @property
    def loss(self) -> float:
        """The privacy loss towards everybody who sees the report, under another answer of the same person.

        Of a channel of two answers it is that of the pair of bits in which two values differ, where each value has one.
        """
        if self.epsilon is not None:
            return float(self.epsilon)
        if self.yes is None:
            return math.log(self.p / self.q)
        return math.log(self.p * (1 - self.q) / ((1 - self.p) * self.q))

    @property
    def own_deviation(self) -> float:
        """The standard deviation of an estimated count of few, over the root of how many answered."""
        one = frozenset({0 if self.yes is None else self.yes})
        inside, outside = self.weights(one)
        return math.sqrt(self.q * inside**2 + (1 - self.q) * outside**2)


def report(channel: Channel, true: int, source: RandomSource = OS_RANDOM) -> int:
    """Return the number of the answer to report for the true one, by exact coins."""
    if channel.yes is not None:
        chance = channel.chance(true, channel.yes)
        says_yes = draw_one_below(chance.denominator, source) < chance.numerator
        return channel.yes if says_yes else 1 - channel.yes
    others = channel.size - 1
    if channel.epsilon is not None:
        first = source.random_bytes(FIRST_BYTES)
        lies, which = choose((1, others), (0, 1), channel.epsilon, first, source)
    else:
        drawn = draw_one_below(channel.p.denominator * others, source)
        lies, which = int(drawn >= channel.p.numerator * others), drawn % others
    return (true + 1 + which) % channel.size if lies else true


def unary_bit(epsilon: Fraction) -> Channel:
    """Return the channel of one bit of a unary encoding: p = 1/2, q = 1 / (1 + e^epsilon), rounded up.

    Two values differ in two bits; together they lose ln(p (1 - q) / ((1 - p) q)) <= epsilon. Raises ValueError.
    """
    if not 0 < epsilon <= 15:
        raise ValueError("epsilon is above 0 and at most 15, where each value has a column of its own")
    high = bounds_of_exp(epsilon, _DIGITS)[1]
    return Channel.of_bit(
        Fraction(1, 2), Fraction(math.ceil(high / (1 + high) * _UNARY_STEP), _UNARY_STEP), 1
    )


def report_bits(size: int, true: int, bit: Channel, source: RandomSource = OS_RANDOM) -> list[bool]:
    """Return for each value whether to report it: a bit is true of the true answer alone, then randomised."""
    return [report(bit, int(value == true), source) == 1 for value in range(size)]


def is_one_report_better(size: int, epsilon: Fraction) -> bool:
    """Say whether one reported value gives smaller errors than a bit for each: size < 3 e^epsilon + 2."""
    return size < 3 * math.exp(epsilon) + 2


def randomize(
    value: Value,
    values: Sequence[Value],
    *,
    epsilon: int | float | str | Decimal | Fraction | None = None,
    p: int | float | str | Decimal | Fraction | None = None,
) -> Value:
    """Return what to report in place of a true answer, one of `values`, drawn from the operating system's randomness.

    `epsilon`: the truth with probability e^epsilon / (e^epsilon + k - 1), k = len(values); `p`: with probability p;
    else one of the others, each alike. Repeated answers of one person add up.

    Raises:
        ValueError: not exactly one of `epsilon` and `p`, one out of range, fewer than two values, a value twice, or
            the true one not among them.
    """
    if (epsilon is None) == (p is None):
        raise ValueError("give epsilon or p, and not both")
    if any(one == other for i, one in enumerate(values) for other in values[:i]):
        raise ValueError("an answer is listed twice")
    if value not in values:
        raise ValueError("the answer is not among the values")
    if epsilon is not None:
        channel = Channel.of_epsilon(len(values), exact_parameter(epsilon))
    else:
        assert p is not None
        channel = Channel.of_truth(len(values), exact_parameter(p))
    return values[report(channel, list(values).index(value))]


def exact_parameter(number: int | float | str | Decimal | Fraction) -> Fraction:
    """Return a probability or an epsilon as it is written: 0.1 is one tenth. Raises ValueError."""
    try:
        return Fraction(repr(number) if isinstance(number, float) else number)
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        raise ValueError("a probability or an epsilon is a finite number, like 0.75") from None
