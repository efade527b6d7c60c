"""UNION, INTERSECT and EXCEPT: both sides brought to the same column types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import Expr, Field
from ..relation.functions import common_type
from ..relation.relations import (
    Block,
    Join,
    Lateral,
    Order,
    OutputColumn,
    Recursive,
    RecursiveRef,
    Relation,
    SetOperation,
    ordered,
    parts_of,
    projected,
)
from .bind_expression import Binder, Grammar, cast
from .bind_order import bind_limit, output_index
from .bind_window import nulls_first
from .scope import BindingContext, Scope, fold_name
from .text import position_of

__all__ = ["bind_recursive", "bind_set_operation", "names_itself"]


# --- WITH RECURSIVE -----------------------------------------------------------------------------------------


_HINT = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT …"


def names_itself(cte: exp.Expr, name: str) -> bool:
    """Say whether a query of WITH RECURSIVE reads a table of its own name."""
    return any(
        table.args.get("db") is None
        and isinstance(table.args["this"], exp.Identifier)
        and fold_name(table.args["this"])[0] == name
        for table in cte.args["this"].find_all(exp.Table)
    )


def bind_recursive(
    cte: exp.Expr, name: str, context: BindingContext, grammar: Grammar, position: Position | None
) -> Relation:
    """Return the rows of a recursive query.

    Raises:
        Refusal: 42P19 for a form that Postgres does not take either, 42804 for sides of different types.
    """
    query = cte.args["this"]
    while isinstance(query, exp.Subquery):
        query = query.args["this"]
    if not isinstance(query, exp.Union) or any(
        query.args.get(part) for part in ("order", "limit", "offset", "with_")
    ):
        raise _wrong("a recursive query is two queries and UNION or UNION ALL between them", position)
    base = grammar.query(query.args["this"], context)
    named = [fold_name(column)[0] for column in cte.args["alias"].args.get("columns") or []]
    if len(named) > len(base.columns):
        raise Refusal("there are more column aliases than columns", sqlstate="42P10", position=position)
    names = [*named, *(column.name for column in base.columns[len(named) :])]
    outputs = tuple(OutputColumn(column.type, n) for column, n in zip(base.columns, names, strict=True))
    number = 0 if position is None else position.offset
    ref = RecursiveRef(number, outputs)
    step = grammar.query(query.args["expression"], replace(context, ctes={**context.ctes, name: ref}))
    if len(step.columns) != len(outputs):
        raise Refusal("both sides need the same number of columns", sqlstate="42601", position=position)
    _check_step(step, position)
    exprs: list[Expr] = []
    for index, (column, output) in enumerate(zip(step.columns, outputs, strict=True)):
        if common_type([column.type, output.type]) != output.type and column.type != output.type:
            raise Refusal(
                f'column {index + 1} of "{name}" is {output.type} first, and {column.type} then', sqlstate="42804",
                position=position, hint="cast it in the first query",
            )  # fmt: skip
        exprs.append(cast(Field(column.type, index), output.type, position))
    whole = projected(step, tuple(exprs), tuple(names), position)
    return Recursive(number, base, whole, not query.args.get("distinct"), outputs, position=position)


def _check_step(step: Relation, position: Position | None) -> None:
    """Check that the step reads the last round once, and row by row, as Postgres demands.

    Raises:
        Refusal: 42P19.
    """
    if _count(step) != 1:
        raise _wrong("the second query of a recursion reads the recursion once, outside subqueries", position)
    for part in parts_of(step):
        is_of_many = isinstance(part, SetOperation) or (
            isinstance(part, Block)
            and (part.group or part.windows or part.distinct or part.orders or part.limit)
        )
        if is_of_many and _count(part):
            raise _wrong(
                "the second query of a recursion neither aggregates, sorts nor combines its own rows",
                position,
            )
        if isinstance(part, Join):
            optional = {
                "left": (part.right,),
                "right": (part.left,),
                "full": part.inputs,
                "mark": (part.right,),
            }
            if any(map(_count, optional.get(part.kind, ()))):
                raise _wrong("a recursion does not stand on the optional side of a join", position)
        if isinstance(part, Lateral) and _count(part.right):
            raise _wrong("a recursion is not read inside a lateral subquery", position)


def _count(node: Relation) -> int:
    """Return how often a relation reads the recursion around it."""
    inner = {part.number for part in parts_of(node) if isinstance(part, Recursive)}
    return sum(isinstance(part, RecursiveRef) and part.number not in inner for part in _every(node))


def _every(node: Relation) -> list[Relation]:
    return [node, *(part for child in node.inputs for part in _every(child))]


def _wrong(message: str, position: Position | None) -> Refusal:
    return Refusal(message, sqlstate="42P19", position=position, hint=_HINT)


# --- UNION, INTERSECT and EXCEPT: both sides brought to the same column types -------------------------------


_KINDS: dict[type[exp.Expr], str] = {
    exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except",
}  # fmt: skip


def bind_set_operation(node: exp.Expr, context: BindingContext, grammar: Grammar) -> Relation:
    """Return the relation of a set operation with its ORDER BY and LIMIT.

    Raises:
        Refusal: 42601 or 42804 when the sides do not match, 0A000 for an ORDER BY that is no output column.
    """
    left, right = (grammar.query(node.args[side], context) for side in ("this", "expression"))
    position = position_of(context.text, node)
    if len(left.columns) != len(right.columns):
        raise Refusal("both sides need the same number of columns", sqlstate="42601", position=position)
    outputs = []
    for a, b in zip(left.columns, right.columns, strict=True):
        both = common_type([a.type, b.type])
        if both is None:
            raise Refusal(f"{a.type} and {b.type} cannot be matched", sqlstate="42804", position=position)
        outputs.append(OutputColumn(both, a.name))
    sides = [_as_types(side, outputs) for side in (left, right)]
    keeps = not node.args.get("distinct")
    relation: Relation = SetOperation(
        _KINDS[type(node)], keeps, sides[0], sides[1], tuple(outputs), position=position
    )
    binder = Binder(context, Scope([]), grammar, place="in ORDER BY", allow_aggregates=False)
    orders = _orders(binder, node, relation.columns)
    if orders:
        relation = ordered(relation, tuple(orders))
    return bind_limit(binder, node, relation)


def _orders(binder: Binder, node: exp.Expr, columns: Sequence[OutputColumn]) -> list[Order]:
    orders = []
    for item in node.args["order"].args["expressions"] if node.args.get("order") else []:
        index = output_index(binder, item.args["this"], columns, [])
        if index is None:
            raise Refusal(
                "ORDER BY after a set operation takes an output column",
                sqlstate="0A000",
                position=binder.position(item),
            )
        orders.append(
            Order(Field(columns[index].type, index), bool(item.args.get("desc")), nulls_first(item))
        )
    return orders


def _as_types(side: Relation, outputs: list[OutputColumn]) -> Relation:
    if all(c.type == o.type for c, o in zip(side.columns, outputs, strict=True)):
        return side
    exprs: list[Expr] = []
    for column, output in zip(side.row, outputs, strict=True):
        exprs.append(cast(column, output.type, None))
    return projected(side, exprs, (column.name for column in side.columns))
