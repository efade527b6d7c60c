"""One table behind several groupings of the same rows: the estimate of least variance, and what is known of its error.

A table has a cell for each tuple of atoms of its axes (`Partition`). What was drawn of it are sums of its cells plus
noise, `y_i = A_i·x + Y_i` of variance `v_i`; the estimate is `x^ = x0 + N^+ Σ A_i'·(y_i - A_i·x0)/v_i` with
`N = Σ A_i'·A_i/v_i`. Of all unbiased linear estimates of a sum that the draws tell, that of `x^` has the least variance
(Gauss, Markov), whatever the laws of the noises are.

What is told are whole numbers that agree, each a sum of one table's (soundness.md 3.15). The running totals of a table
over all its axes are rounded, and differences of neighbouring ones are its cells; so the running totals of the whole
numbers are those that were rounded. A group that is one run of places on k axes, and all of the others, is a signed
sum of at most 2^k of them: it is off by at most half of that, whatever the other numbers are. All of an axis is one,
so the sum of everything is off by a half.

House rules (soundness.md 3.15):

1. Which sums are told, and with what error, is a function of shapes and variances alone.
2. What is exact leaves in whole numbers, so that doubles see differences of noise: `x0` is the estimate itself,
   rounded, and taken off again.
3. No BLAS, whose sums differ by machine: `np.take` and `np.add.reduceat` alone; for running sums by square root Fourier
   transforms, and `np.einsum` of two.
4. Bounded: `MOST_ATOMS` cells, `MOST_GROUPINGS` shapes, `MOST_WORK` both multiplied, `MOST_FORMS` that times
   kinds.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from ..budget import Draw
from ..mechanisms import Coordinate, Gaussian, Law, SquareRoot, WeightedSum, best_weights
from ..plan.privacy.axes import Partition
from ..postprocess.simulate import Seeded, replicas_of
from ..records import dataclass
from . import square_root
from .released import Array, Groups, ReleasedMeasurement, integers

MOST_ATOMS: Final = 100_000
MOST_GROUPINGS: Final = 64
MOST_WORK: Final = 10**6
"""Most cells times shapes: a fit takes less than a second."""
MOST_FORMS: Final = 2 * 10**6
"""Most kinds of numbers, whose error is worked out each by itself, times cells times shapes: a second, and 16 MiB of
weights. Where partitions cut across each other every number is a kind, and there may be thousands."""
PARTS: Final = 2**20
"""Numbers are in parts of a coordinate unit, one of so many."""
CELL_PARTS: Final = 2**32
"""Cells of the estimate are in parts of a coordinate unit, one of so many: sums of 100,000 are off by 2^-16."""
_TOGETHER = 64
_MOST_STEPS = 400
_MOST_LOOKS = 10**8
"""Most cells times shapes times kinds of numbers times steps until their error is found: about a second. A calendar
takes some 30 steps."""
_MOST_WRITTEN = 800
"""Most cells whose normal equations are written out and undone beside sums by square root, each step of conjugate
gradients being dear there: a tenth of a second for a year of days, half of one for these by two more groups."""
_SWEPT = 32
_MOST_PIECES = 1024
"""Most pieces that a table is taken apart into."""
_ERROR = 1e-12
"""Of conjugate gradients: what is left of the whole."""
_NEARER = 1e-10
"""The same, of what is done again with what is left."""
_DOUBLES = 1e-14
"""What sums of doubles are off by, at most."""
_PASSES = 8
_TOLD = 1e-7
"""A sum is told by what was drawn where its weights give it to one part in so many."""
_FLAT = 1e-15
_GOLDEN = (math.sqrt(5) - 1) / 2
_MOST_CLIMBS = 100
_STEADY = 1e-6
"""A step that adds no more is the last."""
_SAFE = 2**62


@dataclass(frozen=True)
class _Along:
    """How what is along an axis makes up groups. `groups`: of each place there its group, -1: none."""

    groups: Array

    @cached_property
    def size(self) -> int:
        """How many groups there are."""
        return int(self.groups.max(initial=-1)) + 1

    @cached_property
    def counts(self) -> Array:
        """How many places each group has."""
        return np.bincount(self.groups[self.groups >= 0], minlength=self.size)

    @cached_property
    def is_whole(self) -> bool:
        return not self.groups.any()

    @cached_property
    def _is_each(self) -> bool:
        return np.array_equal(self.groups, np.arange(len(self.groups)))

    @cached_property
    def _order(self) -> Array | None:
        """The places by group; None: they stand so."""
        order = np.argsort(self.groups, kind="stable")[int((self.groups < 0).sum()) :]
        return None if np.array_equal(order, np.arange(len(self.groups))) else order

    @cached_property
    def _starts(self) -> Array:
        return np.cumsum(self.counts) - self.counts

    def of(self, cells: Array, axis: int) -> Array:
        """Return the groups' sums; whole numbers stay whole."""
        if self.is_whole:
            return np.asarray(cells.sum(axis=axis, keepdims=True))
        if self._is_each:
            return cells
        ordered = cells if self._order is None else np.take(cells, self._order, axis=axis)
        return np.asarray(np.add.reduceat(ordered, self._starts, axis=axis))

    def spread(self, numbers: Array, axis: int) -> Array:
        """Return at each place its group's number, 0 where it has none; of one group of all it stands alone."""
        if self.is_whole or self._is_each:
            return numbers
        if self.groups.min() < 0:
            padding = [(0, 0)] * numbers.ndim
            padding[axis] = (0, 1)
            numbers = np.pad(numbers, padding)
        return np.take(numbers, self.groups, axis=axis)


