"""JSON above the release: a real Postgres' texts, letter for letter, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.string import TextLoader

from dpsql.engine import Session
from dpsql.errors import Refusal

from .test_forms_above import oracle, postgres, session, shown, start_postgres

__all__ = ["oracle", "postgres", "session", "start_postgres"]

STATEMENTS = tuple((Path(__file__).parent / "json_above.sql").read_text().splitlines())


@pytest.mark.parametrize("sql", STATEMENTS)
def test_postgres_writes_the_same(
    session: Session, oracle: psycopg.Connection[tuple[Any, ...]], sql: str
) -> None:
    for name in ("json", "jsonb"):
        oracle.adapters.register_loader(name, TextLoader)
    answer, cursor = session.execute(sql), oracle.execute(sql.encode())
    ordered = "ORDER BY" in sql.rpartition(")")[2]
    assert shown(answer.rows, ordered=ordered) == shown(cursor.fetchall(), ordered=ordered)
    assert [column.name for column in answer.columns] == [column.name for column in cursor.description or ()]
    oids = {"json": 114, "jsonb": 3802, "text": 25, "json[]": 199, "jsonb[]": 3807}
    for column, described in zip(answer.columns, cursor.description or (), strict=True):
        assert oids.get(str(column.type), described.type_code) == described.type_code


REFUSED = (
    ("SELECT json_agg(gpa) FROM student", "PV001"),
    ("SELECT to_json(major) FROM student", "PV202"),
    ("SELECT count(*) FROM student WHERE '{}'::json IS NULL", "PV202"),
    ("SELECT count(*) FROM student WHERE to_jsonb(gpa) ->> 'a' = 'b'", "PV202"),
    ("SELECT to_json(n) FROM t ORDER BY 1", "42883"),
    ("SELECT count(*) FROM t GROUP BY to_jsonb(n)", "42883"),
    ("SELECT to_json(n) = to_json(id) FROM t", "42883"),
    ("SELECT DISTINCT to_jsonb(n) FROM t", "42883"),
    ("SELECT to_jsonb(n) FROM t UNION SELECT to_jsonb(id) FROM t", "42883"),
    ("SELECT (SELECT to_jsonb(n) AS j FROM t ORDER BY j LIMIT 1)", "42883"),
    ("SELECT json_agg(DISTINCT to_json(n)) FROM t", "42883"),
    ("SELECT array_agg(DISTINCT to_json(n)) FROM t", "42883"),
    ("SELECT max(to_json(n)) FROM t", "42883"),
    ("SELECT count(DISTINCT to_json(n)) FROM t", "42883"),
    ("SELECT row_number() OVER (ORDER BY to_json(n)) FROM t", "42883"),
    ("SELECT greatest(to_json(n), to_json(id)) FROM t", "42883"),
    ("SELECT row_to_json(e) FROM t LEFT JOIN emp e ON e.id = t.n", "0A000"),
    ("SELECT json_agg(e) FROM emp e RIGHT JOIN t ON e.id = t.n", "0A000"),
    ("SELECT '{a}'::json", "22023"),
    ("SELECT '[NaN]'::jsonb", "22023"),
    ("SELECT '\"\\u0000\"'::jsonb", "22023"),
    ("SELECT '1e9999'::jsonb", "22023"),
    (f"SELECT '{'[' * 200}{']' * 200}'::json", "54001"),
    ("SELECT name::json FROM t", "0A000"),
    ("SELECT to_jsonb(to_json(n)) FROM t", "0A000"),
    ("SELECT jsonb_build_object(name, 1) FROM t", "0A000"),
    ("SELECT json_build_object('a') FROM t", "22023"),
    ("SELECT json_build_object(NULL, 1)", "22023"),
    ("SELECT row_to_json(1)", "42883"),
    ("SELECT n -> 'a' FROM t", "42883"),
    ("SELECT to_json(n)::int FROM t", "42804"),
    ("SELECT to_json(n) #> ARRAY[name] FROM t", "PV202"),
    ("SELECT json_typeof(to_jsonb(n)) FROM t", "42883"),
    ("SELECT * FROM jsonb_array_elements('[1]'::json)", "42883"),
    ("SELECT json_each('{\"a\": 1}')", "0A000"),
    ("SELECT upper(json_object_keys('{\"a\": 1}')) FROM t", "0A000"),
    ("SELECT count(*) FROM student, json_array_elements(to_json(ARRAY[major])) e", "PV004"),
    ("SELECT json_object_keys(to_json(ARRAY[major])), count(*) FROM student GROUP BY 1", "PV003"),
    ("SELECT to_json(age(ts)) FROM t", "0A000"),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "code"), REFUSED)
def test_what_json_has_no_one_meaning_for_is_refused_and_free(session: Session, sql: str, code: str) -> None:
    before = session.budget().epsilon_spent_nano
    with pytest.raises(Refusal) as refused:
        session.execute(sql)
    assert refused.value.sqlstate == code
    assert refused.value.hint
    assert session.budget().epsilon_spent_nano == before


def test_no_text_of_json_grows_without_end(session: Session) -> None:
    """Each step is twice as long; beyond the limit of joined texts there is NULL."""
    steps = "".join(f", s{i} AS (SELECT json_build_array(j, j) AS j FROM s{i - 1})" for i in range(1, 30))
    rows = session.execute(
        f"WITH s0 AS (SELECT to_json(repeat('x', 5000)) AS j){steps} SELECT j FROM s29"
    ).rows
    assert rows == [(None,)] or len(rows[0][0]) < 2_000_000


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("json_agh(n)", "json_agg"),
        ("jsonb_object_ag(n, n)", "jsonb_object_agg"),
        ("json_build_objekt('a', n)", "json_build_object"),
        ("array_aggg(n)", "array_agg"),
        ("string_ag(name, ',')", "string_agg"),
        ("bool_ands(b)", "bool_and"),
    ],
)
def test_a_name_near_an_aggregates_is_told(session: Session, written: str, meant: str) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute(f"SELECT {written} FROM t")
    assert refused.value.sqlstate == "42883"
    assert f"did you mean {meant}()?" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "written",
    ["json_extract('{}'::json, '$.a')", "json_extract_path('{}'::json, 'a')", "jsonb_extract_path_text('{}', 'a')",
     "jsonb_extract('{}'::jsonb, '{a}')", "parse_json('{}')", "json_extract_scalar('{}'::json, '$.a')"],
)  # fmt: skip
def test_no_other_spelling_becomes_an_operator(session: Session, written: str) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute(f"SELECT {written}")
    assert refused.value.sqlstate == "42883"
