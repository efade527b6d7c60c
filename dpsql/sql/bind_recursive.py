"""WITH RECURSIVE: a query, UNION [ALL], and a query over the rows of the last round; above the release alone."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import Expr, Field
from ..relation.forms import Lateral, Recursive, RecursiveRef
from ..relation.functions import common_type
from ..relation.relations import Block, Join, OutputColumn, Relation, SetOperation, parts_of, projected
from .bind_expression import Grammar, cast
from .scope import BindingContext, fold_name

__all__ = ["bind_recursive", "names_itself"]

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
