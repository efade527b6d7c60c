"""`dpsql user`: passwords of analysts, for the server."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..errors import PolicyError
from ..words import terminal_text
from .faults import tell
from .owner import replace_file
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .terminal import decimal_text


@click.group()
def user() -> None:
    """Passwords of the analysts who may connect to dpsql serve."""


@user.command()
@click.argument("name")
@click.option(
    "--write", "writes", is_flag=True, help="Write the line into the policy, in place of printing it."
)
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    help="With --write, the cap of an analyst who is new there.",
)
@pass_settings
def add(settings: CommandSettings, name: str, writes: bool, epsilon: float | None) -> None:
    """Ask for a password and print the line that lets NAME connect.

    The line goes into the policy, under [analysts.NAME], by your own hand or with --write, which changes nothing else.
    It holds a verifier, from which the password cannot be read; keep it secret all the same, and the policy for its
    owner alone (chmod 600). Not on a terminal, the password is the first line of standard input.
    """
    from ..pgwire import make_verifier
    from ..policy.section import quote_key

    if not name.strip() or not name.isprintable():
        raise click.UsageError("NAME is a name: letters, digits, blanks and signs.")
    if epsilon is not None and not writes:
        raise click.UsageError("--epsilon goes with --write.")
    before = settings.policy_path.read_text("utf-8") if writes and _can_take(settings, name, epsilon) else ""
    if sys.stdin.isatty():
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise click.UsageError("There is no password: run this at a terminal, or send it on standard input.")
    line = f'password = "{make_verifier(password).text()}"'
    if not writes:
        tell(f"Write this into the policy, below [analysts.{quote_key(name)}] and its epsilon:")
        click.echo(line)
        return
    _write(settings.policy_path, before, _with_password(before, name, line, epsilon))
    click.echo(f"{terminal_text(name)} can connect. A running server reads it at SIGHUP.")


def _can_take(settings: CommandSettings, name: str, epsilon: float | None) -> bool:
    """Say True where the policy can take a password of a name. Raises click.UsageError, PolicyError."""
    from ..policy import load_policy

    analyst = load_policy(settings.policy_path).analysts.get(name)
    shown = terminal_text(name)
    if analyst is None and epsilon is None:
        raise click.UsageError(f"The policy does not name {shown}. Say the cap too: --epsilon 0.5")
    if analyst is not None and analyst.password is not None:
        raise click.UsageError(f"{shown} has a password. Take it out first: dpsql user remove {shown}")
    if analyst is not None and epsilon is not None:
        raise click.UsageError(
            f"{shown} has a cap of {decimal_text(analyst.epsilon)}, which the policy says."
        )
    return True


def _with_password(text: str, name: str, line: str, epsilon: float | None) -> str:
    """Return a policy's text with an analyst's password, and with all else in place, comments too.

    Raises PolicyError where the analyst's section does not begin with a line of its own.
    """
    from ..policy.section import quote_key

    added = tomllib.loads(line)
    wanted: dict[str, Any] = tomllib.loads(text)
    own = wanted.setdefault("analysts", {}).setdefault(name, {})
    own.update(added)
    if epsilon is not None:
        own["epsilon"] = epsilon
        section = f"[analysts.{quote_key(name)}]\nepsilon = {epsilon!r}\n{line}\n"
        candidates = [f"{text.rstrip()}\n\n{section}"]
    else:
        heads = re.finditer(r"^[ \t]*\[.*\][^\n]*(\n|\Z)", text, re.MULTILINE)
        candidates = [f"{text[: head.end()].rstrip()}\n{line}\n{text[head.end() :]}" for head in heads]
    for found in candidates:
        with suppress(tomllib.TOMLDecodeError):
            if tomllib.loads(found) == wanted:
                return found
    raise PolicyError(
        f"analysts.{name} has no section of its own in the policy", hint=f"write it there by hand: {line}"
    )


def _write(path: Path, before: str, after: str) -> None:
    """Put a policy's new text in its place. Raises PolicyError: it means nothing, or the file was changed meanwhile."""
    from ..policy import parse_policy

    parse_policy(after, path)
    if path.read_text("utf-8") != before:
        raise PolicyError(f"{path.name} was changed meanwhile", hint="ask again")
    replace_file(path, after)


@user.command("list")
@json_option
@pass_settings
def list_users(settings: CommandSettings) -> None:
    """List the analysts that the policy names: who may connect, and the cap each has."""
    from ..policy import load_policy

    analysts = load_policy(settings.policy_path).analysts
    for name, analyst in analysts.items():
        if wants_json():
            body = {
                "name": name,
                "epsilon": float(analyst.epsilon),
                "may_connect": analyst.password is not None,
            }
            click.echo(json.dumps(body))
        else:
            connects = "may connect" if analyst.password is not None else "has no password, cannot connect"
            click.echo(f"{terminal_text(name)}  epsilon {decimal_text(analyst.epsilon)}  {connects}")
    if not analysts:
        tell("The policy names no analyst: dpsql user add NAME prints what to write.")


@user.command()
@click.argument("name")
@pass_settings
def remove(settings: CommandSettings, name: str) -> None:
    """Take the password of NAME out of the policy: they cannot connect any more.

    A running server knows it from its next SIGHUP on, and ends their connections then. Their section and its cap stay,
    since what they spent stays spent.
    """
    from ..policy import load_policy

    path = settings.policy_path
    analyst = load_policy(path).analysts.get(name)
    if analyst is None or analyst.password is None:
        raise click.UsageError(
            f"The policy has no password of {terminal_text(name)}; dpsql user list shows who has one."
        )
    text = path.read_text("utf-8")
    replace_file(path, _without_password(text, name))
    click.echo(f"{terminal_text(name)} cannot connect any more. A running server reads it at SIGHUP.")


def _without_password(text: str, name: str) -> str:
    """Return a policy's text without the line of an analyst's password, and with all else in place.

    A line is taken out only if what remains means what was there before without the password. Raises PolicyError where
    the password does not stand in a line of its own.
    """
    wanted: dict[str, Any] = tomllib.loads(text)
    del wanted["analysts"][name]["password"]
    for found in re.finditer(r"^.*password.*\n?", text, re.MULTILINE):
        rest = text[: found.start()] + text[found.end() :]
        try:
            if tomllib.loads(rest) == wanted:
                return rest
        except tomllib.TOMLDecodeError:
            continue
    raise PolicyError(
        f"the password of {name} does not stand in a line of its own",
        hint="take it out of the policy by hand",
    )
