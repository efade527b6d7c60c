"""A question that a stored grouping answers: a filter on a key is some of its groups, a coarser one adds groups up.

Several groupings of the same rows are one table, whose editions are named by the ledger entry of the newest draw in
them. Whoever reads an edition first fits its table and has it kept; everybody else is told those whole numbers, also
when it is pinned later (`dpsql.edition`). It is a function of stored draws, so a crash between a commit and the fit
loses nothing: who asks next fits it.

House rules (soundness.md 3.8):

1. The same measures of the same rows, under the same bounds, in the same epoch: what differs is which groups, and
   terms `key = literal` and `key IN (literals)` of WHERE that a key's values tell the rows of.
2. Groups of declared keys alone, and only those whose values are listed: of a key that is not asked about, all groups
   together are all rows where that of the other values is among them, or no row can have one.
3. Every group of the product is taken once or not at all.
4. From the text and what is stored: never what the data have.
5. Nothing here moves a number within an edition, and only a charged draw makes another one.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..budget import CLOSE, Draw, Edition, Grouping, GroupingKey, Laws, StoredDraws, StoredGrouping, Together
from ..cache import Cache
from ..mechanisms import Gaussian, Law, SquareRoot, sum_of
from ..plan.privacy.keys import environment_of
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from .estimate import (
    CELL_PARTS,
    FEW,
    MOST_ATOMS,
    MOST_FORMS,
    MOST_GROUPINGS,
    MOST_WORK,
    Design,
    DrawId,
    Observed,
    Sums,
    Told,
    design_of,
    id_of,
    is_read,
    measurement_of,
    tell,
)
from .released import Array, Groups, ReleasedMeasurement, decode, integers, vectors_of
from .table import (
    Question,
    Reading,
    Table,
    Ties,
    axis_name,
    cells_in,
    cells_with_rows,
    complete_sizes,
    named_digests,
    places_of,
    questions_of,
    related_keys,
    ties_of,
    whole_keys,
)


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
    it. `of_same_rows`: of what has draws of its own, which one grouping adds nothing to; and not as an estimate by what
    was bounded over other rows too. `is_summed`: numbers of several groups are computed with, so that no sum of them
    may have more spread than drawn alone.
    """
    found = sources_of(plan, number, groups, store, of_same_rows=of_same_rows)
    if of_same_rows:
        found = [one for one in found if one.told]
    return finest(plan, number, store, found, is_summed=is_summed)


def finest(
    plan: ReleasePlan, number: int, store: StoredDraws, found: Sequence[Source], *, is_summed: bool = False
) -> Finer | None:
    """Return what answers with the least spread of what `sources_of` has found. See `find_finer`."""
    wanted = plan.measures[number].law
    served = [one for one in found if one.serves(wanted) and not (is_summed and one.sways(wanted))]
    for source in sorted(served, key=lambda one: (one.spread, -one.newest)):
        found_ = source.finer(plan.measurements[number].size, store)
        if found_ is not None and source.told:
            return _beside_before(plan, number, source, found_, store)
        if found_ is not None:
            return found_
    return None


def _beside_before(plan: ReleasePlan, number: int, now: Source, found: Finer, store: StoredDraws) -> Finer:
    """Return an answer with what the edition before says of it, where its table is kept and answers as well."""
    older = [one for one in now.drawn if one.entry < now.newest]
    before = _estimate(plan, number, now.question, older) if len(older) > 1 else None
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
    questions = {
        family: question
        for family, question in families_of(plan, number, groups).items()
        if not of_same_rows or plan.bounding.per_row or question.predicate == plan.release.rows.predicate
    }
    if not questions:
        return []
    epoch, stored = store.groupings(list(questions))
    if beside is not None:
        stored[beside.grouping.family].append(beside)
    named, sources = named_digests(plan) if any(stored.values()) else None, list[Source]()
    for family, question in questions.items():
        if without is not None:
            question = replace(question, shape=question.shape.without(without))
        mine = [one for one in stored[family] if _is_named(one.grouping, question, named)]
        if not mine:
            continue
        single = _best(question, mine)
        is_alone = len(mine) == 1 and single is not None
        together = None if is_alone else _estimate(plan, number, question, mine)
        is_same = plan.bounding.per_row or question.predicate == plan.release.rows.predicate
        most = None if is_same else plan.bounding.in_all
        sources += [replace(one, epoch=epoch, most=most) for one in (single, together) if one is not None]
    return sources


