"""A question that a stored grouping answers: a filter on a key is some of its groups, a coarser one adds groups up.

House rules (soundness.md 3.8):

1. The same measures of the same rows, under the same bounds, in the same epoch: what differs is which groups, and
   terms `key = literal` and `key IN (literals)` of WHERE that a key's values tell the rows of.
2. Groups of declared keys alone, and only those whose values are listed: of a key that is not asked about, all groups
   together are all rows where that of the other values is among them, or no row can have one.
3. Every group of the product is taken once or not at all.
4. From the text and what is stored: never what the data have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..budget import CLOSE, Draw, Edition, Grouping, GroupingKey, StoredDraws, StoredGrouping
from ..mechanisms import Law, sum_of
from ..plan.privacy.axes import Partition
from ..plan.privacy.keys import environment_of
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from .editions import EditionNote, digest_of, disagrees, fitted, kept
from .estimate import MOST_ATOMS, MOST_GROUPINGS, MOST_WORK, Sums
from .fitted import FEW, DrawId, Observed, Told, id_of, is_observed, measurement_of, tell
from .questions import (
    Question,
    Ties,
    axis_name,
    complete_sizes,
    named_digests,
    questions_of,
    related_keys,
    shape_of,
    sums_of,
    ties_of,
    without_key,
)
from .released import Array, Groups, ReleasedMeasurement, decode, integers, leading, vectors_of

__all__ = ["Finer", "Source", "find_finer", "finest", "sources_of"]


@dataclass(frozen=True, slots=True)
class Finer:
    """A measurement's answer from a stored grouping, and what it is made of, in words.

    `epoch`: in which it is stored; `entries`: the ledger entries of the groupings' draws, none for the question's own.
    `question`: what was asked of these groupings, with their draws as `sources`; None for the question's own. `told`:
    what each coordinate is told by, where that is several of these.
    """

    measurement: ReleasedMeasurement
    epoch: int
    said: str
    entries: tuple[int, ...] = ()
    question: Question | None = None
    sources: tuple[tuple[Grouping, Draw], ...] = ()
    told: tuple[Told, ...] = ()


def find_finer(
    plan: ReleasePlan,
    number: int,
    groups: Groups,
    store: StoredDraws,
    *,
    of_same_rows: bool = False,
    is_summed: bool = False,
) -> Finer | None:
    """Return a measurement as stored groupings have it together, of no more spread than is asked for; None: none has
    it. `of_same_rows`: not as an estimate by what was bounded over other rows too. `is_summed`: numbers of several
    groups are computed with, so that no sum of them may have more spread than drawn alone.
    """
    epoch = store.epoch
    found = sources_of(plan, number, groups, store, of_same_rows=of_same_rows)
    return finest(plan, number, groups, store, found, epoch, is_summed=is_summed)


def finest(
    plan: ReleasePlan,
    number: int,
    groups: Groups,
    store: StoredDraws,
    found: Sequence[Source],
    epoch: int,
    *,
    is_summed: bool = False,
) -> Finer | None:
    """Return what answers with the least spread of what `sources_of` has found. See `find_finer`; `epoch`: the store's,
    as it was before that was read.
    """
    wanted = plan.measures[number].law
    served = [one for one in found if one.serves(wanted) and not (is_summed and one.sways(wanted))]
    for source in sorted(served, key=lambda one: (one.spread, -one.newest)):
        found_ = source.finer(plan.measurements[number].size, epoch, store)
        if found_ is not None and isinstance(source, _Estimate):
            return _beside_before(plan, number, groups.size, source, found_, store)
        if found_ is not None:
            return found_
    return None


def _beside_before(
    plan: ReleasePlan, number: int, size: int, now: _Estimate, found: Finer, store: StoredDraws
) -> Finer:
    """Return an answer with what the edition before says of it, where its table is kept and answers as well."""
    older = [one.stored for one in now.drawn if one.stored.entry < now.newest]
    before = _estimate(plan, number, now.question, size, older) if len(older) > 1 else None
    measurement = plan.measurements[number]
    if before is None or before.spread <= now.spread or not before.serves(plan.measures[number].law):
        return found
    values = before.kept(store)
    if values is None:
        return found
    said = f"; better than edition {before.newest} (SET dpsql.edition = {before.newest})"
    if len(values) == 1:
        off = max(
            abs(new - old) for new, old in zip(found.measurement.values[0].tolist(), values[0], strict=True)
        )
        moved = float(off * measurement.step / measurement.denominator)
        said += f", from whose numbers these have moved by up to {moved:.6g}"
    return replace(found, said=EditionNote(found.said.replace(_ALONE, said + _ALONE)))


def sources_of(
    plan: ReleasePlan,
    number: int,
    groups: Groups,
    store: StoredDraws,
    *,
    of_same_rows: bool = False,
    beside: StoredGrouping | None = None,
    without: bytes | None = None,
) -> list[Source]:
    """Return what stored groupings say of a measurement, whatever its error. See `find_finer`. `beside`: one that is
    not stored, as if it were; `without`: a key that is left out of what is asked.
    """
    if plan.groups is None or plan.intermediates:
        return []
    questions: dict[bytes, Question] = {}
    for question in questions_of(plan, groups):
        family = plan.family(number, question.predicate)
        if family is None:
            return []
        if not of_same_rows or plan.bounding.per_row or question.predicate == plan.release.rows.predicate:
            questions[family] = question
    _, stored = store.groupings(list(questions))
    if beside is not None:
        stored[beside.grouping.family].append(beside)
    named, sources = named_digests(plan) if any(stored.values()) else None, list[Source]()
    for family, asked in questions.items():
        question, size = (asked, groups.size) if without is None else without_key(asked, without)
        mine = [one for one in stored[family] if _is_named(one.grouping, question, named)]
        if not mine:
            continue
        single = _best(question, size, mine)
        is_alone = len(mine) == 1 and single is not None
        together = None if is_alone else _estimate(plan, number, question, size, mine)
        sources += [one for one in (single, together) if one is not None]
    return sources


# --- its answer ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """What stored groupings say of a question."""

    question: Question

    @property
    def entries(self) -> tuple[int, ...]:
        """The ledger entries of the draws that it is made of."""
        raise NotImplementedError

    @property
    def errors(self) -> set[tuple[float, float]]:
        """Of all numbers their variances, and what rounding adds to each."""
        raise NotImplementedError

    @property
    def spread(self) -> float:
        """The largest of a number of it."""
        return max(variance + rounding for variance, rounding in self.errors)

    @property
    def newest(self) -> int:
        """The last draw."""
        return max(self.entries)

    def serves(self, wanted: Law) -> bool:
        """Say whether no number has more spread than is wanted of its coordinate."""
        raise NotImplementedError

    def sways(self, wanted: Law) -> bool:
        """Say whether some weighted sum of a coordinate's numbers has more spread than of numbers that are wanted."""
        raise NotImplementedError

    def finer(self, size: int, epoch: int, store: StoredDraws) -> Finer | None:
        """Return the answer, of so many coordinates; None: it was not found."""
        raise NotImplementedError


