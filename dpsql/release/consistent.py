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

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..budget import Draw
from ..mechanisms import Coordinate, Gaussian, Law, WeightedSum, best_weights
from ..plan.privacy.axes import Partition, is_reported
from ..plan.release_plan import ReleasePlan
from ..postprocess.rounding import rounded, rounded_noise
from ..postprocess.simulate import Seeded
from .estimate import PARTS, Design, Forms, Sums, design_of, forms_of
from .finer import Question, drawn_places, questions_of, whole_keys
from .released import Array, ReleasedMeasurement, decode, integers, leading, listed_part
from .run import ReleasedRows

__all__ = ["consistent"]

Place = tuple[int, int]
"""A release among those that are read together, and a measurement of it."""

_FEW = 4
"""Numbers are rounded together where that moves none by more than so small a part of its variance."""
_FINE = 2**10
_MOST_REPLICAS = 2 * 10**7
"""Most cells times shapes times replicas: some seconds."""


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
        if not any((number, index) in fit.answers for fit in fits)
        for draw in _draws_of(rows, index, one)
    }
    if len(set(used)) < len(used) or not others.isdisjoint(used):
        return list(releases)  # their bars would take for independent what is not
    found = list(releases)
    for fit in fits:
        for (number, index), answer in fit.answers.items():
            rows = found[number]
            fitted = {**rows.fitted, index: answer}
            found[number] = replace(
                rows,
                measurements={**rows.measurements, index: answer.measurement},
                fitted=fitted,
                borrowed=set() if len(fitted) == len(rows.measurements) else rows.borrowed,
            )
    return found


@dataclass(frozen=True, slots=True)
class Shape:
    """The groups of a grouping. `groups`: by key, each group's place among the key's values; `filters`: by key, the
    places of the rows that are counted at all. `size`: how many groups."""

    groups: tuple[tuple[bytes, tuple[int, ...]], ...]
    filters: tuple[tuple[bytes, frozenset[int]], ...]
    size: int


def sums_of(shape: Shape, axes: Mapping[bytes, int]) -> Sums:
    """Return a shape's groups as sums of the cells of a table with so many atoms on the axis of each key."""
    groups, filters = dict(shape.groups), dict(shape.filters)
    partitions, rows = [], np.zeros(shape.size, dtype=np.int64)
    for key, atoms in axes.items():
        if key in groups:
            used = sorted(set(groups[key]))
            partitions.append(Partition.of_places(used, atoms))
            rows = rows * len(used) + np.searchsorted(np.array(used), np.array(groups[key]))
        else:
            partitions.append(
                Partition.of_some(filters[key], atoms) if key in filters else Partition.whole(atoms)
            )
    is_all = np.array_equal(rows, np.arange(math.prod(one.size for one in partitions)))
    return Sums(tuple(partitions), None if is_all else tuple(rows.tolist()))


# --- what is read together -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Member:
    """A measurement of a release, as one of a family. `whole`: see `whole_keys`. `drawn`: the groups of its own draws
    with all others; None: they are taken as those of its listed groups. `complete`: see `Question`."""

    place: Place
    rows: ReleasedRows
    shape: Shape
    whole: Mapping[bytes, int]
    drawn: Shape | None
    complete: Mapping[bytes, int]

    @property
    def measurement(self) -> ReleasedMeasurement:
        return self.rows.measurements[self.place[1]]


def _fits(releases: Sequence[ReleasedRows]) -> Iterator[_Fit]:
    """Yield how the measurements of each family agree, the largest family first; each measurement is in one."""
    families: dict[bytes, list[_Member]] = {}
    for number, rows in enumerate(releases):
        for index in rows.measurements:
            for family, member in _memberships((number, index), rows):
                families.setdefault(family, []).append(member)
    taken: set[Place] = set()
    for _, members in sorted(families.items(), key=lambda it: (-len(it[1]), it[0])):
        left = [member for member in members if member.place not in taken]
        fit = _fit(left) if len({member.shape for member in left}) > 1 else None
        if fit is not None:
            taken.update(fit.answers)
            yield fit


def _memberships(place: Place, rows: ReleasedRows) -> Iterator[tuple[bytes, _Member]]:
    """Yield the families that a measurement may be one of."""
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
            shape = _shape_of(question, rows.groups.size)
            whole, drawn = whole_keys(plan, question.predicate), _drawn_shape(plan, question)
            yield family, _Member(place, rows, shape, whole, drawn, question.complete)


