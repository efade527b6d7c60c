"""Keys that are not declared: which of them may be shown is decided by how many people have them, before the noise (1.7)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.mechanisms import ATTO, NANO, Law
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.random_databases import Database, policy_of

from .conftest import OpenDesk
from .examples import visit

PEOPLE = Database((), tuple(visit(10 * k + u, tag="abcd"[k]) for k in range(4) for u in range(k + 1)))
"""One person has tag a, two others have b, three c, four d."""


class Much(ZeroNoise):
    """A noise with which everything would pass any threshold."""

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return np.full(count, 10**6, dtype=np.int64)


def check_minimum_units(desk: OpenDesk, folder: Path) -> None:
    """A key that fewer than `minimum_units` people have is never shown; one that has so many can be."""
    policy = policy_of(folder)
    for least in (1, 3):
        place = folder / f"least{least}"
        place.mkdir(parents=True)
        asked = replace(policy_of(place), defaults=replace(policy.defaults, minimum_units=least))
        opened = desk(Much(), folder=place, policy=asked)
        opened.settle(PEOPLE)
        for sql in ("SELECT tag, COUNT(*) FROM visit GROUP BY tag", "SELECT DISTINCT tag FROM visit"):
            shown = [row[0] for row in opened.session.execute(sql).rows]
            assert shown == list("abcd")[least - 1 :]


def test_no_key_of_too_few_people_is_shown(desk: OpenDesk, tmp_path: Path) -> None:
    check_minimum_units(desk, tmp_path / "least")


def check_order_of_keys(desk: OpenDesk) -> None:
    """Found keys come in their own order, not in the one in which the engine met the rows (law L6)."""
    opened = desk(Much())
    opened.connection.execute(
        "INSERT INTO visit (person_id, tag) SELECT i, 'k' || (i + 1000) FROM range(3000) AS t (i) ORDER BY hash(i)"
    )
    shown = [row[0] for row in opened.session.execute("SELECT tag, COUNT(*) FROM visit GROUP BY tag").rows]
    assert shown == [f"k{i}" for i in range(1000, 4000)]


def test_found_keys_come_in_their_own_order(desk: OpenDesk) -> None:
    check_order_of_keys(desk)


def check_delta_is_charged(desk: OpenDesk) -> None:
    """The ledger holds at least what the plan claims, epsilon and delta, also where a share has no end in decimals."""
    opened = desk()
    sql = "SELECT tag, COUNT(*) FROM visit GROUP BY GROUPING SETS ((tag), ())"
    plan = opened.session.explain(sql).plan
    opened.session.execute(sql)
    spent = opened.session.dataset.store.spent()
    assert plan.delta > 0
    assert Fraction(spent.delta_atto, ATTO) >= plan.delta
    assert Fraction(spent.epsilon_nano, NANO) >= plan.epsilon


def test_delta_is_charged(desk: OpenDesk) -> None:
    check_delta_is_charged(desk)


class Raised(ZeroNoise):
    """A noise that is one number everywhere, and a coin that falls on one side."""

    def __init__(self, number: int, coin: bool) -> None:
        self.number, self.coin = number, coin

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return np.full(count, self.number, dtype=np.int64)

    def coins(self, chance: Fraction, count: int) -> npt.NDArray[np.bool_]:
        return np.full(count, self.coin, dtype=np.bool_)


def check_the_printed_threshold(desk: OpenDesk, folder: Path) -> None:
    """Tested is what EXPLAIN prints: the noisy count against tau, and the one below it by the coin."""
    sql = "SELECT tag, COUNT(*) FROM visit GROUP BY tag"
    for least in (1, 2):
        for missing in (0, 1, 2):
            for coin in (True, False):
                place = folder / f"{least} {missing} {coin}"
                place.mkdir(parents=True)
                policy = policy_of(place)
                policy = replace(policy, defaults=replace(policy.defaults, minimum_units=least))
                opened = desk(folder=place, policy=policy)
                opened.settle(PEOPLE)
                (release,) = opened.session.explain(sql).plan.releases
                assert release.tau is not None
                # of the people of c, three, so many are missing to the threshold; d has one more
                opened.session._noise = Raised(release.tau - 3 - missing, coin)
                shown = [row[0] for row in opened.session.execute(sql).rows]
                passed = [
                    count for count in (1, 2, 3, 4) if count - 3 - missing + coin >= 0 and count >= least
                ]
                assert shown == ["abcd"[count - 1] for count in passed]


def test_the_printed_threshold_is_the_one_that_is_tested(desk: OpenDesk, tmp_path: Path) -> None:
    check_the_printed_threshold(desk, tmp_path / "raised")
