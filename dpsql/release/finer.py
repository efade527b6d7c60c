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

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ..budget import CLOSE, Draw, Edition, Grouping, GroupingKey, StoredDraws, StoredGrouping
from ..cache import Cache
from ..mechanisms import Law, sum_of
from ..plan.privacy.axes import Listed, Partition, axis_of, is_complete, listed_term, listed_terms
from ..plan.privacy.keys import domain_of, environment_of
from ..plan.privacy.partitions import Places, refined, usual_keys
from ..plan.privacy.rows import Release, selects_in
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.catalog import Scalar
from ..relation.expressions import Expr, Field, fields_of, walk
from ..relation.intervals import Environment
from .editions import EditionNote, digest_of, disagrees, fitted, kept
from .estimate import MOST_ATOMS, MOST_GROUPINGS, MOST_WORK, Sums, design_of
from .fitted import FEW, DrawId, Observed, Told, id_of, is_observed, measurement_of
from .released import Array, Groups, ReleasedMeasurement, declared_groups, decode, integers, vectors_of

__all__ = [
    "Finer",
    "Question",
    "Shape",
    "Source",
    "Ties",
    "axis_name",
    "drawn_places",
    "find_finer",
    "grouping_of",
    "placed_keys",
    "questions_of",
    "related_keys",
    "shape_of",
    "sources_of",
    "sums_of",
    "ties_of",
    "usual_places",
]

_MOST_TERMS = 4
"""Most filter terms of a question that are looked for among the keys of stored groupings."""


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


