"""The error bars of one answer: what `postprocess.bars` planned, made from released numbers and the laws on them.

House rules:

1. Bars are a function of the released numbers and their laws: no clock, session or random source enters. (That they
   may be NULL where time or memory ran out is said by a note, and such an answer is not remembered.)
2. What is simulated is bounded in numbers: rows times draws times columns.
3. What bounds leave out is known from noisy numbers that are stored (`left_out`) and from plans alone. The ends of a
   bar that holds the noise are moved apart by it, and hold the truth then (soundness.md 3.18).
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure, Refusal
from ..mechanisms import (
    Assembled,
    Gaussians,
    Law,
    Part,
    Thresholded,
    Truncated,
    Vector,
    half_width_of,
    near_half_width,
)
from ..plan.measures.formulas import Average, Chosen, Linear, Variance
from ..plan.measures.measurements import BoundingQuery, Coord, Measurement
from ..plan.measures.ranks import END_MISSES
from ..plan.privacy.keys import environment_of
from ..plan.release_plan import ReleasePlan
from ..policy.periods import Slices
from ..postprocess import ReleasedColumn, ReleasedTable, SealedEngine, error_bars
from ..postprocess.bars import Bar
from ..postprocess.print_public import PublicPrinter
from ..postprocess.quotients import Quotient, Reader
from ..postprocess.rows import FetchedTable
from ..postprocess.simulate import (
    DRAW,
    ROW,
    Drawn,
    NoisyCoordinates,
    Seeded,
    Showing,
    few_rows,
    joint_bars,
    quotient_ends,
    replicas_of,
    seed_of,
    shown_ends,
    shown_replicas,
    variance_ends,
)
from ..records import dataclass
from ..relation.intervals import lattice_of
from ..relation.relations import AggregateCall
from ..relation.types import BIGINT, DOUBLE, SqlType
from .left_out import Excess, LeftOut
from .run import ReleasedRows

if TYPE_CHECKING:
    from .post_processing import Patience

_DRAWS = 2_000
_FEWEST_DRAWS, _FEWEST_JOINT = 200, 100
_MANY_ROWS = 1_000
"""Averages, quotients and variances of so many rows have bars by the test of each, which takes no draws."""
_PLACES = (
    Fraction(0),
    *(Fraction(part, 8 * 2**octave) for octave in range(7, -1, -1) for part in range(5, 9)),
)
"""Parts of the largest average at which the half-width is taken: four an octave, as it bends at a place of any size."""
_MOST_SIZES = 8
_MOST_RUNGS, _MOST_PLACES = 100, 200
_CHORD, _BELOW = 0.01, 0.001
"""Parts by which a half-width may be below and above its chord, in the middle."""
_NARROW = 1.01
"""Of noises below a step a half-width is no smooth function: so much more of it is above it between places too."""
_SLOPE = 1.05
"""A half-width is taken for so much steeper than far out, and the largest quotient for so much larger."""
_BOTH_WAYS = (*((-1, part) for part in _PLACES[:0:-1]), *((1, part) for part in _PLACES))
_MAX_EVALUATIONS, _ENOUGH_EVALUATIONS = 40_000_000, 1_500_000
"""Most rows times draws of expressions of one row; and beyond how many there are no more draws than the fewest: so many
take 0.3 s.
"""
_MAX_CELLS, _ENOUGH_CELLS = 4_000_000, 400_000
"""Most replicas of a joint simulation: rows, draws and columns multiplied; and beyond how many there are no more draws
than the fewest: so many take 0.3 s.
"""
_TOO_MUCH = ("57V01", "54001")
"""Bars that take too much time, or too much memory, are NULL: the answer stands without them."""
_SMALL = 2**62
_LEAST = 1
"""Fewest people of a group that is shown: only groups that the data have are tested."""

Cuts = Callable[[int, int], "Cut | None"]
"""Returns of a release, by its number, and an aggregate of it what a bound may leave out; None: that is not known."""
Array = npt.NDArray[Any]
Column = Sequence[float | None] | Array
"""Ends or widths, a row each; NULL is None, in an array NaN."""
Ends = tuple[Column, Column]


def no_cuts(number: int, index: int) -> Cut | None:
    """Know nothing of what bounds leave out."""
    return None


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation as SQL: columns that number a row, the draw, and each bar's released value and replica.

    `numbers`: the types of the first. `together`: which bars are to hold for all rows at once. `releases`: those
    read; `replicated`: of which coordinates of these there are replicas. `parts`: the public parts that are read.
    `tested`: what numbers a row, then of each bar, which is one of `quotients`, the released value and the first row of
    its part; None: there are no tests.
    """

    sql: str
    numbers: tuple[SqlType, ...]
    together: tuple[bool, ...]
    releases: frozenset[int]
    replicated: dict[int, tuple[Coord, ...]]
    parts: frozenset[int]
    tested: str | None = None
    quotients: tuple[Quotient, ...] = ()


def empty_bars(table: ReleasedTable, bars: Sequence[Bar]) -> ReleasedTable:
    """Return a table without rows with the columns of its bars."""
    for index, bar in enumerate(bars):
        if bar.is_even:
            table = _with_widths(table, index, np.empty((0, 2)), is_cut=bar.is_cut)
        else:
            table = _with_ends(table, index, ([], []))
    return table


