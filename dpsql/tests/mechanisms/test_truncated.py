"""Truncated noise and the rule that shows groups, against their definition, in 80-digit decimals."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpsql.mechanisms import Laplace, SampledNoise, Truncated, UnknownLaw, law_of
from dpsql.mechanisms.discrete_laplace import draw_discrete_laplace
from dpsql.mechanisms.uniform import COIN
from dpsql.testing.injected_noise import SeededSource

_CONTEXT = decimal.Context(prec=80)
_ZERO, _ONE = Decimal(0), Decimal(1)
_CASES = [
    (Fraction(1), Fraction(1, 10**6)),
    (Fraction(1, 2), Fraction(1, 100)),
    (Fraction(1, 5), Fraction(1, 10**9)),
    (Fraction(3), Fraction(1, 3 * 10**6)),
    (Fraction(7, 3), Fraction(1, 10**4)),
    (Fraction(8), Fraction(1, 10**4)),
    (Fraction(50, 17), Fraction(1, 100)),
    (Fraction(50), Fraction(1, 10**6)),
]
"""Scales, each with the delta of one key."""
_IDS = [f"{scale} {float(delta):.1g}" for scale, delta in _CASES]


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with decimal.localcontext(_CONTEXT):
        yield


def decimal_of(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@cache
def ratio(scale: Fraction) -> Decimal:
    """Return q = exp(-1/scale)."""
    return decimal_of(-1 / scale).exp()


@cache
def sizes(scale: Fraction, bound: int, weight: Fraction) -> list[Decimal]:
    """Return Pr[X = x] for x = 0 .. bound, by summing up."""
    q = ratio(scale)
    powers = [q**m for m in range(bound)] + [decimal_of(weight) * q**bound]
    whole = 2 * sum(powers, _ZERO) - powers[0]
    return [power / whole for power in powers]


def chance(law: Truncated, x: int) -> Decimal:
    return sizes(law.scale, law.bound, law.weight)[abs(x)] if abs(x) <= law.bound else _ZERO


@cache
def released(law: Truncated, people: int) -> dict[int | None, Decimal]:
    """Return the probability of each answer about a group of so many people; None: it is not shown.

    Through the rule that production uses. A group of nobody is not among those that are tested.
    """
    found: dict[int | None, Decimal] = {None: _ZERO} if people else {None: _ONE}
    for x in range(-law.bound, law.bound + 1) if people else ():
        for coin, part in ((True, law.coin), (False, 1 - law.coin)):
            is_shown = bool(law.shown(np.array([people + x]), np.array([coin]))[0])
            place = people + x if is_shown else None
            found[place] = found.get(place, _ZERO) + decimal_of(part) * chance(law, x)
    return found


def hockey_stick(law: Truncated, here: int, there: int) -> Decimal:
    """Return Σ max(0, P - e^(1/scale) P') over all answers."""
    left, right, factor = released(law, here), released(law, there), 1 / ratio(law.scale)
    return sum((max(_ZERO, left[y] - factor * right.get(y, _ZERO)) for y in left), _ZERO)


@pytest.mark.parametrize(("scale", "delta"), _CASES, ids=_IDS)
def test_the_whole_release_keeps_its_promise_and_no_less(scale: Fraction, delta: Fraction) -> None:
    """Both directions, for every number of people up to where the noise is all that is left of the rule."""
    law = Truncated.within(scale, delta)
    most = decimal_of(delta)
    sticks = [hockey_stick(law, *pair) for n in range(2 * law.bound + 3) for pair in ((n, n + 1), (n + 1, n))]
    assert max(sticks) <= most
    assert max(sticks) >= most * (1 - Decimal("1e-8"))
    assert hockey_stick(law, 1, 0) >= most * (1 - Decimal("1e-8"))
    assert max(sticks) <= decimal_of(law.excess) <= most
    assert law.excess <= delta


@pytest.mark.parametrize(("scale", "delta"), _CASES, ids=_IDS)
def test_groups_are_shown_nearly_as_often_as_can_be(scale: Fraction, delta: Fraction) -> None:
    """Desfontaines, Voss, Gipson, Mandayam 2022: no rule for one key shows more than pi_n."""
    law = Truncated.within(scale, delta)
    grow, d = 1 / ratio(scale), decimal_of(delta)
    pi = _ZERO
    for people in range(1, 2 * law.bound + 3):
        pi = min(grow * pi + d, 1 - (1 - pi - d) / grow, _ONE)
        shown = 1 - released(law, people).get(None, _ZERO)
        assert shown <= pi + Decimal("1e-70")
        assert shown >= pi - d / 4


@pytest.mark.parametrize(("scale", "delta"), _CASES, ids=_IDS)
def test_what_the_law_says_of_itself(scale: Fraction, delta: Fraction) -> None:
    law = Truncated.within(scale, delta)
    close = Decimal(1) + Decimal("1e-40")
    pmf = {x: chance(law, x) for x in range(-law.bound - 1, law.bound + 2)}
    tails = {m: sum((p for x, p in pmf.items() if x >= m), _ZERO) for m in pmf}
    for x in pmf:
        assert pmf[x] <= decimal_of(law.chance(x)) * close <= pmf[x] * close**2
        assert tails[x] <= decimal_of(law.tail(x)) * close <= tails[x] * close**2
    places = np.array(list(pmf), dtype=np.int64)
    np.testing.assert_allclose(law.tails(places), [float(tails[x]) for x in pmf], rtol=1e-6, atol=1e-15)
    for people in (1, 2, law.bound, 2 * law.bound, 2 * law.bound + 1):
        expected = released(law, people)
        for noisy in range(people - law.bound - 1, people + law.bound + 2):
            found = decimal_of(law.chance_shown(people, noisy))
            assert abs(found - expected.get(noisy, _ZERO)) <= Decimal("1e-40")
    for beta in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 100)):
        m = law.half_width(beta)
        assert 2 * tails.get(m + 1, _ZERO) <= decimal_of(beta)
        assert m == 0 or 2 * tails[m] > decimal_of(beta)
        m = law.upper_quantile(beta / 2)
        assert tails.get(m, _ZERO) <= decimal_of(beta / 2)
        assert m == 1 or tails[m - 1] > decimal_of(beta / 2)


