"""What standard output is: a terminal that a person reads, how wide, with colour, with which characters."""

from __future__ import annotations

import os
import shutil
import sys

import click

__all__ = ["can_write", "is_read_by_people", "styled", "width"]


def is_read_by_people() -> bool:
    """Return whether answers go to a terminal."""
    return sys.stdout.isatty()


def width() -> int:
    """Return how many characters a line has room for: 80 where nobody says."""
    return max(shutil.get_terminal_size().columns, 20)


def can_write(text: str) -> bool:
    """Return whether standard output has these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def styled(text: str, *, colour: str | None = None, bold: bool = False, dim: bool = False) -> str:
    """Return the text in a colour where the terminal has it: none with NO_COLOR, or where it is no terminal."""
    if not is_read_by_people() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return click.style(text, fg=colour, bold=bold or None, dim=dim or None)
