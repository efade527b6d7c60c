"""Error bars: exact quantiles for linear expressions, and coverage for ratios."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpsql.mechanisms import OS_RANDOM, Gaussian, Laplace, Law, half_width_of
from dpsql.postprocess import (
    ReleasedColumn,
    ReleasedTable,
    SealedEngine,
    error_bars,
    null_on_error,
    simulate,
)
from dpsql.postprocess.simulate import Bounds, Drawn, Seeded, quotient_ends, replicas_of
from dpsql.relation.types import BIGINT, DOUBLE, NUMERIC, TEXT
from dpsql.release.answer_bars import _PLACES
from dpsql.tests.laws.planting import plant
from dpsql.tests.support.length import some

LEVEL = Fraction(95, 100)


def released(**columns: list[int]) -> ReleasedTable:
    keys = ReleasedColumn("k", TEXT, [f"k{i}" for i in range(len(next(iter(columns.values()))))])
    return ReleasedTable(
        "r", (keys, *(ReleasedColumn(name, BIGINT, values) for name, values in columns.items()))
    )


def bars_of(
    engine: SealedEngine, sql: str, table: ReleasedTable, replicas: dict[str, np.ndarray], level: Fraction
) -> tuple[Bounds, Bounds]:
    """Return the bars of one table."""
    (found,) = error_bars(engine, sql, [Drawn(table, replicas)], level)
    return found


def test_a_linear_expression_has_the_noise_quantiles(engine: SealedEngine) -> None:
    noise = np.arange(-100, 101)
    low, high = bars_of(engine, '"r"."n" * 2.0', released(n=[1000, -5]), {"n": noise}, LEVEL)
    assert low == pytest.approx([2000 - 190, -10 - 190])
    assert high == pytest.approx([2000 + 190, -10 + 190])


def test_skewed_noise_points_to_the_truth(engine: SealedEngine) -> None:
    """The released value is too high when its noise was positive: the long side points down."""
    noise = np.array([0] * 50 + [100] * 50)
    low, high = bars_of(engine, '"n"', released(n=[500]), {"n": noise}, Fraction(9, 10))
    assert (low, high) == ([400.0], [500.0])


def test_draws_of_one_index_belong_together(engine: SealedEngine) -> None:
    noise = np.array([-70, -10, 0, 10, 70])
    low, high = bars_of(engine, '"s" + "n"', released(s=[10], n=[20]), {"s": noise, "n": -noise}, LEVEL)
    assert (low, high) == ([30.0], [30.0])


def test_null_where_neither_holds(engine: SealedEngine) -> None:
    ratio = null_on_error.divide('"s"', '"n"', DOUBLE)
    noise = {"n": np.array([1, 1, -3])}
    low, high = bars_of(engine, ratio, released(s=[5, 5, 5], n=[0, 1, 7]), noise, LEVEL)
    assert low[:2] == high[:2] == [None, None]
    assert low[2] is not None
    assert high[2] is not None


def test_half_of_the_draws_are_enough(engine: SealedEngine) -> None:
    ratio = null_on_error.divide('"s"', '"n"', DOUBLE)
    low, _ = bars_of(engine, ratio, released(s=[4], n=[1]), {"n": np.array([1, 1, -1, -1])}, LEVEL)
    assert low == [pytest.approx(2)]


def test_large_and_missing_measures(engine: SealedEngine) -> None:
    table = ReleasedTable("r", (ReleasedColumn("n", BIGINT, [2**100, 2**63 - 1, None, -(2**126)]),))
    noise = {"n": np.array([-(2**80), 0, 2**80], dtype=object)}
    low, high = bars_of(engine, null_on_error.cast('"n"', BIGINT, NUMERIC), table, noise, LEVEL)
    assert low[2] is high[2] is None
    assert low[0] == pytest.approx(2**100 - 0.95 * 2**80)
    assert high[1] == pytest.approx(2**63 + 0.95 * 2**80)


def test_chunks_give_what_one_statement_gives(engine: SealedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    table, noise = (
        released(n=list(range(50)), s=list(range(100, 150))),
        {"n": np.arange(-5, 6), "s": np.arange(11)},
    )
    whole = bars_of(engine, '"s" * 1.0 + "n"', table, noise, LEVEL)
    monkeypatch.setattr(simulate, "_EVALUATIONS_PER_STATEMENT", 40)
    assert bars_of(engine, '"s" * 1.0 + "n"', table, noise, LEVEL) == whole
    assert len(whole[0]) == 50


@pytest.mark.parametrize("most", [22, 77, 10_000])
def test_tables_in_one_go_have_what_each_has_alone(
    engine: SealedEngine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Each by the noise of its own; also where a statement ends within a table, and with integers beyond 64 bits."""
    asked = [
        Drawn(released(n=[1, 2, 3]), {"n": np.arange(10)}),
        Drawn(released(n=[]), {"n": np.arange(10) * 2}),
        Drawn(released(n=list(range(9))), {"n": np.arange(10) * 7 - 30}),
        Drawn(released(n=[2**70]), {"n": np.array([2**64 * i for i in range(10)], dtype=object)}),
    ]
    each = [error_bars(engine, '"n" * 1.0', [one], LEVEL)[0] for one in asked]
    assert [len(low) for low, _ in each] == [3, 0, 9, 1]
    monkeypatch.setattr(simulate, "_EVALUATIONS_PER_STATEMENT", most)
    assert error_bars(engine, '"n" * 1.0', asked, LEVEL) == each
    with pytest.raises(ValueError, match="as many draws"):
        error_bars(engine, '"n"', [*asked, Drawn(released(n=[1]), {"n": np.arange(11)})], LEVEL)


