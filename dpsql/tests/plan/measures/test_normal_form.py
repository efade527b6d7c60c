"""Aggregates in normal form: factor times value plus offset, over the rows of a filter."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.errors import Refusal
from dpsql.plan.measures.normal_form import NormalizedAggregate, normal_form, share_counts
from dpsql.plan.privacy.keys import environment_of
from dpsql.relation.expressions import Field
from dpsql.tests.plan.planned import released


def wanted(call: str, source: str = "visit") -> NormalizedAggregate:
    release = released(f"SELECT {call} FROM {source}").release
    env = environment_of(release.rows.columns, release.rows.predicate)
    (found,) = (normal_form(one, env, release.rows.units) for one in release.aggregates)
    return found


@pytest.mark.parametrize(
    ("call", "column", "factor", "offset"),
    [
        ("SUM(days)", "days", 1, 0),
        ("SUM(days * 2 + 3)", "days", 2, 3),
        ("SUM(10 - days)", "days", -1, 10),
        ("SUM(-(days - 4))", "days", -1, 4),
        ("AVG(fee * 0.5)", "fee", Fraction(1, 2), 0),
        ("SUM(3 * (days + 1))", "days", 3, 3),
    ],
)
def test_what_is_linear_is_taken_apart(call: str, column: str, factor: Fraction, offset: Fraction) -> None:
    want = wanted(call)
    assert isinstance(want.value, Field)
    assert (want.value.name, want.factor, want.offset, want.filter) == (column, factor, offset, None)


def test_floats_are_not() -> None:
    """In doubles 2·x + 3 is rounded row by row: it is a value of its own."""
    want = wanted("SUM(height * 2 + 3)", "person")
    assert not isinstance(want.value, Field)
    assert (want.factor, want.offset) == (1, 0)


def test_a_count_of_a_column_is_a_filter_where_it_may_be_null() -> None:
    assert (wanted("COUNT(*)").function, wanted("COUNT(*)").filter) == ("count", None)
    assert wanted("COUNT(days)").filter is None  # NOT NULL by the engine
    nullable = wanted("COUNT(note)").filter
    assert nullable is not None
    assert "is_null" in repr(nullable)
    both = wanted("COUNT(note) FILTER (WHERE urgent)").filter
    assert both is not None
    assert both.function == "and"  # type: ignore[attr-defined]


def test_distinct_people_are_units() -> None:
    assert wanted("COUNT(DISTINCT person_id)").function == "units"
    assert (
        wanted("COUNT(DISTINCT v.person_id)", "visit v JOIN person p ON p.id = v.person_id").function
        == "units"
    )
    assert wanted("COUNT(DISTINCT no)").function == "distinct"


def test_a_chosen_sum_is_a_filtered_one() -> None:
    chosen = wanted("SUM(CASE WHEN urgent THEN days ELSE 0 END)")
    assert (chosen.function, chosen.filter is None) == ("sum", False)
    assert isinstance(chosen.value, Field)
    weighted = wanted("SUM(CASE WHEN urgent THEN 7 END)")
    assert (weighted.function, weighted.value, weighted.factor) == ("count", None, 7)
    assert wanted("SUM(CASE WHEN urgent THEN days ELSE 1 END)").filter is None


def test_a_count_beside_a_sum_of_the_same_rows_is_the_sums() -> None:
    release = released("SELECT COUNT(fee), SUM(fee) FROM visit").release
    env = environment_of(release.rows.columns, release.rows.predicate)
    pair = [normal_form(call, env, release.rows.units) for call in release.aggregates]
    assert [want.function for want in share_counts(pair)] == ["present", "sum"]
    assert [want.function for want in share_counts(pair[:1])] == ["count"]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("MIN(ward)", "PV001"),
        ("BOOL_OR(urgent)", "PV001"),
        ("SUM(DISTINCT days)", "PV001"),
        ("COUNT(DISTINCT height)", "PV001"),
    ],
)
def test_what_has_no_private_answer(call: str, code: str) -> None:
    with pytest.raises(Refusal) as refusal:
        wanted(call, "person" if "height" in call else "visit")
    assert refusal.value.sqlstate == code
    assert refusal.value.hint


def test_a_count_of_pairs_is_not_the_count_of_one_of_them() -> None:
    """REGR_COUNT is of rows where both are there; COUNT(x) beside SUM(x) is the count that the sum carries."""
    release = released("SELECT REGR_COUNT(fee, NULLIF(days, 3)), COUNT(fee), SUM(fee) FROM visit").release
    env = environment_of(release.rows.columns, release.rows.predicate)
    wants = [normal_form(call, env, release.rows.units) for call in release.aggregates]
    pairs, alone, _ = share_counts(wants)
    assert (pairs.function, pairs.filter) == ("count", wants[0].filter)
    assert alone.function == "present"
