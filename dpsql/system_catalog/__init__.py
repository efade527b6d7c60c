"""Answers what Postgres' clients ask of `pg_catalog` and `information_schema`, from declared names and types alone."""

from .classify import Reads
from .errors import CatalogRefusal
from .system_catalog import ConnectionFacts, ResultColumn, SystemCatalog
from .values import NamedObject

__all__ = ["CatalogRefusal", "ConnectionFacts", "NamedObject", "Reads", "ResultColumn", "SystemCatalog"]
