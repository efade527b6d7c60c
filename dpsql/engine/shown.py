"""Answers, receipts and explanations as a notebook shows them: short text, and HTML with each number's bar.

House rules:

1. Only what was released is shown: rows, their bars, the receipt. Nothing is asked anew and nothing is charged.
2. Whatever stands in a row is content of the data: it is escaped, on a terminal as in HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..relation.types import SqlType
from ..value_text import plain_text, terminal_text
from ..words import plural
from .barred import Cells

if TYPE_CHECKING:
    from .answer import Answer, Receipt

__all__ = ["answer_html", "answer_text", "receipt_html", "receipt_text", "table_html"]

_MOST_ROWS = 60
"""Rows that are shown: the others are in `rows`."""
_LONGEST_CELL = 200
_NUMBER, _TEXT = "text-align: right; white-space: pre", "text-align: left"


def receipt_text(receipt: Receipt) -> str:
    """Return what an answer cost and what is left, with a line for each note."""
    return "\n".join([receipt.said, *(f"NOTE: {terminal_text(note)}" for note in receipt.notes)])


def receipt_html(receipt: Receipt) -> str:
    """Return the same as HTML."""
    notes = "".join(f"<br>NOTE: {escape(terminal_text(note))}" for note in receipt.notes)
    return f"<p><small>{escape(receipt.said)}{notes}</small></p>"


def answer_text(answer: Answer) -> str:
    """Return an answer as a table, each number with its bar, and the receipt's line below it."""
    if not answer.columns:
        return answer.command
    return "\n".join([*Cells.barred(answer, _cell, _MOST_ROWS).lines(), *_below(answer)])


def answer_html(answer: Answer) -> str:
    """Return the same as HTML."""
    if not answer.columns:
        return f"<p>{escape(answer.command)}</p>"
    cells = Cells.barred(answer, _cell, _MOST_ROWS)
    below = "".join(f"<br>{escape(one)}" for one in _more(answer))
    receipt = "" if answer.receipt is None else receipt_html(answer.receipt)
    return table_html(cells.names, cells.rows, cells.types) + below + receipt


def table_html(
    names: Sequence[str], rows: Sequence[Sequence[str]], types: Sequence[SqlType | None] = ()
) -> str:
    """Return a table; a column whose type is a number's is aligned as such."""
    styles = [_NUMBER if type_ is not None and type_.is_number else _TEXT for type_ in types]
    styles += [_TEXT] * (len(names) - len(styles))

    def line(tag: str, cells: Sequence[str]) -> str:
        parts = (
            f'<{tag} style="{style}">{escape(cell)}</{tag}>'
            for style, cell in zip(styles, cells, strict=True)
        )
        return f"<tr>{''.join(parts)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', names)}</thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    text = "NULL" if value is None else terminal_text(plain_text(value))
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def _below(answer: Answer) -> Iterator[str]:
    count = len(answer.rows)
    yield f"({count} {plural(count, 'row')})"
    yield from _more(answer)
    if answer.receipt is not None:
        yield receipt_text(answer.receipt)


def _more(answer: Answer) -> list[str]:
    hidden = len(answer.rows) - _MOST_ROWS
    return [f"{hidden:,} more {plural(hidden, 'row')} in the answer"] if hidden > 0 else []
