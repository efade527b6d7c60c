"""The schema of tables that are named without one: DuckDB's is called main, and tools look in Postgres' public."""

from __future__ import annotations

from dataclasses import replace

from ..relation.catalog import Catalog

__all__ = ["shown_in_public"]

_PUBLIC = "public"


def shown_in_public(catalog: Catalog) -> Catalog:
    """Return a catalog whose default schema is called public, unless it is Postgres' own or there is one of that name.

    Statements may name it either way already (`sql.scope.schemas_of`).
    """
    default = catalog.default_schema
    paths = [table.path for table in catalog.tables.values()] + [view.path for view in catalog.views.values()]
    if catalog.dialect != "duckdb" or any(path[0] == _PUBLIC for path in paths):
        return catalog

    def moved(path: tuple[str, ...]) -> tuple[str, ...]:
        return (_PUBLIC, *path[1:]) if len(path) > 1 and path[0] == default else path

    tables = {name: replace(table, path=moved(table.path)) for name, table in catalog.tables.items()}
    views = {name: replace(view, path=moved(view.path)) for name, view in catalog.views.items()}
    return replace(catalog, tables=tables, views=views, default_schema=_PUBLIC)
