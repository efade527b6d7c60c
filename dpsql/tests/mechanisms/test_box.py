"""Box noise: its probabilities by enumeration, its draws against them, and what is said of it (soundness.md 1.22).

All p-value limits are 1e-9: a red test is a bug, not bad luck. Each test of fit rejects half of the scale.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpsql.mechanisms import OS_RANDOM, Box, Coordinate, Law, WeightedSum, half_width_of, law_of, sum_of
from dpsql.mechanisms.discrete_laplace import draw_geometric
from dpsql.mechanisms.laws import UnknownLaw, box
from dpsql.mechanisms.uniform import draw_below_each
from dpsql.tests.support.length import some

F = Fraction
SMALL = [
    Box(F(1), (1, 2)), Box(F(1, 2), (1, 1, 1)), Box(F(3, 2), (2,)), Box(F(1), (1, 1, 1)), Box(F(7, 5), (3, 1))
]  # fmt: skip
_P = 1e-9
Draws = npt.NDArray[Any]


def chances(law: Box, most: int) -> dict[tuple[int, ...], float]:
    """Return Pr[y] of all vectors whose norm is at most `most`, from the definition alone."""
    sides = [range(-reach * most, reach * most + 1) for reach in law.reaches]
    q = math.exp(-1 / law.scale)
    whole = sum(
        (1 - q) * q**r * math.prod(2 * reach * r + 1 for reach in law.reaches)
        for r in range(200 * math.ceil(law.scale))
    )
    return {y: math.exp(-law.norm(y) / law.scale) / whole for y in itertools.product(*sides)}


def fit_p(draws: Draws, law: Box) -> float:
    """Return the chi-squared p-value of vectors, those of small chance in one bin."""
    count = draws.shape[1]
    known = {y: p * count for y, p in chances(law, 6).items() if p * count >= 20}
    seen = Counter(zip(*draws.tolist(), strict=True))
    observed = [seen[y] for y in known]
    expected = [*known.values(), count - sum(known.values())]
    return float(stats.chisquare([*observed, count - sum(observed)], expected, sum_check=False).pvalue)


@pytest.mark.parametrize("law", SMALL, ids=lambda law: law.text)
def test_vectors_have_the_law(law: Box) -> None:
    draws = law.vectors(len(law.reaches), 400_000, OS_RANDOM)
    assert fit_p(draws, law) > _P
    for wrong in (F(1, 2), F(2), F(9, 10)):
        assert fit_p(draws, Box(law.scale * wrong, law.reaches)) < _P


@pytest.mark.parametrize(("limit", "most"), [("ARRAY_LIMIT", 0), ("_INT64", 1)])
@pytest.mark.parametrize("law", some(SMALL[:2], 1), ids=[law.text for law in SMALL[:2]])
def test_vectors_have_the_law_in_python_integers(
    law: Box, limit: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box, limit, most)
    draws = law.vectors(len(law.reaches), 6_000, OS_RANDOM)
    assert fit_p(draws, law) > _P
    assert fit_p(draws, Box(law.scale / 2, law.reaches)) < _P


@pytest.mark.parametrize(
    "law", [*SMALL, Box(F(1, 5), (1, 2)), Box(F(1, 4), (2, 1, 2))], ids=lambda law: law.text
)
def test_radii_that_are_read_off_have_the_law(law: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "_LEAST_KEPT", 2)
    draws = law.vectors(len(law.reaches), 200_000, OS_RANDOM)
    assert fit_p(draws, law) > _P
    for wrong in (F(1, 2), F(2)):
        assert fit_p(draws, Box(law.scale * wrong, law.reaches)) < _P


@pytest.mark.parametrize(
    "law", [*SMALL, Box(F(1, 10), (1, 1000, 10**6)), Box(F(1), (1,) * 10)], ids=lambda law: law.text
)
def test_cumulative_probabilities_are_between_their_bounds(law: Box) -> None:
    with localcontext(Context(prec=120)):
        q = (Decimal(-law.scale.denominator) / law.scale.numerator).exp()
        weights = [q**r * math.prod(2 * reach * r + 1 for reach in law.reaches) for r in range(600)]
        whole = sum(weights)
        for bits in (64, 128, 192):
            below, above = box._cumulative(law.scale, law.reaches, bits)
            sums = itertools.accumulate(weight * 2**bits / whole for weight in weights)
            for low, high, exact in zip(below, above, sums, strict=False):
                assert low <= exact <= high <= low + 2
            assert 2**bits - 2 <= below[-1] <= above[-1] <= 2**bits


def test_a_radius_is_decided_by_more_bits_where_the_first_leave_two() -> None:
    law = Box(F(1, 10), (1, 1000, 10**6))
    below, above = box._cumulative(law.scale, law.reaches, 128)
    edge = below[2]
    assert edge < above[2]

    class Told:
        """The first word of the edge, and then each of these."""

        def __init__(self, *then: int) -> None:
            self.words = [edge >> 64, *then]

        def random_bytes(self, count: int) -> bytes:
            assert count == 8
            return self.words.pop(0).to_bytes(8, "little")

    def radius(*then: int) -> int:
        source = Told(*then)
        (found,) = box._radii(law, 1, source).tolist()
        assert not source.words, "all that was drawn was needed"
        return int(found)

    rest = edge % 2**64
    assert radius(rest - 1) == 2
    assert radius(rest + 2) == 3
    assert radius(rest, 0) == 2 or radius(rest, 2**64 - 1) == 3, "two words leave two radii"


def test_few_radii_that_are_kept_are_no_loop_of_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variance at epsilon 10: of 88,000 candidates one would be kept."""
    monkeypatch.setattr(box, "_candidates", lambda *asked: pytest.fail("a loop of candidates"))
    law = Box(F(1, 10), (1, 1000, 10**6))
    draws = law.vectors(3, 20_000, OS_RANDOM)
    for place in range(3):
        assert np.mean(draws[place].astype(float) ** 2) == pytest.approx(float(law.at(place).spread), rel=0.1)


