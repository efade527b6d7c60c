"""Rows that a client sends: INSERT … VALUES of constants and parameters alone, read without a parser.

`INSERT INTO t (a, b) VALUES (1, 'x'), ($1, NULL)`: thousands of rows in one statement are what tools send, far more
than a statement's tree may hold. Each value is read as its column's type, as Postgres reads a constant of no type.

House rule: what is not one of these forms, to its last character, is no such statement, and is read as any other.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..errors import Refusal
from ..records import dataclass
from ..relation.expressions import Expr, Literal
from ..relation.types import BOOLEAN, NULL, TEXT, Kind, SqlType
from .constants import cast_literal, coerce_literal, exact_value
from .literals import Awaited, number_literal, parameter_literal
from .text import is_text, place, split_statements, unquoted

__all__ = ["SentRows", "count_sent", "read_sent_rows", "value_of", "values_of"]

_NAME = r'(?:[A-Za-z_][\w$]*|"(?:[^"]|"")+")'
_INSERT = re.compile(r"(?:\s|--[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)*+insert\b", re.IGNORECASE)
_HEAD = re.compile(
    rf"\s*insert\s+into\s+({_NAME}(?:\s*\.\s*{_NAME}){{0,2}})\s*(?:\(([^()']*)\)\s*)?values\b\s*",
    re.IGNORECASE,
)
_PART = re.compile(r'[A-Za-z_][\w$]*|"(?:[^"]|"")+"')
_LIST = re.compile(rf"\s*{_NAME}\s*(?:,\s*{_NAME}\s*)*")
_CELL = re.compile(
    r"""\s*+(?:
      (?:(?:date|timestamp)\s*+)?(?P<text>'(?:[^']|'')*+')
    | e(?P<escaped>'(?:[^'\\]|''|\\[\\'ntr])*+')
    | (?P<number>[+-]?\s*+(?:\d+\.?\d*+|\.\d++)(?:e[+-]?\d++)?)(?![\w$])
    | \$(?P<parameter>\d{1,5})
    | (?P<word>null|true|false|default)\b
    )\s*+(?:::\s*+(?:[a-z]\w*+(?:\s++(?:precision|varying|without\s+time\s+zone))?(?:\s*+\([\d\s,]*+\))?)\s*+)?
    (?P<end>[,)])""",
    re.VERBOSE | re.IGNORECASE,
)
_OPEN = re.compile(r"\s*\(")
_NEXT = re.compile(r"\s*,\s*\(")
_END = re.compile(r"\s*;?\s*")
_ESCAPED = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

Cell = tuple[str, str, int]
"""Kind, text, and where it stands."""


@dataclass(frozen=True, slots=True)
class SentRows:
    """The name parts of a table, the names of columns (none: all), and the rows as they are written."""

    text: str
    table: tuple[str, ...]
    start: int
    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def width(self) -> int:
        """How many values each row has."""
        return len(self.rows[0])


def read_sent_rows(text: str) -> SentRows | None:
    """Return what an INSERT of constants says; None for any other text. Raises Refusal (42601): rows differ."""
    if not _INSERT.match(text) or not is_text(text):
        return None
    pieces = split_statements(text)
    if len(pieces) != 1:
        return None
    bare = " " * pieces[0].start + pieces[0].bare
    head = _HEAD.match(bare)
    if head is None or (head[2] is not None and not _LIST.fullmatch(head[2])):
        return None
    rows = _rows(bare, head.end())
    if rows is None:
        return None
    if len(set(map(len, rows))) != 1:
        raise Refusal(
            "the rows of VALUES differ in length", sqlstate="42601", position=place(text, head.end()),
            hint="give every row as many values",
        )  # fmt: skip
    names = () if head[2] is None else tuple(map(unquoted, _PART.findall(head[2])))
    table = tuple(map(unquoted, _PART.findall(head[1])))
    return SentRows(text, table, head.start(1), names, rows)


def _rows(bare: str, at: int) -> tuple[tuple[Cell, ...], ...] | None:
    """Return the rows that the rest of a text is; None where it is anything else."""
    rows: list[tuple[Cell, ...]] = []
    opened = _OPEN.match(bare, at)
    while opened is not None:
        at, row, end = opened.end(), list[Cell](), ","
        while end == ",":
            cell = _CELL.match(bare, at)
            if cell is None:
                return None
            kind = str(cell.lastgroup if cell.lastgroup != "end" else _kind(cell))
            row.append((kind, cell[kind], cell.start(kind)))
            at, end = cell.end(), cell["end"]
        rows.append(tuple(row))
        opened = _NEXT.match(bare, at)
    return tuple(rows) if rows and _END.fullmatch(bare, at) else None


def _kind(cell: re.Match[str]) -> str:
    return next(kind for kind in ("text", "escaped", "number", "parameter", "word") if cell[kind] is not None)


def count_sent(rows: SentRows) -> int:
    """Return the largest n of the $n."""
    return max((int(text) for row in rows.rows for kind, text, _ in row if kind == "parameter"), default=0)


def values_of(
    sent: SentRows, types: Sequence[SqlType], parameters: Sequence[object]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as Python's values of some types.

    Raises Refusal: 22023 for what is no value of its type, 42P02 for a parameter that is not given.
    """
    for row in sent.rows:
        yield tuple(
            _value(sent.text, cell, type_, parameters) for cell, type_ in zip(row, types, strict=True)
        )


