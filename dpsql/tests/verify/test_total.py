"""No row makes a query fail: what each operator needs of its arguments."""

from __future__ import annotations

import pytest

from dpsql.plan.backend_sql.private_forms import DATES, MOMENTS
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
        "split_part(city, ',', 2) = 'a'",
        "regexp_matches(city, '^[a-z]+$') OR regexp_replace(city, 'a', 'b', 'g') = 'b'",
        "json_extract_string(CASE WHEN json_valid(city) THEN city END, '$.\"a\".\"b\"') = 'b'",
        "json_extract(CASE WHEN json_valid(city) THEN city END, '$.\"a\"') IS NULL",
        "CAST(NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,18}) *$', 1), '') AS BIGINT) > 3",
        "CAST(NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,9}([.][0-9]{1,9})?) *$', 1), '') AS DOUBLE) > 3",
        "CASE WHEN regexp_matches(city, 'a(.)') THEN regexp_extract(city, 'a(.)', 1) END = 'b'",
        f"CAST(NULLIF(regexp_extract(city, '{DATES}', 1), '') AS DATE) > DATE '2024-01-31'",
        f"CAST(NULLIF(regexp_extract(city, '{MOMENTS}', 1), '') AS TIMESTAMP) > TIMESTAMP '2024-01-31 00:00:00'",
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
        ("split_part(city, ',', 0) = 'a'", "total: a part has a place from 1"),
        ("split_part(city, '', 1) = 'a'", "total: a part has a place from 1"),
        ("split_part(city, ',', age) = 'a'", "total: what a text is taken apart by is constant"),
        ("regexp_matches('a', city)", "total: what a text is taken apart by is constant"),
        ("regexp_replace(city, city, 'b') = 'b'", "total: what a text is taken apart by is constant"),
        ("json_extract_string(city, '$.\"a\"') = 'b'", "total: a member is of JSON"),
        ("json_extract(city, '$.\"a\"') IS NULL", "total: a member is of JSON"),
        # '' is no number; digits that fit; one group, the first; nothing but digits; anchored; the type of these
        *(
            (f"CAST({text} AS {kind}) > 3", "total: a text that is read as a number is passed")
            for text, kind in (
                ("regexp_extract(city, '^ *([-+]?[0-9]{1,18}) *$', 1)", "BIGINT"),
                ("NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,18}) *$', 1), 'x')", "BIGINT"),
                ("NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,19}) *$', 1), '')", "BIGINT"),
                ("NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,18}) *$', 0), '')", "BIGINT"),
                ("NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,18}) *$'), '')", "BIGINT"),
                ("NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,18}) *', 1), '')", "BIGINT"),
                ("NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{0,18}) *$', 1), '')", "BIGINT"),
                ("NULLIF(regexp_extract(city, '^ *([-+]?.{1,18}) *$', 1), '')", "BIGINT"),
                ("NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,18}) *$', 1), '')", "INTEGER"),
                ("NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,9}([.][0-9]{1,9})?) *$', 1), '')", "BIGINT"),
                (
                    "NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,400}([.][0-9]{1,9})?) *$', 1), '')",
                    "DOUBLE",
                ),
                ("NULLIF(regexp_extract(city, '^ *([-+]?[0-9]{1,18}) *$', 1), '')", "DOUBLE"),
                # days that there are, alone; and a time of day for a moment alone
                ("city", "DATE"),
                (f"regexp_extract(city, '{DATES}', 1)", "DATE"),
                (f"NULLIF(regexp_extract(city, '{DATES.replace('|30)', '|3[01])')}', 1), '')", "DATE"),
                (f"NULLIF(regexp_extract(city, '{DATES.replace('2[0-8]', '2[0-9]')}', 1), '')", "DATE"),
                (f"NULLIF(regexp_extract(city, '{MOMENTS}', 1), '')", "DATE"),
                (f"NULLIF(regexp_extract(city, '{MOMENTS[1:]}', 1), '')", "TIMESTAMP"),
            )
        ),
        (
            "json_extract_string(CASE WHEN json_valid('{}') THEN city END, '$.\"a\"') = 'b'",
            "total: a member is of JSON",
        ),
        (
            "json_extract_string(CASE WHEN json_valid(city) THEN city ELSE city END, '$.\"a\"') = 'b'",
            "total: a member is of JSON",
        ),
        (
            "json_extract_string(CASE WHEN json_valid(city) THEN city END, '$.\"a\"[0]') = 'b'",
            "read: an expression of a listed kind",
        ),
    ],
)
def test_what_does_not_fit_is_refused(condition: str, rule: str) -> None:
    assert refused(COUNT + condition, 1) == rule


