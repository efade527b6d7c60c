"""Literals, parameters, casts, constant folding, comparisons in one form, and operator precedence.

Constant intervals are what Postgres reads, adds and multiplies; what it refuses is refused.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import psycopg
import pytest

from dpsql.errors import Refusal
from dpsql.relation.calendar import DAY
from dpsql.relation.expressions import Call, Literal, Months
from dpsql.relation.types import Kind

from ..support.postgres_server import PostgresServer
from .campus import NOW, expression, refused, relation, types, where


def value(text: str, *parameters: object) -> object:
    """Return the value of a constant expression."""
    found = expression(text, *parameters, source="")
    assert isinstance(found, Literal), found
    return found.value


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1", "integer"),
        ("2147483647", "integer"),
        ("2147483648", "bigint"),
        ("-2147483648", "bigint"),
        ("9223372036854775807", "bigint"),
        ("9223372036854775808", "numeric(38,0)"),
        ("1.50", "numeric(38,2)"),
        (".5", "numeric(38,1)"),
        ("5.", "numeric(38,0)"),
        ("1e3", "numeric(38,0)"),
        ("1e-3", "numeric(38,3)"),
        ("'a'", "text"),
        ("NULL", "unknown"),
        ("TRUE", "boolean"),
        ("DATE '2020-01-01'", "date"),
        ("TIMESTAMP '2020-01-01'", "timestamp"),
        ("INTERVAL '1 day'", "interval"),
        ("$$a$$", "text"),
        ("1::real", "real"),
    ],
)
def test_a_literal_has_postgres_type(text: str, type_: str) -> None:
    assert types(f"SELECT {text}") == [type_]


@pytest.mark.parametrize(
    ("parameter", "type_", "expected"),
    [
        (None, "unknown", None),
        (True, "boolean", True),
        (5, "integer", 5),
        (2**31, "bigint", 2**31),
        (-(2**63), "numeric(38,0)", -(2**63)),
        (Decimal("1.50"), "numeric(38,2)", Fraction(3, 2)),
        (0.1, "double precision", Fraction(0.1)),
        ("a", "text", "a"),
        (datetime.date(1970, 1, 2), "date", 1),
        (datetime.datetime(1970, 1, 2, microsecond=3), "timestamp", DAY + 3),
        (Decimal("1E+5"), "numeric(38,0)", 10**5),
    ],
)
def test_a_parameter_of_each_kind(parameter: object, type_: str, expected: object) -> None:
    assert value("$1", parameter) == expected
    assert types("SELECT $1", parameter) == [type_]


@pytest.mark.parametrize(
    "parameter",
    [
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("Infinity"),
        b"a",
        "a\x00",
        [1],
        object(),
        datetime.time(1, tzinfo=datetime.UTC),
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        Decimal("1e99"),
        1j,
    ],
)
def test_a_parameter_of_no_sql_type_is_refused(parameter: object) -> None:
    assert refused("SELECT $1", parameter)[0] == "22023"


@pytest.mark.parametrize("text", ["$2", "$0", "$99999"])
def test_a_parameter_that_was_not_given(text: str) -> None:
    assert refused(f"SELECT {text}", 1)[0] == "42P02"


def test_a_text_parameter_takes_the_type_of_its_place() -> None:
    assert where("born > $1", "2000-01-01") == where("born > DATE '2000-01-01'")
    assert where("enrolled = $1", "5") == where("enrolled = 5")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("born > '2000-01-01'", "born > DATE '2000-01-01'"),
        ("seen > '2000-01-01'", "seen > TIMESTAMP '2000-01-01 00:00'"),
        ("enrolled = '5'", "enrolled = 5"),
        ("active = 'yes'", "active = TRUE"),
        ("fee IN ('1', 2)", "fee IN (1, 2)"),
        ("5 < enrolled", "enrolled > 5"),
        ("enrolled > 1.5", "enrolled >= 2"),
        ("enrolled < 1.5", "enrolled <= 1"),
        ("enrolled <= -1.5", "enrolled <= -2"),
        ("enrolled >= 5.0", "enrolled >= 5"),
        ("fee > 1.005", "fee >= 1.01"),
        ("enrolled = 1.5", "enrolled <> enrolled"),
        ("enrolled <> 1.5", "enrolled = enrolled"),
        ("enrolled > 3000000000", "enrolled <> enrolled"),
        ("enrolled < 3000000000", "enrolled = enrolled"),
        ("fee >= 100000000", "fee <> fee"),
        ("enrolled IN (1, 1.5, 1.0, 2)", "enrolled IN (2, 1)"),
        ("enrolled IN (5)", "enrolled = 5"),
        ("enrolled IN (1.5)", "enrolled <> enrolled"),
        ("born >= TIMESTAMP '2000-01-01 12:00'", "born >= '2000-01-02'"),
        ("born < TIMESTAMP '2000-01-01 12:00'", "born <= '2000-01-01'"),
        ("born = TIMESTAMP '2000-01-01'", "born = '2000-01-01'"),
        ("born < seen", "born::timestamp < seen"),
        ("born < DATE '2000-01-31' + INTERVAL '1 month'", "born < '2000-02-29'"),
        ("gpa = 0.1", "gpa = 0.10000000000000000555"),
        ("fee = 0.1::float8", "fee = 0.1"),
        ("enrolled BETWEEN 1 AND 5", "enrolled >= 1 AND 5 >= enrolled"),
        ("NOT enrolled = 1 AND active", "(NOT (enrolled = 1)) AND active"),
        ("active AND enrolled = 1", "enrolled = 1 AND active AND active"),
        ("NOT enrolled IS NULL", "enrolled IS NOT NULL"),
        ("active OR active", "active"),
        (
            "enrolled BETWEEN SYMMETRIC 5 AND 1",
            "(enrolled >= 5 AND enrolled <= 1) OR (enrolled >= 1 AND enrolled <= 5)",
        ),
        ("enrolled IS DISTINCT FROM 1", "NOT (enrolled IS NOT DISTINCT FROM 1)"),
        ("born + 1 > '2000-01-01'", "1 + born > '2000-01-01'"),
        ("name || 'a' = 'b'", "(name || 'a') = 'b'"),
        ("1 = enrolled % 2 + 1", "((enrolled % 2) + 1) = 1"),
    ],
)
def test_two_spellings_of_one_predicate(text: str, same: str) -> None:
    assert where(text) == where(same)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2^2", None),
        ("2 - 3 - 4", -5),
        ("2 * 3 % 4", 2),
        ("7 / 2 * 2", 6),
        ("-7 / 2", -3),
        ("(-7) % 2", -1),
        ("7 % (-2)", 1),
        ("5 - -3", 8),
        ("1.5 * 2", 3),
        ("1 + 0.25", Fraction(5, 4)),
        ("DATE '2024-01-31' + INTERVAL '1 month'", 19782 * DAY),
        ("DATE '1970-01-01' + 5", 5),
        ("5 + DATE '1970-01-01'", 5),
        ("DATE '1970-01-05' - DATE '1970-01-01'", 4),
        ("TIMESTAMP '2024-03-31' - INTERVAL '1 month'", 19782 * DAY),
        ("DATE '1970-01-01' - '1970-01-03'", -2),
        ("TIMESTAMP '1970-01-01' + '1 day'", DAY),
        ("1 < 2", True),
        ("1 IN (2, 1.0)", True),
        ("1 IN (2)", False),
        ("DATE '1970-01-01' = TIMESTAMP '1970-01-01'", True),
        ("'5'::int", 5),
        ("' TRUE '::boolean", True),
        ("'of'::boolean", False),
        ("2.5::int", 3),
        ("(-2.5)::int", -3),
        ("2.5::float8::int", 2),
        ("2.55::numeric(3,1)", Fraction(13, 5)),
        ("0.1::float8", Fraction(0.1)),
        ("5::text", "5"),
        ("TRUE::text", "true"),
        ("(DATE '2020-01-01')::text", "2020-01-01"),
        ("TRUE::int", 1),
        ("NULL::date", None),
        ("'1 day'::interval", Months(0, 1, 0)),
        ("INTERVAL '1 year 2 days'", Months(12, 2, 0)),
        ("INTERVAL '90' minute", Months(0, 0, 90 * 60 * 10**6)),
        ("0.1::real::float8", Fraction(0.10000000149011612)),
        ("(TIMESTAMP '1970-01-02 05:00')::date", 1),
        ("current_date", NOW // DAY),
        ("now()", NOW // (DAY // 1440) * (DAY // 1440)),
    ],
)
def test_constants_are_folded(text: str, expected: object) -> None:
    if expected is None and "NULL" not in text:
        assert isinstance(expression(text, source=""), Call)
    else:
        assert value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "2147483647 + 1",
        "9223372036854775807 + 1",
        "-2147483647 - 2",
        "99999::smallint",
        "3e9::int",
        "1e39::real",
        "100::numeric(2,0)",
        "'x'::int",
        "'1.5'::int",
        "'o'::boolean",
        "'2023-02-29'::date",
        "DATE '2020-01-01' + 100000000",
        "TIMESTAMP '9999-12-31' + INTERVAL '1 year'",
        "INTERVAL '1 fortnight'",
        "INTERVAL ''",
        "'NaN'::float8",
        "1 = '1.5'",
        "DATE 'today'",
        "1e70",
        "DATE '2020-01-01' + '1 day'",
        "substring('a', 1, -1)",
    ],
)
def test_a_constant_that_postgres_or_the_type_refuses(text: str) -> None:
    code, at = refused(f"SELECT {text}")
    assert code == "22023"
    assert at is not None or "INTERVAL" in text  # the parser keeps no place of an interval


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("'a' + 1", "22023"),
        ("name = 5", "42883"),
        ("active = 1", "42883"),
        ("1 || 2", "42883"),
        ("born + born", "42883"),
        ("nothing(1)", "42883"),
        ("round(gpa, 2)", "42883"),
        ("1::date", "42804"),
        ("born::int", "42804"),
        ("NOT 5", "42883"),
        ("5 AND active", "42804"),
        ("CASE WHEN 1 THEN 2 END", "42804"),
        ("CASE WHEN active THEN 1 ELSE 'x' END", "22023"),
        ("gpa IS TRUE", "42883"),
        ("1::uuid", "0A000"),
        ("1::numeric(1001,0)", "22023"),
        ("1::char(5)", "0A000"),
        ("1::varchar(0)", "22023"),
        ("name LIKE name", "PV202"),
        ("name LIKE 'a\\'", "22023"),
        ("name LIKE 'a' ESCAPE 'xx'", "42601"),
        ("name LIKE '%a%b%c%d%e%f%g%h%i'", "PV202"),
        ("enrolled IN (SELECT 1)", "0A000"),
        ("EXISTS (SELECT count(*))", "PV004"),
        ("enrolled IN (gpa, (SELECT 1))", "PV001"),
        ("substring(name, active)", "42883"),
        ("round(fee, enrolled)", "PV001"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, code: str) -> None:
    found, at = refused(f"SELECT {text} FROM student")
    assert found == code
    assert at is not None


@pytest.mark.parametrize(
    ("text", "parenthesised"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("- a + b", "(- a) + b"),
        ("- a * b", "(- a) * b"),
        ("- a ^ 2", "(- a) ^ 2"),
        ("a ^ 2 ^ 3", "(a ^ 2) ^ 3"),
        ("a < b AND b < c OR a = c", "((a < b) AND (b < c)) OR (a = c)"),
        ("NOT a < b AND b < c", "(NOT (a < b)) AND (b < c)"),
        ("NOT a IS NULL", "NOT (a IS NULL)"),
        ("a < b IS TRUE", "(a < b) IS TRUE"),
        ("a + b IN (1, 2)", "(a + b) IN (1, 2)"),
        ("a BETWEEN b AND c = TRUE", "(a BETWEEN b AND c) = TRUE"),
        ("a::text || b + c", "(a::text) || (b + c)"),
        ("- a::bigint", "- (a::bigint)"),
        ("a * b % c / 2", "((a * b) % c) / 2"),
        ("a + b < c * 2", "(a + b) < (c * 2)"),
    ],
)
def test_operators_bind_as_in_postgres(text: str, parenthesised: str) -> None:
    source = " FROM (SELECT enrolled AS a, small AS b, big AS c FROM student) t"
    assert expression(text, source=source) == expression(parenthesised, source=source)


def test_a_literal_of_a_float_comparison_is_a_double() -> None:
    found = where("gpa < 0.1")
    assert isinstance(found, Call)
    literal = found.args[1]
    assert isinstance(literal, Literal)
    assert literal.type.kind is Kind.DOUBLE
    assert literal.value == Fraction(0.1)


def test_substring_counts_from_before_the_text() -> None:
    assert expression("substring(name FROM 0 FOR 3)") == expression("substr(name, 1, 2)")
    assert expression("substr(name, -5, 2)") == expression("substr(name, 1, 0)")
    assert expression("substr(name, -5)") == expression("substr(name, 1)")


def test_now_is_the_moment_of_the_statement_cut_to_the_minute() -> None:
    assert relation("SELECT now(), current_timestamp") == relation("SELECT current_timestamp, now()")


READ = (
    "interval '1.5 months'", "interval '1.5' month", "interval '-1.5' hour", "interval '1.5' second", "interval '5'", "interval '2' year", "interval '1 day'",
    "interval '-1 day +2:03'", "interval '1 day -02:03:04.5'", "interval '1 day 02:00 ago'", "interval '@ 3 days'",
    "'30 days 0.000000 seconds'::interval", "interval '0 years 0 mons 30 days 0 hours 0 mins 0.0 secs'",
    "interval 'P1Y2M3DT4H5M6.5S'", "interval 'P3W'", "interval 'PT36H'", "interval '1 mon 2 hrs 3 min 4 s'",
    "interval '1 decade 2 centuries 1 millennium'", "interval '7 ms 8 us'", "interval '1.25 weeks'",
    "interval '1 day' * 2", "2.5 * interval '1 day'", "interval '1 month' * 0.5", "interval '1 month 3 days' * -1.5",
    "interval '1 month' + interval '2 days'", "interval '1 month' - interval '40 days 3:00'",
    "make_interval(days => 30)", "make_interval(1, 2, 3, 4, 5, 6, 7.5)", "make_interval(secs => 0.000001)",
    "(-6 || ' day')::interval", "('1' || ' week')::interval",
)  # fmt: skip


def interval(text: str, *parameters: object) -> Months:
    found = expression(text, *parameters, source="")
    assert isinstance(found, Literal), found
    assert isinstance(found.value, Months)
    return found.value


def test_they_are_those_of_postgres(postgres: PostgresServer) -> None:
    parts = (
        "(extract(year FROM {0}) * 12 + extract(month FROM {0}))::int, extract(day FROM {0})::int, "
        "((extract(hour FROM {0}) * 60 + extract(minute FROM {0})) * 60000000 + extract(microseconds FROM {0}))::bigint"
    )
    with psycopg.connect(postgres.url("postgres")) as connection:
        for text in READ:
            row = connection.execute("SELECT " + parts.format(f"({text})")).fetchone()
            assert row is not None
            assert interval(text) == Months(*row), text


@pytest.mark.parametrize(
    "text",
    [
        "interval ''", "interval 'soon'", "interval 'xx 1 day'", "interval '1 day yy'", "interval '1:2:3:4'",
        "interval 'P'", "interval '99999999 decades'", "interval '2000000000 days' * 4", "('a' || ' day')::interval",
    ],
)  # fmt: skip
def test_what_is_none_is_refused_whole(text: str) -> None:
    """A text is never read in part: the parser alone would keep the first number and unit that it finds."""
    assert refused(f"SELECT COUNT(*) FROM student WHERE born > now() - {text}")[0] == "22023"


def test_parameters_are_units_and_intervals() -> None:
    month = expression("date_trunc('month', born)")
    assert expression("date_trunc($1, born)", "month") == month
    assert expression("date_trunc($1::varchar, born)", "MONTH") == month
    assert expression("date_trunc('month'::text, born)") == month
    assert expression("date_part($1, born)", "year") == expression("extract(year FROM born)")
    assert expression("DATE(born::timestamp)") == expression("born::timestamp::date")
    wanted = where("born > DATE '2005-01-31' - INTERVAL '30 days'")
    assert where("born > DATE '2005-01-31' - $1", datetime.timedelta(days=30)) == wanted
    assert where("born > DATE '2005-01-31' - $1 * interval '1 day'", 30) == wanted
    assert where("born > DATE '2005-01-31' - make_interval(days => $1)", 30) == wanted
    assert where("born > DATE '2005-01-31' - ($1 || ' days')::interval", "30") == wanted


@pytest.mark.parametrize("value", ["fortnight", 3, None])
def test_a_unit_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(Refusal) as error:
        expression("date_trunc($1, born)", value)
    assert error.value.sqlstate == "22023"
