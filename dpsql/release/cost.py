"""What a statement that fails has spent by then.

House rule: only what the ledger says is told, and the ledger's decision depends on noisy content alone. So whoever
reads it learns nothing that `SHOW dpsql.budget` would not tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..budget import ZERO, Charge, delta_text, epsilon_text
from ..errors import DpsqlError
from ..records import dataclass

__all__ = ["Cost", "telling"]

_STOPPED = ("53200", "55006", "57014", "57V01", "58V01", "F0V02")
"""Errors that may come before the charge as well as after it: they always say which it was."""


@dataclass
class Cost:
    """What the running statement was charged so far; `is_known`: for certain; `is_stored`: what was drawn for it is
    stored, None: it may be.
    """

    charge: Charge = ZERO
    is_stored: bool | None = False
    is_known: bool = True

    def charging(self, charge: Charge, is_logged: bool | None) -> None:
        """Take note of a charge that is being made; see `BudgetStore.reserve`."""
        self.charge = ZERO if is_logged is False else charge
        self.is_known = is_logged is not None

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was charged."""
        return self.charge == ZERO

    def text(self, *, reuse: bool) -> str:
        """Return what was spent, and what asking again costs; `reuse`: of the session's setting."""
        if self.is_nothing:
            return "nothing was charged"
        delta = f", delta {delta_text(self.charge.delta_atto)}" if self.charge.delta_atto else ""
        charged = f"epsilon {epsilon_text(self.charge.epsilon_nano)}{delta}"
        if not self.is_known:
            return f"whether {charged} was charged is not known; if so, it stays spent, and nothing is stored for it"
        again = "asking again is free" if reuse else "asking again with dpsql.reuse on is free"
        if self.is_stored is None:
            return f"{charged} was charged and stays spent; whether its release is stored is not known: if so, {again}"
        if not self.is_stored:
            return f"{charged} stays spent, and nothing was stored for it"
        return f"{charged} was charged, and the release is stored: {again}"


@contextmanager
def telling(cost: Cost, *, reuse: bool) -> Iterator[None]:
    """Have an error that leaves the block say what was spent, where something was or may have been."""
    try:
        yield
    except DpsqlError as error:
        if not cost.is_nothing or error.sqlstate in _STOPPED:
            error.cost = cost.text(reuse=reuse)
        raise
