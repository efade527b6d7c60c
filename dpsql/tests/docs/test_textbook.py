"""The textbook's page: every block is run in its order, and every figure is what is printed or what its formula says."""

from __future__ import annotations

import contextlib
import io
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program

from .comparing import NUMBER, compare
from .documents import Transcript, section, text, transcripts, transcripts_of

PAGE = "textbook"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED_FILE = re.compile(r"`(\w+\.toml)`:\n\n\Z")


def run_command(example: Transcript) -> str:
    """Run a command and return what a terminal shows of it; `> FILE` writes its standard output to a file."""
    arguments = list(example.arguments)
    target = None
    if ">" in arguments:
        at = arguments.index(">")
        target, arguments = arguments[at + 1], arguments[:at]
    result = CliRunner().invoke(program, arguments)
    assert result.exit_code in (0, 3), result.output
    if target is None:
        return result.output
    Path(target).write_text(result.stdout, encoding="utf-8")
    return result.stderr


def run_python(example: str) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(example, {})  # noqa: S102 (our own documents)
    return shown.getvalue()


def test_every_block_is_run_in_order(reader: Path) -> None:
    """After `dpsql demo`, from the folder in which it stands."""
    page, printed = text(PAGE), ""
    for match in BLOCK.finditer(page):
        language, body = match[1], match[2]
        if language == "console":
            for example in transcripts_of(body):
                compare(example.shown, run_command(example))
        elif language == "python":
            printed = run_python(body)
            assert printed == "" or page[match.end() :].startswith("\n\n```output\n")
        elif language == "output":
            assert body == printed
        else:
            assert language == "toml"
            name = NAMED_FILE.search(page[: match.start()])
            assert name
            Path(name[1]).write_text(body, encoding="utf-8")


def shown_by(words: str) -> list[float]:
    """Return the numbers in what the one command with these words shows."""
    (example,) = [example for example in transcripts(PAGE) if words in example.command]
    return [float(number) for number in NUMBER.findall(example.shown)]


def rho_by_the_formula(epsilon: float, delta: float) -> float:
    """Return the rho with rho + 2 √(rho ln(1/delta)) = epsilon: a quadratic in √rho."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def test_the_formula_is_inverted() -> None:
    rho = rho_by_the_formula(10, 5e-7)
    assert math.isclose(rho + 2 * math.sqrt(rho * math.log(1 / 5e-7)), 10)


Q = math.exp(-1 / 10)
LN20 = math.log(20)


@pytest.mark.parametrize(
    "words",
    [
        f"a factor of e^0.1 = {math.exp(0.1):.3f}",
        f"e · 5 % = {5 * math.e:.1f} % are allowed",
        f"40 · ln(1 / 0.05) = {40 * LN20:.2f}",
        f"ln(20) / 5 = {LN20 / 5:.3f}",
        f"2 q^31 / (1 + q) = {2 * Q**31 / (1 + Q):.3f}, and above 29 it would be {2 * Q**30 / (1 + Q):.3f}",
        f"(1 / 0.1) (ln 201 + ln 20) = {10 * (math.log(201) + LN20):.2f}",
        f"(1 / 0.05) (ln 120 + ln 20) = {20 * (math.log(120) + LN20):.1f}",
        f"ln(p / (1 - p)) = ln 3 = {math.log(3):.3f}",
        f"1 + ln(1 / (2 delta)) / epsilon = {1 + math.log(1 / 2e-9) / 0.1:.0f} on",
        f"(e^epsilon - 1), which is {(math.exp(0.4) - 1) / (math.exp(0.1) - 1):.2f} for four",
        f"allows a rho of {rho_by_the_formula(10, 5e-7):.3f};",
        f"√12 = {math.sqrt(12):.2f}",
    ],
)
def test_a_figure_of_the_text_is_its_formula(words: str) -> None:
    assert words in " ".join(text(PAGE).split())


def test_the_differencing_attack() -> None:
    first, second = (
        float(NUMBER.findall(example.shown.split("\n")[2])[0])
        for example in transcripts_of(
            "".join(BLOCK.findall(section(PAGE, "What exact answers give away"))[2][1])
        )
    )
    assert f"Now the difference is {abs(first - second):g}, " in text(PAGE)


def test_the_estimate_from_coins() -> None:
    reported = int(shown_by("estimate coins.csv")[4])
    words = f"({reported} - 5000) / 0.5 = {2 * (reported - 5000)}."
    assert words in " ".join(text(PAGE).split())
    assert shown_by("estimate coins.csv")[5] == 2 * (reported - 5000)


@pytest.mark.parametrize(
    ("words", "figure"),
    [
        ("explain --accuracy 5", "epsilon 0.5382"),
        (
            "SELECT MEDIAN(gpa) AS middle FROM student",
            f"within {math.ceil(10 * (math.log(201) + LN20))} rows",
        ),
        ("ORDER BY n DESC LIMIT 1", f"within {math.ceil(20 * (math.log(120) + LN20))} of the last one's"),
        ('left(name, 3) AS first, COUNT(*) AS n FROM student GROUP BY 1"', "delta 4.68e-09"),
        ("rho.toml check --preview", "holds 295 different"),
        ("rho.toml budget create", "rho 0 of 1.478"),
    ],
)
def test_the_theorem_is_what_the_program_prints(words: str, figure: str) -> None:
    assert any(words in example.command and figure in example.shown for example in transcripts(PAGE))
