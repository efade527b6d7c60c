"""First hours: data as owners have them, what the owner writes between `init` and `check`, and the first questions.

House rule: an owner writes no more than `init` asks for: `max_rows`, bounds, and the comment signs that it says to take
off. What is changed here is what the gate counts as words to fill in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

__all__ = ["MORE", "TRIALS", "Trial"]

MAX_ROWS = ("# max_rows   =  ", "max_rows = 10  ")
_ORDER = {"column": "order_id", "references": "orders.id"}
_CUSTOMER = {"column": "customer_id", "references": "customer.id"}
_SHOP = """
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

_STAYS = """
CREATE TYPE severity AS ENUM ('mild', 'moderate', 'severe');
CREATE TABLE patient (id INT PRIMARY KEY, born INT NOT NULL);
CREATE TABLE stay (
    id INT PRIMARY KEY, patient_id INT NOT NULL REFERENCES patient (id), severity severity NOT NULL, days INT NOT NULL);
CREATE VIEW grave AS SELECT p.born, s.severity, s.days FROM stay s JOIN patient p ON p.id = s.patient_id
    WHERE s.severity IN ('moderate', 'severe') AND s.severity <> 'mild';
INSERT INTO patient SELECT i, 1940 + i % 70 FROM generate_series(1, 400) AS s (i);
INSERT INTO stay SELECT i, 1 + i % 400, (ARRAY['mild', 'moderate', 'severe'])[1 + i % 3]::severity, i % 30
    FROM generate_series(1, 1200) AS s (i);
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """One first hour.

    `data`: puts the data into the current folder; a text is a script for a database of Postgres instead. `sources`: what
    `init` is told of them, behind the database's URL on Postgres. `changes`: what the owner writes, as replacements.
    `units`: whose row each table has afterwards. `manual`: the owner's manual has this example.
    """

    name: str
    data: Callable[[], None] | str
    sources: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    units: dict[str, object]
    questions: tuple[str, ...]
    manual: str = ""


def _one_parquet() -> None:
    duckdb.sql(
        "COPY (SELECT i % 3000 AS patient_id, ['a', 'b'][1 + i % 2] AS ward, i % 90 AS cost FROM range(30000) AS t (i)) "
        "TO 'visits.parquet'"
    )


def _three_parquets() -> None:
    for name, sql in (
        ("patients", "SELECT i AS id, 1930 + i % 80 AS born FROM range(400) AS t (i)"),
        ("visits", "SELECT i % 400 AS patient_id, ['a', 'b'][1 + i % 2] AS ward, i % 90 AS cost FROM range(900) AS t (i)"),
        ("wards", "SELECT UNNEST(['a', 'b']) AS name, 3 AS floor"),
    ):  # fmt: skip
        duckdb.sql(f"COPY ({sql}) TO '{name}.parquet'")


def _csv() -> None:
    lines = "".join(f"u{i % 300},/p{i % 7},{i % 900},2026-01-0{1 + i % 9}T10:00:00\n" for i in range(2000))
    Path("events.csv").write_text("user_id,page,ms,at\n" + lines)


def _csv_of_people() -> None:
    lines = "".join(
        f"{17 + i * 7 % 60},{('Private', 'State-gov')[i % 2]},{('HS-grad', 'Bachelors', 'Masters')[i % 3]},"
        f"{('Female', 'Male')[i % 2]},{i % 80},{('<=50K', '>50K')[i % 4 == 0]}\n"
        for i in range(3000)
    )
    Path("adult.csv").write_text("age,workclass,education,sex,hours_per_week,income\n" + lines)


def _duckdb_views() -> None:
    with duckdb.connect("lake.duckdb") as database:
        database.execute(
            "CREATE TABLE raw_events AS SELECT i % 200 AS user_id, i % 50 AS amount FROM range(1000) AS t (i);"
            "CREATE VIEW events AS SELECT * FROM raw_events WHERE amount > 1;"
            "CREATE VIEW totals AS SELECT user_id, SUM(amount) AS total FROM events GROUP BY user_id"
        )


def _composite_keys() -> None:
    with duckdb.connect("clinic.duckdb") as database:
        database.execute(
            "CREATE TABLE patient (hospital TEXT, no INT, born INT, PRIMARY KEY (hospital, no));"
            "CREATE TABLE visit (hospital TEXT NOT NULL, visit_no INT, patient_no INT NOT NULL, cost INT, "
            "  PRIMARY KEY (hospital, visit_no), FOREIGN KEY (hospital, patient_no) REFERENCES patient (hospital, no));"
            "INSERT INTO patient SELECT ['x', 'y'][1 + i % 2], i, 1950 + i % 50 FROM range(400) AS t (i);"
            "INSERT INTO visit SELECT ['x', 'y'][1 + i % 2], i, i % 400, i % 80 FROM range(1200) AS t (i)"
        )


TRIALS = (
    Trial(
        "One Parquet file of events", _one_parquet, ("visits.parquet",),
        (MAX_ROWS, ("cost = {}", "cost = { bounds = [0, 100] }")),
        {"visits": "patient_id"},
        ("SELECT AVG(cost) AS c FROM visits", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"),
    ),
    Trial(
        "One CSV file of events", _csv, ("events.csv",),
        (MAX_ROWS, ("ms = {}", "ms = { bounds = [0, 1000] }")),
        {"events": "user_id"},
        ("SELECT AVG(ms) AS t FROM events", "SELECT COUNT(DISTINCT user_id) AS n FROM events"),
        "One CSV file of events",
    ),
    Trial(
        "One CSV file without a number", _csv_of_people, ("adult.csv",),
        (('# unit = "row"', 'unit = "row"'), ("hours_per_week = {}", "hours_per_week = { bounds = [0, 100] }")),
        {"adult": "row"},
        (
            "SELECT AVG(hours_per_week) AS h FROM adult",
            "SELECT education, COUNT(*) AS n FROM adult GROUP BY education",
        ),
        "One CSV file without a number",
    ),
    Trial(
        "Keys of two columns", _composite_keys, ("clinic.duckdb",),
        (MAX_ROWS, ("\ncost = {}", "\ncost = { bounds = [0, 100] }")),
        {
            "patient": ["hospital", "no"],
            "visit": {
                "column": ["hospital", "patient_no"], "references": ["patient.hospital", "patient.no"],
            },
        },
        (
            "SELECT AVG(cost) AS c FROM visit",
            "SELECT COUNT(*) AS n FROM patient p JOIN visit v ON v.hospital = p.hospital AND v.patient_no = p.no",
        ),
    ),
    Trial(
        "A shop in Postgres", _SHOP, ("--public", "country", "--public", "category", "--public", "product"),
        (
            MAX_ROWS,
            ("amount = {}", "amount = { bounds = [0, 100] }"),
            ("total = {}", "total = { bounds = [0, 100] }"),
            ("placed = {}", "placed = { bounds = [2026-01-01, 2026-12-31] }"),
        ),
        {
            "customer": "id", "address": _CUSTOMER, "order_line": _ORDER, "orders": _CUSTOMER, "payment": _ORDER,
            "returned": {"column": ["order_id", "line"], "references": ["order_line.order_id", "order_line.line"]},
            "review": _CUSTOMER, "visit": _CUSTOMER,
            "category": "public", "country": "public", "product": "public",
        },
        (
            "SELECT country_code, COUNT(*) AS n FROM customer GROUP BY country_code",
            "SELECT state, AVG(total) AS t FROM orders GROUP BY state",
            "SELECT SUM(l.amount) AS s FROM order_line l JOIN orders o ON o.id = l.order_id WHERE o.state = 'paid'",
            "SELECT p.category_id, COUNT(*) AS n FROM order_line l JOIN product p ON p.id = l.product_id GROUP BY 1",
            "SELECT COUNT(*) AS n FROM returned",
            "SELECT SUM(l.amount) AS s FROM returned r JOIN order_line l ON l.order_id = r.order_id AND l.line = r.line",
            "SELECT COUNT(*) AS n FROM visit",
            "SELECT date_trunc('month', placed) AS m, COUNT(*) AS n FROM orders GROUP BY 1",
        ),
        "A shop in Postgres",
    ),
    Trial(
        "A view with an enum in Postgres", _STAYS, (),
        (
            MAX_ROWS, ("days = {}", "days = { bounds = [0, 30] }"),
            ("# [tables.grave]\n# view = true", "[tables.grave]\nview = true"),
        ),
        {"patient": "id", "stay": {"column": "patient_id", "references": "patient.id"}, "grave": "public"},
        (
            "SELECT severity, COUNT(*) AS n FROM grave GROUP BY severity",
            "SELECT AVG(days) AS d FROM grave",
        ),
    ),
)  # fmt: skip

"""The gate's six."""

MORE = (
    Trial(
        "Three Parquet files", _three_parquets,
        ("patients.parquet", "visits.parquet", "wards.parquet", "--public", "wards"),
        (MAX_ROWS, ("cost = {}", "cost = { bounds = [0, 100] }")),
        {"patients": "id", "visits": "patient_id", "wards": "public"},
        (
            "SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY ward",
            "SELECT w.floor, COUNT(*) AS n FROM visits v JOIN wards w ON w.name = v.ward GROUP BY w.floor",
            "SELECT COUNT(*) AS n FROM patients p JOIN visits v ON v.patient_id = p.id WHERE p.born > 1950",
        ),
        "Three Parquet files",
    ),
    Trial(
        "A DuckDB file of views", _duckdb_views, ("lake.duckdb",),
        (
            MAX_ROWS,
            ("amount = {}", "amount = { bounds = [0, 50] }"),
            ("# [tables.events]\n# view = true", "[tables.events]\nview = true"),
        ),
        {"raw_events": "user_id", "events": "public"},
        ("SELECT SUM(amount) AS total FROM events",),
        "A DuckDB file of views",
    ),
)  # fmt: skip
"""Other examples of the owner's manual."""
