"""How many rows an aggregate takes in, as far as the store can tell: a noisy count that was released before.

House rule: only what is stored is read (soundness.md 3.7); nothing is charged, and nothing is asked of the database.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..budget import BudgetStore
from ..mechanisms import SampledNoise
from ..plan.measures.formulas import Linear
from ..plan.measures.normal_form import normal_form
from ..plan.planner import Plan, PrivacyParameters, count_of, counting
from ..plan.privacy.keys import environment_of
from ..plan.release_plan import ReleasePlan
from ..relation.catalog import Catalog
from ..relation.relations import AggregateCall
from .cost import Cost
from .run import PlanRunner, ReleasedRows

__all__ = ["counted_beside", "stored_count"]

_ANY = Fraction(1, 10**9)
"""The epsilon of a measurement that every stored draw of it serves."""


def stored_count(
    release: ReleasePlan,
    call: AggregateCall,
    catalog: Catalog,
    privacy: PrivacyParameters,
    store: BudgetStore,
    level: Fraction,
) -> int | None:
    """Return the lower end of a stored count's bar at a level, the least over its groups; None: nothing is stored.

    First a count that was asked for itself, then the one beside the aggregate, where that was drawn before.
    A release that waits for a subquery's value has none; by keys of public tables there is the one beside it alone.
    """
    if release.intermediates:
        return None
    asked = [(release, release.release.aggregates.index(call))]
    if not release.listed_from:
        asked.append((counting(release, call, catalog, privacy), 0))
    found = (_least(one, index, store, privacy, level) for one, index in asked)
    return max((one for one in found if one is not None), default=None)


def _least(
    release: ReleasePlan, index: int, store: BudgetStore, privacy: PrivacyParameters, level: Fraction
) -> int | None:
    count = release.formulas[index].compared
    if count is None or release.is_empty:
        return None
    plan = Plan(release.release, (), frozenset(), (release.of_each(_ANY),), privacy)
    runner = PlanRunner(
        plan, store, SampledNoise(), "", "", True, lambda *_: None, lambda: False, lambda: None, Cost()
    )
    return _lowest(runner.rows[0], count, level) if runner.from_store() else None


def counted_beside(rows: ReleasedRows, call: AggregateCall, level: Fraction) -> int | None:
    """Return the same of a count that stands beside an aggregate in its own release, of the very rows it takes in."""
    release = rows.plan.release
    env = environment_of(release.rows.columns, release.rows.predicate)

    def taken(one: AggregateCall) -> tuple[object, ...]:
        want = normal_form(one, env, release.rows.units)
        return want.function, want.filter

    own = taken(count_of(call))
    found = [
        _lowest(rows, formula, level)
        for other, formula in zip(release.aggregates, rows.plan.formulas, strict=True)
        if other.function == "count" and isinstance(formula, Linear) and taken(other) == own
    ]
    return max((one for one in found if one is not None), default=None)


def _lowest(rows: ReleasedRows, count: Linear, level: Fraction) -> int | None:
    """Return the lower end of a count's bar, the least over its groups; None: there is no group."""
    if rows.groups is None or not rows.groups.size:
        return None
    values, deviation = float(count.constant) + np.zeros(rows.groups.size), 0.0
    for coordinate, weight in count.terms:
        values = values + float(weight) * np.asarray(rows.values_of(coordinate), dtype=float)
        half = rows.law_of(coordinate).half_width(1 - level)
        deviation = float(np.hypot(deviation, abs(float(weight)) * half))
    return int(np.floor(values.min() - deviation))
