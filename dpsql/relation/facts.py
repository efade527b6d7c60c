"""What may be known of a value: bounds, a lattice, the size of a text, NULL, and a finite list of values.

House rule: every figure is an exact rational; an endpoint that is not rational is widened outward.

How long a text can be, and how large a row: the limits. A rule stands in the row of each function that makes a text. A
person's row must not decide whether a statement runs, or for how long; `concat(n, n)` ten times over makes
gigabytes of one row of twenty characters, and so do two hundred copies of one long text. So every text that is
carried has a public size, and so has every row of them.

House rules of sizes (law L10):

1. A rule returns a size that is true of the printed call, for whatever the row holds: most characters. A text
   without a rule is refused, never guessed.
2. Claim: no value of the printed form has more characters than its size. Proof, by induction over the expression.
   A literal has the characters that it has. A column is printed cut to `read_length`, where nothing holds it already
   (`is_cut`). What is not text has, as text, no more characters than `size_as_text` says of its type, to which the
   printer cuts an open number. A choice (CASE, COALESCE, …) is one of its parts, and a part of a text (substr, trim,
   …) is no longer than the text, nor than the count that is printed. What grows (concat, lower, upper) adds up or
   multiplies the sizes of its parts. A subquery's column is what the subquery prints (`Enforced.max_length`), a MIN,
   MAX, LAG or UNION of such values is one of them, and the planner carries their sizes along in `Column.facts`.
3. A column that is only compared makes nothing and is carried nowhere: it stands as it is (`PrivatePrinter.whole`).
   So do owners, and what links rows of one owner: a cut key would give one row two owners.
4. No text grows beyond MAX_TEXT, no row is larger than MAX_ROW_BYTES, and all rows that joins make of one person's
   are not larger than MAX_JOINED_BYTES; what could be is refused by its text and the policy alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from ..errors import Position, Refusal
from ..records import dataclass
from .catalog import Column, Scalar
from .expressions import Call, Expr, Literal
from .types import Kind, SqlType

ONE = Fraction(1)
ZERO = Fraction(0)

TEXT_CUT = 1_000
"""Characters to which a text is read where it is carried, or anything made of it, unless `max_length` is declared.

Long enough for names, addresses, titles and most notes; short enough that a row has room for 262 of them.
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """The possible values of an expression.

    `lo`, `hi`: inclusive bounds (numbers in their own unit, DATE in days, TIMESTAMP in microseconds,
    booleans 0 and 1), None when unbounded. `grid`: all values are integer multiples of it; None for
    reals. `nullable`: NULL is possible. `values`: all non-NULL values, where they are finite and
    known. `declared`: the bounds come from declarations, literals and what is printed, not from the type
    alone. `size`: most characters of a text, whatever the row holds (the rules below).
    """

    lo: Fraction | None = None
    hi: Fraction | None = None
    grid: Fraction | None = None
    nullable: bool = True
    values: tuple[Scalar, ...] | None = None
    declared: bool = False
    size: int = TEXT_CUT

    @property
    def bounded(self) -> bool:
        """Both ends are known."""
        return self.lo is not None and self.hi is not None


def grid_of(type_: SqlType) -> Fraction | None:
    """Return the lattice that a column's type puts its values on; None for floats and free NUMERIC."""
    if type_.kind is Kind.NUMERIC:
        return None if type_.scale is None else Fraction(1, 10**type_.scale)
    return None if type_.is_float else ONE


def common_grid(grids: Sequence[Fraction | None]) -> Fraction | None:
    """Return the coarsest grid that holds all the grids; None when one of them is real."""
    known = [grid for grid in grids if grid is not None]
    if not known or len(known) < len(grids):
        return None
    # of fractions in lowest terms
    return Fraction(
        math.gcd(*(grid.numerator for grid in known)), math.lcm(*(grid.denominator for grid in known))
    )


