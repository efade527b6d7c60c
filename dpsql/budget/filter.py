"""The filter: refuses a charge that does not fit under every cap.

A running sum with a cap on it stays sound when each charge is chosen after seeing earlier answers
(soundness.md 3.1, sequential composition). Spent, caps and charge are public: a refusal here tells
of other statements, never of the data.
"""

from __future__ import annotations

from ..errors import BudgetExhausted
from .claim import Charge, delta_text, epsilon_text
from .entry import Status

__all__ = ["refuse_over_cap"]


def refuse_over_cap(status: Status, charge: Charge) -> None:
    """Raise BudgetExhausted unless `charge` fits under the global epsilon, the global delta and the
    analyst's epsilon cap, looked at in this order.

    Requires: `status` was read in the transaction that will record the charge.
    Ensures: on return, spent + charge <= cap in every scope.
    """
    epsilon_left = status.epsilon_cap_nano - status.epsilon_spent_nano
    if charge.epsilon_nano > epsilon_left:
        raise _exhausted("epsilon", epsilon_text(charge.epsilon_nano), epsilon_text(max(0, epsilon_left)))
    delta_left = status.delta_cap_atto - status.delta_spent_atto
    if charge.delta_atto > delta_left:
        raise _exhausted("delta", delta_text(charge.delta_atto), delta_text(max(0, delta_left)))
    if status.analyst_cap_nano is not None:
        own_left = status.analyst_cap_nano - status.analyst_spent_nano
        if charge.epsilon_nano > own_left:
            needs, left = epsilon_text(charge.epsilon_nano), epsilon_text(max(0, own_left))
            raise _exhausted("epsilon", needs, left, whose="your own")


def _exhausted(name: str, needs: str, left: str, whose: str = "the dataset's") -> BudgetExhausted:
    return BudgetExhausted(
        f"needs {name} {needs}, left {left} of {whose} budget",
        hint="repeat an earlier question (free), ask with less, or ask the owner to grant more",
    )