def _is_named(grouping: Grouping, question: Question, named: frozenset[bytes] | None) -> bool:
    """Say whether all keys of a grouping are the question's, or have a name for the analyst (`named_digests`)."""
    own = question.groups.keys() | question.filters.keys()
    return named is None or all(key.digest in own or key.digest in named for key in grouping.keys)


@dataclass(frozen=True)
class _Single(Source):
    """One stored grouping, of which each group of a question is so many cells. `sizes`: of its keys, how many values
    have rows; `sums`: the question's groups as sums of the cells by these."""

    stored: StoredGrouping
    sizes: tuple[int, ...]
    sums: Sums

    @property
    def cells(self) -> int:
        return math.prod(one.sizes[0] for one in self.sums.partitions)

    @property
    def law(self) -> Law:
        return sum_of(self.stored.law, self.cells)

    @property
    def entries(self) -> tuple[int, ...]:
        """See `Source`."""
        return (self.stored.entry,)

    @property
    def errors(self) -> set[tuple[float, float]]:
        """See `Source`."""
        return {(float(self.law.spread), 0.0)}

    def serves(self, wanted: Law) -> bool:
        """See `Source`."""
        return self.law.spread <= wanted.spread

    def sways(self, wanted: Law) -> bool:
        """See `Source`: its numbers are sums of different ones."""
        return False

    def finer(self, size: int, epoch: int, store: StoredDraws) -> Finer:
        """See `Source`."""
        draw, grouping = store.draw_of(self.stored), self.stored.grouping
        values = decode(draw.payload, draw.law).values
        if len(values) != size:
            raise AssertionError("a family's vectors have as many coordinates")
        summed = tuple(map(self._summed, values))
        said = repr((self.cells, self.question.groups, self.question.filters)).encode()
        vectors = vectors_of(self.law, draw.measures, draw.payload + said)
        laws = tuple(self.law.at(place) for place in range(size))
        name = f"by {self.question.name}" if self.question.name else "with more groups"
        added = f", each number from up to {self.cells} groups added up" if self.cells > 1 else ""
        return Finer(
            ReleasedMeasurement(summed, None, laws, vectors),
            epoch,
            f"read from an earlier answer {name}{added}: {_OVER_ALL}",
            self.entries,
            self.question,
            ((grouping, draw),),
        )

    def _summed(self, values: Array) -> Array:
        """Return a coordinate, shape (the question's groups,)."""
        cells = leading(values, [key.size for key in self.stored.grouping.keys], self.sizes)
        table = np.array(cells.tolist(), dtype=object).reshape(1, *self.sizes)
        return integers([int(one) for one in self.sums.of(table)[0].tolist()])


