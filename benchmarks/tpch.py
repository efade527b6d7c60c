"""The queries of TPC-H at scale 1, against the analyst's own exact queries in the same database.

The tables are made by `tpchgen-cli` (of the dev group) in the run's folder, 700 MB. DPSQL_TPCH names a
folder to keep them in; a `tpch.duckdb` that is there is used. The policy is that of the grammar tests.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from benchmarks.figure import Figure, Size, Times, compare, milliseconds, of_each
from benchmarks.tpch_queries import QUERIES
from dpsql import Session
from dpsql.backends import DuckDBBackend, Snapshot
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import Refusal
from dpsql.policy import Policy, parse_policy
from dpsql.policy.live_schema import LiveSchema
from dpsql.sql.statement import AdmittedQuery, parse_statement

__all__ = ["make_database", "measure", "policy_text", "scale_of"]

_T = TypeVar("_T")

_POLICY = Path(__file__).parents[1] / "grammar_tests" / "policies" / "tpch.toml"
_LIMITS = {"Q1": 8.4}
"""Where it is not 8: eight sums with their clamps, over all rows."""
_NOT_OF_TPCH = ("uli]", "uli.", "student]", "student.")

_TABLES = """
CREATE TABLE region (
    r_regionkey INTEGER PRIMARY KEY, r_name VARCHAR NOT NULL, r_comment VARCHAR);
CREATE TABLE nation (
    n_nationkey INTEGER PRIMARY KEY, n_name VARCHAR NOT NULL,
    n_regionkey INTEGER NOT NULL REFERENCES region (r_regionkey), n_comment VARCHAR);
CREATE TABLE part (
    p_partkey BIGINT PRIMARY KEY, p_name VARCHAR NOT NULL, p_mfgr VARCHAR NOT NULL, p_brand VARCHAR NOT NULL,
    p_type VARCHAR NOT NULL, p_size INTEGER NOT NULL, p_container VARCHAR NOT NULL,
    p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR NOT NULL);
CREATE TABLE supplier (
    s_suppkey BIGINT PRIMARY KEY, s_name VARCHAR NOT NULL, s_address VARCHAR NOT NULL,
    s_nationkey INTEGER NOT NULL REFERENCES nation (n_nationkey), s_phone VARCHAR NOT NULL,
    s_acctbal DECIMAL(15,2) NOT NULL, s_comment VARCHAR NOT NULL);
CREATE TABLE partsupp (
    ps_partkey BIGINT NOT NULL REFERENCES part (p_partkey),
    ps_suppkey BIGINT NOT NULL REFERENCES supplier (s_suppkey), ps_availqty INTEGER NOT NULL,
    ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (
    c_custkey BIGINT PRIMARY KEY, c_name VARCHAR NOT NULL, c_address VARCHAR NOT NULL,
    c_nationkey INTEGER NOT NULL REFERENCES nation (n_nationkey), c_phone VARCHAR NOT NULL,
    c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment VARCHAR NOT NULL, c_comment VARCHAR NOT NULL);
CREATE TABLE orders (
    o_orderkey BIGINT PRIMARY KEY, o_custkey BIGINT NOT NULL REFERENCES customer (c_custkey),
    o_orderstatus VARCHAR NOT NULL, o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL,
    o_orderpriority VARCHAR NOT NULL, o_clerk VARCHAR NOT NULL, o_shippriority INTEGER NOT NULL,
    o_comment VARCHAR NOT NULL);
CREATE TABLE lineitem (
    l_orderkey BIGINT NOT NULL REFERENCES orders (o_orderkey), l_partkey BIGINT NOT NULL, l_suppkey BIGINT NOT NULL,
    l_linenumber INTEGER NOT NULL, l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL,
    l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL, l_returnflag VARCHAR NOT NULL,
    l_linestatus VARCHAR NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL,
    l_receiptdate DATE NOT NULL, l_shipinstruct VARCHAR NOT NULL, l_shipmode VARCHAR NOT NULL,
    l_comment VARCHAR NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber));
