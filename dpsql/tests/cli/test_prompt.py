"""The prompt: its commands, what Tab offers, what a mistyped name may mean."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from dpsql.cli import interrupts, prompt
from dpsql.cli.application import program
from dpsql.cli.prompt import COMMANDS, Prompt, SqlCompleter, read_command
from dpsql.cli.query import ask
from dpsql.cli.render import View
from dpsql.cli.worker import RunningSession, open_session
from dpsql.engine.session import Session
from dpsql.engine.settings import NAMES, SETTINGS, Offers
from dpsql.errors import Refusal
from dpsql.words import meant

from .conftest import COUNT, ENDLESS

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def running(campus: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningSession]:
    monkeypatch.setenv("COLUMNS", "80")
    for module in ("query", "terminal"):
        monkeypatch.setattr(f"dpsql.cli.{module}.is_read_by_people", lambda: True)
    with open_session(campus, "local") as one:
        one.run(one.session.execute, "SET dpsql.intervals = 0.95")
        yield one


@pytest.fixture
def typed(running: RunningSession, capsys: Capture) -> Callable[[str], tuple[str, str]]:
    """Type a text at one prompt; return what is shown and what is told."""
    view = View("table")
    one = Prompt(running, view, lambda text, piece: ask(running, text, piece, view, ()))

    def type_(text: str) -> tuple[str, str]:
        assert one.take(text)
        shown = capsys.readouterr()
        return shown.out, shown.err

    type_.prompt = one  # type: ignore[attr-defined]
    return type_


Typed = Callable[[str], tuple[str, str]]


def spent(running: RunningSession) -> int:
    return running.run(running.session.budget).epsilon_spent_nano


def test_what_ends_the_prompt(running: RunningSession) -> None:
    one = Prompt(running, View("table"), lambda *_: pytest.fail("nothing is run"))
    assert [one.take(text) for text in ("\\q", "quit;", " exit ")] == [False] * 3


def test_tables_and_what_may_be_asked_of_columns(typed: Typed) -> None:
    tables, _ = typed("\\d")
    assert [line.split("|")[0].strip() for line in tables.splitlines()[2:3]] == ["student"]
    assert "course    | public, nobody's data" in tables
    columns, _ = typed("\\d+ student;")
    names = [line.split("|")[0].strip() for line in columns.splitlines()]
    assert {"id", "name", "gpa", "major", "enrolled", "born"} <= set(names)
    assert "bounds 2 to 4, step 0.01; COUNT, SUM, AVG" in columns
    assert "whose row it is" in columns
    assert max(map(len, columns.splitlines())) <= 80
    assert typed("\\d studnt")[0] == 'there is no table "studnt"; did you mean student?\n'
    assert typed("\\d \x1b[2J")[0] == 'there is no table "\\x1b[2J"; \\d lists them\n'


def test_what_people_type_who_come_from_another_prompt(typed: Typed) -> None:
    shown, told = typed("SHOW TABLES;")
    assert ("student" in shown, "course" in shown, told) == (True, True, "")
    shown, told = typed("DESCRIBE student;")
    assert ("whose row it is" in shown, told) == (True, "")
    shown, told = typed("SELECT column_name FROM information_schema.columns WHERE table_name = 'student';")
    assert ("gpa" in shown, told) == (True, "")
    assert typed("help")[0] == typed("\\?")[0]
    for asked in ("help pv005;", "\\? PV005", "\\h PV005", "? PV005"):
        assert typed(asked)[0].startswith("## PV005 a group key would single out people\n")
    told = typed("DESCRIBE nobody;")[1]
    assert ('table "nobody" does not exist' in told, "HINT: tables: " in told) == (True, True)


def test_a_value_that_is_not_listed_is_asked_about(campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT COUNT(*) FROM student WHERE major = 'C.S.';"
    said: list[str] = []

    def loop(running: RunningSession, view: View, run: Callable[..., object]) -> None:
        for reply in (False, True):
            monkeypatch.setattr(
                "dpsql.cli.query.click.confirm", lambda text, err, reply=reply: said.append(text) or reply
            )
            Prompt(running, view, run).take(sql)  # type: ignore[arg-type]
            said.append(str(running.session.budget().epsilon_spent_nano))
        assert running.session.settings.unlisted is False

    monkeypatch.setattr("dpsql.cli.prompt.prompt_loop", loop)
    monkeypatch.setattr("dpsql.cli.query.script_text", lambda *_: None)
    result = CliRunner().invoke(program, ["-P", str(campus), "query"])
    assert (result.exit_code, said) == (0, ["Ask it all the same?", "0", "Ask it all the same?", "100000000"])


def test_a_line_for_each_value(typed: Typed) -> None:
    assert typed("\\x")[1] == "A line for each value: on\n"
    shown, _ = typed("SELECT major, COUNT(*) AS n FROM student GROUP BY major LIMIT 2;")
    lines = shown.splitlines()
    assert lines[0].startswith("-[ row 1 ]---")
    assert lines[1] == "major | Biology"
    assert lines[2].startswith("n     | ")
    assert lines[2].endswith(" ± 30")
    assert lines[-1] == "(2 rows)"


def test_timing_and_format(typed: Typed) -> None:
    assert typed("\\timing")[1] == "Timing: on\n"
    assert typed("SELECT 1;")[1].splitlines()[-1].startswith("Time: ")
    assert typed("\\timing")[1] == "Timing: off\n"
    assert typed("\\format csv")[1] == "Answers are printed as csv\n"
    assert typed("SELECT 1 AS x;")[0] == "x\n1\n"
    assert typed("\\format xml")[1] == "the formats are table, csv, json, markdown, chart\n"


def test_a_failed_statement_is_told_and_ends_its_line(typed: Typed) -> None:
    out, err = typed("SELECT name FROM student; SELECT 1;")
    assert out == ""
    assert err.startswith("ERROR PV002 at 1:8")


def times(number: int) -> Callable[[float], Iterator[None]]:
    return lambda _: iter([None] * number)


@pytest.mark.parametrize("text", [f"{COUNT}; \\watch 1", f"{COUNT} \\watch"])
def test_watching_is_free(
    running: RunningSession, typed: Typed, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(prompt, "_again", times(3))
    out, err = typed(text)
    assert out.count("(1 row)") == 4
    assert err.count("charged epsilon 0.1") == 1
    assert err.count("free: answered from stored releases") == 3
    assert spent(running) == 10**8


def test_watching_what_would_be_charged_each_time(
    running: RunningSession, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt, "_again", times(3))
    assert typed("\\watch")[1] == "There is no statement to watch yet\n"
    typed(f"{COUNT};")
    typed("SET dpsql.reuse = off;")
    assert typed("\\watch")[1].startswith("dpsql.reuse is off")
    assert typed("\\watch soon")[1] == "\\watch takes a number of seconds, from 0.1 on\n"
    typed("SET dpsql.reuse = on;")
    typed(f"{COUNT};")
    typed.prompt.last = "SELECT COUNT(*) FROM loan;"  # type: ignore[attr-defined]
    out, err = typed("\\watch")
    assert out.count("(1 row)") == 1
    assert err.endswith("This was charged, so it is not asked again\n")
    assert spent(running) == 2 * 10**8


def test_control_c_ends_watching() -> None:
    turns = 0
    for _ in prompt._again(3600):
        turns += 1
        threading.Timer(0.2, interrupts.note).start()
    assert turns == 1
    assert not interrupts.has_come()


def test_editing(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    typed("SELECT 1 AS x;")
    monkeypatch.setattr(click, "edit", lambda text, extension: text.replace("1", "2"))
    assert "        2\n" not in typed("SELECT 1 AS x;")[0]
    assert " x\n---\n 2\n" in typed("\\e")[0]
    monkeypatch.setattr(click, "edit", lambda text, extension: "SELECT 3 AS")
    typed("\\e")
    assert typed.prompt.pending == "SELECT 3 AS"  # type: ignore[attr-defined]
    monkeypatch.setattr(click, "edit", lambda text, extension: None)
    assert typed("\\e") == ("", "Nothing was changed, and nothing was run\n")

    def fails(*_: object, **__: object) -> None:
        raise click.ClickException("no editor")

    monkeypatch.setattr(click, "edit", fails)
    assert typed("\\e")[1] == "no editor\n"


def test_help_lists_every_command(typed: Typed) -> None:
    shown, _ = typed("\\?")
    assert all(f"\\{command.name}" in shown for command in COMMANDS)
    assert max(map(len, shown.splitlines())) <= 80
    assert typed("\\tming")[1] == "there is no \\tming; did you mean \\timing? \\? lists them\n"
    assert isinstance(read_command("\\"), str)


def test_what_is_longer_than_the_screen_is_paged(
    running: RunningSession, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("LINES", "10")
    paged: list[str] = []
    monkeypatch.setattr(click, "echo_via_pager", lambda text, color: paged.append(text))
    from dpsql.cli.render import show

    show("\n".join("abcdefghijklm"), View("table", is_paged=True))
    show("a", View("table", is_paged=True))
    show("\n".join("abcdefghijklm"), View("table"))
    assert len(paged) == 1
    assert capsys.readouterr().out.count("m") == 1


# --- completion ------------------------------------------------------------------------------------------------


@pytest.fixture
def offered(campus: Path) -> Iterator[Callable[[str], dict[str, str]]]:
    with Session.open(campus) as session:
        completer = SqlCompleter(Offers(session))

        def offer(before: str, after: str = "") -> dict[str, str]:
            document = Document(before + after, len(before))
            found = completer.get_completions(document, CompleteEvent(completion_requested=True))
            return {one.text: one.display_meta_text for one in found}

        yield offer


def test_completion(offered: Callable[..., dict[str, str]]) -> None:
    assert set(offered("SELECT COUNT(*) FROM ")) == {"student", "loan", "enrolment", "review", "course"}
    assert set(offered("\\d st")) == {"student"}
    assert "private, one row per unit" in offered("SELECT 1 FROM student JOIN st")["student"]
    assert set(offered("SET dpsql.")) == set(NAMES)
    assert offered("SHOW dpsql.ep") == {"dpsql.epsilon": "what a statement may spend"}
    gpa = offered("SELECT AVG(g", ") FROM student")["gpa"]
    assert gpa.startswith("bounds 2 to 4, step 0.01; COUNT, SUM")
    assert "days_out" not in offered("SELECT ", " FROM student")
    assert "days_out" in offered("SELECT ", " FROM loan")
    assert set(offered("SELECT student.g")) == {"student.gpa"}
    assert "date_trunc(" in offered("SELECT date_tr")["date_trunc"]
    assert {"SUM", "SELECT"} <= set(offered("S"))
    assert "where" in offered("select count(*) from student wh")
    assert set(offered("\\t")) == {"\\timing"}
    assert offered("SELECT 'x' \\t") == {}


def test_settings_have_a_meaning() -> None:
    assert set(SETTINGS) == set(NAMES)


# --- did you mean ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELECT COUNT(*) FROM studnt", "student"),
        ("SELECT AVG(gap) FROM student", "gpa"),
        ("SELECT COUNT(*) FROM student WHERE student.majr = 'CS'", "major"),
        ("SET dpsql.epsilo = 1", "dpsql.epsilon"),
        ("SELECT COUNT(*) FORM student", "FROM"),
        ("SELECT major, COUNT(*) FROM student GROUPBY major", "GROUP BY"),
        ("SELECT COUNT(*) FROM student WEHRE gpa > 3", "WHERE"),
        ("SELECT COUNT(*) FROM x_1", None),
        ("SELECT COUNT(*) FROM student WHERE (gpa > 3", None),
        ("SELECT name FROM student", None),
    ],
)
def test_what_is_meant(campus: Path, sql: str, name: str | None) -> None:
    with Session.open(campus) as session, pytest.raises(Refusal) as caught:
        session.execute(sql)
    assert meant(caught.value, sql) == name


# --- at a real terminal ----------------------------------------------------------------------------------------


def test_at_a_real_terminal(campus: Path, tmp_path: Path) -> None:
    """Typed letter by letter: a table is completed, its columns are listed, Ctrl-C stops a statement alone."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "TERM": "xterm"}
    environment |= {"PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "100", "LINES": "40"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(
            sys.executable, [sys.executable, "-m", "dpsql.cli", "-P", str(campus), "query"], environment
        )
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    deadline = threading.Timer(120, partial(os.kill, pid, 9))
    deadline.start()
    shown = b""

    def wait_for(wanted: bytes) -> None:
        nonlocal shown
        while wanted not in shown:
            shown += os.read(terminal, 10_000)
        shown = shown.split(wanted, 1)[1]

    wait_for(b"10 of 10 epsilon left.")
    wait_for(b"dpsql>")
    os.write(terminal, b"\\d stu\t")
    wait_for(b"dent")
    os.write(terminal, b"\r")
    wait_for(b"bounds 2 to 4, step 0.01")
    wait_for(b"dpsql>")
    os.write(terminal, f"{ENDLESS};\r".encode())
    wait_for(b" computing from the noisy numbers, ")
    os.write(terminal, b"\x03")
    wait_for(b"DETAIL: epsilon 0.1 was charged")
    wait_for(b"dpsql>")
    os.write(terminal, b"\\q\r")
    _, status = os.waitpid(pid, 0)
    deadline.cancel()
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
