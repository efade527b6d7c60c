"""What engines spell differently, the arithmetic that is printed alike for all, and the pieces that all forms share.

The pieces (numbers, patterns, what a format writes) stand first.

House rules:

1. One semantics: a form here gives the same value on every engine for every content the types allow,
   so that all engines count the same integers. What an engine raises on is kept out by the common print.
2. A dialect adds no guard of its own that another lacks: where one engine needs a value to be flushed or
   clamped (soundness.md 1.9, 1.11, 2.2), all print it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from inspect import getattr_static
from typing import Any, ClassVar

from ...errors import Position, Refusal
from ...records import dataclass
from ...relation.calendar import FormatPart
from ...relation.catalog import Table
from ...relation.expressions import Expr, Literal, Months, walk
from ...relation.facts import TEXT_CUT, Facts, decimal_scale
from ...relation.functions.above.patterns import OF_POSTGRES, OF_RE2, Spelling
from ...relation.types import INTERVAL, Kind, SqlType
from .quote import literal, text


def written(parts: Sequence[FormatPart], moment: str, dialect: Dialect) -> str:
    """Return the text that a format makes of a timestamp, NULL for NULL."""
    shown = [_part(part, moment, dialect) for part in parts]
    if not any(part.field for part in parts):
        return f"CASE WHEN {moment} IS NOT NULL THEN {' || '.join(shown) or dialect.text_literal('')} END"
    return " || ".join(shown)


def _part(part: FormatPart, moment: str, dialect: Dialect) -> str:
    if not part.field:
        return dialect.text_literal(part.text)
    number = dialect.cast(dialect.extract(part.field, moment), "INTEGER")
    if part.names:
        width = len(part.names[0])
        names = dialect.text_literal("".join(part.names))
        name = f"substring({names}, ({number} - 1) * {width} + 1, {width})"
        return dialect.trimmed("rtrim", name) if part.is_trimmed else name
    number = (
        f"({number} + 1)" if part.field == "dow" else f"({number} % 100)" if part.is_two_digits else number
    )
    shown = f"CAST({number} AS {dialect.text})"
    return f"lpad({shown}, {part.width}, '0')" if part.width else shown


class Patterns(ABC):
    """What is asked of a text by a pattern. `spelling`: how patterns are written."""

    spelling: ClassVar[Spelling]

    @abstractmethod
    def matches(self, sql: str, pattern: str) -> str:
        """Return whether a pattern is found in a text."""

    @abstractmethod
    def matched(self, sql: str, pattern: str, groups: int, *, is_group: bool) -> str:
        """Return the first match of a pattern of so many groups, or its first group; NULL where there is none."""

    @abstractmethod
    def first_group(self, sql: str, pattern: str) -> str:
        """Return what the first group of a pattern finds, which is never empty; NULL where there is no match."""

    @abstractmethod
    def replaced(self, sql: str, pattern: str, new: tuple[str, str], *, is_each: bool) -> str:
        """Return a text with the first match, or each, replaced; `new`: by what, as Postgres and as RE2 write it."""


class Re2Patterns(Patterns):
    """RE2's, which DuckDB has: in time linear in the text."""

    spelling = OF_RE2

    def matches(self, sql: str, pattern: str) -> str:
        return f"regexp_matches({sql}, {text(pattern)})"

    def matched(self, sql: str, pattern: str, groups: int, *, is_group: bool) -> str:
        found = f"regexp_extract({sql}, {text(pattern)}, {int(is_group)})"  # '' where there is none
        return f"CASE WHEN {self.matches(sql, pattern)} THEN {found} END"

    def first_group(self, sql: str, pattern: str) -> str:
        return f"NULLIF(regexp_extract({sql}, {text(pattern)}, 1), '')"

    def replaced(self, sql: str, pattern: str, new: tuple[str, str], *, is_each: bool) -> str:
        return f"regexp_replace({sql}, {text(pattern)}, {text(new[1])}{_flags(is_each)})"


