"""Stored draws of one number answer together: their weighted mean, free, with bars of its own (soundness.md 3.13).

Each is exact plus noise of its own, of one epoch; whoever wants more than the mean gives pays for what is missing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.budget import Draw, ledger_store
from dpsql.engine.answer import Answer
from dpsql.errors import Unverified
from dpsql.mechanisms import (
    Box,
    Gaussian,
    Laplace,
    Law,
    SampledNoise,
    WeightedSum,
    Wish,
    best_weights,
    half_width_of,
    mean_of,
)
from dpsql.release import estimate, run
from dpsql.release.released import ReleasedMeasurement, encode, integers
from dpsql.release.run import assemble

from .conftest import Desk, OpenDesk
from .examples import HEAVY, ORDINARY
from .planting import plant
from .test_one_draw import another_session, cost, spent

Patch = pytest.MonkeyPatch
PEOPLE = "SELECT COUNT(*) AS n FROM person"
CITIES = "SELECT city, COUNT(*) AS n FROM visit GROUP BY city"


def at(desk: Desk, epsilon: str, sql: str = PEOPLE) -> Answer:
    desk.session.execute(f"SET dpsql.epsilon = {epsilon}")
    return desk.session.execute(sql)


def stored(desk: Desk, sql: str = PEOPLE) -> list[Draw]:
    """Return the draws of a statement's first measure, the best first."""
    (release,) = desk.session.explain(sql).plan.releases
    measures = release.measure_keys(0, release.salted(b""), b"")
    found = desk.session.dataset.store.lookup(measures, Laplace(Fraction(10**9)))
    return list(found[0]) if found else []


def value(draw: Draw) -> int:
    return int(run.decode(draw.payload, draw.law).values[0][0])


def check_weights(desk: OpenDesk) -> None:
    """Each draw counts by one over its own variance."""
    opened = desk()
    opened.settle(ORDINARY)
    first = at(opened, "0.005")
    both = at(opened, "0.01")
    assert (cost(first), cost(both)) == (Fraction(1, 200), Fraction(86603, 10**7))
    fine, coarse = stored(opened)
    mean = Fraction(3 * value(fine) + value(coarse), 4)
    assert abs(both.rows[0][0] - mean) <= Fraction(1, 2) + Fraction(abs(value(fine) - value(coarse)), 2**19)
    assert value(coarse) == first.rows[0][0]


def check_weights_often(desk: OpenDesk) -> None:
    """Two draws that lie close together have the same mean, however they are weighed."""
    for _ in range(4):
        check_weights(desk)


def test_each_draw_counts_by_its_own_variance(desk: OpenDesk) -> None:
    check_weights_often(desk)


def test_the_answer_is_that_of_the_set_of_draws(desk: OpenDesk) -> None:
    """It is the same for everybody and at every epsilon that it serves, until a draw joins."""
    opened = desk()
    opened.settle(HEAVY)
    at(opened, "0.1", CITIES)
    told = at(opened, "0.2", CITIES).rows
    before = spent(opened)
    for epsilon in ("0.2", "0.1", "0.01"):
        assert at(opened, epsilon, CITIES).rows == told
    assert another_session(opened).execute("SET dpsql.epsilon = 0.2") is not None
    other = another_session(opened)
    other.execute("SET dpsql.epsilon = 0.15")
    assert other.execute(CITIES).rows == told
    assert spent(opened) == before
    opened.session.execute("SET dpsql.reuse = off")
    alone = at(opened, "0.2", CITIES)
    assert (cost(alone), alone.rows != told) == (Fraction(1, 5), True)
    opened.session.execute("SET dpsql.reuse = on")
    joined = at(opened, "0.2", CITIES).rows
    assert joined != told
    assert at(opened, "0.28", CITIES).rows == joined  # 0.01 + 0.03 + 0.04 are as good as that
    assert spent(opened) == before + 2 * 10**8


def check_pure_charge(desk: OpenDesk) -> None:
    """Precisions add up, not epsilons: each draw is charged in full, and has what is missing to the wanted precision."""
    opened = desk()
    opened.settle(ORDINARY)
    paid = [cost(at(opened, epsilon)) for epsilon in ("0.1", "0.2", "0.5")]
    precisions = [math.cosh(one) - 1 for one in paid]
    for number, epsilon in enumerate((0.1, 0.2, 0.5)):
        assert sum(precisions[: number + 1]) == pytest.approx(math.cosh(epsilon) - 1, rel=0.002)
        assert sum(precisions[: number + 1]) >= math.cosh(epsilon) - 1 - 1e-15
    assert spent(opened) == sum(paid) * 10**9
    for draw, epsilon in zip(stored(opened), sorted(paid, reverse=True), strict=True):
        assert draw.law == Laplace(1 / epsilon)  # by its own noise: what is charged is what it tells


