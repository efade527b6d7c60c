"""What the documents show of the command line is what it prints, figures included."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program

from .comparing import NUMBER, compare
from .documents import DOCUMENTS, text, transcripts

TEXTBOOK = "textbook"
"""It is run block by block, with its files and its Python, in test_textbook.py."""

WITH_TRANSCRIPTS = [name for name in DOCUMENTS if transcripts(name) and name != TEXTBOOK]


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
    row = " major |    n\n-------+------\n CS    | 5438\n(1 row)\ncharged epsilon 0.1; 8.1 left\n"
    compare(row, row.replace("5438", "5441"))
    for wrong in (row.replace("5438", "543"), row.replace("8.1", "9.9"), row.replace("CS", "EE"), row[:50]):
        with pytest.raises(AssertionError):
            compare(row, wrong)


def test_a_number_with_a_bar_is_held_to_it() -> None:
    row = "  n | n_low | n_high\n----+-------+--------\n -7 |   -37 |     23\n(1 row)\n"
    compare(row, row.replace("-7 ", "90 ").replace("-37", " 60").replace("23", "120"))
    with pytest.raises(AssertionError):
        compare(row, row.replace("-7 ", "890 "))


def test_a_number_beside_its_bar_is_held_to_it() -> None:
    row = "     k |       n\n-------+---------\n CS    | -7 ± 30\n(1 row)\n"
    compare(row, row.replace("-7", "90").replace("30", "37"))
    for wrong in (row.replace("-7", "890"), row.replace("30", "12"), row.replace("± 30", "± ?")):
        with pytest.raises(AssertionError):
            compare(row, wrong)


def test_a_picture_is_held_to_its_numbers() -> None:
    row = " n by major\n CS   616 ± 30  ████├─●──┤\n EE    31 ± 30  ├─●─┤\n      0       700\nfree\n"
    compare(row, row.replace("616", "640").replace("████", "█████"))
    for wrong in (
        row.replace("616", "916"),
        row.replace("CS", "ME"),
        row.replace("free", "dear"),
        row.replace("±", "+"),
    ):
        with pytest.raises(AssertionError):
            compare(row, wrong)


def test_what_is_left_out_may_be_anything_and_nothing_else_may() -> None:
    printed = "release\n  sensitivity 1\n  backend:\n    SELECT\ncharge: epsilon 0.1\n"
    compare("release\n…\ncharge: epsilon 0.1\n", printed)
    compare("…\n  sensitivity 1\n…\n", printed)
    for wrong in (
        "release\ncharge: epsilon 0.1\n",
        "…\n  sensitivity 2\n…\n",
        "…\n  sensitivity 1\n",
        "…\nrelease\n",
    ):
        with pytest.raises(AssertionError):
            compare(wrong, printed)


def test_what_is_measured_is_held_by_its_error() -> None:
    audit = "statement    claimed\nSELECT 1    1    1 of 1    0.974  13.7 % (13.6 %)\n"
    compare(audit, audit.replace("0.974", "0.961"))
    estimate = "answer   reported     estimate   ± at 95 %\nlow   5721   1442.0   240.0\n(20000 answers)\n"
    compare(estimate, estimate.replace("1442.0", "1802.5"))
    for before, shown, after in (
        (audit, "1 of 1", "2 of 2"),
        (audit, "0.974", "0.5"),
        (estimate, "1442.0", "5442.0"),
        (estimate, "5721", "9721"),
        (estimate, "240.0", "24.0"),
        (estimate, "20000", "2000"),
    ):
        with pytest.raises(AssertionError):
            compare(before, before.replace(shown, after))


def test_the_difference_in_the_attack() -> None:
    """The README's totals, and the difference that it names."""
    attack = [example for example in transcripts("README") if "AS total" in example.command]
    first, second, third = (float(NUMBER.findall(example.shown.split("\n")[2])[0]) for example in attack)
    readme = " ".join(text("README").split())
    assert f"Their difference is {first - second:g}, " in readme
    assert second == third
