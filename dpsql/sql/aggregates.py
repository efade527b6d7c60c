"""One row an aggregate: how it is written, and Postgres' result type. What it measures is `plan.measures`' to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from ..relation.types import BIGINT, BOOLEAN, DOUBLE, NUMERIC, Kind, SqlType

__all__ = ["AGGREGATES", "NAMED", "ORDERED", "AggregateRow"]


@dataclass(frozen=True, slots=True)
class AggregateRow:
    """A row of the table. `result`: the type for an argument's, None where that does not fit.

    `nodes`: the parser's; `names`: what it has no node for. `output`: the name of a column that is a call of it, where
    it is not the node's. `repeats`: whether equal values count each (else DISTINCT changes nothing). `windows`: it has
    a form with OVER. `is_paired`: it takes two arguments, (Y, X), and `result` is for each.
    """

    name: str
    result: Callable[[SqlType], SqlType | None]
    nodes: tuple[type[exp.Expr], ...] = ()
    names: tuple[str, ...] = ()
    output: str = ""
    repeats: bool = True
    windows: bool = False
    is_paired: bool = False


def _count(argument: SqlType) -> SqlType | None:
    return BIGINT


def _sum(argument: SqlType) -> SqlType | None:
    if not argument.is_number:
        return None
    if argument.is_integer:
        return SqlType(Kind.NUMERIC, 38, 0) if argument.kind is Kind.BIGINT else BIGINT
    return argument if argument.is_float else SqlType(Kind.NUMERIC, 38, argument.scale)


def _mean(argument: SqlType) -> SqlType | None:
    if not argument.is_number:
        return None
    return DOUBLE if argument.is_float else NUMERIC


def _extreme(argument: SqlType) -> SqlType | None:
    return None if argument.kind in (Kind.OPAQUE, Kind.INTERVAL, Kind.ARRAY) else argument


def _ranked(argument: SqlType) -> SqlType | None:
    return argument if argument.is_temporal or argument.is_number else None


def _interpolated(argument: SqlType) -> SqlType | None:
    return DOUBLE if argument.is_number else _ranked(argument)


def _paired(argument: SqlType) -> SqlType | None:
    return DOUBLE if argument.is_number else None


def _pairs(argument: SqlType) -> SqlType | None:
    return BIGINT if argument.is_number else None


def _truth(argument: SqlType) -> SqlType | None:
    return BOOLEAN if argument.kind is Kind.BOOLEAN else None


_ROWS = (
    AggregateRow("count", _count, (exp.Count,), windows=True),
    AggregateRow("sum", _sum, (exp.Sum,), windows=True),
    AggregateRow("avg", _mean, (exp.Avg,), windows=True),
    AggregateRow("min", _extreme, (exp.Min,), repeats=False, windows=True),
    AggregateRow("max", _extreme, (exp.Max,), repeats=False, windows=True),
    AggregateRow("median", _interpolated, (exp.Median,)),
    AggregateRow("var_samp", _mean, (exp.Variance,), windows=True),
    AggregateRow("var_pop", _mean, (exp.VariancePop,), output="var_pop", windows=True),
    AggregateRow("stddev_samp", _mean, (exp.Stddev, exp.StddevSamp), windows=True),
    AggregateRow("stddev_pop", _mean, (exp.StddevPop,), windows=True),
    AggregateRow("covar_pop", _paired, (exp.CovarPop,), is_paired=True),
    AggregateRow("covar_samp", _paired, (exp.CovarSamp,), is_paired=True),
    AggregateRow("corr", _paired, (exp.Corr,), is_paired=True),
    AggregateRow("regr_slope", _paired, (exp.RegrSlope,), is_paired=True),
    AggregateRow("regr_intercept", _paired, (exp.RegrIntercept,), is_paired=True),
    AggregateRow("regr_r2", _paired, (exp.RegrR2,), is_paired=True),
    AggregateRow("regr_count", _pairs, (exp.RegrCount,), is_paired=True),
    AggregateRow("regr_avgx", _paired, (exp.RegrAvgx,), is_paired=True),
    AggregateRow("regr_avgy", _paired, (exp.RegrAvgy,), is_paired=True),
    AggregateRow("regr_sxx", _paired, (exp.RegrSxx,), is_paired=True),
    AggregateRow("regr_syy", _paired, (exp.RegrSyy,), is_paired=True),
    AggregateRow("regr_sxy", _paired, (exp.RegrSxy,), is_paired=True),
    AggregateRow(
        "bool_and", _truth, (exp.LogicalAnd,), ("every",), output="bool_and", repeats=False, windows=True
    ),
    AggregateRow("bool_or", _truth, (exp.LogicalOr,), output="bool_or", repeats=False, windows=True),
    AggregateRow("avg_direct", _mean, names=("dp_avg_direct",)),
)
AGGREGATES = {node: row for row in _ROWS for node in row.nodes}
"""Kind of node -> row."""
ORDERED: dict[type[exp.Expr], AggregateRow] = {
    exp.PercentileCont: AggregateRow("percentile_cont", _interpolated, output="percentile_cont"),
    exp.PercentileDisc: AggregateRow("percentile_disc", _extreme, output="percentile_disc"),
    exp.Mode: AggregateRow("mode", _extreme, output="mode"),
}
"""Kind of node before WITHIN GROUP (ORDER BY the argument) -> row."""
NAMED = {name: row for row in _ROWS for name in row.names}
"""Name of a function that the parser has no node for -> row."""
