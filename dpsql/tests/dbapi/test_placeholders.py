"""Placeholders: what is one, what is not, and what is refused because it could be read in two ways."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given as over
from hypothesis import strategies as st
from sqlglot.tokenizer_core import TokenType

import dpsql
from dpsql.dbapi.placeholders import read_statement
from dpsql.errors import Refusal
from dpsql.sql.text import place, tokenize
from dpsql.tests.dbapi.conftest import COUNT, left
from dpsql.tests.support.length import long_where

READ = [
    ("SELECT ?", (1,), "SELECT $1"),
    ("SELECT ?, '?', \"?\" -- ?\n /* ? /* ? */ */ , ?", (1, 2), "SELECT $1, '?', \"?\" -- ?\n /* ? /* ? */ */ , $2"),
    ("SELECT E'\\'?', ?", (1,), "SELECT E'\\'?', $1"),
    ("SELECT 'a''?', ?::int", (1,), "SELECT 'a''?', $1::int"),
    ("LIMIT?OFFSET?", (1, 2), "LIMIT $1 OFFSET $2"),
    ("x = ?||?||'?'", (1, 2), "x = $1||$2||'?'"),
    ("SELECT $2, $1", (1, 2), "SELECT $2, $1"),
    ("x IN (%s, %s) AND y % s = 1", (1, 2), "x IN ($1, $2) AND y % s = 1"),
    ("x %s, %s", (1,), "x %s, $1"),
    ("SELECT \"select\" %s, %s", (1,), "SELECT \"select\" %s, $1"),
    ("x = :b AND y = :a AND z::int = :b", {"a": 1, "b": 2}, "x = $1 AND y = $2 AND z::int = $1"),
    ("x = %(b)s AND y = %(a)s AND %(b)s", {"a": 1, "b": 2, "c": 3}, "x = $1 AND y = $2 AND $1"),
    ("a[1:b]", {}, "a[1:b]"),
    ("SELECT 1", {}, "SELECT 1"),
    ("explain (format json) SELECT '?', ?", (1,), "explain (format json) SELECT '?', $1"),
    ("EXPLAIN SELECT %s", (1,), "EXPLAIN SELECT $1"),
    ("SELECT '%s %(a)s :a'", None, "SELECT '%s %(a)s :a'"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "given", "text"), READ)
def test_read(written: str, given: tuple[object, ...] | dict[str, object] | None, text: str) -> None:
    assert read_statement(written, given or ()).text == text


def test_names_are_bound_in_the_engines_order() -> None:
    given = {"a": 1, "b": 2, "unused": 3}
    assert read_statement("x = :b AND y = :a AND z = :b", given).bind(given) == (2, 1)


def test_positions_are_those_of_the_written_text() -> None:
    written = "x = ?||LIMIT? AND\n ? < here"
    statement = read_statement(written, (1, 2, 3))
    for word in ("x", "LIMIT", "AND", "< here", "here"):
        found = statement.find(place(statement.text, statement.text.index(word)))
        assert found == place(written, written.index(word))
    assert statement.find(place(statement.text, statement.text.index("$3"))).offset == written.rindex("?")


BARE = ["?", "%s", ":n", "%(n)s"]
PIECES = [
    "= {}", "IN ({}, {})", "= {} ::int", "LIKE {}", "= {} AND", "'? %s :n {}'", "'it''s ?'", '"a ? ""b"', "-- ? {}\n", "/* ? /* {} */ ? */",
    "E'\\\\'", "E'\\' ? '", "a::int", "x * 2", "(", ")", ",", "'é'", "''",
]  # fmt: skip


@over(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(BARE))
def test_nothing_but_placeholders_changes(pieces: list[str], style: str) -> None:
    """Whatever stands around them, all other tokens stay as they are, and strings keep every character."""
    written = "SELECT x " + " ".join(pieces).replace("{}", style)
    given = {"n": 1} if "n" in style else (1,)
    try:
        statement = read_statement(written, given)  # type: ignore[arg-type]  # either is taken
        before, after = tokenize(written), tokenize(statement.text)
    except (dpsql.ProgrammingError, Refusal):
        return
    kept = [
        (t.token_type, t.text)
        for t in before
        if not any(c.written <= t.start < c.written_end for c in statement.cuts)
    ]
    new = [
        (t.token_type, t.text) for t in after if not any(c.start <= t.start < c.end for c in statement.cuts)
    ]
    assert kept == new
    for token in before:
        inside = any(cut.written <= token.start < cut.written_end for cut in statement.cuts)
        assert not (inside and token.token_type in (TokenType.STRING, TokenType.IDENTIFIER))
        assert inside or token.text != "?" or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
    assert statement.count == (min(1, len(statement.cuts)) if "n" in style else len(statement.cuts))


REFUSED = [
    ("SELECT COUNT(*) FROM person WHERE age > ?", (), "the statement takes 1 parameter, 0 given"),
    ("SELECT COUNT(*) FROM person WHERE age > ?", (1, 2), "the statement takes 1 parameter, 2 given"),
    ("SELECT COUNT(*) FROM person WHERE age > $2", (1,), "the statement takes 2 parameters, 1 given"),
    ("SELECT COUNT(*) FROM person WHERE age > %s", (1, 2), "the statement takes 1 parameter, 2 given"),
    ("SELECT COUNT(*) FROM person WHERE city = '?'", ("x",), "the statement takes 0 parameters, 1 given"),
    ("SET dpsql.epsilon = 1", (1,), "the statement takes 0 parameters, 1 given"),
    (COUNT, (1,), "the statement takes 0 parameters, 1 given"),
    ("SELECT COUNT(*) FROM person WHERE age > :age", {"aged": 1}, 'parameter "age" is not given'),
    ("SELECT COUNT(*) FROM person WHERE age > :age", (1,), "the statement's parameters have names"),
    (
        "SELECT COUNT(*) FROM person WHERE age > ?",
        {"age": 1},
        "the parameters have names and the statement has none",
    ),
    (
        "SELECT COUNT(*) FROM person WHERE age > ? AND age < %s",
        (1, 2),
        "placeholders of two styles: %s and ?",
    ),
    ("SELECT COUNT(*) FROM person WHERE city = ?", "north", "the parameters are one value"),
    ("SELECT COUNT(*) FROM person WHERE age = ?", 1, "the parameters are one value"),
    (
        "SELECT COUNT(*) FROM person WHERE city LIKE 'n%%' AND age > %s",
        (1,),
        "a % that may be doubled or not stands beside %s",
    ),
    (
        "SELECT COUNT(*) FROM person WHERE age %% 2 = %s",
        (1,),
        "a % that may be doubled or not stands beside %s",
    ),
    (
        "SELECT COUNT(*) FROM person WHERE city = $$n$$ AND age > ?",
        (1,),
        "a dollar-quoted string stands beside placeholders",
    ),
    (
        "SELECT COUNT(*) FROM person WHERE city = '? AND age > ?",
        (1,),
        "the text ends inside a quote or a comment",
    ),
    (b"SELECT 1", (), "a statement is a str"),
]


@pytest.mark.parametrize(("sql", "given", "message"), REFUSED)
def test_refused_before_anything_is_charged(
    connection: dpsql.Connection, sql: str, given: object, message: str
) -> None:
    with pytest.raises(dpsql.ProgrammingError) as refused:
        connection.execute(sql, given)  # type: ignore[arg-type]  # wrong ones are the point
    assert refused.value.message == message
    assert left(connection) == "2"


VALUES = [
    True, 7, 2**40, Decimal("1.25"), 0.5, "it's ? and %s", datetime.date(2020, 2, 29),
    datetime.datetime(2020, 2, 29, 1, 2, 3, 4),
]  # fmt: skip


@long_where(lambda sql, value: sql not in ("SELECT ?", "SELECT %(v)s") and not isinstance(value, str))
@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(
    ("sql", "by_name"), [("SELECT ?", False), ("SELECT $1", False), ("SELECT %s", False), ("SELECT :v", True),
                         ("SELECT %(v)s", True)]
)  # fmt: skip
def test_every_style_carries_every_value(
    connection: dpsql.Connection, sql: str, by_name: bool, value: object
) -> None:
    assert connection.execute(sql, {"v": value} if by_name else [value]).fetchone() == (value,)


def test_numbers_of_numpy(connection: dpsql.Connection) -> None:
    values = [np.int64(5), np.float64(0.5), np.bool_(True)]
    assert connection.execute("SELECT ?, ?, ?", values).fetchone() == (5, 0.5, True)


def test_null_is_none(connection: dpsql.Connection) -> None:
    assert connection.execute("SELECT ?", (None,)).fetchone() == (None,)


def test_a_value_without_a_type_is_a_data_error(connection: dpsql.Connection) -> None:
    for value in (b"x", object(), float("nan")):
        with pytest.raises(dpsql.DataError) as refused:
            connection.execute("SELECT ?", (value,))
        assert refused.value.sqlstate == "22023"


def test_a_value_is_never_text_of_the_statement(connection: dpsql.Connection) -> None:
    hostile = "north' OR '1' = '1' -- ? $1 %s"
    (row,) = connection.execute("SELECT ?, 1 WHERE ? <> 'north'", (hostile, hostile)).fetchall()
    assert row == (hostile, 1)
