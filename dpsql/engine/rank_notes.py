"""What a receipt says of chosen values: how far from the wanted one each may stand, in rows (soundness.md 1.20, 1.21).

House rule: from the laws of the draws that answer, and from noisy counts that are released; nothing of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from ..mechanisms import Law
from ..plan.measures.formulas import Chosen
from ..plan.measures.ranks import share_of
from ..plan.planner import ReleasePlan
from ..relation.relations import AggregateCall
from .answer import OpenRankNote, RankNote
from .explain import call_text, number_text
from .run import ReleasedRows
from .settings import decimal_text
from .stored_count import counted_beside

__all__ = ["StoredCount", "rank_notes"]

_INSIDE = Fraction(1, 20)
"""MIN and MAX are looked for as far inside the ends as their choice misses by so often (soundness.md 1.20)."""
_MOST_NAMED = 4
"""Fractions that a note names one by one."""

StoredCount = Callable[[ReleasePlan, AggregateCall], int | None]
"""The lower end of the bar of a stored count of the rows that an aggregate takes in; None: nothing is stored."""


def rank_notes(rows: Sequence[ReleasedRows], level: Fraction, stored: StoredCount) -> Iterator[RankNote]:
    """Yield how far each chosen value may be from the wanted one, and what share of the rows that is where it is known.

    Fractions of the same rows under the same law are told together.
    """
    for released in rows:
        told: dict[tuple[object, ...], list[AggregateCall]] = {}
        laws: dict[tuple[object, ...], Law] = {}
        for call, law in _chosen(released):
            is_alone = call.function in ("min", "max", "mode")
            key: tuple[object, ...] = (is_alone and call.function, call.args[0], call.filter, law)
            told.setdefault(key, []).append(call)
            laws[key] = law
        for key, calls in told.items():
            count = _count(released, calls[0], level, stored)
            kind = OpenRankNote if count is None and released.plan.groups is not None else RankNote
            yield kind(_said(released.plan, calls, laws[key], level, count))


def _chosen(released: ReleasedRows) -> Iterator[tuple[AggregateCall, Law]]:
    """Yield what is chosen, with the law of the draw that answers."""
    plan = released.plan
    laws = [law for number in range(len(plan.measurements)) for law in released.measurements[number].laws]
    for call, formula in zip(plan.release.aggregates, plan.formulas, strict=True):
        if not plan.is_empty and isinstance(formula, Chosen) and formula.coordinate is not None:
            yield call, laws[formula.coordinate]


def _count(released: ReleasedRows, call: AggregateCall, level: Fraction, stored: StoredCount) -> int | None:
    """Return how many rows there are at least, in each group; of groups that are found, none is known beforehand."""
    if released.plan.groups is None:
        return None
    beside = counted_beside(released, call, level)
    return stored(released.plan, call) if beside is None else beside


def _said(
    plan: ReleasePlan, calls: Sequence[AggregateCall], law: Law, level: Fraction, count: int | None
) -> str:
    rows, call = law.half_width(1 - level), calls[0]
    if call.function == "mode":
        where = f"the value has at most {rows:,} rows fewer than the most frequent one"
    elif call.function in ("min", "max"):
        end = "smallest" if call.function == "min" else "largest"
        where = f"the value stands within {rows:,} rows of the one {law.half_width(_INSIDE):,} rows inside the {end}"
    else:
        shares = sorted({share_of(one) for one in calls})
        subject = "the value stands" if len(shares) == 1 else f"each of {len(shares)} values stands"
        where = f"{subject} within {rows:,} rows of {_wanted(shares)}"
    of_rows = ""
    if count is not None and count > rows:
        each = " of a group" if plan.release.keys else ""
        of_rows = f": {100 * rows / count:.2g} % of the rows{each}, of which there are {count:,} or more"
    return f"{call_text(call, plan.release.rows)}: {where}, at {decimal_text(100 * level)} %{of_rows}"


def _wanted(shares: Sequence[Fraction]) -> str:
    if len(shares) > _MOST_NAMED:
        return "the one at its fraction"
    if list(shares) == [Fraction(1, 2)]:
        return "the middle one"
    return f"the one at {', '.join(map(number_text, shares))}"
