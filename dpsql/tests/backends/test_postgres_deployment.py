"""What is found wrong with a role: each right that it should not have, once, with SQL that takes it away."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from dpsql.backends import Finding, PostgresBackend, refuse_unsafe
from dpsql.backends.backend import Severity
from dpsql.backends.postgres_schema import reader_sql, verify
from dpsql.cli.application import program
from dpsql.errors import PolicyError
from dpsql.tests.support.postgres_server import ADMINISTRATOR, PostgresServer

NAMES = ("student", "clinic.visit")


class Deployment:
    """A database of its own, a role, and what is found wrong with it."""

    def __init__(self, server: PostgresServer, owner: psycopg.Connection[Any]) -> None:
        self.server, self.owner = server, owner
        self.database = owner.info.dbname

    def findings(self, role: str = "examined", names: tuple[str, ...] | None = NAMES) -> list[Finding]:
        backend = PostgresBackend(self.server.url(self.database, role), names)
        try:
            return backend.findings()
        finally:
            assert backend.close_idle()

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.owner.execute(statement.format(database=self.database).encode())


@pytest.fixture
def deployment(postgres: PostgresServer) -> Iterator[Deployment]:
    name = postgres.create_database()
    with postgres.admin(name) as owner:
        found = Deployment(postgres, owner)
        found.run(
            "REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC",
            "CREATE SCHEMA clinic",
            "CREATE TABLE student (id int PRIMARY KEY)",
            "CREATE TABLE clinic.visit (student_id int)",
            "CREATE SEQUENCE numbers",
            *reader_sql("examined", name, NAMES).split("; "),
        )
        yield found
        found.run("REASSIGN OWNED BY examined TO administrator", "DROP OWNED BY examined")
    postgres.drop_database(name)
    with postgres.admin() as owner:
        owner.execute("DROP OWNED BY examined; DROP ROLE examined; DROP ROLE IF EXISTS strong")


def test_the_role_that_the_hint_makes_is_right(deployment: Deployment) -> None:
    assert deployment.findings() == []
    backend = PostgresBackend(deployment.server.url(deployment.database, "examined"), NAMES)
    with backend.snapshot() as snapshot:
        assert [table.path for table in snapshot.schema().tables] == [
            ("clinic", "visit"),
            ("public", "student"),
        ]
    assert backend.close_idle()


TOO_MUCH = {
    "ALTER ROLE examined CREATEDB": 'the role "examined" has CREATEDB, and dpsql\'s may only read',
    "ALTER ROLE examined CREATEROLE": 'the role "examined" has CREATEROLE, and dpsql\'s may only read',
    "ALTER ROLE examined REPLICATION": 'the role "examined" has REPLICATION, and dpsql\'s may only read',
    "ALTER ROLE examined BYPASSRLS": 'the role "examined" has BYPASSRLS, and dpsql\'s may only read',
    "GRANT pg_monitor TO examined": 'the role "examined" is a member of "pg_monitor", which may do more than read',
    "GRANT pg_signal_backend TO examined": (
        'the role "examined" is a member of "pg_signal_backend", which may do more than read'
    ),
    "CREATE ROLE strong CREATEDB; GRANT strong TO examined": (
        'the role "examined" is a member of "strong", which may do more than read'
    ),
    "GRANT INSERT ON student TO examined": 'the role "examined" may write to public.student',
    "GRANT UPDATE (id) ON student TO examined": 'the role "examined" may write to public.student',
    "GRANT TRUNCATE ON clinic.visit TO PUBLIC": 'the role "examined" may write to clinic.visit',
    "GRANT REFERENCES ON student TO examined": 'the role "examined" may write to public.student',
    "GRANT TRIGGER ON student TO examined": 'the role "examined" may write to public.student',
    "GRANT USAGE ON SEQUENCE numbers TO examined": 'the role "examined" may write to public.numbers',
    "GRANT CREATE ON SCHEMA public TO PUBLIC": 'the role "examined" may create objects in the schema public',
    "GRANT CREATE ON DATABASE {database} TO examined": (
        'the role "examined" may create objects in the database {database}'
    ),
    "GRANT EXECUTE ON FUNCTION pg_read_file(text) TO examined": (
        'the role "examined" may call pg_read_file(text), which reaches beyond the database'
    ),
    "CREATE TABLE mine (x int); ALTER TABLE mine OWNER TO examined": (
        'the role "examined" owns table public.mine, and may change what it owns'
    ),
    "CREATE SCHEMA mine AUTHORIZATION examined": (
        'the role "examined" owns schema mine, and may change what it owns'
    ),
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION mine() OWNER TO examined": (
        'the role "examined" owns function public.mine(), and may change what it owns'
    ),
    "ALTER DATABASE {database} OWNER TO examined": (
        'the role "examined" owns database {database}, and may change what it owns'
    ),
    "CREATE TYPE mood AS ENUM (); ALTER TYPE mood OWNER TO examined": (
        'the role "examined" owns type public.mood, and may change what it owns'
    ),
    "REVOKE SELECT ON clinic.visit FROM examined": 'the role "examined" may not read clinic.visit',
    "REVOKE USAGE ON SCHEMA clinic FROM examined": 'the role "examined" may not read clinic.visit',
}


@pytest.mark.parametrize("grant", TOO_MUCH)
def test_each_right_too_many_is_an_error_that_its_fix_takes_away(deployment: Deployment, grant: str) -> None:
    deployment.run(*grant.split("; "))
    errors = [finding for finding in deployment.findings() if finding.severity is Severity.ERROR]
    expected = TOO_MUCH[grant].format(database=deployment.database)
    assert expected in [finding.sentence for finding in errors]
    with pytest.raises(PolicyError) as caught:
        refuse_unsafe(errors)
    assert expected in caught.value.message
    for finding in errors:
        assert finding.fix in (caught.value.hint or "")
        fix = finding.fix.replace("another_role", ADMINISTRATOR).removesuffix("; then GRANT SELECT again")
        deployment.run(*fix.split("; "))
    if "may write to" in expected:
        deployment.run("GRANT SELECT ON student, clinic.visit TO examined")
    assert [one for one in deployment.findings() if one.severity is Severity.ERROR] == []


WARNED = {
    "GRANT TEMPORARY ON DATABASE {database} TO PUBLIC": 'the role "examined" may make temporary tables',
    "GRANT pg_read_all_data TO examined": (
        'the role "examined" is a member of "pg_read_all_data", which may do more than read'
    ),
}


@pytest.mark.parametrize("grant", WARNED)
def test_what_is_only_warned_of(deployment: Deployment, grant: str) -> None:
    deployment.run(grant)
    (finding,) = deployment.findings()
    assert (finding.severity, finding.sentence) == (Severity.WARNING, WARNED[grant])
    refuse_unsafe([finding])
    deployment.run(finding.fix)
    assert deployment.findings() == []


def test_a_superuser_is_told_how_to_make_a_role(deployment: Deployment) -> None:
    (finding,) = deployment.findings(ADMINISTRATOR)
    assert finding.severity is Severity.ERROR
    assert finding.sentence == (
        f'the role "{ADMINISTRATOR}" is a superuser, and dpsql\'s may only read; give it one of its own'
    )
    assert finding.fix == (
        f'CREATE ROLE "dpsql" LOGIN; GRANT CONNECT ON DATABASE "{deployment.database}" TO "dpsql"; '
        'GRANT USAGE ON SCHEMA "clinic", "public" TO "dpsql"; '
        'GRANT SELECT ON "clinic"."visit", "public"."student" TO "dpsql"'
    )
    with pytest.raises(PolicyError) as caught:
        refuse_unsafe([finding])
    assert caught.value.message == f"database: {finding.sentence}"
    assert caught.value.hint == f"run {finding.fix}"


def test_a_superuser_by_way_of_another_role(deployment: Deployment) -> None:
    deployment.run(f"GRANT {ADMINISTRATOR} TO examined")
    found = [finding.sentence for finding in deployment.findings()]
    deployment.run(f"REVOKE {ADMINISTRATOR} FROM examined")
    assert f'the role "examined" is a member of "{ADMINISTRATOR}", which may do more than read' in found


def test_md5_must_work(deployment: Deployment) -> None:
    deployment.run("REVOKE EXECUTE ON FUNCTION pg_catalog.md5(text) FROM PUBLIC")
    (finding,) = deployment.findings()
    assert finding == Finding(
        Severity.ERROR, "md5() fails on this server, as in FIPS mode, and dpsql's queries need it"
    )
    assert finding.to_text() == f"database: {finding.sentence}"


def test_an_open_line_is_warned_of(deployment: Deployment) -> None:
    def query(text: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        return psycopg.RawCursor(deployment.owner).execute(text.encode(), parameters).fetchall()

    deployment.run("SET ROLE examined")
    (finding,) = verify(query, NAMES, is_private=False)
    assert finding.severity is Severity.WARNING
    assert finding.sentence == (
        "the connection is not encrypted; add sslmode=verify-full to the policy's database URL"
    )
    deployment.run("RESET ROLE")


CHECKED = """
database = {url}
[privacy]
epsilon = 10
[tables.student]
unit = "id"
"""


def test_the_check_command_tells_the_owner(deployment: Deployment, tmp_path: Path) -> None:
    def check(role: str, *options: str) -> Result:
        url = deployment.server.url(deployment.database, role)
        path = tmp_path / f"{role}.toml"
        path.write_text(CHECKED.format(url=json.dumps(url)), "utf-8")
        return CliRunner().invoke(program, ["-P", str(path), "check", *options])

    good = json.loads(check("examined", "--json").stdout)
    assert (good["problems"], good["warnings"]) == ([], [])
    deployment.run("GRANT INSERT ON student TO examined", "GRANT pg_read_all_data TO examined")
    told = check("examined")
    assert told.exit_code == 5
    assert (
        'problem: database: the role "examined" may write to public.student; run REVOKE ALL ON' in told.stdout
    )
    assert 'warning: database: the role "examined" is a member of "pg_read_all_data"' in told.stdout
    assert check("examined", "--json").exit_code == 5


def test_a_table_that_is_missing_is_the_policys_affair(deployment: Deployment) -> None:
    assert deployment.findings(names=("student", "nowhere")) == []
    assert deployment.findings(names=None) == []
