"""What a rule of the text takes off errors, beside the rule that it replaced, in one run: new over old.

Statements are whole ones, through a session, drawn anew each time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

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


def _session(path: Path, policy_path: Path, tables: str, epsilon: str) -> Session:
    ledger = f"{policy_path.stem}.db"
    policy_path.with_name(ledger).unlink(missing_ok=True)
    text = _HEAD.format(path=path, ledger=ledger, epsilon=epsilon) + tables
    policy = parse_policy(text, policy_path)
    return Session(Dataset(policy, DuckDBBackend(path), open_ledger(policy, create=True)))
