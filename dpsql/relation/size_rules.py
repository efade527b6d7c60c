"""How long a text can grow: the words and the limits; a rule stands in the row of each function that makes a text.

A person's row must not decide whether a statement runs, or for how long; `concat(n, n)` ten times over makes
gigabytes of one row of twenty characters. So the size of every computed text has a public bound.

House rules (law L10):

1. A rule returns a size that is true of the printed call, for whatever the row holds: see `Size`. A text
   without a rule is refused, never guessed.
2. Claim: where `is_held`, no value of the printed form has more than `most` characters. Proof, by induction
   over the expression. A literal has the characters that it has. What is not text has, as text, no more
   characters than `size_as_text` says of its type. A choice (CASE, COALESCE, …) is one of its parts, and a part
   of a text (substr, trim, …) is no longer than the text, nor than the count that is printed. What grows
   (concat, lower, upper, a cast) is printed over texts that are held, or that the printer cuts to `most`
   (`PrivatePrinter.new_text`), and adds up or multiplies their sizes. A subquery's column is what
   the subquery prints, a MIN, MAX, LAG or UNION of such values is one of them, and the planner carries their
   sizes along in `Column.facts`.
3. A bare column is not held, and stays as it is where it is compared, grouped, joined, counted or carried
   along: that is linear in what the owner's table holds already.
4. No printed text is longer than MAX_TEXT, and all computed texts of a row together are not longer than
   MAX_ROW_TEXT; what could be is refused where its facts are asked for, by its text and the policy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from ..errors import Position, Refusal
from .expressions import Call, Expr, Field, Literal
from .facts import TEXT_CUT, Facts, Size
from .types import Kind

__all__ = [
    "LETTER_GROWTH",
    "MAX_JOINED_TEXT",
    "MAX_ROW_TEXT",
    "MAX_TEXT",
    "SizeRule",
    "cut_to_size",
    "size_as_text",
    "size_of_call",
    "text_of_row",
]

MAX_TEXT = 2**13
"""Most characters of a computed text, eight of the usual cut: so often is what a person's every row may become."""

MAX_ROW_TEXT = 2**15
"""Most characters of all computed texts of one row of a block."""

MAX_JOINED_TEXT = 2**28
"""Most characters of the computed texts of all rows that a join can make of one person's."""

LETTER_GROWTH = 3
"""Most letters that lower() and upper() make of one: Unicode's full mapping has ΐ as three, ß as two."""

SizeRule = Callable[[list[Facts], Call], Size]
"""How long the text of a call is, given the facts of its arguments."""

_DIGITS = {
    Kind.BOOLEAN: 5, Kind.SMALLINT: 6, Kind.INTEGER: 11, Kind.BIGINT: 20, Kind.NUMERIC: 45, Kind.REAL: 32,
    Kind.DOUBLE: 32, Kind.DATE: 32, Kind.TIMESTAMP: 48, Kind.INTERVAL: 100, Kind.NULL: 0,
}  # fmt: skip
"""Kind -> most characters of a value written as text: both engines' years before Christ, 39 digits of a number."""


def size_as_text(expr: Expr, facts: Facts) -> Size:
    """Return the size of a value written as text."""
    type_ = expr.type
    if type_.kind is Kind.TEXT:
        return facts.size
    if isinstance(expr, Literal) and type_.is_number and not isinstance(expr.value, float):
        return Size(_digits_of(expr), True)
    if type_.kind not in _DIGITS or (type_.kind is Kind.NUMERIC and _is_long(expr)):
        return Size(TEXT_CUT, False)
    return Size(_DIGITS[type_.kind], True)


def _digits_of(number: Literal) -> int:
    """Return the most characters of a literal number: before the point, after it, sign and point; or as a double."""
    value = number.value
    assert value is None or isinstance(value, (int, Fraction))
    if value is None:
        return 0
    return len(str(abs(value.numerator))) + value.denominator.bit_length() + _DIGITS[Kind.DOUBLE]


def _is_long(number: Expr) -> bool:
    """Say whether an exact number may have more digits than ours: Postgres' numeric has up to 147,455.

    What is computed here has 39 at most; a column does where its type says how many.
    """
    type_ = number.type
    if type_.engine is not None and type_.engine.startswith("numeric"):
        return True
    return isinstance(number, Field) and type_.precision is None


def cut_to_size(facts: Facts) -> Facts:
    """Return the facts of a text that is cut to its size where nothing holds it."""
    if facts.size.is_held or facts.values is None:
        return facts
    cut = [value[: facts.size.most] if isinstance(value, str) else value for value in facts.values]
    return Facts(nullable=facts.nullable, values=tuple(dict.fromkeys(cut)), declared=facts.declared,
                 size=Size(facts.size.most, True))  # fmt: skip


def size_of_call(rule: SizeRule | None, args: list[Facts], call: Call) -> Size:
    """Return the size of a computed text by the rule of its function.

    Raises Refusal: PV202 for a function without a rule, 54001 for a text that could be longer than MAX_TEXT.
    """
    if rule is None:
        raise Refusal(
            f"the text that {call.function}() makes has no public size",
            sqlstate="PV202",
            position=call.position,
        )
    size = rule(args, call)
    if size.is_held and size.most > MAX_TEXT:
        raise Refusal(
            f"this text could grow beyond {MAX_TEXT} characters", sqlstate="54001", position=call.position,
            hint="join fewer texts, or shorter ones: left(x, 100); or ask the owner to declare max_length",
        )  # fmt: skip
    return size


def text_of_row(texts: Iterable[tuple[Size, Position | None]], rows: int = 1) -> int:
    """Return the most characters of the computed texts of one row.

    `texts`: the size and the place of each; `rows`: to how many a join can multiply a person's. Raises Refusal
    (54001) for more than MAX_ROW_TEXT, or more than MAX_JOINED_TEXT in all these rows.
    """
    total = 0
    for size, position in texts:
        total += size.most if size.is_held else 0
        if total > MAX_ROW_TEXT:
            raise Refusal(
                f"the texts of one row could grow beyond {MAX_ROW_TEXT} characters", sqlstate="54001",
                position=position, hint="compute fewer texts at a time, or shorter ones: left(x, 100)",
            )  # fmt: skip
        if total * rows > MAX_JOINED_TEXT:
            raise Refusal(
                f"the texts of the rows that a join makes could grow beyond {MAX_JOINED_TEXT} characters",
                sqlstate="54001", position=position,
                hint="make the texts after the rows are fewer, or shorter ones: left(x, 20)",
            )  # fmt: skip
    return total
