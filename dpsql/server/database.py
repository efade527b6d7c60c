"""One policy that is served, under its name: its sessions, its ledger's health, and what is counted of it.

House rule: several policies on one port share the port, the certificate, the threads and what strangers may do. Users,
budgets, catalogs, counts and what is remembered are each one's own: nothing here knows of another database.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from ..budget import Status
from ..errors import DpsqlError, PolicyError
from ..policy import Policy, is_open_to_others, load_policy
from .ledger_watch import BudgetWatch, Health
from .log import Tally, log
from .login import verifiers_of
from .sessions import Sessions

__all__ = ["Database"]


class Database:
    """What is served of one policy; `name`: the policy file's, without its ending."""

    def __init__(self, policy: Policy, pool: Executor, probe_seconds: float) -> None:
        """Try whether database and ledger can be opened. Raises PolicyError, LedgerError, EngineFailure."""
        self.policy, self.name = policy, policy.path.stem
        self.sessions = Sessions(policy)
        self.tally = Tally(self.name)
        self.health = Health(self._look, pool, probe_seconds, self.name)
        self._budget_watch = BudgetWatch(self.name)
        self._pool = pool

    def secret(self) -> bytes:
        """Return the secret of the ledger. Raises LedgerError."""
        return self.sessions.dataset.store.secret()

    def status(self) -> Status:
        """Return what is spent, and what may be. Raises LedgerError."""
        return self.sessions.dataset.store.status()

    async def reload(self) -> bool:
        """Read the policy anew, for the sessions to come; return whether it could be, which the log says too.

        What cannot be read stays as it was. Raises nothing.
        """
        loop = asyncio.get_running_loop()
        try:
            policy = await loop.run_in_executor(self._pool, load_policy, self.policy.path)
            _check_same_dataset(self.policy, policy)
            verifiers_of(policy)
            await loop.run_in_executor(self._pool, self.sessions.replace, policy)
        except DpsqlError as error:
            log("reload refused", what="policy", reason=error.message, database=self.name)
            return False
        self.policy = policy
        log("reloaded", what="policy", database=self.name)
        self.look_at_file()
        return True

    def look_at_file(self) -> None:
        """Warn of a policy that others can read."""
        if is_open_to_others(self.policy):
            log("policy readable", database=self.name)

    def _look(self) -> None:
        """Raise LedgerError where the ledger cannot be used; warn of what is nearly spent."""
        self._budget_watch.look(self.sessions.dataset.store, list(self.policy.analysts))


def _check_same_dataset(old: Policy, new: Policy) -> None:
    """Raise PolicyError where a policy means other data or another ledger, which takes a new start."""
    if (old.database, old.ledger, old.dataset_id) != (new.database, new.ledger, new.dataset_id):
        raise PolicyError(f"{new.source}: names another database, ledger or dataset; start the server anew")
    before, now = old.privacy, new.privacy
    if (before.neighbours, before.together) != (now.neighbours, now.together):
        raise PolicyError(
            f"{new.source}: says other privacy.neighbours or privacy.together, which takes a new ledger"
        )
