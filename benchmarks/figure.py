"""A figure: what was measured, what it may be at most (or at least), and where the time goes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Compared", "Figure", "Size", "Times", "compare", "milliseconds", "of_each"]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured, and the folder for its data. `rows` of the big tables, `repeats` of each statement."""

    folder: Path
    rows: int
    units: int
    groups: int
    draws: int
    repeats: int

    @classmethod
    def full(cls, folder: Path) -> Size:
        """Return the sizes that the limits speak of."""
        return cls(folder, rows=10_000_000, units=1_000_000, groups=1_000_000, draws=2_000_000, repeats=7)

    @classmethod
    def quick(cls, folder: Path) -> Size:
        """Return sizes that show that everything runs; the figures mean nothing."""
        return cls(folder, rows=100_000, units=10_000, groups=10_000, draws=100_000, repeats=2)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `limit` is the most that is allowed, the least when `is_rate`; None: for information."""

    name: str
    measured: float
    limit: float | None
    unit: str
    where: str = ""
    is_rate: bool = False

    @property
    def is_missed(self) -> bool:
        """Whether the figure is beyond its limit."""
        if self.limit is None:
            return False
        return self.measured < self.limit if self.is_rate else self.measured > self.limit

    def __str__(self) -> str:
        verdict = "" if self.limit is None else f" ({self.limit:g}) {'MISSED' if self.is_missed else 'ok'}"
        return (
            f"{self.name}: {self.measured:.3g} {self.unit}{verdict}{', ' + self.where if self.where else ''}"
        )


def milliseconds(action: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def of_each(actions: Sequence[Callable[[], float]], repeats: int) -> list[float]:
    """Return the median over the actions' best-of-`repeats`, then the best of each; an action returns its time."""
    best = [min(action() for _ in range(repeats)) for action in actions]
    return [statistics.median(best), *best]


@dataclass(frozen=True, slots=True)
class Times:
    """Wall and processor milliseconds of one call; the latter sums the threads and hardly sees the neighbours."""

    wall: float
    processor: float

    @classmethod
    def of(cls, action: Callable[[], object]) -> Times:
        """Return the times of one call."""
        start = time.process_time()
        wall = milliseconds(action)
        return cls(wall, (time.process_time() - start) * 1000)


@dataclass(frozen=True, slots=True)
class Compared:
    """Two ways of asking, in pairs that alternate: the median of the pairs' ratios of processor time, and the bests."""

    ratio: float
    raw: Times
    ours: Times

    def __str__(self) -> str:
        return (
            f"raw {self.raw.wall:.0f} ms (processor {self.raw.processor:.0f}),"
            f" ours {self.ours.wall:.0f} ms (processor {self.ours.processor:.0f})"
        )


def compare(
    raw: Callable[[], Times],
    ours: Callable[[], Times],
    repeats: int,
    of: Callable[[Times], float] = lambda times: times.processor,
) -> Compared:
    """Return how the second way compares with the first, by `of`: a server of its own shows only in wall time."""
    pairs = [(raw(), ours()) for _ in range(repeats)]
    return Compared(
        statistics.median(of(mine) / max(of(theirs), 1e-3) for theirs, mine in pairs),
        *(
            Times(min(times.wall for times in way), min(times.processor for times in way))
            for way in zip(*pairs, strict=True)
        ),
    )
