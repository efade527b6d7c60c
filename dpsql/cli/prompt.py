"""The prompt of `dpsql query` on a terminal: editing, completion, a history, commands, one statement after another.

From the catalog that the analyst sees, and tables of our own: no row is read.
"""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click
from prompt_toolkit.completion import Completer, Completion

from ..engine.settings import AGGREGATES, SETTINGS, Offers
from ..records import dataclass
from ..regex import regex
from ..sql.text import ScriptStatement, ends_statement, split_statements
from ..words import KEYWORDS, nearest, terminal_text
from . import interrupts, terminal
from .docs import said_of
from .faults import Failure, tell
from .render import FORMATS, View, show
from .terminal import display_width
from .worker import RunningSession

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    from ..engine import Answer
    from ..engine.session import Session

# --- the prompt's own commands, as psql names them: what each is called, what it takes, and what it means ---


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

    shown = session.seen.everything
    yield from _listed(
        [(name, "", table_comment(table)) for name, table in shown.items()], ("table", "", "rows")
    )
    yield "\\d TABLE tells what may be asked of each column"


def describe_table(session: Session, name: str) -> Iterator[str]:
    """Yield a table's columns, their types and what may be asked of each; what may be meant where it is none."""
    from ..policy.describe import column_comment, table_comment

    shown = session.seen.everything
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


# --- the prompt of `dpsql query` on a terminal --------------------------------------------------------------


_LEAVE = frozenset({"\\q", "quit", "exit"})
_HELP = regex(r"(?:help|\?)(?:\s+(?P<code>\w{5}))?\s*;?", re.IGNORECASE)
_THEN_WATCH = regex(r"(?P<sql>.*\S)\s*(?P<watch>\\watch(?:[ \t]+\S+)?)\s*\Z", re.DOTALL)
_USUAL_SECONDS = 2.0
_TICK_SECONDS = 0.1


def prompt_loop(running: RunningSession, view: View, run: Callable[[str, ScriptStatement], Answer]) -> None:
    """Read and run statements and commands until the user leaves; a failed one is told and the prompt comes back.

    Between them the database is let go: a person thinks for long, and it need not be held meanwhile.
    """
    session = _session(running)
    tell(f"{running.run(_left, running)}. End a statement with a semicolon; \\? lists commands, \\q leaves.")
    prompt = Prompt(running, view, run)
    while True:
        interrupts.forget()  # what stopped a statement does not end the prompt
        running.run(running.session.dataset.backend.close_idle)
        try:
            text, prompt.pending = session.prompt(default=prompt.pending), ""
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        interrupts.forget()
        if not prompt.take(text):
            return


@dataclass(slots=True)
class Prompt:
    """What a person types is taken here, and what the commands have set is kept.

    `last`: the statement that was run last; `pending`: what the next line begins with.
    """

    running: RunningSession
    view: View
    run: Callable[[str, ScriptStatement], Answer]
    is_timed: bool = False
    last: str = ""
    pending: str = ""

    def take(self, text: str) -> bool:
        """Run what was typed; return False to leave."""
        if _leaves(text):
            return False
        if text.strip().startswith("\\"):
            self._command(text)
        elif asked := _HELP.fullmatch(text.strip()):
            self._command(f"\\? {asked['code'] or ''}")
        elif watched := _THEN_WATCH.match(text):
            if self._statements(watched["sql"]):
                self._command(watched["watch"])
        else:
            self._statements(text)
        return True

    def _statements(self, script: str) -> bool:
        """Run statements one by one, up to the first that fails; return whether all came to their end."""
        for piece in split_statements(script):
            self.last = f"{piece.text};"
            began = time.monotonic()
            try:
                self.run(script, piece)
            except Failure as failure:
                failure.show()
                return False
            finally:
                if self.is_timed:
                    tell(f"Time: {(time.monotonic() - began) * 1000:.1f} ms")
        return True

    def _command(self, text: str) -> None:
        found = read_command(text)
        if isinstance(found, str):
            tell(found)
            return
        name, given = found
        session = self.running.session
        if name == "?":
            show(said_of(given) or "\n".join(help_lines()), self.view)
        elif name == "d":
            lines = self.running.run(
                lambda: list(describe_table(session, given) if given else list_tables(session))
            )
            show("\n".join(lines), self.view)
        elif name == "x":
            self.view.is_expanded = not self.view.is_expanded
            tell(f"A line for each value: {_switch(self.view.is_expanded)}")
        elif name == "timing":
            self.is_timed = not self.is_timed
            tell(f"Timing: {_switch(self.is_timed)}")
        elif name == "format":
            self._format(given)
        elif name == "e":
            self._edit()
        elif name == "watch":
            self._watch(given)

    def _format(self, given: str) -> None:
        if given and given not in FORMATS:
            tell(f"the formats are {', '.join(FORMATS)}")
            return
        self.view.format_name = given or self.view.format_name
        tell(f"Answers are printed as {self.view.format_name}")

    def _edit(self) -> None:
        """Have the last statement edited; what comes back whole is run, what does not waits to be finished."""
        try:
            text = click.edit(self.last, extension=".sql")
        except click.ClickException as failure:
            tell(failure.message)
            return
        if text is None or not text.strip():
            tell("Nothing was changed, and nothing was run")
        elif ends_statement(text):
            show(text.strip(), self.view)
            self._statements(text)
        else:
            self.pending = text.strip()

    def _watch(self, given: str) -> None:
        """Run the last statement again and again, as long as it is free."""
        seconds = _seconds(given)
        if seconds is None:
            tell("\\watch takes a number of seconds, from 0.1 on")
        elif not self.last:
            tell("There is no statement to watch yet")
        elif not self.running.session.settings.reuse:
            tell("dpsql.reuse is off, so each time would be charged: SET dpsql.reuse = on")
        else:
            (piece,) = split_statements(self.last)
            for _ in _again(seconds):
                tell(f"{time.strftime('%H:%M:%S')} (every {seconds:g} s; Ctrl-C ends it)")
                try:
                    answer = self.run(self.last, piece)
                except Failure as failure:
                    failure.show()
                    return
                if answer.receipt is not None and answer.receipt.epsilon:
                    tell("This was charged, so it is not asked again")
                    return