def test_a_pure_dataset_pays_for_the_precision_that_is_missing(desk: OpenDesk) -> None:
    check_pure_charge(desk)


def check_epochs(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(ORDINARY)
    at(opened, "0.1")
    at(opened, "0.2")
    opened.session.dataset.store.advance_epoch()
    assert stored(opened) == []
    fresh = at(opened, "0.3")
    (only,) = stored(opened)
    assert (cost(fresh), fresh.rows[0][0]) == (Fraction(3, 10), value(only))


def test_epochs_are_never_combined(desk: OpenDesk) -> None:
    check_epochs(desk)


def test_the_bars_are_those_of_the_mean(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(ORDINARY)
    opened.session.execute("SET dpsql.intervals = 0.95")
    at(opened, "0.05")
    ((n, low, high),) = at(opened, "0.05").rows
    alone = Laplace(Fraction(20)).half_width(Fraction(1, 20))
    assert (n - low, high - n) == (alone, alone)
    opened.session.execute("SET dpsql.reuse = off")
    at(opened, "0.05")
    opened.session.execute("SET dpsql.reuse = on")
    ((n, low, high),) = at(opened, "0.05").rows
    noises = [(Laplace(Fraction(20)), Fraction(1, 2))] * 2
    assert (n - low, high - n) == (half_width_of(noises, Fraction(1, 20)) // 1,) * 2
    assert n - low < 0.75 * alone


def test_a_tile_is_of_all_draws_of_its_grouping(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(HEAVY)
    at(opened, "0.2", CITIES)
    opened.session.execute("SET dpsql.reuse = off")
    at(opened, "0.2", CITIES)
    opened.session.execute("SET dpsql.reuse = on")
    cities = dict(at(opened, "0.25", CITIES).rows)
    tile = at(opened, "0.25", "SELECT COUNT(*) FROM visit WHERE city = 'a'")
    assert (cost(tile), tile.rows) == (0, [(cities["a"],)])


# --- vectors -------------------------------------------------------------------------------------------------------


def box_draws(count: int = 1) -> tuple[list[Draw], tuple[bytes, ...], np.ndarray[Any, Any]]:
    """Return two draws of zeros with box noise of different widths, over many groups; and the noise."""
    measures = tuple(bytes([i]) * 32 for i in range(3))
    draws, noises = [], []
    for scale in (4, 9):
        law = Box(Fraction(scale), (1, 5, 25))
        noise = SampledNoise().vectors(law, 3, count)
        payload = encode(
            ReleasedMeasurement(tuple(integers(row.tolist()) for row in noise), None, (law,) * 3)
        )
        draws.append(Draw(measures, law, payload))
        noises.append(noise)
    return draws, measures, np.array(noises)


def check_vectors(desk: OpenDesk | None = None) -> None:
    """One weight for a whole vector: what is known of its coordinates together is known of the mean's."""
    draws, measures, _ = box_draws(20_000)
    found = assemble(measures, [tuple(draws)] * 3, None)
    laws = [law for law in found.laws if isinstance(law, WeightedSum)]
    assert len(laws) == 3
    assert len({tuple(weight for _, weight, _ in law.parts) for law in laws}) == 1
    (vector, *others) = found.vectors
    assert vector is not None
    assert [one and (one.draw, one.joint, one.coordinate) for one in others] == [
        (vector.draw, vector.joint, place) for place in (1, 2)
    ]
    weights = {0: Fraction(5), 1: Fraction(-1), 2: Fraction(1, 5)}
    half = float(half_width_of(found.law.noises(weights), Fraction(1, 20)))
    whole = sum(float(weight) * found.values[place] for place, weight in weights.items())
    assert float(np.mean(np.abs(np.asarray(whole)) > half)) == pytest.approx(0.05, abs=0.008)
    simulated = vector.joint.vectors(3, 20_000, Tape())
    squares = [np.mean(np.abs(one[0] / 1.0) > np.abs(one[1] / 5.0)) for one in (found.values, simulated)]
    assert squares[0] == pytest.approx(squares[1], abs=0.02)


def mean_law(laws: list[Law]) -> WeightedSum:
    return WeightedSum.of(zip(laws, best_weights(laws), strict=True), Fraction(1, 2))


class Tape:
    """Random bytes for simulations."""

    def __init__(self) -> None:
        self._source = np.random.default_rng(11)

    def random_bytes(self, count: int) -> bytes:
        return self._source.bytes(count)


def test_vectors_are_combined_whole() -> None:
    check_vectors()


def test_one_coordinate_of_vectors_is_a_number_like_any_other() -> None:
    draws, measures, _ = box_draws()
    found = assemble(measures[1:2], [tuple(draws)], None)
    assert found.vectors == (None,)
    assert found.laws[0].spread == mean_law([draw.law.at(1) for draw in draws]).spread


# --- the mean ------------------------------------------------------------------------------------------------------

LAWS: list[list[Law]] = [
    [Laplace(Fraction(2)), Laplace(Fraction(10))],
    [Laplace(Fraction(10))] * 4,
    [Laplace(Fraction(1))] * 2,
    [Gaussian(Fraction(2)), Laplace(Fraction(3)), Gaussian(Fraction(2389, 1024))],
]


@pytest.mark.parametrize("laws", LAWS, ids=["far apart", "four alike", "near a step", "mixed"])
def test_the_law_of_a_mean_is_that_of_means(laws: list[Law]) -> None:
    count, noise = 200_000, SampledNoise()
    mix, weights = mean_law(laws), best_weights(laws)
    means = mean_of([noise.draw(law, count) for law in laws], weights)
    assert sum(weights) == 1
    assert float(mix.spread) == pytest.approx(float(1 / sum(1 / law.spread for law in laws)), rel=1e-6)
    assert means.var() <= float(mix.spread) + 1 / 8 + 6 * float(mix.spread + 1) * (5 / count) ** 0.5
    assert means.var() < float(laws[0].spread)
    assert abs(means.mean()) < 6 * (float(mix.spread + 1) / count) ** 0.5
    places = np.array([-3, 0, 1, 2, 5, 9])
    for place, chance in zip(places, mix.tails(places), strict=True):
        assert np.mean(means >= place) == pytest.approx(chance, abs=6 * (0.25 / count) ** 0.5)
    for beta in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 1000)):
        missed = float(np.mean(np.abs(means) > mix.half_width(beta)))
        assert missed <= float(beta) + 6 * (float(beta) / count) ** 0.5
    drawn = mix.draw(count, Tape())
    assert drawn.var() == pytest.approx(means.var(), rel=0.03)


def test_a_mean_is_exact_and_a_tie_goes_to_the_best_draw() -> None:
    halves = (Fraction(1, 2), Fraction(1, 2))
    first, second = integers([5, 6, -5, 0, 10**18, 10**30]), integers([6, 5, -6, 3, 10**18 + 4, 10**30 + 2])
    expected = [5, 6, -5, 1, 10**18 + 2, 10**30 + 1]
    assert mean_of([first, second], halves).tolist() == expected
    assert mean_of([first[:3].astype(np.int64), second[:3].astype(np.int64)], halves).tolist() == expected[:3]
    shifted = mean_of([first + 1000, second + 1000], halves)
    assert (shifted - 1000).tolist() == expected  # the noise does not depend on what is exact


# --- mutants -------------------------------------------------------------------------------------------------------


def test_combine_across_epochs(desk: OpenDesk, monkeypatch: Patch) -> None:
    plant(monkeypatch, ledger_store._drawn, ("m.epoch = (SELECT", "m.epoch <= (SELECT"))
    with pytest.raises(AssertionError):
        check_epochs(desk)


def test_pay_the_difference_in_a_pure_dataset(desk: OpenDesk, monkeypatch: Patch) -> None:
    """As if epsilons added up in a mean: what is told is less exact than alone."""
    plant(
        monkeypatch,
        Wish.missing,
        ("self.reaching(self.precision(self.loss) - known)", "self.loss - self.reaching(known)"),
    )
    with pytest.raises(AssertionError):
        check_pure_charge(desk)


def test_charge_less_than_the_noise_costs(desk: OpenDesk, monkeypatch: Patch) -> None:
    plant(monkeypatch, Wish.law, ("1 / self._rate(loss)", "1 / self._rate(self.loss)"))
    with pytest.raises((AssertionError, Unverified)):
        check_pure_charge(desk)


def test_weigh_all_draws_alike(desk: OpenDesk, monkeypatch: Patch) -> None:
    """As by the variance that is wanted, which is the same for all."""
    for module in (run, estimate):
        monkeypatch.setattr(module, "best_weights", lambda laws: (Fraction(1, len(laws)),) * len(laws))
    with pytest.raises(AssertionError):
        check_weights_often(desk)


def test_combine_a_vector_by_coordinate(monkeypatch: Patch) -> None:
    plant(monkeypatch, run._mixed, ("whole = count > 1 and all(", "whole = False and all("))
    with pytest.raises(AssertionError):
        check_vectors()
