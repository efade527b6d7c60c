"""The owner's DuckDB file beside a server: it can be written between statements, and whoever asks meanwhile is told."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import psycopg
import pytest

from .conftest import make_dataset, run_server

PATIENCE = 120.0


def opened(path: Path) -> duckdb.DuckDBPyConnection:
    """Return a writer's connection, as soon as the server lets the file go."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return duckdb.connect(str(path))
        except duckdb.Error:
            if time.monotonic() > until:
                raise
        time.sleep(0.1)


def test_the_file_is_free_between_statements(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    (file,) = tmp_path.glob("*.duckdb")
    with run_server(policy) as served, served.connect() as connection:
        opened(file).close()  # not held from the server's start on
        assert connection.execute("SELECT COUNT(*) FROM person").fetchall()
        writer = opened(file)
        assert connection.execute("SELECT COUNT(*) FROM person").fetchall(), (
            "stored: it asks nothing of the file"
        )
        with pytest.raises(psycopg.OperationalError, match="another program has its file open") as caught:
            connection.execute("SELECT SUM(age) FROM person")
        assert caught.value.diag.sqlstate == "55006"
        assert caught.value.diag.message_hint == "ask again in a moment"
        assert caught.value.diag.message_detail == "nothing was charged"
        writer.close()
        assert connection.execute("SELECT SUM(age) FROM person").fetchall()
