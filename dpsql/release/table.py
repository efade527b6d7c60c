"""A grouping as numbers of a table: its keys read the table's axes, and its groups are sums of the table's cells.

What a release asks is a question of stored groupings. What is asked and what was
drawn are shapes alike, whoever stores or asks it; of one table both are sums (`Sums`).

A key is known by a digest of itself and of its public values, and a group by the places of its keys' values among
these. So what is stored of other statements and what is asked speak of the same groups where the digests are equal,
and where several keys read one column it is known how their places lie in each other (`ties_of`).

House rule: from text, policy and settings alone (soundness.md 3.8).
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..budget import Grouping, GroupingKey
from ..cache import Cache
from ..mechanisms import Law, SquareRoot, sum_of
from ..plan.privacy.axes import (
    Listed,
    Partition,
    Places,
    Ranged,
    axis_of,
    is_complete,
    listed_term,
    ranged_term,
    refined,
    usual_keys,
)
from ..plan.privacy.keys import domain_of, environment_of
from ..plan.privacy.rows import Release, selects_in
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.catalog import Scalar
from ..relation.expressions import Expr, Field, fields_of, walk
from ..relation.intervals import Environment
from .estimate import Sums
from .released import Array, Groups, declared_groups, integers, leading, planned_groups

Ties = Mapping[bytes, tuple[bytes, Partition]]
"""By digest of a key of which others read the same column: their axis, and the key's place on each of its atoms. The
axis of any other key is its own, with its places for atoms."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The groups of a grouping: of the product of its keys' places, the last key's the fastest, those at `rows`, in
    this order; None: all of it.

    `keys`: by digest the places among the key's values; `filters`: by digest those of the rows that are counted at all.
    """

    keys: tuple[tuple[bytes, tuple[int, ...]], ...]
    filters: tuple[tuple[bytes, tuple[int, ...]], ...] = ()
    rows: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls, columns: Mapping[bytes, Sequence[int]], size: int, filters: Mapping[bytes, Iterable[int]]
    ) -> Shape:
        """Return that of so many groups: of each its place among the values of each key."""
        keys, rows = [], np.zeros(size, dtype=np.int64)
        for digest, column in columns.items():
            places, numbers = np.unique(np.array(column, dtype=np.int64), return_inverse=True)
            keys.append((digest, tuple(places.tolist())))
            rows = rows * len(places) + numbers.ravel()
        kept = tuple(sorted((digest, tuple(sorted(set(places)))) for digest, places in filters.items()))
        is_all = _is_each(rows, math.prod(len(places) for _, places in keys))
        return cls(tuple(keys), kept, None if is_all else tuple(rows.tolist()))

    @property
    def size(self) -> int:
        """How many groups there are."""
        return math.prod(len(places) for _, places in self.keys) if self.rows is None else len(self.rows)

    @property
    def read(self) -> frozenset[bytes]:
        """The keys that say which group a row is in, if in any."""
        return frozenset(digest for digest, _ in (*self.keys, *self.filters))

    @property
    def columns(self) -> dict[bytes, Array]:
        """By key the place of each group."""
        sizes = [len(places) for _, places in self.keys]
        rows = np.arange(self.size) if self.rows is None else np.array(self.rows, dtype=np.int64)
        at = np.unravel_index(rows, sizes) if sizes else ()
        return {digest: np.array(places)[own] for (digest, places), own in zip(self.keys, at, strict=True)}

    def without(self, key: bytes) -> Shape:
        """Return that by all keys but one, each group once."""
        left = {digest: own.tolist() for digest, own in self.columns.items() if digest != key}
        groups = list(dict.fromkeys(zip(*left.values(), strict=True))) if left else [()]
        return Shape.of(
            dict(zip(left, zip(*groups, strict=True), strict=True)), len(groups), dict(self.filters)
        )


# --- what is stored ---------------------------------------------------------------------------------------------


def whole_keys(groupings: Iterable[Grouping], complete: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return how many places those keys have of which no row has another: as they were drawn, or as the owner says."""
    keys = [key for one in groupings for key in one.keys if key.is_complete]
    return {**{key.digest: key.size for key in sorted(keys, key=lambda key: key.size)}, **complete}


def cells_with_rows(grouping: Grouping, complete: Mapping[bytes, int]) -> Shape:
    """Return what a stored draw has the numbers of, less the places where no row is, as the owner says."""
    kept = [(key.digest, tuple(range(complete.get(key.digest, key.size)))) for key in grouping.keys]
    return Shape(tuple(kept))


