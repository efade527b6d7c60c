"""Error bars of expressions by simulation: post-processing of released values and public scales.

The noise of a release is drawn again, many times, from its public distribution. The truth is the
released measures less their noise, so the expression is computed at `y - noise`, and its quantiles
are the ends. For linear expressions these are the noise's own quantiles; for ratios and roots they are
an approximation that never leaves the range of the expression (an average stays inside its bounds).
Nothing here is private: the exact values are not known to it, and the draws are independent of the
noise in the release.

Counts of people by which groups were shown: a group found in the data is shown only when its noisy count is large
enough, so the counts that are seen lean upwards, most of all those of small groups. With Y_n the noisy count of n
people, the bar at level 1 - beta of a shown y holds each n with

    Pr[Y_n >= y | shown] > beta/2  and  Pr[Y_n <= y | shown] > beta/2:

the tests of n that do not reject. Each misses with probability beta at most, whatever n is, among the answers in
which a group of n people is shown (soundness.md 1.2). Both probabilities are of public laws.

Variances and deviations of few rows: where the noise on the count is about as large as the count, the replicas of a
variance lie all on one side of the truth. There the bar is made of every variance that is not rejected. For a
variance v, the test asks how far the released n, S and M are from the nearest (n', S', M') whose variance is v, in
standard deviations of their noise:

    D(v) = min { sum ((y_i - t_i) / sd_i)^2 : variance(t) = v } <= c^2.

For whatever is linear in n, S and M, D is the square of a sum of Laplace noises over its own deviation, and c, the
quantile of one Laplace noise over its deviation, is the largest that any such sum has (soundness.md 1.2). So the bar
is the range of the variance over an ellipsoid around the released numbers, cut to at least the rows that one needs.

Seeded noise: the seed of a coordinate's replicas is a hash of what it measures, its law and its released integers.
All of these are known after the release, so bars are a function of what is released, and a function of it tells
nothing more (soundness.md 1.2). The noise of a release never comes from here.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure
from ..mechanisms import Gaussian, Laplace, Law
from ..plan.measures.formulas import Linear, Variance
from ..plan.measures.measurements import Coord
from ..records import dataclass
from ..relation.types import BIGINT
from .null_on_error import to_double
from .rows import FetchedTable, ReleasedColumn, ReleasedTable, quote
from .sealed import SealedEngine

_EVALUATIONS_PER_STATEMENT = 1_000_000
ROW, DRAW = "row$", "draw$"
"""Columns that an expression may read besides those of its table: the row's number and the draw's."""
_ROWS, _NOISE, _PART = "rows$", "noise$", "part$"

Bounds = list[float | None]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A table whose rows have bars, each by itself, and the noise of its own that all of them share.

    `replicas`: for each noisy column the simulated noise in that column's own integers, shape (draws,); draws of one
    index belong together.
    """

    table: ReleasedTable
    replicas: Mapping[str, npt.NDArray[Any]]


