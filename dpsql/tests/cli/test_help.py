"""Every command explains itself, and the manual knows every command and every code."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
import psycopg
import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.cli.faults import EXIT_CODES
from dpsql.errors import CODES, ON_THE_WIRE
from dpsql.policy import parse_policy

from ..docs.documents import blocks, text


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        assert command.name == name
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = dict(commands(program))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_a_command_has_help(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(program, [*path, "--help"])
    assert result.exit_code == 0
    assert ALL[path].help
    for parameter in ALL[path].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.name} has no help"


def test_a_command_loads_its_own_module_alone() -> None:
    """What the program loads at every start is none of what the engine, the server or a command needs."""
    told = "import sys, dpsql.cli.application as a; {}; print(*sorted(m for m in sys.modules if m in {!r}))"
    heavy = (
        "numpy",
        "sqlglot",
        "duckdb",
        "asyncio",
        "dpsql.policy.model",
        "dpsql.cli.budget",
        "dpsql.cli.query",
        "dpsql.cli.serve",
    )
    for act, loaded in (
        ("pass", ""),
        ("a.program.get_command(None, 'docs')", ""),
        ("a.program.get_command(None, 'nothing')", ""),
        ("a.program.main(['--help'], standalone_mode=False)", ""),
        ("a.program.get_command(None, 'query')", "dpsql.cli.query"),
        ("a.program.main(['query', '--help'], standalone_mode=False)", "dpsql.cli.query"),
    ):
        run = [sys.executable, "-c", told.format(act, heavy)]
        told_last = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        assert told_last == loaded


def test_the_list_of_commands_says_what_they_say_themselves() -> None:
    """Each has its line in a table, so that `--help` loads none of them."""
    result = CliRunner().invoke(program, ["--help"], terminal_width=400)
    for path, command in ALL.items():
        if len(path) == 1:
            line = re.search(rf"^  {path[0]}  +(.*)$", result.output, re.MULTILINE)
            assert line is not None
            assert line[1] == command.get_short_help_str(line.end(1) - line.start(1) + 1)
            assert not command.hidden


def test_what_is_asked_of_the_ledger_loads_no_engine(campus: Path) -> None:
    told = (
        "import sys, dpsql.cli.application as a\n"
        "a.program.main(['-P', {!r}, 'budget', 'show'], standalone_mode=False)\n"
        "print(*sorted(m for m in sys.modules if m in {!r}))"
    )
    spared = (
        "duckdb",
        "dpsql.engine.dataset",
        "dpsql.engine.session",
        "dpsql.plan.planner",
        "dpsql.postprocess",
    )
    run = [sys.executable, "-c", told.format(str(campus), spared)]
    told_last = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    assert told_last == ""


def test_a_query_loads_what_it_needs_alone(campus: Path) -> None:
    """Not the parts of the program that other commands, other engines and Python's own servers are for; nor, where the
    answer is stored, what verifies a plan before it is charged."""
    sql = "SELECT major, COUNT(*), AVG(gpa) FROM student GROUP BY major"
    told = (
        "import sys, dpsql.cli.application as a\n"
        "a.program.main(['-P', {!r}, 'query', {!r}], standalone_mode=False)\n"
        "print(*sorted(m for m in sys.modules if m in {!r} or m.startswith('dpsql.server')))"
    )
    spared = (
        "asyncio",
        "http.client",
        "xml.sax",
        "psycopg",
        "numpy.ma",
        "pandas",
        "pyarrow",
        "dpsql.cli.budget",
        "dpsql.cli.prompt",
        "dpsql.engine.asserted_keys",
        "dpsql.engine.audit",
        "dpsql.engine.batch",
        "dpsql.engine.bounds",
        "dpsql.engine.explain",
        "dpsql.backends.postgres_backend",
        "dpsql.backends.spark_backend",
        "dpsql.budget.postgres_ledger",
    )
    run = [sys.executable, "-c", told.format(str(campus), sql, (*spared, "dpsql.verify"))]
    for loaded in ("dpsql.verify", ""):
        assert (
            subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()[-1] == loaded
        )


def test_the_program_has_help() -> None:
    result = CliRunner().invoke(program, ["--help"])
    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.output for name in program.list_commands(click.Context(program)))
    assert "not an identity" in " ".join(result.output.split())


@pytest.mark.parametrize(
    "path", [path for path, command in ALL.items() if not isinstance(command, click.Group)]
)
def test_the_manual_names_the_command(path: tuple[str, ...]) -> None:
    assert f"| `dpsql {' '.join(path)}` |" in text("owner")


def test_the_manual_lists_the_codes_as_they_are() -> None:
    assert re.findall(r"^## ([0-9A-Z]{5}) (.*)$", text("errors"), re.MULTILINE) == list(CODES.items())


@pytest.mark.parametrize("code", CODES)
def test_help_says_of_a_code_why_and_what_helps(code: str) -> None:
    for written in (code, code.lower()):
        shown = CliRunner().invoke(program, ["help", written]).output
        assert shown.startswith(f"## {code} {CODES[code]}\n")
        assert len(re.findall(r"^## ", shown, re.MULTILINE)) == 1
        assert "\n**Why.** " in shown
        assert "\n**What helps.** " in shown


@pytest.mark.parametrize("path", [(), ("query",), ("budget",), ("budget", "create")])
def test_help_shows_a_commands_options(path: tuple[str, ...]) -> None:
    runner = CliRunner()
    shown, own = (runner.invoke(program, arguments) for arguments in (["help", *path], [*path, "--help"]))
    assert (shown.exit_code, shown.output.split()) == (0, own.output.split())


@pytest.mark.parametrize("about", [("PV999",), ("budget", "destroy"), ("query", "create")])
def test_help_about_nothing_says_where_to_look(about: tuple[str, ...]) -> None:
    result = CliRunner().invoke(program, ["help", *about])
    assert result.exit_code == 2
    assert f"{' '.join(about)} is neither an error's code nor a command; dpsql docs errors" in result.output


def test_the_manual_says_what_is_sent_over_the_wire() -> None:
    lists = re.findall(
        r"^- `([0-9A-Z]{5})` for .*?: (`.*)$|^- `([0-9A-Z]{5})` where .*?: (`.*)$",
        text("errors"),
        re.MULTILINE,
    )
    told = {
        code: one or other
        for one, some, other, more in lists
        for code in re.findall(r"`([0-9A-Z]{5})`", some or more)
    }
    assert told == ON_THE_WIRE
    assert set(ON_THE_WIRE) == {code for code in CODES if "V" in (code[0], code[1], code[2])}
    assert all(psycopg.errors.lookup(code) for code in ON_THE_WIRE.values())


def test_exit_codes_are_told_everywhere() -> None:
    told = re.compile(r"Exit codes: 0 answered, 1 a bug .*2 wrong usage(.*?)\. Ctrl-C", re.DOTALL)
    for where in (text("errors"), CliRunner().invoke(program, ["--help"]).output):
        found = told.search(where)
        assert found
        assert [int(code) for code in re.findall(r"\d", found[1])] == [code for _, code in EXIT_CODES]


@pytest.mark.parametrize("document", ["README", "owner"])
def test_the_policy_that_is_shown_is_a_policy(document: str) -> None:
    policy = parse_policy(blocks(document, "toml")[0], Path("campus.toml"))
    assert set(policy.tables) == {"student", "loan", "course"}


def test_version() -> None:
    assert CliRunner().invoke(program, ["--version"]).output == f"dpsql, version {version('dpsql')}\n"


def test_help_loads_no_engine() -> None:
    code = (
        "import sys, dpsql.cli; "
        "print(sorted({'duckdb', 'sqlglot', 'numpy', 'prompt_toolkit'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
