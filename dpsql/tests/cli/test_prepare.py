"""A table whose rows are numbered, from the copy to an answer, and again after new data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.backends import prepared_rows
from dpsql.backends.prepared_rows import Prepared
from dpsql.cli.application import program
from dpsql.errors import PolicyError
from dpsql.tests.support.postgres_server import PostgresServer

POLICY = """
database = "duckdb:data.duckdb"
[privacy]
epsilon = 10
[tables.person]
unit = "id"
[tables.visit]
unit = { column = "owner", references = "person.id" }
max_rows = 3
[tables.visit.columns]
ward = { values = ["a", "b"] }
"""


COPIED = '[tables.visit]\nsource = "visit_prepared"\nrow_number = "n"'


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "data.duckdb")) as connection:
        connection.execute("CREATE TABLE person AS SELECT i AS id FROM range(50) AS t (i)")
        connection.execute("ALTER TABLE person ADD PRIMARY KEY (id)")
        connection.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, owner BIGINT, ward TEXT)")
        connection.execute(
            "INSERT INTO visit SELECT i, i % 50, ['a', 'b'][i % 2 + 1] FROM range(200) AS t (i)"
        )
    path = tmp_path / "data.toml"
    path.write_text(POLICY)
    return path


def run(policy: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(policy), *words])


TIME = """[privacy.time]
period = "month"
since = 2025-01-01
[tables.person]"""
DATED = POLICY.replace("[tables.person]", TIME).replace("max_rows = 3", 'max_rows = 3\ntime = "day"')
BY_MONTH = "SELECT date_trunc('month', day), COUNT(*) FROM visit WHERE day < '2025-04-01' GROUP BY 1"


@pytest.fixture
def dated(policy: Path) -> Path:
    """The visits of a person are of February, but for one of January and one without a day."""
    with duckdb.connect(str(policy.parent / "data.duckdb")) as connection:
        connection.execute("ALTER TABLE visit ADD COLUMN day DATE")
        connection.execute(
            "UPDATE visit SET day = CASE WHEN id < 50 THEN DATE '2025-01-31' WHEN id < 150 THEN DATE '2025-02-01' END"
        )
    policy.write_text(DATED)
    return policy


def take(policy: Path, made: Result) -> None:
    """Have a policy say what the command printed, in place of what it says of the table."""
    lines = made.stdout.splitlines()[2:8]
    columns = "columns = { day = {} }"
    policy.write_text("\n".join([DATED[: DATED.index("[tables.visit]")], *lines, columns]))


def test_from_a_table_with_a_time_to_an_answer(dated: Path) -> None:
    made = run(dated, "prepare", "visit")
    assert made.exit_code == 0, made.output
    assert made.stdout.splitlines() == [
        "visit_prepared: 200 rows, 200 of them numbered now, 0 gone",
        "In the policy, in place of what it says of visit:",
        "  [tables.visit]",
        '  source = "visit_prepared"',
        '  unit = { column = "owner", references = "person.id" }',
        '  time = "day"',
        '  row_number = ["n_month", "n"]',
        "  max_rows = 3",
        "and its columns as before, without what numbers rows.",
    ]
    take(dated, made)
    assert run(dated, "check").exit_code == 0
    assert run(dated, "budget", "create").exit_code == 0
    explained = run(dated, "explain", BY_MONTH).stdout
    assert "numbered 1 to 3" in explained
    assert "n_month" in explained
    told = json.loads(run(dated, "query", "--epsilon", "1", "--json", BY_MONTH).stdout)
    counts = [row[1] for row in told["rows"]]
    assert [abs(count - exact) < 60 for count, exact in zip(counts, (50, 100, 0), strict=True)] == [True] * 3
    again = run(dated, "prepare", "visit").stdout.splitlines()
    assert again == [
        "visit_prepared: 200 rows, 200 of them numbered now, 0 gone",
        "The dataset is at epoch 2: earlier answers of undated rows, and of months that are not over, are no longer given again.",
        "Closed months keep theirs; of one in which rows came late: dpsql refresh --from it.",
    ]
    assert (
        json.loads(run(dated, "query", "--epsilon", "1", "--json", BY_MONTH).stdout)["rows"] == told["rows"]
    )


def test_check_tells_of_rows_of_another_month(dated: Path) -> None:
    take(dated, run(dated, "prepare", "visit"))
    said = "rows have the first day of another month beside their number"
    assert said not in run(dated, "check", "--data").output
    with duckdb.connect(str(dated.parent / "data.duckdb")) as connection:
        connection.execute("UPDATE visit_prepared SET n_month = DATE '2025-01-27' WHERE id IN (3, 4, 60)")
    assert f"3 of 200 {said}" in run(dated, "check", "--data").output


def test_a_table_whose_time_is_on_its_way_is_brought_to_new_data_under_its_base(dated: Path) -> None:
    with duckdb.connect(str(dated.parent / "data.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE item AS SELECT i AS no, CAST(i % 150 AS INTEGER) AS visit_id FROM range(300) AS t (i)"
        )
        connection.execute("ALTER TABLE item ADD PRIMARY KEY (no)")
    item = "[tables.item]\nunit = { column = 'visit_id', references = 'visit.id' }\ntime = 'visit.day'\nmax_rows = 9\n"
    dated.write_text(f"{DATED}\n{item}")
    made = run(dated, "prepare", "item")
    printed = made.stdout.splitlines()
    assert [line for line in printed if "time" in line] == ['  time = "day"', '  time = "visit.day"'], (
        made.output
    )
    said = [line for line in printed if line.startswith("  ")]
    assert '  row_number = ["n_month", "n"]' in said
    dated.write_text("\n".join([DATED, *said]))
    assert run(dated, "check").exit_code == 0
    with duckdb.connect(str(dated.parent / "data.duckdb")) as connection:
        connection.execute("INSERT INTO item VALUES (1000, 1)")
    again = run(dated, "prepare", "item_base", "--into", "item_prepared")
    assert again.stdout.startswith("item_prepared: 301 rows, 301 of them numbered now, 0 gone"), again.output
    explained = run(dated, "explain", "SELECT COUNT(*) FROM item").stdout
    assert "numbered 1 to 9" in explained


def test_what_is_wrong_with_the_ledger_is_said_first(policy: Path) -> None:
    assert run(policy, "budget", "create").exit_code == 0
    policy.write_text(POLICY.replace("[tables.person]", "[tables.people]").replace("person.id", "people.id"))
    with duckdb.connect(str(policy.parent / "data.duckdb")) as connection:
        connection.execute("ALTER TABLE person RENAME TO people")
    refused = run(policy, "prepare", "visit")
    assert refused.exit_code == 7
    assert "this ledger belongs to another dataset" in refused.stderr
    with duckdb.connect(str(policy.parent / "data.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (2,)


def test_a_copy_that_the_policys_role_may_not_read_yet(postgres: PostgresServer, tmp_path: Path) -> None:
    """It is found under the role that writes, and brought to new data as any."""
    name = postgres.create_database()
    with postgres.admin(name) as connection:
        connection.execute("CREATE TABLE person (id BIGINT PRIMARY KEY); INSERT INTO person VALUES (1), (2)")
        connection.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, owner BIGINT, ward TEXT)")
        connection.execute("INSERT INTO visit VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'a')")
        connection.execute(f"CREATE ROLE {name}_reader LOGIN; GRANT SELECT ON person, visit TO {name}_reader")
    path = tmp_path / "data.toml"
    path.write_text(POLICY.replace("duckdb:data.duckdb", postgres.url(name, f"{name}_reader")))
    for came in (3, 0):
        made = run(path, "prepare", "visit", "--database", postgres.url(name))
        assert made.exit_code == 0, made.output
        assert made.stdout.startswith(f"visit_prepared: 3 rows, {came} of them numbered now, 0 gone")
    with postgres.admin(name) as connection:
        connection.execute(f"GRANT SELECT ON visit_prepared TO {name}_reader")
        connection.execute(f"REVOKE SELECT ON visit FROM {name}_reader; INSERT INTO visit VALUES (4, 2, 'b')")
    path.write_text(path.read_text().replace("[tables.visit]", COPIED))
    assert run(path, "check").exit_code == 0, "the policy's role reads the copy alone"
    assert run(path, "budget", "create").exit_code == 0
    assert 'this role may not read "visit"' in run(path, "prepare", "visit").output
    again = run(path, "prepare", "visit", "--database", postgres.url(name), "--json")
    assert json.loads(again.stdout) == told("visit_prepared", 4, 1, 0, 0, 2)
    assert run(path, "query", "SELECT ward, COUNT(*) FROM visit GROUP BY ward").exit_code == 0
    assert "No ledger" not in again.output
    postgres.drop_database(name)


def test_the_ledger_is_kept_where_the_copy_takes_the_tables_place(policy: Path) -> None:
    """A dataset without a name has that of its first table, which keeps its own."""
    alone = POLICY[: POLICY.index("[tables.person]")] + '[tables.visit]\nunit = "owner"\nmax_rows = 3\n'
    policy.write_text(alone)
    assert run(policy, "budget", "create").exit_code == 0
    assert "dataset" not in run(policy, "prepare", "visit").stdout
    policy.write_text(alone.replace("[tables.visit]", COPIED))
    assert run(policy, "query", "SELECT COUNT(*) FROM visit").exit_code == 0


def test_from_a_table_to_an_answer(policy: Path) -> None:
    made = run(policy, "prepare", "visit")
    assert made.exit_code == 0, made.output
    assert made.stdout.splitlines() == [
        "visit_prepared: 200 rows, 200 of them numbered now, 0 gone",
        "In the policy, in place of what it says of visit:",
        "  [tables.visit]",
        '  source = "visit_prepared"',
        '  unit = { column = "owner", references = "person.id" }',
        '  row_number = "n"',
        "  max_rows = 3",
        "and its columns as before, without what numbers rows.",
    ]
    policy.write_text(POLICY.replace("[tables.visit]", COPIED))
    assert run(policy, "check").exit_code == 0
    assert run(policy, "budget", "create").exit_code == 0
    sql = "SELECT ward, COUNT(*) FROM visit GROUP BY ward"
    assert '("n" BETWEEN 1 AND 3)' in run(policy, "explain", sql).stdout
    assert run(policy, "query", sql).exit_code == 0
    audited = run(policy, "audit", "--sql", sql)
    assert audited.exit_code == 0, audited.output
    assert "3 of 3" in audited.stdout, "its people have numbered rows, more than count"


def test_a_copy_keeps_the_range_of_people(policy: Path) -> None:
    policy.write_text(POLICY.replace("max_rows = 3", "unit_range = [0, 9]\nmax_rows = 3"))
    made = run(policy, "prepare", "visit")
    assert made.exit_code == 0, made.output
    assert "  unit_range = [0, 9]" in made.stdout.splitlines()
    policy.write_text(POLICY.replace("[tables.visit]", f"{COPIED}\nunit_range = [0, 9]"))
    checked = " ".join(run(policy, "check", "--data").stdout.split())
    assert '160 of 200 rows are of people whose "owner" is outside, and are never counted' in checked
    assert run(policy, "budget", "create").exit_code == 0
    sql = "SELECT COUNT(*) FROM visit"
    explained = run(policy, "explain", sql).stdout
    assert '("n" BETWEEN 1 AND 3)' in explained
    assert '("owner" >= 0)' in explained
    assert '("owner" <= 9)' in explained
    answer = run(policy, "query", "--epsilon", "1", "--json", sql)
    ((count,),) = json.loads(answer.stdout)["rows"]
    assert abs(count - 30) < 90, "3 rows of each of 10 people of 50, within 30 scales of the noise"


def told(table: str, rows: int, came: int, went: int, changed: int, epoch: int | None) -> dict[str, object]:
    return {"table": table, "rows": rows, "came": came, "went": went, "changed": changed, "epoch": epoch}


def test_new_data_is_a_new_epoch(policy: Path) -> None:
    words = "prepare", "visit", "--into", "copy", "--column", "no"
    assert run(policy, *words).exit_code == 0
    assert json.loads(run(policy, *words, "--json").stdout) == told("copy", 200, 0, 0, 0, None), "no ledger"
    assert run(policy, "budget", "create").exit_code == 0
    execute(policy, "DELETE FROM visit WHERE id < 10; INSERT INTO visit VALUES (1000, 1, 'a')")
    assert json.loads(run(policy, *words, "--json").stdout) == told("copy", 191, 1, 10, 0, 2)
    anew = run(policy, *words, "--renumber")
    assert "copy: 191 rows, 191 of them numbered now, 0 gone" in anew.stdout
    assert "The dataset is at epoch 3: earlier answers are no longer given again." in anew.stdout


def execute(policy: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(policy.with_name("data.duckdb"))) as connection:
        return connection.execute(sql).fetchall()


# --- a copy under the name of the table that was copied -----------------------------------------------------------


@pytest.fixture
def copied(policy: Path) -> Path:
    """A policy whose visits are the copy, with a ledger."""
    assert run(policy, "prepare", "visit").exit_code == 0
    policy.write_text(POLICY.replace("[tables.visit]", COPIED))
    assert run(policy, "budget", "create").exit_code == 0
    return policy


def refreshed(policy: Path) -> object:
    done = run(policy, "prepare", "visit", "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_it_is_brought_to_the_rows_of_the_table_that_was_copied(copied: Path) -> None:
    """Each run is an epoch, whatever it finds: whoever asks again for a free answer learns nothing of the rows."""
    assert refreshed(copied) == told("visit_prepared", 200, 0, 0, 0, 2)
    execute(copied, "UPDATE visit SET ward = 'b' WHERE id < 4")
    assert refreshed(copied) == told("visit_prepared", 200, 0, 0, 2, 3)
    execute(copied, "DELETE FROM visit WHERE id < 10; INSERT INTO visit VALUES (1000, 1, 'a')")
    assert refreshed(copied) == told("visit_prepared", 191, 1, 10, 0, 4)
    execute(copied, "DROP TABLE visit_prepared")
    assert refreshed(copied) == told("visit_prepared", 191, 191, 0, 0, 5), "it is read, and was made anew"


def test_the_column_of_numbers_is_the_policys(policy: Path) -> None:
    assert run(policy, "prepare", "visit", "--column", "k").exit_code == 0
    policy.write_text(POLICY.replace("[tables.visit]", COPIED.replace('"n"', '"k"')))
    assert refreshed(policy) == told("visit_prepared", 200, 0, 0, 0, None)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("ALTER TABLE visit RENAME TO visit_2", 'the database has no table "visit" to be copied'),
        ("ALTER TABLE visit RENAME owner TO whose", '"visit" of the database has no "owner"'),
    ],
)
def test_where_the_table_that_was_copied_is_called_otherwise(copied: Path, before: str, said: str) -> None:
    execute(copied, before)
    refused = run(copied, "prepare", "visit")
    assert refused.exit_code == 5
    assert said in " ".join(refused.output.split())
    assert "and run dpsql prepare on that one, --into visit_prepared" in " ".join(refused.output.split())


def test_a_copy_is_not_numbered_in_place(copied: Path) -> None:
    refused = run(copied, "prepare", "visit", "--in-place")
    assert refused.exit_code == 5


def test_rows_that_lead_over_others_are_brought_to_new_data_under_a_name_of_their_own(policy: Path) -> None:
    """The table as it is stays in the policy, where no analyst sees it, as its rows do not say whose they are."""
    item = '[tables.item]\nunit = { column = "visit_id", references = "visit.id" }\nmax_rows = 9\n'
    execute(
        policy,
        "CREATE TABLE item AS SELECT i AS no, CAST(i % 200 AS INTEGER) AS visit_id FROM range(400) AS t (i)",
    )
    execute(policy, "ALTER TABLE item ADD PRIMARY KEY (no)")
    policy.write_text(POLICY + item)
    lines = run(policy, "prepare", "item").stdout.splitlines()
    lines += run(policy, "prepare", "visit").stdout.splitlines()
    written = [line.strip() for line in lines if line.startswith("  ")]
    assert "[tables.item_base]" in written
    assert "[tables.visit_base]" in written
    text = "\n".join(written).replace('"visit.id"', '"visit_base.id"')
    policy.write_text(POLICY[: POLICY.index("[tables.visit]")] + text)
    checked = run(policy, "check")
    assert checked.exit_code == 0, checked.output
    assert run(policy, "budget", "create").exit_code == 0
    assert run(policy, "query", "SELECT COUNT(*) FROM item").exit_code == 0
    assert "does not exist" in run(policy, "query", "SELECT COUNT(*) FROM item_base").output
    execute(policy, "DELETE FROM item WHERE no < 7")
    done = run(policy, "prepare", "item_base", "--json")
    assert json.loads(done.stdout) == told("item_prepared", 393, 0, 7, 0, 2), done.output


# --- a ledger that fails ------------------------------------------------------------------------------------------


def test_a_ledger_that_cannot_be_written_leaves_the_copy_as_it_was(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch begins before the copy is another one: a copy that changed never answers as of the old epoch."""
    from dpsql.budget import LedgerStore
    from dpsql.errors import LedgerError

    before = execute(copied, "FROM visit_prepared ORDER BY ALL")
    execute(copied, "DELETE FROM visit WHERE id < 10")

    def fails(*_: object) -> int:
        raise LedgerError("the ledger cannot be written")

    with monkeypatch.context() as patch:
        patch.setattr(LedgerStore, "advance_epoch", fails)
        refused = run(copied, "prepare", "visit")
    assert refused.exit_code == 7, refused.output
    assert execute(copied, "FROM visit_prepared ORDER BY ALL") == before
    assert refreshed(copied) == told("visit_prepared", 190, 0, 10, 0, 2)


