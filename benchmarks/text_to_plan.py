"""From a statement's text to its plan: what EXPLAIN and Describe cost, and what comes before every query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import sqlglot

from benchmarks.demo import campus_queries, open_campus
from benchmarks.figure import Figure, Size, milliseconds, of_each
from dpsql import Session
from dpsql.sql.statement import AdmittedQuery, parse_statement

__all__ = ["measure"]


def measure(size: Size) -> Iterator[Figure]:
    """Yield the time from text to plan: the median over the demo's statements, and of one with ninety sums."""
    with open_campus(size) as session:
        queries = campus_queries(session)

        def median(action: Callable[[str], object]) -> list[float]:
            return of_each(
                [partial(milliseconds, partial(action, text)) for text in queries], 3 * size.repeats
            )

        whole = median(partial(_plan, session))
        parse = median(lambda text: sqlglot.parse(text, read="postgres"))
        admitted = median(parse_statement)
        wide = of_each([partial(milliseconds, partial(_plan, session, _WIDE))], 3 * size.repeats)
    where = (
        f"sqlglot {parse[0]:.2f} ms (compiled: {sqlglot.parser.__file__.endswith('.so')}), "
        f"with our admission {admitted[0]:.2f} ms; slowest statement {max(whole[1:]):.1f} ms"
    )
    yield Figure("text to plan, median of the demo's statements", whole[0], 3, "ms", where)
    yield Figure(
        "text to plan, a statement with 90 sums", wide[0], 30, "ms", "SUM(days_out + n) of a loan, by branch"
    )


_SUMS = ", ".join(f"SUM(days_out + {number})" for number in range(90))
_WIDE = f"SELECT branch, {_SUMS} FROM loan GROUP BY branch"


def _plan(session: Session, text: str) -> None:
    session.dataset.prepared.clear()
    query = parse_statement(text)
    assert isinstance(query, AdmittedQuery)
    session._prepare(query, (), text)
