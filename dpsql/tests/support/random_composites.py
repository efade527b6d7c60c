"""The world of `random_joins` with keys of two columns: a person's, and an account's that bookings lead to.

A person is a site and a number, both text, chosen so that parts are shared and that two people are spelled alike when
the parts are put together; an account is a branch and a number. Where `random_joins` has a NULL owner, either part
may be NULL.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from ...policy import Policy, parse_policy
from .inserted import insert_texts
from .random_events import changed
from .random_joins import PRIVATE, PUBLIC_ROWS, SCHEMA, Cell, Database, Row, policy_text

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "PEOPLE", "SCHEMA_OF_COMPOSITES", "load_composites", "policy_of_composites",
]  # fmt: skip

PEOPLE = {
    "1": ("a", "bc"),
    "2": ("ab", "c"),
    "3": ("a", "c"),
    "4": ("ab", "bc"),
    "5": ("", "abc"),
    "9": ("abc", ""),
}
"""The persons of `random_joins`, each a site and a number there."""

_NOBODY: tuple[tuple[Cell, Cell], ...] = ((None, None), ("a", None), (None, "bc"))


SCHEMA_OF_COMPOSITES = changed(
    SCHEMA,
    ("person (id INTEGER PRIMARY KEY,", "person (site VARCHAR, no VARCHAR,"),
    ("height DOUBLE);", "height DOUBLE, PRIMARY KEY (no, site));"),
    ("account (no BIGINT PRIMARY KEY, person_id INTEGER,", "account (branch VARCHAR, no BIGINT, site VARCHAR, person_no VARCHAR,"),
    ("opened DATE);", "opened DATE, PRIMARY KEY (branch, no));"),
    ("id INTEGER PRIMARY KEY, account_no BIGINT,", "id INTEGER PRIMARY KEY, branch VARCHAR, account_no BIGINT,"),
    ("person_id INTEGER, ref BIGINT", "site VARCHAR, person_no VARCHAR, ref BIGINT"),
    ("profile (person_id INTEGER UNIQUE,", "profile (site VARCHAR, person_no VARCHAR,"),
    ("score DECIMAL(3,1));", "score DECIMAL(3,1), UNIQUE (site, person_no));"),
)  # fmt: skip


def policy_of_composites(
    folder: Path, *, replace_one: bool = False, in_row: bool = False, together: int = 1, rows: int = 3,
    groups: int = 2, epsilon: str = "1",
) -> Policy:  # fmt: skip
    """Return the policy over `SCHEMA_OF_COMPOSITES`; `in_row`: each table says the person, and none is referred to."""
    text = policy_text(replace_one=replace_one, rows=rows, groups=groups, epsilon=epsilon)
    text = text.replace(
        'unit = { column = "person_id", references = "person.id" }',
        'unit = ["site", "person_no"]' if in_row
        else 'unit = { column = ["person_no", "site"], references = ["person.no", "person.site"] }',
    )  # fmt: skip
    text = changed(
        text,
        ('unit = "id"\n', 'unit = ["site", "no"]\n'),
        ("[tables.person.columns]\n", "[tables.person.columns]\nsite = {}\nno = {}\n"),
        ("\nno = {}\nperson_id = {}\n", "\nbranch = {}\nno = {}\nsite = {}\nperson_no = {}\n"),
        ('unit = { column = "account_no", references = "account.no" }',
         'unit = { column = ["account_no", "branch"], references = ["account.no", "account.branch"] }'),
        ("\naccount_no = {}\n", "\nbranch = {}\naccount_no = {}\n"),
    )  # fmt: skip
    text = text.replace("\nperson_id = {}\n", "\nsite = {}\nperson_no = {}\n")
    if together > 1:
        text = changed(text, ("[privacy]\n", f"[privacy]\ntogether = {together}\n"))
    return parse_policy(text, folder / "laws.toml")


# --- rows ------------------------------------------------------------------------------------------------


def load_composites(connection: duckdb.DuckDBPyConnection, database: Database, order: int = 0) -> None:
    """Put a database's rows into the tables, its keys as two columns each, as `random_joins.load` does."""
    content = {**{table: [_split(table, row) for row in database.tables[table]] for table in PRIVATE}}
    content |= {table: list(rows) for table, rows in PUBLIC_ROWS.items()} if order == 0 else {}
    connection.execute("; ".join(f"DELETE FROM {table}" for table in content))
    for table, rows in content.items():
        random.Random(order).shuffle(rows)
        insert_texts(connection, table, rows)


def _split(table: str, row: Row) -> Row:
    if table == "account":
        return (*_account(row[0], row), *_person(row[1], row), *row[2:])
    if table == "booking":
        return (row[0], *_account(row[1], row), *row[2:])
    return (*_person(row[0], row), *row[1:])


def _person(key: Cell, row: Row) -> tuple[Cell, Cell]:
    return _nobody(row) if key is None else PEOPLE[key]


def _account(key: Cell, row: Row) -> tuple[Cell, Cell]:
    if key is None:
        branch, no = _nobody(row)
        return branch, None if no is None else "5"
    return ("x", "xy")[int(key) % 2], str(int(key) // 2)


def _nobody(row: Row) -> tuple[Cell, Cell]:
    """Return a key of which some part is NULL: the same one for the same row."""
    return _NOBODY[sum(len(cell or "") for cell in row) % len(_NOBODY)]
