"""Sums of several columns as one vector of noise, in place of a share of epsilon for each (soundness.md 1.22).

House rules:

1. From text, policy and settings alone; whether it is taken depends on what is stored besides, noisy too (`spine`).
2. Each aggregate has a deviation that is a tenth smaller at least than by the statement's own measures: a 95 % bar is
   then no wider, whatever the shapes of both noises. The charge is no more.
3. No statement of intermediate results, nor one whose releases are drawn by coarser groupings too (1.37).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from ..errors import Refusal
from ..plan.measures.formulas import Chosen, Linear
from ..plan.planner import Plan, drawn_together
from ..plan.release_plan import ReleasePlan
from .price import expected_error

__all__ = ["find_together"]

_NARROWER = 0.9


def find_together(plan: Plan) -> Plan | None:
    """Return the plan that draws several columns as one vector; None: its own measures are about as good."""
    if plan.intermediates or plan.strategies:
        return None
    releases = tuple(_best(release) for release in plan.releases)
    changed = any(one is not own for one, own in zip(releases, plan.releases, strict=True))
    return replace(plan, releases=releases) if changed else None


def _best(own: ReleasePlan) -> ReleasePlan:
    """Return the plan of a release with the smallest errors, of which each is smaller than that of its own."""
    found: list[tuple[float, ReleasePlan]] = []
    for other in drawn_together(own):
        ratios = list(_ratios(other, own))
        if max(ratios, default=1) <= _NARROWER and _is_printed(other):
            found.append((sum(ratios), other))
    return min(found, key=lambda one: one[0])[1] if found else own


def _ratios(other: ReleasePlan, own: ReleasePlan) -> Iterator[float]:
    """Yield each aggregate's deviation over the one that it has by the release's own measures.

    A chosen value is left out: there are fewer measurements, so that it has no smaller a part of epsilon. So is what is
    exact by both.
    """
    for index, formula in enumerate(own.formulas):
        if not isinstance(formula, Chosen):
            here, there = (_variance(plan, index) for plan in (other, own))
            if here or there:
                yield math.sqrt(here / there) if there else math.inf


def _variance(plan: ReleasePlan, index: int) -> Fraction:
    """Return the largest variance of a sum of which an aggregate is made, as its expected error has it."""

    def of_sum(formula: Linear) -> Fraction:
        return sum((weight**2 * law.spread for law, weight in plan.noises(formula)), Fraction(0))

    return expected_error(plan, index, of_sum)[0]


def _is_printed(plan: ReleasePlan) -> bool:
    """Say whether its queries can be printed: what is refused is refused before it is chosen."""
    try:
        plan.queries(tuple(range(len(plan.measurements))))
    except Refusal:
        return False
    return True