_OVER_ALL = "a person's rows are bounded over all of its groups; SET dpsql.reuse = off measures this alone"


def _best(question: Question, size: int, stored: Sequence[StoredGrouping]) -> _Single | None:
    """Return the stored grouping that makes a question up with the least spread, the newest of equals; None: none
    does."""
    found = (_single(question, size, one) for one in stored if one.law.is_additive)
    told = (one for one in found if one is not None)
    return min(told, key=lambda one: (one.law.spread, -one.newest), default=None)


def _single(question: Question, size: int, stored: StoredGrouping) -> _Single | None:
    """Return a stored grouping as what each group of a question is made of; None: it does not make it up."""
    keys, asked = stored.grouping.keys, {*question.groups, *question.filters}
    axes = {key.digest: question.complete.get(key.digest, key.size) for key in keys}
    if len(axes) < len(keys) or not asked <= axes.keys():
        return None
    if not all(key.is_complete or key.digest in question.complete for key in keys if key.digest not in asked):
        return None
    sums = sums_of(shape_of(question, size), axes, {})
    return None if sums is None else _Single(question, stored, tuple(axes.values()), sums)


# --- the estimate ------------------------------------------------------------------------------------------------

_ALONE = "; SET dpsql.reuse = off measures this alone"
_DISAGREE = (
    ", which do not agree: rows have changed since some of them; after dpsql refresh, which is the owner's, all are"
    " measured anew"
)
_SWAY = 1.0001
_MOST_CELLS = MOST_WORK // MOST_GROUPINGS
"""Most cells of a table that has axes which are not asked about."""


@dataclass(frozen=True)
class _Drawn:
    """A stored grouping as what was drawn of a table: added up over the keys that are no axis of it, of which each of
    its numbers is then so many cells. `on`: the axis of each of its keys."""

    stored: StoredGrouping
    sums: Sums
    cells: int
    on: tuple[bytes, ...]

    def law(self, place: int) -> Law:
        return sum_of(self.stored.law.at(place), self.cells)

    def values(self, values: Array, axes: Mapping[bytes, int], complete: Mapping[bytes, int]) -> Array:
        """Return a coordinate of its draw as the numbers of `sums`."""
        keys = self.stored.grouping.keys
        if not keys:
            return values
        table = np.array(values.tolist(), dtype=object).reshape([key.size for key in keys])
        table = table[tuple(slice(complete.get(key.digest, key.size)) for key in keys)]
        table = table.sum(axis=tuple(i for i, axis in enumerate(self.on) if axis not in axes))
        left = [axis for axis in self.on if axis in axes]
        order = [left.index(axis) for axis in axes if axis in left]
        return integers(
            [int(one) for one in np.transpose(table, order).ravel().tolist()] if left else [int(table)]
        )


