"""Each question is one that a Postgres without dpsql answers, with keys that tell its rows apart."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

from dpsql.tests.support.length import first
from dpsql.tests.support.postgres_server import PostgresServer

from .data_sets import DATA_SETS, OF_TWO, fill_postgres, read_questions
from .rows import ROWS


@pytest.mark.parametrize("data_set", DATA_SETS)
def test_postgres_answers_each(postgres: PostgresServer, data_set: str) -> None:
    questions = read_questions(data_set)
    many = OF_TWO.get(data_set, 21)
    assert [question.name for question in questions] == [f"{data_set} {n:02d}" for n in range(1, many + 1)]
    levels = Counter(question.level for question in questions)
    assert min(levels[level] for level in ("simple", "medium", "hard")) >= (1 if data_set in OF_TWO else 6)
    with postgres.admin(postgres.create_database()) as connection:
        fill_postgres(connection, data_set, ROWS[data_set]())
        for question in questions:
            rows = psycopg.RawCursor(connection).execute(question.sql.encode()).fetchall()
            assert rows, question.name
            keys = [tuple(row[key] for key in question.keys) for row in rows]
            assert not question.keys or len(set(keys)) == len(keys), question.name


@pytest.mark.parametrize("data_set", first(3, DATA_SETS))
def test_rows_are_the_same_each_time(data_set: str) -> None:
    assert ROWS[data_set]() == ROWS[data_set]()
