"""Which measures answer the aggregates of a release: as few noisy numbers, and as small noise, as will do."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.plan.measures import least_error
from dpsql.plan.measures.formulas import Average, Linear
from dpsql.plan.measures.least_error import TopGroups, among, top_groups
from dpsql.plan.measures.measurements import Bounding, Coord, Measurement
from dpsql.plan.planner import other_measures
from dpsql.plan.privacy.keys import environment_of
from dpsql.relation.catalog import Column, Enforced
from dpsql.relation.expressions import Field
from dpsql.relation.relations import AggregateCall
from dpsql.relation.types import BIGINT, INTEGER
from dpsql.tests.plan.planned import refused, released


def kinds(select: str, source: str = "person") -> list[str]:
    return [measurement.kind for measurement in released(f"SELECT {select} FROM {source}").measurements]


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("COUNT(*)", ["count"]),
        ("SUM(age)", ["sum"]),
        ("AVG(age)", ["pair"]),
        ("SUM(age), AVG(age), COUNT(age)", ["pair"]),
        ("SUM(age + 1)", ["pair"]),  # an offset counts rows too
        ("SUM(2 * age)", ["sum"]),
        ("STDDEV(age)", ["box"]),
        ("COUNT(*), COUNT(*) FILTER (WHERE age > 50)", ["count"]),
        ("SUM(age), SUM(height)", ["sum", "sum"]),
        ("COUNT(DISTINCT id)", ["units"]),
    ],
)
def test_measures(select: str, expected: list[str]) -> None:
    assert kinds(select) == expected


def test_a_count_rides_on_a_pair() -> None:
    """AVG and COUNT(*) of a column that is never NULL: one measurement at the whole epsilon, not two at half."""
    (measurement,) = released("SELECT AVG(days), COUNT(*) FROM visit GROUP BY ward").measurements
    assert (measurement.kind, measurement.null_rows) == ("pair", False)


def test_an_average_is_of_the_middle_and_both_sums() -> None:
    (average,) = released("SELECT AVG(age) FROM person").formulas
    assert isinstance(average, Average)
    above, below = Coord(0, 0, 0), Coord(1, 0, 1)
    assert (average.middle, average.lowest, average.highest) == (50, 0, 100)
    assert average.difference == Linear(((above, Fraction(1, 2)), (below, Fraction(-1, 2))), Fraction(0))
    assert average.count == Linear(((above, Fraction(1, 100)), (below, Fraction(1, 100))), Fraction(0))


def test_a_scaled_average_is_the_same_measure() -> None:
    release = released("SELECT AVG(age), AVG(2 * age + 1) FROM person")
    assert len(release.measurements) == 1
    first, second = release.formulas
    assert isinstance(first, Average)
    assert isinstance(second, Average)
    assert (second.middle, second.lowest, second.highest) == (101, 1, 201)
    assert second.count == first.count


def test_a_value_of_one_content_is_counted() -> None:
    release = released("SELECT SUM(age) FROM person WHERE age = 7")
    (formula,) = release.formulas
    assert [measurement.kind for measurement in release.measurements] == ["count"]
    assert formula == Linear(((Coord(0, 0, 0), Fraction(7)),), Fraction(0))


def test_found_keys_need_a_count_of_people() -> None:
    release = released("SELECT note, SUM(days) FROM visit GROUP BY note")
    assert release.counted is not None
    assert release.measurements[release.counted].kind == "units"
    declared = released("SELECT ward, SUM(days) FROM visit GROUP BY ward")
    assert declared.counted is None


def test_one_row_a_person_is_counted_once() -> None:
    """The row count is the count of people then, and its measurement serves the threshold."""
    release = released("SELECT left(email, 1), COUNT(*) FROM person GROUP BY 1")
    assert [measurement.kind for measurement in release.measurements] == ["count"]
    assert release.counted == 0


def test_bounds_have_to_be_declared() -> None:
    assert refused("SELECT SUM(no) FROM visit") == ("PV101", "no")


def test_counts_alone_are_looked_for_together_and_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no value is summed, all forms of sums come to these two."""
    release = released("SELECT COUNT(*), COUNT(*) FILTER (WHERE age > 50), COUNT(height) FROM person")

    def found() -> set[frozenset[Measurement]]:
        return {frozenset(one.plan().measurements) for one in other_measures(release)}

    forms = found()
    assert [len(one) for one in forms] == [3]
    assert len(release.measurements) == 1
    monkeypatch.setattr(least_error, "_forms", lambda wanted: tuple(least_error._Form))
    assert found() == forms


