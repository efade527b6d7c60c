"""What a column can be before a row is seen: a list of values as SQL, one of each piece that expressions tell apart.

    >>> grains([extract(month FROM ts), ts < '2024-03-05'])
    ts: months, and the moment 2024-03-05
    >>> pieces(born, by months)
    the first and the last moment of every month between its bounds, and NULL

A column of few values has all of them. Of moments and of numbers that have many, what an expression reads is known by
its functions, as a *grain*: one that is constant within each month, on either side of a literal, on each step of a
width. Of these there are the ends of the pieces that the grain tells apart: an expression that is constant on each is
seen in all that it can be.

House rules:

1. An expression is constant on the pieces that its grains make, in whatever way it is computed there; what is not sure
   raises `NotTold`, and is left out by whoever asked (`value_set`).
2. A column is what its declaration says, as the printed SQL clamps it there, and what WHERE leaves of it; one that has
   none is what its type allows. Texts beside the declared ones are a value of their own (`others`), but where the
   column itself is a key: what is not listed is no group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from fractions import Fraction

from ...records import dataclass
from ...relation.calendar import DAY, calendar_ends, cut_values, finest_unit, step_units
from ...relation.expressions import Call, Expr, Field, Literal, LiteralValue, Months, compared, fields_of
from ...relation.facts import Facts, common_grid, decimal_scale
from ...relation.functions.moments import bin_of, steps_of, word_of, written_format
from ...relation.functions.numbers import buckets_of
from ...relation.intervals import TYPE_RANGE, Environment, facts_of
from ...relation.types import Kind, SqlType
from ..dialects.dialect_duckdb import DUCKDB

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct")
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_UNIT_OF = {
    "year": "year", "isoyear": "week", "quarter": "quarter", "month": "month", "week": "week", "day": "day",
    "doy": "day", "dow": "day", "isodow": "day", "hour": "hour", "minute": "minute", "second": "",
    "epoch": "",
}  # fmt: skip
"""Field of extract -> the unit within which it is constant; "": none."""
_FINER = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "")
_STEPS = ("floor", "ceil", "trunc", "round")
_MOST_CUTS = 20_000


class NotTold(Exception):
    """It is not known on which pieces an expression is constant."""


@dataclass
class Grain:
    """What a column is told apart by: units of the calendar, single values, and steps: (where one begins, width).

    `is_apart`: also by the differences of its moments to those of others, in these units.
    """

    units: set[str] = field(default_factory=set)
    cuts: set[Fraction] = field(default_factory=set)
    steps: set[tuple[Fraction, Fraction]] = field(default_factory=set)
    is_apart: bool = False


def grains(exprs: Iterable[Expr], env: Environment, many: frozenset[int]) -> dict[int, Grain]:
    """Return the grains of columns, of those in `many`: the others are told apart value by value. Raises NotTold."""
    reader = _Reader(env, many, {index: Grain() for index in many})
    for expr in exprs:
        reader.value(expr)
    return reader.found


def interval_unit(expr: Expr) -> str:
    """Return the coarsest unit that an interval is made of whole ones of."""
    length = expr.constant_as(Months)
    if length is None:
        return ""
    units = [unit for unit, count in (("month", length.months), ("day", length.days)) if count]
    return _finest([*units, _aligned(Fraction(length.microseconds)) if length.microseconds else "year"])


def is_rising(expr: Expr) -> bool:
    """Say whether an expression of one column never falls where that rises."""
    if expr.column is not None:
        return True
    if expr.calls("add", "sub") and any(arg.is_constant for arg in expr.args):
        return is_rising(expr.args[0]) or (expr.calls("add") and is_rising(expr.args[1]))
    if expr.calls("cast"):
        return is_rising(expr.args[0]) and (expr.type.is_temporal or expr.type.is_number)
    return expr.calls("date_trunc") and is_rising(expr.args[1])


def _finest(units: Iterable[str]) -> str:
    """Return the coarsest unit of which all of some units are made of whole ones."""
    found = set(units)
    if "week" in found and found & {"year", "quarter", "month"}:
        found.add("day")
    return max(found, key=_FINER.index, default="year")


def _aligned(microseconds: Fraction) -> str:
    """Return the coarsest of day, hour, minute, second that a moment begins; "" for none."""
    return next(
        (u for u in ("day", "hour", "minute", "second") if microseconds % (SECONDS[u] * 10**6) == 0), ""
    )


@dataclass
class _Reader:
    env: Environment
    many: frozenset[int]
    found: dict[int, Grain]

    def _is_known(self, expr: Expr) -> bool:
        return not fields_of(expr) & self.many

    def value(self, expr: Expr) -> None:
        """Note by what an expression's value is told apart."""
        if self._is_known(expr):
            return
        if isinstance(expr, Field):
            if expr.type.kind is not Kind.DATE:
                raise NotTold
            self.found[expr.index].units.add("day")
            return
        name = expr.function
        if name in COMPARISONS or name == "in":
            self._comparison(expr)
        elif name in ("is_null", "is_true", "is_false") and expr.args[0].column is not None:
            return
        elif name in _STEPS or (name == "cast" and expr.type.is_integer and expr.args[0].type.is_number):
            self._steps(expr)
        elif name == "width_bucket":
            self._buckets(expr)
        elif name == "sign":
            self.against(expr.args[0], [Fraction(0)])
        elif expr.type.is_temporal or name in ("extract", "to_char", "cast"):
            self.moment(expr, "")
        else:
            for arg in expr.args:
                self.value(arg)

    def _comparison(self, expr: Expr) -> None:
        found = compared(expr) if expr.function != "in" else None
        sides = expr.args if found is None else found[1:]
        left, others = sides[0], sides[1:]
        if all(other.is_constant for other in others):
            self.against(left, [Fraction(v) for other in others if (v := _number(other)) is not None])
        elif (
            len(sides) == 2
            and (parts := _epochs(left, self.many))
            and (more := _epochs(others[0], self.many))
        ):
            self._apart({**parts[0], **{e: -c for e, c in more[0].items()}}, parts[1] - more[1], Fraction(0))
        else:
            for side in sides:
                self.value(side)

    def against(self, expr: Expr, values: Sequence[Fraction]) -> None:
        """Note by what it is told apart on which side of some values an expression is."""
        if self._is_known(expr):
            return
        line = _line(expr, self.many)
        if isinstance(expr, Field) or line is not None:
            column, slope, start = (expr.column, Fraction(1), Fraction(0)) if line is None else line
            assert column is not None
            self.found[column].cuts.update((value - start) / slope for value in values)
        elif (moved := _moved(expr)) is not None:
            self.found[moved[0]].cuts.update(value - moved[1] for value in values)
        elif expr.type.is_temporal:
            self.moment(
                expr, _finest(_aligned(v * (DAY if expr.type.kind is Kind.DATE else 1)) for v in values)
            )
        elif expr.calls("abs"):
            self.against(expr.args[0], [sign * value for value in values for sign in (1, -1)])
        elif expr.calls("greatest", "least", "coalesce"):
            for arg in expr.args:
                self.against(arg, values)
        elif expr.calls("case"):
            for condition in expr.args[:-1:2]:
                self.value(condition)
            for arg in (*expr.args[1::2], expr.args[-1]):
                self.against(arg, values)
        elif (parts := _epochs(expr, self.many)) is not None:
            for value in values:
                self._apart(parts[0], parts[1] - value, Fraction(0))
        else:
            self.value(expr)

    # --- numbers -----------------------------------------------------------------------------------------------

    def _steps(self, expr: Expr) -> None:
        digits = expr.args[1].constant_as(int) if len(expr.args) > 1 else 0
        if digits is None:
            raise NotTold
        width = Fraction(10) ** -digits
        start = width / 2 if expr.calls("round", "cast") else Fraction(0)
        line = _line(expr.args[0], self.many)
        if line is not None:
            column, slope, offset = line
            self.found[column].steps.add(((start - offset) / slope, abs(width / slope)))
        elif (parts := _epochs(expr.args[0], self.many)) is not None:
            self._apart(parts[0], parts[1] + start, width)
        else:
            self.value(expr.args[0])

    def _buckets(self, expr: Expr) -> None:
        assert isinstance(expr, Call)
        buckets, line = buckets_of(expr), _line(expr.args[0], self.many)
        if line is None:
            raise NotTold
        column, slope, offset = line
        ends = buckets.edges if buckets.count < _MOST_CUTS else []
        if not ends:
            raise NotTold
        self.found[column].cuts.update((end - offset) / slope for end in ends)

    def _apart(self, parts: dict[Expr, Fraction], start: Fraction, width: Fraction) -> None:
        """Note that a weighted sum of seconds is told apart on steps: whole numbers of these tell its parts apart."""
        if not parts:
            return
        if len({abs(weight) for weight in parts.values()}) != 1 or len(parts) > 2:
            raise NotTold
        weight = abs(next(iter(parts.values())))
        step = common_grid([end / weight for end in (start, width) if end]) or Fraction(SECONDS["day"])
        unit = _aligned(step * 10**6)
        for moment in parts:
            if isinstance(moment, Field) and moment.type.kind is Kind.TIMESTAMP:
                self.found[moment.index].steps.add((Fraction(0), step * 10**6))
            elif unit:
                self.moment(moment, unit)
            else:
                raise NotTold
            for index in fields_of(moment) & self.many:
                self.found[index].is_apart |= len(parts) > 1

    # --- moments -----------------------------------------------------------------------------------------------

    def moment(self, expr: Expr, unit: str) -> None:
        """Note by what it is told apart in which unit of the calendar a moment is; "": which moment it is."""
        if self._is_known(expr):
            return
        if isinstance(expr, Field):
            if not unit and expr.type.kind is not Kind.DATE:
                raise NotTold
            self.found[expr.index].units.add(unit if _FINER.index(unit) < _FINER.index("day") else
                                             "day" if expr.type.kind is Kind.DATE else unit)  # fmt: skip
            return
        assert isinstance(expr, Call)
        name, args = expr.function, expr.args
        if name == "date_trunc":
            self.moment(args[1], expr.literal(0, str))
        elif name == "extract":
            self.moment(args[1], _UNIT_OF[expr.literal(0, str)])
        elif name == "to_char":
            self.moment(args[0], finest_unit(written_format(expr)))
        elif name == "cast":
            is_day = Kind.DATE in (expr.type.kind, args[0].type.kind)
            self.moment(args[0], min(unit, "day", key=_FINER.index) if is_day else unit)
        elif name in ("add", "sub") and any(arg.type.kind is Kind.INTERVAL for arg in args):
            moment, length = args if args[1].type.kind is Kind.INTERVAL else args[::-1]
            self.moment(moment, _finest((unit, interval_unit(length))))
        elif name in ("case", "coalesce", "nullif", "greatest", "least") and unit:
            self._choice(expr, unit)
        elif name == "date_bin" and args[1].column is not None:
            width, origin = bin_of(expr)
            scale = DAY if args[1].type.kind is Kind.DATE else 1
            self.found[args[1].column].steps.add((Fraction(origin, scale), Fraction(width, scale)))
        elif name in ("zone_clock", "zone_moment"):
            self._zone(expr, unit)
        elif name == "zone_cut" and args[1].column is not None:
            ends = facts_of(args[1], self.env)
            listed = None if ends.lo is None or ends.hi is None else cut_values(
                word_of(expr, 0), word_of(expr, 2), int(ends.lo), int(ends.hi), _MOST_CUTS)  # fmt: skip
            if listed is None:
                raise NotTold
            self.found[args[1].column].cuts.update(map(Fraction, listed))
        else:
            for arg in args:
                self.value(arg)

    def _choice(self, expr: Call, unit: str) -> None:
        if not expr.calls("case", "coalesce"):
            unit = _finest(
                (unit, *(_aligned(Fraction(v)) for arg in expr.args if (v := _number(arg)) is not None))
            )
            constants = [Fraction(v) for arg in expr.args if (v := _number(arg)) is not None]
            for arg in expr.args:
                self.against(arg, constants)
        values = (*expr.args[1::2], expr.args[-1]) if expr.calls("case") else expr.args
        for arg in values:
            self.moment(arg, unit)
        for condition in expr.args[:-1:2] if expr.calls("case") else ():
            self.value(condition)

    def _zone(self, expr: Call, unit: str) -> None:
        column = expr.args[0].column
        ends = facts_of(expr.args[0], self.env)
        if column is None or ends.lo is None or ends.hi is None:
            raise NotTold
        steps = steps_of(expr, int(ends.lo), int(ends.hi))
        if steps is None or not unit:
            raise NotTold
        offsets = [steps.first, *(offset for _, offset in steps.changes)]
        self.found[column].cuts.update(Fraction(moment) for moment, _ in steps.changes)
        self.moment(expr.args[0], _finest((unit, *(_aligned(Fraction(offset)) for offset in offsets))))


