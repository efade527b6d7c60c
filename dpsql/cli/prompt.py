"""The prompt of `dpsql query` on a terminal: editing, completion, a history, commands, one statement after another."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..sql.text import ScriptStatement, ends_statement, split_statements
from . import interrupts
from .docs import said_of
from .failure import Failure, tell
from .prompt_commands import describe_table, help_lines, list_tables, read_command
from .render import FORMATS, View, show
from .worker import RunningSession

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    from ..engine import Answer

__all__ = ["Prompt", "prompt_loop"]

_LEAVE = frozenset({"\\q", "quit", "exit"})
_HELP = re.compile(r"(?:help|\?)(?:\s+(?P<code>\w{5}))?\s*;?", re.IGNORECASE)
_THEN_WATCH = re.compile(r"(?P<sql>.*\S)\s*(?P<watch>\\watch(?:[ \t]+\S+)?)\s*\Z", re.DOTALL)
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


# --- the line that is typed ----------------------------------------------------------------------------------


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
            from .completion import Offers, SqlCompleter

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
