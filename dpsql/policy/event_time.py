"""By which time a first policy proposes that rows were: a column of their table, or of the table on their way.

House rule: what stands on the way to a person is undated or gives the rows its very time (`load_time.check_times`), so
a table below one with a time is proposed that one's, whatever its own columns are: what is proposed holds together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..relation.types import Kind
from .live_schema import LiveForeignKey, LiveSchema, LiveTable

__all__ = ["own_time", "proposed_time"]

_WHEN = re.compile(r"(^|_)(at|time|timestamp|date|day)$|date")
_NO_TIME = re.compile("updat|modif|chang|expir|birth|born|due|valid|until")


def own_time(table: LiveTable) -> str | None:
    """Return the one column that says when a table's rows were: by its name, or as the only moment that there is; None:
    there is none, or a choice."""
    moments = [
        column
        for column in table.columns
        if column.type.kind in (Kind.DATE, Kind.TIMESTAMP) and not _NO_TIME.search(column.name.lower())
    ]
    named = [column for column in moments if _WHEN.search(column.name.lower())]
    certain = [column for column in named if column.not_null]
    found = next((some for some in (certain, named, moments) if len(some) == 1), None)
    return None if found is None else found[0].name


def proposed_time(
    table: LiveTable,
    live: LiveSchema,
    ways: Mapping[tuple[str, str], tuple[LiveForeignKey, ...]],
    root: LiveTable | None,
) -> str | None:
    """Return a table's time as a policy writes it: `ordered_at`, or `orders.ordered_at` of the farthest table with one
    on its way to the person, up to where there is a choice of ways. None: its rows would be undated.

    `ways`: the foreign keys of each table that lead to its person; `root`: the table of people, which is undated.
    """
    found, here, passed = own_time(table), table, {table.path}
    while len(keys := ways.get(here.path, ())) == 1:
        above = live.table(keys[0].table)
        if above is None or above.path in passed or (root is not None and above.path == root.path):
            break
        column = own_time(above)
        found = found if column is None else f"{live.name_of(above.path)}.{column}"
        passed.add(above.path)
        here = above
    return found