def _moved(expr: Expr) -> tuple[int, Fraction] | None:
    """Return a moment as a column, and by what it is later; None: it is no such."""
    if not expr.calls("add", "sub") or expr.type.kind is not Kind.TIMESTAMP:
        return None
    moment, length = expr.args if expr.args[0].column is not None else expr.args[::-1]
    span = length.constant_as(Months)
    if moment.column is None or moment.type.kind is not Kind.TIMESTAMP or span is None or span.months:
        return None
    later = Fraction(span.days * DAY + span.microseconds)
    return moment.column, -later if expr.calls("sub") else later


def _number(expr: Expr) -> Fraction | None:
    value = expr.constant
    if isinstance(value, float):
        return Fraction(value) if abs(value) < float("inf") else None
    return (
        None
        if isinstance(value, (bool, str)) or value is None or isinstance(value, Months)
        else Fraction(value)
    )


def _line(expr: Expr, many: frozenset[int]) -> tuple[int, Fraction, Fraction] | None:
    """Return a number as a column, by what it is multiplied and what is added then; None: it is no such."""
    if not expr.type.is_number:
        return None
    if expr.column is not None:
        return (expr.column, Fraction(1), Fraction(0)) if expr.column in many else None
    if expr.calls("neg") or (expr.calls("cast") and expr.type.is_float):
        found = _line(expr.args[0], many)
        return (found[0], -found[1], -found[2]) if found and expr.calls("neg") else found
    if not expr.calls("add", "sub", "mul", "div"):
        return None
    left, right = expr.args
    other, place = (_number(right), 0) if right.is_constant else (_number(left), 1)
    found = _line(expr.args[place], many)
    if found is None or other is None:
        return None
    column, slope, start = found
    if expr.calls("add"):
        return column, slope, start + other
    if expr.calls("sub"):
        return (column, slope, start - other) if place == 0 else (column, -slope, other - start)
    if expr.calls("mul"):
        return (column, slope * other, start * other) if other else None
    return (
        (column, slope / other, start / other) if place == 0 and other and not expr.type.is_integer else None
    )


