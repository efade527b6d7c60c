"""What the documents show of the command line is what it prints, figures included."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program

from .documents import DOCUMENTS, text, transcripts

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


def is_row(line: str) -> bool:
    """Say whether a line is a row of an answer: its numbers are noisy."""
    return bool(re.fullmatch(r" .* \| .*", line)) and bool(NUMBER.search(line))


def close(shown: str, printed: str) -> bool:
    """Say whether two noisy numbers can be draws of one: within a quarter, and 40 for a count."""
    a, b = float(shown), float(printed)
    return abs(a - b) <= abs(a) / 4 + (0 if "." in shown else 40)


def compare(shown: str, printed: str) -> None:
    """Hold a transcript to what was printed: rows by the size of their numbers, all else to the letter."""
    lines, others = shown.rstrip("\n").split("\n"), printed.rstrip("\n").split("\n")
    assert len(lines) == len(others), printed
    for line, other in zip(lines, others, strict=True):
        if is_row(line):
            blank = re.sub(r"\s+", " ", NUMBER.sub("0", line)).strip()
            assert blank == re.sub(r"\s+", " ", NUMBER.sub("0", other)).strip()
            numbers = zip(NUMBER.findall(line), NUMBER.findall(other), strict=True)
            assert all(close(a, b) for a, b in numbers), f"{line}\n{other}"
        elif re.fullmatch(r"[-+]+", line) or " | " in line:
            assert re.sub(r"[-\s]+", "", line) == re.sub(r"[-\s]+", "", other)
        else:
            assert TIME.sub("then", line) == TIME.sub("then", other)


WITH_TRANSCRIPTS = [name for name in DOCUMENTS if transcripts(name)]


@pytest.mark.parametrize("name", WITH_TRANSCRIPTS)
def test_transcripts(name: str, reader: Path) -> None:
    """In the order of the document, after `dpsql demo`: what is charged and left is that order's."""
    for example in transcripts(name):
        result = CliRunner().invoke(program, example.arguments)
        assert result.exit_code in (0, 3), result.output
        compare(example.shown, result.output)


def test_there_are_transcripts() -> None:
    assert {"README", "owner", "analyst"} <= set(WITH_TRANSCRIPTS)


def test_a_transcript_that_is_not_true_is_seen() -> None:
    row = " CS | 5438 | 5408\n(1 row)\ncharged epsilon 0.1; 8.1 left\n"
    compare(row, row.replace("5438", "5441"))
    for wrong in (row.replace("5438", "543"), row.replace("8.1", "9.9"), row.replace("CS", "EE"), row[:30]):
        with pytest.raises(AssertionError):
            compare(row, wrong)


def test_the_difference_in_the_attack() -> None:
    """The README's totals, and the difference that it names."""
    attack = [example for example in transcripts("README") if "AS total" in example.command]
    first, second, third = (float(NUMBER.findall(example.shown.split("\n")[2])[0]) for example in attack)
    readme = " ".join(text("README").split())
    assert f"Their difference is {first - second:.2f}, " in readme
    assert second == third
