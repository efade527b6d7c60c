"""Queries that look at a table's rows as they are, by their text: `SELECT * FROM t`, `SELECT … FROM t LIMIT n`,
EXISTS over a table.

EXISTS is asked for as a value, or as the condition of one row: `SELECT 1 FROM (SELECT 1) AS one WHERE EXISTS (…)`.

Only the form is read here; whose rows they are is not known. A form that is not surely one of these is none.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from sqlglot import exp

from .scope import fold_name

__all__ = ["Look", "look_of"]


class Look(enum.Enum):
    """What a query looks at."""

    ROWS = "rows of a table, or a constant for each, within a LIMIT"
    ALL_ROWS = "columns of all rows of a table"
    SOME_ROWS = "columns of the rows of a table that a condition keeps"
    EXISTENCE = "whether a table has rows"
    ONE_ROW = "one row where a table has rows"


_CLAUSES = frozenset({"expressions", "from_", "where", "order", "limit", "offset", "with_"})
"""What a query of a table's plain rows may be made of."""
_NOT_PLAIN = (exp.AggFunc, exp.Anonymous, exp.Explode, exp.Query, exp.Window)
_ROWS_OF_ITEMS = (exp.AggFunc, exp.Anonymous, exp.Explode, exp.Window)
"""What may make another number of rows than one of a query without a table."""
_NESTED = 8
"""Most subqueries in FROM around a table."""


def look_of(tree: exp.Expr) -> Look | None:
    """Return what a whole statement looks at; None: it asks for something else."""
    select = _bare(tree)
    if not isinstance(select, exp.Select):
        return None
    if _is_one_row(select):
        return Look.ONE_ROW
    if select.args.get("from_") is None:
        return Look.EXISTENCE if _asks_existence(select) else None
    if not _is_plain(select, {}, _NESTED):
        filtered = {**select.args, "where": None}
        is_kept = _is_plain(exp.Select(**filtered), {}, _NESTED) and _has_columns_alone(select)
        return Look.SOME_ROWS if is_kept else None
    if _is_limited(select):
        return Look.ROWS
    return Look.ALL_ROWS if _has_columns_alone(select) else None


def _has_columns_alone(select: exp.Select) -> bool:
    items = [
        item.args["this"] if isinstance(item, exp.Alias) else item for item in select.args["expressions"]
    ]
    return all(isinstance(item, (exp.Star, exp.Column)) for item in items)


def _bare(node: exp.Expr) -> exp.Expr:
    """Return a query out of its parentheses."""
    while isinstance(node, exp.Subquery) and not _given(node) - {"this", "alias"}:
        node = node.args["this"]
    return node


def _given(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value is not None and value != []}


def _asks_existence(select: exp.Select) -> bool:
    items = select.args["expressions"]
    if len(items) != 1 or _given(select) - {"expressions"}:
        return False
    return _is_existence(items[0].args["this"] if isinstance(items[0], exp.Alias) else items[0])


def _is_one_row(select: exp.Select) -> bool:
    """Say whether a query is of no table or of one row without a table, under the condition that EXISTS is."""
    where, from_ = select.args.get("where"), select.args.get("from_")
    if where is None or _given(select) - {"expressions", "from_", "where", "limit"}:
        return False
    source = None if from_ is None else from_.args["this"]
    inner = _bare(source) if isinstance(source, exp.Subquery) else None
    is_single = (
        isinstance(inner, exp.Select) and _given(inner) == {"expressions"} and not inner.find(*_ROWS_OF_ITEMS)
    )
    return (source is None or is_single) and _is_existence(where.args["this"])


def _is_existence(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren):
        node = node.args["this"]
    return isinstance(node, exp.Exists) and _is_plain(_bare(node.args["this"]), {}, _NESTED)


def _is_limited(select: exp.Select) -> bool:
    clause = select.args.get("limit")
    written = clause.args.get("expression") if isinstance(clause, exp.Limit) else clause
    return written is not None and not isinstance(written, (exp.Var, exp.Null))


def _is_plain(node: exp.Expr, ctes: Mapping[str, exp.Expr], depth: int) -> bool:
    """Say whether a query is of one table's rows as they are, whichever of their columns."""
    select = _bare(node)
    if not isinstance(select, exp.Select) or _given(select) - _CLAUSES or not depth:
        return False
    with_ = select.args.get("with_")
    for cte in with_.args["expressions"] if with_ is not None else ():
        ctes = {**ctes, fold_name(cte.args["alias"].args["this"])[0]: cte.args["this"]}
    order, where = select.args.get("order"), select.args.get("where")
    written = [*select.args["expressions"], *([] if order is None else [order])]
    if any(part.find(*_NOT_PLAIN) for part in written):
        return False
    if where is not None and not _is_always_true(where.args["this"]):
        return False
    source = select.args["from_"].args["this"] if select.args.get("from_") is not None else None
    if isinstance(source, exp.Table):
        known = None if source.args.get("db") else ctes.get(fold_name(source.args["this"])[0])
        return not source.args.get("joins") and (known is None or _is_plain(known, {}, depth - 1))
    if isinstance(source, exp.Subquery):
        return not source.args.get("joins") and _is_plain(source.args["this"], ctes, depth - 1)
    return False


def _is_always_true(node: exp.Expr) -> bool:
    """Say whether a condition is TRUE, or an equality of a literal with itself, as programs write it."""
    while isinstance(node, exp.Paren):
        node = node.args["this"]
    if isinstance(node, exp.Boolean):
        return bool(node.args["this"])
    if not isinstance(node, exp.EQ):
        return False
    left, right = node.args["this"], node.args["expression"]
    return isinstance(left, exp.Literal) and left == right
