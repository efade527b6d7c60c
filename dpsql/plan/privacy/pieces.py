"""What a column can be before a row is seen: a list of values as SQL, one of each piece at least.

    >>> pieces(born, by months)
    the first and the last moment of every month between its bounds, and NULL

A column of few values has all of them. Of moments and of numbers that have many there are the ends of the pieces that
its grain tells apart: an expression that is constant on each is seen in all that it can be.

House rule: a column is what its declaration says, as the printed SQL clamps it there, and what WHERE leaves of it; one
that has none is what its type allows. Texts beside the declared ones are a value of their own (`others`), but where the
column itself is a key: what is not listed is no group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from ...records import dataclass
from ...relation.calendar import DAY, calendar_ends, step_units
from ...relation.expressions import Field, Literal, LiteralValue
from ...relation.facts import Facts, decimal_scale
from ...relation.intervals import TYPE_RANGE, Environment, facts_of
from ...relation.types import Kind, SqlType
from ..dialects.dialect import Dialect
from .grains import SECONDS, Grain, NotTold

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
    dialect: Dialect, *, is_key: bool,
) -> Pieces:  # fmt: skip
    """Return what a column can be in a row that passes the filter; `grain`: of one that has many values.

    `named`: the literals that the statement compares it with, `ends`: those of them by order. Raises NotTold.
    """
    facts, kind = facts_of(column, env), column.type.kind
    null = [None] if facts.nullable else []
    if kind is Kind.BOOLEAN:
        return listed(column.type, [False, True, *null], dialect)
    if kind is Kind.TEXT:
        return _texts(column, env, facts, named, ends, dialect, is_key=is_key)
    if facts.values is not None and not column.type.is_float:
        within = [v for v in facts.values if isinstance(v, (int, Fraction)) and _inside(v, facts)]
        return listed(column.type, [*within, *null], dialect)
    if grain is None:
        assert facts.grid is not None
        assert facts.lo is not None
        first, count = math.ceil(facts.lo / facts.grid), _size(facts, facts.grid)
        return _of(column.type, [f"range({first}, {first + count})"], facts.grid, count, facts, dialect)
    if column.type.is_temporal:
        return _moments(column, facts, grain, dialect)
    return (
        _reals(column, facts, grain, dialect)
        if column.type.is_float
        else _exact(column, facts, grain, dialect)
    )


def _inside(value: Fraction | int, facts: Facts) -> bool:
    return (facts.lo is None or facts.lo <= value) and (facts.hi is None or value <= facts.hi)


def listed(type_: SqlType, values: Sequence[LiteralValue], dialect: Dialect) -> Pieces:
    """Return the pieces of a list of values."""
    shown = ", ".join(dialect.literal(Literal(type_, value)) for value in values) or "NULL"
    none = "" if values else " LIMIT 0"
    return Pieces(f"SELECT unnest([{shown}]) AS v, FALSE AS o{none}", len(values))


def _texts(
    column: Field, env: Environment, facts: Facts, named: Sequence[LiteralValue], ends: Iterable[LiteralValue],
    dialect: Dialect, *, is_key: bool,
) -> Pieces:  # fmt: skip
    declared = env.columns[column.index].values
    values = [value for value in facts.values or () if isinstance(value, str)]
    null: list[str | None] = [None] if facts.nullable else []
    if facts.values is not None and (declared is None or is_key):
        return listed(column.type, [*values, *null], dialect)
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
    first = listed(column.type, list(known), dialect)
    shown = ", ".join(dialect.text_literal(other) for other in others)
    sql = f"{first.sql} UNION ALL SELECT unnest([{shown}]), TRUE" if others else first.sql
    return Pieces(sql, len(known) + len(others), bool(others))


_LEAST = "\x01"
"""Nearly no text is between one and that one with this behind it."""


def _of(
    type_: SqlType, numbers: Sequence[str], grid: Fraction, count: int, facts: Facts, dialect: Dialect
) -> Pieces:
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


def _moments(column: Field, facts: Facts, grain: Grain, dialect: Dialect) -> Pieces:
    """Return the first and last moment of each unit, and those about each cut."""
    is_date = column.type.kind is Kind.DATE
    scale, (first, last) = DAY if is_date else 1, calendar_ends(column.type)
    year = 366 if is_date else 366 * DAY
    lo = first + year if facts.lo is None else int(facts.lo)
    hi = last - year if facts.hi is None else int(facts.hi)
    if lo > hi:
        return listed(column.type, [None] if facts.nullable else [], dialect)
    if is_date and hi - lo < FEW:
        return _of(column.type, [f"range({lo}, {hi + 1})"], Fraction(1), hi - lo + 1, facts, dialect)
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
    return _of(column.type, [_table(inside), *tables], Fraction(1), count + len(inside), facts, dialect)


def _exact(column: Field, facts: Facts, grain: Grain, dialect: Dialect) -> Pieces:
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
    return _of(column.type, [_table(numbers)], grid, len(numbers), facts, dialect)


def _all_cuts(grain: Grain, lo: Fraction, hi: Fraction) -> set[Fraction]:
    """Return the cuts between two ends, those where steps begin among them. Raises NotTold: too many."""
    found = {cut for cut in grain.cuts if lo <= cut <= hi}
    for start, width in grain.steps:
        first, last = math.ceil((lo - start) / width), math.floor((hi - start) / width)
        if last - first > FEW:
            raise NotTold
        found.update(start + number * width for number in range(first, last + 1))
    return found


def _reals(column: Field, facts: Facts, grain: Grain, dialect: Dialect) -> Pieces:
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
