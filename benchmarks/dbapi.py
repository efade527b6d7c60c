"""The interface of PEP 249: what it adds to a session, and a million released rows as an Arrow table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.dataset import open_bench
from benchmarks.demo import campus_queries, make_campus
from benchmarks.figure import Figure, Size, milliseconds
from dpsql.dbapi import Connection
from dpsql.engine import Session

__all__ = ["measure"]

_GROUPS = "SELECT place, COUNT(*) AS n FROM person GROUP BY place"
_FRESH = "SELECT COUNT(*) AS n, AVG(gpa) AS a FROM student WHERE gpa > 2 + {} / 1000000000"


def measure(size: Size) -> Iterator[Figure]:
    """Yield what a cursor adds to a statement, in percent, and rows a second on their way into Arrow."""
    with Session.open(make_campus(size)) as session:
        connection = Connection(session)
        queries = campus_queries(session)
        pairs = [
            (partial(_stored, session, text, partial(session.execute, text)),
             partial(_stored, session, text, partial(_fetched, connection, text)))
            for text in queries
        ]  # fmt: skip
        yield _added("stored measures, statement planned before", pairs, 20 * size.repeats)
        session.execute("SET dpsql.epsilon = 0.000001")
        pairs = [(partial(_fresh, session.execute, "$1"), partial(_fresh, connection.execute, "?"))]
        yield _added("never asked before", pairs, 20 * size.repeats)
        pairs = [
            (partial(milliseconds, partial(session.execute, text)),
             partial(milliseconds, partial(_fetched, connection, text)))
            for text in queries
        ]  # fmt: skip
        yield _added("identical statement again", pairs, 20 * size.repeats, None)
    yield from _into_arrow(size)


def _into_arrow(size: Size) -> Iterator[Figure]:
    with open_bench(size) as bench:
        bench.session.execute("SET dpsql.epsilon = 5")
        cursor = Connection(bench.session).cursor()
        whole = milliseconds(partial(cursor.execute, _GROUPS)) / 1000
        best = min(_arrow_seconds(cursor.scroll, cursor.fetch_arrow_table) for _ in range(size.repeats))
        where = f"{cursor.rowcount} rows; the statement {whole:.2f} s, of which the engine {bench.clocks.engine:.2f} s"
        yield Figure(
            "Arrow table, BIGINT key and COUNT(*)", cursor.rowcount / best / 1e6, 5, "M rows/s", where, True
        )
        frame = min(_arrow_seconds(cursor.scroll, cursor.fetchdf) for _ in range(size.repeats))
        yield Figure("pandas, the same", cursor.rowcount / frame / 1e6, None, "M rows/s", is_rate=True)


def _arrow_seconds(scroll: Callable[[int, str], None], fetch: Callable[[], object]) -> float:
    scroll(0, "absolute")
    return milliseconds(fetch) / 1000


def _added(
    name: str,
    pairs: list[tuple[Callable[[], float], Callable[[], float]]],
    repeats: int,
    limit: float | None = 5,
) -> Figure:
    """Return what the second way takes more, in percent of the first: the median over statements of the bests."""
    bests = [
        tuple(map(min, zip(*((one(), other()) for _ in range(repeats)), strict=True))) for one, other in pairs
    ]
    added = statistics.median(100 * (other / one - 1) for one, other in bests)
    session, cursor = (statistics.median(column) for column in zip(*bests, strict=True))
    where = f"session {session:.3f} ms, cursor {cursor:.3f} ms"
    return Figure(f"added by a cursor, {name}", added, limit, "%", where)


def _stored(session: Session, text: str, ask: Callable[[], object]) -> float:
    session.dataset.answers.clear()
    return milliseconds(ask)


def _fresh(ask: Callable[[str, list[object]], object], placeholder: str) -> float:
    """Return the milliseconds of a statement whose text and measures are new: planned, charged, run, stored."""
    number = time.perf_counter_ns()
    return milliseconds(partial(ask, f"{_FRESH.format(placeholder)} -- {number}", [number % 10**9]))


def _fetched(connection: Connection, text: str) -> object:
    return connection.cursor().execute(text).fetchall()