@pytest.mark.parametrize(("scale", "delta"), _CASES, ids=_IDS)
def test_the_bound_is_the_smallest_that_can_be(scale: Fraction, delta: Fraction) -> None:
    law = Truncated.within(scale, delta)
    ends = [sizes(scale, bound, Fraction(1))[-1] for bound in (law.bound, law.bound - 1)]
    assert ends[0] <= decimal_of(delta) < ends[1]


@pytest.mark.parametrize(
    ("scale", "delta", "people", "most_by_tau", "least"),
    [
        (Fraction(1), Fraction(1, 10**6), 10, 494, 1_281),
        (Fraction(1), Fraction(1, 10**6), 20, 99_820, 99_925),
        (Fraction(1), Fraction(1, 10**9), 20, 9_895, 28_234),
        (Fraction(3), Fraction(1, 3 * 10**6), 20, 15, 66),
        (Fraction(3), Fraction(1, 3 * 10**6), 50, 92_117, 98_288),
        (Fraction(10), Fraction(1, 10**7), 100, 195, 2_094),
        (Fraction(10), Fraction(1, 10**6), 100, 1_937, 20_942),
    ],
)
def test_of_a_hundred_thousand_groups(
    scale: Fraction, delta: Fraction, people: int, most_by_tau: int, least: int
) -> None:
    """Expected: how many are shown, and how many were by untruncated noise and a threshold for the same promise."""
    tau = 1 + Laplace(scale).upper_quantile(delta)
    q = ratio(scale)
    at_tau = q ** (tau - people) / (1 + q) if tau > people else 1 - q ** (people - tau + 1) / (1 + q)
    assert 100_000 * at_tau <= most_by_tau
    assert 100_000 * shown(Truncated.within(scale, delta), people) >= least


def test_a_million_people_at_random_over_a_hundred_thousand_groups() -> None:
    """The optimum of any rule is 14,913; a threshold on untruncated noise shows 9,800."""
    law = Truncated.within(Fraction(1), Fraction(1, 10**6))
    expected = sum(
        100_000 * math.exp(n * math.log(10) - 10 - math.lgamma(n + 1)) * float(shown(law, n))
        for n in range(1, 80)
    )
    assert 14_500 <= expected <= 14_913.5


def shown(law: Truncated, people: int) -> Fraction:
    """Return the probability that a group of so many people is shown."""
    return sum(
        (law.chance_shown(people, y) for y in range(law.bound, people + law.bound + 1)), start=Fraction(0)
    )


def test_the_draws_have_the_law() -> None:
    """Chi-squared at 7 sd; noise of half the scale, or that is not cut, would be rejected. Both ways of proposing."""
    count = 200_000
    for scale, delta in (
        (Fraction(2), Fraction(1, 50)),
        (Fraction(1, 2), Fraction(1, 100)),
        (Fraction(40), Fraction(1, 15)),
    ):
        law = Truncated.within(scale, delta)
        for halved in (False, True):
            drawn = (Truncated(scale / 2, law.bound, law.weight) if halved else law).draw(
                count, SeededSource(5)
            )
            assert drawn.dtype == np.int64
            statistic = chi_squared(law, drawn)
            bins = 2 * law.bound
            assert (statistic > bins + 7 * math.sqrt(2 * bins)) == halved
    uncut = draw_discrete_laplace(Fraction(2), count, SeededSource(6))
    law = Truncated.within(Fraction(2), Fraction(1, 50))
    assert chi_squared(law, uncut[np.abs(uncut) <= law.bound]) > 2 * law.bound * 20
    assert len(law.draw(0, SeededSource(1))) == 0


def chi_squared(law: Truncated, drawn: np.ndarray) -> float:
    total = 0.0
    for x in range(-law.bound, law.bound + 1):
        expected = float(law.chance(x)) * len(drawn)
        total += (int((drawn == x).sum()) - expected) ** 2 / expected
    assert int((np.abs(drawn) > law.bound).sum()) == 0
    return total


