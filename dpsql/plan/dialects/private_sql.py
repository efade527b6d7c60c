"""Pieces of printed private SQL that all forms share: numbers, patterns, what a format writes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from ...errors import Refusal
from ...records import dataclass
from ...relation.calendar import FormatPart
from ...relation.expressions import Expr, walk
from ...relation.facts import decimal_scale
from ...relation.functions.above.patterns import OF_POSTGRES, OF_RE2, Spelling
from ...relation.intervals import Facts
from .quote import text

if TYPE_CHECKING:
    from .dialect import Dialect


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
    2^least: an engine may raise where a result leaves the range of doubles (`private_reals`).
    """

    sql: str
    grid: Fraction | None
    reach: int = 0
    most: int = 1024
    least: int = -1074

    @property
    def kind(self) -> str:
        """The integer type of `sql`."""
        return "BIGINT" if self.reach < _BIG else "HUGEINT"

    @property
    def is_decimal(self) -> bool:
        """Whether integers or decimals of some digits hold all its values."""
        return self.grid is not None and decimal_scale(self.grid) is not None


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
