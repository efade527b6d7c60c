"""A table that the database calls otherwise, from a question to its answer, on both engines: who sees which name, and
which rows are counted, charged and stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from dpsql import Session
from dpsql.backends import open_backend
from dpsql.cli.application import program
from dpsql.engine.dataset import Dataset
from dpsql.engine.ledgers import open_ledger
from dpsql.errors import LedgerError, Refusal
from dpsql.plan.planner import PrivacyParameters, plan_text
from dpsql.plan.privacy import contradiction
from dpsql.policy import build_catalog, load_policy
from dpsql.release import facts
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.laws.planting import plant
from dpsql.tests.support.postgres_fixtures import NEWEST_FIRST
from dpsql.tests.support.postgres_server import Installation, PostgresServer

DATA = """
CREATE TABLE person (id INTEGER PRIMARY KEY);
CREATE TABLE visit (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, sender INTEGER NOT NULL, g INTEGER);
CREATE TABLE visit_prepared (id INTEGER, owner INTEGER NOT NULL, sender INTEGER, g INTEGER, n INTEGER NOT NULL,
    PRIMARY KEY (owner, n));
CREATE TABLE ward (g INTEGER PRIMARY KEY, name VARCHAR(9));
CREATE TABLE ward_2 (g INTEGER PRIMARY KEY, name VARCHAR(9));
INSERT INTO ward VALUES (0, 'old');
INSERT INTO ward_2 VALUES (0, 'a'), (1, 'b');
INSERT INTO person VALUES (0), (1), (2), (3);
INSERT INTO visit VALUES (1, 0, 1, 0), (2, 0, 1, 1), (3, 1, 0, 1), (4, 2, 0, 0);
INSERT INTO visit_prepared SELECT owner * 10 + n, owner, 0, n % 2, n FROM (VALUES (0), (1), (2)) AS o (owner),
    (VALUES (1), (2), (3), (4)) AS m (n)
"""
HEAD = """
database = "DATABASE"
ledger = "sqlite:ledger.db"
dataset = "visits"
[privacy]
epsilon = 10
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[analysts.ann]
epsilon = 10
"""
OWNED = """unit = { column = "owner", references = "person.id" }
max_rows = 3
columns = { g = { values = [0, 1] } }
"""
BASE = f"[tables.visit]\n{OWNED}"
COPY = f'[tables.visit]\nsource = "visit_prepared"\nrow_number = "n"\n{OWNED}'
WARD = '[tables.ward]\npublic = true\nsource = "ward_2"\n'


@dataclass(frozen=True)
class Place:
    """A database with a policy that can be written anew."""

    path: Path
    url: str

    def write(self, text: str) -> None:
        self.path.write_text(HEAD.replace("DATABASE", self.url) + text)

    def count(self, sql: str = "SELECT COUNT(*) FROM visit") -> tuple[object, bool]:
        """Return the answer of a question without its noise, and whether it was charged."""
        with closing(Dataset.open(self.path)) as dataset:
            session = Session(dataset, "ann", _noise=ZeroNoise())
            answer = session.execute(sql)
            assert answer.receipt is not None
            return answer.rows[0][0], not answer.receipt.reused

    def run(self, *words: str) -> str:
        done = CliRunner().invoke(program, ["-P", str(self.path), *words])
        return done.output + done.stderr


@pytest.fixture(
    params=["duckdb", *NEWEST_FIRST[:1]], ids=lambda one: one if one == "duckdb" else f"pg{one.major}"
)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, start_postgres: Callable[[Installation], PostgresServer]
) -> Iterator[Place]:
    path = tmp_path / "names.toml"
    if request.param == "duckdb":
        with duckdb.connect(str(tmp_path / "names.duckdb")) as connection:
            connection.execute(DATA)
        yield Place(path, f"duckdb:{tmp_path / 'names.duckdb'}")
        return
    server = start_postgres(request.param)
    name = server.create_database()
    with server.admin(name) as connection:
        connection.execute(DATA)
        connection.execute(f"CREATE ROLE {name}_reader LOGIN")
        connection.execute(f"GRANT SELECT ON person, visit_prepared, ward_2 TO {name}_reader")
    yield Place(path, server.url(name, f"{name}_reader"))
    server.drop_database(name)


@pytest.fixture
def copied(place: Place) -> Place:
    place.write(COPY + WARD)
    open_ledger(load_policy(place.path), create=True).close()
    return place


def test_it_is_the_sources_rows_that_count(copied: Place) -> None:
    """Four of each of three people are numbered, of which three count; the database's own table has four in all."""
    assert copied.count() == (9, True)
    by_ward = "FROM visit JOIN ward ON ward.g = visit.g GROUP BY name ORDER BY name"
    assert copied.count(f"SELECT COUNT(*), name {by_ward}") == (3, True)
    assert copied.count("SELECT COUNT(*) FROM ward") == (2, True)