def test_the_rule_shows_what_the_law_says() -> None:
    count = 200_000
    law = Truncated.within(Fraction(2), Fraction(1, 50))
    for people in (1, law.bound, 2 * law.bound):
        noise = law.draw(count, SeededSource(people))
        coins = SampledNoise(SeededSource(99)).coins(law.coin, count)
        found = int(law.shown(people + noise, coins).sum())
        p = float(shown(law, people))
        assert abs(found - count * p) <= 7 * math.sqrt(count * p * (1 - p)) + 1e-6


def test_the_rule_at_its_edges() -> None:
    law = Truncated(Fraction(1), 5, Fraction(1, 2))
    noisy, coins = np.array([4, 5, 5, 6]), np.array([True, True, False, False])
    assert law.shown(noisy, coins).tolist() == [False, True, False, True]


def test_a_law_is_read_as_it_was_written() -> None:
    for scale, delta in _CASES:
        law = Truncated.within(scale, delta)
        assert law_of(law.text) == law
    assert law_of("truncated 7/3 5 1152921504606846976") == Truncated(Fraction(7, 3), 5, Fraction(1))


@pytest.mark.parametrize(
    "text",
    [
        "truncated", "truncated 1 5", "truncated 1 5 0", f"truncated 1 5 {COIN + 1}", "truncated 1 0 7",
        "truncated -1 5 7", "truncated 2/2 5 7", "truncated 1 05 7", "truncated 1 5 7 ", " truncated 1 5 7",
        "truncated 1.0 5 7",
    ],
)  # fmt: skip
def test_what_is_not_the_text_of_a_law_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        law_of(text)


def test_a_law_of_a_later_version_is_told_from_damage() -> None:
    with pytest.raises(UnknownLaw):
        law_of("levy 3 4")
    for text in ("", "1 2", "tru-ncated 1 5 7"):
        with pytest.raises(ValueError, match=r".") as caught:
            law_of(text)
        assert not isinstance(caught.value, UnknownLaw)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(-1, 10), Fraction(1, 2), Fraction(1, 10**901)])
def test_a_delta_out_of_range_is_an_error(delta: Fraction) -> None:
    with pytest.raises(ValueError, match="at least"):
        Truncated.within(Fraction(1), delta)


def test_a_float_is_an_error() -> None:
    with pytest.raises(TypeError, match="exact Fraction"):
        Truncated.within(Fraction(1), 1e-6)  # type: ignore[arg-type]


def test_a_coin_is_exact_and_its_bits_are_its_own() -> None:
    law = Truncated.within(Fraction(1), Fraction(1, 10**6))
    assert (law.weight * COIN).denominator == 1
    with pytest.raises(ValueError, match="multiple"):
        SampledNoise().coins(Fraction(1, 3), 1)
    coins = SampledNoise(SeededSource(1)).coins(Fraction(1, 4), 100_000)
    assert abs(int(coins.sum()) - 25_000) < 7 * math.sqrt(100_000 * 3 / 16)
    assert SampledNoise(SeededSource(1)).coins(Fraction(1), 5).all()
    assert not SampledNoise(SeededSource(1)).coins(Fraction(0), 5).any()


def test_a_law_is_exact_and_within_its_ranges() -> None:
    law = Truncated(Fraction(3), 1, Fraction(1, 2))
    assert (law.spread, law.is_additive) == (18, False)
    for scale, weight in ((3.0, Fraction(1)), (Fraction(3), 1.0)):
        with pytest.raises(TypeError):
            Truncated(scale, 5, weight)  # type: ignore[arg-type]
    for scale, bound, weight in ((0, 5, 1), (3, 0, 1), (3, 5, 0), (3, 5, 2), (3, 5, Fraction(1, 3))):
        with pytest.raises(ValueError, match=r"positive|multiple"):
            Truncated(Fraction(scale), bound, Fraction(weight))
    assert Truncated.within(Fraction(1, 5), Fraction(1, 10**900)).excess <= Fraction(1, 10**900)
    for delta in (Fraction(1, 2), Fraction(1, 10**900 + 1), Fraction(0)):
        with pytest.raises(ValueError, match="below 1/2"):
            Truncated.within(Fraction(1, 5), delta)


def test_quantiles_are_asked_of_chances_alone() -> None:
    law = Truncated(Fraction(3), 9, Fraction(1, 2))
    for beta in (Fraction(0), Fraction(1)):
        with pytest.raises(ValueError, match="below 1"):
            law.half_width(beta)
    for chance_ in (Fraction(0), Fraction(1, 2)):
        with pytest.raises(ValueError, match="below 1/2"):
            law.upper_quantile(chance_)
    tail = law.tail(4)
    assert law.upper_quantile(tail) == 4, "where it is reached"
    assert law.half_width(2 * tail) == 3
    with pytest.raises(ValueError, match="not negative"):
        law.draw(-1, SeededSource(1))
