"""The door: private rows to releases, as few as answer all grouping sets (soundness.md 1.10 and 1.18); labels of keys.

    >>> labels([to_char(ts, 'Mon'), extract(month FROM ts)], …)
    0 is a label of 1: CASE extract(month FROM ts) WHEN 1 THEN 'Jan' … END, above the release

A key that another key of its release says is its label: rows are grouped by that one, and it is shown beside it. So a
statement with a label has the draw of the statement without it, and the rows of all others beside its groups
(soundness.md 1.34), which a list of pairs has not.

House rule: a key that holds an owner, or a value with one owner, is refused: each group would be one person's, and a
threshold keeps all but a few of them out.

House rules of GROUPING SETS, ROLLUP and CUBE (soundness.md 1.7 and 1.18):

1. By text and policy alone: how many values each key has, and by how much a person weighs. Never by what was released.
2. A sum is taken over declared keys alone: of keys that are found by threshold, the cells that are not shown are
   missing, and a missing cell is not 0.
3. What counts a thing once in each group is no sum of finer groups: the same thing may be in several.
4. A key is a label only where each listed value of the other one has one value of it, on all that their column can be
   by its declaration and the filter, and it is listed too.
5. A label is post-processing of a declared value: what is wrong of it costs correctness, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from ...errors import Position, Refusal
from ...relation.aggregates import Asks
from ...relation.catalog import MAX_DERIVED, Scalar, quoted_names
from ...relation.expressions import Call, Expr, Field, Literal, conjunction, fields_of, moved
from ...relation.intervals import Environment
from ...relation.relations import AggregateCall, Group, Join, Relation, SetOperation, projected
from ...relation.types import BOOLEAN, INTEGER, Kind
from .keys import (
    MAX_DOMAIN,
    SteppedKey,
    domain_of,
    environment_of,
    max_groups_in,
    personal_columns,
    stepped_keys,
    tells_people_apart,
)
from .rows import AddedUp, Label, OwnedRows, Release, holds_unit, identities_in, source_at
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


def release_each_set(
    group: Group,
    rows: OwnedRows,
    keys: tuple[Expr, ...],
    aggregates: tuple[AggregateCall, ...],
    position: Position | None,
) -> Relation:
    """Open the release boundary: the releases of a block, put together to its grouping sets by UNION ALL."""
    if keys:
        _check_keys(rows, keys)
    steps = stepped_keys(keys, environment_of(rows.columns, rows.predicate))
    grouped = tuple(key if step is None else step.grouped for key, step in zip(keys, steps, strict=True))
    released = _Sets(replace(group, keys=grouped), rows, grouped, aggregates, position).whole()
    return _as_written(released, steps, [column.name for column in group.columns])


def _as_written(released: Relation, steps: Sequence[SteppedKey | None], names: Sequence[str]) -> Relation:
    """Return rows of a release whose first columns are keys, with these as they were written."""
    if not any(steps):
        return released
    exprs: list[Expr] = list(released.row)
    for i, step in enumerate(steps):
        if step is not None:
            exprs[i] = moved(step.shown, lambda _, place=i: place)  # type: ignore[misc]  # a default, bound here
    return projected(released, exprs, names)


class _Sets:
    """The releases that the grouping sets of a block are made of: what adds up is measured in the finest cells."""

    def __init__(
        self, group: Group, rows: OwnedRows, keys: tuple[Expr, ...], aggregates: tuple[AggregateCall, ...],
        position: Position | None,
    ) -> None:  # fmt: skip
        self.group, self.rows, self.keys, self.aggregates = group, rows, keys, aggregates
        self.position, self.env = position, environment_of(rows.columns, rows.predicate)
        self.labels = Labels(keys, self.env)
        self.shares: dict[tuple[Keys, tuple[int, ...]], int] = {}

    def whole(self) -> Relation:
        """Return all sets: one release as it is, several by UNION ALL in the columns of the whole."""
        group, every = self.group, tuple(range(len(self.aggregates)))
        if len(group.sets) == 1:
            chosen = group.sets[0]
            self.shares[chosen, every] = 1
            one = self._shown(chosen, every)
            return _spread(group, one, chosen, every) if group.groupings else one
        self._measure()
        result = self.relation(group.sets[0])
        for chosen in group.sets[1:]:
            result = SetOperation("union", True, result, self.relation(chosen), group.columns)
        return result

    def _measure(self) -> None:
        """Choose what is measured for which sets, and each release's share of the block's groups."""
        group, rows, keys, aggregates = self.group, self.rows, self.keys, self.aggregates
        unique = tuple(dict.fromkeys(group.sets))
        self.added = tuple(i for i, call in enumerate(aggregates) if adds_up(call, keys, rows))
        self.once = tuple(i for i in range(len(aggregates)) if i not in self.added)
        self.source = sources_of(unique, self._cells, self._weight) if self.added else {}
        measured = [(chosen, self.added) for chosen in dict.fromkeys(self.source.values())]
        for chosen in unique:
            if self._left(chosen) or not aggregates:
                measured.append((chosen, self._left(chosen)))
        parts = {(chosen, calls): self._weight(chosen) * max(1, len(calls)) for chosen, calls in measured}
        common = math.gcd(*parts.values())
        self.shares = {one: part // common for one, part in parts.items()}

    def relation(self, chosen: Keys) -> Relation:
        """Return the rows of one grouping set, in the columns of the whole."""
        left = self._left(chosen)
        source = self.source.get(chosen)
        if source is None:
            return _spread(self.group, self._shown(chosen, left), chosen, left)
        kept, labels = self.labels.split(source)
        places = {key: place for place, key in enumerate(kept)}
        by = (places[key] if key in places else replace(labels[key], place=places[labels[key].place])
              for key in chosen)  # fmt: skip
        names = _names(self.group, chosen, ())
        rows: Relation = AddedUp(self._release(source, self.added), tuple(by), names, position=self.position)
        if left:
            rows = self._public_input(rows, self._shown(chosen, left), len(chosen))
        return _spread(self.group, rows, chosen, (*self.added, *left))

    def _left(self, chosen: Keys) -> tuple[int, ...]:
        """Return the aggregates that a set is asked for by a release of its own."""
        return self.once if chosen in self.source else tuple(range(len(self.aggregates)))

    def _weight(self, chosen: Keys) -> int:
        """Return how many groups of a set a person may touch."""
        return max_groups_in(self.rows, self._grouped(chosen), self.env)

    def _cells(self, chosen: Keys) -> int | None:
        """Return how many groups of declared keys a set has at most; None: of one that is not declared."""
        domains = [domain_of(key, self.env) for key in self._grouped(chosen)]
        sizes = [max(1, len(domain.values)) for domain in domains if domain is not None]
        return math.prod(sizes) if len(sizes) == len(domains) else None

    def _grouped(self, chosen: Keys) -> tuple[Expr, ...]:
        return tuple(self.keys[i] for i in self.labels.split(chosen)[0])

    def _release(self, chosen: Keys, calls: tuple[int, ...]) -> Release:
        """Return the release of a set, by those of its keys that no other one says."""
        kept, _ = self.labels.split(chosen)
        return Release(
            self.rows, tuple(self.keys[i] for i in kept), tuple(self.aggregates[i] for i in calls),
            (self.shares[chosen, calls], sum(self.shares.values())), _names(self.group, kept, calls),
            position=self.position,
        )  # fmt: skip

    def _shown(self, chosen: Keys, calls: tuple[int, ...]) -> Relation:
        """Return the rows of a set's release with all of its keys."""
        kept, labels = self.labels.split(chosen)
        released = self._release(chosen, calls)
        if not labels:
            return released
        row = released.row
        places = {key: row[place] for place, key in enumerate(kept)}
        exprs = (places[i] if i in places else labels[i].over(places[labels[i].place]) for i in chosen)
        return projected(released, (*exprs, *row[len(kept) :]), _names(self.group, chosen, calls))

    @staticmethod
    def _public_input(left: Relation, right: Relation, keys: int) -> Relation:
        """Return two relations of the same groups side by side, the keys once."""
        width = len(left.columns)
        fields = [Field(column.type, i) for i, column in enumerate((*left.columns, *right.columns))]
        terms = tuple(Call(BOOLEAN, "is_not_distinct", (fields[i], fields[width + i])) for i in range(keys))
        both = Join("inner" if keys else "cross", left, right, conjunction(terms))
        kept = (*fields[:width], *fields[width + keys :])
        return projected(both, kept)


