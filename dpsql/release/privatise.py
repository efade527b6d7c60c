"""Exact measures to released ones: the noise is added and the choices are made here, and nowhere else.

House rules (laws L3, L7, L8):

1. `Exact` is the only holder of exact values, from the moment that `run` has fetched them. It has no iterator,
   no repr of its content, no equality; this module alone reads it, and it goes no further.
2. Noise is drawn for a whole measurement at once, from the operating system's randomness; for declared
   groups it is drawn before the engine is asked (`draw`), so that its time says nothing.
3. A group that the engine did not return counts 0 in every coordinate, and gets its noise like any other; a choice
   in it is made from an empty window.
4. The bits of choices are drawn as the noise is. Windows and scores stay here: no log, store or repr has them.
   Of groups that are chosen (`pick_groups`) it is only told which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction

import numpy as np

from ..mechanisms import FlipChoice, Near, Noise, RankSplit, SquareRoot, Window
from ..mechanisms.choice import FIRST_BYTES, first_bytes_of
from ..mechanisms.laws.square_root import sums_of
from ..plan.backend_sql.print_release import Part
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.catalog import Scalar
from .released import Array, Groups, ReleasedMeasurement, integers, publishable

Coordinate = tuple[int, int]


@dataclass(slots=True, repr=False, eq=False)
class _Table:
    """One query's rows, `size` groups: key columns, and by coordinate an array of shape (size,), in its units."""

    keys: Sequence[list[Scalar]]
    values: dict[Coordinate, Array]
    size: int


