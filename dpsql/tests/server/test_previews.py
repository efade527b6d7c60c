"""A look at people's rows by every door: the same columns, no row, nothing charged, and why."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

import dpsql
from dpsql.cli.application import program
from dpsql.engine.row_previews import _IS_THERE, _WITHOUT_ROWS

from .conftest import Served

PREVIEW = "SELECT * FROM person LIMIT 5"
PROBE = "SELECT 1 AS found FROM person LIMIT 1"
COLUMNS = ["id", "age", "city"]


def test_over_the_wire_it_has_a_notice(server: Served) -> None:
    said: list[str] = []
    with server.connect() as connection:
        connection.add_notice_handler(lambda note: said.append(note.message_primary or ""))
        before = connection.execute("SHOW dpsql.budget").fetchone()
        for prepare in (False, True):
            cursor = connection.execute(PREVIEW, prepare=prepare)
            assert cursor.description is not None
            assert [column.name for column in cursor.description] == COLUMNS
            assert cursor.fetchall() == []
        assert connection.execute("SELECT 1 AS found FROM person LIMIT %s", (1,)).fetchall() == [(1,)]
        assert said == [_WITHOUT_ROWS, _WITHOUT_ROWS, _IS_THERE]
        assert connection.execute("SHOW dpsql.budget").fetchone() == before


def test_in_python_the_receipt_says_why(policy: Path, server: Served) -> None:
    with dpsql.connect(policy) as connection:
        cursor = connection.cursor()
        cursor.execute(PREVIEW)
        assert cursor.description is not None
        assert [column[0] for column in cursor.description] == COLUMNS
        assert cursor.fetchall() == []
        assert cursor.receipt is not None
        assert cursor.receipt.notes == (_WITHOUT_ROWS,)
        cursor.execute(PROBE)
        assert cursor.fetchall() == [(1,)]


def test_the_command_line_says_why(policy: Path, server: Served) -> None:
    shown = CliRunner().invoke(program, ["-P", str(policy), "query", "--format", "csv", PREVIEW])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.strip() == ",".join(COLUMNS)
    assert "rows of people are not shown" in " ".join(shown.stderr.split())
    assert (
        CliRunner().invoke(program, ["-P", str(policy), "query", "--format", "csv", PROBE]).stdout
        == "found\n1\n"
    )
