"""`dpsql docs`: the manual that comes with the program."""

from __future__ import annotations

import json
import re
from importlib import resources

import click

__all__ = ["NOTEBOOKS", "TOPICS", "docs", "parts_of", "read_part", "read_topic", "read_whole"]

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
"""The documents in `dpsql/docs`, in the order in which somebody new would read them.

One may have parts: pages in a folder of its name, which its own page lists.
"""

NOTEBOOKS = ("notebook",)
"""Those of them that are notebooks of Jupyter."""


def read_topic(topic: str) -> str:
    """Return a document's page: a notebook as Markdown, its code in blocks."""
    folder = resources.files("dpsql").joinpath("docs")
    if topic in NOTEBOOKS:
        return _as_markdown(folder.joinpath(f"{topic}.ipynb").read_text("utf-8"))
    return folder.joinpath(f"{topic}.md").read_text("utf-8")


def parts_of(topic: str) -> list[str]:
    """Return the names of a document's parts, in the order in which its page lists them."""
    return re.findall(rf"\]\({topic}/([a-z-]+)\.md\)", read_topic(topic))


def read_part(topic: str, part: str) -> str:
    """Return one of the parts of a document."""
    return resources.files("dpsql").joinpath("docs", topic, f"{part}.md").read_text("utf-8")


def read_whole(topic: str) -> str:
    """Return a document's page and all of its parts, one after the other."""
    return "\n".join([read_topic(topic), *(read_part(topic, part) for part in parts_of(topic))])


def read_section(topic: str, wanted: str) -> str | None:
    """Return the section of a document whose heading begins with the words that are wanted, with all that is below it.

    A word ends where it ends: "1.1" is not the beginning of "1.12 Keys". None where no heading begins so.
    """
    text = read_whole(topic)
    begins = re.compile(rf"(#+) {re.escape(wanted)}(?![\w.-])", re.IGNORECASE)
    headings = [found for found in _HEADING.finditer(text) if not _inside_a_block(text, found.start())]
    for place, found in enumerate(headings):
        if (level := begins.match(found[0])) is not None:
            after = (one.start() for one in headings[place + 1 :] if len(one[1]) <= len(level[1]))
            return text[found.start() : next(after, len(text))].rstrip() + "\n"
    return None


_HEADING = re.compile(r"^(#{1,4}) .*$", re.MULTILINE)


def _inside_a_block(text: str, offset: int) -> bool:
    """Say whether a place is inside a fenced block, where `#` begins a comment."""
    return len(re.findall(r"^```", text[:offset], re.MULTILINE)) % 2 == 1


def _as_markdown(notebook: str) -> str:
    parts = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"


@click.command()
@click.argument("topic", required=False, type=click.Choice(TOPICS), metavar="[TOPIC]")
@click.argument("part", nargs=-1, metavar="[PART]")
def docs(topic: str | None, part: tuple[str, ...]) -> None:
    """Show a document of the manual, or without TOPIC what there is.

    PART is one of those that the document lists, or how a heading in it begins.

    \b
      dpsql docs
      dpsql docs sql
      dpsql docs soundness core
      dpsql docs soundness 1.9
    """
    if topic is not None:
        click.echo_via_pager(_page(topic, " ".join(part)))
        return
    width = max(map(len, TOPICS))
    for name in TOPICS:
        title = read_topic(name).split("\n", 1)[0]
        click.echo(f"{name:<{width}}  {title.partition(': ')[2]}")


def _page(topic: str, part: str) -> str:
    """Return what is shown of a document; raises a usage error that lists its parts where it has no such part."""
    if not part:
        return read_topic(topic)
    if part in parts_of(topic):
        return read_part(topic, part)
    section = read_section(topic, part)
    if section is None:
        known = f"its parts: {', '.join(parts_of(topic))}" if parts_of(topic) else f"see dpsql docs {topic}"
        raise click.UsageError(f"{topic} has no part {part!r}, and no heading that begins so; {known}.")
    return section
