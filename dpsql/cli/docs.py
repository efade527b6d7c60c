"""`dpsql docs` and `dpsql help`: the manual that comes with the program, by document, part, section, word and code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources

import click

from ..errors import CODES
from ..records import dataclass
from ..regex import regex

TOPICS = (
    "owner",
    "analyst",
    "sql",
    "errors",
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


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a document and what stands below it, up to the next heading of any level.

    `level` counts the heading's signs; `start` and `end` are offsets in the page that it was read from.
    """

    level: int
    title: str
    start: int
    end: int


def _sections(page: str) -> list[Section]:
    """Return the sections of a page, in order; `#` inside a fenced block begins a comment and no section."""
    plain = _FENCED.sub(lambda block: " " * len(block[0]), page)
    found = list(_HEADING.finditer(plain))
    ends = [*(heading.start() for heading in found[1:]), len(page)]
    return [Section(len(h[1]), h[2], h.start(), end) for h, end in zip(found, ends, strict=True)]


_ITEM = regex(r"(?<=\d)\(\d+\)$")
_FENCED = regex(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = regex(r"^(#{1,4}) (.*)$", re.MULTILINE)


def read_section(topic: str, wanted: str) -> str | None:
    """Return the section of a document whose heading begins with the words that are wanted, with all that is below it.

    A word ends where it ends: "1.1" is not the beginning of "1.12 Keys"; "1.25(3)" is item 3 of a list in 1.25,
    which is shown whole. None where no heading begins so.
    """
    page = read_whole(topic)
    begins = re.compile(rf"{re.escape(_ITEM.sub('', wanted))}(?![\w.-])", re.IGNORECASE)
    sections = _sections(page)
    for place, section in enumerate(sections):
        if begins.match(section.title):
            after = (later.start for later in sections[place + 1 :] if later.level <= section.level)
            return page[section.start : next(after, len(page))].rstrip() + "\n"
    return None


def sections_with(words: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield the sections of the manual that have all of some words, in either case, those first whose headings do.

    Each as what `dpsql docs` shows it by, its heading, and the first line below it with the first of the words.
    """
    wanted = [word.casefold() for word in words]
    found = []
    for topic in TOPICS:
        pages = [
            (topic, read_topic(topic)),
            *((f"{topic} {part}", read_part(topic, part)) for part in parts_of(topic)),
        ]
        for name, page in pages:
            for section in _sections(page):
                body = page[section.start : section.end].casefold()
                if all(word in body for word in wanted):
                    lines = page[section.start : section.end].splitlines()[1:]
                    line = next((line for line in lines if wanted[0] in line.casefold()), "")
                    below = not all(word in section.title.casefold() for word in wanted)
                    found.append((below, name, section.title, line.strip()))
    for _, name, title, line in sorted(found, key=lambda one: one[0]):
        yield name, title, line


def _as_markdown(notebook: str) -> str:
    parts = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"


_SEARCH = "search"


@click.command()
@click.argument("topic", required=False, type=click.Choice((*TOPICS, _SEARCH)), metavar="[TOPIC]")
@click.argument("part", nargs=-1, metavar="[PART]")
def docs(topic: str | None, part: tuple[str, ...]) -> None:
    """Show a document of the manual, or without TOPIC what there is.

    PART is one of those that the document lists, or how a heading in it begins. `search` shows where words stand.

    \b
      dpsql docs
      dpsql docs sql
      dpsql docs sql medians
      dpsql docs soundness 1.9
      dpsql docs search minimum_units
    """
    if topic == _SEARCH:
        click.echo_via_pager(_found(part))
    elif topic is not None:
        click.echo_via_pager(_page(topic, " ".join(part)))
    else:
        width = max(map(len, TOPICS))
        for name in TOPICS:
            title = read_topic(name).split("\n", 1)[0]
            click.echo(f"{name:<{width}}  {title.partition(': ')[2]}")


def _found(words: tuple[str, ...]) -> str:
    """Return what is shown of a search: a heading a line, by which document it is shown, and the first line with it."""
    if not words:
        raise click.UsageError("say what to look for: dpsql docs search minimum_units")
    lines = []
    for name, title, line in sections_with(words):
        lines += [f"dpsql docs {name}: {title}", *([f"    {_cut(line)}"] if line else [])]
    return "\n".join(lines or [f"No section of the manual has {' and '.join(words)}."]) + "\n"


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


_LINE = 110


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


def said_of(code: str) -> str | None:
    """Return what the manual says of an error's code, written in either case; None where it is none."""
    return read_section("errors", code.upper()) if code.upper() in CODES else None


@click.command("help")
@click.argument("about", nargs=-1, metavar="[CODE | COMMAND]")
@click.pass_context
def help_about(ctx: click.Context, about: tuple[str, ...]) -> None:
    """Say what an error's code means, why it is refused and what helps; or show a command's options.

    \b
      dpsql help PV005
      dpsql help budget create
    """
    meant = said_of(" ".join(about))
    if meant is not None:
        click.echo_via_pager(meant)
        return
    command: click.Command = ctx.find_root().command
    below = ctx.find_root()
    for word in about:
        found = command.get_command(below, word) if isinstance(command, click.Group) else None
        if found is None:
            raise click.UsageError(
                f"{' '.join(about)} is neither an error's code nor a command; dpsql docs errors lists the codes, "
                "dpsql --help the commands."
            )
        command, below = found, click.Context(found, info_name=word, parent=below)
    click.echo(command.get_help(below))
