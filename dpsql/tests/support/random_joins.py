"""Small wild databases of several tables: the world in which the laws of joins are tested.

`person` is the root, `account` leads to it, `booking` leads to `account`, `note` and `profile` to `person`;
`region`, `rate` and `tag` are public. The databases keep no declaration and no foreign key: accounts of
persons and bookings of accounts that do not exist, more rows and groups than M and C, values outside bounds
and lists, NULL keys. They keep what the engine enforces. Needs hypothesis, as only tests do.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from ...policy import Policy, parse_policy
from .inserted import insert_texts
from .random_databases import SEEDED

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "CELLS", "HEAVY", "NEWCOMER", "PRIVATE", "PUBLIC_ROWS", "SCHEMA", "UNITS", "Cell", "Database", "Row", "databases", "load",
    "orphaned", "policy_of", "policy_text", "random_database", "replaced", "row", "units_of", "without",
]  # fmt: skip

SCHEMA = """
CREATE TYPE severity AS ENUM ('low', 'high');
CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT, team VARCHAR, home VARCHAR, height DOUBLE);
CREATE TABLE account (no BIGINT PRIMARY KEY, person_id INTEGER, kind VARCHAR, balance DECIMAL(8,2), opened DATE);
CREATE TABLE booking (
    id INTEGER PRIMARY KEY, account_no BIGINT, n INTEGER, amount DECIMAL(6,2), x DOUBLE, big BIGINT, city VARCHAR,
    seen TIMESTAMP, flag BOOLEAN);
CREATE TABLE note (
    person_id INTEGER, ref BIGINT, n INTEGER, x DOUBLE, fine DECIMAL(38,18), tag VARCHAR, city VARCHAR, day DATE,
    flag BOOLEAN);
CREATE TABLE profile (person_id INTEGER UNIQUE, city VARCHAR, level severity, score DECIMAL(3,1));
CREATE TABLE region (name VARCHAR PRIMARY KEY, weight INTEGER, zone VARCHAR);
CREATE TABLE rate (region VARCHAR, kind VARCHAR, value DOUBLE, PRIMARY KEY (region, kind));
CREATE TABLE tag (tag VARCHAR, grp VARCHAR, n INTEGER);
"""

_POLICY = """
database = "duckdb:laws.duckdb"
ledger = "sqlite:laws-ledger.db"
[privacy]
epsilon = 9999
delta = 0.9
neighbours = "{neighbours}"
[defaults]
epsilon = {epsilon}
max_epsilon = 10
delta = 1e-3
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 120] }}
team = {{ values = ["red", "blue"] }}
home = {{}}
height = {{ bounds = [0.5, 2.5], step = 0.01 }}
[tables.account]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = {total}
max_rows_per_group = {rows}
max_groups = {groups}
[tables.account.columns]
no = {{}}
person_id = {{}}
kind = {{ values = ["giro", "save"] }}
balance = {{ bounds = [-100, 1000] }}
opened = {{ bounds = [2020-01-01, 2020-12-31] }}
[tables.booking]
unit = {{ column = "account_no", references = "account.no" }}
max_rows = {total}
max_rows_per_group = {rows}
max_groups = {groups}
[tables.booking.columns]
id = {{}}
account_no = {{}}
n = {{ bounds = [-3, 7] }}
amount = {{ bounds = [0, 50] }}
x = {{ bounds = [-1, 4] }}
big = {{ bounds = [0, 1152921504606846976] }}
city = {{ values = ["a", "b", "c", {{ null = true }}] }}
seen = {{ bounds = [2020-01-01T00:00:00, 2020-03-31T23:59:59] }}
flag = {{}}
[tables.note]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = {total}
max_rows_per_group = {rows}
max_groups = {groups}
[tables.note.columns]
person_id = {{}}
ref = {{}}
n = {{ bounds = [0, 5] }}
x = {{ bounds = [0, 2] }}
fine = {{ bounds = [-1, 1] }}
tag = {{}}
city = {{ values = ["a", "b", "c"] }}
day = {{ bounds = [2020-01-01, 2020-12-31] }}
flag = {{}}
[tables.profile]
unit = {{ column = "person_id", references = "person.id" }}
[tables.profile.columns]
person_id = {{}}
city = {{ values = ["a", "b"] }}
level = {{}}
score = {{ bounds = [0, 9] }}
[tables.region]
public = true
[tables.region.columns]
weight = {{ bounds = [0, 9] }}
zone = {{ values = ["north", "south"] }}
[tables.rate]
public = true
[tables.rate.columns]
value = {{ bounds = [0, 3] }}
[tables.tag]
public = true
[tables.tag.columns]
n = {{ bounds = [0, 4] }}
"""

PRIVATE = ("person", "account", "booking", "note", "profile")


def policy_of(
    folder: Path, *, replace_one: bool = False, rows: int = 3, groups: int = 2, epsilon: str = "1"
) -> Policy:
    """Return the policy over `SCHEMA`; `folder` holds its ledger. `rows` is M, `groups` is C of each table."""
    text = policy_text(replace_one=replace_one, rows=rows, groups=groups, epsilon=epsilon)
    return parse_policy(text, folder / "laws.toml")


def policy_text(*, replace_one: bool, rows: int, groups: int, epsilon: str) -> str:
    """Return the text of `policy_of`."""
    neighbours = "replace-one" if replace_one else "add-remove"
    return _POLICY.format(
        neighbours=neighbours, total=rows * groups, rows=rows, groups=groups, epsilon=epsilon
    )


# --- rows --------------------------------------------------------------------------------------------

Cell = str | None
Row = tuple[Cell, ...]

UNITS = (1, 2, 3, 4, 5)
"""The privacy units of a random database; the last never has a row of `person`."""
NEWCOMER = 9
"""The unit that takes another's place in a replace-one neighbour."""