def _epochs(expr: Expr, many: frozenset[int]) -> tuple[dict[Expr, Fraction], Fraction] | None:
    """Return a number as a sum of the seconds of moments, each with its weight, and a constant; None: it is no such."""
    if expr.is_constant:
        number = _number(expr)
        return None if number is None else ({}, number)
    if expr.calls("extract") and expr.literal(0, str) == "epoch":
        of = expr.args[1]
        if of.calls("sub") and all(arg.type.is_temporal for arg in of.args):
            return {of.args[0]: Fraction(1), of.args[1]: Fraction(-1)}, Fraction(0)
        return {of: Fraction(1)}, Fraction(0)
    if expr.calls("cast") and expr.type.is_number and not expr.type.is_integer:
        return _epochs(expr.args[0], many) if expr.type.is_float else None
    if not expr.calls("add", "sub", "mul", "div", "neg") or expr.type.is_integer:
        return None
    sides = [_epochs(arg, many) for arg in expr.args]
    known = [side for side in sides if side is not None]
    if len(known) < len(sides):
        return None
    (a, b), more = known[0], known[1:]
    if expr.calls("neg"):
        return {e: -c for e, c in a.items()}, -b
    c, d = more[0]
    if expr.calls("add", "sub"):
        sign = -1 if expr.calls("sub") else 1
        summed = {e: a.get(e, Fraction(0)) + sign * c.get(e, Fraction(0)) for e in (*a, *c)}
        return {e: w for e, w in summed.items() if w}, b + sign * d
    if expr.calls("mul") and (not a or not c):
        factor, (parts, start) = (b, (c, d)) if not a else (d, (a, b))
    elif expr.calls("div") and not c and d:
        factor, (parts, start) = 1 / d, (a, b)
    else:
        return None
    return ({e: w * factor for e, w in parts.items()}, start * factor) if factor else None


