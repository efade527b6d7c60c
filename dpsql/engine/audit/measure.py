"""What the printed SQL of a release gives without noise, and how far two databases are apart in it.

House rule: for made-up databases alone, those of the audit and of the tests. What a session asks goes into an `Exact`
(`release/run.py`), which nobody reads.

Of choices at several fractions it is the weights of the candidates: their claim is about these (soundness.md 1.21).

House rule, made-up values of what a statement draws first: always the same values for the same plan, so that neighbours
are compared under one of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ...mechanisms import FlipChoice, RankChoice, RankSplit, Window
from ...plan.planner import Plan
from ...plan.privacy.rows import IntermediateColumn, selects_in
from ...plan.release_plan import ReleasePlan
from ...relation.catalog import Scalar
from ...relation.expressions import IntermediateValue
from ...relation.types import Kind, SqlType
from ...release.released import canonical, completed, declared_groups

if TYPE_CHECKING:
    from ...backends import Snapshot
    from ...plan.backend_sql.print_release import BackendQuery

# --- windows of choices by rank, and how far they are apart for two databases -------------------------------


Steps = tuple[tuple[int, int], ...]
"""The misses of the candidates in ascending order: (the first candidate after, the miss up to there)."""


class Weights(tuple[tuple[int, int], ...]):
    """The weights of a group's candidates, ascending: (candidate, weight); of all its rows, or it is no measure."""

    __slots__ = ()


def window_of(rows: Iterable[tuple[int, ...]]) -> Window:
    """Return a group's rows (candidate, less, weight, n) as a window."""
    window = Window()
    for place, less, weight, total in sorted(rows):
        assert all(type(value) is int for value in (place, less, weight, total)), "not an integer"
        window.candidates.append(place)
        window.less.append(less)
        window.weights.append(weight)
        window.total = total
    return window


def steps_of(choice: RankChoice | RankSplit | FlipChoice, window: Window) -> Steps:
    """Return the misses of all candidates, or their weights."""
    if isinstance(choice, FlipChoice):
        return Weights(zip(window.candidates, window.weights, strict=True))
    if isinstance(choice, RankSplit):
        assert sum(window.weights) == window.total, "too many rows for their weights to be read"
        return Weights(zip(window.candidates, window.weights, strict=True))
    counts, misses = choice.intervals(window)
    assert sum(counts) == choice.candidates
    assert all(count > 0 for count in counts)
    return tuple(zip(accumulate(counts), misses, strict=True))


def windows_of(
    choice: RankChoice | RankSplit | FlipChoice, rows: Iterable[tuple[Any, ...]], width: int
) -> dict[tuple[Any, ...], Steps]:
    """Return the misses of all candidates by group; `width`: how many keys a row begins with."""
    groups: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
    for row in rows:
        groups.setdefault(row[:width], []).append(row[width:])
    for found in groups.values():
        places = [row[0] for row in found]
        assert len(set(places)) == len(places), "a candidate came twice"
    return {key: steps_of(choice, window_of(found)) for key, found in groups.items()}


def moved(left: Steps, right: Steps) -> int:
    """Return the most that any candidate's miss changed; of weights the sum of all changes."""
    if isinstance(left, Weights):
        here, there = dict(left), dict(right)
        return sum(abs(here.get(place, 0) - there.get(place, 0)) for place in here.keys() | there.keys())
    most, i, j = 0, 0, 0
    while i < len(left) and j < len(right):
        most = max(most, abs(left[i][1] - right[j][1]))
        end = min(left[i][0], right[j][0])
        i, j = i + (left[i][0] == end), j + (right[j][0] == end)
    assert i == len(left)
    assert j == len(right)
    return most


# --- what the printed SQL of a release gives without noise, and how far two databases are apart in it -------


Key = tuple[Scalar, ...]
Groups = dict[Key, tuple[Any, ...]]
"""A measurement's exact integers by group; of a choice by rank the misses of all candidates."""

SALT = "00" * 32
"""The salt of bounding, always the same: databases that are compared leave out the same groups."""


def measure_release(
    release: ReleasePlan, snapshot: Snapshot, intermediates: Sequence[object] = ()
) -> dict[int, Groups]:
    """Return every measurement's integers, as the production path reads them; declared groups are filled up.

    Where keys are found, of all groups: which of them leave the engine is told by the people they keep (soundness.md
    1.7), and sums of groups that both of two databases show are held to the claim whichever these are. Of a group that
    leaves with the count of its people, the integers are those of that query.
    `intermediates`: by number, the value of an earlier intermediate result, or the columns of its rows. A release
    that is empty from its text alone asks the engine nothing: its measurements are empty here too.
    """
    wanted = tuple(range(len(release.measurements)))
    every = replace(release, counted=None).queries(wanted)
    leaving = [query for query in release.queries(wanted) if not (query.of_shown or query in every)]
    found, left = ({number: dict[Any, Any]() for number in wanted} for _ in range(2))
    for query in (*every, *leaving):
        _measure(left if query in leaving else found, release, query, snapshot, intermediates)
    found = {number: {**groups, **left[number]} for number, groups in found.items()}
    if release.groups is not None:
        found = {number: _filled(release, number, groups) for number, groups in found.items()}
    return found


def _measure(
    found: dict[int, Groups], release: ReleasePlan, query: BackendQuery, snapshot: Snapshot,
    intermediates: Sequence[object],
) -> None:  # fmt: skip
    """Add what a query returns."""
    width = len(release.release.keys)
    changes = [canonical(key.type) for key in release.release.keys]
    parameters: list[object] = [SALT] if query.salted else []
    parameters += [parameter_of(intermediates[value.intermediate], value) for value in query.intermediates]
    rows = (
        (*(v if c is None else c(v) for v, c in zip(row[:width], changes, strict=True)), *row[width:])
        for chunk in snapshot.run(query.sql, parameters)
        for row in chunk
    )
    if query.is_window:
        (number,) = query.measurements
        found[number] = windows_of(release.choices[number], rows, width)
    else:
        _take_in(found, release, query, rows)


