"""Error bars of expressions by simulation: post-processing of released values and public scales.

The noise of a release is drawn again, many times, from its public distribution. The truth is the
released measures less their noise, so the expression is computed at `y - noise`, and its quantiles
are the ends. For linear expressions these are the noise's own quantiles; for ratios and roots they are
an approximation that never leaves the range of the expression (an average stays inside its bounds).
Nothing here is private: the exact values are not known to it, and the draws are independent of the
noise in the release.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure
from ..relation.types import BIGINT
from .bind import to_double
from .sealed import SealedEngine
from .tables import FetchedTable, ReleasedColumn, ReleasedTable, quote

__all__ = ["DRAW", "ROW", "error_bars", "joint_bars"]

_EVALUATIONS_PER_STATEMENT = 1_000_000
ROW, DRAW = "row$", "draw$"
"""Columns that an expression may read besides those of its table: the row's number and the draw's."""
_ROWS, _NOISE = "rows$", "noise$"

Bounds = list[float | None]


def error_bars(
    engine: SealedEngine,
    expression_sql: str,
    table: ReleasedTable,
    replicas: Mapping[str, npt.NDArray[Any]],
    level: Fraction,
    *,
    seconds: float | None = None,
) -> tuple[Bounds, Bounds]:
    """Return (low, high): for each row of `table` the bounds of a printed numeric expression.

    `expression_sql` names columns of `table` and nothing else. `replicas` has, for each noisy column,
    the simulated noise in that column's own integers, shape (draws,), shared by all rows; draws of
    one index belong together. `level` is the coverage, in (0, 1). A bound is None where the
    expression is NULL, or NULL in more than half of the draws. `seconds`: for all of it; None: the
    engine's own limit for each of its statements.

    Raises ValueError for a level outside (0, 1), no or unequal draws, or a column that is not an
    integer one of the table; what `SealedEngine.run` raises.
    """
    draws = _count_draws(table, replicas)
    if not 0 < level < 1:
        raise ValueError("the level is between 0 and 1")
    tail = float((1 - level) / 2)
    sql = _print_query(expression_sql, table, frozenset(replicas))
    noise = _noise_table(replicas, draws)
    low: Bounds = []
    high: Bounds = []
    step = max(1, _EVALUATIONS_PER_STATEMENT // (draws + 1))
    deadline = None if seconds is None else time.monotonic() + seconds
    for start in range(0, table.row_count, step):
        rows = _slice(table, start, start + step)
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise EngineFailure("error bars ran out of time", sqlstate="57V01")
        answer = engine.run(sql, (rows, noise), (tail, 1 - tail), seconds=left)
        for centre, lower, upper, answered in answer.rows:
            is_known = centre is not None and 2 * answered >= draws
            low.append(_finite(lower) if is_known else None)
            high.append(_finite(upper) if is_known else None)
    return low, high


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
    whole = f"WITH {', '.join(steps)} SELECT {', '.join(shown)} FROM q"
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


def _count_draws(table: ReleasedTable, replicas: Mapping[str, npt.NDArray[Any]]) -> int:
    lengths = {noise.shape for noise in replicas.values()}
    if len(lengths) != 1 or len(shape := lengths.pop()) != 1 or shape[0] == 0:
        raise ValueError("replicas are one-dimensional arrays of one length")
    integers = {column.name for column in table.columns if column.type.is_integer}
    if not replicas.keys() <= integers:
        raise ValueError("replicas are given for integer columns of the table alone")
    return int(shape[0])


def _noise_table(replicas: Mapping[str, npt.NDArray[Any]], draws: int) -> ReleasedTable:
    """Return the draws 1, 2, … and draw 0, which has no noise."""
    columns = [ReleasedColumn(DRAW, BIGINT, np.arange(draws + 1))]
    for name, noise in replicas.items():
        columns.append(ReleasedColumn(name, BIGINT, np.concatenate([noise[:1] * 0, noise])))
    return ReleasedTable(_NOISE, tuple(columns))


def _slice(table: ReleasedTable, start: int, stop: int) -> ReleasedTable:
    columns = tuple(ReleasedColumn(c.name, c.type, c.values[start:stop]) for c in table.columns)
    numbers = np.arange(len(columns[0].values))
    return ReleasedTable(_ROWS, (ReleasedColumn(ROW, BIGINT, numbers), *columns))


def _print_query(expression_sql: str, table: ReleasedTable, noisy: frozenset[str]) -> str:
    rows, noise = quote(_ROWS), quote(_NOISE)
    columns = []
    for column in table.columns:
        name = quote(column.name)
        value = f"{rows}.{name}"
        if column.name in noisy:
            value = f"{value} - TRY_CAST({noise}.{name} AS HUGEINT)"
        columns.append(f"{value} AS {name}")
    return (
        f"SELECT max(f) FILTER (WHERE draw = 0),"
        f" quantile_cont(f, CAST($1 AS DOUBLE)) FILTER (WHERE draw > 0),"
        f" quantile_cont(f, CAST($2 AS DOUBLE)) FILTER (WHERE draw > 0),"
        f" count(f) FILTER (WHERE draw > 0)"
        f" FROM (SELECT {quote(ROW)} AS number, {quote(DRAW)} AS draw, {to_double(expression_sql)} AS f"
        f" FROM (SELECT {rows}.{quote(ROW)}, {noise}.{quote(DRAW)}, {', '.join(columns)}"
        f" FROM {rows} CROSS JOIN {noise}) AS {quote(table.name)}) AS evaluated"
        f" GROUP BY number ORDER BY number"
    )


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
