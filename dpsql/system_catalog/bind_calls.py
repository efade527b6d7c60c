"""Calls of functions in a catalog query: those of the table, aggregates, and those that need a reading of their own.

What returns several rows becomes the array of them, which the engine unnests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from .errors import MOST_OF_A_SERIES, CatalogRefusal, raised, unsupported
from .functions import AGGREGATES, BARE, FUNCTIONS, Signature
from .pg_types import (
    BOOL,
    BY_NAME,
    CHAR,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    NUMERIC,
    RECORD,
    REGTYPE,
    TEXT,
    UNKNOWN,
    PgType,
    array_of,
)
from .scope import CatalogScope
from .tree import CallNode, parts_of, sort_keys
from .typed import Typed, coerce, null_of, quoted

if TYPE_CHECKING:
    from .bind_expression import ExpressionBinder

__all__ = ["CATALOG_CALLS", "SET_RETURNING", "bind_call", "sort_key"]

_INTEGERS = ("int2", "int4", "int8")
_RANKINGS = frozenset({"row_number", "rank", "dense_rank"})
_FORMAT = re.compile(r"%([sIL%])")


# --- functions that return rows -----------------------------------------------------------------------


def _unnest(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    if len(node.arguments) != 1:
        raise unsupported("unnest of several arrays")
    value = binder.bind(node.arguments[0], scope)
    if value.type.element is None:
        raise unsupported(f"unnest of {value.type.name}")
    return value.sql, value.type.element


def _series(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    if len(node.arguments) not in (2, 3):
        raise unsupported("this form of generate_series")
    type_, sqls = binder.together([binder.bind(argument, scope) for argument in node.arguments])
    if type_.name not in _INTEGERS:
        raise unsupported(f"generate_series of {type_.name}")
    first, last, step = [f"CAST({sql} AS BIGINT)" for sql in [*sqls, "1"][:3]]
    # The test is an argument: of constants the engine makes the series first, and then looks at a CASE around it.
    end = (
        f"CASE WHEN {step} = 0 THEN {raised('step')}"
        f" WHEN (CAST({last} AS HUGEINT) - {first}) // {step} >= {MOST_OF_A_SERIES} THEN {raised('series')}"
        f" ELSE {last} END"
    )
    return f"CAST(generate_series({first}, {end}, {step}) AS {type_.holder}[])", type_


def _subscripts(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    if len(node.arguments) not in (2, 3):
        raise unsupported("this form of generate_subscripts")
    value = binder.bind(node.arguments[0], scope)
    if value.type.element is None:
        raise unsupported(f"generate_subscripts of {value.type.name}")
    binder.bind_as(node.arguments[1], scope, INT4)  # the dimension, whose parameter has a type by this
    last = f"len({value.sql})"
    bounds = f"0, {last} - 1" if value.type.name.endswith("vector") else f"1, {last}"
    return f"CAST(generate_series({bounds}) AS INTEGER[])", INT4


def _expanded(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    if len(node.arguments) != 1:
        raise unsupported("this form of _pg_expandarray")
    value = binder.bind(node.arguments[0], scope)
    element = value.type.element
    if element is None:
        raise unsupported(f"_pg_expandarray of {value.type.name}")
    record = _record((("x", element), ("n", INT4)))
    item = f"{{'x': list_extract({value.sql}, e), 'n': CAST(e AS INTEGER)}}"
    return f"list_transform(generate_series(1, len({value.sql})), lambda e: {item})", record


def _keywords(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    return "(SELECT list(k ORDER BY k.word) FROM h.keywords AS k)", _KEYWORD


def _nothing(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    for argument in node.arguments:
        binder.bind(argument, scope)
    fields = _EMPTY[node.name]
    type_ = fields[0][1] if len(fields) == 1 else _record(fields)
    return f"CAST([] AS {type_.holder}[])", type_


def _record(fields: tuple[tuple[str, PgType], ...]) -> PgType:
    shape = ", ".join(f'"{name}" {type_.holder}' for name, type_ in fields)
    return PgType(RECORD.oid, "record", -1, f"STRUCT({shape})", "record", fields=fields)


_OID = BY_NAME["oid"]
_KEYWORD = _record(
    (("word", TEXT), ("catcode", CHAR), ("barelabel", BOOL), ("catdesc", TEXT), ("baredesc", TEXT))
)
_EMPTY: dict[str, tuple[tuple[str, PgType], ...]] = {
    "aclexplode": (("grantor", _OID), ("grantee", _OID), ("privilege_type", TEXT), ("is_grantable", BOOL)),
    "pg_options_to_table": (("option_name", TEXT), ("option_value", TEXT)),
    "pg_partition_ancestors": (("relid", BY_NAME["regclass"]),),
    "pg_partition_tree": (("relid", BY_NAME["regclass"]), ("parentrelid", BY_NAME["regclass"]),
                          ("isleaf", BOOL), ("level", INT4)),
    "pg_listening_channels": (("pg_listening_channels", TEXT),),
    "pg_timezone_names": (("name", TEXT), ("abbrev", TEXT), ("utc_offset", BY_NAME["interval"]), ("is_dst", BOOL)),
}  # fmt: skip

SET_RETURNING: dict[str, Callable[[ExpressionBinder, CallNode, CatalogScope], tuple[str, PgType]]] = {
    "unnest": _unnest,
    "generate_series": _series,
    "generate_subscripts": _subscripts,
    "_pg_expandarray": _expanded,
    "pg_get_keywords": _keywords,
    **dict.fromkeys(_EMPTY, _nothing),
}
"""Functions that return rows -> what gives the array of them, and its element's type."""


