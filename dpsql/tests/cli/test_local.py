"""`dpsql local`: files of answers on the respondents' side, and estimates without a policy."""

from __future__ import annotations

import csv
import math
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.mechanisms import Channel
from dpsql.mechanisms.randomized_response import unary_bit

COIN = ["--column", "drug", "--values", "a,b,c"]
EPSILON = [*COIN, "--epsilon", "1"]


def local(*arguments: str | Path) -> Result:
    return CliRunner().invoke(program, ["local", *map(str, arguments)])


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    rows = "".join(f'{i},{"aabc"[i % 4]},"a, ""b"""\n' for i in range(2_000))
    path.write_text(f"id,drug,note\n{rows}", encoding="utf-8")
    return path


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


def test_a_column_is_randomised_and_the_others_stay(answers: Path) -> None:
    before = answers.read_bytes()
    result = local(answers, *EPSILON)
    assert result.exit_code == 0
    assert answers.read_bytes() == before
    sent, true = rows_of(result.stdout), rows_of(before.decode())
    assert [row[::2] for row in sent] == [row[::2] for row in true]
    kept = sum(one[1] == other[1] for one, other in zip(sent[1:], true[1:], strict=True)) / 2_000
    assert abs(kept - float(Channel.of_epsilon(3, 1).p)) < 5 * math.sqrt(0.25 / 2_000)  # type: ignore[arg-type]
    assert "loss 1 for each answer, towards everybody" in result.stderr
    assert "sent as they are: id, note" in result.stderr
    assert "one value for each answer has the smaller error: 3 < 3 e^epsilon + 2 = 10.2" in result.stderr
    assert '"drug" = { values = ["a", "b", "c"], randomized = { epsilon = 1 } }' in result.stderr


def test_the_short_form_is_the_long_one(answers: Path) -> None:
    assert local("randomize", answers, *EPSILON).stderr == local(answers, *EPSILON).stderr


def test_a_bit_for_each_value(answers: Path, tmp_path: Path) -> None:
    result = local(answers, *EPSILON, "--bits")
    sent = rows_of(result.stdout)
    assert sent[0] == ["id", "drug_a", "drug_b", "drug_c", "note"]
    assert {cell for row in sent[1:] for cell in row[1:4]} == {"true", "false"}
    q = unary_bit(1).q  # type: ignore[arg-type]
    assert f"randomized = {{ p = 0.5, q = {float(q):.9f} }}" in result.stderr
    (tmp_path / "sent.csv").write_text(result.stdout)
    check_estimates(local("estimate", tmp_path / "sent.csv", *EPSILON, "--bits"))


@pytest.mark.parametrize("coins", [["--epsilon", "1"], ["--p", "0.75"]])
def test_estimates_are_near_the_truth(answers: Path, tmp_path: Path, coins: list[str]) -> None:
    (tmp_path / "sent.csv").write_text(local(answers, *COIN, *coins).stdout)
    check_estimates(local("estimate", tmp_path / "sent.csv", *COIN, *coins))


def check_estimates(result: Result) -> None:
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[-1] == ["(2000", "answers)"]
    for (_, _, estimate, half), truth in zip(lines[1:-1], (1000, 500, 500), strict=True):
        assert abs(float(estimate) - truth) < 3 * float(half)  # once in 10^8
        assert 0 < float(half) < 250


def test_an_estimate_is_the_inverse_of_the_channel(tmp_path: Path) -> None:
    path = tmp_path / "sent.csv"
    path.write_text("smokes\n" + "yes\n" * 60 + "no\n" * 40)
    result = local("estimate", path, "--column", "smokes", "--values", "yes,no", "--p", "0.75")
    assert re.search(r"^yes +60 +70\.0 +17\.0$", result.stdout, re.MULTILINE)  # (60 - 100 / 4) / (1 / 2)
    assert re.search(r"^no +40 +30\.0 +17\.0$", result.stdout, re.MULTILINE)


WRONG = {
    "id,drug\n1,a\n2,x\n": "row 3: the answer is not one of --values",
    "id,drug\n1,a\n2\n": "row 3: 1 cells, and the header has 2",
    "id,drug\n1,\n": "row 2: the answer is not one of --values",
    "id,drog\n1,a\n": 'no column "drug"',
    "drug,drug\na,a\n": 'more than one column "drug"',
    "": "is empty",
    'drug\n"a': "no CSV file",
    "drug\n\udcff\n": "no CSV file in UTF-8",
}


@pytest.mark.parametrize(("content", "said"), WRONG.items())
@pytest.mark.parametrize("command", ["randomize", "estimate"])
def test_bad_files_are_told_and_nothing_is_written(
    tmp_path: Path, command: str, content: str, said: str
) -> None:
    path = tmp_path / "answers.csv"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    result = local(command, path, *EPSILON)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""
    assert "x" not in result.stderr.split("answers.csv")[-1]  # nobody's answer


def test_no_file_and_no_right_to_read(tmp_path: Path) -> None:
    result = local(tmp_path / "none.csv", *EPSILON)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be read" in result.stderr


OPTIONS = {
    "--values a,b --epsilon 1 --p 0.75": "not both",
    "--values a,b": "not both",
    "--values a --p 0.75": "two or more",
    "--values a,b,a --p 0.75": "listed twice",
    "--values a,b --p 0.5": "likelier",
    "--values a,b --p 1": "likelier",
    "--values a,b --epsilon 0": "epsilon is above 0",
    "--values a,b --epsilon 99": "at most 50",
    "--values a,b --epsilon 1e3": "plain decimal",
    "--values a,b --epsilon nan": "plain decimal",
    "--values a,b --epsilon -1": "plain decimal",
    "--values a,b --p 0.75 --bits": "--bits goes with --epsilon",
    '--values "a --p 0.75': "list with commas",
}


@pytest.mark.parametrize(("options", "said"), OPTIONS.items())
def test_bad_options_are_told(answers: Path, options: str, said: str) -> None:
    result = local(answers, "--column", "drug", *options.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert said.lower() in result.stderr.lower()


def test_names_that_would_meet(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("drug,drug_a\na,1\n")
    assert "would be sent" in local(path, *EPSILON, "--bits").stderr


def test_nothing_is_kept(answers: Path) -> None:
    before = set(os.listdir(answers.parent))
    local(answers, *EPSILON)
    assert set(os.listdir(answers.parent)) == before


def test_the_errors_are_those_of_the_formulas() -> None:
    """Central: ± 3 people at epsilon 1; local: the coins' deviation at a share of 1 / k, by their p and q."""
    lines = local("errors", "--epsilon", "1").stdout.splitlines()
    shown = [[float(cell.rstrip("*")) for cell in line.split()] for line in lines[1:4]]
    for people, central, two, five, *_ in shown:
        assert central == pytest.approx(3 / people)
        for size, found in ((2, two), (5, five)):
            p = math.e / (math.e + size - 1)
            q = 1 / (math.e + size - 1)
            variance = (p * (1 - p) + (size - 1) * q * (1 - q)) / size / (p - q) ** 2
            assert found == pytest.approx(1.96 * math.sqrt(variance / people), rel=0.05)
    assert shown[0][1] / shown[2][1] == pytest.approx(10_000)
    assert shown[0][2] / shown[2][2] == pytest.approx(100, rel=0.05)


def test_the_manual_has_its_table() -> None:
    printed = local("errors", "--epsilon", "1").stdout
    assert printed in local_section()


def local_section() -> str:
    return CliRunner().invoke(program, ["docs", "owner", "answers that are randomised"]).output
