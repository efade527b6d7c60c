"""`dpsql user`: passwords of analysts, for the server."""

from __future__ import annotations

import sys

import click

from .failure import tell

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
