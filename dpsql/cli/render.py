"""An answer as text: a table for people, CSV, JSON lines, Markdown, a chart."""

from __future__ import annotations

import datetime
import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from ..relation.types import Kind, SqlType
from . import terminal
from .text_cells import decimal_text, display_width, float_text, plain_text, terminal_text

if TYPE_CHECKING:
    from ..engine import Answer, Receipt

__all__ = ["FORMATS", "View", "receipt_line", "render", "show"]

FORMATS = ("table", "csv", "json", "markdown", "chart")

_NOTE_WIDTH = 96

_LEFT_ALIGNED = frozenset(
    {
        Kind.TEXT,
        Kind.BOOLEAN,
        Kind.OPAQUE,
        Kind.DATE,
        Kind.TIMESTAMP,
        Kind.INTERVAL,
        Kind.ARRAY,
        Kind.NULL,
        Kind.JSON,
        Kind.JSONB,
    }
)


@dataclass(slots=True)
class View:
    """How answers are shown: in which of `FORMATS`, a table with a line for each value, long ones in a pager."""

    format_name: str
    is_expanded: bool = False
    is_paged: bool = False


def show(text: str, view: View) -> None:
    """Print what is to be seen; what is longer or wider than the terminal goes through a pager, where there is one."""
    lines = text.split("\n")
    size = shutil.get_terminal_size()
    is_large = len(lines) >= size.lines - 1 or max(map(display_width, lines)) > size.columns
    if view.is_paged and is_large and terminal.is_read_by_people():
        os.environ.setdefault(
            "LESS", "FRSX"
        )  # as psql's and git's: lines are cut, colours stay, one screen ends it
        click.echo_via_pager(f"{text}\n", color=True)
    else:
        click.echo(text)


def render(answer: Answer, format_name: str, *, for_people: bool = False, is_expanded: bool = False) -> str:
    """Return the whole answer as text without a last newline; `format_name` is one of `FORMATS`.

    `for_people`: a table tells bars beside their numbers, as at a terminal, in place of exact columns.
    `is_expanded`: it has a line for each value.
    """
    if format_name == "chart":
        from .chart import chart_lines, pictures

        if drawn := pictures(answer):
            return "\n\n".join("\n".join(chart_lines(one)) for one in drawn)
    if for_people and format_name in ("table", "chart") and answer.columns:
        return "\n".join(_people_lines(answer, is_expanded=is_expanded))
    names = [column.name for column in answer.columns]
    types = [column.type for column in answer.columns]
    if format_name == "json":
        return _json(answer, names, types)
    if format_name == "csv":
        return "\n".join(_csv_lines(names, answer.rows))
    cells = [[_cell(value) for value in row] for row in answer.rows]
    heads = [terminal_text(name) for name in names]
    if format_name == "markdown":
        return "\n".join(_markdown_lines(heads, types, cells))
    if not names:
        return answer.command
    return "\n".join(_table_lines(heads, types, cells))


def _people_lines(answer: Answer, *, is_expanded: bool) -> Iterator[str]:
    """Return the lines of a table with a column for each number and its bar."""
    from ..engine.barred import aligned, barred_cell, columns_of  # the engine takes long to load

    shown = columns_of(answer)
    columns = []
    for one in shown:
        plain = [_cell(value) for value in one.values]
        if one.lows is None or one.highs is None or not one.has_bars:
            columns.append(plain)
        else:
            whole = zip(one.values, one.lows, one.highs, plain, strict=True)
            columns.append(list(aligned([barred_cell(*parts) for parts in whole])))
    names, types = [terminal_text(one.name) for one in shown], [one.type for one in shown]
    rows = list(zip(*columns, strict=True))
    return _expanded_lines(names, rows) if is_expanded else _table_lines(names, types, rows)


