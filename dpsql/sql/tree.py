"""What a tree of the parser says, read the same way everywhere: without brackets, by name, as a list."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["bare", "called", "listed"]


def bare(node: exp.Expr) -> exp.Expr:
    """Return a node without the brackets about it."""
    while isinstance(node, exp.Paren):
        node = node.args["this"]
    return node


def called(node: object) -> str | None:
    """Return the name of a function that the parser has no node for, in small letters; None: it is no call of one."""
    return str(node.args["this"]).lower() if isinstance(node, exp.Anonymous) else None


def listed(node: exp.Expr) -> list[exp.Expr]:
    """Return what stands in a node's list: arguments, items of a row or an array; none where it has no list."""
    return list(node.args.get("expressions") or [])