@pytest.mark.parametrize(
    ("total", "rule"),
    [
        ("1024 * COUNT(*)", ""),
        ("8388608 * COUNT(*)", FITS),
        ("CAST(8388608 * CAST(COUNT(*) AS HUGEINT) AS HUGEINT)", ""),
        (f"CAST(COALESCE(SUM({CLAMP}), 0) AS BIGINT)", ""),
        (f"70000 * CAST(COALESCE(SUM({CLAMP}), 0) AS BIGINT)", FITS),
        (f"70000 * CAST(CAST(COALESCE(SUM({CLAMP}), 0) AS BIGINT) AS HUGEINT)", ""),
        (f"CAST(COALESCE(SUM(CAST(({CLAMP}) AS BIGINT) * 70000), 0) AS BIGINT)", FITS),
        (f"CAST(COALESCE(SUM({CLAMP}), 0) AS INTEGER)", FITS),
        ("CAST(COUNT(*) AS DECIMAL(12, 0))", FITS),
    ],
)
def test_a_total_of_as_many_rows_as_there_can_be_fits(total: str, rule: str) -> None:
    """2^40 rows; a side of a product fits 64 bits where the product does not."""
    sql = f"SELECT {total} AS m0_0 FROM main.patient"
    assert check(sql, 2**40).moved > 0 if not rule else refused(sql, 2**40) == rule


def test_totals_of_groups_share_their_rows() -> None:
    """What is added up over an owner's groups is no more than all rows bring; a running sum is of other rows too."""
    by_owner = (
        "SELECT COALESCE(SUM(c * 70000), 0) AS m0_0 FROM (SELECT patient AS u, {} AS c FROM (SELECT patient, cost FROM "
        "main.visit) AS v GROUP BY patient) AS g"
    )
    assert "rows are bounded" not in refused(by_owner.format("COUNT(*) * 300"), 1)
    assert refused(by_owner.format("COUNT(*) * 30000"), 1) == FITS


@pytest.mark.parametrize(
    ("condition", "rule"),
    [
        ("CAST(weight AS INTEGER) > 3", ""),
        ("CAST(weight * 10000000 AS INTEGER) > 3", FITS),
        ("weight * weight > 3", ""),
        ("CAST(age AS DECIMAL(12, 2)) > 3", ""),
        ("CAST(age AS DECIMAL(5, 2)) > 3", FITS),
        ("CAST(age AS DOUBLE) * 1e300 < 3", FITS),
        ("CAST(age AS DOUBLE) * 1e3 < 3", ""),
        ("bmi * 2 < 3", FITS),
        ("CAST(city AS INTEGER) > 3", "total: a text that is read as a number is passed"),
        ("CAST(left(city, 1) AS BOOLEAN)", "total: a text that is read as a number is passed"),
        ("city > 3", "total: a text that is read as a number is passed"),
        ("age IN (1, city)", "total: a text that is read as a number is passed"),
        ("city > '3'", ""),
        ("CAST($1 AS INTEGER) > age", ""),
        (
            "CAST('0x' || left(md5(city), 4) AS INTEGER) > age",
            "total: a text that is read as a number is passed",
        ),
        ("CAST('0x' || substring(md5(city), 1, 4) AS INTEGER) > age", ""),
        ("ln(CAST(age AS DOUBLE)) > 3", "total: a function has a value"),
        (f"ln(CAST({CLAMP} AS DOUBLE)) > 3", "total: a function has a value"),
        (f"ln(CAST({CLAMP} + 1 AS DOUBLE)) > 3", ""),
        (f"sqrt(CAST({CLAMP} AS DOUBLE)) > 3", ""),
        ("sqrt(CAST(age AS DOUBLE)) > 3", "total: a function has a value"),
        (f"exp(CAST({CLAMP} AS DOUBLE)) > 3", ""),
        ("exp(CAST(age AS DOUBLE)) > 3", "total: a function has a value"),
    ],
)
def test_what_a_cast_and_a_function_ask_of_a_number(condition: str, rule: str) -> None:
    asked = {"parameters": ("released",)} if "$1" in condition else {}
    if rule:
        assert refused(COUNT + condition, 1, **asked) == rule
    else:
        assert check(COUNT + condition, 1, **asked).moved == 1


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


