"""What bars cost of every statement that the grammar cases answer, at epsilons that a policy may allow: the dearest.

Five minutes' worth of the statements, which their text chooses; all of them with `--all`. Each is asked once at each
epsilon, where losses add up in epsilon and where they do in rho. What counts is the processor's time for what stands
above the release; where that is beyond the limit, what the same takes without bars is taken off.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb

from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine import spine
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
_CAP = Fraction(10**6)
"""Epsilon that all statements of a policy may spend: so that no ledger is used up."""
_SECONDS, _QUICKLY = 300, 20
_PAIRS = 4
_SHOWN = 10
_ABOVE = ("compile_public", "check_public", "run_public")
"""What makes bars: of the text, of no rows, of what is released."""


def measure(size: Size, *, is_whole: bool = False) -> Iterator[Figure]:
    """Yield the dearest bars, in processor seconds, and which statement has them; a line a statement is printed as they
    are found.
    """
    cases = [case for path in sorted(CASES.rglob("*.case")) for case in read_cases(path)]
    cases = [case for case in cases if isinstance(case.expected, Accepted) and case.engine == "duckdb"]
    cases.sort(key=lambda case: hashlib.sha256(f"{case.policy} {case.sql}".encode()).digest())
    end = time.monotonic() + (_SECONDS if size.repeats > 2 else _QUICKLY)
    worst: list[tuple[float, str]] = []
    asked = answers = 0
    with ExitStack() as stack:
        asking: dict[tuple[str, str], _Asking] = {}
        for case in cases:
            if time.monotonic() > end and not is_whole:
                break
            asked += 1
            costs = list[tuple[float, str]]()
            for accounting in _ACCOUNTINGS:
                key = case.policy, accounting
                if key not in asking:
                    connection = stack.enter_context(duckdb.connect(config={"threads": 1}))
                    asking[key] = _Asking(*key, connection, size.folder)
                costs += asking[key].costs(case)
            answers += len(costs)
            cost, where = max(costs, default=(0.0, "no epsilon"))
            said = f"{case.policy}, {case.name}, epsilon {where}: {' '.join(case.sql.split())}"
            worst.append((cost, said))
            print(f"    {cost:.3f} s: {said[:150]}", flush=True)
    worst.sort(reverse=True)
    for cost, said in worst[:_SHOWN]:
        yield Figure(f"bars of {said[:150]}", cost, _MOST, "s")
    missed = sum(cost > _MOST for cost, _ in worst)
    where = f"of {len(cases)}, in {answers} answers; {missed} of them beyond {_MOST:g} s"
    yield Figure("statements of the cases asked with bars", asked, None, "statements", where)


@dataclass
class _Above:
    """The processor seconds that went into what stands above releases, since it was last asked."""

    seconds: float = 0.0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count in the block."""
        with ExitStack() as stack:
            for name in _ABOVE:
                stack.enter_context(patch.object(spine, name, self._counted(getattr(spine, name))))
            yield

    def _counted(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return inner(*args, **named)
            finally:
                self.seconds += time.process_time() - start

        return call


def _forget() -> None:
    """Have no law remember its half-widths from an answer before."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dpsql.mechanisms"):
            for one in vars(module).values():
                if hasattr(one, "cache_clear"):
                    one.cache_clear()


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
        self._policy: Policy | None = None
        if policy is not None and policy.privacy.accounting.value == accounting:
            self._policy = replace(policy, privacy=replace(policy.privacy, epsilon=_CAP))
        connection.execute((policies / f"{name}.sql").read_text())
        self._backend = DuckDBBackend.over(connection)
        self._accounting = accounting
        self._ledgers = ledgers / f"{name}-{accounting}"
        self._made = 0
        self._sessions: dict[str, Session] = {}

    def costs(self, case: Case) -> Iterator[tuple[float, str]]:
        """Yield the processor seconds that a first answer's bars take, and at which epsilon, where it is allowed."""
        for epsilon in () if self._policy is None else EPSILONS:
            cost = self._cost(case, epsilon)
            if cost is not None:
                yield cost, f"{epsilon} in {self._accounting}"

    def _cost(self, case: Case, epsilon: str) -> float | None:
        """Return what stands above a release takes with bars; beyond the limit less what it takes without, each the
        least of some that were asked in turn."""
        whole = self._asked(case, epsilon, "0.95")
        if whole is None or whole < _MOST:
            return whole
        pairs = [[self._asked(case, epsilon, level) for level in ("off", "0.95")] for _ in range(_PAIRS)]
        plain, barred = (
            min((one for one in own if one is not None), default=None) for own in zip(*pairs, strict=True)
        )
        return whole if plain is None or barred is None else min(whole, barred - plain)

    def _asked(self, case: Case, epsilon: str, level: str) -> float | None:
        """Return the processor seconds above the release of an answer that is planned anew; None: it is refused."""
        for _ in range(2):
            session = self._sessions.get(case.analyst) or self._opened(case)
            session.execute(f"SET dpsql.epsilon = {epsilon}")
            session.execute(f"SET dpsql.intervals = {level}")
            session.dataset.prepared.clear()
            _forget()
            above = _Above()
            try:
                with above.counting():
                    session.execute(case.sql, case.parameters)
                return above.seconds
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
