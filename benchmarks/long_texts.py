"""A question that costs no epsilon costs processor: what text to plan takes of long texts, accepted or refused."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator

import sqlglot

from benchmarks.demo import open_campus
from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.errors import DpsqlError

__all__ = ["TEXTS", "measure"]

_LIMIT = 100
"""Milliseconds of processor."""


def measure(size: Size) -> Iterator[Figure]:
    """Yield of each text the processor time of its EXPLAIN, beside that of a bare parse in the same run."""
    with open_campus(size) as session:
        session.explain("SELECT COUNT(*) FROM loan")
        for name, text in TEXTS.items():
            parse = _best(lambda text=text: sqlglot.parse(text, read="postgres"), size.repeats)
            outcome = ""

            def plan(text: str = text) -> None:
                nonlocal outcome
                outcome = _planned(session, text)

            ours = _best(plan, size.repeats)
            where = f"{ours / parse:.1f} × a bare parse of its {len(text)} characters; {outcome}"
            yield Figure(name, ours, _LIMIT, "ms", where)


def _best(action: Callable[[], object], repeats: int) -> float:
    """Return the least milliseconds of processor of one call."""

    def once() -> float:
        start = time.process_time()
        action()
        return (time.process_time() - start) * 1000

    return min(once() for _ in range(repeats))


def _planned(session: Session, text: str) -> str:
    session.dataset.prepared.clear()
    try:
        session.explain(text)
    except DpsqlError as refusal:
        return f"refused with {refusal.sqlstate}"
    return "accepted"


def _list(values: Iterator[object]) -> str:
    return ", ".join(str(value) for value in values)


def _day(number: int) -> str:
    return f"'{datetime.date(2020, 1, 1) + datetime.timedelta(number)}'"


_COUNT = "SELECT COUNT(*) FROM loan WHERE"
_MONTHS = [f"'2025-{month:02}-01'" for month in range(1, 13)]
_DOUBLED = ", ".join(
    f"c{n} AS (SELECT student_id, days_out FROM c{n - 1} UNION ALL SELECT student_id, days_out FROM c{n - 1})"
    for n in range(1, 13)
)
_JOINED = ", ".join(
    f"c{n} AS (SELECT a.student_id FROM c{n - 1} a JOIN c{n - 1} b ON a.student_id = b.student_id)"
    for n in range(1, 13)
)
_NESTED = "SELECT student_id, days_out FROM loan"
for _ in range(30):
    _NESTED = f"SELECT student_id, days_out + 1 AS days_out FROM ({_NESTED}) s"

TEXTS = {
    "IN 2,000 whole numbers": f"{_COUNT} days_out IN ({_list(range(2000))})",
    "IN 2,000 spread whole numbers": f"{_COUNT} student_id IN ({_list(range(0, 14000, 7))})",
    "NOT IN 2,000 whole numbers": f"{_COUNT} days_out NOT IN ({_list(range(2000))})",
    "IN 2,000 numbers of a column with points": f"{_COUNT} fee IN ({_list(n / 100 for n in range(2000))})",
    "IN 2,000 texts": f"{_COUNT} branch IN ({_list(chr(39) + f'b{n}' + chr(39) for n in range(2000))})",
    "IN 2,000 texts of a column without a list": "SELECT COUNT(*) FROM student WHERE name IN "
    f"({_list(chr(39) + f'b{n}' + chr(39) for n in range(2000))})",
    "NOT IN 2,000 texts": f"{_COUNT} branch NOT IN ({_list(chr(39) + f'b{n}' + chr(39) for n in range(2000))})",
    "IN 2,000 dates": f"{_COUNT} loaned_on IN ({_list(map(_day, range(2000)))})",
    "NOT IN 2,000 dates": f"{_COUNT} loaned_on NOT IN ({_list(map(_day, range(2000)))})",
    "= ANY of 2,000 whole numbers": f"{_COUNT} days_out = ANY(ARRAY[{_list(range(2000))}])",
    "100 ORs": f"{_COUNT} {' OR '.join(f'days_out = {n} AND fee > {n % 10}' for n in range(100))}",
    "100 ANDs of a text": f"{_COUNT} {' AND '.join(f'loaned_on <> {_day(2000 + n)}' for n in range(100))}",
    "200 ORs of LIKE": f"{_COUNT} {' OR '.join(f'branch LIKE {chr(39)}%a{n}%{chr(39)}' for n in range(200))}",
    "CASE of 200 branches as a key": "SELECT CASE "
    + " ".join(f"WHEN days_out = {n} THEN {n % 7}" for n in range(200))
    + " ELSE 9 END AS k, COUNT(*) FROM loan GROUP BY 1",
    "CASE of 200 branches in a sum": "SELECT SUM(CASE "
    + " ".join(f"WHEN days_out = {n} THEN {n % 7}" for n in range(200))
    + " ELSE 9 END) FROM loan",
    "CASE of 200 days as a key": "SELECT CASE "
    + " ".join(f"WHEN loaned_on = {_day(1900 + n)} THEN 'd{n % 7}'" for n in range(200))
    + " ELSE 'z' END AS k, COUNT(*) FROM loan GROUP BY 1",
    "200 select items above": f"SELECT branch, {_list(f'COUNT(*) + {n} AS n{n}' for n in range(200))} "
    "FROM loan GROUP BY branch",
    "90 sums": f"SELECT branch, {_list(f'SUM(days_out + {n})' for n in range(90))} FROM loan GROUP BY branch",
    "ten filtered sums": "SELECT "
    + _list(f"SUM(days_out) FILTER (WHERE fee > {n} AND loaned_on < {_MONTHS[n]})" for n in range(10))
    + " FROM loan",
    "twelve months, by CASE": "SELECT "
    + _list(f"SUM(CASE WHEN EXTRACT(month FROM loaned_on) = {n} THEN days_out END)" for n in range(1, 13))
    + " FROM loan",
    "fifty filtered counts": f"SELECT {_list(f'COUNT(*) FILTER (WHERE days_out = {n})' for n in range(50))} FROM loan",
    "CTEs that double, by UNION ALL": f"WITH c0 AS (SELECT student_id, days_out FROM loan), {_DOUBLED} "
    "SELECT COUNT(*) FROM c12",
    "CTEs that double, by a join": f"WITH c0 AS (SELECT student_id FROM loan), {_JOINED} SELECT COUNT(*) FROM c12",
    "thirty nested subqueries": f"SELECT SUM(days_out) FROM ({_NESTED}) s",
    "CUBE of 6": "SELECT branch, COUNT(*) FROM loan GROUP BY CUBE(branch, EXTRACT(month FROM loaned_on), "
    "EXTRACT(dow FROM loaned_on), days_out / 10, days_out % 2, EXTRACT(quarter FROM loaned_on))",
    "CUBE of 6 small ones": "SELECT COUNT(*) FROM loan GROUP BY CUBE((branch = 'Law'), (branch = 'Central'), "
    "(days_out > 7), (days_out > 30), (loaned_on > '2025-06-01'), (days_out IS NULL))",
    "64 grouping sets": "SELECT COUNT(*) FROM loan GROUP BY GROUPING SETS ("
    + _list(
        f"({', '.join(part for bit, part in enumerate(('branch', 'days_out / 20', 'days_out % 2')) if n >> bit & 1)})"
        for n in range(64)
    )
    + ")",
    "groups of over 100,000 cells": "SELECT branch, days_out, loaned_on, COUNT(*) FROM loan GROUP BY 1, 2, 3",
    "days and weeks and months": "SELECT loaned_on, date_trunc('week', loaned_on), date_trunc('month', loaned_on), "
    "to_char(loaned_on, 'Mon Day'), COUNT(*) FROM loan GROUP BY 1, 2, 3, 4",
    "days by number of days out": "SELECT loaned_on + days_out, COUNT(*) FROM loan GROUP BY 1",
    "a long sum of sums": f"SELECT {' + '.join(f'SUM(days_out * {n})' for n in range(1, 60))} FROM loan",
    "a long expression": f"SELECT SUM({' + '.join(f'days_out * {n}' for n in range(1, 300))}) FROM loan",
    "a regular expression of many choices": f"{_COUNT} branch ~ '^({'|'.join(f'ab{n}' for n in range(500))})$'",
    "a list of VALUES joined": "SELECT COUNT(*) FROM loan JOIN (VALUES "
    + _list(f"({n}, {n % 9})" for n in range(500))
    + ") AS v(d, g) ON loan.days_out = v.d",
    "a list of VALUES by range": "SELECT g, COUNT(*) FROM loan JOIN (VALUES "
    + _list(f"({n}, {n + 5})" for n in range(100))
    + ") AS v(g, h) ON loan.days_out BETWEEN v.g AND v.h GROUP BY g",
    "parentheses": f"SELECT {'(' * 150}COUNT(*){')' * 150} FROM loan",
}
