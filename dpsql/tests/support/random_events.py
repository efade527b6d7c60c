"""The world of `random_joins` without a table of people: the unit stands in the row of `person`, `account`, `note`.

No column of the unit is a key but that of `profile`, and each is of another width. `account` has a key of its own, to
which `booking` leads. A unit has any number of rows of `person`, and rows whose owner is NULL are everywhere.
"""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import strategies as st

from ...policy import Policy, parse_policy
from .random_databases import SEEDED
from .random_joins import CELLS, SCHEMA, UNITS, Database, policy_text, random_database, row

__all__ = [
    "SCHEMA_OF_EVENTS", "changed", "event_databases", "policy_of_events", "policy_text_of_events", "random_event_database",
]  # fmt: skip


def changed(text: str, *changes: tuple[str, str]) -> str:
    """Return a text with pieces replaced, each of which is there once."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


SCHEMA_OF_EVENTS = changed(
    SCHEMA,
    ("person (id INTEGER PRIMARY KEY, age", "person (id BIGINT, age"),
    ("account (no BIGINT PRIMARY KEY, person_id INTEGER", "account (no BIGINT PRIMARY KEY, person_id SMALLINT"),
)  # fmt: skip


def policy_of_events(
    folder: Path, *, replace_one: bool = False, rows: int = 3, groups: int = 2, epsilon: str = "1"
) -> Policy:
    """Return the policy over `SCHEMA_OF_EVENTS`; M is `rows` and C is `groups` for each table but `profile`."""
    text = policy_text_of_events(replace_one=replace_one, rows=rows, groups=groups, epsilon=epsilon)
    return parse_policy(text, folder / "laws.toml")


def policy_text_of_events(
    *, replace_one: bool = False, rows: int = 3, groups: int = 2, epsilon: str = "1"
) -> str:
    """Return the text of `policy_of_events`."""
    text = policy_text(replace_one=replace_one, rows=rows, groups=groups, epsilon=epsilon)
    own = 'unit = "id"\n'
    bounds = f"max_rows = {rows * groups}\nmax_rows_per_group = {rows}\nmax_groups = {groups}\n"
    text = changed(text, (own, own + bounds))
    return text.replace('unit = { column = "person_id", references = "person.id" }', 'unit = "person_id"')


def random_event_database(rng: random.Random, most: int = 10) -> Database:
    """Return one of `random_joins` in which people have further rows of `person`, and some of those are nobody's."""
    database = random_database(rng, most)
    kinds = [tuple(rng.choice(values[:3]) for values in CELLS["person"].values()) for _ in range(2)]
    owners = (1, 1, 1, 2, 3, *UNITS, None)
    added = tuple(
        (*row("person", rng.choice(owners))[:1], *rng.choice(kinds)) for _ in range(rng.randint(0, most))
    )
    return Database({**database.tables, "person": (*database.tables["person"], *added)})


@st.composite
def event_databases(draw: st.DrawFn, most: int = 10) -> Database:
    """The same, drawn by hypothesis."""
    return random_event_database(draw(SEEDED), most)
