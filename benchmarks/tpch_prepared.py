"""TPC-H with a prepared copy of its largest table: rows numbered within a customer, whose key stands in each of them.

The statements are those of TPC-H, which read `lineitem_prepared` in place of `lineitem` wherever that is answered; each
is held against its own exact text over the tables as they are. The database and its scale are those of `tpch`.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import duckdb

from benchmarks import tpch
from benchmarks.figure import Figure, Size, Times, compare
from benchmarks.tpch_queries import QUERIES
from dpsql import Session
from dpsql.backends import DuckDBBackend, Snapshot
from dpsql.backends.prepared_rows import numbering_of, prepare
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Policy, parse_policy

__all__ = ["measure"]

_LINEITEM = re.compile(r"\blineitem\b")
_COPY = "lineitem_prepared"
_UNIT = 'unit = { column = "l_orderkey", references = "orders.o_orderkey" }'
_OWN = 'unit = { column = "o_custkey", references = "customer.c_custkey" }\nrow_number = "n"'
_LIMIT, _LIMIT_WITH = 1.55, 1.3
_LIMITS = {"Q1": 3.0}
"""Of statements that read the copy."""


def measure(size: Size) -> Iterator[Figure]:
    """Yield the ratio of each statement that reads the copy, and the geometric means of all without and with it."""
    path = tpch.make_database(size, tpch.scale_of(size))
    yield from _made(size, path)
    without: list[float] = []
    with_: list[float] = []
    backend = DuckDBBackend(path)
    policy = _policy(size, path)
    with (
        backend.snapshot() as snapshot,
        Session(Dataset(policy, backend, open_ledger(policy, create=True))) as session,
    ):
        for number, sql in QUERIES.items():
            as_it_is = _ratio(session, snapshot, sql, sql, size)
            if as_it_is is None:
                continue
            asked = _LINEITEM.sub(_COPY, sql)
            prepared = None if asked == sql else _ratio(session, snapshot, sql, asked, size)
            without.append(as_it_is[0])
            with_.append((prepared or as_it_is)[0])
            if prepared is not None:
                title = f"Q{number}, prepared, {prepared[1]}"
                where = f"{as_it_is[0]:.3g} x as it is"
                yield Figure(title, prepared[0], _LIMITS.get(f"Q{number}"), "x", where)
    means = [statistics.geometric_mean(ratios) for ratios in (without, with_)]
    yield Figure("geometric mean, as the tables are", means[0], _LIMIT, "x", f"{len(without)} answered")
    yield Figure("geometric mean, with the copy", means[1], _LIMIT_WITH, "x", f"worst {max(with_):.3g}")


def _ratio(
    session: Session, snapshot: Snapshot, exact: str, asked: str, size: Size
) -> tuple[float, str] | None:
    """Return what a statement's queries take beside the exact text, and how rows are bounded; None: it is refused."""
    try:
        releases = session.explain(asked).plan.releases
    except Refusal:
        return None
    texts = [
        query.sql for one in releases for query in _queries(one) if not (query.salted or query.intermediates)
    ]
    if not releases or len(texts) < sum(len(_queries(one)) for one in releases):
        return None  # of public tables, or with parameters that a run gives

    def run(sql: str) -> None:
        for _ in snapshot.run(sql):
            pass

    def raw() -> Times:
        return Times.of(lambda: run(exact))

    def ours() -> Times:
        return Times.of(lambda: [run(text) for text in texts])

    raw(), ours()
    is_numbered = all(one.bounding.numbered is not None for one in releases)
    return compare(raw, ours, size.repeats).ratio, "numbered" if is_numbered else "by weight"


def _queries(release: ReleasePlan) -> tuple[BackendQuery, ...]:
    return release.queries(tuple(range(len(release.measurements))))


def _made(size: Size, path: Path) -> Iterator[Figure]:
    """Make the copy, unless it is there."""
    url = f"duckdb:{path}"
    with duckdb.connect(str(path), read_only=True) as connection:
        found = connection.execute(
            "SELECT COUNT(*) FROM duckdb_tables() WHERE table_name = $1", [_COPY]
        ).fetchone()
    if found == (1,):
        return
    policy = parse_policy(
        tpch.policy_text(url, f"sqlite:{size.folder / 'ledger-tpch-copy.db'}"), size.folder / "tpch.toml"
    )
    backend = DuckDBBackend(path)
    with backend.snapshot() as snapshot:
        live = snapshot.schema()
    backend.close_idle()
    numbering = numbering_of("lineitem", policy, policy.tables["lineitem"], live, _COPY, "n")
    spent = Times.of(lambda: prepare(url, numbering, live))
    yield Figure(
        "the copy of lineitem is made",
        spent.wall / 1000,
        None,
        "s",
        f"processor {spent.processor / 1000:.0f} s",
    )


def _policy(size: Size, path: Path) -> Policy:
    ledger = size.folder / f"ledger-tpch-{len(list(size.folder.glob('ledger-tpch-*.db')))}.db"
    text = tpch.policy_text(f"duckdb:{path}", f"sqlite:{ledger}")
    (table,) = (one for one in text.split("\n[tables.") if one.startswith("lineitem]"))
    columns = text.split("[tables.lineitem.columns]\n")[1].split("\n[tables.")[0]
    assert _UNIT in table
    copied = table.replace(_UNIT, _OWN).replace("lineitem]", f"{_COPY}]", 1)
    return parse_policy(
        f"{text}\n[tables.{copied}\n[tables.{_COPY}.columns]\n{columns}\no_custkey = {{}}\n",
        size.folder / "tpch.toml",
    )
