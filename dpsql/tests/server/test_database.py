"""Several policies on one port: each a database with users, a budget, a catalog and counts of its own."""

from __future__ import annotations

import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from dpsql.cli.application import program
from dpsql.engine.dataset import open_ledger
from dpsql.errors import PolicyError
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy
from dpsql.server.database import Logins, places_by_name

from .by_hand import Wire, login
from .conftest import COUNT, PASSWORD, SLOW, Served, cancelling, left, make_dataset, needs_psql, run_server

OTHER = "battery staple"
CLINIC = f"""
database = "duckdb:clinic.duckdb"
ledger = "sqlite:clinic.db"
dataset = "ward"
[privacy]
epsilon = 30
[tables.patient]
unit = "id"
[tables.patient.columns]
age = {{ bounds = [0, 120] }}
[tables.number]
public = true
[analysts.alice]
epsilon = 20
password = "{make_verifier(OTHER).text()}"
[analysts.bob]
epsilon = 10
password = "{make_verifier(PASSWORD).text()}"
"""
PATIENTS = "SELECT COUNT(*) AS n FROM patient"


def make_clinic(folder: Path) -> Path:
    """Write a second dataset: 500 patients, a bob of its own, and an alice with another password."""
    with duckdb.connect(str(folder / "clinic.duckdb")) as database:
        database.execute("CREATE TABLE patient (id INTEGER PRIMARY KEY, age INTEGER)")
        database.execute("INSERT INTO patient SELECT i, i % 90 FROM range(500) AS r(i)")
        database.execute("CREATE TABLE number AS SELECT i FROM range(30000) AS r(i)")
    path = folder / "clinic.toml"
    path.write_text(CLINIC)
    open_ledger(load_policy(path), create=True).close()
    return path


@pytest.fixture
def policies(tmp_path: Path) -> tuple[Path, Path]:
    return make_dataset(tmp_path), make_clinic(tmp_path)


@pytest.fixture
def served(policies: tuple[Path, Path]) -> Iterator[Served]:
    people, clinic = policies
    with run_server(people, "-P", str(clinic), "--metrics", "0") as server:
        yield server


def clinic_of(served: Served, user: str = "alice", database: str = "clinic") -> psycopg.Connection[object]:
    return served.connect(dbname=database, user=user, password=OTHER if user == "alice" else PASSWORD)


def one(connection: psycopg.Connection[object], sql: str) -> object:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]  # type: ignore[index]  # of any shape


def test_each_has_its_tables_its_budget_and_its_users(served: Served) -> None:
    assert served.first["databases"] == "people, clinic"
    with served.connect() as people, clinic_of(served) as clinic, clinic_of(served, database="ward") as ward:
        budgets = left(people), left(clinic)
        assert 1900 < int(str(one(people, COUNT))) < 2100
        assert 400 < int(str(one(clinic, PATIENTS))) < 600
        assert one(ward, PATIENTS) == one(clinic, PATIENTS), "the dataset's name is another of the same"
        assert left(people) != budgets[0]
        assert left(clinic) == left(ward) != budgets[1]
        for connection, table in ((people, "patient"), (clinic, "person")):
            with pytest.raises(psycopg.errors.UndefinedTable):
                connection.execute(f"SELECT COUNT(*) FROM {table}")
    with clinic_of(served, "bob") as bob:
        assert one(bob, PATIENTS) == one(bob, PATIENTS)
    for user, password, database in (
        ("alice", PASSWORD, "clinic"), ("alice", OTHER, "people"), ("bob", "wrong", "people"),
        ("alice", "wrong", "other"), ("nobody", PASSWORD, "clinic"),
    ):  # fmt: skip
        with pytest.raises(psycopg.OperationalError, match="the login failed"):
            served.connect(user=user, password=password, dbname=database)