def _shape_of(question: Question, size: int) -> Shape:
    groups = sorted((key, tuple(places)) for key, places in question.groups.items())
    filters = sorted(
        ((key, frozenset(places)) for key, places in question.filters.items()), key=lambda it: it[0]
    )
    return Shape(tuple(groups), tuple(filters), size)


def _drawn_shape(plan: ReleasePlan, question: Question) -> Shape | None:
    """Return the groups of a draw with all others, of the rows that the question's filters keep."""
    places = drawn_places(plan, question.predicate)
    if places is None:
        return None
    tuples = zip(*itertools.product(*places.values()), strict=True)
    groups = {key: list(column) for key, column in zip(places, tuples, strict=True)}
    return _shape_of(replace(question, groups=groups), math.prod(map(len, places.values())))


# --- what they are made of -------------------------------------------------------------------------------------

_Id = tuple[bytes, int]
"""A draw, and a coordinate of it."""


@dataclass(frozen=True)
class _Observed:
    """What was drawn of a coordinate over one shape. `numbers`: the mean of all draws with the least variance, in
    `PARTS` of a step; `best`: what the best draw says."""

    laws: dict[_Id, Law]
    weights: dict[_Id, Fraction]
    numbers: list[int]
    best: list[int]

    @property
    def spread(self) -> Fraction:
        return sum((self.weights[one] ** 2 * law.spread for one, law in self.laws.items()), Fraction(0))

    @classmethod
    def of(cls, draws: Mapping[_Id, tuple[Array, Law]]) -> _Observed:
        ordered = sorted(draws, key=lambda one: (draws[one][1].spread, one))
        laws = {one: draws[one][1] for one in ordered}
        weights = dict(zip(ordered, best_weights(list(laws.values())), strict=True))
        parts = [(int(weights[one] * PARTS), draws[one][0].tolist()) for one in ordered]
        best = parts[0][1]
        numbers = [sum(weight * values[i] for weight, values in parts) for i in range(len(best))]
        return cls(laws, weights, numbers, best)


def _id_of(draw: Draw) -> bytes:
    return hashlib.sha256(b"".join(draw.measures) + draw.law.text.encode() + draw.payload).digest()


def _draws_of(rows: ReleasedRows, index: int, measurement: ReleasedMeasurement) -> list[bytes]:
    """Return the draws that a measurement is made of."""
    finer = rows.taken.get(index)
    drawn = [draw for together in measurement.draws for draw in together]
    drawn += [] if finer is None else [draw for _, draw in finer.sources]
    return list(dict.fromkeys(map(_id_of, drawn)))


def _drawn(members: Sequence[_Member], place: int) -> dict[Shape, dict[_Id, tuple[Array, Law]]]:
    """Return all draws of a coordinate, by shape, that the members are made of."""
    found: dict[Shape, dict[_Id, tuple[Array, Law]]] = {}
    for member in members:
        finer = member.rows.taken.get(member.place[1])
        if finer is not None and finer.question is not None:
            for grouping, draw in finer.sources:
                sizes = [key.size for key in grouping.keys]
                kept = [member.complete.get(key.digest, key.size) for key in grouping.keys]
                size = math.prod(kept)
                at = np.unravel_index(np.arange(size), kept)
                groups = sorted(
                    (key.digest, tuple(int(i) for i in column))
                    for key, column in zip(grouping.keys, at, strict=True)
                )
                one = decode(draw.payload, draw.law)
                shape = Shape(tuple(groups), (), size)
                values = leading(one.values[place], sizes, kept)
                found.setdefault(shape, {})[_id_of(draw), place] = values, one.laws[place]
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
            found.setdefault(shape, {})[_id_of(draw), at_] = (
                listed_part(values, None if shape is member.drawn else axes), one.laws[at_]
            )  # fmt: skip
    return found


