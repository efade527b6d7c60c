"""The data sets: what is asked of each, and its tables in DuckDB and in Postgres, with the same rows."""

from __future__ import annotations

import csv
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from dpsql.policy import Policy, parse_policy

from .rows import ROWS, Rows

__all__ = ["DATA_SETS", "OF_TWO", "Question", "fill_duckdb", "fill_postgres", "read_policy", "read_questions"]

DATA_SETS = tuple(ROWS)
"""Their names."""
OF_TWO = {"board": 7, "market": 7, "messenger": 6}
"""Those whose rows are of two people, and how many questions are asked of each; of the others 21."""

_HERE = Path(__file__).parent
_NULL = "\\N"
_QUESTION = re.compile(
    r"-- (?P<name>\w+ \d\d), (?P<level>simple|medium|hard): (?P<asked>[^\n]+)\n"
    r"-- keys: (?P<keys>none|\d+(?:, \d+)*)\n(?P<sql>.+?);\n(?:\n|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody wants to know, and their SQL. `keys`: the columns of the answer that say which row it is."""

    name: str
    level: str
    asked: str
    keys: tuple[int, ...]
    sql: str

    def __str__(self) -> str:
        return self.name.replace(" ", "_")


def read_questions(data_set: str) -> list[Question]:
    """Return the questions of a data set. Raises ValueError at text that is none."""
    text = (_HERE / f"{data_set}.sql").read_text(encoding="utf-8")
    found, end = [], 0
    for match in _QUESTION.finditer(text):
        if match.start() != end:
            break
        keys = () if match["keys"] == "none" else tuple(map(int, match["keys"].split(", ")))
        found.append(Question(match["name"], match["level"], match["asked"], keys, match["sql"]))
        end = match.end()
    if end != len(text):
        raise ValueError(f"{data_set}.sql: no question: {text[end : end + 80]!r}")
    return found


def read_policy(data_set: str) -> Policy:
    """Return the policy of a data set."""
    path = _HERE / f"{data_set}.toml"
    return parse_policy(path.read_text(encoding="utf-8"), path)


def fill_duckdb(connection: duckdb.DuckDBPyConnection, data_set: str, rows: Rows) -> None:
    """Make the tables of a data set, with their rows.

    Without references of a table to itself: DuckDB holds these against the rows that were there before a COPY.
    """
    tables = _schema(data_set).replace(" jsonb", " json").split(";\n")
    for one in filter(None, tables):
        name = one.removeprefix("CREATE TABLE ").partition(" ")[0]
        own = rf"(,\n +FOREIGN KEY \([^)]*\))? REFERENCES {name} \([^)]*\)"
        connection.execute(re.sub(own, "", one))
    with tempfile.TemporaryDirectory() as folder:
        for table, lines in rows.items():
            path = Path(folder) / f"{table}.csv"
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(
                    [_NULL if value is None else value for value in line] for line in lines
                )
            connection.execute(f"COPY {table} FROM '{path}' (HEADER false, NULLSTR '{_NULL}')")


def fill_postgres(connection: psycopg.Connection[Any], data_set: str, rows: Rows) -> None:
    """Make the tables of a data set, with their rows."""
    connection.execute(_schema(data_set).encode())
    with connection.cursor() as cursor:
        for table, lines in rows.items():
            with cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                for line in lines:
                    copy.write_row(line)
    connection.execute("ANALYZE")


def _schema(data_set: str) -> str:
    return (_HERE / f"{data_set}_schema.sql").read_text(encoding="utf-8")
