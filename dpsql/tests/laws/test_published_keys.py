"""Keys that are not declared: which of them may be shown is decided by how many people have them, before the noise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.mechanisms import ATTO, NANO, Law
from dpsql.tests.support.random_databases import Database, policy_of

from .conftest import OpenDesk
from .examples import visit

PEOPLE = Database((), tuple(visit(10 * k + u, tag="abcd"[k]) for k in range(4) for u in range(k + 1)))
"""One person has tag a, two others have b, three c, four d."""


class Much:
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


def test_a_key_at_the_threshold_is_shown_and_one_below_is_not(desk: OpenDesk) -> None:
    """The figure that is printed in EXPLAIN is the one that is tested: >= tau, on the count with its noise."""
    opened = desk()
    sql = "SELECT tag, COUNT(*) FROM visit GROUP BY tag"
    (release,) = opened.session.explain(sql).plan.releases
    assert release.tau is not None
    tau = release.tau

    class Exactly:
        def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
            return np.full(count, tau - 3, dtype=np.int64)

    opened.session._noise = Exactly()
    opened.settle(PEOPLE)
    assert [row[0] for row in opened.session.execute(sql).rows] == ["c", "d"]