def cells_in(values: Array, grouping: Grouping, complete: Mapping[bytes, int]) -> Array:
    """Return these numbers of a stored draw's."""
    sizes = [key.size for key in grouping.keys]
    return leading(values, sizes, [complete.get(key.digest, key.size) for key in grouping.keys])


# --- the table --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OnAxis:
    """What a shape's groups are on an axis. `keys`: those of the shape, each with how many places it may have;
    `groups`: the partition's, as numbers that these places are the digits of."""

    partition: Partition
    keys: tuple[tuple[bytes, int], ...]
    groups: Array

    def number(self, columns: Mapping[bytes, Array], size: int) -> Array:
        """Return for so many tuples of places the number of each."""
        found = np.zeros(size, dtype=np.int64)
        for key, width in self.keys:
            found = found * width + columns[key]
        return found


@dataclass(frozen=True)
class Reading:
    """What was drawn of a shape as numbers of a table, `sums`: so many of its groups, `cells`, are added up to each."""

    sums: Sums
    cells: int
    shape: Shape
    axes: tuple[_OnAxis, ...]

    def by_root(self) -> Reading | None:
        """Return it of what was drawn as running sums by square root over the groups, in their order; None: these are
        not the numbers, one by one."""
        is_each = self.cells == 1 and len(self.shape.keys) == 1 and self.sums.rows is None
        if not is_each or not _is_each(_numbers(self.shape, self.axes), self.sums.size):
            return None
        return replace(self, sums=replace(self.sums, by_root=True))

    def law(self, law: Law) -> Law:
        """Return the law of the noise on a number, of that of a draw of the groups."""
        return law.drawn if isinstance(law, SquareRoot) else sum_of(law, self.cells)

    def values(self, values: Array) -> Array:
        """Return the numbers, of the groups'."""
        numbers = _numbers(self.shape, self.axes)
        if self.sums.rows is not None:
            numbers = np.searchsorted(np.array(self.sums.rows), numbers)
        if _is_each(numbers, self.sums.size):
            return values
        found = np.zeros(self.sums.size, dtype=object)
        np.add.at(found, numbers, values.astype(object))
        return integers(found.tolist())


def _distinct(values: Array) -> Array:
    """Return the different ones of some integers, in order; shape (n,). `np.unique` loads masked arrays for it."""
    ordered: Array = np.sort(values)
    is_new: Array = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    found: Array = ordered[is_new]
    return found


@dataclass(frozen=True)
class Table:
    """How many atoms each axis has, and how the keys of one column tie to each other."""

    axes: Mapping[bytes, int]
    ties: Ties

    @classmethod
    def of(cls, atoms: Mapping[bytes, int], ties: Ties) -> Table:
        """Return that of all keys that have so many places each, and of those that they tie to."""
        tied = {**atoms, **{key: len(places.groups) for key, (_, places) in ties.items()}}
        return cls(dict(sorted((axis_name(key, ties), size) for key, size in tied.items())), ties)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many atoms each axis has."""
        return tuple(self.axes.values())

    def sums(self, shape: Shape) -> Sums | None:
        """Return a shape's groups as sums of the cells; None: it reads another axis, or some group has no cell."""
        axes = self._placed(shape) if self.has(shape.read) else None
        if axes is None:
            return None
        partitions, numbers = tuple(one.partition for one in axes), _numbers(shape, axes)
        is_all = _is_each(numbers, math.prod(one.size for one in partitions))
        return Sums(partitions, None if is_all else tuple(numbers.tolist()))

    def reading(self, shape: Shape) -> Reading | None:
        """Return what is drawn of a shape as numbers of the table: over a key that is no axis its groups are added up.
        None: some group has no cell, or of some fewer are added up than of others."""
        axes = self._placed(shape) if self.has(dict(shape.filters)) else None
        if axes is None:
            return None
        sums, cells = Sums(tuple(one.partition for one in axes)), 1
        if shape.rows is None:
            cells = shape.size // sums.size
        else:
            rows, counts = np.unique(_numbers(shape, axes), return_counts=True)
            cells = int(counts[0])
            if np.any(counts != cells):
                return None
            if not _is_each(rows, sums.size):
                sums = Sums(sums.partitions, tuple(rows.tolist()))
        return Reading(sums, cells, shape, axes)

    def has(self, keys: Iterable[bytes]) -> bool:
        """Say whether all of some keys are on its axes."""
        return all(axis_name(key, self.ties) in self.axes for key in keys)

    def _placed(self, shape: Shape) -> tuple[_OnAxis, ...] | None:
        """Return what a shape's groups are on each axis; None: some group has no cell."""
        if not shape.size:
            return None
        columns = {} if shape.rows is None else shape.columns
        keys, filters = dict(shape.keys), dict(shape.filters)
        found = []
        for axis, atoms in self.axes.items():
            own, kept = (
                sorted(key for key in each if axis_name(key, self.ties) == axis) for each in (keys, filters)
            )
            places = {key: self._places(key, atoms) for key in (*own, *kept)}
            widths = tuple((key, max(int(places[key].max()), max(keys[key])) + 1) for key in own)
            one = _OnAxis(Partition.whole(atoms), widths, np.zeros(1, dtype=np.int64))
            if own or kept:
                known, is_counted = one.number(places, atoms), np.ones(atoms, dtype=bool)
                if shape.rows is None:
                    product = np.meshgrid(*(np.array(keys[key]) for key in own), indexing="ij")
                    columns = {key: each.ravel() for key, each in zip(own, product, strict=True)}
                size = len(columns[own[0]]) if own else 1
                groups = _distinct(one.number(columns, size))
                for key in kept:
                    is_counted &= np.isin(places[key], filters[key])
                group = np.searchsorted(groups, known)
                is_counted &= np.isin(known, groups)
                if len(_distinct(group[is_counted])) < len(groups):
                    return None
                partition = Partition(tuple(np.where(is_counted, group, -1).tolist()))
                one = _OnAxis(partition, widths, groups)
            found.append(one)
        return tuple(found)

    def _places(self, key: bytes, atoms: int) -> Array:
        return np.array(self.ties[key][1].groups) if key in self.ties else np.arange(atoms)


