"""A catalog query to one statement of the engine's: relations, joins, WITH, UNION, ORDER BY; and its expressions, each
to the engine's SQL, with Postgres' type.

House rules:

1. What is not in a table here, or has no method here, is refused. No text of the client's passes as it is.
2. Every relation gets an alias of ours, and every column of a subquery is c0, c1, …: no name of the client's reaches
   the engine's SQL, so none can be taken for something else there.

What returns several rows becomes the array of them, which the engine unnests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from sqlglot import exp

from ..records import dataclass
from ..regex import regex
from .errors import CatalogRefusal, raised, unsupported
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
from .objects import CatalogRelations
from .parse import (
    CallNode,
    TypeName,
    alias_of,
    call_of,
    digits_of,
    inner,
    is_query,
    name_of,
    output_name,
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
_FORMAT = regex(r"%([sIL%])")


# --- calls --------------------------------------------------------------------------------------------


def _bind_call(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> Typed:
    """Return a call in the engine's SQL. Raises CatalogRefusal."""
    is_set, found = bind_item(binder, node, scope)
    return Typed(f"unnest({found.sql})", found.type) if is_set else found


def bind_item(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> tuple[bool, Typed]:
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


def _from_table(binder: QueryBinder, name: str, values: list[Typed]) -> tuple[bool, Typed]:
    form, found = apply(binder.context, FUNCTIONS, name, values)
    return form.is_set, found if form.is_set else Typed(f"({found.sql})", found.type)


# --- aggregates ----------------------------------------------------------------------------------------------


def _aggregate(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> Typed:
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


def _ordered(binder: QueryBinder, keys: Sequence[exp.Ordered], scope: CatalogScope) -> str:
    """Return the items of ORDER BY, where no name is an output column's. Raises CatalogRefusal."""
    return ", ".join(sort_key(binder.bind_as_is(key.this, scope), key) for key in keys)


def _over(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> str:
    assert node.window is not None
    parts, order = [], sort_keys(node.window)
    if node.window.args.get("partition_by"):
        keys = ", ".join(binder.bind_as_is(key, scope) for key in node.window.args["partition_by"])
        parts.append(f"PARTITION BY {keys}")
    if order:
        parts.append(f"ORDER BY {_ordered(binder, order, scope)}")
    return f"OVER ({' '.join(parts)})"


# --- functions with a reading of their own ----------------------------------------------------------------------


def _setting(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> Typed:
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


def _format(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> Typed:
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


def _json(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> Typed:
    parts = []
    for at, argument in enumerate(node.arguments):
        value = binder.bind(argument, scope)
        is_text = at % 2 == 0 or value.type is UNKNOWN or value.type.is_object
        parts.append(coerce(binder.context, value, TEXT).sql if is_text else value.sql)
    return Typed(f"CAST(json_object({', '.join(parts)}) AS VARCHAR)", BY_NAME["json"])


def _row_to_json(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> Typed:
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


def _to_regtype(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> Typed:
    if len(node.arguments) != 1:
        raise unsupported("this form of to_regtype")
    value = binder.bind(node.arguments[0], scope)
    if value.literal is not None:
        found = binder.context.names.type(value.literal)
        return null_of(REGTYPE) if found is None else Typed(f"CAST({found} AS BIGINT)", REGTYPE)
    text = coerce(binder.context, value, TEXT).sql
    return coerce(binder.context, Typed(f"lower({text})", TEXT), REGTYPE)


def _substring(binder: QueryBinder, node: CallNode, scope: CatalogScope) -> Typed:
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


_Binder = Callable[["QueryBinder", CallNode, CatalogScope], Typed]

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


class QueryBinder:
    """Binds queries and what is in them. `numbers`: the parameters met so far."""

    def __init__(self, context: TranslationContext, relations: CatalogRelations) -> None:
        self.context = context
        self.numbers: set[int] = set()
        self._relations = relations

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

    # --- queries ---------------------------------------------------------------------------------------------

    def query(self, query: exp.Expr, scope: CatalogScope | None) -> Bound:
        """Return a query in the engine's SQL. Raises CatalogRefusal."""
        query, scope = plain(query), CatalogScope(scope, {})
        with_ = query.args.get("with_")
        if with_ is None:
            return self._body(query, scope)
        is_recursive = bool(with_.args.get("recursive"))
        ctes = [self._cte(cte, is_recursive, scope) for cte in with_.expressions]
        bound = self._body(query, scope)
        word = "WITH RECURSIVE" if is_recursive else "WITH"
        return Bound(f"{word} {', '.join(ctes)} {bound.sql}", bound.columns)

    def _body(self, query: exp.Expr, scope: CatalogScope) -> Bound:
        order, is_select = sort_keys(query), isinstance(query, exp.Select)
        read = _BODIES.get(type(query))
        if read is None:
            raise unsupported("something else than a query")
        bound = read(self, query, scope)
        if order and not is_select:
            keys = ", ".join(self._output_key(key, bound, scope) for key in order)
            alias = self.context.alias()
            bound = Bound(f"SELECT * FROM ({bound.sql}) AS {alias} ORDER BY {keys}", bound.columns)
        limit, offset = query.args.get("limit"), query.args.get("offset")
        if isinstance(limit, exp.Fetch):
            limit = limit.args.get("count") or exp.Literal.number(1)
        elif limit is not None:
            limit = None if isinstance(limit.expression, exp.Var) else limit.expression  # ALL
        if limit is None and offset is None:
            return bound
        sql = bound.sql
        if not (is_select or order):
            sql = f"SELECT * FROM ({sql}) AS {self.context.alias()}"
        for word, count in (("LIMIT", limit), ("OFFSET", None if offset is None else offset.expression)):
            if count is not None:
                sql += f" {word} {self._count(count, word.lower())}"
        return Bound(sql, bound.columns)

    def _count(self, expression: exp.Expr, word: str) -> str:
        count = f"({self.bind_as(expression, CatalogScope(None, {}), INT8)})"
        if digits_of(expression) is not None:
            return count
        return f"(CASE WHEN {count} < 0 THEN {raised(word)} ELSE {count} END)"

    # --- WITH, UNION, VALUES -----------------------------------------------------------------------------------

    def _cte(self, cte: exp.CTE, is_recursive: bool, scope: CatalogScope) -> str:
        alias = self.context.alias("w")
        name, names = alias_of(cte)
        if name is None:
            raise unsupported("a query of WITH without a name")
        body = plain(cte.this)
        if is_recursive and isinstance(body, exp.Union):
            first = self.query(body.this, scope)
            columns = _renamed(first.columns, names)
            scope.ctes[name] = Bound(alias, columns)
            second = self.query(body.expression, scope)
            if len(second.columns) != len(columns):
                raise unsupported("a recursive query of unequal columns")
            shape = [typed.type for _, typed in columns]
            word = "UNION" if body.args.get("distinct") else "UNION ALL"
            sql = f"{self._cast_all(first, shape)} {word} {self._cast_all(second, shape)}"
        else:
            bound = self.query(body, scope)
            columns, sql = _renamed(bound.columns, names), bound.sql
            scope.ctes[name] = Bound(alias, columns)
        listed = ", ".join(f"c{at}" for at in range(len(columns)))
        return f"{alias} ({listed}) AS ({sql})"

    def _cast_all(self, bound: Bound, shape: Sequence[PgType]) -> str:
        alias = self.context.alias()
        parts = []
        for at, ((_, typed), type_) in enumerate(zip(bound.columns, shape, strict=True)):
            target = TEXT if type_ is UNKNOWN else type_
            value = coerce(self.context, Typed(f"{alias}.c{at}", typed.type), target)
            parts.append(f"CAST({value.sql} AS {target.holder}) AS c{at}")
        return f"SELECT {', '.join(parts)} FROM ({bound.sql}) AS {alias}"

    def _set_operation(self, node: exp.SetOperation, scope: CatalogScope) -> Bound:
        left, right = self.query(node.this, scope), self.query(node.expression, scope)
        if len(left.columns) != len(right.columns):
            raise unsupported(f"{node.key} of queries of unequal columns")
        shape = [
            self.together([Typed("NULL", one.type), Typed("NULL", other.type)])[0]
            for (_, one), (_, other) in zip(left.columns, right.columns, strict=True)
        ]
        word = f"{node.key.upper()}{'' if node.args.get('distinct') else ' ALL'}"
        sql = f"{self._cast_all(left, shape)} {word} {self._cast_all(right, shape)}"
        named = enumerate(zip(left.columns, shape, strict=True))
        columns = tuple((name, Typed(f"c{at}", type_, one.modifier)) for at, ((name, one), type_) in named)
        return Bound(f"SELECT * FROM ({sql}) AS {self.context.alias()}", columns)

    def _values(self, node: exp.Values, scope: CatalogScope) -> Bound:
        rows = [[self.bind(item, scope) for item in row.expressions] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise unsupported("VALUES of unequal rows")
        columns = [self.together(list(column)) for column in zip(*rows, strict=True)]
        lines = [f"({', '.join(row)})" for row in zip(*(sqls for _, sqls in columns), strict=True)]
        names = ", ".join(f"c{at}" for at in range(len(columns)))
        sql = f"SELECT * FROM (VALUES {', '.join(lines)}) AS {self.context.alias()}({names})"
        output = tuple((f"column{at + 1}", Typed(f"c{at}", type_)) for at, (type_, _) in enumerate(columns))
        return Bound(sql, output)

    def _output_key(self, key: exp.Ordered, bound: Bound, scope: CatalogScope) -> str:
        place = _place(key.this, [name for name, _ in bound.columns])
        if place is None:
            raise unsupported("ORDER BY an expression after UNION")
        return sort_key(str(place), key)

    # --- SELECT --------------------------------------------------------------------------------------------------

    def _nested(self, node: exp.Subquery, scope: CatalogScope) -> Bound:
        if not is_query(node.this):
            raise unsupported("something else than a query")
        return self.query(node.this, scope)

    def _select(self, node: exp.Select, scope: CatalogScope) -> Bound:
        order = sort_keys(node)
        inside = CatalogScope(scope, {})
        froms = self._froms(node, inside)
        items = [found for item in node.expressions for found in self._items(item, inside)]
        listed = ", ".join(f"{_shown(typed)} AS c{at}" for at, (_, typed) in enumerate(items)) or "1"
        sql = f"SELECT {self._distinct(node, items, inside)}{listed}"
        if froms:
            sql += f" FROM {', '.join(froms)}"
        where, group, having = (node.args.get(name) for name in ("where", "group", "having"))
        if where is not None:
            sql += f" WHERE {self.condition(where.this, inside)}"
        if group is not None:
            sql += f" GROUP BY {', '.join(self._group_key(key, items, inside) for key in group.expressions)}"
        if having is not None:
            sql += f" HAVING {self.condition(having.this, inside)}"
        if order:
            sql += f" ORDER BY {', '.join(self._key(key, items, inside) for key in order)}"
        elif (
            len(froms) == 1
            and "(SELECT" in sql
            and (stored := _STORED.fullmatch(froms[0]))
            and _is_plain(node)
        ):
            sql += f" ORDER BY {stored[1]}.rowid"
        return Bound(sql, _numbered("c", items))

    def _distinct(self, node: exp.Select, items: list[Output], scope: CatalogScope) -> str:
        distinct = node.args.get("distinct")
        if distinct is None:
            return ""
        on = distinct.args.get("on")
        if on is None:
            return "DISTINCT "
        keys = on.expressions if isinstance(on, exp.Tuple) else (on,)
        return f"DISTINCT ON ({', '.join(self._group_key(key, items, scope) for key in keys)}) "

    def _items(self, item: exp.Expr, scope: CatalogScope) -> list[Output]:
        is_named = isinstance(item, exp.Alias)
        alias = name_of(item.args["alias"]) if is_named else None
        expression = inner(item.this if is_named else item)
        if expression.is_star:
            return self._stars(expression, scope)
        typed = self.bind(expression, scope)
        if typed.parameter is not None:
            typed = Typed(f"CAST($p{typed.parameter} AS VARCHAR)", TEXT)
        return [(output_name(expression) if alias is None else alias, typed)]

    def _stars(self, star: exp.Expr, scope: CatalogScope) -> list[Output]:
        if isinstance(star, exp.Dot):
            record = self.bind(star.this, scope)
            return [
                (name, Typed(f"struct_extract({record.sql}, '{name}')", type_))
                for name, type_ in record.type.fields
            ]
        sources = scope.sources
        if isinstance(star, exp.Column):
            source = scope.source(parts_of(star)[-2])
            sources = [] if source is None else [source]
        if not sources:
            raise unsupported("* without a relation")
        if isinstance(star, exp.Column):
            return [output for source in sources for output in source.columns]
        found = [output for source in sources for output in source.columns if output[0] not in source.merged]
        first = {name: place for place, name in enumerate(scope.shared)}
        return sorted(found, key=lambda output: first.get(output[0], len(first)))

    def _group_key(self, key: exp.Expr, items: list[Output], scope: CatalogScope) -> str:
        names = [name for name, _ in items]
        place = _place(key, names)
        column = parts_of(key) if isinstance(key, exp.Column) else ()
        if len(column) == 1 and any(source.find(column[0]) for source in scope.sources):
            place = None
        return self.bind_as_is(key, scope) if place is None else items[place - 1][1].sql

    def _key(self, key: exp.Ordered, items: list[Output], scope: CatalogScope) -> str:
        place = _place(key.this, [name for name, _ in items])
        if place is None:
            sql = self.bind_as_is(key.this, scope)
            place = next((at for at, item in enumerate(items, 1) if item[1].sql == sql), None)
            if place is None:
                return sort_key(sql, key)
        return sort_key(str(place), key)

    # --- FROM ----------------------------------------------------------------------------------------------------

    def _froms(self, node: exp.Select, scope: CatalogScope) -> list[str]:
        """Return the items of FROM, those joined as one."""
        first = node.args.get("from_")
        if first is None:
            return []
        groups: list[tuple[exp.Expr, list[exp.Join]]] = [(first.this, [])]
        for join in node.args.get("joins") or ():
            if any(join.args.get(name) for name in ("side", "kind", "method", "on", "using")):
                groups[-1][1].append(join)
            else:
                groups.append((join.this, []))
        return [self._with_joins(item, joins, scope) for item, joins in groups]

    def _with_joins(self, item: exp.Expr, joins: Sequence[exp.Join], scope: CatalogScope) -> str:
        start = len(scope.sources)
        sql = self._from(item, scope)
        for join in (*(item.args.get("joins") or ()), *joins):
            sql = self._join(sql, start, join, scope)
        return sql

    def _from(self, item: exp.Expr, scope: CatalogScope) -> str:
        alias, columns = alias_of(item)
        has_ordinality = bool(item.args.get("ordinality"))
        found = item.this if isinstance(item, (exp.Table, exp.Lateral)) else item
        if isinstance(item, exp.Table) and item.args.get("rows_from"):
            if len(item.args["rows_from"]) != 1:
                raise unsupported("ROWS FROM several functions")
            found = item.args["rows_from"][0].this
        call = call_of(found)
        if call is not None:
            if item.args.get("db"):
                raise unsupported("a function of another schema")
            return self._function(call, alias, columns, has_ordinality, scope)
        if isinstance(item, exp.Table):
            schema = item.args.get("db")
            path = None if schema is None else name_of(schema), name_of(found)
            return self._table(*path, alias, columns, scope)
        if isinstance(found, exp.Subquery) and _is_item(found.this):
            if alias is not None:
                raise unsupported("an alias of a join")
            return self._with_joins(found.this, (), scope)
        if not is_query(found):
            raise unsupported("this item of FROM")
        return self._derived(self.query(found, scope), alias or "", columns, scope)

    def _derived(self, bound: Bound, name: str, names: Sequence[str], scope: CatalogScope) -> str:
        alias = self.context.alias()
        columns = _numbered(f"{alias}.c", _renamed(bound.columns, names), TEXT)
        scope.sources.append(CatalogSource(name, columns))
        return f"({bound.sql}) AS {alias}"

    def _table(
        self, schema: str | None, path: str, given: str | None, names: Sequence[str], scope: CatalogScope
    ) -> str:
        name = given or path
        cte = scope.cte(path) if schema is None else None
        if cte is not None:
            read = Bound(f"SELECT * FROM {cte.sql}", cte.columns)
            return self._derived(read, name, names, scope)
        alias = self.context.alias()
        sql, relation = self._relations.read(schema, path)
        columns = tuple(
            (column, Typed(f'{alias}."{column}"', type_, modifier))
            for column, type_, modifier, _ in relation.columns
        )
        system = {
            "tableoid": Typed(f"CAST({relation.oid} AS BIGINT)", self._relations.oid),
            "xmin": Typed("CAST(1 AS BIGINT)", self._relations.xid),
        }
        schema = None if given else relation.schema
        scope.sources.append(CatalogSource(name, _renamed(columns, names), system, schema=schema))
        return f"{sql} AS {alias}"

    def _function(
        self,
        call: CallNode,
        given: str | None,
        names: Sequence[str],
        has_ordinality: bool,
        scope: CatalogScope,
    ) -> str:
        if call.name in _RELATIONS and not call.arguments and not has_ordinality:
            return self._relation(call.name, given, names, scope)
        alias, name = self.context.alias(), given or call.name
        # Several arrays stand side by side, the shorter ones filled with NULL.
        arrays = call.arguments if call.name == "unnest" else ()
        calls = [CallNode(call.name, (array,)) for array in arrays] if len(arrays) > 1 else [call]
        items = [bind_item(self, one, scope) for one in calls]
        parts = [f"unnest({typed.sql})" if is_set else typed.sql for is_set, typed in items]
        columns: list[Output] = [
            (name if len(items) == 1 else call.name, Typed(f"{alias}.c{at}", typed.type))
            for at, (_, typed) in enumerate(items)
        ]
        if fields := columns[0][1].type.fields:
            columns = [
                (field, Typed(f"struct_extract({alias}.c0, '{field}')", type_)) for field, type_ in fields
            ]
        if has_ordinality:
            lengths = ", ".join(f"len({typed.sql})" if is_set else "1" for is_set, typed in items)
            columns.append(("ordinality", Typed(f"{alias}.c{len(parts)}", INT8)))
            parts.append(f"unnest(generate_series(1, greatest({lengths})))")
        scope.sources.append(CatalogSource(name, _renamed(columns, names)))
        listed = ", ".join(f"{part} AS c{at}" for at, part in enumerate(parts))
        return f"(SELECT {listed}) AS {alias}"

    def _relation(self, name: str, given: str | None, names: Sequence[str], scope: CatalogScope) -> str:
        """A function that a view of the catalog is made of: the view, without the columns that it adds."""
        view, added = _RELATIONS[name]
        sql = self._table("pg_catalog", view, given or name, (), scope)
        source = scope.sources[-1]
        kept = tuple(column for column in source.columns if column[0] not in added)
        source.columns, source.system = _renamed(kept, names), {}
        return sql

    def _join(self, left: str, start: int, join: exp.Join, scope: CatalogScope) -> str:
        """Return what is on the left, whose items begin at `start` in the scope, joined with another item."""
        middle = len(scope.sources)
        right = self._with_joins(join.this, (), scope)
        kind, side, on, using = (join.args.get(name) for name in ("kind", "side", "on", "using"))
        is_natural = join.args.get("method") == "NATURAL"
        if kind == "CROSS":
            return f"({left} CROSS JOIN {right})"
        if (kind or "INNER") not in ("INNER", "OUTER") or (join.args.get("method") and not is_natural):
            raise unsupported("a join of that kind")
        if on is not None:
            condition = self.condition(on, scope)
        elif using or is_natural:
            sides = scope.sources[start:middle], scope.sources[middle:]
            names = [name_of(column) for column in using] if using else _shared(*sides)
            condition = " AND ".join(self._merged(name, *sides) for name in names) or "true"
            scope.shared[:] = dict.fromkeys([*names, *scope.shared])
        else:
            raise unsupported("a join without a condition")
        return f"({left} {side or 'INNER'} JOIN {right} ON {condition})"

    def _merged(self, name: str, left: list[CatalogSource], right: list[CatalogSource]) -> str:
        pair = []
        for side in (left, right):
            found = [
                typed
                for source in side
                if name not in source.merged
                for typed in [source.find(name)]
                if typed
            ]
            if len(found) != 1:
                raise unsupported("USING a column that is not one of each side")
            pair.append(found[0])
        for source in right:
            if source.find(name) is not None:
                source.merged.add(name)
        return self.operate("=", *pair).sql


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


_BINDERS: dict[type, Callable[[QueryBinder, Any, CatalogScope], Typed]] = {
    exp.Literal: QueryBinder._literal,
    exp.Null: QueryBinder._null,
    exp.Boolean: QueryBinder._boolean,
    exp.Parameter: QueryBinder._parameter,
    exp.Column: QueryBinder._name,
    exp.Cast: QueryBinder._cast,
    exp.Dot: QueryBinder._field,
    exp.Bracket: QueryBinder._subscript,
    **dict.fromkeys((exp.And, exp.Or), QueryBinder._connected),
    **dict.fromkeys((*_OPERATORS, exp.Operator), QueryBinder._operation),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), QueryBinder._distinct_from),
    exp.Not: QueryBinder._not,
    exp.Neg: QueryBinder._negative,
    exp.Escape: QueryBinder._escaped,
    exp.Between: QueryBinder._between,
    exp.Is: QueryBinder._is,
    exp.In: QueryBinder._in,
    exp.Case: QueryBinder._case,
    exp.Array: QueryBinder._array_list,
    exp.Exists: QueryBinder._exists,
    exp.Subquery: QueryBinder._scalar,
}


_RELATIONS = {
    "pg_show_all_settings": ("pg_settings", ()),
    "pg_available_extensions": ("pg_available_extensions", ("installed_version",)),
    "pg_available_extension_versions": ("pg_available_extension_versions", ("installed",)),
}
"""Functions -> the view over each, and what it adds."""
_STORED = regex(r'c\."\w+" AS (\w+)')
"""A relation of the engine's: without a join its rows come as Postgres has them, for clients take the first."""


_BODIES: dict[type[exp.Expr], Callable[[QueryBinder, Any, CatalogScope], Bound]] = {
    exp.Select: QueryBinder._select,
    exp.Values: QueryBinder._values,
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), QueryBinder._set_operation),
    exp.Subquery: QueryBinder._nested,
}
"""Kind of node -> what binds the query that it is, without LIMIT; an ORDER BY of a SELECT with it."""


def _shared(left: list[CatalogSource], right: list[CatalogSource]) -> list[str]:
    there = {name for source in right for name, _ in source.columns}
    return [name for source in left for name, _ in source.columns if name in there]


def _is_item(node: exp.Expr) -> bool:
    """Say whether what stands in parentheses is no query, but an item of FROM."""
    if not isinstance(node, exp.Subquery):
        return isinstance(node, exp.Table)
    return bool(node.args.get("alias") or node.args.get("joins")) or _is_item(node.this)


def _is_plain(node: exp.Select) -> bool:
    """Say whether a SELECT gives a row for each of its relation's that it keeps."""
    if any(node.args.get(name) for name in ("distinct", "group", "having")):
        return False
    return not any(name_of(call) in AGGREGATES for call in node.find_all(exp.Anonymous))


def _shown(typed: Typed) -> str:
    return "CAST(NULL AS VARCHAR)" if typed.is_null and typed.type is UNKNOWN else typed.sql


def _renamed(columns: Sequence[Output], names: Sequence[str]) -> tuple[Output, ...]:
    if len(names) > len(columns):
        raise unsupported("more names than columns")
    return tuple((names[at] if at < len(names) else name, typed) for at, (name, typed) in enumerate(columns))


def _numbered(prefix: str, columns: Sequence[Output], untyped: PgType = UNKNOWN) -> tuple[Output, ...]:
    """Return a query's columns by what it calls them; `untyped`: the type of those that have none yet."""
    return tuple(
        (name, Typed(f"{prefix}{at}", untyped if typed.type is UNKNOWN else typed.type, typed.modifier))
        for at, (name, typed) in enumerate(columns)
    )


def _place(expression: exp.Expr, names: list[str]) -> int | None:
    """Return which column of the output, from 1, a key of ORDER BY or GROUP BY names; None for none."""
    digits = digits_of(expression)
    if digits is not None:
        place = int(digits) if len(digits) < 6 else 0
        if not 1 <= place <= len(names):
            raise unsupported("ORDER BY a column that is not there")
        return place
    if isinstance(expression, exp.Column) and not expression.table and parts_of(expression)[-1] in names:
        return names.index(parts_of(expression)[-1]) + 1
    return None
