"""What the printed SQL of a release gives without noise, and how far two databases are apart in it.

House rule: for made-up databases alone, those of the audit and of the tests. What a session asks goes into an `Exact`
(`release/run.py`), which nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ...mechanisms import Window
from ...plan.privacy.rows import IntermediateColumn
from ...plan.release_plan import ReleasePlan
from ...relation.catalog import Scalar
from ...relation.expressions import IntermediateValue
from ...release.released import canonical, completed, declared_groups
from .windows import moved, steps_of, windows_of

if TYPE_CHECKING:
    from ...backends import Snapshot
    from ...plan.backend_sql.print_release import BackendQuery

__all__ = ["SALT", "Groups", "distance", "drawn_scale", "measure_release", "parameter_of", "squared_distance"]

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
