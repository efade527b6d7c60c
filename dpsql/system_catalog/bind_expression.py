"""An expression of a catalog query to the engine's SQL, with Postgres' type.

House rule: what is not in a table here, or has no method here, is refused. No text of the client's passes as it is.

Calls of functions in a catalog query: those of the table, aggregates, and those that need a reading of their own.

What returns several rows becomes the array of them, which the engine unnests.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from sqlglot import exp

from ..records import dataclass
from .errors import CatalogRefusal, unsupported
from .functions import (
    AGGREGATES,
    BARE,
    FUNCTIONS,
    OPERATORS,
    TranslationContext,
    Typed,
    apply,
    coerce,
    common_type,
    null_of,
    quoted,
)
from .parse import (
    CallNode,
    TypeName,
    call_of,
    digits_of,
    inner,
    is_query,
    name_of,
    parts_of,
    plain,
    sort_keys,
    type_of,
)
from .pg_types import (
    BOOL,
    BY_NAME,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    REGTYPE,
    TEXT,
    UNKNOWN,
    PgType,
    array_of,
    wider,
)

# --- what names mean inside a query: the items of FROM, and those of the queries around it ------------------


Output = tuple[str, Typed]
"""A column: its name, and what it is."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A query in the engine's SQL; its columns are c0, c1, … there."""

    sql: str
    columns: tuple[Output, ...]


@dataclass
class CatalogSource:
    """An item of FROM. `merged`: columns that USING made one with another item's."""

    name: str
    columns: tuple[Output, ...]
    system: Mapping[str, Typed] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)
    schema: str | None = None

    def find(self, name: str) -> Typed | None:
        """Return a column by its name."""
        found = next((typed for column, typed in self.columns if column == name), None)
        return self.system.get(name) if found is None else found


@dataclass
class CatalogScope:
    """The items that an expression sees; `ctes`: the queries of WITH by name; `shared`: the columns that joins made one
    of two, which stand first in *."""

    parent: CatalogScope | None
    ctes: dict[str, Bound]
    sources: list[CatalogSource] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)

    def column(self, parts: tuple[str, ...]) -> Typed:
        """Return what a name means. Raises CatalogRefusal: nothing, or two things."""
        found = self._search(parts)
        if found is None:
            name = ".".join(parts)[:100]
            raise CatalogRefusal(
                "no such column", message=f'column "{name}" does not exist', sqlstate="42703"
            )
        return found

    def _search(self, parts: tuple[str, ...]) -> Typed | None:
        found = [
            typed for source in self._named(parts) for typed in [source.find(parts[-1])] if typed is not None
        ]
        if len(found) > 1:
            raise CatalogRefusal(
                "an ambiguous column", message=f'column "{parts[-1][:60]}" is ambiguous', sqlstate="42702"
            )
        if found:
            return found[0]
        return None if self.parent is None else self.parent._search(parts)

    def _named(self, parts: tuple[str, ...]) -> Iterator[CatalogSource]:
        for source in self.sources:
            if len(parts) == 1:
                if parts[0] not in source.merged:
                    yield source
            elif source.name == parts[-2] and (len(parts) < 3 or source.schema == parts[-3]):
                yield source

    def source(self, name: str) -> CatalogSource | None:
        """Return an item by its name, here or around."""
        for source in self.sources:
            if source.name == name:
                return source
        return None if self.parent is None else self.parent.source(name)

    def cte(self, name: str) -> Bound | None:
        """Return a query of WITH."""
        if name in self.ctes:
            return self.ctes[name]
        return None if self.parent is None else self.parent.cte(name)


# --- calls of functions -------------------------------------------------------------------------------------


_RANKINGS = frozenset({"row_number", "rank", "dense_rank"})
_FORMAT = re.compile(r"%([sIL%])")


# --- calls --------------------------------------------------------------------------------------------


def _bind_call(binder: ExpressionBinder, node: CallNode, scope: CatalogScope) -> Typed:
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


# --- an expression of a catalog query to the engine's SQL, with Postgres' type ------------------------------


_OPERATORS: dict[type, str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.Add: "+", exp.Sub: "-",
    exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.Pow: "^", exp.DPipe: "||", exp.Like: "~~", exp.ILike: "~~*",
}  # fmt: skip
"""Operators that the parser has nodes for; all others are `exp.Operator`."""
_COMPARISONS = frozenset({"=", "<>", "<", ">", "<=", ">="})
_MAX_PARAMETERS = 1000


def named_type(type_: TypeName) -> PgType:
    """Return the type that a name means. Raises CatalogRefusal: it is not known here."""
    found = BY_NAME.get(type_.name)
    if found is not None and type_.is_array:
        found = array_of(found)
    if found is None:
        raise unsupported(f"the type {type_.name[:60]}")
    return found