def _names(group: Group, chosen: tuple[int, ...], calls: Iterable[int]) -> tuple[str, ...]:
    names = tuple(column.name for column in group.columns)
    return (*(names[i] for i in chosen), *(names[len(group.keys) + i] for i in calls))


def _spread(group: Group, rows: Relation, chosen: tuple[int, ...], calls: Iterable[int]) -> Relation:
    """Return one grouping set's rows in the columns of the whole: absent keys NULL, GROUPING() bits.

    `rows`: the chosen keys, then the aggregates in the order of `calls`.
    """
    exprs: list[Expr] = []
    for index, key in enumerate(group.keys):
        if index in chosen:
            exprs.append(Field(key.type, chosen.index(index)))
        else:
            exprs.append(Literal(key.type, None))
    order = list(calls)
    exprs += [Field(call.type, len(chosen) + order.index(i)) for i, call in enumerate(group.aggregates)]
    for wanted in group.groupings:
        bits = 0
        for index in wanted:
            bits = bits * 2 + (index not in chosen)
        exprs.append(Literal(INTEGER, bits))
    return projected(rows, exprs, (column.name for column in group.columns))


def owner_of(keys: Iterable[Expr], rows: OwnedRows) -> tuple[Field, ...]:
    """Return those of some keys that together are the value of an identity, and never NULL; () where none are.

    They are of one inner source, or equal the owner in columns of several. No column holds a unit that is a row.
    """
    if not rows.owner:
        return ()
    fields = {key.index: key for key in keys if isinstance(key, Field)}
    known = identities_in(rows.items)
    certain = {index for index in fields if _is_certain(index, rows)}
    whole = next((set(places) for places in known if certain.issuperset(places)), set[int]())
    if not whole:
        parts = certain & {index for places in known for index in places}
        shown = [unit & parts for unit in rows.units]
        whole = {min(unit) for unit in shown} if all(shown) else whole
    return tuple(fields[index] for index in sorted(whole))


