"""How far off answers are: beside plain Laplace noise in the same run, and whether error bars hold the truth.

Bars are over 4,000 draws on the exact integers, errors over 20,000. The TPC-H tables are those of `tpch`, at scale 0.1.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from benchmarks import agreement, combined, one_batch, one_budget
from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size
from benchmarks.many_draws import Number, answers
from benchmarks.tpch import make_database
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.cli.demo_tour import QUESTIONS
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy

__all__ = ["measure"]

_DRAWS = 4000
_MANY = 20_000
"""Draws of what is compared with plain noise, so that chance moves a ratio by less than 2 %."""
_LEAST, _MOST = 94, 96.5
"""Percent of the draws whose 95 % bars hold the truth."""

_HEAD = """
database = "duckdb:{path}"
ledger = "sqlite:{ledger}"
[privacy]
epsilon = 10
[defaults]
epsilon = {epsilon}
"""
_TPCH = """
[tables.customer]
unit = "c_custkey"
[tables.orders]
unit = { column = "o_custkey", references = "customer.c_custkey" }
max_rows = 40
[tables.orders.columns]
o_custkey = {}
o_totalprice = { bounds = [0, 500000] }
o_orderstatus = { values = ["F", "O", "P"] }
o_orderpriority = { values = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"] }
[tables.lineitem]
unit = { column = "l_orderkey", references = "orders.o_orderkey" }
max_rows = 180
[tables.lineitem.columns]
l_quantity = { bounds = [1, 50] }
l_extendedprice = { bounds = [0, 110000] }
l_shipmode = { values = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"] }
l_shipinstruct = { values = ["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"] }
"""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A statement at epsilon 1. Plain Laplace noise: `parts` numbers, each of `reach` a row, share epsilon.

    `rows`: of a person; 1 for a count of people. `most`: times that noise, at most.
    """

    sql: str
    rows: int
    reach: float
    most: float
    is_average: bool = False


_ASKED = {
    "count": _Asked("SELECT COUNT(*) AS n FROM orders", 40, 1, 1.08),
    "sum": _Asked("SELECT SUM(o_totalprice) AS n FROM orders", 40, 500_000, 1.05),
    "avg": _Asked("SELECT AVG(o_totalprice) AS n FROM orders", 40, 500_000, 0.42, is_average=True),
    "count where": _Asked("SELECT COUNT(*) AS n FROM orders WHERE o_orderstatus = 'F'", 40, 1, 1.3),
    "count group by": _Asked(
        "SELECT o_orderpriority, COUNT(*) AS n FROM orders GROUP BY o_orderpriority", 40, 1, 1.05
    ),
    "count distinct people": _Asked("SELECT COUNT(DISTINCT o_custkey) AS n FROM orders", 1, 1, 1.08),
    "sum where, line items": _Asked(
        "SELECT SUM(l_extendedprice) AS n FROM lineitem WHERE l_shipmode = 'AIR'", 180, 110_000, 1.05
    ),
    "avg group by, line items": _Asked(
        "SELECT l_shipinstruct, AVG(l_quantity) AS n FROM lineitem GROUP BY l_shipinstruct",
        180, 50, 0.36, is_average=True,
    ),
}  # fmt: skip


def measure(size: Size) -> Iterator[Figure]:
    """Yield errors beside plain Laplace noise, how often bars hold the truth, what a budget holds, and a dashboard."""
    yield from _beside_laplace(size)
    yield from _monthly_visits(size)
    yield from one_budget.measure(size)
    yield from combined.measure(size)
    yield from one_batch.measure(size)
    yield from agreement.measure(size)
    yield from _demo(size)


# --- beside plain Laplace noise ------------------------------------------------------------------------------


def _beside_laplace(size: Size) -> Iterator[Figure]:
    path = make_database(size, 0.1 if size.rows >= 1_000_000 else 0.01)
    with _session(path, size.folder / "accuracy-tpch.toml", _TPCH, "1") as session:
        for name, asked in _ASKED.items():
            found = list(answers(session, asked.sql, _MANY))
            ours = statistics.median(abs(one.said - one.truth) / abs(one.truth) for one in found)
            plain = _plain(asked, session)
            where = f"{100 * ours:.3g} % beside {100 * plain:.3g} %, {_held_text(found)}"
            yield Figure(f"{name}, of plain Laplace noise", ours / plain, asked.most, "x", where)


def _plain(asked: _Asked, session: Session) -> float:
    """Return the median relative error of sum / count or of one number, noised plainly in each group."""
    call = asked.sql.split(" AS n")[0].removeprefix("SELECT ")
    counted = asked.sql.replace(call.rpartition(", ")[2], "COUNT(*)", 1)
    with session.dataset.backend.snapshot() as snapshot:
        values, counts = (
            np.array([float(row[-1]) for chunk in snapshot.run(sql) for row in chunk])
            for sql in (asked.sql, counted)
        )
    rng = np.random.default_rng()
    shape = (10 * _MANY, len(values))
    parts = 2 if asked.is_average else 1
    noise = rng.laplace(0, parts * asked.rows * asked.reach, shape)
    if not asked.is_average:
        whole = np.rint(noise) if "COUNT" in asked.sql else noise
        return float(np.median(np.abs(whole) / values))
    noisy = (values * counts + noise) / np.maximum(1, counts + rng.laplace(0, parts * asked.rows, shape))
    return float(np.median(np.abs(noisy - values) / values))


# --- bars ---------------------------------------------------------------------------------------------------


def _monthly_visits(size: Size) -> Iterator[Figure]:
    """Yield whether bars hold where a person's rows lie in more months than any small number of groups."""
    path = size.folder / "accuracy-visits.duckdb"
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE person AS SELECT i AS id FROM range(50000) AS t(i)")
            connection.execute("ALTER TABLE person ADD PRIMARY KEY (id)")
            connection.execute(
                "CREATE TABLE visit AS SELECT i % 50000 AS person_id, CAST(hash(i) % 24 AS INTEGER) AS month "
                "FROM range(1000000) AS t(i)"
            )
    tables = """
[tables.person]
unit = "id"
[tables.visit]
unit = { column = "person_id", references = "person.id" }
max_rows = 20
[tables.visit.columns]
month = { bounds = [0, 23] }
"""
    with _session(path, size.folder / "accuracy-visits.toml", tables, "0.1") as session:
        sql = "SELECT month, COUNT(*) AS n FROM visit GROUP BY month ORDER BY month"
        yield from _coverage("visits by month", list(answers(session, sql, _DRAWS)))


def _demo(size: Size) -> Iterator[Figure]:
    """Yield whether bars hold in the walk of `dpsql demo`, at the epsilons that it asks with."""
    with Session.open(make_campus(size)) as session:
        session.execute("SET dpsql.intervals = 0.95")
        for question in QUESTIONS:
            session.execute(f"SET dpsql.epsilon = {question.epsilon}")
            name = " ".join(question.sql.split())
            yield from _coverage(f"demo: {name}", list(answers(session, question.sql, _DRAWS)))


def _coverage(name: str, found: list[Number]) -> Iterator[Figure]:
    least, most = _extremes(found)
    yield Figure(f"{name}: bars that hold, the worst", least, _LEAST, "%", _held_text(found), is_rate=True)
    yield Figure(f"{name}: bars that hold, the widest", most, _MOST, "%")


def _extremes(found: list[Number]) -> tuple[float, float]:
    """Return how many percent of the draws hold the truth, at the worst and at the best place."""
    places: dict[object, list[bool]] = defaultdict(list)
    for one in found:
        places[one.place].append(one.is_held)
    shares = [100 * statistics.fmean(held) for held in places.values()]
    return min(shares), max(shares)


def _held_text(found: list[Number]) -> str:
    whole = 100 * statistics.fmean(one.is_held for one in found)
    off = statistics.median(abs(one.said - one.truth) for one in found)
    places = max(0, 3 - math.ceil(math.log10(off or 1)))
    return f"bars hold {whole:.1f} % in all, half of the answers within {off:.{places}f}"


# --- sessions -----------------------------------------------------------------------------------------------


@contextmanager
def _session(database: Path, policy_path: Path, tables: str, epsilon: str) -> Iterator[Session]:
    """Open a session with a new ledger that has bars set."""
    ledger = policy_path.with_suffix(f".{len(list(policy_path.parent.glob('*.db')))}.db")
    text = _HEAD.format(path=database, ledger=ledger, epsilon=epsilon) + tables
    policy = parse_policy(text, policy_path)
    with Session(Dataset(policy, DuckDBBackend(database), open_ledger(policy, create=True))) as session:
        session.execute("SET dpsql.intervals = 0.95")
        yield session