def error_bars(
    engine: SealedEngine,
    expression_sql: str,
    asked: Sequence[Drawn],
    level: Fraction,
    *,
    seconds: float | None = None,
) -> list[tuple[Bounds, Bounds]]:
    """Return (low, high) of each table: for each row of it the bounds of a printed numeric expression.

    `expression_sql` names columns of the tables and nothing else; all have the same columns, replicas of the same
    ones, and as many draws. `level` is the coverage, in (0, 1). A bound is None where the expression is NULL, or NULL
    in more than half of the draws. `seconds`: for all of it; None: the engine's own limit for each of its statements.

    Raises ValueError for a level outside (0, 1), no or unequal draws, or a column that is not an
    integer one of the table; what `SealedEngine.run` raises.
    """
    counts = {_count_draws(one) for one in asked}
    if len(counts) != 1:
        raise ValueError("all tables have as many draws")
    if not 0 < level < 1:
        raise ValueError("the level is between 0 and 1")
    (draws,) = counts
    tail = float((1 - level) / 2)
    sql = _print_query(expression_sql, asked[0])
    found: list[tuple[Bounds, Bounds]] = [([], []) for _ in asked]
    deadline = None if seconds is None else time.monotonic() + seconds
    for slices in _statements(asked, max(1, _EVALUATIONS_PER_STATEMENT // (draws + 1))):
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise EngineFailure("error bars ran out of time", sqlstate="57V01")
        tables = (_rows_table(asked, slices), _noise_table(asked, [part for part, _ in slices], draws))
        for part, centre, lower, upper, answered in engine.run(
            sql, tables, (tail, 1 - tail), seconds=left
        ).rows:
            is_known = centre is not None and 2 * answered >= draws
            for bounds, bound in zip(found[part], (lower, upper), strict=True):
                bounds.append(_finite(bound) if is_known else None)
    return found


def _statements(asked: Sequence[Drawn], most: int) -> Iterator[list[tuple[int, range]]]:
    """Yield the tables' rows in order, no more than so many at a time: of which table, and which of its rows."""
    slices: list[tuple[int, range]] = []
    left = most
    for part, one in enumerate(asked):
        start = 0
        while start < one.table.row_count:
            rows = range(start, min(one.table.row_count, start + left))
            slices.append((part, rows))
            start, left = rows.stop, left - len(rows)
            if not left:
                yield slices
                slices, left = [], most
    if slices:
        yield slices


def joint_bars(
    engine: SealedEngine, sql: str, width: int, together: Sequence[bool],
    tables: Sequence[ReleasedTable | FetchedTable],
    draws: int, level: Fraction, seconds: float,
) -> list[tuple[Any, ...]]:  # fmt: skip
    """Return what numbers each row, then low and high of each expression.

    `sql`: a SELECT over `tables` of `width` columns that number a row, then the draw, of which there are `draws`,
    then for each expression its released value and its value at that draw's replica of the truth. `together`: whether
    an expression's bars hold for all rows at once: then each row's are widened by one factor, so far that so many
    draws as `level` says lie within all rows' bars. A bound is None as in `error_bars`.

    Raises: what `SealedEngine.run` raises.
    """
    tail = float((1 - level) / 2)
    low, high = (_rank(at, draws) for at in (tail, 1 - tail))
    rows = [f"c{index}" for index in range(width)]
    bars = range(len(together))
    values = [
        f"{to_double(f't.c{width + 1 + 2 * i + k}')} AS {letter}{i}"
        for i in bars
        for k, letter in enumerate("bf")
    ]
    drawn = ", ".join([*(f"t.{name}" for name in rows), f"t.c{width} AS draw", *values])
    ends = [
        f"max(b{i}) AS v{i}, quantile_cont(f{i}, [{low!r}, {high!r}]) AS q{i}, 2 * count(f{i}) >= {draws} AS k{i}"
        for i in bars
    ]
    grouped = f" GROUP BY {', '.join(rows)}" if rows else ""
    steps = [
        f"e AS MATERIALIZED (SELECT {drawn} FROM ({sql}) AS t)",
        f"q AS MATERIALIZED (SELECT {', '.join([*rows, *ends])} FROM e{grouped})",
        *(_factor(i, rows, _rank(float(level), draws)) for i in bars if together[i]),
    ]
    shown = [*rows, *(_end(i, place, is_together=together[i]) for i in bars for place in (1, 2))]
    whole = f"SELECT * FROM (WITH {', '.join(steps)} SELECT {', '.join(shown)} FROM q) AS t"
    return list(engine.run(whole, tables, seconds=seconds).rows)


def _rank(probability: float, draws: int) -> float:
    """Return the quantile that a truth, one more draw like the others, is below with a probability.

    Of n draws and the truth any is as likely to be the k-th as any other: it is where k / (n + 1) is.
    """
    return min(1.0, max(0.0, ((draws + 1) * probability - 1) / (draws - 1)))


def _end(number: int, place: int, *, is_together: bool) -> str:
    """Print the low (place 1) or high end (2) of a bar, NULL where it cannot be had."""
    centre, end = f"v{number}", f"q{number}[{place}]"
    if is_together:
        end = f"({centre} + (SELECT z FROM z{number}) * ({end} - {centre}))"
    return f"CASE WHEN k{number} AND {centre} IS NOT NULL AND isfinite({end}) THEN {end} END"


def _factor(number: int, rows: Sequence[str], rank: float) -> str:
    """Print how far the bars of an expression are widened, z<number>: the quantile of each draw's worst row."""
    f, v, q = (f"{letter}{number}" for letter in "fvq")
    worst = (
        f"max(greatest(({f} - {v}) / nullif({q}[2] - {v}, 0), ({v} - {f}) / nullif({v} - {q}[1], 0)))"
        f" FILTER (WHERE k{number})"
    )
    same = " AND ".join(f"e.{name} IS NOT DISTINCT FROM q.{name}" for name in rows) or "TRUE"
    return (
        f"z{number} AS MATERIALIZED (SELECT greatest(1e0, coalesce(quantile_cont(w, {rank!r}), 1e0)) AS z"
        f" FROM (SELECT {worst} AS w FROM e JOIN q ON {same} GROUP BY e.draw) AS worst)"
    )


def _count_draws(one: Drawn) -> int:
    lengths = {noise.shape for noise in one.replicas.values()}
    if len(lengths) != 1 or len(shape := lengths.pop()) != 1 or shape[0] == 0:
        raise ValueError("replicas are one-dimensional arrays of one length")
    integers = {column.name for column in one.table.columns if column.type.is_integer}
    if not one.replicas.keys() <= integers:
        raise ValueError("replicas are given for integer columns of the table alone")
    return int(shape[0])


def _noise_table(asked: Sequence[Drawn], parts: Sequence[int], draws: int) -> ReleasedTable:
    """Return of each table the draws 1, 2, … and draw 0, which has no noise."""
    columns = [
        ReleasedColumn(_PART, BIGINT, np.repeat(parts, draws + 1)),
        ReleasedColumn(DRAW, BIGINT, np.tile(np.arange(draws + 1), len(parts))),
    ]
    for name in asked[0].replicas:
        noises = [asked[part].replicas[name] for part in parts]
        whole = np.concatenate([piece for noise in noises for piece in (noise[:1] * 0, noise)])
        columns.append(ReleasedColumn(name, BIGINT, whole))
    return ReleasedTable(_NOISE, tuple(columns))


def _rows_table(asked: Sequence[Drawn], slices: Sequence[tuple[int, range]]) -> ReleasedTable:
    sizes = [len(rows) for _, rows in slices]
    columns = [
        ReleasedColumn(_PART, BIGINT, np.repeat([part for part, _ in slices], sizes)),
        ReleasedColumn(ROW, BIGINT, np.concatenate([np.asarray(rows) for _, rows in slices])),
    ]
    for index, column in enumerate(asked[0].table.columns):
        pieces = [asked[part].table.columns[index].values[rows.start : rows.stop] for part, rows in slices]
        columns.append(ReleasedColumn(column.name, column.type, _joined(pieces)))
    return ReleasedTable(_ROWS, tuple(columns))


def _joined(pieces: Sequence[Sequence[Any] | Array]) -> Sequence[Any] | Array:
    if all(isinstance(piece, np.ndarray) for piece in pieces):
        return np.concatenate(pieces)
    return [value for piece in pieces for value in piece]


def _print_query(expression_sql: str, one: Drawn) -> str:
    rows, noise, part = quote(_ROWS), quote(_NOISE), quote(_PART)
    columns = []
    for column in one.table.columns:
        name = quote(column.name)
        value = f"{rows}.{name}"
        if column.name in one.replicas:
            value = f"{value} - TRY_CAST({noise}.{name} AS HUGEINT)"
        columns.append(f"{value} AS {name}")
    return (
        f"SELECT part, max(f) FILTER (WHERE draw = 0),"
        f" quantile_cont(f, CAST($1 AS DOUBLE)) FILTER (WHERE draw > 0),"
        f" quantile_cont(f, CAST($2 AS DOUBLE)) FILTER (WHERE draw > 0),"
        f" count(f) FILTER (WHERE draw > 0)"
        f" FROM (SELECT {part} AS part, {quote(ROW)} AS number, {quote(DRAW)} AS draw, {to_double(expression_sql)} AS f"
        f" FROM (SELECT {rows}.{part}, {rows}.{quote(ROW)}, {noise}.{quote(DRAW)}, {', '.join(columns)}"
        f" FROM {rows} JOIN {noise} ON {rows}.{part} = {noise}.{part}) AS {quote(one.table.name)}) AS evaluated"
        f" GROUP BY part, number ORDER BY part, number"
    )


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


# --- noise for simulated error bars: the same for the same released numbers, in every session ---------------


Array = npt.NDArray[Any]


def seed_of(identity: bytes, law: Law, released: Array) -> bytes:
    """Return the seed of a coordinate's replicas: of what it measures, its law, and its released integers in order.

    `identity` tells coordinates apart that came out equal: their noises are independent.
    """
    digest = hashlib.sha256(identity + law.text.encode() + b"\0")
    if released.dtype == np.int64:
        digest.update(np.ascontiguousarray(released, dtype="<i8").tobytes())
    else:
        digest.update(repr(list(map(int, released))).encode())
    return digest.digest()


class Seeded:
    """A stream of bytes from a seed, for simulations alone: nothing that is released is drawn from it."""

    def __init__(self, seed: bytes) -> None:
        self._seed, self._calls = seed, 0

    def random_bytes(self, count: int) -> bytes:
        """See `RandomSource`: the i-th call gives the first bytes of SHAKE-256(seed, i)."""
        self._calls += 1
        return hashlib.shake_256(self._seed + self._calls.to_bytes(8, "big")).digest(count)


_WIDE = 16
"""From so many steps on a Gaussian noise is a rounded normal one, to three digits of what is between two steps."""
_FITS = 2.0**62


def replicas_of(law: Law, count: int, source: Seeded) -> npt.NDArray[Any]:
    """Return simulated noise, shape (count,): int64, or Python ints where needed.

    By doubles where they have the law, several times as fast as what is released is drawn, and at any width: Laplace
    noise is the difference of two geometric numbers, each a rounded exponential one.
    """
    noise: npt.NDArray[Any]
    if isinstance(law, Laplace):
        first, second = -np.log(_uniforms(2 * count, source).reshape(2, count)) * float(law.scale)
        noise = np.floor(first) - np.floor(second)
    elif isinstance(law, Gaussian) and law.scale >= _WIDE:
        radius, turn = _uniforms(2 * count, source).reshape(2, count)
        noise = np.rint(np.sqrt(-2 * np.log(radius)) * np.cos(2 * math.pi * turn) * float(law.scale))
    else:
        return np.asarray(law.draw(count, source))
    if np.abs(noise).max(initial=0) < _FITS:
        return noise.astype(np.int64)
    return np.array([int(one) for one in noise.tolist()], dtype=object)


def _uniforms(count: int, source: Seeded) -> npt.NDArray[np.float64]:
    """Return numbers between 0 and 1, shape (count,)."""
    words = np.frombuffer(source.random_bytes(8 * count), dtype="<u8") >> np.uint64(11)
    found: npt.NDArray[np.float64] = (words.astype(np.float64) + 0.5) / 2**53
    return found


# --- counts of people by which groups were shown ------------------------------------------------------------


Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_FINE = 512
"""Counts of people that replicas of one noisy count are chosen from, at most."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Showing:
    """The rule that shows groups: noisy counts above `first` always, `first` itself with probability `share`.

    `law` is that of the noise on the count; groups of fewer than `least` people are never shown.
    """

    law: Law
    first: int
    least: int
    share: float = 1.0

    def at_least(self, people: Integers, noisy: Integers) -> Floats:
        """Return Pr[a group of so many people is shown, and with at least this noisy count]."""
        beyond = self.law.tails(np.maximum(noisy, self.first + 1) - people)
        at_first = self.law.tails(self.first - people) - self.law.tails(self.first + 1 - people)
        found: Floats = beyond + np.where(noisy <= self.first, self.share * at_first, 0.0)
        return found

    def above(self, people: Integers, noisy: Integers) -> Floats:
        """Return Pr[at least this noisy count | shown], which grows with the number of people."""
        shown = np.maximum(self.at_least(people, np.full_like(people, self.first)), _TINY)
        found: Floats = self.at_least(people, noisy) / shown
        return found


def shown_ends(rule: Showing, noisy: npt.NDArray[Any], beta: float) -> tuple[Integers, Integers]:
    """Return the fewest and the most people of each shown group, in the shape of `noisy`, its count, which is between.

    Requires: 0 < `beta` < 1, and that each count was shown.
    """
    beta = max(beta, _TINY)
    counts, which = np.unique(noisy.astype(np.int64), return_inverse=True)
    # all of the noise's mass but what no bar counts lies within so much of the count
    reach = rule.law.upper_quantile(_fraction(beta / 1000)) + 1
    lowest = np.full_like(counts, rule.least)
    farthest = counts + reach
    fewest = _first(lowest, np.maximum(counts, rule.least), lambda n: rule.above(n, counts) > beta / 2)
    too_many = _first(
        np.maximum(counts, rule.least), farthest, lambda n: 1 - rule.above(n, counts + 1) <= beta / 2
    )
    most = np.maximum(too_many - 1, counts)
    return np.minimum(fewest, counts)[which], most[which]


def _fraction(probability: float) -> Fraction:
    return Fraction(max(probability, _TINY))


def _first(low: Integers, high: Integers, holds: Callable[[Integers], npt.NDArray[np.bool_]]) -> Integers:
    """Return element by element the first n in [low, high) from which on `holds`; `high` where there is none."""
    low, high = low.copy(), high.copy()
    while (low < high).any():
        middle = (low + high) // 2
        good = holds(middle)
        open_ = low < high
        high = np.where(open_ & good, middle, high)
        low = np.where(open_ & ~good, middle + 1, low)
    return low


def shown_replicas(rule: Showing, noisy: npt.NDArray[Any], draws: int, seed: bytes) -> Integers:
    """Return numbers of people that the shown counts may stand for, shape (groups, draws): replicas of the truth.

    They are spread as the bars are: a share `beta` of them is below the low end of the bar at level 1 - 2 beta.
    """
    source = Seeded(seed)
    words = np.frombuffer(source.random_bytes(8 * len(noisy) * draws), dtype="<u8")
    uniform = (words >> np.uint64(11)).astype(np.float64).reshape(len(noisy), draws) / 2**53
    reach = rule.law.upper_quantile(_fraction(1e-6)) + 1
    counts, which = np.unique(noisy.astype(np.int64), return_inverse=True)
    found = np.empty((len(noisy), draws), dtype=np.int64)
    for place, count in enumerate(counts.tolist()):
        low = max(rule.least, min(count, rule.first) - reach)
        # a number so far below that nothing tells it from fewer stands for all of them: the least
        people = np.unique(np.linspace(low, count + reach, _FINE).astype(np.int64))
        people[0] = rule.least
        rising = np.maximum.accumulate(rule.above(people, np.full_like(people, count)))
        rows = which == place
        found[rows] = people[np.minimum(np.searchsorted(rising, uniform[rows]), len(people) - 1)]
    return found


# --- bars of quotients of many rows -------------------------------------------------------------------------


def quotient_ends(
    numerator: Floats, denominator: Floats, places: Floats, halves: Floats
) -> tuple[Floats, Floats]:
    """Return the least and the greatest w of each row, shapes (rows,), with |numerator - w·denominator| <= h(w).

    `halves` are those of h at `places`, which rise from the least w there is to the largest; between them it is the
    chord. Where the denominator does not rise faster than h, nothing is left out: the least and the largest w.
    """
    slope = float(np.max(np.abs(np.diff(halves) / np.diff(places))))
    known = denominator > slope

    def greatest(above: Floats, places: Floats, halves: Floats) -> Floats:
        # w·denominator - above - h(w) rises with w: where it passes 0
        def at(number: Integers) -> Floats:
            found: Floats = denominator * places[number] - above - halves[number]
            return found

        one = np.ones(len(above), dtype=np.int64)
        after = _first(one, one * (len(places) - 1), lambda number: at(number) > 0)
        first, second = at(after - 1), at(after)
        share = np.clip(-first / np.where(second > first, second - first, 1), 0, 1)
        found: Floats = places[after - 1] + share * (places[after] - places[after - 1])
        return np.where(known, found, places[-1])

    return -greatest(-numerator, -places[::-1], halves[::-1]), greatest(numerator, places, halves)


# --- bars of variances and deviations of few rows -----------------------------------------------------------


_FEW_DEVIATIONS = 10.0
"""Noisy counts of fewer standard deviations of their noise are few rows."""
_AT_ONCE = 4_000
_MANY = 5_000
"""Rows from which on the ellipsoid has fewer points: the answer may not become slow."""


@dataclass(frozen=True, slots=True)
class NoisyCoordinates:
    """The released coordinates, as doubles, and the variance of the noise on each."""

    released: Mapping[Coord, Floats]
    spread: Mapping[Coord, float]

    def value(self, formula: Linear) -> Floats:
        """Return a sum of coordinates, one a row."""
        rows = len(next(iter(self.released.values())))
        total = np.full(rows, float(formula.constant))
        for index, weight in formula.terms:
            total += float(weight) * self.released[index]
        return total

    def covariance(self, one: Linear, other: Linear) -> float:
        """Return the covariance of the noises on two sums of coordinates."""
        weights = dict(other.terms)
        return sum(float(w) * float(weights.get(i, 0)) * self.spread[i] for i, w in one.terms)


def few_rows(formula: Variance, noise: NoisyCoordinates) -> npt.NDArray[np.bool_]:
    """Return in which rows, shape (rows,), the noisy count is within ten deviations of its noise."""
    deviation = math.sqrt(noise.covariance(formula.count, formula.count))
    few: npt.NDArray[np.bool_] = noise.value(formula.count) < _FEW_DEVIATIONS * deviation
    return few


def variance_ends(formula: Variance, noise: NoisyCoordinates, reach: float) -> tuple[Floats, Floats]:
    """Return low and high of a variance or deviation for each row, both of shape (rows,).

    `reach`: how many standard deviations of its noise one released number is away at the wanted level.
    """
    parts = (formula.count, formula.difference, formula.moment)
    spread = np.array([[noise.covariance(one, other) for other in parts] for one in parts])
    root = np.linalg.cholesky(spread + np.diag(1e-12 * np.diag(spread) + 1e-300))
    centre = np.stack([noise.value(part) for part in parts])
    circles, angles = (24, 16) if centre.shape[1] > _MANY else (64, 32)
    # of what is linear the farthest of these points is as far out as the ellipsoid, or farther
    covered = math.cos(math.pi / 2 / (circles - 1)) * math.cos(math.pi / angles)
    root *= reach / covered
    low, high = np.empty(centre.shape[1]), np.empty(centre.shape[1])
    for start in range(0, centre.shape[1], _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        places = _circles(root, circles, angles, centre[:, rows], formula.least_rows)
        low[rows], high[rows] = _range(formula, centre[:, rows], places)
    return low, high


def _circles(
    root: Floats, circles: int, angles: int, centre: Floats, least: int
) -> Iterator[tuple[Floats, Floats, Floats, Floats, Floats]]:
    """Yield the ellipsoid of each row in circles: n there, shape (rows,), and how far S and M are from the middle.

    At one n the variance is linear in M, so that its ends are on the circle. `root`: from the unit sphere to an
    ellipsoid around 0; `centre`: each row's (n, S, M). S and M are of the shapes (points, rows or 1). Behind those of
    each circle stand those of its one point at which S is nearest to 0, with the larger M, of the shapes (rows,): of
    few rows a variance is large there alone. The last is the circle of the least n that there is, -inf where the
    ellipsoid does not come so far.
    """
    angle = np.linspace(0, 2 * math.pi, angles, endpoint=False)
    ends = np.clip((least - centre[0]) / root[0, 0], -1, 1)
    nearest = -centre[1] / root[1, 1]
    for along in (*np.cos(np.linspace(0, math.pi, circles))[:, None], ends):
        across = np.sqrt(1 - along**2)
        count = centre[0] + root[0, 0] * along
        if along is ends:
            count = np.where(np.abs(ends) < 1, float(least), -np.inf)
        circle = _beside(root, along, np.outer(np.cos(angle), across), np.outer(np.sin(angle), across))
        x = np.minimum(np.maximum(nearest - root[1, 0] / root[1, 1] * along, -across), across)
        yield count, *circle, *_beside(root, along, x, np.sqrt(np.maximum(across**2 - x**2, 0)))


def _beside(root: Floats, along: Floats, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    return root[1, 0] * along + root[1, 1] * x, root[2, 0] * along + root[2, 1] * x + root[2, 2] * y


def _range(
    formula: Variance, centre: Floats, places: Iterator[tuple[Floats, Floats, Floats, Floats, Floats]]
) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of a formula at all of a row's points, shapes (rows,).

    `centre`: each row's (n, S, M), shape (3, rows); `places`: circles of one n each, around it. Of a circle
    n²·(M/2n - (S/n)²) is what differs from point to point.
    """
    least = float(formula.least_rows)
    width, unit = float(formula.width), float(formula.step**2) / 4
    top = unit * width**2 * (2 if formula.is_sample else 1)
    low, high = np.full(centre.shape[1], np.inf), np.full(centre.shape[1], -np.inf)
    for count, s, m, beside_s, beside_m in places:
        possible = count >= least
        count = np.maximum(count, least)
        # less what is the same at all points
        squares = m / 2 * count
        squares -= s * (s + 2 * centre[1])
        beside = beside_m / 2 * count - beside_s * (beside_s + 2 * centre[1])
        middle = centre[2] * count / 2 - centre[1] ** 2 + (width * count) ** 2 / 2
        factor = unit / (count * (count - 1) if formula.is_sample else count**2)
        np.minimum(low, factor * (middle + squares.min(axis=0)), out=low, where=possible)
        most = np.maximum(squares.max(axis=0), beside)
        np.maximum(high, factor * (middle + most), out=high, where=possible)
    found = low <= high
    low, high = np.where(found, low, 0.0), np.where(found, high, top)
    low, high = np.clip(low, 0.0, top), np.clip(high, 0.0, top)
    return (np.sqrt(low), np.sqrt(high)) if formula.is_root else (low, high)