@dataclass(frozen=True, slots=True)
class Shape:
    """The groups of a grouping. `groups`: by key, each group's place among the key's values; `filters`: by key, the
    places of the rows that are counted at all. `size`: how many groups."""

    groups: tuple[tuple[bytes, tuple[int, ...]], ...]
    filters: tuple[tuple[bytes, frozenset[int]], ...]
    size: int


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a grouping without some filter terms: by digest of a key, its places among its values.

    `groups`: of each of the question's own keys, one place for each of its groups. `filters`: the places that a
    filter keeps, of keys that are no own ones. `name`: the keys' names. `complete`: by digest how many values those
    columns have of which the owner says that no row has another.
    """

    predicate: tuple[Expr, ...]
    groups: dict[bytes, list[int]]
    filters: dict[bytes, list[int]]
    name: str
    complete: dict[bytes, int]


def grouping_of(plan: ReleasePlan, number: int) -> Grouping | None:
    """Return what a measurement may answer besides its own question; None where it may not.

    Never keys that are found by threshold: a group that is not shown is not 0. Never where the groups are not the
    product of the keys' values, in their order: where WHERE leaves some out, or a public table lists them.
    """
    rows, keys = plan.release.rows, plan.release.keys
    family = plan.family(number, rows.predicate)
    if family is None or plan.groups is None or plan.is_empty or plan.intermediates:
        return None
    env = environment_of(rows.columns, rows.predicate)
    values = [_values(key, env) for key in keys]
    listed = [one for one in values if one]
    digests = [_digest(plan, key, one) for key, one in zip(keys, listed, strict=False)]
    if plan.axes is not None:
        sizes = zip(digests, plan.axes, strict=True)
        return Grouping(family, tuple(GroupingKey(digest, axis.size, True) for digest, axis in sizes))
    groups = declared_groups(plan.groups, [key.type for key in keys])
    if len(listed) < len(keys) or groups.tuples() != list(itertools.product(*listed)):
        return None
    whole = {digest: size for digest, (_, (_, size)) in placed_keys(plan, rows.predicate).items()}
    sizes_ = ((digest, len(one)) for digest, one in zip(digests, listed, strict=True))
    return Grouping(family, tuple(GroupingKey(digest, n, whole.get(digest) == n) for digest, n in sizes_))


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
    wanted, epoch = plan.measures[number].law, store.epoch
    found = sources_of(plan, number, groups, store, of_same_rows=of_same_rows)
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
    named, sources = _named_digests(plan) if any(stored.values()) else None, list[Source]()
    for family, asked in questions.items():
        question, size = (asked, groups.size) if without is None else _without(asked, without)
        mine = [one for one in stored[family] if _is_named(one.grouping, question, named)]
        single = _best(question, mine)
        is_alone = len(mine) == 1 and single is not None
        together = None if is_alone else _estimate(plan, number, question, size, mine)
        sources += [one for one in (single, together) if one is not None]
    return sources


def _without(question: Question, key: bytes) -> tuple[Question, int]:
    """Return a question by all of its keys but one, and of how many groups it is."""
    left = {digest: places for digest, places in question.groups.items() if digest != key}
    tuples = list(dict.fromkeys(zip(*left.values(), strict=True))) if left else [()]
    columns = zip(left, zip(*tuples, strict=True), strict=True)
    return replace(question, groups={digest: list(column) for digest, column in columns}), len(tuples)


def _named_digests(plan: ReleasePlan) -> frozenset[bytes] | None:
    """Return the keys that groupings may be by besides the question's own; None: all are the analyst's.

    Where some columns have no name for the analyst, those by which rows of the others are usually grouped: a grouping
    by another key is not theirs (soundness.md 3.16).
    """
    rows = plan.release.rows
    if not any(
        (table := item.source.uncut.table) is not None and table.unnamed
        for select in selects_in(rows)
        for item in select.items
    ):
        return None
    env = environment_of(rows.columns, rows.predicate)
    columns = (Field(one.type, index, one.name) for index, one in enumerate(rows.columns) if one.name)
    keys = (key for column in columns for key in usual_keys(column))
    return frozenset(_digest(plan, key, values) for key in keys if (values := _values(key, env)))


# --- the question ----------------------------------------------------------------------------------------------


_asked: Cache[tuple[Release, list[list[Scalar]], list[Question]]] = Cache(64)
"""What was asked lately, by the number of the release's object, which is kept with it: a batch asks for the same at
each epsilon that it tries."""


def questions_of(plan: ReleasePlan, groups: Groups) -> list[Question]:
    """Return the question without some of its filter terms, each with what these keep; itself among them."""
    columns = [one.tolist() if isinstance(one, np.ndarray) else list(one) for one in groups.columns]
    known = _asked.get(id(plan.release))
    if known is None or known[0] is not plan.release or known[1] != columns:
        known = plan.release, columns, list(_questions_of(plan, groups))
        _asked.put(id(plan.release), known)
    return known[2]


def _questions_of(plan: ReleasePlan, groups: Groups) -> Iterator[Question]:
    rows = plan.release.rows
    terms = [(term, found) for term in rows.predicate if (found := listed_term(term)) is not None][
        :_MOST_TERMS
    ]
    for count in range(len(terms) + 1):
        for chosen in itertools.combinations(terms, count):
            left_out = [term for term, _ in chosen]
            predicate = tuple(term for term in rows.predicate if term not in left_out)
            question = _question(plan, groups, predicate, [listed for _, listed in chosen])
            if question is not None:
                yield question


def _question(
    plan: ReleasePlan, groups: Groups, predicate: tuple[Expr, ...], terms: Sequence[Listed]
) -> Question | None:
    env = environment_of(plan.release.rows.columns, predicate)
    kept: dict[bytes, list[int]] = {}
    for term in terms:
        values = _values(term.key, env)
        if values is None or not set(term.values) <= set(values):
            return None
        digest = _digest(plan, term.key, values)
        places = [values.index(value) for value in term.values]
        kept[digest] = [place for place in kept.get(digest, places) if place in places]
        if not kept[digest]:
            return None
    own: dict[bytes, list[int]] = {}
    columns = zip(plan.release.keys, groups.columns, strict=True)
    for key, column in columns:
        values = _values(key, env)
        if values is None:
            return None
        place = {value: i for i, value in enumerate(values)}
        digest = _digest(plan, key, values)
        asked = column.tolist() if isinstance(column, np.ndarray) else column
        if not all(value in place for value in asked):
            return None
        own[digest] = [place[value] for value in asked]
        if not set(own[digest]) <= set(kept.pop(digest, own[digest])):
            return None
    names = dict.fromkeys(_name(key) for key in (*plan.release.keys, *(term.key for term in terms)))
    return Question(predicate, own, kept, ", ".join(names), _complete_keys(plan, predicate))


def _complete_keys(plan: ReleasePlan, predicate: tuple[Expr, ...]) -> dict[bytes, int]:
    """Return by digest how many values those columns have, and the release's own keys, of which the owner says that no
    row has another."""
    columns = plan.release.rows.columns
    told = (Field(column.type, i, column.name) for i, column in enumerate(columns) if column.is_complete)
    return _complete({**_placed(plan, predicate, told), **placed_keys(plan, predicate)}, plan)


def _complete(keys: Mapping[bytes, tuple[Expr, Places]], plan: ReleasePlan) -> dict[bytes, int]:
    rows = plan.release.rows
    return {digest: len(values) for digest, (key, (values, _)) in keys.items() if is_complete(key, rows)}


def drawn_places(plan: ReleasePlan, predicate: tuple[Expr, ...]) -> dict[bytes, list[int]] | None:
    """Return by digest the places of each key in a draw of a release with all other groups, of the rows on which
    `predicate` holds; None: it has none, or other values are others there. Of a key that is complete those listed.
    """
    env = environment_of(plan.release.rows.columns, predicate)
    found = {}
    for key, axis in zip(plan.release.keys, plan.axes or (), strict=False):
        values = _values(key, env)
        is_told = axis.others and not axis.is_complete
        if not values or (is_told and values != list(axis.values)) or not set(axis.values) <= set(values):
            return None
        place = {value: i for i, value in enumerate(values)}
        others = [len(values)] if is_told else []
        found[_digest(plan, key, values)] = [*map(place.__getitem__, axis.values), *others]
    return found or None


def usual_places(plan: ReleasePlan) -> dict[bytes, tuple[Expr, Places]]:
    """Return by digest the keys by which the rows of a release are usually grouped, of all columns that have a name."""
    columns = enumerate(plan.release.rows.columns)
    named = (Field(column.type, index, column.name) for index, column in columns if column.name)
    return _placed(plan, plan.release.rows.predicate, (key for one in named for key in usual_keys(one)))


def placed_keys(plan: ReleasePlan, predicate: tuple[Expr, ...]) -> dict[bytes, tuple[Expr, Places]]:
    """Return by digest a release's own keys and those of its filters, and how many places of each have rows, that of
    all others among them unless the owner says that no row has another: of the rows on which `predicate` holds.
    """
    terms = (term.key for term in listed_terms(plan.release.rows.predicate))
    return _placed(plan, predicate, dict.fromkeys((*plan.release.keys, *terms)))


def related_keys(plan: ReleasePlan, predicate: tuple[Expr, ...]) -> dict[bytes, tuple[Expr, Places]]:
    """Return `placed_keys` and the keys of the same columns by which rows are usually grouped: themselves, their days,
    weeks, months, quarters and years."""
    own = placed_keys(plan, predicate)
    columns = dict.fromkeys(part for key, _ in own.values() for part in walk(key) if isinstance(part, Field))
    usual = (key for column in columns for key in usual_keys(column))
    return {**_placed(plan, predicate, usual), **own}


def _placed(
    plan: ReleasePlan, predicate: tuple[Expr, ...], keys: Iterable[Expr]
) -> dict[bytes, tuple[Expr, Places]]:
    env = environment_of(plan.release.rows.columns, predicate)
    found: dict[bytes, tuple[Expr, Places]] = {}
    for key in keys:
        values = _values(key, env)
        axis = axis_of(key, values, plan.release.rows, env, predicate) if values else None
        if values and axis is not None:
            found[_digest(plan, key, values)] = key, (axis.values, axis.believed)
    return found


def _name(key: Expr) -> str:
    return key.name or "…"


def _values(key: Expr, env: Environment) -> list[Scalar] | None:
    """Return a key's public values in canonical form, each once, in the order of its groups."""
    domain = domain_of(key, env)
    if domain is None:
        return None
    (column,) = declared_groups([(value,) for value in domain.values], [key.type]).columns or ([],)
    return list(column)


