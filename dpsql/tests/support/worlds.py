"""The worlds in which statements are searched: schema, policy, hostile people, and what is promised about them.

With the shapes of `engine/audit/statements.py` they make one product: a point of `AXES` says the world, the promise,
the bounds and the statement. The databases keep no declaration, as those of `random_databases` and `random_joins`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.audit.statements import SHAPES, Axes, Point
from ...policy import Accounting, Neighbours, Policy
from ...policy.model import TablePolicy
from ...relation.catalog import Catalog
from . import random_databases, random_joins
from .random_composites import SCHEMA_OF_COMPOSITES, load_composites, policy_of_composites
from .random_events import SCHEMA_OF_EVENTS, changed, policy_of_events, random_event_database
from .random_files import SCHEMA_OF_FILES, TABLES, policies_of_files
from .random_numbered import SCHEMA_OF_NUMBERED, load_numbered, policy_of_numbered
from .random_rows import HEAVY as HEAVY_ROWS
from .random_rows import (
    SCHEMA_OF_ROWS,
    load_rows,
    policy_of_rows,
    random_rows,
    replaced_row,
    without_people,
    without_row,
)
from .random_views import MADE, view_policy, with_names_of_tables

if TYPE_CHECKING:
    import duckdb

__all__ = ["AXES", "NEIGHBOURS", "PROMISES", "WORLDS", "Setting", "neighbour_of", "policy_at"]


@dataclass(frozen=True)
class Setting:
    """A world: its tables, the policy over them, and how databases are made, changed and put in.

    `people`: a random database. `heavy`: one whose people pass every bound. `load(connection, database, order)`.
    `named`: what becomes of the catalog before statements are planned over it. `less`: as `without`, another way.
    `files`: in DuckDB, the policy over recorded files of the tables in place of these.
    """

    schema: str
    policy: Callable[[Path], Policy]
    people: Callable[[random.Random], Any]
    heavy: Any
    load: Callable[..., None]
    without: Callable[[Any, int], Any]
    less: Callable[[Any, int], Any]
    replaced: Callable[[Any, int, Any], Any]
    views: str = ""
    named: Callable[[Catalog], Catalog] = lambda catalog: catalog
    files: Callable[[Path], Policy] | None = None


def _heavy_visits() -> random_databases.Database:
    """Return three people with four rows and values in each of twelve groups, beside a row of nobody and of another."""
    cells = random_databases.VISIT.cells

    def visit(unit: int | None, **known: str | None) -> tuple[int | None, random_databases.Row]:
        return unit, tuple(known.get(name) for name in cells)

    visits = [
        visit(unit, city=city, flag=flag, tag=f"{unit}{city}{i}"[: 1 + i], n=str(4 + i), x="4", d="5", r="2",
              day="2020-12-31", seen="2020-03-31 23:59:59", level=("low", "high")[i % 2], big="1152921504606846976")
        for unit in (1, 2, 3) for city in ("a", "b", None) for flag in ("true", "false") for i in range(4)
    ]  # fmt: skip
    persons = [(unit, ("5", "2.5", "9", "x", "red", "2009-12-31", "true")) for unit in (1, 2, 3)]
    others = [visit(None, city="a", tag="p", n="7"), visit(4, city="a", tag="1", n="-3", x="-1", d="0")]
    return random_databases.Database(tuple(persons), (*visits, *others))


_joined = partial(
    Setting, people=partial(random_joins.random_database, most=16), heavy=random_joins.HEAVY,
    load=random_joins.load, without=random_joins.without, less=random_joins.orphaned, replaced=random_joins.replaced,
)  # fmt: skip
_composite = partial(_joined, load=load_composites)


def _load_files(
    connection: duckdb.DuckDBPyConnection, database: random_joins.Database, order: int = 0
) -> None:
    """Put the rows of those tables in that are files."""
    rows = {name: content for name, content in database.tables.items() if name in TABLES}
    random_joins.load(connection, random_joins.Database(rows), order)


WORLDS: Mapping[str, Setting] = {
    "one table": Setting(
        random_databases.SCHEMA, random_databases.policy_of, partial(random_databases.random_database, most=20),
        _heavy_visits(), random_databases.load, random_databases.without, random_databases.without,
        random_databases.replaced,
    ),
    "joins": _joined(random_joins.SCHEMA, random_joins.policy_of),
    "events": _joined(SCHEMA_OF_EVENTS, policy_of_events, people=partial(random_event_database, most=12)),
    "composites": _composite(SCHEMA_OF_COMPOSITES, policy_of_composites),
    "composites in rows": _composite(
        changed(SCHEMA_OF_COMPOSITES, (", PRIMARY KEY (no, site)", "")), partial(policy_of_composites, in_row=True)
    ),
    "numbered": _joined(SCHEMA_OF_NUMBERED, policy_of_numbered, load=load_numbered),
    "views": _joined(random_joins.SCHEMA, view_policy, views=MADE, named=with_names_of_tables),
    "files": _joined(
        SCHEMA_OF_FILES, lambda folder: policies_of_files(folder)[1], load=_load_files,
        people=partial(random_event_database, most=40), files=lambda folder: policies_of_files(folder)[0],
    ),
    "rows": Setting(
        SCHEMA_OF_ROWS, policy_of_rows, random_rows, HEAVY_ROWS, load_rows, without_row, without_row, replaced_row,
        named=without_people,
    ),
}  # fmt: skip

PROMISES: Axes = {
    "accounting": ("pure", "pure, little", "zcdp", "zcdp, truncated"),
    "neighbours": ("one less", "one replaced", "three less", "two replaced"),
    "bounds": ("two groups", "one row", "three groups", "few in all", "one group"),
    "fewest": ("one", "five"),
}
"""What is promised: the accounting with its epsilon and delta, the neighbours, C, M and R, and `minimum_units`.