_REALS = ("nan", "inf", "-inf", "1e308", "-0.0", "5e-324", "-1e16")
_TEXTS = ("", "it's", "%_\\", "ß", "x" * 40, "\x1f", "\x1e", "A")
_INTS = ("2147483647", "-2147483648", "8", "-4")

CELLS: dict[str, dict[str, tuple[Cell, ...]]] = {
    "person": {
        "age": ("30", "0", None, "120", "-32768", "32767"), "team": ("red", "blue", None, "green", ""),
        "home": ("a", "b", None, *_TEXTS), "height": ("1.8", "2.5", None, *_REALS),
    },
    "account": {
        "kind": ("giro", "save", None, "zz"), "balance": ("0", "1000", "12.34", None, "999999.99", "-999999.99"),
        "opened": ("2020-06-15", "2020-01-01", None, "infinity", "-infinity", "0044-03-15 (BC)"),
    },
    "booking": {
        "n": ("7", "1", "0", "-3", None, *_INTS), "amount": ("50", "0", "2.50", None, "9999.99", "-0.01"),
        "x": ("4", "-1", "0.3", None, *_REALS),
        "big": ("1", "0", "1152921504606846976", None, "9223372036854775807", "-9223372036854775808",
                "9007199254740993", "9007199254740992"),
        "city": ("a", "b", "c", None, "z", "A", "a "),
        "seen": ("2020-01-01 00:00:00", "2020-03-31 23:59:59", None, "infinity", "-infinity",
                 "290308-12-22 (BC) 00:00:00"),
        "flag": ("true", "false", None),
    },
    "note": {
        "ref": ("10", "11", "12", None, "9223372036854775807"), "n": ("5", "1", "0", None, *_INTS),
        "x": ("2", "0.5", "0", None, *_REALS),
        "fine": ("1", "-1", "0.3", None, "99999999999999999999.999999999999999999"),
        "tag": ("t", "u", None, *_TEXTS), "city": ("a", "b", "c", None, "z"),
        "day": ("2020-06-15", "2020-01-01", None, "infinity", "9999-12-31"), "flag": ("true", "false", None),
    },
    "profile": {
        "city": ("a", "b", None, "z"), "level": ("low", "high", None), "score": ("0", "9", "4.5", None, "99.9"),
    },
}  # fmt: skip
"""Table -> column -> the cells that a random row takes, without the keys; the first ones are the common ones."""

_COMMON = 4

PUBLIC_ROWS: dict[str, tuple[Row, ...]] = {
    "region": (("a", "1", "north"), ("b", "9", "south"), ("c", None, "north"), ("t", "12", None)),
    "rate": (("a", "giro", "1.5"), ("a", "save", "nan"), ("b", "giro", "3"), ("b", "zz", "0"), ("t", "low", "-1")),
    "tag": (("t", "g", "1"), ("t", "g", "1"), ("t", "h", "4"), ("u", None, "2"), (None, "g", None), ("a", "g", "9"),
            ("b", "h", "0")),
}  # fmt: skip
"""The public tables' rows: the same in all databases; `tag` has duplicates and NULLs."""


@dataclass(frozen=True)
class Database:
    """Rows of the private tables, complete with their keys."""

    tables: Mapping[str, tuple[Row, ...]]


def row(table: str, *keys: int | None, **cells: Cell) -> Row:
    """Return a row with its leading keys; what is not named is NULL."""
    return (*(None if key is None else str(key) for key in keys), *(cells.get(name) for name in CELLS[table]))


def _cells(table: str, rng: random.Random) -> Row:
    """Return random cells of one row; three in four are ordinary."""
    return tuple(
        rng.choice(values[:_COMMON] if rng.randrange(4) else values) for values in CELLS[table].values()
    )