@pytest.mark.parametrize("asked", ["COUNT(*)", "COUNT(height)", "AVG(age)", "SUM(age)", "COUNT(*), AVG(height)",
                                   "VARIANCE(age), AVG(height), COUNT(*)", "SUM(age), AVG(age)"])  # fmt: skip
def test_forms_that_come_to_earlier_ones_are_left_out(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    release = released(f"SELECT {asked} FROM person")

    def found() -> list[tuple[Measurement, ...]]:
        return [one.plan().measurements for one in other_measures(release)]

    forms = found()
    monkeypatch.setattr(least_error, "_forms", lambda wanted: tuple(least_error._Form))
    assert found() == forms


_ENV = environment_of(
    (
        Column("id", INTEGER, Enforced(not_null=True)),
        Column("km", INTEGER, bounds=(Fraction(0), Fraction(9))),
        Column("gain", INTEGER, bounds=(Fraction(-1), Fraction(9))),
    ),
    (),
)
_COUNT = AggregateCall(BIGINT, "count", (), False, None)
_SUM = AggregateCall(BIGINT, "sum", (Field(INTEGER, 1, "km"),), False, None)
_PEOPLE = AggregateCall(BIGINT, "count", (Field(INTEGER, 0, "id"),), True, None)
_BOUNDS = Bounding(40, 2, 20, False, True, False, True)


def top(
    count: int, call: AggregateCall = _COUNT, bounding: Bounding = _BOUNDS, groups: int = 1000
) -> TopGroups | None:
    return top_groups(call, _ENV, bounding, (frozenset({0}),), count, groups)


@pytest.mark.parametrize(("call", "most", "each"), [(_COUNT, 5, 2), (_SUM, 5, 18), (_PEOPLE, 5, 1)])
def test_it_pays_where_the_noise_is_a_quarter(call: AggregateCall, most: int, each: int) -> None:
    """40 >= 4 · min(40, 2K), and of people 20 >= 4 · min(20, K)."""
    for count in range(1, 12):
        found = top(count, call)
        assert (found is not None) == (count <= most)
        if found is not None:
            assert (found.each, found.sensitivity) == (each, count * each)
            assert replace(found, bounding=replace(_BOUNDS, replace_one=True, together=3)).sensitivity == (
                6 * count * each
            )


def test_there_is_something_to_choose_and_not_too_much() -> None:
    wide = replace(_BOUNDS, in_all=10**6, groups=10**5)
    for count, groups, chooses in (
        (0, 9, False), (3, 3, False), (3, 4, True), (32, 100, True), (33, 100, False),
        (32, 2**13, True), (32, 2**13 + 1, False), (2, 100_000, True), (3, 100_000, False),
    ):  # fmt: skip
        assert (top(count, bounding=wide, groups=groups) is not None) == chooses, (count, groups)


def test_the_bounds_of_a_few_groups() -> None:
    """R is K · M, C is K, and a rank is printed where a person may be in more of them than C."""
    assert among(_BOUNDS, 3) == replace(_BOUNDS, in_all=6, groups=3, ranked=False)
    assert among(_BOUNDS, 30) == replace(_BOUNDS, in_all=40, groups=20, ranked=True)
    assert among(replace(_BOUNDS, ranked=False), 30) == replace(_BOUNDS, in_all=40, groups=20, ranked=False)


def test_other_aggregates_are_no_score() -> None:
    for function in ("avg", "median", "max", "var_pop"):
        assert top(1, replace(_SUM, function=function)) is None
    assert top(1, replace(_SUM, function="count", distinct=True)) is None


def test_a_sum_that_a_unit_can_make_smaller_is_no_score() -> None:
    """The claim is about scores that all move in one direction (house rule 1)."""
    gain = replace(_SUM, args=(Field(INTEGER, 2, "gain"),))
    assert top(1, _SUM) is not None
    assert top(1, gain) is None
