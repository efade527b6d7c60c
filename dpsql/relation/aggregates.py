"""The table of aggregates: one row each, with all that is known of it before any engine prints it.

House rules:

1. `asks` is what it takes of people's rows. Nothing (`ABOVE`) is a refusal there: it stands above the release alone.
2. Each is printed above the release, by `above` or by a printer of `postprocess.print_aggregates`; those that are
   computed per person have their column in `plan.privacy.derived` and their SQL in `plan.backend_sql.print_source`, or
   are made of these and of windows in `plan.privacy.programs`.
   `check_printers` compares the tables with these rows when they are imported: one that is missing is an ImportError.
3. No one else asks for an aggregate by its name: what depends on which it is stands here, or in a table by name.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from fractions import Fraction

from sqlglot import exp

from ..records import dataclass
from .types import BIGINT, BOOLEAN, DOUBLE, JSON, JSONB, NUMERIC, TEXT, Kind, SqlType, array_of


class Asks(enum.Enum):
    """What an aggregate takes of people's rows; `plan.measures.normal_form` says how."""

    COUNT = "how many rows, people or values there are"
    SUMS = "sums of one value, or of two"
    RANK = "a value by its rank"
    MODE = "the most frequent value"
    DIRECT = "the exact average, noised by its range"
    ABOVE = "nothing: it stands above the release alone"


@dataclass(frozen=True, slots=True)
class Needs:
    """What is summed besides the count: of each value nothing (0), itself (1), its square too (2); products of both."""

    powers: tuple[int, ...] = ()
    product: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A row of the table. `result`: the type for the arguments', None where they do not fit.

    How it is written: `nodes`, the parser's, whose arguments `args` are in order; `names`: what it has no node for;
    `output`: the name of a column that is a call of it, where it is not the node's; `constants`: how many of the last
    arguments are literals; `is_ordered`: it takes its argument in WITHIN GROUP (ORDER BY …); `repeats`: whether equal
    values count each (else DISTINCT changes nothing); `windows`: it has a form with OVER. `said`: its name in EXPLAIN,
    where it is another. `form`: an example, of what takes DISTINCT and an order inside.

    On people's rows: `asks`, and `needs` of sums; `adds_up`: of a group it is made of numbers that are sums of those
    of finer groups (soundness.md 1.18); `share`: the fraction that it is looked for at, None where its argument says
    it; `refused`: what is said to who asks for it, and a hint. `per_person`: it is computed per person below a release
    (1.13), and `in_frames` over a person's frames of rows; `is_program`: it is said per person by windows and such.

    Above the release: `above`, SQL over {a} and {b}, the printed arguments, {row}, all of them as one value, {word},
    DISTINCT or nothing, and {orders}; its FILTER or OVER follows. `is_linear`: it is a weighted sum of its argument.

    `shorthand`: what it means, of its node's one argument a; a condition stands in a FILTER, last. It is never a call
    itself.
    """

    name: str
    result: Callable[..., SqlType | None]
    nodes: tuple[type[exp.Expr], ...] = ()
    names: tuple[str, ...] = ()
    args: tuple[str, ...] = ("this",)
    output: str = ""
    constants: int = 0
    is_ordered: bool = False
    repeats: bool = True
    windows: bool = False
    said: str = ""
    form: str = ""
    asks: Asks = Asks.ABOVE
    needs: Needs = Needs()
    adds_up: bool = False
    share: Fraction | None = None
    refused: tuple[str, str] | None = None
    per_person: bool = False
    in_frames: bool = False
    is_program: bool = False
    above: str = ""
    is_linear: bool = False
    shorthand: str = ""

    def __post_init__(self) -> None:
        """Check that a shorthand has the parser's node, whose argument is a. Raises ImportError."""
        if self.shorthand and (self.names or not self.nodes or self.args != ("this",)):
            raise ImportError(
                f"the shorthand of {self.name} is of a node's one argument, and not of a name's"
            )

    @property
    def count(self) -> int:
        """How many arguments it takes."""
        return len(self.args)

    @property
    def is_paired(self) -> bool:
        """Whether it is of two values, (Y, X)."""
        return self.args == _PAIR

    @property
    def is_chosen(self) -> bool:
        """Whether it is one of its argument's values, which on people's rows is chosen."""
        return self.asks in (Asks.RANK, Asks.MODE)

    @property
    def is_extreme(self) -> bool:
        """Whether it is the smallest or the largest value."""
        return self.asks is Asks.RANK and self.share in (0, 1)