def test_no_rows(engine: SealedEngine) -> None:
    assert bars_of(engine, '"n"', released(n=[]), {"n": np.array([1])}, LEVEL) == ([], [])


def test_ratios_are_covered_and_wrong_scales_are_not(engine: SealedEngine) -> None:
    """1000 releases of a ratio: about 95% of the bars hold the truth, far fewer with a third of the noise."""
    source = np.random.default_rng(7)

    def laplace(scale: float, size: int) -> np.ndarray:
        return np.rint(source.laplace(0, scale, size)).astype(np.int64)

    true_s, true_n, size = 30_000, 10_000, 1000
    table = released(s=list(true_s + laplace(200, size)), n=list(true_n + laplace(100, size)))
    ratio = null_on_error.divide('"s"', '"n"', DOUBLE)
    coverage = []
    for factor in (1.0, 1 / 3):
        noise = {"s": laplace(200 * factor, 2000), "n": laplace(100 * factor, 2000)}
        low, high = bars_of(engine, ratio, table, noise, LEVEL)
        coverage.append(sum(lo <= true_s / true_n <= hi for lo, hi in zip(low, high, strict=True)) / size)
    assert 0.925 < coverage[0] < 0.975
    assert coverage[1] < 0.75


def test_bars_stay_in_the_range_of_the_expression(engine: SealedEngine) -> None:
    """An average that was clamped at its lower bound has the truth above it, and no bar below it."""
    average = 'greatest(least(CAST("s" AS DOUBLE) / 10, 5e0), 0e0)'
    low, high = bars_of(engine, average, released(s=[-3]), {"s": np.arange(-100, 101)}, LEVEL)
    assert low == [0.0]
    assert high == [5.0]


