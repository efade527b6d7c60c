"""What sqlglot's parser reads otherwise than Postgres, or not at all: the values are Postgres'."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg
import pytest

from dpsql.system_catalog import CatalogRefusal, Reads, SystemCatalog, system_catalog
from dpsql.system_catalog.parse import parse

from .dataset import FACTS, campus, open_catalog

_HEAP = "FROM pg_am WHERE amname = 'heap'"


_VALUES = [
    ("SELECT amname OPERATOR(pg_catalog.~) '^h' COLLATE pg_catalog.default", True),
    ("SELECT amname OPERATOR ( pg_catalog.!~~ ) 'h%'", False),
    ("SELECT amname !~ ALL (ARRAY['x', 'y'])", True),
    ("SELECT amname !~ ANY (ARRAY['h', 'y'])", True),
    ("SELECT amname NOT LIKE ALL (ARRAY['h%', 'y'])", False),
    ("SELECT amname LIKE SOME (ARRAY['h%', 'y'])", True),
    ("SELECT 'pg_catalog' = ANY (current_schemas(true))", True),
    ("SELECT NOT amname IN ('btree') AND 1 = 1", True),
    ("SELECT 1=-1 OR 2>=+1", True),
    ("SELECT 2*-1 - -3", 1),
    ("SELECT 2 ^ 3 ^ 2", 64.0),
    ("SELECT 7 / 2 * 2", 6),
    ("SELECT 1 + 2 || 'a'", "3a"),
    ("SELECT amname LIKE 'he' || '%'", True),
    ("SELECT ('{5,6}'::int2[])[1]", 5),
    ("SELECT (SELECT indkey FROM pg_index ORDER BY indexrelid LIMIT 1)[1 - 1] >= 0", True),
    ("SELECT ('{5,6}'::oid[3])[2]", 6),
    ("SELECT array_to_string(ARRAY(SELECT 1 UNION SELECT 2 ORDER BY 1), '+')", "1+2"),
    ("SELECT 'pg_class'::regclass::oid", 1259),
    ("SELECT CAST('1259' AS pg_catalog.regclass)::pg_catalog.text", "pg_class"),
    ("SELECT 'abc'::\"char\"::text", "a"),
    ("SELECT 'abc'::character varying(2)", "ab"),
    ("SELECT E'a\\nb\\'\\\\' || 'c'", "a\nb'\\c"),
    ("SELECT $$it's$$ || $x$ $$ $x$", "it's $$ "),
    ("SELECT /* a /* b */ c */ 'd' -- e", "d"),
    ("SELECT extract(day FROM date '2024-01-05'::timestamptz)::int4", 5),
    ("SELECT position('b' IN 'abc') + position(trim(both 'x' from 'xbx') IN 'abc')", 4),
    ("SELECT substring('abcd' FROM 'b(.)')", "c"),
    ("SELECT substring('abcd' FROM 2 FOR 2) || substring('abcd' FOR 1)", "bca"),
    ("SELECT CASE amname WHEN 'heap' THEN NULL ELSE 'x' END", None),
    ("SELECT (ROW(1, 'a') = ROW(1, 'a')) IS NOT FALSE", True),
    ("SELECT NOT (1 = 2) IS TRUE", True),
    ("SELECT null IS UNKNOWN", True),
    ("SELECT date '2024-03-01' - date '2024-02-01'", 29),
    ("SELECT date '2024-02-28' + interval '2 days'", datetime(2024, 3, 1)),
    ("SELECT interval '1 day' + '2 hours' = interval '26 hours'", True),
    ("SELECT array_append('1 2'::int2vector, 3::int2) || 4::int2", [1, 2, 3, 4]),
    ("SELECT array_remove(ARRAY[1, 2, NULL], NULL)", [1, 2]),
    ("SELECT array(SELECT generate_subscripts(ARRAY['a', 'b'], 1, true))", [2, 1]),
    ("SELECT array_lower('1 2'::int2vector, 1) + array_upper('1 2'::int2vector, 1)", 1),
    ("SELECT coalesce(nullif(amname, 'heap'), 'x') || concat_ws('-', 1, NULL, 'b')", "x1-b"),
    ("SELECT count(*) FILTER (WHERE true) OVER (PARTITION BY amname ORDER BY oid)", 1),
]


@pytest.mark.parametrize(("sql", "value"), _VALUES)
def test_a_form_means_what_it_means_to_postgres(catalog: SystemCatalog, sql: str, value: object) -> None:
    assert catalog.run(f"{sql}\n{_HEAP}", FACTS)[1] == [(value,)]


_COLUMNS = [
    ("AmName", "amname"), ('amname AS "AmName"', "AmName"), ("amname AS select", "select"), ("1 + 1", "?column?"),
    ("oid::text", "oid"), ("1::int4", "int4"), ("'t'::boolean", "bool"), ("'a'::character varying", "varchar"),
    ("CASE WHEN true THEN 1 END", "case"), ("CASE WHEN true THEN 1 ELSE oid END", "oid"), ("(oid)", "oid"),
    ("pg_catalog.upper('a')", "upper"), ("COALESCE(1, 2)", "coalesce"), ("count(*) OVER ()", "count"),
    ("current_catalog", "current_catalog"), ("current_user::text", "current_user"), ("trim(' a')", "btrim"),
    ("EXISTS (SELECT 1)", "exists"), ("ARRAY(SELECT 1)", "array"), ("ARRAY[1]", "array"), ("(SELECT oid)", "oid"),
    ("('{1}'::oid[])[1]", "oid"), ("left('ab', 1)", "left"), ("extract(day FROM now())", "extract"),
    ("date '2024-01-01'", "date"), ("amname ~ 'a'", "?column?"), ("'a'::char", "bpchar"),
    ("'2024-01-01'::timestamp without time zone", "timestamp"), ("boolean 't'", "bool"), ("NOT true", "?column?"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "name"), _COLUMNS)
def test_a_column_without_an_alias_has_postgres_name(catalog: SystemCatalog, column: str, name: str) -> None:
    assert catalog.describe(f"SELECT {column} {_HEAP}", FACTS)[0][0].name == name


def test_the_values_and_the_names_are_those_of_a_postgres(postgres: psycopg.Connection[Any]) -> None:
    values = [postgres.execute(f"{sql}\n{_HEAP}".encode()).fetchall() for sql, _ in _VALUES]
    assert values == [[(value,)] for _, value in _VALUES]
    found = [postgres.execute(f"SELECT {column} {_HEAP}".encode()).description for column, _ in _COLUMNS]
    assert [columns and columns[0].name for columns in found] == [name for _, name in _COLUMNS]


@pytest.mark.parametrize(
    "name", ["name", "date", "type", "format", "replace", "if", "semi", "time", "first", "called x"]
)
def test_a_name_is_no_word_of_another_dialect(catalog: SystemCatalog, name: str) -> None:
    written = f'"{name}"' if " " in name else name
    sql = f"SELECT {written}, x.{written} FROM (SELECT 1::oid AS {written}) AS x, pg_am LIMIT 1"
    columns, rows = catalog.run(sql, FACTS)
    assert ([column.name for column in columns], rows) == ([name, name], [(1, 1)])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT oid, FROM pg_am", "SELECT , oid FROM pg_am", "SELECT oid FROM pg_am,", "SELECT upper(,) FROM pg_am", "SELECT oid AS 'x' FROM pg_am", "SELECT oid FROM pg_am 'x'",
        "SELECT oid AS , amname FROM pg_am",
        "SELECT oid BETWEEN SYMMETRIC 2 AND 1 FROM pg_am", "SELECT [1] FROM pg_am", "SELECT oid FROM pg_am LIMIT 1, 2", "SELECT 1a FROM pg_am",
        "SELECT oid FROM pg_am JOIN pg_class", "SELECT oid FROM pg_am GROUP", "SELECT 'a' 'b' FROM pg_am",
        "SELECT n'a' FROM pg_am", "SELECT x'1f' FROM pg_am", "SELECT {x} FROM pg_am", "SELECT upper(a => 'x') FROM pg_am",
        "SELECT * EXCLUDE (oid) FROM pg_am", "SELECT oid FROM pg_am QUALIFY true", "SELECT oid FROM pg_am FOR SHARE",
        "SELECT oid FROM pg_am LEFT SEMI JOIN pg_class ON true", "SELECT public.upper('a') FROM pg_am",
        "SELECT try_cast(oid AS text) FROM pg_am", "SELECT oid FROM pg_am TABLESAMPLE SYSTEM (1)",
        "SELECT oid INTO x FROM pg_am", "SELECT lag(oid) OVER (ORDER BY oid) FROM pg_am",
        "SELECT sum(oid) OVER (ROWS 1 PRECEDING) FROM pg_am", "SELECT oid FROM pg_am FETCH FIRST 1 ROW WITH TIES",
        "SELECT current_schemas(true, 1) FROM pg_am", "SELECT array_upper(1, 1) FROM pg_am", "SELECT 'a' + 'b' FROM pg_am",
        "SELECT oid FROM pg_am; SELECT 1", "SELECT $0 FROM pg_am", "SELECT 1::nosuch FROM pg_am",
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused(catalog: SystemCatalog, sql: str) -> None:
    with pytest.raises(CatalogRefusal) as refused:
        catalog.run(sql, FACTS)
    assert refused.value.sqlstate == "0A000"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT 1 FROM pg_class WHERE oid IN ({'1, ' * 10_000}1)",
        f"SELECT {'+' * 60_000}1 FROM pg_class",
        f"SELECT {'(' * 30_000}1 FROM pg_class",
        f"SELECT {'1 ~ ' * 100}1 FROM pg_class",
        f"SELECT 1 FROM pg_class {'UNION SELECT 1 ' * 100}",
        f"SELECT 1 FROM pg_class WHERE {'oid = 1 OR ' * 2_000}true",
        f"SELECT 'x' FROM pg_class{' ' * 70_000}",
    ],
)
def test_a_statement_that_is_too_large_is_refused_by_its_size(catalog: SystemCatalog, sql: str) -> None:
    with pytest.raises(CatalogRefusal) as refused:
        catalog.run(sql, FACTS)
    assert refused.value.sqlstate == "54001"


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM pg_catalog..pg_class", "SELECT * FROM pg_am AS", "TABLE pg_am.", "SELECT"]
)
def test_whose_a_broken_statement_is_can_be_told(catalog: SystemCatalog, sql: str) -> None:
    assert catalog.reads(sql) in Reads


def test_long_lists_are_read(catalog: SystemCatalog) -> None:
    sql = (
        f"SELECT count(*) FROM pg_am WHERE oid IN ({'1, ' * 2_000}2) OR {'oid = 1 OR ' * 120}amname = 'heap'"
    )
    assert catalog.run(sql, FACTS)[1] == [(1,)]


def test_a_statement_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(system_catalog, "parse", lambda sql: (parsed.append(sql), parse(sql))[1])
    opened = open_catalog(campus())
    sql = "SELECT oid FROM pg_am WHERE amname = 'heap'"
    assert opened.reads(sql) is Reads.CATALOG
    opened.describe(sql, FACTS)
    opened.run(sql, FACTS)
    opened.describe(sql, FACTS, (23,))
    assert parsed == [sql]
    assert opened.reads("SELECT COUNT(*) FROM student") is Reads.OTHER
    assert parsed == [sql]
    opened.close()
