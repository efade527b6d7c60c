"""Questions that cost nothing: everything is in the store, or the very statement was answered before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.dataset import Clocks, TimedSealedEngine
from benchmarks.demo import campus_queries, make_campus
from benchmarks.figure import Figure, Size, milliseconds, of_each
from dpsql import Session
from dpsql.backends import open_backend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import load_policy

__all__ = ["measure"]


def measure(size: Size) -> Iterator[Figure]:
    """Yield our own work for a stored statement (planned anew, and planned before), and a repeated one's time."""
    policy = load_policy(make_campus(size))
    clocks = Clocks()
    backend, store = open_backend(policy.database), open_ledger(policy, create=False)
    with Session(Dataset(policy, backend, store, TimedSealedEngine(clocks))) as session:
        queries = campus_queries(session)
        stored = of_each(
            [partial(_stored, session, clocks, text, False) for text in queries], 3 * size.repeats
        )
        sealed = of_each([partial(_sealed, session, clocks, text) for text in queries], 3 * size.repeats)
        planned = of_each(
            [partial(_stored, session, clocks, text, True) for text in queries], 3 * size.repeats
        )
        for text in queries:
            session.execute(text)
        again = of_each([partial(milliseconds, partial(session.execute, text)) for text in queries], 10)
    where = f"the sealed engine besides {sealed[0]:.1f} ms; slowest statement {max(planned[1:]):.1f} ms"
    yield Figure("stored measures, statement planned before", planned[0], 2, "ms", where)
    yield Figure("stored measures, text not seen before", stored[0], None, "ms", "text to plan included")
    yield Figure("identical statement again", again[0], 0.3, "ms", f"slowest {max(again[1:]):.2f} ms")


def _stored(session: Session, clocks: Clocks, text: str, is_planned: bool) -> float:
    session.dataset.answers.clear()
    if not is_planned:
        session.dataset.prepared.clear()
    clocks.reset()
    whole = milliseconds(partial(session.execute, text))
    return whole - clocks.sealed * 1000


def _sealed(session: Session, clocks: Clocks, text: str) -> float:
    session.dataset.answers.clear()
    clocks.reset()
    session.execute(text)
    return clocks.sealed * 1000
