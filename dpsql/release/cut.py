"""What contribution bounds leave out of each number of a release at most, from what the owner measured of its rows.

Pure: from plans, and from noisy numbers that are stored (`left_out`). The ends of a bar that holds the noise are moved
apart by it, and hold the truth then (soundness.md 3.18).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from ..mechanisms import Law, half_width_of
from ..plan.measures.formulas import Linear
from ..plan.measures.measurements import BoundingQuery, Measurement
from ..plan.privacy.keys import environment_of
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.intervals import lattice_of
from ..relation.relations import AggregateCall
from .left_out import Excess, LeftOut

__all__ = ["Cut", "FindLeftOut", "cut_of", "groups_of", "measured_of"]

FindLeftOut = Callable[[str, int, str | None], LeftOut | None]
"""Returns what was measured of a table for its `max_rows`, or of a column's groups for a bound; None: nothing was."""


@dataclass(frozen=True, slots=True)
class Cut:
    """By how much a number may be below the truth, and above it: so many times the rows that a bound leaves out."""

    excess: Excess
    below: Fraction
    above: Fraction

    def widths(self, noises: Sequence[tuple[Law, Fraction]], beta: Fraction) -> tuple[float, float]:
        """Return how far the ends of a bar stand below a number and above it, so that each misses half of `beta`.

        `noises`: on the number. Those on what is left out are independent of them, and both are taken together.
        """
        return self._width(noises, beta, self.above), self._width(noises, beta, self.below)

    def _width(self, noises: Sequence[tuple[Law, Fraction]], beta: Fraction, by: Fraction) -> float:
        alone = half_width_of(noises, beta)
        if not by:
            return float(alone)
        both = [*noises, *((law, by * weight) for law, weight in self.excess.noises)]
        return float(max(alone, by * self.excess.rows + half_width_of(both, beta)))

    def most(self, beta: Fraction) -> tuple[float, float]:
        """Return by how much the number is above the truth at most, and below it, each but for half of `beta`."""
        most = max(Fraction(0), self.excess.rows + half_width_of(self.excess.noises, beta))
        return float(self.above * most), float(self.below * most)


def measured_of(plan: ReleasePlan, find: FindLeftOut) -> LeftOut | None:
    """Return what was measured of the table of which a release's rows are some, each once; None: nothing."""
    table = plan.release.rows.table_alone
    if (
        plan.bounding.numbered is not None
    ):  # numbers have holes: rows up to the bound may be numbered beyond it
        return None
    if table is None or table.unit is None or table.unit.max_rows is None or table.noted != table.name:
        return None
    return find(table.name, table.unit.max_rows, None)


def cut_of(plan: ReleasePlan, index: int, find: FindLeftOut) -> Cut | None:
    """Return by how much an aggregate of a release may be off for what is left out; None: that is not bounded."""
    call, formula = plan.release.aggregates[index], plan.formulas[index]
    if not isinstance(formula, Linear) or plan.is_empty:
        return None
    if index in plan.zeros:
        return Cut(Excess(Fraction(0), ()), Fraction(0), Fraction(0))
    numbers = {coordinate.measure for coordinate in formula.coordinates}
    if len(numbers) != 1:
        return None
    measurement = plan.measurements[numbers.pop()]
    if measurement.is_of_people:
        return _cut_of_people(plan, measurement, find)
    measured = measured_of(plan, find)
    is_of_rows = measurement.query is BoundingQuery.SCALED
    if measured is None or not measured.is_current or not is_of_rows or measurement.bounding.norms:
        return None  # what norms leave out is never measured
    excess = measured.excess(measurement.bounding.in_all)
    return None if excess is None else _cut_of_rows(plan, measurement, call, excess)


def _cut_of_people(plan: ReleasePlan, measurement: Measurement, find: FindLeftOut) -> Cut | None:
    """Return what a count of people loses: in groups beyond those that count of each, which are no more than rows."""
    if not measurement.bounding.ranked:  # a person is in no more groups than count
        return Cut(Excess(Fraction(0), ()), Fraction(0), Fraction(0))
    for measured in (groups_of(plan, find), measured_of(plan, find)):
        excess = (
            None
            if measured is None or not measured.is_current
            else measured.excess(measurement.bounding.groups)
        )
        if excess is not None:
            return Cut(excess, Fraction(1), Fraction(0))
    return None


def groups_of(plan: ReleasePlan, find: FindLeftOut) -> LeftOut | None:
    """Return in how many groups of a release people were measured to be; None: they were not, or it has other keys."""
    release, rows = plan.release, plan.release.rows
    table = rows.table_alone
    if table is None or table.unit is None or table.unit.max_groups is None or table.noted != table.name:
        return None
    assert rows.alone is not None
    start = sum(len(item.columns) for item in rows.items[: rows.alone])
    names = rows.items[rows.alone].source.shown
    column = release.keys[0].column if len(release.keys) == 1 else None
    place = -1 if column is None else column - start
    return find(table.name, table.unit.max_groups, names[place]) if 0 <= place < len(names) else None


def _cut_of_rows(
    plan: ReleasePlan, measurement: Measurement, call: AggregateCall, excess: Excess
) -> Cut | None:
    # of t > R rows a whole weight takes t - R and less than t/U, which is at most (t - R)·(R + 1)/U
    rows = 1 + Fraction(measurement.bounding.in_all + 1, measurement.denominator)
    if call.function == "count":
        return Cut(excess, rows, Fraction(0))
    if call.function != "sum":
        return None
    own = plan.release.rows
    lattice = lattice_of(call.args[0], environment_of(own.columns, own.predicate), squared=False)
    if lattice is None:
        return None
    low, high = (end * lattice.step for end in (lattice.low, lattice.high))
    return Cut(excess, max(high, Fraction(0)) * rows, max(-low, Fraction(0)) * rows)
