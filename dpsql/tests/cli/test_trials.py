"""First hours: from nothing to a first answer with a bar, in at most five commands, over data as owners have them.

Each trial runs init, check, budget create and query; between the first two the owner writes what `init` asks for: no more
than `max_rows`, bounds, and the comment signs that it says to take off. No step may fail.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.tests.support.postgres_server import PostgresServer

MANUAL = Path(__file__).parents[2] / "docs" / "owner.md"
SHOP = """
CREATE TYPE state AS ENUM ('open', 'paid', 'sent');
CREATE TABLE country (code CHAR(2) PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE category (id INT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE product (id UUID PRIMARY KEY, category_id INT REFERENCES category (id), price NUMERIC(10, 2) NOT NULL);
CREATE TABLE customer (
    id UUID PRIMARY KEY, country_code CHAR(2) REFERENCES country (code), joined TIMESTAMPTZ NOT NULL,
    is_firm BOOLEAN NOT NULL);
CREATE TABLE address (customer_id UUID REFERENCES customer (id), nr INT, city TEXT, PRIMARY KEY (customer_id, nr));
CREATE TABLE orders (
    id BIGINT PRIMARY KEY, customer_id UUID NOT NULL REFERENCES customer (id), state state NOT NULL,
    placed TIMESTAMPTZ NOT NULL, total NUMERIC NOT NULL);
CREATE TABLE order_line (
    order_id BIGINT REFERENCES orders (id), line INT, product_id UUID REFERENCES product (id), amount NUMERIC(12, 2),
    PRIMARY KEY (order_id, line));
CREATE TABLE returned (
    order_id BIGINT, line INT, reason TEXT, FOREIGN KEY (order_id, line) REFERENCES order_line (order_id, line));
CREATE TABLE payment (id BIGINT PRIMARY KEY, order_id BIGINT REFERENCES orders (id), paid NUMERIC(12, 2));
CREATE TABLE review (id BIGINT PRIMARY KEY, customer_id UUID REFERENCES customer (id), stars SMALLINT);
CREATE TABLE visit (customer_id UUID REFERENCES customer (id), at TIMESTAMPTZ NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE visit_2026 PARTITION OF visit FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE VIEW best AS SELECT customer_id, SUM(total) FROM orders GROUP BY customer_id;
INSERT INTO country VALUES ('CH', 'Switzerland'), ('FR', 'France');
INSERT INTO category VALUES (1, 'books'), (2, 'toys');
INSERT INTO product SELECT md5('p' || i)::uuid, 1 + i % 2, i FROM generate_series(1, 20) AS s (i);
INSERT INTO customer SELECT md5(i::text)::uuid, CASE i % 3 WHEN 0 THEN 'CH' WHEN 1 THEN 'FR' END, '2026-01-01', i % 9 = 0
    FROM generate_series(1, 300) AS s (i);
INSERT INTO orders SELECT i, md5((1 + i % 300)::text)::uuid, 'paid', '2026-02-01', i % 90 FROM generate_series(1, 900) AS s (i);
INSERT INTO order_line SELECT i, 1, md5('p' || 1 + i % 20)::uuid, i % 50 FROM generate_series(1, 900) AS s (i);
INSERT INTO returned SELECT i, 1, 'late' FROM generate_series(1, 90) AS s (i);
INSERT INTO payment SELECT i, i, 7 FROM generate_series(1, 900) AS s (i);
INSERT INTO review SELECT i, md5(i::text)::uuid, i % 5 FROM generate_series(1, 100) AS s (i);
INSERT INTO visit SELECT md5(i::text)::uuid, '2026-03-01' FROM generate_series(1, 300) AS s (i);
"""


class Trial:
    """The commands of one first hour, counted."""

    def __init__(self, policy: Path) -> None:
        self.policy, self.commands = policy, 0

    def run(self, *words: str) -> str:
        self.commands += 1
        done = CliRunner().invoke(program, ["-P", str(self.policy), *words])
        assert done.exit_code == 0, (words, done.output)
        return done.output

    def write(self, *changes: tuple[str, str]) -> None:
        """Edit the policy as an owner does."""
        text = self.policy.read_text()
        for old, new in (("# max_rows   =  ", "max_rows = 10  "), *changes):
            assert old in text, (old, text)
            text = text.replace(old, new)
        self.policy.write_text(text)

    def finish(self, *statements: str) -> None:
        """Check, make the ledger, and ask: each answer has its error bars. The first one is the fifth command at most."""
        assert "problem: " not in self.run("check")
        self.run("budget", "create")
        for number, sql in enumerate(statements):
            said = self.run("query", "--intervals", "0.95", sql)
            assert re.search(r"_low\b.*_high\b", said), said
            assert number or self.commands <= 5, "from nothing to a first answer"

    def as_in_the_manual(self, title: str) -> None:
        """Hold the manual's example against the same data."""
        section = MANUAL.read_text("utf-8").split(f"\n**{title}**")[1]
        database = tomllib.loads(self.policy.read_text())["database"]
        text = section.split("```toml\n")[1].split("```")[0]
        self.policy = self.policy.with_name("manual.toml")
        self.policy.write_text(re.sub(r'^database = ".*"', f'database = "{database}"', text))
        assert "problem: " not in self.run("check")
        self.run("budget", "create")

    def tables(self) -> dict[str, object]:
        """Return what the policy says of whose rows each table has."""
        return {
            name: table.get("unit", "public")
            for name, table in tomllib.loads(self.policy.read_text())["tables"].items()
        }


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.chdir(tmp_path)
    return Trial(tmp_path / "dpsql.toml")


def test_the_demo(trial: Trial) -> None:
    trial.run("demo", "demo")
    trial.policy = Path("demo/campus.toml")
    said = trial.run("query", "--intervals", "0.95", "SELECT COUNT(*) AS n FROM student WHERE gpa > 3")
    assert "n_low" in said
    assert trial.commands == 2


def test_three_parquet_files(trial: Trial) -> None:
    for name, sql in (
        ("patients", "SELECT i AS id, 1930 + i % 80 AS born FROM range(400) AS t (i)"),
        (
            "visits",
            "SELECT i % 400 AS patient_id, ['a', 'b'][1 + i % 2] AS ward, i % 90 AS cost FROM range(900) AS t (i)",
        ),
        ("wards", "SELECT UNNEST(['a', 'b']) AS name, 3 AS floor"),
    ):
        duckdb.sql(f"COPY ({sql}) TO '{name}.parquet'")
    trial.run("init", "patients.parquet", "visits.parquet", "wards.parquet", "--public", "wards")
    trial.write(("cost = {}", "cost = { bounds = [0, 100] }"))
    assert trial.tables() == {"patients": "id", "visits": "patient_id", "wards": "public"}
    trial.finish(
        "SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY ward",
        "SELECT w.floor, COUNT(*) AS n FROM visits v JOIN wards w ON w.name = v.ward GROUP BY w.floor",
        "SELECT COUNT(*) AS n FROM patients p JOIN visits v ON v.patient_id = p.id WHERE p.born > 1950",
    )
    trial.as_in_the_manual("Three Parquet files")


def test_one_csv_of_events(trial: Trial) -> None:
    lines = "".join(f"u{i % 300},/p{i % 7},{i % 900},2026-01-0{1 + i % 9}T10:00:00\n" for i in range(2000))
    Path("events.csv").write_text("user_id,page,ms,at\n" + lines)
    trial.run("init", "events.csv")
    trial.write(("ms = {}", "ms = { bounds = [0, 1000] }"))
    assert trial.tables() == {"events": "user_id"}
    trial.finish("SELECT AVG(ms) AS t FROM events", "SELECT COUNT(DISTINCT user_id) AS n FROM events")
    trial.as_in_the_manual("One CSV file of events")


def test_a_duckdb_file_of_views(trial: Trial) -> None:
    """Views are named as left out, with what to do: they wait as comments beside the tables that they read."""
    with duckdb.connect("lake.duckdb") as database:
        database.execute(
            "CREATE TABLE raw_events AS SELECT i % 200 AS user_id, i % 50 AS amount FROM range(1000) AS t (i);"
            "CREATE VIEW events AS SELECT * FROM raw_events WHERE amount > 1;"
            "CREATE VIEW totals AS SELECT user_id, SUM(amount) AS total FROM events GROUP BY user_id"
        )
    said = trial.run("init", "lake.duckdb")
    for view in ("events", "totals"):
        assert f"left out: {view}: is a view; write view = true, and declare the tables that it reads" in said
    trial.write(
        ("amount = {}", "amount = { bounds = [0, 50] }"),
        ("# [tables.events]\n# view = true", "[tables.events]\nview = true"),
    )
    trial.finish("SELECT SUM(amount) AS total FROM events")
    trial.as_in_the_manual("A DuckDB file of views")


def test_a_postgres_shop(trial: Trial, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    name = postgres.create_database()
    with postgres.admin(name) as connection:
        connection.execute(SHOP)
        connection.execute(f"REVOKE TEMPORARY, CREATE ON DATABASE {name} FROM PUBLIC")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    url = postgres.create_reader(name, "shop_reader")
    said = trial.run("init", url, "--public", "country", "--public", "category", "--public", "product")
    assert "left out: best: is a view" in said
    order = {"column": "order_id", "references": "orders.id"}
    customer = {"column": "customer_id", "references": "customer.id"}
    assert trial.tables() == {
        "customer": "id", "address": customer, "order_line": order, "orders": customer, "payment": order,
        "returned": {"column": ["order_id", "line"], "references": ["order_line.order_id", "order_line.line"]},
        "review": customer, "visit": customer,
        "category": "public", "country": "public", "product": "public",
    }  # fmt: skip
    columns = tomllib.loads(trial.policy.read_text())["tables"]["customer"]["columns"]
    assert columns["country_code"] == {"values": ["CH", "FR", {"null": True}]}
    trial.write(
        ("amount = {}", "amount = { bounds = [0, 100] }"),
        ("total = {}", "total = { bounds = [0, 100] }"),
        ("placed = {}", "placed = { bounds = [2026-01-01, 2026-12-31] }"),
    )
    trial.finish(
        "SELECT country_code, COUNT(*) AS n FROM customer GROUP BY country_code",
        "SELECT state, AVG(total) AS t FROM orders GROUP BY state",
        "SELECT SUM(l.amount) AS s FROM order_line l JOIN orders o ON o.id = l.order_id WHERE o.state = 'paid'",
        "SELECT p.category_id, COUNT(*) AS n FROM order_line l JOIN product p ON p.id = l.product_id GROUP BY 1",
        "SELECT COUNT(*) AS n FROM returned",
        "SELECT SUM(l.amount) AS s FROM returned r JOIN order_line l ON l.order_id = r.order_id AND l.line = r.line",
        "SELECT COUNT(*) AS n FROM visit",
        "SELECT date_trunc('month', placed) AS m, COUNT(*) AS n FROM orders GROUP BY 1",
    )
    trial.as_in_the_manual("A shop in Postgres")
