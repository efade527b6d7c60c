"""A view that is wrong is left out: named in the log at the start and at each reload, and everything else is served."""

from __future__ import annotations

import signal
from pathlib import Path

import duckdb
import psycopg
import pytest

from .conftest import COUNT, make_dataset, run_server

VIEWS = '\n[tables.fine]\nview = true\n[tables.bad]\nview = true\nsource = "{}"\n'


def test_the_rest_is_served_and_the_log_names_it(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
        database.execute(
            "CREATE VIEW fine AS SELECT id, age FROM person; CREATE VIEW other AS SELECT age FROM person"
        )
    written = policy.read_text()
    policy.write_text(written + VIEWS.format("gone"))
    with run_server(policy) as server:
        server.wait_for("left out")
        (line,) = [line for line in server.lines if line["event"] == "left out"]
        assert (line["table"], line["database"]) == ("bad", "people")
        assert 'tables.bad: the database has no view "gone"' in line["reason"]
        with server.connect() as connection:
            assert connection.execute(COUNT).fetchone()
            assert connection.execute("SELECT COUNT(*) FROM fine").fetchone()
            with pytest.raises(psycopg.Error, match='table "bad" does not exist') as refused:
                connection.execute("SELECT COUNT(*) FROM bad")
            assert "check" not in (refused.value.diag.message_hint or ""), "that is the owner's"
        policy.write_text(written + VIEWS.format("other"))
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("reloaded")
        with server.connect() as connection:
            assert connection.execute("SELECT COUNT(*) FROM bad").fetchone()
        policy.write_text(written + VIEWS.format("gone"))
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("left out", 2)
        with server.connect() as connection:
            assert connection.execute("SELECT COUNT(*) FROM fine").fetchone()
