"""Joins of released rows, the mark join among them: EXISTS and IN as a column or as a condition.

House rule: an OR in a mark's condition becomes one EXISTS for each side, since the engine finds a semi or
anti join for an equality alone and compares all pairs of rows otherwise (NOT IN is such an OR).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..relation.expressions import Call, Expr, Field, conjunction
from ..relation.relations import Join
from ..relation.types import BOOLEAN

__all__ = ["kept_mark", "print_join", "print_marked"]

Print = Callable[[Expr, Sequence[str]], str]
_MAX_ALTERNATIVES = 16


def print_join(node: Join, left: str, right: str, print_expr: Print) -> str:
    """Return the SELECT of a join of two printed sides, with columns c0, c1, …"""
    if node.kind == "mark":
        head, marks = _marks(node, right, print_expr)
        return f"{head}SELECT {_columns(node, '(' + ' OR '.join(marks) + ')')} FROM ({left}) AS a"
    own, other = _rows(node)
    shown = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate([*own, *other])) or "1 AS one"
    condition = "" if node.kind == "cross" else f" ON {print_expr(node.condition, [*own, *other])}"
    return f"SELECT {shown} FROM ({left}) AS a {node.kind.upper()} JOIN ({right}) AS b{condition}"


def print_marked(node: Join, is_true: bool, left: str, right: str, print_expr: Print) -> str:
    """Return the SELECT of the rows of a mark join whose mark is true, or is false."""
    head, marks = _marks(node, right, print_expr)
    condition = " OR ".join(marks) if is_true else " AND ".join(f"NOT {mark}" for mark in marks)
    return f"{head}SELECT {_columns(node, str(is_true).upper())} FROM ({left}) AS a WHERE {condition}"


def kept_mark(predicate: Expr, node: Join) -> bool | None:
    """Return which value of its mark a filter right above a mark join keeps; None for any other filter."""
    mark = Field(BOOLEAN, len(node.left.columns))
    if node.kind == "mark" and predicate == mark:
        return True
    return False if node.kind == "mark" and predicate == Call(BOOLEAN, "not", (mark,)) else None


def _rows(node: Join) -> tuple[list[str], list[str]]:
    left = [f"a.c{i}" for i in range(len(node.left.columns))]
    return left, [f"b.c{i}" for i in range(len(node.right.columns))]


def _columns(node: Join, mark: str) -> str:
    return ", ".join(f"{sql} AS c{i}" for i, sql in enumerate([*_rows(node)[0], mark]))


def _marks(node: Join, right: str, print_expr: Print) -> tuple[str, list[str]]:
    """Return what stands before the SELECT, and the EXISTS of which one is true where the mark is."""
    own, other = _rows(node)
    ways = [print_expr(condition, [*own, *other]) for condition in _alternatives(node.condition)]
    if len(ways) == 1:
        return "", [f"EXISTS (SELECT 1 FROM ({right}) AS b WHERE {ways[0]})"]
    return f"WITH w AS MATERIALIZED ({right}) ", [
        f"EXISTS (SELECT 1 FROM w AS b WHERE {way})" for way in ways
    ]


def _alternatives(condition: Expr) -> list[Expr]:
    """Return conditions of which one is true where the condition is: its OR taken apart."""
    found, rest = [condition], True
    while rest:
        rest = False
        for index, one in enumerate(found):
            split = _split(one)
            if split and len(found) + len(split) <= _MAX_ALTERNATIVES:
                found[index : index + 1] = split
                rest = True
                break
    return found


def _split(condition: Expr) -> list[Expr]:
    if condition.calls("or"):
        return list(condition.args)
    for index, term in enumerate(condition.args if condition.calls("and") else ()):
        if term.calls("or"):
            others = (*condition.args[:index], *condition.args[index + 1 :])
            return [conjunction((*others, way)) for way in term.args]
    return []
