"""The prompt of `dpsql query` on a terminal: editing, a history, one statement after another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..sql.script import ScriptStatement, ends_statement, split_statements
from .failure import Failure

if TYPE_CHECKING:
    from prompt_toolkit.history import FileHistory, InMemoryHistory

__all__ = ["prompt_loop"]

_LEAVE = frozenset({"\\q", "quit", "exit"})


def prompt_loop(run: Callable[[str, ScriptStatement], None], rest: Callable[[], object]) -> None:
    """Read and run statements until the user leaves; a failed one is told and the prompt comes back.

    `rest` is called before each wait: a person thinks for long, and the database need not be held meanwhile.
    """
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.filters import Condition

    unfinished = Condition(lambda: not _is_complete(get_app().current_buffer.text))
    prompt: PromptSession[str] = PromptSession(
        "dpsql> ",
        history=_history(),
        multiline=unfinished,
        prompt_continuation=lambda width, *_: "-> ".rjust(width),
    )
    click.echo("End a statement with a semicolon; \\q or Ctrl-D leaves.", err=True)
    while True:
        rest()
        try:
            script = prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if _leaves(script):
            return
        for piece in split_statements(script):
            try:
                run(script, piece)
            except Failure as failure:
                failure.show()
                break


def _is_complete(text: str) -> bool:
    return not text.strip() or _leaves(text) or ends_statement(text)


def _leaves(text: str) -> bool:
    return text.strip().rstrip(";").lower() in _LEAVE


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
