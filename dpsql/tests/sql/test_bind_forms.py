"""What tools write in another way: each spelling is the same query as the plain one, or refused by name."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dpsql.relation.types import INTEGER, TEXT, array_of
from dpsql.sql.literals import Awaited

from .campus import refused, relation


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("major = ANY (ARRAY['CS', 'EE'])", "major IN ('CS', 'EE')"),
        ("major = ANY ('{CS,EE}')", "major IN ('CS', 'EE')"),
        ("major = ANY ('{CS, EE}'::text[])", "major IN ('CS', 'EE')"),
        ('major = ANY (\'{"C,S","E\\"E"}\')', "major IN ('C,S', 'E\"E')"),
        ("major = ANY ('{CS,NULL}')", "major IN ('CS', NULL)"),
        ("major = ANY ('{\"NULL\"}')", "major IN ('NULL')"),
        ("enrolled = ANY ('{2020,2021}'::int[])", "enrolled IN (2020, 2021)"),
        ("enrolled <> ALL ('{2020,2021}')", "enrolled NOT IN (2020, 2021)"),
        ("major <> ALL (ARRAY['CS'])", "NOT (major = 'CS')"),
        ("major = ANY ('{}')", "FALSE"),
        ("major ILIKE 'C%'", "lower(major) LIKE 'c%'"),
        ("major ~~* 'C_'", "lower(major) LIKE 'c_'"),
        ("major NOT ILIKE 'C!%' ESCAPE '!'", "NOT (lower(major) LIKE 'c!%' ESCAPE '!')"),
        ("major LIKE '%' || 'S'", "major LIKE '%S'"),
        ("upper(major) LIKE upper('%s%')", "upper(major) LIKE '%S%'"),
        ("born >= to_date('2003-05-01', 'YYYY-MM-DD')", "born >= DATE '2003-05-01'"),
        ("born >= to_date('31.12.1999', 'DD.MM.YYYY')", "born >= DATE '1999-12-31'"),
        ("born < make_date(2003, 5, 1)", "born < DATE '2003-05-01'"),
        (
            "seen < to_timestamp('2024-01-01 10:20:30.000004', 'YYYY-MM-DD HH24:MI:SS.US')",
            "seen < TIMESTAMP '2024-01-01 10:20:30.000004'",
        ),
        ("seen < TIMESTAMPTZ '2024-01-01 00:00:00+02'", "seen < TIMESTAMP '2023-12-31 22:00:00'"),
        ("seen < '2024-01-01 00:00:00-05:30'::timestamptz", "seen < TIMESTAMP '2024-01-01 05:30:00'"),
        ("seen AT TIME ZONE 'UTC' < TIMESTAMP '2024-01-01'", "seen < TIMESTAMP '2024-01-01'"),
        ("date_part('year', born) = 2000", "extract(year FROM born) = 2000"),
        ("starts_with(major, 'C')", "position('C' IN major) = 1"),
        ("lpad(enrolled::text, 5, '0') = '02020'", "right('00000' || left(enrolled::text, 5), 5) = '02020'"),
        ("lpad(major, 3) = ' CS'", "right('   ' || left(major, 3), 3) = ' CS'"),
        ("rpad(major, 3, '.') = 'CS.'", "left(left(major, 3) || '...', 3) = 'CS.'"),
        ("lpad(major, 0, '0') = ''", "right('' || left(major, 0), 0) = ''"),
        (
            "concat_ws(', ', major, enrolled, born) = 'x'",
            "substring(concat(', ' || major, ', ' || enrolled, ', ' || born) FROM 3) = 'x'",
        ),
    ],
)
def test_a_condition_is_the_plain_one(written: str, plain: str) -> None:
    query = "SELECT COUNT(*) FROM student WHERE "
    assert relation(query + written) == relation(query + plain)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("SELECT COUNT(*) FROM student FETCH FIRST 3 ROWS ONLY", "SELECT COUNT(*) FROM student LIMIT 3"),
        ("SELECT COUNT(*) FROM student FETCH FIRST ROW ONLY", "SELECT COUNT(*) FROM student LIMIT 1"),
        (
            "SELECT COUNT(*) FROM student OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
            "SELECT COUNT(*) FROM student LIMIT 2 OFFSET 1",
        ),
        ("SELECT COUNT(*) FROM student LIMIT ALL", "SELECT COUNT(*) FROM student"),
        ("TABLE course", "SELECT * FROM course"),
        ("SELECT COUNT(*) FROM campus.main.student", "SELECT COUNT(*) FROM student"),
        ('SELECT COUNT(*) FROM "campus"."public"."student"', "SELECT COUNT(*) FROM student"),
    ],
)
def test_a_query_is_the_plain_one(written: str, plain: str) -> None:
    assert relation(written) == relation(plain)


@pytest.mark.parametrize("given", [["CS", "EE"], ("CS", "EE"), "{CS,EE}"])
def test_a_list_is_one_parameter(given: object) -> None:
    query = "SELECT COUNT(*) FROM student WHERE major "
    assert relation(query + "= ANY ($1)", given) == relation(query + "IN ('CS', 'EE')")
    assert relation(query + "<> ALL ($1)", given) == relation(query + "NOT IN ('CS', 'EE')")


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("enrolled > ALL (ARRAY[2020, 2021])", "enrolled > 2020 AND enrolled > 2021"),
        ("enrolled <= ANY ('{2020,2021}')", "enrolled <= 2020 OR enrolled <= 2021"),
        ("major = ALL (ARRAY['CS', 'EE'])", "major = 'CS' AND major = 'EE'"),
        ("major <> ANY ('{CS,EE}')", "major <> 'CS' OR major <> 'EE'"),
        ("enrolled = ANY (ARRAY[2020, id])", "enrolled = 2020 OR enrolled = id"),
        ("enrolled IN (id, 2020)", "enrolled = 2020 OR enrolled = id"),
        ("enrolled < ALL ('{}')", "TRUE"),
        ("enrolled < ANY ('{}')", "FALSE"),
        ("major LIKE ANY (ARRAY['C%', 'E%'])", "major LIKE 'C%' OR major LIKE 'E%'"),
        ("major NOT LIKE ALL ('{C%,E%}')", "major NOT LIKE 'C%' AND major NOT LIKE 'E%'"),
        ("major NOT LIKE ANY ('{C%,E%}')", "major NOT LIKE 'C%' OR major NOT LIKE 'E%'"),
        ("major ILIKE ANY ('{C%,E%}')", "major ILIKE 'C%' OR major ILIKE 'E%'"),
        ("major::varchar(2) = 'CS'", "left(major, 2) = 'CS'"),
    ],
)
def test_what_a_list_is_compared_with_is_each_of_it(written: str, plain: str) -> None:
    query = "SELECT COUNT(*) FROM student WHERE "
    assert relation(query + written) == relation(query + plain)


def test_a_list_of_numbers_is_of_the_columns_type() -> None:
    query = "SELECT COUNT(*) FROM student WHERE "
    assert relation(query + "fee = ANY ($1)", [Decimal("1.50"), 2]) == relation(query + "fee IN (1.50, 2)")


def test_a_list_that_is_still_to_come_has_the_type_of_what_it_is_compared_with() -> None:
    whole, text = Awaited(), Awaited()
    relation("SELECT COUNT(*) FROM student WHERE enrolled = ANY ($1) AND major <> ALL ($2)", whole, text)
    assert (whole.type, text.type) == (array_of(INTEGER), array_of(TEXT))


@pytest.mark.parametrize(
    ("written", "sqlstate"),
    [
        ("major = ANY (SELECT major FROM course)", "0A000"),
        ("major = ANY (major)", "PV202"),
        ("major LIKE ANY (string_to_array(major, ','))", "PV202"),
        ("enrolled > ALL (string_to_array(major, ',')::int[])", "PV202"),
        ("major = ANY ('CS')", "PV202"),
        ("major = ANY ('{CS')", "PV202"),
        ("major = ANY ('{CS,}')", "PV202"),
        ("major = ANY ('{{CS},{EE}}')", "PV202"),
        ("major = ANY ('{\"CS}')", "PV202"),
        ("enrolled = ANY ('{1,x}')", "22023"),
        ("major ILIKE major", "PV202"),
        ("major ILIKE 'ä%'", "PV202"),
        ("seen < to_timestamp('2024', 'YYYY \"of\"')", "22023"),
        ("born < to_date('2024-02-30', 'YYYY-MM-DD')", "22023"),
        ("born < to_date('01', 'DD')", "22023"),
        ("born < make_date(2024, 2, 30)", "22023"),
        (
            "date_trunc('hour', seen) + INTERVAL '5 minutes' * floor(extract(minute FROM seen) / 10) < now()",
            "42883",
        ),
        (
            "date_trunc('hour', seen) + INTERVAL '7 minutes' * floor(extract(minute FROM seen) / 7) < now()",
            "42883",
        ),
        (
            "date_trunc('day', seen) + INTERVAL '5 minutes' * floor(extract(minute FROM seen) / 5) < now()",
            "42883",
        ),
        ("date_trunc('second', seen) < now()", "PV202"),
        ("coalesce(seen, seen) AT TIME ZONE 'Europe/Berlin' < now()", "42804"),
    ],
)
def test_what_is_not_read_is_refused_by_name(written: str, sqlstate: str) -> None:
    assert refused(f"SELECT COUNT(*) FROM student WHERE {written}")[0] == sqlstate


def test_a_list_has_a_most_items() -> None:
    query = "SELECT COUNT(*) FROM student WHERE enrolled = ANY ($1)"
    relation(query, list(range(1000)))
    assert refused(query, list(range(1001)))[0] == "54001"


def test_a_misspelt_first_word_is_a_syntax_error() -> None:
    assert refused("SELEC 1")[0] == "42601"
    assert refused("GRANT SELECT ON student TO bob")[0] == "0A000"


def test_json_before_what_is_no_text_is_refused() -> None:
    assert refused("SELECT json 10.5") == ("42883", "10.5")
    assert refused("SELECT parse_json(NULL)") == ("42883", "parse_json(NULL)")
