"""The door: private rows to releases, as few as answer all grouping sets (soundness.md 1.10 and 1.18).

House rule: a key that holds an owner, or a value with one owner, is refused: each group would be one
person's, and a threshold keeps all but a few of them out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from ...errors import Position, Refusal
from ...relation.catalog import MAX_DERIVED, quoted_names
from ...relation.expressions import Call, Expr, Field, Literal, conjunction, moved
from ...relation.relations import AggregateCall, Group, Join, Relation, SetOperation, projected
from ...relation.types import BOOLEAN, INTEGER, Kind
from .grouping_sets import Keys, Labels, adds_up, sources_of
from .keys import SteppedKey, domain_of, environment_of, max_groups_in, stepped_keys
from .personal import personal_columns, tells_apart
from .rows import AddedUp, OwnedRows, Release, identities_in, source_at


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
        if (column := tells_apart(key, is_personal)) is not None:
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