# --- the estimate ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Coordinate:
    """One coordinate of all members. `wanted`: by member what its numbers are of the table; `forms`: their errors.
    `unit`: what the table's running totals are rounded to, in lattice steps; None: each number is rounded by itself."""

    observed: tuple[_Observed, ...]
    design: Design
    wanted: dict[Place, Sums]
    forms: dict[Place, Forms]
    unit: int | None

    def rounding(self, place: Place) -> list[float]:
        """Return by group the variance that rounding in a table adds to that of one rounding by itself."""
        if self.unit is None:
            return [0.0] * self.wanted[place].size
        return [(blocks - 1) * self.unit**2 / 12 for blocks in self.wanted[place].blocks()]

    def laws(self, place: Place) -> tuple[WeightedSum, ...]:
        """Return by group the law of the noise on a member. What a table's rounding adds is taken for normal noise of
        its variance, as sums of roundings are (a test holds the bars)."""
        known: dict[tuple[int, float], WeightedSum] = {}
        for one in zip(self.forms[place].kinds, self.rounding(place), strict=True):
            if one not in known:
                kind, variance = one
                noises = list(self._noises(place, kind))
                if variance:
                    noises.append((Gaussian(Fraction(math.ceil(math.sqrt(variance) * _FINE), _FINE)), 1.0))
                known[one] = WeightedSum.of(noises, Fraction(self.unit or 1, 2))
        return tuple(known[one] for one in zip(self.forms[place].kinds, self.rounding(place), strict=True))

    def variances(self, place: Place) -> Array:
        """Return by group the variance of a member before it is rounded."""
        found = np.zeros(len(self.forms[place].weights[0]))
        for one, weights in zip(self.observed, self.forms[place].weights, strict=True):
            found += float(one.spread) * (weights**2).sum(axis=1)
        return found[list(self.forms[place].kinds)]

    def _noises(self, place: Place, kind: int) -> Iterator[tuple[Law, Array | float]]:
        for one, weights in zip(self.observed, self.forms[place].weights, strict=True):
            yield from ((law, weights[kind] * float(one.weights[id_])) for id_, law in one.laws.items())

    def values(self, plain: Mapping[Place, Array]) -> dict[Place, list[int]] | None:
        """Return the members' whole numbers; None: there is no estimate. `plain`: as they are by themselves."""
        table = self.design.table([one.numbers for one in self.observed])
        if table is None:
            return None
        whole, rest = table
        if self.unit is not None:
            cells = np.array(rounded(self.design.sizes, whole, rest, self.unit), dtype=object)
            shaped = cells.reshape((1, *self.design.sizes))
            return {place: self.wanted[place].of(shaped)[0].tolist() for place in plain}
        found = {}
        exact = np.array(whole, dtype=object).reshape((1, *self.design.sizes))
        for place, own in plain.items():
            sums = self.wanted[place]
            units, parts = sums.of(exact)[0].tolist(), sums.of(rest.reshape(exact.shape))[0].tolist()
            found[place] = [
                one + _nearest(PARTS * (unit - one) + round(PARTS * part))
                for unit, part, one in zip(units, parts, own.tolist(), strict=True)
            ]
        return found

    @property
    def most_draws(self) -> int:
        """How many replicas there are time for."""
        return _MOST_REPLICAS // (math.prod(self.design.sizes) * len(self.observed))

    def noise(self, place: Place, draws: int) -> Array:
        """Return replicas of a member's noise, shape (its groups, draws): its family's are of the same draws."""
        noises = []
        for one in self.observed:
            shape = (draws, len(one.numbers))
            drawn = (
                float(one.weights[id_]) * law.draw(math.prod(shape), Seeded(_seed(id_, law))).reshape(shape)
                for id_, law in one.laws.items()
            )
            noises.append(sum(drawn, np.zeros(shape)))
        table = self.design.noise(noises)
        if table is None:
            raise AssertionError("what was told by these shapes once is told again")
        if self.unit is not None:
            return self.wanted[place].of(rounded_noise(table, self.unit)).T
        return np.asarray(np.rint(self.wanted[place].of(table)).T)


