"""Calls of functions in a catalog query: those of the table, aggregates, and those that need a reading of their own."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from sqlglot import exp

from .bind_sets import SET_RETURNING
from .errors import CatalogRefusal, unsupported
from .functions import AGGREGATES, BARE, FUNCTIONS, Signature
from .pg_types import (
    BOOL,
    BY_NAME,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    NUMERIC,
    REGTYPE,
    TEXT,
    UNKNOWN,
    PgType,
    array_of,
)
from .scope import Bound, CatalogScope
from .tree import CallNode, parts_of, sort_keys
from .typed import TranslationContext, Typed, coerce, null_of, quoted

__all__ = ["CATALOG_CALLS", "CallBinder", "sort_key"]

_INTEGERS = ("int2", "int4", "int8")
_RANKINGS = frozenset({"row_number", "rank", "dense_rank"})
_FORMAT = re.compile(r"%([sIL%])")


class CallBinder(ABC):
    """Binds calls; `numbers` are the parameters met so far."""

    def __init__(self, context: TranslationContext) -> None:
        self.context = context
        self.numbers: set[int] = set()

    @abstractmethod
    def bind(self, expression: exp.Expr, scope: CatalogScope) -> Typed:
        """Return an expression in the engine's SQL. Raises CatalogRefusal."""

    @abstractmethod
    def bind_as(self, expression: exp.Expr, scope: CatalogScope, target: PgType) -> str:
        """Return an expression's SQL as a value of a type. Raises CatalogRefusal."""

    @abstractmethod
    def condition(self, expression: exp.Expr, scope: CatalogScope) -> str:
        """Return a condition's SQL. Raises CatalogRefusal."""

    @abstractmethod
    def together(self, values: Sequence[Typed]) -> tuple[PgType, list[str]]:
        """Return the type that values have beside each other, and their SQL in it. Raises CatalogRefusal."""

    @abstractmethod
    def query(self, query: exp.Expr, scope: CatalogScope) -> Bound:
        """Return a query in the engine's SQL. Raises CatalogRefusal."""

    def call(self, node: CallNode, scope: CatalogScope) -> Typed:
        """Return a call in the engine's SQL. Raises CatalogRefusal."""
        name = BARE.get(node.name, node.name)
        if name in _RANKINGS and node.window is not None and not node.arguments:
            return Typed(f"{name}() {self._over(node, scope)}", INT8)
        if name in AGGREGATES:
            return self._aggregate(node, scope)
        if (
            node.is_star
            or node.is_distinct
            or node.order
            or node.filter is not None
            or node.window is not None
        ):
            raise unsupported(f"this form of the function {name[:60]}")
        if name in SET_RETURNING:
            sql, type_ = SET_RETURNING[name](self, node, scope)
            return Typed(f"unnest({sql})", type_)
        if name in _SPECIAL:
            return _SPECIAL[name](self, node, scope)
        return self._from_table(name, [self.bind(argument, scope) for argument in node.arguments])

    # --- the table -----------------------------------------------------------------------------------------------

    def _from_table(self, name: str, values: list[Typed]) -> Typed:
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
            else coerce(self.context, value, type_ or TEXT).sql
            for value, type_ in zip(values, form.arguments, strict=True)
        ]
        self.context.facts.update(re.findall(r"\$([a-z_]+)", form.sql))
        return Typed(f"({form.sql.format(*sqls)})", form.returns)

    # --- aggregates ----------------------------------------------------------------------------------------------

    def _aggregate(self, node: CallNode, scope: CatalogScope) -> Typed:
        values = [self.bind(argument, scope) for argument in node.arguments]
        values = [coerce(self.context, value, TEXT) if value.type is UNKNOWN else value for value in values]
        if node.is_star and node.name == "count":
            sql, returns = "count(*)", INT8
        elif values and len(values) == (2 if node.name == "string_agg" else 1):
            inner, returns = self._aggregated(node.name, values)
            order = f" ORDER BY {self.sort_keys(node.order, scope)}" if node.order else ""
            engine, _, rest = inner.partition("(")
            sql = f"{engine}({'DISTINCT ' if node.is_distinct else ''}{rest}{order})"
        else:
            raise unsupported(f"this form of {node.name}")
        if node.filter is not None:
            sql += f" FILTER (WHERE {self.condition(node.filter, scope)})"
        if node.window is not None:
            sql += f" {self._over(node, scope)}"
        if node.name == "sum" or node.name == "avg":
            sql = f"CAST({sql} AS {returns.holder})"
        return Typed(sql, returns)

    def _aggregated(self, name: str, values: list[Typed]) -> tuple[str, PgType]:
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
            text, separator = (coerce(self.context, part, TEXT).sql for part in values)
            return f"string_agg({text}, {separator}", TEXT
        if name in ("bool_and", "bool_or", "every"):
            engine = "bool_and" if name == "every" else name
            return f"{engine}({coerce(self.context, value, BOOL).sql}", BOOL
        if name in ("min", "max"):
            return f"{name}({value.sql}", TEXT if value.type.is_text else value.type
        if not value.type.is_number:
            raise unsupported(f"{name} of {value.type.name}")
        if value.type.name in _INTEGERS:
            returns = INT8 if name == "sum" and value.type.name != "int8" else NUMERIC
        else:
            returns = FLOAT8 if value.type.name.startswith("float") else NUMERIC
        return f"{name}({value.sql}", returns

    def sort_keys(self, keys: Sequence[exp.Ordered], scope: CatalogScope) -> str:
        """Return the items of ORDER BY, where no name is an output column's. Raises CatalogRefusal."""
        return ", ".join(sort_key(self.bind_as_is(key.this, scope), key) for key in keys)

    def bind_as_is(self, expression: exp.Expr, scope: CatalogScope) -> str:
        """Return an expression's SQL; a string without a type is text. Raises CatalogRefusal."""
        value = self.bind(expression, scope)
        return coerce(self.context, value, TEXT).sql if value.type is UNKNOWN else value.sql

    def _over(self, node: CallNode, scope: CatalogScope) -> str:
        assert node.window is not None
        parts, order = [], sort_keys(node.window)
        if node.window.args.get("partition_by"):
            keys = ", ".join(self.bind_as_is(key, scope) for key in node.window.args["partition_by"])
            parts.append(f"PARTITION BY {keys}")
        if order:
            parts.append(f"ORDER BY {self.sort_keys(order, scope)}")
        return f"OVER ({' '.join(parts)})"

    # --- functions with a reading of their own ----------------------------------------------------------------------

    def _coalesce(self, node: CallNode, scope: CatalogScope) -> Typed:
        if not node.arguments:
            raise unsupported(f"{node.name} of nothing")
        type_, sqls = self.together([self.bind(argument, scope) for argument in node.arguments])
        return Typed(f"{node.name}({', '.join(sqls)})", type_)

    def _nullif(self, node: CallNode, scope: CatalogScope) -> Typed:
        values = [self.bind(argument, scope) for argument in node.arguments]
        if len(values) != 2:
            raise unsupported("this form of nullif")
        type_, (one, other) = self.together(values)
        return Typed(f"nullif({one}, {other})", type_ if values[0].type is UNKNOWN else values[0].type)

    def _concat(self, node: CallNode, scope: CatalogScope) -> Typed:
        sqls = [self.bind_as(argument, scope, TEXT) for argument in node.arguments]
        return Typed(f"{node.name}({', '.join(sqls)})" if sqls else "''", TEXT)

    def _setting(self, node: CallNode, scope: CatalogScope) -> Typed:
        """Bind current_setting, and set_config, which changes nothing and says what holds."""
        if not node.arguments:
            raise unsupported(f"this form of {node.name}")
        name = self.bind(node.arguments[0], scope)
        for argument in node.arguments[1:]:
            self.bind_as(argument, scope, TEXT)
        if name.literal is not None:
            may_miss = isinstance(node.arguments[-1], exp.Boolean) and bool(node.arguments[-1].this)
            word = name.literal.lower()
            self.context.settings.append(("?" if may_miss else "!") + word)
            self.context.facts.add(f"s{len(self.context.settings)}")
            return Typed(f"CAST($s{len(self.context.settings)} AS VARCHAR)", TEXT)
        self.context.facts.update(("setting_names", "setting_values"))
        sought = coerce(self.context, name, TEXT).sql
        place = f"list_position(CAST($setting_names AS VARCHAR[]), lower({sought}))"
        return Typed(f"list_extract(CAST($setting_values AS VARCHAR[]), {place})", TEXT)

    def _format(self, node: CallNode, scope: CatalogScope) -> Typed:
        if not node.arguments or not isinstance(node.arguments[0], exp.Literal):
            raise unsupported("format with a changing pattern")
        pattern = str(node.arguments[0].this)
        values = [coerce(self.context, self.bind(part, scope), TEXT) for part in node.arguments[1:]]
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
                self._from_table({"I": "quote_ident", "L": "quote_literal"}[mark[1]], [value]).sql
                if mark[1] != "s"
                else value.sql
            )
        parts.append(quoted(pattern[at:]))
        return Typed(f"concat({', '.join(parts)})", TEXT)

    def _json(self, node: CallNode, scope: CatalogScope) -> Typed:
        parts = []
        for at, argument in enumerate(node.arguments):
            value = self.bind(argument, scope)
            is_text = at % 2 == 0 or value.type is UNKNOWN or value.type.is_object
            parts.append(coerce(self.context, value, TEXT).sql if is_text else value.sql)
        return Typed(f"CAST(json_object({', '.join(parts)}) AS VARCHAR)", BY_NAME["json"])

    def _row_to_json(self, node: CallNode, scope: CatalogScope) -> Typed:
        row = node.arguments[0] if len(node.arguments) == 1 else None
        source = scope.source(parts_of(row)[-1]) if isinstance(row, exp.Column) and not row.table else None
        if source is None:
            raise unsupported("row_to_json of what is no item of FROM")
        parts = []
        for name, value in source.columns:
            sql = coerce(self.context, value, TEXT).sql if value.type.is_object else value.sql
            if value.type is NUMERIC:
                sql = f"CAST(rtrim(rtrim(CAST({sql} AS VARCHAR), '0'), '.') AS JSON)"
            parts.append(f"{quoted(name)}, {sql}")
        return Typed(f"CAST(json_object({', '.join(parts)}) AS VARCHAR)", BY_NAME["json"])

    def _to_regtype(self, node: CallNode, scope: CatalogScope) -> Typed:
        if len(node.arguments) != 1:
            raise unsupported("this form of to_regtype")
        value = self.bind(node.arguments[0], scope)
        if value.literal is not None:
            found = self.context.names.type(value.literal)
            return null_of(REGTYPE) if found is None else Typed(f"CAST({found} AS BIGINT)", REGTYPE)
        text = coerce(self.context, value, TEXT).sql
        by_name = f"SELECT min(y.oid) FROM c.pg_type AS y WHERE y.typname = lower({text})"
        by_words = f"SELECT min(y.o) FROM h.shown_type AS y WHERE y.name = lower({text})"
        return Typed(f"coalesce(({by_words}), ({by_name}))", REGTYPE)

    def _substring(self, node: CallNode, scope: CatalogScope) -> Typed:
        values = [self.bind(argument, scope) for argument in node.arguments]
        if len(values) == 2 and (values[1].type.is_text or values[1].literal is not None):
            text, pattern = (coerce(self.context, value, TEXT).sql for value in values)
            group = 1 if values[1].literal is not None and re.search(r"\((?!\?)", values[1].literal) else 0
            found = f"regexp_extract({text}, {pattern}, {group})"
            return Typed(f"CASE WHEN regexp_matches({text}, {pattern}) THEN {found} END", TEXT)
        return self._from_table("substring", values)

    def _bound(self, node: CallNode, scope: CatalogScope) -> Typed:
        if len(node.arguments) != 2:
            raise unsupported(f"this form of {node.name}")
        value = self.bind(node.arguments[0], scope)
        if value.type.element is None:
            raise unsupported(f"{node.name} of {value.type.name}")
        lowest = 0 if value.type.name.endswith("vector") else 1
        is_upper = node.name == "array_upper"
        sql = f"len({value.sql}) - {1 - lowest}" if is_upper else str(lowest)
        return Typed(f"CAST(CASE WHEN len({value.sql}) > 0 THEN {sql} END AS INTEGER)", INT4)

    def _appended(self, node: CallNode, scope: CatalogScope) -> Typed:
        values = [self.bind(argument, scope) for argument in node.arguments]
        if len(values) != 2:
            raise unsupported(f"this form of {node.name}")
        array = values[0] if values[0].type.element is not None else values[1]
        element = array.type.element
        if element is None:
            raise unsupported(f"{node.name} of {array.type.name}")
        if node.name == "array_cat":
            type_, (one, other) = self.together(values)
            return Typed(f"list_concat({one}, {other})", type_)
        item = coerce(self.context, values[1], element).sql
        if node.name == "array_remove":
            return Typed(f"list_filter({array.sql}, lambda e: e IS DISTINCT FROM {item})", array.type)
        return Typed(f"list_concat({array.sql}, [{item}])", array.type)

    def _today(self, node: CallNode, scope: CatalogScope) -> Typed:
        self.context.facts.add("now")
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


_SPECIAL: dict[str, Callable[[CallBinder, CallNode, CatalogScope], Typed]] = {
    **dict.fromkeys(("coalesce", "greatest", "least"), CallBinder._coalesce),
    **dict.fromkeys(("concat", "concat_ws"), CallBinder._concat),
    **dict.fromkeys(("current_setting", "set_config"), CallBinder._setting),
    **dict.fromkeys(("array_upper", "array_lower"), CallBinder._bound),
    **dict.fromkeys(("array_append", "array_cat", "array_remove"), CallBinder._appended),
    **dict.fromkeys(("json_build_object", "jsonb_build_object"), CallBinder._json),
    "row_to_json": CallBinder._row_to_json,
    "nullif": CallBinder._nullif,
    "format": CallBinder._format,
    "to_regtype": CallBinder._to_regtype,
    "substring": CallBinder._substring,
    "current_date": CallBinder._today,
}

_EVERYWHERE = frozenset(
    {"coalesce", "greatest", "least", "concat", "concat_ws", "nullif", "substring", "current_date", "row_to_json"}
)  # fmt: skip
CATALOG_CALLS = frozenset({*SET_RETURNING, *_SPECIAL} - _EVERYWHERE)
"""Functions of this module that dpsql's own SQL has not."""
