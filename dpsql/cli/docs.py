"""`dpsql docs`: the manual that comes with the program."""

from __future__ import annotations

import json
from importlib import resources

import click

__all__ = ["NOTEBOOKS", "TOPICS", "docs", "read_topic"]

TOPICS = (
    "owner",
    "analyst",
    "sql",
    "textbook",
    "python",
    "notebook",
    "operator",
    "threat-model",
    "verify",
    "performance",
    "architecture",
    "soundness",
)
"""The documents in `dpsql/docs`, in the order in which somebody new would read them."""

NOTEBOOKS = ("notebook",)
"""Those of them that are notebooks of Jupyter."""


def read_topic(topic: str) -> str:
    """Return a document of the manual: a notebook as Markdown, its code in blocks."""
    folder = resources.files("dpsql").joinpath("docs")
    if topic in NOTEBOOKS:
        return _as_markdown(folder.joinpath(f"{topic}.ipynb").read_text("utf-8"))
    return folder.joinpath(f"{topic}.md").read_text("utf-8")


def _as_markdown(notebook: str) -> str:
    parts = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"


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
