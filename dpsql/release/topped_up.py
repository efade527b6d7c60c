"""Asking again for more in a zCDP dataset: which measurements pay the difference, and how that is said.

House rule: never in a pure dataset. There a combination of draws is free post-processing, and whoever wants more than
it gives pays in full: an upgrade at the difference of two epsilons would cost more than that as soon as one row changed
between the draws (soundness.md 3.13).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..budget import Fresh, rho_text
from ..mechanisms import Gaussian, TopUp
from ..plan.release_plan import ReleasePlan

__all__ = ["said_of_top_up", "top_up_of"]


def top_up_of(plan: ReleasePlan, index: int) -> TopUp | None:
    """Return what lets a measurement be paid for by the difference; None where it is paid for in full.

    That is what decides what is shown, what is chosen, and what is drawn together with several widths.
    """
    one = plan.measures[index]
    if not plan.is_zcdp or plan.is_empty or one.choice is not None or index == plan.counted:
        return None
    if not isinstance(one.law, Gaussian):
        return None
    return TopUp(one.measurement.squared_sensitivity, one.rho_atto)


def said_of_top_up(fresh: Sequence[Fresh | None]) -> str | None:
    """Return what is to be drawn beside what is stored, in words; None where nothing of it is."""
    drawn = [one for one in fresh if one is not None]
    stored = sum(one.stored_atto for one in drawn)
    if not stored:
        return None
    more = sum(one.charge.rho_atto for one in drawn)
    return f"{rho_text(more)} of rho more; {rho_text(stored)} is stored"