Under "zcdp, truncated" groups are shown by truncated noise where one unit may differ, and by a threshold where several.
"""

AXES: Axes = {"world": tuple(WORLDS), **PROMISES, **SHAPES}
"""All that is searched."""

_SPENT = {"pure": ("1", "1/1000"), "pure, little": ("1/10", "1/20"), "zcdp": ("1", "1/1000"),
          "zcdp, truncated": ("1/10", "1/20")}  # fmt: skip
_BOUNDS = {"two groups": (6, 3, 2), "one row": (1, 1, 1), "three groups": (6, 2, 3), "few in all": (4, 3, 2),
           "one group": (5, 5, 1)}  # fmt: skip
"""R, M and C of every table that has them."""
NEIGHBOURS: Mapping[str, tuple[Neighbours, int]] = {
    "one less": (Neighbours.ADD_REMOVE, 1), "one replaced": (Neighbours.REPLACE_ONE, 1),
    "three less": (Neighbours.ADD_REMOVE, 3), "two replaced": (Neighbours.REPLACE_ONE, 2),
}  # fmt: skip


def policy_at(policy: Policy, point: Point) -> Policy:
    """Return a policy with what is promised at a point."""
    epsilon, delta = map(Fraction, _SPENT[point["accounting"]])
    neighbours, together = NEIGHBOURS[point["neighbours"]]
    accounting = Accounting.ZCDP if "zcdp" in point["accounting"] else Accounting.PURE
    fewest = 5 if point["fewest"] == "five" else 1
    return replace(
        policy,
        privacy=replace(policy.privacy, neighbours=neighbours, together=together, accounting=accounting),
        defaults=replace(policy.defaults, epsilon=epsilon, delta=delta, minimum_units=fewest),
        tables={name: _bounded(table, *_BOUNDS[point["bounds"]]) for name, table in policy.tables.items()},
    )


def _bounded(table: TablePolicy, rows: int, in_group: int, groups: int) -> TablePolicy:
    if table.max_rows is None:
        return table
    return replace(table, max_rows=rows, max_rows_per_group=in_group, max_groups=groups)


def neighbour_of(setting: Setting, kind: str, database: Any, newcomer: Any) -> Any:
    """Return a neighbour of a database: without its first units, or with a newcomer in the place of one.

    Of several that go, rows may stay that lead to none of them any more; of two replaced the first becomes the newcomer,
    and the second has no rows any more.
    """
    neighbours, together = NEIGHBOURS[kind]
    if neighbours is Neighbours.ADD_REMOVE:
        for unit in range(1, together + 1):
            database = (setting.without if together == 1 else setting.less)(database, unit)
        return database
    if together > 1:
        database = setting.without(database, 2)
    return setting.replaced(database, 1, newcomer)
