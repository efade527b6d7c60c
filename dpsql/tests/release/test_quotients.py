"""Bars of shares and quotients by the test of each: they miss no more than they say, whatever the noise (soundness 1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.engine import Session
from dpsql.mechanisms import OS_RANDOM, Gaussian, Laplace, Law
from dpsql.plan.measures.formulas import Linear
from dpsql.plan.measures.measurements import Coord
from dpsql.postprocess.quotients import Quotient, Side
from dpsql.release import answer_bars
from dpsql.release.released import ReleasedMeasurement
from dpsql.tests.laws.planting import plant
from dpsql.tests.support.length import some, tried
from dpsql.tests.support.repeated_answers import repeated

from .test_error_bars import least, session

__all__ = ["session"]

BETA = Fraction(1, 20)
TRUE = np.array([70, 20, 3])
COUNT = Linear(((Coord(0, 0, 0), Fraction(1)),), Fraction(0))
NONE = Linear((), Fraction(0))


@dataclass
class _Plan:
    release: object = "counts"
    counted: None = None


@dataclass
class _Rows:
    """A release of counts, as far as a quotient asks: `noisy` of each row, under one law."""

    law: Law
    noisy: np.ndarray  # type: ignore[type-arg]
    plan: _Plan = field(default_factory=_Plan)
    fitted: dict[int, Any] = field(default_factory=dict)

    @property
    def measurements(self) -> dict[int, ReleasedMeasurement]:
        return {0: ReleasedMeasurement((self.noisy,), None, (self.law,))}

    def law_of(self, place: Coord) -> Law:
        return self.law

    def values_of(self, place: Coord) -> np.ndarray:  # type: ignore[type-arg]
        return self.noisy


def shares(law: Law, noise: Any) -> Any:
    """Return for each triple of noises, shape (triples, 3), whether the bar of each share misses what is true."""
    noisy = (TRUE + noise).ravel()
    one = Quotient("counts", COUNT, Side(NONE, COUNT))  # type: ignore[arg-type]
    number = np.arange(len(noisy))
    asked = answer_bars._Asked.of(one, [_Rows(law, noisy)], number, number // 3 * 3)  # type: ignore[list-item]
    assert asked is not None
    ends = asked.ends(BETA)
    assert ends is not None
    truth = np.tile(TRUE / TRUE.sum(), len(noise))
    slack = 1e-9
    return ((ends[0] > truth + slack) | (ends[1] < truth - slack)).reshape(-1, 3)


def misses_of_all(law: Law, reach: int) -> Any:
    """Return how often the bar of each share misses, by what each triple of noises weighs, up to so large ones."""
    at = np.arange(-reach, reach + 1)
    tails = law.tails(np.arange(-reach, reach + 2))
    weights = tails[:-1] - tails[1:]
    noise = np.stack([axis.ravel() for axis in np.meshgrid(at, at, at, indexing="ij")], axis=1)
    weight = np.multiply.outer(np.multiply.outer(weights, weights), weights).ravel()
    return (shares(law, noise) * weight[:, None]).sum(axis=0) + 3 * float(tails[-1]) * 2


NARROW = (
    Laplace(Fraction(1, 5)),
    Laplace(Fraction(1, 2)),
    Laplace(Fraction(1)),
    Gaussian(Fraction(1, 4)),
    Gaussian(Fraction(1)),
)


@pytest.mark.parametrize("law", some(NARROW, 2), ids=lambda law: law.text)
def test_shares_by_enumeration(law: Law) -> None:
    """Of every noise on three counts, of few steps of their lattice: narrow ones too."""
    reach = min(9, int(9 * law.scale) + 2)
    assert (misses_of_all(law, reach) <= float(BETA)).all()


@pytest.mark.parametrize("law", [Laplace(Fraction(4)), Gaussian(Fraction(5))], ids=lambda law: law.text)
def test_shares_of_many_draws(law: Law) -> None:
    """They miss as often as they say, and not much less."""
    count = tried(10_000, 200_000)
    drawn = law.draw(3 * count, OS_RANDOM).reshape(-1, 3)
    drawn = drawn[drawn.sum(axis=1) > -40]
    share = shares(law, drawn).mean(axis=0)
    wide = 4.2 * (0.05 * 0.95 / count) ** 0.5
    assert (share < 0.05 + wide).all()
    assert share[0] > 0.04 - wide


def test_a_mutant_that_takes_the_total_for_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, answer_bars._Asked._ends_in, ("count * (size - 1)", "0"))
    with pytest.raises(AssertionError):
        test_shares_of_many_draws(Laplace(Fraction(4)))


def test_a_mutant_whose_share_is_none_of_its_total(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, answer_bars._Asked.of.__func__, ("below.own.plus(below.whole)", "below.own"))  # type: ignore[attr-defined]
    with pytest.raises(AssertionError):
        test_shares_of_many_draws(Laplace(Fraction(4)))


@pytest.mark.parametrize(
    "law", some((*NARROW, Laplace(Fraction(30)), Gaussian(Fraction(9))), 3), ids=lambda law: law.text
)
@pytest.mark.parametrize("size", [3, 400])
def test_half_widths_between_places_are_no_less_than_exact_ones(law: Law, size: int) -> None:
    """Of a share of `size` rows at any w; of wide noises no more than two hundredths above."""

    def parts(w: Fraction) -> list[tuple[Law, Fraction, int]]:
        return [(law, abs(1 - w), 1), (law, abs(w), size - 1)]

    def half(w: Fraction) -> float:
        return answer_bars.near_half_width(parts(w), BETA)

    far = Fraction(2**40)
    rungs = answer_bars._ladder(half(Fraction(0)) / (half(far) / 2**40), 0.5)
    traced = answer_bars._traced(half, rungs)
    assert traced is not None
    places, halves = [float(one) for one in traced], list(traced.values())
    random = np.random.default_rng(7)
    for w in random.uniform(-0.5, 0.5, tried(4, 60)):
        exact = float(
            answer_bars.half_width_of(
                [(one, weight) for one, weight, n in parts(Fraction(w)) for _ in range(n)], BETA
            )
        )
        found = float(np.interp(w, places, halves)) * (answer_bars._NARROW if law.spread < 1 else 1)
        assert found >= exact * (1 - 1e-3)
        if law.scale > 3:
            assert found <= exact * 1.025


# --- statements --------------------------------------------------------------------------------------------

COUNTS = "SELECT city, month, COUNT(*) AS n FROM person GROUP BY city, month"
FORMS = {
    "of all": "SELECT city, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 3) AS share FROM person GROUP BY city",
    "of a part": f"SELECT city, month, n / SUM(n) OVER (PARTITION BY month) AS share FROM ({COUNTS}) AS t",
    "of sums": "SELECT city, SUM(age) / NULLIF(SUM(SUM(age)) OVER (), 0) AS share FROM person GROUP BY city",
    "of another": "SELECT city, SUM(age) / SUM(COUNT(*)) OVER () AS share FROM person GROUP BY city",
    "of a subquery": "SELECT city, COUNT(*) * 1e0 / (SELECT COUNT(*) FROM person WHERE age > 5) AS share FROM person GROUP BY city",
    "beside others": "SELECT city, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share, SUM(COUNT(*)) OVER (ORDER BY city) AS n"
    " FROM person GROUP BY city",
}


@pytest.mark.parametrize("form", some([*FORMS], 3))
def test_statements(session: Session, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Tested and not simulated, and as wide as what is simulated."""
    session.execute("SET dpsql.epsilon = 0.3")
    statement = repeated(session, FORMS[form], monkeypatch)
    keys, count = 2 if form == "of a part" else 1, tried(40, 200)
    assert any(one.tested for one in statement.compiled.simulations)
    monkeypatch.setattr(answer_bars, "_ENOUGH_CELLS", 0)
    place = statement.columns.index("share")
    with refusing_simulations(monkeypatch, is_refused=form != "beside others"):
        tested = next(statement.answers(1))
        assert statement.coverage(count, keys)["share"] >= least(count)
    monkeypatch.setattr(answer_bars, "_ENOUGH_CELLS", 10**6)
    drawn = next(statement.answers(1))
    widths = [
        np.array([row[place + 2] - row[place + 1] for row in rows], dtype=float) for rows in (tested, drawn)
    ]
    assert 0.9 < np.median(widths[0] / widths[1]) < 1.12


