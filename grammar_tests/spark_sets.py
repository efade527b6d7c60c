"""The policies' databases on Spark: the wild data, the tame and each neighbour, copied when they are first asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path

import duckdb
from datasets import CountingBackend, DataSets, PolicyData
from replay import Run

from dpsql import Session
from dpsql.tests.support.spark_copy import SparkOwner, copy_tables
from dpsql.tests.support.spark_twin import CopiesBackend

__all__ = ["SparkData", "SparkSets"]


class SparkData:
    """One policy's databases; a session over `backend` reads the wild one."""

    def __init__(self, owner: SparkOwner, source: PolicyData, folder: Path) -> None:
        self.policy, self._source = source.policy, source
        self._owner, self._folder = owner, folder
        self._copies: dict[str, str] = {}
        self.backend = CopiesBackend(owner.url, source.wild, [self._copy("wild")], source.schema)

    @cached_property
    def databases(self) -> dict[str, duckdb.DuckDBPyConnection]:
        """All of the databases, as DuckDB has them."""
        tame = {} if self._source.tame is None else {"tame": self._source.tame}
        beside = {f"neighbour{number}": one for number, one in enumerate(self._source.neighbours)}
        return {"wild": self._source.wild, "owned": self._source.owned, **tame, **beside}

    def ask(self, databases: Sequence[str]) -> None:
        """Have what is asked from now on be asked of some databases in one query; the first is the wild one."""
        self.backend.read(*map(self._copy, databases))

    def run_on(self, database: str) -> Run:
        """Return what runs SQL on one of the databases that are asked."""
        return partial(self.backend.rows, self._copy(database))

    def close(self) -> None:
        """Let the sessions go."""
        self.backend.close_idle()

    def _copy(self, database: str) -> str:
        if database not in self._copies:
            source = self._source.wild if database == "wild" else self.databases[database]
            self._copies[database] = copy_tables(source, self._owner, self._folder)
        return self._copies[database]


class SparkSets:
    """Opens each policy's databases once."""

    def __init__(self, owner: SparkOwner, data: DataSets, folder: Path) -> None:
        self._owner, self._data, self._folder = owner, data, folder
        self._known: dict[str, SparkData] = {}
        self._asked: dict[tuple[str, str], tuple[Session, CountingBackend]] = {}

    def of(self, name: str) -> SparkData:
        """Return a policy's databases: copies of what DuckDB has."""
        if name not in self._known:
            self._known[name] = SparkData(self._owner, self._data.of(name), self._folder)
        return self._known[name]

    def refusing(self, name: str, analyst: str) -> tuple[Session, CountingBackend]:
        """Return a session that many refused statements share: they leave no trace."""
        if (name, analyst) not in self._asked:
            data = self.of(name)
            self._asked[name, analyst] = self._data.session(data.policy, data.backend, analyst, stays=True)
        return self._asked[name, analyst]

    def close(self) -> None:
        """Let every session go."""
        for data in self._known.values():
            data.close()