def test_a_database_that_is_not_the_users_does_not_exist_as_any_other(served: Served) -> None:
    told = []
    for number, database in enumerate(("people", "other", "person@duckdb:people.duckdb")):
        with Wire(served.port, f"127.0.4.{number + 1}") as wire:
            kind, body = login(wire, "bob", PASSWORD, database)
            assert kind == "R"
            while kind == "R":
                kind, body = wire.message()
            told.append((kind, body.replace(database.encode(), b"DATABASE")))
            assert wire.is_closed()
    assert told == [told[0]] * 3
    assert b"C3D000\0" in told[0][1]


@needs_psql
def test_psql_lists_the_databases_of_a_login(served: Served) -> None:
    def listed(user: str, password: str, database: str) -> list[str]:
        command = ["psql", "-XAtl", "-h", "127.0.0.1", "-p", str(served.port), "-U", user, "-d", database]
        done = subprocess.run(
            command, env={"PGPASSWORD": password, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=True
        )  # fmt: skip
        return sorted(line.split("|")[0] for line in done.stdout.splitlines())

    assert listed("alice", PASSWORD, "people") == ["clinic", "people"]
    assert listed("alice", OTHER, "clinic") == ["clinic", "people"]
    assert listed("alice", OTHER, "ward") == ["people", "ward"], "its own by the name that was asked for"
    assert listed("bob", PASSWORD, "clinic") == ["clinic"]
    assert listed("poor", PASSWORD, "people") == ["people"]
    assert served.psql("SELECT current_database()", "-At") == "people\n"


def test_what_is_counted_is_of_its_database(served: Served) -> None:
    with served.connect() as people, clinic_of(served) as clinic:
        people.execute(COUNT)
        for _ in range(3):
            clinic.execute(PATIENTS)
        with pytest.raises(psycopg.errors.UndefinedTable):
            clinic.execute(COUNT)
        with urllib.request.urlopen(f"http://127.0.0.1:{served.first['metrics']}/metrics") as answer:
            families = text_string_to_metric_families(answer.read().decode())
        found = {
            (name, *labels.values()): value
            for family in families
            for name, labels, value, *_ in family.samples
        }
    assert found["dpsql_answered_total", "people", "charged"] == 1
    assert ("dpsql_answered_total", "people", "stored") not in found
    assert found["dpsql_answered_total", "clinic", "stored"] == 2
    assert found["dpsql_refused_total", "clinic", "42P01"] == 1
    assert found["dpsql_epsilon_cap", "people"] == 1000
    assert found["dpsql_epsilon_cap", "clinic"] == 30
    assert found["dpsql_connections", "people"] == found["dpsql_connections", "clinic"] == 1
    connected = [line["database"] for line in served.lines if line["event"] == "connected"]
    assert connected == ["people", "clinic"]


def test_a_reload_reads_each_policy_and_ends_the_connections_of_its_own(
    served: Served, policies: tuple[Path, Path]
) -> None:
    people, clinic = policies
    with served.connect() as stays, clinic_of(served) as goes, clinic_of(served, "bob") as bob:
        text = clinic.read_text()
        clinic.write_text(text[: text.index("[analysts.alice]")] + text[text.index("[analysts.bob]") :])
        people.write_text(people.read_text() + "\nnonsense = ")
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("reloaded")
        served.wait_for("reload refused")
        assert [line["database"] for line in served.lines if line["event"] == "reloaded"] == ["clinic"]
        assert [line["database"] for line in served.lines if line["event"] == "reload refused"] == ["people"]
        assert one(stays, COUNT), "the alice of the other policy"
        assert one(bob, PATIENTS)
        with pytest.raises(psycopg.OperationalError, match="you may no longer connect"):
            goes.execute(PATIENTS)
    with pytest.raises(psycopg.OperationalError, match="the login failed"):
        clinic_of(served)
    with pytest.raises(psycopg.OperationalError, match='database "clinic" does not exist'):
        served.connect(dbname="clinic")


def test_a_cancel_stops_the_statement_of_its_connection_alone(served: Served) -> None:
    with served.connect() as people, clinic_of(served) as clinic:
        with cancelling(clinic.cancel), pytest.raises(psycopg.errors.QueryCanceled):
            clinic.execute(SLOW)
        assert one(people, COUNT)
        assert one(clinic, PATIENTS)


def test_a_ledger_that_is_gone_is_its_databases_own_fault(policies: tuple[Path, Path]) -> None:
    people, clinic = policies
    with run_server(people, code=QUICK.format(clinic=str(clinic))) as served:
        (clinic.parent / "clinic.db").rename(clinic.parent / "away.db")
        served.wait_for("unhealthy")
        assert [line["database"] for line in served.lines if line["event"] == "unhealthy"] == ["clinic"]
        with served.connect() as connection:
            assert one(connection, COUNT)
        with pytest.raises(psycopg.OperationalError, match="takes no connections now"):
            clinic_of(served)
        (clinic.parent / "away.db").rename(clinic.parent / "clinic.db")


QUICK = """
import asyncio, sys
from pathlib import Path
from dpsql.policy import load_policy
from dpsql.server import Options, Server
policies = [load_policy(Path(path)) for path in (sys.argv[1], "{clinic}")]
asyncio.run(Server(policies, Options(port=0, probe_seconds=0.05)).run())
"""


def test_two_policies_of_one_name_are_refused(policies: tuple[Path, Path], tmp_path: Path) -> None:
    people, clinic = policies
    (tmp_path / "other").mkdir()
    twin = make_dataset(tmp_path / "other")
    named = tmp_path / "ward.toml"
    named.write_text(people.read_text())
    for first, second, name in (
        (people, twin, "people"),
        (people, people, "people"),
        (clinic, named, "ward"),
    ):
        done = CliRunner().invoke(program, ["serve", "--port", "0", "-P", str(first), "-P", str(second)])
        assert done.exit_code == 5
        assert f'{first} and {second} would both be the database "{name}"' in done.output
        assert "rename one" in done.output


def test_a_datasets_name_that_two_have_means_neither(policies: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    twin = make_dataset(tmp_path / "other").rename(tmp_path / "other" / "others.toml")
    both = [load_policy(policies[0]), load_policy(twin)]
    assert both[0].dataset_id == both[1].dataset_id, "as the files are written"
    assert places_by_name(both) == {"people": 0, "others": 1}
    assert both[0].dataset_id in places_by_name(both[:1])


def test_whose_password_is_asked(policies: tuple[Path, Path]) -> None:
    people, clinic = map(load_policy, policies)
    logins = Logins([people, clinic], b"secret")
    assert len(logins) == 4, (
        "a name in two is two users, of whom one leaves the other half of the connections"
    )
    assert len(Logins([people], b"secret")) == 2
    alices = [logins.verifier("alice", name) for name in ("people", "clinic", "ward", "other")]
    assert alices[0] == alices[3] != alices[1] == alices[2]
    assert len({logins.verifier("bob", name) for name in ("people", "clinic", "other")}) == 1
    assert len({logins.verifier("nobody", name) for name in ("people", "clinic", "other")}) == 1
    assert [logins.place("alice", name) for name in ("people", "clinic", "other")] == [0, 1, 0]
    assert [logins.place("bob", name) for name in ("people", "clinic", "other")] == [1, 1, 1]
    assert logins.find("bob", "people") is logins.find("alice", "other") is None
    assert (logins.places_of("alice"), logins.places_of("bob"), logins.places_of("nobody")) == (
        [0, 1],
        [1],
        [],
    )


def test_a_policy_without_a_login_is_refused_beside_one_that_has(policies: tuple[Path, Path]) -> None:
    people, clinic = policies
    clinic.write_text(clinic.read_text().replace("password = ", "# "))
    with pytest.raises(PolicyError, match=r"clinic\.toml: analysts: nobody has a password"):
        Logins([load_policy(people), load_policy(clinic)], b"secret")