def _numbers(shape: Shape, axes: Sequence[_OnAxis]) -> Array:
    """Return for each group of a shape which of the product of the axes' groups it is, or is a part of."""
    columns, found = shape.columns, np.zeros(shape.size, dtype=np.int64)
    for one in axes:
        found = found * len(one.groups) + np.searchsorted(one.groups, one.number(columns, shape.size))
    return found


def _is_each(numbers: Array, count: int) -> bool:
    """Say whether these are all numbers up to a count, in their order."""
    return len(numbers) == count and np.array_equal(numbers, np.arange(count))


def axis_name(key: bytes, ties: Ties) -> bytes:
    """Return the axis that a key is on."""
    return ties[key][0] if key in ties else key


def places_of(shapes: Iterable[Shape], whole: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return how many places each key has that some shapes read: where it is not known which rows there are beside
    these, there may be others."""
    found: dict[bytes, int] = {}
    for shape in shapes:
        for key, places in (*shape.keys, *shape.filters):
            least = whole.get(key, 0), max(places, default=0) + 1 + (key not in whole)
            found[key] = max(found.get(key, 0), *least)
    return found


_MOST_TERMS = 4
"""Most filter terms of a question that are looked for among the keys of stored groupings."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of groupings without some filter terms: the groups, of the rows that these terms keep.

    `name`: the keys' names. `complete`: by digest how many values those columns have of which the owner says that no
    row has another.
    """

    predicate: tuple[Expr, ...]
    shape: Shape
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
    groups = planned_groups(plan)
    is_whole = len(listed) == len(keys) and groups.size == math.prod(map(len, listed))
    if not is_whole or groups.tuples() != list(itertools.product(*listed)):
        return None
    whole = {digest: size for digest, (_, (_, size)) in placed_keys(plan, rows.predicate).items()}
    sizes_ = ((digest, len(one)) for digest, one in zip(digests, listed, strict=True))
    return Grouping(family, tuple(GroupingKey(digest, n, whole.get(digest) == n) for digest, n in sizes_))


def named_digests(plan: ReleasePlan) -> frozenset[bytes] | None:
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


_asked: Cache[tuple[Release, Groups, list[Question]]] = Cache(64)
"""What was asked lately, by the number of the release's object, which is kept with it: a batch asks for the same at
each epsilon that it tries, a session once more for each answer."""


def questions_of(plan: ReleasePlan, groups: Groups) -> list[Question]:
    """Return the question without some of its filter terms, each with what these keep; itself among them."""
    known = _asked.get(id(plan.release))
    if known is None or known[0] is not plan.release or known[1] is not groups:
        known = plan.release, groups, list(_questions_of(plan, groups))
        _asked.put(id(plan.release), known)
    return known[2]


def _questions_of(plan: ReleasePlan, groups: Groups) -> Iterator[Question]:
    rows = plan.release.rows
    read = ((term, listed_term(term) or ranged_term(term)) for term in rows.predicate)
    terms = [(term, found) for term, found in read if found is not None][:_MOST_TERMS]
    for count in range(len(terms) + 1):
        for chosen in itertools.combinations(terms, count):
            left_out = [term for term, _ in chosen]
            kept = tuple(term for term in rows.predicate if term not in left_out)
            # by its object what is said of it is found again
            predicate = kept if left_out else rows.predicate
            question = _question(plan, groups, predicate, [found for _, found in chosen])
            if question is not None:
                yield question


def _question(
    plan: ReleasePlan, groups: Groups, predicate: tuple[Expr, ...], read: Sequence[Listed | Ranged]
) -> Question | None:
    env = environment_of(plan.release.rows.columns, predicate)
    terms = _listed(plan, env, read)
    if terms is None:
        return None
    kept: dict[bytes, list[int]] = {}
    for term in terms:
        values = _values(term.key, env)
        place_of = {value: i for i, value in enumerate(values or ())}
        if values is None or not place_of.keys() >= set(term.values):
            return None
        digest = _digest(plan, term.key, values)
        places = dict.fromkeys(place_of[value] for value in term.values)
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
    shape = Shape.of(own, groups.size, kept)
    return Question(predicate, shape, ", ".join(names), _complete_keys(plan, predicate))


def _listed(plan: ReleasePlan, env: Environment, terms: Sequence[Listed | Ranged]) -> list[Listed] | None:
    """Return what terms list, and of each column that has ranges the values in all of them; None: a row that is in
    them may have a value that is not listed.

    Where both ends are inside of what is listed, no row beyond the bounds is between them, which are counted there.
    """
    found, ranges = [term for term in terms if isinstance(term, Listed)], dict[Expr, list[Ranged]]()
    for term in terms:
        if isinstance(term, Ranged):
            ranges.setdefault(term.key, []).append(term)
    for key, own in ranges.items():
        first = max((one.first for one in own if one.first is not None), default=None)
        last = min((one.last for one in own if one.last is not None), default=None)
        values = [value for value in _values(key, env) or () if isinstance(value, int)]
        inside = [
            value for value in values if (first is None or value >= first) and (last is None or value <= last)
        ]
        is_whole = first is not None and last is not None and len(inside) == last - first + 1
        if not inside or not (is_whole or is_complete(key, plan.release.rows)):
            return None
        found.append(Listed(key, tuple(inside)))
    return found


def _complete_keys(plan: ReleasePlan, predicate: tuple[Expr, ...]) -> dict[bytes, int]:
    """Return by digest how many values those columns have, and the release's own keys, of which the owner says that no
    row has another."""
    columns = plan.release.rows.columns
    told = (Field(column.type, i, column.name) for i, column in enumerate(columns) if column.is_complete)
    return complete_sizes({**_placed(plan, predicate, told), **placed_keys(plan, predicate)}, plan)


def complete_sizes(keys: Mapping[bytes, tuple[Expr, Places]], plan: ReleasePlan) -> dict[bytes, int]:
    rows = plan.release.rows
    return {digest: len(values) for digest, (key, (values, _)) in keys.items() if is_complete(key, rows)}


def drawn_shape(plan: ReleasePlan, question: Question) -> Shape | None:
    """Return the groups of a draw of a release with all other groups, of the rows that a question's filters keep; None:
    it has none, or other values are others there. Of a key that is complete those listed.
    """
    env = environment_of(plan.release.rows.columns, question.predicate)
    found = {}
    for key, axis in zip(plan.release.keys, plan.axes or (), strict=False):
        values = _values(key, env)
        is_told = axis.others and not axis.is_complete
        if not values or (is_told and values != list(axis.values)) or not set(axis.values) <= set(values):
            return None
        place = {value: i for i, value in enumerate(values)}
        others = [len(values)] if is_told else []
        found[_digest(plan, key, values)] = (*map(place.__getitem__, axis.values), *others)
    return Shape(tuple(found.items()), question.shape.filters) if found else None


def usual_places(plan: ReleasePlan) -> dict[bytes, tuple[Expr, Places]]:
    """Return by digest the keys by which the rows of a release are usually grouped, of all columns that have a name."""
    columns = enumerate(plan.release.rows.columns)
    named = (Field(column.type, index, column.name) for index, column in columns if column.name)
    return _placed(plan, plan.release.rows.predicate, (key for one in named for key in usual_keys(one)))


def placed_keys(plan: ReleasePlan, predicate: tuple[Expr, ...]) -> dict[bytes, tuple[Expr, Places]]:
    """Return by digest a release's own keys and those of its filters, and how many places of each have rows, that of
    all others among them unless the owner says that no row has another: of the rows on which `predicate` holds.
    """
    read = (listed_term(term) or ranged_term(term) for term in plan.release.rows.predicate)
    terms = (term.key for term in read if term is not None)
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
