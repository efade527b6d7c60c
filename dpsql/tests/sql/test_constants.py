"""Constant intervals are what Postgres reads, adds and multiplies; what it refuses is refused."""

from __future__ import annotations

import datetime

import psycopg
import pytest

from dpsql.errors import Refusal
from dpsql.relation.expressions import Literal, Months

from ..support.postgres_server import PostgresServer
from .campus import expression, refused, where

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
