"""L7 and L8: every released coordinate is its exact integer plus a draw of its own.

The injected noise gives 1, 2, 3, …, and again one number for all: the difference of what is stored is the number
that each coordinate got. Two coordinates with one number would show the exact difference of what they count.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.budget.ledger_store import LedgerStore
from dpsql.mechanisms import Laplace, Law, Noise, SampledNoise
from dpsql.plan.measures.measurements import WEIGHT
from dpsql.postprocess.simulate import Seeded
from dpsql.release.released import decode
from dpsql.testing.injected_noise import CountingNoise, ZeroNoise
from dpsql.tests.support.random_databases import Database

from .conftest import OpenDesk
from .examples import visit

Patch = pytest.MonkeyPatch

START = 10**6
"""Far above tau, so that every key is shown, and far above what any intermediate result is compared with."""

ROWS = Database(
    (),
    tuple(
        visit(unit, city=city, tag=tag, n="1", d="1", x="1", flag="true")
        for unit in range(1, 5) for city, tag in (("a", "t"), ("b", "u"))
    ),
)  # fmt: skip
"""Nobody passes a bound: what is kept of a person does not depend on the ledger's salt."""

EQUAL_SCALES = "SELECT city, SUM(n), SUM(abs(n)) FROM visit GROUP BY city"
"""Its two measurements have one scale, and each of its cells is one coordinate."""

FEW = (
    EQUAL_SCALES,
    "SELECT tag, COUNT(*), SUM(n), COUNT(DISTINCT flag) FROM visit WHERE flag GROUP BY tag",
    "SELECT city, SUM(n) FROM visit WHERE n > (SELECT -COUNT(*) FROM visit) GROUP BY city",
    "SELECT city, SUM(abs(n)) FROM visit WHERE n < 100 GROUP BY city",
    "SELECT flag, AVG(x) FROM visit GROUP BY flag",
)
"""What shares a draw in some way shows it here."""

STATEMENTS = (
    *FEW,
    "SELECT SUM(n), SUM(abs(n)), dp_avg_direct(n) FROM visit",
    "SELECT city, COUNT(*), COUNT(DISTINCT tag), COUNT(DISTINCT n), AVG(x), VAR_POP(d) FROM visit GROUP BY city",
    "SELECT flag, COUNT(*) FILTER (WHERE n > 0), COUNT(*) FROM visit GROUP BY flag",
    "SELECT city, flag, COUNT(*) FROM visit GROUP BY CUBE (city, flag)",
    "SELECT COUNT(*) FROM visit JOIN (SELECT city, COUNT(*) AS c FROM visit WHERE n < 5 GROUP BY city) t USING (city)",
    "SELECT a.c, b.c FROM (SELECT COUNT(*) AS c FROM visit WHERE n < 6) a, (SELECT COUNT(*) AS c FROM visit WHERE n < 7) b",
    "SELECT COUNT(*) FROM person",
    "SELECT COUNT(*) FROM person WHERE active",
)


class OneNumber(ZeroNoise):
    """A noise that adds the same number everywhere."""

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return np.full(count, START, dtype=np.int64)


class InUnits(ZeroNoise):
    """A noise in whole lattice units, so that it is seen in what is shown."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return WEIGHT * self._noise.draw(law, count)


def stored_by(
    desk: OpenDesk,
    noise: Noise,
    patch: Patch,
    statements: Sequence[str] = STATEMENTS,
    *,
    intervals: bool = False,
) -> list[int]:
    """Ask statements at a new desk; return the integers that were stored, in their order."""
    found: list[int] = []
    original = LedgerStore.commit

    def commit(self: LedgerStore, reservation: Any, draws: Any) -> None:
        for one in draws:
            found.extend(
                int(value) for column in decode(one.payload, one.law).values for value in column.tolist()
            )
        original(self, reservation, draws)

    opened = desk(noise)
    opened.settle(ROWS)
    if intervals:
        opened.session.execute("SET dpsql.intervals = 0.9")
    with patch.context() as inner:
        inner.setattr(LedgerStore, "commit", commit)
        for sql in statements:
            opened.session.execute(sql)
    return found


def check_own_draws(desk: OpenDesk, patch: Patch, statements: Sequence[str] = STATEMENTS) -> None:
    """Hold that each stored integer is exact + a number of its own, and that each number is used."""
    noise = CountingNoise(START)
    noisy = stored_by(desk, noise, patch, statements)
    shifted = stored_by(desk, OneNumber(), patch, statements)
    numbers = [a - b + START for a, b in zip(noisy, shifted, strict=True)]
    assert len(numbers) > 5 * len(statements)
    assert sorted(numbers) == list(noise.given)


def test_every_coordinate_has_a_draw_of_its_own(desk: OpenDesk, monkeypatch: Patch) -> None:
    check_own_draws(desk, monkeypatch)


def test_what_is_shown_has_the_draws_that_are_stored(desk: OpenDesk) -> None:
    """Also from the store: each cell of one coordinate is exact + its own number, in whole units.

    All numbers but those of the rows of all other cities, the last of each measurement (soundness.md 1.34): they are
    drawn with the others, and never shown.
    """
    noise = CountingNoise(START)
    one, other = desk(InUnits(noise)), desk(InUnits(OneNumber()))
    for opened in (one, other):
        opened.settle(ROWS)
        opened.session.execute("SET dpsql.reuse = off")  # each column is drawn for itself
        release = opened.session.explain(EQUAL_SCALES).plan.releases[0]
        assert [measurement.denominator for measurement in release.measurements] == [WEIGHT] * 2
        (city,) = release.axes or ()
        assert len(city.others) == 1
    for _ in range(2):
        rows, shifted = one.session.execute(EQUAL_SCALES).rows, other.session.execute(EQUAL_SCALES).rows
        numbers = [
            a - b + START  # type: ignore[operator]  # numbers
            for r, s in zip(rows, shifted, strict=True) for a, b in zip(r[1:], s[1:], strict=True)
        ]  # fmt: skip
        assert len(noise.given) == 2 * city.size
        is_shown = [place % city.size < len(city.values) for place in range(2 * city.size)]
        assert sorted(numbers) == list(compress(noise.given, is_shown))
        for opened in (one, other):
            opened.session.execute("SET dpsql.reuse = on")
            opened.session.dataset.answers.clear()


def test_error_bars_draw_for_themselves(desk: OpenDesk, monkeypatch: Patch) -> None:
    """Bars are simulated from seeds of their own: the releases are the same as without them, and use no seed."""
    noise, plain = CountingNoise(START), CountingNoise(START)
    seeds: list[bytes] = []

    class Noted(Seeded):
        def __init__(self, seed: bytes) -> None:
            seeds.append(seed)
            super().__init__(seed)

    monkeypatch.setattr("dpsql.release.answer_bars.Seeded", Noted)
    with_bars = stored_by(desk, noise, monkeypatch, intervals=True)
    simulated = len(seeds)
    without = stored_by(desk, plain, monkeypatch)
    assert len(seeds) == simulated > 0
    assert with_bars == without
    assert noise.given == plain.given


def test_the_real_noise_never_repeats_itself() -> None:
    """Within a call and between calls of one scale, for few draws and for many."""
    law = Laplace(Fraction(10**15))
    for count in (1, 8, 300):
        drawn = [value for _ in range(3) for value in SampledNoise().draw(law, count).tolist()]
        assert len(set(drawn)) == len(drawn)
