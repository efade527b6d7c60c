"""From aggregates to vectors: the set of measures with the least expected error (design.md 3).

House rules:

1. Everything here is arithmetic on text and policy. No store, no data, no randomness.
2. Aggregates are first brought to a normal form (`Wanted`): what is summed, over which rows, times
   what, plus what times the count. Equal normal forms share one measure; linearity is used only where
   the lattice arithmetic is exact and the NULL rows are the same (amendments.md c).
3. Counts either have a vector of their own or ride on the complementary sums of one value, whichever
   has the smaller expected error at an equal split of epsilon.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..errors import Refusal
from ..relation.catalog import Table
from ..relation.expressions import Call, Expr, Field, Literal
from ..relation.intervals import Environment, narrowed_facts
from ..relation.relations import AggregateCall
from ..relation.types import BOOLEAN
from .exclusive import are_exclusive
from .formulas import Average, Formula, Linear, Variance
from .lattice import Lattice, lattice_of
from .vectors import Bounding, Kind, Mask, Vector, sensitivity_of

__all__ = ["Measured", "measure"]

_MAX_VALUE_MASKS = 16
_MAX_COUNT_MASKS = 64


@dataclass(frozen=True, slots=True)
class Measured:
    """The vectors of a release and, per aggregate, its formula over all their coordinates in order.

    `counted`: the number of the vector whose one coordinate counts the units of a group (for the
    threshold), None when keys are declared.
    """

    vectors: tuple[Vector, ...]
    formulas: tuple[Formula, ...]
    counted: int | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """An aggregate in normal form: function(factor · value + offset) over rows where `filter` is true.

    `value` None: the aggregate counts rows.
    """

    function: str
    value: Expr | None
    factor: Fraction
    offset: Fraction
    filter: Expr | None
    call: AggregateCall


def measure(
    aggregates: Sequence[AggregateCall],
    env: Environment,
    bounding: Bounding,
    table: Table,
    *,
    threshold: bool,
) -> Measured:
    """Return the vectors that answer the aggregates, and how each aggregate is computed from them.

    Raises:
        Refusal: an aggregate that has no private answer (PV001), bounds that are not declared (PV101).
    """
    wanted = _share_counts([_normal(call, env, table) for call in aggregates])
    choices = [_build(wanted, env, bounding, threshold, ride) for ride in _rides(wanted, env)]
    return min(choices, key=lambda choice: choice[0])[1]


# --- the normal form ---------------------------------------------------------------------------------

_REFUSED = {
    "min": ("MIN and MAX are not answered yet", "COUNT(*) FILTER (WHERE x < c) shows where values end"),
    "max": ("MIN and MAX are not answered yet", "COUNT(*) FILTER (WHERE x > c) shows where values end"),
    "bool_and": ("bool_and is one person's yes or no", "COUNT(*) FILTER (WHERE NOT …) and compare"),
    "bool_or": ("bool_or is one person's yes or no", "COUNT(*) FILTER (WHERE …) and compare"),
}


def _normal(call: AggregateCall, env: Environment, table: Table) -> Wanted:
    if call.function in _REFUSED:
        said, hint = _REFUSED[call.function]
        raise Refusal(said, position=call.position, hint=hint)
    one, zero = Fraction(1), Fraction(0)
    if call.function == "count":
        if not call.args:
            return Wanted("count", None, one, zero, call.filter, call)
        arg = call.args[0]
        if call.distinct:
            if isinstance(arg, Field) and table.is_owner(arg.index):
                return Wanted("units", None, one, zero, call.filter, call)
            if arg.type.is_float:
                raise Refusal(
                    "distinct values of a floating-point column are not counted",
                    sqlstate="PV001",
                    position=call.position,
                    hint="round or cast it to numeric first",
                )
            return Wanted("distinct", arg, one, zero, call.filter, call)
        return Wanted("count", None, one, zero, _and(call.filter, _not_null(arg, env)), call)
    if call.distinct:
        raise Refusal(
            f"{call.function.upper()}(DISTINCT …) is not answered",
            position=call.position,
            hint="leave out DISTINCT",
        )
    if call.function == "avg_direct":
        return Wanted("direct", call.args[0], one, zero, call.filter, call)
    flag = _flag(call)
    if flag is not None:
        return flag
    value, factor, offset = _linear(call.args[0], env)
    return Wanted(call.function, value, factor, offset, call.filter, call)


def _share_counts(wanted: list[Wanted]) -> list[Wanted]:
    """Read COUNT(x) beside SUM(x) or AVG(x) of the same rows as the count that their pair carries."""
    summed = {(want.value, want.call.filter) for want in wanted if want.function in _VALUE_FUNCTIONS}
    shared = []
    for want in wanted:
        args = want.call.args
        nullable = want.function == "count" and args and want.filter != want.call.filter
        if nullable and (args[0], want.call.filter) in summed:
            want = replace(want, function="present", value=args[0], filter=want.call.filter)
        shared.append(want)
    return shared


def _and(left: Expr | None, right: Expr | None) -> Expr | None:
    if left is None or right is None:
        return right if left is None else left
    return Call(BOOLEAN, "and", tuple(sorted((left, right), key=repr)))


def _not_null(arg: Expr, env: Environment) -> Expr | None:
    if not narrowed_facts(arg, env).nullable:
        return None
    return Call(BOOLEAN, "not", (Call(BOOLEAN, "is_null", (arg,)),))


def _flag(call: AggregateCall) -> Wanted | None:
    """Read SUM(CASE WHEN p THEN c ELSE 0 END) as c times COUNT(*) FILTER (WHERE p)."""
    arg = call.args[0]
    if call.function != "sum" or not isinstance(arg, Call) or arg.function != "case" or len(arg.args) != 3:
        return None
    condition, then, other = arg.args
    if not isinstance(then, Literal) or not isinstance(other, Literal) or other.value not in (0, None):
        return None
    if isinstance(then.value, bool) or not isinstance(then.value, (int, Fraction)):
        return None
    return Wanted("tally", None, Fraction(then.value), Fraction(0), _and(call.filter, condition), call)


def _linear(expr: Expr, env: Environment) -> tuple[Expr, Fraction, Fraction]:
    """Split exact `factor · value + offset` with literal numbers off an expression."""
    factor, offset = Fraction(1), Fraction(0)
    while isinstance(expr, Call) and narrowed_facts(expr, env).grid is not None:
        numbers = [_number(arg) for arg in expr.args]
        if expr.function in ("add", "sub") and numbers[1] is not None and not expr.type.is_temporal:
            sign = -1 if expr.function == "sub" else 1
            offset, expr = offset + factor * sign * numbers[1], expr.args[0]
        elif expr.function == "add" and numbers[0] is not None:
            offset, expr = offset + factor * numbers[0], expr.args[1]
        elif expr.function == "sub" and numbers[0] is not None:
            offset, factor, expr = offset + factor * numbers[0], -factor, expr.args[1]
        elif expr.function == "mul" and (numbers[0] is not None or numbers[1] is not None):
            number, rest = (
                (numbers[1], expr.args[0]) if numbers[1] is not None else (numbers[0], expr.args[1])
            )
            assert number is not None
            factor, expr = factor * number, rest
        elif expr.function == "neg":
            factor, expr = -factor, expr.args[0]
        else:
            break
        if expr.type.is_temporal:
            break
    return expr, factor, offset


def _number(expr: Expr) -> Fraction | None:
    if (
        isinstance(expr, Literal)
        and isinstance(expr.value, (int, Fraction))
        and not isinstance(expr.value, bool)
    ):
        return Fraction(expr.value)
    return None


# --- masks -------------------------------------------------------------------------------------------


def _masks(filters: Sequence[Expr], *, rest: bool) -> list[Mask]:
    """Return disjoint masks whose unions give every filter (and, with `rest`, all rows)."""
    masks: list[Mask] = []
    for truth in itertools.product((True, False), repeat=len(filters)):
        if not any(truth) and not rest:
            continue
        chosen = [filters[i] for i in range(len(filters)) if truth[i]]
        if any(are_exclusive(a, b) for a, b in itertools.combinations(chosen, 2)):
            continue
        masks.append(Mask(tuple(zip(filters, truth, strict=True))))
    return masks


def _count_masks(filters: Sequence[Expr], rest: bool) -> int:
    """Return how many masks there are, without building more than the limits."""
    return (
        10**6 if len(filters) > 12 and not _allare_exclusive(filters) else len(_masks_cheaply(filters, rest))
    )


def _allare_exclusive(filters: Sequence[Expr]) -> bool:
    return all(are_exclusive(a, b) for a, b in itertools.combinations(filters, 2))


def _masks_cheaply(filters: Sequence[Expr], rest: bool) -> list[Mask]:
    if not _allare_exclusive(filters) or len(filters) < 2:
        return _masks(filters, rest=rest)
    masks = [Mask(tuple((f, f is chosen) for f in filters)) for chosen in filters]
    return [*masks, Mask(tuple((f, False) for f in filters))] if rest else masks


# --- vectors -----------------------------------------------------------------------------------------

_VALUE_FUNCTIONS = ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "present")
_SPREAD = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")


def _rides(wanted: Sequence[Wanted], env: Environment) -> list[Expr | None]:
    """Return the values whose pair could carry the row counts; None: the counts have their own vector."""
    if not any(want.value is None and want.function in ("count", "tally") for want in wanted):
        return [None]
    values = dict.fromkeys(want.value for want in wanted if want.function in _VALUE_FUNCTIONS)
    return [None, *(value for value in values if value is not None)]


class _Builder:
    """Collects vectors and hands out coordinate numbers."""

    def __init__(self, env: Environment, bounding: Bounding) -> None:
        self.env = env
        self.bounding = bounding
        self.vectors: list[Vector] = []
        self.starts: list[int] = []
        self.outputs: list[int] = []  # per output, how many coordinates it adds up

    def add(
        self, kind: Kind, value: Expr | None, lattice: Lattice | None, masks: Sequence[Mask],
        null_rows: bool = False, limit: int = 0,
    ) -> int:  # fmt: skip
        """Add a vector (once) and return its number."""
        size = sensitivity_of(kind, lattice, len(masks), limit, self.bounding)
        vector = Vector(kind, value, lattice, tuple(masks), null_rows, limit, size)
        if vector in self.vectors:
            return self.vectors.index(vector)
        self.starts.append(sum(known.size for known in self.vectors))
        self.vectors.append(vector)
        return len(self.vectors) - 1

    def sum_over(self, number: int, filter_: Expr | None, part: int, weight: Fraction) -> Linear:
        """Return weight · Σ of one part of a vector over the masks in which the filter is true."""
        vector = self.vectors[number]
        terms = []
        for index, mask in enumerate(vector.masks):
            if filter_ is None or (filter_, True) in mask.terms:
                terms.append((self.starts[number] + index * vector.per_mask + part, weight))
        return Linear(tuple(terms), Fraction(0))


def _build(
    wanted: Sequence[Wanted], env: Environment, bounding: Bounding, threshold: bool, ride: Expr | None
) -> tuple[tuple[Fraction, int], Measured]:
    builder = _Builder(env, bounding)
    counts = [want for want in wanted if want.value is None and want.function in ("count", "tally")]
    plans: dict[tuple[str, Expr | None, Expr | None], tuple[int, Lattice | None]] = {}
    for value in dict.fromkeys(want.value for want in wanted if want.function in _VALUE_FUNCTIONS):
        assert value is not None
        riders = counts if ride is not None and value == ride else []
        _add_value(
            builder,
            value,
            [w for w in wanted if w.value == value and w.function in _VALUE_FUNCTIONS],
            riders,
            plans,
        )
    if ride is None and counts:
        _add_counts(builder, counts, plans)
    formulas = tuple(_formula(builder, want, plans, ride) for want in wanted)
    counted = _counted(builder, threshold)
    share = len(builder.vectors)
    error = sum((_coordinates(formula) * Fraction(share) ** 2 for formula in formulas), Fraction(0))
    return (error, share), Measured(tuple(builder.vectors), formulas, counted)


def _coordinates(formula: Formula) -> int:
    return len(formula.count.terms if isinstance(formula, (Average, Variance)) else formula.terms)


Plans = dict[tuple[str, Expr | None, Expr | None], tuple[int, "Lattice | None"]]


def _filters(wants: Sequence[Wanted]) -> tuple[list[Expr], bool]:
    filters = list(dict.fromkeys(want.filter for want in wants if want.filter is not None))
    return filters, any(want.filter is None for want in wants)


def _add_counts(builder: _Builder, counts: Sequence[Wanted], plans: Plans) -> None:
    filters, rest = _filters(counts)
    together = _count_masks(filters, rest)
    separate = len(filters) + rest
    if together <= _MAX_COUNT_MASKS and together <= max(2, separate**2):
        number = builder.add(Kind.COUNT, None, None, _masks_cheaply(filters, rest))
        for want in counts:
            plans["count", None, want.filter] = number, None
        return
    for want in counts:
        masks = [Mask(()) if want.filter is None else Mask(((want.filter, True),))]
        plans["count", None, want.filter] = builder.add(Kind.COUNT, None, None, masks), None


def _add_value(
    builder: _Builder, value: Expr, wants: Sequence[Wanted], riders: Sequence[Wanted], plans: Plans
) -> None:
    """Add the vectors for one summed value: direct sums when only sums are asked, else complementary pairs."""
    squared = any(want.function in _SPREAD for want in wants)
    lattice = lattice_of(value, builder.env, squared=squared)
    if lattice is None or lattice.width == 0:
        lattice = lattice or Lattice(0, 0, Fraction(1), Fraction(0), Fraction(0), exact=True)
        _add_constant(builder, value, lattice, [*wants, *riders], plans)
        return
    pair = bool(riders) or any(want.function != "sum" or want.offset != 0 for want in wants)
    filters, rest = _filters([*wants, *riders])
    together = _count_masks(filters, rest)
    groups = [(filters, rest)] if together <= _MAX_VALUE_MASKS else [
        *(([f], False) for f in filters), *([([], True)] if rest else [])
    ]  # fmt: skip
    nullable = narrowed_facts(value, builder.env).nullable
    for chosen, whole in groups:
        masks = _masks_cheaply(chosen, whole)
        null_rows = bool(riders) and nullable
        kind = Kind.PAIR if pair else Kind.SUM
        number = builder.add(kind, value, lattice, masks, null_rows)
        moment = builder.add(Kind.MOMENT, value, lattice, masks) if squared else number
        for filter_ in [*chosen, *([None] if whole else [])]:
            plans["pair" if pair else "sum", value, filter_] = number, lattice
            plans["moment", value, filter_] = moment, lattice


def _add_constant(
    builder: _Builder, value: Expr, lattice: Lattice, wants: Sequence[Wanted], plans: Plans
) -> None:
    """A value with one possible content: only its rows are counted (amendments.md g)."""
    present = _not_null(value, builder.env)
    renamed = [replace(w, filter=_and(w.filter, present) if w.value is not None else w.filter) for w in wants]
    _add_counts(builder, renamed, plans)
    for want, counted in zip(wants, renamed, strict=True):
        if want.value is not None:
            plans["constant", value, want.filter] = plans["count", None, counted.filter][0], lattice
            plans["constant filter", value, want.filter] = plans["count", None, counted.filter]


def _formula(builder: _Builder, want: Wanted, plans: Plans, ride: Expr | None) -> Formula:
    one = Fraction(1)
    if want.function in ("units", "distinct", "direct"):
        return _single(builder, want)
    if want.value is None:
        factor = want.factor
        if ride is not None and ("pair", ride, want.filter) in plans:
            number, lattice = plans["pair", ride, want.filter]
            assert lattice is not None
            parts = [builder.sum_over(number, want.filter, part, factor / lattice.width)
                     for part in range(builder.vectors[number].per_mask)]  # fmt: skip
            return _total(parts)
        number, _ = plans["count", None, want.filter]
        return builder.sum_over(number, want.filter, 0, factor)
    if ("constant", want.value, want.filter) in plans:
        return _constant(builder, want, plans)
    if ("sum", want.value, want.filter) in plans:
        number, lattice = plans["sum", want.value, want.filter]
        assert lattice is not None
        return builder.sum_over(number, want.filter, 0, want.factor * lattice.step)
    number, lattice = plans["pair", want.value, want.filter]
    assert lattice is not None
    above = builder.sum_over(number, want.filter, 0, one)
    below = builder.sum_over(number, want.filter, 1, one)
    count = _total([above.times(one / lattice.width), below.times(one / lattice.width)])
    step = want.factor * lattice.step
    if want.function == "present":
        return count
    if want.function == "sum":
        total = _total([above.times(Fraction(lattice.high, lattice.width)),
                        below.times(Fraction(lattice.low, lattice.width))])  # fmt: skip
        return _total([total.times(step), count.times(want.offset)])
    if want.function == "avg":
        middle = Fraction(lattice.low + lattice.high, 2) * step + want.offset
        difference = _total([above.times(step / 2), below.times(-step / 2)])
        ends = sorted((lattice.low * step + want.offset, lattice.high * step + want.offset))
        return Average(difference, count, middle, ends[0], ends[1])
    moment = builder.sum_over(plans["moment", want.value, want.filter][0], want.filter, 0, one)
    difference = _total([above, below.times(Fraction(-1))])
    return Variance(moment, difference, count, lattice.width, abs(step), want.function)


def _total(parts: Sequence[Linear]) -> Linear:
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


def _constant(builder: _Builder, want: Wanted, plans: Plans) -> Formula:
    number, lattice = plans["constant", want.value, want.filter]
    assert lattice is not None
    present = _and(want.filter, _not_null(want.value, builder.env) if want.value is not None else None)
    count = builder.sum_over(number, present, 0, Fraction(1))
    value = want.factor * lattice.step * lattice.low + want.offset
    if want.function == "present":
        return count
    if want.function == "sum":
        return count.times(value)
    zero = Linear((), Fraction(0))
    if want.function == "avg":
        return Average(zero, count, value, value, value)
    return Variance(zero, zero, count, 0, Fraction(1), want.function)


def _single(builder: _Builder, want: Wanted) -> Formula:
    mask = [Mask(()) if want.filter is None else Mask(((want.filter, True),))]
    if want.function == "units":
        number = builder.add(Kind.UNITS, None, None, mask)
        return builder.sum_over(number, want.filter, 0, Fraction(1))
    assert want.value is not None
    if want.function == "distinct":
        facts = narrowed_facts(want.value, builder.env)
        size = None if facts.values is None else len(facts.values)
        limit = builder.bounding.rows if size is None else max(1, min(builder.bounding.rows, size))
        number = builder.add(Kind.DISTINCT, want.value, None, mask, limit=limit)
        return builder.sum_over(number, want.filter, 0, Fraction(1))
    lattice = lattice_of(want.value, builder.env, squared=False)
    if lattice is None or lattice.width == 0:
        raise Refusal("this average has one possible value", sqlstate="PV201", position=want.call.position)
    number = builder.add(Kind.DIRECT, want.value, lattice, mask)
    return builder.sum_over(number, want.filter, 0, lattice.step)


def _counted(builder: _Builder, threshold: bool) -> int | None:
    """Return the vector that counts units for the threshold, adding one when none does.

    A row count serves only where a unit has one row by the engine's own constraint: it is then the
    units measure itself (amendments.md c, f).
    """
    if not threshold:
        return None
    if builder.bounding.per_row:
        for number, vector in enumerate(builder.vectors):
            if vector.kind is Kind.COUNT and vector.masks == (Mask(()),):
                return number
    return builder.add(Kind.UNITS, None, None, [Mask(())])
