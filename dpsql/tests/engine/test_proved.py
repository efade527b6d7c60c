"""The tests of dbt and Great Expectations over people's tables: what the database enforces passes, exact and free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, SchemaChanged, open_ledger
from dpsql.policy import load_policy
from dpsql.tests.support.postgres_server import PostgresServer

SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer (id), state TEXT NOT NULL,
                     note INTEGER);
INSERT INTO customer SELECT i, 'Bonn' FROM generate_series(1, 100) AS s(i);
INSERT INTO orders SELECT i, i % 100 + 1, 'open', i FROM generate_series(1, 300) AS s(i);
"""
LOOSE = SCHEMA.replace("PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer (id), state TEXT NOT NULL",
                       "NOT NULL, customer_id INTEGER NOT NULL, state TEXT")  # fmt: skip
POLICY = """
database = "{url}"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 100
delta = 1e-6
[defaults]
epsilon = 1
[tables.customer]
unit = "id"
[tables.customer.columns]
city = {{ values = ["Bonn"] }}
[tables.orders]
unit = {{ column = "customer_id", references = "customer.id" }}
max_rows = 10
[tables.orders.columns]
id = {{}}
state = {{ values = ["open", "paid"] }}
note = {{}}
"""

_AROUND = (
    "select\n  count(*) as failures,\n  count(*) != 0 as should_warn,\n  count(*) != 0 as should_error\n"
    "from (\n{}\n) dbt_internal_test"
)
_UNIQUE = (
    "select\n    {0} as unique_field,\n    count(*) as n_records\n\nfrom {1}\nwhere {0} is not null\n"
    "group by {0}\nhaving count(*) > 1\n"
)
_RELATIONSHIPS = (
    "with child as (\n    select customer_id as from_field\n    from orders\n    where customer_id is not null\n),\n\n"
    "parent as (\n    select id as to_field\n    from customer\n)\n\nselect\n    from_field\n\nfrom child\n"
    "left join parent\n    on child.from_field = parent.to_field\n\nwhere parent.to_field is null\n"
)
DBT = {
    "not_null_customer_id": _AROUND.format("select id\nfrom customer\nwhere id is null\n"),
    "not_null_orders_id": _AROUND.format("select id\nfrom orders\nwhere id is null\n"),
    "not_null_orders_state": _AROUND.format("select state\nfrom orders\nwhere state is null\n"),
    "unique_customer_id": _AROUND.format(_UNIQUE.format("id", "customer")),
    "unique_orders_id": _AROUND.format(_UNIQUE.format("id", "orders")),
    "relationships_orders_customer": _AROUND.format(_RELATIONSHIPS),
}
"""What dbt 1.x sends for its generic tests of these names."""
COUNTS = {
    "missing": "SELECT COUNT(*) FROM orders WHERE id IS NULL",
    "doubles": "SELECT COUNT(*) FROM orders WHERE id IS NOT NULL AND id IN (SELECT id FROM orders WHERE id IS NOT NULL "
    "GROUP BY id HAVING COUNT(id) > 1)",
    "orphans": "SELECT COUNT(*) FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM customer AS c WHERE c.id = o.customer_id)",
}
Make = Callable[[str], Dataset]


@pytest.fixture(params=[False, True], ids=["duckdb", "postgres"])
def make(request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path) -> Iterator[Make]:
    """Give what makes a dataset of a schema on an engine."""
    opened: list[Dataset] = []

    def made(schema: str) -> Dataset:
        if not request.param:
            with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
                connection.execute(schema)
            url = "duckdb:shop.duckdb"
        else:
            name = postgres.create_database()
            with postgres.admin(name) as admin:
                admin.execute(schema)
            url = postgres.create_reader(name)
        path = tmp_path / "shop.toml"
        path.write_text(POLICY.format(url=url))
        open_ledger(load_policy(path), create=True).close()
        opened.append(Dataset.open(path))
        return opened[-1]

    yield made
    for dataset in opened:
        dataset.close()


def test_what_the_database_enforces_passes_and_is_free(make: Make) -> None:
    session = Session(make(SCHEMA), is_shared=True)
    for name, sql in DBT.items():
        answer = session.execute(sql)
        assert answer.rows == [(0, False, False)], name
        assert answer.receipt is not None
        assert answer.receipt.epsilon == 0
        assert any("exact and free, the database enforces it" in note for note in answer.receipt.notes)
    assert [session.execute(sql).rows for sql in COUNTS.values()] == [[(0,)]] * 3
    assert session.budget().epsilon_spent_nano == 0
    assert "by constraints that the database enforces" in session.explain(COUNTS["missing"]).text()


def test_what_it_does_not_enforce_is_charged(make: Make) -> None:
    session = Session(make(LOOSE), is_shared=True)
    for sql in (DBT["not_null_orders_state"], DBT["relationships_orders_customer"], COUNTS["orphans"]):
        receipt = session.execute(sql).receipt
        assert receipt is not None
        assert receipt.epsilon > 0


def test_a_constraint_that_is_gone_proves_nothing(postgres: PostgresServer, tmp_path: Path) -> None:
    """What was planned before is not answered by it: the snapshot has to have the schema of the plan."""
    name = postgres.create_database()
    with postgres.admin(name) as admin:
        admin.execute(SCHEMA)
        path = tmp_path / "shop.toml"
        path.write_text(POLICY.format(url=postgres.create_reader(name)))
        open_ledger(load_policy(path), create=True).close()
        dataset = Dataset.open(path)
        session = Session(dataset, is_shared=True)
        assert session.execute(DBT["not_null_orders_state"]).rows == [(0, False, False)]
        admin.execute("ALTER TABLE orders ALTER state DROP NOT NULL")
        with pytest.raises(SchemaChanged):
            session.execute(DBT["not_null_orders_state"])
        dataset.close()