@dataclass(frozen=True)
class _Estimate(Source):
    """What all stored groupings of a family say of a question together: its estimate of least variance.

    `name`: of the rows, in words. `told`: by coordinate, without numbers as yet.
    """

    name: str
    axes: Mapping[bytes, int]
    drawn: tuple[_Drawn, ...]
    told: tuple[Told, ...]

    @property
    def entries(self) -> tuple[int, ...]:
        """See `Source`."""
        return tuple(one.stored.entry for one in self.drawn)

    @property
    def errors(self) -> set[tuple[float, float]]:
        """See `Source`."""
        return {pair for one in self.told for pair in zip(one.variances.tolist(), one.rounding, strict=True)}

    def serves(self, wanted: Law) -> bool:
        """See `Source`."""
        return all(
            float(one.variances.max()) <= float(wanted.at(place).spread * CLOSE)
            for place, one in enumerate(self.told)
        )

    def sways(self, wanted: Law) -> bool:
        """See `Source`."""
        found = (one.design.largest(one.wanted) for one in self.told)
        return any(
            one is None or one > float(wanted.at(place).spread) * _SWAY for place, one in enumerate(found)
        )

    def finer(self, size: int, epoch: int, store: StoredDraws) -> Finer | None:
        """See `Source`."""
        draws = [store.draw_of(one.stored) for one in self.drawn]
        decoded = [decode(draw.payload, draw.law).values for draw in draws]
        values, told, is_disagreeing = list[Array](), list[Told](), False
        for place, plain in enumerate(self.told):
            together: dict[Sums, dict[DrawId, tuple[Array, Law]]] = {}
            for one, draw, numbers in zip(self.drawn, draws, decoded, strict=True):
                own = one.values(numbers[place], self.axes, self.question.complete)
                together.setdefault(one.sums, {})[id_of(draw), place] = own, one.law(place)
            observed = tuple(map(Observed.of, together.values()))
            drawn = [
                (seen.numbers, list(own.values()))
                for seen, own in zip(observed, together.values(), strict=True)
            ]
            table = fitted(store, self._edition(place), plain.design, drawn)
            if table is None:
                return None
            laws = [[law for _, law in own] for _, own in drawn]
            is_disagreeing = is_disagreeing or disagrees(plain.design, table.distance, laws)
            told.append(replace(plain, observed=observed))
            values.append(integers(told[-1].values(table.cells)))
        if len(told) != size:
            raise AssertionError("a family's vectors have as many coordinates")
        return Finer(
            measurement_of(told, values),
            epoch,
            EditionNote(
                f'edition {self.newest} of "{self.name}": from {len(draws)} stored answers of the same rows together'
                f"{_DISAGREE if is_disagreeing else ''}{_ALONE}"
            ),
            self.entries,
            self.question,
            tuple((one.stored.grouping, draw) for one, draw in zip(self.drawn, draws, strict=True)),
            tuple(told),
        )

    def kept(self, store: StoredDraws) -> list[list[int]] | None:
        """Return the numbers by coordinate where their tables are kept; None: they are not."""
        found = []
        for place, told in enumerate(self.told):
            table = kept(store, self._edition(place))
            if table is None:
                return None
            found.append(told.values(table.cells))
        return found

    def _edition(self, place: int) -> Edition:
        """Return which table a coordinate is read from: a function of the draws in it and their places there."""
        entries = tuple(
            (one.stored.entry, one.sums.partitions, one.cells, one.law(place).text) for one in self.drawn
        )
        family = self.drawn[0].stored.grouping.family
        return Edition(
            digest_of("table", family, place, tuple(self.axes.items()), entries), family, self.newest
        )