FEW = 20_000
"""Most values of a column that are taken one by one."""
_MOST = 300_000
"""Most pieces of a column: a twentieth of a second."""
_FAR = Fraction(10) ** 300


@dataclass(frozen=True, slots=True)
class Pieces:
    """A SELECT of the values `v` of a column, and of `o`: whether it is none that a literal or a declaration names.

    `count`: at most so many. `has_others`: some are.
    """

    sql: str
    count: int
    has_others: bool = False


def has_many(column: Field, env: Environment) -> bool:
    """Say whether a column has too many values to take them one by one, or none that are known. Raises NotTold."""
    kind, facts = column.type.kind, facts_of(column, env)
    if kind in (Kind.TEXT, Kind.BOOLEAN):
        return False
    if column.type.is_temporal:
        return facts.values is None
    if not column.type.is_number:
        raise NotTold
    if column.type.is_float:
        return True
    if facts.values is not None:
        return False
    if facts.grid is None or decimal_scale(facts.grid) is None:
        raise NotTold
    return not facts.bounded or _size(facts, facts.grid) > FEW


def _size(facts: Facts, grid: Fraction) -> int:
    assert facts.lo is not None
    assert facts.hi is not None
    return max(0, math.floor(facts.hi / grid) - math.ceil(facts.lo / grid) + 1)