def families_of(plan: ReleasePlan, number: int, groups: Groups) -> dict[bytes, Question]:
    """Return the families in which `sources_of` looks for a measurement, each with what is asked of its rows, without
    some filter terms or with all; {} where none may answer."""
    if plan.groups is None or plan.intermediates:
        return {}
    found = {plan.family(number, one.predicate): one for one in questions_of(plan, groups)}
    return {family: one for family, one in found.items() if family is not None and None not in found}


# --- its answer -------------------------------------------------------------------------------------------------


_ALONE = "; SET dpsql.reuse = off measures this alone"
_DISAGREE = (
    ", which do not agree: rows have changed since some of them, or have other values than the policy says; the owner"
    " can look with dpsql check --data, and after dpsql refresh all are measured anew"
)
_SWAY = 1.0001
_MOST_CELLS = MOST_WORK // MOST_GROUPINGS
"""Most cells of a table that has axes which are not asked about."""
_Answer = tuple[ReleasedMeasurement, str, tuple[Told, ...]]
"""An answer, in words what it is made of, and what each coordinate is told by."""


@dataclass(frozen=True)
class Source:
    """What stored groupings say of a question: one of them, whose cells are added up, or several by the estimate of
    least variance.

    `name`: of the keys, or of the rows, in words. `wanted`: the question's groups as sums of the table's cells.
    `readings`: of each draw which numbers of the table it has; `told`: by coordinate, without numbers as yet; () of one
    grouping by itself, whose cells are the table's. `epoch`: the store's, in which it was found. `most`: rows of a
    person that count in all of the groups that these are some of; None: in those asked for, or a person has one.
    """

    question: Question
    name: str
    table: Table
    wanted: Sums
    drawn: tuple[StoredGrouping, ...]
    readings: tuple[Reading, ...] = ()
    told: tuple[Told, ...] = ()
    epoch: int = 0
    most: int | None = None

    @property
    def entries(self) -> tuple[int, ...]:
        """The ledger entries of the draws that it is made of."""
        return tuple(one.entry for one in self.drawn)

    @property
    def newest(self) -> int:
        """The last draw."""
        return max(self.entries)

    @property
    def _cut(self) -> str:
        """In words how much of a person's rows may be missing, where they were bounded over more than is asked."""
        if self.most is None:
            return ""
        return (
            f": a person's rows are bounded over all of its groups, so of one with {2 * self.most} there half of those"
            f" here count, and asked alone up to {self.most}"
        )

    @property
    def cells(self) -> int:
        """How many cells a group of the question is."""
        return math.prod(one.sizes[0] for one in self.wanted.partitions)

    @property
    def is_small(self) -> bool:
        """Whether several of them are not too much to be worked out."""
        sums = tuple(dict.fromkeys(one.sums for one in self.readings))
        design = design_of(self.table.sizes, sums, (1.0,) * len(sums))
        return design is not None and design.work(self.wanted) <= MOST_FORMS

    @property
    def law(self) -> Law:
        """The law of a number, of one grouping by itself."""
        return sum_of(self.drawn[0].law, self.cells)

    @property
    def errors(self) -> set[tuple[float, float]]:
        """Of all numbers their variances, and what rounding adds to each."""
        if not self.told:
            return {(float(self.law.spread), 0.0)}
        return {pair for one in self.told for pair in zip(one.variances.tolist(), one.rounding, strict=True)}

    @property
    def spread(self) -> float:
        """The largest of a number of it."""
        return max(variance + rounding for variance, rounding in self.errors)

    def serves(self, wanted: Law) -> bool:
        """Say whether no number has more spread than is wanted of its coordinate."""
        if not self.told:
            return self.law.spread <= wanted.spread
        return all(
            float(one.variances.max()) <= float(wanted.at(place).spread * CLOSE)
            for place, one in enumerate(self.told)
        )

    def sways(self, wanted: Law) -> bool:
        """Say whether some weighted sum of a coordinate's numbers has more spread than of numbers that are wanted: of
        one grouping they are sums of different ones."""
        found = (one.design.largest(one.wanted) for one in self.told)
        return any(
            one is None or one > float(wanted.at(place).spread) * _SWAY for place, one in enumerate(found)
        )

    def finer(self, size: int, store: StoredDraws) -> Finer | None:
        """Return the answer, of so many coordinates; None: it was not found."""
        draws = list(map(store.draw_of, self.drawn))
        decoded = [decode(draw.payload, draw.law).values for draw in draws]
        if any(len(values) != size for values in decoded):
            raise AssertionError("a family's vectors have as many coordinates")
        found = self._estimated(draws, decoded, store) if self.told else self._added_up(draws[0], decoded[0])
        if found is None:
            return None
        measurement, said, told = found
        sources = tuple((one.grouping, draw) for one, draw in zip(self.drawn, draws, strict=True))
        return Finer(measurement, self.epoch, said, self.entries, self.question, sources, told)

    def _added_up(self, draw: Draw, values: Sequence[Array]) -> _Answer:
        summed = tuple(map(self._summed, values))
        said = repr((self.cells, self.question.shape)).encode()
        vectors = vectors_of(self.law, draw.measures, draw.payload + said)
        laws = tuple(self.law.at(place) for place in range(len(values)))
        name = f"by {self.name}" if self.name else "with more groups"
        added = f", each number from up to {self.cells} groups added up" if self.cells > 1 else ""
        note = f"read from an earlier answer {name}{added}{self._cut}{_ALONE}"
        return ReleasedMeasurement(summed, None, laws, vectors), note, ()

    def _summed(self, values: Array) -> Array:
        """Return a coordinate, shape (the question's groups,)."""
        cells = cells_in(values, self.drawn[0].grouping, self.question.complete)
        table = np.array(cells.tolist(), dtype=object).reshape(1, *self.table.sizes)
        return integers([int(one) for one in self.wanted.of(table)[0].tolist()])

    def _estimated(
        self, draws: Sequence[Draw], decoded: Sequence[Sequence[Array]], store: StoredDraws
    ) -> _Answer | None:
        values, told, is_disagreeing = list[Array](), list[Told](), False
        for place, plain in enumerate(self.told):
            together: dict[Sums, dict[DrawId, tuple[Array, Law]]] = {}
            for one, reading, draw, numbers in zip(self.drawn, self.readings, draws, decoded, strict=True):
                own = reading.values(cells_in(numbers[place], one.grouping, self.question.complete))
                law = reading.law(one.law.at(place))
                together.setdefault(reading.sums, {})[id_of(draw), place] = own, law
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
        of_more = self.most is not None or self.question.shape.filters
        those = "more" if of_more else "the same"
        made_of = (
            f"one stored answer of {those} rows"
            if len(draws) == 1
            else f"{len(draws)} stored answers of {those} rows together"
        )
        note = EditionNote(
            f'edition {self.newest} of "{self.name}": from {made_of}{_DISAGREE if is_disagreeing else ""}'
            f"{self._cut}{_ALONE}"
        )
        return measurement_of(told, values), note, tuple(told)

    def kept(self, store: StoredDraws) -> list[list[int]] | None:
        """Return an estimate's numbers by coordinate where their tables are kept; None: they are not."""
        tables = [kept(store, self._edition(place)) for place in range(len(self.told))]
        if None in tables:
            return None
        return [
            told.values(one.cells) for told, one in zip(self.told, tables, strict=True) if one is not None
        ]

    def _edition(self, place: int) -> Edition:
        """Return which table a coordinate is read from: a function of the draws in it and their places there."""
        entries = tuple(
            (one.entry, reading.sums.partitions, reading.cells, reading.law(one.law.at(place)).text)
            for one, reading in zip(self.drawn, self.readings, strict=True)
        )
        family = self.drawn[0].grouping.family
        axes = tuple(self.table.axes.items())
        return Edition(digest_of("table", family, place, axes, entries), family, self.newest)


