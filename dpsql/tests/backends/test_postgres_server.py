"""The Postgres that the tests start: it comes up wherever its files are, keeps what it must, and goes away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from dpsql.tests.support.postgres_fixtures import postgres_majors
from dpsql.tests.support.postgres_server import Installation, PostgresServer, find_servers


def test_each_major_is_found_once() -> None:
    majors = [installation.major for installation in find_servers()]
    assert majors == sorted(set(majors))
    assert 18 in majors, "the wheel brings it"
    assert [one.major for one in postgres_majors()] == [majors[0], majors[-1]]


def test_what_is_committed_outlives_a_crash(postgres: PostgresServer) -> None:
    with PostgresServer(postgres.installation, durable=True, settings={"work_mem": "1MB"}) as server:
        name = server.create_database()
        with server.admin(name) as connection:
            connection.execute("CREATE TABLE t (x int); INSERT INTO t VALUES (1)")
            assert connection.execute("SHOW work_mem").fetchone() == ("1MB",)
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            server.admin()
        server.restart()
        with server.admin(name) as connection:
            assert connection.execute("TABLE t").fetchall() == [(1,)]
        folder = server.folder
    assert not folder.exists()


def test_a_password_is_asked_for_at_the_port(postgres: PostgresServer) -> None:
    with postgres.admin() as connection:
        connection.execute("DROP ROLE IF EXISTS porter; CREATE ROLE porter LOGIN PASSWORD 'a/b@c'")
    with psycopg.connect(postgres.url("postgres", "porter", "a/b@c")) as connection:
        assert connection.execute("SELECT CURRENT_USER::text").fetchone() == ("porter",)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.url("postgres", "porter", "wrong"))


@pytest.mark.long
def test_files_that_another_user_cannot_reach(tmp_path: Path) -> None:
    """As in a virtual environment in a home folder: Postgres refuses to run as root, who alone may go there."""
    newest = find_servers()[-1]
    package = newest.folder.parent.parent
    closed = tmp_path / "closed"
    shutil.copytree(package, closed / package.name, symlinks=True)
    shutil.copytree(package.with_name(f"{package.name}.libs"), closed / f"{package.name}.libs")
    closed.chmod(0o700)
    inside = closed / package.name / newest.folder.parent.name / "bin"
    with PostgresServer(Installation(newest.major, inside)) as server, server.admin() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


PROGRAM = """
from dpsql.tests.support.postgres_server import PostgresServer, find_servers
import time
with PostgresServer(find_servers()[-1]) as server:
    print(server.folder, (server.folder / "data" / "postmaster.pid").read_text().split()[0], flush=True)
    time.sleep(600)
"""


def test_a_server_ends_with_the_tests_that_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        folder, pid = tests.stdout.readline().split()
        tests.kill()
    deadline = time.monotonic() + 300
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