def intersect(known: Facts, other: Facts) -> Facts:
    """Return the facts of a value of which both are true; its size is the one that is known already."""
    lo = known.lo if other.lo is None else other.lo if known.lo is None else max(known.lo, other.lo)
    hi = known.hi if other.hi is None else other.hi if known.hi is None else min(known.hi, other.hi)
    values = other.values if known.values is None else known.values
    if known.values is not None and other.values is not None:
        values = tuple(value for value in known.values if value in other.values)
    bounded_here = (known.declared or other.lo is not None) and (known.declared or other.hi is not None)
    grid = known.grid if known.grid is not None else other.grid
    return Facts(lo, hi, grid, known.nullable and other.nullable, values, bounded_here, known.size)


def hull(args: Sequence[Facts]) -> Facts:
    """Return the facts of a value that is one of the arguments' values."""
    # Of all: what a filter says does not keep a longer one from a row.
    size = max((arg.size for arg in args), default=0)
    live = [arg for arg in args if arg.values != () or arg.lo is not None]  # a bare NULL adds only NULL
    if not live:
        return Facts(values=(), grid=ONE, declared=True, size=size)
    lows = [arg.lo for arg in live if arg.lo is not None]
    highs = [arg.hi for arg in live if arg.hi is not None]
    values: dict[Scalar, None] | None = {}
    for arg in live:
        if arg.values is None or values is None:
            values = None
        else:
            values.update(dict.fromkeys(arg.values))
    return Facts(
        min(lows) if len(lows) == len(live) else None,
        max(highs) if len(highs) == len(live) else None,
        common_grid([arg.grid for arg in live]),
        any(arg.nullable for arg in args),
        None if values is None else tuple(values),
        all(arg.declared for arg in live),
        size,
    )


def decimal_scale(grid: Fraction) -> int | None:
    """Return the digits after the point that a grid needs; None when no number of digits is enough."""
    return next((scale for scale in range(13) if (grid * 10**scale).denominator == 1), None)


MAX_TEXT = 2**13
"""Most characters that a text grows to, eight of the usual cut: so often is what a person's every row may become."""

MAX_ROW_BYTES = 2**20
"""Most bytes of a row, of a block's or of the result's: 262 texts of the usual cut."""

MAX_JOINED_BYTES = 2**30
"""Most bytes of all rows that joins can make of one person's."""

LETTER_GROWTH = 3
"""Most letters that lower() and upper() make of one: Unicode's full mapping has ΐ as three, ß as two."""

SizeRule = Callable[[list[Facts], Call], int]
"""How many characters the text of a call has at most, given the facts of its arguments."""

_DIGITS = {
    Kind.BOOLEAN: 5, Kind.SMALLINT: 6, Kind.INTEGER: 11, Kind.BIGINT: 20, Kind.NUMERIC: 45, Kind.REAL: 32,
    Kind.DOUBLE: 32, Kind.DATE: 32, Kind.TIMESTAMP: 48, Kind.TIME: 15, Kind.INTERVAL: 100, Kind.NULL: 0,
}  # fmt: skip
"""Kind -> most characters of a value written as text: every engine's years before Christ, 39 digits of a number."""

_CHARACTER = 4
_VALUE = 64
"""Bytes of any value but a text, with what an engine keeps beside it."""
_OPEN_NUMBER = 2 * (2**15 + 2**12) + 8
"""Bytes of Postgres' longest numeric: 131,072 digits before the point and 16,383 after it, four in two bytes."""


def read_length(column: Column) -> int:
    """Return the characters to which a column's text is read: no value of its printed form has more."""
    own, held = _own_length(column), column.enforced.max_length
    return own if held is None else min(own, held)


def is_cut(column: Column) -> bool:
    """Say whether a column's text is printed cut: neither its type nor a subquery holds it already."""
    held = column.enforced.max_length
    return held is None or held > _own_length(column)


def _own_length(column: Column) -> int:
    if column.facts is not None:
        return column.facts.size if column.max_length is None else min(column.facts.size, column.max_length)
    if column.max_length is not None:
        return column.max_length
    # Whatever is declared as a value is read whole, and told from a longer text that begins with it.
    values = (len(value) + 1 for value in column.values or () if isinstance(value, str))
    return max((TEXT_CUT, *values))


