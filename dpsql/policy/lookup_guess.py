"""Which column of a public table of files is its key, and which columns lead to it: a guess from names and types.

Files have no keys and no foreign keys, by which a table of a database says both. Whether a guess is a key is for the
table's own rows to say, which are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .live_schema import LiveColumn, LiveForeignKey, LiveSchema, LiveTable
from .units import can_identify_unit, shared_type

__all__ = ["possible_keys", "with_lookup"]

_KEY_NAMES = ("id", "key", "code", "no", "number")


def possible_keys(table: LiveTable, live: LiveSchema) -> tuple[str, ...]:
    """Return the columns that could be a lookup's key: those that others lead to first, then those named like one."""
    usable = [column for column in table.columns if can_identify_unit(column)]
    led_to = [column.name for column in usable if any(_pointing(table, column, live))]
    named = [column.name for column in usable if column.name.lower().rpartition("_")[2] in _KEY_NAMES]
    return tuple(dict.fromkeys((*led_to, *named)))


def with_lookup(live: LiveSchema, path: tuple[str, str], key: str) -> LiveSchema:
    """Return the schema in which a column is taken for its table's key, and other tables' columns lead to it."""
    table = live.table(path)
    column = None if table is None else table.column(key)
    assert table is not None, "it was found in this schema"
    assert column is not None, "it was found in this table"
    leading = dict[tuple[str, str], tuple[LiveForeignKey, ...]]()
    for other, name in _pointing(table, column, live):
        leading[other.path] = (*leading.get(other.path, ()), LiveForeignKey((name,), path, (key,)))
    tables = (
        replace(one, asserted=(key,))
        if one.path == path
        else replace(one, foreign_keys=(*one.foreign_keys, *leading.get(one.path, ())))
        for one in live.tables
    )
    return replace(live, tables=tuple(tables))


def _pointing(table: LiveTable, key: LiveColumn, live: LiveSchema) -> Iterator[tuple[LiveTable, str]]:
    """Yield the columns of other tables that have a key's type, and its name or one made of the table's."""
    whose, name = {table.path[1].lower(), table.path[1].lower().removesuffix("s")}, key.name.lower()
    wanted = {f"{one}_{name}" for one in whose}
    wanted |= whose if name in (*_KEY_NAMES, "name") else {name}
    for other in live.tables:
        for column in other.columns if other.path != table.path else ():
            is_named = column.name.lower() in wanted
            if is_named and can_identify_unit(column) and shared_type(column) == shared_type(key):
                yield other, column.name
