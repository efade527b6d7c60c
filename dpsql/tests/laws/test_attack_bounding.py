"""Attacks on the bound of a person's rows in all: neighbouring databases further apart than the claim (soundness.md 1.9)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.policy import build_catalog
from dpsql.tests.support import random_joins as joins
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import Measured, compared, measure_release, world

WITH_FOREIGN_KEYS = joins.SCHEMA.replace(
    "no BIGINT PRIMARY KEY, person_id INTEGER",
    "no BIGINT PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person(id)",
).replace("account_no BIGINT", "account_no BIGINT NOT NULL REFERENCES account(no)")

LOADED = {
    "as a replica": (
        "SET session_replication_role = replica",
        "RESET session_replication_role",
    ),
    "without triggers": (
        "ALTER TABLE booking DISABLE TRIGGER ALL",
        "ALTER TABLE booking ENABLE TRIGGER ALL",
    ),
}
"""How rows come in past a foreign key that stays valid: logical replication's own way, and that of a bulk load."""


@pytest.mark.parametrize("way", LOADED)
def test_a_foreign_key_that_did_not_fire(tmp_path: Path, postgres: PostgresServer, way: str) -> None:
    """A thousand bookings of accounts that are not there: nobody's, but counted where the path is left out.

    Then one person has these accounts, and the bookings above R are taken away: 994 rows, where the claim is 6.
    `convalidated` says that the rows of then were looked at, not that each row since was: on a subscriber of
    logical replication, in a load as a replica, or with triggers disabled, nothing looks at them.
    """
    with world(tmp_path, policy=joins.policy_of(tmp_path), schema=WITH_FOREIGN_KEYS, server=postgres) as made:
        assert made.twin is not None
        owner = made.twin.owner
        begin, end = LOADED[way]
        owner.execute(begin)
        owner.execute(
            "INSERT INTO booking SELECT i, i, 5, 5, 4, 1, 'a', NULL, true FROM generate_series(1, 1000) AS i"
        )
        owner.execute(end)
        with made.backend.snapshot() as snapshot:
            made = replace(made, catalog=build_catalog(made.policy, snapshot.schema()))
        sql = "SELECT COUNT(*) FROM booking"
        plan = made.plan(sql)

        def measured() -> Measured:
            with made.backend.snapshot() as snapshot:
                return [measure_release(release, snapshot) for release in plan.releases]

        nobody = measured()
        owner.execute("INSERT INTO person VALUES (77, 30, 'red', 'a', 2)")
        owner.execute(
            "INSERT INTO account SELECT i, 77, 'giro', 5, DATE '2020-06-15' FROM generate_series(1, 1000) AS i"
        )
        compared(plan, nobody, measured(), sql)
