"""The name of an output column without an alias, as Postgres' FigureColname gives it."""

from __future__ import annotations

from sqlglot import exp

from ..relation.functions import WRITTEN
from ..relation.types import Kind, SqlType
from .aggregates import AGGREGATES, ORDERED
from .public_aggregates import PUBLIC_AGGREGATES
from .scope import fold_name

__all__ = ["output_name"]

_UNNAMED = "?column?"
_TYPES = {
    Kind.SMALLINT: "int2", Kind.INTEGER: "int4", Kind.BIGINT: "int8", Kind.REAL: "float4", Kind.DOUBLE: "float8",
    Kind.BOOLEAN: "bool",
}  # fmt: skip
_FUNCTIONS: dict[type[exp.Expr], str] = {
    **{node: row.output or row.name for node, row in WRITTEN.items()},
    exp.Explode: "unnest", exp.StrToDate: "to_date", exp.StrToTime: "to_timestamp",
    exp.ExplodingGenerateSeries: "generate_series",
    **{node: row.name for node, row in PUBLIC_AGGREGATES.items()},
    **{node: row.output for node, row in (AGGREGATES | ORDERED).items() if row.output},
}  # fmt: skip
_OPERATORS = (
    exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.ArrayContainedBy,
    exp.ArrayContainsAll, exp.ArrayOverlaps,
)  # fmt: skip
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}


def output_name(item: exp.Expr, type_: SqlType) -> str:
    """Return the name of a SELECT item of a type."""
    if isinstance(item, exp.Alias):
        return fold_name(item.args["alias"])[0]
    return _figured(item, type_)[0]


def _figured(item: exp.Expr, type_: SqlType | None) -> tuple[str, bool]:
    """Return a name, and whether it is a strong one, that a cast or a CASE around it keeps."""
    if isinstance(item, exp.Column):
        return fold_name(item.args["this"])[0], True
    if isinstance(item, (exp.Paren, exp.Filter, exp.Window, exp.WithinGroup, exp.Bracket)):
        return _figured(item.args["this"], type_)
    if isinstance(item, exp.Subquery):
        return _of_subquery(item)
    if isinstance(item, exp.Cast):
        name, is_strong = _figured(item.args["this"], None)
        if isinstance(item.args["this"], exp.Array):
            return "array", True
        return (name, True) if is_strong else (_type_name(item, type_), False)
    if isinstance(item, exp.Case):
        default = item.args.get("default")
        name, is_strong = (_UNNAMED, False) if default is None else _figured(default, None)
        return (name, True) if is_strong else ("case", False)
    if isinstance(item, exp.Interval):
        return "interval", False
    if isinstance(item, exp.Trim):
        return _TRIMS.get(str(item.args.get("position") or "").upper(), "btrim"), True
    if isinstance(item, _OPERATORS):
        return _UNNAMED, False
    if isinstance(item, exp.Anonymous):
        return str(item.args["this"]).lower(), True
    if isinstance(item, exp.Func) and not isinstance(item, (exp.And, exp.Or)):
        return _FUNCTIONS.get(type(item), item.sql_name().lower()), True
    return _UNNAMED, False


def _of_subquery(item: exp.Subquery) -> tuple[str, bool]:
    query = item.args["this"]
    while isinstance(query, (exp.SetOperation, exp.Subquery)):
        query = query.args["this"]
    if not isinstance(query, exp.Select):
        return "column1", True
    first = query.args["expressions"][0]
    if isinstance(first, exp.Alias):
        return fold_name(first.args["alias"])[0], True
    name, _ = _figured(first, None)
    return name, name != _UNNAMED


def _type_name(item: exp.Cast, type_: SqlType | None) -> str:
    written = getattr(item.args["to"].args.get("this"), "name", "")
    if type_ is not None and type_.element is not None:
        return _TYPES.get(type_.element.kind, type_.element.kind.value)
    if written == "VARCHAR" or type_ is None:
        return str(written).lower()
    return _TYPES.get(type_.kind, type_.kind.value)
