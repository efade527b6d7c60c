"""Calls of functions in a catalog query: those of the table, aggregates, and those that need a reading of their own.

What returns several rows becomes the array of them, which the engine unnests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from .errors import unsupported
from .functions import AGGREGATES, BARE, FUNCTIONS
from .overloads import apply
from .pg_types import BY_NAME, INT8, NUMERIC, REGTYPE, TEXT, UNKNOWN
from .scope import CatalogScope
from .tree import CallNode, parts_of, sort_keys
from .typed import Typed, coerce, null_of, quoted

if TYPE_CHECKING:
    from .bind_expression import ExpressionBinder

__all__ = ["CATALOG_CALLS", "bind_call", "bind_item", "sort_key"]

_RANKINGS = frozenset({"row_number", "rank", "dense_rank"})
_FORMAT = re.compile(r"%([sIL%])")


# --- calls --------------------------------------------------------------------------------------------


def bind_call(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    """Return a call in the engine's SQL. Raises CatalogRefusal."""
    is_set, found = bind_item(binder, node, scope)
    return Typed(f"unnest({found.sql})", found.type) if is_set else found


def bind_item(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> tuple[bool, Typed]:
    """Return whether a call returns rows, and it, or the array of them. Raises CatalogRefusal."""
    name = BARE.get(node.name, node.name)
    if name in _RANKINGS and node.window is not None and not node.arguments:
        return False, Typed(f"{name}() {_over(binder, node, scope)}", INT8)
    if name in AGGREGATES:
        return False, _aggregate(binder, node, scope)
    if node.is_star or node.is_distinct or node.order or node.filter is not None or node.window is not None:
        raise unsupported(f"this form of the function {name[:60]}")
    special = CATALOG_CALLS.get(name) or _CALLS.get(name)
    if special is not None:
        return False, special(binder, node, scope)
    return _from_table(binder, name, [binder.bind(argument, scope) for argument in node.arguments])


def _from_table(binder: ExpressionBinder, name: str, values: list[Typed]) -> tuple[bool, Typed]:
    form, found = apply(binder.context, FUNCTIONS, name, values)
    return form.is_set, found if form.is_set else Typed(f"({found.sql})", found.type)


# --- aggregates ----------------------------------------------------------------------------------------------


def _aggregate(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    if node.is_star and node.name == "count":
        sql, returns = "count(*)", INT8
    else:
        values = [binder.bind(argument, scope) for argument in node.arguments]
        _, found = apply(binder.context, AGGREGATES, node.name, values)
        order = f" ORDER BY {_ordered(binder, node.order, scope)}" if node.order else ""
        engine, _, rest = found.sql.removesuffix(")").partition("(")
        sql, returns = f"{engine}({'DISTINCT ' if node.is_distinct else ''}{rest}{order})", found.type
    if node.filter is not None:
        sql += f" FILTER (WHERE {binder.condition(node.filter, scope)})"
    if node.window is not None:
        sql += f" {_over(binder, node, scope)}"
    if node.name == "sum" or node.name == "avg":
        sql = f"CAST({sql} AS {returns.holder})"
    return Typed(sql, returns)


def _ordered(binder: ExpressionBinder, keys: Sequence[exp.Ordered], scope: CatalogScope) -> str:
    """Return the items of ORDER BY, where no name is an output column's. Raises CatalogRefusal."""
    return ", ".join(sort_key(binder.bind_as_is(key.this, scope), key) for key in keys)


def _over(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> str:
    assert node.window is not None
    parts, order = [], sort_keys(node.window)
    if node.window.args.get("partition_by"):
        keys = ", ".join(binder.bind_as_is(key, scope) for key in node.window.args["partition_by"])
        parts.append(f"PARTITION BY {keys}")
    if order:
        parts.append(f"ORDER BY {_ordered(binder, order, scope)}")
    return f"OVER ({' '.join(parts)})"


# --- functions with a reading of their own ----------------------------------------------------------------------


def _setting(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    """Bind current_setting, and set_config, which changes nothing and says what holds."""
    if not node.arguments:
        raise unsupported(f"this form of {node.name}")
    name = binder.bind(node.arguments[0], scope)
    for argument in node.arguments[1:]:
        binder.bind_as(argument, scope, TEXT)
    if name.literal is not None:
        may_miss = isinstance(node.arguments[-1], exp.Boolean) and bool(node.arguments[-1].this)
        word = name.literal.lower()
        binder.context.settings.append(("?" if may_miss else "!") + word)
        return Typed(f"CAST($s{len(binder.context.settings)} AS VARCHAR)", TEXT)
    sought = coerce(binder.context, name, TEXT).sql
    place = f"list_position(CAST($setting_names AS VARCHAR[]), lower({sought}))"
    return Typed(f"list_extract(CAST($setting_values AS VARCHAR[]), {place})", TEXT)


def _format(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    if not node.arguments or not isinstance(node.arguments[0], exp.Literal):
        raise unsupported("format with a changing pattern")
    pattern = str(node.arguments[0].this)
    values = [coerce(binder.context, binder.bind(part, scope), TEXT) for part in node.arguments[1:]]
    parts, at, turn = [], 0, 0
    for mark in _FORMAT.finditer(pattern):
        parts.append(quoted(pattern[at : mark.start()]))
        at = mark.end()
        if mark[1] == "%":
            parts.append("'%'")
            continue
        if turn >= len(values):
            raise unsupported("format with too few values")
        value = values[turn]
        turn += 1
        parts.append(
            _from_table(binder, {"I": "quote_ident", "L": "quote_literal"}[mark[1]], [value])[1].sql
            if mark[1] != "s"
            else value.sql
        )
    parts.append(quoted(pattern[at:]))
    return Typed(f"concat({', '.join(parts)})", TEXT)


def _json(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    parts = []
    for at, argument in enumerate(node.arguments):
        value = binder.bind(argument, scope)
        is_text = at % 2 == 0 or value.type is UNKNOWN or value.type.is_object
        parts.append(coerce(binder.context, value, TEXT).sql if is_text else value.sql)
    return Typed(f"CAST(json_object({', '.join(parts)}) AS VARCHAR)", BY_NAME["json"])


def _row_to_json(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    row = node.arguments[0] if len(node.arguments) == 1 else None
    source = scope.source(parts_of(row)[-1]) if isinstance(row, exp.Column) and not row.table else None
    if source is None:
        raise unsupported("row_to_json of what is no item of FROM")
    parts = []
    for name, value in source.columns:
        sql = coerce(binder.context, value, TEXT).sql if value.type.is_object else value.sql
        if value.type is NUMERIC:
            sql = f"CAST(rtrim(rtrim(CAST({sql} AS VARCHAR), '0'), '.') AS JSON)"
        parts.append(f"{quoted(name)}, {sql}")
    return Typed(f"CAST(json_object({', '.join(parts)}) AS VARCHAR)", BY_NAME["json"])


def _to_regtype(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    if len(node.arguments) != 1:
        raise unsupported("this form of to_regtype")
    value = binder.bind(node.arguments[0], scope)
    if value.literal is not None:
        found = binder.context.names.type(value.literal)
        return null_of(REGTYPE) if found is None else Typed(f"CAST({found} AS BIGINT)", REGTYPE)
    text = coerce(binder.context, value, TEXT).sql
    return coerce(binder.context, Typed(f"lower({text})", TEXT), REGTYPE)


def _substring(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    values = [binder.bind(argument, scope) for argument in node.arguments]
    if len(values) == 2 and (values[1].type.is_text or values[1].literal is not None):
        text, pattern = (coerce(binder.context, value, TEXT).sql for value in values)
        group = 1 if values[1].literal is not None and re.search(r"\((?!\?)", values[1].literal) else 0
        found = f"regexp_extract({text}, {pattern}, {group})"
        return Typed(f"CASE WHEN regexp_matches({text}, {pattern}) THEN {found} END", TEXT)
    return _from_table(binder, "substring", values)[1]


def sort_key(sql: str, key: exp.Ordered) -> str:
    """Return an item of ORDER BY: NULLs come last, and first where it descends, unless it is said."""
    nulls_first, is_descending = key.args.get("nulls_first"), key.args.get("desc")
    return f"{sql} {'DESC' if is_descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"


_Binder = Callable[["ExpressionBinder", CallNode, CatalogScope], Typed]

CATALOG_CALLS: dict[str, _Binder] = {
    **dict.fromkeys(("current_setting", "set_config"), _setting),
    "format": _format,
    "to_regtype": _to_regtype,
}
"""Functions of this module that dpsql's own SQL has not."""
_CALLS: dict[str, _Binder] = {
    **dict.fromkeys(("json_build_object", "jsonb_build_object"), _json),
    "row_to_json": _row_to_json,
    "substring": _substring,
}
