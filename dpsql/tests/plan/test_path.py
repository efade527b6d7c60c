"""The tables that lead to the owner are left out of plain sums where the engine holds every row to one, and only
there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.policy import parse_policy
from dpsql.tests.laws.measured import measure_release, world

_SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY);
CREATE TABLE account (no BIGINT PRIMARY KEY, person_id INTEGER {held});
CREATE TABLE booking (account_no BIGINT {holds}, n INTEGER);
"""
_POLICY = """
database = "duckdb:path.duckdb"
ledger = "sqlite:path-ledger.db"
[privacy]
epsilon = 10
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.account]
unit = { column = "person_id", references = "person.id" }
max_rows = 2
max_rows_per_group = 2
max_groups = 1
[tables.account.columns]
no = {}
[tables.booking]
unit = { column = "account_no", references = "account.no" }
max_rows = 2
max_rows_per_group = 2
max_groups = 1
[tables.booking.columns]
account_no = {}
n = { bounds = [0, 9] }
"""
_ROWS = """
INSERT INTO person SELECT range FROM range(4);
INSERT INTO account SELECT range, range // 2 FROM range(8);
INSERT INTO booking SELECT range % 8, range FROM range(0, 64, 3);
"""


@pytest.mark.parametrize(
    ("held", "holds", "is_left_out"),
    [
        ("NOT NULL", "NOT NULL REFERENCES account (no)", True),
        ("NOT NULL REFERENCES person (id)", "NOT NULL REFERENCES account (no)", True),
        ("", "NOT NULL REFERENCES account (no)", False),
        ("NOT NULL", "REFERENCES account (no)", False),
        ("NOT NULL", "NOT NULL", False),
    ],
)
def test_the_path_is_left_out_of_plain_sums(tmp_path: Path, held: str, holds: str, is_left_out: bool) -> None:
    policy = parse_policy(_POLICY, tmp_path / "path.toml")
    with world(tmp_path, policy=policy, schema=_SCHEMA.format(held=held, holds=holds)) as made:
        made.connection.execute(_ROWS)
        (release,) = made.plan("SELECT COUNT(*) FROM booking").releases
        (query,) = release.queries((0,))
        summed, found = query.sql.split("heavy AS")
        assert ('"account"' in summed) == (not is_left_out)
        assert found.count('"account"') == 2 * is_left_out
        # two people of 6 rows and two of 5, where R = 2: each row of theirs counts for 2·U / 6, or 2·U / 5, cut
        kept = 2 * 6 * (2 * 2**20 // 6) + 2 * 5 * (2 * 2**20 // 5)
        with made.backend.snapshot() as snapshot:
            assert measure_release(release, snapshot) == {0: {(): (kept,)}}


def test_the_path_stays_where_the_statement_wrote_it(tmp_path: Path) -> None:
    policy = parse_policy(_POLICY, tmp_path / "path.toml")
    schema = _SCHEMA.format(held="NOT NULL", holds="NOT NULL REFERENCES account (no)")
    with world(tmp_path, policy=policy, schema=schema) as made:
        (release,) = made.plan("SELECT COUNT(*) FROM booking JOIN account ON account_no = no").releases
        (query,) = release.queries((0,))
        assert query.sql.count('"account"') == 1
