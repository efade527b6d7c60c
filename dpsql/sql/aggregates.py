"""How aggregates are written: the rows of `relation.aggregates` by the parser's nodes, and by names."""

from __future__ import annotations

from sqlglot import exp

from ..relation.aggregates import ROWS, Aggregate

__all__ = ["AGGREGATES", "NAMED", "ORDERED"]

_PLAIN = [row for row in ROWS if not row.is_ordered and not row.form]
AGGREGATES = {node: row for row in _PLAIN for node in row.nodes}
"""Kind of node -> row, of those whose arguments stand in parentheses and nothing else."""
ORDERED: dict[type[exp.Expr], Aggregate] = {node: row for row in ROWS if row.is_ordered for node in row.nodes}
"""Kind of node before WITHIN GROUP (ORDER BY the argument) -> row."""
NAMED = {name: row for row in _PLAIN for name in row.names}
"""Name of a function that the parser has no node for -> row."""
