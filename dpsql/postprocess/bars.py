"""Error bars: which output columns have them, and how each is computed (soundness.md 1.2).

An expression has bars when it is a function of one released row: it is traced down through
projections, filters, ORDER BY and LIMIT to one release. A released number with one noise has exact bars
from the quantile of its law; everything else is simulated from released values and their laws; what does
not trace has NULL. The laws are those of the draws that answer, so they are not known here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from ..plan.measures.formulas import Chosen, Linear
from ..plan.planner import ReleasePlan
from ..plan.privacy.rows import Release
from ..relation.expressions import (
    Call,
    Expr,
    Field,
    Literal,
    fields_of,
    map_children,
    size_of,
    substitute,
    walk,
)
from ..relation.relations import (
    Filter,
    Limit,
    OutputColumn,
    Project,
    Relation,
    Sort,
)
from ..relation.types import DOUBLE

__all__ = ["Bar", "WithBars", "add_companions", "resolve_bars"]

_MAX_TRACED = 1_000


@dataclass(frozen=True, slots=True)
class Bar:
    """The bars of one expression over a release's columns.

    `coordinates`: the noisy numbers that it is made of; none where its text alone is the answer. `weight`:
    its unit, when it is a multiple of one of them and so has exact bars; None: to be simulated.
    """

    expr: Expr
    coordinates: tuple[int, ...]
    weight: Fraction | None


@dataclass(frozen=True)
class WithBars(Relation):
    """A release's columns followed by low and high of each bar."""

    release: Release
    bars: tuple[Bar, ...]

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        return (*self.release.columns, *(OutputColumn(DOUBLE) for _ in self.bars for _ in range(2)))


def add_companions(root: Relation, plans: dict[Release, ReleasePlan]) -> Relation:
    """Return the statement with `x_low` and `x_high` beside each numeric column that is not a group key."""
    exprs: list[Expr] = []
    names: list[str] = []
    for index, column in enumerate(root.columns):
        field_ = Field(column.type, index, column.name)
        exprs.append(field_)
        names.append(column.name)
        if column.type.is_number and not _is_key(root, field_):
            exprs += [Call(DOUBLE, "dp_low", (field_,)), Call(DOUBLE, "dp_high", (field_,))]
            names += [f"{column.name}_low", f"{column.name}_high"]
    return Project(root, tuple(exprs), tuple(names))


def _is_key(root: Relation, expr: Expr) -> bool:
    """Say whether an output column is made of group keys and constants alone."""
    traced = _trace(root, expr)
    return traced is not None and all(i < len(traced[0].keys) for i in fields_of(traced[1]))


def _trace(node: Relation, expr: Expr) -> tuple[Release, Expr] | None:
    if isinstance(node, Release):
        return node, expr
    if isinstance(node, (Filter, Sort, Limit)):
        return _trace(node.input, expr)
    if isinstance(node, Project):
        whole = substitute(expr, node.exprs)
        return _trace(node.input, whole) if size_of(whole, _MAX_TRACED) < _MAX_TRACED else None
    return None


@dataclass
class _Wanted:
    bars: list[Bar] = field(default_factory=list)

    def number(self, bar: Bar) -> int:
        if bar not in self.bars:
            self.bars.append(bar)
        return self.bars.index(bar)


def resolve_bars(node: Relation, plans: dict[Release, ReleasePlan]) -> Relation:
    """Return the relation with every dp_low and dp_high replaced by a column or by NULL."""
    node = node.map_inputs(lambda below: resolve_bars(below, plans))
    if not isinstance(node, Project):
        return node
    wanted = _Wanted()
    width = len(node.input.columns)
    exprs = tuple(_resolved(expr, node.input, plans, wanted, width) for expr in node.exprs)
    if not wanted.bars:
        return replace(node, exprs=exprs)
    return replace(node, input=_extended(node.input, tuple(wanted.bars)), exprs=exprs)


def _resolved(
    expr: Expr,
    source: Relation,
    plans: dict[Release, ReleasePlan],
    wanted: _Wanted,
    width: int,
) -> Expr:
    if isinstance(expr, Call) and expr.function in ("dp_low", "dp_high"):
        traced = _trace(source, expr.args[0])
        bar = None if traced is None else _bar(traced[0], plans[traced[0]], traced[1])
        if bar is None:
            return Literal(DOUBLE, None)
        high = expr.function == "dp_high"
        column = Field(DOUBLE, width + 2 * wanted.number(bar) + high)
        whole = expr.args[0].type.is_integer
        return Call(DOUBLE, "ceil" if high else "floor", (column,)) if whole else column
    return map_children(expr, lambda child: _resolved(child, source, plans, wanted, width))


def _bar(release: Release, plan: ReleasePlan, expr: Expr) -> Bar | None:
    from ..relation.expressions import Scalar

    used = [i - len(release.keys) for i in sorted(fields_of(expr)) if i >= len(release.keys)]
    if not used or any(isinstance(part, Scalar) for part in walk(expr)):
        return None
    if plan.is_empty:
        return Bar(expr, (), Fraction(0))
    if any(
        isinstance(plan.formulas[i], Chosen) for i in used
    ):  # what is known is how far its rank may be off
        return None
    coordinates = tuple(sorted({c for i in used for c in plan.formulas[i].coordinates}))
    if isinstance(expr, Field):
        formula = plan.formulas[used[0]]
        if isinstance(formula, Linear) and len(formula.terms) == 1:
            return Bar(expr, coordinates, abs(formula.terms[0][1]))
    return Bar(expr, coordinates, None)


def _extended(node: Relation, bars: tuple[Bar, ...]) -> Relation:
    """Return the chain down to the release with the bars' columns carried up at the end of each node."""
    if isinstance(node, Release):
        return WithBars(node, bars)
    if isinstance(node, WithBars):
        raise AssertionError("bars are asked for twice on one way down")
    assert isinstance(node, (Filter, Sort, Limit, Project))
    below = _extended(node.input, bars)
    if not isinstance(node, Project):
        return replace(node, input=below)
    width = len(node.input.columns)
    carried = tuple(Field(DOUBLE, width + i) for i in range(2 * len(bars)))
    return replace(
        node, input=below, exprs=(*node.exprs, *carried), names=(*node.names, *("" for _ in carried))
    )
