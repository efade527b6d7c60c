"""Typed pieces of the engine's SQL, and how a value of one type becomes one of another.

House rule: text of the client's reaches the engine's SQL through `quoted` alone, or as a parameter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import unsupported
from .functions import FUNCTIONS
from .names import Names
from .pg_types import TEXT, UNKNOWN, PgType, wider

__all__ = [
    "TranslationContext", "Typed", "coerce", "common_type", "null_of", "quoted", "read_array",
]  # fmt: skip

_MOST_SQL = 400_000
_NUMBER = re.compile(r"\s*[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,3})?\s*", re.IGNORECASE)
_INTEGER = re.compile(r"\s*[+-]?\d{1,18}\s*")
_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "on", "1"), "true"),
    **dict.fromkeys(("f", "false", "n", "no", "off", "0"), "false"),
}
_SHOWN = {"regclass": "h.shown_class", "regtype": "h.shown_type", "regproc": "h.shown_proc"}
_ITEM = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,{}"\\]*))\s*')


@dataclass(frozen=True, slots=True)
class Typed:
    """A piece of SQL and its type. `literal`: a string that has no type yet; `parameter`: a $n that has none.

    `modifier`: Postgres' of a column's type; -1 where none.
    """

    sql: str
    type: PgType
    modifier: int = -1
    literal: str | None = None
    parameter: int | None = None
    is_null: bool = False

    def __post_init__(self) -> None:
        if len(self.sql) > _MOST_SQL:
            raise unsupported("a query that grows too long")


@dataclass
class TranslationContext:
    """What one translation gathers: the parameters' types, and the settings that it asks for."""

    names: Names
    parameters: dict[int, PgType] = field(default_factory=dict)
    settings: list[str] = field(default_factory=list)
    _aliases: int = 0

    def alias(self, prefix: str = "t") -> str:
        """Return a name that nothing else in the query has."""
        self._aliases += 1
        return f"{prefix}{self._aliases}"


def quoted(text: str) -> str:
    """Return a string of the engine's SQL."""
    if "\0" in text:
        raise unsupported("a zero byte")
    return "'" + text.replace("'", "''") + "'"


def null_of(type_: PgType) -> Typed:
    """Return a NULL of a type."""
    return Typed(f"CAST(NULL AS {type_.holder})", type_, is_null=True)


def common_type(values: list[Typed]) -> PgType:
    """Return the type that values take beside each other; text where none has one. Raises CatalogRefusal: none."""
    found = UNKNOWN
    for value in values:
        found = _wider(found, value.type)
    return TEXT if found is UNKNOWN else found


def _wider(left: PgType, right: PgType) -> PgType:
    found = wider(left, right)
    if found is None:
        raise unsupported(f"{left.name} beside {right.name}")
    return found


def coerce(context: TranslationContext, value: Typed, target: PgType) -> Typed:
    """Return the value as one of the type `target`. Raises CatalogRefusal: that is not done here."""
    source = value.type
    if value.is_null and source is UNKNOWN:
        return null_of(target)
    if value.literal is not None:
        return Typed(_literal(context, value.literal, target), target)
    if value.parameter is not None:
        known = context.parameters.setdefault(value.parameter, target)
        typed = Typed(f"CAST($p{value.parameter} AS {known.holder})", known)
        return typed if known == target else coerce(context, typed, target)
    if source == target or (source.is_text and target.is_text and target.name != '"char"'):
        return Typed(value.sql, target)
    if source is UNKNOWN:
        return Typed(f"CAST({value.sql} AS {target.holder})", target)
    if source.element is not None and target.element is not None:
        return _list_to_list(context, value, target)
    if target.is_text:
        text = _to_text(context, value)
        return Typed(f"left({text}, 1)" if target.name == '"char"' else text, target)
    if source.is_text and target.is_object:
        return Typed(_lookup(value.sql, target), target)
    if _is_castable(source, target):
        return Typed(f"CAST({value.sql} AS {target.holder})", target)
    raise unsupported(f"a cast of {source.name} to {target.name}")


def _is_castable(source: PgType, target: PgType) -> bool:
    numbers = source.is_number and target.is_number
    moments = source.family == target.family == "moment"
    booleans = {source.family, target.family} == {"boolean", "number"}
    texts = source.is_text and (target.is_number or target.family in ("boolean", "moment", "interval"))
    return numbers or moments or booleans or texts


