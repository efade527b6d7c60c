"""A made-up table has the counts that are stored, costs nothing, and is told apart (soundness.md 3.20)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpsql import Session
from dpsql.engine.dataset import open_ledger
from dpsql.engine.stored import synthesize, write
from dpsql.errors import PolicyError, Refusal
from dpsql.policy import parse_policy
from dpsql.release import synthesis
from dpsql.release.synthesis import Model
from dpsql.tests.laws.planting import plant

_POLICY = """
database = "duckdb:school.duckdb"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 1000
[defaults]
epsilon = 10
max_epsilon = 10
[tables.student]
unit = "id"
[tables.student.columns]
major = { values = ["Art", "CS", "Law"], complete = true }
abroad = {}
year = { bounds = [2019, 2022], complete = true }
born = { bounds = [2000-01-01, 2000-12-31], complete = true }
city = {}
[tables."model.student"]
public = true
description = 'from the tables of edition 18 of "student"'
"""
_PAIRS = (
    "SELECT major, abroad, COUNT(*) FROM student GROUP BY major, abroad",
    "SELECT year, abroad, COUNT(*) FROM student GROUP BY year, abroad",
    "SELECT date_trunc('month', born), major, COUNT(*) FROM student GROUP BY 1, 2",
)
MOST_OFF = 12
"""What whole numbers of 288 cells, and noise below 0, take off a number."""


@pytest.fixture
def school(tmp_path: Path) -> Iterator[Session]:
    with duckdb.connect(str(tmp_path / "school.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE student (id INTEGER PRIMARY KEY, major TEXT NOT NULL, abroad BOOLEAN NOT NULL, "
            "year INTEGER NOT NULL, born DATE NOT NULL, city TEXT);"
            "INSERT INTO student SELECT i, ['Art', 'CS', 'Law'][1 + i % 3], i % 3 = 0 AND i % 2 = 0, 2019 + i // 300, "
            "DATE '2000-01-01' + (i % 360)::INTEGER, 'x' FROM range(1200) AS t(i);"
            "CREATE SCHEMA model; CREATE TABLE model.student AS SELECT major, abroad FROM student"
        )
    policy = parse_policy(_POLICY, tmp_path / "policy.toml")
    (tmp_path / "policy.toml").write_text(_POLICY, "utf-8")
    open_ledger(policy, create=True)
    with Session.open(policy) as session:
        yield session


def asked(session: Session, *statements: str) -> None:
    for sql in statements:
        session.execute(sql)


def rows(model: Model, path: Path, sql: str) -> list[tuple[Any, ...]]:
    write(model, "student", path)
    with duckdb.connect() as connection:
        return connection.execute(sql.format(path)).fetchall()


def check_counts(session: Session, folder: Path) -> None:
    """Hold that the file has the counts of what was asked, within rounding and what was below 0."""
    asked(session, *_PAIRS)
    model = synthesize(session, "student")
    assert model.names == ("major", "abroad", "year", "born")
    assert (model.tables, model.left_out) == (3, ())
    assert model.off <= MOST_OFF
    spent = session.budget().epsilon_spent_nano
    for number, (sql, keys) in enumerate(
        zip(_PAIRS, ("major, abroad", "year, abroad", "born, major"), strict=True)
    ):
        told = {tuple(row[:-1]): row[-1] for row in session.execute(sql).rows}
        path = folder / f"{number}.parquet"
        counts = rows(model, path, f"SELECT {keys}, count(*) FROM '{{}}' GROUP BY ALL")
        made = {tuple(row[:-1]): row[-1] for row in counts}
        assert all(abs(made.get(key, 0) - count) <= MOST_OFF for key, count in told.items()), (made, told)
    assert session.budget().epsilon_spent_nano == spent


def test_it_has_the_stored_counts_and_is_free(school: Session, tmp_path: Path) -> None:
    check_counts(school, tmp_path)


def test_columns_are_chosen_and_a_file_of_text_is_written(school: Session, tmp_path: Path) -> None:
    asked(school, *_PAIRS)
    model = synthesize(school, "student", ["major", "abroad"])
    assert model.names == ("major", "abroad")
    found = rows(model, tmp_path / "small.csv", "SELECT DISTINCT major, abroad FROM '{}' ORDER BY ALL")
    assert ("CS", False) in found


def test_what_it_fits_to_has_no_less_than_the_whole_says(school: Session) -> None:
    """A table of three columns that was never asked for is what chance makes of its pairs."""
    asked(school, *_PAIRS[:2])
    model = synthesize(school, "student")
    table = model.counts.reshape([len(one) for one in model.values])
    assert table.min() >= 0
    pairs = table.sum(axis=2)
    years = table.sum(axis=0)
    expected = pairs[:, :, None] * years[None, :, :] / np.maximum(1, pairs.sum(axis=0))[None, :, None]
    assert np.abs(table - expected).max() <= 3


@pytest.mark.parametrize(
    ("table", "columns", "error", "said"),
    [
        ("teacher", (), PolicyError, 'no table "teacher"'),
        ("model.student", (), PolicyError, "public"),
        ("student", ("shoe",), PolicyError, 'no column "shoe"'),
        ("student", (), Refusal, "are stored"),
        ("student", ("city",), Refusal, "that read city alone"),
    ],
)
def test_what_cannot_be_made(
    school: Session, table: str, columns: tuple[str, ...], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        synthesize(school, table, columns)


def test_too_many_cells(school: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(school, *_PAIRS)
    monkeypatch.setattr(synthesis, "MOST_CELLS", 200)
    with pytest.raises(Refusal, match=r"288 cells.*born 12") as refused:
        synthesize(school, "student")
    assert refused.value.sqlstate == "54001"


def test_a_model_is_told_apart_and_counts_no_people(school: Session) -> None:
    answer = school.execute("SELECT major, COUNT(*) FROM model.student GROUP BY major")
    assert answer.receipt is not None
    assert answer.receipt.notes == ('model, no bar: from the tables of edition 18 of "student"',)
    assert answer.receipt.epsilon == 0
    with pytest.raises(Refusal, match="id"):
        school.execute("SELECT COUNT(DISTINCT id) FROM model.student")
    school.execute("SET dpsql.intervals = 0.95")
    barred = school.execute("SELECT COUNT(*) AS n FROM model.student")
    assert [column.name for column in barred.columns] == ["n"]


def test_it_is_no_observation(school: Session, tmp_path: Path) -> None:
    asked(school, *_PAIRS[:1])
    before = school.execute("SELECT major, COUNT(*) FROM student GROUP BY major").rows
    model = synthesize(school, "student")
    rows(replace(model, counts=model.counts * 3), tmp_path / "wrong.parquet", "SELECT 1 FROM '{}' LIMIT 1")
    school.execute("SELECT major, COUNT(*) FROM model.student GROUP BY major")
    assert school.execute("SELECT major, COUNT(*) FROM student GROUP BY major").rows == before


def test_forget_a_table(school: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, synthesis._fit, ("for sums, numbers in wanted:", "for sums, numbers in wanted[1:]:"))
    with pytest.raises(AssertionError):
        check_counts(school, tmp_path)
