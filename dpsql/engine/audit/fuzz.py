"""The search of an owner's own policy: statements of every shape, on made-up neighbours (soundness.md 5.4).

House rules:

1. As for the audit: nothing of the owner's data is read, no ledger is touched, no noise is drawn.
2. A statement is asked as it was written, or counted as refused: nothing here chooses among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction

from ...backends import DuckDBBackend
from ...errors import DpsqlError, Refusal
from ...plan.planner import Plan
from ...plan.views import build_catalog
from ...policy import Policy
from ...policy.live_schema import LiveSchema
from ...records import dataclass
from ...release.facts import read_facts
from ...release.verifying import certificate_of, rule_against
from .audit import Measures, claim_of, measured_over, moved_by, neighbours_in, plan_audited
from .statements import statements
from .twins import Person, Twin, twin_of

_AT_ONCE = 100
"""Statements whose integers are held at one time."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A statement that did not keep its claim: over which neighbours, and how."""

    sql: str
    problem: str


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What a search found.

    `refused`: how many by code. `worst`: the most that a statement moved by, of what it may, and `at` which it was.
    `unverified`: of how many answered ones the plan is not verified, by the rule that is missing.
    """

    seed: int
    tried: int
    answered: int
    refused: Mapping[str, int]
    worst: float
    at: str
    violations: tuple[Violation, ...]
    unverified: Mapping[str, int]

    @property
    def has_passed(self) -> bool:
        """Whether every statement kept its claim."""
        return not self.violations

    def to_json(self) -> dict[str, object]:
        """Return the search as plain dicts and lists, for `json.dumps`."""
        return {"passed": self.has_passed, **asdict(self)}


def run_fuzz(policy: Policy, live: LiveSchema, count: int, seed: int = 0) -> Fuzzed:
    """Search so many statements over a policy's tables, always the same ones for the same policy, schema and seed.

    Raises PolicyError: policy and schema do not go together.
    """
    with twin_of(policy, live) as (twin, backend):
        with backend.snapshot() as snapshot:
            catalog = build_catalog(policy, snapshot.schema())
            facts = read_facts(snapshot, policy, lambda *asked: None)  # its keys are the twin's own
        asked = [one.sql for one in statements(catalog, seed, count)]
        refused, search = Counter[str](), _Search(policy, twin, backend)
        plans: dict[str, Plan] = {}
        for sql in asked:
            try:
                plans[sql] = plan_audited(policy, catalog, sql)
            except Refusal as refusal:
                refused[refusal.sqlstate] += 1
        answered = list(plans)
        against = {sql: rule_against(certificate_of(one.releases, facts)) for sql, one in plans.items()}
        search.verified = {sql for sql, rule in against.items() if not rule}
        for start in range(0, len(answered), _AT_ONCE):
            search.hold({sql: plans[sql] for sql in answered[start : start + _AT_ONCE]})
        return Fuzzed(
            seed, len(asked), len(asked) - refused.total(), dict(sorted(refused.items())), float(search.worst),
            search.at, tuple(search.violations), Counter(rule for rule in against.values() if rule),
        )  # fmt: skip


class _Search:
    """Statements over all neighbours: the one that moved most, and those that did not keep their claim."""

    def __init__(self, policy: Policy, twin: Twin, backend: DuckDBBackend) -> None:
        self._policy, self._twin, self._backend = policy, twin, backend
        self.worst, self.at = Fraction(0), ""
        self.verified: set[str] = set()
        self.violations: list[Violation] = []

    def hold(self, plans: dict[str, Plan]) -> None:
        known: dict[tuple[Person, ...], dict[str, Measures | DpsqlError]] = {}
        for by, here, there, number in neighbours_in(self._policy):
            for people in (here, there):
                if tuple(people) not in known:
                    known[tuple(people)] = measured_over(self._twin, self._backend, people, plans)
            left, right = known[tuple(here)], known[tuple(there)]
            for sql, planned in plans.items():
                self._compare(by, sql, planned, left[sql], right[sql], number)

    def _compare(
        self,
        by: str,
        sql: str,
        planned: Plan,
        left: Measures | DpsqlError,
        right: Measures | DpsqlError,
        number: int | None,
    ) -> None:
        if isinstance(left, DpsqlError) or isinstance(right, DpsqlError):
            self.violations.append(Violation(sql, f"the engine failed over {by}"))
            return
        loss, problems = moved_by(planned, left, right, number)
        said = "verified, and yet " if sql in self.verified else ""
        self.violations += [Violation(sql, f"{said}{problem}: {by}") for problem in problems]
        claim = claim_of(planned)
        if claim and loss / claim > self.worst:
            self.worst, self.at = loss / claim, sql