def _expanded_lines(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each value, below a line for each row."""
    most = max(map(display_width, names))
    for number, row in enumerate(rows, 1):
        yield f"-[ row {number} ]".ljust(most + 2, "-") + "-" * 20
        for name, cell in zip(names, row, strict=True):
            yield f"{name}{' ' * (most - display_width(name))} | {cell.strip()}"
    yield f"({len(rows)} row{'' if len(rows) == 1 else 's'})"


def more_like_this(receipt: Receipt, usual: Fraction) -> str:
    """Return how many more questions fit: of the same price, or of the usual one where this was free.

    Nothing where what is left is told in statements anyway, as under zCDP.
    """
    if receipt.left_words is not None:
        return ""
    number = int(receipt.left / (receipt.epsilon or usual))
    return f"about {number:,} more {'like this' if receipt.epsilon else f'at {decimal_text(usual)}'}"


def receipt_line(receipt: Receipt, usual: Fraction | None = None) -> str:
    """Return what the statement cost and what is left, as one line, notes below it.

    `usual`: what a statement may spend; with it what is left is told in questions too.
    """
    first = receipt.said
    more = "" if usual is None else more_like_this(receipt, usual)
    first += f", {more}" if more else ""
    room = _NOTE_WIDTH if usual is None else min(_NOTE_WIDTH, terminal.width())
    notes = [wrap(f"NOTE: {terminal_text(note)}", room, subsequent_indent="  ") for note in receipt.notes]
    return "\n".join([first, *chain.from_iterable(notes)])


def _cell(value: object) -> str:
    """Return a value for people; a double with the 15 digits that are sure to mean something."""
    if isinstance(value, list):
        return "{" + ",".join(map(_cell, value)) + "}"
    if isinstance(value, float) and math.isfinite(value):
        value = float(f"{value:.15g}")
    return "NULL" if value is None else terminal_text(plain_text(value))


def _table_lines(
    heads: Sequence[str], types: Sequence[SqlType], cells: Sequence[Sequence[str]]
) -> Iterator[str]:
    widths = [max(map(display_width, column)) for column in zip(heads, *cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        parts = []
        for text, width, kind in zip(row, widths, types, strict=True):
            blank = " " * (width - display_width(text))
            parts.append(text + blank if kind.kind in _LEFT_ALIGNED else blank + text)
        return " " + " | ".join(parts).rstrip()

    head = line(heads)
    rule = "-" + "-+-".join("-" * width for width in widths) + "-"
    yield head
    yield rule[: max(shutil.get_terminal_size().columns, display_width(head))]
    yield from map(line, cells)
    yield f"({len(cells)} row{'' if len(cells) == 1 else 's'})"


def _markdown_lines(
    heads: Sequence[str], types: Sequence[SqlType], cells: Sequence[Sequence[str]]
) -> Iterator[str]:
    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("\\", "\\\\").replace("|", "\\|") for text in row) + " |"

    yield line(heads)
    yield "|" + "|".join(" --- " if kind.kind in _LEFT_ALIGNED else " ---: " for kind in types) + "|"
    yield from map(line, cells)


def _csv_lines(names: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """RFC 4180 with Postgres' NULL: an empty cell is NULL, a quoted empty cell is the empty text."""

    def cell(value: object) -> str:
        text = plain_text(value)
        if value is not None and (not text or any(c in text for c in ',"\r\n')):
            return '"' + text.replace('"', '""') + '"'
        return text

    yield ",".join(map(cell, names))
    for row in rows:
        yield ",".join(map(cell, row))


def _json(answer: Answer, names: Sequence[str], types: Sequence[SqlType]) -> str:
    receipt = answer.receipt
    body = {
        "command": answer.command,
        "columns": [{"name": name, "type": str(kind)} for name, kind in zip(names, types, strict=True)],
        "rows": [[_json_value(value) for value in row] for row in answer.rows],
        "receipt": None
        if receipt is None
        else {
            "epsilon": float(receipt.epsilon),
            "delta": float(receipt.delta),
            "left": float(receipt.left),
            **({} if receipt.rho is None else {"rho": receipt.rho / 10**18}),
            "reused": receipt.reused,
            "notes": list(receipt.notes),
        },
    }
    return json.dumps(body, allow_nan=False)


def _json_value(value: object) -> object:
    """Return a JSON value: numbers stay numbers (a numeric is a double inside), the rest is text.

    JSON has no infinity and no NaN: these are text too.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return float_text(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, list):
        return [_json_value(one) for one in value]
    return plain_text(value)
