"""The manual's table of clients: each is in the test that its row names, and no script of `make tools` is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .documents import text

TESTS = Path(__file__).parents[1]
_ROWS = text("analyst").split("### What was seen of each\n")[1].split("\n## ")[0].splitlines()
CLIENTS = {
    cells[1].strip(): cells[-2].strip().strip("`")
    for cells in (line.split("|") for line in _ROWS)
    if len(cells) == 6 and "`" in cells[-2]
}


@pytest.mark.parametrize("named", CLIENTS)
def test_a_client_is_in_its_test(named: str) -> None:
    said = (TESTS.parent / CLIENTS[named]).read_text().lower()
    others = {"asyncpg", "pg8000", "psycopg2"} if "psycopg3" in CLIENTS[named] else set()
    for name in re.split(r"[,:] ", named):
        if name in others:
            said = (TESTS / f"server/clients/test_{name}.py").read_text().lower()
        assert re.search(rf"\b{re.escape(name.lower())}\b", said), name


def test_every_script_of_tools_is_told() -> None:
    scripts = {path.name for path in (TESTS / "tools").iterdir() if path.stem.lower().startswith("ask")}
    assert scripts == {Path(test).name for test in CLIENTS.values()} & scripts
    assert len(scripts) == 10