def random_database(rng: random.Random, most: int = 10) -> Database:
    """Return a database in which one unit often owns most rows, and rows are often repeated, so that M is passed."""

    def owner() -> Cell:
        return _text(rng.choice((1, 1, 1, 2, 2, 3, 4, 5, None)))

    def some(table: str) -> list[Row]:
        """Return up to `most` rows of one to three kinds."""
        kinds = [_cells(table, rng) for _ in range(rng.randint(1, 3))]
        return [rng.choice(kinds) for _ in range(rng.randint(0, most))]

    persons = [(str(unit), *_cells("person", rng)) for unit in UNITS[:-1] if rng.randrange(2)]
    numbers = rng.sample(range(10, 17), rng.randint(0, 5))
    accounts = [(str(number), owner(), *_cells("account", rng)) for number in numbers]
    leads = (10, 10, 11, 11, 12, 13, 14, 15, 16, 99, None)
    bookings = [(str(100 + i), _text(rng.choice(leads)), *cells) for i, cells in enumerate(some("booking"))]
    notes = [(owner(), *cells) for cells in some("note")]
    with_profile = [*(str(unit) for unit in UNITS if rng.randrange(2)), None, None]
    profiles = [(unit, *_cells("profile", rng)) for unit in with_profile]
    return Database(
        {"person": tuple(persons), "account": tuple(accounts), "booking": tuple(bookings), "note": tuple(notes),
         "profile": tuple(profiles)}
    )  # fmt: skip


@st.composite
def databases(draw: st.DrawFn, most: int = 10) -> Database:
    """The same, drawn by hypothesis."""
    return random_database(draw(SEEDED), most)


HEAVY = Database(
    {
        "person": tuple(row("person", u, age="30", team="red", home="a", height="2.5") for u in (1, 2)),
        "account": tuple(
            row("account", 10 * u + i, u, kind=("giro", "save")[i % 2], balance="1000") for u in UNITS for i in range(6)
        ),
        "booking": tuple(
            row("booking", 1000 * u + 100 * i + j, 10 * u + i, n="7", amount="50", x="4", city="abc"[j % 3], flag="true")
            for u in UNITS for i in range(6) for j in range(6)
        ),
        "note": tuple(row("note", u, ref=str(10 * u), n="5", x="2", tag="tu"[j % 2], city="abc"[j % 3]) for u in UNITS for j in range(12)),
        "profile": tuple(row("profile", u, city="a", level="low", score="9") for u in UNITS),
    }
)  # fmt: skip
"""Every unit passes every bound: six accounts with six bookings each, twelve notes; M is 3, C is 2."""


def _text(key: int | None) -> Cell:
    return None if key is None else str(key)


# --- neighbours -----------------------------------------------------------------------------------------


def units_of(database: Database) -> list[int]:
    """Return the units that own any row."""
    owned = {row[1] for row in database.tables["account"]}
    owned |= {row[0] for table in ("person", "note", "profile") for row in database.tables[table]}
    return [unit for unit in UNITS if str(unit) in owned]


def without(database: Database, unit: int) -> Database:
    """Return the add-remove neighbour: all rows of one unit are gone, the bookings of its accounts too."""
    return _removed(database, unit, keep_bookings=False)


def orphaned(database: Database, unit: int) -> Database:
    """Return `without`, but the unit's bookings are still there: they are nobody's now, and must count nowhere."""
    return _removed(database, unit, keep_bookings=True)


def _removed(database: Database, unit: int, *, keep_bookings: bool) -> Database:
    name, tables = str(unit), database.tables
    gone = {row[0] for row in tables["account"] if row[1] == name}
    return Database(
        {
            "person": tuple(row for row in tables["person"] if row[0] != name),
            "account": tuple(row for row in tables["account"] if row[1] != name),
            "booking": tuple(row for row in tables["booking"] if keep_bookings or row[1] not in gone),
            "note": tuple(row for row in tables["note"] if row[0] != name),
            "profile": tuple(row for row in tables["profile"] if row[0] != name),
        }
    )


def replaced(database: Database, unit: int, newcomer: Database) -> Database:
    """Return the replace-one neighbour: one unit's rows for those of `NEWCOMER`, all of `newcomer`'s rows."""
    rest, name = without(database, unit).tables, str(NEWCOMER)
    accounts = {row[0]: str(int(row[0] or 0) + 50) for row in newcomer.tables["account"]}
    bookings = [row for row in newcomer.tables["booking"] if row[1] in accounts]
    added: dict[str, list[Row]] = {
        "person": [(name, *row[1:]) for row in newcomer.tables["person"][:1]],
        "account": [(accounts[row[0]], name, *row[2:]) for row in newcomer.tables["account"]],
        "booking": [(str(500 + i), accounts[row[1]], *row[2:]) for i, row in enumerate(bookings)],
        "note": [(name, *row[1:]) for row in newcomer.tables["note"]],
        "profile": [(name, *row[1:]) for row in newcomer.tables["profile"][:1]],
    }
    return Database({table: (*rest[table], *added[table]) for table in PRIVATE})


def load(connection: duckdb.DuckDBPyConnection, database: Database, order: int = 0) -> None:
    """Put a database's rows into the tables, in a physical order that depends on `order`.

    With order 0 the public tables' rows are put in too.
    """
    content = {**database.tables, **(PUBLIC_ROWS if order == 0 else {})}
    connection.execute("; ".join(f"DELETE FROM {table}" for table in content))
    for table, rows in content.items():
        shuffled = list(rows)
        random.Random(order).shuffle(shuffled)
        insert_texts(connection, table, shuffled)
