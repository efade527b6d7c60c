"""Who the people of a database are, guessed from names, types and keys: for `init`, whose reader has the choice.

House rule: a guess is text in a file that the owner reads before anything is answered. Nothing here looks at a row.

Which column of a public table of files is its key, and which columns lead to it: a guess from names and types.

Files have no keys and no foreign keys, by which a table of a database says both. Whether a guess is a key is for the
table's own rows to say, which are nobody's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .live_schema import LiveColumn, LiveForeignKey, LiveSchema, LiveTable
from .personal import KnownPeople, is_named_for_people, is_table_of, known_people, person_named_by
from .units import can_identify_unit, possible_owners, shared_type

__all__ = ["Guess", "guess_people", "possible_keys", "unit_key", "with_lookup"]


# --- which column of a public table of files is its key, and which columns lead to it -----------------------


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


# --- who the people of a database are, guessed from names, types and keys -----------------------------------


Path = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Guess:
    """Whose rows each table has.

    `root`: a table of people, whose key is the unit; None where the person's number stands in the rows: `units` has
    the columns of each such table, one unless there is a choice. `ways`: the foreign keys of the other tables that
    lead to an owner. `misfits`: columns that name the person in another type than the first table's does.
    """

    root: LiveTable | None = None
    units: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    ways: Mapping[Path, tuple[LiveForeignKey, ...]] = field(default_factory=dict)
    misfits: Mapping[Path, str] = field(default_factory=dict)

    def is_private(self, path: Path) -> bool:
        """Say whether the rows of a table are people's, as far as keys and names tell."""
        is_root = self.root is not None and path == self.root.path
        return is_root or path in self.units or path in self.misfits or bool(self.ways.get(path))

    def known(self, tables: Sequence[LiveTable], live: LiveSchema) -> KnownPeople | None:
        """Return what the guess tells of the people; None where nobody was found."""
        first = self.root or next((table for table in tables if table.path in self.units), None)
        if first is None:
            return None
        private = [live.name_of(table.path) for table in tables if self.is_private(table.path)]
        columns = [name for keys in self.ways.values() for key in keys for name in key.columns]
        columns += [name for names in self.units.values() for name in names]
        return known_people(first, private, columns)


def guess_people(tables: Sequence[LiveTable]) -> Guess:
    """Return whose rows the tables have: of a table named for people, else of the person that rows name, else of the
    table that most others lead to."""
    root = _named_root(tables)
    units, misfits = ({}, {}) if root is not None else _units_in_rows(tables)
    if root is None and not units:
        root = _most_reached(tables)
    roots = [root.path] if root is not None else [path for path, names in units.items() if len(names) == 1]
    ways = {
        table.path: possible_owners(table, roots, tables)
        for table in tables
        if table is not root and table.path not in units and table.path not in misfits
    }
    for table in tables:
        if table.path in ways and not ways[table.path]:
            ways[table.path] = _ways_of_parts(table, ways, tables, root)
    return Guess(root, units, ways, misfits)


def unit_key(table: LiveTable) -> tuple[str, ...]:
    """Return a table's primary key where it can be a unit, or ()."""
    columns = [table.column(name) for name in table.primary_key]
    return table.primary_key if all(one is not None and can_identify_unit(one) for one in columns) else ()


def _named_root(tables: Sequence[LiveTable]) -> LiveTable | None:
    """Return the table with a key that is named for people, or that columns named for people point at."""
    pointed = {
        key.table
        for table in tables
        for key in table.foreign_keys
        if len(key.columns) == 1
        and (column := table.column(key.columns[0])) is not None
        and person_named_by(column)[0] == 0
    }

    def weight(table: LiveTable) -> tuple[bool, bool, int, int]:
        is_named = is_named_for_people(table, only_usual=True)
        return is_named, table.path in pointed, _leading_to(table, tables), len(table.columns)

    named = [table for table in tables if unit_key(table)]
    named = [table for table in named if table.path in pointed or is_named_for_people(table)]
    return max(named, key=weight, default=None)


def _most_reached(tables: Sequence[LiveTable]) -> LiveTable | None:
    candidates = [table for table in tables if len(unit_key(table)) == 1]
    if len(candidates) > 1:
        candidates = [table for table in candidates if _leading_to(table, tables)]
    return max(candidates, key=lambda table: (_leading_to(table, tables), len(table.columns)), default=None)


def _leading_to(root: LiveTable, tables: Sequence[LiveTable]) -> int:
    """Return how many other tables lead to a table, over one foreign key or several."""
    found = {root.path}
    while more := {
        t.path for t in tables if t.path not in found and any(k.table in found for k in t.foreign_keys)
    }:
        found |= more
    return len(found) - 1


def _units_in_rows(tables: Sequence[LiveTable]) -> tuple[dict[Path, tuple[str, ...]], dict[Path, str]]:
    """Return the tables in whose rows one kind of person stands, and those that have it in another type."""
    by_person: dict[tuple[int, str], dict[Path, list[LiveColumn]]] = defaultdict(lambda: defaultdict(list))
    for table in tables:
        for column in table.columns:
            rank, person = person_named_by(column)
            if person and can_identify_unit(column):
                by_person[rank, person][table.path].append(column)
    if not by_person:
        return {}, {}
    rank, person = min(by_person, key=lambda one: (one[0], -len(by_person[one])))
    found = by_person[rank, person]
    for table in tables:
        if table.path not in found and is_table_of(table, person):
            key = next((c for c in table.columns if c.name.lower() == "id" and can_identify_unit(c)), None)
            found[table.path] += [] if key is None else [key]
    kinds = [shared_type(column) for columns in found.values() for column in columns]
    usual = max(dict.fromkeys(kinds), key=kinds.count)
    units, misfits = {}, {}
    for path, columns in found.items():
        fitting = tuple(column.name for column in columns if shared_type(column) == usual)
        if fitting:
            units[path] = fitting
        elif columns:
            misfits[path] = columns[0].name
    return units, misfits


def _ways_of_parts(
    table: LiveTable,
    ways: Mapping[Path, tuple[LiveForeignKey, ...]],
    tables: Sequence[LiveTable],
    root: LiveTable | None,
) -> tuple[LiveForeignKey, ...]:
    """Return the ways that a part of a foreign key of several columns has: it stands in the parent's row too, and
    goes on from there."""
    found = []
    for key in table.foreign_keys:
        for name, referenced in zip(key.columns, key.referenced, strict=True):
            for further in ways.get(key.table, ()) if len(key.columns) > 1 else ():
                column = table.column(name)
                parent = next((one for one in tables if one.path == further.table), None)
                target = None if parent is None else parent.column(further.referenced[0])
                if further.columns != (referenced,) or column is None or target is None:
                    continue
                if can_identify_unit(column) and column.engine_type == target.engine_type:
                    found.append(LiveForeignKey((name,), further.table, further.referenced))
            if root is not None and key.table == root.path and len(key.columns) > 1:
                column, target = table.column(name), root.column(referenced)
                is_own = root.primary_key == (referenced,) and column is not None and target is not None
                if (
                    is_own
                    and column is not None
                    and target is not None
                    and column.engine_type == target.engine_type
                ):
                    found.append(LiveForeignKey((name,), root.path, (referenced,)))
    return tuple(dict.fromkeys(found))
