"""The terminal: what standard output is, streams that are closed, cells of text; and the options of the command line.

House rule: no file of ours takes the number of a closed stream. A ledger that were opened as standard error would have
messages written into it.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from ..records import dataclass
from ..words import terminal_text
from . import interrupts

if TYPE_CHECKING:
    from ..policy import Policy

# --- the global options -----------------------------------------------------------------------------------


_JSON = "dpsql.json"
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """The policy file to use and the label of the one who asks."""

    policy_path: Path
    analyst: str

    @classmethod
    def of(cls, policy_path: str, analyst: str) -> CommandSettings:
        return cls(Path(policy_path), analyst)

    def policy(self) -> Policy:
        """Return what the file says. Raises PolicyError."""
        from ..policy import load_policy

        return load_policy(self.policy_path)


pass_settings = click.make_pass_decorator(CommandSettings)


def json_option(command: _Command) -> _Command:
    """Add `--json`: results and errors as JSON. The command reads it through `wants_json`."""
    return click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_remember_json,
        is_eager=True,
        help="Results on standard output and errors on standard error as JSON, one object a line.",
    )(command)


def wants_json(ctx: click.Context | None = None) -> bool:
    """Return whether the running command was given `--json`."""
    ctx = ctx or click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(_JSON))


def say(body: object, lines: Iterable[str]) -> None:
    """Print what a command found: with `--json` one value for programs, else its lines for people."""
    click.echo(json.dumps(body) if wants_json() else "\n".join(map(terminal_text, lines)))


def is_agreed(question: str, without: str, *, is_sure: bool) -> bool:
    """Return whether something is to be done: whoever `is_sure` is not asked.

    Raises click.UsageError, `without`, where nobody sits at a terminal who could be.
    """
    if is_sure:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(without)
    with interrupts.unwinding():
        return click.confirm(terminal_text(question), err=True)


def _remember_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_JSON] = True


# --- the terminal -----------------------------------------------------------------------------------------


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


# --- the standard streams, where one is closed from the start -----------------------------------------------


def fill_closed() -> None:
    """Open what was closed from outside: nothing is read there, writing to standard output fails, messages are lost."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, _stream(number, "r" if name == "stdin" else "w"))


def _stream(number: int, mode: str) -> IO[str]:
    return open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)


def require_output() -> None:
    """Raise click.UsageError where standard output is closed: an answer would be charged, and lost."""
    try:
        flags = fcntl.fcntl(sys.stdout.fileno(), fcntl.F_GETFL)
    except (OSError, io.UnsupportedOperation):  # no file of the system's
        return
    if flags & os.O_ACCMODE == os.O_RDONLY:
        raise click.UsageError("Standard output is closed: nothing was asked.")


# --- cells of text on a terminal: released values, their width, and the privacy parameters beside them ------


def display_width(text: str) -> int:
    """Return how many terminal cells `terminal_text` output takes: two for a wide character."""
    if text.isascii():
        return len(text)
    from prompt_toolkit.utils import get_cwidth

    return get_cwidth(text)


def decimal_text(number: Fraction) -> str:
    """Return a privacy parameter in decimal: exact when it ends within 18 places, else cut there.

    Powers of ten below 1e-4 are shown as 1e-9, which is how people write a delta.
    """
    places = 18
    scaled = number.numerator * 10**places // number.denominator
    value = Decimal(scaled).scaleb(-places).normalize()
    if value and abs(value) < Decimal("1e-4"):
        return f"{value:e}"
    return format(value, "f")
