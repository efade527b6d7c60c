"""What the owner measured of a table's people, as clients of the wire and of the driver are told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb

import dpsql
from dpsql.tests.support.forked import run_forked

from .conftest import POLICY, Served, make_dataset, run_server

COUNT = "SELECT COUNT(*) FROM visit"
NEVER = "no error bar holds what that leaves out: the owner has not measured it (dpsql bounds visit)"
QUOTED = re.compile(r'rows of "visit", about [\d.]+ % of all rows, at least [\d.]+ % \(measured ')
HELD = "; the error bars hold the noise and what that leaves out"
_VISITS = """
[tables.visit]
unit = { column = "who", references = "person.id" }
max_rows = 5
"""


def notices(served: Served, sql: str, before: bytes = b"SELECT 1") -> str:
    said: list[str] = []
    with served.connect() as connection:
        connection.execute(before)
        connection.add_notice_handler(lambda note: said.append(note.message_primary or ""))
        connection.execute(sql.encode()).fetchall()
    return " | ".join(said)


def test_a_server_that_runs_quotes_it_when_it_was_measured(tmp_path: Path) -> None:
    policy: Path = make_dataset(tmp_path)
    policy.write_text(POLICY.replace("[tables.number]", f"{_VISITS}[tables.number]", 1))
    with duckdb.connect(str(policy.parent / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE visit (who INTEGER REFERENCES person(id))")
        connection.execute("INSERT INTO visit SELECT i % 2000 FROM range(9000) AS r(i)")
    with run_server(policy) as served:
        assert NEVER in notices(served, COUNT)
        assert NEVER in notices(served, COUNT), "it is remembered so"
        done = run_forked(["-m", "dpsql.cli", "-P", str(policy), "bounds", "visit"])
        assert done.returncode == 0, done.stderr
        assert QUOTED.search(notices(served, f"{COUNT} WHERE who > 7"))
        assert QUOTED.search(notices(served, COUNT)), "what was remembered is not said again"
        with served.connect() as connection:
            lines = [row[0] for row in connection.execute(f"EXPLAIN {COUNT}".encode()).fetchall()]
        assert QUOTED.search(" ".join(" ".join(lines).split()))
        with served.connect() as connection:
            connection.execute(b"SET dpsql.intervals = 0.95")
            asked = connection.execute(COUNT.encode())
            assert [column.name for column in asked.description or ()] == ["count", "count_low", "count_high"]
            wired = [float(value) for value in asked.fetchall()[0]]
        assert HELD in notices(served, COUNT, b"SET dpsql.intervals = 0.95")
    value, low, high = wired
    assert high - value > 1.5 * (value - low), "the upper end holds what is left out too"
    shown = run_forked(
        ["-m", "dpsql.cli", "-P", str(policy), "query", "--intervals", "0.95", "--json", COUNT]
    )
    told = json.loads(shown.stdout)
    assert told["rows"] == [wired]
    assert told["receipt"]["notes"][0].endswith(HELD)
    with dpsql.connect(policy) as here, here.cursor() as cursor:
        cursor.execute(COUNT)
        assert cursor.receipt is not None
        assert QUOTED.search(cursor.receipt.notes[0])
        cursor.execute("SET dpsql.intervals = 0.95")
        cursor.execute(COUNT)
        assert [float(value) for value in cursor.fetchall()[0]] == wired