def _digest(plan: ReleasePlan, key: Expr, values: Sequence[Scalar]) -> bytes:
    """Return what a key is, with its public values and what is said of the columns that it reads (soundness.md 3.7)."""
    return hashlib.sha256(repr((key, values, plan.said_of(key))).encode()).digest()[:16]


# --- as sums of a table's cells ---------------------------------------------------------------------------------


Ties = Mapping[bytes, tuple[bytes, Partition]]
"""By digest of a key of which others read the same column: their axis, and the key's place on each of its atoms. The
axis of any other key is its own, with its places for atoms."""


def ties_of(keys: Mapping[bytes, tuple[Expr, Places]], env: Environment) -> Ties:
    """Return how some keys tie to each other, as far as that is known (soundness.md 3.15)."""
    columns: dict[frozenset[int], list[bytes]] = {}
    for digest in sorted(keys):
        columns.setdefault(fields_of(keys[digest][0]), []).append(digest)
    found: dict[bytes, tuple[bytes, Partition]] = {}
    for digests in (each for each in columns.values() if len(each) > 1):
        partitions = refined([keys[one][0] for one in digests], [keys[one][1] for one in digests], env)
        axis = hashlib.sha256(b"".join(digests)).digest()[:16]
        found |= {one: (axis, part) for one, part in zip(digests, partitions or (), strict=False)}
    return found


