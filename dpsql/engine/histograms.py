"""How far a chosen value may be from its rank where a stored histogram of its column tells where rows are.

What a choice misses its rank by is bounded for the worst of data: all candidates but one might miss by next to nothing.
Counts of the same rows by the column, its blocks or its calendar, stored earlier or later, say how many candidates do;
so they narrow what is told of a rank, and never widen it (soundness.md 1.43).

House rule: from text, policy and stored draws. Which histograms are read follows from their keys and laws alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from ..budget import Grouping, LedgerStore, StoredGrouping
from ..errors import Refusal
from ..mechanisms import Blocks, Gaussian, Laplace, Law, Rank
from ..plan.measures.formulas import Chosen, Linear
from ..plan.measures.measurements import Count
from ..plan.measures.ranks import RankMeasurement
from ..plan.planner import PrivacyParameters, by_keys, counting
from ..plan.privacy.axes import usual_keys
from ..plan.release_plan import ReleasePlan
from ..plan.strategies import name_of
from ..records import dataclass
from ..relation.catalog import Catalog, Scalar
from ..relation.expressions import Expr, Field
from ..relation.intervals import Lattice, LogLattice
from ..relation.relations import AggregateCall
from ..relation.types import Kind
from ..release.released import Array, decode
from ..release.run import ReleasedRows
from ..release.table import grouping_of, named_digests

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Off:
    """How many rows a chosen value is off its rank by at most, and by what it was counted, in words."""

    rows: int
    counted: str


@dataclass(frozen=True, slots=True)
class _Histogram:
    """A stored draw of counts by a release's keys and one more, the last. `cells`: shape (places of each key)."""

    plan: ReleasePlan
    law: Law
    cells: Array


def rows_off(
    rows: ReleasedRows, call: AggregateCall, level: Fraction, catalog: Catalog, privacy: PrivacyParameters,
    store: LedgerStore,
) -> Off | None:  # fmt: skip
    """Return how far the values of an aggregate are from their rank at a level, by the stored histogram that says least
    of it; None: none says more than the choice's own law.
    """
    choice = _choice_of(rows, call)
    if choice is None:
        return None
    measurement, law = choice
    found = list(_histograms(rows.plan, call, measurement, catalog, privacy, store))
    offs = _worst(rows, found, measurement, law, 1 - level)
    names = [name_of(one.plan.release.keys[-1]) for one in found]
    off = Off(*min(zip(offs, names, strict=True))) if offs else None
    return off if off is not None and off.rows < law.half_width(1 - level) else None


def _choice_of(rows: ReleasedRows, call: AggregateCall) -> tuple[RankMeasurement, Rank] | None:
    """Return the one choice that an aggregate of a column was made by, and what is known of its rank; None: it is not
    one among all integers of a lattice, or rows weigh otherwise than they count."""
    plan = rows.plan
    formula = plan.formulas[plan.release.aggregates.index(call)]
    if not isinstance(formula, Chosen) or formula.coordinate is None or not plan.bounding.per_row:
        return None
    measurement, law = plan.measurements[formula.coordinate.measure], rows.law_of(formula.coordinate)
    draws = rows.measurements[formula.coordinate.measure].draws
    if not (type(measurement) is RankMeasurement and isinstance(law, Rank) and 0 < measurement.share < 1):
        return None
    lattice, value = measurement.known_lattice, measurement.value
    is_alone = bool(draws) and all(len(draw.measures) == 1 for together in draws for draw in together)
    is_plain = lattice.exact and not isinstance(lattice, LogLattice) and law.candidates == lattice.last + 1
    is_column = value is not None and value.column is not None
    return (measurement, law) if is_alone and is_plain and is_column else None