@dataclass(slots=True, repr=False, eq=False)
class Exact:
    """Exact integers per group and coordinate of some measurements of one release; opaque by design.

    One table for each query; `_kept`: that whose groups were tested, and the row numbers of the groups shown, shape
    (shown,); `_windows`: by measurement and group, the rows near a wanted rank.
    """

    _tables: list[_Table] = field(default_factory=list)
    _kept: tuple[_Table, Array] | None = None
    _windows: dict[int, dict[tuple[Scalar, ...], Window]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "Exact(…)"

    def __iter__(self) -> None:
        raise TypeError("exact results cannot be iterated")

    def add(
        self, keys: Sequence[list[Scalar]], values: Mapping[Coordinate, Sequence[int]], size: int
    ) -> None:
        """Take a query's rows in."""
        self._tables.append(_Table(keys, {place: integers(column) for place, column in values.items()}, size))

    def add_windows(
        self, number: int, keys: Sequence[list[Scalar]], columns: Sequence[Sequence[int]], size: int
    ) -> None:
        """Take in the rows near a wanted rank: candidates, weights below them, their own, those of their groups."""
        groups = Groups(tuple(keys), size).tuples()
        places, less, weights, totals = columns
        found: defaultdict[tuple[Scalar, ...], list[int]] = defaultdict(list)
        for row in sorted(range(size), key=places.__getitem__):
            found[groups[row]].append(row)
        self._windows[number] = {
            key: Window(
                [places[row] for row in rows],
                [less[row] for row in rows],
                [weights[row] for row in rows],
                totals[rows[0]],
            )
            for key, rows in found.items()
        }


def _table_of(exact: Exact, coordinate: Coordinate) -> _Table:
    return next(table for table in exact._tables if coordinate in table.values)


def _over(exact: Exact, coordinate: Coordinate, groups: Groups, empty: int) -> Array:
    """Return a coordinate's exact values over the given groups, shape (groups,); `empty` where one has no row."""
    table = _table_of(exact, coordinate)
    column = table.values[coordinate]
    if exact._kept is not None and exact._kept[0] is table:
        return column[exact._kept[1]]
    if not groups.columns and table.size == 1:
        return column
    rows = {key: row for row, key in enumerate(Groups(tuple(table.keys), table.size).tuples())}
    if len(rows) != table.size:
        raise AssertionError("a group came twice")
    found = [rows.get(key) for key in groups.tuples()]
    return integers([empty if row is None else int(column[row]) for row in found])


@dataclass(frozen=True, slots=True, repr=False)
class Bits:
    """Random bits for the choices of some groups, and the source of more where these do not decide a choice."""

    first: bytes
    noise: Noise


AskPart = Callable[[int, Part], Exact]
"""Asks the engine for the rows of a part of a group, for a measurement."""
Drawn = tuple[Array, ...] | Bits
"""What is drawn before the exact numbers: for each coordinate noise of shape (groups,), or the bits of choices."""


_MOST_FIRST = 2**28
"""Most bytes that choices begin with and are drawn at once: of more groups, which were found, each draws its own."""


def draw(plan: ReleasePlan, number: int, groups: int, noise: Noise) -> Drawn:
    """Return the noise of one measurement, an array of `groups` draws per coordinate; of choices their bits."""
    measurement, law = plan.measurements[number], plan.measures[number].law
    if plan.measures[number].choice is not None:
        size = groups * _first_bytes(plan, number)
        return Bits(noise.bits(size) if size <= _MOST_FIRST else b"", noise)
    if law.is_joint:
        return tuple(noise.vectors(law, measurement.size, groups))
    drawn = noise.draw(law.drawn if isinstance(law, SquareRoot) else law, groups * measurement.size)
    return tuple(drawn[i * groups : (i + 1) * groups] for i in range(measurement.size))


def _first_bytes(plan: ReleasePlan, number: int) -> int:
    """Return how many random bytes the choices of one group begin with."""
    choice = plan.measures[number].choice
    if isinstance(choice, FlipChoice):
        return first_bytes_of(choice.candidates)
    return plan.measurements[number].size * FIRST_BYTES


def privatise(
    exact: Exact, plan: ReleasePlan, number: int, groups: Groups, noise: Drawn, ask: AskPart
) -> ReleasedMeasurement:
    """Return a measurement's noisy or chosen integers for the given groups.

    `ask`: for what a choice needs and was not read.
    Requires: `noise` was drawn for this measurement and these groups and is used once.
    Ensures: value = exact + noise, in Python integers where 64 bits could overflow; of what is drawn by square root
    value = running sum + noise, the sum of exact integers (soundness.md 1.44).
    """
    measurement, law = plan.measurements[number], plan.measures[number].law
    if isinstance(noise, Bits):
        return _choose(exact, plan, number, groups, noise, ask)
    exact_values: Iterable[Array] = (
        _over(exact, (number, i), groups, measurement.empty_value) for i in range(measurement.size)
    )
    if isinstance(law, SquareRoot):
        exact_values = map(sums_of, exact_values)
    values = [_plus(column, added) for column, added in zip(exact_values, noise, strict=True)]
    return ReleasedMeasurement(tuple(values), None, tuple(law.at(place) for place in range(len(values))))


def _choose(
    exact: Exact, plan: ReleasePlan, number: int, groups: Groups, bits: Bits, ask: AskPart
) -> ReleasedMeasurement:
    """Return lattice values near the wanted ranks for each group, by the exponential mechanism (soundness.md 1.20)."""
    one, windows = plan.measures[number], exact._windows.get(number, {})
    measurement, choice = one.measurement, one.choice
    assert choice is not None
    if isinstance(choice, FlipChoice):
        wide, keys = _first_bytes(plan, number), groups.tuples()
        firsts = (bits.first[i * wide : (i + 1) * wide] for i in range(len(keys)))
        places = [
            bits.noise.pick(choice.scores(windows.get(key) or Window()), choice.gamma, first)
            for key, first in zip(keys, firsts, strict=True)
        ]
        return ReleasedMeasurement((integers(places),), None, (one.law,))
    lattice, size = measurement.known_lattice, measurement.size
    found: list[list[int]] = [[] for _ in range(size)]
    for index, key in enumerate(groups.tuples()):
        window = windows.get(key) or Window()

        def pick(
            place: int,
            counts: Sequence[int],
            misses: Sequence[int],
            gamma: Fraction,
            start: int = index * size,
        ) -> tuple[int, int]:
            at = (start + place) * FIRST_BYTES
            return bits.noise.choose(counts, misses, gamma, bits.first[at : at + FIRST_BYTES])

        def read(start: int, end: int, near: tuple[Near, ...], key: tuple[Scalar, ...] = key) -> Window:
            return ask(number, Part(key, start, end, near))._windows[number].get(key) or Window()

        if isinstance(choice, RankSplit):
            steps = choice.values(window, pick, read)
        else:
            counts, misses = choice.intervals(window)
            steps = [choice.step(counts, *pick(0, counts, misses, choice.gamma))]
        for column, step in zip(found, steps, strict=True):
            column.append(lattice.at(step))
    return ReleasedMeasurement(tuple(map(integers, found)), None, (one.law,) * size)


def draw_picks(plan: ReleasePlan, groups: int, noise: Noise) -> Bits:
    """Return the random bits for choosing among `groups` groups, drawn before their scores are read."""
    return Bits(noise.bits(sum(map(first_bytes_of, _left(plan, groups)))), noise)


def _left(plan: ReleasePlan, groups: int) -> list[int]:
    """Return for each choice, in order, among how many groups it is made."""
    assert plan.top is not None
    return [groups - done for done in range(min(plan.top.count, groups))]


def pick_groups(exact: Exact, plan: ReleasePlan, groups: Groups, bits: Bits) -> ReleasedMeasurement:
    """Return the groups that are measured, in the order that they are declared in (soundness.md 1.23).

    One choice after the other by permute-and-flip, each among those that are left: what tells of a group is that it
    was chosen, nothing of its score, and nothing of when.
    """
    number = plan.selection
    assert number is not None
    scores = [int(score) for score in _over(exact, (number, 0), groups, 0)]
    left, gamma, first = list(range(groups.size)), Fraction(1) / plan.measures[number].scale, bits.first
    for size in _left(plan, groups.size):
        need = first_bytes_of(size)
        place = bits.noise.pick([scores[group] for group in left], gamma, first[:need])
        del left[place]
        first = first[need:]
    chosen = sorted(set(range(groups.size)) - set(left))
    listed = groups.tuples()
    columns = tuple([listed[group][key] for group in chosen] for key in range(len(groups.columns)))
    return ReleasedMeasurement((), Groups(columns, len(chosen)), (plan.measures[number].law,))


def _plus(column: Array, noise: Array) -> Array:
    """Return a sum of shape (groups,), of one coordinate unit; in Python ints where int64 could overflow."""
    if column.dtype == np.int64 and noise.dtype == np.int64 and _is_small(column) and _is_small(noise):
        return column + noise
    return integers([int(a) + int(b) for a, b in zip(column.tolist(), noise.tolist(), strict=True)])


def _is_small(values: Array) -> bool:
    return len(values) == 0 or (int(values.min()) > -(2**62) and int(values.max()) < 2**62)


def publish(exact: Exact, plan: ReleasePlan, noise: Noise, minimum_units: int) -> ReleasedMeasurement:
    """Return the groups that are shown, with their noisy unit counts (soundness.md 1.7).

    Keys with fewer than `minimum_units` units never come to the test; one of exactly so many is shown with
    probability at most its own part of delta. Only keys that the data have are tested; the query gives them in
    the order of the keys, and in that order they come out.
    """
    number, law = plan.counted, plan.key_law
    assert number is not None
    assert law is not None
    table = _table_of(exact, (number, 0))
    counts = table.values[(number, 0)]
    types = [key.type for key in plan.release.keys]
    tested = np.flatnonzero((counts >= minimum_units) & publishable(table.keys, types, table.size))
    added = draw(plan, number, len(tested), noise)
    assert not isinstance(added, Bits)
    (drawn,) = added
    coins = noise.coins(law.coin, len(tested))
    noisy = _plus(counts[tested], drawn)
    shown = np.flatnonzero(law.shown(noisy - (minimum_units - 1), coins))
    kept = tested[shown]
    exact._kept = table, kept
    rows = kept.tolist()
    groups = Groups(tuple([column[row] for row in rows] for column in table.keys), len(rows))
    return ReleasedMeasurement((noisy[shown],), groups, (law,))