class PostgresPatterns(Patterns):
    """Postgres' own, without back references and looking around: in time linear in the text."""

    spelling = OF_POSTGRES

    def matches(self, sql: str, pattern: str) -> str:
        return f"({sql} ~ {text(pattern)})"

    def matched(self, sql: str, pattern: str, groups: int, *, is_group: bool) -> str:
        whole = f"({pattern})" if groups and not is_group else pattern  # its first group, where it has one
        return f"substring({sql}, {text(whole)})"

    def first_group(self, sql: str, pattern: str) -> str:
        return f"substring({sql}, {text(pattern)})"

    def replaced(self, sql: str, pattern: str, new: tuple[str, str], *, is_each: bool) -> str:
        return f"regexp_replace({sql}, {text(pattern)}, {text(new[0])}{_flags(is_each)})"


def _flags(is_each: bool) -> str:
    return ", 'g'" if is_each else ""


_BIG = 2**62
_HUGE = 2**125
LARGEST = Fraction(17, 10) * 10**308
"""A double below the largest one: what infinities are clamped to."""


@dataclass(frozen=True, slots=True)
class Number:
    """A printed number: an integer count of `grid`, or a DOUBLE when `grid` is None.

    `reach`: no value of the integer is larger than this in size, whatever the row holds; it follows
    from the printed clamps and operators alone. The SQL's type is BIGINT below 2^62, else HUGEINT.
    Of a DOUBLE, `most` and `least` say that its size is at most 2^most and, unless it is 0, at least
    2^least: an engine may raise where a result leaves the range of doubles (`private_numbers`).
    `decimal`: the same number in its own unit, a decimal of 64 bits with `places` after the point; "" for none.
    """

    sql: str
    grid: Fraction | None
    reach: int = 0
    most: int = 1024
    least: int = -1074
    decimal: str = ""
    places: int = 0

    def changed(self, sql: str) -> Number:
        """Return another number of the same grid and reach, by its SQL: the decimal was that of this one."""
        return replace(self, sql=sql, decimal="")

    @property
    def kind(self) -> str:
        """The integer type of `sql`."""
        return "BIGINT" if self.reach < _BIG else "HUGEINT"

    @property
    def is_decimal(self) -> bool:
        """Whether integers or decimals of some digits hold all its values."""
        return self.grid is not None and decimal_scale(self.grid) is not None


def _between(left: Number, sign: str, right: Number) -> str:
    return f"({left.decimal} {sign} {right.decimal})" if left.decimal and right.decimal else ""


DECIMAL_REACH = 10**18
"""What the digits of a decimal of 64 bits stay below."""


def integer_kind(reach: int, expr: Expr) -> str:
    """Return the integer type that holds values up to `reach`.

    Raises:
        Refusal: PV202 when no type does.
    """
    if reach < _BIG:
        return "BIGINT"
    if reach < _HUGE:
        return "HUGEINT"
    raise Refusal(
        "this arithmetic could overflow", sqlstate="PV202", position=expr.position,
        hint="narrow the bounds, or use fewer digits",
    )  # fmt: skip


def reach_of(facts: Facts, grid: Fraction, expr: Expr) -> int:
    """Return the largest size of a value that is clamped into its facts, in counts of the grid."""
    if facts.lo is None or facts.hi is None:
        raise unbounded(expr)
    return math.ceil(max(abs(facts.lo), abs(facts.hi)) / grid)


def unbounded(expr: Expr) -> Refusal:
    """Return the refusal of an expression that arithmetic cannot bound, naming the column that lacks bounds."""
    named = next((part for part in walk(expr) if part.name), None)
    if named is None:
        return Refusal(
            "this expression has no finite bounds", sqlstate="PV201", position=expr.position,
            hint="keep 0 out of divisors, and clamp with GREATEST and LEAST",
        )  # fmt: skip
    return Refusal(
        f'bounds of column "{named.name}" are not declared',
        sqlstate="PV101",
        position=named.position or expr.position,
        hint=f"filter with {named.name} BETWEEN … AND …, or ask the owner to declare its bounds",
        owner_hint=f"write {named.name} = {{ bounds = [lower, upper] }} among its table's columns in the policy",
    )


