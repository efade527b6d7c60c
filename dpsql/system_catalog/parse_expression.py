"""Expressions of a catalog query: Postgres' operators by their precedence, and the forms that stand between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from .errors import unsupported
from .parse_forms import CALLS, FORMS
from .parse_words import RESERVED, SET_WORDS, Words
from .syntax import (
    Between,
    CallNode,
    Cast,
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
    SortKey,
    Star,
    Subscript,
    TypeName,
    WindowNode,
)

__all__ = ["ExpressionParser"]

_COMPARISONS = frozenset({"=", "<>", "!=", "<", ">", "<=", ">="})
_BARE = frozenset(
    {"current_user", "session_user", "user", "current_role", "current_catalog", "current_schema", "current_date",
     "current_timestamp", "localtimestamp"}
)  # fmt: skip
_TYPED = frozenset(
    {"interval", "date", "timestamp", "text", "regclass", "regtype", "bool", "boolean", "name", "oid"}
)
_LONG_TYPES = (
    (("double", "precision"), "float8"),
    (("character", "varying"), "varchar"),
    (("timestamp", "without", "time", "zone"), "timestamp"),
    (("timestamp", "with", "time", "zone"), "timestamptz"),
)
_ADDED, _MULTIPLIED, _RAISED, _OTHER = 7, 8, 9, 6
_LEVELS = {"+": _ADDED, "-": _ADDED, "*": _MULTIPLIED, "/": _MULTIPLIED, "%": _MULTIPLIED, "^": _RAISED}
_MATCHES = {"like": "~~", "ilike": "~~*"}


class ExpressionParser(ABC):
    """Reads expressions; queries inside them are read by the class below."""

    def __init__(self, words: Words) -> None:
        self.words = words

    @abstractmethod
    def query(self) -> QueryNode:
        """Return the query that comes next."""

    @abstractmethod
    def rest_of(self, left: QueryNode) -> QueryNode:
        """Return the query that begins with one in parentheses."""

    def expressions(self) -> tuple[Expression, ...]:
        """Return expressions with commas between them."""
        found = [self.expression_or_star()]
        while self.words.accept_sign(","):
            found.append(self.expression_or_star())
        return tuple(found)

    def expression_or_star(self) -> Expression:
        """Return an expression, or *."""
        return Star() if self.words.accept_sign("*") else self.expression()

    def expression(self) -> Expression:
        """Return the expression that comes next."""
        self.words.deeper()
        left = self._and()
        while self.words.accept("or"):
            left = Operation("or", left, self._and())
        self.words.shallower()
        return left

    def operand(self) -> Expression:
        """Return what an operator as IN stands after."""
        return self._binary(_OTHER)

    def order_by(self) -> tuple[SortKey, ...]:
        """Return ORDER BY's items, if it comes next."""
        words = self.words
        if not words.accept("order", "by"):
            return ()
        keys = [self._sort_key()]
        while words.accept_sign(","):
            keys.append(self._sort_key())
        return tuple(keys)

    def _sort_key(self) -> SortKey:
        words = self.words
        expression = self.expression()
        is_descending = words.accept("desc")
        words.accept("asc")
        nulls_first = None
        if words.accept("nulls"):
            nulls_first = words.accept("first")
            if not nulls_first:
                words.expect("last")
        return SortKey(expression, is_descending, nulls_first)

    # --- operators, loosest first ------------------------------------------------------------------------

    def _and(self) -> Expression:
        left = self._not()
        while self.words.accept("and"):
            left = Operation("and", left, self._not())
        return left

    def _not(self) -> Expression:
        if self.words.accept("not"):
            self.words.deeper()
            found = Operation("not", None, self._not())
            self.words.shallower()
            return found
        return self._is()

    def _is(self) -> Expression:
        words = self.words
        left = self._comparison()
        while True:
            if words.accept("isnull") or words.accept("notnull"):
                left = IsTest(left, "null", words.peek(-1).text == "notnull")
            elif words.accept("is"):
                is_negated = words.accept("not")
                if words.accept("distinct", "from"):
                    left = IsTest(left, "distinct", is_negated, self._comparison())
                elif words.is_word("null", "true", "false", "unknown"):
                    left = IsTest(left, words.take().text, is_negated)
                else:
                    raise unsupported("this form of IS")
            else:
                return left

    def _comparison(self) -> Expression:
        left = self._match()
        while self.words.peek().kind == "operator" and self.words.peek().text in _COMPARISONS:
            operator = self.words.take().text
            left = self._right_of("<>" if operator == "!=" else operator, left, self._match)
        return left

    def _match(self) -> Expression:
        words = self.words
        left = self._binary(_OTHER)
        while True:
            ahead = 1 if words.is_word("not") else 0
            if not words.is_word("like", "ilike", "in", "between", "similar", ahead=ahead):
                return left
            is_negated = words.accept("not")
            word = words.take().text
            if word == "in":
                left = self._in(left, is_negated)
            elif word == "between":
                words.accept("symmetric")
                low = self._binary(_OTHER)
                words.expect("and")
                left = Between(left, low, self._binary(_OTHER), is_negated)
            elif word in _MATCHES:
                operator = ("!" if is_negated else "") + _MATCHES[word]
                left = self._right_of(operator, left, lambda: self._binary(_OTHER))
                if words.accept("escape"):
                    if not isinstance(left, Operation):
                        raise unsupported("ESCAPE after ANY")
                    left = replace(left, escape=self._binary(_OTHER))
            else:
                raise unsupported("SIMILAR TO")

    def _in(self, left: Expression, is_negated: bool) -> Expression:
        words = self.words
        words.expect_sign("(")
        items = (self.query(),) if self._is_query() else self.expressions()
        words.expect_sign(")")
        first = items[0]
        if isinstance(first, QueryNode) or (isinstance(first, ScalarQuery) and len(items) == 1):
            return In(left, first if isinstance(first, QueryNode) else first.query, is_negated)
        return In(left, self._no_queries(items), is_negated)

    def _no_queries(self, items: tuple[Expression | QueryNode, ...]) -> tuple[Expression, ...]:
        return tuple(item for item in items if not isinstance(item, QueryNode))

    def _right_of(self, operator: str, left: Expression, read: object) -> Expression:
        words = self.words
        if words.is_word("any", "some", "all") and words.is_sign("(", ahead=1):
            is_all = words.take().text == "all"
            words.expect_sign("(")
            right: Expression | QueryNode = self.query() if self._is_query() else self.expression()
            words.expect_sign(")")
            right = right.query if isinstance(right, ScalarQuery) else right
            return Quantified(operator, left, right, is_all)
        assert callable(read)
        return Operation(operator, left, read())

    def _binary(self, level: int) -> Expression:
        words = self.words
        left = self._unary()
        while True:
            token = words.peek()
            if token.kind == "operator" and token.text not in _COMPARISONS:
                found = _LEVELS.get(token.text, _OTHER)
                if found < level:
                    return left
                words.take()
                operator = token.text
            elif words.is_word("operator") and words.is_sign("(", ahead=1) and level <= _OTHER:
                operator, found = self._named_operator(), _OTHER
            elif words.accept("at", "time", "zone"):
                left = CallNode("timezone", (self._binary(_RAISED + 1), left))
                continue
            elif words.accept("collate"):
                self._any_path()
                continue
            else:
                return left
            left = self._right_of(operator, left, lambda tight=found + 1: self._binary(tight))

    def _named_operator(self) -> str:
        words = self.words
        words.take()
        words.expect_sign("(")
        while words.peek().kind in ("word", "quoted"):
            words.take()
            words.expect_sign(".")
        operator = words.take()
        words.expect_sign(")")
        if operator.kind != "operator":
            raise unsupported("an operator expected")
        return "<>" if operator.text == "!=" else operator.text

    def _unary(self) -> Expression:
        token = self.words.peek()
        if token.kind == "operator" and token.text in ("-", "+"):
            self.words.take()
            self.words.deeper()
            operand = self._unary()
            self.words.shallower()
            if isinstance(operand, LiteralNode) and isinstance(operand.value, int) and token.text == "-":
                return LiteralNode(-operand.value)
            return Operation(token.text, None, operand)
        return self._suffixed()

    def _suffixed(self) -> Expression:
        words = self.words
        is_name = not words.is_sign("(")
        found = self.primary()
        while True:
            if words.accept_sign("::"):
                found = Cast(found, self.type_name())
            elif words.accept_sign("["):
                found = self._index(found)
            elif not (is_name and isinstance(found, (Name, Star))) and words.accept_sign("."):
                found = FieldNode(found, "*" if words.accept_sign("*") else words.any_name())
            else:
                return found

    def _index(self, value: Expression) -> Expression:
        """Return an item or a slice of an array, after the bracket."""
        words = self.words
        first = None if words.is_sign(":") else self.expression()
        if not words.accept_sign(":"):
            words.expect_sign("]")
            assert first is not None
            return Subscript(value, first)
        last = None if words.is_sign("]") else self.expression()
        words.expect_sign("]")
        return Slice(value, first, last)

    # --- what operators stand between ----------------------------------------------------------------------

    def primary(self) -> Expression:
        """Return a constant, a name, a call, or what stands in parentheses."""
        words = self.words
        token = words.peek()
        if token.kind == "string":
            return LiteralNode(words.take().text)
        if token.kind == "number":
            text = words.take().text
            return LiteralNode(int(text)) if text.isdigit() else LiteralNode(text, is_decimal=True)
        if token.kind == "parameter":
            return Parameter(int(words.take().text))
        if words.is_sign("("):
            return self._parenthesised()
        if (
            token.kind == "word"
            and token.text in FORMS
            and (token.text not in CALLS or words.is_sign("(", 1))
        ):
            words.take()
            return FORMS[token.text](self)
        if token.kind == "word" and token.text in _BARE and not words.is_sign("(", ahead=1):
            return CallNode(words.take().text, is_bare=True)
        if token.kind == "word" and token.text in _TYPED and words.peek(1).kind == "string":
            name = words.take().text
            return Cast(LiteralNode(words.take().text), TypeName(name))
        return self._named()

    def _is_query(self) -> bool:
        return self.words.is_word("select", "values", "with", "table")

    def _parenthesised(self) -> Expression:
        words = self.words
        words.expect_sign("(")
        if self._is_query():
            query = self.query()
            words.expect_sign(")")
            return ScalarQuery(query)
        items = self.expressions()
        if isinstance(items[0], ScalarQuery) and words.is_word(*SET_WORDS):
            items = (ScalarQuery(self.rest_of(items[0].query)),)
        words.expect_sign(")")
        return items[0] if len(items) == 1 else Row(items)

    def _named(self) -> Expression:
        words = self.words
        token = words.take()
        if token.kind not in ("quoted", "word") or (
            token.kind == "word" and token.text in RESERVED and not words.is_sign("(")
        ):
            raise unsupported("an expression expected")
        parts = [token.text]
        while words.accept_sign("."):
            if words.accept_sign("*"):
                return Star(tuple(parts))
            parts.append(words.any_name())
        if words.is_sign("("):
            return self._call(parts)
        return Name(tuple(parts))

    def _call(self, parts: list[str]) -> Expression:
        words = self.words
        if len(parts) > 1 and parts[:-1] not in (["pg_catalog"], ["information_schema"]):
            raise unsupported("a function of another schema")
        words.expect_sign("(")
        call = CallNode(parts[-1])
        if words.accept_sign("*"):
            call = replace(call, is_star=True)
        elif not words.is_sign(")"):
            is_distinct = words.accept("distinct")
            words.accept("variadic")
            call = replace(call, is_distinct=is_distinct, arguments=self.expressions(), order=self.order_by())
        words.expect_sign(")")
        if words.accept("filter"):
            words.expect_sign("(")
            words.expect("where")
            call = replace(call, filter=self.expression())
            words.expect_sign(")")
        if words.accept("over"):
            call = replace(call, window=self._window())
        return call

    def _window(self) -> WindowNode:
        words = self.words
        words.expect_sign("(")
        partition = self.expressions() if words.accept("partition", "by") else ()
        window = WindowNode(partition, self.order_by())
        words.expect_sign(")")
        return window

    def type_name(self) -> TypeName:
        """Return the type that comes next."""
        words = self.words
        long = next((name for spelled, name in _LONG_TYPES if words.accept(*spelled)), None)
        name = self._any_path() if long is None else long
        modifiers: tuple[int, ...] = ()
        if words.accept_sign("("):
            found = [words.take().text]
            while words.accept_sign(","):
                found.append(words.take().text)
            words.expect_sign(")")
            if not all(text.isdigit() and len(text) < 9 for text in found):
                raise unsupported("a type's modifier")
            modifiers = tuple(map(int, found))
        depth = 0
        while words.accept_sign("["):
            if words.peek().kind == "number":
                words.take()
            words.expect_sign("]")
            depth = 1
        return TypeName(name, modifiers, depth)

    def _any_path(self) -> str:
        """Take a name with or without its schema, and return its last part; "char" keeps its quotes."""
        words = self.words
        token = words.take()
        while words.accept_sign("."):
            token = words.take()
        if token.kind not in ("word", "quoted"):
            raise unsupported("a name expected")
        return '"char"' if token.kind == "quoted" and token.text == "char" else token.text
