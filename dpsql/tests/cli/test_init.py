"""`dpsql init` over databases and files: what it writes, what it says of the rest, and that the next step works."""

from __future__ import annotations

import tomllib
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.tests.support.postgres_server import PostgresServer


def run(policy: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(policy), *words])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_parquet(name: str, sql: str) -> None:
    duckdb.sql(f"COPY ({sql}) TO '{name}'")


def test_files_make_a_policy(folder: Path) -> None:
    write_parquet("visits.parquet", "SELECT i % 50 AS patient_id, i % 9 AS cost FROM range(300) AS t (i)")
    (folder / "Patients 2026.csv").write_text("patient_id,born\n1,1990\n2,1991\n")
    (folder / "wards").mkdir()
    write_parquet("wards/a.parquet", "SELECT 'a' AS name")
    (folder / "sub").mkdir()
    policy = folder / "sub" / "my.toml"
    made = run(policy, "init", "visits.parquet", "Patients 2026.csv", "wards")
    assert made.exit_code == 0, made.output
    assert "Patients 2026.parquet: 2 rows converted" in made.stderr
    content = tomllib.loads(policy.read_text())
    assert content["database"] == "duckdb:"
    assert {name: (table["source"], table["unit"]) for name, table in content["tables"].items()} == {
        "visits": ("../visits.parquet", "patient_id"),
        "patients_2026": ("../Patients 2026.parquet", "patient_id"),
    }
    assert '# [tables.wards]\n# source = "../wards/*.parquet"\n# public = true\n' in policy.read_text()
    text = policy.read_text().replace("# max_rows   =   ", "max_rows = 6  ")
    policy.write_text(text)
    for step in (("check",), ("budget", "create"), ("query", "SELECT COUNT(*) FROM visits")):
        done = run(policy, *step)
        assert done.exit_code == 0, done.output


def test_a_pattern_is_one_table(folder: Path) -> None:
    (folder / "visits").mkdir()
    for part in "ab":
        write_parquet(f"visits/{part}.parquet", "SELECT 1 AS user_id")
    assert run(folder / "x.toml", "init", "visits/*.parquet").exit_code == 0
    assert tomllib.loads((folder / "x.toml").read_text())["tables"]["visits"]["source"] == "visits/*.parquet"


