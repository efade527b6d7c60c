"""What it takes to verify a plan before it is charged: beside its planning, and where it was verified before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from benchmarks.demo import campus_queries, open_campus
from benchmarks.figure import Figure, Size, milliseconds, of_each
from dpsql import Session
from dpsql.release.verifying import certificate_of
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.verify import verify
from dpsql.verify.certificate import Certificate

__all__ = ["measure"]


def measure(size: Size) -> Iterator[Figure]:
    """Yield the time to verify the demo's statements, the first time and again; in the same run as their planning."""
    with open_campus(size) as session:
        queries = campus_queries(session)
        with session.dataset.snapshot(session) as snapshot:
            facts = session.dataset.verifier.facts(snapshot)
        plans = [session.explain(text).plan for text in queries]
        certificates = [certificate_of(plan.releases, facts) for plan in plans]
        times = 3 * size.repeats
        planned = of_each([partial(milliseconds, partial(_plan, session, text)) for text in queries], times)
        first = of_each([partial(milliseconds, partial(verify, one, facts)) for one in certificates], times)
        for one in certificates:
            session.dataset.verifier.certified(one)
        again = of_each([partial(milliseconds, partial(_again, session, one)) for one in certificates], times)
    ratio = median(a / b for a, b in zip(first[1:], planned[1:], strict=True))
    where = f"{ratio:.2f} of its planning, {planned[0]:.2f} ms; slowest statement {max(first[1:]):.1f} ms"
    yield Figure("verify a plan, median of the demo's statements", first[0], 5, "ms", where)
    yield Figure(
        "verify it again, under the same facts and claim", again[0], 1, "ms", "its text, and a lookup"
    )


def _again(session: Session, certificate: Certificate) -> None:
    session.dataset.verifier.certified(certificate)


def _plan(session: Session, text: str) -> None:
    session.dataset.prepared.clear()
    query = parse_statement(text)
    assert isinstance(query, AdmittedQuery)
    session._prepare(query, (), text)
