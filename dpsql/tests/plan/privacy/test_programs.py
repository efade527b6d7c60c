"""The parts of people's texts, asked of the texts: as Postgres' own arrays answer, on both engines (soundness.md 1.11)."""

from __future__ import annotations

import random

import duckdb
import pytest

from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.dialects import dialect_of
from dpsql.plan.privacy.programs import asked_of_texts
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Call, Expr, Field, Literal
from dpsql.relation.facts import ONE
from dpsql.relation.intervals import Environment, facts_of
from dpsql.relation.types import BOOLEAN, INTEGER, TEXT, array_of
from dpsql.tests.plan.planned import printed
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.postgres_server import PostgresServer

TEXTS = array_of(TEXT)
X = Field(TEXT, 0, "x")


def _parts(by: str, function: str = "string_to_array") -> Call:
    return Call(TEXTS, function, (X, Literal(TEXT, by)))


def _array(*values: str) -> Call:
    return Call(TEXTS, "array", tuple(Literal(TEXT, value) for value in values))


def _length(parts: Expr) -> Call:
    return Call(INTEGER, "array_length", (parts, Literal(INTEGER, 1)))


def _has(by: str, value: str) -> Call:
    return Call(BOOLEAN, "array_has", (_parts(by), Literal(TEXT, value)))


ASKED = (
    (_length(_parts(",")), "array_length(string_to_array(x, ','), 1)"),
    (_length(_parts("ab")), "array_length(string_to_array(x, 'ab'), 1)"),
    (_length(_parts("aa")), "array_length(string_to_array(x, 'aa'), 1)"),
    (_length(_parts(".")), "array_length(string_to_array(x, '.'), 1)"),
    (Call(INTEGER, "cardinality", (_parts(","),)), "cardinality(string_to_array(x, ','))"),
    (_length(_parts(r"\s+", "regexp_split_to_array")), r"array_length(regexp_split_to_array(x, '\s+'), 1)"),
    (_length(_parts("[ab]", "regexp_split_to_array")), "array_length(regexp_split_to_array(x, '[ab]'), 1)"),
    (_length(_parts(r"a+\.", "regexp_split_to_array")), r"array_length(regexp_split_to_array(x, 'a+\.'), 1)"),
    (_has(",", "a"), "'a' = ANY (string_to_array(x, ','))"),
    (_has(",", ""), "'' = ANY (string_to_array(x, ','))"),
    (_has(" ", "a,"), "'a,' = ANY (string_to_array(x, ' '))"),
    (Call(BOOLEAN, "array_contains", (_parts(","), _array("a", "b"))), "string_to_array(x, ',') @> ARRAY['a', 'b']"),
    (Call(BOOLEAN, "array_overlaps", (_array("a", "bb"), _parts(","))), "ARRAY['a', 'bb'] && string_to_array(x, ',')"),
)  # fmt: skip
"""What is asked, and Postgres' own words for it."""


def _texts() -> list[str | None]:
    chance = random.Random(34)
    made = ["".join(chance.choices("aab,,. \n\\é🙂", k=chance.randrange(9))) for _ in range(400)]
    return [None, "", ",", ",,", "a", "a,b", "b,a,", ",a", "aaa", "aaaa", "a a", " ", "%", "'", *made]


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_as_the_arrays_answer(postgres: PostgresServer, engine: str) -> None:
    env = Environment([Column("x", TEXT)])
    dialect = dialect_of(engine, "pg_c_utf8")
    texts = _texts()
    with postgres.admin("postgres") as connection, duckdb.connect() as db:
        connection.execute("CREATE TEMPORARY TABLE t (n integer, x text)")
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", list(enumerate(texts)))
        db.execute("CREATE TABLE t (n INTEGER, x VARCHAR)")
        insert(db, "t", list(enumerate(texts)))
        for call, own in ASKED:
            asked = asked_of_texts(call)
            assert asked is not None
            printer = PrivatePrinter(env, ["x"], dialect)
            shown = printer.value(asked)
            sql = f"SELECT {shown} FROM t ORDER BY n"
            found = (
                db.execute(sql).fetchall()
                if engine == "duckdb"
                else connection.execute(sql.encode()).fetchall()
            )
            truth = connection.execute(f"SELECT {own} FROM t ORDER BY n".encode()).fetchall()
            wrong = [(text, a, b) for text, a, b in zip(texts, found, truth, strict=True) if a != b]
            assert not wrong, (own, wrong[:5])


def test_a_count_has_bounds() -> None:
    for call, own in ASKED:
        asked = asked_of_texts(call)
        assert asked is not None
        facts = facts_of(asked, Environment([Column("x", TEXT, max_length=40)]))
        if asked.type == INTEGER:
            assert (facts.lo, facts.grid, facts.declared) == (0 if "cardinality" in own else 1, ONE, True)
            assert facts.hi == 41


@pytest.mark.parametrize(
    "call",
    [
        _length(_parts("")),
        _length(_parts("a*", "regexp_split_to_array")),
        _length(_parts("a|b", "regexp_split_to_array")),
        _length(_parts("^a", "regexp_split_to_array")),
        _length(_parts(r"\b", "regexp_split_to_array")),
        _length(_parts("(?i)a", "regexp_split_to_array")),
        _length(_parts("[^a]", "regexp_split_to_array")),
        _length(_parts("é", "regexp_split_to_array")),
        Call(INTEGER, "array_length", (_parts(","), Literal(INTEGER, 2))),
        Call(INTEGER, "array_length", (_array("a"), Literal(INTEGER, 1))),
        _has(",", "a,b"),
        _has("ab", "a"),
        Call(BOOLEAN, "array_has", (_parts(","), X)),
        Call(BOOLEAN, "array_contains", (_array("a"), _parts(","))),
        Call(BOOLEAN, "array_contains", (_parts(","), _parts(","))),
        Call(BOOLEAN, "array_contains", (_parts(","), _array())),
        Call(INTEGER, "array_position", (_parts(","), Literal(TEXT, "a"))),
    ],
)
def test_what_is_asked_otherwise_is_none(call: Call) -> None:
    assert asked_of_texts(call) is None


def test_over_people_it_is_said_of_the_text() -> None:
    shown = printed("SELECT AVG(array_length(string_to_array(note, ' '), 1)) FROM visit")
    assert "replace(" in shown
    assert "string" not in shown
    with pytest.raises(Refusal, match="private rows"):
        printed("SELECT AVG(array_length(string_to_array(note, ''), 1)) FROM visit")
