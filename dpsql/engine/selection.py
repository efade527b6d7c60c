"""What is said of groups that are chosen before they are measured (soundness.md 1.23). Pure: from plans alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from ..budget import rho_text, shown_epsilon
from ..plan.measures.measurements import Sum
from ..plan.release_plan import ReleasePlan
from .settings import decimal_text

__all__ = ["selection_figures", "selection_lines", "selection_notes"]

_MISSING = Fraction(1, 20)
"""How often what is said of the choice misses."""


def selection_figures(plan: ReleasePlan) -> dict[str, object]:
    """Return what is known of a choice of groups, for programs; `within_95`: see `selection_notes`."""
    top, number = plan.top, plan.selection
    assert top is not None
    assert number is not None
    return {
        "measure": top.label,
        "chosen": top.count,
        "candidates": len(plan.groups or ()),
        "sensitivity": _figure(Fraction(top.of_one, top.count) * _step(plan)),
        "within_95": _figure(_within(plan)),
        "epsilon": decimal_text(plan.measures[number].epsilon),
        "stored": plan.measures[number].is_stored,
    } | ({"rho": rho_text(plan.measures[number].rho_atto)} if plan.is_zcdp else {})


def selection_lines(plan: ReleasePlan, whole: str) -> Iterator[str]:
    """Yield EXPLAIN's lines on a choice of groups; nothing where all are answered. `whole`: the error of all."""
    top, number = plan.top, plan.selection
    if top is None or number is None or plan.groups is None:
        return
    verb = "counts" if all(one.is_count for one in plan.measurements[:number]) else "measures"
    shown = selection_figures(plan)
    yield (
        f"chooses {top.count} of {len(plan.groups)} groups ({_price(plan, [number])}), then {verb} them "
        f"({_price(plan, range(number))}); the whole histogram would have {whole}"
    )
    yield (
        f"  {top.of.label}, of a person at most {_figure(top.each * _step(plan))} in a group: sensitivity "
        f"{shown['sensitivity']} of each score, permute-and-flip"
    )
    yield f"  {_missed(plan)} at 95 %"
    yield "  another LIMIT, or the whole histogram, is another charge; SET dpsql.selection = off gives the histogram"


def selection_notes(plan: ReleasePlan) -> Iterator[str]:
    """Yield what a choice of groups may leave out, in words for a receipt."""
    top = plan.top
    if top is None:
        return
    yield (
        f"{top.count} of {len(plan.groups or ())} groups were chosen, and these alone measured: {_missed(plan)}; "
        "SET dpsql.selection = off measures all"
    )


def _price(plan: ReleasePlan, numbers: Sequence[int]) -> str:
    """Return what some measurements cost together: rho adds up, and the epsilons that it stands for do not."""
    if not plan.is_zcdp:
        return f"epsilon {decimal_text(sum((plan.losses[i] for i in numbers), Fraction(0)))}"
    rho = sum(plan.measures[i].rho_atto for i in numbers)
    return f"as epsilon {shown_epsilon(rho)}, rho {rho_text(rho)}"


def _missed(plan: ReleasePlan) -> str:
    top = plan.top
    assert top is not None
    what = "sum" if top.of.kind == Sum.kind else "count"
    return f"a group may be missed whose {what} is within {_figure(_within(plan))} of the last one's"


def _within(plan: ReleasePlan) -> Fraction:
    """Return by how much a group that is left out may be larger than the smallest that is chosen, at 95 %."""
    assert plan.selection is not None
    return plan.measures[plan.selection].law.half_width(_MISSING) * _step(plan)


def _step(plan: ReleasePlan) -> Fraction:
    top = plan.top
    assert top is not None
    return Fraction(1) if top.of.lattice is None else top.of.lattice.step


def _figure(value: Fraction) -> str:
    exact = decimal_text(value)
    return exact if Fraction(exact) == value and len(exact) <= 15 else f"{float(value):.6g}"
