"""Functions that return several rows: each becomes the array of them, which the engine unnests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .errors import MOST_OF_A_SERIES, raised, unsupported
from .pg_types import BOOL, BY_NAME, CHAR, INT4, RECORD, TEXT, PgType
from .scope import CatalogScope
from .tree import CallNode

if TYPE_CHECKING:
    from .bind_calls import CallBinder

__all__ = ["SET_RETURNING"]

_INTEGERS = ("int2", "int4", "int8")


def _unnest(binder: CallBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    if len(node.arguments) != 1:
        raise unsupported("unnest of several arrays")
    value = binder.bind(node.arguments[0], scope)
    if value.type.element is None:
        raise unsupported(f"unnest of {value.type.name}")
    return value.sql, value.type.element


def _series(binder: CallBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
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


def _subscripts(binder: CallBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    if len(node.arguments) not in (2, 3):
        raise unsupported("this form of generate_subscripts")
    value = binder.bind(node.arguments[0], scope)
    if value.type.element is None:
        raise unsupported(f"generate_subscripts of {value.type.name}")
    binder.bind_as(node.arguments[1], scope, INT4)  # the dimension, whose parameter has a type by this
    last = f"len({value.sql})"
    bounds = f"0, {last} - 1" if value.type.name.endswith("vector") else f"1, {last}"
    return f"CAST(generate_series({bounds}) AS INTEGER[])", INT4


def _expanded(binder: CallBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    if len(node.arguments) != 1:
        raise unsupported("this form of _pg_expandarray")
    value = binder.bind(node.arguments[0], scope)
    element = value.type.element
    if element is None:
        raise unsupported(f"_pg_expandarray of {value.type.name}")
    record = _record((("x", element), ("n", INT4)))
    item = f"{{'x': list_extract({value.sql}, e), 'n': CAST(e AS INTEGER)}}"
    return f"list_transform(generate_series(1, len({value.sql})), lambda e: {item})", record


def _keywords(binder: CallBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
    return "(SELECT list(k ORDER BY k.word) FROM h.keywords AS k)", _KEYWORD


def _nothing(binder: CallBinder, node: CallNode, scope: CatalogScope) -> tuple[str, PgType]:
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

SET_RETURNING: dict[str, Callable[[CallBinder, CallNode, CatalogScope], tuple[str, PgType]]] = {
    "unnest": _unnest,
    "generate_series": _series,
    "generate_subscripts": _subscripts,
    "_pg_expandarray": _expanded,
    "pg_get_keywords": _keywords,
    **dict.fromkeys(_EMPTY, _nothing),
}
"""Functions that return rows -> what gives the array of them, and its element's type."""
