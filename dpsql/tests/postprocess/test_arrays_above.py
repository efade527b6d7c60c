"""Arrays above the release: joined, contained and constant ones, as a real Postgres has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from dpsql.engine import Session
from dpsql.errors import Refusal

from .test_forms_above import oracle, postgres, session, shown, start_postgres

__all__ = ["oracle", "postgres", "session", "start_postgres"]

STATEMENTS = tuple((Path(__file__).parent / "arrays_above.sql").read_text().splitlines())


@pytest.mark.parametrize("sql", STATEMENTS)
def test_postgres_has_the_same(
    session: Session, oracle: psycopg.Connection[tuple[Any, ...]], sql: str
) -> None:
    answer, cursor = session.execute(sql), oracle.execute(sql.encode())
    assert shown(answer.rows, ordered=True) == shown(cursor.fetchall(), ordered=True)
    assert [column.name for column in answer.columns] == [column.name for column in cursor.description or ()]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT ARRAY[1] || 'x'::text", "42883"),
        ("SELECT ARRAY['a'] || 'b'", "PV202"),
        ("SELECT ARRAY[1] <@ ARRAY['a']", "42883"),
        ("SELECT name::int[] FROM t", "0A000"),
        ("SELECT ARRAY[ARRAY[1]]", "42804"),
        ("SELECT '{{1}}'::int[]", "PV202"),
        ("SELECT '{a}'::int[]", "22023"),
        ("SELECT count(*) FROM student WHERE '{1}'::int[] || 1 IS NULL", "PV202"),
    ],
)
def test_what_is_no_array_is_refused(session: Session, sql: str, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute(sql)
    assert refused.value.sqlstate == code


def test_no_array_grows_without_end(session: Session) -> None:
    steps = "".join(f", s{i} AS (SELECT q || q AS q FROM s{i - 1})" for i in range(1, 30))
    sql = f"WITH s0 AS (SELECT array_agg(n) AS q FROM t){steps} SELECT cardinality(q) FROM s29"
    assert session.execute(sql).rows == [(None,)]
