"""Answers what Postgres' clients ask of `pg_catalog` and `information_schema`, from declared names and types alone."""

from .errors import CatalogRefusal
from .objects import NamedObject
from .system_catalog import ConnectionFacts, Reads, ResultColumn, SystemCatalog

__all__ = ["CatalogRefusal", "ConnectionFacts", "NamedObject", "Reads", "ResultColumn", "SystemCatalog"]
