"""An expression of a catalog query to the engine's SQL, with Postgres' type.

House rule: what is not in a table here, or has no method here, is refused. No text of the client's passes as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .bind_calls import CallBinder
from .errors import unsupported
from .pg_types import (
    BOOL,
    BY_NAME,
    FLOAT8,
    INT2VECTOR,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    OIDVECTOR,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    PgType,
    array_of,
    wider,
)
from .scope import CatalogScope
from .syntax import (
    ArrayList,
    ArrayQuery,
    Between,
    CallNode,
    CaseNode,
    Cast,
    Exists,
    Expression,
    FieldNode,
    In,
    IsTest,
    LiteralNode,
    Name,
    Operation,
    Parameter,
    Quantified,
    QueryNode,
    Row,
    ScalarQuery,
    Slice,
    Subscript,
    TypeName,
)
from .typed import Typed, coerce, common_type, quoted

__all__ = ["ExpressionBinder", "named_type"]

_COMPARISONS = frozenset({"=", "<>", "<", ">", "<=", ">="})
_MATCHES = {"~": "(regexp_matches({}, {}))", "!~": "(NOT regexp_matches({}, {}))",
            "~*": "(regexp_matches({}, {}, 'i'))", "!~*": "(NOT regexp_matches({}, {}, 'i'))"}  # fmt: skip
_LIKES = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}
_LISTS = {"@>": "list_has_all({0}, {1})", "<@": "list_has_all({1}, {0})", "&&": "list_has_any({0}, {1})"}
_TIMESTAMPS = (TIMESTAMP, TIMESTAMPTZ)
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "^", "&", "|", "<<", ">>"})
_MAX_PARAMETERS = 1000


def named_type(type_: TypeName) -> PgType:
    """Return the type that a name means. Raises CatalogRefusal: it is not known here."""
    name = type_.name
    found = BY_NAME.get("bpchar" if name == "char" else name)
    if found is not None and type_.depth:
        found = array_of(found)
    if found is None:
        raise unsupported(f"the type {name[:60]}")
    return found


class ExpressionBinder(CallBinder):
    """Binds expressions; queries inside them are bound by the class below."""

    def bind(self, expression: Expression, scope: CatalogScope) -> Typed:
        """Return an expression in the engine's SQL. Raises CatalogRefusal."""
        bind = _BINDERS.get(type(expression))
        if bind is None:
            raise unsupported(f"{type(expression).__name__} here")
        found: Typed = bind(self, expression, scope)
        return found

    def bind_as(self, expression: Expression, scope: CatalogScope, target: PgType) -> str:
        """Return an expression's SQL as a value of a type. Raises CatalogRefusal."""
        return coerce(self.context, self.bind(expression, scope), target).sql

    def condition(self, expression: Expression, scope: CatalogScope) -> str:
        """Return a condition's SQL. Raises CatalogRefusal."""
        return self.bind_as(expression, scope, BOOL)

    def together(self, values: Sequence[Typed]) -> tuple[PgType, list[str]]:
        """Return the type that values have beside each other, and their SQL in it. Raises CatalogRefusal."""
        type_ = common_type(list(values))
        return type_, [coerce(self.context, value, type_).sql for value in values]

    # --- constants, names, casts ---------------------------------------------------------------------------

    def _literal(self, node: LiteralNode, scope: CatalogScope) -> Typed:
        value = node.value
        if value is None:
            return Typed("NULL", UNKNOWN, is_null=True)
        if isinstance(value, bool):
            return Typed("true" if value else "false", BOOL)
        if isinstance(value, int):
            if abs(value) >= 2**63:
                raise unsupported("a number that large")
            type_ = INT4 if -(2**31) <= value < 2**31 else INT8
            return Typed(f"CAST({value} AS {type_.holder})", type_)
        if node.is_decimal:
            return coerce(self.context, Typed(quoted(value), UNKNOWN, literal=value), NUMERIC)
        return Typed(quoted(value), UNKNOWN, literal=value)

    def _parameter(self, node: Parameter, scope: CatalogScope) -> Typed:
        if not 1 <= node.number <= _MAX_PARAMETERS:
            raise unsupported("a parameter of that number")
        known = self.context.parameters.get(node.number)
        if known is not None:
            return Typed(f"CAST($p{node.number} AS {known.holder})", known)
        self.numbers.add(node.number)
        return Typed("NULL", UNKNOWN, parameter=node.number)

    def _name(self, node: Name, scope: CatalogScope) -> Typed:
        return scope.column(node.parts)

    def _cast(self, node: Cast, scope: CatalogScope) -> Typed:
        target = named_type(node.type)
        value = coerce(self.context, self.bind(node.expression, scope), target)
        if node.type.modifiers and target.name in ("varchar", "bpchar"):
            return Typed(f"left({value.sql}, {node.type.modifiers[0]})", target)
        if node.type.modifiers and target.name == "numeric":
            digits, scale, *_ = (*node.type.modifiers, 0)
            if not 1 <= digits <= 38 or scale > digits:
                raise unsupported("a numeric of so many digits")
            return Typed(f"CAST(CAST({value.sql} AS DECIMAL({digits}, {scale})) AS {target.holder})", target)
        return value

    def _field(self, node: FieldNode, scope: CatalogScope) -> Typed:
        record = self.bind(node.expression, scope)
        for name, type_ in record.type.fields:
            if name == node.name:
                return Typed(f"struct_extract({record.sql}, {quoted(name)})", type_)
        raise unsupported("a field of something without fields")

    def _subscript(self, node: Subscript, scope: CatalogScope) -> Typed:
        value = self.bind(node.expression, scope)
        element = value.type.element
        if element is None:
            raise unsupported("an index into something without any")
        index = self.bind_as(node.index, scope, INT8)
        if value.type in (INT2VECTOR, OIDVECTOR):
            index = f"({index} + 1)"
        return Typed(f"list_extract({value.sql}, greatest({index}, 0))", element)

    def _slice(self, node: Slice, scope: CatalogScope) -> Typed:
        value = self.bind(node.expression, scope)
        if value.type.element is None or value.type in (INT2VECTOR, OIDVECTOR):
            raise unsupported(f"a slice of {value.type.name}")
        first = "1" if node.first is None else f"greatest({self.bind_as(node.first, scope, INT8)}, 1)"
        last = (
            f"len({value.sql})"
            if node.last is None
            else f"greatest({self.bind_as(node.last, scope, INT8)}, 0)"
        )
        return Typed(f"list_slice({value.sql}, {first}, {last})", value.type)

    # --- operators ---------------------------------------------------------------------------------------------

    def _operation(self, node: Operation, scope: CatalogScope) -> Typed:
        if node.operator in ("and", "or"):
            sides = [self.condition(side, scope) for side in (node.left, node.right) if side is not None]
            return Typed(f"({f' {node.operator.upper()} '.join(sides)})", BOOL)
        if node.operator == "not":
            return Typed(f"(NOT {self.condition(node.right, scope)})", BOOL)
        right = self.bind(node.right, scope)
        if node.left is None:
            type_, (sql,) = self.together([right])
            if not type_.is_number and type_ is not INTERVAL:
                raise unsupported(f"the sign {node.operator} before {type_.name}")
            return Typed(f"({node.operator} {sql})", type_)
        if isinstance(node.left, Row):
            return self._rows_compared(node.operator, node.left, node.right, scope)
        left = self.bind(node.left, scope)
        if node.operator in _LIKES and node.escape is not None:
            return self._like(node.operator, left, right, self.bind_as(node.escape, scope, TEXT))
        return self.operate(node.operator, left, right)

    def operate(self, operator: str, left: Typed, right: Typed) -> Typed:
        """Return what an operator makes of two values. Raises CatalogRefusal."""
        if operator in _COMPARISONS:
            _, (one, other) = self.together([left, right])
            return Typed(f"({one} {operator} {other})", BOOL)
        if operator in _MATCHES:
            return Typed(_MATCHES[operator].format(self._text(left), self._text(right)), BOOL)
        if operator in _LIKES:
            return self._like(operator, left, right, quoted("\\"))
        if operator == "||":
            return self._joined(left, right)
        if operator in _LISTS:
            type_, sides = self.together([left, right])
            if type_.element is None:
                raise unsupported(f"the operator {operator} on {type_.name}")
            return Typed(_LISTS[operator].format(*sides), BOOL)
        if operator in _ARITHMETIC:
            return self._arithmetic(operator, left, right)
        raise unsupported(f"the operator {operator[:10]}")

    def _text(self, value: Typed) -> str:
        return coerce(self.context, value, TEXT).sql

    def _like(self, operator: str, left: Typed, right: Typed, escape: str) -> Typed:
        return Typed(f"({self._text(left)} {_LIKES[operator]} {self._text(right)} ESCAPE {escape})", BOOL)

    def _joined(self, left: Typed, right: Typed) -> Typed:
        if left.type.element is None and right.type.element is None:
            return Typed(f"({self._text(left)} || {self._text(right)})", TEXT)
        if left.type.element is not None and right.type.element is not None:
            type_, (one, other) = self.together([left, right])
            return Typed(f"list_concat({one}, {other})", type_)
        array, other_value = (left, right) if left.type.element is not None else (right, left)
        assert array.type.element is not None
        item = coerce(self.context, other_value, array.type.element).sql
        parts = (array.sql, f"[{item}]") if array is left else (f"[{item}]", array.sql)
        return Typed(f"list_concat({parts[0]}, {parts[1]})", array.type)

    def _arithmetic(self, operator: str, left: Typed, right: Typed) -> Typed:
        families = {left.type.family, right.type.family}
        if "moment" in families and "interval" in families and operator in "+-":
            moment = left.type if left.type.family == "moment" else right.type
            return Typed(f"({left.sql} {operator} {right.sql})", moment)
        if operator == "-" and left.type in _TIMESTAMPS and right.type in _TIMESTAMPS:
            return Typed(f"({left.sql} - {right.sql})", INTERVAL)
        type_, (one, other) = self.together([left, right])
        if not type_.is_number:
            raise unsupported(f"arithmetic on {type_.name}")
        if operator == "^":
            return Typed(f"pow({one}, {other})", FLOAT8)
        sign = "//" if operator == "/" and type_.holder in ("SMALLINT", "INTEGER", "BIGINT") else operator
        return Typed(f"CAST(({one} {sign} {other}) AS {type_.holder})", type_)

    def _rows_compared(self, operator: str, left: Row, right: Expression, scope: CatalogScope) -> Typed:
        if not isinstance(right, Row) or len(right.items) != len(left.items) or operator not in _COMPARISONS:
            raise unsupported("this comparison of rows")
        pairs = [
            self.together([self.bind(one, scope), self.bind(other, scope)])[1]
            for one, other in zip(left.items, right.items, strict=True)
        ]
        sides = [", ".join(pair[side] for pair in pairs) for side in (0, 1)]
        return Typed(f"(row({sides[0]}) {operator} row({sides[1]}))", BOOL)

    def _between(self, node: Between, scope: CatalogScope) -> Typed:
        values = [self.bind(part, scope) for part in (node.expression, node.low, node.high)]
        _, (value, low, high) = self.together(values)
        return Typed(f"({value} {'NOT ' if node.is_negated else ''}BETWEEN {low} AND {high})", BOOL)

    def _is(self, node: IsTest, scope: CatalogScope) -> Typed:
        negated = "NOT " if node.is_negated else ""
        if node.other is not None:
            _, (one, other) = self.together([self.bind(node.expression, scope), self.bind(node.other, scope)])
            return Typed(f"({one} IS {negated}DISTINCT FROM {other})", BOOL)
        value = self.bind(node.expression, scope)
        if node.what == "null":
            sql = coerce(self.context, value, TEXT).sql if value.type is UNKNOWN else value.sql
            return Typed(f"({sql} IS {negated}NULL)", BOOL)
        sql = coerce(self.context, value, BOOL).sql
        if node.what == "unknown":
            return Typed(f"({sql} IS {negated}NULL)", BOOL)
        # IS TRUE is "not distinct from true".
        is_not = "" if node.is_negated else "NOT "
        return Typed(f"({sql} IS {is_not}DISTINCT FROM {node.what})", BOOL)

    # --- IN, ANY, ALL --------------------------------------------------------------------------------------------

    def _in(self, node: In, scope: CatalogScope) -> Typed:
        negated = "NOT " if node.is_negated else ""
        is_row = isinstance(node.expression, Row)
        left = [self.bind(item, scope) for item in _items(node.expression)]
        if isinstance(node.among, QueryNode):
            bound = self.query(node.among, scope)
            if len(bound.columns) != len(left):
                raise unsupported("IN over a query of other columns")
            alias = self.context.alias()
            sides = [
                self.together([value, Typed(f"{alias}.c{at}", column.type)])[1]
                for at, (value, (_, column)) in enumerate(zip(left, bound.columns, strict=True))
            ]
            query = f"SELECT {_row([side[1] for side in sides], is_row)} FROM ({bound.sql}) AS {alias}"
            return Typed(f"({_row([side[0] for side in sides], is_row)} {negated}IN ({query}))", BOOL)
        rows = [
            [self.bind(item, scope) for item in _items(row) if is_row or item is row] for row in node.among
        ]
        if any(len(row) != len(left) for row in rows):
            raise unsupported("IN over rows of another length")
        columns = [self.together(list(column))[1] for column in zip(left, *rows, strict=True)]
        first, *others = [_row(list(row), is_row) for row in zip(*columns, strict=True)]
        return Typed(f"({first} {negated}IN ({', '.join(others)}))", BOOL)

    def _quantified(self, node: Quantified, scope: CatalogScope) -> Typed:
        left = self.bind(node.left, scope)
        if isinstance(node.right, QueryNode):
            bound = self.query(node.right, scope)
            if len(bound.columns) != 1:
                raise unsupported("ANY over a query of several columns")
            column = bound.columns[0][1].type
            if column.element is None or left.type.element is not None:
                rows = f"SELECT c0 AS v FROM ({bound.sql}) AS {self.context.alias()}"
                return self._folded(node, left, rows, column)
            right = Typed(f"({bound.sql})", column)
        else:
            right = self.bind(node.right, scope)
        if right.type is UNKNOWN:
            right = coerce(self.context, right, array_of(left.type) or _texts())
        element = right.type.element
        if element is None:
            raise unsupported("ANY over something that is no array")
        is_found = (node.operator, node.is_all) in (("=", False), ("<>", True))
        if is_found and wider(left.type, element) is not None:
            _, (sought, _) = self.together([left, Typed("NULL", element)])
            found = f"list_contains({right.sql}, {sought})"
            found = f"CASE WHEN {sought} IS NULL THEN NULL ELSE {found} END"
            return Typed(f"(NOT {found})" if node.is_all else found, BOOL)
        return self._folded(node, left, f"SELECT unnest({right.sql}) AS v", element)

    def _folded(self, node: Quantified, left: Typed, rows: str, element: PgType) -> Typed:
        alias = self.context.alias()
        test = self.operate(node.operator, left, Typed(f"{alias}.v", element)).sql
        fold, empty = ("bool_and", "true") if node.is_all else ("bool_or", "false")
        return Typed(f"(SELECT coalesce({fold}({test}), {empty}) FROM ({rows}) AS {alias})", BOOL)

    # --- CASE, arrays, queries --------------------------------------------------------------------------------------

    def _case(self, node: CaseNode, scope: CatalogScope) -> Typed:
        results = [self.bind(result, scope) for _, result in node.whens]
        default = (
            Typed("NULL", UNKNOWN, is_null=True) if node.default is None else self.bind(node.default, scope)
        )
        type_, (default_sql, *sqls) = self.together([default, *results])
        parts = []
        for (condition, _), result in zip(node.whens, sqls, strict=True):
            if node.operand is None:
                test = self.condition(condition, scope)
            else:
                test = self.operate("=", self.bind(node.operand, scope), self.bind(condition, scope)).sql
            parts.append(f"WHEN {test} THEN {result}")
        return Typed(f"CASE {' '.join(parts)} ELSE {default_sql} END", type_)

    def _array_list(self, node: ArrayList, scope: CatalogScope) -> Typed:
        type_, sqls = self.together([self.bind(item, scope) for item in node.items])
        array = array_of(type_)
        if array is None:
            raise unsupported(f"an array of {type_.name}")
        return Typed(f"CAST([{', '.join(sqls)}] AS {array.holder})", array)

    def _array_query(self, node: ArrayQuery, scope: CatalogScope) -> Typed:
        bound = self.query(node.query, scope)
        type_ = TEXT if bound.columns[0][1].type is UNKNOWN else bound.columns[0][1].type
        array = array_of(type_)
        if len(bound.columns) != 1 or array is None:
            raise unsupported("an array of a query of this type")
        alias = self.context.alias()
        listed = f"SELECT list({alias}.c0) FROM ({bound.sql}) AS {alias}"
        return Typed(f"CAST(coalesce(({listed}), []) AS {array.holder})", array)

    def _exists(self, node: Exists, scope: CatalogScope) -> Typed:
        return Typed(f"EXISTS ({self.query(node.query, scope).sql})", BOOL)

    def _scalar(self, node: ScalarQuery, scope: CatalogScope) -> Typed:
        bound = self.query(node.query, scope)
        if len(bound.columns) != 1:
            raise unsupported("a subquery of several columns as a value")
        return Typed(f"({bound.sql})", bound.columns[0][1].type)

    def _call(self, node: CallNode, scope: CatalogScope) -> Typed:
        return self.call(node, scope)