RANGED = "SELECT COUNT(*) AS m0_0 FROM (SELECT id AS u, {} AS n FROM main.patient) AS s WHERE n > 1"


def test_a_place_of_a_value_is_from_one() -> None:
    for call in ("NTILE({})", "NTH_VALUE(age, {})"):
        over = RANGED.format(f"{call} OVER (PARTITION BY id)")
        assert check(over.format(2), 1).moved == 1
        assert "a part has a place from 1" in refused(over.format(0), 1)
        assert "a part has a place from 1" in refused(over.format("age"), 1)


@pytest.mark.parametrize(
    ("order", "frame", "rule"),
    [
        ("CAST(age AS BIGINT)", "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW", ""),
        ("age", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", ""),
        ("age", "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW", FITS),
        ("CAST(age AS BIGINT)", "RANGE BETWEEN CURRENT ROW AND 9223372036854775807 FOLLOWING", FITS),
        ("bmi", "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW", "total: a frame by value is of whole numbers"),
        ("bmi", "RANGE BETWEEN 2.5 PRECEDING AND CURRENT ROW", "total: a frame by value is of whole numbers"),
        (
            "CAST(age AS BIGINT)",
            "RANGE BETWEEN 2.5 PRECEDING AND 1 FOLLOWING",
            "total: a frame by value is of whole numbers",
        ),
    ],
)
def test_a_distance_in_a_frame_fits(order: str, frame: str, rule: str) -> None:
    sql = RANGED.format(f"COUNT(*) OVER (PARTITION BY id ORDER BY {order} {frame})")
    if rule:
        assert rule in refused(sql, 1)
    else:
        assert check(sql, 1).moved == 1


def test_a_quotient_by_what_is_null_in_place_of_0_is_no_larger_than_what_is_divided_by_the_nearest() -> None:
    of = f"SELECT COUNT(*) AS m0_0 FROM main.patient WHERE (CAST(({CLAMP}) AS DOUBLE) / NULLIF({{}}, 0)) * 1e3 > 1"
    flushed = "CASE WHEN bmi BETWEEN -1e-150 AND 1e-150 THEN 0e0 ELSE bmi END"
    for divisor in ("CAST(id AS DOUBLE)", "CAST(weight AS DOUBLE)", flushed):
        assert check(of.format(divisor), 1).moved == 1
    for divisor in (
        "bmi", flushed.replace("WHEN bmi", "WHEN CAST(id AS DOUBLE)"), flushed.replace("0e0", "1e0"),
        flushed.replace("-1e-150", "1e-160"), flushed.replace("bmi BETWEEN -1e-150 AND", "bmi >"),
    ):  # fmt: skip
        assert refused(of.format(divisor), 1).startswith("total: "), divisor
    assert refused(of.replace("NULLIF({}, 0)", "NULLIF({}, 1)").format("CAST(id AS DOUBLE)"), 1).startswith(
        "total: "
    )


def test_the_size_of_a_total_is_no_larger_than_it() -> None:
    counted = "(SELECT id, COUNT(*) OVER (PARTITION BY id) AS n FROM main.patient) AS p"
    assert check(f"SELECT COUNT(*) AS m0_0 FROM {counted} WHERE (abs(n) + 1) > 2", 1).moved == 1
    assert refused(f"SELECT COUNT(*) AS m0_0 FROM {counted} WHERE (abs(n) * abs(n) * abs(n)) > 2", 1) == FITS