# --- which there are --------------------------------------------------------------------------------------------


def _is_named(grouping: Grouping, question: Question, named: frozenset[bytes] | None) -> bool:
    """Say whether all keys of a grouping are the question's, or have a name for the analyst (`named_digests`)."""
    own = question.shape.read
    return named is None or all(key.digest in own or key.digest in named for key in grouping.keys)


def _best(question: Question, stored: Sequence[StoredGrouping]) -> Source | None:
    """Return the stored grouping that makes a question up with the least spread, the newest of equals; None: none
    does."""
    found = (_single(question, one) for one in stored if one.law.is_additive)
    told = (one for one in found if one is not None)
    return min(told, key=lambda one: (one.law.spread, -one.newest), default=None)


_made_up: Cache[tuple[Question, tuple[Table, Sums] | None]] = Cache(256)
"""What questions were lately made up of, by the number of the question's object, which is kept with it, and by the keys
of a grouping."""


def _single(question: Question, stored: StoredGrouping) -> Source | None:
    """Return a stored grouping as what each group of a question is made of; None: it does not make it up."""
    asked = id(question), stored.grouping.keys
    known = _made_up.get(asked)
    if known is None or known[0] is not question:
        known = question, _made_of(question, stored.grouping)
        _made_up.put(asked, known)
    return None if known[1] is None else Source(question, question.name, *known[1], (stored,))