# --- types --------------------------------------------------------------------------------------------------


def _always(result: SqlType) -> Callable[..., SqlType | None]:
    return lambda *types: result


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


def _interpolated(argument: SqlType) -> SqlType | None:
    return DOUBLE if argument.is_number else argument if argument.is_temporal else None


def _paired(result: SqlType) -> Callable[..., SqlType | None]:
    return lambda y, x: result if y.is_number and x.is_number else None


def _truth(argument: SqlType) -> SqlType | None:
    return BOOLEAN if argument.kind is Kind.BOOLEAN else None


def _text(*types: SqlType) -> SqlType | None:
    return TEXT if all(one.kind in (Kind.TEXT, Kind.NULL) for one in types) else None


def _array(argument: SqlType) -> SqlType | None:
    if argument.kind is Kind.NULL:
        return array_of(TEXT)
    return None if argument.kind in (Kind.OPAQUE, Kind.ARRAY, Kind.INTERVAL) else array_of(argument)


def _bits(argument: SqlType) -> SqlType | None:
    return argument if argument.is_integer else None


def _same(argument: SqlType) -> SqlType | None:
    return None if argument.kind in (Kind.OPAQUE, Kind.INTERVAL) else argument


def _members(result: SqlType) -> Callable[..., SqlType | None]:
    never = (Kind.OPAQUE, Kind.ARRAY, Kind.INTERVAL, Kind.JSON, Kind.JSONB)
    return lambda key, value: None if key.kind in never else result


# --- rows ---------------------------------------------------------------------------------------------------

_PAIR = ("this", "expression")


def _sums(
    name: str, node: type[exp.Expr], *nodes: type[exp.Expr], power: int = 1, **more: object
) -> Aggregate:
    """Return the row of a function of one value's sums."""
    row: dict[str, object] = {"result": _mean, "windows": True, "adds_up": True, "asks": Asks.SUMS, **more}
    return Aggregate(name, nodes=(node, *nodes), needs=Needs((power,)), **row)  # type: ignore[arg-type]


def _pair(name: str, node: type[exp.Expr], y: int, x: int, *, product: bool = False) -> Aggregate:
    """Return the row of a function of two values' sums."""
    return Aggregate(
        name, _paired(DOUBLE), (node,), args=_PAIR, asks=Asks.SUMS, needs=Needs((y, x), product), adds_up=True
    )


def _end(name: str, node: type[exp.Expr], share: int) -> Aggregate:
    """Return the row of the smallest or the largest value."""
    return Aggregate(
        name, _extreme, (node,), repeats=False, windows=True, asks=Asks.RANK, share=Fraction(share), per_person=True,
        in_frames=True, above=f"{name}({{a}})",
    )  # fmt: skip


def _logic(name: str, node: type[exp.Expr], kept: str, *names: str) -> Aggregate:
    """Return the row of a truth of all rows, which one person's decides."""
    return Aggregate(
        name, _truth, (node,), names, output=name, repeats=False, windows=True, per_person=True, above=f"{name}({{a}})",
        refused=(f"{name} is one person's yes or no", f"COUNT(*) FILTER (WHERE {kept}"),
    )  # fmt: skip


