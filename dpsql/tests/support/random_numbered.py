"""The world of `random_joins` in which each account and each note has a number among its person's (soundness.md 1.39).

Numbers are whatever the key admits: they begin below 1, have holes, go down; each is a function of its person's own
rows. Accounts and notes of nobody, which such a table cannot hold, are left out.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ...policy import Policy, parse_policy
from . import random_joins
from .random_events import changed
from .random_joins import SCHEMA, Database, Row, policy_text

if TYPE_CHECKING:
    import duckdb

__all__ = ["SCHEMA_OF_NUMBERED", "load_numbered", "policy_of_numbered"]


SCHEMA_OF_NUMBERED = changed(
    SCHEMA,
    ("PRIMARY KEY, person_id INTEGER,", "PRIMARY KEY, person_id INTEGER NOT NULL, place SMALLINT NOT NULL,"),
    ("opened DATE);", "opened DATE, UNIQUE (place, person_id));"),
    ("person_id INTEGER, ref", "person_id INTEGER NOT NULL, place BIGINT NOT NULL, ref"),
    ("day DATE,\n    flag BOOLEAN);", "day DATE,\n    flag BOOLEAN, PRIMARY KEY (person_id, place));"),
)

_GIVEN = ((-1, 1), (3, -1), (1, 2), (1, 1))
"""Where a person's numbers begin, and how far apart they are; the first person has some below 1 and some beyond R."""


def policy_of_numbered(folder: Path) -> Policy:
    """Return the policy over `SCHEMA_OF_NUMBERED`, with the bounds of `random_joins`."""
    text = policy_text(replace_one=False, rows=3, groups=2, epsilon="1")
    own = 'unit = { column = "person_id", references = "person.id" }\nmax_rows = '
    assert text.count(own) == 2, own
    return parse_policy(text.replace(own, f'row_number = "place"\n{own}'), folder / "laws.toml")


def load_numbered(connection: duckdb.DuckDBPyConnection, database: Database, order: int = 0) -> None:
    """Put a database's rows into the tables, as `random_joins.load` does, accounts and notes with their numbers."""
    tables = dict(database.tables)
    tables |= {"account": _numbered(tables["account"], 1), "note": _numbered(tables["note"], 0)}
    random_joins.load(connection, Database(tables), order)


def _numbered(rows: tuple[Row, ...], owner: int) -> tuple[Row, ...]:
    """Return rows with the number of each behind its owner, which stands at a position."""
    had: Counter[str] = Counter()
    found: list[Row] = []
    for row in rows:
        if (person := row[owner]) is not None:
            first, step = _GIVEN[(int(person) - 1) % len(_GIVEN)]
            found.append((*row[: owner + 1], str(first + step * had[person]), *row[owner + 1 :]))
            had[person] += 1
    return tuple(found)
