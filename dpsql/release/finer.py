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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..budget import CLOSE, MOST_COMBINED, Draw, Grouping, GroupingKey, StoredDraws, StoredGrouping
from ..mechanisms import Box, Law, WeightedSum, best_weights, mean_of, precision_of, sum_of
from ..plan.privacy.axes import Listed, axis_of, is_complete, listed_term, listed_terms
from ..plan.privacy.keys import domain_of, environment_of
from ..plan.privacy.rows import selects_in
from ..plan.release_plan import ReleasePlan
from ..relation.catalog import Scalar
from ..relation.expressions import Expr, Field
from ..relation.intervals import Environment
from ..relation.types import Kind
from .released import Array, Groups, ReleasedMeasurement, declared_groups, decode, integers, vectors_of

__all__ = ["Finer", "Question", "drawn_places", "find_finer", "grouping_of", "questions_of", "whole_keys"]

_HALF = Fraction(1, 2)
_MOST_TERMS = 4
"""Most filter terms of a question that are looked for among the keys of stored groupings."""


@dataclass(frozen=True, slots=True)
class Finer:
    """A measurement's answer from a stored grouping, and what it is made of, in words.

    `epoch`: in which it is stored; `entries`: the ledger entries of the groupings' draws, none for the question's own.
    `question`: what was asked of these groupings, with their draws as `sources`; None for the question's own.
    """

    measurement: ReleasedMeasurement
    epoch: int
    said: str
    entries: tuple[int, ...] = ()
    question: Question | None = None
    sources: tuple[tuple[Grouping, Draw], ...] = ()


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
    if family is None or plan.groups is None or plan.is_empty or not keys or plan.intermediates:
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
    whole = whole_keys(plan, rows.predicate)
    sizes_ = ((digest, len(one)) for digest, one in zip(digests, listed, strict=True))
    return Grouping(family, tuple(GroupingKey(digest, n, whole.get(digest) == n) for digest, n in sizes_))


def find_finer(plan: ReleasePlan, number: int, groups: Groups, store: StoredDraws) -> Finer | None:
    """Return a measurement as stored groupings have it together, of no more spread than is asked for; None: none has
    it."""
    if plan.groups is None or plan.intermediates:
        return None
    questions: dict[bytes, Question] = {}
    for question in questions_of(plan, groups):
        family = plan.family(number, question.predicate)
        if family is None:
            return None
        questions[family] = question
    named = _named_digests(plan)
    epoch, stored = store.groupings(list(questions))
    served = []
    for family, question in questions.items():
        parts = _parts(question, stored[family], named)
        if parts and _serves([part.law for part in parts], plan.measures[number].law):
            served.append(
                (1 / precision_of([part.law for part in parts]), -parts[0].stored.entry, parts, question)
            )
    if not served:
        return None
    _, _, parts, question = min(served, key=lambda it: it[:2])
    cells = max(part.cells for part in parts)
    source = (
        f"an earlier answer by {question.name}" if question.name else "an earlier answer with more groups"
    )
    added = f", each number from up to {cells} groups added up" if cells > 1 else ""
    said = (
        f"read from {source}{added}: a person's rows are bounded over all of its groups; "
        "SET dpsql.reuse = off measures this alone"
    )
    drawn = [(part, store.draw_of(part.stored)) for part in parts]
    measurement = _measurement(plan.measurements[number].size, question, drawn)
    sources = tuple((part.stored.grouping, one) for part, one in drawn)
    return Finer(measurement, epoch, said, tuple(part.stored.entry for part in parts), question, sources)


@dataclass(frozen=True, slots=True)
class _Part:
    """A stored grouping of which so many groups make up each group of a question: an estimate of the same number."""

    stored: StoredGrouping
    cells: int

    @property
    def law(self) -> Law:
        return sum_of(self.stored.law, self.cells)


def _named_digests(plan: ReleasePlan) -> frozenset[bytes] | None:
    """Return the columns that groupings may be by besides the question's own keys; None: all are the analyst's.

    Where some have no name for the analyst, those that have one: a grouping by another is not theirs (soundness.md
    3.16).
    """
    rows = plan.release.rows
    if not any(
        (table := item.source.uncut.table) is not None and table.unnamed
        for select in selects_in(rows)
        for item in select.items
    ):
        return None
    env = environment_of(rows.columns, rows.predicate)
    found = set()
    for index, column in enumerate(rows.columns):
        key = Field(column.type, index, column.name)
        values = _values(key, env) if column.name and column.type.kind is Kind.BOOLEAN else None
        if values is not None:
            found.add(_digest(plan, key, values))
    return frozenset(found)


