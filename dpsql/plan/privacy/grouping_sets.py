"""Which sets of keys are measured of GROUPING SETS, ROLLUP, CUBE (soundness.md 1.18); and labels of other keys.

    >>> labels([to_char(ts, 'Mon'), extract(month FROM ts)], …)
    0 is a label of 1: CASE extract(month FROM ts) WHEN 1 THEN 'Jan' … END, above the release

A key that another key of its release says is its label: rows are grouped by that one, and it is shown beside it. So a
statement with a label has the draw of the statement without it, and the rows of all others beside its groups
(soundness.md 1.34), which a list of pairs has not.

House rules (soundness.md 1.7 and 1.18):

1. By text and policy alone: how many values each key has, and by how much a person weighs. Never by what was released.
2. A sum is taken over declared keys alone: of keys that are found by threshold, the cells that are not shown are
   missing, and a missing cell is not 0.
3. What counts a thing once in each group is no sum of finer groups: the same thing may be in several.
4. A key is a label only where each listed value of the other one has one value of it, on all that their column can be
   by its declaration and the filter, and it is listed too.
5. A label is post-processing of a declared value: what is wrong of it costs correctness, never privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from ...relation.aggregates import Asks
from ...relation.catalog import Scalar
from ...relation.expressions import Expr, fields_of
from ...relation.intervals import Environment
from ...relation.relations import AggregateCall
from ...relation.types import Kind
from .keys import MAX_DOMAIN, domain_of
from .rows import Label, OwnedRows, holds_unit
from .value_set import canonical, told_together

Keys = tuple[int, ...]


def adds_up(call: AggregateCall, keys: tuple[Expr, ...], rows: OwnedRows) -> bool:
    """Say whether an aggregate of a group is made of numbers that are sums of those of finer groups.

    Counts of rows, sums, averages and variances are. People are where each is in one group alone; other values that
    are counted once, averages that are noised as they are, and values that are chosen by rank, never.
    """
    if call.row.asks is Asks.COUNT and call.distinct:
        counts_people = holds_unit(call.args, rows.units)
        return counts_people and (rows.is_single or fields_of(*keys) <= rows.fixed_columns)
    return call.row.adds_up


def sources_of(
    sets: Sequence[Keys], size: Callable[[Keys], int | None], weight: Callable[[Keys], int]
) -> dict[Keys, Keys]:
    """Return for each set of declared keys the set that is measured, of which it is the sum (or is it itself).

    `size`: how many groups a set has; None: not declared. `weight`: its part of epsilon, among those that are
    measured. A set is never measured beside a finer one. Where no set has all the keys, their product is measured if
    the widest row is narrower then than by measuring the largest sets each.
    """
    cells = {one: found for one in sets if (found := size(one)) is not None}
    declared = list(cells)
    if not declared:
        return {}
    largest = [one for one in declared if not any(set(one) < set(other) for other in declared)]
    spread = {one: Fraction(cells[one], weight(one) ** 2) for one in largest}
    split = {
        one: min((it for it in largest if set(one) <= set(it)), key=lambda it: (spread[it], it))
        for one in declared
    }
    finest = tuple(sorted(set().union(*declared)))
    cells[finest] = size(finest) or 1
    whole = dict.fromkeys(declared, finest)
    is_narrower = _widest(whole, cells, weight) <= _widest(split, cells, weight)
    return whole if finest in declared or (cells[finest] <= MAX_DOMAIN and is_narrower) else split


def _widest(source: dict[Keys, Keys], cells: dict[Keys, int], weight: Callable[[Keys], int]) -> Fraction:
    """Return the variance of the widest row, in that of a cell which all of epsilon is spent on."""
    measured = set(source.values())
    total = sum(weight(one) for one in measured)
    return max(
        Fraction(total, weight(other)) ** 2 * Fraction(cells[other], cells[one])
        for one, other in source.items()
    )


_MOST = 1_000
"""Most values of a key that labels are told of: each is a branch of a CASE."""


class Labels:
    """Which keys of a block are labels of which others, as grouping sets ask."""

    def __init__(self, keys: Sequence[Expr], env: Environment) -> None:
        self._keys, self._env = keys, env
        self._known: dict[Keys, tuple[Keys, dict[int, Label]]] = {}
        self._by_column: dict[Keys, dict[int, Label]] = {}

    def split(self, chosen: Keys) -> tuple[Keys, dict[int, Label]]:
        """Return those of some keys that rows are grouped by, in their order, and the labels that the others are."""
        if chosen not in self._known:
            labels = self._labels(chosen)
            while any(label.place in labels for label in labels.values()):
                labels = {place: _of_kept(label, labels) for place, label in labels.items()}
            self._known[chosen] = tuple(i for i in chosen if i not in labels), labels
        return self._known[chosen]

    def _labels(self, chosen: Keys) -> dict[int, Label]:
        """Return the labels among some keys, each of a key or of another label."""
        found: dict[int, Label] = {}
        by_column: dict[frozenset[int], list[int]] = {}
        for place in chosen:
            by_column.setdefault(fields_of(self._keys[place]), []).append(place)
        for read, places in by_column.items():
            if len(read) == 1 and len(places) > 1:
                own = tuple(sorted(places, key=lambda i: (_rank(self._keys[i]), i)))
                if own not in self._by_column:
                    self._by_column[own] = self._of_column(own)
                found.update(self._by_column[own])
        return found

    def _of_column(self, places: Keys) -> dict[int, Label]:
        """Return the labels among keys of one column, of which the first are rather what rows are grouped by."""
        keys = [self._keys[place] for place in places]
        domains = [domain_of(key, self._env) for key in keys]
        listed = [
            canonical(domain.values, key.type)
            for domain, key in zip(domains, keys, strict=True)
            if domain is not None
        ]
        told = told_together(keys, self._env) if len(listed) == len(keys) else None
        if told is None:
            return {}
        values = list(zip(*told, strict=True)) or [()] * len(keys)
        kept, labels = list(range(len(keys))), dict[int, Label]()
        for number in reversed(range(len(keys))):
            for other in kept:
                if other == number or len(listed[other]) > _MOST:
                    continue
                pairs = _function(values[other], values[number], listed[other])
                if pairs is not None and {shown for _, shown in pairs} <= set(listed[number]):
                    kept.remove(number)
                    labels[places[number]] = Label(keys[number].type, places[other], keys[other].type, pairs)
                    break
        return labels


def _function(
    of: Sequence[Scalar], shown: Sequence[Scalar], listed: Sequence[Scalar]
) -> tuple[tuple[Scalar, Scalar], ...] | None:
    """Return what is shown of each listed value that there is; None: of some one there are several."""
    found: dict[Scalar, Scalar] = {}
    for value, label in zip(of, shown, strict=True):
        if found.setdefault(value, label) != label:
            return None
    return tuple((value, found[value]) for value in listed if value in found)


def _of_kept(label: Label, labels: dict[int, Label]) -> Label:
    """Return a label of what is a label itself as one of that one's key."""
    middle, own = labels.get(label.place), dict(label.values)
    if middle is None:
        return label
    values = tuple((value, own[between]) for value, between in middle.values)
    return Label(label.type, middle.place, middle.of, values)


def _rank(key: Expr) -> int:
    """Return how soon a key is what rows are grouped by, of several that say each other: a column is, a text is not."""
    if key.column is not None:
        return 0
    if key.type.is_temporal:
        return 1
    return 3 if key.type.kind is Kind.TEXT else 2
