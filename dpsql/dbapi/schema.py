"""What of a schema can be asked without a query: SHOW TABLES, DESCRIBE, and the system catalog.

House rule: the session's catalog is all that is read: what is not declared does not exist, and no row is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..engine import Answer, AnswerColumn, Session
from ..errors import Refusal
from ..policy.describe import column_comment, table_comment
from ..relation.catalog import Catalog, Table, View
from ..relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    SqlType,
)
from ..value_text import plain_text

if TYPE_CHECKING:
    from ..system_catalog import ResultColumn, SystemCatalog

__all__ = ["Schema", "listed_tables"]

_TABLES = re.compile(r"\s*show\s+tables\s*;?\s*", re.IGNORECASE)
_DESCRIBE = re.compile(
    r'\s*(?:desc|describe|show\s+columns\s+(?:from|in))\s+(?:table\s+)?((?:"(?:[^"]|"")+"|[^\s";.]+)(?:\.(?:"(?:[^"]|"")+"|[^\s";.]+))*)\s*;?\s*',
    re.IGNORECASE,
)
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
_CATALOG = re.compile(r"\binformation_schema\b|\bpg_", re.IGNORECASE)
_LONGEST = 100_000
_VERSION = "15.0"
_PROCESS = 0
"""There is one, which has no number."""
_TYPES: dict[int, SqlType] = {
    16: BOOLEAN, 20: BIGINT, 21: SMALLINT, 23: INTEGER, 26: BIGINT, 700: REAL, 701: DOUBLE, 1082: DATE,
    1114: TIMESTAMP, 1184: TIMESTAMP, 1700: NUMERIC,
}  # fmt: skip
"""By Postgres' numbers; what is not here is shown as text."""


def listed_tables(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the name of each table that may be asked, and whose rows it has."""
    for name, table in catalog.shown.items():
        yield name, table_comment(table)


class Schema:
    """The declared tables of one session; its system catalog is made when it is first asked."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: SystemCatalog | None = None

    def answer(self, text: str, values: Sequence[object]) -> Answer | None:
        """Return the answer to a question about the schema, None for any other statement. Raises Refusal."""
        if len(text) > _LONGEST:
            return None
        if _TABLES.fullmatch(text):
            return _answer(("table_name", "rows"), list(listed_tables(self._session.catalog)))
        if asked := _DESCRIBE.fullmatch(text):
            return self._described(
                [quoted.replace('""', '"') or bare.lower() for quoted, bare in _PART.findall(asked[1])]
            )
        if _CATALOG.search(text):
            return self._looked_up(text, values)
        return None

    def interrupt(self) -> None:
        """End what the system catalog is asked, if anything; from any thread."""
        if self._made is not None:
            self._made.interrupt(_PROCESS)

    def close(self) -> None:
        """Let the system catalog go."""
        if self._made is not None:
            self._made.close()

    def _described(self, path: Sequence[str]) -> Answer:
        table = _found(self._session.catalog, path)
        policy = self._session.policy
        rows = [
            (one.name, str(one.type), column_comment(table, one.name, policy.has_delta))
            for one in table.named
        ]
        return _answer(("column_name", "data_type", "what_may_be_asked"), rows)

    def _looked_up(self, text: str, values: Sequence[object]) -> Answer | None:
        from ..system_catalog import ConnectionFacts, Reads

        catalog, policy = self._system_catalog(), self._session.policy
        if catalog.reads(text) is not Reads.CATALOG:
            return None
        facts = ConnectionFacts(self._session.analyst, policy.path.stem, _PROCESS, {})
        given = [list(value) if isinstance(value, tuple) else value for value in values]
        columns, rows = catalog.run(text, facts, given)
        return Answer(tuple(map(_column, columns)), [tuple(map(_plain, row)) for row in rows], "SELECT", None)

    def _system_catalog(self) -> SystemCatalog:
        if self._made is None:
            from ..system_catalog import SystemCatalog

            policy = self._session.policy
            self._made = SystemCatalog(
                self._session.catalog, has_delta=policy.has_delta, version=_VERSION,
                version_text=f"PostgreSQL {_VERSION} (dpsql)",
            )  # fmt: skip
        return self._made


def _answer(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> Answer:
    return Answer(tuple(AnswerColumn(name, TEXT) for name in names), rows, "SHOW", None)


def _found(catalog: Catalog, path: Sequence[str]) -> Table | View:
    """Return a declared table. Raises Refusal 42P01, the same whether it is missing or not declared."""
    there = {table.path[0] for table in catalog.shown.values()}
    schema = path[-2] if len(path) > 1 else None
    if schema is None or (schema == "public" and schema not in there):  # what catalogs call the default one
        schema = catalog.default_schema
    for table in catalog.shown.values():
        if table.path == (schema, path[-1]) or (len(path) == 1 and table.name == path[0]):
            return table
    raise Refusal(
        f'table "{".".join(path)[:100]}" does not exist',
        sqlstate="42P01",
        hint=f"tables: {', '.join(catalog.shown)}",
    )


def _column(column: ResultColumn) -> AnswerColumn:
    return AnswerColumn(column.name, _TYPES.get(column.oid, TEXT))


def _plain(value: object) -> object:
    """Return a value as one of the types here: the name of an object for it, a moment in UTC, an array as text."""
    if isinstance(value, list):
        return plain_text([_plain(one) for one in value])
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else value
