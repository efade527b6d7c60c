"""A refusal speaks in the statement's own words: never in those of the parser, for cases and for odd syntax."""

from __future__ import annotations

import random
import re

import pytest
from datasets import DataSets
from sqlglot import exp

from dpsql.errors import Refusal
from dpsql.sql.text import _SAID
from dpsql.testing.case_file import Case, Refused

_KINDS = {
    kind.key.upper() for kind in vars(exp).values() if isinstance(kind, type) and issubclass(kind, exp.Expr)
}
_INTERNAL = _KINDS | {"THIS", "EXPRESSION", "EXPRESSIONS", "KIND", "NONE", "ARGS"}
_IN_WORDS = ("anonymous", '"this"', "expression()", "exp.", "object at", "Error(")
_OF_OURS = {"SELECT", "FROM", "WHERE", "GROUP", "IN", "EXISTS", "ALL", "UNION"} | {
    word for said in _SAID.values() for word in re.findall("[A-Z]+", said)
}

_ODD = (
    "FROM duckdb_settings()", "FROM pragma_table_info('patient')", "FROM duckdb_tables() AS t", "FROM range(5)",
    "FROM repeat('x', 3) AS r", "FROM patient.*", "FROM glob('*')", "FROM my_function(1, 2) AS f(a, b)",
    "FROM pg_ls_dir('.')", "FROM unnest(ARRAY[1, 2]) AS u", "FROM 'patient.csv'", "FROM patient PIVOT (COUNT(*) FOR sex IN ('F'))",
    "FROM patient WHERE name ~* 'a'", "FROM patient WHERE name -> 'a' = 'b'", "FROM patient WHERE name ->> 'a' = 'b'",
    "FROM patient WHERE name #>> '{a}' = 'b'", "FROM patient WHERE ARRAY[age] @> ARRAY[1]", "FROM patient WHERE age = ANY (ARRAY[1])",
    "FROM patient WHERE age = ALL (SELECT 1)", "FROM patient WHERE age::text::bytea = 'x'", "FROM patient WHERE name[1] = 'A'",
    "FROM patient WHERE name[1:2] = 'A'", "FROM patient WHERE (age, sex) = (1, 'F')", "FROM patient WHERE age & 1 = 0",
    "FROM patient WHERE age | 1 = 0", "FROM patient WHERE age # 1 = 0", "FROM patient WHERE ~age = 0", "FROM patient WHERE age << 1 = 0",
    "FROM patient WHERE age ^ 2 = 4", "FROM patient WHERE |/ age = 2", "FROM patient WHERE @ age = 2", "FROM patient WHERE age !~ 'a'",
    "FROM patient WHERE name COLLATE \"C\" = 'a'", "FROM patient WHERE born AT TIME ZONE 'UTC' > born", "FROM patient WHERE born - INTERVAL '1' YEAR TO MONTH > born",
    "FROM patient WHERE age IS DISTINCT FROM ALL (1)", "FROM patient WHERE name IS JSON", "FROM patient WHERE name IS NORMALIZED",
    "FROM patient WHERE overlay(name placing 'x' from 1) = 'x'", "FROM patient WHERE {fn ucase(name)} = 'A'", "FROM patient WHERE age = :age",
    "FROM patient WHERE age = ?", "FROM patient WHERE age = @age", "FROM patient WHERE age = %s", "FROM patient WHERE x'1F' = age",
    "FROM patient WHERE CAST(age AS int[]) = 1", "FROM patient WHERE strftime(born, '%Y') = '1990'", "FROM patient WHERE regexp_like(name, 'a')",
    "FROM patient WHERE string_to_array(name, ' ') IS NULL", "FROM patient WHERE json_extract(name, '$.a') = 1", "FROM patient WHERE list_contains([1], age)",
    "FROM patient WHERE name SIMILAR TO 'a'", "FROM patient WHERE list_filter([1], x -> x > 1) IS NULL", "FROM patient WHERE f(a => 1) = 1",
    "FROM patient, LATERAL (SELECT age) AS l", "FROM patient ASOF JOIN visit ON id = patient_id", "FROM patient POSITIONAL JOIN visit",
    "FROM patient FOR UPDATE", "FROM patient USING SAMPLE 5", "FROM patient TABLESAMPLE SYSTEM (5)", "FROM patient WINDOW w AS ()",
    "FROM patient GROUP BY ALL", "FROM patient GROUP BY DISTINCT sex", "FROM patient ORDER BY 1 USING <", "FROM patient FETCH FIRST 1 ROW WITH TIES",
    "FROM patient LIMIT 10 PERCENT", "FROM patient QUALIFY 1 = 1", "FROM patient MATCH_RECOGNIZE (PATTERN (a))", "FROM patient AS p (a, b) WHERE a::regclass = 1",
    "FROM patient WHERE EXTRACT(ISOYEAR FROM born) = 1", "FROM patient WHERE date_bin('1 day', seen, seen) = seen", "FROM patient WHERE make_date(1, 2, 3) = born",
    "FROM patient WHERE width_bucket(age, 0, 10, 5) = 1", "FROM patient WHERE gen_random_uuid() = 'x'", "FROM patient WHERE random() < 0.5",
    "FROM patient WHERE xmlelement(name foo) IS NULL", "FROM patient WHERE age BETWEEN SYMMETRIC 5 AND 2", "FROM patient WHERE CURRENT_CATALOG = name",
    "FROM patient WHERE TRY_CAST(name AS int) = 1", "FROM patient WHERE name LIKE ANY (ARRAY['a'])", "FROM patient WHERE U&'a' = name",
)  # fmt: skip
_HEADS = (
    "SELECT COUNT(*) ",
    "SELECT age, MAX(age) ",
    "SELECT * ",
    "SELECT SUM(age) OVER () ",
    "SELECT string_agg(name, ',') ",
)


