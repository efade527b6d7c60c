"""What a rule of the text takes off errors, beside the rule that it replaced, in one run: new over old.

Statements are whole ones, through a session, drawn anew each time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist

import duckdb

from benchmarks.figure import Figure, Size
from benchmarks.tpch import make_database
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy

__all__ = ["measure"]

_HEAD = """
database = "duckdb:{path}"
ledger = "sqlite:{ledger}"
[privacy]
epsilon = 9999
delta = 0.01
[defaults]
epsilon = {epsilon}
delta = 0.000001
"""
_ORDERS = """
[tables.customer]
unit = "c_custkey"
[tables.orders]
unit = { column = "o_custkey", references = "customer.c_custkey" }
max_rows = 40
[tables.orders.columns]
o_custkey = {}
o_orderpriority = {}
"""
_BY_PRIORITY = "SELECT o_orderpriority, COUNT(*) AS n FROM orders GROUP BY o_orderpriority"


def measure(size: Size) -> Iterator[Figure]:
    """Yield each rule's errors over those of the rule before it."""
    yield from _found_keys(size)
    yield from _log_scale(size)


def _found_keys(size: Size) -> Iterator[Figure]:
    """A fifth of epsilon finds the groups, where half of it did (soundness.md 1.8)."""
    path = make_database(size, 0.1 if size.rows >= 1_000_000 else 0.01)
    draws = 1000 if size.rows >= 1_000_000 else 20
    with _session(path, size.folder / "levers-tpch.toml", _ORDERS, "1") as session:
        with session.dataset.backend.snapshot() as snapshot:
            truth = {row[0]: row[1] for chunk in snapshot.run(_BY_PRIORITY) for row in chunk}
        session.execute("SET dpsql.reuse = off")
        errors = {}
        for share in ("default", "0.5"):
            session.execute(f"SET dpsql.found_share = {share}")
            found = [row for _ in range(draws) for row in session.execute(_BY_PRIORITY).rows]
            errors[share] = statistics.median(abs(count - truth[key]) / truth[key] for key, count in found)
    ours, before = errors.values()
    where = f"{100 * ours:.3g} % beside {100 * before:.3g} %"
    yield Figure("a count by keys that are found, 40 rows a person", ours / before, 0.75, "x", where)
    limit = 0.125 if size.rows >= 1_000_000 else None
    yield Figure("the same, of the count", 100 * ours, limit, "%")


_WAGES = """
[tables.person]
unit = "id"
[tables.person.columns]
wage = { bounds = [0, 1000000] }
income = { bounds = [0, 1000000], scale = "log" }
"""


def _log_scale(size: Size) -> Iterator[Figure]:
    """A percentile of few incomes with a long tail, chosen among all whole numbers and by magnitude (1.20)."""
    path = size.folder / "levers-wages.duckdb"
    drawn = NormalDist(10.3, 0.9)
    wages = sorted(min(10**6, round(math.exp(drawn.inv_cdf((i + 0.5) / 500)))) for i in range(500))
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, wage INTEGER, income INTEGER)")
            connection.executemany(
                "INSERT INTO person VALUES ($1, $2, $2)", [[i, wage] for i, wage in enumerate(wages)]
            )
    truth = wages[449]
    draws = 800 if size.rows >= 1_000_000 else 40
    errors = {}
    with _session(path, size.folder / "levers-wages.toml", _WAGES, "0.1") as session:
        session.execute("SET dpsql.reuse = off")
        for column in ("income", "wage"):
            sql = f"SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY {column}) FROM person"
            said = [session.execute(sql).rows[0][0] for _ in range(draws)]
            errors[column] = statistics.median(abs(math.log(max(1, one) / truth)) for one in said)
    ours, before = errors["income"], errors["wage"]
    where = f"|ln error| {ours:.2f} beside {before:.2f} on all whole numbers"
    yield Figure("the 0.9 percentile of 500 incomes, epsilon 0.1", ours / before, 0.25, "x", where)
    limit = 0.25 if size.rows >= 1_000_000 else None
    yield Figure("the same, of its logarithm", ours, limit, "")


def _session(path: Path, policy_path: Path, tables: str, epsilon: str) -> Session:
    ledger = f"{policy_path.stem}.db"
    policy_path.with_name(ledger).unlink(missing_ok=True)
    text = _HEAD.format(path=path, ledger=ledger, epsilon=epsilon) + tables
    policy = parse_policy(text, policy_path)
    return Session(Dataset(policy, DuckDBBackend(path), open_ledger(policy, create=True)))