def _made_of(question: Question, grouping: Grouping) -> tuple[Table, Sums] | None:
    """Return a grouping's table, and of it the question's groups; None: it does not make them up."""
    asked = question.shape.read
    cells = cells_with_rows(grouping, question.complete)
    table = Table({key: len(own) for key, own in cells.keys}, {})
    whole = whole_keys([grouping], question.complete)
    if len(table.axes) < len(grouping.keys) or not all(key in whole or key in asked for key in table.axes):
        return None
    sums = table.sums(question.shape)
    return None if sums is None else (table, sums)


def _estimate(
    plan: ReleasePlan, number: int, question: Question, stored: Sequence[StoredGrouping]
) -> Source | None:
    """Return what stored groupings say together of a question; None: they do not tell it, or it is too much to be
    worked out."""
    places = range(plan.measurements[number].size)
    mine = sorted(
        (one for one in stored if all(is_read(one.law.at(place)) for place in places)),
        key=lambda one: one.entry,
    )
    joined = _joined(plan, question, mine) if mine and places else None
    if joined is None:
        return None
    told, unit = [], plan.measures[number].measurement.denominator
    for place in places:
        nothing = np.zeros(0, dtype=np.int64)
        laws: dict[Sums, dict[DrawId, tuple[Array, Law]]] = {}
        for one, reading in zip(joined.drawn, joined.readings, strict=True):
            laws.setdefault(reading.sums, {})[b"", one.entry] = nothing, reading.law(one.law.at(place))
        one_told = tell(laws, joined.table.sizes, (joined.wanted,), unit)
        if one_told is None:
            return None
        (found,) = one_told
        is_fine = np.any(FEW * np.array(found.rounding) > found.variances)
        told.append(found.by_itself() if is_fine else found)
    return replace(joined, told=tuple(told))


_Keys = tuple[GroupingKey, ...]
_chosen: Cache[tuple[_Keys, ...]] = Cache(256)
"""The groupings that were chosen lately, by the question and all that there were."""


def _joined(plan: ReleasePlan, question: Question, stored: Sequence[StoredGrouping]) -> Source | None:
    """Return a question and stored groupings as sums of one table, not told as yet; None: it is too large.

    Where all of them are too much the older ones choose first: a newer one that would take a draw of theirs away is
    left out, so what was told stays told.
    """

    def of(keys: Sequence[_Keys]) -> Source | None:
        return _of_table(plan, question, [one for one in stored if one.grouping.keys in keys])

    every = tuple(dict.fromkeys(one.grouping.keys for one in stored))
    found = of(every)
    if found is not None and found.is_small:
        return found
    asked = question.shape, tuple(sorted(question.complete.items()))
    before = ((n, _chosen.get((asked, every[:n]))) for n in range(len(every), 0, -1))
    known, chosen = next(((n, some) for n, some in before if some is not None), (0, ()))
    best = of(chosen) if chosen else None
    for keys in every[known:]:
        one = of((*chosen, keys))
        if one is not None and one.is_small and (best is None or {*one.entries} >= {*best.entries}):
            chosen, best = (*chosen, keys), one
    _chosen.put((asked, every), chosen)
    return best


def _of_table(plan: ReleasePlan, question: Question, stored: Sequence[StoredGrouping]) -> Source | None:
    """Return a question and all of some stored groupings that make up numbers of one table as sums of it."""
    ties, complete = _related(plan, question, stored)
    question = replace(question, complete={**complete, **question.complete})
    table = _table(question, stored, ties)
    wanted = None if table is None else table.sums(question.shape)
    if table is None or wanted is None:
        return None
    drawn = dict[Sums, list[tuple[StoredGrouping, Reading]]]()
    for one in stored:
        reading = _reading(one.grouping, question, table)
        if reading is not None and isinstance(one.law, SquareRoot):
            reading = reading.by_root()
        if reading is not None:
            drawn.setdefault(reading.sums, []).append((one, reading))
    if not drawn:
        return None
    parts, readings = zip(*itertools.chain.from_iterable(drawn.values()), strict=True)
    return Source(question, plan.release.rows.name, table, wanted, parts, readings)


