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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..mechanisms import Law
from ..plan.privacy.axes import is_reported
from ..plan.privacy.keys import environment_of
from ..plan.privacy.partitions import Places
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.expressions import Expr
from .estimate import Sums
from .fitted import FEW, DrawId, Told, id_of, is_observed, measurement_of, tell
from .questions import (
    Question,
    Shape,
    Ties,
    axis_name,
    drawn_places,
    placed_keys,
    questions_of,
    related_keys,
    shape_of,
    sums_of,
    ties_of,
)
from .released import Array, ReleasedMeasurement, decode, integers, leading, listed_part
from .run import ReleasedRows

__all__ = ["consistent"]

Place = tuple[int, int]
"""A release among those that are read together, and a measurement of it."""


def consistent(releases: Sequence[ReleasedRows]) -> list[ReleasedRows]:
    """Return releases that are read together with the numbers that agree, where these are no less exact."""
    if len(releases) < 2:
        return list(releases)
    fits = list(_fits(releases))
    used = [draw for fit in fits for draw in fit.draws]
    others = {
        draw
        for number, rows in enumerate(releases)
        for index, one in rows.measurements.items()
        if not any((number, index) in fit.answers for fit in fits) and index not in rows.fitted
        for draw in _draws_of(rows, index, one)
    }
    if len(set(used)) < len(used) or not others.isdisjoint(used):
        return list(releases)  # their bars would take for independent what is not
    found = list(releases)
    for fit in fits:
        for (number, index), (measurement, told) in fit.answers.items():
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


@dataclass(frozen=True, slots=True)
class _Member:
    """A measurement of a release by its own draws, as one of a family, of the rows on which `predicate` holds; `told`:
    as it is by itself. `drawn`: the groups of its own draws with all others; None: they are taken as those of its
    listed groups. `complete`: see `Question`."""

    place: Place
    rows: ReleasedRows
    told: ReleasedMeasurement
    shape: Shape
    predicate: tuple[Expr, ...]
    drawn: Shape | None
    complete: Mapping[bytes, int]

    @property
    def measurement(self) -> ReleasedMeasurement:
        return self.rows.measurements[self.place[1]]


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
        fit = _fit(left) if len({member.shape for member in left}) > 1 else None
        if fit is not None:
            taken.update(fit.answers)
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
    finer = rows.taken.get(index)
    borrowed = None if finer is None else finer.question
    questions = [borrowed] if borrowed is not None else list(questions_of(plan, rows.groups))
    for question in questions:
        family = plan.family(index, question.predicate)
        is_own = question.predicate == plan.release.rows.predicate
        if family is not None and (is_own or borrowed is not None or plan.bounding.per_row):
            shape = shape_of(question, rows.groups.size)
            drawn = _drawn_shape(plan, question)
            yield family, _Member(place, rows, told, shape, question.predicate, drawn, question.complete)


def _drawn_shape(plan: ReleasePlan, question: Question) -> Shape | None:
    """Return the groups of a draw with all others, of the rows that the question's filters keep."""
    places = drawn_places(plan, question.predicate)
    if places is None:
        return None
    tuples = zip(*itertools.product(*places.values()), strict=True)
    groups = {key: list(column) for key, column in zip(places, tuples, strict=True)}
    return shape_of(replace(question, groups=groups), math.prod(map(len, places.values())))


# --- what they are made of -------------------------------------------------------------------------------------


def _draws_of(rows: ReleasedRows, index: int, measurement: ReleasedMeasurement) -> list[bytes]:
    """Return the draws that a measurement is made of."""
    finer = rows.taken.get(index)
    drawn = [draw for together in measurement.draws for draw in together]
    drawn += [] if finer is None else [draw for _, draw in finer.sources]
    return list(dict.fromkeys(map(id_of, drawn)))


def _drawn(members: Sequence[_Member], place: int) -> dict[Shape, dict[DrawId, tuple[Array, Law]]]:
    """Return all draws of a coordinate, by shape, that the members are made of."""
    found: dict[Shape, dict[DrawId, tuple[Array, Law]]] = {}
    complete = {key: size for member in members for key, size in member.complete.items()}
    for member in members:
        finer = member.rows.taken.get(member.place[1])
        if finer is not None and finer.question is not None:
            for grouping, draw in finer.sources:
                sizes = [key.size for key in grouping.keys]
                kept = [complete.get(key.digest, key.size) for key in grouping.keys]
                size = math.prod(kept)
                at = np.unravel_index(np.arange(size), kept) if kept else ()
                groups = sorted(
                    (key.digest, tuple(int(i) for i in column))
                    for key, column in zip(grouping.keys, at, strict=True)
                )
                one = decode(draw.payload, draw.law)
                shape = Shape(tuple(groups), (), size)
                values = leading(one.values[place], sizes, kept)
                found.setdefault(shape, {})[id_of(draw), place] = values, one.laws[place]
            continue
        measures = member.rows.plan.measure_keys(
            member.place[1], member.rows.plan.salted(b""), member.rows.keyset
        )
        for draw in member.measurement.draws[place]:
            at_ = draw.measures.index(measures[place])
            one = decode(draw.payload, draw.law)
            values, shape, axes = one.values[at_], member.shape, member.rows.plan.axes
            if (
                axes is not None
                and member.drawn is not None
                and len(values) == math.prod(a.size for a in axes)
            ):
                shape, values = (
                    member.drawn,
                    leading(values, [a.size for a in axes], [a.believed for a in axes]),
                )
            found.setdefault(shape, {})[id_of(draw), at_] = (
                listed_part(values, None if shape is member.drawn else axes), one.laws[at_]
            )  # fmt: skip
    return found