@pytest.mark.parametrize(
    ("replicas", "level", "words"),
    [
        ({}, LEVEL, "replicas"),
        ({"n": np.array([], dtype=np.int64)}, LEVEL, "replicas"),
        ({"n": np.zeros((2, 2), dtype=np.int64)}, LEVEL, "replicas"),
        ({"n": np.arange(3), "s": np.arange(4)}, LEVEL, "replicas"),
        ({"k": np.arange(3)}, LEVEL, "integer columns"),
        ({"missing": np.arange(3)}, LEVEL, "integer columns"),
        ({"n": np.arange(3)}, Fraction(1), "level"),
        ({"n": np.arange(3)}, Fraction(0), "level"),
    ],
)
def test_bad_arguments(
    engine: SealedEngine, replicas: dict[str, np.ndarray], level: Fraction, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        bars_of(engine, '"n"', released(n=[1], s=[1]), replicas, level)


def test_ends_of_quotients_are_where_the_test_rejects() -> None:
    places = np.linspace(-2, 2, 33)
    halves = np.hypot(5.0, 3.0 * places)
    numerator, denominator = np.array([40.0, -40.0, 500.0, 1.0]), np.array([50.0, 50.0, 100.0, 2.0])
    low, high = quotient_ends(numerator, denominator, places, halves)

    def rest(w: float, row: int) -> float:
        return abs(numerator[row] - w * denominator[row]) - float(np.hypot(5.0, 3.0 * w))

    for row in (0, 1):
        assert rest(low[row], row) == pytest.approx(0, abs=0.05)
        assert rest(high[row], row) == pytest.approx(0, abs=0.05)
        assert low[row] < numerator[row] / denominator[row] < high[row]
    assert (low[0], high[0]) == (-high[1], -low[1])
    assert (low[2], high[2]) == (2, 2), "5 is beyond the largest there is"
    assert (low[3], high[3]) == (-2, 2), "a count as large as its noise rejects nothing"


def test_ends_of_quotients_whose_half_width_is_not_even() -> None:
    places = np.linspace(-1, 1, 65)
    low, high = quotient_ends(np.array([10.0]), np.array([50.0]), places, 4 * np.abs(1 - places))
    assert (low[0], high[0]) == (pytest.approx(6 / 46), pytest.approx(14 / 54))


@pytest.mark.parametrize("beta", [Fraction(1, 10), Fraction(1, 20), Fraction(1, 100)])
@pytest.mark.parametrize("ratio", some([Fraction(1), Fraction(1, 50), Fraction(50)], 1))
def test_chords_of_half_widths_are_near(beta: Fraction, ratio: Fraction) -> None:
    """e_S - w·e_n at 33 values of w, and between them; a chord is never below by more than six digits leave open."""
    scale = Laplace(Fraction(1000)), Laplace(1000 * ratio)

    def half(w: Fraction) -> float:
        return float(
            half_width_of([(scale[0], Fraction(1)), (scale[1], w)] if w else [(scale[0], Fraction(1))], beta)
        )

    known = [(place, half(place)) for place in _PLACES]
    for (first, low), (second, high) in itertools.pairwise(known):
        exact = half((first + second) / 2)
        assert exact * 0.999 <= (low + high) / 2 <= exact * 1.01


def test_bars_of_averages_hold_the_truth() -> None:
    """Of 20,000 groups of 1 to 200 rows, at 90 %: no more are missed than the level says."""
    random = np.random.default_rng(3)
    count = random.integers(1, 201, 20_000)
    total = np.rint(count * random.uniform(-50, 50, len(count))).astype(np.int64)
    wide, narrow, beta = Laplace(Fraction(500)), Laplace(Fraction(10)), Fraction(1, 10)
    places = [50 * part for part in _PLACES]
    halves = [
        float(half_width_of([(wide, Fraction(1)), *([(narrow, w)] if w else [])], beta)) for w in places
    ]
    noisy = (
        (total + wide.draw(len(total), OS_RANDOM)).astype(float),
        (count + narrow.draw(len(total), OS_RANDOM)).astype(float),
    )
    both = [
        np.array([*(way * one for one in of[:0:-1]), *of], dtype=float)
        for way, of in ((-1, places), (1, halves))
    ]
    low, high = quotient_ends(*noisy, *both)
    held = (low <= total / count) & (total / count <= high)
    many = noisy[1] > 60
    assert 0.88 < np.mean(held[many]) < 0.92
    assert np.mean(held) > 0.895


# --- replicas ------------------------------------------------------------------------------------------------

REPLICATED = (
    Laplace(Fraction(1, 2)),
    Laplace(Fraction(7)),
    Gaussian(Fraction(3)),
    Gaussian(Fraction(16)),
    Gaussian(Fraction(900)),
)


@pytest.mark.parametrize("law", REPLICATED, ids=lambda law: law.text)
def test_replicas_have_the_law_of_the_noise(law: Law) -> None:
    """As often beyond each place as its tails say, within four and a half standard deviations."""
    count = 200_000
    noise = replicas_of(law, count, Seeded(b"replicas"))
    places = np.unique(np.rint(np.linspace(-3, 3, 13) * float(law.spread) ** 0.5).astype(np.int64))
    chances = law.tails(places)
    shares = np.array([np.mean(noise >= place) for place in places])
    assert (np.abs(shares - chances) <= 4.5 * np.sqrt(chances * (1 - chances) / count) + 1e-9).all()


@pytest.mark.parametrize("scale", [Fraction(2**40), Fraction(10**30)])
def test_replicas_at_any_width(scale: Fraction) -> None:
    for law in (Laplace(scale), Gaussian(scale)):
        noise = replicas_of(law, 20_000, Seeded(b"wide"))
        assert np.std([float(one / scale) for one in noise.tolist()]) == pytest.approx(
            float(law.spread) ** 0.5 / float(scale), rel=0.03
        )
        assert noise.dtype == (object if scale > 2**62 else np.int64)


def test_a_mutant_whose_replicas_have_another_law(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, replicas_of, ("np.floor(first) - np.floor(second)", "np.rint(first - second)"))
    with pytest.raises(AssertionError):
        test_replicas_have_the_law_of_the_noise(REPLICATED[0])
