"""What sqlglot's nodes say, as the binder asks it: names, types, calls, aliases, names of columns without one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from .errors import unsupported
from .read_tokens import HIDDEN

__all__ = [
    "CallNode", "TypeName", "alias_of", "call_of", "inner", "is_query", "name_of", "output_name", "parts_of",
    "plain", "sort_keys", "type_of",
]  # fmt: skip

_MODIFIERS = ("order", "limit", "offset", "with_")
_SIDES = {"LEADING": "ltrim", "TRAILING": "rtrim"}


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as it is written, by its name in pg_type."""

    name: str
    modifiers: tuple[int, ...] = ()
    is_array: bool = False


@dataclass(frozen=True, slots=True)
class CallNode:
    """A function's call."""

    name: str
    arguments: tuple[exp.Expr, ...] = ()
    is_star: bool = False
    is_distinct: bool = False
    order: Sequence[exp.Ordered] = ()
    filter: exp.Expr | None = None
    window: exp.Window | None = None


def name_of(node: object) -> str:
    """Return an identifier's name. Raises CatalogRefusal: it is none."""
    if isinstance(node, (exp.Identifier, exp.Anonymous, exp.Var)) and isinstance(node.this, str):
        return node.this if node.args.get("quoted") else node.this.removeprefix(HIDDEN).lower()
    raise unsupported("a name expected")


def parts_of(node: exp.Column) -> tuple[str, ...]:
    """Return the names of a column; the last is "" for *."""
    found = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
    return tuple("" if isinstance(part, exp.Star) else name_of(part) for part in found if part is not None)


def alias_of(node: exp.Expr) -> tuple[str | None, tuple[str, ...]]:
    """Return the alias of an item of FROM or WITH, and its columns' names."""
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return None, ()
    name = alias.args.get("this")
    return None if name is None else name_of(name), tuple(map(name_of, alias.args.get("columns") or ()))


def inner(node: exp.Expr) -> exp.Expr:
    """Return what stands in parentheses that mean nothing."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def is_query(node: object) -> bool:
    """Say whether a node is a query; VALUES is none to the parser."""
    return isinstance(node, (exp.Query, exp.Values))


def plain(query: exp.Expr) -> exp.Expr:
    """Return a query without its alias, and without parentheses that mean nothing."""
    while isinstance(query, exp.Subquery) and not any(query.args.get(name) for name in _MODIFIERS):
        query = query.this
    return query


def sort_keys(node: exp.Expr) -> Sequence[exp.Ordered]:
    """Return the items of ORDER BY of a query or a window."""
    order = node.args.get("order")
    return () if order is None else order.expressions


def type_of(node: exp.Expr) -> TypeName:
    """Return the type of a cast. Raises CatalogRefusal: it is none that is read."""
    is_array = False
    while isinstance(node, exp.DataType) and node.this is exp.DType.ARRAY:
        node, is_array = node.expressions[0], True
    if not isinstance(node, exp.DataType) or node.this is not exp.DType.USERDEFINED:
        raise unsupported("a type expected")
    found = [part.name for part in node.expressions]
    if not all(text.isdigit() and len(text) < 9 for text in found):
        raise unsupported("a type's modifier")
    return TypeName(str(node.args["kind"].this).removeprefix(HIDDEN), tuple(map(int, found)), is_array)


def call_of(node: exp.Expr) -> CallNode | None:
    """Return a node as a call; None where it is none. Raises CatalogRefusal: a call of a form that is not read."""
    window = node if isinstance(node, exp.Window) else None
    if window is not None:
        node = inner(window.this)
    condition = None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    if isinstance(node, exp.Anonymous):
        return _anonymous(node, condition, window)
    found = _form(node)
    if (window is not None or condition is not None) and found is None:
        raise unsupported("a window over something else than a function")
    return found


def _form(node: exp.Expr) -> CallNode | None:
    """Return a form with words of its own as a call."""
    match node:
        case exp.Trim():
            parts: Iterable[exp.Expr | None] = (node.this, node.args.get("expression"))
            name = _SIDES.get(str(node.args.get("position")).upper(), "btrim")
        case exp.Substring():
            start = node.args.get("start")
            length = node.args.get("length")
            first = exp.Literal.number(1) if start is None and length is not None else start
            parts, name = (node.this, first, length), "substring"
        case exp.StrPosition():
            parts, name = (node.this, node.args["substr"]), "position"
        case exp.AtTimeZone():
            parts, name = (node.args["zone"], node.this), "timezone"
        case _:
            return None
    return CallNode(name, tuple(part for part in parts if part is not None))


def _anonymous(node: exp.Anonymous, condition: exp.Expr | None, window: exp.Window | None) -> CallNode:
    arguments, is_distinct = list(node.expressions), False
    order: Sequence[exp.Ordered] = ()
    if arguments and isinstance(arguments[-1], exp.Order):
        order, arguments[-1] = arguments[-1].expressions, arguments[-1].this
    if arguments and isinstance(arguments[0], exp.Distinct):
        is_distinct, arguments = True, [*arguments[0].expressions, *arguments[1:]]
    is_star = len(arguments) == 1 and isinstance(arguments[0], exp.Star)
    found = [part.this if isinstance(part, exp.Variadic) else part for part in arguments]
    return CallNode(
        name_of(node), () if is_star else tuple(found), is_star, is_distinct, order, condition, window
    )


# --- the name that Postgres gives to a column of a result without an alias ----------------------------


def output_name(expression: exp.Expr) -> str:
    """Return the name of a column."""
    return _name(expression)[0]


def _name(expression: exp.Expr) -> tuple[str, int]:
    """Return a name, and how good it is: 2 for a column's or function's, 1 for a type's, 0 for none."""
    match inner(expression):
        case exp.Column() as column:
            return parts_of(column)[-1], 2
        case exp.Dot(expression=exp.Identifier() as field):
            return name_of(field), 2
        case exp.Bracket(this=array):
            return _name(array)
        case exp.Cast(this=value, args=args):
            name, strength = _name(value)
            return (name, strength) if strength > 1 else (type_of(args["to"]).name.strip('"'), 1)
        case exp.Case(args=args):
            default = args.get("default")
            name, strength = _name(default) if default is not None else ("", 0)
            return (name, strength) if strength > 1 else ("case", 1)
        case exp.Subquery(this=query):
            return _of_query(query), 2
        case exp.Array() | exp.Exists() | exp.Tuple() as node:
            return ("row" if isinstance(node, exp.Tuple) else node.key), 2
        case other:
            call = call_of(other)
            return ("?column?", 0) if call is None else (call.name, 2)


def _of_query(query: exp.Expr) -> str:
    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.Select) and query.expressions:
        first = query.expressions[0]
        return name_of(first.args["alias"]) if isinstance(first, exp.Alias) else output_name(first)
    return "?column?"
