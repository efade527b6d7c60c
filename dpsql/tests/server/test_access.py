"""What one analyst does not see, by a real connection: statements, the system catalog, and a grant that changes."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest

from .conftest import COUNT, POLICY, Served, make_dataset, needs_psql, run_server

NARROW = POLICY.replace("[analysts.alice]", '[analysts.alice]\ntables = ["person"]\nhide = ["person.city"]')
ASKED = (
    "SELECT c.relname, a.attname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid "
    "WHERE c.relkind = 'r' AND a.attnum > 0 AND c.relnamespace = 'public'::regnamespace ORDER BY 1, a.attnum",
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position",
)


def refusal(server: Served, sql: str, **options: str) -> str:
    with server.connect(**options) as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute(sql)
    error = caught.value
    return f"{error.sqlstate} {error.diag.message_primary} ({error.diag.message_hint})"


def test_what_is_not_granted_is_not_there(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    policy.write_text(NARROW)
    with run_server(policy) as server:
        assert (
            refusal(server, "SELECT COUNT(*) FROM thing")
            == '42P01 table "thing" does not exist (tables: person)'
        )
        assert (
            refusal(server, "SELECT COUNT(*) FROM think")
            == '42P01 table "think" does not exist (tables: person)'
        )
        assert refusal(server, "SELECT city FROM person").startswith('42703 column "city" does not exist')
        with server.connect() as connection, server.connect(user="poor") as other:
            for sql in ASKED:
                rows = connection.execute(sql.encode()).fetchall()
                assert rows == [("person", "id"), ("person", "age")]
                assert ("thing", "small") in other.execute(sql.encode()).fetchall()
            for sql in ("SELECT 'thing'::regclass", "SELECT 'person.city'::regclass"):
                with pytest.raises(psycopg.Error):
                    connection.execute(sql.encode())
            assert connection.execute(COUNT).fetchone() == other.execute(COUNT).fetchone()
            assert other.execute("SHOW dpsql.budget").fetchone() == ("0.15 of 0.15 epsilon left",)


@needs_psql
def test_psql_describes_what_is_seen(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    policy.write_text(NARROW)
    with run_server(policy) as server:
        said = server.psql("\\d\n\\d+ person\n\\d thing\n\\dt *.*\n")
    assert "age" in said
    assert "city" not in said
    assert "number" not in said
    assert 'Did not find any relation named "thing"' in said


def test_a_changed_grant_ends_its_analysts_sessions_alone(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    with run_server(policy) as server, server.connect(user="poor") as poor, server.connect() as alice:
        counted = poor.execute(COUNT).fetchone()
        assert alice.execute("SELECT city, COUNT(*) FROM person GROUP BY city").fetchall()
        together = alice.execute(COUNT).fetchone()
        assert poor.execute(COUNT).fetchone() == together
        policy.write_text(NARROW)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("reloaded")
        with pytest.raises(psycopg.OperationalError):
            alice.execute(COUNT)
        assert poor.execute(COUNT).fetchone() == together
        assert poor.execute("SHOW dpsql.budget").fetchone() == ("0.05 of 0.15 epsilon left",)
        assert refusal(server, "SELECT city, COUNT(*) FROM person GROUP BY city").startswith("42703")
        with server.connect() as again:
            assert again.execute(COUNT).fetchone() == counted, "what is drawn by a hidden column is not in it"
