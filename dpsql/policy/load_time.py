"""Reads `[privacy.time]`, a budget for each period of the data, and holds what tables say of their time against it.

House rule: the period of a row is a function of the row, or of the parent from which its owner is read. Then what one
person has in one period is taken away without a row of another person or period (soundness.md 1.40).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import partial
from zoneinfo import ZoneInfo

from .load_tables import ROW, ReadTables
from .model import SPARK, Period, TablePolicy, Time
from .section import Section, suggest

_DURATION = re.compile(r"([0-9]{1,4}) (hour|day|week)s?")
_WINDOW = re.compile(r"([2-9]|[1-9][0-9]{1,3}) (day|week|month|year)s")
_RETENTION = re.compile(r"([1-9][0-9]{0,3}) (day|week|month|year)s?")
_HOURS = {"hour": 1, "day": 24, "week": 168}


def read_time(privacy: Section) -> Time | None:
    """Return what periods the budget is for, None where it is for all data together. Raises PolicyError."""
    section = privacy.section("time")
    if section is None:
        return None
    period = section.text("period")
    if period not in {kind.value for kind in Period}:
        raise section.error('write "day", "week", "month" or "year"', "period")
    if section.text("undated") not in (None, "with the rows"):
        raise section.error('is "with the rows" alone; take it out', "undated")
    zone = section.text("zone") or "UTC"
    if not _is_zone(zone):
        raise section.error('is no time zone; write "UTC", or a name like "Europe/Berlin"', "zone")
    since = section.take("since")
    if not isinstance(since, date) or isinstance(since, datetime):
        raise section.error("write the first day of which there are data, like 2019-01-01", "since")
    if not 1000 <= since.year <= 9000:
        raise section.error("is no day of these times; write one like 2019-01-01", "since")
    settle = _duration(section, "settle")
    windows, person = _windows(section, Period(period)), section.number("person")
    if person is not None and not _is_cap(person):
        raise section.error("is an epsilon above 0, in steps of 1e-9", "person")
    is_open, retention = section.flag("open") or False, _retention(section, Period(period))
    section.finish()
    settled = timedelta(days=3) if settle is None else settle
    return Time(Period(period), since, zone, settled, windows, person, is_open, retention)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _duration(section: Section, key: str) -> timedelta | None:
    written = section.text(key)
    if written is None:
        return None
    found = _DURATION.fullmatch(written)
    if found is None:
        raise section.error('write a time like "3 days" or "12 hours"', key)
    return timedelta(hours=int(found[1]) * _HOURS[found[2]])


def _retention(section: Section, period: Period) -> int | None:
    """Return of how many periods rows are read; None: of all. Raises PolicyError."""
    written = section.text("retention")
    if written is None:
        return None
    found = _RETENTION.fullmatch(written)
    if found is None or found[2] != period.value:
        raise section.error(f'write a number of {period.value}s, like "24 {period.value}s"', "retention")
    return int(found[1])


def _windows(section: Section, period: Period) -> tuple[tuple[int, Fraction], ...]:
    """Return the caps on what a person may lose over so many periods in a row, the shortest first."""
    windows = section.section("windows")
    if windows is None:
        return ()
    found: dict[int, Fraction] = {}
    for name in windows.names():
        written, cap = _WINDOW.fullmatch(name), windows.number(name)
        if written is None or written[2] != period.value:
            raise windows.error(f'write a number of {period.value}s, like "12 {period.value}s" = 60', name)
        if cap is None or not _is_cap(cap):
            raise windows.error("is an epsilon above 0, in steps of 1e-9", name)
        found[int(written[1])] = cap
    return tuple(sorted(found.items()))


def _is_cap(cap: Fraction) -> bool:
    return 0 < cap <= 10**6 and (cap * 10**9).denominator == 1


def check_times(top: Section, time: Time | None, read: ReadTables, database: str | None) -> None:
    """Note what is wrong in what tables say of their time."""
    if time is None:
        for name, table in read.tables.items():
            for key, value in (("time", table.time), ("max_rows_ever", table.max_rows_ever)):
                if value is not None:
                    problem = 'needs a budget by period; write [privacy.time] with period = "month"'
                    top.found.append(top.error(problem, "tables", name, key))
        return
    if database is not None and database.startswith(SPARK):
        top.found.append(top.error("is not there yet on Spark; take it out", "privacy", "time"))
    if not read.broken and all(table.time is None for table in read.tables.values()):
        top.found.append(
            top.error(
                'needs a table that says when its rows were; write time = "<column>" at it', "privacy", "time"
            )
        )
    for name, table in read.tables.items():
        top.attempt(partial(_check_time, top, read.tables, name, table))


def _check_time(top: Section, tables: Mapping[str, TablePolicy], name: str, table: TablePolicy) -> None:
    here = ("tables", name)
    if table.unit == ROW:
        raise top.error(
            "is not there yet with a budget by period; name the column of the person", *here, "unit"
        )
    if table.row_number is not None:
        raise top.error("is not there yet with a budget by period; take it out", *here, "row_number")
    if table.max_norm:
        raise top.error("is not there yet with a budget by period; take it out", *here, "max_norm")
    if table.time is None and table.max_rows_ever is not None:
        raise top.error(
            'is for several periods, and the rows have no time; write time = "<column>"',
            *here,
            "max_rows_ever",
        )
    way = way_of(tables, name)
    if table.time is not None and table.time[0] != name:
        source = tables.get(table.time[0])
        if source is None:
            raise top.error(
                f'no table "{table.time[0]}" is declared{suggest(table.time[0], list(tables))}', *here, "time"
            )
        if table.time[0] not in way:
            raise top.error(
                f'"{table.time[0]}" is not on the way from this table to the person, and a row of it may be of another '
                "person; name a column of this table, or of one on its way", *here, "time",
            )  # fmt: skip
        if source.time != table.time:
            said = f'write time = "{table.time[1]}" at "{table.time[0]}" too'
            raise top.error(f'is not what "{table.time[0]}" says of its own rows; {said}', *here, "time")
    for parent in way:
        time = tables[parent].time
        if time is not None and time != table.time:
            said = f"{time[0]}.{time[1]}"
            raise top.error(
                f'its person is found through "{parent}", whose rows are of the period of "{said}": without it '
                f'they would be nobody\'s; write time = "{said}", or have the person\'s number in these rows, as unit',
                *here, "time",
            )  # fmt: skip


def way_of(tables: Mapping[str, TablePolicy], name: str) -> tuple[str, ...]:
    """Return the tables that are read on the way from a table's rows to their person, in order.

    A table whose key is the unit itself is not read: its number stands in the row.
    """
    found: list[str] = []
    unit = tables[name].unit
    while unit is not None and unit.references is not None and unit.references[0] in tables:
        parent, key = unit.references
        above = tables[parent].unit
        is_unit = above is not None and above.references is None and set(above.columns) == set(key)
        if is_unit or parent in found:
            break
        found.append(parent)
        unit = above
    return tuple(found)
