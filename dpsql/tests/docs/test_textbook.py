"""The textbook's page: every block is run in its order, and every figure is what is printed or what its formula says."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.cli.demo import EXERCISES, Figure, Statement, Word, as_notebook
from dpsql.cli.docs import parts_of, read_part, read_section, read_topic

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
        elif language == "sql":  # of a solution: test_a_solution_is_right
            assert page[: match.start()].rstrip().splitlines()[-1].startswith("## Solution ")
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
        f"between {100 / (1 + math.exp(0.1)):.1f} and {100 / (1 + math.exp(-0.1)):.1f} % after an answer at epsilon 0.1",
        f"between {100 / (1 + math.e):.0f} and {100 / (1 + 1 / math.e):.0f} % after ten",
        f"ln(40) / (2 · 0.25 · 0.0001) = {math.ceil(math.log(40) / (2 * 0.25 * 0.0001)):,} people",
        "sum and count | by x and 1 | 5 | √17 |",
        "two bars by 1 | 2 | √2 |",
    ],
)
def test_a_figure_of_the_text_is_its_formula(words: str) -> None:
    assert words in " ".join(text(PAGE).split())


def test_the_differencing_attack() -> None:
    first, second = (
        float(NUMBER.findall(example.shown.split("\n")[2])[0])
        for example in transcripts_of("".join(BLOCK.findall(section(PAGE, "Differencing"))[2][1]))
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


ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| (?:`(.*)`|a proof|text|left out) \|$", re.MULTILINE)
"""A row of the table of concepts: the concept, the section's heading, and what runs there, if anything."""
PARTS = parts_of(PAGE)
WITHOUT_CONCEPTS = ("exercises", "solutions")


def concepts() -> list[tuple[str, str, str]]:
    table = section(PAGE, "Concepts").split("\n|---|---|---|\n")[1].split("\n# ")[0].strip().splitlines()
    rows = [ROW.fullmatch(line) for line in table]
    assert all(rows), [line for line, row in zip(table, rows, strict=True) if not row]
    return [(row[1], row[2], row[3] or "") for row in rows if row]


def test_there_are_sixty_concepts_and_each_is_named_once() -> None:
    names = [name for name, _, _ in concepts()]
    assert len(names) >= 60
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("concept", "heading", "statement"), concepts(), ids=lambda value: value[:30])
def test_a_concept_has_its_section_and_what_runs_there(concept: str, heading: str, statement: str) -> None:
    body = section(PAGE, heading)
    blocks = " ".join(" ".join(block for _, block in BLOCK.findall(body)).replace("\\\n", " ").split())
    assert statement in blocks
    if f"| {heading} | a proof |" in text(PAGE):
        assert "□" in body
    if f"| {heading} | left out |" in text(PAGE):
        words = re.sub(r"[`*\n]", " ", body).casefold()
        assert concept.replace("`", "").split(",")[0].split(" (")[0].casefold() in " ".join(words.split())


def test_every_section_is_in_the_table_of_concepts() -> None:
    headings = {
        heading
        for part in PARTS
        if part not in WITHOUT_CONCEPTS
        for heading in re.findall(r"^## (.*)$", re.sub(BLOCK, "", read_part(PAGE, part)), re.MULTILINE)
    }
    assert headings == {heading for _, heading, _ in concepts()}


def test_every_theorem_has_its_proof_or_its_source() -> None:
    """A theorem ends in □ before the next, but for four: what is proved elsewhere in the section, and two papers'."""
    whole = text(PAGE)
    papers = re.findall(r"\*\*Theorem\*\* \((?:Ghosh|Brenner)", whole)
    assert len(papers) == 2
    assert whole.count("**Theorem") - len(papers) <= whole.count("□")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(program, ["textbook", *arguments])
    return result.exit_code, result.output


def test_the_exercises_are_those_that_are_checked_and_solved() -> None:
    for part, lead in (("exercises", "## "), ("solutions", "## Solution ")):
        found = re.findall(rf"^{lead}(\d\.\d)\b", read_part(PAGE, part), re.MULTILINE)
        assert found == list(EXERCISES)
    numbered = dict(re.findall(r"^\| (\d) \| \[([a-z-]+)\]", read_topic(PAGE), re.MULTILINE))
    assert {number[0] for number in EXERCISES} == set(numbered)
    assert run()[1].splitlines() == re.findall(r"^## (.*)$", read_part(PAGE, "exercises"), re.MULTILINE)
    assert run("3.2")[1].startswith("## 3.2 ")
    assert run("3.2", "--solution")[1].startswith("## Solution 3.2\n")
    assert run("9.9") == (2, run("9.9")[1])


