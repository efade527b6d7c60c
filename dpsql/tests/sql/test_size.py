"""How much work the worst statements make: counted in words, tokens and calls, never in seconds.

Most of these once held the interpreter for half a second to minutes and were refused then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from dpsql.errors import Refusal
from dpsql.sql import statement, text
from dpsql.sql.text import (
    MAX_AGGREGATES,
    MAX_CTES,
    MAX_DEPTH,
    MAX_JOINED,
    MAX_OUTPUTS,
    MAX_SQUARE,
    MAX_TEXT,
    MAX_TYPED,
)
from dpsql.tests.plan.planned import bound, planned


def _list(before: str, item: str, between: str, after: str = "") -> str:
    """Return the longest list that a statement's characters hold."""
    count = (MAX_TEXT - len(before) - len(after)) // (len(item) + len(between))
    return before + between.join([item] * count) + after


def _nested(before: str, opening: str, middle: str, closing: str, count: int) -> str:
    return before + opening * count + middle + closing * count


_TOO_LONG = {
    "in": _list("SELECT count(*) FROM visit WHERE days IN (", "1", ",", ")"),
    "in of texts": _list("SELECT count(*) FROM visit WHERE ward IN (", "'a'", ",", ")"),
    "union": _list("", "SELECT 1", " UNION "),
    "not": _list("SELECT count(*) FROM visit WHERE ", "NOT", " ", " urgent"),
    "and": _list("SELECT count(*) FROM visit WHERE ", "urgent", " AND "),
    "or": _list("SELECT count(*) FROM visit WHERE ", "days=1", " OR "),
    "when": _list("SELECT CASE ", "WHEN true THEN 1", " ", " END"),
    "wide": _list("SELECT ", "1", ","),
    "plus": _list("SELECT ", "1", "+"),
    "concat": _list("SELECT ", "'a'", "||"),
    "values": _list("VALUES ", "(1)", ","),
    "sets": _list("SELECT count(*) FROM visit GROUP BY GROUPING SETS (", "(ward)", ",", ")"),
    "cubes": _list("SELECT count(*) FROM visit GROUP BY ", "CUBE(ward)", ","),
    "ctes": _list("WITH ", "a AS (SELECT 1)", ",", " SELECT 1"),
    "joins": _list("SELECT 1 FROM ward ", "JOIN ward ON true", " "),
    "windows": _list("SELECT ", "sum(beds) OVER ()", ",", " FROM ward"),
    "brackets": "SELECT " + "[" * (MAX_TEXT - 7),
    "parentheses": _nested("SELECT ", "(", "1", ")", 30_000),
    "subscripts": _list("SELECT ARRAY[1]", "[1]", ""),
    "semicolons": ";" * MAX_TEXT,
    "lambdas": _list("SELECT ", "x", "->"),
}
_TOO_DEEP = {
    "arrays": _nested("SELECT ", "ARRAY[", "1", "]", MAX_SQUARE + 1),
    "subscripts inside": _nested("SELECT ", "a[", "1", "]", MAX_SQUARE + 1),
    "subscripts": "SELECT ARRAY[1]" + "[1]" * (MAX_DEPTH + 1),
    "numeric": _nested("SELECT 1::", "numeric(", "1", ")", MAX_TYPED + 1),
    "dates": _nested("SELECT ", "date (", "1", ")", MAX_TYPED + 1),
    "structs": _nested("SELECT ", "struct(", "1", ")", MAX_TYPED + 1),
    "calls": _nested("SELECT ", "f(", "1", ")", MAX_DEPTH + 1),
    "queries": _nested("", "SELECT (", "SELECT 1", ")", MAX_DEPTH + 1),
    "open": "SELECT " + "(" * (MAX_DEPTH + 1),
}
_TOO_MUCH = {
    "joins": "SELECT count(*) FROM ward a0 "
    + " ".join(f"JOIN ward a{i} ON true" for i in range(1, MAX_JOINED + 1)),
    "commas": "SELECT count(*) FROM " + ",".join(f"ward a{i}" for i in range(MAX_JOINED + 1)),
    "laterals": "SELECT 1 FROM ward"
    + "".join(f", LATERAL (SELECT beds) l{i}(b{i})" for i in range(MAX_JOINED + 1)),
    "ctes": "WITH " + ",".join(f"c{i} AS (SELECT 1)" for i in range(MAX_CTES + 1)) + " SELECT 1",
    "aggregates": "SELECT "
    + ",".join(f"corr(days,days+{i})" for i in range(MAX_AGGREGATES + 1))
    + " FROM visit",
    "outputs": "SELECT " + ",".join("1" for _ in range(MAX_OUTPUTS + 1)),
}


