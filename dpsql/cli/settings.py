"""What the global options say, and the options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..records import dataclass

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


def _remember_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_JSON] = True