ROWS = (
    Aggregate(
        "count", _always(BIGINT), (exp.Count,), windows=True, asks=Asks.COUNT, adds_up=True, per_person=True,
        in_frames=True, above="count({word}{row})",
    ),
    Aggregate("count_if", _truth, (exp.CountIf,), output="count_if", shorthand="count(*) FILTER (WHERE a)"),
    Aggregate(
        "approx_count_distinct", _always(BIGINT), (exp.ApproxDistinct,), output="approx_count_distinct",
        shorthand="count(DISTINCT a)",
    ),
    _sums("sum", exp.Sum, result=_sum, per_person=True, in_frames=True, is_linear=True),
    _sums("avg", exp.Avg, per_person=True, in_frames=True, is_linear=True),
    _end("min", exp.Min, 0),
    _end("max", exp.Max, 1),
    Aggregate("median", _interpolated, (exp.Median,), asks=Asks.RANK, share=Fraction(1, 2), is_program=True),
    _sums("var_samp", exp.Variance, power=2),
    _sums("var_pop", exp.VariancePop, power=2, output="var_pop"),
    _sums("stddev_samp", exp.Stddev, exp.StddevSamp, power=2),
    _sums("stddev_pop", exp.StddevPop, power=2),
    _pair("covar_pop", exp.CovarPop, 1, 1, product=True),
    _pair("covar_samp", exp.CovarSamp, 1, 1, product=True),
    _pair("corr", exp.Corr, 2, 2, product=True),
    _pair("regr_slope", exp.RegrSlope, 1, 2, product=True),
    _pair("regr_intercept", exp.RegrIntercept, 1, 2, product=True),
    _pair("regr_r2", exp.RegrR2, 2, 2, product=True),
    Aggregate("regr_count", _paired(BIGINT), (exp.RegrCount,), args=_PAIR, asks=Asks.COUNT, adds_up=True),
    _pair("regr_avgx", exp.RegrAvgx, 0, 1),
    _pair("regr_avgy", exp.RegrAvgy, 1, 0),
    _pair("regr_sxx", exp.RegrSxx, 0, 2),
    _pair("regr_syy", exp.RegrSyy, 2, 0),
    _pair("regr_sxy", exp.RegrSxy, 1, 1, product=True),
    _logic("bool_and", exp.LogicalAnd, "NOT …) and compare", "every"),
    _logic("bool_or", exp.LogicalOr, "…) and compare"),
    Aggregate("avg_direct", _mean, names=("dp_avg_direct",), said="dp_avg_direct", asks=Asks.DIRECT),
    Aggregate(
        "percentile_cont", _interpolated, (exp.PercentileCont,), output="percentile_cont", constants=1, is_ordered=True,
        asks=Asks.RANK, is_program=True,
    ),
    Aggregate(
        "percentile_disc", _extreme, (exp.PercentileDisc,), output="percentile_disc", constants=1, is_ordered=True,
        asks=Asks.RANK, is_program=True,
    ),
    Aggregate(
        "mode", _extreme, (exp.Mode,), output="mode", is_ordered=True, asks=Asks.MODE, is_program=True,
        above="mode({a}{orders})",
    ),
    Aggregate(
        "string_agg", _text, (exp.GroupConcat,), args=("this", "separator"), output="string_agg", constants=1,
        form="string_agg(x, ', ' ORDER BY y)", is_program=True,
        above="string_agg({word}{a}, coalesce({b}, ''){orders})",
    ),
    Aggregate("array_agg", _array, (exp.ArrayAgg,), output="array_agg", form="array_agg(x ORDER BY y)"),
    Aggregate("bit_and", _bits, (exp.BitwiseAndAgg,), output="bit_and", form="bit_and(x)"),
    Aggregate("bit_or", _bits, (exp.BitwiseOrAgg,), output="bit_or", form="bit_or(x)"),
    Aggregate("bit_xor", _bits, (exp.BitwiseXorAgg,), output="bit_xor", form="bit_xor(x)"),
    Aggregate(
        "any_value", _same, (exp.AnyValue,), output="any_value", form="any_value(x)", is_program=True,
        above="any_value({a}{orders})",
    ),
    Aggregate("json_agg", _always(JSON), names=("json_agg",), form="json_agg(x ORDER BY y)"),
    Aggregate("json_agg_lines", _always(JSON)),
    Aggregate("jsonb_agg", _always(JSONB), names=("jsonb_agg",), form="jsonb_agg(x ORDER BY y)"),
    Aggregate(
        "json_object_agg", _members(JSON), names=("json_object_agg",), args=("key", "value"),
        form="json_object_agg(k, x ORDER BY k)",
    ),
    Aggregate(
        "jsonb_object_agg", _members(JSONB), names=("jsonb_object_agg",), args=("key", "value"),
        form="jsonb_object_agg(k, x)",
    ),
)  # fmt: skip
"""All aggregates; `json_agg_lines` is what only the binder writes, for JSON of a row on each line."""

AGGREGATES = {row.name: row for row in ROWS}
"""Name -> row."""


def check_printers(names: Iterable[str], needs: Callable[[Aggregate], bool]) -> None:
    """Check a table by name against the rows that need an entry. Raises ImportError where they differ."""
    wrong = {row.name for row in ROWS if needs(row) and not row.shorthand}.symmetric_difference(names)
    if wrong:
        raise ImportError(f"aggregates and their printers differ: {', '.join(sorted(wrong))}")