@dataclass(frozen=True)
class Sums:
    """Numbers that are sums of a table's cells: for each axis a partition, of whose groups they are the product, the
    last axis' the fastest; `rows`: some of these, each once, in this order; None: all. `by_root`: not these sums
    themselves but what running sums by square root make of them all (soundness.md 1.44)."""

    partitions: tuple[Partition, ...]
    rows: tuple[int, ...] | None = None
    by_root: bool = False

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(one.size for one in self.partitions)

    @cached_property
    def size(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape) if self.rows is None else len(self.rows)

    @cached_property
    def steps(self) -> list[_Along]:
        """How the atoms of each axis make up groups."""
        return [_Along(np.array(one.groups, dtype=np.int64)) for one in self.partitions]

    @cached_property
    def _places(self) -> Array | None:
        return None if self.rows is None else np.array(self.rows, dtype=np.int64)

    @property
    def kept(self) -> Array | float:
        """1 for each number of the product that is one of these, else 0; 1 of all."""
        if self._places is None:
            return 1.0
        found = np.zeros(math.prod(self.shape))
        found[self._places] = 1
        return found.reshape(self.shape)

    def of(self, cells: Array) -> Array:
        """Return the numbers of tables, shape (tables, *sizes), as (tables, numbers); whole ones stay whole."""
        for axis, step in enumerate(self.steps, 1):
            cells = step.of(cells, axis)
        flat = cells.reshape(len(cells), -1)
        flat = flat if self._places is None else flat[:, self._places]
        return square_root.summed(flat) if self.by_root else flat

    def spread(self, numbers: Array) -> Array:
        """Return tables in which each cell has the number that it is a part of, and 0 where it is in none: the
        transpose of `of`; an axis of which all is one group has length 1."""
        numbers = square_root.turned(numbers) if self.by_root else numbers
        if self._places is not None:
            whole = np.zeros((len(numbers), math.prod(self.shape)))
            whole[:, self._places] = numbers
            numbers = whole
        cells = numbers.reshape(len(numbers), *self.shape)
        for axis, step in enumerate(self.steps, 1):
            cells = step.spread(cells, axis)
        return cells

    def blocks(self) -> list[int]:
        """Return for each number how many running totals over all axes it is a signed sum of."""
        ends = [_ends(one) for one in self.partitions]
        counts = np.array([1])
        for one in ends:
            counts = (counts[:, None] * np.array(one)).ravel()
        return [int(one) for one in (counts if self._places is None else counts[self._places])]


def _ends(one: Partition) -> list[int]:
    """Return for each group how many running totals along its axis it is a signed sum of."""
    found = [0] * one.size
    last = -1
    for atom, group in enumerate(one.groups):
        if group >= 0 and group != last:
            found[group] += 1 if atom == 0 else 2
        last = group
    return [1] if one.is_whole else found


@dataclass(frozen=True)
class Forms:
    """What is known of the error of some sums. `kinds`: of each its kind; `weights`: by what was drawn, for a sum of
    each kind the weight of each number in it, shape (kinds, numbers)."""

    kinds: tuple[int, ...]
    weights: tuple[Array, ...]


