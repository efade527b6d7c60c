"""Small wild databases in which each row is a unit by itself: neighbours differ in one row.

`visit` and `later` are tables of such rows, alike in their columns; `person` is a table of people, `ward` is public with a
key, and `shift` is public without one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...policy import Policy, parse_policy
from ...relation.catalog import Catalog
from .inserted import insert_texts
from .random_databases import SCHEMA, VISIT, Row, policy_text

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "ENDS", "HEAVY", "SCHEMA_OF_ROWS", "Rows", "load_rows", "policy_of_rows", "random_rows", "replaced_row", "visit_row",
    "without_people", "without_row",
]  # fmt: skip

_VISIT = SCHEMA[SCHEMA.index("CREATE TABLE visit") :].replace("person_id INTEGER, ", "")
SCHEMA_OF_ROWS = (
    SCHEMA[: SCHEMA.index("CREATE TABLE visit")]
    + _VISIT
    + _VISIT.replace("TABLE visit", "TABLE later")
    + "CREATE TABLE ward (city VARCHAR PRIMARY KEY, beds INTEGER); CREATE TABLE shift (city VARCHAR, n INTEGER);"
    "INSERT INTO ward VALUES ('a', 1), ('b', 2), ('c', 2);"
    "INSERT INTO shift VALUES ('a', 1), ('a', 2), ('b', 7), (NULL, 0);"
)


def policy_of_rows(folder: Path) -> Policy:
    """Return a policy in which each row of `visit` and of `later` is a unit."""
    people, _, columns = policy_text().partition("[tables.visit]\n")
    declared = columns[columns.index("[tables.visit.columns]") :]
    text = people + '[tables.visit]\nunit = "row"\n' + declared
    text += '[tables.later]\nunit = "row"\n' + declared.replace("tables.visit", "tables.later")
    text += '[tables.ward]\npublic = true\n[tables.ward.columns]\ncity = { values = ["a", "b", "c"] }\n'
    text += "[tables.shift]\npublic = true\n"
    return parse_policy(text, folder / "rows.toml")


@dataclass(frozen=True)
class Rows:
    """The rows of both tables, and one that may take another's place; people are always the same two."""

    visit: tuple[Row, ...]
    later: tuple[Row, ...]

    def without(self, place: int) -> Rows:
        """Return the neighbour without one row, counted over both tables."""
        here = len(self.visit)
        if place < here:
            return replace(self, visit=self.visit[:place] + self.visit[place + 1 :])
        place -= here
        return replace(self, later=self.later[:place] + self.later[place + 1 :])

    def replaced(self, place: int, row: Row) -> Rows:
        """Return the neighbour in which one row has another's place, in the same table."""
        less = self.without(place)
        if place < len(self.visit):
            return replace(less, visit=(*less.visit, row))
        return replace(less, later=(*less.later, row))


def visit_row(**known: str | None) -> Row:
    """Return a row of which all that is not named is NULL."""
    return tuple(known.get(name) for name in VISIT.cells)


def random_rows(rng: random.Random, most: int = 8) -> Rows:
    """Return rows that are often alike."""
    kinds = [tuple(rng.choice(cells) for cells in VISIT.cells.values()) for _ in range(rng.randint(1, 4))]
    both = [tuple(rng.choice(kinds) for _ in range(rng.randint(1, most))) for _ in "ab"]
    return Rows(*both)


ENDS = visit_row(
    city="a", flag="true", tag="x", n="7", x="4", d="5", r="2", day="2020-12-31", seen="2020-03-31 23:59:59",
    level="low", big="1152921504606846976",
)  # fmt: skip
HEAVY = Rows(
    (ENDS, ENDS, visit_row(city="b", n="-3", x="-1", d="0", flag="false", tag="y"), visit_row(city="a", n="0"), visit_row()),
    (ENDS, visit_row(city="c", n="-3")),
)  # fmt: skip
"""Rows at the ends of all bounds, two of them alike, and one of nothing but NULL."""


def load_rows(connection: duckdb.DuckDBPyConnection, rows: Rows, order: int = 0) -> None:
    """Put rows in, in a physical order that depends on `order`."""
    for table in ("visit", "later"):
        shuffled = list(getattr(rows, table))
        random.Random(order).shuffle(shuffled)
        connection.execute(f"DELETE FROM {table}")
        insert_texts(connection, table, shuffled)


def without_row(rows: Rows, unit: int) -> Rows:
    """Return the neighbour without a unit's row: units are counted from 1, over both tables."""
    return rows.without(unit - 1)


def replaced_row(rows: Rows, unit: int, newcomer: Rows) -> Rows:
    """Return the neighbour in which the first row of another database has a unit's place."""
    return rows.replaced(unit - 1, newcomer.visit[0])


def without_people(catalog: Catalog) -> Catalog:
    """Return a catalog without the table of people, so that all that is asked is of rows."""
    return replace(catalog, tables={name: one for name, one in catalog.tables.items() if name != "person"})
