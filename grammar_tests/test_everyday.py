"""Seventy everyday groupings with filters on what they group by: no answered group contradicts the statement's filter.

Of the demo every group that is possible has rows, so that the answer's groups are those of the statement itself. Over
TPC-H's schema, of which the cases have a few rows, the number of groups is derived by hand.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest
from datasets import DataSets

from dpsql import Session
from dpsql.cli.demo import DATABASE, MAIN_POLICY, make_folder
from dpsql.engine.dataset import Dataset
from dpsql.policy import load_policy
from dpsql.testing.injected_noise import ZeroNoise

_MONTH = "date_trunc('month', loaned_on)"
_DEMO = (
    "SELECT branch, COUNT(*) FROM loan WHERE branch <> 'Law' GROUP BY 1",
    "SELECT branch, COUNT(*) FROM loan WHERE branch NOT IN ('Law', 'Medicine') GROUP BY 1",
    "SELECT branch, COUNT(*) FROM loan WHERE branch LIKE 'C%' OR branch LIKE '%e' GROUP BY 1",
    "SELECT branch, COUNT(*) FROM loan WHERE NOT (branch = 'Central' OR branch = 'Harbour') GROUP BY 1",
    "SELECT branch, AVG(days_out) FROM loan WHERE branch > 'H' AND branch < 'N' GROUP BY 1",
    "SELECT branch, SUM(fee) FROM loan WHERE branch = 'Central' OR (branch = 'Law' AND days_out > 7) GROUP BY 1",
    f"SELECT {_MONTH}, COUNT(*) FROM loan WHERE loaned_on < '2025-07-01' GROUP BY 1",
    f"SELECT {_MONTH}, COUNT(*) FROM loan WHERE loaned_on >= '2025-03-01' AND loaned_on < '2025-06-01' GROUP BY 1",
    f"SELECT {_MONTH}, COUNT(*) FROM loan WHERE loaned_on > '2025-03-31' AND loaned_on <= '2025-06-01' GROUP BY 1",
    f"SELECT {_MONTH}, SUM(fee) FROM loan WHERE loaned_on BETWEEN '2025-02-15' AND '2025-04-15' GROUP BY 1",
    f"SELECT {_MONTH}, COUNT(*) FROM loan WHERE extract(month FROM loaned_on) <> 7 GROUP BY 1",
    f"SELECT {_MONTH}, COUNT(*) FROM loan WHERE extract(quarter FROM loaned_on) IN (1, 4) GROUP BY 1",
    f"SELECT {_MONTH}, COUNT(*) FROM loan WHERE {_MONTH} <> '2025-08-01' GROUP BY 1",
    "SELECT date_trunc('quarter', loaned_on), COUNT(*) FROM loan WHERE loaned_on < '2025-10-01' GROUP BY 1",
    "SELECT date_trunc('week', loaned_on), COUNT(*) FROM loan WHERE loaned_on >= '2025-03-03' AND loaned_on < '2025-03-31' GROUP BY 1",
    "SELECT loaned_on, COUNT(*) FROM loan WHERE loaned_on > '2025-05-01' AND loaned_on < '2025-05-10' GROUP BY 1",
    "SELECT loaned_on, COUNT(*) FROM loan WHERE extract(month FROM loaned_on) = 5 AND extract(day FROM loaned_on) BETWEEN 21 AND 28 GROUP BY 1",
    "SELECT extract(isodow FROM loaned_on), COUNT(*) FROM loan WHERE extract(isodow FROM loaned_on) < 6 GROUP BY 1",
    "SELECT extract(dow FROM loaned_on), COUNT(*) FROM loan WHERE loaned_on >= '2025-06-07' AND loaned_on < '2025-06-09' GROUP BY 1",
    "SELECT extract(month FROM loaned_on), COUNT(*) FROM loan WHERE loaned_on >= '2025-11-01' GROUP BY 1",
    "SELECT extract(quarter FROM loaned_on), extract(month FROM loaned_on), COUNT(*) FROM loan WHERE loaned_on > '2025-02-28' GROUP BY 1, 2",
    "SELECT extract(year FROM loaned_on), extract(month FROM loaned_on), COUNT(*) FROM loan WHERE loaned_on < '2025-04-01' GROUP BY 1, 2",
    f"SELECT branch, {_MONTH}, COUNT(*) FROM loan WHERE branch <> 'Law' AND loaned_on < '2025-03-01' GROUP BY 1, 2",
    "SELECT branch, extract(quarter FROM loaned_on), COUNT(*) FROM loan WHERE (branch = 'Law' AND loaned_on < '2025-04-01') "
    "OR (branch = 'Central' AND loaned_on >= '2025-10-01') GROUP BY 1, 2",
    "SELECT days_out, COUNT(*) FROM loan WHERE days_out > 5 AND days_out < 10 GROUP BY 1",
    "SELECT days_out, COUNT(*) FROM loan WHERE days_out > 0 AND days_out <= 3 AND days_out <> 1 GROUP BY 1",
    "SELECT days_out / 7, COUNT(*) FROM loan WHERE days_out >= 7 AND days_out < 28 GROUP BY 1",
    "SELECT days_out % 7, COUNT(*) FROM loan WHERE days_out > 0 AND days_out < 3 GROUP BY 1",
    "SELECT CASE WHEN days_out < 7 THEN 'week' WHEN days_out < 28 THEN 'month' ELSE 'long' END, COUNT(*) FROM loan "
    "WHERE days_out < 14 GROUP BY 1",
    "SELECT CASE WHEN days_out < 7 THEN 'week' WHEN days_out < 28 THEN 'month' ELSE 'long' END AS bin, COUNT(*) FROM loan "
    "WHERE days_out IS NOT NULL AND days_out >= 7 GROUP BY 1",
    "SELECT CASE WHEN branch IN ('Law', 'Medicine') THEN 'faculty' ELSE 'open' END, COUNT(*) FROM loan WHERE branch = 'Law' GROUP BY 1",
    "SELECT days_out IS NULL, COUNT(*) FROM loan WHERE days_out > 3 GROUP BY 1",
    "SELECT major, COUNT(*) FROM student WHERE major <> 'CS' AND gpa > 3 GROUP BY 1",
    "SELECT major, AVG(gpa) FROM student WHERE major IN ('CS', 'EE', 'ME') AND NOT major = 'EE' GROUP BY 1",
    "SELECT enrolled, COUNT(*) FROM student WHERE enrolled > 2021 GROUP BY 1",
    "SELECT enrolled, COUNT(*) FROM student WHERE enrolled <> 2023 AND enrolled < 2025 GROUP BY 1",
    "SELECT CAST(floor(gpa) AS int), COUNT(*) FROM student WHERE gpa < 3 GROUP BY 1",
    "SELECT CASE WHEN gpa >= 3.5 THEN 'high' WHEN gpa >= 2.5 THEN 'middle' ELSE 'low' END, COUNT(*) FROM student WHERE gpa < 3.5 GROUP BY 1",
    "SELECT extract(year FROM born), COUNT(*) FROM student WHERE born >= '2000-01-01' AND born < '2004-01-01' GROUP BY 1",
    "SELECT major, enrolled, COUNT(*) FROM student WHERE (major = 'CS' AND enrolled < 2021) OR (major = 'EE' AND enrolled > 2023) GROUP BY 1, 2",
    "SELECT semester, COUNT(*) FROM enrolment WHERE semester LIKE '2024%' GROUP BY 1",
    "SELECT left(semester, 4), COUNT(*) FROM enrolment WHERE semester <> '2023-spring' AND semester > '2023-spring' GROUP BY 1",
    "SELECT title, COUNT(*) FROM course c JOIN enrolment e ON c.id = e.course_id WHERE c.department = 'CS' GROUP BY 1",
    "SELECT department, credits, COUNT(*) FROM enrolment e JOIN course c ON c.id = e.course_id WHERE credits > 3 GROUP BY 1, 2",
    "SELECT department, semester, COUNT(*) FROM enrolment e JOIN course c ON c.id = e.course_id "
    "WHERE department <> 'History' AND semester > '2024-spring' GROUP BY 1, 2",
)  # fmt: skip
_TPCH = (
    ("SELECT l_linenumber, COUNT(*) FROM lineitem WHERE l_linenumber > 5 GROUP BY 1", 2),
    ("SELECT l_linenumber, COUNT(*) FROM lineitem WHERE l_linenumber <> 1 GROUP BY 1", 6),
    ("SELECT l_linenumber, SUM(l_quantity) FROM lineitem WHERE l_linenumber NOT IN (1, 2, 7) GROUP BY 1", 4),
    ("SELECT l_returnflag, l_linestatus, COUNT(*) FROM lineitem WHERE (l_returnflag = 'N' AND l_linestatus = 'O') "
     "OR (l_returnflag <> 'N' AND l_linestatus = 'F') GROUP BY 1, 2", 3),
    ("SELECT l_returnflag, COUNT(*) FROM lineitem WHERE l_returnflag <> 'A' GROUP BY 1", 2),
    ("SELECT date_trunc('month', l_shipdate), COUNT(*) FROM lineitem WHERE l_shipdate < '1992-04-01' GROUP BY 1", 3),
    ("SELECT date_trunc('year', l_shipdate), COUNT(*) FROM lineitem WHERE l_shipdate >= '1994-01-01' AND l_shipdate < '1997-01-01' GROUP BY 1", 3),
    ("SELECT extract(year FROM l_shipdate), COUNT(*) FROM lineitem WHERE l_shipdate < '1995-01-01' GROUP BY 1", 3),
    ("SELECT extract(year FROM o_orderdate), extract(month FROM o_orderdate), COUNT(*) FROM orders WHERE o_orderdate >= '1995-11-15' "
     "AND o_orderdate < '1996-03-01' GROUP BY 1, 2", 4),
    ("SELECT extract(dow FROM o_orderdate), COUNT(*) FROM orders WHERE extract(dow FROM o_orderdate) IN (0, 6) GROUP BY 1", 2),
    ("SELECT o_orderstatus, COUNT(*) FROM orders WHERE o_orderstatus <> 'P' GROUP BY 1", 2),
    ("SELECT o_orderpriority, COUNT(*) FROM orders WHERE o_orderpriority < '3' GROUP BY 1", 2),
    ("SELECT o_orderpriority, COUNT(*) FROM orders WHERE o_orderpriority LIKE '%-%' AND NOT o_orderpriority LIKE '%O%' GROUP BY 1", 3),
    ("SELECT left(o_orderpriority, 1), COUNT(*) FROM orders WHERE o_orderpriority > '3' GROUP BY 1", 3),
    ("SELECT o_orderstatus, o_orderpriority, COUNT(*) FROM orders WHERE o_orderstatus = 'F' AND o_orderpriority = '1-URGENT' "
     "OR o_orderstatus = 'O' AND o_orderpriority = '5-LOW' GROUP BY 1, 2", 2),
    ("SELECT date_trunc('quarter', o_orderdate), COUNT(*) FROM orders WHERE o_orderdate > '1997-12-31' GROUP BY 1", 4),
    ("SELECT date_trunc('month', o_orderdate), SUM(o_totalprice) FROM orders WHERE o_orderdate >= '1998-01-01' "
     "AND extract(month FROM o_orderdate) % 2 = 0 GROUP BY 1", 6),
    ("SELECT CASE WHEN l_quantity < 10 THEN 'few' WHEN l_quantity < 30 THEN 'some' ELSE 'many' END, COUNT(*) FROM lineitem "
     "WHERE l_quantity >= 10 GROUP BY 1", 2),
    ("SELECT CAST(l_quantity AS int) / 10, COUNT(*) FROM lineitem WHERE l_quantity > 20 AND l_quantity < 40 GROUP BY 1", 3),
    ("SELECT l_discount, COUNT(*) FROM lineitem WHERE l_discount BETWEEN 0.05 AND 0.07 GROUP BY 1", 3),
    ("SELECT l_discount, COUNT(*) FROM lineitem WHERE l_discount > 0.05 AND l_discount < 0.07 GROUP BY 1", 1),
    ("SELECT l_shipdate < l_commitdate, COUNT(*) FROM lineitem WHERE l_shipdate < l_commitdate GROUP BY 1", 1),
    ("SELECT extract(year FROM l_shipdate) - extract(year FROM l_commitdate), COUNT(*) FROM lineitem WHERE l_shipdate >= '1998-01-01' "
     "AND l_commitdate >= '1998-01-01' GROUP BY 1", 1),
    ("SELECT c_mktsegment, COUNT(*) FROM customer WHERE c_mktsegment <> 'BUILDING' AND c_mktsegment < 'H' GROUP BY 1", 2),
    ("SELECT c_nationkey, COUNT(*) FROM customer WHERE c_nationkey > 20 GROUP BY 1", 4),
)  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection]]:
    folder = tmp_path_factory.mktemp("demo")
    make_folder(folder / "demo", fresh=False)
    dataset = Dataset.open(load_policy(folder / "demo" / MAIN_POLICY))
    with Session(dataset, "tester", _noise=ZeroNoise()) as session:
        copy = folder / "copy.duckdb"
        copy.write_bytes((folder / "demo" / DATABASE).read_bytes())
        with duckdb.connect(str(copy), read_only=True, config={"integer_division": True}) as connection:
            yield session, connection


def _keys(rows: list[tuple[object, ...]], count: int) -> set[tuple[object, ...]]:
    return {tuple(map(_plain, row[:count])) for row in rows}


def _plain(value: object) -> object:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return float(value) if isinstance(value, (Decimal, int)) and not isinstance(value, bool) else value


def test_seventy_statements() -> None:
    assert len(_DEMO) + len(_TPCH) == 70


@pytest.mark.parametrize("sql", _DEMO)
def test_the_groups_of_the_demo(demo: tuple[Session, duckdb.DuckDBPyConnection], sql: str) -> None:
    session, connection = demo
    count = sql[sql.rindex("GROUP BY") :].count(",") + 1
    ours = _keys(list(session.execute(sql).rows), count)
    assert ours == _keys(connection.execute(sql).fetchall(), count)


@pytest.mark.parametrize(("sql", "groups"), _TPCH)
def test_the_groups_of_tpch(data: DataSets, sql: str, groups: int) -> None:
    policy = data.of("tpch")
    session, _ = data.session(policy.policy, policy.backend, "local")
    assert len(session.execute(sql).rows) == groups
