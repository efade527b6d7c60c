"""Which columns of an analyzed relation noise can move: those, and no others, are told with error bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..plan.privacy.rows import AddedUp, Release
from ..plan.release_plan import ReleasePlan
from ..relation.expressions import Expr, Scalar, fields_of, walk
from ..relation.relations import Block, Join, Relation, SetOperation
from .estimates import holds_estimate
from .public_parts import is_public

__all__ = ["noisy_columns"]


@dataclass(frozen=True, slots=True)
class _Noise:
    """Which columns noise can move, and whether it can move which rows there are."""

    columns: tuple[bool, ...]
    rows: bool = False

    def moves(self, exprs: Iterable[Expr]) -> bool:
        """Say whether noise can move any of the expressions."""
        return any(
            any(self.columns[index] for index in fields_of(expr))
            or holds_estimate(expr)
            or any(isinstance(part, Scalar) and not is_public(part.relation) for part in walk(expr))
            for expr in exprs
        )


def noisy_columns(node: Relation, plans: Mapping[Release, ReleasePlan]) -> tuple[bool, ...]:
    """Return for each column whether noise can move it: not keys, constants, and what public tables say alone.

    A rank by noisy numbers, or a number of rows that noise chose, is moved by noise too.
    """
    return _noise(node, plans).columns


def _noise(node: Relation, plans: Mapping[Release, ReleasePlan]) -> _Noise:
    if is_public(node):
        return _Noise((False,) * len(node.columns))
    if isinstance(node, Release):
        keys = len(node.keys)
        columns = (False,) * keys + (True,) * (len(node.columns) - keys)
        return _Noise(columns, rows=plans[node].keyed_by is not None)
    if isinstance(node, AddedUp):
        keys = len(node.chosen)
        return _Noise((False,) * keys + (True,) * (len(node.columns) - keys))
    below = [_noise(child, plans) for child in node.reads]
    if isinstance(node, Block):
        return _of_part(node, below[0])
    if isinstance(node, SetOperation):
        either = tuple(a or b for a, b in zip(below[0].columns, below[1].columns, strict=True))
        return _Noise(either, below[0].rows or below[1].rows or (not node.all and any(either)))
    if isinstance(node, Join):
        both = _Noise(below[0].columns + below[1].columns)
        moved = both.moves([node.condition])
        if node.kind == "mark":
            return _Noise((*below[0].columns, moved or below[1].rows), below[0].rows)
        return _Noise(both.columns, below[0].rows or below[1].rows or moved)
    return _Noise((True,) * len(node.columns), rows=True)


def _of_part(node: Block, below: _Noise) -> _Noise:
    """Return what noise can move above the last part of a block.

    A number over rows, or groups, that noise chose is moved by it.
    """
    if node.group is not None and node.last == "group":
        keys = [below.moves([key]) for key in node.group.keys]
        chosen = below.rows or any(keys)
        calls = [
            chosen or below.moves([*call.args, *(() if call.filter is None else (call.filter,))])
            for call in node.group.aggregates
        ]
        return _Noise((*keys, *calls, *(False for _ in node.group.groupings)), chosen)
    if node.last == "windows":
        moved = [
            below.rows or below.moves([*call.args, *call.partition, *(order.expr for order in call.orders)])
            for call in node.windows
        ]
        return _Noise((*below.columns, *moved), below.rows)
    if node.last == "outputs":
        return _Noise(tuple(below.moves([expr]) for expr in node.exprs), below.rows)
    if node.last in ("where", "having"):
        return _Noise(below.columns, below.rows or below.moves([node.predicate]))
    return _Noise(below.columns, below.rows or (node.last != "orders" and any(below.columns)))