def _again(seconds: float) -> Iterator[None]:
    """Yield once in so many seconds, until Ctrl-C."""
    while True:
        yield
        until = time.monotonic() + seconds
        while time.monotonic() < until and not interrupts.has_come():
            time.sleep(_TICK_SECONDS)
        if interrupts.has_come():
            interrupts.forget()
            return


def _seconds(given: str) -> float | None:
    try:
        seconds = float(given or _USUAL_SECONDS)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= _TICK_SECONDS else None


def _switch(is_on: bool) -> str:
    return "on" if is_on else "off"


def _left(running: RunningSession) -> str:
    from ..engine.answer import budget_text

    return budget_text(running.session.budget(), running.session.policy.defaults.epsilon)


def _is_complete(text: str) -> bool:
    is_command = text.strip().startswith("\\") or _HELP.fullmatch(text.strip()) or _leaves(text)
    if not text.strip() or is_command or _THEN_WATCH.match(text):
        return True
    return ends_statement(text)


def _leaves(text: str) -> bool:
    return text.strip().rstrip(";").lower() in _LEAVE


# --- the line that is typed ---------------------------------------------------------------------------------


def _session(running: RunningSession) -> PromptSession[str]:
    """Return what reads a line: Tab completes, Ctrl-R and the arrow up search the history."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.filters import Condition

    class Late(Completer):
        """Completion that is made when Tab is first pressed, so that the prompt is there at once."""

        whole: Completer | None = None

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:

            self.whole = self.whole or SqlCompleter(running.run(Offers, running.session))
            yield from self.whole.get_completions(document, complete_event)

    return PromptSession(
        "dpsql> ",
        history=_history(),
        multiline=Condition(lambda: not _is_complete(get_app().current_buffer.text)),
        prompt_continuation=lambda width, *_: "-> ".rjust(width),
        completer=Late(),
        complete_while_typing=False,
        enable_history_search=True,
        reserve_space_for_menu=6,
    )


def _history() -> FileHistory | InMemoryHistory:
    """Return the history in the user's own folder, or one that is forgotten where that cannot be written."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    path = Path(click.get_app_dir("dpsql")) / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


# --- what Tab offers at the prompt


_TYPED = regex(r"\\?[\w.]*\Z")
_AFTER_TABLE_WORD = regex(r"\b(?:from|join)\s+(?:\w+\s*,\s*)*[\w.]*\Z", re.IGNORECASE)
_AFTER_SETTING_WORD = regex(r"\A\s*(?:set|show|reset)\s+(?:local\s+)?[\w.]*\Z", re.IGNORECASE)
_AFTER_COMMAND = regex(r"\A\s*\\(?:d|dt|d\+)\s+\w*\Z")
_LONGEST = 76


class SqlCompleter(Completer):
    """Offers what fits where the cursor stands."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what begins as the word before the cursor does; names before functions before words of SQL."""
        before = document.text_before_cursor
        match = _TYPED.search(before)
        typed = match[0] if match else ""
        given = set[str]()
        for name, meaning in self._fitting(document.text, before, typed):
            if name.lower().startswith(typed.lower()) and name.lower() not in given:
                given.add(name.lower())
                short = meaning if len(meaning) <= _LONGEST else meaning[: _LONGEST - 1] + "…"
                yield Completion(name, -len(typed), display_meta=short)

    def _fitting(self, text: str, before: str, typed: str) -> Iterable[tuple[str, str]]:
        offers = self._offers
        if typed.startswith("\\"):
            return (
                [(f"\\{command.name}", command.meaning) for command in COMMANDS]
                if before.strip() == typed
                else ()
            )
        if _AFTER_COMMAND.search(before) or _AFTER_TABLE_WORD.search(before):
            return offers.tables.items()
        if _AFTER_SETTING_WORD.search(before):
            return SETTINGS.items()
        table, point, _ = typed.rpartition(".")
        if point:
            return [(f"{table}.{name}", meaning) for name, meaning in offers.columns.get(table, {}).items()]
        if not typed:
            return offers.of_statement(text).items()
        words = [(word if typed.isupper() else word.lower(), "") for word in KEYWORDS]
        calls = [(name if typed.isupper() else name.lower(), meaning) for name, meaning in AGGREGATES.items()]
        return [
            *offers.of_statement(text).items(),
            *calls,
            *offers.functions.items(),
            *words,
            *offers.tables.items(),
        ]