@pytest.mark.parametrize(
    "number", [number for number, check in EXERCISES.items() if isinstance(check, Figure)]
)
def test_a_figure_of_a_solution_is_right_and_others_are_not(number: str) -> None:
    check = EXERCISES[number]
    assert isinstance(check, Figure)
    solution = read_section(PAGE, f"Solution {number}")
    assert solution is not None
    written = [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", solution)]
    assert any(math.isclose(one, check.value, rel_tol=0.005) for one in written), (written, check.value)
    assert run(number, f"{check.value:.4g}") == (0, "Right.\n")
    assert run(number, f"{check.value * 1.03:.6g}") == (2, "Not right. That is too large.\n")
    assert run(number, f"{check.value * 0.97:.6g}") == (2, "Not right. That is too small.\n")
    for nonsense in ("nan", "about two"):
        assert run(number, nonsense)[0] == 2


def test_a_word_is_right_in_either_case() -> None:
    (number,) = [number for number, check in EXERCISES.items() if isinstance(check, Word)]
    assert run(number, "pv002") == (0, "Right.\n")
    assert run(number, "PV003") == (2, "Not right. That is another.\n")


STATEMENTS = {number: check for number, check in EXERCISES.items() if isinstance(check, Statement)}


def test_a_solution_is_right(reader: Path) -> None:
    """Each is what its page shows, answered as such, and nothing is charged for it."""
    before = CliRunner().invoke(program, ["-P", "demo/campus.toml", "budget", "show"]).output
    for number, check in STATEMENTS.items():
        (shown,) = re.findall(
            r"```sql\n(.*?)\n```", read_section(PAGE, f"Solution {number}") or "", re.DOTALL
        )
        assert " ".join(shown.split()) == check.solution
        assert run(number, shown) == (0, "Right.\n")
    assert CliRunner().invoke(program, ["-P", "demo/campus.toml", "budget", "show"]).output == before


@pytest.mark.parametrize(
    ("number", "statement", "said"),
    [
        ("3.2", "SELECT enrolled, COUNT(*) FROM student GROUP BY enrolled", "does not say 'complementary sums'"),
        ("3.2", "SELECT major, COUNT(*), SUM(gpa) FROM student GROUP BY major", "6 rows, and 7 were asked for"),
        ("3.2", "SELECT enrolled, COUNT(*), SUM(gpa), AVG(gpa) FROM student GROUP BY enrolled", "4 columns, and 3"),
        ("3.2", "SELECT enrolled, 1 + COUNT(*), SUM(gpa) FROM student GROUP BY enrolled", "numbers are others"),
        ("4.2", "SELECT COUNT(*) FROM enrolment", "sensitivity is 12"),
        ("4.2", "SELECT COUNT(*) FROM course", "measures nothing of people"),
        ("5.2", "SELECT course_id, COUNT(DISTINCT student_id) AS n FROM enrolment GROUP BY course_id", "does not say"),
    ],
)  # fmt: skip
def test_a_wrong_statement_is_told_what_is_wrong(
    reader: Path, number: str, statement: str, said: str
) -> None:
    code, output = run(number, statement)
    assert (code, said in output) == (2, True), output


def test_a_refused_statement_and_a_missing_demo(reader: Path) -> None:
    result = CliRunner().invoke(program, ["textbook", "3.2", "SELECT name FROM student"])
    assert (result.exit_code, "PV002" in result.output) == (3, True)
    assert "dpsql demo nowhere" in run("3.2", "SELECT 1", "--demo", "nowhere")[1]


def test_the_notebook_has_every_block_and_all_text(tmp_path: Path) -> None:
    cells = json.loads(as_notebook())["cells"]
    code = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
    whole = text(PAGE)
    commands = [example.command for example in transcripts(PAGE)]
    assert [
        line.removeprefix("!") for line in re.findall(r"^!(?:.*\\\n)*.*$", code, re.MULTILINE)
    ] == commands
    for language, body in BLOCK.findall(whole):
        if language in ("python", "toml"):
            assert body.rstrip() in code
    shown = "".join(output["text"] for cell in cells for output in cell.get("outputs", []))
    assert all(body in shown for language, body in BLOCK.findall(whole) if language == "output")
    words = " ".join(" ".join(c["source"] for c in cells if c["cell_type"] == "markdown").split())
    for paragraph in re.sub(BLOCK, "", whole).split("\n\n"):
        assert " ".join(paragraph.split()) in words
    target = tmp_path / "book.ipynb"
    assert run("--notebook", str(target))[0] == 0
    assert target.read_text("utf-8") == as_notebook()
    assert run("--notebook", str(target))[0] == 2