"""
_NAMES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")


def measure(size: Size) -> Iterator[Figure]:
    """Yield each query's ratio to the exact one, their geometric mean, and the time from text to plan.

    A statement of releases counts with what its queries take in the owner's engine, one of public tables as a whole.
    """
    ratios: list[float] = []
    refused: list[str] = []
    answered: list[str] = []
    policy = _policy(size, make_database(size, scale_of(size)))
    backend = _TimedBackend(Path(policy.database.removeprefix("duckdb:")))
    with (
        backend.snapshot() as snapshot,
        Session(Dataset(policy, backend, open_ledger(policy, create=True))) as session,
    ):
        session.execute("SET dpsql.reuse = off")
        for number, sql in QUERIES.items():
            try:
                figure = _compared(f"Q{number}", sql, session, backend, snapshot, size)
            except Refusal as refusal:
                refused.append(f"Q{number} {refusal.sqlstate}")
                continue
            ratios.append(figure.measured)
            answered.append(sql)
            yield figure
        plans = of_each(
            [partial(milliseconds, partial(_plan, session, sql)) for sql in answered], 3 * size.repeats
        )
    yield Figure("refused queries", len(refused), None, "of 22", ", ".join(refused))
    worst = f"worst {max(ratios):.3g}"
    yield Figure("geometric mean of the answered", statistics.geometric_mean(ratios), 1.55, "x", worst)
    yield Figure("text to plan, median", plans[0], 10, "ms", f"slowest statement {max(plans[1:]):.1f} ms")


def _compared(
    name: str, sql: str, session: Session, backend: _TimedBackend, snapshot: Snapshot, size: Size
) -> Figure:
    """Compare a statement with the same text run raw. Raises Refusal."""
    has_releases = bool(session.explain(sql).plan.releases)
    wholes: list[float] = []

    def raw() -> Times:
        return Times.of(lambda: list(snapshot.run(sql)))

    def ours() -> Times:
        backend.spent.clear()
        whole = Times.of(partial(session.execute, sql))
        wholes.append(whole.wall)
        if not has_releases:
            return whole
        return Times(sum(t.wall for t in backend.spent), sum(t.processor for t in backend.spent))

    raw(), ours()
    found = compare(raw, ours, size.repeats)
    return Figure(
        name, found.ratio, _LIMITS.get(name, 8), "x", f"{found}; the whole statement {min(wholes):.0f} ms"
    )


def _plan(session: Session, sql: str) -> None:
    session.dataset.prepared.clear()
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    session._prepare(query, (), sql)


# --- the owner's engine, with a clock ------------------------------------------------------------------------


class _TimedBackend(DuckDBBackend):
    """A backend that notes what every statement takes in the engine, its rows fetched, in `spent`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.spent: list[Times] = []

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[Any]:
        with super().snapshot(owner) as snapshot:
            yield _TimedSnapshot(snapshot, self.spent)


class _TimedSnapshot:
    def __init__(self, snapshot: Any, spent: list[Times]) -> None:
        self._snapshot = snapshot
        self._spent = spent

    def schema(self) -> LiveSchema:
        found: LiveSchema = self._snapshot.schema()
        return found

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._snapshot.catalog(sql)
        return found

    def run(
        self, sql: str, parameters: Sequence[object] = (), size: int = 65536, *, is_direct: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        return iter(self._timed(lambda: list(self._snapshot.run(sql, parameters, size, is_direct=is_direct))))

    def columns(self, *asked: Any) -> Any:
        return self._timed(lambda: self._snapshot.columns(*asked))

    def cancel(self) -> None:
        self._snapshot.cancel()

    def _timed(self, action: Callable[[], _T]) -> _T:
        found: list[_T] = []
        self._spent.append(Times.of(lambda: found.append(action())))
        return found[0]


# --- the data -------------------------------------------------------------------------------------------------


def make_database(size: Size, scale: float) -> Path:
    """Make the tables at a scale, unless they are there, and return the file's path."""
    folder = Path(os.environ.get("DPSQL_TPCH") or size.folder).absolute()
    name = "tpch" if scale == scale_of(size) else f"tpch-{scale:g}"
    path = folder / f"{name}.duckdb"
    if path.exists():
        return path
    raw, unfinished = folder / f"{name}-parquet", folder / f"{name}.duckdb.unfinished"
    raw.mkdir(parents=True, exist_ok=True)
    unfinished.unlink(missing_ok=True)
    beside = Path(sys.executable).with_name("tpchgen-cli")
    command = [str(beside) if beside.exists() else "tpchgen-cli", "parquet", "-s", str(scale)]
    subprocess.run([*command, "--output-dir", str(raw)], check=True, stdout=subprocess.DEVNULL)
    with duckdb.connect(str(unfinished)) as connection:
        connection.execute(_TABLES)
        for table in _NAMES:
            connection.execute(
                f"INSERT INTO {table} BY NAME SELECT * FROM read_parquet($1)", [str(raw / f"{table}.parquet")]
            )
    shutil.rmtree(raw)
    unfinished.rename(path)
    return path


def scale_of(size: Size) -> float:
    """Return the scale of the times; a run with few rows takes little."""
    return 1 if size.rows >= 1_000_000 else 0.01


def _policy(size: Size, database: Path) -> Policy:
    """Return the policy on this database, with a ledger of its own."""
    ledger = size.folder / f"ledger-tpch-{len(list(size.folder.glob('ledger-tpch-*.db')))}.db"
    return parse_policy(policy_text(f"duckdb:{database}", f"sqlite:{ledger}"), size.folder / "tpch.toml")


def policy_text(database: str, ledger: str) -> str:
    """Return the grammar tests' policy on a database, without the tables that are not TPC-H's."""
    head, *tables = _POLICY.read_text().split("\n[tables.")
    privacy = head[head.index("[privacy]") :].replace("epsilon = 1000", "epsilon = 9000", 1)
    kept = [table for table in tables if not table.startswith(_NOT_OF_TPCH)]
    return "\n[tables.".join([f'database = "{database}"\nledger = "{ledger}"\n{privacy}', *kept])
