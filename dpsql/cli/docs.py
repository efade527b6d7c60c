"""`dpsql docs`: the manual that comes with the program."""

from __future__ import annotations

from importlib import resources

import click

__all__ = ["TOPICS", "docs", "read_topic"]

TOPICS = (
    "owner",
    "analyst",
    "sql",
    "textbook",
    "python",
    "operator",
    "threat-model",
    "performance",
    "architecture",
    "soundness",
)
"""The documents in `dpsql/docs`, in the order in which somebody new would read them."""


def read_topic(topic: str) -> str:
    """Return a document of the manual."""
    return resources.files("dpsql").joinpath("docs", f"{topic}.md").read_text("utf-8")


@click.command()
@click.argument("topic", required=False, type=click.Choice(TOPICS), metavar="[TOPIC]")
def docs(topic: str | None) -> None:
    """Show a document of the manual, or without TOPIC what there is.

    \b
      dpsql docs
      dpsql docs sql
    """
    if topic is not None:
        click.echo_via_pager(read_topic(topic))
        return
    width = max(map(len, TOPICS))
    for name in TOPICS:
        title = read_topic(name).split("\n", 1)[0]
        click.echo(f"{name:<{width}}  {title.partition(': ')[2]}")
