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

_FOLLOWED = (
    # what is asked of each row, a piece of the hint, and what it makes of it
    ("CAST(name AS numeric(10, 2)) > 0", "CAST(x AS numeric)", "CAST(name AS numeric) > 0"),
    ("left(name, age) = 'A'", "left(x, 3)", "CASE age WHEN 1 THEN left(name, 1) ELSE left(name, 2) END = 'A'"),
    ("right(name, -1) = 'A'", "right(x, 3)", "right(name, 3) = 'A'"),
    ("substr(name, 1, age) = 'A'", "substring(x FROM 1 FOR 3)", "substring(name FROM 1 FOR 3) = 'A'"),
    ("age ^ 0.5 > 3", "exp(y * ln(x))", "age BETWEEN 1 AND 99 AND exp(0.5 * ln(age)) > 3"),
    ("starts_with(name, city)", "left(x, 2) = 'ab'", "left(name, 2) = 'ab' OR name LIKE 'ab%'"),
    ("lpad(name, 5, city) = 'y'", "lpad(x, 5, '0')", "lpad(name, 5, '0') = 'y'"),
    ("rpad(name, 5000, ' ') = 'y'", "rpad(x, 5, '0')", "rpad(name, 100, ' ') = 'y'"),
    ("ascii(name) = 97", "left(x, 1) = 'a'", "left(name, 1) = 'a'"),
    ("octet_length(name) > 3", "length(x)", "length(name) > 3"),
    ("trim(BOTH 'x' FROM name) = 'y'", "regexp_replace(x, '^[ab]+', '')",
     "regexp_replace(regexp_replace(name, '^[x]+', ''), '[x]+$', '') = 'y'"),
    ("translate(name, 'ab', 'xy') = 'y'", "replace(x, 'a', 'x')", "replace(replace(name, 'a', 'x'), 'b', 'y') = 'y'"),
    ("overlay(name PLACING 'x' FROM 2) = 'y'", "left(x, 1) || 'y' || substring(x FROM 3)",
     "left(name, 1) || 'x' || substring(name FROM 3) = 'y'"),
    ("concat_ws(city, name, city) = 'y'", "x || ', ' || y", "name || ', ' || coalesce(city, '') = 'y'"),
    ("format('%s of %s', name, city) = 'y'", "x || ' of ' || y", "name || ' of ' || city = 'y'"),
    ("num_nulls(name, age) > 0", "(CASE WHEN x IS NULL THEN 1 ELSE 0 END)",
     "(CASE WHEN name IS NULL THEN 1 ELSE 0 END) + (CASE WHEN age IS NULL THEN 1 ELSE 0 END) > 0"),
    ("age & 4 = 4", "x / 4 % 2 = 1", "age / 4 % 2 = 1"),
    ("log(2, age + 1) > 2", "ln(x) / ln(2)", "ln(age + 1) / ln(2) > 2"),
    ("log10(age + 1) > 2", "log(x)", "log(age + 1) > 2"),
    ("div(age, 10) > 2", "trunc(x / y)", "age / 10 > 2 AND trunc(age / 10.0) > 2"),
    ("degrees(age) > 2", "x * 57.29577951308232", "age * 57.29577951308232 > 2"),
    ("radians(age) > 2", "x * 0.017453292519943295", "age * 0.017453292519943295 > 2"),
    ("age > pi()", "3.141592653589793", "age > 3.141592653589793"),
    ("(born, born) OVERLAPS (born, born)", "x < w AND z < y", "born < admitted"),
    ("born + age * INTERVAL '1 day' < born", "x + n of whole days",
     "born BETWEEN '1900-01-01' AND '2020-01-01' AND born + age < DATE '2020-01-01'"),
    ("extract(day FROM age(born)) > 2", "extract(epoch FROM x - y) / 86400",
     "extract(epoch FROM TIMESTAMP '2024-01-01' - born) / 86400 > 2"),
    ("isfinite(born)", "x BETWEEN DATE '0001-01-01'", "born BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"),
    ("CAST(bmi AS integer) = 20", "filter with bmi BETWEEN", "bmi BETWEEN 0 AND 99 AND CAST(bmi AS integer) = 20"),
)  # fmt: skip


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


@pytest.mark.parametrize(("asked", "hint", "followed"), _FOLLOWED, ids=[asked for asked, _, _ in _FOLLOWED])
def test_what_a_hint_says_is_answered(data: DataSets, asked: str, hint: str, followed: str) -> None:
    session, _ = data.refusing("clinic", "local")
    with pytest.raises(Refusal) as refused:
        session.explain(f"SELECT COUNT(*) FROM patient WHERE {asked}")
    assert refused.value.hint is not None
    assert hint in refused.value.hint
    session.explain(f"SELECT COUNT(*) FROM patient WHERE {followed}")


def test_what_is_for_released_rows_is_used_on_groups(data: DataSets) -> None:
    session, _ = data.refusing("clinic", "local")
    for asked, followed in (
        ("AVG(tan(age))", "SUM(tan(age) * n) / SUM(n)"),
        ("SUM(DISTINCT age)", "SUM(age)"),
    ):
        with pytest.raises(Refusal, match=r"cannot be used on private rows|is not answered") as refused:
            session.explain(f"SELECT {asked} FROM patient")
        assert "SELECT x, COUNT(*) AS n FROM … GROUP BY x" in (refused.value.hint or "")
        grouped = "(SELECT age, COUNT(*) AS n FROM patient GROUP BY age) AS t WHERE n >= 1"
        session.explain(f"SELECT {followed} FROM {grouped}")