class ExpressionBinder(ABC):
    """Binds expressions; queries inside them are bound by the class below. `numbers`: the parameters met so far."""

    def __init__(self, context: TranslationContext) -> None:
        self.context = context
        self.numbers: set[int] = set()

    @abstractmethod
    def query(self, query: exp.Expr, scope: CatalogScope) -> Bound:
        """Return a query in the engine's SQL. Raises CatalogRefusal."""

    def bind(self, expression: exp.Expr, scope: CatalogScope) -> Typed:
        """Return an expression in the engine's SQL. Raises CatalogRefusal."""
        expression = inner(expression)
        bind = _BINDERS.get(type(expression))
        if bind is not None:
            found: Typed = bind(self, expression, scope)
            return found
        call = call_of(expression)
        if call is None:
            raise unsupported(f"{type(expression).__name__} here")
        return self._array_query(call, scope) if call.name == "array" else _bind_call(self, call, scope)

    def bind_as(self, expression: exp.Expr, scope: CatalogScope, target: PgType) -> str:
        """Return an expression's SQL as a value of a type. Raises CatalogRefusal."""
        return coerce(self.context, self.bind(expression, scope), target).sql

    def bind_as_is(self, expression: exp.Expr, scope: CatalogScope) -> str:
        """Return an expression's SQL; a string without a type is text. Raises CatalogRefusal."""
        value = self.bind(expression, scope)
        return coerce(self.context, value, TEXT).sql if value.type is UNKNOWN else value.sql

    def condition(self, expression: exp.Expr, scope: CatalogScope) -> str:
        """Return a condition's SQL. Raises CatalogRefusal."""
        return self.bind_as(expression, scope, BOOL)

    def together(self, values: Sequence[Typed]) -> tuple[PgType, list[str]]:
        """Return the type that values have beside each other, and their SQL in it. Raises CatalogRefusal."""
        type_ = common_type(list(values))
        return type_, [coerce(self.context, value, type_).sql for value in values]

    # --- constants, names, casts ---------------------------------------------------------------------------

    def _literal(self, node: exp.Literal, scope: CatalogScope) -> Typed:
        if node.is_string:
            return Typed(quoted(node.this), UNKNOWN, literal=node.this)
        return self._number(node.this)

    def _number(self, text: str) -> Typed:
        if not text.removeprefix("-").isdigit():
            return coerce(self.context, Typed(quoted(text), UNKNOWN, literal=text), NUMERIC)
        value = int(text) if len(text) < 30 else 2**63
        if abs(value) >= 2**63:
            raise unsupported("a number that large")
        type_ = INT4 if -(2**31) <= value < 2**31 else INT8
        return Typed(f"CAST({value} AS {type_.holder})", type_)

    def _null(self, node: exp.Null, scope: CatalogScope) -> Typed:
        return Typed("NULL", UNKNOWN, is_null=True)

    def _boolean(self, node: exp.Boolean, scope: CatalogScope) -> Typed:
        return Typed("true" if node.this else "false", BOOL)

    def _parameter(self, node: exp.Parameter, scope: CatalogScope) -> Typed:
        text = node.name
        number = int(text) if text.isdigit() and len(text) < 6 else 0
        if not 1 <= number <= _MAX_PARAMETERS:
            raise unsupported("a parameter of that number")
        known = self.context.parameters.get(number)
        if known is not None:
            return Typed(f"CAST($p{number} AS {known.holder})", known)
        self.numbers.add(number)
        return Typed("NULL", UNKNOWN, parameter=number)

    def _name(self, node: exp.Column, scope: CatalogScope) -> Typed:
        return scope.column(parts_of(node))

    def _cast(self, node: exp.Cast, scope: CatalogScope) -> Typed:
        type_ = type_of(node.args["to"])
        target = named_type(type_)
        value = coerce(self.context, self.bind(node.this, scope), target)
        if type_.modifiers and target.name in ("varchar", "bpchar"):
            return Typed(f"left({value.sql}, {type_.modifiers[0]})", target)
        if type_.modifiers and target.name == "numeric":
            digits, scale, *_ = (*type_.modifiers, 0)
            if not 1 <= digits <= 38 or scale > digits:
                raise unsupported("a numeric of so many digits")
            return Typed(f"CAST(CAST({value.sql} AS DECIMAL({digits}, {scale})) AS {target.holder})", target)
        return value

    def _field(self, node: exp.Dot, scope: CatalogScope) -> Typed:
        if not isinstance(node.expression, exp.Identifier):
            raise unsupported("a function of another schema")
        record, field = self.bind(node.this, scope), name_of(node.expression)
        for name, type_ in record.type.fields:
            if name == field:
                return Typed(f"struct_extract({record.sql}, {quoted(name)})", type_)
        raise unsupported("a field of something without fields")

    def _subscript(self, node: exp.Bracket, scope: CatalogScope) -> Typed:
        if len(node.expressions) != 1:
            raise unsupported("an index of several numbers")
        index = node.expressions[0]
        value = self.bind(node.this, scope)
        if isinstance(index, exp.Slice):
            return self._slice(value, index, scope)
        element = value.type.element
        if element is None:
            raise unsupported("an index into something without any")
        place = self.bind_as(index, scope, INT8)
        if value.type.lowest == 0:
            place = f"({place} + 1)"
        return Typed(f"list_extract({value.sql}, greatest({place}, 0))", element)

    def _slice(self, value: Typed, node: exp.Slice, scope: CatalogScope) -> Typed:
        if value.type.element is None or value.type.lowest == 0:
            raise unsupported(f"a slice of {value.type.name}")
        low, high = node.args.get("this"), node.args.get("expression")
        first = "1" if low is None else f"greatest({self.bind_as(low, scope, INT8)}, 1)"
        last = f"len({value.sql})" if high is None else f"greatest({self.bind_as(high, scope, INT8)}, 0)"
        return Typed(f"list_slice({value.sql}, {first}, {last})", value.type)

    # --- operators ---------------------------------------------------------------------------------------------

    def _connected(self, node: exp.Connector, scope: CatalogScope) -> Typed:
        sides: list[exp.Expr] = []
        left: exp.Expr = node
        while type(left) is type(node):
            sides.append(left.args["expression"])
            left = left.this
        sql, word = self.condition(left, scope), node.key.upper()
        for side in reversed(sides):
            sql = Typed(f"({sql} {word} {self.condition(side, scope)})", BOOL).sql
        return Typed(sql, BOOL)

    def _not(self, node: exp.Not, scope: CatalogScope) -> Typed:
        return Typed(f"(NOT {self.condition(node.this, scope)})", BOOL)

    def _negative(self, node: exp.Neg, scope: CatalogScope) -> Typed:
        operand = node.this
        digits = digits_of(operand)
        if digits is not None:
            return self._number(f"-{digits}")
        type_, (sql,) = self.together([self.bind(operand, scope)])
        if not type_.is_number and type_ is not INTERVAL:
            raise unsupported(f"the sign - before {type_.name}")
        return Typed(f"(- {sql})", type_)

    def _operation(self, node: exp.Binary, scope: CatalogScope) -> Typed:
        operator = _OPERATORS.get(type(node)) or str(node.args.get("operator")).replace("!=", "<>")
        if node.args.get("negate"):
            operator = f"!{operator}"
        return self._between_two(operator, inner(node.this), inner(node.expression), scope)

    def _between_two(self, operator: str, left: exp.Expr, right: exp.Expr, scope: CatalogScope) -> Typed:
        if isinstance(right, exp.Anonymous) and (word := name_of(right)) in ("any", "some", "all"):
            if len(right.expressions) != 1:
                raise unsupported("ANY of several arrays")
            among = plain(inner(right.expressions[0]))
            return self._quantified(operator, self.bind(left, scope), among, word == "all", scope)
        if _is_row(left):
            return self._rows_compared(operator, _items(left), right, scope)
        other = self.bind(right, scope)
        return self.operate(operator, self.bind(left, scope), other)

    def _escaped(self, node: exp.Escape, scope: CatalogScope) -> Typed:
        like = node.this
        if not isinstance(like, (exp.Like, exp.ILike)):
            raise unsupported("ESCAPE after ANY")
        operator = ("!" if like.args.get("negate") else "") + _OPERATORS[type(like)]
        values = [self.bind(part, scope) for part in (like.expression, like.this, node.expression)]
        return self.operate(operator, values[1], values[0], values[2])

    def operate(self, operator: str, *values: Typed) -> Typed:
        """Return what an operator makes of two values. Raises CatalogRefusal."""
        _, found = apply(self.context, OPERATORS, operator, values)
        return Typed(f"({found.sql})", found.type)

    def _rows_compared(
        self, operator: str, left: Sequence[exp.Expr], right: exp.Expr, scope: CatalogScope
    ) -> Typed:
        others = _items(right) if _is_row(right) else ()
        if len(others) != len(left) or operator not in _COMPARISONS:
            raise unsupported("this comparison of rows")
        pairs = [
            self.together([self.bind(one, scope), self.bind(other, scope)])[1]
            for one, other in zip(left, others, strict=True)
        ]
        sides = [", ".join(pair[side] for pair in pairs) for side in (0, 1)]
        return Typed(f"(row({sides[0]}) {operator} row({sides[1]}))", BOOL)

    def _between(self, node: exp.Between, scope: CatalogScope) -> Typed:
        values = [self.bind(part, scope) for part in (node.this, node.args["low"], node.args["high"])]
        _, (value, low, high) = self.together(values)
        return Typed(f"({value} BETWEEN {low} AND {high})", BOOL)

    def _distinct_from(self, node: exp.Binary, scope: CatalogScope) -> Typed:
        negated = "NOT " if isinstance(node, exp.NullSafeEQ) else ""
        _, (one, other) = self.together([self.bind(node.this, scope), self.bind(node.expression, scope)])
        return Typed(f"({one} IS {negated}DISTINCT FROM {other})", BOOL)

    def _is(self, node: exp.Is, scope: CatalogScope) -> Typed:
        value, is_negated = self.bind(node.this, scope), bool(node.args.get("negate"))
        if isinstance(node.expression, exp.Null):
            sql = coerce(self.context, value, TEXT).sql if value.type is UNKNOWN else value.sql
            return Typed(f"({sql} IS {'NOT ' if is_negated else ''}NULL)", BOOL)
        if not isinstance(node.expression, exp.Boolean):
            raise unsupported("this form of IS")
        # IS TRUE is "not distinct from true".
        is_not, what = "" if is_negated else "NOT ", "true" if node.expression.this else "false"
        return Typed(f"({coerce(self.context, value, BOOL).sql} IS {is_not}DISTINCT FROM {what})", BOOL)

    # --- IN, ANY, ALL --------------------------------------------------------------------------------------------

    def _in(self, node: exp.In, scope: CatalogScope) -> Typed:
        sought = inner(node.this)
        is_row = _is_row(sought)
        left = [self.bind(item, scope) for item in _items(sought)]
        query = node.args.get("query")
        if query is None and len(node.expressions) == 1 and is_query(inner(node.expressions[0])):
            query = inner(node.expressions[0])
        if query is not None:
            bound = self.query(plain(query), scope)
            if len(bound.columns) != len(left):
                raise unsupported("IN over a query of other columns")
            alias = self.context.alias()
            sides = [
                self.together([value, Typed(f"{alias}.c{at}", column.type)])[1]
                for at, (value, (_, column)) in enumerate(zip(left, bound.columns, strict=True))
            ]
            among = f"SELECT {_row([side[1] for side in sides], is_row)} FROM ({bound.sql}) AS {alias}"
            return Typed(f"({_row([side[0] for side in sides], is_row)} IN ({among}))", BOOL)
        rows = [
            [self.bind(item, scope) for item in (_items(row) if is_row else (row,))]
            for row in node.expressions
        ]
        if any(len(row) != len(left) for row in rows):
            raise unsupported("IN over rows of another length")
        columns = [self.together(list(column))[1] for column in zip(left, *rows, strict=True)]
        first, *others = [_row(list(row), is_row) for row in zip(*columns, strict=True)]
        return Typed(f"({first} IN ({', '.join(others)}))", BOOL)

    def _quantified(
        self, operator: str, left: Typed, among: exp.Expr, is_all: bool, scope: CatalogScope
    ) -> Typed:
        if is_query(among):
            bound = self.query(among, scope)
            if len(bound.columns) != 1:
                raise unsupported("ANY over a query of several columns")
            column = bound.columns[0][1].type
            if column.element is None or left.type.element is not None:
                rows = f"SELECT c0 AS v FROM ({bound.sql}) AS {self.context.alias()}"
                return self._folded(operator, left, rows, column, is_all)
            right = Typed(f"({bound.sql})", column)
        else:
            right = self.bind(among, scope)
        if right.type is UNKNOWN:
            right = coerce(self.context, right, array_of(left.type) or _texts())
        element = right.type.element
        if element is None:
            raise unsupported("ANY over something that is no array")
        is_found = (operator, is_all) in (("=", False), ("<>", True))
        if is_found and wider(left.type, element) is not None:
            _, (sought, _) = self.together([left, Typed("NULL", element)])
            found = f"list_contains({right.sql}, {sought})"
            found = f"CASE WHEN {sought} IS NULL THEN NULL ELSE {found} END"
            return Typed(f"(NOT {found})" if is_all else found, BOOL)
        return self._folded(operator, left, f"SELECT unnest({right.sql}) AS v", element, is_all)

    def _folded(self, operator: str, left: Typed, rows: str, element: PgType, is_all: bool) -> Typed:
        alias = self.context.alias()
        test = self.operate(operator, left, Typed(f"{alias}.v", element)).sql
        fold, empty = ("bool_and", "true") if is_all else ("bool_or", "false")
        return Typed(f"(SELECT coalesce({fold}({test}), {empty}) FROM ({rows}) AS {alias})", BOOL)

    # --- CASE, arrays, queries --------------------------------------------------------------------------------------

    def _case(self, node: exp.Case, scope: CatalogScope) -> Typed:
        whens, default, operand = node.args["ifs"], node.args.get("default"), node.args.get("this")
        results = [self.bind(when.args["true"], scope) for when in whens]
        other = Typed("NULL", UNKNOWN, is_null=True) if default is None else self.bind(default, scope)
        type_, (default_sql, *sqls) = self.together([other, *results])
        parts = []
        for when, result in zip(whens, sqls, strict=True):
            if operand is None:
                test = self.condition(when.this, scope)
            else:
                test = self.operate("=", self.bind(operand, scope), self.bind(when.this, scope)).sql
            parts.append(f"WHEN {test} THEN {result}")
        return Typed(f"CASE {' '.join(parts)} ELSE {default_sql} END", type_)

    def _array_list(self, node: exp.Array, scope: CatalogScope) -> Typed:
        type_, sqls = self.together([self.bind(item, scope) for item in node.expressions])
        array = array_of(type_)
        if array is None:
            raise unsupported(f"an array of {type_.name}")
        return Typed(f"CAST([{', '.join(sqls)}] AS {array.holder})", array)

    def _array_query(self, node: CallNode, scope: CatalogScope) -> Typed:
        if len(node.arguments) != 1 or not is_query(node.arguments[0]):
            raise unsupported("an array of something else than a query")
        bound = self.query(plain(node.arguments[0]), scope)
        type_ = TEXT if bound.columns[0][1].type is UNKNOWN else bound.columns[0][1].type
        array = array_of(type_)
        if len(bound.columns) != 1 or array is None:
            raise unsupported("an array of a query of this type")
        alias = self.context.alias()
        listed = f"SELECT list({alias}.c0) FROM ({bound.sql}) AS {alias}"
        return Typed(f"CAST(coalesce(({listed}), []) AS {array.holder})", array)

    def _exists(self, node: exp.Exists, scope: CatalogScope) -> Typed:
        return Typed(f"EXISTS ({self.query(plain(node.this), scope).sql})", BOOL)

    def _scalar(self, node: exp.Subquery, scope: CatalogScope) -> Typed:
        bound = self.query(plain(node), scope)
        if len(bound.columns) != 1:
            raise unsupported("a subquery of several columns as a value")
        return Typed(f"({bound.sql})", bound.columns[0][1].type)