def test_draws_of_one_table_answer_nothing_of_the_other(copied: Place) -> None:
    """And both stay charged: none of them comes back, whatever the policy says next."""
    assert copied.count() == (9, True)
    copied.write(BASE + WARD)
    if copied.url.startswith("duckdb"):  # on Postgres the policy's role may not read that one
        assert copied.count() == (4, True)
        copied.write(BASE.replace("visit]", 'stay]\nsource = "visit"') + WARD)
        assert copied.count("SELECT COUNT(*) FROM stay") == (4, True), (
            "under another name it is another question"
        )
    copied.write(COPY + WARD)
    assert copied.count() == (9, False)
    spent = 3 if copied.url.startswith("duckdb") else 1
    with closing(open_ledger(load_policy(copied.path), create=False)) as store:
        assert store.spent().epsilon_nano == spent * 10**9


def test_rows_that_were_charged_under_one_name_are_not_anothers_under_the_next(copied: Place) -> None:
    """Charged as their owners', they are not counted as their senders' by calling them otherwise."""
    copied.count()
    copied.write(
        COPY.replace("tables.visit]", "tables.sent]")
        .replace('"owner"', '"sender"')
        .replace('row_number = "n"\n', "")
        + WARD
    )
    with pytest.raises(
        LedgerError, match=r'rows of "visit_prepared" were charged by unit = . column = "owner"'
    ):
        copied.count("SELECT COUNT(*) FROM sent")


def test_every_plan_is_verified_from_the_rows_that_are_read(copied: Place) -> None:
    with Session.open(copied.path, analyst="ann") as session:
        shown = "\n".join(
            str(row[0]) for row in session.execute("EXPLAIN (VERIFY) SELECT COUNT(*) FROM visit").rows
        )
    assert shown.startswith("m0_0: plain; R 3, reach 1, S 3;"), shown


