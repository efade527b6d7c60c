"""`dpsql user`: passwords of analysts, for the server."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import click

from ..errors import PolicyError
from .failure import tell
from .private_file import write_private
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .text_cells import decimal_text, terminal_text

__all__ = ["user"]


@click.group()
def user() -> None:
    """Passwords of the analysts who may connect to dpsql serve."""


@user.command()
@click.argument("name")
def add(name: str) -> None:
    """Ask for a password and print the line that lets NAME connect.

    The line goes into the policy, under [analysts.NAME], by your own hand. It holds a verifier, from which the
    password cannot be read; keep it secret all the same, and the policy for its owner alone (chmod 600). Not on
    a terminal, the password is the first line of standard input.
    """
    from ..pgwire import make_verifier
    from ..policy.section import quote_key

    if not name.strip() or not name.isprintable():
        raise click.UsageError("NAME is a name: letters, digits, blanks and signs.")
    if sys.stdin.isatty():
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise click.UsageError("There is no password.")
    tell(f"Write this into the policy, below [analysts.{quote_key(name)}] and its epsilon:")
    click.echo(f'password = "{make_verifier(password).text()}"')


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
    _replace_file(path, _without_password(text, name))
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


def _replace_file(path: Path, text: str) -> None:
    """Put a text in a file's place, whole or not at all, with the rights that the file had. Raises PolicyError."""
    path = path.resolve()
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_private(new, text)
        os.chmod(new, path.stat().st_mode & 0o777)
        os.replace(new, path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise PolicyError(f"{path.name}: cannot be written: {error.strerror}") from None