def _is_row(expression: exp.Expr) -> bool:
    return isinstance(expression, exp.Tuple) or (
        isinstance(expression, exp.Anonymous) and name_of(expression) == "row"
    )


def _items(expression: exp.Expr) -> Sequence[exp.Expr]:
    expression = inner(expression)
    return expression.expressions if _is_row(expression) else (expression,)


def _row(values: Iterable[str], is_row: bool) -> str:
    text = ", ".join(values)
    return f"row({text})" if is_row else text


def _texts() -> PgType:
    found = array_of(TEXT)
    assert found is not None
    return found


_BINDERS: dict[type, Callable[[ExpressionBinder, Any, CatalogScope], Typed]] = {
    exp.Literal: ExpressionBinder._literal,
    exp.Null: ExpressionBinder._null,
    exp.Boolean: ExpressionBinder._boolean,
    exp.Parameter: ExpressionBinder._parameter,
    exp.Column: ExpressionBinder._name,
    exp.Cast: ExpressionBinder._cast,
    exp.Dot: ExpressionBinder._field,
    exp.Bracket: ExpressionBinder._subscript,
    **dict.fromkeys((exp.And, exp.Or), ExpressionBinder._connected),
    **dict.fromkeys((*_OPERATORS, exp.Operator), ExpressionBinder._operation),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), ExpressionBinder._distinct_from),
    exp.Not: ExpressionBinder._not,
    exp.Neg: ExpressionBinder._negative,
    exp.Escape: ExpressionBinder._escaped,
    exp.Between: ExpressionBinder._between,
    exp.Is: ExpressionBinder._is,
    exp.In: ExpressionBinder._in,
    exp.Case: ExpressionBinder._case,
    exp.Array: ExpressionBinder._array_list,
    exp.Exists: ExpressionBinder._exists,
    exp.Subquery: ExpressionBinder._scalar,
}