def _parts(
    question: Question, stored: Sequence[StoredGrouping], named: frozenset[bytes] | None
) -> list[_Part]:
    """Return the stored groupings that are combined for a question, the best first: all are of the same rows, measures
    and bounds, each with noise of its own (soundness.md 3.13). What depends on each other stays alone.
    """
    found = []
    for one in stored:
        cells = _cells(question, one.grouping, named)
        if cells is not None and one.law.is_additive:
            found.append(_Part(one, cells))
    found.sort(key=lambda part: (part.law.spread, -part.stored.entry))
    alone = bool(found) and (found[0].law.spread < 1 or isinstance(found[0].stored.law, Box))
    return (
        found[:1]
        if alone
        else [part for part in found if not isinstance(part.stored.law, Box)][:MOST_COMBINED]
    )


def _serves(laws: Sequence[Law], wanted: Law) -> bool:
    return precision_of(laws) * wanted.spread * (CLOSE if len(laws) > 1 else 1) >= 1


# --- the question ----------------------------------------------------------------------------------------------


def questions_of(plan: ReleasePlan, groups: Groups) -> Iterator[Question]:
    """Yield the question without some of its filter terms, each with what these keep; itself among them."""
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
    return Question(predicate, own, kept, ", ".join(names), complete_columns(plan, env))


def complete_columns(plan: ReleasePlan, env: Environment) -> dict[bytes, int]:
    """Return by digest how many values those columns have of which the owner says that no row has another."""
    found, rows = {}, plan.release.rows
    for index, column in enumerate(rows.columns):
        key = Field(column.type, index, column.name)
        values = _values(key, env) if column.is_complete and is_complete(key, rows) else None
        if values:
            found[_digest(plan, key, values)] = len(values)
    return found


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


def whole_keys(plan: ReleasePlan, predicate: tuple[Expr, ...]) -> dict[bytes, int]:
    """Return by digest how many places of a key have rows, that of all others among them unless the owner says that no
    row has another: of a release's own keys and those of its filters, of the rows on which `predicate` holds.
    """
    env = environment_of(plan.release.rows.columns, predicate)
    terms = (term.key for term in listed_terms(plan.release.rows.predicate))
    found: dict[bytes, int] = {}
    for key in dict.fromkeys((*plan.release.keys, *terms)):
        values = _values(key, env)
        axis = axis_of(key, values, plan.release.rows, env, predicate) if values else None
        if values and axis is not None:
            found[_digest(plan, key, values)] = axis.believed
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


# --- its answer ------------------------------------------------------------------------------------------------


def _cells(question: Question, grouping: Grouping, named: frozenset[bytes] | None) -> int | None:
    """Return how many groups of a grouping each group of the question is; None where they do not make it up.

    `named`: as `_named_digests` has it.
    """
    digests = {key.digest for key in grouping.keys}
    if not {*question.groups, *question.filters} <= digests or len(digests) < len(grouping.keys):
        return None
    cells = 1
    for key in grouping.keys:
        if key.digest in question.filters:
            cells *= len(question.filters[key.digest])
        elif key.digest not in question.groups:
            if named is not None and key.digest not in named:
                return None
            if not key.is_complete and key.digest not in question.complete:
                return None
            cells *= question.complete.get(key.digest, key.size)
    return cells


def _measurement(size: int, question: Question, parts: Sequence[tuple[_Part, Draw]]) -> ReleasedMeasurement:
    """Return the question's numbers, of several groupings their mean with the least variance."""
    made = [_sums_of(size, question, part, draw) for part, draw in parts]
    if len(made) == 1:
        return made[0]
    values, laws = [], []
    for place in range(size):
        each = [one.laws[place] for one in made]
        weights = best_weights(each)
        values.append(mean_of([one.values[place] for one in made], weights))
        laws.append(WeightedSum.of(zip(each, weights, strict=True), _HALF))
    return ReleasedMeasurement(tuple(values), None, tuple(laws), (None,) * size)


def _sums_of(size: int, question: Question, part: _Part, draw: Draw) -> ReleasedMeasurement:
    law = part.law
    values = decode(draw.payload, draw.law).values
    if len(values) != size:
        raise AssertionError("a family's vectors have as many coordinates")
    summed = tuple(_sums(one, question, part.stored.grouping) for one in values)
    said = repr((part.cells, question.groups, question.filters)).encode()
    vectors = vectors_of(law, draw.measures, draw.payload + said)
    return ReleasedMeasurement(summed, None, tuple(law.at(place) for place in range(size)), vectors)


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