def axis_name(key: bytes, ties: Ties) -> bytes:
    """Return the axis that a key is on."""
    return ties[key][0] if key in ties else key


def sums_of(shape: Shape, axes: Mapping[bytes, int], ties: Ties) -> Sums | None:
    """Return a shape's groups as sums of the cells of a table with so many atoms on each axis; None: some group has
    none."""
    groups, filters = dict(shape.groups), dict(shape.filters)
    partitions, rows = [], np.zeros(shape.size, dtype=np.int64)
    for axis, atoms in axes.items():
        own, kept = (
            sorted(key for key in keys if axis_name(key, ties) == axis) for keys in (groups, filters)
        )
        places = {key: ties[key][1].groups if key in ties else range(atoms) for key in (*own, *kept)}
        asked = list(zip(*(groups[key] for key in own), strict=True)) if own else [()] * shape.size
        number = {group: i for i, group in enumerate(sorted(set(asked)))}
        found = [
            number.get(tuple(places[key][atom] for key in own), -1)
            if all(places[key][atom] in filters[key] for key in kept)
            else -1
            for atom in range(atoms)
        ]
        if len(set(found) - {-1}) < len(number):
            return None
        partitions.append(Partition(tuple(found)))
        rows = rows * len(number) + np.array([number[group] for group in asked], dtype=np.int64)
    is_all = np.array_equal(rows, np.arange(math.prod(one.size for one in partitions)))
    return Sums(tuple(partitions), None if is_all else tuple(rows.tolist()))


def shape_of(question: Question, size: int) -> Shape:
    groups = sorted((key, tuple(places)) for key, places in question.groups.items())
    filters = sorted(
        ((key, frozenset(places)) for key, places in question.filters.items()), key=lambda it: it[0]
    )
    return Shape(tuple(groups), tuple(filters), size)


# --- its answer ------------------------------------------------------------------------------------------------


class Source(Protocol):
    """What stored groupings say of a question. `spread`: the largest of a number of it; `newest`: the last draw."""

    @property
    def question(self) -> Question: ...

    @property
    def spread(self) -> float: ...

    @property
    def newest(self) -> int: ...

    @property
    def entries(self) -> tuple[int, ...]:
        """The ledger entries of the draws that it is made of."""
        ...

    @property
    def errors(self) -> set[tuple[float, float]]:
        """Of all numbers their variances, and what rounding adds to each."""
        ...

    def serves(self, wanted: Law) -> bool:
        """Say whether no number has more spread than is wanted of its coordinate."""
        ...

    def sways(self, wanted: Law) -> bool:
        """Say whether some weighted sum of a coordinate's numbers has more spread than of numbers that are wanted."""
        ...

    def finer(self, size: int, epoch: int, store: StoredDraws) -> Finer | None:
        """Return the answer, of so many coordinates; None: it was not found."""
        ...


def _is_named(grouping: Grouping, question: Question, named: frozenset[bytes] | None) -> bool:
    """Say whether all keys of a grouping are the question's, or have a name for the analyst (`_named_digests`)."""
    own = question.groups.keys() | question.filters.keys()
    return named is None or all(key.digest in own or key.digest in named for key in grouping.keys)


