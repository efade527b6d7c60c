"""Which noise a count of people has, and what each group that is found by it costs (soundness.md 1.7)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.mechanisms import Truncated
from dpsql.plan import planner
from dpsql.plan.planner import PrivacyParameters, plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.tests.laws.planting import plant

from .planned import CATALOG, bound

DELTA = Fraction(1, 1000)
NOTES = "SELECT note, COUNT(DISTINCT person_id) FROM visit GROUP BY note"


def found(sql: str, *, replace_one: bool = False, max_rows: int | None = None) -> ReleasePlan:
    privacy = PrivacyParameters(Fraction(1), DELTA, 3, replace_one, max_rows)
    (release,) = plan(bound(sql), replace(CATALOG, case_collation="pg_c_utf8"), privacy).releases
    return release


@pytest.mark.parametrize(
    ("sql", "replace_one", "max_rows", "moved"),
    [
        (NOTES, False, None, 2),
        (NOTES, True, None, 4),
        (NOTES, False, 1, 1),
        (NOTES, True, 1, 2),
        ("SELECT born, COUNT(*) FROM person GROUP BY born", False, None, 1),
        ("SELECT born, COUNT(*) FROM person GROUP BY born", True, None, 2),
    ],
)
def test_each_group_has_its_part(sql: str, replace_one: bool, max_rows: int | None, moved: int) -> None:
    """R or C, whichever is less, and for replace-one the groups of the one who goes and of the one who comes."""
    release = found(sql, replace_one=replace_one, max_rows=max_rows)
    law = Truncated.within(Fraction(moved), DELTA / moved)
    assert release.key_law == law
    assert release.counted is not None
    assert release.measures[release.counted].law == law
    assert release.tau == 3 + law.bound


def test_the_count_of_people_forgets_r(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: sound, since the rank is printed from the same figure, and worse for who declares max_rows."""
    plant(
        monkeypatch,
        planner._bounding,
        ("min(in_all, max_groups_in(rows, release.keys, env))", "max_groups_in(rows, release.keys, env)"),
    )
    with pytest.raises(AssertionError):
        test_each_group_has_its_part(NOTES, False, 1, 1)