def _nearest(parts: int) -> int:
    """Return the nearest whole number of units, a half towards 0."""
    units = -((PARTS // 2 - abs(parts)) // PARTS)
    return units if parts > 0 else -units


def _seed(id_: _Id, law: Law) -> bytes:
    return hashlib.sha256(id_[0] + id_[1].to_bytes(4, "big") + law.text.encode()).digest()


def _coordinate(members: Sequence[_Member], place: int, whole: Mapping[bytes, int]) -> _Coordinate | None:
    """Return how one coordinate of all members agrees; None: it does not, or some number would be no more exact."""
    drawn = _drawn(members, place)
    laws = [law for draws in drawn.values() for _, law in draws.values()]
    if any(
        not law.is_additive or law.is_joint or isinstance(law, Coordinate) or law.spread < 1 for law in laws
    ):
        return None
    axes = _axes((*drawn, *(member.shape for member in members)), whole)
    together: dict[Sums, dict[_Id, tuple[Array, Law]]] = {}
    for shape in sorted(drawn, key=_ordered):
        together.setdefault(sums_of(shape, axes), {}).update(drawn[shape])
    merged = {sums: _Observed.of(draws) for sums, draws in together.items()}
    spreads = tuple(float(one.spread) for one in merged.values())
    design = design_of(tuple(axes.values()), tuple(merged), spreads)
    if design is None:
        return None
    wanted = {member.place: sums_of(member.shape, axes) for member in members}
    forms = {}
    for at, sums in wanted.items():
        found = forms_of(design, sums)
        if found is None:
            return None
        forms[at] = found
    unit = max(one.rows.plan.measures[one.place[1]].measurement.denominator for one in members)
    for rounded_to in (unit, None):
        one = _Coordinate(tuple(merged.values()), design, wanted, forms, rounded_to)
        if _is_better(one, members, place):
            return one
    return None


def _ordered(shape: Shape) -> str:
    """Return what shapes are ordered by: the same in every process."""
    return repr((shape.size, shape.groups, [(key, sorted(places)) for key, places in shape.filters]))


def _axes(shapes: Iterable[Shape], whole: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return how many atoms each key has that some shapes read: where it is not known which rows there are beside its
    places, there may be others."""
    found: dict[bytes, int] = {}
    for shape in shapes:
        for key, places in (*shape.groups, *shape.filters):
            others = 0 if key in whole else 1
            found[key] = max(found.get(key, whole.get(key, 1)), max(places, default=0) + 1 + others)
    return dict(sorted(found.items()))


def _is_better(found: _Coordinate, members: Sequence[_Member], place: int) -> bool:
    """Say whether no number has more variance than without. A number that is rounded by itself moves by the whole
    number that is nearest to its correction: by 0 where that is small (soundness.md 3.15).
    """
    for member in members:
        plain = float(member.measurement.laws[place].spread)
        moved = np.array(found.rounding(member.place))
        if np.any(_FEW * moved > plain):
            return False
        if np.any(found.variances(member.place) > plain * (1 + 1e-6) - moved):
            return False
    return True


# --- the answers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Answer:
    """A measurement that agrees with the others, and what its noise is like."""

    measurement: ReleasedMeasurement
    place: Place
    coordinates: tuple[_Coordinate, ...]

    @property
    def most_draws(self) -> int:
        """See `Replicas`."""
        return min(one.most_draws for one in self.coordinates)

    def noise(self, place: int, draws: int) -> Array:
        """See `Replicas`."""
        return self.coordinates[place].noise(self.place, draws)


@dataclass(frozen=True)
class _Fit:
    """The measurements of a family that agree, and the draws that they are made of."""

    answers: dict[Place, _Answer]
    draws: frozenset[bytes]


def _fit(members: Sequence[_Member]) -> _Fit | None:
    whole = {key: size for member in members for key, size in member.whole.items()}
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
    found = [_coordinate(members, place, whole) for place in range(next(iter(sizes)))]
    coordinates = tuple(one for one in found if one is not None)
    if len(coordinates) < len(found):
        return None
    values: dict[Place, list[Array]] = {member.place: [] for member in members}
    for number, one in enumerate(coordinates):
        numbers = one.values({member.place: member.measurement.values[number] for member in members})
        if numbers is None:
            return None
        for place, own in numbers.items():
            values[place].append(integers(own))
    answers = {}
    for member in members:
        each = tuple(one.laws(member.place) for one in coordinates)
        widest = tuple(max(laws, key=lambda law: law.spread) for laws in each)
        fitted = ReleasedMeasurement(
            tuple(values[member.place]), member.measurement.groups, widest, (None,) * len(widest), (), each
        )
        answers[member.place] = _Answer(fitted, member.place, coordinates)
    draws = frozenset(id_[0] for one in coordinates for seen in one.observed for id_ in seen.laws)
    return _Fit(answers, draws)