def _literal(context: TranslationContext, text: str, target: PgType) -> str:
    """Return a string constant as a value of a type."""
    if target is UNKNOWN or target.is_text:
        return quoted(text[:1] if target.name == '"char"' else text)
    if target.element is not None:
        items = text.split() if target.name.endswith("vector") else read_array(text)
        element = target.element
        parts = ["NULL" if item is None else _literal(context, item, element) for item in items]
        return f"CAST([{', '.join(parts)}] AS {target.holder})"
    if target.family == "oid":
        return f"CAST({context.names.find(target, text)} AS BIGINT)"
    if target.family == "boolean" and text.strip().lower() in _BOOLEANS:
        return _BOOLEANS[text.strip().lower()]
    is_integer = target.holder in ("SMALLINT", "INTEGER", "BIGINT")
    if target.family == "number" and (_INTEGER if is_integer else _NUMBER).fullmatch(text):
        return f"CAST({quoted(text.strip())} AS {target.holder})"
    if target.family in ("moment", "interval"):
        return f"CAST({quoted(text)} AS {target.holder})"
    raise unsupported(f"a constant of type {target.name}")


def read_array(text: str) -> list[str | None]:
    """Return the items of an array's text, one dimension. Raises CatalogRefusal: it is none."""
    text = text.strip()
    if text[:1] != "{" or text[-1:] != "}":
        raise unsupported("a constant of an array")
    inner, at = text[1:-1], 0
    found: list[str | None] = []
    while inner.strip():
        match = _ITEM.match(inner, at)
        if match is None or (match.end() < len(inner) and inner[match.end()] != ","):
            raise unsupported("a constant of an array")
        if match[1] is not None:
            found.append(re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL))
        else:
            bare = match[2].strip()
            found.append(None if bare.upper() == "NULL" else bare)
        at = match.end() + 1
        if match.end() == len(inner):
            break
    return found


def _lookup(sql: str, target: PgType) -> str:
    bare = f"replace({sql}, '\"', '')"
    if target.name == "regclass":
        path = rf"regexp_replace({bare}, '^[^.]*\.([^.]*\.[^.]*)$', '\1')"
        return f"(SELECT any_value(n.o) FROM h.named_class AS n WHERE n.name = {path})"
    if target.name == "regtype":
        name = rf"regexp_replace({bare}, '^pg_catalog\.', '')"
        spelled = f"SELECT min(n.o) FROM h.shown_type AS n WHERE n.name = {sql}"
        return f"coalesce(({spelled}), (SELECT min(n.oid) FROM c.pg_type AS n WHERE n.typname = {name}))"
    if target.name in _SHOWN:
        return f"(SELECT min(n.o) FROM {_SHOWN[target.name]} AS n WHERE n.name = {sql})"
    if target.name == "regnamespace":
        return f"(SELECT n.oid FROM c.pg_namespace AS n WHERE n.nspname = {sql})"
    raise unsupported(f"a cast of text to {target.name}")


def _to_text(context: TranslationContext, value: Typed) -> str:
    type_, sql = value.type, value.sql
    if type_.name in _SHOWN:
        shown = f"(SELECT any_value(n.name) FROM {_SHOWN[type_.name]} AS n WHERE n.o = {sql})"
        return f"coalesce({shown}, CASE WHEN {sql} = 0 THEN '-' ELSE CAST({sql} AS VARCHAR) END)"
    if type_.name == "regnamespace":
        return f"(SELECT any_value(n.nspname) FROM c.pg_namespace AS n WHERE n.oid = {sql})"
    if type_.name == "regrole":
        (role,) = FUNCTIONS["pg_get_userbyid"]
        return role.sql.format(sql)
    if type_.element is not None:
        items = coerce(context, value, _TEXTS).sql
        if type_.name.endswith("vector"):
            return f"array_to_string({items}, ' ')"
        return f"('{{' || array_to_string({items}, ',') || '}}')"
    if type_.name == "timestamptz":
        return f"(CAST({sql} AS VARCHAR) || '+00')"
    if type_.family in ("record", "bytea", "void"):
        raise unsupported(f"a cast of {type_.name} to text")
    return f"CAST({sql} AS VARCHAR)"


def _list_to_list(context: TranslationContext, value: Typed, target: PgType) -> Typed:
    assert value.type.element is not None
    assert target.element is not None
    source = value.type.element
    if source.holder == target.element.holder and not (source.is_object and target.element.is_text):
        return Typed(value.sql, target)
    item = coerce(context, Typed("u.v", source), target.element).sql
    if item == f"CAST(u.v AS {target.element.holder})":
        return Typed(f"CAST({value.sql} AS {target.holder})", target)
    rows = f"SELECT unnest({value.sql}) AS v, unnest(generate_series(1, len({value.sql}))) AS i"
    found = f"(SELECT list({item} ORDER BY u.i) FROM ({rows}) AS u)"
    return Typed(f"CASE WHEN {value.sql} IS NULL THEN NULL ELSE coalesce({found}, []) END", target)


_TEXTS = PgType(1009, "_text", -1, "VARCHAR[]", "array", 0, TEXT)
