"""Texts of people's rows read as dates and moments: what there is in the calendar is read alike by both engines and as
Python reads it, and all else is NULL: no row makes a query fail."""

from __future__ import annotations

import datetime
import itertools
import re

import duckdb
import psycopg
import pytest

from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.backend_sql.private_forms import DATES
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.relation.catalog import Column
from dpsql.relation.intervals import Environment
from dpsql.relation.types import TEXT

from ..sql.campus import expression
from ..support.postgres_server import PostgresServer

_YEARS = (0, 1, 4, 99, 100, 400, 999, 1000, 1582, 1900, 1999, 2000, 2004, 2023, 2100, 9999)
_DAYS = [
    spelled
    for year, month, day in itertools.product(_YEARS, range(14), range(33))
    for spelled in {f"{year:04}-{month:02}-{day:02}", f"{year:04}-{month}-{day}"}
]
_CLOCKS = (
    " 00:00", " 23:59", "T23:59:59", " 23:59:59.9", "T01:02:03.123456", " 01:02:03Z", "Z", " 24:00", " 23:60", " 23:59:60",
    " 1:02", " 01:02:03.1234567", " 01:02:03+02", " 01", "T", " BC", " 01:02 PM", "  01:02", "\n", "\n01:02",
)  # fmt: skip
_OTHERS = (
    "", " ", "infinity", "-infinity", "today", "now", "epoch", "tomorrow", "allballs", "J2451187", "20240131", "2024-031",
    "01/31/2024", "31.01.2024", "31.1.2024", "1.1.0001", "29.02.2023", "29.02.2024", "00.01.2024", "Jan 31 2024", "24-01-31",
    "12024-01-31", "-2024-01-31", "2024-01-31x", "x2024-01-31", "  2024-01-31  ", "\t2024-01-31", "2024-01-31\n", "2024\u201301-31",
    "\u0662\u0660\u0662\u0664-01-31", "2024-01-31'", "294277-01-01", "2024-01-31 BC", "2024-01-31" * 200, "2024-01-31" + " " * 2000,
    " " * 995 + "2024-01-31", "2024/1/31 9:05:07.125", "2024/01/31 09:05:07.125", "2024/02/30 09:05:07.125",
    "2024/01/31 24:05:07.125", "2024/01/31 09:05:61.125",
)  # fmt: skip
_TEXTS = [*_DAYS, *(day + clock for day in ("2024-02-29", "2023-02-29") for clock in _CLOCKS), *_OTHERS]
_FORMS = {
    "name::date": re.compile(
        r" *(\d{4})-(\d\d?)-(\d\d?)(?:[ T](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?)?Z? *",
        re.ASCII,
    ),
    "to_date(name, 'DD.MM.YYYY')": re.compile(r" *(?P<d>\d\d?)\.(?P<m>\d\d?)\.(?P<y>\d{4}) *", re.ASCII),
}


def _day(text: str, form: re.Pattern[str]) -> datetime.date | None:
    found = form.fullmatch(text[:1000])
    if found is None:
        return None
    year, month, day = (found["y"], found["m"], found["d"]) if found.groupdict() else found.groups()
    try:
        return datetime.date(int(year), int(month), int(day))
    except ValueError:
        return None


def _printed(text: str, dialect: Dialect) -> str:
    return PrivatePrinter(Environment([Column("name", TEXT)]), ["t"], dialect).value(expression(text))


@pytest.fixture(scope="module")
def read(postgres: PostgresServer) -> dict[str, tuple[list[object], list[object]]]:
    """Return what each engine makes of all texts, by the expression."""
    asked = (*_FORMS, "name::timestamp", "to_timestamp(name, 'YYYY/MM/DD HH24:MI:SS.MS')")
    rows, found = list(enumerate(_TEXTS)), {}
    with duckdb.connect() as ours, psycopg.connect(postgres.url("postgres")) as theirs:
        theirs.execute("SET DateStyle = 'SQL, DMY'")  # ISO is read whatever it is
        ours.execute(
            "CREATE TABLE texts AS SELECT * FROM (SELECT unnest($1) AS n, unnest($2) AS t)",
            [*zip(*rows, strict=True)],
        )
        theirs.execute(
            "CREATE TEMPORARY TABLE texts AS SELECT * FROM unnest(%s::int[], %s::text[]) AS x(n, t)",
            [*map(list, zip(*rows, strict=True))],
        )
        for text in asked:
            one = ours.execute(f"SELECT {_printed(text, DUCKDB)} FROM texts ORDER BY n").fetchall()
            sql = f"SELECT {_printed(text, PostgresDialect('C'))} FROM texts ORDER BY n"
            two = (
                psycopg.RawCursor(
                    theirs,
                )
                .execute(sql.encode(), binary=True)
                .fetchall()
            )
            found[text] = [value for (value,) in one], [value for (value,) in two]
    return found


@pytest.mark.parametrize("text", _FORMS)
def test_days_are_those_of_the_calendar(
    text: str, read: dict[str, tuple[list[object], list[object]]]
) -> None:
    wanted = [_day(one, _FORMS[text]) for one in _TEXTS]
    assert sum(one is not None for one in wanted) > 2
    for engine in read[text]:
        assert [pair for pair in zip(_TEXTS, engine, wanted, strict=True) if pair[1] != pair[2]] == []


@pytest.mark.parametrize("text", ["name::timestamp", "to_timestamp(name, 'YYYY/MM/DD HH24:MI:SS.MS')"])
def test_moments_are_alike(text: str, read: dict[str, tuple[list[object], list[object]]]) -> None:
    ours, theirs = read[text]
    assert [trio for trio in zip(_TEXTS, ours, theirs, strict=True) if trio[1] != trio[2]] == []
    told = dict(zip(_TEXTS, ours, strict=True))
    if text == "name::timestamp":
        assert told["2024-02-29T01:02:03.123456"] == datetime.datetime(2024, 2, 29, 1, 2, 3, 123456)
        assert told["2024-02-29 01:02:03Z"] == datetime.datetime(2024, 2, 29, 1, 2, 3)
        days = [_day(one, _FORMS["name::date"]) for one in _TEXTS]
        assert [day is None for day in days] == [moment is None for moment in ours]
    else:
        wanted = datetime.datetime(2024, 1, 31, 9, 5, 7, 125000)
        assert [one for one, moment in told.items() if moment is not None] == [
            "2024/1/31 9:05:07.125", "2024/01/31 09:05:07.125",
        ]  # fmt: skip
        assert told["2024/1/31 9:05:07.125"] == wanted


def test_the_29th_of_february_is_of_leap_years_alone() -> None:
    pattern = re.compile(DATES)
    leap = {year for year in range(10_000) if pattern.fullmatch(f"{year:04}-02-29")}
    assert leap == {
        year for year in range(1, 10_000) if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    }
    assert {year for year in range(10_000) if pattern.fullmatch(f"{year:04}-02-28")} == set(range(1, 10_000))


@pytest.mark.parametrize(
    "form", ["MM.YYYY", "YYYY-MM-DD HH24", "YYYY-MM-DD MI", "YYYY-MM-DD YYYY", "YYYY-MM-DD HH24:MI.US"]
)
def test_a_format_has_what_makes_a_moment(form: str) -> None:
    with pytest.raises(Refusal, match="takes a format with YYYY, MM and DD"):
        _printed(f"to_timestamp(name, '{form}')", DUCKDB)