def _histograms(
    plan: ReleasePlan, call: AggregateCall, measurement: RankMeasurement, catalog: Catalog,
    privacy: PrivacyParameters, store: LedgerStore,
) -> Iterator[_Histogram]:  # fmt: skip
    """Yield the stored counts of the very rows of an aggregate by its groups and its column, of each key the draw with
    the least spread."""
    if plan.groups is None or plan.listed_from or plan.intermediates or plan.selection is not None:
        return
    column, keys = measurement.value, plan.release.keys
    assert isinstance(column, Field)
    alone = counting(plan, call, catalog, privacy)
    family = alone.family(0, plan.release.rows.predicate)
    _, stored = store.groupings([] if family is None else [family])
    drawn = [one for one in stored.get(family or b"", ()) if len(one.grouping.keys) == len(keys) + 1]
    for key in usual_keys(column) if drawn else ():
        counted = _counted_by(alone, key, catalog, privacy)
        grouping = None if counted is None else grouping_of(counted, 0)
        mine = [one for one in drawn if one.grouping == grouping and _is_noise(one)]
        if counted is None or grouping is None or not mine or not _is_named(counted, grouping):
            continue
        best = min(mine, key=lambda one: (one.law.spread, one.entry))
        (values,) = decode(store.draw_of(best).payload, best.law).values
        sizes = [axis.size for axis in counted.axes or ()]
        yield _Histogram(counted, best.law, np.array(values.tolist(), dtype=object).reshape(sizes))


def _is_named(plan: ReleasePlan, grouping: Grouping) -> bool:
    """Say whether all keys of a grouping have a name for the analyst (soundness.md 3.16)."""
    named = named_digests(plan)
    return named is None or all(one.digest in named for one in grouping.keys)


def _is_noise(one: StoredGrouping) -> bool:
    return isinstance(one.law, (Gaussian, Laplace))


def _counted_by(
    alone: ReleasePlan, key: Expr, catalog: Catalog, privacy: PrivacyParameters
) -> ReleasePlan | None:
    """Return a count by one more key; None: it is no number with one noise of each row."""
    try:
        found = by_keys(alone, (*alone.release.keys, key), catalog, privacy)
    except Refusal:
        return None
    if found is None or found.axes is None or len(found.measurements) != 1 or not found.bounding.per_row:
        return None
    formula = found.formulas[0]
    if not isinstance(found.measurements[0], Count) or not isinstance(formula, Linear):
        return None
    is_whole = not formula.constant and [weight for _, weight in formula.terms] == [1]
    return found if is_whole else None


def _worst(
    rows: ReleasedRows, found: Sequence[_Histogram], measurement: RankMeasurement, law: Rank, beta: Fraction
) -> list[int]:
    """Return by each histogram how far a value is off its rank at most, in whichever group; none where some group is
    not counted."""
    assert rows.groups is not None
    worst, left = [0] * len(found), Blocks.left_of(beta) / max(1, len(found))
    for group in rows.groups.tuples():
        told = [_blocks(one, group, measurement, left) for one in found]
        known = [one for one in told if one is not None]
        if len(known) < len(found):
            return []
        worst = list(map(max, worst, law.half_widths_in(known, beta)))
    return worst


def _blocks(
    told: _Histogram, group: tuple[Scalar, ...], measurement: RankMeasurement, left: Fraction
) -> Blocks | None:
    """Return what the counts of a group say of where its rows are, but for a probability of `left`; None: nothing.

    Of the column its listed places are counted, and all others together, which may be anywhere in the lattice.
    """
    key = told.plan.release.keys[-1]
    *axes, axis = told.plan.axes or ()
    lattice = measurement.known_lattice
    starts = sorted(
        (max(lattice.low, _start(key, value, lattice)), place)
        for place, value in enumerate(axis.values)
        if value is not None
    )
    ends = [lattice.low, *(start for start, _ in starts[1:]), lattice.high + 1]
    sizes = [end - start for start, end in itertools.pairwise(ends)]
    if min(sizes) < 1 or not all(value in one.values for value, one in zip(group, axes, strict=True)):
        return None
    cells = told.cells[tuple(one.values.index(value) for value, one in zip(group, axes, strict=True))]
    counted = [int(cells[place]) for _, place in starts]
    others = int(cells[len(axis.values)]) if axis.others else None
    return Blocks.of(sizes, counted, others, told.law, measurement.share, left)


def _start(key: Expr, value: Scalar, lattice: Lattice) -> int:
    """Return the least integer of a lattice at which a usual key of its column has a value, or a larger one."""
    assert isinstance(value, (int, Fraction))
    if key.calls("div"):
        size = key.args[1].constant
        assert isinstance(size, int)
        value = value * size if value > 0 else value * size - (size - 1)
    elif key.calls("date_trunc") and key.args[1].type.kind is Kind.DATE:
        value //= _DAY
    elif key.calls("cast"):
        value *= _DAY
    return math.ceil(value / lattice.step)
