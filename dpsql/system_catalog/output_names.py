"""The name that Postgres gives to a column of a result that has no alias."""

from __future__ import annotations

from sqlglot import exp

from .tree import TypeName, call_of, inner, name_of, parts_of, type_of

__all__ = ["output_name", "type_label"]

_INTERNAL = {
    "boolean": "bool", "bigint": "int8", "smallint": "int2", "integer": "int4", "int": "int4", "real": "float4",
    "float": "float8", "decimal": "numeric", "character": "bpchar", '"char"': "char",
}  # fmt: skip


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
            return (name, strength) if strength > 1 else (type_label(type_of(args["to"])), 1)
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


def type_label(type_: TypeName) -> str:
    """Return a type's name as a cast gives it to a column."""
    return _INTERNAL.get(type_.name, type_.name)