def test_a_copy_that_stayed_as_it_was_behind_an_epoch(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the disk is full when the transaction ends: what was drawn is asked anew, and never of other rows."""

    def fails(*_: object, advance: Callable[[Prepared], None], **__: object) -> None:
        advance(Prepared(1, 1, 0, True))
        raise PolicyError("the rows could not be numbered")

    monkeypatch.setattr(prepared_rows, "prepare", fails)
    refused = run(copied, "prepare", "visit")
    assert refused.exit_code == 5
    assert "the dataset is at epoch 2 all the same" in " ".join(refused.output.split())


def test_where_the_ledger_is_lost_its_answers_are_told_of(copied: Path) -> None:
    for name in ("data-ledger.db", "data-ledger.db.log"):
        copied.with_name(name).unlink()
    assert "where one is restored, run dpsql refresh" in run(copied, "prepare", "visit").output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], 'no table "nothing" is declared'),
        (["person"], "a person has one row here"),
        (["visit", "--in-place", "--into", "x"], "--into names a copy"),
        (["visit", "--column", "ward"], 'the table has a column "ward" already'),
    ],
)
def test_what_is_refused(policy: Path, words: list[str], said: str) -> None:
    refused = run(policy, "prepare", *words)
    assert refused.exit_code in (2, 5)
    assert said in refused.output


def test_a_file_that_is_open_elsewhere(policy: Path) -> None:
    with duckdb.connect(str(policy.with_name("data.duckdb")), read_only=True):
        refused = run(policy, "prepare", "visit")
    assert refused.exit_code == 5
    assert "no other program may have" in refused.output


# --- a copy of files ----------------------------------------------------------------------------------------------

FILES = """
database = "duckdb:"
[privacy]
epsilon = 10
[tables.person]
source = "person.parquet"
unit = "id"
key = ["id"]
[tables.stay]
source = "stay.parquet"
unit = { column = "owner", references = "person.id" }
key = ["no"]
max_rows = 9
[tables.visit]
source = "visits/*.parquet"
unit = { column = "stay", references = "stay.no" }
max_rows = 3
[tables.visit.columns]
ward = { values = ["a", "b"] }
"""
DECLARED = """
[tables.visit_prepared]
source = "visit_prepared.parquet"
unit = { column = "owner", references = "person.id" }
key = ["owner", "n"]
row_number = "n"
max_rows = 3
[tables.visit_prepared.columns]
ward = { values = ["a", "b"] }
"""
BY_WARD = "SELECT ward, COUNT(*) FROM visit_prepared GROUP BY ward"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Visits lead over stays to people; those of a stay that is not there, or of nobody, are nobody's."""
    (tmp_path / "visits").mkdir()
    copied = {
        "person": "SELECT i AS id FROM range(50) AS t (i)",
        "stay": "SELECT i AS no, CASE WHEN i < 99 THEN i % 50 END AS owner FROM range(100) AS t (i)",
        "visits/1": "SELECT i % 110 AS stay, ['a', 'b'][i % 2 + 1] AS ward FROM range(220) AS t (i)",
        "visits/2": "SELECT i % 110 AS stay, 'a' AS ward FROM range(110) AS t (i)",
    }
    for name, rows in copied.items():
        duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/{name}.parquet'")
    path = tmp_path / "data.toml"
    path.write_text(FILES)
    return path


def test_a_copy_of_files_is_a_file_with_a_key_to_verify(files: Path) -> None:
    made = run(files, "prepare", "visit")
    assert made.exit_code == 0, made.output
    assert made.stdout.splitlines() == [
        "visit_prepared: 297 rows, 297 of them numbered now, 0 gone",
        "In the policy:",
        *(
            f"  {line}"
            for line in DECLARED.split("\n[tables.visit_prepared.columns]")[0].strip().splitlines()
        ),
        "and its columns as before, without what numbers rows.",
        "dpsql budget create, or dpsql refresh, looks at all rows and records that the key holds.",
    ]
    copy = files.with_name("visit_prepared.parquet")
    twice = f"SELECT COUNT(*), COUNT(DISTINCT (owner, n)), MIN(n), MAX(n) FROM '{copy}'"
    assert duckdb.sql(twice).fetchall() == [(297, 297, 1, 6)]
    assert not list(copy.parent.glob("*.new"))
    files.write_text(FILES + DECLARED)
    assert run(files, "budget", "create").exit_code == 0
    assert '("n" BETWEEN 1 AND 3)' in run(files, "explain", BY_WARD).stdout
    assert run(files, "query", BY_WARD).exit_code == 0
    assert "3 of 3" in run(files, "audit", "--sql", BY_WARD).stdout


def test_a_copy_of_new_files_is_recorded_anew(files: Path) -> None:
    assert run(files, "prepare", "visit").exit_code == 0
    files.write_text(FILES + DECLARED)
    assert run(files, "budget", "create").exit_code == 0
    folder = files.parent
    duckdb.sql(f"COPY (SELECT 7::BIGINT AS stay, 'b' AS ward FROM range(10)) TO '{folder}/visits/3.parquet'")
    again = run(files, "prepare", "visit")
    assert again.exit_code == 0, again.output
    assert again.stdout.splitlines() == [
        "visit_prepared: 307 rows, 307 of them numbered now, 0 gone",
        "It is another file than before: dpsql refresh verifies its numbers and records it.",
    ]
    refused = run(files, "query", BY_WARD)
    assert refused.exit_code != 0
    assert "not the ones that were recorded" in refused.stderr
    refreshed = run(files, "refresh")
    assert refreshed.exit_code == 0, refreshed.output
    assert run(files, "query", BY_WARD).exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["visit", "--in-place"], "files are not numbered in place"),
        (["visit", "--database", "duckdb:x.db"], "--database is for a policy of a database"),
        (["visit", "--into", "person"], '"person.parquet" is there, which is no such copy'),
        (["visit", "--into", "visit"], 'a copy is another table than "visit"'),
        (["stay", "--into", "visit"], '"visit" is of several files, and a copy is one'),
        (["visit", "--column", "ward"], 'the table has a column "ward" already'),
        (["person"], "a person has one row here"),
    ],
)
def test_what_is_refused_of_files(files: Path, words: list[str], said: str) -> None:
    before = {path: path.read_bytes() for path in files.parent.glob("*.parquet")}
    refused = run(files, "prepare", *words)
    assert refused.exit_code in (2, 5)
    assert said in refused.output
    assert {path: path.read_bytes() for path in files.parent.glob("*.parquet")} == before


def test_a_place_that_cannot_be_written(files: Path) -> None:
    """Whatever ends it, there is the copy of before, or none."""
    files.with_name("visit_prepared.parquet.new").mkdir()
    refused = run(files, "prepare", "visit")
    assert refused.exit_code == 5
    assert '"visit_prepared.parquet" cannot be written' in refused.output
    assert "Traceback" not in refused.output
    assert not files.with_name("visit_prepared.parquet").exists()