def empty_simulation(name: str, simulation: Simulation) -> ReleasedTable:
    """Return the bars of no rows."""
    return _bars_table(name, simulation, [])


def empty_replicas(simulation: Simulation) -> list[ReleasedTable]:
    """Return the tables of no draws that a simulation reads beside releases and public parts."""
    tables = [ReleasedTable("draws", (ReleasedColumn("draw", BIGINT, []),))]
    for number, coordinates in simulation.replicated.items():
        names = ("row", "draw", *(one.column for one in coordinates))
        tables.append(ReleasedTable(f"s{number}", tuple(ReleasedColumn(name, BIGINT, []) for name in names)))
    return tables


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the bars of one answer at one level, in the time that its patience leaves.

    `rows`: the statement's releases; `bars`: of each release, those that stand in its table. `cuts`: what bounds leave
    out of their numbers.
    """

    engine: SealedEngine
    level: Fraction
    patience: Patience
    rows: Sequence[ReleasedRows]
    bars: Mapping[int, Sequence[Bar]]
    cuts: Cuts = no_cuts

    def with_bars(self, tables: Mapping[int, ReleasedTable]) -> dict[int, ReleasedTable]:
        """Return releases' tables with the columns that their bars are printed from, by the laws of their draws."""
        simulated = self._simulated(tables)
        found = dict(tables)
        for number in tables:
            for index, bar in enumerate(self.bars.get(number, ())):
                ends = simulated.get((number, index))
                found[number] = (
                    self._with_bar(number, found[number], index, bar)
                    if ends is None
                    else _with_ends(found[number], index, ends)
                )
        return found

    def _with_bar(self, number: int, table: ReleasedTable, index: int, bar: Bar) -> ReleasedTable:
        cut = self._cut(number, bar)
        beta = self._missing(bar)
        if bar.chosen is not None:
            return _with_ends(table, index, self._drawn_ends(number, bar.chosen, beta))
        assert bar.terms is not None, "what is simulated has its ends"
        if not bar.is_shown:
            each = _noises_on_each(self.rows[number], bar.terms, table.row_count)
            # no law: the answer is in the statement's own text
            found = [_widths(noises, beta, cut) if bar.terms else (0.0, 0.0) for noises in each]
            widths = np.broadcast_to(np.array(found).reshape(-1, 2), (table.row_count, 2))
            return _with_widths(table, index, widths, is_cut=bar.is_cut)
        ((place, weight),) = bar.terms
        released = table.columns[_position(table, place)].values
        rule = _showing(self.rows[number])
        constant = _constant(self.rows[number].plan, bar)

        def ends_at(missing: Fraction) -> list[Array]:
            found = shown_ends(rule, np.asarray(released), float(missing))
            return [
                constant + float(weight) * end for end in sorted(found, key=lambda e: float(weight) * e.sum())
            ]

        low, high = ends_at(beta)
        if cut is not None:
            wider, (above, below) = (
                ends_at(beta / 2),
                cut.most(beta / 2),
            )  # half of what each end may miss for either
            low = wider[0] - above if above else low
            high = wider[1] + below if below else high
        return _with_ends(table, index, (low, high))

    def _drawn_ends(self, number: int, chosen: Chosen, beta: Fraction) -> Ends:
        """Return the values at both ends of a chosen one's bar; NULL where what was drawn misses by more (1.21)."""
        rows, ends = self.rows[number], chosen.ends
        assert ends is not None
        assert chosen.coordinate is not None
        middle = rows.values_of(chosen.coordinate).tolist()
        places = [place for place in (ends.low, ends.high) if place is not None]
        if any(rows.law_of(place).half_width(END_MISSES * beta) > ends.rows for place in places):
            return [None] * len(middle), [None] * len(middle)
        low, high = (
            [end] * len(middle) if place is None else rows.values_of(place).tolist()
            for place, end in ((ends.low, ends.lowest), (ends.high, ends.highest))
        )
        step = chosen.step
        return (
            [
                ends.least(min(one, mid)) * step.numerator / step.denominator
                for one, mid in zip(low, middle, strict=True)
            ],
            [
                ends.most(max(one, mid)) * step.numerator / step.denominator
                for one, mid in zip(high, middle, strict=True)
            ],
        )

    def _cut(self, number: int, bar: Bar) -> Cut | None:
        """Return what a bound leaves out of a bar's number; None where it is not known."""
        rows = self.rows[number]
        if (
            not bar.is_cut or rows.is_agreed
        ):  # what agrees with others is made of several, some with weights below 0
            return None
        index = rows.plan.release.aggregate_at(bar.expr)
        assert index is not None
        return self.cuts(number, index)

    def _missing(self, bar: Bar) -> Fraction:
        """Return how often a bar may miss, so that all bars that are to hold at once do, at the level."""
        if not bar.together:
            return 1 - self.level
        chosen = (number for number, bars in self.bars.items() if any(one.together for one in bars))
        count = sum(
            rows.groups.size for rows in map(self.rows.__getitem__, chosen) if rows.groups is not None
        )
        least = (1 - self.level) / max(1, count)
        return max(least, Fraction(-math.expm1(math.log(self.level) / max(1, count))))

    # --- one row at a time ---------------------------------------------------------------------------------

    def _simulated(self, tables: Mapping[int, ReleasedTable]) -> dict[tuple[int, int], Ends]:
        """Return the ends of expressions of one row, by release and bar, NULL if they cannot be had.

        Those of one text over tables of one shape are simulated in one go: periods of one statement.
        """
        found: dict[tuple[int, int], Ends] = {}
        alike: dict[tuple[Any, ...], list[tuple[tuple[int, int], Drawn]]] = {}
        drawn_rows = sum(
            table.row_count
            * sum(bar.terms is None and bar.chosen is None for bar in self.bars.get(number, ()))
            for number, table in tables.items()
        )
        for number, table in tables.items():
            rows, size = self.rows[number], table.row_count
            draws = _draws_of(
                drawn_rows, _ENOUGH_EVALUATIONS, min(_FEWEST_DRAWS, _MAX_EVALUATIONS // max(1, size))
            )
            shape = tuple((column.name, column.type) for column in table.columns)
            for index, bar in enumerate(self.bars.get(number, ())):
                if bar.terms is not None or bar.chosen is not None:
                    continue
                ends = self._tested(rows, bar, table) if size >= _MANY_ROWS else None
                if ends is None:
                    ends = self._variances(rows, bar, of_few=True) or ([np.nan] * size, [np.nan] * size)
                    if draws >= _FEWEST_DRAWS:
                        sql, drawn = self._drawn(rows, bar, table, draws)
                        alike.setdefault((sql, shape, draws, *drawn.replicas), []).append(
                            ((number, index), drawn)
                        )
                found[number, index] = ends
        for (sql, *_), members in alike.items():
            places, asked = zip(*members, strict=True)
            try:
                seconds = self.patience.left_for_bars
                simulated = error_bars(self.engine, sql, asked, self.level, seconds=seconds)
            except (EngineFailure, Refusal) as error:
                self._give_up(error)
                continue
            for place, ends in zip(places, simulated, strict=True):
                found[place] = _with_known(found[place], ends)
        return found

    def _drawn(self, rows: ReleasedRows, bar: Bar, table: ReleasedTable, draws: int) -> tuple[str, Drawn]:
        """Return an expression of one row as SQL, and what it is simulated of."""
        printer = PublicPrinter({rows.plan.release: (0, rows.plan)})
        noises = _noises(rows, bar.coordinates, draws)
        sql = printer.over_release(rows.plan.release, bar.expr, own_error=(DRAW, ROW))
        return sql, Drawn(table, {place.column: noise for place, noise in noises.items()})

    def _tested(self, rows: ReleasedRows, bar: Bar, table: ReleasedTable) -> Ends | None:
        """Return the bars of an average, a variance or a quotient by its test; None: it is another expression."""
        known = self._averages(rows, bar) or self._variances(rows, bar, of_few=False)
        return known or self._quotient(rows, bar, table)

    def _quotient(self, rows: ReleasedRows, bar: Bar, table: ReleasedTable) -> Ends | None:
        """Return the bars of a quotient of a row's own numbers by its test; None: it is none, or is simulated."""
        release, every = rows.plan.release, np.arange(table.row_count)
        reader = Reader({release: rows.plan}, lambda node: release if node is release else None)
        one = reader.quotient(bar.expr, release)
        asked = None if one is None else _Asked.of(one, [rows], every, every)
        ends = None if asked is None else asked.ends(1 - self.level)
        if ends is None:
            return None
        sql, drawn = self._drawn(rows, bar, table, 1)
        still = replace(drawn, replicas={name: 0 * noise for name, noise in drawn.replicas.items()})
        try:
            ((shown, _),) = error_bars(
                self.engine, sql, [still], self.level, seconds=self.patience.left_for_bars
            )
        except (EngineFailure, Refusal) as error:
            self._give_up(error)
            return None
        return _around(ends, shown)

    def _averages(self, rows: ReleasedRows, bar: Bar) -> Ends | None:
        """Return the bars of an average: all that the test of its numerator does not reject (soundness.md 1.2)."""
        index = rows.plan.release.aggregate_at(bar.expr)
        formula = None if index is None else rows.plan.formulas[index]
        if not isinstance(formula, Average) or any(part.each for part in rows.measurements.values()):
            return None
        widest = max(formula.highest - formula.middle, formula.middle - formula.lowest)
        if not widest or not formula.difference.terms or not formula.count.terms:
            return None
        places = [way * widest * part for way, part in _BOTH_WAYS]

        def noises(place: Fraction) -> list[Part]:
            return _parts(rows, formula.difference.plus(formula.count.times(-place)).terms)

        halves = [near_half_width(noises(place), 1 - self.level) for place in places]
        noisy = NoisyCoordinates(
            {place: np.asarray(rows.values_of(place), dtype=np.float64) for place in formula.coordinates},
            {},
        )
        count = noisy.value(formula.count)
        ends = quotient_ends(
            noisy.value(formula.difference), count, np.array(list(map(float, places))), np.array(halves)
        )
        low, high = (
            np.where(
                count > 0,
                np.clip(float(formula.middle) + end, float(formula.lowest), float(formula.highest)),
                np.nan,
            )
            for end in ends
        )
        return low, high

    def _variances(self, rows: ReleasedRows, bar: Bar, *, of_few: bool) -> Ends | None:
        """Return the bars of a variance by the ellipsoid of its sums, NULL where its count is (soundness.md 1.2).

        `of_few`: of few rows alone, NULL elsewhere. None: it is no variance that has one.
        """
        index = rows.plan.release.aggregate_at(bar.expr)
        formula = None if index is None else rows.plan.formulas[index]
        if not isinstance(formula, Variance) or formula.width == 0:
            return None
        if not of_few and any(part.each for part in rows.measurements.values()):
            return None
        laws = {place: rows.law_of(place) for place in bar.coordinates}
        noise = NoisyCoordinates(
            {place: np.asarray(rows.values_of(place), dtype=np.float64) for place in laws},
            {place: float(law.spread) for place, law in laws.items()},
        )
        there = noise.value(formula.count) > 0
        chosen = np.flatnonzero(there & few_rows(formula, noise) if of_few else there)
        low, high = np.full(len(there), np.nan), np.full(len(there), np.nan)
        if len(chosen):
            noise = NoisyCoordinates(
                {place: values[chosen] for place, values in noise.released.items()}, noise.spread
            )
            even = [(place, Fraction(1, max(1, math.isqrt(int(law.spread))))) for place, law in laws.items()]
            tested = [
                *laws.values(),
                *(law for law, _ in _noises_on(rows, even)),
            ]  # and all of a vector together
            reach = max(law.half_width(1 - self.level) / math.sqrt(law.spread) for law in tested)
            low[chosen], high[chosen] = variance_ends(formula, noise, reach)
        return low, high

    # --- all rows together ---------------------------------------------------------------------------------

    def simulated(
        self, name: str, simulation: Simulation, read: Mapping[int, ReleasedTable],
        fetched: Sequence[FetchedTable],
    ) -> ReleasedTable:  # fmt: skip
        """Return the bars of a simulation as a table, without rows if they cannot be had."""
        if _may_share_draws([self.rows[number] for number in simulation.replicated]):
            return empty_simulation(name, simulation)
        draws = self._draws(simulation, read, fetched)
        if draws < _DRAWS and (found := self._quotients(simulation, read, fetched)) is not None:
            return _bars_table(name, simulation, found)
        if draws < _FEWEST_JOINT:
            self.patience.without_bars = True
            return empty_simulation(name, simulation)
        tables: list[ReleasedTable | FetchedTable] = [*read.values()]
        for number, coordinates in simulation.replicated.items():
            tables.append(_replicas(number, self.rows[number], coordinates, draws))
        tables.append(ReleasedTable("draws", (ReleasedColumn("draw", BIGINT, np.arange(draws)),)))
        tables += [fetched[number] for number in sorted(simulation.parts)]
        try:
            found = joint_bars(
                self.engine, simulation.sql, len(simulation.numbers), simulation.together, tables, draws,
                self.level, self.patience.left_for_bars,
            )  # fmt: skip
        except (EngineFailure, Refusal) as error:
            self._give_up(error)
            return empty_simulation(name, simulation)
        return _bars_table(name, simulation, found)

    def _draws(
        self, simulation: Simulation, read: Mapping[int, ReleasedTable], fetched: Sequence[FetchedTable]
    ) -> int:
        """Return how many draws of a simulation there is time for."""
        cells = sum(
            read[number].row_count * (1 + len(coordinates))
            for number, coordinates in simulation.replicated.items()
        )
        cells += sum(_size(fetched[number]) for number in simulation.parts)
        cells = max(1, cells * len(simulation.together))
        fitted = (self.rows[number].fitted.values() for number in simulation.replicated)
        most = [one.most_draws for told in itertools.chain.from_iterable(fitted) for one in told]
        return min(_draws_of(cells, _ENOUGH_CELLS, min(_FEWEST_JOINT, _MAX_CELLS // cells)), *most, _DRAWS)

    def _quotients(
        self, simulation: Simulation, read: Mapping[int, ReleasedTable], fetched: Sequence[FetchedTable]
    ) -> list[tuple[Any, ...]] | None:
        """Return what numbers each row, then the ends of each quotient, by its test; None: some are simulated."""
        if simulation.tested is None:
            return None
        tables: list[ReleasedTable | FetchedTable] = [*read.values()]
        tables += [fetched[number] for number in sorted(simulation.parts)]
        try:
            shown = self.engine.run(simulation.tested, tables, seconds=self.patience.left_for_bars).rows
        except (EngineFailure, Refusal) as error:
            self._give_up(error)
            return []
        if not shown:
            return []
        number, *columns = zip(*shown, strict=True)
        found: list[Sequence[Any]] = [number]
        for index, (one, together) in enumerate(zip(simulation.quotients, simulation.together, strict=True)):
            beta = (1 - self.level) / (len(number) if together else 1)
            asked = _Asked.of(one, self.rows, np.array(number), np.array(columns[2 * index + 1]))
            ends = None if asked is None else asked.ends(beta)
            if ends is None:
                return None
            around = _around(ends, columns[2 * index])
            found += [[None if math.isnan(one) else one for one in end.tolist()] for end in around]
        return list(zip(*found, strict=True))

    def _give_up(self, error: EngineFailure | Refusal) -> None:
        if error.sqlstate not in _TOO_MUCH:
            raise error
        self.patience.without_bars = True


@dataclass(frozen=True, slots=True)
class _Asked:
    """A quotient over rows: its two sums in each, shapes (rows,), and of how many rows its denominator is.

    `own`: what returns the noises that a row's numerator less w denominators has of the row's own numbers and of those
    of other releases; `others`: those of each other row.
    """

    numerator: Array
    denominator: Array
    rows: Array
    own: Callable[[Fraction], list[Part]]
    others: Callable[[Fraction], list[Part]]

    @classmethod
    def of(
        cls, quotient: Quotient, plans: Sequence[ReleasedRows], numbers: Array, first: Array
    ) -> _Asked | None:
        """Return a quotient over some rows of its release, each with the first row of its part; None: its noises are
        not independent, or not alike in all rows.
        """
        found = {one.plan.release: one for one in plans}
        rows, below = found[quotient.release], quotient.denominator
        beside = [(found[release], part) for release, part in below.beside]
        sums = [(rows, quotient.numerator), (rows, below.own), (rows, below.whole), *beside]
        if not all(_is_alike(one, place) for one, part in sums for place in part.coordinates):
            return None

        def value(part: Linear) -> Array:
            noisy = {place: np.asarray(rows.values_of(place), dtype=np.float64) for place in part.coordinates}
            return (
                NoisyCoordinates(noisy, {}).value(part)[numbers]
                if noisy
                else np.full(len(numbers), float(part.constant))
            )

        _, which, sizes = np.unique(first, return_inverse=True, return_counts=True)
        denominator: Array = value(below.own) + np.bincount(which, value(below.whole))[which]
        for other, part in beside:
            terms = ((float(weight) * float(other.values_of(place)[0])) for place, weight in part.terms)
            denominator = denominator + sum(terms, float(part.constant))

        def own(w: Fraction) -> list[Part]:
            mine = quotient.numerator.plus(below.own.plus(below.whole).times(-w))
            others = (_parts(other, part.times(w).terms) for other, part in beside)
            return [*_parts(rows, mine.terms), *itertools.chain.from_iterable(others)]

        alone = not below.whole.terms
        return cls(
            value(quotient.numerator), denominator, np.ones_like(which) if alone else sizes[which], own,
            lambda w: [] if alone else _parts(rows, below.whole.times(w).terms),
        )  # fmt: skip

    def ends(self, beta: Fraction) -> tuple[Array, Array] | None:
        """Return the ends of each row's bar; None: a denominator is little more than its noise, or there are parts of
        too many sizes."""
        sizes = np.unique(self.rows)
        if len(sizes) > _MOST_SIZES:
            return None
        low, high = np.empty(len(self.rows)), np.empty(len(self.rows))
        for size in sizes.tolist():
            rows = self.rows == size
            found = self._ends_in(rows, size, beta)
            if found is None:
                return None
            low[rows], high[rows] = found
        return low, high

    def _ends_in(self, rows: Array, size: int, beta: Fraction) -> tuple[Array, Array] | None:
        def half(w: Fraction) -> float:
            others = (
                [(law, weight, count * (size - 1)) for law, weight, count in self.others(w)]
                if size > 1
                else []
            )
            return near_half_width([*self.own(w), *others], beta)

        sign = np.where(self.denominator[rows] < 0, -1.0, 1.0)
        numerator, denominator = sign * self.numerator[rows], sign * self.denominator[rows]
        none, far = half(Fraction(0)), Fraction(2) ** 40
        slope = max(half(far), half(-far)) / float(far) * _SLOPE
        if not none or not slope or not (denominator > slope).all():
            return None
        top = float(np.max((np.abs(numerator) + none) / (denominator - slope))) * _SLOPE
        traced = _traced(half, _ladder(none / slope, top))
        if traced is None:
            return None
        places, halves = np.array(list(map(float, traced))), np.array(list(traced.values()))
        is_narrow = any(law.spread < 1 for law, _, _ in (*self.own(Fraction(1)), *self.others(Fraction(1))))
        halves *= _NARROW if is_narrow else 1.0
        ends = quotient_ends(numerator, denominator, places, halves)
        return None if ends[0].min() <= places[0] or ends[1].max() >= places[-1] else ends


def _around(ends: tuple[Array, Array], shown: Sequence[float | None]) -> tuple[Array, Array]:
    """Return ends with what is shown between them, which may be rounded; NULL where that is."""
    value = np.array(shown, dtype=np.float64)
    return np.minimum(ends[0], value), np.maximum(ends[1], value)


def _draws_of(rows: int, enough: int, fewest: int) -> int:
    """Return how many draws of so many rows are simulated: those that are cheap, or the fewest that do."""
    return min(_DRAWS, max(enough // max(1, rows), fewest))


def _ladder(bend: float, top: float) -> list[Fraction]:
    """Return an octave each from where a half-width begins to bend, from -top or below to top or above: of the same
    noises the same, but for where they end."""
    rungs = [Fraction(0), Fraction(bend) / 8]
    while rungs[-1] < top and len(rungs) < _MOST_RUNGS:
        rungs.append(2 * rungs[-1])
    return [*(-one for one in rungs[:0:-1]), *rungs]


def _traced(half: Callable[[Fraction], float], rungs: Sequence[Fraction]) -> dict[Fraction, float] | None:
    """Return a half-width at some places and between them, so many that each chord is near what is in its middle; None:
    they would be too many."""
    found = {place: half(place) for place in rungs}
    spans = list(itertools.pairwise(rungs))
    while spans:
        low, high = spans.pop()
        middle, chord = (low + high) / 2, (found[low] + found[high]) / 2
        found[middle] = half(middle)
        if len(found) > _MOST_PLACES:
            return None
        if not chord * (1 - _CHORD) <= found[middle] <= chord * (1 + _BELOW):
            spans += [(low, middle), (middle, high)]
    return dict(sorted(found.items()))


def _is_alike(rows: ReleasedRows, place: Coord) -> bool:
    """Say whether a coordinate has noise of one law in every row, added and independent of other rows' noise."""
    measure = rows.measurements[place.measure]
    is_told = rows.plan.counted == place.measure or place.measure in rows.fitted or measure.each
    return not is_told and rows.law_of(place).is_additive


def _parts(rows: ReleasedRows, terms: Sequence[tuple[Coord, Fraction]]) -> list[Part]:
    """Return the noises on a weighted sum of a row's coordinates, as `near_half_width` takes them."""
    return [(law, abs(weight), 1) for law, weight in _noises_on(rows, terms)]


def _may_share_draws(rows: Sequence[ReleasedRows]) -> bool:
    """Say whether two releases may be made of one draw: then their noises are not independent, as replicas are.

    Those of other periods are of other rows, and share none (soundness.md 1.41).
    """
    return any(
        (one.borrowed & other.borrowed or bool(one.borrowed) is not bool(other.borrowed))
        and _may_be_of_same_rows(one.plan.slices, other.plan.slices)
        for one, other in itertools.combinations(rows, 2)
    )


def _may_be_of_same_rows(one: Slices | None, other: Slices | None) -> bool:
    return one is None or other is None or one.meets(other)


# --- replicas ---------------------------------------------------------------------------------------------------


def _replicas(number: int, rows: ReleasedRows, coordinates: tuple[Coord, ...], draws: int) -> ReleasedTable:
    """Return what the truth may be, for each row of a release and each draw."""
    assert rows.groups is not None
    size = rows.groups.size
    columns = [
        ReleasedColumn("row", BIGINT, np.repeat(np.arange(size), draws)),
        ReleasedColumn("draw", BIGINT, np.tile(np.arange(draws), size)),
    ]
    apart = [
        one for one in coordinates if rows.plan.counted != one.measure and one.measure not in rows.fitted
    ]
    noises = _noises(rows, apart, size * draws)
    for place in coordinates:
        released = rows.values_of(place)
        if rows.plan.counted == place.measure:
            seed = seed_of(_identity(rows, place), rows.law_of(place), released)
            truth: Array = shown_replicas(_showing(rows), released, draws, seed).ravel()
        elif place.measure in rows.fitted:
            noise = rows.fitted[place.measure][place.place].noise(draws)
            truth = _minus(np.repeat(released, draws), np.rint(noise).astype(np.int64).ravel())
        else:
            truth = _minus(np.repeat(released, draws), noises[place])
        type_ = BIGINT if truth.dtype == np.int64 else DOUBLE
        columns.append(ReleasedColumn(place.column, type_, truth))
    return ReleasedTable(f"s{number}", tuple(columns))


def _minus(released: Array, noise: Array) -> Array:
    """Return released numbers less noise, both of one shape: int64 where 64 bits hold them, else doubles."""
    if released.dtype == np.int64 and noise.dtype == np.int64 and _is_small(released) and _is_small(noise):
        return released - noise
    return released.astype(np.float64) - noise.astype(np.float64)


def _is_small(values: Array) -> bool:
    return len(values) == 0 or (int(values.min()) > -_SMALL and int(values.max()) < _SMALL)


def _noises(rows: ReleasedRows, places: Sequence[Coord], count: int) -> dict[Coord, Array]:
    """Return simulated noise by coordinate, shape (count,): always the same for the same released numbers.

    What was drawn together is simulated together, in whole vectors; no vector is made of parts of others.
    """
    found: dict[Coord, Array] = {}
    together: dict[tuple[bytes, Law], list[tuple[Coord, int]]] = {}
    for place in places:
        law, vector = rows.law_of(place), _vector_of(rows, place)
        assert law.is_additive, "only what was added is simulated"
        if vector is not None:
            together.setdefault((vector.draw, vector.joint), []).append((place, vector.coordinate))
            continue
        seed = seed_of(_identity(rows, place), law, rows.values_of(place))
        found[place] = replicas_of(law, count, Seeded(seed))
    for (draw, joint), members in together.items():
        if isinstance(joint, Gaussians):  # each has a noise of its own
            for place, inner in members:
                seed = hashlib.sha256(draw + joint.text.encode() + b"%d" % inner).digest()
                found[place] = replicas_of(joint.at(inner), count, Seeded(seed))
            continue
        size = joint.size_of(max(inner for _, inner in members) + 1)
        drawn = joint.vectors(size, count, Seeded(hashlib.sha256(draw + joint.text.encode()).digest()))
        found |= {place: drawn[inner] for place, inner in members}
    return found


def _noises_on(rows: ReleasedRows, terms: Sequence[tuple[Coord, Fraction]]) -> list[tuple[Law, Fraction]]:
    """Return independent noises, each with its weight, whose sum is on a weighted sum of coordinates."""
    return _assembled(rows, terms, [rows.law_of(place) for place, _ in terms])


def _noises_on_each(
    rows: ReleasedRows, terms: Sequence[tuple[Coord, Fraction]], size: int
) -> list[list[tuple[Law, Fraction]]]:
    """Return `_noises_on` of each row; once, where it is the same on all."""
    if not any(part.each for part in rows.measurements.values()):
        return [_noises_on(rows, terms)]
    each = [(rows.measurements[place.measure].each, place) for place, _ in terms]
    return [
        _assembled(rows, terms, [laws[at.place](row) if laws else rows.law_of(at) for laws, at in each])
        for row in range(size)
    ]


def _assembled(
    rows: ReleasedRows, terms: Sequence[tuple[Coord, Fraction]], laws: Sequence[Law]
) -> list[tuple[Law, Fraction]]:
    """Return the noises on a weighted sum of coordinates, under the laws on them: of each draw by itself."""
    drawn = tuple(_vector_of(rows, place) for place, _ in terms)
    return Assembled(tuple(laws), drawn).noises({i: weight for i, (_, weight) in enumerate(terms)})


def _vector_of(rows: ReleasedRows, place: Coord) -> Vector | None:
    """Return where a coordinate stands in what was drawn together; None: it was drawn by itself."""
    vectors = rows.measurements[place.measure].vectors
    return vectors[place.place] if vectors else None


def _identity(rows: ReleasedRows, place: Coord) -> bytes:
    """Return what a coordinate measures."""
    return rows.plan.measure_keys(place.measure, rows.plan.identity, b"")[place.place]


def _showing(rows: ReleasedRows) -> Showing:
    """Return the rule by which a release's rows were shown, with the law that is on their counts."""
    plan = rows.plan
    assert plan.counted is not None
    assert plan.tau is not None
    assert plan.key_law is not None
    (law,) = rows.measurements[plan.counted].laws
    if not isinstance(
        law, (Truncated, Thresholded)
    ):  # drawn by an earlier version, with a threshold of the plan's
        return Showing(law, plan.tau, _LEAST)
    others = plan.tau - plan.key_law.bound - 1
    return Showing(law, others + law.bound, _LEAST, float(law.coin))


def _constant(plan: ReleasePlan, bar: Bar) -> float:
    index = plan.release.aggregate_at(bar.expr)
    assert index is not None
    return float(getattr(plan.formulas[index], "constant", 0))


def _with_known(ends: Ends, others: Ends) -> Ends:
    """Return ends, those of `others` where they are NULL."""
    ours, theirs = np.array(ends, dtype=np.float64), np.array(others, dtype=np.float64)
    low, high = np.where(np.isnan(ours), theirs, ours)
    return low, high


# --- tables -----------------------------------------------------------------------------------------------------


def _size(table: FetchedTable) -> int:
    """Return how many public rows meet the replicas."""
    return max(
        (len(array) for column in table.columns.values() for array in column.arrays.values()), default=0
    )


def _position(table: ReleasedTable, place: Coord) -> int:
    return [column.name for column in table.columns].index(place.column)


def _widths(noises: Sequence[tuple[Law, Fraction]], beta: Fraction, cut: Cut | None) -> tuple[float, float]:
    """Return how far a bar's ends are below the number and above it."""
    if cut is not None:
        return cut.widths(noises, beta)
    half = float(half_width_of(noises, beta))
    return half, half


def _with(table: ReleasedTable, index: int, **columns: Column) -> ReleasedTable:
    """Return a table with the columns of a bar, by what they are called before its number."""
    added = (ReleasedColumn(f"{name}{index}", DOUBLE, column) for name, column in columns.items())
    return ReleasedTable(table.name, (*table.columns, *added))


def _with_widths(table: ReleasedTable, index: int, widths: Array, *, is_cut: bool) -> ReleasedTable:
    """Return a table with how far below and above each number its ends stand, `widths`, shape (rows, 2)."""
    if not is_cut:
        return _with(table, index, half=widths[:, 0])
    return _with(table, index, below=widths[:, 0], above=widths[:, 1])


def _with_ends(table: ReleasedTable, index: int, ends: Ends) -> ReleasedTable:
    return _with(table, index, lo=ends[0], hi=ends[1])


def _bars_table(name: str, simulation: Simulation, found: Sequence[tuple[Any, ...]]) -> ReleasedTable:
    """Return rows of numbers and ends as a table with columns c0, c1, …"""
    types = [*simulation.numbers, *(DOUBLE for _ in simulation.together for _ in range(2))]
    columns = list(zip(*found, strict=True)) or [() for _ in types]
    return ReleasedTable(
        name,
        tuple(
            ReleasedColumn(f"c{i}", t, list(c)) for i, (t, c) in enumerate(zip(types, columns, strict=True))
        ),
    )


# --- what bounds leave out --------------------------------------------------------------------------------------


FindLeftOut = Callable[[str, int, str | None], LeftOut | None]
"""Returns what was measured of a table for its `max_rows`, or of a column's groups for a bound; None: nothing was."""


@dataclass(frozen=True, slots=True)
class Cut:
    """By how much a number may be below the truth, and above it: so many times the rows that a bound leaves out."""

    excess: Excess
    below: Fraction
    above: Fraction

    def widths(self, noises: Sequence[tuple[Law, Fraction]], beta: Fraction) -> tuple[float, float]:
        """Return how far the ends of a bar stand below a number and above it, so that each misses half of `beta`.

        `noises`: on the number. Those on what is left out are independent of them, and both are taken together.
        """
        return self._width(noises, beta, self.above), self._width(noises, beta, self.below)

    def _width(self, noises: Sequence[tuple[Law, Fraction]], beta: Fraction, by: Fraction) -> float:
        alone = half_width_of(noises, beta)
        if not by:
            return float(alone)
        both = [*noises, *((law, by * weight) for law, weight in self.excess.noises)]
        return float(max(alone, by * self.excess.rows + half_width_of(both, beta)))

    def most(self, beta: Fraction) -> tuple[float, float]:
        """Return by how much the number is above the truth at most, and below it, each but for half of `beta`."""
        most = max(Fraction(0), self.excess.rows + half_width_of(self.excess.noises, beta))
        return float(self.above * most), float(self.below * most)


def measured_of(plan: ReleasePlan, find: FindLeftOut) -> LeftOut | None:
    """Return what was measured of the table of which a release's rows are some, each once; None: nothing."""
    table = plan.release.rows.table_alone
    if (
        plan.bounding.numbered is not None
    ):  # numbers have holes: rows up to the bound may be numbered beyond it
        return None
    if table is None or table.unit is None or table.unit.max_rows is None or table.noted != table.name:
        return None
    return find(table.name, table.unit.max_rows, None)


def cut_of(plan: ReleasePlan, index: int, find: FindLeftOut) -> Cut | None:
    """Return by how much an aggregate of a release may be off for what is left out; None: that is not bounded."""
    call, formula = plan.release.aggregates[index], plan.formulas[index]
    if not isinstance(formula, Linear) or plan.is_empty:
        return None
    if index in plan.zeros:
        return Cut(Excess(Fraction(0), ()), Fraction(0), Fraction(0))
    numbers = {coordinate.measure for coordinate in formula.coordinates}
    if len(numbers) != 1:
        return None
    measurement = plan.measurements[numbers.pop()]
    if measurement.is_of_people:
        return _cut_of_people(plan, measurement, find)
    measured = measured_of(plan, find)
    is_of_rows = measurement.query is BoundingQuery.SCALED
    if measured is None or not measured.is_current or not is_of_rows or measurement.bounding.norms:
        return None  # what norms leave out is never measured
    excess = measured.excess(measurement.bounding.in_all)
    return None if excess is None else _cut_of_rows(plan, measurement, call, excess)


def _cut_of_people(plan: ReleasePlan, measurement: Measurement, find: FindLeftOut) -> Cut | None:
    """Return what a count of people loses: in groups beyond those that count of each, which are no more than rows."""
    if not measurement.bounding.ranked:  # a person is in no more groups than count
        return Cut(Excess(Fraction(0), ()), Fraction(0), Fraction(0))
    for measured in (groups_of(plan, find), measured_of(plan, find)):
        excess = (
            None
            if measured is None or not measured.is_current
            else measured.excess(measurement.bounding.groups)
        )
        if excess is not None:
            return Cut(excess, Fraction(1), Fraction(0))
    return None


def groups_of(plan: ReleasePlan, find: FindLeftOut) -> LeftOut | None:
    """Return in how many groups of a release people were measured to be; None: they were not, or it has other keys."""
    release, rows = plan.release, plan.release.rows
    table = rows.table_alone
    if table is None or table.unit is None or table.unit.max_groups is None or table.noted != table.name:
        return None
    assert rows.alone is not None
    start = sum(len(item.columns) for item in rows.items[: rows.alone])
    names = rows.items[rows.alone].source.shown
    column = release.keys[0].column if len(release.keys) == 1 else None
    place = -1 if column is None else column - start
    return find(table.name, table.unit.max_groups, names[place]) if 0 <= place < len(names) else None


def _cut_of_rows(
    plan: ReleasePlan, measurement: Measurement, call: AggregateCall, excess: Excess
) -> Cut | None:
    # of t > R rows a whole weight takes t - R and less than t/U, which is at most (t - R)·(R + 1)/U
    rows = 1 + Fraction(measurement.bounding.in_all + 1, measurement.denominator)
    if call.function == "count":
        return Cut(excess, rows, Fraction(0))
    if call.function != "sum":
        return None
    own = plan.release.rows
    lattice = lattice_of(call.args[0], environment_of(own.columns, own.predicate), squared=False)
    if lattice is None:
        return None
    low, high = (end * lattice.step for end in (lattice.low, lattice.high))
    return Cut(excess, max(high, Fraction(0)) * rows, max(-low, Fraction(0)) * rows)
