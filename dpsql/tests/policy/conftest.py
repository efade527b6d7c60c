"""A real DuckDB file, the campus policy over it, and the way from text to a live schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.backends import DuckDBBackend
from dpsql.policy import LiveSchema, Policy, parse_policy
from dpsql.tests.support.duckdb_pool import empty_duckdb

CAMPUS_SQL = """
CREATE TYPE standing AS ENUM ('good', 'probation');
CREATE SCHEMA clinic;
CREATE TABLE country (code VARCHAR PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE student (
    id INTEGER PRIMARY KEY, name VARCHAR, gpa DECIMAL(3,2) CHECK (gpa BETWEEN 0 AND 4), major VARCHAR,
    born DATE, seen TIMESTAMP, height DOUBLE, credits SMALLINT NOT NULL, state standing NOT NULL,
    active BOOLEAN, badge UUID, alias VARCHAR COLLATE NOCASE, twice INTEGER GENERATED ALWAYS AS (credits * 2),
    mentor INTEGER, country VARCHAR REFERENCES country (code));
CREATE TABLE loan (id INTEGER PRIMARY KEY, student_id INTEGER REFERENCES student (id),
    guarantor_id INTEGER REFERENCES student (id), amount DOUBLE, note VARCHAR);
CREATE TABLE payment (loan_id INTEGER REFERENCES loan (id), paid DECIMAL(10,2));
CREATE TABLE card (student_id INTEGER NOT NULL UNIQUE REFERENCES student (id), big BIGINT);
CREATE TABLE clinic.visit (student_id INTEGER NOT NULL, "Day of visit" DATE);
CREATE TABLE odd (student_id BIGINT, weight DOUBLE UNIQUE NOT NULL, alias VARCHAR COLLATE NOCASE PRIMARY KEY);
CREATE TABLE keyless (id INTEGER NOT NULL);
CREATE VIEW everybody AS SELECT * FROM student;
"""

HEAD = """
database = "duckdb:campus.duckdb"
[privacy]
epsilon = 10
delta = 1e-6
"""
STUDENT = """
[tables.student]
unit = "id"
"""


def policy_from(text: str, folder: Path = Path("/srv")) -> Policy:
    return parse_policy(text, folder / "campus.toml")


def live_from(sql: str) -> LiveSchema:
    with empty_duckdb() as connection:
        connection.execute(sql)
        with DuckDBBackend.over(connection).snapshot() as snapshot:
            return snapshot.schema()


@pytest.fixture(scope="session")
def campus() -> LiveSchema:
    return live_from(CAMPUS_SQL)


@pytest.fixture(scope="session")
def read_live() -> Callable[[str], LiveSchema]:
    return live_from