def _check(message: str, sql: str) -> None:
    said = message if "supported" in message else ""  # where it names a piece of syntax
    for word in re.findall(r"\b[A-Z]{3,}\b", said):
        known = word in _OF_OURS or re.search(rf"(?i)\b{word}\b", sql) is not None
        assert known or word not in _INTERNAL, (message, sql)
    for word in _IN_WORDS:
        assert word not in message or word in sql.lower(), (message, sql)


def test_refused_cases_speak_of_the_statement(every_case: list[Case]) -> None:
    for case in every_case:
        if isinstance(case.expected, Refused) and case.expected.message:
            _check(case.expected.message, case.sql)


@pytest.mark.parametrize("tail", _ODD)
def test_odd_syntax_is_refused_in_its_own_words(data: DataSets, tail: str) -> None:
    session, _ = data.refusing("clinic", "local")
    for head in _HEADS:
        try:
            session.explain(head + tail)
        except Refusal as refusal:
            _check(refusal.message, head + tail)


def test_pieces_put_together_at_random(data: DataSets) -> None:
    session, _ = data.refusing("clinic", "local")
    pick = random.Random(5)
    pieces = [
        piece
        for tail in _ODD
        for piece in tail.removeprefix("FROM patient").split(" WHERE ")
        if piece.strip()
    ]
    for _ in range(1500):
        sql = f"{pick.choice(_HEADS)}FROM patient WHERE {pick.choice(pieces)} {pick.choice(('AND', 'OR', ',', '+', ''))} {pick.choice(pieces)}"
        try:
            session.explain(sql)
        except Refusal as refusal:
            _check(refusal.message, sql)


def test_a_function_in_from_is_named(data: DataSets) -> None:
    session, _ = data.refusing("clinic", "local")
    with pytest.raises(Refusal) as refused:
        session.explain("SELECT COUNT(*) FROM duckdb_settings()")
    assert (refused.value.sqlstate, refused.value.message) == (
        "42P01",
        "duckdb_settings() does not exist as a table",
    )