def test_a_duckdb_file_may_be_named_alone(folder: Path) -> None:
    with duckdb.connect("my.duckdb") as database:
        database.execute("CREATE TABLE event (user_id INT); CREATE VIEW shown AS SELECT * FROM event")
    made = run(folder / "x.toml", "init", "my.duckdb")
    assert made.exit_code == 0
    assert "left out: shown: is a view" in made.stderr
    assert tomllib.loads((folder / "x.toml").read_text())["database"] == "duckdb:my.duckdb"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("a.parquet", "sub/a.parquet"), 2, "another table is called a already"),
        (("a.xlsx",), 2, "Write duckdb:a.xlsx for a DuckDB file, or name Parquet, CSV"),
        (("b.csv",), 2, "b.parquet exists already. Name it in place of b.csv"),
        (("*.csv",), 2, "Convert the others first: dpsql convert"),
        (("none.csv",), 5, "HINT: name a file that is there"),
        (("none.parquet",), 5, "none.parquet"),
        (("duckdb:x", "a.parquet"), 2, "Name one database, or files."),
        (("mysql://x",), 5, 'write "duckdb:<file>", postgresql://user@host/database or spark://host:port'),
        ((), 2, "Name a database or files, or a --template."),
    ],
)
def test_what_makes_no_policy_says_what_to_do(
    folder: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    (folder / "sub").mkdir()
    for name in ("a", "sub/a", "b"):
        write_parquet(f"{name}.parquet", "SELECT 1 AS user_id")
    (folder / "b.csv").write_text("x\n1\n")
    failed = run(folder / "x.toml", "init", *words)
    assert (failed.exit_code, said in failed.stderr) == (code, True), failed.output
    assert not (folder / "x.toml").exists()


def test_a_public_lookup_lists_its_keys(folder: Path) -> None:
    with duckdb.connect("my.duckdb") as database:
        database.execute(
            "CREATE TABLE country (code VARCHAR PRIMARY KEY); INSERT INTO country VALUES ('FR'), ('C\"H');"
            "CREATE TABLE town (nr INT PRIMARY KEY); INSERT INTO town SELECT * FROM range(1000);"
            "CREATE TABLE customer (id INT PRIMARY KEY, country VARCHAR NOT NULL REFERENCES country (code),"
            " born_in VARCHAR REFERENCES country (code), town INT REFERENCES town (nr));"
        )
    made = run(folder / "x.toml", "init", "my.duckdb", "--public", "country", "--public", "town")
    assert made.exit_code == 0, made.output
    tables = tomllib.loads((folder / "x.toml").read_text())["tables"]
    assert tables["customer"]["columns"] == {
        "country": {"values": ['C"H', "FR"], "complete": True},
        "born_in": {"values": ['C"H', "FR", {"null": True}], "complete": True},
        "town": {},
    }
    assert (tables["country"], tables["town"]) == ({"public": True}, {"public": True})
    assert run(folder / "x.toml", "check").exit_code == 0
    failed = run(folder / "y.toml", "init", "my.duckdb", "--public", "contry")
    assert failed.exit_code == 5
    assert 'did you mean "country"?' in failed.stderr


def test_numbers_of_a_public_lookup_have_the_bounds_of_its_rows(folder: Path) -> None:
    """So revenue is answered; reals are rounded outwards, and a column without a finite number has none."""
    with duckdb.connect("shop.duckdb") as database:
        database.execute(
            "CREATE TABLE customer (id INT PRIMARY KEY); INSERT INTO customer SELECT * FROM range(1000);"
            "CREATE TABLE product (nr INT PRIMARY KEY, price DECIMAL(8, 2), weight DOUBLE, odd DOUBLE, none INT, name TEXT);"
            "INSERT INTO product VALUES (1, -0.50, 0.123456, 'nan', NULL, 'a'), (2, 118.25, 987.654, 1, NULL, 'b');"
            "CREATE TABLE item (customer INT NOT NULL REFERENCES customer (id), product INT NOT NULL REFERENCES product (nr));"
            "INSERT INTO item SELECT i, 1 + i % 2 FROM range(1000) AS t (i);"
        )
    assert run(folder / "x.toml", "init", "shop.duckdb", "--public", "product").exit_code == 0
    text = (folder / "x.toml").read_text()
    assert "price = { bounds = [-0.5, 118.25] }  # of today's rows, which are public\n" in text
    assert tomllib.loads(text)["tables"]["product"]["columns"] == {
        "price": {"bounds": [-0.5, 118.25]}, "weight": {"bounds": [0, 988]},
    }  # fmt: skip
    (folder / "x.toml").write_text(text.replace("# max_rows   =   #", "max_rows = 1  #"))
    assert run(folder / "x.toml", "budget", "create").exit_code == 0
    asked = "SELECT name, SUM(price), AVG(weight) FROM item JOIN product ON product = nr GROUP BY name"
    answered = run(folder / "x.toml", "query", asked)
    assert answered.exit_code == 0, answered.output
    shown = run(
        folder / "x.toml", "query", "SELECT odd, name FROM product ORDER BY nr"
    )  # all columns are seen
    assert shown.exit_code == 0


def test_a_public_table_whose_numbers_cannot_be_read_is_told(folder: Path) -> None:
    write_parquet("person.parquet", "SELECT 1 AS user_id, 'a' AS kind")
    write_parquet("kinds.parquet", "SELECT 'a' AS kind, 1 AS size")
    content = Path("kinds.parquet").read_bytes()
    Path("kinds.parquet").write_bytes(content[:4] + b"\xff" * 40 + content[44:])
    failed = run(folder / "x.toml", "init", "person.parquet", "kinds.parquet", "--public", "kinds")
    assert failed.exit_code in (5, 6)
    assert "Traceback" not in failed.output
    assert not (folder / "x.toml").exists()


def test_a_public_lookup_of_files_lists_the_keys_that_its_rows_have(folder: Path) -> None:
    """Its key is a column that others lead to, by name and type, if its rows say so; else none is."""
    write_parquet("country.parquet", "SELECT UNNEST(['FR', 'CH']) AS code, 'x' AS code_name")
    write_parquet("towns.parquet", "SELECT i::INTEGER AS id FROM range(1000) AS t (i)")
    write_parquet("rate.parquet", "SELECT UNNEST(['a', 'a']) AS kind, 1 AS id")
    write_parquet(
        "visit.parquet",
        "SELECT 1 AS user_id, 'FR' AS country, 2 AS town, 2 AS towns_id, 3::BIGINT AS town_id, 'a' AS kind, 'q' AS code",
    )
    named = [f"--public={name}" for name in ("country", "towns", "rate")]
    made = run(
        folder / "x.toml", "init", "country.parquet", "towns.parquet", "rate.parquet", "visit.parquet", *named
    )
    assert made.exit_code == 0, made.output
    tables = tomllib.loads((folder / "x.toml").read_text())["tables"]
    assert tables["visit"]["columns"] == {
        "country": {"values": ["CH", "FR", {"null": True}]},
        "town": {}, "towns_id": {}, "town_id": {}, "kind": {}, "code": {},
    }  # fmt: skip
    assert "town = {}  # a key of towns" in (folder / "x.toml").read_text()
    assert [tables[name].get("key") for name in ("country", "towns", "rate")] == [["code"], ["id"], None]
    policy = (folder / "x.toml").read_text().replace("# max_rows   =   #", "max_rows = 2  #")
    (folder / "x.toml").write_text(policy)
    assert run(folder / "x.toml", "budget", "create").exit_code == 0
    assert run(folder / "x.toml", "query", "SELECT country, COUNT(*) FROM visit GROUP BY 1").exit_code == 0


def test_a_right_that_is_missing_is_named_with_its_grant(folder: Path, postgres: PostgresServer) -> None:
    name = postgres.create_database()
    with postgres.admin(name) as connection:
        connection.execute(
            "CREATE TABLE customer (id INT PRIMARY KEY); CREATE TABLE sale (customer INT REFERENCES customer (id));"
            "CREATE TABLE day (at DATE) PARTITION BY RANGE (at);"
            "CREATE TABLE day_1 PARTITION OF day FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');"
        )
    url = postgres.create_reader(name)
    with postgres.admin(name) as connection:
        connection.execute("REVOKE ALL ON customer FROM reader")
    made = run(folder / "x.toml", "init", url)
    assert made.exit_code == 0, made.output
    assert (
        "left out: customer: dpsql's role may not read it; run GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON"
        in made.stderr
    )
    assert "day_1" not in (folder / "x.toml").read_text()


def test_a_policy_that_exists_is_kept_and_with_force_beside(folder: Path) -> None:
    write_parquet("visits.parquet", "SELECT i % 50 AS patient_id, i % 9 AS cost FROM range(300) AS t (i)")
    policy = folder / "my.toml"
    policy.write_text("# by hand\n")
    made = run(policy, "init", "visits.parquet")
    assert (made.exit_code, policy.read_text()) == (2, "# by hand\n")
    assert "--force" in made.stderr
    made = run(policy, "init", "--force", "visits.parquet")
    assert made.exit_code == 0, made.output
    assert "visits" in tomllib.loads(policy.read_text())["tables"]
    assert policy.stat().st_mode & 0o777 == 0o600
    written = policy.read_text()
    assert (folder / "my.toml.old").read_text() == "# by hand\n"
    made = run(policy, "init", "--force", "visits.parquet")
    assert made.exit_code == 2
    assert "Move it away first" in made.stderr
    assert (policy.read_text(), (folder / "my.toml.old").read_text()) == (written, "# by hand\n")
    made = run(folder / "other.toml", "init", "--force", "nothing.parquet")
    assert made.exit_code != 0
    assert not (folder / "other.toml").exists()