@dataclass(frozen=True)
class _Single:
    """One stored grouping, of which each group of a question is so many cells. `sums`: these, by group."""

    question: Question
    stored: StoredGrouping
    cells: int

    @property
    def law(self) -> Law:
        return sum_of(self.stored.law, self.cells)

    @property
    def spread(self) -> float:
        return float(self.law.spread)

    @property
    def newest(self) -> int:
        return self.stored.entry

    @property
    def entries(self) -> tuple[int, ...]:
        """See `Source`."""
        return (self.stored.entry,)

    @property
    def errors(self) -> set[tuple[float, float]]:
        """See `Source`."""
        return {(self.spread, 0.0)}

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
        summed = tuple(_sums(one, self.question, grouping) for one in values)
        said = repr((self.cells, self.question.groups, self.question.filters)).encode()
        vectors = vectors_of(self.law, draw.measures, draw.payload + said)
        laws = tuple(self.law.at(place) for place in range(size))
        name = f"by {self.question.name}" if self.question.name else "with more groups"
        added = f", each number from up to {self.cells} groups added up" if self.cells > 1 else ""
        return Finer(
            ReleasedMeasurement(summed, None, laws, vectors),
            epoch,
            f"read from an earlier answer {name}{added}: {_OVER_ALL}",
            (self.stored.entry,),
            self.question,
            ((grouping, draw),),
        )


_OVER_ALL = "a person's rows are bounded over all of its groups; SET dpsql.reuse = off measures this alone"


def _best(question: Question, stored: Sequence[StoredGrouping]) -> _Single | None:
    """Return the stored grouping that makes a question up with the least spread, the newest of equals; None: none
    does."""
    found = []
    for one in stored:
        cells = _cells(question, one.grouping)
        if cells is not None and one.law.is_additive:
            found.append(_Single(question, one, cells))
    return min(found, key=lambda one: (one.law.spread, -one.newest), default=None)


def _cells(question: Question, grouping: Grouping) -> int | None:
    """Return how many groups of a grouping each group of the question is; None where they do not make it up."""
    digests = {key.digest for key in grouping.keys}
    if not {*question.groups, *question.filters} <= digests or len(digests) < len(grouping.keys):
        return None
    cells = 1
    for key in grouping.keys:
        if key.digest in question.filters:
            cells *= len(question.filters[key.digest])
        elif key.digest not in question.groups:
            if not key.is_complete and key.digest not in question.complete:
                return None
            cells *= question.complete.get(key.digest, key.size)
    return cells


def _sums(values: Array, question: Question, grouping: Grouping) -> Array:
    """Return a coordinate, shape (the question's groups,): the sums of those of the grouping that make each up."""
    table = np.array(values.tolist(), dtype=object).reshape([key.size for key in grouping.keys])
    for axis in reversed(range(len(grouping.keys))):
        key = grouping.keys[axis]
        if key.digest in question.groups:
            continue
        every = range(question.complete.get(key.digest, key.size))
        places = question.filters.get(key.digest, list(every))
        table = table.take(places, axis=axis).sum(axis=axis)
    own = [question.groups[key.digest] for key in grouping.keys if key.digest in question.groups]
    found = np.asarray(table, dtype=object)[tuple(own)]
    return integers([int(value) for value in np.atleast_1d(found)])


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
class _Estimate:
    """What all stored groupings of a family say of a question together: its estimate of least variance.

    `name`: of the rows, in words. `told`: by coordinate, without numbers as yet.
    """

    name: str
    question: Question
    axes: Mapping[bytes, int]
    drawn: tuple[_Drawn, ...]
    told: tuple[Told, ...]

    @property
    def spread(self) -> float:
        return max(float((one.variances + np.array(one.rounding)).max()) for one in self.told)

    @property
    def newest(self) -> int:
        return max(self.entries)

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
        observed = tuple(
            Observed.of({(b"", one.stored.entry): (nothing, one.law(place)) for one in group})
            for group in drawn.values()
        )
        design = design_of(tuple(axes.values()), tuple(drawn), tuple(float(one.spread) for one in observed))
        unit = plan.measures[number].measurement.denominator
        found_ = None if design is None else Told.of(observed, design, wanted, unit)
        if found_ is None:
            return None
        is_fine = np.any(FEW * np.array(found_.rounding) > found_.variances)
        told.append(found_.by_itself() if is_fine else found_)
    return _Estimate(plan.release.rows.name, question, axes, parts, tuple(told))


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
    return ties_of(known, env), _complete(known, plan)


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