def size_as_text(expr: Expr, facts: Facts) -> int:
    """Return the most characters of a value written as text."""
    type_ = expr.type
    if type_.kind is Kind.TEXT:
        return facts.size
    if isinstance(expr, Literal) and type_.is_number and not isinstance(expr.value, float):
        return _digits_of(expr)
    return TEXT_CUT if type_.kind not in _DIGITS or is_long_number(expr) else _DIGITS[type_.kind]


def _digits_of(number: Literal) -> int:
    """Return the most characters of a literal number: before the point, after it, sign and point; or as a double."""
    value = number.value
    assert value is None or isinstance(value, (int, Fraction))
    if value is None:
        return 0
    return len(str(abs(value.numerator))) + value.denominator.bit_length() + _DIGITS[Kind.DOUBLE]


def is_long_number(expr: Expr) -> bool:
    """Say whether an exact number may have more digits than ours: Postgres' numeric has up to 147,455.

    What is computed here has 39 at most; a column does where its type says how many.
    """
    type_ = expr.type
    if type_.kind is not Kind.NUMERIC or isinstance(expr, Literal):
        return False
    if type_.engine is not None and type_.engine.startswith("numeric"):
        return True
    return expr.column is not None and type_.precision is None


def size_of_call(rule: SizeRule | None, args: list[Facts], call: Call) -> int:
    """Return the size of a computed text by the rule of its function.

    Raises Refusal: PV202 for a function without a rule, 54001 for a text that could grow beyond MAX_TEXT.
    """
    if rule is None:
        raise Refusal(
            f"the text that {call.function}() makes has no public size",
            sqlstate="PV202",
            position=call.position,
        )
    size = rule(args, call)
    own = (facts.size for facts, arg in zip(args, call.args, strict=True) if arg.type.kind is Kind.TEXT)
    if size > max((MAX_TEXT, *own)):
        raise Refusal(
            f"this text could grow beyond {MAX_TEXT} characters", sqlstate="54001", position=call.position,
            hint="join fewer texts, or shorter ones: left(x, 100); or ask the owner to declare max_length",
            owner_hint="join fewer texts, or shorter ones: left(x, 100); or declare max_length in the policy",
        )  # fmt: skip
    return size


def row_bytes(values: Iterable[tuple[SqlType, int, Position | None]]) -> int:
    """Return the most bytes of a row.

    `values`: of each the type, most characters where it is a text, and the place. Raises Refusal (54001) for more
    than MAX_ROW_BYTES.
    """
    total = 0
    for type_, size, position in values:
        total += _bytes_of(type_, size)
        if total > MAX_ROW_BYTES:
            raise Refusal(
                f"a row of these values could be larger than {MAX_ROW_BYTES} bytes", sqlstate="54001",
                position=position,
                hint="take fewer texts, or shorter ones: left(x, 100); or ask the owner to declare max_length",
                owner_hint="take fewer texts, or shorter ones: left(x, 100); or declare max_length in the policy",
            )  # fmt: skip
    return total


def _bytes_of(type_: SqlType, size: int) -> int:
    if type_.kind is Kind.TEXT:
        return _CHARACTER * size
    is_open = type_.kind is Kind.NUMERIC and (type_.engine or "").startswith("numeric")
    return _OPEN_NUMBER if is_open else _VALUE


def check_joined(bytes_: int, rows: int, position: Position | None) -> None:
    """Raises Refusal (54001): so many rows of one person, of so many bytes, are more than MAX_JOINED_BYTES."""
    if bytes_ * rows > MAX_JOINED_BYTES:
        raise Refusal(
            f"the rows that a join makes of one person's could grow beyond {MAX_JOINED_BYTES} bytes",
            sqlstate="54001", position=position,
            hint="take texts after the rows are fewer, or shorter ones: left(x, 20)",
        )  # fmt: skip
