"""The program `dpsql`: its global options, its commands, and how a failure leaves it.

A command's module is imported when it is asked for: what every start loads is here, and what one command needs in its
module. The engine, DuckDB and psycopg are imported inside the commands that need them.
"""

from __future__ import annotations

import atexit
import errno
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper

import click

from ..errors import DpsqlError, EngineFailure, PolicyError
from . import interrupts
from .faults import Failure, install_bug_hook, leave_streams, tell
from .terminal import CommandSettings, fill_closed

_READER_LEFT = 141
"""What a shell says of a program that wrote to a closed pipe (128 + SIGPIPE)."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)
"""Standard output takes nothing more, or is closed."""


_COMMANDS = {
    "audit": (
        "verify:audit",
        "Attack your own policy, on made-up people: what would one person's data show?",
    ),
    "bounds": (
        "budget:bounds",
        "Measure, privately, which max_rows fits TABLE, how many people have more rows, and what that leaves "
        "out.",
    ),
    "budget": (
        "budget:budget",
        "Make the ledger, show what is spent, list what it was spent on, allow more.",
    ),
    "check": ("check:check", "Check the policy file against the live database."),
    "convert": ("files:convert", "Convert CSV files, or JSON lines, to Parquet files beside them."),
    "demo": (
        "demo:demo",
        "Make a small university database in DIR (default: demo) and ask it some questions.",
    ),
    "docs": ("docs:docs", "Show a document of the manual, or without TOPIC what there is."),
    "doctor": ("doctor:doctor", "Say in one screen what of this installation is not as it should be."),
    "explain": (
        "query:explain",
        "Show how a statement would be answered: sensitivity, noise, error, charge.",
    ),
    "help": (
        "docs:help_about",
        "Say what an error's code means, why it is refused and what helps; or show a command's options.",
    ),
    "init": (
        "check:init",
        "Write a first policy file for SOURCES: a database, such as duckdb:campus.duckdb, or data files.",
    ),
    "local": (
        "local:local",
        "Randomise answers before they are sent, so that nobody need be trusted with the true ones.",
    ),
    "prepare": (
        "files:prepare",
        "Number the rows of each person, in a copy of a table, for row_number in the policy.",
    ),
    "query": ("query:query", "Run SQL statements and print their differentially private answers."),
    "refresh": ("files:refresh", "Make stored answers stop answering, after new data has been loaded."),
    "release": (
        "release:release",
        "Release a dashboard or a report: all queries of FILE planned together, and charged once.",
    ),
    "serve": (
        "serve:serve",
        "Serve the policy to analysts over Postgres' protocol, until SIGTERM or Ctrl-C.",
    ),
    "studio": (
        "serve:studio",
        "Write SQL in a page that says, while you type, what it would cost and how far off it would be.",
    ),
    "synthesize": (
        "files:synthesize",
        "Write a made-up TABLE that has about the counts which were answered of the real one.",
    ),
    "textbook": (
        "demo:textbook",
        "Show an exercise of the textbook, or say whether ANSWER is right; without EXERCISE, what there is.",
    ),
    "user": ("serve:user", "Passwords of the analysts who may connect to dpsql serve."),
    "verify": (
        "verify:verify",
        "Verify again what was charged: in the policy's ledger, in LEDGER, a copy of its file with its log "
        "beside it, or from a certificate in FILE.",
    ),
}
"""Each command's name, its module with the name that it has there, and its line in `dpsql --help`, which loads none."""


class _Program(click.Group):
    """A group in which every `DpsqlError` becomes its text and its exit code, and Ctrl-C that of 57014."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(f"{__package__}.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - 6 - max(map(len, _COMMANDS))
        told = {name: click.Command(name, help=line) for name, (_, line) in sorted(_COMMANDS.items())}
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(room)) for name, one in told.items()])

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
    type=click.Path(dir_okay=False, readable=False),
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


def run() -> None:
    """Run the program and leave the process with its exit code."""
    fill_closed()
    install_bug_hook()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter is no bug
    try:
        program(prog_name="dpsql")
    except SystemExit as end:
        _leave(end)
        raise
    except OSError as error:  # outside of a command: --help, or wrong usage that nobody can be told
        if error.errno not in _FULL:
            raise
        leave_streams()
        tell(f"Error: {_unwritable(error)}")
        raise SystemExit(click.UsageError.exit_code) from None


def _leave(end: SystemExit) -> None:
    """End the process here: to take the interpreter apart takes longer than a stored answer.

    Where a thread is to be waited for, or a stream takes nothing more, it returns, and the interpreter ends as it does.
    """
    others = (one for one in threading.enumerate() if one is not threading.main_thread())
    if not isinstance(end.code, int) or not all(one.daemon for one in others):
        return
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)


def _unwritable(error: OSError) -> str:
    return f"The output cannot be written: {os.strerror(error.errno or 0)}."


def _names_a_file(ctx: click.Context) -> bool:
    return isinstance(ctx.obj, CommandSettings) and ctx.obj.policy_path.exists()
