"""Reads bounds and lists off a CHECK constraint: the shapes that mean exactly one, everything else is ignored.

House rules:

1. A bound may be too wide, never too narrow: a plan may leave a clamp out because of it (law L9). So may a list.
2. A shape, an argument or a literal that is not listed here contributes nothing.

A conjunct that is false makes the whole AND false, whatever stands beside it, so each conjunct of a
top-level AND counts by itself. NULL passes every CHECK, and NaN may pass one that only has a lower
bound: the reader of a bound has to deal with both.
"""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ..records import dataclass
from ..regex import regex
from ..relation.calendar import parse_date
from ..relation.types import Kind, SqlType

_DIGITS = 18  # A literal and a NUMERIC of at most 18 digits each are compared exactly, as DECIMAL(38).
_PLAIN_NUMBER = regex(r"[0-9]+(\.[0-9]+)?")
_PLAIN_DAY = regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WHOLE_TYPES = {exp.DataType.Type.SMALLINT, exp.DataType.Type.INT, exp.DataType.Type.BIGINT}
_FLOAT_TYPES = {exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE}


@dataclass(frozen=True, slots=True)
class ValueRange:
    """An inclusive interval, None being no bound on that side; `listed`: those values alone, None being all of them."""

    lo: Fraction | None = None
    hi: Fraction | None = None
    listed: frozenset[Fraction | str] | None = None

    def intersect(self, other: ValueRange) -> ValueRange:
        """Return the values that lie in both."""
        los = [bound for bound in (self.lo, other.lo) if bound is not None]
        his = [bound for bound in (self.hi, other.hi) if bound is not None]
        lists = [listed for listed in (self.listed, other.listed) if listed is not None]
        listed = frozenset[Fraction | str].intersection(*lists) if lists else None
        return ValueRange(max(los, default=None), min(his, default=None), listed)


def read_bounds(expression: str, types: dict[str, SqlType], dialect: str) -> dict[str, ValueRange]:
    """Return what a CHECK expression bounds, by column name.

    Reads `x BETWEEN a AND b`, `x >= a`, `x > a`, `x <= b`, `x < b`, these turned round, `x IN (a, b)`, `x = a`, OR of
    these two, and AND of all, with number literals, bare or as Postgres shows them: `(0)::numeric`, `'-1'::integer`,
    and days, as their number from 1970 on; in lists texts too. Strict ones are read as inclusive. `types` are the
    table's columns by name, in lower case for DuckDB, which ignores case; other names are ignored. Never raises on a
    text that it cannot read.
    """
    try:
        tree = sqlglot.parse_one(expression, dialect=dialect)
    except (SqlglotError, RecursionError):
        return {}
    found: dict[str, ValueRange] = {}
    pending: list[exp.Expr | None] = [tree]
    while pending:
        node = _unwrap(pending.pop())
        if isinstance(node, exp.And):
            pending += [node.args.get("this"), node.args.get("expression")]
            continue
        for name, interval in _read_conjunct(node, types, dialect):
            found[name] = found.get(name, ValueRange()).intersect(interval)
    return found


def _read_conjunct(
    node: exp.Expr | None, types: dict[str, SqlType], dialect: str
) -> list[tuple[str, ValueRange]]:
    """Return the bounds that one conjunct means: none, one, the two of a BETWEEN, or a list."""
    match node:
        case exp.In() | exp.EQ() | exp.Or():
            found = _read_list(node, types, dialect)
            return [] if found is None else [(found[0], ValueRange(listed=found[1]))]
        case exp.Between() if not _extra(node, "this", "low", "high"):
            sides = [
                ("lo", node.args["this"], node.args["low"]),
                ("hi", node.args["this"], node.args["high"]),
            ]
        case exp.GTE() | exp.GT() if not _extra(node, "this", "expression"):
            sides = [("lo", node.this, node.expression), ("hi", node.expression, node.this)]
        case exp.LTE() | exp.LT() if not _extra(node, "this", "expression"):
            sides = [("hi", node.this, node.expression), ("lo", node.expression, node.this)]
        case _:
            return []
    bounds = []
    for side, column, literal in sides:
        name = _column_name(_unwrap(column), dialect)
        if name is None or name not in types:
            continue
        value = _literal(_unwrap(literal), types[name], side, dialect)
        if value is not None:
            bounds.append((name, ValueRange(lo=value) if side == "lo" else ValueRange(hi=value)))
    return bounds


def _read_list(
    node: exp.Expr | None, types: dict[str, SqlType], dialect: str
) -> tuple[str, frozenset[Fraction | str]] | None:
    """Return the column and the values of `x IN (…)`, `x = ANY (ARRAY[…])`, `x = a` or an OR of them; None: no list."""
    names, found = set[str](), set[Fraction | str]()
    pending = [node]
    while pending:
        match part := _unwrap(pending.pop()):
            case exp.Or() if not _extra(part, "this", "expression"):
                pending += [part.this, part.expression]
                continue
            case exp.In() if not _extra(part, "this", "expressions"):
                column, values = part.this, part.expressions
            case exp.EQ() if not _extra(part, "this", "expression"):
                column, values = part.this, _any_of(part.expression)
            case _:
                return None
        name = _column_name(_text_itself(_unwrap(column), dialect), dialect)
        if name is None or name not in types or not values:
            return None
        names.add(name)
        for value in values:
            read = _listed(_unwrap(value), types[name], dialect)
            if read is None:
                return None
            found.add(read)
    return (names.pop(), frozenset(found)) if len(names) == 1 else None