def pieces(
    column: Field, env: Environment, grain: Grain | None, named: Sequence[LiteralValue], ends: Iterable[LiteralValue],
    *, is_key: bool,
) -> Pieces:  # fmt: skip
    """Return what a column can be in a row that passes the filter; `grain`: of one that has many values.

    `named`: the literals that the statement compares it with, `ends`: those of them by order. Raises NotTold.
    """
    facts, kind = facts_of(column, env), column.type.kind
    null = [None] if facts.nullable else []
    if kind is Kind.BOOLEAN:
        return listed(column.type, [False, True, *null])
    if kind is Kind.TEXT:
        return _texts(column, env, facts, named, ends, is_key=is_key)
    if facts.values is not None and not column.type.is_float:
        within = [v for v in facts.values if isinstance(v, (int, Fraction)) and _inside(v, facts)]
        return listed(column.type, [*within, *null])
    if grain is None:
        assert facts.grid is not None
        assert facts.lo is not None
        first, count = math.ceil(facts.lo / facts.grid), _size(facts, facts.grid)
        return _of(column.type, [f"range({first}, {first + count})"], facts.grid, count, facts)
    if column.type.is_temporal:
        return _moments(column, facts, grain)
    return _reals(column, facts, grain) if column.type.is_float else _exact(column, facts, grain)


def _inside(value: Fraction | int, facts: Facts) -> bool:
    return (facts.lo is None or facts.lo <= value) and (facts.hi is None or value <= facts.hi)