def _is_certain(index: int, rows: OwnedRows) -> bool:
    """Say whether a column of a block is never NULL there, as rows without an owner are left out."""
    if any(index in unit for unit in rows.units):
        return True
    item, start = source_at(rows.items, index)
    source = item.source.uncut
    unit = None if source.table is None else source.table.unit
    is_owner = unit is not None and source.shown[index - start] in unit.columns
    return is_owner or item.columns[index - start].enforced.not_null


def _check_keys(rows: OwnedRows, keys: tuple[Expr, ...]) -> None:
    """Refuse keys that hold an owner, or a value with one owner, NULL or not: each group would be one person's."""
    is_personal = personal_columns(rows)
    for number, key in enumerate(keys, 1):
        if key.type.kind is Kind.OPAQUE:
            raise Refusal(
                f"a key of type {key.type} is not shown", sqlstate="42804", position=key.position,
                hint="group by a property that many people share",
            )  # fmt: skip
        # What is computed of one column that tells people apart, and the columns themselves of several that do.
        for fields in [*([part] for part in _outside_buckets(key)), keys[:number]]:
            if found := owner_of(fields, rows) or _unit_in(fields, rows):
                raise one_person([field.name for field in found], found[-1].position or key.position)
        if (column := tells_people_apart(key, is_personal)) is not None:
            raise one_person([column.name], column.position or key.position)


_MOST_DIGITS = 2


def _outside_buckets(key: Expr) -> Iterator[Expr]:
    """Yield the parts of a key, but for what is divided into few buckets: `id % 10`, `left(md5(id::text), 1)`.

    Many people share one, and each person has one (soundness.md 1.12).
    """
    if key.calls("mod") and isinstance(size := key.args[1].exact, Fraction) and abs(size) <= MAX_DERIVED:
        return
    if key.calls("left", "right", "substr") and key.args[0].calls("md5"):
        *start, most = (arg.constant_as(int) for arg in key.args[1:])
        if most is not None and 1 <= most <= _MOST_DIGITS and len(start) == key.calls("substr"):
            return
    yield key
    for arg in key.args:
        yield from _outside_buckets(arg)


def _unit_in(keys: Sequence[Expr], rows: OwnedRows) -> tuple[Field, ...]:
    """Return those of some keys that equal the owner, all of it, in whatever columns; () where none do."""
    if not rows.units:
        return ()
    fields = [key for key in keys if isinstance(key, Field)]
    shown = [next((field for field in fields if field.index in unit), None) for unit in rows.units]
    found = tuple(field for field in shown if field is not None)
    return found if len(found) == len(rows.units) else ()


def one_person(names: Sequence[str], position: Position | None) -> Refusal:
    key = quoted_names(names) if all(names) else "this key"
    return Refusal(
        f"grouping by {key} would make one group per person",
        sqlstate="PV005",
        position=position,
        hint="group by a property that many people share",
    )
