"""Every plan is verified before it is charged: by a program that shares nothing with what made it (soundness.md 5.6).

House rules:

1. What is verified is the string that the database gets, in the snapshot that answers, by facts that are read there a
   second time.
2. Whether a plan is verified depends on text, policy and schema, and so does the rule that is missing (law L6). The
   rule is told to the owner's log alone.
3. What is not verified is refused, where the policy does not say otherwise, before anything is charged. A text that is
   printed from released numbers is verified before it is sent: its refusal follows from what is released.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..budget import BudgetStore
from ..cache import Cache
from ..errors import LedgerError, Unverified
from ..policy import Policy, Verify
from ..verify import Refused, Verified, verify
from ..verify.certificate import Certificate, Facts, dumps
from .facts import read_facts

if TYPE_CHECKING:
    from ..backends import Snapshot
    from ..policy import LiveSchema

__all__ = ["USUAL", "Certified", "Verifier", "rule_against", "verdict_on"]

USUAL = {"duckdb": Verify.REFUSE, "postgres": Verify.REFUSE, "spark": Verify.LOG}
"""What becomes of a plan that is not verified where the policy does not say, by engine."""

_MAX_KNOWN = 4096


@dataclass(frozen=True, slots=True)
class Certified:
    """A certificate as it is stored: its digest and its text. `rule`: why it does not hold; "" where it does."""

    digest: str
    content: bytes = field(repr=False)
    rule: str


class Verifier:
    """Verifies what a dataset's statements are about to ask; safe for threads. What was verified is remembered.

    `tell`: takes a line for the owner alone, with the rule that is missing: a server's goes to its log.
    """

    def __init__(self, policy: Policy, store: BudgetStore, engine: str) -> None:
        self._policy, self._store = policy, store
        self._refuses = (policy.privacy.verify or USUAL[engine]) is Verify.REFUSE
        self._known: Cache[str] = Cache(_MAX_KNOWN)
        self._read: tuple[LiveSchema, Facts] | None = None
        self.tell: Callable[[str], None] = _nobody

    def facts(self, snapshot: Snapshot) -> Facts:
        """Return what is believed while a snapshot is open. Raises EngineFailure, LedgerError, PolicyError.

        A backend gives one and the same schema for as long as nothing behind it can have changed: of a file that no one
        may write, of tables that are locked and whose catalog rows are those of before. What was read then holds now.
        """
        live, known = snapshot.schema(), self._read
        if known is not None and known[0] is live:
            return known[1]
        facts = read_facts(snapshot, self._policy, self._store.key_check)
        if not any(table.asserted for table in live.tables):
            self._read = live, facts
        return facts

    def require(self, certificate: Certificate) -> Certified:
        """Return the certificate of what is about to be asked, as it is stored. Raises Unverified: it does not hold."""
        found = self.certified(certificate)
        if found.rule:
            self.tell(f"a plan is not verified: {found.rule}")
            if self._refuses:
                raise Unverified(found.rule)
        return found

    def certified(self, certificate: Certificate) -> Certified:
        """Return a certificate as it is stored, and whether it holds."""
        content = dumps(certificate).encode()
        name = hashlib.sha256(content).hexdigest()
        rule = self._known.get(name)
        if rule is None:
            rule = rule_against(certificate)
            self._known.put(name, rule)
        return Certified(name, content, rule)

    def keep(self, certified: Certified, refuse: Callable[[], None]) -> str | None:
        """Store a certificate for the entries that are about to name it; return its digest.

        None: there is no room for it, or it is too long; then it is missing, and `dpsql verify` says so.
        `refuse`: raises where there is no budget, and so nobody fills the ledger for nothing.
        """
        if self._store.has_certificate(certified.digest):
            return certified.digest
        refuse()
        try:
            self._store.put_certificate(certified.digest, certified.content)
        except (LedgerError, ValueError):
            self.tell(f"a certificate cannot be stored: {certified.digest}")
            return None
        return certified.digest


def _nobody(line: str) -> None:
    """Nobody listens: of an embedded session the owner is told by `dpsql verify`."""


def rule_against(certificate: Certificate) -> str:
    """Return which rule a certificate does not satisfy by its own facts, or which is missing; "" where it holds."""
    return verdict_on(certificate, certificate.facts)[1]


def verdict_on(certificate: Certificate, facts: Facts) -> tuple[Verified | None, str]:
    """Return what is proved of a certificate and "", or None and the rule that it does not satisfy, or that is not
    there."""
    try:
        return verify(certificate, facts), ""
    except Refused as refused:
        return None, refused.rule
    except Exception as error:  # noqa: BLE001  # what is not proved is not verified, whatever the reason
        return None, f"a bug: {type(error).__name__}"