@pytest.mark.parametrize("law", SMALL, ids=lambda law: law.text)
def test_chances_are_those_of_a_distribution(law: Box) -> None:
    assert sum(chances(law, 25 if len(law.reaches) < 3 else 16).values()) == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("law", SMALL[:4], ids=lambda law: law.text)
def test_neighbours_are_as_likely_but_for_the_norm_of_the_change(law: Box) -> None:
    """By enumeration: ln(Pr[y] / Pr[y - c]) <= N(c) / scale for all y and c, and for some y it is reached."""
    found = chances(law, 5)
    changes = [c for c in found if law.norm(c) <= 2]
    for change in changes:
        worst = max(
            math.log(p / found[moved])
            for y, p in found.items()
            if (moved := tuple(a - b for a, b in zip(y, change, strict=True))) in found
        )
        assert worst <= law.norm(change) / law.scale + 1e-9
        assert worst >= law.norm(change) / law.scale - 1e-9


def test_the_norm_is_subadditive_with_ceil_and_not_with_floor() -> None:
    law = Box(F(1), (1, 3))
    vectors = list(itertools.product(range(-7, 8), repeat=2))

    def holds(norm: Any) -> bool:
        return all(
            norm((a + c, b + d)) <= norm((a, b)) + norm((c, d)) for a, b in vectors for c, d in vectors[::7]
        )

    assert holds(law.norm)
    assert not holds(lambda y: max(abs(value) // reach for value, reach in zip(y, law.reaches, strict=True)))


def test_one_geometric_too_few_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    law = Box(F(3), (1, 1, 1))
    assert fit_p(law.vectors(3, 200_000, OS_RANDOM), law) > _P

    def fewer(scale: Fraction, count: int, source: Any) -> Draws:
        drawn = draw_geometric(scale, count, source)
        drawn[: count // 4] = 0  # k + 1 of them, the first of which counts nothing
        return drawn

    monkeypatch.setattr(box, "draw_geometric", fewer)
    assert fit_p(law.vectors(3, 200_000, OS_RANDOM), law) < _P


@pytest.mark.parametrize("law", SMALL, ids=lambda law: law.text)
def test_tails_and_spreads_are_those_of_the_enumeration(law: Box) -> None:
    found = chances(law, 24 if len(law.reaches) < 3 else 14)
    missing = 1 - sum(found.values())
    for place in range(len(law.reaches)):
        one = law.at(place)
        at = np.arange(-5, 9)
        tails = one.tails(at)
        for m, told in zip(at.tolist(), tails.tolist(), strict=True):
            exact = sum(p for y, p in found.items() if y[place] >= m)
            assert told == pytest.approx(exact, abs=missing + 1e-9)
            assert float(one.tail(m)) == pytest.approx(told, rel=1e-9)
        spread = sum(p * y[place] ** 2 for y, p in found.items())
        assert float(one.spread) == pytest.approx(spread, rel=3e-2)
        assert float(one.spread) >= spread
    assert law.spread == max(law.at(place).spread for place in range(len(law.reaches)))


def test_a_half_width_is_the_least_that_holds() -> None:
    for law in (*SMALL, Box(F(1000), (1, 200, 40_000)), Box(F(2**22), (1, 2**30, 2**60))):
        for place, beta in itertools.product(range(len(law.reaches)), (F(1, 2), F(1, 20), F(1, 10**6))):
            one = law.at(place)
            half = one.half_width(beta)
            assert 2 * one.tail(half + 1) <= beta
            assert half == 0 or 2 * one.tail(half) > beta
            assert one.upper_quantile(beta / 2) == half + 1


def test_the_widths_of_the_table() -> None:
    """In multiples of D / epsilon at 95 %: 5.2 at three coordinates, 8.3 at six; variances 4, 20/3 and 56/3."""
    for size, wide, variance in ((2, None, F(4)), (3, 5.2, F(20, 3)), (6, 8.3, F(56, 3))):
        law = Box(F(10_000), (1,) * size)
        if wide is not None:
            assert law.at(0).half_width(F(1, 20)) / 10_000 == pytest.approx(wide, rel=0.01)
        assert float(law.at(0).spread) == pytest.approx(float(variance) * 10**8, rel=1e-3)


@pytest.mark.parametrize("weights", [(1, 1, 0), (200, 1, 0), (0, 200, 1), (40_000, -200, 1), (3, -1, 1)])
def test_a_weighted_sum_has_the_bar_that_is_told(weights: tuple[int, ...]) -> None:
    law = Box(F(10), (1, 200, 40_000))
    ((noise, unit),) = law.noises({place: F(weight) for place, weight in enumerate(weights) if weight})
    drawn = np.array(weights) @ law.vectors(3, 300_000, OS_RANDOM) / int(unit)
    for beta in (F(1, 2), F(1, 20), F(1, 500)):
        missed = int((np.abs(drawn) > noise.half_width(beta)).sum())
        assert stats.binomtest(missed, drawn.size, float(beta)).pvalue > _P
    assert float(noise.spread) == pytest.approx(float(drawn.var()), rel=0.03)


def test_parts_of_one_vector_are_not_independent() -> None:
    """As if they were, a sum would have another distribution, of the same variance: bars would be too narrow."""
    law = Box(F(10), (1, 200))
    drawn = np.array([200, 1]) @ law.vectors(2, 300_000, OS_RANDOM)
    wrong = half_width_of([(law.at(0), F(200)), (law.at(1), F(1))], F(1, 500))
    missed = int((np.abs(drawn) > float(wrong)).sum())
    assert stats.binomtest(missed, drawn.size, 1 / 500).pvalue < 1e-4


@pytest.mark.parametrize("weights", [(1, 1), (2, 1), (1, -3)])
@pytest.mark.parametrize("scale", [F(1), F(4)])
def test_a_weighted_sum_of_a_small_scale(weights: tuple[int, int], scale: Fraction) -> None:
    """Against enumeration: half a step more or less is what is left of taking parts to be continuous."""
    law = Box(scale, (1, 2))
    found = chances(law, 40)
    ((noise, _),) = law.noises({place: F(weight) for place, weight in enumerate(weights)})
    at = np.arange(1, 20)
    for m, told in zip(at.tolist(), noise.tails(at).tolist(), strict=True):
        exact = sum(p for y, p in found.items() if weights[0] * y[0] + weights[1] * y[1] >= m)
        assert told == pytest.approx(exact, abs=0.01)


def test_noises_of_two_vectors_are_told_apart() -> None:
    law = Box(F(5), (1, 3))
    noises = law.noises({0: F(1), 1: F(1, 2), 2: F(1, 3)})
    assert [(type(noise).__name__, unit) for noise, unit in noises] == [
        ("Weighted", F(1, 2)),
        ("Coordinate", F(1, 3)),
    ]
    ((noise, unit),) = sum_of(law, 4).noises({0: F(1), 1: F(1)})
    assert isinstance(noise, WeightedSum)
    assert (noise.parts[0][1:], unit) == ((F(1), 4), F(1))
    vectors = sum_of(law, 4).vectors(2, 100_000, OS_RANDOM)
    for place in (0, 1):
        assert float(vectors[place].var()) == pytest.approx(float(4 * law.at(place).spread), rel=0.05)
    # of one vector: large ones are large together
    assert np.corrcoef(np.abs(vectors))[0, 1] > 0.05


def test_vectors_stand_one_below_the_other() -> None:
    law = Box(F(50), (1, 1, 1000))
    drawn = law.vectors(6, 2000, OS_RANDOM)
    assert drawn.shape == (6, 2000)
    sizes = np.abs(drawn)
    assert sizes[[2, 5]].mean() > 100 * sizes[[0, 1, 3, 4]].mean()
    together = np.corrcoef(sizes)
    assert together[0, 1] > 0.2
    assert abs(together[0, 3]) < 0.15
    with pytest.raises(ValueError, match="whole vectors"):
        law.vectors(4, 1, OS_RANDOM)


def test_what_does_not_fit_64_bits_is_drawn_in_python_integers() -> None:
    law = Box(F(2**42), (1, 2**60))
    drawn = law.vectors(2, 50, OS_RANDOM)
    assert drawn.dtype == object
    assert max(abs(y) for y in drawn[1]) > 2**80
    assert float(np.mean([float(y) ** 2 for y in drawn[1]])) == pytest.approx(
        float(law.at(1).spread), rel=0.9
    )


@pytest.mark.parametrize("text", ["box 10 1 200 40000", "coordinate 1 box 21/2 1 200"])
def test_the_ledgers_text_is_read_back(text: str) -> None:
    assert law_of(text).text == text


@pytest.mark.parametrize(
    "text", ["box 10", "box 0 1", "box 10 0", "box 10 01", "box 10 1.5", "coordinate 2 box 10 1 2", "coordinate -1 box 10 1"]
)  # fmt: skip
def test_what_is_no_law_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        law_of(text)
    assert not isinstance(raised.value, UnknownLaw)


def test_a_vector_has_no_width_of_its_own() -> None:
    law: Law = Box(F(1), (1, 2))
    for ask in (
        lambda: law.half_width(F(1, 20)), lambda: law.upper_quantile(F(1, 20)),
        lambda: law.tails(np.array([1])), lambda: law.draw(1, OS_RANDOM),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            ask()
    with pytest.raises(TypeError):
        Box(1.5, (1,))  # type: ignore[arg-type]
    assert Coordinate(Box(F(2), (3, 5)), 1).scale == 10


def test_geometric_numbers() -> None:
    for scale in (F(1, 3), F(1), F(20), F(7, 3)):
        drawn = draw_geometric(scale, 300_000, OS_RANDOM).astype(np.int64)
        q = math.exp(-1 / scale)

        def fit(ratio: float, drawn: Draws = drawn) -> float:
            expected = np.array([(1 - ratio) * ratio**x for x in range(200)]) * drawn.size
            most = int((expected >= 20).sum())
            seen = np.bincount(np.minimum(drawn, most), minlength=most + 1)
            return float(
                stats.chisquare(seen, [*expected[:most], drawn.size * ratio**most], sum_check=False).pvalue
            )

        assert fit(q) > _P
        assert fit(q**2) < _P


def test_uniform_numbers_below_each() -> None:
    for n in (1, 2, 3, 7, 1000):
        drawn = draw_below_each(np.full(70_000, n, dtype=np.uint64), OS_RANDOM)
        assert int(drawn.max()) < n
        assert n == 1 or stats.chisquare(np.bincount(drawn.astype(np.int64), minlength=n)).pvalue > _P
    wide = draw_below_each(np.full(50_000, 3 * 2**61, dtype=np.uint64), OS_RANDOM)
    thirds = np.bincount((wide >> np.uint64(61)).astype(np.int64), minlength=3)
    assert stats.chisquare(thirds).pvalue > _P  # w mod n alone would give the first third twice as often
