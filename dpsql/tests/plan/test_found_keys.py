"""Which noise a count of people has, and what each group that is found by it costs (soundness.md 1.7)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.mechanisms import Truncated
from dpsql.plan import planner
from dpsql.plan.planner import PrivacyParameters, plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting
from dpsql.tests.laws.planting import plant

from .planned import CATALOG, bound

DELTA = Fraction(1, 1000)
NOTES = "SELECT note, COUNT(DISTINCT person_id) FROM visit GROUP BY note"


def found(
    sql: str,
    *,
    replace_one: bool = False,
    max_rows: int | None = None,
    found_share: Fraction | None = None,
    accounting: Accounting = Accounting.PURE,
) -> ReleasePlan:
    privacy = PrivacyParameters(
        Fraction(1), DELTA, 3, replace_one, max_rows, accounting=accounting, found_share=found_share
    )
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


PEOPLE = "COUNT(DISTINCT person_id)"


@pytest.mark.parametrize(
    ("told", "shares"),
    [
        (PEOPLE, ["1"]),
        ("COUNT(*)", ["4/5", "1/5"]),
        ("COUNT(*), SUM(days)", ["4/5", "1/5"]),  # one pair carries both
        ("COUNT(*), SUM(days), SUM(fee), MAX(days)", ["4/15", "4/15", "4/15", "1/5"]),
        (f"{PEOPLE}, COUNT(*)", ["1/2", "1/2"]),  # what finds is told itself
        (f"{PEOPLE} FILTER (WHERE urgent)", ["1/2", "1/2"]),  # of the people alone
        (f"{PEOPLE} FILTER (WHERE urgent), {PEOPLE} FILTER (WHERE NOT urgent)", ["1/3", "1/3", "1/3"]),
    ],
)
@pytest.mark.parametrize("accounting", Accounting)
def test_the_share_of_what_only_finds_the_groups(
    told: str, shares: list[str], accounting: Accounting
) -> None:
    release = found(f"SELECT note, {told} FROM visit GROUP BY note", accounting=accounting)
    assert release.counted is not None
    assert str(release.measures[release.counted].share) == shares[-1]
    assert [str(one.share) for one in release.measures] == shares
    whole = Fraction(1, 2) if release.is_zcdp else Fraction(1)
    for one, loss in zip(release.measures, release.losses, strict=True):
        assert abs(loss - one.share * whole) < Fraction(1, 10**9)


def test_of_one_row_each_a_count_of_rows_is_one_of_people() -> None:
    counts = "COUNT(*) FILTER (WHERE age >= 18)"
    release = found(f"SELECT born, {counts} FROM person GROUP BY born")
    assert {one.share for one in release.measures} == {Fraction(1, 2)}


def test_the_analyst_says_the_share() -> None:
    sql = "SELECT note, COUNT(*) FROM visit GROUP BY note"
    usual, small = found(sql), found(sql, found_share=Fraction(1, 10))
    assert [one.share for one in small.measures] == [Fraction(9, 10), Fraction(1, 10)]
    assert usual.tau == found(sql, found_share=Fraction(1, 5)).tau
    assert usual.tau is not None
    assert small.tau is not None
    assert usual.tau < small.tau
    assert found(NOTES, found_share=Fraction(1, 10)).measures[0].share == 1
    again = small.under(Fraction(2), Fraction(1))
    assert again is not None
    assert again.losses == (Fraction(9, 5), Fraction(1, 5))


def test_the_count_of_people_forgets_r(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: sound, since the rank is printed from the same figure, and worse for who declares max_rows."""
    plant(
        monkeypatch,
        planner._bounding,
        ("min(in_all, max_groups_in(rows, release.keys, env))", "max_groups_in(rows, release.keys, env)"),
    )
    with pytest.raises(AssertionError):
        test_each_group_has_its_part(NOTES, False, 1, 1)


def test_what_was_printed_is_of_plans_that_test_alike() -> None:
    """Plans of one release share what was printed of it, but not what tests another number of people, or none."""
    release = found(NOTES)
    wanted = tuple(range(len(release.measurements)))
    asked = release.queries(wanted)
    assert release.queries(wanted) is asked
    others = (replace(release, minimum_units=7), replace(release, counted=None))
    assert all(other._made is release._made for other in others)
    assert all(other.queries(wanted) != asked for other in others)
