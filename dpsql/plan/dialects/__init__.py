"""What engines spell differently, in one abstract dialect and one class an engine.

A class is found by its name from when it is made: another engine's may stand beside its backend.
"""

from __future__ import annotations

from .dialect import Dialect, dialect_of
from .dialect_duckdb import DuckDBDialect
from .dialect_postgres import PostgresDialect
from .dialect_spark import SparkDialect

__all__ = ["Dialect", "DuckDBDialect", "PostgresDialect", "SparkDialect", "dialect_of"]
