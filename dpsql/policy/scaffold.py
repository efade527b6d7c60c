"""Writes a first policy file from the live schema: valid where it can be, with comments for what is left.

House rule: everything here comes from names, types and constraints. No number that shapes an answer is
made up, and none is read from a row: bounds are left to the owner, as comments.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..relation.types import Kind
from .live_schema import LiveColumn, LiveForeignKey, LiveSchema, LiveTable
from .owners import possible_owners, unit_text
from .personal import (
    PEOPLE,
    KnownPeople,
    is_named_for_people,
    known_people,
    names_person_of,
    personal_columns,
)
from .section import plain, quote_key, quote_text
from .units import can_identify_unit

__all__ = ["scaffold"]

_HEAD = """\
# A dpsql policy. What is not declared here does not exist for an analyst.
#
# Each number you fill in must come from what you know about the subject, never from a look at the data:
# a bound that was read off the data gives the data away.

database = {database}

[privacy]
epsilon    = 1             # lifetime cap for everybody together: 1 is strong, 10 is weak
delta      = 1e-6          # lifetime cap; far below one in the number of units. 0: declared group keys only
neighbours = "add-remove"  # or "replace-one"
# together = 4             # the promise for any 4 persons together (a household): four times the noise

[defaults]
epsilon     = 0.05  # of one statement, when the analyst sets none
max_epsilon = 1     # of one statement, whatever the analyst sets
delta       = 1e-9  # of one release with undeclared group keys
"""
_NO_ROOT = """
# No table could be told to hold the people: it needs a primary key of one column, and the tables about
# the same people need foreign keys to it. Take the comment signs off that table first, with
#   unit = "<its primary key>"
"""
_CHOICE = """\
# A row leads to more than one owner, and only the one you choose is protected. Take one comment sign off:
"""
_TAIL = """
# An analyst and a personal cap:
# [analysts.alice]
# epsilon = 0.5
"""


def scaffold(live: LiveSchema, database_url: str) -> str:
    """Return TOML text for a new policy. Names that a policy cannot write are left out, and views are
    comments.

    The root is a guess: a table with a one-column primary key that most tables lead to. Where no
    table has such a key, every table is commented out. Other tables are owned over one or more foreign keys;
    a table with more than one way to an owner waits until its way is chosen.
    """
    tables = [
        table
        for table in live.tables
        if table.unusable is None and all(part and "." not in part for part in table.path)
    ]
    root = _guess_root(tables)
    parts = [_HEAD.replace("{database}", quote_text(database_url))]
    if root is None:
        parts.append(_NO_ROOT)
    else:
        parts.append(_root_text(root, live))
    others = [table for table in tables if table is not root]
    ways = {table.path: possible_owners(table, [root.path], tables) for table in others} if root else {}
    known = None if root is None else _known(root, ways, live)
    for table in others:
        if keys := ways.get(table.path, ()):
            parts.append(_owned_text(table, keys, live))
        else:
            parts.append(_unowned_text(table, known, live))
    return "".join(parts) + _views_text(live) + _TAIL


def _views_text(live: LiveSchema) -> str:
    """Return the views, which wait for the owner: each may show what no analyst should see."""
    names = [live.name_of(table.path) for table in live.tables if table.definition]
    names = [name for name in names if name.count(".") <= 1 and all(name.split("."))]
    if not names:
        return ""
    text = (
        "\n# Views. Analysts see what a view shows. The tables that it reads are declared too, with hidden = true where"
        "\n# only views may read them:\n"
    )
    return text + "".join(f"# [tables.{quote_key(name)}]\n# view = true\n" for name in names)


def _known(
    root: LiveTable, ways: Mapping[tuple[str, str], tuple[LiveForeignKey, ...]], live: LiveSchema
) -> KnownPeople:
    owned = [live.name_of(path) for path, keys in ways.items() if keys]
    columns = [key.columns[0] for keys in ways.values() for key in keys]
    return known_people(root, [live.name_of(root.path), *owned], columns)


def _guess_root(tables: list[LiveTable]) -> LiveTable | None:
    """Return the table named for people, or else the one that most tables lead to; of equals the widest."""
    reached = {table.path: _leading_to(table, tables) for table in tables}
    candidates = [table for table in tables if _single_key(table)]
    if len(candidates) > 1:
        candidates = [table for table in candidates if reached[table.path]]

    def weight(table: LiveTable) -> tuple[bool, int, int]:
        word = table.path[1].lower().rpartition("_")[2]
        return word in PEOPLE or word.removesuffix("s") in PEOPLE, reached[table.path], len(table.columns)

    return max(candidates, key=weight, default=None)


def _leading_to(root: LiveTable, tables: list[LiveTable]) -> int:
    """Return how many other tables lead to a table, over one foreign key or several."""
    found = {root.path}
    while more := {
        t.path for t in tables if t.path not in found and any(k.table in found for k in t.foreign_keys)
    }:
        found |= more
    return len(found) - 1


def _single_key(table: LiveTable) -> str | None:
    if len(table.primary_key) != 1:
        return None
    column = table.column(table.primary_key[0])
    return column.name if column is not None and can_identify_unit(column) else None


def _root_text(root: LiveTable, live: LiveSchema) -> str:
    key = root.primary_key[0]
    return (
        f"\n[tables.{quote_key(live.name_of(root.path))}]\n"
        f"unit = {quote_text(key)}  # a guess: one row here is one privacy unit, the one who is protected\n"
        + _columns_text(root, live, key)
    )


def _owned_text(table: LiveTable, keys: tuple[LiveForeignKey, ...], live: LiveSchema) -> str:
    """Return a private table. With several ways to an owner none is taken: the policy waits for the choice."""
    text = f"\n[tables.{quote_key(live.name_of(table.path))}]\n"
    if len(keys) == 1:
        text += f"{unit_text(keys[0], live)}\n"
    else:
        text += _CHOICE + "".join(f"# {unit_text(key, live)}\n" for key in keys)
    if not all(table.is_unique(key.columns[0]) for key in keys):
        text += (
            "# max_rows   =   # most rows of one unit that count in one result\n"
            "# max_groups =   # if fewer: most groups of one result that one unit may touch\n"
        )
    return text + _columns_text(table, live, keys[0].columns[0] if len(keys) == 1 else None)


def _unowned_text(table: LiveTable, known: KnownPeople | None, live: LiveSchema) -> str:
    """Return a table from which no foreign key leads to the people; as public only if it does not look like theirs."""
    name = quote_key(live.name_of(table.path))
    if known is None:
        return f'\n# [tables.{name}]\n# unit = ""\n'
    root = known.root
    text = f"\n# No foreign key leads from here to {quote_key(live.name_of(root.path))}"
    looks = personal_columns(table, known, live)
    if not looks and not is_named_for_people(table):
        return f"{text}. If no row is about a person:\n# [tables.{name}]\n# public = true\n"
    what = f"{quote_key(looks[0])} looks like a person's key" if looks else "it is named for people"
    owner = next((c for c in table.columns if c.name in looks and names_person_of(c, known)), None)
    text += f", but {what}, so it is not offered as public.\n"
    if owner is None:
        return f'{text}# [tables.{name}]\n# unit = {{ column = "", references = "" }}\n'
    key = LiveForeignKey((owner.name,), root.path, root.primary_key)
    return text + "".join(f"# {line}\n" for line in _owned_text(table, (key,), live).strip().split("\n"))


def _columns_text(table: LiveTable, live: LiveSchema, unit: str | None) -> str:
    lines = [f"[tables.{quote_key(live.name_of(table.path))}.columns]"]
    for column in table.columns:
        if column.name == unit:
            continue
        name, note = quote_key(column.name), _note(table, column)
        is_hidden = column.type.kind is Kind.OPAQUE or column.is_generated or _is_key(table, column)
        lines.append(f"{'# ' if is_hidden else ''}{name} = {{}}  # {note}")
    return "\n".join(lines) + "\n"


def _is_key(table: LiveTable, column: LiveColumn) -> bool:
    keys = (table.primary_key, *table.unique, *(key.columns for key in table.foreign_keys))
    return any(column.name in key for key in keys)


def _note(table: LiveTable, column: LiveColumn) -> str:
    """Return what the owner can fill in. Holds only text of ours: a comment must not run on."""
    if column.is_generated:
        return "computed when it is read: cannot be declared"
    if _is_key(table, column):
        return "a key: as a group key it singles people out"
    kind = column.type
    if column.enum_values is not None or kind.kind is Kind.BOOLEAN:
        return f"{kind}: its values are public keys"
    if kind.is_number:
        known = ""
        if column.lo is not None and column.hi is not None:
            known = f" (its CHECK allows {plain(column.lo)} to {plain(column.hi)})"
        step = ", step = resolution" if kind.is_float else ""
        return f"{kind}: {{ bounds = [lower, upper]{step} }} for SUM and AVG{known}"
    if kind.is_temporal:
        return f"{kind}: {{ bounds = [first, last] }} for computing with it"
    if kind.kind is Kind.TEXT:
        return 'text: { values = ["…", "…"] } for public group keys, { max_length = n } for LENGTH'
    return f"{kind.kind.value}: COUNT only"