def _refusal(sql: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        planned(sql)
    return caught.value


def _never(*_: object) -> None:
    raise AssertionError("the statement went further than it may")


@pytest.mark.parametrize("name", _TOO_LONG)
def test_a_long_text_is_not_cut_into_tokens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = _TOO_LONG[name]
    assert len(sql) <= MAX_TEXT
    monkeypatch.setattr(text, "dialect_of", _never)
    assert _refusal(sql).sqlstate == "54001"


@pytest.mark.parametrize("name", _TOO_DEEP)
def test_deep_brackets_are_not_parsed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement, "_parsed_calls", _never)
    assert _refusal(_TOO_DEEP[name]).sqlstate == "54001"


@pytest.mark.parametrize("name", _TOO_MUCH)
def test_what_is_dear_to_bind_is_not_bound(name: str) -> None:
    with pytest.raises(Refusal) as caught:
        statement.parse_statement(_TOO_MUCH[name])
    assert caught.value.sqlstate == "54001"


def _calls(action: Callable[[], object]) -> int:
    """Return how many calls of Python and of compiled functions an action makes."""
    count = 0

    def see(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def _columns(count: int) -> str:
    return ",".join(f"beds+{i} AS c{i}" for i in range(count))


_LARGEST = {
    "in": ("SELECT count(*) FROM visit WHERE days IN (%s)", lambda n: ",".join(map(str, range(n))), 1_000),
    "values": ("SELECT * FROM (VALUES %s) AS t", lambda n: ",".join(["(1)"] * n), 500),
    "wide": ("SELECT %s FROM ward", _columns, 200),
    "joins": (
        "SELECT 1 FROM ward a %s",
        lambda n: " ".join(f"JOIN ward a{i} ON true" for i in range(n)),
        20,
    ),
    "deep": (
        "SELECT * FROM " + "(SELECT * FROM " * 12 + "(SELECT %s FROM ward) t" + ") t" * 12,
        _columns,
        20,
    ),
}


@pytest.mark.parametrize("name", _LARGEST)
def test_what_is_answered_makes_work_in_proportion(name: str) -> None:
    """Three times the statement is at most four and a half times the work: nothing is looked at squared."""
    form, make, size = _LARGEST[name]
    planned(form % make(2))  # what is made once
    few, many = (_calls(lambda n=n: planned(form % make(n))) for n in (size, 3 * size))  # type: ignore[misc]
    assert many < 4.5 * few


def test_a_place_is_found_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of twelve queries inside each other has a place; none walks through all that is in it to find it."""
    sql = "SELECT 1 FROM " + "(SELECT * FROM " * 12 + "ward" + ") t" * 12
    walked = 0
    walk = text.exp.Expression.walk

    def count(self: text.exp.Expression, *args: object, **names: object) -> object:
        nonlocal walked
        walked += 1
        return walk(self, *args, **names)  # type: ignore[arg-type]

    read = statement.parse_statement(sql)
    assert isinstance(read, statement.AdmittedQuery)
    monkeypatch.setattr(text.exp.Expression, "walk", count)
    bound(sql)
    found = [text.position_of(sql, node) for node in read.tree.find_all(text.exp.Subquery)]
    assert len(found) == 12
    assert all(found)
    assert walked < 12


def test_an_in_of_a_thousand_constants_is_answered() -> None:
    numbers = ", ".join(str(number) for number in range(1_000))
    planned(f"SELECT count(*) FROM visit WHERE days IN ({numbers})")
    assert _refusal(f"SELECT count(*) FROM visit WHERE days IN ({numbers}{', 1' * 4000})").sqlstate == "54001"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT '" + ",1" * 30_000 + "'",
        "SELECT '" + "''" * 30_000 + "'",
        "SELECT $a$" + "a," * 30_000 + "$a$",
        "SELECT 1 -- " + "a " * 30_000,
        "SELECT 1 /* " + "a " * 15_000 + "/* b */" + " a" * 10_000 + " */",
        "SELECT " + " " * 60_000 + "1",
    ],
)
def test_a_long_quote_or_comment_is_one_word(sql: str) -> None:
    assert isinstance(statement.parse_statement(sql), statement.AdmittedQuery)
