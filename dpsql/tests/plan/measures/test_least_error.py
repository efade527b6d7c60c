"""Which measures answer the aggregates of a release: as few noisy numbers, and as small noise, as will do."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.plan.measures import least_error
from dpsql.plan.measures.formulas import Average, Linear
from dpsql.plan.measures.measurements import Coord, Measurement
from dpsql.plan.planner import other_measures
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
        return {frozenset(one.measurements) for one in other_measures(release)}

    forms = found()
    assert [len(one) for one in forms] == [3]
    assert len(release.measurements) == 1
    monkeypatch.setattr(least_error, "_forms", lambda wanted: tuple(least_error._Form))
    assert found() == forms
