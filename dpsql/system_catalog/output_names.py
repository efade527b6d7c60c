"""The name that Postgres gives to a column of a result that has no alias."""

from __future__ import annotations

from .syntax import (
    ArrayList,
    ArrayQuery,
    CallNode,
    CaseNode,
    Cast,
    Exists,
    Expression,
    FieldNode,
    Name,
    QueryNode,
    Row,
    ScalarQuery,
    Select,
    Slice,
    Subscript,
    TypeName,
)

__all__ = ["output_name", "type_label"]

_INTERNAL = {
    "boolean": "bool", "bigint": "int8", "smallint": "int2", "integer": "int4", "int": "int4", "real": "float4",
    "float": "float8", "decimal": "numeric", "character": "bpchar", '"char"': "char",
}  # fmt: skip
_FIXED = ((ArrayList, "array"), (ArrayQuery, "array"), (Exists, "exists"), (Row, "row"))


def output_name(expression: Expression) -> str:
    """Return the name of a column."""
    return _name(expression)[0]


def _name(expression: Expression) -> tuple[str, int]:
    """Return a name, and how good it is: 2 for a column's or function's, 1 for a type's, 0 for none."""
    match expression:
        case Name(parts):
            return parts[-1], 2
        case FieldNode(_, name):
            return name, 2
        case CallNode(name):
            return name, 2
        case Subscript(inner, _) | Slice(inner, _, _):
            return _name(inner)
        case Cast(inner, type_):
            name, strength = _name(inner)
            return (name, strength) if strength > 1 else (type_label(type_), 1)
        case CaseNode(_, _, default):
            name, strength = _name(default) if default is not None else ("", 0)
            return (name, strength) if strength > 1 else ("case", 1)
        case ScalarQuery(query):
            return _of_query(query), 2
        case _:
            return next(((name, 2) for kind, name in _FIXED if isinstance(expression, kind)), ("?column?", 0))


def _of_query(query: QueryNode) -> str:
    body = query.body
    while isinstance(body, QueryNode):
        body = body.body
    if isinstance(body, Select) and body.items:
        expression, alias = body.items[0]
        return alias if alias is not None else output_name(expression)
    return "?column?"


def type_label(type_: TypeName) -> str:
    """Return a type's name as a cast gives it to a column."""
    return _INTERNAL.get(type_.name, type_.name)