def is_bare(expr: Expr) -> bool:
    """Say whether an expression is a column or a literal, which compare as they stand."""
    return expr.column is not None or expr.is_constant


_DIALECTS: dict[str, type[Dialect]] = {}
_SPELLED = [
    "as_text",
    "flag",
    "octets",
    "is_nan",
    "below_nan",
    "wide_sum",
    "half_even",
    "half_away",
    "position",
    "days_between",
    "calendar_operand",
    "less_microseconds",
    "same",
    "read_hexadecimal",
]
"""Of every engine one piece of SQL each: `Dialect.forms`."""


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A list parameter as a column: it travels as `carried`, and is read as `cast`, "" for the same."""

    name: str
    parameter: int
    carried: str
    cast: str


class Dialect(ABC):
    """What every engine has to spell; what a new one forgets is an error when its class is made.

    `name` is what a catalog calls the engine; `double`, `text`, `decimal` are its types' names.
    """

    name: ClassVar[str]
    double: ClassVar[str]
    text: ClassVar[str]
    decimal: ClassVar[str]
    compares_any_decimals: ClassVar[bool]
    """Whether exact numbers of any size have a common type; else those beyond 38 digits meet as doubles."""
    lists_doubles: ClassVar[bool]
    """Whether `x IN (a, b)` of doubles is `x = a OR x = b`, however many: 0 is -0 there too."""
    numerics_are_finite: ClassVar[bool]
    """Whether a NUMERIC column is inside the range of its type: NaN is none, and clamped like infinity."""
    listed_by_sort: ClassVar[str]
    """What is added to a scan whose first column will be grouped into very many groups."""
    has_no_orphans: ClassVar[bool]
    """Whether a valid foreign key holds for every row, however it came in."""
    correlates_once: ClassVar[bool]
    """Whether a correlated subquery runs once for all rows that are equal in the columns it reads from outside."""
    runs_public_parts: ClassVar[bool]
    """Whether the engine answers what is printed for the sealed engine, and with the same meaning."""
    kinds: ClassVar[Mapping[str, str]]
    """Names of types that the engine calls otherwise."""
    narrow_decimals: ClassVar[bool]
    """Whether decimals of at most 18 digits are computed with as 64 bits, cheaper than they are made integers."""
    sums_widen: ClassVar[bool]
    """Whether the sum of any exact column has a type that holds it; else rows are cast before they are summed."""
    keeps_steps: ClassVar[bool]
    """Whether a step of WITH can be kept, or left to each of its readers, as the statement says."""
    groups_before_having: ClassVar[bool]
    """Whether HAVING looks at groups; else at the keys of every row, where it reads nothing but them."""
    ranks_all: ClassVar[bool]
    """Whether all rows of all units are ranked by one window: a step that is read again is computed again."""
    list_cast: ClassVar[str]
    """The cast of a list's values, which are what they are read as."""
    anti_join: ClassVar[str]
    """What leaves of a table the rows alone that have no `match` in `other`."""
    has_linear_ranges: ClassVar[bool]
    """Whether windows sum up a frame by RANGE with a distance in a time that does not grow with its rows."""
    direct_places: ClassVar[int]
    """How many units may have a place each in a list of them; 0: the engine has no such list."""
    forms: ClassVar[Mapping[str, str]]
    """What is one piece of SQL over its arguments, {0} and {1}, by the method that says it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        names = (*Dialect.__annotations__, *sorted(Dialect.__abstractmethods__))
        said = [(name, getattr_static(cls, name, None)) for name in names]
        missing = [name for name, value in said if value is getattr_static(Dialect, name, None)]
        missing += [name for name in _SPELLED if name not in getattr(cls, "forms", _SPELLED)]
        if missing:
            raise TypeError(f"{cls.__name__} does not say: {', '.join(missing)}")
        _DIALECTS[cls.name] = cls

    @classmethod
    @abstractmethod
    def of(cls, case_collation: str | None) -> Dialect:
        """Return the dialect of a catalog; `case_collation`: the engine's collation whose letter case is Unicode's."""

    # --- types and literals ---------------------------------------------------------------------------

    def kind(self, name: str) -> str:
        """Return the engine's name of BIGINT, HUGEINT (at least 2^125 either way), DATE, TIMESTAMP, …."""
        return self.kinds.get(name, name)

    def cast(self, sql: str, name: str) -> str:
        """Return a cast to a type named as in `kind`."""
        return f"CAST({sql} AS {self.kind(name)})"

    def as_double(self, sql: str) -> str:
        """Return a cast to a double."""
        return f"CAST({sql} AS {self.double})"

    def as_text(self, sql: str) -> str:
        """Return a value as text, compared bytewise."""
        return self.forms["as_text"].format(sql)

    @abstractmethod
    def bytewise(self, sql: str) -> str:
        """Return a text as a key: compared and ordered bytewise."""

    @abstractmethod
    def text_literal(self, value: str) -> str:
        """Return a text as a literal: whatever it holds, nothing of it is read as more than its characters."""

    @abstractmethod
    def identifier(self, name: str) -> str:
        """Return a quoted name."""

    def path(self, path: tuple[str, ...]) -> str:
        """Return a schema-qualified, quoted name of a table."""
        return ".".join(map(self.identifier, path))

    @abstractmethod
    def parameter(self, number: int, *, is_text: bool = False) -> str:
        """Return a parameter by its number, from 1; `is_text`: it travels as a text, as dates do too."""

    def literal(self, value: Literal) -> str:
        """Return a literal."""
        return literal(value, self.double, self.text_literal)

    def double_literal(self, value: Fraction) -> str:
        """Return an exact number as the nearest double, the largest one beyond its range."""
        return self.as_double(f"'{float(max(min(value, LARGEST), -LARGEST))!r}'")

    def flag(self, predicate: str) -> str:
        """Return a truth value as 1 or 0, a BIGINT."""
        return self.forms["flag"].format(predicate)

    @abstractmethod
    def table(self, table: Table) -> str:
        """Return a table by its full name."""

    # --- a table's columns ------------------------------------------------------------------------------

    def stored(self, shown: str, type_: SqlType) -> str:
        """Return a table's own column as a value of the type that it is taken for, wherever it is read."""
        return shown

    @abstractmethod
    def column(self, shown: str, type_: SqlType) -> str:
        """Return a column as expressions read it."""

    @abstractmethod
    def owner(self, shown: str, type_: SqlType) -> str:
        """Return an owner's column, so that equal owners are one privacy unit and different ones are two."""

    def is_nan(self, shown: str) -> str:
        """Return the test of a double for NaN, which counts as NULL on the private side."""
        return self.forms["is_nan"].format(shown)

    @abstractmethod
    def number_key(self, shown: str, type_: SqlType) -> str:
        """Return a NUMERIC column as a group key: one spelling a value."""

    @abstractmethod
    def is_open(self, type_: SqlType) -> bool:
        """Say whether a NUMERIC column has no scale of its own: it is rounded where it is read, half away from zero."""

    @abstractmethod
    def on_scale(self, shown: str, type_: SqlType) -> str:
        """Return a clamped exact column with the digits after the point that its type says."""

    @abstractmethod
    def exact_as_double(self, shown: str, type_: SqlType) -> str:
        """Return a bare exact number as a double, whatever it holds."""

    # --- clamps -------------------------------------------------------------------------------------------

    def clamp(self, sql: str, lo: str, hi: str, *, nan: bool = False) -> str:
        """Return `sql` limited to [lo, hi]; NULL stays NULL, and NaN, where it is possible, becomes NULL.

        A CASE costs a fraction of LEAST(GREATEST()), and does not turn NULL into a bound.
        """
        above = f"{sql} > {hi} AND {self.below_nan(sql)}" if nan else f"{sql} > {hi}"
        return (
            f"CASE WHEN {sql} BETWEEN {lo} AND {hi} THEN {sql} WHEN {sql} < {lo} THEN {lo} "
            f"WHEN {above} THEN {hi} END"
        )

    def below_nan(self, sql: str) -> str:
        """Return the test that a number, infinity too, is not NaN, which sorts above all."""
        return self.forms["below_nan"].format(sql)

    # --- arithmetic ---------------------------------------------------------------------------------------

    def widened(self, number: Number, kind: str) -> str:
        """Return a number's SQL in an integer type at least as wide as its own."""
        return number.sql if number.kind == kind else self.cast(number.sql, kind)

    def times(self, number: Number, factor: int, expr: Expr) -> Number:
        """Return an integer number times a positive constant, on the same count of a finer grid."""
        assert number.grid is not None
        if factor == 1:
            return number
        reach = number.reach * factor
        kind = integer_kind(max(reach, factor), expr)
        finer = Number(f"({self.widened(number, kind)} * {factor})", number.grid / factor, max(reach, 1))
        return self.as_decimal(finer, number.decimal, number.places)

    def combined(self, left: Number, sign: str, right: Number, expr: Expr) -> Number:
        """Return left + right or left - right of two numbers on one grid."""
        assert left.grid is not None
        assert left.grid == right.grid
        reach = left.reach + right.reach
        kind = integer_kind(reach, expr)
        sql = f"({self.widened(left, kind)} {sign} {self.widened(right, kind)})"
        decimals = _between(left, sign, right)
        return self.as_decimal(Number(sql, left.grid, reach), decimals, max(left.places, right.places))

    def product(self, left: Number, right: Number, expr: Expr) -> Number:
        """Return left * right of two integer numbers."""
        assert left.grid is not None
        assert right.grid is not None
        reach = max(left.reach * right.reach, left.reach, right.reach)
        kind = integer_kind(reach, expr)
        sql = f"({self.widened(left, kind)} * {self.widened(right, kind)})"
        number = Number(sql, left.grid * right.grid, reach)
        return self.as_decimal(number, _between(left, "*", right), left.places + right.places)

    def as_decimal(self, number: Number, sql: str, places: int) -> Number:
        """Return an exact number that an engine with `narrow_decimals` can say as a decimal too, where 18 digits hold
        it; `sql`: "" where it is made of one that cannot."""
        assert number.grid is not None
        if not sql or not self.narrow_decimals or number.reach * number.grid * 10**places >= DECIMAL_REACH:
            return number
        return replace(number, decimal=sql, places=places)

    def fits_beside(self, sql: str, type_: SqlType, other: SqlType) -> str:
        """Return a bare exact number as it is compared with one of another type, if the two have at most 38 digits."""
        return sql

    @abstractmethod
    def quotient(self, left: str, right: str, *, wide: bool, most: int) -> str:
        """Return an integer division, cut towards zero; `wide`: an operand may be a HUGEINT; `most`: no quotient is
        larger, by what is printed alone."""

    @abstractmethod
    def summand(self, largest_sum: int) -> str:
        """Return the integer type of rows to be summed; `largest_sum`: no sum of them is larger."""

    def summed(self, sql: str, kind: str, largest_sum: int | None) -> str:
        """Return a computed integer of a type (`kind`) to be summed; `largest_sum`: as in `summand`, None: unknown."""
        return sql

    def splits(self, largest: int, largest_sum: int) -> bool:
        """Say whether BIGINTs no larger than `largest` are summed in two parts: a sum of wide integers costs more."""
        return False

    def split_sum(self, sql: str, only: str) -> str:
        """Return a sum of BIGINTs as a HUGEINT, NULL for no rows, by two sums of BIGINTs; `only`: its FILTER.

        It is 2^23·SUM(x >> 23) + SUM(x & (2^23 - 1)): >> rounds down, & is what it takes off.

        For |x| < 2^46 the first are -2^23 to 2^23 - 1, the others 0 to 2^23 - 1: no 2^40 of either pass 64 bits.
        """
        high = self.cast(f"SUM({self.shifted_right(f'({sql})', 23)}){only}", "HUGEINT")
        return f"({high} * {2**23} + SUM(({sql}) & {2**23 - 1}){only})"

    def shifted_right(self, sql: str, bits: int) -> str:
        """Return a BIGINT divided by 2^bits, rounded down."""
        return f"({sql} >> {bits})"

    def whole(self, sql: str, factor: int, reach: int, kind: str) -> str:
        """Return an exact number times a power of ten as an integer of a type (`kind`), no larger than `reach`."""
        return self.cast(f"{sql} * {factor}" if factor > 1 else sql, kind)

    def wide_sum(self, total: str) -> str:
        """Return a sum of integers as a HUGEINT, which it may be already."""
        return self.forms["wide_sum"].format(total)

    def half_even(self, sql: str) -> str:
        """Return a double rounded to a whole one, halves to even."""
        return self.forms["half_even"].format(sql)

    def half_away(self, sql: str) -> str:
        """Return a double rounded to a whole one, halves away from zero."""
        return self.forms["half_away"].format(sql)

    def rounded(self, sql: str, kind: str, reach: int) -> str:
        """Return a double as the nearest integer, halves to even, of a type (`kind`); its size is at most `reach`."""
        return self.cast(sql, kind)

    def stepped(self, function: str, sql: str) -> str:
        """Return floor, ceil or trunc of a double, as a double."""
        return f"{function}({sql})"

    def truncated(self, sql: str) -> str:
        """Return an exact number without what is after the point."""
        return f"trunc({sql})"

    def extreme(self, function: str, values: Sequence[str]) -> str:
        """Return greatest or least of values, NULL where all of them are."""
        return f"{function}({', '.join(values)})"

    # --- text and calendar ----------------------------------------------------------------------------------

    def cut(self, sql: str, most: int) -> str:
        """Return the first characters of a text; all engines count code points.

        Of a text with so few bytes the text itself: the engine reads its length, and copies nothing.
        """
        return f"(CASE WHEN {self.octets(sql)} <= {most} THEN {sql} ELSE left({sql}, {most}) END)"

    def no_longer(self, sql: str, most: int) -> str:
        """Return a text of at most so many bytes, NULL of a longer one."""
        return f"(CASE WHEN {self.octets(sql)} <= {most} THEN {sql} END)"

    def cut_column(self, shown: str, type_: SqlType, most: int) -> str:
        """Return the first characters of a table's column, as expressions read it."""
        return self.cut(self.column(shown, type_), most)

    def json_member(self, shown: str, keys: Sequence[str], position: Position | None) -> str:
        """Return the text of a member of a JSON column, NULL where there is none, whatever the column holds.

        Raises Refusal (PV202): this engine's own has no print that cannot fail.
        """
        raise Refusal(
            f"->> of people's rows is not answered on {self.name}", sqlstate="PV202", position=position,
            hint="ask the owner for a column that holds the member",
        )  # fmt: skip

    def json_field(self, shown: str, keys: Sequence[str], position: Position | None) -> str:
        """Return a member of a JSON column as JSON, NULL where there is none. Raises Refusal (PV202), as its text."""
        return self.json_member(shown, keys, position)

    def octets(self, sql: str) -> str:
        """Return how many bytes a text has."""
        return self.forms["octets"].format(sql)

    @abstractmethod
    def letter_case(self, name: str, sql: str) -> str:
        """Return lower() or upper(), each character by itself: one for one, as Postgres maps them."""

    def trimmed(self, name: str, sql: str) -> str:
        """Return trim(), ltrim() or rtrim() of blanks alone."""
        return f"{name}({sql}, ' ')"

    @abstractmethod
    def like(self, sql: str, pattern: str, escape: str, word: str = "LIKE") -> str:
        """Return LIKE, or NOT LIKE; `escape` is one character, "" for none."""

    def substring(self, sql: str, *numbers: int) -> str:
        """Return the part of a text from a place on, 0 is before its first character; and so many characters of it."""
        return f"substring({', '.join([sql, *map(str, numbers)])})"

    def text_of(self, sql: str, type_: SqlType) -> str:
        """Return a value as the text that people read."""
        return self.as_text(sql)

    def position(self, inside: str, part: str) -> str:
        """Return where a text begins inside another, from 1; 0 for nowhere."""
        return self.forms["position"].format(inside, part)

    @abstractmethod
    def patterns(self, position: Position | None) -> Patterns:
        """Return how regular expressions are printed. Raises Refusal (PV202): the engine has none that end in time."""

    def days_between(self, later: str, earlier: str) -> str:
        """Return the days from one date to another."""
        return self.forms["days_between"].format(later, earlier)

    @abstractmethod
    def since_1970(self, sql: str, type_: SqlType) -> str:
        """Return a date of our calendar as days, a timestamp as microseconds, a BIGINT."""

    def calendar_operand(self, sql: str) -> str:
        """Return a date or timestamp as date_trunc and extract take it."""
        return self.forms["calendar_operand"].format(sql)

    def date_trunc(self, unit: str, operand: str) -> str:
        """Return the beginning of a moment's unit, a TIMESTAMP."""
        return f"CAST(date_trunc('{unit}', {operand}) AS TIMESTAMP)"

    def extract(self, field: str, operand: str) -> str:
        """Return a field of a moment, a number."""
        return f"extract({field} FROM {operand})"

    def shifted(self, moment: str, sign: str, by: Months, type_: SqlType) -> str:
        """Return a date or timestamp (`type_`) plus or minus an interval, a TIMESTAMP: months first, then days."""
        return f"({moment} {sign} {self.literal(Literal(INTERVAL, by))})"

    def less_microseconds(self, sql: str, count: str) -> str:
        """Return a timestamp less so many microseconds, a BIGINT below 2^53."""
        return self.forms["less_microseconds"].format(sql, count)

    # --- rows -------------------------------------------------------------------------------------------------

    def same(self, left: str, right: str) -> str:
        """Return an equality in which NULL equals NULL, which the engine can join by hash."""
        return self.forms["same"].format(left, right)

    def hashed(self, parts: list[str]) -> str:
        """Return the hexadecimal md5 of texts; it is the same on all engines."""
        return f"md5({' || chr(31) || '.join(parts)})"

    def hash_text(self, sql: str, type_: SqlType) -> str:
        """Return what is hashed of a value: its canonical text, of a text no more than its beginning (law L10).

        Whoever orders by a hash has the values themselves as the last word.
        """
        return self.spelled(self.cut(sql, TEXT_CUT) if type_.kind is Kind.TEXT else sql, type_)

    @abstractmethod
    def spelled(self, sql: str, type_: SqlType) -> str:
        """Return a value's canonical text, the same on all engines."""

    def exact_text(self, sql: str, type_: SqlType) -> str:
        """Return an exact number as text without zeros at the end of a fraction, whatever scale it has."""
        shown = self.spelled(sql, type_)
        whole = self.without_end(self.without_end(shown, "0"), ".")
        return f"CASE WHEN {shown} LIKE '%.%' THEN {whole} ELSE {shown} END"

    def without_end(self, sql: str, letter: str) -> str:
        """Return a text without what it ends in, as often as it does."""
        return f"rtrim({sql}, '{letter}')"

    def scattered(self, parts: Sequence[tuple[str, SqlType]], bits: int) -> str:
        """Return so many bits of a hash of values, as a bigint, the same on all engines; `bits` is 12 at most."""
        if len(parts) == 1 and parts[0][1].is_integer:
            return f"({self.scattered_whole(parts[0][0])} & {2**bits - 1})"
        return self.scattered_texts([self.hash_text(sql, type_) for sql, type_ in parts], bits)

    def scattered_whole(self, sql: str) -> str:
        """Return an integer's place among 2^31 - 1, far from those of its neighbours, as a bigint, the same on all
        engines: a sort by it costs a third of one by md5."""
        prime = 2**31 - 1
        return f"(({self.cast(sql, 'BIGINT')} % {prime} + {prime}) * 48271 % {prime})"

    def scattered_texts(self, parts: list[str], bits: int) -> str:
        """Return so many bits of a hash of texts none of which is NULL, as `scattered` does."""
        digits = f"substr({self.hashed(parts)}, 1, 3)"
        return f"({self.read_hexadecimal(digits)} & {2**bits - 1})"

    def read_hexadecimal(self, digits: str) -> str:
        """Return three hexadecimal digits as a bigint."""
        return self.forms["read_hexadecimal"].format(digits)

    def listed(self, columns: Sequence[ListColumn]) -> str:
        """Return the SELECT of list parameters, all of one length, as columns side by side."""
        shown = []
        for one in columns:
            sql = f"unnest(CAST({self.parameter(one.parameter)} AS {self.kind(one.carried)}[]))"
            shown.append(f"{f'{self.list_cast}({sql} AS {one.cast})' if one.cast else sql} AS {one.name}")
        return f"SELECT {', '.join(shown)}"

    def step(self, name: str, sql: str, *, is_kept: bool | None = None) -> str:
        """Return a step of WITH; `is_kept`: whether it is computed once, None for as the engine likes."""
        word = {None: "", True: "MATERIALIZED ", False: "NOT MATERIALIZED "}[
            is_kept if self.keeps_steps else None
        ]
        return f"{name} AS {word}({sql})"

    def without(self, rows: str, left_out: str, known: Sequence[str], shown: Sequence[str]) -> str:
        """Return the rows of one table that have no equal in another in what is `known`, which is never NULL."""
        match = " AND ".join(f"{rows}.{one} = {left_out}.{one}" for one in known)
        return f"SELECT {', '.join(shown)} FROM {rows} {self.anti_join.format(other=left_out, match=match)}"

    def first(
        self, rows: str, unit: Sequence[str], hashed: str, shown: Sequence[str], most: int
    ) -> str | None:
        """Return so many rows of each unit without a sort of all, None where the engine has nothing of the kind.

        They are the first by a hash, which is never NULL, and then by all that is shown, NULL last: those that a window
        of this order numbers to `most`, where no two rows of a unit show the same.
        """
        return None

    def scattered_apart(self, sql: str, type_: SqlType) -> str:
        """Return a bigint that a whole number alone has, in an order that says nothing of it (1.38).

        Multiplied by an odd number, those of one sign keep apart modulo 2^32, and the sign stays; no product passes
        2^63. Of 64 bits the low half is spread so, and is the high half of the place; the other half stays.
        """
        if type_.kind is Kind.BIGINT:
            low = f"(({sql} & {2**32 - 1}) * 1640531527) % {2**32}"
            return f"(({low} - {2**31}) * {2**32} + ({self.shifted_right(sql, 32)} + {2**31}))"
        return f"({self.cast(sql, 'BIGINT')} * 2654435761) % 4294967296"

    def last(self, sql: str, most: int) -> str | None:
        """Return the aggregate of the last of the so many least numbers, None where the engine has none, or no room."""
        return None


def dialect_of(name: str, case_collation: str | None) -> Dialect:
    """Return the dialect of a catalog. A name that no class has is a bug: KeyError, never another engine's SQL."""
    return _DIALECTS[name].of(case_collation)
