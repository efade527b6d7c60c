"""One row an aggregate that stands above the release and on public tables alone: how it is written, and its type.

How each is printed is `postprocess.print_aggregates`' to say. Over people's rows they are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import Expr, Literal
from ..relation.types import JSON, JSONB, TEXT, Kind, SqlType, array_of

__all__ = [
    "PUBLIC_AGGREGATES", "PUBLIC_NAMED", "PublicAggregate", "checked_result", "inner_order", "public_row",
    "written_arguments",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class PublicAggregate:
    """A row of the table. `result`: the type for the arguments', None where they do not fit.

    `nodes`: the parser's, whose arguments `args` are in order; `names`: what it has no node for. `constants`: how many
    of the last arguments are literals. `form` and `doc`: its line in the manual.
    """

    name: str
    count: int
    result: Callable[[tuple[SqlType, ...]], SqlType | None]
    form: str
    doc: str
    nodes: tuple[type[exp.Expr], ...] = ()
    args: tuple[str, ...] = ("this",)
    names: tuple[str, ...] = ()
    constants: int = 0


def _text(types: tuple[SqlType, ...]) -> SqlType | None:
    return TEXT if all(one.kind in (Kind.TEXT, Kind.NULL) for one in types) else None


def _array(types: tuple[SqlType, ...]) -> SqlType | None:
    kind = types[0].kind
    if kind is Kind.NULL:
        return array_of(TEXT)
    return None if kind in (Kind.OPAQUE, Kind.ARRAY, Kind.INTERVAL) else array_of(types[0])


def _bits(types: tuple[SqlType, ...]) -> SqlType | None:
    return types[0] if types[0].is_integer else None


def _same(types: tuple[SqlType, ...]) -> SqlType | None:
    return None if types[0].kind in (Kind.OPAQUE, Kind.INTERVAL) else types[0]


def _json(result: SqlType) -> Callable[[tuple[SqlType, ...]], SqlType | None]:
    return lambda types: result


def _members(result: SqlType) -> Callable[[tuple[SqlType, ...]], SqlType | None]:
    never = (Kind.OPAQUE, Kind.ARRAY, Kind.INTERVAL, Kind.JSON, Kind.JSONB)
    return lambda types: None if types[0].kind in never else result


_ROWS = (
    PublicAggregate(
        "string_agg", 2, _text, "string_agg(x, ', ' ORDER BY y)", "texts joined, NULL left out",
        (exp.GroupConcat,), ("this", "separator"), constants=1,
    ),
    PublicAggregate(
        "array_agg", 1, _array, "array_agg(x ORDER BY y)", "values as an array, NULL too", (exp.ArrayAgg,)
    ),
    PublicAggregate("bit_and", 1, _bits, "bit_and(x)", "the bits that all integers have", (exp.BitwiseAndAgg,)),
    PublicAggregate("bit_or", 1, _bits, "bit_or(x)", "the bits that some integer has", (exp.BitwiseOrAgg,)),
    PublicAggregate(
        "bit_xor", 1, _bits, "bit_xor(x)", "the bits that an odd number of integers has", (exp.BitwiseXorAgg,)
    ),
    PublicAggregate("any_value", 1, _same, "any_value(x)", "one of the values that are not NULL", (exp.AnyValue,)),
    PublicAggregate(
        "json_agg", 1, _json(JSON), "json_agg(x ORDER BY y)", "values, or rows, as an array of JSON",
        names=("json_agg",),
    ),
    PublicAggregate("jsonb_agg", 1, _json(JSONB), "jsonb_agg(x ORDER BY y)", "the same", names=("jsonb_agg",)),
    PublicAggregate(
        "json_object_agg", 2, _members(JSON), "json_object_agg(k, x ORDER BY k)",
        "keys and values as an object of JSON",
        names=("json_object_agg",),
    ),
    PublicAggregate(
        "jsonb_object_agg", 2, _members(JSONB), "jsonb_object_agg(k, x)", "the same, the last value of each key",
        names=("jsonb_object_agg",),
    ),
)  # fmt: skip
PUBLIC_AGGREGATES = {node: row for row in _ROWS for node in row.nodes}
"""Kind of node -> row."""
PUBLIC_NAMED = {name: row for row in _ROWS for name in row.names}
"""Name of a function that the parser has no node for -> row."""


def public_row(node: exp.Expr) -> PublicAggregate | None:
    """Return the row of a call; None: it is of no such aggregate."""
    if isinstance(node, exp.Anonymous):
        return PUBLIC_NAMED.get(str(node.args["this"]).lower())
    return PUBLIC_AGGREGATES.get(type(node))


def inner_order(node: exp.Expr | None) -> tuple[exp.Expr | None, exp.Expr | None]:
    """Return what an aggregate is of, and the ORDER BY written behind it."""
    if isinstance(node, exp.Order) and node.args.get("this") is not None:
        return node.args["this"], node
    return node, None


def written_arguments(node: exp.Expr, row: PublicAggregate) -> tuple[list[exp.Expr], bool, exp.Expr | None]:
    """Return the arguments as written, whether each value counts once, and the ORDER BY."""
    if isinstance(node, exp.Anonymous):
        parts = list(node.args.get("expressions") or [])
    else:
        parts = [part for name in row.args if (part := node.args.get(name)) is not None]
    found: list[exp.Expr] = []
    distinct, order = False, None
    for part in parts:
        inner, own = inner_order(part)
        order = own or order
        if isinstance(inner, exp.Distinct):
            distinct = True
            found += inner.args["expressions"]
        elif inner is not None:
            found.append(inner)
    return found, distinct, order


def checked_result(row: PublicAggregate, args: tuple[Expr, ...], position: Position | None) -> SqlType:
    """Return the type of a call.

    Raises:
        Refusal: 42883 for arguments that do not fit, 0A000 for one that is to be a constant.
    """
    if len(args) != row.count:
        raise Refusal(
            f"{row.name}() takes {row.count} argument{'s' if row.count > 1 else ''}", sqlstate="42883",
            position=position, hint=row.form,
        )  # fmt: skip
    result = row.result(tuple(arg.type for arg in args))
    if result is None:
        types = ", ".join(str(arg.type) for arg in args)
        raise Refusal(
            f"{row.name}({types}) does not exist",
            sqlstate="42883",
            position=position,
            hint="cast the arguments",
        )
    if row.constants and not all(isinstance(arg, Literal) for arg in args[-row.constants :]):
        raise Refusal(
            f"the last argument of {row.name}() is a constant here",
            sqlstate="0A000",
            position=position,
            hint=row.form,
        )
    return result
