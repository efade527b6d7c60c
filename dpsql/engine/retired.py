"""How many stored answers a policy has no use for: no statement finds them again under it, and what they cost.

House rule: from the ledger's records, the policy and the schema alone; nothing is charged, and nothing is lost, as they
answer again under a policy that says what the one said that they were drawn under (soundness.md 3.7).
"""

from __future__ import annotations

from collections import Counter

from ..budget import ZERO, Charge, Resting, epsilon_text, rho_text
from ..plan.release_plan import units_ground
from ..policy import Accounting, Policy
from ..policy.catalog import MEASURING
from ..records import dataclass
from ..relation.catalog import Catalog, Ground
from ..relation.relations import all_grounds

_EARLIER = "an earlier version of dpsql"


@dataclass(frozen=True, slots=True)
class Retired:
    """Of `answers` that are stored, those that no statement finds: how many, and what they cost.

    `by`: of what they rest on that is said otherwise now, or how they were made, with how many rest on that.
    """

    answers: int
    number: int = 0
    charge: Charge = ZERO
    by: tuple[tuple[str, int], ...] = ()

    def text(self, accounting: Accounting) -> str:
        """Return it as a sentence, "" where there is none."""
        if not self.number:
            return ""
        by = ", ".join(f"{name} ({number})" for name, number in self.by)
        are, they = ("is", "it") if self.number == 1 else ("are", "they")
        return (
            f"{self.number} of {self.answers} stored answers {are} found no more, as what {they} "
            f"{'rests' if self.number == 1 else 'rest'} on is said otherwise now: {by}; {they} cost "
            f"{self.cost(accounting)}, and whoever asks again is charged again"
        )

    def to_json(self) -> dict[str, object]:
        """Return it as plain numbers and strings, for `json.dumps`."""
        return {
            "answers": self.answers,
            "retired": self.number,
            "epsilon": epsilon_text(self.charge.epsilon_nano),
            "rho": rho_text(self.charge.rho_atto),
            "by": dict(self.by),
        }

    def cost(self, accounting: Accounting) -> str:
        """Return what they cost, in what is added up."""
        if accounting is Accounting.PURE:
            return f"epsilon {epsilon_text(self.charge.epsilon_nano)}"
        return f"rho {rho_text(self.charge.rho_atto)}"


def grounds_under(policy: Policy, catalog: Catalog) -> frozenset[Ground]:
    """Return everything that plans may rest on under a policy."""
    return all_grounds(catalog) | {units_ground(policy.defaults.minimum_units)}


def retired(stored: Resting, grounds: frozenset[Ground], before: frozenset[Ground] | None = None) -> Retired:
    """Return which stored answers are found no more under a policy, from what it has plans rest on.

    `before`: of those alone that were found under another policy. What `dpsql bounds` measured is left out: it rests
    on the ways to the owners, and is found by them.
    """
    answers, number, charge, by = 0, 0, ZERO, Counter[str]()
    for rests, (count, cost) in stored.items():
        said = () if rests is None else rests
        if any(name == MEASURING for name, _ in said) or (before is not None and not before.issuperset(said)):
            continue
        if rests is None and before is not None:
            continue
        answers += count
        gone = {name for name, digest in said if (name, digest) not in grounds}
        if rests is None:
            gone = {_EARLIER}
        if gone:
            number, charge = number + count, charge + cost
            by.update(dict.fromkeys(gone, count))
    return Retired(answers, number, charge, tuple(sorted(by.items(), key=lambda one: (-one[1], one[0]))))
