"""A statement whose groups are periods, as one release for each of them (soundness.md 1.41).

    SELECT date_trunc('month', t), count(*) FROM orders WHERE t >= '2026-01-01' AND t < '2026-04-01' GROUP BY 1

is what `SELECT count(*) FROM orders` is of January, of February and of March, each beside its month. So each month is a
draw of its own: it is charged to its month alone, stored by what is counted and the month, whatever interval was asked,
and never drawn anew when another month is asked with it.

House rules:

1. A release of one period is one of (a): what it claims, is charged and is stored by is its own, and no other's.
2. What a period leaves no choice of is no part of it: terms of WHERE that hold of all of its moments, keys that are one
   value on all of them. A term that cuts a period stays: which rows are kept depends on it. By text and policy alone; a
   wrong guess costs correctness, never privacy, since what is printed is what is claimed of.
3. Where a group can have rows of two periods, all are one draw: their sum would have more noise than it has. Where some
   are not over, and drawn anew each day, counts and sums of those that are over are a draw by themselves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from ..records import dataclass
from ..relation.catalog import Scalar as Value
from ..relation.expressions import (
    Call,
    Expr,
    Field,
    Literal,
    Scalar,
    compared,
    fields_of,
    map_children,
    parts_in,
)
from ..relation.intervals import Environment, facts_of
from ..relation.relations import (
    AggregateCall,
    Group,
    OutputColumn,
    Relation,
    SetOperation,
    grouped,
    nodes_in,
    projected,
)
from ..relation.types import BOOLEAN, TEXT, TIMESTAMP
from .privacy.analyze import Analyzed
from .privacy.axes import spelled
from .privacy.keys import domain_of, environment_of, existing_groups
from .privacy.rows import AddedUp, Release, Select, Source, fields_in, source_at
from .privacy.value_set import Looking

MOST_PERIODS = 100
"""Most periods of a statement that are draws of their own: of more, all are one."""
_MOST_LOOKED_AT = 12
"""Most values of a key of which it is looked at which are there in a period: months of a year, days of a week."""


@dataclass(frozen=True, slots=True)
class Each:
    """A statement over releases of one period each. `parts`: those that a release of the statement is made of."""

    analyzed: Analyzed
    parts: tuple[tuple[Release, ...], ...]


def ordered(analyzed: Analyzed) -> tuple[Release, ...]:
    """Return the releases of a statement in order of drawing."""
    return tuple(dict.fromkeys(nodes_in(Release, *analyzed.intermediates, analyzed.root)))


def each_period(whole: Analyzed, by_period: Sequence[Sequence[Release | None]]) -> Each | None:
    """Return a statement made of releases of one period each; None: some group of it can have rows of two.

    `by_period`: of each release in order of drawing, what it is in each period; None: it reads nothing of that one.
    """
    if any(nodes_in(AddedUp, whole.root, *whole.intermediates)):
        return None
    made: dict[Release, Relation] = {}
    found: list[tuple[Release, ...]] = []
    for release, parts in zip(ordered(whole), by_period, strict=True):
        if not all(part is None or _is_alike(part.rows, release.rows) for part in parts):
            return None
        # by the keys that the whole has: in one period another one of them may say the rest
        own = [
            replace(part, keys=release.keys, aggregates=release.aggregates, names=release.names)
            for part in dict.fromkeys(parts)
            if part is not None
        ]
        if not own or not _are_apart(own):
            return None
        alone = [_alone(part) for part in own]
        made[release] = _united([shown for _, shown in alone], release.columns)
        found.append(tuple(part for part, _ in alone))
    change = _replacing(made)
    root, intermediates = change(whole.root), tuple(map(change, whole.intermediates))
    return Each(replace(whole, root=root, intermediates=intermediates), tuple(found))


def at_boundary(whole: Analyzed, by_part: Sequence[Sequence[Release | None]]) -> Each | None:
    """Return a statement whose counts and sums are those of some parts of the periods, added up; None: it has others.

    `by_part`: of each release in order of drawing, what it is over each part; None: it reads nothing of that one.
    """
    if any(nodes_in(AddedUp, whole.root)):
        return None
    made: dict[Release, Relation] = {}
    found: list[tuple[Release, ...]] = []
    for release, parts in zip(ordered(whole), by_part, strict=True):
        own = [part for part in dict.fromkeys(parts) if part is not None]
        if any(call.function not in ("count", "sum") or call.distinct for call in release.aggregates):
            return None
        if not own or not all(
            _is_alike(part.rows, release.rows) and part.keys == release.keys for part in own
        ):
            return None
        alone = [_alone(part) for part in own]
        made[release] = _added_up(_united([shown for _, shown in alone], release.columns), release)
        found.append(tuple(part for part, _ in alone))
    return Each(replace(whole, root=_replacing(made)(whole.root)), tuple(found))


def _added_up(rows: Relation, release: Release) -> Relation:
    """Return the rows of a release's parts added up: one for each group."""
    width, row = len(release.keys), rows.row
    calls = tuple(
        AggregateCall(call.type, "sum", (row[width + i],), False, None)
        for i, call in enumerate(release.aggregates)
    )
    sums = grouped(rows, Group(row[:width], calls, (tuple(range(width)),), names=release.names))
    shown = (
        Call(call.type, "cast", (field,))
        for call, field in zip(release.aggregates, sums.row[width:], strict=True)
    )
    return projected(sums, (*sums.row[:width], *shown), release.names, release.position)


