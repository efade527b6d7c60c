"""What a relation of the catalog is in the engine's SQL: a table, a query over tables, or nothing at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .builtin import Builtin, CatalogRelation
from .errors import CatalogRefusal
from .pg_types import BY_NAME, OID, PgType
from .session_relations import SESSION_RELATIONS
from .typed import TranslationContext

__all__ = ["SCHEMAS", "CatalogRelations"]

SCHEMAS = ("pg_catalog", "information_schema")
_FACT = re.compile(r"\$([a-z_]+)")


@dataclass(frozen=True)
class CatalogRelations:
    """Finds relations; `filled`: those that are tables of the engine."""

    builtin: Builtin
    filled: frozenset[str]
    oid: PgType = OID
    xid: PgType = BY_NAME["xid"]

    def find(self, schema: str | None, name: str) -> CatalogRelation | None:
        """Return a relation of the system's."""
        return self.builtin.relations.get((schema or "pg_catalog", name))

    def read(self, context: TranslationContext, schema: str | None, name: str) -> tuple[str, CatalogRelation]:
        """Return what stands in FROM for a relation. Raises CatalogRefusal: there is no such relation."""
        relation = self.find(schema, name)
        if relation is None or not (relation.is_readable or relation.schema == "pg_catalog"):
            shown = f"{schema}.{name}" if schema else name
            message = f'relation "{shown[:100]}" does not exist'
            raise CatalogRefusal("no such relation", message=message, sqlstate="42P01")
        if relation.schema == "pg_catalog" and name in self.filled:
            return f'c."{name}"', relation
        query = SESSION_RELATIONS.get((relation.schema, name))
        if query is None:
            columns = [
                f'CAST(NULL AS {type_.holder}) AS "{column}"' for column, type_, *_ in relation.columns
            ]
            nothing = ", ".join(columns)
            return f"(SELECT {nothing} WHERE false)", relation
        context.facts.update(_FACT.findall(query.sql))
        return f"({_completed(query.sql, query.columns, relation)})", relation


def _completed(sql: str, given: frozenset[str], relation: CatalogRelation) -> str:
    """Return a query of all the relation's columns in order: what is not given is NULL, or nothing."""
    parts = []
    for column, type_, _, not_null in relation.columns:
        if column in given:
            parts.append(f'CAST(q."{column}" AS {type_.holder}) AS "{column}"')
        else:
            empty = {"boolean": "false", "number": "0", "oid": "0"}.get(type_.family) if not_null else None
            parts.append(f'CAST({empty or "NULL"} AS {type_.holder}) AS "{column}"')
    return f"SELECT {', '.join(parts)} FROM ({sql}) AS q"
