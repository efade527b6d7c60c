"""What a statement's charge means for several persons at once: group privacy (soundness.md 1.19). Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from ..plan.planner import Plan
from ..policy import Accounting
from .settings import decimal_text

__all__ = ["HOUSEHOLD", "group_lines", "group_loss"]

HOUSEHOLD = 4
"""The group that is spoken of where the policy promises nothing for several persons: a usual household."""


def group_lines(plan: Plan, accounting: Accounting = Accounting.PURE) -> Iterator[str]:
    """Yield what the charge comes to for a household; nothing where the policy's own promise is for several.

    Under zCDP the rho of k persons is k² times that of one [BS16, proposition 1.9]: the epsilon is k times as large.
    """
    if (
        not plan.releases
        or any(release.bounding.together > 1 for release in plan.releases)
        or not plan.epsilon
    ):
        return
    if accounting is not Accounting.PURE:
        yield f"for {HOUSEHOLD} persons together: {HOUSEHOLD**2} times the rho, as {HOUSEHOLD} times the epsilon"
        return
    epsilon, delta = group_loss(plan.epsilon, plan.delta, HOUSEHOLD)
    and_delta = f", delta {delta:.3g}" if delta else ""
    yield f"for {HOUSEHOLD} persons together: epsilon {decimal_text(epsilon)}{and_delta}"


def group_loss(epsilon: Fraction, delta: Fraction, persons: int) -> tuple[Fraction, float]:
    """Return the loss of so many persons together, of what is (epsilon, delta) for each: k·epsilon, and

        delta + delta·e^epsilon + … + delta·e^((k-1)·epsilon)  =  delta · (e^(k·epsilon) - 1) / (e^epsilon - 1).

    The delta is rounded, for display; 1 where it comes to more, which is no promise at all.
    """
    each = float(epsilon)
    factor = math.expm1(persons * each) / math.expm1(each)
    return persons * epsilon, min(1.0, float(delta) * factor)
