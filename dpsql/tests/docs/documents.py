"""The documents of the repository, and the examples in them: the one place that reads them for tests."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from dpsql.cli.docs import NOTEBOOKS, TOPICS, read_whole

__all__ = [
    "DOCUMENTS",
    "MANUAL",
    "ROOT",
    "Transcript",
    "blocks",
    "section",
    "text",
    "transcripts",
    "transcripts_of",
]

ROOT = Path(__file__).parents[3]
MANUAL = {
    topic: ROOT / "dpsql" / "docs" / f"{topic}.{'ipynb' if topic in NOTEBOOKS else 'md'}" for topic in TOPICS
}
DOCUMENTS = {name: ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING")} | MANUAL


@dataclass(frozen=True, slots=True)
class Transcript:
    """A command as it is shown, its arguments after `dpsql`, and what is shown below it."""

    command: str
    arguments: tuple[str, ...]
    shown: str


def text(name: str) -> str:
    """Return a document with all of its parts, a notebook as `dpsql docs` shows it."""
    return read_whole(name) if name in MANUAL else DOCUMENTS[name].read_text("utf-8")


def section(name: str, heading: str) -> str:
    """Return what stands below a second heading."""
    return text(name).split(f"\n## {heading}\n")[1].split("\n## ")[0]


def blocks(name: str, language: str) -> list[str]:
    """Return the fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text(name), re.DOTALL | re.MULTILINE)


def transcripts(name: str) -> list[Transcript]:
    """Return what the `console` blocks show, in order."""
    return [found for block in blocks(name, "console") for found in transcripts_of(block)]


def transcripts_of(block: str) -> list[Transcript]:
    """Return what one `console` block shows."""
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        match = re.match(r"((?:.*\\\n)*.*)\n", part)
        assert match, part
        program, *arguments = shlex.split(match[1].replace("\\\n", ""))
        assert program == "dpsql", match[1]
        found.append(Transcript(match[1], tuple(arguments), part[match.end() :]))
    return found
