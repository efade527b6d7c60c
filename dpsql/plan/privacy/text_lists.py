"""What is asked of the parts of people's texts, as what is asked of the texts: no array is made of a person's row.

House rules (soundness.md 1.11):

1. A text is taken apart by a constant separator, or by a pattern that is a row of characters and cannot match nothing.
   So there is one part more than there are matches, and each match is as many characters shorter as it is replaced by
   fewer: they are counted by two replacements.
2. A part is in the list if, between two separators, it is in the text between two separators. That is so where the
   separator is one character, which the part has not.
3. A text's parts in rows are its first parts, each by its place: rows of UNION ALL, one for each place up to a bound.
4. What is asked otherwise of an array stays refused; None says so.
"""

from __future__ import annotations

import re
from functools import reduce

from ...relation.expressions import TRUE, Call, Expr, Literal, map_children
from ...relation.relations import Block, Lateral, Unnest, Values, ends_in
from ...relation.types import BOOLEAN, INTEGER, TEXT
from ...sql.attach import Outer

MAX_PARTS = 32
"""Most parts of a text that become rows: each place is a scan of its own."""

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


def parts_in_rows(node: Lateral) -> Expr | None:
    """Return the array of a text's parts, over the left side's columns, whose elements are the right side's rows; None:
    these are something else."""
    right = node.right
    while ends_in(right, "outputs"):
        if not (isinstance(right, Block) and len(right.exprs) == 1 and right.exprs[0].column == 0):
            return None
        right = right.below
    if (
        node.kind != "inner"
        or node.condition != TRUE
        or not isinstance(right, Unnest)
        or len(right.arrays) != 1
    ):
        return None
    if right.numbered or right.outer or not isinstance(right.input, Values) or right.input.rows != ((),):
        return None
    array = _read(right.arrays[0])
    text_and_separator = array.calls("string_to_array") and len(array.args) == 2
    return array if text_and_separator and isinstance(by := array.args[1].constant, str) and by else None


def _read(expr: Expr) -> Expr:
    """Return an expression with the left side's columns in place of those of the query around."""
    return expr.expr if isinstance(expr, Outer) else map_children(expr, _read)


def placed_parts(array: Expr, most: int) -> list[tuple[Expr, Expr]]:
    """Return, for each place up to the `most`th, whether a text has a part there, and the part."""
    text, by = array.args
    count = _count(array, _NONE)
    assert count is not None, "its separator is constant"
    places = [Literal(INTEGER, place) for place in range(1, most + 1)]
    return [
        (Call(BOOLEAN, "ge", (count, place)), Call(TEXT, "split_part", (text, by, place))) for place in places
    ]


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