def _items(expression: Expression) -> tuple[Expression, ...]:
    return expression.items if isinstance(expression, Row) else (expression,)


def _row(values: Iterable[str], is_row: bool) -> str:
    text = ", ".join(values)
    return f"row({text})" if is_row else text


def _texts() -> PgType:
    found = array_of(TEXT)
    assert found is not None
    return found


_BINDERS: dict[type, Callable[[ExpressionBinder, Any, CatalogScope], Typed]] = {
    LiteralNode: ExpressionBinder._literal,
    Parameter: ExpressionBinder._parameter,
    Name: ExpressionBinder._name,
    Cast: ExpressionBinder._cast,
    FieldNode: ExpressionBinder._field,
    Subscript: ExpressionBinder._subscript,
    Slice: ExpressionBinder._slice,
    Operation: ExpressionBinder._operation,
    Between: ExpressionBinder._between,
    IsTest: ExpressionBinder._is,
    In: ExpressionBinder._in,
    Quantified: ExpressionBinder._quantified,
    CaseNode: ExpressionBinder._case,
    ArrayList: ExpressionBinder._array_list,
    ArrayQuery: ExpressionBinder._array_query,
    Exists: ExpressionBinder._exists,
    ScalarQuery: ExpressionBinder._scalar,
    CallNode: ExpressionBinder._call,
}
