"""One table behind several groupings of the same rows: the estimate of least variance, and what is known of its error.

A table has a cell for each tuple of atoms of its axes (`Partition`). What was drawn of it are sums of its cells plus
noise, `y_i = A_i·x + Y_i` of variance `v_i`; the estimate is `x^ = x0 + N^+ Σ A_i'·(y_i - A_i·x0)/v_i` with
`N = Σ A_i'·A_i/v_i`. Of all unbiased linear estimates of a sum that the draws tell, that of `x^` has the least variance
(Gauss, Markov), whatever the laws of the noises are.

House rules (soundness.md 3.15):

1. Which sums are told, and with what error, is a function of shapes and variances alone.
2. What is exact leaves in whole numbers, so that doubles see differences of noise: `x0` is the estimate itself,
   rounded, and taken off again.
3. No BLAS, whose sums differ by machine: `np.take` and `np.add.reduceat` alone.
4. Bounded: `MOST_ATOMS` cells, `MOST_GROUPINGS` shapes, `MOST_WORK` both multiplied, `MOST_FORMS` that times
   kinds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..plan.privacy.axes import Partition
from ..records import dataclass

__all__ = [
    "CELL_PARTS",
    "MOST_ATOMS",
    "MOST_FORMS",
    "MOST_GROUPINGS",
    "MOST_WORK",
    "PARTS",
    "Design",
    "Forms",
    "Sums",
    "design_of",
    "forms_of",
]

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
_MOST_AXES = 10
"""Most axes of which the normal equations are taken apart: into twice as many pieces for each."""
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
_FEWEST_POWERS, _MOST_POWERS = 8, 100
_SMALL = 40_000
"""Cells times shapes of which there is time for all powers."""
_STEADY = 1e-7
"""A power that adds no more is the last."""
_SAFE = 2**62

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Sums:
    """Numbers that are sums of a table's cells: for each axis a partition, of whose groups they are the product, the
    last axis' the fastest; `rows`: some of these, each once, in this order; None: all."""

    partitions: tuple[Partition, ...]
    rows: tuple[int, ...] | None = None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(one.size for one in self.partitions)

    @cached_property
    def size(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape) if self.rows is None else len(self.rows)

    @cached_property
    def _steps(self) -> list[tuple[Array | None, Array, Array]]:
        """By axis the atoms by group, where each group's begin, and each atom's group; None for the first where all
        atoms are a group each, in their order, or all are one."""
        found: list[tuple[Array | None, Array, Array]] = []
        for one in self.partitions:
            groups = np.array(one.groups, dtype=np.int64)
            order = np.argsort(groups, kind="stable")[int((groups < 0).sum()) :]
            starts = np.searchsorted(groups[order], np.arange(one.size))
            is_plain = one.is_whole or np.array_equal(groups, np.arange(len(groups)))
            found.append((None if is_plain else order, starts, groups))
        return found

    @cached_property
    def _places(self) -> Array | None:
        return None if self.rows is None else np.array(self.rows, dtype=np.int64)

    def of(self, cells: Array) -> Array:
        """Return the numbers of tables, shape (tables, *sizes), as (tables, numbers); whole ones stay whole."""
        for axis, (one, (order, starts, _)) in enumerate(zip(self.partitions, self._steps, strict=True), 1):
            if one.is_whole:
                cells = cells.sum(axis=axis, keepdims=True)
            elif order is not None:
                cells = np.add.reduceat(np.take(cells, order, axis=axis), starts, axis=axis)
        flat = cells.reshape(len(cells), -1)
        return flat if self._places is None else flat[:, self._places]

    def spread(self, numbers: Array) -> Array:
        """Return tables in which each cell has the number that it is a part of, and 0 where it is in none: the
        transpose of `of`; an axis of which all is one group has length 1."""
        if self._places is not None:
            whole = np.zeros((len(numbers), math.prod(self.shape)))
            whole[:, self._places] = numbers
            numbers = whole
        cells = numbers.reshape(len(numbers), *self.shape)
        for axis, (order, _, groups) in enumerate(self._steps, 1):
            if order is None:
                continue
            if groups.min() < 0:
                padding = [(0, 0)] * cells.ndim
                padding[axis] = (0, 1)
                cells = np.pad(cells, padding)
            cells = np.take(cells, groups, axis=axis)
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
        blocks = (math.prod(max(one.sizes) for one in sums.partitions) for sums in self.drawn)
        return sum(precision * block for precision, block in zip(self._precisions, blocks, strict=True))

    def _normal(self, cells: Array) -> Array:
        found = np.zeros_like(cells)
        for sums, precision in zip(self.drawn, self._precisions, strict=True):
            found += sums.spread(precision * sums.of(cells))
        return found

    @cached_property
    def _pieces(self) -> dict[tuple[bool, ...], float] | None:
        """The eigenvalues of the normal equations where along each axis all draws are of every atom or of all together;
        None where they are not.

        Then the means over an axis and what is left of them are what `N` takes apart: of the tables that are constant
        along some axes, and without mean along the others (True), it makes a multiple.
        """
        if len(self.sizes) > _MOST_AXES or any(sums.rows is not None for sums in self.drawn):
            return None
        found = dict.fromkeys(itertools.product((False, True), repeat=len(self.sizes)), 0.0)
        for sums, precision in zip(self.drawn, self._precisions, strict=True):
            if not all(
                one.is_whole or one.groups == tuple(range(len(one.groups))) for one in sums.partitions
            ):
                return None
            times = math.prod(len(one.groups) for one in sums.partitions if one.is_whole)
            for piece in found:
                if not any(
                    is_left and one.is_whole for is_left, one in zip(piece, sums.partitions, strict=True)
                ):
                    found[piece] += precision * times
        return found

    @property
    def is_plain(self) -> bool:
        """Whether the normal equations are taken apart."""
        return self._pieces is not None

    def _taken_apart(
        self, pieces: dict[tuple[bool, ...], float], cells: Array, lost: Array, *before: bool
    ) -> Array:
        """Return N^+ times tables, of the pieces that begin so. The squares of those of which nothing was drawn are
        added to what is lost of each table."""
        axis = len(before) + 1
        if axis == cells.ndim:
            if pieces[before]:
                return cells / pieces[before]
            lost += _squares(cells) * (math.prod(self.sizes) // max(1, cells[0].size))
            return np.zeros_like(cells)
        mean = cells.mean(axis=axis, keepdims=True)
        constant = self._taken_apart(pieces, mean, lost, *before, False)
        return constant + self._taken_apart(pieces, cells - mean, lost, *before, True)

    def _solved(self, wanted: Array, error: float, floor: Array | float = 0.0) -> tuple[Array, Array]:
        """Return N^+ times tables, shape (tables, *sizes), and which were found: by pieces; or by conjugate
        gradients, which end at a part of what there was, or where the squares of what is left are no more than `floor`.
        """
        if self._pieces is not None:
            lost = np.zeros(len(wanted))
            solved = self._taken_apart(self._pieces, wanted, lost)
            return solved, lost <= np.maximum(_squares(wanted) * _NEARER**2, floor)
        found, rest = np.zeros_like(wanted), wanted.copy()
        ahead, left = rest.copy(), _squares(rest)
        stop, is_told = np.maximum(left * error**2, floor), np.ones(len(wanted), dtype=bool)
        each = (len(wanted), *(1 for _ in self.sizes))
        for _ in range(_MOST_STEPS):
            is_open = (left > stop) & is_told
            if not is_open.any():
                return found, is_told
            normal = self._normal(ahead)
            bent = (ahead * normal).reshape(len(wanted), -1).sum(axis=1)
            is_told &= ~is_open | (
                bent > _FLAT * self._most * _squares(ahead)
            )  # else nothing of it was drawn
            is_open &= is_told
            step = np.where(is_open, left / np.where(is_open, bent, 1), 0).reshape(each)
            found += step * ahead
            rest -= step * normal
            before, left = left, np.where(is_open, _squares(rest), left)
            ahead = rest + np.where(is_open, left / np.where(before > 0, before, 1), 0).reshape(each) * ahead
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
        """Return how far weighted sums of the estimate's cells are off, in variance; `weights`: of shape (sums,
        *sizes). None: some are not told."""
        found, is_found = self._solved(weights, _NEARER)
        if not is_found.all():
            return None
        return np.asarray((found * weights).reshape(len(weights), -1).sum(axis=1) * min(self.spreads))

    def largest(self, wanted: Sums) -> float | None:
        """Return the most variance of a weighted sum of some numbers whose weights' squares add up to 1, nearly: the
        largest eigenvalue of their covariances, by powers. None: it was not found.
        """
        weights, found = np.modf(np.arange(1, wanted.size + 1) * _GOLDEN)[0] + 0.5, 0.0
        powers = min(_MOST_POWERS, _MOST_POWERS * _SMALL // (math.prod(self.sizes) * len(self.drawn)))
        for _ in range(max(_FEWEST_POWERS, powers)):
            weights = weights / math.sqrt(float((weights**2).sum()))
            cells = np.broadcast_to(wanted.spread(weights[None]), (1, *self.sizes)).copy()
            solved, is_found = self._solved(cells, _NEARER)
            if not is_found[0]:
                return None
            weights, before = wanted.of(solved)[0], found
            found = math.sqrt(float((weights**2).sum()))
            if found <= before * (1 + _STEADY):
                break
        return found * min(self.spreads)

    def forms(self, wanted: Sums) -> Forms | None:
        """Return the weights of what was drawn in each of some sums, by kind; None: some are not told, or the kinds are
        too many."""
        kinds, first = self._kinds(wanted)
        if len(first) * math.prod(self.sizes) * len(self.drawn) > MOST_FORMS:
            return None
        weights: list[list[Array]] = [[] for _ in self.drawn]
        for start in range(0, len(first), _TOGETHER):
            chosen = first[start : start + _TOGETHER]
            ones = np.zeros((len(chosen), wanted.size))
            ones[np.arange(len(chosen)), chosen] = 1
            cells = np.broadcast_to(wanted.spread(ones), (len(chosen), *self.sizes)).copy()
            found, is_found = self._solved(cells, _ERROR)
            if not is_found.all() or np.any(
                _squares(self._normal(found) - cells) > _TOLD**2 * _squares(cells)
            ):
                return None
            for sums, precision, own in zip(self.drawn, self._precisions, weights, strict=True):
                own.append(precision * sums.of(found))
        return Forms(kinds, tuple(np.concatenate(own) for own in weights))

    def _kinds(self, wanted: Sums) -> tuple[tuple[int, ...], list[int]]:
        """Return of each number of some sums its kind, and of each kind a number: of one kind are those which a
        rearrangement of atoms that changes no partition carries into each other."""
        if any(one.rows is not None for one in self.drawn):
            return tuple(range(wanted.size)), list(range(wanted.size))
        codes = np.array([0])
        for axis, one in enumerate(wanted.partitions):
            colours = _colours(one, [sums.partitions[axis] for sums in self.drawn])
            codes = (codes[:, None] * (max(colours) + 1) + np.array(colours)).ravel()
        if wanted.rows is not None:
            codes = codes[np.array(wanted.rows, dtype=np.int64)]
        _, first, kinds = np.unique(codes, return_index=True, return_inverse=True)
        return tuple(kinds.ravel().tolist()), first.tolist()


def _squares(cells: Array) -> Array:
    return np.asarray((cells * cells).reshape(len(cells), -1).sum(axis=1))


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


# --- kinds of groups -------------------------------------------------------------------------------------------


def _colours(wanted: Partition, drawn: Sequence[Partition]) -> list[int]:
    """Return of each group of a partition its kind, from 0: two are alike where some rearrangement of atoms carries one
    into the other and leaves every partition what it is.

    Where any two groups are nested or apart they make a forest, and groups are alike whose subtrees are and which hang
    at what is alike; else each group is a kind.
    """
    partitions = list(dict.fromkeys((wanted, *drawn)))
    if not _is_forest(partitions):
        return list(range(wanted.size))
    atoms = [0] * len(wanted.groups)
    for _ in range(len(partitions) + 1):
        seen: list[list[object]] = [[atom] for atom in atoms]
        for one in partitions:
            held: list[list[int]] = [[] for _ in range(one.size)]
            for atom, group in enumerate(one.groups):
                if group >= 0:
                    held[group].append(atoms[atom])
            names = _named(tuple(sorted(own)) for own in held)
            for atom, group in enumerate(one.groups):
                seen[atom].append(names[group] if group >= 0 else -1)
        found = _named(map(tuple, seen))
        if max(found) == max(atoms):
            break
        atoms = found
    members: list[list[int]] = [[] for _ in range(wanted.size)]
    for atom, group in enumerate(wanted.groups):
        if group >= 0:
            members[group].append(atoms[atom])
    return _named(tuple(sorted(own)) for own in members)


def _named(values: Iterator[Any]) -> list[int]:
    """Return a number for each value, from 0, the same where values are."""
    known: dict[Any, int] = {}
    return [known.setdefault(value, len(known)) for value in values]


def _is_forest(partitions: Sequence[Partition]) -> bool:
    """Say whether any two groups are nested or have no atom in common."""
    for number, one in enumerate(partitions):
        for other in partitions[:number]:
            pairs = {(a, b) for a, b in zip(one.groups, other.groups, strict=True) if a >= 0 and b >= 0}
            both: dict[tuple[int, int], int] = dict.fromkeys(pairs, 0)
            for pair in zip(one.groups, other.groups, strict=True):
                if pair in both:
                    both[pair] += 1
            if any(count < min(one.sizes[a], other.sizes[b]) for (a, b), count in both.items()):
                return False
    return True
