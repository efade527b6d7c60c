"""pgcli: its command, and what it asks to complete names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import PASSWORD, Served

pytest.importorskip("pgcli", reason="needs pgcli", exc_type=ImportError)


def _pgcli(served: Served, folder: Path, *arguments: str) -> str:
    place = ["-h", "127.0.0.1", "-p", str(served.port), "-u", "alice", "-d", "people"]
    done = subprocess.run(
        [sys.executable, "-m", "pgcli.main", "--pgclirc", folder / "config", *place, *arguments],
        env={**os.environ, "PGPASSWORD": PASSWORD, "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False,
    )  # fmt: skip
    return done.stdout


def test_its_command(served: Served, tmp_path: Path) -> None:
    shown = _pgcli(
        served, tmp_path, "-c", "SELECT name FROM thing WHERE id = 1", "-c", "\\d person", "-c", "\\dt"
    )
    assert "ä 'quoted'" in shown
    assert '"person_pkey" PRIMARY KEY' in shown
    assert "| thing" in shown
    assert "age is private" not in _pgcli(served, tmp_path, "-l")


_ASKED = """
import sys
from pgcli.pgexecute import PGExecute
asked = PGExecute("people", "alice", sys.argv[2], "127.0.0.1", sys.argv[1], None)
print(sorted(name for schema, name in asked.tables() if schema in ("main", "public")))
print([column[2] for column in asked.table_columns() if column[1] == "person"][:3])
print([key.childcolumn for key in asked.foreignkeys()])
print("people" in asked.databases(), asked.search_path()[-1] in asked.schemata(), list(asked.datatypes()) == [])
print(sorted({f.func_name for f in asked.functions() if f.func_name.startswith("dp_")}))
print(len(list(asked.views())) > 0)
for _, rows, _, status, *_ in asked.run("SELECT id FROM thing WHERE id = 1"):
    print(status)
"""


def test_what_it_asks_to_complete_names(served: Served, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ASKED, str(served.port), PASSWORD],
        env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[:4] == [
        "['loan', 'number', 'person', 'thing']",
        "['id', 'age', 'city']",
        "['person_id']",
        "True True True",
    ], done.stderr
    assert "['dp_avg_direct', 'dp_high', 'dp_low']" in done.stdout
    assert done.stdout.endswith("SELECT 1\n")
