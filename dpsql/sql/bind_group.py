"""GROUP BY: its keys, in the order of their first mention, and its grouping sets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import Call, Expr
from ..relation.relations import OutputColumn
from ..relation.types import Kind
from .attach import attached_in, outer_in
from .bind_expression import Binder, Pending
from .bind_order import output_index

__all__ = ["MAX_SETS", "GroupKeys", "bind_group", "holds_pending"]

MAX_SETS = 64
"""Most grouping sets in one GROUP BY."""

Sets = list[tuple[int, ...]]


@dataclass
class GroupKeys:
    """The keys of a GROUP BY, each once, and its grouping sets as positions among them."""

    keys: list[Expr] = field(default_factory=list)
    sets: Sets = field(default_factory=list)

    def index_of(self, key: Expr) -> int:
        """Return the position of a key, adding it when it is new."""
        if key not in self.keys:
            self.keys.append(key)
        return self.keys.index(key)


def holds_pending(expr: Expr) -> bool:
    """Say whether an aggregate, GROUPING() or window call was taken out of the expression."""
    if isinstance(expr, Call):
        return any(holds_pending(arg) for arg in expr.args)
    return isinstance(expr, Pending)


def bind_group(binder: Binder, group: exp.Expr, names: Sequence[str], items: Sequence[Expr]) -> GroupKeys:
    """Return the keys and sets of a GROUP BY clause.

    `names`, `items`: the output columns, which a key may name by number, or by name where no input
    column has that name.

    Raises:
        Refusal: 42803 for an aggregate in a key, 42804 for a type that cannot be one, 54001 for too many sets.
    """
    found = GroupKeys()
    written = group.args.get("expressions")
    if group.args.get("all") is False or bool(group.args.get("all")) == bool(written):
        raise Refusal(
            "GROUP BY takes a list of keys, or the word ALL alone",
            sqlstate="PV001",
            position=binder.position(group),
        )
    if group.args.get("all"):
        found.keys = list(dict.fromkeys(item for item in items if not holds_pending(item)))
        for key in found.keys:
            _check(binder, group, key)
        found.sets = [tuple(range(len(found.keys)))]
        return found

    def index_of(node: exp.Expr) -> int:
        return found.index_of(_key(binder, node, names, items))

    size = 1
    parts: list[Sets] = []
    for item in group.args["expressions"]:
        parts.append(_sets_of(item, index_of))
        size *= len(parts[-1])
        if size > MAX_SETS:
            raise _too_many()
    found.sets = [tuple(sorted(set(itertools.chain(*chosen)))) for chosen in itertools.product(*parts)]
    return found


def _too_many() -> Refusal:
    return Refusal("there are too many grouping sets", sqlstate="54001", hint=f"{MAX_SETS} at most")


def _sets_of(item: exp.Expr, index_of: Callable[[exp.Expr], int]) -> Sets:
    if isinstance(item, exp.Rollup):
        groups = [_members(part, index_of) for part in item.args["expressions"]]
        return [tuple(itertools.chain(*groups[:size])) for size in range(len(groups), -1, -1)]
    if isinstance(item, exp.Cube):
        groups = [_members(part, index_of) for part in item.args["expressions"]]
        if 2 ** len(groups) > MAX_SETS:
            raise _too_many()
        chosen = itertools.product((True, False), repeat=len(groups))
        return [tuple(itertools.chain(*itertools.compress(groups, pick))) for pick in chosen]
    if isinstance(item, exp.GroupingSets):
        return [found for part in item.args["expressions"] for found in _sets_of(part, index_of)]
    return [_members(item, index_of)]


def _members(part: exp.Expr, index_of: Callable[[exp.Expr], int]) -> tuple[int, ...]:
    if isinstance(part, exp.Tuple):
        return tuple(index_of(inner) for inner in part.args.get("expressions") or [])
    inner = part.args["this"] if isinstance(part, exp.Paren) else part
    return (index_of(inner),)


def _key(binder: Binder, node: exp.Expr, names: Sequence[str], items: Sequence[Expr]) -> Expr:
    columns = [OutputColumn(e.type, n) for e, n in zip(items, names, strict=True)]
    with binder.within("in GROUP BY"):
        if isinstance(node, exp.Column):
            key = _named_key(binder, node, columns, items)
        else:
            index = output_index(binder, node, columns, items)
            key = items[index] if index is not None else binder.bind(node)
    _check(binder, node, key)
    return key


def _named_key(
    binder: Binder, node: exp.Column, columns: Sequence[OutputColumn], items: Sequence[Expr]
) -> Expr:
    """Return the key of a name: an input column goes before an output name, as in Postgres."""
    try:
        key = binder.bind(node)
        index = output_index(binder, node, columns, items) if outer_in(key) else None
    except Refusal as refusal:
        if refusal.sqlstate != "42703":
            raise
        index = output_index(binder, node, columns, items)
        if index is None:
            raise
    return key if index is None else items[index]


def _check(binder: Binder, node: exp.Expr, key: Expr) -> None:
    if holds_pending(key):
        raise Refusal("an aggregate cannot be a group key", sqlstate="42803", position=binder.position(node))
    if attached_in(key):
        raise Refusal(
            "EXISTS, IN (SELECT …) and subqueries with outer columns cannot be a group key",
            sqlstate="0A000",
            position=binder.position(node),
            hint="name the value in a subquery in FROM, and group by that name",
        )
    if key.type.kind is Kind.INTERVAL or (key.type.kind is Kind.OPAQUE and key.type.engine is None):
        raise Refusal("this cannot be a group key", sqlstate="42804", position=binder.position(node))
