"""Which foreign keys may lead a table's rows to their owner. Which of them does is the policy's choice.

House rule: nothing here decides. Where two keys lead to owners, a row is about two people and dpsql protects
one of them; only the owner of the data can say which.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..errors import PolicyError
from ..relation.catalog import quoted_names
from .live_schema import LiveForeignKey, LiveSchema, LiveTable
from .model import Policy, UnitPolicy
from .units import can_identify_unit, find_live_table, unit_line

__all__ = ["NO_UNIT", "is_own_way", "possible_owners", "private_behind", "unit_text", "without_unit"]

NO_UNIT = (
    'has no unit; write unit = …, unit = "row" if each row is one person and nobody has two, or public = true if '
    "nobody's data is in it"
)


def possible_owners(
    table: LiveTable,
    roots: Collection[tuple[str, str]],
    tables: Sequence[LiveTable],
    chosen: Mapping[tuple[str, str], tuple[str, str]] | None = None,
) -> tuple[LiveForeignKey, ...]:
    """Return the foreign keys from which a way leads over `tables` to one of the roots, without passing `table` again.

    Each step of a way is columns that point at an enforced key of their own types. `chosen`: the parents of
    those tables whose unit is declared; their other foreign keys are no way.
    """
    chosen = chosen or {}
    parents = {
        other.path: {chosen[other.path]}
        if other.path in chosen
        else {key.table for key in other.foreign_keys if _can_own(other, key, tables)}
        for other in tables
        if other.path != table.path
    }
    reached = {*roots} - {table.path}
    while found := {path for path, ways in parents.items() if path not in reached and ways & reached}:
        reached |= found
    return tuple(key for key in table.foreign_keys if key.table in reached and _can_own(table, key, tables))


def _can_own(table: LiveTable, key: LiveForeignKey, tables: Sequence[LiveTable]) -> bool:
    parent = next((parent for parent in tables if parent.path == key.table), None)
    if parent is None or not parent.is_unique(*key.referenced):
        return False
    columns = [(table.column(own), parent.column(other)) for own, other in key.pairs.items()]
    return all(
        own is not None
        and other is not None
        and other.not_null
        and can_identify_unit(own)
        and own.engine_type == other.engine_type
        for own, other in columns
    )


def unit_text(key: LiveForeignKey, live: LiveSchema) -> str:
    """Return the policy's line that chooses a foreign key as the way to the owner."""
    return unit_line(key.columns, (live.name_of(key.table), key.referenced))


def without_unit(where: str, policy: Policy, name: str, live: LiveSchema) -> PolicyError:
    """Return the error for a declared table that has no unit and is not public: it names the possible owners."""
    if policy.files is not None:  # no foreign key leads anywhere
        return PolicyError(f"{where}: {NO_UNIT}")
    try:
        table = find_live_table(where, name, live)
    except PolicyError as error:
        return error
    public = {live.path_of(one.name) for one in policy.tables.values() if one.unit is None}
    chosen = {
        live.path_of(one.name): live.path_of(one.unit.references[0])
        for one in policy.tables.values()
        if one.unit is not None and one.unit.references is not None
    }
    tables = [one for one in live.tables if one.unusable is None and one.path not in public]
    roots = [
        live.path_of(one.name)
        for one in policy.tables.values()
        if one.unit is not None and one.unit.references is None and not one.unit.is_row
    ]
    keys = possible_owners(table, roots, tables, chosen)
    if not keys:
        return PolicyError(f"{where}: {NO_UNIT}")
    names = " and ".join(dict.fromkeys(quoted_names(key.columns) for key in keys))
    if len(keys) == 1:
        return PolicyError(
            f"{where}: has no unit, and {names} leads to an owner; write {unit_text(keys[0], live)}"
        )
    return PolicyError(
        f"{where}: has no unit, and {names} each lead to an owner, of whom only the one that you name is "
        f"protected; write {unit_text(keys[0], live)}, or the like with the other: see "
        "dpsql docs owner two people in a row"
    )


def is_own_way(key: LiveForeignKey, unit: UnitPolicy, policy: Policy, live: LiveSchema) -> bool:
    """Say whether a foreign key points at the very row through which the policy finds the owner, or of its own unit."""
    if unit.references is None:
        parent = policy.tables.get(live.name_of(key.table))
        if parent is None or key.pairs.keys() != set(unit.columns):
            return False
        return parent.unit == UnitPolicy(tuple(key.pairs[column] for column in unit.columns))
    if key.table != live.path_of(unit.references[0]):
        return False
    own = zip(unit.columns, unit.references[1], strict=True)
    return all(key.pairs.get(column) == referenced for column, referenced in own)


def private_behind(key: LiveForeignKey, policy: Policy, live: LiveSchema) -> str | None:
    """Return the first private table that a foreign key leads to, over tables that are not private."""
    pending, seen = [key.table], set[tuple[str, str]]()
    while pending:
        path = pending.pop(0)
        if path in seen:
            continue
        seen.add(path)
        name = live.name_of(path)
        declared = policy.tables.get(name)
        if name in policy.undecided or (declared is not None and declared.unit is not None):
            return name
        if table := live.table(path):
            pending += [further.table for further in table.foreign_keys]
    return None
