"""What bars cost of every statement that the grammar cases answer, at epsilons that a policy may allow: the worst."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb

from benchmarks.figure import Figure, Size, Times
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.budget import Caps, Promise, open_store
from dpsql.engine.dataset import Dataset
from dpsql.errors import DpsqlError
from dpsql.mechanisms import ATTO, NANO
from dpsql.policy import parse_policy
from dpsql.testing.case_file import Accepted, Case, read_cases

__all__ = ["measure"]

CASES = Path(__file__).parent.parent / "grammar_tests"
EPSILONS = ("0.01", "0.1", "1", "10")
_QUICKLY = 20
"""Every so-manieth statement is asked where all that is wanted is that it runs."""


def measure(size: Size) -> Iterator[Figure]:
    """Yield for each epsilon the dearest bars of one statement, in processor seconds, and which statement has them."""
    cases: dict[str, list[Case]] = {}
    for path in sorted(CASES.rglob("*.case")):
        for case in read_cases(path):
            if isinstance(case.expected, Accepted) and case.engine == "duckdb":
                cases.setdefault(case.policy, []).append(case)
    every = 1 if size.repeats > 2 else _QUICKLY
    found: dict[str, list[tuple[float, str]]] = {epsilon: [] for epsilon in EPSILONS}
    for name, asked in sorted(cases.items()):
        with duckdb.connect(config={"threads": 1}) as connection:
            asking = _Asking(name, connection, size.folder)
            for case in asked[::every]:
                for epsilon, costs in found.items():
                    cost = asking.cost(case, epsilon)
                    costs += [] if cost is None else [(cost, case.name)]
    for epsilon, costs in found.items():
        costs.sort(reverse=True)
        where = ", ".join(f"{name} {cost:.2f}" for cost, name in costs[:4])
        where += f"; {len(costs)} statements"
        yield Figure(f"bars of the cases' statements, epsilon {epsilon}", costs[0][0], 0.5, "s", where)


class _Asking:
    """Asks a policy's statements, in sessions whose ledgers are new where they are used up."""

    def __init__(self, name: str, connection: duckdb.DuckDBPyConnection, ledgers: Path) -> None:
        policies = CASES / "policies"
        self._policy = parse_policy((policies / f"{name}.toml").read_text(), policies / f"{name}.toml")
        connection.execute((policies / f"{name}.sql").read_text())
        self._backend = DuckDBBackend.over(connection)
        self._ledgers, self._made = ledgers, 0
        self._sessions: dict[tuple[str, str], Session] = {}

    def cost(self, case: Case, epsilon: str) -> float | None:
        """Return the processor seconds that a first answer's bars take; None: it is refused at this epsilon."""
        for _ in range(2):
            session = self._sessions.get((case.analyst, epsilon)) or self._opened(case, epsilon)
            try:
                return _cost(session, case)
            except DpsqlError as error:
                if error.sqlstate != "53V01":
                    return None
                del self._sessions[case.analyst, epsilon]
        return None

    def _opened(self, case: Case, epsilon: str) -> Session:
        self._made += 1
        policy, path = self._policy, self._ledgers / f"{self._policy.path.stem}-{self._made}.db"
        caps = Caps(
            int(policy.privacy.epsilon * NANO),
            int(policy.privacy.delta * ATTO),
            {name: int(one.epsilon * NANO) for name, one in policy.analysts.items()},
        )
        time = policy.privacy.time
        promise = Promise() if time is None else Promise(period=time.period, zone=time.zone, since=time.since)
        store = open_store(f"sqlite:{path}", policy.dataset_id, caps, create=True, log=path, promise=promise)
        session = Session(Dataset(policy, self._backend, store), case.analyst)
        session.execute("SET dpsql.reuse = off")
        session.execute(f"SET dpsql.epsilon = {epsilon}")
        self._sessions[case.analyst, epsilon] = session
        return session


def _cost(session: Session, case: Case) -> float:
    """Return what the first answer with bars takes beside one without; a statement asked for the second time."""
    times = []
    for level in ("off", "off", "0.95"):
        session.execute(f"SET dpsql.intervals = {level}")
        times.append(Times.of(lambda: session.execute(case.sql, case.parameters)).processor / 1000)
    return times[2] - times[1]