@dataclass(frozen=True)
class Design:
    """What was drawn of a table, and with what variance each number of it."""

    sizes: tuple[int, ...]
    drawn: tuple[Sums, ...]
    spreads: tuple[float, ...]

    @cached_property
    def _precisions(self) -> list[float]:
        return [min(self.spreads) / one for one in self.spreads]

    @cached_property
    def _most(self) -> float:
        """No eigenvalue of the normal equations is larger."""
        blocks = (
            math.prod(max(one.sizes) for one in sums.partitions) * (square_root.MOST if sums.by_root else 1)
            for sums in self.drawn
        )
        return sum(precision * block for precision, block in zip(self._precisions, blocks, strict=True))

    @cached_property
    def _branches(self) -> _Branches | Array | float:
        """What was drawn, by its partitions of the axis of which there are fewest, then of the next, and so on."""
        counts = [len({sums.partitions[axis] for sums in self.drawn}) for axis in range(len(self.sizes))]
        axes = sorted(range(len(self.sizes)), key=lambda axis: counts[axis])
        return _branches_of(self._plain, axes)

    @cached_property
    def _plain(self) -> list[tuple[Sums, float]]:
        """What was drawn that are sums of cells themselves, with its precision."""
        drawn = zip(self.drawn, self._precisions, strict=True)
        return [(sums, precision) for sums, precision in drawn if not sums.by_root]

    @cached_property
    def _by_root(self) -> tuple[Sums, float] | None:
        """The finest running sums by square root, as sums themselves, with their precision; None: groups tell more."""
        drawn = [one for one in zip(self.drawn, self._precisions, strict=True) if one[0].by_root]
        if not drawn:
            return None
        own, precision = max(drawn, key=lambda one: (one[0].size, one[1]))
        cells = math.prod(self.sizes)
        groups = sum(p * cells / sums.size for sums, p in self._plain if sums.size >= own.size)
        return (replace(own, by_root=False), precision) if groups < precision * square_root.MIDDLE else None

    def _normal(self, cells: Array) -> Array:
        """Return what the normal equations make of tables: what several draws add up alike is added up once."""
        found = _through(self._branches, cells) if self._plain else np.zeros_like(cells)
        for sums, precision in zip(self.drawn, self._precisions, strict=True):
            if sums.by_root:
                found = found + precision * sums.spread(sums.of(cells))
        return found

    @cached_property
    def is_plain(self) -> bool:
        """Whether along each axis every draw is of all atoms by themselves, or of all together."""
        partitions = {one for sums in self.drawn for one in sums.partitions}
        is_all = all(sums.rows is None and not sums.by_root for sums in self.drawn)
        return is_all and all(
            one.is_whole or one.groups == tuple(range(len(one.groups))) for one in partitions
        )

    @cached_property
    def _levels(self) -> list[list[_Level]]:
        """By axis partitions that are each of blocks of the next, from all to each atom, as far as pieces are few."""
        found, pieces = list[list[_Level]](), 1
        for axis, atoms in enumerate(self.sizes):
            own = _levels_of([sums.partitions[axis] for sums in self.drawn], atoms)
            found.append(own if pieces * len(own) <= _MOST_PIECES else own[-1:])
            pieces *= len(found[-1])
        return found

    @cached_property
    def _times(self) -> Array:
        """What the normal equations multiply pieces by, in the mean over each, by the levels along each axis.

        A piece is constant along an axis on each block of a level, and has no mean on blocks of the level before. Where
        along each axis all draws are of every atom or of all together, its multiple is the same all over.
        """
        found = np.zeros([len(own) for own in self._levels])
        for sums, precision in self._plain:
            times = np.array(precision * sums.size / max(1, math.prod(sums.shape)))
            for one, own in zip(sums.partitions, self._levels, strict=True):
                told = [0.0, *(level.told(one) for level in own)]
                counts = [0, *(level.size for level in own)]
                times = np.multiply.outer(times, np.diff(told) / np.diff(counts))
            found += times
        return found

    def _begun(self, cells: Array) -> Array:
        """Return about N^+ times tables: where running sums by square root tell more of their groups than what else was
        drawn, theirs alone between the groups, and within each that of the others."""
        if self._by_root is None:
            return self._nearly(cells)
        sums, precision = self._by_root
        each = sums.of(np.ones((1, *self.sizes)))
        means = sums.of(cells) / each
        between = sums.spread(square_root.told(means) / (precision * each))
        if sums.size == math.prod(self.sizes):
            return np.broadcast_to(between, cells.shape).copy()
        within = self._nearly(cells - sums.spread(means))
        return within - sums.spread(sums.of(within) / each) + between

    def _nearly(self, cells: Array, *before: int) -> Array:
        """Return about N^+ times tables, of the pieces that begin so: each is divided by its multiple."""
        axis = len(before) + 1
        if axis == cells.ndim:
            times = self._times[before]
            return cells / times if times > _FLAT * self._most else np.zeros_like(cells)
        levels, sums = self._levels[axis - 1], [cells]
        for level in levels[-2::-1]:
            sums.append(level.step.of(sums[-1], axis))
        found = mean = np.zeros(1)
        for number, (level, own) in enumerate(zip(levels, reversed(sums), strict=True)):
            own = own / level.counts.reshape([-1 if i == axis else 1 for i in range(cells.ndim)])
            if number == 0:
                found, mean = self._nearly(own, *before, 0), own
                continue
            step = levels[number - 1].step
            left = self._nearly(own - step.spread(mean, axis), *before, number)
            found, mean = left + step.spread(found, axis), own
        return found

    def _solved(
        self, wanted: Array, error: float, floor: Array | float = 0.0, most: int = _MOST_STEPS
    ) -> tuple[Array, Array]:
        """Return N^+ times tables, shape (tables, *sizes), and which were found: by conjugate gradients that begin with
        `_begun`. They end at a part of what there was, where the squares of what is left are no more than `floor`, or
        after `most` steps.
        """
        found, rest = np.zeros_like(wanted), wanted.copy()
        near = self._begun(rest)
        ahead, left, slope = near, _squares(rest), _products(rest, near)
        stop, is_told = np.maximum(left * error**2, floor), np.ones(len(wanted), dtype=bool)
        each = (len(wanted), *(1 for _ in self.sizes))
        for _ in range(most):
            is_drawn = slope * self._most > _FLAT * left  # else nothing of what is left was
            is_told &= (left <= stop) | is_drawn
            is_open = (left > stop) & is_told
            if not is_open.any():
                break
            normal = self._normal(ahead)
            bent = _products(ahead, normal)
            is_told &= ~is_open | (bent > _FLAT * self._most * _squares(ahead))
            is_open &= is_told
            step = np.where(is_open, slope / np.where(is_open, bent, 1), 0).reshape(each)
            found += step * ahead
            rest -= step * normal
            near = self._begun(rest)
            before, slope = slope, _products(rest, near)
            left = np.where(is_open, _squares(rest), left)
            ahead = near + np.where(is_open, slope / np.where(before > 0, before, 1), 0).reshape(each) * ahead
        return found, is_told & (left <= stop)

    def table(self, numbers: Sequence[Sequence[int]]) -> list[int] | None:
        """Return the cells of the estimate, in `CELL_PARTS` of a unit, from what was drawn, in `PARTS`; None: it was
        not found."""
        whole = np.zeros(self.sizes, dtype=np.int64)
        for _ in range(_PASSES):
            right, absolute = np.zeros((1, *self.sizes)), np.zeros((1, *self.sizes))
            for sums, precision, own in zip(self.drawn, self._precisions, numbers, strict=True):
                known = sums.of(whole[None])[0].tolist()
                off = np.array(
                    [(one - PARTS * so_far) / PARTS for one, so_far in zip(own, known, strict=True)]
                )
                right += sums.spread(precision * off[None])
                absolute += sums.spread(precision * np.abs(off[None]))
            found, is_found = self._solved(right, _NEARER, _DOUBLES**2 * _squares(absolute))
            if not is_found[0]:
                return None
            rest = found[0]
            if (rest**2).sum() <= rest.size:  # what rounding left out: half a unit each
                parts = np.rint(rest.ravel() * CELL_PARTS).astype(np.int64).tolist()
                return [
                    CELL_PARTS * one + part for one, part in zip(whole.ravel().tolist(), parts, strict=True)
                ]
            whole = _plus(whole, np.rint(rest))
        return None

    def noise(self, noises: Sequence[Array]) -> Array | None:
        """Return the noises of the estimate's cells, shape (draws, *sizes), of those on what was drawn, each of shape
        (draws, numbers); None: they were not found."""
        parts = []
        for start in range(0, len(noises[0]), _TOGETHER):
            right = np.zeros((len(noises[0][start : start + _TOGETHER]), *self.sizes))
            for sums, precision, own in zip(self.drawn, self._precisions, noises, strict=True):
                right += sums.spread(precision * own[start : start + _TOGETHER])
            found, is_found = self._solved(right, _NEARER)
            if not is_found.all():
                return None
            parts.append(found)
        return np.concatenate(parts)

    def variances(self, weights: Array) -> Array | None:
        """Return how far weighted sums of the estimate's cells are off, in variance, by what was drawn that part of it
        which comes of its noise, shape (drawn, sums); `weights`: of shape (sums, *sizes). None: some are not told."""
        found, is_found = self._solved(weights, _NEARER)
        if not is_found.all():
            return None
        parts = (
            precision * _squares(sums.of(found))
            for sums, precision in zip(self.drawn, self._precisions, strict=True)
        )
        return np.stack(list(parts)) * min(self.spreads)

    def largest(self, wanted: Sums) -> float | None:
        """Return the most variance of a weighted sum of some numbers whose weights' squares add up to 1, nearly: the
        largest eigenvalue of their covariances. None: it was not found.

        That is the most of `|A·x|²/(x·N·x)`, with `A` what makes the numbers of cells. It is climbed by conjugate
        gradients that begin with `_begun`, each step to the highest point of a plane.
        """
        weights = np.modf(np.arange(1, wanted.size + 1) * _GOLDEN)[0] + 0.5
        cells = self._begun(np.broadcast_to(wanted.spread(weights[None]), (1, *self.sizes)).copy())
        normal, numbers = self._normal(cells), wanted.of(cells)
        ahead, before, slope, found = np.zeros_like(cells), np.zeros_like(cells), 1.0, 0.0
        for _ in range(min(_MOST_CLIMBS, _MOST_LOOKS // (math.prod(self.sizes) * len(self.drawn)))):
            bent = float(_products(cells, normal)[0])
            if bent <= 0:
                return None
            last, found = found, float(_squares(numbers)[0]) / bent
            if found <= last * (1 + _STEADY):
                break
            uphill = wanted.spread(numbers) - found * normal
            near = self._begun(uphill)
            turn = max(0.0, float(_products(near, uphill - before)[0]) / slope)
            before, slope, ahead = uphill, float(_products(near, uphill)[0]), near + turn * ahead
            if slope <= 0:
                break
            bends, sums = self._normal(ahead), wanted.of(ahead)
            far = _highest(
                [float(_products(a, b)[0]) for a, b in ((numbers, numbers), (numbers, sums), (sums, sums))],
                [float(_products(a, b)[0]) for a, b in ((cells, normal), (cells, bends), (ahead, bends))],
            )
            cells, normal, numbers = cells + far * ahead, normal + far * bends, numbers + far * sums
        return found * min(self.spreads)

    def _is_off(self, found: Array, cells: Array, error: float) -> bool:
        """Say whether the normal equations make other tables than some of what was found, by more than a part."""
        return bool(np.any(_squares(self._normal(found) - cells) > error**2 * _squares(cells)))

    @cached_property
    def _undone(self) -> Array | None:
        """Return N^-1 written out, shape (cells, *sizes); None: there is none, or it is too large."""
        cells = math.prod(self.sizes)
        if cells > _MOST_WRITTEN or not any(sums.by_root for sums in self.drawn):
            return None
        normal = self._normal(np.eye(cells).reshape(-1, *self.sizes)).reshape(cells, cells)
        found = _inverse(normal, _FLAT * self._most)
        return None if found is None else found.reshape(-1, *self.sizes)

    def work(self, wanted: Sums) -> int:
        """Return how many kinds some sums are of, times cells times shapes; twice that beside sums by square root."""
        times = 2 if any(sums.by_root for sums in self.drawn) else 1
        return times * len(kinds_of(self.drawn, wanted)[1]) * math.prod(self.sizes) * len(self.drawn)

    def forms(self, wanted: Sums) -> Forms | None:
        """Return the weights of what was drawn in each of some sums, by kind; None: some are not told, or the kinds are
        too many."""
        (kinds, first), work = kinds_of(self.drawn, wanted), self.work(wanted)
        if work > MOST_FORMS:
            return None
        most = min(_MOST_STEPS, _MOST_LOOKS // work)
        weights: list[list[Array]] = [[] for _ in self.drawn]
        undone = self._undone if len(first) > _TOGETHER else None
        near = None if undone is None else wanted.of(undone).T.reshape(-1, *self.sizes)
        for start in range(0, len(first), _TOGETHER):
            chosen = first[start : start + _TOGETHER]
            ones = np.zeros((len(chosen), wanted.size))
            ones[np.arange(len(chosen)), list(chosen)] = 1
            cells = np.broadcast_to(wanted.spread(ones), (len(chosen), *self.sizes)).copy()
            found = None if near is None else near[list(chosen)]
            if found is None or self._is_off(found, cells, _NEARER):
                found, is_found = self._solved(cells, _ERROR, most=most)
                if not is_found.all() or self._is_off(found, cells, _TOLD):
                    return None
            for sums, precision, own in zip(self.drawn, self._precisions, weights, strict=True):
                own.append(precision * sums.of(found))
        return Forms(kinds, tuple(np.concatenate(own) for own in weights))


def _inverse(normal: Array, least: float) -> Array | None:
    """Return the inverse of a symmetric matrix, each of whose pivots is larger than `least`; None: one is not. Blocks
    of rows are swept one after the other, of each by itself first."""
    if len(normal) == 1:
        return 1 / normal if normal[0, 0] > least else None
    found, size = normal.copy(), _SWEPT if len(normal) > _SWEPT else 1
    for start in range(0, len(found), size):
        own = slice(start, start + size)
        pivot, rows = _inverse(found[own, own], least), found[own].copy()
        if pivot is None:
            return None
        shares = np.einsum("ij,jk->ik", pivot, rows)
        found -= np.einsum("ki,kj->ij", rows, shares)
        found[own], found[:, own], found[own, own] = shares, shares.T, -pivot
    return -found


def _highest(above: Sequence[float], below: Sequence[float]) -> float:
    """Return where on a line the ratio of two quadratic forms is highest: of the form at its start, along it, and of
    the two together, `a + 2·b·t + c·t²`."""
    (a, b, c), (d, e, f) = above, below
    square, linear, constant = c * e - b * f, c * d - a * f, b * d - a * e
    root = math.sqrt(max(0.0, linear**2 - 4 * square * constant))
    ends = [(2 * constant, -linear + root), (2 * constant, -linear - root)]
    places = [t for t in (one / other for one, other in ends if other) if d + 2 * e * t + f * t * t > 0]
    return max(places, key=lambda t: (a + 2 * b * t + c * t * t) / (d + 2 * e * t + f * t * t), default=0.0)


@dataclass(frozen=True)
class _Branches:
    """Groupings of an axis, each with those of further axes behind it, or the precision of each number."""

    axis: int
    own: tuple[tuple[_Along, _Branches | Array | float], ...]


def _branches_of(drawn: Sequence[tuple[Sums, float]], axes: Sequence[int]) -> _Branches | Array | float:
    if not axes:
        return sum((precision * sums.kept for sums, precision in drawn), 0.0)
    apart: dict[Partition, list[tuple[Sums, float]]] = {}
    for one in drawn:
        apart.setdefault(one[0].partitions[axes[0]], []).append(one)
    own = ((some[0][0].steps[axes[0]], _branches_of(some, axes[1:])) for some in apart.values())
    return _Branches(axes[0] + 1, tuple(own))


def _through(branches: _Branches | Array | float, cells: Array) -> Array:
    if not isinstance(branches, _Branches):
        return cells * branches
    found = np.zeros_like(cells)
    for step, behind in branches.own:
        found += step.spread(_through(behind, step.of(cells, branches.axis)), branches.axis)
    return found


def _squares(cells: Array) -> Array:
    return _products(cells, cells)


def _products(some: Array, others: Array) -> Array:
    return np.asarray((some * others).reshape(len(some), -1).sum(axis=1))


def _plus(whole: Array, more: Array) -> Array:
    """Return whole numbers and more of them, in doubles: int64 where their sums are, else Python ints."""
    if whole.dtype != object and (np.abs(whole).max() + np.abs(more).max()) * whole.size < _SAFE:
        return np.asarray(whole + more.astype(np.int64))
    steps = np.array([int(one) for one in more.ravel().tolist()], dtype=object)
    return np.asarray(whole.astype(object) + steps.reshape(whole.shape))


@lru_cache(maxsize=16)
def design_of(sizes: tuple[int, ...], drawn: tuple[Sums, ...], spreads: tuple[float, ...]) -> Design | None:
    """Return what was drawn of a table with so many atoms on each axis; None: it is too much to be worked out."""
    atoms = math.prod(sizes)
    if not drawn or atoms > MOST_ATOMS or len(drawn) > MOST_GROUPINGS or atoms * len(drawn) > MOST_WORK:
        return None
    return Design(sizes, drawn, spreads)


@lru_cache(maxsize=16)
def forms_of(design: Design, wanted: Sums) -> Forms | None:
    """Return what is known of the error of some sums (`Design.forms`)."""
    return design.forms(wanted)


# --- levels -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Level:
    """Blocks of an axis' atoms. `step`: which blocks of the next level each is of; of the last, of atoms."""

    blocks: _Along
    step: _Along

    @property
    def size(self) -> int:
        return self.blocks.size

    @property
    def counts(self) -> Array:
        """How many atoms each block has."""
        return self.blocks.counts

    def told(self, one: Partition) -> float:
        """Return the trace of a partition's sums of squares over what is constant on each block."""
        groups = np.array(one.groups, dtype=np.int64)
        kept = groups >= 0
        codes, counts = np.unique(self.blocks.groups[kept] * one.size + groups[kept], return_counts=True)
        return float((counts**2 / self.counts[codes // max(1, one.size)]).sum())


def _levels_of(partitions: Sequence[Partition], atoms: int) -> list[_Level]:
    """Return the longest chain of partitions of an axis, each of blocks of the next, from all of it to each atom."""
    drawn = (np.unique(np.array(one.groups), return_inverse=True)[1].ravel() for one in partitions)
    between = {own.tobytes(): own for own in drawn if 0 < own.max() < atoms - 1}
    chains: list[list[Array]] = [[]]
    for own in sorted(between.values(), key=lambda own: (own.max(), own.tolist())):
        before = (chain for chain in chains if not chain or _is_of_blocks(chain[-1], own))
        chains.append([*max(before, key=len), own])
    whole, each = np.zeros(atoms, dtype=np.int64), np.arange(atoms)
    blocks = [*([whole] if atoms > 1 else []), *max(chains, key=len), each]
    steps = [
        coarse[np.unique(fine, return_index=True)[1]] for coarse, fine in itertools.pairwise([*blocks, each])
    ]
    return [_Level(_Along(own), _Along(step)) for own, step in zip(blocks, steps, strict=True)]


def _is_of_blocks(coarse: Array, fine: Array) -> bool:
    """Say whether each block of one partition lies in a block of another that has fewer."""
    first = np.unique(fine, return_index=True)[1]
    return bool(coarse.max() < fine.max()) and np.array_equal(coarse[first][fine], coarse)


# --- kinds of groups --------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def kinds_of(drawn: tuple[Sums, ...], wanted: Sums) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return of each number of some sums its kind, and of each kind a number: of one kind are those which a
    rearrangement of atoms that changes no partition of what was drawn carries into each other."""
    if any(one.rows is not None or one.by_root for one in drawn):
        return tuple(range(wanted.size)), tuple(range(wanted.size))
    codes = np.array([0])
    for axis, one in enumerate(wanted.partitions):
        colours = _colours(one, [sums.partitions[axis] for sums in drawn])
        codes = (codes[:, None] * (colours.max() + 1) + colours).ravel()
    if wanted.rows is not None:
        codes = codes[np.array(wanted.rows, dtype=np.int64)]
    _, first, kinds = np.unique(codes, return_index=True, return_inverse=True)
    return tuple(kinds.ravel().tolist()), tuple(first.tolist())


def _colours(wanted: Partition, drawn: Sequence[Partition]) -> Array:
    """Return of each group of a partition its kind, from 0: two are alike where some rearrangement of atoms carries one
    into the other and leaves every partition what it is.

    Where any two groups are nested or apart they make a forest, and groups are alike whose subtrees are and which hang
    at what is alike; else each group is a kind.
    """
    each = [np.array(one.groups, dtype=np.int64) for one in dict.fromkeys((wanted, *drawn))]
    if not _is_forest(each):
        return np.arange(wanted.size)
    atoms = np.zeros(len(wanted.groups), dtype=np.int64)
    for _ in range(len(each) + 1):
        found = atoms
        for own in each:
            found = _paired(found, np.append(_held(own, atoms), -1)[own])
        if found.max() == atoms.max():
            break
        atoms = found
    return _held(each[0], atoms)


def _paired(some: Array, others: Array) -> Array:
    """Return a number for each pair, from 0, the same where pairs are; `some` from 0, `others` from -1."""
    codes = some * (others.max(initial=-1) + 2) + others + 1
    return np.unique(codes, return_inverse=True)[1].ravel()


def _held(groups: Array, atoms: Array) -> Array:
    """Return a number for each group, the same where groups have as many atoms of each kind."""
    kept = groups >= 0
    codes, counts = np.unique(groups[kept] * (atoms.max() + 1) + atoms[kept], return_counts=True)
    group, parts = codes // (atoms.max() + 1), _paired(codes % (atoms.max() + 1), counts)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    found, mixed = parts[starts], dict[bytes, int]()
    ends = np.append(starts[1:], len(group))
    for place in np.flatnonzero(ends - starts > 1).tolist():
        parts_there = parts[starts[place] : ends[place]].tobytes()
        found[place] = len(parts) + mixed.setdefault(parts_there, len(mixed))
    return np.asarray(found)


def _is_forest(partitions: Sequence[Array]) -> bool:
    """Say whether any two groups are nested or have no atom in common."""
    for one, other in itertools.combinations(partitions, 2):
        both = (one >= 0) & (other >= 0)
        codes, counts = np.unique(one[both] * (other.max() + 1) + other[both], return_counts=True)
        sizes = (
            np.bincount(own[own >= 0])[group]
            for own, group in ((one, codes // (other.max() + 1)), (other, codes % (other.max() + 1)))
        )
        if np.any(counts < np.minimum(*sizes)):
            return False
    return True


# --- what is told -----------------------------------------------------------------------------------------------


DrawId = tuple[bytes, int]
"""A draw, and a coordinate of it."""

FEW = 4
"""Numbers are rounded together where that moves none by more than so small a part of its variance."""
_MOST_REPLICAS = {True: 2 * 10**7, False: 10**6}
"""Most cells times shapes times replicas, of what is taken apart, and of what conjugate gradients find: a second, and
what is drawn for it in the second case."""


def id_of(draw: Draw) -> bytes:
    """Return a digest of what a draw measures, under which noise, and what came out."""
    return hashlib.sha256(b"".join(draw.measures) + draw.law.text.encode() + draw.payload).digest()


def is_read(law: Law) -> bool:
    """Say whether the estimate reads what is drawn under a law: numbers with noise of their own, or running sums."""
    return is_observed(law) or (isinstance(law, SquareRoot) and law.drawn.spread >= 1)


def is_numbers(law: Law) -> bool:
    """Say whether what is drawn under a law is a number plus noise of its own."""
    return law.is_additive and not law.is_joint and not isinstance(law, Coordinate)


def is_observed(law: Law) -> bool:
    """Say whether what is drawn under a law is a number plus noise of its own, of more than a step of the lattice."""
    return is_numbers(law) and law.spread >= 1


@dataclass(frozen=True)
class Observed:
    """What was drawn of a coordinate over one shape. `numbers`: the mean of all draws with the least variance, in
    `PARTS` of a step."""

    laws: dict[DrawId, Law]
    weights: dict[DrawId, Fraction]
    numbers: list[int]

    @property
    def spread(self) -> Fraction:
        return sum((self.weights[one] ** 2 * law.spread for one, law in self.laws.items()), Fraction(0))

    @classmethod
    def of(cls, draws: Mapping[DrawId, tuple[Array, Law]]) -> Observed:
        """Return what some draws say together; without numbers, what their laws say."""
        ordered = sorted(draws, key=lambda one: (draws[one][1].spread, one))
        laws = {one: draws[one][1] for one in ordered}
        weights = dict(zip(ordered, best_weights(list(laws.values())), strict=True))
        parts = [(int(weights[one] * PARTS), draws[one][0].tolist()) for one in ordered]
        numbers = [sum(weight * values[i] for weight, values in parts) for i in range(len(parts[0][1]))]
        return cls(laws, weights, numbers)


@dataclass(frozen=True)
class Told:
    """Some sums of one coordinate's table as all that was drawn of it tells them. `unit`: what the table's running
    totals are rounded to, in lattice steps; None: each number is rounded by itself."""

    observed: tuple[Observed, ...]
    design: Design
    wanted: Sums
    forms: Forms
    unit: int | None

    def by_itself(self) -> Told:
        """Return it with each number rounded by itself."""
        return replace(self, unit=None)

    @cached_property
    def rounding(self) -> list[float]:
        """By group the variance that rounding in a table adds to that of one rounding by itself."""
        if self.unit is None:
            return [0.0] * self.wanted.size
        return [(blocks - 1) * self.unit**2 / 12 for blocks in self.wanted.blocks()]

    @cached_property
    def variances(self) -> Array:
        """By group the variance before it is rounded."""
        found = np.zeros(len(self.forms.weights[0]))
        for one, weights in zip(self.observed, self.forms.weights, strict=True):
            found += float(one.spread) * (weights**2).sum(axis=1)
        return found[list(self.forms.kinds)]

    @property
    def widest(self) -> int:
        """The group with the most variance, by number."""
        return int(np.argmax(self.variances + np.array(self.rounding)))

    def law(self, group: int) -> WeightedSum:
        """Return the law of the noise on a group. What a table's rounding adds is taken for normal noise of its
        variance, as sums of roundings are (a test holds the bars).
        """
        kind, variance = self.forms.kinds[group], self.rounding[group]
        if (kind, variance) not in self._laws:
            noises = list(self._noises(kind))
            if variance:
                noises.append((Gaussian.of_at_least(Fraction(math.sqrt(variance))), 1.0))
            self._laws[kind, variance] = WeightedSum.of(noises, Fraction(self.unit or 1, 2))
        return self._laws[kind, variance]

    @cached_property
    def _laws(self) -> dict[tuple[int, float], WeightedSum]:
        """Those that were asked for."""
        return {}

    def _noises(self, kind: int) -> Iterator[tuple[Law, Array | float]]:
        for one, weights in zip(self.observed, self.forms.weights, strict=True):
            yield from ((law, weights[kind] * float(one.weights[id_])) for id_, law in one.laws.items())

    def values(self, table: Sequence[int], plain: Array | None = None) -> list[int]:
        """Return the whole numbers, of the cells that `Design.table` gives. `plain`: as they are by themselves: a tie
        goes towards it."""
        if self.unit is not None:
            return self._summed(rounded(self.design.sizes, table, self.unit, CELL_PARTS))
        parts = self._summed(table)
        own = [part // CELL_PARTS for part in parts] if plain is None else plain.tolist()
        return [one + _nearest(part - CELL_PARTS * one) for part, one in zip(parts, own, strict=True)]

    def _summed(self, cells: Sequence[int]) -> list[int]:
        table = np.array(cells, dtype=object).reshape((1, *self.design.sizes))
        return [int(one) for one in self.wanted.of(table)[0].tolist()]

    @property
    def most_draws(self) -> int:
        """How many replicas there are time for."""
        return _MOST_REPLICAS[self.design.is_plain] // (math.prod(self.design.sizes) * len(self.observed))

    def noise(self, draws: int) -> Array:
        """Return replicas of the noise, shape (groups, draws); other sums of the table have those of the same draws."""
        noises = []
        for one in self.observed:
            shape = (draws, len(one.numbers))
            drawn = (
                float(one.weights[id_])
                * replicas_of(law, math.prod(shape), Seeded(_seed(id_, law))).reshape(shape)
                for id_, law in one.laws.items()
            )
            noises.append(sum(drawn, np.zeros(shape)))
        table = self.design.noise(noises)
        if table is None:
            raise AssertionError("what was told by these shapes once is told again")
        if self.unit is not None:
            return self.wanted.of(rounded_noise(table, self.unit)).T
        return np.asarray(np.rint(self.wanted.of(table)).T)


def tell(
    drawn: Mapping[Sums, Mapping[DrawId, tuple[Array, Law]]],
    sizes: tuple[int, ...],
    wanted: Sequence[Sums],
    unit: int,
) -> list[Told] | None:
    """Return some sums of one coordinate's table as all that was drawn of it tells them; None: some are not told, or it
    is too much to be worked out. `drawn`: over each shape what was drawn, each draw once; `sizes`: of the table's axes.
    """
    observed = tuple(map(Observed.of, drawn.values()))
    design = design_of(sizes, tuple(drawn), tuple(float(one.spread) for one in observed))
    forms = [None if design is None else forms_of(design, one) for one in wanted]
    told = [
        Told(observed, design, one, weighed, unit)
        for one, weighed in zip(wanted, forms, strict=True)
        if design is not None and weighed is not None
    ]
    return told if len(told) == len(wanted) else None


def told_by_root(
    each: Sequence[Mapping[DrawId, tuple[Array, SquareRoot]]], listed: int, believed: int
) -> tuple[ReleasedMeasurement, tuple[Told, ...]]:
    """Return what running sums by square root say by themselves of the first places of their axis: of each coordinate
    the estimate from its sums, which undoes them.

    `each`: what was drawn of it, sums of all places; `believed`: how many places have rows, as the owner says.
    """
    drawn = Sums((Partition(tuple(range(believed))),), by_root=True)
    wanted = Sums((Partition((*range(listed), *(-1 for _ in range(believed - listed)))),))
    told, values = list[Told](), list[Array]()
    for own in each:
        sums = {id_: (column[:believed], law.drawn) for id_, (column, law) in own.items()}
        found = tell({drawn: sums}, (believed,), (wanted,), 1)
        assert found is not None, "sums of all places tell each"
        (one,) = found
        cells = one.design.table([seen.numbers for seen in one.observed])
        assert cells is not None, "sums of all places tell each"
        told.append(one.by_itself() if np.any(FEW * np.array(one.rounding) > one.variances) else one)
        values.append(integers(told[-1].values(cells)))
    return measurement_of(told, values), tuple(told)


def measurement_of(
    told: Sequence[Told], values: Sequence[Array], groups: Groups | None = None
) -> ReleasedMeasurement:
    """Return a measurement of which each coordinate is told so."""
    each = tuple(one.law for one in told)
    widest = tuple(one.law(one.widest) for one in told)
    return ReleasedMeasurement(tuple(values), groups, widest, (None,) * len(widest), (), each)


def _nearest(parts: int) -> int:
    """Return the nearest whole number of units, a half towards 0."""
    units = -((CELL_PARTS // 2 - abs(parts)) // CELL_PARTS)
    return units if parts > 0 else -units


def _seed(id_: DrawId, law: Law) -> bytes:
    return hashlib.sha256(id_[0] + id_[1].to_bytes(4, "big") + law.text.encode()).digest()


def rounded(sizes: Sequence[int], cells: Sequence[int], unit: int, parts: int) -> list[int]:
    """Return cells in whole multiples of a unit, shape (cells,): in whole numbers alone, so on every machine the same.

    `sizes`: places of each axis; `cells`: in parts of one, so many each. A half goes up.
    """
    table = np.array(list(cells), dtype=object).reshape((1, *sizes))
    found = _by_totals(table, lambda totals: (2 * totals + unit * parts) // (2 * unit * parts) * unit)
    return [int(one) for one in found.ravel().tolist()]


def rounded_noise(noise: Array, unit: int) -> Array:
    """Return noises of all cells, shape (draws, *sizes), as rounding leaves them."""
    return _by_totals(noise, lambda totals: np.rint(totals / unit) * unit)


def _by_totals(tables: Array, rounding: Callable[[Array], Array]) -> Array:
    """Return tables, shape (tables, *sizes), whose running totals over all axes are these rounded."""
    for axis in range(1, tables.ndim):
        tables = np.cumsum(tables, axis=axis)
    tables = rounding(tables)
    for axis in range(1, tables.ndim):
        tables = np.diff(tables, axis=axis, prepend=0)
    return tables
