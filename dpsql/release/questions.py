"""What a release asks as a question of stored groupings: its keys, and the places of its groups among their values.

A key is known by a digest of itself and of its public values, and a group by the places of its keys' values among
these. So what is stored of other statements and what is asked speak of the same groups where the digests are equal, and
where several keys read one column it is known how their places lie in each other (`ties_of`).

House rule: from text, policy and settings alone (soundness.md 3.8).
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ..budget import Grouping, GroupingKey
from ..cache import Cache
from ..plan.privacy.axes import Listed, Partition, axis_of, is_complete, listed_term, listed_terms
from ..plan.privacy.keys import domain_of, environment_of
from ..plan.privacy.partitions import Places, refined, usual_keys
from ..plan.privacy.rows import Release, selects_in
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.catalog import Scalar
from ..relation.expressions import Expr, Field, fields_of, walk
from ..relation.intervals import Environment
from .released import Groups, declared_groups
from .table import Shape, Ties

__all__ = [
    "Question",
    "complete_sizes",
    "drawn_shape",
    "grouping_of",
    "named_digests",
    "placed_keys",
    "questions_of",
    "related_keys",
    "ties_of",
    "usual_places",
]

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
    groups = declared_groups(plan.groups, [key.type for key in keys])
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
