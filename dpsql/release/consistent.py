"""Answers that are read together, and that are of the same rows in other groupings, agree by least squares.

A total, its groups and a group by itself are often drawn apart: by GROUPING SETS, in several releases of a statement,
or by the statements of a batch. What they say of the same rows differs by noise. Each is corrected by what the others
say of it, which leaves all of them with less noise.

House rules (soundness.md 3.15):

1. Of what is read together alone: the draws that answer this statement or batch, as they are stored, and no others. So
   an answer moves where a draw of what it asks itself joins, and not because somebody asked something else.
2. The same measures of the same rows, bounds, t and epoch (`ReleasePlan.family`), each group once. A filter is a part
   of a grouping's rows only where it changes no t: where a person has one row.
3. Numbers with independent additive noise alone: nothing that is found or chosen, no vectors, nothing that is made of
   randomised answers, nothing below a release.
4. No number has more variance than without: weights are those of the least, and rounding is looked at.
5. From shapes, laws and released numbers: nothing is asked or charged, and what is drawn are replicas for bars.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..budget import Draw, Grouping
from ..mechanisms import Law, SquareRoot
from ..plan.privacy.axes import is_reported
from ..plan.privacy.keys import environment_of
from ..records import dataclass
from .estimate import FEW, DrawId, Sums, Told, id_of, is_read, measurement_of, tell
from .released import Array, ReleasedMeasurement, decode, integers, leading, listed_part
from .run import Place, ReleasedRows
from .table import (
    Question,
    Shape,
    Table,
    cells_in,
    cells_with_rows,
    drawn_shape,
    placed_keys,
    places_of,
    questions_of,
    related_keys,
    ties_of,
    whole_keys,
)


def consistent(releases: Sequence[ReleasedRows]) -> list[ReleasedRows]:
    """Return releases that are read together with the numbers that agree, where these are no less exact."""
    found = list(releases)
    fits = list(_fits(releases)) if len(releases) > 1 else []
    answers = {place: answer for fit in fits for place, answer in fit.items()}
    used = [draw for fit in fits for draw in _draws_in(fit)]
    others = {
        draw
        for number, rows in enumerate(releases)
        for index in rows.measurements
        if (number, index) not in answers and index not in rows.fitted
        for draw in draws_of(rows, index)
    }
    if len(set(used)) < len(used) or not others.isdisjoint(used):
        return found  # their bars would take for independent what is not
    for (number, index), (measurement, told) in answers.items():
        rows = found[number]
        fitted = {**rows.fitted, index: told}
        found[number] = replace(
            rows,
            measurements={**rows.measurements, index: measurement},
            fitted=fitted,
            is_agreed=True,
            borrowed=set() if len(fitted) == len(rows.measurements) else rows.borrowed,
        )
    return found


# --- what is read together -------------------------------------------------------------------------------------


_Fit = dict[Place, tuple[ReleasedMeasurement, tuple[Told, ...]]]
"""The measurements of a family that agree, each with what its coordinates are told by."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A measurement of a release by its own draws, as one of a family; `place`: in what is read together. `told`: as it
    is by itself. `drawn`: the groups of its own draws with all others; None: they are taken as those of its listed
    groups."""

    place: Place
    rows: ReleasedRows
    told: ReleasedMeasurement
    question: Question
    drawn: Shape | None

    @property
    def measurement(self) -> ReleasedMeasurement:
        return self.rows.measurements[self.place[1]]

    @property
    def sources(self) -> Sequence[tuple[Grouping, Draw]]:
        """The stored groupings that it was taken from, if it was."""
        return _sources(self.rows, self.place[1])


def _sources(rows: ReleasedRows, index: int) -> Sequence[tuple[Grouping, Draw]]:
    return rows.taken[index].sources if index in rows.taken else ()


def _fits(releases: Sequence[ReleasedRows]) -> Iterator[_Fit]:
    """Yield how the measurements of each family agree, the largest family first; each measurement is in one."""
    families: dict[bytes, list[_Member]] = {}
    for number, told in enumerate(releases):
        rows = told.by_own_draws()
        for index, measurement in told.measurements.items():
            for family, member in _memberships((number, index), rows, measurement):
                families.setdefault(family, []).append(member)
    taken: set[Place] = set()
    for _, members in sorted(families.items(), key=lambda it: (-len(it[1]), it[0])):
        left = [member for member in members if member.place not in taken]
        fit = _fit(left) if len({member.question.shape for member in left}) > 1 else None
        if fit is not None:
            taken.update(fit)
            yield fit


def _memberships(
    place: Place, rows: ReleasedRows, told: ReleasedMeasurement
) -> Iterator[tuple[bytes, _Member]]:
    """Yield the families that a measurement may be one of. `told`: as it is by itself."""
    plan, index = rows.plan, place[1]
    if rows.groups is None or plan.groups is None or plan.is_empty or plan.intermediates:
        return
    if plan.selection is not None or plan.counted is not None or is_reported(plan.release.rows):
        return
    if plan.measures[index].choice is not None:
        return
    borrowed = rows.taken[index].question if index in rows.taken else None
    for question in questions_of(plan, rows.groups) if borrowed is None else (borrowed,):
        family = plan.family(index, question.predicate)
        is_own = question.predicate == plan.release.rows.predicate
        if family is not None and (is_own or borrowed is not None or plan.bounding.per_row):
            yield family, _Member(place, rows, told, question, drawn_shape(plan, question))


# --- what they are made of -------------------------------------------------------------------------------------


def draws_of(rows: ReleasedRows, index: int) -> set[bytes]:
    """Return the draws that a measurement is made of."""
    drawn = (draw for together in rows.measurements[index].draws for draw in together)
    return set(map(id_of, (*drawn, *(draw for _, draw in _sources(rows, index)))))


def _draws_in(fit: _Fit) -> set[bytes]:
    """Return those that measurements which agree are made of."""
    told = (one for _, each in fit.values() for one in each)
    return {draw for one in told for seen in one.observed for draw, _ in seen.laws}


_Drawn = dict[Shape, dict[DrawId, tuple[Array, Law]]]
"""By shape all draws of a coordinate that some members are made of."""


def _drawn(members: Sequence[_Member], place: int) -> _Drawn:
    found: _Drawn = {}
    complete = {key: size for member in members for key, size in member.question.complete.items()}
    for member in members:
        for grouping, draw in member.sources:
            one = decode(draw.payload, draw.law)
            values = cells_in(one.values[place], grouping, complete)
            drawn = found.setdefault(cells_with_rows(grouping, complete), {})
            drawn[id_of(draw), place] = values, one.laws[place]
        plan, (_, index) = member.rows.plan, member.place
        measures = plan.measure_keys(index, plan.salted(b""), member.rows.keyset)
        for draw in () if member.sources else member.measurement.draws[place]:
            at = draw.measures.index(measures[place])
            one = decode(draw.payload, draw.law)
            shape, values = _own(member, one.values[at])
            found.setdefault(shape, {})[id_of(draw), at] = values, one.laws[at]
    return found


def _own(member: _Member, values: Array) -> tuple[Shape, Array]:
    """Return what an own draw of a member has the numbers of, and these."""
    axes = member.rows.plan.axes
    if axes is None or member.drawn is None or len(values) != math.prod(axis.size for axis in axes):
        return member.question.shape, listed_part(values, axes)
    return member.drawn, leading(values, [axis.size for axis in axes], [axis.believed for axis in axes])


# --- the estimate ------------------------------------------------------------------------------------------------


def _fit(members: Sequence[_Member]) -> _Fit | None:
    """Return how some measurements agree; None: the draws do not tell them all, or some number would be no more exact
    than it is alone."""
    if len({len(member.measurement.laws) for member in members}) > 1:
        raise AssertionError("a family's vectors have as many coordinates")
    drawn = [_drawn(members, place) for place in range(len(members[0].measurement.laws))]
    table = _table(members, [*itertools.chain(*drawn), *(member.question.shape for member in members)])
    found = [_coordinate(members, place, table, own) for place, own in enumerate(drawn)]
    coordinates = [one for one in found if one is not None]
    if len(coordinates) < len(found):
        return None
    answers: _Fit = {}
    for member, *each in zip(members, *coordinates, strict=True):
        told, values = zip(*each, strict=True)
        answers[member.place] = measurement_of(told, values, member.measurement.groups), told
    return answers


def _table(members: Sequence[_Member], shapes: Sequence[Shape]) -> Table:
    """Return the table of all axes that some shapes read, of keys that tie to each other where all shapes have cells
    then."""
    plans = [(member.rows.plan, member.question.predicate) for member in members]
    related = {key: one for plan in plans for key, one in related_keys(*plan).items()}
    whole = {key: size for plan in plans for key, (_, (_, size)) in placed_keys(*plan).items()}
    for member in members:
        whole |= whole_keys((grouping for grouping, _ in member.sources), member.question.complete)
    atoms = places_of(shapes, whole)
    env = environment_of(plans[0][0].release.rows.columns, plans[0][1])
    tied = Table.of(atoms, ties_of({key: related[key] for key in atoms if key in related}, env))
    return tied if all(tied.reading(shape) is not None for shape in shapes) else Table.of(atoms, {})


def _coordinate(
    members: Sequence[_Member], place: int, table: Table, drawn: _Drawn
) -> list[tuple[Told, Array]] | None:
    """Return of each member what one coordinate is told by, and its numbers; None: see `_fit`."""
    if not all(is_read(law) for draws in drawn.values() for _, law in draws.values()):
        return None
    together: dict[Sums, dict[DrawId, tuple[Array, Law]]] = {}
    for shape in sorted(drawn, key=repr):  # the same in every process
        reading = table.reading(shape)
        if reading is None:
            return None
        for id_, (values, law) in drawn[shape].items():
            read = reading.by_root() if isinstance(law, SquareRoot) else reading
            if read is None:
                return None
            together.setdefault(read.sums, {})[id_] = read.values(values), read.law(law)
    wanted = [one for member in members if (one := table.sums(member.question.shape)) is not None]
    unit = max(one.rows.plan.measures[one.place[1]].measurement.denominator for one in members)
    told = tell(together, table.sizes, wanted, unit)
    if told is None or len(wanted) < len(members):
        return None
    for each in (told, [one.by_itself() for one in told]):
        if all(_is_better(one, member, place) for one, member in zip(each, members, strict=True)):
            cells = told[0].design.table([one.numbers for one in told[0].observed])
            plain = (member.measurement.values[place] for member in members)
            if cells is None:
                return None
            return [(one, integers(one.values(cells, own))) for one, own in zip(each, plain, strict=True)]
    return None


def _is_better(found: Told, member: _Member, place: int) -> bool:
    """Say whether no number has more variance than without. A number that is rounded by itself moves by the whole
    number that is nearest to its correction: by 0 where that is small (soundness.md 3.15).
    """
    plain = float(min(one.laws[place].spread for one in (member.measurement, member.told)))
    moved = np.array(found.rounding)
    return not np.any(FEW * moved > plain) and not np.any(found.variances > plain * (1 + 1e-4) - moved)