def _related(
    plan: ReleasePlan, question: Question, stored: Sequence[StoredGrouping]
) -> tuple[Ties, dict[bytes, int]]:
    """Return how the keys of a question tie to other keys of stored groupings, and which of these are complete."""
    drawn, own = {key.digest for one in stored for key in one.grouping.keys}, question.shape.read
    if not own or (drawn <= own and not question.shape.filters):
        return {}, {}
    keys = related_keys(plan, question.predicate)
    known = {digest: key for digest, key in keys.items() if digest in drawn | own}
    env = environment_of(plan.release.rows.columns, question.predicate)
    return ties_of(known, env), complete_sizes(known, plan)


def _table(question: Question, stored: Sequence[StoredGrouping], ties: Ties) -> Table | None:
    """Return the table of a question's keys, and of the others that there is room for, the older groupings' first;
    None: it is too large."""
    groupings, own = [one.grouping for one in stored], question.shape.read
    shapes = [question.shape, *(cells_with_rows(one, question.complete) for one in groupings)]
    sizes = Table.of(places_of(shapes, whole_keys(groupings, question.complete)), ties).axes
    axes = {axis: sizes[axis] for axis in (axis_name(key, ties) for key in own)}
    if math.prod(axes.values()) > MOST_ATOMS:
        return None
    for one in groupings:
        named = {axis: sizes[axis] for axis in (axis_name(key.digest, ties) for key in one.keys)}
        new = {axis: size for axis, size in named.items() if axis not in axes}
        is_near = not own or len(new) < len(named)
        if is_near and math.prod((*axes.values(), *new.values())) <= _MOST_CELLS:
            axes |= new
    return Table(dict(sorted(axes.items())), ties)


def _reading(grouping: Grouping, question: Question, table: Table) -> Reading | None:
    """Return what is drawn of a stored grouping as numbers of a table; None: it lacks rows of a key that is no axis, or
    has two keys on one."""
    whole, keys = whole_keys([grouping], question.complete), [key.digest for key in grouping.keys]
    if len({axis_name(key, table.ties) for key in keys}) < len(keys):
        return None
    if not all(key in whole or table.has([key]) for key in keys):
        return None
    return table.reading(cells_with_rows(grouping, question.complete))


# --- editions ---------------------------------------------------------------------------------------------------


_SURE = 4.265
"""Normal deviations beyond which stored draws are said to disagree: fewer than one edition in 50,000."""
_EXCESS = {True: 2, False: 6}
"""Most variance of a square of a noise of variance 1: of Gaussian noises, and of any."""


class EditionNote(str):
    """A note on which stored draws an answer is read from; also what a server's client is told."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AsOf:
    """Stored draws up to a ledger entry. See `StoredDraws`."""

    store: StoredDraws
    last: int

    def lookup(
        self, measures: Sequence[bytes], law: Law, until: int | None = None
    ) -> tuple[Together, ...] | None:
        """See `StoredDraws.lookup`."""
        return self.store.lookup(measures, law, self.last if until is None else min(until, self.last))

    def laws(self, measures: Sequence[bytes]) -> tuple[Laws, ...]:
        """See `StoredDraws.laws`."""
        found = self.store.laws(measures)
        return tuple({entry: law for entry, law in one.items() if entry <= self.last} for one in found)

    def groupings(self, families: Sequence[bytes]) -> tuple[int, dict[bytes, list[StoredGrouping]]]:
        """See `StoredDraws.groupings`."""
        epoch, found = self.store.groupings(families)
        return epoch, {key: [one for one in each if one.entry <= self.last] for key, each in found.items()}

    def draw_of(self, stored: StoredGrouping) -> Draw:
        """See `StoredDraws.draw_of`."""
        return self.store.draw_of(stored)

    def kept(self, edition: Edition, fit: Callable[[], bytes | None]) -> bytes | None:
        """See `StoredDraws.kept`."""
        return self.store.kept(edition, fit)

    @property
    def epoch(self) -> int:
        """See `StoredDraws.epoch`."""
        return self.store.epoch

    @property
    def is_empty(self) -> bool:
        """See `StoredDraws.is_empty`."""
        return self.store.is_empty


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table that was fitted: its cells as `Design.table` gives them, and how far the draws are from it: the sum of
    the squares of their distances, each over its variance."""

    cells: list[int]
    distance: float


