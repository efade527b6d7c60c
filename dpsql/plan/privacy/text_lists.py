"""What is asked of the parts of people's texts, as what is asked of the texts: no array is made of a person's row.

House rules (soundness.md 1.11):

1. A text is taken apart by a constant separator, or by a pattern that is a row of characters and cannot match nothing.
   So there is one part more than there are matches, and each match is as many characters shorter as it is replaced by
   fewer: they are counted by two replacements.
2. A part is in the list if, between two separators, it is in the text between two separators. That is so where the
   separator is one character, which the part has not.
3. What is asked otherwise of an array stays refused; None says so.
"""

from __future__ import annotations

import re
from functools import reduce

from ...relation.expressions import Call, Expr, Literal
from ...relation.types import BOOLEAN, INTEGER, TEXT

__all__ = ["asked_of_texts"]

_ROW = re.compile(r"(?:(?:\\[sdwSDW]|\\[^A-Za-z0-9]|\[[^\[\]\\^-][^\[\]\\-]*\]|[^\\^$.|?*+()\[\]{}])\+?)+")
"""Characters and classes, each once or more."""
_NONE = Literal(INTEGER, 0)
_ONE = Literal(INTEGER, 1)


def asked_of_texts(expr: Call) -> Expr | None:
    """Return what a function of a text's parts means of the text; None: it has no such meaning."""
    if expr.function == "array_length" and len(expr.args) == 2 and expr.args[1].constant == 1:
        return _count(expr.args[0], Literal(INTEGER, None))
    if expr.function == "cardinality":
        return _count(expr.args[0], _NONE)
    if expr.function == "array_has":
        return _has(*expr.args)
    if expr.function in ("array_contains", "array_overlaps"):
        one, other = expr.args
        if expr.function == "array_overlaps" and one.calls("array"):
            one, other = other, one
        each = [_has(one, value) for value in other.args] if other.calls("array") else []
        found = [term for term in each if term is not None]
        if not found or len(found) < len(each):
            return None
        word = "and" if expr.function == "array_contains" else "or"
        return found[0] if len(found) == 1 else Call(BOOLEAN, word, tuple(found), position=expr.position)
    return None


def _count(parts: Expr, of_none: Expr) -> Expr | None:
    """Return how many parts a text has; `of_none`: said of the empty text, which a separator makes no parts of."""
    if len(parts.args) != 2 or not isinstance(by := parts.args[1].constant, str) or not by:
        return None
    branches: tuple[Expr, ...] = ()
    text, new = parts.args[0], (Literal(TEXT, "."), Literal(TEXT, ""))
    if parts.calls("string_to_array"):
        found = _one_more(*(Call(TEXT, "replace", (text, Literal(TEXT, by), one)) for one in new))
        branches = (Call(BOOLEAN, "eq", (text, Literal(TEXT, ""))), of_none)
    elif parts.calls("regexp_split_to_array") and by.isascii() and _ROW.fullmatch(by):
        pattern, flags = parts.args[1], Literal(TEXT, "g")
        found = _one_more(*(Call(TEXT, "regexp_replace", (text, pattern, one, flags)) for one in new))
    else:
        return None
    is_text = Call(BOOLEAN, "not", (Call(BOOLEAN, "is_null", (text,)),))
    return Call(INTEGER, "case", (*branches, is_text, found, Literal(INTEGER, None)))


def _one_more(longer: Expr, shorter: Expr) -> Expr:
    """Return one more than the characters by which two texts differ; the greatest of it and 1, which it is."""
    ends = tuple(Call(INTEGER, "length", (text,)) for text in (longer, shorter))
    return Call(INTEGER, "greatest", (Call(INTEGER, "add", (Call(INTEGER, "sub", ends), _ONE)), _ONE))


def _has(parts: Expr, value: Expr) -> Expr | None:
    """Return whether a text has a constant part between its separators."""
    if not parts.calls("string_to_array") or len(parts.args) != 2:
        return None
    text, by, part = parts.args[0], parts.args[1].constant, value.constant
    if not isinstance(by, str) or len(by) != 1 or not isinstance(part, str) or by in part:
        return None
    between = reduce(
        lambda a, b: Call(TEXT, "concat_op", (a, b)), (Literal(TEXT, by), text, Literal(TEXT, by))
    )
    place = Call(INTEGER, "position", (between, Literal(TEXT, f"{by}{part}{by}")))
    found = Call(BOOLEAN, "gt", (place, _NONE))
    return found if part else Call(BOOLEAN, "and", (found, Call(BOOLEAN, "ne", (text, Literal(TEXT, "")))))
