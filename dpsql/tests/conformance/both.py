"""One database in both engines."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dpsql.plan.views import build_catalog
from dpsql.tests.support.postgres_copy import Tables, keep_representable, tables_of
from dpsql.tests.support.postgres_server import PostgresServer

from ..laws.measured import Groups, World, engine_of, world

__all__ = ["Engines", "open_engines", "spelled"]

_BEFORE_CHRIST = re.compile(r"([0-9]+-[0-9]{2}-[0-9]{2})(?: \(BC\))?( [0-9:.]+)?(?: \(?BC\)?)?")


@dataclass(frozen=True, repr=False)
class Engines:
    """One database in DuckDB and its copy in Postgres; `load` puts rows into the first, into `tables`."""

    duckdb: World
    postgres: World
    load: Callable[..., None]
    tables: Tables

    def settle(self, database: object) -> None:
        """Put rows in, as far as both engines can hold them."""
        self.load(self.duckdb.connection, database)
        keep_representable(self.duckdb.connection, self.tables)
        self.postgres.refresh()


def open_engines(folder: Path, maker: ModuleType, server: PostgresServer, stack: ExitStack) -> Engines:
    """Open the world of `random_databases` or `random_joins` in both; the stack ends them."""
    policy = maker.policy_of(folder)
    here = stack.enter_context(world(folder, policy=policy, schema=maker.SCHEMA))
    twin, backend = engine_of(stack, here.connection, policy, server)
    with backend.snapshot() as snapshot:
        catalog = build_catalog(policy, snapshot.schema())
    there = World(here.connection, twin, backend, policy, catalog)
    return Engines(here, there, maker.load, tables_of(here.connection))


def spelled(found: dict[int, Groups]) -> dict[int, Groups]:
    """Return the groups with one spelling of the dates that our calendar has not: such a key is never published."""
    return {
        measurement: {tuple(map(_spelled, key)): values for key, values in groups.items()}
        for measurement, groups in found.items()
    }


def _spelled(value: object) -> Any:
    match = _BEFORE_CHRIST.fullmatch(value) if isinstance(value, str) else None
    return value if match is None or "BC" not in match[0] else f"{match[1]}{match[2] or ''} BC"