# --- calls --------------------------------------------------------------------------------------------


def bind_call(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    """Return a call in the engine's SQL. Raises CatalogRefusal."""
    name = BARE.get(node.name, node.name)
    if name in _RANKINGS and node.window is not None and not node.arguments:
        return Typed(f"{name}() {_over(binder, node, scope)}", INT8)
    if name in AGGREGATES:
        return _aggregate(binder, node, scope)
    if node.is_star or node.is_distinct or node.order or node.filter is not None or node.window is not None:
        raise unsupported(f"this form of the function {name[:60]}")
    if name in SET_RETURNING:
        sql, type_ = SET_RETURNING[name](binder, node, scope)
        return Typed(f"unnest({sql})", type_)
    if name in _SPECIAL:
        return _SPECIAL[name](binder, node, scope)
    return _from_table(binder, name, [binder.bind(argument, scope) for argument in node.arguments])


# --- the table -----------------------------------------------------------------------------------------------


def _from_table(binder: ExpressionBinder, name: str, values: list[Typed]) -> Typed:
    forms = [form for form in FUNCTIONS.get(name, ()) if len(form.arguments) == len(values)]
    if not forms:
        raise CatalogRefusal(
            f"the function {name[:60]}",
            message=f"the function {name[:60]} is not supported in a query of the system catalog",
        )
    form = next((form for form in forms if _fits(form, values)), forms[0])
    sqls = [
        value.sql
        if type_ is None and value.type is not UNKNOWN
        else coerce(binder.context, value, type_ or TEXT).sql
        for value, type_ in zip(values, form.arguments, strict=True)
    ]
    binder.context.facts.update(re.findall(r"\$([a-z_]+)", form.sql))
    return Typed(f"({form.sql.format(*sqls)})", form.returns)


# --- aggregates ----------------------------------------------------------------------------------------------


def _aggregate(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    values = [binder.bind(argument, scope) for argument in node.arguments]
    values = [coerce(binder.context, value, TEXT) if value.type is UNKNOWN else value for value in values]
    if node.is_star and node.name == "count":
        sql, returns = "count(*)", INT8
    elif values and len(values) == (2 if node.name == "string_agg" else 1):
        inner, returns = _aggregated(binder, node.name, values)
        order = f" ORDER BY {_ordered(binder, node.order, scope)}" if node.order else ""
        engine, _, rest = inner.partition("(")
        sql = f"{engine}({'DISTINCT ' if node.is_distinct else ''}{rest}{order})"
    else:
        raise unsupported(f"this form of {node.name}")
    if node.filter is not None:
        sql += f" FILTER (WHERE {binder.condition(node.filter, scope)})"
    if node.window is not None:
        sql += f" {_over(binder, node, scope)}"
    if node.name == "sum" or node.name == "avg":
        sql = f"CAST({sql} AS {returns.holder})"
    return Typed(sql, returns)


def _aggregated(binder: ExpressionBinder, name: str, values: list[Typed]) -> tuple[str, PgType]:
    """Return an aggregate without its last parenthesis, and its type."""
    value = values[0]
    if name == "count":
        return f"count({value.sql}", INT8
    if name == "array_agg":
        array = array_of(value.type)
        if array is None:
            raise unsupported(f"array_agg of {value.type.name}")
        return f"list({value.sql}", array
    if name == "string_agg":
        text, separator = (coerce(binder.context, part, TEXT).sql for part in values)
        return f"string_agg({text}, {separator}", TEXT
    if name in ("bool_and", "bool_or", "every"):
        engine = "bool_and" if name == "every" else name
        return f"{engine}({coerce(binder.context, value, BOOL).sql}", BOOL
    if name in ("min", "max"):
        return f"{name}({value.sql}", TEXT if value.type.is_text else value.type
    if not value.type.is_number:
        raise unsupported(f"{name} of {value.type.name}")
    if value.type.name in _INTEGERS:
        returns = INT8 if name == "sum" and value.type.name != "int8" else NUMERIC
    else:
        returns = FLOAT8 if value.type.name.startswith("float") else NUMERIC
    return f"{name}({value.sql}", returns


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


def _coalesce(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    if not node.arguments:
        raise unsupported(f"{node.name} of nothing")
    type_, sqls = binder.together([binder.bind(argument, scope) for argument in node.arguments])
    return Typed(f"{node.name}({', '.join(sqls)})", type_)


def _nullif(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    values = [binder.bind(argument, scope) for argument in node.arguments]
    if len(values) != 2:
        raise unsupported("this form of nullif")
    type_, (one, other) = binder.together(values)
    return Typed(f"nullif({one}, {other})", type_ if values[0].type is UNKNOWN else values[0].type)


def _concat(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    sqls = [binder.bind_as(argument, scope, TEXT) for argument in node.arguments]
    return Typed(f"{node.name}({', '.join(sqls)})" if sqls else "''", TEXT)


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
        binder.context.facts.add(f"s{len(binder.context.settings)}")
        return Typed(f"CAST($s{len(binder.context.settings)} AS VARCHAR)", TEXT)
    binder.context.facts.update(("setting_names", "setting_values"))
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
            _from_table(binder, {"I": "quote_ident", "L": "quote_literal"}[mark[1]], [value]).sql
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
    by_name = f"SELECT min(y.oid) FROM c.pg_type AS y WHERE y.typname = lower({text})"
    by_words = f"SELECT min(y.o) FROM h.shown_type AS y WHERE y.name = lower({text})"
    return Typed(f"coalesce(({by_words}), ({by_name}))", REGTYPE)


def _substring(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    values = [binder.bind(argument, scope) for argument in node.arguments]
    if len(values) == 2 and (values[1].type.is_text or values[1].literal is not None):
        text, pattern = (coerce(binder.context, value, TEXT).sql for value in values)
        group = 1 if values[1].literal is not None and re.search(r"\((?!\?)", values[1].literal) else 0
        found = f"regexp_extract({text}, {pattern}, {group})"
        return Typed(f"CASE WHEN regexp_matches({text}, {pattern}) THEN {found} END", TEXT)
    return _from_table(binder, "substring", values)


def _bound(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    if len(node.arguments) != 2:
        raise unsupported(f"this form of {node.name}")
    value = binder.bind(node.arguments[0], scope)
    if value.type.element is None:
        raise unsupported(f"{node.name} of {value.type.name}")
    lowest = 0 if value.type.name.endswith("vector") else 1
    is_upper = node.name == "array_upper"
    sql = f"len({value.sql}) - {1 - lowest}" if is_upper else str(lowest)
    return Typed(f"CAST(CASE WHEN len({value.sql}) > 0 THEN {sql} END AS INTEGER)", INT4)


def _appended(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    values = [binder.bind(argument, scope) for argument in node.arguments]
    if len(values) != 2:
        raise unsupported(f"this form of {node.name}")
    array = values[0] if values[0].type.element is not None else values[1]
    element = array.type.element
    if element is None:
        raise unsupported(f"{node.name} of {array.type.name}")
    if node.name == "array_cat":
        type_, (one, other) = binder.together(values)
        return Typed(f"list_concat({one}, {other})", type_)
    item = coerce(binder.context, values[1], element).sql
    if node.name == "array_remove":
        return Typed(f"list_filter({array.sql}, lambda e: e IS DISTINCT FROM {item})", array.type)
    return Typed(f"list_concat({array.sql}, [{item}])", array.type)


def _today(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
    binder.context.facts.add("now")
    return Typed("CAST(CAST($now AS TIMESTAMP) AS DATE)", DATE)


def _fits(form: Signature, values: list[Typed]) -> bool:
    return all(
        type_ is None or value.type is UNKNOWN or value.type.family == type_.family
        or (value.type.is_number and type_.is_number)
        for value, type_ in zip(values, form.arguments, strict=True)
    )  # fmt: skip


def sort_key(sql: str, key: exp.Ordered) -> str:
    """Return an item of ORDER BY: NULLs come last, and first where it descends, unless it is said."""
    nulls_first, is_descending = key.args.get("nulls_first"), key.args.get("desc")
    return f"{sql} {'DESC' if is_descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"


_SPECIAL: dict[str, Callable[[ExpressionBinder, CallNode, CatalogScope], Typed]] = {
    **dict.fromkeys(("coalesce", "greatest", "least"), _coalesce),
    **dict.fromkeys(("concat", "concat_ws"), _concat),
    **dict.fromkeys(("current_setting", "set_config"), _setting),
    **dict.fromkeys(("array_upper", "array_lower"), _bound),
    **dict.fromkeys(("array_append", "array_cat", "array_remove"), _appended),
    **dict.fromkeys(("json_build_object", "jsonb_build_object"), _json),
    "row_to_json": _row_to_json,
    "nullif": _nullif,
    "format": _format,
    "to_regtype": _to_regtype,
    "substring": _substring,
    "current_date": _today,
}

_EVERYWHERE = frozenset(
    {"coalesce", "greatest", "least", "concat", "concat_ws", "nullif", "substring", "current_date", "row_to_json"}
)  # fmt: skip
CATALOG_CALLS = frozenset({*SET_RETURNING, *_SPECIAL} - _EVERYWHERE)
"""Functions of this module that dpsql's own SQL has not."""