Drawn = tuple[Sequence[int], Sequence[tuple[Array, Law]]]
"""What was drawn over one shape: the mean in `PARTS` of a step, and each draw with its law."""


def fitted(store: StoredDraws, edition: Edition, design: Design, observed: Sequence[Drawn]) -> Fitted | None:
    """Return an edition's table as it is kept, or fitted now, of what was drawn by shape; None: it was not found."""

    def fit() -> bytes | None:
        cells = design.table([numbers for numbers, _ in observed])
        if cells is None:
            return None
        return _bytes(Fitted(cells, _distance(design, cells, [draws for _, draws in observed])))

    return _read(store.kept(edition, fit))


def kept(store: StoredDraws, edition: Edition) -> Fitted | None:
    """Return an edition's table where it is kept."""
    return _read(store.kept(edition, lambda: None))


def _bytes(one: Fitted) -> bytes:
    return zlib.compress(json.dumps([one.cells, one.distance], separators=(",", ":")).encode(), 1)


def _read(content: bytes | None) -> Fitted | None:
    if content is None:
        return None
    cells, distance = json.loads(zlib.decompress(content))
    return Fitted(cells, distance)


def digest_of(*said: object) -> bytes:
    """Return a digest of what a table is a function of."""
    return hashlib.sha256(repr(said).encode()).digest()


# --- do the draws agree -----------------------------------------------------------------------------------------


def _distance(design: Design, cells: Sequence[int], drawn: Sequence[Sequence[tuple[Array, Law]]]) -> float:
    table = np.array(cells, dtype=object).reshape((1, *design.sizes))
    found = 0.0
    for sums, draws in zip(design.drawn, drawn, strict=True):
        told = sums.of(table)[0]
        for values, law in draws:
            off = (values.astype(object) * CELL_PARTS - told).astype(np.float64) / CELL_PARTS
            found += float((off**2).sum()) / float(law.spread)
    return found


def disagrees(design: Design, distance: float, laws: Sequence[Sequence[Law]]) -> bool:
    """Say whether draws are further from their table than their noises let them be: rows have changed meanwhile.

    The distance has as many degrees as there are numbers more than the table has of its own, and about the law of a
    gamma variable of its mean and of at least its variance (Wilson, Hilferty). `laws`: of each shape's draws.
    """
    rank = _rank(design)
    if rank is None:
        return False
    degrees = sum(sums.size * len(own) for sums, own in zip(design.drawn, laws, strict=True)) - rank
    if degrees <= 0:
        return False
    ratio = _EXCESS[all(isinstance(law, Gaussian) for own in laws for law in own)]  # variance over mean
    most = degrees / ratio
    limit = degrees * (1 - 1 / (9 * most) + _SURE / (3 * math.sqrt(most))) ** 3
    return distance > limit


def _rank(design: Design) -> int | None:
    """Return how many numbers of the table the draws tell; None where partitions of an axis are no chain."""
    chains = []
    for axis in range(len(design.sizes)):
        own = sorted({sums.partitions[axis] for sums in design.drawn}, key=lambda one: one.size)
        if any(min(one.groups) < 0 for one in own) or not all(
            _refines(fine.groups, coarse.groups) for coarse, fine in itertools.pairwise(own)
        ):
            return None
        chains.append(own)
    if any(sums.rows is not None for sums in design.drawn):
        return None
    steps: list[list[int]] = [np.diff([one.size for one in chain], prepend=0).tolist() for chain in chains]
    below: set[tuple[int, ...]] = set()
    for sums in design.drawn:
        places = (chain.index(part) for chain, part in zip(chains, sums.partitions, strict=True))
        below.update(itertools.product(*(range(place + 1) for place in places)))
    return sum(math.prod(step[place] for step, place in zip(steps, at, strict=True)) for at in below)


def _refines(fine: Sequence[int], coarse: Sequence[int]) -> bool:
    return len(set(zip(fine, coarse, strict=True))) == len(set(fine))
