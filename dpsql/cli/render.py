"""An answer as text: a table for people, CSV, JSON lines, Markdown, a chart."""

from __future__ import annotations

import datetime
import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from ..records import dataclass
from ..words import csv_lines, float_text, plain_text, plural, terminal_text
from . import terminal
from .terminal import decimal_text, display_width

if TYPE_CHECKING:
    from ..engine import Answer, Receipt
    from ..engine.answer import Cells

FORMATS = ("table", "csv", "json", "markdown", "chart")

format_option = click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How answers are printed.",
)
"""How a command's answers are printed."""

_NOTE_WIDTH = 96


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
    from ..engine.answer import Cells  # the engine takes long to load, and is where there is an answer

    if format_name == "chart":
        from ..engine.answer import pictures
        from .chart import chart_lines

        if drawn := pictures(answer):
            return "\n\n".join("\n".join(chart_lines(one)) for one in drawn)
    if for_people and format_name in ("table", "chart") and answer.columns:
        cells = Cells.barred(answer, _cell)
        return "\n".join(_expanded_lines(cells) if is_expanded else _table_lines(cells))
    if format_name == "json":
        return _json(answer)
    if format_name == "csv":
        return "\n".join(csv_lines([column.name for column in answer.columns], answer.rows))
    cells = Cells.exact(answer, _cell)
    if format_name == "markdown":
        return "\n".join(_markdown_lines(cells))
    return "\n".join(_table_lines(cells)) if answer.columns else answer.command


def _expanded_lines(cells: Cells) -> Iterator[str]:
    """Yield a line for each value, below a line for each row."""
    most = max(map(display_width, cells.names))
    for number, row in enumerate(cells.rows, 1):
        yield f"-[ row {number} ]".ljust(most + 2, "-") + "-" * 20
        for name, cell in zip(cells.names, row, strict=True):
            yield f"{name}{' ' * (most - display_width(name))} | {cell.strip()}"
    yield f"({len(cells.rows)} {plural(len(cells.rows), 'row')})"


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


def _table_lines(cells: Cells) -> Iterator[str]:
    head, rule, *rows = cells.lines(display_width)
    yield head
    yield rule[: max(shutil.get_terminal_size().columns, display_width(head))]
    yield from rows
    yield f"({len(rows)} {plural(len(rows), 'row')})"


def _markdown_lines(cells: Cells) -> Iterator[str]:
    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("\\", "\\\\").replace("|", "\\|") for text in row) + " |"

    yield line(cells.names)
    yield "|" + "|".join(" ---: " if type_.is_number else " --- " for type_ in cells.types) + "|"
    yield from map(line, cells.rows)


def _json(answer: Answer) -> str:
    receipt = answer.receipt
    body = {
        "command": answer.command,
        "columns": [{"name": column.name, "type": str(column.type)} for column in answer.columns],
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
