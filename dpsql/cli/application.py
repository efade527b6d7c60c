"""The program `dpsql`: its global options, its commands, and how a failure leaves it.

The engine, DuckDB and psycopg are imported inside the commands that need them.
"""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper

import click

from ..errors import DpsqlError, EngineFailure, PolicyError
from . import interrupts
from .bounds import bounds
from .budget import budget
from .check import check
from .demo import demo
from .docs import docs, help_about
from .doctor import doctor
from .faults import Failure, install_bug_hook, leave_streams, tell
from .files import convert, refresh
from .init import init
from .local import local
from .page import page
from .prepare import prepare
from .query import explain, query
from .release import release
from .serve import serve
from .settings import CommandSettings
from .synthesize import synthesize
from .terminal import fill_closed
from .textbook import textbook
from .user import user
from .verify import audit, verify

__all__ = ["program", "run"]

_READER_LEFT = 141
"""What a shell says of a program that wrote to a closed pipe (128 + SIGPIPE)."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)
"""Standard output takes nothing more, or is closed."""


class _Program(click.Group):
    """A group in which every `DpsqlError` becomes its text and its exit code, and Ctrl-C that of 57014."""

    def invoke(self, ctx: click.Context) -> None:
        interrupts.forget()
        try:
            with interrupts.unwinding():
                super().invoke(ctx)
            if interrupts.has_come():  # too late to stop anything, or swallowed on its way
                raise click.exceptions.Exit(interrupts.INTERRUPTED)
        except DpsqlError as error:
            if isinstance(error, PolicyError) and error.hint is None and not _names_a_file(ctx):
                error.hint = "name the policy with -P; dpsql init writes a first one, dpsql demo an example"
            raise Failure(error) from None
        except KeyboardInterrupt:
            interrupts.note()
            raise Failure(EngineFailure(sqlstate="57014")) from None
        except BrokenPipeError:
            leave_streams()
            raise click.exceptions.Exit(_READER_LEFT) from None
        except OSError as error:
            if error.errno not in _FULL:
                raise
            leave_streams()
            raise click.UsageError(_unwritable(error)) from None


@click.group(
    cls=_Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 answered, 1 a bug in dpsql, 2 wrong usage, 3 refused, 4 budget spent, "
    "5 policy wrong, 6 database failed or statement cancelled, 7 ledger unusable, 8 no group shown. Ctrl-C: 130.",
)
@click.version_option(package_name="dpsql", prog_name="dpsql")
@click.option(
    "-P",
    "--policy",
    "policy_path",
    type=click.Path(dir_okay=False),
    envvar="DPSQL_POLICY",
    default="dpsql.toml",
    show_default=True,
    show_envvar=True,
    help="The policy file: what the owner of the data declares.",
)
@click.option(
    "--analyst",
    default="local",
    show_default=True,
    help="Who asks: a label for the ledger, not an identity. Anybody who can run this command can write "
    "any label; the cap for everybody together is what protects.",
)
@click.pass_context
def program(ctx: click.Context, policy_path: str, analyst: str) -> None:
    """Ask a private database in SQL; get differentially private answers with error bars.

    Begin with `dpsql demo`, which makes a small university and walks through it.
    """
    if not analyst.isprintable() or not analyst:
        raise click.UsageError("--analyst is a name: letters, digits, blanks and signs.")
    ctx.obj = CommandSettings.of(policy_path, analyst)


for _command in (
    query, explain, release, check, doctor, verify, audit, bounds, init, convert, prepare, budget, refresh, synthesize,
    serve, page, user, local, demo, textbook, docs, help_about,
):  # fmt: skip
    program.add_command(_command)


def run() -> None:
    """Run the program and leave the process with its exit code."""
    fill_closed()
    install_bug_hook()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter is no bug
    try:
        program(prog_name="dpsql")
    except OSError as error:  # outside of a command: --help, or wrong usage that nobody can be told
        if error.errno not in _FULL:
            raise
        leave_streams()
        tell(f"Error: {_unwritable(error)}")
        raise SystemExit(click.UsageError.exit_code) from None


def _unwritable(error: OSError) -> str:
    return f"The output cannot be written: {os.strerror(error.errno or 0)}."


def _names_a_file(ctx: click.Context) -> bool:
    return isinstance(ctx.obj, CommandSettings) and ctx.obj.policy_path.exists()
