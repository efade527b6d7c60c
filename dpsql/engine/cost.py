"""What a statement that fails has spent by then: said with its error, by every interface.

House rule: only what the ledger says is told, and the ledger's decision depends on noisy content alone. So whoever
reads it learns nothing that `SHOW dpsql.budget` would not tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..budget import ZERO, Charge, delta_text, epsilon_text
from ..errors import DpsqlError

__all__ = ["Cost", "telling"]

_STOPPED = ("53200", "55006", "57014", "57V01")
"""Errors that may come before the charge as well as after it: they always say which it was."""


@dataclass
class Cost:
    """What the running statement was charged so far; `is_stored`: what was drawn for it is stored."""

    charge: Charge = ZERO
    is_stored: bool = False

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
        if not self.is_stored:
            return f"{charged} stays spent, and nothing was stored for it"
        again = "asking again is free" if reuse else "asking again with dpsql.reuse on is free"
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
