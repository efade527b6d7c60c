"""Random expressions over columns of a catalog: arguments, conditions and keys of the statements that are searched.

Some are refused, as a person's are; none of them is made to be accepted. What is written depends on the columns and on
the random numbers alone.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from fractions import Fraction

from ...records import dataclass
from ...relation.catalog import Column
from ...relation.types import Kind
from ..preview import sql_name

_SIGNS = ("=", "<>", "<", "<=", ">", ">=")
_NUMBERS = ("0", "1", "2", "-3", "0.5", "2.25", "7", "100", "1e3", "0.000000000001")
_TEXTS = ("'a'", "''", "'t'", "'zz'")
_TIMES = ("DATE '2020-06-15'", "TIMESTAMP '2020-02-01 10:00:00'", "DATE '2000-01-01'")
_ZONES = ("Europe/Zurich", "America/Havana")
_UNITS_OF_TIME = ("year", "quarter", "month", "week", "day", "hour", "minute")
_FIELDS = (
    "year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute", "isoyear", "second", "epoch",
)  # fmt: skip
_OF_ONE_NUMBER = (
    "abs({})", "(-{})", "round({})", "floor({})", "ceil({})", "trunc({})", "sign({})", "sin({})", "cos({})", "atan({})",
    "tanh({})", "sqrt(abs({}))", "ln(greatest({}, 1))", "log(greatest({}, 0.5))", "exp(least({}, 3))", "power({}, 2)",
    "power({}, 3)", "coalesce({}, 0)", "nullif({}, 0)", "CAST({} AS INTEGER)", "CAST({} AS NUMERIC(8,1))",
    "CAST({} AS DOUBLE PRECISION)", "({} / 4)", "width_bucket({}, 0, 4, 5)", "width_bucket({}, 2.5, -1, 3)",
)  # fmt: skip
_OF_ONE_TEXT = (
    "lower({})", "upper({})", "trim({})", "substring({} FROM 1 FOR 2)", "left({}, 1)", "right({}, 2)",
    "({} || '-')", "concat({}, 'x')", "coalesce({}, 'none')", "nullif({}, 'a')", "({0} || {0})",
)  # fmt: skip
_CLOCKS = ("TIME '09:30'", "TIME '23:59:59.5'")
_OF_ONE_TIME = (
    "CAST({} AS DATE)", "CAST({} AS TIMESTAMP)", "({} + INTERVAL '1 day')", "({} + INTERVAL '-2 months')",
    "({} + INTERVAL '90 minutes')", "date_bin('7 days', {}, TIMESTAMP '2001-01-01')",
    *(f"date_trunc('{unit}', {{}})" for unit in _UNITS_OF_TIME),
    *(f"date_trunc('{unit}', {{}}, '{zone}')" for unit in _UNITS_OF_TIME[2:5] for zone in _ZONES),
    *(f"({{}}::timestamptz AT TIME ZONE '{zone}')" for zone in _ZONES),
)  # fmt: skip
_BINS = (
    "floor({} / 0.5) * 0.5", "floor({} * 2) / 2", "ceil({} / 0.3) * 0.3 - 1", "(CAST({} AS INTEGER) / 2) * 2",
    "round({}) * 1e0", "width_bucket({}, 0, 4, 5)", "trunc({} / 1.5) * 1.5", "({} % 3)",
)  # fmt: skip


def role_of(column: Column) -> str:
    """Return what a column is used as: number, text, flag, time, or other."""
    kind = column.type.kind
    if column.type.is_number:
        return "number"
    roles = {Kind.TEXT: "text", Kind.BOOLEAN: "flag", Kind.DATE: "time", Kind.TIMESTAMP: "time"}
    return roles.get(kind, "other")


@dataclass(frozen=True, slots=True)
class Named:
    """A column of a FROM item: its name as SQL has it, its role, and what the catalog says of it, where it is one."""

    sql: str
    role: str
    column: Column | None = None

    @classmethod
    def of(cls, column: Column) -> Named:
        """Return a column of a table."""
        return cls(sql_name(column.name), role_of(column), column)


@dataclass(frozen=True, slots=True)
class Item:
    """A FROM item. `sql`: with its alias. `person`: the columns that together say whose a row is, () for none."""

    sql: str
    alias: str
    columns: tuple[Named, ...]
    person: tuple[str, ...] = ()
    table: str | None = None

    @property
    def owner(self) -> tuple[str, ...]:
        """The qualified columns of `person`."""
        return tuple(f"{self.alias}.{name}" for name in self.person)


@dataclass
class Scope:
    """The columns that an expression may have, and the random numbers that choose among them."""

    rng: random.Random
    items: Sequence[Item]

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.rng.choice(options)

    def chance(self, percent: int) -> bool:
        """Return whether something happens."""
        return self.rng.randrange(100) < percent

    def columns(self, role: str, *, declared: bool | None = None) -> list[str]:
        """Return the columns of a role that do not say whose a row is. `declared`: those with values, or without."""
        return [
            f"{item.alias}.{one.sql}"
            for item in self.items
            for one in item.columns
            if one.role == role and one.sql not in item.person and declared in (None, _has_values(one))
        ]

    def column(self, role: str, otherwise: str, *, declared: bool | None = None) -> str:
        """Return one of them, else one of the role, else what stands for it."""
        found = self.columns(role, declared=declared) or self.columns(role)
        return self.rng.choice(found) if found else otherwise

    def bounded(self) -> str:
        """Return a number whose bounds are declared, where there is one: what most aggregates need."""
        found = [
            f"{item.alias}.{one.sql}"
            for item in self.items
            for one in item.columns
            if one.role == "number" and one.sql not in item.person
            and (one.column is None or one.column.bounds is not None)
        ]  # fmt: skip
        return self.rng.choice(found) if found else self.column("number", "1")

    def exact(self) -> str:
        """Return a number that is no floating-point one, where there is one."""
        found = [
            f"{item.alias}.{one.sql}"
            for item in self.items
            for one in item.columns
            if one.role == "number" and one.sql not in item.person
            and (one.column is None or one.column.type.kind not in (Kind.REAL, Kind.DOUBLE))
        ]  # fmt: skip
        return self.rng.choice(found) if found else self.binned()

    def owners(self, percent: int) -> list[str]:
        """Return what says whose the rows are, now and then."""
        return [name for item in self.items[:1] for name in item.owner if self.chance(percent)]

    def number(self, depth: int) -> str:
        """Return a number, so many operators deep at most."""
        leaf = self.bounded() if self.chance(75) else self.pick(self.column("number", "1"), *_NUMBERS)
        if depth == 0:
            return leaf
        form = self.rng.randrange(13)
        if form < 3:
            return f"({self.number(depth - 1)} {self.pick('+', '-', '*', '/', '%')} {self.number(depth - 1)})"
        if form < 7:
            return self.pick(*_OF_ONE_NUMBER).format(self.number(depth - 1))
        if form == 7:
            return f"{self.pick('greatest', 'least')}({self.number(depth - 1)}, {self.number(depth - 1)})"
        if form == 8:
            otherwise = f" ELSE {self.number(depth - 1)}" if self.chance(60) else ""
            return f"CASE WHEN {self.condition(0)} THEN {self.number(depth - 1)}{otherwise} END"
        if form == 9 and (flags := self.columns("flag")):
            return f"CAST({self.rng.choice(flags)} AS INTEGER)"
        if form == 10 and (times := self.columns("time")):
            time = self.rng.choice(times)
            return self.pick(
                f"extract({self.pick(*_FIELDS)} FROM {time})",
                f"extract({self.pick('year', 'month')} FROM age({self.pick(*_TIMES)}, {time}))",
                f"({time} - DATE '2020-01-01')",
            )
        if form == 11 and (texts := self.columns("text")):
            return self.pick("length({})", "position('t' IN {})").format(self.rng.choice(texts))
        return leaf

    def text(self) -> str:
        """Return a text, or a computed one."""
        found = self.columns("text")
        if (times := self.columns("time")) and (not found or self.chance(10)):
            return f"to_char({self.rng.choice(times)}, '{self.pick('YYYY-MM', 'FMMonth', 'Dy HH24')}')"
        text = self.rng.choice(found) if found else "'a'"
        return self.pick(*_OF_ONE_TEXT).format(text) if self.chance(50) else text

    def time(self) -> str:
        """Return a date or a moment, or a computed one."""
        time = self.column("time", _TIMES[0])
        return self.pick(*_OF_ONE_TIME).format(time) if self.chance(60) else time

    def binned(self) -> str:
        """Return a number that few values are left of."""
        return self.pick(*_BINS).format(self.bounded())

    def compared(self) -> str:
        """Return a comparison of a column with a constant of its own: an end of its bounds, a listed value."""
        found = [(item, one) for item in self.items for one in item.columns if one.sql not in item.person]
        item, one = self.rng.choice(found) if found else (None, None)
        if item is None or one is None:
            return "1 = 1"
        name = f"{item.alias}.{one.sql}"
        if one.role == "flag":
            return self.pick(name, f"NOT {name}", f"{name} IS NOT TRUE")
        return f"{name} {self.pick(*_SIGNS)} {self.rng.choice(self.constants(one))}"

    def constants(self, named: Named) -> Sequence[str]:
        """Return constants that a column may be compared with."""
        column, role = named.column, named.role
        if column is not None and column.values and role == "text":
            return [_quoted(value) for value in column.values if isinstance(value, str)] or _TEXTS
        if column is not None and column.bounds is not None:
            low, high = column.bounds
            ends = (low, high, (low + high) / 2)
            if role == "number":
                return [_plain(end) for end in ends]
            if role == "time" and column.type.kind is Kind.DATE:
                return [_date(end) for end in ends]
        return {"number": _NUMBERS, "time": _TIMES}.get(role, _TEXTS)

    def condition(self, depth: int) -> str:
        """Return a condition, so many operators deep at most."""
        if depth > 0 and self.chance(50):
            inner = self.condition(depth - 1)
            return self.pick(
                f"(NOT {inner})",
                f"({inner} AND {self.condition(depth - 1)})",
                f"({inner} OR {self.condition(depth - 1)})",
            )
        text, number, few = self.text(), self.number(depth), self.column("number", "1")
        forms = [
            self.compared(),
            self.compared(),
            f"({number} {self.pick(*_SIGNS)} {self.number(depth)})",
            f"({few} {self.pick(*_SIGNS)} {self.pick(*_NUMBERS)})",
            f"({few} BETWEEN {self.pick(*_NUMBERS)} AND {self.pick(*_NUMBERS)})",
            f"({few} IN ({self.pick(*_NUMBERS)}, {self.pick(*_NUMBERS)}))",
            f"({text} {self.pick(*_SIGNS)} {self.pick(*_TEXTS)})",
            f"({text} IN ('a', 'b', 't'))",
            f"({text} LIKE '{self.pick('%t%', 'a_', '%a%', '')}')",
            f"({self.pick(number, text)} IS NULL)",
            f"({self.pick(number, text)} IS NOT NULL)",
            f"({number} IS DISTINCT FROM {self.pick(*_NUMBERS)})",
        ]
        if self.columns("time"):
            forms.append(f"({self.time()} {self.pick(*_SIGNS)} {self.pick(self.time(), *_TIMES)})")
            # of a moment that is moved to another zone the verifier has no rule on Postgres
            clock = f"CAST(CAST({self.rng.choice(self.columns('time'))} AS TIMESTAMP) AS TIME)"
            forms.append(f"({clock} {self.pick(*_SIGNS)} {self.pick(*_CLOCKS)})")
        return self.rng.choice(forms)


def _has_values(named: Named) -> bool:
    return named.column is not None and named.column.values is not None


def _plain(value: Fraction) -> str:
    is_written_out = value.denominator == 1 and abs(value) < 10**30
    return str(value) if is_written_out else f"{float(value):.12g}"


def _date(days: Fraction) -> str:
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=min(max(int(days), -700_000), 2_900_000))
    return f"DATE '{day.isoformat()}'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