def _estimate(
    plan: ReleasePlan, number: int, question: Question, size: int, stored: Sequence[StoredGrouping]
) -> _Estimate | None:
    """Return what stored groupings say together of a question of so many groups; None: they do not tell it, or it is
    too much to be worked out. The older ones go first, so that another draw takes nothing away.
    """
    places = range(plan.measurements[number].size)
    mine = sorted(
        (one for one in stored if all(is_observed(one.law.at(place)) for place in places)),
        key=lambda one: one.entry,
    )
    ties, complete = _related(plan, question, mine)
    question = replace(question, complete={**complete, **question.complete})
    axes = _axes_of(question, mine, ties)
    if not mine or not places or axes is None:
        return None
    most, drawn = (
        min(MOST_GROUPINGS, MOST_WORK // max(1, math.prod(axes.values()))),
        dict[Sums, list[_Drawn]](),
    )
    for one in mine:
        found = _drawn(one, axes, question.complete, ties)
        if found is not None and (found.sums in drawn or len(drawn) < most):
            drawn.setdefault(found.sums, []).append(found)
    parts = tuple(one for group in drawn.values() for one in group)
    if not parts:
        return None
    wanted = sums_of(shape_of(question, size), axes, ties)
    if wanted is None:
        return None
    told = []
    for place in places:
        nothing = np.zeros(0, dtype=np.int64)
        laws = {
            sums: {(b"", one.stored.entry): (nothing, one.law(place)) for one in group}
            for sums, group in drawn.items()
        }
        unit = plan.measures[number].measurement.denominator
        one_told = tell(laws, tuple(axes.values()), (wanted,), unit)
        if one_told is None:
            return None
        (found_,) = one_told
        is_fine = np.any(FEW * np.array(found_.rounding) > found_.variances)
        told.append(found_.by_itself() if is_fine else found_)
    return _Estimate(question, plan.release.rows.name, axes, parts, tuple(told))


def _related(
    plan: ReleasePlan, question: Question, stored: Sequence[StoredGrouping]
) -> tuple[Ties, dict[bytes, int]]:
    """Return how the keys of a question tie to other keys of stored groupings, and which of these are complete."""
    drawn = {key.digest for one in stored for key in one.grouping.keys}
    own = question.groups.keys() | question.filters.keys()
    if not own or drawn <= own:
        return {}, {}
    keys = related_keys(plan, question.predicate)
    known = {digest: key for digest, key in keys.items() if digest in drawn | own}
    env = environment_of(plan.release.rows.columns, question.predicate)
    return ties_of(known, env), complete_sizes(known, plan)


def _axes_of(question: Question, stored: Sequence[StoredGrouping], ties: Ties) -> dict[bytes, int] | None:
    """Return how many atoms each axis of a table has: those of the question's keys, and of the others what there is
    room for, the older groupings' first; None: the question's own are too many."""
    atoms: dict[bytes, int] = {}
    for key in (key for one in stored for key in one.grouping.keys):
        atoms[key.digest] = max(atoms.get(key.digest, 0), key.size + (not key.is_complete))
    own = {**question.groups, **question.filters}
    for digest, places in own.items():
        atoms[digest] = max(atoms.get(digest, 0), max(places, default=0) + 2 * (digest not in atoms))
    atoms |= question.complete
    if any(max(own[digest], default=0) >= atoms[digest] for digest in own):
        return None
    atoms |= {digest: len(places.groups) for digest, (_, places) in ties.items()}
    axes = {axis_name(digest, ties): atoms[digest] for digest in own}
    if math.prod(axes.values()) > MOST_ATOMS:
        return None
    for one in stored:
        named = {axis_name(key.digest, ties): atoms[key.digest] for key in one.grouping.keys}
        new = {axis: size for axis, size in named.items() if axis not in axes}
        is_near = not own or len(new) < len(named)
        if is_near and math.prod((*axes.values(), *new.values())) <= _MOST_CELLS:
            axes |= new
    return dict(sorted(axes.items()))


def _drawn(
    one: StoredGrouping, axes: Mapping[bytes, int], complete: Mapping[bytes, int], ties: Ties
) -> _Drawn | None:
    """Return a stored grouping as what was drawn of a table; None: it lacks rows of a key that is no axis, or has two
    keys on one."""
    keys = {axis_name(key.digest, ties): key for key in one.grouping.keys}
    if len(keys) < len(one.grouping.keys):
        return None
    rest = [key for axis, key in keys.items() if axis not in axes]
    if not all(key.is_complete or key.digest in complete for key in rest):
        return None
    partitions = [
        _partition(keys[axis], atoms, complete, ties) if axis in keys else Partition.whole(atoms)
        for axis, atoms in axes.items()
    ]
    if any(
        axis in keys
        and part.size < complete.get(keys[axis].digest, keys[axis].size)
        and keys[axis].digest in ties
        for axis, part in zip(axes, partitions, strict=True)
    ):
        return None
    cells = math.prod(complete.get(key.digest, key.size) for key in rest)
    return _Drawn(one, Sums(tuple(partitions)), cells, tuple(keys))


def _partition(key: GroupingKey, atoms: int, complete: Mapping[bytes, int], ties: Ties) -> Partition:
    """Return the groups that a key of a draw has on its axis, less those of values that no row has."""
    size = complete.get(key.digest, key.size)
    if key.digest not in ties:
        return Partition.of_places(range(min(size, atoms)), atoms)
    return Partition(tuple(place if place < size else -1 for place in ties[key.digest][1].groups))