def _take_in(
    found: dict[int, Groups], release: ReleasePlan, query: BackendQuery, rows: Iterable[tuple[Any, ...]]
) -> None:
    """Add the coordinates of a query's rows."""
    width = len(release.release.keys)
    for row in rows:
        key, start = row[:width], width
        for number in query.measurements:
            size = release.measurements[number].size
            assert key not in found[number], "a group came twice"
            values = row[start : start + size]
            assert all(type(value) is int for value in values), "an exact measure is not an integer"
            found[number][key] = values
            start += size
        assert start == len(row)


def distance(release: ReleasePlan, number: int, left: Groups, right: Groups) -> int:
    """Return what the claim bounds, summed over groups: |change| of all coordinates of one measurement, the norm of
    what is drawn together, of a choice the most that a score changes, up and down together; of several choices one
    after the other that for each of them."""
    empty = _empty(release, number)
    if number == release.selection:
        assert release.top is not None
        changes = [
            int(right.get(key, empty)[0] - left.get(key, empty)[0]) for key in left.keys() | right.keys()
        ]
        return release.top.count * (max(0, *changes, 0) - min(0, *changes, 0))
    total = 0
    for key in left.keys() | right.keys():
        if number in release.choices:
            total += moved(left.get(key, empty), right.get(key, empty))
            continue
        pairs = zip(left.get(key, empty), right.get(key, empty), strict=True)
        total += release.measurements[number].norm([a - b for a, b in pairs])
    return total


def parameter_of(intermediate: object, parameter: IntermediateValue | IntermediateColumn) -> object:
    """Return what a parameter stands for: an intermediate result's value, or a column of its rows."""
    if isinstance(parameter, IntermediateValue):
        return intermediate
    assert isinstance(intermediate, tuple)
    return intermediate[parameter.index]


def _filled(release: ReleasePlan, number: int, groups: Groups) -> Groups:
    assert release.groups is not None
    types = [key.type for key in release.release.keys]
    declared = (completed(release, number) or declared_groups(release.groups, types)).tuples()
    assert len(set(declared)) == len(declared), "a declared group is listed twice: it would be noised twice"
    return {key: groups.get(key, _empty(release, number)) for key in declared}


def _empty(release: ReleasePlan, number: int) -> tuple[Any, ...]:
    measurement = release.measurements[number]
    if number in release.choices:
        return steps_of(release.choices[number], Window())
    return (measurement.empty_value,) * measurement.size


def squared_distance(release: ReleasePlan, number: int, left: Groups, right: Groups) -> Fraction:
    """Return what the claim in rho bounds of one measurement that is no choice: Σ change² of all coordinates."""
    measurement, empty = release.measurements[number], _empty(release, number)
    return sum(
        (
            measurement.square(
                [a - b for a, b in zip(left.get(key, empty), right.get(key, empty), strict=True)]
            )
            for key in left.keys() | right.keys()
        ),
        Fraction(0),
    )


def drawn_scale(release: ReleasePlan, number: int) -> Fraction:
    """Return the scale of the noise that is really drawn: of the law, and of a choice what its weights decay by."""
    if number in release.choices or number == release.selection:
        return release.measures[number].scale
    return release.measures[number].law.scale


# --- made-up values of what a statement draws first ---------------------------------------------------------


def fixed_intermediates(plan: Plan) -> list[object]:
    """Return made-up values for all intermediate results of a plan: rows with repeated keys, unless the plan takes
    them to be unique."""
    uniques: dict[int, tuple[frozenset[int], ...]] = {}
    for release in plan.releases:
        for select in selects_in(release.release.rows):
            sources = (item.source for item in select.items)
            uniques |= {one.intermediate: one.keys for one in sources if one.intermediate is not None}
    found: list[object] = []
    for number, intermediate in enumerate(plan.intermediates):
        types = [column.type for column in intermediate.columns]
        if number in plan.tables:
            found.append(_made_up_rows(types, uniques.get(number, ())))
        else:
            found.append(
                _MADE_UP[types[0].kind][number % 3] if types[0].kind in _MADE_UP else _NUMBERS[number % 4]
            )
    return found


def _made_up_rows(types: Sequence[SqlType], keys: tuple[frozenset[int], ...]) -> tuple[list[object], ...]:
    """Return columns of rows; those of the first key hold every combination once, the others repeat."""
    pools = [_pool(type_) for type_ in types]
    if not keys:
        return tuple([pool[i // 2 % len(pool)] for i in range(8)] for pool in pools)
    key = sorted(keys[0])
    combinations = list(itertools.product(*(pools[index] for index in key)))[:9]
    columns = [[pool[i % len(pool)] for i in range(len(combinations))] for pool in pools]
    for place, index in enumerate(key):
        columns[index] = [combination[place] for combination in combinations]
    return tuple(columns)


def _pool(type_: SqlType) -> tuple[object, ...]:
    if type_.is_integer:
        return (1, 2, None, 7)
    return _MADE_UP.get(type_.kind, (2.5, 0.5, None, 1.0))


_NUMBERS = (2.5, -1.0, None, 0.0)
_MADE_UP: dict[Kind, tuple[object, ...]] = {
    Kind.TEXT: ("a", "b", None, "t"), Kind.BOOLEAN: (True, False, None),
    Kind.DATE: ("2020-06-15", "2020-01-01", None), Kind.TIMESTAMP: ("2020-02-01 00:00:00", "2020-01-01 00:00:00", None),
}  # fmt: skip
