"""`dpsql textbook`: the textbook's exercises, shown, checked and solved; and the whole of it as a notebook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from .docs import parts_of, read_part, read_section, read_topic
from .exercises import EXERCISES

__all__ = ["as_notebook", "textbook"]

_TOPIC = "textbook"
_WRONG = 2
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`(\w+\.toml)`:\n\n\Z")


@click.command()
@click.argument("number", required=False, metavar="[EXERCISE]")
@click.argument("answer", required=False, metavar="[ANSWER]")
@click.option("--solution", is_flag=True, help="Show how the exercise is solved.")
@click.option(
    "--demo",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    metavar="DIR",
    help="The folder of the demo, for answers that are statements.",
)
@click.option(
    "--notebook", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write the textbook as a notebook of Jupyter, its commands and its Python as cells to run.",
)  # fmt: skip
@click.pass_context
def textbook(
    ctx: click.Context,
    number: str | None,
    answer: str | None,
    solution: bool,
    demo: Path,
    notebook: Path | None,
) -> None:
    """Show an exercise of the textbook, or say whether ANSWER is right; without EXERCISE, what there is.

    \b
      dpsql textbook
      dpsql textbook 3.1
      dpsql textbook 3.1 0.3
      dpsql textbook 3.2 "SELECT ..."
      dpsql textbook 3.2 --solution

    An answer that is a statement is explained over the demo's policy, which charges nothing. The exit code is 0
    where an answer is right, and 2 where it is not. The text itself: dpsql docs textbook.
    """
    if notebook is not None:
        _write(notebook)
    elif number is None:
        for title in re.findall(r"^## (.*)$", read_part(_TOPIC, "exercises"), re.MULTILINE):
            click.echo(title)
    elif number not in EXERCISES:
        raise click.UsageError(f"there is no exercise {number}; dpsql textbook lists them.")
    elif solution:
        click.echo(read_section(_TOPIC, f"Solution {number}"), nl=False)
    elif answer is None:
        click.echo(read_section(_TOPIC, number), nl=False)
    else:
        fault = EXERCISES[number].fault(answer, demo)
        click.echo(f"Not right. {fault}" if fault else "Right.")
        if fault:
            ctx.exit(_WRONG)


def _write(path: Path) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(as_notebook())
    except FileExistsError:
        raise click.UsageError(f"{path} exists. Name another file.") from None
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from None
    click.echo(f"Wrote {path}. Run it in the folder in which the demo stands (dpsql demo demo).")


def as_notebook() -> str:
    """Return the textbook as a notebook: text, and each command, file and piece of Python as a cell."""
    pages = [read_topic(_TOPIC), *(read_part(_TOPIC, part) for part in parts_of(_TOPIC))]
    cells = [cell for page in pages for cell in _cells(page)]
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"
    known = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return (
        json.dumps({"cells": cells, "metadata": known, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
    )


def _cells(page: str) -> Iterator[dict[str, Any]]:
    """Return a page's cells: Markdown between blocks, and the blocks that are run."""
    done = 0
    last: dict[str, Any] = {}
    for block in _BLOCK.finditer(page):
        language, body = block[1], block[2]
        if language == "sql":
            continue
        if page[done : block.start()].strip():
            yield _text(page[done : block.start()])
        done = block.end()
        if language == "output":
            last["outputs"] = _shown(body)
        elif language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command = re.match(r"(?:.*\\\n)*.*\n", part)
                assert command is not None
                yield _code(f"!{command[0].rstrip()}", part[command.end() :])
        else:
            name = _FILE.search(page[: block.start()])
            last = _code(f"%%writefile {name[1]}\n{body.rstrip()}" if name else body.rstrip(), "")
            yield last
    if page[done:].strip():
        yield _text(page[done:])


def _text(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip("\n")}


def _code(source: str, shown: str) -> dict[str, Any]:
    return {
        "cell_type": "code", "execution_count": None, "metadata": {}, "source": source, "outputs": _shown(shown),
    }  # fmt: skip


def _shown(text: str) -> list[dict[str, Any]]:
    return [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
