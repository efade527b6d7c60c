"""What is said of groups that are chosen before they are measured (soundness.md 1.23). Pure: from plans alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from ..budget import rho_text, shown_epsilon
from ..plan.measures.measurements import Sum
from ..plan.release_plan import ReleasePlan
from ..release.price import MISSING
from .settings import decimal_text, number_text


def selection_figures(plan: ReleasePlan, whole: str) -> dict[str, object]:
    """Return what is known of a choice of groups; `within_95`: see `selection_notes`. `whole`: the error of all."""
    top, number = plan.top, plan.selection
    assert top is not None
    assert number is not None
    is_counted = all(one.is_count for one in plan.measurements[:number])
    return {
        "measure": top.label,
        "chosen": top.count,
        "candidates": len(plan.groups or ()),
        "by": top.of.label,
        "most_in_a_group": number_text(top.each * _step(plan)),
        "sensitivity": number_text(Fraction(top.of_one, top.count) * _step(plan)),
        "within_95": number_text(_within(plan)),
        "missed": _missed(plan),
        "costs": _price(plan, [number]),
        "then": f"{'counts' if is_counted else 'measures'} them ({_price(plan, range(number))})",
        "whole": whole,
        "epsilon": decimal_text(plan.measures[number].epsilon),
        "stored": plan.measures[number].is_stored,
    } | ({"rho": rho_text(plan.measures[number].rho_atto)} if plan.is_zcdp else {})


def selection_notes(plan: ReleasePlan) -> Iterator[str]:
    """Yield what a choice of groups may leave out, in words for a receipt."""
    if plan.top is not None:
        yield (
            f"{plan.top.count} of {len(plan.groups or ())} groups were chosen, and these alone measured: "
            f"{_missed(plan)}; SET dpsql.selection = off measures all"
        )


def _price(plan: ReleasePlan, numbers: Sequence[int]) -> str:
    """Return what some measurements cost together: rho adds up, and the epsilons that it stands for do not."""
    if not plan.is_zcdp:
        return f"epsilon {decimal_text(sum((plan.losses[i] for i in numbers), Fraction(0)))}"
    rho = sum(plan.measures[i].rho_atto for i in numbers)
    return f"as epsilon {shown_epsilon(rho)}, rho {rho_text(rho)}"


def _missed(plan: ReleasePlan) -> str:
    assert plan.top is not None
    what = "sum" if plan.top.of.kind == Sum.kind else "count"
    return f"a group may be missed whose {what} is within {number_text(_within(plan))} of the last one's"


def _within(plan: ReleasePlan) -> Fraction:
    """Return by how much a group that is left out may be larger than the smallest that is chosen, at 95 %."""
    assert plan.selection is not None
    return plan.measures[plan.selection].law.half_width(MISSING) * _step(plan)


def _step(plan: ReleasePlan) -> Fraction:
    assert plan.top is not None
    return Fraction(1) if plan.top.of.lattice is None else plan.top.of.lattice.step
