"""The prompt's own commands, as psql names them: what each is called, what it takes, and what it means."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from . import terminal
from .meant import nearest
from .text_cells import display_width, terminal_text

if TYPE_CHECKING:
    from ..engine.session import Session

__all__ = ["COMMANDS", "Command", "describe_table", "help_lines", "list_tables", "read_command"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name without the backslash, what it takes, and what it means."""

    name: str
    takes: str
    meaning: str


COMMANDS = (
    Command(
        "d", "[TABLE]", "the tables that may be asked; or a table's columns, and what may be asked of each"
    ),
    Command("e", "", "edit the last statement in $EDITOR, and run it"),
    Command("format", "[NAME]", "answers as table, chart, csv, json or markdown"),
    Command("q", "", "leave; so does Ctrl-D"),
    Command("timing", "", "how long each statement takes, on or off"),
    Command(
        "watch", "[SECONDS]", "the last statement again and again, until Ctrl-C: free, since it is stored"
    ),
    Command("x", "", "a line for each value in place of a column, on or off"),
    Command("?", "[CODE]", "this list; or what an error's code means, why, and what helps"),
)
_KEYS = (
    "Tab completes names and says what they mean. Ctrl-R searches the history; the arrow up finds what begins as "
    "the line does. Ctrl-C stops a statement, and tells what it has spent. All else: dpsql docs analyst."
)
_SAME = {"dt": "d", "d+": "d", "dt+": "d", "quit": "q", "h": "?", "help": "?"}


def read_command(text: str) -> tuple[str, str] | str:
    """Return a command's name and what it is given; what to tell instead where there is none of that name.

    >>> read_command("\\\\d+ student;")
    ('d', 'student')
    """
    words = text.strip().rstrip(";").split(maxsplit=1)
    name = words[0].removeprefix("\\") if words else ""
    name = _SAME.get(name, name)
    if name in {command.name for command in COMMANDS}:
        return name, words[1].strip() if len(words) > 1 else ""
    close = nearest(name, [command.name for command in COMMANDS], 0.5)
    return (
        f"there is no \\{terminal_text(name)}; "
        + (f"did you mean \\{close}? " if close else "")
        + "\\? lists them"
    )


def help_lines() -> Iterator[str]:
    """Yield what `\\?` tells."""
    for command in COMMANDS:
        head = f"  \\{command.name} {command.takes}".ljust(20)
        first, *others = wrap(command.meaning, max(terminal.width() - len(head) - 1, 20))
        yield head + first
        yield from (" " * len(head) + line for line in others)
    yield ""
    yield from (f"  {line}" for line in wrap(_KEYS, terminal.width() - 3))


def list_tables(session: Session) -> Iterator[str]:
    """Yield the tables that this analyst may ask, and whose rows they are."""
    from ..policy.describe import table_comment

    shown = session.catalog.shown
    yield from _listed(
        [(name, "", table_comment(table)) for name, table in shown.items()], ("table", "", "rows")
    )
    yield "\\d TABLE tells what may be asked of each column"


def describe_table(session: Session, name: str) -> Iterator[str]:
    """Yield a table's columns, their types and what may be asked of each; what may be meant where it is none."""
    from ..policy.describe import column_comment, table_comment

    shown = session.catalog.shown
    wanted = _unquoted(name)
    table = shown.get(wanted) or next(
        (one for key, one in shown.items() if key.lower() == wanted.lower()), None
    )
    if table is None:
        close = nearest(wanted, list(shown))
        yield f'there is no table "{terminal_text(wanted)}"' + (
            f"; did you mean {close}?" if close else "; \\d lists them"
        )
        return
    policy = session.policy
    rows = [
        (one.name, str(one.type), column_comment(table, one.name, policy.has_delta)) for one in table.named
    ]
    yield from _wrapped(f"{terminal_text(table.name)}: {table_comment(table)}", "  ")
    yield from _listed(rows, ("column", "type", "what may be asked"))


def _unquoted(name: str) -> str:
    try:
        return "".join(shlex.split(name)[:1])
    except ValueError:
        return name


def _listed(rows: list[tuple[str, str, str]], heads: tuple[str, str, str]) -> Iterator[str]:
    """Yield three columns, the last of them wrapped into what the terminal has left."""
    names, types = ([terminal_text(row[place]) for row in (heads, *rows)] for place in (0, 1))
    widths = [max(map(display_width, texts)) for texts in (names, types)]
    middle = f" | {'':{widths[1]}} | " if widths[1] else " | "
    for number, (name, kind) in enumerate(zip(names, types, strict=True)):
        blank = name + " " * (widths[0] - display_width(name))
        head = f" {blank} | {kind:{widths[1]}} | " if widths[1] else f" {blank} | "
        told = heads[2] if number == 0 else rows[number - 1][2]
        room = max(terminal.width() - display_width(head), 20)
        lines = wrap(terminal_text(told), room) or [""]
        yield f"{head}{lines[0]}".rstrip()
        yield from (f" {' ' * widths[0]}{middle}{line}" for line in lines[1:])
        if number == 0:
            rule = "-" * (widths[0] + 2) + (f"+{'-' * (widths[1] + 2)}" if widths[1] else "")
            yield f"{rule}+".ljust(min(terminal.width(), 100), "-")


def _wrapped(text: str, indent: str) -> list[str]:
    return wrap(terminal_text(text), terminal.width(), subsequent_indent=indent)