def _any_of(node: exp.Expr | None) -> list[exp.Expr]:
    """Return the values of `ANY (ARRAY[…])`, whose array Postgres may show cast to texts; a plain value alone."""
    node = _unwrap(node)
    if not isinstance(node, exp.Any):
        return [] if node is None else [node]
    inner = _unwrap(node.this)
    if (
        isinstance(inner, exp.Cast)
        and not _extra(inner, "this", "to")
        and inner.to.sql("postgres") == "TEXT[]"
    ):
        inner = _unwrap(inner.this)
    known = isinstance(inner, exp.Array) and not _extra(inner, "expressions", "bracket_notation")
    return inner.expressions if known and isinstance(inner, exp.Array) else []


def _text_itself(node: exp.Expr | None, dialect: str) -> exp.Expr | None:
    """Return what is cast to a text without a length, as Postgres shows a `varchar` that is compared."""
    texts = {"TEXT", "VARCHAR"}
    while (
        dialect == "postgres" and isinstance(node, exp.Cast) and not _extra(node, "this", "to")
        and node.to.sql("postgres") in texts
    ):  # fmt: skip
        node = _unwrap(node.this)
    return node


def _listed(node: exp.Expr | None, column: SqlType, dialect: str) -> Fraction | str | None:
    """Return a literal that is compared for being equal, exactly; None where it is not known to be."""
    if column.kind is not Kind.TEXT:
        return None if column.is_float else _literal(node, column, "lo", dialect)
    node = _text_itself(node, dialect)
    is_text = isinstance(node, exp.Literal) and node.is_string and not _extra(node, "this", "is_string")
    return str(node.this) if is_text and node is not None else None


def _unwrap(node: exp.Expr | None) -> exp.Expr | None:
    while isinstance(node, exp.Paren) and not _extra(node, "this"):
        node = node.args.get("this")
    return node


def _extra(node: exp.Expr, *known: str) -> list[str]:
    """Return the arguments that are set and that the caller does not know (the dialect keeps some there)."""
    return [name for name, value in node.args.items() if name not in known and value not in (None, False, [])]


def _column_name(node: exp.Expr | None, dialect: str) -> str | None:
    if not isinstance(node, exp.Column) or _extra(node, "this"):
        return None
    name = node.this
    if not isinstance(name, exp.Identifier):
        return None
    shown: str = name.this
    return shown.lower() if dialect == "duckdb" else shown


def _literal(node: exp.Expr | None, column: SqlType, side: str, dialect: str) -> Fraction | None:
    """Return a literal as the engine compares it with the column, widened outward for floats; a day as its number."""
    if column.kind is Kind.DATE:
        return _day(node, dialect)
    text = _number_text(node, column, dialect)
    if text is None or len(re.sub("[-.]", "", text)) > _DIGITS:
        return None
    value = Fraction(text)
    if column.is_integer:
        return value if "." not in text else None
    if column.kind is Kind.NUMERIC:
        # Postgres compares numbers of any size exactly.
        is_exact = dialect == "postgres" or (column.precision is not None and column.precision <= _DIGITS)
        return value if is_exact else None
    if column.is_float:
        readings = _float_readings(value)
        return min(readings) if side == "lo" else max(readings)
    return None


def _day(node: exp.Expr | None, dialect: str) -> Fraction | None:
    """Return the number of a day that is written as every engine reads it: a text cast to a date; bare in DuckDB."""
    if isinstance(node, exp.Cast) and not _extra(node, "this", "to") and node.to.sql("postgres") == "DATE":
        node = _unwrap(node.this)
    elif dialect != "duckdb":
        return None
    if not isinstance(node, exp.Literal) or not node.is_string or not _PLAIN_DAY.fullmatch(node.this):
        return None
    day = parse_date(node.this)
    return None if day is None else Fraction(day)


def _float_readings(value: Fraction) -> list[Fraction]:
    """Return what a literal may be to an engine that rounds it: 0.3 as a double lies below three tenths."""
    double = float(value)
    single = np.float32(double)
    near = [single, np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))]
    singles = [Fraction(float(number)) for number in near if np.isfinite(number)]
    # By way of a double it may be rounded twice, and then not to the nearest.
    nearest = min(singles, key=lambda reading: abs(reading - value))
    return [value, Fraction(double), singles[0], nearest]


def _number_text(node: exp.Expr | None, column: SqlType, dialect: str) -> str | None:
    """Return the decimal text of a plain number, of its negation, and in Postgres of a cast that keeps its value."""
    sign, is_string = "", False
    if isinstance(node, exp.Neg) and not _extra(node, "this"):
        sign, node = "-", _unwrap(node.this)
    if dialect == "postgres" and isinstance(node, exp.Cast):
        node, is_string = _inside_cast(node, column), True
    if not isinstance(node, exp.Literal) or (node.is_string and not is_string):
        return None
    text: str = node.this
    if is_string and not sign and text.startswith("-"):
        sign, text = "-", text[1:]
    return sign + text if _PLAIN_NUMBER.fullmatch(text) else None


def _inside_cast(node: exp.Expr | None, column: SqlType) -> exp.Expr | None:
    """Return the literal inside casts to types that hold it exactly, or as the column itself would."""
    targets = []
    while isinstance(node, exp.Cast):
        target = node.args.get("to")
        if _extra(node, "this", "to") or not isinstance(target, exp.DataType) or _extra(target, "this"):
            return None
        targets.append(target.this)
        node = _unwrap(node.this)
    is_whole = isinstance(node, exp.Literal) and "." not in node.this
    known = {exp.DataType.Type.DECIMAL}
    known |= _WHOLE_TYPES if is_whole else set()
    known |= _FLOAT_TYPES if column.is_float else set()
    return node if known.issuperset(targets) else None
