"""Single faults in planner and printer that no law once saw: each dies by the claim (L1) of one narrow statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpsql.plan import planner, release_plan
from dpsql.plan.backend_sql import print_release, print_sums
from dpsql.plan.measures import measurements

from .examples import HEAVY, WIDE
from .measured import World
from .planting import plant
from .test_mutations import adding, holds
from .test_neighbours import TIGHT, check_nobodys_rows

__all__ = ["adding"]

Patch = pytest.MonkeyPatch
Function = Callable[..., Any]

TAGS = "SELECT tag, COUNT(*) FROM visit GROUP BY tag"
FAULTS: dict[str, tuple[Function, str, str, str]] = {
    "rows without a value beside an average": (
        measurements.Pair._without_value, "- {sums.present", "+ {sums.present",
        "SELECT COUNT(*), AVG(age) FROM person",
    ),
    "delta for one key of several": (
        release_plan.key_rule, "delta / (counted.of_one * steps)", "delta / steps", TAGS,
    ),
    "a threshold for half the noise": (
        release_plan.key_rule, "counted.scale(each.epsilon), delta / (counted", "counted.scale(each.epsilon) / 2, delta / (counted", TAGS,
    ),
    "one group more than C in the count of people": (
        print_release.ReleasePrinter.ranked, "self.key_names, self.bounding.groups, ",
        "self.key_names, self.bounding.groups + 1, ", "SELECT tag, COUNT(DISTINCT person_id) FROM visit GROUP BY tag",
    ),
    "all of delta for each grouping set": (
        planner._delta_of, "privacy.delta * Fraction(*release.share)", "privacy.delta",
        "SELECT tag, n, COUNT(*) FROM visit GROUP BY ROLLUP (tag, n)",
    ),
    "all of epsilon for each block": (
        release_plan.loss_of, "Fraction(*release.share) / blocks", "Fraction(*release.share)",
        "SELECT a.c, b.c FROM (SELECT COUNT(*) AS c FROM visit) a, (SELECT COUNT(*) AS c FROM visit WHERE n > 1) b",
    ),
    "a domain of one group more than C is not ranked": (
        planner._bounding, "len(groups) > c)", "len(groups) > c + 1)", "SELECT flag, COUNT(DISTINCT person_id) FROM visit GROUP BY flag",
    ),
    "all values of a person's group are counted": (
        print_release.ReleasePrinter._rank, "(self.unit)} ORDER", "(self.unit)}, {names[-1]} ORDER",
        "SELECT COUNT(DISTINCT tag) FROM visit",
    ),
    "distinct values of all groups are counted": (
        print_release.ReleasePrinter.distinct, "measurement.distinct_limit)", "measurement.distinct_limit * 3)",
        "SELECT city, COUNT(DISTINCT tag) FROM visit GROUP BY city",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("function", "old", "new", "sql"), FAULTS.values(), ids=FAULTS)
def test_plant(adding: World, monkeypatch: Patch, function: Function, old: str, new: str, sql: str) -> None:
    holds(adding, sql, HEAVY)
    holds(adding, sql, WIDE)
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        [holds(adding, sql, database) for database in (HEAVY, WIDE)]


def test_count_rows_that_nobody_owns(adding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        print_sums.InnerRows.__init__,
        ("[part for part in rows.owner if not rows.columns[part.index].enforced.not_null]", "[]"),
    )
    with pytest.raises(AssertionError):
        check_nobodys_rows(adding, TIGHT[0])
