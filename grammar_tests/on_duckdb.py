"""What an accepted case comes to on DuckDB: run once, for who holds it there and for who holds another engine to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from datasets import DataSets, run_on
from outcomes import explain
from replay import Asked, Cells, asked, cells_of

from dpsql import Session
from dpsql.budget import Charge
from dpsql.engine.answer import Answer
from dpsql.engine.explain import Explanation
from dpsql.testing.case_file import Case

__all__ = ["CasesOnDuckDB", "OnDuckDB", "Ran"]


@dataclass(frozen=True)
class OnDuckDB:
    """What another engine, and the verifier, is held to: what EXPLAIN knows, the answer, the parameters of each query, and exact measures.

    `before`: on the wild data; `after`: on the data of each neighbour whose turn it is.
    """

    explained: Explanation
    answer: Answer
    parameters: Sequence[tuple[object, ...]]
    before: list[Cells]
    after: list[list[Cells]]


@dataclass(frozen=True)
class Ran(OnDuckDB):
    """The same with what this engine is held to: `lists` were read by EXPLAIN, `spent` by the statement."""

    lists: list[str]
    spent: Charge
    queries: list[Asked]


def _spent(session: Session) -> Charge:
    """Return what a statement was charged: where the budget is by periods, each of those that it reached, alike."""
    store = session.dataset.store
    if session.policy.privacy.time is None:
        return store.spent()
    (sums,) = {sums for _, _, sums in store.slices()}
    return Charge(*sums)


@dataclass
class CasesOnDuckDB:
    """The cases that were run."""

    data: DataSets
    known: dict[tuple[str, str], OnDuckDB] = field(default_factory=dict)

    def run(self, case: Case) -> Ran:
        """Run an accepted case, and keep what another engine is held to."""
        policy = self.data.of(case.policy)
        session, backend = self.data.session(policy.policy, policy.backend, case.analyst)
        explained = explain(session, case)
        lists = [sql for sql, _ in backend.runs]
        answer = session.execute(case.sql, case.parameters)
        queries = asked(policy.policy, explained, backend.runs, "duckdb")
        neighbours = [policy.neighbours[number] for number in policy.in_turn(case)] if queries else []
        kept = OnDuckDB(
            explained, answer, [one.parameters for one in queries], cells_of(queries, run_on(policy.wild)),
            [cells_of(queries, run_on(neighbour)) for neighbour in neighbours],
        )  # fmt: skip
        self.known[str(case), case.sql] = kept
        spent = _spent(session)
        return Ran(explained, answer, kept.parameters, kept.before, kept.after, lists, spent, queries)

    def of(self, case: Case) -> OnDuckDB:
        """Return what a case came to, run now where it was not."""
        return self.known.get((str(case), case.sql)) or self.run(case)
