"""What bars cost of every statement that the grammar cases answer, at epsilons that a policy may allow: the dearest.

Five minutes' worth of the statements, which their text chooses; all of them with `--all`. Each is asked where losses
add up in epsilon and where they do in rho.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.figure import Figure, Size, Times
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import DpsqlError, PolicyError
from dpsql.policy import Policy, parse_policy
from dpsql.testing.case_file import Accepted, Case, read_cases

__all__ = ["measure"]

CASES = Path(__file__).parent.parent / "grammar_tests"
EPSILONS = ("0.001", "0.1", "1", "10")
_ACCOUNTINGS = ("pure", "zcdp")
_MOST = 0.5
"""Processor seconds that bars may take."""
_SECONDS, _QUICKLY = 300, 20
_PAIRS = 4
_SHOWN = 10


def measure(size: Size, *, is_whole: bool = False) -> Iterator[Figure]:
    """Yield the dearest bars, in processor seconds, and which statement has them; those over the limit are printed as
    they are found.
    """
    cases = [case for path in sorted(CASES.rglob("*.case")) for case in read_cases(path)]
    cases = [case for case in cases if isinstance(case.expected, Accepted) and case.engine == "duckdb"]
    cases.sort(key=lambda case: hashlib.sha256(f"{case.policy} {case.sql}".encode()).digest())
    end = time.monotonic() + (_SECONDS if size.repeats > 2 else _QUICKLY)
    costs: list[tuple[float, str]] = []
    asked = 0
    with ExitStack() as stack:
        asking: dict[tuple[str, str], _Asking] = {}
        for case in cases:
            if time.monotonic() > end and not is_whole:
                break
            asked += 1
            for accounting in _ACCOUNTINGS:
                key = case.policy, accounting
                if key not in asking:
                    connection = stack.enter_context(duckdb.connect(config={"threads": 1}))
                    asking[key] = _Asking(*key, connection, size.folder)
                for cost, epsilon in asking[key].costs(case):
                    said = f"{case.policy}, {case.name}, epsilon {epsilon} in {accounting}: {case.sql}"
                    costs.append((cost, said))
                    if cost > _MOST:
                        print(f"    {cost:.2f} s: {said}", flush=True)
    costs.sort(reverse=True)
    for cost, said in costs[:_SHOWN]:
        yield Figure(f"bars of {' '.join(said.split())[:150]}", cost, _MOST, "s")
    yield Figure("statements of the cases asked with bars", asked, None, "statements", f"of {len(cases)}")


class _Asking:
    """Asks a policy's statements under one accounting, in sessions whose ledgers are new where they are used up."""

    def __init__(
        self, name: str, accounting: str, connection: duckdb.DuckDBPyConnection, ledgers: Path
    ) -> None:
        policies = CASES / "policies"
        text = (policies / f"{name}.toml").read_text()
        if "\naccounting = " not in text:
            text = text.replace("\n[privacy]\n", f'\n[privacy]\naccounting = "{accounting}"\n')
        policy: Policy | None = None
        with suppress(PolicyError):  # rho needs a delta, and knows no randomised answers
            policy = parse_policy(text, policies / f"{name}.toml")
        is_meant = policy is not None and policy.privacy.accounting.value == accounting
        self._policy = policy if is_meant else None
        connection.execute((policies / f"{name}.sql").read_text())
        self._backend = DuckDBBackend.over(connection)
        self._ledgers = ledgers / f"{name}-{accounting}"
        self._made = 0
        self._sessions: dict[str, Session] = {}

    def costs(self, case: Case) -> Iterator[tuple[float, str]]:
        """Yield the processor seconds that a first answer's bars take, and at which epsilon, where it is allowed."""
        for epsilon in () if self._policy is None else EPSILONS:
            cost = self._cost(case, epsilon)
            if cost is not None:
                yield cost, epsilon

    def _cost(self, case: Case, epsilon: str) -> float | None:
        """Return what an answer takes with bars less what it takes without, each the least of some that were asked in
        turn; of an answer that takes less than the limit, what all of it takes."""
        whole = self._asked(case, epsilon, "0.95")
        if whole is None or whole < _MOST:
            return whole
        pairs = [[self._asked(case, epsilon, level) for level in ("off", "0.95")] for _ in range(_PAIRS)]
        least = (
            min((one for one in own if one is not None), default=None) for own in zip(*pairs, strict=True)
        )
        plain, barred = least
        return whole if plain is None or barred is None else barred - plain

    def _asked(self, case: Case, epsilon: str, level: str) -> float | None:
        """Return the processor seconds of an answer that is planned anew; None: it is refused."""
        for _ in range(2):
            session = self._sessions.get(case.analyst) or self._opened(case)
            session.execute(f"SET dpsql.epsilon = {epsilon}")
            session.execute(f"SET dpsql.intervals = {level}")
            session.dataset.prepared.clear()
            try:
                return Times.of(partial(session.execute, case.sql, case.parameters)).processor / 1000
            except DpsqlError as error:
                if error.sqlstate != "53V01":
                    return None
                del self._sessions[case.analyst]
        return None

    def _opened(self, case: Case) -> Session:
        self._made += 1
        path = self._ledgers.with_name(f"{self._ledgers.name}-{self._made}.db")
        assert self._policy is not None
        policy = replace(self._policy, ledger=f"sqlite:{path}", ledger_log=path)
        session = Session(Dataset(policy, self._backend, open_ledger(policy, create=True)), case.analyst)
        session.execute("SET dpsql.reuse = off")
        self._sessions[case.analyst] = session
        return session
