"""The engines that can hold an owner's database: one line each."""

from __future__ import annotations

__all__ = ["ENGINES"]

_BACKENDS = "dpsql.backends."

ENGINES = {
    "duckdb": f"{_BACKENDS}duckdb_backend:DuckDBBackend",
    "postgresql": f"{_BACKENDS}postgres_backend:PostgresBackend",
    "postgres": f"{_BACKENDS}postgres_backend:PostgresBackend",
    "spark": f"{_BACKENDS}spark_backend:SparkBackend",
}
"""How a `database` URL begins -> the module and the class that open it: imported when one is opened, as a driver takes
as long to import as all the rest."""