def listed(type_: SqlType, values: Sequence[LiteralValue]) -> Pieces:
    """Return the pieces of a list of values."""
    shown = ", ".join(DUCKDB.literal(Literal(type_, value)) for value in values) or "NULL"
    none = "" if values else " LIMIT 0"
    return Pieces(f"SELECT unnest([{shown}]) AS v, FALSE AS o{none}", len(values))


def _texts(
    column: Field, env: Environment, facts: Facts, named: Sequence[LiteralValue], ends: Iterable[LiteralValue],
    *, is_key: bool,
) -> Pieces:  # fmt: skip
    declared = env.columns[column.index].values
    values = [value for value in facts.values or () if isinstance(value, str)]
    null: list[str | None] = [None] if facts.nullable else []
    if facts.values is not None and (declared is None or is_key):
        return listed(column.type, [*values, *null])
    known = dict.fromkeys([*values, *(value for value in named if isinstance(value, str)), *null])
    taken = {*known, *(declared or ())}
    others = []
    texts = sorted({end for end in ends if isinstance(end, str)})
    for low, high in zip(["", *texts], [*texts, None], strict=True):
        other = low + _LEAST
        while other in taken:
            other += _LEAST
        if high is None or other < high:
            others.append(other)
    first = listed(column.type, list(known))
    shown = ", ".join(DUCKDB.text_literal(other) for other in others)
    sql = f"{first.sql} UNION ALL SELECT unnest([{shown}]), TRUE" if others else first.sql
    return Pieces(sql, len(known) + len(others), bool(others))


_LEAST = "\x01"
"""Nearly no text is between one and that one with this behind it."""


def _of(type_: SqlType, numbers: Sequence[str], grid: Fraction, count: int, facts: Facts) -> Pieces:
    """Return the pieces of whole numbers of a grid, each given as a function that makes a table of them."""
    if count > _MOST:
        raise NotTold
    if type_.kind is Kind.DATE:
        shown = "DATE '1970-01-01' + CAST(n AS INTEGER)"
    elif type_.kind is Kind.TIMESTAMP:
        shown = "make_timestamp(CAST(n AS BIGINT))"
    elif type_.is_integer:
        shown = f"CAST(n AS {type_.kind.value.upper()})"
    else:
        scale = decimal_scale(grid)
        assert scale is not None
        unit = "0." + "1".rjust(scale, "0") if scale else "1"
        whole, kind = f"CAST(n AS DECIMAL(38, 0)) * {(grid * 10**scale).numerator}", f"DECIMAL(38, {scale})"
        shown = f"CAST({whole} * CAST({unit} AS {kind}) AS {kind})"
    parts = [f"SELECT {shown} AS v, FALSE AS o FROM {table} AS t(n)" for table in numbers]
    if facts.nullable:
        parts.append("SELECT NULL, FALSE")
    return Pieces(" UNION ALL ".join(parts), count + 1)


def _table(numbers: Iterable[int]) -> str:
    return f"unnest([{', '.join(map(str, numbers))}]::BIGINT[])"