@contextmanager
def refusing_simulations(monkeypatch: pytest.MonkeyPatch, *, is_refused: bool) -> Iterator[None]:
    with monkeypatch.context() as patched:
        if is_refused:
            patched.setattr(answer_bars, "joint_bars", None)
        yield


def test_quotients_of_many_rows_of_one_release(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """From so many rows on they are tested too, where a row's own numbers are both sides."""
    sql = "SELECT city, COUNT(*) FILTER (WHERE age > 20) * 1.0 / COUNT(*) AS share FROM person GROUP BY city"
    statement = repeated(session, sql, monkeypatch)
    drawn = next(statement.answers(1))
    monkeypatch.setattr(answer_bars, "_MANY_ROWS", 6)
    tested = next(statement.answers(1))
    assert statement.coverage(tried(30, 200))["share"] >= least(tried(30, 200))
    widths = [np.median([row[3] - row[2] for row in rows]) for rows in (drawn, tested)]
    assert 0.9 < widths[1] / widths[0] < 1.12
    assert [row[:2] for row in drawn] == [row[:2] for row in tested]


def test_totals_that_are_no_more_than_their_noise_are_simulated(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No share is rejected there: bars are what they were."""
    session.execute("SET dpsql.epsilon = 0.001")
    sql = "SELECT city, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM person WHERE age > 81 GROUP BY city"
    statement = repeated(session, sql, monkeypatch)
    monkeypatch.setattr(answer_bars, "_ENOUGH_CELLS", 0)
    asked: list[object] = []
    inner = answer_bars.joint_bars
    monkeypatch.setattr(answer_bars, "joint_bars", lambda *args: asked.append(args) or inner(*args))
    assert all(row[2] <= row[1] <= row[3] for row in next(statement.answers(1)) if row[1] is not None)
    assert asked


def test_bars_of_shares_that_were_chosen_hold_at_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.execute("SET dpsql.epsilon = 0.1")
    sql = f"SELECT city, month, n * 1.0 / SUM(n) OVER () AS n FROM ({COUNTS}) AS t"
    truth = {row[:2]: row[2] for row in repeated(session, sql, monkeypatch).truth}
    statement = repeated(session, f"{sql} ORDER BY n DESC LIMIT 3", monkeypatch)
    monkeypatch.setattr(answer_bars, "_ENOUGH_CELLS", 0)
    count = tried(40, 200)
    good = [
        all(low <= truth[city, month] <= high for city, month, _, low, high in answer)
        for answer in statement.answers(count)
    ]
    assert sum(good) >= least(count) * count


def test_what_is_no_quotient_is_simulated(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for sql in (
        "SELECT city, SUM(COUNT(*)) OVER (ORDER BY city) * 1.0 / SUM(COUNT(*)) OVER () AS x FROM person GROUP BY city",
        "SELECT city, COUNT(*) / CAST(SUM(COUNT(*)) OVER () AS BIGINT) AS x FROM person GROUP BY city",
        "SELECT city, COUNT(*) * COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS x FROM person GROUP BY city",
        "SELECT city, COUNT(*) * 1.0 / MAX(COUNT(*)) OVER () AS x FROM person GROUP BY city",
        "SELECT city, AVG(age) / SUM(AVG(age)) OVER () AS x FROM person GROUP BY city",
    ):
        statement = repeated(session, sql, monkeypatch)
        assert not any(one.tested for one in statement.compiled.simulations), sql
