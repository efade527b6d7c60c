"""The package under its own name, where no dpsql can be imported: its example answers psql and a driver."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import dpsql.pgwire

FOLDER = Path(dpsql.pgwire.__file__).parent
ALONE = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
sys.modules["dpsql"] = None  # an import of it is an error
from pgwire.example import main
asyncio.run(main(int(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("alone")
    shutil.copytree(FOLDER, folder / "pgwire", ignore=shutil.ignore_patterns("__pycache__"))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    process = subprocess.Popen([sys.executable, "-c", ALONE, str(folder), str(port)])
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def test_a_driver_is_answered(port: int) -> None:
    with psycopg.connect(
        host="127.0.0.1", port=port, user="ada", sslmode="disable", autocommit=True
    ) as connection:
        for binary in (False, True):
            cursor = connection.execute("how long", prepare=True, binary=binary)
            assert cursor.fetchall() == [("how long", 8)]
        assert connection.execute("so long").fetchall() == [("so long", 7)]


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_is_answered(port: int) -> None:
    command = [
        "psql",
        "-X",
        "-A",
        "-t",
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-U",
        "ada",
        "-c",
        "how long is this",
    ]
    assert (
        subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "how long is this|16\n"
    )


def test_its_folder_is_a_distribution() -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    assert (FOLDER / project["readme"]).is_file()
    assert [one.partition(">")[0] for one in project["dependencies"]] == ["numpy"]
    assert len((FOLDER / "example.py").read_text().splitlines()) <= 60