def _value(text: str, cell: Cell, type_: SqlType, parameters: Sequence[object]) -> Any:
    kind, written, start = cell
    if kind == "word" and written.lower() in ("null", "default"):
        return None
    try:
        if kind == "parameter":
            number = int(written)
            if not 1 <= number <= len(parameters):
                raise Refusal(
                    f"there is no parameter ${number}", sqlstate="42P02", hint="pass a value for each"
                )
            given = parameters[number - 1]
            at = place(text, start) if isinstance(given, Awaited) else None
            literal: Expr = parameter_literal(given, number, at)
        else:
            literal = _literal(kind, written)
        return python_value(_as_type(literal, type_), type_)
    except Refusal as refusal:
        refusal.position = place(text, start)
        raise


def value_of(given: object, type_: SqlType) -> Any:
    """Return what stands in a copy as a value of a type: a text as Postgres reads it. Raises Refusal: it is none."""
    if isinstance(given, float) and not math.isfinite(given):
        raise Refusal(f"{given} is not kept in a table", sqlstate="22023", hint="send NULL for it")
    literal = Literal(TEXT, given) if isinstance(given, str) else parameter_literal(given, 1, None)
    return python_value(_as_type(literal, type_), type_)


def _literal(kind: str, written: str) -> Expr:
    if kind == "number":
        bare = "".join(written.split())
        found = number_literal(bare.lstrip("+-"), None)
        number = exact_value(found)
        if not bare.startswith("-") or number is None:
            return found
        return Literal(found.type, -number)
    if kind == "word":
        return Literal(BOOLEAN, written.lower() == "true")
    if kind == "escaped":
        return Literal(TEXT, _ESCAPED.sub(lambda m: _ESCAPES.get(m[1], m[1]) if m[1] else "'", written[1:-1]))
    return Literal(TEXT, written[1:-1].replace("''", "'"))


def _as_type(literal: Expr, type_: SqlType) -> Expr:
    """Return a constant as a value of a type. Raises Refusal."""
    if literal.type.kind is Kind.TEXT and (type_.is_json or type_.kind in (Kind.TEXT, Kind.NULL)):
        return literal
    read = coerce_literal(literal, type_)
    if read.type == type_:
        return read
    found = cast_literal(literal, type_)
    if found is None or found.type != type_:
        raise Refusal(
            f"this is no value of type {type_}", sqlstate="42804", hint="send it as the column's type has it"
        )
    return found


_DAY_ONE = datetime.date(1970, 1, 1)
_EPOCH = datetime.datetime(1970, 1, 1)


def python_value(literal: Expr, type_: SqlType) -> Any:
    """Return a constant's value as an answer would hold it."""
    value = literal.constant
    if value is None or literal.type.kind is NULL.kind:
        return None
    change = _PYTHON.get(type_.kind)
    return value if change is None else change(value)


def _decimal(value: int | Fraction) -> Decimal:
    exact = Fraction(value)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


_PYTHON: dict[Kind, Callable[[Any], Any]] = {
    Kind.DATE: lambda days: _DAY_ONE + datetime.timedelta(days=days),
    Kind.TIMESTAMP: lambda moment: _EPOCH + datetime.timedelta(microseconds=moment),
    Kind.NUMERIC: _decimal,
    **dict.fromkeys((Kind.REAL, Kind.DOUBLE), float),
    **dict.fromkeys((Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT), int),
}
"""Kind of a type -> what makes Python's value of a constant of it."""
