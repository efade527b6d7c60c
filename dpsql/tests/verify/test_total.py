"""No row makes a query fail: what each operator needs of its arguments."""

from __future__ import annotations

import pytest

from dpsql.tests.verify.clinic import check
from dpsql.tests.verify.test_lemmas import CLAMP, refused

COUNT = "SELECT COUNT(*) AS m0_0 FROM main.patient WHERE "
FITS = "total: a result fits its type"
BMI = "CASE WHEN bmi BETWEEN 0 AND 90 THEN bmi WHEN bmi < 0 THEN 0 WHEN bmi > 90 THEN 90 END"


@pytest.mark.parametrize(
    "condition",
    [
        "CAST(age AS BIGINT) * 7 > 3",
        "CAST(age AS BIGINT) + CAST(id AS BIGINT) > 3",
        "100 // NULLIF(age, 0) > 3",
        "100 % 7 > 3",
        f"({CLAMP}) * ({CLAMP}) > 3",
        f"CAST(({BMI}) * 10 AS BIGINT) > 3",
        "CAST(length(left(city, 1000)) AS BIGINT) * 1000 > 3",
        "CAST(length(CASE WHEN strlen(city) <= 9 THEN city ELSE left(city, 9) END) AS BIGINT) * 1000 > 3",
        f"(CAST(({CLAMP}) AS BIGINT) // NULLIF(CAST(id AS BIGINT), 0)) * 7 > 3",
        f"(CAST(id AS BIGINT) % NULLIF(CAST(({CLAMP}) AS BIGINT), 0)) * 7 > 3",
    ],
)
def test_what_fits_is_total(condition: str) -> None:
    assert check(COUNT + condition, 1).moved == 1


@pytest.mark.parametrize(
    ("condition", "rule"),
    [
        ("age * 7 > 3", FITS),
        ("age + id > 3", FITS),
        ("CAST(age AS BIGINT) * CAST(age AS BIGINT) * 7 > 3", FITS),
        ("100 // age > 3", "total: a divisor is not 0"),
        ("100 % age > 3", "total: a divisor is not 0"),
        (f"100 // ({CLAMP}) > 3", "total: a divisor is not 0"),
        ("CAST(bmi AS BIGINT) > 3", FITS),
        (f"CAST(({BMI}) * 1e300 AS BIGINT) > 3", FITS),
        ("CAST(length(left(city, -1)) AS BIGINT) * 9000000000000000000 > 3", FITS),
        ("CAST(length(city) AS BIGINT) * 9000000000000000000 > 3", FITS),
        (
            "CAST(length(CASE WHEN strlen(city) <= 9 THEN city ELSE city END) AS BIGINT) * 90000000000 > 3",
            FITS,
        ),
        (
            "CAST(length(CASE WHEN strlen('a') <= 9 THEN city ELSE left(city, 9) END) AS BIGINT) * 90000000000 > 3",
            FITS,
        ),
    ],
)
def test_what_does_not_fit_is_refused(condition: str, rule: str) -> None:
    assert refused(COUNT + condition, 1) == rule


def test_a_row_that_is_not_asked_can_fail_too() -> None:
    """Below a release, in a subquery, and under a CASE that seems to guard it."""
    assert (
        refused(COUNT + "CASE WHEN age <> 0 THEN 100 // age ELSE 0 END > 3", 1) == "total: a divisor is not 0"
    )
    inner = "EXISTS (SELECT 1 FROM main.visit AS v WHERE v.patient = patient.id AND 100 // v.cost > 3)"
    assert refused(COUNT + inner, 1) == "total: a divisor is not 0"
    person = "SELECT COUNT(*) AS m0_0 FROM (SELECT patient AS u, MAX(100 // cost) AS m FROM main.visit GROUP BY patient) AS p"
    assert refused(person, 1) == "total: a divisor is not 0"


def test_a_text_of_a_derived_relation_is_as_long_as_there() -> None:
    person = (
        "SELECT COUNT(*) AS m0_0 FROM (SELECT id, left(city, 9) AS c FROM main.patient GROUP BY id, left(city, 9)) AS s "
        "WHERE CAST(length(c) AS BIGINT) * 9000000000000000 > 3"
    )
    assert check(person, 1).moved == 1
    assert refused(person.replace("left(city, 9)", "city"), 1) == FITS