def _moments(column: Field, facts: Facts, grain: Grain) -> Pieces:
    """Return the first and last moment of each unit, and those about each cut."""
    is_date = column.type.kind is Kind.DATE
    scale, (first, last) = DAY if is_date else 1, calendar_ends(column.type)
    year = 366 if is_date else 366 * DAY
    lo = first + year if facts.lo is None else int(facts.lo)
    hi = last - year if facts.hi is None else int(facts.hi)
    if lo > hi:
        return listed(column.type, [None] if facts.nullable else [])
    if is_date and hi - lo < FEW:
        return _of(column.type, [f"range({lo}, {hi + 1})"], Fraction(1), hi - lo + 1, facts)
    single = {lo, hi, *(math.floor(cut) + more for cut in grain.cuts for more in (-1, 0, 1))}
    tables, count = [], 0
    fixed = next((unit for unit in ("second", "minute", "hour", "day") if unit in grain.units), None)
    widths = [(Fraction(0), Fraction(SECONDS[fixed] * 10**6, scale))] if fixed else []
    for start, width in (*widths, *grain.steps):
        if width.denominator != 1 or start.denominator != 1:
            raise NotTold
        w, begin = int(width), lo - (lo - int(start)) % int(width)
        count += 2 * ((hi - begin) // w + 1)
        for shift in (0, -1):
            one = f"range({begin} + {shift}, {hi} + 1, {w})"
            tables.append(f"(SELECT n FROM {one} AS r(n) WHERE n BETWEEN {lo} AND {hi})")
    for unit in grain.units - {fixed} if fixed is None else ():
        starts = step_units(unit, lo * scale, hi * scale, FEW)
        if starts is None:
            raise NotTold
        single.update(begin // scale - less for begin in starts for less in (0, 1))
    inside = sorted(moment for moment in single if lo <= moment <= hi)
    return _of(column.type, [_table(inside), *tables], Fraction(1), count + len(inside), facts)


def _exact(column: Field, facts: Facts, grain: Grain) -> Pieces:
    """Return the numbers about each cut and each step, in units of the grid, and some between."""
    grid = facts.grid
    assert grid is not None
    least, most = TYPE_RANGE.get(column.type.kind, (-(Fraction(10) ** 18), Fraction(10) ** 18))
    lo, hi = (math.ceil((facts.lo if facts.lo is not None else least) / grid),
              math.floor((facts.hi if facts.hi is not None else most) / grid))  # fmt: skip
    cuts = sorted({cut / grid for cut in _all_cuts(grain, lo * grid, hi * grid)})
    found = {lo, hi, *(math.floor(cut) + more for cut in cuts for more in (-1, 0, 1))}
    found |= {
        math.floor((a + b) / 2) for a, b in zip([Fraction(lo), *cuts], [*cuts, Fraction(hi)], strict=True)
    }
    numbers = sorted(number for number in found if lo <= number <= hi)
    if numbers and not -(2**63) <= numbers[0] <= numbers[-1] < 2**63:
        raise NotTold
    return _of(column.type, [_table(numbers)], grid, len(numbers), facts)


def _all_cuts(grain: Grain, lo: Fraction, hi: Fraction) -> set[Fraction]:
    """Return the cuts between two ends, those where steps begin among them. Raises NotTold: too many."""
    found = {cut for cut in grain.cuts if lo <= cut <= hi}
    for start, width in grain.steps:
        first, last = math.ceil((lo - start) / width), math.floor((hi - start) / width)
        if last - first > FEW:
            raise NotTold
        found.update(start + number * width for number in range(first, last + 1))
    return found


def _reals(column: Field, facts: Facts, grain: Grain) -> Pieces:
    """Return the doubles about each cut and each step, one between, and NaN, which is NULL or above all of them."""
    lo = float(-_FAR if facts.lo is None else facts.lo)
    hi = float(_FAR if facts.hi is None else facts.hi)
    cuts = sorted(float(cut) for cut in _all_cuts(grain, Fraction(lo), Fraction(hi)))
    found = {lo, hi}
    for cut in cuts:
        for towards in (-math.inf, math.inf):
            near = cut
            for _ in range(2):  # a cut that is computed may be rounded
                found.add(near)
                near = math.nextafter(near, towards)
            found.add(near)
    found |= {a / 2 + b / 2 for a, b in zip([lo, *cuts], [*cuts, hi], strict=True)}
    shown = [f"'{number!r}'" for number in sorted(found) if lo <= number <= hi]
    shown += ["'NaN'"] if facts.nullable else []
    shown += ["NULL"] if facts.nullable else []
    kind = "FLOAT" if column.type.kind is Kind.REAL else "DOUBLE"
    none = "" if shown else " LIMIT 0"
    return Pieces(
        f"SELECT CAST(unnest([{', '.join(shown) or 'NULL'}]) AS {kind}) AS v, FALSE AS o{none}", len(shown)
    )
