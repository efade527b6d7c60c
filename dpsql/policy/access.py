"""What one analyst sees of the catalog: the tables that are granted, without the columns that are hidden from them.

House rules (soundness.md 3.16):

1. What is not granted has no name: a statement cannot write it, and nothing that is said names it. That is decided
   here, once, when a session begins; whoever binds, describes or refuses has the narrowed catalog alone.
2. Nothing else changes. Whose a row is, what is measured and under which identity it is stored are those of the whole
   catalog: what two analysts may both ask is one release, drawn and charged once.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ..errors import PolicyError
from ..relation.catalog import Catalog, Table, View
from ..relation.expressions import Field
from ..relation.relations import map_tables, renamed
from .model import Access, Policy
from .section import quote_key, suggest


def access_of(policy: Policy, analyst: str) -> Access:
    """Return what an analyst may see: everything, where the policy has nothing to say."""
    known = policy.analysts.get(analyst)
    return Access() if known is None else known.access


def check_access(policy: Policy, catalog: Catalog) -> list[PolicyError]:
    """Return what is wrong with the grants: columns that are hidden and are not there."""
    found = []
    for analyst in (*policy.analysts.values(), *policy.groups.values()):
        known = {f"{name}.{column.name}" for name, table in catalog.shown.items() for column in table.named}
        for hidden in analyst.access.hide:
            if hidden not in known and not any(hidden.startswith(f"{name}.") for name in catalog.left_out):
                kind = "groups" if analyst is policy.groups.get(analyst.name) else "analysts"
                where = f"{policy.source}: {kind}.{quote_key(analyst.name)}.hide"
                problem = f'"{hidden}" is no column that analysts see{suggest(hidden, sorted(known))}'
                found.append(PolicyError(f"{where}: {problem}"))
    return found


def narrowed(catalog: Catalog, access: Access) -> Catalog:
    """Return a catalog in which what is not granted has no name."""
    granted = {name for name in catalog.shown if access.tables is None or name in access.tables}
    tables = {name: _narrowed_table(table, access, granted) for name, table in catalog.tables.items()}
    roots = tuple(f"{name}@" for name, table in tables.items() if table.is_hidden)
    for name, table in tables.items():
        tables[name] = replace(table, is_way_named=_has_named_way(table, tables))
    views = {
        name: _narrowed_view(view, access, tables) for name, view in catalog.views.items() if name in granted
    }
    databases = tuple(name for name in catalog.databases if not name.startswith(roots))
    left_out = {} if access.is_narrowed else catalog.left_out
    return replace(
        catalog,
        tables=MappingProxyType(tables),
        views=MappingProxyType(views),
        databases=databases,
        left_out=left_out,
    )


def seen_lines(policy: Policy, catalog: Catalog) -> tuple[str, ...]:
    """Return who sees which tables, a line for each analyst; none where all see everything."""
    if not any(analyst.access.is_narrowed for analyst in policy.analysts.values()):
        return ()
    lines = []
    for analyst in policy.analysts.values():
        shown = narrowed(catalog, analyst.access).shown
        tables = ", ".join(_seen_text(name, table, catalog.shown[name]) for name, table in shown.items())
        lines.append(f"{quote_key(analyst.name)}: {tables if analyst.access.is_narrowed else 'everything'}")
    return tuple(lines)


def _seen_text(name: str, table: Table | View, whole: Table | View) -> str:
    left = {column.name for column in table.named}
    hidden = [quote_key(column.name) for column in whole.named if column.name not in left]
    return f"{quote_key(name)} without {' and '.join(hidden)}" if hidden else quote_key(name)


def _narrowed_table(table: Table, access: Access, granted: set[str]) -> Table:
    if table.is_hidden:
        return table
    names = {column.name for column in (*table.columns, *table.owner_columns)}
    if table.name not in granted:
        return replace(table, is_hidden=True, unnamed=frozenset(names))
    return replace(table, unnamed=frozenset(access.hidden_in(table.name) & names))


def _has_named_way(table: Table, tables: dict[str, Table]) -> bool:
    unit = table.unit
    if unit is None or table.unnamed.intersection(unit.columns):
        return unit is None
    if unit.references is None:
        return True
    name, key = unit.references
    return not (tables[name].is_hidden or tables[name].unnamed.intersection(key))


def _narrowed_view(view: View, access: Access, tables: dict[str, Table]) -> View:
    """Return a view without its hidden columns, over tables as they are seen."""
    hidden = access.hidden_in(view.name)

    def seen(table: Table) -> Table:
        known = tables[table.name]
        return replace(
            table, is_hidden=known.is_hidden, unnamed=known.unnamed, is_way_named=known.is_way_named
        )

    is_whole = not any(tables[name].unnamed for name in view.reads)
    if is_whole and not hidden:
        return replace(view, relation=map_tables(view.relation, seen))
    relation = map_tables(view.relation, seen, _without_name)
    names = tuple("" if column.name in hidden else column.name for column in relation.columns)
    shown = tuple(column for column in view.columns if column.name not in hidden)
    return replace(view, columns=shown, relation=renamed(relation, names))


def _without_name(field: Field) -> Field:
    return replace(field, name="")
