"""How an error leaves: its code, its caret, and never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dpsql.cli.faults import EXIT_CODES, error_json, error_text, exit_code
from dpsql.errors import (
    BudgetExhausted,
    DpsqlError,
    EngineFailure,
    LedgerError,
    PolicyError,
    Position,
    Refusal,
)


def refusal(position: Position | None) -> Refusal:
    return Refusal(
        'column "name" is private and is not inside an aggregate',
        sqlstate="PV002",
        hint="aggregate it, or declare it as public keys",
        position=position,
    )


def test_caret() -> None:
    assert error_text(refusal(Position(1, 8, 7)), "SELECT name FROM orders").split("\n") == [
        'ERROR PV002 at 1:8: column "name" is private and is not inside an aggregate',
        "  SELECT name FROM orders",
        "         ^",
        "HINT: aggregate it, or declare it as public keys",
    ]


def test_place_in_a_script() -> None:
    source = "SET a = 1;\n\tSELECT 日,\n  name FROM t"
    start = source.index("SELECT")
    assert error_text(refusal(Position(1, 8, 7)), source, start).split("\n")[:3] == [
        'ERROR PV002 at 2:9: column "name" is private and is not inside an aggregate',
        "   SELECT 日,",
        "          ^",
    ]
    assert error_text(refusal(Position(2, 3, 12)), source, start).split("\n")[:3] == [
        'ERROR PV002 at 3:3: column "name" is private and is not inside an aggregate',
        "    name FROM t",
        "    ^",
    ]


def test_caret_under_wide_and_unprintable_text() -> None:
    source = "SELECT '日\x1b', name"
    lines = error_text(refusal(Position(1, 14, 13)), source).split("\n")
    assert lines[1] == "  SELECT '日\\x1b', name"
    assert lines[2] == " " * (2 + len("SELECT '") + 2 + len("\\x1b', ")) + "^"


def test_without_a_place() -> None:
    assert error_text(BudgetExhausted("needs 1, left 0")) == "ERROR 53V01: needs 1, left 0"
    assert error_text(refusal(Position(9, 1, 99)), "SELECT 1").startswith("ERROR PV002: ")


def test_json() -> None:
    body = json.loads(error_json(refusal(Position(1, 8, 7)), "SELECT name"))["error"]
    assert (body["code"], body["line"], body["column"], body["exit"]) == ("PV002", 1, 8, 3)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refusal("x"), 3),
        (BudgetExhausted("x"), 4),
        (PolicyError("x"), 5),
        (EngineFailure("x"), 6),
        (EngineFailure(sqlstate="57014"), 6),
        (LedgerError("x"), 7),
        (DpsqlError("x"), 1),
    ],
)
def test_exit_codes(error: DpsqlError, code: int) -> None:
    assert exit_code(error) == code


def test_every_kind_of_error_has_its_exit_code() -> None:
    assert {kind for kind, _ in EXIT_CODES} == set(DpsqlError.__subclasses__())
    assert len({code for _, code in EXIT_CODES} | {0, 1, 2}) == len(EXIT_CODES) + 3


def test_engine_detail_is_not_told() -> None:
    assert "secret" not in error_text(EngineFailure("secret 3.97"))


BUG = """
import threading
from dpsql.cli.faults import install_bug_hook
install_bug_hook()
class Loud:
    def __del__(self):
        raise ValueError("exact value 3.97")
{start}
"""


@pytest.mark.parametrize(
    ("start", "code"),
    [
        ("from dpsql.cli.terminal import decimal_text\ndecimal_text('exact value 3.97')", 1),
        ("raise ValueError('exact value 3.97')", 1),
        ("t = threading.Thread(target=lambda: {'exact': 1}['exact value 3.97']); t.start(); t.join()", 0),
        ("Loud()", 0),
    ],
)
def test_a_bug_is_one_line_without_a_value(start: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUG.format(start=start)], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("ERROR: dpsql met a bug (")
    assert "3.97" not in done.stderr