def _is_alike(rows: Select, others: Select) -> bool:
    """Say whether columns of two blocks are the same ones, of whatever periods."""
    here, there = (
        [(item.kind, item.source.name, item.source.uncut.shown, len(item.columns)) for item in of.items]
        for of in (rows, others)
    )
    return here == there


def _replacing(made: Mapping[Release, Relation]) -> Callable[[Relation], Relation]:
    """Return what puts relations in the place of releases, in subqueries of expressions too."""

    def changed(node: Relation) -> Relation:
        if isinstance(node, Release):
            return made[node]
        return node.map_inputs(changed).map_expressions(expression)

    def expression(expr: Expr) -> Expr:
        below = map_children(expr, expression)
        return replace(below, relation=changed(below.relation)) if isinstance(below, Scalar) else below

    return changed


def _united(parts: Sequence[Relation], columns: tuple[OutputColumn, ...]) -> Relation:
    """Return the rows of all parts, as many steps deep as there are halves of them."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _united(parts[:half], columns), _united(parts[half:], columns)
    return SetOperation("union", True, left, right, columns)


# --- which groups a period has -----------------------------------------------------------------------------------


def _are_apart(parts: Sequence[Release]) -> bool:
    """Say whether some key tells each two periods apart: no value of it is one of both."""
    if len(parts) == 1:
        return True
    return _tells_apart([[_traced(key, part.rows) for key in part.keys] for part in parts])


def _tells_apart(known: Sequence[Sequence[tuple[Value, ...] | None]]) -> bool:
    """Say whether of each two periods some key has no value in common. `known`: what each can be, by period."""
    return all(
        any(
            mine is not None and theirs is not None and not set(mine) & set(theirs)
            for mine, theirs in zip(*pair, strict=True)
        )
        for pair in itertools.combinations(known, 2)
    )


def _traced(key: Expr, rows: Select) -> tuple[Value, ...] | None:
    """Return what a key can be where it is one of its moments, or of those that a subquery of one part reads."""
    if key.column is None:
        return _values(key, environment_of(rows.columns, rows.predicate), _moments(rows))
    item, start = source_at(rows.items, key.column)
    if any(one.kind == "full" for one in rows.items):
        return None
    if item.kind == "inner" and item.source.is_subquery and len(item.source.parts) == 1:
        (part,) = item.source.parts
        place = key.column - start
        return _traced(part.outputs[place], part) if place < len(part.outputs) else None
    return _values(key, environment_of(rows.columns, rows.predicate), _moments(rows))


def are_of_one_period(parts: Sequence[Select]) -> bool:
    """Say whether each row of a block is made of rows of one period: those of its periods, apart, are then all of it.

    `parts`: the block in each period. One source has a time, by an INNER join: a table as it stands, or a subquery of
    such rows, which is grouped, where it is, by what tells the periods apart.
    """
    first = parts[0]
    timed = [place for place, item in enumerate(first.items) if _has_time(item.source)]
    if len(timed) != 1 or not all(_is_alike(part, first) for part in parts):
        return False
    items = [part.items[timed[0]] for part in parts]
    source = items[0].source
    if items[0].kind != "inner" or (source.table is None and not source.is_subquery):
        return False
    for number in range(len(source.parts) if source.is_subquery else 0):
        below = [item.source.parts[number] for item in items]
        if not are_of_one_period(below) or below[0].windows:
            return False
        if below[0].aggregates is not None and not _tells_apart(
            [[_traced(key, one) for key in one.outputs] for one in below]
        ):
            return False
    return True


def _has_time(source: Source) -> bool:
    if source.table is not None:
        return source.table.spans is not None
    return any(_has_time(item.source) for part in source.parts for item in part.items)


def _values(key: Expr, env: Environment, moments: frozenset[int]) -> tuple[Value, ...] | None:
    """Return what a key can be, where it is one of its moments alone; None: that is not known."""
    if not fields_of(key) or not fields_of(key) <= moments:
        return None
    domain = domain_of(key, env)
    if domain is None:
        return None
    values = domain.values
    if 1 < len(values) <= _MOST_LOOKED_AT:
        values = tuple(value for (value,) in existing_groups((key,), [domain], env, (), Looking()))
    return tuple(spelled(value, key.type) for value in values)


def _moments(rows: Select) -> frozenset[int]:
    """Return the columns of a block that are bounded to its periods where they are read, and so never NULL."""
    found = set[int]()
    if any(item.kind == "full" for item in rows.items):
        return frozenset()
    for item, start in fields_in(rows.items):
        table = item.source.uncut.table
        if item.kind != "inner" or table is None or table.spans is None or table.spans.time.way:
            continue
        time = table.spans.time.column
        found |= {start + i for i, name in enumerate(item.source.uncut.shown) if name == time}
    return frozenset(found)


# --- what a period leaves no choice of ---------------------------------------------------------------------------


def _alone(release: Release) -> tuple[Release, Relation]:
    """Return a release of one period without what that leaves no choice of, and as it was asked for, with all keys."""
    rows, moments = release.rows, _moments(release.rows)
    plain = environment_of(rows.columns, ())
    predicate = tuple(term for term in rows.predicate if not _holds(term, plain, moments))
    left = rows if predicate == rows.predicate else replace(rows, predicate=predicate)
    one = [_one_value(key, left) for key in release.keys]
    kept = [place for place, value in enumerate(one) if value is None]
    width = len(release.keys)
    names = (*(release.names[place] for place in kept), *release.names[width:])
    drawn = replace(
        release,
        rows=left,
        keys=tuple(release.keys[place] for place in kept),
        names=names,
    )
    if len(kept) == width:
        return drawn, drawn
    row = drawn.row
    keys = (row[kept.index(i)] if value is None else value for i, value in enumerate(one))
    return drawn, projected(drawn, (*keys, *row[len(kept) :]), release.names, release.position)


def _one_value(key: Expr, rows: Select) -> Literal | None:
    """Return the value that a key is on all moments of a period; None: it may be several."""
    values = _traced(key, rows)
    if values is None or len(values) != 1:
        return None
    (value,) = values
    return Literal(key.type, value, position=key.position) if isinstance(value, int | str) else None


_COMPARED: Mapping[str, Callable[[Fraction, Fraction, Fraction], bool]] = {
    "ge": lambda low, high, value: low >= value,
    "gt": lambda low, high, value: low > value,
    "le": lambda low, high, value: high <= value,
    "lt": lambda low, high, value: high < value,
}
"""When a comparison holds of all values from `low` to `high`."""


def _holds(term: Expr, env: Environment, moments: frozenset[int]) -> bool:
    """Say whether a term holds of all moments of a period: so it is where no row of the period fails it."""
    read = fields_of(term)
    if len(read) != 1 or not read <= moments:
        return False
    (column,) = set(parts_in(Field, term))
    facts, found = facts_of(column, env), compared(term)
    if found is not None and found[1] == column and found[0] in _COMPARED:
        value = found[2].exact if isinstance(found[2], Literal) else None
        if isinstance(value, Fraction) and found[2].type.kind is column.type.kind:
            low, high = facts.lo, facts.hi
            return low is not None and high is not None and _COMPARED[found[0]](low, high, value)
    key = Call(TIMESTAMP, "date_trunc", (Literal(TEXT, "year"), column))
    domain = domain_of(key, env)
    if domain is None:
        return False
    failed = Call(BOOLEAN, "or", (Call(BOOLEAN, "not", (term,)), Call(BOOLEAN, "is_null", (term,))))
    narrowed = environment_of(tuple(env.columns), (failed,))
    return not existing_groups((key,), [domain], narrowed, (failed,), Looking())