def test_mutant_believe_of_the_copy_what_the_other_table_has(
    copied: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts by the policy's name are of the database's own table, which holds no numbers apart."""
    plant(monkeypatch, facts.read_facts, ("path_of(policy.origin(name))", "path_of(name)"))
    with pytest.raises(AssertionError):
        test_every_plan_is_verified_from_the_rows_that_are_read(copied)


SAID = (
    "SELECT COUNT(*) FROM visit_prepared",
    "SELECT n FROM visit",
    "SELECT COUNT(*) FROM visit WHERE n = 1",
    "SELECT id FROM visit",
    "SELECT COUNT(*) FROM main.visit_prepared",
    "SELECT COUNT(*) FROM ward_2",
)
TOLD = (
    "EXPLAIN SELECT COUNT(*) FROM visit",
    "EXPLAIN SELECT name, COUNT(*) FROM visit JOIN ward ON ward.g = visit.g GROUP BY name",
    "SELECT * FROM visit LIMIT 3",
)


@pytest.mark.parametrize("sql", SAID)
def test_no_refusal_has_the_databases_name(copied: Place, sql: str) -> None:
    with Session.open(copied.path, analyst="ann") as session, pytest.raises(Refusal) as refused:
        session.execute(sql)
    said = f"{refused.value.message} {refused.value.hint}".replace(f'"{sql.split()[-1]}"', "")
    assert "prepared" not in said
    assert "ward_2" not in said


@pytest.mark.parametrize("sql", TOLD)
def test_no_answer_has_the_databases_name(copied: Place, sql: str) -> None:
    with Session.open(copied.path, analyst="ann") as session:
        answer = session.execute(sql)
    said = f"{answer.columns} {[*answer.rows]} {answer.receipt}"
    for schema in ("main", "public"):  # the statement that runs is shown as it is
        said = said.replace(f'"{schema}"."visit_prepared"', "").replace(f'"{schema}"."ward_2"', "")
    assert "prepared" not in said
    assert "ward_2" not in said


def test_the_commands_have_the_policys_name(copied: Place) -> None:
    assert copied.run("check", "--data").startswith("names.toml: dataset visits")
    assert '"visit"' in copied.run("query", "--json", "SHOW TABLES")
    assert "visit_prepared" not in copied.run("query", "SHOW TABLES") + copied.run("query", "DESCRIBE visit")
    copied.count()
    assert "visit_prepared" not in copied.run("budget", "show")
    assert "visit_prepared" not in copied.run("budget", "log")
    assert "people have rows in visit (" in copied.run("bounds", "visit")
    assert "FAIL" not in copied.run("audit", "--sql", "SELECT g, COUNT(*) FROM visit GROUP BY g")
    assert "are verified" in copied.run("audit", "--fuzz", "20")
    assert copied.run("verify").count("FAIL") == 0


# --- what the database proves is proved of its own tables ----------------------------------------------------------

PROVED = """
CREATE TABLE person (id INTEGER PRIMARY KEY);
CREATE TABLE ward (g INTEGER PRIMARY KEY);
CREATE TABLE ward_2 (g INTEGER PRIMARY KEY);
CREATE TABLE item (owner INTEGER NOT NULL, ward INTEGER NOT NULL REFERENCES ward (g));
INSERT INTO person VALUES (1);
INSERT INTO ward VALUES (1), (2);
INSERT INTO ward_2 VALUES (2);
INSERT INTO item VALUES (1, 1), (1, 2);
"""
ITEM = '[tables.item]\nunit = { column = "owner", references = "person.id" }\nmax_rows = 3\ncolumns = { ward = {} }\n'
WITHOUT = "SELECT COUNT(*) FROM item LEFT JOIN ward ON ward.g = item.ward WHERE ward.g IS NULL"


def is_counted(folder: Path, ward: str) -> bool:
    """Return whether items without a ward are counted, and not proved to be none."""
    path = folder / "proved.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(PROVED)
    place = Place(folder / "proved.toml", f"duckdb:{path}")
    place.write(ward + ITEM)
    policy = load_policy(place.path)
    backend = open_backend(policy.database, policy.read_from)
    with backend.snapshot() as snapshot:
        catalog = build_catalog(policy, snapshot.schema())
    backend.close_idle()
    privacy = PrivacyParameters.of(policy, policy.defaults.epsilon, None)
    (release,) = plan_text(WITHOUT, catalog, privacy).releases
    return not release.is_empty


def test_no_foreign_key_of_another_table_proves_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each item has a ward in the database's own table, and one has none in the other."""
    assert not is_counted(tmp_path, WARD.replace('source = "ward_2"\n', ""))
    assert is_counted(tmp_path, WARD)
    plant(monkeypatch, contradiction._is_always_matched, ("parent.table.place", "parent.table.path"))
    assert not is_counted(tmp_path, WARD), "the test tells it"


# --- under a budget by periods -------------------------------------------------------------------------------------

DATED = """
CREATE TABLE person (id INTEGER PRIMARY KEY);
CREATE TABLE bill_2 (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, billed DATE, paid DATE);
CREATE TABLE line_2 (bill INTEGER NOT NULL, cost INTEGER);
INSERT INTO person VALUES (1), (2);
INSERT INTO bill_2 VALUES (1, 1, '2025-02-03', '2025-03-04'), (2, 2, '2025-02-03', '2025-02-04'), (3, 2, '2025-05-03', NULL);
INSERT INTO line_2 VALUES (1, 5), (1, 6), (3, 7);
"""
BY_MONTH = """
[tables.bill]
source = "bill_2"
unit = { column = "owner", references = "person.id" }
max_rows = 3
time = "billed"
columns = { billed = {} }
[tables.line]
source = "line_2"
unit = { column = "bill", references = "bill.id" }
max_rows = 3
time = "bill.billed"
"""


def test_a_time_is_that_of_the_rows_under_any_name(tmp_path: Path) -> None:
    """Charged by the month in which they were billed, rows are not counted by the one in which they were paid."""
    with duckdb.connect(str(tmp_path / "dated.duckdb")) as connection:
        connection.execute(DATED)
    place = Place(tmp_path / "dated.toml", f"duckdb:{tmp_path / 'dated.duckdb'}")
    time = '[privacy.time]\nperiod = "month"\nsince = 2025-01-01\n'
    place.write(time + BY_MONTH)
    open_ledger(load_policy(place.path), create=True).close()
    for table, rows in (("bill", 3), ("line", 3)):
        assert place.count(
            f"SELECT COUNT(*) FROM {table} WHERE billed >= DATE '2025-01-01'"
            if table == "bill"
            else "SELECT COUNT(*) FROM line"
        ) == (rows, True)
    place.write(
        time
        + BY_MONTH.replace("tables.bill]", "tables.paid]")
        .replace("bill.", "paid.")
        .replace('"billed"', '"paid"')
        .replace("paid.billed", "paid.paid")
        .replace("{ billed", "{ paid")
    )
    with pytest.raises(LedgerError, match='rows of "bill_2" were charged by time = "billed"'):
        place.count("SELECT COUNT(*) FROM paid")
    place.write(time + BY_MONTH.replace("tables.bill]", "tables.calls]").replace("bill.", "calls."))
    assert place.count("SELECT COUNT(*) FROM line") == (3, True), (
        "under another name it is asked anew, and charged"
    )
