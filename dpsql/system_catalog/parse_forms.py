"""Forms of an expression that begin with a word of their own: CASE, CAST, EXISTS, ARRAY, EXTRACT, TRIM and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .parse_words import Words
from .syntax import (
    ArrayList,
    ArrayQuery,
    CallNode,
    CaseNode,
    Cast,
    Exists,
    Expression,
    LiteralNode,
    QueryNode,
    Row,
    TypeName,
)

__all__ = ["CALLS", "FORMS"]


class FormsReader(Protocol):
    """What reads the parts of a form."""

    words: Words

    def query(self) -> QueryNode:
        """Return the query that comes next."""

    def expression(self) -> Expression:
        """Return the expression that comes next."""

    def expressions(self) -> tuple[Expression, ...]:
        """Return expressions with commas between them."""

    def operand(self) -> Expression:
        """Return what an operator as IN stands after."""

    def type_name(self) -> TypeName:
        """Return the type that comes next."""


def _case(parser: FormsReader) -> Expression:
    words = parser.words
    operand = None if words.is_word("when") else parser.expression()
    whens = []
    while words.accept("when"):
        condition = parser.expression()
        words.expect("then")
        whens.append((condition, parser.expression()))
    default = parser.expression() if words.accept("else") else None
    words.expect("end")
    return CaseNode(operand, tuple(whens), default)


def _cast(parser: FormsReader) -> Expression:
    words = parser.words
    words.expect_sign("(")
    expression = parser.expression()
    words.expect("as")
    type_ = parser.type_name()
    words.expect_sign(")")
    return Cast(expression, type_)


def _exists(parser: FormsReader) -> Expression:
    parser.words.expect_sign("(")
    query = parser.query()
    parser.words.expect_sign(")")
    return Exists(query)


def _array(parser: FormsReader) -> Expression:
    words = parser.words
    if words.accept_sign("("):
        query = parser.query()
        words.expect_sign(")")
        return ArrayQuery(query)
    words.expect_sign("[")
    items = () if words.is_sign("]") else parser.expressions()
    words.expect_sign("]")
    return ArrayList(items)


def _row(parser: FormsReader) -> Expression:
    parser.words.expect_sign("(")
    items = parser.expressions()
    parser.words.expect_sign(")")
    return Row(items)


def _extract(parser: FormsReader) -> Expression:
    words = parser.words
    words.expect_sign("(")
    field = words.take().text
    words.expect("from")
    expression = parser.expression()
    words.expect_sign(")")
    return CallNode("extract", (LiteralNode(field), expression))


def _position(parser: FormsReader) -> Expression:
    words = parser.words
    words.expect_sign("(")
    sought = parser.operand()
    words.expect("in")
    expression = parser.expression()
    words.expect_sign(")")
    return CallNode("position", (expression, sought))


def _trim(parser: FormsReader) -> Expression:
    words = parser.words
    words.expect_sign("(")
    side = words.take().text if words.is_word("both", "leading", "trailing") else "both"
    found = [] if words.accept("from") else [parser.expression()]
    if words.accept("from"):
        found.insert(0, parser.expression())
    elif not found or words.accept_sign(","):
        found.append(parser.expression())
    words.expect_sign(")")
    return CallNode({"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}[side], tuple(found))


def _substring(parser: FormsReader) -> Expression:
    words = parser.words
    words.expect_sign("(")
    found = [parser.expression()]
    while words.accept_sign(",") or words.accept("from") or words.accept("for"):
        if len(found) == 1 and words.peek(-1).text == "for":
            found.append(LiteralNode(1))
        found.append(parser.expression())
    words.expect_sign(")")
    return CallNode("substring", tuple(found))


FORMS: dict[str, Callable[[FormsReader], Expression]] = {
    "null": lambda parser: LiteralNode(None),
    "true": lambda parser: LiteralNode(True),
    "false": lambda parser: LiteralNode(False),
    "case": _case,
    "cast": _cast,
    "exists": _exists,
    "array": _array,
    "row": _row,
    "extract": _extract,
    "position": _position,
    "trim": _trim,
    "substring": _substring,
}
"""A word -> what reads the form after it."""

CALLS = frozenset({"exists", "row", "extract", "position", "trim", "substring"})
"""Those that are a name where no parenthesis follows."""