# --- the estimate ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Coordinate:
    """One coordinate of all members, and the cells of its table."""

    told: dict[Place, Told]
    table: list[int]


def _coordinate(
    members: Sequence[_Member],
    place: int,
    whole: Mapping[bytes, int],
    related: Mapping[bytes, tuple[Expr, Places]],
) -> _Coordinate | None:
    """Return how one coordinate of all members agrees; None: it does not, or some number would be no more exact."""
    drawn = _drawn(members, place)
    if not all(is_observed(law) for draws in drawn.values() for _, law in draws.values()):
        return None
    shapes = (*drawn, *(member.shape for member in members))
    axes, ties = _axes(shapes, whole, members[0], related)
    if any(sums_of(shape, axes, ties) is None for shape in shapes):
        axes, ties = _axes(shapes, whole, members[0], {})
    together: dict[Sums, dict[DrawId, tuple[Array, Law]]] = {}
    for shape in sorted(drawn, key=_ordered):
        sums = sums_of(shape, axes, ties)
        if sums is None:
            return None
        together.setdefault(sums, {}).update(drawn[shape])
    wanted = [sums_of(member.shape, axes, ties) for member in members]
    unit = max(one.rows.plan.measures[one.place[1]].measurement.denominator for one in members)
    found = tell(together, tuple(axes.values()), [one for one in wanted if one is not None], unit)
    if found is None or None in wanted:
        return None
    told = {member.place: one for member, one in zip(members, found, strict=True)}
    if not all(_is_better(told[one.place], one, place) for one in members):
        told = {at: one.by_itself() for at, one in told.items()}
        if not all(_is_better(told[one.place], one, place) for one in members):
            return None
    table = found[0].design.table([one.numbers for one in found[0].observed])
    return None if table is None else _Coordinate(told, table)


def _ordered(shape: Shape) -> str:
    """Return what shapes are ordered by: the same in every process."""
    return repr((shape.size, shape.groups, [(key, sorted(places)) for key, places in shape.filters]))


def _axes(
    shapes: Iterable[Shape],
    whole: Mapping[bytes, int],
    member: _Member,
    related: Mapping[bytes, tuple[Expr, Places]],
) -> tuple[dict[bytes, int], Ties]:
    """Return how many atoms each axis has that some shapes read, and how their keys tie: where it is not known which
    rows there are beside a key's places, there may be others."""
    found: dict[bytes, int] = {}
    for shape in shapes:
        for key, places in (*shape.groups, *shape.filters):
            others = 0 if key in whole else 1
            found[key] = max(found.get(key, whole.get(key, 1)), max(places, default=0) + 1 + others)
    env = environment_of(member.rows.plan.release.rows.columns, member.predicate)
    ties = ties_of({key: related[key] for key in found if key in related}, env)
    found |= {key: len(places.groups) for key, (_, places) in ties.items()}
    return dict(sorted((axis_name(key, ties), atoms) for key, atoms in found.items())), ties


def _is_better(found: Told, member: _Member, place: int) -> bool:
    """Say whether no number has more variance than without. A number that is rounded by itself moves by the whole
    number that is nearest to its correction: by 0 where that is small (soundness.md 3.15).
    """
    plain = float(min(one.laws[place].spread for one in (member.measurement, member.told)))
    moved = np.array(found.rounding)
    return not np.any(FEW * moved > plain) and not np.any(found.variances > plain * (1 + 1e-4) - moved)


# --- the answers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fit:
    """The measurements of a family that agree, what each coordinate is told by, and the draws that they are made of."""

    answers: dict[Place, tuple[ReleasedMeasurement, tuple[Told, ...]]]
    draws: frozenset[bytes]


def _fit(members: Sequence[_Member]) -> _Fit | None:
    plans = [(member.rows.plan, member.predicate) for member in members]
    related = {key: one for plan in plans for key, one in related_keys(*plan).items()}
    whole = {key: size for plan in plans for key, (_, (_, size)) in placed_keys(*plan).items()}
    for member in members:
        finer = member.rows.taken.get(member.place[1])
        for grouping, _ in () if finer is None else finer.sources:
            known = member.complete
            whole |= {
                key.digest: known.get(key.digest, key.size)
                for key in grouping.keys
                if key.is_complete or key.digest in known
            }
    sizes = Counter(len(member.measurement.laws) for member in members)
    if len(sizes) > 1:
        raise AssertionError("a family's vectors have as many coordinates")
    found = [_coordinate(members, place, whole, related) for place in range(next(iter(sizes)))]
    coordinates = tuple(one for one in found if one is not None)
    if len(coordinates) < len(found):
        return None
    answers = {}
    for member in members:
        told = tuple(one.told[member.place] for one in coordinates)
        values = [
            integers(each.values(one.table, member.measurement.values[number]))
            for number, (each, one) in enumerate(zip(told, coordinates, strict=True))
        ]
        answers[member.place] = measurement_of(told, values, member.measurement.groups), told
    observed = (seen for told in answers.values() for one in told[1] for seen in one.observed)
    return _Fit(answers, frozenset(id_[0] for seen in observed for id_ in seen.laws))
